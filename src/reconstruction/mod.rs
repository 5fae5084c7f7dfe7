//! Image reconstruction on top of the transforms: conjugate gradients and their priors, filtered backprojection,
//! density compensation, coil sensitivities, sampling gaps, whitening and compression of coils, image resizing, field
//! maps, differences of phases.

pub mod cg;
pub mod coil_matrix;
pub mod coils;
pub mod compression;
pub mod concomitant_phase;
pub mod coverage;
pub mod density;
pub(crate) mod discrepancy;
pub(crate) mod fbp;
pub mod field_map;
pub(crate) mod gridding_scale;
pub mod phase_difference;
pub mod prior;
pub mod resize;
pub(crate) mod spokes;
pub mod whitening;
