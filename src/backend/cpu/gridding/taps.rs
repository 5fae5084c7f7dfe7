//! The values of the window at samples (taps), as polynomials. The loops here and in spread.rs and interpolate.rs are
//! compiled for each vector unit: all that they call is `#[inline(always)]`.

use super::gridder::Gridder;
use super::sorting::Point;
use super::tiling::Layout;
use crate::backend::cpu::simd::{Arith, SimdReal, Vector};

/// Samples whose taps are computed at once, so that no multiply-add waits for the one before it. Divides
/// [`super::gridder::CHUNK`].
const INTERLEAVED: usize = 8;

/// Compiles `$work` for each number of vectors, which is the constant `$N` there, and does it for `$count`.
macro_rules! with_vectors {
    ($count:expr, $A:ident, [$($n:literal)*], $N:ident => $work:block) => {
        match $count {
            // More vectors than the widest window covers never occur, and are not compiled.
            $($n if $n * T::V::<$A>::LANES < 2 * (crate::backend::MAX_WIDTH + T::V::<$A>::LANES) => {
                const $N: usize = $n;
                $work
            })*
            n => unreachable!("a window does not cover {n} vectors"),
        }
    };
}
pub(super) use with_vectors;

impl<T: SimdReal> Gridder<T> {
    /// Writes the records of some points' taps. Taps of x are there twice each, for real and imaginary parts, `moved`
    /// by the points' shifts or not.
    ///
    /// # Safety
    /// `records` must have room for `CHUNK` of them, of this level's layout.
    #[inline(always)]
    pub(super) unsafe fn write_taps<A: Arith>(&self, points: &[Point<T>], moved: bool, records: *mut T) {
        let lanes = T::V::<A>::LANES;
        let Layout { tap_vectors, row_vectors, x_len, record, .. } = self.layout;
        let zero = T::V::<A>::splat(T::ZERO);
        let axes = if self.taps[2] > 1 { 3 } else { 2 };
        let row = tap_vectors * lanes;
        for first in (0..points.len()).step_by(INTERLEAVED) {
            let records = records.wrapping_add(first * record);
            // The last point fills up an incomplete group: there is room for its copies.
            let block: [&Point<T>; INTERLEAVED] = std::array::from_fn(|i| &points[(first + i).min(points.len() - 1)]);
            for axis in 0..axes {
                for v in 0..tap_vectors {
                    let t: [T::V<A>; INTERLEAVED] = std::array::from_fn(|i| T::V::<A>::splat(block[i].t[axis]));
                    // SAFETY: polynomials are rows of `tap_vectors` vectors.
                    let taps = unsafe { evaluate(&self.polynomials, row, v * lanes, t) };
                    for (i, (point, taps)) in block.iter().zip(taps).enumerate() {
                        // SAFETY: a record has x_len reals for x, enough for row_vectors and for the shift, and `row`
                        // reals for each of y and z.
                        unsafe {
                            let to = records.add(i * record);
                            if axis > 0 {
                                taps.store(to.add(x_len + (axis - 1) * row + v * lanes));
                                continue;
                            }
                            let shift = if moved { 2 * point.shift as usize } else { 0 };
                            if moved && v == 0 {
                                (0..row_vectors).for_each(|v| zero.store(to.add(v * lanes)));
                            }
                            let (low, high) = taps.zip(taps);
                            low.store(to.add(shift + 2 * v * lanes));
                            high.store(to.add(shift + (2 * v + 1) * lanes));
                        }
                    }
                }
            }
        }
    }
}

/// A vector of polynomials, `first` elements into each row of coefficients, at each of `t`.
///
/// # Safety
/// A vector must be readable there, in rows of `row` elements.
#[inline(always)]
unsafe fn evaluate<T: SimdReal, V: Vector<T>>(
    polynomials: &[T],
    row: usize,
    first: usize,
    t: [V; INTERLEAVED],
) -> [V; INTERLEAVED] {
    // SAFETY: the caller promises rows of `row` elements with a vector at `first`.
    unsafe {
        let mut sums = [V::load(polynomials.as_ptr().add(first)); INTERLEAVED];
        let mut at = row;
        while at < polynomials.len() {
            let coefficient = V::load(polynomials.as_ptr().add(at + first));
            for (sum, t) in sums.iter_mut().zip(t) {
                *sum = sum.fma(t, coefficient);
            }
            at += row;
        }
        sums
    }
}
