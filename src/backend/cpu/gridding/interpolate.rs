//! Interpolation: copies a tile's cells from the grid, and sums them under the windows of the tile's samples.

use super::gridder::{Gridder, ThreadBuffers};
use super::keys::unpack_key;
use super::schedule::{TilePart, TilePlacement};
use super::sorting::{batches, numbered_batches};
use super::sparse_tiles::WindowInterpolationKernel;
use super::taps::{with_vectors, Taps, CHUNK};
use super::tiling::{WindowStrides, PREFETCHED_ROWS};
use super::windows::window_sum;
use crate::backend::cpu::simd::{prefetch, Arith, Kernel, SimdReal, Vector};
use crate::backend::threads::task_order::nth_in_lanes;
use crate::backend::threads::Threads;
use crate::base::workers::SharedSlice;
use num_complex::Complex;
use std::ops::Range;

/// Maximum number of tasks of a part in 2D, so that threads end at about the same time. Each copies the cells of the
/// tile, which takes too long in 3D.
const SHARES_2D: usize = 4;

impl<T: SimdReal> Gridder<T> {
    /// Implements [`crate::backend::Backend::interpolate`].
    pub fn interpolate(&self, threads: &Threads, grid: &[Complex<T>], values: &mut [Complex<T>]) {
        let arrays = self.arrays(values.len(), grid.len());
        let shared = SharedSlice::new(values);
        let parts = &self.schedule().parts;
        let start = || {
            let mut work = self.work();
            // Cells behind a window are also read, and multiplied by zero: they must be finite. Cells of the grid are,
            // in the columns that `mark_columns` of sorting.rs marks.
            work.cells.fill(Complex::default());
            work
        };
        let shares = if self.tiling.taps[2] > 1 { 1 } else { SHARES_2D };
        // The samples of one tile are in the order of `values`. The values of several tiles alternate, and threads on
        // different tiles write the same cache lines: four tiles took 1.2 times as long.
        let lanes = if self.tiling.counts() == [1; 3] { threads.count() } else { 1 };
        let tasks = shares * parts.len();
        threads.run_with(tasks, start, |work, i| {
            let i = nth_in_lanes(i, tasks, lanes);
            let (part, share) = (&parts[i / shares], i % shares);
            let batches = batches(&part.points).len();
            let batches = share * batches / shares..(share + 1) * batches / shares;
            if !batches.is_empty() {
                let values = &shared;
                if part.is_interpolated_from_grid(&self.tiling) {
                    let kernel = WindowInterpolationKernel { gridder: self, part, batches, grid, values, arrays, work };
                    self.level.run_rows(kernel);
                } else {
                    let kernel = InterpolationKernel { gridder: self, part, batches, grid, values, arrays, work };
                    self.level.run_rows(kernel);
                }
            }
        });
    }
}

/// The interpolation of some batches of a part: copies the tile's cells from the grids, and sums them under the windows
/// of the samples.
struct InterpolationKernel<'a, T> {
    gridder: &'a Gridder<T>,
    part: &'a TilePart,
    batches: Range<usize>,
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
        let (buffer, layout) = (g.buffer_len(), g.layout());
        self.copy_tile();
        assert!(self.work.cells.len() >= self.arrays * buffer);
        let cells: *const T = self.work.cells.as_ptr().cast();
        let [row, rows, _] = g.tiling.extent;
        let window = g.tiling.window(row, rows);
        // The first condition is known to the compiler, which then makes no copies for single precision.
        if size_of::<T>() == size_of::<f64>() && g.tiling.shares_rows::<T>() {
            with_vectors!(layout.row_vectors, A, [2 3 4 5 6 7 8 9 10 11 12 13 14 15 16], N => {
                for batch in self.batches() {
                    for first in batch.clone().step_by(CHUNK) {
                        let count = CHUNK.min(batch.end - first);
                        // SAFETY: sorting.rs placed the samples inside the buffer.
                        unsafe { self.sum_columns::<A, N>(batch.len(), first, count) };
                    }
                    self.write_sums(batch);
                }
            });
            return;
        }
        with_vectors!(layout.window_vectors, A, [1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16], N => {
            for batch in self.batches() {
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
                                window_sum::<T, A, N>(window, taps.from(i, layout.x_len), |y, z| {
                                    cells.add(z * window.plane + y * window.row)
                                })
                            };
                            sums[index] = sum;
                        }
                    }
                }
                self.write_sums(batch);
            }
        })
    }
}

impl<T: SimdReal> InterpolationKernel<'_, T> {
    /// Returns the samples of each batch.
    fn batches(&self) -> impl Iterator<Item = Range<usize>> {
        numbered_batches(&self.part.points, self.batches.clone())
    }

    /// Writes the sums of a batch. The caller's order is used because samples mostly follow one another in it.
    #[inline(always)]
    fn write_sums(&self, batch: Range<usize>) {
        let g = self.gridder;
        for (array, sums) in self.work.values.chunks_exact(batch.len()).take(self.arrays).enumerate() {
            for (&m, sum) in g.samples.order[batch.clone()].iter().zip(sums) {
                // SAFETY: every sample belongs to one batch of one part.
                unsafe { self.values.set(array * g.count() + m as usize, *sum) };
            }
        }
    }

    /// Sums the windows of `count` samples from `first` on, in a batch of `batch` samples, by columns: over y and z for
    /// every cell along x, then over x. Rows are loaded in whole vectors of the tile, so that no load crosses a cache
    /// line, and samples whose windows start in the same vector share the loads. The order of every sum is that of
    /// [`window_sum`].
    ///
    /// # Safety
    /// The windows must be inside the buffer.
    #[inline(always)]
    unsafe fn sum_columns<A: Arith, const N: usize>(&mut self, batch: usize, first: usize, count: usize) {
        let g = self.gridder;
        let (layout, lanes) = (g.layout(), T::V::<A>::LANES);
        let [row, rows, _] = g.tiling.extent;
        let window = g.tiling.window(row, rows);
        let taps = g.taps(first, count, false, &mut self.work.taps);
        let keys = &g.samples.keys[first..first + count];
        let record = layout.columns_len();
        assert!(self.work.columns.len() >= CHUNK * record && record == (N + 1) * lanes);
        let columns = self.work.columns.as_mut_ptr();
        let vector_start = |key: u32| unpack_key(key).0 as usize & !(layout.cells - 1);
        // More sums do not fit in the registers.
        let pairs = 2 * N <= 3 * lanes;
        for array in 0..self.arrays {
            let cells: *const T = self.work.cells[array * g.buffer_len()..].as_ptr().cast();
            let mut i = 0;
            while i < count {
                let at = vector_start(keys[i]);
                let together = if pairs && i + 1 < count && vector_start(keys[i + 1]) == at { 2 } else { 1 };
                // SAFETY: the taps have been written, `columns` has a record for each sample, and the caller promises
                // windows inside the buffer, whose rows are whole vectors.
                unsafe {
                    let (taps, to, from) = (taps.from(i, layout.x_len), columns.add(i * record), cells.add(2 * at));
                    match together {
                        2 => column_sums::<T, A, N, 2>(window, taps, from, to),
                        _ => column_sums::<T, A, N, 1>(window, taps, from, to),
                    }
                }
                i += together;
            }
            let sums = &mut self.work.values[array * batch..][..batch];
            for (i, &key) in keys.iter().enumerate() {
                let (cell, index) = unpack_key(key);
                let shift = 2 * (cell as usize & (layout.cells - 1));
                // SAFETY: the taps and the records have been written. A record has a vector of zeros behind its sums,
                // and the shift is less than a vector.
                sums[index] = unsafe {
                    let (columns, x) = (columns.add(i * record + shift), taps.from(i, layout.x_len).x);
                    let mut total = T::V::<A>::splat(T::ZERO);
                    for v in 0..layout.window_vectors {
                        total = T::V::<A>::load(columns.add(v * lanes)).fma(T::V::<A>::load(x.add(v * lanes)), total);
                    }
                    total.sum_pairs()
                };
            }
        }
    }

    /// Copies the cells that the windows of a tile's samples reach.
    #[inline(always)]
    fn copy_tile(&mut self) {
        let g = self.gridder;
        let tiling = &g.tiling;
        let [gx, gy, gz] = tiling.size;
        let [row, rows, _] = tiling.extent;
        let placement = TilePlacement::new(tiling, &self.gridder.schedule().tiles[self.part.tile]);
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
                    // The previous tile may be a cell longer, and its last column may not be finite.
                    let (to, behind) = buffer[(z * rows + y) * row..][..row].split_at_mut(width);
                    behind[0] = Complex::default();
                    let first_len = width.min(gx - origin[0]);
                    to[..first_len].copy_from_slice(&grid[from + origin[0]..][..first_len]);
                    to[first_len..].copy_from_slice(&grid[from..][..width - first_len]);
                }
            }
        }
    }
}

/// Sums the cells from `first` on under the windows of `S` samples over y and z, in rows of `N` vectors. Writes the
/// sums of every sample to its record, from `to` on.
///
/// # Safety
/// `taps` must be the samples' taps, their windows must be inside the buffer, and `S` records writable.
#[inline(always)]
unsafe fn column_sums<T: SimdReal, A: Arith, const N: usize, const S: usize>(
    w: WindowStrides,
    taps: Taps<T>,
    first: *const T,
    to: *mut T,
) {
    let lanes = T::V::<A>::LANES;
    let mut sums = [[T::V::<A>::splat(T::ZERO); N]; S];
    // SAFETY: the caller promises the taps, windows inside the buffer, and the records.
    unsafe {
        for jz in 0..w.depth {
            let mut planes = [[T::V::<A>::splat(T::ZERO); N]; S];
            for jy in 0..w.height {
                let row = first.add(jz * w.plane + jy * w.row);
                let mut factors = [T::V::<A>::splat(T::ZERO); S];
                for (s, factor) in factors.iter_mut().enumerate() {
                    *factor = T::V::<A>::splat(*taps.y.add(jy * CHUNK + s));
                }
                for v in 0..N {
                    let cells = T::V::<A>::load(row.add(v * lanes));
                    for (plane, factor) in planes.iter_mut().zip(factors) {
                        plane[v] = cells.fma(factor, plane[v]);
                    }
                }
            }
            for (s, (sum, plane)) in sums.iter_mut().zip(planes).enumerate() {
                let factor = T::V::<A>::splat(*taps.z.add(jz * CHUNK + s));
                for (sum, plane) in sum.iter_mut().zip(plane) {
                    *sum = plane.fma(factor, *sum);
                }
            }
        }
        for (s, sum) in sums.iter().enumerate() {
            for (v, sum) in sum.iter().enumerate() {
                sum.store(to.add((s * (N + 1) + v) * lanes));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::device::Cpu;
    use crate::backend::cpu::simd::Level;
    use crate::base::random::SplitMix64;

    /// Columns that no window reaches may contain anything. Lengths of tiles differ by one cell.
    fn check<T: SimdReal>(level: Level, size: &[usize], width: usize, samples: usize) {
        let cpu = Cpu { threads: Threads::new(1).unwrap(), level, saves_memory: false };
        let mut random = SplitMix64(1);
        let mut random = || random.uniform() - 0.5;
        let few: Vec<[f64; 2]> = (0..60).map(|_| [random(), random()]).collect();
        let k = [0, 1, 2].map(|axis| {
            let k = |m: usize| if axis < size.len() - 1 { few[m % few.len()][axis] } else { random() };
            (0..samples).map(k).map(T::of).collect::<Vec<T>>()
        });
        let k: Vec<&[T]> = k.iter().take(size.len()).map(|k| &k[..]).collect();
        let gridder = Gridder::new(&cpu, &k, size, &[vec![1.0; width]], 1, None).unwrap();
        let [gx, gy, _] = gridder.tiling.size;
        let is_reached = |cell: usize| match size.len() {
            3 => gridder.reached().contains(cell / gx % gy, cell % gx, 1),
            _ => gridder.reached().contains_in_any_row(cell % gx, 1),
        };
        let interpolated = |outside: T| {
            let cell = |i| if is_reached(i) { T::of((i % 101) as f64) } else { outside };
            let grid: Vec<_> = (0..size.iter().product()).map(|i| Complex::new(cell(i), cell(i))).collect();
            let mut values = vec![Complex::new(T::of(f64::NAN), T::ZERO); samples];
            gridder.interpolate(&cpu.threads, &grid, &mut values);
            values
        };
        let (expected, values) = (interpolated(T::ZERO), interpolated(T::of(f64::NAN)));
        assert!(values == expected, "{level:?}, {}, {size:?}, {width} cells, {samples} samples", T::NAME);
    }

    #[test]
    fn columns_that_are_not_reached_are_not_read() {
        for level in Level::all() {
            for samples in [30, 300, 3000] {
                for width in [3, 5, 8] {
                    for size in [&[270, 40, 33][..], &[333, 19, 50], &[270, 70], &[405, 33]] {
                        check::<f32>(level, size, width, samples);
                        check::<f64>(level, size, width, samples);
                    }
                }
            }
        }
    }

    /// Interpolates random samples from the grid and from copies of the tiles. Returns the number of samples for which
    /// `interpolate` reads the grid.
    fn compare_kernels<T: SimdReal>(level: Level, size: &[usize], width: usize, samples: usize) -> usize {
        let cpu = Cpu { threads: Threads::new(1).unwrap(), level, saves_memory: false };
        let mut random = SplitMix64(1);
        let mut random = || T::of(random.uniform() - 0.5);
        let k: Vec<Vec<T>> = size.iter().map(|_| (0..samples).map(|_| random()).collect()).collect();
        let k: Vec<&[T]> = k.iter().map(|k| &k[..]).collect();
        let g = Gridder::new(&cpu, &k, size, &[vec![1.0; width]], 1, None).unwrap();
        let grid: Vec<_> = (0..size.iter().product()).map(|_| Complex::new(random(), random())).collect();
        let values = [0, 1].map(|kernel| {
            let mut values = vec![Complex::new(T::of(f64::NAN), T::ZERO); samples];
            let shared = SharedSlice::new(&mut values);
            for part in &g.schedule().parts {
                let mut work = g.work();
                work.cells.fill(Complex::default());
                let (gridder, arrays, batches) = (&g, 1, 0..batches(&part.points).len());
                let (grid, values, work) = (&grid, &shared, &mut work);
                match kernel {
                    0 => level.run_rows(InterpolationKernel { gridder, part, batches, grid, values, arrays, work }),
                    _ => {
                        level.run_rows(WindowInterpolationKernel { gridder, part, batches, grid, values, arrays, work })
                    }
                }
            }
            values
        });
        assert!(values[0] == values[1], "{level:?}, {}, {size:?}, {width} cells, {samples} samples", T::NAME);
        let parts = g.schedule().parts.iter().filter(|part| part.is_interpolated_from_grid(&g.tiling));
        parts.map(|part| part.points.len()).sum()
    }

    #[test]
    fn the_grid_and_copies_of_tiles_have_the_same_sums() {
        let (mut from_grid, mut all) = (0, 0);
        for level in Level::all() {
            for samples in [1, 100, 20_000] {
                for width in [2, 3, 7, 16] {
                    for size in [&[37, 40, 33][..], &[90, 32, 50], &[270, 70], &[32, 32]] {
                        from_grid += compare_kernels::<f32>(level, size, width, samples);
                        from_grid += compare_kernels::<f64>(level, size, width, samples);
                        all += 2 * samples;
                    }
                }
            }
        }
        assert!(from_grid > 0 && from_grid < all, "{from_grid} of {all}");
    }
}
