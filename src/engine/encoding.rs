//! The encoding operator E of an MR scan, its adjoint and E^H W E, in the memory of a backend: coils, weights and voxel
//! basis around the transform between k-space and one image. Written once, over the backend's primitives.

use super::interface::{Change, CHANGING, MAKING};
use super::memory::Needs;
use crate::backend::{Backend, Complexes, ComplexesMut, Reals, Source, Span};
use crate::base::buffer_pool::{Lease, Pool};
use crate::base::error::{bail, checked_product, try_collect, try_vec, ErrorKind, Result};
use crate::base::geometry::{Geometry, VoxelBasis};
use crate::base::interrupt;
use crate::base::memory::Aligned;
use crate::base::options::{Normal, Options};
use crate::base::real::Real;
use crate::base::scan_size::ScanSize;
use crate::base::workers::{collect, copied, fold, Workers};
use crate::nufft::choice::Choice;
use crate::nufft::toeplitz::{making_bytes, octant_shift, Key, Toeplitz};
use crate::nufft::Nufft;
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
    /// Whether E^H W E goes through Q.
    through_q: bool,
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
    fn new(backend: &B, k: &[&[T]], basis: VoxelBasis, transform: Transform<T, B>) -> Result<Self> {
        let samples = k[0].len();
        let coordinates = copied(backend.workers(), k, "the coordinates")?;
        let phi = |m: usize| basis_factor(basis, k.iter().map(|k| k[m].wide()));
        let phi = factors(backend, basis == VoxelBasis::Box, samples, phi)?;
        Ok(Along { transform, coordinates, phi, fbp: Mutex::default() })
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
    /// `choice` is what [`Nufft::choose`] chose, or None for exact sums.
    pub fn new(backend: Arc<B>, geometry: &Geometry<'_, T>, options: &Options, choice: Option<Choice>) -> Result<Self> {
        let k = &geometry.coordinates;
        let size = ScanSize::lengths(geometry);
        let (batch, mut limit) = Self::counted(&backend, &size, options, choice.as_ref())?;
        let maps = geometry.coil_maps.map(|maps| Self::new_maps(&backend, maps, &size, &limit)).transpose()?;
        limit.held += Self::bytes_of_maps(&backend, maps.as_deref());
        interrupt::check(MAKING)?;
        let (listed, samples) = (geometry.voxels.is_some(), geometry.samples());
        let through_q =
            Self::goes_through_q(&backend, options.normal, listed, &limit, &geometry.dims, samples, choice.as_ref());
        let transform = match choice {
            None => Self::exact(&backend, k, &geometry.dims, geometry.voxels.as_deref(), options)?,
            Some(choice) => Transform::Nufft(Nufft::new(&*backend, k, &geometry.dims, choice, batch)?),
        };
        let trajectory = Along::new(&*backend, k, geometry.basis, transform)?;
        let weighting = Weighed::new(&*backend, k, geometry.basis, geometry.weights)?;
        Ok(Encoding {
            dims: geometry.dims.clone(),
            listed,
            voxels: geometry.voxel_count(),
            samples,
            coils: geometry.coils,
            frames: geometry.frames,
            basis: geometry.basis,
            batch,
            trajectory: Arc::new(trajectory),
            weighting: Arc::new(weighting),
            maps,
            through_q,
            limit,
            images: Arc::default(),
            image_batches: Arc::default(),
            sample_batches: Arc::default(),
            backend,
        })
    }

    /// How many coils are transformed at once, and the caller's memory limit, which leaves room for the plan.
    pub fn counted(b: &B, size: &ScanSize, options: &Options, choice: Option<&Choice>) -> Result<(usize, MemoryLimit)> {
        let batch = Self::batch(b, size, options, choice)?;
        let held = Self::bytes(&Needs::new(b, size, choice, batch)?);
        let limit = MemoryLimit { bytes: options.memory_limit, held };
        limit.check(0, "the plan")?;
        Ok((batch, limit))
    }

    fn exact(b: &B, k: &[&[T]], dims: &[usize], voxels: Option<&[&[T]]>, options: &Options) -> Result<Transform<T, B>> {
        b.direct_sum(k, dims, voxels, None, options.tolerance).map(Transform::Exact)
    }

    /// Coil maps in the backend's memory, where there will be room for Q and the vectors of conjugate gradients too.
    fn new_maps(b: &B, maps: &[Complex<T>], size: &ScanSize, limit: &MemoryLimit) -> Result<Arc<Maps<T, B>>> {
        let vectors = size.voxels().saturating_mul((4 + size.frames) * size_of::<Complex<T>>());
        let q = if size.listed.is_some() { 0 } else { Self::q_bytes(b, &size.dims) };
        Maps::new(b, maps, limit, q.saturating_add(vectors)).map(Arc::new)
    }

    /// Bytes of coil maps beside those that [`Encoding::bytes`] counts: where they are sent, there are none.
    fn bytes_of_maps(b: &B, maps: Option<&Maps<T, B>>) -> usize {
        match maps {
            Some(Maps::There(maps)) if b.is_gpu() => b.view(maps).len().saturating_mul(size_of::<Complex<T>>()),
            _ => 0,
        }
    }

    /// The window and the grid after a change: chosen anew where the number of samples is another.
    pub fn choice_after(&self, change: Change<'_, T>, options: &Options) -> Result<Option<Choice>> {
        match (change, self.choice()) {
            (Change::Trajectory(geometry), Some(_)) if geometry.samples() != self.samples => {
                Nufft::<T, B>::choose(self.b(), options.into(), &self.dims, geometry.samples()).map(Some)
            }
            (_, choice) => Ok(choice.cloned()),
        }
    }

    /// The encoding after a change, which shares with this one what the change leaves as it is. `options` are those
    /// that this one was made with, `choice` is that of [`Encoding::choice_after`].
    pub fn with_change(&self, change: Change<'_, T>, options: &Options, choice: Option<Choice>) -> Result<Self> {
        let b = self.b();
        let mut size = self.size();
        match change {
            Change::Trajectory(geometry) => {
                (size.samples, size.weights) = (geometry.samples(), geometry.weights.is_some());
            }
            Change::Weights(weights) => size.weights = weights.is_some(),
            Change::CoilMaps(_) => {}
        }
        let (same_choice, same_count) = (choice.as_ref() == self.choice(), size.samples == self.samples);
        let batch = if same_choice { self.batch } else { Self::batch(b, &size, options, choice.as_ref())? };
        let needs = Needs::new(b, &size, choice.as_ref(), batch)?;
        let new_maps = change.coil_maps();
        let maps_here = Self::bytes_of_maps(b, self.maps.as_deref());
        let mut limit =
            MemoryLimit { bytes: options.memory_limit, held: Self::bytes(&needs).saturating_add(maps_here) };
        limit.check(0, "the plan")?;
        // Until the change is made, what was before is there as well.
        let anew = match change {
            Change::Trajectory(_) => {
                let kept = choice.as_ref().filter(|_| same_choice);
                let points = kept.map(|c| Nufft::<T, B>::bytes_of_samples(b, c, size.samples, batch));
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
                Some(Self::new_maps(b, maps, &size, &before)?)
            }
            None => self.maps.clone(),
        };
        limit.held = limit.held - maps_here + Self::bytes_of_maps(b, maps.as_deref());
        interrupt::check(CHANGING)?;
        let (normal, samples) = (options.normal, size.samples);
        let through_q = Self::goes_through_q(b, normal, self.listed, &limit, &self.dims, samples, choice.as_ref());
        let (trajectory, weighting) = match change {
            Change::Trajectory(geometry) => {
                let k = &geometry.coordinates;
                let transform = match (choice, self.nufft()) {
                    (Some(_), Some(nufft)) if same_choice && batch == self.batch => {
                        Transform::Nufft(nufft.with_samples(b, k)?)
                    }
                    (Some(choice), _) => Transform::Nufft(Nufft::new(b, k, &self.dims, choice, batch)?),
                    (None, _) => Self::exact(b, k, &self.dims, geometry.voxels.as_deref(), options)?,
                };
                let trajectory = Arc::new(Along::new(b, k, self.basis, transform)?);
                (trajectory, Arc::new(Weighed::new(b, k, self.basis, geometry.weights)?))
            }
            Change::Weights(weights) => {
                let weighting = Weighed::new(b, &self.trajectory.axes(), self.basis, weights)?;
                (self.trajectory.clone(), Arc::new(weighting))
            }
            Change::CoilMaps(_) => (self.trajectory.clone(), self.weighting.clone()),
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
            through_q,
            limit,
            images: self.images.clone(),
            image_batches: if same_batches { self.image_batches.clone() } else { Arc::default() },
            sample_batches: if same_batches && same_count { self.sample_batches.clone() } else { Arc::default() },
            ..*self
        })
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
            ..ScanSize::new(&self.dims, self.samples)
        }
    }

    /// The backend.
    pub fn b(&self) -> &B {
        &self.backend
    }

    /// How many coils are transformed at once, so that taps are computed once for all of them: as many as stay in cache
    /// between one step and the next.
    pub(super) fn batch(b: &B, size: &ScanSize, options: &Options, choice: Option<&Choice>) -> Result<usize> {
        let Some(choice) = choice else { return Ok(1) };
        let arrays = if size.coil_maps { size.coils } else { size.coils.saturating_mul(size.frames) };
        let one = checked_product(&[&choice.grid[..], &[size_of::<Complex<T>>()]].concat(), "the oversampled grid")?;
        // Under a memory limit one at a time: a batch must not take what a later operation will need. Else batches of
        // equal size.
        let most = if options.memory_limit.is_some() { 1 } else { (b.batch_bytes() / one.max(1)).clamp(1, arrays) };
        Ok(arrays.div_ceil(arrays.div_ceil(most)))
    }

    /// Bytes that a plan holds and its transforms work in, before it is made. Maps that do not fit on a GPU are sent
    /// when they are wanted.
    pub(super) fn bytes(needs: &Needs) -> usize {
        needs.held_without_maps().saturating_add(needs.working(true))
    }

    /// Bytes that a plan with `choice` takes for transforms, where it computes and on the host.
    pub fn transform_bytes(b: &B, size: &ScanSize, options: &Options, choice: &Choice) -> Result<[usize; 2]> {
        let needs = Needs::new(b, size, Some(choice), Self::batch(b, size, options, Some(choice))?)?;
        Ok([Self::bytes(&needs), if b.is_gpu() { needs.kept() } else { 0 }])
    }

    /// Bytes that the plan holds in the host's memory, Q included once it is made.
    pub fn host_bytes(&self) -> usize {
        if !self.b().is_gpu() {
            return self.bytes_held();
        }
        // What it keeps of the geometry.
        self.samples * size_of::<T>() * (self.dims.len() + self.weighting.weights.iter().len())
    }

    /// The caller's memory limit, and what the plan holds by now.
    pub fn limit(&self) -> MemoryLimit {
        MemoryLimit { held: self.bytes_held(), ..self.limit }
    }

    /// Bytes that the plan holds where it computes, Q included once it is made.
    fn bytes_held(&self) -> usize {
        let q = self.weighting.toeplitz.lock().unwrap_or_else(|e| e.into_inner()).is_some();
        self.limit.held + if q { self.b().convolver_bytes(&self.dims) } else { 0 }
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
        }
    }

    /// Window and grid, unless sums are exact.
    pub fn choice(&self) -> Option<&Choice> {
        self.nufft().map(Nufft::choice)
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
            Transform::Exact(d) => self.b().sum_to_image(d, values, image),
        }
    }

    pub(super) fn to_samples(&self, image: Complexes<B, T>, values: ComplexesMut<B, T>) -> Result<()> {
        match &self.trajectory.transform {
            Transform::Nufft(n) => n.forward(self.b(), image, values),
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
        let mut room = fbp.as_ref().map(|fbp| fbp.room(b)).transpose()?;
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
        if self.maps.is_none() {
            toeplitz.apply(b, x, y);
            return Ok(());
        }
        let mut images = self.image_batch()?;
        let mut products = self.image_batch()?;
        b.clear(B::reborrow(&mut y));
        for coils in self.batches(self.coils) {
            interrupt::check("E^H W E")?;
            let voxels = 0..coils.len() * self.voxels;
            self.multiply_maps(coils.clone(), x, b.view_mut(&mut images).part(voxels.clone()))?;
            toeplitz.apply(b, b.view(&images).part(voxels.clone()), b.view_mut(&mut products).part(voxels.clone()));
            self.add_maps(coils, b.view(&products).part(voxels), B::reborrow(&mut y))?;
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

    pub(super) fn goes_through_q(
        b: &B,
        normal: Normal,
        listed: bool,
        limit: &MemoryLimit,
        dims: &[usize],
        samples: usize,
        choice: Option<&Choice>,
    ) -> bool {
        match normal {
            _ if listed => false,
            Normal::Toeplitz => true,
            Normal::Transforms => false,
            // Q and, while it is made, the complex doubled grid must fit.
            Normal::Auto if limit.check(Self::q_bytes(b, dims), "Q").is_err() => false,
            Normal::Auto => match choice {
                None => true,
                Some(c) => {
                    let through_grid = 2.0 * b.transform_cost(&c.grid, dims, samples, c.shape.width());
                    b.convolution_cost(dims) < through_grid
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
        self.limit.check(Self::q_bytes(self.b(), &self.dims), "Q")?;
        let made = Arc::new(Toeplitz::new(self.b(), &self.dims, self.q_octants()?)?);
        *slot() = Some(made.clone());
        Ok(Some(made))
    }

    /// Bytes of Q and, while it is made, of one half of the doubled grid and a part of it.
    fn q_bytes(b: &B, dims: &[usize]) -> usize {
        b.convolver_bytes(dims).saturating_add(making_bytes::<T>(dims))
    }

    /// The voxel basis at a sample.
    fn phi(&self, m: usize) -> f64 {
        basis_factor(self.basis, self.trajectory.coordinates.iter().map(|k| k[m].wide()))
    }

    pub(super) fn squared_weight(&self, m: usize) -> f64 {
        let phi = self.phi(m);
        phi * phi * self.weighting.weights.as_ref().map_or(1.0, |w| w[m].wide())
    }

    /// Makes octants of Q: see [`octant_shift`].
    pub(super) fn q_octants(&self) -> Result<impl FnMut([bool; 3], ComplexesMut<B, T>) -> Result<()> + '_> {
        let b = self.b();
        let k: Vec<B::Array<T>> =
            self.trajectory.coordinates.iter().map(|k| b.upload(k, "the coordinates")).collect::<Result<_>>()?;
        let mut values = b.unwritten::<Complex<T>>(self.samples, "the weights of Q")?;
        Ok(move |half, image: ComplexesMut<B, T>| {
            interrupt::check("Q")?;
            let k: Vec<Reals<B, T>> = k.iter().map(|k| b.view(k)).collect();
            let squared = self.weighting.squared().map(|w| b.view(w));
            b.ramp(&k, &octant_shift(&self.dims, half), squared, b.view_mut(&mut values));
            self.to_image(b.view(&values), image)
        })
    }

    /// The sum of the samples' weights in E^H W E: its diagonal, without coil maps.
    pub fn weight_sum(&self) -> f64 {
        let sum = |range: Range<usize>| range.map(|m| self.squared_weight(m)).sum::<f64>();
        fold(self.b().workers(), self.samples, 0.0, sum, |a, b| a + b)
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
        Key::new(&self.trajectory.axes(), &self.dims, |m| self.squared_weight(m))
    }

    /// Filtered backprojection, for spokes in a 2D image.
    fn fbp(&self) -> Result<Arc<FilteredBackprojection<T, B>>> {
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
