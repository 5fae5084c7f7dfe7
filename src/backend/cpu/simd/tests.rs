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
        assert_eq!(error[i], la[i].fma(lb[i], -product[i]), "{i}");
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
    }
}

#[test]
fn vectors_of_every_level_compute() {
    for level in Level::all() {
        level.run(VectorCheck);
    }
    check::<f32, portable::Fused<f32, 4>>();
    check::<f64, portable::Separate<f64, 2>>();
}
