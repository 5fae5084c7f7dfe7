//! The samples along a spoke.

use super::options::TrajectoryOptions;
use super::points;
use crate::base::error::{bail, Result};
use crate::base::geometry::in_range;
use crate::scan::acquisition_header::AcquisitionHeader;
use crate::scan::shots::Shot;
use std::collections::BTreeMap;
use std::ops::Range;

/// The positions of the samples along a spoke.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SpokeReadout {
    /// The number of samples from one edge of k-space to the other.
    pub full: f64,
    /// The sample at the centre of k-space.
    pub centre: f64,
    /// The delay of the gradients in samples.
    delay: f64,
    /// The sum of an index and its mirror image in a reversed readout; `None` if it is not reversed.
    mirror: Option<f64>,
}

/// The positions of the samples of all spokes of an image. They are computed before samples are discarded.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SpokeReadouts {
    /// The positions of the first acquisition.
    pub first: SpokeReadout,
    /// The positions of the acquisitions that differ from the first one, by their order.
    others: BTreeMap<usize, SpokeReadout>,
}

impl SpokeReadouts {
    /// Returns the positions of the samples of all acquisitions.
    ///
    /// # Errors
    /// The errors of [`SpokeReadout::new`].
    pub fn new(shots: &[Shot], voxels: usize, options: &TrajectoryOptions) -> Result<SpokeReadouts> {
        let first = SpokeReadout::new(&shots[0].header, voxels, options)?;
        let mut others = BTreeMap::new();
        for shot in &shots[1..] {
            let readout = SpokeReadout::new(&shot.header, voxels, options)
                .map_err(|e| e.within(format_args!("acquisition {}", shot.number)))?;
            if readout != first {
                others.insert(shot.order, readout);
            }
        }
        Ok(SpokeReadouts { first, others })
    }

    /// Returns the positions of the samples of an acquisition.
    pub fn of(&self, shot: &Shot) -> &SpokeReadout {
        self.others.get(&shot.order).unwrap_or(&self.first)
    }
}

impl SpokeReadout {
    /// Returns the positions of an acquisition's samples for `voxels` voxels along x.
    ///
    /// # Errors
    /// `Unsupported` if the distance of samples is open; `BadFile`.
    fn new(header: &AcquisitionHeader, voxels: usize, options: &TrajectoryOptions) -> Result<SpokeReadout> {
        let kept = header.kept_samples();
        let middle = (kept.start + kept.len() / 2) as f64;
        let stated = options.center_sample.unwrap_or(header.center_sample as f64);
        // A centre of 0 that would place the end of the spoke outside k-space means that the writer did not set it.
        let is_unset = |full: f64| {
            options.center_sample.is_none() && header.center_sample == 0 && 2.0 * (kept.end as f64 - 1.0) >= full
        };
        let count = kept.len() as f64;
        let is_symmetric = (stated - middle).abs() <= 0.5 || is_unset(count);
        let full = match options.readout_samples {
            Some(full) => full as f64,
            None if kept.len() == voxels || (kept.len() > voxels && is_symmetric) => count,
            None => bail!(
                Unsupported,
                "the header does not say how far apart the samples of a spoke are: it has {count} samples with the \
                 centre at {stated}, for {voxels} voxels: set the option readout_samples to the number of samples from \
                 one edge of k-space to the other"
            ),
        };
        let delay = match options.gradient_delay_us.filter(|&delay| delay != 0.0) {
            None => 0.0,
            Some(delay) => match options.sample_time(0.0, header.sample_time_us as f64)? {
                time if time > 0.0 => delay / time,
                _ => bail!(
                    BadFile,
                    "a gradient delay needs the time between samples, but sample_time_us is {}: set the option \
                     sample_time_us",
                    header.sample_time_us
                ),
            },
        };
        let mirror = header.is_reversed().then_some(header.number_of_samples as f64 - 1.0);
        Ok(SpokeReadout { full, centre: if is_unset(full) { middle } else { stated }, delay, mirror })
    }

    /// Returns the position of a sample in cycles per voxel along x.
    fn position(&self, sample: usize) -> f64 {
        let sample = sample as f64 - self.delay;
        (self.mirror.map_or(sample, |sum| sum - sample) - self.centre) / self.full
    }

    /// Returns the samples that the delay does not move out of k-space.
    pub fn available_samples(&self, header: &AcquisitionHeader) -> Range<usize> {
        let mut range = header.kept_samples();
        // Without the delay, the sample would be inside: otherwise, it is an error of the header.
        let is_lost = |sample: usize| {
            let (moved, nominal) = (self.position(sample), SpokeReadout { delay: 0.0, ..*self }.position(sample));
            !in_range(moved) && in_range(nominal)
        };
        while !range.is_empty() && is_lost(range.start) {
            range.start += 1;
        }
        while !range.is_empty() && is_lost(range.end - 1) {
            range.end -= 1;
        }
        range
    }

    /// Appends the samples of a spoke in this direction, in voxels along each axis.
    pub fn add(&self, header: &AcquisitionHeader, direction: &[f64], coordinates: &mut [Vec<f32>]) -> Result<()> {
        for sample in header.kept_samples() {
            let r = self.position(sample);
            let point: [f64; 3] = std::array::from_fn(|axis| direction.get(axis).map_or(0.0, |d| r * d));
            let remedy = "correct center_sample or the encoded matrix, or set the options readout_samples and \
                          center_sample";
            points::push(coordinates, &point[..direction.len()], sample, remedy)?;
        }
        Ok(())
    }
}
