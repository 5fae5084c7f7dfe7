//! Bins of a grid on a GPU: parts of the tiles of interpolation, by which samples are sorted. The samples that touch a
//! tile of spreading are those of a few runs of bins. kernels/samples.cu describes the method.

use super::gpu::Gpu;
use super::memory::DeviceArray;
use super::sample_sort_config::Divisor;
use super::sort::{TileLayout, WHAT};
use crate::backend::DevicePointer;
use crate::base::error::Result;
use std::sync::Arc;

/// Value of a run that a tile does not have.
const NO_RUN: u32 = u32::MAX;

/// The grid, the length of windows, and the tiles of interpolation, in the form of the kernels.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct BinLayout {
    pub size: [u32; 3],
    pub width: u32,
    /// Number of bins of a tile, whose keys follow one another.
    tile: Divisor,
}

impl BinLayout {
    /// Returns the number of cells of all axes, which have a table each.
    pub fn cells(&self) -> usize {
        self.size.iter().map(|&n| n as usize).sum()
    }

    /// Returns the number of bins of a tile.
    pub fn span(&self) -> usize {
        self.tile.value as usize
    }
}

/// The tiles of spreading, in the form of the kernels.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct RunLayout {
    size_z: u32,
    depth: u32,
    width: u32,
    tiles: [u32; 3],
    runs_y: u32,
    runs_x: Divisor,
    runs_of_plane: Divisor,
}

/// The division of samples into segments for interpolation.
#[derive(Clone, Copy)]
pub struct GatherSegments {
    /// Maximum number of samples of a segment.
    pub samples: usize,
    /// Whether the samples of a segment are in one tile.
    pub by_tile: bool,
}

/// The bins of a grid. They do not depend on the samples.
pub struct Bins {
    pub tables: BinTables,
    /// [`BinTables::keys`], [`BinTables::rows`] and [`BinTables::columns`], one after the other.
    device: DeviceArray<u32>,
    /// Number of tiles of interpolation, and of spreading.
    gather_tiles: usize,
    pub spread_tiles: usize,
}

impl Bins {
    /// Cuts the tiles of interpolation into bins, for tiles of spreading of at most half the grid.
    pub fn new(gpu: &Gpu, axes: usize, width: usize, spread: TileLayout, gather: TileLayout) -> Result<Arc<Self>> {
        let tables = BinTables::new(axes, width, spread, gather);
        let (gather_tiles, spread_tiles) = (gather.count(tables.layout.span())?, spread.count(1)?);
        let all = [&tables.keys[..], &tables.rows, &tables.columns].concat();
        Ok(Arc::new(Bins { device: gpu.send(&all, WHAT)?, tables, gather_tiles, spread_tiles }))
    }

    pub fn count(&self) -> usize {
        self.gather_tiles * self.tables.layout.span()
    }

    /// Returns the number of runs of bins that segments for interpolation do not cross, and the bins of a run.
    pub fn gather_runs(&self, gathering: GatherSegments) -> (usize, usize) {
        if gathering.by_tile {
            (self.gather_tiles, self.tables.layout.span())
        } else {
            (1, self.count())
        }
    }

    /// Returns the address of the table of keys.
    pub fn keys(&self) -> DevicePointer<u32> {
        self.device.pointer()
    }

    /// Returns the addresses of the keys of cells of z, and of the tables of rows and columns.
    pub fn run_tables(&self) -> [DevicePointer<u32>; 3] {
        let (keys, rows) = (self.tables.keys.len(), self.tables.rows.len());
        [keys - self.tables.layout.size[2] as usize, keys, keys + rows].map(|at| self.keys().offset(at))
    }
}

/// The tables that define bins, and the runs of bins of each tile of spreading.
pub struct BinTables {
    pub layout: BinLayout,
    pub runs: RunLayout,
    /// Parts of keys, for each cell of x, then y, then z. The sum of those of a window's first cells is the key, which
    /// is the number of the bin. Bins are in the order of z, y and x of the tile, then plane, then classes of y and x.
    keys: Vec<u32>,
    /// Runs along y and x of the tiles of spreading, see `run_of` in kernels/samples.cu.
    rows: Vec<u32>,
    columns: Vec<u32>,
    /// Maximum number of tiles that a window touches, and the mean for evenly distributed samples.
    pub touched: usize,
    pub mean_touched: f64,
}

/// Returns the maximum number of tiles that a window of these lengths touches.
pub fn tiles_touched(layout: &TileLayout, taps: [usize; 3]) -> usize {
    let touched = |a: usize| {
        let (size, tile) = (layout.size[a] as usize, layout.tile[a] as usize);
        // The last tile of an axis may be smaller.
        (1 + (taps[a] - 1).div_ceil(tile) + usize::from(size % tile != 0)).min(layout.tiles[a] as usize)
    };
    touched(0) * touched(1) * touched(2)
}

/// Returns the class of each cell of an axis in its tile of interpolation, and the number of classes. All windows that
/// start in one class touch the same tiles of spreading. `taps` is the window's length.
fn classes(size: usize, gather: usize, spread: usize, taps: usize) -> (Vec<u32>, usize) {
    let mut cut = vec![false; size];
    for start in (0..size).step_by(spread) {
        cut[start] = true;
        cut[(start + size - (taps - 1)) % size] = true;
    }
    let (mut class, mut most) = (0, 0);
    let cells = (0..size).map(|cell| {
        class = match cell % gather {
            0 => 0,
            _ => class + u32::from(cut[cell]),
        };
        most = most.max(class);
        class
    });
    (cells.collect(), most as usize + 1)
}

/// Returns the cells in which windows that touch a tile of spreading start, for each tile.
fn touching_cells(size: usize, spread: usize, taps: usize) -> impl Iterator<Item = impl Iterator<Item = usize>> {
    (0..size).step_by(spread).map(move |start| {
        let end = (start + spread).min(size);
        (start + size - (taps - 1)..end + size).map(move |cell| cell % size)
    })
}

/// Returns lists of equal length, filled with [`NO_RUN`], one after the other, and that length.
fn flattened(lists: Vec<Vec<u32>>) -> (Vec<u32>, usize) {
    let most = lists.iter().map(Vec::len).max().unwrap_or(0);
    let padded = |list: Vec<u32>| list.into_iter().chain(std::iter::repeat(NO_RUN)).take(most);
    (lists.into_iter().flat_map(padded).collect(), most)
}

impl BinTables {
    fn new(axes: usize, width: usize, spread: TileLayout, gather: TileLayout) -> Self {
        let size = spread.size.map(|n| n as usize);
        let (spread_tile, gather_tile) = (spread.tile.map(|n| n as usize), gather.tile.map(|n| n as usize));
        let taps_y = if axes == 3 { width } else { 1 };
        let (x, classes_x) = classes(size[0], gather_tile[0], spread_tile[0], width);
        let (y, classes_y) = classes(size[1], gather_tile[1], spread_tile[1], taps_y);
        let z = (0..size[2]).map(|cell| (cell % gather_tile[2]) as u32).collect();
        // The distances between the keys of neighbouring classes, planes and tiles.
        let plane = (classes_y * classes_x) as u32;
        let span = gather.tile[2] * plane;
        let (row, slab) = (gather.tiles[0] * span, gather.tiles[0] * gather.tiles[1] * span);
        let keys = |classes: Vec<u32>, axis: usize, tile: u32, class: u32| -> Vec<u32> {
            let of = |(cell, of_class)| (cell / gather_tile[axis]) as u32 * tile + of_class * class;
            classes.into_iter().enumerate().map(of).collect()
        };
        let (x, y, z) = (keys(x, 0, span, 1), keys(y, 1, row, classes_x as u32), keys(z, 2, slab, plane));

        let row = |cells: &mut dyn Iterator<Item = usize>| {
            let mut row: Vec<u32> = cells.map(|cell| y[cell]).collect();
            row.dedup();
            row
        };
        let rows = touching_cells(size[1], spread_tile[1], taps_y).map(|mut cells| row(&mut cells)).collect();
        let column = |cells: &mut dyn Iterator<Item = usize>| {
            // Runs are the first key times 2^8, plus the number of keys.
            let mut column: Vec<u32> = Vec::new();
            for key in cells.map(|cell| x[cell]) {
                assert!(key < NO_RUN >> 8);
                match column.last_mut() {
                    Some(run) if (*run >> 8) + (*run & 0xff) == key + 1 => {}
                    Some(run) if (*run >> 8) + (*run & 0xff) == key => *run += 1,
                    _ => column.push(key << 8 | 1),
                }
            }
            column
        };
        let columns = touching_cells(size[0], spread_tile[0], width).map(|mut cells| column(&mut cells)).collect();
        let ((rows, runs_y), (columns, runs_x)) = (flattened(rows), flattened(columns));

        let layout = BinLayout { size: spread.size, width: width as u32, tile: Divisor::new(span as usize) };
        let runs = RunLayout {
            size_z: spread.size[2],
            depth: spread.tile[2],
            width: width as u32,
            tiles: spread.tiles,
            runs_y: runs_y as u32,
            runs_x: Divisor::new(runs_x),
            runs_of_plane: Divisor::new(runs_y * runs_x),
        };
        let touched = tiles_touched(&spread, [width, taps_y, width]);
        let (keys, mean_touched) = ([x, y, z].concat(), spread.expected_pairs(width, 1));
        BinTables { layout, runs, keys, rows, columns, touched, mean_touched }
    }
}

#[cfg(test)]
mod tests {
    //! Bins without a GPU: for each tile, the runs cover exactly the cells in which windows that touch it start.

    use super::*;
    use std::ops::Range;

    /// Returns the bin of a cell, as `key_of` in kernels/samples.cu.
    fn bin_of(t: &BinTables, [x, y, z]: [usize; 3]) -> usize {
        let size = t.layout.size.map(|n| n as usize);
        (t.keys[x] + t.keys[size[0] + y] + t.keys[size[0] + size[1] + z]) as usize
    }

    /// Returns the first bin and the number of bins of a run, as `run_of` in kernels/samples.cu.
    fn bins_of_run(t: &BinTables, tile: [usize; 3], [plane, j, i]: [usize; 3]) -> Range<usize> {
        let (l, b) = (&t.runs, &t.layout);
        let first_plane = tile[2] as u32 * l.depth;
        let planes = l.depth.min(l.size_z - first_plane) + l.width - 1;
        let (row, column) = (t.rows[tile[1] * l.runs_y as usize + j], t.columns[tile[0] * l.runs_x.value as usize + i]);
        if plane as u32 >= planes || row == NO_RUN || column == NO_RUN {
            return 0..0;
        }
        let z = (first_plane + plane as u32 + l.size_z - (l.width - 1)) % l.size_z;
        let bin = t.keys[(b.size[0] + b.size[1] + z) as usize] + row + (column >> 8);
        bin as usize..(bin + (column & 0xff)) as usize
    }

    fn check(axes: usize, size: [usize; 3], width: usize, spread: [usize; 3], gather: [usize; 3]) {
        let spread = [0, 1, 2].map(|a| spread[a].min(size[a].div_ceil(2)));
        let (spread, gather) = (TileLayout::new(size, spread), TileLayout::new(size, gather));
        let t = BinTables::new(axes, width, spread, gather);
        let taps = [width, if axes == 3 { width } else { 1 }, width];
        let touches = |cell: usize, tile: usize, a: usize| {
            let (start, depth) = (tile * spread.tile[a] as usize, spread.tile[a] as usize);
            (0..taps[a]).any(|tap| (start..(start + depth).min(size[a])).contains(&((cell + tap) % size[a])))
        };
        let mut touched = vec![0; size.iter().product()];
        let tiles = spread.tiles.map(|n| n as usize);
        for tile in
            (0..tiles.iter().product()).map(|i: usize| [i % tiles[0], i / tiles[0] % tiles[1], i / tiles[0] / tiles[1]])
        {
            let mut seen = std::collections::HashMap::new();
            for plane in 0..(t.runs.depth + t.runs.width - 1) as usize {
                for (j, i) in
                    (0..t.runs.runs_y as usize).flat_map(|j| (0..t.runs.runs_x.value as usize).map(move |i| (j, i)))
                {
                    for bin in bins_of_run(&t, tile, [plane, j, i]) {
                        assert!(seen.insert(bin, plane).is_none(), "bin {bin} twice");
                    }
                }
            }
            for z in 0..size[2] {
                for y in 0..size[1] {
                    for x in 0..size[0] {
                        let cell = [x, y, z];
                        let expected = (0..3).all(|a| touches(cell[a], tile[a], a));
                        let plane = seen.get(&bin_of(&t, cell));
                        assert_eq!(plane.is_some(), expected, "{size:?} {width} cell {cell:?} tile {tile:?}");
                        if let Some(&plane) = plane {
                            assert_eq!((tile[2] * t.runs.depth as usize + plane + size[2] - (width - 1)) % size[2], z);
                            touched[(z * size[1] + y) * size[0] + x] += 1;
                        }
                    }
                }
            }
        }
        assert!(
            touched.iter().all(|&n| n >= 1 && n <= t.touched),
            "{size:?}: {:?} of {}",
            touched.iter().max(),
            t.touched
        );
    }

    #[test]
    fn runs_are_the_samples_that_touch_a_tile() {
        for (width, size) in
            [(4, [24, 20, 36]), (5, [17, 30, 40]), (8, [16, 33, 20]), (7, [14, 14, 14]), (2, [6, 9, 18])]
        {
            for gather in [[16, 8, 8], [16, 4, 2], [16, 2, 2]] {
                check(3, size, width, [8, 4, 16], gather);
            }
        }
        for (width, size) in [(6, [96, 1, 50]), (3, [20, 1, 33]), (16, [70, 1, 32]), (2, [4, 1, 4])] {
            for gather in [[16, 1, 32], [16, 1, 4]] {
                check(2, size, width, [32, 1, 16], gather);
            }
        }
    }
}
