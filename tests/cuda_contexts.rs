//! Contexts of GPUs between plans: their reuse, release, and a reset of the GPU by another part of the process. Without
//! a GPU the test prints one line that begins with `skipped:`.
//!
//! Each check is a separate process, which the test `contexts_outlive_plans` starts, because a reset affects the whole
//! process.

mod common;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[path = "common/loaded_library.rs"]
mod loaded_library;

use common::*;
use cudarc::driver::sys as cu;
use recon::backend::cuda::runtime;
use recon::{Complex, Device, ErrorKind, Geometry, Options, Plan};
use std::ptr::null_mut;
use std::time::Instant;

const DIMS: [usize; 2] = [48, 40];
const SAMPLES: usize = 5000;

struct Scan {
    k: Vec<Vec<f32>>,
    data: Vec<Complex<f32>>,
}

impl Scan {
    fn new() -> Self {
        let mut random = Random::fresh();
        Scan { k: random.trajectory(2, SAMPLES), data: random.complexes(SAMPLES) }
    }

    fn plan(&self) -> Plan<f32> {
        let options = Options { device: Device::Cuda(vec![0]), ..Options::default() };
        Plan::new(&Geometry::new(&DIMS, &slices(&self.k)), &options).unwrap()
    }

    fn image(&self, plan: &Plan<f32>) -> Vec<Complex<f32>> {
        let mut image = poisoned(DIMS[0] * DIMS[1]);
        plan.adjoint(&self.data, &mut image).unwrap();
        image
    }
}

/// Checks that a call of the driver succeeded.
#[track_caller]
fn ok(status: cu::CUresult) {
    assert_eq!(status, cu::CUresult::CUDA_SUCCESS);
}

/// Returns whether any user of this process has started the first GPU.
fn is_started() -> bool {
    let (mut flags, mut active) = (0, 0);
    // SAFETY: the driver has started, and there is a GPU.
    ok(unsafe { cu::cuDevicePrimaryCtxGetState(0, &mut flags, &mut active) });
    active != 0
}

/// Returns the median duration of `runs` calls in milliseconds.
fn median(runs: usize, mut f: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..runs)
        .map(|_| {
            let started = Instant::now();
            f();
            1e3 * started.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[runs / 2]
}

#[test]
#[ignore = "a part of contexts_outlive_plans"]
fn a_process_that_creates_one_plan_at_a_time() {
    let scan = Scan::new();
    let expected = scan.image(&scan.plan());
    assert!(is_started());
    let alone = median(31, || assert!(scan.image(&scan.plan()) == expected));
    let keep = scan.plan();
    let beside = median(31, || assert!(scan.image(&scan.plan()) == expected));
    drop(keep);
    println!("plan and image {alone:.2} ms, {beside:.2} ms with another plan");
    assert!(alone < 1.5 * beside + 0.5, "{alone} ms, {beside} ms with another plan");
    recon::release_memory();
    assert!(!is_started());
    assert!(scan.image(&scan.plan()) == expected);
}

#[test]
#[ignore = "a part of contexts_outlive_plans"]
fn a_process_that_releases_beside_a_plan() {
    let scan = Scan::new();
    let keep = scan.plan();
    let expected = scan.image(&keep);
    let free = || runtime::Context::of(0).unwrap().free_memory().unwrap();
    let options = Options { device: Device::Cuda(vec![0]), ..Options::default() };
    let k = Random::fresh().trajectory::<f32>(3, 2_000_000);
    drop(Plan::new(&Geometry::new(&[128; 3], &slices(&k)), &options).unwrap());
    let before = free();
    recon::release_memory();
    assert!(is_started() && free() > before + (64 << 20), "{before} bytes were free, and {} are", free());
    assert!(scan.image(&keep) == expected);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..20).for_each(|_| assert!(scan.image(&scan.plan()) == expected)));
            scope.spawn(|| (0..20).for_each(|_| recon::release_memory()));
        }
    });
    drop(keep);
    recon::release_memory();
    assert!(!is_started());
}

#[test]
#[ignore = "a part of contexts_outlive_plans"]
fn a_process_whose_gpu_is_reset() {
    let scan = Scan::new();
    let expected = scan.image(&scan.plan());
    // SAFETY: no plan exists.
    ok(unsafe { cu::cuDevicePrimaryCtxReset_v2(0) });
    assert!(scan.image(&scan.plan()) == expected);

    // While plans exist: a new plan works, the others report errors, and can be destroyed without harm.
    let [old, older] = [scan.plan(), scan.plan()];
    // SAFETY: the plans know what to do.
    ok(unsafe { cu::cuDevicePrimaryCtxReset_v2(0) });
    let e = old.adjoint(&scan.data, &mut poisoned::<f32>(DIMS[0] * DIMS[1])[..]).unwrap_err();
    assert!(e.kind() == ErrorKind::DeviceFailed && e.message().contains("create the plan again"), "{e}");
    let mut other = null_mut();
    let mut blocks = [0; 200];
    const BYTES: usize = 1 << 20;
    // SAFETY: the other user of the GPU has a context of its own, with blocks of BYTES bytes.
    unsafe {
        ok(cu::cuDevicePrimaryCtxRetain(&mut other, 0));
        ok(cu::cuCtxPushCurrent_v2(other));
        for block in &mut blocks {
            ok(cu::cuMemAlloc_v2(block, BYTES));
            ok(cu::cuMemsetD8_v2(*block, 7, BYTES));
        }
    }
    let e = old.adjoint(&scan.data, &mut poisoned::<f32>(DIMS[0] * DIMS[1])[..]).unwrap_err();
    assert!(e.kind() == ErrorKind::DeviceFailed && e.message().contains("create the plan again"), "{e}");
    drop(old);
    let new = scan.plan();
    assert!(scan.image(&new) == expected);
    drop(older);
    assert!(scan.image(&new) == expected && scan.image(&scan.plan()) == expected);
    drop(new);
    recon::release_memory();
    for block in blocks {
        let mut bytes = vec![0u8; BYTES];
        // SAFETY: the block has this number of bytes.
        ok(unsafe { cu::cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), block, BYTES) });
        assert!(bytes.iter().all(|&b| b == 7), "memory of another user was changed");
    }
    // SAFETY: retained above.
    ok(unsafe { cu::cuDevicePrimaryCtxRelease_v2(0) });
    assert!(!is_started(), "the context is released as often as it was retained");
}

/// Ends the process without destroying its plan.
#[test]
#[ignore = "a part of contexts_outlive_plans"]
fn a_process_that_ends_with_plans() {
    let scan = Scan::new();
    let expected = scan.image(&scan.plan());
    let plan = scan.plan();
    assert!(scan.image(&plan) == expected);
    std::mem::forget(plan);
    std::process::exit(0);
}

/// Loads the library, creates, uses and destroys a plan on the GPU, and unloads the library, several times.
#[test]
#[ignore = "a part of contexts_outlive_plans"]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn a_process_that_unloads_the_library() {
    let scan = Scan::new();
    let mut images = Vec::new();
    for _ in 0..3 {
        loaded_library::while_loaded(|library| {
            let on_gpu = (recon::ffi::recon_device::RECON_DEVICE_CUDA, 0);
            images.push(library.adjoint(on_gpu, DIMS, &scan.k, &scan.data, || {}));
            assert!(is_started());
        });
        assert!(!is_started(), "the unloaded library has left a context");
    }
    assert!(images.iter().all(|image| *image == scan.image(&scan.plan())));
}

#[test]
fn contexts_outlive_plans() {
    if runtime::first_usable().is_none() {
        return say("skipped: contexts of GPUs between plans (no GPU)");
    }
    for part in [
        "a_process_that_creates_one_plan_at_a_time",
        "a_process_that_releases_beside_a_plan",
        "a_process_whose_gpu_is_reset",
        "a_process_that_ends_with_plans",
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        "a_process_that_unloads_the_library",
    ] {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let output = command.args(["--exact", part, "--ignored", "--nocapture"]).output().unwrap();
        let texts = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        assert!(output.status.success(), "{part}: {:?}\n{}\n{}", output.status, texts[0], texts[1]);
        say(&format!("{part}: {}", texts[0].lines().find(|line| line.contains(" ms")).unwrap_or("passed")));
    }
}
