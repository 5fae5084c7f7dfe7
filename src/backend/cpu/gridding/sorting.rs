//! Sorts samples: by tile, then a tile's samples, some thousands at a time, by the vector in which their windows start.

use super::schedule::{longest_part, Schedule};
use super::tiling::Tiling;
use crate::backend::cpu::simd::{Arith, Kernel, Level, SimdReal};
use crate::backend::cpu::thread_pool::Threads;
use crate::base::buffer_pool::Pool;
use crate::base::error::{bail, checked_product, try_vec, Result};
use crate::base::memory::{Aligned, Room};
use crate::base::sizes::{product, sum};
use crate::base::workers::Shared;
use std::ops::Range;

/// Samples of a part that are sorted together, at most. Their values are brought into one buffer, which stays in cache.
const BATCH: usize = 8192;
/// So many elements may be read behind the last sample: a vector of the widest unit.
const PADDING: usize = 16;
/// Samples that are located at once.
const SOME: usize = 32;
/// No axis has so many cells.
const LIMIT: f64 = (1 << 30) as f64;
/// Samples whose tiles one task finds, at least, and the most such tasks.
const BLOCK: usize = 1 << 12;
const BLOCKS: usize = 128;

/// Samples in the order in which they are gridded.
pub struct SortedSamples<T> {
    /// The sample's offset in the first cell of its window as the polynomials' variable, for each axis.
    pub t: [Aligned<T>; 3],
    /// The cell of its tile's buffer in which its window starts.
    pub cell: Aligned<u32>,
    /// Its place among the samples of its batch, before they were sorted by cell.
    pub local: Aligned<u16>,
    /// The samples of each tile in the caller's order. A batch is a part of it.
    pub order: Aligned<u32>,
    pub schedule: Schedule,
}

impl<T: SimdReal> SortedSamples<T> {
    /// Sorts samples at `k`; `grid` is for a message.
    pub fn new(threads: &Threads, level: Level, k: &[&[T]], grid: &[usize], tiling: &Tiling) -> Result<Self> {
        let tiles = checked_product(&tiling.counts(), "the tiles of the grid")?;
        if tiles > u32::MAX as usize {
            bail!(
                SizeOverflow,
                "a grid of {grid:?} has more tiles than a plan takes ({}): use a smaller image",
                u32::MAX
            );
        }
        if tiling.size.iter().any(|&cells| cells as f64 >= LIMIT) {
            bail!(SizeOverflow, "a grid of {grid:?} has an axis of 2^30 cells or more: use a smaller image");
        }
        let windows = Windows { k, width: tiling.width(), size: tiling.size };
        let mut samples = Self::unsorted(windows.samples(), k.len())?;
        let starts = sort_by_tile(threads, level, &windows, tiling, tiles, &mut samples)?;
        samples.schedule = Schedule::new(tiling, &starts)?;
        sort_parts(threads, level, &windows, tiling, &mut samples)?;
        Ok(samples)
    }

    /// Room for so many samples, and what may be read behind them.
    fn unsorted(samples: usize, axes: usize) -> Result<Self> {
        let padded = samples + PADDING;
        let mut room = Room::unwritten(Self::bytes_of_arrays(samples, axes), "the sorted samples")?;
        Ok(SortedSamples {
            t: [0, 1, 2].map(|axis| room.array(if axis < axes { padded } else { 0 })),
            cell: room.array(padded),
            local: room.array(padded),
            order: room.array(samples),
            schedule: Schedule::empty(),
        })
    }

    /// Bytes of the arrays.
    fn bytes_of_arrays(samples: usize, axes: usize) -> usize {
        let padded = samples + PADDING;
        let offsets = product(&[axes, Room::bytes::<T>(padded)]);
        sum(&[offsets, Room::bytes::<u32>(padded), Room::bytes::<u16>(padded), Room::bytes::<u32>(samples)])
    }

    /// Bytes held for so many samples on a grid so cut.
    pub fn bytes(tiling: &Tiling, samples: usize) -> usize {
        let axes = tiling.taps.iter().filter(|&&taps| taps > 1).count();
        sum(&[Self::bytes_of_arrays(samples, axes), Schedule::bytes(tiling, samples)])
    }
}

/// The batches of a part: the fewest, of about equal size.
pub fn batches(points: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let (start, len) = (points.start, points.len());
    let count = len.div_ceil(BATCH);
    (0..count).map(move |i| start + len * i / count..start + len * (i + 1) / count)
}

/// The samples of the longest batch that so many samples may have.
pub fn longest_batch(samples: usize) -> usize {
    BATCH.min(longest_part(samples))
}

/// Where the windows of samples lie on the grid.
#[derive(Clone, Copy)]
struct Windows<'a, T> {
    k: &'a [&'a [T]],
    width: usize,
    /// Cells of the grid.
    size: [usize; 3],
}

impl<T: SimdReal> Windows<'_, T> {
    fn samples(&self) -> usize {
        self.k[0].len()
    }

    /// The first cells of the windows of some samples at `k` on an axis, and the polynomials' variables. In double
    /// precision: a grid position in single precision would cost two digits of the offset.
    #[inline(always)]
    fn locate(&self, axis: usize, k: &[T; SOME], cells: &mut [u32; SOME], t: &mut [T; SOME]) {
        let (size, half) = (self.size[axis] as f64, 0.5 * self.width as f64);
        let period = self.size[axis] as i32;
        for i in 0..SOME {
            let position = k[i].wide() * size - half;
            // Comparisons that the compiler makes vectors of, and that a NaN passes as a number.
            let position = if position > -LIMIT { position } else { -LIMIT };
            let position = if position < LIMIT { position } else { LIMIT };
            // SAFETY: between the limits, which an i32 holds.
            let truncated: i32 = unsafe { position.to_int_unchecked() };
            let first = truncated + i32::from((truncated as f64) < position);
            t[i] = T::of(2.0 * (first as f64 - position) - 1.0);
            // A grid is at least two windows long, so that one period brings any start inside.
            cells[i] = (if first < 0 { first + period } else { first }) as u32;
        }
    }
}

/// For each cell of an axis the share of its tile in the tile's number, which counts x fastest.
fn tile_numbers(tiling: &Tiling, axis: usize) -> Result<Vec<u32>> {
    let stride: usize = tiling.counts()[..axis].iter().product();
    let mut numbers = try_vec(tiling.size[axis], 0, "the tile order")?;
    for tile in 0..tiling.tiles[axis].count {
        let first = tiling.tiles[axis].first_cell(tile);
        numbers[first..first + tiling.tiles[axis].len(tile)].fill((tile * stride) as u32);
    }
    Ok(numbers)
}

/// A stable counting sort: writes the samples in the order of their tiles, and says where each tile's samples start.
fn sort_by_tile<T: SimdReal>(
    threads: &Threads,
    level: Level,
    windows: &Windows<T>,
    tiling: &Tiling,
    tiles: usize,
    sorted: &mut SortedSamples<T>,
) -> Result<Vec<usize>> {
    let samples = windows.samples();
    let numbers = [tile_numbers(tiling, 0)?, tile_numbers(tiling, 1)?, tile_numbers(tiling, 2)?];
    let block = BLOCK.max(samples.div_ceil(BLOCKS));
    let blocks = samples.div_ceil(block);
    let range = |i: usize| i * block..((i + 1) * block).min(samples);
    // The tile of each sample, until its cell is known.
    let keys = &mut sorted.cell[..samples];
    let mut counts = Aligned::<u32>::zeros(checked_product(&[blocks, tiles], "the tile order")?, "the tile order")?;
    {
        let (keys, counts) = (Shared::new(keys), Shared::new(&mut counts));
        threads.run(blocks, |i| {
            let range = range(i);
            // SAFETY: blocks do not overlap, and each has counts of its own.
            let (keys, counts) = unsafe { (keys.part(range.start, range.len()), counts.part(i * tiles, tiles)) };
            level.run(FindTiles { windows, numbers: &numbers, start: range.start, keys });
            // Samples that follow one another mostly share a tile: counts need not go through memory each time.
            let (mut tile, mut count) = (0, counts[0]);
            for &key in &*keys {
                if key != tile {
                    counts[tile as usize] = count;
                    (tile, count) = (key, counts[key as usize]);
                }
                count += 1;
            }
            counts[tile as usize] = count;
        });
    }
    // From numbers of samples to where they go: tile by tile, and in a tile block by block.
    let mut starts = try_vec(tiles + 1, 0usize, "the tile order")?;
    let mut sum = 0;
    for tile in 0..tiles {
        starts[tile] = sum;
        for block in 0..blocks {
            let count = &mut counts[block * tiles + tile];
            sum += std::mem::replace(count, sum as u32) as usize;
        }
    }
    starts[tiles] = sum;
    let (shared, next) = (Shared::new(&mut sorted.order), Shared::new(&mut counts));
    threads.run(blocks, |i| {
        let range = range(i);
        // SAFETY: each block has counts of its own.
        let next = unsafe { next.part(i * tiles, tiles) };
        // Samples that follow one another mostly share a tile: the place need not go through memory each time.
        let (mut tile, mut place) = (0, next[0]);
        for (m, &key) in range.clone().zip(&keys[range]) {
            if key != tile {
                next[tile as usize] = place;
                (tile, place) = (key, next[key as usize]);
            }
            // SAFETY: every sample has a place of its own.
            unsafe { shared.set(place as usize, m as u32) };
            place += 1;
        }
    });
    Ok(starts)
}

/// Writes the number of the tile of each sample from `start` on.
struct FindTiles<'a, T> {
    windows: &'a Windows<'a, T>,
    numbers: &'a [Vec<u32>; 3],
    start: usize,
    keys: &'a mut [u32],
}

impl<T: SimdReal> Kernel for FindTiles<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arith>(self) {
        let windows = self.windows;
        let [mut some, mut t] = [[T::ZERO; SOME]; 2];
        let mut cells = [0; SOME];
        for (axis, k) in windows.k.iter().enumerate() {
            let (k, numbers) = (&k[self.start..][..self.keys.len()], &self.numbers[axis][..]);
            for (keys, k) in self.keys.chunks_mut(SOME).zip(k.chunks(SOME)) {
                some[..k.len()].copy_from_slice(k);
                windows.locate(axis, &some, &mut cells, &mut t);
                for (key, &cell) in keys.iter_mut().zip(&cells) {
                    let before = if axis == 0 { 0 } else { *key };
                    *key = before + numbers[cell as usize];
                }
            }
        }
    }
}

/// Memory of one thread that sorts parts.
struct Scratch<T> {
    t: [Vec<T>; 3],
    cell: Vec<u32>,
    /// Vector and place of each sample, after half of the sorting.
    keys: Vec<u32>,
}

impl<T: SimdReal> Scratch<T> {
    fn new(axes: usize, len: usize) -> Result<Self> {
        let what = "the sample order";
        let t = |axis: usize| try_vec(if axis < axes { len } else { 0 }, T::ZERO, what);
        let numbers = || try_vec(len, 0u32, what);
        Ok(Scratch { t: [t(0)?, t(1)?, t(2)?], cell: numbers()?, keys: numbers()? })
    }
}

/// Sorts each batch of each part by the vector in which windows start, and computes what gridding wants of samples.
fn sort_parts<T: SimdReal>(
    threads: &Threads,
    level: Level,
    windows: &Windows<T>,
    tiling: &Tiling,
    sorted: &mut SortedSamples<T>,
) -> Result<()> {
    let (samples, axes) = (windows.samples(), windows.k.len());
    let SortedSamples { t, cell, local, order, schedule } = sorted;
    let scratch = || Scratch::new(axes, BATCH.min(samples.next_multiple_of(SOME)));
    // Each thread makes its own, unless there is no memory: then threads wait for one another.
    let pool = Pool::filled(1, scratch)?;
    let vectors = tiling.extent.iter().product::<usize>() / tiling.layout.cells;
    let t = t.each_mut().map(|t| Shared::new(t));
    let (cell, local) = (Shared::new(cell), Shared::new(local));
    threads.run_with(
        schedule.parts.len(),
        || pool.take_or_wait(scratch),
        |scratch, i| {
            let part = &schedule.parts[i];
            let origin = [0, 1, 2].map(|a| tiling.tiles[a].first_cell(part.at[a] as usize) as u32);
            for batch in batches(&part.points) {
                let order = &order[batch.clone()];
                level.run(Locate { windows, tiling, origin, order, scratch });
                let Scratch { t: unsorted, cell: cells, keys } = &mut **scratch;
                let (start, len) = (batch.start, batch.len());
                // Whoever has the last samples writes what is behind them.
                let behind = if batch.end == samples { PADDING } else { 0 };
                // SAFETY: batches do not overlap.
                let (cell, local) = unsafe { (cell.part(start, len + behind), local.part(start, len + behind)) };
                cell[len..].fill(0);
                local[len..].fill(0);
                let (cell, local) = (&mut cell[..len], &mut local[..len]);
                sort_by_vector(&cells[..len], keys, tiling.layout.cells, vectors, local);
                for (cell, from) in cell.iter_mut().zip(&*local) {
                    *cell = cells[*from as usize];
                }
                for (t, unsorted) in t.iter().zip(unsorted).take(axes) {
                    // SAFETY: batches do not overlap.
                    let t = unsafe { t.part(start, len + behind) };
                    t[len..].fill(T::ZERO);
                    for (t, from) in t.iter_mut().zip(&*local) {
                        *t = unsorted[*from as usize];
                    }
                }
            }
        },
    );
    Ok(())
}

/// Writes cells and offsets of a batch's samples to the scratch memory.
struct Locate<'a, T> {
    windows: &'a Windows<'a, T>,
    tiling: &'a Tiling,
    /// The first cell of the tile.
    origin: [u32; 3],
    order: &'a [u32],
    scratch: &'a mut Scratch<T>,
}

impl<T: SimdReal> Kernel for Locate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arith>(self) {
        let windows = self.windows;
        let [row, rows, _] = self.tiling.extent;
        let strides = [1, row as u32, (row * rows) as u32];
        let mut some = [T::ZERO; SOME];
        let mut first = [0; SOME];
        let Scratch { t, cell, .. } = self.scratch;
        for (axis, k) in windows.k.iter().enumerate() {
            let (origin, stride) = (self.origin[axis], strides[axis]);
            // The last samples are located with some that are none: there is room for them.
            let to = t[axis].chunks_exact_mut(SOME).zip(cell.chunks_exact_mut(SOME));
            for (order, (t, cells)) in self.order.chunks(SOME).zip(to) {
                for (some, &m) in some.iter_mut().zip(order) {
                    *some = k[m as usize];
                }
                let t: &mut [T; SOME] = t.try_into().expect("chunks are of this size");
                windows.locate(axis, &some, &mut first, t);
                for (cell, first) in cells.iter_mut().zip(first) {
                    let before = if axis == 0 { 0 } else { *cell };
                    *cell = before.wrapping_add(first.wrapping_sub(origin).wrapping_mul(stride));
                }
            }
        }
    }
}

/// Sorts the samples of a batch by the vector of their cells, of which there are `vectors`, and within one by their
/// place in the batch. Writes these places in the new order.
fn sort_by_vector(sample_cells: &[u32], keys: &mut [u32], cells: usize, vectors: usize, places: &mut [u16]) {
    /// Digits of more bits are counted in more places than a batch has samples for.
    const MOST: u32 = 10;
    let (place_bits, cell_bits) = (BATCH.trailing_zeros(), cells.trailing_zeros());
    let bits = usize::BITS - (vectors - 1).leading_zeros();
    // A tile of few vectors, as in 2D, has one digit.
    let (digits, digit_bits) = if bits <= MOST { (1, bits) } else { (2, bits.div_ceil(2)) };
    assert!(digit_bits <= MOST && bits + place_bits <= u32::BITS && sample_cells.len() <= BATCH);
    let digit = |vector: u32, which: u32| (vector >> (which * digit_bits)) as usize & ((1 << digit_bits) - 1);
    let mut counts = [[0u32; 1 << MOST]; 2];
    for cell in sample_cells {
        counts[0][digit(cell >> cell_bits, 0)] += 1;
        if digits > 1 {
            counts[1][digit(cell >> cell_bits, 1)] += 1;
        }
    }
    for counts in &mut counts[..digits] {
        let mut sum = 0;
        counts[..1 << digit_bits].iter_mut().for_each(|count| sum += std::mem::replace(count, sum));
    }
    let [first, second] = &mut counts;
    let next = |counts: &mut [u32; 1 << MOST], digit: usize| {
        let next = &mut counts[digit];
        *next += 1;
        *next as usize - 1
    };
    if digits == 1 {
        for (place, cell) in sample_cells.iter().enumerate() {
            places[next(first, digit(cell >> cell_bits, 0))] = place as u16;
        }
        return;
    }
    let keys = &mut keys[..sample_cells.len()];
    for (place, cell) in sample_cells.iter().enumerate() {
        let vector = cell >> cell_bits;
        keys[next(first, digit(vector, 0))] = vector << place_bits | place as u32;
    }
    for key in keys.iter() {
        places[next(second, digit(key >> place_bits, 1))] = (key & (BATCH as u32 - 1)) as u16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of samples rely on it: between two samples of one vector there is none of another.
    #[test]
    fn samples_of_a_batch_are_in_the_order_of_their_vectors() {
        let mut state = 1u32;
        for (vectors, cells) in [(1, 8), (7, 1), (350, 8), (512, 4), (513, 2), (5000, 8), (1 << 18, 1), (318_000, 1)] {
            for len in [1, 1000, BATCH] {
                let mut scratch = Scratch::<f64>::new(2, BATCH).unwrap();
                for cell in &mut scratch.cell[..len] {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    *cell = (state >> 4) % (vectors * cells) as u32;
                }
                let Scratch { cell, keys, .. } = &mut scratch;
                let mut places = vec![u16::MAX; len];
                sort_by_vector(&cell[..len], keys, cells, vectors, &mut places);
                let order: Vec<(u32, u16)> =
                    places.iter().map(|&at| (scratch.cell[at as usize] / cells as u32, at)).collect();
                assert!(order.is_sorted(), "{vectors} vectors of {cells} cells, {len} samples");
                assert!(order.windows(2).all(|pair| pair[0].1 != pair[1].1));
            }
        }
    }
}
