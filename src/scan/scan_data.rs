//! Raw data in memory: a dataset and its scans, one per image.

use super::acquisition_header::AcquisitionHeader;
use super::header::{Header, TrajectoryKind};
use super::position::{Placement, ScanIndex};
use crate::acquisition::AcquisitionUse;
use crate::base::error::{bail, checked_product, Result};
use crate::reconstruction::coil_matrix::CoilMatrix;
use num_complex::Complex;
use std::ops::Range;

/// A raw dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// The XML header.
    pub header: Header,
    /// The scans, one per image, in ascending order of their index.
    pub scans: Vec<Scan>,
    /// The samples of noise acquisitions, one entry per number of coils and sample time.
    pub noise: Vec<Noise>,
    /// Calibration data for parallel imaging, from which coil maps are estimated, in ascending order of their index.
    pub calibration: Vec<Scan>,
    /// The number of acquisitions of each use, in the order of [`AcquisitionUse`].
    pub uses: Vec<(AcquisitionUse, usize)>,
}

/// Noise samples: samples without signal.
#[derive(Debug, Clone, PartialEq)]
pub struct Noise {
    /// The number of receive channels.
    pub coils: usize,
    /// The time between samples in seconds; 0 if the file does not have it.
    pub dwell: f32,
    /// `[samples, coils]`.
    pub data: Vec<Complex<f32>>,
}

/// The raw data of one image.
#[derive(Debug, Clone, PartialEq)]
pub struct Scan {
    /// The position of the image in the measurement.
    pub index: ScanIndex,
    /// The encoded matrix: coordinates are in cycles per voxel of this matrix.
    pub encoded_matrix: [usize; 3],
    /// The reconstructed matrix.
    pub recon_matrix: [usize; 3],
    /// The field of view of the encoded matrix in mm.
    pub encoded_fov_mm: [f32; 3],
    /// The field of view of the reconstructed matrix in mm.
    pub recon_fov_mm: [f32; 3],
    /// The kind of trajectory, from the header.
    pub trajectory: TrajectoryKind,
    /// The number of axes: 2 if the encoded matrix has one voxel along z, otherwise 3.
    pub ndim: usize,
    /// The coordinates of all samples in cycles per voxel, [-0.5, 0.5), one vector per axis.
    pub coordinates: Vec<Vec<f32>>,
    /// The density weights of all samples; `None` if the file does not have them.
    pub weights: Option<Vec<f32>>,
    /// The number of samples of each acquisition; the numbers may differ.
    pub samples_per_shot: Vec<usize>,
    /// The number of discarded samples at the beginning of each acquisition.
    pub skipped_per_shot: Vec<usize>,
    /// The number of receive channels.
    pub coils: usize,
    /// The measured data, `[samples, coils]`.
    pub data: Vec<Complex<f32>>,
    /// The time of each sample in seconds since the first sample of its acquisition, which may be discarded; 0 if the
    /// file does not have the sample time.
    pub times: Vec<f32>,
    /// The position of the image, and the time of its first acquisition.
    pub placement: Placement,
    /// The matrix from the coils of the file to the virtual coils of `data`, which is also applied to coil maps; `None`
    /// if the coils are those of the file.
    pub coil_matrix: Option<CoilMatrix>,
    /// The root mean square |noise| of a sample: 1 for whitened data; `None` if unknown.
    pub noise_level: Option<f64>,
}

/// The data of an image or of calibration, with the headers of its first and its last acquisition.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredScan {
    /// The data.
    pub scan: Scan,
    /// The header of the first acquisition.
    pub first: AcquisitionHeader,
    /// The header of the last acquisition.
    pub last: AcquisitionHeader,
}

impl Scan {
    /// Returns the number of samples of all acquisitions.
    pub fn samples(&self) -> usize {
        self.samples_per_shot.iter().sum()
    }

    /// Returns the time between samples in seconds; 0 if the file does not have it.
    pub fn dwell(&self) -> f32 {
        match self.samples_per_shot.first() {
            Some(2..) => self.times[1] - self.times[0],
            _ => 0.0,
        }
    }

    /// Returns the data of the acquisitions 0, n, 2n, ... only; `n` = 0 means 1.
    pub fn every_nth_shot(&self, n: usize) -> Scan {
        self.select_shots(|shot| shot % n.max(1) == 0)
    }

    /// Returns the data of these acquisitions only.
    pub fn shots(&self, range: Range<usize>) -> Scan {
        self.select_shots(|shot| range.contains(&shot))
    }

    fn select_shots(&self, is_selected: impl Fn(usize) -> bool) -> Scan {
        let samples = self.samples();
        let (mut ranges, mut skipped) = (Vec::new(), Vec::new());
        let mut start = 0;
        for (shot, &count) in self.samples_per_shot.iter().enumerate() {
            if is_selected(shot) {
                ranges.push(start..start + count);
                skipped.extend(self.skipped_per_shot.get(shot));
            }
            start += count;
        }
        let pick = |v: &[f32]| -> Vec<f32> { ranges.iter().flat_map(|r| v[r.clone()].iter().copied()).collect() };
        let coil = |c: usize| ranges.iter().flat_map(move |r| self.data[c * samples..][r.clone()].iter().copied());
        Scan {
            coordinates: self.coordinates.iter().map(|v| pick(v)).collect(),
            weights: self.weights.as_deref().map(pick),
            samples_per_shot: ranges.iter().map(|r| r.len()).collect(),
            skipped_per_shot: skipped,
            data: (0..self.coils).flat_map(coil).collect(),
            times: pick(&self.times),
            coil_matrix: self.coil_matrix.clone(),
            ..*self
        }
    }

    /// Returns the field of view in mm of an image of `dims` voxels: that of the encoded or the reconstructed matrix if
    /// one of them has this size. Otherwise the voxel size is that of the encoded matrix.
    pub fn fov_mm(&self, dims: [usize; 3]) -> [f32; 3] {
        match dims {
            d if d == self.encoded_matrix => self.encoded_fov_mm,
            d if d == self.recon_matrix => self.recon_fov_mm,
            d => std::array::from_fn(|i| self.encoded_fov_mm[i] / self.encoded_matrix[i] as f32 * d[i] as f32),
        }
    }

    /// Checks that all counts agree.
    ///
    /// # Errors
    /// `SizeMismatch`, `InvalidSize`, `SizeOverflow`.
    pub fn check(&self) -> Result<()> {
        let samples = self.samples();
        let is_inconsistent = self.coordinates.len() != self.ndim
            || self.coordinates.iter().chain(&self.weights).any(|v| v.len() != samples)
            || self.times.len() != samples;
        if is_inconsistent || !(2..=3).contains(&self.ndim) {
            let ndim = self.ndim;
            bail!(SizeMismatch, "{samples} samples need {samples} times, weights, and coordinates along {ndim} axes");
        }
        if samples == 0 || self.coils == 0 || self.samples_per_shot.contains(&0) {
            bail!(InvalidSize, "the scan has no samples, no coils, or an empty shot");
        }
        if self.skipped_per_shot.len() != self.samples_per_shot.len() {
            let (shots, skipped) = (self.samples_per_shot.len(), self.skipped_per_shot.len());
            bail!(SizeMismatch, "the scan has {shots} shots and numbers of skipped samples for {skipped}");
        }
        if checked_product(&[samples, self.coils], "the data")? != self.data.len() {
            let n = self.data.len();
            bail!(SizeMismatch, "the scan has {samples} samples of {} coils, but {n} numbers", self.coils);
        }
        Ok(())
    }
}
