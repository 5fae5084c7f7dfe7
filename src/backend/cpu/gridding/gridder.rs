//! The samples of a plan, sorted for one grid and window, and the memory that threads grid with.

use super::schedule::{MergeProgress, Schedule};
use super::sorting::{longest_batch, SortedSamples};
use super::taps::{taps_len, Polynomials, Taps};
use super::tiling::{Tiling, WindowLayout};
use crate::backend::cpu::simd::{Level, SimdReal};
use crate::backend::cpu::thread_pool::Threads;
use crate::base::buffer_pool::{Lease, Pool};
use crate::base::error::{bail, Result};
use crate::base::memory::{Aligned, AlignedArena};
use crate::base::sizes::{product, sum};
use num_complex::Complex;
use std::sync::Arc;

/// Samples sorted for one grid and window.
pub struct Gridder<T> {
    pub(super) level: Level,
    pub(super) tiling: Tiling,
    pub(super) samples: SortedSamples<T>,
    /// Arrays that come at once, at most.
    arrays: usize,
    polynomials: Polynomials<T>,
    memory: Arc<GriddingBuffers<T>>,
    progress: Pool<MergeProgress>,
}

/// What threads grid with: of one grid and window, for any samples whose batches are no longer.
struct GriddingBuffers<T> {
    sizes: BufferLengths,
    pool: Pool<ThreadBuffers<T>>,
}

/// Memory of one thread.
pub struct ThreadBuffers<T> {
    /// Tile buffers, one for each array of a batch.
    pub cells: Aligned<Complex<T>>,
    /// Where many samples share a place, for each array: what rounding took from `cells`, and the sums of a block.
    pub compensation: Aligned<Complex<T>>,
    pub blocks: Aligned<Complex<T>>,
    /// The taps of a chunk of samples.
    pub taps: Aligned<T>,
    /// The values of a batch's samples, for each array.
    pub values: Aligned<Complex<T>>,
}

/// Elements of each of its arrays.
#[derive(Clone, Copy)]
struct BufferLengths {
    cells: usize,
    blocks: usize,
    taps: usize,
    values: usize,
}

impl BufferLengths {
    /// For batches of so many samples.
    fn new(tiling: &Tiling, batch: usize, arrays: usize) -> BufferLengths {
        let of_arrays = |len| product(&[arrays, len]);
        BufferLengths {
            cells: of_arrays(buffer_len(tiling)),
            blocks: of_arrays(block_len(tiling)),
            taps: taps_len(tiling),
            values: of_arrays(batch),
        }
    }

    /// Bytes for one thread.
    fn bytes<T>(&self) -> usize {
        let [cells, blocks, values] = [self.cells, self.blocks, self.values].map(AlignedArena::bytes::<Complex<T>>);
        sum(&[cells, cells, blocks, AlignedArena::bytes::<T>(self.taps), values])
    }
}

impl<T: SimdReal> ThreadBuffers<T> {
    fn new(room: &mut AlignedArena, sizes: &BufferLengths) -> Self {
        // Taps are followed by zeros that nobody writes.
        let mut taps = room.array(sizes.taps);
        taps.fill(T::ZERO);
        ThreadBuffers {
            cells: room.array(sizes.cells),
            compensation: room.array(sizes.cells),
            blocks: room.array(sizes.blocks),
            taps,
            values: room.array(sizes.values),
        }
    }
}

impl<T: SimdReal> GriddingBuffers<T> {
    fn new(threads: usize, sizes: BufferLengths) -> Result<Self> {
        let mut room = Self::room(threads, &sizes)?;
        let pool = Pool::filled(threads, || Ok(ThreadBuffers::new(&mut room, &sizes)))?;
        Ok(GriddingBuffers { sizes, pool })
    }

    /// Room for so many threads.
    fn room(threads: usize, sizes: &BufferLengths) -> Result<AlignedArena> {
        AlignedArena::unwritten(product(&[threads, sizes.bytes::<T>()]), "a tile of the grid for each thread")
    }
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
        before: Option<&Self>,
    ) -> Result<Self> {
        let count = k[0].len();
        if count > u32::MAX as usize {
            bail!(SizeOverflow, "{count} samples are more than a plan takes ({}): split them", u32::MAX);
        }
        let tiling = Tiling::new::<T>(level, grid, window[0].len());
        let samples = SortedSamples::new(threads, level, k, grid, &tiling)?;
        let sizes = BufferLengths::new(&tiling, longest_batch(count), arrays);
        let memory = match before.filter(|before| before.memory.sizes.values >= sizes.values) {
            Some(before) => before.memory.clone(),
            None => Arc::new(GriddingBuffers::new(threads.count(), sizes)?),
        };
        let progress = Pool::filled(1, || samples.schedule.progress())?;
        Ok(Gridder { level, tiling, samples, arrays, polynomials: Polynomials::new(window)?, memory, progress })
    }

    /// Bytes held, with the memory of the threads.
    pub fn bytes(threads: usize, level: Level, samples: usize, grid: &[usize], width: usize, arrays: usize) -> usize {
        let tiling = Tiling::new::<T>(level, grid, width);
        let work = BufferLengths::new(&tiling, longest_batch(samples), arrays).bytes::<T>();
        sum(&[SortedSamples::<T>::bytes(&tiling, samples), product(&[threads, work])])
    }

    /// A thread's memory. More of it is made only when the plan is used from several threads at once; where that fails,
    /// this waits until another thread returns its memory.
    pub(super) fn work(&self) -> Lease<'_, ThreadBuffers<T>> {
        let GriddingBuffers { sizes, pool } = &*self.memory;
        pool.take_or_wait(|| Ok(ThreadBuffers::new(&mut GriddingBuffers::<T>::room(1, sizes)?, sizes)))
    }

    /// What a spreading counts the arrived parts in.
    pub(super) fn progress(&self) -> Lease<'_, MergeProgress> {
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

    pub(super) fn layout(&self) -> WindowLayout {
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
