//! Spreading: samples are added to their tiles, and tiles to the grid.

use super::gridder::{Gridder, Work, CHUNK};
use super::sorting::{Tile, RUN_BLOCK};
use super::taps::with_vectors;
use super::tiling::Layout;
use crate::backend::cpu::simd::{prefetch, Arith, Kernel, SimdReal, Vector};
use crate::backend::cpu::thread_pool::{Shared, Threads};
use num_complex::Complex;
use std::ops::Range;

/// Samples that are added to the same cells at once, at most: a power of two.
const GROUP: usize = 8;

impl<T: SimdReal> Gridder<T> {
    /// See [`crate::backend::Backend::spread`].
    pub fn spread(&self, threads: &Threads, values: &[Complex<T>], grid: &mut [Complex<T>]) {
        let arrays = self.arrays(values.len(), grid.len());
        const PART: usize = 1 << 16;
        let len = grid.len();
        let cells = len / arrays;
        let shared = Shared::new(grid);
        threads.run(len.div_ceil(PART), |i| {
            // SAFETY: parts do not overlap.
            unsafe { shared.part(i * PART, PART.min(len - i * PART)) }.fill(Complex::default())
        });
        for colour in &self.colours {
            threads.run_with(
                colour.len(),
                || self.work(),
                |work, i| {
                    let tile = &self.tiles[colour.start + i];
                    let used = arrays * self.buffer_len();
                    work.cells[..used].fill(Complex::default());
                    let runs = self.has_runs(tile);
                    if runs {
                        work.lost[..used].fill(Complex::default());
                    }
                    self.level.run(Spread { gridder: self, tile, values, arrays, work });
                    if runs {
                        let Work { cells, lost, .. } = &mut **work;
                        cells[..used].iter_mut().zip(&lost[..used]).for_each(|(cell, lost)| *cell += *lost);
                    }
                    for array in 0..arrays {
                        let buffer = &work.cells[array * self.buffer_len()..][..self.buffer_len()];
                        self.rows(
                            tile,
                            |at| prefetch(shared.address(array * cells).wrapping_add(at)),
                            |grid_at, buffer_at, len| {
                                // SAFETY: tiles of one colour, with the overhang of their windows, do not overlap.
                                let row = unsafe { shared.part(array * cells + grid_at, len) };
                                for (g, b) in row.iter_mut().zip(&buffer[buffer_at..buffer_at + len]) {
                                    *g += *b;
                                }
                            },
                        );
                    }
                },
            );
        }
    }
}

/// Adds the samples of a tile to its buffers.
struct Spread<'a, T> {
    gridder: &'a Gridder<T>,
    tile: &'a Tile,
    values: &'a [Complex<T>],
    arrays: usize,
    work: &'a mut Work<T>,
}

impl<T: SimdReal> Kernel for Spread<'_, T> {
    type Output = ();

    /// A tile's points: runs of many in blocks, the others one after the other.
    #[inline(always)]
    fn run<A: Arith>(mut self) {
        let g = self.gridder;
        let (buffer, block) = (g.buffer_len(), g.block_len());
        assert!(self.work.cells.len() >= self.arrays * buffer);
        let (mut from, end) = (self.tile.points.start, self.tile.points.end);
        // After the last run comes an empty one at the end.
        let mut runs = g.runs[self.tile.runs.clone()].iter();
        let mut next_run = || runs.next().cloned().unwrap_or(end..end);
        let mut run = next_run();
        with_vectors!(g.layout.row_vectors, A, [2 3 4 5 6 7 8 9 10 11 12 13 14 15 16], N => {
            while from < end {
                let many = from >= run.start;
                let to = if many { (from + RUN_BLOCK).min(run.end) } else { run.start };
                if many {
                    self.work.blocks[..self.arrays * block].fill(Complex::default());
                }
                self.sum::<A, N>(from..to, many);
                if many {
                    assert!(self.work.lost.len() >= self.arrays * buffer);
                    let at = g.points[from].at as usize;
                    for array in 0..self.arrays {
                        // SAFETY: each array has a block and a buffer, and sorting.rs placed the points inside.
                        unsafe {
                            let sums = self.work.blocks.as_ptr().add(array * block);
                            let cells = self.work.cells.as_mut_ptr().add(array * buffer + at);
                            let lost = self.work.lost.as_mut_ptr().add(array * buffer + at);
                            add_block::<T, A, N>(g, sums.cast(), cells.cast(), lost.cast());
                        }
                    }
                }
                from = to;
                if from == run.end {
                    run = next_run();
                }
            }
        })
    }
}

impl<T: SimdReal> Spread<'_, T> {
    /// Adds points to the tile's buffers; where they are a block, to the block's sums.
    #[inline(always)]
    fn sum<A: Arith, const N: usize>(&mut self, range: Range<usize>, block: bool) {
        let g = self.gridder;
        let samples = g.order.len();
        let taps = self.work.taps.as_mut_ptr();
        let (cells, len, rows) = match block {
            true => (&mut self.work.blocks, g.block_len(), Rows::new(N * g.layout.cells, g.taps[1])),
            false => (&mut self.work.cells, g.buffer_len(), Rows::new(g.extent[0], g.extent[1])),
        };
        assert!(cells.len() >= self.arrays * len);
        let cells: *mut T = cells.as_mut_ptr().cast();
        for first in range.clone().step_by(CHUNK) {
            let last = (first + CHUNK).min(range.end);
            let (points, order) = (&g.points[first..last], &g.order[first..last]);
            order.iter().for_each(|&m| prefetch(&self.values[m as usize]));
            // SAFETY: there is room for CHUNK records.
            unsafe { g.write_taps::<A>(points, true, taps) };
            for array in 0..self.arrays {
                let values = &self.values[array * samples..][..samples];
                // SAFETY: each array has `len` cells, as asserted.
                let cells = unsafe { cells.add(2 * array * len) };
                let mut i = 0;
                while i < points.len() {
                    let meeting = points[i..].iter().take(GROUP).take_while(|p| p.at == points[i].at).count();
                    // The largest power of two of them: fewer sizes mean less code.
                    let together = 1 << meeting.ilog2();
                    let (at, order) = (if block { 0 } else { points[i].at as usize }, &order[i..i + together]);
                    // SAFETY: the records have been written; sorting.rs placed the points inside the buffer, and a
                    // block has room for a window.
                    unsafe {
                        let (taps, first) = (taps.add(i * g.layout.record), cells.add(2 * at));
                        match together {
                            1 => add::<T, A, N, 1>(g, taps, order, values, first, rows),
                            2 => add::<T, A, N, 2>(g, taps, order, values, first, rows),
                            4 => add::<T, A, N, 4>(g, taps, order, values, first, rows),
                            _ => add::<T, A, N, GROUP>(g, taps, order, values, first, rows),
                        }
                    }
                    i += together;
                }
            }
        }
    }
}

/// The strides of rows and planes of cells, in reals.
#[derive(Clone, Copy)]
struct Rows {
    row: usize,
    plane: usize,
}

impl Rows {
    fn new(row: usize, rows: usize) -> Rows {
        Rows { row: 2 * row, plane: 2 * row * rows }
    }
}

/// Adds `S` samples whose windows start in the same vector to rows of `N` vectors.
///
/// # Safety
/// `taps` must be their records, and the window's rows from `first` on must be writable.
#[inline(always)]
unsafe fn add<T: SimdReal, A: Arith, const N: usize, const S: usize>(
    g: &Gridder<T>,
    taps: *const T,
    order: &[u32],
    values: &[Complex<T>],
    first: *mut T,
    Rows { row, plane }: Rows,
) {
    let lanes = T::V::<A>::LANES;
    let Layout { x_len, record, tap_vectors, .. } = g.layout;
    let zero = T::V::<A>::splat(T::ZERO);
    // SAFETY: the caller promises the records at `taps`, and writable rows from `first` on.
    unsafe {
        let mut x = [[zero; N]; S];
        for s in 0..S {
            let value = values[order[s] as usize];
            let (value, _) = T::V::<A>::splat(value.re).zip(T::V::<A>::splat(value.im));
            for (v, x) in x[s].iter_mut().enumerate() {
                *x = T::V::<A>::load(taps.add(s * record + v * lanes)).mul(value);
            }
        }
        let y = taps.add(x_len);
        let z = y.add(tap_vectors * lanes);
        if g.taps[2] == 1 {
            add_rows::<T, A, N, S>(&x, y, record, first, row, g.taps[1]);
            return;
        }
        for jz in 0..g.taps[2] {
            let mut xz = x;
            for (s, xz) in xz.iter_mut().enumerate() {
                let factor = T::V::<A>::splat(*z.add(s * record + jz));
                xz.iter_mut().for_each(|x| *x = x.mul(factor));
            }
            add_rows::<T, A, N, S>(&xz, y, record, first.add(jz * plane), row, g.taps[1]);
        }
    }
}

/// Adds the outer product of `x` and the taps at `y` to rows of a plane.
///
/// # Safety
/// As for [`add`]: `y` must lie in the samples' records, and the rows from `first` on must be writable.
#[inline(always)]
unsafe fn add_rows<T: SimdReal, A: Arith, const N: usize, const S: usize>(
    x: &[[T::V<A>; N]; S],
    y: *const T,
    record: usize,
    first: *mut T,
    row: usize,
    taps: usize,
) {
    let lanes = T::V::<A>::LANES;
    for jy in 0..taps {
        // SAFETY: the caller promises taps at `y`, and `taps` writable rows from `first` on.
        unsafe {
            let p = first.add(jy * row);
            // First the sum of these samples, then the cells: fewer additions round a large total.
            let factor = T::V::<A>::splat(*y.add(jy));
            let mut sum: [T::V<A>; N] = std::array::from_fn(|i| x[0][i].mul(factor));
            for (s, x) in x.iter().enumerate().skip(1) {
                let factor = T::V::<A>::splat(*y.add(s * record + jy));
                for (sum, x) in sum.iter_mut().zip(x) {
                    *sum = x.fma(factor, *sum);
                }
            }
            for (v, sum) in sum.iter_mut().enumerate() {
                *sum = sum.add(T::V::<A>::load(p.add(v * lanes)));
            }
            for (v, sum) in sum.iter().enumerate() {
                sum.store(p.add(v * lanes));
            }
        }
    }
}

/// Adds the sums of a block, rows of `N` vectors, to the cells from `cells` on, and the rounding errors of that to the
/// cells from `lost` on.
///
/// # Safety
/// `sums` must be a block. The window's rows from `cells` on and from `lost` on must lie inside a tile's buffers.
#[inline(always)]
unsafe fn add_block<T: SimdReal, A: Arith, const N: usize>(
    g: &Gridder<T>,
    sums: *const T,
    cells: *mut T,
    lost: *mut T,
) {
    let lanes = T::V::<A>::LANES;
    let rows = Rows::new(g.extent[0], g.extent[1]);
    for jz in 0..g.taps[2] {
        for jy in 0..g.taps[1] {
            let (from, to) = ((jz * g.taps[1] + jy) * N * lanes, jz * rows.plane + jy * rows.row);
            for v in 0..N {
                // SAFETY: the caller promises a block, and rows inside the buffers.
                unsafe {
                    let (cell, lost) = (cells.add(to + v * lanes), lost.add(to + v * lanes));
                    let (a, b) = (T::V::<A>::load(cell), T::V::<A>::load(sums.add(from + v * lanes)));
                    let sum = a.add(b);
                    let of_b = sum.sub(a);
                    let error = a.sub(sum.sub(of_b)).add(b.sub(of_b));
                    sum.store(cell);
                    T::V::<A>::load(lost).add(error).store(lost);
                }
            }
        }
    }
}
