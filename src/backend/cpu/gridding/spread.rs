//! Spreading: adds samples to their tiles, and tiles to the grid. sparse_tiles.rs spreads the samples of sparse tiles.

use super::gridder::{Gridder, ThreadBuffers};
use super::keys::unpack_key;
use super::merging::TileBuffer;
use super::schedule::{ScheduledTile, TilePart, TilePlacement};
use super::sorting::batches;
use super::sparse_tiles::{add_windows, WindowSpreadKernel};
use super::taps::{with_vectors, CHUNK};
use super::tiling::PREFETCHED_ROWS;
use super::windows::{add, add_cells};
use crate::backend::cpu::simd::{prefetch, Arith, Kernel, SimdReal, Vector};
use crate::backend::threads::Threads;
use crate::base::workers::{chunk_len, SharedSlice};
use num_complex::Complex;
use std::ops::Range;

/// Maximum number of samples that are added to the same cells at once, a power of two.
const GROUP: usize = 8;
/// Number of samples by which values are prefetched: after a contiguous run of samples, the next one is far away.
const PREFETCH_DISTANCE: usize = 256;
/// Minimum number of samples whose windows start in one vector for which a batch sums them in blocks.
const MIN_BLOCK: usize = 32;
/// Maximum number of samples of a block.
const MAX_BLOCK: usize = 128;
/// Number of tasks for each thread if the grid's rows are shared.
const ROW_TASKS: usize = 4;

impl<T: SimdReal> Gridder<T> {
    /// Implements [`crate::backend::Backend::spread`].
    pub fn spread(&self, threads: &Threads, values: &[Complex<T>], grid: &mut [Complex<T>]) {
        let arrays = self.arrays(values.len(), grid.len());
        let used = arrays * self.buffer_len();
        let grid = &SharedSlice::new(grid);
        let schedule = self.schedule();
        let progress = self.progress();
        let merge_rows = |tile: usize, total: &TileBuffer<T>, rows: Range<usize>| {
            self.level.run_rows(MergeKernel { gridder: self, tile: &schedule.tiles[tile], total, grid, arrays, rows });
        };
        let rows = self.tiling.size[1] * self.tiling.size[2];
        let merge = |tile: usize, total: &TileBuffer<T>| merge_rows(tile, total, 0..rows);
        let is_merged_by_rows = self.merges_by_rows;
        let add = |left: &mut TileBuffer<T>, right: &TileBuffer<T>| {
            self.level.run_rows(AddKernel { left: &mut left[..used], right: &right[..used] });
        };
        if self.clears_first {
            let (cells, chunk) = (grid.len(), chunk_len(grid.len()));
            threads.run(cells.div_ceil(chunk), |i| {
                // SAFETY: each task has its own cells.
                unsafe { grid.part(i * chunk, chunk.min(cells - i * chunk)) }.fill(Complex::default());
            });
        }
        threads.run_with(
            schedule.parts.len(),
            || self.work(),
            |work, i| {
                let task = progress.begin();
                let part = &schedule.parts[i];
                if schedule.tiles[part.tile].is_sparse(&self.tiling) {
                    self.level.run_rows(WindowSpreadKernel { gridder: self, part, values, arrays, work });
                } else {
                    self.level.run_rows(SpreadKernel { gridder: self, part, values, arrays, work });
                }
                let is_total = progress.add_siblings(schedule, part, &mut work.cells, add);
                if is_total && is_merged_by_rows {
                    progress.leave_total(part.tile, &mut work.cells);
                } else if is_total {
                    progress.add_tile(schedule, part.tile, &mut work.cells, merge);
                }
                // Every thread has a buffer when it takes a part: see `MergeProgress::new`.
                progress.replace(&mut work.cells);
                task.end();
            },
        );
        if is_merged_by_rows {
            let totals = progress.totals(schedule.tiles.len());
            let tasks = rows.min(ROW_TASKS * threads.count());
            threads.run(tasks, |i| {
                let own = rows * i / tasks..rows * (i + 1) / tasks;
                (0..schedule.tiles.len()).for_each(|tile| merge_rows(tile, totals.of(tile), own.clone()));
            });
        }
    }
}

/// The spreading of a part: clears the tile's buffers and adds the part's samples to them.
struct SpreadKernel<'a, T> {
    gridder: &'a Gridder<T>,
    part: &'a TilePart,
    values: &'a [Complex<T>],
    arrays: usize,
    work: &'a mut ThreadBuffers<T>,
}

impl<T: SimdReal> Kernel for SpreadKernel<'_, T> {
    type Output = ();

    /// Adds samples in blocks if many share a position, and one after another otherwise.
    #[inline(always)]
    fn run<A: Arith>(mut self) {
        let g = self.gridder;
        let (buffer, block) = (g.buffer_len(), g.block_len());
        assert!(self.work.cells.len() >= self.arrays * buffer && self.work.compensation.len() >= self.arrays * buffer);
        let used = self.arrays * buffer;
        self.work.cells[..used].fill(Complex::default());
        let mut has_compensation = false;
        with_vectors!(g.layout().row_vectors, A, [2 3 4 5 6 7 8 9 10 11 12 13 14 15 16], N => {
            for batch in batches(&self.part.points) {
                self.fetch(batch.clone());
                let mut from = batch.start;
                while from < batch.end {
                    let (to, is_block) = self.next_range(from, batch.end);
                    if is_block {
                        if !has_compensation {
                            self.work.compensation[..used].fill(Complex::default());
                            has_compensation = true;
                        }
                        self.work.blocks[..self.arrays * block].fill(Complex::default());
                    }
                    self.sum::<A, N>(&batch, from..to, is_block);
                    if is_block {
                        let at = vector_start(self.gridder, from);
                        for array in 0..self.arrays {
                            // SAFETY: each array has a block and a buffer, and sorting.rs placed the samples inside.
                            unsafe {
                                let sums = self.work.blocks.as_ptr().add(array * block);
                                let cells = self.work.cells.as_mut_ptr().add(array * buffer + at);
                                let compensation = self.work.compensation.as_mut_ptr().add(array * buffer + at);
                                add_block::<T, A, N>(g, sums.cast(), cells.cast(), compensation.cast());
                            }
                        }
                    }
                    from = to;
                }
            }
        });
        if has_compensation {
            let ThreadBuffers { cells, compensation, .. } = self.work;
            add_cells(&mut cells[..used], &compensation[..used]);
        }
    }
}

impl<T: SimdReal> SpreadKernel<'_, T> {
    /// Copies the values of a batch into one array. In the caller's order they mostly follow one another.
    #[inline(always)]
    fn fetch(&mut self, batch: Range<usize>) {
        let g = self.gridder;
        let later = &g.samples.order[(batch.start + PREFETCH_DISTANCE).min(g.count())..];
        let order = &g.samples.order[batch];
        for (array, values) in self.values.chunks_exact(g.count()).enumerate() {
            let fetched = &mut self.work.values[array * order.len()..][..order.len()];
            for (i, (fetched, &m)) in fetched.iter_mut().zip(order).enumerate() {
                if let Some(&later) = later.get(i) {
                    prefetch(values.as_ptr().wrapping_add(later as usize));
                }
                *fetched = values[m as usize];
            }
        }
    }

    /// Returns the end of the samples from `from` on that are summed together, and whether they form a block in one
    /// vector.
    #[inline(always)]
    fn next_range(&self, from: usize, end: usize) -> (usize, bool) {
        // Samples are sorted: if the first and the last of a range start in one vector, then all of them do.
        let begins = |i: usize| vector_start(self.gridder, i) == vector_start(self.gridder, i + MIN_BLOCK - 1);
        let last = end.saturating_sub(MIN_BLOCK - 1);
        if from < last && begins(from) {
            let at = vector_start(self.gridder, from);
            let most = end.min(from + MAX_BLOCK);
            return ((from + MIN_BLOCK..most).find(|&i| vector_start(self.gridder, i) != at).unwrap_or(most), true);
        }
        ((from + 1..last).find(|&i| begins(i)).unwrap_or(end), false)
    }

    /// Adds samples of a batch to the tile's buffers; if `block` is set, to the block's sums.
    #[inline(always)]
    fn sum<A: Arith, const N: usize>(&mut self, batch: &Range<usize>, range: Range<usize>, block: bool) {
        let g = self.gridder;
        let layout = g.layout();
        let (cells, len, window) = match block {
            true => (&mut self.work.blocks, g.block_len(), g.tiling.block_window()),
            false => (&mut self.work.cells, g.buffer_len(), g.tiling.window(g.tiling.extent[0], g.tiling.extent[1])),
        };
        assert!(cells.len() >= self.arrays * len);
        let cells: *mut T = cells.as_mut_ptr().cast();
        for first in range.clone().step_by(CHUNK) {
            let count = CHUNK.min(range.end - first);
            let taps = g.taps(first, count, true, &mut self.work.taps);
            let (keys, whole) = (&g.samples.keys[first..first + count], !(layout.cells - 1));
            let vector_start = |key: u32| unpack_key(key).0 as usize & whole;
            for array in 0..self.arrays {
                let values = &self.work.values[array * batch.len()..][..batch.len()];
                // SAFETY: each array has `len` cells, as asserted.
                let cells = unsafe { cells.add(2 * array * len) };
                let x_len = layout.x_len;
                let mut i = 0;
                while i < count {
                    let at = vector_start(keys[i]);
                    let others = keys[i + 1..count.min(i + GROUP)].iter();
                    let meeting = 1 + others.take_while(|&&key| vector_start(key) == at).count();
                    // The largest power of two is used, since fewer sizes mean less code.
                    let together = 1 << meeting.ilog2();
                    let at = if block { 0 } else { at };
                    let keys = &keys[i..i + together];
                    // SAFETY: the taps have been written; sorting.rs placed the samples inside the buffer, and a block
                    // has room for a window.
                    unsafe {
                        let (taps, cells) = (taps.from(i, x_len), cells.add(2 * at));
                        match together {
                            1 => add::<T, A, N, 1>(window, x_len, taps, keys, values, cells),
                            2 => add::<T, A, N, 2>(window, x_len, taps, keys, values, cells),
                            4 => add::<T, A, N, 4>(window, x_len, taps, keys, values, cells),
                            _ => add::<T, A, N, GROUP>(window, x_len, taps, keys, values, cells),
                        }
                    }
                    i += together;
                }
            }
        }
    }
}

/// Returns the cell of the tile's buffer at the start of the vector in which a sample's window starts.
#[inline(always)]
fn vector_start<T: SimdReal>(g: &Gridder<T>, i: usize) -> usize {
    unpack_key(g.samples.keys[i]).0 as usize & !(g.layout().cells - 1)
}

/// Adds the sums of a block, rows of `N` vectors, to the cells from `cells` on, and the rounding errors of these
/// additions to the cells from `compensation` on.
///
/// # Safety
/// `sums` must be a block. The window's rows from `cells` on and from `compensation` on must be inside a tile's
/// buffers.
#[inline(always)]
unsafe fn add_block<T: SimdReal, A: Arith, const N: usize>(
    g: &Gridder<T>,
    sums: *const T,
    cells: *mut T,
    compensation: *mut T,
) {
    let lanes = T::V::<A>::LANES;
    let window = g.tiling.window(g.tiling.extent[0], g.tiling.extent[1]);
    for jz in 0..window.depth {
        for jy in 0..window.height {
            let (from, to) = ((jz * window.height + jy) * N * lanes, jz * window.plane + jy * window.row);
            for v in 0..N {
                // SAFETY: the caller promises a block, and rows inside the buffers.
                unsafe {
                    let (cell, compensation) = (cells.add(to + v * lanes), compensation.add(to + v * lanes));
                    let (a, b) = (T::V::<A>::load(cell), T::V::<A>::load(sums.add(from + v * lanes)));
                    let sum = a.add(b);
                    let of_b = sum.sub(a);
                    let error = a.sub(sum.sub(of_b)).add(b.sub(of_b));
                    sum.store(cell);
                    T::V::<A>::load(compensation).add(error).store(compensation);
                }
            }
        }
    }
}

/// The addition of two sums.
struct AddKernel<'a, T> {
    left: &'a mut [Complex<T>],
    right: &'a [Complex<T>],
}

impl<T: SimdReal> Kernel for AddKernel<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arith>(self) {
        add_cells(self.left, self.right);
    }
}

/// The merge of a tile: adds its total to rows of the grids, or stores it if the tile is the first to reach the cells.
/// The windows of a sparse tile are added one after another, after the cells have been cleared.
struct MergeKernel<'a, T> {
    gridder: &'a Gridder<T>,
    tile: &'a ScheduledTile,
    total: &'a TileBuffer<T>,
    grid: &'a SharedSlice<'a, Complex<T>>,
    arrays: usize,
    /// Rows of a grid, numbered through all planes.
    rows: Range<usize>,
}

impl<T: SimdReal> Kernel for MergeKernel<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arith>(self) {
        let MergeKernel { gridder: g, tile, total, grid, arrays, .. } = self;
        let placement = TilePlacement::new(&g.tiling, tile);
        let is_sparse = tile.is_sparse(&g.tiling);
        if !g.clears_first || !is_sparse {
            (0..arrays).for_each(|array| self.rows(&placement, array, is_sparse));
        }
        if is_sparse {
            add_windows(g, tile, total, grid, arrays, &self.rows);
        }
    }
}

impl<T: SimdReal> MergeKernel<'_, T> {
    /// Adds the rows of an array's buffer that are among `rows`. Clears the cells of a sparse tile.
    #[inline(always)]
    fn rows(&self, placement: &TilePlacement, array: usize, is_sparse: bool) {
        for (rz, z) in placement.lines(2).filter(|(_, z)| placement.reaches_rows(*z, &self.rows)) {
            for (ry, y) in placement.lines(1) {
                if self.rows.contains(&placement.row_number(z, y)) {
                    self.row(placement, array, [ry, rz], [y, z], is_sparse);
                }
            }
        }
    }

    /// Adds row y of plane z of an array's buffer, in the regions `ry` and `rz`. Clears the cells of a sparse tile.
    #[inline(always)]
    fn row(&self, placement: &TilePlacement, array: usize, [ry, rz]: [usize; 2], [y, z]: [usize; 2], is_sparse: bool) {
        let MergeKernel { gridder: g, tile, grid, .. } = self;
        let [gx, gy, gz] = g.tiling.size;
        let [row, rows, _] = g.tiling.extent;
        let (origin, bounds) = (placement.origin[0], placement.regions[0]);
        let first_cell = array * gx * gy * gz;
        let (to, ahead) = (first_cell + placement.row(z, y), first_cell + placement.row(z, y + PREFETCHED_ROWS));
        let from = &self.total[array * g.buffer_len() + (z * rows + y) * row..][..row];
        let store = [0, 1, 2].map(|rx| !g.clears_first && tile.is_first([rx, ry, rz]));
        if is_sparse && store == [false; 3] {
            return;
        }
        let (mut x, end) = (bounds[0], bounds[3]);
        (x..end).step_by(8).for_each(|x| prefetch(grid.address(ahead + (origin + x) % gx)));
        while x < end {
            let rx = (1..3).filter(|&r| bounds[r] <= x).count();
            // Regions with the same treatment are processed together, up to the edge of the grid.
            let region_end = (rx + 1..3).find(|&r| store[r] != store[rx]).unwrap_or(3);
            let start = (origin + x) % gx;
            let len = (bounds[region_end] - x).min(gx - start);
            // SAFETY: the neighbours that share these cells are added before or after this tile, see merging.rs. If rows
            // are shared, only this thread adds tiles to its rows.
            let cells = unsafe { grid.part(to + start, len) };
            match (store[rx], is_sparse) {
                (true, true) => cells.fill(Complex::default()),
                (true, false) => cells.copy_from_slice(&from[x..x + len]),
                (false, true) => {}
                (false, false) => add_cells(cells, &from[x..x + len]),
            }
            x += len;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::device::Cpu;
    use crate::backend::cpu::simd::Level;
    use crate::base::random::SplitMix64;
    use crate::base::sizes::product;

    /// Compares spreading of several arrays on 16 threads with one thread. Returns whether the rows were shared.
    fn check<T: SimdReal>(
        level: Level,
        (size, width): (&[usize], usize),
        (samples, arrays): (usize, usize),
        random: &mut SplitMix64,
    ) -> bool {
        let mut numbers = |count: usize| -> Vec<T> { (0..count).map(|_| T::of(random.uniform() - 0.5)).collect() };
        let k: Vec<Vec<T>> = size.iter().map(|_| numbers(samples)).collect();
        let k: Vec<&[T]> = k.iter().map(|axis| &axis[..]).collect();
        let values = numbers(2 * arrays * samples);
        let values: Vec<_> = values.chunks_exact(2).map(|z| Complex::new(z[0], z[1])).collect();
        let window: Vec<Vec<f64>> =
            (0..3).map(|power| (0..width).map(|tap| (1.7 * (tap + power) as f64).cos()).collect()).collect();
        let spread = |count: usize, saves_memory: bool| {
            let cpu = Cpu { threads: Threads::new(count).unwrap(), level, saves_memory };
            let threads = &cpu.threads;
            let gridder = Gridder::new(&cpu, &k, size, &window, arrays, None).unwrap();
            assert!(arrays == 1 || !gridder.has_task_per_array(threads, arrays));
            let spread = || {
                let mut grid = vec![Complex::new(T::of(f64::NAN), T::of(f64::NAN)); arrays * product(size)];
                gridder.spread(threads, &values, &mut grid);
                grid
            };
            let grid = spread();
            // The buffers of the first call are free for the next.
            assert!(spread() == grid, "{level:?}, {}, {size:?}, {width} cells, {samples} samples", T::NAME);
            (grid, gridder.merges_by_rows)
        };
        let (expected, (grid, is_shared)) = (spread(1, false), spread(16, false));
        assert!(grid == expected.0, "{level:?}, {}, {size:?}, {width} cells, {samples} samples", T::NAME);
        assert!(!expected.1);
        assert!(spread(16, true) == expected, "{level:?}, {}, {size:?}, {width} cells, saving memory", T::NAME);
        is_shared
    }

    /// Tiles that are added by rows and those that are added whole give the same bits.
    #[test]
    fn shared_rows_have_the_same_bits() {
        let mut random = SplitMix64(1);
        let mut check = |grid: (&[usize], usize), samples: (usize, usize), is_shared: bool| {
            for level in Level::all() {
                let wide = check::<f64>(level, grid, samples, &mut random);
                assert!(check::<f32>(level, grid, samples, &mut random) == wide);
                assert_eq!(wide, is_shared, "{grid:?}, {samples:?}");
            }
        };
        check((&[60, 60, 58], 4), (6000, 1), true);
        check((&[41, 35, 38], 7), (3000, 1), true);
        check((&[130, 50, 24], 3), (5000, 1), true);
        check((&[150, 100], 5), (4000, 1), true);
        // Few windows, sparse and empty tiles, many parts, several arrays.
        check((&[60, 60, 58], 4), (10, 1), true);
        check((&[60, 60, 58], 4), (600, 1), true);
        check((&[41, 35, 38], 7), (60, 1), true);
        check((&[150, 100], 5), (100, 1), true);
        check((&[60, 60, 58], 4), (200_000, 1), true);
        check((&[200, 62, 64], 4), (2000, 2), true);
        // Many tiles, one tile.
        check((&[100, 90, 90], 4), (50_000, 1), false);
        check((&[500, 400], 4), (40_000, 1), false);
        check((&[30, 40], 4), (900, 1), false);
    }
}
