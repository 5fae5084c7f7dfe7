//! Direct sums between any two lists of points.

use super::super::simd::{Arith, Kernel, Level, Vector};
use super::super::thread_pool::Threads;
use super::phase::{cos_sin, phases};
use crate::backend::cpu::simd::SimdReal;
use crate::backend::Sign;
use crate::base::interrupt::Watch;
use crate::base::workers::Shared;
use num_complex::Complex;
use std::array::from_fn;

/// Points whose sums one task computes, and points whose coordinates and values stay in the first cache meanwhile.
const TO: usize = 192;
const FROM: usize = 256;
/// Blocks of `FROM` points after which a task looks whether it is to end, since lists may be long.
const BLOCKS_BETWEEN_CHECKS: usize = 16;
/// Vectors of sums that share the loads of a point's coordinates and value.
const GROUP: usize = 3;

/// out(a) = sum_b values(b) exp(+-i 2 pi p_a.p_b), for any points a and b. The results are undefined when the watch
/// says stop.
#[allow(clippy::too_many_arguments)]
pub fn sum<T: SimdReal>(
    threads: &Threads,
    level: Level,
    watch: &Watch,
    sign: Sign,
    from: &[Vec<T>],
    values: &[Complex<T>],
    to: &[Vec<T>],
    out: &mut [Complex<T>],
) {
    assert!(from.len() == to.len());
    assert!(from.iter().all(|axis| axis.len() == values.len()));
    assert!(to.iter().all(|axis| axis.len() == out.len()));
    let total = out.len();
    let shared = Shared::new(out);
    threads.run(total.div_ceil(TO), |task| {
        let own = task * TO..((task + 1) * TO).min(total);
        // SAFETY: each task has its own points.
        let out = unsafe { shared.part(own.start, own.len()) };
        level.run(Sum { watch, sign, from, values, to, first: own.start, out });
    });
}

struct Sum<'a, T> {
    watch: &'a Watch,
    sign: Sign,
    from: &'a [Vec<T>],
    values: &'a [Complex<T>],
    to: &'a [Vec<T>],
    first: usize,
    out: &'a mut [Complex<T>],
}

impl<T: SimdReal> Kernel for Sum<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arith>(self) {
        match self.from.len() {
            1 => self.of_dimension::<A, 1>(),
            2 => self.of_dimension::<A, 2>(),
            3 => self.of_dimension::<A, 3>(),
            n => unreachable!("points of {n} coordinates"),
        }
    }
}

impl<T: SimdReal> Sum<'_, T> {
    #[inline(always)]
    fn of_dimension<A: Arith, const D: usize>(self) {
        let mut to = [[T::ZERO; TO]; D];
        for (to, axis) in to.iter_mut().zip(self.to) {
            for (to, p) in to.iter_mut().zip(&axis[self.first..][..self.out.len()]) {
                *to = if self.sign == Sign::Plus { *p } else { -*p };
            }
        }
        // Sums of a block in the precision of the data, sums of blocks in double precision.
        let mut total = [[0f64; TO]; 2];
        let step = GROUP * T::V::<A>::LANES;
        for start in (0..self.values.len()).step_by(FROM) {
            if start % (BLOCKS_BETWEEN_CHECKS * FROM) == 0 && self.watch.stopped() {
                return;
            }
            let block = start..(start + FROM).min(self.values.len());
            let values = &self.values[block.clone()];
            let from: [&[T]; D] = from_fn(|axis| &self.from[axis][block.clone()]);
            for first in (0..self.out.len()).step_by(step) {
                // SAFETY: a slice of GROUP vectors holds vector i; it ends within TO, a multiple of a group.
                let p = to.each_ref().map(|axis| {
                    from_fn(|i| unsafe { T::V::<A>::load(axis[first..first + step][i * T::V::<A>::LANES..].as_ptr()) })
                });
                let sums = block_sums::<T, T::V<A>, D>(from, values, p);
                for (total, sums) in total.iter_mut().zip(sums) {
                    for (total, sum) in total[first..first + step].chunks_exact_mut(T::V::<A>::LANES).zip(sums) {
                        let mut lanes = [T::ZERO; 16];
                        assert!(T::V::<A>::LANES <= lanes.len());
                        // SAFETY: a vector fits into `lanes`, as asserted.
                        unsafe { sum.store(lanes.as_mut_ptr()) };
                        for (total, lane) in total.iter_mut().zip(lanes) {
                            *total += lane.wide();
                        }
                    }
                }
            }
        }
        for (i, out) in self.out.iter_mut().enumerate() {
            *out = Complex::new(T::of(total[0][i]), T::of(total[1][i]));
        }
    }
}

/// Real and imaginary parts of the sums over a block of points, at the points `p`.
#[inline(always)]
fn block_sums<T: SimdReal, V: Vector<T>, const D: usize>(
    from: [&[T]; D],
    values: &[Complex<T>],
    p: [[V; GROUP]; D],
) -> [[V; GROUP]; 2] {
    let mut sums = [[V::splat(T::ZERO); GROUP]; 2];
    let from = from.map(|axis| &axis[..values.len()]);
    // The phases of a point are computed while the point before is summed: more independent operations.
    let mut next = phases(from.map(|axis| V::splat(axis[0])), p);
    for (b, value) in values.iter().enumerate() {
        let current = next;
        let after = (b + 1).min(values.len() - 1);
        next = phases(from.map(|axis| V::splat(axis[after])), p);
        let (re, im) = (V::splat(value.re), V::splat(value.im));
        let (cos, sin) = cos_sin(current);
        sums[0] = from_fn(|i| im.fnma(sin[i], sums[0][i]));
        sums[1] = from_fn(|i| im.fma(cos[i], sums[1][i]));
        sums[0] = from_fn(|i| re.fma(cos[i], sums[0][i]));
        sums[1] = from_fn(|i| re.fma(sin[i], sums[1][i]));
    }
    sums
}
