//! k-space of phantoms with off-resonance and decay, by direct sums over small boxes. No model of voxels, segments or
//! gridding is involved, so that a reconstruction is not tested against its own approximations.
//!
//! This file is not in src/simulation because it needs plans, which are in a layer above the phantoms.
//!
//! ```
//! use recon::phantom::Phantom;
//! use recon::simulated_scan::{phantom_kspace, subdivision};
//! use recon::{Geometry, Options, Trajectory};
//! let spiral = Trajectory::spiral(2, 300, 4.0, 1.0)?;
//! let times: Vec<f64> = (0..600).map(|m| 1e-5 * (m % 300) as f64).collect();
//! let field: Vec<f64> = (0..16 * 16).map(|i| 10.0 * (i % 16) as f64).collect(); // Hz
//! let geometry = Geometry::new(&[16, 16], &spiral.axes()).field_map(&field, &times);
//! let phantom = Phantom::shepp_logan_2d();
//! let kspace = phantom_kspace(&phantom, &geometry, None, subdivision(2), &Options::default())?;
//! # assert_eq!(kspace.len(), 600);
//! # Ok::<(), recon::Error>(())
//! ```

use crate::base::error::{bail, try_collect, try_vec, Result};
use crate::base::geometry::{in_range, Geometry, VoxelBasis};
use crate::base::options::{Method, Options};
use crate::plan::Plan;
use crate::simulation::phantom::{CoilModel, Phantom};
use num_complex::Complex;

/// Returns the recommended number of boxes per voxel and axis: 4 in 2D, 2 in 3D. See [`phantom_kspace`].
pub fn subdivision(ndim: usize) -> usize {
    match ndim {
        2 => 4,
        _ => 2,
    }
}

/// Returns the k-space of a phantom with the off-resonance and decay of a geometry, [samples, coils].
///
/// It is the integral of density times sensitivity times exp(-i 2 pi (k.r + f(r) t) - R(r) t). The function uses dims,
/// coordinates, `field_map`, `decay_map` and `times` of the geometry. Without a map, the result is that of
/// [`Phantom::kspace`].
///
/// With a map, each voxel is cut into `subdivision` boxes per axis. Each box has its mean density, as a box (by sincs)
/// around its centre of mass. There, maps are interpolated linearly between voxels (they are constant beyond the
/// outermost voxels), and coil sensitivities are those of the model. The sums over the boxes are direct
/// ([`Method::Exact`]), in double precision, with the device and threads of `options`. The computing time is
/// proportional to samples times boxes.
///
/// Two things are approximate: the density's shape in boxes at its edges, and the change of maps within a box. The
/// relative l2 error is proportional to 1 / `subdivision`^2. For the Shepp-Logan head it is:
///
/// | voxels | boxes per voxel and axis | error |
/// | --- | --- | --- |
/// | 32 x 32 | 2, 4, 8 | 3e-3, 3e-4, 6e-5 |
/// | 16 x 16 x 16 | 2, 4 | 6e-4, 9e-5 |
///
/// # Errors
/// - The errors of [`Phantom::kspace`] and of a [`Plan`].
/// - `InvalidSize` for a `subdivision` of 0.
/// - `InvalidArgument` for a phantom that extends beyond the maps.
/// - `Unsupported` for a list of voxels.
/// - `CoordinateOutOfRange`.
pub fn phantom_kspace(
    phantom: &Phantom,
    geometry: &Geometry<'_, f64>,
    coils: Option<&CoilModel>,
    subdivision: usize,
    options: &Options,
) -> Result<Vec<Complex<f64>>> {
    let dims = &geometry.dims;
    geometry.check_off_resonance(geometry.voxel_count(), geometry.samples())?;
    if geometry.off_resonance().is_none() {
        return phantom.kspace(dims, &geometry.coordinates, coils, options.threads);
    }
    if geometry.voxels.is_some() {
        bail!(Unsupported, "maps of a list of voxels have no neighbours to interpolate between: give maps of the grid");
    }
    // Checks that all map values are finite.
    geometry.band()?;
    if let Some(coils) = coils.filter(|coils| coils.ndim() != phantom.ndim()) {
        bail!(SizeMismatch, "the coils are {}D and the phantom {}D: make them equal", coils.ndim(), phantom.ndim());
    }
    let boxes = phantom.boxes(dims, subdivision)?;
    let zero = Complex::new(0.0, 0.0);
    let mut kspace = try_vec(geometry.samples() * coils.map_or(1, |c| c.coils()), zero, "the k-space of a phantom")?;
    if boxes.amounts.is_empty() {
        return Ok(kspace);
    }
    // In units of a box, the basis is one box, and k is smaller by the factor `fine`.
    let fine = subdivision as f64;
    let mut coordinates = Vec::new();
    for (axis, k) in geometry.coordinates.iter().enumerate() {
        if let Some(m) = k.iter().position(|&k| !in_range(k)) {
            bail!(CoordinateOutOfRange, "coordinate of sample {m} on axis {axis} is {}, outside [-0.5, 0.5]", k[m]);
        }
        coordinates.push(try_collect(k.len(), "coordinates", k.iter().map(|k| k / fine))?);
    }
    let slices: Vec<&[f64]> = coordinates.iter().map(|k| &k[..]).collect();
    let interpolated = |map: &[f64]| interpolate(map, dims, &boxes.positions);
    let field_map = geometry.field_map.map(interpolated).transpose()?;
    let decay_map = geometry.decay_map.map(interpolated).transpose()?;
    let coil_maps = coils.map(|coils| coils.at(dims, &boxes.positions)).transpose()?;
    let scaled = |r: &Vec<f64>| try_collect(r.len(), "the boxes of a phantom", r.iter().map(|r| r * fine));
    let positions = boxes.positions.iter().map(scaled).collect::<Result<Vec<_>>>()?;
    let mut fine_geometry = Geometry::new(dims, &slices).coils(coils.map_or(1, |c| c.coils()));
    fine_geometry.voxels = Some(positions.iter().map(|r| &r[..]).collect());
    fine_geometry.basis = VoxelBasis::Box;
    fine_geometry.coil_maps = coil_maps.as_deref();
    (fine_geometry.field_map, fine_geometry.decay_map) = (field_map.as_deref(), decay_map.as_deref());
    fine_geometry.times = geometry.times;
    let plan = Plan::new(&fine_geometry, &Options { method: Method::Exact, ..options.clone() })?;
    let amounts = boxes.amounts.iter().map(|&amount| Complex::new(amount, 0.0));
    let amounts = try_collect(boxes.amounts.len(), "the boxes of a phantom", amounts)?;
    plan.forward(&amounts, &mut kspace[..])?;
    Ok(kspace)
}

/// Returns a map's values between voxels, at positions in voxels from the origin, one list per axis.
fn interpolate(map: &[f64], dims: &[usize], positions: &[Vec<f64>]) -> Result<Vec<f64>> {
    let at = |i: usize| {
        let (mut corners, mut stride) = ([0.0; 8], [0; 3]);
        // Two neighbours on each axis, and the share of the second.
        let mut neighbours = [([0, 0], 0.0); 3];
        let mut next_stride = 1;
        for (axis, (&n, positions)) in dims.iter().zip(positions).enumerate() {
            let position = (positions[i] + (n / 2) as f64).clamp(0.0, (n - 1) as f64);
            let left = position as usize;
            neighbours[axis] = ([left, (left + 1).min(n - 1)], position - left as f64);
            stride[axis] = next_stride;
            next_stride *= n;
        }
        for (corner, value) in corners.iter_mut().enumerate().take(1 << dims.len()) {
            let (mut voxel, mut share) = (0, 1.0);
            for axis in 0..dims.len() {
                let ([left, right], part) = neighbours[axis];
                let second = corner >> axis & 1 == 1;
                voxel += stride[axis] * if second { right } else { left };
                share *= if second { part } else { 1.0 - part };
            }
            *value = share * map[voxel];
        }
        corners.iter().sum()
    };
    let count = positions[0].len();
    try_collect(count, "a map between voxels", (0..count).map(at))
}
