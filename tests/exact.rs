//! The exact sums of `Method::Exact` against direct sums in double precision.

mod common;

use common::transforms::*;
use common::*;
use recon::{Complex, Geometry, Method, Options, Plan, Real};

#[test]
fn exact_sums_are_exact() {
    fn check<T: Real>(bound: f64) {
        let mut random = Random::fresh();
        for dims in SIZES {
            let k = random.trajectory::<T>(dims.len(), 1500);
            let options = Options { method: Method::Exact, threads: 2, ..Options::default() };
            for error in errors(&k, dims, &options, &mut random).unwrap() {
                assert!(error <= bound, "{} {dims:?}: {error:e}, seed {}", T::NAME, random.seed);
            }
        }
    }
    check::<f32>(1e-6);
    check::<f64>(5e-15);
}

#[test]
fn exact_sums_over_a_list_of_voxels() {
    fn check<T: Real>(bound: f64) {
        let mut random = Random::fresh();
        for ndim in [2, 3] {
            let k = random.trajectory::<T>(ndim, 777);
            // Voxels anywhere within a field of view of 256 voxels, off the grid.
            let r: Vec<Vec<T>> =
                (0..ndim).map(|_| (0..301).map(|_| T::of(256.0 * random.uniform())).collect()).collect();
            let mut geometry = Geometry::new(&vec![256; ndim], &slices(&k));
            geometry.voxels = Some(slices(&r));
            let plan = Plan::new(&geometry, &Options { threads: 2, ..Options::default() }).unwrap();
            let (d, x) = (random.complexes::<T>(777), random.complexes::<T>(301));
            let (mut image, mut values, mut q) = (poisoned(301), poisoned(777), poisoned(301));
            plan.adjoint(&d, &mut image).unwrap();
            plan.forward(&x, &mut values).unwrap();
            plan.q(&mut q).unwrap();
            let (k, r) = (wide_lists(&k), wide_lists(&r));
            let ones = vec![Complex::new(1.0, 0.0); 777];
            for error in [
                distance(&image, &direct(1.0, &k, &wide(&d), &r)),
                distance(&values, &direct(-1.0, &r, &wide(&x), &k)),
                distance(&q, &direct(1.0, &k, &ones, &r)),
            ] {
                assert!(error <= bound, "{} {ndim}D: {error:e}, seed {}", T::NAME, random.seed);
            }
        }
    }
    check::<f32>(2e-6);
    check::<f64>(1e-13);
}

/// Every copy of the arithmetic is tested, not only the one for this machine's best vector unit.
#[test]
fn every_level_of_the_vector_unit_passes() {
    again_at_other_levels();
}
