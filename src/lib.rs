//! Magnetic resonance image reconstruction from k-space samples on any trajectory.

pub mod error;
pub mod metrics;
pub mod phantom;
pub mod real;
pub mod trajectory;

pub use error::{Error, ErrorKind, Result};
pub use num_complex::Complex;
pub use real::Real;
