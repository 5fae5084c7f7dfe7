//! Spreading samples onto the oversampled grid, and interpolating from it.
//!
//! The grid is cut into tiles. Samples are sorted by the tile in which their window starts; a tile's samples are added
//! up in a buffer of the tile and the window's overhang, which stays in cache and needs no wrap-around, and the buffer
//! is then added to the grid. Tiles of one colour (parity of the tile's index on each axis) never overlap, so they are
//! worked on side by side, and colours follow one another: every grid point receives its sums in the same order
//! whatever the number of threads.
//!
//! Rows of a tile are added to a vector at a time, at whole vectors: the window's taps are moved within the vectors to
//! where the window starts. Samples whose windows start in the same vector then meet in the same registers, and no load
//! waits for a store that covers a part of it.
//!
//! A running sum rounds with every addition, and where thousands of samples add the same value to the same cells, as in
//! the centre of a kooshball, all roundings may have one sign. So where many samples' windows start in one vector,
//! these are summed in blocks, apart, and the blocks' sums added to the tile by sums of twice the precision (Knuth's
//! TwoSum).

use super::memory::Aligned;
use super::simd::{prefetch, Arith, Kernel, Level, Vector};
use super::thread_pool::{Shared, Threads};
use crate::backend::cpu::simd::SimdReal;
use crate::backend::MAX_WIDTH;
use crate::base::buffer_pool::{Lease, Pool};
use crate::base::error::{bail, checked_product, try_collect, try_reserve, try_vec, Result};
use crate::base::sizes::{product, sum, three_axes};
use num_complex::Complex;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The edges of a tile in grid cells, about: buffers of 2D and 3D tiles fit the first and second cache, and rows are
/// long enough for the grid's memory to be read and written at its bandwidth.
const TILE_2D: [usize; 3] = [64, 32, 1];
const TILE_3D: [usize; 3] = [64, 16, 16];
/// Samples whose taps are computed before any of them is used.
const CHUNK: usize = 32;
/// Samples whose taps are computed side by side, so that no multiply-add waits for the one before it. Divides `CHUNK`.
const ABREAST: usize = 8;
/// Rows of a tile that are fetched before they are wanted.
const AHEAD: usize = 6;
/// Samples that go through their cells together, at most: a power of two.
const GROUP: usize = 8;
/// So many samples whose windows start in one vector are summed in blocks, of so many at most.
const MANY: usize = 128;

/// Samples sorted for one grid and window.
pub struct Gridder<T> {
    level: Level,
    layout: Layout,
    grid: [usize; 3],
    /// Taps of each axis; 1 along an axis that is not there.
    taps: [usize; 3],
    /// Window polynomials, [degree + 1][taps, zeros up to whole vectors], highest power first.
    polynomials: Vec<T>,
    points: Vec<Point<T>>,
    /// The sample that each point is.
    order: Vec<u32>,
    tiles: Vec<Tile>,
    /// Runs of a tile's points whose windows start in one vector, where they are at least `MANY`; empty ones come last.
    runs: Vec<Range<usize>>,
    /// Ranges of `tiles` of one colour.
    colours: Vec<Range<usize>>,
    /// Size of a tile's buffer, whole vectors along x, and the part of it that its samples' windows reach.
    extent: [usize; 3],
    reach: [usize; 3],
    /// Arrays that come at once, at most.
    arrays: usize,
    work: Pool<Work<T>>,
}

/// A sample.
#[derive(Clone, Copy)]
struct Point<T> {
    /// Its offset in the first cell of its window as the polynomials' variable.
    t: [T; 3],
    /// The cell of the tile's buffer, at the start of a vector, from which its window starts `shift` cells on.
    at: u32,
    shift: u32,
}

/// A tile that has samples: its first grid cell, its points, and where its runs are.
struct Tile {
    origin: [usize; 3],
    points: Range<usize>,
    runs: Range<usize>,
}

/// Memory of one thread.
struct Work<T> {
    /// Tile buffers, one for each array of a batch.
    cells: Aligned<Complex<T>>,
    /// Where there are runs: what rounding took from `cells`, and the sums of a block, likewise.
    lost: Aligned<Complex<T>>,
    blocks: Aligned<Complex<T>>,
    /// The taps of a chunk of samples.
    taps: Aligned<T>,
}

/// How windows of one width lie in vectors of one level.
#[derive(Clone, Copy)]
struct Layout {
    /// Reals, and complex cells, of a vector.
    lanes: usize,
    cells: usize,
    /// Vectors that hold the taps.
    tap_vectors: usize,
    /// Vectors that a window covers, wherever it starts in the first; and from its start on.
    row_vectors: usize,
    window_vectors: usize,
    /// Reals of the record of a sample's taps: those of x in whole vectors, then y, then z.
    x_len: usize,
    record: usize,
}

impl Layout {
    fn new(lanes: usize, width: usize) -> Layout {
        let cells = lanes / 2;
        let tap_vectors = width.div_ceil(lanes);
        let row_vectors = (width + cells - 1).div_ceil(cells);
        // Taps, twice each and moved by less than a vector, are written in whole vectors.
        let x_len = row_vectors.max(2 * tap_vectors + 1) * lanes;
        let record = x_len + 2 * tap_vectors * lanes;
        Layout { lanes, cells, tap_vectors, row_vectors, window_vectors: width.div_ceil(cells), x_len, record }
    }
}

struct LayoutOf<T> {
    width: usize,
    real: std::marker::PhantomData<T>,
}

impl<T: SimdReal> Kernel for LayoutOf<T> {
    type Output = Layout;
    #[inline(always)]
    fn run<A: Arith>(self) -> Layout {
        Layout::new(T::V::<A>::LANES, self.width)
    }
}

/// Cuts `cells` into an even number of tiles (or one, for an axis that is not there) of about `edge` cells.
#[derive(Clone, Copy)]
struct Cut {
    cells: usize,
    tiles: usize,
}

impl Cut {
    fn new(cells: usize, edge: usize) -> Cut {
        Cut { cells, tiles: if cells == 1 { 1 } else { (cells / (2 * edge)).max(1) * 2 } }
    }
    fn first_cell(&self, tile: usize) -> usize {
        tile * self.cells / self.tiles
    }
    fn tile_of(&self, cell: usize) -> usize {
        ((cell + 1) * self.tiles - 1) / self.cells
    }
    fn longest(&self) -> usize {
        self.cells.div_ceil(self.tiles)
    }
}

/// How a grid is cut into tiles.
struct Tiling {
    layout: Layout,
    /// Of the grid, and of the window: 1 along an axis that is not there.
    size: [usize; 3],
    taps: [usize; 3],
    cut: [Cut; 3],
    reach: [usize; 3],
    extent: [usize; 3],
}

impl Tiling {
    fn new<T: SimdReal>(level: Level, grid: &[usize], width: usize) -> Tiling {
        let layout = level.run(LayoutOf { width, real: std::marker::PhantomData::<T> });
        let size = three_axes(grid);
        let taps = [0, 1, 2].map(|a| if a < grid.len() { width } else { 1 });
        let edges = if grid.len() == 3 { TILE_3D } else { TILE_2D };
        let cut = [0, 1, 2].map(|a| Cut::new(size[a], edges[a].max(width)));
        let reach = [0, 1, 2].map(|a| (cut[a].longest() + taps[a] - 1).min(size[a]));
        let row = cut[0].longest().next_multiple_of(layout.cells) + layout.row_vectors * layout.cells;
        let extent = [row, cut[1].longest() + taps[1] - 1, cut[2].longest() + taps[2] - 1];
        Tiling { layout, size, taps, cut, reach, extent }
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
    ) -> Result<Self> {
        let (axes, count, width) = (k.len(), k[0].len(), window[0].len());
        if count > u32::MAX as usize {
            bail!(SizeOverflow, "{count} samples are more than a plan takes ({}): split them", u32::MAX);
        }
        let Tiling { layout, size, taps, cut, reach, extent } = Tiling::new::<T>(level, grid, width);

        // The window's first cell on an axis, and the polynomials' variable. In double precision: a grid position in
        // single precision would cost two digits of the offset.
        let locate = |axis: usize, m: usize| -> (usize, T) {
            if axis >= axes {
                return (0, T::ZERO);
            }
            let position = k[axis][m].wide() * size[axis] as f64 - 0.5 * width as f64;
            let truncated = position as i64;
            let first = truncated + i64::from(truncated as f64 != position && position > 0.0);
            let t = 2.0 * (first as f64 - position) - 1.0;
            // A grid has at least two windows, so that one period brings any start inside.
            let cell = if first < 0 { first + size[axis] as i64 } else { first };
            (cell as usize, T::of(t))
        };

        // Tiles are numbered colour by colour.
        let tiles_all = checked_product(&cut.map(|c| c.tiles), "the tiles of the grid")?;
        if tiles_all > u32::MAX as usize {
            bail!(
                SizeOverflow,
                "a grid of {grid:?} has more tiles than a plan takes ({}): use a smaller image",
                u32::MAX
            );
        }
        let mut rank = try_vec(tiles_all, 0u32, "the tile order")?;
        let mut by_rank = try_vec(tiles_all, [0; 3], "the tile order")?;
        let mut ranked = 0;
        let mut colour_ends = Vec::new();
        for colour in 0..8usize {
            let parity = [colour & 1, colour >> 1 & 1, colour >> 2];
            for z in (parity[2]..cut[2].tiles).step_by(2) {
                for y in (parity[1]..cut[1].tiles).step_by(2) {
                    for x in (parity[0]..cut[0].tiles).step_by(2) {
                        rank[(z * cut[1].tiles + y) * cut[0].tiles + x] = ranked as u32;
                        by_rank[ranked] = [x, y, z];
                        ranked += 1;
                    }
                }
            }
            colour_ends.push(ranked);
        }

        // A stable counting sort by tile.
        const BLOCK: usize = 1 << 14;
        let mut keys = try_vec(count, 0u32, "the sample order")?;
        let shared = Shared::new(&mut keys);
        threads.run(count.div_ceil(BLOCK), |block| {
            let range = block * BLOCK..((block + 1) * BLOCK).min(count);
            // SAFETY: blocks do not overlap.
            let keys = unsafe { shared.part(range.start, range.len()) };
            for (key, m) in keys.iter_mut().zip(range) {
                let tile = [0, 1, 2].map(|a| cut[a].tile_of(locate(a, m).0));
                *key = rank[(tile[2] * cut[1].tiles + tile[1]) * cut[0].tiles + tile[0]];
            }
        });
        let mut starts = try_vec(tiles_all + 1, 0usize, "the tile order")?;
        for &key in &keys {
            starts[key as usize + 1] += 1;
        }
        for i in 0..tiles_all {
            starts[i + 1] += starts[i];
        }
        let mut order = try_vec(count, 0u32, "the sample order")?;
        let mut next = try_collect(starts.len(), "the tile order", starts.iter().copied())?;
        for (m, &key) in keys.iter().enumerate() {
            order[next[key as usize]] = m as u32;
            next[key as usize] += 1;
        }
        drop(keys);

        let full = starts.windows(2).filter(|ends| ends[0] < ends[1]).count();
        let mut tiles = try_reserve(full, "the tile order")?;
        let mut colours = Vec::new();
        let mut first = 0;
        let mut room_for_runs = 0;
        for &end in &colour_ends {
            let from = tiles.len();
            for tile in first..end {
                let points = starts[tile]..starts[tile + 1];
                if !points.is_empty() {
                    let origin = [0, 1, 2].map(|a| cut[a].first_cell(by_rank[tile][a]));
                    let runs = room_for_runs..room_for_runs + points.len() / MANY;
                    room_for_runs = runs.end;
                    tiles.push(Tile { origin, points, runs });
                }
            }
            if tiles.len() > from {
                colours.push(from..tiles.len());
            }
            first = end;
        }

        // Within a tile samples are sorted by the vector where their windows start, in which many meet.
        let nowhere = Point { t: [T::ZERO; 3], at: 0, shift: 0 };
        let mut points = try_vec(count, nowhere, "the sorted samples")?;
        let mut runs = try_vec(room_for_runs, 0..0, "the sorted samples")?;
        // Room for each thread to sort the fullest tile.
        let fullest = tiles.iter().map(|t: &Tile| t.points.len()).max().unwrap_or(0);
        let room = fullest.saturating_mul(threads.count().min(tiles.len()));
        let mut sorting = try_vec(room, 0u64, "sorting the samples")?;
        let shared_sorting = Shared::new(&mut sorting);
        let (shared, shared_order, shared_runs) =
            (Shared::new(&mut points), Shared::new(&mut order), Shared::new(&mut runs));
        let thread = AtomicUsize::new(0);
        let place_of_thread = || thread.fetch_add(1, Ordering::Relaxed) * fullest;
        threads.run_with(tiles.len(), place_of_thread, |room, i| {
            let tile = &tiles[i];
            // SAFETY: each thread that takes part has its own room, and a tile is no fuller than the fullest.
            let sorted = unsafe { shared_sorting.part(*room, tile.points.len()) };
            // SAFETY: tiles share neither points nor runs.
            let (points, order, runs) = unsafe {
                let (start, len) = (tile.points.start, tile.points.len());
                let runs = shared_runs.part(tile.runs.start, tile.runs.len());
                (shared.part(start, len), shared_order.part(start, len), runs)
            };
            let position = |at: [(usize, T); 3]| {
                let cell = [0, 1, 2].map(|a| at[a].0 - tile.origin[a]);
                let shift = cell[0] % layout.cells;
                ((cell[2] * extent[1] + cell[1]) * extent[0] + cell[0] - shift, shift)
            };
            for (key, &m) in sorted.iter_mut().zip(order.iter()) {
                let (at, _) = position([0, 1, 2].map(|a| locate(a, m as usize)));
                *key = (at as u64) << 32 | m as u64;
            }
            // The sample's own number is in the key, so that no two are equal.
            sorted.sort_unstable();
            for ((point, order), &key) in points.iter_mut().zip(order).zip(sorted.iter()) {
                *order = key as u32;
                let at = [0, 1, 2].map(|a| locate(a, *order as usize));
                let (first, shift) = position(at);
                *point = Point { t: at.map(|(_, t)| t), at: first as u32, shift: shift as u32 };
            }
            let mut runs = runs.iter_mut();
            let mut start = tile.points.start;
            for run in points.chunk_by(|a, b| a.at == b.at) {
                if run.len() >= MANY {
                    *runs.next().expect("there is room for all") = start..start + run.len();
                }
                start += run.len();
            }
            runs.for_each(|run| *run = start..start);
        });

        let lanes = layout.tap_vectors * layout.lanes;
        let mut polynomials = try_reserve(window.len() * lanes, "the window's polynomials")?;
        for row in window {
            polynomials.extend((0..lanes).map(|j| T::of(*row.get(j).unwrap_or(&0.0))));
        }
        let gridder = Gridder {
            level,
            layout,
            grid: size,
            taps,
            polynomials,
            points,
            order,
            tiles,
            runs,
            colours,
            extent,
            reach,
            arrays,
            work: Pool::new(),
        };
        let work = Pool::filled(threads.count(), || gridder.make_work())?;
        Ok(Gridder { work, ..gridder })
    }

    /// Bytes held, with the memory of the threads: as if there were runs, which decide for half of that.
    pub fn bytes(threads: usize, level: Level, samples: usize, grid: &[usize], width: usize, arrays: usize) -> usize {
        let Tiling { layout, taps, cut, extent, .. } = Tiling::new::<T>(level, grid, width);
        let block = layout.row_vectors * layout.cells * taps[1] * taps[2];
        let cells = product(&[arrays, 2 * extent.iter().product::<usize>() + block, size_of::<Complex<T>>()]);
        let work = cells.saturating_add(CHUNK * layout.record * size_of::<T>());
        // Tiles, and their order while they are found.
        let tiles = product(&cut.map(|c| c.tiles)).saturating_mul(size_of::<Tile>() + 2 * size_of::<u64>());
        let points = product(&[samples, size_of::<Point<T>>() + size_of::<u32>()]);
        sum(&[points, tiles, product(&[threads, work])])
    }

    fn make_work(&self) -> Result<Work<T>> {
        let runs = self.tiles.iter().any(|tile| self.has_runs(tile));
        let where_runs = |len| if runs { self.arrays * len } else { 0 };
        Ok(Work {
            cells: Aligned::zeros(self.arrays * self.buffer_len(), "a tile of the grid")?,
            lost: Aligned::zeros(where_runs(self.buffer_len()), "a tile of the grid")?,
            blocks: Aligned::zeros(where_runs(self.block_len()), "a tile of the grid")?,
            taps: Aligned::zeros(CHUNK * self.layout.record, "the taps of samples")?,
        })
    }

    /// A thread's memory: there is more of it to make only when the plan is used from several threads at once, and
    /// where it cannot be made the other's comes back.
    fn work(&self) -> Lease<'_, Work<T>> {
        self.work.take_or_wait(|| self.make_work())
    }

    fn buffer_len(&self) -> usize {
        self.extent.iter().product()
    }

    /// Cells of a block's sums: whole vectors of each row of a window.
    fn block_len(&self) -> usize {
        self.layout.row_vectors * self.layout.cells * self.taps[1] * self.taps[2]
    }

    fn has_runs(&self, tile: &Tile) -> bool {
        self.runs[tile.runs.clone()].first().is_some_and(|run| !run.is_empty())
    }

    /// How many arrays of samples and of grids there are, which must agree.
    fn arrays(&self, values: usize, grid: usize) -> usize {
        let cells = self.grid.iter().product::<usize>();
        let arrays = grid / cells;
        assert_eq!(grid, arrays * cells);
        assert_eq!(values, arrays * self.order.len());
        assert!(arrays <= self.arrays);
        arrays
    }

    /// See [`crate::backend::Backend::spread`].
    pub fn spread(&self, threads: &Threads, values: &[Complex<T>], grid: &mut [Complex<T>]) {
        let arrays = self.arrays(values.len(), grid.len());
        const PART: usize = 1 << 16;
        let len = grid.len();
        let cells = len / arrays;
        let shared = Shared::new(grid);
        threads.run(len.div_ceil(PART), |i| {
            // SAFETY: parts do not overlap.
            unsafe { shared.part(i * PART, PART.min(len - i * PART)) }.fill(Complex::default())
        });
        for colour in &self.colours {
            threads.run_with(
                colour.len(),
                || self.work(),
                |work, i| {
                    let tile = &self.tiles[colour.start + i];
                    let used = arrays * self.buffer_len();
                    work.cells[..used].fill(Complex::default());
                    let runs = self.has_runs(tile);
                    if runs {
                        work.lost[..used].fill(Complex::default());
                    }
                    self.level.run(Spread { gridder: self, tile, values, arrays, work });
                    if runs {
                        let Work { cells, lost, .. } = &mut **work;
                        cells[..used].iter_mut().zip(&lost[..used]).for_each(|(cell, lost)| *cell += *lost);
                    }
                    for array in 0..arrays {
                        let buffer = &work.cells[array * self.buffer_len()..][..self.buffer_len()];
                        self.rows(
                            tile,
                            |at| prefetch(shared.address(array * cells).wrapping_add(at)),
                            |grid_at, buffer_at, len| {
                                // SAFETY: tiles of one colour, with the overhang of their windows, do not overlap.
                                let row = unsafe { shared.part(array * cells + grid_at, len) };
                                for (g, b) in row.iter_mut().zip(&buffer[buffer_at..buffer_at + len]) {
                                    *g += *b;
                                }
                            },
                        );
                    }
                },
            );
        }
    }

    /// See [`crate::backend::Backend::interpolate`].
    pub fn interpolate(&self, threads: &Threads, grid: &[Complex<T>], values: &mut [Complex<T>]) {
        let arrays = self.arrays(values.len(), grid.len());
        let cells = grid.len() / arrays;
        let shared = Shared::new(values);
        let start = || {
            let mut work = self.work();
            // Cells beyond the reach of windows are read too, and multiplied by zero: they must be numbers.
            work.cells.fill(Complex::default());
            work
        };
        threads.run_with(self.tiles.len(), start, |work, i| {
            let tile = &self.tiles[i];
            for array in 0..arrays {
                let buffer = &mut work.cells[array * self.buffer_len()..][..self.buffer_len()];
                let grid = &grid[array * cells..][..cells];
                self.rows(
                    tile,
                    |at| prefetch(grid.as_ptr().wrapping_add(at)),
                    |grid_at, buffer_at, len| {
                        buffer[buffer_at..buffer_at + len].copy_from_slice(&grid[grid_at..grid_at + len]);
                    },
                );
            }
            self.level.run(Interpolate { gridder: self, tile, values: &shared, arrays, work });
        });
    }

    /// Calls `f(grid index, buffer index, length)` for each run of cells that a tile's buffer covers.
    #[inline(always)]
    fn rows(&self, tile: &Tile, mut ahead: impl FnMut(usize), mut f: impl FnMut(usize, usize, usize)) {
        let [gx, gy, gz] = self.grid;
        let [width, height, depth] = self.reach;
        let x = tile.origin[0];
        let first = width.min(gx - x);
        let row_of = |z: usize, y: usize| ((tile.origin[2] + z) % gz * gy + (tile.origin[1] + y) % gy) * gx;
        for z in 0..depth {
            for y in 0..height {
                let row = row_of(z, y);
                let next = y + AHEAD;
                let next = if next < height { row_of(z, next) } else { row_of(z + 1, next - height) };
                (x..x + first).step_by(8).for_each(|x| ahead(next + x));
                let at = (z * self.extent[1] + y) * self.extent[0];
                f(row + x, at, first);
                if first < width {
                    f(row, at + first, width - first);
                }
            }
        }
    }

    /// Writes the records of some points' taps: those of x twice each, for real and imaginary parts, `moved` by the
    /// points' shifts or not.
    ///
    /// # Safety
    /// `records` must have room for `CHUNK` of them, of this level's layout.
    #[inline(always)]
    unsafe fn write_taps<A: Arith>(&self, points: &[Point<T>], moved: bool, records: *mut T) {
        let lanes = T::V::<A>::LANES;
        let Layout { tap_vectors, row_vectors, x_len, record, .. } = self.layout;
        let zero = T::V::<A>::splat(T::ZERO);
        let axes = if self.taps[2] > 1 { 3 } else { 2 };
        let row = tap_vectors * lanes;
        for first in (0..points.len()).step_by(ABREAST) {
            let records = records.wrapping_add(first * record);
            // What lacks for a whole number of them is the last point again: there is room for its copies.
            let block: [&Point<T>; ABREAST] = std::array::from_fn(|i| &points[(first + i).min(points.len() - 1)]);
            for axis in 0..axes {
                for v in 0..tap_vectors {
                    let t: [T::V<A>; ABREAST] = std::array::from_fn(|i| T::V::<A>::splat(block[i].t[axis]));
                    // SAFETY: polynomials are rows of `tap_vectors` vectors.
                    let taps = unsafe { evaluate(&self.polynomials, row, v * lanes, t) };
                    for (i, (point, taps)) in block.iter().zip(taps).enumerate() {
                        // SAFETY: a record has x_len reals for x, to which row_vectors and the shift keep, and `row`
                        // for y and z each.
                        unsafe {
                            let to = records.add(i * record);
                            if axis > 0 {
                                taps.store(to.add(x_len + (axis - 1) * row + v * lanes));
                                continue;
                            }
                            let shift = if moved { 2 * point.shift as usize } else { 0 };
                            if moved && v == 0 {
                                (0..row_vectors).for_each(|v| zero.store(to.add(v * lanes)));
                            }
                            let (low, high) = taps.zip(taps);
                            low.store(to.add(shift + 2 * v * lanes));
                            high.store(to.add(shift + (2 * v + 1) * lanes));
                        }
                    }
                }
            }
        }
    }
}

/// A vector of polynomials, `first` elements into each row of coefficients, at each of `t`.
///
/// # Safety
/// A vector must be readable there, in rows of `row` elements.
#[inline(always)]
unsafe fn evaluate<T: SimdReal, V: Vector<T>>(
    polynomials: &[T],
    row: usize,
    first: usize,
    t: [V; ABREAST],
) -> [V; ABREAST] {
    // SAFETY: the caller's promise.
    unsafe {
        let mut sums = [V::load(polynomials.as_ptr().add(first)); ABREAST];
        let mut at = row;
        while at < polynomials.len() {
            let coefficient = V::load(polynomials.as_ptr().add(at + first));
            for (sum, t) in sums.iter_mut().zip(t) {
                *sum = sum.fma(t, coefficient);
            }
            at += row;
        }
        sums
    }
}

/// Adds the samples of a tile to its buffers.
struct Spread<'a, T> {
    gridder: &'a Gridder<T>,
    tile: &'a Tile,
    values: &'a [Complex<T>],
    arrays: usize,
    work: &'a mut Work<T>,
}

/// Calls `$run::<A, N>` with N the number of vectors, of which there are as many as the widest window needs.
macro_rules! with_vectors {
    ($count:expr, $A:ident, $self:ident.$run:ident, [$($n:literal)*]) => {
        match $count {
            // Vectors beyond those of the widest window are never met, and not compiled.
            $($n if $n * T::V::<$A>::LANES < 2 * (MAX_WIDTH + T::V::<$A>::LANES) => $self.$run::<$A, $n>(),)*
            n => unreachable!("a window does not cover {n} vectors"),
        }
    };
}

impl<T: SimdReal> Kernel for Spread<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arith>(mut self) {
        with_vectors!(self.gridder.layout.row_vectors, A, self.all, [2 3 4 5 6 7 8 9 10 11 12 13 14 15 16])
    }
}

impl<T: SimdReal> Spread<'_, T> {
    #[inline(always)]
    fn all<A: Arith, const N: usize>(&mut self) {
        let g = self.gridder;
        let (buffer, block) = (g.buffer_len(), g.block_len());
        assert!(self.work.cells.len() >= self.arrays * buffer);
        let (mut from, end) = (self.tile.points.start, self.tile.points.end);
        // Where none is left comes an empty one.
        let mut runs = g.runs[self.tile.runs.clone()].iter();
        let mut next_run = || runs.next().cloned().unwrap_or(end..end);
        let mut run = next_run();
        while from < end {
            let many = from >= run.start;
            let to = if many { (from + MANY).min(run.end) } else { run.start };
            if many {
                self.work.blocks[..self.arrays * block].fill(Complex::default());
            }
            self.sum::<A, N>(from..to, many);
            if many {
                assert!(self.work.lost.len() >= self.arrays * buffer);
                let at = g.points[from].at as usize;
                for array in 0..self.arrays {
                    // SAFETY: each array has a block and a buffer, in which `Gridder::new` placed the points.
                    unsafe {
                        let sums = self.work.blocks.as_ptr().add(array * block);
                        let cells = self.work.cells.as_mut_ptr().add(array * buffer + at);
                        let lost = self.work.lost.as_mut_ptr().add(array * buffer + at);
                        add_block::<T, A, N>(g, sums.cast(), cells.cast(), lost.cast());
                    }
                }
            }
            from = to;
            if from == run.end {
                run = next_run();
            }
        }
    }

    /// Adds points to the tile's buffers; where they are a block, to the block's sums.
    #[inline(always)]
    fn sum<A: Arith, const N: usize>(&mut self, range: Range<usize>, block: bool) {
        let g = self.gridder;
        let samples = g.order.len();
        let taps = self.work.taps.as_mut_ptr();
        let (cells, len, rows) = match block {
            true => (&mut self.work.blocks, g.block_len(), Rows::new(N * g.layout.cells, g.taps[1])),
            false => (&mut self.work.cells, g.buffer_len(), Rows::new(g.extent[0], g.extent[1])),
        };
        assert!(cells.len() >= self.arrays * len);
        let cells: *mut T = cells.as_mut_ptr().cast();
        for first in range.clone().step_by(CHUNK) {
            let last = (first + CHUNK).min(range.end);
            let (points, order) = (&g.points[first..last], &g.order[first..last]);
            order.iter().for_each(|&m| prefetch(&self.values[m as usize]));
            // SAFETY: there is room for CHUNK records.
            unsafe { g.write_taps::<A>(points, true, taps) };
            for array in 0..self.arrays {
                let values = &self.values[array * samples..][..samples];
                // SAFETY: each array has a buffer.
                let cells = unsafe { cells.add(2 * array * len) };
                let mut i = 0;
                while i < points.len() {
                    let meeting = points[i..].iter().take(GROUP).take_while(|p| p.at == points[i].at).count();
                    // Of a group whatever power of two there is: fewer numbers mean less code.
                    let together = 1 << meeting.ilog2();
                    let (at, order) = (if block { 0 } else { points[i].at as usize }, &order[i..i + together]);
                    // SAFETY: the records have been written; `Gridder::new` placed the points inside the buffer, and a
                    // block has room for a window.
                    unsafe {
                        let (taps, first) = (taps.add(i * g.layout.record), cells.add(2 * at));
                        match together {
                            1 => add::<T, A, N, 1>(g, taps, order, values, first, rows),
                            2 => add::<T, A, N, 2>(g, taps, order, values, first, rows),
                            4 => add::<T, A, N, 4>(g, taps, order, values, first, rows),
                            _ => add::<T, A, N, GROUP>(g, taps, order, values, first, rows),
                        }
                    }
                    i += together;
                }
            }
        }
    }
}

/// How far apart in reals the rows and the planes of cells are.
#[derive(Clone, Copy)]
struct Rows {
    row: usize,
    plane: usize,
}

impl Rows {
    fn new(row: usize, rows: usize) -> Rows {
        Rows { row: 2 * row, plane: 2 * row * rows }
    }
}

/// Adds `S` samples whose windows start in the same vector to rows of `N` vectors.
///
/// # Safety
/// `taps` must be their records, and the window's rows from `first` on cells that may be written.
#[inline(always)]
unsafe fn add<T: SimdReal, A: Arith, const N: usize, const S: usize>(
    g: &Gridder<T>,
    taps: *const T,
    order: &[u32],
    values: &[Complex<T>],
    first: *mut T,
    Rows { row, plane }: Rows,
) {
    let lanes = T::V::<A>::LANES;
    let Layout { x_len, record, tap_vectors, .. } = g.layout;
    let zero = T::V::<A>::splat(T::ZERO);
    // SAFETY: the caller's promises.
    unsafe {
        let mut x = [[zero; N]; S];
        for s in 0..S {
            let value = values[order[s] as usize];
            let (value, _) = T::V::<A>::splat(value.re).zip(T::V::<A>::splat(value.im));
            for (v, x) in x[s].iter_mut().enumerate() {
                *x = T::V::<A>::load(taps.add(s * record + v * lanes)).mul(value);
            }
        }
        let y = taps.add(x_len);
        let z = y.add(tap_vectors * lanes);
        if g.taps[2] == 1 {
            add_rows::<T, A, N, S>(&x, y, record, first, row, g.taps[1]);
            return;
        }
        for jz in 0..g.taps[2] {
            let mut xz = x;
            for (s, xz) in xz.iter_mut().enumerate() {
                let factor = T::V::<A>::splat(*z.add(s * record + jz));
                xz.iter_mut().for_each(|x| *x = x.mul(factor));
            }
            add_rows::<T, A, N, S>(&xz, y, record, first.add(jz * plane), row, g.taps[1]);
        }
    }
}

/// Adds the outer product of `x` and the taps at `y` to rows of a plane.
///
/// # Safety
/// As [`add`].
#[inline(always)]
unsafe fn add_rows<T: SimdReal, A: Arith, const N: usize, const S: usize>(
    x: &[[T::V<A>; N]; S],
    y: *const T,
    record: usize,
    first: *mut T,
    row: usize,
    taps: usize,
) {
    let lanes = T::V::<A>::LANES;
    for jy in 0..taps {
        // SAFETY: the caller's promises.
        unsafe {
            let p = first.add(jy * row);
            // The samples' own sum first: where many meet, fewer roundings then are those of a large total.
            let factor = T::V::<A>::splat(*y.add(jy));
            let mut sum: [T::V<A>; N] = std::array::from_fn(|i| x[0][i].mul(factor));
            for (s, x) in x.iter().enumerate().skip(1) {
                let factor = T::V::<A>::splat(*y.add(s * record + jy));
                for (sum, x) in sum.iter_mut().zip(x) {
                    *sum = x.fma(factor, *sum);
                }
            }
            for (v, sum) in sum.iter_mut().enumerate() {
                *sum = sum.add(T::V::<A>::load(p.add(v * lanes)));
            }
            for (v, sum) in sum.iter().enumerate() {
                sum.store(p.add(v * lanes));
            }
        }
    }
}

/// Adds the sums of a block, rows of `N` vectors, to the cells from `cells` on, and what rounding takes from them to
/// those from `lost` on.
///
/// # Safety
/// `sums` must be a block, and the window's rows from `cells` and from `lost` on lie inside a tile's buffers.
#[inline(always)]
unsafe fn add_block<T: SimdReal, A: Arith, const N: usize>(
    g: &Gridder<T>,
    sums: *const T,
    cells: *mut T,
    lost: *mut T,
) {
    let lanes = T::V::<A>::LANES;
    let rows = Rows::new(g.extent[0], g.extent[1]);
    for jz in 0..g.taps[2] {
        for jy in 0..g.taps[1] {
            let (from, to) = ((jz * g.taps[1] + jy) * N * lanes, jz * rows.plane + jy * rows.row);
            for v in 0..N {
                // SAFETY: the caller's promises.
                unsafe {
                    let (cell, lost) = (cells.add(to + v * lanes), lost.add(to + v * lanes));
                    let (a, b) = (T::V::<A>::load(cell), T::V::<A>::load(sums.add(from + v * lanes)));
                    let sum = a.add(b);
                    let of_b = sum.sub(a);
                    let error = a.sub(sum.sub(of_b)).add(b.sub(of_b));
                    sum.store(cell);
                    T::V::<A>::load(lost).add(error).store(lost);
                }
            }
        }
    }
}

/// Sums up a tile's buffers under the windows of its samples.
struct Interpolate<'a, T> {
    gridder: &'a Gridder<T>,
    tile: &'a Tile,
    values: &'a Shared<'a, Complex<T>>,
    arrays: usize,
    work: &'a mut Work<T>,
}

impl<T: SimdReal> Kernel for Interpolate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arith>(mut self) {
        with_vectors!(self.gridder.layout.window_vectors, A, self.all, [1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16])
    }
}

impl<T: SimdReal> Interpolate<'_, T> {
    #[inline(always)]
    fn all<A: Arith, const N: usize>(&mut self) {
        let g = self.gridder;
        let (samples, buffer) = (g.order.len(), g.buffer_len());
        let taps = self.work.taps.as_mut_ptr();
        let cells: *const T = self.work.cells.as_ptr().cast();
        assert!(self.work.cells.len() >= self.arrays * buffer);
        for first in self.tile.points.clone().step_by(CHUNK) {
            let last = (first + CHUNK).min(self.tile.points.end);
            let (points, order) = (&g.points[first..last], &g.order[first..last]);
            // SAFETY: there is room for CHUNK records.
            unsafe { g.write_taps::<A>(points, false, taps) };
            for array in 0..self.arrays {
                for (i, (point, &m)) in points.iter().zip(order).enumerate() {
                    // SAFETY: the record has been written, `Gridder::new` placed the point inside the buffer, and every
                    // sample is one point of one tile.
                    unsafe {
                        let taps = taps.add(i * g.layout.record);
                        let cells = cells.add(2 * (array * buffer + (point.at + point.shift) as usize));
                        let sum = window_sum::<T, A, N>(g, taps, cells);
                        self.values.set(array * samples + m as usize, sum);
                    }
                }
            }
        }
    }
}

/// The sum of the cells from `first` on under one sample's window, `N` vectors wide.
///
/// # Safety
/// `taps` must be the sample's record, and its window lie inside the buffer.
#[inline(always)]
unsafe fn window_sum<T: SimdReal, A: Arith, const N: usize>(
    g: &Gridder<T>,
    taps: *const T,
    first: *const T,
) -> Complex<T> {
    let lanes = T::V::<A>::LANES;
    let Layout { x_len, tap_vectors, .. } = g.layout;
    let [row, plane] = [2 * g.extent[0], 2 * g.extent[0] * g.extent[1]];
    let zero = T::V::<A>::splat(T::ZERO);
    // SAFETY: the caller's promises.
    unsafe {
        let y = taps.add(x_len);
        let z = y.add(tap_vectors * lanes);
        let of_plane = |first: *const T| {
            let mut sum = [zero; N];
            for jy in 0..g.taps[1] {
                let factor = T::V::<A>::splat(*y.add(jy));
                for (v, sum) in sum.iter_mut().enumerate() {
                    *sum = T::V::<A>::load(first.add(jy * row + v * lanes)).fma(factor, *sum);
                }
            }
            sum
        };
        let mut sum = [zero; N];
        if g.taps[2] == 1 {
            sum = of_plane(first);
        } else {
            for jz in 0..g.taps[2] {
                let factor = T::V::<A>::splat(*z.add(jz));
                let plane = of_plane(first.add(jz * plane));
                for (sum, plane) in sum.iter_mut().zip(plane) {
                    *sum = plane.fma(factor, *sum);
                }
            }
        }
        let mut total = zero;
        for (v, sum) in sum.iter().enumerate() {
            total = sum.fma(T::V::<A>::load(taps.add(v * lanes)), total);
        }
        total.sum_pairs()
    }
}

/// Complex numbers as pairs of reals.
#[inline(always)]
pub fn flat<T>(z: &[Complex<T>]) -> &[T] {
    // SAFETY: Complex<T> is repr(C), two T without padding.
    unsafe { std::slice::from_raw_parts(z.as_ptr().cast(), 2 * z.len()) }
}

/// Complex numbers as pairs of reals.
#[inline(always)]
pub fn flat_mut<T>(z: &mut [Complex<T>]) -> &mut [T] {
    // SAFETY: Complex<T> is repr(C), two T without padding.
    unsafe { std::slice::from_raw_parts_mut(z.as_mut_ptr().cast(), 2 * z.len()) }
}
