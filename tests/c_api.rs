//! The C API, called by its C functions: its results are equal to results of the Rust API. Every documented error can
//! be provoked, has a message that explains it, and leaves the outputs as they were.

use recon::ffi::recon_status::*;
use recon::ffi::*;
use recon::{CgOptions, Complex, Density, Filter, Geometry, LambdaUnit, Options, Plan, Prior, Real};
use std::collections::HashSet;
use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::fmt::Debug;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Mutex;
use std::thread::ThreadId;
use std::time::Duration;

const N: [usize; 2] = [24, 20];
const SPOKES: usize = 24;
const READOUT: usize = 32;
const SAMPLES: usize = SPOKES * READOUT;
const VOXELS: usize = N[0] * N[1];
const COILS: usize = 3;
const FRAMES: usize = 2;

trait Number: Real {
    const PRECISION: u32;
}
impl Number for f32 {
    const PRECISION: u32 = recon_precision::RECON_F32 as u32;
}
impl Number for f64 {
    const PRECISION: u32 = recon_precision::RECON_F64 as u32;
}

fn message() -> String {
    // SAFETY: a C string that lives until this thread's next failure.
    unsafe { CStr::from_ptr(recon_last_error_message()) }.to_str().unwrap().to_owned()
}

#[track_caller]
fn ok(status: recon_status) {
    assert_eq!(status, RECON_OK, "{}", message());
}

#[track_caller]
fn fails(status: recon_status, expected: recon_status, words: &[&str]) {
    let message = message();
    assert_eq!(status, expected, "{message}");
    for word in words {
        assert!(message.contains(word), "{word:?} is not in {message:?}");
    }
}

/// A number that no result has.
const POISON: f64 = -1.2345e-30;

fn poisoned<T: Number>(len: usize) -> Vec<Complex<T>> {
    vec![Complex::new(T::of(POISON), T::of(POISON)); len]
}

#[track_caller]
fn untouched<T: Number>(values: &[Complex<T>]) {
    assert!(values.iter().all(|z| *z == Complex::new(T::of(POISON), T::of(POISON))), "an output was touched");
}

#[track_caller]
fn same<E: PartialEq + Debug>(a: &[E], b: &[E]) {
    assert_eq!(a.len(), b.len());
    assert_eq!(a.iter().zip(b).position(|(a, b)| a != b), None);
}

/// A scan and its data.
struct Scene<T: Number> {
    k: [Vec<T>; 2],
    weights: Vec<T>,
    maps: Vec<Complex<T>>,
    kspace: Vec<Complex<T>>,
    image: Vec<Complex<T>>,
}

impl<T: Number> Scene<T> {
    /// A scene of three coils and two frames.
    fn new() -> Self {
        let mut s = Scene {
            k: [vec![T::ZERO; SAMPLES], vec![T::ZERO; SAMPLES]],
            weights: (0..SAMPLES).map(|m| T::of(0.5 + (m % 7) as f64)).collect(),
            maps: poisoned(VOXELS * COILS),
            kspace: poisoned(SAMPLES * COILS * FRAMES),
            image: (0..VOXELS * COILS * FRAMES)
                .map(|i| Complex::new(T::of((i as f64).sin()), T::of((0.7 * i as f64).cos())))
                .collect(),
        };
        // SAFETY: arrays have the lengths documented.
        unsafe {
            let [kx, ky] = s.k.each_mut().map(|k| k.as_mut_ptr().cast());
            ok(recon_trajectory_radial2d(T::PRECISION, SPOKES as u64, READOUT as u64, 1, kx, ky));
            let g = s.geometry();
            ok(recon_phantom_coil_maps(&raw const g, s.maps.as_mut_ptr().cast()));
            ok(recon_phantom_kspace(&raw const g, null(), 0, 1, 0, s.kspace.as_mut_ptr().cast()));
            ok(recon_add_noise(&raw const g, 20.0, 7, s.kspace.as_mut_ptr().cast(), null_mut()));
        }
        s
    }

    /// A geometry with coils and frames, without weights and maps.
    fn geometry(&self) -> recon_geometry {
        let mut g = init(recon_geometry_init);
        g.precision = T::PRECISION;
        g.dims = [N[0] as u64, N[1] as u64, 0];
        g.samples = SAMPLES as u64;
        g.coordinates = [self.k[0].as_ptr().cast(), self.k[1].as_ptr().cast(), null()];
        g.coils = COILS as u64;
        g.frames = FRAMES as u64;
        g
    }

    fn weighted(&self) -> recon_geometry {
        recon_geometry { weights: self.weights.as_ptr().cast(), ..self.geometry() }
    }

    fn combined(&self) -> recon_geometry {
        recon_geometry { coil_maps: self.maps.as_ptr().cast(), ..self.weighted() }
    }

    fn rust(&self) -> Geometry<'_, T> {
        let mut g = Geometry::new(&N, &[&self.k[0], &self.k[1]]).coils(COILS);
        g.frames = FRAMES;
        g
    }

    fn kspace_at(&self) -> *const c_void {
        self.kspace.as_ptr().cast()
    }
    fn image_at(&self) -> *const c_void {
        self.image.as_ptr().cast()
    }
}

fn init<S>(f: unsafe extern "C" fn(*mut S, u32) -> recon_status) -> S {
    let mut s = std::mem::MaybeUninit::uninit();
    // SAFETY: the structure has the size given, and success writes all of it.
    unsafe {
        ok(f(s.as_mut_ptr(), size_of::<S>() as u32));
        s.assume_init()
    }
}

fn options(change: impl FnOnce(&mut recon_options)) -> recon_options {
    let mut o = init(recon_options_init);
    o.threads = 2;
    change(&mut o);
    o
}

/// A plan that is destroyed when it goes out of scope.
struct Handle(*mut recon_plan);

// SAFETY: a plan may be used from several threads at once.
unsafe impl Sync for Handle {}

impl Handle {
    #[track_caller]
    fn new(g: &recon_geometry, o: &recon_options) -> Handle {
        let mut plan = null_mut();
        // SAFETY: structures and arrays are alive.
        ok(unsafe { recon_plan_create(g, o, &raw mut plan) });
        Handle(plan)
    }
    fn info(&self) -> recon_plan_properties {
        let mut p = init(recon_plan_properties_init);
        // SAFETY: the plan is alive.
        ok(unsafe { recon_plan_info(self.0, &raw mut p) });
        p
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: made by recon_plan_create, and destroyed once.
        unsafe { recon_plan_destroy(self.0) };
    }
}

#[track_caller]
fn create_fails(g: &recon_geometry, o: &recon_options, expected: recon_status, words: &[&str]) {
    let before = 0x1230 as *mut recon_plan;
    let mut plan = before;
    // SAFETY: what is wrong with the structures is found before anything is read through them.
    fails(unsafe { recon_plan_create(g, o, &raw mut plan) }, expected, words);
    assert_eq!(plan, before, "the plan was touched");
}

// ------------------------------------------------------------------------------------------------------ results

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

        let info = plan.info();
        let theirs = rust.info();
        if method != 1 {
            assert_eq!(info.method, recon_method::RECON_METHOD_NUFFT as u32);
            assert_eq!([info.grid[0] as usize, info.grid[1] as usize], theirs.grid[..]);
            assert_eq!((info.grid[2], info.width as usize), (1, theirs.width));
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
        let threads = if theirs.device == "cpu" { 2 } else { 1 };
        assert_eq!((info.threads, info.ndim, info.precision), (threads, 2, T::PRECISION));
        assert_eq!(info.toeplitz == 1, theirs.toeplitz);
        assert_eq!(CStr::from_ptr(info.device.as_ptr()).to_str().unwrap(), theirs.device);
        assert_eq!(CStr::from_ptr(info.simd.as_ptr()).to_str().unwrap(), theirs.simd);
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
        let theirs = CgOptions {
            iterations: 9,
            tolerance: 1e-3,
            lambda: 2.0,
            lambda_unit: LambdaUnit::Absolute,
            prior,
            noise_level: 0.0,
            initial: Some(initial),
        };
        let mut b = poisoned::<T>(VOXELS * FRAMES);
        let wanted = rust.cg(&s.kspace, &mut b, &theirs).unwrap();

        let mut o = init(recon_cg_options_init);
        (o.iterations, o.tolerance, o.lambda, o.prior, o.edge) = (9, 1e-3, 2.0, number as u32, 0.2);
        o.lambda_unit = 1;
        o.initial = initial.as_ptr().cast();
        o.reference = reference.as_ptr().cast();
        o.matrix_rows = VOXELS as u64;
        (o.matrix_starts, o.matrix_columns) = (starts.as_ptr(), columns.as_ptr());
        o.matrix_values = values.as_ptr().cast();
        let mut calls: Vec<(u64, u64, f64)> = Vec::new();
        o.progress = Some(note);
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
        // What lies behind the residuals is not written.
        assert_eq!(residuals[10 * FRAMES], POISON);
        same(&calls, &expected_calls);
    }

    // Without options and report: the defaults.
    let (mut a, mut b) = (poisoned::<T>(VOXELS * FRAMES), poisoned::<T>(VOXELS * FRAMES));
    // SAFETY: arrays have the lengths documented.
    unsafe { ok(recon_cg(plan.0, s.kspace_at(), a.as_mut_ptr().cast(), null(), null_mut())) };
    rust.cg(&s.kspace, &mut b, &CgOptions::default()).unwrap();
    same(&a, &b);
}

unsafe extern "C" fn note(p: *const recon_progress, user_data: *mut c_void) -> c_int {
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

    // The grid itself as a list: x, y and z of a voxel are next to one another.
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

/// A stack of stars has the ramp of its planes, the same in each. A Cartesian grid has no ramp.
#[test]
fn the_ramp_of_a_stack_and_of_what_is_none() {
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
    // Weights are proportional to the radius, except at the centre. The factor depends on more than these samples.
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
        ok(recon_trajectory_propeller(1, 3, 2, 20, x, y));
        check(&k, Trajectory::propeller(3, 2, 20).unwrap());

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
        fails(recon_trajectory_propeller(1, 3, 5, 8, x, y), RECON_INVALID_ARGUMENT, &["5 lines"]);
        assert!(k.iter().flatten().all(|&k| k == POISON));
    }
}

/// The k-space of a phantom with maps is that of the Rust API, in both precisions; what is refused leaves it alone.
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
fn phantoms_and_metrics_are_those_of_the_rust_api() {
    use recon::metrics::{compare, compare_magnitude, Scale};
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

        for (i, z) in image.iter_mut().enumerate() {
            *z = truth[i] * Complex::new(0.9, 0.2) + 0.01 * (i as f64).sin();
        }
        let mask: Vec<u8> = (0..VOXELS).map(|i| (i % 3) as u8).collect();
        let kept: Vec<bool> = mask.iter().map(|&m| m != 0).collect();
        let mut q = init(recon_quality_init);
        let (x, t) = (image.as_ptr().cast(), truth.as_ptr().cast());
        ok(recon_metrics(&raw const g, x, t, null(), 0, 1, &raw mut q));
        let m = compare(&image, &truth, Scale::Best, None).unwrap();
        assert_eq!((q.percent_error, q.mse, q.psnr_db, q.snr_db), (m.percent_error, m.mse, m.psnr_db, m.snr_db));
        assert_eq!(Complex::new(q.scale_re, q.scale_im), m.scale);
        ok(recon_metrics(&raw const g, x, t, mask.as_ptr(), 1, 0, &raw mut q));
        let m = compare_magnitude(&image, &truth, Scale::None, Some(&kept)).unwrap();
        assert_eq!((q.percent_error, q.scale_re), (m.percent_error, 1.0));

        // An error leaves the structure as it was.
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
    // What no image of this scan explains is 0.47 in a sample.
    cg.noise_level = 0.5;
    ok(solve(&cg, &mut report));
    assert!(report.lambda > 0.0);
    cg.noise_level = 5.0;
    fails(solve(&cg, &mut report), RECON_INVALID_ARGUMENT, &["too high"]);
    cg.lambda = 1.0;
    fails(solve(&cg, &mut report), RECON_INVALID_ARGUMENT, &["one of the two"]);
    (cg.lambda, cg.noise_level) = (0.0, f64::INFINITY);
    fails(solve(&cg, &mut report), RECON_INVALID_ARGUMENT, &["noise level is inf"]);
    // A caller of the version before has no such field.
    cg.struct_size = 112;
    ok(solve(&cg, &mut report));
    assert_eq!(report.lambda, 0.0);
}

/// The kinds and texts of what this thread's last call warned of.
fn warnings() -> Vec<(u32, String)> {
    let (mut found, mut kind, mut text) = (Vec::new(), u32::MAX, null());
    loop {
        // SAFETY: a number and an address to write; the text is alive until the next other call.
        unsafe {
            ok(recon_last_warning(found.len() as u64, &raw mut kind, &raw mut text));
            if text.is_null() {
                assert_eq!(kind, recon_warning::RECON_WARNING_NONE as u32);
                return found;
            }
            found.push((kind, CStr::from_ptr(text).to_str().unwrap().to_owned()));
        }
    }
}

#[test]
fn blades_are_corrected_as_in_rust() {
    fn check<T: Number>() {
        let (n, blades, lines, readout, frames) = (48, 7, 12, 64, 2);
        let samples = blades * lines * readout;
        let mut k = [vec![T::ZERO; samples], vec![T::ZERO; samples]];
        let [x, y] = k.each_mut().map(|k| k.as_mut_ptr().cast());
        // SAFETY: arrays have the lengths documented.
        unsafe {
            ok(recon_trajectory_propeller(T::PRECISION, blades as u64, lines as u64, readout as u64, x, y));
        }
        let mut g = init(recon_geometry_init);
        g.precision = T::PRECISION;
        (g.dims, g.samples, g.coils, g.frames) = ([n as u64, n as u64, 0], samples as u64, 2, frames as u64);
        g.coordinates = [k[0].as_ptr().cast(), k[1].as_ptr().cast(), null()];
        let mut data = poisoned::<T>(samples * 2 * frames);
        // SAFETY: as above.
        unsafe { ok(recon_phantom_kspace(&raw const g, null(), 0, 1, 0, data.as_mut_ptr().cast())) };
        // The third blade saw the object elsewhere.
        for (i, z) in data.iter_mut().enumerate() {
            let m = i % samples;
            if m / (lines * readout) == 2 {
                let turn = Complex::from_polar(1.0, -6.0 * k[0][m].wide());
                *z *= Complex::new(T::of(turn.re), T::of(turn.im));
            }
        }
        let mut how = init(recon_propeller_options_init);
        assert_eq!((how.phase, how.lines, how.rotation, how.translation, how.weighting), (0, 0, 1, 1, 1));
        how.rotation = 0;
        let rust_how = recon::PropellerOptions { rotation: false, ..Default::default() };
        let o = options(|o| o.device = 1);
        let rust_options = recon::Options { device: recon::Device::Cpu, threads: 2, ..Default::default() };
        let axes = [&k[0][..], &k[1][..]];
        let mut geometry = Geometry::new(&[n, n], &axes).coils(2);
        geometry.frames = frames;
        let expected = recon::Corrected::new(&geometry, &rust_options, &rust_how, &data).unwrap();
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
        // Its motion alone, and its image alone.
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
            let mut motion = vec![POISON; 6 * blades * frames];
            (report.motion, report.motion_capacity) = (motion.as_mut_ptr(), motion.len() as u64);
            change(&mut g, &mut o, &mut how, &mut report);
            again.fill(Complex::new(T::of(POISON), T::of(POISON)));
            let to = again.as_mut_ptr().cast();
            // SAFETY: as above.
            let got = unsafe { recon_propeller(&raw const g, &raw const o, &raw const how, from, to, &raw mut report) };
            fails(got, status, words);
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
fn calls_tell_what_they_warned_of() {
    let s = Scene::<f32>::new();
    let mut matrix = poisoned::<f64>(COILS);
    let mut kept = 0;
    let to: *mut c_void = matrix.as_mut_ptr().cast();
    // SAFETY: arrays have the lengths documented.
    unsafe {
        let mut compress = |keep: u64| {
            let (samples, coils) = (SAMPLES as u64, COILS as u64);
            let status =
                recon_compression(0, s.kspace_at(), samples, coils, 1, keep, 0.0, to, &raw mut kept, null_mut());
            (status, warnings())
        };
        let (status, found) = compress(1);
        ok(status);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, recon_warning::RECON_WARNING_COMPRESSION as u32);
        assert!(found[0].1.contains("1 virtual coils of 3"), "{found:?}");
        // Asking is no call; a call that fails, and another thread's, have their own.
        assert_eq!(warnings(), found);
        std::thread::spawn(|| assert_eq!(warnings(), [])).join().unwrap();
        assert_eq!(warnings(), found);
        let (status, found) = compress(0);
        assert_eq!((status, found.len()), (RECON_INVALID_ARGUMENT, 0));
        fails(recon_last_warning(0, null_mut(), null_mut()), RECON_NULL_POINTER, &["kind"]);
    }
}

#[test]
fn field_maps_are_those_of_rust() {
    fn check<T: Number>() {
        let (dims, times) = ([9u64, 8, 7], [0.002, 0.004]);
        let voxels = 9 * 8 * 7;
        // Phases that wrap.
        let image = |i: usize| Complex::from_polar(1.0, ((i * i) % 97) as f64);
        let images: Vec<Complex<T>> =
            (0..voxels * 2 * 2).map(image).map(|z| Complex::new(T::of(z.re), T::of(z.im))).collect();
        let (mut field, mut decay) = (vec![T::of(f64::NAN); voxels], vec![T::of(f64::NAN); voxels]);
        let mut how = init(recon_field_map_options_init);
        assert_eq!((how.unwrap, how.smoothing, how.threshold, how.threads), (1, 0.2, 0.1, 0));
        (how.smoothing, how.threshold, how.threads) = (0.7, 0.0, 2);
        let mut report = init(recon_field_map_report_init);
        let call = |how: &recon_field_map_options, field: *mut c_void, decay: *mut c_void, report| {
            let from = images.as_ptr().cast();
            // SAFETY: arrays have the lengths documented.
            unsafe {
                recon_field_map(T::PRECISION, 3, dims.as_ptr(), 2, 2, times.as_ptr(), from, how, field, decay, report)
            }
        };
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
        let told = recon::estimate_field_map(&echoes, &rust_how, &mut rust, Some(&mut rust_decay)).unwrap();
        assert!(rust == field && rust_decay == decay);
        let numbers = (report.limit, report.signal, report.change);
        assert_eq!(numbers, (told.limit, told.signal, told.change));
        let counts = [report.jumps, report.unwrapped, report.unresolved, report.pieces, report.undecided];
        let expected = [told.jumps, told.unwrapped, told.unresolved, told.pieces, told.undecided];
        assert_eq!(counts.map(|n| n as usize), expected);
        assert_eq!(report.period, told.period);
        // A caller whose header has no period: what is behind its structure is not written.
        let mut older = recon_field_map_report { struct_size: 56, period: -7.0, ..init(recon_field_map_report_init) };
        ok(call(&how, field.as_mut_ptr().cast(), decay.as_mut_ptr().cast(), &raw mut older));
        assert_eq!((older.unresolved, older.period, older.struct_size), (report.unresolved, -7.0, 56));
        // Without what may be left out.
        let mut again = vec![T::of(f64::NAN); voxels];
        ok(call(&how, again.as_mut_ptr().cast(), null_mut(), null_mut()));
        assert!(again == field);

        let caller = Caller::default();
        let (interrupt, interrupt_data) = (Some(answer as _), (&raw const caller).cast_mut().cast());
        let asking = recon_field_map_options { interrupt, interrupt_data, ..how };
        let mut out = vec![T::of(7.0); voxels];
        caller.stops(1, "the field map", || call(&asking, out.as_mut_ptr().cast(), null_mut(), null_mut()));
        caller.was_asked_here();
        assert!(out.iter().all(|&v| v == T::of(7.0)));
        // A caller whose header has no callback: what is behind its structure is not read.
        caller.stop_at(1);
        let older = recon_field_map_options { struct_size: 32, ..asking };
        ok(call(&older, out.as_mut_ptr().cast(), null_mut(), null_mut()));
        assert!(out == field);

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
        // SAFETY: lengths are those of the arrays, or refused before anything is read.
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
            fails(call(p, 3, d, 2, 2, [0.004, 0.002].as_ptr(), from), RECON_INVALID_ARGUMENT, &["increase"]);
        }
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn coil_matrices_are_those_of_rust() {
    let s = Scene::<f32>::new();
    let (coils, samples, at) = (COILS as u64, SAMPLES as u64, s.kspace_at());
    let mut covariance = poisoned::<f64>(COILS * COILS);
    let to = covariance.as_mut_ptr().cast();
    let noise = &s.kspace[..SAMPLES * COILS];
    let sampling = recon::NoiseSampling { noise_dwell: 3.0, dwell: 2.0, receiver_bandwidth: 0.75 };
    let known = recon::NoiseCovariance::of(noise, COILS, sampling).unwrap();
    // SAFETY: arrays have the lengths documented.
    unsafe { ok(recon_noise_covariance(0, at, samples, coils, 3.0, 2.0, 0.75, to)) };
    assert_eq!(covariance, known.entries());
    let mut matrix = poisoned::<f64>(COILS * COILS);
    // SAFETY: as above.
    unsafe { ok(recon_whitening(to, coils, matrix.as_mut_ptr().cast())) };
    let whitening = known.whitening().unwrap();
    assert_eq!(matrix, whitening.entries());

    let mut out = poisoned::<f32>(SAMPLES * COILS * FRAMES);
    let mut expected = out.clone();
    whitening.apply(SAMPLES, &s.kspace, &mut expected).unwrap();
    let (m, frames) = (matrix.as_ptr().cast(), FRAMES as u64);
    // SAFETY: as above.
    unsafe { ok(recon_virtual_coils(m, coils, coils, 0, at, samples, frames, out.as_mut_ptr().cast())) };
    assert_eq!(out, expected);

    let mut energy = recon::CoilEnergy::new(COILS).unwrap();
    energy.add(SAMPLES, &s.kspace).unwrap();
    for (keep, part, how) in [(2, 0.0, recon::Keep::Coils(2)), (0, 0.7, recon::Keep::Energy(0.7))] {
        let made = energy.compression(how).unwrap();
        let (mut matrix, mut kept, mut energies) = (poisoned::<f64>(COILS * COILS), 99, [POISON; COILS]);
        let (to, energies_to) = (matrix.as_mut_ptr().cast(), energies.as_mut_ptr());
        // SAFETY: as above.
        unsafe { ok(recon_compression(0, at, samples, coils, frames, keep, part, to, &raw mut kept, energies_to)) };
        assert_eq!(kept, made.matrix.virtual_coils() as u64);
        let len = made.matrix.entries().len();
        assert_eq!(&matrix[..len], made.matrix.entries());
        assert!(matrix[len..].iter().all(|z| z.re == POISON && z.im == POISON));
        assert_eq!(energies, made.energies[..]);
        // SAFETY: as above; energies may be left out.
        unsafe { ok(recon_compression(0, at, samples, coils, frames, keep, part, to, &raw mut kept, null_mut())) };
    }

    // SAFETY: as above; what is wrong is found before it is used.
    unsafe {
        let (mut kept, none) = (99, null_mut());
        let kept = &raw mut kept;
        let noise = |samples, coils, dwell| recon_noise_covariance(0, at, samples, coils, 0.0, dwell, 0.0, to);
        fails(noise(samples, coils, 1.0), RECON_INVALID_ARGUMENT, &["noise is 0", "scan 1"]);
        fails(noise(2, coils, 0.0), RECON_INVALID_SIZE, &["2 samples"]);
        fails(noise(0, coils, 0.0), RECON_INVALID_SIZE, &["0 samples"]);
        fails(noise(u64::MAX / 2, coils, 0.0), RECON_SIZE_OVERFLOW, &["noise"]);
        let number = recon_noise_covariance(7, at, samples, coils, 0.0, 0.0, 0.0, to);
        fails(number, RECON_UNKNOWN_VALUE, &["precision is 7"]);
        let nothing = recon_noise_covariance(0, null(), samples, coils, 0.0, 0.0, 0.0, to);
        fails(nothing, RECON_NULL_POINTER, &["noise"]);
        fails(recon_noise_covariance(0, at, samples, coils, 0.0, 0.0, 0.0, none), RECON_NULL_POINTER, &["covariance"]);
        let mut bad = [Complex::new(1.0f64, 0.0); COILS * COILS];
        fails(recon_whitening(bad.as_ptr().cast(), coils, to), RECON_INVALID_ARGUMENT, &["singular"]);
        fails(recon_whitening(to, coils, to), RECON_INVALID_ARGUMENT, &["overlap"]);
        fails(recon_whitening(null(), coils, to), RECON_NULL_POINTER, &["covariance"]);
        fails(recon_whitening(bad.as_ptr().cast(), 0, to), RECON_INVALID_SIZE, &["0 coils"]);
        bad[3].re = f64::NAN;
        fails(recon_whitening(bad.as_ptr().cast(), coils, to), RECON_NOT_FINITE, &["entry 3"]);
        let compress = |keep, energy| recon_compression(0, at, samples, coils, 1, keep, energy, to, kept, none.cast());
        fails(compress(0, 0.0), RECON_INVALID_ARGUMENT, &["keep and energy are 0"]);
        fails(compress(2, 0.5), RECON_INVALID_ARGUMENT, &["one of the two"]);
        fails(compress(0, 1.5), RECON_INVALID_ARGUMENT, &["1.5"]);
        fails(compress(4, 0.0), RECON_INVALID_SIZE, &["4 virtual coils of 3"]);
        assert_eq!(*kept, 99);
        let mix = |rows, frames| recon_virtual_coils(bad.as_ptr().cast(), rows, coils, 0, at, samples, frames, to);
        fails(mix(coils, 1), RECON_NOT_FINITE, &["entry 3"]);
        fails(mix(0, 1), RECON_INVALID_SIZE, &["0 virtual coils"]);
        fails(mix(1, 0), RECON_SIZE_MISMATCH, &["whole frames"]);
    }
}

#[test]
fn coil_images_are_combined_frame_by_frame() {
    let s = Scene::<f32>::new();
    let g = s.geometry();
    for (number, how) in [(0, recon::Combine::RootSumOfSquares), (1, recon::Combine::Adaptive)] {
        let mut a = poisoned::<f32>(VOXELS * FRAMES);
        // SAFETY: arrays have the lengths documented.
        unsafe { ok(recon_combine(&raw const g, number, s.image_at(), a.as_mut_ptr().cast())) };
        for (frame, a) in s.image.chunks(VOXELS * COILS).zip(a.chunks(VOXELS)) {
            let mut b = poisoned::<f32>(VOXELS);
            recon::combine(frame, &N, COILS, how, &mut b).unwrap();
            same(a, &b);
        }
    }
    let mut a = poisoned::<f32>(VOXELS * FRAMES);
    let at = a.as_mut_ptr().cast();
    let mut bad = s.image.clone();
    // The bad value is in the second frame. The first frame must not be written either.
    bad[VOXELS * COILS + 5].re = f32::INFINITY;
    // SAFETY: arrays have the lengths documented.
    unsafe {
        fails(recon_combine(&raw const g, 0, bad.as_ptr().cast(), at), RECON_NOT_FINITE, &["voxel 5 "]);
        fails(recon_combine(&raw const g, 5, s.image_at(), at), RECON_UNKNOWN_VALUE, &["method is 5", "ADAPTIVE"]);
        fails(recon_combine(&raw const g, 0, null(), at), RECON_NULL_POINTER, &["coil_images"]);
        fails(recon_combine(&raw const g, 0, s.image_at(), null_mut()), RECON_NULL_POINTER, &["image"]);
        fails(recon_combine(null(), 0, s.image_at(), at), RECON_NULL_POINTER, &["geometry"]);
        let none = recon_geometry { frames: 0, ..g };
        fails(recon_combine(&raw const none, 0, s.image_at(), at), RECON_INVALID_SIZE, &["0 frames"]);
        fails(recon_combine(&raw const g, 0, at, at), RECON_INVALID_ARGUMENT, &["overlap"]);
        let list = recon_geometry { voxel_count: VOXELS as u64, ..g };
        fails(recon_combine(&raw const list, 1, s.image_at(), at), RECON_UNSUPPORTED, &["list"]);
    }
    untouched(&a);
}

#[test]
fn images_on_another_matrix_coil_by_coil() {
    let s = Scene::<f64>::new();
    let g = s.geometry();
    // Voxels become finer along x, and y is cut.
    let (fov, dims_fov) = ([1.0, 2.0, 3.0], [1.0, 1.5, 0.0]);
    let wanted: Vec<usize> = N.iter().enumerate().map(|(axis, n)| [2 * n, n - 1, n + 2][axis]).collect();
    let dims: Vec<u64> = wanted.iter().map(|&n| n as u64).collect();
    let voxels: usize = wanted.iter().product();
    let mut a = poisoned::<f64>(voxels * COILS * FRAMES);
    let at = a.as_mut_ptr().cast();
    // SAFETY: arrays have the lengths documented.
    unsafe { ok(recon_resize(&raw const g, fov.as_ptr(), dims.as_ptr(), dims_fov.as_ptr(), s.image_at(), at)) };
    let resize = recon::Resize::new(&N, &fov[..N.len()], &wanted, &dims_fov[..N.len()]).unwrap();
    for (image, a) in s.image.chunks(VOXELS).zip(a.chunks(voxels)) {
        let mut b = poisoned::<f64>(voxels);
        resize.apply(image, &mut b).unwrap();
        same(a, &b);
    }
    // Without fields of view, voxels keep their size.
    // SAFETY: arrays have the lengths documented.
    unsafe { ok(recon_resize(&raw const g, null(), dims.as_ptr(), null(), s.image_at(), at)) };
    let resize = recon::Resize::new(&N, &[0.0; 3][..N.len()], &wanted, &[0.0; 3][..N.len()]).unwrap();
    let mut b = poisoned::<f64>(voxels);
    resize.apply(&s.image[..VOXELS], &mut b).unwrap();
    same(&a[..voxels], &b);

    let mut a = poisoned::<f64>(voxels * COILS * FRAMES);
    let at = a.as_mut_ptr().cast();
    let (f, d, to) = (fov.as_ptr(), dims.as_ptr(), dims_fov.as_ptr());
    let mut bad = s.image.clone();
    // The bad value is in the last image. No image before it must be written.
    let last = bad.len() - 1;
    bad[last].re = f64::INFINITY;
    // SAFETY: arrays have the lengths documented.
    unsafe {
        fails(recon_resize(&raw const g, f, d, to, bad.as_ptr().cast(), at), RECON_NOT_FINITE, &["voxel"]);
        fails(recon_resize(null(), f, d, to, s.image_at(), at), RECON_NULL_POINTER, &["geometry"]);
        fails(recon_resize(&raw const g, f, null(), to, s.image_at(), at), RECON_NULL_POINTER, &["dims"]);
        fails(recon_resize(&raw const g, f, d, to, null(), at), RECON_NULL_POINTER, &["images"]);
        fails(recon_resize(&raw const g, f, d, to, s.image_at(), null_mut()), RECON_NULL_POINTER, &["resized"]);
        fails(recon_resize(&raw const g, f, d, to, at, at), RECON_INVALID_ARGUMENT, &["overlap"]);
        let none = recon_geometry { frames: 0, ..g };
        fails(recon_resize(&raw const none, f, d, to, s.image_at(), at), RECON_INVALID_SIZE, &["0 frames"]);
        fails(recon_resize(&raw const g, f, [0; 3].as_ptr(), to, s.image_at(), at), RECON_INVALID_SIZE, &["0"]);
        let far = [1e-12; 3];
        fails(
            recon_resize(&raw const g, f, d, far.as_ptr(), s.image_at(), at),
            RECON_SIZE_OVERFLOW,
            &["fields of view"],
        );
        let list = recon_geometry { voxel_count: VOXELS as u64, ..g };
        fails(recon_resize(&raw const list, f, d, to, s.image_at(), at), RECON_UNSUPPORTED, &["list"]);
    }
    untouched(&a);
}

// ------------------------------------------------------------------------------------------------------ errors

#[test]
fn null_and_misaligned_pointers_are_named() {
    let s = Scene::<f64>::new();
    let plan = Handle::new(&s.combined(), &options(|_| ()));
    let mut images = poisoned::<f64>(VOXELS * COILS * FRAMES * 8);
    let out: *mut c_void = images.as_mut_ptr().cast();
    let (k, x, p) = (s.kspace_at(), s.image_at(), plan.0.cast_const());
    let path = c"/nowhere/q".as_ptr();
    type Call<'a> = Box<dyn Fn(&[*mut c_void]) -> recon_status + 'a>;
    let make = |f: unsafe extern "C" fn(*const recon_plan, *const c_void, *mut c_void) -> recon_status| -> Call<'_> {
        // SAFETY: one pointer is bad, which is found before anything is read.
        Box::new(move |a| unsafe { f(a[0].cast(), a[1], a[2]) })
    };
    let m = |p: *const c_void| p.cast_mut();
    let pm = m(p.cast());
    // SAFETY: in each call one pointer is bad, which is found before anything is read.
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
    // SAFETY: in each call one pointer is bad, which is found before anything is read.
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
        // Next to each other is fine.
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
    // The geometry decides how long arrays are. An array that no process can hold is refused by the call that gets it.
    let plan = Handle::new(&recon_geometry { frames: 1 << 40, ..g }, &o);
    let mut image = poisoned::<f32>(1);
    // SAFETY: refused for its length before anything is read.
    let status = unsafe { recon_fhd(plan.0, s.kspace_at(), image.as_mut_ptr().cast()) };
    fails(status, RECON_SIZE_OVERFLOW, &["kspace has"]);
    untouched(&image);
}

#[test]
fn bad_numbers_are_named_by_index() {
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
            let mut out = poisoned::<f32>(SAMPLES * COILS * FRAMES);
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
    // Finite data whose sum overflows.
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

/// The images of every reconstruction by a plan.
fn images_of<T: Number>(plan: &Handle, kspace: &[Complex<T>]) -> Vec<Vec<Complex<T>>> {
    let info = plan.info();
    assert_eq!(info.kspace_elements as usize, kspace.len());
    let mut images = vec![poisoned::<T>(info.image_elements as usize); 4];
    let mut out = images.iter_mut().map(|image| image.as_mut_ptr().cast());
    let kspace = kspace.as_ptr().cast();
    // SAFETY: arrays have the lengths documented.
    unsafe {
        ok(recon_fhd(plan.0, kspace, out.next().unwrap()));
        ok(recon_weighted_fhd(plan.0, kspace, out.next().unwrap()));
        ok(recon_grid(plan.0, kspace, out.next().unwrap()));
        ok(recon_cg(plan.0, kspace, out.next().unwrap(), null(), null_mut()));
    }
    images
}

fn changed_plans_are_as_new_ones<T: Number>() {
    let s = Scene::<T>::new();
    let o = options(|o| o.normal = recon_normal_operator::RECON_NORMAL_TOEPLITZ as u32);
    let new = |g: &recon_geometry, kspace: &[Complex<T>]| images_of(&Handle::new(g, &o), kspace);
    let plan = Handle::new(&s.combined(), &o);
    images_of(&plan, &s.kspace);
    // The first half of the spokes: the addresses and the number of the same structure.
    let half = SAMPLES / 2;
    let data = &s.kspace[..half * COILS * FRAMES];
    let mut g = s.combined();
    g.samples = half as u64;
    let mut weights = [T::of(0.25); SAMPLES];
    let mut maps = s.maps.clone();
    maps.iter_mut().enumerate().for_each(|(i, z)| *z *= T::of(1.0 + (i % 5) as f64));
    // SAFETY: arrays have the lengths documented.
    unsafe {
        ok(recon_plan_set_trajectory(plan.0, &raw const g));
        assert_eq!(images_of(&plan, data), new(&g, data));
        // Without maps the plan's stay. Weights of other samples are not kept, nor dropped without a word.
        let own = recon_geometry { weights: null(), ..g };
        fails(recon_plan_set_trajectory(plan.0, &raw const own), RECON_INVALID_ARGUMENT, &["density weights"]);
        assert_eq!(images_of(&plan, data), new(&g, data));
        ok(recon_plan_set_weights(plan.0, null(), 0));
        ok(recon_plan_set_trajectory(plan.0, &recon_geometry { coil_maps: null(), ..own }));
        assert_eq!(images_of(&plan, data), new(&own, data));
        ok(recon_plan_set_coil_maps(plan.0, maps.as_ptr().cast(), maps.len() as u64));
        g.coil_maps = maps.as_ptr().cast();
        assert_eq!(images_of(&plan, data), new(&recon_geometry { weights: null(), ..g }, data));
        ok(recon_plan_set_weights(plan.0, weights.as_ptr().cast(), half as u64));
        g.weights = weights.as_ptr().cast();
        assert_eq!(images_of(&plan, data), new(&g, data));
        // What was given is the caller's again.
        weights.fill(T::of(f64::NAN));
        images_of(&plan, data);
        ok(recon_plan_set_weights(plan.0, null(), 0));
        g.weights = null();
        assert_eq!(images_of(&plan, data), new(&g, data));
        // Interleaved coordinates, and density weights for the new number of samples.
        let both: Vec<T> = s.k[0].iter().zip(&s.k[1]).flat_map(|(x, y)| [*x, *y]).collect();
        let mut g = s.combined();
        g.coordinates = [both.as_ptr().cast(), both[1..].as_ptr().cast(), null()];
        g.coordinate_stride = 2;
        ok(recon_plan_set_trajectory(plan.0, &raw const g));
        assert_eq!(images_of(&plan, &s.kspace), new(&g, &s.kspace));
        let (mut found, mut wanted) = (vec![T::ZERO; SAMPLES], vec![T::ZERO; SAMPLES]);
        ok(recon_density(plan.0, 2, 0, 0.0, found.as_mut_ptr().cast()));
        ok(recon_density(Handle::new(&g, &o).0, 2, 0, 0.0, wanted.as_mut_ptr().cast()));
        same(&found, &wanted);
    }
}

#[test]
fn changed_plans_are_as_new_ones_in_both_precisions() {
    changed_plans_are_as_new_ones::<f32>();
    changed_plans_are_as_new_ones::<f64>();
}

#[test]
fn changes_that_make_no_sense_are_refused() {
    let s = Scene::<f64>::new();
    let plan = Handle::new(&s.weighted(), &options(|_| ()));
    let combined = Handle::new(&s.combined(), &options(|_| ()));
    let before = images_of(&plan, &s.kspace);
    let g = s.weighted();
    let refused = |g: recon_geometry, status: recon_status, words: &[&str]| {
        // SAFETY: what is wrong with the structure is found before anything is read beyond it.
        fails(unsafe { recon_plan_set_trajectory(plan.0, &raw const g) }, status, words);
    };
    refused(recon_geometry { precision: 0, ..g }, RECON_INVALID_ARGUMENT, &["single precision", "double", "new plan"]);
    refused(recon_geometry { precision: 9, ..g }, RECON_UNKNOWN_VALUE, &["precision"]);
    refused(recon_geometry { ndim: 4, ..g }, RECON_INVALID_SIZE, &["ndim"]);
    refused(recon_geometry { dims: [24, 21, 0], ..g }, RECON_SIZE_MISMATCH, &["[24, 21]", "[24, 20]"]);
    refused(recon_geometry { coils: 1, ..g }, RECON_SIZE_MISMATCH, &["1 coils", "3"]);
    refused(recon_geometry { frames: 1, ..g }, RECON_SIZE_MISMATCH, &["1 frames", "2"]);
    refused(recon_geometry { basis: 1, ..g }, RECON_INVALID_ARGUMENT, &["basis"]);
    refused(recon_geometry { basis: 7, ..g }, RECON_UNKNOWN_VALUE, &["basis"]);
    refused(recon_geometry { samples: 0, ..g }, RECON_INVALID_SIZE, &["no samples"]);
    refused(recon_geometry { struct_size: 3, ..g }, RECON_UNKNOWN_STRUCT_SIZE, &["struct_size"]);
    refused(recon_geometry { coordinates: [g.coordinates[0], null(), null()], ..g }, RECON_NULL_POINTER, &["[1]"]);
    let coil_maps = s.maps.as_ptr().cast();
    refused(recon_geometry { coil_maps, ..g }, RECON_INVALID_ARGUMENT, &["without", "new plan"]);
    refused(recon_geometry { voxels: g.coordinates, voxel_count: 9, ..g }, RECON_INVALID_ARGUMENT, &["list of voxels"]);
    let (map, times) = (vec![0.0f32; VOXELS], vec![0.0f32; SAMPLES]);
    let with_map = recon_geometry { field_map: map.as_ptr().cast(), times: times.as_ptr().cast(), ..g };
    refused(with_map, RECON_INVALID_ARGUMENT, &["a field map", "none"]);
    let mut odd = s.k[1].clone();
    odd[5] = 0.75;
    let coordinates = [g.coordinates[0], odd.as_ptr().cast(), null()];
    refused(recon_geometry { coordinates, ..g }, RECON_COORDINATE_OUT_OF_RANGE, &["sample 5", "axis 1"]);
    let maps = || s.maps.as_ptr().cast();
    let (samples, elements) = (SAMPLES as u64, s.maps.len() as u64);
    // SAFETY: what is wrong is found before more is read than there is.
    unsafe {
        fails(recon_plan_set_trajectory(null_mut(), &raw const g), RECON_NULL_POINTER, &["plan"]);
        fails(recon_plan_set_trajectory(plan.0, null()), RECON_NULL_POINTER, &["geometry"]);
        let w = s.weights.as_ptr().cast();
        fails(recon_plan_set_weights(null_mut(), w, samples), RECON_NULL_POINTER, &["plan"]);
        fails(recon_plan_set_weights(plan.0, null(), samples), RECON_NULL_POINTER, &["weights"]);
        fails(recon_plan_set_weights(plan.0, w, samples - 1), RECON_SIZE_MISMATCH, &["767", "768"]);
        fails(recon_plan_set_weights(plan.0, w, 0), RECON_SIZE_MISMATCH, &["0", "768"]);
        fails(recon_plan_set_weights(plan.0, s.k[0].as_ptr().cast(), samples), RECON_INVALID_ARGUMENT, &["negative"]);
        fails(recon_plan_set_coil_maps(null_mut(), maps(), elements), RECON_NULL_POINTER, &["plan"]);
        fails(recon_plan_set_coil_maps(combined.0, null(), elements), RECON_NULL_POINTER, &["maps"]);
        fails(recon_plan_set_coil_maps(plan.0, maps(), elements), RECON_INVALID_ARGUMENT, &["without", "new plan"]);
        fails(recon_plan_set_coil_maps(combined.0, maps(), elements - 1), RECON_SIZE_MISMATCH, &["1439", "1440"]);
        let misaligned = s.weights.as_ptr().cast::<u8>().add(4).cast();
        fails(recon_plan_set_weights(plan.0, misaligned, samples - 1), RECON_INVALID_ARGUMENT, &["multiple of 8"]);
    }
    assert_eq!(images_of(&plan, &s.kspace), before);
}

/// Gives the plan of `user_data` another trajectory.
unsafe extern "C" fn change_in_progress(p: *const recon_progress, user_data: *mut c_void) -> c_int {
    // SAFETY: the library's structure, and the test's plan and geometry.
    unsafe {
        if (*p).iteration == 1 {
            let (plan, g) = *user_data.cast::<(*mut recon_plan, *const recon_geometry)>();
            ok(recon_plan_set_trajectory(plan, g));
        }
    }
    0
}

#[test]
fn a_progress_callback_may_change_the_trajectory() {
    let s = Scene::<f32>::new();
    let plan = Handle::new(&s.combined(), &options(|_| ()));
    let wanted = images_of(&plan, &s.kspace).pop().unwrap();
    let half = recon_geometry { samples: SAMPLES as u64 / 2, ..s.combined() };
    let mut both = (plan.0, &raw const half);
    let mut c = init(recon_cg_options_init);
    c.progress = Some(change_in_progress);
    c.user_data = (&raw mut both).cast();
    let mut image = poisoned::<f32>(VOXELS * FRAMES);
    // SAFETY: arrays have the lengths documented.
    ok(unsafe { recon_cg(plan.0, s.kspace_at(), image.as_mut_ptr().cast(), &raw const c, null_mut()) });
    same(&image, &wanted);
    let data = &s.kspace[..s.kspace.len() / 2];
    assert_eq!(images_of(&plan, data), images_of(&Handle::new(&half, &options(|_| ())), data));
}

#[test]
fn warnings_of_a_plan_are_told() {
    let mut s = Scene::<f64>::new();
    let read = |plan: &Handle, index: u64| {
        let (mut kind, mut text) = (77, c"before".as_ptr());
        // SAFETY: the plan is alive, and the text lives as long.
        unsafe {
            ok(recon_plan_warning(plan.0, index, &raw mut kind, &raw mut text));
            (kind, (!text.is_null()).then(|| CStr::from_ptr(text).to_str().unwrap().to_owned()))
        }
    };
    assert_eq!(read(&Handle::new(&s.geometry(), &options(|_| ())), 0), (0, None));
    s.k.iter_mut().flatten().for_each(|k| *k /= 64.0);
    let plan = Handle::new(&s.geometry(), &options(|_| ()));
    let (kind, text) = read(&plan, 0);
    assert_eq!(kind, recon_warning::RECON_WARNING_EXTENT as u32);
    assert!(text.is_some_and(|t| t.contains("axis 0") && t.contains("once too often")));
    assert_eq!((read(&plan, 1), read(&plan, u64::MAX)), ((0, None), (0, None)));
    // They are those of the trajectory that the plan has.
    let good = Scene::<f64>::new();
    // SAFETY: plan, structure and arrays are alive.
    unsafe {
        ok(recon_plan_set_trajectory(plan.0, &good.geometry()));
        assert_eq!(read(&plan, 0), (0, None));
        ok(recon_plan_set_trajectory(plan.0, &s.geometry()));
    }
    assert_eq!(read(&plan, 0).0, recon_warning::RECON_WARNING_EXTENT as u32);
    let (mut kind, mut text) = (0, null());
    // SAFETY: what is null is refused.
    unsafe {
        fails(recon_plan_warning(null(), 0, &raw mut kind, &raw mut text), RECON_NULL_POINTER, &["plan"]);
        fails(recon_plan_warning(plan.0, 0, null_mut(), &raw mut text), RECON_NULL_POINTER, &["kind"]);
        fails(recon_plan_warning(plan.0, 0, &raw mut kind, null_mut()), RECON_NULL_POINTER, &["text"]);
    }
}

#[test]
fn width_and_oversampling_are_named_or_chosen() {
    let s = Scene::<f32>::new();
    let info = |width, oversampling| {
        let plan = Handle::new(&s.geometry(), &options(|o| (o.width, o.oversampling) = (width, oversampling)));
        let info = plan.info();
        // SAFETY: the plan lives, and text is written.
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
    // A caller of the version before has neither field: what stands where they are now is not read.
    let older = options(|o| (o.struct_size, o.width, o.oversampling) = (88, 99, -1.0));
    let plan = Handle::new(&s.geometry(), &older);
    assert_eq!((plan.info().width, plan.info().oversampling, plan.info().error), chosen);
}

#[test]
fn widths_and_oversamplings_that_no_window_has_are_refused() {
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
    let plan = Handle::new(&s.combined(), &options(|_| ()));
    let mut image = poisoned::<f32>(VOXELS * FRAMES);
    let mut cg = |change: &dyn Fn(&mut recon_cg_options), status: recon_status, words: &[&str]| {
        let mut c = init(recon_cg_options_init);
        change(&mut c);
        let mut report = init(recon_cg_report_init);
        report.residual = POISON;
        // SAFETY: what is wrong is found before it is used.
        unsafe {
            let to = image.as_mut_ptr().cast();
            fails(recon_cg(plan.0, s.kspace_at(), to, &raw const c, &raw mut report), status, words);
        }
        assert_eq!((report.residual, report.images), (POISON, 0));
        untouched(&image);
    };
    for bad in [1.0, -0.1, f64::NAN] {
        cg(&|c| c.tolerance = bad, RECON_TOLERANCE_OUT_OF_RANGE, &["residual"]);
    }
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        cg(&|c| c.lambda = bad, RECON_INVALID_ARGUMENT, &["lambda"]);
    }
    let reference = vec![1.0f32; VOXELS];
    let anatomical = |c: &mut recon_cg_options| {
        (c.prior, c.lambda, c.reference) = (2, 1.0, reference.as_ptr().cast());
    };
    cg(&|c| (c.prior, c.lambda) = (2, 1.0), RECON_NULL_POINTER, &["reference"]);
    cg(
        &|c| {
            anatomical(c);
            c.edge = 0.0
        },
        RECON_INVALID_ARGUMENT,
        &["edge is 0"],
    );
    cg(&|c| c.prior = 4, RECON_UNKNOWN_VALUE, &["prior is 4", "3 (RECON_PRIOR_MATRIX)"]);

    let (starts, columns) = ([0u64, 1, 2], [0u64, VOXELS as u64]);
    let values = [Complex::new(1.0f32, 0.0); 2];
    let matrix = |c: &mut recon_cg_options| {
        (c.prior, c.lambda, c.matrix_rows) = (3, 1.0, 2);
        (c.matrix_starts, c.matrix_columns, c.matrix_values) =
            (starts.as_ptr(), columns.as_ptr(), values.as_ptr().cast());
    };
    cg(&matrix, RECON_INVALID_ARGUMENT, &["entry 1", "column 480"]);
    cg(
        &|c| {
            matrix(c);
            c.matrix_rows = 0
        },
        RECON_INVALID_ARGUMENT,
        &["row starts"],
    );
    cg(
        &|c| {
            matrix(c);
            c.matrix_rows = u64::MAX
        },
        RECON_SIZE_OVERFLOW,
        &["matrix_starts"],
    );
    cg(
        &|c| {
            matrix(c);
            c.matrix_starts = null()
        },
        RECON_NULL_POINTER,
        &["matrix_starts"],
    );
    cg(
        &|c| {
            matrix(c);
            c.matrix_columns = null()
        },
        RECON_NULL_POINTER,
        &["matrix_columns"],
    );
    cg(
        &|c| {
            matrix(c);
            c.matrix_values = null()
        },
        RECON_NULL_POINTER,
        &["matrix_values"],
    );
    let huge = [0u64, 1, 1 << 60];
    cg(
        &|c| {
            matrix(c);
            c.matrix_starts = huge.as_ptr()
        },
        RECON_SIZE_OVERFLOW,
        &["matrix_columns"],
    );
    let falling = [0u64, 3, 2];
    cg(
        &|c| {
            matrix(c);
            c.matrix_starts = falling.as_ptr()
        },
        RECON_INVALID_ARGUMENT,
        &["never fall"],
    );
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
/// Programs compiled with them must go on to work.
#[test]
fn options_of_the_first_header_are_understood() {
    let s = Scene::<f32>::new();
    let beyond = std::ptr::without_provenance_mut(77);
    unsafe extern "C" fn never(_: *mut c_void) -> c_int {
        std::process::abort()
    }
    for (size, simd, stream) in [(56, 77, beyond), (64, 0, beyond), (72, 0, null_mut())] {
        let mut o = options(|o| (o.simd, o.stream, o.interrupt) = (77, beyond, Some(never as _)));
        // SAFETY: the structure has more bytes than announced.
        ok(unsafe { recon_options_init(&raw mut o, size) });
        assert_eq!((o.struct_size, o.simd, o.stream), (size, simd, stream), "written beyond the caller's structure");
        assert!(o.interrupt.is_some(), "written beyond the caller's structure");
        Handle::new(&s.geometry(), &o);
    }
}

/// The level asked for is the one in use, or an error.
#[test]
fn the_vector_unit_is_the_one_asked_for() {
    let s = Scene::<f32>::new();
    for (simd, name) in [(1, if cfg!(target_arch = "x86_64") { "sse" } else { "portable" }), (2, "avx2"), (3, "avx512")]
    {
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
                fails(status, RECON_UNSUPPORTED, &[&format!("level {name} was asked for, but this processor has")])
            }
        }
    }
}

#[test]
fn unknown_values_are_named_with_those_known() {
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
        check(&g, &options(|o| o.simd = bad), "simd", "3 (RECON_SIMD_AVX512)");
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
    // The size from before lambda had a unit: the number would mean something else now.
    let mut c = init(recon_cg_options_init);
    // SAFETY: refused before anything is written.
    fails(unsafe { recon_cg_options_init(&raw mut c, 104) }, RECON_UNKNOWN_STRUCT_SIZE, &["104", "120"]);
}

/// The bytes needed, read from a message about the memory limit.
fn bytes_needed() -> u64 {
    let message = message();
    message.split("needs ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn memory_limits_are_kept_and_explained() {
    let s = Scene::<f32>::new();
    let g = s.combined();
    let limited = |limit: u64, normal: u32| options(|o| (o.memory_limit, o.normal) = (limit, normal));
    create_fails(&g, &limited(1, 2), RECON_MEMORY_LIMIT, &["bytes", "limit is 1", "raise"]);
    let for_plan = bytes_needed();
    create_fails(&g, &limited(for_plan - 1, 2), RECON_MEMORY_LIMIT, &[&for_plan.to_string()]);
    let plan = Handle::new(&g, &limited(for_plan, 2));
    let mut image = poisoned::<f32>(VOXELS * FRAMES);
    let to: *mut c_void = image.as_mut_ptr().cast();
    // SAFETY: arrays have the lengths documented.
    let cg = |plan: &Handle| unsafe { recon_cg(plan.0, s.kspace_at(), to, null(), null_mut()) };
    fails(cg(&plan), RECON_MEMORY_LIMIT, &["conjugate gradient", "bytes"]);
    untouched(&image);
    ok(cg(&Handle::new(&g, &limited(bytes_needed(), 2))));

    // Q was asked for and does not fit. It fits when the limit is raised as the message says.
    let mut image = poisoned::<f32>(VOXELS * FRAMES);
    let to: *mut c_void = image.as_mut_ptr().cast();
    // SAFETY: arrays have the lengths documented.
    let normal = |plan: &Handle| unsafe { recon_normal(plan.0, s.image_at(), to) };
    fails(normal(&Handle::new(&g, &limited(for_plan, 1))), RECON_MEMORY_LIMIT, &["Q needs"]);
    untouched(&image);
    ok(normal(&Handle::new(&g, &limited(bytes_needed(), 1))));
    // No limit at all.
    Handle::new(&g, &limited(u64::MAX, 0));
}

/// Memory is told from sizes alone, as by the Rust API. tests/memory.rs compares the Rust API with what is allocated.
#[test]
fn memory_is_told_beforehand() {
    let s = Scene::<f32>::new();
    let on_cpu = options(|o| (o.device, o.threads) = (1, 2));
    let mut told = init(recon_memory_init);
    let mut tell = |g: &recon_geometry, o: *const recon_options| {
        // SAFETY: structures are alive. Coordinates are as many as they say, or null.
        ok(unsafe { recon_plan_memory(g, o, &raw mut told) });
        told
    };
    let wanted = Plan::<f32>::memory(
        &recon::ScanSize::of(&s.rust()).unwrap(),
        &recon::Options { device: recon::Device::Cpu, threads: 2, ..Default::default() },
    );
    let (wanted, found) = (wanted.unwrap(), tell(&s.geometry(), &raw const on_cpu));
    assert_eq!(
        [found.host_plan, found.host_transform, found.host_grid, found.host_density, found.host_coil_maps],
        [
            wanted.host.plan as u64,
            wanted.host.transform as u64,
            wanted.host.grid as u64,
            wanted.host.density as u64,
            wanted.host.coil_maps as u64
        ]
    );
    assert_eq!([found.host_normal, found.host_cg], [wanted.host.normal as u64, wanted.host.cg as u64]);
    assert_eq!([found.device_plan, found.device_cg, found.device_q], [0; 3]);
    // Without coordinates all samples may lie in the centre. Maps and weights count if they are given, and are not
    // read.
    let bare = recon_geometry { coordinates: [null(); 3], ..s.geometry() };
    let more = tell(&bare, &raw const on_cpu);
    assert!(more.host_coil_maps >= found.host_coil_maps && more.host_cg == found.host_cg); // equal where all lie in it
    let nowhere: *const c_void = std::ptr::without_provenance(1);
    let one = recon_geometry { frames: 1, ..bare };
    let plain = tell(&one, &raw const on_cpu);
    let mapped = tell(&recon_geometry { coil_maps: nowhere, weights: nowhere, ..one }, &raw const on_cpu);
    assert!(mapped.host_plan > plain.host_plan && mapped.host_plan < 100 * plain.host_plan);
    // A narrower centre has fewer samples. A centre wider than k-space is refused, as by recon_coil_maps.
    let mut wide = init(recon_memory_init);
    wide.calibration = 8;
    // SAFETY: structures and arrays are alive.
    ok(unsafe { recon_plan_memory(&s.geometry(), &raw const on_cpu, &raw mut wide) });
    assert!(wide.host_coil_maps < found.host_coil_maps && wide.host_cg == found.host_cg && wide.calibration == 8);
    wide.calibration = u32::MAX;
    // SAFETY: structures and arrays are alive.
    let status = unsafe { recon_plan_memory(&s.geometry(), &raw const on_cpu, &raw mut wide) };
    fails(status, RECON_INVALID_ARGUMENT, &["calibration", &u32::MAX.to_string()]);
    assert!(found.host_combine as usize >= (COILS * 16 + 8) * VOXELS, "{}", found.host_combine);
    // A plan holds no more.
    let plan = Handle::new(&s.geometry(), &on_cpu);
    let mut properties = init(recon_plan_properties_init);
    // SAFETY: the plan is alive.
    ok(unsafe { recon_plan_info(plan.0, &raw mut properties) });
    assert!(properties.host_bytes <= found.host_transform.max(found.host_grid), "{}", properties.host_bytes);
    tell(&s.geometry(), null());
    // SAFETY: structures are alive, or pointers are null, which is refused.
    unsafe {
        let g = s.geometry();
        fails(recon_plan_memory(null(), null(), &raw mut told), RECON_NULL_POINTER, &["geometry"]);
        fails(recon_plan_memory(&g, null(), null_mut()), RECON_NULL_POINTER, &["memory"]);
        let none = recon_geometry { samples: 0, ..g };
        fails(recon_plan_memory(&none, null(), &raw mut told), RECON_INVALID_SIZE, &["0 samples"]);
        let beyond = options(|o| o.tolerance = 1.0);
        fails(recon_plan_memory(&g, &beyond, &raw mut told), RECON_TOLERANCE_OUT_OF_RANGE, &["1"]);
        told.struct_size = 7;
        fails(recon_plan_memory(&g, null(), &raw mut told), RECON_UNKNOWN_STRUCT_SIZE, &["recon_memory"]);
    }
}

#[test]
fn what_is_not_there_is_said() {
    let s = Scene::<f32>::new();
    let g = s.combined();
    let beyond = recon_device_count();
    let mut device = init(recon_device_properties_init);
    device.memory_bytes = 99;
    // SAFETY: the structure is alive.
    fails(unsafe { recon_device_info(beyond, &raw mut device) }, RECON_NO_DEVICE, &["device cpu"]);
    assert_eq!(device.memory_bytes, 99);
    let indices = [beyond, 0];
    let o = options(|o| (o.device, o.device_count, o.device_indices) = (2, 2, indices.as_ptr()));
    create_fails(&g, &o, RECON_NO_DEVICE, &["device cpu"]);
    Handle::new(&g, &options(|o| o.device = 1));
    if beyond == 0 {
        create_fails(&g, &options(|o| o.device = 2), RECON_NO_DEVICE, &["driver", "device cpu"]);
        create_fails(&g, &options(|o| o.pointers_on_device = 1), RECON_NO_DEVICE, &["driver"]);
    }
    let o = options(|o| (o.device, o.pointers_on_device) = (1, 1));
    create_fails(&g, &o, RECON_INVALID_ARGUMENT, &["pointers_on_device is 1", "RECON_DEVICE_CPU"]);
    let map = vec![0.0f32; VOXELS];
    let times = vec![0.0f32; SAMPLES];
    let with_map = recon_geometry { field_map: map.as_ptr().cast(), ..g };
    create_fails(&with_map, &options(|_| ()), RECON_INVALID_ARGUMENT, &["field map", "times"]);
    let only_times = recon_geometry { times: times.as_ptr().cast(), ..g };
    create_fails(&only_times, &options(|_| ()), RECON_INVALID_ARGUMENT, &["times", "field map"]);

    let plan = Handle::new(&g, &options(|o| o.method = 1));
    let mut out = poisoned::<f32>(VOXELS * FRAMES);
    let to: *mut c_void = out.as_mut_ptr().cast();
    // SAFETY: arrays have the lengths documented.
    unsafe {
        fails(recon_fbp(plan.0, 5, s.kspace_at(), to), RECON_UNKNOWN_VALUE, &["filter is 5", "RECON_FILTER_HANN"]);
        fails(recon_grid_kspace(plan.0, s.kspace_at(), to), RECON_UNSUPPORTED, &["exact", "NUFFT"]);
        fails(recon_window_correction(plan.0, 0, to.cast()), RECON_UNSUPPORTED, &["exact", "NUFFT"]);
    }
    untouched(&out);
}

#[test]
fn memory_that_is_not_there_is_said() {
    // Q of 2^49 numbers is accepted as a size, but no machine has so much memory. The plan itself is small.
    let s = Scene::<f32>::new();
    let coordinates = [s.geometry().coordinates[0]; 3];
    let g = recon_geometry { ndim: 3, dims: [1 << 16, 1 << 15, 1 << 15], coordinates, ..s.geometry() };
    let plan = Handle::new(&g, &options(|o| (o.device, o.method, o.normal) = (1, 1, 1)));
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("huge.{}", std::process::id()));
    let path = CString::new(file.to_str().unwrap()).unwrap();
    // SAFETY: the plan and the path are alive.
    let status = unsafe { recon_plan_save_q(plan.0, path.as_ptr()) };
    fails(status, RECON_OUT_OF_HOST_MEMORY, &["could not allocate 2251799813685248 bytes for", "Q", "free memory"]);
    assert!(!file.exists());
}

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
        // The first image was solved by then. It must not be written.
        untouched(&image);
    }
}

#[test]
fn q_is_saved_and_loaded() {
    let s = Scene::<f32>::new();
    let o = options(|o| o.normal = 1);
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("q.{}", std::process::id()));
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
        std::fs::remove_file(&file).unwrap();
        fails(recon_plan_load_q(again.0, at), RECON_IO, &["could not load"]);
        fails(recon_plan_save_q(again.0, c"/nowhere/at/all".as_ptr()), RECON_IO, &["/nowhere/at/all", "save"]);
        let transforms = Handle::new(&s.combined(), &options(|o| o.normal = 2));
        fails(recon_plan_save_q(transforms.0, at), RECON_UNSUPPORTED, &["does not use Q"]);
        fails(recon_plan_load_q(transforms.0, at), RECON_UNSUPPORTED, &["does not use Q"]);
        assert!(!file.exists());
    }
}

// ------------------------------------------------------------------------------------------------------ interruption

/// A caller who is asked whether to stop.
#[derive(Default)]
struct Caller {
    asked: AtomicU64,
    /// The number of the question that is answered with yes; 0 if none is.
    stop_at: AtomicU64,
    /// Microseconds before an answer.
    thinks: AtomicU64,
    threads: Mutex<HashSet<ThreadId>>,
}

unsafe extern "C" fn answer(data: *mut c_void) -> c_int {
    // SAFETY: the address of the test's caller.
    let caller = unsafe { &*data.cast::<Caller>() };
    caller.threads.lock().unwrap().insert(std::thread::current().id());
    std::thread::sleep(Duration::from_micros(caller.thinks.load(Relaxed)));
    let stop_at = caller.stop_at.load(Relaxed);
    // After a yes there must be no further question in the same call.
    c_int::from(caller.asked.fetch_add(1, Relaxed) + 1 >= stop_at && stop_at != 0)
}

impl Caller {
    fn options(&self, change: impl FnOnce(&mut recon_options)) -> recon_options {
        options(|o| {
            (o.device, o.interrupt, o.interrupt_data) = (1, Some(answer as _), (&raw const *self).cast_mut().cast());
            change(o);
        })
    }

    fn stop_at(&self, question: u64) {
        self.asked.store(0, Relaxed);
        self.stop_at.store(question, Relaxed);
    }

    /// Makes a call that is stopped at a question, or ends before it. True: it was stopped.
    #[track_caller]
    fn may_stop(&self, question: u64, call: &mut dyn FnMut() -> recon_status) -> bool {
        self.stop_at(question);
        let status = call();
        let asked = self.asked.load(Relaxed);
        self.stop_at(0);
        if asked < question {
            ok(status);
            return false;
        }
        fails(status, RECON_CANCELLED, &["interrupted by the caller's function during "]);
        assert_eq!(asked, question, "asked after it had said stop");
        true
    }

    #[track_caller]
    fn stops(&self, question: u64, during: &str, mut call: impl FnMut() -> recon_status) {
        assert!(self.may_stop(question, &mut call), "the call ended before question {question}");
        assert!(message().ends_with(during), "{}", message());
    }

    /// Asserts that all questions came in this thread.
    #[track_caller]
    fn was_asked_here(&self) {
        assert_eq!(*self.threads.lock().unwrap(), HashSet::from([std::thread::current().id()]));
    }
}

/// Spokes in three dimensions, and data of some coils and frames.
struct Spokes {
    k: [Vec<f32>; 3],
    kspace: Vec<Complex<f32>>,
    coils: usize,
    frames: usize,
}

impl Spokes {
    fn new(spokes: usize, readout: usize, coils: usize, frames: usize) -> Self {
        let samples = spokes * readout;
        let mut k = [(); 3].map(|()| vec![0.0f32; samples]);
        let [x, y, z] = k.each_mut().map(|k| k.as_mut_ptr().cast());
        // SAFETY: arrays have the lengths documented.
        unsafe { ok(recon_trajectory_radial3d(0, spokes as u64, readout as u64, x, y, z)) };
        let value = |i: usize| Complex::new((0.3 * i as f32).sin(), (0.7 * i as f32).cos());
        Spokes { k, kspace: (0..samples * coils * frames).map(value).collect(), coils, frames }
    }

    fn geometry(&self, dims: &[u64]) -> recon_geometry {
        let mut g = init(recon_geometry_init);
        g.ndim = dims.len() as u32;
        g.dims[..dims.len()].copy_from_slice(dims);
        g.samples = self.k[0].len() as u64;
        g.coordinates = self.k.each_ref().map(|k| k.as_ptr().cast());
        (g.coils, g.frames) = (self.coils as u64, self.frames as u64);
        g
    }

    fn at(&self) -> *const c_void {
        self.kspace.as_ptr().cast()
    }
}

/// Sums that would take a quarter of an hour. The test ends in time only if they are interrupted.
#[test]
fn long_exact_sums_are_interrupted() {
    let s = Spokes::new(8000, 512, 1, 1);
    let image: Vec<Complex<f32>> = vec![Complex::new(0.5, 0.25); 224 * 192 * 160];
    let list: Vec<f32> = (0..image.len()).map(|i| (i % 199) as f32 - 99.5).collect();
    let on_grid = s.geometry(&[224, 192, 160]);
    let listed = recon_geometry { voxels: [list.as_ptr().cast(); 3], voxel_count: list.len() as u64, ..on_grid };
    let mut out = poisoned::<f32>(image.len().max(s.kspace.len()));
    let mut large = poisoned::<f32>(8 * image.len());
    for g in [on_grid, listed] {
        let caller = Caller::default();
        let plan = Handle::new(&g, &caller.options(|o| (o.method, o.normal) = (1, 2)));
        let (x, to) = (image.as_ptr().cast(), out.as_mut_ptr().cast());
        // SAFETY: arrays have the lengths documented.
        unsafe {
            for question in [1, 2, 4] {
                // The first questions come before the sums begin.
                let during = if question > 2 { "exact sums" } else { "" };
                caller.stops(question, during, || recon_fhd(plan.0, s.at(), to));
                caller.stops(question, during, || recon_forward(plan.0, x, to));
                caller.stops(question, during, || recon_normal(plan.0, x, to));
                caller.stops(question, during, || recon_weighted_fhd(plan.0, s.at(), to));
                caller.stops(question, during, || recon_cg(plan.0, s.at(), to, null(), null_mut()));
                caller.stops(question, during, || recon_q(plan.0, large.as_mut_ptr().cast()));
            }
        }
        caller.was_asked_here();
        untouched(&out);
        untouched(&large);
    }
}

#[test]
fn everything_long_is_interrupted() {
    let s = Spokes::new(800, 96, 8, 6);
    let g = s.geometry(&[48, 44, 40]);
    let voxels = 48 * 44 * 40;
    let caller = Caller::default();
    let o = caller.options(|o| (o.normal, o.tolerance) = (2, 1e-6));
    let plan = Handle::new(&g, &o);
    caller.was_asked_here();
    let mut maps = poisoned::<f32>(voxels * 8);
    // SAFETY: arrays have the lengths documented.
    unsafe { ok(recon_coil_maps(plan.0, s.at(), 0, maps.as_mut_ptr().cast())) };
    let combined = recon_geometry { coil_maps: maps.as_ptr().cast(), ..g };
    let combined = Handle::new(&combined, &o);
    let mut out = poisoned::<f32>(voxels * 8 * 6);
    let mut weights = vec![POISON as f32; s.k[0].len()];
    let cells = plan.info().grid_elements as usize;
    let (mut grid, mut q) = (poisoned::<f32>(cells), poisoned::<f32>(8 * voxels));
    let image: Vec<Complex<f32>> = vec![Complex::new(0.5, 0.25); voxels * 8 * 6];
    let (x, to) = (image.as_ptr().cast(), out.as_mut_ptr().cast());
    let mut cg = init(recon_cg_options_init);
    cg.iterations = 1_000_000;
    // SAFETY: arrays have the lengths documented.
    unsafe {
        for plan in [&plan, &combined] {
            for question in [1, 2, 3] {
                caller.stops(question, "transform", || recon_fhd(plan.0, s.at(), to));
                caller.stops(question, "transform", || recon_forward(plan.0, x, to));
                caller.stops(question, "", || recon_normal(plan.0, x, to));
                caller.stops(question, "", || recon_cg(plan.0, s.at(), to, &raw const cg, null_mut()));
            }
        }
        for question in [1, 3] {
            let to = weights.as_mut_ptr().cast();
            caller.stops(question, "weights", || recon_density(plan.0, 0, 1_000_000, 0.0, to));
        }
        caller.stops(1, "weights", || recon_grid(plan.0, s.at(), to));
        caller.stops(2, "", || recon_grid_kspace(plan.0, s.at(), grid.as_mut_ptr().cast()));
        caller.stops(1, "Q", || recon_q(plan.0, q.as_mut_ptr().cast()));
        for question in [1, 3] {
            caller.stops(question, "", || recon_coil_maps(plan.0, s.at(), 0, q.as_mut_ptr().cast()));
        }
        let before = 0x1230 as *mut recon_plan;
        let mut made = before;
        caller.stops(1, "the creation of a plan", || recon_plan_create(&raw const g, &raw const o, &raw mut made));
        assert_eq!(made, before, "the plan was touched");
    }
    [&out, &grid, &q].into_iter().for_each(|out| untouched(out));
    assert!(weights.iter().all(|&w| w == POISON as f32));
    caller.was_asked_here();
}

/// After a call was interrupted anywhere, the plan works as a new plan does, to the last bit.
#[test]
fn interrupted_plans_work_as_before() {
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let mut state = clock.as_nanos() as u64 | 1;
    println!("seed {state}");
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let s = Spokes::new(60, 64, 3, 2);
    let dims = [30, 34, 27u64];
    let voxels = 30 * 34 * 27usize;
    let maps: Vec<Complex<f32>> =
        (0..3 * voxels).map(|i| Complex::new((0.1 * i as f32).cos(), (0.2 * i as f32).sin())).collect();
    let list: Vec<f32> = (0..5000).map(|i| (i % 171) as f32 * 0.2 - 17.0).collect();
    let grid = s.geometry(&dims);
    let combined = recon_geometry { coil_maps: maps.as_ptr().cast(), ..grid };
    let listed = recon_geometry { voxels: [list.as_ptr().cast(); 3], voxel_count: 5000, ..grid };
    let image: Vec<Complex<f32>> = (0..voxels * 6).map(|i| Complex::new((0.3 * i as f32).sin(), 1.0)).collect();
    let mut interrupted = 0;
    for (g, method, normal) in
        [(grid, 1, 2), (combined, 1, 1), (listed, 1, 2), (grid, 2, 2), (combined, 2, 1), (combined, 2, 2)]
    {
        let (caller, idle) = (Caller::default(), Caller::default());
        let set = |o: &mut recon_options| (o.method, o.normal, o.tolerance) = (method, normal, 1e-6);
        let plan = Handle::new(&g, &caller.options(set));
        let info = plan.info();
        let (pixels, samples) = (info.image_elements as usize, info.kspace_elements as usize);
        let mut cg = init(recon_cg_options_init);
        cg.iterations = 2;
        // The results of every operation.
        let operations = |plan: &Handle, guard: &mut dyn FnMut(&mut dyn FnMut() -> recon_status) -> bool| {
            let mut results: Vec<Vec<Complex<f32>>> = Vec::new();
            let mut run = |len: usize, call: &mut dyn FnMut(*mut c_void) -> recon_status| {
                let mut out = poisoned::<f32>(len);
                let to = out.as_mut_ptr().cast();
                if guard(&mut || call(to)) {
                    untouched(&out);
                }
                results.push(out);
            };
            // SAFETY: arrays have the lengths documented.
            unsafe {
                run(pixels, &mut |to| recon_fhd(plan.0, s.at(), to));
                run(pixels, &mut |to| recon_grid(plan.0, s.at(), to));
                run(samples, &mut |to| recon_forward(plan.0, image.as_ptr().cast(), to));
                run(pixels, &mut |to| recon_normal(plan.0, image.as_ptr().cast(), to));
                run(info.q_elements as usize, &mut |to| recon_q(plan.0, to));
                run(pixels, &mut |to| recon_cg(plan.0, s.at(), to, &raw const cg, null_mut()));
                run(s.k[0].len() / 2, &mut |to| recon_density(plan.0, 0, 5, 0.0, to));
                if g.voxel_count == 0 {
                    run(3 * voxels, &mut |to| recon_coil_maps(plan.0, s.at(), 0, to));
                }
            }
            results
        };
        for _ in 0..4 {
            operations(&plan, &mut |call| {
                caller.thinks.store(random(3000), Relaxed);
                let stopped = caller.may_stop(1 + random(5), call);
                interrupted += usize::from(stopped);
                stopped
            });
        }
        let all = &mut |call: &mut dyn FnMut() -> recon_status| {
            ok(call());
            false
        };
        let wanted = operations(
            &Handle::new(
                &g,
                &options(|o| {
                    o.device = 1;
                    set(o)
                }),
            ),
            all,
        );
        for (i, result) in operations(&plan, all).iter().enumerate() {
            assert!(*result == wanted[i], "operation {i} with method {method}, normal {normal}");
        }
        // A caller who never says stop changes nothing.
        for (i, result) in operations(&Handle::new(&g, &idle.options(set)), all).iter().enumerate() {
            assert!(*result == wanted[i], "operation {i} with method {method}, normal {normal}");
        }
        assert!(idle.asked.load(Relaxed) > 0);
        [caller, idle].iter().for_each(Caller::was_asked_here);
    }
    println!("{interrupted} calls were interrupted");
    assert!(interrupted > 20, "{interrupted} calls were interrupted");
}

/// Several threads use one plan. Each is asked in its own thread, and the yes of one ends no call of the other.
#[test]
fn callers_are_interrupted_one_by_one() {
    let s = Spokes::new(400, 96, 1, 1);
    let g = s.geometry(&[56, 60, 64]);
    let voxels = 56 * 60 * 64;
    /// Says stop in one thread only.
    unsafe extern "C" fn one(data: *mut c_void) -> c_int {
        // SAFETY: the address of `data` below.
        let (stopped, seen) = unsafe { &*data.cast::<(ThreadId, Mutex<HashSet<ThreadId>>)>() };
        let here = std::thread::current().id();
        seen.lock().unwrap().insert(here);
        (here == *stopped).into()
    }
    /// A value that another thread may use.
    struct Elsewhere<S>(S);
    // SAFETY: their addresses are of what is only read while there are threads.
    unsafe impl<S> Send for Elsewhere<S> {}
    // SAFETY: their addresses are of what is only read while there are threads.
    unsafe impl<S> Sync for Elsewhere<S> {}
    impl<S> Elsewhere<S> {
        fn get(&self) -> &S {
            &self.0
        }
    }
    let data = (std::thread::current().id(), Mutex::new(HashSet::<ThreadId>::new()));
    let mut none = null_mut();
    let o = options(|o| (o.device, o.method) = (1, 1));
    let o = recon_options { interrupt: Some(one), interrupt_data: (&raw const data).cast_mut().cast(), ..o };
    // SAFETY: structures and arrays are alive. Made in this thread the plan is stopped at once.
    fails(unsafe { recon_plan_create(&raw const g, &raw const o, &raw mut none) }, RECON_CANCELLED, &["the creation"]);
    let (g, o) = (Elsewhere(g), Elsewhere(o));
    let plan = std::thread::scope(|scope| {
        let make = || Elsewhere(Handle::new(g.get(), o.get()));
        scope.spawn(make).join().unwrap().0
    });
    let call = || {
        let plan = &plan;
        let mut out = poisoned::<f32>(voxels);
        // SAFETY: arrays have the lengths documented.
        let status = unsafe { recon_fhd(plan.0, s.at(), out.as_mut_ptr().cast()) };
        (std::thread::current().id(), status, out)
    };
    let callers = std::thread::scope(|scope| {
        let others = [(); 2].map(|()| scope.spawn(call));
        for _ in 0..5 {
            let (_, status, out) = call();
            fails(status, RECON_CANCELLED, &["interrupted"]);
            untouched(&out);
        }
        others.map(|other| other.join().unwrap())
    });
    let seen = data.1.lock().unwrap();
    for (id, status, out) in &callers {
        assert_eq!(*status, RECON_OK);
        assert!(seen.contains(id), "a caller was not asked");
        same(out, &callers[0].2);
    }
    // These two, this thread, and the thread that made the plan.
    assert_eq!(seen.len(), 4);
}

/// An output that is computed in memory of the library's own counts against the limit.
#[test]
fn outputs_apart_are_within_the_memory_limit() {
    let s = Scene::<f32>::new();
    let g = s.combined();
    let caller = Caller::default();
    let o = |limit: u64| caller.options(|o| (o.memory_limit, o.normal) = (limit, 2));
    create_fails(&g, &o(1), RECON_MEMORY_LIMIT, &["the plan needs"]);
    let for_plan = bytes_needed();
    let mut image = poisoned::<f32>(VOXELS * FRAMES);
    let to = image.as_mut_ptr().cast();
    // SAFETY: arrays have the lengths documented.
    let fhd = |limit: u64| unsafe { recon_fhd(Handle::new(&g, &o(limit)).0, s.kspace_at(), to) };
    fails(fhd(for_plan), RECON_MEMORY_LIMIT, &["can be interrupted needs"]);
    let needed = bytes_needed();
    assert_eq!(needed, for_plan + (VOXELS * FRAMES * size_of::<Complex<f32>>()) as u64);
    ok(fhd(needed));
}

// ------------------------------------------------------------------------------------------------------ threads

#[test]
fn plans_may_be_shared_among_threads() {
    let s = Scene::<f32>::new();
    let solve = |plan: &Handle| {
        let (mut x, mut y) = (poisoned::<f32>(VOXELS * FRAMES), poisoned::<f32>(VOXELS * FRAMES));
        // SAFETY: arrays have the lengths documented.
        unsafe {
            ok(recon_grid(plan.0, s.kspace_at(), y.as_mut_ptr().cast()));
            ok(recon_cg(plan.0, s.kspace_at(), x.as_mut_ptr().cast(), null(), null_mut()));
        }
        (x, y)
    };
    let wanted = solve(&Handle::new(&s.combined(), &options(|o| o.threads = 1)));
    let shared = Handle::new(&s.combined(), &options(|_| ()));
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|i| {
                let (s, shared, solve) = (&s, &shared, &solve);
                scope.spawn(move || {
                    (0..3)
                        .map(|_| match i % 2 {
                            0 => solve(shared),
                            _ => solve(&Handle::new(&s.combined(), &options(|o| o.threads = i))),
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        for worker in workers {
            for (x, y) in worker.join().unwrap() {
                same(&x, &wanted.0);
                same(&y, &wanted.1);
            }
        }
    });
}

#[test]
fn texts_are_there() {
    // SAFETY: static C strings.
    unsafe {
        assert_eq!(CStr::from_ptr(recon_version()).to_str().unwrap(), env!("CARGO_PKG_VERSION"));
        assert_eq!(CStr::from_ptr(recon_status_string(RECON_CANCELLED as i32)).to_str().unwrap(), "cancelled");
        assert_eq!(CStr::from_ptr(recon_status_string(-7)).to_str().unwrap(), "unknown status");
    }
    std::thread::spawn(|| assert_eq!(message(), "")).join().unwrap();
}

/// Every status of the header has a name, which is that of its constant, and a text; every word of an option leads to
/// its number and back.
#[test]
fn statuses_have_names_and_options_have_words() {
    let header = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/include/recon.h")).unwrap();
    let end = header.find("} recon_status;").unwrap();
    let rows = header[..end].rsplit('{').next().unwrap().lines();
    let rows = rows.filter_map(|line| line.trim().trim_end_matches(',').split_once(" = "));
    let statuses: Vec<(&str, i32)> =
        rows.filter(|(c, _)| c.starts_with("RECON_")).map(|(c, n)| (c, n.parse().unwrap())).collect();
    assert!(statuses.len() > 20, "{statuses:?}");
    // SAFETY: static C strings.
    let text = |string: *const c_char| unsafe { CStr::from_ptr(string) }.to_str().unwrap();
    for (constant, number) in &statuses {
        let name = text(recon_status_name(*number));
        let mut upper = String::new();
        for (i, c) in name.chars().enumerate() {
            if c.is_uppercase() && i > 0 && name != "IO" {
                upper.push('_');
            }
            upper.extend(c.to_uppercase());
        }
        assert_eq!(format!("RECON_{upper}"), *constant);
        assert_ne!(text(recon_status_string(*number)), "unknown status", "{constant}");
    }
    assert_eq!(text(recon_status_name(statuses.len() as i32)), "UnknownStatus");

    let mut value = 77;
    let mut choice = |option: &CStr, word: &CStr| {
        // SAFETY: C strings and a number.
        (unsafe { recon_choice(option.as_ptr(), word.as_ptr(), &mut value) }, value)
    };
    assert_eq!(choice(c"window", c"gaussian"), (RECON_OK, 1));
    fails(choice(c"window", c"Gaussian").0, RECON_UNKNOWN_VALUE, &["window is 'Gaussian'", "'gaussian' or 'bilinear'"]);
    fails(choice(c"windows", c"gaussian").0, RECON_UNKNOWN_VALUE, &["no option windows", "precision, basis"]);
    assert_eq!(choice(c"window", c"bilinear"), (RECON_OK, 2));
    // SAFETY: null where C strings and a number are wanted; C strings elsewhere.
    unsafe {
        let (word, mut number) = (c"gaussian".as_ptr(), 0);
        fails(recon_choice(null(), word, &mut number), RECON_NULL_POINTER, &["option"]);
        fails(recon_choice(word, null(), &mut number), RECON_NULL_POINTER, &["word"]);
        fails(recon_choice(word, word, null_mut()), RECON_NULL_POINTER, &["value"]);
        assert_eq!(text(recon_choice_word(c"combine".as_ptr(), 1)), "adaptive");
        assert_eq!(text(recon_choice_word(c"combine".as_ptr(), 2)), "");
        assert_eq!(text(recon_choice_word(null(), 0)), "");
    }
}

/// The use of acquisitions, by ISMRMRD's numbers of flags (counted from 1).
#[test]
fn acquisitions_have_uses() {
    let [image, calibration, noise] = [1, 2, 4];
    let cases: [(&[u32], u32, &str); 12] = [
        (&[], image, "image"),
        (&[1, 7, 22, 25, 64], image, "image"),
        (&[20], calibration, "calibration"),
        (&[20, 22], calibration, "calibration"),
        (&[21], image + calibration, "image and calibration"),
        (&[20, 21], image + calibration, "image and calibration"),
        (&[19], noise, "noise"),
        (&[19, 20], noise, "noise"),
        (&[23], 0, "navigation"),
        (&[20, 24], 0, "phase correction"),
        (&[28], 0, "real-time feedback"),
        (&[31], 0, "phase stabilisation"),
    ];
    for (flags, purposes, name) in cases {
        let bits: u64 = flags.iter().map(|flag| 1u64 << (flag - 1)).sum();
        let mut found = 77;
        // SAFETY: a number to write; a static C string.
        unsafe {
            ok(recon_acquisition_use(bits, &mut found));
            assert_eq!(CStr::from_ptr(recon_acquisition_use_name(bits)).to_str().unwrap(), name);
        }
        assert_eq!(found, purposes, "{flags:?}");
    }
    assert_eq!(recon_acquisition_purpose::RECON_PURPOSE_NOISE as u32, noise);
    // SAFETY: null is what is tried.
    fails(unsafe { recon_acquisition_use(0, null_mut()) }, RECON_NULL_POINTER, &["use"]);
}

// ------------------------------------------------------------------------------------------------------ faults

/// Numbers that make no sense end in an error that says which numbers do: no panic, no hang.
#[test]
fn numbers_that_wrap_around_are_refused() {
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
        // The product of the sizes overflows before a factor of 0 makes it 0.
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

/// A host that listens at RECON_LOG_ERROR gets the text of recon_last_error_message for each failed call.
#[test]
fn failures_are_logged_as_errors() {
    static HEARD: Mutex<Vec<(ThreadId, u32, String)>> = Mutex::new(Vec::new());
    unsafe extern "C" fn hear(level: u32, text: *const c_char, _: *mut c_void) {
        // SAFETY: a C string that lives during the call.
        let text = unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned();
        HEARD.lock().unwrap().push((std::thread::current().id(), level, text));
    }
    let level = recon_log_level::RECON_LOG_ERROR as u32;
    // SAFETY: the callback is a function of this program.
    ok(unsafe { recon_set_log_callback(Some(hear), null_mut(), level) });
    // SAFETY: null is refused.
    fails(unsafe { recon_forward(null(), null(), null_mut()) }, RECON_NULL_POINTER, &["plan"]);
    let wanted = message();
    // SAFETY: this removes the callback.
    ok(unsafe { recon_set_log_callback(None, null_mut(), 0) });
    let here = std::thread::current().id();
    let heard: Vec<_> = HEARD.lock().unwrap().iter().filter(|(thread, ..)| *thread == here).cloned().collect();
    assert_eq!(heard, [(here, level, wanted)]);
}
