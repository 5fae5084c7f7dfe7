//! The samples of a plan, sorted for one grid and window, and the memory that threads grid with.

use super::sorting::{Point, SortedSamples, Tile};
use super::tiling::{Layout, Tiling};
use crate::backend::cpu::memory::Aligned;
use crate::backend::cpu::simd::{Level, SimdReal};
use crate::backend::cpu::thread_pool::Threads;
use crate::base::buffer_pool::{Lease, Pool};
use crate::base::error::{bail, try_reserve, Result};
use crate::base::sizes::{product, sum};
use num_complex::Complex;
use std::ops::Range;

/// Samples whose taps are computed before any of them is used.
pub const CHUNK: usize = 32;
/// Rows of a tile that are prefetched ahead of the row in work.
const PREFETCHED_ROWS: usize = 6;

/// Samples sorted for one grid and window.
pub struct Gridder<T> {
    pub(super) level: Level,
    pub(super) layout: Layout,
    grid: [usize; 3],
    /// Taps of each axis; 1 along an axis that is not there.
    pub(super) taps: [usize; 3],
    /// Window polynomials, [degree + 1][taps, zeros up to whole vectors], highest power first.
    pub(super) polynomials: Vec<T>,
    /// See [`SortedSamples`], also for what follows.
    pub(super) points: Vec<Point<T>>,
    pub(super) order: Vec<u32>,
    pub(super) tiles: Vec<Tile>,
    pub(super) runs: Vec<Range<usize>>,
    pub(super) colours: Vec<Range<usize>>,
    /// See [`Tiling`].
    pub(super) extent: [usize; 3],
    reach: [usize; 3],
    /// Arrays that come at once, at most.
    arrays: usize,
    work: Pool<Work<T>>,
}

/// Memory of one thread.
pub struct Work<T> {
    /// Tile buffers, one for each array of a batch.
    pub cells: Aligned<Complex<T>>,
    /// Where there are runs, for each array: what rounding took from `cells`, and the sums of a block.
    pub lost: Aligned<Complex<T>>,
    pub blocks: Aligned<Complex<T>>,
    /// The taps of a chunk of samples.
    pub taps: Aligned<T>,
}

impl<T: SimdReal> Gridder<T> {
    /// Sorts samples; see [`crate::backend::Backend::gridder`].
    pub fn new(
        threads: &Threads,
        level: Level,
        k: &[&[T]],
        grid: &[usize],
        window: &[Vec<f64>],
        arrays: usize,
    ) -> Result<Self> {
        let (count, width) = (k[0].len(), window[0].len());
        if count > u32::MAX as usize {
            bail!(SizeOverflow, "{count} samples are more than a plan takes ({}): split them", u32::MAX);
        }
        let tiling = Tiling::new::<T>(level, grid, width);
        let SortedSamples { points, order, tiles, runs, colours } =
            SortedSamples::new(threads, k, grid, width, &tiling)?;
        let Tiling { layout, size, taps, reach, extent, .. } = tiling;
        let polynomials = in_whole_vectors(window, layout.tap_vectors * layout.lanes)?;
        let gridder = Gridder {
            level,
            layout,
            grid: size,
            taps,
            polynomials,
            points,
            order,
            tiles,
            runs,
            colours,
            extent,
            reach,
            arrays,
            work: Pool::new(),
        };
        let work = Pool::filled(threads.count(), || gridder.make_work())?;
        Ok(Gridder { work, ..gridder })
    }

    /// Bytes held, with the memory of the threads: half of that is needed only where there are runs.
    pub fn bytes(threads: usize, level: Level, samples: usize, grid: &[usize], width: usize, arrays: usize) -> usize {
        let tiling = Tiling::new::<T>(level, grid, width);
        let Tiling { layout, taps, extent, .. } = tiling;
        let block = layout.row_vectors * layout.cells * taps[1] * taps[2];
        let cells = product(&[arrays, 2 * extent.iter().product::<usize>() + block, size_of::<Complex<T>>()]);
        let work = cells.saturating_add(CHUNK * layout.record * size_of::<T>());
        // Tiles, and their numbers while samples are sorted.
        let tiles = product(&tiling.counts()).saturating_mul(size_of::<Tile>() + 2 * size_of::<u64>());
        let points = product(&[samples, size_of::<Point<T>>() + size_of::<u32>()]);
        sum(&[points, tiles, product(&[threads, work])])
    }

    fn make_work(&self) -> Result<Work<T>> {
        let runs = self.tiles.iter().any(|tile| self.has_runs(tile));
        let where_runs = |len| if runs { self.arrays * len } else { 0 };
        Ok(Work {
            cells: Aligned::zeros(self.arrays * self.buffer_len(), "a tile of the grid")?,
            lost: Aligned::zeros(where_runs(self.buffer_len()), "a tile of the grid")?,
            blocks: Aligned::zeros(where_runs(self.block_len()), "a tile of the grid")?,
            taps: Aligned::zeros(CHUNK * self.layout.record, "the taps of samples")?,
        })
    }

    /// A thread's memory. More of it is made only when the plan is used from several threads at once; where that fails,
    /// this waits until another thread returns its memory.
    pub(super) fn work(&self) -> Lease<'_, Work<T>> {
        self.work.take_or_wait(|| self.make_work())
    }

    pub(super) fn buffer_len(&self) -> usize {
        self.extent.iter().product()
    }

    /// Cells of a block's sums: rows of a window, in whole vectors.
    pub(super) fn block_len(&self) -> usize {
        self.layout.row_vectors * self.layout.cells * self.taps[1] * self.taps[2]
    }

    pub(super) fn has_runs(&self, tile: &Tile) -> bool {
        self.runs[tile.runs.clone()].first().is_some_and(|run| !run.is_empty())
    }

    /// The number of arrays in `values` samples and in `grid` cells, which must agree.
    pub(super) fn arrays(&self, values: usize, grid: usize) -> usize {
        let cells = self.grid.iter().product::<usize>();
        let arrays = grid / cells;
        assert_eq!(grid, arrays * cells);
        assert_eq!(values, arrays * self.order.len());
        assert!(arrays <= self.arrays);
        arrays
    }

    /// Calls `f(grid index, buffer index, length)` for each contiguous part of the grid that a tile's buffer covers,
    /// and `prefetch(grid index)` some rows before.
    #[inline(always)]
    pub(super) fn rows(&self, tile: &Tile, mut prefetch: impl FnMut(usize), mut f: impl FnMut(usize, usize, usize)) {
        let [gx, gy, gz] = self.grid;
        let [width, height, depth] = self.reach;
        let x = tile.origin[0];
        let first = width.min(gx - x);
        let row_of = |z: usize, y: usize| ((tile.origin[2] + z) % gz * gy + (tile.origin[1] + y) % gy) * gx;
        for z in 0..depth {
            for y in 0..height {
                let row = row_of(z, y);
                let next = y + PREFETCHED_ROWS;
                let next = if next < height { row_of(z, next) } else { row_of(z + 1, next - height) };
                (x..x + first).step_by(8).for_each(|x| prefetch(next + x));
                let at = (z * self.extent[1] + y) * self.extent[0];
                f(row + x, at, first);
                if first < width {
                    f(row, at + first, width - first);
                }
            }
        }
    }
}

/// Rows of coefficients, each with zeros up to `len` elements.
fn in_whole_vectors<T: SimdReal>(window: &[Vec<f64>], len: usize) -> Result<Vec<T>> {
    let mut polynomials = try_reserve(window.len() * len, "the window's polynomials")?;
    for row in window {
        polynomials.extend((0..len).map(|j| T::of(*row.get(j).unwrap_or(&0.0))));
    }
    Ok(polynomials)
}
