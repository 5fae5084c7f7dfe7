//! Field maps from images of several echoes.

use crate::support::*;

const ECHO_DIMS: [u64; 3] = [9, 8, 7];

const ECHO_VOXELS: usize = 9 * 8 * 7;

const ECHO_TIMES: [f64; 2] = [0.002, 0.004];

/// Returns images of two coils and two echoes with random phases, which wrap.
fn echo_images<T: Number>() -> Vec<Complex<T>> {
    let image = |i: usize| Complex::from_polar(1.0, ((i * i) % 97) as f64);
    (0..ECHO_VOXELS * 2 * 2).map(image).map(|z| Complex::new(T::of(z.re), T::of(z.im))).collect()
}

/// Calls recon_field_map for the images above.
fn estimate<T: Number>(
    images: &[Complex<T>],
    how: &recon_field_map_options,
    field: *mut c_void,
    decay: *mut c_void,
    report: *mut recon_field_map_report,
) -> recon_status {
    let (dims, times, from) = (ECHO_DIMS.as_ptr(), ECHO_TIMES.as_ptr(), images.as_ptr().cast());
    // SAFETY: arrays have the lengths documented.
    unsafe { recon_field_map(T::PRECISION, 3, dims, 2, 2, times, from, how, field, decay, report) }
}

#[test]
fn field_maps_are_those_of_rust() {
    fn check<T: Number>() {
        let (voxels, times, images) = (ECHO_VOXELS, ECHO_TIMES, echo_images::<T>());
        let (mut field, mut decay) = (vec![T::of(f64::NAN); voxels], vec![T::of(f64::NAN); voxels]);
        let mut how = init(recon_field_map_options_init);
        assert_eq!((how.unwrap, how.smoothing, how.threshold, how.threads), (1, 0.2, 0.1, 0));
        (how.smoothing, how.threshold, how.threads) = (0.7, 0.0, 2);
        let mut report = init(recon_field_map_report_init);
        let call = |how: &recon_field_map_options, field, decay, report| estimate(&images, how, field, decay, report);
        ok(call(&how, field.as_mut_ptr().cast(), decay.as_mut_ptr().cast(), &raw mut report));
        let found = warnings();
        // The median of random phases may be close to half the period, which is a second warning.
        assert!((1..=2).contains(&found.len()) && report.period == 500.0, "{found:?}");
        assert!(found.iter().all(|warning| warning.0 == recon_warning::RECON_WARNING_WRAPS as u32));
        assert!(found[0].1.contains("250.0 Hz") && found[0].1.contains("2.0000 ms"), "{found:?}");
        let rust_how =
            recon::FieldMapOptions { smoothing: 0.7, threshold: 0.0, threads: 2, ..recon::FieldMapOptions::DEFAULT };
        let echoes = recon::Echoes { images: &images, dims: &[9, 8, 7], coils: 2, times: &times };
        let (mut rust, mut rust_decay) = (vec![T::ZERO; voxels], vec![T::ZERO; voxels]);
        let rust_report = recon::estimate_field_map(&echoes, &rust_how, &mut rust, Some(&mut rust_decay)).unwrap();
        assert!(rust == field && rust_decay == decay);
        let numbers = (report.limit, report.signal, report.change);
        assert_eq!(numbers, (rust_report.limit, rust_report.signal, rust_report.change));
        let counts = [report.jumps, report.unwrapped, report.unresolved, report.pieces, report.undecided];
        let expected = [
            rust_report.jumps,
            rust_report.unwrapped,
            rust_report.unresolved,
            rust_report.pieces,
            rust_report.undecided,
        ];
        assert_eq!(counts.map(|n| n as usize), expected);
        assert_eq!(report.period, rust_report.period);
        // The caller's header has no period: memory after its structure is not written.
        let mut older = recon_field_map_report { struct_size: 56, period: -7.0, ..init(recon_field_map_report_init) };
        ok(call(&how, field.as_mut_ptr().cast(), decay.as_mut_ptr().cast(), &raw mut older));
        assert_eq!((older.unresolved, older.period, older.struct_size), (report.unresolved, -7.0, 56));
        // Optional arguments are NULL.
        let mut again = vec![T::of(f64::NAN); voxels];
        ok(call(&how, again.as_mut_ptr().cast(), null_mut(), null_mut()));
        assert!(again == field);

        let caller = Caller::default();
        let (interrupt, interrupt_data) = (Some(poll_caller as _), (&raw const caller).cast_mut().cast());
        let asking = recon_field_map_options { interrupt, interrupt_data, ..how };
        let mut out = vec![T::of(7.0); voxels];
        caller.stops(1, "the field map", || call(&asking, out.as_mut_ptr().cast(), null_mut(), null_mut()));
        caller.polled_in_this_thread_only();
        assert!(out.iter().all(|&v| v == T::of(7.0)));
        // The caller's header has no callback: memory after its structure is not read.
        caller.stop_at(1);
        let older = recon_field_map_options { struct_size: 32, ..asking };
        ok(call(&older, out.as_mut_ptr().cast(), null_mut(), null_mut()));
        assert!(out == field);
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn implausible_echoes_are_refused() {
    fn check<T: Number>() {
        let (voxels, dims, times, images) = (ECHO_VOXELS, ECHO_DIMS, ECHO_TIMES, echo_images::<T>());
        let how = init(recon_field_map_options_init);
        let mut again = vec![T::of(f64::NAN); voxels];
        let call = |how: &recon_field_map_options, field, decay, report| estimate(&images, how, field, decay, report);
        let refused = |change: &dyn Fn(&mut recon_field_map_options), status, words: &[&str]| {
            let mut bad = how;
            change(&mut bad);
            let mut out = vec![T::of(7.0); voxels];
            let mut report = init(recon_field_map_report_init);
            fails(call(&bad, out.as_mut_ptr().cast(), null_mut(), &raw mut report), status, words);
            assert!(out.iter().all(|&v| v == T::of(7.0)) && report.limit == 0.0);
        };
        refused(&|o| o.struct_size = 24, RECON_UNKNOWN_STRUCT_SIZE, &["recon_field_map_options_init"]);
        refused(&|o| o.smoothing = -1.0, RECON_INVALID_ARGUMENT, &["smoothing"]);
        refused(&|o| o.threshold = 1.0, RECON_INVALID_ARGUMENT, &["threshold"]);
        fails(call(&how, null_mut(), null_mut(), null_mut()), RECON_NULL_POINTER, &["field_map"]);
        let at: *mut c_void = again.as_mut_ptr().cast();
        fails(call(&how, at, at, null_mut()), RECON_INVALID_ARGUMENT, &["overlap"]);
        let (none, from) = (null_mut(), images.as_ptr().cast());
        // SAFETY: lengths are those of the arrays, or are refused before anything is read.
        unsafe {
            let p = T::PRECISION;
            let call = |p, ndim, dims: *const u64, coils, echoes, times: *const f64, from| {
                recon_field_map(p, ndim, dims, coils, echoes, times, from, null(), at, none, null_mut())
            };
            let (d, t) = (dims.as_ptr(), times.as_ptr());
            fails(call(9, 3, d, 2, 2, t, from), RECON_UNKNOWN_VALUE, &["precision"]);
            fails(call(p, 1, d, 2, 2, t, from), RECON_INVALID_SIZE, &["ndim"]);
            fails(call(p, 3, null(), 2, 2, t, from), RECON_NULL_POINTER, &["dims"]);
            fails(call(p, 3, d, 2, 2, null(), from), RECON_NULL_POINTER, &["echo_times"]);
            fails(call(p, 3, d, 2, 2, t, null()), RECON_NULL_POINTER, &["images"]);
            fails(call(p, 3, d, 2, 1, t, from), RECON_INVALID_SIZE, &["two echoes"]);
            fails(call(p, 3, d, 0, 2, t, from), RECON_INVALID_SIZE, &["coils"]);
            fails(call(p, 3, [9, 0, 7].as_ptr(), 2, 2, t, from), RECON_INVALID_SIZE, &["axis 1"]);
            fails(call(p, 3, [1 << 40; 3].as_ptr(), 2, 2, t, from), RECON_SIZE_OVERFLOW, &["image"]);
            fails(call(p, 3, d, 2, 2, [2.0, 4.0].as_ptr(), from), RECON_INVALID_ARGUMENT, &["milliseconds"]);
            fails(call(p, 3, d, 2, 2, [0.004, 0.002].as_ptr(), from), RECON_INVALID_ARGUMENT, &["increasing"]);
        }
    }
    check::<f32>();
    check::<f64>();
}
