//! Transforms with off-resonance and decay, as sums of plain transforms (see [`super::time_segments`]).
//!
//! E = sum_l b_l A c_l, where A is the plain transform. c_l(r) = exp(-(R(r) + i 2 pi (f(r) - f0)) tau_l) is a factor of
//! each voxel, and b_l(t_m) exp(-i 2 pi f0 t_m) is a factor of each sample.

use super::time_segments::TimeSegments;
use super::Nufft;
use crate::backend::{Backend, Complexes, ComplexesMut, Span};
use crate::base::buffer_pool::{Lease, Pool};
use crate::base::error::Result;
use crate::base::real::Real;
use crate::base::sizes::{product, sum};
use num_complex::Complex;
use std::sync::Arc;

/// Transforms between samples and an image, with off-resonance or decay.
pub(crate) struct Segmented<T: Real, B: Backend<T>> {
    pub nufft: Nufft<T, B>,
    /// c_l, [voxels, l].
    voxel_factors: Arc<B::Array<Complex<T>>>,
    /// The conjugates of the factors of samples, [samples, l].
    weights: Arc<B::Array<Complex<T>>>,
    segment_count: usize,
    /// Maximum number of terms transformed at once.
    batch_size: usize,
    samples: usize,
    voxels: usize,
    images: Arc<Pool<B::Array<Complex<T>>>>,
    values: Arc<Pool<B::Array<Complex<T>>>>,
}

impl<T: Real, B: Backend<T>> Segmented<T, B> {
    /// Computes the sample factors for samples at `times`. `voxel_factors` are those of the segments. `nufft` must
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
        let segmented = Segmented {
            nufft,
            voxel_factors,
            weights: Arc::new(conjugate_weights(backend, segments, times)?),
            segment_count: segments.len(),
            batch_size,
            samples: times.len(),
            voxels,
            images: Arc::default(),
            values: Arc::default(),
        };
        segmented.allocate(backend)?;
        Ok(segmented)
    }

    /// Returns the same transforms for other samples, at `times`, which `nufft` transforms. `None` means the same
    /// number of samples at the same times, so that their factors are shared.
    pub fn with_samples(
        &self,
        backend: &B,
        nufft: Nufft<T, B>,
        segments: &TimeSegments,
        times: Option<&[T]>,
    ) -> Result<Self> {
        let samples = times.map_or(self.samples, <[T]>::len);
        let segmented = Segmented {
            nufft,
            voxel_factors: self.voxel_factors.clone(),
            weights: match times {
                Some(times) => Arc::new(conjugate_weights(backend, segments, times)?),
                None => self.weights.clone(),
            },
            samples,
            images: self.images.clone(),
            values: if samples == self.samples { self.values.clone() } else { Arc::default() },
            ..*self
        };
        segmented.allocate(backend)?;
        Ok(segmented)
    }

    /// Allocates the buffers, so that a lack of memory is an error of the plan and not of a transform.
    fn allocate(&self, backend: &B) -> Result<()> {
        drop((self.images(backend)?, self.values(backend)?));
        Ok(())
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

/// Computes the conjugates of the factors of samples at `times`, [samples, l].
fn conjugate_weights<T: Real, B: Backend<T>>(
    backend: &B,
    segments: &TimeSegments,
    times: &[T],
) -> Result<B::Array<Complex<T>>> {
    let times = backend.upload(times, "the sample times")?;
    backend.sample_waves(backend.view(&times), segments.series(), segments.frequency)
}
