//! White noise of a requested level.

use crate::base::error::{bail, try_collect, Result};
use crate::base::random::SplitMix64;
use crate::base::results::{check_result, check_results};
use num_complex::Complex;

/// Adds complex white Gaussian noise to `data` and returns its standard deviation, the expected RMS magnitude.
///
/// The noise is independent in the real and imaginary parts. The standard deviation is RMS(data) / `snr`: the SNR is
/// the ratio, not in dB, of the RMS magnitudes of noiseless samples (all coils together) and noise. A seed produces the
/// same noise on every platform.
///
/// # Errors
/// The data are unchanged after an error:
/// - `InvalidSize` for no data.
/// - `InvalidArgument` for an SNR that is not positive and finite, or for data that are all zero.
/// - `NotFinite`, with the index.
pub fn add_noise(data: &mut [Complex<f64>], snr: f64, seed: u64) -> Result<f64> {
    let deviation = noise_deviation(data, snr)?;
    let noisy = data.iter().zip(white_noise(deviation, seed)).map(|(z, noise)| z + noise);
    let noisy = try_collect(data.len(), "noisy data", noisy)?;
    check_results("noisy sample", &noisy)?;
    data.copy_from_slice(&noisy);
    Ok(deviation)
}

/// Returns the standard deviation of the noise that [`add_noise`] adds.
///
/// # Errors
/// The errors of [`add_noise`].
pub fn noise_deviation(data: &[Complex<f64>], snr: f64) -> Result<f64> {
    if data.is_empty() {
        bail!(InvalidSize, "there are no samples to add noise to: give at least one");
    }
    if !(snr > 0.0 && snr.is_finite()) {
        bail!(InvalidArgument, "the signal to noise ratio is {snr}: give a positive, finite number");
    }
    if let Some(m) = data.iter().position(|z| !z.is_finite()) {
        bail!(NotFinite, "sample {m} is {}: remove NaN and infinities before adding noise", data[m]);
    }
    let deviation = (data.iter().map(|z| z.norm_sqr()).sum::<f64>() / data.len() as f64).sqrt() / snr;
    if deviation == 0.0 {
        bail!(
            InvalidArgument,
            "the samples are all zero, or so small that their squares are: noise relative to them is undefined"
        );
    }
    check_result("standard deviation of the noise", deviation)?;
    Ok(deviation)
}

/// Returns an endless sequence of white noise, the same as [`add_noise`] adds.
pub fn white_noise(deviation: f64, seed: u64) -> impl Iterator<Item = Complex<f64>> {
    let mut random = SplitMix64(seed);
    std::iter::repeat_with(move || deviation * random.complex_normal())
}

/// Returns a function that returns random numbers, uniformly distributed in (0, 1].
pub fn uniform(seed: u64) -> impl FnMut() -> f64 {
    let mut random = SplitMix64(seed);
    move || random.uniform()
}
