//! In which order the parts of tiles are added to the grid, so that every cell receives its sums in the same order
//! whatever the number of threads, and no thread waits long.
//!
//! A tile of many samples is cut into parts, so that work is divided by samples and not by tiles. A thread sums a part
//! in its own buffer, which waits for nobody. Only then does it wait for its turn: until the parts before it that share
//! cells with it are on the grid. Parts are begun in this order, so a thread waits only for parts that others have in
//! work already. The parts of a dense tile are spread over the whole order, and neighbours lie apart.
//!
//! The cells inside a tile are its own, and those at its edges are shared with its neighbours. Parts of dense
//! neighbours wait for one another at their edges only.
//!
//! The first part that reaches a cell stores its sum there, so that the grid need not be cleared before.

use super::tiling::Tiling;
use crate::base::error::{try_reserve, try_vec, Result};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A part has at least so many samples, if its tile has. Parts of tiles that touch one another are added one by one,
/// which takes some ten microseconds where another core has written last.
const MIN_PART: usize = 4096;
/// A part has about this share of all samples, at most: enough parts for many cores, and not so many that the densest
/// tiles are waited for.
const PART_SHARE: usize = 128;
/// The most parts of one tile. Where all samples share one place, so many sums of equal size are added one by one, and
/// their roundings may all have one sign.
const MAX_PARTS: usize = 32;
/// How often a thread looks whether it is its turn before it offers its processor to others.
const SPINS_BEFORE_YIELD: u32 = 200;

/// The samples of the longest part that so many samples may have.
pub fn longest_part(samples: usize) -> usize {
    longest_part_of(samples, samples).min(samples)
}

/// The samples of a part at most, of a tile that has so many of all samples.
fn longest_part_of(points: usize, samples: usize) -> usize {
    MIN_PART.max(samples.div_ceil(PART_SHARE)).max(points.div_ceil(MAX_PARTS))
}

/// A part of a tile's samples, or a tile without samples, whose cells become zero.
pub struct TilePart {
    /// The tile's place among all tiles, x fastest, and along each axis.
    pub tile: u32,
    pub at: [u32; 3],
    /// Its samples in the sorted order.
    pub points: Range<usize>,
    /// How many parts of its tile come before it, and whether there are others at all.
    before: u32,
    pub is_one_of_many: bool,
    /// Where its tile and the tiles around it must have arrived before it may be added, in `Schedule::predecessors`.
    predecessors: Range<usize>,
    /// Bit [z][y][x] of the regions of [`TilePlacement`]: this part is the first to reach the region's cells.
    first: u32,
}

impl TilePart {
    /// Whether it is the first to reach the cells of a region [x, y, z].
    #[inline(always)]
    pub fn is_first(&self, [x, y, z]: [usize; 3]) -> bool {
        self.first >> (9 * z + 3 * y + x) & 1 == 1
    }
}

/// Where a tile's buffer lies on the grid.
pub struct TilePlacement {
    /// Cells of the grid.
    size: [usize; 3],
    /// The tile's first cell.
    pub origin: [usize; 3],
    /// Along an axis a tile's buffer has three regions: 0, which the windows of the tile before reach too; 1, which is
    /// its own; 2, the first cells of the next tile. They begin at these cells, and the last ends at the last of these.
    pub regions: [[usize; 4]; 3],
}

impl TilePlacement {
    pub fn new(tiling: &Tiling, part: &TilePart) -> TilePlacement {
        let axes = [0, 1, 2].map(|axis| (&tiling.tiles[axis], part.at[axis] as usize, tiling.taps[axis] - 1));
        TilePlacement {
            size: tiling.size,
            origin: axes.map(|(tiles, tile, _)| tiles.first_cell(tile)),
            regions: axes.map(|(tiles, tile, overhang)| [0, overhang, tiles.len(tile), tiles.len(tile) + overhang]),
        }
    }

    /// The planes or rows of the buffer along an axis: the region of each, and its place.
    pub fn lines(&self, axis: usize) -> impl Iterator<Item = (usize, usize)> {
        let bounds = self.regions[axis];
        (0..3).flat_map(move |region| (bounds[region]..bounds[region + 1]).map(move |place| (region, place)))
    }

    /// Where the row of the grid begins that has the buffer's row y of plane z.
    #[inline(always)]
    pub fn row(&self, z: usize, y: usize) -> usize {
        let [gx, gy, gz] = self.size;
        ((self.origin[2] + z) % gz * gy + (self.origin[1] + y) % gy) * gx
    }
}

/// The parts of all tiles, in their order.
pub struct Schedule {
    pub parts: Vec<TilePart>,
    /// Tiles, and how many parts of each must have been added.
    predecessors: Vec<(u32, u32)>,
    tiles: usize,
}

impl Schedule {
    /// A schedule of no parts.
    pub fn empty() -> Schedule {
        Schedule { parts: Vec::new(), predecessors: Vec::new(), tiles: 0 }
    }

    /// The schedule of tiles whose samples begin at these places of the sorted order; the last entry is their end.
    pub fn new(tiling: &Tiling, starts: &[usize]) -> Result<Schedule> {
        let samples = starts[starts.len() - 1];
        let tiles = starts.len() - 1;
        let what = "the order of tiles";
        let parts_of = |tile: usize| {
            let points = starts[tile + 1] - starts[tile];
            points.div_ceil(longest_part_of(points, samples)).max(1)
        };
        let count = (0..tiles).map(parts_of).sum();
        let mut parts = try_reserve(count, what)?;
        let [nx, ny, _] = tiling.counts();
        for tile in 0..tiles {
            let (points, count) = (starts[tile + 1] - starts[tile], parts_of(tile));
            let at = [tile % nx, tile / nx % ny, tile / nx / ny].map(|i| i as u32);
            for i in 0..count {
                let points = starts[tile] + points * i / count..starts[tile] + points * (i + 1) / count;
                let place = (2 * i + 1) as f64 / (2 * count) as f64;
                let (before, is_one_of_many) = (i as u32, count > 1);
                let part =
                    TilePart { tile: tile as u32, at, points, before, is_one_of_many, predecessors: 0..0, first: 0 };
                parts.push((place, part));
            }
        }
        // The parts of a tile at even distances; where these meet, tiles of one colour (parity along each axis), which
        // share no cells.
        let key = |(place, part): &(f64, TilePart)| {
            let [x, y, z] = part.at.map(|at| at & 1);
            (place.to_bits(), z, y, x, part.tile)
        };
        parts.sort_unstable_by_key(key);
        let parts = parts.into_iter().map(|(_, part)| part);
        let mut schedule = Schedule { parts: try_reserve(count, what)?, predecessors: Vec::new(), tiles };
        schedule.parts.extend(parts);
        schedule.find_predecessors(tiling, starts)?;
        Ok(schedule)
    }

    /// Goes through the parts in their order, and notes what is there before each.
    fn find_predecessors(&mut self, tiling: &Tiling, starts: &[usize]) -> Result<()> {
        let what = "the order of tiles";
        let counts = tiling.counts();
        let mut arrived = try_vec(self.tiles, 0u32, what)?;
        let neighbours = 3usize.pow(counts.iter().filter(|&&n| n > 1).count() as u32);
        self.predecessors = try_reserve(self.parts.len() * neighbours, what)?;
        let offsets = |axis: usize| if counts[axis] > 1 { 0..3 } else { 1..2 };
        // For the tile before, the same and the next along each axis; with samples, and without.
        let reached: [[u32; 2]; 27] = std::array::from_fn(|i| {
            let offset = [i % 3, i / 3 % 3, i / 9].map(|o| o as i32 - 1);
            [false, true].map(|empty| Self::reached_by(tiling, offset, empty))
        });
        for part in &mut self.parts {
            let begun = self.predecessors.len();
            let empty = part.points.is_empty();
            part.first = if arrived[part.tile as usize] > 0 { 0 } else { Self::all_regions(tiling, empty) };
            let around = [0, 1, 2].map(|a| {
                let (at, last) = (part.at[a] as usize, counts[a] - 1);
                [if at > 0 { at - 1 } else { last }, at, if at < last { at + 1 } else { 0 }]
            });
            for z in offsets(2) {
                for y in offsets(1) {
                    for x in offsets(0) {
                        let tile = (around[2][z] * counts[1] + around[1][y]) * counts[0] + around[0][x];
                        if arrived[tile] > 0 {
                            self.predecessors.push((tile as u32, arrived[tile]));
                            let empty = starts[tile] == starts[tile + 1];
                            part.first &= !reached[9 * z + 3 * y + x][usize::from(empty)];
                        }
                    }
                }
            }
            part.predecessors = begun..self.predecessors.len();
            arrived[part.tile as usize] += 1;
        }
        Ok(())
    }

    /// The regions that a tile reaches: without samples, only its own cells.
    fn all_regions(tiling: &Tiling, empty: bool) -> u32 {
        let reached = |axis: usize| match (tiling.taps[axis], empty) {
            (1, _) => [false, true, false],
            (_, false) => [true, true, true],
            (_, true) => [true, true, false],
        };
        region_bits([reached(0), reached(1), reached(2)])
    }

    /// The regions of a tile that the tile at this offset reaches too.
    fn reached_by(tiling: &Tiling, offset: [i32; 3], empty: bool) -> u32 {
        let reached = |axis: usize| match (tiling.taps[axis], offset[axis], empty) {
            (1, ..) => [false, true, false],
            // Of the tile before, what its windows reach beyond it.
            (_, -1, false) => [true, false, false],
            (_, -1, true) => [false; 3],
            (_, 0, false) => [true, true, true],
            (_, 0, true) => [true, true, false],
            (_, _, _) => [false, false, true],
        };
        region_bits([reached(0), reached(1), reached(2)])
    }

    /// What a spreading counts in: the parts of each tile that have arrived.
    pub fn progress(&self) -> Result<MergeProgress> {
        let counters = || {
            let mut counters = try_reserve(self.tiles, "the order of tiles")?;
            counters.resize_with(self.tiles, AtomicU32::default);
            Ok(counters)
        };
        Ok(MergeProgress { inside: counters()?, arrived: counters()?, failed: AtomicBool::new(false) })
    }

    /// Bytes held for so many tiles and samples, with one spreading in work.
    pub fn bytes(tiling: &Tiling, samples: usize) -> usize {
        let tiles: usize = tiling.counts().iter().product();
        // Not more parts than one for each tile, and one for each share of the samples.
        let parts = tiles.saturating_add((samples / MIN_PART).min(PART_SHARE));
        let neighbours = 3usize.pow(tiling.counts().iter().filter(|&&n| n > 1).count() as u32);
        let part = size_of::<TilePart>() + neighbours * size_of::<(u32, u32)>();
        parts.saturating_mul(part).saturating_add(2 * tiles * size_of::<AtomicU32>())
    }
}

/// The bits of the regions [x, y, z] that are reached along each axis.
fn region_bits([x, y, z]: [[bool; 3]; 3]) -> u32 {
    let mut bits = 0;
    for i in 0..27 {
        if x[i % 3] && y[i / 3 % 3] && z[i / 9] {
            bits |= 1 << i;
        }
    }
    bits
}

/// How many parts of each tile have been added to a grid.
pub struct MergeProgress {
    /// Inside the tile, and there and at its edges.
    inside: Vec<AtomicU32>,
    arrived: Vec<AtomicU32>,
    /// A part will never arrive, because a task panicked.
    failed: AtomicBool,
}

impl MergeProgress {
    /// Before the first part.
    pub fn reset(&mut self) {
        self.inside.iter_mut().chain(&mut self.arrived).for_each(|count| *count.get_mut() = 0);
        *self.failed.get_mut() = false;
    }

    /// Begins a part's work.
    pub fn begin<'a>(&'a self, part: &'a TilePart) -> MergeTicket<'a> {
        MergeTicket { progress: self, part, has_arrived: false }
    }
}

/// A part in work. Dropped before it has arrived it lets nobody wait for it any more.
pub struct MergeTicket<'a> {
    progress: &'a MergeProgress,
    part: &'a TilePart,
    has_arrived: bool,
}

impl MergeTicket<'_> {
    /// Waits until the part may be added inside its tile. False where it never may, because another task panicked: that
    /// panic reaches the caller.
    pub fn wait_inside(&self) -> bool {
        self.wait_for(&self.progress.inside[self.part.tile as usize], self.part.before)
    }

    /// The part has been added inside its tile.
    pub fn arrive_inside(&self) {
        self.progress.inside[self.part.tile as usize].fetch_add(1, Ordering::Release);
    }

    /// Waits until the part may be added at the edges of its tile too; see [`MergeTicket::wait_inside`].
    pub fn wait(&self, schedule: &Schedule) -> bool {
        let predecessors = &schedule.predecessors[self.part.predecessors.clone()];
        predecessors.iter().all(|&(tile, count)| self.wait_for(&self.progress.arrived[tile as usize], count))
    }

    /// The part has been added to the grid.
    pub fn arrive(mut self) {
        self.has_arrived = true;
        self.progress.arrived[self.part.tile as usize].fetch_add(1, Ordering::Release);
    }

    fn wait_for(&self, arrived: &AtomicU32, count: u32) -> bool {
        let failed = || self.progress.failed.load(Ordering::Relaxed);
        let mut spins = 0u32;
        while arrived.load(Ordering::Acquire) < count && !failed() {
            // A thread that has the part in work may want this processor.
            if spins < SPINS_BEFORE_YIELD {
                spins += 1;
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        !failed()
    }
}

impl Drop for MergeTicket<'_> {
    fn drop(&mut self) {
        if !self.has_arrived {
            self.progress.failed.store(true, Ordering::Relaxed);
        }
    }
}
