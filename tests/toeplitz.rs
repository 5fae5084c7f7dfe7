//! Q and E^H W E, by Q and by transforms, compared with direct sums; saving and loading Q.

mod common;

use common::transforms::*;
use common::*;
use recon::{Complex, ErrorKind, Geometry, Method, Normal, Options, Plan, Real};

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
fn both_ways_to_the_normal_operator_are_the_direct_sums() {
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
            let exact = scan.direct_normal(&x);
            for normal in [Normal::Toeplitz, Normal::Transforms] {
                let error = distance(&of(normal), &exact);
                assert!(error < bound, "{} {normal:?} {dims:?}: {error:e}, seed {}", T::NAME, random.seed);
            }
        }
    }
    check::<f32>(1e-6);
    check::<f64>(1e-14);
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
    other[1][17] -= 1e-3f32.copysign(other[1][17]);
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
    // After a failure the old Q stays in use.
    second.normal(&x, &mut z).unwrap();
    assert_eq!(y, z);

    assert_eq!(second.load_q(folder.join("missing")).unwrap_err().kind(), ErrorKind::IO);
    assert_eq!(first.save_q(folder.join("no/such/folder/q.bin")).unwrap_err().kind(), ErrorKind::IO);
    let transforms = Options { normal: Normal::Transforms, ..options };
    let e = Plan::new(&Geometry::new(&dims, &slices(&k)), &transforms).unwrap().save_q(&path).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    std::fs::remove_file(&damaged).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "temporary files are left");
    std::fs::remove_dir(&folder).unwrap();
}

/// Runs the tests at all levels of the vector unit, not only at this machine's best one.
#[test]
fn every_level_of_the_vector_unit_passes() {
    again_at_other_levels();
}
