//! The encoding operator E of an MR scan, its adjoint and E^H W E, in the memory of a backend: coils, weights and voxel
//! basis around the transform between k-space and one image. Written once, over the backend's primitives.

use super::chosen::{at_once, grid_bytes, Chosen};
use super::field::Field;
use super::interface::{Change, CHANGING, MAKING};
use super::memory::Needs;
use crate::backend::{Backend, Complexes, ComplexesMut, Reals, Source, Span};
use crate::base::buffer_pool::{Lease, Pool};
use crate::base::error::{bail, try_collect, try_vec, ErrorKind, Result};
use crate::base::geometry::{Geometry, VoxelBasis};
use crate::base::interrupt;
use crate::base::memory::Aligned;
use crate::base::off_resonance::{OffResonance, OffResonanceRange};
use crate::base::options::{Normal, Options};
use crate::base::real::Real;
use crate::base::scan_size::ScanSize;
use crate::base::workers::{collect, copied, fold, Workers};
use crate::nufft::choice::Choice;
use crate::nufft::segmented::Segmented;
use crate::nufft::segments::Segments;
use crate::nufft::toeplitz::{making_bytes, octant_shift, Key, Toeplitz};
use crate::nufft::Nufft;
use crate::reconstruction::cg;
use crate::reconstruction::density::{self, Density, Weighting};
use crate::reconstruction::fbp::{self, FilteredBackprojection};
use crate::reconstruction::gridding_scale::gridding_scale;
use crate::reconstruction::spokes::Spokes;
use num_complex::Complex;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// How samples and one image are related.
enum Transform<T: Real, B: Backend<T>> {
    Exact(B::DirectSum),
    Nufft(Nufft<T, B>),
    /// With off-resonance.
    Segmented(Segmented<T, B>),
}

/// E, with all that its operations keep. An encoding never changes: [`Encoding::with_change`] makes another beside it,
/// which shares what stays.
pub(crate) struct Encoding<T: Real, B: Backend<T>> {
    pub backend: Arc<B>,
    pub dims: Vec<usize>,
    /// Voxels are a list: `dims` does not describe them.
    pub listed: bool,
    pub voxels: usize,
    pub samples: usize,
    pub coils: usize,
    frames: usize,
    basis: VoxelBasis,
    /// Coils, or frames, that are transformed at once, at most.
    batch: usize,
    pub trajectory: Arc<Along<T, B>>,
    pub weighting: Arc<Weighed<T, B>>,
    maps: Option<Arc<Maps<T, B>>>,
    /// Off-resonance and decay, where there are.
    pub(super) field: Option<Arc<Field<T, B>>>,
    chosen: Chosen,
    /// Whether E^H W E goes through Q.
    through_q: bool,
    /// Of several nodes, how many are convolved at once, at most, with a batch of coils each.
    nodes_at_once: usize,
    node_images: Arc<Pool<B::Array<Complex<T>>>>,
    node_coil_images: Arc<Pool<B::Array<Complex<T>>>>,
    limit: MemoryLimit,
    images: Arc<Pool<B::Array<Complex<T>>>>,
    /// Images and k-space of a batch.
    image_batches: Arc<Pool<B::Array<Complex<T>>>>,
    sample_batches: Arc<Pool<B::Array<Complex<T>>>>,
}

/// What depends on where the samples lie.
pub(crate) struct Along<T: Real, B: Backend<T>> {
    transform: Transform<T, B>,
    /// k, one array an axis.
    pub coordinates: Vec<Aligned<T>>,
    /// t, where there is off-resonance.
    pub(super) times: Option<Aligned<T>>,
    /// phi, where it is not 1.
    pub(super) phi: Option<B::Array<T>>,
    /// Made when it is first wanted.
    fbp: Mutex<Option<Arc<FilteredBackprojection<T, B>>>>,
}

/// What depends on the samples' weights as well.
pub(crate) struct Weighed<T: Real, B: Backend<T>> {
    /// Those of the caller.
    pub weights: Option<Aligned<T>>,
    /// phi w, where it is not 1, and phi^2 w, where that is another.
    weighted: Option<B::Array<T>>,
    squared: Option<B::Array<T>>,
    /// phi w with w such that gridding keeps the object's scale.
    gridding: Mutex<Option<Arc<B::Array<T>>>>,
    pub(super) toeplitz: Mutex<Option<Arc<Toeplitz<T, B>>>>,
    making_q: Mutex<()>,
}

impl<T: Real, B: Backend<T>> Along<T, B> {
    fn new(
        backend: &B,
        k: &[&[T]],
        times: Option<&[T]>,
        basis: VoxelBasis,
        transform: Transform<T, B>,
    ) -> Result<Self> {
        let samples = k[0].len();
        let coordinates = copied(backend.workers(), k, "the coordinates")?;
        let times = times.map(|times| copied(backend.workers(), &[times], "the sample times")).transpose()?;
        let times = times.and_then(|mut copies| copies.pop());
        let phi = |m: usize| basis_factor(basis, k.iter().map(|k| k[m].wide()));
        let phi = factors(backend, basis == VoxelBasis::Box, samples, phi)?;
        Ok(Along { transform, coordinates, times, phi, fbp: Mutex::default() })
    }

    /// k, one slice an axis.
    pub fn axes(&self) -> Vec<&[T]> {
        self.coordinates.iter().map(|k| &k[..]).collect()
    }
}

impl<T: Real, B: Backend<T>> Weighed<T, B> {
    fn new(backend: &B, k: &[&[T]], basis: VoxelBasis, weights: Option<&[T]>) -> Result<Self> {
        let samples = k[0].len();
        let phi = |m: usize| basis_factor(basis, k.iter().map(|k| k[m].wide()));
        let weight = |m: usize| weights.map_or(1.0, |w| w[m].wide());
        let boxes = basis == VoxelBasis::Box;
        let copy = |w| copied(backend.workers(), &[w], "the weights");
        Ok(Weighed {
            weights: weights.map(copy).transpose()?.and_then(|mut copies| copies.pop()),
            weighted: factors(backend, boxes || weights.is_some(), samples, |m| phi(m) * weight(m))?,
            squared: factors(backend, boxes, samples, |m| phi(m) * phi(m) * weight(m))?,
            gridding: Mutex::new(None),
            toeplitz: Mutex::new(None),
            making_q: Mutex::new(()),
        })
    }

    /// phi^2 w, where it is not 1.
    fn squared(&self) -> Option<&B::Array<T>> {
        self.squared.as_ref().or(self.weighted.as_ref())
    }
}

/// Factors of the samples, where they are wanted.
fn factors<T: Real, B: Backend<T>>(
    backend: &B,
    wanted: bool,
    samples: usize,
    f: impl Fn(usize) -> f64 + Sync,
) -> Result<Option<B::Array<T>>> {
    if !wanted {
        return Ok(None);
    }
    let values = collect(backend.workers(), samples, "the weights", |m| T::of(f(m)))?;
    backend.upload(&values, "the weights").map(Some)
}

/// The coils' sensitivities: on the device, or sent there some coils at a time where it has no room for all.
enum Maps<T: Real, B: Backend<T>> {
    There(B::Array<Complex<T>>),
    Sent(Vec<Complex<T>>),
}

impl<T: Real, B: Backend<T>> Maps<T, B> {
    /// Under a memory limit they stay on a device only where `later`, what operations may want, has room as well.
    fn new(backend: &B, maps: &[Complex<T>], limit: &MemoryLimit, later: usize) -> Result<Self> {
        let what = "the coil sensitivities";
        // Elsewhere they are counted beforehand: there is no other place for them.
        let fits = if backend.is_gpu() { limit.check(size_of_val(maps).saturating_add(later), what) } else { Ok(()) };
        match fits.and_then(|()| backend.upload(maps, what)) {
            Ok(there) => Ok(Maps::There(there)),
            Err(e) if backend.is_gpu() && matches!(e.kind(), ErrorKind::OutOfDeviceMemory | ErrorKind::MemoryLimit) => {
                log::info!("coil sensitivities are sent some coils at a time: {e}");
                Ok(Maps::Sent(try_collect(maps.len(), what, maps.iter().copied())?))
            }
            Err(e) => Err(e),
        }
    }
}

impl<T: Real, B: Backend<T>> Encoding<T, B> {
    /// `band` is that of the geometry's maps and times, `chosen` what serves it.
    pub fn new(
        backend: Arc<B>,
        geometry: &Geometry<'_, T>,
        band: Option<OffResonanceRange>,
        options: &Options,
        chosen: Chosen,
    ) -> Result<Self> {
        let k = &geometry.coordinates;
        let size = ScanSize { band, ..ScanSize::lengths(geometry) };
        let (batch, mut limit) = Self::counted(&backend, &size, options, &chosen)?;
        let maps = geometry.coil_maps.map(|maps| Self::new_maps(&backend, maps, &size, &limit, &chosen)).transpose()?;
        limit.held += Self::bytes_of_maps(&backend, maps.as_deref());
        interrupt::check(MAKING)?;
        let through_q = Self::goes_through_q(&backend, options.normal, &size, &limit, &chosen);
        let field = Self::new_field(&backend, geometry, band, &chosen)?;
        let nufft = |choice: &Choice| Nufft::new(&*backend, k, &geometry.dims, choice.clone(), chosen.arrays(batch));
        let transform = match &chosen.window {
            None => Self::exact(&backend, geometry, options)?,
            Some(choice) => Self::segmented(&backend, nufft(choice)?, geometry, field.as_ref(), &chosen)?,
        };
        let times = field.as_ref().and(geometry.times);
        let trajectory = Along::new(&*backend, k, times, geometry.basis, transform)?;
        let weighting = Weighed::new(&*backend, k, geometry.basis, geometry.weights)?;
        Ok(Encoding {
            dims: geometry.dims.clone(),
            listed: geometry.voxels.is_some(),
            voxels: geometry.voxel_count(),
            samples: geometry.samples(),
            coils: geometry.coils,
            frames: geometry.frames,
            basis: geometry.basis,
            batch,
            trajectory: Arc::new(trajectory),
            weighting: Arc::new(weighting),
            maps,
            field: field.map(Arc::new),
            nodes_at_once: chosen.nodes_at_once::<T, B>(&backend, &size, options, batch),
            node_images: Arc::default(),
            node_coil_images: Arc::default(),
            chosen,
            through_q,
            limit,
            images: Arc::default(),
            image_batches: Arc::default(),
            sample_batches: Arc::default(),
            backend,
        })
    }

    /// How many coils are transformed at once, and the caller's memory limit, which leaves room for the plan.
    pub fn counted(b: &B, size: &ScanSize, options: &Options, chosen: &Chosen) -> Result<(usize, MemoryLimit)> {
        let batch = Self::batch(b, size, options, chosen)?;
        let held = Self::bytes(&Needs::new(b, size, options, chosen, batch)?);
        let limit = MemoryLimit { bytes: options.memory_limit, held };
        limit.check(0, "the plan")?;
        Ok((batch, limit))
    }

    fn exact(b: &B, geometry: &Geometry<'_, T>, options: &Options) -> Result<Transform<T, B>> {
        let (k, dims, voxels) = (&geometry.coordinates, &geometry.dims, geometry.voxels.as_deref());
        let maps = geometry.off_resonance();
        let field = maps.map(|maps| maps.finite_field_map(b.workers())).transpose()?.flatten();
        let maps = maps.map(|maps| OffResonance { field_map: field.as_deref(), ..maps });
        b.direct_sum(k, dims, voxels, maps, options.tolerance).map(Transform::Exact)
    }

    fn new_field(
        b: &B,
        geometry: &Geometry<'_, T>,
        band: Option<OffResonanceRange>,
        chosen: &Chosen,
    ) -> Result<Option<Field<T, B>>> {
        let (Some(maps), Some(band)) = (geometry.off_resonance(), band) else { return Ok(None) };
        Field::new(b, &maps, band, geometry.voxel_count(), chosen).map(Some)
    }

    /// Transforms by gridding, of as many segments as off-resonance takes.
    fn segmented(
        b: &B,
        nufft: Nufft<T, B>,
        geometry: &Geometry<'_, T>,
        field: Option<&Field<T, B>>,
        chosen: &Chosen,
    ) -> Result<Transform<T, B>> {
        let (Some(field), Some(segments)) = (field, chosen.segments()) else { return Ok(Transform::Nufft(nufft)) };
        let waves = field.waves.clone().expect("transforms have segments");
        let times = geometry.times.expect("off-resonance has times");
        Segmented::new(b, nufft, segments, waves, times, chosen.arrays(1)).map(Transform::Segmented)
    }

    /// Coil maps in the backend's memory, where there will be room for Q and the vectors of conjugate gradients too.
    fn new_maps(
        b: &B,
        maps: &[Complex<T>],
        size: &ScanSize,
        limit: &MemoryLimit,
        chosen: &Chosen,
    ) -> Result<Arc<Maps<T, B>>> {
        let vectors = size.voxels().saturating_mul((cg::VECTORS + 1 + size.frames) * size_of::<Complex<T>>());
        let q = if size.listed.is_some() { 0 } else { Self::q_bytes(b, size, chosen) };
        Maps::new(b, maps, limit, q.saturating_add(vectors)).map(Arc::new)
    }

    /// Bytes of coil maps beside those that [`Encoding::bytes`] counts: where they are sent, there are none.
    fn bytes_of_maps(b: &B, maps: Option<&Maps<T, B>>) -> usize {
        match maps {
            Some(Maps::There(maps)) if b.is_gpu() => b.view(maps).len().saturating_mul(size_of::<Complex<T>>()),
            _ => 0,
        }
    }

    /// The band, and what serves after a change: chosen anew where the number of samples is another, or the band is.
    pub fn chosen_after(
        &self,
        change: Change<'_, T>,
        options: &Options,
    ) -> Result<(Option<OffResonanceRange>, Chosen)> {
        match (change, &self.field) {
            (Change::Trajectory(geometry), _) => {
                let ScanSize { samples, band, .. } = ScanSize::with_band(self.b().workers(), geometry)?;
                let band = self.band_with_kept_maps(geometry, band);
                let size = ScanSize { samples, band, ..self.size() };
                if (samples != self.samples && self.chosen.window.is_some()) || band != self.band() {
                    return Ok((band, Chosen::new::<T, B>(self.b(), &size, options, self.chosen.window.is_none())?));
                }
            }
            (Change::CoilMaps(maps), Some(field)) => field.check_seen(self.b(), maps, self.voxels)?,
            _ => {}
        }
        Ok((self.band(), self.chosen.clone()))
    }

    /// The band of a new trajectory's geometry: where that has no coil maps, those of the plan stay, and with the same
    /// field map so does what they see of it.
    fn band_with_kept_maps(
        &self,
        geometry: &Geometry<'_, T>,
        band: Option<OffResonanceRange>,
    ) -> Option<OffResonanceRange> {
        let keeps = self.combined() && geometry.coil_maps.is_none();
        match (geometry.off_resonance(), &self.field) {
            (Some(maps), Some(field)) if keeps && field.is_of(self.b(), &maps) => {
                band.map(|band| OffResonanceRange { time: band.time, ..field.band })
            }
            _ => band,
        }
    }

    fn band(&self) -> Option<OffResonanceRange> {
        self.field.as_ref().map(|field| field.band)
    }

    /// The encoding after a change, which shares with this one what the change leaves as it is. `options` are those
    /// that this one was made with, `band` and `chosen` those of [`Encoding::chosen_after`].
    pub fn with_change(
        &self,
        change: Change<'_, T>,
        options: &Options,
        (band, chosen): (Option<OffResonanceRange>, Chosen),
    ) -> Result<Self> {
        let b = self.b();
        let mut size = ScanSize { band, ..self.size() };
        match change {
            Change::Trajectory(geometry) => {
                (size.samples, size.weights) = (geometry.samples(), geometry.weights.is_some());
            }
            Change::Weights(weights) => size.weights = weights.is_some(),
            Change::CoilMaps(_) => {}
        }
        let (same_choice, same_count) = (chosen == self.chosen, size.samples == self.samples);
        let batch = if same_choice { self.batch } else { Self::batch(b, &size, options, &chosen)? };
        let needs = Needs::new(b, &size, options, &chosen, batch)?;
        let new_maps = change.coil_maps();
        let maps_here = Self::bytes_of_maps(b, self.maps.as_deref());
        let mut limit =
            MemoryLimit { bytes: options.memory_limit, held: Self::bytes(&needs).saturating_add(maps_here) };
        limit.check(0, "the plan")?;
        // Until the change is made, what was before is there as well.
        let anew = match change {
            Change::Trajectory(_) => {
                let kept = chosen.window.as_ref().filter(|_| same_choice);
                let arrays = chosen.arrays(batch);
                let points = kept.map(|c| Nufft::<T, B>::bytes_of_samples(b, c, size.samples, arrays));
                needs.of_trajectory(points, same_count && batch == self.batch)
            }
            Change::Weights(_) => needs.of_weights(),
            Change::CoilMaps(_) => 0,
        };
        let both = anew.saturating_add(if b.is_gpu() { 0 } else { new_maps.map_or(0, size_of_val) });
        self.limit().check(both, "the plan together with what replaces a part of it")?;
        let maps = match new_maps {
            Some(maps) => {
                let before = MemoryLimit { held: self.bytes_held().saturating_add(anew), ..limit };
                Some(Self::new_maps(b, maps, &size, &before, &chosen)?)
            }
            None => self.maps.clone(),
        };
        limit.held = limit.held - maps_here + Self::bytes_of_maps(b, maps.as_deref());
        interrupt::check(CHANGING)?;
        let through_q = Self::goes_through_q(b, options.normal, &size, &limit, &chosen);
        let (trajectory, weighting, field) = match change {
            Change::Trajectory(geometry) => {
                let k = &geometry.coordinates;
                let field = self.field_after(geometry, band, &chosen)?;
                let nufft = match (&chosen.window, self.nufft()) {
                    (Some(_), Some(nufft)) if same_choice && batch == self.batch => Some(nufft.with_samples(b, k)?),
                    (Some(choice), _) => Some(Nufft::new(b, k, &self.dims, choice.clone(), chosen.arrays(batch))?),
                    (None, _) => None,
                };
                let transform = match nufft {
                    Some(nufft) => Self::segmented(b, nufft, geometry, field.as_deref(), &chosen)?,
                    None => Self::exact(b, geometry, options)?,
                };
                let times = field.as_ref().and(geometry.times);
                let trajectory = Arc::new(Along::new(b, k, times, self.basis, transform)?);
                (trajectory, Arc::new(Weighed::new(b, k, self.basis, geometry.weights)?), field)
            }
            Change::Weights(weights) => {
                let weighting = Weighed::new(b, &self.trajectory.axes(), self.basis, weights)?;
                (self.trajectory.clone(), Arc::new(weighting), self.field.clone())
            }
            Change::CoilMaps(_) => (self.trajectory.clone(), self.weighting.clone(), self.field.clone()),
        };
        let same_batches = batch == self.batch;
        Ok(Encoding {
            backend: self.backend.clone(),
            dims: self.dims.clone(),
            samples: size.samples,
            batch,
            trajectory,
            weighting,
            maps,
            field,
            nodes_at_once: chosen.nodes_at_once::<T, B>(b, &size, options, batch),
            node_images: Arc::default(),
            node_coil_images: Arc::default(),
            chosen,
            through_q,
            limit,
            images: self.images.clone(),
            image_batches: if same_batches { self.image_batches.clone() } else { Arc::default() },
            sample_batches: if same_batches && same_count { self.sample_batches.clone() } else { Arc::default() },
            ..*self
        })
    }

    /// The field of a new trajectory's geometry: this one where maps, band and terms are the same.
    fn field_after(
        &self,
        geometry: &Geometry<'_, T>,
        band: Option<OffResonanceRange>,
        chosen: &Chosen,
    ) -> Result<Option<Arc<Field<T, B>>>> {
        if let (Some(maps), Some(field)) = (geometry.off_resonance(), &self.field) {
            if chosen.terms == self.chosen.terms && band == Some(field.band) && field.is_of(self.b(), &maps) {
                return Ok(Some(field.clone()));
            }
        }
        Ok(Self::new_field(self.b(), geometry, band, chosen)?.map(Arc::new))
    }

    /// What memory depends on.
    fn size(&self) -> ScanSize {
        ScanSize {
            coils: self.coils,
            frames: self.frames,
            coil_maps: self.combined(),
            weights: self.weighting.weights.is_some(),
            listed: self.listed.then_some(self.voxels),
            basis: self.basis,
            band: self.band(),
            ..ScanSize::new(&self.dims, self.samples)
        }
    }

    /// The backend.
    pub fn b(&self) -> &B {
        &self.backend
    }

    /// How many coils are transformed at once, so that taps are computed once for all of them: as many as stay in cache
    /// between one step and the next.
    pub(super) fn batch(b: &B, size: &ScanSize, options: &Options, chosen: &Chosen) -> Result<usize> {
        let Some(choice) = &chosen.window else { return Ok(1) };
        let arrays = if size.coil_maps { size.coils } else { size.coils.saturating_mul(size.frames) };
        Ok(at_once::<T, B>(b, options, arrays, grid_bytes::<T>(choice)?))
    }

    /// Bytes that a plan holds and its transforms work in, before it is made. Maps that do not fit on a GPU are sent
    /// when they are wanted.
    pub(super) fn bytes(needs: &Needs) -> usize {
        needs.held_without_maps().saturating_add(needs.working(true))
    }

    /// Bytes that a plan with what was chosen takes for transforms, where it computes and on the host.
    pub fn transform_bytes(b: &B, size: &ScanSize, options: &Options, chosen: &Chosen) -> Result<[usize; 2]> {
        let needs = Needs::new(b, size, options, chosen, Self::batch(b, size, options, chosen)?)?;
        Ok([Self::bytes(&needs), if b.is_gpu() { needs.kept() } else { 0 }])
    }

    /// Bytes that the plan holds in the host's memory, Q included once it is made.
    pub fn host_bytes(&self) -> usize {
        if !self.b().is_gpu() {
            return self.bytes_held();
        }
        // What it keeps of the geometry.
        let arrays = self.dims.len() + self.weighting.weights.iter().len() + self.trajectory.times.iter().len();
        self.samples * size_of::<T>() * arrays + self.field.as_ref().map_or(0, |field| field.host_bytes())
    }

    /// The caller's memory limit, and what the plan holds by now.
    pub fn limit(&self) -> MemoryLimit {
        MemoryLimit { held: self.bytes_held(), ..self.limit }
    }

    /// Bytes that the plan holds where it computes, Q included once it is made.
    fn bytes_held(&self) -> usize {
        let q = self.weighting.toeplitz.lock().unwrap_or_else(|e| e.into_inner()).is_some();
        self.limit.held + if q { self.chosen.bytes_of_q::<T, B>(self.b(), &self.size()) } else { 0 }
    }

    /// Whether coils are combined into one image, by coil maps.
    pub fn combined(&self) -> bool {
        self.maps.is_some()
    }

    /// Images of one frame: one with coil maps, else one a coil.
    pub fn images(&self) -> usize {
        if self.combined() {
            1
        } else {
            self.coils
        }
    }

    /// The non-uniform FFT, unless sums are exact.
    pub fn nufft(&self) -> Option<&Nufft<T, B>> {
        match &self.trajectory.transform {
            Transform::Exact(_) => None,
            Transform::Nufft(nufft) => Some(nufft),
            Transform::Segmented(segmented) => Some(&segmented.nufft),
        }
    }

    /// Window and grid, unless sums are exact.
    pub fn choice(&self) -> Option<&Choice> {
        self.nufft().map(Nufft::choice)
    }

    /// What serves the scan.
    pub fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    /// Refuses what there is none of with off-resonance.
    pub(super) fn check_no_field(&self, what: &str) -> Result<()> {
        match self.field {
            None => Ok(()),
            Some(_) => bail!(
                Unsupported,
                "{what} with a field map or decay map: make a plan without, or use another operation"
            ),
        }
    }

    /// An array of one image, for use meanwhile.
    pub fn image(&self) -> Result<Lease<'_, B::Array<Complex<T>>>> {
        self.images.try_take(|| self.b().unwritten(self.voxels, "an image"))
    }

    pub(super) fn image_batch(&self) -> Result<Lease<'_, B::Array<Complex<T>>>> {
        self.image_batches.try_take(|| self.b().unwritten(self.voxels * self.batch, "coil images"))
    }

    pub(super) fn sample_batch(&self) -> Result<Lease<'_, B::Array<Complex<T>>>> {
        self.sample_batches.try_take(|| self.b().unwritten(self.samples * self.batch, "samples"))
    }

    /// Ranges of at most a batch of `count` arrays.
    pub(super) fn batches(&self, count: usize) -> impl Iterator<Item = Range<usize>> {
        let batch = self.batch;
        (0..count).step_by(batch).map(move |first| first..(first + batch).min(count))
    }

    pub(super) fn to_image(&self, values: Complexes<B, T>, image: ComplexesMut<B, T>) -> Result<()> {
        match &self.trajectory.transform {
            Transform::Nufft(n) => n.adjoint(self.b(), values, image),
            Transform::Segmented(s) => s.adjoint(self.b(), values, image),
            Transform::Exact(d) => self.b().sum_to_image(d, values, image),
        }
    }

    pub(super) fn to_samples(&self, image: Complexes<B, T>, values: ComplexesMut<B, T>) -> Result<()> {
        match &self.trajectory.transform {
            Transform::Nufft(n) => n.forward(self.b(), image, values),
            Transform::Segmented(s) => s.forward(self.b(), image, values),
            Transform::Exact(d) => self.b().sum_to_samples(d, image, values),
        }
    }

    /// Coils and frames that forward and adjoint transforms take together: with maps the coils of one image.
    pub(super) fn group(&self) -> usize {
        if self.combined() {
            self.coils
        } else {
            self.batch
        }
    }

    /// Ranges of arrays of samples that are worked on together, and of the voxels of their images.
    pub(super) fn groups(&self, arrays: usize) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
        let (group, voxels, combined) = (self.group(), self.voxels, self.combined());
        (0..arrays.div_ceil(group)).map(move |i| {
            let arrays = i * group..((i + 1) * group).min(arrays);
            let images = if combined { i..i + 1 } else { arrays.clone() };
            (arrays, images.start * voxels..images.end * voxels)
        })
    }

    /// Calls `f` with the sensitivities of some coils.
    fn with_maps(&self, coils: Range<usize>, f: impl FnOnce(Complexes<B, T>)) -> Result<()> {
        let range = coils.start * self.voxels..coils.end * self.voxels;
        match &**self.maps.as_ref().expect("maps are there") {
            Maps::There(maps) => f(self.b().view(maps).part(range)),
            Maps::Sent(maps) => f(self.b().read(&self.b().input(maps[range].into())?)),
        }
        Ok(())
    }

    /// Images of some coils: S_c x.
    pub(super) fn multiply_maps(
        &self,
        coils: Range<usize>,
        x: Complexes<B, T>,
        images: ComplexesMut<B, T>,
    ) -> Result<()> {
        self.with_maps(coils, |maps| self.b().multiply(maps, x, images))
    }

    /// image + sum over some coils of conj(S_c) x_c.
    fn add_maps(&self, coils: Range<usize>, images: Complexes<B, T>, image: ComplexesMut<B, T>) -> Result<()> {
        self.with_maps(coils, |maps| self.b().add_conj_products(maps, images, image))
    }

    /// The adjoint, in the backend's memory: of all coils of one image with maps, of any number of coils and frames
    /// without.
    pub fn adjoint_of_coils(
        &self,
        weighting: Weighting,
        kspace: Source<'_, Complex<T>>,
        mut image: ComplexesMut<B, T>,
    ) -> Result<()> {
        let b = self.b();
        let mut fbp = None;
        let made;
        let factor = match weighting {
            Weighting::None => self.trajectory.phi.as_ref(),
            Weighting::Given => self.weighting.weighted.as_ref(),
            Weighting::Gridding => {
                made = self.gridding_weights()?;
                Some(&*made)
            }
            Weighting::Backprojection(filter) => {
                made = fbp.insert(self.fbp()?).factors(b, filter, |m| self.phi(m))?;
                Some(&*made)
            }
        };
        let factor = factor.map(|f| b.view(f));
        // Taken before anything is written, so that an output is never half written for want of memory.
        let mut weighed = factor.map(|_| self.sample_batch()).transpose()?;
        let mut images = self.combined().then(|| self.image_batch()).transpose()?;
        let mut room = fbp.as_ref().map(|fbp| fbp.buffer(b)).transpose()?;
        let mut to_image = |values: Complexes<B, T>, image: ComplexesMut<B, T>| match (&fbp, &mut room) {
            (Some(fbp), Some(room)) => {
                fbp.backproject(b, values, room, image);
                Ok(())
            }
            _ => self.to_image(values, image),
        };
        if self.combined() {
            b.clear(B::reborrow(&mut image));
        }
        for coils in self.batches(kspace.len() / self.samples) {
            interrupt::check("an adjoint transform")?;
            let voxels = coils.start * self.voxels..coils.end * self.voxels;
            let values = b.input(kspace.part(coils.start * self.samples..coils.end * self.samples))?;
            let mut values = b.read(&values);
            if let (Some(factor), Some(weighed)) = (factor, &mut weighed) {
                let range = 0..values.len();
                b.apply_weights(factor, values, b.view_mut(weighed).part(range.clone()));
                values = b.view(weighed).part(range);
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

    /// y = E^H W E x for one image (of any coil, without maps), in the backend's memory.
    pub fn apply_normal(&self, x: Complexes<B, T>, mut y: ComplexesMut<B, T>) -> Result<()> {
        let b = self.b();
        let Some(toeplitz) = self.toeplitz()? else { return self.normal_by_transforms(x, y) };
        if toeplitz.waves.is_some() {
            return self.convolve_nodes(&toeplitz, x, y);
        }
        if self.maps.is_none() {
            toeplitz.apply(b, 0..1, x, y);
            return Ok(());
        }
        let mut images = self.image_batch()?;
        let mut products = self.image_batch()?;
        b.clear(B::reborrow(&mut y));
        for coils in self.batches(self.coils) {
            interrupt::check("E^H W E")?;
            let voxels = 0..coils.len() * self.voxels;
            self.multiply_maps(coils.clone(), x, b.view_mut(&mut images).part(voxels.clone()))?;
            toeplitz.apply(
                b,
                0..1,
                b.view(&images).part(voxels.clone()),
                b.view_mut(&mut products).part(voxels.clone()),
            );
            self.add_maps(coils, b.view(&products).part(voxels), B::reborrow(&mut y))?;
        }
        Ok(())
    }

    /// y = sum_l D_l^H sum_c S_c^H T_l S_c D_l x, with as many nodes l at once as there is room for.
    fn convolve_nodes(&self, toeplitz: &Toeplitz<T, B>, x: Complexes<B, T>, mut y: ComplexesMut<B, T>) -> Result<()> {
        let b = self.b();
        let (n, at_once) = (self.voxels, self.nodes_at_once);
        let image = || self.node_images.try_take(|| b.unwritten(at_once * n, "images of nodes"));
        let coil_image = || {
            let images = at_once * self.batch * n;
            self.node_coil_images.try_take(|| b.unwritten(images, "coil images of nodes"))
        };
        let (mut before, mut after) = (image()?, image()?);
        let mut coil_images = if self.combined() { Some((coil_image()?, coil_image()?)) } else { None };
        let waves = toeplitz.waves.as_ref().expect("there are nodes");
        b.clear(B::reborrow(&mut y));
        for first in (0..toeplitz.len()).step_by(at_once) {
            interrupt::check("E^H W E")?;
            let nodes = first..(first + at_once).min(toeplitz.len());
            let (waves, all) = (b.view(waves).part(nodes.start * n..nodes.end * n), 0..nodes.len() * n);
            b.multiply(waves, B::shorten(x), b.view_mut(&mut before).part(all.clone()));
            match &mut coil_images {
                None => {
                    let to = b.view_mut(&mut after).part(all.clone());
                    toeplitz.apply(b, nodes, b.view(&before).part(all.clone()), to);
                }
                Some((images, products)) => {
                    b.clear(b.view_mut(&mut after).part(all.clone()));
                    for coils in self.batches(self.coils) {
                        interrupt::check("E^H W E")?;
                        // Images of one node, and of all of these nodes.
                        let (count, every) = (coils.len() * n, 0..nodes.len() * coils.len() * n);
                        let of = |i: usize| i * count..(i + 1) * count;
                        self.with_maps(coils.clone(), |maps| {
                            for i in 0..nodes.len() {
                                let image = b.view(&before).part(i * n..(i + 1) * n);
                                b.multiply(maps, image, b.view_mut(images).part(of(i)));
                            }
                        })?;
                        let to = b.view_mut(products).part(every.clone());
                        toeplitz.apply(b, nodes.clone(), b.view(images).part(every), to);
                        self.with_maps(coils, |maps| {
                            for i in 0..nodes.len() {
                                let image = b.view_mut(&mut after).part(i * n..(i + 1) * n);
                                b.add_conj_products(maps, b.view(products).part(of(i)), image);
                            }
                        })?;
                    }
                }
            }
            b.add_conj_products(waves, b.view(&after).part(all), B::reborrow(&mut y));
        }
        Ok(())
    }

    fn normal_by_transforms(&self, x: Complexes<B, T>, mut y: ComplexesMut<B, T>) -> Result<()> {
        let b = self.b();
        let mut values = self.sample_batch()?;
        let mut weighed = self.weighting.squared().map(|_| self.sample_batch()).transpose()?;
        let mut images = self.combined().then(|| self.image_batch()).transpose()?;
        if self.combined() {
            b.clear(B::reborrow(&mut y));
        }
        for coils in self.batches(if self.combined() { self.coils } else { 1 }) {
            interrupt::check("E^H W E")?;
            let (range, voxels) = (0..coils.len() * self.samples, 0..coils.len() * self.voxels);
            let coil_images = match &mut images {
                Some(images) => {
                    self.multiply_maps(coils.clone(), x, b.view_mut(images).part(voxels.clone()))?;
                    b.view(images).part(voxels.clone())
                }
                None => B::shorten(x),
            };
            self.to_samples(coil_images, b.view_mut(&mut values).part(range.clone()))?;
            let mut samples = b.view(&values).part(range.clone());
            if let (Some(squared), Some(weighed)) = (self.weighting.squared(), &mut weighed) {
                b.apply_weights(b.view(squared), samples, b.view_mut(weighed).part(range.clone()));
                samples = b.view(weighed).part(range);
            }
            match &mut images {
                Some(images) => {
                    self.to_image(samples, b.view_mut(images).part(voxels.clone()))?;
                    self.add_maps(coils, b.view(images).part(voxels), B::reborrow(&mut y))?;
                }
                None => self.to_image(samples, B::reborrow(&mut y))?,
            }
        }
        Ok(())
    }

    /// Whether E^H W E goes through Q: as the caller asked, or by cost.
    pub fn uses_toeplitz(&self) -> bool {
        self.through_q
    }

    pub(super) fn goes_through_q(b: &B, normal: Normal, size: &ScanSize, limit: &MemoryLimit, chosen: &Chosen) -> bool {
        match normal {
            _ if size.listed.is_some() => false,
            Normal::Toeplitz => true,
            Normal::Transforms => false,
            // More nodes than are made.
            Normal::Auto if chosen.terms.is_some() && chosen.nodes().is_none() => false,
            // Q and, while it is made, the complex doubled grid must fit.
            Normal::Auto if limit.check(Self::q_bytes(b, size, chosen), "Q").is_err() => false,
            Normal::Auto => match &chosen.window {
                None => true,
                Some(c) => {
                    let transform = b.transform_cost(&c.grid, &size.dims, size.samples, c.shape.width());
                    let terms = |some: Option<&Segments>| some.map_or(1.0, |some| some.len() as f64);
                    let through_q = b.convolution_cost(&size.dims) * terms(chosen.nodes());
                    through_q < 2.0 * transform * terms(chosen.segments())
                }
            },
        }
    }

    /// Q's convolution, made when it is first wanted; None where transforms serve.
    pub fn toeplitz(&self) -> Result<Option<Arc<Toeplitz<T, B>>>> {
        if !self.uses_toeplitz() {
            return Ok(None);
        }
        let slot = || self.weighting.toeplitz.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(made) = &*slot() {
            return Ok(Some(made.clone()));
        }
        // One thread makes it, the others wait. Who only asks whether there is Q does not.
        let _one = self.weighting.making_q.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(made) = &*slot() {
            return Ok(Some(made.clone()));
        }
        self.limit.check(Self::q_bytes(self.b(), &self.size(), &self.chosen), "Q")?;
        let made = Arc::new(Toeplitz::new(self.b(), &self.dims, self.node_count(), self.q_octants()?, self.waves()?)?);
        *slot() = Some(made.clone());
        Ok(Some(made))
    }

    /// Bytes of Q and, while it is made, of one half of the doubled grid and a part of it.
    fn q_bytes(b: &B, size: &ScanSize, chosen: &Chosen) -> usize {
        chosen.bytes_of_q::<T, B>(b, size).saturating_add(making_bytes::<T>(&size.dims))
    }

    /// Convolutions that E^H W E is the sum of.
    pub(super) fn node_count(&self) -> usize {
        self.chosen.nodes().map_or(1, Segments::len)
    }

    /// The factors of voxels for the nodes of E^H W E.
    pub(super) fn waves(&self) -> Result<Option<B::Array<Complex<T>>>> {
        match (&self.field, self.chosen.nodes()) {
            (Some(field), Some(nodes)) => field.waves_at(self.b(), nodes).map(Some),
            _ => Ok(None),
        }
    }

    /// The voxel basis at a sample.
    fn phi(&self, m: usize) -> f64 {
        basis_factor(self.basis, self.trajectory.coordinates.iter().map(|k| k[m].wide()))
    }

    pub(super) fn squared_weight(&self, m: usize) -> f64 {
        let phi = self.phi(m);
        phi * phi * self.weighting.weights.as_ref().map_or(1.0, |w| w[m].wide())
    }

    /// Makes octants of Q, of one node with off-resonance: see [`octant_shift`].
    pub(super) fn q_octants(&self) -> Result<impl FnMut(usize, [bool; 3], ComplexesMut<B, T>) -> Result<()> + '_> {
        let b = self.b();
        let k: Vec<B::Array<T>> =
            self.trajectory.coordinates.iter().map(|k| b.upload(k, "the coordinates")).collect::<Result<_>>()?;
        let mut values = b.unwritten::<Complex<T>>(self.samples, "the weights of Q")?;
        // Sums without off-resonance, where the plan's own have it.
        let plain = match (&self.trajectory.transform, &self.field) {
            (Transform::Exact(_), Some(_)) => {
                Some(b.direct_sum(&self.trajectory.axes(), &self.dims, None, None, 0.0)?)
            }
            _ => None,
        };
        let mut of_node: Option<(usize, B::Array<T>)> = None;
        Ok(move |node, half, image: ComplexesMut<B, T>| {
            interrupt::check("Q")?;
            let k: Vec<Reals<B, T>> = k.iter().map(|k| b.view(k)).collect();
            if let (Some(nodes), Some(times)) = (self.chosen.nodes(), &self.trajectory.times) {
                if of_node.as_ref().is_none_or(|(made, _)| *made != node) {
                    let weight = |m: usize| self.squared_weight(m) * nodes.weight(node, times[m].wide());
                    of_node = factors(b, true, self.samples, weight)?.map(|weights| (node, weights));
                }
            }
            let squared = of_node.as_ref().map(|(_, weights)| weights).or(self.weighting.squared());
            b.ramp(&k, &octant_shift(&self.dims, half), squared.map(|w| b.view(w)), b.view_mut(&mut values));
            match (&self.trajectory.transform, &plain) {
                (_, Some(plain)) => b.sum_to_image(plain, b.view(&values), image),
                (Transform::Segmented(segmented), _) => segmented.nufft.adjoint(b, b.view(&values), image),
                _ => self.to_image(b.view(&values), image),
            }
        })
    }

    /// The sum of the samples' weights in E^H W E: its diagonal, without coil maps, in the mean over voxels.
    pub fn weight_sum(&self) -> f64 {
        let sum = |range: Range<usize>| range.map(|m| self.squared_weight(m)).sum::<f64>();
        let all = fold(self.b().workers(), self.samples, 0.0, sum, |a, b| a + b);
        let (Some(field), Some(times)) = (&self.field, &self.trajectory.times) else { return all };
        all * field.mean_decay(self.samples, |m| (self.squared_weight(m), times[m].wide()))
    }

    /// sum_c |S_c|^2 of each voxel, with coil maps.
    pub fn map_energies(&self) -> Result<Option<Vec<T>>> {
        if self.maps.is_none() {
            return Ok(None);
        }
        let b = self.b();
        let mut sum = self.image()?;
        b.clear(b.view_mut(&mut sum));
        for coils in self.batches(self.coils) {
            self.with_maps(coils, |maps| b.add_conj_products(maps, maps, b.view_mut(&mut sum)))?;
        }
        let mut host = try_vec(self.voxels, Complex::default(), "the energies of coil maps")?;
        b.download(b.view(&sum), &mut host)?;
        collect(b.workers(), self.voxels, "the energies of coil maps", |i| host[i].re).map(Some)
    }

    pub(super) fn key(&self) -> Key {
        let field = match (&self.field, &self.trajectory.times, self.chosen.nodes()) {
            (Some(field), Some(times), Some(nodes)) => Some((field.fingerprint, &times[..], &nodes.nodes[..])),
            _ => None,
        };
        Key::new(&self.trajectory.axes(), &self.dims, |m| self.squared_weight(m), field)
    }

    /// Filtered backprojection, for spokes in a 2D image.
    fn fbp(&self) -> Result<Arc<FilteredBackprojection<T, B>>> {
        self.check_no_field("there is no filtered backprojection")?;
        if self.listed {
            bail!(Unsupported, "filtered backprojection makes whole images: create the plan without a list of voxels");
        }
        let mut slot = self.trajectory.fbp.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(made) = &*slot {
            return Ok(made.clone());
        }
        let k = self.trajectory.axes();
        let spokes = Spokes::of(&k, &self.dims)?;
        let bytes = fbp::bytes(self.b(), self.samples, spokes.readout, &self.dims, self.batch);
        self.limit().check(bytes, "filtered backprojection")?;
        let made = Arc::new(FilteredBackprojection::new(self.b(), spokes, &self.dims, self.batch)?);
        *slot = Some(made.clone());
        Ok(made)
    }

    /// Weights for gridding: the caller's, or Pipe and Menon's, scaled so that an object keeps its scale; times phi.
    pub(super) fn gridding_weights(&self) -> Result<Arc<B::Array<T>>> {
        let mut slot = self.weighting.gridding.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(made) = &*slot {
            return Ok(made.clone());
        }
        let workers = self.b().workers();
        let k = self.trajectory.axes();
        let weights = match &self.weighting.weights {
            Some(w) => {
                let scale = gridding_scale(workers, &k, &self.dims, |m| w[m].wide())?;
                collect(workers, w.len(), "the density weights", |m| T::of(w[m].wide() * scale))?
            }
            None => {
                log::info!("no density weights given: computing them by the method of Pipe and Menon");
                density::weights(self.b(), &k, &self.dims, Density::default(), None)?
            }
        };
        let values = collect(workers, self.samples, "the density weights", |m| T::of(weights[m].wide() * self.phi(m)))?;
        let made = Arc::new(self.b().upload(&values, "the density weights")?);
        *slot = Some(made.clone());
        Ok(made)
    }
}

/// The mean, over voxels that a coil sees, of sum_c |S_c|^2, which several groups of coils add up to; 1 without coil
/// maps.
pub(crate) fn mean_energy<T: Real>(workers: &dyn Workers, groups: &[Option<Vec<T>>]) -> f64 {
    let maps: Vec<&[T]> = groups.iter().flatten().map(|energies| &energies[..]).collect();
    let Some(first) = maps.first() else { return 1.0 };
    let energy = |i: usize| maps.iter().map(|energies| energies[i].wide()).sum::<f64>();
    let some = |range: Range<usize>| {
        range.map(energy).filter(|&e| e > 0.0).fold((0.0, 0usize), |(sum, seen), e| (sum + e, seen + 1))
    };
    let (sum, seen) = fold(workers, first.len(), (0.0, 0), some, |a, b| (a.0 + b.0, a.1 + b.1));
    sum / seen.max(1) as f64
}

/// The caller's memory limit, and what the plan holds already.
#[derive(Clone, Copy)]
pub(crate) struct MemoryLimit {
    pub(super) bytes: Option<usize>,
    pub(super) held: usize,
}

impl MemoryLimit {
    pub fn check(&self, extra: usize, what: &str) -> Result<()> {
        let needed = self.held.saturating_add(extra);
        match self.bytes {
            Some(limit) if needed > limit => bail!(
                MemoryLimit,
                "{what} needs {needed} bytes, but the memory limit is {limit}: raise the limit to {needed}, or use a \
                 smaller problem"
            ),
            _ => Ok(()),
        }
    }
}

/// phi(k) of a voxel basis.
fn basis_factor(basis: VoxelBasis, k: impl Iterator<Item = f64>) -> f64 {
    match basis {
        VoxelBasis::Point => 1.0,
        VoxelBasis::Box => k
            .map(|k| {
                let a = std::f64::consts::PI * k;
                if a == 0.0 {
                    1.0
                } else {
                    a.sin() / a
                }
            })
            .product(),
    }
}
