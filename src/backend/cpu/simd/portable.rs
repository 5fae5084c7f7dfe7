//! Vectors for other processors: arrays, for which the compiler generates vector code.

use super::vector::Vector;
use crate::base::real::Real;
use num_complex::Complex;
use std::array::from_fn;

/// Implements `Vector` for arrays of fixed size.
macro_rules! vector {
    ($name:ident, |$a:ident, $b:ident, $c:ident| [$($ternary:ident = $abc:expr),*]) => {
        #[derive(Clone, Copy)]
        pub struct $name<T, const N: usize>([T; N]);
        impl<T: Real, const N: usize> Vector<T> for $name<T, N> {
            const LANES: usize = N;
            #[inline(always)]
            fn splat(x: T) -> Self {
                $name([x; N])
            }
            #[inline(always)]
            unsafe fn load(p: *const T) -> Self {
                // SAFETY: the caller promises N readable elements.
                $name(unsafe { p.cast::<[T; N]>().read_unaligned() })
            }
            #[inline(always)]
            unsafe fn store(self, p: *mut T) {
                // SAFETY: the caller promises N writable elements.
                unsafe { p.cast::<[T; N]>().write_unaligned(self.0) }
            }
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                $name(from_fn(|i| self.0[i] + b.0[i]))
            }
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                $name(from_fn(|i| self.0[i] - b.0[i]))
            }
            #[inline(always)]
            fn mul(self, b: Self) -> Self {
                $name(from_fn(|i| self.0[i] * b.0[i]))
            }
            #[inline(always)]
            fn max(self, b: Self) -> Self {
                $name(from_fn(|i| if self.0[i] > b.0[i] { self.0[i] } else { b.0[i] }))
            }
            #[inline(always)]
            fn min(self, b: Self) -> Self {
                $name(from_fn(|i| if self.0[i] < b.0[i] { self.0[i] } else { b.0[i] }))
            }
            $(#[inline(always)]
            fn $ternary(self, b: Self, c: Self) -> Self {
                $name(from_fn(|i| {
                    let ($a, $b, $c) = (self.0[i], b.0[i], c.0[i]);
                    $abc
                }))
            })*
            #[inline(always)]
            fn negate_where_odd(self, q: Self) -> Self {
                // The last bit of an f32 is bit 29 of its value as f64.
                let last = if T::EPSILON > f64::EPSILON { 29 } else { 0 };
                let odd = |i: usize| q.0[i].wide().to_bits() >> last & 1 == 1;
                $name(from_fn(|i| if odd(i) { -self.0[i] } else { self.0[i] }))
            }
            #[inline(always)]
            fn times_power_of_two(self, q: Self) -> Self {
                // The exponent of an f64 is in bits 52 and higher, with 1023 for 1.
                let power = |i: usize| f64::from_bits(((q.0[i].wide() - 1.5 / T::EPSILON + 1023.0) as u64) << 52);
                $name(from_fn(|i| T::of(self.0[i].wide() * power(i))))
            }
            #[inline(always)]
            fn zip(self, b: Self) -> (Self, Self) {
                let at = |i: usize| if i % 2 == 0 { self.0[i / 2] } else { b.0[i / 2] };
                ($name(from_fn(at)), $name(from_fn(|i| at(i + N))))
            }
            #[inline(always)]
            fn unzip(self, b: Self) -> (Self, Self) {
                let at = |i: usize| if i < N { self.0[i] } else { b.0[i - N] };
                ($name(from_fn(|i| at(2 * i))), $name(from_fn(|i| at(2 * i + 1))))
            }
            #[inline(always)]
            fn sum_pairs(self) -> Complex<T> {
                let sum = |first| self.0.iter().skip(first).step_by(2).copied().sum();
                Complex::new(sum(0), sum(1))
            }
        }
    };
}
// The reference of the tests: NEON and AVX2 round a b + c once too.
#[cfg(test)]
vector!(Fused, |a, b, c| [
    fma = a.fma_in_software(b, c),
    fnma = (-a).fma_in_software(b, c),
    mul_sub = a.fma_in_software(b, -c)
]);
// Slow, but correct.
vector!(Separate, |a, b, c| [fma = a * b + c, fnma = c - a * b, mul_sub = a.fma_in_software(b, -c)]);
