//! Sorts samples by tile, and within a tile by the vector in which their windows start, several thousand at a time.

use super::keys::{pack_key, unpack_key, VectorDigits, BATCH};
use super::schedule::{longest_part, PartOrder, Schedule, TilePlacement};
use super::tiling::{Tiling, CACHE_LINE};
use crate::backend::cpu::reached_columns::{ColumnMarks, ReachedColumns};
use crate::backend::cpu::simd::{prefetch, Arith, Kernel, Level, SimdReal};
use crate::backend::threads::task_order::nth_in_lanes;
use crate::backend::threads::Threads;
use crate::base::buffer_pool::Pool;
use crate::base::error::{bail, checked_product, try_vec, Result};
use crate::base::memory::{Aligned, AlignedArena};
use crate::base::sizes::{product, sum};
use crate::base::workers::SharedSlice;
use std::ops::Range;

/// Number of elements that may be read behind the last sample: a vector of the widest unit.
const PADDING: usize = 16;
/// Number of samples that are located at once.
const LOCATE_CHUNK: usize = 32;
/// Number of adjacent samples that are counted and placed at once if they share a tile, as samples of a readout mostly
/// do.
const TILE_ROW: usize = 8;
/// Upper limit of the cells of an axis, see [`TileLocator`].
const MAX_CELLS: f64 = (1 << 27) as f64;
/// Minimum number of samples whose tiles one task finds, with few tiles and with many.
const MIN_BLOCK: usize = 1 << 10;
const CROWDED_BLOCK: usize = 1 << 12;
/// Number of such tasks. With three instead of one for each of 16 threads, samples are placed in half of the time; with
/// eight it takes a fifth longer.
const BLOCKS_PER_THREAD: usize = 3;
const MIN_BLOCKS: usize = 32;
const MAX_BLOCKS: usize = 128;

/// Samples in the order of gridding.
pub struct SortedSamples<T> {
    /// The sample's offset in the first cell of its window, as the polynomials' variable, for each axis.
    pub t: [Aligned<T>; 3],
    /// The cell of the tile's buffer in which the sample's window starts, and its index in its batch, see
    /// [`unpack_key`].
    pub keys: Aligned<u32>,
    /// Samples of each tile in the caller's order, of which a batch is a part.
    pub order: Aligned<u32>,
    pub schedule: Schedule,
    /// Columns of the grid that the samples' windows reach.
    pub reached: ReachedColumns,
}

impl<T: SimdReal> SortedSamples<T> {
    /// Sorts samples at `k`; `grid` appears in an error.
    pub fn new(
        threads: &Threads,
        level: Level,
        k: &[&[T]],
        grid: &[usize],
        tiling: &Tiling,
        part_order: PartOrder,
    ) -> Result<Self> {
        let tiles = checked_product(&tiling.counts(), "the tiles of the grid")?;
        if tiles > u32::MAX as usize {
            bail!(
                SizeOverflow,
                "a grid of {grid:?} has more tiles than a plan supports ({}): use a smaller image",
                u32::MAX
            );
        }
        if tiling.size.iter().any(|&cells| cells as f64 >= MAX_CELLS) {
            bail!(SizeOverflow, "a grid of {grid:?} has an axis of 2^27 cells or more: use a smaller image");
        }
        let windows = Windows { k, width: tiling.width(), size: tiling.size };
        let mut samples = Self::unsorted(windows.samples(), k.len())?;
        let starts = sort_by_tile(threads, level, &windows, tiling, tiles, &mut samples)?;
        samples.schedule = Schedule::new(tiling, &starts, &samples.order, part_order)?;
        sort_parts(threads, level, &windows, tiling, &mut samples)?;
        Ok(samples)
    }

    /// Allocates the arrays for `samples` samples and the elements that may be read behind them.
    fn unsorted(samples: usize, axes: usize) -> Result<Self> {
        let padded = samples + PADDING;
        let mut arena = AlignedArena::unwritten(Self::bytes_of_arrays(samples, axes), "the sorted samples")?;
        Ok(SortedSamples {
            t: [0, 1, 2].map(|axis| arena.array(if axis < axes { padded } else { 0 })),
            keys: arena.array(padded),
            order: arena.array(samples),
            schedule: Schedule::empty(),
            reached: ReachedColumns::none(),
        })
    }

    /// Returns the bytes of the arrays.
    fn bytes_of_arrays(samples: usize, axes: usize) -> usize {
        let padded = samples + PADDING;
        let offsets = product(&[axes, AlignedArena::bytes::<T>(padded)]);
        sum(&[offsets, AlignedArena::bytes::<u32>(padded), AlignedArena::bytes::<u32>(samples)])
    }

    /// Estimates the bytes held for `samples` samples on a grid with this tiling.
    pub fn bytes(tiling: &Tiling, samples: usize) -> usize {
        let axes = tiling.taps.iter().filter(|&&taps| taps > 1).count();
        sum(&[
            Self::bytes_of_arrays(samples, axes),
            Schedule::bytes(tiling, samples),
            ReachedColumns::bytes(tiling.size),
        ])
    }
}

/// Returns the batches of a part: the smallest number, of about equal size.
pub fn batches(points: &Range<usize>) -> impl ExactSizeIterator<Item = Range<usize>> {
    let (start, len) = (points.start, points.len());
    let count = len.div_ceil(BATCH);
    (0..count).map(move |i| start + len * i / count..start + len * (i + 1) / count)
}

/// Returns the batches of a part with these numbers.
pub fn numbered_batches(points: &Range<usize>, numbers: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    batches(points).skip(numbers.start).take(numbers.len())
}

/// Returns the maximum number of samples of a batch, among `samples` samples.
pub fn longest_batch(tiling: &Tiling, samples: usize) -> usize {
    BATCH.min(longest_part(tiling, samples)).min(samples)
}

/// The positions of the samples' windows on the grid.
#[derive(Clone, Copy)]
struct Windows<'a, T> {
    k: &'a [&'a [T]],
    width: usize,
    /// Cells of the grid.
    size: [usize; 3],
}

impl<T: SimdReal> Windows<'_, T> {
    /// Returns the number of samples.
    fn samples(&self) -> usize {
        self.k[0].len()
    }

    /// Returns the first cell of the window of a sample at `k` on an axis, and the polynomials' variable. Double
    /// precision is used because a grid position in single precision would cost two digits of the offset.
    #[inline(always)]
    fn locate<A: Arith>(&self, axis: usize, k: T) -> (Cell, T) {
        let (size, half) = (self.size[axis] as f64, 0.5 * self.width as f64);
        let position = k.wide() * size - half;
        let first = A::ceil(position);
        // A grid is at least two windows long, so that one period moves any start inside.
        let cell = if first < 0.0 { first + size } else { first };
        // Keeps the cell inside the grid for any k: a NaN becomes 0. The compiler vectorises these comparisons.
        let cell = if cell > 0.0 { cell } else { 0.0 };
        let cell = if cell < size - 1.0 { cell } else { size - 1.0 };
        (Cell(cell), T::of(2.0 * (first - position) - 1.0))
    }
}

/// The index of a cell on an axis: an integer that an i32 can hold, in the type in which it was computed.
#[derive(Clone, Copy)]
struct Cell(f64);

impl Cell {
    #[inline(always)]
    fn index(self) -> u32 {
        // SAFETY: an i32 can hold it.
        let index: i32 = unsafe { self.0.to_int_unchecked() };
        index as u32
    }
}

/// The tile of a cell on an axis of N cells in C tiles. Tile i begins at the floor of i N / C, so the tile of a cell is
/// the floor of ((cell + 1) C - 1) / N.
///
/// With 1/2 in place of 1, the quotient is at least 1 / (2 N) from an integer, and rounding moves it by less than C
/// 2^-51. That is smaller for C N < 2^50, which holds because tiles have at least 16 cells and an axis has less than
/// 2^27.
#[derive(Clone, Copy)]
struct TileLocator {
    slope: f64,
    offset: f64,
    /// Stride of this axis in the index of a tile of the grid, with x fastest.
    stride: u32,
}

impl TileLocator {
    fn new(tiling: &Tiling, axis: usize) -> TileLocator {
        let (cells, tiles) = (tiling.size[axis] as f64, tiling.tiles[axis].count as f64);
        let stride = tiling.counts()[..axis].iter().product::<usize>() as u32;
        TileLocator { slope: tiles / cells, offset: (tiles - 0.5) / cells, stride }
    }

    /// Returns the contribution of this axis to the index of a cell's tile.
    #[inline(always)]
    fn index_part(self, cell: Cell) -> u32 {
        // SAFETY: a tile has at least one cell, so an i32 can also hold the index of a cell's tile.
        let tile: i32 = unsafe { (cell.0 * self.slope + self.offset).to_int_unchecked() };
        (tile as u32).wrapping_mul(self.stride)
    }
}

/// Writes the samples' indices and coordinates in the order of their tiles, by a stable counting sort. Returns the
/// start of each tile's samples. With a single tile, the order is the caller's, and coordinates are not written.
///
/// Coordinates are not collected later by index: with ten tiles, each would read nearly every cache line of the
/// caller's arrays.
fn sort_by_tile<T: SimdReal>(
    threads: &Threads,
    level: Level,
    windows: &Windows<T>,
    tiling: &Tiling,
    tiles: usize,
    sorted: &mut SortedSamples<T>,
) -> Result<Vec<usize>> {
    let samples = windows.samples();
    let locators = [0, 1, 2].map(|axis| TileLocator::new(tiling, axis));
    let block = block_len(samples, tiles, threads.count());
    let blocks = samples.div_ceil(block);
    let range = |i: usize| i * block..((i + 1) * block).min(samples);
    if tiles == 1 {
        let order = SharedSlice::new(&mut sorted.order);
        threads.run(blocks, |i| {
            let range = range(i);
            // SAFETY: blocks do not overlap.
            let order = unsafe { order.part(range.start, range.len()) };
            order.iter_mut().zip(range).for_each(|(order, m)| *order = m as u32);
        });
        let mut starts = try_vec(2, 0, "the tile order")?;
        starts[1] = samples;
        return Ok(starts);
    }
    // Contains the tile of each sample until its cell is known.
    let keys = &mut sorted.keys[..samples];
    // The counts of a block fill cache lines of their own. If adjacent samples are in different tiles, threads write
    // them for each sample.
    let stride = tiles.next_multiple_of(CACHE_LINE / size_of::<u32>());
    let mut counts = Aligned::<u32>::zeros(checked_product(&[blocks, stride], "the tile order")?, "the tile order")?;
    {
        let (keys, counts) = (SharedSlice::new(keys), SharedSlice::new(&mut counts));
        threads.run(blocks, |i| {
            let range = range(i);
            // SAFETY: blocks do not overlap, and each has its own counts.
            let (keys, counts) = unsafe { (keys.part(range.start, range.len()), counts.part(i * stride, tiles)) };
            level.run(TileSearchKernel { windows, locators, start: range.start, keys });
            count_tiles(keys, counts);
        });
    }
    let starts = positions_from_counts(&mut counts, stride, tiles)?;
    let (order, next) = (SharedSlice::new(&mut sorted.order), SharedSlice::new(&mut counts));
    let [x, y, z] = sorted.t.each_mut().map(|t| SharedSlice::new(t));
    threads.run(blocks, |i| {
        let range = range(i);
        // SAFETY: each block has its own counts.
        let next = unsafe { next.part(i * stride, tiles) };
        let tiles = &keys[range.clone()];
        // SAFETY: the counts of all blocks give every sample its own position.
        match *windows.k {
            [kx, ky] => unsafe { place_samples(range, tiles, next, &order, [(kx, &x), (ky, &y)]) },
            [kx, ky, kz] => unsafe { place_samples(range, tiles, next, &order, [(kx, &x), (ky, &y), (kz, &z)]) },
            _ => unreachable!("grids have two or three axes"),
        }
    });
    Ok(starts)
}

/// Returns the number of samples whose tiles one task finds. Tasks are few, because threads that write next to one
/// another wait for cache lines, but enough for threads that begin late. Their counts of `tiles` tiles must take less
/// time than their samples.
fn block_len(samples: usize, tiles: usize, threads: usize) -> usize {
    let blocks = MIN_BLOCKS.max(BLOCKS_PER_THREAD * threads).min(MAX_BLOCKS);
    let least = MIN_BLOCK.max(CROWDED_BLOCK.min(8 * tiles));
    samples.div_ceil(blocks).max(least)
}

/// Replaces the counts of each block, `stride` apart, by the positions of its first samples: tile by tile, and block by
/// block within a tile. Returns the start of each tile's samples.
fn positions_from_counts(counts: &mut [u32], stride: usize, tiles: usize) -> Result<Vec<usize>> {
    let mut next = try_vec(tiles, 0u32, "the tile order")?;
    // Along the counts of a block, the compiler uses vectors.
    for block in counts.chunks_exact(stride) {
        next.iter_mut().zip(block).for_each(|(sum, count)| *sum += count);
    }
    let mut starts = try_vec(tiles + 1, 0usize, "the tile order")?;
    for (tile, next) in next.iter_mut().enumerate() {
        starts[tile + 1] = starts[tile] + *next as usize;
        *next = starts[tile] as u32;
    }
    for block in counts.chunks_exact_mut(stride) {
        for (count, next) in block.iter_mut().zip(&mut next) {
            let position = *next;
            *next += std::mem::replace(count, position);
        }
    }
    Ok(starts)
}

/// Adds to `counts` the samples of each tile.
fn count_tiles(tiles: &[u32], counts: &mut [u32]) {
    let (rows, rest) = tiles.as_chunks::<TILE_ROW>();
    for row in rows {
        if is_constant(row) {
            counts[row[0] as usize] += TILE_ROW as u32;
        } else {
            row.iter().for_each(|&tile| counts[tile as usize] += 1);
        }
    }
    rest.iter().for_each(|&tile| counts[tile as usize] += 1);
}

/// Writes the indices of `samples`, whose tiles are given, to the `next` positions of their tiles in `order`, and their
/// coordinates on each axis to the same positions of the axis's second array.
///
/// # Safety
///
/// The positions are inside the arrays, and no other thread uses them at the same time.
unsafe fn place_samples<T: Copy, const AXES: usize>(
    samples: Range<usize>,
    tiles: &[u32],
    next: &mut [u32],
    order: &SharedSlice<u32>,
    axes: [(&[T], &SharedSlice<T>); AXES],
) {
    // Addresses without a check of each: the compiler would read them again for every sample.
    let (order, to) = (order.address(0), axes.map(|(_, t)| t.address(0)));
    // With dozens of tiles, the processor does not foresee the cache lines, and each write would wait for its line.
    let prefetch_next = |next: usize| {
        prefetch(order.wrapping_add(next).wrapping_byte_add(CACHE_LINE));
        to.iter().for_each(|t| prefetch(t.wrapping_add(next).wrapping_byte_add(CACHE_LINE)));
    };
    let from = axes.map(|(k, _)| &k[samples.clone()]);
    let tiles = &tiles[..samples.len()];
    let place = |next: &mut [u32], i: usize| {
        let next = &mut next[tiles[i] as usize];
        let at = *next as usize;
        // SAFETY: passed on to the caller.
        unsafe {
            *order.add(at) = (samples.start + i) as u32;
            (0..AXES).for_each(|axis| *to[axis].add(at) = from[axis][i]);
        }
        *next += 1;
        prefetch_next(at + 1);
    };
    let (rows, rest) = tiles.as_chunks::<TILE_ROW>();
    for (row, first) in rows.iter().zip((0..).step_by(TILE_ROW)) {
        if !is_constant(row) {
            (first..first + TILE_ROW).for_each(|i| place(next, i));
            continue;
        }
        let next = &mut next[row[0] as usize];
        let at = *next as usize;
        // SAFETY: passed on to the caller.
        unsafe {
            (0..TILE_ROW).for_each(|i| *order.add(at + i) = (samples.start + first + i) as u32);
            for (to, from) in to.iter().zip(&from) {
                to.add(at).copy_from_nonoverlapping(from[first..first + TILE_ROW].as_ptr(), TILE_ROW);
            }
        }
        *next += TILE_ROW as u32;
        prefetch_next(at + TILE_ROW);
    }
    (tiles.len() - rest.len()..tiles.len()).for_each(|i| place(next, i));
}

/// Returns whether all elements are equal.
#[inline(always)]
fn is_constant(row: &[u32; TILE_ROW]) -> bool {
    row.iter().fold(0, |different, key| different | (key ^ row[0])) == 0
}

/// The search of the tile of each sample from `start` on.
struct TileSearchKernel<'a, T> {
    windows: &'a Windows<'a, T>,
    locators: [TileLocator; 3],
    start: usize,
    keys: &'a mut [u32],
}

impl<T: SimdReal> Kernel for TileSearchKernel<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arith>(self) {
        for (axis, k) in self.windows.k.iter().enumerate() {
            let (windows, locator) = (*self.windows, self.locators[axis]);
            let add = |keys: &mut [u32; LOCATE_CHUNK], k: &[T; LOCATE_CHUNK]| {
                for i in 0..LOCATE_CHUNK {
                    let (cell, _) = windows.locate::<A>(axis, k[i]);
                    let previous = if axis == 0 { 0 } else { keys[i] };
                    keys[i] = previous + locator.index_part(cell);
                }
            };
            let k = &k[self.start..][..self.keys.len()];
            let (keys, last_keys) = self.keys.as_chunks_mut();
            let (k, last_k) = k.as_chunks();
            keys.iter_mut().zip(k).for_each(|(keys, k)| add(keys, k));
            let (mut keys, mut k) = ([0; LOCATE_CHUNK], [T::ZERO; LOCATE_CHUNK]);
            keys[..last_keys.len()].copy_from_slice(last_keys);
            k[..last_k.len()].copy_from_slice(last_k);
            add(&mut keys, &k);
            last_keys.copy_from_slice(&keys[..last_keys.len()]);
        }
    }
}

/// Buffers of one thread that sorts parts.
struct SortBuffers<T> {
    /// The samples' offsets on each axis.
    t: [Aligned<T>; 3],
    /// Key of each sample ([`pack_key`]), and an array into which keys are sorted.
    keys: [Aligned<u32>; 2],
}

impl<T: SimdReal> SortBuffers<T> {
    /// Allocates buffers of `len` samples for `threads` threads. They are one allocation, which the next plan reuses:
    /// with fresh pages, a small plan would wait longer for the system than for the sort.
    fn allocate(threads: usize, axes: usize, len: usize) -> Result<impl Iterator<Item = Self>> {
        let offsets = product(&[axes, AlignedArena::bytes::<T>(len)]);
        let bytes = product(&[threads, sum(&[offsets, product(&[2, AlignedArena::bytes::<u32>(len)])])]);
        let mut arena = AlignedArena::unwritten(bytes, "the sample order")?;
        Ok((0..threads).map(move |_| SortBuffers {
            t: [0, 1, 2].map(|axis| arena.array(if axis < axes { len } else { 0 })),
            keys: [(); 2].map(|()| arena.array(len)),
        }))
    }
}

/// Sorts each batch of each part by the vector in which windows start, and computes the offsets and cells for gridding.
fn sort_parts<T: SimdReal>(
    threads: &Threads,
    level: Level,
    windows: &Windows<T>,
    tiling: &Tiling,
    sorted: &mut SortedSamples<T>,
) -> Result<()> {
    let (samples, axes) = (windows.samples(), windows.k.len());
    let SortedSamples { t, keys: sorted, schedule, reached, .. } = sorted;
    // See `sort_by_tile`.
    let is_in_order = product(&tiling.counts()) == 1;
    let len = longest_batch(tiling, samples).next_multiple_of(LOCATE_CHUNK);
    let count = threads.count().min(schedule.parts.len());
    let mut buffers = SortBuffers::allocate(count, axes, len)?;
    let pool = Pool::filled(count, || Ok(buffers.next().expect("there are buffers for each thread")))?;
    let allocate = || Ok(SortBuffers::allocate(1, axes, len)?.next().expect("there are buffers for a thread"));
    let vectors = VectorDigits::new(tiling.buffer_len(), tiling.layout.cells);
    let t = t.each_mut().map(|t| SharedSlice::new(t));
    let sorted = SharedSlice::new(sorted);
    let marks = ColumnMarks::new(tiling.size)?;
    threads.run_with(
        schedule.parts.len(),
        || pool.take_or_wait(allocate),
        |buffers, i| {
            let part = &schedule.parts[nth_in_lanes(i, schedule.parts.len(), threads.count())];
            let placement = TilePlacement::new(tiling, &schedule.tiles[part.tile]);
            let origin = placement.origin.map(|cell| cell as u32);
            for batch in batches(&part.points) {
                let k = [0, 1, 2].map(|axis| match windows.k.get(axis) {
                    None => &[][..],
                    Some(k) if is_in_order => &k[batch.clone()],
                    // SAFETY: batches do not overlap, and these elements are overwritten after they were read.
                    Some(_) => unsafe { &*t[axis].part(batch.start, batch.len()) },
                });
                level.run(LocationKernel { windows, tiling, origin, k, buffers });
                let SortBuffers { t: unsorted, keys } = &mut **buffers;
                let (start, len) = (batch.start, batch.len());
                // The thread with the last samples writes the elements behind them.
                let padding = if batch.end == samples { PADDING } else { 0 };
                // SAFETY: batches do not overlap.
                let sorted = unsafe { sorted.part(start, len + padding) };
                sorted[len..].fill(0);
                let keys = vectors.sort(keys.each_mut().map(|keys| &mut keys[..len]));
                sorted[..len].copy_from_slice(keys);
                mark_columns(tiling, &placement, keys, &marks);
                let unsorted = unsorted.each_ref().map(|t| &t[..]);
                let mut t = t.each_ref().map(|t| {
                    let [start, len] = if t.len() > 0 { [start, len + padding] } else { [0, 0] };
                    // SAFETY: batches do not overlap.
                    unsafe { t.part(start, len) }
                });
                t.iter_mut().filter(|t| !t.is_empty()).for_each(|t| t[len..].fill(T::ZERO));
                match axes {
                    2 => reorder::<_, 2>(keys, unsorted, t),
                    _ => reorder::<_, 3>(keys, unsorted, t),
                }
            }
        },
    );
    *reached = marks.reached(tiling.taps[1])?;
    Ok(())
}

/// Marks the columns in which the windows of a batch start; all columns of its tile if there are more samples than
/// columns.
fn mark_columns(tiling: &Tiling, placement: &TilePlacement, keys: &[u32], marks: &ColumnMarks) {
    let [x, y, _] = placement.origin;
    // Interpolation loads whole vectors of cells, from any cell of the first vector on.
    let loaded = (tiling.layout.window_vectors + 1) * tiling.layout.cells;
    let own = [0, 1].map(|axis| placement.own_cells(axis));
    if keys.len() >= own[1] * own[0].div_ceil(tiling.layout.cells) {
        (y..y + own[1]).for_each(|row| marks.mark(row, x..x + own[0] + loaded));
        return;
    }
    // Keys are sorted. Divisions, which are slow, are needed only once for each row.
    let (mut line, mut row, mut previous) = (0..0, 0, None);
    for &key in keys {
        let at = unpack_key(key).0 as usize & !(tiling.layout.cells - 1);
        if previous == Some(at) {
            continue;
        }
        previous = Some(at);
        if !line.contains(&at) {
            let [column, tile_row, _] = tiling.vector_start(at);
            (line, row) = (at - column..at - column + tiling.extent[0], y + tile_row);
        }
        let column = x + at - line.start;
        marks.mark(row, column..column + loaded);
    }
}

/// Reorders the offsets of a batch's samples on the first AXES axes by its keys.
fn reorder<T: Copy, const AXES: usize>(keys: &[u32], unsorted: [&[T]; 3], mut t: [&mut [T]; 3]) {
    // Equal lengths allow one bounds check for all axes.
    let unsorted: [&[T]; AXES] = std::array::from_fn(|axis| &unsorted[axis][..keys.len()]);
    t[..AXES].iter_mut().for_each(|t| *t = &mut std::mem::take(t)[..keys.len()]);
    for (i, &key) in keys.iter().enumerate() {
        let (_, index) = unpack_key(key);
        for axis in 0..AXES {
            t[axis][i] = unsorted[axis][index];
        }
    }
}

/// The location of a batch's samples: writes their keys and offsets to the sort buffers.
struct LocationKernel<'a, T> {
    windows: &'a Windows<'a, T>,
    tiling: &'a Tiling,
    /// The first cell of the tile.
    origin: [u32; 3],
    /// The samples' coordinates on each axis.
    k: [&'a [T]; 3],
    buffers: &'a mut SortBuffers<T>,
}

impl<T: SimdReal> Kernel for LocationKernel<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arith>(self) {
        let windows = *self.windows;
        let [row, rows, _] = self.tiling.extent;
        let strides = [1, row as u32, (row * rows) as u32];
        let SortBuffers { t, keys: [keys, _] } = self.buffers;
        for axis in 0..windows.k.len() {
            let (origin, stride) = (self.origin[axis], pack_key(strides[axis], 0));
            let locate = |chunk: usize, k: &[T; LOCATE_CHUNK], t: &mut [T; LOCATE_CHUNK], keys: &mut [u32]| {
                for i in 0..LOCATE_CHUNK {
                    let (cell, offset) = windows.locate::<A>(axis, k[i]);
                    let previous = if axis == 0 { pack_key(0, chunk * LOCATE_CHUNK + i) } else { keys[i] };
                    keys[i] = previous.wrapping_add(cell.index().wrapping_sub(origin).wrapping_mul(stride));
                    t[i] = offset;
                }
            };
            let (k, last_k) = self.k[axis].as_chunks::<LOCATE_CHUNK>();
            let (t, keys) = (t[axis].as_chunks_mut().0, keys.as_chunks_mut::<LOCATE_CHUNK>().0);
            for (chunk, ((k, t), keys)) in k.iter().zip(&mut *t).zip(&mut *keys).enumerate() {
                locate(chunk, k, t, keys);
            }
            if !last_k.is_empty() {
                // The last samples are located together with zeros, for which the buffers have space.
                let mut padded = [T::ZERO; LOCATE_CHUNK];
                padded[..last_k.len()].copy_from_slice(last_k);
                locate(k.len(), &padded, &mut t[k.len()], &mut keys[k.len()]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::options::Simd;

    /// A wrong tile would write samples outside of its buffer.
    #[test]
    fn cells_are_in_the_tiles_that_begin_before_them() {
        let sizes = (1..2000).chain([12_345, 1_000_003, (1 << 27) - 1]);
        for (dims, width) in sizes.map(|n| ([n, 3 * n + 1, 1], 2 + n % 15)) {
            let level = Level::choose(Simd::Baseline).unwrap();
            for grid in [&dims[..2], &dims] {
                let tiling = Tiling::new::<f64>(level, grid, width);
                let locators = TileLocator::new(&tiling, 0);
                assert_eq!(locators.stride, 1);
                for tile in 0..tiling.tiles[0].count {
                    let [first, end] = [tile, tile + 1].map(|tile| tiling.tiles[0].first_cell(tile) as f64);
                    let parts = [first, end - 1.0].map(|cell| locators.index_part(Cell(cell)));
                    assert_eq!(parts, [tile as u32; 2], "{grid:?}");
                }
            }
        }
    }

    /// Rows of samples in one tile and in several tiles have code of their own.
    #[test]
    fn samples_are_placed_by_tile_in_their_order() {
        let mut state = 1u32;
        let mut below = |n: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % n
        };
        for (tiles, longest_run) in [(1, 1), (3, 1), (3, 40), (500, 30)] {
            for len in [1, 7, 8, 9, 64, 1001] {
                let mut keys = Vec::new();
                while keys.len() < len {
                    let (tile, run) = (below(tiles), 1 + below(longest_run));
                    keys.extend(std::iter::repeat_n(tile, run as usize));
                }
                keys.truncate(len);
                let mut next = vec![0; tiles as usize];
                count_tiles(&keys, &mut next);
                let mut sum = 0;
                next.iter_mut().for_each(|next| sum += std::mem::replace(next, sum));
                assert_eq!(sum as usize, len);
                let first = 5;
                let mut order = vec![u32::MAX; len];
                let k: Vec<f32> = (0..first + len).map(|m| m as f32).collect();
                let (mut x, mut y) = (vec![f32::NAN; len], vec![f32::NAN; len]);
                {
                    let [x, y] = [&mut x, &mut y].map(|t| SharedSlice::new(t));
                    let order = SharedSlice::new(&mut order);
                    let axes = [(&k[..], &x), (&k[..], &y)];
                    // SAFETY: this is the only thread.
                    unsafe { place_samples(first..first + len, &keys, &mut next, &order, axes) };
                }
                for t in [x, y] {
                    assert!(t.iter().zip(&order).all(|(&t, &m)| t == m as f32), "{tiles} tiles, {len} samples");
                }
                let mut expected: Vec<u32> = (0..len as u32).collect();
                expected.sort_by_key(|&m| keys[m as usize]);
                let order: Vec<u32> = order.iter().map(|m| m - first as u32).collect();
                assert_eq!(order, expected, "{tiles} tiles, runs of up to {longest_run}, {len} samples");
            }
        }
    }
}
