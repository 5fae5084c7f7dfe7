//! Scans whose samples lie on the points of a Cartesian grid.

use super::scan_data::Scan;
use crate::base::error::{try_collect, try_vec, Result};

/// The box of grid points that the samples of a scan span.
struct CartesianBox {
    /// Smallest index along each axis.
    low: [isize; 3],
    size: Vec<usize>,
    points: usize,
}

impl CartesianBox {
    /// Returns the box, or `None` if samples lie between the points of the encoded matrix' grid.
    fn new(scan: &Scan) -> Option<CartesianBox> {
        let dims = &scan.encoded_matrix[..scan.ndim];
        let (mut low, mut high) = ([isize::MAX; 3], [isize::MIN; 3]);
        for (axis, &n) in dims.iter().enumerate() {
            for &k in &scan.coordinates[axis] {
                let step = k as f64 * n as f64;
                if (step - step.round()).abs() > 1e-3 {
                    return None;
                }
                low[axis] = low[axis].min(step.round() as isize);
                high[axis] = high[axis].max(step.round() as isize);
            }
        }
        let size: Vec<usize> = (0..dims.len()).map(|a| (high[a] - low[a] + 1) as usize).collect();
        let points = size.iter().try_fold(1usize, |p, &n| p.checked_mul(n))?;
        Some(CartesianBox { low, size, points })
    }

    /// Returns the position of sample `m` in the box, x fastest.
    fn position(&self, scan: &Scan, m: usize) -> usize {
        (0..scan.ndim).rev().fold(0, |position, axis| {
            let step = (scan.coordinates[axis][m] as f64 * scan.encoded_matrix[axis] as f64).round() as isize;
            position * self.size[axis] + (step - self.low[axis]) as usize
        })
    }
}

/// Returns the share of a Cartesian grid's points that was not measured, within the ellipsoid that the samples span:
/// a scan may leave out the corners on purpose. `None` if samples lie between the points.
pub fn missing_share(scan: &Scan) -> Result<Option<f64>> {
    let Some(grid) = CartesianBox::new(scan) else { return Ok(None) };
    let mut measured = try_vec(grid.points, false, "the points of the grid")?;
    (0..scan.samples()).for_each(|m| measured[grid.position(scan, m)] = true);
    let (mut inside, mut missing) = (0usize, 0usize);
    for (i, measured) in measured.iter().enumerate() {
        let mut rest = i;
        let squared_radius = |&n: &usize| {
            let offset = (rest % n) as f64 - (n - 1) as f64 / 2.0;
            rest /= n;
            (2.0 * offset / n as f64).powi(2)
        };
        if grid.size.iter().map(squared_radius).sum::<f64>() <= 1.0 {
            inside += 1;
            missing += usize::from(!measured);
        }
    }
    Ok(Some(missing as f64 / inside.max(1) as f64))
}

/// Returns the weights with which the adjoint is the inverse discrete Fourier transform. `None` unless the samples are
/// exactly the points of a box of the encoded matrix' grid. A point that was measured n times has the weight 1/n each
/// time.
///
/// # Errors
/// `OutOfHostMemory`.
pub fn complete_grid_weights(scan: &Scan) -> Result<Option<Vec<f64>>> {
    let samples = scan.samples();
    let voxels: f64 = scan.encoded_matrix[..scan.ndim].iter().map(|&n| n as f64).product();
    // Fewer samples cannot fill the box.
    let Some(grid) = CartesianBox::new(scan).filter(|grid| grid.points <= samples) else { return Ok(None) };
    let mut counts = try_vec(grid.points, 0u32, "the points of the grid")?;
    (0..samples).for_each(|m| counts[grid.position(scan, m)] += 1);
    if counts.contains(&0) {
        return Ok(None);
    }
    let weight = |m: usize| 1.0 / (voxels * counts[grid.position(scan, m)] as f64);
    try_collect(samples, "the weights", (0..samples).map(weight)).map(Some)
}
