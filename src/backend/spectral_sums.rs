//! Sums of weights times the spectra of windows, from which the scale of gridding follows.

/// Name of the step in the message when memory runs out.
pub const SCALE: &str = "the scale of gridding";

/// A window along one axis, symmetric about its middle, and the sampling of its spectrum.
pub struct SpectralWindow {
    /// The window's values.
    pub h: Vec<f64>,
    /// Sum of h^2.
    pub energy: f64,
    /// Samples of the spectrum per cycle per voxel.
    pub steps: f64,
    /// Number of samples of the spectrum, at k = (i - 1) / `steps`.
    pub points: usize,
    /// Factor of the coordinate in distances from k = 0: the number of voxels; 0 along an axis of one voxel.
    pub distance_scale: f64,
}

impl SpectralWindow {
    /// Returns the position of the window's middle.
    pub fn middle(&self) -> f64 {
        0.5 * (self.h.len() as f64 - 1.0)
    }
}

/// Sums over the samples of positive weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpectralSums {
    /// Sum of the weight, relative to the largest weight, times the product over axes of |H(k)|^2 / sum h^2.
    pub sum: f64,
    /// Smallest square of the distance from k = 0; infinity without samples of positive weight.
    pub nearest: f64,
}
