//! Noise whitening: the covariance of the coils' noise, and the matrix that makes it the identity.
//!
//! Least squares and the combination of coils assume that the noise of all coils is equal and independent. The noise of
//! a real array is neither. Whitened data, with whitened sensitivities, meet the assumption (Pruessmann et al., Magn.
//! Reson. Med. 46:638, 2001, appendix A).

use super::coil_matrix::{CoilMatrix, Covariance};
use crate::base::dense::inverse_cholesky;
use crate::base::error::{bail, checked_product, Result};
use crate::base::geometry::{check_finite, check_len};
use crate::base::real::Real;
use crate::base::results::check_results;
use crate::base::warning::{raise, WarningKind};
use num_complex::Complex;

/// Smallest share of a coil's noise variance that is independent of the previous coils. A smaller share is a rounding
/// error of single precision.
const LEAST_INDEPENDENT: f64 = 1e-6;
/// Largest deviation of entries from a Hermitian matrix, relative to the root of the product of their variances.
const HERMITIAN: f64 = 1e-4;

/// Sampling of the noise and of the scan: ISMRMRD's `sample_time_us` and `relativeReceiverNoiseBandwidth`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NoiseSampling {
    /// Time from one sample of noise to the next.
    pub noise_dwell: f64,
    /// Time from one sample of the scan to the next, in the same unit.
    pub dwell: f64,
    /// Receiver's noise bandwidth divided by its sampling bandwidth, in (0, 1].
    pub receiver_bandwidth: f64,
}

impl NoiseSampling {
    /// Sampling of noise with the same dwell time as the scan.
    pub const SAME: NoiseSampling = NoiseSampling { noise_dwell: 1.0, dwell: 1.0, receiver_bandwidth: 1.0 };

    /// Returns the variance of the scan's noise divided by that of the noise samples. A longer dwell time means a
    /// narrower band and less noise.
    ///
    /// # Errors
    /// `InvalidArgument` for times that are not above 0, a bandwidth outside (0, 1], and a ratio that overflows or
    /// vanishes.
    pub fn variance_ratio(&self) -> Result<f64> {
        let NoiseSampling { noise_dwell, dwell, receiver_bandwidth } = *self;
        let positive = |x: f64| x > 0.0 && x.is_finite();
        if !positive(noise_dwell) || !positive(dwell) {
            bail!(
                InvalidArgument,
                "the dwell time of the noise is {noise_dwell} and that of the scan {dwell}: both must be above 0"
            );
        }
        if !(positive(receiver_bandwidth) && receiver_bandwidth <= 1.0) {
            bail!(
                InvalidArgument,
                "the receiver's noise bandwidth is {receiver_bandwidth} of its sampling bandwidth: it must be above 0 \
                 and at most 1"
            );
        }
        let ratio = noise_dwell / dwell / receiver_bandwidth;
        if !positive(ratio) {
            bail!(
                InvalidArgument,
                "dwell times of {noise_dwell} and {dwell} with a noise bandwidth of {receiver_bandwidth} make the variance \
                 of the scan's noise {ratio} times that of the noise samples: check their units"
            );
        }
        Ok(ratio)
    }
}

/// Covariance of the coils' noise, psi(a, b) = mean of n_a conj(n_b) in the samples of the scan.
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseCovariance {
    coils: usize,
    entries: Vec<Complex<f64>>,
}

impl NoiseCovariance {
    /// Computes the covariance from samples without signal, [samples, coils].
    ///
    /// # Errors
    /// - `InvalidSize` for fewer samples than coils.
    /// - `SizeMismatch` for a length that is not a multiple of the coils.
    /// - `NotFinite` for a NaN, with its index, and for variances that overflow.
    /// - `InvalidArgument` for the errors of [`NoiseSampling::variance_ratio`].
    /// - `OutOfHostMemory`.
    pub fn of<T: Real>(noise: &[Complex<T>], coils: usize, sampling: NoiseSampling) -> Result<Self> {
        let ratio = sampling.variance_ratio()?;
        if coils == 0 || noise.is_empty() {
            bail!(InvalidSize, "{} samples of noise of {coils} coils: give at least one of each", noise.len());
        }
        if !noise.len().is_multiple_of(coils) {
            bail!(
                SizeMismatch,
                "{} numbers of noise are not [samples, {coils} coils]: noise and data must have the same coils",
                noise.len()
            );
        }
        let samples = noise.len() / coils;
        if samples < coils {
            bail!(
                InvalidSize,
                "{samples} samples of noise of {coils} coils have no invertible covariance: give at least as many \
                 samples as coils, and {} for an error of 10 %",
                recommended_samples(coils)
            );
        }
        check_finite("noise sample", noise)?;
        if samples < recommended_samples(coils) {
            let message = format!(
                "{samples} samples of noise of {coils} coils: whitening has an error of about {:.0} %; measure {} \
                 samples for 10 %",
                100.0 * covariance_error(samples, coils),
                recommended_samples(coils)
            );
            raise(WarningKind::Noise, message);
        }
        let mut sums = Covariance::zero(coils)?;
        sums.add(samples, noise)?;
        sums.entries.iter_mut().for_each(|z| *z *= ratio / samples as f64);
        check_results("noise covariance's entry", &sums.entries)?;
        Ok(NoiseCovariance { coils, entries: sums.entries })
    }

    /// Creates a covariance from its entries, [coils, coils].
    ///
    /// # Errors
    /// - `InvalidSize` for no coils, `SizeMismatch` for a different length, `NotFinite` for a NaN.
    /// - `InvalidArgument`, with the entry, for a variance that is not above 0 and a matrix that is not Hermitian.
    pub fn new(coils: usize, entries: Vec<Complex<f64>>) -> Result<Self> {
        if coils == 0 {
            bail!(InvalidSize, "the noise covariance has 0 coils: give at least one");
        }
        let needed = checked_product(&[coils, coils], "the noise covariance")?;
        check_len("entries of the noise covariance", entries.len(), needed, "coils times coils")?;
        check_finite("noise covariance's entry", &entries)?;
        let at = |a: usize, b: usize| entries[b * coils + a];
        for c in 0..coils {
            if !(at(c, c).re > 0.0) {
                bail!(
                    InvalidArgument,
                    "the noise of coil {c} has the variance {}: it must be above 0; omit coils without noise",
                    at(c, c).re
                );
            }
        }
        for b in 0..coils {
            for a in 0..=b {
                if (at(a, b) - at(b, a).conj()).norm() > HERMITIAN * at(a, a).re.sqrt() * at(b, b).re.sqrt() {
                    bail!(
                        InvalidArgument,
                        "entry ({a}, {b}) of the noise covariance is {}, and ({b}, {a}) is {}: the matrix must be \
                         Hermitian, so that each is the conjugate of the other",
                        at(a, b),
                        at(b, a)
                    );
                }
            }
        }
        Ok(NoiseCovariance { coils, entries })
    }

    /// Returns the number of coils.
    pub fn coils(&self) -> usize {
        self.coils
    }

    /// Returns the entries, [coils, coils].
    pub fn entries(&self) -> &[Complex<f64>] {
        &self.entries
    }

    /// Returns the matrix that makes the noise of all coils independent, each with variance 1 (the mean of |n|^2): the
    /// inverse of the Cholesky factor of the covariance.
    ///
    /// # Errors
    /// `InvalidArgument` for a covariance that is singular, with the coil; `OutOfHostMemory`.
    pub fn whitening(&self) -> Result<CoilMatrix> {
        let n = self.coils;
        let inverse = match inverse_cholesky(&self.entries, n, LEAST_INDEPENDENT, "the whitening matrix")? {
            Ok(inverse) => inverse,
            Err(b) => bail!(
                InvalidArgument,
                "the noise covariance of {n} coils is singular: coil {b} {}: leave this coil out, or measure more noise",
                if self.entries[b * n + b].re > 0.0 {
                    "has only noise that the coils before it also have"
                } else {
                    "has no noise"
                }
            ),
        };
        CoilMatrix::new(n, n, inverse)
    }
}

/// Returns the approximate relative error of a covariance estimated from `samples` samples (in the spectral norm).
fn covariance_error(samples: usize, coils: usize) -> f64 {
    2.0 * (coils as f64 / samples as f64).sqrt()
}

/// Returns the number of samples for an error of 10 %.
fn recommended_samples(coils: usize) -> usize {
    400 * coils
}
