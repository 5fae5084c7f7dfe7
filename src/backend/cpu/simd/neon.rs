//! Vectors of NEON, the vector unit of every 64-bit ARM processor.
//!
//! Every function returns the bits of `portable::Fused`: NEON rounds a b + c once.
//!
//! A vector is one of the 32 registers of 128 bits. With two registers per vector, windows would fill a smaller part of
//! the vectors of their rows, and a butterfly of radix 8 would no longer fit the registers.

use super::vector::Vector;
use num_complex::Complex;
use std::arch::aarch64::*;

/// Implements `Vector` for a type of the intrinsics. The operations are given as intrinsics, or as expressions of the
/// arguments a, b and c.
macro_rules! vector {
    ($name:ident, $inner:ty, $t:ty, $lanes:literal, $splat:ident, $load:ident, $store:ident,
     [$($simple:ident = $intrinsic:ident),*], |$a:ident, $b:ident, $c:ident|
     [$($ternary:ident = $abc:expr),*], [$($binary:ident = $ab:expr),*],
     [$($pair:ident = ($first:ident, $second:ident)),*], $sum:expr) => {
        #[derive(Clone, Copy)]
        pub struct $name($inner);
        impl Vector<$t> for $name {
            const LANES: usize = $lanes;
            #[inline(always)]
            fn splat(x: $t) -> Self {
                // SAFETY: NEON is part of the target.
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
                // SAFETY: NEON is part of the target.
                unsafe { $name($intrinsic(self.0, b.0)) }
            })*
            $(#[inline(always)]
            fn $ternary(self, b: Self, c: Self) -> Self {
                let ($a, $b, $c) = (self.0, b.0, c.0);
                // SAFETY: NEON is part of the target.
                unsafe { $name($abc) }
            })*
            $(#[inline(always)]
            fn $binary(self, b: Self) -> Self {
                let ($a, $b) = (self.0, b.0);
                // SAFETY: NEON is part of the target.
                unsafe { $name($ab) }
            })*
            $(#[inline(always)]
            fn $pair(self, b: Self) -> (Self, Self) {
                // SAFETY: NEON is part of the target.
                unsafe { ($name($first(self.0, b.0)), $name($second(self.0, b.0))) }
            })*
            #[inline(always)]
            fn sum_pairs(self) -> Complex<$t> {
                let $a = self.0;
                // SAFETY: NEON is part of the target.
                unsafe { $sum }
            }
        }
    };
}

vector! {
    F32x4, float32x4_t, f32, 4, vdupq_n_f32, vld1q_f32, vst1q_f32,
    [add = vaddq_f32, sub = vsubq_f32, mul = vmulq_f32, max = vmaxq_f32, min = vminq_f32],
    |a, b, c| [
        fma = vfmaq_f32(c, a, b),
        fnma = vfmsq_f32(c, a, b),
        mul_sub = vfmaq_f32(vnegq_f32(c), a, b)
    ],
    [
        negate_where_odd = {
            let sign = vshlq_n_u32::<31>(vreinterpretq_u32_f32(b));
            vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(a), sign))
        },
        times_power_of_two = {
            let power = vshlq_n_u32::<23>(vreinterpretq_u32_f32(b));
            vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(a), power))
        }
    ],
    [zip = (vzip1q_f32, vzip2q_f32), unzip = (vuzp1q_f32, vuzp2q_f32)],
    {
        let sum = vadd_f32(vget_low_f32(a), vget_high_f32(a));
        Complex::new(vget_lane_f32::<0>(sum), vget_lane_f32::<1>(sum))
    }
}

vector! {
    F64x2, float64x2_t, f64, 2, vdupq_n_f64, vld1q_f64, vst1q_f64,
    [add = vaddq_f64, sub = vsubq_f64, mul = vmulq_f64, max = vmaxq_f64, min = vminq_f64],
    |a, b, c| [
        fma = vfmaq_f64(c, a, b),
        fnma = vfmsq_f64(c, a, b),
        mul_sub = vfmaq_f64(vnegq_f64(c), a, b)
    ],
    [
        negate_where_odd = {
            let sign = vshlq_n_u64::<63>(vreinterpretq_u64_f64(b));
            vreinterpretq_f64_u64(veorq_u64(vreinterpretq_u64_f64(a), sign))
        },
        times_power_of_two = {
            let power = vshlq_n_u64::<52>(vreinterpretq_u64_f64(b));
            vreinterpretq_f64_u64(vaddq_u64(vreinterpretq_u64_f64(a), power))
        }
    ],
    [zip = (vzip1q_f64, vzip2q_f64), unzip = (vuzp1q_f64, vuzp2q_f64)],
    Complex::new(vgetq_lane_f64::<0>(a), vgetq_lane_f64::<1>(a))
}
