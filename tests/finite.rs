//! A rule for the whole C API: a call that returns RECON_OK has written only finite numbers, and a call that fails has
//! written nothing. All functions with numeric outputs are called with input so large or so small that intermediate or
//! final numbers overflow.

use recon::ffi::recon_status::RECON_OK;
use recon::ffi::*;
use recon::{Complex, Real};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::{c_void, CStr};
use std::ptr::{null, null_mut};

const N: [usize; 2] = [12, 10];
const VOXELS: usize = N[0] * N[1];
const SPOKES: usize = 24;
const READOUT: usize = 24;
const SAMPLES: usize = SPOKES * READOUT;
const COILS: usize = 2;

/// Functions that write no image values: texts, enumerations, handles, defaults, properties of a plan.
const WITHOUT_NUMBERS: [&str; 34] = [
    "recon_release_memory",
    "recon_check_free_memory",
    "recon_unused_memory_limit",
    "recon_acquisition_use",
    "recon_choice",
    "recon_set_log_callback",
    "recon_device_count",
    "recon_device_info",
    "recon_plan_create",
    "recon_plan_memory",
    "recon_propeller_memory",
    "recon_last_warning",
    "recon_plan_warning",
    "recon_plan_destroy",
    "recon_plan_info",
    "recon_plan_set_trajectory",
    "recon_plan_set_weights",
    "recon_plan_set_coil_maps",
    "recon_plan_load_q",
    // Data of scans are those of the acquisitions, and must be finite (tests/scan_altered).
    "recon_scan_create",
    "recon_scan_destroy",
    "recon_scan_add",
    "recon_scan_whiten",
    "recon_scan_complete",
    "recon_scan_end",
    "recon_scan_next",
    "recon_scan_image_calibration",
    "recon_scan_image_properties",
    "recon_scan_image_geometry",
    "recon_scan_image_destroy",
    "recon_scan_acquisitions",
    // Their outputs depend on counts only.
    "recon_trajectory_cartesian",
    "recon_trajectory_radial2d",
    "recon_trajectory_radial3d",
];

trait Number: Real {
    const PRECISION: u32;
    /// Magnitudes of the input, from subnormal to almost the largest number.
    const SCALES: &'static [f64];
}
impl Number for f32 {
    const PRECISION: u32 = recon_precision::RECON_F32 as u32;
    const SCALES: &'static [f64] = &[1e-44, 1e-38, 1e-30, 1e-20, 1e12, 1e18, 1e20, 1e30, 1e36, 1e38, 3.4e38];
}
impl Number for f64 {
    const PRECISION: u32 = recon_precision::RECON_F64 as u32;
    const SCALES: &'static [f64] =
        &[5e-324, 1e-310, 1e-300, 1e-200, 1e-160, 1e80, 1e99, 1e150, 1e155, 1e200, 1e300, 1e306, 1.7e308];
}

thread_local! {
    /// Functions that the running test has called.
    static CALLED: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
    static REFUSED: RefCell<usize> = const { RefCell::new(0) };
}

/// Returns whether all real numbers of some outputs are finite, and whether all are still NaN.
trait Values {
    fn look(&self, finite: &mut bool, untouched: &mut bool);
}
impl<T: Number> Values for Vec<Complex<T>> {
    fn look(&self, finite: &mut bool, untouched: &mut bool) {
        for z in self {
            *finite &= z.re.finite() && z.im.finite();
            *untouched &= z.re.wide().is_nan() && z.im.wide().is_nan();
        }
    }
}
macro_rules! real_values {
    ($($t:ty)+) => {$(
        impl Values for Vec<$t> {
            fn look(&self, finite: &mut bool, untouched: &mut bool) {
                for x in self {
                    *finite &= x.is_finite();
                    *untouched &= x.is_nan();
                }
            }
        }
    )+};
}
real_values!(f32 f64);

/// Checks outputs that contained NaN before a call. Returns whether the call succeeded.
#[track_caller]
fn check(name: &'static str, context: &str, status: recon_status, outputs: &[&dyn Values]) -> bool {
    CALLED.with_borrow_mut(|called| called.insert(name));
    let (mut finite, mut untouched) = (true, true);
    outputs.iter().for_each(|output| output.look(&mut finite, &mut untouched));
    // SAFETY: a C string that lives until this thread's next failure.
    let message = unsafe { CStr::from_ptr(recon_last_error_message()) }.to_string_lossy();
    if status == RECON_OK {
        assert!(finite, "{name}, {context}: a result is not finite, with status OK");
    } else {
        assert!(untouched, "{name}, {context}: an output was touched, with status {status:?} ({message})");
        assert!(!message.is_empty(), "{name}, {context}: an error without a message");
        assert_ne!(status, recon_status::RECON_INTERNAL, "{name}, {context}: {message}");
        REFUSED.with_borrow_mut(|count| *count += 1);
    }
    status == RECON_OK
}

fn nan<T: Number>(len: usize) -> Vec<Complex<T>> {
    vec![Complex::new(T::of(f64::NAN), T::of(f64::NAN)); len]
}

fn nan_reals<T: Number>(len: usize) -> Vec<T> {
    vec![T::of(f64::NAN); len]
}

/// Returns numbers of this magnitude and random phase.
fn numbers<T: Number>(len: usize, scale: f64) -> Vec<Complex<T>> {
    let value = |i: usize| {
        let turn = Complex::from_polar(0.7 + 0.3 * (1.3 * i as f64).sin(), 0.7 * (i * i % 101) as f64);
        Complex::new(T::of(scale * turn.re), T::of(scale * turn.im))
    };
    (0..len).map(value).collect()
}

fn init<S>(f: unsafe extern "C" fn(*mut S, u32) -> recon_status) -> S {
    let mut s = std::mem::MaybeUninit::uninit();
    // SAFETY: the structure has the size given, and success writes all of it.
    unsafe {
        assert_eq!(f(s.as_mut_ptr(), size_of::<S>() as u32), RECON_OK);
        s.assume_init()
    }
}

struct Scan<T: Number> {
    k: [Vec<T>; 2],
    weights: Vec<T>,
    maps: Vec<Complex<T>>,
}

impl<T: Number> Scan<T> {
    fn new(weight: f64, map: f64) -> Self {
        let mut k = [nan_reals::<T>(SAMPLES), nan_reals::<T>(SAMPLES)];
        let [x, y] = k.each_mut().map(|k| k.as_mut_ptr().cast());
        // SAFETY: arrays have the lengths documented.
        let status = unsafe { recon_trajectory_radial2d(T::PRECISION, SPOKES as u64, READOUT as u64, 1, x, y) };
        assert_eq!(status, RECON_OK);
        let weights = (0..SAMPLES).map(|m| T::of(weight * (0.3 + (m % 5) as f64 / 6.0))).collect();
        Scan { k, weights, maps: numbers(VOXELS * COILS, map) }
    }

    fn geometry(&self) -> recon_geometry {
        let mut g = init(recon_geometry_init);
        (g.precision, g.dims, g.samples) = (T::PRECISION, [N[0] as u64, N[1] as u64, 0], SAMPLES as u64);
        g.coordinates = [self.k[0].as_ptr().cast(), self.k[1].as_ptr().cast(), null()];
        g.coils = COILS as u64;
        g
    }
}

/// Calls all operations of a plan, with data and images of one magnitude.
fn operations<T: Number>(g: &recon_geometry, method: u32, images: usize, scale: f64, context: &str) {
    let mut o = init(recon_options_init);
    (o.threads, o.device, o.method) = (1, recon_device::RECON_DEVICE_CPU as u32, method);
    let mut plan = null_mut();
    // SAFETY: structures and arrays are alive. Plan creation may fail.
    if unsafe { recon_plan_create(g, &raw const o, &raw mut plan) } != RECON_OK {
        return;
    }
    let mut properties = init(recon_plan_properties_init);
    // SAFETY: the plan is alive.
    assert_eq!(unsafe { recon_plan_info(plan, &raw mut properties) }, RECON_OK);
    let data = numbers::<T>(SAMPLES * COILS, scale);
    let given = numbers::<T>(VOXELS * images, scale);
    let (d, x): (*const c_void, *const c_void) = (data.as_ptr().cast(), given.as_ptr().cast());
    // SAFETY: arrays have the lengths documented.
    unsafe {
        let mut y = nan::<T>(SAMPLES * COILS);
        let status = recon_forward(plan, x, y.as_mut_ptr().cast());
        check("recon_forward", context, status, &[&y]);
        let image = |name: &'static str, call: &dyn Fn(*mut c_void) -> recon_status| {
            let mut out = nan::<T>(VOXELS * images);
            let status = call(out.as_mut_ptr().cast());
            check(name, context, status, &[&out]);
        };
        image("recon_fhd", &|out| recon_fhd(plan, d, out));
        image("recon_weighted_fhd", &|out| recon_weighted_fhd(plan, d, out));
        image("recon_normal", &|out| recon_normal(plan, x, out));
        image("recon_grid", &|out| recon_grid(plan, d, out));
        for filter in [0, 4] {
            image("recon_fbp", &|out| recon_fbp(plan, filter, d, out));
        }
        let mut grid = nan::<T>(properties.grid_elements as usize);
        let status = recon_grid_kspace(plan, d, grid.as_mut_ptr().cast());
        check("recon_grid_kspace", context, status, &[&grid]);
        for (axis, n) in N.into_iter().enumerate() {
            let mut factors = vec![f64::NAN; n];
            let status = recon_window_correction(plan, axis as u32, factors.as_mut_ptr());
            check("recon_window_correction", context, status, &[&factors]);
        }
        let mut q = nan::<T>(properties.q_elements as usize);
        let status = recon_q(plan, q.as_mut_ptr().cast());
        check("recon_q", context, status, &[&q]);
        for density in 0..3 {
            let mut w = nan_reals::<T>(SAMPLES);
            let status = recon_density(plan, density, 0, 0.0, w.as_mut_ptr().cast());
            CALLED.with_borrow_mut(|called| called.insert("recon_density"));
            assert!(if status == RECON_OK {
                w.iter().all(|w| w.finite())
            } else {
                w.iter().all(|w| w.wide().is_nan())
            });
        }
        let mut maps = nan::<T>(VOXELS * COILS);
        let status = recon_coil_maps(plan, d, 8, maps.as_mut_ptr().cast());
        check("recon_coil_maps", context, status, &[&maps]);
        for (lambda, level, unit) in
            [(0.0, 0.0, 0), (0.1, 0.0, 0), (1e300, 0.0, 0), (1e-310, 0.0, 0), (scale, 0.0, 1), (0.0, scale, 0)]
        {
            let mut how = init(recon_cg_options_init);
            (how.iterations, how.lambda, how.noise_level, how.lambda_unit) = (4, lambda, level, unit);
            let mut report = init(recon_cg_report_init);
            let mut residuals = vec![f64::NAN; 5 * images];
            (report.residuals, report.residual_capacity) = (residuals.as_mut_ptr(), residuals.len() as u64);
            let mut out = nan::<T>(VOXELS * images);
            let status = recon_cg(plan, d, out.as_mut_ptr().cast(), &raw const how, &raw mut report);
            let context = format!("{context}, lambda {lambda:e}, level {level:e}");
            if check("recon_cg", &context, status, &[&out]) {
                let told = [report.lambda, report.residual, report.q_seconds, report.iteration_seconds];
                assert!(told.iter().all(|x| x.is_finite()), "{context}: {told:?}");
                let done = report.iterations as usize + 1;
                assert!(images > 1 || residuals[..done].iter().all(|r| r.is_finite()), "{context}: {residuals:?}");
            } else {
                assert!(residuals.iter().all(|r| r.is_nan()), "{context}: residuals were touched");
            }
        }
        // A saved Q can be loaded; a Q that is not finite is not saved.
        static FILES: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = FILES.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let file = std::env::temp_dir().join(format!("recon-finite-{}-{number}.q", std::process::id()));
        let path = std::ffi::CString::new(file.to_str().unwrap()).unwrap();
        let status = recon_plan_save_q(plan, path.as_ptr());
        check("recon_plan_save_q", context, status, &[]);
        if status == RECON_OK {
            assert_eq!(recon_plan_load_q(plan, path.as_ptr()), RECON_OK, "{context}");
            std::fs::remove_file(&file).unwrap();
        }
        recon_plan_destroy(plan);
    }
}

fn plans<T: Number>() {
    for &scale in T::SCALES {
        for method in [recon_method::RECON_METHOD_NUFFT as u32, recon_method::RECON_METHOD_EXACT as u32] {
            let scan = Scan::<T>::new(1.0, 1.0);
            let of = |what: &str| format!("{}, method {method}, {what} {scale:e}", T::NAME);
            operations::<T>(&scan.geometry(), method, COILS, scale, &of("data"));
            let heavy = Scan::<T>::new(scale, 1.0);
            let weighted = recon_geometry { weights: heavy.weights.as_ptr().cast(), ..heavy.geometry() };
            operations::<T>(&weighted, method, COILS, 1.0, &of("weights"));
            let mapped = Scan::<T>::new(1.0, scale);
            let combined = recon_geometry { coil_maps: mapped.maps.as_ptr().cast(), ..mapped.geometry() };
            operations::<T>(&combined, method, 1, 1.0, &of("maps"));
        }
    }
}

/// Calls functions on images without a plan: combination, resizing, field maps, error measures.
fn images<T: Number>() {
    let scan = Scan::<T>::new(1.0, 1.0);
    let g = scan.geometry();
    for &scale in T::SCALES {
        let context = format!("{}, images of {scale:e}", T::NAME);
        let given = numbers::<T>(VOXELS * COILS, scale);
        let from = given.as_ptr().cast::<c_void>();
        // SAFETY: arrays have the lengths documented.
        unsafe {
            for method in 0..2 {
                let mut out = nan::<T>(VOXELS);
                let status = recon_combine(&raw const g, method, from, out.as_mut_ptr().cast());
                check("recon_combine", &context, status, &[&out]);
            }
            for (fov, dims_fov, dims) in [
                ([2.0, 3.0], [2.0, 3.0], [24, 31]),
                ([2.0, 3.0], [1.7, 3.4], [13, 9]),
                ([1e300, 1e-300], [1e300, 1e-300], [24, 10]),
                ([1e-310, 1e-310], [3e-310, 1e-310], [24, 10]),
                ([1e300, 1.0], [1e-300, 1.0], [12, 10]),
                ([1e-300, 1.0], [1e300, 1.0], [12, 10]),
            ] {
                let mut out = nan::<T>((dims[0] * dims[1]) as usize * COILS);
                let at = out.as_mut_ptr().cast();
                let status = recon_resize(&raw const g, fov.as_ptr(), dims.as_ptr(), dims_fov.as_ptr(), from, at);
                check("recon_resize", &format!("{context}, {fov:?} {dims_fov:?}"), status, &[&out]);
            }
            for spacing in [1e-3, 1e-9, 1e-30, 1e-300, 1e-310] {
                for echoes in [2, 3] {
                    let times = [0.0, spacing, 2.5 * spacing];
                    let n = [N[0] as u64, N[1] as u64];
                    let given = numbers::<T>(VOXELS * COILS * echoes, scale);
                    let mut report = init(recon_field_map_report_init);
                    let mut maps = [nan_reals::<T>(VOXELS), nan_reals::<T>(VOXELS)];
                    let [field, decay] = maps.each_mut().map(|map| map.as_mut_ptr().cast());
                    let (x, t) = (given.as_ptr().cast(), times.as_ptr());
                    let status = recon_field_map(
                        T::PRECISION,
                        2,
                        n.as_ptr(),
                        COILS as u64,
                        echoes as u64,
                        t,
                        x,
                        null(),
                        field,
                        decay,
                        &raw mut report,
                    );
                    let context = format!("{context}, echoes {spacing:e} apart");
                    CALLED.with_borrow_mut(|called| called.insert("recon_field_map"));
                    let written = maps.iter().flatten();
                    if status == RECON_OK {
                        assert!(written.clone().all(|x| x.finite()), "{context}");
                        let told = [report.limit, report.signal, report.change, report.period];
                        assert!(told.iter().all(|x| x.is_finite()), "{context}: {told:?}");
                    } else {
                        assert!(written.clone().all(|x| x.wide().is_nan()), "{context}");
                    }
                }
            }
            let truth = numbers::<T>(VOXELS, scale);
            for other in [scale, 1.0, T::SCALES[0], T::SCALES[T::SCALES.len() - 1]] {
                let image = numbers::<T>(VOXELS + 7, other);
                for (part, by) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    let mut quality = init(recon_quality_init);
                    let (x, t) = (image[7..].as_ptr().cast(), truth.as_ptr().cast());
                    let status = recon_metrics(&raw const g, x, t, null(), part, by, &raw mut quality);
                    let context = format!("{context}, against {other:e}, {part} {by}");
                    check("recon_metrics", &context, status, &[]);
                    let q = [quality.percent_error, quality.mse, quality.scale_re, quality.scale_im];
                    assert!(q.iter().all(|x| x.is_finite()), "{context}: {q:?}");
                    // Decibels are infinite without an error, as documented, and finite with one.
                    let decibels = [quality.psnr_db, quality.snr_db];
                    let allowed = |db: &f64| db.is_finite() || (*db == f64::INFINITY && quality.mse == 0.0);
                    assert!(status != RECON_OK || decibels.iter().all(allowed), "{context}: {decibels:?}");
                }
            }
        }
    }
}

/// Calls functions for coils, simulation and PROPELLER.
fn scans<T: Number>() {
    let scan = Scan::<T>::new(1.0, 1.0);
    let g = scan.geometry();
    for &scale in T::SCALES {
        let context = format!("{}, data of {scale:e}", T::NAME);
        let data = numbers::<T>(SAMPLES * COILS, scale);
        let d = data.as_ptr().cast::<c_void>();
        let (samples, coils) = (SAMPLES as u64, COILS as u64);
        // SAFETY: arrays have the lengths documented.
        unsafe {
            for (noise_dwell, dwell, bandwidth) in
                [(0.0, 0.0, 0.0), (0.0, 0.0, 1e-310), (1.0, 1e-310, 1.0), (1e300, 1e-300, 0.5), (1e-300, 1e300, 1.0)]
            {
                let mut out = nan::<f64>(COILS * COILS);
                let at = out.as_mut_ptr().cast();
                let status = recon_noise_covariance(T::PRECISION, d, samples, coils, noise_dwell, dwell, bandwidth, at);
                let context = format!("{context}, {noise_dwell:e} {dwell:e} {bandwidth:e}");
                check("recon_noise_covariance", &context, status, &[&out]);
            }
            for (keep, energy) in [(1, 0.0), (2, 0.0), (0, 0.9), (0, 1e-310)] {
                let (mut matrix, mut energies, mut kept) = (nan::<f64>(COILS * COILS), vec![f64::NAN; COILS], 77);
                let (m, e) = (matrix.as_mut_ptr().cast(), energies.as_mut_ptr());
                let status = recon_compression(T::PRECISION, d, samples, coils, 1, keep, energy, m, &raw mut kept, e);
                if status == RECON_OK {
                    matrix.truncate(kept as usize * COILS);
                    let total: f64 = energies.iter().sum();
                    assert!((total - 1.0).abs() < 1e-9, "{context}: {energies:?}");
                } else {
                    assert_eq!(kept, 77);
                }
                check("recon_compression", &context, status, &[&matrix, &energies]);
            }
            for size in [1.0, 1e-310, 1e300, scale] {
                let matrix = numbers::<f64>(COILS, size);
                let mut out = nan::<T>(SAMPLES);
                let (m, to) = (matrix.as_ptr().cast(), out.as_mut_ptr().cast());
                let status = recon_virtual_coils(m, 1, coils, T::PRECISION, d, samples, 1, to);
                check("recon_virtual_coils", &context, status, &[&out]);
            }
            for snr in [1.0, 1e-20, 1e-308, 5e-324, 1e300] {
                let mut noisy = data.clone();
                let mut deviation = vec![f64::NAN];
                let to = noisy.as_mut_ptr().cast();
                let status = recon_add_noise(&raw const g, snr, 7, to, deviation.as_mut_ptr());
                let context = format!("{context}, SNR {snr:e}");
                if check("recon_add_noise", &context, status, &[&deviation]) {
                    check("recon_add_noise", &context, status, &[&noisy]);
                } else {
                    assert_eq!(noisy, data, "{context}: the data were changed");
                }
            }
            for size in [1.0, 1e-310] {
                let shapes = [scale, 0.0, 0.0, 0.0, 0.5 * size, 0.4, 1.0, 0.1, 0.0, 0.0];
                for coil_model in [0, 1] {
                    let g = recon_geometry { coils: [1, COILS as u64][coil_model as usize], ..g };
                    let mut out = nan::<T>(SAMPLES * g.coils as usize);
                    let to = out.as_mut_ptr().cast();
                    let status = recon_phantom_kspace(&raw const g, shapes.as_ptr(), 1, coil_model, 1, to);
                    check("recon_phantom_kspace", &context, status, &[&out]);
                }
                let mut out = nan::<T>(VOXELS);
                let status = recon_phantom_image(&raw const g, shapes.as_ptr(), 1, 2, out.as_mut_ptr().cast());
                check("recon_phantom_image", &context, status, &[&out]);
            }
            let mut maps = nan::<T>(VOXELS * COILS);
            let status = recon_phantom_coil_maps(&raw const g, maps.as_mut_ptr().cast());
            check("recon_phantom_coil_maps", &context, status, &[&maps]);
            let turns = scale.min(f64::MAX);
            for (turns, density) in [(turns, 1.0), (1.0, turns), (f64::MAX, 1.0), (1.0, f64::MAX), (f64::MAX, 1e-310)] {
                let mut k = [nan_reals::<T>(60), nan_reals::<T>(60)];
                let [x, y] = k.each_mut().map(|k| k.as_mut_ptr().cast());
                let calls: [(&'static str, recon_status); 2] = [
                    ("recon_trajectory_spiral", recon_trajectory_spiral(T::PRECISION, 3, 20, turns, density, x, y)),
                    ("recon_trajectory_rosette", {
                        let finite = k.iter().flatten().all(|k| k.finite());
                        let untouched = k.iter().flatten().all(|k| k.wide().is_nan());
                        assert!(finite || untouched, "a spiral of {turns:e} turns, {density:e}");
                        recon_trajectory_rosette(T::PRECISION, 3, 20, turns, density, x, y)
                    }),
                ];
                for (name, status) in calls {
                    CALLED.with_borrow_mut(|called| called.insert(name));
                    assert!(
                        status != RECON_OK || k.iter().flatten().all(|k| k.finite()),
                        "{name} {turns:e} {density:e}"
                    );
                }
            }
        }
        propeller::<T>(scale);
        partial_fourier::<T>(scale);
    }
    // Covariances of any magnitude.
    for scale in f64::SCALES {
        for others in [1.0, *scale] {
            let given = [Complex::new(*scale, 0.0), Complex::default(), Complex::default(), Complex::new(others, 0.0)];
            let mut out = nan::<f64>(COILS * COILS);
            // SAFETY: arrays have the lengths documented.
            let status = unsafe { recon_whitening(given.as_ptr().cast(), COILS as u64, out.as_mut_ptr().cast()) };
            check("recon_whitening", &format!("variance {scale:e}"), status, &[&out]);
        }
    }
}

fn propeller<T: Number>(scale: f64) {
    let (blades, lines, readout, n) = (5, 8, 24, 12);
    let samples = blades * lines * readout;
    let mut k = [nan_reals::<T>(samples), nan_reals::<T>(samples)];
    let [x, y] = k.each_mut().map(|k| k.as_mut_ptr().cast());
    // SAFETY: arrays have the lengths documented.
    unsafe {
        let status = recon_trajectory_propeller(T::PRECISION, blades as u64, lines as u64, readout as u64, x, y);
        assert_eq!(status, RECON_OK);
        CALLED.with_borrow_mut(|called| called.insert("recon_trajectory_propeller"));
        let counts = [blades, lines, readout].map(|n| n as u64);
        let mut curve = [nan_reals::<T>(k[0].len()), nan_reals::<T>(k[0].len())];
        let [curve_x, curve_y] = curve.each_mut().map(|k| k.as_mut_ptr().cast());
        let shots = counts[0] * counts[1];
        assert_eq!(recon_trajectory_lissajous(T::PRECISION, shots, counts[2], 16, 15, curve_x, curve_y), RECON_OK);
        assert!(curve.iter().flatten().all(|k| k.finite()));
        CALLED.with_borrow_mut(|called| called.insert("recon_trajectory_lissajous"));
        let mut scan = [nan_reals::<T>(k[0].len()), nan_reals::<T>(k[0].len())];
        let [scan_x, scan_y] = scan.each_mut().map(|k| k.as_mut_ptr().cast());
        let status = recon_trajectory_propeller_scan(T::PRECISION, counts[0], counts[1], counts[2], 16, scan_x, scan_y);
        assert_eq!(status, RECON_OK);
        assert!(scan.iter().flatten().all(|k| k.finite()));
        CALLED.with_borrow_mut(|called| called.insert("recon_trajectory_propeller_scan"));
        let mut g = init(recon_geometry_init);
        (g.precision, g.dims, g.samples) = (T::PRECISION, [n, n, 0], samples as u64);
        g.coordinates = [k[0].as_ptr().cast(), k[1].as_ptr().cast(), null()];
        let data = numbers::<T>(samples, scale);
        let (mut image, mut corrected) = (nan::<T>((n * n) as usize), nan::<T>(samples));
        let mut motion = vec![f64::NAN; 6 * blades];
        let mut report = init(recon_propeller_report_init);
        (report.motion, report.motion_capacity) = (motion.as_mut_ptr(), motion.len() as u64);
        report.kspace = corrected.as_mut_ptr().cast();
        let (d, to) = (data.as_ptr().cast(), image.as_mut_ptr().cast());
        let status = recon_propeller(&raw const g, null(), null(), d, to, &raw mut report);
        let context = format!("{}, blades of {scale:e}", T::NAME);
        check("recon_propeller", &context, status, &[&image, &corrected, &motion]);
        let mut k = [nan_reals::<T>(samples), nan_reals::<T>(samples), nan_reals::<T>(samples)];
        let [x, y, z] = k.each_mut().map(|k| k.as_mut_ptr().cast());
        let status =
            recon_trajectory_stack_of_stars(T::PRECISION, blades as u64, readout as u64, lines as u64, 0, x, y, z);
        assert_eq!(status, RECON_OK);
        assert!(k.iter().flatten().all(|k| k.finite()));
        CALLED.with_borrow_mut(|called| called.insert("recon_trajectory_stack_of_stars"));
    }
}

/// Images of k-space without one side, and differences of their phases.
fn partial_fourier<T: Number>(scale: f64) {
    let (n, lines) = (12, 11);
    let k = |index: usize| T::of((index as f64 - 6.0) / 12.0);
    let x: Vec<T> = (0..n * lines).map(|m| k(m % n)).collect();
    let y: Vec<T> = (0..n * lines).map(|m| k(m / n)).collect();
    let mut g = init(recon_geometry_init);
    (g.precision, g.dims, g.samples) = (T::PRECISION, [n as u64, n as u64, 0], x.len() as u64);
    g.coordinates = [x.as_ptr().cast(), y.as_ptr().cast(), null()];
    let (data, others) = (numbers::<T>(x.len(), scale), numbers::<T>(n * n, scale));
    let (mut image, mut difference) = (nan::<T>(n * n), nan_reals::<T>(n * n));
    let context = format!("{}, {scale:e}", T::NAME);
    // SAFETY: arrays have the lengths documented.
    unsafe {
        let to = image.as_mut_ptr().cast();
        let status = recon_partial_fourier(&raw const g, null(), null(), data.as_ptr().cast(), to, null_mut());
        check("recon_partial_fourier", &context, status, &[&image]);
        let (from, to) = (others.as_ptr().cast(), difference.as_mut_ptr().cast());
        let status = recon_phase_difference(&raw const g, from, from, 100.0, null(), null(), null(), to);
        let written: Vec<f64> = difference.iter().map(|value| value.wide()).collect();
        check("recon_phase_difference", &context, status, &[&written]);
    }
}

/// Runs a part of the test, which must call these functions and cause errors.
fn part(functions: &[&str], run: impl FnOnce()) {
    run();
    let called = CALLED.with_borrow(|called| called.clone());
    assert_eq!(called, functions.iter().copied().collect::<BTreeSet<_>>());
    let refused = REFUSED.with_borrow(|count| *count);
    assert!(refused > 10, "only {refused} calls were refused: the input is not large enough");
}

const OF_PLANS: [&str; 13] = [
    "recon_forward",
    "recon_fhd",
    "recon_weighted_fhd",
    "recon_normal",
    "recon_grid",
    "recon_fbp",
    "recon_grid_kspace",
    "recon_window_correction",
    "recon_q",
    "recon_density",
    "recon_coil_maps",
    "recon_cg",
    "recon_plan_save_q",
];
const OF_IMAGES: [&str; 4] = ["recon_combine", "recon_resize", "recon_field_map", "recon_metrics"];
const OF_SCANS: [&str; 17] = [
    "recon_noise_covariance",
    "recon_compression",
    "recon_virtual_coils",
    "recon_add_noise",
    "recon_phantom_kspace",
    "recon_phantom_image",
    "recon_phantom_coil_maps",
    "recon_trajectory_spiral",
    "recon_trajectory_rosette",
    "recon_trajectory_lissajous",
    "recon_trajectory_propeller",
    "recon_trajectory_propeller_scan",
    "recon_trajectory_stack_of_stars",
    "recon_propeller",
    "recon_partial_fourier",
    "recon_phase_difference",
    "recon_whitening",
];

#[test]
fn every_function_of_the_header_is_called_or_has_no_numbers() {
    let header = std::fs::read_to_string("include/recon.h").unwrap();
    let name = |line: &str| {
        let name = line.strip_prefix("recon_status ").or_else(|| line.strip_prefix("void "))?.split_once('(')?.0;
        name.starts_with("recon_").then(|| name.to_owned())
    };
    let is_known = |name: &str| {
        let lists = [&OF_PLANS[..], &OF_IMAGES, &OF_SCANS, &WITHOUT_NUMBERS];
        name.ends_with("_init") || lists.iter().any(|list| list.contains(&name))
    };
    let names: Vec<String> = header.lines().filter_map(name).collect();
    assert!(names.len() > 50, "{names:?}");
    assert_eq!(names.iter().filter(|name| !is_known(name)).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn plans_f32_give_finite_numbers_or_errors() {
    part(&OF_PLANS, plans::<f32>);
}

#[test]
fn plans_f64_give_finite_numbers_or_errors() {
    part(&OF_PLANS, plans::<f64>);
}

#[test]
fn images_are_finite_or_errors() {
    part(&OF_IMAGES, || {
        images::<f32>();
        images::<f64>();
    });
}

#[test]
fn coils_and_simulated_scans_are_finite_or_errors() {
    part(&OF_SCANS, || {
        scans::<f32>();
        scans::<f64>();
    });
}
