//! The window of one or several samples: adds it to cells, and sums cells under it.

use super::keys::unpack_key;
use super::taps::{Taps, CHUNK};
use super::tiling::WindowStrides;
use crate::backend::cpu::simd::{Arith, SimdReal, Vector};
use num_complex::Complex;

/// Adds `S` samples whose windows start in the same vector to rows of `N` vectors.
///
/// # Safety
/// `taps` and `keys` must belong to the samples, and `values` to their batch. The window's rows from `first` on must be
/// writable.
#[inline(always)]
pub unsafe fn add<T: SimdReal, A: Arith, const N: usize, const S: usize>(
    window: WindowStrides,
    x_len: usize,
    taps: Taps<T>,
    keys: &[u32],
    values: &[Complex<T>],
    first: *mut T,
) {
    let lanes = T::V::<A>::LANES;
    let zero = T::V::<A>::splat(T::ZERO);
    // SAFETY: the caller promises the taps, and writable rows from `first` on.
    unsafe {
        let mut x = [[zero; N]; S];
        for s in 0..S {
            let value = values[unpack_key(keys[s]).1];
            let (value, _) = T::V::<A>::splat(value.re).zip(T::V::<A>::splat(value.im));
            for (v, x) in x[s].iter_mut().enumerate() {
                *x = T::V::<A>::load(taps.x.add(s * x_len + v * lanes)).mul(value);
            }
        }
        if window.depth == 1 {
            add_rows::<T, A, N, S>(window, &x, taps.y, first);
            return;
        }
        for jz in 0..window.depth {
            let mut xz = x;
            for (s, xz) in xz.iter_mut().enumerate() {
                let factor = T::V::<A>::splat(*taps.z.add(jz * CHUNK + s));
                xz.iter_mut().for_each(|x| *x = x.mul(factor));
            }
            add_rows::<T, A, N, S>(window, &xz, taps.y, first.add(jz * window.plane));
        }
    }
}

/// Adds the outer product of `x` and the taps at `y` to rows of a plane.
///
/// # Safety
/// As for [`add`]: `y` must be the samples' taps, and the rows from `first` on must be writable.
#[inline(always)]
unsafe fn add_rows<T: SimdReal, A: Arith, const N: usize, const S: usize>(
    window: WindowStrides,
    x: &[[T::V<A>; N]; S],
    y: *const T,
    first: *mut T,
) {
    let lanes = T::V::<A>::LANES;
    for jy in 0..window.height {
        // SAFETY: the caller promises taps at `y`, and the same number of writable rows from `first` on.
        unsafe {
            let p = first.add(jy * window.row);
            let y = y.add(jy * CHUNK);
            // The samples are summed first, and then added to the cells: fewer additions round a large total.
            let factor = T::V::<A>::splat(*y);
            let mut sum = x[0];
            sum.iter_mut().for_each(
                #[inline(always)]
                |sum| *sum = sum.mul(factor),
            );
            for (s, x) in x.iter().enumerate().skip(1) {
                let factor = T::V::<A>::splat(*y.add(s));
                for (sum, x) in sum.iter_mut().zip(x) {
                    *sum = x.fma(factor, *sum);
                }
            }
            for (v, sum) in sum.iter_mut().enumerate() {
                *sum = sum.add(T::V::<A>::load(p.add(v * lanes)));
            }
            for (v, sum) in sum.iter().enumerate() {
                sum.store(p.add(v * lanes));
            }
        }
    }
}

/// Adds cells to others.
#[inline(always)]
pub fn add_cells<T: SimdReal>(cells: &mut [Complex<T>], sums: &[Complex<T>]) {
    cells.iter_mut().zip(sums).for_each(|(cell, sum)| *cell += *sum);
}

/// Returns the sum of cells under one sample's window, `N` vectors wide. `row(y, z)` returns the first cell of a row of
/// the window.
///
/// # Safety
/// `taps` must be the sample's taps, and `N` vectors readable from each of the window's rows on.
#[inline(always)]
pub unsafe fn window_sum<T: SimdReal, A: Arith, const N: usize>(
    w: WindowStrides,
    taps: Taps<T>,
    row: impl Fn(usize, usize) -> *const T,
) -> Complex<T> {
    let lanes = T::V::<A>::LANES;
    let zero = T::V::<A>::splat(T::ZERO);
    // SAFETY: the caller promises the taps, and rows of readable cells.
    unsafe {
        let mut sum = [zero; N];
        if w.depth == 1 {
            sum = plane_sum::<T, A, N>(w.height, taps.y, |y| row(y, 0));
        } else {
            for jz in 0..w.depth {
                let factor = T::V::<A>::splat(*taps.z.add(jz * CHUNK));
                let plane = plane_sum::<T, A, N>(w.height, taps.y, |y| row(y, jz));
                for (sum, plane) in sum.iter_mut().zip(plane) {
                    *sum = plane.fma(factor, *sum);
                }
            }
        }
        let mut total = zero;
        for (v, sum) in sum.iter().enumerate() {
            total = sum.fma(T::V::<A>::load(taps.x.add(v * lanes)), total);
        }
        total.sum_pairs()
    }
}

/// Returns the sums over y of the rows of a plane.
///
/// # Safety
/// As for [`window_sum`]: `y` must be the sample's taps, and `N` vectors readable from each of `height` rows on.
#[inline(always)]
unsafe fn plane_sum<T: SimdReal, A: Arith, const N: usize>(
    height: usize,
    y: *const T,
    row: impl Fn(usize) -> *const T,
) -> [T::V<A>; N] {
    let lanes = T::V::<A>::LANES;
    let mut sum = [T::V::<A>::splat(T::ZERO); N];
    for jy in 0..height {
        // SAFETY: the caller promises the taps, and rows of readable cells.
        unsafe {
            let factor = T::V::<A>::splat(*y.add(jy * CHUNK));
            let row = row(jy);
            for (v, sum) in sum.iter_mut().enumerate() {
                *sum = T::V::<A>::load(row.add(v * lanes)).fma(factor, *sum);
            }
        }
    }
    sum
}
