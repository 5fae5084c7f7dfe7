//! Helpers of the examples that measure whole scans.

pub mod energy;

use recon::{Complex, Error, ErrorKind, Result};

/// Returns the first argument of the program, the number of voxels along each axis.
pub fn matrix(default: usize) -> Result<usize> {
    match std::env::args().nth(1) {
        None => Ok(default),
        Some(text) => text.parse().ok().filter(|&n| n > 0).ok_or_else(|| {
            Error::new(ErrorKind::InvalidArgument, format!("'{text}' is no matrix size: say 64 or {default}"))
        }),
    }
}

/// Converts to single precision.
pub fn narrow(values: &[Complex<f64>]) -> Vec<Complex<f32>> {
    values.iter().map(|z| Complex::new(z.re as f32, z.im as f32)).collect()
}
