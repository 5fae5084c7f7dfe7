//! Sums of pairs of elements, which the vectors of all units of x86-64 end with.

use num_complex::Complex;
use std::arch::x86_64::*;

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
