//! The taps, which are the values of the window at samples, by polynomials. The loops here and in spread.rs and
//! interpolate.rs are compiled for each vector unit: all functions that they call are `#[inline(always)]`.
//!
//! Every lane of a vector evaluates a different sample. The window is even, so that the taps j and W - 1 - j share
//! their even and odd parts. The taps along y and z stay in the order [tap][sample], because their readers load one
//! value at a time. Those along x are transposed to a row per sample.

use super::keys::unpack_key;
use super::sorting::SortedSamples;
use super::tiling::{Tiling, WindowLayout};
use crate::backend::cpu::simd::{transpose, Arith, Kernel, Level, SimdReal, Vector, MAX_LANES};
use crate::backend::{MAX_DEGREE, MAX_WIDTH};
use crate::base::error::{try_reserve, Result};

/// Number of samples whose taps are computed before any of them is used: a multiple of the lanes of every vector.
pub const CHUNK: usize = 32;

/// Compiles `$work` for each number of vectors, as the constant `$N`, and runs the copy for `$count`.
macro_rules! with_vectors {
    ($count:expr, $A:ident, [$($n:literal)*], $N:ident => $work:block) => {
        match $count {
            // Larger numbers of vectors than the widest window covers never occur, and are not compiled.
            $($n if $n * T::V::<$A>::LANES < 2 * (crate::backend::MAX_WIDTH + T::V::<$A>::LANES) => {
                const $N: usize = $n;
                $work
            })*
            n => unreachable!("a window does not cover {n} vectors"),
        }
    };
}
pub(super) use with_vectors;

/// Compiles `$work` for each number of coefficients, as the constant `$H`, and runs the copy for `$count`.
macro_rules! with_terms {
    ($count:expr, [$($n:literal)*], $H:ident => $work:block) => {
        match $count {
            $($n => {
                const $H: usize = $n;
                $work
            })*
            n => unreachable!("no polynomial has {n} even coefficients"),
        }
    };
}

/// The window's polynomials for the first half of the taps; the others are their mirror images.
pub struct Polynomials<T> {
    width: usize,
    /// Number of coefficients in t^2 of the even part of a tap, and of the odd part divided by t.
    terms: usize,
    /// Coefficients [tap][term][even, odd], highest power first.
    coefficients: Vec<T>,
}

impl<T: SimdReal> Polynomials<T> {
    /// Creates the polynomials from rows of coefficients, highest power first, of all taps of an even window.
    pub fn new(window: &[Vec<f64>]) -> Result<Self> {
        let (rows, width) = (window.len(), window[0].len());
        assert!((2..=MAX_WIDTH).contains(&width) && rows <= MAX_DEGREE + 1);
        let (terms, pairs) = (rows.div_ceil(2), width.div_ceil(2));
        let mut coefficients = try_reserve(2 * pairs * terms, "the window's polynomials")?;
        for j in 0..pairs {
            for term in (0..terms).rev() {
                // A tap and its mirror image contribute equally.
                let part = |power: usize, sign: f64| match rows.checked_sub(power + 1) {
                    Some(row) => T::of(0.5 * (window[row][j] + sign * window[row][width - 1 - j])),
                    None => T::ZERO,
                };
                coefficients.extend([part(2 * term, 1.0), part(2 * term + 1, -1.0)]);
            }
        }
        Ok(Polynomials { width, terms, coefficients })
    }
}

/// Addresses of the taps of a chunk of samples.
#[derive(Clone, Copy)]
pub struct Taps<T> {
    /// Along x: a record of `WindowLayout::x_len` reals for each sample, with every tap twice.
    pub x: *const T,
    /// Along y: [tap][`CHUNK` samples].
    pub y: *const T,
    /// Along z: [tap][`CHUNK` samples].
    pub z: *const T,
}

impl<T> Taps<T> {
    /// Returns the taps from sample `i` of the chunk on.
    ///
    /// # Safety
    /// The chunk must have more than `i` samples.
    #[inline(always)]
    pub unsafe fn from(self, i: usize, x_len: usize) -> Self {
        // SAFETY: the caller promises samples from i on.
        unsafe { Taps { x: self.x.add(i * x_len), y: self.y.add(i), z: self.z.add(i) } }
    }
}

/// Returns the length of the taps of a chunk in reals: a record per sample along x, then all samples' values of each
/// tap per axis. Along x, zeros fill the last vector of cells.
pub fn taps_len(tiling: &Tiling) -> usize {
    CHUNK * (tiling.layout.x_len + tiling.layout.x_taps + tiling.taps[1] + tiling.taps[2])
}

impl<T: SimdReal> Polynomials<T> {
    /// Computes the taps of `count` samples from `first` on. The taps along x appear twice, for real and imaginary
    /// parts. If `shifted` is set, they are shifted by the cells between the start of the vector and the start of the
    /// window.
    #[inline(always)]
    pub fn taps(
        &self,
        level: Level,
        tiling: &Tiling,
        samples: &SortedSamples<T>,
        (first, count): (usize, usize),
        shifted: bool,
        memory: &mut [T],
    ) -> Taps<T> {
        assert!(count <= CHUNK && first + count <= samples.order.len() && memory.len() == taps_len(tiling));
        let taps = memory.as_mut_ptr();
        // One copy serves all widths; an inlined function would be compiled for each. A shifted record is read soon, in
        // pieces of the vectors that it was written in, which a processor forwards from its stores.
        let write = TapKernel { polynomials: self, tiling, samples, first, count, shifted, taps };
        if shifted {
            level.run_rows(write);
        } else {
            level.run(write);
        }
        let (_, y_at, z_at) = tap_offsets(tiling);
        Taps { x: taps, y: taps.wrapping_add(y_at), z: taps.wrapping_add(z_at) }
    }
}

/// Returns the offsets of the taps along each axis; those along x are the ones before the transposition.
#[inline(always)]
fn tap_offsets(tiling: &Tiling) -> (usize, usize, usize) {
    let x_at = CHUNK * tiling.layout.x_len;
    let y_at = x_at + CHUNK * tiling.layout.x_taps;
    (x_at, y_at, y_at + CHUNK * tiling.taps[1])
}

/// The computation of taps, in memory of [`taps_len`] reals whose rows of zeros are never overwritten.
struct TapKernel<'a, T> {
    polynomials: &'a Polynomials<T>,
    tiling: &'a Tiling,
    samples: &'a SortedSamples<T>,
    first: usize,
    count: usize,
    shifted: bool,
    taps: *mut T,
}

impl<T: SimdReal> Kernel for TapKernel<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arith>(self) {
        let TapKernel { tiling, samples, first, count, taps, .. } = self;
        let lanes = T::V::<A>::LANES;
        let (x_at, y_at, z_at) = tap_offsets(tiling);
        let Polynomials { width, terms, coefficients } = self.polynomials;
        let (width, coefficients) = (*width, coefficients.as_ptr());
        with_terms!(*terms, [1 2 3 4 5 6 7 8 9 10 11 12 13], H => {
            for (axis, at) in [x_at, y_at, z_at].into_iter().enumerate() {
                if tiling.taps[axis] == 1 {
                    continue;
                }
                let offsets = samples.t[axis].as_ptr();
                for start in (0..count).step_by(lanes) {
                    // SAFETY: `Polynomials::taps` has checked the sizes. The offsets are followed by a padding of one
                    // vector. The lanes of a vector divide CHUNK, so that the last vector's taps fit too. There are 2 H
                    // coefficients for each pair of taps.
                    unsafe {
                        let t = T::V::<A>::load(offsets.add(first + start));
                        let square = t.mul(t);
                        for j in 0..width.div_ceil(2) {
                            let c = coefficients.add(2 * H * j);
                            let (mut even, mut odd) = (T::V::<A>::splat(*c), T::V::<A>::splat(*c.add(1)));
                            for i in (0..H).skip(1) {
                                even = even.fma(square, T::V::<A>::splat(*c.add(2 * i)));
                                odd = odd.fma(square, T::V::<A>::splat(*c.add(2 * i + 1)));
                            }
                            odd.fma(t, even).store(taps.add(at + j * CHUNK + start));
                            odd.fnma(t, even).store(taps.add(at + (width - 1 - j) * CHUNK + start));
                        }
                    }
                }
            }
        });
        // SAFETY: as above.
        unsafe { self.transpose::<A>(x_at) };
    }
}

impl<T: SimdReal> TapKernel<'_, T> {
    /// Transposes the taps along x, which begin at `x_at`, to records.
    ///
    /// # Safety
    /// `taps` must have the length that `Polynomials::taps` has checked, and the taps along x must be written.
    #[inline(always)]
    unsafe fn transpose<A: Arith>(&self, x_at: usize) {
        let lanes = T::V::<A>::LANES;
        let zero = T::V::<A>::splat(T::ZERO);
        let WindowLayout { x_len, row_vectors, .. } = self.tiling.layout;
        // A vector of cells has LANES / 2 cells.
        let within = lanes as u32 / 2 - 1;
        let keys = self.samples.keys.as_ptr().wrapping_add(self.first);
        for start in (0..self.count).step_by(lanes) {
            for block in 0..self.tiling.taps[0].div_ceil(lanes / 2) {
                let mut rows = [zero; MAX_LANES];
                for i in (0..lanes).step_by(2) {
                    let at = x_at + (block * lanes + i) / 2 * CHUNK + start;
                    // SAFETY: the taps are followed by rows of zeros that fill whole vectors of cells.
                    let row = unsafe { T::V::<A>::load(self.taps.add(at)) };
                    (rows[i], rows[i + 1]) = (row, row);
                }
                transpose::<T, _>(&mut rows);
                for (i, row) in rows[..lanes].iter().enumerate() {
                    // SAFETY: a record has x_len reals: enough for row_vectors, and for whole vectors of taps after the
                    // shift, which is less than a vector. The keys are followed by a padding of one vector.
                    unsafe {
                        let record = self.taps.add((start + i) * x_len);
                        let shift =
                            if self.shifted { 2 * (unpack_key(*keys.add(start + i)).0 & within) as usize } else { 0 };
                        if self.shifted && block == 0 {
                            zero.store(record);
                            zero.store(record.add((row_vectors - 1) * lanes));
                        }
                        row.store(record.add(shift + block * lanes));
                    }
                }
            }
        }
    }
}
