//! The library is a guest: after its calls the process is as it was. This program has one test only, because threads
//! and the log callback belong to the whole process.

use recon::ffi::recon_status::*;
use recon::ffi::*;
use std::ffi::{c_char, c_void, CStr};
use std::ptr::{null, null_mut};
use std::sync::Mutex;

const N: usize = 16;
const SAMPLES: usize = 12 * 24;

struct Scene {
    k: [Vec<f32>; 2],
    kspace: Vec<f32>,
}

impl Scene {
    fn new() -> Self {
        let mut s = Scene { k: [vec![0.0; SAMPLES], vec![0.0; SAMPLES]], kspace: vec![1.0; 2 * SAMPLES] };
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

#[cfg(target_os = "linux")]
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// Waits until the process has so many: threads start while a plan is made, and Linux shows one for a moment after it
/// has ended.
#[cfg(target_os = "linux")]
#[track_caller]
fn wait_for_threads(expected: usize, when: &str) {
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while threads() != expected && std::time::Instant::now() < patience {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(threads(), expected, "{when}");
}

static LINES: Mutex<Vec<(u32, String, usize)>> = Mutex::new(Vec::new());

unsafe extern "C" fn listen(level: u32, text: *const c_char, user_data: *mut c_void) {
    // SAFETY: the library gives a C string.
    let text = unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned();
    // A callback that replaces itself is refused, without a deadlock.
    // SAFETY: no callback is given.
    assert_eq!(unsafe { recon_set_log_callback(None, null_mut(), 0) }, RECON_INVALID_ARGUMENT);
    LINES.lock().unwrap().push((level, text, user_data as usize));
}

fn take_lines() -> Vec<(u32, String, usize)> {
    std::mem::take(&mut LINES.lock().unwrap())
}

fn set_log(callback: recon_log_callback, user_data: usize, level: recon_log_level) {
    // SAFETY: `listen` may be called from any thread, with any number.
    let status = unsafe { recon_set_log_callback(callback, user_data as *mut c_void, level as u32) };
    assert_eq!(status, RECON_OK);
}

fn log_goes_to_the_callback(s: &Scene) {
    let make = || {
        let plan = s.plan(2);
        // SAFETY: the plan is alive, and destroyed once.
        unsafe { recon_plan_destroy(plan) };
    };
    make();
    assert_eq!(take_lines(), []);
    set_log(Some(listen), 7, recon_log_level::RECON_LOG_INFO);
    make();
    let lines = take_lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let (level, text, user_data) = &lines[0];
    assert_eq!((*level, *user_data), (recon_log_level::RECON_LOG_INFO as u32, 7));
    assert!(text.starts_with("plan: nufft on cpu (2 threads"), "{text}");
    // A callback for fewer lines, one that replaces it, and none.
    set_log(Some(listen), 8, recon_log_level::RECON_LOG_WARNING);
    make();
    assert_eq!(take_lines(), []);
    set_log(Some(listen), 9, recon_log_level::RECON_LOG_TRACE);
    make();
    assert_eq!(take_lines()[0].2, 9);
    set_log(None, 0, recon_log_level::RECON_LOG_INFO);
    make();
    assert_eq!(take_lines(), []);
    // From several threads at once, while plans are made.
    std::thread::scope(|scope| {
        for i in 0..4 {
            scope.spawn(move || {
                for j in 0..20 {
                    let callback: recon_log_callback = if j % 2 == 0 { Some(listen) } else { None };
                    set_log(callback, i, recon_log_level::RECON_LOG_INFO);
                    if j % 10 == 0 {
                        make();
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

/// Runs a call under several floating-point modes. After the call the mode is as before, and results are the same in
/// all.
#[cfg(target_arch = "x86_64")]
fn float_mode_comes_back<R: PartialEq>(name: &str, call: impl Fn() -> R) {
    let standard = float_mode::read();
    let wanted = call();
    // Flush to zero with denormals as zero. Rounding up. Rounding towards zero, with all flags raised.
    for mode in [0x9fc0, 0x5f80, 0x7fbf] {
        float_mode::set(mode);
        let result = call();
        let after = float_mode::read();
        float_mode::set(standard);
        assert_eq!(after, mode, "{name} changed the floating-point mode");
        assert!(result == wanted, "{name} depends on the floating-point mode {mode:#x}");
    }
}

#[test]
fn the_process_is_as_it_was() {
    let s = Scene::new();

    #[cfg(target_os = "linux")]
    {
        let before = threads();
        let (a, b) = (s.plan(3), s.plan(2));
        // Plans share their threads, of which one is the calling thread.
        wait_for_threads(before + 2, "two plans");
        s.use_plan(a);
        s.use_plan(b);
        // SAFETY: the plan is alive, and destroyed once.
        unsafe { recon_plan_destroy(a) };
        wait_for_threads(before + 1, "the plan of two threads is left");
        // SAFETY: the plan is alive, and destroyed once.
        unsafe { recon_plan_destroy(b) };
        wait_for_threads(before, "threads outlive the last plan");
    }

    log_goes_to_the_callback(&s);

    #[cfg(target_arch = "x86_64")]
    {
        for threads in [1, 2] {
            float_mode_comes_back("a reconstruction", || {
                let plan = s.plan(threads);
                let image = s.use_plan(plan);
                // SAFETY: the plan is alive, and destroyed once.
                unsafe { recon_plan_destroy(plan) };
                image
            });
        }
        float_mode_comes_back("simulation", || {
            let s = Scene::new();
            (s.k, s.kspace)
        });
        // A call that fails.
        // SAFETY: refused for the null pointer.
        float_mode_comes_back("an error", || unsafe { recon_fhd(null(), null(), null_mut()) });
    }
}
