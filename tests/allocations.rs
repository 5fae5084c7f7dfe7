//! Repeated transforms allocate nothing, in any thread, because a real-time host must not wait for the allocator. This
//! program counts allocations with its own allocator. It has no test harness, which would allocate too.

mod common;

use common::*;
use recon::{CgOptions, Complex, Device, Geometry, Method, Normal, Options, Plan, Prior, Real};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, which counts the requests for memory.
struct Counting;
static COUNT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: each call is passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, address: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is the same.
        unsafe { System.realloc(address, layout, size) }
    }
    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is the same.
        unsafe { System.dealloc(address, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the number of allocations of all threads during a call.
fn allocations(call: impl FnOnce()) -> usize {
    let before = COUNT.load(Ordering::SeqCst);
    call();
    COUNT.load(Ordering::SeqCst) - before
}

/// Waits until the threads of a plan have started and wait for work. A thread allocates when it starts, which may be
/// late.
fn settle(threads: usize) {
    let waiting = || {
        let tasks = std::fs::read_dir("/proc/self/task").ok()?;
        let stats = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok());
        Some(stats.filter(|stat| stat.contains(" (recon ") && stat.contains(") S ")).count())
    };
    // If the system does not report it, waiting for some time is enough.
    while waiting().is_some_and(|count| count < threads - 1) {
        std::thread::yield_now();
    }
    std::thread::sleep(std::time::Duration::from_millis(if waiting().is_none() { 50 } else { 0 }));
}

/// Parameters of the plans.
struct Case {
    dims: &'static [usize],
    listed: bool,
    maps: bool,
    options: Options,
}

/// Calls each transform once to warm up, then three times to count. Returns the names of the transforms that allocate.
fn transforms<T: Real>(case: &Case, faults: &mut Vec<String>) {
    let mut random = Random::fresh();
    let samples = 1300;
    let k = random.trajectory::<T>(case.dims.len(), samples);
    let list: Vec<Vec<T>> = (0..case.dims.len()).map(|_| random.reals(500)).collect();
    let voxels = if case.listed { 500 } else { case.dims.iter().product() };
    let weights: Vec<T> = (0..samples).map(|_| T::of(random.uniform() + 0.6)).collect();
    let maps = random.complexes::<T>(voxels * 2);
    let k = slices(&k);
    let mut geometry = Geometry::new(case.dims, &k).coils(2).weights(&weights);
    geometry.voxels = case.listed.then(|| slices(&list));
    geometry.coil_maps = case.maps.then_some(&maps[..]);
    let plan = Plan::new(&geometry, &case.options).unwrap();
    let d = random.complexes::<T>(plan.kspace_len());
    let x = random.complexes::<T>(plan.image_len());
    let (mut image, mut values) = (poisoned::<T>(x.len()), poisoned::<T>(d.len()));
    let mut check = |name: &str, call: &mut dyn FnMut()| {
        call();
        settle(case.options.threads);
        let count = allocations(|| (0..3).for_each(|_| call()));
        if count > 0 {
            let Case { dims, maps, options: Options { normal, threads, .. }, .. } = case;
            faults.push(format!(
                "{name}: {count} allocations in three calls, {} {dims:?}, coil maps {maps}, {normal:?}, \
                 {threads} threads",
                T::NAME
            ));
        }
    };
    check("forward", &mut || plan.forward(&x, &mut values).unwrap());
    check("fhd", &mut || plan.adjoint(&d, &mut image).unwrap());
    check("weighted_fhd", &mut || plan.weighted_adjoint(&d, &mut image).unwrap());
    check("normal", &mut || plan.normal(&x, &mut image).unwrap());
    check("grid", &mut || plan.grid(&d, &mut image).unwrap());
    assert!(image.iter().chain(&values).all(|z| z.re.finite() && z.im.finite()));
}

fn cases(method: Method, listed: bool, dims: [&'static [usize]; 2], normals: &[Normal]) -> Vec<Case> {
    let mut all = Vec::new();
    for dims in dims {
        for &normal in normals {
            for maps in [false, true] {
                for threads in [1, 2] {
                    let options = Options { method, normal, device: Device::Cpu, threads, ..Options::default() };
                    all.push(Case { dims, listed, maps, options });
                }
            }
        }
    }
    all
}

fn of_transforms(cases: &[Case]) -> Vec<String> {
    let mut faults = Vec::new();
    for case in cases {
        transforms::<f32>(case, &mut faults);
        transforms::<f64>(case, &mut faults);
    }
    faults
}

fn nufft() -> Vec<String> {
    let normals = [Normal::Toeplitz, Normal::Transforms, Normal::Auto];
    of_transforms(&cases(Method::Nufft, false, [&[140, 130], &[26, 30, 24]], &normals))
}

fn exact_grid() -> Vec<String> {
    of_transforms(&cases(Method::Exact, false, [&[20, 70], &[9, 8, 10]], &[Normal::Toeplitz, Normal::Transforms]))
}

fn exact_list() -> Vec<String> {
    of_transforms(&cases(Method::Exact, true, [&[20, 20], &[20, 20, 20]], &[Normal::Auto]))
}

/// Checks that a solution allocates all of its memory before the first iteration.
fn iterations() -> Vec<String> {
    let mut faults = Vec::new();
    let mut random = Random::fresh();
    let dims = [140, 130];
    let k = random.trajectory::<f32>(2, 1300);
    let d = random.complexes::<f32>(2 * 1300);
    let reference: Vec<f32> = random.reals(140 * 130);
    let mut image = poisoned::<f32>(2 * 140 * 130);
    for normal in [Normal::Toeplitz, Normal::Transforms, Normal::Auto] {
        for threads in [1, 2] {
            let options = Options { normal, device: Device::Cpu, threads, ..Options::default() };
            let plan = Plan::new(&Geometry::new(&dims, &slices(&k)).coils(2), &options).unwrap();
            let anatomical = Prior::Anatomical { reference: &reference, edge: 0.1 };
            for prior in [Prior::Identity, Prior::Differences, anatomical] {
                let mut of = |iterations| {
                    let cg = CgOptions { iterations, lambda: 0.1, prior, ..CgOptions::default() };
                    let mut call = || {
                        let report = plan.cg(&d, &mut image, &cg).unwrap();
                        assert!(report.runs.iter().all(|run| run.iterations() == iterations));
                    };
                    call();
                    settle(threads);
                    allocations(call)
                };
                let (few, many) = (of(2), of(40));
                if few != many {
                    faults.push(format!(
                        "conjugate gradients, {normal:?}, {threads} threads: {few} allocations with 2 iterations, \
                         {many} with 40"
                    ));
                }
            }
        }
    }
    faults
}

fn main() {
    assert!(allocations(|| drop(std::hint::black_box(vec![Complex::new(1.0, 2.0)]))) > 0, "nothing is counted");
    // As in the test harness, words of the command line select checks by parts of their names. Without words all checks
    // run.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let mut failed = false;
    let checks: [(&str, fn() -> Vec<String>); 4] = [
        ("nufft_transforms_allocate_nothing", nufft),
        ("exact_sums_over_a_grid_allocate_nothing", exact_grid),
        ("exact_sums_over_a_list_allocate_nothing", exact_list),
        ("iterations_allocate_nothing", iterations),
    ];
    for (name, check) in checks {
        if !words.is_empty() && !words.iter().any(|word| name.contains(&**word)) {
            continue;
        }
        let faults = check();
        println!("test {name} ... {}", if faults.is_empty() { "ok" } else { "FAILED" });
        const SHOWN: usize = 8;
        faults.iter().take(SHOWN).for_each(|fault| println!("    {fault}"));
        if faults.len() > SHOWN {
            println!("    and {} more", faults.len() - SHOWN);
        }
        failed |= !faults.is_empty();
    }
    if failed {
        std::process::exit(1);
    }
}
