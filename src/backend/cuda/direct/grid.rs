//! Sums on a Cartesian grid of voxels: the kernels of exact_grid.cu (f32, on tensor cores) and exact_grid_f64.cu.

use super::super::compile::Kernels;
use super::super::gpu::{launch, Gpu};
use super::super::memory::{ComplexSlice, ComplexSliceMut, DeviceArray};
use super::super::runtime::{Function, Properties};
use super::work::{blocks, parts, WorkMemory, WorkOffsets, THREADS};
use crate::backend::{DevicePointer, Span};
use crate::base::error::{bail, checked_product, Result};
use crate::base::real::Real;
use crate::base::sizes::{product, sum, three_axes};
use num_complex::Complex;

const F32: &str = concat!(
    include_str!("../../../../kernels/exact_wave.cuh"),
    include_str!("../../../../kernels/half_pairs.cuh"),
    include_str!("../../../../kernels/exact_grid.cu")
);
const F64: &str =
    concat!(include_str!("../../../../kernels/exact_wave.cuh"), include_str!("../../../../kernels/exact_grid_f64.cu"));

// Warps per block for sums to an image in f32: along pairs of voxels, and along columns.
const WARPS: [usize; 2] = [2, 4];
/// Columns per block for sums to an image.
const COLUMNS: usize = 64;
/// Samples per block for sums to samples.
const SAMPLES: usize = 256;
/// Pairs per tile of the tensor cores, as cosines and sines.
const TILE: usize = 8;
/// In f64: pairs per block for sums to an image, and columns per stage for sums to samples.
const PAIRS_F64: usize = 32;
const STRETCH_F64: usize = 16;
/// Bytes of samples that are prepared at a time; they stay in the GPU's cache.
const READY_BYTES: usize = 32 << 20;

/// Sizes of the image, in the layout of the kernels' structure.
#[repr(C)]
#[derive(Clone, Copy)]
struct GridShape {
    stride: [i64; 3],
    n: [i32; 3],
    even: i32,
}

impl GridShape {
    fn new(dims: [usize; 3], axes: [usize; 3]) -> Self {
        let stride = [1, dims[0], dims[0] * dims[1]];
        GridShape {
            stride: axes.map(|a| stride[a] as i64),
            n: axes.map(|a| dims[a] as i32),
            even: i32::from(dims[axes[0]].is_multiple_of(2)),
        }
    }
}

/// Sizes of the matrix product for sums to an image. Axis 0 is the folded one.
#[derive(Debug, Clone, Copy)]
struct ImageSizes {
    axes: [usize; 3],
    /// Tiles of pairs per warp; 0 in f64.
    warp_tiles: usize,
    /// Number of tiles of pairs (in f64 pairs), padded to whole blocks.
    width: usize,
    row_blocks: usize,
    column_blocks: usize,
    /// Samples per stage.
    stage: usize,
}

impl ImageSizes {
    fn new(dims: [usize; 3], axes: [usize; 3], double: bool, stage: usize) -> Self {
        let n = axes.map(|a| dims[a]);
        let pairs = n[0].div_ceil(2);
        let (warp_tiles, width, row_blocks) = if double {
            let row_blocks = pairs.div_ceil(PAIRS_F64);
            (0, row_blocks * PAIRS_F64, row_blocks)
        } else {
            let tiles = pairs.div_ceil(TILE);
            let row_blocks = tiles.div_ceil(4 * WARPS[0]);
            let warp_tiles = tiles.div_ceil(row_blocks).div_ceil(WARPS[0]);
            (warp_tiles, row_blocks * warp_tiles * WARPS[0], row_blocks)
        };
        // Neighbours along axis 1 per thread.
        let own = if double { 8 } else { stage / 8 };
        let column_blocks = (n[1].div_ceil(own) * n[2]).div_ceil(COLUMNS / own);
        ImageSizes { axes, warp_tiles, width, row_blocks, column_blocks, stage }
    }

    /// Returns the number of computed elements, including padding.
    fn cost(&self) -> usize {
        self.width * self.column_blocks
    }

    /// Returns the shared memory of a block in bytes, in f32.
    fn shared(&self) -> usize {
        let steps = self.stage / 16;
        2 * 16 * steps * (64 * self.warp_tiles * WARPS[0] + 128 * WARPS[1])
    }

    fn kernels(&self) -> Kernels {
        let macros = [
            ("MI", self.warp_tiles),
            ("MW", WARPS[0]),
            ("NW", WARPS[1]),
            ("KT", self.stage),
            ("PROMOTE", 64 / self.stage),
        ];
        Kernels::new("exact_grid_image", F32, 4, &macros)
    }
}

/// Sizes of the matrix product for sums to samples. Axis 0 is the folded one.
#[derive(Debug, Clone, Copy)]
struct SampleSizes {
    axes: [usize; 3],
    /// Tiles of pairs per step.
    tiles: usize,
    /// Tiles of 4 columns along axis 1, in f32: per stage, and in total.
    stage: usize,
    column_tiles: usize,
    /// Total number of stages.
    stages: usize,
    /// Size of the folded image in bytes.
    folded: usize,
}

impl SampleSizes {
    fn new(dims: [usize; 3], axes: [usize; 3], double: bool) -> Self {
        let n = axes.map(|a| dims[a]);
        let pairs = n[0].div_ceil(2);
        if double {
            let row_blocks = pairs.div_ceil(TILE);
            let stages = row_blocks * n[2] * n[1].div_ceil(STRETCH_F64);
            let folded = row_blocks * n[1] * n[2] * TILE * 32;
            return SampleSizes { axes, tiles: 1, stage: 0, column_tiles: n[1], stages, folded };
        }
        let tiles = pairs.div_ceil(TILE);
        let row_blocks = tiles.div_ceil(8);
        let tiles = tiles.div_ceil(row_blocks);
        let columns = n[1].div_ceil(4);
        // An even number of tiles per stage, up to 8, with a small remainder.
        let stage = columns.div_ceil(columns.div_ceil(8)).next_multiple_of(2);
        let column_tiles = columns.next_multiple_of(stage);
        let stages = row_blocks * n[2] * (column_tiles / stage);
        SampleSizes { axes, tiles, stage, column_tiles, stages, folded: stages * stage * tiles * 512 }
    }

    fn cost(&self) -> usize {
        self.folded
    }

    /// Returns the shared memory of a block in bytes, in f32.
    fn shared(&self) -> usize {
        2 * self.stage * self.tiles * 512
    }

    fn kernels(&self) -> Kernels {
        Kernels::new("exact_grid_samples", F32, 4, &[("KR", self.tiles), ("NS", self.stage)])
    }
}

fn f64_kernels() -> Kernels {
    Kernels::new("exact_grid_f64", F64, 8, &[])
}

/// Returns the sizes for the best order of the axes. The folded axis must have coordinates. Of equal orders the first
/// is taken.
fn best<S: Copy>(ndim: usize, size: impl Fn([usize; 3]) -> S, cost: impl Fn(&S) -> usize) -> S {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let sizes = orders.into_iter().filter(|axes| axes[0] < ndim).map(size);
    sizes.min_by_key(|s| cost(s)).expect("there is an axis")
}

/// Returns the sizes with the longest stage that fits in the shared memory of a block. The shortest stage fits on every
/// GPU.
fn stage_that_fits(sizes: impl Fn(usize) -> ImageSizes, shared: usize) -> ImageSizes {
    [64, 32].map(&sizes).into_iter().find(|s| s.shared() <= shared).unwrap_or_else(|| sizes(16))
}

/// Kernels that compute the power of two that brings data into the range of half precision.
struct Scaling {
    largest: Function,
    choose: Function,
    /// Offsets of the blocks' results, and of the scale and its inverse.
    most: usize,
    scale: usize,
}

impl Scaling {
    /// Maximum number of blocks of `largest`.
    const BLOCKS: usize = 256;

    /// Reserves space for the blocks' results, and for the scale and its inverse.
    fn places(places: &mut WorkOffsets) -> [usize; 2] {
        [Self::BLOCKS * 4, 2 * 4].map(|bytes| places.take(bytes))
    }

    fn new(gpu: &Gpu, kernels: &Kernels, [most, scale]: [usize; 2]) -> Result<Self> {
        Ok(Scaling {
            largest: gpu.function(kernels, "largest", 0)?,
            choose: gpu.function(kernels, "choose_scale", 0)?,
            most,
            scale,
        })
    }

    /// Queues the computation for these data, and returns the address of the scale.
    fn find<T: Real>(&self, gpu: &Gpu, work: &WorkMemory, data: ComplexSlice<T>) -> DevicePointer<f32> {
        let count = data.len().div_ceil(THREADS).clamp(1, Self::BLOCKS) as u32;
        let (most, scale) = (work.at::<f32>(self.most), work.at(self.scale));
        let (data, len, block) = (data.pointer(), data.len() as i64, [THREADS as u32, 1, 1]);
        // SAFETY: the kernels' parameters are these. Each block has its element of `most`.
        unsafe {
            launch!(gpu, &self.largest, [count, 1, 1], block, 0; data, len, most);
            launch!(gpu, &self.choose, [1, 1, 1], block, 0; most, count as i32, scale);
        }
        scale
    }
}

struct ToImage {
    sizes: ImageSizes,
    shape: GridShape,
    scaling: Option<Scaling>,
    ready_samples: Function,
    ready_waves: Function,
    product: Function,
    add_parts: Function,
    parts: usize,
    /// Samples that are prepared at a time, in whole stages.
    chunk: usize,
    waves: usize,
    ready: usize,
    partial: usize,
}

struct ToSamples {
    sizes: SampleSizes,
    shape: GridShape,
    scaling: Option<Scaling>,
    fold: Function,
    product: Function,
    add_parts: Function,
    parts: usize,
    folded: usize,
    partial: usize,
}

/// Sums between samples and a Cartesian grid.
pub struct GridSum<T> {
    k: Vec<DeviceArray<T>>,
    samples: usize,
    voxels: usize,
    to_image: ToImage,
    to_samples: ToSamples,
    work: WorkMemory,
}

/// Division of the work in both directions, and offsets of their data in the shared work memory. The two directions
/// never run at once.
struct WorkDivision {
    image: ImageSizes,
    image_parts: usize,
    chunk: usize,
    /// Offsets per direction: the scaling, then waves, samples and parts, or the folded image and parts.
    image_scaling: Option<[usize; 2]>,
    image_places: [usize; 3],
    samples: SampleSizes,
    sample_parts: usize,
    sample_scaling: Option<[usize; 2]>,
    sample_places: [usize; 2],
    /// Size of that memory in bytes.
    bytes: usize,
}

impl WorkDivision {
    fn new<T: Real>(properties: &Properties, ndim: usize, dims: [usize; 3], samples: usize) -> Result<Self> {
        let double = size_of::<T>() == 8;
        let voxels = checked_product(&dims, "the image")?;
        if let Some(n) = dims.iter().find(|n| **n >= 1 << 30) {
            bail!(SizeOverflow, "{n} voxels along an axis exceed the limit of a GPU: use fewer, or device cpu");
        }
        let multiprocessors = properties.multiprocessors as usize;
        let element = size_of::<Complex<T>>();
        let scaling = |places: &mut WorkOffsets| (!double).then(|| Scaling::places(places));

        let mut places = WorkOffsets::default();
        let image = best(
            ndim,
            |axes| match double {
                true => ImageSizes::new(dims, axes, true, 16),
                false => stage_that_fits(|stage| ImageSizes::new(dims, axes, false, stage), properties.shared),
            },
            ImageSizes::cost,
        );
        // Bytes of a prepared sample: its waves, and the rest.
        let bytes = if double { [image.width * 16, 48] } else { [image.width * 64, 32] };
        let all = samples.next_multiple_of(image.stage);
        let chunks = (all as u128 * (bytes[0] + bytes[1]) as u128).div_ceil(READY_BYTES as u128).max(1);
        let chunk = (all as u128).div_ceil(chunks).max(1) as usize;
        let chunk = chunk.next_multiple_of(image.stage);
        let running = if double { 3 * multiprocessors } else { multiprocessors };
        let tiles = image.row_blocks * image.column_blocks;
        let image_parts = parts(tiles, running, chunk / image.stage, voxels * element).min(65535);
        let image_scaling = scaling(&mut places);
        let partial = if image_parts > 1 { image_parts * voxels * element } else { 0 };
        let image_places = [chunk * bytes[0], chunk * bytes[1], partial].map(|bytes| places.take(bytes));
        let needed = places.end;

        let mut places = WorkOffsets::default();
        let sizes = best(ndim, |axes| SampleSizes::new(dims, axes, double), SampleSizes::cost);
        let running = if double { 4 * multiprocessors } else { multiprocessors };
        let sample_parts = parts(samples.div_ceil(SAMPLES), running, sizes.stages, samples.max(1) * element).min(65535);
        let sample_scaling = scaling(&mut places);
        let partial = if sample_parts > 1 { sample_parts * samples * element } else { 0 };
        let sample_places = [sizes.folded, partial].map(|bytes| places.take(bytes));
        Ok(WorkDivision {
            image,
            image_parts,
            chunk,
            image_scaling,
            image_places,
            samples: sizes,
            sample_parts,
            sample_scaling,
            sample_places,
            bytes: needed.max(places.end),
        })
    }
}

impl<T: Real> GridSum<T> {
    /// Creates the sums for samples at `k`, one slice per axis, and voxels of `dims`.
    pub fn new(gpu: &Gpu, k: &[&[T]], dims: &[usize]) -> Result<Self> {
        let double = size_of::<T>() == 8;
        let (ndim, dims) = (dims.len(), three_axes(dims));
        let samples = k[0].len();
        let division = WorkDivision::new::<T>(gpu.properties(), ndim, dims, samples)?;
        let scaling = |kernels: &Kernels, places: Option<[usize; 2]>| -> Result<Option<Scaling>> {
            places.map(|places| Scaling::new(gpu, kernels, places)).transpose()
        };

        let sizes = division.image;
        let kernels = if double { f64_kernels() } else { sizes.kernels() };
        let [waves, ready, partial] = division.image_places;
        let to_image = ToImage {
            sizes,
            shape: GridShape::new(dims, sizes.axes),
            scaling: scaling(&kernels, division.image_scaling)?,
            ready_samples: gpu.function(&kernels, "ready_samples", 0)?,
            ready_waves: gpu.function(&kernels, "ready_waves", 0)?,
            product: gpu.function(&kernels, "grid_to_image", if double { 0 } else { sizes.shared() })?,
            add_parts: gpu.function(&kernels, "add_parts", 0)?,
            parts: division.image_parts,
            chunk: division.chunk,
            waves,
            ready,
            partial,
        };

        let sizes = division.samples;
        let kernels = if double { f64_kernels() } else { sizes.kernels() };
        let [folded, partial] = division.sample_places;
        let to_samples = ToSamples {
            sizes,
            shape: GridShape::new(dims, sizes.axes),
            scaling: scaling(&kernels, division.sample_scaling)?,
            fold: gpu.function(&kernels, "fold_image", 0)?,
            product: gpu.function(&kernels, "grid_to_samples", if double { 0 } else { sizes.shared() })?,
            add_parts: gpu.function(&kernels, "add_parts", 0)?,
            parts: division.sample_parts,
            folded,
            partial,
        };
        let work = WorkMemory::new(gpu, division.bytes)?;
        let k = k.iter().map(|k| gpu.upload(k, "coordinates")).collect::<Result<_>>()?;
        Ok(GridSum { k, samples, voxels: dims.iter().product(), to_image, to_samples, work })
    }

    /// Returns its bytes: coordinates, and the memory that both directions share.
    pub fn bytes(properties: &Properties, samples: usize, dims: &[usize]) -> Result<usize> {
        let division = WorkDivision::new::<T>(properties, dims.len(), three_axes(dims), samples)?;
        Ok(sum(&[product(&[samples, dims.len(), size_of::<T>()]), division.bytes]))
    }

    /// Returns the coordinates along these axes; null for an axis without coordinates.
    fn k(&self, axes: [usize; 3]) -> [DevicePointer<T>; 3] {
        axes.map(|a| self.k.get(a).map_or(DevicePointer::NULL, |k| k.pointer()))
    }

    pub fn to_image(&self, gpu: &Gpu, values: ComplexSlice<T>, image: ComplexSliceMut<T>) {
        assert!(values.len() == self.samples && image.len() == self.voxels);
        if self.samples == 0 {
            return gpu.clear(image);
        }
        let ToImage { sizes, shape, parts, chunk, .. } = self.to_image;
        let s = &self.to_image;
        let scale = s.scaling.as_ref().map(|s| s.find(gpu, &self.work, values));
        let (partial, image, voxels) = (self.work.at(s.partial), image.pointer(), self.voxels as i64);
        let out = if parts > 1 { partial } else { image };
        let grid = [sizes.column_blocks as u32, sizes.row_blocks as u32, parts as u32];
        for first in (0..self.samples).step_by(chunk) {
            let all = (self.samples - first).min(chunk).next_multiple_of(sizes.stage);
            let (waves, ready) = self.ready_chunk(gpu, values, first, all, scale);
            let (stages, width, add) = ((all / sizes.stage) as i32, sizes.width as i32, i32::from(first > 0));
            // SAFETY: the kernels' parameters are these. `ready_chunk` prepared the stages; `out` has one image per
            // part.
            unsafe {
                match scale {
                    Some(scale) => launch!(gpu, &s.product, grid, [THREADS as u32, 1, 1], sizes.shared();
                        shape, waves, ready, stages, width, scale, add, out, voxels),
                    None => launch!(gpu, &s.product, grid, [128, 1, 1], 0;
                        shape, waves, ready, stages, width, add, out, voxels),
                }
            }
        }
        if parts > 1 {
            let block = [THREADS as u32, 1, 1];
            // SAFETY: the kernel's parameters are these. `partial` has one image per part.
            unsafe {
                launch!(gpu, &s.add_parts, blocks(self.voxels), block, 0; partial, voxels, parts as i32, image, voxels)
            };
        }
    }

    /// Prepares `all` samples from `first` on, including padding, for the product to an image. Returns the addresses of
    /// their waves and of the rest.
    fn ready_chunk(
        &self,
        gpu: &Gpu,
        values: ComplexSlice<T>,
        first: usize,
        all: usize,
        scale: Option<DevicePointer<f32>>,
    ) -> (DevicePointer<u8>, DevicePointer<u8>) {
        let ToImage { sizes, shape, .. } = self.to_image;
        let s = &self.to_image;
        let (k, values) = (self.k(sizes.axes), values.pointer());
        let (waves, ready) = (self.work.at(s.waves), self.work.at(s.ready));
        let (first, count, padded, width) = (first as i64, self.samples as i64, all as i32, sizes.width as i32);
        let block = [THREADS as u32, 1, 1];
        // Elements of the waves, one per thread.
        let elements = if scale.is_some() { all / 16 * sizes.width * 32 } else { all * sizes.width };
        // SAFETY: the kernels' parameters are these. The work memory has space for a chunk, and `first` is below
        // `count`.
        unsafe {
            match scale {
                Some(scale) => launch!(gpu, &s.ready_samples, blocks(all), block, 0;
                    shape, k[0], k[1], k[2], values, first, count, padded, scale, ready),
                None => launch!(gpu, &s.ready_samples, blocks(all), block, 0;
                    shape, k[0], k[1], k[2], values, first, count, padded, ready),
            }
            launch!(gpu, &s.ready_waves, blocks(elements), block, 0; shape, k[0], first, count, padded, width, waves);
        }
        (waves, ready)
    }

    pub fn to_samples(&self, gpu: &Gpu, image: ComplexSlice<T>, values: ComplexSliceMut<T>) {
        assert!(values.len() == self.samples && image.len() == self.voxels);
        if self.samples == 0 {
            return;
        }
        let ToSamples { sizes, shape, parts, .. } = self.to_samples;
        let s = &self.to_samples;
        let k = self.k(sizes.axes);
        let scale = s.scaling.as_ref().map(|s| s.find(gpu, &self.work, image));
        let (folded, partial) = (self.work.at::<u8>(s.folded), self.work.at(s.partial));
        let (image, values) = (image.pointer(), values.pointer());
        let out = if parts > 1 { partial } else { values };
        let (count, stages, columns) = (self.samples as i64, sizes.stages as i64, sizes.column_tiles as i32);
        let grid = [self.samples.div_ceil(SAMPLES) as u32, parts as u32, 1];
        let block = [THREADS as u32, 1, 1];
        // A thread computes 16 bytes of the folded image in f32, and 32 in f64.
        let len = sizes.folded / if scale.is_some() { 16 } else { 32 };
        // SAFETY: the kernels' parameters are these. The work memory has space for the folded image and one sum per
        // part.
        unsafe {
            match scale {
                Some(scale) => {
                    launch!(gpu, &s.fold, blocks(len), block, 0; shape, image, scale, columns, len as i64, folded);
                    launch!(gpu, &s.product, grid, block, sizes.shared();
                        shape, k[0], k[1], k[2], count, folded, columns, stages, scale, out, count);
                }
                None => {
                    launch!(gpu, &s.fold, blocks(len), block, 0; shape, image, len as i64, folded);
                    launch!(gpu, &s.product, grid, [128, 1, 1], 0;
                        shape, k[0], k[1], k[2], count, folded, stages, out, count);
                }
            }
            if parts > 1 {
                launch!(gpu, &s.add_parts, blocks(self.samples), block, 0; partial, count, parts as i32, values, count);
            }
        }
    }
}

/// Returns the kernels for images of 32 to 1024 voxels per side and more, in f32, for GPUs with much and with little
/// shared memory.
pub fn usual_kernels() -> Vec<Kernels> {
    let mut all = vec![f64_kernels()];
    for n in [64, 128, 192, 256] {
        for stage in [64, 32] {
            all.push(ImageSizes::new([n, n, n], [0, 1, 2], false, stage).kernels());
        }
        all.push(SampleSizes::new([n, n, n], [0, 1, 2], false).kernels());
    }
    let mut seen = Vec::new();
    all.retain(|k| {
        !seen.contains(&k.key()) && {
            seen.push(k.key());
            true
        }
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_cover_the_image_and_fit() {
        for n0 in (1..200).chain([255, 256, 320, 511, 1000]) {
            for [n1, n2] in [[1, 1], [7, 3], [128, 2], [130, 5]] {
                let dims = [n0, n1, n2];
                for stage in [16, 32, 64] {
                    let s = ImageSizes::new(dims, [0, 1, 2], false, stage);
                    assert!(
                        s.warp_tiles <= 4 && s.width * 16 >= n0 && s.width == s.row_blocks * s.warp_tiles * 2,
                        "{s:?}"
                    );
                    assert!(s.column_blocks * COLUMNS >= n1 * n2, "{s:?}");
                    assert!(s.shared() <= [48 << 10, 64 << 10, 128 << 10][stage / 32], "{s:?}");
                }
                let s = SampleSizes::new(dims, [0, 1, 2], false);
                assert!((1..=8).contains(&s.tiles) && s.folded >= 8 * n0 * n1 * n2, "{s:?}");
                assert!([2, 4, 6, 8].contains(&s.stage) && s.column_tiles * 4 >= n1, "{s:?}");
                assert!(s.column_tiles % s.stage == 0 && s.shared() <= 64 << 10, "{s:?}");
            }
        }
    }

    #[test]
    fn the_axis_that_wastes_least_is_folded() {
        let of = |dims: [usize; 3], ndim| {
            best(ndim, |axes| ImageSizes::new(dims, axes, false, 64), ImageSizes::cost).axes[0]
        };
        assert_eq!(of([128, 128, 128], 3), 0);
        assert_eq!(of([1, 128, 128], 3), 1);
        assert_eq!(of([128, 128, 1], 2), 0);
        // A thread computes neighbours along one axis, which is then the long one.
        assert_eq!(of([5, 1, 128], 3), 0);
        // The third axis of a plane has no coordinates.
        assert_eq!(best(2, |axes| ImageSizes::new([1, 1, 1], axes, false, 64), ImageSizes::cost).axes, [0, 1, 2]);
    }
}
