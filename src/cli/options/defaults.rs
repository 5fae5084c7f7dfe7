//! Defaults of the program's options: the library's defaults, and a few of the program alone.

use super::choices::{
    BladePhaseKind, Combination, DensityKind, FilterKind, LambdaUnitKind, PartialFourierKind, PriorKind,
};
use recon::{BladePhase, LambdaUnit, PropellerOptions};

pub use recon::defaults::{EDGE, FIELD_MAP_SMOOTHING, FIELD_MAP_THRESHOLD, ITERATIONS, LAMBDA, RESIDUAL, TOLERANCE};

/// Density compensation if the file has no weights and the samples are not a complete Cartesian grid.
pub const DENSITY: DensityKind = DensityKind::PipeMenon;
/// Filter of backprojection.
pub const FILTER: FilterKind = FilterKind::RamLak;
/// Correction of the phase of PROPELLER blades.
pub const BLADE_PHASE: BladePhaseKind = match PropellerOptions::DEFAULT.phase {
    BladePhase::Smooth => BladePhaseKind::Smooth,
    BladePhase::Constant => BladePhaseKind::Constant,
    BladePhase::None => BladePhaseKind::None,
};
/// Method for k-space with a missing side.
pub const PARTIAL_FOURIER: PartialFourierKind = PartialFourierKind::None;
/// Combination of coil images.
pub const COMBINE: Combination = Combination::Rss;
/// Prior of conjugate gradients.
pub const PRIOR: PriorKind = PriorKind::Identity;
/// Unit of lambda.
pub const LAMBDA_UNIT: LambdaUnitKind = match recon::defaults::LAMBDA_UNIT {
    LambdaUnit::Relative => LambdaUnitKind::Relative,
    LambdaUnit::Absolute => LambdaUnitKind::Absolute,
};
/// Whether the data term of conjugate gradients has density weights.
pub const WEIGHTED: bool = false;
/// Number of timed runs of a benchmark.
pub const RUNS: usize = 7;
/// Number of outputs that a benchmark compares with exact sums.
pub const CHECKED_OUTPUTS: usize = 500;
