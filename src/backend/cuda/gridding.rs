//! Gridding on a GPU: samples are sorted there by the tiles of the grid that they touch, then spread and interpolated
//! by the kernels of kernels/gridding.cu, which says how.

use super::compile::Kernels;
use super::gpu::{launch, Gpu};
use super::memory::DeviceArray;
use super::runtime::{Function, Properties};
use crate::backend::{MAX_DEGREE, MAX_WIDTH};
use crate::base::error::{bail, checked_product, Result};
use crate::base::real::Real;
use num_complex::Complex;
use std::sync::Mutex;

/// Room for the coefficients of a window's polynomials: of half of the taps, of every power.
const COEFFICIENTS: usize = (MAX_DEGREE + 1) * MAX_WIDTH / 2;
/// Threads of a block of the kernels that plan, and keys of a block that sorts.
const THREADS: usize = 256;
const SORTED_TOGETHER: usize = 4096;
/// The warps of a block of `sum_segments`, and the segments of a tile that one of them sums, at most.
const SUM_WARPS: usize = 16;
const FEW_SEGMENTS: u32 = 8;
/// Samples that a block interpolates, at most.
const GATHERED: usize = 512;
/// Shared memory that every GPU gives a block.
const STATIC_SHARED: usize = 48 << 10;

/// A grid cut into tiles, as the kernels take it; in 2D the axes are x, nothing, y.
#[derive(Clone, Copy)]
#[repr(C)]
struct Layout {
    size: [u32; 3],
    tile: [u32; 3],
    tiles: [u32; 3],
}

impl Layout {
    fn new(size: [usize; 3], tile: [usize; 3]) -> Self {
        let tiles = [0, 1, 2].map(|a| size[a].div_ceil(tile[a]));
        let short = |of: [usize; 3]| of.map(|n| n as u32);
        Layout { size: short(size), tile: short(tile), tiles: short(tiles) }
    }

    /// The number of tiles, where each can have so many keys.
    fn count(&self, keys: usize) -> Result<usize> {
        let tiles = checked_product(&self.tiles.map(|n| n as usize), "the tiles of the grid")?;
        if checked_product(&[tiles, keys], "the tiles of the grid")? > u32::MAX as usize {
            bail!(
                SizeOverflow,
                "a grid of {:?} cells is more than a GPU sorts samples for: use a smaller image",
                self.size
            );
        }
        Ok(tiles)
    }
}

/// A grid as three axes.
fn three(grid: &[usize]) -> [usize; 3] {
    match *grid {
        [x, y, z] => [x, y, z],
        _ => [grid[0], 1, grid[1]],
    }
}

/// How long segments are, at most: `usual`, and `brief` in tiles of more than `dense` samples.
#[derive(Clone, Copy)]
struct Length {
    usual: usize,
    dense: usize,
    brief: usize,
}

/// How one kind of GPU spreads with windows of one width.
struct Spreading {
    axes: usize,
    width: usize,
    bytes: usize,
    tensor: bool,
    warps: usize,
    resident: usize,
}

impl Spreading {
    const PLANES: usize = 16;

    fn new(axes: usize, width: usize, bytes: usize, capability: (u32, u32)) -> Self {
        // Elsewhere than in data centres tensor cores are no faster in single precision than the others are.
        let tensor = bytes == 4 && matches!(capability, (8, 0) | (9 | 10, _));
        Self::with(axes, width, bytes, tensor)
    }

    fn with(axes: usize, width: usize, bytes: usize, tensor: bool) -> Self {
        // What a warp keeps in shared memory, as in the kernels: rows of taps, or a record a sample.
        let shared = if tensor {
            let rows = (width - 1) * (axes + 1) + if axes == 3 { 12 } else { 32 } + Self::PLANES + 2;
            rows * 48 * bytes
        } else {
            let record = if axes == 3 { 12 } else { 32 } + 2 + width;
            32 * (((record * bytes).div_ceil(16) | 1) * 16)
        };
        let warps = (STATIC_SHARED / shared).clamp(1, 4);
        // Warps that should find registers: as many as the sums of wide windows leave room for.
        let all = match (tensor, bytes) {
            (true, _) => 16,
            (_, 4) if width <= 9 => 24,
            (_, 4) => 16,
            _ if width <= 8 => 12,
            _ => 8,
        };
        Spreading { axes, width, bytes, tensor, warps, resident: (all / warps).max(1) }
    }

    fn kernels(&self, degree: usize) -> Kernels {
        let mut macros = vec![
            ("DIM", self.axes),
            ("W", self.width),
            ("DEGREE", degree),
            ("ROWS", 1),
            ("ARRAYS", 1),
            ("WARPS", self.warps),
            ("RESIDENT", self.resident),
        ];
        if self.tensor {
            macros.extend([("TENSOR", 1), ("EIGHTS", Self::PLANES / 8)]);
        }
        Kernels::new("gridding", GRIDDING, self.bytes, &macros)
    }

    /// Tiles of at most half the grid, so that no window touches one twice.
    fn layout(&self, size: [usize; 3]) -> Layout {
        let tile = if self.axes == 3 { [8, 4, Self::PLANES] } else { [32, 1, Self::PLANES] };
        Layout::new(size, [0, 1, 2].map(|a| tile[a].min(size[a].div_ceil(2))))
    }

    /// The samples of a segment, at most: short enough to keep all of the GPU at work. Where tens of thousands of
    /// samples meet, all roundings of a sum may have one sign: in single precision segments are shorter there, since
    /// their sums are added in double precision.
    fn length(&self, pairs: usize) -> Length {
        let least = if self.tensor && self.width >= 8 { 768 } else { 512 };
        let most = if self.tensor || self.bytes == 8 { 4096 } else { 1024 };
        let usual = (pairs >> 15).clamp(least, most);
        let brief = match (self.bytes, self.tensor) {
            (4, true) => 256,
            // Here samples are added one by one, and not sixteen at a time.
            (4, false) => 128,
            _ => usual,
        };
        Length { usual, dense: 32 * least, brief }
    }
}

/// How tiles are interpolated.
#[derive(Clone, Copy)]
struct Gathering {
    axes: usize,
    width: usize,
    bytes: usize,
    staged: bool,
    /// Cells of a tile along the second axis that there is, and along the third.
    tile: [usize; 2],
    warps: usize,
}

impl Gathering {
    const TILE_X: usize = 16;

    /// The largest tile of which a GPU with so much shared memory in a block holds two, or one; where samples are too
    /// few to need most of a tile's cells, they are read from the grid.
    fn new(axes: usize, width: usize, bytes: usize, size: [usize; 3], samples: usize, shared: usize) -> Self {
        let all: &[[usize; 2]] =
            if axes == 3 { &[[8, 8], [8, 4], [4, 4], [4, 2], [2, 2]] } else { &[[32, 1], [16, 1], [8, 1], [4, 1]] };
        let staged = |tile, warps| Gathering { axes, width, bytes, staged: true, tile, warps };
        let mut tried = [shared / 2, shared]
            .into_iter()
            .flat_map(|room| all.iter().flat_map(move |&tile| [8, 4].map(|warps| (room, staged(tile, warps)))));
        let read = (samples as f64) * (width as f64).powi(axes as i32);
        let fits = |(room, g): &(usize, Gathering)| {
            let layout = g.layout(size);
            let tiles: f64 = layout.tiles.iter().map(|&n| f64::from(n)).product();
            let extent = g.extent();
            g.shared() <= *room
                && (0..3).all(|a| size[a] == 1 || extent[a] <= size[a])
                && tiles * extent.iter().product::<usize>() as f64 <= read
        };
        match tried.find(fits) {
            Some((_, gathering)) => gathering,
            None => Gathering { staged: false, ..staged(all[0], 8) },
        }
    }

    /// Cells of the tile and its windows' overhang on each axis.
    fn extent(&self) -> [usize; 3] {
        let over = self.width - 1;
        match self.axes {
            3 => [Self::TILE_X + over, self.tile[0] + over, self.tile[1] + over],
            _ => [Self::TILE_X + over, 1, self.tile[0] + over],
        }
    }

    fn layout(&self, size: [usize; 3]) -> Layout {
        let [y, z] = self.tile;
        Layout::new(size, if self.axes == 3 { [Self::TILE_X, y, z] } else { [Self::TILE_X, 1, y] })
    }

    /// Shared memory of a block, as in the kernel.
    fn shared(&self) -> usize {
        let [_, y, z] = self.extent();
        let staged = if self.staged { 2 * self.bytes * (Self::TILE_X + self.width) * y * z } else { 0 };
        let of_16 = 16 / self.bytes;
        let along_z = if self.axes == 3 { self.width } else { 1 };
        let record = ((along_z.next_multiple_of(of_16) + 2 * self.width).div_ceil(of_16) | 1) * of_16;
        let samples = if self.width <= 8 { 32 } else { 16 };
        staged + self.warps * samples * record * self.bytes
    }

    fn kernels(&self, degree: usize) -> Kernels {
        // One sample a group at once where two take too many registers.
        let rounds = if matches!(self.width, 7 | 8) { 1 } else { 2 };
        let macros = [
            ("DIM", self.axes),
            ("W", self.width),
            ("DEGREE", degree),
            ("STAGED", usize::from(self.staged)),
            ("TILE_Y", self.tile[0]),
            ("TILE_Z", self.tile[1]),
            ("GATHER_WARPS", self.warps),
            ("UNROLL_ROUNDS", rounds),
        ];
        Kernels::new("gridding", GRIDDING, self.bytes, &macros)
    }
}

const GRIDDING: &str = include_str!("../../../kernels/gridding.cu");

fn sort_kernels() -> Kernels {
    // No number in it has the precision of the plan.
    Kernels::new("sort", include_str!("../../../kernels/sort.cu"), 4, &[])
}

/// The degree that kernels are made for: even, so that there are few.
fn padded_degree(degree: usize) -> usize {
    degree.next_multiple_of(2).max(4)
}

/// The usual specialisations: those of the windows that tolerances between 1e-2 and 1e-6 ask for.
pub fn usual_kernels() -> Vec<Kernels> {
    let mut all = vec![sort_kernels()];
    for axes in [2, 3] {
        for width in 3..=9 {
            for degree in if width < 5 { [4, 6] } else { [6, 8] } {
                all.extend([true, false].map(|tensor| Spreading::with(axes, width, 4, tensor).kernels(degree)));
                let tile = if axes == 3 { [8, 8] } else { [32, 1] };
                all.push(Gathering { axes, width, bytes: 4, staged: true, tile, warps: 8 }.kernels(degree));
            }
        }
    }
    all
}

/// The kernels of kernels/sort.cu.
struct Sort<'a> {
    gpu: &'a Gpu,
    count: Function,
    scatter: Function,
    sums: Function,
    top: Function,
    apply: Function,
    ranges: Function,
    cut: Function,
    total: DeviceArray<u64>,
}

/// Runs of the tiles' lists, and the order in which they are worked on, the longest first. There is room for more than
/// there are.
struct Segments {
    segments: DeviceArray<u64>,
    schedule: DeviceArray<u32>,
    /// Before which segment each tile's begin; how many there are comes last.
    firsts: DeviceArray<u64>,
    tiles: usize,
}

impl Segments {
    fn count_at(&self) -> u64 {
        self.firsts.address() + 8 * self.tiles as u64
    }
}

/// What is known only of segments that spread.
struct Cuts {
    /// Where the planes of each segment begin, and after them all how many there are.
    slots: DeviceArray<u64>,
    slots_len: usize,
    /// Tiles that have several segments: few of them from the front, many from the end.
    tiles: DeviceArray<u64>,
    counts: DeviceArray<u64>,
}

fn blocks(n: usize) -> [u32; 3] {
    [n.div_ceil(THREADS) as u32, 1, 1]
}

const BLOCK: [u32; 3] = [THREADS as u32, 1, 1];

// In all of these: arrays are of this GPU and as long as the kernels want them, parameters are those of the kernel
// launched.
impl<'a> Sort<'a> {
    fn new(gpu: &'a Gpu) -> Result<Self> {
        let kernels = sort_kernels();
        let function = |name| gpu.function(&kernels, name, 0);
        Ok(Sort {
            gpu,
            count: function("sort_count")?,
            scatter: function("sort_scatter")?,
            sums: function("scan_sums")?,
            top: function("scan_top")?,
            apply: function("scan_apply")?,
            ranges: function("tile_ranges")?,
            cut: function("cut_tiles")?,
            total: gpu.array(1, WHAT)?,
        })
    }

    /// The sums of all counts before each, and of all of them.
    fn scan(&self, counts: &DeviceArray<u32>, n: usize) -> Result<DeviceArray<u64>> {
        let blocks = (n + 1).div_ceil(SORTED_TOGETHER);
        let (sums, prefix) = (self.gpu.array::<u64>(blocks, WHAT)?, self.gpu.array::<u64>(n + 1, WHAT)?);
        let (counts, n, at, total) = (counts.address(), n as u64, sums.address(), self.total.address());
        let grid = [blocks as u32, 1, 1];
        // SAFETY: see above.
        unsafe {
            launch!(self.gpu, &self.sums, grid, BLOCK, 0; counts, n, at);
            launch!(self.gpu, &self.top, [1; 3], BLOCK, 0; at, blocks as u32, total);
            launch!(self.gpu, &self.apply, grid, BLOCK, 0; counts, n, at, prefix.address());
        }
        Ok(prefix)
    }

    /// Sorts pairs by keys of at most `most`, stably; without values a pair's value is its place.
    fn sort(
        &self,
        mut keys: DeviceArray<u32>,
        mut values: Option<DeviceArray<u32>>,
        n: usize,
        most: usize,
    ) -> Result<(DeviceArray<u32>, DeviceArray<u32>)> {
        let blocks = n.div_ceil(SORTED_TOGETHER);
        let counts = self.gpu.array::<u32>(256 * blocks, WHAT)?;
        let grid = [blocks as u32, 1, 1];
        let mut shift = 0u32;
        loop {
            let (keys_out, values_out) = (self.gpu.array::<u32>(n, WHAT)?, self.gpu.array::<u32>(n, WHAT)?);
            let (from, count) = (keys.address(), n as u64);
            // SAFETY: see above.
            unsafe { launch!(self.gpu, &self.count, grid, BLOCK, 0; from, count, shift, counts.address()) };
            let at = self.scan(&counts, 256 * blocks)?;
            let from_values = values.as_ref().map_or(0, DeviceArray::address);
            let (to, to_values) = (keys_out.address(), values_out.address());
            // SAFETY: see above.
            unsafe {
                launch!(self.gpu, &self.scatter, grid, BLOCK, 0; from, from_values, count, shift, at.address(), to, to_values)
            };
            shift += 8;
            if shift >= 32 || most >> shift == 0 {
                return Ok((keys_out, values_out));
            }
            (keys, values) = (keys_out, Some(values_out));
        }
    }

    /// Cuts the lists of tiles, of `span` keys each, into segments of at most this length; a tile without samples has
    /// `least` segments. `planes` are those of a tile and of the window where segments of a tile that has several get
    /// planes.
    #[allow(clippy::too_many_arguments)]
    fn cut(
        &self,
        keys: &DeviceArray<u32>,
        n: usize,
        tiles: usize,
        span: usize,
        length: Length,
        least: usize,
        planes: Option<(usize, usize)>,
    ) -> Result<(Segments, Cuts)> {
        let gpu = self.gpu;
        let starts = gpu.array::<u64>(tiles + 1, WHAT)?;
        let pieces = gpu.array::<u32>(tiles, WHAT)?;
        let (tiles_arg, span_arg, length_arg) = (tiles as u32, span as u32, length.usual as u32);
        let (dense, brief) = (length.dense as u64, length.brief as u32);
        let (keys, starts_at) = (keys.address(), starts.address());
        // SAFETY: see above.
        unsafe {
            launch!(gpu, &self.ranges, blocks(tiles), BLOCK, 0;
                keys, n as u64, tiles_arg, span_arg, length_arg, dense, brief, least as u32, starts_at, pieces.address())
        };
        let firsts = self.scan(&pieces, tiles)?;
        let room = if least > 0 { tiles } else { tiles.min(n) } + n / length.brief;
        let segments = gpu.array::<u64>(4 * room, WHAT)?;
        let lightness = gpu.array::<u32>(room, WHAT)?;
        let segment_planes = gpu.array::<u32>(if planes.is_some() { room } else { 0 }, WHAT)?;
        let cut_tiles = gpu.array::<u64>(if planes.is_some() { 2 * tiles } else { 0 }, WHAT)?;
        let counts = gpu.zeros::<u64>(2, WHAT)?;
        let (depth, width) = planes.unwrap_or((0, 0));
        // SAFETY: see above.
        unsafe {
            launch!(gpu, &self.cut, blocks(room), BLOCK, 0;
                keys, starts_at, firsts.address(), tiles_arg, room as u64, span_arg, depth as u32, width as u32, length_arg,
                FEW_SEGMENTS, segments.address(), lightness.address(), segment_planes.address(), cut_tiles.address(),
                counts.address())
        };
        let slots_len = if planes.is_some() { room } else { 0 };
        let slots = self.scan(&segment_planes, slots_len)?;
        // The kernel tells eleven classes apart.
        let (_, schedule) = self.sort(lightness, None, room, 10)?;
        Ok((Segments { segments, schedule, firsts, tiles }, Cuts { slots, slots_len, tiles: cut_tiles, counts }))
    }
}

/// For the message when there is no memory.
const WHAT: &str = "the sorted samples";

/// Samples sorted for one grid and window.
pub struct Gridder<T> {
    /// Coefficients of the first half of the taps, lowest power first, without gaps: so many as the kernels were made
    /// for.
    polynomials: [T; COEFFICIENTS],
    spreading: Spreading,
    gathering: Gathering,
    spread_layout: Layout,
    gather_layout: Layout,
    samples: usize,
    cells: usize,
    sort_values: Function,
    spread: Function,
    sum_segments: Function,
    interpolate: Function,
    points: DeviceArray<T>,
    /// Of 16 bits, where the window starts along z.
    planes: DeviceArray<u32>,
    order: DeviceArray<u32>,
    list: DeviceArray<u32>,
    spread_segments: Segments,
    spread_count: usize,
    gather_segments: Segments,
    gather_count: usize,
    cuts: Cuts,
    /// Tiles of few segments and of many.
    few: usize,
    many: usize,
    scratch: Mutex<Scratch<T>>,
}

/// What is written on the way, by one call after the other.
struct Scratch<T> {
    /// Values in the order of the points.
    sorted: DeviceArray<Complex<T>>,
    /// Planes of segments, of 32 cells each, so many for each array.
    partial: DeviceArray<Complex<T>>,
    planes: usize,
}

impl<T: Real> Gridder<T> {
    /// Sorts samples; see [`crate::backend::Backend::gridder`].
    pub fn new(gpu: &Gpu, k: &[&[T]], grid: &[usize], taps: &[Vec<f64>], arrays: usize) -> Result<Self> {
        let planned = Self::plan(gpu, k, grid, taps, arrays);
        if planned.is_err() {
            // The copies that were queued read the caller's arrays.
            let _ = gpu.synchronize();
        }
        planned
    }

    fn plan(gpu: &Gpu, k: &[&[T]], grid: &[usize], taps: &[Vec<f64>], arrays: usize) -> Result<Self> {
        let (axes, n, width) = (k.len(), k[0].len(), taps[0].len());
        if n > u32::MAX as usize {
            bail!(SizeOverflow, "{n} samples are more than a plan takes ({}): split them", u32::MAX);
        }
        if grid.iter().any(|&cells| cells > u16::MAX as usize) {
            bail!(
                SizeOverflow,
                "a grid of {grid:?} cells has more along an axis than a GPU sorts samples for ({}): use a smaller image, \
                 or device cpu",
                u16::MAX
            );
        }
        let (size, bytes) = (three(grid), size_of::<T>());
        let properties = gpu.properties();
        let spreading = Spreading::new(axes, width, bytes, properties.capability);
        let gathering = Gathering::new(axes, width, bytes, size, n, properties.shared);
        let (spread_layout, gather_layout) = (spreading.layout(size), gathering.layout(size));
        let spread_span = spread_layout.tile[2] as usize + width - 1;
        let gather_span = 4 * gather_layout.tile[2] as usize;
        let (spread_tiles, gather_tiles) = (spread_layout.count(spread_span)?, gather_layout.count(gather_span)?);

        let degree = padded_degree(taps.len() - 1);
        let half = width.div_ceil(2);
        let mut polynomials = [T::ZERO; COEFFICIENTS];
        for (power, row) in taps.iter().rev().enumerate() {
            for (j, &coefficient) in row[..half].iter().enumerate() {
                polynomials[power * half + j] = T::of(coefficient);
            }
        }
        let kernels = spreading.kernels(degree);
        let function = |name| gpu.function(&kernels, name, 0);
        let (sample_tiles, settle, list_pairs) =
            (function("sample_tiles")?, function("settle")?, function("list_pairs")?);
        let (sort_values, sum_segments) = (function("sort_values")?, function("sum_segments")?);
        let spread = function(if spreading.tensor { "spread_tensor" } else { "spread" })?;
        let interpolate = gpu.function(&gathering.kernels(degree), "interpolate", gathering.shared())?;
        let sort = Sort::new(gpu)?;

        let uploaded: Vec<DeviceArray<T>> =
            k.iter().map(|k| gpu.copy_in(k, "the trajectory")).collect::<Result<_>>()?;
        let at: Vec<u64> = uploaded.iter().map(DeviceArray::address).collect();
        let (kx, ky, kz, count) = (at[0], at[axes - 2], at[axes - 1], n as u64);
        let keys = gpu.array::<u32>(n, WHAT)?;
        // SAFETY: the arrays are as long as the kernel wants them, its parameters are these.
        unsafe { launch!(gpu, &sample_tiles, blocks(n), BLOCK, 0; kx, ky, kz, count, gather_layout, keys.address()) };
        let (keys, order) = sort.sort(keys, None, n, gather_tiles * gather_span - 1)?;
        let gathered = Length { usual: GATHERED, dense: n, brief: GATHERED };
        let (gather_segments, _) = sort.cut(&keys, n, gather_tiles, gather_span, gathered, 0, None)?;
        drop(keys);

        let points = gpu.array::<T>(4 * n, WHAT)?;
        let planes = gpu.array::<u32>(n.div_ceil(2), WHAT)?;
        let touched = gpu.array::<u32>(n, WHAT)?;
        // SAFETY: as above.
        unsafe {
            launch!(gpu, &settle, blocks(n), BLOCK, 0;
                kx, ky, kz, count, order.address(), spread_layout, points.address(), planes.address(), touched.address())
        };
        let before = sort.scan(&touched, n)?;
        drop(touched);
        let mut total = [0u64];
        gpu.download(before.address() + 8 * count, &mut total)?;
        drop(uploaded);
        let pairs = total[0] as usize;

        let (keys, samples) = (gpu.array::<u32>(pairs, WHAT)?, gpu.array::<u32>(pairs, WHAT)?);
        // SAFETY: as above.
        unsafe {
            launch!(gpu, &list_pairs, blocks(n), BLOCK, 0;
                points.address(), planes.address(), count, before.address(), spread_layout, keys.address(), samples.address())
        };
        drop(before);
        let (keys, list) = sort.sort(keys, Some(samples), pairs, spread_tiles * spread_span - 1)?;
        let length = spreading.length(pairs);
        let depth = spread_layout.tile[2] as usize;
        let (spread_segments, cuts) =
            sort.cut(&keys, pairs, spread_tiles, spread_span, length, 1, Some((depth, width)))?;
        drop(keys);

        let numbers = gpu.array::<u64>(5, WHAT)?;
        let planes_at = cuts.slots.address() + 8 * cuts.slots_len as u64;
        gpu.copy(spread_segments.count_at(), numbers.address(), 8);
        gpu.copy(gather_segments.count_at(), numbers.address() + 8, 8);
        gpu.copy(planes_at, numbers.address() + 16, 8);
        gpu.copy(cuts.counts.address(), numbers.address() + 24, 16);
        let mut found = [0u64; 5];
        gpu.download(numbers.address(), &mut found)?;
        let [spread_count, gather_count, partial_planes, few, many] = found.map(|n| n as usize);
        let sums = few * depth.div_ceil(SUM_WARPS) + many * depth;
        if spread_count.max(gather_count).max(sums) > i32::MAX as usize {
            bail!(SizeOverflow, "{n} samples on a grid of {grid:?} cells are more than a GPU takes: split them");
        }
        let partial = checked_product(&[partial_planes, 32, arrays], WHAT)?;
        let scratch = Scratch {
            sorted: gpu.array(checked_product(&[n, arrays], WHAT)?, WHAT)?,
            partial: gpu.array(partial, WHAT)?,
            planes: partial_planes,
        };
        Ok(Gridder {
            polynomials,
            spreading,
            gathering,
            spread_layout,
            gather_layout,
            samples: n,
            cells: size.iter().product(),
            sort_values,
            spread,
            sum_segments,
            interpolate,
            points,
            planes,
            order,
            list,
            spread_segments,
            spread_count,
            gather_segments,
            gather_count,
            cuts,
            few,
            many,
            scratch: Mutex::new(scratch),
        })
    }

    /// Bytes held for `arrays` arrays of samples, about, what the sorting leaves for later arrays of its size included.
    pub fn bytes(properties: &Properties, samples: usize, grid: &[usize], width: usize, arrays: usize) -> usize {
        let (axes, real, size) = (grid.len(), size_of::<T>(), three(grid));
        let spreading = Spreading::new(axes, width, real, properties.capability);
        let gathering = Gathering::new(axes, width, real, size, samples, properties.shared);
        let (layout, n) = (spreading.layout(size), samples as f64);
        let tiles = |layout: Layout| layout.tiles.iter().map(|&n| f64::from(n)).product::<f64>();
        let (spread_tiles, gather_tiles) = (tiles(layout), tiles(gathering.layout(size)));
        let over = |a: usize| if size[a] == 1 { 0 } else { width - 1 };
        // Evenly spread samples touch so many tiles in all.
        let pairs = (0..3).map(|a| 1.0 + over(a) as f64 / f64::from(layout.tile[a])).product::<f64>() * n;
        let length = spreading.length(pairs as usize);
        // Keys and values, of a pass and of the one before, and its counts.
        let sorting = 16.75;
        let coordinates = (axes * real) as f64 * n;
        let points = (sorting + (4 * real + 2 + 8) as f64) * n;
        let lists = sorting * pairs;
        // Segments with their classes and order; tiles' ranges and first segments.
        let segments =
            |tiles: f64, pairs: f64, longest: usize| 60.0 * (tiles.min(pairs) + pairs / longest as f64) + 36.0 * tiles;
        let segments = segments(spread_tiles, pairs, length.brief) + segments(gather_tiles, n, GATHERED);
        // Planes of the segments of tiles that have several: at most one more a tile than its samples fill.
        let full = pairs / length.usual as f64;
        let shared_tiles = full.min(spread_tiles);
        let planes = (full + shared_tiles) * width as f64 + shared_tiles * f64::from(layout.tile[2]);
        let values = arrays as f64 * (2 * real) as f64 * (n + 32.0 * planes);
        (coordinates + points + lists + segments + values) as usize
    }

    fn arrays(&self, values: usize, cells: usize) -> u32 {
        let arrays = cells / self.cells;
        assert!(values == arrays * self.samples && cells == arrays * self.cells, "{values} values, {cells} cells");
        arrays as u32
    }

    /// See [`crate::backend::Backend::spread`]; addresses and complex elements of arrays of samples and as many grids.
    pub fn spread(&self, gpu: &Gpu, values: u64, samples: usize, grid: u64, cells: usize) {
        let arrays = self.arrays(samples, cells);
        // Held while the three are queued: no other call's come between them.
        let scratch = self.scratch.lock().unwrap_or_else(|e| e.into_inner());
        assert!(scratch.sorted.len() >= samples);
        let (sorted, partial, partial_planes) =
            (scratch.sorted.address(), scratch.partial.address(), scratch.planes as u64);
        let n = self.samples as u64;
        let [over_samples, ..] = blocks(self.samples);
        let warps = self.spreading.warps;
        let over_segments = [self.spread_count.div_ceil(warps) as u32, arrays, 1];
        let block = [32 * warps as u32, 1, 1];
        let (points, planes, list) = (self.points.address(), self.planes.address(), self.list.address());
        let (segments, schedule) = (self.spread_segments.segments.address(), self.spread_segments.schedule.address());
        let (slots, count) = (self.cuts.slots.address(), self.spread_count as u32);
        let (layout, few) = (self.spread_layout, self.few as u32);
        let depth = layout.tile[2] as usize;
        let sums = self.few * depth.div_ceil(SUM_WARPS) + self.many * depth;
        // SAFETY: the caller's arrays are on this GPU and as long as `arrays` says, ours as the plan made them;
        // parameters are those of the kernels.
        unsafe {
            launch!(gpu, &self.sort_values, [over_samples, arrays, 1], BLOCK, 0; values, self.order.address(), n, sorted);
            if self.spreading.tensor {
                launch!(gpu, &self.spread, over_segments, block, 0;
                    self.polynomials, layout, points, planes, n, list, segments, schedule, slots, count, sorted, grid, partial,
                    partial_planes);
            } else {
                launch!(gpu, &self.spread, over_segments, block, 0;
                    self.polynomials, layout, points, planes, n, list, segments, schedule, slots, count, arrays, sorted, grid,
                    partial, partial_planes);
            }
            if sums > 0 {
                launch!(gpu, &self.sum_segments, [sums as u32, arrays, 1], [32 * SUM_WARPS as u32, 1, 1], 0;
                    layout, segments, slots, self.cuts.tiles.address(), few, partial, partial_planes, grid);
            }
        }
    }

    /// See [`crate::backend::Backend::interpolate`], likewise.
    pub fn interpolate(&self, gpu: &Gpu, grid: u64, cells: usize, values: u64, samples: usize) {
        let arrays = self.arrays(samples, cells);
        let over_segments = [self.gather_count as u32, arrays, 1];
        let block = [32 * self.gathering.warps as u32, 1, 1];
        let (points, planes, order) = (self.points.address(), self.planes.address(), self.order.address());
        let (segments, schedule) = (self.gather_segments.segments.address(), self.gather_segments.schedule.address());
        let (n, layout) = (self.samples as u64, self.gather_layout);
        // SAFETY: as in `spread`.
        unsafe {
            launch!(gpu, &self.interpolate, over_segments, block, self.gathering.shared();
                self.polynomials, layout, points, planes, order, n, segments, schedule, grid, values)
        };
    }
}
