//! Options and report of the reconstruction of partial Fourier data.

use crate::base::defaults;

/// Method that replaces the unmeasured side of k-space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PartialFourierMethod {
    /// Homodyne detection (Noll, Nishimura and Macovski 1991): unmeasured data are replaced by the conjugates of the
    /// measured data, in one step.
    Homodyne,
    /// Projection onto convex sets (Haacke, Lindskog and Lin 1991): alternates between the phase of the image and the
    /// measured data.
    #[default]
    Pocs,
}

impl PartialFourierMethod {
    /// Returns the method's name for messages and reports.
    pub fn name(self) -> &'static str {
        match self {
            PartialFourierMethod::Homodyne => "homodyne",
            PartialFourierMethod::Pocs => "pocs",
        }
    }
}

/// Options of the reconstruction of partial Fourier data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PartialFourierOptions {
    /// The method.
    pub method: PartialFourierMethod,
    /// Maximum number of iterations for each image, at least 1. Homodyne detection has no iterations.
    pub iterations: usize,
    /// Relative change of an image, in [0, 1), at which its iterations end: the norm of the difference between
    /// consecutive images, divided by the norm of the image. 0: all iterations are done.
    pub tolerance: f64,
}

impl PartialFourierOptions {
    /// The defaults, which are also those of C and the program.
    pub const DEFAULT: Self = PartialFourierOptions {
        method: PartialFourierMethod::Pocs,
        iterations: defaults::PARTIAL_FOURIER_ITERATIONS,
        tolerance: defaults::PARTIAL_FOURIER_TOLERANCE,
    };
}

impl Default for PartialFourierOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Report of the reconstruction of partial Fourier data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PartialFourierReport {
    /// Axis with an unmeasured side: 0, 1 or 2.
    pub axis: usize,
    /// Measured extent below and above k = 0 along this axis, in samples of a Cartesian scan (units of 1/FOV).
    pub extent: [f64; 2],
    /// Largest number of iterations of an image; 0 for homodyne detection.
    pub iterations: usize,
    /// Largest relative change of an image in its last iteration; 0 for homodyne detection.
    pub change: f64,
    /// Norm of the difference between the measured data and the data of the images with the smooth phase, relative to
    /// the norm of the measured data: noise, and the error of the smooth phase.
    pub residual: f64,
}
