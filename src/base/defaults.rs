//! The default values of options: the one table for the Rust and C structures and the program, and, through C, for
//! MATLAB and the gadgets. benches/defaults.py prints the errors on which the choice is based:
//! docs/benchmarks/defaults.md.

use super::options::{LambdaUnit, Window};

/// The gridding window.
pub const WINDOW: Window = Window::Minimax;
/// Relative l2 error of a transform compared with the exact sums. Without a prior, conjugate gradients amplify this
/// error (docs/method.md).
pub const TOLERANCE: f64 = 1e-5;
/// Maximum number of iterations of conjugate gradients. Without a prior more iterations fit noise and the errors of
/// coil maps. 12 are the fewest whose errors are within 2 % of the best over nine phantoms
/// (docs/benchmarks/defaults.md). Scans with little noise gain from more.
pub const ITERATIONS: usize = 12;
/// The relative residual at which conjugate gradients stop; 0 disables this criterion.
pub const RESIDUAL: f64 = 0.0;
/// The weight of the prior.
pub const LAMBDA: f64 = 0.0;
/// The unit of that weight.
pub const LAMBDA_UNIT: LambdaUnit = LambdaUnit::Relative;
/// The difference that is treated as an edge, as a fraction of the reference image's largest magnitude.
pub const EDGE: f64 = 0.1;
/// Width of the central region of k-space from which coil maps are estimated, in samples of a Cartesian scan. A warning
/// is raised if k-space is sampled without gaps over a smaller width.
pub const CALIBRATION: usize = 24;
/// Maximum default width in a plane, if k-space is sampled without gaps up to this width. Maps from 48 samples gave
/// images with 10 % less error than maps from 24, in 96 and 48 spokes of an in-vivo brain.
pub const CALIBRATION_IN_A_PLANE: usize = 48;
/// Maximum number of iterations of Pipe and Menon's density weights.
pub const DENSITY_ITERATIONS: usize = 30;
/// The change of the weighted RMS of C w - 1 at which those iterations stop.
pub const DENSITY_TOLERANCE: f64 = 1e-3;
/// Field maps: the weight of differences between neighbours, relative to the weight of a voxel of median signal. Values
/// of 0.1 to 0.3 give the smallest errors at signal-to-noise ratios from 10 to 200, on phantoms (tests/field_map.rs)
/// and on a measured map.
pub const FIELD_MAP_SMOOTHING: f64 = 0.2;
/// Field maps: a signal below this fraction of the largest is treated as no signal.
pub const FIELD_MAP_THRESHOLD: f64 = 0.1;
/// Partial Fourier: maximum number of iterations of POCS. Phantoms of 64 to 256 voxels with 5/8 to 7/8 of the lines are
/// within 5 % of their final error after 8 to 10 iterations.
pub const PARTIAL_FOURIER_ITERATIONS: usize = 20;
/// Partial Fourier: the relative change of the image at which POCS ends, after 7 to 11 iterations.
pub const PARTIAL_FOURIER_TOLERANCE: f64 = 5e-4;
/// Maximum number of bytes of freed arrays that a plan keeps on a GPU for its next arrays.
pub const IDLE_PLAN_BYTES: usize = 1 << 30;
/// Maximum share of a GPU's memory that the library keeps for the next plan after plans are destroyed: one eighth. On
/// an H200 (141 GB), a second plan of 168 million samples in double precision then allocates nothing. With one
/// sixteenth it took 19.3 instead of 18.3 ms to create (9145ce4), and 122 instead of 100 from the host's memory.
pub const IDLE_DEVICE_SHARE: usize = 8;
