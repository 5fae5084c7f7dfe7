//! Scans, plans and assertions of these tests.

pub use recon::ffi::recon_status::*;
pub use recon::ffi::*;
pub use recon::{CgOptions, Complex, Density, Filter, Geometry, LambdaUnit, Options, Plan, Prior, Real};
pub use std::collections::HashSet;
pub use std::ffi::{c_char, c_int, c_void, CStr, CString};
pub use std::fmt::Debug;
pub use std::ptr::{null, null_mut};
pub use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
pub use std::sync::Mutex;
pub use std::thread::ThreadId;
pub use std::time::Duration;

pub const N: [usize; 2] = [24, 20];

pub const SPOKES: usize = 24;

pub const READOUT: usize = 32;

pub const SAMPLES: usize = SPOKES * READOUT;

pub const VOXELS: usize = N[0] * N[1];

pub const COILS: usize = 3;

pub const FRAMES: usize = 2;

/// A precision of the C API.
pub trait Number: Real {
    const PRECISION: u32;
}

impl Number for f32 {
    const PRECISION: u32 = recon_precision::RECON_F32 as u32;
}

impl Number for f64 {
    const PRECISION: u32 = recon_precision::RECON_F64 as u32;
}

/// Returns the message of the last error.
pub fn message() -> String {
    // SAFETY: a C string that lives until this thread's next failure.
    unsafe { CStr::from_ptr(recon_last_error_message()) }.to_str().unwrap().to_owned()
}

/// Asserts that a call succeeded.
#[track_caller]
pub fn ok(status: recon_status) {
    assert_eq!(status, RECON_OK, "{}", message());
}

/// Asserts that the last call returned an error, and that words are in its message.
#[track_caller]
pub fn fails(status: recon_status, expected: recon_status, words: &[&str]) {
    let message = message();
    assert_eq!(status, expected, "{message}");
    for word in words {
        assert!(message.contains(word), "{word:?} is not in {message:?}");
    }
}

/// A value that no result has.
pub const POISON: f64 = -1.2345e-30;

/// Returns an output array of poison.
pub fn poisoned<T: Number>(len: usize) -> Vec<Complex<T>> {
    vec![Complex::new(T::of(POISON), T::of(POISON)); len]
}

/// Asserts that an output array was not written.
#[track_caller]
pub fn untouched<T: Number>(values: &[Complex<T>]) {
    assert!(values.iter().all(|z| *z == Complex::new(T::of(POISON), T::of(POISON))), "an output was written");
}

/// Asserts that arrays are equal.
#[track_caller]
pub fn same<E: PartialEq + Debug>(a: &[E], b: &[E]) {
    assert_eq!(a.len(), b.len());
    assert_eq!(a.iter().zip(b).position(|(a, b)| a != b), None);
}

/// A 2D scan with its data, weights, coil maps and an image.
pub struct Scene<T: Number> {
    pub k: [Vec<T>; 2],
    pub weights: Vec<T>,
    pub maps: Vec<Complex<T>>,
    pub kspace: Vec<Complex<T>>,
    pub image: Vec<Complex<T>>,
}

impl<T: Number> Scene<T> {
    /// Creates a scan with three coils and two frames.
    pub fn new() -> Self {
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

    /// Returns a geometry with coils and frames, without weights and maps.
    pub fn geometry(&self) -> recon_geometry {
        let mut g = init(recon_geometry_init);
        g.precision = T::PRECISION;
        g.dims = [N[0] as u64, N[1] as u64, 0];
        g.samples = SAMPLES as u64;
        g.coordinates = [self.k[0].as_ptr().cast(), self.k[1].as_ptr().cast(), null()];
        g.coils = COILS as u64;
        g.frames = FRAMES as u64;
        g
    }

    pub fn weighted(&self) -> recon_geometry {
        recon_geometry { weights: self.weights.as_ptr().cast(), ..self.geometry() }
    }

    pub fn combined(&self) -> recon_geometry {
        recon_geometry { coil_maps: self.maps.as_ptr().cast(), ..self.weighted() }
    }

    pub fn rust(&self) -> Geometry<'_, T> {
        let mut g = Geometry::new(&N, &[&self.k[0], &self.k[1]]).coils(COILS);
        g.frames = FRAMES;
        g
    }

    pub fn kspace_at(&self) -> *const c_void {
        self.kspace.as_ptr().cast()
    }
    pub fn image_at(&self) -> *const c_void {
        self.image.as_ptr().cast()
    }
}

/// Returns a structure with its initial values.
pub fn init<S>(f: unsafe extern "C" fn(*mut S, u32) -> recon_status) -> S {
    let mut s = std::mem::MaybeUninit::uninit();
    // SAFETY: the structure has the size given, and success writes all of it.
    unsafe {
        ok(f(s.as_mut_ptr(), size_of::<S>() as u32));
        s.assume_init()
    }
}

/// Returns options for two threads, with a change.
pub fn options(change: impl FnOnce(&mut recon_options)) -> recon_options {
    let mut o = init(recon_options_init);
    o.threads = 2;
    change(&mut o);
    o
}

/// A plan that is destroyed when it goes out of scope.
pub struct Handle(pub *mut recon_plan);

// SAFETY: a plan may be used from several threads at once.
unsafe impl Sync for Handle {}

impl Handle {
    #[track_caller]
    pub fn new(g: &recon_geometry, o: &recon_options) -> Handle {
        let mut plan = null_mut();
        // SAFETY: structures and arrays are alive.
        ok(unsafe { recon_plan_create(g, o, &raw mut plan) });
        Handle(plan)
    }
    pub fn info(&self) -> recon_plan_properties {
        let mut p = init(recon_plan_properties_init);
        // SAFETY: the plan is alive.
        ok(unsafe { recon_plan_info(self.0, &raw mut p) });
        p
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: created by recon_plan_create, and destroyed once.
        unsafe { recon_plan_destroy(self.0) };
    }
}

/// Asserts that creating a plan fails, and that words are in the message.
#[track_caller]
pub fn create_fails(g: &recon_geometry, o: &recon_options, expected: recon_status, words: &[&str]) {
    let unset = 0x1230 as *mut recon_plan;
    let mut plan = unset;
    // SAFETY: errors of the structures are found before their pointers are used.
    fails(unsafe { recon_plan_create(g, o, &raw mut plan) }, expected, words);
    assert_eq!(plan, unset, "the plan was written");
}

/// Returns kinds and texts of the warnings of this thread's last call.
pub fn warnings() -> Vec<(u32, String)> {
    let (mut found, mut kind, mut text) = (Vec::new(), u32::MAX, null());
    loop {
        // SAFETY: a number and an address to write; the text is valid until the next call of another function.
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

/// Reads the required bytes from an error message about the memory limit.
pub fn required_bytes() -> u64 {
    let message = message();
    message.split("needs ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap()
}

/// A caller with an interrupt callback.
#[derive(Default)]
pub struct Caller {
    pub poll_count: AtomicU64,
    /// Number of the poll that requests a stop; 0: none does.
    pub stop_at: AtomicU64,
    /// Duration of a poll in microseconds.
    pub poll_time: AtomicU64,
    pub threads: Mutex<HashSet<ThreadId>>,
}

/// Counts a poll, and requests a stop if it is due.
pub unsafe extern "C" fn poll_caller(data: *mut c_void) -> c_int {
    // SAFETY: the address of the test's caller.
    let caller = unsafe { &*data.cast::<Caller>() };
    caller.threads.lock().unwrap().insert(std::thread::current().id());
    std::thread::sleep(Duration::from_micros(caller.poll_time.load(Relaxed)));
    let stop_at = caller.stop_at.load(Relaxed);
    // After a stop request, the same call must not poll again.
    c_int::from(caller.poll_count.fetch_add(1, Relaxed) + 1 >= stop_at && stop_at != 0)
}

impl Caller {
    pub fn options(&self, change: impl FnOnce(&mut recon_options)) -> recon_options {
        options(|o| {
            (o.device, o.interrupt, o.interrupt_data) =
                (1, Some(poll_caller as _), (&raw const *self).cast_mut().cast());
            change(o);
        })
    }

    pub fn stop_at(&self, poll: u64) {
        self.poll_count.store(0, Relaxed);
        self.stop_at.store(poll, Relaxed);
    }

    /// Makes a call that is stopped at poll number `poll`, or ends before it. Returns whether it was stopped.
    #[track_caller]
    pub fn may_stop(&self, poll: u64, call: &mut dyn FnMut() -> recon_status) -> bool {
        self.stop_at(poll);
        let status = call();
        let polls = self.poll_count.load(Relaxed);
        self.stop_at(0);
        if polls < poll {
            ok(status);
            return false;
        }
        fails(status, RECON_CANCELLED, &["interrupted by the caller's function during "]);
        assert_eq!(polls, poll, "polled again after the stop request");
        true
    }

    #[track_caller]
    pub fn stops(&self, poll: u64, during: &str, mut call: impl FnMut() -> recon_status) {
        assert!(self.may_stop(poll, &mut call), "the call ended before poll {poll}");
        assert!(message().ends_with(during), "{}", message());
    }

    /// Asserts that all polls were made in this thread.
    #[track_caller]
    pub fn polled_in_this_thread_only(&self) {
        assert_eq!(*self.threads.lock().unwrap(), HashSet::from([std::thread::current().id()]));
    }
}

/// A 3D radial scan with data of several coils and frames.
pub struct Spokes {
    pub k: [Vec<f32>; 3],
    pub kspace: Vec<Complex<f32>>,
    coils: usize,
    frames: usize,
}

impl Spokes {
    pub fn new(spokes: usize, readout: usize, coils: usize, frames: usize) -> Self {
        let samples = spokes * readout;
        let mut k = [(); 3].map(|()| vec![0.0f32; samples]);
        let [x, y, z] = k.each_mut().map(|k| k.as_mut_ptr().cast());
        // SAFETY: arrays have the lengths documented.
        unsafe { ok(recon_trajectory_radial3d(0, spokes as u64, readout as u64, x, y, z)) };
        let value = |i: usize| Complex::new((0.3 * i as f32).sin(), (0.7 * i as f32).cos());
        Spokes { k, kspace: (0..samples * coils * frames).map(value).collect(), coils, frames }
    }

    pub fn geometry(&self, dims: &[u64]) -> recon_geometry {
        let mut g = init(recon_geometry_init);
        g.ndim = dims.len() as u32;
        g.dims[..dims.len()].copy_from_slice(dims);
        g.samples = self.k[0].len() as u64;
        g.coordinates = self.k.each_ref().map(|k| k.as_ptr().cast());
        (g.coils, g.frames) = (self.coils as u64, self.frames as u64);
        g
    }

    pub fn at(&self) -> *const c_void {
        self.kspace.as_ptr().cast()
    }
}
