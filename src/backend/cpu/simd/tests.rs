//! Compares every vector function with scalar arithmetic, at every level.

use super::*;
use crate::base::real::Real;

/// Compares every function of a vector type with scalar arithmetic.
fn check<T: Real, V: Vector<T>>() {
    let n = V::LANES;
    let lists: Vec<Vec<T>> = (0..3).map(|l| (0..n).map(|i| T::of((l * 7 + i) as f64 * 0.37 - 1.1)).collect()).collect();
    // SAFETY: the lists have LANES elements.
    let [a, b, c] = [0, 1, 2].map(|l| unsafe { V::load(lists[l].as_ptr()) });
    let read = |v: V| {
        let mut out = vec![T::of(f64::NAN); n];
        // SAFETY: the array has LANES elements.
        unsafe { v.store(out.as_mut_ptr()) };
        out
    };
    let (la, lb, lc) = (&lists[0], &lists[1], &lists[2]);
    let compare = |f: &dyn Fn(T, T, T) -> f64, v: V| {
        for (i, got) in read(v).into_iter().enumerate() {
            let want = f(la[i], lb[i], lc[i]);
            assert!((got.wide() - want).abs() <= 4.0 * T::EPSILON * (1.0 + want.abs()), "{i}: {got} {want}");
        }
    };
    compare(&|_, _, _| 2.5, V::splat(T::of(2.5)));
    compare(&|a, b, _| a.wide() + b.wide(), a.add(b));
    compare(&|a, b, _| a.wide() - b.wide(), a.sub(b));
    compare(&|a, b, _| a.wide() * b.wide(), a.mul(b));
    compare(&|a, b, c| a.wide() * b.wide() + c.wide(), a.fma(b, c));
    compare(&|a, b, c| c.wide() - a.wide() * b.wide(), a.fnma(b, c));
    let product: Vec<T> = la.iter().zip(lb).map(|(a, b)| *a * *b).collect();
    // SAFETY: the array has LANES elements.
    let error = read(a.mul_sub(b, unsafe { V::load(product.as_ptr()) }));
    for i in 0..n {
        assert_eq!(error[i], la[i].fma_in_software(lb[i], -product[i]), "{i}");
    }
    // 1 and the next larger number, alternating.
    let steps: Vec<T> = (0..n).map(|i| T::ONE + T::of((i % 2) as f64 * T::EPSILON)).collect();
    // SAFETY: the array has LANES elements.
    let flipped = read(a.negate_where_odd(unsafe { V::load(steps.as_ptr()) }));
    for i in 0..n {
        assert_eq!(flipped[i], if i % 2 == 1 { -la[i] } else { la[i] }, "{i}");
    }
    compare(&|a, b, _| a.wide().max(b.wide()), a.max(b));
    compare(&|a, b, _| a.wide().min(b.wide()), a.min(b));
    let exponent = |i: usize| [0.0, 1.0, -1.0, 9.0, -9.0, 90.0, -100.0][i % 7];
    let shifted: Vec<T> = (0..n).map(|i| T::of(1.5 / T::EPSILON + exponent(i))).collect();
    // SAFETY: the array has LANES elements.
    let scaled = read(a.times_power_of_two(unsafe { V::load(shifted.as_ptr()) }));
    for i in 0..n {
        assert_eq!(scaled[i].wide(), la[i].wide() * exponent(i).exp2(), "{i}");
    }
    let (first, second) = a.zip(b);
    let zipped: Vec<T> = read(first).into_iter().chain(read(second)).collect();
    let pairs: Vec<T> = la.iter().zip(lb).flat_map(|(a, b)| [*a, *b]).collect();
    assert_eq!(zipped, pairs);
    let (even, odd) = first.unzip(second);
    assert_eq!((&read(even), &read(odd)), (la, lb));
    let sum = a.sum_pairs();
    for (first, got) in [(0, sum.re), (1, sum.im)] {
        let want: f64 = la.iter().skip(first).step_by(2).map(|x| x.wide()).sum();
        assert!((got.wide() - want).abs() < 8.0 * T::EPSILON * n as f64, "{got} {want}");
    }
}

struct VectorCheck;
impl Kernel for VectorCheck {
    type Output = ();
    fn run<A: Arith>(self) {
        check::<f32, A::F32>();
        check::<f64, A::F64>();
        check_ceil::<A>();
    }
}

/// Compares [`Arith::ceil`] with a comparison of integers, at and beside integers of either sign.
fn check_ceil<A: Arith>() {
    for integer in [0i64, 1, 2, 3, 254, 255, (1 << 27) - 1, (1 << 50) - 1].into_iter().flat_map(|n| [n, -n]) {
        let exact = integer as f64;
        for a in [exact.next_down(), exact, exact.next_up(), exact + 0.25, exact - 0.25, exact + 0.5] {
            let want = if a > exact { integer + 1 } else { integer };
            assert_eq!(A::ceil(a), want as f64, "{a:e}");
        }
    }
    assert!(A::ceil(f64::NAN).is_nan());
}

/// Returns the bits of every function of a vector type, and of the sums of functions, for numbers of all magnitudes.
#[cfg(target_arch = "aarch64")]
fn function_bits<T: Real, V: Vector<T>>() -> Vec<u64> {
    let mut state = 1u64;
    // Numbers with full significands and exponents of two from -9 to 9, of either sign, and positive zeros: `max` may
    // return a zero of either sign.
    let mut number = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let magnitude = ((state >> 11) as f64 / (1u64 << 53) as f64 + 0.5) * ((state % 19) as f64 - 9.0).exp2();
        T::of(match state >> 40 & 31 {
            0 => 0.0,
            1..16 => magnitude,
            _ => -magnitude,
        })
    };
    let mut bits = Vec::new();
    for _ in 0..500 {
        let [a, b, c] = [(); 3].map(|()| {
            let numbers: Vec<T> = (0..V::LANES).map(|_| number()).collect();
            // SAFETY: the array has LANES elements.
            unsafe { V::load(numbers.as_ptr()) }
        });
        let product = a.mul(b);
        let integers = c.fma(V::splat(T::of(0.125)), V::splat(T::of(1.5 / T::EPSILON)));
        let (zipped, unzipped) = (a.zip(b), a.unzip(b));
        let results = [a.add(b), a.sub(b), product, a.max(b), a.min(b), a.fma(b, c), a.fnma(b, c), a.mul_sub(b, c)]
            .into_iter()
            // Differences from the product, which show whether it was rounded.
            .chain([a.mul_sub(b, product), a.fnma(b, product), a.fma(b, V::splat(T::ZERO).sub(product))])
            .chain([a.negate_where_odd(integers), V::splat(T::ONE).times_power_of_two(integers)])
            .chain([zipped.0, zipped.1, unzipped.0, unzipped.1]);
        for vector in results {
            let mut out = vec![T::of(f64::NAN); V::LANES];
            // SAFETY: the array has LANES elements.
            unsafe { vector.store(out.as_mut_ptr()) };
            bits.extend(out.iter().map(|x| x.wide().to_bits()));
        }
        // Sums of zeros may differ in sign.
        let sum = a.sum_pairs();
        bits.extend([sum.re, sum.im].map(|x| (x.wide() + 0.0).to_bits()));
    }
    bits
}

/// NEON has the bits of arrays with fused multiply-add.
#[test]
#[cfg(target_arch = "aarch64")]
fn neon_has_the_bits_of_scalar_arithmetic() {
    assert!(function_bits::<f32, neon::F32x4>() == function_bits::<f32, portable::Fused<f32, 4>>());
    assert!(function_bits::<f64, neon::F64x2>() == function_bits::<f64, portable::Fused<f64, 2>>());
}

#[test]
fn vectors_of_every_level_compute() {
    for level in Level::all() {
        level.run(VectorCheck);
    }
    check::<f32, portable::Fused<f32, 4>>();
    check::<f64, portable::Separate<f64, 2>>();
}
