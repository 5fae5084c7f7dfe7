//! Finite input whose result overflows is an error, and the output is not written. Large input whose result does not
//! overflow is transformed as usual.

use crate::common::*;
use recon::{combine, Combine, Complex, Density, ErrorKind, Geometry, Method, Normal, Options, Plan, Real, Result};

const DIMS: [usize; 2] = [12, 10];
const SAMPLES: usize = 300;

/// Asserts that a call fails because its result overflows, and that it does not write its output.
fn refused<T: Real>(name: &str, len: usize, call: impl FnOnce(&mut [Complex<T>]) -> Result<()>) {
    let mut out = vec![Complex::new(T::of(7.0), T::of(-7.0)); len];
    let error = call(&mut out).expect_err(name);
    assert_eq!(error.kind(), ErrorKind::NotFinite, "{name}: {error}");
    assert!(error.message().contains("overflow"), "{name}: {error}");
    assert!(out.iter().all(|z| *z == Complex::new(T::of(7.0), T::of(-7.0))), "{name}: the output was written");
}

/// Checks all operations in one precision.
fn check<T: Real>() {
    let mut random = Random::fresh();
    let k = random.trajectory::<T>(2, SAMPLES);
    let k = slices(&k);
    let voxels = DIMS.iter().product::<usize>();
    let largest = T::of(0.9 * T::LARGEST);
    let huge = |n: usize| vec![Complex::new(largest, -largest); n];
    for method in [Method::Nufft, Method::Exact] {
        for normal in [Normal::Toeplitz, Normal::Transforms] {
            let options = Options { method, normal, threads: 2, ..Options::default() };
            let plan = Plan::new(&Geometry::new(&DIMS, &k), &options).unwrap();
            let (d, x) = (huge(SAMPLES), huge(voxels));
            refused::<T>("fhd", voxels, |out| plan.adjoint(&d, out));
            refused::<T>("weighted_fhd", voxels, |out| plan.weighted_adjoint(&d, out));
            refused::<T>("forward", SAMPLES, |out| plan.forward(&x, out));
            refused::<T>("normal", voxels, |out| plan.normal(&x, out));
            refused::<T>("cg", voxels, |out| plan.cg(&d, out, &Default::default()).map(|_| ()));

            // The largest data without overflow give the same image, except for its scale.
            let scale = 0.25 * T::LARGEST.powf(if normal == Normal::Toeplitz { 0.7 } else { 0.9 });
            let small = random.complexes::<T>(SAMPLES);
            let large: Vec<Complex<T>> = small.iter().map(|z| z * T::of(scale)).collect();
            let (mut small_image, mut large_image) = (poisoned::<T>(voxels), poisoned::<T>(voxels));
            plan.adjoint(&small, &mut small_image).unwrap();
            plan.adjoint(&large, &mut large_image).unwrap();
            let expected: Vec<Complex<f64>> = wide(&small_image).iter().map(|z| z * scale).collect();
            let peak = expected.iter().map(|z| z.norm()).fold(0.0, f64::max);
            let ratio = |z: &[Complex<f64>]| z.iter().map(|z| z / peak).collect::<Vec<_>>();
            assert!(distance(&ratio(&wide(&large_image)), &ratio(&expected)) < 1e-5);
        }
    }
    // Sums over thousands of samples of the largest number.
    let plan = Plan::new(&Geometry::new(&DIMS, &k), &Options::default()).unwrap();
    let weights = plan.density(Density::default()).unwrap();
    let heavy: Vec<T> = weights.iter().map(|_| largest).collect();
    let weighted = Plan::new(&Geometry::new(&DIMS, &k).weights(&heavy), &Options::default()).unwrap();
    let ones = vec![Complex::new(T::ONE, T::ZERO); SAMPLES];
    refused::<T>("weighted_fhd of large weights", voxels, |out| weighted.weighted_adjoint(&ones, out));
    refused::<T>("q of large weights", weighted.q_len(), |out| weighted.q(out));
    // Gridding does not depend on the scale of the weights, and all are equal here.
    let mut image = poisoned::<T>(voxels);
    weighted.grid(&ones, &mut image).unwrap();
    assert!(image.iter().all(|z| z.re.finite() && z.im.finite()));

    let maps = vec![Complex::new(largest, T::ZERO); voxels];
    let mapped = Plan::new(&Geometry::new(&DIMS, &k).coil_maps(&maps), &Options::default()).unwrap();
    refused::<T>("forward of large maps", SAMPLES, |out| {
        mapped.forward(&vec![Complex::new(T::of(9.0), T::ZERO); voxels], out)
    });

    refused::<T>("combine", voxels, |out| combine(&huge(4 * voxels), &DIMS, 4, Combine::RootSumOfSquares, out));
    // Coil maps need a centre of k-space without gaps, which samples at random may have.
    let without_gaps = [0, 1].map(|axis| {
        let position = |i: usize| if axis == 0 { i % DIMS[0] } else { i / DIMS[0] };
        (0..voxels).map(|i| T::of(position(i) as f64 / DIMS[axis] as f64 - 0.5)).collect::<Vec<T>>()
    });
    let plan = Plan::new(&Geometry::new(&DIMS, &[&without_gaps[0], &without_gaps[1]]), &Options::default()).unwrap();
    match plan.coil_maps(&huge(voxels), 0) {
        Ok(maps) => assert!(maps.iter().all(|z| z.re.finite() && z.im.finite())),
        Err(e) => assert_eq!(e.kind(), ErrorKind::NotFinite, "{e}"),
    }
}

#[test]
fn results_that_overflow_are_errors_f32() {
    check::<f32>();
}

#[test]
fn results_that_overflow_are_errors_f64() {
    check::<f64>();
}

/// Gridding the largest number gives a finite image or an error.
#[test]
fn gridding_the_largest_number_is_finite_or_an_error() {
    let mut random = Random::fresh();
    let k = random.trajectory::<f32>(2, SAMPLES);
    let plan = Plan::new(&Geometry::new(&DIMS, &slices(&k)), &Options::default()).unwrap();
    let huge = vec![Complex::new(3e38f32, 3e38); SAMPLES];
    let mut image = vec![Complex::new(7.0f32, 7.0); DIMS.iter().product()];
    match plan.grid(&huge, &mut image) {
        Ok(()) => assert!(image.iter().all(|z| z.re.is_finite() && z.im.is_finite())),
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::NotFinite);
            assert!(image.iter().all(|z| *z == Complex::new(7.0, 7.0)));
        }
    }
}
