//! The implementation of a vector type by intrinsics.

use num_complex::Complex;
use std::arch::x86_64::*;

/// Implements `Vector` for a type of the intrinsics. The operations are given as intrinsics, or as expressions of the
/// arguments a, b and c.
macro_rules! vector {
    ($name:ident, $inner:ty, $t:ty, $lanes:literal, $splat:ident, $load:ident, $store:ident,
     [$($simple:ident = $intrinsic:ident),*], |$a:ident, $b:ident, $c:ident|
     [$($ternary:ident = $abc:expr),*], [$($binary:ident = $ab:expr),*], [$($pair:ident = $two:expr),*], $sum:expr) => {
        #[derive(Clone, Copy)]
        pub struct $name($inner);
        impl Vector<$t> for $name {
            const LANES: usize = $lanes;
            #[inline(always)]
            fn splat(x: $t) -> Self {
                // SAFETY: `Level::run` calls this only if `Level::detect` found the unit.
                unsafe { $name($splat(x)) }
            }
            #[inline(always)]
            unsafe fn load(p: *const $t) -> Self {
                // SAFETY: the caller promises readable elements; the instruction accepts any alignment.
                unsafe { $name($load(p)) }
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut $t) {
                // SAFETY: the caller promises writable elements; the instruction accepts any alignment.
                unsafe { $store(p, self.0) }
            }
            $(#[inline(always)]
            fn $simple(self, b: Self) -> Self {
                // SAFETY: `Level::run` calls this only if `Level::detect` found the unit.
                unsafe { $name($intrinsic(self.0, b.0)) }
            })*
            $(#[inline(always)]
            fn $ternary(self, b: Self, c: Self) -> Self {
                let ($a, $b, $c) = (self.0, b.0, c.0);
                // SAFETY: `Level::run` calls this only if `Level::detect` found the unit.
                unsafe { $name($abc) }
            })*
            $(#[inline(always)]
            fn $binary(self, b: Self) -> Self {
                let ($a, $b) = (self.0, b.0);
                // SAFETY: `Level::run` calls this only if `Level::detect` found the unit.
                unsafe { $name($ab) }
            })*
            $(#[inline(always)]
            fn $pair(self, b: Self) -> (Self, Self) {
                let ($a, $b) = (self.0, b.0);
                // SAFETY: `Level::run` calls this only if `Level::detect` found the unit.
                let (first, second) = unsafe { $two };
                ($name(first), $name(second))
            })*
            #[inline(always)]
            fn sum_pairs(self) -> Complex<$t> {
                let $a = self.0;
                // SAFETY: `Level::run` calls this only if `Level::detect` found the unit.
                unsafe { $sum }
            }
        }
    };
}
pub(super) use vector;

/// Returns the sums of the even and of the odd elements.
///
/// # Safety
/// Always safe, since SSE2 is part of x86-64.
#[inline(always)]
pub(super) unsafe fn pairs_f32x4(a: __m128) -> Complex<f32> {
    // SAFETY: SSE2 is part of x86-64.
    unsafe {
        let sum = _mm_add_ps(a, _mm_movehl_ps(a, a));
        Complex::new(_mm_cvtss_f32(sum), _mm_cvtss_f32(_mm_shuffle_ps(sum, sum, 1)))
    }
}
/// Returns the elements.
///
/// # Safety
/// Always safe, since SSE2 is part of x86-64.
#[inline(always)]
pub(super) unsafe fn pairs_f64x2(a: __m128d) -> Complex<f64> {
    // SAFETY: SSE2 is part of x86-64.
    unsafe { Complex::new(_mm_cvtsd_f64(a), _mm_cvtsd_f64(_mm_unpackhi_pd(a, a))) }
}
