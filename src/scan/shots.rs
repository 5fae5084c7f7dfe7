//! The acquisitions of one image, as they arrive.

use super::acquisition_header::AcquisitionHeader;
use crate::acquisition::AcquisitionUse;
use crate::base::error::{bail, Error, ErrorKind, Result};
use num_complex::Complex;
use std::collections::TryReserveError;
use std::ops::Range;

/// An acquisition without its samples.
#[derive(Clone, Copy)]
pub(super) struct Shot {
    /// The position in the measurement, for messages.
    pub number: usize,
    pub header: AcquisitionHeader,
    pub usage: AcquisitionUse,
    /// The number of earlier acquisitions of the same encoding, slice, contrast and set.
    pub order: usize,
}

/// The acquisitions of one image and purpose, without discarded samples.
#[derive(Default)]
pub(super) struct ShotData {
    pub shots: Vec<Shot>,
    /// `[dimensions, samples]`, as in the acquisitions.
    pub trajectory: Vec<f32>,
    /// The samples of each coil.
    pub kspace: Vec<Vec<Complex<f32>>>,
    /// Expected number of samples, for which memory is reserved at once; 0 if unknown.
    pub expected_samples: usize,
    /// The reason why no image can be made of these acquisitions.
    problem: Option<Error>,
}

pub(super) fn no_memory(_: TryReserveError) -> Error {
    Error::new(ErrorKind::OutOfHostMemory, "the host is out of memory for the samples: read fewer images at once")
}

impl ShotData {
    /// Adds an acquisition. Its arrays have the lengths that its header announces.
    pub fn add(&mut self, shot: Shot, trajectory: &[f32], data: &[Complex<f32>]) -> Result<()> {
        if self.problem.is_none() {
            self.problem = self.check(&shot).err();
        }
        self.shots.try_reserve(1).map_err(no_memory)?;
        self.shots.push(shot);
        if self.problem.is_some() {
            return Ok(());
        }
        let (count, kept) = (shot.header.number_of_samples as usize, shot.header.kept_samples());
        let (coils, dimensions) = (shot.header.active_channels as usize, shot.header.trajectory_dimensions as usize);
        if self.kspace.is_empty() {
            self.kspace = vec![Vec::new(); coils];
            self.trajectory.try_reserve_exact(self.expected_samples.saturating_mul(dimensions)).map_err(no_memory)?;
            for coil in &mut self.kspace {
                coil.try_reserve_exact(self.expected_samples).map_err(no_memory)?;
            }
        }
        self.trajectory.try_reserve(kept.len() * dimensions).map_err(no_memory)?;
        self.trajectory.extend_from_slice(&trajectory[kept.start * dimensions..kept.end * dimensions]);
        for (coil, samples) in self.kspace.iter_mut().zip(data.chunks_exact(count)) {
            coil.try_reserve(kept.len()).map_err(no_memory)?;
            coil.extend_from_slice(&samples[kept.clone()]);
        }
        Ok(())
    }

    /// Checks that an acquisition agrees in coils and dimensions with the first one, and keeps samples.
    fn check(&self, shot: &Shot) -> Result<()> {
        let (header, first) = (&shot.header, self.shots.first().unwrap_or(shot));
        let (coils, dimensions) = (first.header.active_channels, first.header.trajectory_dimensions);
        if header.active_channels != coils || coils == 0 {
            bail!(
                BadFile,
                "acquisition {} has {} coils and acquisition {} of the same image has {coils}",
                shot.number,
                header.active_channels,
                first.number
            );
        }
        if header.trajectory_dimensions != dimensions {
            bail!(
                BadFile,
                "acquisition {} has {} trajectory dimensions and acquisition {} of the same image has {dimensions}",
                shot.number,
                header.trajectory_dimensions,
                first.number
            );
        }
        if header.kept_samples().is_empty() {
            bail!(
                BadFile,
                "acquisition {} keeps no samples: it has {} and discards {} before and {} after",
                shot.number,
                header.number_of_samples,
                header.discard_pre,
                header.discard_post
            );
        }
        Ok(())
    }

    /// Returns the error of the first acquisition that does not fit.
    pub fn take_problem(&mut self) -> Result<()> {
        self.problem.take().map_or(Ok(()), Err)
    }

    /// Discards the samples of each acquisition outside its available range, which is within the samples that are not
    /// discarded. The acquisitions have no stored trajectory.
    ///
    /// # Errors
    /// `BadFile` if an acquisition would not have samples.
    pub fn limit_samples(&mut self, available: impl Fn(&Shot) -> Range<usize>) -> Result<()> {
        let (mut from, mut to) = (0, 0);
        for shot in &mut self.shots {
            let (range, kept, number) = (available(shot), shot.header.kept_samples(), shot.number);
            let header = &mut shot.header;
            if range.is_empty() {
                bail!(BadFile, "acquisition {number} has no samples for which there is a trajectory");
            }
            let first = from + range.start - kept.start;
            if first != to {
                self.kspace.iter_mut().for_each(|coil| coil.copy_within(first..first + range.len(), to));
            }
            // Both numbers are at most the number of samples, which has 16 bits.
            header.discard_pre = range.start as u16;
            header.discard_post = header.number_of_samples - range.end as u16;
            (from, to) = (from + kept.len(), to + range.len());
        }
        self.kspace.iter_mut().for_each(|coil| coil.truncate(to));
        Ok(())
    }

    /// Keeps the acquisitions with this use only.
    pub fn retain(&mut self, is_kept: impl Fn(&Shot) -> bool) {
        if self.problem.is_some() || self.shots.iter().all(&is_kept) {
            return;
        }
        let dimensions = self.shots[0].header.trajectory_dimensions as usize;
        let (mut from, mut to) = (0, 0);
        for shot in &self.shots {
            let count = shot.header.kept_samples().len();
            if is_kept(shot) {
                self.trajectory.copy_within(from * dimensions..(from + count) * dimensions, to * dimensions);
                self.kspace.iter_mut().for_each(|coil| coil.copy_within(from..from + count, to));
                to += count;
            }
            from += count;
        }
        self.trajectory.truncate(to * dimensions);
        self.kspace.iter_mut().for_each(|coil| coil.truncate(to));
        self.shots.retain(is_kept);
    }
}
