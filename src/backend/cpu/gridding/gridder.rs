//! The samples of a plan, sorted for one grid and window, and the memory that threads grid with.

use super::schedule::{Progress, Schedule};
use super::sorting::{SortedSamples, BATCH};
use super::taps::{taps_len, Polynomials, Taps};
use super::tiling::{Layout, Tiling};
use crate::backend::cpu::memory::Aligned;
use crate::backend::cpu::simd::{Level, SimdReal};
use crate::backend::cpu::thread_pool::Threads;
use crate::base::buffer_pool::{Lease, Pool};
use crate::base::error::{bail, Result};
use crate::base::sizes::{product, sum};
use num_complex::Complex;

/// Samples sorted for one grid and window.
pub struct Gridder<T> {
    pub(super) level: Level,
    pub(super) tiling: Tiling,
    polynomials: Polynomials<T>,
    pub(super) samples: SortedSamples<T>,
    /// Arrays that come at once, at most.
    arrays: usize,
    work: Pool<Work<T>>,
    progress: Pool<Progress>,
}

/// Memory of one thread.
pub struct Work<T> {
    /// Tile buffers, one for each array of a batch.
    pub cells: Aligned<Complex<T>>,
    /// Where many samples share a place, for each array: what rounding took from `cells`, and the sums of a block.
    pub lost: Aligned<Complex<T>>,
    pub blocks: Aligned<Complex<T>>,
    /// The taps of a chunk of samples.
    pub taps: Aligned<T>,
    /// The values of a batch's samples, for each array.
    pub values: Aligned<Complex<T>>,
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
        let samples = SortedSamples::new(threads, level, k, grid, width, &tiling)?;
        let polynomials = Polynomials::new(window)?;
        let (work, progress) = (Pool::new(), Pool::new());
        let gridder = Gridder { level, tiling, polynomials, samples, arrays, work, progress };
        let work = Pool::filled(threads.count(), || gridder.make_work())?;
        let progress = Pool::filled(1, || gridder.samples.schedule.progress())?;
        Ok(Gridder { work, progress, ..gridder })
    }

    /// Bytes held, with the memory of the threads.
    pub fn bytes(threads: usize, level: Level, samples: usize, grid: &[usize], width: usize, arrays: usize) -> usize {
        let tiling = Tiling::new::<T>(level, grid, width);
        let cells = sum(&[2 * buffer_len(&tiling), block_len(&tiling), BATCH.min(samples)]);
        let cells = product(&[arrays, cells, size_of::<Complex<T>>()]);
        let work = cells.saturating_add(taps_len(&tiling) * size_of::<T>());
        sum(&[SortedSamples::<T>::bytes(&tiling, samples), product(&[threads, work])])
    }

    fn make_work(&self) -> Result<Work<T>> {
        let arrays = |len| Aligned::zeros(self.arrays * len, "a tile of the grid");
        Ok(Work {
            cells: arrays(buffer_len(&self.tiling))?,
            lost: arrays(buffer_len(&self.tiling))?,
            blocks: arrays(block_len(&self.tiling))?,
            taps: Aligned::zeros(taps_len(&self.tiling), "the taps of samples")?,
            values: arrays(BATCH.min(self.count()))?,
        })
    }

    /// A thread's memory. More of it is made only when the plan is used from several threads at once; where that fails,
    /// this waits until another thread returns its memory.
    pub(super) fn work(&self) -> Lease<'_, Work<T>> {
        self.work.take_or_wait(|| self.make_work())
    }

    /// What a spreading counts the arrived parts in.
    pub(super) fn progress(&self) -> Lease<'_, Progress> {
        let mut progress = self.progress.take_or_wait(|| self.samples.schedule.progress());
        progress.reset();
        progress
    }

    /// See [`Polynomials::taps`].
    #[inline(always)]
    pub(super) fn taps(&self, first: usize, count: usize, moved: bool, memory: &mut [T]) -> Taps<T> {
        self.polynomials.taps(self.level, &self.tiling, &self.samples, (first, count), moved, memory)
    }

    /// The number of samples.
    pub(super) fn count(&self) -> usize {
        self.samples.order.len()
    }

    pub(super) fn layout(&self) -> Layout {
        self.tiling.layout
    }

    pub(super) fn schedule(&self) -> &Schedule {
        &self.samples.schedule
    }

    pub(super) fn buffer_len(&self) -> usize {
        buffer_len(&self.tiling)
    }

    pub(super) fn block_len(&self) -> usize {
        block_len(&self.tiling)
    }

    /// The number of arrays in `values` samples and in `grid` cells, which must agree.
    pub(super) fn arrays(&self, values: usize, grid: usize) -> usize {
        let cells = self.tiling.size.iter().product::<usize>();
        let arrays = grid / cells;
        assert_eq!(grid, arrays * cells);
        assert_eq!(values, arrays * self.count());
        assert!(arrays <= self.arrays);
        arrays
    }
}

/// Cells of a tile's buffer.
fn buffer_len(tiling: &Tiling) -> usize {
    tiling.extent.iter().product()
}

/// Cells of a block's sums: rows of a window, in whole vectors.
fn block_len(tiling: &Tiling) -> usize {
    tiling.layout.row_vectors * tiling.layout.cells * tiling.taps[1] * tiling.taps[2]
}
