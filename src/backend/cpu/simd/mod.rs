//! Vectors: one source for the arithmetic, compiled for several vector units; the best of the processor runs.
//!
//! A [`Kernel`] is written with the [`Vector`]s of a level, or in plain arrays of fixed size which the compiler turns
//! into vector code; [`Level::run`] calls the copy of it compiled for that level. [`Level::choose`] picks the level.

mod dispatch;
mod level;
// Each target uses one of the two kinds, and the tests use both.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[allow(dead_code)]
mod portable;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::base::real::Real;
pub use level::Level;
use num_complex::Complex;

/// The differences between levels: the vectors, and how a b + c is rounded.
///
/// Only [`Level::run`] names the types that implement it, so that no code uses vectors that the processor lacks.
pub trait Arith: Copy {
    /// The level's vector of `f32`.
    type F32: Vector<f32>;
    /// The level's vector of `f64`.
    type F64: Vector<f64>;
    /// a b + c, in one rounding where the level has fused multiply-add.
    fn fma<T: Real>(a: T, b: T, c: T) -> T;
}

/// A precision that vector units compute in.
pub trait SimdReal: Real {
    /// The vector of a level.
    type V<A: Arith>: Vector<Self>;
}

impl SimdReal for f32 {
    type V<A: Arith> = A::F32;
}

impl SimdReal for f64 {
    type V<A: Arith> = A::F64;
}

/// A vector of reals in a register.
pub trait Vector<T>: Copy {
    /// Its number of elements, a power of two.
    const LANES: usize;
    /// All elements `x`.
    fn splat(x: T) -> Self;
    /// # Safety
    /// `LANES` elements must be readable at `p`, at any alignment.
    unsafe fn load(p: *const T) -> Self;
    /// # Safety
    /// `LANES` elements must be writable at `p`, at any alignment.
    unsafe fn store(self, p: *mut T);
    /// self + b.
    fn add(self, b: Self) -> Self;
    /// self - b.
    fn sub(self, b: Self) -> Self;
    /// self b.
    fn mul(self, b: Self) -> Self;
    /// The larger of self and b, neither being NaN.
    fn max(self, b: Self) -> Self;
    /// The smaller of self and b, neither being NaN.
    fn min(self, b: Self) -> Self;
    /// self b + c, rounded as the level does.
    fn fma(self, b: Self, c: Self) -> Self;
    /// c - self b, rounded as the level does.
    fn fnma(self, b: Self, c: Self) -> Self;
    /// self b - c where c is near self b: accurate to about the last bit of the difference at every level.
    fn mul_sub(self, b: Self, c: Self) -> Self;
    /// Negated where the last bit of q's significand is one.
    fn negate_where_odd(self, q: Self) -> Self;
    /// self 2^n, where q is the whole number n plus 1.5 / epsilon: the last bits of its significand are n. Self and the
    /// result must be normal numbers.
    fn times_power_of_two(self, q: Self) -> Self;
    /// The elements of self and b in turn: the first half of them, and the second.
    fn zip(self, b: Self) -> (Self, Self);
    /// The even elements of self and then of b, and the odd ones: [`Vector::zip`] undone.
    fn unzip(self, b: Self) -> (Self, Self);
    /// The sums of the even and of the odd elements.
    fn sum_pairs(self) -> Complex<T>;
}

/// The most lanes that a vector has.
pub const MAX_LANES: usize = 16;

/// Transposes a square of the first `LANES` vectors: each round of zips rotates the bits of (row, column) by one.
#[inline(always)]
pub fn transpose<T, V: Vector<T>>(v: &mut [V; MAX_LANES]) {
    let half = V::LANES / 2;
    let mut round = 1;
    while round < V::LANES {
        let before = *v;
        for i in 0..half {
            (v[2 * i], v[2 * i + 1]) = before[i].zip(before[i + half]);
        }
        round *= 2;
    }
}

/// Prefetches the cache line at `p` into the second cache; any address is allowed.
#[inline(always)]
pub fn prefetch<E>(p: *const E) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing and faults nowhere.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(p.cast())
    };
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

/// Code to be compiled for each level. `run` must be `#[inline(always)]`, and all it calls.
pub trait Kernel {
    /// What it returns.
    type Output;
    /// The code.
    fn run<A: Arith>(self) -> Self::Output;
}
