//! The MR encoding operator E, its adjoint E^H and the normal operator E^H W E, on one backend.
//!
//! [`Encoding`] applies coil sensitivities, density weights and the voxel basis around the transform between k-space
//! and a single image. The algorithms are written once, using the primitives of [`Backend`].

mod change;
pub(super) mod memory;
pub(super) mod normal;
pub(super) mod samples;
mod state;
mod weights;

use super::field::Field;
use super::interface::CREATING_PLAN;
use super::memory::MemoryLimit;
use super::transform_params::TransformParams;
use crate::backend::{Backend, Complexes, ComplexesMut, Source, Span};
use crate::base::buffer_pool::Lease;
use crate::base::error::Result;
use crate::base::geometry::{Geometry, VoxelBasis};
use crate::base::interrupt;
use crate::base::off_resonance::{OffResonance, OffResonanceRange};
use crate::base::options::Options;
use crate::base::real::Real;
use crate::base::scan_size::ScanSize;
use crate::nufft::gridding_params::GriddingParams;
use crate::nufft::segmented::Segmented;
use crate::nufft::Nufft;
use crate::reconstruction::density::Weighting;
use num_complex::Complex;
use samples::{device_source, host_axes, with_coordinates, SampleArray, SampleArrays};
use state::{CoilMaps, EncodingBuffers, EncodingTransform, TrajectoryState, WeightingState};
use std::ops::Range;
use std::sync::Arc;

/// The encoding operator E of one scan, with the buffers that its operations use.
///
/// An encoding is immutable. [`Encoding::with_change`] creates a modified encoding that shares all unchanged parts with
/// this one.
pub(crate) struct Encoding<T: Real, B: Backend<T>> {
    pub backend: Arc<B>,
    /// Image size. Not meaningful if `is_voxel_list` is set.
    pub dims: Vec<usize>,
    /// Whether the voxels are a list of positions rather than a grid.
    pub is_voxel_list: bool,
    pub voxels: usize,
    pub samples: usize,
    pub coils: usize,
    frames: usize,
    basis: VoxelBasis,
    pub trajectory: Arc<TrajectoryState<T, B>>,
    pub weighting: Arc<WeightingState<T, B>>,
    /// Coil sensitivities; `None` if the scan has none, so that each coil has its own image.
    coil_maps: Option<Arc<CoilMaps<T, B>>>,
    /// Off-resonance and decay maps; `None` if the scan has neither.
    pub(super) field: Option<Arc<Field<T, B>>>,
    execution: ExecutionParams,
    buffers: EncodingBuffers<T, B>,
}

/// Parameters of the computation, chosen from the sizes and options of the scan.
struct ExecutionParams {
    /// Window, grid and off-resonance terms.
    transform: TransformParams,
    /// Whether E^H W E is computed by convolution with Q rather than by a forward and an adjoint transform.
    use_toeplitz: bool,
    /// Maximum number of coils or frames per batch. A batch is transformed in one call.
    batch_size: usize,
    /// Maximum number of off-resonance nodes convolved at once. Each node processes one batch of coils.
    node_batch_size: usize,
    limit: MemoryLimit,
}

impl<T: Real, B: Backend<T>> Encoding<T, B> {
    /// Sorts the samples and copies all arrays that the operations need. `samples` are those of the geometry, if they
    /// have already been copied. `band` is the off-resonance range of the geometry's maps and times.
    pub fn new(
        backend: Arc<B>,
        geometry: &Geometry<'_, T>,
        samples: Option<SampleArrays<T, B>>,
        band: Option<OffResonanceRange>,
        options: &Options,
        params: TransformParams,
    ) -> Result<Self> {
        let size = ScanSize { band, ..ScanSize::lengths(geometry) };
        let (batch_size, mut limit) = Self::batch_and_limit(&backend, &size, options, &params)?;
        let new_maps = |maps| Self::new_coil_maps(&backend, maps, &size, &limit, &params);
        let coil_maps = Self::coil_maps_of(&backend, geometry)?.map(new_maps).transpose()?;
        limit.held += Self::bytes_of_maps(&backend, coil_maps.as_deref());
        interrupt::check(CREATING_PLAN)?;
        let use_toeplitz = Self::selects_toeplitz(&backend, options.normal, &size, &limit, &params);
        let field = Self::new_field(&backend, geometry, band, &params)?;
        let SampleArrays { coordinates, weights } =
            samples.map_or_else(|| SampleArrays::copied(&*backend, geometry), Ok)?;
        let transform = match &params.gridding {
            None => Self::exact_transform(&backend, geometry, &coordinates, options)?,
            Some(gridding) => {
                let arrays = params.gridding_batch_size(batch_size);
                let nufft = with_coordinates(&*backend, &coordinates, |k| {
                    Nufft::new(&*backend, k, &geometry.dims, gridding.clone(), arrays)
                })?;
                Self::gridding_transform(&backend, nufft, geometry, field.as_ref(), &params)?
            }
        };
        let times = field.as_ref().and(geometry.times);
        let (basis, count) = (geometry.basis, geometry.samples());
        let trajectory = TrajectoryState::new(&*backend, count, coordinates, times, basis, transform)?;
        let weighting = WeightingState::new(&*backend, count, &trajectory.coordinates, basis, weights)?;
        Ok(Encoding {
            dims: geometry.dims.clone(),
            is_voxel_list: geometry.voxels.is_some(),
            voxels: geometry.voxel_count(),
            samples: geometry.samples(),
            coils: geometry.coils,
            frames: geometry.frames,
            basis: geometry.basis,
            trajectory: Arc::new(trajectory),
            weighting: Arc::new(weighting),
            coil_maps,
            field: field.map(Arc::new),
            execution: ExecutionParams {
                node_batch_size: params.node_batch_size::<T, B>(&backend, &size, options, batch_size),
                transform: params,
                use_toeplitz,
                batch_size,
                limit,
            },
            buffers: EncodingBuffers::new(),
            backend,
        })
    }

    /// Returns the coil maps of a geometry, on the host or in the memory of the plan's GPU.
    pub(super) fn coil_maps_of<'g>(b: &B, geometry: &Geometry<'g, T>) -> Result<Option<Source<'g, Complex<T>>>> {
        let Some(address) = geometry.on_device.as_ref().and_then(|device| device.coil_maps) else {
            return Ok(geometry.coil_maps.map(Source::Host));
        };
        device_source(b, address, geometry.voxel_count() * geometry.coils).map(Some)
    }

    /// Creates direct sums for the geometry.
    fn exact_transform(
        b: &B,
        geometry: &Geometry<'_, T>,
        coordinates: &[SampleArray<T, B>],
        options: &Options,
    ) -> Result<EncodingTransform<T, B>> {
        let k = host_axes(b, coordinates)?;
        let (dims, voxels) = (&geometry.dims, geometry.voxels.as_deref());
        let maps = geometry.off_resonance();
        let field = maps.map(|maps| maps.finite_field_map(b.workers())).transpose()?.flatten();
        let maps = maps.map(|maps| OffResonance { field_map: field.as_deref(), ..maps });
        b.direct_sum(&k, dims, voxels, maps, options.tolerance).map(EncodingTransform::Exact)
    }

    /// Copies the field map and decay map; returns `None` if the geometry has neither.
    fn new_field(
        b: &B,
        geometry: &Geometry<'_, T>,
        band: Option<OffResonanceRange>,
        params: &TransformParams,
    ) -> Result<Option<Field<T, B>>> {
        let (Some(maps), Some(band)) = (geometry.off_resonance(), band) else { return Ok(None) };
        Field::new(b, &maps, band, geometry.voxel_count(), params).map(Some)
    }

    /// Wraps a gridding transform, with time segments if there is off-resonance.
    fn gridding_transform(
        b: &B,
        nufft: Nufft<T, B>,
        geometry: &Geometry<'_, T>,
        field: Option<&Field<T, B>>,
        params: &TransformParams,
    ) -> Result<EncodingTransform<T, B>> {
        let (Some(field), Some(segments)) = (field, params.segments()) else {
            return Ok(EncodingTransform::Nufft(nufft));
        };
        let factors = field.segment_factors.clone().expect("transforms have segments");
        let times = geometry.times.expect("off-resonance has times");
        let arrays = params.gridding_batch_size(1);
        Segmented::new(b, nufft, segments, factors, times, arrays).map(EncodingTransform::Segmented)
    }

    /// Returns the off-resonance range; `None` without off-resonance or decay.
    fn band(&self) -> Option<OffResonanceRange> {
        self.field.as_ref().map(|field| field.band)
    }

    /// Returns the sizes and options of the scan that decide its memory.
    fn size(&self) -> ScanSize {
        ScanSize {
            coils: self.coils,
            frames: self.frames,
            coil_maps: self.combines_coils(),
            weights: self.weighting.weights.is_some(),
            listed: self.is_voxel_list.then_some(self.voxels),
            basis: self.basis,
            band: self.band(),
            ..ScanSize::new(&self.dims, self.samples)
        }
    }

    /// Returns the backend.
    pub fn b(&self) -> &B {
        &self.backend
    }

    /// Returns whether coils are combined into one image, by coil maps.
    pub fn combines_coils(&self) -> bool {
        self.coil_maps.is_some()
    }

    /// Returns the number of images per frame: 1 with coil maps, otherwise one per coil.
    pub fn images(&self) -> usize {
        if self.combines_coils() {
            1
        } else {
            self.coils
        }
    }

    /// Returns the NUFFT; `None` for exact sums.
    pub fn nufft(&self) -> Option<&Nufft<T, B>> {
        match &self.trajectory.transform {
            EncodingTransform::Exact(_) => None,
            EncodingTransform::Nufft(nufft) => Some(nufft),
            EncodingTransform::Segmented(segmented) => Some(&segmented.nufft),
        }
    }

    /// Returns whether the transform is one NUFFT, without off-resonance or decay.
    pub(super) fn is_plain_nufft(&self) -> bool {
        matches!(self.trajectory.transform, EncodingTransform::Nufft(_))
    }

    /// Returns window and grid; `None` for exact sums.
    pub fn gridding_params(&self) -> Option<&GriddingParams> {
        self.nufft().map(Nufft::choice)
    }

    /// Returns the window, grid and off-resonance terms.
    pub fn transform_params(&self) -> &TransformParams {
        &self.execution.transform
    }

    /// Borrows a buffer for one image.
    pub fn image(&self) -> Result<Lease<'_, B::Array<Complex<T>>>> {
        self.buffers.image.try_take(|| self.b().unwritten(self.voxels, "an image"))
    }

    /// Borrows a buffer for the images of one batch.
    pub(super) fn image_batch(&self) -> Result<Lease<'_, B::Array<Complex<T>>>> {
        let len = self.voxels * self.execution.batch_size;
        self.buffers.image_batch.try_take(|| self.b().unwritten(len, "coil images"))
    }

    /// Borrows a buffer for the k-space samples of one batch.
    pub(super) fn sample_batch(&self) -> Result<Lease<'_, B::Array<Complex<T>>>> {
        let len = self.samples * self.execution.batch_size;
        self.buffers.sample_batch.try_take(|| self.b().unwritten(len, "samples"))
    }

    /// Splits `count` arrays into ranges of at most one batch.
    pub(super) fn batches(&self, count: usize) -> impl Iterator<Item = Range<usize>> {
        let batch_size = self.execution.batch_size;
        (0..count).step_by(batch_size).map(move |first| first..(first + batch_size).min(count))
    }

    /// Returns whether all coils and frames are transformed at once.
    pub(super) fn is_one_batch(&self) -> bool {
        self.coils * self.frames <= self.execution.batch_size
    }

    /// Computes the adjoint transform of one or several arrays of samples.
    pub(super) fn to_image(&self, values: Complexes<B, T>, image: ComplexesMut<B, T>) -> Result<()> {
        match &self.trajectory.transform {
            EncodingTransform::Nufft(n) => n.adjoint(self.b(), values, image),
            EncodingTransform::Segmented(s) => s.adjoint(self.b(), values, image),
            EncodingTransform::Exact(d) => self.b().sum_to_image(d, values, image),
        }
    }

    /// Computes the forward transform of one or several images.
    pub(super) fn to_samples(&self, image: Complexes<B, T>, values: ComplexesMut<B, T>) -> Result<()> {
        match &self.trajectory.transform {
            EncodingTransform::Nufft(n) => n.forward(self.b(), image, values),
            EncodingTransform::Segmented(s) => s.forward(self.b(), image, values),
            EncodingTransform::Exact(d) => self.b().sum_to_samples(d, image, values),
        }
    }

    /// Splits `arrays` arrays of samples into groups that are processed together. Returns the range of arrays and the
    /// voxel range of their images. With coil maps, a group contains all coils of one image.
    pub(super) fn groups(&self, arrays: usize) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
        let (voxels, combines_coils) = (self.voxels, self.combines_coils());
        let group = if combines_coils { self.coils } else { self.execution.batch_size };
        (0..arrays.div_ceil(group)).map(move |i| {
            let arrays = i * group..((i + 1) * group).min(arrays);
            let images = if combines_coils { i..i + 1 } else { arrays.clone() };
            (arrays, images.start * voxels..images.end * voxels)
        })
    }

    /// Calls `f` with the sensitivities of `coils` in the backend's memory.
    fn with_coil_maps(&self, coils: Range<usize>, f: impl FnOnce(Complexes<B, T>)) -> Result<()> {
        let range = coils.start * self.voxels..coils.end * self.voxels;
        match &**self.coil_maps.as_ref().expect("the scan has coil maps") {
            CoilMaps::Resident(maps) => f(self.b().view(maps).part(range)),
            CoilMaps::Streamed(maps) => f(self.b().read(&self.b().input(maps[range].into())?)),
        }
        Ok(())
    }

    /// Computes the images S_c x of `coils`.
    pub(super) fn multiply_maps(
        &self,
        coils: Range<usize>,
        x: Complexes<B, T>,
        images: ComplexesMut<B, T>,
    ) -> Result<()> {
        self.with_coil_maps(coils, |maps| self.b().multiply(maps, x, images))
    }

    /// Adds sum_c conj(S_c) x_c over `coils` to `image`.
    fn add_maps(&self, coils: Range<usize>, images: Complexes<B, T>, image: ComplexesMut<B, T>) -> Result<()> {
        self.with_coil_maps(coils, |maps| self.b().add_conj_products(maps, images, image))
    }

    /// Computes the adjoint in the backend's memory. With coil maps, `kspace` contains all coils of one image; without,
    /// any number of coils and frames.
    pub fn adjoint_of_coils(
        &self,
        weighting: Weighting,
        kspace: Source<'_, Complex<T>>,
        mut image: ComplexesMut<B, T>,
    ) -> Result<()> {
        let b = self.b();
        let mut backprojection = None;
        let computed;
        let factors = match weighting {
            Weighting::None => self.trajectory.phi.as_ref(),
            Weighting::Given => self.weighting.adjoint_weights(),
            Weighting::Gridding => {
                computed = self.gridding_weights()?;
                Some(&*computed)
            }
            Weighting::Backprojection(filter) => {
                computed = backprojection.insert(self.backprojection()?).factors(b, filter, self.phi()?)?;
                Some(&*computed)
            }
        };
        let factors = factors.map(|f| b.view(f));
        // Allocate all buffers before writing, so that an allocation error never leaves a half-written output.
        let mut weighted = factors.map(|_| self.sample_batch()).transpose()?;
        let mut images = self.combines_coils().then(|| self.image_batch()).transpose()?;
        let mut scratch = backprojection.as_ref().map(|fbp| fbp.buffer(b)).transpose()?;
        let mut to_image = |values: Complexes<B, T>, image: ComplexesMut<B, T>| match (&backprojection, &mut scratch) {
            (Some(fbp), Some(scratch)) => {
                fbp.backproject(b, values, scratch, image);
                Ok(())
            }
            _ => self.to_image(values, image),
        };
        if self.combines_coils() {
            b.clear(B::reborrow(&mut image));
        }
        for coils in self.batches(kspace.len() / self.samples) {
            interrupt::check("an adjoint transform")?;
            let voxels = coils.start * self.voxels..coils.end * self.voxels;
            let values = b.input(kspace.part(coils.start * self.samples..coils.end * self.samples))?;
            let mut values = b.read(&values);
            if let (Some(factors), Some(weighted)) = (factors, &mut weighted) {
                let range = 0..values.len();
                b.apply_weights(factors, values, b.view_mut(weighted).part(range.clone()));
                values = b.view(weighted).part(range);
            }
            match &mut images {
                Some(images) => {
                    to_image(values, b.view_mut(images).part(0..voxels.len()))?;
                    self.add_maps(coils, b.view(images).part(0..voxels.len()), B::reborrow(&mut image))?;
                }
                None => to_image(values, B::reborrow(&mut image).part(voxels))?,
            }
        }
        Ok(())
    }
}
