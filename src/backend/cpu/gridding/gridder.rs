//! The samples of a plan, sorted for one grid and window, and the buffers of the threads.

use super::merging::{MergeProgress, TileBuffer};
use super::schedule::{PartOrder, Schedule};
use super::sorting::{longest_batch, SortedSamples};
use super::taps::{taps_len, Polynomials, Taps, CHUNK};
use super::tiling::{Tiling, WindowLayout};
use crate::backend::cpu::array_tasks::is_task_per_array;
use crate::backend::cpu::device::Cpu;
use crate::backend::cpu::reached_columns::ReachedColumns;
use crate::backend::cpu::simd::{Level, SimdReal};
use crate::backend::threads::Threads;
use crate::base::buffer_pool::{Lease, Pool};
use crate::base::error::{bail, try_collect, Result};
use crate::base::memory::{Aligned, AlignedArena};
use crate::base::sizes::{product, sum};
use num_complex::Complex;
use std::sync::Arc;

/// Name of the buffers in an error.
const TILE_BUFFERS: &str = "a tile of the grid for each thread";

/// Samples sorted for one grid and window.
pub struct Gridder<T> {
    pub(super) level: Level,
    pub(super) tiling: Tiling,
    pub(super) samples: SortedSamples<T>,
    /// Maximum number of arrays per call.
    arrays: usize,
    /// Whether each array of a call is one task. The buffers of a thread then hold one array.
    has_array_tasks: bool,
    /// Whether the threads share the grid's rows after all tiles are complete. Otherwise, each tile is added to the
    /// grid when the neighbours before it have been added. The bits are the same.
    ///
    /// With few tiles of a colour, most threads would wait. In 3D, transforms of few samples then take up to three
    /// times as long on 16 threads, and up to 1.5 times on 2. A plan with a memory limit does not share rows, because
    /// the totals of all tiles take memory.
    pub(super) merges_by_rows: bool,
    /// Whether the grid is cleared at once, because most tiles are empty or windows have few cells. Otherwise the first
    /// tile that reaches a cell stores its sum there.
    pub(super) clears_first: bool,
    polynomials: Polynomials<T>,
    buffers: Arc<GriddingBuffers<T>>,
}

/// The buffers of all threads for one grid and window, for any samples whose batches are no longer and whose tiles have
/// no more parts.
struct GriddingBuffers<T> {
    shape: CallShape,
    sizes: BufferLengths,
    pool: Pool<ThreadBuffers<T>>,
    progress: Pool<MergeProgress<T>>,
}

/// The buffers of one thread.
pub struct ThreadBuffers<T> {
    /// Tile buffers, one for each array of a call.
    pub cells: TileBuffer<T>,
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

/// Maximum number of bytes of the buffers of one spreading that only keep threads from waiting.
const MAX_SPARE_BYTES: usize = 16 << 20;
/// Minimum number of the grid's cells for each cell of a window if the grid is cleared at once. Cells of more windows
/// should be in the cache when they are added to.
const CELLS_PER_WINDOW_CELL: usize = 4;
/// Minimum number of threads for each tile of a colour if the grid's rows are shared, in 2D and in 3D. With fewer,
/// adding whole tiles keeps enough of them busy. Measured with 2, 8 and 16 threads (Intel, AVX-512).
const THREADS_PER_TILE: [usize; 2] = [4, 2];
/// Minimum number of threads for each array if several arrays are one task each, since threads that wait process other
/// arrays.
const THREADS_PER_ARRAY: usize = 4;
/// Maximum number of bytes of the totals of all tiles, for each thread, if the grid's rows are shared. With more, there
/// is no gain on 2 threads, and many arrays would take much memory.
const MAX_TOTALS_PER_THREAD: usize = 12 << 20;

/// Number of threads of a gridder, and how a call divides its arrays among them.
#[derive(Clone, Copy)]
struct CallShape {
    threads: usize,
    /// Maximum number of arrays that a thread processes at once.
    together: usize,
    /// Maximum number of spreadings in progress.
    spreadings: usize,
    /// Whether no buffers are kept for the totals of all tiles.
    saves_memory: bool,
}

impl CallShape {
    /// Returns the shape of calls with at most `arrays` arrays, each of which may be one task.
    fn new(cpu: &Cpu, has_array_tasks: bool, arrays: usize) -> CallShape {
        let threads = cpu.threads.count();
        let (together, spreadings) = if has_array_tasks { (1, threads.min(arrays).max(1)) } else { (arrays, 1) };
        CallShape { threads, together, spreadings, saves_memory: cpu.saves_memory }
    }

    /// Returns whether tiles are merged by rows: see [`Gridder::merges_by_rows`].
    fn merges_by_rows<T>(&self, tiling: &Tiling) -> bool {
        let counts = tiling.counts();
        let tiles = product(&counts);
        let of_one_colour = tiles >> counts.iter().filter(|&&count| count > 1).count();
        let per_tile = THREADS_PER_TILE[usize::from(tiling.taps[2] > 1)];
        let per_array = if self.spreadings > 1 { THREADS_PER_ARRAY } else { 2 };
        let threads = self.threads / self.spreadings;
        let bytes = product(&[tiles, self.together, tiling.buffer_len(), size_of::<Complex<T>>()]);
        tiles > 1
            && !self.saves_memory
            && threads >= product(&[per_tile, of_one_colour]).max(per_array)
            && bytes <= product(&[threads, MAX_TOTALS_PER_THREAD])
    }

    /// Returns the order of the parts of `samples` samples.
    fn part_order<T>(&self, tiling: &Tiling, samples: usize) -> PartOrder {
        PartOrder::choose::<T>(tiling, samples, self.together)
    }
}

/// Lengths in elements and numbers of buffers.
#[derive(Clone, Copy)]
struct BufferLengths {
    cells: usize,
    blocks: usize,
    taps: usize,
    values: usize,
    columns: usize,
    /// Number of tile buffers of a spreading, apart from those of the threads.
    spare: usize,
    tiles: usize,
}

impl BufferLengths {
    /// Computes the lengths for `samples` samples.
    fn new<T>(tiling: &Tiling, samples: usize, shape: CallShape) -> BufferLengths {
        let per_array = |len| product(&[shape.together, len]);
        let cells = per_array(tiling.buffer_len());
        // A single thread never waits for another.
        let helpful = if shape.threads > 1 { shape.threads.div_ceil(shape.spreadings) } else { 0 };
        let helpful = helpful.min(MAX_SPARE_BYTES / AlignedArena::bytes::<Complex<T>>(cells).max(1));
        let tiles = product(&tiling.counts());
        let totals = if shape.merges_by_rows::<T>(tiling) { tiles } else { 0 };
        BufferLengths {
            cells,
            blocks: per_array(tiling.block_len()),
            taps: taps_len(tiling),
            values: per_array(longest_batch(tiling, samples)),
            columns: if tiling.shares_rows::<T>() { CHUNK * tiling.layout.columns_len() } else { 0 },
            spare: shape.part_order::<T>(tiling, samples).most_left_sums(tiling, samples) + helpful.max(totals),
            tiles,
        }
    }

    /// Returns the bytes of one thread.
    fn bytes<T>(&self) -> usize {
        let [cells, blocks, values] = [self.cells, self.blocks, self.values].map(AlignedArena::bytes::<Complex<T>>);
        let [taps, columns] = [self.taps, self.columns].map(AlignedArena::bytes::<T>);
        sum(&[cells, cells, blocks, taps, values, columns])
    }

    /// Returns the bytes of the additional tile buffers of one spreading.
    fn spare_bytes<T>(&self) -> usize {
        product(&[self.spare, AlignedArena::bytes::<Complex<T>>(self.cells)])
    }

    /// Returns whether buffers of these lengths are long enough for others.
    fn suffices(&self, other: &BufferLengths) -> bool {
        let of = |lengths: &BufferLengths| [lengths.cells, lengths.values, lengths.spare, lengths.tiles];
        of(self).iter().zip(of(other)).all(|(this, other)| *this >= other)
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
    fn new(shape: CallShape, sizes: BufferLengths) -> Result<Self> {
        let mut buffers = Self::allocate(shape.threads, sizes)?;
        let pool = Pool::filled(shape.threads, || Ok(buffers.next().expect("there are buffers for each thread")))?;
        let progress = Pool::filled(shape.spreadings, || Self::progress(shape.threads, sizes))?;
        Ok(GriddingBuffers { shape, sizes, pool, progress })
    }

    /// Allocates the buffers of `threads` threads.
    fn allocate(threads: usize, sizes: BufferLengths) -> Result<impl Iterator<Item = ThreadBuffers<T>>> {
        let mut arena = AlignedArena::unwritten(product(&[threads, sizes.bytes::<T>()]), TILE_BUFFERS)?;
        // The zeroed buffers of all threads are next to one another. Otherwise, filling them would touch the memory of
        // all other buffers, which the system clears in pages of 2 MiB: 4 ms for 16 threads and a wide window.
        let zeroed = try_collect(threads, TILE_BUFFERS, (0..threads).map(|_| ZeroedBuffers::new(&mut arena, &sizes)))?;
        Ok(zeroed.into_iter().map(move |zeroed| ThreadBuffers::new(zeroed, &mut arena, &sizes)))
    }

    /// Allocates what one spreading by `threads` threads needs.
    fn progress(threads: usize, sizes: BufferLengths) -> Result<MergeProgress<T>> {
        let mut arena = AlignedArena::unwritten(sizes.spare_bytes::<T>(), TILE_BUFFERS)?;
        MergeProgress::new(sizes.tiles, threads, (0..sizes.spare).map(|_| arena.array(sizes.cells)))
    }
}

impl<T: SimdReal> Gridder<T> {
    /// Sorts samples, see [`crate::backend::Backend::gridder`].
    pub fn new(
        cpu: &Cpu,
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
        let (threads, level) = (&cpu.threads, cpu.level);
        let tiling = Tiling::new::<T>(level, grid, window[0].len());
        let has_array_tasks = is_task_per_array(threads.count(), count, grid, size_of::<Complex<T>>());
        let shape = CallShape::new(cpu, has_array_tasks, arrays);
        let samples = SortedSamples::new(threads, level, k, grid, &tiling, shape.part_order::<T>(&tiling, count))?;
        let sizes = BufferLengths::new::<T>(&tiling, count, shape);
        let suffices = |buffers: &&Arc<GriddingBuffers<T>>| {
            buffers.shape.spreadings >= shape.spreadings && buffers.sizes.suffices(&sizes)
        };
        let buffers = match previous.map(|previous| &previous.buffers).filter(suffices) {
            Some(buffers) => buffers.clone(),
            None => Arc::new(GriddingBuffers::new(shape, sizes)?),
        };
        let polynomials = Polynomials::new(window)?;
        let tiles = &samples.schedule.tiles;
        let merges_by_rows = shape.merges_by_rows::<T>(&tiling);
        let empty_tiles = tiles.iter().filter(|tile| tile.points.is_empty()).count();
        let of_windows = product(&[CELLS_PER_WINDOW_CELL, count, tiling.block_len()]);
        let clears_first = 2 * empty_tiles >= tiles.len() || of_windows <= product(grid);
        Ok(Gridder {
            level,
            tiling,
            samples,
            arrays,
            has_array_tasks,
            merges_by_rows,
            clears_first,
            polynomials,
            buffers,
        })
    }

    /// Estimates the bytes held, including the buffers of the threads.
    pub fn bytes(cpu: &Cpu, samples: usize, grid: &[usize], width: usize, arrays: usize) -> usize {
        let threads = cpu.threads.count();
        let tiling = Tiling::new::<T>(cpu.level, grid, width);
        let has_array_tasks = is_task_per_array(threads, samples, grid, size_of::<Complex<T>>());
        let shape = CallShape::new(cpu, has_array_tasks, arrays);
        let sizes = BufferLengths::new::<T>(&tiling, samples, shape);
        let progress = sum(&[MergeProgress::<T>::bytes(sizes.tiles, threads + sizes.spare), sizes.spare_bytes::<T>()]);
        let work = [product(&[threads, sizes.bytes::<T>()]), product(&[shape.spreadings, progress])];
        sum(&[SortedSamples::<T>::bytes(&tiling, samples), sum(&work)])
    }

    /// Returns whether each of several arrays is one task, see [`is_task_per_array`].
    pub fn has_task_per_array(&self, threads: &Threads, arrays: usize) -> bool {
        arrays > 1 && self.has_array_tasks && threads.count() > 1
    }

    /// Borrows the buffers of a thread. More are allocated only if several threads use the plan at once. If that fails,
    /// this waits until a thread returns its buffers.
    pub(super) fn work(&self) -> Lease<'_, ThreadBuffers<T>> {
        let GriddingBuffers { sizes, pool, .. } = &*self.buffers;
        pool.take_or_wait(|| Ok(GriddingBuffers::allocate(1, *sizes)?.next().expect("there are buffers for a thread")))
    }

    /// Borrows what one spreading needs, as [`Gridder::work`] does.
    pub(super) fn progress(&self) -> Lease<'_, MergeProgress<T>> {
        let GriddingBuffers { shape, sizes, progress, .. } = &*self.buffers;
        let mut progress = progress.take_or_wait(|| GriddingBuffers::progress(shape.threads, *sizes));
        progress.reset(self.schedule());
        progress
    }

    /// Computes the taps of a chunk of samples, see [`Polynomials::taps`].
    #[inline(always)]
    pub(super) fn taps(&self, first: usize, count: usize, moved: bool, memory: &mut [T]) -> Taps<T> {
        self.polynomials.taps(self.level, &self.tiling, &self.samples, (first, count), moved, memory)
    }

    /// Returns the columns of the grid that windows reach.
    pub fn reached(&self) -> &ReachedColumns {
        &self.samples.reached
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
        self.tiling.block_len()
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
