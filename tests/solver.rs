//! Conjugate gradients, priors, Q's files, density weights and gridding, coil maps: against dense algebra and phantoms.

mod common;

use common::*;
use recon::phantom::{CoilModel, Phantom};
use recon::trajectory::SpokeOrder;
use recon::{
    combine, CgOptions, Combine, Complex, Density, ErrorKind, Geometry, LambdaUnit, Matrix, Method, Normal, Options,
    Plan, Prior, Real, Stop, Trajectory,
};
use std::ops::ControlFlow;

/// The matrix of a linear map of n voxels, column by column.
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

/// Solves A x = b, A being given by columns, by elimination with pivots.
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

/// The differences along each axis, one row each, as a sparse matrix scaled by `weight(axis, voxel)`.
type Csr = (Vec<u64>, Vec<u64>, Vec<Complex<f64>>);
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
        for normal in [Normal::Toeplitz, Normal::Transforms] {
            let options = Options { tolerance: 1e-12, normal, threads: 2, ..Options::default() };
            let plan = Plan::new(&geometry, &options).unwrap();
            let mut rhs = poisoned(n);
            plan.weighted_fhd(&d, &mut rhs).unwrap();
            for (name, prior, r) in &cases {
                let lambda = 3.0;
                let columns = dense(n, |x, y| {
                    plan.normal(x, &mut *y).unwrap();
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
                    initial: None,
                };
                let report = plan.cg(&d, &mut x, &cg).unwrap();
                let error = distance(&x, &exact);
                assert!(error < 1e-9, "{name} {normal:?} {dims:?}: {error:e}, seed {}", random.seed);
                let run = &report.runs[0];
                assert_eq!(run.stop, Stop::Tolerance, "{name}: {:?}", run.residuals.last());
                assert!(run.residuals[0] == 1.0 && *run.residuals.last().unwrap() <= 1e-13);
                // From the solution there is nothing left to do; from elsewhere the same solution is reached.
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

/// A relative lambda is one of the mean diagonal of E^H W E, over the voxels that a coil sees.
#[test]
fn lambda_is_relative_to_the_diagonal() {
    let mut random = Random::fresh();
    let (dims, samples, coils) = ([9usize, 7], 150, 3);
    let n: usize = dims.iter().product();
    let k = random.trajectory::<f64>(2, samples);
    let k = slices(&k);
    let weights: Vec<f64> = (0..samples).map(|_| random.uniform() + 0.7).collect();
    let mut maps = random.complexes::<f64>(n * coils);
    // A coil that sees nothing of some voxels, and voxels that none sees.
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

/// Two voxels, one difference: the solution by hand, R being the difference times exp(-(d/s)^2).
#[test]
fn the_anatomical_prior_is_the_documented_one() {
    let k = [&[-0.5f64, 0.0][..], &[0.0, 0.0]];
    let plan =
        Plan::new(&Geometry::new(&[2, 1], &k), &Options { method: Method::Exact, ..Options::default() }).unwrap();
    // E^H d = 2 (1, -1), E^H E = 2, and R^H R = exp(-2) (1, -1; -1, 1).
    let d = [Complex::new(-2.0, 0.0), Complex::new(0.0, 0.0)];
    let mut rhs = poisoned::<f64>(2);
    plan.fhd(&d, &mut rhs).unwrap();
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
    // A scale that E^H W E itself bears is no problem, however large or small.
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

/// Results must not depend on how tasks meet threads: not on their number, not on the run, not on what else the plan is
/// doing. The sizes give every primitive several tasks.
#[test]
fn results_are_the_same_bytes_for_any_number_of_threads() {
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
            let maps = random.complexes::<f32>(voxels * 2);
            let d = random.complexes::<f32>(samples * 2);
            let x = random.complexes::<f32>(voxels);
            let plan = |threads| {
                let mut geometry = Geometry::new(dims, &slices(&k)).coils(2).coil_maps(&maps);
                geometry.voxels = listed.then(|| slices(&r));
                Plan::new(&geometry, &Options { threads, ..options.clone() }).unwrap()
            };
            let run = |plan: &Plan<f32>| {
                let (mut a, mut f, mut c) = (poisoned(voxels), poisoned(samples * 2), poisoned(voxels));
                plan.fhd(&d, &mut a).unwrap();
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
            for threads in [1, 2, 3, 7] {
                let at = |run: &str| format!("{name} {dims:?}, {threads} threads, {run}, seed {}", random.seed);
                for fresh in 0..4 {
                    let plan = plan(threads);
                    for again in 0..5 {
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

#[test]
fn q_is_saved_and_loaded() {
    let folder = std::env::temp_dir().join(format!("recon-q-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("q.bin");
    let mut random = Random::fresh();
    let dims = [10usize, 7, 6];
    let k = random.trajectory::<f32>(3, 300);
    let options = Options { normal: Normal::Toeplitz, threads: 2, ..Options::default() };
    let plan = |k: &[Vec<f32>], dims: &[usize]| Plan::new(&Geometry::new(dims, &slices(k)), &options).unwrap();
    let first = plan(&k, &dims);
    first.save_q(&path).unwrap();
    let x = random.complexes::<f32>(420);
    let (mut y, mut z) = (poisoned(420), poisoned(420));
    first.normal(&x, &mut y).unwrap();
    let second = plan(&k, &dims);
    second.load_q(&path).unwrap();
    second.normal(&x, &mut z).unwrap();
    assert_eq!(y, z);

    let mut other = k.clone();
    other[1][17] += 1e-3;
    let e = plan(&other, &dims).load_q(&path).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::BadFile);
    assert!(e.message().contains("another image size"), "{e}");
    assert_eq!(plan(&k, &[10, 7, 5]).load_q(&path).unwrap_err().kind(), ErrorKind::BadFile);

    let bytes = std::fs::read(&path).unwrap();
    let damaged = folder.join("damaged.bin");
    for len in [0, 5, 30, 100, bytes.len() - 1] {
        std::fs::write(&damaged, &bytes[..len]).unwrap();
        let e = second.load_q(&damaged).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::BadFile, "{len}: {e}");
        assert!(e.message().contains("cut short"), "{len}: {e}");
    }
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 1;
    std::fs::write(&damaged, &flipped).unwrap();
    assert!(second.load_q(&damaged).unwrap_err().message().contains("checksum"));
    std::fs::write(&damaged, [&bytes[..], b"\0"].concat()).unwrap();
    assert!(second.load_q(&damaged).unwrap_err().message().contains("goes on after the end"));
    std::fs::write(&damaged, vec![7; 5000]).unwrap();
    assert!(second.load_q(&damaged).unwrap_err().message().contains("no file of a saved Q"));
    // What was there stays in use after a failure.
    second.normal(&x, &mut z).unwrap();
    assert_eq!(y, z);

    assert_eq!(second.load_q(folder.join("missing")).unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(first.save_q(folder.join("no/such/folder/q.bin")).unwrap_err().kind(), ErrorKind::Io);
    let transforms = Options { normal: Normal::Transforms, ..options };
    let e = Plan::new(&Geometry::new(&dims, &slices(&k)), &transforms).unwrap().save_q(&path).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    std::fs::remove_file(&damaged).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "temporary files are left");
    std::fs::remove_dir(&folder).unwrap();
}

fn radial(spokes: usize, samples: usize) -> Vec<Vec<f64>> {
    let t = Trajectory::radial2d(spokes, samples, SpokeOrder::Linear).unwrap();
    (0..2).map(|a| t.axis_as(a)).collect()
}

#[test]
fn density_weights_are_k_space_areas() {
    let (spokes, samples) = (200, 128);
    let k = radial(spokes, samples);
    let plan = Plan::new(&Geometry::new(&[64, 64], &slices(&k)), &Options::default()).unwrap();
    let step = 1.0 / samples as f64;
    for (method, bound) in [
        (Density::Ramp, 0.01),
        // Its window wants to be narrow for the centre's sake: sums over it ripple.
        (Density::Jackson, 0.2),
        // More steps make single weights uneven.
        (Density::PipeMenon { iterations: 8, tolerance: 0.0 }, 0.12),
    ] {
        let w = plan.density(method).unwrap();
        // Away from the centre and the rim the area of a sample is known: pi |k| step / spokes.
        let (mut worst, mut counted) = (0.0, 0);
        for (m, w) in w.iter().enumerate() {
            let radius = k[0][m].hypot(k[1][m]);
            if radius > 0.1 && radius < 0.4 {
                let area = std::f64::consts::PI * radius * step / spokes as f64;
                worst = f64::max(worst, (w / area - 1.0).abs());
                counted += 1;
            }
        }
        assert!(counted > spokes * samples / 2 && worst < bound, "{method:?}: {worst}");
    }
    // Three samples at one place share what one would have.
    let twice: Vec<Vec<f64>> = k.iter().map(|k| k.iter().chain(&k[..samples]).copied().collect()).collect();
    let w = Plan::new(&Geometry::new(&[64, 64], &slices(&twice)), &Options::default())
        .unwrap()
        .density(Density::default())
        .unwrap();
    let (shared, alone) = (w[10], w[5 * samples + 10]);
    assert!(shared < 0.75 * alone, "{shared} against {alone}");
    for bad in [
        Density::PipeMenon { iterations: 0, tolerance: 0.1 },
        Density::PipeMenon { iterations: 5, tolerance: f64::NAN },
    ] {
        assert_eq!(plan.density(bad).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}

/// Convolved with a Gaussian of two voxels' standard deviation.
fn blurred(image: &[Complex<f64>], n: usize) -> Vec<Complex<f64>> {
    let at = |x: isize, y: isize| {
        let inside = (0..n as isize).contains(&x) && (0..n as isize).contains(&y);
        if inside {
            image[y as usize * n + x as usize]
        } else {
            Complex::default()
        }
    };
    (0..image.len() as isize)
        .map(|i| {
            let (x, y) = (i % n as isize, i / n as isize);
            let offsets = || -6..=6isize;
            offsets()
                .flat_map(|dy| offsets().map(move |dx| (dx, dy)))
                .map(|(dx, dy)| at(x + dx, y + dy) * (-((dx * dx + dy * dy) as f64) / 8.0).exp())
                .sum()
        })
        .collect()
}

#[test]
fn gridding_returns_an_object_at_its_own_scale() {
    let dims = [64usize, 64];
    let phantom = Phantom::shepp_logan_2d();
    let truth: Vec<Complex<f64>> = phantom.image(&dims, 4).unwrap().into_iter().map(|x| Complex::new(x, 0.0)).collect();
    let cartesian = Trajectory::cartesian(&dims).unwrap();
    let spiral = Trajectory::spiral(32, 1024, 8.0, 1.0).unwrap();
    let propeller = Trajectory::propeller(14, 12, 64).unwrap();
    let cartesian: Vec<Vec<f64>> = (0..2).map(|a| cartesian.axis_as(a)).collect();
    let spiral: Vec<Vec<f64>> = (0..2).map(|a| spiral.axis_as(a)).collect();
    let propeller: Vec<Vec<f64>> = (0..2).map(|a| propeller.axis_as(a)).collect();
    let radial = radial(128, 128);
    let scaled: Vec<f64> =
        radial[0].iter().zip(&radial[1]).map(|(x, y)| 1e3 * x.hypot(*y).max(1.0 / 6.0 / 128.0)).collect();
    for (name, k, weights) in [
        ("Cartesian", &cartesian, None),
        ("radial", &radial, None),
        ("radial, given weights", &radial, Some(&scaled)),
        ("spiral", &spiral, None),
        ("PROPELLER", &propeller, None),
    ] {
        let data = phantom.kspace(&dims, &slices(k), None, 1).unwrap();
        let k_slices = slices(k);
        let mut geometry = Geometry::new(&dims, &k_slices);
        geometry.weights = weights.map(|w| &w[..]);
        let plan = Plan::new(&geometry, &Options::default()).unwrap();
        let mut image = poisoned(4096);
        plan.grid(&data, &mut image).unwrap();
        // The truth's voxels are averages and the image's are not: only what is smoother than voxels is comparable.
        let smooth = blurred(&truth, dims[0]);
        let scale = inner(&smooth, &image) / inner(&smooth, &truth);
        assert!((scale.re - 1.0).abs() < 0.05 && scale.im.abs() < 0.01, "{name}: {scale}");
        let error = distance(&image, &truth);
        assert!(error < 0.26, "{name}: {error}");
    }
}

#[test]
fn gridded_k_space_leads_to_the_same_image() {
    let dims = [20usize, 14];
    let mut random = Random::fresh();
    let k = random.trajectory::<f64>(2, 600);
    let d = random.complexes::<f64>(1200);
    let plan = Plan::new(&Geometry::new(&dims, &slices(&k)).coils(2), &Options::default()).unwrap();
    let mut image = poisoned(560);
    plan.grid(&d, &mut image).unwrap();
    let g = plan.info().grid;
    let mut grid = poisoned(g[0] * g[1] * 2);
    plan.grid_kspace(&d, &mut grid).unwrap();
    let correction = [plan.window_correction(0).unwrap(), plan.window_correction(1).unwrap()];
    let cells: Vec<Vec<f64>> =
        voxels(&g).into_iter().zip(&g).map(|(u, &g)| u.iter().map(|u| u / g as f64).collect()).collect();
    for coil in 0..2 {
        let mut expected = direct(1.0, &cells, &grid[coil * g[0] * g[1]..][..g[0] * g[1]], &voxels(&dims));
        for (i, z) in expected.iter_mut().enumerate() {
            *z *= correction[0][i % 20] * correction[1][i / 20];
        }
        assert!(distance(&image[coil * 280..][..280], &expected) < 1e-12);
    }
    let exact = Options { method: Method::Exact, ..Options::default() };
    let plan = Plan::new(&Geometry::new(&dims, &slices(&k)).coils(2), &exact).unwrap();
    assert_eq!(plan.grid_kspace(&d, &mut grid).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn coil_maps_come_from_the_data() {
    for (dims, trajectory) in [
        (vec![64usize, 64], Trajectory::radial2d(100, 128, SpokeOrder::GoldenAngle).unwrap()),
        (vec![24, 24, 24], Trajectory::radial3d(900, 48).unwrap()),
    ] {
        let coils = 5;
        let voxel_count: usize = dims.iter().product();
        let model = CoilModel::ring(coils, dims.len()).unwrap();
        let phantom = if dims.len() == 2 { Phantom::shepp_logan_2d() } else { Phantom::shepp_logan_3d() };
        let truth = phantom.image(&dims, 2).unwrap();
        let sensitivities = model.maps(&dims).unwrap();
        let data: Vec<Complex<f32>> = phantom
            .kspace(&dims, &trajectory.axes(), Some(&model), 1)
            .unwrap()
            .iter()
            .map(|z| Complex::new(z.re as f32, z.im as f32))
            .collect();
        let k: Vec<Vec<f32>> = (0..dims.len()).map(|a| trajectory.axis_as(a)).collect();
        let plan = Plan::new(&Geometry::new(&dims, &slices(&k)).coils(coils), &Options::default()).unwrap();
        let maps = plan.coil_maps(&data, 0).unwrap();
        assert_eq!(maps.len(), voxel_count * coils);
        let mut image = poisoned(voxel_count * coils);
        plan.grid(&data, &mut image).unwrap();
        let (mut rss, mut adaptive) = (poisoned(voxel_count), poisoned(voxel_count));
        combine(&image, &dims, coils, Combine::RootSumOfSquares, &mut rss).unwrap();
        combine(&image, &dims, coils, Combine::Adaptive, &mut adaptive).unwrap();
        let (mut worst_angle, mut worst_norm) = (0f64, 0f64);
        let (mut power, mut difference) = (0.0, 0.0);
        for i in 0..voxel_count {
            let of = |maps: &dyn Fn(usize) -> Complex<f64>| (0..coils).map(maps).collect::<Vec<_>>();
            let s = of(&|c| sensitivities[c * voxel_count + i]);
            let m = of(&|c| wide(&maps[c * voxel_count + i..][..1])[0]);
            worst_norm = worst_norm.max((norm(&m) - 1.0).abs());
            if truth[i] > 0.15 {
                let cosine = inner(&m, &s).norm() / (norm(&m) * norm(&s));
                worst_angle = worst_angle.max((1.0 - cosine * cosine).max(0.0).sqrt());
            }
            assert_eq!(rss[i].im, 0.0);
            power += (rss[i].re as f64).powi(2);
            difference += (rss[i].re as f64 - adaptive[i].norm() as f64).powi(2);
        }
        assert!(worst_norm < 1e-5, "maps are not normalised: {worst_norm}");
        assert!(worst_angle < 0.12, "{dims:?}: sine of the worst angle {worst_angle}");
        assert!((difference / power).sqrt() < 0.05, "adaptive and RSS differ by {}", (difference / power).sqrt());
    }
}

#[test]
fn combining_checks_its_sizes() {
    let images = vec![Complex::new(3.0f32, 0.0), Complex::new(0.0, 4.0)];
    let mut out = vec![Complex::new(f32::NAN, 0.0)];
    combine(&images, &[1, 1], 2, Combine::RootSumOfSquares, &mut out).unwrap();
    assert_eq!(out[0], Complex::new(5.0, 0.0));
    let kind = |r: recon::Result<()>| r.unwrap_err().kind();
    assert_eq!(kind(combine(&images, &[1, 1], 3, Combine::RootSumOfSquares, &mut out)), ErrorKind::SizeMismatch);
    assert_eq!(kind(combine(&images, &[0, 1], 2, Combine::RootSumOfSquares, &mut out)), ErrorKind::InvalidSize);
    let nan = vec![Complex::new(f32::NAN, 0.0); 2];
    assert_eq!(kind(combine(&nan, &[1, 1], 2, Combine::Adaptive, &mut out)), ErrorKind::NotFinite);
    assert_eq!(out[0], Complex::new(5.0, 0.0));
}

#[test]
fn a_memory_limit_names_the_bytes_and_those_suffice() {
    let mut random = Random::fresh();
    let k = random.trajectory::<f32>(3, 500);
    let d = random.complexes(500);
    let geometry = Geometry::new(&[20, 20, 20], &slices(&k));
    let bytes_in = |message: &str| -> usize {
        let words: Vec<&str> = message.split([' ', ',', ':']).collect();
        let at = words.iter().position(|w| *w == "needs").unwrap();
        words[at + 1].parse().unwrap()
    };
    let plan = |limit, normal| {
        let options = Options { memory_limit: Some(limit), normal, ..Options::default() };
        Plan::new(&geometry, &options)
    };
    let e = plan(1000, Normal::Auto).err().unwrap();
    assert_eq!(e.kind(), ErrorKind::MemoryLimit);
    let needed = bytes_in(e.message());
    let small = plan(needed, Normal::Auto).unwrap();
    assert!(!small.info().toeplitz, "Q does not fit and is not used");
    assert!(small.info().host_bytes <= needed);
    let e = small.cg(&d, &mut poisoned(8000), &CgOptions::default()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::MemoryLimit);
    let enough = plan(bytes_in(e.message()), Normal::Auto).unwrap();
    enough.cg(&d, &mut poisoned(8000), &CgOptions::default()).unwrap();
    let e = plan(needed, Normal::Toeplitz).unwrap().normal(&vec![Complex::default(); 8000], &mut poisoned(8000));
    assert_eq!(e.unwrap_err().kind(), ErrorKind::MemoryLimit);
}

/// Every number that the geometry holds is checked, and named by its index.
#[test]
fn geometries_that_make_no_sense_are_refused() {
    fn kind<T: Real>(g: &Geometry<'_, T>, options: &Options) -> (ErrorKind, String) {
        let e = Plan::new(g, options).err().expect("must be refused");
        (e.kind(), e.message().to_string())
    }
    let base = Options::default();
    let good = vec![0.1f64, -0.2, 0.3];
    let with = |i: usize, v: f64| {
        let mut k = good.clone();
        k[i] = v;
        k
    };
    let refuse = |g: &Geometry<'_, f64>, options: &Options, expected: ErrorKind, words: &[&str]| {
        let (kind, message) = kind(g, options);
        assert_eq!(kind, expected, "{message}");
        for word in words {
            assert!(message.contains(word), "'{word}' is not in: {message}");
        }
    };
    let k = [&good[..], &good];
    for (value, expected, word) in [
        (f64::NAN, ErrorKind::NotFinite, "NaN"),
        (f64::INFINITY, ErrorKind::NotFinite, "inf"),
        (0.51, ErrorKind::CoordinateOutOfRange, "0.51"),
        (-0.51, ErrorKind::CoordinateOutOfRange, "-0.51"),
        (100.0, ErrorKind::CoordinateOutOfRange, "divide"),
    ] {
        let bad = with(2, value);
        refuse(&Geometry::new(&[4, 4], &[&good, &bad]), &base, expected, &["sample 2 on axis 1", word]);
    }
    refuse(&Geometry::new(&[4], &k[..1]), &base, ErrorKind::InvalidSize, &["1 dimensions"]);
    refuse(&Geometry::new(&[4, 0], &k), &base, ErrorKind::InvalidSize, &["axis 1 is 0"]);
    refuse(&Geometry::new(&[4, usize::MAX], &k), &base, ErrorKind::SizeOverflow, &["axis 1"]);
    refuse(
        &Geometry::new(&[1 << 24, 1 << 24], &k),
        &Options { memory_limit: Some(1 << 20), ..base.clone() },
        ErrorKind::MemoryLimit,
        &["needs"],
    );
    refuse(&Geometry::new(&[4, 4, 4], &k), &base, ErrorKind::SizeMismatch, &["2 coordinate arrays"]);
    refuse(&Geometry::new(&[4, 4], &[&good, &good[..2]]), &base, ErrorKind::SizeMismatch, &["2 coordinates on axis 1"]);
    refuse(&Geometry::new(&[4, 4], &[&good[..0], &good[..0]]), &base, ErrorKind::InvalidSize, &["no samples"]);
    refuse(&Geometry::new(&[4, 4], &k).coils(0), &base, ErrorKind::InvalidSize, &["0 coils"]);
    refuse(&Geometry::new(&[4, 4], &k).weights(&good[..2]), &base, ErrorKind::SizeMismatch, &["2 density weights"]);
    refuse(&Geometry::new(&[4, 4], &k).weights(&good), &base, ErrorKind::InvalidArgument, &["weight 1 is -0.2"]);
    let nan = with(1, f64::NAN);
    refuse(&Geometry::new(&[4, 4], &k).weights(&nan), &base, ErrorKind::NotFinite, &["weight 1"]);
    let maps = vec![Complex::new(1.0, 0.0); 31];
    refuse(&Geometry::new(&[4, 4], &k).coils(2).coil_maps(&maps), &base, ErrorKind::SizeMismatch, &["31", "32"]);
    let mut field = Geometry::new(&[4, 4], &k);
    field.field_map = Some(&good);
    refuse(&field, &base, ErrorKind::Unsupported, &["field map"]);
    for tolerance in [-1e-3, 1.0, 7.0, f64::NAN, f64::INFINITY] {
        for method in [Method::Nufft, Method::Exact] {
            let options = Options { tolerance, method, ..base.clone() };
            refuse(&Geometry::new(&[4, 4], &k), &options, ErrorKind::ToleranceOutOfRange, &["tolerance"]);
        }
    }
    let options = Options { device: recon::Device::Cuda(vec![1000]), ..base.clone() };
    refuse(&Geometry::new(&[4, 4], &k), &options, ErrorKind::NoDevice, &["device cpu"]);
    let mut listed = Geometry::new(&[4, 4], &k);
    listed.voxels = Some(vec![&good, &nan]);
    refuse(&listed, &base, ErrorKind::NotFinite, &["voxel 1 on axis 1"]);
    listed.voxels = Some(vec![&good, &good]);
    refuse(&listed, &Options { method: Method::Nufft, ..base.clone() }, ErrorKind::Unsupported, &["list"]);

    let plan = Plan::new(&Geometry::new(&[4, 4], &k), &base).unwrap();
    let mut image = poisoned(16);
    let mut data = vec![Complex::new(1.0, 0.0); 3];
    assert_eq!(plan.fhd(&data[..2], &mut image).unwrap_err().kind(), ErrorKind::SizeMismatch);
    data[1].im = f64::INFINITY;
    let e = plan.fhd(&data, &mut image).unwrap_err();
    assert!(e.kind() == ErrorKind::NotFinite && e.message().contains("sample 1 is 1 + infi"), "{e}");
    assert!(image.iter().all(|z| z.re.is_nan()), "the output was touched");
}

/// Every copy of the arithmetic must solve, not only the one for this machine's best vector unit.
#[test]
fn every_level_of_the_vector_unit_passes() {
    again_at_other_levels("every_level_of_the_vector_unit_passes");
}
