//! The division of tiles into parts, and the order in which parts are summed and tiles are added to the grid.
//!
//! A tile of many samples is divided into parts, so that the work is divided by samples rather than by tiles. The sums
//! of a tile's parts are added in pairs. The tile's total is then added to the grid after the neighbours that precede
//! it in this order. So every cell receives its sums in the same order for any number of threads (merging.rs). The
//! order in which parts begin does not matter for that, and is chosen for speed: see [`PartOrder`].
//!
//! The first tile that reaches a cell stores its sum there, so that the grid need not be cleared in advance, except if
//! most tiles are empty.

use super::tiling::Tiling;
use crate::base::error::{try_reserve, try_vec, Result};
use crate::base::sizes::product;
use num_complex::Complex;
use std::ops::Range;

/// Minimum number of samples of a part, if its tile has them: its buffer is cleared and added to another.
const MIN_PART: usize = 4096;
/// The same if there are few samples, of which a part has at most one in [`FEW_PARTS`]: a small grid has one tile.
const MIN_SMALL_PART: usize = 1024;
const FEW_PARTS: usize = 8;
/// Maximum size of a part, as about this fraction of all samples: enough parts for many cores. Fewer parts are faster
/// if adding a tile takes long.
const PART_SHARE: usize = 256;
const PART_SHARE_OF_LARGE_TILES: usize = 128;

/// Returns the maximum number of samples of a part, among `samples` samples.
pub fn longest_part(tiling: &Tiling, samples: usize) -> usize {
    let least = samples.div_ceil(FEW_PARTS).clamp(MIN_SMALL_PART, MIN_PART);
    least.max(samples.div_ceil(part_share(tiling)))
}

/// Returns the maximum number of parts of a tile, among `samples` samples.
fn most_parts(tiling: &Tiling, samples: usize) -> usize {
    samples.div_ceil(longest_part(tiling, samples)).max(1)
}

/// Returns the number of parts of all samples, if there are many.
fn part_share(tiling: &Tiling) -> usize {
    if tiling.fits_first_cache {
        PART_SHARE
    } else {
        PART_SHARE_OF_LARGE_TILES
    }
}

/// The windows of a sparse tile have at most one in this number of the cells of the buffer.
const SPARSE_SHARE: usize = 2;
/// The windows of a part that is interpolated from the grid have at most this number of times the cells of the buffer.
/// Measured on 2 Intel threads in 2D and 3D: 4 makes transforms of few samples up to a third shorter, and 8 makes
/// others up to 1.28 times as long.
const INTERPOLATED_FROM_GRID: usize = 4;

/// Minimum number of bytes of a call's values for [`PartOrder::BySample`]. Fewer remain in the processor's cache.
const MIN_BYTES_BY_SAMPLE: usize = 8 << 20;
/// Minimum number of parts of a tile for [`PartOrder::BySample`], on average.
const MIN_PARTS_BY_SAMPLE: usize = 4;

/// The order in which the parts of different tiles begin.
#[derive(Clone, Copy, PartialEq)]
pub enum PartOrder {
    /// The parts of a tile follow one another, so that few sums exist at a time.
    ByTile,
    /// Parts follow one another as their first samples do in the caller's order. Samples of different tiles may
    /// alternate in that order, and each tile reads and writes a few values of nearly every cache line. In this order,
    /// tiles do so while the line is in the cache.
    BySample,
}

impl PartOrder {
    /// Chooses the order for `samples` samples and calls with `arrays` arrays.
    pub fn choose<T>(tiling: &Tiling, samples: usize, arrays: usize) -> PartOrder {
        let tiles = product(&tiling.counts());
        let bytes = |elements: usize| product(&[arrays, elements, size_of::<Complex<T>>()]);
        let sums = product(&[PartOrder::BySample.most_left_sums(tiling, samples), tiling.buffer_len()]);
        let has_many_parts = most_parts(tiling, samples) >= product(&[MIN_PARTS_BY_SAMPLE, tiles]);
        // The sums also take memory, and should not take more than the values.
        if tiles > 1 && has_many_parts && bytes(samples) >= MIN_BYTES_BY_SAMPLE.max(bytes(sums)) {
            PartOrder::BySample
        } else {
            PartOrder::ByTile
        }
    }

    /// Returns the maximum number of sums that are left for others in a spreading of `samples` samples if all parts
    /// that were begun are complete.
    ///
    /// The parts of a tile that were begun are its first ones. Their sums are at most one for each level of pairs, and
    /// one if the tile is complete. By tile, all tiles before one tile are on the grid, and no part of a later tile was
    /// begun.
    pub fn most_left_sums(self, tiling: &Tiling, samples: usize) -> usize {
        let levels = |parts: usize| parts.next_power_of_two().ilog2() as usize;
        let (parts, tiles) = (most_parts(tiling, samples), product(&tiling.counts()));
        match self {
            PartOrder::ByTile => levels(parts),
            // The logarithm of a mean is at least the mean of logarithms. Each tile may have one part that is not full.
            PartOrder::BySample => product(&[tiles, levels(1 + parts.div_ceil(tiles)) + 1]),
        }
    }
}

/// A part of a tile's samples. A tile without samples has one part without samples.
pub struct TilePart {
    /// Index of the tile in [`Schedule::tiles`].
    pub tile: usize,
    /// Index of the part among those of its tile.
    pub index: usize,
    /// The part's samples in the sorted order.
    pub points: Range<usize>,
}

impl TilePart {
    /// Returns whether its windows are interpolated from the grid, without a copy of the tile's cells.
    pub fn is_interpolated_from_grid(&self, tiling: &Tiling) -> bool {
        product(&[self.points.len(), tiling.block_len()]) <= product(&[INTERPOLATED_FROM_GRID, tiling.buffer_len()])
    }
}

/// A tile and its place in the order.
pub struct ScheduledTile {
    /// Position of the tile along each axis.
    position: [u32; 3],
    /// Number of parts.
    pub parts: u32,
    /// The tile's samples in the sorted order.
    pub points: Range<usize>,
    /// Number of the first pair of the tile's parts, among those of all tiles: see merging.rs.
    pub first_pair: u32,
    /// Number of neighbours that are added to the grid before this tile.
    pub predecessors: u32,
    /// Range in `Schedule::successors` of the neighbours that are added after this tile.
    successors: Range<usize>,
    /// Bits [z][y][x] of the regions of [`TilePlacement`]: whether this tile is the first to reach the region's cells.
    first_regions: u32,
}

impl ScheduledTile {
    /// Returns whether the tile is sparse: see sparse_tiles.rs.
    #[inline(always)]
    pub fn is_sparse(&self, tiling: &Tiling) -> bool {
        product(&[SPARSE_SHARE, self.points.len(), tiling.block_len()]) <= tiling.buffer_len()
    }

    /// Returns whether the tile is the first to reach the cells of a region [x, y, z].
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
    /// Returns the position of a tile.
    pub fn new(tiling: &Tiling, tile: &ScheduledTile) -> TilePlacement {
        let axes = [0, 1, 2].map(|axis| (&tiling.tiles[axis], tile.position[axis] as usize, tiling.taps[axis] - 1));
        TilePlacement {
            size: tiling.size,
            origin: axes.map(|(tiles, tile, _)| tiles.first_cell(tile)),
            regions: axes.map(|(tiles, tile, overhang)| [0, overhang, tiles.len(tile), tiles.len(tile) + overhang]),
        }
    }

    /// Returns the number of cells along an axis that belong to the tile itself.
    pub fn own_cells(&self, axis: usize) -> usize {
        self.regions[axis][2]
    }

    /// Returns the number of cells along an axis that the windows of the tile's samples reach.
    pub fn reached_cells(&self, axis: usize) -> usize {
        self.regions[axis][3]
    }

    /// Returns the region and the index of each plane or row of the buffer along an axis.
    pub fn lines(&self, axis: usize) -> impl Iterator<Item = (usize, usize)> {
        let bounds = self.regions[axis];
        (0..3).flat_map(move |region| (bounds[region]..bounds[region + 1]).map(move |line| (region, line)))
    }

    /// Returns the grid's rows in the plane that contains the buffer's plane z.
    #[inline(always)]
    fn plane(&self, z: usize) -> Range<usize> {
        let [_, gy, gz] = self.size;
        let start = (self.origin[2] + z) % gz * gy;
        start..start + gy
    }

    /// Returns whether the plane that contains the buffer's plane z has some of these rows of the grid, which are
    /// numbered through all planes.
    #[inline(always)]
    pub fn reaches_rows(&self, z: usize, rows: &Range<usize>) -> bool {
        let plane = self.plane(z);
        rows.start < plane.end && plane.start < rows.end
    }

    /// Returns the grid's row, numbered through all planes, that contains the buffer's row y of plane z.
    #[inline(always)]
    pub fn row_number(&self, z: usize, y: usize) -> usize {
        self.plane(z).start + (self.origin[1] + y) % self.size[1]
    }

    /// Returns the offset of the grid's row that contains the buffer's row y of plane z.
    #[inline(always)]
    pub fn row(&self, z: usize, y: usize) -> usize {
        self.row_number(z, y) * self.size[0]
    }
}

/// All tiles and their parts, in their order.
pub struct Schedule {
    pub parts: Vec<TilePart>,
    pub tiles: Vec<ScheduledTile>,
    /// Indices of tiles.
    successors: Vec<u32>,
}

impl Schedule {
    /// Creates a schedule without parts.
    pub fn empty() -> Schedule {
        Schedule { parts: Vec::new(), tiles: Vec::new(), successors: Vec::new() }
    }

    /// Creates the schedule of tiles whose samples begin at these positions of `sorted`; the last entry is the end.
    /// `sorted` contains the indices of the samples of each tile in the caller's order.
    ///
    /// Tiles are ordered by colour (parity along each axis), since tiles of one colour share no cells.
    pub fn new(tiling: &Tiling, starts: &[usize], sorted: &[u32], part_order: PartOrder) -> Result<Schedule> {
        let what = "the order of tiles";
        let longest = longest_part(tiling, starts[starts.len() - 1]);
        let parts_of = |points: usize| points.div_ceil(longest).max(1);
        let count = starts.windows(2).map(|ends| parts_of(ends[1] - ends[0])).sum();
        let mut parts = try_reserve(count, what)?;
        let mut tiles = try_reserve(starts.len() - 1, what)?;
        // Place in the order of each tile, x fastest.
        let mut places = try_vec(starts.len() - 1, 0u32, what)?;
        let [nx, ny, nz] = tiling.counts();
        let mut pairs = 0;
        for [x, y, z] in by_colour([nx, ny, nz]) {
            let at = (z * ny + y) * nx + x;
            let (start, points) = (starts[at], starts[at + 1] - starts[at]);
            let count = parts_of(points);
            parts.extend((0..count).map(|index| TilePart {
                tile: tiles.len(),
                index,
                points: start + points * index / count..start + points * (index + 1) / count,
            }));
            places[at] = tiles.len() as u32;
            tiles.push(ScheduledTile {
                position: [x, y, z].map(|i| i as u32),
                parts: count as u32,
                points: start..start + points,
                first_pair: pairs,
                predecessors: 0,
                successors: 0..0,
                first_regions: 0,
            });
            pairs += count as u32 - 1;
        }
        if part_order == PartOrder::BySample {
            // The place of a tile without samples does not matter.
            parts.sort_unstable_by_key(|part: &TilePart| (sorted.get(part.points.start), part.tile));
        }
        let mut schedule = Schedule { parts, tiles, successors: Vec::new() };
        schedule.find_neighbours(tiling, &places)?;
        Ok(schedule)
    }

    /// Determines the predecessors, successors and first regions of each tile.
    fn find_neighbours(&mut self, tiling: &Tiling, places: &[u32]) -> Result<()> {
        let counts = tiling.counts();
        // A neighbour is one tile's predecessor and the other's successor.
        let neighbours = neighbours(tiling) - 1;
        self.successors = try_reserve((self.tiles.len() * neighbours).div_ceil(2), "the order of tiles")?;
        let offsets = |axis: usize| if counts[axis] > 1 { 0..3 } else { 1..2 };
        // Regions reached by the previous, the same and the next tile along each axis, with and without samples.
        let mut reached = [[0; 2]; 27];
        for (z, y, x) in offsets(2).flat_map(|z| offsets(1).flat_map(move |y| offsets(0).map(move |x| (z, y, x)))) {
            let offset = [x, y, z].map(|o| o as i32 - 1);
            reached[9 * z + 3 * y + x] = [false, true].map(|empty| Self::reached_by(tiling, offset, empty));
        }
        for place in 0..self.tiles.len() {
            let tile = &self.tiles[place];
            let start = self.successors.len();
            let (mut predecessors, mut first_regions) = (0, Self::all_regions(tiling, tile.points.is_empty()));
            let around = [0, 1, 2].map(|a| {
                let (at, last) = (tile.position[a] as usize, counts[a] - 1);
                [if at > 0 { at - 1 } else { last }, at, if at < last { at + 1 } else { 0 }]
            });
            for z in offsets(2) {
                for y in offsets(1) {
                    for x in offsets(0) {
                        let neighbour = places[(around[2][z] * counts[1] + around[1][y]) * counts[0] + around[0][x]];
                        if (neighbour as usize) < place {
                            let empty = self.tiles[neighbour as usize].points.is_empty();
                            predecessors += 1;
                            first_regions &= !reached[9 * z + 3 * y + x][usize::from(empty)];
                        } else if neighbour as usize > place {
                            self.successors.push(neighbour);
                        }
                    }
                }
            }
            let successors = start..self.successors.len();
            let tile = &mut self.tiles[place];
            (tile.predecessors, tile.successors, tile.first_regions) = (predecessors, successors, first_regions);
        }
        Ok(())
    }

    /// Returns the neighbours that are added to the grid after a tile. A neighbour on both sides is listed twice.
    pub fn successors(&self, tile: usize) -> impl Iterator<Item = usize> + '_ {
        self.successors[self.tiles[tile].successors.clone()].iter().map(|&tile| tile as usize)
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

    /// Estimates the bytes held for `samples` samples.
    pub fn bytes(tiling: &Tiling, samples: usize) -> usize {
        let tiles: usize = tiling.counts().iter().product();
        // A tile has one part, and one for each time that it has the samples of the longest part.
        let parts = tiles.saturating_add(most_parts(tiling, samples));
        let tile = size_of::<ScheduledTile>() + (neighbours(tiling) * size_of::<u32>()).div_ceil(2);
        tiles.saturating_mul(tile).saturating_add(parts.saturating_mul(size_of::<TilePart>()))
    }
}

/// Returns the number of tiles that share cells with a tile, and the tile itself.
fn neighbours(tiling: &Tiling) -> usize {
    3usize.pow(tiling.counts().iter().filter(|&&n| n > 1).count() as u32)
}

/// Returns the positions of all tiles, ordered by their parity along z, y and x.
fn by_colour([nx, ny, nz]: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    let axis = |n: usize, parity: usize| (parity..n).step_by(2);
    (0..8).flat_map(move |colour| {
        let [px, py, pz] = [colour & 1, colour >> 1 & 1, colour >> 2];
        axis(nz, pz).flat_map(move |z| axis(ny, py).flat_map(move |y| axis(nx, px).map(move |x| [x, y, z])))
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::simd::Level;

    /// Parts begin by sample if few tiles have many samples, and by tile otherwise.
    #[test]
    fn parts_of_few_dense_tiles_begin_by_sample() {
        let order = |grid: &[usize], samples, arrays| {
            let tiling = Tiling::new::<f32>(Level::all()[0], grid, 4);
            match PartOrder::choose::<f32>(&tiling, samples, arrays) {
                PartOrder::ByTile => "tile",
                PartOrder::BySample => "sample",
            }
        };
        assert_eq!(order(&[240, 240], 1 << 20, 1), "sample");
        assert_eq!(order(&[800, 24], 1_200_000, 1), "sample");
        assert_eq!(order(&[240, 240], 1 << 19, 1), "tile");
        assert_eq!(order(&[240, 240], 1 << 19, 2), "sample");
        // One tile.
        assert_eq!(order(&[40, 40], 1 << 24, 1), "tile");
        // Few samples in each tile.
        assert_eq!(order(&[1024, 1024], 1 << 24, 1), "tile");
        assert_eq!(order(&[128, 128, 128], 1 << 24, 1), "tile");
        // Sums of eight tiles in 3D take 17 MB.
        assert_eq!(order(&[128, 32, 32], 1 << 20, 1), "tile");
        assert_eq!(order(&[128, 32, 32], 1 << 24, 1), "sample");
    }

    /// By sample, parts begin in the order of their samples, and those of a tile keep their order.
    #[test]
    fn parts_by_sample_are_in_the_order_of_their_samples() {
        let tiling = Tiling::new::<f32>(Level::all()[0], &[240, 240], 4);
        let tiles = product(&tiling.counts());
        let samples = 200_000;
        // The samples of all tiles alternate.
        let starts: Vec<usize> = (0..=tiles).map(|tile| tile * samples).collect();
        let sorted: Vec<u32> =
            (0..tiles).flat_map(|tile| (0..samples).map(move |i| (i * tiles + tile) as u32)).collect();
        let schedule = Schedule::new(&tiling, &starts, &sorted, PartOrder::BySample).unwrap();
        let first = |part: &TilePart| sorted[part.points.start];
        assert!(schedule.parts.is_sorted_by_key(first));
        let mut next = vec![0; tiles];
        for part in &schedule.parts {
            assert_eq!(part.index, next[part.tile]);
            next[part.tile] += 1;
        }
        assert!(next.iter().zip(&schedule.tiles).all(|(&next, tile)| next == tile.parts as usize && next > 1));
    }

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
