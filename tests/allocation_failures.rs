//! Failed allocations: for each call and each n, the n-th allocation of 1 KiB or more fails. The call must then return
//! RECON_OUT_OF_HOST_MEMORY, or succeed without that memory. After an error its outputs are unchanged, no memory is
//! lost, and the same call succeeds when it is repeated. Each attempt is a separate process, so an abort is counted and
//! the test continues.
//!
//! Smaller allocations do not fail one by one. They are names, messages and lists of axes, which do not grow with the
//! problem, and Rust ends the process if one fails. The library checks in advance that memory for them is available.
//! Therefore each call is also made with few free bytes left in the process, from none to more than it needs, while the
//! system provides no more. It must return RECON_OUT_OF_HOST_MEMORY or succeed for each number of bytes.
//!
//! RECON_TEST_BACKTRACE=1 prints a backtrace of each failed allocation and of each abort.

#![cfg_attr(unix, no_main)]

#[cfg(not(unix))]
fn main() {
    println!("skipped: failing allocations (no fork on this system)");
}

/// Main function of a C program. The main function of a Rust program allocates a signal stack for each new thread, and
/// aborts if there is no memory for it.
#[cfg(unix)]
#[no_mangle]
extern "C" fn main(_count: i32, _words: *const *const std::ffi::c_char) -> i32 {
    unix::main()
}

#[cfg(unix)]
mod unix {
    use recon::ffi::recon_status::*;
    use recon::ffi::*;
    use recon::Complex;
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::ffi::{c_void, CStr, CString};
    use std::ptr::{null, null_mut};
    use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::SeqCst};

    /// Minimum size of allocations that fail.
    const LEAST: usize = 1024;
    /// Size of the allocation by which the library checks that memory for small allocations is available.
    const HEADROOM: usize = recon::HEADROOM;

    /// The system's allocator, which fails on request and counts the bytes in use.
    struct Failing;
    /// Number of allocations until one fails; 0 means never.
    static LEFT: AtomicUsize = AtomicUsize::new(0);
    static FAILED: AtomicUsize = AtomicUsize::new(0);
    static IN_USE: AtomicIsize = AtomicIsize::new(0);

    impl Failing {
        /// Adds bytes to the count of bytes in use, if the allocation succeeded.
        fn counted(address: *mut u8, bytes: isize) -> *mut u8 {
            if !address.is_null() {
                IN_USE.fetch_add(bytes, SeqCst);
            }
            address
        }
        fn fails(bytes: usize) -> bool {
            if bytes < LEAST || bytes == HEADROOM || LEFT.load(SeqCst) == 0 || LEFT.fetch_sub(1, SeqCst) != 1 {
                return false;
            }
            FAILED.store(bytes, SeqCst);
            if std::env::var_os("RECON_TEST_BACKTRACE").is_some() {
                eprintln!("{bytes} bytes are refused\n{}", std::backtrace::Backtrace::force_capture());
            }
            true
        }
    }

    // SAFETY: each call is passed to the system's allocator unchanged, or returns null, as an allocator may.
    unsafe impl GlobalAlloc for Failing {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            if Failing::fails(layout.size()) {
                return null_mut();
            }
            // SAFETY: the caller's promise is the same.
            Failing::counted(unsafe { System.alloc(layout) }, layout.size() as isize)
        }
        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            if Failing::fails(layout.size()) {
                return null_mut();
            }
            // SAFETY: the caller's promise is the same.
            Failing::counted(unsafe { System.alloc_zeroed(layout) }, layout.size() as isize)
        }
        unsafe fn realloc(&self, address: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            if size > layout.size() && Failing::fails(size) {
                return null_mut();
            }
            // SAFETY: the caller's promise is the same.
            Failing::counted(unsafe { System.realloc(address, layout, size) }, size as isize - layout.size() as isize)
        }
        unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
            IN_USE.fetch_sub(layout.size() as isize, SeqCst);
            // SAFETY: the caller's promise is the same.
            unsafe { System.dealloc(address, layout) }
        }
    }

    #[global_allocator]
    static ALLOCATOR: Failing = Failing;

    /// Free memory of a process in KiB.
    const SCARCE: [usize; 10] = [0, 16, 63, 64, 66, 72, 96, 160, 320, 1024];

    // Exit codes of an attempt.
    const NO_FAILURE: i32 = 10;
    const REPORTED: i32 = 11;
    const DONE_WITHOUT: i32 = 12;
    const WRONG: i32 = 13;
    const LEAK: i32 = 14;

    /// An output of a call.
    struct Output(*mut u8, usize);

    fn output<E>(values: &mut [E]) -> Output {
        Output(values.as_mut_ptr().cast(), size_of_val(values))
    }

    impl Output {
        const POISON: u8 = 0xa5;
        fn bytes(&self) -> &[u8] {
            // SAFETY: the operation that made this has the array alive.
            unsafe { std::slice::from_raw_parts(self.0, self.1) }
        }
        fn poison(&self) {
            // SAFETY: the operation that made this has the array alive.
            unsafe { self.0.write_bytes(Self::POISON, self.1) }
        }
    }

    /// Modes of a call: first without a failure, for the expected outputs, then with one.
    struct Attempt {
        fails: usize,
        /// Free bytes of the process during the call; `None` means no limit.
        left: Option<usize>,
        right: Option<Vec<Vec<u8>>>,
        code: i32,
    }

    /// Guard during whose life the process has few free bytes, and the system provides no more.
    struct Scarcity {
        before: libc::rlimit,
        /// Allocations that use up the free memory. Each begins with the address of the previous one.
        taken: *mut *mut c_void,
    }

    /// Waits until all other threads sleep. Threads of a plan start while the plan is used, and a new thread takes
    /// memory for its arena.
    fn wait_for_idle_threads() {
        let own = std::fs::read_link("/proc/thread-self").unwrap();
        let is_idle = |thread: std::fs::DirEntry| {
            let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            Some(&*thread.file_name()) == own.file_name()
                || stat.rsplit(") ").next().is_some_and(|state| state.starts_with('S'))
        };
        let started = std::time::Instant::now();
        while !std::fs::read_dir("/proc/self/task").unwrap().all(|thread| is_idle(thread.unwrap())) {
            assert!(started.elapsed().as_secs() < 60, "threads do not become idle");
            std::thread::yield_now();
        }
    }

    impl Scarcity {
        fn new(left: usize) -> Self {
            wait_for_idle_threads();
            // A call may need more stack than this thread has used, and the stack must not grow then.
            std::hint::black_box([0u8; 1 << 20]);
            recon::release_memory();
            let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
            let pages: u64 = statm.split_whitespace().next().and_then(|pages| pages.parse().ok()).unwrap_or(0);
            drop(statm);
            let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            let mut taken: *mut *mut c_void = null_mut();
            // SAFETY: the structure is written and read; memory from malloc has space for an address and is freed once.
            unsafe {
                assert_eq!(libc::getrlimit(libc::RLIMIT_AS, &raw mut before), 0);
                // Space for the free bytes, and for one growth step of the heap.
                let limit = pages * libc::sysconf(libc::_SC_PAGESIZE) as u64 + left as u64 + (1 << 20);
                let limit = libc::rlimit { rlim_cur: limit, ..before };
                assert_eq!(libc::setrlimit(libc::RLIMIT_AS, &raw const limit), 0);
                // In one block, if there is such a block.
                let kept = std::hint::black_box(libc::malloc(left.max(1)));
                assert!(!kept.is_null());
                let mut size = 1usize << 20;
                while size >= 16 {
                    let block: *mut *mut c_void = libc::malloc(size).cast();
                    if block.is_null() {
                        size /= 2;
                        continue;
                    }
                    *block = taken.cast();
                    taken = block;
                }
                libc::free(kept);
            }
            Scarcity { before, taken }
        }
    }

    impl Drop for Scarcity {
        fn drop(&mut self) {
            // SAFETY: each block begins with the address of the previous one, and the first with null.
            unsafe {
                libc::setrlimit(libc::RLIMIT_AS, &raw const self.before);
                while !self.taken.is_null() {
                    let before = (*self.taken).cast();
                    libc::free(self.taken.cast());
                    self.taken = before;
                }
            }
        }
    }

    fn message() -> String {
        // SAFETY: a C string that lives until this thread's next failure.
        unsafe { CStr::from_ptr(recon_last_error_message()) }.to_str().unwrap().to_owned()
    }

    impl Attempt {
        fn call(&mut self, outputs: &[Output], mut call: impl FnMut() -> recon_status) {
            outputs.iter().for_each(Output::poison);
            let Some(right) = &self.right else {
                assert_eq!(call(), RECON_OK, "{}", message());
                self.right = Some(outputs.iter().map(|out| out.bytes().to_vec()).collect());
                return;
            };
            let is_right = || outputs.iter().zip(right).all(|(out, right)| out.bytes() == right);
            let scarce = self.left.map(Scarcity::new);
            LEFT.store(self.fails, SeqCst);
            let status = call();
            LEFT.store(0, SeqCst);
            drop(scarce);
            let failed = FAILED.load(SeqCst);
            self.code = match status {
                RECON_OK if !is_right() => WRONG,
                RECON_OK if failed == 0 => NO_FAILURE,
                RECON_OK => DONE_WITHOUT,
                RECON_OUT_OF_HOST_MEMORY => REPORTED,
                _ => WRONG,
            };
            let untouched = || outputs.iter().all(|out| out.bytes().iter().all(|&b| b == Output::POISON));
            if self.code == WRONG || status != RECON_OK && !untouched() {
                eprintln!("{failed} bytes refused: {status:?}, {}, outputs untouched: {}", message(), untouched());
                self.code = WRONG;
            }
            if status != RECON_OK {
                let again = call();
                if again != RECON_OK || !is_right() {
                    eprintln!("{failed} bytes refused, and the next call: {again:?}, {}", message());
                    self.code = WRONG;
                }
            }
        }
    }

    type Operation<'a> = Box<dyn Fn(&mut Attempt) + 'a>;

    /// Returns a scan of two coils, in two or three dimensions.
    struct Scene {
        dims: Vec<usize>,
        k: Vec<Vec<f32>>,
        weights: Vec<f32>,
        maps: Vec<Complex<f32>>,
        kspace: Vec<Complex<f32>>,
        image: Vec<Complex<f32>>,
        voxels: Vec<Vec<f32>>,
        field: Vec<f32>,
        decay: Vec<f32>,
        times: Vec<f32>,
    }

    const COILS: usize = 2;

    fn init<S>(f: unsafe extern "C" fn(*mut S, u32) -> recon_status) -> S {
        let mut s = std::mem::MaybeUninit::uninit();
        // SAFETY: the structure has the size given, and success writes all of it.
        unsafe {
            assert_eq!(f(s.as_mut_ptr(), size_of::<S>() as u32), RECON_OK);
            s.assume_init()
        }
    }

    impl Scene {
        fn new(dims: &[usize]) -> Scene {
            let samples = 700;
            let number = |i: usize| (i as f32 * 0.618_034).fract() - 0.5;
            let numbers = |n: usize, by: usize| (0..n).map(|i| number(i * by + 1)).collect::<Vec<_>>();
            let complexes =
                |n: usize| (0..n).map(|i| Complex::new(number(3 * i + 1), number(7 * i + 2))).collect::<Vec<_>>();
            let voxels = dims.iter().product::<usize>();
            // 20 spokes in two dimensions. In three, the central 8 samples along each axis, which coil maps require,
            // and points at random positions.
            let spoke = |m: usize, axis: usize| {
                let (sin, cos) = (std::f32::consts::PI * (m / 35) as f32 / 20.0).sin_cos();
                [cos, sin][axis] * ((m % 35) as f32 - 17.0) / 35.0
            };
            let axis = |axis: usize| match dims.len() {
                2 => (0..samples).map(|m| spoke(m, axis)).collect(),
                _ => {
                    let central = |m: usize| ((m / 8usize.pow(axis as u32) % 8) as f32 - 4.0) / dims[axis] as f32;
                    (0..512).map(central).chain(numbers(samples - 512, 2 * axis + 1)).collect()
                }
            };
            Scene {
                dims: dims.to_vec(),
                k: (0..dims.len()).map(axis).collect(),
                weights: vec![1.0; samples],
                maps: complexes(voxels * COILS),
                kspace: complexes(samples * COILS),
                image: complexes(voxels * COILS),
                voxels: (0..dims.len()).map(|axis| numbers(voxels, axis + 2)).collect(),
                field: numbers(voxels, 3).iter().map(|f| 150.0 * f).collect(),
                decay: numbers(voxels, 5).iter().map(|r| 20.0 * r + 10.0).collect(),
                times: (0..samples).map(|m| 0.02 * (m % 35) as f32 / 35.0).collect(),
            }
        }
        fn geometry(&self) -> recon_geometry {
            let mut g = init(recon_geometry_init);
            g.ndim = self.dims.len() as u32;
            for (axis, (&n, k)) in self.dims.iter().zip(&self.k).enumerate() {
                g.dims[axis] = n as u64;
                g.coordinates[axis] = k.as_ptr().cast();
            }
            g.samples = self.weights.len() as u64;
            g.coils = COILS as u64;
            g
        }
        fn combined(&self) -> recon_geometry {
            let (weights, coil_maps) = (self.weights.as_ptr().cast(), self.maps.as_ptr().cast());
            recon_geometry { weights, coil_maps, ..self.geometry() }
        }
        fn mapped(&self) -> recon_geometry {
            let (field_map, decay_map) = (self.field.as_ptr().cast(), self.decay.as_ptr().cast());
            recon_geometry { field_map, decay_map, times: self.times.as_ptr().cast(), ..self.combined() }
        }
        fn listed(&self) -> recon_geometry {
            let mut g = self.geometry();
            for (axis, list) in self.voxels.iter().enumerate() {
                g.voxels[axis] = list.as_ptr().cast();
            }
            g.voxel_count = self.voxels[0].len() as u64;
            g
        }
        fn kspace(&self) -> *const c_void {
            self.kspace.as_ptr().cast()
        }
        fn image(&self) -> *const c_void {
            self.image.as_ptr().cast()
        }
        fn image_len(&self) -> usize {
            self.dims.iter().product()
        }
    }

    fn options(method: u32, normal: u32) -> recon_options {
        let mut o = init(recon_options_init);
        (o.threads, o.device) = (2, recon_device::RECON_DEVICE_CPU as u32);
        (o.method, o.normal) = (method, normal);
        o
    }

    /// A plan that is destroyed when it goes out of scope.
    struct Handle(*mut recon_plan);
    impl Handle {
        fn new(g: &recon_geometry, o: &recon_options) -> Handle {
            let mut plan = null_mut();
            // SAFETY: structures and arrays are alive.
            assert_eq!(unsafe { recon_plan_create(g, o, &raw mut plan) }, RECON_OK, "{}", message());
            Handle(plan)
        }
        fn info(&self) -> recon_plan_properties {
            let mut info = init(recon_plan_properties_init);
            // SAFETY: the plan is alive.
            assert_eq!(unsafe { recon_plan_info(self.0, &raw mut info) }, RECON_OK);
            info
        }
    }
    impl Drop for Handle {
        fn drop(&mut self) {
            // SAFETY: created by recon_plan_create, and destroyed once.
            unsafe { recon_plan_destroy(self.0) };
        }
    }

    /// Returns all operations that allocate, with their names.
    fn operations(folder: &std::path::Path) -> Vec<(String, Operation<'static>)> {
        const NUFFT: u32 = recon_method::RECON_METHOD_NUFFT as u32;
        const EXACT: u32 = recon_method::RECON_METHOD_EXACT as u32;
        const AUTO: u32 = recon_normal_operator::RECON_NORMAL_AUTO as u32;
        const TOEPLITZ: u32 = recon_normal_operator::RECON_NORMAL_TOEPLITZ as u32;
        const TRANSFORMS: u32 = recon_normal_operator::RECON_NORMAL_TRANSFORMS as u32;
        let mut all: Vec<(String, Operation<'static>)> = Vec::new();
        let file = CString::new(folder.join("q").to_str().unwrap()).unwrap();
        let plans: [(&str, &[usize], u32, u32, fn(&Scene) -> recon_geometry); 9] = [
            ("2D", &[24, 20], NUFFT, TOEPLITZ, Scene::geometry),
            ("2D with maps", &[24, 20], NUFFT, TRANSFORMS, Scene::combined),
            ("3D with maps", &[12, 10, 9], NUFFT, TOEPLITZ, Scene::combined),
            ("exact 2D", &[24, 20], EXACT, TOEPLITZ, Scene::geometry),
            ("exact 3D", &[12, 10, 9], EXACT, TRANSFORMS, Scene::combined),
            ("2D with a field map", &[24, 20], NUFFT, TOEPLITZ, Scene::mapped),
            ("2D with a field map, transforms", &[24, 20], NUFFT, TRANSFORMS, Scene::mapped),
            ("exact 2D with a field map", &[24, 20], EXACT, TOEPLITZ, Scene::mapped),
            ("list", &[24, 20], EXACT, AUTO, Scene::listed),
        ];
        for (name, dims, method, normal, geometry) in plans {
            let (file, listed, mapped) = (file.clone(), name == "list", name.contains("field map"));
            let scene = std::rc::Rc::new(Scene::new(dims));
            let own = scene.clone();
            all.push((
                format!("recon_plan_create, {name}"),
                Box::new(move |attempt| {
                    let (g, o) = (geometry(&own), options(method, normal));
                    let before = 0x1230 as *mut recon_plan;
                    let mut plan = before;
                    attempt.call(&[], || {
                        plan = before;
                        // SAFETY: structures and arrays are alive.
                        let status = unsafe { recon_plan_create(&raw const g, &raw const o, &raw mut plan) };
                        match status {
                            // SAFETY: just created.
                            RECON_OK => unsafe { recon_plan_destroy(plan) },
                            _ => assert_eq!(plan, before, "the plan was touched"),
                        }
                        status
                    });
                }),
            ));
            // A transform after each change shows its effect. A transform before it allocates the buffers.
            type Change = fn(&Scene, &Handle, &recon_geometry) -> recon_status;
            let mut changes: Vec<(&str, Change)> = vec![
                ("recon_plan_set_trajectory", |_, plan, g| {
                    let [kx, ky, kz] = g.coordinates;
                    let g = recon_geometry { coordinates: [ky, kx, kz], ..*g };
                    // SAFETY: structure and arrays are alive.
                    unsafe { recon_plan_set_trajectory(plan.0, &raw const g) }
                }),
                ("recon_plan_set_trajectory, fewer samples", |_, plan, g| {
                    // SAFETY: structure and arrays are alive.
                    unsafe { recon_plan_set_trajectory(plan.0, &recon_geometry { samples: 300, ..*g }) }
                }),
                ("recon_plan_set_weights", |_, plan, _| {
                    static WEIGHTS: [f32; 700] = [2.5; 700];
                    // SAFETY: an array of this length.
                    unsafe { recon_plan_set_weights(plan.0, WEIGHTS.as_ptr().cast(), 700) }
                }),
            ];
            if name.contains("maps") {
                changes.push(("recon_plan_set_coil_maps", |s, plan, _| {
                    let elements = s.image.len() as u64;
                    // SAFETY: an array of this length.
                    unsafe { recon_plan_set_coil_maps(plan.0, s.image(), elements) }
                }));
            }
            for (operation, change) in changes {
                let own = scene.clone();
                all.push((
                    format!("{operation}, {name}"),
                    Box::new(move |attempt| {
                        let g = geometry(&own);
                        let plan = Handle::new(&g, &options(method, normal));
                        let mut out = own.image.clone();
                        let len = plan.info().image_elements as usize;
                        let address = out.as_mut_ptr().cast();
                        // SAFETY: arrays have the lengths documented.
                        let transform = || unsafe { recon_weighted_fhd(plan.0, own.kspace(), address) };
                        assert_eq!(transform(), RECON_OK);
                        attempt.call(&[output(&mut out[..len])], || match change(&own, &plan, &g) {
                            RECON_OK => transform(),
                            status => status,
                        });
                    }),
                ));
            }
            type OnPlan = fn(&mut Attempt, &Scene, &Handle, &CStr);
            let mut on_plan: Vec<(&str, OnPlan)> = vec![
                ("recon_forward", |attempt, s, plan, _| {
                    let mut out = s.kspace.clone();
                    let len = plan.info().kspace_elements as usize;
                    // SAFETY: arrays have the lengths documented.
                    attempt.call(&[output(&mut out[..len])], || unsafe {
                        recon_forward(plan.0, s.image(), out.as_mut_ptr().cast())
                    });
                }),
                ("recon_fhd", |attempt, s, plan, _| {
                    let mut out = s.image.clone();
                    let len = plan.info().image_elements as usize;
                    // SAFETY: arrays have the lengths documented.
                    attempt.call(&[output(&mut out[..len])], || unsafe {
                        recon_fhd(plan.0, s.kspace(), out.as_mut_ptr().cast())
                    });
                }),
                ("recon_weighted_fhd", |attempt, s, plan, _| {
                    let mut out = s.image.clone();
                    let len = plan.info().image_elements as usize;
                    // SAFETY: arrays have the lengths documented.
                    attempt.call(&[output(&mut out[..len])], || unsafe {
                        recon_weighted_fhd(plan.0, s.kspace(), out.as_mut_ptr().cast())
                    });
                }),
                ("recon_normal", |attempt, s, plan, _| {
                    let mut out = s.image.clone();
                    let len = plan.info().image_elements as usize;
                    // SAFETY: arrays have the lengths documented.
                    attempt.call(&[output(&mut out[..len])], || unsafe {
                        recon_normal(plan.0, s.image(), out.as_mut_ptr().cast())
                    });
                }),
                ("recon_q", |attempt, _, plan, _| {
                    let mut out = vec![Complex::new(0f32, 0.0); plan.info().q_elements as usize];
                    // SAFETY: arrays have the lengths documented.
                    attempt.call(&[output(&mut out)], || unsafe { recon_q(plan.0, out.as_mut_ptr().cast()) });
                }),
                ("recon_cg", |attempt, s, plan, _| {
                    let mut out = s.image.clone();
                    let len = plan.info().image_elements as usize;
                    let mut o = init(recon_cg_options_init);
                    (o.iterations, o.lambda) = (3, 0.1);
                    // SAFETY: arrays have the lengths documented.
                    attempt.call(&[output(&mut out[..len])], || unsafe {
                        recon_cg(plan.0, s.kspace(), out.as_mut_ptr().cast(), &raw const o, null_mut())
                    });
                }),
                ("recon_cg, matrix", |attempt, s, plan, _| {
                    let mut out = s.image.clone();
                    let len = plan.info().image_elements as usize;
                    let rows = s.image_len();
                    let starts: Vec<u64> = (0..=rows as u64).collect();
                    let columns: Vec<u64> = (0..rows as u64).collect();
                    let mut o = init(recon_cg_options_init);
                    (o.iterations, o.lambda) = (3, 0.1);
                    (o.prior, o.matrix_rows) = (recon_prior::RECON_PRIOR_MATRIX as u32, rows as u64);
                    (o.matrix_starts, o.matrix_columns) = (starts.as_ptr(), columns.as_ptr());
                    o.matrix_values = s.image.as_ptr().cast();
                    // SAFETY: arrays have the lengths documented.
                    attempt.call(&[output(&mut out[..len])], || unsafe {
                        recon_cg(plan.0, s.kspace(), out.as_mut_ptr().cast(), &raw const o, null_mut())
                    });
                }),
            ];
            if !listed {
                let more: Vec<(&str, OnPlan)> = vec![
                    ("recon_grid", |attempt, s, plan, _| {
                        let mut out = s.image.clone();
                        let len = plan.info().image_elements as usize;
                        // SAFETY: arrays have the lengths documented.
                        attempt.call(&[output(&mut out[..len])], || unsafe {
                            recon_grid(plan.0, s.kspace(), out.as_mut_ptr().cast())
                        });
                    }),
                    ("recon_fbp", |attempt, s, plan, _| {
                        let mut out = s.image.clone();
                        let len = plan.info().image_elements as usize;
                        // SAFETY: arrays have the lengths documented.
                        attempt.call(&[output(&mut out[..len])], || unsafe {
                            recon_fbp(plan.0, 1, s.kspace(), out.as_mut_ptr().cast())
                        });
                    }),
                    ("recon_cg, anatomical", |attempt, s, plan, _| {
                        let mut out = s.image.clone();
                        let len = plan.info().image_elements as usize;
                        let reference: Vec<f32> = s.image.iter().map(|z| z.re).collect();
                        let mut o = init(recon_cg_options_init);
                        (o.iterations, o.lambda, o.edge) = (3, 0.1, 0.2);
                        o.prior = recon_prior::RECON_PRIOR_ANATOMICAL as u32;
                        o.reference = reference.as_ptr().cast();
                        // SAFETY: arrays have the lengths documented.
                        attempt.call(&[output(&mut out[..len])], || unsafe {
                            recon_cg(plan.0, s.kspace(), out.as_mut_ptr().cast(), &raw const o, null_mut())
                        });
                    }),
                    ("recon_density, Pipe-Menon", |attempt, s, plan, _| {
                        let mut out = s.weights.clone();
                        // SAFETY: arrays have the lengths documented.
                        attempt.call(&[output(&mut out)], || unsafe {
                            recon_density(plan.0, 0, 3, 0.0, out.as_mut_ptr().cast())
                        });
                    }),
                    ("recon_density, Jackson", |attempt, s, plan, _| {
                        let mut out = s.weights.clone();
                        // SAFETY: arrays have the lengths documented.
                        attempt.call(&[output(&mut out)], || unsafe {
                            recon_density(plan.0, 2, 0, 0.0, out.as_mut_ptr().cast())
                        });
                    }),
                    ("recon_coil_maps", |attempt, s, plan, _| {
                        let mut out = s.maps.clone();
                        // SAFETY: arrays have the lengths documented.
                        attempt.call(&[output(&mut out)], || unsafe {
                            recon_coil_maps(plan.0, s.kspace(), 6, out.as_mut_ptr().cast())
                        });
                    }),
                ];
                // Backprojection is implemented for two dimensions.
                on_plan.extend(more.into_iter().filter(|(name, _)| dims.len() == 2 || *name != "recon_fbp"));
            }
            if method == NUFFT {
                on_plan.push(("recon_grid_kspace", |attempt, s, plan, _| {
                    let mut out = vec![Complex::new(0f32, 0.0); plan.info().grid_elements as usize];
                    // SAFETY: arrays have the lengths documented.
                    attempt.call(&[output(&mut out)], || unsafe {
                        recon_grid_kspace(plan.0, s.kspace(), out.as_mut_ptr().cast())
                    });
                }));
            }
            if normal == TOEPLITZ {
                let more: Vec<(&str, OnPlan)> = vec![
                    ("recon_plan_save_q", |attempt, _, plan, file| {
                        // SAFETY: the plan and a C string.
                        attempt.call(&[], || unsafe { recon_plan_save_q(plan.0, file.as_ptr()) });
                    }),
                    ("recon_plan_load_q", |attempt, _, plan, file| {
                        // SAFETY: the plan and a C string.
                        assert_eq!(unsafe { recon_plan_save_q(plan.0, file.as_ptr()) }, RECON_OK, "{}", message());
                        // SAFETY: the plan and a C string.
                        attempt.call(&[], || unsafe { recon_plan_load_q(plan.0, file.as_ptr()) });
                    }),
                ];
                on_plan.extend(more);
            }
            // With off-resonance these operations are not supported.
            on_plan.retain(|(name, _)| !mapped || !["recon_q", "recon_fbp", "recon_grid_kspace"].contains(name));
            for (operation, run) in on_plan {
                let (scene, file) = (scene.clone(), file.clone());
                all.push((
                    format!("{operation}, {name}"),
                    Box::new(move |attempt| {
                        let plan = Handle::new(&geometry(&scene), &options(method, normal));
                        run(attempt, &scene, &plan, &file);
                    }),
                ));
            }
        }
        all.extend(without_plan());
        all
    }

    fn without_plan() -> Vec<(String, Operation<'static>)> {
        let mut all: Vec<(String, Operation<'static>)> = Vec::new();
        let scene = std::rc::Rc::new(Scene::new(&[24, 20]));
        type OnScene = fn(&mut Attempt, &Scene);
        let operations: [(&str, OnScene); 18] = [
            ("recon_combine, root sum of squares", |attempt, s| {
                let (g, mut out) = (s.geometry(), s.image[..s.image_len()].to_vec());
                // SAFETY: arrays have the lengths documented.
                attempt.call(&[output(&mut out)], || unsafe {
                    recon_combine(&raw const g, 0, s.image(), out.as_mut_ptr().cast())
                });
            }),
            ("recon_combine, adaptive", |attempt, s| {
                let (g, mut out) = (s.geometry(), s.image[..s.image_len()].to_vec());
                // SAFETY: arrays have the lengths documented.
                attempt.call(&[output(&mut out)], || unsafe {
                    recon_combine(&raw const g, 1, s.image(), out.as_mut_ptr().cast())
                });
            }),
            ("recon_noise_covariance", |attempt, s| {
                // 12 coils, so that matrices are large enough for a failed allocation.
                let mut out = vec![Complex::new(0f64, 0.0); 144];
                // SAFETY: arrays have the lengths documented.
                attempt.call(&[output(&mut out)], || unsafe {
                    let samples = (s.kspace.len() / 12) as u64;
                    recon_noise_covariance(0, s.kspace(), samples, 12, 0.0, 0.0, 0.0, out.as_mut_ptr().cast())
                });
            }),
            ("recon_whitening", |attempt, _| {
                let one = |i: usize| Complex::new(f64::from(i % 13 == 0), 0.0);
                let (covariance, mut out) = ((0..144).map(one).collect::<Vec<_>>(), vec![Complex::new(0f64, 0.0); 144]);
                // SAFETY: arrays have the lengths documented.
                attempt.call(&[output(&mut out)], || unsafe {
                    recon_whitening(covariance.as_ptr().cast(), 12, out.as_mut_ptr().cast())
                });
            }),
            ("recon_compression", |attempt, s| {
                let (mut out, mut kept) = (vec![Complex::new(0f64, 0.0); 144], 0);
                let samples = (s.kspace.len() / 12) as u64;
                // SAFETY: arrays have the lengths documented.
                attempt.call(&[output(&mut out)], || unsafe {
                    let (matrix, kept) = (out.as_mut_ptr().cast(), &raw mut kept);
                    recon_compression(0, s.kspace(), samples, 12, 1, 0, 0.9, matrix, kept, null_mut())
                });
            }),
            ("recon_virtual_coils", |attempt, s| {
                let (matrix, mut out) = (vec![Complex::new(1f64, 0.5); 2 * COILS], s.kspace.clone());
                let samples = (s.kspace.len() / COILS) as u64;
                // SAFETY: arrays have the lengths documented.
                attempt.call(&[output(&mut out)], || unsafe {
                    let (matrix, to) = (matrix.as_ptr().cast(), out.as_mut_ptr().cast());
                    recon_virtual_coils(matrix, 2, COILS as u64, 0, s.kspace(), samples, 1, to)
                });
            }),
            ("recon_propeller", |attempt, _| {
                let [mut x, mut y] = [(); 2].map(|()| vec![0f32; 2 * 8 * 20]);
                let mut out = vec![Complex::new(0f32, 0.0); 20 * 20];
                let mut g = init(recon_geometry_init);
                (g.dims, g.samples) = ([20, 20, 0], x.len() as u64);
                let options = recon_options { threads: 1, device: 1, ..init(recon_options_init) };
                // Each round of the search allocates like the first.
                let how = recon_propeller_options { rotation: 0, ..init(recon_propeller_options_init) };
                let mut data = vec![Complex::new(0f32, 0.0); x.len()];
                // SAFETY: arrays have the lengths documented.
                unsafe {
                    let (x, y) = (x.as_mut_ptr().cast(), y.as_mut_ptr().cast());
                    assert_eq!(recon_trajectory_propeller(0, 2, 8, 20, x, y), RECON_OK, "{}", message());
                    g.coordinates = [x.cast_const(), y.cast_const(), null()];
                    let data = data.as_mut_ptr().cast();
                    assert_eq!(recon_phantom_kspace(&raw const g, null(), 0, 0, 1, data), RECON_OK, "{}", message());
                }
                // SAFETY: as above.
                attempt.call(&[output(&mut out)], || unsafe {
                    let to = out.as_mut_ptr().cast();
                    recon_propeller(&raw const g, &options, &how, data.as_ptr().cast(), to, null_mut())
                });
            }),
            ("recon_field_map", |attempt, _| {
                // With phase wraps, because unwrapping allocates too.
                let image = |i: usize| Complex::from_polar(1f32, if i < 1600 { 0.0 } else { (i % 40) as f32 / 4.0 });
                let images: Vec<_> = (0..3200).map(image).collect();
                let [mut field, mut decay] = [(); 2].map(|()| vec![0f32; 1600]);
                let options = recon_field_map_options { threads: 1, ..init(recon_field_map_options_init) };
                // SAFETY: arrays have the lengths documented.
                attempt.call(&[output(&mut field), output(&mut decay)], || unsafe {
                    let (field, decay) = (field.as_mut_ptr().cast(), decay.as_mut_ptr().cast());
                    let (dims, times, images) = ([40, 40].as_ptr(), [0.002, 0.004].as_ptr(), images.as_ptr().cast());
                    recon_field_map(0, 2, dims, 1, 2, times, images, &raw const options, field, decay, null_mut())
                });
            }),
            ("recon_trajectory_radial2d", |attempt, _| {
                let [mut x, mut y] = [(); 2].map(|()| vec![0f32; 30 * 40]);
                // SAFETY: arrays have the lengths documented.
                attempt.call(&[output(&mut x), output(&mut y)], || unsafe {
                    recon_trajectory_radial2d(0, 30, 40, 1, x.as_mut_ptr().cast(), y.as_mut_ptr().cast())
                });
            }),
            ("recon_trajectory_propeller", |attempt, _| {
                let [mut x, mut y] = [(); 2].map(|()| vec![0f64; 5 * 6 * 40]);
                // SAFETY: arrays have the lengths documented.
                attempt.call(&[output(&mut x), output(&mut y)], || unsafe {
                    recon_trajectory_propeller(1, 5, 6, 40, x.as_mut_ptr().cast(), y.as_mut_ptr().cast())
                });
            }),
            ("recon_trajectory_lissajous", |attempt, _| {
                let [mut x, mut y] = [(); 2].map(|()| vec![0f64; 30 * 40]);
                // SAFETY: arrays have the lengths documented.
                attempt.call(&[output(&mut x), output(&mut y)], || unsafe {
                    recon_trajectory_lissajous(1, 30, 40, 16, 15, x.as_mut_ptr().cast(), y.as_mut_ptr().cast())
                });
            }),
            ("recon_trajectory_propeller_scan", |attempt, _| {
                let [mut x, mut y] = [(); 2].map(|()| vec![0f64; 5 * 6 * 40]);
                // SAFETY: arrays have the lengths documented.
                attempt.call(&[output(&mut x), output(&mut y)], || unsafe {
                    recon_trajectory_propeller_scan(1, 5, 6, 40, 16, x.as_mut_ptr().cast(), y.as_mut_ptr().cast())
                });
            }),
            ("recon_phantom_kspace", |attempt, s| {
                let (g, mut out) = (s.geometry(), s.kspace.clone());
                // SAFETY: arrays have the lengths documented.
                attempt.call(&[output(&mut out)], || unsafe {
                    recon_phantom_kspace(&raw const g, null(), 0, 1, 2, out.as_mut_ptr().cast())
                });
            }),
            ("recon_phantom_kspace with maps", |attempt, s| {
                let (g, mut out) = (s.geometry(), s.kspace.clone());
                let map = vec![1f32; g.dims[..2].iter().product::<u64>() as usize];
                let times = vec![0.01f32; g.samples as usize];
                let field_map = map.as_ptr().cast();
                let g = recon_geometry { field_map, decay_map: field_map, times: times.as_ptr().cast(), ..g };
                // SAFETY: arrays have the lengths documented.
                attempt.call(&[output(&mut out)], || unsafe {
                    recon_phantom_kspace(&raw const g, null(), 0, 1, 2, out.as_mut_ptr().cast())
                });
            }),
            ("recon_phantom_image", |attempt, s| {
                let (g, mut out) = (s.geometry(), s.image[..s.image_len()].to_vec());
                // SAFETY: arrays have the lengths documented.
                attempt.call(&[output(&mut out)], || unsafe {
                    recon_phantom_image(&raw const g, null(), 0, 2, out.as_mut_ptr().cast())
                });
            }),
            ("recon_phantom_coil_maps", |attempt, s| {
                let (g, mut out) = (s.geometry(), s.maps.clone());
                // SAFETY: arrays have the lengths documented.
                attempt.call(&[output(&mut out)], || unsafe {
                    recon_phantom_coil_maps(&raw const g, out.as_mut_ptr().cast())
                });
            }),
            ("recon_metrics", |attempt, s| {
                let g = s.geometry();
                let mask = vec![1u8; s.image_len().max(2 * LEAST)];
                // SAFETY: arrays have the lengths documented.
                let mut quality = init(recon_quality_init);
                attempt.call(&[], || unsafe {
                    let (image, truth) = (s.image(), s.maps.as_ptr().cast());
                    recon_metrics(&raw const g, image, truth, mask.as_ptr(), 0, 0, &raw mut quality)
                });
            }),
            ("recon_resize", |attempt, s| {
                // Interpolated along both axes, to lengths that are not products of small primes.
                let (g, dims, fov) = (s.geometry(), [131u64, 67], [1.0; 2]);
                let mut out = vec![Complex::new(0f32, 0.0); 131 * 67 * COILS];
                // SAFETY: arrays have the lengths documented.
                attempt.call(&[output(&mut out)], || unsafe {
                    let (to, fov) = (dims.as_ptr(), fov.as_ptr());
                    recon_resize(&raw const g, fov, to, fov, s.image(), out.as_mut_ptr().cast())
                });
            }),
        ];
        for (name, run) in operations {
            let scene = scene.clone();
            all.push((name.to_owned(), Box::new(move |attempt| run(attempt, &scene))));
        }
        all
    }

    #[cfg(target_env = "gnu")]
    extern "C" fn print_abort(_signal: i32) {
        let all = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: the structure is read.
        unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const all) };
        // Rust's own backtrace may be locked by the message that comes before the abort.
        let mut frames = [null_mut(); 64];
        // SAFETY: the array has this number of elements, and all counted elements are written.
        unsafe {
            let count = libc::backtrace(frames.as_mut_ptr(), 64);
            libc::backtrace_symbols_fd(frames.as_ptr(), count, 2);
        }
    }

    /// Runs an operation in a separate process, with failed allocation number `n` (0 for none) or few free bytes.
    /// Returns the exit code of the process, or the signal that ended it.
    fn attempt(operation: &Operation<'_>, n: usize, left: Option<usize>) -> Result<i32, i32> {
        // SAFETY: this process has one thread.
        let child = unsafe { libc::fork() };
        assert!(child >= 0, "no process could be started");
        if child == 0 {
            #[cfg(target_env = "gnu")]
            if std::env::var_os("RECON_TEST_BACKTRACE").is_some() {
                // SAFETY: the process is ending anyway.
                unsafe { libc::signal(libc::SIGABRT, print_abort as *const () as libc::sighandler_t) };
            }
            // Memory that a process allocates once and keeps is not a leak. Threads that wait for the next plan may
            // still have to free what they were started with.
            let mut first = Attempt { fails: 0, left: None, right: None, code: WRONG };
            operation(&mut first);
            recon::release_memory();
            let mut attempt = Attempt { fails: n, left, right: first.right.clone(), code: WRONG };
            let before = IN_USE.load(SeqCst);
            operation(&mut attempt);
            recon::release_memory();
            let lost = IN_USE.load(SeqCst) - before;
            if attempt.code != WRONG && lost > 0 {
                eprintln!("{} bytes refused: {lost} bytes are lost", FAILED.load(SeqCst));
                attempt.code = LEAK;
            }
            // SAFETY: this ends the process at once.
            unsafe { libc::_exit(attempt.code) };
        }
        let mut status = 0;
        // SAFETY: the child was started above.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        match libc::WIFSIGNALED(status) {
            true => Err(libc::WTERMSIG(status)),
            false => Ok(libc::WEXITSTATUS(status)),
        }
    }

    pub fn main() -> i32 {
        // As in the test harness, words of the command line select operations by parts of their names. Without words
        // all operations run.
        let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
        let folder = std::env::temp_dir().join(format!("recon-allocations-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (mut attempts, mut all_reported, mut bad) = (0, 0, 0);
        for (name, operation) in operations(&folder) {
            if !words.is_empty() && !words.iter().any(|word| name.contains(&**word)) {
                continue;
            }
            let (mut reported, mut without, mut faults) = (0, 0, Vec::new());
            let mut n = 1;
            loop {
                match attempt(&operation, n, None) {
                    Ok(NO_FAILURE) => break,
                    Ok(REPORTED) => reported += 1,
                    Ok(DONE_WITHOUT) => without += 1,
                    Ok(LEAK) => faults.push(format!("{n}: leak")),
                    Ok(code) => faults.push(format!("{n}: wrong ({code})")),
                    Err(signal) => faults.push(format!("{n}: signal {signal}")),
                }
                n += 1;
                assert!(n < 5000, "{name}: there is no end to its allocations");
            }
            // The block size in which the system provides memory when the process runs out of it: 0 to 1 MiB.
            let (mut ended, mut scarce) = (0, 0);
            for left in SCARCE.iter().map(|kib| kib << 10).filter(|_| cfg!(target_os = "linux")) {
                match attempt(&operation, 0, Some(left)) {
                    Ok(NO_FAILURE) => ended += 1,
                    Ok(REPORTED) => scarce += 1,
                    Ok(code) => faults.push(format!("with {left} bytes left: wrong ({code})")),
                    Err(signal) => faults.push(format!("with {left} bytes left: signal {signal}")),
                }
            }
            let verdict = if faults.is_empty() { "ok" } else { "FAILED" };
            println!(
                "test {name}: {} failures, {reported} reported, {without} done without; few bytes left: {scarce} \
                 reported, {ended} done ... {verdict}",
                n - 1
            );
            faults.iter().take(12).for_each(|fault| println!("    allocation {fault}"));
            attempts += n - 1;
            all_reported += reported;
            bad += faults.len();
        }
        std::fs::remove_dir_all(&folder).unwrap();
        println!("{attempts} failures, {all_reported} reported, {bad} faults");
        i32::from(bad > 0 || attempts == 0)
    }
}
