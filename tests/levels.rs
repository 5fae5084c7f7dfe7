//! Results at different levels of the vector unit agree to rounding. Results with different numbers of threads are the
//! same bytes.

mod common;

use common::*;
use recon::{CgOptions, Complex, Density, Device, Geometry, Method, Normal, Options, Plan, Real, Simd};

/// The results of the operations at one level, with their names.
type Results = Vec<(String, Vec<Complex<f64>>)>;

/// A random scan of two coils, with voxels on a grid and off it.
struct Scan<T> {
    dims: Vec<usize>,
    k: Vec<Vec<T>>,
    list: Vec<Vec<T>>,
    weights: Vec<T>,
    maps: Vec<Complex<T>>,
    data: Vec<Complex<T>>,
    image: Vec<Complex<T>>,
}

impl<T: Real> Scan<T> {
    fn random(dims: &[usize], random: &mut Random) -> Self {
        let (samples, voxels) = (900, dims.iter().product::<usize>());
        let position = |random: &mut Random| T::of(40.0 * random.uniform());
        Scan {
            dims: dims.to_vec(),
            k: random.trajectory(dims.len(), samples),
            list: (0..dims.len()).map(|_| (0..voxels).map(|_| position(random)).collect()).collect(),
            weights: (0..samples).map(|_| T::of(random.uniform() + 0.6)).collect(),
            maps: random.complexes(voxels * 2),
            data: random.complexes(samples * 2),
            image: random.complexes(voxels),
        }
    }

    fn results(&self, simd: Simd) -> Results {
        let mut all = Results::new();
        for (name, method, normal, listed) in [
            ("Toeplitz", Method::Nufft, Normal::Toeplitz, false),
            ("transforms", Method::Nufft, Normal::Transforms, false),
            ("exact, grid", Method::Exact, Normal::Toeplitz, false),
            ("exact, list", Method::Exact, Normal::Auto, true),
        ] {
            let k = slices(&self.k);
            let mut geometry = Geometry::new(&self.dims, &k).weights(&self.weights).coils(2).coil_maps(&self.maps);
            geometry.voxels = listed.then(|| slices(&self.list));
            let options = Options {
                method,
                normal,
                simd,
                device: Device::Cpu,
                threads: 2,
                tolerance: 1e-4,
                ..Options::default()
            };
            let plan = Plan::new(&geometry, &options).unwrap();
            assert_eq!(plan.info().simd, level(simd).unwrap());
            let mut add =
                |operation: &str, values: Vec<Complex<f64>>| all.push((format!("{name}: {operation}"), values));
            let (mut x, mut s) = (poisoned(plan.image_len()), poisoned(plan.kspace_len()));
            plan.forward(&self.image, &mut s).unwrap();
            add("forward", wide(&s));
            plan.adjoint(&self.data, &mut x).unwrap();
            add("adjoint", wide(&x));
            plan.normal(&self.image, &mut x).unwrap();
            add("normal", wide(&x));
            plan.cg(&self.data, &mut x, &CgOptions { iterations: 4, ..CgOptions::default() }).unwrap();
            add("conjugate gradients", wide(&x));
            let density = plan.density(Density::PipeMenon { iterations: 5, tolerance: 0.0 }).unwrap();
            add("density", density.iter().map(|w| Complex::new(w.wide(), 0.0)).collect());
        }
        all
    }
}

/// Checks that levels differ only by rounding: images on a different machine are the same.
#[test]
fn levels_agree_to_rounding() {
    fn check<T: Real>(levels: &[Simd]) {
        let mut random = Random::fresh();
        for dims in [&[19usize, 26][..], &[9, 7, 10]] {
            let scan = Scan::<T>::random(dims, &mut random);
            let base = scan.results(levels[0]);
            for &simd in &levels[1..] {
                for ((name, values), (_, base)) in scan.results(simd).iter().zip(&base) {
                    let difference = distance(values, base);
                    // Iterations make rounding errors larger.
                    let bound = if name.ends_with("gradients") { 300.0 } else { 30.0 } * T::EPSILON;
                    assert!(
                        difference <= bound,
                        "{} {dims:?} {name}: {simd} and {} differ by {difference:e}, seed {}",
                        T::NAME,
                        levels[0],
                        random.seed
                    );
                }
            }
        }
    }
    let levels = levels();
    check::<f32>(&levels);
    check::<f64>(&levels);
}

/// Checks that results do not depend on the number of threads, on the run, or on simultaneous calls of the same plan.
/// The sizes are large enough that all primitives have several tasks.
#[test]
fn results_are_the_same_bytes_for_any_number_of_threads() {
    // With many threads some are transformed together, with a remainder.
    const COILS: usize = 5;
    let mut random = Random::fresh();
    let nufft = |normal| Options { normal, ..Options::default() };
    let exact = Options { method: Method::Exact, ..Options::default() };
    for (name, options, listed, sizes, samples) in [
        ("Toeplitz", nufft(Normal::Toeplitz), false, [&[136usize, 130][..], &[16, 34, 34]], 1500),
        ("transforms", nufft(Normal::Transforms), false, [&[136, 130], &[16, 34, 34]], 1500),
        ("exact, grid", exact.clone(), false, [&[23, 45], &[9, 12, 8]], 1100),
        ("exact, list", exact, true, [&[30, 30], &[30, 30, 30]], 600),
    ] {
        for dims in sizes {
            let k = random.trajectory::<f32>(dims.len(), samples);
            let r: Vec<Vec<f32>> =
                (0..dims.len()).map(|_| (0..600).map(|_| 30.0 * random.uniform() as f32).collect()).collect();
            let voxels = if listed { 600 } else { dims.iter().product() };
            let maps = random.complexes::<f32>(voxels * COILS);
            let d = random.complexes::<f32>(samples * COILS);
            let x = random.complexes::<f32>(voxels);
            let plan = |threads| {
                let mut geometry = Geometry::new(dims, &slices(&k)).coils(COILS).coil_maps(&maps);
                geometry.voxels = listed.then(|| slices(&r));
                Plan::new(&geometry, &Options { threads, ..options.clone() }).unwrap()
            };
            let run = |plan: &Plan<f32>| {
                let (mut a, mut f, mut c) = (poisoned(voxels), poisoned(samples * COILS), poisoned(voxels));
                plan.adjoint(&d, &mut a).unwrap();
                plan.forward(&x, &mut f).unwrap();
                plan.cg(&d, &mut c, &CgOptions { iterations: 2, ..CgOptions::default() }).unwrap();
                let all = [a, f, c].concat();
                all.iter().flat_map(|z| [z.re.to_bits(), z.im.to_bits()]).collect::<Vec<_>>()
            };
            let density = |plan: &Plan<f32>| -> Vec<u32> {
                let method = Density::PipeMenon { iterations: 4, tolerance: 0.0 };
                plan.density(method).unwrap().iter().map(|w| w.to_bits()).collect()
            };
            let first = plan(1);
            let (one, weights) = (run(&first), density(&first));
            for threads in [1, 2, 3, 16] {
                let at = |run: &str| format!("{name} {dims:?}, {threads} threads, {run}, seed {}", random.seed);
                for fresh in 0..3 {
                    let plan = plan(threads);
                    for again in 0..3 {
                        assert!(run(&plan) == one, "{}", at(&format!("plan {fresh}, run {again}")));
                    }
                    assert!(density(&plan) == weights, "{}", at("density"));
                }
                let plan = plan(threads);
                std::thread::scope(|scope| {
                    let calls = [(); 3].map(|()| scope.spawn(|| run(&plan) == one));
                    assert!(calls.into_iter().all(|call| call.join().unwrap()), "{}", at("three calls at once"));
                });
            }
        }
    }
}

/// Checks that coils give the same bytes together as alone, for fewer and more coils than threads. Each thread then
/// transforms a coil, and some help others. Half of the samples are close to each other.
#[test]
fn coils_give_the_same_bytes_together_as_alone() {
    fn check<T: Real>(dims: &[usize], tolerance: f64, random: &mut Random) {
        const COILS: usize = 19;
        let (samples, voxels) = (2500, dims.iter().product::<usize>());
        let mut k = random.trajectory::<T>(dims.len(), samples);
        for axis in &mut k {
            axis[..samples / 2].iter_mut().for_each(|k| *k = T::of(0.05 * k.wide()));
        }
        let (d, x) = (random.complexes::<T>(samples * COILS), random.complexes::<T>(voxels * COILS));
        let bits = |values: &[Complex<T>]| -> Vec<[u64; 2]> {
            values.iter().map(|z| [z.re.wide().to_bits(), z.im.wide().to_bits()]).collect()
        };
        // Returns samples and images of these coils.
        let run = |coils: std::ops::Range<usize>, threads: usize| {
            let options = Options { threads, tolerance, device: Device::Cpu, ..Options::default() };
            let plan = Plan::new(&Geometry::new(dims, &slices(&k)).coils(coils.len()), &options).unwrap();
            let (mut image, mut data) = (poisoned(voxels * coils.len()), poisoned(samples * coils.len()));
            plan.forward(&x[coils.start * voxels..coils.end * voxels], &mut data).unwrap();
            plan.adjoint(&d[coils.start * samples..coils.end * samples], &mut image).unwrap();
            (bits(&data), bits(&image))
        };
        let (mut data, mut image) = (Vec::new(), Vec::new());
        for coil in 0..COILS {
            let (of_coil, image_of_coil) = run(coil..coil + 1, 1);
            data.extend(of_coil);
            image.extend(image_of_coil);
        }
        for threads in [1, 2, 3, 16, 40] {
            for coils in [2, 7, COILS] {
                let (together, images) = run(0..coils, threads);
                let at = format!("{} {dims:?} {tolerance}, {coils} coils, {threads} threads", T::NAME);
                assert!(together == data[..coils * samples], "forward, {at}, seed {}", random.seed);
                assert!(images == image[..coils * voxels], "adjoint, {at}, seed {}", random.seed);
            }
        }
    }
    let mut random = Random::fresh();
    for dims in [&[29usize, 86][..], &[136, 130], &[1, 40], &[12, 20, 16], &[34, 9, 40]] {
        check::<f32>(dims, 1e-3, &mut random);
        check::<f64>(dims, 1e-8, &mut random);
    }
}

/// Runs the tests at all levels of the vector unit, not only at this machine's best one.
#[test]
fn every_level_of_the_vector_unit_passes() {
    again_at_other_levels();
}
