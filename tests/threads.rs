//! The threads of a process: all plans share them, and they end soon after the last plan. Alone in its process, whose
//! threads it counts in /proc; tests/windows/load.c counts those of Windows.
#![cfg(target_os = "linux")]

mod common;
#[cfg(target_env = "gnu")]
#[path = "common/loaded_library.rs"]
mod loaded_library;

use common::{say, Random};
#[cfg(target_env = "gnu")]
use loaded_library::while_loaded;
use recon::{Complex, Device, Error, ErrorKind, Geometry, Options, Plan};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::DirEntry;

/// Returns the ids of the library's threads in this process.
fn worker_ids() -> BTreeSet<OsString> {
    let is_worker =
        |task: &DirEntry| std::fs::read_to_string(task.path().join("comm")).is_ok_and(|n| n.starts_with("recon "));
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux lists a process's threads");
    tasks.filter_map(Result::ok).filter(is_worker).map(|task| task.file_name()).collect()
}

/// Returns the number of the library's threads in this process.
fn workers() -> usize {
    worker_ids().len()
}

/// Checks the number of workers. Linux shows a thread's name only when that thread has run, and its end shortly after
/// the join, so a different number is read again until a loaded machine has had enough time.
#[track_caller]
fn assert_workers(expected: usize, when: &str) {
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while workers() != expected && std::time::Instant::now() < patience {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(workers(), expected, "{when}");
}

fn try_plan(k: &[Vec<f32>], threads: usize) -> Result<Plan<f32>, Error> {
    let k: Vec<&[f32]> = k.iter().map(|k| &k[..]).collect();
    let options = Options { device: Device::Cpu, threads, ..Options::default() };
    Plan::new(&Geometry::new(&[32, 32], &k), &options)
}

fn plan(k: &[Vec<f32>], threads: usize) -> Plan<f32> {
    try_plan(k, threads).unwrap()
}

#[test]
fn plans_share_the_threads_of_the_one_that_asks_for_most() {
    let mut random = Random::fresh();
    let k = random.trajectory::<f32>(2, 5000);
    let data: Vec<Complex<f32>> = random.complexes(5000);
    let adjoint = |plan: &Plan<f32>| {
        let mut image = vec![Complex::new(f32::NAN, 0.0); 32 * 32];
        plan.adjoint(&data, &mut image).unwrap();
        image
    };
    assert_workers(0, "threads before the first plan");
    let alone = plan(&k, 1);
    assert_workers(0, "a plan of one thread needs no other");
    let expected = adjoint(&alone);
    let plans: Vec<Plan<f32>> = (0..200).map(|i| plan(&k, 1 + i % 16)).collect();
    assert_workers(15, "200 plans of up to 16 threads");
    std::thread::scope(|scope| {
        for plans in plans.chunks(50) {
            scope.spawn(|| plans.iter().for_each(|plan| assert!(adjoint(plan) == expected, "seed {}", random.seed)));
        }
    });
    assert_workers(15, "after 200 adjoints");
    let wide = plan(&k, 40);
    assert_workers(39, "a plan of 40 threads");
    assert!(adjoint(&wide) == expected, "seed {}", random.seed);
    drop(wide);
    assert_workers(15, "its threads go with it");
    drop(plans);
    assert_workers(0, "the plan of one thread is left");
    assert!(adjoint(&alone) == expected, "seed {}", random.seed);

    // If there is no memory for that many stacks: computed with the threads that started, or an error.
    let most = with_room_for(48 << 20, || match try_plan(&k, 200) {
        Ok(crowded) => {
            let image = adjoint(&crowded);
            let started = workers();
            drop(crowded);
            assert!(image == expected, "seed {}", random.seed);
            started
        }
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::OutOfHostMemory, "{e}");
            0
        }
    });
    match most {
        Some(most) => assert!(most < 199, "{most} workers have stacks of 2 MiB each in 48 MiB and what was there"),
        None => say("skipped: threads without memory for their stacks (the system ignores RLIMIT_AS, as qemu does)"),
    }
    assert_workers(0, "those that could be started are gone");
    let plan = plan(&k, 20);
    assert_workers(19, "there is room again");
    assert!(adjoint(&plan) == expected, "seed {}", random.seed);
    drop(plan);
    assert_workers(0, "they end by themselves when no plan follows");
    plans_one_after_another_share_their_threads(&k);
    recon::release_memory();
    assert_workers(0, "they end when unused memory is released");
    #[cfg(target_env = "gnu")]
    unloading_the_library_ends_its_threads(&k);
}

/// On a loaded machine more than a second may lie between two plans, so several pairs are made.
fn plans_one_after_another_share_their_threads(k: &[Vec<f32>]) {
    let ids = || {
        let plan = plan(k, 6);
        assert_workers(5, "a plan of 6 threads");
        let ids = worker_ids();
        drop(plan);
        ids
    };
    assert!((0..100).any(|_| ids() == ids()), "each plan has started threads of its own");
}

#[cfg(target_env = "gnu")]
fn unloading_the_library_ends_its_threads(k: &[Vec<f32>]) {
    let data = vec![Complex::new(1.0, 0.0); k[0].len()];
    for _ in 0..5 {
        while_loaded(|library| {
            let on_cpu = (recon::ffi::recon_device::RECON_DEVICE_CPU, 6);
            let are_started = || assert_workers(5, "threads of the loaded library");
            let image = library.adjoint(on_cpu, [32, 32], k, &data, are_started);
            assert!(image.iter().all(|z| z.re.is_finite()));
        });
        assert_workers(0, "the library was unloaded");
    }
}

/// Returns the result of `call` with a limited address space of the process; `None` if the system ignores the limit.
fn with_room_for<R>(bytes: u64, call: impl FnOnce() -> R) -> Option<R> {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    // SAFETY: asked for a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    let used = pages.split_whitespace().next().unwrap().parse::<u64>().unwrap() * page;
    let get = || {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the structure is written.
        assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) }, 0);
        limit
    };
    let before = get();
    let set = |limit: libc::rlimit| {
        // SAFETY: the structure is read.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
    };
    let limit = used + bytes;
    set(libc::rlimit { rlim_cur: limit, ..before });
    let result = (get().rlim_cur == limit).then(call);
    set(before);
    result
}
