//! Gridding on a GPU: samples are sorted by the tiles of the grid that they touch, then spread and interpolated by the
//! kernels of kernels/spreading.cu and kernels/interpolation.cu, which describe the methods.

use super::bins::Bins;
use super::gpu::{launch, Gpu};
use super::graph::Graphs;
use super::gridding_config::{padded_degree, three, InterpolationConfig, SpreadingConfig};
use super::kernel_check::CheckArguments;
use super::memory::DeviceArray;
use super::runtime::{Function, Properties};
use super::sample_sort::{self, sort_samples, Counts, SampleLists, SortedPoints};
use super::sample_sort_config::SortConfig;
use super::sort::{blocks, TileLayout, TileSegments, BLOCK, WHAT};
use crate::backend::{DevicePointer, DeviceSlice, DeviceSliceMut, Span, MAX_DEGREE, MAX_WIDTH};
use crate::base::error::{bail, checked_product, Result};
use crate::base::real::Real;
use num_complex::Complex;
use std::sync::{Arc, Mutex};

/// Maximum number of coefficients of a window's polynomials: half of the taps, all powers.
const COEFFICIENTS: usize = (MAX_DEGREE + 1) * MAX_WIDTH / 2;
/// Warps per block of `sum_segments`.
const SUM_WARPS: usize = 16;
/// Number of warps that keep a data-centre GPU busy with sums of planes.
const ENOUGH_WARPS: usize = 16384;

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
    /// Samples that interpolation reads instead of the points, if neighbours in the input are neighbours in k-space.
    tile_samples: Option<DeviceArray<T>>,
    /// The inverse of the points' order, if interpolated values are sorted by a second kernel.
    places: Option<DeviceArray<u32>>,
    list: DeviceArray<u32>,
    /// First segment of each tile of spreading.
    firsts: DeviceArray<u64>,
    spread_segments: TileSegments,
    gather_segments: TileSegments,
    slots: DeviceArray<u64>,
    cut_tiles: DeviceArray<u64>,
    counts: Counts,
    scratch: Mutex<GriddingScratch<T>>,
    /// Transforms of these samples.
    graphs: Graphs,
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

/// The kernels of kernels/spreading.cu and kernels/interpolation.cu.
struct Functions {
    restore_values: Function,
    invert_order: Function,
    count_near: Function,
    spread: Function,
    sum_segments: Function,
    /// For tiles of a few segments.
    spread_tiles: Option<(Function, SpreadingConfig)>,
    interpolate: Function,
    /// For arrays that share the taps of their samples.
    interpolate_several: Option<Function>,
}

impl Functions {
    fn new(
        gpu: &Gpu,
        spreading: &SpreadingConfig,
        of_tiles: Option<SpreadingConfig>,
        gathering: &InterpolationConfig,
        degree: usize,
    ) -> Result<Self> {
        let (kernels, gathering_kernels) = (spreading.kernels(degree), gathering.kernels(degree));
        let spread_tiles = |of_tiles: SpreadingConfig| -> Result<_> {
            let shared = of_tiles.warps * of_tiles.shared_of_warp();
            Ok((gpu.function(&of_tiles.kernels(degree), "spread_tiles", shared)?, of_tiles))
        };
        let of_spreading = |name| gpu.function(&kernels, name, 0);
        let of_gathering = |name, shared| gpu.function(&gathering_kernels, name, shared);
        let together = gathering.together(gpu.properties().shared);
        let interpolate_several = || of_gathering("interpolate_several", together * gathering.shared());
        Ok(Functions {
            restore_values: of_gathering("restore_values", 0)?,
            invert_order: of_gathering("invert_order", 0)?,
            count_near: of_gathering("count_near", 0)?,
            spread: of_spreading("spread")?,
            sum_segments: of_spreading("sum_segments")?,
            spread_tiles: of_tiles.map(spread_tiles).transpose()?,
            interpolate: of_gathering("interpolate", gathering.shared())?,
            interpolate_several: (together > 1).then(interpolate_several).transpose()?,
        })
    }

    /// Returns the inverse of the points' order, unless the values of most neighbours are already near each other.
    fn places(
        &self,
        gpu: &Gpu,
        order: &DeviceArray<u32>,
        gathering: &InterpolationConfig,
    ) -> Result<Option<DeviceArray<u32>>> {
        let (places, near, n) = (gpu.array::<u32>(order.len(), WHAT)?, gpu.zeros::<u64>(1, WHAT)?, order.len() as u64);
        // SAFETY: the kernels' parameters are these; both arrays have n elements, and the order is a permutation.
        unsafe {
            launch!(gpu, &self.invert_order, blocks(order.len()), BLOCK, 0; order.pointer(), n, places.pointer());
            launch!(gpu, &self.count_near, blocks(order.len()), BLOCK, 0; places.pointer(), n, near.pointer());
        }
        let mut count = [0];
        gpu.download(near.view(), &mut count)?;
        Ok((!gathering.is_local(count[0], order.len(), gpu.properties().cache)).then_some(places))
    }
}

/// Source and destination of spreading, in the form of the kernels.
#[derive(Clone, Copy)]
#[repr(C)]
struct Spreading<T> {
    layout: TileLayout,
    points: DevicePointer<T>,
    planes: DevicePointer<u32>,
    list: DevicePointer<u32>,
    order: DevicePointer<u32>,
    segments: DevicePointer<u64>,
    schedule: DevicePointer<u32>,
    slots: DevicePointer<u64>,
    values: DevicePointer<Complex<T>>,
    cells: DevicePointer<Complex<T>>,
    partial: DevicePointer<Complex<T>>,
    n: u64,
    partial_planes: u64,
    count: u32,
    check: CheckArguments<T>,
}

/// Source and destination of interpolation, in the form of the kernels.
#[derive(Clone, Copy)]
#[repr(C)]
struct Interpolation<T> {
    layout: TileLayout,
    points: DevicePointer<T>,
    planes: DevicePointer<u32>,
    order: DevicePointer<u32>,
    tile_samples: DevicePointer<T>,
    segments: DevicePointer<u64>,
    schedule: DevicePointer<u32>,
    cells: DevicePointer<Complex<T>>,
    values: DevicePointer<Complex<T>>,
    n: u64,
    arrays: u32,
    check: CheckArguments<T>,
}

/// Returns the number of blocks of `sum_segments` for tiles of `depth` planes, and the planes that each warp sums in a
/// tile of few segments. Most of them are planes of one segment, with nothing to sum.
fn sum_blocks(counts: &Counts, depth: usize) -> (usize, usize) {
    let each = (counts.few * depth / ENOUGH_WARPS).clamp(1, depth);
    ((counts.few * depth.div_ceil(each)).div_ceil(SUM_WARPS) + counts.many * depth, each)
}

/// Buffers of a call, used by one call after the other.
struct GriddingScratch<T> {
    /// Interpolated values in the order of the points, if a second kernel sorts them.
    sorted: Option<DeviceArray<Complex<T>>>,
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
        meanwhile: impl FnOnce() -> Result<()>,
    ) -> Result<Self> {
        let (axes, n, width) = (k.len(), k[0].len(), taps[0].len());
        check_sizes(n, grid)?;
        let (size, properties) = (three(grid), gpu.properties());
        let spreading = SpreadingConfig::new(axes, width, size_of::<T>(), size, n, properties.capability);
        let gathering = InterpolationConfig::new(axes, width, size_of::<T>(), size, n, properties.shared);
        let (spread_layout, gather_layout) = (spreading.layout(size), gathering.layout(size));
        let of_tiles = spreading.for_few_samples(properties, &spread_layout, n);
        let functions = Functions::new(gpu, &spreading, of_tiles, &gathering, padded_degree(taps.len() - 1))?;
        let bins = match previous.filter(|p| (p.spread_layout, p.gather_layout) == (spread_layout, gather_layout)) {
            Some(previous) => previous.bins.clone(),
            None => Bins::new(gpu, axes, width, spread_layout, gather_layout)?,
        };
        // The sort may know only a bound, much larger than the number of pairs.
        let expected = spread_layout.expected_pairs(width, n) as usize;
        let length = |pairs: usize| spreading.length(pairs.min(expected));
        let follows_input = |runs| gathering.follows_input(n, runs, properties.cache);
        let may_restore = gathering.restores(n, arrays, properties.cache);
        // The GPU sorts while the host allocates, which may take several milliseconds.
        let allocate = || {
            meanwhile()?;
            let sorted = || gpu.array(checked_product(&[n, arrays], WHAT)?, WHAT);
            may_restore.then(sorted).transpose()
        };
        let (lists, sorted) = sort_samples(gpu, k, &bins, length, gathering.segments(n), follows_input, allocate)?;
        let SampleLists { points, tile_samples, list, firsts, slots, cut_tiles, counts, .. } = lists;
        let (spread_segments, gather_segments) = (lists.spread_segments, lists.gather_segments);
        let (sums, _) = sum_blocks(&counts, spread_layout.tile[2] as usize);
        if counts.spread_segments.max(counts.gather_segments).max(sums) > i32::MAX as usize {
            bail!(SizeOverflow, "{n} samples on a grid of {grid:?} cells exceed the limit of a GPU: split them");
        }
        let partial = gpu.array(checked_product(&[counts.planes, 32, arrays], WHAT)?, WHAT)?;
        // Last, because it waits for the GPU, which sorts while the host allocates.
        let restores = tile_samples.is_none() && may_restore;
        let places = if restores { functions.places(gpu, &points.order, &gathering)? } else { None };
        let scratch = GriddingScratch { sorted: sorted.filter(|_| places.is_some()), partial };
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
            tile_samples,
            places,
            list,
            firsts,
            spread_segments,
            gather_segments,
            slots,
            cut_tiles,
            counts,
            scratch: Mutex::new(scratch),
            graphs: Graphs::default(),
        })
    }

    /// Returns the approximate bytes for `arrays` arrays of samples, including memory of the sort that is kept for
    /// later arrays.
    pub fn bytes(properties: &Properties, samples: usize, grid: &[usize], width: usize, arrays: usize) -> usize {
        let (axes, real, size) = (grid.len(), size_of::<T>(), three(grid));
        let spreading = SpreadingConfig::new(axes, width, real, size, samples, properties.capability);
        let gathering = InterpolationConfig::new(axes, width, real, size, samples, properties.shared);
        let (layout, n) = (spreading.layout(size), samples as f64);
        let pairs = layout.expected_pairs(width, samples);
        let length = spreading.length(pairs as usize);
        let taps = [width, if size[1] == 1 { 1 } else { width }, width];
        let longest = |most: usize| spreading.length(most.min(pairs as usize)).brief;
        let gather_layout = gathering.layout(size);
        let sorted = sample_sort::bytes(
            samples,
            &SortConfig::new(axes, real, width, size, samples, properties.shared),
            [&layout, &gather_layout],
            taps,
            pairs,
            longest,
            gathering.segments(samples),
        );
        // All planes of the segments of cut tiles. They share only some, but the densest tiles have more segments than
        // their samples fill.
        let full = pairs / length.usual as f64;
        let cut_tiles = full.min(layout.estimated_tiles());
        let planes = (full + cut_tiles) * width as f64 + cut_tiles * f64::from(layout.tile[2]);
        let restores = gathering.restores(samples, arrays, properties.cache);
        let values = arrays as f64 * (2 * real) as f64 * (32.0 * planes + if restores { n } else { 0.0 });
        let order = if gathering.may_follow_input(samples, properties.cache) {
            16.0 * n
        } else if restores {
            4.0 * n
        } else {
            0.0
        };
        (sorted + order + values) as usize
    }

    /// Returns the graphs of transforms with this gridder.
    pub fn graphs(&self) -> &Graphs {
        &self.graphs
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
        // Held while both kernels are queued, so that no kernels of other calls are queued between them.
        let scratch = self.scratch.lock().unwrap_or_else(|e| e.into_inner());
        let spreading = Spreading {
            layout: self.spread_layout,
            points: self.points.records.pointer(),
            planes: self.points.planes.pointer(),
            list: self.list.pointer(),
            order: self.points.order.pointer(),
            segments: self.spread_segments.segments.pointer(),
            schedule: self.spread_segments.schedule.pointer(),
            slots: self.slots.pointer(),
            values: values.pointer(),
            cells: grid.pointer(),
            partial: scratch.partial.pointer(),
            n: self.samples as u64,
            partial_planes: self.counts.planes as u64,
            count: self.counts.spread_segments as u32,
            check,
        };
        self.queue_spreading(gpu, spreading, arrays);
    }

    /// Queues the kernels of [`Self::spread`].
    fn queue_spreading(&self, gpu: &Gpu, spreading: Spreading<T>, arrays: u32) {
        let Functions { spread, sum_segments, spread_tiles, .. } = &self.functions;
        let (layout, counts) = (self.spread_layout, &self.counts);
        let (tiles, warps) = (self.firsts.len() - 1, counts.most_segments);
        let has_room = |of_tiles: &SpreadingConfig| of_tiles.has_room(gpu.properties(), warps, tiles * arrays as usize);
        if let Some((spread_tiles, of_tiles)) =
            spread_tiles.as_ref().filter(|(_, config)| warps > 1 && has_room(config))
        {
            let (grid, block) = ([tiles as u32, arrays, 1], [32 * warps as u32, 1, 1]);
            // SAFETY: the kernel's parameters are these; there are as many blocks as tiles, and the segments, values
            // and cells of all tiles exist.
            unsafe {
                launch!(gpu, spread_tiles, grid, block, warps * of_tiles.shared_of_warp();
                    self.polynomials, spreading, self.firsts.pointer())
            };
            return;
        }
        let warps = self.spreading.warps;
        let over_segments = [counts.spread_segments.div_ceil(warps) as u32, arrays, 1];
        let (sums, each) = sum_blocks(counts, layout.tile[2] as usize);
        let Spreading { segments, slots, partial, partial_planes, cells, .. } = spreading;
        // SAFETY: the kernels' parameters are these. There are `arrays` arrays of values and of cells, and the plan has
        // allocated the buffers for this number.
        unsafe {
            launch!(gpu, spread, over_segments, [32 * warps as u32, 1, 1], 0; self.polynomials, spreading);
            if sums > 0 {
                let (cut, few, each) = (self.cut_tiles.pointer(), counts.few as u32, each as u32);
                launch!(gpu, sum_segments, [sums as u32, arrays, 1], [32 * SUM_WARPS as u32, 1, 1], 0;
                    layout, segments, slots, cut, few, each, partial, partial_planes, cells);
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
        let properties = gpu.properties();
        let restores = self.gathering.restores(self.samples, arrays as usize, properties.cache);
        let restored = self.places.as_ref().zip(scratch.sorted.as_ref()).filter(|_| restores);
        assert!(restored.is_none_or(|(_, sorted)| sorted.len() >= values.len()));
        let (values, n) = (values.pointer(), self.samples as u64);
        let (order, to) = match restored {
            Some((_, sorted)) => (DevicePointer::NULL, sorted.pointer()),
            None => (self.points.order.pointer(), values),
        };
        let interpolation = Interpolation {
            layout: self.gather_layout,
            points: self.points.records.pointer(),
            planes: self.points.planes.pointer(),
            order,
            tile_samples: self.tile_samples.as_ref().map_or(DevicePointer::NULL, DeviceArray::pointer),
            segments: self.gather_segments.segments.pointer(),
            schedule: self.gather_segments.schedule.pointer(),
            cells: grid.pointer(),
            values: to,
            n,
            arrays,
            check,
        };
        // With fewer values, more blocks of one array each are faster.
        let are_many = restored.is_some() || self.tile_samples.is_some();
        let several = self.functions.interpolate_several.as_ref().filter(|_| are_many && arrays > 1);
        let together =
            if several.is_some() { arrays.min(self.gathering.together(properties.shared) as u32) } else { 1 };
        let over_segments = [self.counts.gather_segments as u32, arrays.div_ceil(together), 1];
        let (block, shared) = ([32 * self.gathering.warps as u32, 1, 1], together as usize * self.gathering.shared());
        // SAFETY: the kernels' parameters are these; there are `arrays` arrays of values and of cells, and the plan has
        // allocated the buffer for this number.
        unsafe {
            let Functions { restore_values, interpolate, .. } = &self.functions;
            match several {
                Some(several) => {
                    launch!(gpu, several, over_segments, block, shared; self.polynomials, interpolation, together)
                }
                None => launch!(gpu, interpolate, over_segments, block, shared; self.polynomials, interpolation),
            }
            if let Some((places, sorted)) = restored {
                let [over_samples, ..] = blocks(self.samples);
                launch!(gpu, restore_values, [over_samples, arrays, 1], BLOCK, 0;
                    sorted.pointer(), places.pointer(), n, values, check);
            }
        }
    }
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
