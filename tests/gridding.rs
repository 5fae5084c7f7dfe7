//! Gridding: an object keeps its scale, with thin axes, few samples, any extent of k-space, both methods and both
//! precisions. Gridded k-space leads to the same image.

mod common;

use common::transforms::radial;
use common::*;
use recon::phantom::Phantom;
use recon::trajectory::SpokeOrder;
use recon::{Complex, Density, ErrorKind, Geometry, Method, Options, Plan, Real, Trajectory};

/// Kind of object along an axis.
#[derive(Clone, Copy)]
enum Along {
    /// Arbitrary: k is sampled as on a Cartesian grid.
    Any,
    /// Smooth.
    Smooth,
    /// Constant: k is always 0.
    Constant,
}

/// An image, a trajectory, and the kind of object along each axis.
struct Case {
    name: &'static str,
    dims: Vec<usize>,
    k: Vec<Vec<f64>>,
    along: Vec<Along>,
}

fn case(name: &'static str, dims: &[usize], k: Vec<Vec<f64>>, along: &[Along]) -> Case {
    Case { name, dims: dims.to_vec(), k, along: along.to_vec() }
}

fn axes(trajectory: &Trajectory) -> Vec<Vec<f64>> {
    trajectory.axes().iter().map(|k| k.to_vec()).collect()
}

/// Returns a 2D trajectory repeated at each kz.
fn stacked(plane: &Trajectory, kz: &[f64]) -> Vec<Vec<f64>> {
    let repeat = |k: &[f64]| kz.iter().flat_map(|_| k.iter().copied()).collect();
    let z = kz.iter().flat_map(|&z| std::iter::repeat_n(z, plane.samples())).collect();
    vec![repeat(plane.axis(0)), repeat(plane.axis(1)), z]
}

fn cases() -> Vec<Case> {
    let radial = Trajectory::radial2d(80, 64, SpokeOrder::Linear).unwrap();
    let cartesian = |dims: &[usize]| axes(&Trajectory::cartesian(dims).unwrap());
    use Along::{Any, Constant, Smooth};
    let shrunk: Vec<Vec<f64>> = axes(&radial).iter().map(|k| k.iter().map(|k| k / 8.0).collect()).collect();
    vec![
        case("one slice, kz = 0", &[32, 32, 1], stacked(&radial, &[0.0]), &[Smooth, Smooth, Any]),
        case("one slice, kz = -0.5", &[32, 32, 1], stacked(&radial, &[-0.5]), &[Smooth, Smooth, Any]),
        case("eight slices, kz = 0 only", &[32, 32, 8], stacked(&radial, &[0.0]), &[Smooth, Smooth, Constant]),
        case("two slices", &[32, 32, 2], stacked(&radial, &[-0.5, 0.0]), &[Smooth, Smooth, Any]),
        case("three slices", &[32, 32, 3], stacked(&radial, &[-1.0 / 3.0, 0.0, 1.0 / 3.0]), &[Smooth, Smooth, Any]),
        case("Cartesian [1, 16]", &[1, 16], cartesian(&[1, 16]), &[Any, Any]),
        case("Cartesian [2, 2]", &[2, 2], cartesian(&[2, 2]), &[Any, Any]),
        case("Cartesian [3, 3]", &[3, 3], cartesian(&[3, 3]), &[Any, Any]),
        case("Cartesian [5, 5]", &[5, 5], cartesian(&[5, 5]), &[Any, Any]),
        case("Cartesian [1, 1]", &[1, 1], cartesian(&[1, 1]), &[Any, Any]),
        case("Cartesian [7, 1, 4]", &[7, 1, 4], cartesian(&[7, 1, 4]), &[Any, Any, Any]),
        case("radial to k/8", &[64, 64], shrunk, &[Smooth, Smooth]),
        case("radial", &[32, 32], axes(&radial), &[Smooth, Smooth]),
    ]
}

/// Returns an object: the product of one function for each axis.
fn object(case: &Case, random: &mut Random) -> Vec<Complex<f64>> {
    let along: Vec<Vec<Complex<f64>>> = case
        .dims
        .iter()
        .zip(&case.along)
        .map(|(&n, &along)| match along {
            Along::Any => (0..n).map(|_| Complex::new(0.7 + random.uniform(), random.uniform())).collect(),
            Along::Constant => vec![Complex::new(1.0, 0.5); n],
            // A Gaussian that ends within the image; its spectrum ends within four sample distances.
            Along::Smooth => {
                let at = |i: usize| (i as f64 - (n / 2) as f64 - 1.0) / (n as f64 / 6.0);
                (0..n).map(|i| Complex::new((-0.5 * at(i).powi(2)).exp(), 0.0)).collect()
            }
        })
        .collect();
    let total: usize = case.dims.iter().product();
    (0..total)
        .map(|mut i| {
            let factors = along.iter().map(|line| {
                let z = line[i % line.len()];
                i /= line.len();
                z
            });
            factors.product()
        })
        .collect()
}

fn check<T: Real>(case: &Case, truth: &[Complex<f64>], values: &[Complex<f64>], options: &Options, random: &Random) {
    let k: Vec<Vec<T>> = case.k.iter().map(|k| k.iter().map(|&k| T::coordinate(k)).collect()).collect();
    let values: Vec<Complex<T>> = values.iter().map(|z| Complex::new(T::of(z.re), T::of(z.im))).collect();
    let geometry = Geometry::new(&case.dims, &k.iter().map(|k| &k[..]).collect::<Vec<_>>());
    let plan = Plan::new(&geometry, options).unwrap();
    let at = |how: &str| format!("{} {} {:?} {how}, seed {}", case.name, T::NAME, options.method, random.seed);
    let compare = |image: &[Complex<T>], how: &str| {
        // The least-squares factor between image and truth.
        let square: f64 = truth.iter().map(|z| z.norm_sqr()).sum();
        let ratio = wide(image).iter().zip(truth).map(|(x, t)| x * t.conj()).sum::<Complex<f64>>() / square;
        assert!((ratio - 1.0).norm() < 0.01, "{}: image / object = {ratio}", at(how));
    };
    let mut image = poisoned(truth.len());
    plan.grid(&values, &mut image).unwrap();
    compare(&image, "grid");
    // With the weights of `density`, the weighted adjoint is the same image, without a further scale.
    let weights = plan.density(Density::default()).unwrap();
    let weighted = Plan::new(&geometry.clone().weights(&weights), options).unwrap();
    image.fill(Complex::new(T::of(f64::NAN), T::of(f64::NAN)));
    weighted.weighted_adjoint(&values, &mut image).unwrap();
    compare(&image, "density");
    // Weights of a different scale make no difference to gridding.
    let scaled: Vec<T> = weights.iter().map(|w| T::of(w.wide() * 1e4)).collect();
    let scaled = Plan::new(&geometry.clone().weights(&scaled), options).unwrap();
    image.fill(Complex::new(T::of(f64::NAN), T::of(f64::NAN)));
    scaled.grid(&values, &mut image).unwrap();
    compare(&image, "grid with weights of 1e4");
}

#[test]
fn objects_keep_their_scale() {
    let mut random = Random::fresh();
    for case in cases() {
        let truth = object(&case, &mut random);
        let values = direct(-1.0, &voxels(&case.dims), &truth, &case.k);
        for method in [Method::Nufft, Method::Exact] {
            let options = Options { method, threads: 2, ..Options::default() };
            check::<f32>(&case, &truth, &values, &options, &random);
            check::<f64>(&case, &truth, &values, &options, &random);
        }
    }
}

/// Returns an image convolved with a Gaussian with a standard deviation of two voxels.
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
    let oversampled = Trajectory::propeller_scan(9, 12, 240, 64).unwrap();
    let oversampled: Vec<Vec<f64>> = (0..2).map(|a| oversampled.axis_as(a)).collect();
    let radial = radial(128, 128);
    let scaled: Vec<f64> =
        radial[0].iter().zip(&radial[1]).map(|(x, y)| 1e3 * x.hypot(*y).max(1.0 / 6.0 / 128.0)).collect();
    for (name, k, weights) in [
        ("Cartesian", &cartesian, None),
        ("radial", &radial, None),
        ("radial, given weights", &radial, Some(&scaled)),
        ("spiral", &spiral, None),
        ("PROPELLER", &propeller, None),
        ("PROPELLER, oversampled", &oversampled, None),
    ] {
        let data = phantom.kspace(&dims, &slices(k), None, 1).unwrap();
        let k_slices = slices(k);
        let mut geometry = Geometry::new(&dims, &k_slices);
        geometry.weights = weights.map(|w| &w[..]);
        let plan = Plan::new(&geometry, &Options::default()).unwrap();
        let mut image = poisoned(4096);
        plan.grid(&data, &mut image).unwrap();
        // Voxels of the truth are averages, and voxels of the image are not, so only structures larger than a voxel can
        // be compared.
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
fn an_annulus_is_an_error_with_its_reason() {
    let spokes = Trajectory::radial2d(100, 128, SpokeOrder::GoldenAngle).unwrap();
    for hole in [0.05, 0.2] {
        let far = |m: &usize| spokes.axis(0)[*m].hypot(spokes.axis(1)[*m]) > hole;
        let kept: Vec<usize> = (0..spokes.samples()).filter(far).collect();
        let k: Vec<Vec<f64>> = (0..2).map(|a| kept.iter().map(|&m| spokes.axis(a)[m]).collect()).collect();
        let plan = Plan::new(&Geometry::new(&[64, 64], &slices(&k)), &Options::default()).unwrap();
        let mut image = vec![Complex::new(7.0, 7.0); 64 * 64];
        let error = plan.grid(&vec![Complex::new(1.0, 0.0); kept.len()], &mut image).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("centre of k-space"), "{error}");
        assert!(image.iter().all(|z| *z == Complex::new(7.0, 7.0)));
        assert_eq!(plan.density(Density::default()).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}

/// Runs the tests at all levels of the vector unit, not only at this machine's best one.
#[test]
fn every_level_of_the_vector_unit_passes() {
    again_at_other_levels();
}
