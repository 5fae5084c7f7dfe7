//! The samples of a plan, sorted for one grid and window, and the buffers of the threads.

use super::schedule::{MergeProgress, Schedule};
use super::sorting::{longest_batch, SortedSamples};
use super::taps::{taps_len, Polynomials, Taps, CHUNK};
use super::tiling::{Tiling, WindowLayout};
use crate::backend::cpu::array_tasks::is_task_per_array;
use crate::backend::cpu::simd::{Level, SimdReal};
use crate::backend::cpu::thread_pool::Threads;
use crate::base::buffer_pool::{Lease, Pool};
use crate::base::error::{bail, try_collect, Result};
use crate::base::memory::{Aligned, AlignedArena};
use crate::base::sizes::{product, sum};
use num_complex::Complex;
use std::sync::Arc;

/// Samples sorted for one grid and window.
pub struct Gridder<T> {
    pub(super) level: Level,
    pub(super) tiling: Tiling,
    pub(super) samples: SortedSamples<T>,
    /// Maximum number of arrays per call.
    arrays: usize,
    /// Whether each array of a call is one task. The buffers of a thread then hold one array.
    has_array_tasks: bool,
    polynomials: Polynomials<T>,
    buffers: Arc<GriddingBuffers<T>>,
    progress: Pool<MergeProgress>,
}

/// The buffers of all threads for one grid and window, for any samples whose batches are no longer.
struct GriddingBuffers<T> {
    sizes: BufferLengths,
    pool: Pool<ThreadBuffers<T>>,
}

/// The buffers of one thread.
pub struct ThreadBuffers<T> {
    /// Tile buffers, one for each array of a call.
    pub cells: Aligned<Complex<T>>,
    /// Accumulated rounding errors of `cells`, for each array. Used if many samples share a position.
    pub compensation: Aligned<Complex<T>>,
    /// Sums of a block, for each array.
    pub blocks: Aligned<Complex<T>>,
    /// The taps of a chunk of samples.
    pub taps: Aligned<T>,
    /// The values of a batch's samples, for each array.
    pub values: Aligned<Complex<T>>,
    /// Column sums of a chunk of samples: see interpolate.rs. Empty if samples do not share rows.
    pub columns: Aligned<T>,
}

/// Lengths of the buffers of one thread, in elements.
#[derive(Clone, Copy)]
struct BufferLengths {
    cells: usize,
    blocks: usize,
    taps: usize,
    values: usize,
    columns: usize,
}

impl BufferLengths {
    /// Computes the lengths for batches of `batch` samples.
    fn new<T>(tiling: &Tiling, batch: usize, arrays: usize) -> BufferLengths {
        let per_array = |len| product(&[arrays, len]);
        BufferLengths {
            cells: per_array(tiling.buffer_len()),
            blocks: per_array(block_len(tiling)),
            taps: taps_len(tiling),
            values: per_array(batch),
            columns: if tiling.shares_rows::<T>() { CHUNK * tiling.layout.columns_len() } else { 0 },
        }
    }

    /// Returns the bytes of one thread.
    fn bytes<T>(&self) -> usize {
        let [cells, blocks, values] = [self.cells, self.blocks, self.values].map(AlignedArena::bytes::<Complex<T>>);
        let [taps, columns] = [self.taps, self.columns].map(AlignedArena::bytes::<T>);
        sum(&[cells, cells, blocks, taps, values, columns])
    }
}

/// The buffers of one thread that contain zeros at first.
struct ZeroedBuffers<T> {
    taps: Aligned<T>,
    columns: Aligned<T>,
}

impl<T: SimdReal> ZeroedBuffers<T> {
    fn new(arena: &mut AlignedArena, sizes: &BufferLengths) -> Self {
        // The taps are followed by zeros that are never overwritten.
        let mut taps = arena.array(sizes.taps);
        taps.fill(T::ZERO);
        // So are the column sums of each sample.
        let mut columns = arena.array(sizes.columns);
        columns.fill(T::ZERO);
        ZeroedBuffers { taps, columns }
    }
}

impl<T: SimdReal> ThreadBuffers<T> {
    fn new(zeroed: ZeroedBuffers<T>, arena: &mut AlignedArena, sizes: &BufferLengths) -> Self {
        ThreadBuffers {
            cells: arena.array(sizes.cells),
            compensation: arena.array(sizes.cells),
            blocks: arena.array(sizes.blocks),
            taps: zeroed.taps,
            values: arena.array(sizes.values),
            columns: zeroed.columns,
        }
    }
}

impl<T: SimdReal> GriddingBuffers<T> {
    fn new(threads: usize, sizes: BufferLengths) -> Result<Self> {
        let mut buffers = Self::allocate(threads, sizes)?;
        let pool = Pool::filled(threads, || Ok(buffers.next().expect("there are buffers for each thread")))?;
        Ok(GriddingBuffers { sizes, pool })
    }

    /// Allocates the buffers of `threads` threads.
    fn allocate(threads: usize, sizes: BufferLengths) -> Result<impl Iterator<Item = ThreadBuffers<T>>> {
        let what = "a tile of the grid for each thread";
        let mut arena = AlignedArena::unwritten(product(&[threads, sizes.bytes::<T>()]), what)?;
        // The zeroed buffers of all threads are next to one another. Otherwise, filling them would touch the memory of
        // all other buffers, which the system clears in pages of 2 MiB: 4 ms for 16 threads and a wide window.
        let zeroed = try_collect(threads, what, (0..threads).map(|_| ZeroedBuffers::new(&mut arena, &sizes)))?;
        Ok(zeroed.into_iter().map(move |zeroed| ThreadBuffers::new(zeroed, &mut arena, &sizes)))
    }
}

/// Returns the maximum number of arrays that a thread processes at once, and of spreadings in progress, in calls with
/// at most `arrays` arrays.
fn concurrent_arrays(has_array_tasks: bool, threads: usize, arrays: usize) -> [usize; 2] {
    if has_array_tasks {
        [1, threads.min(arrays).max(1)]
    } else {
        [arrays, 1]
    }
}

impl<T: SimdReal> Gridder<T> {
    /// Sorts samples, see [`crate::backend::Backend::gridder`].
    pub fn new(
        threads: &Threads,
        level: Level,
        k: &[&[T]],
        grid: &[usize],
        window: &[Vec<f64>],
        arrays: usize,
        previous: Option<&Self>,
    ) -> Result<Self> {
        let count = k[0].len();
        if count > u32::MAX as usize {
            bail!(
                SizeOverflow,
                "{count} samples are more than a plan supports ({}): divide them among several plans",
                u32::MAX
            );
        }
        let tiling = Tiling::new::<T>(level, grid, window[0].len());
        let samples = SortedSamples::new(threads, level, k, grid, &tiling)?;
        let has_array_tasks = is_task_per_array(threads.count(), count, grid, size_of::<Complex<T>>());
        let [together, spreadings] = concurrent_arrays(has_array_tasks, threads.count(), arrays);
        let sizes = BufferLengths::new::<T>(&tiling, longest_batch(&tiling, count), together);
        let suffices =
            |buffers: &GriddingBuffers<T>| buffers.sizes.values >= sizes.values && buffers.sizes.cells >= sizes.cells;
        let buffers = match previous.filter(|previous| suffices(&previous.buffers)) {
            Some(previous) => previous.buffers.clone(),
            None => Arc::new(GriddingBuffers::new(threads.count(), sizes)?),
        };
        let progress = Pool::filled(spreadings, || samples.schedule.progress())?;
        let polynomials = Polynomials::new(window)?;
        Ok(Gridder { level, tiling, samples, arrays, has_array_tasks, polynomials, buffers, progress })
    }

    /// Estimates the bytes held, including the buffers of the threads.
    pub fn bytes(threads: usize, level: Level, samples: usize, grid: &[usize], width: usize, arrays: usize) -> usize {
        let tiling = Tiling::new::<T>(level, grid, width);
        let has_array_tasks = is_task_per_array(threads, samples, grid, size_of::<Complex<T>>());
        let [together, spreadings] = concurrent_arrays(has_array_tasks, threads, arrays);
        let progress = product(&[spreadings, Schedule::bytes_of_progress(&tiling)]);
        let work = BufferLengths::new::<T>(&tiling, longest_batch(&tiling, samples), together).bytes::<T>();
        sum(&[SortedSamples::<T>::bytes(&tiling, samples), progress, product(&[threads, work])])
    }

    /// Returns whether each of several arrays is one task, see [`is_task_per_array`].
    pub fn has_task_per_array(&self, threads: &Threads, arrays: usize) -> bool {
        arrays > 1 && self.has_array_tasks && threads.count() > 1
    }

    /// Borrows the buffers of a thread. More are allocated only if several threads use the plan at once. If that fails,
    /// this waits until a thread returns its buffers.
    pub(super) fn work(&self) -> Lease<'_, ThreadBuffers<T>> {
        let GriddingBuffers { sizes, pool } = &*self.buffers;
        pool.take_or_wait(|| Ok(GriddingBuffers::allocate(1, *sizes)?.next().expect("there are buffers for a thread")))
    }

    /// Borrows the counters of arrived parts for one spreading.
    pub(super) fn progress(&self) -> Lease<'_, MergeProgress> {
        let mut progress = self.progress.take_or_wait(|| self.samples.schedule.progress());
        progress.reset();
        progress
    }

    /// Computes the taps of a chunk of samples, see [`Polynomials::taps`].
    #[inline(always)]
    pub(super) fn taps(&self, first: usize, count: usize, moved: bool, memory: &mut [T]) -> Taps<T> {
        self.polynomials.taps(self.level, &self.tiling, &self.samples, (first, count), moved, memory)
    }

    /// Returns the number of samples.
    pub(super) fn count(&self) -> usize {
        self.samples.order.len()
    }

    /// Returns how windows are placed in vectors.
    pub(super) fn layout(&self) -> WindowLayout {
        self.tiling.layout
    }

    /// Returns the parts of all tiles in their order.
    pub(super) fn schedule(&self) -> &Schedule {
        &self.samples.schedule
    }

    /// Returns the cells of a tile's buffer.
    pub(super) fn buffer_len(&self) -> usize {
        self.tiling.buffer_len()
    }

    /// Returns the cells of a block's sums.
    pub(super) fn block_len(&self) -> usize {
        block_len(&self.tiling)
    }

    /// Returns the number of arrays in `values` samples and in `grid` cells. Panics if they differ.
    pub fn arrays(&self, values: usize, grid: usize) -> usize {
        let cells = self.tiling.size.iter().product::<usize>();
        let arrays = grid / cells;
        assert_eq!(grid, arrays * cells);
        assert_eq!(values, arrays * self.count());
        assert!(arrays <= self.arrays);
        arrays
    }
}

/// Returns the cells of a block's sums: rows of a window, in whole vectors.
fn block_len(tiling: &Tiling) -> usize {
    tiling.layout.row_vectors * tiling.layout.cells * tiling.taps[1] * tiling.taps[2]
}
