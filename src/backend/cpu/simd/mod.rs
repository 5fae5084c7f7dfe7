//! Vector arithmetic: one source, compiled for several vector units, of which the best of the processor runs.
//!
//! A [`Kernel`] uses the [`Vector`] types of a level, or plain arrays of fixed size that the compiler vectorises.
//! [`Level::run`] calls the copy compiled for that level, and [`Level::choose`] selects the level. dispatch.rs contains
//! the calls, x86/, neon.rs and portable.rs the vector types.

mod dispatch;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod intrinsics;
mod level;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod portable;
#[cfg(test)]
mod tests;
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use level::Level;
pub use vector::{prefetch, transpose, Arith, Kernel, SimdReal, Vector, MAX_LANES};
