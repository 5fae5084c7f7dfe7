//! Vectors of AVX-512.

use super::pairs::{pairs_f32x4, pairs_f64x2};
use crate::backend::cpu::simd::intrinsics::vector;
use crate::backend::cpu::simd::vector::Vector;
use num_complex::Complex;
use std::arch::x86_64::*;

vector! {
    F32x16, __m512, f32, 16, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps,
    [add = _mm512_add_ps, sub = _mm512_sub_ps, mul = _mm512_mul_ps, max = _mm512_max_ps, min = _mm512_min_ps],
    |a, b, c| [
        fma = _mm512_fmadd_ps(a, b, c),
        fnma = _mm512_fnmadd_ps(a, b, c),
        mul_sub = _mm512_fmsub_ps(a, b, c)
    ],
    [
        negate_where_odd = _mm512_xor_ps(a, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(b), 31))),
        times_power_of_two = {
            let power = _mm512_slli_epi32(_mm512_castps_si512(b), 23);
            _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), power))
        }
    ],
    [
        zip = {
            let first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            let second = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
            (_mm512_permutex2var_ps(a, first, b), _mm512_permutex2var_ps(a, second, b))
        },
        unzip = {
            let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
            let odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
            (_mm512_permutex2var_ps(a, even, b), _mm512_permutex2var_ps(a, odd, b))
        }
    ],
    {
        let high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a), 1));
        let sum = _mm256_add_ps(_mm512_castps512_ps256(a), high);
        pairs_f32x4(_mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps(sum, 1)))
    }
}

vector! {
    F64x8, __m512d, f64, 8, _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd,
    [add = _mm512_add_pd, sub = _mm512_sub_pd, mul = _mm512_mul_pd, max = _mm512_max_pd, min = _mm512_min_pd],
    |a, b, c| [
        fma = _mm512_fmadd_pd(a, b, c),
        fnma = _mm512_fnmadd_pd(a, b, c),
        mul_sub = _mm512_fmsub_pd(a, b, c)
    ],
    [
        negate_where_odd = _mm512_xor_pd(a, _mm512_castsi512_pd(_mm512_slli_epi64(_mm512_castpd_si512(b), 63))),
        times_power_of_two = {
            let power = _mm512_slli_epi64(_mm512_castpd_si512(b), 52);
            _mm512_castsi512_pd(_mm512_add_epi64(_mm512_castpd_si512(a), power))
        }
    ],
    [
        zip = {
            let first = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
            let second = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
            (_mm512_permutex2var_pd(a, first, b), _mm512_permutex2var_pd(a, second, b))
        },
        unzip = {
            let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
            let odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
            (_mm512_permutex2var_pd(a, even, b), _mm512_permutex2var_pd(a, odd, b))
        }
    ],
    {
        let sum = _mm256_add_pd(_mm512_castpd512_pd256(a), _mm512_extractf64x4_pd(a, 1));
        pairs_f64x2(_mm_add_pd(_mm256_castpd256_pd128(sum), _mm256_extractf128_pd(sum, 1)))
    }
}
