//! Every transform against the direct sums in double precision, on fresh random input, outputs poisoned beforehand.

mod common;

use common::*;
use recon::backend::cpu::{simd::SimdReal, Cpu};
use recon::backend::Backend;
use recon::nufft::choice::{choices, Choice};
use recon::nufft::Nufft;
use recon::{Complex, ErrorKind, Geometry, Method, Normal, Options, Plan, Real, Simd, VoxelBasis, Window};

/// Relative errors of adjoint and forward.
fn errors<T: Real>(k: &[Vec<T>], dims: &[usize], options: &Options, random: &mut Random) -> recon::Result<[f64; 2]> {
    let (samples, voxel_count) = (k[0].len(), dims.iter().product());
    let plan = Plan::new(&Geometry::new(dims, &slices(k)), options)?;
    let (d, x) = (random.complexes::<T>(samples), random.complexes::<T>(voxel_count));
    let (mut image, mut values) = (poisoned(voxel_count), poisoned(samples));
    plan.fhd(&d, &mut image)?;
    plan.forward(&x, &mut values)?;
    let (k, r) = (wide_lists(k), voxels(dims));
    Ok([distance(&image, &direct(1.0, &k, &wide(&d), &r)), distance(&values, &direct(-1.0, &r, &wide(&x), &k))])
}

const SIZES: [&[usize]; 6] = [&[24, 24], &[31, 17], &[9, 40], &[12, 12, 12], &[7, 15, 10], &[16, 5, 9]];

fn nufft(window: Window, tolerance: f64) -> Options {
    Options { method: Method::Nufft, window, tolerance, threads: 2, ..Options::default() }
}

fn survey<T: Real>(window: Window, smallest: i32) {
    let mut random = Random::fresh();
    for dims in SIZES {
        for exponent in 1..=smallest {
            let tolerance = 10f64.powi(-exponent);
            let k = random.trajectory::<T>(dims.len(), 700);
            match errors(&k, dims, &nufft(window, tolerance), &mut random) {
                Ok(errors) => {
                    for (error, name) in errors.into_iter().zip(["adjoint", "forward"]) {
                        assert!(
                            error <= tolerance,
                            "{name} {} {window:?} {dims:?}: {error:e} > {tolerance:e}, seed {}",
                            T::NAME,
                            random.seed
                        );
                    }
                }
                // Only windows other than the default may be out of reach, and they say what they reach.
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::ToleranceOutOfRange);
                    let reach = match window {
                        Window::KaiserBessel => 0.0,
                        Window::Gaussian => 1e-5,
                        Window::Bilinear => 0.3,
                    };
                    assert!(tolerance < reach, "{window:?} refuses {tolerance:e} for {dims:?}: {e}");
                }
            }
        }
    }
}

#[test]
fn kaiser_bessel_keeps_the_tolerance_f32() {
    survey::<f32>(Window::KaiserBessel, 6);
}
#[test]
fn kaiser_bessel_keeps_the_tolerance_f64() {
    survey::<f64>(Window::KaiserBessel, 12);
}
#[test]
fn gaussian_keeps_the_tolerance_f32() {
    survey::<f32>(Window::Gaussian, 6);
}
#[test]
fn gaussian_keeps_the_tolerance_f64() {
    survey::<f64>(Window::Gaussian, 12);
}
#[test]
fn bilinear_keeps_the_tolerance() {
    survey::<f32>(Window::Bilinear, 2);
    let mut random = Random::fresh();
    for dims in SIZES {
        let k = random.trajectory::<f64>(dims.len(), 500);
        for tolerance in [0.5, 0.3] {
            for error in errors(&k, dims, &nufft(Window::Bilinear, tolerance), &mut random).unwrap() {
                assert!(error <= tolerance, "{dims:?}: {error} > {tolerance}, seed {}", random.seed);
            }
        }
    }
}

#[test]
fn the_default_tolerance_is_1e_5_or_the_windows_best() {
    let mut random = Random::fresh();
    let k = random.trajectory::<f32>(2, 500);
    for (window, bound) in [(Window::KaiserBessel, 1e-5), (Window::Gaussian, 1e-5), (Window::Bilinear, 0.25)] {
        for error in errors(&k, &[30, 20], &nufft(window, 0.0), &mut random).unwrap() {
            assert!(error <= bound, "{window:?}: {error}, seed {}", random.seed);
        }
    }
}

/// Larger images, where single precision has more to lose.
#[test]
fn larger_images_keep_the_tolerance() {
    let mut random = Random::fresh();
    for dims in [&[300usize, 4][..], &[512, 8], &[96, 97], &[64, 10, 6], &[4096, 2]] {
        for tolerance in [1e-3, 1e-6] {
            let k = random.trajectory::<f32>(dims.len(), 400);
            for error in errors(&k, dims, &nufft(Window::KaiserBessel, tolerance), &mut random).unwrap() {
                assert!(error <= tolerance, "{dims:?}: {error:e} > {tolerance:e}, seed {}", random.seed);
            }
        }
    }
}

/// Where thousands of samples meet, in the centre of radial scans, rounding errors add up.
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
        exact.fhd(&wide(&d), &mut image).unwrap();
        exact.forward(&wide(&x), &mut values).unwrap();
        for &tolerance in tolerances {
            let plan = Plan::new(&Geometry::new(dims, &slices(&k)), &nufft(Window::KaiserBessel, tolerance)).unwrap();
            let (mut own_image, mut own_values) = (poisoned(voxel_count), poisoned(samples));
            plan.fhd(&d, &mut own_image).unwrap();
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

#[test]
fn samples_at_the_edges_of_k_space() {
    fn check<T: Real>() {
        let mut random = Random::fresh();
        for dims in [&[20usize, 13][..], &[9, 8, 11]] {
            let k = corners::<T>(dims.len());
            for tolerance in [1e-2, 1e-5] {
                for error in errors(&k, dims, &nufft(Window::KaiserBessel, tolerance), &mut random).unwrap() {
                    // So few positions are no average over positions: the worst of them may decide.
                    assert!(error <= 2.0 * tolerance, "{dims:?}: {error:e} > {tolerance:e}, seed {}", random.seed);
                }
            }
        }
    }
    check::<f32>();
    check::<f64>();
}

/// What is promised of one sample and one voxel: no entry of E, all of which have size 1, errs by more than five
/// times a tolerance of 1e-2 or less, wherever the sample is. Voxels are those in the image's corners, where errors are
/// largest, and some others.
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
                let plan =
                    Plan::new(&Geometry::new(dims, &slices(&k)), &nufft(Window::KaiserBessel, tolerance)).unwrap();
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

/// Every combination of coordinates at and beside the edges of k-space.
fn corners<T: Real>(ndim: usize) -> Vec<Vec<T>> {
    let edge = [T::of(-0.5), T::below_half(), T::ZERO, T::of(-0.5 + 1e-5), T::of(f64::MIN_POSITIVE)];
    let count = edge.len().pow(ndim as u32);
    (0..ndim).map(|axis| (0..count).map(|i| edge[i / edge.len().pow(axis as u32) % edge.len()]).collect()).collect()
}

/// The errors of adjoint and forward with this window and grid, relative to the norms that results have on average.
fn errors_of_choice<T: SimdReal>(k: &[Vec<T>], dims: &[usize], choice: Choice, random: &mut Random) -> [f64; 2] {
    let cpu = Cpu::new(1, Simd::Auto).unwrap();
    let nufft = Nufft::new(&cpu, &slices(k), dims, choice, 1).unwrap();
    let (samples, voxel_count) = (k[0].len(), dims.iter().product());
    let (d, x) = (random.complexes::<T>(samples), random.complexes::<T>(voxel_count));
    let (mut image, mut values) = (poisoned(voxel_count), poisoned(samples));
    let (from, mut to) = (&d[..], &mut image[..]);
    nufft.adjoint(&cpu, Backend::<T>::read(&cpu, &from), Backend::<T>::write(&cpu, &mut to)).unwrap();
    let (from, mut to) = (&x[..], &mut values[..]);
    nufft.forward(&cpu, Backend::<T>::read(&cpu, &from), Backend::<T>::write(&cpu, &mut to)).unwrap();
    let (k, r) = (wide_lists(k), voxels(dims));
    [
        fair_distance(&image, &direct(1.0, &k, &wide(&d), &r), &d),
        fair_distance(&values, &direct(-1.0, &r, &wide(&x), &k), &x),
    ]
}

/// By what an error may pass the tolerance where all samples lie on few positions between the grid's cells. The window
/// of usual tolerances leaves one alias that counts, which errs nearly the same at every position; the transforms of
/// narrower windows and of others have several, whose mean over positions is what is planned.
fn excess(window: Window, width: usize) -> f64 {
    match width {
        4.. if window == Window::KaiserBessel => 1.5,
        _ => 3.0,
    }
}

/// Every width and oversampling that some tolerance asks for, with so few samples that no error is an average.
#[test]
fn every_width_and_oversampling_keeps_the_tolerance_with_few_samples() {
    fn check<T: SimdReal>(window: Window, smallest: f64, all_widths: std::ops::RangeInclusive<usize>) {
        let mut random = Random::fresh();
        let sizes: [&[usize]; 10] = [
            &[24, 3],
            &[40, 1],
            &[5, 31],
            &[2, 2],
            &[64, 1],
            &[9, 8, 3],
            &[1, 20, 1],
            &[6, 1, 7],
            &[1, 1, 1],
            &[4, 1, 1],
        ];
        let (mut met, mut worst) = (std::collections::BTreeSet::new(), 0f64);
        for step in 0..(smallest / 0.11) as usize {
            let tolerance = 10f64.powf(-0.11 * (step + 5) as f64);
            let dims = sizes[random.below(sizes.len())];
            for choice in choices(window, dims, tolerance, T::EPSILON) {
                let samples = [1, 2, 7][random.below(3)];
                let mut k = random.trajectory::<T>(dims.len(), samples);
                let in_corners = random.below(3) == 0;
                if in_corners {
                    let corners = corners::<T>(dims.len());
                    for m in 0..samples {
                        let corner = random.below(corners[0].len());
                        k.iter_mut().zip(&corners).for_each(|(k, corners)| k[m] = corners[corner]);
                    }
                }
                met.insert(choice.shape.width());
                let bound = excess(window, choice.shape.width()) * tolerance;
                let bounds = [bound, 1.5 * bound];
                let what = format!(
                    "{} {window:?} width {} grid {:?} {dims:?}, {samples} samples, in corners {in_corners}, seed {}",
                    T::NAME,
                    choice.shape.width(),
                    choice.grid,
                    random.seed
                );
                // Of so few values, each a sum over voxels, there is no mean.
                let errors = errors_of_choice(&k, dims, choice, &mut random);
                for ((error, bound), name) in errors.into_iter().zip(bounds).zip(["adjoint", "forward"]) {
                    worst = worst.max(error / bound);
                    assert!(error <= bound, "{name} {what}: {error:e}, tolerance {tolerance:e}");
                }
            }
        }
        println!("{} {window:?}: widths {met:?}, at worst {worst:.2} of the bound, seed {}", T::NAME, random.seed);
        assert!(all_widths.clone().all(|width| met.contains(&width)), "{window:?}: only widths {met:?}");
    }
    check::<f64>(Window::KaiserBessel, 13.0, 2..=16);
    check::<f32>(Window::KaiserBessel, 6.2, 3..=9);
    check::<f64>(Window::Gaussian, 6.5, 4..=16);
    check::<f32>(Window::Gaussian, 6.2, 4..=10);
}

/// An image and a trajectory: axes of one voxel, of few, and of up to 64; samples anywhere, in one place, in the
/// centre, at the edges, on a Cartesian grid, on spokes, in a plane, on lines.
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

/// The distance of a result from the exact one, relative to the exact one's norm; but where that is small by chance
/// (numbers are few, or all of one place), to the norm that results of random data have on average.
fn fair_distance<T: Real>(result: &[Complex<T>], exact: &[Complex<f64>], input: &[Complex<T>]) -> f64 {
    let error = norm(&wide(result).iter().zip(exact).map(|(r, e)| r - e).collect::<Vec<_>>());
    let average = norm(input) * (result.len() as f64).sqrt();
    error / norm(exact).max(average)
}

/// Several hundred cases of every kind at tolerances of every size, a case's number and the seed in the message.
fn sweep<T: Real>(cases: usize, smallest: f64) {
    let mut random = Random::fresh();
    println!("{} seed {}", T::NAME, random.seed);
    let mut worst = 0f64;
    for case in 0..cases {
        let (dims, k, kind) = random_case::<T>(&mut random);
        let tolerance = 10f64.powf(-1.0 - (smallest - 1.0) * (random.uniform() + 0.5));
        let window =
            [Window::KaiserBessel, Window::KaiserBessel, Window::KaiserBessel, Window::Gaussian][random.below(4)];
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
        plan.fhd(&d, &mut image).unwrap();
        plan.forward(&x, &mut values).unwrap();
        exact.fhd(&wide(&d), &mut exact_image).unwrap();
        exact.forward(&wide(&x), &mut exact_values).unwrap();
        let adjoint = fair_distance(&image, &exact_image, &d);
        let forward = fair_distance(&values, &exact_values, &x);
        for (error, name) in [(adjoint, "adjoint"), (forward, "forward")] {
            let info = plan.info();
            let what = format!(
                "{name} {} {window:?} width {} grid {:?} image {dims:?}, {samples} samples {kind}, random data {at_random}: \
                 {:.2} of {tolerance:.2e}, case {case}, seed {}",
                T::NAME,
                info.width,
                info.grid,
                error / tolerance,
                random.seed
            );
            // Of few values, each a sum over all voxels, there is no mean, and errors of equal voxels may have one phase.
            let few = if name == "forward" && samples < 50 { 2.0 } else { 1.0 };
            worst = worst.max(error / tolerance / few / excess(window, info.width));
            assert!(error <= few * excess(window, info.width) * tolerance, "{what}");
        }
    }
    println!("{}: at worst {worst:.2} of the bound, seed {}", T::NAME, random.seed);
}

#[test]
fn random_cases_keep_the_tolerance_f32() {
    sweep::<f32>(250, 6.0);
}
#[test]
fn random_cases_keep_the_tolerance_f64() {
    sweep::<f64>(250, 12.0);
}

/// Tens of thousands of samples that add to the same cells, as in the centre of a kooshball. Equal values are the
/// worst: all roundings of a sum may then have one sign.
#[test]
fn tens_of_thousands_of_samples_in_one_place_keep_the_tolerance() {
    let mut random = Random::fresh();
    let of = |trajectory: recon::Trajectory, ndim: usize| -> Vec<Vec<f32>> {
        (0..ndim).map(|axis| trajectory.axis_as(axis)).collect()
    };
    let linear = recon::trajectory::SpokeOrder::Linear;
    let place: Vec<f32> = random.trajectory(3, 1).concat();
    let repeats: Vec<Vec<f32>> =
        (0..3).map(|axis| (0..15 << 12).map(|i| (i >> (4 * axis) & 15) as f32 / 16.0 - 0.5).collect()).collect();
    let cells: Vec<Vec<f32>> =
        (0..3).map(|_| (0..200_000).map(|_| (0.15 * random.uniform()) as f32).collect()).collect();
    let cases = [
        ("40,000 spokes of a kooshball", vec![20; 3], of(recon::Trajectory::radial3d(40_000, 8).unwrap(), 3)),
        ("20,000 spokes in 2D", vec![64; 2], of(recon::Trajectory::radial2d(20_000, 16, linear).unwrap(), 2)),
        ("300,000 samples at 0", vec![16; 3], vec![vec![0.0; 300_000]; 3]),
        ("100,000 samples somewhere", vec![16; 3], place.iter().map(|&k| vec![k; 100_000]).collect()),
        ("200,000 samples in a few cells", vec![20; 3], cells),
        ("a Cartesian scan 15 times", vec![16; 3], repeats),
    ];
    for (name, dims, k) in cases {
        // The roundings of a Cartesian scan repeat along the grid: they all go to a few voxels, some of them at the
        // edge.
        let allowed = if name.contains("Cartesian") { excess(Window::KaiserBessel, 8) } else { 1.0 };
        let (samples, voxel_count) = (k[0].len(), dims.iter().product());
        let exact = Options { method: Method::Exact, threads: 2, ..Options::default() };
        let wide_k = wide_lists(&k);
        let exact = Plan::new(&Geometry::new(&dims, &slices(&wide_k)), &exact).unwrap();
        let value = random.complexes::<f32>(1)[0];
        let noisy = random.complexes::<f32>(samples).iter().map(|noise| value + noise * 0.1).collect();
        for (data, d) in [("equal", vec![value; samples]), ("noisy", noisy), ("random", random.complexes(samples))] {
            let mut right = poisoned(voxel_count);
            exact.fhd(&wide(&d), &mut right).unwrap();
            for tolerance in [1e-5, 2e-6, 1e-6] {
                let options = nufft(Window::KaiserBessel, tolerance);
                let plan = Plan::new(&Geometry::new(&dims, &slices(&k)), &options).unwrap();
                let mut image = poisoned(voxel_count);
                plan.fhd(&d, &mut image).unwrap();
                // Random data in one place may cancel: then what is left of the image is no measure.
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
            let plan = Plan::new(&Geometry::new(&dims, &slices(&k)), &nufft(Window::KaiserBessel, tolerance)).unwrap();
            let mut values = poisoned(samples);
            plan.forward(&x, &mut values).unwrap();
            // All samples at one place are one number.
            let error = fair_distance(&values, &right, &x);
            let bound = allowed * tolerance;
            assert!(error <= bound, "{name}, forward: {error:e} > {bound:e}, seed {}", random.seed);
        }
    }
}

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
            // Anywhere within a field of view of 256 voxels, not on its grid.
            let r: Vec<Vec<T>> =
                (0..ndim).map(|_| (0..301).map(|_| T::of(256.0 * random.uniform())).collect()).collect();
            let mut geometry = Geometry::new(&vec![256; ndim], &slices(&k));
            geometry.voxels = Some(slices(&r));
            let plan = Plan::new(&geometry, &Options { threads: 2, ..Options::default() }).unwrap();
            let (d, x) = (random.complexes::<T>(777), random.complexes::<T>(301));
            let (mut image, mut values, mut q) = (poisoned(301), poisoned(777), poisoned(301));
            plan.fhd(&d, &mut image).unwrap();
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

/// A scan with everything: coils, maps, weights, box voxels, frames.
struct Scan<T> {
    dims: Vec<usize>,
    k: Vec<Vec<T>>,
    weights: Vec<T>,
    maps: Vec<Complex<T>>,
    coils: usize,
}

impl<T: Real> Scan<T> {
    fn random(dims: &[usize], samples: usize, coils: usize, random: &mut Random) -> Self {
        let voxels: usize = dims.iter().product();
        Scan {
            dims: dims.to_vec(),
            k: random.trajectory(dims.len(), samples),
            weights: (0..samples).map(|_| T::of(random.uniform() + 0.6)).collect(),
            maps: random.complexes(voxels * coils),
            coils,
        }
    }

    fn plan(&self, with_maps: bool, options: &Options) -> Plan<T> {
        let k = slices(&self.k);
        let mut geometry = Geometry::new(&self.dims, &k).weights(&self.weights).coils(self.coils);
        geometry.frames = 2;
        geometry.basis = VoxelBasis::Box;
        if with_maps {
            geometry = geometry.coil_maps(&self.maps);
        }
        Plan::new(&geometry, options).unwrap()
    }

    /// phi of each sample.
    fn phi(&self) -> Vec<f64> {
        let sinc = |k: f64| if k == 0.0 { 1.0 } else { (std::f64::consts::PI * k).sin() / (std::f64::consts::PI * k) };
        (0..self.k[0].len()).map(|m| self.k.iter().map(|k| sinc(k[m].wide())).product()).collect()
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
                    plan.fhd(&y, &mut ey).unwrap();
                    let difference = (inner(&ex, &y) - inner(&x, &ey)).norm() / (norm(&ex) * norm(&y));
                    assert!(difference < bound, "{} {dims:?} {method:?}: {difference:e}", T::NAME);
                }
            }
        }
    }
    // To rounding, whatever the tolerance.
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
            plan.fhd(&d, &mut y).unwrap();
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

#[test]
fn q_is_the_explicit_sum() {
    fn check<T: Real>(method: Method, tolerance: f64, bound: f64) {
        let mut random = Random::fresh();
        for dims in [&[9usize, 12][..], &[5, 4, 7]] {
            let scan = Scan::<T>::random(dims, 400, 1, &mut random);
            let plan = scan.plan(false, &Options { method, tolerance, threads: 2, ..Options::default() });
            let twice: Vec<usize> = dims.iter().map(|n| 2 * n).collect();
            let mut q = poisoned::<T>(plan.q_len());
            plan.q(&mut q).unwrap();
            let values: Vec<_> =
                scan.phi().iter().zip(&scan.weights).map(|(p, w)| Complex::new(p * p * w.wide(), 0.0)).collect();
            let exact = direct(1.0, &wide_lists(&scan.k), &values, &voxels(&twice));
            let error = distance(&q, &exact);
            assert!(error <= bound, "{} {method:?} {dims:?}: {error:e}, seed {}", T::NAME, random.seed);
        }
    }
    check::<f64>(Method::Exact, 0.0, 1e-13);
    check::<f32>(Method::Exact, 0.0, 1e-6);
    check::<f64>(Method::Nufft, 1e-9, 1e-9);
    check::<f32>(Method::Nufft, 1e-4, 1e-4);
}

#[test]
fn toeplitz_is_forward_and_adjoint_exactly() {
    fn check<T: Real>(bound: f64) {
        let mut random = Random::fresh();
        for dims in [&[15usize, 8][..], &[6, 9, 5]] {
            let scan = Scan::<T>::random(dims, 250, 2, &mut random);
            let options = Options { method: Method::Exact, threads: 2, ..Options::default() };
            let x = random.complexes::<T>(2 * dims.iter().product::<usize>());
            let of = |normal| {
                let mut y = poisoned::<T>(x.len());
                scan.plan(true, &Options { normal, ..options.clone() }).normal(&x, &mut y).unwrap();
                y
            };
            let error = distance(&of(Normal::Toeplitz), &wide(&of(Normal::Transforms)));
            assert!(error < bound, "{} {dims:?}: {error:e}, seed {}", T::NAME, random.seed);
        }
    }
    check::<f32>(1e-6);
    check::<f64>(1e-14);
}

/// Every copy of the arithmetic must keep the tolerances, not only the one for this machine's best vector unit.
#[test]
fn every_level_of_the_vector_unit_passes() {
    again_at_other_levels("every_level_of_the_vector_unit_passes");
}
