//! Options: values, ranges, and structures of older headers.

use crate::support::*;

#[test]
fn width_and_oversampling_are_set_or_chosen() {
    let s = Scene::<f32>::new();
    let info = |width, oversampling| {
        let plan = Handle::new(&s.geometry(), &options(|o| (o.width, o.oversampling) = (width, oversampling)));
        let info = plan.info();
        // SAFETY: the plan is alive.
        let warned = unsafe {
            let (mut kind, mut text) = (0, null());
            ok(recon_plan_warning(plan.0, 0, &raw mut kind, &raw mut text));
            (!text.is_null()).then_some(kind)
        };
        assert_eq!(warned, (info.error > 1e-5).then_some(2), "{}", info.error);
        (info.width, info.oversampling, info.error)
    };
    let initial = init(recon_options_init);
    assert_eq!((initial.width, initial.oversampling), (0, 0.0));
    let chosen = info(0, 0.0);
    assert!(chosen.2 <= 1e-5);
    let both = info(4, 1.5);
    assert!(both.0 == 4 && (1.5..2.0).contains(&both.1) && both.2 > 1e-5, "{both:?}");
    let wide = info(9, 0.0);
    assert!(wide.0 == 9 && wide.2 <= 1e-5, "{wide:?}");
    let fine = info(0, 2.5);
    assert!(fine.1 >= 2.5 && fine.0 < chosen.0 && fine.2 <= 1e-5, "{fine:?} {chosen:?}");
    // A caller of the previous version has neither field: the memory at their place is not read.
    let older = options(|o| (o.struct_size, o.width, o.oversampling) = (88, 99, -1.0));
    let plan = Handle::new(&s.geometry(), &older);
    assert_eq!((plan.info().width, plan.info().oversampling, plan.info().error), chosen);
}

/// Checks the reason for the device, and that callers of an older version get no more bytes than they have.
#[test]
fn plans_tell_why_they_compute_on_their_device() {
    let s = Scene::<f32>::new();
    let plan = Handle::new(&s.geometry(), &options(|o| o.device = recon_device::RECON_DEVICE_CPU as u32));
    let mut p = recon_plan_properties {
        device_reason: 9,
        estimated_cpu_ms: -1.0,
        estimated_gpu_ms: -1.0,
        ..init(recon_plan_properties_init)
    };
    // SAFETY: the plan is alive.
    ok(unsafe { recon_plan_info(plan.0, &raw mut p) });
    let requested = recon_device_reason::RECON_DEVICE_REQUESTED as u32;
    assert_eq!((p.device_reason, p.estimated_cpu_ms, p.estimated_gpu_ms), (requested, 0.0, 0.0));
    let mut older = recon_plan_properties { struct_size: 232, device_reason: 9, ..init(recon_plan_properties_init) };
    // SAFETY: the plan is alive.
    ok(unsafe { recon_plan_info(plan.0, &raw mut older) });
    assert_eq!((older.device_reason, older.struct_size, older.width), (9, 232, p.width));
}

#[test]
fn widths_and_oversamplings_out_of_range_are_refused() {
    let s = Scene::<f32>::new();
    let fails = |change: &dyn Fn(&mut recon_options), status, words: &[&str]| {
        create_fails(&s.geometry(), &options(|o| change(o)), status, words);
    };
    for width in [1, 17, u32::MAX] {
        fails(&|o| o.width = width, RECON_INVALID_ARGUMENT, &["width", &width.to_string(), "2 to 16"]);
    }
    fails(&|o| (o.width, o.window) = (3, 2), RECON_INVALID_ARGUMENT, &["bilinear", "3"]);
    for bad in [1.0, 1.2499, 2.51, -1.5, f64::NAN, f64::INFINITY] {
        fails(&|o| o.oversampling = bad, RECON_INVALID_ARGUMENT, &["oversampling", &bad.to_string(), "1.25 to 2.5"]);
    }
    fails(&|o| (o.width, o.method) = (4, 1), RECON_INVALID_ARGUMENT, &["width", "exact"]);
    fails(&|o| (o.oversampling, o.method) = (1.5, 1), RECON_INVALID_ARGUMENT, &["oversampling", "exact"]);
    let words = ["1e-5", "4 cells", "1.5", "a width of", "would meet it"];
    let beyond = |o: &mut recon_options| (o.width, o.oversampling, o.tolerance) = (4, 1.5, 1e-5);
    fails(&beyond, RECON_TOLERANCE_OUT_OF_RANGE, &words);
}

#[test]
fn tolerances_out_of_range_are_refused() {
    let s = Scene::<f32>::new();
    for tolerance in [1.0, -1e-3, f64::NAN, f64::INFINITY, 1e-12] {
        let status = RECON_TOLERANCE_OUT_OF_RANGE;
        create_fails(&s.geometry(), &options(|o| o.tolerance = tolerance), status, &["tolerance"]);
    }
    let o = options(|o| (o.tolerance, o.window) = (1e-3, 2));
    create_fails(&s.geometry(), &o, RECON_TOLERANCE_OUT_OF_RANGE, &["bilinear", "minimax"]);
    let refusals = CgRefusals::new();
    for bad in [1.0, -0.1, f64::NAN] {
        refusals.check(|c| c.tolerance = bad, RECON_TOLERANCE_OUT_OF_RANGE, &["residual"]);
    }
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        refusals.check(|c| c.lambda = bad, RECON_INVALID_ARGUMENT, &["lambda"]);
    }
}

/// A plan whose options of conjugate gradients are refused.
struct CgRefusals {
    scene: Scene<f32>,
    plan: Handle,
}

impl CgRefusals {
    fn new() -> Self {
        let scene = Scene::<f32>::new();
        let plan = Handle::new(&scene.combined(), &options(|_| ()));
        CgRefusals { scene, plan }
    }

    /// Asserts that recon_cg refuses changed options and leaves its outputs unchanged.
    #[track_caller]
    fn check(&self, change: impl Fn(&mut recon_cg_options), status: recon_status, words: &[&str]) {
        let mut image = poisoned::<f32>(VOXELS * FRAMES);
        let mut c = init(recon_cg_options_init);
        change(&mut c);
        let mut report = init(recon_cg_report_init);
        report.residual = POISON;
        // SAFETY: errors are found before a pointer is used.
        unsafe {
            let to = image.as_mut_ptr().cast();
            fails(recon_cg(self.plan.0, self.scene.kspace_at(), to, &raw const c, &raw mut report), status, words);
        }
        assert_eq!((report.residual, report.images), (POISON, 0));
        untouched(&image);
    }
}

#[test]
fn incomplete_priors_are_refused() {
    let refusals = CgRefusals::new();
    let reference = vec![1.0f32; VOXELS];
    let without_edge = |c: &mut recon_cg_options| {
        (c.prior, c.lambda, c.reference, c.edge) = (2, 1.0, reference.as_ptr().cast(), 0.0);
    };
    refusals.check(|c| (c.prior, c.lambda) = (2, 1.0), RECON_NULL_POINTER, &["reference"]);
    refusals.check(without_edge, RECON_INVALID_ARGUMENT, &["edge is 0"]);
    refusals.check(|c| c.prior = 4, RECON_UNKNOWN_VALUE, &["prior is 4", "3 (RECON_PRIOR_MATRIX)"]);

    let (starts, columns) = ([0u64, 1, 2], [0u64, VOXELS as u64]);
    let (beyond_memory, decreasing) = ([0u64, 1, 1 << 60], [0u64, 3, 2]);
    let values = [Complex::new(1.0f32, 0.0); 2];
    type Change<'a> = &'a dyn Fn(&mut recon_cg_options);
    let cases: [(Change<'_>, recon_status, &[&str]); 8] = [
        (&|_| (), RECON_INVALID_ARGUMENT, &["entry 1", "column 480"]),
        (&|c| c.matrix_rows = 0, RECON_INVALID_ARGUMENT, &["row starts"]),
        (&|c| c.matrix_rows = u64::MAX, RECON_SIZE_OVERFLOW, &["matrix_starts"]),
        (&|c| c.matrix_starts = null(), RECON_NULL_POINTER, &["matrix_starts"]),
        (&|c| c.matrix_columns = null(), RECON_NULL_POINTER, &["matrix_columns"]),
        (&|c| c.matrix_values = null(), RECON_NULL_POINTER, &["matrix_values"]),
        (&|c| c.matrix_starts = beyond_memory.as_ptr(), RECON_SIZE_OVERFLOW, &["matrix_columns"]),
        (&|c| c.matrix_starts = decreasing.as_ptr(), RECON_INVALID_ARGUMENT, &["not decrease"]),
    ];
    for (change, status, words) in cases {
        let matrix = |c: &mut recon_cg_options| {
            (c.prior, c.lambda, c.matrix_rows) = (3, 1.0, 2);
            (c.matrix_starts, c.matrix_columns) = (starts.as_ptr(), columns.as_ptr());
            c.matrix_values = values.as_ptr().cast();
            change(c);
        };
        refusals.check(matrix, status, words);
    }
}

#[test]
fn residual_buffers_that_are_too_small_are_refused() {
    let s = Scene::<f32>::new();
    let plan = Handle::new(&s.weighted(), &options(|_| ()));
    let mut image = poisoned::<f32>(VOXELS * COILS * FRAMES);
    let needed = (recon::defaults::ITERATIONS + 1) * COILS * FRAMES;
    let mut residuals = vec![POISON; needed];
    let mut report = init(recon_cg_report_init);
    (report.residuals, report.residual_capacity) = (residuals.as_mut_ptr(), residuals.len() as u64 - 1);
    let to = image.as_mut_ptr().cast();
    // SAFETY: refused before anything is written.
    unsafe {
        let (room, wanted) = (format!("room for {}", needed - 1), format!("{needed} are needed"));
        let words = [&room[..], &wanted, "6 images"];
        fails(recon_cg(plan.0, s.kspace_at(), to, null(), &raw mut report), RECON_SIZE_MISMATCH, &words);
        let mut c = init(recon_cg_options_init);
        c.iterations = u64::MAX;
        fails(recon_cg(plan.0, s.kspace_at(), to, &raw const c, &raw mut report), RECON_SIZE_OVERFLOW, &["history"]);
        report.residuals = null_mut();
        report.struct_size = 8;
        let status = RECON_UNKNOWN_STRUCT_SIZE;
        fails(recon_cg(plan.0, s.kspace_at(), to, null(), &raw mut report), status, &["recon_cg_report_init"]);
    }
    assert!(residuals.iter().all(|&r| r == POISON));
    untouched(&image);
}

/// Older headers have shorter options: 56 bytes before `simd` was added, 64 before `stream`, 72 before `interrupt`.
/// Programs that were compiled with them must still work.
#[test]
fn options_of_older_headers_are_read() {
    let s = Scene::<f32>::new();
    let beyond = std::ptr::without_provenance_mut(77);
    unsafe extern "C" fn never(_: *mut c_void) -> c_int {
        std::process::abort()
    }
    for (size, simd, stream) in [(56, 77, beyond), (64, 0, beyond), (72, 0, null_mut())] {
        let mut o = options(|o| (o.simd, o.stream, o.interrupt) = (77, beyond, Some(never as _)));
        // SAFETY: the structure has more bytes than struct_size.
        ok(unsafe { recon_options_init(&raw mut o, size) });
        assert_eq!((o.struct_size, o.simd, o.stream), (size, simd, stream), "written beyond the caller's structure");
        assert!(o.interrupt.is_some(), "written beyond the caller's structure");
        Handle::new(&s.geometry(), &o);
    }
}

/// The requested level is used, or is an error.
#[test]
fn the_requested_vector_unit_is_used() {
    let s = Scene::<f32>::new();
    let baseline = match std::env::consts::ARCH {
        "x86_64" => "sse",
        "aarch64" => "neon",
        _ => "portable",
    };
    for (simd, name) in [(1, baseline), (2, "avx2"), (3, "avx512"), (4, "neon")] {
        let o = options(|o| (o.device, o.simd) = (1, simd));
        let mut plan = null_mut();
        // SAFETY: structures and arrays are alive.
        match unsafe { recon_plan_create(&s.geometry(), &raw const o, &raw mut plan) } {
            RECON_OK => {
                let info = Handle(plan).info();
                // SAFETY: the text ends in 0.
                assert_eq!(unsafe { CStr::from_ptr(info.simd.as_ptr()) }.to_str().unwrap(), name);
            }
            status => {
                fails(status, RECON_UNSUPPORTED, &[&format!("level {name} was requested, but this processor has")])
            }
        }
    }
}

#[test]
fn errors_for_unknown_values_list_the_known_ones() {
    let s = Scene::<f32>::new();
    let (g, unknown) = (s.geometry(), RECON_UNKNOWN_VALUE);
    for bad in [77, u32::MAX] {
        let is = |field: &str| format!("{field} is {bad}");
        let check = |g: &recon_geometry, o: &recon_options, field: &str, known: &str| {
            create_fails(g, o, unknown, &[&is(field), known]);
        };
        check(&recon_geometry { precision: bad, ..g }, &options(|_| ()), "precision", "1 (RECON_F64)");
        check(&recon_geometry { basis: bad, ..g }, &options(|_| ()), "basis", "1 (RECON_BASIS_BOX)");
        check(&g, &options(|o| o.method = bad), "method", "2 (RECON_METHOD_NUFFT)");
        check(&g, &options(|o| o.normal = bad), "normal", "1 (RECON_NORMAL_TOEPLITZ)");
        check(&g, &options(|o| o.window = bad), "window", "3 (RECON_WINDOW_MINIMAX)");
        check(&g, &options(|o| o.device = bad), "device", "1 (RECON_DEVICE_CPU)");
        check(&g, &options(|o| o.simd = bad), "simd", "4 (RECON_SIMD_NEON)");
        let plan = Handle::new(&g, &options(|_| ()));
        let mut w = vec![POISON as f32; SAMPLES];
        // SAFETY: the array has the length documented.
        let status = unsafe { recon_density(plan.0, bad, 0, 0.0, w.as_mut_ptr().cast()) };
        fails(status, unknown, &[&is("method"), "RECON_DENSITY_RAMP"]);
        // SAFETY: no callback is installed.
        fails(unsafe { recon_set_log_callback(None, null_mut(), bad) }, unknown, &[&is("level"), "3 (RECON_LOG_INFO)"]);
        assert!(w.iter().all(|&w| w == POISON as f32));
    }
    let plan = Handle::new(&g, &options(|_| ()));
    let mut w = vec![POISON as f32; SAMPLES];
    // SAFETY: the array has the length documented.
    let status = unsafe { recon_density(plan.0, 0, 5, -1.0, w.as_mut_ptr().cast()) };
    fails(status, RECON_INVALID_ARGUMENT, &["tolerance is -1"]);
    let mut factors = [POISON; 24];
    // SAFETY: refused before anything is written.
    let status = unsafe { recon_window_correction(plan.0, 2, factors.as_mut_ptr()) };
    fails(status, RECON_INVALID_ARGUMENT, &["axis is 2"]);
    assert!(factors.iter().all(|&f| f == POISON) && w.iter().all(|&w| w == POISON as f32));
}

#[test]
fn unknown_struct_sizes_are_refused() {
    fn check<S: Copy>(init: unsafe extern "C" fn(*mut S, u32) -> recon_status, name: &str) {
        let size = size_of::<S>() as u32;
        let mut bytes = std::mem::MaybeUninit::<[S; 2]>::zeroed();
        for bad in [0, 4, size - 4, size - 1, size + 1, size + 8, u32::MAX] {
            // SAFETY: the size is refused, and nothing is written.
            let status = unsafe { init(bytes.as_mut_ptr().cast(), bad) };
            fails(status, RECON_UNKNOWN_STRUCT_SIZE, &[name, &format!("is {bad},"), &size.to_string(), "header"]);
            // SAFETY: all bytes are initialised.
            let written = unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast::<u8>(), 2 * size as usize) };
            assert!(written.iter().all(|&b| b == 0));
        }
    }
    check(recon_geometry_init, "recon_geometry");
    check(recon_options_init, "recon_options");
    check(recon_cg_options_init, "recon_cg_options");
    check(recon_cg_report_init, "recon_cg_report");
    check(recon_plan_properties_init, "recon_plan_properties");
    check(recon_device_properties_init, "recon_device_properties");
    check(recon_quality_init, "recon_quality");
    check(recon_propeller_options_init, "recon_propeller_options");
    check(recon_propeller_report_init, "recon_propeller_report");
    check(recon_partial_fourier_options_init, "recon_partial_fourier_options");
    check(recon_partial_fourier_report_init, "recon_partial_fourier_report");
    check(recon_field_map_options_init, "recon_field_map_options");
    check(recon_field_map_report_init, "recon_field_map_report");

    let s = Scene::<f32>::new();
    let (g, o) = (s.combined(), options(|_| ()));
    for bad in [0, 100, 184] {
        create_fails(
            &recon_geometry { struct_size: bad, ..g },
            &o,
            RECON_UNKNOWN_STRUCT_SIZE,
            &["recon_geometry_init"],
        );
        let o = recon_options { struct_size: bad, ..o };
        create_fails(&g, &o, RECON_UNKNOWN_STRUCT_SIZE, &["recon_options_init"]);
        let plan = Handle::new(&g, &options(|_| ()));
        let mut image = poisoned::<f32>(VOXELS * FRAMES);
        let mut c = init(recon_cg_options_init);
        c.struct_size = bad;
        // SAFETY: arrays have the lengths documented.
        let status = unsafe { recon_cg(plan.0, s.kspace_at(), image.as_mut_ptr().cast(), &raw const c, null_mut()) };
        fails(status, RECON_UNKNOWN_STRUCT_SIZE, &["recon_cg_options_init"]);
        untouched(&image);
    }
    // The size of the version in which lambda was absolute: its lambda would now have a different meaning.
    let mut c = init(recon_cg_options_init);
    // SAFETY: refused before anything is written.
    fails(unsafe { recon_cg_options_init(&raw mut c, 104) }, RECON_UNKNOWN_STRUCT_SIZE, &["104", "120"]);
}
