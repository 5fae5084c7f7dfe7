//! Sparse tiles: clearing the tile's buffer and adding it to the grid, or copying it from the grid, would take longer
//! than its few samples. Their windows are one after another in the buffer, in rows of whole vectors.

use super::gridder::{Gridder, ThreadBuffers};
use super::keys::unpack_key;
use super::merging::TileBuffer;
use super::schedule::{ScheduledTile, TilePart, TilePlacement};
use super::taps::{with_vectors, CHUNK};
use super::windows::{add, add_cells, window_sum};
use crate::backend::cpu::simd::{Arith, Kernel, SimdReal, Vector};
use crate::base::workers::SharedSlice;
use num_complex::Complex;

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

/// Adds the windows of a sparse tile to the grid.
#[inline(always)]
pub fn add_windows<T: SimdReal>(
    g: &Gridder<T>,
    tile: &ScheduledTile,
    windows: &TileBuffer<T>,
    grid: &SharedSlice<'_, Complex<T>>,
    arrays: usize,
) {
    let [gx, gy, gz] = g.tiling.size;
    let height = g.tiling.taps[1];
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
            for (line, from) in window.chunks_exact(row_len).enumerate() {
                let to = array * gx * gy * gz + placement.row(z + line / height, y + line % height);
                let (from, from_start) = from[..len].split_at(len_to_end);
                // SAFETY: the neighbours that share these cells are added before or after this tile, see merging.rs.
                unsafe {
                    add_cells(grid.part(to + start, from.len()), from);
                    add_cells(grid.part(to, from_start.len()), from_start);
                }
            }
        }
    }
}

/// The interpolation of a sparse tile: copies the cells of each window from the grids, and sums them.
pub struct WindowInterpolationKernel<'a, T> {
    pub gridder: &'a Gridder<T>,
    pub part: &'a TilePart,
    pub grid: &'a [Complex<T>],
    pub values: &'a SharedSlice<'a, Complex<T>>,
    pub arrays: usize,
    pub work: &'a mut ThreadBuffers<T>,
}

impl<T: SimdReal> Kernel for WindowInterpolationKernel<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arith>(mut self) {
        let g = self.gridder;
        let (points, block, layout) = (self.part.points.clone(), g.block_len(), g.layout());
        let order = &g.samples.order[points.clone()];
        (0..self.arrays).for_each(|array| self.copy_windows(array));
        with_vectors!(layout.window_vectors, A, [1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16], N => {
            for first in points.clone().step_by(CHUNK) {
                let count = CHUNK.min(points.end - first);
                let taps = g.taps(first, count, false, &mut self.work.taps);
                for array in 0..self.arrays {
                    let windows = array * g.buffer_len() + (first - points.start) * block;
                    for (i, &key) in g.samples.keys[first..first + count].iter().enumerate() {
                        let (cell, index) = unpack_key(key);
                        let start = windows + i * block + (cell as usize & (layout.cells - 1));
                        // SAFETY: the taps have been written, and the buffer has a vector behind the last window. Every
                        // sample belongs to one part.
                        unsafe {
                            let cells = self.work.cells[start..].as_ptr().cast();
                            let taps = taps.from(i, layout.x_len);
                            let sum = window_sum::<T, A, N>(g.tiling.block_window(), taps, cells);
                            self.values.set(array * g.count() + order[index] as usize, sum);
                        }
                    }
                }
            }
        });
    }
}

impl<T: SimdReal> WindowInterpolationKernel<'_, T> {
    /// Copies the cells of each window from the grid of an array to its buffer, from the vector on in which it starts.
    #[inline(always)]
    fn copy_windows(&mut self, array: usize) {
        let g = self.gridder;
        let [gx, gy, gz] = g.tiling.size;
        let height = g.tiling.taps[1];
        let placement = TilePlacement::new(&g.tiling, &g.schedule().tiles[self.part.tile]);
        let row_len = g.layout().row_vectors * g.layout().cells;
        let points = self.part.points.clone();
        let grid = &self.grid[array * gx * gy * gz..][..gx * gy * gz];
        let cells = &mut self.work.cells[array * g.buffer_len()..][..g.buffer_len()];
        let (windows, behind) = cells.split_at_mut(points.len() * g.block_len());
        let windows = windows.chunks_exact_mut(g.block_len());
        for (&key, window) in g.samples.keys[points].iter().zip(windows) {
            let [x, y, z] = g.tiling.vector_start(unpack_key(key).0 as usize);
            for (line, to) in window.chunks_exact_mut(row_len).enumerate() {
                let row = &grid[placement.row(z + line / height, y + line % height)..][..gx];
                let mut done = 0;
                while done < row_len {
                    let start = (placement.origin[0] + x + done) % gx;
                    let len = (row_len - done).min(gx - start);
                    to[done..done + len].copy_from_slice(&row[start..start + len]);
                    done += len;
                }
            }
        }
        // The last row is loaded in whole vectors from any cell of its first vector on.
        behind[..g.layout().cells].fill(Complex::default());
    }
}
