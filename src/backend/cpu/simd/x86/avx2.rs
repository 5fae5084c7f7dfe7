//! Vectors of AVX2 with fused multiply-add.

use super::pairs::{pairs_f32x4, pairs_f64x2};
use crate::backend::cpu::simd::intrinsics::vector;
use crate::backend::cpu::simd::vector::Vector;
use num_complex::Complex;
use std::arch::x86_64::*;

vector! {
    F32x8, __m256, f32, 8, _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps,
    [add = _mm256_add_ps, sub = _mm256_sub_ps, mul = _mm256_mul_ps, max = _mm256_max_ps, min = _mm256_min_ps],
    |a, b, c| [
        fma = _mm256_fmadd_ps(a, b, c),
        fnma = _mm256_fnmadd_ps(a, b, c),
        mul_sub = _mm256_fmsub_ps(a, b, c)
    ],
    [
        negate_where_odd = _mm256_xor_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(b), 31))),
        times_power_of_two = {
            let power = _mm256_slli_epi32(_mm256_castps_si256(b), 23);
            _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), power))
        }
    ],
    [
        zip = {
            let (low, high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
            (_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31))
        },
        unzip = {
            let even = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88));
            let odd = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xdd));
            let (even, odd) = (_mm256_permute4x64_pd(even, 0xd8), _mm256_permute4x64_pd(odd, 0xd8));
            (_mm256_castpd_ps(even), _mm256_castpd_ps(odd))
        }
    ],
    pairs_f32x4(_mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1)))
}

vector! {
    F64x4, __m256d, f64, 4, _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd,
    [add = _mm256_add_pd, sub = _mm256_sub_pd, mul = _mm256_mul_pd, max = _mm256_max_pd, min = _mm256_min_pd],
    |a, b, c| [
        fma = _mm256_fmadd_pd(a, b, c),
        fnma = _mm256_fnmadd_pd(a, b, c),
        mul_sub = _mm256_fmsub_pd(a, b, c)
    ],
    [
        negate_where_odd = _mm256_xor_pd(a, _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_castpd_si256(b), 63))),
        times_power_of_two = {
            let power = _mm256_slli_epi64(_mm256_castpd_si256(b), 52);
            _mm256_castsi256_pd(_mm256_add_epi64(_mm256_castpd_si256(a), power))
        }
    ],
    [
        zip = {
            let (low, high) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
            (_mm256_permute2f128_pd(low, high, 0x20), _mm256_permute2f128_pd(low, high, 0x31))
        },
        unzip = {
            let (low, high) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
            (_mm256_permute4x64_pd(low, 0xd8), _mm256_permute4x64_pd(high, 0xd8))
        }
    ],
    pairs_f64x2(_mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1)))
}
