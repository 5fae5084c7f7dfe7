//! The defaults of the program's options: the library's, and the few that only the program has.

use crate::options::{BladePhaseKind, Combination, DensityKind, FilterKind, LambdaUnitKind, PriorKind};
use recon::{BladePhase, LambdaUnit, PropellerOptions};

pub use recon::defaults::{EDGE, FIELD_MAP_SMOOTHING, FIELD_MAP_THRESHOLD, ITERATIONS, LAMBDA, RESIDUAL, TOLERANCE};

/// Density weights, where the file has none and the samples are not a whole Cartesian grid.
pub const DENSITY: DensityKind = DensityKind::PipeMenon;
/// The filter of backprojection.
pub const FILTER: FilterKind = FilterKind::RamLak;
/// What is done about the phase of PROPELLER blades.
pub const BLADE_PHASE: BladePhaseKind = match PropellerOptions::DEFAULT.phase {
    BladePhase::Smooth => BladePhaseKind::Smooth,
    BladePhase::Constant => BladePhaseKind::Constant,
    BladePhase::None => BladePhaseKind::None,
};
/// The combination of coil images.
pub const COMBINE: Combination = Combination::Rss;
/// Conjugate gradients: the prior.
pub const PRIOR: PriorKind = PriorKind::Identity;
/// The unit of lambda.
pub const LAMBDA_UNIT: LambdaUnitKind = match recon::defaults::LAMBDA_UNIT {
    LambdaUnit::Relative => LambdaUnitKind::Relative,
    LambdaUnit::Absolute => LambdaUnitKind::Absolute,
};
/// Conjugate gradients: whether density weights go into the data term.
pub const WEIGHTED: bool = false;
/// Timed runs of a benchmark.
pub const RUNS: usize = 7;
/// Outputs that a benchmark compares with the exact sums.
pub const CHECKED_OUTPUTS: usize = 500;
