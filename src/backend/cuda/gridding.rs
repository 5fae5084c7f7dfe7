//! Gridding on a GPU: samples are sorted by the tiles of the grid that they touch, then spread and interpolated by the
//! kernels of kernels/gridding.cu, which describes the method.

use super::compile::Kernels;
use super::gpu::{launch, Gpu};
use super::kernel_check::CheckArguments;
use super::memory::DeviceArray;
use super::runtime::{Function, Properties};
use super::sample_sort::{self, sort_samples, Bins, Counts, GatherSegments, SampleLists, SortConfig, SortedPoints};
use super::sort::{self, blocks, Length, TileLayout, TileSegments, BLOCK, WHAT};
use crate::backend::{DevicePointer, DeviceSlice, DeviceSliceMut, Span, MAX_DEGREE, MAX_WIDTH};
use crate::base::error::{bail, checked_product, Result};
use crate::base::real::Real;
use num_complex::Complex;
use std::sync::{Arc, Mutex};

/// Maximum number of coefficients of a window's polynomials: half of the taps, all powers.
const COEFFICIENTS: usize = (MAX_DEGREE + 1) * MAX_WIDTH / 2;
/// Warps per block of `sum_segments`.
const SUM_WARPS: usize = 16;
/// Shared memory per block that every GPU has.
const STATIC_SHARED: usize = 48 << 10;

/// Maximum number of values that are spread without sorting them first. Up to this number, the time of one more kernel
/// is longer than that of reading values in any order.
const DIRECT_VALUES: usize = 1 << 18;

/// Returns the sizes of a grid as three axes.
fn three(grid: &[usize]) -> [usize; 3] {
    match *grid {
        [x, y, z] => [x, y, z],
        _ => [grid[0], 1, grid[1]],
    }
}

/// Spreading with windows of one width on one kind of GPU.
struct SpreadingConfig {
    axes: usize,
    width: usize,
    bytes: usize,
    tensor: bool,
    warps: usize,
    resident: usize,
}

impl SpreadingConfig {
    const PLANES: usize = 16;

    fn new(axes: usize, width: usize, bytes: usize, capability: (u32, u32)) -> Self {
        // Except on data-centre GPUs, tensor cores are not faster than other cores in single precision.
        let tensor = bytes == 4 && matches!(capability, (8, 0) | (9 | 10, _));
        Self::with(axes, width, bytes, tensor)
    }

    fn with(axes: usize, width: usize, bytes: usize, tensor: bool) -> Self {
        // Shared memory of a warp, as in the kernels: rows of taps, or one record per sample.
        let shared = if tensor {
            let rows = (width - 1) * (axes + 1) + if axes == 3 { 12 } else { 32 } + Self::PLANES + 2;
            rows * 48 * bytes
        } else {
            let record = if axes == 3 { 12 } else { 32 } + 2 + width;
            32 * (((record * bytes).div_ceil(16) | 1) * 16)
        };
        let warps = (STATIC_SHARED / shared).clamp(1, 4);
        // Number of warps whose registers should fit, next to the sums of wide windows.
        let all = match (tensor, bytes) {
            (true, _) => 16,
            (_, 4) if width <= 9 => 24,
            (_, 4) => 16,
            _ if width <= 8 => 12,
            _ => 8,
        };
        SpreadingConfig { axes, width, bytes, tensor, warps, resident: (all / warps).max(1) }
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

    /// Returns tiles of at most half the grid, so that no window touches one twice.
    fn layout(&self, size: [usize; 3]) -> TileLayout {
        let tile = if self.axes == 3 { [8, 4, Self::PLANES] } else { [32, 1, Self::PLANES] };
        TileLayout::new(size, [0, 1, 2].map(|a| tile[a].min(size[a].div_ceil(2))))
    }

    /// Returns the maximum number of samples of a segment, small enough to keep the whole GPU busy, but large compared
    /// with the planes that each segment of a cut tile writes. It does not depend on the number of arrays, so that
    /// batches of any size give the same bits. If tens of thousands of samples meet, all roundings of a sum may have
    /// the same sign. Therefore segments are shorter there in single precision, since their sums are added in double
    /// precision.
    fn length(&self, pairs: usize) -> Length {
        let least = if self.tensor && self.width >= 8 { 768 } else { 512 };
        let most = if self.tensor || self.bytes == 8 { 4096 } else { 1024 };
        // In 2D all warps that data-centre GPUs run at once. In 3D, where segments write more planes, the sums of more
        // segments would take longer than is saved.
        let warps = if self.axes == 2 { 128 * self.warps * self.resident } else { 1024 };
        let few = (pairs / warps).next_multiple_of(32).clamp(32, least);
        let usual = (pairs >> 15).clamp(few, most);
        let brief = match (self.bytes, self.tensor) {
            (4, true) => 256,
            // Samples are added one by one here, not in groups of sixteen.
            (4, false) => 128,
            _ => usual,
        };
        Length { usual, dense: 32 * least, brief: brief.min(usual) }
    }
}

/// Parameters of the interpolation kernel.
#[derive(Clone, Copy)]
struct InterpolationConfig {
    axes: usize,
    width: usize,
    bytes: usize,
    staged: bool,
    /// Cells of a tile along the second existing axis, and along the third.
    tile: [usize; 2],
    warps: usize,
}

impl InterpolationConfig {
    const TILE_X: usize = 16;

    /// Chooses the largest tile of which a GPU holds two, or one, in the shared memory of a block. If samples are too
    /// few to need most cells of a tile, they are read from the grid.
    fn new(axes: usize, width: usize, bytes: usize, size: [usize; 3], samples: usize, shared: usize) -> Self {
        let all: &[[usize; 2]] =
            if axes == 3 { &[[8, 8], [8, 4], [4, 4], [4, 2], [2, 2]] } else { &[[32, 1], [16, 1], [8, 1], [4, 1]] };
        let staged = |tile, warps| InterpolationConfig { axes, width, bytes, staged: true, tile, warps };
        let mut tried = [shared / 2, shared]
            .into_iter()
            .flat_map(|room| all.iter().flat_map(move |&tile| [8, 4].map(|warps| (room, staged(tile, warps)))));
        let read = (samples as f64) * (width as f64).powi(axes as i32);
        let fits = |(room, g): &(usize, InterpolationConfig)| {
            let layout = g.layout(size);
            let tiles: f64 = layout.tiles.iter().map(|&n| f64::from(n)).product();
            let extent = g.extent();
            g.shared() <= *room
                && (0..3).all(|a| size[a] == 1 || extent[a] <= 2 * size[a])
                && tiles * extent.iter().product::<usize>() as f64 <= read
        };
        match tried.find(fits) {
            Some((_, gathering)) => gathering,
            None => InterpolationConfig { staged: false, ..staged(all[0], 8) },
        }
    }

    /// Returns the cells of the tile and the overlap of its windows on each axis.
    fn extent(&self) -> [usize; 3] {
        let over = self.width - 1;
        match self.axes {
            3 => [Self::TILE_X + over, self.tile[0] + over, self.tile[1] + over],
            _ => [Self::TILE_X + over, 1, self.tile[0] + over],
        }
    }

    fn layout(&self, size: [usize; 3]) -> TileLayout {
        let [y, z] = self.tile;
        TileLayout::new(size, if self.axes == 3 { [Self::TILE_X, y, z] } else { [Self::TILE_X, 1, y] })
    }

    /// Returns how samples are divided into segments, one for each block.
    fn segments(&self, samples: usize) -> GatherSegments {
        // Few samples should still fill the GPU. A block has at least one per group of lanes, and more if it copies
        // a tile.
        let most = match (self.axes, self.staged) {
            (3, true) => (samples >> 9).clamp(32, 512),
            (3, false) => (samples >> 9).clamp(if self.width <= 8 { 16 } else { 8 }, 512),
            (_, true) => (samples >> 11).clamp(256, 1024),
            (_, false) => (samples >> 11).clamp(16, 1024),
        };
        GatherSegments { samples: most, by_tile: self.staged }
    }

    /// Returns whether values are interpolated in the order of the points, and sorted by a second kernel. In 2D this is
    /// faster than writing them in any order if they do not fit in a cache of this size, because memory is written in
    /// larger units. In 3D both ways take the same time.
    fn restores(&self, samples: usize, cache: usize) -> bool {
        self.axes == 2 && samples.saturating_mul(2 * self.bytes) > cache / 2
    }

    /// Returns the shared memory of a block, as in the kernel.
    fn shared(&self) -> usize {
        let [_, y, z] = self.extent();
        let row = if self.axes == 3 { Self::TILE_X + self.width } else { (Self::TILE_X + self.width - 1) | 1 };
        let staged = if self.staged { 2 * self.bytes * row * y * z } else { 0 };
        if self.axes == 2 {
            return staged;
        }
        let of_16 = 16 / self.bytes;
        let record = ((self.width.next_multiple_of(of_16) + 2 * self.width).div_ceil(of_16) | 1) * of_16;
        let samples = if self.width <= 8 { 32 } else { 16 };
        staged + self.warps * samples * record * self.bytes
    }

    fn kernels(&self, degree: usize) -> Kernels {
        // Processes one sample per group at once if two need too many registers.
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

/// Shared memory per block of the GPUs for which kernels are compiled in advance.
const DATA_CENTRE_SHARED: usize = 227 << 10;

const GRIDDING: &str =
    concat!(include_str!("../../../kernels/segments.cuh"), include_str!("../../../kernels/gridding.cu"));

/// Returns the polynomial degree of the kernels: even, to limit their number.
fn padded_degree(degree: usize) -> usize {
    degree.next_multiple_of(2).max(4)
}

/// Returns the usual specialisations: windows for tolerances between 1e-2 and 1e-6.
pub fn usual_kernels() -> Vec<Kernels> {
    let mut all = vec![sort::kernels()];
    let usual = [(2, 4), (2, 8), (3, 4), (3, 8)];
    all.extend(usual.map(|(axes, bytes)| SortConfig::new(axes, bytes, 0, DATA_CENTRE_SHARED).kernels()));
    for axes in [2, 3] {
        for width in 3..=9 {
            for degree in if width < 5 { [4, 6] } else { [6, 8] } {
                all.extend([true, false].map(|tensor| SpreadingConfig::with(axes, width, 4, tensor).kernels(degree)));
                let tile = if axes == 3 { [8, 8] } else { [32, 1] };
                all.push(InterpolationConfig { axes, width, bytes: 4, staged: true, tile, warps: 8 }.kernels(degree));
            }
        }
    }
    all
}

/// Returns the kernels that [`Gridder::new`] uses.
pub fn plan_kernels<T: Real>(
    properties: &Properties,
    grid: &[usize],
    taps: &[Vec<f64>],
    samples: usize,
) -> Vec<Kernels> {
    let (axes, width, bytes) = (grid.len(), taps[0].len(), size_of::<T>());
    let degree = padded_degree(taps.len() - 1);
    let spreading = SpreadingConfig::new(axes, width, bytes, properties.capability);
    let gathering = InterpolationConfig::new(axes, width, bytes, three(grid), samples, properties.shared);
    let sorting = SortConfig::new(axes, bytes, samples, properties.shared);
    vec![sort::kernels(), sorting.kernels(), spreading.kernels(degree), gathering.kernels(degree)]
}

/// Returns all kernels for windows of this width, in real numbers of `bytes` bytes. `degree` is that of their taps.
pub fn kernels_of_width(width: usize, degree: usize, bytes: usize) -> Vec<Kernels> {
    let mut all = Vec::new();
    for axes in [2, 3] {
        let tensor: &[bool] = if bytes == 4 { &[true, false] } else { &[false] };
        let spreading = tensor.iter().map(|&tensor| SpreadingConfig::with(axes, width, bytes, tensor));
        all.extend(spreading.map(|spreading| spreading.kernels(padded_degree(degree))));
        let tile = if axes == 3 { [4, 4] } else { [16, 1] };
        let gathering = [true, false].map(|staged| InterpolationConfig { axes, width, bytes, staged, tile, warps: 4 });
        all.extend(gathering.map(|gathering| gathering.kernels(padded_degree(degree))));
    }
    all
}

/// Samples sorted for one grid and window.
pub struct Gridder<T> {
    polynomials: Polynomials<T>,
    spreading: SpreadingConfig,
    gathering: InterpolationConfig,
    spread_layout: TileLayout,
    gather_layout: TileLayout,
    samples: usize,
    cells: usize,
    functions: Functions,
    bins: Arc<Bins>,
    points: SortedPoints<T>,
    /// The inverse permutation, if interpolated values are sorted by a second kernel.
    places: Option<DeviceArray<u32>>,
    list: DeviceArray<u32>,
    spread_segments: TileSegments,
    gather_segments: TileSegments,
    slots: DeviceArray<u64>,
    cut_tiles: DeviceArray<u64>,
    counts: Counts,
    scratch: Mutex<GriddingScratch<T>>,
}

/// Coefficients of the first half of a window's taps, lowest power first, without gaps, for the degree of the kernels.
type Polynomials<T> = [T; COEFFICIENTS];

fn polynomials<T: Real>(taps: &[Vec<f64>]) -> Polynomials<T> {
    let half = taps[0].len().div_ceil(2);
    let mut polynomials = [T::ZERO; COEFFICIENTS];
    for (power, row) in taps.iter().rev().enumerate() {
        for (j, &coefficient) in row[..half].iter().enumerate() {
            polynomials[power * half + j] = T::of(coefficient);
        }
    }
    polynomials
}

/// The kernels of kernels/gridding.cu.
struct Functions {
    sort_values: Function,
    restore_values: Function,
    invert_order: Function,
    spread: Function,
    sum_segments: Function,
    interpolate: Function,
}

impl Functions {
    fn new(gpu: &Gpu, spreading: &SpreadingConfig, gathering: &InterpolationConfig, degree: usize) -> Result<Self> {
        let kernels = spreading.kernels(degree);
        let function = |name| gpu.function(&kernels, name, 0);
        Ok(Functions {
            sort_values: function("sort_values")?,
            restore_values: function("restore_values")?,
            invert_order: function("invert_order")?,
            spread: function(if spreading.tensor { "spread_tensor" } else { "spread" })?,
            sum_segments: function("sum_segments")?,
            interpolate: gpu.function(&gathering.kernels(degree), "interpolate", gathering.shared())?,
        })
    }
}

/// Returns the number of blocks of `sum_segments` for tiles of `depth` planes.
fn sum_blocks(counts: &Counts, depth: usize) -> usize {
    counts.few * depth.div_ceil(SUM_WARPS) + counts.many * depth
}

/// Buffers of a call, used by one call after the other.
struct GriddingScratch<T> {
    /// Values in the order of the points.
    sorted: DeviceArray<Complex<T>>,
    /// Planes of segments, 32 cells each, the same number for each array.
    partial: DeviceArray<Complex<T>>,
}

impl<T: Real> Gridder<T> {
    /// Sorts samples; see [`crate::backend::Backend::gridder`]. Tables of a previous gridder for the same grid and taps
    /// are shared.
    pub fn new(
        gpu: &Gpu,
        k: &[DeviceSlice<'_, T>],
        grid: &[usize],
        taps: &[Vec<f64>],
        arrays: usize,
        previous: Option<&Self>,
    ) -> Result<Self> {
        let (axes, n, width) = (k.len(), k[0].len(), taps[0].len());
        check_sizes(n, grid)?;
        let (size, properties) = (three(grid), gpu.properties());
        let spreading = SpreadingConfig::new(axes, width, size_of::<T>(), properties.capability);
        let gathering = InterpolationConfig::new(axes, width, size_of::<T>(), size, n, properties.shared);
        let (spread_layout, gather_layout) = (spreading.layout(size), gathering.layout(size));
        let functions = Functions::new(gpu, &spreading, &gathering, padded_degree(taps.len() - 1))?;
        let bins = match previous.filter(|p| (p.spread_layout, p.gather_layout) == (spread_layout, gather_layout)) {
            Some(previous) => previous.bins.clone(),
            None => Bins::new(gpu, axes, width, spread_layout, gather_layout)?,
        };
        // The sort may know only a bound, much larger than the number of pairs.
        let expected = expected_pairs(&spread_layout, width, n) as usize;
        let length = |pairs: usize| spreading.length(pairs.min(expected));
        let lists = sort_samples(gpu, k, &bins, length, gathering.segments(n))?;
        let SampleLists { points, list, spread_segments, gather_segments, slots, cut_tiles, counts } = lists;
        let places = gathering.restores(n, properties.cache).then(|| gpu.array::<u32>(n, WHAT)).transpose()?;
        if let Some(places) = &places {
            let (order, count) = (points.order.pointer(), n as u64);
            // SAFETY: the kernel's parameters are these; both arrays have n elements, and the order is a permutation.
            unsafe { launch!(gpu, &functions.invert_order, blocks(n), BLOCK, 0; order, count, places.pointer()) };
        }
        let sums = sum_blocks(&counts, spread_layout.tile[2] as usize);
        if counts.spread_segments.max(counts.gather_segments).max(sums) > i32::MAX as usize {
            bail!(SizeOverflow, "{n} samples on a grid of {grid:?} cells exceed the limit of a GPU: split them");
        }
        let scratch = GriddingScratch {
            sorted: gpu.array(checked_product(&[n, arrays], WHAT)?, WHAT)?,
            partial: gpu.array(checked_product(&[counts.planes, 32, arrays], WHAT)?, WHAT)?,
        };
        Ok(Gridder {
            polynomials: polynomials(taps),
            spreading,
            gathering,
            spread_layout,
            gather_layout,
            samples: n,
            cells: size.iter().product(),
            functions,
            bins,
            points,
            places,
            list,
            spread_segments,
            gather_segments,
            slots,
            cut_tiles,
            counts,
            scratch: Mutex::new(scratch),
        })
    }

    /// Returns the approximate bytes for `arrays` arrays of samples, including memory of the sort that is kept for
    /// later arrays.
    pub fn bytes(properties: &Properties, samples: usize, grid: &[usize], width: usize, arrays: usize) -> usize {
        let (axes, real, size) = (grid.len(), size_of::<T>(), three(grid));
        let spreading = SpreadingConfig::new(axes, width, real, properties.capability);
        let gathering = InterpolationConfig::new(axes, width, real, size, samples, properties.shared);
        let (layout, n) = (spreading.layout(size), samples as f64);
        let tiles = |layout: TileLayout| layout.tiles.iter().map(|&n| f64::from(n)).product::<f64>();
        let spread_tiles = tiles(layout);
        let pairs = expected_pairs(&layout, width, samples);
        let length = spreading.length(pairs as usize);
        let taps = [width, if size[1] == 1 { 1 } else { width }, width];
        let longest = |most: usize| spreading.length(most.min(pairs as usize)).brief;
        let gather_layout = gathering.layout(size);
        let sorted = sample_sort::bytes(
            samples,
            real,
            [&layout, &gather_layout],
            taps,
            pairs,
            longest,
            gathering.segments(samples),
        );
        // Planes of the segments of tiles with several segments: at most one more per tile than its samples fill.
        let full = pairs / length.usual as f64;
        let shared_tiles = full.min(spread_tiles);
        let planes = (full + shared_tiles) * width as f64 + shared_tiles * f64::from(layout.tile[2]);
        let values = arrays as f64 * (2 * real) as f64 * (n + 32.0 * planes);
        let places = if gathering.restores(samples, properties.cache) { 4.0 * n } else { 0.0 };
        (sorted + places + values) as usize
    }

    fn arrays(&self, values: usize, cells: usize) -> u32 {
        let arrays = cells / self.cells;
        assert!(values == arrays * self.samples && cells == arrays * self.cells, "{values} values, {cells} cells");
        arrays as u32
    }

    /// Implements [`crate::backend::Backend::spread`]. The check is of the values.
    pub fn spread(
        &self,
        gpu: &Gpu,
        values: DeviceSlice<'_, Complex<T>>,
        grid: DeviceSliceMut<'_, Complex<T>>,
        check: CheckArguments<T>,
    ) {
        let arrays = self.arrays(values.len(), grid.len());
        // Held while the three kernels are queued, so that no kernels of other calls are queued between them.
        let scratch = self.scratch.lock().unwrap_or_else(|e| e.into_inner());
        assert!(scratch.sorted.len() >= values.len());
        let is_direct = values.len() <= DIRECT_VALUES;
        let (values, grid) = (values.pointer(), grid.pointer());
        let (sorted, partial, partial_planes) =
            (scratch.sorted.pointer(), scratch.partial.pointer(), self.counts.planes as u64);
        let (n, warps) = (self.samples as u64, self.spreading.warps);
        let [over_samples, ..] = blocks(self.samples);
        let over_segments = [self.counts.spread_segments.div_ceil(warps) as u32, arrays, 1];
        let block = [32 * warps as u32, 1, 1];
        let (points, planes, list) = (self.points.records.pointer(), self.points.planes.pointer(), self.list.pointer());
        let (segments, schedule) = (self.spread_segments.segments.pointer(), self.spread_segments.schedule.pointer());
        let (slots, count) = (self.slots.pointer(), self.counts.spread_segments as u32);
        let (layout, few) = (self.spread_layout, self.counts.few as u32);
        let sums = sum_blocks(&self.counts, layout.tile[2] as usize);
        // SAFETY: the kernels' parameters are these. There are `arrays` arrays of values and of cells, and the plan has
        // allocated the buffers for this number.
        unsafe {
            let Functions { sort_values, spread, sum_segments, .. } = &self.functions;
            let order = self.points.order.pointer();
            let (values, order, check) = if is_direct {
                (values, order, check)
            } else {
                launch!(gpu, sort_values, [over_samples, arrays, 1], BLOCK, 0; values, order, n, sorted, check);
                (sorted, DevicePointer::NULL, CheckArguments::NONE)
            };
            if self.spreading.tensor {
                launch!(gpu, spread, over_segments, block, 0;
                    self.polynomials, layout, points, planes, n, list, order, segments, schedule, slots, count, values,
                    grid, partial, partial_planes, check);
            } else {
                launch!(gpu, spread, over_segments, block, 0;
                    self.polynomials, layout, points, planes, n, list, order, segments, schedule, slots, count, arrays,
                    values, grid, partial, partial_planes, check);
            }
            if sums > 0 {
                launch!(gpu, sum_segments, [sums as u32, arrays, 1], [32 * SUM_WARPS as u32, 1, 1], 0;
                    layout, segments, slots, self.cut_tiles.pointer(), few, partial, partial_planes, grid);
            }
        }
    }

    /// Implements [`crate::backend::Backend::interpolate`]. If the check has failed, the values are not written.
    pub fn interpolate(
        &self,
        gpu: &Gpu,
        grid: DeviceSlice<'_, Complex<T>>,
        values: DeviceSliceMut<'_, Complex<T>>,
        check: CheckArguments<T>,
    ) {
        let arrays = self.arrays(values.len(), grid.len());
        // Held while both kernels are queued, see `spread`.
        let scratch = self.scratch.lock().unwrap_or_else(|e| e.into_inner());
        assert!(scratch.sorted.len() >= values.len());
        let (grid, values, sorted) = (grid.pointer(), values.pointer(), scratch.sorted.pointer());
        let over_segments = [self.counts.gather_segments as u32, arrays, 1];
        let block = [32 * self.gathering.warps as u32, 1, 1];
        let (points, planes) = (self.points.records.pointer(), self.points.planes.pointer());
        let (segments, schedule) = (self.gather_segments.segments.pointer(), self.gather_segments.schedule.pointer());
        let (n, layout) = (self.samples as u64, self.gather_layout);
        let (order, to) = match &self.places {
            Some(_) => (DevicePointer::NULL, sorted),
            None => (self.points.order.pointer(), values),
        };
        // SAFETY: the kernels' parameters are these; there are `arrays` arrays of values and of cells, and the plan has
        // allocated the buffer for this number.
        unsafe {
            let Functions { restore_values, interpolate, .. } = &self.functions;
            launch!(gpu, interpolate, over_segments, block, self.gathering.shared();
                self.polynomials, layout, points, planes, order, n, segments, schedule, grid, to, check);
            if let Some(places) = &self.places {
                let [over_samples, ..] = blocks(self.samples);
                launch!(gpu, restore_values, [over_samples, arrays, 1], BLOCK, 0;
                    sorted, places.pointer(), n, values, check);
            }
        }
    }
}

/// Returns the number of tiles that the windows of evenly distributed samples touch in total.
fn expected_pairs(layout: &TileLayout, width: usize, samples: usize) -> f64 {
    let over = |a: usize| if layout.size[a] == 1 { 0 } else { width - 1 };
    (0..3).map(|a| 1.0 + over(a) as f64 / f64::from(layout.tile[a])).product::<f64>() * samples as f64
}

/// Returns an error for sizes beyond the kernels' integers.
fn check_sizes(samples: usize, grid: &[usize]) -> Result<()> {
    if samples > u32::MAX as usize {
        bail!(SizeOverflow, "{samples} samples exceed the limit of a plan ({}): split them", u32::MAX);
    }
    if grid.iter().any(|&cells| cells > u16::MAX as usize) {
        bail!(
            SizeOverflow,
            "a grid of {grid:?} cells exceeds the limit of a GPU along an axis ({}): use a smaller image, \
             or device cpu",
            u16::MAX
        );
    }
    Ok(())
}
