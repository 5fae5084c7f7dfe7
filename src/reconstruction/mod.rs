//! Images from transforms: conjugate gradients and their priors, filtered backprojection, density compensation, coil
//! sensitivities, gaps in the sampling, whitening and compression of coils, image sizes. Field maps from images of
//! several echoes.

pub mod cg;
pub mod coil_matrix;
pub mod coils;
pub mod compression;
pub mod coverage;
pub mod density;
pub(crate) mod discrepancy;
pub(crate) mod fbp;
pub mod field_map;
pub(crate) mod gridding_scale;
pub mod prior;
pub mod resize;
pub(crate) mod spokes;
pub mod whitening;
