//! Coil sensitivities estimated from the data, and the combination of coil images.

mod common;

use common::*;
use recon::phantom::{CoilModel, Phantom};
use recon::trajectory::SpokeOrder;
use recon::{combine, CgOptions, Combine, Complex, ErrorKind, Geometry, Options, Plan, Real, Trajectory};

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
            // 0 outside the object.
            if truth[i] > 0.15 || norm(&m) > 0.0 {
                worst_norm = worst_norm.max((norm(&m) - 1.0).abs());
            }
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

/// A phantom of 8 coils on a Cartesian grid, of which `keep` selects samples by their position in units of 1/FOV.
struct Cartesian {
    dims: Vec<usize>,
    k: Vec<Vec<f64>>,
    data: Vec<Complex<f64>>,
    sensitivities: Vec<Complex<f64>>,
    object: Vec<f64>,
}

const CARTESIAN_COILS: usize = 8;

fn cartesian(dims: &[usize], keep: impl Fn(&[isize]) -> bool) -> Cartesian {
    let mut k = vec![Vec::new(); dims.len()];
    for i in 0..dims.iter().product::<usize>() {
        let mut rest = i;
        let place = |&n: &usize| {
            let at = (rest % n) as isize - (n / 2) as isize;
            rest /= n;
            at
        };
        let u: Vec<isize> = dims.iter().map(place).collect();
        if keep(&u) {
            (0..dims.len()).for_each(|a| k[a].push(u[a] as f64 / dims[a] as f64));
        }
    }
    let model = CoilModel::ring(CARTESIAN_COILS, dims.len()).unwrap();
    let phantom = if dims.len() == 2 { Phantom::shepp_logan_2d() } else { Phantom::shepp_logan_3d() };
    let data = phantom.kspace(dims, &slices(&k), Some(&model), 1).unwrap();
    let sensitivities = model.maps(dims).unwrap();
    Cartesian { dims: dims.to_vec(), k, data, sensitivities, object: phantom.image(dims, 2).unwrap() }
}

impl Cartesian {
    fn maps<T: Real>(&self, calibration: usize) -> recon::Result<Vec<Complex<T>>> {
        let k: Vec<Vec<T>> = self.k.iter().map(|k| k.iter().map(|&k| T::of(k)).collect()).collect();
        let data: Vec<Complex<T>> = self.data.iter().map(|z| Complex::new(T::of(z.re), T::of(z.im))).collect();
        let geometry = Geometry::new(&self.dims, &slices(&k)).coils(CARTESIAN_COILS);
        let plan = Plan::for_coil_maps(&geometry, &Options::default()).unwrap();
        assert_eq!(plan.warnings().len(), 0);
        plan.coil_maps(&data, calibration)
    }

    /// Returns the RMS sine of the angle between maps and true sensitivities, over the voxels with signal.
    fn angle<T: Real>(&self, maps: &[Complex<T>]) -> f64 {
        let voxels: usize = self.dims.iter().product();
        let (mut sum, mut count) = (0.0, 0.0);
        for i in (0..voxels).filter(|&i| self.object[i] > 0.15) {
            let of = |at: &dyn Fn(usize) -> Complex<f64>| (0..CARTESIAN_COILS).map(at).collect::<Vec<_>>();
            let s = of(&|c| self.sensitivities[c * voxels + i]);
            let m = of(&|c| wide(&maps[c * voxels + i..][..1])[0]);
            sum += 1.0 - (inner(&m, &s).norm() / (norm(&m) * norm(&s))).powi(2);
            count += 1.0;
        }
        (sum / count).sqrt()
    }
}

/// Returns every factor-th line of a grid, and a block of complete lines in the middle.
fn undersampled(dims: &[usize], axis: usize, factor: isize, lines: isize) -> Cartesian {
    cartesian(dims, |u| u[axis].rem_euclid(factor) == 0 || (-lines / 2..lines - lines / 2).contains(&u[axis]))
}

#[test]
fn maps_of_calibration_lines_are_those_of_the_complete_scan() {
    for (dims, axes) in [(vec![64usize, 56], 0..2), (vec![32, 30, 28], 1..3)] {
        let complete = cartesian(&dims, |_| true);
        let least = complete.angle(&complete.maps::<f32>(0).unwrap());
        assert!(least < 0.06, "{dims:?}: {least}");
        for axis in axes {
            for factor in [2, 3, 4] {
                // The lines alone, as a separate calibration scan, and lines within the undersampled scan.
                let alone = cartesian(&dims, |u| (-12..12).contains(&u[axis]));
                let within = undersampled(&dims, axis, factor, 26);
                for (name, scan) in [("alone", alone), ("within", within)] {
                    let found = scan.angle(&scan.maps::<f32>(0).unwrap());
                    assert!(found < least + 0.01, "{name}, {dims:?}, axis {axis}, factor {factor}: {found}, {least}");
                }
            }
        }
    }
}

/// Checks that samples of a Cartesian grid have equal weights, with and without given weights. A point that was
/// measured twice has half the weight each time.
#[test]
fn calibration_lines_have_equal_weights() {
    let dims = vec![64usize, 56];
    let lines = cartesian(&dims, |u| (-12..12).contains(&u[1]));
    let mut twice = cartesian(&dims, |u| (-12..12).contains(&u[1]));
    let (samples, coils) = (lines.k[0].len(), lines.data.len() / lines.k[0].len());
    twice.k.iter_mut().for_each(|k| k.extend_from_within(..samples / 2));
    twice.data = (0..coils)
        .flat_map(|c| {
            let own = &lines.data[c * samples..(c + 1) * samples];
            own.iter().chain(&own[..samples / 2]).copied()
        })
        .collect();
    let maps = |scan: &Cartesian, weights: Option<&[f64]>| {
        let k: Vec<&[f64]> = scan.k.iter().map(|k| &k[..]).collect();
        let mut geometry = Geometry::new(&dims, &k).coils(coils);
        geometry.weights = weights;
        Plan::for_coil_maps(&geometry, &Options::default()).unwrap().coil_maps(&scan.data, 0).unwrap()
    };
    let equal = maps(&lines, Some(&vec![1.0; samples]));
    assert!(distance(&equal, &maps(&lines, None)) < 1e-12);
    assert!(distance(&equal, &maps(&twice, None)) < 1e-12);
    // A tenth of a line off the grid, the weights are those of Pipe and Menon.
    let mut off = cartesian(&dims, |u| (-12..12).contains(&u[1]));
    off.k[1].iter_mut().for_each(|k| *k += 0.1 / dims[1] as f64);
    assert!(distance(&equal, &maps(&off, None)) > 1e-6);
}

/// Checks missing samples: if maps need them, the call is an error; further out, the region is narrowed.
#[test]
fn maps_of_gaps_are_refused() {
    let refused = |scan: &Cartesian, calibration: usize| {
        let error = scan.maps::<f32>(calibration).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert_eq!(scan.maps::<f64>(calibration).unwrap_err().message(), error.message());
        error.message().to_owned()
    };
    for (dims, axis) in [(vec![64usize, 56], 0), (vec![64, 56], 1), (vec![20, 24, 26], 2)] {
        for factor in [2, 3, 4] {
            for lines in [0, 2] {
                let text = refused(&undersampled(&dims, axis, factor, lines), 0);
                assert!(text.contains("gaps wider than 1/FOV") && text.contains("calibration lines"), "{text}");
            }
            let narrow = undersampled(&dims, axis, factor, 16);
            let maps = narrow.maps::<f32>(0).unwrap();
            // Maps of the narrower region are close to the truth.
            assert!(narrow.angle(&maps) < 0.1, "{dims:?} {factor}: {}", narrow.angle(&maps));
            assert!((8..=24).any(|width| narrow.maps::<f32>(width).unwrap() == maps), "{dims:?} {factor}");
        }
    }
    // One missing line through the middle.
    assert!(refused(&cartesian(&[64, 56], |u| u[1] != 0), 0).contains("gaps"));
    // Lines of one half of k-space only, and too few lines.
    assert!(refused(&cartesian(&[64, 56], |u| u[1] >= 3), 0).contains("gaps"));
    assert!(refused(&cartesian(&[64, 56], |u| (-2..2).contains(&u[1])), 0).contains("axis 1"));
    // Fewer are enough if the caller requests fewer, or the image has fewer.
    cartesian(&[64, 56], |u| (-2..2).contains(&u[1])).maps::<f32>(4).unwrap();
    for dims in [vec![1usize, 1], vec![2, 1], vec![3, 2], vec![40, 3], vec![2, 30], vec![12, 10, 1], vec![16, 3, 2]] {
        let scan = cartesian(&dims, |_| true);
        let maps = scan.maps::<f64>(0).unwrap();
        assert!(maps.iter().all(|z| z.is_finite()), "{dims:?}");
    }
}

/// Checks that undersampled spokes narrow the region only as far as their distances grow, with a warning.
#[test]
fn spokes_narrow_the_region() {
    let dims = [128usize, 128];
    let model = CoilModel::ring(4, 2).unwrap();
    let maps = |spokes: usize, order: SpokeOrder| {
        let trajectory = Trajectory::radial2d(spokes, 256, order).unwrap();
        let data = Phantom::shepp_logan_2d().kspace(&dims, &trajectory.axes(), Some(&model), 1).unwrap();
        let k: Vec<Vec<f64>> = (0..2).map(|a| trajectory.axis_as(a)).collect();
        let plan = Plan::new(&Geometry::new(&dims, &slices(&k)).coils(4), &Options::default()).unwrap();
        [0, 24, 8].map(|width| plan.coil_maps(&data, width))
    };
    for order in [SpokeOrder::Linear, SpokeOrder::GoldenAngle] {
        // Spokes of a real-time frame are narrowed, those of 24 spokes or more are not.
        for spokes in [13, 24, 48] {
            let [default, wide, narrow] = maps(spokes, order).map(|maps| maps.unwrap());
            // 48 spokes have no gaps even further out.
            assert_eq!(default == wide, spokes < 48, "{spokes} {order:?}");
            assert_ne!(default, narrow);
        }
        let [refused, _, _] = maps(4, order);
        assert!(refused.unwrap_err().message().contains("gaps wider than 1/FOV"));
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

/// Runs the tests at all levels of the vector unit, not only at this machine's best one.
#[test]
fn every_level_of_the_vector_unit_passes() {
    again_at_other_levels();
}

/// Checks spirals with gaps of 1/FOV and more. Maps come from the part of the centre that is not aliased, and are 0
/// where aliases lie. The image is then hardly worse than with the true maps. Equal density weights make no difference.
#[test]
fn undersampled_spirals_narrow_the_region() {
    let (n, coils) = (96usize, 8);
    let dims = [n, n];
    let model = CoilModel::ring(coils, 2).unwrap();
    let truth = Phantom::shepp_logan_2d().image(&dims, 4).unwrap();
    let magnitude: Vec<f64> = {
        let maps = model.maps(&dims).unwrap();
        let root = |i: usize| (0..coils).map(|c| maps[c * n * n + i].norm_sqr()).sum::<f64>().sqrt();
        truth.iter().enumerate().map(|(i, x)| x * root(i)).collect()
    };
    let unit = {
        let mut maps = model.maps(&dims).unwrap();
        for i in 0..n * n {
            let root = (0..coils).map(|c| maps[c * n * n + i].norm_sqr()).sum::<f64>().sqrt();
            (0..coils).for_each(|c| maps[c * n * n + i] /= root);
        }
        maps
    };
    for (interleaves, narrowed, without_corners) in [(5usize, true, true), (6, false, true), (7, false, false)] {
        // Gaps of 48 / 8 / interleaves in units of 1/FOV: exactly 1/FOV for 6.
        let trajectory = Trajectory::spiral(interleaves, 1536, 8.0, 1.0).unwrap();
        let data = Phantom::shepp_logan_2d().kspace(&dims, &trajectory.axes(), Some(&model), 1).unwrap();
        let k: Vec<Vec<f64>> = (0..2).map(|a| trajectory.axis_as(a)).collect();
        let geometry = Geometry::new(&dims, &slices(&k)).coils(coils);
        let error = |maps: &[Complex<f64>]| {
            let mut with_maps = geometry.clone();
            with_maps.coil_maps = Some(maps);
            let mut image = vec![Complex::new(f64::NAN, f64::NAN); n * n];
            Plan::new(&with_maps, &Options::default()).unwrap().cg(&data, &mut image, &CgOptions::default()).unwrap();
            let found: Vec<f64> = image.iter().map(|z| z.norm()).collect();
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let scale = dot(&found, &magnitude) / dot(&found, &found);
            let wrong: f64 = found.iter().zip(&magnitude).map(|(a, b)| (scale * a - b).powi(2)).sum();
            (wrong / dot(&magnitude, &magnitude)).sqrt()
        };
        let equal = vec![1.0; trajectory.samples()];
        for weights in [None, Some(&equal[..])] {
            let mut own = geometry.clone();
            own.weights = weights;
            let plan = Plan::for_coil_maps(&own, &Options::default()).unwrap();
            let maps = plan.coil_maps(&data, 0).unwrap();
            // Except in the corners, these are the maps of the central 8 samples.
            let of_eight = plan.coil_maps(&data, 8).unwrap();
            let are_equal = maps.iter().zip(&of_eight).all(|(a, b)| a == b || *a == Complex::default());
            assert_eq!(are_equal, narrowed, "{interleaves}");
            // The first voxel is a corner.
            assert_eq!(maps[0] == Complex::default(), without_corners, "{interleaves}");
            if weights.is_none() {
                let (found, least) = (error(&maps), error(&unit));
                println!(
                    "{interleaves} interleaves: {:.2} %, with the true maps {:.2} %",
                    100.0 * found,
                    100.0 * least
                );
                assert!(found < 1.3 * least, "{interleaves}: {found} {least}");
            }
        }
    }
}
