//! What the options are when they are not given, in one place.

use crate::options::{Combination, DensityKind, PriorKind};

/// Benchmarks: relative l2 error of a transform against the exact sums.
pub const TOLERANCE: f64 = 1e-4;
/// Conjugate gradients: the same with the default window. Without a prior iterations amplify errors of E^H d: with 1e-4 the
/// demonstration's image loses 0.4 dB, with 1e-5 nothing.
pub const CG_TOLERANCE: f64 = 1e-5;
/// Density weights, where the file has none and the samples are not a whole Cartesian grid.
pub const DENSITY: DensityKind = DensityKind::PipeMenon;
/// How coil images become one.
pub const COMBINE: Combination = Combination::Rss;
/// Conjugate gradients: at most so many iterations. Without a prior, undersampled coil data are best before noise and the
/// maps' errors are fitted: the in-vivo brain from 24 and 48 spokes has its least error at 12.
pub const ITERATIONS: usize = 12;
/// Conjugate gradients: relative residual to stop at; 0 never does.
pub const RESIDUAL: f64 = 0.0;
/// Conjugate gradients: weight of the prior, as a part of the mean diagonal of E^H W E.
pub const LAMBDA: f64 = 0.0;
/// Conjugate gradients: the prior.
pub const PRIOR: PriorKind = PriorKind::Identity;
/// Conjugate gradients: whether density weights go into the data term.
pub const WEIGHTED: bool = false;
/// The difference that counts as a border, as a part of the reference's maximum.
pub const EDGE: f64 = 0.1;
/// Central samples of k-space that coil maps are estimated from.
pub const CALIBRATION: usize = recon::coils::DEFAULT_CALIBRATION;
/// Timed runs of a benchmark.
pub const RUNS: usize = 7;
/// Outputs that a benchmark compares with the exact sums.
pub const CHECKED_OUTPUTS: usize = 500;
