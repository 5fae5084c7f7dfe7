//! Vectors of NEON, the vector unit of every 64-bit ARM processor.
//!
//! Every function returns the bits of `portable::Fused`: NEON rounds a b + c once.
//!
//! A vector is one of the 32 registers of 128 bits. With two registers per vector, windows would fill a smaller part of
//! the vectors of their rows, and a butterfly of radix 8 would no longer fit the registers.

use super::intrinsics::vector;
use super::vector::Vector;
use num_complex::Complex;
use std::arch::aarch64::*;

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
    [zip = (vzip1q_f32(a, b), vzip2q_f32(a, b)), unzip = (vuzp1q_f32(a, b), vuzp2q_f32(a, b))],
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
    [zip = (vzip1q_f64(a, b), vzip2q_f64(a, b)), unzip = (vuzp1q_f64(a, b), vuzp2q_f64(a, b))],
    Complex::new(vgetq_lane_f64::<0>(a), vgetq_lane_f64::<1>(a))
}
