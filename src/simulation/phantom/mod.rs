//! Analytic phantoms: sums of ellipses or ellipsoids whose k-space is known in closed form.
//!
//! They simulate data on any trajectory without a discrete transform. A reconstruction is thus not tested against its
//! own model (the inverse crime: Guerquin-Kern et al. 2012, IEEE TMI 31:626).
//!
//! ```
//! use recon::phantom::{add_noise, CoilModel, Phantom};
//! use recon::trajectory::{SpokeOrder, Trajectory};
//! let (phantom, coils) = (Phantom::shepp_logan_2d(), CoilModel::ring(4, 2)?);
//! let trajectory = Trajectory::radial2d(32, 64, SpokeOrder::GoldenAngle)?;
//! let mut kspace = phantom.kspace(&[64, 64], &trajectory.axes(), Some(&coils), 0)?; // [samples, coils]
//! add_noise(&mut kspace, 20.0, 1)?;
//! let (truth, maps) = (phantom.image(&[64, 64], 4)?, coils.maps(&[64, 64])?); // [x, y], [x, y, coils]
//! # assert_eq!((kspace.len(), truth.len(), maps.len()), (32 * 64 * 4, 64 * 64, 64 * 64 * 4));
//! # Ok::<(), recon::Error>(())
//! ```
//!
//! Phantom coordinates span the field of view: [-1, 1] on an axis of n voxels is [-n/2, n/2] in voxels. The centre of
//! voxel r (an integer: index - floor(n / 2)) is at 2 r / n. k is in cycles per voxel.

mod boxes;
mod coils;
mod image;
mod kspace;
mod noise;
mod shapes;
mod shepp_logan;

pub use coils::CoilModel;
pub use noise::{add_noise, noise_deviation, uniform, white_noise};
pub use shapes::{Ellipsoid, Phantom};

#[cfg(test)]
mod tests;
