//! Trajectories, phantoms, metrics and the ramp.

use crate::support::*;

/// A stack of stars has the ramp of its planes, equal in all planes. A Cartesian grid has no ramp.
#[test]
fn the_ramp_is_for_stacks_of_stars_and_not_for_cartesian_grids() {
    const STAR: usize = 24 * 32;
    let mut k = vec![vec![POISON; 5 * STAR]; 3];
    let [x, y, z] = std::array::from_fn(|axis| k[axis].as_mut_ptr().cast::<c_void>());
    let mut g = init(recon_geometry_init);
    g.precision = 1;
    g.ndim = 3;
    g.dims = [16, 16, 5];
    g.samples = 5 * STAR as u64;
    g.coordinates = [x.cast_const(), y.cast_const(), z.cast_const()];
    let ramp = |w: &mut [f64]| {
        let plan = Handle::new(&g, &options(|_| ()));
        // SAFETY: the array has the length documented.
        unsafe { recon_density(plan.0, 1, 0, 0.0, w.as_mut_ptr().cast()) }
    };
    let mut w = vec![POISON; 5 * STAR];
    // SAFETY: the arrays have the lengths documented.
    unsafe { ok(recon_trajectory_stack_of_stars(1, 24, 32, 5, 1, x, y, z)) };
    ok(ramp(&mut w));
    // Weights are proportional to the radius, except at the centre. The factor also depends on the other samples.
    let slope = w[31] / k[0][31].hypot(k[1][31]);
    let volume = std::f64::consts::PI / (24.0 * 32.0) / 5.0;
    assert!((slope / volume - 1.0).abs() < 0.1, "{slope} and {volume}");
    for (m, w_m) in w.iter().enumerate().filter(|(m, _)| m % 32 != 16) {
        let wanted = slope * k[0][m].hypot(k[1][m]);
        assert!((w_m - wanted).abs() < 1e-9 * slope, "{m}: {w_m} and {wanted}");
    }
    let dims = [32_u64, 24, 5];
    // SAFETY: the arrays have the lengths documented.
    unsafe { ok(recon_trajectory_cartesian(1, 3, dims.as_ptr(), x, y, z)) };
    w.fill(POISON);
    fails(ramp(&mut w), RECON_INVALID_ARGUMENT, &["|k|^(d-1)", "pipe-menon"]);
    assert!(w.iter().all(|&w| w == POISON));
}

#[test]
fn generators_are_those_of_the_rust_api() {
    use recon::trajectory::{SpokeOrder, Trajectory};
    let dims = [6u64, 5, 4];
    let mut k = vec![vec![POISON; 120]; 3];
    let [x, y, z] = [0, 1, 2].map(|a| k[a].as_mut_ptr().cast::<c_void>());
    let check = |k: &[Vec<f64>], wanted: Trajectory| {
        for axis in 0..wanted.ndim() {
            same(&k[axis][..wanted.samples()], wanted.axis(axis));
            assert!(k[axis][wanted.samples()..].iter().all(|&k| k == POISON || wanted.samples() < 120));
        }
    };
    // SAFETY: no trajectory here has more than 120 samples.
    unsafe {
        ok(recon_trajectory_cartesian(1, 3, dims.as_ptr(), x, y, z));
        check(&k, Trajectory::cartesian(&[6, 5, 4]).unwrap());
        ok(recon_trajectory_cartesian(1, 1, dims.as_ptr(), x, null_mut(), null_mut()));
        check(&k, Trajectory::cartesian(&[6]).unwrap());
        ok(recon_trajectory_radial2d(1, 6, 20, 0, x, y));
        check(&k, Trajectory::radial2d(6, 20, SpokeOrder::Linear).unwrap());
        ok(recon_trajectory_radial2d(1, 6, 20, 1, x, y));
        check(&k, Trajectory::radial2d(6, 20, SpokeOrder::GoldenAngle).unwrap());
        ok(recon_trajectory_radial3d(1, 6, 20, x, y, z));
        check(&k, Trajectory::radial3d(6, 20).unwrap());
        for (number, order) in [(0, SpokeOrder::Linear), (1, SpokeOrder::GoldenAngle)] {
            ok(recon_trajectory_stack_of_stars(1, 3, 10, 4, number, x, y, z));
            check(&k, Trajectory::stack_of_stars(3, 10, 4, order).unwrap());
        }
        ok(recon_trajectory_spiral(1, 6, 20, 3.0, 1.5, x, y));
        check(&k, Trajectory::spiral(6, 20, 3.0, 1.5).unwrap());
        ok(recon_trajectory_rosette(1, 6, 20, 3.0, 1.5, x, y));
        check(&k, Trajectory::rosette(6, 20, 3.0, 1.5).unwrap());
        ok(recon_trajectory_lissajous(1, 6, 20, 8, 7, x, y));
        check(&k, Trajectory::lissajous(6, 20, 8, 7).unwrap());
        ok(recon_trajectory_propeller(1, 3, 2, 20, x, y));
        check(&k, Trajectory::propeller(3, 2, 20).unwrap());
        ok(recon_trajectory_propeller_scan(1, 3, 2, 20, 8, x, y));
        check(&k, Trajectory::propeller_scan(3, 2, 20, 8).unwrap());

        k.iter_mut().for_each(|k| k.fill(POISON));
        fails(recon_trajectory_cartesian(1, 0, dims.as_ptr(), x, y, z), RECON_INVALID_SIZE, &["ndim is 0"]);
        fails(recon_trajectory_cartesian(1, 4, dims.as_ptr(), x, y, z), RECON_INVALID_SIZE, &["ndim is 4"]);
        fails(recon_trajectory_cartesian(1, 2, null(), x, y, z), RECON_NULL_POINTER, &["dims"]);
        fails(recon_trajectory_cartesian(1, 3, dims.as_ptr(), x, y, null_mut()), RECON_NULL_POINTER, &["kz"]);
        fails(recon_trajectory_cartesian(2, 3, dims.as_ptr(), x, y, z), RECON_UNKNOWN_VALUE, &["precision is 2"]);
        fails(recon_trajectory_radial2d(1, 0, 20, 1, x, y), RECON_INVALID_SIZE, &["spokes is 0"]);
        fails(recon_trajectory_radial2d(1, 6, 20, 2, x, y), RECON_UNKNOWN_VALUE, &["order is 2", "GOLDEN"]);
        fails(recon_trajectory_radial2d(1, 6, 20, 1, null_mut(), y), RECON_NULL_POINTER, &["kx"]);
        fails(recon_trajectory_radial2d(1, 6, 20, 1, x, x), RECON_INVALID_ARGUMENT, &["kx", "ky", "overlap"]);
        fails(recon_trajectory_radial2d(1, 1 << 60, 1 << 60, 1, x, y), RECON_SIZE_OVERFLOW, &[]);
        fails(recon_trajectory_radial2d(1, 1 << 25, 1 << 25, 1, x, y), RECON_SIZE_OVERFLOW, &["process"]);
        fails(recon_trajectory_radial2d(1, 1, u64::MAX, 1, x, y), RECON_SIZE_OVERFLOW, &[]);
        fails(recon_trajectory_radial3d(1, 6, 20, x, null_mut(), z), RECON_NULL_POINTER, &["ky"]);
        fails(recon_trajectory_stack_of_stars(1, 3, 10, 0, 0, x, y, z), RECON_INVALID_SIZE, &["0 partitions"]);
        fails(recon_trajectory_stack_of_stars(1, 3, 10, 4, 2, x, y, z), RECON_UNKNOWN_VALUE, &["order is 2", "GOLDEN"]);
        fails(
            recon_trajectory_stack_of_stars(1, 3, 10, 4, 0, x, y, y),
            RECON_INVALID_ARGUMENT,
            &["ky", "kz", "overlap"],
        );
        fails(recon_trajectory_stack_of_stars(1, 3, 10, 4, 0, x, y, null_mut()), RECON_NULL_POINTER, &["kz"]);
        fails(recon_trajectory_stack_of_stars(1, 1 << 40, 1, 1 << 40, 0, x, y, z), RECON_SIZE_OVERFLOW, &[]);
        fails(recon_trajectory_spiral(1, 6, 20, f64::NAN, 1.0, x, y), RECON_INVALID_ARGUMENT, &["turns"]);
        fails(recon_trajectory_rosette(1, 6, 20, 3.0, 0.0, x, y), RECON_INVALID_ARGUMENT, &["angular"]);
        fails(recon_trajectory_lissajous(1, 6, 20, 8, 6, x, y), RECON_INVALID_ARGUMENT, &["common factor 2"]);
        fails(recon_trajectory_lissajous(1, 6, 20, 5, 7, x, y), RECON_INVALID_ARGUMENT, &["both odd"]);
        fails(recon_trajectory_lissajous(1, 6, 0, 8, 7, x, y), RECON_INVALID_SIZE, &["samples is 0"]);
        fails(recon_trajectory_lissajous(1, 6, 20, 8, 7, x, null_mut()), RECON_NULL_POINTER, &["ky"]);
        fails(recon_trajectory_propeller(1, 3, 5, 8, x, y), RECON_INVALID_ARGUMENT, &["5 lines"]);
        fails(recon_trajectory_propeller_scan(1, 3, 5, 8, 8, x, y), RECON_INVALID_ARGUMENT, &["at most 4 lines"]);
        fails(recon_trajectory_propeller_scan(1, 3, 2, 8, 20, x, y), RECON_INVALID_ARGUMENT, &["8 samples", "20"]);
        fails(recon_trajectory_propeller_scan(1, 3, 2, 20, 0, x, y), RECON_INVALID_SIZE, &["scan matrix is 0"]);
        fails(recon_trajectory_propeller_scan(1, 3, 2, 20, 8, null_mut(), y), RECON_NULL_POINTER, &["kx"]);
        fails(recon_trajectory_propeller_scan(1, 3, 2, 20, 8, x, x), RECON_INVALID_ARGUMENT, &["kx", "ky", "overlap"]);
        assert!(k.iter().flatten().all(|&k| k == POISON));
    }
}

/// The k-space of a phantom with maps equals that of the Rust API in both precisions. Errors leave the output
/// unchanged.
#[test]
fn phantoms_with_off_resonance_are_those_of_the_rust_api() {
    use recon::phantom::{CoilModel, Phantom};
    use recon::simulated_scan::{phantom_kspace, subdivision};
    use recon::{Device, Geometry, Options};
    fn check<T: Number>(s: &Scene<T>, bound: f64) {
        let of = |count: usize, scale: f64| -> Vec<T> { (0..count).map(|i| T::of(scale * (i % 17) as f64)).collect() };
        let (field, decay, times) = (of(VOXELS, 5.0), of(VOXELS, 2.0), of(SAMPLES, 1e-3));
        let wide = |x: &[T]| x.iter().map(|x| x.wide()).collect::<Vec<f64>>();
        let g = recon_geometry { frames: 2, ..s.geometry() };
        let with_maps = recon_geometry {
            field_map: field.as_ptr().cast(),
            decay_map: decay.as_ptr().cast(),
            times: times.as_ptr().cast(),
            ..g
        };
        let (k, f, r, t) = (s.k.iter().map(|k| wide(k)).collect::<Vec<_>>(), wide(&field), wide(&decay), wide(&times));
        let axes = [&k[0][..], &k[1][..]];
        let mut geometry = Geometry::new(&N, &axes).field_map(&f, &t);
        geometry.decay_map = Some(&r);
        let ring = CoilModel::ring(COILS, 2).unwrap();
        let options = Options { device: Device::Cpu, ..Options::default() };
        let phantom = Phantom::shepp_logan_2d();
        let wanted = phantom_kspace(&phantom, &geometry, Some(&ring), subdivision(2), &options).unwrap();
        let mut found = poisoned::<T>(2 * SAMPLES * COILS);
        let at = found.as_mut_ptr().cast();
        // SAFETY: arrays have the lengths documented.
        unsafe { ok(recon_phantom_kspace(&raw const with_maps, null(), 0, 1, 2, at)) };
        for frame in found.chunks_exact(wanted.len()) {
            let error = frame.iter().zip(&wanted).map(|(z, w)| (Complex::new(z.re.wide(), z.im.wide()) - w).norm());
            assert!(error.fold(0.0, f64::max) <= bound * wanted.iter().map(|w| w.norm()).fold(0.0, f64::max));
        }
        let refused = |g: recon_geometry, status: recon_status, words: &[&str]| {
            let mut out = poisoned::<T>(2 * SAMPLES * COILS);
            // SAFETY: as above.
            fails(
                unsafe { recon_phantom_kspace(&raw const g, null(), 0, 1, 0, out.as_mut_ptr().cast()) },
                status,
                words,
            );
            assert!(out.iter().all(|z| z.re == T::of(POISON)));
        };
        refused(recon_geometry { times: null(), ..with_maps }, RECON_INVALID_ARGUMENT, &["without times"]);
        let only_times = recon_geometry { field_map: null(), decay_map: null(), ..with_maps };
        refused(only_times, RECON_INVALID_ARGUMENT, &["without a field map"]);
        let listed = recon_geometry { voxels: g.coordinates, voxel_count: SAMPLES as u64, ..with_maps };
        let (field, decay) = (of(SAMPLES, 1.0), of(SAMPLES, 1.0));
        let listed = recon_geometry { field_map: field.as_ptr().cast(), decay_map: decay.as_ptr().cast(), ..listed };
        refused(listed, RECON_UNSUPPORTED, &["list of voxels"]);
    }
    check(&Scene::<f64>::new(), 0.0);
    check(&Scene::<f32>::new(), 1e-6);
}

#[test]
fn phantoms_are_those_of_the_rust_api() {
    use recon::phantom::{add_noise, CoilModel, Ellipsoid, Phantom};
    let s = Scene::<f64>::new();
    let g = recon_geometry { frames: 1, ..s.geometry() };
    let axes = [&s.k[0][..], &s.k[1][..]];
    let ring = CoilModel::ring(COILS, 2).unwrap();
    let shape =
        Ellipsoid { density: 2.0, centre: [0.1, 0.2, 0.0], semi_axes: [0.3, 0.4, 1.0], angles: [0.5, 0.0, 0.0] };
    let table = [2.0, 0.1, 0.2, 0.0, 0.3, 0.4, 1.0, 0.5, 0.0, 0.0];
    // SAFETY: arrays have the lengths documented.
    unsafe {
        let mut a = poisoned::<f64>(SAMPLES * COILS);
        let at = a.as_mut_ptr().cast();
        ok(recon_phantom_kspace(&raw const g, null(), 0, 1, 1, at));
        let mut wanted = Phantom::shepp_logan_2d().kspace(&N, &axes, Some(&ring), 1).unwrap();
        same(&a, &wanted);
        let mut deviation = 0.0;
        ok(recon_add_noise(&raw const g, 30.0, 5, at, &raw mut deviation));
        assert_eq!(deviation, add_noise(&mut wanted, 30.0, 5).unwrap());
        same(&a, &wanted);
        let one = recon_geometry { coils: 1, frames: 2, ..g };
        ok(recon_phantom_kspace(&raw const one, table.as_ptr(), 1, 0, 0, at));
        let phantom = Phantom::new(2, vec![shape]).unwrap();
        let wanted = phantom.kspace(&N, &axes, None, 0).unwrap();
        same(&a[..SAMPLES], &wanted);
        same(&a[SAMPLES..2 * SAMPLES], &wanted);

        let mut maps = poisoned::<f64>(VOXELS * COILS);
        ok(recon_phantom_coil_maps(&raw const g, maps.as_mut_ptr().cast()));
        same(&maps, &ring.maps(&N).unwrap());
        let (mut truth, mut image) = (poisoned::<f64>(VOXELS), poisoned::<f64>(VOXELS));
        ok(recon_phantom_image(&raw const g, null(), 0, 3, truth.as_mut_ptr().cast()));
        let wanted = Phantom::shepp_logan_2d().image(&N, 3).unwrap();
        assert!(truth.iter().zip(&wanted).all(|(z, w)| *z == Complex::new(*w, 0.0)));
        ok(recon_phantom_image(&raw const g, table.as_ptr(), 1, 2, image.as_mut_ptr().cast()));
        let solid = recon_geometry { ndim: 3, dims: [4, 5, 6], ..g };
        ok(recon_phantom_image(&raw const solid, null(), 0, 1, image.as_mut_ptr().cast()));
        assert!(image[..120]
            .iter()
            .zip(Phantom::shepp_logan_3d().image(&[4, 5, 6], 1).unwrap())
            .all(|(z, w)| z.re == w));
    }
}

#[test]
fn metrics_are_those_of_the_rust_api() {
    use recon::metrics::{compare, compare_magnitude, Scale};
    let s = Scene::<f64>::new();
    let g = recon_geometry { frames: 1, ..s.geometry() };
    let (mut truth, mut image) = (poisoned::<f64>(VOXELS), poisoned::<f64>(VOXELS));
    // SAFETY: arrays have the lengths documented.
    unsafe {
        ok(recon_phantom_image(&raw const g, null(), 0, 3, truth.as_mut_ptr().cast()));
        for (i, z) in image.iter_mut().enumerate() {
            *z = truth[i] * Complex::new(0.9, 0.2) + 0.01 * (i as f64).sin();
        }
        let mask: Vec<u8> = (0..VOXELS).map(|i| (i % 3) as u8).collect();
        let included: Vec<bool> = mask.iter().map(|&m| m != 0).collect();
        let mut q = init(recon_quality_init);
        let (x, t) = (image.as_ptr().cast(), truth.as_ptr().cast());
        ok(recon_metrics(&raw const g, x, t, null(), 0, 1, &raw mut q));
        let m = compare(&image, &truth, Scale::Best, None).unwrap();
        assert_eq!((q.percent_error, q.mse, q.psnr_db, q.snr_db), (m.percent_error, m.mse, m.psnr_db, m.snr_db));
        assert_eq!(Complex::new(q.scale_re, q.scale_im), m.scale);
        ok(recon_metrics(&raw const g, x, t, mask.as_ptr(), 1, 0, &raw mut q));
        let m = compare_magnitude(&image, &truth, Scale::None, Some(&included)).unwrap();
        assert_eq!((q.percent_error, q.scale_re), (m.percent_error, 1.0));

        // An error leaves the structure unchanged.
        q.mse = POISON;
        let zeros = vec![0u8; VOXELS];
        fails(recon_metrics(&raw const g, x, t, zeros.as_ptr(), 0, 0, &raw mut q), RECON_INVALID_SIZE, &["mask"]);
        fails(recon_metrics(&raw const g, x, t, null(), 2, 0, &raw mut q), RECON_UNKNOWN_VALUE, &["part is 2"]);
        fails(recon_metrics(&raw const g, x, t, null(), 0, 9, &raw mut q), RECON_UNKNOWN_VALUE, &["scale is 9"]);
        fails(recon_metrics(&raw const g, null(), t, null(), 0, 0, &raw mut q), RECON_NULL_POINTER, &["image"]);
        fails(recon_metrics(&raw const g, x, null(), null(), 0, 0, &raw mut q), RECON_NULL_POINTER, &["truth"]);
        fails(recon_metrics(null(), x, t, null(), 0, 0, &raw mut q), RECON_NULL_POINTER, &["geometry"]);
        image[7].im = f64::NAN;
        fails(recon_metrics(&raw const g, x, t, null(), 0, 0, &raw mut q), RECON_NOT_FINITE, &["voxel 7 "]);
        assert_eq!(q.mse, POISON);
        fails(recon_metrics(&raw const g, x, t, null(), 0, 0, null_mut()), RECON_NULL_POINTER, &["quality"]);
    }
}

#[test]
fn implausible_phantoms_are_refused() {
    let s = Scene::<f64>::new();
    let g = recon_geometry { frames: 1, ..s.geometry() };
    let table = [2.0, 0.1, 0.2, 0.0, 0.3, 0.4, 1.0, 0.5, 0.0, 0.0];
    // SAFETY: arrays have the lengths documented.
    unsafe {
        let mut a = poisoned::<f64>(SAMPLES * COILS);
        let at = a.as_mut_ptr().cast();
        fails(recon_phantom_kspace(&raw const g, null(), 0, 2, 0, at), RECON_UNKNOWN_VALUE, &["coil_model is 2"]);
        fails(recon_phantom_kspace(&raw const g, null(), 0, 0, 0, at), RECON_SIZE_MISMATCH, &["coils is 3"]);
        fails(recon_phantom_kspace(&raw const g, null(), 4, 1, 0, at), RECON_NULL_POINTER, &["shapes"]);
        fails(recon_phantom_kspace(&raw const g, table.as_ptr(), 0, 1, 0, at), RECON_INVALID_SIZE, &["no shapes"]);
        fails(recon_phantom_kspace(&raw const g, table.as_ptr(), 1 << 60, 1, 0, at), RECON_SIZE_OVERFLOW, &[]);
        fails(recon_phantom_kspace(null(), null(), 0, 1, 0, at), RECON_NULL_POINTER, &["geometry"]);
        fails(recon_phantom_kspace(&raw const g, null(), 0, 1, 0, null_mut()), RECON_NULL_POINTER, &["kspace"]);
        fails(recon_phantom_image(&raw const g, null(), 0, 0, at), RECON_INVALID_SIZE, &["points"]);
        fails(recon_phantom_image(&raw const g, null(), 0, 1, null_mut()), RECON_NULL_POINTER, &["image"]);
        fails(recon_phantom_coil_maps(&raw const g, null_mut()), RECON_NULL_POINTER, &["maps"]);
        let none = recon_geometry { coils: 0, ..g };
        fails(recon_phantom_coil_maps(&raw const none, at), RECON_INVALID_SIZE, &["coils is 0"]);
        fails(recon_add_noise(&raw const g, 0.0, 1, at, null_mut()), RECON_INVALID_ARGUMENT, &["signal to noise"]);
        fails(recon_add_noise(&raw const g, 1.0, 1, null_mut(), null_mut()), RECON_NULL_POINTER, &["kspace"]);
        fails(recon_add_noise(&raw const none, 1.0, 1, at, null_mut()), RECON_INVALID_SIZE, &["no samples"]);
        fails(recon_add_noise(&raw const g, 1.0, 1, at, at.cast()), RECON_INVALID_ARGUMENT, &["overlap"]);
        untouched(&a);
    }
}
