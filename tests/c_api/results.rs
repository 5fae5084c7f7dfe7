//! Results of transforms and reconstructions equal those of the Rust API.

use crate::support::*;

fn results_are_those_of_the_rust_api<T: Number>(maps: bool, method: u32) {
    let s = Scene::<T>::new();
    let (g, mut rust) = if maps { (s.combined(), s.rust()) } else { (s.weighted(), s.rust()) };
    rust.weights = Some(&s.weights);
    rust.coil_maps = maps.then_some(&s.maps);
    let tolerance = 1e-5;
    let plan = Handle::new(&g, &options(|o| (o.tolerance, o.method) = (tolerance, method)));
    let rust_options = Options {
        tolerance,
        threads: 1,
        method: if method == 1 { recon::Method::Exact } else { recon::Method::Auto },
        ..Options::default()
    };
    let rust = Plan::new(&rust, &rust_options).unwrap();
    let info = plan.info();
    assert_eq!(info.image_elements as usize, rust.image_len());
    assert_eq!(info.kspace_elements as usize, rust.kspace_len());
    assert_eq!(info.q_elements as usize, rust.q_len());
    assert_eq!(rust.image_len(), VOXELS * FRAMES * if maps { 1 } else { COILS });
    transforms_are_equal(&s, &plan, &rust);
    weights_and_maps_are_equal(&s, &plan, &rust);
    descriptions_are_equal(&s, &plan, &rust, method);
}

/// Asserts that transforms, images and Q of a plan equal those of the Rust API.
fn transforms_are_equal<T: Number>(s: &Scene<T>, plan: &Handle, rust: &Plan<T>) {
    let images = || (poisoned::<T>(rust.image_len()), poisoned::<T>(rust.image_len()));
    let image = &s.image[..rust.image_len()];
    // SAFETY: arrays have the lengths documented.
    unsafe {
        let (mut a, mut b) = (poisoned(rust.kspace_len()), poisoned(rust.kspace_len()));
        ok(recon_forward(plan.0, image.as_ptr().cast(), a.as_mut_ptr().cast()));
        rust.forward(image, &mut b).unwrap();
        same(&a, &b);

        let (mut a, mut b) = images();
        ok(recon_fhd(plan.0, s.kspace_at(), a.as_mut_ptr().cast()));
        rust.adjoint(&s.kspace, &mut b).unwrap();
        same(&a, &b);
        ok(recon_weighted_fhd(plan.0, s.kspace_at(), a.as_mut_ptr().cast()));
        rust.weighted_adjoint(&s.kspace, &mut b).unwrap();
        same(&a, &b);
        ok(recon_grid(plan.0, s.kspace_at(), a.as_mut_ptr().cast()));
        rust.grid(&s.kspace, &mut b).unwrap();
        same(&a, &b);
        for (number, filter) in
            [Filter::RamLak, Filter::SheppLogan, Filter::Cosine, Filter::Hamming, Filter::Hann].into_iter().enumerate()
        {
            ok(recon_fbp(plan.0, number as u32, s.kspace_at(), a.as_mut_ptr().cast()));
            rust.fbp(filter, &s.kspace, &mut b).unwrap();
            same(&a, &b);
        }
        ok(recon_normal(plan.0, image.as_ptr().cast(), a.as_mut_ptr().cast()));
        rust.normal(image, &mut b).unwrap();
        same(&a, &b);

        let (mut a, mut b) = (poisoned::<T>(rust.q_len()), poisoned(rust.q_len()));
        ok(recon_q(plan.0, a.as_mut_ptr().cast()));
        rust.q(&mut b).unwrap();
        same(&a, &b);
    }
}

/// Asserts that density weights and coil maps equal those of the Rust API.
fn weights_and_maps_are_equal<T: Number>(s: &Scene<T>, plan: &Handle, rust: &Plan<T>) {
    // SAFETY: arrays have the lengths documented.
    unsafe {
        for (number, density) in [
            (0, Density::default()),
            (1, Density::Ramp),
            (2, Density::Jackson),
            (0, Density::PipeMenon { iterations: 4, tolerance: 0.0 }),
        ] {
            let mut w = vec![T::of(POISON); SAMPLES];
            let iterations = if density == Density::default() { 0 } else { 4 };
            ok(recon_density(plan.0, number, iterations, 0.0, w.as_mut_ptr().cast()));
            same(&w, &rust.density(density).unwrap());
        }
        let mut a = poisoned::<T>(VOXELS * COILS);
        ok(recon_coil_maps(plan.0, s.kspace_at(), 12, a.as_mut_ptr().cast()));
        same(&a, &rust.coil_maps(&s.kspace, 12).unwrap());
    }
}

/// Asserts that the description of a plan, gridded k-space and the factors of the window equal those of the Rust API.
fn descriptions_are_equal<T: Number>(s: &Scene<T>, plan: &Handle, rust: &Plan<T>, method: u32) {
    let (info, expected) = (plan.info(), rust.info());
    // SAFETY: arrays have the lengths documented.
    unsafe {
        if method != 1 {
            assert_eq!(info.method, recon_method::RECON_METHOD_NUFFT as u32);
            assert_eq!([info.grid[0] as usize, info.grid[1] as usize], expected.grid[..]);
            assert_eq!((info.grid[2], info.width as usize), (1, expected.width));
            let len = (info.grid[0] * info.grid[1]) as usize * COILS * FRAMES;
            assert_eq!(info.grid_elements as usize, len);
            let (mut a, mut b) = (poisoned::<T>(len), poisoned(len));
            ok(recon_grid_kspace(plan.0, s.kspace_at(), a.as_mut_ptr().cast()));
            rust.grid_kspace(&s.kspace, &mut b).unwrap();
            same(&a, &b);
            for (axis, n) in N.into_iter().enumerate() {
                let mut factors = vec![POISON; n];
                ok(recon_window_correction(plan.0, axis as u32, factors.as_mut_ptr()));
                same(&factors, &rust.window_correction(axis).unwrap());
            }
        } else {
            assert_eq!((info.method, info.width, info.grid_elements), (1, 0, 0));
        }
        let threads = if expected.device == "cpu" { 2 } else { 1 };
        assert_eq!((info.threads, info.ndim, info.precision), (threads, 2, T::PRECISION));
        assert_eq!(info.toeplitz == 1, expected.toeplitz);
        assert_eq!(CStr::from_ptr(info.device.as_ptr()).to_str().unwrap(), expected.device);
        assert_eq!(CStr::from_ptr(info.simd.as_ptr()).to_str().unwrap(), expected.simd);
        assert!(info.error > 0.0 && info.seconds > 0.0 && info.host_bytes > 0);
    }
}

#[test]
fn results_are_those_of_the_rust_api_f32() {
    results_are_those_of_the_rust_api::<f32>(false, 0);
    results_are_those_of_the_rust_api::<f32>(true, 0);
    results_are_those_of_the_rust_api::<f32>(true, 1);
}

#[test]
fn results_are_those_of_the_rust_api_f64() {
    results_are_those_of_the_rust_api::<f64>(false, 0);
    results_are_those_of_the_rust_api::<f64>(true, 0);
    results_are_those_of_the_rust_api::<f64>(false, 1);
}

fn cg_is_that_of_the_rust_api<T: Number>() {
    let s = Scene::<T>::new();
    let mut rust = s.rust().weights(&s.weights);
    rust.coil_maps = Some(&s.maps);
    let rust = Plan::new(&rust, &Options::default()).unwrap();
    let plan = Handle::new(&s.combined(), &options(|_| ()));
    let reference: Vec<T> = (0..VOXELS).map(|i| T::of((i / 100) as f64)).collect();
    let starts: Vec<u64> = (0..=VOXELS as u64).map(|i| 2 * i).collect();
    let columns: Vec<u64> = (0..VOXELS as u64).flat_map(|i| [i, (i + 5) % VOXELS as u64]).collect();
    let values: Vec<Complex<T>> =
        (0..2 * VOXELS).map(|i| Complex::new(T::of(1.0 + (i % 3) as f64), T::of(0.1 * (i % 5) as f64))).collect();
    let initial = &s.image[..VOXELS * FRAMES];
    let matrix = recon::Matrix { rows: &starts, columns: &columns, values: &values };
    let priors = [
        Prior::Identity,
        Prior::Differences,
        Prior::Anatomical { reference: &reference, edge: 0.2 },
        Prior::Matrix(matrix),
    ];
    for (number, prior) in priors.into_iter().enumerate() {
        let expected = CgOptions {
            iterations: 9,
            tolerance: 1e-3,
            lambda: 2.0,
            lambda_unit: LambdaUnit::Absolute,
            prior,
            noise_level: 0.0,
            initial: Some(initial),
        };
        let mut b = poisoned::<T>(VOXELS * FRAMES);
        let wanted = rust.cg(&s.kspace, &mut b, &expected).unwrap();

        let mut o = init(recon_cg_options_init);
        (o.iterations, o.tolerance, o.lambda, o.prior, o.edge) = (9, 1e-3, 2.0, number as u32, 0.2);
        o.lambda_unit = 1;
        o.initial = initial.as_ptr().cast();
        o.reference = reference.as_ptr().cast();
        o.matrix_rows = VOXELS as u64;
        (o.matrix_starts, o.matrix_columns) = (starts.as_ptr(), columns.as_ptr());
        o.matrix_values = values.as_ptr().cast();
        let mut calls: Vec<(u64, u64, f64)> = Vec::new();
        o.progress = Some(record_progress);
        o.user_data = (&raw mut calls).cast();
        let mut residuals = vec![POISON; 10 * FRAMES + 1];
        let mut report = init(recon_cg_report_init);
        (report.residuals, report.residual_capacity) = (residuals.as_mut_ptr(), residuals.len() as u64);
        let mut a = poisoned::<T>(VOXELS * FRAMES);
        // SAFETY: arrays have the lengths documented.
        unsafe { ok(recon_cg(plan.0, s.kspace_at(), a.as_mut_ptr().cast(), &raw const o, &raw mut report)) };
        same(&a, &b);

        assert_eq!(report.images as usize, FRAMES);
        let last = |i: usize| *wanted.runs[i].residuals.last().unwrap();
        let worst = if last(1) >= last(0) { 1 } else { 0 };
        assert_eq!((report.worst_image as usize, report.residual), (worst, last(worst)));
        assert_eq!(report.iterations as usize, wanted.runs[worst].iterations());
        assert_eq!(report.stop, wanted.runs[worst].stop as u32);
        assert!(report.adjoint_seconds > 0.0 && report.iteration_seconds > 0.0 && report.q_seconds >= 0.0);
        let mut expected_calls = Vec::new();
        for (i, run) in wanted.runs.iter().enumerate() {
            same(&residuals[10 * i..][..run.residuals.len()], &run.residuals);
            assert!(residuals[10 * i + run.residuals.len()..10 * (i + 1)].iter().all(|r| r.is_nan()));
            expected_calls.extend(run.residuals.iter().enumerate().map(|(n, r)| (i as u64, n as u64, *r)));
        }
        // The memory after the residuals is not written.
        assert_eq!(residuals[10 * FRAMES], POISON);
        same(&calls, &expected_calls);
    }

    // Options and report may be NULL: the defaults are used.
    let (mut a, mut b) = (poisoned::<T>(VOXELS * FRAMES), poisoned::<T>(VOXELS * FRAMES));
    // SAFETY: arrays have the lengths documented.
    unsafe { ok(recon_cg(plan.0, s.kspace_at(), a.as_mut_ptr().cast(), null(), null_mut())) };
    rust.cg(&s.kspace, &mut b, &CgOptions::default()).unwrap();
    same(&a, &b);
}

/// Records a report of progress.
unsafe extern "C" fn record_progress(p: *const recon_progress, user_data: *mut c_void) -> c_int {
    // SAFETY: the library's structure, and the test's vector.
    let (p, calls) = unsafe { (&*p, &mut *user_data.cast::<Vec<(u64, u64, f64)>>()) };
    assert_eq!((p.struct_size as usize, p.images, p.iterations), (size_of::<recon_progress>(), FRAMES as u64, 9));
    calls.push((p.image, p.iteration, p.residual));
    0
}

#[test]
fn cg_is_that_of_the_rust_api_in_both_precisions() {
    cg_is_that_of_the_rust_api::<f32>();
    cg_is_that_of_the_rust_api::<f64>();
}

#[test]
fn interleaved_coordinates_and_voxel_lists_are_read() {
    let s = Scene::<f32>::new();
    let both: Vec<f32> = (0..SAMPLES).flat_map(|m| [s.k[0][m], s.k[1][m]]).collect();
    let g = recon_geometry {
        coordinates: [both.as_ptr().cast(), both[1..].as_ptr().cast(), null()],
        coordinate_stride: 2,
        ..s.combined()
    };
    let (mut a, mut b) = (poisoned::<f32>(VOXELS * FRAMES), poisoned::<f32>(VOXELS * FRAMES));
    // SAFETY: arrays have the lengths documented.
    unsafe {
        ok(recon_fhd(Handle::new(&g, &options(|_| ())).0, s.kspace_at(), a.as_mut_ptr().cast()));
        ok(recon_fhd(Handle::new(&s.combined(), &options(|_| ())).0, s.kspace_at(), b.as_mut_ptr().cast()));
    }
    same(&a, &b);

    // The grid as a list: x, y and z of a voxel are adjacent in memory.
    let at = |i: usize| [(i % N[0]) as f32 - (N[0] / 2) as f32, (i / N[0]) as f32 - (N[1] / 2) as f32, 99.0];
    let list: Vec<f32> = (0..VOXELS).flat_map(at).collect();
    let g = recon_geometry {
        voxels: [list.as_ptr().cast(), list[1..].as_ptr().cast(), null()],
        voxel_stride: 3,
        voxel_count: VOXELS as u64,
        ..s.combined()
    };
    let plan = Handle::new(&g, &options(|_| ()));
    assert_eq!((plan.info().method, plan.info().q_elements as usize), (1, VOXELS));
    // SAFETY: arrays have the lengths documented.
    unsafe { ok(recon_fhd(plan.0, s.kspace_at(), b.as_mut_ptr().cast())) };
    let (mut error, mut norm) = (0.0, 0.0);
    for (a, b) in a.iter().zip(&b) {
        (error, norm) = (error + (a - b).norm_sqr(), norm + b.norm_sqr());
    }
    assert!(error < 1e-7 * norm, "{error} of {norm}");

    create_fails(&g, &options(|o| o.method = 2), RECON_UNSUPPORTED, &["list of voxels", "exact"]);
    create_fails(&recon_geometry { voxel_count: 0, ..g }, &options(|_| ()), RECON_INVALID_SIZE, &["voxel list"]);
    let missing = recon_geometry { voxels: [g.voxels[0], null(), null()], ..g };
    create_fails(&missing, &options(|_| ()), RECON_NULL_POINTER, &["voxels[1]"]);
    create_fails(&recon_geometry { voxel_count: 1 << 58, ..g }, &options(|_| ()), RECON_SIZE_OVERFLOW, &[]);
    let mut nan = list.clone();
    nan[3 * 17 + 1] = f32::NAN;
    let g = recon_geometry { voxels: [nan.as_ptr().cast(), nan[1..].as_ptr().cast(), null()], ..g };
    create_fails(&g, &options(|_| ()), RECON_NOT_FINITE, &["voxel 17", "axis 1"]);
}

#[test]
fn box_voxels_and_windows_reach_the_plan() {
    let s = Scene::<f64>::new();
    let mut rust = s.rust();
    rust.basis = recon::VoxelBasis::Box;
    let g = recon_geometry { basis: 1, ..s.geometry() };
    for (number, window) in [
        (0, recon::Window::KaiserBessel),
        (1, recon::Window::Gaussian),
        (2, recon::Window::Bilinear),
        (3, recon::Window::Minimax),
    ] {
        let plan = Handle::new(&g, &options(|o| (o.window, o.normal) = (number, 2)));
        let rust =
            Plan::new(&rust, &Options { window, normal: recon::Normal::Transforms, ..Options::default() }).unwrap();
        let (mut a, mut b) = (poisoned::<f64>(rust.image_len()), poisoned(rust.image_len()));
        // SAFETY: arrays have the lengths documented.
        unsafe { ok(recon_fhd(plan.0, s.kspace_at(), a.as_mut_ptr().cast())) };
        rust.adjoint(&s.kspace, &mut b).unwrap();
        same(&a, &b);
        assert_eq!((plan.info().window, plan.info().toeplitz), (number, 0));
    }
}

#[test]
fn lambda_is_found_from_the_noise_level() {
    let s = Scene::<f32>::new();
    let g = recon_geometry { weights: null(), ..s.combined() };
    let plan = Handle::new(&g, &options(|_| ()));
    let (mut image, mut report) = (poisoned::<f32>(VOXELS * FRAMES), init(recon_cg_report_init));
    let mut cg = init(recon_cg_options_init);
    let mut solve = |cg: &recon_cg_options, report: &mut recon_cg_report| {
        // SAFETY: arrays have the lengths documented.
        unsafe { recon_cg(plan.0, s.kspace_at(), image.as_mut_ptr().cast(), cg, report) }
    };
    // The smallest possible misfit of this scan is 0.47 per sample.
    cg.noise_level = 0.5;
    ok(solve(&cg, &mut report));
    assert!(report.lambda > 0.0);
    cg.noise_level = 5.0;
    fails(solve(&cg, &mut report), RECON_INVALID_ARGUMENT, &["too high"]);
    cg.lambda = 1.0;
    fails(solve(&cg, &mut report), RECON_INVALID_ARGUMENT, &["give only one"]);
    (cg.lambda, cg.noise_level) = (0.0, f64::INFINITY);
    fails(solve(&cg, &mut report), RECON_INVALID_ARGUMENT, &["noise level is inf"]);
    // A caller of the previous version does not have this field.
    cg.struct_size = 112;
    ok(solve(&cg, &mut report));
    assert_eq!(report.lambda, 0.0);
}

/// Cancels at the iteration in `user_data`.
unsafe extern "C" fn cancel(p: *const recon_progress, user_data: *mut c_void) -> c_int {
    // SAFETY: the library's structure, and the test's number.
    unsafe { ((*p).image == 1 && (*p).iteration >= *user_data.cast::<u64>()).into() }
}

#[test]
fn progress_can_cancel() {
    let s = Scene::<f32>::new();
    let plan = Handle::new(&s.combined(), &options(|_| ()));
    for (mut after, words) in [(0u64, "before the first iteration"), (3, "after iteration 3")] {
        let mut c = init(recon_cg_options_init);
        c.progress = Some(cancel);
        c.user_data = (&raw mut after).cast();
        let mut report = init(recon_cg_report_init);
        let mut residuals = vec![POISON; 31 * FRAMES];
        (report.residuals, report.residual_capacity) = (residuals.as_mut_ptr(), residuals.len() as u64);
        let mut image = poisoned::<f32>(VOXELS * FRAMES);
        // SAFETY: arrays have the lengths documented.
        let status =
            unsafe { recon_cg(plan.0, s.kspace_at(), image.as_mut_ptr().cast(), &raw const c, &raw mut report) };
        fails(status, RECON_CANCELLED, &["cancelled", words]);
        assert_eq!(report.images, 0);
        assert!(residuals.iter().all(|&r| r == POISON));
        // The first image was solved before the callback cancelled. It must not be written.
        untouched(&image);
    }
}

#[test]
fn q_is_saved_and_loaded() {
    let s = Scene::<f32>::new();
    let o = options(|o| o.normal = 1);
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    // Names are UTF-8 on every system.
    let file = folder.join(format!("K\u{f6}rper \u{6838}\u{78c1}.{}", std::process::id()));
    let path = CString::new(file.to_str().unwrap()).unwrap();
    let at: *const c_char = path.as_ptr();
    let plan = Handle::new(&s.combined(), &o);
    let (mut a, mut b) = (poisoned::<f32>(VOXELS * FRAMES), poisoned::<f32>(VOXELS * FRAMES));
    // SAFETY: arrays have the lengths documented, paths are C strings.
    unsafe {
        ok(recon_normal(plan.0, s.image_at(), a.as_mut_ptr().cast()));
        ok(recon_plan_save_q(plan.0, at));
        let again = Handle::new(&s.combined(), &o);
        ok(recon_plan_load_q(again.0, at));
        ok(recon_normal(again.0, s.image_at(), b.as_mut_ptr().cast()));
        same(&a, &b);
        let other = Handle::new(&recon_geometry { weights: null(), ..s.combined() }, &o);
        fails(recon_plan_load_q(other.0, at), RECON_BAD_FILE, &["weights"]);
        let bytes = std::fs::read(&file).unwrap();
        std::fs::write(&file, &bytes[..bytes.len() - 3]).unwrap();
        fails(recon_plan_load_q(again.0, at), RECON_BAD_FILE, &["cut short"]);
        let mut damaged = bytes.clone();
        damaged[200] ^= 1;
        std::fs::write(&file, &damaged).unwrap();
        fails(recon_plan_load_q(again.0, at), RECON_BAD_FILE, &["checksum"]);
        std::fs::write(&file, [&bytes[..], b"\0"].concat()).unwrap();
        fails(recon_plan_load_q(again.0, at), RECON_BAD_FILE, &["goes on after the end"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::FileTypeExt;
            ok(recon_plan_save_q(plan.0, c"/dev/null".as_ptr()));
            assert!(std::fs::metadata("/dev/null").unwrap().file_type().is_char_device());
        }
        #[cfg(windows)]
        ok(recon_plan_save_q(plan.0, c"NUL".as_ptr()));
        std::fs::remove_file(&file).unwrap();
        fails(recon_plan_load_q(again.0, at), RECON_IO, &["could not load"]);
        fails(recon_plan_save_q(again.0, c"/nowhere/at/all".as_ptr()), RECON_IO, &["/nowhere/at/all", "save"]);
        let transforms = Handle::new(&s.combined(), &options(|o| o.normal = 2));
        fails(recon_plan_save_q(transforms.0, at), RECON_UNSUPPORTED, &["does not use Q"]);
        fails(recon_plan_load_q(transforms.0, at), RECON_UNSUPPORTED, &["does not use Q"]);
        assert!(!file.exists());
    }
}
