//! The choice between CPU and GPU with device `auto`, and gridding on both devices. Without a GPU each test of a GPU
//! prints one line that begins with `skipped:`.

mod common;

use common::*;
use recon::backend::cuda::{nvrtc, runtime};
use recon::{Complex, Device, DeviceReason, ErrorKind, Geometry, Method, Options, Plan, Real, VoxelBasis};

fn has_gpu(what: &str) -> bool {
    if runtime::first_usable().is_none() {
        say(&format!("skipped: {what} (no GPU)"));
        return false;
    }
    true
}

fn plan(dims: &[usize], k: &[Vec<f32>], coils: usize, options: &Options) -> Plan<f32> {
    Plan::new(&Geometry::new(dims, &slices(k)).coils(coils), options).unwrap()
}

#[test]
fn plans_tell_why_they_compute_on_their_device() {
    let k = Random::fresh().trajectory::<f32>(2, 300);
    let requested = plan(&[16, 16], &k, 1, &Options { device: Device::Cpu, ..Options::default() }).info();
    assert_eq!(requested.device_selection, Default::default());
    assert_eq!(requested.device_selection.reason, DeviceReason::Requested);
    // With 32 threads or more, starting them takes as long as such a call on the GPU.
    let automatic = plan(&[16, 16], &k, 1, &Options { threads: 2, ..Options::default() }).info();
    assert_eq!(automatic.device, "cpu");
    if runtime::has_gpu() {
        return;
    }
    assert_eq!(automatic.device_selection.reason, DeviceReason::NoGpu);
    assert_eq!((automatic.device_selection.cpu_ms, automatic.device_selection.gpu_ms), (0.0, 0.0));
}

/// Checks that small calls go to the CPU and large ones to the GPU, always the same way, and that the choice stays
/// after a change of the plan.
#[test]
fn the_faster_device_is_chosen() {
    if !has_gpu("the choice of the faster device") {
        return;
    }
    let mut random = Random::fresh();
    let small = random.trajectory::<f32>(2, 1500);
    let large = random.trajectory::<f32>(3, 400_000);
    let auto = Options { threads: 2, ..Options::default() };
    let on_cpu = plan(&[64, 64], &small, 1, &auto).info();
    let on_gpu = plan(&[128, 128, 128], &large, 4, &auto).info();
    for (info, is_gpu) in [(&on_cpu, false), (&on_gpu, true)] {
        let choice = info.device_selection;
        assert_eq!((info.on_gpu, choice.reason), (is_gpu, DeviceReason::EstimatedFaster), "{info:?}");
        assert!(choice.cpu_ms > 0.0 && choice.gpu_ms > 0.0 && is_gpu == (choice.gpu_ms < choice.cpu_ms), "{info:?}");
    }
    recon::release_memory();
    let again = plan(&[64, 64], &small, 1, &auto);
    assert_eq!(again.info().device_selection, on_cpu.device_selection);
    let k = random.trajectory::<f32>(2, 1500);
    again.set_trajectory(&Geometry::new(&[64, 64], &slices(&k))).unwrap();
    assert_eq!(again.info().device_selection, on_cpu.device_selection);
    // Exact sums are slower than transforms, and list voxels slower than grids.
    let exact = Options { method: Method::Exact, ..auto };
    let slow = plan(&[64, 64], &small, 1, &exact).info().device_selection;
    assert!(slow.cpu_ms > on_cpu.device_selection.cpu_ms, "{slow:?}");
}

/// Code of a process without NVRTC and without compiled kernels.
#[test]
#[ignore = "a part of without_a_compiler_the_cpu_computes"]
fn a_process_without_a_compiler() {
    if nvrtc::version().is_ok() {
        return say("skipped: a GPU without NVRTC (the system finds NVRTC)");
    }
    let k = Random::fresh().trajectory::<f32>(3, 400_000);
    let info = plan(&[128, 128, 128], &k, 4, &Options { threads: 2, ..Options::default() }).info();
    assert_eq!((info.on_gpu, info.device_selection.reason), (false, DeviceReason::GpuUnusable), "{info:?}");
    assert!(info.device_selection.gpu_ms < info.device_selection.cpu_ms, "{info:?}");
    let k = slices(&k);
    let requested = Options { device: Device::Cuda(vec![0]), ..Options::default() };
    let e = Plan::new(&Geometry::new(&[128, 128, 128], &k), &requested).err().expect("there is no compiler");
    assert!(e.kind() == ErrorKind::DriverIncomplete && e.message().contains("RECON_NVRTC"), "{e}");
}

#[test]
fn without_a_compiler_the_cpu_computes() {
    if !has_gpu("a GPU without NVRTC") {
        return;
    }
    let folder = std::env::temp_dir().join(format!("recon-no-kernels-{}", std::process::id()));
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "a_process_without_a_compiler", "--ignored", "--nocapture"]);
    let output = command.env("RECON_NVRTC", "/nowhere").env("RECON_CACHE_DIR", &folder).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    text.lines().filter(|line| line.starts_with("skipped:")).for_each(say);
    assert!(!folder.exists(), "nothing was compiled");
}

/// Compares gridding with density weights on a GPU, whose scale is computed there, with the CPU.
#[test]
fn gridding_is_that_of_the_cpu() {
    if !has_gpu("gridding on a GPU") {
        return;
    }
    fn check<T: Real>(dims: &[usize], samples: usize, basis: VoxelBasis, bound: f64) {
        let mut random = Random::fresh();
        let mut k = random.trajectory::<T>(dims.len(), samples);
        for (k, &n) in k.iter_mut().zip(dims) {
            // k = 0 along axes of one voxel, and denser samples in the centre.
            k.iter_mut().for_each(|k| *k = T::of(if n == 1 { 0.0 } else { 2.0 * k.wide() * k.wide().abs() }));
        }
        let mut weights: Vec<T> = random.reals::<T>(samples).iter().map(|w| T::of(w.wide() + 0.5)).collect();
        weights.iter_mut().step_by(7).for_each(|w| *w = T::of(0.0));
        let data = random.complexes::<T>(samples);
        let k = slices(&k);
        let mut geometry = Geometry::new(dims, &k).weights(&weights);
        geometry.basis = basis;
        let image = |device| {
            let options = Options { device, tolerance: bound, ..Options::default() };
            let mut image = poisoned::<T>(dims.iter().product());
            Plan::new(&geometry, &options).unwrap().grid(&data, &mut image).unwrap();
            image
        };
        let (cpu, gpu) = (image(Device::Cpu), image(Device::Cuda(vec![0])));
        let error = distance(&gpu, &wide(&cpu));
        assert!(error <= 2.5 * bound, "{} {dims:?} {basis:?}: {error:e}", T::NAME);
        assert!(image(Device::Cuda(vec![0])) == gpu, "{} {dims:?} {basis:?}: different bits", T::NAME);
    }
    for basis in [VoxelBasis::Point, VoxelBasis::Box] {
        check::<f32>(&[40, 52], 5000, basis, 5e-6);
        check::<f32>(&[22, 18, 26], 9000, basis, 5e-6);
        check::<f32>(&[300, 1], 4000, basis, 5e-6);
        check::<f64>(&[33, 20], 2000, basis, 1e-10);
        check::<f64>(&[10, 1, 12], 2000, basis, 1e-10);
    }
    // No sample near the centre: the error of the CPU.
    let far = [vec![0.3f32; 100], vec![-0.4f32; 100]];
    let weights = vec![1.0f32; 100];
    let errors = [Device::Cpu, Device::Cuda(vec![0])].map(|device| {
        let k = slices(&far);
        let geometry = Geometry::new(&[64, 64], &k).weights(&weights);
        let plan = Plan::new(&geometry, &Options { device, ..Options::default() }).unwrap();
        let data = vec![Complex::new(1.0f32, 0.0); 100];
        plan.grid(&data, &mut poisoned::<f32>(64 * 64)[..]).unwrap_err()
    });
    assert_eq!(errors[0].kind(), ErrorKind::InvalidArgument);
    assert_eq!(errors[0].message(), errors[1].message());
}
