//! Tiles of few samples: clearing the tile's buffer and adding it to the grid, or copying it from the grid, would take
//! longer than its samples. Spreading writes their windows one after another to the buffer, in rows of whole vectors.
//! Interpolation reads the grid itself.

use super::gridder::{Gridder, ThreadBuffers};
use super::keys::unpack_key;
use super::merging::TileBuffer;
use super::schedule::{ScheduledTile, TilePart, TilePlacement};
use super::sorting::numbered_batches;
use super::taps::{with_vectors, Taps, CHUNK};
use super::windows::{add, add_cells, window_sum};
use crate::backend::cpu::simd::{Arith, Kernel, SimdReal, Vector};
use crate::base::sizes::product;
use crate::base::workers::SharedSlice;
use num_complex::Complex;
use std::ops::Range;

/// The spreading of a sparse tile: writes the window of each sample, multiplied by its value.
pub struct WindowSpreadKernel<'a, T> {
    pub gridder: &'a Gridder<T>,
    pub part: &'a TilePart,
    pub values: &'a [Complex<T>],
    pub arrays: usize,
    pub work: &'a mut ThreadBuffers<T>,
}

impl<T: SimdReal> Kernel for WindowSpreadKernel<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arith>(self) {
        let WindowSpreadKernel { gridder: g, part, work, .. } = self;
        let (points, block, x_len) = (part.points.clone(), g.block_len(), g.layout().x_len);
        let (len, order) = (points.len(), &g.samples.order[points.clone()]);
        for (array, values) in self.values.chunks_exact(g.count()).take(self.arrays).enumerate() {
            work.cells[array * g.buffer_len()..][..len * block].fill(Complex::default());
            let fetched = &mut work.values[array * len..][..len];
            fetched.iter_mut().zip(order).for_each(|(fetched, &m)| *fetched = values[m as usize]);
        }
        with_vectors!(g.layout().row_vectors, A, [2 3 4 5 6 7 8 9 10 11 12 13 14 15 16], N => {
            for first in points.clone().step_by(CHUNK) {
                let count = CHUNK.min(points.end - first);
                let taps = g.taps(first, count, true, &mut work.taps);
                let keys = &g.samples.keys[first..first + count];
                for array in 0..self.arrays {
                    let fetched = &work.values[array * len..][..len];
                    let start = array * g.buffer_len() + (first - points.start) * block;
                    let windows = work.cells[start..].chunks_exact_mut(block);
                    for ((i, key), window) in keys.chunks_exact(1).enumerate().zip(windows) {
                        // SAFETY: the taps have been written, and a block has room for a window.
                        unsafe {
                            let (taps, to) = (taps.from(i, x_len), window.as_mut_ptr().cast());
                            add::<T, A, N, 1>(g.tiling.block_window(), x_len, taps, key, fetched, to);
                        }
                    }
                }
            }
        });
    }
}

/// Adds the windows of a sparse tile to those rows of the grids that are among `rows`, numbered through all planes.
#[inline(always)]
pub fn add_windows<T: SimdReal>(
    g: &Gridder<T>,
    tile: &ScheduledTile,
    windows: &TileBuffer<T>,
    grid: &SharedSlice<'_, Complex<T>>,
    arrays: usize,
    rows: &Range<usize>,
) {
    let [gx, gy, gz] = g.tiling.size;
    let [_, height, depth] = g.tiling.taps;
    let placement = TilePlacement::new(&g.tiling, tile);
    let row_len = g.layout().row_vectors * g.layout().cells;
    for array in 0..arrays {
        let windows = windows[array * g.buffer_len()..].chunks_exact(g.block_len());
        for (&key, window) in g.samples.keys[tile.points.clone()].iter().zip(windows) {
            let [x, y, z] = g.tiling.vector_start(unpack_key(key).0 as usize);
            // The zeros behind a window may be in cells that are not the tile's.
            let len = row_len.min(placement.reached_cells(0) - x);
            let start = (placement.origin[0] + x) % gx;
            let len_to_end = len.min(gx - start);
            for jz in (0..depth).filter(|jz| placement.reaches_rows(z + jz, rows)) {
                let plane = window[jz * height * row_len..].chunks_exact(row_len).take(height);
                for (jy, from) in plane.enumerate() {
                    let row = placement.row_number(z + jz, y + jy);
                    if !rows.contains(&row) {
                        continue;
                    }
                    let to = (array * gy * gz + row) * gx;
                    let (from, from_start) = from[..len].split_at(len_to_end);
                    // SAFETY: the neighbours that share these cells are added before or after this tile, see
                    // merging.rs. If rows are shared, only this thread adds tiles to its rows.
                    unsafe {
                        add_cells(grid.part(to + start, from.len()), from);
                        add_cells(grid.part(to, from_start.len()), from_start);
                    }
                }
            }
        }
    }
}

/// The interpolation of some batches of a part of few samples: sums the cells of the grids under each window.
pub struct WindowInterpolationKernel<'a, T> {
    pub gridder: &'a Gridder<T>,
    pub part: &'a TilePart,
    pub batches: Range<usize>,
    pub grid: &'a [Complex<T>],
    pub values: &'a SharedSlice<'a, Complex<T>>,
    pub arrays: usize,
    pub work: &'a mut ThreadBuffers<T>,
}

impl<T: SimdReal> Kernel for WindowInterpolationKernel<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arith>(self) {
        let WindowInterpolationKernel { gridder: g, part, work, .. } = self;
        let layout = g.layout();
        let placement = TilePlacement::new(&g.tiling, &g.schedule().tiles[part.tile]);
        let cells = product(&g.tiling.size);
        with_vectors!(layout.window_vectors, A, [1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16], N => {
            for batch in numbered_batches(&part.points, self.batches) {
                let order = &g.samples.order[batch.clone()];
                for first in batch.clone().step_by(CHUNK) {
                    let count = CHUNK.min(batch.end - first);
                    let taps = g.taps(first, count, false, &mut work.taps);
                    for (i, &key) in g.samples.keys[first..first + count].iter().enumerate() {
                        let (cell, index) = unpack_key(key);
                        for (array, grid) in self.grid.chunks_exact(cells).take(self.arrays).enumerate() {
                            // SAFETY: the taps have been written. Every sample belongs to one batch of one part.
                            unsafe {
                                let taps = taps.from(i, layout.x_len);
                                let sum = sum_in_grid::<T, A, N>(g, &placement, cell as usize, taps, grid, &mut work.cells);
                                self.values.set(array * g.count() + order[index] as usize, sum);
                            }
                        }
                    }
                }
            }
        });
    }
}

/// Returns the sum of the cells of a grid under the window, `N` vectors wide, that starts at a cell of a tile.
///
/// # Safety
/// `taps` must be the sample's taps.
#[inline(always)]
unsafe fn sum_in_grid<T: SimdReal, A: Arith, const N: usize>(
    g: &Gridder<T>,
    placement: &TilePlacement,
    cell: usize,
    taps: Taps<T>,
    grid: &[Complex<T>],
    buffer: &mut [Complex<T>],
) -> Complex<T> {
    let [gx, gy, gz] = g.tiling.size;
    let window = g.tiling.block_window();
    let position = g.tiling.position(cell);
    let [x, y, z] = [0, 1, 2].map(|axis| placement.origin[axis] + position[axis]);
    let row = |jy, jz| (wrapped(z + jz, gz) * gy + wrapped(y + jy, gy)) * gx;
    // Whole vectors are loaded. The cells behind a window are finite: see `interpolate`.
    let loaded = N * g.layout().cells;
    if x + loaded <= gx {
        let from = |jy, jz| grid[row(jy, jz) + x..][..loaded].as_ptr().cast();
        // SAFETY: the caller promises the taps. The loaded cells are in the grid.
        return unsafe { window_sum::<T, A, N>(window, taps, from) };
    }
    let cells = &mut buffer[..window.height * window.depth * loaded];
    for (line, to) in cells.chunks_exact_mut(loaded).enumerate() {
        let from = &grid[row(line % window.height, line / window.height)..][..gx];
        to.iter_mut().zip(from.iter().cycle().skip(x)).for_each(|(to, from)| *to = *from);
    }
    let from = |jy, jz| cells[(jz * window.height + jy) * loaded..][..loaded].as_ptr().cast();
    // SAFETY: the caller promises the taps. The loaded cells are in the buffer.
    unsafe { window_sum::<T, A, N>(window, taps, from) }
}

/// Returns the index on an axis of `count` cells of an index below twice that.
#[inline(always)]
fn wrapped(index: usize, count: usize) -> usize {
    if index >= count {
        index - count
    } else {
        index
    }
}
