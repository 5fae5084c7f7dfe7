//! Errors for pointers, sizes and numbers of arrays.

use crate::support::*;

#[test]
fn errors_for_null_and_misaligned_pointers_name_the_argument() {
    let s = Scene::<f64>::new();
    let plan = Handle::new(&s.combined(), &options(|_| ()));
    let mut images = poisoned::<f64>(VOXELS * COILS * FRAMES * 8);
    let out: *mut c_void = images.as_mut_ptr().cast();
    let (k, x, p) = (s.kspace_at(), s.image_at(), plan.0.cast_const());
    type Call<'a> = Box<dyn Fn(&[*mut c_void]) -> recon_status + 'a>;
    let make = |f: unsafe extern "C" fn(*const recon_plan, *const c_void, *mut c_void) -> recon_status| -> Call<'_> {
        // SAFETY: one pointer is invalid, which is found before anything is read.
        Box::new(move |a| unsafe { f(a[0].cast(), a[1], a[2]) })
    };
    let m = |p: *const c_void| p.cast_mut();
    let pm = m(p.cast());
    // SAFETY: in each call one pointer is invalid, which is found before anything is read.
    let calls: Vec<(&[&str], Vec<*mut c_void>, Call<'_>)> = unsafe {
        vec![
            (&["plan", "image", "kspace"], vec![pm, m(x), out], make(recon_forward)),
            (&["plan", "kspace", "image"], vec![pm, m(k), out], make(recon_fhd)),
            (&["plan", "kspace", "image"], vec![pm, m(k), out], make(recon_weighted_fhd)),
            (&["plan", "x", "y"], vec![pm, m(x), out], make(recon_normal)),
            (&["plan", "kspace", "image"], vec![pm, m(k), out], make(recon_grid)),
            (&["plan", "kspace", "grid"], vec![pm, m(k), out], make(recon_grid_kspace)),
            (
                &["plan", "kspace", "image"],
                vec![pm, m(k), out],
                Box::new(|a| recon_fbp(a[0].cast(), recon_filter::RECON_FILTER_HANN as u32, a[1], a[2])),
            ),
            (&["plan", "q"], vec![pm, out], Box::new(|a| recon_q(a[0].cast(), a[1]))),
            (&["plan", "factors"], vec![pm, out], Box::new(|a| recon_window_correction(a[0].cast(), 0, a[1].cast()))),
            (&["plan", "weights"], vec![pm, out], Box::new(|a| recon_density(a[0].cast(), 1, 0, 0.0, a[1]))),
            (
                &["plan", "kspace", "maps"],
                vec![pm, m(k), out],
                Box::new(|a| recon_coil_maps(a[0].cast(), a[1], 0, a[2])),
            ),
            (
                &["plan", "kspace", "image"],
                vec![pm, m(k), out],
                Box::new(|a| recon_cg(a[0].cast(), a[1], a[2], null(), null_mut())),
            ),
        ]
    };
    for (names, arguments, call) in &calls {
        for (i, name) in names.iter().enumerate() {
            let mut bad = arguments.clone();
            bad[i] = null_mut();
            fails(call(&bad), RECON_NULL_POINTER, &[name, "null pointer", "give"]);
            bad[i] = arguments[i].cast::<u8>().wrapping_add(1).cast();
            fails(call(&bad), RECON_INVALID_ARGUMENT, &[name, "multiple of 8"]);
        }
    }
    untouched(&images);
}

#[test]
fn null_pointers_outside_of_reconstructions_are_refused() {
    let s = Scene::<f64>::new();
    let plan = Handle::new(&s.combined(), &options(|_| ()));
    let p = plan.0.cast_const();
    let path = c"/nowhere/q".as_ptr();
    // SAFETY: in each call one pointer is invalid, which is found before anything is read.
    unsafe {
        let named: &[(recon_status, &str)] = &[
            (recon_plan_save_q(p, null()), "path"),
            (recon_plan_load_q(p, null()), "path"),
            (recon_plan_save_q(null(), path), "plan"),
            (recon_plan_load_q(null(), path), "plan"),
        ];
        assert!(named.iter().all(|(status, _)| *status == RECON_NULL_POINTER));
        let g = s.geometry();
        let mut plan = null_mut();
        fails(recon_plan_create(null(), null(), &raw mut plan), RECON_NULL_POINTER, &["geometry"]);
        fails(recon_plan_create(&raw const g, null(), null_mut()), RECON_NULL_POINTER, &["plan"]);
        fails(recon_plan_info(p, null_mut()), RECON_NULL_POINTER, &["properties"]);
        let mut properties = init(recon_plan_properties_init);
        fails(recon_plan_info(null(), &raw mut properties), RECON_NULL_POINTER, &["plan"]);
        fails(recon_device_info(0, null_mut()), RECON_NULL_POINTER, &["properties"]);
        fails(recon_geometry_init(null_mut(), 176), RECON_NULL_POINTER, &["recon_geometry"]);
        fails(recon_options_init(null_mut(), 56), RECON_NULL_POINTER, &["recon_options"]);
        fails(recon_cg_options_init(null_mut(), 104), RECON_NULL_POINTER, &["recon_cg_options"]);
        fails(recon_cg_report_init(null_mut(), 80), RECON_NULL_POINTER, &["recon_cg_report"]);
        fails(recon_quality_init(null_mut(), 56), RECON_NULL_POINTER, &["recon_quality"]);
        fails(recon_propeller_options_init(null_mut(), 32), RECON_NULL_POINTER, &["recon_propeller_options"]);
        fails(recon_propeller_report_init(null_mut(), 80), RECON_NULL_POINTER, &["recon_propeller_report"]);
        let status = recon_partial_fourier_options_init(null_mut(), 24);
        fails(status, RECON_NULL_POINTER, &["recon_partial_fourier_options"]);
        let status = recon_partial_fourier_report_init(null_mut(), 48);
        fails(status, RECON_NULL_POINTER, &["recon_partial_fourier_report"]);
        fails(recon_field_map_options_init(null_mut(), 48), RECON_NULL_POINTER, &["recon_field_map_options"]);
        fails(recon_field_map_report_init(null_mut(), 56), RECON_NULL_POINTER, &["recon_field_map_report"]);
        recon_plan_destroy(null_mut());
    }
    let o = options(|_| ());
    create_fails(
        &recon_geometry { coordinates: [null(); 3], ..s.geometry() },
        &o,
        RECON_NULL_POINTER,
        &["coordinates[0]"],
    );
    let g = recon_geometry { coordinates: [s.geometry().coordinates[0], null(), null()], ..s.geometry() };
    create_fails(&g, &o, RECON_NULL_POINTER, &["coordinates[1]"]);
    let g = recon_geometry { weights: s.weights.as_ptr().cast::<u8>().wrapping_add(4).cast(), ..s.geometry() };
    create_fails(&g, &o, RECON_INVALID_ARGUMENT, &["weights", "multiple of 8", "precision"]);
    let o = options(|o| (o.device, o.device_count) = (2, 1));
    create_fails(&s.geometry(), &o, RECON_NULL_POINTER, &["device_indices"]);
}

#[test]
fn outputs_may_not_overlap_inputs() {
    let s = Scene::<f32>::new();
    let plan = Handle::new(&s.combined(), &options(|_| ()));
    let mut both = poisoned::<f32>(SAMPLES * COILS * FRAMES + VOXELS * FRAMES);
    let at = both.as_mut_ptr();
    // SAFETY: all addresses lie within `both`, and overlaps are found before slices are made.
    unsafe {
        fails(recon_fhd(plan.0, at.cast(), at.cast()), RECON_INVALID_ARGUMENT, &["image and kspace overlap"]);
        let last = at.add(SAMPLES * COILS * FRAMES - 1).cast();
        fails(recon_fhd(plan.0, at.cast(), last), RECON_INVALID_ARGUMENT, &["overlap"]);
        fails(recon_normal(plan.0, at.cast(), at.add(1).cast()), RECON_INVALID_ARGUMENT, &["y and x overlap"]);
        let mut o = init(recon_cg_options_init);
        o.initial = at.cast();
        fails(
            recon_cg(plan.0, s.kspace_at(), at.cast(), &raw const o, null_mut()),
            RECON_INVALID_ARGUMENT,
            &["initial and image overlap", "separate"],
        );
        untouched(&both);
        // Adjacent arrays are accepted.
        both[..s.kspace.len()].copy_from_slice(&s.kspace);
        ok(recon_fhd(plan.0, both.as_ptr().cast(), both.as_mut_ptr().add(s.kspace.len()).cast()));
    }
}

#[test]
fn impossible_sizes_are_refused() {
    let s = Scene::<f32>::new();
    let (g, o) = (s.geometry(), options(|_| ()));
    let [nx, ny] = N.map(|n| n as u64);
    create_fails(&recon_geometry { dims: [nx, 0, 0], ..g }, &o, RECON_INVALID_SIZE, &["axis 1 is 0"]);
    create_fails(&recon_geometry { samples: 0, ..g }, &o, RECON_INVALID_SIZE, &["no samples"]);
    create_fails(&recon_geometry { coils: 0, ..g }, &o, RECON_INVALID_SIZE, &["0 coils"]);
    create_fails(&recon_geometry { frames: 0, ..g }, &o, RECON_INVALID_SIZE, &["0 frames"]);
    for ndim in [0, 1, 4, u32::MAX] {
        create_fails(&recon_geometry { ndim, ..g }, &o, RECON_INVALID_SIZE, &["ndim is", "2 or 3"]);
    }
    let coordinates = [g.coordinates[0]; 3];
    create_fails(&recon_geometry { ndim: 3, coordinates, ..g }, &o, RECON_INVALID_SIZE, &["axis 2 is 0"]);
    for huge in [1 << 46, 1 << 58, 1 << 60, u64::MAX] {
        create_fails(&recon_geometry { dims: [huge, ny, 0], ..g }, &o, RECON_SIZE_OVERFLOW, &[]);
        create_fails(&recon_geometry { samples: huge, ..g }, &o, RECON_SIZE_OVERFLOW, &[]);
        create_fails(&recon_geometry { coordinate_stride: huge, ..g }, &o, RECON_SIZE_OVERFLOW, &[]);
        let maps = s.maps.as_ptr().cast();
        create_fails(&recon_geometry { coils: huge, coil_maps: maps, ..g }, &o, RECON_SIZE_OVERFLOW, &[]);
    }
    for huge in [1 << 58, 1 << 60, u64::MAX] {
        create_fails(&recon_geometry { coils: huge, ..g }, &o, RECON_SIZE_OVERFLOW, &[]);
        create_fails(&recon_geometry { frames: huge, ..g }, &o, RECON_SIZE_OVERFLOW, &[]);
    }
    // The geometry determines the lengths of arrays. A call refuses an array that exceeds the address space.
    let plan = Handle::new(&recon_geometry { frames: 1 << 40, ..g }, &o);
    let mut image = poisoned::<f32>(1);
    // SAFETY: refused for its length before anything is read.
    let status = unsafe { recon_fhd(plan.0, s.kspace_at(), image.as_mut_ptr().cast()) };
    fails(status, RECON_SIZE_OVERFLOW, &["kspace has"]);
    untouched(&image);
}

#[test]
fn errors_for_numbers_that_are_not_finite_give_the_index() {
    let s = Scene::<f32>::new();
    let o = options(|_| ());
    for (value, status, word) in [
        (f32::NAN, RECON_NOT_FINITE, "NaN"),
        (f32::NEG_INFINITY, RECON_NOT_FINITE, "-inf"),
        (0.51, RECON_COORDINATE_OUT_OF_RANGE, "0.51"),
        (-0.75, RECON_COORDINATE_OUT_OF_RANGE, "-0.75"),
    ] {
        let mut k = s.k[1].clone();
        k[123] = value;
        let g = recon_geometry { coordinates: [s.k[0].as_ptr().cast(), k.as_ptr().cast(), null()], ..s.geometry() };
        create_fails(&g, &o, status, &["sample 123 on axis 1", word]);
        let mut w = s.weights.clone();
        w[45] = value;
        let g = recon_geometry { weights: w.as_ptr().cast(), ..s.geometry() };
        match value {
            0.51 => drop(Handle::new(&g, &o)),
            _ if value.is_finite() => create_fails(&g, &o, RECON_INVALID_ARGUMENT, &["weight 45 is -0.75", "negative"]),
            _ => create_fails(&g, &o, RECON_NOT_FINITE, &["weight 45", word]),
        }
        if !value.is_finite() {
            let mut maps = s.maps.clone();
            maps[9].im = value;
            let g = recon_geometry { coil_maps: maps.as_ptr().cast(), ..s.geometry() };
            create_fails(&g, &o, RECON_NOT_FINITE, &["sensitivity 9 ", word]);

            let plan = Handle::new(&s.combined(), &o);
            let (mut kspace, mut image) = (s.kspace.clone(), s.image[..VOXELS * FRAMES].to_vec());
            kspace[SAMPLES * COILS + 77].re = value;
            image[VOXELS + 3].im = value;
            // As long as the longest output, which is k-space or the grid.
            let grid = plan.info().grid_elements as usize;
            let mut out = poisoned::<f32>(grid.max(SAMPLES * COILS * FRAMES));
            let (k, x, to) = (kspace.as_ptr().cast(), image.as_ptr().cast(), out.as_mut_ptr().cast());
            let index = format!("sample {} ", SAMPLES * COILS + 77);
            // SAFETY: arrays have the lengths documented.
            unsafe {
                for f in [recon_fhd, recon_weighted_fhd, recon_grid, recon_grid_kspace] {
                    fails(f(plan.0, k, to), RECON_NOT_FINITE, &[&index, word]);
                }
                fails(recon_fbp(plan.0, 0, k, to), RECON_NOT_FINITE, &[&index, word]);
                fails(recon_coil_maps(plan.0, k, 0, to), RECON_NOT_FINITE, &[&index, word]);
                fails(recon_cg(plan.0, k, to, null(), null_mut()), RECON_NOT_FINITE, &[&index, word]);
                let index = format!(" {} is ", VOXELS + 3);
                fails(recon_forward(plan.0, x, to), RECON_NOT_FINITE, &[&index, word]);
                fails(recon_normal(plan.0, x, to), RECON_NOT_FINITE, &[&index, word]);
                let mut c = init(recon_cg_options_init);
                c.initial = x;
                fails(recon_cg(plan.0, s.kspace_at(), to, &raw const c, null_mut()), RECON_NOT_FINITE, &[&index]);
            }
            untouched(&out);
        }
    }
    // Finite data, whose sum overflows.
    let plan = Handle::new(&s.combined(), &o);
    let kspace = vec![Complex::new(f32::MAX, 0.0); s.kspace.len()];
    let mut out = poisoned::<f32>(VOXELS * FRAMES);
    // SAFETY: arrays have the lengths documented.
    let status = unsafe { recon_cg(plan.0, kspace.as_ptr().cast(), out.as_mut_ptr().cast(), null(), null_mut()) };
    fails(status, RECON_NOT_FINITE, &["overflows f32", "scale"]);
    untouched(&out);
}

#[test]
fn results_that_overflow_are_refused() {
    let s = Scene::<f32>::new();
    let plan = Handle::new(&s.geometry(), &options(|_| ()));
    let at = |z: &[Complex<f32>]| z.as_ptr().cast::<c_void>();
    let huge = vec![Complex::new(3e38f32, -3e38); s.image.len().max(s.kspace.len())];
    let (mut image, mut kspace) = (poisoned::<f32>(s.image.len()), poisoned::<f32>(s.kspace.len()));
    let (x, d) = (image.as_mut_ptr().cast(), kspace.as_mut_ptr().cast());
    // SAFETY: arrays have the lengths documented.
    unsafe {
        fails(recon_fhd(plan.0, at(&huge), x), RECON_NOT_FINITE, &["image voxel", "overflows f32"]);
        fails(recon_forward(plan.0, at(&huge), d), RECON_NOT_FINITE, &["k-space sample", "overflows f32"]);
        fails(recon_normal(plan.0, at(&huge), x), RECON_NOT_FINITE, &["image voxel", "overflows f32"]);
        fails(recon_cg(plan.0, at(&huge), x, null(), null_mut()), RECON_NOT_FINITE, &["overflows f32"]);
    }
    untouched(&image);
    untouched(&kspace);
}

/// Implausible numbers are errors that give the permitted numbers, without a panic or a hang.
#[test]
fn numbers_that_overflow_are_refused() {
    let s = Scene::<f32>::new();
    let weightless = Handle::new(&s.geometry(), &options(|_| ()));
    let weighted = Handle::new(&s.weighted(), &options(|_| ()));
    for plan in [&weightless, &weighted] {
        for calibration in [49, 1 << 31, (1 << 32) + 1, 1 << 62, 1 << 63, (1 << 63) + 12, u64::MAX] {
            let mut maps = poisoned::<f32>(VOXELS * COILS);
            // SAFETY: arrays have the lengths documented.
            let status = unsafe { recon_coil_maps(plan.0, s.kspace_at(), calibration, maps.as_mut_ptr().cast()) };
            fails(status, RECON_INVALID_ARGUMENT, &[&calibration.to_string(), "maximum is 48"]);
            untouched(&maps);
        }
        let mut maps = poisoned::<f32>(VOXELS * COILS);
        // SAFETY: arrays have the lengths documented.
        ok(unsafe { recon_coil_maps(plan.0, s.kspace_at(), 48, maps.as_mut_ptr().cast()) });
        // The product of the first sizes overflows before it is multiplied by 0.
        let sizes = [(1 << 62, 0), (u64::MAX, 0), (1 << 40, 1 << 40), (0, u64::MAX)];
        for (coils, frames) in sizes {
            let g = recon_geometry { coils, frames, ..s.combined() };
            create_fails(&g, &options(|_| ()), RECON_SIZE_OVERFLOW, &["overflows the address space"]);
        }
        for tolerance in [-0.5, f64::NAN, f64::NEG_INFINITY] {
            for iterations in [0, 3] {
                let mut w = vec![POISON as f32; SAMPLES];
                // SAFETY: arrays have the lengths documented.
                let status = unsafe { recon_density(plan.0, 0, iterations, tolerance, w.as_mut_ptr().cast()) };
                fails(status, RECON_INVALID_ARGUMENT, &["tolerance", &tolerance.to_string()]);
                assert!(w.iter().all(|w| *w == POISON as f32));
            }
        }
    }
}
