//! Warnings of plans, and coordinates at the edge of k-space.

use crate::common::*;
use recon::trajectory::SpokeOrder;
use recon::{Complex, Device, ErrorKind, Geometry, Method, Options, Plan, Real, Trajectory, WarningKind, Window};

/// Returns radial coordinates divided by a number.
fn spokes(divided_by: f64) -> Vec<Vec<f32>> {
    let radial = Trajectory::radial2d(40, 96, SpokeOrder::Linear).unwrap();
    radial.axes().iter().map(|k| k.iter().map(|k| (k / divided_by) as f32).collect()).collect()
}

#[test]
fn a_small_extent_of_k_is_a_warning() {
    for (divided_by, dims, axes) in [
        (1.0, &[64usize, 64][..], &[][..]),
        (3.9, &[64, 64], &[]),
        (4.3, &[64, 64], &["axis 0", "axis 1"]),
        (64.0, &[64, 64], &["axis 0", "axis 1"]),
        // An axis of one voxel requires no extent of k.
        (64.0, &[64, 1], &["axis 0"]),
        (64.0, &[1, 1], &[]),
    ] {
        let k = spokes(divided_by);
        let plan = Plan::new(&Geometry::new(dims, &slices(&k)), &Options::default()).unwrap();
        let extents: Vec<_> = plan.warnings().into_iter().filter(|w| w.kind == WarningKind::Extent).collect();
        assert_eq!(extents.len(), usize::from(!axes.is_empty()), "{divided_by} {dims:?}");
        for axis in axes {
            let text = &extents[0].message;
            assert!(text.contains(axis) && text.contains("size twice"), "{text}");
        }
    }
}

#[test]
fn a_default_tolerance_of_a_poor_window_is_a_warning() {
    let k = spokes(1.0);
    for (window, tolerance, expected) in [
        (Window::Minimax, 0.0, 0),
        (Window::KaiserBessel, 0.0, 0),
        (Window::Bilinear, 0.0, 1),
        (Window::Bilinear, 0.3, 0),
    ] {
        let options = Options { window, tolerance, ..Options::default() };
        let plan = Plan::new(&Geometry::new(&[64, 64], &slices(&k)), &options).unwrap();
        let found: Vec<_> = plan.warnings().into_iter().filter(|w| w.kind == WarningKind::Tolerance).collect();
        assert_eq!(found.len(), expected, "{window:?} {tolerance}");
        assert!(found.iter().all(|w| w.message.contains("bilinear") && w.message.contains("1e-5")), "{found:?}");
    }
}

#[test]
fn generated_trajectories_have_no_warnings() {
    for trajectory in [
        Trajectory::cartesian(&[2, 3]).unwrap(),
        Trajectory::cartesian(&[16, 1]).unwrap(),
        Trajectory::cartesian(&[5, 4, 3]).unwrap(),
        Trajectory::radial2d(13, 32, SpokeOrder::GoldenAngle).unwrap(),
        Trajectory::radial3d(50, 32).unwrap(),
        Trajectory::spiral(4, 500, 8.0, 1.0).unwrap(),
        Trajectory::rosette(3, 500, 20.0, 13.0).unwrap(),
        Trajectory::propeller(7, 8, 64).unwrap(),
    ] {
        let k: Vec<Vec<f64>> = trajectory.axes().iter().map(|k| k.to_vec()).collect();
        let dims = [16, if trajectory.axis(1).iter().any(|&k| k != 0.0) { 16 } else { 1 }, 16];
        let plan = Plan::new(&Geometry::new(&dims[..k.len()], &slices(&k)), &Options::default()).unwrap();
        assert_eq!(plan.warnings(), []);
    }
}

/// A coordinate that is outside by rounding is moved to the edge. A coordinate further outside is refused.
#[test]
fn coordinates_outside_by_rounding_are_moved_to_the_edge() {
    fn check<T: Real>() {
        let mut random = Random::fresh();
        let dims = [14, 9];
        let d = random.complexes::<T>(3);
        let image_of = |k: [f64; 3], method: Method| {
            let k = k.map(T::of);
            let other = [T::of(0.1), T::of(-0.2), T::of(0.3)];
            let options = Options { method, ..Options::default() };
            let mut image = poisoned::<T>(dims.iter().product());
            Plan::new(&Geometry::new(&dims, &[&k[..], &other]), &options)?.adjoint(&d, &mut image)?;
            Ok::<_, recon::Error>(wide(&image))
        };
        for method in [Method::Nufft, Method::Exact] {
            let edge = image_of([-0.5, -0.5, -0.5], method).unwrap();
            for k in [0.5, 0.500_000_01, -0.500_000_01, 0.500_000_9, -0.500_000_9] {
                assert_eq!(image_of([k, -0.5, k], method).unwrap(), edge, "{} {k}", T::NAME);
            }
            for k in [0.500_002, -0.500_002, 0.51, 128.0, f64::from(u32::MAX)] {
                assert_eq!(image_of([0.0, k, 0.0], method).unwrap_err().kind(), ErrorKind::CoordinateOutOfRange);
            }
            assert_eq!(image_of([0.0, f64::NAN, 0.0], method).unwrap_err().kind(), ErrorKind::NotFinite);
        }
    }
    check::<f32>();
    check::<f64>();
}

/// For voxels that are not on a grid, 0.5 and -0.5 differ.
#[test]
fn a_list_of_voxels_distinguishes_both_edges() {
    let (k, r) = ([0.5f64, 0.500_000_3], [0.25f64, -1.5, 3.0]);
    let zeros = [0.0; 2];
    let mut geometry = Geometry::new(&[8, 8], &[&k[..], &zeros]);
    let zero = [0.0; 3];
    geometry.voxels = Some(vec![&r, &zero]);
    let plan = Plan::new(&geometry, &Options::default()).unwrap();
    let mut image = poisoned::<f64>(3);
    plan.adjoint(&[Complex::new(1.0, 0.0), Complex::default()], &mut image).unwrap();
    for (x, r) in image.iter().zip(r) {
        assert!((x - Complex::from_polar(1.0, std::f64::consts::PI * r)).norm() < 1e-12);
    }
}

/// Sizes are checked before numbers are read, so that samples which do not fit into memory are never read.
#[test]
fn scans_that_do_not_fit_are_refused_before_numbers_are_read() {
    let nan = vec![f32::NAN; 1000];
    let geometry = Geometry::new(&[16, 16], &[&nan, &nan]);
    let kind = |limit| {
        let options = Options { memory_limit: limit, device: Device::Cpu, ..Options::default() };
        Plan::new(&geometry, &options).err().expect("an error").kind()
    };
    assert_eq!(kind(Some(7999)), ErrorKind::MemoryLimit);
    assert_eq!(kind(None), ErrorKind::NotFinite);
    let short = vec![0.0f32; 999];
    let error = Plan::new(&Geometry::new(&[16, 16], &[&nan, &short]), &Options::default()).err().expect("too short");
    assert_eq!(error.kind(), ErrorKind::SizeMismatch);
}
