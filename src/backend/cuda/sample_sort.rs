//! Samples of a plan on a GPU, sorted by bins of the grid, and the lists of tiles that they touch: the kernels of
//! kernels/samples.cu, which describes the method.

use super::compile::Kernels;
use super::gpu::{launch, Gpu};
use super::memory::DeviceArray;
use super::runtime::Function;
use super::sort::{blocks, scan_states, Length, ScanTask, Sort, TileLayout, TileSegments, BLOCK, SCHEDULE_ZEROS, WHAT};
use crate::backend::{DevicePointer, DeviceSlice, Span};
use crate::base::error::{checked_product, Result};
use crate::base::real::Real;
use std::ops::Range;
use std::sync::Arc;

/// Threads per block of a pass.
const THREADS: usize = 256;
/// Bits and number of digits of a pass; maximum number of passes.
const DIGIT_BITS: u32 = 8;
const DIGITS: usize = 1 << DIGIT_BITS;
const MAX_PASSES: usize = 4;
/// Maximum number of samples per thread of a pass.
const ROUNDS: usize = 8;
/// Maximum number of samples for which the kernels count with 30 bits.
const MAX_NARROW: usize = 1 << 30;
/// Bytes of a list that may be allocated for the largest possible number of pairs, so that the host need not wait.
const MAX_BOUND_BYTES: usize = 16 << 20;
/// Maximum number of segments of a tile that one warp sums. With more, the warps of a block share a plane; for fewer
/// segments a block of many warps takes longer to start than to sum.
const FEW_SEGMENTS: u32 = 32;
/// Value of a run that a tile does not have.
const NO_RUN: u32 = u32::MAX;

const SAMPLES: &str =
    concat!(include_str!("../../../kernels/segments.cuh"), include_str!("../../../kernels/samples.cu"));

/// Sorting on one kind of GPU, in real numbers of `bytes` bytes.
#[derive(Clone, Copy)]
pub struct SortConfig {
    axes: usize,
    bytes: usize,
    /// Maximum number of samples per thread.
    rounds: usize,
    wide: bool,
}

impl SortConfig {
    /// Chooses the number of samples of a block by its shared memory, of which a GPU has `shared` bytes.
    pub fn new(axes: usize, bytes: usize, samples: usize, shared: usize) -> Self {
        let rounds = if bytes == 4 || shared >= 96 << 10 { ROUNDS } else { ROUNDS / 2 };
        SortConfig { axes, bytes, rounds, wide: samples >= MAX_NARROW }
    }

    /// Returns the kernels.
    pub fn kernels(&self) -> Kernels {
        let macros = [("DIM", self.axes), ("ROUNDS", self.rounds), ("WIDE", usize::from(self.wide))];
        Kernels::new("samples", SAMPLES, self.bytes, &macros)
    }

    /// Returns the bytes of a record of coordinates and index.
    fn record(&self) -> usize {
        4 * self.bytes
    }

    /// Returns the dynamic shared memory of a block: its records, and their digits.
    fn shared(&self) -> usize {
        THREADS * self.rounds * (self.record() + 1)
    }

    /// Returns the number of samples per thread. A few samples are divided over several blocks.
    fn rounds(&self, samples: usize) -> usize {
        samples.div_ceil(32 * THREADS).clamp(1, self.rounds)
    }
}

/// The grid and the bins of a tile, in the form of the kernels.
#[derive(Clone, Copy)]
#[repr(C)]
struct BinLayout {
    size: [u32; 3],
    width: u32,
    tiles_x: u32,
    tiles_y: u32,
    planes: u32,
    classes_y: u32,
    classes_x: u32,
}

impl BinLayout {
    /// Returns the number of bins of a tile.
    fn span(&self) -> usize {
        (self.planes * self.classes_y * self.classes_x) as usize
    }
}

/// The tiles of spreading, in the form of the kernels.
#[derive(Clone, Copy)]
#[repr(C)]
struct RunLayout {
    size_z: u32,
    depth: u32,
    width: u32,
    tiles: [u32; 3],
    runs_y: u32,
    runs_x: u32,
}

/// Arrays of a pass, in the form of the kernels.
#[derive(Clone, Copy)]
#[repr(C)]
struct SortArrays<T> {
    k: [DevicePointer<T>; 3],
    from: DevicePointer<T>,
    to: DevicePointer<T>,
}

/// The bins of a grid. They do not depend on the samples.
pub struct Bins {
    tables: BinTables,
    /// [`BinTables::cells`], [`BinTables::rows`] and [`BinTables::columns`], one after the other.
    device: DeviceArray<u32>,
    /// Number of tiles of interpolation, and of spreading.
    gather_tiles: usize,
    spread_tiles: usize,
}

impl Bins {
    /// Cuts the tiles of interpolation into bins, for tiles of spreading of at most half the grid.
    pub fn new(gpu: &Gpu, axes: usize, width: usize, spread: TileLayout, gather: TileLayout) -> Result<Arc<Self>> {
        let tables = BinTables::new(axes, width, spread, gather);
        let (gather_tiles, spread_tiles) = (gather.count(tables.layout.span())?, spread.count(1)?);
        let all = [&tables.cells[..], &tables.rows, &tables.columns].concat();
        Ok(Arc::new(Bins { device: gpu.send(&all, WHAT)?, tables, gather_tiles, spread_tiles }))
    }

    fn count(&self) -> usize {
        self.gather_tiles * self.tables.layout.span()
    }

    /// Returns the number of runs of bins that segments for interpolation do not cross, and the bins of a run.
    fn gather_runs(&self, gathering: GatherSegments) -> (usize, usize) {
        if gathering.by_tile {
            (self.gather_tiles, self.tables.layout.span())
        } else {
            (1, self.count())
        }
    }

    /// Returns the addresses of the tables of cells, rows and columns.
    fn pointers(&self) -> [DevicePointer<u32>; 3] {
        let (cells, rows) = (self.tables.cells.len(), self.tables.rows.len());
        [0, cells, cells + rows].map(|at| self.device.pointer().offset(at))
    }
}

/// The tables that define bins, and the runs of bins of each tile of spreading.
struct BinTables {
    layout: BinLayout,
    runs: RunLayout,
    /// Tile and class of each cell of x, then y; tile and plane of each cell of z.
    cells: Vec<u32>,
    /// Runs along y and x of the tiles of spreading, see `run_of` in kernels/samples.cu.
    rows: Vec<u32>,
    columns: Vec<u32>,
    /// Maximum number of tiles that a window touches.
    touched: usize,
}

/// Returns the maximum number of tiles that a window of these lengths touches.
fn tiles_touched(layout: &TileLayout, taps: [usize; 3]) -> usize {
    let touched = |a: usize| {
        let (size, tile) = (layout.size[a] as usize, layout.tile[a] as usize);
        // The last tile of an axis may be smaller.
        (1 + (taps[a] - 1).div_ceil(tile) + usize::from(size % tile != 0)).min(layout.tiles[a] as usize)
    };
    touched(0) * touched(1) * touched(2)
}

/// Returns the largest possible number of pairs of a tile and a sample if a list for all of them is small, otherwise
/// `None`. With a small list the host need not wait for the true number.
fn pairs_bound(samples: usize, touched: usize) -> Option<usize> {
    samples.checked_mul(touched).filter(|&pairs| pairs <= MAX_BOUND_BYTES / 4)
}

/// Returns the tile of interpolation of each cell of an axis, times 2^16, and the class of the cell in the tile. All
/// windows that start in one class touch the same tiles of spreading. `taps` is the window's length.
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
        ((cell / gather) as u32) << 16 | class
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
        let z = (0..size[2]).map(|cell| ((cell / gather_tile[2]) as u32) << 16 | (cell % gather_tile[2]) as u32);

        let row = |cells: &mut dyn Iterator<Item = usize>| {
            let mut row: Vec<u32> = cells.map(|cell| y[cell]).collect();
            row.dedup();
            row
        };
        let rows = touching_cells(size[1], spread_tile[1], taps_y).map(|mut cells| row(&mut cells)).collect();
        let column = |cells: &mut dyn Iterator<Item = usize>| {
            // Runs are tile times 2^16, first class times 2^8, number of classes.
            let mut column: Vec<u32> = Vec::new();
            for at in cells.map(|cell| x[cell]) {
                let (tile, class) = (at >> 16, at & 0xffff);
                match column.last_mut() {
                    Some(run) if *run >> 16 == tile && (*run >> 8 & 0xff) + (*run & 0xff) == class + 1 => {}
                    Some(run) if *run >> 16 == tile && (*run >> 8 & 0xff) + (*run & 0xff) == class => *run += 1,
                    _ => column.push(tile << 16 | class << 8 | 1),
                }
            }
            column
        };
        let columns = touching_cells(size[0], spread_tile[0], width).map(|mut cells| column(&mut cells)).collect();
        let ((rows, runs_y), (columns, runs_x)) = (flattened(rows), flattened(columns));

        let layout = BinLayout {
            size: spread.size,
            width: width as u32,
            tiles_x: gather.tiles[0],
            tiles_y: gather.tiles[1],
            planes: gather.tile[2],
            classes_y: classes_y as u32,
            classes_x: classes_x as u32,
        };
        let runs = RunLayout {
            size_z: spread.size[2],
            depth: spread.tile[2],
            width: width as u32,
            tiles: spread.tiles,
            runs_y: runs_y as u32,
            runs_x: runs_x as u32,
        };
        let touched = tiles_touched(&spread, [width, taps_y, width]);
        BinTables { layout, runs, cells: x.into_iter().chain(y).chain(z).collect(), rows, columns, touched }
    }
}

/// Samples in the order of the tiles that interpolate them.
pub struct SortedPoints<T> {
    /// Four values per sample: the position on each axis, and the polynomial of its window.
    pub records: DeviceArray<T>,
    /// Start of the window along z, 16 bits.
    pub planes: DeviceArray<u32>,
    /// Index of each point's sample.
    pub order: DeviceArray<u32>,
}

/// Counts that only the kernels know.
pub struct Counts {
    pub spread_segments: usize,
    pub gather_segments: usize,
    /// Planes of segments that share a tile.
    pub planes: usize,
    /// Tiles with few segments and with many.
    pub few: usize,
    pub many: usize,
    /// Runs of samples that follow one another in a tile of interpolation, of up to 32 samples; counted in 2D.
    pub runs: usize,
    /// Maximum number of segments of a tile that has several.
    pub most_segments: usize,
}

impl Counts {
    /// Returns the counts in the order of [`CountAt`].
    fn of(found: [u64; CountAt::End as usize]) -> Self {
        let [_, spread_segments, gather_segments, planes, runs, few, many, most_segments] = found.map(|n| n as usize);
        Counts { spread_segments, gather_segments, planes, few, many, runs, most_segments }
    }
}

/// Parts of an array, one after the other.
#[derive(Default)]
struct Parts(usize);

impl Parts {
    fn add(&mut self, len: usize) -> Range<usize> {
        self.0 += len;
        self.0 - len..self.0
    }
}

/// Positions of counts in memory that is 0 at first.
#[repr(usize)]
enum CountAt {
    Pairs,
    SpreadSegments,
    GatherSegments,
    Planes,
    Runs,
    /// Tiles with few segments, then those with many, then the most segments of a tile.
    CutTiles,
    End = 8,
}

/// Memory of the lists that is 0 at first: counts, and the states of scans and schedules.
struct ListZeros {
    array: DeviceArray<u64>,
    counts: Range<usize>,
    starts: Range<usize>,
    spread: Range<usize>,
    gather: Range<usize>,
    classes: Range<usize>,
}

impl ListZeros {
    fn new(gpu: &Gpu, tiles: usize, gather_tiles: usize) -> Result<Self> {
        let mut parts = Parts::default();
        let counts = parts.add(CountAt::End as usize);
        let [starts, spread, gather] = [tiles, tiles, gather_tiles].map(|n| parts.add(scan_states(n) + 1));
        let classes = parts.add(SCHEDULE_ZEROS);
        Ok(ListZeros { array: gpu.zeros::<u64>(parts.0, WHAT)?, counts, starts, spread, gather, classes })
    }

    fn part(&self, range: &Range<usize>) -> DeviceSlice<'_, u64> {
        self.array.view().part(range.clone())
    }

    fn count_at(&self, which: CountAt) -> DevicePointer<u64> {
        self.array.pointer().offset(self.counts.start + which as usize)
    }
}

/// Lists for spreading and interpolation.
pub struct SampleLists<T> {
    pub points: SortedPoints<T>,
    /// The samples of each tile of interpolation in the order of the input, if requested: four values each.
    pub tile_samples: Option<DeviceArray<T>>,
    /// Points of each tile of spreading, one list after the other.
    pub list: DeviceArray<u32>,
    /// First segment of each tile of spreading; the last entry is the number of segments.
    pub firsts: DeviceArray<u64>,
    pub spread_segments: TileSegments,
    pub gather_segments: TileSegments,
    /// First plane of each segment of spreading; the last entry is the number of planes.
    pub slots: DeviceArray<u64>,
    /// Tiles with several segments: those with few from the front, those with many from the end.
    pub cut_tiles: DeviceArray<u64>,
    pub counts: Counts,
}

/// Returns the number of digits of the keys of `bins` bins.
fn passes(bins: usize) -> usize {
    let bits = usize::BITS - (bins - 1).leading_zeros();
    bits.div_ceil(DIGIT_BITS).max(1) as usize
}

/// Returns the approximate bytes of sorted samples, including scratch that is kept for later arrays. `pairs` is the
/// approximate number of pairs of a tile and a sample, `longest` gives the length of segments for spreading.
pub fn bytes(
    samples: usize,
    real: usize,
    [spread, gather]: [&TileLayout; 2],
    taps: [usize; 3],
    pairs: f64,
    longest: impl Fn(usize) -> usize,
    gathering: GatherSegments,
) -> f64 {
    let tiles = [spread, gather].map(TileLayout::estimated_tiles);
    let cells = spread.size.iter().map(|&n| f64::from(n)).product::<f64>();
    let pairs = pairs_bound(samples, tiles_touched(spread, taps)).map_or(pairs, |bound| bound as f64);
    let lengths = [longest(pairs as usize), gathering.samples];
    let gather_tiles = if gathering.by_tile { tiles[1] } else { 1.0 };
    let n = samples as f64;
    // About one bin per 8 cells.
    let bins = cells / 8.0;
    let passes = passes((bins as usize).max(2)) as f64;
    let states = 4.0 * DIGITS as f64 * passes * (n / (THREADS * ROUNDS / 2) as f64 + 64.0);
    // Records of two passes, one of which becomes the points, planes and order.
    let points = (2 * 4 * real + 2 + 4) as f64 * n;
    let room = |tiles: f64, most: f64, longest: usize| tiles.min(most) + most / longest as f64;
    let segments = 40.0 * room(tiles[0], pairs, lengths[0]) + 28.0 * room(gather_tiles, n, lengths[1]);
    points + states + 4.0 * bins + 4.0 * pairs + segments + 36.0 * tiles[0] + 8.0 * tiles[1]
}

/// The kernels of kernels/samples.cu on one GPU.
struct SortFunctions {
    config: SortConfig,
    count_digits: Function,
    sort_first: Function,
    sort_next: Function,
    settle: Function,
    count_touching: Function,
    list_touching: Function,
}

impl SortFunctions {
    fn new<T: Real>(gpu: &Gpu, axes: usize, samples: usize) -> Result<Self> {
        let config = SortConfig::new(axes, size_of::<T>(), samples, gpu.properties().shared);
        let kernels = config.kernels();
        let function = |name, shared| gpu.function(&kernels, name, shared);
        Ok(SortFunctions {
            config,
            count_digits: function("count_digits", 0)?,
            sort_first: function("sort_first", config.shared())?,
            sort_next: function("sort_next", config.shared())?,
            settle: function("settle", 0)?,
            count_touching: function("count_touching", 0)?,
            list_touching: function("list_touching", 0)?,
        })
    }
}

/// The division of samples into segments for interpolation.
#[derive(Clone, Copy)]
pub struct GatherSegments {
    /// Maximum number of samples of a segment.
    pub samples: usize,
    /// Whether the samples of a segment are in one tile.
    pub by_tile: bool,
}

/// Sorts samples at `k`, one slice per axis, within [-0.5, 0.5). `length` gives the lengths of segments for
/// spreading from the number of pairs of a tile and a sample; `gathering` are those for interpolation.
/// `follows_input`: whether interpolation takes the samples of a tile in the order of the input, which has this number
/// of runs.
pub fn sort_samples<T: Real>(
    gpu: &Gpu,
    k: &[DeviceSlice<'_, T>],
    bins: &Bins,
    length: impl Fn(usize) -> Length,
    gathering: GatherSegments,
    follows_input: impl Fn(usize) -> bool,
) -> Result<SampleLists<T>> {
    let (n, gathered) = (k[0].len(), gathering.samples);
    let functions = SortFunctions::new::<T>(gpu, k.len(), n)?;
    let sort = Sort::new(gpu)?;
    let (tiles, (gather_tiles, gather_span)) = (bins.spread_tiles, bins.gather_runs(gathering));
    let zeros = ListZeros::new(gpu, tiles, gather_tiles)?;
    let (points, starts, spare) = sort_points(gpu, &functions, &sort, k, bins, zeros.count_at(CountAt::Runs))?;

    let counts = gpu.array::<u32>(tiles, WHAT)?;
    let [cells, rows, columns] = bins.pointers();
    let (layout, runs) = (bins.tables.layout, bins.tables.runs);
    let warps = |n: usize| [n.div_ceil(8) as u32, 1, 1];
    // SAFETY: the kernel's parameters are these; it reads the starts of bins and writes one count per tile.
    unsafe {
        launch!(gpu, &functions.count_touching, warps(tiles), BLOCK, 0;
            runs, layout, cells, rows, columns, starts.pointer(), counts.pointer())
    };
    let prefix = |n: usize| gpu.array::<u64>(n + 1, WHAT);
    let (tile_starts, firsts, gather_firsts) = (prefix(tiles)?, prefix(tiles)?, prefix(gather_tiles)?);
    let of_starts =
        ScanTask::new(&counts, tiles, &tile_starts, zeros.part(&zeros.starts), zeros.count_at(CountAt::Pairs));
    let of_gather = {
        let length = Length { usual: gathered, dense: n, brief: gathered };
        let total = zeros.count_at(CountAt::GatherSegments);
        ScanTask::new(&starts, gather_tiles, &gather_firsts, zeros.part(&zeros.gather), total)
            .of_differences(gather_span, gather_tiles)
            .of_segments(length, 0)
    };
    let of_spread = |length| {
        let total = zeros.count_at(CountAt::SpreadSegments);
        ScanTask::new(&counts, tiles, &firsts, zeros.part(&zeros.spread), total).of_segments(length, 1)
    };
    // For a few samples, a bound on the number of pairs is used instead of waiting for the number.
    let (pairs, length) = if let Some(bound) = pairs_bound(n, bins.tables.touched) {
        sort.scan(&[of_starts, of_gather, of_spread(length(bound))]);
        (bound, length(bound))
    } else {
        sort.scan(&[of_starts, of_gather]);
        let mut pairs = [0u64];
        gpu.download(zeros.part(&(zeros.counts.start..zeros.counts.start + 1)), &mut pairs)?;
        let length = length(pairs[0] as usize);
        sort.scan(&[of_spread(length)]);
        (pairs[0] as usize, length)
    };

    let list = spare.reused(pairs).map_or_else(|| gpu.array::<u32>(pairs, WHAT), Ok)?;
    let room = tiles + pairs / length.brief.min(length.usual);
    let spread_segments = TileSegments::unwritten(gpu, room)?;
    let planes = gpu.array::<u32>(room, WHAT)?;
    let cut_tiles = gpu.array::<u64>(2 * tiles, WHAT)?;
    // SAFETY: the kernel's parameters are these. There is space for the counted pairs, for the maximum number of
    // segments, and for all tiles.
    unsafe {
        launch!(gpu, &functions.list_touching, warps(room), BLOCK, 0;
            runs, layout, cells, rows, columns, starts.pointer(), tile_starts.pointer(), firsts.pointer(), room as u64,
            FEW_SEGMENTS, list.pointer(), spread_segments.segments.pointer(), planes.pointer(), cut_tiles.pointer(),
            zeros.count_at(CountAt::CutTiles))
    };
    let gather_room = gather_tiles.min(n) + n / gathered;
    let gather_segments = TileSegments::unwritten(gpu, gather_room)?;
    sort.cut(&starts, gather_span, &gather_firsts, gather_room, &gather_segments);
    let slots = prefix(room)?;
    let slot_zeros = gpu.zeros::<u64>(scan_states(room) + 1, WHAT)?;
    sort.scan(&[ScanTask::new(&planes, room, &slots, slot_zeros.view(), zeros.count_at(CountAt::Planes))]);
    let segment_counts = [CountAt::SpreadSegments, CountAt::GatherSegments].map(|which| zeros.count_at(which));
    let lists = [&spread_segments, &gather_segments];
    sort.schedule(lists, segment_counts, [length.usual, gathered], zeros.part(&zeros.classes));

    let mut found = [0u64; CountAt::End as usize];
    gpu.download(zeros.part(&zeros.counts), &mut found)?;
    let counts = Counts::of(found);
    let tile_samples =
        if follows_input(counts.runs) { Some(tile_samples(gpu, &functions, k, bins, starts)?) } else { None };
    Ok(SampleLists { points, tile_samples, list, firsts, spread_segments, gather_segments, slots, cut_tiles, counts })
}

/// Lists the samples of each tile of interpolation in the order of the input, in 2D and single precision. `starts` are
/// the first points of bins.
fn tile_samples<T: Real>(
    gpu: &Gpu,
    functions: &SortFunctions,
    k: &[DeviceSlice<'_, T>],
    bins: &Bins,
    starts: DeviceArray<u32>,
) -> Result<DeviceArray<T>> {
    assert!(k.len() == 2 && size_of::<T>() == 4);
    let write = gpu.function(&functions.config.kernels(), "write_tile_samples", 0)?;
    let samples = gpu.array::<T>(4 * k[0].len(), WHAT)?;
    let (layout, [cells, ..]) = (bins.tables.layout, bins.pointers());
    // SAFETY: the kernel's parameters are these; it reads both coordinates of all samples. It writes as many samples of
    // a tile as there are points of it, from the first of these on, and may change `starts`, which nothing reads later.
    unsafe {
        launch!(gpu, &write, blocks(k[0].len()), BLOCK, 0;
            k[0].pointer(), k[1].pointer(), k[0].len() as u64, layout, cells, layout.span() as u32, starts.pointer(),
            samples.pointer())
    };
    Ok(samples)
}

/// Sorts the samples by bins. Returns the points, the first point of each bin and their number, and an array that is
/// not used any more. Adds the number of runs to `runs`.
fn sort_points<T: Real>(
    gpu: &Gpu,
    functions: &SortFunctions,
    sort: &Sort<'_>,
    k: &[DeviceSlice<'_, T>],
    bins: &Bins,
    runs: DevicePointer<u64>,
) -> Result<(SortedPoints<T>, DeviceArray<u32>, DeviceArray<T>)> {
    let (n, count) = (k[0].len(), bins.count());
    let passes = passes(count);
    assert!(passes <= MAX_PASSES);
    let SortFunctions { config, .. } = functions;
    let rounds = config.rounds(n);
    let pass_blocks = n.div_ceil(THREADS * rounds);
    // Numbers of 32 bits, in words of 64: counts of digits, a counter of finished blocks, and for each pass a counter
    // of started blocks and the states of blocks.
    let states = checked_product(&[pass_blocks, if config.wide { DIGITS } else { DIGITS / 2 }], WHAT)?;
    let mut parts = Parts::default();
    let at_digits = parts.add(MAX_PASSES * DIGITS / 2);
    let at_tickets = parts.add(1 + MAX_PASSES);
    let at_states = parts.add(states * passes);
    let at_fill = parts.add(scan_states(count) + 1);
    let zeros = gpu.zeros::<u64>(parts.0, WHAT)?;
    let word = |at: usize| zeros.pointer().offset(at);

    let (layout, [cells, ..]) = (bins.tables.layout, bins.pointers());
    let [kx, ky, kz] = [0, k.len() - 2, k.len() - 1].map(|a| k[a].pointer());
    let samples = n as u64;
    let counting = [n.div_ceil(4 * THREADS).min(8 * gpu.properties().multiprocessors as usize) as u32, 1, 1];
    // SAFETY: the kernel's parameters are these; it reads n samples and counts in memory for all digits.
    unsafe {
        launch!(gpu, &functions.count_digits, counting, BLOCK, 0;
            kx, ky, kz, samples, layout, cells, passes as u32, word(at_digits.start), word(at_tickets.start),
            runs)
    };
    let moved = |needed: bool| gpu.array::<T>(if needed { 4 * n } else { 0 }, WHAT);
    let moved = [moved(true)?, moved(passes > 1)?];
    for pass in 0..passes {
        let (from, to) = (moved[(pass + 1) % 2].pointer(), moved[pass % 2].pointer());
        let arrays = SortArrays { k: [kx, ky, kz], from, to };
        let function = if pass == 0 { &functions.sort_first } else { &functions.sort_next };
        let (shift, digits) = (DIGIT_BITS * pass as u32, word(at_digits.start + pass * DIGITS / 2));
        let (states, ticket) = (word(at_states.start + pass * states), word(at_tickets.start + 1 + pass));
        // SAFETY: the kernels' parameters are these. Each pass reads and writes n samples, and has zeroed states for
        // all its blocks.
        unsafe {
            launch!(gpu, function, [pass_blocks as u32, 1, 1], BLOCK, config.shared();
                arrays, samples, layout, cells, shift, rounds as u32, digits, states, ticket)
        };
    }
    // The points take the place of the records before the last pass.
    let [even, odd] = moved;
    let (sorted, free) = if passes % 2 == 1 { (even, odd) } else { (odd, even) };
    let points = SortedPoints {
        records: if passes > 1 { free } else { gpu.array::<T>(4 * n, WHAT)? },
        planes: gpu.array::<u32>(n.div_ceil(2), WHAT)?,
        order: gpu.array::<u32>(n, WHAT)?,
    };
    let mut starts = gpu.array::<u32>(count + 1, WHAT)?;
    gpu.fill(starts.view_mut(), 0xff);
    // SAFETY: the kernel's parameters are these; it reads n records, and writes n points and the starts of bins.
    unsafe {
        launch!(gpu, &functions.settle, blocks(n), BLOCK, 0;
            sorted.pointer(), samples, layout, cells, points.records.pointer(), points.planes.pointer(), points.order.pointer(),
            starts.pointer())
    };
    sort.fill_starts(&starts, n, zeros.view().part(at_fill));
    Ok((points, starts, sorted))
}

#[cfg(test)]
mod tests {
    //! Bins without a GPU: for each tile, the runs cover exactly the cells in which windows that touch it start.

    use super::*;

    /// Returns the bin of a cell, as `key_of` in kernels/samples.cu.
    fn bin_of(t: &BinTables, [x, y, z]: [usize; 3]) -> usize {
        let (b, size) = (&t.layout, t.layout.size.map(|n| n as usize));
        let [x, y, z] = [t.cells[x], t.cells[size[0] + y], t.cells[size[0] + size[1] + z]];
        let tile = ((z >> 16) * b.tiles_y + (y >> 16)) * b.tiles_x + (x >> 16);
        (((tile * b.planes + (z & 0xffff)) * b.classes_y + (y & 0xffff)) * b.classes_x + (x & 0xffff)) as usize
    }

    /// Returns the first bin and the number of bins of a run, as `run_of` in kernels/samples.cu.
    fn bins_of_run(t: &BinTables, tile: [usize; 3], [plane, j, i]: [usize; 3]) -> Range<usize> {
        let (l, b) = (&t.runs, &t.layout);
        let first_plane = tile[2] as u32 * l.depth;
        let planes = l.depth.min(l.size_z - first_plane) + l.width - 1;
        let (row, column) = (t.rows[tile[1] * l.runs_y as usize + j], t.columns[tile[0] * l.runs_x as usize + i]);
        if plane as u32 >= planes || row == NO_RUN || column == NO_RUN {
            return 0..0;
        }
        let z = (first_plane + plane as u32 + l.size_z - (l.width - 1)) % l.size_z;
        let of_z = t.cells[(b.size[0] + b.size[1] + z) as usize];
        let at = ((of_z >> 16) * b.tiles_y + (row >> 16)) * b.tiles_x + (column >> 16);
        let bin =
            ((at * b.planes + (of_z & 0xffff)) * b.classes_y + (row & 0xffff)) * b.classes_x + (column >> 8 & 0xff);
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
                for (j, i) in (0..t.runs.runs_y as usize).flat_map(|j| (0..t.runs.runs_x as usize).map(move |i| (j, i)))
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

    #[test]
    fn digits_cover_all_keys() {
        for bins in [1, 2, 255, 256, 257, 1 << 20, (1 << 24) + 1, u32::MAX as usize] {
            let passes = passes(bins);
            assert!((1..=MAX_PASSES).contains(&passes), "{bins}");
            assert!((DIGIT_BITS as usize * passes) as f64 >= (bins as f64).log2(), "{bins}");
        }
    }
}
