//! Conversion between the single precision of files and the precision of the computation.

use crate::run::resize::zeros;
use recon::{Complex, Real, Result};

/// Converts numbers to the precision of the computation.
pub fn cast<T: Real>(data: &[Complex<f32>]) -> Result<Vec<Complex<T>>> {
    let mut converted = zeros(data.len())?;
    for (to, z) in converted.iter_mut().zip(data) {
        *to = Complex::new(T::of(z.re as f64), T::of(z.im as f64));
    }
    Ok(converted)
}

/// Converts numbers to single precision.
pub fn to_single<T: Real>(data: &[Complex<T>]) -> Vec<Complex<f32>> {
    data.iter().map(|z| Complex::new(z.re.wide() as f32, z.im.wide() as f32)).collect()
}

/// Returns whether the numbers are magnitudes: real and non-negative.
pub fn is_magnitude<T: Real>(data: &[Complex<T>]) -> bool {
    data.iter().all(|z| z.im == T::ZERO && z.re >= T::ZERO)
}
