//! The large case of Stone et al. (J. Parallel Distrib. Comput. 68:1307, 2008; Kirk and Hwu, Programming Massively
//! Parallel Processors, 2010, chapter 8): conjugate gradients to 512^3 voxels on one device. Prints size, memory,
//! times, energy and the error against the phantom.
//!
//! cargo run --release --example stone_512 -- [matrix, default 512] [device: auto, cpu or cuda; default auto]
//!
//! The scan is a kooshball of 8,000 spokes x 1,024 samples (8.2 million). For a different matrix both numbers are
//! scaled with it, so that the undersampling is the same. There are 10 iterations without a prior, in single precision
//! and at the default tolerance. On the CPU, 512^3 voxels take 15 GiB of memory; 64^3 runs anywhere. The error is the
//! relative l2 error at the best complex scale. The image has far too few samples.

mod common;

use common::energy::Meter;
use recon::metrics::{compare, Scale};
use recon::phantom::Phantom;
use recon::{
    CgOptions, CgReport, Complex, Device, Error, ErrorKind, Geometry, Options, Plan, Result, ScanSize, Trajectory,
};
use std::time::Instant;

const ITERATIONS: usize = 10;

fn main() -> Result<()> {
    let n = common::matrix(512)?;
    let device = match std::env::args().nth(2).as_deref() {
        None | Some("auto") => Device::Auto,
        Some("cpu") => Device::Cpu,
        Some("cuda") => Device::Cuda(Vec::new()),
        Some(other) => {
            return Err(Error::new(ErrorKind::InvalidArgument, format!("no device '{other}': say auto, cpu or cuda")))
        }
    };
    let options = Options { device, ..Options::default() };
    let dims = [n; 3];
    let spokes = (8000.0 * (n as f64 / 512.0).powi(2)).round().max(1.0) as usize;
    let trajectory = Trajectory::radial3d(spokes, 2 * n)?;
    let samples = trajectory.samples();
    println!("{samples} samples on {spokes} spokes, to {n}^3 voxels");

    let told = Plan::<f32>::memory(&ScanSize::new(&dims, samples), &options)?;
    let gib = |bytes: usize| bytes as f64 / f64::from(1 << 30);
    println!(
        "memory of conjugate gradients: {:.2} GiB of the host, {:.2} of the GPU",
        gib(told.host.cg),
        gib(told.device.cg)
    );

    let phantom = Phantom::shepp_logan_3d();
    let data = common::narrow(&phantom.kspace(&dims, &trajectory.axes(), None, 0)?);
    let k: Vec<Vec<f32>> = (0..3).map(|axis| trajectory.axis_as(axis)).collect();
    drop(trajectory);
    let k: Vec<&[f32]> = k.iter().map(|k| &k[..]).collect();
    let geometry = Geometry::new(&dims, &k);

    // The first plan compiles the GPU's kernels if they are not cached.
    let started = Instant::now();
    drop(Plan::new(&geometry, &options)?);
    let first = started.elapsed().as_secs_f64();
    let plan = Plan::new(&geometry, &options)?;
    let info = plan.info();
    println!(
        "device: {}, {} threads; grid {:?}, window of {} cells, error {:.1e}",
        info.device, info.threads, info.grid, info.width, info.error
    );
    println!("plan: {:.4} s (the first one {first:.4} s)", info.seconds);

    let cg = CgOptions { iterations: ITERATIONS, ..CgOptions::default() };
    let mut image = vec![Complex::default(); n.pow(3)];
    let started = Instant::now();
    let report: CgReport = plan.cg(&data, &mut image, &cg)?;
    let whole = started.elapsed().as_secs_f64();
    let again = plan.cg(&data, &mut image, &cg)?;
    println!("Q: {:.4} s ({})", report.q_seconds, if plan.info().toeplitz { "used" } else { "not used" });
    println!("right-hand side: {:.4} s", again.adjoint_seconds);
    println!("iteration: {:.4} s", again.iteration_seconds / ITERATIONS as f64);
    println!("{ITERATIONS} iterations: {:.4} s; the first image, with Q: {whole:.4} s", again.iteration_seconds);
    let held = plan.info();
    println!("held: {:.2} GiB of the host, {:.2} of the GPU", gib(held.host_bytes), gib(held.device_bytes));

    let meter = Meter::new(info.on_gpu.then_some(0));
    meter
        .print("an image, its copies to and from the device included", || plan.cg(&data, &mut image, &cg).map(drop))?;

    let truth: Vec<Complex<f32>> = phantom.image(&dims, 1)?.into_iter().map(|x| Complex::new(x as f32, 0.0)).collect();
    let metrics = compare(&image, &truth, Scale::Best, None)?;
    println!("error against the phantom: {:.2} %, PSNR {:.2} dB", metrics.percent_error, metrics.psnr_db);
    Ok(())
}
