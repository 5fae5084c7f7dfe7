//! Conjugate gradients compared with dense algebra: the solution, lambda, priors, progress, and invalid options.

mod common;

use common::*;
use recon::phantom::Phantom;
use recon::trajectory::Trajectory;
use recon::{
    CgOptions, Complex, ErrorKind, Geometry, LambdaUnit, Matrix, Method, Normal, Options, Plan, Prior, Real, Stop,
};
use std::f64::consts::TAU;
use std::ops::ControlFlow;

/// Returns the matrix of a linear map of n voxels, column by column.
fn dense(n: usize, mut map: impl FnMut(&[Complex<f64>], &mut [Complex<f64>])) -> Vec<Vec<Complex<f64>>> {
    (0..n)
        .map(|i| {
            let mut unit = vec![Complex::default(); n];
            unit[i] = Complex::new(1.0, 0.0);
            let mut column = poisoned(n);
            map(&unit, &mut column);
            column
        })
        .collect()
}

/// Solves A x = b by elimination with pivots. A is given by columns.
fn solve(mut a: Vec<Vec<Complex<f64>>>, mut b: Vec<Complex<f64>>) -> Vec<Complex<f64>> {
    let n = b.len();
    for i in 0..n {
        let pivot = (i..n).max_by(|&p, &q| a[i][p].norm().total_cmp(&a[i][q].norm())).unwrap();
        a.iter_mut().for_each(|column| column.swap(i, pivot));
        b.swap(i, pivot);
        for row in i + 1..n {
            let f = a[i][row] / a[i][i];
            for column in a.iter_mut().skip(i) {
                let above = column[i];
                column[row] -= f * above;
            }
            let above = b[i];
            b[row] -= f * above;
        }
    }
    for i in (0..n).rev() {
        let mut sum = b[i];
        for j in i + 1..n {
            sum -= a[j][i] * b[j];
        }
        b[i] = sum / a[i][i];
    }
    b
}

/// The rows of E, [samples, coils], term by term, and the weights of samples.
struct Model<'a> {
    rows: Vec<Vec<Complex<f64>>>,
    weights: &'a [f64],
}

impl<'a> Model<'a> {
    fn new(dims: &[usize], k: &[Vec<f64>], weights: &'a [f64], maps: &[Complex<f64>]) -> Self {
        let r = voxels(dims);
        let turns = |m: usize, i: usize| k.iter().zip(&r).map(|(k, r)| k[m] * r[i]).sum::<f64>();
        let row = |map: &[Complex<f64>], m: usize| {
            map.iter().enumerate().map(|(i, s)| s * Complex::from_polar(1.0, -TAU * turns(m, i))).collect()
        };
        let of_coil = |map| (0..weights.len()).map(move |m| (map, m));
        let rows = maps.chunks_exact(r[0].len()).flat_map(of_coil).map(|(map, m)| row(map, m)).collect();
        Model { rows, weights }
    }

    /// Computes E x.
    fn forward(&self, x: &[Complex<f64>]) -> Vec<Complex<f64>> {
        self.rows.iter().map(|row| row.iter().zip(x).map(|(e, x)| e * x).sum()).collect()
    }

    /// Computes E^H W d.
    fn weighted_adjoint(&self, d: &[Complex<f64>]) -> Vec<Complex<f64>> {
        let mut x = vec![Complex::default(); self.rows[0].len()];
        for ((row, d), w) in self.rows.iter().zip(d).zip(self.weights.iter().cycle()) {
            x.iter_mut().zip(row).for_each(|(x, e)| *x += e.conj() * d * w);
        }
        x
    }
}

/// A sparse matrix: row starts, column indices and values.
type Csr = (Vec<u64>, Vec<u64>, Vec<Complex<f64>>);

/// Returns the differences along each axis, one row each, as a sparse matrix scaled by `weight(axis, voxel)`.
fn differences(dims: &[usize], weight: impl Fn(usize, usize) -> f64) -> Csr {
    let total: usize = dims.iter().product();
    let (mut rows, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    let mut stride = 1;
    for (axis, &n) in dims.iter().enumerate() {
        for i in 0..total {
            if i / stride % n + 1 < n {
                let w = weight(axis, i);
                columns.extend([i as u64, (i + stride) as u64]);
                values.extend([Complex::new(-w, 0.0), Complex::new(w, 0.0)]);
                rows.push(columns.len() as u64);
            }
        }
        stride *= n;
    }
    (rows, columns, values)
}

#[test]
fn cg_solves_the_regularised_normal_equations() {
    let mut random = Random::fresh();
    for dims in [&[7usize, 6][..], &[4, 3, 5]] {
        let n: usize = dims.iter().product();
        let (samples, coils) = (60, 2);
        let k = random.trajectory::<f64>(dims.len(), samples);
        let weights: Vec<f64> = (0..samples).map(|_| random.uniform() + 0.7).collect();
        let maps = random.complexes::<f64>(n * coils);
        let d = random.complexes::<f64>(samples * coils);
        let reference: Vec<f64> = random.reals(n);
        let k_slices = slices(&k);
        let geometry = Geometry::new(dims, &k_slices).weights(&weights).coils(coils).coil_maps(&maps);
        let largest = reference.iter().fold(0f64, |m, r| m.max(r.abs()));
        let edges = |axis: usize, i: usize| {
            let stride: usize = dims[..axis].iter().product();
            (-((reference[i + stride] - reference[i]) / (0.4 * largest)).powi(2)).exp()
        };
        let plain = differences(dims, |_, _| 1.0);
        let weighted = differences(dims, edges);
        let identity: Csr = ((0..=n as u64).collect(), (0..n as u64).collect(), vec![Complex::new(1.0, 0.0); n]);
        let (mut rows, mut columns, mut values) = (vec![0u64], Vec::new(), Vec::new());
        for _ in 0..2 * n {
            for _ in 0..3 {
                columns.push(((random.uniform() + 0.5) * n as f64) as u64);
                values.push(Complex::new(random.uniform(), random.uniform()));
            }
            rows.push(columns.len() as u64);
        }
        let arbitrary: Csr = (rows, columns, values);
        fn matrix(c: &Csr) -> Matrix<'_, f64> {
            Matrix { rows: &c.0, columns: &c.1, values: &c.2 }
        }
        let anatomical = Prior::Anatomical { reference: &reference, edge: 0.4 };
        let cases = [
            ("identity", Prior::Identity, &identity),
            ("differences", Prior::Differences, &plain),
            ("anatomical", anatomical, &weighted),
            ("matrix", Prior::Matrix(matrix(&arbitrary)), &arbitrary),
        ];
        let model = Model::new(dims, &k, &weights, &maps);
        let rhs = model.weighted_adjoint(&d);
        for normal in [Normal::Toeplitz, Normal::Transforms] {
            let options = Options { tolerance: 1e-12, normal, threads: 2, ..Options::default() };
            let plan = Plan::new(&geometry, &options).unwrap();
            for (name, prior, r) in &cases {
                let lambda = 3.0;
                let columns = dense(n, |x, y| {
                    y.copy_from_slice(&model.weighted_adjoint(&model.forward(x)));
                    for row in 0..r.0.len() - 1 {
                        let entries = r.0[row] as usize..r.0[row + 1] as usize;
                        let product: Complex<f64> = entries.clone().map(|e| r.2[e] * x[r.1[e] as usize]).sum();
                        entries.for_each(|e| y[r.1[e] as usize] += r.2[e].conj() * product * lambda);
                    }
                });
                let exact = solve(columns, rhs.clone());
                let mut x = poisoned(n);
                let cg = CgOptions {
                    iterations: 400,
                    tolerance: 1e-13,
                    lambda,
                    lambda_unit: LambdaUnit::Absolute,
                    prior: *prior,
                    ..CgOptions::default()
                };
                let report = plan.cg(&d, &mut x, &cg).unwrap();
                let error = distance(&x, &exact);
                assert!(error < 1e-9, "{name} {normal:?} {dims:?}: {error:e}, seed {}", random.seed);
                let run = &report.runs[0];
                assert_eq!(run.stop, Stop::Tolerance, "{name}: {:?}", run.residuals.last());
                assert!(run.residuals[0] == 1.0 && *run.residuals.last().unwrap() <= 1e-13);
                // Started at the solution, it has nothing to do. Started elsewhere, it reaches the same solution.
                let warm =
                    plan.cg(&d, &mut x.clone(), &CgOptions { initial: Some(&x), tolerance: 1e-10, ..cg }).unwrap();
                assert_eq!(warm.runs[0].iterations(), 0, "{name}: {:?}", warm.runs[0]);
                let start = random.complexes(n);
                let mut y = poisoned(n);
                plan.cg(&d, &mut y, &CgOptions { initial: Some(&start), ..cg }).unwrap();
                assert!(distance(&y, &exact) < 1e-9, "{name} from elsewhere");
            }
        }
    }
}

/// Checks that a relative lambda is multiplied by the mean diagonal of E^H W E over the voxels that any coil sees.
#[test]
fn lambda_is_relative_to_the_diagonal() {
    let mut random = Random::fresh();
    let (dims, samples, coils) = ([9usize, 7], 150, 3);
    let n: usize = dims.iter().product();
    let k = random.trajectory::<f64>(2, samples);
    let k = slices(&k);
    let weights: Vec<f64> = (0..samples).map(|_| random.uniform() + 0.7).collect();
    let mut maps = random.complexes::<f64>(n * coils);
    // Voxels that no coil sees.
    (0..n).filter(|i| i % 5 == 0).for_each(|i| (0..coils).for_each(|c| maps[c * n + i] = Complex::default()));
    let seen = (0..n).filter(|i| i % 5 != 0).count() as f64;
    let energy: f64 = maps.iter().map(|s| s.norm_sqr()).sum();
    let d = random.complexes::<f64>(samples * coils);
    for (geometry, expected) in [
        (Geometry::new(&dims, &k).coils(coils), samples as f64),
        (Geometry::new(&dims, &k).coils(coils).weights(&weights), weights.iter().sum()),
        (
            Geometry::new(&dims, &k).coils(coils).weights(&weights).coil_maps(&maps),
            weights.iter().sum::<f64>() * energy / seen,
        ),
    ] {
        let plan = Plan::new(&geometry, &Options { threads: 2, ..Options::default() }).unwrap();
        let solve = |lambda, lambda_unit| {
            let mut x = poisoned::<f64>(plan.image_len());
            let options =
                CgOptions { iterations: 40, lambda, lambda_unit, prior: Prior::Differences, ..Default::default() };
            let report = plan.cg(&d, &mut x, &options).unwrap();
            (x, report.lambda)
        };
        let (relative, found) = solve(0.2, LambdaUnit::Relative);
        assert!((found / (0.2 * expected) - 1.0).abs() < 1e-12, "{found} {expected}, seed {}", random.seed);
        let (absolute, same) = solve(found, LambdaUnit::Absolute);
        assert!(same == found && relative == absolute, "seed {}", random.seed);
    }
}

/// Checks two voxels and one difference. R is the difference times exp(-(d/s)^2), and the solution is computed by hand.
#[test]
fn the_anatomical_prior_is_the_documented_one() {
    let k = [&[-0.5f64, 0.0][..], &[0.0, 0.0]];
    let plan =
        Plan::new(&Geometry::new(&[2, 1], &k), &Options { method: Method::Exact, ..Options::default() }).unwrap();
    // E^H d = 2 (1, -1), E^H E = 2, and R^H R = exp(-2) (1, -1; -1, 1).
    let d = [Complex::new(-2.0, 0.0), Complex::new(0.0, 0.0)];
    let mut rhs = poisoned::<f64>(2);
    plan.adjoint(&d, &mut rhs).unwrap();
    let sign = rhs[0].re.signum();
    assert!(distance(&rhs, &[Complex::new(2.0 * sign, 0.0), Complex::new(-2.0 * sign, 0.0)]) < 1e-12, "{rhs:?}");
    let prior = Prior::Anatomical { reference: &[0.0, 1.0], edge: 1.0 };
    let lambda_unit = LambdaUnit::Absolute;
    let options = CgOptions { iterations: 5, lambda: 1.0, lambda_unit, prior, ..CgOptions::default() };
    let mut x = poisoned::<f64>(2);
    plan.cg(&d, &mut x, &options).unwrap();
    let expected = sign * 2.0 / (2.0 + 2.0 * (-2f64).exp());
    assert!((expected.abs() - 0.8808).abs() < 1e-4);
    assert!(distance(&x, &[Complex::new(expected, 0.0), Complex::new(-expected, 0.0)]) < 1e-9, "{x:?}");
}

#[test]
fn images_without_maps_and_frames_are_solved_one_by_one() {
    let mut random = Random::fresh();
    let (dims, samples) = ([9usize, 8], 150);
    let k = random.trajectory::<f32>(2, samples);
    let options = Options { threads: 1, ..Options::default() };
    let mut geometry = Geometry::new(&dims, &slices(&k)).coils(2);
    geometry.frames = 3;
    let plan = Plan::new(&geometry, &options).unwrap();
    let d = random.complexes::<f32>(plan.kspace_len());
    let mut all = poisoned(plan.image_len());
    let report = plan.cg(&d, &mut all, &CgOptions { iterations: 7, ..CgOptions::default() }).unwrap();
    assert_eq!(report.runs.len(), 6);
    let one = Plan::new(&Geometry::new(&dims, &slices(&k)), &options).unwrap();
    for (i, image) in all.chunks_exact(72).enumerate() {
        let mut single = poisoned(72);
        one.cg(&d[i * samples..][..samples], &mut single, &CgOptions { iterations: 7, ..CgOptions::default() })
            .unwrap();
        assert_eq!(image, single, "image {i}");
    }
}

#[test]
fn progress_and_cancellation() {
    let mut random = Random::fresh();
    let k = random.trajectory::<f64>(2, 200);
    let plan = Plan::new(&Geometry::new(&[12, 12], &slices(&k)).coils(2), &Options::default()).unwrap();
    let d = random.complexes(400);
    let mut x = random.complexes(288);
    let before = x.clone();
    let mut seen = Vec::new();
    let cg = CgOptions { iterations: 5, ..CgOptions::default() };
    let error = plan
        .cg_with_progress(&d, &mut x, &cg, |p| {
            seen.push((p.image, p.iteration));
            assert_eq!((p.images, p.iterations), (2, 5));
            if p.image == 1 && p.iteration == 2 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(x, before, "a cancelled call must not touch its output");
    assert_eq!(seen, [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 0), (1, 1), (1, 2)]);
}

#[test]
fn zero_data_and_overflow() {
    let mut random = Random::fresh();
    let k = random.trajectory::<f32>(2, 50);
    let plan = Plan::new(&Geometry::new(&[6, 6], &slices(&k)), &Options::default()).unwrap();
    let mut x = poisoned(36);
    let report = plan.cg(&vec![Complex::default(); 50], &mut x, &CgOptions::default()).unwrap();
    assert_eq!(report.runs[0].stop, Stop::Exact);
    assert!(x.iter().all(|z| *z == Complex::default()));
    let huge = vec![Complex::new(f32::MAX, 0.0); 50];
    let before = x.clone();
    let error = plan.cg(&huge, &mut x, &CgOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFinite);
    assert!(error.message().contains("scale the data"), "{error}");
    assert_eq!(x, before);
    // Very small and very large data can be solved, as long as E^H W E does not overflow.
    for scale in [1e-20f32, 1e15] {
        let d: Vec<_> = random.complexes::<f32>(50).iter().map(|z| z * scale).collect();
        plan.cg(&d, &mut x, &CgOptions { iterations: 4, ..CgOptions::default() }).unwrap();
        assert!(norm(&x) > 0.0 && norm(&x).is_finite());
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let mut random = Random::fresh();
    let k = random.trajectory::<f64>(2, 20);
    let plan = Plan::new(&Geometry::new(&[5, 4], &slices(&k)), &Options::default()).unwrap();
    let d = random.complexes(20);
    let mut x = poisoned(20);
    let mut refuse = |options: CgOptions<'_, f64>, kind, word: &str| {
        let e = plan.cg(&d, &mut x, &options).unwrap_err();
        assert_eq!(e.kind(), kind, "{e}");
        assert!(e.message().contains(word), "{e}");
    };
    let base = CgOptions::<f64>::default();
    refuse(CgOptions { lambda: -1.0, ..base }, ErrorKind::InvalidArgument, "lambda is -1");
    refuse(CgOptions { lambda: f64::NAN, ..base }, ErrorKind::InvalidArgument, "lambda is NaN");
    refuse(CgOptions { tolerance: 1.5, ..base }, ErrorKind::ToleranceOutOfRange, "1.5");
    let short = vec![Complex::new(0.0, 0.0); 3];
    refuse(CgOptions { initial: Some(&short), ..base }, ErrorKind::SizeMismatch, "3 voxels of the initial");
    let bad = vec![Complex::new(f64::NAN, 0.0); 20];
    refuse(CgOptions { initial: Some(&bad), ..base }, ErrorKind::NotFinite, "initial image 0");
    let reference = [1.0; 7];
    let anatomical = |reference, edge| CgOptions { prior: Prior::Anatomical { reference, edge }, ..base };
    refuse(anatomical(&reference[..], 0.1), ErrorKind::SizeMismatch, "7 voxels of the reference");
    let twenty = [1.0; 20];
    refuse(anatomical(&twenty[..], 0.0), ErrorKind::InvalidArgument, "edge is 0");
    let one = [Complex::new(1.0, 0.0)];
    let matrix = |rows, columns, values| CgOptions { prior: Prior::Matrix(Matrix { rows, columns, values }), ..base };
    refuse(matrix(&[0, 1], &[20], &one), ErrorKind::InvalidArgument, "column 20");
    refuse(matrix(&[0, 2], &[1], &one), ErrorKind::InvalidArgument, "row starts");
    refuse(matrix(&[0, 1], &[1, 2], &one), ErrorKind::SizeMismatch, "2 column indices");
    let k3 = random.trajectory::<f64>(2, 5);
    let mut listed = Geometry::new(&[5, 4], &slices(&k));
    listed.voxels = Some(slices(&k3));
    let plan = Plan::new(&listed, &Options::default()).unwrap();
    let e = plan.cg(&d, &mut poisoned(5), &CgOptions { prior: Prior::Differences, ..base }).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
}

/// Checks that single precision follows double precision. The centre of k-space of a 3D radial scan has thousands of
/// times the mean energy, so rounding of one iteration grows a thousand times in the next.
#[test]
fn single_precision_follows_exact_iterations() {
    let dims = [40usize; 3];
    let trajectory = Trajectory::radial3d(300, 80).unwrap();
    let data = Phantom::shepp_logan_3d().kspace(&dims, &trajectory.axes(), None, 2).unwrap();
    fn image<T: Real>(dims: &[usize], trajectory: &Trajectory, data: &[Complex<f64>]) -> Vec<Complex<f64>> {
        let k: Vec<Vec<T>> = (0..3).map(|a| trajectory.axis_as(a)).collect();
        let data: Vec<Complex<T>> = data.iter().map(|z| Complex::new(T::of(z.re), T::of(z.im))).collect();
        let options = Options { tolerance: 1e-6, threads: 2, ..Options::default() };
        let mut image = poisoned::<T>(40 * 40 * 40);
        let cg = CgOptions { iterations: 16, ..CgOptions::default() };
        Plan::new(&Geometry::new(dims, &slices(&k)), &options).unwrap().cg(&data, &mut image, &cg).unwrap();
        wide(&image)
    }
    let exact = image::<f64>(&dims, &trajectory, &data);
    let error = distance(&image::<f32>(&dims, &trajectory, &data), &exact);
    assert!(error < 2e-3, "{error}");
}

/// Runs the tests at all levels of the vector unit, not only at this machine's best one.
#[test]
fn every_level_of_the_vector_unit_passes() {
    again_at_other_levels();
}
