//! Spreading samples onto the oversampled grid, and interpolating from it.
//!
//! The grid is cut into tiles. Samples are sorted by the tile in which their window starts; a tile's samples are added
//! up in a buffer of the tile and the window's overhang, which stays in cache and needs no wrap-around, and the buffer
//! is then added to the grid. Tiles of one colour (parity of the tile's index on each axis) never overlap, so they are
//! worked on side by side, and colours follow one another: every grid point receives its sums in the same order
//! whatever the number of threads.

use super::simd::{Arith, Kernel, Level};
use super::threads::{Shared, Threads};
use crate::error::{bail, checked_product, try_collect, try_reserve, try_vec, Result};
use crate::pool::Pool;
use crate::real::Real;
use crate::window::Shape;
use num_complex::Complex;
use std::ops::Range;

/// The edge of a tile in grid cells, about; buffers of 2D and 3D tiles then fit the first and second cache.
const TILE_2D: usize = 32;
const TILE_3D: usize = 16;

/// Samples sorted for one grid and window.
pub struct Gridder<T> {
    level: Level,
    grid: [usize; 3],
    /// Taps of each axis; 1 along an axis that is not there.
    taps: [usize; 3],
    /// Lanes of the x axis: taps rounded up, the rest having coefficient zero.
    lanes: usize,
    /// Window polynomials, [degree + 1][lanes], highest power first.
    polynomials: Vec<T>,
    points: Vec<Point<T>>,
    /// The sample that each point is.
    order: Vec<u32>,
    tiles: Vec<Tile>,
    /// Ranges of `tiles` of one colour.
    colours: Vec<Range<usize>>,
    /// Size of a tile's buffer.
    extent: [usize; 3],
    buffers: Pool<Vec<Complex<T>>>,
}

/// A sample: where its window starts in its tile, and its offset in the first cell as the polynomials' variable.
#[derive(Clone, Copy)]
struct Point<T> {
    t: [T; 3],
    start: [u16; 3],
}

/// A tile that has samples: its first grid cell, and its points.
struct Tile {
    origin: [usize; 3],
    points: Range<usize>,
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

impl<T: Real> Gridder<T> {
    /// Sorts samples; see [`crate::backend::Backend::gridder`].
    pub fn new(
        threads: &Threads,
        level: Level,
        k: &[&[T]],
        grid: &[usize],
        shape: &Shape,
        accuracy: f64,
    ) -> Result<Self> {
        let (axes, count, width) = (k.len(), k[0].len(), shape.width());
        if count > u32::MAX as usize {
            bail!(SizeOverflow, "{count} samples are more than a plan takes ({}): split them", u32::MAX);
        }
        let padded = |fill| {
            let mut all = [fill; 3];
            all[..axes].copy_from_slice(&vec![0; axes]);
            all
        };
        let mut size = padded(1);
        size[..axes].copy_from_slice(grid);
        let mut taps = padded(1);
        taps[..axes].fill(width);
        let edge = if axes == 3 { TILE_3D } else { TILE_2D }.max(width);
        let cut = size.map(|n| Cut::new(n, edge));
        let lanes = width.next_multiple_of(4);
        let extent = [cut[0].longest() + lanes, cut[1].longest() + taps[1] - 1, cut[2].longest() + taps[2] - 1];

        // The window's first cell on an axis, and the polynomials' variable. In double precision: a grid position in
        // single precision would cost two digits of the offset.
        let locate = |axis: usize, m: usize| -> (usize, T) {
            if axis >= axes {
                return (0, T::ZERO);
            }
            let cells = size[axis] as f64;
            let position = k[axis][m].wide() * cells - 0.5 * width as f64;
            let first = position.ceil();
            let t = 2.0 * (first - position) - 1.0;
            (first.rem_euclid(cells) as usize % size[axis], T::of(t))
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

        let mut tiles = Vec::new();
        let mut colours = Vec::new();
        let mut first = 0;
        for &end in &colour_ends {
            let from = tiles.len();
            for tile in first..end {
                let points = starts[tile]..starts[tile + 1];
                if !points.is_empty() {
                    let origin = [0, 1, 2].map(|a| cut[a].first_cell(by_rank[tile][a]));
                    tiles.push(Tile { origin, points });
                }
            }
            if tiles.len() > from {
                colours.push(from..tiles.len());
            }
            first = end;
        }

        // Within a tile samples are sorted by the cell where their windows start, in which many meet.
        let nowhere = Point { t: [T::ZERO; 3], start: [0; 3] };
        let mut points = try_vec(count, nowhere, "the sorted samples")?;
        // What the threads will need to sort the fullest tiles: their own allocations cannot report a failure.
        let fullest = tiles.iter().map(|t| t.points.len()).max().unwrap_or(0);
        let room = fullest.saturating_mul(threads.count().min(tiles.len()));
        drop(try_reserve::<(u64, Point<T>)>(room, "sorting the samples")?);
        let (shared, shared_order) = (Shared::new(&mut points), Shared::new(&mut order));
        threads.run_with(tiles.len(), Vec::new, |sorted: &mut Vec<(u64, Point<T>)>, i| {
            let tile = &tiles[i];
            // SAFETY: tiles do not share points.
            let (points, order) = unsafe {
                let (start, len) = (tile.points.start, tile.points.len());
                (shared.part(start, len), shared_order.part(start, len))
            };
            sorted.clear();
            sorted.extend(order.iter().map(|&m| {
                let at = [0, 1, 2].map(|a| locate(a, m as usize));
                let cell = [0, 1, 2].map(|a| at[a].0 - tile.origin[a]);
                let place = (cell[2] * extent[1] + cell[1]) * extent[0] + cell[0];
                let point = Point { t: at.map(|(_, t)| t), start: cell.map(|c| c as u16) };
                ((place as u64) << 32 | m as u64, point)
            }));
            // The sample's own number is in the key, so that no two are equal.
            sorted.sort_unstable_by_key(|(key, _)| *key);
            for ((point, order), (key, sorted)) in points.iter_mut().zip(order).zip(sorted.iter()) {
                *point = *sorted;
                *order = *key as u32;
            }
        });

        let rows = shape.polynomials(accuracy);
        let mut polynomials = Vec::with_capacity(rows.len() * lanes);
        for row in &rows {
            polynomials.extend((0..lanes).map(|j| T::of(*row.get(j).unwrap_or(&0.0))));
        }
        Ok(Gridder {
            level,
            grid: size,
            taps,
            lanes,
            polynomials,
            points,
            order,
            tiles,
            colours,
            extent,
            buffers: Pool::new(),
        })
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        std::mem::size_of_val(&self.points[..]) + std::mem::size_of_val(&self.order[..])
    }

    /// See [`crate::backend::Backend::spread`].
    pub fn spread(&self, threads: &Threads, values: &[Complex<T>], grid: &mut [Complex<T>]) {
        assert_eq!(values.len(), self.order.len());
        assert_eq!(grid.len(), self.grid.iter().product::<usize>());
        const CHUNK: usize = 1 << 16;
        let chunks = grid.len().div_ceil(CHUNK);
        let len = grid.len();
        let shared = Shared::new(grid);
        threads.run(chunks, |i| {
            // SAFETY: chunks do not overlap.
            unsafe { shared.part(i * CHUNK, CHUNK.min(len - i * CHUNK)) }.fill(Complex::default())
        });
        for colour in &self.colours {
            threads.run_with(
                colour.len(),
                || self.buffers.take(|| vec![Complex::default(); self.buffer_len()]),
                |buffer, i| {
                    let tile = &self.tiles[colour.start + i];
                    buffer.fill(Complex::default());
                    self.run_tile(tile, buffer, TileWork::Spread { values });
                    self.rows(tile, |grid_at, buffer_at, len| {
                        // SAFETY: tiles of one colour, with the overhang of their windows, do not overlap.
                        let row = unsafe { shared.part(grid_at, len) };
                        for (g, b) in row.iter_mut().zip(&buffer[buffer_at..buffer_at + len]) {
                            *g += *b;
                        }
                    });
                },
            );
        }
    }

    /// See [`crate::backend::Backend::interpolate`].
    pub fn interpolate(&self, threads: &Threads, grid: &[Complex<T>], values: &mut [Complex<T>]) {
        assert_eq!(values.len(), self.order.len());
        assert_eq!(grid.len(), self.grid.iter().product::<usize>());
        let shared = Shared::new(values);
        threads.run_with(
            self.tiles.len(),
            || self.buffers.take(|| vec![Complex::default(); self.buffer_len()]),
            |buffer, i| {
                let tile = &self.tiles[i];
                // Lanes beyond the window are read too, and multiplied by zero: they must be numbers.
                buffer.fill(Complex::default());
                self.rows(tile, |grid_at, buffer_at, len| {
                    buffer[buffer_at..buffer_at + len].copy_from_slice(&grid[grid_at..grid_at + len]);
                });
                self.run_tile(tile, buffer, TileWork::Interpolate { values: &shared });
            },
        );
    }

    fn buffer_len(&self) -> usize {
        self.extent.iter().product()
    }

    /// Calls `f(grid index, buffer index, length)` for each run of cells that a tile's buffer covers.
    fn rows(&self, tile: &Tile, mut f: impl FnMut(usize, usize, usize)) {
        let [gx, gy, gz] = self.grid;
        let width = (self.extent[0] - self.lanes + self.taps[0] - 1).min(gx);
        let height = self.extent[1].min(gy);
        let depth = self.extent[2].min(gz);
        for z in 0..depth {
            let plane = (tile.origin[2] + z) % gz * gy;
            for y in 0..height {
                let row = (plane + (tile.origin[1] + y) % gy) * gx;
                let at = (z * self.extent[1] + y) * self.extent[0];
                let x = tile.origin[0];
                let first = width.min(gx - x);
                f(row + x, at, first);
                if first < width {
                    f(row, at + first, width - first);
                }
            }
        }
    }

    fn run_tile(&self, tile: &Tile, buffer: &mut [Complex<T>], work: TileWork<'_, T>) {
        match self.lanes {
            4 => self.level.run(TileKernel::<T, 4, 8> { gridder: self, tile, buffer, work }),
            8 => self.level.run(TileKernel::<T, 8, 16> { gridder: self, tile, buffer, work }),
            12 => self.level.run(TileKernel::<T, 12, 24> { gridder: self, tile, buffer, work }),
            16 => self.level.run(TileKernel::<T, 16, 32> { gridder: self, tile, buffer, work }),
            lanes => unreachable!("windows have at most 16 taps, not {lanes}"),
        }
    }
}

/// What to do with a tile's samples.
enum TileWork<'a, T> {
    Spread { values: &'a [Complex<T>] },
    Interpolate { values: &'a Shared<'a, Complex<T>> },
}

/// The samples of one tile, with `L` lanes of real and `LL` = 2 `L` of interleaved complex numbers.
struct TileKernel<'a, T, const L: usize, const LL: usize> {
    gridder: &'a Gridder<T>,
    tile: &'a Tile,
    buffer: &'a mut [Complex<T>],
    work: TileWork<'a, T>,
}

impl<T: Real, const L: usize, const LL: usize> TileKernel<'_, T, L, LL> {
    /// The window's taps at polynomial variable `t`.
    #[inline(always)]
    fn taps<A: Arith>(&self, t: T) -> [T; L] {
        let (first, rest) = self.gridder.polynomials.split_at(L);
        let mut taps = [T::ZERO; L];
        taps.copy_from_slice(first);
        for row in rest.chunks_exact(L) {
            for j in 0..L {
                taps[j] = A::fma(taps[j], t, row[j]);
            }
        }
        taps
    }
}

impl<T: Real, const L: usize, const LL: usize> Kernel for TileKernel<'_, T, L, LL> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arith>(mut self) {
        let points = &self.gridder.points[self.tile.points.clone()];
        let mut i = 0;
        while i < points.len() {
            // Samples whose windows cover the same cells go through these cells together.
            let same = points[i + 1..].iter().take(GROUP - 1).take_while(|p| p.start == points[i].start).count();
            let first = self.tile.points.start + i;
            match same {
                0 => self.group::<A, 1>(first),
                1 => self.group::<A, 2>(first),
                2 => self.group::<A, 3>(first),
                _ => self.group::<A, 4>(first),
            }
            i += same + 1;
        }
    }
}

/// Samples that go through their cells together, at most.
const GROUP: usize = 4;

impl<T: Real, const L: usize, const LL: usize> TileKernel<'_, T, L, LL> {
    /// `N` samples from point `first` on, all with the same start.
    #[inline(always)]
    fn group<A: Arith, const N: usize>(&mut self, first: usize) {
        let g = self.gridder;
        let [_, ny, nz] = g.taps;
        let row_len = g.extent[0];
        let plane_len = row_len * g.extent[1];
        let points = &g.points[first..first + N];
        let order = &g.order[first..first + N];
        let [sx, sy, sz] = points[0].start.map(usize::from);
        let start = sz * plane_len + sy * row_len + sx;
        let mut one = [T::ZERO; L];
        one[0] = T::ONE;
        let (mut x, mut y, mut z) = ([[T::ZERO; L]; N], [[T::ZERO; L]; N], [one; N]);
        for s in 0..N {
            x[s] = self.taps::<A>(points[s].t[0]);
            y[s] = self.taps::<A>(points[s].t[1]);
            if nz > 1 {
                z[s] = self.taps::<A>(points[s].t[2]);
            }
        }
        match &self.work {
            TileWork::Spread { values } => {
                let mut xv = [[T::ZERO; LL]; N];
                for s in 0..N {
                    let v = values[order[s] as usize];
                    for j in 0..L {
                        xv[s][2 * j] = x[s][j] * v.re;
                        xv[s][2 * j + 1] = x[s][j] * v.im;
                    }
                }
                let cells = flat_mut(self.buffer);
                #[allow(clippy::needless_range_loop)] // of N arrays side by side
                for jz in 0..nz {
                    let mut xvz = [[T::ZERO; LL]; N];
                    for s in 0..N {
                        for j in 0..LL {
                            xvz[s][j] = xv[s][j] * z[s][jz];
                        }
                    }
                    let plane = 2 * (start + jz * plane_len);
                    #[allow(clippy::needless_range_loop)]
                    for jy in 0..ny {
                        let at = plane + 2 * jy * row_len;
                        let row: &mut [T; LL] = (&mut cells[at..at + LL]).try_into().expect("LL long");
                        let mut sum = *row;
                        for s in 0..N {
                            for j in 0..LL {
                                sum[j] = A::fma(xvz[s][j], y[s][jy], sum[j]);
                            }
                        }
                        *row = sum;
                    }
                }
            }
            TileWork::Interpolate { values } => {
                let cells = flat(self.buffer);
                for s in 0..N {
                    let (x, y, z) = (&x[s], &y[s], &z[s]);
                    let mut sum = [T::ZERO; LL];
                    for (jz, &wz) in z[..nz].iter().enumerate() {
                        for (jy, &wy) in y[..ny].iter().enumerate() {
                            let at = 2 * (start + jz * plane_len + jy * row_len);
                            let w = wz * wy;
                            let row: &[T; LL] = cells[at..at + LL].try_into().expect("LL long");
                            for j in 0..LL {
                                sum[j] = A::fma(row[j], w, sum[j]);
                            }
                        }
                    }
                    let mut v = Complex::new(T::ZERO, T::ZERO);
                    for j in 0..L {
                        v.re = A::fma(sum[2 * j], x[j], v.re);
                        v.im = A::fma(sum[2 * j + 1], x[j], v.im);
                    }
                    // SAFETY: every sample is one point of one tile.
                    unsafe { values.set(order[s] as usize, v) };
                }
            }
        }
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
