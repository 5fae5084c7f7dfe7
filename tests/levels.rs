//! The levels of the vector unit against one another.

mod common;

use common::*;
use recon::{CgOptions, Complex, Density, Device, Geometry, Method, Normal, Options, Plan, Real, Simd};

/// What a scan's operations give at one level, by name.
type Results = Vec<(String, Vec<Complex<f64>>)>;

/// A random scan of two coils, and voxels on and off a grid.
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
            plan.fhd(&self.data, &mut x).unwrap();
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

/// Levels round differently, and that is all: whoever moves to another machine sees the same images.
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
                    // Iterations carry rounding errors on and on.
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
