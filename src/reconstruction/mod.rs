//! Images from transforms: conjugate gradients and their priors, filtered backprojection, density compensation, coil
//! sensitivities, image sizes.

pub mod cg;
pub mod coils;
pub mod density;
pub(crate) mod fbp;
pub(crate) mod gridding_scale;
pub mod prior;
pub mod resize;
pub(crate) mod spokes;
