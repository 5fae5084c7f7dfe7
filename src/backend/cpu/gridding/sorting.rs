//! Sorts samples by tile, and within a tile by the vector in which their windows start.

use super::tiling::Tiling;
use crate::backend::cpu::simd::SimdReal;
use crate::backend::cpu::thread_pool::{Shared, Threads};
use crate::base::error::{bail, checked_product, try_collect, try_reserve, try_vec, Result};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many samples of a tile whose windows start in one vector make a run, which is summed in blocks of so many at
/// most.
pub const RUN_BLOCK: usize = 128;

/// A sample, relative to its tile.
#[derive(Clone, Copy)]
pub struct Point<T> {
    /// Its offset in the first cell of its window as the polynomials' variable.
    pub t: [T; 3],
    /// The cell of the tile's buffer, at the start of a vector, from which its window starts `shift` cells on.
    pub at: u32,
    pub shift: u32,
}

/// A tile that has samples: its first grid cell, its points, and where its runs are.
pub struct Tile {
    pub origin: [usize; 3],
    pub points: Range<usize>,
    pub runs: Range<usize>,
}

/// Samples in the order in which they are gridded.
pub struct SortedSamples<T> {
    pub points: Vec<Point<T>>,
    /// The sample that each point is.
    pub order: Vec<u32>,
    /// Tiles that have samples, colour by colour.
    pub tiles: Vec<Tile>,
    /// Runs of the tiles' points; a tile's empty ones come last.
    pub runs: Vec<Range<usize>>,
    /// Ranges of `tiles` of one colour.
    pub colours: Vec<Range<usize>>,
}

impl<T: SimdReal> SortedSamples<T> {
    /// Sorts samples at `k`; `grid` is for a message.
    pub fn new(threads: &Threads, k: &[&[T]], grid: &[usize], width: usize, tiling: &Tiling) -> Result<Self> {
        let windows = Windows { k, width, size: tiling.size };
        let numbers = TileNumbers::new(tiling, grid)?;
        let (starts, mut order) = sort_by_tile(threads, &windows, tiling, &numbers)?;
        let (tiles, colours) = tiles_with_samples(tiling, &numbers, &starts)?;
        let (points, runs) = sort_within_tiles(threads, &windows, tiling, &tiles, &mut order)?;
        Ok(SortedSamples { points, order, tiles, runs, colours })
    }
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

    /// The first cell of sample `m`'s window on an axis, and the polynomials' variable. In double precision: a grid
    /// position in single precision would cost two digits of the offset.
    #[inline(always)]
    fn locate(&self, axis: usize, m: usize) -> (usize, T) {
        if axis >= self.k.len() {
            return (0, T::ZERO);
        }
        let position = self.k[axis][m].wide() * self.size[axis] as f64 - 0.5 * self.width as f64;
        let truncated = position as i64;
        let first = truncated + i64::from(truncated as f64 != position && position > 0.0);
        let t = 2.0 * (first as f64 - position) - 1.0;
        // A grid is at least two windows long, so that one period brings any start inside.
        let cell = if first < 0 { first + self.size[axis] as i64 } else { first };
        (cell as usize, T::of(t))
    }

    /// All axes of a sample, written out: the compiler would call a closure for each.
    #[inline(always)]
    fn locate_all(&self, m: usize) -> [(usize, T); 3] {
        [self.locate(0, m), self.locate(1, m), self.locate(2, m)]
    }
}

/// The tiles of a grid, numbered colour by colour.
struct TileNumbers {
    /// The number of each tile [x, y, z], x fastest.
    number: Vec<u32>,
    /// The tile [x, y, z] of each number.
    tile: Vec<[usize; 3]>,
    /// The first number after each colour.
    colour_ends: Vec<usize>,
}

impl TileNumbers {
    fn new(tiling: &Tiling, grid: &[usize]) -> Result<TileNumbers> {
        let [nx, ny, nz] = tiling.counts();
        let count = checked_product(&[nx, ny, nz], "the tiles of the grid")?;
        if count > u32::MAX as usize {
            bail!(
                SizeOverflow,
                "a grid of {grid:?} has more tiles than a plan takes ({}): use a smaller image",
                u32::MAX
            );
        }
        let mut number = try_vec(count, 0u32, "the tile order")?;
        let mut tile = try_vec(count, [0; 3], "the tile order")?;
        let mut next = 0;
        let mut colour_ends = Vec::new();
        for colour in 0..8usize {
            let parity = [colour & 1, colour >> 1 & 1, colour >> 2];
            for z in (parity[2]..nz).step_by(2) {
                for y in (parity[1]..ny).step_by(2) {
                    for x in (parity[0]..nx).step_by(2) {
                        number[(z * ny + y) * nx + x] = next as u32;
                        tile[next] = [x, y, z];
                        next += 1;
                    }
                }
            }
            colour_ends.push(next);
        }
        Ok(TileNumbers { number, tile, colour_ends })
    }
}

/// A stable counting sort: samples in the order of their tiles' numbers, after where each tile's samples start.
fn sort_by_tile<T: SimdReal>(
    threads: &Threads,
    windows: &Windows<T>,
    tiling: &Tiling,
    numbers: &TileNumbers,
) -> Result<(Vec<usize>, Vec<u32>)> {
    const BLOCK: usize = 1 << 14;
    let samples = windows.samples();
    let [nx, ny, _] = tiling.counts();
    let mut keys = try_vec(samples, 0u32, "the sample order")?;
    let shared = Shared::new(&mut keys);
    threads.run(samples.div_ceil(BLOCK), |block| {
        let range = block * BLOCK..((block + 1) * BLOCK).min(samples);
        // SAFETY: blocks do not overlap.
        let keys = unsafe { shared.part(range.start, range.len()) };
        // Copies, which what is written cannot change.
        let (windows, tiles) = (*windows, tiling.tiles);
        for (key, m) in keys.iter_mut().zip(range) {
            let [x, y, z] = windows.locate_all(m);
            let (x, y, z) = (tiles[0].tile_of(x.0), tiles[1].tile_of(y.0), tiles[2].tile_of(z.0));
            *key = numbers.number[(z * ny + y) * nx + x];
        }
    });
    let tiles = numbers.number.len();
    let mut starts = try_vec(tiles + 1, 0usize, "the tile order")?;
    for &key in &keys {
        starts[key as usize + 1] += 1;
    }
    for i in 0..tiles {
        starts[i + 1] += starts[i];
    }
    let mut order = try_vec(samples, 0u32, "the sample order")?;
    let mut next = try_collect(starts.len(), "the tile order", starts.iter().copied())?;
    for (m, &key) in keys.iter().enumerate() {
        order[next[key as usize]] = m as u32;
        next[key as usize] += 1;
    }
    Ok((starts, order))
}

/// The tiles that have samples, with room for the runs of each, and the ranges of one colour among them.
fn tiles_with_samples(
    tiling: &Tiling,
    numbers: &TileNumbers,
    starts: &[usize],
) -> Result<(Vec<Tile>, Vec<Range<usize>>)> {
    let full = starts.windows(2).filter(|ends| ends[0] < ends[1]).count();
    let mut tiles = try_reserve(full, "the tile order")?;
    let mut colours = Vec::new();
    let (mut first, mut runs_end) = (0, 0);
    for &end in &numbers.colour_ends {
        let from = tiles.len();
        for number in first..end {
            let points = starts[number]..starts[number + 1];
            if !points.is_empty() {
                let origin = [0, 1, 2].map(|a| tiling.tiles[a].first_cell(numbers.tile[number][a]));
                let runs = runs_end..runs_end + points.len() / RUN_BLOCK;
                runs_end = runs.end;
                tiles.push(Tile { origin, points, runs });
            }
        }
        if tiles.len() > from {
            colours.push(from..tiles.len());
        }
        first = end;
    }
    Ok((tiles, colours))
}

/// Sorts the samples of each tile by the vector in which their windows start. Returns the points in this order, and
/// their runs.
fn sort_within_tiles<T: SimdReal>(
    threads: &Threads,
    windows: &Windows<T>,
    tiling: &Tiling,
    tiles: &[Tile],
    order: &mut [u32],
) -> Result<(Vec<Point<T>>, Vec<Range<usize>>)> {
    let nowhere = Point { t: [T::ZERO; 3], at: 0, shift: 0 };
    let mut points = try_vec(windows.samples(), nowhere, "the sorted samples")?;
    let mut runs = try_vec(tiles.last().map_or(0, |tile| tile.runs.end), 0..0, "the sorted samples")?;
    // Each thread has keys for the fullest tile.
    let fullest = tiles.iter().map(|t| t.points.len()).max().unwrap_or(0);
    let mut keys = try_vec(fullest.saturating_mul(threads.count().min(tiles.len())), 0u64, "sorting the samples")?;
    let shared_keys = Shared::new(&mut keys);
    let (shared, shared_order, shared_runs) = (Shared::new(&mut points), Shared::new(order), Shared::new(&mut runs));
    let thread = AtomicUsize::new(0);
    let keys_of_thread = || thread.fetch_add(1, Ordering::Relaxed) * fullest;
    threads.run_with(tiles.len(), keys_of_thread, |first_key, i| {
        let tile = &tiles[i];
        let (start, len) = (tile.points.start, tile.points.len());
        // SAFETY: each thread that takes part has its keys, and no tile is fuller than the fullest.
        let keys = unsafe { shared_keys.part(*first_key, len) };
        // SAFETY: tiles share neither points nor runs.
        let (points, order, runs) = unsafe {
            let runs = shared_runs.part(tile.runs.start, tile.runs.len());
            (shared.part(start, len), shared_order.part(start, len), runs)
        };
        sort_tile(windows, tiling, tile, keys, order, points);
        find_runs(points, start, runs);
    });
    Ok((points, runs))
}

/// Sorts the samples of one tile, and writes its points.
fn sort_tile<T: SimdReal>(
    windows: &Windows<T>,
    tiling: &Tiling,
    tile: &Tile,
    keys: &mut [u64],
    order: &mut [u32],
    points: &mut [Point<T>],
) {
    // Copies, which what is written cannot change.
    let (windows, origin, cells, [row, rows, _]) = (*windows, tile.origin, tiling.layout.cells, tiling.extent);
    let position = |[x, y, z]: [(usize, T); 3]| {
        let (x, y, z) = (x.0 - origin[0], y.0 - origin[1], z.0 - origin[2]);
        let shift = x % cells;
        ((z * rows + y) * row + x - shift, shift)
    };
    for (key, &m) in keys.iter_mut().zip(order.iter()) {
        let (at, _) = position(windows.locate_all(m as usize));
        *key = (at as u64) << 32 | m as u64;
    }
    // The sample's own number is in the key, so that no two are equal.
    keys.sort_unstable();
    for ((point, order), &key) in points.iter_mut().zip(order).zip(keys.iter()) {
        *order = key as u32;
        let located = windows.locate_all(*order as usize);
        let (at, shift) = position(located);
        let [x, y, z] = located;
        *point = Point { t: [x.1, y.1, z.1], at: at as u32, shift: shift as u32 };
    }
}

/// Writes the runs of a tile's points, which begin at point `start`; empty ones behind them.
fn find_runs<T>(points: &[Point<T>], mut start: usize, runs: &mut [Range<usize>]) {
    let mut runs = runs.iter_mut();
    for run in points.chunk_by(|a, b| a.at == b.at) {
        if run.len() >= RUN_BLOCK {
            *runs.next().expect("there is room for all") = start..start + run.len();
        }
        start += run.len();
    }
    runs.for_each(|run| *run = start..start);
}
