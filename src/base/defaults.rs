//! The defaults of options: the one table for the Rust and C structures and the program, and through C for MATLAB and
//! the gadgets. benches/defaults.py prints the errors that they were chosen by: docs/benchmarks/defaults.md.

use super::options::{LambdaUnit, Window};

/// The gridding window.
pub const WINDOW: Window = Window::Minimax;
/// Relative l2 error of a transform against the exact sums. Without a prior conjugate gradients amplify it
/// (docs/method.md).
pub const TOLERANCE: f64 = 1e-5;
/// Maximum number of iterations of conjugate gradients. Without a prior more iterations fit noise and the errors of
/// coil maps. 12 are the fewest whose errors are within 2 % of the best over nine phantoms
/// (docs/benchmarks/defaults.md). Scans with little noise gain from more.
pub const ITERATIONS: usize = 12;
/// The relative residual at which conjugate gradients stop: 0 never does.
pub const RESIDUAL: f64 = 0.0;
/// The weight of the prior.
pub const LAMBDA: f64 = 0.0;
/// The unit of that weight.
pub const LAMBDA_UNIT: LambdaUnit = LambdaUnit::Relative;
/// The difference that counts as a border, as a fraction of the reference image's largest magnitude.
pub const EDGE: f64 = 0.1;
/// The width of the centre of k-space that coil maps are estimated from, in samples of a Cartesian scan. If k-space is
/// sampled without gaps over less than this, there is a warning.
pub const CALIBRATION: usize = 24;
/// The largest width in a plane by default, if k-space is sampled so far out without gaps. Maps from 48 samples gave
/// images with 10 % less error than maps from 24, in 96 and 48 spokes of an in-vivo brain.
pub const CALIBRATION_IN_A_PLANE: usize = 48;
/// Iterations of Pipe and Menon's density weights, at most.
pub const DENSITY_ITERATIONS: usize = 30;
/// The change of the weighted RMS of C w - 1 at which those iterations stop.
pub const DENSITY_TOLERANCE: f64 = 1e-3;
/// Field maps: the weight of differences between neighbours against that of a voxel of median signal. 0.1 to 0.3 have
/// the least errors at signal to noise ratios from 10 to 200, on phantoms (tests/field_map.rs) and on a measured map.
pub const FIELD_MAP_SMOOTHING: f64 = 0.2;
/// Field maps: signal below this part of the largest counts as none.
pub const FIELD_MAP_THRESHOLD: f64 = 0.1;
