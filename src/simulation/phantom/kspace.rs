//! k-space of phantoms in closed form.

use super::coils::{CoilModel, FourierSeries, MOST_TERMS};
use super::shapes::{apply, dot, rotation, Ellipsoid, Phantom};
use crate::base::error::{bail, checked_product, try_collect, try_reserve, try_vec, Result};
use crate::base::processors::requested_threads;
use crate::base::results::check_results;
use num_complex::Complex;
use std::f64::consts::{PI, TAU};
use std::sync::{Mutex, PoisonError};

impl Phantom {
    /// Returns the k-space at the coordinates in `axes`, [samples, coils]: one slice per axis, in cycles per voxel, any
    /// finite values.
    ///
    /// It is the continuous Fourier transform of the phantom in a field of view of `dims` voxels, in units of density
    /// times voxels. This is the limit of sum_r image(r) exp(-i 2 pi k . r) for fine voxels. At k = 0 it is thus the
    /// sum of densities times areas (volumes).
    ///
    /// With `coils`, the phantom is multiplied by each coil's sensitivity; without, a single uniform coil measures it.
    /// `threads` is the maximum number of threads, 0 for one per processor. The result does not depend on it.
    ///
    /// An ellipse contributes density pi a b 2 J1(u) / u, an ellipsoid density 4/3 pi a b c 3 (sin u - u cos u) / u^3,
    /// each times exp(-i 2 pi k . centre). Here u is 2 pi times the length of k in the ellipsoid's own axes, scaled by
    /// its semi-axes (Koay et al. 2007). A coil whose sensitivity is sum_j a_j exp(i 2 pi q_j . r) receives sum_j a_j
    /// s(k - q_j).
    ///
    /// # Errors
    /// - `InvalidSize` for a zero size or no samples.
    /// - `SizeMismatch` if the dimensions of the phantom, `dims`, `axes` and `coils` differ, or the lengths of `axes`.
    /// - `NotFinite` with the index.
    /// - `SizeOverflow`, `OutOfHostMemory`.
    pub fn kspace(
        &self,
        dims: &[usize],
        axes: &[&[f64]],
        coils: Option<&CoilModel>,
        threads: usize,
    ) -> Result<Vec<Complex<f64>>> {
        /// Samples per job: few enough to share the work evenly, enough to make the lock cheap.
        const CHUNK: usize = 4096;

        self.check_dims(dims)?;
        let samples = self.check_axes(axes)?;
        let uniform = FourierSeries { frequencies: vec![[0.0; 3]], amplitudes: vec![vec![Complex::new(1.0, 0.0)]] };
        let series = match coils {
            Some(coils) if coils.ndim != self.ndim => {
                bail!(SizeMismatch, "the coils are {}D and the phantom {}D: make them equal", coils.ndim, self.ndim)
            }
            Some(coils) => coils.series(dims)?,
            None => uniform,
        };
        let mut shapes = try_reserve(self.shapes.len(), "the phantom")?;
        for shape in &self.shapes {
            shapes.push(EllipsoidSpectrum::new(shape, self.ndim, dims, &series)?);
        }
        let profile = if self.ndim == 2 { disc } else { ball };

        let total = checked_product(&[samples, series.amplitudes.len()], "the k-space of a phantom")?;
        let mut kspace = try_vec(total, Complex::new(0.0, 0.0), "the k-space of a phantom")?;
        // A job is a chunk of the samples of all coils: no two threads write to the same place.
        let mut jobs = try_reserve(samples.div_ceil(CHUNK), "the k-space of a phantom")?;
        for first in (0..samples).step_by(CHUNK) {
            let parts: Vec<&mut [Complex<f64>]> = try_reserve(series.amplitudes.len(), "the k-space of a phantom")?;
            jobs.push((first, parts));
        }
        for coil in kspace.chunks_exact_mut(samples) {
            for (job, part) in jobs.iter_mut().zip(coil.chunks_mut(CHUNK)) {
                job.1.push(part);
            }
        }
        let helpers = requested_threads(threads).min(jobs.len()) - 1;
        let jobs = Mutex::new(jobs.into_iter());
        let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || {
            let mut sums = [Complex::new(0.0, 0.0); MOST_TERMS];
            let sums = &mut sums[..series.frequencies.len()];
            while let Some((first, mut parts)) = next() {
                for m in 0..parts[0].len() {
                    let mut k = [0.0; 3];
                    for (k, axis) in k.iter_mut().zip(axes) {
                        *k = axis[first + m];
                    }
                    sums.fill(Complex::new(0.0, 0.0));
                    for shape in &shapes {
                        shape.add(&k, profile, sums);
                    }
                    for (part, amplitudes) in parts.iter_mut().zip(&series.amplitudes) {
                        part[m] = sums.iter().zip(amplitudes).map(|(s, a)| s * a).sum();
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..helpers {
                // If no more threads can be started, fewer do the work.
                if std::thread::Builder::new().name("recon phantom".into()).spawn_scoped(scope, work).is_err() {
                    break;
                }
            }
            work();
        });
        check_results("k-space sample of the phantom", &kspace)?;
        Ok(kspace)
    }

    /// Checks the coordinates in `axes` and returns the number of samples.
    fn check_axes(&self, axes: &[&[f64]]) -> Result<usize> {
        if axes.len() != self.ndim {
            bail!(
                SizeMismatch,
                "there are {} axes of coordinates for {} dimensions: give one each",
                axes.len(),
                self.ndim
            );
        }
        let samples = axes[0].len();
        if samples == 0 {
            bail!(InvalidSize, "there are no k-space coordinates: give at least one");
        }
        for (axis, k) in axes.iter().enumerate() {
            if k.len() != samples {
                bail!(SizeMismatch, "axis {axis} has {} coordinates, axis 0 {samples}: give equal numbers", k.len());
            }
            if let Some(m) = k.iter().position(|k| !k.is_finite()) {
                bail!(NotFinite, "the coordinate of sample {m} on axis {axis} is {}: give finite coordinates", k[m]);
            }
        }
        Ok(samples)
    }
}

/// Fourier transform of one ellipsoid, prepared for a field of view and a set of shifts.
struct EllipsoidSpectrum {
    /// Matrix that maps k in cycles per voxel to the vector of length u.
    to_u: [[f64; 3]; 3],
    /// Centre times 2 pi, in voxels.
    centre: [f64; 3],
    /// `to_u` q for each shift q, and density times volume times exp(i 2 pi q . centre).
    shifts: Vec<([f64; 3], Complex<f64>)>,
}

impl EllipsoidSpectrum {
    /// Prepares the transform at the shifts that are the frequencies of `series`.
    fn new(shape: &Ellipsoid, ndim: usize, dims: &[usize], series: &FourierSeries) -> Result<Self> {
        let mut half = [0.0; 3];
        for (half, &n) in half.iter_mut().zip(dims) {
            *half = n as f64 / 2.0;
        }
        let r = rotation(shape.angles);
        let to_u = std::array::from_fn(|i| std::array::from_fn(|j| TAU * shape.semi_axes[i] * r[j][i] * half[j]));
        let centre = std::array::from_fn(|j| TAU * shape.centre[j] * half[j]);
        let unit = if ndim == 2 { PI } else { 4.0 / 3.0 * PI };
        let volume: f64 = (0..ndim).map(|i| shape.semi_axes[i] * half[i]).product();
        let weight = shape.density * unit * volume;
        let shift = |q: &[f64; 3]| (apply(&to_u, q), Complex::cis(dot(&centre, q)) * weight);
        let shifts = try_collect(series.frequencies.len(), "the phantom", series.frequencies.iter().map(shift))?;
        Ok(EllipsoidSpectrum { to_u, centre, shifts })
    }

    /// Adds the transform at k - q, for every shift q, to `sums`.
    fn add(&self, k: &[f64; 3], profile: fn(f64) -> f64, sums: &mut [Complex<f64>]) {
        let w = apply(&self.to_u, k);
        let phase = Complex::cis(-dot(&self.centre, k));
        for (sum, (shift, weight)) in sums.iter_mut().zip(&self.shifts) {
            let d = [w[0] - shift[0], w[1] - shift[1], w[2] - shift[2]];
            *sum += phase * weight * profile(dot(&d, &d).sqrt());
        }
    }
}

/// Returns the transform of the unit disc over its area: 2 J1(u) / u.
pub(super) fn disc(u: f64) -> f64 {
    if u == 0.0 {
        1.0
    } else {
        2.0 * libm::j1(u) / u
    }
}

/// Returns the transform of the unit ball over its volume: 3 (sin u - u cos u) / u^3.
pub(super) fn ball(u: f64) -> f64 {
    if u > 1.0 {
        let (sin, cos) = u.sin_cos();
        return 3.0 * (sin - u * cos) / (u * u * u);
    }
    // The two terms cancel near 0. Nine terms of the power series have an error below 1e-18 up to u = 1.
    let (mut sum, mut term) = (0.0, 1.0);
    for m in 0..9 {
        sum += term;
        term *= -u * u / ((2 * m + 2) * (2 * m + 5)) as f64;
    }
    sum
}
