//! Tests that need a GPU. Without a GPU each test prints one line that begins with `skipped:`.

mod common;

use common::decay::sweep;
use common::scans::RingScan;
use common::*;
use recon::backend::cuda::gpu::Gpu;
use recon::backend::cuda::{compile::Kernels, runtime};
use recon::phantom::{add_noise, Phantom};
use recon::trajectory::SpokeOrder;
use recon::{
    CgOptions, Complex, Corrected, Density, Device, DeviceGeometry, Error, ErrorKind, Filter, Geometry, Method, Normal,
    Options, Plan, Prior, PropellerOptions, Real, ScanSize, Sink, Source, Trajectory, Window,
};
use std::sync::Mutex;

/// Prints that there is no GPU, or lets one test run at a time, because some tests measure the free memory of the GPU.
fn alone(what: &str) -> Option<std::sync::MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    if runtime::first_usable().is_none() {
        say(&format!("skipped: {what} (no GPU)"));
        return None;
    }
    Some(ONE.lock().unwrap_or_else(|e| e.into_inner()))
}

fn cuda() -> Options {
    Options { device: Device::Cuda(vec![0]), ..Options::default() }
}

/// Returns a scan with coils, maps and weights. The centre has more samples than the rest of k-space.
struct Scan<T> {
    dims: Vec<usize>,
    k: Vec<Vec<T>>,
    weights: Vec<T>,
    maps: Vec<Complex<T>>,
    data: Vec<Complex<T>>,
    image: Vec<Complex<T>>,
}

const COILS: usize = 3;

impl<T: Real> Scan<T> {
    fn new(dims: &[usize], samples: usize) -> Self {
        let mut random = Random::fresh();
        let voxels: usize = dims.iter().product();
        let dense = |k: &mut Vec<T>| k.iter_mut().step_by(2).for_each(|k| *k = T::of(k.wide() * k.wide() * k.wide()));
        let mut k = random.trajectory::<T>(dims.len(), samples);
        k.iter_mut().for_each(dense);
        Scan {
            dims: dims.to_vec(),
            k,
            weights: random.reals::<T>(samples).iter().map(|w| T::of(w.wide() + 0.6)).collect(),
            maps: random.complexes(voxels * COILS),
            data: random.complexes(samples * COILS),
            image: random.complexes(voxels),
        }
    }

    fn plan(&self, options: &Options) -> Plan<T> {
        let k = slices(&self.k);
        let geometry = Geometry::new(&self.dims, &k).coils(COILS).coil_maps(&self.maps).weights(&self.weights);
        Plan::new(&geometry, options).unwrap()
    }
}

fn bytes<T: Real>(z: &[Complex<T>]) -> Vec<u64> {
    assert!(z.iter().all(|z| z.re.finite() && z.im.finite()), "not every element was written");
    z.iter().flat_map(|z| [z.re.wide().to_bits(), z.im.wide().to_bits()]).collect()
}

fn same_bytes<T: Real>(dims: &[usize], samples: usize) {
    let scan = Scan::<T>::new(dims, samples);
    let voxels = scan.image.len();
    for (method, normal) in
        [(Method::Nufft, Normal::Toeplitz), (Method::Nufft, Normal::Transforms), (Method::Exact, Normal::Toeplitz)]
    {
        let options = Options { method, normal, ..cuda() };
        let all = || {
            let plan = scan.plan(&options);
            assert!(plan.info().device.starts_with("cuda"), "{:?}", plan.info());
            let mut results =
                vec![poisoned::<T>(voxels), poisoned(samples * COILS), poisoned(voxels), poisoned(plan.q_len())];
            plan.adjoint(&scan.data, &mut results[0]).unwrap();
            plan.forward(&scan.image, &mut results[1]).unwrap();
            let cg = CgOptions { iterations: 5, lambda: 1.0, prior: Prior::Differences, ..CgOptions::default() };
            plan.cg(&scan.data, &mut results[2], &cg).unwrap();
            plan.q(&mut results[3]).unwrap();
            let mut grid = poisoned(voxels);
            plan.grid(&scan.data, &mut grid).unwrap();
            results.push(grid);
            results.iter().map(|r| bytes(r)).collect::<Vec<_>>()
        };
        let first = all();
        for run in 1..20 {
            let next = all();
            for (i, name) in ["adjoint", "forward", "cg", "q", "gridding"].iter().enumerate() {
                assert!(first[i] == next[i], "{name} differs in run {run}: {} {dims:?} {method:?} {normal:?}", T::NAME);
            }
        }
    }
}

#[test]
fn twenty_runs_give_the_same_bytes() {
    let Some(_one) = alone("the same bytes from 20 runs on a GPU") else { return };
    same_bytes::<f32>(&[48, 40], 6000);
    same_bytes::<f32>(&[24, 20, 28], 20_000);
    same_bytes::<f64>(&[31, 26], 3000);
    same_bytes::<f64>(&[12, 14, 10], 3000);
}

/// Checks lambda from the noise level for data in host memory. Data on the GPU are an error.
#[test]
fn lambda_of_the_noise_is_that_of_the_cpu() {
    let Some(_one) = alone("lambda from the noise level on a GPU") else { return };
    let mut scan = RingScan::new(&Phantom::shepp_logan_2d(), 64, 24, 4);
    let noise_level = add_noise(&mut scan.data, 5.0, 1).unwrap();
    let (data, maps) = (narrow::<f32>(&scan.data), narrow::<f32>(&scan.maps));
    let options = CgOptions { noise_level, prior: Prior::Differences, ..CgOptions::default() };
    let solve = |device: Device| {
        let mut image = poisoned(64 * 64);
        let report = scan.plan(&maps, device).cg(&data, &mut image, &options).unwrap();
        (report.lambda, wide(&image))
    };
    let (cpu, gpu) = (solve(Device::Cpu), solve(Device::Cuda(vec![0])));
    assert!((gpu.0 / cpu.0 - 1.0).abs() < 0.01, "{} and {}", gpu.0, cpu.0);
    assert!(distance(&gpu.1, &cpu.1) < 0.01);
    let plan = scan.plan(&maps, Device::Cuda(vec![0]));
    // SAFETY: no stream is given.
    let gpu = unsafe { Gpu::new(0, None, 0) }.unwrap();
    let (from, to) = (gpu.upload(&data, "data").unwrap(), gpu.upload(&poisoned::<f32>(64 * 64), "image").unwrap());
    // SAFETY: an array of this length, alive until the end.
    let source = unsafe { Source::device(from.pointer().address() as *const Complex<f32>, data.len()) };
    // SAFETY: as above.
    let sink = unsafe { Sink::device(to.pointer().address() as *mut Complex<f32>, 64 * 64) };
    let error = plan.cg(source, sink, &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.message().contains("find it once for data in host memory"), "{error}");
}

/// Compares strong decay with direct sums in double precision: the tolerance is met, or plan creation fails.
#[test]
fn decay_of_any_strength_meets_the_tolerance() {
    let Some(_alone) = alone("strong decay") else { return };
    let mut random = Random::fresh();
    let device = Device::Cuda(vec![0]);
    let (mut beyond, _) = sweep::<f32>(&device, &[1e-3, 1e-5], &mut random);
    beyond.extend(sweep::<f64>(&device, &[1e-5, 1e-9], &mut random).0);
    assert!(beyond.is_empty(), "{} cases\n{}", beyond.len(), beyond.join("\n"));
}

/// Compares transforms, E^H W E and conjugate gradients with a field map and decay with the CPU's exact sums, and
/// repeated calls bit by bit. A plan with a new trajectory and map gives the results of a new plan.
#[test]
fn off_resonance_is_that_of_the_cpus_exact_sums() {
    let Some(_one) = alone("off-resonance on a GPU") else { return };
    let mut random = Random::fresh();
    for dims in [&[44usize, 40][..], &[16, 14, 12]] {
        let scan = Scan::<f32>::new(dims, 3000);
        let voxels = scan.image.len();
        let positive = |x: Vec<f32>, most: f32| x.iter().map(|x| most * (x + 0.5)).collect::<Vec<f32>>();
        let field: Vec<f32> = random.reals::<f32>(voxels).iter().map(|f| 169.0 * f + 40.0).collect();
        let decay = positive(random.reals::<f32>(voxels), 40.0);
        let times = positive(random.reals::<f32>(3000), 0.02);
        let k = slices(&scan.k);
        let mut geometry =
            Geometry::new(dims, &k).coils(COILS).coil_maps(&scan.maps).weights(&scan.weights).field_map(&field, &times);
        geometry.decay_map = Some(&decay);
        let run = |plan: &Plan<f32>| {
            let mut out = vec![poisoned::<f32>(voxels); 3];
            let mut forward = poisoned::<f32>(scan.data.len());
            plan.weighted_adjoint(&scan.data, &mut out[0]).unwrap();
            plan.normal(&scan.image, &mut out[1]).unwrap();
            let cg = CgOptions { iterations: 4, lambda: 0.1, ..CgOptions::default() };
            plan.cg(&scan.data, &mut out[2], &cg).unwrap();
            plan.forward(&scan.image, &mut forward).unwrap();
            out.push(forward);
            out
        };
        let exact = Options { method: Method::Exact, normal: Normal::Transforms, device: Device::Cpu, ..cuda() };
        let wanted = run(&Plan::new(&geometry, &exact).unwrap());
        for (method, normal) in [
            (Method::Nufft, Normal::Toeplitz),
            (Method::Nufft, Normal::Transforms),
            (Method::Exact, Normal::Toeplitz),
            (Method::Exact, Normal::Transforms),
        ] {
            let options = Options { method, normal, tolerance: 1e-5, ..cuda() };
            let plan = Plan::new(&geometry, &options).unwrap();
            let info = plan.info();
            assert!(info.on_gpu && (info.segments > 1) == (method == Method::Nufft));
            assert_eq!(info.nodes > 1, normal == Normal::Toeplitz);
            let found = run(&plan);
            for (i, name) in ["weighted", "normal", "cg", "forward"].iter().enumerate() {
                let error = distance(&found[i], &wide(&wanted[i]));
                let bound = if name == &"normal" || name == &"cg" { 3e-5 } else { 1e-5 };
                println!("{dims:?} {method:?} {normal:?} {name}: {error:.1e}");
                assert!(error <= bound, "{name} {dims:?} {method:?} {normal:?}: {error:e}, seed {}", random.seed);
            }
            let bits = |arrays: &[Vec<Complex<f32>>]| arrays.iter().map(|a| bytes(a)).collect::<Vec<_>>();
            assert!(bits(&found) == bits(&run(&plan)));
            let other: Vec<f32> = field.iter().map(|f| 0.9 * f).collect();
            let near: Vec<Vec<f32>> = scan.k.iter().map(|k| k.iter().map(|k| 0.9 * k).collect()).collect();
            let near = slices(&near);
            let moved = Geometry { coordinates: near, field_map: Some(&other), ..geometry.clone() };
            plan.set_trajectory(&moved).unwrap();
            assert!(bits(&run(&plan)) == bits(&run(&Plan::new(&moved, &options).unwrap())));
        }
    }
}

/// Compares filtered backprojection with the CPU's, with more spokes than one launch processes, and repeated calls bit
/// by bit.
#[test]
fn backprojections_are_those_of_the_cpu() {
    let Some(_one) = alone("a GPU's backprojection against the CPU's") else { return };
    fn check<T: Real>(dims: &[usize], spokes: usize, readout: usize, bound: f64) {
        let mut random = Random::fresh();
        let t = Trajectory::radial2d(spokes, readout, SpokeOrder::GoldenAngle).unwrap();
        let k: Vec<Vec<T>> = (0..2).map(|axis| t.axis_as(axis)).collect();
        let lists = slices(&k);
        let maps = random.complexes::<T>(dims.iter().product::<usize>() * COILS);
        let data = random.complexes::<T>(k[0].len() * COILS);
        for maps in [None, Some(&maps)] {
            let mut geometry = Geometry::new(dims, &lists).coils(COILS);
            geometry.coil_maps = maps.map(|maps| &maps[..]);
            let of = |options: &Options| {
                let plan = Plan::new(&geometry, options).unwrap();
                [Filter::RamLak, Filter::Hann].map(|filter| {
                    let mut image = poisoned::<T>(plan.image_len());
                    plan.fbp(filter, &data, &mut image).unwrap();
                    image
                })
            };
            let (found, again) = (of(&cuda()), of(&cuda()));
            let expected = of(&Options { device: Device::Cpu, ..Options::default() });
            for ((found, again), expected) in found.iter().zip(&again).zip(&expected) {
                let error = distance(found, &wide(expected));
                assert!(error < bound, "{dims:?}, {spokes} spokes of {readout}, {}: {error}", T::NAME);
                assert!(bytes(found) == bytes(again), "another run gave other bytes");
            }
        }
    }
    check::<f32>(&[64, 64], 101, 128, 2e-5);
    check::<f32>(&[33, 70], 1500, 90, 2e-5);
    check::<f32>(&[48, 48], 40, 1100, 2e-5);
    check::<f64>(&[31, 26], 60, 50, 1e-9);
}

#[test]
fn corrected_blades_are_those_of_the_cpu() {
    let Some(_one) = alone("a GPU's image of corrected blades against the CPU's") else { return };
    corrected_on_both(&Trajectory::propeller(9, 14, 96).unwrap());
    // Lines twice as far apart as samples.
    corrected_on_both(&Trajectory::propeller_scan(9, 14, 128, 64).unwrap());
}

/// Compares the corrected blades of a trajectory of 14 lines per blade on GPU and CPU.
fn corrected_on_both(t: &Trajectory) {
    let n = 64;
    let phantom = Phantom::shepp_logan_2d();
    let mut data = phantom.kspace(&[n, n], &t.axes(), None, 0).unwrap();
    // Each blade measures the object at a different position.
    for (m, z) in data.iter_mut().enumerate() {
        let shift = (m / (14 * t.samples_per_shot())) as f64 - 4.0;
        *z *= Complex::from_polar(1.0, -std::f64::consts::TAU * shift * t.axis(0)[m]);
    }
    let data = narrow::<f32>(&data);
    let k: Vec<Vec<f32>> = (0..2).map(|axis| t.axis_as(axis)).collect();
    let lists = slices(&k);
    let geometry = Geometry::new(&[n, n], &lists);
    let of = |options: &Options| {
        let corrected = Corrected::new(&geometry, options, &PropellerOptions::default(), &data).unwrap();
        let mut image = poisoned::<f32>(n * n);
        corrected.grid(&geometry, options, &mut image).unwrap();
        (corrected, image)
    };
    let (gpu, again) = (of(&cuda()), of(&cuda()));
    let cpu = of(&Options { device: Device::Cpu, ..Options::default() });
    // Motion is estimated on the CPU for any device of the image.
    assert_eq!(gpu.0.motion, cpu.0.motion);
    assert!(gpu == again, "another run gave other bytes");
    let error = distance(&gpu.1, &wide(&cpu.1));
    assert!(error < 1e-3, "{error}");
}

/// Compares adjoint, forward, normal, gridding and CG with the CPU's exact sums in double precision.
#[test]
fn results_are_those_of_the_cpus_exact_sums() {
    let Some(_one) = alone("a GPU's results against the CPU's") else { return };
    fn check<T: Real>(dims: &[usize], samples: usize, bound: f64, normal_bound: f64) {
        let scan = Scan::<T>::new(dims, samples);
        let k = wide_lists(&scan.k);
        let (weights, maps) = (scan.weights.iter().map(|w| w.wide()).collect::<Vec<_>>(), wide(&scan.maps));
        let k = slices(&k);
        let geometry = Geometry::new(dims, &k).coils(COILS).coil_maps(&maps).weights(&weights);
        let exact = Options { device: Device::Cpu, method: Method::Exact, ..Options::default() };
        let exact = Plan::new(&geometry, &exact).unwrap();
        let (voxels, data, image) = (scan.image.len(), wide(&scan.data), wide(&scan.image));
        let mut expected = [poisoned(voxels), poisoned(data.len()), poisoned(voxels), poisoned(voxels)];
        exact.adjoint(&data, &mut expected[0]).unwrap();
        exact.forward(&image, &mut expected[1]).unwrap();
        exact.normal(&image, &mut expected[2]).unwrap();
        let cg = CgOptions { iterations: 4, lambda: 2.0, ..CgOptions::default() };
        exact.cg(&data, &mut expected[3], &cg).unwrap();
        for (method, normal) in
            [(Method::Nufft, Normal::Toeplitz), (Method::Nufft, Normal::Transforms), (Method::Exact, Normal::Toeplitz)]
        {
            let tolerance = if method == Method::Exact { 0.0 } else { bound };
            let plan = scan.plan(&Options { method, normal, tolerance, ..cuda() });
            let mut found = [poisoned::<T>(voxels), poisoned(data.len()), poisoned(voxels), poisoned(voxels)];
            plan.adjoint(&scan.data, &mut found[0]).unwrap();
            plan.forward(&scan.image, &mut found[1]).unwrap();
            plan.normal(&scan.image, &mut found[2]).unwrap();
            let mut own = CgOptions::<T> { iterations: cg.iterations, lambda: cg.lambda, ..CgOptions::default() };
            own.prior = Prior::Identity;
            plan.cg(&scan.data, &mut found[3], &own).unwrap();
            for (i, name) in ["adjoint", "forward", "normal", "cg"].iter().enumerate() {
                let error = distance(&found[i], &expected[i]);
                let bound = if i < 2 { bound } else { normal_bound };
                assert!(error <= bound, "{name} {} {dims:?} {method:?} {normal:?}: {error:e} > {bound:e}", T::NAME);
            }
        }
    }
    check::<f32>(&[40, 52], 5000, 5e-6, 3e-5);
    check::<f32>(&[22, 18, 26], 9000, 5e-6, 3e-5);
    check::<f64>(&[33, 20], 2000, 1e-11, 1e-10);
    check::<f64>(&[10, 13, 12], 2000, 1e-11, 1e-10);
}

/// Checks all valid widths at both ends of the oversampling: errors are those that the plan reports.
#[test]
fn named_windows_err_as_the_plan_tells() {
    fn check<T: Real>() {
        let mut random = Random::fresh();
        for dims in [&[40usize, 33][..], &[18, 13, 15]] {
            let k = random.trajectory::<T>(dims.len(), 3000);
            let r = voxels(dims);
            let (d, x) = (random.complexes::<T>(3000), random.complexes::<T>(r[0].len()));
            let exact_image = direct(1.0, &wide_lists(&k), &wide(&d), &r);
            let exact_values = direct(-1.0, &r, &wide(&x), &wide_lists(&k));
            for width in 2..=16 {
                for oversampling in [1.25, 1.6, 2.5] {
                    for window in [Window::Minimax, Window::Gaussian] {
                        let options = Options { method: Method::Nufft, window, width, oversampling, ..cuda() };
                        let plan = Plan::new(&Geometry::new(dims, &slices(&k)), &options).unwrap();
                        let info = plan.info();
                        assert!(info.on_gpu && info.width == width && info.oversampling >= oversampling, "{info:?}");
                        let (mut image, mut values) = (poisoned(x.len()), poisoned(d.len()));
                        plan.adjoint(&d, &mut image).unwrap();
                        plan.forward(&x, &mut values).unwrap();
                        for error in [distance(&image, &exact_image), distance(&values, &exact_values)] {
                            assert!(error <= 1.1 * info.error, "{} {info:?}: {error:e}, seed {}", T::NAME, random.seed);
                        }
                    }
                }
            }
        }
    }
    let Some(_one) = alone("named widths and oversamplings on a GPU") else { return };
    check::<f32>();
    check::<f64>();
}

#[test]
fn arrays_on_the_gpu_are_used_in_place() {
    let Some(_one) = alone("arrays in a GPU's memory") else { return };
    let scan = Scan::<f32>::new(&[30, 26], 2500);
    let plan = scan.plan(&cuda());
    let voxels = scan.image.len();
    // SAFETY: no stream is given.
    let gpu = unsafe { Gpu::new(0, None, 0) }.unwrap();
    let data = gpu.upload(&scan.data, "data").unwrap();
    let mut on_host = poisoned(voxels);
    let cg = CgOptions { iterations: 3, ..CgOptions::default() };
    // SAFETY: arrays of these lengths that live until the end.
    let source = || unsafe { Source::device(data.pointer().address() as *const Complex<f32>, scan.data.len()) };
    for operation in ["fhd", "grid", "cg"] {
        let image = gpu.upload(&poisoned::<f32>(voxels), "image").unwrap();
        // SAFETY: an array of this length, alive until the end.
        let sink = unsafe { Sink::device(image.pointer().address() as *mut Complex<f32>, voxels) };
        match operation {
            "fhd" => (plan.adjoint(source(), sink).unwrap(), plan.adjoint(&scan.data, &mut on_host).unwrap()).1,
            "grid" => (plan.grid(source(), sink).unwrap(), plan.grid(&scan.data, &mut on_host).unwrap()).1,
            _ => {
                plan.cg(source(), sink, &cg).unwrap();
                plan.cg(&scan.data, &mut on_host, &cg).unwrap();
            }
        }
        let mut found = poisoned::<f32>(voxels);
        gpu.download(image.view(), &mut found).unwrap();
        assert!(bytes(&found) == bytes(&on_host), "{operation}");
    }
    // A NaN is found on the GPU, and the output is unchanged.
    let mut bad = scan.data.clone();
    bad[1234].im = f32::NAN;
    let bad = gpu.upload(&bad, "data").unwrap();
    let image = gpu.upload(&vec![Complex::new(7.0f32, 7.0); voxels], "image").unwrap();
    // SAFETY: arrays of these lengths that live until the end.
    let e = unsafe {
        let source = Source::device(bad.pointer().address() as *const Complex<f32>, scan.data.len());
        plan.adjoint(source, Sink::device(image.pointer().address() as *mut Complex<f32>, voxels)).unwrap_err()
    };
    assert!(e.kind() == ErrorKind::NotFinite && e.message().contains("sample 1234 "), "{e}");
    let mut found = poisoned::<f32>(voxels);
    gpu.download(image.view(), &mut found).unwrap();
    assert!(found.iter().all(|z| *z == Complex::new(7.0, 7.0)));
    // A plan on the CPU rejects addresses on the GPU.
    let on_cpu = scan.plan(&Options { device: Device::Cpu, ..Options::default() });
    let e = on_cpu.adjoint(source(), &mut on_host).unwrap_err();
    assert!(e.kind() == ErrorKind::Unsupported && e.message().contains("device cuda"), "{e}");
}

/// Large arrays are copied by several threads, also of several plans at a time, and parts of any size arrive.
#[test]
fn large_arrays_arrive_whole() {
    let Some(_one) = alone("copies of large arrays") else { return };
    let mut random = Random::fresh();
    let around = |bytes: usize| [bytes - 4, bytes, bytes + 4];
    for bytes in [2 << 20, 3 << 20, 9 << 20].map(around).concat().into_iter().chain([(33 << 20) + 12, 128 << 20]) {
        let all = [(); 5].map(|()| random.reals::<f32>(bytes / 4));
        std::thread::scope(|scope| {
            for numbers in &all {
                scope.spawn(move || {
                    // SAFETY: no stream is given.
                    let gpu = unsafe { Gpu::new(0, None, 0) }.unwrap();
                    for _ in 0..10 {
                        let array = gpu.upload(numbers, "numbers").unwrap();
                        let mut found = vec![f32::NAN; numbers.len()];
                        gpu.download(array.view(), &mut found).unwrap();
                        assert!(found == *numbers, "{bytes} bytes");
                    }
                });
            }
        });
    }
}

#[test]
fn a_thousand_plans_leave_nothing_behind() {
    let Some(_one) = alone("a GPU's memory before and after 1,000 plans") else { return };
    let scan = Scan::<f32>::new(&[32, 24], 1500);
    let keep = scan.plan(&cuda());
    let context = runtime::Context::of(0).unwrap();
    let mut image = poisoned(scan.image.len());
    let cg = CgOptions { iterations: 2, ..CgOptions::default() };
    let mut free = [0; 2];
    for free in &mut free {
        for _ in 0..500 {
            let plan = scan.plan(&Options { normal: Normal::Toeplitz, ..cuda() });
            plan.cg(&scan.data, &mut image, &cg).unwrap();
        }
        *free = context.free_memory().unwrap();
    }
    assert_eq!(free[0], free[1], "free memory after 500 plans and after 1,000");
    drop(keep);
}

#[test]
fn memory_that_is_not_there_is_an_error_and_no_more() {
    let Some(_one) = alone("a GPU out of memory") else { return };
    let scan = Scan::<f32>::new(&[40, 40], 3000);
    let keep = scan.plan(&cuda());
    let context = runtime::Context::of(0).unwrap();
    // A given limit.
    let k = slices(&scan.k);
    let geometry = Geometry::new(&scan.dims, &k);
    let limited = |limit| Plan::new(&geometry, &Options { memory_limit: Some(limit), ..cuda() });
    let e: Error = limited(1000).err().expect("too little");
    assert!(e.kind() == ErrorKind::MemoryLimit && e.message().contains("1000"), "{e}");
    // The memory of the GPU: a larger grid with oversampling of 1.25 or more, but not one with too many cells.
    let edge = (((context.properties.memory / 8) as f64).cbrt() / 1.25).ceil() as usize;
    let dims = [edge, edge, edge];
    let k3: Vec<&[f32]> = vec![&scan.k[0], &scan.k[1], &scan.k[0]];
    let fail = || {
        let e = Plan::new(&Geometry::new(&dims, &k3), &cuda()).err().expect("too little");
        assert!(e.kind() == ErrorKind::OutOfDeviceMemory && e.message().contains("bytes free"), "{e}");
    };
    // Kernels are loaded the first time and stay loaded.
    fail();
    let before = context.free_memory().unwrap();
    (0..20).for_each(|_| fail());
    assert_eq!(context.free_memory().unwrap(), before);
    // Everything works as before.
    let (mut image, mut again) = (poisoned(scan.image.len()), poisoned(scan.image.len()));
    keep.adjoint(&scan.data, &mut image).unwrap();
    scan.plan(&cuda()).adjoint(&scan.data, &mut again).unwrap();
    assert!(bytes(&image) == bytes(&again));
}

/// Compares the GPU memory that Plan::memory reports with the actual memory after each operation. The report is never
/// lower, and at most a half higher. Memory of the sort may or may not be used again by later arrays. The report
/// includes planes of segments, but tiles of evenly distributed samples are not cut into segments.
#[test]
fn what_is_told_beforehand_is_what_a_gpu_holds() {
    let Some(_one) = alone("what plans hold on a GPU") else { return };
    let context = runtime::Context::of(0).unwrap();
    let mut lines = vec![format!("{:24} {:18} {:>9} {:>9} {:>6}", "scan", "peak of", "told MiB", "found", "ratio")];
    let mut faults = 0;
    type Case = (&'static str, &'static [usize], [usize; 2], usize, bool, Normal, Method);
    let cases: [Case; 9] = [
        ("2D", &[256, 256], [400, 512], 8, false, Normal::Auto, Method::Nufft),
        ("2D, random", &[256, 256], [0, 400 * 512], 8, false, Normal::Auto, Method::Nufft),
        ("2D, maps, weights", &[256, 256], [400, 512], 8, true, Normal::Toeplitz, Method::Nufft),
        ("2D, maps, no Q", &[256, 256], [400, 512], 8, true, Normal::Transforms, Method::Nufft),
        ("3D", &[64, 64, 64], [6000, 128], 4, false, Normal::Toeplitz, Method::Nufft),
        ("3D, random, maps", &[96, 96, 96], [0, 2_000_000], 4, true, Normal::Toeplitz, Method::Nufft),
        ("3D, maps", &[96, 96, 96], [10_000, 192], 4, true, Normal::Toeplitz, Method::Nufft),
        ("3D, few samples", &[96, 96, 96], [100, 192], 1, false, Normal::Toeplitz, Method::Nufft),
        ("2D, exact", &[128, 128], [120, 256], 2, false, Normal::Transforms, Method::Exact),
    ];
    for (what, dims, [shots, readout], coils, maps, normal, method) in cases {
        let mut random = Random::fresh();
        let voxels: usize = dims.iter().product();
        let k: Vec<Vec<f32>> = match (shots, dims.len()) {
            (0, ndim) => random.trajectory(ndim, readout),
            (_, 2) => {
                let radial = Trajectory::radial2d(shots, readout, SpokeOrder::Linear).unwrap();
                (0..2).map(|axis| radial.axis_as(axis)).collect()
            }
            _ => {
                let radial = Trajectory::radial3d(shots, readout).unwrap();
                (0..3).map(|axis| radial.axis_as(axis)).collect()
            }
        };
        let (samples, k) = (k[0].len(), slices(&k));
        let (weights, all_maps) = (vec![1f32; samples], random.complexes::<f32>(if maps { voxels * coils } else { 0 }));
        let geometry = Geometry::new(dims, &k).coils(coils);
        let geometry = if maps { geometry.coil_maps(&all_maps).weights(&weights) } else { geometry };
        let options = Options { method, normal, ..cuda() };
        let told = Plan::<f32>::memory(&ScanSize::of(&geometry).unwrap(), &options).unwrap().device;
        let data = random.complexes::<f32>(samples * coils);
        let mut image = poisoned::<f32>(voxels * if maps { 1 } else { coils });
        let x = random.complexes::<f32>(image.len());
        let mut values = poisoned::<f32>(data.len());
        let mut check = |name: &str, told: usize, call: &mut dyn FnMut(&Plan<f32>)| {
            // Arrays of earlier plans may fit or not, by chance.
            context.free_idle_memory();
            let plan = Plan::new(&geometry, &options).unwrap();
            call(&plan);
            let found = plan.info().device_bytes;
            let good = told >= found && told <= found + found / 2 + (6 << 20);
            faults += usize::from(!good);
            let mib = |bytes: usize| bytes as f64 / (1 << 20) as f64;
            let (ratio, verdict) = (told as f64 / found as f64, if good { "" } else { "  <--" });
            lines.push(format!("{what:24} {name:18} {:9.2} {:9.2} {ratio:6.2}{verdict}", mib(told), mib(found)));
        };
        check("plan", told.plan, &mut |_| ());
        check("transform", told.transform, &mut |p| {
            p.weighted_adjoint(&data, &mut image).unwrap();
            p.forward(&x, &mut values).unwrap();
        });
        check("grid", told.grid, &mut |p| p.grid(&data, &mut image).unwrap());
        check("normal", told.normal, &mut |p| p.normal(&x, &mut image).unwrap());
        let few = CgOptions { iterations: 2, ..CgOptions::default() };
        check("cg", told.cg, &mut |p| drop(p.cg(&data, &mut image, &few).unwrap()));
        if method == Method::Nufft {
            let few = Density::PipeMenon { iterations: 1, tolerance: 0.0 };
            check("density", told.density, &mut |p| drop(p.density(few).unwrap()));
            check("density, Jackson", told.density_jackson, &mut |p| drop(p.density(Density::Jackson).unwrap()));
            if coils > 1 {
                check("coil maps", told.coil_maps, &mut |p| drop(p.coil_maps(&data, 0).unwrap()));
            }
        }
    }
    say(&lines.join("\n"));
    assert_eq!(faults, 0, "not an upper estimate, or beyond a half");
}

#[test]
fn faults_are_errors_that_say_what_to_do() {
    let Some(_one) = alone("faults of a GPU") else { return };
    let scan = Scan::<f32>::new(&[20, 20], 500);
    let k = slices(&scan.k);
    let geometry = Geometry::new(&scan.dims, &k);
    let index = runtime::count();
    let e = Plan::new(&geometry, &Options { device: Device::Cuda(vec![index]), ..cuda() }).err().expect("no such GPU");
    assert!(e.kind() == ErrorKind::NoDevice && e.message().contains(&index.to_string()), "{e}");
    // Kernels that do not compile, twice: a failure is not stored as a success.
    let context = runtime::Context::of(0).unwrap();
    let broken = Kernels::new("broken", "extern \"C\" __global__ void k() { undeclared = 1; }", 4, &[]);
    for _ in 0..2 {
        let e = context.module(&broken).err().expect("it does not compile");
        assert!(e.kind() == ErrorKind::DriverIncomplete && e.message().contains("undeclared"), "{e}");
    }
    // The process can use the GPU afterwards.
    let mut image = poisoned(scan.image.len());
    scan.plan(&cuda()).adjoint(&scan.data, &mut image).unwrap();
    bytes(&image);
}

/// Compares plans of a geometry in the memory of the GPU with plans of the same geometry on the host: equal bytes, also
/// with interleaved coordinates, and equal messages for invalid values.
#[test]
fn geometries_may_be_on_the_gpu() {
    let Some(_one) = alone("geometries on a GPU") else { return };
    fn check<T: Real>(dims: &[usize], samples: usize) {
        // SAFETY: there is no stream of a caller.
        let gpu = unsafe { Gpu::new(0, None, 0) }.unwrap();
        let mut scan = Scan::<T>::new(dims, samples);
        // Coordinates at both edges of the range, which is larger by rounding.
        for (i, edge) in [-0.5, 0.5, 0.500_000_5, -0.500_000_5].into_iter().enumerate() {
            scan.k[i % dims.len()][i] = T::of(edge);
        }
        let axes = dims.len();
        let interleaved: Vec<T> =
            (0..samples).flat_map(|m| (0..axes).map(move |a| (a, m))).map(|(a, m)| scan.k[a][m]).collect();
        let (k, maps) = (gpu.upload(&interleaved, "k").unwrap(), gpu.upload(&scan.maps, "maps").unwrap());
        let weights = gpu.upload(&scan.weights, "weights").unwrap();
        let first = k.pointer().address() as *const T;
        let addresses: Vec<*const T> = (0..axes).map(|a| first.wrapping_add(a)).collect();
        let geometry = |addresses: &[*const T], stride: usize, weights: u64| {
            let mut geometry = Geometry::<T>::new(dims, &[]).coils(COILS);
            // SAFETY: the arrays are on the GPU, of these lengths, and complete.
            let device = unsafe {
                DeviceGeometry::new(addresses, samples, stride)
                    .weights(weights as *const T)
                    .coil_maps(maps.pointer().address() as *const Complex<T>)
            };
            geometry.on_device = Some(device);
            geometry
        };
        let on_host = scan.plan(&cuda());
        let on_gpu = Plan::new(&geometry(&addresses, axes, weights.pointer().address()), &cuda()).unwrap();
        let compare = || {
            for plan in [&on_host, &on_gpu] {
                assert_eq!(plan.kspace_len(), samples * COILS);
            }
            let run = |plan: &Plan<T>| {
                let mut results = [poisoned::<T>(scan.image.len()), poisoned(samples * COILS), poisoned(plan.q_len())];
                plan.weighted_adjoint(&scan.data, &mut results[0]).unwrap();
                plan.forward(&scan.image, &mut results[1]).unwrap();
                plan.q(&mut results[2]).unwrap();
                results.iter().map(|r| bytes(r)).collect::<Vec<_>>()
            };
            assert!(run(&on_host) == run(&on_gpu), "{dims:?}");
        };
        compare();
        // Changes: contiguous coordinates, doubled weights, other maps.
        let other = Scan::<T>::new(dims, samples);
        let arrays: Vec<_> = other.k.iter().map(|k| gpu.upload(k, "k").unwrap()).collect();
        let other_addresses: Vec<_> = arrays.iter().map(|k| k.pointer().address() as *const T).collect();
        let slices_of_other = slices(&other.k);
        on_host
            .set_trajectory(
                &Geometry::new(dims, &slices_of_other).coils(COILS).coil_maps(&scan.maps).weights(&scan.weights),
            )
            .unwrap();
        on_gpu.set_trajectory(&geometry(&other_addresses, 1, weights.pointer().address())).unwrap();
        compare();
        let (w, s) = (gpu.upload(&other.weights, "weights").unwrap(), gpu.upload(&other.maps, "maps").unwrap());
        on_host.set_weights(Some(&other.weights)).unwrap();
        on_host.set_coil_maps(&other.maps).unwrap();
        // SAFETY: the arrays are on the GPU, of these lengths, and complete.
        unsafe {
            on_gpu.set_weights_from(Some(Source::device(w.pointer().address() as *const T, samples))).unwrap();
            let maps = Source::device(s.pointer().address() as *const Complex<T>, other.maps.len());
            on_gpu.set_coil_maps(maps).unwrap();
        }
        compare();
        // Invalid values and addresses.
        for (axis, m, value) in [(0, samples - 1, f64::NAN), (axes - 1, 4, 0.51), (0, 3, f64::INFINITY)] {
            let mut bad = scan.k.clone();
            bad[axis][m] = T::of(value);
            let bad_slices = slices(&bad);
            let message = |options: &Options| Plan::new(&Geometry::new(dims, &bad_slices), options).err().unwrap();
            let expected = message(&Options { device: Device::Cpu, ..cuda() });
            assert!(expected.message().contains(&format!("sample {m} on axis {axis}")), "{expected}");
            assert_eq!(message(&cuda()), expected);
            let arrays: Vec<_> = bad.iter().map(|k| gpu.upload(k, "k").unwrap()).collect();
            let addresses: Vec<_> = arrays.iter().map(|k| k.pointer().address() as *const T).collect();
            let on_gpu = geometry(&addresses, 1, weights.pointer().address());
            assert_eq!(Plan::new(&on_gpu, &cuda()).err().unwrap(), expected);
        }
        let mut bad = scan.weights.clone();
        bad[7] = T::of(-1.0);
        let w = gpu.upload(&bad, "weights").unwrap();
        let e = Plan::new(&geometry(&addresses, axes, w.pointer().address()), &cuda()).err().unwrap();
        assert!(e.kind() == ErrorKind::InvalidArgument && e.message().contains("density weight 7 is -1"), "{e}");
        let on_host = [scan.k[0].as_ptr()].repeat(axes);
        let e = Plan::new(&geometry(&on_host, 1, weights.pointer().address()), &cuda()).err().unwrap();
        assert!(e.kind() == ErrorKind::InvalidArgument && e.message().contains("not in the memory of a GPU"), "{e}");
        let on_cpu = Options { device: Device::Cpu, ..cuda() };
        let e = Plan::new(&geometry(&addresses, axes, weights.pointer().address()), &on_cpu).err().unwrap();
        assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}");
    }
    check::<f32>(&[40, 36], 5000);
    check::<f64>(&[40, 36], 5000);
    check::<f32>(&[18, 20, 16], 20_000);
    check::<f64>(&[18, 20, 16], 20_000);
}

/// Sorts samples that lie in few cells or one, at the edges of k-space, on grids smaller than a tile, and in few of
/// the tiles of large grids. Transforms are those of the CPU, and the same in each run.
#[test]
fn samples_may_lie_anywhere() {
    let Some(_one) = alone("samples in few cells") else { return };
    fn check<T: Real>(dims: &[usize], samples: usize, position: impl Fn(&mut Random) -> f64, tolerance: f64) {
        let mut random = Random::fresh();
        let k: Vec<Vec<T>> =
            dims.iter().map(|_| (0..samples).map(|_| T::of(position(&mut random))).collect()).collect();
        is_as_on_the_cpu(dims, &k, tolerance);
    }
    for dims in [&[64, 48][..], &[9, 7], &[300, 17], &[1, 40], &[24, 20, 28], &[7, 9, 11], &[1, 5, 40]] {
        check::<f32>(dims, 1, |_| 0.31, 1e-4);
        // More than 2^16 in one cell, and in two that are far apart.
        check::<f32>(dims, 70_000, |_| 0.123, 1e-4);
        check::<f64>(dims, 70_000, |r| if r.uniform() < -0.2 { -0.499 } else { 0.47 }, 1e-7);
        // At the edges, where windows wrap around.
        check::<f64>(dims, 3000, |r| [-0.5, 0.5, 0.499_999, 0.0][(4.0 * (r.uniform() + 0.5)) as usize % 4], 1e-7);
        check::<f32>(dims, 30_000, |r| r.uniform().powi(3) * 3.9, 1e-3);
    }
    // Fewer samples than a grid has tiles, and grids of a few cells, for narrow and wide windows.
    for (dims, samples) in [
        (&[700, 310][..], 37),
        (&[310, 700], 4001),
        (&[60, 48, 40], 300),
        // More cells on an axis than the numbers of points in fixed point have.
        (&[900, 6, 5], 3000),
        (&[2, 2], 3000),
        (&[4, 3], 3000),
        (&[2, 3, 4], 3000),
    ] {
        check::<f32>(dims, samples, Random::uniform, 1e-2);
        check::<f32>(dims, samples, Random::uniform, 1e-5);
        check::<f64>(dims, samples, Random::uniform, 1e-7);
        check::<f64>(dims, samples, Random::uniform, 1e-11);
    }
}

/// Checks that transforms of these samples are those of the CPU, and the same in each run.
fn is_as_on_the_cpu<T: Real>(dims: &[usize], k: &[Vec<T>], tolerance: f64) {
    let (mut random, samples, k) = (Random::fresh(), k[0].len(), slices(k));
    let (data, image) = (random.complexes::<T>(samples), random.complexes::<T>(dims.iter().product()));
    let run = |device| {
        let options = Options { device, tolerance, method: Method::Nufft, ..Options::default() };
        let plan = Plan::new(&Geometry::new(dims, &k), &options).unwrap();
        let (mut x, mut d) = (poisoned(image.len()), poisoned(samples));
        plan.adjoint(&data, &mut x).unwrap();
        plan.forward(&image, &mut d).unwrap();
        (x, d)
    };
    let (gpu, again, cpu) = (run(Device::Cuda(vec![0])), run(Device::Cuda(vec![0])), run(Device::Cpu));
    assert!(bytes(&gpu.0) == bytes(&again.0) && bytes(&gpu.1) == bytes(&again.1), "{dims:?}");
    let errors = [distance(&gpu.0, &wide(&cpu.0)), distance(&gpu.1, &wide(&cpu.1))];
    assert!(errors.iter().all(|e| *e < 4.0 * tolerance), "{dims:?}, {samples} samples: {errors:?}");
}

/// Sorts enough samples for buckets in place of a pass: without a long bucket, with one that a block sorts in parts,
/// and with one that is too long.
#[test]
fn many_samples_are_sorted_by_buckets() {
    let Some(_one) = alone("many samples on a GPU") else { return };
    fn check<T: Real>(dims: &[usize], tolerance: f64) {
        const SAMPLES: usize = 17_000_003;
        for at_one_place in [0, 6_000, 1_000_000] {
            let mut k = Random::fresh().trajectory::<T>(dims.len(), SAMPLES);
            k.iter_mut().for_each(|k| k.iter_mut().step_by(17).take(at_one_place).for_each(|k| *k = T::of(0.123)));
            is_as_on_the_cpu(dims, &k, tolerance);
        }
    }
    check::<f32>(&[128, 120, 130], 1e-3);
    check::<f64>(&[128, 120, 130], 1e-6);
    check::<f32>(&[1024, 1000], 1e-4);
    check::<f64>(&[1000, 1024], 1e-6);
}

/// Runs several threads with one shared plan and others with their own plans: all results are equal to that of one
/// thread.
#[test]
fn threads_may_share_a_plan_and_a_gpu() {
    let Some(_one) = alone("several threads on a GPU") else { return };
    let scan = Scan::<f32>::new(&[36, 44], 4000);
    let plan = scan.plan(&cuda());
    let mut alone = poisoned(scan.image.len());
    plan.adjoint(&scan.data, &mut alone).unwrap();
    std::thread::scope(|scope| {
        for own in [false, false, true, true] {
            let (scan, plan, alone) = (&scan, &plan, &alone);
            scope.spawn(move || {
                let mine = own.then(|| scan.plan(&cuda()));
                for _ in 0..20 {
                    let mut image = poisoned(scan.image.len());
                    mine.as_ref().unwrap_or(plan).adjoint(&scan.data, &mut image).unwrap();
                    assert!(bytes(&image) == bytes(alone));
                }
            });
        }
    });
}

/// Divides coils, or the voxels of exact sums, among all GPUs: results are as on one GPU, and repeated calls give the
/// same bytes.
#[test]
fn several_gpus_share_the_work() {
    let Some(_one) = alone("work shared by several GPUs") else { return };
    let gpus: Vec<u32> = (0..runtime::count()).collect();
    if gpus.len() < 2 {
        say("skipped: work shared by several GPUs (there is one)");
        return;
    }
    for dims in [&[40usize, 36][..], &[18, 22, 20]] {
        let scan = Scan::<f32>::new(dims, 4000);
        let voxels = scan.image.len();
        let k = slices(&scan.k);
        for (method, maps) in
            [(Method::Nufft, true), (Method::Nufft, false), (Method::Exact, true), (Method::Exact, false)]
        {
            let mut geometry = Geometry::new(dims, &k).coils(COILS).weights(&scan.weights);
            geometry.coil_maps = maps.then_some(&scan.maps);
            let field: Vec<f32> = (0..voxels).map(|i| (i % 97) as f32).collect();
            let times: Vec<f32> = (0..4000).map(|m| 1e-5 * (m % 1000) as f32).collect();
            if maps {
                geometry = geometry.field_map(&field, &times);
            }
            let images = if maps { 1 } else { COILS };
            let image: Vec<_> = (0..images).flat_map(|_| scan.image.iter().copied()).collect();
            let run = |gpus: &[u32]| {
                let options =
                    Options { device: Device::Cuda(gpus.to_vec()), method, tolerance: 1e-5, ..Options::default() };
                let plan = Plan::new(&geometry, &options).unwrap();
                let mut out = vec![poisoned::<f32>(voxels * images); 4];
                let mut forward = poisoned::<f32>(scan.data.len());
                plan.adjoint(&scan.data, &mut out[0]).unwrap();
                plan.grid(&scan.data, &mut out[1]).unwrap();
                plan.normal(&image, &mut out[2]).unwrap();
                let cg = CgOptions { iterations: 3, lambda: 2.0, ..CgOptions::default() };
                plan.cg(&scan.data, &mut out[3], &cg).unwrap();
                plan.forward(&image, &mut forward).unwrap();
                out.push(forward);
                assert!(
                    plan.info().device.matches("cuda").count()
                        == gpus.len().min(if method == Method::Exact { 8 } else { COILS })
                );
                out
            };
            let (one, several, again) = (run(&gpus[..1]), run(&gpus), run(&gpus));
            for (i, name) in ["fhd", "grid", "normal", "cg", "forward"].iter().enumerate() {
                let error = distance(&several[i], &wide(&one[i]));
                assert!(error <= 1e-5, "{name} {dims:?} {method:?} maps {maps}: {error:e}");
                assert!(bytes(&several[i]) == bytes(&again[i]), "{name} {dims:?} {method:?} maps {maps}");
            }
        }
    }
}

/// Computes many frames and coils: batches are copied in and out while others are computed. Under a limit, maps that do
/// not fit on the GPU are uploaded each time.
#[test]
fn batches_and_maps_that_are_sent_change_nothing() {
    let Some(_one) = alone("batches of frames and coils on a GPU") else { return };
    let mut random = Random::fresh();
    let (dims, samples, coils, frames) = ([200usize, 180], 9000, 12, 7);
    let voxels = 200 * 180;
    let k = random.trajectory::<f32>(2, samples);
    let maps = random.complexes::<f32>(voxels * coils);
    let data = random.complexes::<f32>(samples * coils * frames);
    let k = slices(&k);
    let run = |maps: Option<&[Complex<f32>]>, options: &Options| {
        let mut geometry = Geometry::new(&dims, &k).coils(coils);
        geometry.frames = frames;
        geometry.coil_maps = maps;
        let plan = Plan::new(&geometry, options).unwrap();
        let mut image = poisoned::<f32>(plan.image_len());
        let mut back = poisoned::<f32>(data.len());
        plan.adjoint(&data, &mut image).unwrap();
        plan.forward(&image, &mut back).unwrap();
        let normal = &mut poisoned::<f32>(image.len());
        plan.normal(&image, &mut *normal).unwrap();
        [bytes(&image), bytes(&back), bytes(normal)]
    };
    for maps in [None, Some(&maps[..])] {
        // Compares the largest batch with one coil and frame at a time, under a limit that leaves no memory for the
        // maps.
        let whole = run(maps, &Options { normal: Normal::Transforms, ..cuda() });
        for _ in 0..5 {
            assert!(run(maps, &Options { normal: Normal::Transforms, ..cuda() }) == whole);
        }
        let least = (1..).map(|i| i << 18).find(|&limit| {
            let mut geometry = Geometry::new(&dims, &k).coils(coils);
            geometry.frames = frames;
            geometry.coil_maps = maps;
            Plan::new(&geometry, &Options { memory_limit: Some(limit), normal: Normal::Transforms, ..cuda() }).is_ok()
        });
        let limited = Options { memory_limit: least, normal: Normal::Transforms, ..cuda() };
        assert!(run(maps, &limited) == whole, "maps {}", maps.is_some());
    }
}

/// Computes several arrays at once: each is that of a plan for it alone, bit for bit. Several small arrays need another
/// kernel than one. Values of several large arrays are interpolated together, and sorted by a second kernel.
#[test]
fn several_arrays_are_those_of_one() {
    let Some(_one) = alone("several arrays on a GPU") else { return };
    fn check<T: Real>(dims: &[usize], samples: usize, coils: usize) {
        let mut random = Random::fresh();
        let k = random.trajectory::<T>(dims.len(), samples);
        let k = slices(&k);
        let voxels = dims.iter().product();
        let (data, image) = (random.complexes::<T>(samples * coils), random.complexes::<T>(voxels * coils));
        let plan = |coils| Plan::new(&Geometry::new(dims, &k).coils(coils), &cuda()).unwrap();
        let (several, one) = (plan(coils), plan(1));
        let (mut all, mut back) = (poisoned(voxels * coils), poisoned(samples * coils));
        several.adjoint(&data, &mut all).unwrap();
        several.forward(&image, &mut back).unwrap();
        let (mut x, mut d) = (poisoned(voxels), poisoned(samples));
        for coil in 0..coils {
            let (of_image, of_data) = (coil * voxels..(coil + 1) * voxels, coil * samples..(coil + 1) * samples);
            one.adjoint(&data[of_data.clone()], &mut x).unwrap();
            one.forward(&image[of_image.clone()], &mut d).unwrap();
            assert!(bytes(&x) == bytes(&all[of_image]), "{dims:?}, adjoint, coil {coil} of {coils}");
            assert!(bytes(&d) == bytes(&back[of_data]), "{dims:?}, forward, coil {coil} of {coils}");
        }
    }
    for (dims, samples, coils) in
        [(&[64, 60][..], 2048, 40), (&[20, 24, 16], 1500, 60), (&[40, 36], 2_000_000, 5), (&[300, 200], 2_000_000, 2)]
    {
        check::<f32>(dims, samples, coils);
        check::<f64>(dims, samples, coils);
    }
}

/// Interpolates at spokes, whose values are written where they belong, and at the same samples in any order, whose
/// values are sorted by a second kernel: each value has the same bits. With the low accuracy, samples on spokes are
/// interpolated in the order of the input.
#[test]
fn order_of_samples_changes_no_value() {
    let Some(_one) = alone("spokes and samples in any order on a GPU") else { return };
    fn check<T: Real>(dims: [usize; 2], spokes: usize, readout: usize, coils: usize, tolerance: f64) {
        let mut random = Random::fresh();
        let (samples, options) = (spokes * readout, Options { tolerance, ..cuda() });
        let at = |i: usize| {
            let (angle, radius) = ((i / readout) as f64 * 2.399963, (i % readout) as f64 / readout as f64 - 0.5);
            [radius * angle.cos(), radius * angle.sin()]
        };
        let mut order: Vec<usize> = (0..samples).collect();
        for i in (1..samples).rev() {
            order.swap(i, random.below(i + 1));
        }
        let images = random.complexes::<T>(dims[0] * dims[1] * coils);
        let values = |number: &dyn Fn(usize) -> usize| {
            let k = [0, 1].map(|a| (0..samples).map(|i| T::of(at(number(i))[a])).collect::<Vec<T>>());
            let plan = Plan::new(&Geometry::new(&dims, &[&k[0][..], &k[1]]).coils(coils), &options).unwrap();
            let mut values = poisoned(samples * coils);
            plan.forward(&images, &mut values).unwrap();
            values
        };
        let (spokes, shuffled) = (values(&|i| i), values(&|i| order[i]));
        for (i, coil) in (0..samples).flat_map(|i| (0..coils).map(move |coil| (i, coil * samples))) {
            let (at, from) = (coil + i, coil + order[i]);
            assert!(bytes(&shuffled[at..=at]) == bytes(&spokes[from..=from]), "{dims:?}, value {from}");
        }
    }
    check::<f32>([64, 60], 1900, 2048, 1, 1e-6);
    check::<f32>([64, 60], 1901, 2047, 1, 1e-3);
    check::<f32>([100, 130], 1500, 999, 5, 1e-3);
    check::<f64>([300, 280], 3000, 700, 1, 1e-6);
}

/// Code of a process whose GPU fails. Nothing works on the GPU afterwards, so the test at the end of this file starts a
/// separate process for this.
#[test]
#[ignore = "a part of a_failed_gpu_and_a_fork_lead_to_the_cpu"]
fn a_process_whose_gpu_fails() {
    let scan = Scan::<f32>::new(&[20, 20], 500);
    let k = slices(&scan.k);
    let geometry = Geometry::new(&scan.dims, &k);
    let plan = Plan::new(&geometry, &cuda()).unwrap();
    let nobody = 0x1_0000 as *mut Complex<f32>;
    // SAFETY: deliberately violated. The GPU must stop at addresses without an array.
    let (from, to) = unsafe { (Source::device(nobody, 500), Sink::device(nobody, 400)) };
    let e = plan.adjoint(from, to).unwrap_err();
    assert!(e.kind() == ErrorKind::DeviceFailed && e.message().contains("restart"), "{e}");
    for _ in 0..2 {
        let e = Plan::new(&geometry, &cuda()).err().expect("the GPU has failed");
        assert!(e.kind() == ErrorKind::DeviceFailed && e.message().contains("failed earlier"), "{e}");
        let plan = Plan::new(&geometry, &Options::default()).unwrap();
        assert_eq!(plan.info().device, "cpu");
        plan.adjoint(&scan.data[..500], &mut poisoned(400)).unwrap();
    }
    assert_eq!(runtime::count(), 0);
}

/// Code of a process that is forked after its parent has used CUDA. The test at the end of this file starts a separate
/// process for this.
#[test]
#[ignore = "a part of a_failed_gpu_and_a_fork_lead_to_the_cpu"]
#[cfg(unix)]
fn a_process_that_forks() {
    let scan = Scan::<f32>::new(&[20, 20], 500);
    let k = slices(&scan.k);
    let geometry = Geometry::new(&scan.dims, &k);
    let kept = Plan::new(&geometry, &cuda()).unwrap();
    // SAFETY: the child calls nothing that needs other threads, which it does not have.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let refused = Plan::new(&geometry, &cuda()).err();
        let says_so = refused.is_some_and(|e| e.kind() == ErrorKind::DeviceFailed && e.message().contains("fork"));
        let options = Options { threads: 1, ..Options::default() };
        let on_cpu = Plan::new(&geometry, &options).is_ok_and(|plan| plan.info().device == "cpu");
        // SAFETY: this ends the child at once.
        unsafe { libc::_exit(if says_so && on_cpu { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: the child was started above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child");
    kept.adjoint(&scan.data[..500], &mut poisoned(400)).unwrap();
}

#[test]
fn a_failed_gpu_and_a_fork_lead_to_the_cpu() {
    let Some(_one) = alone("a GPU that has failed, and CUDA after fork") else { return };
    for part in ["a_process_whose_gpu_fails", "a_process_that_forks"] {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let output = command.args(["--exact", part, "--ignored", "--nocapture"]).output().unwrap();
        assert!(output.status.success(), "{part}: {}", String::from_utf8_lossy(&output.stdout));
    }
}
