//! Raw data in memory: a dataset, and its scans of one image each.

use super::header::{Header, TrajectoryKind};
use crate::io::image::{Image, Placement, ScanIndex};
use num_complex::Complex;
use recon::acquisition::AcquisitionUse;
use recon::error::{bail, checked_product, Result};
use recon::CoilMatrix;
use std::ops::Range;

/// A raw dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// The XML header.
    pub header: Header,
    /// The data of one image each, in ascending order of their index.
    pub scans: Vec<Scan>,
    /// The samples of noise acquisitions, those of the same coils and sample time together.
    pub noise: Vec<Noise>,
    /// Calibration data for parallel imaging, from which coil maps are estimated, in ascending order of their index.
    pub calibration: Vec<Scan>,
    /// The number of acquisitions of each use, in the order of [`AcquisitionUse`].
    pub uses: Vec<(AcquisitionUse, usize)>,
}

/// Samples without signal.
#[derive(Debug, Clone, PartialEq)]
pub struct Noise {
    /// The receive channels.
    pub coils: usize,
    /// Seconds from one sample to the next; zero where the file has no sample time.
    pub dwell: f32,
    /// `[samples, coils]`.
    pub data: Vec<Complex<f32>>,
}

/// The raw data of one image.
#[derive(Debug, Clone, PartialEq)]
pub struct Scan {
    /// The place of the image in the measurement.
    pub index: ScanIndex,
    /// The encoded matrix: coordinates are in cycles per voxel of this matrix.
    pub encoded_matrix: [usize; 3],
    /// The reconstructed matrix.
    pub recon_matrix: [usize; 3],
    /// The field of view of the encoded matrix in mm.
    pub encoded_fov_mm: [f32; 3],
    /// The field of view of the reconstructed matrix in mm.
    pub recon_fov_mm: [f32; 3],
    /// What the header says that the trajectory is.
    pub trajectory: TrajectoryKind,
    /// 2 when the encoded matrix has one voxel along z, otherwise 3.
    pub ndim: usize,
    /// Per axis, the coordinates of all samples in cycles per voxel, [-0.5, 0.5).
    pub coordinates: Vec<Vec<f32>>,
    /// The density weights of all samples, where the file has them.
    pub weights: Option<Vec<f32>>,
    /// The samples of each acquisition; they may differ.
    pub samples_per_shot: Vec<usize>,
    /// Of each acquisition, the samples before the first one that is kept.
    pub skipped_per_shot: Vec<usize>,
    /// The receive channels.
    pub coils: usize,
    /// The measured data, `[samples, coils]`.
    pub data: Vec<Complex<f32>>,
    /// The time of every sample in seconds since the first sample of its acquisition (before any was discarded). Zero
    /// where the file has no sample time.
    pub times: Vec<f32>,
    /// The position of the image, and the time of its first acquisition.
    pub placement: Placement,
    /// What has made the virtual coils of `data`, where they are not those of the file: coil maps need it too.
    pub coil_matrix: Option<CoilMatrix>,
    /// The root of the mean |noise|^2 of a sample, where it is known: 1 for whitened data.
    pub noise_level: Option<f64>,
}

impl Scan {
    /// The samples of all acquisitions.
    pub fn samples(&self) -> usize {
        self.samples_per_shot.iter().sum()
    }

    /// Seconds from one sample to the next; zero where the file has no sample time.
    pub fn dwell(&self) -> f32 {
        match self.samples_per_shot.first() {
            Some(2..) => self.times[1] - self.times[0],
            _ => 0.0,
        }
    }

    /// The data of the acquisitions 0, n, 2n, ... only; `n` = 0 counts as 1.
    pub fn every_nth_shot(&self, n: usize) -> Scan {
        self.some_shots(|shot| shot % n.max(1) == 0)
    }

    /// The data of these acquisitions only.
    pub fn shots(&self, range: Range<usize>) -> Scan {
        self.some_shots(|shot| range.contains(&shot))
    }

    fn some_shots(&self, wanted: impl Fn(usize) -> bool) -> Scan {
        let samples = self.samples();
        let (mut ranges, mut skipped) = (Vec::new(), Vec::new());
        let mut start = 0;
        for (shot, &count) in self.samples_per_shot.iter().enumerate() {
            if wanted(shot) {
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

    /// An image of this scan: with its index and placement, and with the field of view of the encoded or the
    /// reconstructed matrix, whichever has these sizes (otherwise with voxels of the encoded matrix).
    ///
    /// # Errors
    /// The same as of [`Image::new`].
    pub fn image(&self, dims: [usize; 3], channels: usize, data: Vec<Complex<f32>>) -> Result<Image> {
        let mut image = Image::new(dims, channels, data)?;
        image.fov_mm = match dims {
            d if d == self.encoded_matrix => self.encoded_fov_mm,
            d if d == self.recon_matrix => self.recon_fov_mm,
            d => std::array::from_fn(|i| self.encoded_fov_mm[i] / self.encoded_matrix[i] as f32 * d[i] as f32),
        };
        (image.placement, image.index) = (self.placement, self.index);
        Ok(image)
    }

    /// Checks that all counts agree.
    pub fn check(&self) -> Result<()> {
        let samples = self.samples();
        let wrong = self.coordinates.len() != self.ndim
            || self.coordinates.iter().chain(&self.weights).any(|v| v.len() != samples)
            || self.times.len() != samples;
        if wrong || !(2..=3).contains(&self.ndim) {
            let ndim = self.ndim;
            bail!(SizeMismatch, "{samples} samples need as many times, weights, and coordinates along {ndim} axes");
        }
        if samples == 0 || self.coils == 0 || self.samples_per_shot.contains(&0) {
            bail!(InvalidSize, "a scan without samples, without coils, or with an empty shot");
        }
        if self.skipped_per_shot.len() != self.samples_per_shot.len() {
            bail!(SizeMismatch, "{} shots need as many numbers of skipped samples", self.samples_per_shot.len());
        }
        if checked_product(&[samples, self.coils], "the data")? != self.data.len() {
            let n = self.data.len();
            bail!(SizeMismatch, "{samples} samples of {} coils cannot be {n} numbers", self.coils);
        }
        Ok(())
    }
}
