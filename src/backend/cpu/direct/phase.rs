//! exp(i 2 pi k.r) in vectors.

use crate::backend::cpu::simd::{SimdReal, Vector};
use std::array::from_fn;

// sin(2 pi r) = r P(r^2) and cos(2 pi r) = Q(r^2) for |r| <= 1/4: the coefficients of P and Q, the lowest first. They
// minimise the largest error (Remez exchange in 50 digits). They are rounded to the precision one by one from the
// lowest, and after each rounding the remaining coefficients are fitted again; Q(0) = 1 is fixed. Their error is below
// the rounding of the arithmetic (the tests bound the sum of both).
const SIN_F32: [f64; 5] =
    [6.283185005187988, -41.341617584228516, 81.59864807128906, -76.49604797363281, 39.13410949707031];
const COS_F32: [f64; 6] =
    [1.0, -19.739208221435547, 64.93928527832031, -85.4503402709961, 60.079044342041016, -24.53900718688965];
// The first coefficient is near 2 pi, and must keep its fitted value.
#[allow(clippy::approx_constant)]
const SIN_F64: [f64; 8] = [
    6.28318530717958,
    -41.34170224039483,
    81.6052492749784,
    -76.70585964350285,
    42.05868813827448,
    -15.094467871789496,
    3.8169549162429077,
    -0.6907436597401394,
];
const COS_F64: [f64; 9] = [
    1.0,
    -19.73920880217871,
    64.93939402266406,
    -85.45681720596168,
    60.24464131059596,
    -26.42625394341738,
    7.903459594980004,
    -1.7131849036114384,
    0.2717932798932563,
];

/// Phases in turns without whole half turns. Only the parity of the number of half turns matters.
#[derive(Clone, Copy)]
pub struct Phases<V, const N: usize> {
    rest: [V; N],
    halves: [V; N],
}

/// Returns the phases q.p for a group of p. The rounding error of each product, which grows with its whole turns, is
/// added again. Products must stay below a quarter of 1 / epsilon.
#[inline(always)]
pub fn phases<T: SimdReal, V: Vector<T>, const D: usize, const N: usize>(q: [V; D], p: [[V; N]; D]) -> Phases<V, N> {
    // Adding and subtracting these constants rounds a number to whole, or to half, turns.
    let integer_rounder = V::splat(T::of(1.5 / T::EPSILON));
    let half_rounder = V::splat(T::of(0.75 / T::EPSILON));
    let mut turns = [V::splat(T::ZERO); N];
    for axis in 0..D - 1 {
        let rounded: [V; N] = from_fn(|i| q[axis].fma(p[axis][i], integer_rounder).sub(integer_rounder));
        let fraction: [V; N] = from_fn(|i| q[axis].mul_sub(p[axis][i], rounded[i]));
        turns = if axis == 0 { fraction } else { from_fn(|i| turns[i].add(fraction[i])) };
    }
    // The half turns of the sum are subtracted together with the last axis.
    let (q, p) = (q[D - 1], p[D - 1]);
    let last: [V; N] = if D == 1 { from_fn(|i| q.mul(p[i])) } else { from_fn(|i| q.fma(p[i], turns[i])) };
    let halves: [V; N] = from_fn(|i| last[i].add(half_rounder));
    let rounded: [V; N] = from_fn(|i| halves[i].sub(half_rounder));
    let rest: [V; N] = from_fn(|i| q.mul_sub(p[i], rounded[i]));
    let rest = if D == 1 { rest } else { from_fn(|i| rest[i].add(turns[i])) };
    Phases { rest, halves }
}

/// Returns cos and sin of 2 pi times the phases.
#[inline(always)]
pub fn cos_sin<T: SimdReal, V: Vector<T>, const N: usize>(phases: Phases<V, N>) -> ([V; N], [V; N]) {
    let Phases { rest, halves } = phases;
    let square: [V; N] = from_fn(|i| rest[i].mul(rest[i]));
    let (sin, cos): (&[f64], &[f64]) =
        if T::EPSILON > f64::EPSILON { (&SIN_F32, &COS_F32) } else { (&SIN_F64, &COS_F64) };
    let (cos, sin) = (polynomial(cos, square), polynomial(sin, square));
    let sin: [V; N] = from_fn(|i| sin[i].mul(rest[i]));
    (from_fn(|i| cos[i].negate_where_odd(halves[i])), from_fn(|i| sin[i].negate_where_odd(halves[i])))
}

/// Evaluates a polynomial, whose lowest coefficient comes first, at a group of x.
#[inline(always)]
pub fn polynomial<T: SimdReal, V: Vector<T>, const N: usize>(coefficients: &[f64], x: [V; N]) -> [V; N] {
    let mut sum = [V::splat(T::of(coefficients[coefficients.len() - 1])); N];
    for c in coefficients.iter().rev().skip(1) {
        let c = V::splat(T::of(*c));
        sum = from_fn(|i| sum[i].fma(x[i], c));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::simd::{Arith, Kernel, Level};

    /// Returns the largest error of cos and sin of 2 pi q.p.
    fn error<T: SimdReal, V: Vector<T>, const D: usize>(points: impl Iterator<Item = ([T; D], [T; D])>) -> f64 {
        let mut largest = 0f64;
        for (q, p) in points {
            let (cos, sin) = cos_sin(phases(q.map(V::splat), p.map(|p| [V::splat(p)])));
            // The fractions of the f64 products, and the rounding errors of the products.
            let turns: f64 = (0..D)
                .map(|a| {
                    let (q, p) = (q[a].wide(), p[a].wide());
                    (q * p - (q * p).round()) + q.mul_add(p, -(q * p))
                })
                .sum();
            let (want_sin, want_cos) = ((turns - turns.round()) * std::f64::consts::TAU).sin_cos();
            for ([got], want) in [(cos, want_cos), (sin, want_sin)] {
                largest = largest.max((got.sum_pairs().re.wide() / (V::LANES / 2) as f64 - want).abs());
            }
        }
        largest
    }

    /// Returns points with phases within half a turn.
    fn small<T: SimdReal>() -> impl Iterator<Item = ([T; 1], [T; 1])> {
        (-6000..=6000).map(|i| ([T::of(i as f64 / 12000.0)], [T::ONE]))
    }

    /// Returns points with phases of up to 100 turns, from numbers with full significands.
    fn large<T: SimdReal>() -> impl Iterator<Item = ([T; 3], [T; 3])> {
        let fill = |i: u32| T::of(f64::from(i.wrapping_mul(0x9e37_79b9)) / 4294967296.0 - 0.5);
        (0..20_000).map(move |i| {
            let p = [T::of(64.3), fill(5 * i) * T::of(60.0), T::of(126.7)];
            ([fill(3 * i + 1), fill(3 * i + 2), fill(3 * i + 3)], p)
        })
    }

    struct PhaseCheck;
    impl Kernel for PhaseCheck {
        type Output = ();
        fn run<A: Arith>(self) {
            let errors = [error::<f32, A::F32, 1>(small()), error::<f64, A::F64, 1>(small())];
            assert!(errors[0] < 1.5e-7 && errors[1] < 5e-16, "{errors:?}");
            // The phases are also rounded, as sums of up to a turn and a half.
            let errors = [error::<f32, A::F32, 3>(large()), error::<f64, A::F64, 3>(large())];
            assert!(errors[0] < 1.2e-6 && errors[1] < 2.5e-15, "{errors:?}");
        }
    }

    #[test]
    fn waves_are_accurate_over_many_turns() {
        for level in Level::all() {
            level.run(PhaseCheck);
        }
    }
}
