//! Magnetic resonance image reconstruction from k-space samples on any trajectory.

pub mod backend;
pub mod error;
pub mod metrics;
pub mod nufft;
pub mod phantom;
pub mod real;
pub mod trajectory;
pub mod window;

pub use error::{Error, ErrorKind, Result};
pub use num_complex::Complex;
pub use real::Real;
