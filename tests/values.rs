//! Values compared with references that share no code with the library: sums term by term, dense algebra, explicit
//! formulas and results of numpy. The other tests of these functions compare two ways through the library. `make
//! mutants` checks that the tests of this file fail after one-line changes of the source.

mod common;

use common::*;
use recon::metrics::{compare, compare_magnitude, Scale};
use recon::phantom::{add_noise, Ellipsoid, Phantom};
use recon::resize::recentre;
use recon::simulated_scan::phantom_kspace;
use recon::trajectory::SpokeOrder;
use recon::{
    combine, CgOptions, Combine, Complex, Corrected, Density, Device, Filter, Geometry, LambdaUnit, Method, Options,
    Plan, Prior, PropellerOptions, RigidMotion, Trajectory, VoxelBasis,
};
use std::f64::consts::{PI, TAU};

fn sinc(k: f64) -> f64 {
    if k == 0.0 {
        1.0
    } else {
        (PI * k).sin() / (PI * k)
    }
}

/// Returns phi, the Fourier transform of a box voxel, at each sample.
fn box_factors(k: &[Vec<f64>]) -> Vec<f64> {
    (0..k[0].len()).map(|m| k.iter().map(|k| sinc(k[m])).product()).collect()
}

/// Returns the coordinates of a Cartesian grid.
fn cartesian(dims: &[usize]) -> Vec<Vec<f64>> {
    let r = voxels(dims);
    r.iter().zip(dims).map(|(r, &n)| r.iter().map(|r| r / n as f64).collect()).collect()
}

/// Checks that a relative lambda is multiplied by the mean of the diagonal of E^H W E: sum_m w phi^2 exp(-2 R t) of
/// each voxel.
#[test]
fn mean_diagonals_are_those_of_the_explicit_matrix() {
    let mut random = Random::fresh();
    let (dims, samples, coils) = ([9usize, 7], 150, 3);
    let n: usize = dims.iter().product();
    let k = random.trajectory::<f64>(2, samples);
    let weights: Vec<f64> = (0..samples).map(|_| random.uniform() + 0.7).collect();
    let times: Vec<f64> = (0..samples).map(|_| 0.001 + 0.03 * (random.uniform() + 0.5)).collect();
    let field: Vec<f64> = (0..n).map(|_| 40.0 * random.uniform()).collect();
    let decay: Vec<f64> = (0..n).map(|_| 60.0 * (random.uniform() + 0.5)).collect();
    // All voxels have the same energy, 2.25.
    let mut maps = random.complexes::<f64>(n * coils);
    for i in 0..n {
        let root = (0..coils).map(|c| maps[c * n + i].norm_sqr()).sum::<f64>().sqrt();
        (0..coils).for_each(|c| maps[c * n + i] *= 1.5 / root);
    }
    let (phi, axes) = (box_factors(&k), slices(&k));
    for basis in [VoxelBasis::Point, VoxelBasis::Box] {
        for (with_weights, with_maps, with_decay) in
            [(false, false, true), (true, false, true), (true, true, true), (true, true, false), (true, false, false)]
        {
            let mut geometry = Geometry::new(&dims, &axes).coils(coils);
            geometry.basis = basis;
            geometry.weights = with_weights.then_some(&weights);
            geometry.coil_maps = with_maps.then_some(&maps);
            if with_decay {
                geometry = geometry.field_map(&field, &times);
                geometry.decay_map = Some(&decay);
            }
            let weight = |m: usize| {
                let phi = if basis == VoxelBasis::Box { phi[m] } else { 1.0 };
                phi * phi * if with_weights { weights[m] } else { 1.0 }
            };
            let fall = |m: usize, i: usize| if with_decay { (-2.0 * decay[i] * times[m]).exp() } else { 1.0 };
            let diagonal = |i: usize| (0..samples).map(|m| weight(m) * fall(m, i)).sum::<f64>();
            let expected = (0..n).map(diagonal).sum::<f64>() / n as f64 * if with_maps { 2.25 } else { 1.0 };
            let plan = Plan::new(&geometry, &Options { threads: 2, ..Options::default() }).unwrap();
            let options =
                CgOptions { iterations: 1, lambda: 0.2, lambda_unit: LambdaUnit::Relative, ..Default::default() };
            let mut x = poisoned::<f64>(plan.image_len());
            let found = plan.cg(&random.complexes(samples * coils), &mut x, &options).unwrap().lambda / 0.2;
            let what = format!("{basis:?}, weights {with_weights}, maps {with_maps}, decay {with_decay}");
            assert!((found / expected - 1.0).abs() < 2e-4, "{what}: {found}, not {expected}, seed {}", random.seed);
        }
    }
}

/// Checks that on a complete Cartesian grid, gridding of equally weighted samples is the inverse DFT of phi times the
/// samples.
#[test]
fn gridded_box_voxels_are_the_inverse_transform_with_phi() {
    let mut random = Random::fresh();
    for dims in [&[8usize, 7][..], &[5, 6], &[4, 5, 3]] {
        let n: usize = dims.iter().product();
        let k = cartesian(dims);
        let (axes, weights, d) = (slices(&k), vec![3.0; n], random.complexes::<f64>(n));
        for basis in [VoxelBasis::Point, VoxelBasis::Box] {
            let phi = if basis == VoxelBasis::Box { box_factors(&k) } else { vec![1.0; n] };
            let weighed: Vec<Complex<f64>> = d.iter().zip(&phi).map(|(d, phi)| d * phi / n as f64).collect();
            let expected = direct(1.0, &k, &weighed, &voxels(dims));
            for method in [Method::Exact, Method::Nufft] {
                let mut geometry = Geometry::new(dims, &axes).weights(&weights);
                geometry.basis = basis;
                let options = Options { method, tolerance: 1e-6, threads: 2, ..Options::default() };
                let mut image = poisoned::<f64>(n);
                Plan::new(&geometry, &options).unwrap().grid(&d, &mut image).unwrap();
                let error = distance(&image, &expected);
                assert!(error < 2e-5, "{dims:?} {basis:?} {method:?}: {error:e}, seed {}", random.seed);
            }
        }
    }
}

/// Sums `image` over a Gaussian neighbourhood of half a voxel, which ends after two voxels and at the edge of the
/// image.
fn neighbourhood(image: &[Complex<f64>], dims: &[usize; 2]) -> Vec<Complex<f64>> {
    let weight = |d: isize| if d.abs() <= 2 { (-0.5 * (d as f64 / 0.5).powi(2)).exp() } else { 0.0 };
    let at = |i: usize| [(i % dims[0]) as isize, (i / dims[0]) as isize];
    let sum = |i: usize| {
        let [x, y] = at(i);
        (0..image.len()).map(|j| image[j] * weight(at(j)[0] - x) * weight(at(j)[1] - y)).sum()
    };
    (0..image.len()).map(sum).collect()
}

/// Computes coil sensitivities from images of low resolution as docs/method.md describes them: eight steps of power
/// iteration from the virtual coil that has most energy.
fn sensitivities(images: &[Vec<Complex<f64>>], dims: &[usize; 2]) -> Vec<Vec<Complex<f64>>> {
    let (coils, count) = (images.len(), images[0].len());
    let covariance =
        |a: usize, b: usize| images[a].iter().zip(&images[b]).map(|(x, y)| x * y.conj()).sum::<Complex<f64>>();
    let strongest = (0..coils).max_by(|&a, &b| covariance(a, a).re.total_cmp(&covariance(b, b).re)).unwrap();
    // Of the power iteration from a unit vector e, the phase is that of v v^H e: entry `strongest` of v is positive.
    let mut v: Vec<Complex<f64>> = (0..coils).map(|a| Complex::new((a == strongest) as u8 as f64, 0.0)).collect();
    for _ in 0..200 {
        let next: Vec<Complex<f64>> = (0..coils).map(|a| (0..coils).map(|b| covariance(a, b) * v[b]).sum()).collect();
        let size = norm(&next);
        v = next.iter().map(|z| z / size).collect();
    }
    let mut maps: Vec<Vec<Complex<f64>>> = v.iter().map(|&v| vec![v; count]).collect();
    for _ in 0..8 {
        let joined: Vec<Complex<f64>> =
            (0..count).map(|i| (0..coils).map(|c| maps[c][i].conj() * images[c][i]).sum()).collect();
        for (map, image) in maps.iter_mut().zip(images) {
            let products: Vec<Complex<f64>> = image.iter().zip(&joined).map(|(x, y)| x * y.conj()).collect();
            *map = neighbourhood(&products, dims);
        }
        unit(&mut maps);
    }
    maps
}

/// Scales maps to unit norm over the coils.
fn unit(maps: &mut [Vec<Complex<f64>>]) {
    for i in 0..maps[0].len() {
        let size = maps.iter().map(|map| map[i].norm_sqr()).sum::<f64>().sqrt();
        maps.iter_mut().for_each(|map| map[i] /= size);
    }
}

/// Interpolates linearly between voxels, whose index floor(n/2) is the centre of both images.
fn interpolated(map: &[Complex<f64>], low: &[usize; 2], dims: &[usize; 2]) -> Vec<Complex<f64>> {
    let place = |axis: usize, i: usize| {
        let r = (i as f64 - (dims[axis] / 2) as f64) / dims[axis] as f64;
        (r * low[axis] as f64 + (low[axis] / 2) as f64).clamp(0.0, (low[axis] - 1) as f64)
    };
    let share = |place: f64, j: usize| (1.0 - (place - j as f64).abs()).max(0.0);
    let voxel = |i: usize| {
        let [x, y] = [place(0, i % dims[0]), place(1, i / dims[0])];
        (0..map.len()).map(|j| map[j] * share(x, j % low[0]) * share(y, j / low[0])).sum()
    };
    (0..dims[0] * dims[1]).map(voxel).collect()
}

/// Returns k-space of smooth coil images: a bright spot, slightly shifted in each coil, and some noise.
fn smooth_spectrum(k: &[Vec<f64>], coils: usize, random: &mut Random) -> Vec<Complex<f64>> {
    let mut data = Vec::new();
    for _ in 0..coils {
        let (centre, turn) = ([1.5 * random.uniform(), 1.5 * random.uniform()], TAU * random.uniform());
        data.extend((0..k[0].len()).map(|m| {
            let square = k.iter().map(|k| (k[m] / 0.12).powi(2)).sum::<f64>();
            let phase = turn + TAU * (k[0][m] * centre[0] + k[1][m] * centre[1]);
            let noise = Complex::new(random.uniform(), random.uniform());
            Complex::from_polar(40.0 * (-0.5 * square).exp(), phase) + noise
        }));
    }
    data
}

#[test]
fn coil_maps_are_those_of_the_tapered_centre() {
    let mut random = Random::fresh();
    // A calibration region of 8 samples makes calibration images of 16 voxels, or of the image's size if that is less.
    for (dims, low) in [([21usize, 18], [16usize, 16]), ([15, 25], [15, 16])] {
        let (calibration, coils) = (8, 4);
        let n: usize = dims.iter().product();
        let k = cartesian(&dims);
        let (axes, weights) = (slices(&k), (0..n).map(|_| random.uniform() + 0.6).collect::<Vec<f64>>());
        let data = smooth_spectrum(&k, coils, &mut random);
        let geometry = Geometry::new(&dims, &axes).coils(coils).weights(&weights);
        let plan = Plan::new(&geometry, &Options { threads: 2, ..Options::default() }).unwrap();
        let found = plan.coil_maps(&data, calibration).unwrap();
        // 1 at the edge of the calibration region.
        let radius = |m: usize| {
            (0..2).map(|a| (2.0 * k[a][m] * dims[a] as f64 / calibration as f64).powi(2)).sum::<f64>().sqrt()
        };
        let taper = |m: usize| if radius(m) < 1.0 { (0.5 * PI * radius(m)).cos().powi(2) } else { 0.0 };
        let zoomed: Vec<Vec<f64>> =
            (0..2).map(|a| k[a].iter().map(|k| k * dims[a] as f64 / low[a] as f64).collect()).collect();
        let images: Vec<Vec<Complex<f64>>> = (0..coils)
            .map(|c| {
                let tapered = (0..n).map(|m| data[c * n + m] * (weights[m] * taper(m)));
                direct(1.0, &zoomed, &tapered.collect::<Vec<_>>(), &voxels(&low))
            })
            .collect();
        let mut maps: Vec<Vec<Complex<f64>>> =
            sensitivities(&images, &low).iter().map(|map| interpolated(map, &low, &dims)).collect();
        unit(&mut maps);
        // 0 where there is less than 1 % of the largest signal.
        let squares = |i: usize| images.iter().map(|image| image[i].norm_sqr()).sum::<f64>();
        let signal = neighbourhood(&(0..images[0].len()).map(|i| squares(i).into()).collect::<Vec<_>>(), &low);
        let signal: Vec<Complex<f64>> = signal.iter().map(|z| z.re.sqrt().into()).collect();
        let least = 0.01 * signal.iter().fold(0.0, |most: f64, z| most.max(z.re));
        let signal = interpolated(&signal, &low, &dims);
        for map in &mut maps {
            map.iter_mut().zip(&signal).filter(|(_, z)| z.re < least).for_each(|(s, _)| *s = Complex::default());
        }
        let error = distance(&found, &maps.concat());
        assert!(error < 2e-3, "{dims:?}: {error:e}, seed {}", random.seed);
    }
}

#[test]
fn combined_images_are_the_explicit_sums() {
    let mut random = Random::fresh();
    let (dims, coils) = ([13usize, 10], 3);
    let n: usize = dims.iter().product();
    let k = cartesian(&dims);
    let spectrum = smooth_spectrum(&k, coils, &mut random);
    let images: Vec<Vec<Complex<f64>>> =
        spectrum.chunks_exact(n).map(|values| direct(1.0, &k, values, &voxels(&dims))).collect();
    let maps = sensitivities(&images, &dims);
    let (mut root, mut adaptive) = (poisoned::<f64>(n), poisoned::<f64>(n));
    combine(&images.concat(), &dims, coils, Combine::RootSumOfSquares, &mut root).unwrap();
    combine(&images.concat(), &dims, coils, Combine::Adaptive, &mut adaptive).unwrap();
    let squares = |i: usize| images.iter().map(|image| image[i].norm_sqr()).sum::<f64>();
    let roots: Vec<Complex<f64>> = (0..n).map(|i| Complex::new(squares(i).sqrt(), 0.0)).collect();
    let sums: Vec<Complex<f64>> =
        (0..n).map(|i| images.iter().zip(&maps).map(|(image, map)| map[i].conj() * image[i]).sum()).collect();
    assert!(distance(&root, &roots) < 1e-12, "seed {}", random.seed);
    let error = distance(&adaptive, &sums);
    assert!(error < 1e-6, "{error:e}, seed {}", random.seed);
}

/// A dense encoding matrix by rows, with least squares by elimination.
struct Dense {
    rows: Vec<Vec<Complex<f64>>>,
}

impl Dense {
    /// Computes E of a trajectory and coil maps, [samples, coils] rows.
    fn new(k: &[Vec<f64>], dims: &[usize], maps: &[Complex<f64>]) -> Self {
        let r = voxels(dims);
        let n = r[0].len();
        let row = |map: &[Complex<f64>], m: usize| {
            let turns = |i: usize| k.iter().zip(&r).map(|(k, r)| k[m] * r[i]).sum::<f64>();
            (0..n).map(|i| map[i] * Complex::from_polar(1.0, -TAU * turns(i))).collect()
        };
        Dense { rows: maps.chunks_exact(n).flat_map(|map| (0..k[0].len()).map(move |m| row(map, m))).collect() }
    }

    fn forward(&self, x: &[Complex<f64>]) -> Vec<Complex<f64>> {
        self.rows.iter().map(|row| row.iter().zip(x).map(|(e, x)| e * x).sum()).collect()
    }

    /// Solves (E^H E + lambda) x = E^H d by elimination.
    fn solve(&self, lambda: f64, d: &[Complex<f64>]) -> Vec<Complex<f64>> {
        let n = self.rows[0].len();
        let mut a: Vec<Vec<Complex<f64>>> = (0..n)
            .map(|i| {
                let entry = |j: usize| self.rows.iter().map(|row| row[i].conj() * row[j]).sum::<Complex<f64>>();
                let mut line: Vec<_> = (0..n).map(entry).collect();
                line[i] += lambda;
                line.push(self.rows.iter().zip(d).map(|(row, d)| row[i].conj() * d).sum());
                line
            })
            .collect();
        // The matrix is Hermitian and positive definite: no pivots are needed.
        for i in 0..n {
            let (above, below) = a.split_at_mut(i + 1);
            let pivot = &above[i];
            for row in below {
                let f = row[i] / pivot[i];
                row[i..].iter_mut().zip(&pivot[i..]).for_each(|(z, above)| *z -= f * above);
            }
        }
        let mut x = vec![Complex::default(); n];
        for i in (0..n).rev() {
            let known: Complex<f64> = (i + 1..n).map(|j| a[i][j] * x[j]).sum();
            x[i] = (a[i][n] - known) / a[i][i];
        }
        x
    }

    /// Returns |E x - d|^2 of the solution x for a lambda.
    fn misfit(&self, lambda: f64, d: &[Complex<f64>]) -> f64 {
        let model = self.forward(&self.solve(lambda, d));
        model.iter().zip(d).map(|(m, d)| (m - d).norm_sqr()).sum()
    }
}

#[test]
fn iterations_from_an_initial_image_end_at_the_dense_solution() {
    let mut random = Random::fresh();
    let (dims, samples, coils) = ([6usize, 5], 70, 2);
    let n: usize = dims.iter().product();
    let k = random.trajectory::<f64>(2, samples);
    let maps = random.complexes::<f64>(n * coils);
    let d = random.complexes::<f64>(samples * coils);
    let expected = Dense::new(&k, &dims, &maps).solve(2.0, &d);
    let axes = slices(&k);
    let geometry = Geometry::new(&dims, &axes).coils(coils).coil_maps(&maps);
    let plan = Plan::new(&geometry, &Options { tolerance: 1e-12, threads: 2, ..Options::default() }).unwrap();
    let far: Vec<Complex<f64>> = random.complexes::<f64>(n).iter().map(|x| x * 10.0).collect();
    for initial in [None, Some(&far[..])] {
        let options = CgOptions {
            iterations: 300,
            tolerance: 1e-13,
            lambda: 2.0,
            lambda_unit: LambdaUnit::Absolute,
            initial,
            ..CgOptions::default()
        };
        let mut x = poisoned::<f64>(n);
        plan.cg(&d, &mut x, &options).unwrap();
        let error = distance(&x, &expected);
        assert!(error < 1e-9, "initial image {}: {error:e}, seed {}", initial.is_some(), random.seed);
    }
}

/// Checks the discrepancy rule of docs/method.md by dense algebra: |E x - d|^2 is that of a solution without a prior,
/// plus 3/4 of the noise energy that this solution fits.
#[test]
fn the_noise_level_finds_the_lambda_of_the_discrepancy_rule() {
    let mut random = Random::fresh();
    let (dims, samples, coils) = ([7usize, 6], 60, 2);
    let n: usize = dims.iter().product();
    let k = random.trajectory::<f64>(2, samples);
    let maps = random.complexes::<f64>(n * coils);
    let dense = Dense::new(&k, &dims, &maps);
    let level = 0.02;
    let mut d = dense.forward(&random.complexes(n));
    // Uniform parts have the variance 1/12 each.
    let noise: Vec<Complex<f64>> = random.complexes::<f64>(d.len()).iter().map(|z| z * (level * 6f64.sqrt())).collect();
    d.iter_mut().zip(&noise).for_each(|(d, noise)| *d += noise);
    let axes = slices(&k);
    let geometry = Geometry::new(&dims, &axes).coils(coils).coil_maps(&maps);
    let plan = Plan::new(&geometry, &Options { tolerance: 1e-12, threads: 2, ..Options::default() }).unwrap();
    let options = CgOptions {
        iterations: 400,
        tolerance: 1e-12,
        noise_level: level,
        prior: Prior::Identity,
        ..CgOptions::default()
    };
    let mut x = poisoned::<f64>(n);
    let found = plan.cg(&d, &mut x, &options).unwrap().lambda;
    // The solution without a prior fits n of the samples' dimensions of white noise.
    let next_to_none = dense.misfit(1e-9, &d);
    let sought = next_to_none + 0.75 * n as f64 * level * level;
    let reached = dense.misfit(found, &d);
    // The plan uses one realisation of noise, which has n dimensions up to a root of n.
    assert!((reached / sought - 1.0).abs() < 0.12, "{reached} for {sought}, seed {}", random.seed);
    assert!(distance(&x, &dense.solve(found, &d)) < 1e-6, "seed {}", random.seed);
}

/// Checks that in a stack of equal partitions at uneven heights, the ramp is the area in the plane times the thickness
/// of the partition.
#[test]
fn the_ramp_of_a_stack_has_the_thickness_of_its_partitions() {
    let (spokes, samples, heights) = (24, 32, [-0.25, 0.0, 0.125, 0.4]);
    let plane = Trajectory::radial2d(spokes, samples, SpokeOrder::Linear).unwrap();
    let repeat = |k: &[f64]| heights.iter().flat_map(|_| k.iter().copied()).collect::<Vec<f64>>();
    let z = heights.iter().flat_map(|&z| vec![z; spokes * samples]).collect();
    let k = [repeat(plane.axis(0)), repeat(plane.axis(1)), z];
    let plan = Plan::new(&Geometry::new(&[16, 16, 8], &slices(&k)), &Options::default()).unwrap();
    let weights: Vec<f64> = plan.density(Density::Ramp).unwrap();
    // Half of the distance between both neighbours; at either end, the distance to one.
    let thickness = [0.25, 0.5 * 0.375, 0.5 * 0.4, 0.275];
    // Samples next to the centre are corrected for the sum along the line. Further out the area is proportional to |k|.
    let reference = (0, 20);
    let of = |q: usize, spoke: usize, j: usize| weights[(q * spokes + spoke) * samples + j];
    for (q, thickness) in thickness.iter().enumerate() {
        for (spoke, j) in [(0, 20), (5, 4), (11, 30), (23, 19)] {
            let radius = |j: usize| (j as f64 - 16.0).abs();
            let wanted = thickness / 0.25 * radius(j) / radius(reference.1);
            let found = of(q, spoke, j) / of(0, reference.0, reference.1);
            assert!((found / wanted - 1.0).abs() < 1e-4, "partition {q}, sample {j}: {found}, not {wanted}");
        }
    }
}

/// Checks backprojection of one ring of k-space: it equals the direct sum with weights pi |k| dk / spokes, also where
/// linear interpolation attenuates most.
#[test]
fn backprojection_keeps_the_scale_of_all_frequencies() {
    let mut random = Random::fresh();
    let (n, spokes, samples) = (24, 64, 48);
    let trajectory = Trajectory::radial2d(spokes, samples, SpokeOrder::Linear).unwrap();
    let k: Vec<Vec<f64>> = (0..2).map(|a| trajectory.axis(a).to_vec()).collect();
    let plan = Plan::new(&Geometry::new(&[n, n], &slices(&k)), &Options::default()).unwrap();
    let radius = |m: usize| k[0][m].hypot(k[1][m]);
    // Bounds are twice the errors of 20 seeds.
    for (ring, bound) in
        [(0.05..0.15, 0.004), (0.15..0.25, 0.011), (0.25..0.35, 0.016), (0.35..0.42, 0.026), (0.42..0.49, 0.04)]
    {
        let noise = random.complexes::<f64>(spokes * samples);
        let d: Vec<Complex<f64>> = noise
            .iter()
            .enumerate()
            .map(|(m, z)| if ring.contains(&radius(m)) { *z } else { Complex::default() })
            .collect();
        let weighed: Vec<Complex<f64>> =
            d.iter().enumerate().map(|(m, d)| d * (PI * radius(m) / (samples * spokes) as f64)).collect();
        let expected = direct(1.0, &k, &weighed, &voxels(&[n, n]));
        let mut image = poisoned::<f64>(n * n);
        plan.fbp(Filter::RamLak, &d, &mut image).unwrap();
        // The aliases of the interpolation are nearly orthogonal to the image.
        let scale = inner(&expected, &image) / inner(&expected, &expected);
        println!("{ring:?}: {scale}, distance {}", distance(&image, &expected));
        assert!((scale - 1.0).norm() < bound, "{ring:?}: {scale}, seed {}", random.seed);
    }
}

/// Checks recentring: voxel r of an image, with index r + floor(n/2), is voxel r of the recentred image; new voxels are
/// 0.
#[test]
fn recentred_images_keep_their_voxels() {
    for (from, to) in (1..7usize).flat_map(|from| (1..7usize).map(move |to| (from, to))) {
        let (from, to) = ([from, 8 - from, 3], [to, 7 - to, 4]);
        let at = |i: usize, n: &[usize; 3]| [i % n[0], i / n[0] % n[1], i / (n[0] * n[1])];
        let r = |i: usize, n: &[usize; 3]| [0, 1, 2].map(|a| at(i, n)[a] as isize - (n[a] / 2) as isize);
        let image: Vec<i32> = (1..=from.iter().product::<usize>() as i32).collect();
        let mut out = vec![-1; to.iter().product()];
        recentre(&image, &from, &mut out, &to);
        for (o, found) in out.iter().enumerate() {
            let same = (0..image.len()).find(|&i| r(i, &from) == r(o, &to));
            assert_eq!(*found, same.map_or(0, |i| image[i]), "{from:?} to {to:?}, voxel {:?}", r(o, &to));
        }
    }
}

/// Checks error measures with results of numpy:
///
/// ```python
/// i = numpy.arange(40)
/// truth = numpy.sin(i) + 1j * numpy.cos(2 * i)
/// image = truth * (0.8 - 0.3j) + 0.1 * numpy.cos(3 * i)
/// def figures(x, t):
///     e, power = numpy.mean(abs(x - t) ** 2), numpy.mean(abs(t) ** 2)
///     psnr, snr = 20 * numpy.log10(abs(t).max() / numpy.sqrt(e)), 10 * numpy.log10(power / e)
///     return 100 * numpy.sqrt(e / power), e, psnr, snr
/// print(figures(image, truth))
/// scale = numpy.vdot(image, truth) / numpy.vdot(image, image).real
/// print(scale, figures(scale * image, truth))
/// a, b = abs(image), abs(truth)
/// scale = a @ b / (a @ a)
/// print(scale, figures(scale * a, b))
/// ```
#[test]
fn metrics_are_those_of_numpy() {
    let wave = |i: usize| (i as f64, Complex::new((i as f64).sin(), (2.0 * i as f64).cos()));
    let truth: Vec<Complex<f64>> = (0..40).map(|i| wave(i).1).collect();
    let image: Vec<Complex<f64>> =
        (0..40).map(wave).map(|(i, t)| t * Complex::new(0.8, -0.3) + 0.1 * (3.0 * i).cos()).collect();
    let plain = compare(&image, &truth, Scale::None, None).unwrap();
    let best = compare(&image, &truth, Scale::Best, None).unwrap();
    let magnitudes = compare_magnitude(&image, &truth, Scale::Best, None).unwrap();
    for (found, scale, wanted) in [
        (plain, [1.0, 0.0], [37.01901465482359, 0.13824241121557485, 11.603674292373967, 8.631502903271151]),
        (
            best,
            [1.0882208008978858, 0.41295982317917557],
            [7.898098882142339, 0.006292695599287574, 25.02172005533401, 22.049548666231193],
        ),
        (
            magnitudes,
            [1.1658270968765585, 0.0],
            [5.4917722832023586, 0.0030424022404904783, 28.177920971482877, 25.20574958238006],
        ),
    ] {
        let figures = [found.percent_error, found.mse, found.psnr_db, found.snr_db, found.scale.re, found.scale.im];
        for (figure, wanted) in figures.iter().zip(wanted.iter().chain(&scale)) {
            assert!((figure - wanted).abs() < 1e-10, "{figure}, not {wanted}: {found:?}");
        }
    }
}

/// Checks that spoke p is at p times 111.246 degrees in golden-angle order, and at p times 180 / spokes degrees in
/// linear order.
#[test]
fn trajectories_turn_by_their_angles() {
    // 180 degrees over the golden ratio.
    const GOLDEN: f64 = 111.246_117_974_981_08;
    for (spokes, samples) in [(7, 10), (40, 33)] {
        for (order, degrees) in [(SpokeOrder::Linear, 180.0 / spokes as f64), (SpokeOrder::GoldenAngle, GOLDEN)] {
            let trajectory = Trajectory::radial2d(spokes, samples, order).unwrap();
            for (p, j) in (0..spokes).flat_map(|p| (0..samples).map(move |j| (p, j))) {
                let angle = (degrees * p as f64).to_radians();
                let radius = (j as f64 - (samples / 2) as f64) / samples as f64;
                let m = p * samples + j;
                let off =
                    (trajectory.axis(0)[m] - radius * angle.cos()).hypot(trajectory.axis(1)[m] - radius * angle.sin());
                assert!(off < 1e-9, "{order:?}, spoke {p}, sample {j}: {off:e}");
            }
        }
    }
}

/// Checks that the image of an ellipse has its area and centre of mass: x of -1 to 1 is n voxels.
#[test]
fn phantoms_lie_where_their_shapes_are() {
    let mut random = Random::fresh();
    for dims in [[60usize, 47], [41, 64]] {
        let centre = [0.5 * random.uniform(), 0.5 * random.uniform(), 0.0];
        let shape = Ellipsoid { density: 0.7, centre, semi_axes: [0.31, 0.22, 1.0], angles: [0.4, 0.0, 0.0] };
        let image = Phantom::new(2, vec![shape]).unwrap().image(&dims, 8).unwrap();
        let (r, sum) = (voxels(&dims), image.iter().sum::<f64>());
        let area = 0.7 * PI * 0.31 * 0.22 * (dims[0] * dims[1]) as f64 / 4.0;
        assert!((sum / area - 1.0).abs() < 3e-3, "{sum}, not {area}, seed {}", random.seed);
        for axis in 0..2 {
            let mean = image.iter().zip(&r[axis]).map(|(x, r)| x * r).sum::<f64>() / sum;
            let wanted = 0.5 * dims[axis] as f64 * centre[axis];
            assert!((mean - wanted).abs() < 0.02, "axis {axis}: {mean}, not {wanted}, seed {}", random.seed);
        }
    }
}

/// Checks that with a curved field map the k-space of a phantom is the sum over fine points, at which the map is
/// interpolated linearly.
#[test]
fn phantoms_with_a_curved_map_are_the_sum_over_fine_points() {
    let mut random = Random::fresh();
    let (dims, fine) = ([20usize, 23], 12);
    let shape = |x: f64, y: f64, a: f64, b: f64, density: f64| Ellipsoid {
        density,
        centre: [x, y, 0.0],
        semi_axes: [a, b, 1.0],
        angles: [0.5, 0.0, 0.0],
    };
    let phantom = Phantom::new(2, vec![shape(0.1, -0.1, 0.6, 0.5, 1.0), shape(-0.2, 0.1, 0.2, 0.3, -0.6)]).unwrap();
    // Further out, with almost no signal, the edges of boxes matter more.
    let k: Vec<Vec<f64>> =
        random.trajectory::<f64>(2, 60).iter().map(|k| k.iter().map(|k| 0.5 * k).collect()).collect();
    let times: Vec<f64> = (0..60).map(|_| 0.02 * (random.uniform() + 0.5)).collect();
    let phase = TAU * random.uniform();
    let field: Vec<f64> = (0..dims[0] * dims[1])
        .map(|i| 50.0 * (0.3 * (i % dims[0]) as f64 + phase).sin() * (0.25 * (i / dims[0]) as f64).cos())
        .collect();
    let axes = slices(&k);
    let geometry = Geometry::new(&dims, &axes).field_map(&field, &times);
    // With 8 boxes a voxel the error is at most 9e-4 in 400 seeds, with 4 up to 3.3e-3: it falls with their square.
    let found = phantom_kspace(&phantom, &geometry, None, 8, &Options::default()).unwrap();

    let points = dims.map(|n| n * fine);
    let density = phantom.image(&points, 6).unwrap();
    let r = voxels(&points);
    let inside: Vec<usize> = (0..density.len()).filter(|&i| density[i] != 0.0).collect();
    let place = |i: usize| [0, 1].map(|a| r[a][i] / fine as f64);
    let map = |i: usize| {
        let at = [0, 1].map(|a| place(i)[a] + (dims[a] / 2) as f64);
        let corner = at.map(|x| x.floor());
        let share = |a: usize, up: usize| if up == 1 { at[a] - corner[a] } else { 1.0 - (at[a] - corner[a]) };
        let voxel = |x: usize, y: usize| field[(corner[1] as usize + y) * dims[0] + corner[0] as usize + x];
        [(0, 0), (1, 0), (0, 1), (1, 1)].iter().map(|&(x, y)| share(0, x) * share(1, y) * voxel(x, y)).sum::<f64>()
    };
    let frequencies: Vec<f64> = inside.iter().map(|&i| map(i)).collect();
    let expected: Vec<Complex<f64>> = (0..60)
        .map(|m| {
            // A point represents a small box.
            let small: f64 = k.iter().map(|k| sinc(k[m] / fine as f64) / fine as f64).product();
            let wave = |(&i, f): (&usize, &f64)| {
                let turns = k[0][m] * place(i)[0] + k[1][m] * place(i)[1] + f * times[m];
                density[i] * Complex::from_polar(small, -TAU * turns)
            };
            inside.iter().zip(&frequencies).map(wave).sum()
        })
        .collect();
    let error = distance(&found, &expected);
    assert!(error < 2e-3, "{error:e}, seed {}", random.seed);
}

/// Checks that noise has the power of the data over the square of the signal-to-noise ratio, half of it in each part.
#[test]
fn noise_has_the_power_of_its_definition() {
    let (samples, snr) = (200_000, 4.0);
    let data = vec![Complex::new(3.0, -4.0); samples];
    let mut noisy = data.clone();
    let level = add_noise(&mut noisy, snr, 11).unwrap();
    assert!((level - 5.0 / snr).abs() < 1e-12, "{level}");
    let mean =
        |of: fn(Complex<f64>) -> f64| noisy.iter().zip(&data).map(|(z, d)| of(z - d)).sum::<f64>() / samples as f64;
    // The standard error of these means is 0.2 to 0.3 %.
    assert!((mean(|n| n.re * n.re) / (0.5 * level * level) - 1.0).abs() < 0.015);
    assert!((mean(|n| n.im * n.im) / (0.5 * level * level) - 1.0).abs() < 0.015);
    assert!((mean(|n| n.re * n.im) / (0.5 * level * level)).abs() < 0.015);
}

/// Checks that a phantom rotated by theta about the centre and then moved by t voxels has S(R(-theta) k) exp(-i 2 pi
/// k.t), and that these motions of blades are estimated and corrected.
#[test]
fn blades_of_a_turned_and_moved_phantom_are_brought_back() {
    let mut random = Random::fresh();
    let (n, blades, lines, readout) = (96usize, 12, 16, 96);
    let phantom = head();
    let trajectory = Trajectory::propeller(blades, lines, readout).unwrap();
    let k: Vec<Vec<f64>> = (0..2).map(|a| trajectory.axis(a).to_vec()).collect();
    let of_blade = lines * readout;
    let motion: Vec<(f64, [f64; 2])> =
        (0..blades).map(|_| (0.2 * random.uniform(), [5.0 * random.uniform(), 5.0 * random.uniform()])).collect();
    // Coordinates of the object at rest, by the rotation matrix of -theta.
    let turned = |m: usize| {
        let (sin, cos) = motion[m / of_blade].0.sin_cos();
        [cos * k[0][m] + sin * k[1][m], -sin * k[0][m] + cos * k[1][m]]
    };
    let rest: Vec<Vec<f64>> = (0..2).map(|a| (0..k[0].len()).map(|m| turned(m)[a]).collect()).collect();
    let at_rest = phantom.kspace(&[n, n], &slices(&rest), None, 2).unwrap();
    let data: Vec<Complex<f64>> = at_rest
        .iter()
        .enumerate()
        .map(|(m, s)| {
            let [x, y] = motion[m / of_blade].1;
            s * Complex::from_polar(1.0, -TAU * (k[0][m] * x + k[1][m] * y))
        })
        .collect();
    for (b, &(angle, translation)) in motion.iter().enumerate().take(3) {
        let part = b * of_blade..(b + 1) * of_blade;
        let axes = [&k[0][part.clone()], &k[1][part.clone()]];
        let moved = phantom.moved(n, &RigidMotion { angle, translation }).unwrap();
        let error = distance(&moved.kspace(&[n, n], &axes, None, 2).unwrap(), &data[part]);
        assert!(error < 1e-10, "blade {b}: {error:e}, seed {}", random.seed);
    }
    let options = Options { device: Device::Cpu, tolerance: 1e-4, threads: 2, ..Options::default() };
    let axes = slices(&k);
    let geometry = Geometry::new(&[n, n], &axes);
    let corrected = Corrected::new(&geometry, &options, &PropellerOptions::default(), &data).unwrap();
    // All motions may differ from the true ones by one common motion.
    let turns: Vec<f64> = motion.iter().zip(&corrected.motion).map(|(t, f)| f.rotation - t.0.to_degrees()).collect();
    let mean = turns.iter().sum::<f64>() / blades as f64;
    for (b, turn) in turns.iter().enumerate() {
        assert!((turn - mean).abs() < 0.05, "blade {b}: {} degrees off, seed {}", turn - mean, random.seed);
    }
    // Corrected samples are those of one object at rest.
    let places: Vec<Vec<f64>> = corrected.coordinates.to_vec();
    let rotation = mean.to_radians();
    let (sin, cos) = rotation.sin_cos();
    let own = |m: usize| {
        let (x, y) = (places[0][m], places[1][m]);
        // The object at rest is rotated by -mean.
        [cos * x - sin * y, sin * x + cos * y]
    };
    let own: Vec<Vec<f64>> = (0..2).map(|a| (0..k[0].len()).map(|m| own(m)[a]).collect()).collect();
    let wanted = phantom.kspace(&[n, n], &slices(&own), None, 2).unwrap();
    // One common translation remains. It is removed by the phases of the samples about the centre, in least squares.
    let error = best_translation(&corrected.kspace, &wanted, &places);
    assert!(error < 0.002, "{error}, seed {}", random.seed);
}

/// Returns the relative distance of `data` from `other` after the best translation, estimated by Gauss-Newton steps.
fn best_translation(data: &[Complex<f64>], other: &[Complex<f64>], k: &[Vec<f64>]) -> f64 {
    let mut t = [0.0; 2];
    let moved = |t: &[f64; 2]| -> Vec<Complex<f64>> {
        let turn = |m: usize| Complex::from_polar(1.0, -TAU * (k[0][m] * t[0] + k[1][m] * t[1]));
        (0..other.len()).map(|m| other[m] * turn(m)).collect()
    };
    for _ in 0..30 {
        let model = moved(&t);
        let (mut a, mut b) = ([[0.0; 2]; 2], [0.0; 2]);
        for (m, (d, model)) in data.iter().zip(&model).enumerate() {
            let slope = [0, 1].map(|i| model * Complex::new(0.0, -TAU * k[i][m]));
            for i in 0..2 {
                b[i] += (slope[i].conj() * (d - model)).re;
                (0..2).for_each(|j| a[i][j] += (slope[i].conj() * slope[j]).re);
            }
        }
        let determinant = a[0][0] * a[1][1] - a[0][1] * a[1][0];
        t[0] += (b[0] * a[1][1] - b[1] * a[0][1]) / determinant;
        t[1] += (b[1] * a[0][0] - b[0] * a[1][0]) / determinant;
    }
    distance(data, &moved(&t))
}
