//! Direct sums between any two lists of points, with or without decay.

use super::phase::{cos_sin, phases};
use super::power::powers_of_two;
use crate::backend::cpu::simd::{Arith, Kernel, Level, SimdReal, Vector};
use crate::backend::threads::Threads;
use crate::backend::Sign;
use crate::base::interrupt::StopSignal;
use crate::base::workers::SharedSlice;
use num_complex::Complex;
use std::array::from_fn;

/// Number of points whose sums one task computes.
const TO: usize = 192;
/// Number of points whose coordinates and values stay in the first-level cache in the meantime.
const FROM: usize = 256;
/// Number of blocks of `FROM` points between two checks of the stop signal, since lists may be long.
const BLOCKS_BETWEEN_CHECKS: usize = 16;
/// Number of vectors of sums that share the loads of a point's coordinates and value.
const GROUP: usize = 3;

/// Points of a sum, as lists of equal length.
#[derive(Clone, Copy)]
pub struct PointSet<'a, T> {
    /// p, one list per axis.
    pub coordinates: &'a [Vec<T>],
    /// e: the exponents of two of decay or, for the points on the other side, the times by which they are multiplied.
    /// `None` without decay.
    pub decay: Option<&'a [T]>,
}

impl<T> PointSet<'_, T> {
    /// Panics unless all lists have `count` elements.
    fn check(&self, count: usize) {
        assert!(self.coordinates.iter().all(|axis| axis.len() == count));
        assert!(self.decay.is_none_or(|decay| decay.len() == count));
    }
}

/// Computes out(a) = sum_b values(b) 2^(e_a e_b) exp(+-i 2 pi p_a.p_b) for any points a and b; without decay the power
/// is 1. The results are undefined if `stop` is set.
#[allow(clippy::too_many_arguments)]
pub fn sum<T: SimdReal>(
    threads: &Threads,
    level: Level,
    stop: &StopSignal,
    sign: Sign,
    from: PointSet<T>,
    values: &[Complex<T>],
    to: PointSet<T>,
    out: &mut [Complex<T>],
) {
    assert!(from.coordinates.len() == to.coordinates.len() && from.decay.is_some() == to.decay.is_some());
    from.check(values.len());
    to.check(out.len());
    let total = out.len();
    let shared = SharedSlice::new(out);
    threads.run(total.div_ceil(TO), |task| {
        let range = task * TO..((task + 1) * TO).min(total);
        // SAFETY: each task has its own points.
        let out = unsafe { shared.part(range.start, range.len()) };
        level.run(ListSumKernel { stop, sign, from, values, to, first: range.start, out });
    });
}

/// The sums at the points of one task.
struct ListSumKernel<'a, T> {
    stop: &'a StopSignal,
    sign: Sign,
    from: PointSet<'a, T>,
    values: &'a [Complex<T>],
    to: PointSet<'a, T>,
    first: usize,
    out: &'a mut [Complex<T>],
}

impl<T: SimdReal> Kernel for ListSumKernel<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arith>(self) {
        match (self.from.coordinates.len(), self.from.decay.is_some()) {
            (1, false) => self.sum_in_dimension::<A, 1, false>(),
            (2, false) => self.sum_in_dimension::<A, 2, false>(),
            (3, false) => self.sum_in_dimension::<A, 3, false>(),
            (4, false) => self.sum_in_dimension::<A, 4, false>(),
            (1, true) => self.sum_in_dimension::<A, 1, true>(),
            (2, true) => self.sum_in_dimension::<A, 2, true>(),
            (3, true) => self.sum_in_dimension::<A, 3, true>(),
            (4, true) => self.sum_in_dimension::<A, 4, true>(),
            (n, _) => unreachable!("points of {n} coordinates"),
        }
    }
}

impl<T: SimdReal> ListSumKernel<'_, T> {
    /// Computes the sums of points with `D` coordinates.
    #[inline(always)]
    fn sum_in_dimension<A: Arith, const D: usize, const DECAYS: bool>(self) {
        let range = self.first..self.first + self.out.len();
        let mut to = [[T::ZERO; TO]; D];
        for (to, axis) in to.iter_mut().zip(self.to.coordinates) {
            for (to, p) in to.iter_mut().zip(&axis[range.clone()]) {
                *to = if self.sign == Sign::Plus { *p } else { -*p };
            }
        }
        let mut to_decay = [T::ZERO; TO];
        if let (true, Some(decay)) = (DECAYS, self.to.decay) {
            to_decay[..self.out.len()].copy_from_slice(&decay[range]);
        }
        // Sums within a block use the precision of the data; sums of blocks use double precision.
        let mut total = [[0f64; TO]; 2];
        let step = GROUP * T::V::<A>::LANES;
        for start in (0..self.values.len()).step_by(FROM) {
            if start % (BLOCKS_BETWEEN_CHECKS * FROM) == 0 && self.stop.stopped() {
                return;
            }
            let block = start..(start + FROM).min(self.values.len());
            let values = &self.values[block.clone()];
            let from: [&[T]; D] = from_fn(|axis| &self.from.coordinates[axis][block.clone()]);
            let decay: &[T] = self.from.decay.map_or(&[], |decay| &decay[block.clone()]);
            for first in (0..self.out.len()).step_by(step) {
                let mut p = [[T::V::<A>::splat(T::ZERO); GROUP]; D];
                for (p, axis) in p.iter_mut().zip(&to) {
                    load_group(&axis[first..first + step], p);
                }
                let mut e = p[0];
                load_group(&to_decay[first..first + step], &mut e);
                let sums = block_sums::<T, T::V<A>, D, DECAYS>(from, decay, values, p, e);
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

/// Loads the vectors of a group of numbers.
#[inline(always)]
fn load_group<T: SimdReal, V: Vector<T>>(numbers: &[T], group: &mut [V; GROUP]) {
    assert_eq!(numbers.len(), GROUP * V::LANES);
    for (i, vector) in group.iter_mut().enumerate() {
        // SAFETY: the slice has GROUP vectors, of which this is vector i.
        *vector = unsafe { V::load(numbers.as_ptr().add(i * V::LANES)) };
    }
}

/// Returns vectors of the coordinates of point `i`. A closure in `map` would not always be inlined, and its vectors
/// would then be passed through memory.
#[inline(always)]
fn splat_point<T: SimdReal, V: Vector<T>, const D: usize>(points: [&[T]; D], i: usize) -> [V; D] {
    let mut point = [V::splat(T::ZERO); D];
    for (axis, points) in point.iter_mut().zip(points) {
        *axis = V::splat(points[i]);
    }
    point
}

/// Returns the real and imaginary parts of the sums over a block of points, at the points `p` with the decay `e`.
#[inline(always)]
fn block_sums<T: SimdReal, V: Vector<T>, const D: usize, const DECAYS: bool>(
    from: [&[T]; D],
    decay: &[T],
    values: &[Complex<T>],
    p: [[V; GROUP]; D],
    e: [V; GROUP],
) -> [[V; GROUP]; 2] {
    let mut sums = [[V::splat(T::ZERO); GROUP]; 2];
    let from = from.map(|axis| &axis[..values.len()]);
    let decay = if DECAYS { &decay[..values.len()] } else { decay };
    // The phases of the next point are computed while a point is summed, which gives more independent operations.
    let mut next = phases(splat_point(from, 0), p);
    for (b, value) in values.iter().enumerate() {
        let current = next;
        let after = (b + 1).min(values.len() - 1);
        next = phases(splat_point(from, after), p);
        let (re, im) = (V::splat(value.re), V::splat(value.im));
        let (mut cos, mut sin) = cos_sin(current);
        if DECAYS {
            let power = powers_of_two(V::splat(decay[b]), e);
            cos = from_fn(|i| cos[i].mul(power[i]));
            sin = from_fn(|i| sin[i].mul(power[i]));
        }
        sums[0] = from_fn(|i| im.fnma(sin[i], sums[0][i]));
        sums[1] = from_fn(|i| im.fma(cos[i], sums[1][i]));
        sums[0] = from_fn(|i| re.fma(cos[i], sums[0][i]));
        sums[1] = from_fn(|i| re.fma(sin[i], sums[1][i]));
    }
    sums
}
