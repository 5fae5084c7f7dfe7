//! The NUFFT of a plan, compared with direct sums in double precision on new random input. Outputs contain NaN before
//! each call.

mod common;

use common::emulator::less_in_emulator;
use common::transforms::*;
use common::*;
use recon::{Complex, ErrorKind, Geometry, Method, Normal, Options, Plan, Real, Window};

/// Larger images, where single precision has more to lose.
#[test]
fn larger_images_keep_the_tolerance() {
    let mut random = Random::fresh();
    for dims in [&[300usize, 4][..], &[512, 8], &[96, 97], &[64, 10, 6], &[4096, 2]] {
        for tolerance in [1e-3, 1e-6] {
            let k = random.trajectory::<f32>(dims.len(), 400);
            for error in errors(&k, dims, &nufft(Window::default(), tolerance), &mut random).unwrap() {
                assert!(error <= tolerance, "{dims:?}: {error:e} > {tolerance:e}, seed {}", random.seed);
            }
        }
    }
}

/// Checks the centre of radial scans, where thousands of samples meet and rounding errors add up.
#[test]
fn dense_centres_keep_the_tolerance() {
    fn check<T: Real>(dims: &[usize], trajectory: &recon::Trajectory, tolerances: &[f64]) {
        let mut random = Random::fresh();
        let k: Vec<Vec<T>> = (0..dims.len()).map(|axis| trajectory.axis_as(axis)).collect();
        let wide_k = wide_lists(&k);
        let (samples, voxel_count) = (k[0].len(), dims.iter().product());
        let (d, x) = (random.complexes::<T>(samples), random.complexes::<T>(voxel_count));
        let exact = Options { method: Method::Exact, threads: 2, ..Options::default() };
        let exact = Plan::new(&Geometry::new(dims, &slices(&wide_k)), &exact).unwrap();
        let (mut image, mut values) = (poisoned(voxel_count), poisoned(samples));
        exact.adjoint(&wide(&d), &mut image).unwrap();
        exact.forward(&wide(&x), &mut values).unwrap();
        for &tolerance in tolerances {
            let plan = Plan::new(&Geometry::new(dims, &slices(&k)), &nufft(Window::default(), tolerance)).unwrap();
            let (mut own_image, mut own_values) = (poisoned(voxel_count), poisoned(samples));
            plan.adjoint(&d, &mut own_image).unwrap();
            plan.forward(&x, &mut own_values).unwrap();
            for error in [distance(&own_image, &image), distance(&own_values, &values)] {
                let at = format!("{} {dims:?}, seed {}", T::NAME, random.seed);
                assert!(error <= tolerance, "{at}: {error:e} > {tolerance:e}");
            }
        }
    }
    let radial = recon::Trajectory::radial2d(504, 256, recon::trajectory::SpokeOrder::Linear).unwrap();
    let kooshball = recon::Trajectory::radial3d(400, 64).unwrap();
    let tolerances = [1e-3, 1e-4, 2e-5, 1e-5, 6e-6, 4e-6, 3e-6, 2e-6, 1.5e-6, 1e-6];
    check::<f32>(&[128, 128], &radial, &tolerances);
    check::<f32>(&[32, 32, 32], &kooshball, &tolerances);
    check::<f64>(&[128, 128], &radial, &[1e-6, 1e-9, 1e-12]);
    check::<f64>(&[32, 32, 32], &kooshball, &[1e-6, 1e-9, 1e-12]);
}

/// Checks that a plan meets the tolerance, beside a direct sum in double precision, with the same bytes for any number
/// of threads.
fn check_with_threads<T: Real>(random: &mut Random, dims: &[usize], samples: usize, tolerance: f64) {
    let voxel_count = dims.iter().product();
    let mut k = random.trajectory::<T>(dims.len(), samples);
    for (k, corners) in k.iter_mut().zip(corners::<T>(dims.len())) {
        k[..corners.len()].copy_from_slice(&corners);
    }
    let (d, x) = (random.complexes::<T>(samples), random.complexes::<T>(voxel_count));
    let wide_k = wide_lists(&k);
    let exact = Options { method: Method::Exact, threads: 2, ..Options::default() };
    let exact = Plan::new(&Geometry::new(dims, &slices(&wide_k)), &exact).unwrap();
    let (mut right_image, mut right_values) = (poisoned(voxel_count), poisoned(samples));
    exact.adjoint(&wide(&d), &mut right_image).unwrap();
    exact.forward(&wide(&x), &mut right_values).unwrap();
    let results = [1, 2, 5].map(|threads| {
        let options = Options { threads, ..nufft(Window::default(), tolerance) };
        let plan = Plan::new(&Geometry::new(dims, &slices(&k)), &options).unwrap();
        let (mut image, mut values) = (poisoned(voxel_count), poisoned(samples));
        plan.adjoint(&d, &mut image).unwrap();
        plan.forward(&x, &mut values).unwrap();
        (image, values)
    });
    let at = format!("{} {dims:?}, seed {}", T::NAME, random.seed);
    assert!(results[0] == results[1] && results[0] == results[2], "{at}: threads change the bytes");
    let (image, values) = &results[0];
    for (name, error) in
        [("adjoint", fair_distance(image, &right_image, &d)), ("forward", fair_distance(values, &right_values, &x))]
    {
        // Images of a few voxels do not average.
        assert!(error <= 2.0 * tolerance, "{at}, {name}: {error:e} > {tolerance:e}");
    }
}

/// On the CPU, a small grid is one tile, whose windows reach its own first cells, and thousands of samples are several
/// parts of it. Small, long and large grids meet the tolerance.
#[test]
fn grids_of_one_tile_meet_the_tolerance_with_any_number_of_threads() {
    fn check<T: Real>(tolerance: f64) {
        let mut random = Random::fresh();
        let of_bits = |ndim: u32| {
            (0..1 << ndim).map(move |bits| (0..ndim).map(|axis| bits >> axis & 1 == 1).collect::<Vec<bool>>())
        };
        for is_long in [2, 3].into_iter().flat_map(of_bits) {
            let length = |(long, least)| if long { least + random.below(12) } else { 1 + random.below(9) };
            let dims: Vec<usize> = is_long.into_iter().zip([61, 33, 33]).map(length).collect();
            check_with_threads::<T>(&mut random, &dims, 9000, tolerance);
        }
    }
    for _ in 0..3 {
        check::<f32>(1e-4);
        check::<f64>(1e-9);
    }
}

/// Few samples leave most of the grid unused, where the numbers of earlier calls remain. They affect no later call.
#[test]
fn sums_that_overflow_affect_no_later_call() {
    fn check<T: Real>(random: &mut Random, dims: &[usize], samples: usize, tolerance: f64) {
        let k = random.trajectory::<T>(dims.len(), samples);
        let voxel_count = dims.iter().product();
        let options = Options { threads: 1 + random.below(3), ..nufft(Window::default(), tolerance) };
        let plan = || Plan::new(&Geometry::new(dims, &slices(&k)), &options).unwrap();
        let (d, x) = (random.complexes::<T>(samples), random.complexes::<T>(voxel_count));
        let results = |plan: &Plan<T>| {
            let (mut image, mut values) = (poisoned(voxel_count), poisoned(samples));
            plan.forward(&x, &mut values).unwrap();
            plan.adjoint(&d, &mut image).unwrap();
            (image, values)
        };
        let (used, expected) = (plan(), results(&plan()));
        // Sums of these numbers are infinite, and differences of the sums are not numbers.
        let huge = Complex::new(T::of(0.5 * T::LARGEST), T::of(-0.5 * T::LARGEST));
        let error = used.forward(&vec![huge; voxel_count], &mut poisoned(samples)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFinite);
        assert!(results(&used) == expected, "{} {dims:?}, {samples} samples, seed {}", T::NAME, random.seed);
        // A single sample may not overflow.
        let result = used.adjoint(&vec![huge; samples], &mut poisoned(voxel_count));
        assert!(result.is_ok() && samples == 1 || result.is_err_and(|error| error.kind() == ErrorKind::NotFinite));
        assert!(results(&used) == expected, "{} {dims:?}, {samples} samples, seed {}", T::NAME, random.seed);
    }
    let mut random = Random::fresh();
    for _ in 0..6 {
        let plane = [200 + random.below(100), 100 + random.below(100)];
        let volume = [60 + random.below(40), 30 + random.below(30), 20 + random.below(30)];
        for samples in [1, 40, 1000, 20_000] {
            check::<f32>(&mut random, &plane, samples, 1e-3);
            check::<f32>(&mut random, &volume, samples, 1e-4);
            check::<f64>(&mut random, &plane, samples, 1e-9);
            check::<f64>(&mut random, &volume, samples, 1e-6);
        }
    }
}

/// On the CPU, the parts of several tiles alternate if the values are more than the cache can hold.
#[test]
fn many_samples_in_few_tiles_meet_the_tolerance_with_any_number_of_threads() {
    let mut random = Random::fresh();
    let dims = [350 + random.below(100), 2 + random.below(3)];
    check_with_threads::<f32>(&mut random, &dims, 1_200_000, 1e-4);
    check_with_threads::<f64>(&mut random, &dims, 600_000, 1e-9);
}

#[test]
fn samples_at_the_edges_of_k_space() {
    fn check<T: Real>() {
        let mut random = Random::fresh();
        for dims in [&[20usize, 13][..], &[9, 8, 11]] {
            let k = corners::<T>(dims.len());
            for tolerance in [1e-2, 1e-5] {
                let options = nufft(Window::default(), tolerance);
                for error in errors_by(fair_distance, &k, dims, &options, &mut random).unwrap() {
                    // These are few positions. The tolerance is for the mean over many, and the worst position may
                    // dominate here.
                    assert!(error <= 2.0 * tolerance, "{dims:?}: {error:e} > {tolerance:e}, seed {}", random.seed);
                }
            }
        }
    }
    check::<f32>();
    check::<f64>();
}

/// Checks the promise for one sample and one voxel. Each entry of E has the absolute value 1. Its error is at most five
/// times the tolerance, for tolerances of 1e-2 or less and any position. The voxels are corners of the image, where
/// errors are largest, and some others.
#[test]
fn no_entry_of_the_matrix_errs_by_more_than_five_times_the_tolerance() {
    fn check<T: Real>(smallest: i32) {
        let mut random = Random::fresh();
        for dims in [&[20usize, 13][..], &[1, 31], &[64, 2], &[2, 2], &[9, 8, 11], &[1, 6, 1]] {
            for exponent in 2..=smallest {
                let tolerance = 10f64.powi(-exponent);
                let mut k = corners::<T>(dims.len());
                for (k, more) in k.iter_mut().zip(random.trajectory::<T>(dims.len(), 200)) {
                    k.extend(more);
                }
                let plan = Plan::new(&Geometry::new(dims, &slices(&k)), &nufft(Window::default(), tolerance)).unwrap();
                let (r, voxel_count) = (voxels(dims), dims.iter().product::<usize>());
                let chosen = [0, voxel_count - 1, dims[0] - 1, random.below(voxel_count), random.below(voxel_count)];
                for voxel in chosen {
                    let mut image = vec![Complex::new(T::ZERO, T::ZERO); voxel_count];
                    image[voxel] = Complex::new(T::of(1.0), T::ZERO);
                    let mut values = poisoned(k[0].len());
                    plan.forward(&image, &mut values).unwrap();
                    let at: Vec<Vec<f64>> = r.iter().map(|r| vec![r[voxel]]).collect();
                    let exact = direct(-1.0, &at, &[Complex::new(1.0, 0.0)], &wide_lists(&k));
                    for (m, (value, exact)) in wide(&values).iter().zip(&exact).enumerate() {
                        let error = (value - exact).norm();
                        assert!(
                            error <= 5.0 * tolerance,
                            "{} {dims:?} voxel {voxel} sample {m}: {error:e}, tolerance {tolerance:e}, seed {}",
                            T::NAME,
                            random.seed
                        );
                    }
                }
            }
        }
    }
    check::<f32>(6);
    check::<f64>(12);
}

/// Returns an image and a trajectory. Axes have one voxel, few, or up to 64. Samples are at random positions, at one
/// position, in the centre, at the edges, on a Cartesian grid, on spokes, in a plane, or on lines.
fn random_case<T: Real>(random: &mut Random) -> (Vec<usize>, Vec<Vec<T>>, &'static str) {
    let dims = loop {
        let dims: Vec<usize> = (0..2 + random.below(2))
            .map(|_| match random.below(4) {
                0 => 1,
                1 => 1 + random.below(5),
                _ => 1 + random.below(64),
            })
            .collect();
        if dims.iter().product::<usize>() <= 12_000 {
            break dims;
        }
    };
    let ndim = dims.len();
    let samples = 10f64.powf(3.4 * (random.uniform() + 0.5)) as usize;
    let place: Vec<f64> = (0..ndim).map(|_| random.uniform()).collect();
    let edges = corners::<f64>(ndim);
    let kinds = ["anywhere", "one place", "centre", "edges", "Cartesian", "spokes", "plane", "lines"];
    let kind = kinds[random.below(kinds.len())];
    let mut k = vec![Vec::with_capacity(samples); ndim];
    for m in 0..samples {
        let (turn, radius) = (std::f64::consts::TAU * random.uniform(), (m % 17) as f64 / 34.0);
        let edge = random.below(edges[0].len());
        for (axis, k) in k.iter_mut().enumerate() {
            let (anywhere, n) = (random.uniform(), dims[axis] as f64);
            k.push(T::coordinate(match kind {
                "one place" if m % 10 < 9 => place[axis],
                "centre" => 2.0 * anywhere * random.uniform() / n,
                "edges" => edges[axis][edge],
                "Cartesian" => ((anywhere + 0.5) * n).floor() / n - 0.5,
                "spokes" => radius * [turn.cos(), turn.sin(), (7.0 * turn).sin()][axis],
                "plane" if axis == ndim - 1 => place[axis],
                "lines" if axis > 0 => (m / 50) as f64 / 51.0 - 0.5,
                _ => anywhere,
            }));
        }
    }
    (dims, k, kind)
}

/// Checks several hundred random cases at random tolerances. Messages contain the number of the case and the seed.
fn sweep<T: Real>(cases: usize, smallest: f64) {
    let mut random = Random::fresh();
    println!("{} seed {}", T::NAME, random.seed);
    let (mut worst, mut worst_case) = (0f64, String::new());
    for case in 0..cases {
        let (dims, k, kind) = random_case::<T>(&mut random);
        let tolerance = 10f64.powf(-1.0 - (smallest - 1.0) * (random.uniform() + 0.5));
        let window = [Window::Minimax, Window::Minimax, Window::KaiserBessel, Window::Gaussian][random.below(4)];
        let plan = match Plan::new(&Geometry::new(&dims, &slices(&k)), &nufft(window, tolerance)) {
            Ok(plan) => plan,
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::ToleranceOutOfRange, "{e}");
                assert_eq!(window, Window::Gaussian, "{} refuses {tolerance:e} for {dims:?}: {e}", T::NAME);
                continue;
            }
        };
        let exact = Options { method: Method::Exact, threads: 2, ..Options::default() };
        let wide_k = wide_lists(&k);
        let exact = Plan::new(&Geometry::new(&dims, &slices(&wide_k)), &exact).unwrap();
        let (samples, voxel_count) = (k[0].len(), dims.iter().product());
        let at_random = random.below(3) > 0;
        let mut data = |n| match at_random {
            true => random.complexes::<T>(n),
            false => vec![random.complexes::<T>(1)[0]; n],
        };
        let (d, x) = (data(samples), data(voxel_count));
        let (mut image, mut values) = (poisoned(voxel_count), poisoned(samples));
        let (mut exact_image, mut exact_values) = (poisoned(voxel_count), poisoned(samples));
        plan.adjoint(&d, &mut image).unwrap();
        plan.forward(&x, &mut values).unwrap();
        exact.adjoint(&wide(&d), &mut exact_image).unwrap();
        exact.forward(&wide(&x), &mut exact_values).unwrap();
        let adjoint = fair_distance(&image, &exact_image, &d);
        let forward = fair_distance(&values, &exact_values, &x);
        // Norm that `fair_distance` used, relative to the mean norm for random data.
        let share = |exact: &[_], input: &[_]| (norm(exact) / (norm(input) * (exact.len() as f64).sqrt())).max(1.0);
        let (image_share, values_share) = (share(&exact_image, &d), share(&exact_values, &x));
        for (error, name, [from, to], share) in [
            (adjoint, "adjoint", [samples, voxel_count], image_share),
            (forward, "forward", [voxel_count, samples], values_share),
        ] {
            let info = plan.info();
            let what = format!(
                "{name} {} {window:?} width {} grid {:?} image {dims:?}, {samples} samples {kind}, random data \
                 {at_random}: {:.2} of {tolerance:.2e}, case {case}, seed {}",
                T::NAME,
                info.width,
                info.grid,
                error / tolerance,
                random.seed
            );
            let (error, few) = if !at_random {
                // Errors of equal data may have the same phase where the data themselves cancel. They are compared with
                // the maximum for such data.
                (error / (from as f64).sqrt() * share, 1.0)
            } else if to < 50 || !matches!(kind, "anywhere" | "spokes" | "centre") {
                // Few values, or samples at few positions, do not average.
                (error, 2.0)
            } else {
                (error, 1.0)
            };
            let share_of_bound = error / tolerance / few / excess(window, info.width);
            assert!(share_of_bound <= 1.0, "{share_of_bound:.2} of the bound: {what}");
            if share_of_bound > worst {
                (worst, worst_case) = (share_of_bound, what);
            }
        }
    }
    println!("at worst {worst:.2} of the bound: {worst_case}");
}

#[test]
fn random_cases_keep_the_tolerance_f32() {
    sweep::<f32>(250, 6.0);
}

#[test]
fn random_cases_keep_the_tolerance_f64() {
    sweep::<f64>(250, 12.0);
}

/// Checks tens of thousands of samples in the same cells, as in the centre of a kooshball. Equal values are the worst
/// case: all rounding errors of a sum may then have the same sign.
#[test]
fn tens_of_thousands_of_samples_in_one_place_keep_the_tolerance() {
    let mut random = Random::fresh();
    let share = less_in_emulator(1, 40);
    let of = |trajectory: recon::Trajectory, ndim: usize| -> Vec<Vec<f32>> {
        (0..ndim).map(|axis| trajectory.axis_as(axis)).collect()
    };
    let linear = recon::trajectory::SpokeOrder::Linear;
    let place: Vec<f32> = random.trajectory(3, 1).concat();
    let repeats: Vec<Vec<f32>> = (0..3)
        .map(|axis| (0..less_in_emulator(15, 1) << 12).map(|i| (i >> (4 * axis) & 15) as f32 / 16.0 - 0.5).collect())
        .collect();
    let cells: Vec<Vec<f32>> =
        (0..3).map(|_| (0..200_000 / share).map(|_| (0.15 * random.uniform()) as f32).collect()).collect();
    let cases = [
        ("spokes of a kooshball", vec![20; 3], of(recon::Trajectory::radial3d(40_000 / share, 8).unwrap(), 3)),
        ("spokes in 2D", vec![64; 2], of(recon::Trajectory::radial2d(20_000 / share, 16, linear).unwrap(), 2)),
        ("samples at 0", vec![16; 3], vec![vec![0.0; 300_000 / share]; 3]),
        ("samples somewhere", vec![16; 3], place.iter().map(|&k| vec![k; 100_000 / share]).collect()),
        ("samples in a few cells", vec![20; 3], cells),
        ("repeated Cartesian scans", vec![16; 3], repeats),
    ];
    for (name, dims, k) in cases {
        // Rounding errors of a Cartesian scan repeat along the grid, so a few voxels get all of them, some at the edge.
        let allowed = if name.contains("Cartesian") { excess(Window::default(), 8) } else { 1.0 };
        let (samples, voxel_count) = (k[0].len(), dims.iter().product());
        let exact = Options { method: Method::Exact, threads: 2, ..Options::default() };
        let wide_k = wide_lists(&k);
        let exact = Plan::new(&Geometry::new(&dims, &slices(&wide_k)), &exact).unwrap();
        let value = random.complexes::<f32>(1)[0];
        let noisy = random.complexes::<f32>(samples).iter().map(|noise| value + noise * 0.1).collect();
        for (data, d) in [("equal", vec![value; samples]), ("noisy", noisy), ("random", random.complexes(samples))] {
            let mut right = poisoned(voxel_count);
            exact.adjoint(&wide(&d), &mut right).unwrap();
            for tolerance in [1e-5, 2e-6, 1e-6] {
                let options = nufft(Window::default(), tolerance);
                let plan = Plan::new(&Geometry::new(&dims, &slices(&k)), &options).unwrap();
                let mut image = poisoned(voxel_count);
                plan.adjoint(&d, &mut image).unwrap();
                // Random data at one position may cancel. Then the norm of the image is not a suitable measure.
                let error = match data {
                    "random" => fair_distance(&image, &right, &d),
                    _ => distance(&image, &right),
                };
                let bound = allowed * tolerance;
                assert!(error <= bound, "{name}, {data}: {error:e} > {bound:e}, seed {}", random.seed);
            }
        }
        let x = random.complexes::<f32>(voxel_count);
        let mut right = poisoned(samples);
        exact.forward(&wide(&x), &mut right).unwrap();
        for tolerance in [1e-5, 1e-6] {
            let plan = Plan::new(&Geometry::new(&dims, &slices(&k)), &nufft(Window::default(), tolerance)).unwrap();
            let mut values = poisoned(samples);
            plan.forward(&x, &mut values).unwrap();
            // All samples at one position have the same value. It is one sum over all voxels, without averaging, as for
            // one sample. (A window with equal errors in all voxels has no other reserve.)
            let one_place = k.iter().all(|k| k.iter().all(|&at| at == k[0]));
            let error = fair_distance(&values, &right, &x);
            let bound = if one_place { 2.0 * excess(Window::default(), 8) } else { allowed } * tolerance;
            assert!(error <= bound, "{name}, forward: {error:e} > {bound:e}, seed {}", random.seed);
        }
    }
}

#[test]
fn forward_and_adjoint_are_adjoint() {
    fn check<T: Real>(bound: f64) {
        let mut random = Random::fresh();
        for dims in [&[18usize, 21][..], &[8, 11, 6]] {
            for method in [Method::Nufft, Method::Exact] {
                for with_maps in [false, true] {
                    let scan = Scan::<T>::random(dims, 300, 3, &mut random);
                    let options = Options { method, tolerance: 1e-3, threads: 2, ..Options::default() };
                    let plan = scan.plan(with_maps, &options);
                    let x = random.complexes::<T>(plan.image_len());
                    let y = random.complexes::<T>(plan.kspace_len());
                    let (mut ex, mut ey) = (poisoned(y.len()), poisoned(x.len()));
                    plan.forward(&x, &mut ex).unwrap();
                    plan.adjoint(&y, &mut ey).unwrap();
                    let difference = (inner(&ex, &y) - inner(&x, &ey)).norm() / (norm(&ex) * norm(&y));
                    assert!(difference < bound, "{} {dims:?} {method:?}: {difference:e}", T::NAME);
                }
            }
        }
    }
    // Within rounding errors, for all tolerances.
    check::<f32>(1e-6);
    check::<f64>(1e-14);
}

#[test]
fn coils_maps_weights_basis_and_frames_follow_the_model() {
    let mut random = Random::fresh();
    for dims in [&[11usize, 14][..], &[6, 5, 7]] {
        for with_maps in [false, true] {
            let scan = Scan::<f64>::random(dims, 200, 3, &mut random);
            let options = Options { tolerance: 1e-11, threads: 1, ..Options::default() };
            let plan = scan.plan(with_maps, &options);
            let voxel_count: usize = dims.iter().product();
            let images = if with_maps { 1 } else { 3 };
            assert_eq!(plan.image_len(), 2 * images * voxel_count);
            assert_eq!(plan.kspace_len(), 2 * 3 * 200);
            let x = random.complexes::<f64>(plan.image_len());
            let d = random.complexes::<f64>(plan.kspace_len());
            let (phi, r) = (scan.phi(), voxels(dims));
            let (mut forward, mut adjoint, mut normal) = (Vec::new(), Vec::new(), Vec::new());
            for frame in 0..2 {
                let mut combined = [vec![Complex::default(); voxel_count], vec![Complex::default(); voxel_count]];
                for coil in 0..3 {
                    let map = &scan.maps[coil * voxel_count..][..voxel_count];
                    let image = match with_maps {
                        true => &x[frame * voxel_count..][..voxel_count],
                        false => &x[(frame * 3 + coil) * voxel_count..][..voxel_count],
                    };
                    let of_coil: Vec<_> = match with_maps {
                        true => image.iter().zip(map).map(|(x, s)| x * s).collect(),
                        false => image.to_vec(),
                    };
                    let mut s = direct(-1.0, &r, &of_coil, &scan.k);
                    s.iter_mut().zip(&phi).for_each(|(s, p)| *s *= p);
                    let back = |values: Vec<Complex<f64>>| direct(1.0, &scan.k, &values, &r);
                    let data = &d[(frame * 3 + coil) * 200..][..200];
                    let of_data = back(data.iter().zip(&phi).map(|(d, p)| d * p).collect());
                    let weigh = |(m, s): (usize, &Complex<f64>)| s * phi[m] * scan.weights[m];
                    let of_forward = back(s.iter().enumerate().map(weigh).collect());
                    forward.extend(s);
                    for (combined, of) in combined.iter_mut().zip([&of_data, &of_forward]) {
                        for i in 0..voxel_count {
                            combined[i] += map[i].conj() * of[i];
                        }
                    }
                    if !with_maps {
                        adjoint.extend(of_data);
                        normal.extend(of_forward);
                    }
                }
                if with_maps {
                    adjoint.extend(&combined[0]);
                    normal.extend(&combined[1]);
                }
            }
            let (mut s, mut y, mut n) = (poisoned(d.len()), poisoned(x.len()), poisoned(x.len()));
            plan.forward(&x, &mut s).unwrap();
            plan.adjoint(&d, &mut y).unwrap();
            assert!(distance(&s, &forward) < 1e-10);
            assert!(distance(&y, &adjoint) < 1e-10);
            for way in [Normal::Toeplitz, Normal::Transforms] {
                n.fill(Complex::new(f64::NAN, f64::NAN));
                scan.plan(with_maps, &Options { normal: way, ..options.clone() }).normal(&x, &mut n).unwrap();
                assert!(distance(&n, &normal) < 1e-10, "{way:?} {dims:?} maps {with_maps}");
            }
        }
    }
}

/// Runs the tests at all levels of the vector unit, not only at this machine's best one.
#[test]
fn every_level_of_the_vector_unit_passes() {
    again_at_other_levels();
}
