//! Correction of PROPELLER blades, and its memory.

use crate::support::*;

const BLADES: [usize; 3] = [7, 12, 64];

const BLADE_SAMPLES: usize = BLADES[0] * BLADES[1] * BLADES[2];

const BLADE_IMAGE: usize = 48;

/// A PROPELLER scan with two coils and two frames, in which the third blade was moved.
struct BladeScene<T: Number> {
    k: [Vec<T>; 2],
    data: Vec<Complex<T>>,
}

impl<T: Number> BladeScene<T> {
    fn new() -> Self {
        let [blades, lines, readout] = BLADES;
        let mut k = [vec![T::ZERO; BLADE_SAMPLES], vec![T::ZERO; BLADE_SAMPLES]];
        let [x, y] = k.each_mut().map(|k| k.as_mut_ptr().cast());
        // SAFETY: arrays have the lengths documented.
        unsafe {
            ok(recon_trajectory_propeller(T::PRECISION, blades as u64, lines as u64, readout as u64, x, y));
        }
        let mut scene = BladeScene { k, data: poisoned::<T>(BLADE_SAMPLES * 2 * FRAMES) };
        let g = scene.geometry();
        // SAFETY: as above.
        unsafe { ok(recon_phantom_kspace(&raw const g, null(), 0, 1, 0, scene.data.as_mut_ptr().cast())) };
        for (i, z) in scene.data.iter_mut().enumerate() {
            let m = i % BLADE_SAMPLES;
            if m / (lines * readout) == 2 {
                let turn = Complex::from_polar(1.0, -6.0 * scene.k[0][m].wide());
                *z *= Complex::new(T::of(turn.re), T::of(turn.im));
            }
        }
        scene
    }

    fn geometry(&self) -> recon_geometry {
        let mut g = init(recon_geometry_init);
        g.precision = T::PRECISION;
        g.dims = [BLADE_IMAGE as u64, BLADE_IMAGE as u64, 0];
        (g.samples, g.coils, g.frames) = (BLADE_SAMPLES as u64, 2, FRAMES as u64);
        g.coordinates = [self.k[0].as_ptr().cast(), self.k[1].as_ptr().cast(), null()];
        g
    }
}

#[test]
fn blades_are_corrected_as_in_rust() {
    fn check<T: Number>() {
        let (n, frames, samples, [blades, lines, readout]) = (BLADE_IMAGE, FRAMES, BLADE_SAMPLES, BLADES);
        let scene = BladeScene::<T>::new();
        let (g, k, data) = (scene.geometry(), &scene.k, &scene.data);
        let mut how = init(recon_propeller_options_init);
        assert_eq!((how.phase, how.lines, how.rotation, how.translation, how.weighting), (0, 0, 1, 1, 1));
        how.rotation = 0;
        let rust_how = recon::PropellerOptions { rotation: false, ..Default::default() };
        let o = options(|o| o.device = 1);
        let rust_options = recon::Options { device: recon::Device::Cpu, threads: 2, ..Default::default() };
        let axes = [&k[0][..], &k[1][..]];
        let mut geometry = Geometry::new(&[n, n], &axes).coils(2);
        geometry.frames = frames;
        let expected = recon::Corrected::new(&geometry, &rust_options, &rust_how, data).unwrap();
        let mut expected_image = poisoned::<T>(n * n * 2 * frames);
        expected.grid(&geometry, &rust_options, &mut expected_image).unwrap();
        let shift = expected.motion[2].translation[0] - expected.motion[1].translation[0];
        assert!((shift - 6.0 / std::f64::consts::TAU).abs() < 0.1, "{shift}");

        let poison = vec![T::of(POISON); samples * frames];
        let (mut cx, mut cy, mut w) = (poison.clone(), poison.clone(), poison);
        let (mut corrected, mut image) = (poisoned::<T>(data.len()), poisoned::<T>(expected_image.len()));
        let mut motion = vec![POISON; 6 * blades * frames + 1];
        let mut report = init(recon_propeller_report_init);
        (report.motion, report.motion_capacity) = (motion.as_mut_ptr(), motion.len() as u64 - 1);
        report.coordinates = [cx.as_mut_ptr().cast(), cy.as_mut_ptr().cast()];
        (report.weights, report.kspace) = (w.as_mut_ptr().cast(), corrected.as_mut_ptr().cast());
        let from = data.as_ptr().cast();
        let to = image.as_mut_ptr().cast();
        // SAFETY: as above.
        unsafe { ok(recon_propeller(&raw const g, &raw const o, &raw const how, from, to, &raw mut report)) };
        assert_eq!((report.blades, report.lines, report.readout), (blades as u64, lines as u64, readout as u64));
        same(&image, &expected_image);
        same(&corrected, &expected.kspace);
        same(&cx, &expected.coordinates[0]);
        same(&cy, &expected.coordinates[1]);
        same(&w, &expected.weights);
        for (m, b) in motion.chunks_exact(6).zip(&expected.motion) {
            let [x, y] = b.translation;
            assert_eq!(m, [b.rotation, x, y, b.phase, b.correlation, b.weight]);
        }
        assert_eq!(motion[6 * blades * frames], POISON);
        assert_eq!(warnings(), []);
        // Only the motion, and only the image.
        let mut alone = init(recon_propeller_report_init);
        let mut again = poisoned::<T>(image.len());
        // SAFETY: as above.
        unsafe {
            ok(recon_propeller(&raw const g, &raw const o, &raw const how, from, null_mut(), &raw mut alone));
            assert_eq!(alone.blades, blades as u64);
            let to = again.as_mut_ptr().cast();
            ok(recon_propeller(&raw const g, &raw const o, &raw const how, from, to, null_mut()));
        }
        same(&again, &image);
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn implausible_blades_are_refused() {
    fn check<T: Number>() {
        let scene = BladeScene::<T>::new();
        let g = scene.geometry();
        let o = options(|o| o.device = 1);
        let how = init(recon_propeller_options_init);
        let from = scene.data.as_ptr().cast();
        let mut again = poisoned::<T>(BLADE_IMAGE * BLADE_IMAGE * 2 * FRAMES);
        let mut refused = |change: &dyn Fn(
            &mut recon_geometry,
            &mut recon_options,
            &mut recon_propeller_options,
            &mut recon_propeller_report,
        ),
                           status: recon_status,
                           words: &[&str]| {
            let (mut g, mut o, mut how) = (g, o, how);
            let mut report = init(recon_propeller_report_init);
            let mut motion = vec![POISON; 6 * BLADES[0] * FRAMES];
            (report.motion, report.motion_capacity) = (motion.as_mut_ptr(), motion.len() as u64);
            change(&mut g, &mut o, &mut how, &mut report);
            again.fill(Complex::new(T::of(POISON), T::of(POISON)));
            let to = again.as_mut_ptr().cast();
            // SAFETY: arrays have the lengths documented.
            let result =
                unsafe { recon_propeller(&raw const g, &raw const o, &raw const how, from, to, &raw mut report) };
            fails(result, status, words);
            untouched(&again);
            assert!(motion.iter().all(|&m| m == POISON) && report.blades == 0);
        };
        refused(&|_, _, _, r| r.motion_capacity -= 1, RECON_SIZE_MISMATCH, &["83 numbers", "84 are needed"]);
        refused(&|_, o, _, _| (o.pointers_on_device, o.device) = (1, 0), RECON_UNSUPPORTED, &["pointers_on_device"]);
        refused(&|_, _, h, _| h.phase = 3, RECON_UNKNOWN_VALUE, &["phase is 3"]);
        refused(&|_, _, h, _| h.lines = 5, RECON_INVALID_ARGUMENT, &["5 lines"]);
        refused(&|_, _, h, _| h.struct_size = 28, RECON_UNKNOWN_STRUCT_SIZE, &["recon_propeller_options_init"]);
        refused(&|_, _, _, r| r.struct_size = 8, RECON_UNKNOWN_STRUCT_SIZE, &["recon_propeller_report_init"]);
        refused(&|g, _, _, _| g.coordinates[1] = g.coordinates[0], RECON_INVALID_ARGUMENT, &["PROPELLER"]);
        refused(&|_, _, _, r| r.coordinates[1] = 8 as *mut _, RECON_INVALID_ARGUMENT, &["coordinates[0]"]);
        let to = again.as_mut_ptr().cast();
        // SAFETY: as above.
        unsafe {
            let status = recon_propeller(&raw const g, null(), null(), from, null_mut(), null_mut());
            fails(status, RECON_INVALID_ARGUMENT, &["image and report are NULL"]);
            let status = recon_propeller(&raw const g, null(), null(), null(), to, null_mut());
            fails(status, RECON_NULL_POINTER, &["kspace"]);
            let status = recon_propeller(null(), null(), null(), from, to, null_mut());
            fails(status, RECON_NULL_POINTER, &["geometry"]);
        }
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn memory_of_blades_is_estimated_as_in_rust() {
    let (n, blades, lines, readout, coils) = (48, 7, 12, 64, 3);
    let trajectory = recon::Trajectory::propeller(blades, lines, readout).unwrap();
    let k = [0, 1].map(|axis| trajectory.axis_as::<f32>(axis));
    let interleaved: Vec<f32> = k[0].iter().zip(&k[1]).flat_map(|(&x, &y)| [x, y]).collect();
    let mut g = init(recon_geometry_init);
    (g.dims, g.samples, g.coils) = ([n, n, 0], k[0].len() as u64, coils);
    g.coordinates = [k[0].as_ptr().cast(), k[1].as_ptr().cast(), null()];
    let o = options(|o| o.device = 1);
    let estimate = |g: &recon_geometry, o: *const recon_options, how: *const recon_propeller_options| {
        let mut bytes = u64::MAX;
        // SAFETY: coordinates have the length that the geometry states.
        (unsafe { recon_propeller_memory(&raw const *g, o, how, &raw mut bytes) }, bytes)
    };
    let axes = [&k[0][..], &k[1][..]];
    let size = recon::ScanSize::of(&Geometry::new(&[n as usize, n as usize], &axes).coils(coils as usize)).unwrap();
    let rust_options = recon::Options { device: recon::Device::Cpu, threads: 2, ..Default::default() };
    let expected = recon::Corrected::<f32>::memory(&size, &axes, &rust_options, &Default::default()).unwrap() as u64;
    let whole = estimate(&g, &raw const o, null());
    assert_eq!(whole, (RECON_OK, expected));
    // The coordinates of interleaved arrays are copied.
    let [x, y] = [0, 1].map(|axis| interleaved[axis..].as_ptr().cast());
    let strided = recon_geometry { coordinates: [x, y, null()], coordinate_stride: 2, ..g };
    assert_eq!(estimate(&strided, &raw const o, null()), (RECON_OK, expected + 8 * g.samples));

    let mut how = init(recon_propeller_options_init);
    (how.rotation, how.translation) = (0, 0);
    let (status, less) = estimate(&g, &raw const o, &raw const how);
    ok(status);
    assert!(less > 0 && less < expected, "{less} bytes, {expected} with all corrections");
    how.phase = 2;
    // Maps are counted by their size and not read.
    let address = std::ptr::NonNull::<Complex<f32>>::dangling().as_ptr();
    let with_maps = recon_geometry { coil_maps: address.cast(), ..g };
    ok(estimate(&with_maps, &raw const o, &raw const how).0);
    let refused = |result: (recon_status, u64), status, words: &[&str]| {
        assert_eq!(result.1, u64::MAX);
        fails(result.0, status, words);
    };
    refused(estimate(&with_maps, &raw const o, null()), RECON_UNSUPPORTED, &["coil maps"]);
    let without = recon_geometry { coordinates: [null(); 3], ..g };
    refused(estimate(&without, null(), null()), RECON_NULL_POINTER, &["coordinates[0]"]);
    let line = recon_geometry { coordinates: [g.coordinates[0], g.coordinates[0], null()], ..g };
    refused(estimate(&line, &raw const o, null()), RECON_INVALID_ARGUMENT, &["PROPELLER"]);
    how.phase = 3;
    refused(estimate(&g, null(), &raw const how), RECON_UNKNOWN_VALUE, &["phase is 3"]);
    let on_device = options(|o| (o.device, o.pointers_on_device) = (2, 1));
    refused(estimate(&g, &raw const on_device, null()), RECON_UNSUPPORTED, &["pointers_on_device"]);
    // SAFETY: as above.
    let status = unsafe { recon_propeller_memory(&raw const g, null(), null(), null_mut()) };
    fails(status, RECON_NULL_POINTER, &["host_bytes"]);
}
