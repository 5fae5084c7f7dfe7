//! Compares the memory that Plan::memory predicts with the peak of allocated memory. The prediction is never lower, and
//! at most a fifth higher. This program counts with its own allocator. It has only one test, because others would
//! allocate at the same time.

mod common;

use common::*;
use recon::backend::cpu::direct::DirectSum;
use recon::backend::cpu::simd::Level;
use recon::backend::threads::Threads;
use recon::backend::{MapPresence, OffResonance};
use recon::{
    BladePhase, CgOptions, Corrected, Density, Device, Filter, Geometry, Interrupt, Method, Normal, Options, Plan,
    PropellerOptions, Real, ScanSize, Trajectory,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, which counts the bytes in use and remembers their maximum.
struct Counting;
static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn took(bytes: usize) {
    // The library's check for free memory is freed at once, and is not part of a plan.
    if bytes == recon::HEADROOM {
        HELD.fetch_add(bytes, Ordering::Relaxed);
        return;
    }
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    // Each large array that does not come from an allocator is followed by a small allocation.
    MOST.fetch_max(held + recon::mapped_bytes_in_use(), Ordering::Relaxed);
}

// SAFETY: each call is passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, address: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        took(size);
        // SAFETY: the caller's promise is the same.
        unsafe { System.realloc(address, layout, size) }
    }
    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is the same.
        unsafe { System.dealloc(address, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the bytes in use, including large arrays that do not come from the allocator.
fn held() -> usize {
    HELD.load(Ordering::SeqCst) + recon::mapped_bytes_in_use()
}

/// Returns the maximum of bytes in use during a call, minus the bytes in use before it.
fn peak(call: impl FnOnce()) -> usize {
    let before = held();
    MOST.store(before, Ordering::SeqCst);
    call();
    MOST.load(Ordering::SeqCst) - before
}

/// Parameters of a case.
#[derive(Clone, Copy)]
struct Case {
    dims: &'static [usize],
    shots: usize,
    coils: usize,
    frames: usize,
    weights: bool,
    maps: bool,
    normal: Normal,
    method: Method,
    interrupt: bool,
    field: bool,
}

const PLAIN: Case = Case {
    dims: &[256, 256],
    shots: 400,
    coils: 8,
    frames: 1,
    weights: false,
    maps: false,
    normal: Normal::Auto,
    method: Method::Auto,
    interrupt: false,
    field: false,
};

fn look<T: Real>(what: &str, case: Case, lines: &mut Vec<String>, faults: &mut usize) {
    let Case { dims, shots, coils, frames, weights, maps, normal, method, interrupt, field } = case;
    let readout = if method == Method::Exact { dims[0] / 2 } else { 2 * dims[0] };
    let trajectory = match dims.len() {
        2 => Trajectory::radial2d(shots, readout, recon::trajectory::SpokeOrder::Linear),
        _ => Trajectory::radial3d(shots, readout),
    };
    let trajectory = trajectory.unwrap();
    let k: Vec<Vec<T>> = (0..dims.len()).map(|axis| trajectory.axis_as(axis)).collect();
    let (k, samples, voxels) = (slices(&k), k[0].len(), dims.iter().product::<usize>());
    let mut random = Random::fresh();
    let w = vec![T::ONE; samples];
    let s = random.complexes::<T>(if maps { voxels * coils } else { 0 });
    let mut geometry = Geometry::new(dims, &k).coils(coils);
    geometry.frames = frames;
    geometry.weights = weights.then_some(&w[..]);
    geometry.coil_maps = maps.then_some(&s[..]);
    let frequencies: Vec<T> = (0..voxels).map(|i| T::of((i % 150) as f64)).collect();
    let times: Vec<T> = (0..samples).map(|m| T::of(0.02 * (m % readout) as f64 / readout as f64)).collect();
    let rates = vec![T::of(20.0); voxels];
    if field {
        geometry = geometry.field_map(&frequencies, &times);
        geometry.decay_map = Some(&rates);
    }
    let options = Options {
        device: Device::Cpu,
        threads: 2,
        normal,
        method,
        interrupt: interrupt.then(|| Interrupt::new(|| false)),
        ..Options::default()
    };
    let told = Plan::<T>::memory(&ScanSize::of(&geometry).unwrap(), &options).unwrap();
    assert_eq!(told.device, Default::default());
    let d = random.complexes::<T>(samples * coils * frames);
    let images = frames * if maps { 1 } else { coils };
    let mut image = poisoned::<T>(voxels * images);
    let x = random.complexes::<T>(voxels * images);
    let mut check = |name: &str, told: usize, call: &mut dyn FnMut(&Plan<T>)| {
        let found = peak(|| call(&Plan::new(&geometry, &options).unwrap()));
        let ratio = told as f64 / found as f64;
        // Below some MiB small allocations dominate.
        let good = ratio >= 1.0 && told <= found + found / 5 + (6 << 20);
        *faults += usize::from(!good);
        let mib = |bytes: usize| bytes as f64 / (1 << 20) as f64;
        let verdict = if good { "" } else { "  <--" };
        lines.push(format!("{what:28} {name:16} {:9.2} {:9.2} {ratio:6.2}{verdict}", mib(told), mib(found)));
    };
    check("plan", told.host.plan, &mut |_| ());
    let mut values = poisoned::<T>(d.len());
    check("transform", told.host.transform, &mut |p| {
        p.weighted_adjoint(&d, &mut image).unwrap();
        p.forward(&x, &mut values).unwrap();
    });
    check("grid", told.host.grid, &mut |p| p.grid(&d, &mut image).unwrap());
    if dims.len() == 2 && !field {
        check("fbp", told.host.fbp, &mut |p| p.fbp(Filter::RamLak, &d, &mut image).unwrap());
    }
    check("normal", told.host.normal, &mut |p| p.normal(&x, &mut image).unwrap());
    let few = CgOptions { iterations: 2, ..CgOptions::default() };
    check("cg", told.host.cg, &mut |p| drop(p.cg(&d, &mut image, &few).unwrap()));
    if method != Method::Exact && !field {
        let few = Density::PipeMenon { iterations: 1, tolerance: 0.0 };
        check("density", told.host.density, &mut |p| drop(p.density(few).unwrap()));
        if dims.len() == 2 || coils == 1 {
            check("density, Jackson", told.host.density_jackson, &mut |p| drop(p.density(Density::Jackson).unwrap()));
        }
        if coils > 1 {
            check("coil maps", told.host.coil_maps, &mut |p| drop(p.coil_maps(&d, 0).unwrap()));
            let wide = Plan::<T>::memory(&ScanSize::with_calibration(&geometry, 64).unwrap(), &options).unwrap();
            check("coil maps, wide", wide.host.coil_maps, &mut |p| drop(p.coil_maps(&d, 64).unwrap()));
        }
    }
}

/// Compares direct sums with maps of off-resonance and decay with the backend's prediction.
fn look_at_maps(dims: &[usize], listed: bool, [field, decay]: [bool; 2], lines: &mut Vec<String>, faults: &mut usize) {
    let mut random = Random::fresh();
    let (samples, voxels) = (30_000, dims.iter().product::<usize>());
    let k = random.trajectory::<f32>(dims.len(), samples);
    let list = random.trajectory::<f32>(dims.len(), if listed { voxels } else { 0 });
    let (map, times) = (vec![1.0f32; voxels], vec![0.01f32; samples]);
    let maps = OffResonance { field_map: field.then_some(&map), decay_map: decay.then_some(&map), times: &times };
    let threads = Threads::new(2).unwrap();
    let level = Level::all()[0];
    let list = listed.then(|| slices(&list));
    let k = slices(&k);
    let mut held = 0;
    let found = peak(|| {
        let before = self::held();
        let sum = DirectSum::new(&threads, level, &k, dims, list.as_deref(), Some(maps)).unwrap();
        held = self::held() - before;
        drop(sum);
    });
    let listed = listed.then_some(voxels);
    let told = DirectSum::<f32>::bytes(2, level, samples, dims, listed, MapPresence { field, decay });
    // Lists dominate; their addresses and lengths are the rest.
    let good = told <= held && held <= found && found < told + 4096;
    *faults += usize::from(!good);
    let verdict = if good { "" } else { "  <--" };
    let what = format!("exact, f {field}, R {decay}");
    lines.push(format!("{what:28} {:16} {told:9} {found:9} bytes{verdict}", format!("list {}", listed.is_some())));
}

/// Peak of the correction and gridding of PROPELLER blades, compared with its estimate. `lost` lines are missing from
/// the first blade. Lines are 1 / `matrix` apart.
fn look_at_blades<T: Real>(
    what: &str,
    [coils, frames, lost, matrix]: [usize; 4],
    propeller: PropellerOptions,
    lines: &mut Vec<String>,
    faults: &mut usize,
) {
    let (dims, readout) = ([128, 128], 192);
    let trajectory = Trajectory::propeller_scan(24, 16, readout, matrix).unwrap();
    let k: Vec<Vec<T>> = (0..2).map(|axis| trajectory.axis_as(axis)[lost * readout..].to_vec()).collect();
    let (k, samples) = (slices(&k), trajectory.samples() - lost * readout);
    let mut geometry = Geometry::new(&dims, &k).coils(coils);
    geometry.frames = frames;
    let options = Options { device: Device::Cpu, threads: 2, ..Options::default() };
    let told = Corrected::memory(&ScanSize::of(&geometry).unwrap(), &k, &options, &propeller).unwrap();
    let d = Random::fresh().complexes::<T>(samples * coils * frames);
    let mut image = poisoned::<T>(dims[0] * dims[1] * coils * frames);
    let found = peak(|| {
        let corrected = Corrected::new(&geometry, &options, &propeller, &d).unwrap();
        corrected.grid(&geometry, &options, &mut image).unwrap();
    });
    let ratio = told as f64 / found as f64;
    let good = ratio >= 1.0 && told <= found + found / 4 + (6 << 20);
    *faults += usize::from(!good);
    let [told, found] = [told, found].map(|bytes| bytes as f64 / (1 << 20) as f64);
    let verdict = if good { "" } else { "  <--" };
    lines.push(format!("{what:28} {:16} {told:9.2} {found:9.2} {ratio:6.2}{verdict}", "propeller"));
}

#[test]
fn what_is_told_beforehand_is_what_is_taken() {
    let (mut lines, mut faults) = (Vec::new(), 0);
    let all = &mut lines;
    look::<f32>("2D", PLAIN, all, &mut faults);
    look::<f32>("2D, weights, maps", Case { weights: true, maps: true, ..PLAIN }, all, &mut faults);
    look::<f64>("2D, f64, weights", Case { weights: true, coils: 2, ..PLAIN }, all, &mut faults);
    look::<f32>("2D, frames, interrupt", Case { frames: 3, coils: 2, interrupt: true, ..PLAIN }, all, &mut faults);
    let deep = Case { dims: &[64, 64, 64], shots: 6000, coils: 4, ..PLAIN };
    look::<f32>("3D", deep, all, &mut faults);
    look::<f32>("3D, maps", Case { maps: true, ..deep }, all, &mut faults);
    // Transforms that can be interrupted between coils need memory for a second output.
    look::<f32>("3D, interrupt", Case { interrupt: true, ..deep }, all, &mut faults);
    let transforms = Case { maps: true, weights: true, normal: Normal::Transforms, ..deep };
    look::<f32>("3D, maps, weights, no Q", transforms, all, &mut faults);
    look::<f64>("3D, f64, one coil", Case { coils: 1, ..deep }, all, &mut faults);
    look::<f32>("2D, field map", Case { field: true, coils: 2, ..PLAIN }, all, &mut faults);
    look::<f32>("2D, field map, maps", Case { field: true, maps: true, ..PLAIN }, all, &mut faults);
    let field = Case { field: true, coils: 1, ..deep };
    look::<f32>("3D, field map", field, all, &mut faults);
    look::<f32>("3D, field map, no Q", Case { normal: Normal::Transforms, ..field }, all, &mut faults);
    look::<f32>("3D, few samples", Case { coils: 1, shots: 100, ..deep }, all, &mut faults);
    let exact = Case { method: Method::Exact, coils: 1, shots: 60, ..PLAIN };
    look::<f32>("2D, exact", exact, all, &mut faults);
    for maps in [[true, false], [false, true], [true, true]] {
        look_at_maps(&[120, 90], false, maps, all, &mut faults);
        look_at_maps(&[20, 30, 40], true, maps, all, &mut faults);
    }
    let smooth = PropellerOptions::default();
    let constant = PropellerOptions { phase: BladePhase::Constant, ..smooth };
    look_at_blades::<f32>("blades", [1, 1, 0, 192], smooth, all, &mut faults);
    look_at_blades::<f32>("blades, 12 coils", [12, 1, 0, 192], smooth, all, &mut faults);
    look_at_blades::<f32>("blades, constant phase", [6, 1, 0, 192], constant, all, &mut faults);
    look_at_blades::<f64>("blades, f64, frames", [4, 3, 0, 192], smooth, all, &mut faults);
    look_at_blades::<f32>("blades, lines lost", [8, 2, 3, 192], smooth, all, &mut faults);
    look_at_blades::<f32>("blades, oversampled", [4, 1, 0, 128], smooth, all, &mut faults);
    let phase_only = PropellerOptions { rotation: false, translation: false, ..smooth };
    look_at_blades::<f32>("blades, no motion", [8, 1, 0, 192], phase_only, all, &mut faults);
    say(&format!(
        "{:28} {:16} {:>9} {:>9} {:>6}\n{}",
        "scan",
        "peak of",
        "told MiB",
        "found",
        "ratio",
        lines.join("\n")
    ));
    assert_eq!(faults, 0, "not an upper estimate, or beyond a fifth");
}
