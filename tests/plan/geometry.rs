//! Errors for implausible geometries.

use crate::common::*;
use recon::{Complex, ErrorKind, Geometry, Method, Options, Plan, Real};

/// Every number of the geometry is checked, and errors give its index.
#[test]
fn implausible_geometries_are_refused() {
    fn kind<T: Real>(g: &Geometry<'_, T>, options: &Options) -> (ErrorKind, String) {
        let e = Plan::new(g, options).err().expect("must be refused");
        (e.kind(), e.message().to_string())
    }
    let defaults = Options::default();
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
        refuse(&Geometry::new(&[4, 4], &[&good, &bad]), &defaults, expected, &["sample 2 on axis 1", word]);
    }
    refuse(&Geometry::new(&[4], &k[..1]), &defaults, ErrorKind::InvalidSize, &["1 dimensions"]);
    refuse(&Geometry::new(&[4, 0], &k), &defaults, ErrorKind::InvalidSize, &["axis 1 is 0"]);
    refuse(&Geometry::new(&[4, usize::MAX], &k), &defaults, ErrorKind::SizeOverflow, &["axis 1"]);
    refuse(
        &Geometry::new(&[1 << 24, 1 << 24], &k),
        &Options { memory_limit: Some(1 << 20), ..defaults.clone() },
        ErrorKind::MemoryLimit,
        &["needs"],
    );
    refuse(&Geometry::new(&[4, 4, 4], &k), &defaults, ErrorKind::SizeMismatch, &["2 coordinate arrays"]);
    refuse(
        &Geometry::new(&[4, 4], &[&good, &good[..2]]),
        &defaults,
        ErrorKind::SizeMismatch,
        &["2 coordinates on axis 1"],
    );
    refuse(&Geometry::new(&[4, 4], &[&good[..0], &good[..0]]), &defaults, ErrorKind::InvalidSize, &["no samples"]);
    refuse(&Geometry::new(&[4, 4], &k).coils(0), &defaults, ErrorKind::InvalidSize, &["0 coils"]);
    refuse(&Geometry::new(&[4, 4], &k).weights(&good[..2]), &defaults, ErrorKind::SizeMismatch, &["2 density weights"]);
    refuse(&Geometry::new(&[4, 4], &k).weights(&good), &defaults, ErrorKind::InvalidArgument, &["weight 1 is -0.2"]);
    let nan = with(1, f64::NAN);
    refuse(&Geometry::new(&[4, 4], &k).weights(&nan), &defaults, ErrorKind::NotFinite, &["weight 1"]);
    let maps = vec![Complex::new(1.0, 0.0); 31];
    refuse(&Geometry::new(&[4, 4], &k).coils(2).coil_maps(&maps), &defaults, ErrorKind::SizeMismatch, &["31", "32"]);
    let mut field = Geometry::new(&[4, 4], &k);
    field.field_map = Some(&good);
    refuse(&field, &defaults, ErrorKind::SizeMismatch, &["3 off-resonance frequencies", "16"]);
    for tolerance in [-1e-3, 1.0, 7.0, f64::NAN, f64::INFINITY] {
        for method in [Method::Nufft, Method::Exact] {
            let options = Options { tolerance, method, ..defaults.clone() };
            refuse(&Geometry::new(&[4, 4], &k), &options, ErrorKind::ToleranceOutOfRange, &["tolerance"]);
        }
    }
    let options = Options { device: recon::Device::Cuda(vec![1000]), ..defaults.clone() };
    refuse(&Geometry::new(&[4, 4], &k), &options, ErrorKind::NoDevice, &["device cpu"]);
    let mut listed = Geometry::new(&[4, 4], &k);
    listed.voxels = Some(vec![&good, &nan]);
    refuse(&listed, &defaults, ErrorKind::NotFinite, &["voxel 1 on axis 1"]);
    listed.voxels = Some(vec![&good, &good]);
    refuse(&listed, &Options { method: Method::Nufft, ..defaults.clone() }, ErrorKind::Unsupported, &["list"]);

    let plan = Plan::new(&Geometry::new(&[4, 4], &k), &defaults).unwrap();
    let mut image = poisoned(16);
    let mut data = vec![Complex::new(1.0, 0.0); 3];
    assert_eq!(plan.adjoint(&data[..2], &mut image).unwrap_err().kind(), ErrorKind::SizeMismatch);
    data[1].im = f64::INFINITY;
    let e = plan.adjoint(&data, &mut image).unwrap_err();
    assert!(e.kind() == ErrorKind::NotFinite && e.message().contains("sample 1 is 1 + infi"), "{e}");
    assert!(image.iter().all(|z| z.re.is_nan()), "the output was written");
}
