//! Magnetic resonance image reconstruction from k-space samples on any trajectory.

pub mod error;
#[cfg(feature = "cli")]
pub mod io;
pub mod real;

pub use error::{Error, ErrorKind, Result};
pub use num_complex::Complex;
pub use real::Real;
