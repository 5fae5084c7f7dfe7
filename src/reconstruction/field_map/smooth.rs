//! Smoothing of maps: a weighted least-squares fit with a penalty on differences between neighbours.

use super::grid::{each_voxel, VoxelGrid, WHAT};
use crate::base::error::{try_vec, Result};
use crate::base::interrupt;
use crate::base::workers::{collect, each_chunk, fold, SharedSlice, Workers};
use std::ops::Range;

/// Residual of the smoothed map at which iterations stop, relative to the map.
const ACCURACY: f64 = 1e-8;
/// Maximum number of iterations, more than any map needs.
const MOST_ITERATIONS: usize = 10_000;
/// Number of voxels per axis up to which a grid is solved without a coarser one.
const SMALLEST_GRID: usize = 8;
/// Smoothing of the initial guess that fills voxels without signal, if `smoothing` is 0.
const FILLING: f64 = 0.01;

impl VoxelGrid<'_> {
    /// Returns the map that is close to the measured values, according to their weights, and smooth. If `smoothing` is
    /// 0, voxels with signal keep the measured values and the other voxels are filled.
    pub fn smoothed(&self, workers: &dyn Workers, measured: &[f64], smoothing: f64) -> Result<Vec<f64>> {
        let weighted = collect(workers, measured.len(), WHAT, |i| self.weights[i] * measured[i])?;
        let mut map = self.initial_map(workers, &weighted, if smoothing > 0.0 { smoothing } else { FILLING })?;
        let system = if smoothing > 0.0 {
            SmoothingSystem { grid: self, smoothing, hold: false }
        } else {
            let with_signal = map.iter_mut().zip(measured).zip(self.weights).filter(|(_, w)| **w > 0.0);
            with_signal.for_each(|((to, f), _)| *to = *f);
            SmoothingSystem { grid: self, smoothing: 1.0, hold: true }
        };
        system.solve(workers, &weighted, &mut map)?;
        Ok(map)
    }

    /// Returns the initial guess: the solution on a grid of half the size, itself started from a coarser grid.
    fn initial_map(&self, workers: &dyn Workers, weighted: &[f64], smoothing: f64) -> Result<Vec<f64>> {
        let dims = self.dims;
        if dims.iter().all(|&n| n <= SMALLEST_GRID) {
            let (sum, weight) = (weighted.iter().sum::<f64>(), self.weights.iter().sum::<f64>());
            return try_vec(weighted.len(), if weight > 0.0 { sum / weight } else { 0.0 }, WHAT);
        }
        let coarse_dims = dims.map(|n| if n > SMALLEST_GRID { n.div_ceil(2) } else { n });
        let block: [usize; 3] = std::array::from_fn(|a| if coarse_dims[a] < dims[a] { 2 } else { 1 });
        let block_sums = |values: &[f64]| {
            let sum_of_block = |j: usize| {
                let at = [j % coarse_dims[0], j / coarse_dims[0] % coarse_dims[1], j / coarse_dims[0] / coarse_dims[1]];
                let ends: [usize; 3] = std::array::from_fn(|a| dims[a].min((at[a] + 1) * block[a]));
                let mut sum = 0.0;
                for z in at[2] * block[2]..ends[2] {
                    for y in at[1] * block[1]..ends[1] {
                        let row = dims[0] * (y + dims[1] * z);
                        sum += values[row + at[0] * block[0]..row + ends[0]].iter().sum::<f64>();
                    }
                }
                sum
            };
            collect(workers, coarse_dims.iter().product(), WHAT, sum_of_block)
        };
        let (weights, coarse_weighted) = (block_sums(self.weights)?, block_sums(weighted)?);
        // A step of the coarse grid is two steps of the fine grid, for each fine voxel across it.
        let voxels_of_block: usize = block.iter().product();
        let smoothing = smoothing * voxels_of_block as f64 / 4.0;
        let grid = VoxelGrid { dims: coarse_dims, weights: &weights };
        let mut coarse = grid.initial_map(workers, &coarse_weighted, smoothing)?;
        SmoothingSystem { grid: &grid, smoothing, hold: false }.solve(workers, &coarse_weighted, &mut coarse)?;
        collect(workers, weighted.len(), WHAT, |i| {
            let at = [i % dims[0], i / dims[0] % dims[1], i / dims[0] / dims[1]];
            let [x, y, z]: [usize; 3] = std::array::from_fn(|a| at[a] / block[a]);
            coarse[x + coarse_dims[0] * (y + coarse_dims[1] * z)]
        })
    }
}

/// The equations of the smoothed map, (W + smoothing D^T D) map = W measured.
///
/// They have a solver of their own, because the solver of cg.rs has no preconditioner and its images are complex. Here
/// the weights vary by orders of magnitude, so that the diagonal is needed as a preconditioner, and the map is real.
struct SmoothingSystem<'a> {
    grid: &'a VoxelGrid<'a>,
    smoothing: f64,
    /// Whether voxels with signal keep their values.
    hold: bool,
}

/// Vectors of conjugate gradients, of the size of the map.
struct CgVectors {
    residual: Vec<f64>,
    direction: Vec<f64>,
    /// Product of the system with `direction`.
    product: Vec<f64>,
}

impl SmoothingSystem<'_> {
    /// Returns whether voxel `i` keeps its value.
    fn is_held(&self, i: usize) -> bool {
        self.hold && self.grid.weights[i] > 0.0
    }

    /// Returns the diagonal element of a voxel.
    fn diagonal(&self, i: usize, at: [usize; 3]) -> f64 {
        let on_axis = |a: usize| usize::from(at[a] > 0) + usize::from(at[a] + 1 < self.grid.dims[a]);
        let neighbours: usize = (0..3).map(on_axis).sum();
        self.grid.weights[i] + self.smoothing * neighbours as f64
    }

    /// Returns the product of a voxel's row with `x`.
    fn row(&self, x: &[f64], i: usize, at: [usize; 3]) -> f64 {
        let own = x[i];
        let mut differences = 0.0;
        let strides = self.grid.strides();
        for a in 0..3 {
            if at[a] > 0 {
                differences += own - x[i - strides[a]];
            }
            if at[a] + 1 < self.grid.dims[a] {
                differences += own - x[i + strides[a]];
            }
        }
        self.grid.weights[i] * own + self.smoothing * differences
    }

    /// Solves the equations by conjugate gradients, preconditioned by the diagonal, starting from `map`. The result has
    /// the same bits for any workers.
    fn solve(&self, workers: &dyn Workers, weighted: &[f64], map: &mut [f64]) -> Result<()> {
        let vector = || try_vec(map.len(), 0.0, WHAT);
        let mut vectors = CgVectors { residual: vector()?, direction: vector()?, product: vector()? };
        let [mut energy, size] = self.start(workers, weighted, map, &mut vectors);
        for _ in 0..MOST_ITERATIONS {
            interrupt::check(WHAT)?;
            if energy.is_nan() || energy <= ACCURACY * ACCURACY * size {
                break;
            }
            let curvature = self.multiply(workers, &mut vectors);
            if curvature <= 0.0 {
                break;
            }
            let new_energy = self.step(workers, energy / curvature, map, &mut vectors);
            self.update_direction(workers, new_energy / energy, &mut vectors);
            energy = new_energy;
        }
        Ok(())
    }

    /// Sets the residual of `map` and the first direction. Returns the preconditioned energies of the residual and of
    /// the map.
    fn start(&self, workers: &dyn Workers, weighted: &[f64], map: &[f64], vectors: &mut CgVectors) -> [f64; 2] {
        let (residual, direction) = (SharedSlice::new(&mut vectors.residual), SharedSlice::new(&mut vectors.direction));
        let of_part = |range: Range<usize>| {
            let mut sums = [0.0; 2];
            each_voxel(self.grid.dims, range, |i, at| {
                let diagonal = self.diagonal(i, at);
                sums[1] += diagonal * map[i] * map[i];
                if diagonal > 0.0 && !self.is_held(i) {
                    let r = weighted[i] - self.row(map, i, at);
                    sums[0] += r * r / diagonal;
                    // SAFETY: each voxel is in one range.
                    unsafe { (residual.set(i, r), direction.set(i, r / diagonal)) };
                }
            });
            sums
        };
        fold(workers, map.len(), [0.0; 2], of_part, |a, b| [a[0] + b[0], a[1] + b[1]])
    }

    /// Computes the product of the system with the direction. Returns the product's dot product with the direction.
    fn multiply(&self, workers: &dyn Workers, vectors: &mut CgVectors) -> f64 {
        let (direction, product) = (&vectors.direction, SharedSlice::new(&mut vectors.product));
        let of_part = |range: Range<usize>| {
            let mut sum = 0.0;
            each_voxel(self.grid.dims, range, |i, at| {
                if !self.is_held(i) {
                    let q = self.row(direction, i, at);
                    sum += q * direction[i];
                    // SAFETY: each voxel is in one range.
                    unsafe { product.set(i, q) };
                }
            });
            sum
        };
        fold(workers, direction.len(), 0.0, of_part, |a, b| a + b)
    }

    /// Moves the map along the direction by `length` and updates the residual. Returns the residual's new energy.
    fn step(&self, workers: &dyn Workers, length: f64, map: &mut [f64], vectors: &mut CgVectors) -> f64 {
        let CgVectors { residual, direction, product } = vectors;
        let len = map.len();
        let (map, residual) = (SharedSlice::new(map), SharedSlice::new(residual));
        let of_part = |range: Range<usize>| {
            let mut sum = 0.0;
            // SAFETY: ranges do not overlap.
            let (map, residual) =
                unsafe { (map.part(range.start, range.len()), residual.part(range.start, range.len())) };
            let start = range.start;
            each_voxel(self.grid.dims, range, |i, at| {
                map[i - start] += length * direction[i];
                let r = residual[i - start] - length * product[i];
                residual[i - start] = r;
                let diagonal = self.diagonal(i, at);
                sum += if diagonal > 0.0 { r * r / diagonal } else { 0.0 };
            });
            sum
        };
        fold(workers, len, 0.0, of_part, |a, b| a + b)
    }

    /// Sets the direction to the preconditioned residual plus `factor` times the previous direction.
    fn update_direction(&self, workers: &dyn Workers, factor: f64, vectors: &mut CgVectors) {
        let (residual, direction) = (&vectors.residual, SharedSlice::new(&mut vectors.direction));
        each_chunk(workers, residual.len(), |_, range| {
            // SAFETY: chunks do not overlap.
            let direction = unsafe { direction.part(range.start, range.len()) };
            let start = range.start;
            each_voxel(self.grid.dims, range, |i, at| {
                let diagonal = self.diagonal(i, at);
                let own = if diagonal > 0.0 { residual[i] / diagonal } else { 0.0 };
                direction[i - start] = own + factor * direction[i - start];
            });
        });
    }
}
