//! Vectors of x86-64, one file per vector unit.
//!
//! The functions are sound only if the processor has the vector unit. [`super::Level::run`] makes sure of it: outside
//! [`super::dispatch`], no code names the types of an [`super::Arith`].

mod avx2;
mod avx512;
mod pairs;
mod sse;

pub use avx2::{F32x8, F64x4};
pub use avx512::{F32x16, F64x8};
pub use sse::{F32x4, F64x2};
