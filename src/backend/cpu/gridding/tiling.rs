//! The division of a grid into tiles, and the placement of windows in vectors. Tile sizes affect speed and memory only.

use crate::backend::cpu::simd::{Level, SimdReal};
use crate::base::sizes::{product, three_axes};
use num_complex::Complex;

/// Approximate edges of a 2D tile in grid cells. Buffers of 2D and 3D tiles fit the first-level and second-level cache,
/// and rows are long enough to use the memory bandwidth.
const TILE_2D: [usize; 3] = [64, 32, 1];
/// Approximate edges of a 3D tile in grid cells.
const TILE_3D: [usize; 3] = [64, 16, 16];
/// Bytes of the first-level cache of most processors. A grid whose buffer fits it is one tile: its samples need no
/// sorting by tile, which takes half of the time of a plan of millions of samples.
const FIRST_CACHE: usize = 32 << 10;
/// Bytes of a cache line.
pub const CACHE_LINE: usize = 64;
/// Number of rows of a tile by which prefetching leads.
pub const PREFETCHED_ROWS: usize = 6;

/// The placement of windows of one width in vectors.
#[derive(Clone, Copy)]
pub struct WindowLayout {
    /// Number of complex cells of a vector.
    pub cells: usize,
    /// Number of vectors that a window covers, for any start in the first vector.
    pub row_vectors: usize,
    /// Number of vectors that a window covers if it starts with the first vector.
    pub window_vectors: usize,
    /// Length in reals of the record of a sample's taps along x: in vectors of cells with a shift of less than one
    /// vector, or in the longest vectors without a shift.
    pub x_len: usize,
    /// Number of taps of a record before the shift: those of the window, and zeros that fill the longest vectors.
    pub x_taps: usize,
}

impl WindowLayout {
    /// Computes the layout for rows of cells in vectors of `lanes`; the longest vectors have `longest` lanes.
    fn new(lanes: usize, longest: usize, width: usize) -> WindowLayout {
        let cells = lanes / 2;
        let window_vectors = width.div_ceil(cells);
        let row_vectors = (width + cells - 1).div_ceil(cells);
        let x_taps = width.next_multiple_of(longest / 2);
        let x_len = (row_vectors.max(window_vectors + 1) * lanes).max(2 * x_taps);
        WindowLayout { cells, row_vectors, window_vectors, x_len, x_taps }
    }

    /// Returns the length in reals of the column sums of a sample: the vectors of a row, and a vector of zeros.
    pub fn columns_len(&self) -> usize {
        2 * self.cells * (self.row_vectors + 1)
    }
}

/// The division of an axis of `cells` into one tile or an even number of tiles.
#[derive(Clone, Copy)]
pub struct AxisTiles {
    cells: usize,
    pub count: usize,
}

impl AxisTiles {
    /// Creates tiles of about `edge` cells for windows of `width`, an even number unless there is one cell.
    ///
    /// Tiles are at least one window long, and shorter than `edge` only if they are at least two: the buffer of a tile
    /// has the cells of a window in addition.
    fn new(cells: usize, edge: usize, width: usize) -> AxisTiles {
        let rounded = (cells + edge) / (2 * edge);
        let pairs = if 4 * width * rounded <= cells { rounded } else { cells / (2 * edge.max(width)) };
        AxisTiles { cells, count: if cells == 1 { 1 } else { 2 * pairs.max(1) } }
    }
    /// Creates one tile. It is its own neighbour: windows at its end reach its first cells.
    fn single(cells: usize) -> AxisTiles {
        AxisTiles { cells, count: 1 }
    }
    /// Returns the first cell of a tile.
    pub fn first_cell(&self, tile: usize) -> usize {
        tile * self.cells / self.count
    }
    /// Returns the number of cells of a tile.
    pub fn len(&self, tile: usize) -> usize {
        self.first_cell(tile + 1) - self.first_cell(tile)
    }
    fn longest(&self) -> usize {
        self.cells.div_ceil(self.count)
    }
}

/// The shape of a window: its taps along y and z, and the strides of rows and planes in reals.
#[derive(Clone, Copy)]
pub struct WindowStrides {
    pub height: usize,
    pub depth: usize,
    pub row: usize,
    pub plane: usize,
}

/// Returns whether the rows of a window displace each other in the first-level cache, because they share a few of its
/// sets. `row` is the length of a buffer's rows in cells. A set has the lines at the same distance from multiples of
/// 4 KiB.
fn shares_sets<T>(row: usize, layout: &WindowLayout, taps: [usize; 3]) -> bool {
    const SETS: usize = 4096 / CACHE_LINE;
    const LINES_PER_SET: usize = FIRST_CACHE / 4096;
    let bytes = |cells: usize| cells * size_of::<Complex<T>>();
    if bytes(row) % CACHE_LINE > 0 {
        return false;
    }
    let in_row = bytes(layout.row_vectors * layout.cells) / CACHE_LINE;
    // Rows begin in sets at this distance, the greatest common divisor of the length of a row and the number of sets.
    let apart = SETS.min(1 << (bytes(row) / CACHE_LINE).trailing_zeros());
    let sets = SETS.min(SETS / apart * in_row);
    apart > in_row && in_row * taps[1] * taps[2] > sets * LINES_PER_SET / 2
}

/// The division of a grid into tiles.
#[derive(Clone, Copy)]
pub struct Tiling {
    pub layout: WindowLayout,
    /// Number of cells of the grid along each axis; 1 along a missing axis.
    pub size: [usize; 3],
    /// Number of taps of the window along each axis; 1 along a missing axis.
    pub taps: [usize; 3],
    pub tiles: [AxisTiles; 3],
    /// Size of a tile's buffer: the cells that the windows of its samples reach, in whole vectors along x.
    pub extent: [usize; 3],
    /// Whether the buffer fits the first-level cache, see [`FIRST_CACHE`].
    pub fits_first_cache: bool,
}

impl Tiling {
    /// Divides a grid for windows of `width` cells.
    pub fn new<T: SimdReal>(level: Level, grid: &[usize], width: usize) -> Tiling {
        let layout = WindowLayout::new(level.row_lanes::<T>(), level.lanes::<T>(), width);
        let size = three_axes(grid);
        let taps = [0, 1, 2].map(|a| if a < grid.len() { width } else { 1 });
        let with = |tiles: [AxisTiles; 3]| {
            let row = tiles[0].longest().next_multiple_of(layout.cells) + layout.row_vectors * layout.cells;
            let row = if shares_sets::<T>(row, &layout, taps) { row + layout.cells } else { row };
            let extent = [row, tiles[1].longest() + taps[1] - 1, tiles[2].longest() + taps[2] - 1];
            let fits_first_cache = product(&extent).saturating_mul(size_of::<Complex<T>>()) <= FIRST_CACHE;
            Tiling { layout, size, taps, tiles, extent, fits_first_cache }
        };
        let single = with(size.map(AxisTiles::single));
        if single.fits_first_cache {
            return single;
        }
        let edges = if grid.len() == 3 { TILE_3D } else { TILE_2D };
        with([0, 1, 2].map(|a| AxisTiles::new(size[a], edges[a], width)))
    }

    /// Returns the cells of a tile's buffer.
    pub fn buffer_len(&self) -> usize {
        product(&self.extent)
    }

    /// Returns the shape of a window in planes of `rows` rows of `row` cells.
    pub fn window(&self, row: usize, rows: usize) -> WindowStrides {
        let [_, height, depth] = self.taps;
        WindowStrides { height, depth, row: 2 * row, plane: 2 * row * rows }
    }

    /// Returns the shape of a window whose rows are as many vectors as a window covers, for any start in the first.
    pub fn block_window(&self) -> WindowStrides {
        self.window(self.layout.row_vectors * self.layout.cells, self.taps[1])
    }

    /// Returns the number of cells of [`Tiling::block_window`].
    pub fn block_len(&self) -> usize {
        product(&[self.layout.row_vectors, self.layout.cells, self.taps[1], self.taps[2]])
    }

    /// Returns the position in a tile's buffer of a cell.
    #[inline(always)]
    pub fn position(&self, cell: usize) -> [usize; 3] {
        let [row, rows, _] = self.extent;
        [cell % row, cell / row % rows, cell / (row * rows)]
    }

    /// Returns the position in a tile's buffer of the vector in which a window starts, given its first cell.
    #[inline(always)]
    pub fn vector_start(&self, cell: usize) -> [usize; 3] {
        self.position(cell & !(self.layout.cells - 1))
    }

    /// Returns whether interpolation loads rows in whole vectors of the tile, which samples share (see interpolate.rs).
    ///
    /// In double precision, a row is several vectors. It is loaded at the alignment of vectors if that takes no more
    /// vectors, or if a vector is a whole cache line, as any other load then crosses a line. In single precision, a row
    /// is one or two vectors, and an additional one would cost more.
    pub fn shares_rows<T>(&self) -> bool {
        let WindowLayout { cells, row_vectors, window_vectors, .. } = self.layout;
        let gains = row_vectors == window_vectors || cells * size_of::<Complex<T>>() == CACHE_LINE;
        self.taps[2] > 1 && size_of::<T>() == size_of::<f64>() && cells > 1 && gains
    }

    /// Returns the number of taps of the window along an existing axis.
    pub fn width(&self) -> usize {
        self.taps[0]
    }

    /// Returns the number of tiles along x, y and z.
    pub fn counts(&self) -> [usize; 3] {
        self.tiles.map(|axis| axis.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_windows_do_not_displace_each_other() {
        fn check<T: SimdReal>(level: Level) -> usize {
            let mut lengthened = 0;
            for width in 2..=16 {
                for cells in (2 * width..400).step_by(2) {
                    for grid in [vec![cells; 2], vec![cells; 3]] {
                        let t = Tiling::new::<T>(level, &grid, width);
                        let row = t.tiles[0].longest().next_multiple_of(t.layout.cells);
                        let least = row + t.layout.row_vectors * t.layout.cells;
                        assert!(!shares_sets::<T>(t.extent[0], &t.layout, t.taps), "{level:?} {width} {grid:?}");
                        assert!(t.extent[0] <= least + t.layout.cells, "{level:?} {width} {grid:?}");
                        lengthened += usize::from(t.extent[0] > least);
                    }
                }
            }
            lengthened
        }
        let lengthened: usize = Level::all().into_iter().map(|level| check::<f32>(level) + check::<f64>(level)).sum();
        assert!(lengthened > 0);
    }

    #[test]
    fn tiles_are_at_least_a_window_long() {
        for edge in [16, 32, 64] {
            for width in 2..=16 {
                for cells in 2 * width..500 {
                    let axis = AxisTiles::new(cells, edge, width);
                    let shortest = (0..axis.count).map(|tile| axis.len(tile)).min().unwrap();
                    assert!(axis.count % 2 == 0 && shortest >= width, "{cells} {edge} {width}");
                    assert!(shortest >= edge.min(2 * width) || axis.count == 2, "{cells} {edge} {width}");
                    assert!(axis.longest() <= 2 * edge.max(width), "{cells} {edge} {width}");
                }
            }
        }
        assert_eq!(AxisTiles::new(1, 16, 4).count, 1);
    }
}
