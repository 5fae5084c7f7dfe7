//! The traits of vectors and of the code that uses them.

use crate::base::real::Real;
use num_complex::Complex;

/// The arithmetic of a level: its vectors, and how a b + c is rounded.
///
/// Only dispatch.rs names the implementing types, so that no code uses vectors that the processor lacks.
pub trait Arith: Copy {
    /// The level's vector of `f32`.
    type F32: Vector<f32>;
    /// The level's vector of `f64`.
    type F64: Vector<f64>;
    /// Number of vector registers.
    const REGISTERS: usize;
    /// Returns a b + c, with a single rounding if the level has fused multiply-add.
    fn fma<T: Real>(a: T, b: T, c: T) -> T;
    /// Returns the smallest integer that is at least `a`, whose magnitude must be less than 2^51.
    fn ceil(a: f64) -> f64;
}

/// A precision that vector units support.
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
    /// Number of elements, a power of two.
    const LANES: usize;
    /// Returns a vector whose elements are all `x`.
    fn splat(x: T) -> Self;
    /// Loads a vector.
    ///
    /// # Safety
    /// `LANES` elements must be readable at `p`, at any alignment.
    unsafe fn load(p: *const T) -> Self;
    /// Stores a vector.
    ///
    /// # Safety
    /// `LANES` elements must be writable at `p`, at any alignment.
    unsafe fn store(self, p: *mut T);
    /// Returns self + b.
    fn add(self, b: Self) -> Self;
    /// Returns self - b.
    fn sub(self, b: Self) -> Self;
    /// Returns self b.
    fn mul(self, b: Self) -> Self;
    /// Returns the larger of self and b, neither of which is NaN.
    fn max(self, b: Self) -> Self;
    /// Returns the smaller of self and b, neither of which is NaN.
    fn min(self, b: Self) -> Self;
    /// Returns self b + c, with the level's rounding.
    fn fma(self, b: Self, c: Self) -> Self;
    /// Returns c - self b, with the level's rounding.
    fn fnma(self, b: Self, c: Self) -> Self;
    /// Returns self b - c for c near self b, accurate to about the last bit of the difference at every level.
    fn mul_sub(self, b: Self, c: Self) -> Self;
    /// Negates the elements for which the last bit of q's significand is 1.
    fn negate_where_odd(self, q: Self) -> Self;
    /// Returns self 2^n, where q is the integer n plus 1.5 / epsilon, so that the last bits of its significand are n.
    /// Self and the result must be normal numbers.
    fn times_power_of_two(self, q: Self) -> Self;
    /// Interleaves the elements of self and b. Returns the first half and the second half.
    fn zip(self, b: Self) -> (Self, Self);
    /// Returns the even and the odd elements of self followed by b: the inverse of [`Vector::zip`].
    fn unzip(self, b: Self) -> (Self, Self);
    /// Returns the sums of the even and of the odd elements.
    fn sum_pairs(self) -> Complex<T>;
}

/// Maximum number of lanes of a vector.
pub const MAX_LANES: usize = 16;

/// Transposes the square of the first `LANES` vectors. Each round of zips rotates the bits of (row, column) by one.
#[inline(always)]
pub fn transpose<T, V: Vector<T>>(v: &mut [V; MAX_LANES]) {
    let half = V::LANES / 2;
    let mut round = 1;
    while round < V::LANES {
        let input = *v;
        for i in 0..half {
            (v[2 * i], v[2 * i + 1]) = input[i].zip(input[i + half]);
        }
        round *= 2;
    }
}

/// Prefetches the cache line at `p` into the second-level cache. Any address is allowed.
#[inline(always)]
pub fn prefetch<E>(p: *const E) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect on memory and never faults.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(p.cast())
    };
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a prefetch has no effect on memory and never faults.
    unsafe {
        std::arch::asm!("prfm pldl2keep, [{}]", in(reg) p, options(readonly, nostack, preserves_flags))
    };
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = p;
}

/// Code that is compiled for each level. `run` and all functions that it calls must be `#[inline(always)]`.
pub trait Kernel {
    /// The result.
    type Output;
    /// Computes the result.
    fn run<A: Arith>(self) -> Self::Output;
}
