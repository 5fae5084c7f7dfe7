//! Real time: frames of a moving object by sliding windows over golden-angle spokes. 34 spokes of 512 samples, 8 coils,
//! to 192 x 192 voxels. Each frame begins some spokes after the previous one, so each has its own trajectory.
//!
//! Run with `cargo run --release --example realtime [device [threads [tolerance [step [frames]]]]]`; the device is cpu,
//! cuda or auto. Each spoke measures the object at its time; k-space is exact. All arrays are host arrays.
//!
//! - Gridding of all coils with ramp weights, combined by the coil maps: milliseconds and frames per second with a new
//!   plan for each frame, and with one plan and a new trajectory for each frame. Images are compared bit by bit.
//!   plan for each frame, and with one plan that is given each frame's trajectory. Images are compared bit for bit.
//! - Conjugate gradients to one residual, started from zeros and from the previous image, and with few iterations.
//!
//! Errors are percent of the truth, the object in the middle of the window, over all frames except the first.

use recon::metrics::{compare, Scale};
use recon::phantom::{CoilModel, Ellipsoid, Phantom};
use recon::trajectory::SpokeOrder;
use recon::{CgOptions, Complex, Density, Device, Geometry, Options, Plan, Result, Trajectory};
use std::f64::consts::TAU;
use std::time::Instant;

const DIMS: [usize; 2] = [192, 192];
const SPOKES: usize = 34;
const READOUT: usize = 512;
const COILS: usize = 8;
/// Spokes of one heartbeat: 0.8 s at 5 ms per spoke.
const BEAT: f64 = 160.0;
const RESIDUAL: f64 = 0.002;

type Image = Vec<Complex<f32>>;

/// A frame: trajectory, data [samples, coils], and the true image.
struct Frame {
    kx: Vec<f32>,
    ky: Vec<f32>,
    kspace: Image,
    truth: Image,
}

impl Frame {
    fn geometry<'a>(&'a self, maps: &'a [Complex<f32>]) -> Geometry<'a, f32> {
        Geometry::new(&DIMS, &[&self.kx, &self.ky]).coils(COILS).coil_maps(maps)
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, default: f64| -> f64 {
        arguments.get(i).map_or(default, |text| text.parse().expect("device, threads, tolerance, step, frames"))
    };
    let device = match arguments.first().map(String::as_str) {
        None | Some("auto") => Device::Auto,
        Some("cpu") => Device::Cpu,
        Some("cuda") => Device::Cuda(Vec::new()),
        Some(other) => panic!("the device is {other}: it must be cpu, cuda or auto"),
    };
    let (threads, tolerance) = (number(1, 0.0) as usize, number(2, 0.0));
    let options = Options { device, threads, tolerance, ..Options::default() };
    let (step, count) = (number(3, 5.0) as usize, number(4, 60.0) as usize);
    assert!(step > 0 && count > 1, "a step of at least one spoke, and at least two frames");

    let (frames, maps) = series(step, count)?;
    let first = Plan::new(&frames[0].geometry(&maps), &options)?;
    // Golden-angle windows of one length are rotated copies of each other, and so are their weights.
    let weights = first.density(Density::Ramp)?;
    let info = first.info();
    println!(
        "{SPOKES} spokes of {READOUT}, {COILS} coils, to {DIMS:?}; {count} frames, {step} spokes apart; {}, {} \
         threads, grid {:?}, error {:.0e}",
        info.device, info.threads, info.grid, info.error
    );
    drop(first);
    gridding(&frames, &maps, &weights, &options)?;
    conjugate_gradients(&frames, &maps, &options)
}

/// Returns the object at the time of a spoke: a chest with a beating heart.
fn object(spoke: f64) -> Result<Phantom> {
    let squeeze = 0.5 - 0.5 * (TAU * spoke / BEAT).cos();
    let (wall, inside, x) = (0.26 - 0.03 * squeeze, 0.19 - 0.08 * squeeze, 0.05 - 0.03 * squeeze);
    let shapes = [
        (0.8, [0.0, 0.0], [0.90, 0.68], 0.0),
        (-0.6, [-0.50, 0.05], [0.28, 0.46], 0.1),
        (-0.5, [0.56, 0.05], [0.22, 0.42], -0.1),
        (-0.2, [x, 0.02], [wall, 0.95 * wall], 0.5),
        (0.4, [x, 0.02], [inside, 0.9 * inside], 0.5),
        (0.2, [0.0, -0.50], [0.11, 0.09], 0.0),
    ];
    let ellipse = |&(density, [x, y], [a, b], angle): &(f64, [f64; 2], [f64; 2], f64)| Ellipsoid {
        density,
        centre: [x, y, 0.0],
        semi_axes: [a, b, 1.0],
        angles: [angle, 0.0, 0.0],
    };
    Phantom::new(2, shapes.iter().map(ellipse).collect())
}

/// Returns the frames, and the coil maps [voxels, coils], of unit norm.
fn series(step: usize, count: usize) -> Result<(Vec<Frame>, Image)> {
    let single = |z: Complex<f64>| Complex::new(z.re as f32, z.im as f32);
    let spokes = SPOKES + (count - 1) * step;
    let trajectory = Trajectory::radial2d(spokes, READOUT, SpokeOrder::GoldenAngle)?;
    let coils = CoilModel::ring(COILS, 2)?;
    // Each spoke [samples, coils].
    let mut measured = Vec::new();
    for spoke in 0..spokes {
        let part = spoke * READOUT..(spoke + 1) * READOUT;
        let axes: Vec<&[f64]> = trajectory.axes().iter().map(|k| &k[part.clone()]).collect();
        measured.push(object(spoke as f64)?.kspace(&DIMS, &axes, Some(&coils), 0)?);
    }
    let mut maps = coils.maps(&DIMS)?;
    let voxels = DIMS[0] * DIMS[1];
    let norms: Vec<f64> =
        (0..voxels).map(|r| (0..COILS).map(|c| maps[c * voxels + r].norm_sqr()).sum::<f64>().sqrt()).collect();
    maps.iter_mut().enumerate().for_each(|(i, s)| *s /= norms[i % voxels]);
    let mut frames = Vec::new();
    for i in 0..count {
        let own = i * step..i * step + SPOKES;
        let axis = |a: usize| trajectory.axis_as::<f32>(a)[own.start * READOUT..own.end * READOUT].to_vec();
        let middle = object(0.5 * (own.start + own.end - 1) as f64)?.image(&DIMS, 4)?;
        let coil = |c: usize| measured[own.clone()].iter().flat_map(move |d| d[c * READOUT..][..READOUT].iter());
        frames.push(Frame {
            kx: axis(0),
            ky: axis(1),
            kspace: (0..COILS).flat_map(coil).map(|&z| single(z)).collect(),
            truth: middle.iter().zip(&norms).map(|(x, norm)| Complex::new((x * norm) as f32, 0.0)).collect(),
        });
    }
    Ok((frames, maps.into_iter().map(single).collect()))
}

/// Returns the mean error of all images except the first.
fn error(frames: &[Frame], images: &[Image]) -> Result<f64> {
    let mut sum = 0.0;
    for (frame, image) in frames.iter().zip(images).skip(1) {
        sum += compare(image, &frame.truth, Scale::None, None)?.percent_error;
    }
    Ok(sum / (frames.len() - 1) as f64)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn gridding(frames: &[Frame], maps: &[Complex<f32>], weights: &[f32], options: &Options) -> Result<()> {
    println!("\ngridding, combined by coil maps  plan ms  gridding ms  frames/s  error");
    let mut all: Vec<Vec<Image>> = Vec::new();
    // A plan that remains. The last deleted plan releases the GPU, and the next would wait 0.15 s for it.
    let _stays = Plan::new(&frames[0].geometry(maps).weights(weights), options)?;
    for (name, keep) in [("a new plan for each frame", false), ("one plan, new trajectories", true)] {
        let mut images = vec![vec![Complex::default(); DIMS[0] * DIMS[1]]; frames.len()];
        let (mut planning, mut gridding) = (Vec::new(), Vec::new());
        let mut plan: Option<Plan<f32>> = None;
        // The first round is a warm-up.
        for turn in 0..3 {
            for (frame, image) in frames.iter().zip(&mut images) {
                let started = Instant::now();
                let geometry = frame.geometry(maps).weights(weights);
                let plan = match plan.take().filter(|_| keep) {
                    Some(kept) => {
                        // The plan keeps its coil maps.
                        kept.set_trajectory(&Geometry { coil_maps: None, ..geometry })?;
                        plan.insert(kept)
                    }
                    None => plan.insert(Plan::new(&geometry, options)?),
                };
                let planned = Instant::now();
                plan.weighted_adjoint(&frame.kspace, image)?;
                if turn > 0 {
                    planning.push(1e3 * (planned - started).as_secs_f64());
                    gridding.push(1e3 * planned.elapsed().as_secs_f64());
                }
            }
        }
        let per_second = 1e3 * planning.len() as f64 / (planning.iter().sum::<f64>() + gridding.iter().sum::<f64>());
        let error = error(frames, &images)?;
        println!("{name:<31} {:>8.3} {:>12.3} {per_second:>9.0} {error:>5.1}%", median(planning), median(gridding));
        all.push(images);
    }
    assert!(all[0] == all[1], "images of new plans and of new trajectories differ");
    println!("images of both have the same bits");
    Ok(())
}

fn conjugate_gradients(frames: &[Frame], maps: &[Complex<f32>], options: &Options) -> Result<()> {
    println!("\nconjugate gradients              iterations  residual  plan ms  Q ms  ms a frame  frames/s  error");
    let voxels = DIMS[0] * DIMS[1];
    let plan = Plan::new(&frames[0].geometry(maps), options)?;
    for (name, iterations, residual, warm) in [
        ("to one residual, from zeros", 100, RESIDUAL, false),
        ("to one residual, warm", 100, RESIDUAL, true),
        ("3 iterations, from zeros", 3, 0.0, false),
        ("3 iterations, warm", 3, 0.0, true),
    ] {
        let mut images: Vec<Image> = Vec::new();
        let (mut counts, mut residuals, mut seconds, mut planning, mut q) = (0, 0.0, 0.0, 0.0, 0.0);
        for (i, frame) in frames.iter().enumerate() {
            let started = Instant::now();
            let mut image = vec![Complex::default(); voxels];
            plan.set_trajectory(&Geometry { coil_maps: None, ..frame.geometry(maps) })?;
            let planned = started.elapsed().as_secs_f64();
            let initial = images.last().filter(|_| warm).map(|x| &x[..]);
            let cg = CgOptions { iterations, tolerance: residual, initial, ..CgOptions::default() };
            let report = plan.cg(&frame.kspace, &mut image, &cg)?;
            // The first frame always starts from zeros.
            if i > 0 {
                seconds += started.elapsed().as_secs_f64();
                planning += planned;
                q += report.q_seconds;
                counts += report.runs[0].iterations();
                residuals += report.runs[0].residuals.last().copied().unwrap_or(0.0);
            }
            images.push(image);
        }
        let count = (frames.len() - 1) as f64;
        println!(
            "{name:<32} {:>10.1} {:>9.4} {:>8.2} {:>5.2} {:>11.2} {:>9.0} {:>5.1}%",
            counts as f64 / count,
            residuals / count,
            1e3 * planning / count,
            1e3 * q / count,
            1e3 * seconds / count,
            count / seconds,
            error(frames, &images)?
        );
    }
    Ok(())
}
