//! Powers of two in vectors, for decay.

use super::phase::polynomial;
use crate::backend::cpu::simd::{SimdReal, Vector};
use std::array::from_fn;

// 2^x for |x| <= 1/2, the lowest coefficient first. The coefficients minimise the largest relative error (Remez
// exchange in 50 digits), which is 2e-9 and 3e-18, and are then rounded to the precision. The rounded errors are 1.6e-8
// and 3.4e-17, below the rounding of the arithmetic (the tests bound the sum of both).
const F32: [f64; 7] = [
    1.0,
    0.6931471824645996,
    0.24022646248340607,
    0.05550328642129898,
    0.009618489071726799,
    0.0013399930903688073,
    0.0001534581242594868,
];
// The second coefficient is the fitted value of ln 2.
#[allow(clippy::approx_constant)]
const F64: [f64; 12] = [
    1.0,
    0.6931471805599453,
    0.24022650695910155,
    0.055504108664819925,
    0.009618129107588335,
    0.001333355814678995,
    0.00015403530462514614,
    1.5252733489960805e-05,
    1.321543308959463e-06,
    1.0178198033328528e-07,
    7.074105626245659e-09,
    4.4352809446103363e-10,
];

/// Range to which exponents are limited. The lowest power is near the smallest normal number, which is negligible
/// compared with rounding errors. Sums of the largest powers remain finite.
const EXPONENTS_F32: [f64; 2] = [-125.0, 100.0];
const EXPONENTS_F64: [f64; 2] = [-1021.0, 900.0];

/// Returns 2^(q p) for a group of p. The product is rounded, which causes an error of the power that grows with its
/// exponent.
#[inline(always)]
pub fn powers_of_two<T: SimdReal, V: Vector<T>, const N: usize>(q: V, p: [V; N]) -> [V; N] {
    let ([low, high], coefficients): (_, &[f64]) =
        if T::EPSILON > f64::EPSILON { (EXPONENTS_F32, &F32) } else { (EXPONENTS_F64, &F64) };
    let (low, high) = (V::splat(T::of(low)), V::splat(T::of(high)));
    // Adding and subtracting this constant rounds a number to an integer.
    let rounder = V::splat(T::of(1.5 / T::EPSILON));
    let exponent: [V; N] = from_fn(|i| q.mul(p[i]).max(low).min(high));
    let shifted: [V; N] = from_fn(|i| exponent[i].add(rounder));
    let rest: [V; N] = from_fn(|i| exponent[i].sub(shifted[i].sub(rounder)));
    let power = polynomial(coefficients, rest);
    from_fn(|i| power[i].times_power_of_two(shifted[i]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::simd::{Arith, Kernel, Level};

    /// Returns 2^(q p), and checks that all lanes are equal.
    fn power<T: SimdReal, V: Vector<T>>(q: f64, p: f64) -> f64 {
        let [power] = powers_of_two(V::splat(T::of(q)), [V::splat(T::of(p))]);
        let mut lanes = [T::of(f64::NAN); 16];
        // SAFETY: no vector has more lanes.
        unsafe { power.store(lanes.as_mut_ptr()) };
        assert!(lanes[..V::LANES].iter().all(|lane| *lane == lanes[0]));
        lanes[0].wide()
    }

    /// Returns the largest relative error of 2^(q p), divided by that of rounding q p once: |q p| ln 2 and 1, times
    /// epsilon.
    fn error<T: SimdReal, V: Vector<T>>(reach: f64) -> f64 {
        let mut largest = 0f64;
        for i in -20_000..=20_000 {
            // The factor has few digits, so that the reference product is exact.
            let (q, p) = (T::of(reach * f64::from(i) / 20_000.0).wide(), if i % 2 == 0 { 1.0 } else { -0.625 });
            let want = (q * p).exp2();
            let unit = T::EPSILON * (1.0 + (q * p).abs() * std::f64::consts::LN_2);
            largest = largest.max((power::<T, V>(q, p) / want - 1.0).abs() / unit);
        }
        largest
    }

    struct PowerCheck;
    impl Kernel for PowerCheck {
        type Output = ();
        fn run<A: Arith>(self) {
            // The exponents of two of exp(-60) and exp(60), and larger ones.
            for reach in [0.5, 3.0, 95.0] {
                let errors = [error::<f32, A::F32>(reach), error::<f64, A::F64>(reach)];
                assert!(errors.iter().all(|e| *e < 1.5), "{errors:?} up to {reach}");
            }
            let error = error::<f64, A::F64>(890.0);
            assert!(error < 1.5, "{error}");
            assert_eq!((power::<f32, A::F32>(0.0, 3.0), power::<f64, A::F64>(-0.0, 3.0)), (1.0, 1.0));
            for huge in [200.0, 1e4, 3e38] {
                assert_eq!(power::<f32, A::F32>(-huge, 1.0), EXPONENTS_F32[0].exp2());
                assert_eq!(power::<f32, A::F32>(huge, 2.0), EXPONENTS_F32[1].exp2());
                assert_eq!(power::<f64, A::F64>(-huge, 10.0), EXPONENTS_F64[0].exp2());
                assert_eq!(power::<f64, A::F64>(huge, 10.0), EXPONENTS_F64[1].exp2());
            }
        }
    }

    #[test]
    fn powers_are_accurate_and_never_overflow() {
        for level in Level::all() {
            level.run(PowerCheck);
        }
    }
}
