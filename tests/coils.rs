//! Coil sensitivities found from the data, and the combination of coil images.

mod common;

use common::*;
use recon::phantom::{CoilModel, Phantom};
use recon::trajectory::SpokeOrder;
use recon::{combine, Combine, Complex, ErrorKind, Geometry, Options, Plan, Trajectory};

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

/// Every copy of the arithmetic is tested, not only the one for this machine's best vector unit.
#[test]
fn every_level_of_the_vector_unit_passes() {
    again_at_other_levels();
}
