//! Images of phantoms by point sampling.

use super::shapes::{interval, to_unit_sphere, Phantom};
use crate::base::error::{bail, checked_product, try_collect, try_vec, Result};
use crate::base::results::check_results;

impl Phantom {
    /// Returns the image of `dims` voxels, x fastest.
    ///
    /// Each voxel is the mean density of supersample^ndim points spread evenly over it; with `supersample` 1, the
    /// density at its centre.
    ///
    /// # Errors
    /// - `InvalidSize` for a zero size.
    /// - `SizeMismatch` if `dims` does not have one size per dimension.
    /// - `SizeOverflow`, `OutOfHostMemory`.
    pub fn image(&self, dims: &[usize], supersample: usize) -> Result<Vec<f64>> {
        self.check_dims(dims)?;
        if supersample == 0 {
            bail!(InvalidSize, "the number of points per voxel and axis is 0: give 1 or more");
        }
        let fine: Vec<usize> = std::iter::once(supersample).chain(dims.iter().copied()).collect();
        checked_product(&[&fine[..], &vec![supersample; self.ndim - 1]].concat(), "a supersampled image")?;
        let (nx, ny) = (dims[0], dims[1]);
        let nz = dims.get(2).copied().unwrap_or(1);
        let points_z = if self.ndim == 3 { supersample } else { 1 };
        let share = 1.0 / (supersample * supersample * points_z) as f64;
        // Converts point i on an axis of n voxels to a phantom coordinate, and back.
        let step = |n: usize| 2.0 / (n as f64 * supersample as f64);
        let origin = |n: usize| (n / 2) as f64 * supersample as f64 + 0.5 * (supersample as f64 - 1.0);
        let coordinate = |i: usize, n: usize| step(n) * (i as f64 - origin(n));
        let index = |x: f64| x / step(nx) + origin(nx);

        let mut image = try_vec(checked_product(dims, "an image")?, 0.0, "the image of a phantom")?;
        let inverses = self.shapes.iter().map(|s| to_unit_sphere(s, self.ndim));
        let inverses = try_collect(self.shapes.len(), "the phantom", inverses)?;
        for (row, voxels) in image.chunks_exact_mut(nx).enumerate() {
            let (iy, iz) = (row % ny, row / ny);
            for point in 0..supersample * points_z {
                let y = coordinate(iy * supersample + point % supersample, ny);
                let z = if self.ndim == 3 { coordinate(iz * supersample + point / supersample, nz) } else { 0.0 };
                for (shape, m) in self.shapes.iter().zip(&inverses) {
                    let Some([from, to]) = interval(shape, m, y, z) else { continue };
                    let first = index(from).ceil().max(0.0) as usize;
                    let past = index(to).floor().min((nx * supersample) as f64 - 1.0) + 1.0;
                    let past = past.max(0.0) as usize;
                    if first >= past {
                        continue;
                    }
                    for (voxel, ix) in voxels[first / supersample..].iter_mut().zip(first / supersample..) {
                        let points = past.min((ix + 1) * supersample).saturating_sub(first.max(ix * supersample));
                        if points == 0 {
                            break;
                        }
                        *voxel += shape.density * (points as f64 * share);
                    }
                }
            }
        }
        check_results("voxel of the phantom", &image)?;
        Ok(image)
    }
}
