//! Off-resonance and decay: transforms, E^H W E and conjugate gradients with a field map, compared with direct sums in
//! double precision; errors, numbers of segments and nodes, and invalid arguments.

mod common;

use common::*;
use recon::phantom::{CoilModel, Phantom};
use recon::{
    CgOptions, Complex, Device, ErrorKind, Geometry, Interrupt, LambdaUnit, Method, Normal, Options, Plan, Real,
    ScanSize, Trajectory, VoxelBasis,
};
use std::f64::consts::TAU;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::Arc;

/// Returns a smooth field with a range of about 169 Hz, as measured in a head at 3 T, and decay rates.
struct Maps {
    field: Vec<f64>,
    decay: Vec<f64>,
}

impl Maps {
    fn new(dims: &[usize], random: &mut Random) -> Self {
        let r = voxels(dims);
        let waves: Vec<([f64; 3], f64)> =
            (0..4).map(|_| ([0.0; 3].map(|_| 3.0 * random.uniform()), TAU * random.uniform())).collect();
        let at = |i: usize, (k, phase): &([f64; 3], f64)| {
            (r.iter().zip(k).zip(dims).map(|((r, k), &n)| TAU * k * r[i] / n as f64).sum::<f64>() + phase).sin()
        };
        let sum: Vec<f64> = (0..r[0].len()).map(|i| waves.iter().map(|wave| at(i, wave)).sum()).collect();
        let ends = |x: &[f64]| x.iter().fold((f64::MAX, f64::MIN), |(l, h): (f64, f64), &x| (l.min(x), h.max(x)));
        let (low, high) = ends(&sum);
        let field = sum.iter().map(|x| -40.6 + 169.0 * (x - low) / (high - low).max(1e-9)).collect();
        let decay = (0..r[0].len()).map(|i| 20.0 * (1.0 + at(i, &waves[0]))).collect();
        Maps { field, decay }
    }
}

/// Computes the direct sums of the model: sign -1 from voxels to samples, +1 for the adjoint.
struct Model<'a> {
    k: &'a [Vec<f64>],
    r: &'a [Vec<f64>],
    times: &'a [f64],
    field: Option<&'a [f64]>,
    decay: Option<&'a [f64]>,
}

impl Model<'_> {
    fn entry(&self, m: usize, i: usize) -> Complex<f64> {
        let turns: f64 = self.k.iter().zip(self.r).map(|(k, r)| k[m] * r[i]).sum();
        let turns = turns + self.field.map_or(0.0, |f| f[i] * self.times[m]);
        let size = self.decay.map_or(1.0, |decay| (-decay[i] * self.times[m]).exp());
        Complex::from_polar(size, -TAU * (turns - turns.round()))
    }

    fn forward(&self, x: &[Complex<f64>]) -> Vec<Complex<f64>> {
        let seen: Vec<usize> = (0..x.len()).filter(|&i| x[i].norm_sqr() > 0.0).collect();
        (0..self.times.len()).map(|m| seen.iter().map(|&i| self.entry(m, i) * x[i]).sum()).collect()
    }

    fn adjoint(&self, d: &[Complex<f64>]) -> Vec<Complex<f64>> {
        (0..self.r[0].len()).map(|i| (0..d.len()).map(|m| self.entry(m, i).conj() * d[m]).sum()).collect()
    }
}

/// Returns the coordinates and times of a spiral with this total number of samples.
fn spiral(dims: &[usize], shots: usize, per_shot: usize, seconds: f64) -> (Vec<Vec<f64>>, Vec<f64>) {
    let trajectory = match dims.len() {
        2 => Trajectory::spiral(shots, per_shot, dims[0] as f64 / (2 * shots) as f64, 1.0).unwrap(),
        _ => Trajectory::radial3d(shots, per_shot).unwrap(),
    };
    let k: Vec<Vec<f64>> = (0..dims.len()).map(|a| trajectory.axis_as::<f64>(a)).collect();
    let times = (0..k[0].len()).map(|m| 0.002 + seconds * (m % per_shot) as f64 / (per_shot - 1) as f64).collect();
    (k, times)
}

fn reals<T: Real>(x: &[f64]) -> Vec<T> {
    x.iter().map(|&x| T::of(x)).collect()
}

/// Returns the errors of forward and adjoint, and of an image that is one voxel at either end of the field.
fn check<T: Real>(dims: &[usize], tolerance: f64, decay: bool, field: bool, threads: usize, random: &mut Random) {
    let maps = Maps::new(dims, random);
    let (k, times) = spiral(dims, 4, 400, 0.02);
    let (k, times) = (k.iter().map(|k| reals::<T>(k)).collect::<Vec<_>>(), reals::<T>(&times));
    let (f, rates) = (reals::<T>(&maps.field), reals::<T>(&maps.decay));
    let axes = slices(&k);
    let mut geometry = Geometry::new(dims, &axes);
    (geometry.field_map, geometry.decay_map) = (field.then_some(&f[..]), decay.then_some(&rates[..]));
    geometry.times = Some(&times);
    let options = Options { tolerance, threads, ..Options::default() };
    let plan = Plan::new(&geometry, &options).unwrap();
    let wide_of = |x: &[T]| x.iter().map(|x| x.wide()).collect::<Vec<f64>>();
    let (k, r, times, f, rates) = (wide_lists(&k), voxels(dims), wide_of(&times), wide_of(&f), wide_of(&rates));
    let model =
        Model { k: &k, r: &r, times: &times, field: field.then_some(&f[..]), decay: decay.then_some(&rates[..]) };
    let what = format!("{} {dims:?} {tolerance} field {field} decay {decay}, seed {}", T::NAME, random.seed);
    let (d, x) = (random.complexes::<T>(times.len()), random.complexes::<T>(r[0].len()));
    let (mut image, mut values) = (poisoned(x.len()), poisoned(d.len()));
    plan.adjoint(&d, &mut image).unwrap();
    plan.forward(&x, &mut values).unwrap();
    let errors = [distance(&image, &model.adjoint(&wide(&d))), distance(&values, &model.forward(&wide(&x)))];
    println!("{what}: {} segments, told {:.1e}, found {errors:?}", plan.info().segments, plan.info().error);
    assert!(errors.iter().all(|e| *e <= tolerance), "{errors:?} {what}");
    assert!(plan.info().error <= 1.05 * tolerance, "{what}");
    // One voxel, in which the field or the decay is at its extreme.
    let of = if field { &f } else { &rates };
    let least = |a: &usize, b: &usize| of[*a].total_cmp(&of[*b]);
    for i in [(0..of.len()).min_by(least).unwrap(), (0..of.len()).max_by(least).unwrap()] {
        let mut one = vec![Complex::new(T::ZERO, T::ZERO); x.len()];
        one[i] = x[i];
        let mut values = poisoned(d.len());
        plan.forward(&one, &mut values).unwrap();
        let error = distance(&values, &model.forward(&wide(&one)));
        assert!(error <= 1.5 * tolerance, "voxel {i}: {error} {what}");
    }
}

#[test]
fn transforms_keep_the_tolerance() {
    let mut random = Random::fresh();
    for tolerance in [1e-2, 1e-3, 1e-4, 1e-5] {
        for (dims, threads) in [(&[40, 36][..], 2), (&[12, 10, 9], 1)] {
            for (decay, field) in [(false, true), (true, true), (true, false)] {
                check::<f32>(dims, tolerance, decay, field, threads, &mut random);
            }
            check::<f64>(dims, tolerance, false, true, threads, &mut random);
        }
    }
    check::<f64>(&[20, 21], 1e-9, true, true, 2, &mut random);
}

/// Computes both transforms and E^H E of a random scan: any size, range of maps and times. Single samples and voxels,
/// equal times and maps without a range are likely. One voxel may decay much faster than the others.
fn check_random_scan<T: Real>(tolerance: f64, random: &mut Random) {
    let ndim = 2 + random.below(2);
    let dims: Vec<usize> = (0..ndim).map(|_| 1 + random.below(if ndim == 2 { 30 } else { 9 })).collect();
    let longest = 1 + random.below(300);
    let (shots, per_shot) = (1 + random.below(4), 1 + random.below(longest));
    let (r, samples) = (voxels(&dims), shots * per_shot);
    let k = random.trajectory::<T>(ndim, samples);
    let mut between = |low: f64, high: f64| low + (high - low) * (0.5 + random.uniform());
    let (start, length) = (between(-0.005, 0.01), between(-0.005, 0.03).max(0.0));
    let (middle, width, slow) =
        (between(-200.0, 200.0), between(-100.0, 400.0).max(0.0), between(-10.0, 40.0).max(0.0));
    // Signals that grow before time 0 are limited to exp(60).
    let fast = 10f64.powf(between(1.0, if start < 0.0 { 3.0 } else { 4.0 }));
    let f: Vec<T> = (0..r[0].len()).map(|_| T::of(middle + between(-0.5, 0.5) * width)).collect();
    let mut rates: Vec<T> = f.iter().map(|_| T::of(between(0.0, slow))).collect();
    let kind = random.below(5);
    if kind == 3 {
        rates[random.below(f.len())] = T::of(fast);
    }
    let times: Vec<T> = (0..samples).map(|m| T::of(start + length * (m % per_shot) as f64 / per_shot as f64)).collect();
    let axes = slices(&k);
    let mut geometry = Geometry::new(&dims, &axes);
    (geometry.field_map, geometry.decay_map) = ((kind < 4).then_some(&f[..]), (kind > 1).then_some(&rates[..]));
    geometry.times = Some(&times);
    let options = Options { tolerance, normal: Normal::Toeplitz, threads: 2, ..Options::default() };
    let plan = Plan::new(&geometry, &options).unwrap();
    let wide_of = |x: &[T]| x.iter().map(|x| x.wide()).collect::<Vec<f64>>();
    let (k, times, f, rates) = (wide_lists(&k), wide_of(&times), wide_of(&f), wide_of(&rates));
    let model = Model {
        k: &k,
        r: &r,
        times: &times,
        field: (kind < 4).then_some(&f[..]),
        decay: (kind > 1).then_some(&rates[..]),
    };
    let (d, x) = (random.complexes::<T>(samples), random.complexes::<T>(f.len()));
    let (mut image, mut values, mut y) = (poisoned(x.len()), poisoned(d.len()), poisoned(x.len()));
    plan.adjoint(&d, &mut image).unwrap();
    plan.forward(&x, &mut values).unwrap();
    plan.normal(&x, &mut y).unwrap();
    let exact = model.forward(&wide(&x));
    let (wide_d, wide_x) = (wide(&d), wide(&x));
    let adjoint = model.adjoint(&wide_d);
    // Sums of random numbers may be small by chance, which only an average over many hides. The errors of a few are
    // therefore relative to the root of the sum of squares, the size that sums have on average. They are not averaged
    // either.
    let few = samples.min(f.len()) < 50;
    let bound = if few { 3.0 } else { 1.0 };
    let share = |sums: &[Complex<f64>], square: &dyn Fn(usize, usize) -> f64| {
        let power = |m: usize, i: usize| if kind > 1 { (-2.0 * times[m] * rates[i]).exp() } else { 1.0 };
        let pairs = (0..samples).flat_map(|m| (0..f.len()).map(move |i| (m, i)));
        let expected: f64 = pairs.map(|(m, i)| square(m, i) * power(m, i)).sum();
        (sums.iter().map(|z| z.norm_sqr()).sum::<f64>() / expected).sqrt().min(1.0)
    };
    let small = match few {
        true => [share(&adjoint, &|m, _| wide_d[m].norm_sqr()), share(&exact, &|_, i| wide_x[i].norm_sqr())],
        false => [1.0; 2],
    };
    let errors = [
        small[0] * distance(&image, &adjoint),
        small[1] * distance(&values, &exact),
        0.5 * small[1] * distance(&y, &model.adjoint(&exact)),
    ];
    assert!(
        errors.iter().all(|e| *e <= bound * tolerance),
        "{} {dims:?} {shots} x {per_shot} from {start} for {length}, {middle} Hz {width} R {slow} {fast} kind {kind} \
         {tolerance}: {errors:?}, {} segments, seed {}",
        T::NAME,
        plan.info().segments,
        random.seed
    );
}

#[test]
fn random_scans_keep_the_tolerance() {
    let mut random = Random::fresh();
    for _ in 0..25 {
        for tolerance in [1e-2, 1e-3, 1e-4, 1e-5] {
            check_random_scan::<f32>(tolerance, &mut random);
        }
        check_random_scan::<f64>(1e-4, &mut random);
        check_random_scan::<f64>(1e-8, &mut random);
    }
}

#[test]
fn exact_sums_are_exact() {
    let mut random = Random::fresh();
    for dims in [&[24, 22][..], &[8, 9, 7]] {
        let maps = Maps::new(dims, &mut random);
        let (k, times) = spiral(dims, 3, 100, 0.02);
        let axes = slices(&k);
        let mut geometry = Geometry::new(dims, &axes).field_map(&maps.field, &times);
        geometry.decay_map = Some(&maps.decay);
        let plan = Plan::new(&geometry, &Options { method: Method::Exact, ..Options::default() }).unwrap();
        let r = voxels(dims);
        let model = Model { k: &k, r: &r, times: &times, field: Some(&maps.field), decay: Some(&maps.decay) };
        let (d, x) = (random.complexes::<f64>(times.len()), random.complexes::<f64>(r[0].len()));
        let (mut image, mut values) = (poisoned(x.len()), poisoned(d.len()));
        plan.adjoint(&d, &mut image).unwrap();
        plan.forward(&x, &mut values).unwrap();
        let errors = [distance(&image, &model.adjoint(&d)), distance(&values, &model.forward(&x))];
        assert!(errors.iter().all(|e| *e < 1e-13), "{errors:?}, seed {}", random.seed);
        assert_eq!(plan.info().segments, 0);
        // Its E^H E uses nodes.
        let mut y = poisoned(x.len());
        plan.normal(&x, &mut y).unwrap();
        let error = distance(&y, &model.adjoint(&model.forward(&x)));
        assert!(plan.info().nodes > 0 && error < 1e-10, "{error} of {}, seed {}", plan.info().nodes, random.seed);
    }
}

/// A scan with coils, weights, box voxels and both maps.
#[test]
fn all_features_together_and_the_normal_operator() {
    let mut random = Random::fresh();
    let (dims, coils) = (&[30, 27][..], 3);
    let maps = Maps::new(dims, &mut random);
    let (k, times) = spiral(dims, 4, 300, 0.02);
    let (samples, voxel_count) = (times.len(), dims.iter().product::<usize>());
    let weights: Vec<f64> = (0..samples).map(|_| random.uniform() + 0.6).collect();
    let coil_maps = random.complexes::<f64>(voxel_count * coils);
    let axes = slices(&k);
    let r = voxels(dims);
    let phi: Vec<f64> = (0..samples).map(|m| k.iter().map(|k| sinc(k[m])).product()).collect();
    let data = random.complexes::<f64>(samples * coils);
    for (decay, combined) in [(false, true), (true, true), (true, false)] {
        let model =
            Model { k: &k, r: &r, times: &times, field: Some(&maps.field), decay: decay.then_some(&maps.decay[..]) };
        let mut geometry = Geometry::new(dims, &axes).weights(&weights).coils(coils).field_map(&maps.field, &times);
        geometry.decay_map = model.decay;
        geometry.coil_maps = combined.then_some(&coil_maps[..]);
        geometry.basis = VoxelBasis::Box;
        let images = if combined { 1 } else { coils };
        let x = random.complexes::<f64>(voxel_count * images);
        let coil = |c: usize| -> Vec<Complex<f64>> {
            match combined {
                true => (0..voxel_count).map(|i| coil_maps[c * voxel_count + i] * x[i]).collect(),
                false => x[c * voxel_count..][..voxel_count].to_vec(),
            }
        };
        let scaled = |values: &[Complex<f64>], by: &dyn Fn(usize) -> f64| -> Vec<Complex<f64>> {
            values.iter().enumerate().map(|(m, z)| z * by(m)).collect()
        };
        let mut wanted = [vec![], vec![Complex::default(); x.len()], vec![Complex::default(); x.len()]];
        for c in 0..coils {
            let forward = scaled(&model.forward(&coil(c)), &|m| phi[m]);
            wanted[0].extend_from_slice(&forward);
            let back = [&data[c * samples..][..samples], &forward]
                .map(|values| model.adjoint(&scaled(values, &|m| phi[m] * weights[m])));
            for (wanted, image) in wanted[1..].iter_mut().zip(&back) {
                for (i, z) in image.iter().enumerate() {
                    match combined {
                        true => wanted[i] += coil_maps[c * voxel_count + i].conj() * z,
                        false => wanted[c * voxel_count + i] = *z,
                    }
                }
            }
        }
        let mut bits: Option<Vec<Vec<Complex<f64>>>> = None;
        for (normal, threads) in [(Normal::Toeplitz, 1), (Normal::Toeplitz, 3), (Normal::Transforms, 2)] {
            for tolerance in [1e-2, 1e-3, 1e-4, 1e-5] {
                let options = Options { tolerance, normal, threads, ..Options::default() };
                let plan = Plan::new(&geometry, &options).unwrap();
                let mut found = [poisoned(samples * coils), poisoned(x.len()), poisoned(x.len())];
                plan.forward(&x, &mut found[0]).unwrap();
                plan.weighted_adjoint(&data, &mut found[1]).unwrap();
                plan.normal(&x, &mut found[2]).unwrap();
                let errors: Vec<f64> = found.iter().zip(&wanted).map(|(f, w)| distance(f, w)).collect();
                let info = plan.info();
                assert_eq!(info.nodes > 0, normal == Normal::Toeplitz);
                println!("{tolerance} {normal:?}: {} segments, {} nodes, {errors:?}", info.segments, info.nodes);
                assert!(errors[0] <= tolerance && errors[1] <= tolerance, "{errors:?}, seed {}", random.seed);
                assert!(errors[2] <= 3.0 * tolerance, "{errors:?} {normal:?}, seed {}", random.seed);
                // Hermitian, and the same for any number of threads.
                if tolerance == 1e-3 && normal == Normal::Toeplitz {
                    let y = random.complexes::<f64>(x.len());
                    let mut of_y = poisoned(x.len());
                    plan.normal(&y, &mut of_y).unwrap();
                    let dot = |a: &[Complex<f64>], b: &[Complex<f64>]| -> Complex<f64> {
                        a.iter().zip(b).map(|(a, b)| a.conj() * b).sum()
                    };
                    let difference = (dot(&y, &found[2]) - dot(&of_y, &x)).norm();
                    assert!(difference < 1e-12 * norm(&y) * norm(&found[2]), "{difference}");
                    match &bits {
                        None => bits = Some(found.to_vec()),
                        Some(bits) => assert!(bits[..] == found[..], "threads change bits"),
                    }
                }
            }
        }
    }
}

fn sinc(k: f64) -> f64 {
    let a = std::f64::consts::PI * k;
    if a == 0.0 {
        1.0
    } else {
        a.sin() / a
    }
}

#[test]
fn numbers_of_segments_and_nodes_are_the_least() {
    let mut random = Random::fresh();
    let dims = [64, 64];
    let maps = Maps::new(&dims, &mut random);
    for (seconds, segments) in [(0.02, [7, 9, 10, 11]), (0.005, [4, 5, 6, 6]), (0.05, [13, 15, 16, 18])] {
        let (k, times) = spiral(&dims, 4, 500, seconds);
        let axes = slices(&k);
        let geometry = Geometry::new(&dims, &axes).field_map(&maps.field, &times);
        for (i, tolerance) in [1e-2, 1e-3, 1e-4, 1e-5].into_iter().enumerate() {
            let options = Options { tolerance, normal: Normal::Toeplitz, ..Options::default() };
            let info = Plan::new(&geometry, &options).unwrap().info();
            assert!(info.segments <= segments[i] + 1, "{seconds} {tolerance}: {} segments", info.segments);
            if seconds == 0.02 {
                let most = [12, 13, 15, 17][i] + 1;
                assert!(info.nodes <= most, "{tolerance}: {} nodes", info.nodes);
            }
        }
    }
}

#[test]
fn a_constant_map_moves_a_cartesian_readout() {
    // A readout of 64 samples in 6.4 ms has 156.25 Hz per voxel: 1 / (64 * 0.1 ms).
    let n = 64;
    let trajectory = Trajectory::cartesian(&[n, n]).unwrap();
    let k: Vec<Vec<f32>> = (0..2).map(|a| trajectory.axis_as::<f32>(a)).collect();
    let dwell = 1e-4;
    let times: Vec<f32> = (0..n * n).map(|m| ((m % n) as f64 * dwell) as f32).collect();
    let map = vec![(3.0 / (n as f64 * dwell)) as f32; n * n];
    let axes = slices(&k);
    let with = Plan::new(&Geometry::new(&[n, n], &axes).field_map(&map, &times), &Options::default()).unwrap();
    let without = Plan::new(&Geometry::new(&[n, n], &axes), &Options::default()).unwrap();
    let mut object = vec![Complex::new(0.0f32, 0.0); n * n];
    object[30 * n + 20] = Complex::new(1.0, 0.0);
    let (mut data, mut image) = (poisoned(n * n), poisoned(n * n));
    with.forward(&object, &mut data).unwrap();
    without.adjoint(&data, &mut image).unwrap();
    let largest = |image: &[Complex<f32>]| {
        (0..n * n).max_by(|a, b| image[*a].norm_sqr().total_cmp(&image[*b].norm_sqr())).unwrap()
    };
    // exp(-i 2 pi f t) with t proportional to kx: the phase of an object shifted along x.
    assert_eq!(largest(&image), 30 * n + 23);
    with.adjoint(&data, &mut image).unwrap();
    assert_eq!(largest(&image), 30 * n + 20);
    assert_eq!(with.info().segments, 1);
}

/// The scan of the measured map: a spiral of 20 ms, an object with sharp borders.
#[test]
fn conjugate_gradients_with_the_map_are_at_least_10_db_better() {
    let mut random = Random::fresh();
    let n = 64;
    let dims = [n, n];
    let maps = Maps::new(&dims, &mut random);
    let (k, times) = spiral(&dims, 8, 1600, 0.02);
    let r = voxels(&dims);
    let object: Vec<Complex<f64>> = (0..n * n)
        .map(|i| {
            let (x, y) = (r[0][i] / n as f64, r[1][i] / n as f64);
            let inside = |a: f64, b: f64| f64::from((x / a).powi(2) + (y / b).powi(2) < 1.0);
            Complex::new(inside(0.42, 0.36) - 0.6 * inside(0.2, 0.12) + 0.3 * inside(0.07, 0.09), 0.0)
        })
        .collect();
    let model = Model { k: &k, r: &r, times: &times, field: Some(&maps.field), decay: None };
    let data = model.forward(&object);
    let axes = slices(&k);
    let geometry = Geometry::new(&dims, &axes);
    let cg = CgOptions { iterations: 20, ..CgOptions::default() };
    let error = |geometry: &Geometry<'_, f64>, normal: Normal| {
        let options = Options { tolerance: 1e-4, normal, ..Options::default() };
        let mut image = poisoned(n * n);
        Plan::new(geometry, &options).unwrap().cg(&data, &mut image, &cg).unwrap();
        distance(&image, &object)
    };
    let without = error(&geometry, Normal::Auto);
    let mapped = geometry.clone().field_map(&maps.field, &times);
    let with = [Normal::Toeplitz, Normal::Transforms].map(|normal| error(&mapped, normal));
    println!("without {without:.3}, with {with:.4?}");
    for with in with {
        assert!(20.0 * (without / with).log10() >= 10.0, "{without} {with}, seed {}", random.seed);
    }
}

#[test]
fn a_saved_q_refuses_another_map_and_other_times() {
    let mut random = Random::fresh();
    let dims = [20, 18];
    let maps = Maps::new(&dims, &mut random);
    let (k, times) = spiral(&dims, 2, 200, 0.02);
    let axes = slices(&k);
    let geometry = Geometry::new(&dims, &axes).field_map(&maps.field, &times);
    let options = Options { tolerance: 1e-4, normal: Normal::Toeplitz, ..Options::default() };
    let plan = Plan::new(&geometry, &options).unwrap();
    let folder = std::env::temp_dir().join(format!("recon-q-{}", random.seed));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("q");
    plan.save_q(&file).unwrap();
    let x = random.complexes::<f64>(360);
    let (mut computed, mut loaded) = (poisoned(360), poisoned(360));
    plan.normal(&x, &mut computed).unwrap();
    let again = Plan::new(&geometry, &options).unwrap();
    again.load_q(&file).unwrap();
    again.normal(&x, &mut loaded).unwrap();
    assert!(computed == loaded);
    let mut other = maps.field.clone();
    other[100] += 1e-3;
    let later: Vec<f64> = times.iter().map(|t| t + 1e-4).collect();
    let no_map = Geometry::new(&dims, &axes);
    let changed = [
        (Geometry::new(&dims, &axes).field_map(&other, &times), &options),
        (Geometry::new(&dims, &axes).field_map(&maps.field, &later), &options),
        (Geometry { decay_map: Some(&maps.decay), ..geometry.clone() }, &options),
        (geometry.clone(), &Options { tolerance: 1e-5, ..options.clone() }),
        (no_map, &options),
    ];
    for (geometry, options) in changed {
        let refused = Plan::new(&geometry, options).unwrap().load_q(&file).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::BadFile);
        assert!(refused.to_string().contains("field map"), "{refused}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_new_trajectory_has_the_bits_of_a_new_plan() {
    let mut random = Random::fresh();
    let dims = [26, 24];
    let maps = Maps::new(&dims, &mut random);
    let other = Maps::new(&dims, &mut random);
    // The last two have the same maps and times, so that the plan keeps the factors of the samples.
    let later = spiral(&dims, 3, 210, 0.03);
    let scans = [spiral(&dims, 2, 200, 0.02), spiral(&dims, 2, 200, 0.02), later.clone(), later];
    for (method, normal) in
        [(Method::Nufft, Normal::Toeplitz), (Method::Exact, Normal::Toeplitz), (Method::Exact, Normal::Transforms)]
    {
        let options = Options { method, normal, tolerance: 1e-4, threads: 2, ..Options::default() };
        let mut plan: Option<Plan<f64>> = None;
        for (i, (k, times)) in scans.iter().enumerate() {
            let mut k = k.clone();
            k.iter_mut().flatten().for_each(|k| *k *= 1.0 - 0.1 * i as f64);
            let axes = slices(&k);
            let field = if i == 1 { &other.field } else { &maps.field };
            let mut geometry = Geometry::new(&dims, &axes).field_map(field, times);
            geometry.decay_map = Some(&maps.decay);
            let new = Plan::new(&geometry, &options).unwrap();
            let plan = match &plan {
                None => plan.insert(new.clone()),
                Some(plan) => {
                    plan.set_trajectory(&geometry).unwrap();
                    plan
                }
            };
            let x = random.complexes::<f64>(dims.iter().product());
            let results = [plan, &new].map(|plan| {
                let (mut values, mut y) = (poisoned(plan.kspace_len()), poisoned(x.len()));
                plan.forward(&x, &mut values).unwrap();
                plan.normal(&x, &mut y).unwrap();
                // Relative to the mean diagonal, which depends on decay at the new times.
                let cg =
                    CgOptions { iterations: 2, lambda: 0.1, lambda_unit: LambdaUnit::Relative, ..Default::default() };
                let mut image = poisoned(x.len());
                let report = plan.cg(&values, &mut image, &cg).unwrap();
                (values, y, image, report.lambda)
            });
            assert!(results[0] == results[1], "{method:?} {normal:?} {i}, seed {}", random.seed);
        }
        let plan = plan.unwrap();
        let axes = slices(&scans[0].0);
        let refused = plan.set_trajectory(&Geometry::new(&dims, &axes)).unwrap_err();
        assert!(refused.to_string().contains("field map"), "{refused}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_what_would_do() {
    let dims = [16, 16];
    let (k, times) = spiral(&dims, 2, 100, 0.05);
    let axes = slices(&k);
    let map: Vec<f64> = (0..256).map(|i| i as f64 - 128.0).collect();
    let refused = |geometry: &Geometry<'_, f64>, options: &Options, kind: ErrorKind, words: &[&str]| {
        for error in [
            Plan::new(geometry, options).err(),
            ScanSize::of(geometry).and_then(|size| Plan::<f64>::memory(&size, options)).err(),
        ] {
            let error = error.expect("a refusal");
            assert_eq!(error.kind(), kind, "{error}");
            assert!(words.iter().all(|word| error.to_string().contains(word)), "{words:?}: {error}");
        }
    };
    let base = Options { device: Device::Cpu, ..Options::default() };
    let plain = Geometry::new(&dims, &axes);
    let with = plain.clone().field_map(&map, &times);
    refused(&Geometry { times: None, ..with.clone() }, &base, ErrorKind::InvalidArgument, &["without times"]);
    refused(
        &Geometry { times: Some(&times), ..plain.clone() },
        &base,
        ErrorKind::InvalidArgument,
        &["without a field"],
    );
    refused(&Geometry { times: Some(&times[1..]), ..with.clone() }, &base, ErrorKind::SizeMismatch, &["199", "200"]);
    refused(&Geometry { field_map: Some(&map[1..]), ..with.clone() }, &base, ErrorKind::SizeMismatch, &["255", "256"]);
    refused(&Geometry { decay_map: Some(&map[1..]), ..with.clone() }, &base, ErrorKind::SizeMismatch, &["255", "256"]);
    for odd in [f64::NAN, f64::INFINITY] {
        let (mut bad, mut late) = (map.clone(), times.clone());
        (bad[77], late[55]) = (odd, odd);
        refused(&plain.clone().field_map(&bad, &times), &base, ErrorKind::NotFinite, &["voxel 77"]);
        refused(
            &Geometry { decay_map: Some(&bad), ..with.clone() },
            &base,
            ErrorKind::NotFinite,
            &["rate", "voxel 77"],
        );
        refused(&plain.clone().field_map(&map, &late), &base, ErrorKind::NotFinite, &["time", "sample 55"]);
    }
    let negative = Geometry { decay_map: Some(&map), ..with.clone() };
    refused(&negative, &base, ErrorKind::InvalidArgument, &["voxel 0", "-128", "negative"]);
    let steep: Vec<f64> = map.iter().map(|f| 30.0 * f).collect();
    refused(&plain.clone().field_map(&steep, &times), &base, ErrorKind::Unsupported, &["segments", "128"]);
    let milliseconds: Vec<f64> = times.iter().map(|t| 1e3 * t).collect();
    let slow = vec![30.0; 256];
    let decayed = Geometry { decay_map: Some(&slow), ..plain.clone().field_map(&slow, &milliseconds) };
    refused(&decayed, &base, ErrorKind::InvalidArgument, &["R2*", "seconds"]);
    // A limit that fits the plan without a map, but not its segments. Under any limit one segment is transformed at a
    // time.
    let limit = |bytes: usize| Options { memory_limit: Some(bytes), ..base.clone() };
    let size = |geometry: &Geometry<'_, f64>| {
        Plan::<f64>::memory(&ScanSize::of(geometry).unwrap(), &limit(1 << 40)).unwrap().host.transform
    };
    assert!(size(&with) > size(&plain) + 10 * 256 * 16);
    let between = limit((size(&plain) + size(&with)) / 2);
    Plan::new(&plain, &between).unwrap();
    assert_eq!(Plan::new(&with, &between).err().unwrap().kind(), ErrorKind::MemoryLimit);
    // Unsupported operations.
    let plan = Plan::new(&with, &base).unwrap();
    let data = vec![Complex::new(1.0, 0.0); plan.kspace_len()];
    let mut image = vec![Complex::new(7.0, 0.0); 256];
    let told = plan.fbp(recon::Filter::RamLak, &data, &mut image).unwrap_err();
    assert!(told.kind() == ErrorKind::Unsupported && told.to_string().contains("field map"), "{told}");
    assert!(image.iter().all(|z| z.re == 7.0));
    let mut q = vec![Complex::new(7.0, 0.0); plan.q_len()];
    let told = plan.q(&mut q).unwrap_err();
    assert!(told.kind() == ErrorKind::Unsupported && told.to_string().contains("field map"), "{told}");
    let grid: usize = plan.info().grid.iter().product();
    let told = plan.grid_kspace(&data, &mut vec![Complex::default(); grid]).unwrap_err();
    assert!(told.kind() == ErrorKind::Unsupported && told.to_string().contains("field map"), "{told}");
    // Times that may be in milliseconds are used, with a warning.
    let slow = vec![0.01; 256];
    let plan = Plan::new(&plain.clone().field_map(&slow, &milliseconds), &base).unwrap();
    assert!(plan.warnings().iter().any(|w| w.kind == recon::WarningKind::Times && w.message.contains("ms")));
}

#[test]
fn voxels_that_no_coil_sees_do_not_count() {
    let mut random = Random::fresh();
    let dims = [24, 24];
    let maps = Maps::new(&dims, &mut random);
    let (k, times) = spiral(&dims, 2, 300, 0.02);
    let axes = slices(&k);
    let mut coil_maps = random.complexes::<f32>(2 * 576);
    let (mut field, mut decay): (Vec<f32>, Vec<f32>) = (reals(&maps.field), reals(&maps.decay));
    let (times, k) = (reals::<f32>(&times), axes.iter().map(|k| reals::<f32>(k)).collect::<Vec<_>>());
    for i in 0..40 {
        (coil_maps[i], coil_maps[576 + i]) = (Complex::default(), Complex::default());
        (field[i], decay[i]) = (1e5, 1e6);
    }
    let axes = slices(&k);
    let mut geometry = Geometry::new(&dims, &axes).coils(2).coil_maps(&coil_maps).field_map(&field, &times);
    geometry.decay_map = Some(&decay);
    let plan = Plan::new(&geometry, &Options::default()).unwrap();
    assert!(plan.info().segments < 25);
    let data = random.complexes::<f32>(plan.kspace_len());
    let mut image = poisoned(576);
    plan.cg(&data, &mut image, &CgOptions::default()).unwrap();
    assert!(image.iter().all(|z| z.re.is_finite() && z.im.is_finite()));
    assert!(image[..40].iter().all(|z| z.norm() == 0.0));
    // Nor with a new trajectory and the coil maps of the plan; but with maps that see them.
    let near: Vec<Vec<f32>> = k.iter().map(|k| k.iter().map(|k| 0.9 * k).collect()).collect();
    let near = slices(&near);
    let moved = Geometry { coordinates: near, ..geometry.clone() };
    plan.set_trajectory(&Geometry { coil_maps: None, ..moved.clone() }).unwrap();
    let mut again = [poisoned(576), poisoned(576)];
    plan.adjoint(&data, &mut again[0]).unwrap();
    Plan::new(&moved, &Options::default()).unwrap().adjoint(&data, &mut again[1]).unwrap();
    assert!(again[0] == again[1]);
    let every = random.complexes::<f32>(2 * 576);
    let refused = plan.set_coil_maps(&every).unwrap_err();
    assert!(refused.to_string().contains("100000") && refused.to_string().contains("new plan"), "{refused}");
    let fewer: Vec<Complex<f32>> = coil_maps.iter().map(|s| 0.5 * s).collect();
    plan.set_coil_maps(&fewer).unwrap();
}

#[test]
fn an_interrupted_call_leaves_its_output_as_it_was() {
    let mut random = Random::fresh();
    let dims = [200, 180];
    let (voxel_count, samples) = (200 * 180, 80_000);
    let maps = Maps::new(&dims, &mut random);
    let (k, times) = spiral(&dims, 4, samples / 4, 0.02);
    let axes = slices(&k);
    let geometry = Geometry::new(&dims, &axes).field_map(&maps.field, &times);
    let (data, x) = (random.complexes::<f64>(samples), random.complexes::<f64>(voxel_count));
    for normal in [Normal::Toeplitz, Normal::Transforms] {
        // Returns true at this poll, after this number of polls.
        let left = Arc::new(AtomicIsize::new(isize::MAX));
        let asked = left.clone();
        let interrupt = Interrupt::new(move || asked.fetch_sub(1, Ordering::SeqCst) <= 0);
        let options = Options {
            normal,
            interrupt: Some(interrupt),
            device: Device::Cpu,
            threads: 1,
            tolerance: 1e-6,
            ..Options::default()
        };
        let plan = Plan::new(&geometry, &options).unwrap();
        // Creates Q and buffers.
        plan.normal(&x, &mut poisoned(voxel_count)).unwrap();
        for operation in 0..3 {
            for questions in 0..4 {
                left.store(questions, Ordering::SeqCst);
                // Longer than the interval between two polls, so that the call begins with one.
                std::thread::sleep(std::time::Duration::from_millis(30));
                let mut out = vec![Complex::new(7.0, 8.0); if operation == 0 { samples } else { voxel_count }];
                let result = match operation {
                    0 => plan.forward(&x, &mut out),
                    1 => plan.adjoint(&data, &mut out),
                    _ => plan.normal(&x, &mut out),
                };
                let Err(error) = result else {
                    assert!(questions > 0, "{normal:?} {operation} was never asked");
                    continue;
                };
                assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
                assert!(out.iter().all(|z| *z == Complex::new(7.0, 8.0)), "{normal:?} {operation} {questions}");
            }
        }
    }
}

#[test]
fn coil_maps_from_the_data_see_the_field_map() {
    let mut random = Random::fresh();
    let (n, coils) = (64, 4);
    let (k, times) = spiral(&[n, n], 4, 2000, 0.018);
    let axes = slices(&k);
    let ring = CoilModel::ring(coils, 2).unwrap();
    let data = Phantom::shepp_logan_2d().kspace(&[n, n], &axes, Some(&ring), 2).unwrap();
    let frequency = 80.0 + 20.0 * random.uniform();
    let map = vec![frequency; n * n];
    let turn = |(m, z): (usize, &Complex<f64>)| z * Complex::from_polar(1.0, -TAU * frequency * times[m % times.len()]);
    let turned: Vec<Complex<f64>> = data.iter().enumerate().map(turn).collect();
    let geometry = Geometry::new(&[n, n], &axes).coils(coils);
    let maps = |geometry: &Geometry<'_, f64>, data: &[Complex<f64>]| {
        Plan::new(geometry, &Options::default()).unwrap().coil_maps(data, 0).unwrap()
    };
    let wanted = maps(&geometry, &data);
    let seen = distance(&maps(&geometry.clone().field_map(&map, &times), &turned), &wanted);
    let unseen = distance(&maps(&geometry, &turned), &wanted);
    println!("with the map {seen:.1e}, without {unseen:.1e}");
    assert!(seen < 1e-3 && unseen > 10.0 * seen, "{seen} {unseen}, seed {}", random.seed);
}
