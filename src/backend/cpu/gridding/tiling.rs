//! How a grid is cut into tiles, and how windows lie in vectors. Sizes of tiles change speed and memory only.

use crate::backend::cpu::simd::{Level, SimdReal};
use crate::base::sizes::three_axes;

/// The edges of a tile in grid cells, about: buffers of 2D and 3D tiles fit the first and second cache, and rows are
/// long enough for the grid's memory to be read and written at its bandwidth.
const TILE_2D: [usize; 3] = [64, 32, 1];
const TILE_3D: [usize; 3] = [64, 16, 16];
/// Rows of a tile that are prefetched ahead of the row in work.
pub const PREFETCHED_ROWS: usize = 6;

/// How windows of one width lie in vectors.
#[derive(Clone, Copy)]
pub struct WindowLayout {
    /// Complex cells of a vector.
    pub cells: usize,
    /// Vectors that a window covers, wherever it starts in the first; and from its start on.
    pub row_vectors: usize,
    pub window_vectors: usize,
    /// Reals of the record of a sample's taps along x: in vectors of cells, moved by less than one, or in the longest
    /// vectors, not moved.
    pub x_len: usize,
    /// Taps of a record before it is moved: those of the window, and zeros that fill up the longest vectors.
    pub x_taps: usize,
}

impl WindowLayout {
    /// Rows of cells in vectors of `lanes`; the longest vectors are of `longest`.
    fn new(lanes: usize, longest: usize, width: usize) -> WindowLayout {
        let cells = lanes / 2;
        let window_vectors = width.div_ceil(cells);
        let row_vectors = (width + cells - 1).div_ceil(cells);
        let x_taps = width.next_multiple_of(longest / 2);
        let x_len = (row_vectors.max(window_vectors + 1) * lanes).max(2 * x_taps);
        WindowLayout { cells, row_vectors, window_vectors, x_len, x_taps }
    }
}

/// Cuts an axis of `cells` into an even number of tiles of about `edge` cells; an axis of one cell is one tile.
#[derive(Clone, Copy)]
pub struct AxisTiles {
    cells: usize,
    pub count: usize,
}

impl AxisTiles {
    fn new(cells: usize, edge: usize) -> AxisTiles {
        AxisTiles { cells, count: if cells == 1 { 1 } else { (cells / (2 * edge)).max(1) * 2 } }
    }
    pub fn first_cell(&self, tile: usize) -> usize {
        tile * self.cells / self.count
    }
    /// The cells of a tile.
    pub fn len(&self, tile: usize) -> usize {
        self.first_cell(tile + 1) - self.first_cell(tile)
    }
    fn longest(&self) -> usize {
        self.cells.div_ceil(self.count)
    }
}

/// How a window lies in cells: its taps along y and z, and the strides of rows and planes in reals.
#[derive(Clone, Copy)]
pub struct WindowStrides {
    pub height: usize,
    pub depth: usize,
    pub row: usize,
    pub plane: usize,
}

/// How a grid is cut into tiles.
#[derive(Clone, Copy)]
pub struct Tiling {
    pub layout: WindowLayout,
    /// Cells of the grid, and taps of the window, along each axis: 1 along an axis that is not there.
    pub size: [usize; 3],
    pub taps: [usize; 3],
    pub tiles: [AxisTiles; 3],
    /// The cells of a tile's buffer: those that the windows of its samples reach, in whole vectors along x.
    pub extent: [usize; 3],
}

impl Tiling {
    pub fn new<T: SimdReal>(level: Level, grid: &[usize], width: usize) -> Tiling {
        let layout = WindowLayout::new(level.row_lanes::<T>(), level.lanes::<T>(), width);
        let size = three_axes(grid);
        let taps = [0, 1, 2].map(|a| if a < grid.len() { width } else { 1 });
        let edges = if grid.len() == 3 { TILE_3D } else { TILE_2D };
        let tiles = [0, 1, 2].map(|a| AxisTiles::new(size[a], edges[a].max(width)));
        let row = tiles[0].longest().next_multiple_of(layout.cells) + layout.row_vectors * layout.cells;
        let extent = [row, tiles[1].longest() + taps[1] - 1, tiles[2].longest() + taps[2] - 1];
        Tiling { layout, size, taps, tiles, extent }
    }

    /// A window in planes of `rows` rows of `row` cells.
    pub fn window(&self, row: usize, rows: usize) -> WindowStrides {
        let [_, height, depth] = self.taps;
        WindowStrides { height, depth, row: 2 * row, plane: 2 * row * rows }
    }

    /// Taps of the window along an axis that is there.
    pub fn width(&self) -> usize {
        self.taps[0]
    }

    /// The tiles along x, y and z.
    pub fn counts(&self) -> [usize; 3] {
        self.tiles.map(|axis| axis.count)
    }
}
