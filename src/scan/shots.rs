//! The acquisitions of one image, as they arrive.

use super::acquisition_header::AcquisitionHeader;
use super::coil_samples::CoilSamples;
use super::position::ScanIndex;
use super::spare_arrays::SpareArrays;
use crate::acquisition::AcquisitionUse;
use crate::base::error::{bail, try_grow, Error, Result};
use num_complex::Complex;
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
    /// The samples of all coils.
    pub kspace: CoilSamples,
    /// Expected number of samples, for which memory is reserved at once; 0 if unknown.
    pub expected_samples: usize,
    /// Whether the image was completed by request, so that later acquisitions may belong to it. Its shots are counted
    /// with those of the other parts.
    pub is_part: bool,
    /// The reason why no image can be made of these acquisitions.
    problem: Option<Error>,
}

impl ShotData {
    /// Adds an acquisition. Its arrays have the lengths that its header announces.
    ///
    /// # Errors
    /// `OutOfHostMemory`. No image can then be made of these acquisitions.
    pub fn add(&mut self, shot: Shot, trajectory: &[f32], data: &[Complex<f32>], spare: &SpareArrays) -> Result<()> {
        let added = try_grow(&mut self.shots, 1, "the acquisitions")
            .and_then(|()| self.add_samples(&shot, trajectory, data, spare));
        match &added {
            Ok(()) => self.shots.push(shot),
            Err(error) => self.refuse(shot, error),
        }
        added
    }

    /// Adds the samples of an acquisition, unless no image can be made of these acquisitions.
    fn add_samples(
        &mut self,
        shot: &Shot,
        trajectory: &[f32],
        data: &[Complex<f32>],
        spare: &SpareArrays,
    ) -> Result<()> {
        if self.problem.is_some() {
            return Ok(());
        }
        // The image, not this call, reports an acquisition that does not fit.
        self.problem = self.check(shot).err();
        if self.problem.is_some() {
            return Ok(());
        }
        self.extend(shot, trajectory, data, spare)
    }

    /// Records an acquisition that is refused: no image is made without it.
    pub fn refuse(&mut self, shot: Shot, error: &Error) {
        if self.problem.is_none() {
            self.problem = Some(error.clone().within(format_args!("acquisition {}", shot.number)));
            (self.kspace, self.trajectory) = (CoilSamples::default(), Vec::new());
        }
        // The other acquisitions identify the image.
        if try_grow(&mut self.shots, 1, "the acquisitions").is_ok() {
            self.shots.push(shot);
        }
    }

    /// Returns the index of the image; `None` without acquisitions.
    pub fn index(&self) -> Option<ScanIndex> {
        self.shots.first().map(|shot| shot.header.index())
    }

    /// Returns whether there was no acquisition, refused ones included.
    pub fn is_empty(&self) -> bool {
        self.shots.is_empty() && self.problem.is_none()
    }

    /// Appends the samples of an acquisition that are not discarded. They are unchanged after an error.
    fn extend(&mut self, shot: &Shot, trajectory: &[f32], data: &[Complex<f32>], spare: &SpareArrays) -> Result<()> {
        let (count, kept) = (shot.header.number_of_samples as usize, shot.header.kept_samples());
        let (coils, dimensions) = (shot.header.active_channels as usize, shot.header.trajectory_dimensions as usize);
        if self.kspace.coils() == 0 {
            self.trajectory = spare.numbers(self.expected_samples.saturating_mul(dimensions))?;
            self.kspace = CoilSamples::new(coils, self.expected_samples, spare)?;
        }
        try_grow(&mut self.trajectory, kept.len() * dimensions, "the trajectory")?;
        self.kspace.reserve(kept.len(), spare)?;
        self.trajectory.extend_from_slice(&trajectory[kept.start * dimensions..kept.end * dimensions]);
        self.kspace.extend(data, count, kept);
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
                self.kspace.copy_within(first..first + range.len(), to);
            }
            // Both numbers are at most the number of samples, which has 16 bits.
            header.discard_pre = range.start as u16;
            header.discard_post = header.number_of_samples - range.end as u16;
            (from, to) = (from + kept.len(), to + range.len());
        }
        self.kspace.truncate(to);
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
                self.kspace.copy_within(from..from + count, to);
                to += count;
            }
            from += count;
        }
        self.trajectory.truncate(to * dimensions);
        self.kspace.truncate(to);
        self.shots.retain(is_kept);
    }
}
