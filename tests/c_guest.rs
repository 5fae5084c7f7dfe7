//! The library leaves the host process unchanged: threads, floating-point mode and log. This program has one test only,
//! because threads and the log callback belong to the whole process.

use recon::ffi::recon_status::*;
use recon::ffi::*;
use std::ffi::{c_void, CStr};
use std::ptr::{null, null_mut};
use std::sync::Mutex;

const N: usize = 16;
const SAMPLES: usize = 12 * 24;

/// A radial scan in single precision.
struct RadialScan {
    k: [Vec<f32>; 2],
    kspace: Vec<f32>,
}

impl RadialScan {
    fn new() -> Self {
        let mut s = RadialScan { k: [vec![0.0; SAMPLES], vec![0.0; SAMPLES]], kspace: vec![1.0; 2 * SAMPLES] };
        let [x, y] = s.k.each_mut().map(|k| k.as_mut_ptr().cast());
        // SAFETY: arrays have the lengths documented.
        assert_eq!(unsafe { recon_trajectory_radial2d(0, 12, 24, 1, x, y) }, RECON_OK);
        let g = s.geometry();
        let kspace = s.kspace.as_mut_ptr().cast();
        // SAFETY: arrays have the lengths documented.
        assert_eq!(unsafe { recon_phantom_kspace(&raw const g, null(), 0, 0, 2, kspace) }, RECON_OK);
        s
    }

    fn geometry(&self) -> recon_geometry {
        let mut g = std::mem::MaybeUninit::uninit();
        // SAFETY: the structure has the size given, and all of it is written.
        let mut g: recon_geometry = unsafe {
            assert_eq!(recon_geometry_init(g.as_mut_ptr(), size_of::<recon_geometry>() as u32), RECON_OK);
            g.assume_init()
        };
        g.dims = [N as u64, N as u64, 0];
        g.samples = SAMPLES as u64;
        g.coordinates = [self.k[0].as_ptr().cast(), self.k[1].as_ptr().cast(), null()];
        g
    }

    fn plan(&self, threads: u32) -> *mut recon_plan {
        let g = self.geometry();
        let mut o = std::mem::MaybeUninit::<recon_options>::uninit();
        let mut plan = null_mut();
        // SAFETY: structures and arrays are alive.
        unsafe {
            assert_eq!(recon_options_init(o.as_mut_ptr(), size_of::<recon_options>() as u32), RECON_OK);
            (*o.as_mut_ptr()).threads = threads;
            // A CUDA driver has threads of its own.
            (*o.as_mut_ptr()).device = recon_device::RECON_DEVICE_CPU as u32;
            assert_eq!(recon_plan_create(&raw const g, o.as_ptr(), &raw mut plan), RECON_OK);
        }
        plan
    }

    fn use_plan(&self, plan: *const recon_plan) -> Vec<f32> {
        let mut image = vec![0.0f32; 2 * N * N];
        let (d, x) = (self.kspace.as_ptr().cast(), image.as_mut_ptr().cast());
        // SAFETY: arrays have the lengths documented.
        unsafe {
            assert_eq!(recon_grid(plan, d, x), RECON_OK);
            assert_eq!(recon_cg(plan, d, x, null(), null_mut()), RECON_OK);
        }
        image
    }
}

/// Returns the number of threads of the process.
#[cfg(target_os = "linux")]
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// Waits until the process has `expected` threads. Threads start while a plan is created, and Linux lists a thread for
/// a moment after it has ended.
#[cfg(target_os = "linux")]
#[track_caller]
fn wait_for_threads(expected: usize, when: &str) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while threads() != expected && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(threads(), expected, "{when}");
}

static LINES: Mutex<Vec<(u32, String, usize)>> = Mutex::new(Vec::new());

/// Records a line of the log.
unsafe extern "C" fn record_line(message: *const recon_log_message, user_data: *mut c_void) {
    // SAFETY: the library gives a message, which is valid during the call.
    let message = unsafe { *message };
    assert_eq!(message.struct_size as usize, size_of::<recon_log_message>());
    // SAFETY: the library gives a C string.
    let text = unsafe { CStr::from_ptr(message.text) }.to_str().unwrap().to_owned();
    // A callback that replaces itself is refused, without a deadlock.
    // SAFETY: no callback is given.
    assert_eq!(unsafe { recon_set_log_callback(None, null_mut(), 0) }, RECON_INVALID_ARGUMENT);
    LINES.lock().unwrap().push((message.level, text, user_data as usize));
}

/// Returns the recorded lines and removes them.
fn take_lines() -> Vec<(u32, String, usize)> {
    std::mem::take(&mut LINES.lock().unwrap())
}

/// Sets the log callback.
fn set_log(callback: recon_log_callback, user_data: usize, level: recon_log_level) {
    // SAFETY: `record_line` may be called from any thread, with any number.
    let status = unsafe { recon_set_log_callback(callback, user_data as *mut c_void, level as u32) };
    assert_eq!(status, RECON_OK);
}

/// Checks that the callback receives the log, and that it can be replaced and removed.
fn check_log_callback(s: &RadialScan) {
    let make_plan = || {
        let plan = s.plan(2);
        // SAFETY: the plan is alive, and destroyed once.
        unsafe { recon_plan_destroy(plan) };
    };
    make_plan();
    assert_eq!(take_lines(), []);
    set_log(Some(record_line), 7, recon_log_level::RECON_LOG_INFO);
    make_plan();
    let lines = take_lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let (level, text, user_data) = &lines[0];
    assert_eq!((*level, *user_data), (recon_log_level::RECON_LOG_INFO as u32, 7));
    assert!(text.starts_with("plan: nufft on cpu (2 threads"), "{text}");
    // A callback for fewer lines, a new callback, and no callback.
    set_log(Some(record_line), 8, recon_log_level::RECON_LOG_WARNING);
    make_plan();
    assert_eq!(take_lines(), []);
    set_log(Some(record_line), 9, recon_log_level::RECON_LOG_TRACE);
    make_plan();
    assert_eq!(take_lines()[0].2, 9);
    set_log(None, 0, recon_log_level::RECON_LOG_INFO);
    make_plan();
    assert_eq!(take_lines(), []);
    // From several threads at once, while plans are created.
    std::thread::scope(|scope| {
        for i in 0..4 {
            scope.spawn(move || {
                for j in 0..20 {
                    let callback: recon_log_callback = if j % 2 == 0 { Some(record_line) } else { None };
                    set_log(callback, i, recon_log_level::RECON_LOG_INFO);
                    if j % 10 == 0 {
                        make_plan();
                    }
                }
            });
        }
    });
    set_log(None, 0, recon_log_level::RECON_LOG_INFO);
    take_lines();
}

#[cfg(target_arch = "x86_64")]
mod float_mode {
    pub fn read() -> u32 {
        let mut mode = 0u32;
        // SAFETY: MXCSR is stored to valid memory.
        unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &mut mode) };
        mode
    }
    pub fn set(mode: u32) {
        // SAFETY: the modes of this file are valid, and Rust code between here and the next call does no arithmetic.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &mode) };
    }
}

/// Checks that a call restores the floating-point mode, and that its results do not depend on the mode.
#[cfg(target_arch = "x86_64")]
fn check_float_mode<R: PartialEq>(name: &str, call: impl Fn() -> R) {
    let standard = float_mode::read();
    let expected = call();
    // Modes: flush to zero with denormals as zero; rounding up; rounding towards zero with all flags raised.
    for mode in [0x9fc0, 0x5f80, 0x7fbf] {
        float_mode::set(mode);
        let result = call();
        let after = float_mode::read();
        float_mode::set(standard);
        assert_eq!(after, mode, "{name} changed the floating-point mode");
        assert!(result == expected, "{name} depends on the floating-point mode {mode:#x}");
    }
}

#[test]
fn the_process_is_unchanged() {
    let s = RadialScan::new();

    #[cfg(target_os = "linux")]
    {
        let initial = threads();
        let (a, b) = (s.plan(3), s.plan(2));
        // Plans share their threads. One of them is the calling thread.
        wait_for_threads(initial + 2, "two plans");
        s.use_plan(a);
        s.use_plan(b);
        // SAFETY: the plan is alive, and destroyed once.
        unsafe { recon_plan_destroy(a) };
        wait_for_threads(initial + 1, "the plan of two threads is left");
        // SAFETY: the plan is alive, and destroyed once.
        unsafe { recon_plan_destroy(b) };
        wait_for_threads(initial, "threads outlive the last plan");
    }

    check_log_callback(&s);

    #[cfg(target_arch = "x86_64")]
    {
        for threads in [1, 2] {
            check_float_mode("a reconstruction", || {
                let plan = s.plan(threads);
                let image = s.use_plan(plan);
                // SAFETY: the plan is alive, and destroyed once.
                unsafe { recon_plan_destroy(plan) };
                image
            });
        }
        check_float_mode("simulation", || {
            let s = RadialScan::new();
            (s.k, s.kspace)
        });
        // A failing call.
        // SAFETY: null pointers are refused.
        check_float_mode("an error", || unsafe { recon_fhd(null(), null(), null_mut()) });
    }
}
