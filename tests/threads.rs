//! The threads of a process: all plans share them, and none remain after the last plan. Alone in its process, whose
//! threads it counts in /proc; tests/windows/load.c counts those of Windows.
#![cfg(target_os = "linux")]

mod common;

use common::{say, Random};
use recon::{Complex, Device, Error, ErrorKind, Geometry, Options, Plan};

/// Returns the number of the library's threads in this process.
fn workers() -> usize {
    let name = |task: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(task.ok()?.path().join("comm")).ok();
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux lists a process's threads");
    tasks.filter_map(name).filter(|name| name.starts_with("recon ")).count()
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
