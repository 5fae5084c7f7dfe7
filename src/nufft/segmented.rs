//! Transforms with off-resonance and decay, as sums of plain transforms (see [`super::time_segments`]).
//!
//! E = sum_l b_l A c_l, where A is the plain transform. c_l(r) = exp(-(R(r) + i 2 pi f(r)) tau_l) is a factor of each
//! voxel, and b_l(t_m) is a factor of each sample.

use super::time_segments::{TimeSegments, MAX_SEGMENTS};
use super::Nufft;
use crate::backend::{Backend, Complexes, ComplexesMut, Reals, Span};
use crate::base::buffer_pool::{Lease, Pool};
use crate::base::error::{try_vec, Result};
use crate::base::interrupt;
use crate::base::real::{narrow, Real};
use crate::base::sizes::{product, sum};
use crate::base::workers::{each_chunk, SharedSlice};
use num_complex::Complex;
use std::f64::consts::TAU;
use std::sync::Arc;

/// Computes c_l of all voxels, [voxels, l]: phases from `frequencies`, magnitudes from `decay` in host memory. Rates
/// above `max_rate` belong to voxels that no coil sees, or whose signal is 0. They are reduced to `max_rate`, so that
/// all factors are finite.
pub(crate) fn voxel_factors<T: Real, B: Backend<T>>(
    backend: &B,
    nodes: &[f64],
    frequencies: Reals<B, T>,
    decay: Option<&[T]>,
    max_rate: f64,
) -> Result<B::Array<Complex<T>>> {
    const WHAT: &str = "off-resonance of voxels";
    let voxels = frequencies.len();
    let mut voxel_factors = backend.unwritten::<Complex<T>>(voxels * nodes.len(), WHAT)?;
    let mut magnitudes = decay.map(|decay| try_vec(decay.len(), T::ZERO, WHAT)).transpose()?;
    for (l, &tau) in nodes.iter().enumerate() {
        interrupt::check(WHAT)?;
        if let (Some(magnitudes), Some(decay)) = (&mut magnitudes, decay) {
            let shared = SharedSlice::new(magnitudes);
            each_chunk(backend.workers(), decay.len(), |_, range| {
                // SAFETY: chunks do not overlap.
                let magnitudes = unsafe { shared.part(range.start, range.len()) };
                magnitudes
                    .iter_mut()
                    .zip(&decay[range])
                    .for_each(|(magnitude, r)| *magnitude = T::of((-r.wide().min(max_rate) * tau).exp()));
            });
        }
        let magnitudes = magnitudes.as_ref().map(|magnitudes| backend.upload(magnitudes, WHAT)).transpose()?;
        let part = backend.view_mut(&mut voxel_factors).part(l * voxels..(l + 1) * voxels);
        backend.ramp(&[frequencies], &[-tau], magnitudes.as_ref().map(|magnitudes| backend.view(magnitudes)), part);
    }
    Ok(voxel_factors)
}

/// Transforms between samples and an image, with off-resonance or decay.
pub(crate) struct Segmented<T: Real, B: Backend<T>> {
    pub nufft: Nufft<T, B>,
    /// c_l, [voxels, l].
    voxel_factors: Arc<B::Array<Complex<T>>>,
    /// The conjugates of b_l, [samples, l].
    weights: B::Array<Complex<T>>,
    segment_count: usize,
    /// Maximum number of terms transformed at once.
    batch_size: usize,
    samples: usize,
    voxels: usize,
    images: Pool<B::Array<Complex<T>>>,
    values: Pool<B::Array<Complex<T>>>,
}

impl<T: Real, B: Backend<T>> Segmented<T, B> {
    /// Computes the sample factors for samples at `times`. `voxel_factors` are those of [`voxel_factors`]. `nufft` must
    /// transform `batch_size` arrays at once.
    pub fn new(
        backend: &B,
        nufft: Nufft<T, B>,
        segments: &TimeSegments,
        voxel_factors: Arc<B::Array<Complex<T>>>,
        times: &[T],
        batch_size: usize,
    ) -> Result<Self> {
        let voxels = backend.view(&voxel_factors).len() / segments.len();
        let weights = conjugate_weights(backend, segments, times)?;
        let segmented = Segmented {
            nufft,
            voxel_factors,
            weights,
            segment_count: segments.len(),
            batch_size,
            samples: times.len(),
            voxels,
            images: Pool::new(),
            values: Pool::new(),
        };
        // Allocate the buffers now, so that a lack of memory is an error of the plan and not of a transform.
        drop((segmented.images(backend)?, segmented.values(backend)?));
        Ok(segmented)
    }

    /// Returns the bytes held in addition to those of the plain transform.
    pub fn bytes(segments: usize, batch_size: usize, samples: usize, voxels: usize) -> usize {
        product(&[segments.saturating_add(batch_size), sum(&[samples, voxels]), size_of::<Complex<T>>()])
    }

    /// Borrows a buffer for the images of one batch of terms.
    fn images(&self, backend: &B) -> Result<Lease<'_, B::Array<Complex<T>>>> {
        self.images.try_take(|| backend.unwritten(self.batch_size * self.voxels, "images of segments"))
    }

    /// Borrows a buffer for the samples of one batch of terms.
    fn values(&self, backend: &B) -> Result<Lease<'_, B::Array<Complex<T>>>> {
        self.values.try_take(|| backend.unwritten(self.batch_size * self.samples, "samples of segments"))
    }

    /// Returns the ranges of terms that are transformed at once.
    fn term_batches(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let (count, batch_size) = (self.segment_count, self.batch_size);
        (0..count).step_by(batch_size).map(move |first| first..(first + batch_size).min(count))
    }

    /// Computes image(r) = sum_m values(m) exp(+i 2 pi (k_m.r + f(r) t_m) - R(r) t_m), for one or several arrays.
    pub fn adjoint(&self, backend: &B, values: Complexes<B, T>, mut image: ComplexesMut<B, T>) -> Result<()> {
        let (mut images, mut weighted) = (self.images(backend)?, self.values(backend)?);
        backend.clear(B::reborrow(&mut image));
        for i in 0..values.len() / self.samples {
            let values = values.part(i * self.samples..(i + 1) * self.samples);
            for terms in self.term_batches() {
                let (s, v) = (0..terms.len() * self.samples, 0..terms.len() * self.voxels);
                let weights = backend.view(&self.weights).part(terms.start * self.samples..terms.end * self.samples);
                backend.multiply(weights, values, backend.view_mut(&mut weighted).part(s.clone()));
                self.nufft.adjoint(
                    backend,
                    backend.view(&weighted).part(s),
                    backend.view_mut(&mut images).part(v.clone()),
                )?;
                let voxel_factors =
                    backend.view(&self.voxel_factors).part(terms.start * self.voxels..terms.end * self.voxels);
                let image = B::reborrow(&mut image).part(i * self.voxels..(i + 1) * self.voxels);
                backend.add_conj_products(voxel_factors, backend.view(&images).part(v), image);
            }
        }
        Ok(())
    }

    /// Computes values(m) = sum_r image(r) exp(-i 2 pi (k_m.r + f(r) t_m) - R(r) t_m), for one or several arrays.
    pub fn forward(&self, backend: &B, image: Complexes<B, T>, mut values: ComplexesMut<B, T>) -> Result<()> {
        let (mut images, mut terms_values) = (self.images(backend)?, self.values(backend)?);
        backend.clear(B::reborrow(&mut values));
        for i in 0..image.len() / self.voxels {
            let image = image.part(i * self.voxels..(i + 1) * self.voxels);
            for terms in self.term_batches() {
                let (s, v) = (0..terms.len() * self.samples, 0..terms.len() * self.voxels);
                let voxel_factors =
                    backend.view(&self.voxel_factors).part(terms.start * self.voxels..terms.end * self.voxels);
                backend.multiply(voxel_factors, image, backend.view_mut(&mut images).part(v.clone()));
                self.nufft.forward(
                    backend,
                    backend.view(&images).part(v),
                    backend.view_mut(&mut terms_values).part(s.clone()),
                )?;
                let weights = backend.view(&self.weights).part(terms.start * self.samples..terms.end * self.samples);
                let values = B::reborrow(&mut values).part(i * self.samples..(i + 1) * self.samples);
                backend.add_conj_products(weights, backend.view(&terms_values).part(s), values);
            }
        }
        Ok(())
    }
}

/// Computes the conjugates of b_l(t) for all samples, [samples, l].
fn conjugate_weights<T: Real, B: Backend<T>>(
    backend: &B,
    segments: &TimeSegments,
    times: &[T],
) -> Result<B::Array<Complex<T>>> {
    const WHAT: &str = "off-resonance of samples";
    let (samples, terms) = (times.len(), segments.len());
    let mut weights = try_vec(samples * terms, Complex::new(T::ZERO, T::ZERO), WHAT)?;
    let unit_phase = |t: f64| Complex::from_polar(1.0, TAU * segments.frequency * t);
    let mut node_phases = try_vec(terms, Complex::default(), WHAT)?;
    node_phases.iter_mut().zip(&segments.nodes).for_each(|(node_phase, &tau)| *node_phase = unit_phase(-tau));
    let shared = SharedSlice::new(&mut weights);
    each_chunk(backend.workers(), samples, |_, range| {
        let mut b = [0.0; MAX_SEGMENTS];
        let b = &mut b[..terms];
        for m in range {
            let t = times[m].wide();
            segments.weights(t, b);
            let phase = unit_phase(t);
            for (l, (b, node_phase)) in b.iter().zip(&node_phases).enumerate() {
                // SAFETY: chunks do not overlap.
                unsafe { shared.set(l * samples + m, narrow(phase * node_phase * *b)) };
            }
        }
    });
    backend.upload(&weights, WHAT)
}
