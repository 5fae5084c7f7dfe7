//! Interpolation: copies a tile's cells from the grid, and sums them under the windows of the tile's samples.

use super::gridder::{Gridder, ThreadBuffers};
use super::schedule::{TilePart, TilePlacement};
use super::sorting::{batches, unpack_key};
use super::taps::{with_vectors, Taps, CHUNK};
use super::tiling::{WindowStrides, PREFETCHED_ROWS};
use crate::backend::cpu::simd::{prefetch, Arith, Kernel, SimdReal, Vector};
use crate::backend::cpu::thread_pool::Threads;
use crate::base::workers::SharedSlice;
use num_complex::Complex;

impl<T: SimdReal> Gridder<T> {
    /// Implements [`crate::backend::Backend::interpolate`].
    pub fn interpolate(&self, threads: &Threads, grid: &[Complex<T>], values: &mut [Complex<T>]) {
        let arrays = self.arrays(values.len(), grid.len());
        let shared = SharedSlice::new(values);
        let parts = &self.schedule().parts;
        let start = || {
            let mut work = self.work();
            // Cells outside of all windows are also read, and multiplied by zero: they must be finite.
            work.cells.fill(Complex::default());
            work
        };
        threads.run_with(parts.len(), start, |work, i| {
            let part = &parts[i];
            if !part.points.is_empty() {
                self.level.run_rows(InterpolationKernel { gridder: self, part, grid, values: &shared, arrays, work });
            }
        });
    }
}

/// The interpolation of a part: copies the tile's cells from the grids, and sums them under the windows of the part's
/// samples.
struct InterpolationKernel<'a, T> {
    gridder: &'a Gridder<T>,
    part: &'a TilePart,
    grid: &'a [Complex<T>],
    values: &'a SharedSlice<'a, Complex<T>>,
    arrays: usize,
    work: &'a mut ThreadBuffers<T>,
}

impl<T: SimdReal> Kernel for InterpolationKernel<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arith>(mut self) {
        let g = self.gridder;
        let (samples, buffer, layout) = (g.count(), g.buffer_len(), g.layout());
        self.copy_tile();
        assert!(self.work.cells.len() >= self.arrays * buffer);
        let cells: *const T = self.work.cells.as_ptr().cast();
        let [row, rows, _] = g.tiling.extent;
        let window = g.tiling.window(row, rows);
        with_vectors!(layout.window_vectors, A, [1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16], N => {
            for batch in batches(&self.part.points) {
                for first in batch.clone().step_by(CHUNK) {
                    let count = CHUNK.min(batch.end - first);
                    let taps = g.taps(first, count, false, &mut self.work.taps);
                    for array in 0..self.arrays {
                        let sums = &mut self.work.values[array * batch.len()..][..batch.len()];
                        for (i, &key) in g.samples.keys[first..first + count].iter().enumerate() {
                            let (cell, index) = unpack_key(key);
                            // SAFETY: the taps have been written, and sorting.rs placed the sample inside the buffer.
                            let sum = unsafe {
                                let cells = cells.add(2 * (array * buffer + cell as usize));
                                window_sum::<T, A, N>(window, taps.from(i, layout.x_len), cells)
                            };
                            sums[index] = sum;
                        }
                    }
                }
                // The caller's order is used because samples mostly follow one another in it.
                for (array, sums) in self.work.values.chunks_exact(batch.len()).take(self.arrays).enumerate() {
                    for (&m, sum) in g.samples.order[batch.clone()].iter().zip(sums) {
                        // SAFETY: every sample belongs to one batch of one part.
                        unsafe { self.values.set(array * samples + m as usize, *sum) };
                    }
                }
            }
        })
    }
}

impl<T: SimdReal> InterpolationKernel<'_, T> {
    /// Copies the cells that the windows of a tile's samples reach.
    #[inline(always)]
    fn copy_tile(&mut self) {
        let g = self.gridder;
        let tiling = &g.tiling;
        let [gx, gy, gz] = tiling.size;
        let [row, rows, _] = tiling.extent;
        let placement = TilePlacement::new(tiling, self.part);
        let origin = placement.origin;
        let [width, height, depth] = placement.regions.map(|bounds| bounds[3]);
        for array in 0..self.arrays {
            let buffer = &mut self.work.cells[array * g.buffer_len()..][..g.buffer_len()];
            let grid = &self.grid[array * gx * gy * gz..][..gx * gy * gz];
            for z in 0..depth {
                for y in 0..height {
                    let (from, ahead) = (placement.row(z, y), placement.row(z, y + PREFETCHED_ROWS));
                    (0..width)
                        .step_by(8)
                        .for_each(|x| prefetch(grid.as_ptr().wrapping_add(ahead + (origin[0] + x) % gx)));
                    let to = &mut buffer[(z * rows + y) * row..][..width];
                    let first_len = width.min(gx - origin[0]);
                    to[..first_len].copy_from_slice(&grid[from + origin[0]..][..first_len]);
                    to[first_len..].copy_from_slice(&grid[from..][..width - first_len]);
                }
            }
        }
    }
}

/// Returns the sum of the cells from `first` on under one sample's window, `N` vectors wide.
///
/// # Safety
/// `taps` must be the sample's taps, and its window must be inside the buffer.
#[inline(always)]
unsafe fn window_sum<T: SimdReal, A: Arith, const N: usize>(
    w: WindowStrides,
    taps: Taps<T>,
    first: *const T,
) -> Complex<T> {
    let lanes = T::V::<A>::LANES;
    let zero = T::V::<A>::splat(T::ZERO);
    // SAFETY: the caller promises the taps, and a window inside the buffer.
    unsafe {
        let sum_plane = |first: *const T| {
            let mut sum = [zero; N];
            for jy in 0..w.height {
                let factor = T::V::<A>::splat(*taps.y.add(jy * CHUNK));
                for (v, sum) in sum.iter_mut().enumerate() {
                    *sum = T::V::<A>::load(first.add(jy * w.row + v * lanes)).fma(factor, *sum);
                }
            }
            sum
        };
        let mut sum = [zero; N];
        if w.depth == 1 {
            sum = sum_plane(first);
        } else {
            for jz in 0..w.depth {
                let factor = T::V::<A>::splat(*taps.z.add(jz * CHUNK));
                let plane = sum_plane(first.add(jz * w.plane));
                for (sum, plane) in sum.iter_mut().zip(plane) {
                    *sum = plane.fma(factor, *sum);
                }
            }
        }
        let mut total = zero;
        for (v, sum) in sum.iter().enumerate() {
            total = sum.fma(T::V::<A>::load(taps.x.add(v * lanes)), total);
        }
        total.sum_pairs()
    }
}
