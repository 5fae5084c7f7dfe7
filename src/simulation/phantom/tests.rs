//! Tests of phantoms, coils and noise.

use super::kspace::{ball, disc};
use super::shapes::{apply, dot, to_unit_sphere};
use super::{add_noise, CoilModel, Ellipsoid, Phantom};
use crate::base::error::ErrorKind;
use crate::base::random::SplitMix64;
use num_complex::Complex;
use std::f64::consts::{PI, TAU};
use std::hash::{BuildHasher, RandomState};

/// Returns a generator with a seed that no earlier run has used, and the seed, for the message of a failure.
fn fresh() -> (SplitMix64, u64) {
    let seed = RandomState::new().hash_one(0);
    (SplitMix64(seed), seed)
}

fn uniform(random: &mut SplitMix64, low: f64, high: f64) -> f64 {
    low + (high - low) * random.uniform()
}

fn random_k(random: &mut SplitMix64, ndim: usize, samples: usize, reach: f64) -> Vec<Vec<f64>> {
    (0..ndim).map(|_| (0..samples).map(|_| uniform(random, -reach, reach)).collect()).collect()
}

fn slices(k: &[Vec<f64>]) -> Vec<&[f64]> {
    k.iter().map(Vec::as_slice).collect()
}

/// Returns a single shape at a random position in the inner field of view, turned at random.
fn random_shape(random: &mut SplitMix64, ndim: usize) -> Phantom {
    let mut shape = Ellipsoid {
        density: uniform(random, 0.5, 2.0),
        centre: std::array::from_fn(|_| uniform(random, -0.3, 0.3)),
        semi_axes: std::array::from_fn(|_| uniform(random, 0.15, 0.6)),
        angles: std::array::from_fn(|_| uniform(random, -PI, PI)),
    };
    if ndim == 2 {
        (shape.centre[2], shape.angles[1], shape.angles[2]) = (0.0, 0.0, 0.0);
    }
    Phantom::new(ndim, vec![shape]).unwrap()
}

/// Returns sums by the midpoint rule on a grid `fine` times denser than `dims`, for each column of the integrand.
fn midpoint_sum(integrand: &[Complex<f64>], dims: &[usize], fine: usize, k: &[Vec<f64>]) -> Vec<Complex<f64>> {
    let fine_dims: Vec<usize> = dims.iter().map(|n| n * fine).collect();
    let volume = (fine as f64).powi(dims.len() as i32);
    (0..k[0].len())
        .map(|m| {
            let wave = |axis: usize| -> Vec<Complex<f64>> {
                let Some(&n) = fine_dims.get(axis) else { return vec![Complex::new(1.0, 0.0)] };
                let r = |i: usize| (i as f64 - (n / 2) as f64) / fine as f64;
                (0..n).map(|i| Complex::cis(-TAU * k[axis][m] * r(i))).collect()
            };
            let (x, y, z) = (wave(0), wave(1), wave(2));
            let line = |(row, line): (usize, &[Complex<f64>])| {
                let sum: Complex<f64> = line.iter().zip(&x).map(|(v, x)| v * x).sum();
                sum * y[row % y.len()] * z[row / y.len()]
            };
            integrand.chunks_exact(x.len()).enumerate().map(line).sum::<Complex<f64>>() / volume
        })
        .collect()
}

fn relative_error(a: &[Complex<f64>], b: &[Complex<f64>]) -> f64 {
    let error: f64 = a.iter().zip(b).map(|(a, b)| (a - b).norm_sqr()).sum();
    (error / b.iter().map(|b| b.norm_sqr()).sum::<f64>()).sqrt()
}

#[test]
fn disc_matches_the_integral_of_bessel() {
    // J1(u) = 1 / pi * integral from 0 to pi of cos(t - u sin t): the midpoint rule converges geometrically.
    let (mut random, seed) = fresh();
    for _ in 0..200 {
        let u = uniform(&mut random, 0.0, 20.0).exp2().min(2000.0);
        let n = 2000 + u as usize;
        let t = |i: usize| PI * (i as f64 + 0.5) / n as f64;
        let j1 = (0..n).map(|i| (t(i) - u * t(i).sin()).cos()).sum::<f64>() / n as f64;
        assert!((disc(u) - 2.0 * j1 / u).abs() < 1e-13, "u {u} seed {seed}");
    }
    assert_eq!((disc(0.0), disc(1e-300)), (1.0, 1.0));
    assert!((disc(1e-3) - (1.0 - 1e-6 / 8.0 + 1e-12 / 192.0)).abs() < 1e-15);
    // The first zero of J1, and Abramowitz and Stegun's J1(1).
    assert!(disc(3.831_705_970_207_512).abs() < 1e-15);
    assert!((disc(1.0) - 2.0 * 0.440_050_585_744_933_5).abs() < 1e-15);
}

#[test]
fn ball_is_smooth_across_its_two_formulas() {
    assert_eq!(ball(0.0), 1.0);
    assert!((ball(1e-3) - (1.0 - 1e-7 + 1e-12 / 280.0)).abs() < 1e-15);
    for u in [0.9, 1.0, 1.0 + 1e-12, 1.1, 4.0] {
        let (sin, cos) = f64::sin_cos(u);
        assert!((ball(u) - 3.0 * (sin - u * cos) / (u * u * u)).abs() < 2e-15, "{u}");
    }
    // tan u = u.
    assert!(ball(4.493_409_457_909_064).abs() < 1e-15);
}

#[test]
fn the_centre_of_kspace_is_the_sum_of_density() {
    for (phantom, dims) in [(Phantom::shepp_logan_2d(), vec![40, 30]), (Phantom::shepp_logan_3d(), vec![24, 20, 31])] {
        let ndim = phantom.ndim();
        let zero = vec![vec![0.0]; ndim];
        let measured = phantom.kspace(&dims, &slices(&zero), None, 1).unwrap()[0];
        let voxels: f64 = dims.iter().map(|&n| n as f64 / 2.0).product();
        let unit = if ndim == 2 { PI } else { 4.0 / 3.0 * PI };
        let sum: f64 = phantom
            .shapes()
            .iter()
            .map(|s| s.density * unit * voxels * s.semi_axes[..ndim].iter().product::<f64>())
            .sum();
        assert!((measured.re - sum).abs() < 1e-11 * sum && measured.im.abs() < 1e-11 * sum);
        let image: f64 = phantom.image(&dims, 4).unwrap().iter().sum();
        assert!((image / sum - 1.0).abs() < 2e-3, "{ndim}D: {image} {sum}");
    }
}

#[test]
fn kspace_is_the_integral_of_the_image() {
    let (mut random, seed) = fresh();
    for (ndim, dims, grids, bound) in [(2, vec![20, 16], [3, 32], 3e-3), (3, vec![12, 10, 9], [2, 12], 1e-2)] {
        for trial in 0..3 {
            let phantom = random_shape(&mut random, ndim);
            let k = random_k(&mut random, ndim, 20, 0.15);
            let exact = phantom.kspace(&dims, &slices(&k), None, 1).unwrap();
            let errors = grids.map(|fine| {
                let fine_dims: Vec<usize> = dims.iter().map(|n| n * fine).collect();
                let image = phantom.image(&fine_dims, 1).unwrap();
                let image: Vec<_> = image.into_iter().map(|v| Complex::new(v, 0.0)).collect();
                relative_error(&midpoint_sum(&image, &dims, fine, &k), &exact)
            });
            let place = format!("{ndim}D trial {trial} seed {seed}: {errors:?} {phantom:?}");
            assert!(errors[1] < bound && errors[1] < 0.5 * errors[0], "{place}");
        }
    }
}

#[test]
fn coil_kspace_is_the_integral_of_image_times_map() {
    let (mut random, seed) = fresh();
    for (ndim, dims, grids, bound) in [(2, vec![20, 16], [3, 32], 3e-3), (3, vec![10, 8, 9], [2, 10], 1.5e-2)] {
        let phantom = random_shape(&mut random, ndim);
        let coils = CoilModel::ring(3, ndim).unwrap();
        let k = random_k(&mut random, ndim, 20, 0.1);
        let exact = phantom.kspace(&dims, &slices(&k), Some(&coils), 2).unwrap();
        let errors = grids.map(|fine| {
            let fine_dims: Vec<usize> = dims.iter().map(|n| n * fine).collect();
            let image = phantom.image(&fine_dims, 1).unwrap();
            let maps = coils.maps(&fine_dims).unwrap();
            let sums: Vec<_> = maps
                .chunks_exact(image.len())
                .flat_map(|map| {
                    let product: Vec<_> = map.iter().zip(&image).map(|(s, x)| s * x).collect();
                    midpoint_sum(&product, &dims, fine, &k)
                })
                .collect();
            relative_error(&sums, &exact)
        });
        assert!(errors[1] < bound && errors[1] < 0.5 * errors[0], "{ndim}D seed {seed}: {errors:?} {phantom:?}");
    }
}

#[test]
fn real_objects_have_conjugate_symmetric_kspace() {
    let (mut random, seed) = fresh();
    for (phantom, dims) in [(Phantom::shepp_logan_2d(), vec![64, 48]), (Phantom::shepp_logan_3d(), vec![32; 3])] {
        let k = random_k(&mut random, phantom.ndim(), 100, 0.5);
        let minus: Vec<Vec<f64>> = k.iter().map(|k| k.iter().map(|k| -k).collect()).collect();
        let s = phantom.kspace(&dims, &slices(&k), None, 1).unwrap();
        let t = phantom.kspace(&dims, &slices(&minus), None, 1).unwrap();
        let t: Vec<_> = t.iter().map(Complex::conj).collect();
        assert!(relative_error(&s, &t) < 1e-14, "seed {seed}");
    }
}

#[test]
fn threads_do_not_change_a_bit() {
    let (mut random, seed) = fresh();
    let k = random_k(&mut random, 2, 9000, 0.5);
    let (phantom, coils) = (Phantom::shepp_logan_2d(), CoilModel::ring(3, 2).unwrap());
    let one = phantom.kspace(&[32, 32], &slices(&k), Some(&coils), 1).unwrap();
    for threads in [0, 2, 3, 100] {
        let many = phantom.kspace(&[32, 32], &slices(&k), Some(&coils), threads).unwrap();
        assert!(one == many, "{threads} threads, seed {seed}");
    }
}

#[test]
fn images_are_densities_at_points_or_their_means() {
    let (mut random, seed) = fresh();
    // Against the definition, point by point.
    let inside = |phantom: &Phantom, p: [f64; 3]| -> f64 {
        let term = |s: &Ellipsoid| {
            let v =
                apply(&to_unit_sphere(s, phantom.ndim), &[p[0] - s.centre[0], p[1] - s.centre[1], p[2] - s.centre[2]]);
            if dot(&v, &v) <= 1.0 {
                s.density
            } else {
                0.0
            }
        };
        phantom.shapes.iter().map(term).sum()
    };
    let mut phantoms = vec![(Phantom::shepp_logan_2d(), [37, 30, 1]), (Phantom::shepp_logan_3d(), [15, 16, 13])];
    phantoms.extend((0..5).map(|_| (random_shape(&mut random, 3), [11, 12, 9])));
    for (phantom, n) in phantoms {
        let dims = &n[..phantom.ndim];
        for fine in [1, 3] {
            let image = phantom.image(dims, fine).unwrap();
            let mut wrong = 0;
            for (i, &value) in image.iter().enumerate() {
                let index = [i % n[0], i / n[0] % n[1], i / n[0] / n[1]];
                let point = |axis: usize, sub: usize| {
                    if axis >= phantom.ndim {
                        return 0.0;
                    }
                    let offset = (sub as f64 + 0.5) / fine as f64 - 0.5;
                    2.0 / n[axis] as f64 * (index[axis] as f64 - (n[axis] / 2) as f64 + offset)
                };
                let subs = fine.pow(phantom.ndim as u32);
                let at = |s: usize| [point(0, s % fine), point(1, s / fine % fine), point(2, s / fine / fine)];
                let mean = (0..subs).map(|s| inside(&phantom, at(s))).sum::<f64>() / subs as f64;
                // A point on a surface may fall on either side of it by rounding.
                wrong += usize::from((mean - value).abs() > 1e-12);
            }
            assert!(wrong * 500 <= image.len(), "{wrong} of {} voxels, fine {fine}, seed {seed}", image.len());
        }
    }
    let image = Phantom::shepp_logan_2d().image(&[64, 64], 1).unwrap();
    assert_eq!((image[0], image[32 * 64 + 32]), (0.0, 1.0 - 0.8));
    let (low, high) = image.iter().fold((f64::MAX, f64::MIN), |(l, h), &v| (l.min(v), h.max(v)));
    assert!(low > -1e-12 && (high - 1.0).abs() < 1e-12, "{low} {high}");
}

#[test]
fn coils_peak_at_their_centres() {
    // On this grid x = 1 lies outside by one voxel, so coil 0 is largest at the last one.
    let (n, coils) = (40, 4);
    let model = CoilModel::ring(coils, 2).unwrap();
    let maps = model.maps(&[n, n]).unwrap();
    assert_eq!((model.coils(), model.ndim(), maps.len()), (coils, 2, n * n * coils));
    assert!(maps.iter().all(|s| s.norm() <= 1.0 + 1e-12));
    for (coil, peak) in [(0, [39, 20]), (1, [20, 39]), (2, [0, 20]), (3, [20, 0])] {
        let map = &maps[coil * n * n..][..n * n];
        let largest = (0..n * n).max_by(|&a, &b| map[a].norm().total_cmp(&map[b].norm())).unwrap();
        assert_eq!([largest % n, largest / n], peak, "coil {coil}");
        let s = map[largest];
        assert!(s.norm() > 0.99 && (s / Complex::cis(TAU * coil as f64 / 4.0)).arg().abs() < 0.1, "{s}");
    }
    // The opposite edge: p = 4 pi / 5 along x, 0 along y.
    let p = 4.0 * PI / 5.0;
    let far = Complex::new(0.5 * (1.0 + p.cos()), -0.25 * p.sin());
    assert!((maps[20 * n] - far).norm() < 1e-12);
    // 3D: coil 0 at z = 1/2, coil 1 at z = -1/2.
    let maps = CoilModel::ring(2, 3).unwrap().maps(&[8, 8, 8]).unwrap();
    assert!(
        (maps[4 + 8 * (4 + 8 * 6)] / Complex::new(0.5 * (1.0 + (TAU / 5.0).cos()), -0.25 * (TAU / 5.0).sin()) - 1.0)
            .norm()
            < 1e-12
    );
    assert!(maps[512 + 8 * (4 + 8 * 2)].norm() > maps[512 + 8 * (4 + 8 * 6)].norm());
}

#[test]
fn noise_has_the_power_asked_for() {
    let clean: Vec<_> = (0..200_000).map(|m| Complex::cis(m as f64) * (m % 7) as f64).collect();
    let (mut random, seed) = fresh();
    let snr = uniform(&mut random, 0.5, 50.0);
    let mut noisy = clean.clone();
    let deviation = add_noise(&mut noisy, snr, seed).unwrap();
    let noise: Vec<_> = noisy.iter().zip(&clean).map(|(a, b)| (a - b) / deviation).collect();
    let mean = |f: &dyn Fn(&Complex<f64>) -> f64| noise.iter().map(f).sum::<f64>() / noise.len() as f64;
    // Six standard errors: sqrt(1 / 200000) = 0.0022.
    assert!((relative_error(&noisy, &clean) * snr - 1.0).abs() < 0.014, "seed {seed}");
    assert!((mean(&|z| z.re * z.re) - 0.5).abs() < 0.01 && (mean(&|z| z.im * z.im) - 0.5).abs() < 0.01);
    assert!(mean(&|z| z.re).abs() < 0.01 && mean(&|z| z.im).abs() < 0.01 && mean(&|z| z.re * z.im).abs() < 0.01);
    // Gaussian: the fourth moment of each part is 3 / 4.
    assert!((mean(&|z| z.re.powi(4)) - 0.75).abs() < 0.04 && (mean(&|z| z.im.powi(4)) - 0.75).abs() < 0.04);

    let mut again = clean.clone();
    add_noise(&mut again, snr, seed).unwrap();
    assert!(again == noisy);
    add_noise(&mut again, snr, seed.wrapping_add(1)).unwrap();
    assert!(again != noisy);
}

#[test]
fn bad_sizes_and_arguments_are_named() {
    use ErrorKind::{InvalidArgument, InvalidSize, NotFinite, SizeMismatch, SizeOverflow};
    let phantom = Phantom::shepp_logan_2d();
    let k = [0.1, 0.2];
    let nan = [0.1, f64::NAN];
    let coils = CoilModel::ring(2, 3).unwrap();
    for (result, expected) in [
        (phantom.kspace(&[8], &[&k, &k], None, 0), SizeMismatch),
        (phantom.kspace(&[8, 0], &[&k, &k], None, 0), InvalidSize),
        (phantom.kspace(&[8, 8], &[&k], None, 0), SizeMismatch),
        (phantom.kspace(&[8, 8], &[&k, &k[1..]], None, 0), SizeMismatch),
        (phantom.kspace(&[8, 8], &[&[], &[]], None, 0), InvalidSize),
        (phantom.kspace(&[8, 8], &[&k, &nan], None, 0), NotFinite),
        (phantom.kspace(&[8, 8], &[&k, &k], Some(&coils), 0), SizeMismatch),
        (coils.maps(&[8, 8]), SizeMismatch),
        (coils.maps(&[8, 0, 8]), InvalidSize),
        (coils.maps(&[1 << 30, 1 << 30, 1 << 30]), SizeOverflow),
    ] {
        assert_eq!(result.unwrap_err().kind(), expected);
    }
    assert_eq!(phantom.image(&[8, 8, 8], 1).unwrap_err().kind(), SizeMismatch);
    assert_eq!(phantom.image(&[8, 8], 0).unwrap_err().kind(), InvalidSize);
    assert_eq!(phantom.image(&[8, 8], usize::MAX).unwrap_err().kind(), SizeOverflow);
    assert_eq!(CoilModel::ring(0, 2).unwrap_err().kind(), InvalidSize);
    assert_eq!(CoilModel::ring(8, 1).unwrap_err().kind(), InvalidSize);

    let shape = phantom.shapes()[0];
    let tilted = Ellipsoid { angles: [0.0, 0.1, 0.0], ..shape };
    for (ndim, shapes, expected) in [
        (1, vec![shape], InvalidSize),
        (2, vec![], InvalidSize),
        (2, vec![tilted], InvalidArgument),
        (3, vec![Ellipsoid { semi_axes: [0.1, 0.0, 0.1], ..shape }], InvalidArgument),
        (3, vec![Ellipsoid { density: f64::NAN, ..shape }], NotFinite),
    ] {
        assert_eq!(Phantom::new(ndim, shapes).unwrap_err().kind(), expected);
    }
    assert!(Phantom::new(3, vec![tilted]).is_ok());

    for (mut data, snr, expected) in [
        (vec![], 1.0, InvalidSize),
        (vec![Complex::new(1.0, 0.0)], 0.0, InvalidArgument),
        (vec![Complex::new(1.0, 0.0)], f64::NAN, InvalidArgument),
        (vec![Complex::new(0.0, 0.0)], 1.0, InvalidArgument),
        (vec![Complex::new(0.0, f64::NAN)], 1.0, NotFinite),
    ] {
        assert_eq!(add_noise(&mut data, snr, 0).unwrap_err().kind(), expected);
    }
}
