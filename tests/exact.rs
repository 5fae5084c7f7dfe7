//! The exact sums of `Method::Exact`, compared with direct sums in double precision.

mod common;

use common::transforms::*;
use common::*;
use recon::{Complex, ErrorKind, Geometry, Method, Options, Plan, Real};

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
            // Voxels at random positions within a field of view of 256 voxels, off the grid.
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

/// Checks that phases up to the limit of a plan are right, from lists of voxels and from maps of off-resonance.
#[test]
fn large_phases_are_exact_or_refused() {
    /// Returns k r minus its whole turns, for products that f64 rounds too.
    fn fraction(k: f64, r: f64) -> f64 {
        let product = k * r;
        (product - product.round()) + k.mul_add(r, -product)
    }
    fn check<T: Real>(bound: f64) {
        let mut random = Random::fresh();
        let most = 1.0 / (32.0 * T::EPSILON);
        let (samples, voxels) = (203, 155);
        let k = random.trajectory::<T>(2, samples);
        let r: Vec<Vec<T>> =
            (0..2).map(|_| (0..voxels).map(|_| T::of(2.0 * most * random.uniform())).collect()).collect();
        let mut geometry = Geometry::new(&[256, 256], &slices(&k));
        geometry.voxels = Some(slices(&r));
        let f: Vec<T> = (0..voxels).map(|_| T::of(2.0 * 131_072.0 / 0.5 * random.uniform())).collect();
        let times: Vec<T> = (0..samples).map(|_| T::of(random.uniform())).collect();
        for with_map in [false, true] {
            if with_map {
                geometry = geometry.field_map(&f, &times);
            }
            let plan = Plan::new(&geometry, &Options { threads: 2, ..Options::default() }).unwrap();
            let (d, x) = (random.complexes::<T>(samples), random.complexes::<T>(voxels));
            let (mut image, mut values) = (poisoned(voxels), poisoned(samples));
            plan.adjoint(&d, &mut image).unwrap();
            plan.forward(&x, &mut values).unwrap();
            let entry = |m: usize, i: usize| {
                let turns: f64 = (0..2).map(|a| fraction(k[a][m].wide(), r[a][i].wide())).sum();
                let map = if with_map { fraction(times[m].wide(), f[i].wide()) } else { 0.0 };
                Complex::from_polar(1.0, -std::f64::consts::TAU * (turns + map))
            };
            let (d, x) = (wide(&d), wide(&x));
            let forward: Vec<_> = (0..samples).map(|m| (0..voxels).map(|i| entry(m, i) * x[i]).sum()).collect();
            let adjoint: Vec<_> = (0..voxels).map(|i| (0..samples).map(|m| entry(m, i).conj() * d[m]).sum()).collect();
            for error in [distance(&values, &forward), distance(&image, &adjoint)] {
                assert!(error <= bound, "{} map {with_map}: {error:e}, seed {}", T::NAME, random.seed);
            }
        }
        for bad in [2.0 * most, 1e30, -1e38, T::LARGEST] {
            let mut far = r[1].clone();
            far[77] = T::of(bad);
            let mut geometry = Geometry::new(&[256, 256], &slices(&k));
            geometry.voxels = Some(vec![&r[0], &far]);
            let refused = Plan::new(&geometry, &Options::default()).err().unwrap();
            let told = refused.to_string();
            assert!(refused.kind() == ErrorKind::InvalidArgument && told.contains("voxel 77 on axis 1"), "{told}");
            assert!(told.contains(&format!("{}", T::of(bad))), "{told}");
        }
    }
    check::<f32>(2e-6);
    check::<f64>(1e-14);
}

/// Checks that off-resonance with more turns than any measurement is an error, for exact sums and the NUFFT, in a new
/// plan and with a new trajectory. Voxels that no coil sees may have any frequency.
#[test]
fn off_resonance_in_wrong_units_is_refused() {
    fn check<T: Real>() {
        let mut random = Random::fresh();
        let (n, samples) = (12, 100);
        let k = random.trajectory::<T>(2, samples);
        let axes = slices(&k);
        let times: Vec<T> = (0..samples).map(|m| T::of(0.02 * m as f64 / 99.0)).collect();
        let good = vec![T::of(30.0); n * n];
        for method in [Method::Exact, Method::Nufft] {
            let options = Options { method, threads: 1, ..Options::default() };
            let plan = Plan::new(&Geometry::new(&[n, n], &axes).field_map(&good, &times), &options).unwrap();
            for bad in [1e9, -1e9, 1e30] {
                let constant = vec![T::of(bad); n * n];
                let mut one = good.clone();
                one[17] = T::of(bad);
                for (map, voxel) in [(&constant, "voxel 0"), (&one, "voxel 17")] {
                    let geometry = Geometry::new(&[n, n], &axes).field_map(map, &times);
                    let both = [Plan::new(&geometry, &options).err(), plan.set_trajectory(&geometry).err()];
                    for refused in both.map(Option::unwrap) {
                        let told = refused.to_string();
                        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{told}");
                        assert!([voxel, "sample 99", "in Hz"].iter().all(|word| told.contains(word)), "{told}");
                        assert!(told.contains(&format!("{}", T::of(bad).wide())), "{told}");
                    }
                }
            }
            // The same plan gives the same results, also with arbitrary frequencies in voxels that no coil sees.
            let maps: Vec<Complex<T>> = (0..n * n).map(|i| Complex::new(T::of(f64::from(i != 17)), T::ZERO)).collect();
            let d = random.complexes::<T>(samples);
            let images = [30.0, 1e30, -T::LARGEST].map(|unseen| {
                let mut map = good.clone();
                map[17] = T::of(unseen);
                let geometry = Geometry::new(&[n, n], &axes).coil_maps(&maps).field_map(&map, &times);
                let plan = Plan::new(&geometry, &options).unwrap();
                plan.set_trajectory(&geometry).unwrap();
                let (mut image, mut y, mut values) = (poisoned(n * n), poisoned(n * n), poisoned(samples));
                plan.adjoint(&d, &mut image).unwrap();
                plan.forward(&image, &mut values).unwrap();
                plan.normal(&image, &mut y).unwrap();
                (image, values, y)
            });
            assert!(images[0].0.iter().all(|z| z.re.finite() && z.im.finite()));
            assert!(images[1..].iter().all(|image| *image == images[0]), "{} {method:?}", T::NAME);
        }
    }
    check::<f32>();
    check::<f64>();
}

/// Runs the tests at all levels of the vector unit, not only at this machine's best one.
#[test]
fn every_level_of_the_vector_unit_passes() {
    again_at_other_levels();
}
