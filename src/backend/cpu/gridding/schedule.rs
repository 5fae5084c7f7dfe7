//! The order in which the parts of tiles are added to the grid. Every cell receives its sums in the same order for any
//! number of threads, and no thread waits long.
//!
//! A tile of many samples is divided into parts, so that the work is divided by samples rather than by tiles. A thread
//! sums a part in its own buffer without waiting. It then waits until all earlier parts that share cells with this part
//! are on the grid. Parts begin in this order, so a thread waits only for parts that other threads have already begun.
//! The parts of a dense tile are distributed over the whole order, and neighbours are far apart.
//!
//! The cells inside a tile belong to it alone, and those at its edges are shared with its neighbours. Parts of dense
//! neighbours wait for one another at their edges only.
//!
//! The first part that reaches a cell stores its sum there, so that the grid need not be cleared in advance.

use super::tiling::Tiling;
use crate::base::error::{try_reserve, try_vec, Result};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Minimum number of samples of a part, if its tile has them. Parts of adjacent tiles are added one by one, which takes
/// about ten microseconds if a different core has written last.
const MIN_PART: usize = 4096;
/// The same if there are few samples, of which a part has at most one in [`FEW_PARTS`]: a small grid has one tile.
const MIN_SMALL_PART: usize = 1024;
const FEW_PARTS: usize = 4;
/// Maximum part size, as about this fraction of all samples: enough parts for many cores, without long waits for the
/// densest tiles. Fewer parts are faster if adding a tile to the grid takes long.
const PART_SHARE: usize = 128;
const PART_SHARE_OF_LARGE_TILES: usize = 64;
/// Maximum number of parts of one tile. If all samples share one position, this number of sums of equal size is added
/// one by one, and their rounding errors may all have the same sign.
const MAX_PARTS: usize = 32;
/// Number of checks of a waiting thread before it yields its processor.
const SPINS_BEFORE_YIELD: u32 = 200;

/// Returns the maximum number of samples of a part, among `samples` samples.
pub fn longest_part(tiling: &Tiling, samples: usize) -> usize {
    longest_part_of(tiling, samples, samples).min(samples)
}

/// Returns the maximum number of samples of a part, of a tile with `points` of all `samples` samples.
fn longest_part_of(tiling: &Tiling, points: usize, samples: usize) -> usize {
    let least = samples.div_ceil(FEW_PARTS).clamp(MIN_SMALL_PART, MIN_PART);
    least.max(samples.div_ceil(part_share(tiling))).max(points.div_ceil(MAX_PARTS))
}

/// Returns the number of parts of all samples, if no tile is densely sampled.
fn part_share(tiling: &Tiling) -> usize {
    if tiling.fits_first_cache {
        PART_SHARE
    } else {
        PART_SHARE_OF_LARGE_TILES
    }
}

/// A part of a tile's samples, or a tile without samples, whose cells become zero.
pub struct TilePart {
    /// Index of the tile among all tiles, x fastest.
    pub tile: u32,
    /// Position of the tile along each axis.
    pub position: [u32; 3],
    /// The part's samples in the sorted order.
    pub points: Range<usize>,
    /// Number of earlier parts of its tile.
    preceding: u32,
    /// Whether its tile has several parts.
    pub is_split: bool,
    /// Range in `Schedule::predecessors` of the parts that must have arrived before this one is added.
    predecessors: Range<usize>,
    /// Bits [z][y][x] of the regions of [`TilePlacement`]: whether this part is the first to reach the region's cells.
    first_regions: u32,
}

impl TilePart {
    /// Returns whether the part is the first to reach the cells of a region [x, y, z].
    #[inline(always)]
    pub fn is_first(&self, [x, y, z]: [usize; 3]) -> bool {
        self.first_regions >> (9 * z + 3 * y + x) & 1 == 1
    }
}

/// The position of a tile's buffer on the grid.
pub struct TilePlacement {
    /// Cells of the grid.
    size: [usize; 3],
    /// The tile's first cell.
    pub origin: [usize; 3],
    /// Bounds of the three regions of a tile's buffer along each axis. Windows of the previous tile also reach region
    /// 0. Region 1 belongs to the tile alone. Region 2 contains the first cells of the next tile.
    pub regions: [[usize; 4]; 3],
}

impl TilePlacement {
    /// Returns the position of a part's tile.
    pub fn new(tiling: &Tiling, part: &TilePart) -> TilePlacement {
        let axes = [0, 1, 2].map(|axis| (&tiling.tiles[axis], part.position[axis] as usize, tiling.taps[axis] - 1));
        TilePlacement {
            size: tiling.size,
            origin: axes.map(|(tiles, tile, _)| tiles.first_cell(tile)),
            regions: axes.map(|(tiles, tile, overhang)| [0, overhang, tiles.len(tile), tiles.len(tile) + overhang]),
        }
    }

    /// Returns the region and the index of each plane or row of the buffer along an axis.
    pub fn lines(&self, axis: usize) -> impl Iterator<Item = (usize, usize)> {
        let bounds = self.regions[axis];
        (0..3).flat_map(move |region| (bounds[region]..bounds[region + 1]).map(move |line| (region, line)))
    }

    /// Returns the offset of the grid row that contains the buffer's row y of plane z.
    #[inline(always)]
    pub fn row(&self, z: usize, y: usize) -> usize {
        let [gx, gy, gz] = self.size;
        ((self.origin[2] + z) % gz * gy + (self.origin[1] + y) % gy) * gx
    }
}

/// The parts of all tiles, in their order.
pub struct Schedule {
    pub parts: Vec<TilePart>,
    /// Tiles, and the number of their parts that must have been added.
    predecessors: Vec<(u32, u32)>,
    tiles: usize,
}

impl Schedule {
    /// Creates a schedule without parts.
    pub fn empty() -> Schedule {
        Schedule { parts: Vec::new(), predecessors: Vec::new(), tiles: 0 }
    }

    /// Creates the schedule of tiles whose samples begin at these positions of the sorted order; the last entry is the
    /// end.
    pub fn new(tiling: &Tiling, starts: &[usize]) -> Result<Schedule> {
        let samples = starts[starts.len() - 1];
        let tiles = starts.len() - 1;
        let what = "the order of tiles";
        let parts_of = |tile: usize| {
            let points = starts[tile + 1] - starts[tile];
            points.div_ceil(longest_part_of(tiling, points, samples)).max(1)
        };
        let count = (0..tiles).map(parts_of).sum();
        let mut parts = try_reserve(count, what)?;
        let [nx, ny, _] = tiling.counts();
        for tile in 0..tiles {
            let (points, count) = (starts[tile + 1] - starts[tile], parts_of(tile));
            let position = [tile % nx, tile / nx % ny, tile / nx / ny].map(|i| i as u32);
            for i in 0..count {
                let points = starts[tile] + points * i / count..starts[tile] + points * (i + 1) / count;
                let rank = (2 * i + 1) as f64 / (2 * count) as f64;
                let (preceding, is_split) = (i as u32, count > 1);
                let part = TilePart {
                    tile: tile as u32,
                    position,
                    points,
                    preceding,
                    is_split,
                    predecessors: 0..0,
                    first_regions: 0,
                };
                parts.push((rank, part));
            }
        }
        // Parts of a tile have even distances. Parts at equal positions are ordered by the colour of their tiles
        // (parity along each axis), since tiles of one colour share no cells.
        let key = |(rank, part): &(f64, TilePart)| {
            let [x, y, z] = part.position.map(|at| at & 1);
            (rank.to_bits(), z, y, x, part.tile)
        };
        parts.sort_unstable_by_key(key);
        let parts = parts.into_iter().map(|(_, part)| part);
        let mut schedule = Schedule { parts: try_reserve(count, what)?, predecessors: Vec::new(), tiles };
        schedule.parts.extend(parts);
        schedule.find_predecessors(tiling, starts)?;
        Ok(schedule)
    }

    /// Determines the predecessors and first regions of each part, in the order of the parts.
    fn find_predecessors(&mut self, tiling: &Tiling, starts: &[usize]) -> Result<()> {
        let what = "the order of tiles";
        let counts = tiling.counts();
        let mut arrived = try_vec(self.tiles, 0u32, what)?;
        let neighbours = 3usize.pow(counts.iter().filter(|&&n| n > 1).count() as u32);
        self.predecessors = try_reserve(self.parts.len() * neighbours, what)?;
        let offsets = |axis: usize| if counts[axis] > 1 { 0..3 } else { 1..2 };
        // Regions reached by the previous, the same and the next tile along each axis, with and without samples.
        let mut reached = [[0; 2]; 27];
        for (z, y, x) in offsets(2).flat_map(|z| offsets(1).flat_map(move |y| offsets(0).map(move |x| (z, y, x)))) {
            let offset = [x, y, z].map(|o| o as i32 - 1);
            reached[9 * z + 3 * y + x] = [false, true].map(|empty| Self::reached_by(tiling, offset, empty));
        }
        for part in &mut self.parts {
            let start = self.predecessors.len();
            let empty = part.points.is_empty();
            part.first_regions = if arrived[part.tile as usize] > 0 { 0 } else { Self::all_regions(tiling, empty) };
            let around = [0, 1, 2].map(|a| {
                let (at, last) = (part.position[a] as usize, counts[a] - 1);
                [if at > 0 { at - 1 } else { last }, at, if at < last { at + 1 } else { 0 }]
            });
            for z in offsets(2) {
                for y in offsets(1) {
                    for x in offsets(0) {
                        let tile = (around[2][z] * counts[1] + around[1][y]) * counts[0] + around[0][x];
                        if arrived[tile] > 0 {
                            self.predecessors.push((tile as u32, arrived[tile]));
                            let empty = starts[tile] == starts[tile + 1];
                            part.first_regions &= !reached[9 * z + 3 * y + x][usize::from(empty)];
                        }
                    }
                }
            }
            part.predecessors = start..self.predecessors.len();
            arrived[part.tile as usize] += 1;
        }
        Ok(())
    }

    /// Returns the regions that a tile is the first to reach if no other tile has been added: without samples, only its
    /// own cells. If it is the only tile of an axis, region 2 is region 0, which it has reached before.
    fn all_regions(tiling: &Tiling, empty: bool) -> u32 {
        let reached = |axis: usize| match (tiling.taps[axis], empty || tiling.tiles[axis].count == 1) {
            (1, _) => [false, true, false],
            (_, false) => [true, true, true],
            (_, true) => [true, true, false],
        };
        region_bits([reached(0), reached(1), reached(2)])
    }

    /// Returns the regions of a tile that the tile at this offset also reaches.
    fn reached_by(tiling: &Tiling, offset: [i32; 3], empty: bool) -> u32 {
        let reached = |axis: usize| match (tiling.taps[axis], offset[axis], empty) {
            (1, ..) => [false, true, false],
            // The windows of the previous tile reach the first region.
            (_, -1, false) => [true, false, false],
            (_, -1, true) => [false; 3],
            (_, 0, false) => [true, true, true],
            (_, 0, true) => [true, true, false],
            (_, _, _) => [false, false, true],
        };
        region_bits([reached(0), reached(1), reached(2)])
    }

    /// Creates the counters of arrived parts for one spreading.
    pub fn progress(&self) -> Result<MergeProgress> {
        let counters = || {
            let mut counters = try_reserve(self.tiles, "the order of tiles")?;
            counters.resize_with(self.tiles, AtomicU32::default);
            Ok(counters)
        };
        Ok(MergeProgress { inside: counters()?, arrived: counters()?, failed: AtomicBool::new(false) })
    }

    /// Returns the bytes of the counters of one spreading.
    pub fn bytes_of_progress(tiling: &Tiling) -> usize {
        tiling.counts().iter().product::<usize>().saturating_mul(2 * size_of::<AtomicU32>())
    }

    /// Estimates the bytes held for `samples` samples, without spreadings in progress.
    pub fn bytes(tiling: &Tiling, samples: usize) -> usize {
        let tiles: usize = tiling.counts().iter().product();
        // There is at most one part for each tile and one for each fraction of the samples.
        let parts = tiles.saturating_add((samples / MIN_PART).clamp(FEW_PARTS, part_share(tiling)));
        let neighbours = 3usize.pow(tiling.counts().iter().filter(|&&n| n > 1).count() as u32);
        let part = size_of::<TilePart>() + neighbours * size_of::<(u32, u32)>();
        parts.saturating_mul(part)
    }
}

/// Bits of all regions [z][y][x] whose index along x, y and z is 0, 1 and 2.
const REGIONS: [[u32; 3]; 3] = [
    [0o111_111_111, 0o222_222_222, 0o444_444_444],
    [0o007_007_007, 0o070_070_070, 0o700_700_700],
    [0o000_000_777, 0o000_777_000, 0o777_000_000],
];

/// Returns the bits of the regions [x, y, z] that are reached along each axis.
fn region_bits(reached: [[bool; 3]; 3]) -> u32 {
    let mut bits = u32::MAX;
    for (reached, regions) in reached.iter().zip(REGIONS) {
        bits &= reached.iter().zip(regions).filter(|(reached, _)| **reached).fold(0, |bits, (_, region)| bits | region);
    }
    bits
}

/// The number of parts of each tile that have been added to a grid.
pub struct MergeProgress {
    /// Number of parts added inside each tile.
    inside: Vec<AtomicU32>,
    /// Number of parts added inside each tile and at its edges.
    arrived: Vec<AtomicU32>,
    /// Whether a part will never arrive, because a task panicked.
    failed: AtomicBool,
}

impl MergeProgress {
    /// Resets the counters to no parts.
    pub fn reset(&mut self) {
        self.inside.iter_mut().chain(&mut self.arrived).for_each(|count| *count.get_mut() = 0);
        *self.failed.get_mut() = false;
    }

    /// Returns the ticket of a part.
    pub fn begin<'a>(&'a self, part: &'a TilePart) -> MergeTicket<'a> {
        MergeTicket { progress: self, part, has_arrived: false }
    }
}

/// The right to add a part to the grid in its order. If it is dropped before the part has arrived, no thread waits for
/// the part any more.
pub struct MergeTicket<'a> {
    progress: &'a MergeProgress,
    part: &'a TilePart,
    has_arrived: bool,
}

impl MergeTicket<'_> {
    /// Waits until the part may be added inside its tile. Returns false if another task panicked, so that it never may;
    /// that panic reaches the caller.
    pub fn wait_inside(&self) -> bool {
        self.wait_for(&self.progress.inside[self.part.tile as usize], self.part.preceding)
    }

    /// Records that the part has been added inside its tile.
    pub fn arrive_inside(&self) {
        self.progress.inside[self.part.tile as usize].fetch_add(1, Ordering::Release);
    }

    /// Waits until the part may also be added at the edges of its tile, see [`MergeTicket::wait_inside`].
    pub fn wait(&self, schedule: &Schedule) -> bool {
        let predecessors = &schedule.predecessors[self.part.predecessors.clone()];
        predecessors.iter().all(|&(tile, count)| self.wait_for(&self.progress.arrived[tile as usize], count))
    }

    /// Records that the part has been added to the grid.
    pub fn arrive(mut self) {
        self.has_arrived = true;
        self.progress.arrived[self.part.tile as usize].fetch_add(1, Ordering::Release);
    }

    /// Waits until `count` parts have arrived. Returns false if a task panicked.
    fn wait_for(&self, arrived: &AtomicU32, count: u32) -> bool {
        let failed = || self.progress.failed.load(Ordering::Relaxed);
        let mut spins = 0u32;
        while arrived.load(Ordering::Acquire) < count && !failed() {
            // The thread that processes the awaited part may need this processor.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The bits of regions are those of the definition, for every combination of regions that are reached.
    #[test]
    fn bits_are_those_of_the_regions() {
        let bools = |bits: usize| [0, 1, 2].map(|i| bits >> i & 1 == 1);
        for all in 0..512 {
            let [x, y, z] = [bools(all), bools(all >> 3), bools(all >> 6)];
            let expected = (0..27).filter(|i| x[i % 3] && y[i / 3 % 3] && z[i / 9]).fold(0, |bits, i| bits | 1 << i);
            assert_eq!(region_bits([x, y, z]), expected, "{x:?} {y:?} {z:?}");
        }
    }
}
