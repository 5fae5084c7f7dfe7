//! Kinds of values of images: complex, real or magnitudes.

use recon::{Complex, Real};

/// The largest part of the largest magnitude that counts as 0: rounding in single precision.
const ROUNDING: f64 = 1e-6;

/// The kind of the values of an image, judged by the numbers themselves: files may store real numbers as complex ones,
/// and magnitudes with negative numbers that are only rounding.
/// Kinds that contain others come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueKind {
    /// At least one imaginary part is not 0.
    Complex,
    /// All imaginary parts are 0, and at least one number is negative.
    Real,
    /// Real and non-negative.
    Magnitude,
}

impl ValueKind {
    /// Returns the kind of these numbers.
    pub fn of<T: Real>(data: &[Complex<T>]) -> ValueKind {
        let parts = || data.iter().map(|z| (z.re.wide(), z.im.wide()));
        let finite = parts().map(|(re, im)| re.hypot(im)).filter(|magnitude| magnitude.is_finite());
        let zero = ROUNDING * finite.fold(0.0, f64::max);
        if parts().any(|(_, im)| im.is_nan() || im.abs() > zero) {
            return ValueKind::Complex;
        }
        if parts().any(|(re, _)| re < -zero) {
            return ValueKind::Real;
        }
        ValueKind::Magnitude
    }

    /// Returns the word for JSON and messages.
    pub fn name(self) -> &'static str {
        match self {
            ValueKind::Complex => "complex",
            ValueKind::Real => "real",
            ValueKind::Magnitude => "magnitude",
        }
    }
}
