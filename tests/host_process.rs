//! The library in a host's process: memory that plans leave behind, forks while plans are created, and a system that
//! refuses threads. Each check is a forked process, so this program has no test harness, whose threads would not
//! survive the fork.
//!
//! Its `main` is C's, as in the hosts. A `main` of Rust installs std's handler for stack overflows, and std then takes
//! a lock whenever a thread starts or ends. A child that is forked at such a moment can never start a thread. That
//! happened to 26 of 3,000 children of a program without recon (Rust 1.95), and to none with a `main` of C.
//!
//! RECON_TEST_BACKTRACE=1 prints a backtrace of each large allocation from the host's allocator.

#![cfg_attr(all(target_os = "linux", target_env = "gnu"), no_main)]

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn main() {
    println!("skipped: the host's process (not glibc on Linux)");
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod common;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[no_mangle]
extern "C" fn main() -> std::ffi::c_int {
    linux::main()
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod linux {
    use crate::common::{slices, Random};
    use recon::{CgOptions, Complex, Device, Geometry, Normal, Options, Plan, WarningKind};
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::ffi::{c_int, c_void};
    use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering::SeqCst};
    use std::sync::Barrier;
    use std::time::{Duration, Instant};

    const MIB: usize = 1 << 20;

    /// The system's allocator, which counts large allocations on request.
    struct Watched;
    static WATCHES: AtomicBool = AtomicBool::new(false);
    static LARGE: AtomicUsize = AtomicUsize::new(0);
    /// Minimum size of arrays that glibc maps by default; it raises its thresholds when they are freed.
    const MAPPED_BY_GLIBC: usize = 128 << 10;

    fn watch(bytes: usize) {
        if bytes >= MAPPED_BY_GLIBC && WATCHES.load(SeqCst) {
            LARGE.fetch_add(1, SeqCst);
            if std::env::var_os("RECON_TEST_BACKTRACE").is_some() && WATCHES.swap(false, SeqCst) {
                eprintln!("{bytes} bytes of the host's allocator\n{}", std::backtrace::Backtrace::force_capture());
                WATCHES.store(true, SeqCst);
            }
        }
    }

    // SAFETY: each call is passed to the system's allocator unchanged.
    unsafe impl GlobalAlloc for Watched {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            watch(layout.size());
            // SAFETY: the caller's promise is the same.
            unsafe { System.alloc(layout) }
        }
        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            watch(layout.size());
            // SAFETY: the caller's promise is the same.
            unsafe { System.alloc_zeroed(layout) }
        }
        unsafe fn realloc(&self, address: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            watch(size);
            // SAFETY: the caller's promise is the same.
            unsafe { System.realloc(address, layout, size) }
        }
        unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
            // SAFETY: the caller's promise is the same.
            unsafe { System.dealloc(address, layout) }
        }
    }

    #[global_allocator]
    static ALLOCATOR: Watched = Watched;

    /// Number of threads that the system still allows; negative means any number.
    static ALLOWED: AtomicIsize = AtomicIsize::new(-1);

    type Start = extern "C" fn(*mut c_void) -> *mut c_void;
    type PthreadCreate =
        unsafe extern "C" fn(*mut libc::pthread_t, *const libc::pthread_attr_t, Start, *mut c_void) -> c_int;

    /// Replaces the C library's function, and refuses threads like the system at RLIMIT_NPROC.
    ///
    /// # Safety
    /// As for the C library's function.
    #[no_mangle]
    unsafe extern "C" fn pthread_create(
        thread: *mut libc::pthread_t,
        attributes: *const libc::pthread_attr_t,
        start: Start,
        argument: *mut c_void,
    ) -> c_int {
        if ALLOWED.load(SeqCst) == 0 {
            return libc::EAGAIN;
        }
        if ALLOWED.load(SeqCst) > 0 {
            ALLOWED.fetch_sub(1, SeqCst);
        }
        // SAFETY: a C string, and the function of this name has this type.
        let real: PthreadCreate =
            unsafe { std::mem::transmute(libc::dlsym(libc::RTLD_NEXT, c"pthread_create".as_ptr())) };
        // SAFETY: the caller's promise is the same.
        unsafe { real(thread, attributes, start, argument) }
    }

    /// Returns the resident bytes of this process.
    fn resident() -> usize {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        // SAFETY: asked for a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        pages.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * page
    }

    fn plan_of(dims: &[usize], k: &[Vec<f32>], threads: usize) -> Plan<f32> {
        let options = Options { device: Device::Cpu, threads, normal: Normal::Toeplitz, ..Options::default() };
        Plan::new(&Geometry::new(dims, &slices(k)), &options).unwrap()
    }

    /// Checks that 16 threads of a host that create plans leave at most 160 MiB, and at most 16 MiB after the call that
    /// releases memory.
    fn threads_of_a_host_leave_little_memory() {
        const HOST_THREADS: usize = 16;
        let k = Random::fresh().trajectory::<f32>(3, 1_200_000);
        drop(plan_of(&[64, 64, 64], &k, 1));
        recon::release_memory();
        let before = resident();
        let all_alive = Barrier::new(HOST_THREADS);
        let most = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..HOST_THREADS {
                scope.spawn(|| {
                    for _ in 0..2 {
                        let plan = plan_of(&[64, 64, 64], &k, 1);
                        all_alive.wait();
                        most.fetch_max(resident(), SeqCst);
                        drop(plan);
                    }
                });
            }
        });
        let left = resident().saturating_sub(before);
        recon::release_memory();
        let released = resident().saturating_sub(before);
        let most = most.into_inner().saturating_sub(before);
        println!(
            "    {} MiB while the plans live, {:.1} MiB left by {HOST_THREADS} threads, {:.1} MiB once released",
            most / MIB,
            left as f64 / MIB as f64,
            released as f64 / MIB as f64
        );
        assert!(most > 256 * MIB, "the plans are too small to show anything");
        assert!(left <= 160 * MIB, "{left} bytes are left");
        assert!(released <= 16 * MIB, "{released} bytes are left after release_memory");
    }

    /// Checks that plans take their large arrays from the system and not from the host's allocator, whose thresholds do
    /// not change.
    fn plans_leave_the_allocator_of_the_host_alone() {
        let mut random = Random::fresh();
        let k = random.trajectory::<f32>(2, 300_000);
        let data: Vec<Complex<f32>> = random.complexes(300_000);
        let mut image = vec![Complex::new(f32::NAN, 0.0); 300 * 300];
        WATCHES.store(true, SeqCst);
        for threads in [1, 3] {
            let plan = plan_of(&[300, 300], &k, threads);
            plan.adjoint(&data, &mut image).unwrap();
            plan.cg(&data, &mut image, &CgOptions { iterations: 2, ..CgOptions::default() }).unwrap();
        }
        WATCHES.store(false, SeqCst);
        assert!(image.iter().all(|z| z.re.is_finite()));
        let large = LARGE.load(SeqCst);
        assert_eq!(large, 0, "{large} allocations of {MAPPED_BY_GLIBC} bytes or more");
    }

    /// Checks that a new plan reuses the memory of the previous one, also in a different thread.
    fn plans_of_other_threads_take_no_fresh_pages() {
        fn faults() -> i64 {
            // SAFETY: zeros are a valid rusage, and getrusage writes it.
            unsafe {
                let mut usage: libc::rusage = std::mem::zeroed();
                assert_eq!(libc::getrusage(libc::RUSAGE_SELF, &mut usage), 0);
                usage.ru_minflt
            }
        }
        const PLANS: usize = 16;
        let k = Random::fresh().trajectory::<f32>(2, 250_000);
        let make = || drop(plan_of(&[256, 256], &k, 1));
        make();
        make();
        let before = faults();
        for _ in 0..PLANS {
            std::thread::scope(|scope| drop(scope.spawn(make)));
        }
        let found = (faults() - before) as usize / PLANS;
        println!("    {found} page faults per plan, each in a new thread");
        // About 10 for the thread; several thousand if the plan's arrays are fresh.
        assert!(found < 400, "{found} page faults per plan");
    }

    unsafe extern "C" fn ignore(_message: *const recon::ffi::recon_log_message, _user_data: *mut c_void) {}

    type LogCallback = unsafe extern "C" fn(*const recon::ffi::recon_log_message, *mut c_void);

    fn set_log(callback: Option<LogCallback>) {
        // SAFETY: the functions of this file may be called from any thread.
        let status = unsafe { recon::ffi::recon_set_log_callback(callback, std::ptr::null_mut(), 3) };
        assert_eq!(status, recon::ffi::recon_status::RECON_OK);
    }

    /// Checks that a child that is forked at any time creates plans as fast as any other process, without waiting for a
    /// lock of its parent.
    fn forked_processes_meet_no_locks() {
        const FORKS: usize = 60;
        /// A child that waits for a lock waits forever, or for the 2 s of earlier versions.
        const SLOW: Duration = Duration::from_millis(1500);
        let mut random = Random::fresh();
        let k = random.trajectory::<f32>(2, 5000);
        let data: Vec<Complex<f32>> = random.complexes(5000);
        let adjoint = |plan: &Plan<f32>| {
            let mut image = vec![Complex::new(f32::NAN, 0.0); 32 * 32];
            plan.adjoint(&data, &mut image).unwrap();
            image
        };
        let inherited = plan_of(&[32, 32], &k, 3);
        let expected = adjoint(&inherited);
        let mut inherited = Some(inherited);
        let mut fork = || {
            // SAFETY: the child calls only the library and the allocator, and ends by _exit.
            let child = unsafe { libc::fork() };
            assert!(child >= 0, "no process could be started");
            if child == 0 {
                // SAFETY: a child that hangs is ended by a signal.
                unsafe { libc::alarm(60) };
                let started = Instant::now();
                let plan = plan_of(&[32, 32], &k, 3);
                let is_right = adjoint(&plan) == expected && plan.info().threads == 3;
                drop(plan);
                set_log(Some(ignore));
                // The child may also destroy a plan of the parent.
                drop(inherited.take());
                drop(plan_of(&[32, 32], &k, 2));
                let code = if !is_right { 2 } else { i32::from(started.elapsed() > SLOW) };
                // SAFETY: this ends the process at once.
                unsafe { libc::_exit(code) };
            }
            let started = Instant::now();
            let mut status = 0;
            // SAFETY: the child was started above.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert!(libc::WIFEXITED(status), "a child was ended by signal {}", libc::WTERMSIG(status));
            assert!(libc::WEXITSTATUS(status) < 2, "the image of a child is wrong");
            (libc::WEXITSTATUS(status) == 1, started.elapsed())
        };
        let median = |mut times: Vec<Duration>| {
            times.sort();
            times[times.len() / 2]
        };
        /// Ends the threads beside the forks, also if a fork fails: the scope waits for them.
        struct Stop<'a>(&'a AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, SeqCst);
            }
        }
        // Forks while three threads work repeatedly.
        let mut forks_beside = |work: &(dyn Fn(usize) + Sync)| -> Vec<(bool, Duration)> {
            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let _stop = Stop(&stop);
                for threads in [2, 5, 9] {
                    let stop = &stop;
                    scope.spawn(move || {
                        while !stop.load(SeqCst) {
                            work(threads);
                        }
                    });
                }
                (0..FORKS).map(|_| fork()).collect()
            })
        };
        // A child shares the processors with those threads in both cases.
        let busy = forks_beside(&|_| (0..1000).for_each(|_| std::hint::spin_loop()));
        let outcomes = forks_beside(&|threads| {
            drop(plan_of(&[32, 32], &k, threads));
            set_log((threads == 2).then_some(ignore as LogCallback));
        });
        let slow = outcomes.iter().filter(|outcome| outcome.0).count();
        let times = |outcomes: &[(bool, Duration)]| median(outcomes.iter().map(|outcome| outcome.1).collect());
        println!(
            "    a child takes {:.1?} beside three busy threads, {:.1?} beside three that make plans (medians); {slow} \
             of {FORKS} were slow",
            times(&busy),
            times(&outcomes)
        );
        assert!(slow <= FORKS / 10, "{slow} of {FORKS} children took longer than {SLOW:?}");
    }

    /// Number of messages about refused threads.
    static REFUSALS: AtomicUsize = AtomicUsize::new(0);

    /// Counts the warning of a plan that requested eight threads.
    unsafe extern "C" fn count_refusals(message: *const recon::ffi::recon_log_message, _user_data: *mut c_void) {
        // SAFETY: a message of the library, whose text is a C string.
        let text = unsafe { std::ffi::CStr::from_ptr((*message).text) };
        REFUSALS.fetch_add(usize::from(text.to_string_lossy().contains("of 8 threads")), SeqCst);
    }

    /// Checks that plans compute with the threads that the system allows, at least the caller's own, and warn.
    fn refused_threads_are_done_without() {
        set_log(Some(count_refusals));
        let mut random = Random::fresh();
        let k = random.trajectory::<f32>(2, 5000);
        let data: Vec<Complex<f32>> = random.complexes(5000);
        let image = |plan: &Plan<f32>| {
            let mut image = vec![Complex::new(f32::NAN, 0.0); 32 * 32];
            plan.adjoint(&data, &mut image).unwrap();
            image
        };
        let warned = |plan: &Plan<f32>| plan.warnings().iter().filter(|w| w.kind == WarningKind::Threads).count();
        let expected = image(&plan_of(&[32, 32], &k, 1));
        for allowed in [0, 1, 2, 6] {
            // Threads of the previous plans may still wait for the next one.
            recon::release_memory();
            ALLOWED.store(allowed, SeqCst);
            let plan = plan_of(&[32, 32], &k, 8);
            let mut unlogged = 1;
            assert_eq!(plan.info().threads, 1 + allowed as usize);
            assert_eq!(warned(&plan), 1, "{:?}", plan.warnings());
            let message = plan.warnings().into_iter().find(|w| w.kind == WarningKind::Threads).unwrap().message;
            assert!(message.contains(&format!("{} of 8 threads", 1 + allowed)), "{message}");
            assert!(message.contains("Resource temporarily unavailable"), "{message}");
            // The warning is logged once, at the latest by the first call after all threads were requested.
            for _ in 0..2 {
                assert!(image(&plan) == expected);
                assert_eq!(REFUSALS.swap(0, SeqCst), std::mem::take(&mut unlogged));
            }
            // A plan that requests no more threads than exist has no warning.
            let modest = plan_of(&[32, 32], &k, 1 + allowed as usize);
            assert_eq!((modest.info().threads, warned(&modest)), (1 + allowed as usize, 0));
            // The next plan tries again, and this plan also uses its threads.
            ALLOWED.store(-1, SeqCst);
            let next = plan_of(&[32, 32], &k, 8);
            assert_eq!((next.info().threads, warned(&next)), (8, 0));
            assert_eq!(plan.info().threads, 8);
            assert!(image(&next) == expected && image(&plan) == expected);
            assert_eq!(REFUSALS.load(SeqCst), 0);
        }
    }

    pub fn main() -> c_int {
        // As in the test harness, words of the command line select checks by parts of their names.
        let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
        let checks: [(&str, fn()); 5] = [
            ("threads_of_a_host_leave_little_memory", threads_of_a_host_leave_little_memory),
            ("plans_leave_the_allocator_of_the_host_alone", plans_leave_the_allocator_of_the_host_alone),
            ("plans_of_other_threads_take_no_fresh_pages", plans_of_other_threads_take_no_fresh_pages),
            ("forked_processes_meet_no_locks", forked_processes_meet_no_locks),
            ("refused_threads_are_done_without", refused_threads_are_done_without),
        ];
        let mut failed = 0;
        for (name, check) in checks {
            if !words.is_empty() && !words.iter().any(|word| name.contains(&**word)) {
                continue;
            }
            // SAFETY: this process has one thread.
            let child = unsafe { libc::fork() };
            assert!(child >= 0, "no process could be started");
            if child == 0 {
                let code = i32::from(std::panic::catch_unwind(check).is_err());
                // SAFETY: this ends the process at once.
                unsafe { libc::_exit(code) };
            }
            let mut status = 0;
            // SAFETY: the child was started above.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            println!("test {name} ... {}", if status == 0 { "ok" } else { "FAILED" });
            failed += i32::from(status != 0);
        }
        failed
    }
}
