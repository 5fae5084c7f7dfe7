//! Interpolation: a tile's part of the grid is copied, and summed under the windows of the tile's samples.

use super::gridder::{Gridder, Work, CHUNK};
use super::sorting::Tile;
use super::taps::with_vectors;
use super::tiling::Layout;
use crate::backend::cpu::simd::{prefetch, Arith, Kernel, SimdReal, Vector};
use crate::backend::cpu::thread_pool::{Shared, Threads};
use num_complex::Complex;

impl<T: SimdReal> Gridder<T> {
    /// See [`crate::backend::Backend::interpolate`].
    pub fn interpolate(&self, threads: &Threads, grid: &[Complex<T>], values: &mut [Complex<T>]) {
        let arrays = self.arrays(values.len(), grid.len());
        let cells = grid.len() / arrays;
        let shared = Shared::new(values);
        let start = || {
            let mut work = self.work();
            // Cells beyond the reach of windows are read too, and multiplied by zero: they must be finite.
            work.cells.fill(Complex::default());
            work
        };
        threads.run_with(self.tiles.len(), start, |work, i| {
            let tile = &self.tiles[i];
            for array in 0..arrays {
                let buffer = &mut work.cells[array * self.buffer_len()..][..self.buffer_len()];
                let grid = &grid[array * cells..][..cells];
                self.rows(
                    tile,
                    |at| prefetch(grid.as_ptr().wrapping_add(at)),
                    |grid_at, buffer_at, len| {
                        buffer[buffer_at..buffer_at + len].copy_from_slice(&grid[grid_at..grid_at + len]);
                    },
                );
            }
            self.level.run(Interpolate { gridder: self, tile, values: &shared, arrays, work });
        });
    }
}

/// Sums up a tile's buffers under the windows of its samples.
struct Interpolate<'a, T> {
    gridder: &'a Gridder<T>,
    tile: &'a Tile,
    values: &'a Shared<'a, Complex<T>>,
    arrays: usize,
    work: &'a mut Work<T>,
}

impl<T: SimdReal> Kernel for Interpolate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arith>(self) {
        let g = self.gridder;
        let (samples, buffer) = (g.order.len(), g.buffer_len());
        let taps = self.work.taps.as_mut_ptr();
        let cells: *const T = self.work.cells.as_ptr().cast();
        assert!(self.work.cells.len() >= self.arrays * buffer);
        with_vectors!(g.layout.window_vectors, A, [1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16], N => {
            for first in self.tile.points.clone().step_by(CHUNK) {
                let last = (first + CHUNK).min(self.tile.points.end);
                let (points, order) = (&g.points[first..last], &g.order[first..last]);
                // SAFETY: there is room for CHUNK records.
                unsafe { g.write_taps::<A>(points, false, taps) };
                for array in 0..self.arrays {
                    for (i, (point, &m)) in points.iter().zip(order).enumerate() {
                        // SAFETY: the record has been written, sorting.rs placed the point inside the buffer, and every
                        // sample is one point of one tile.
                        unsafe {
                            let taps = taps.add(i * g.layout.record);
                            let cells = cells.add(2 * (array * buffer + (point.at + point.shift) as usize));
                            let sum = window_sum::<T, A, N>(g, taps, cells);
                            self.values.set(array * samples + m as usize, sum);
                        }
                    }
                }
            }
        })
    }
}

/// The sum of the cells from `first` on under one sample's window, `N` vectors wide.
///
/// # Safety
/// `taps` must be the sample's record, and its window must lie inside the buffer.
#[inline(always)]
unsafe fn window_sum<T: SimdReal, A: Arith, const N: usize>(
    g: &Gridder<T>,
    taps: *const T,
    first: *const T,
) -> Complex<T> {
    let lanes = T::V::<A>::LANES;
    let Layout { x_len, tap_vectors, .. } = g.layout;
    let [row, plane] = [2 * g.extent[0], 2 * g.extent[0] * g.extent[1]];
    let zero = T::V::<A>::splat(T::ZERO);
    // SAFETY: the caller promises the record at `taps`, and a window inside the buffer.
    unsafe {
        let y = taps.add(x_len);
        let z = y.add(tap_vectors * lanes);
        let of_plane = |first: *const T| {
            let mut sum = [zero; N];
            for jy in 0..g.taps[1] {
                let factor = T::V::<A>::splat(*y.add(jy));
                for (v, sum) in sum.iter_mut().enumerate() {
                    *sum = T::V::<A>::load(first.add(jy * row + v * lanes)).fma(factor, *sum);
                }
            }
            sum
        };
        let mut sum = [zero; N];
        if g.taps[2] == 1 {
            sum = of_plane(first);
        } else {
            for jz in 0..g.taps[2] {
                let factor = T::V::<A>::splat(*z.add(jz));
                let plane = of_plane(first.add(jz * plane));
                for (sum, plane) in sum.iter_mut().zip(plane) {
                    *sum = plane.fma(factor, *sum);
                }
            }
        }
        let mut total = zero;
        for (v, sum) in sum.iter().enumerate() {
            total = sum.fma(T::V::<A>::load(taps.add(v * lanes)), total);
        }
        total.sum_pairs()
    }
}
