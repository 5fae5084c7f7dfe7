//! Vectors of SSE2, the vector unit of every x86-64 processor.

use super::pairs::{pairs_f32x4, pairs_f64x2};
use crate::backend::cpu::simd::intrinsics::vector;
use crate::backend::cpu::simd::vector::Vector;
use num_complex::Complex;
use std::arch::x86_64::*;

vector! {
    F32x4, __m128, f32, 4, _mm_set1_ps, _mm_loadu_ps, _mm_storeu_ps,
    [add = _mm_add_ps, sub = _mm_sub_ps, mul = _mm_mul_ps, max = _mm_max_ps, min = _mm_min_ps],
    |a, b, c| [
        fma = _mm_add_ps(_mm_mul_ps(a, b), c),
        fnma = _mm_sub_ps(c, _mm_mul_ps(a, b)),
        mul_sub = {
            // Both factors are split into halves whose products are exact.
            let half = |x| {
                let y = _mm_mul_ps(x, _mm_set1_ps(4097.0));
                let high = _mm_sub_ps(y, _mm_sub_ps(y, x));
                (high, _mm_sub_ps(x, high))
            };
            let ((ah, al), (bh, bl)) = (half(a), half(b));
            let rest = _mm_sub_ps(_mm_mul_ps(ah, bh), c);
            let rest = _mm_add_ps(_mm_add_ps(rest, _mm_mul_ps(ah, bl)), _mm_mul_ps(al, bh));
            _mm_add_ps(rest, _mm_mul_ps(al, bl))
        }
    ],
    [
        negate_where_odd = _mm_xor_ps(a, _mm_castsi128_ps(_mm_slli_epi32(_mm_castps_si128(b), 31))),
        times_power_of_two = {
            let power = _mm_slli_epi32(_mm_castps_si128(b), 23);
            _mm_castsi128_ps(_mm_add_epi32(_mm_castps_si128(a), power))
        }
    ],
    [
        zip = (_mm_unpacklo_ps(a, b), _mm_unpackhi_ps(a, b)),
        unzip = (_mm_shuffle_ps(a, b, 0x88), _mm_shuffle_ps(a, b, 0xdd))
    ],
    pairs_f32x4(a)
}

vector! {
    F64x2, __m128d, f64, 2, _mm_set1_pd, _mm_loadu_pd, _mm_storeu_pd,
    [add = _mm_add_pd, sub = _mm_sub_pd, mul = _mm_mul_pd, max = _mm_max_pd, min = _mm_min_pd],
    |a, b, c| [
        fma = _mm_add_pd(_mm_mul_pd(a, b), c),
        fnma = _mm_sub_pd(c, _mm_mul_pd(a, b)),
        mul_sub = {
            // Both factors are split into halves whose products are exact.
            let half = |x| {
                let y = _mm_mul_pd(x, _mm_set1_pd(134217729.0));
                let high = _mm_sub_pd(y, _mm_sub_pd(y, x));
                (high, _mm_sub_pd(x, high))
            };
            let ((ah, al), (bh, bl)) = (half(a), half(b));
            let rest = _mm_sub_pd(_mm_mul_pd(ah, bh), c);
            let rest = _mm_add_pd(_mm_add_pd(rest, _mm_mul_pd(ah, bl)), _mm_mul_pd(al, bh));
            _mm_add_pd(rest, _mm_mul_pd(al, bl))
        }
    ],
    [
        negate_where_odd = _mm_xor_pd(a, _mm_castsi128_pd(_mm_slli_epi64(_mm_castpd_si128(b), 63))),
        times_power_of_two = {
            let power = _mm_slli_epi64(_mm_castpd_si128(b), 52);
            _mm_castsi128_pd(_mm_add_epi64(_mm_castpd_si128(a), power))
        }
    ],
    [
        zip = (_mm_unpacklo_pd(a, b), _mm_unpackhi_pd(a, b)),
        unzip = (_mm_unpacklo_pd(a, b), _mm_unpackhi_pd(a, b))
    ],
    pairs_f64x2(a)
}
