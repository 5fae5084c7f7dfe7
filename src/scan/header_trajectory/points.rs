//! Points of k-space in cycles per voxel.

use crate::base::error::{bail, Result};
use crate::base::geometry::wrap_coordinate;
use crate::scan::header::EncodingSpace;

/// Returns the voxel sizes along x, y and z in units of that along x.
///
/// # Errors
/// `BadFile` if a field of view is missing and the matrix is not isotropic.
pub(super) fn voxel_ratios(space: &EncodingSpace, ndim: usize) -> Result<[f64; 3]> {
    let mut ratios = [1.0; 3];
    for axis in 1..ndim {
        let [fov, fov_x] = [space.fov_mm[axis], space.fov_mm[0]].map(f64::from);
        let [n, n_x] = [space.matrix[axis], space.matrix[0]];
        if fov > 0.0 && fov_x > 0.0 {
            let ratio = (fov / n as f64) / (fov_x / n_x as f64);
            // Fields of view in files are rounded.
            ratios[axis] = if (ratio - 1.0).abs() < 1e-5 { 1.0 } else { ratio };
        } else if n != n_x || fov != fov_x {
            bail!(
                BadFile,
                "the trajectory cannot be computed: the encoded field of view is {fov_x} mm along x and {fov} mm along \
                 {}: correct <fieldOfView_mm> in the XML header",
                ["x", "y", "z"][axis]
            );
        }
    }
    Ok(ratios)
}

/// Appends a point. `sample` names it in messages, `remedy` says which options change the scale.
///
/// # Errors
/// `CoordinateOutOfRange`.
pub(super) fn push(coordinates: &mut [Vec<f32>], point: &[f64], sample: usize, remedy: &str) -> Result<()> {
    for ((axis, &k), values) in point.iter().enumerate().zip(coordinates) {
        match wrap_coordinate(k as f32) {
            Some(k) => values.push(k),
            None => bail!(
                CoordinateOutOfRange,
                "sample {sample} of the trajectory from the header is outside k-space: k along {} is {k} cycles per \
                 voxel of the encoded matrix, outside [-0.5, 0.5]: {remedy}",
                ["x", "y", "z"][axis]
            ),
        }
    }
    Ok(())
}
