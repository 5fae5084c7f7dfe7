//! The normal operator E^H W E: by convolution with Q, or by a forward and an adjoint transform.

use super::super::memory::MemoryLimit;
use super::super::transform_params::TransformParams;
use super::state::EncodingTransform;
use super::Encoding;
use crate::backend::{Backend, Complexes, ComplexesMut, Reals, Span};
use crate::base::error::{try_vec, Result};
use crate::base::interrupt;
use crate::base::options::Normal;
use crate::base::real::Real;
use crate::base::scan_size::ScanSize;
use crate::base::workers::{collect, fold, Workers};
use crate::nufft::time_segments::TimeSegments;
use crate::nufft::toeplitz::{construction_bytes, octant_shift, QKey, Toeplitz};
use num_complex::Complex;
use std::ops::Range;
use std::sync::Arc;

impl<T: Real, B: Backend<T>> Encoding<T, B> {
    /// Computes y = E^H W E x for one image in the backend's memory. Without coil maps, the image may be that of any
    /// coil.
    pub fn apply_normal(&self, x: Complexes<B, T>, mut y: ComplexesMut<B, T>) -> Result<()> {
        let b = self.b();
        let Some(toeplitz) = self.toeplitz()? else { return self.normal_by_transforms(x, y) };
        if toeplitz.voxel_factors.is_some() {
            return self.convolve_nodes(&toeplitz, x, y);
        }
        if !self.combines_coils() {
            toeplitz.apply(b, 0..1, x, y);
            return Ok(());
        }
        let mut images = self.image_batch()?;
        let mut products = self.image_batch()?;
        b.clear(B::reborrow(&mut y));
        for coils in self.batches(self.coils) {
            interrupt::check("E^H W E")?;
            let voxels = 0..coils.len() * self.voxels;
            self.with_coil_maps(coils, |maps| {
                let scratch = [&mut images, &mut products].map(|array| b.view_mut(array).part(voxels.clone()));
                toeplitz.add_coils(b, maps, B::shorten(x), scratch, B::reborrow(&mut y));
            })?;
        }
        Ok(())
    }

    /// Computes y = sum_l D_l^H sum_c S_c^H T_l S_c D_l x. Up to `node_batch_size` nodes l are processed at once.
    fn convolve_nodes(&self, toeplitz: &Toeplitz<T, B>, x: Complexes<B, T>, mut y: ComplexesMut<B, T>) -> Result<()> {
        let b = self.b();
        let (n, node_batch_size) = (self.voxels, self.execution.node_batch_size);
        let image = || self.buffers.node_image.try_take(|| b.unwritten(node_batch_size * n, "images of nodes"));
        let coil_image = || {
            let len = node_batch_size * self.execution.batch_size * n;
            self.buffers.node_coil_image.try_take(|| b.unwritten(len, "coil images of nodes"))
        };
        let (mut inputs, mut outputs) = (image()?, image()?);
        let mut coil_buffers = if self.combines_coils() { Some((coil_image()?, coil_image()?)) } else { None };
        let factors = toeplitz.voxel_factors.as_ref().expect("there are nodes");
        b.clear(B::reborrow(&mut y));
        for first in (0..toeplitz.len()).step_by(node_batch_size) {
            interrupt::check("E^H W E")?;
            let nodes = first..(first + node_batch_size).min(toeplitz.len());
            let (factors, all) = (b.view(factors).part(nodes.start * n..nodes.end * n), 0..nodes.len() * n);
            b.multiply(factors, B::shorten(x), b.view_mut(&mut inputs).part(all.clone()));
            match &mut coil_buffers {
                None => {
                    let to = b.view_mut(&mut outputs).part(all.clone());
                    toeplitz.apply(b, nodes, b.view(&inputs).part(all.clone()), to);
                }
                Some((images, products)) => {
                    b.clear(b.view_mut(&mut outputs).part(all.clone()));
                    for coils in self.batches(self.coils) {
                        interrupt::check("E^H W E")?;
                        // Elements of one node, and of all nodes of this batch.
                        let (count, total) = (coils.len() * n, 0..nodes.len() * coils.len() * n);
                        let node_range = |i: usize| i * count..(i + 1) * count;
                        self.with_coil_maps(coils.clone(), |maps| {
                            for i in 0..nodes.len() {
                                let image = b.view(&inputs).part(i * n..(i + 1) * n);
                                b.multiply(maps, image, b.view_mut(images).part(node_range(i)));
                            }
                        })?;
                        let to = b.view_mut(products).part(total.clone());
                        toeplitz.apply(b, nodes.clone(), b.view(images).part(total), to);
                        self.with_coil_maps(coils, |maps| {
                            for i in 0..nodes.len() {
                                let image = b.view_mut(&mut outputs).part(i * n..(i + 1) * n);
                                b.add_conj_products(maps, b.view(products).part(node_range(i)), image);
                            }
                        })?;
                    }
                }
            }
            b.add_conj_products(factors, b.view(&outputs).part(all), B::reborrow(&mut y));
        }
        Ok(())
    }

    /// Computes y = E^H W E x by a forward and an adjoint transform.
    fn normal_by_transforms(&self, x: Complexes<B, T>, mut y: ComplexesMut<B, T>) -> Result<()> {
        let b = self.b();
        let mut values = self.sample_batch()?;
        let mut weighted = self.weighting.normal_weights().map(|_| self.sample_batch()).transpose()?;
        let mut images = self.combines_coils().then(|| self.image_batch()).transpose()?;
        if self.combines_coils() {
            b.clear(B::reborrow(&mut y));
        }
        for coils in self.batches(if self.combines_coils() { self.coils } else { 1 }) {
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
            if let (Some(weights), Some(weighted)) = (self.weighting.normal_weights(), &mut weighted) {
                b.apply_weights(b.view(weights), samples, b.view_mut(weighted).part(range.clone()));
                samples = b.view(weighted).part(range);
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

    /// Returns whether E^H W E is computed by convolution with Q.
    pub fn uses_toeplitz(&self) -> bool {
        self.execution.use_toeplitz
    }

    /// Decides whether E^H W E is computed by convolution with Q: as the caller requested, or by estimated cost.
    pub fn selects_toeplitz(
        b: &B,
        normal: Normal,
        size: &ScanSize,
        limit: &MemoryLimit,
        params: &TransformParams,
    ) -> bool {
        match normal {
            _ if size.listed.is_some() => false,
            Normal::Toeplitz => true,
            Normal::Transforms => false,
            // More nodes than the maximum would be needed.
            Normal::Auto if params.terms.is_some() && params.nodes().is_none() => false,
            // Q must fit together with the complex doubled grid that its computation needs.
            Normal::Auto if limit.check(Self::q_bytes(b, size, params), "Q").is_err() => false,
            Normal::Auto => match &params.gridding {
                None => true,
                Some(gridding) => {
                    let width = gridding.shape.width();
                    let transform = b.transform_cost(&gridding.grid, &size.dims, size.samples, width);
                    let terms = |terms: Option<&TimeSegments>| terms.map_or(1.0, |terms| terms.len() as f64);
                    let convolution = b.convolution_cost(&size.dims) * terms(params.nodes());
                    convolution < 2.0 * transform * terms(params.segments())
                }
            },
        }
    }

    /// Returns the convolution with Q, computing it on first use; `None` if E^H W E is computed by transforms.
    pub fn toeplitz(&self) -> Result<Option<Arc<Toeplitz<T, B>>>> {
        if !self.uses_toeplitz() {
            return Ok(None);
        }
        let slot = || self.weighting.toeplitz.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(toeplitz) = &*slot() {
            return Ok(Some(toeplitz.clone()));
        }
        // One thread computes Q, the others wait for it. Threads that only check whether Q exists do not wait.
        let _init = self.weighting.toeplitz_init.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(toeplitz) = &*slot() {
            return Ok(Some(toeplitz.clone()));
        }
        self.execution.limit.check(Self::q_bytes(self.b(), &self.size(), self.transform_params()), "Q")?;
        let factors = self.node_factors()?;
        let toeplitz = Toeplitz::new(self.b(), &self.dims, self.node_count(), self.q_octants()?, factors)?;
        let toeplitz = Arc::new(toeplitz);
        *slot() = Some(toeplitz.clone());
        Ok(Some(toeplitz))
    }

    /// Returns the bytes of Q and of the arrays that its computation needs: half of the doubled grid and one octant.
    pub(super) fn q_bytes(b: &B, size: &ScanSize, params: &TransformParams) -> usize {
        params.bytes_of_q::<T, B>(b, size).saturating_add(construction_bytes::<T>(&size.dims))
    }

    /// Returns the number of convolutions whose sum is E^H W E.
    pub fn node_count(&self) -> usize {
        self.transform_params().nodes().map_or(1, TimeSegments::len)
    }

    /// Computes the voxel factors of the nodes of E^H W E, [voxels, nodes]; `None` without off-resonance and decay.
    pub fn node_factors(&self) -> Result<Option<B::Array<Complex<T>>>> {
        match (&self.field, self.transform_params().nodes()) {
            (Some(field), Some(nodes)) => field.voxel_factors(self.b(), nodes).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns a function that computes one octant of Q, or with off-resonance of the kernel of one node: see
    /// [`octant_shift`].
    pub fn q_octants(&self) -> Result<impl FnMut(usize, [bool; 3], ComplexesMut<B, T>) -> Result<()> + '_> {
        let b = self.b();
        // On the CPU, the plan's own arrays are read in place.
        let on_host = if b.is_gpu() { Vec::new() } else { self.trajectory.axes(b)? };
        let inputs = on_host.into_iter().map(|k| b.input(k.into())).collect::<Result<Vec<_>>>()?;
        let mut values = b.unwritten::<Complex<T>>(self.samples, "the weights of Q")?;
        // Direct sums of the plan include off-resonance, Q needs sums without it.
        let plain_sums = match (&self.trajectory.transform, &self.field) {
            (EncodingTransform::Exact(_), Some(_)) => {
                Some(b.direct_sum(&self.trajectory.axes(b)?, &self.dims, None, None, 0.0)?)
            }
            _ => None,
        };
        let times = self.trajectory.times.as_deref().map(|times| b.upload(times, "the sample times")).transpose()?;
        let mut node_weights: Option<(usize, B::Array<T>)> = None;
        Ok(move |node, half, image: ComplexesMut<B, T>| {
            interrupt::check("Q")?;
            let on_device = self.trajectory.coordinates.iter().filter_map(|k| k.device()).map(|k| b.view(k));
            let k: Vec<Reals<B, T>> = on_device.chain(inputs.iter().map(|k| b.read(k))).collect();
            if let (Some(nodes), Some(times)) = (self.transform_params().nodes(), &times) {
                if node_weights.as_ref().is_none_or(|(previous, _)| *previous != node) {
                    let weights = self.weighting.normal_weights().map(|w| b.view(w));
                    node_weights = Some((node, b.series_values(b.view(times), nodes.series(), node, weights)?));
                }
            }
            let weights = node_weights.as_ref().map(|(_, weights)| weights).or(self.weighting.normal_weights());
            b.ramp(&k, &octant_shift(&self.dims, half), weights.map(|w| b.view(w)), b.view_mut(&mut values));
            match (&self.trajectory.transform, &plain_sums) {
                (_, Some(plain_sums)) => b.sum_to_image(plain_sums, b.view(&values), image),
                (EncodingTransform::Segmented(segmented), _) => segmented.nufft.adjoint(b, b.view(&values), image),
                _ => self.to_image(b.view(&values), image),
            }
        })
    }

    /// Returns the sum of the samples' factors in E^H W E: the mean over voxels of its diagonal, without coil maps.
    pub fn weight_sum(&self) -> Result<f64> {
        let normal_weight = self.normal_weight()?;
        let sum = |range: Range<usize>| range.map(&normal_weight).sum::<f64>();
        let all = fold(self.b().workers(), self.samples, 0.0, sum, |a, b| a + b);
        let (Some(field), Some(times)) = (&self.field, &self.trajectory.times) else { return Ok(all) };
        Ok(all * field.mean_decay(self.samples, |m| (normal_weight(m), times[m].wide())))
    }

    /// Computes sum_c |S_c|^2 of each voxel; `None` without coil maps.
    pub fn map_energies(&self) -> Result<Option<Vec<T>>> {
        if !self.combines_coils() {
            return Ok(None);
        }
        let b = self.b();
        let mut sum = self.image()?;
        b.clear(b.view_mut(&mut sum));
        for coils in self.batches(self.coils) {
            self.with_coil_maps(coils, |maps| b.add_conj_products(maps, maps, b.view_mut(&mut sum)))?;
        }
        let mut host = try_vec(self.voxels, Complex::default(), "the energies of coil maps")?;
        b.download(b.view(&sum), &mut host)?;
        collect(b.workers(), self.voxels, "the energies of coil maps", |i| host[i].re).map(Some)
    }

    /// Returns the key that identifies the input of Q in a file.
    pub fn q_key(&self) -> Result<QKey> {
        let field = match (&self.field, &self.trajectory.times, self.transform_params().nodes()) {
            (Some(field), Some(times), Some(nodes)) => Some((field.fingerprint, &times[..], &nodes.nodes[..])),
            _ => None,
        };
        Ok(QKey::new(&self.trajectory.axes(self.b())?, &self.dims, self.normal_weight()?, field))
    }
}

/// Returns the mean of sum_c |S_c|^2 over all voxels in which it is not 0; 1 without coil maps. `groups` contains the
/// energies of separate groups of coils, which are added.
pub(crate) fn mean_energy<T: Real>(workers: &dyn Workers, groups: &[Option<Vec<T>>]) -> f64 {
    let maps: Vec<&[T]> = groups.iter().flatten().map(|energies| &energies[..]).collect();
    let Some(first) = maps.first() else { return 1.0 };
    let energy = |i: usize| maps.iter().map(|energies| energies[i].wide()).sum::<f64>();
    let partial = |range: Range<usize>| {
        range.map(energy).filter(|&e| e > 0.0).fold((0.0, 0usize), |(sum, seen), e| (sum + e, seen + 1))
    };
    let (sum, seen) = fold(workers, first.len(), (0.0, 0), partial, |a, b| (a.0 + b.0, a.1 + b.1));
    sum / seen.max(1) as f64
}
