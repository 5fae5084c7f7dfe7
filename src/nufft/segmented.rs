//! Transforms with off-resonance and decay, as sums of transforms without (see [`super::segments`]): E = sum_l b_l A c_l,
//! A being the transform, c_l(r) = exp(-(R(r) + i 2 pi f(r)) tau_l) a factor of each voxel, b_l(t_m) one of each sample.

use super::segments::Segments;
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

/// The c_l of all voxels, [voxels, l]; the phases of `frequencies` and the sizes of `decay`, which is in the host's
/// memory. Rates above `most` belong to voxels that no coil sees, or whose signal is 0. They count as `most`, so that
/// all factors are finite.
pub(crate) fn waves<T: Real, B: Backend<T>>(
    backend: &B,
    nodes: &[f64],
    frequencies: Reals<B, T>,
    decay: Option<&[T]>,
    most: f64,
) -> Result<B::Array<Complex<T>>> {
    const WHAT: &str = "off-resonance of voxels";
    let voxels = frequencies.len();
    let mut waves = backend.unwritten::<Complex<T>>(voxels * nodes.len(), WHAT)?;
    let mut sizes = decay.map(|decay| try_vec(decay.len(), T::ZERO, WHAT)).transpose()?;
    for (l, &tau) in nodes.iter().enumerate() {
        interrupt::check(WHAT)?;
        if let (Some(sizes), Some(decay)) = (&mut sizes, decay) {
            let own = SharedSlice::new(sizes);
            each_chunk(backend.workers(), decay.len(), |_, range| {
                // SAFETY: each chunk has its own voxels.
                let sizes = unsafe { own.part(range.start, range.len()) };
                sizes
                    .iter_mut()
                    .zip(&decay[range])
                    .for_each(|(size, r)| *size = T::of((-r.wide().min(most) * tau).exp()));
            });
        }
        let sizes = sizes.as_ref().map(|sizes| backend.upload(sizes, WHAT)).transpose()?;
        let part = backend.view_mut(&mut waves).part(l * voxels..(l + 1) * voxels);
        backend.ramp(&[frequencies], &[-tau], sizes.as_ref().map(|sizes| backend.view(sizes)), part);
    }
    Ok(waves)
}

/// Transforms between samples and an image with off-resonance.
pub(crate) struct Segmented<T: Real, B: Backend<T>> {
    pub nufft: Nufft<T, B>,
    /// c_l, [voxels, l].
    waves: Arc<B::Array<Complex<T>>>,
    /// The conjugates of b_l, [samples, l].
    weights: B::Array<Complex<T>>,
    segments: usize,
    /// How many terms are transformed at once, at most.
    at_once: usize,
    samples: usize,
    voxels: usize,
    images: Pool<B::Array<Complex<T>>>,
    values: Pool<B::Array<Complex<T>>>,
}

impl<T: Real, B: Backend<T>> Segmented<T, B> {
    /// With samples at `times`, and c_l as [`waves`] makes them. `nufft` takes `at_once` arrays at once.
    pub fn new(
        backend: &B,
        nufft: Nufft<T, B>,
        segments: &Segments,
        waves: Arc<B::Array<Complex<T>>>,
        times: &[T],
        at_once: usize,
    ) -> Result<Self> {
        let voxels = backend.view(&waves).len() / segments.len();
        let weights = conjugate_weights(backend, segments, times)?;
        let made = Segmented {
            nufft,
            waves,
            weights,
            segments: segments.len(),
            at_once,
            samples: times.len(),
            voxels,
            images: Pool::new(),
            values: Pool::new(),
        };
        // Here, so that where memory lacks the plan fails, and no transform.
        drop((made.images(backend)?, made.values(backend)?));
        Ok(made)
    }

    /// Bytes that it holds beside its transforms of gridding.
    pub fn bytes(segments: usize, at_once: usize, samples: usize, voxels: usize) -> usize {
        product(&[segments.saturating_add(at_once), sum(&[samples, voxels]), size_of::<Complex<T>>()])
    }

    fn images(&self, backend: &B) -> Result<Lease<'_, B::Array<Complex<T>>>> {
        self.images.try_take(|| backend.unwritten(self.at_once * self.voxels, "images of segments"))
    }

    fn values(&self, backend: &B) -> Result<Lease<'_, B::Array<Complex<T>>>> {
        self.values.try_take(|| backend.unwritten(self.at_once * self.samples, "samples of segments"))
    }

    /// Ranges of terms that are transformed at once.
    fn groups(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let (all, at_once) = (self.segments, self.at_once);
        (0..all).step_by(at_once).map(move |first| first..(first + at_once).min(all))
    }

    /// image(r) = sum_m values(m) exp(+i 2 pi (k_m.r + f(r) t_m) - R(r) t_m), for one or several arrays.
    pub fn adjoint(&self, backend: &B, values: Complexes<B, T>, mut image: ComplexesMut<B, T>) -> Result<()> {
        let (mut images, mut weighted) = (self.images(backend)?, self.values(backend)?);
        backend.clear(B::reborrow(&mut image));
        for i in 0..values.len() / self.samples {
            let values = values.part(i * self.samples..(i + 1) * self.samples);
            for terms in self.groups() {
                let (s, v) = (0..terms.len() * self.samples, 0..terms.len() * self.voxels);
                let weights = backend.view(&self.weights).part(terms.start * self.samples..terms.end * self.samples);
                backend.multiply(weights, values, backend.view_mut(&mut weighted).part(s.clone()));
                self.nufft.adjoint(
                    backend,
                    backend.view(&weighted).part(s),
                    backend.view_mut(&mut images).part(v.clone()),
                )?;
                let waves = backend.view(&self.waves).part(terms.start * self.voxels..terms.end * self.voxels);
                let image = B::reborrow(&mut image).part(i * self.voxels..(i + 1) * self.voxels);
                backend.add_conj_products(waves, backend.view(&images).part(v), image);
            }
        }
        Ok(())
    }

    /// values(m) = sum_r image(r) exp(-i 2 pi (k_m.r + f(r) t_m) - R(r) t_m), for one or several arrays.
    pub fn forward(&self, backend: &B, image: Complexes<B, T>, mut values: ComplexesMut<B, T>) -> Result<()> {
        let (mut images, mut terms_values) = (self.images(backend)?, self.values(backend)?);
        backend.clear(B::reborrow(&mut values));
        for i in 0..image.len() / self.voxels {
            let image = image.part(i * self.voxels..(i + 1) * self.voxels);
            for terms in self.groups() {
                let (s, v) = (0..terms.len() * self.samples, 0..terms.len() * self.voxels);
                let waves = backend.view(&self.waves).part(terms.start * self.voxels..terms.end * self.voxels);
                backend.multiply(waves, image, backend.view_mut(&mut images).part(v.clone()));
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

/// The conjugates of b_l(t) for all samples, [samples, l].
fn conjugate_weights<T: Real, B: Backend<T>>(
    backend: &B,
    segments: &Segments,
    times: &[T],
) -> Result<B::Array<Complex<T>>> {
    const WHAT: &str = "off-resonance of samples";
    let (samples, terms) = (times.len(), segments.len());
    let mut all = try_vec(samples * terms, Complex::new(T::ZERO, T::ZERO), WHAT)?;
    let turn = |t: f64| Complex::from_polar(1.0, TAU * segments.frequency * t);
    let mut back = try_vec(terms, Complex::default(), WHAT)?;
    back.iter_mut().zip(&segments.nodes).for_each(|(back, &tau)| *back = turn(-tau));
    let own = SharedSlice::new(&mut all);
    each_chunk(backend.workers(), samples, |_, range| {
        let mut b = [0.0; super::segments::MOST_SEGMENTS];
        let b = &mut b[..terms];
        for m in range {
            let t = times[m].wide();
            segments.weights(t, b);
            let now = turn(t);
            for (l, (b, back)) in b.iter().zip(&back).enumerate() {
                // SAFETY: each chunk has its own samples.
                unsafe { own.set(l * samples + m, narrow(now * back * *b)) };
            }
        }
    });
    backend.upload(&all, WHAT)
}
