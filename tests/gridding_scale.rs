//! Gridding returns an object at its own scale: thin axes, few samples, any reach of k, both methods, both precisions.

mod common;

use common::*;
use recon::trajectory::SpokeOrder;
use recon::{Complex, Density, ErrorKind, Geometry, Method, Options, Plan, Real, Trajectory};

/// A trajectory, its image, and what its object may be along each axis.
#[derive(Clone, Copy)]
enum Along {
    /// Anything: k is sampled as by a Cartesian grid.
    Any,
    /// Smooth.
    Smooth,
    /// The same everywhere: k is always 0.
    Constant,
}

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

/// A 2D trajectory at each of some kz.
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

/// An object, random where it may be.
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
        // The number by which the image is the truth's multiple, in the least squares sense.
        let square: f64 = truth.iter().map(|z| z.norm_sqr()).sum();
        let ratio = wide(image).iter().zip(truth).map(|(x, t)| x * t.conj()).sum::<Complex<f64>>() / square;
        assert!((ratio - 1.0).norm() < 0.01, "{}: image / object = {ratio}", at(how));
    };
    let mut image = poisoned(truth.len());
    plan.grid(&values, &mut image).unwrap();
    compare(&image, "grid");
    // With the weights of recon_density the weighted adjoint is that image without anything else.
    let weights = plan.density(Density::default()).unwrap();
    let weighted = Plan::new(&geometry.clone().weights(&weights), options).unwrap();
    image.fill(Complex::new(T::of(f64::NAN), T::of(f64::NAN)));
    weighted.weighted_fhd(&values, &mut image).unwrap();
    compare(&image, "density");
    // Weights of another scale make no difference to gridding.
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
