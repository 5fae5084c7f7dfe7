//! Phantoms cut into small boxes, for simulated scans with off-resonance.

use super::shapes::{interval, rotation, to_unit_sphere, Phantom};
use crate::base::error::{bail, checked_product, try_collect, try_vec, Result};

impl Phantom {
    /// Cuts each voxel of `dims` into `subdivision` boxes per axis and lists the boxes that are not empty, x fastest.
    ///
    /// Integrals over a box are exact along x, and sums over eight lines per axis otherwise.
    ///
    /// # Errors
    /// The errors of [`Phantom::image`]; `InvalidArgument` for a phantom that extends beyond the field of view.
    pub(crate) fn boxes(&self, dims: &[usize], subdivision: usize) -> Result<PhantomBoxes> {
        /// Number of lines per box along y, and along z.
        const LINES: usize = 8;

        self.check_dims(dims)?;
        if subdivision == 0 {
            bail!(InvalidSize, "the number of boxes per voxel and axis is 0: give 1 or more");
        }
        let mut fine = [1; 3];
        for (fine, &n) in fine.iter_mut().zip(dims) {
            *fine = checked_product(&[n, subdivision], "the boxes of a phantom")?;
        }
        checked_product(&fine, "the boxes of a phantom")?;
        self.check_inside(dims)?;
        // In units of a box. A phantom coordinate is 2 / n times the position.
        let step = fine.map(|n| 2.0 / n as f64);
        let first = fine.map(|n| -((n / 2) as f64));
        let inverses = self.shapes.iter().map(|s| to_unit_sphere(s, self.ndim));
        let inverses = try_collect(self.shapes.len(), "the phantom", inverses)?;
        let lines_z = if self.ndim == 3 { LINES } else { 1 };
        let share = 1.0 / (LINES * lines_z) as f64;
        let offset = |line: usize| (line as f64 + 0.5) / LINES as f64 - 0.5;
        // Integral of the density over each box of a row, and its first moments about the centre of the box.
        let mut row = try_vec(fine[0], [0.0; 4], "the boxes of a phantom")?;
        let mut boxes = PhantomBoxes { positions: vec![Vec::new(); self.ndim], amounts: Vec::new() };
        for (iz, iy) in (0..fine[2]).flat_map(|iz| (0..fine[1]).map(move |iy| (iz, iy))) {
            row.fill([0.0; 4]);
            for line in 0..LINES * lines_z {
                let dy = offset(line % LINES);
                let dz = if self.ndim == 3 { offset(line / LINES) } else { 0.0 };
                let y = step[1] * (first[1] + iy as f64 + dy);
                let z = if self.ndim == 3 { step[2] * (first[2] + iz as f64 + dz) } else { 0.0 };
                for (shape, m) in self.shapes.iter().zip(&inverses) {
                    let Some(ends) = interval(shape, m, y, z) else { continue };
                    // In boxes, from the left side of the first box.
                    let [from, to] = ends.map(|x| (x / step[0] - first[0] + 0.5).clamp(0.0, fine[0] as f64));
                    let past = (to.ceil() as usize).min(fine[0]);
                    for (ix, sums) in row.iter_mut().enumerate().take(past).skip(from as usize) {
                        let (left, right) = (from.max(ix as f64), to.min((ix + 1) as f64));
                        let amount = shape.density * share * (right - left);
                        let dx = 0.5 * (left + right) - (ix as f64 + 0.5);
                        for (sum, place) in sums.iter_mut().zip([1.0, dx, dy, dz]) {
                            *sum += amount * place;
                        }
                    }
                }
            }
            for (ix, [amount, moments @ ..]) in row.iter().enumerate() {
                // Densities that cancel leave a rounding error.
                if amount.abs() < 1e-9 {
                    continue;
                }
                let place = [ix, iy, iz];
                for (axis, positions) in boxes.positions.iter_mut().enumerate() {
                    // Boxes with densities of both signs may have their centre of mass outside.
                    let centre = (moments[axis] / amount).clamp(-0.5, 0.5);
                    try_push(positions, (first[axis] + place[axis] as f64 + centre) / subdivision as f64)?;
                }
                try_push(&mut boxes.amounts, amount / (subdivision as f64).powi(self.ndim as i32))?;
            }
        }
        Ok(boxes)
    }

    /// Returns an error if the phantom extends beyond the voxels.
    fn check_inside(&self, dims: &[usize]) -> Result<()> {
        for (i, shape) in self.shapes.iter().enumerate() {
            let r = rotation(shape.angles);
            for (axis, &n) in dims.iter().enumerate() {
                let reach = (0..self.ndim).map(|j| (shape.semi_axes[j] * r[axis][j]).powi(2)).sum::<f64>().sqrt();
                let ends = [shape.centre[axis] - reach, shape.centre[axis] + reach].map(|x| 0.5 * x * n as f64);
                let sides = [-((n / 2) as f64) - 0.5, n.div_ceil(2) as f64 - 0.5];
                if ends[0] < sides[0] || ends[1] > sides[1] {
                    bail!(
                        InvalidArgument,
                        "shape {i} extends from {:.3} to {:.3} voxels on axis {axis}, but the maps cover {} to {}: \
                         give a phantom within the field of view",
                        ends[0],
                        ends[1],
                        sides[0],
                        sides[1]
                    );
                }
            }
        }
        Ok(())
    }
}

/// Non-empty boxes of a phantom.
pub(crate) struct PhantomBoxes {
    /// Centre of mass of each box in voxels from the origin, one list per axis.
    pub positions: Vec<Vec<f64>>,
    /// Density times volume of each box, in voxels.
    pub amounts: Vec<f64>,
}

/// Appends a value; returns an error if memory runs out.
fn try_push(list: &mut Vec<f64>, value: f64) -> Result<()> {
    if list.len() == list.capacity() {
        let more = list.len().max(1 << 12);
        if list.try_reserve(more).is_err() {
            bail!(OutOfHostMemory, "could not allocate memory for {more} more boxes of a phantom: give fewer voxels");
        }
    }
    list.push(value);
    Ok(())
}
