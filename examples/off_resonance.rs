//! Off-resonance: segments, nodes, errors and times of a spiral of 20 ms, with and without a field map.
//!
//! cargo run --release --example off_resonance -- [device: cpu or cuda] [threads, 0 for all] [coils] [a field map in
//! Hz: a square file .npy of float32]
//!
//! Without a file the map is smooth, with a range of 169 Hz on 128 x 128 voxels. Errors are relative l2 errors against
//! exact sums in double precision. They are those of random data, and the larger one of two images with one voxel at
//! either end of the map. Times are medians of 5. "nodes" is conjugate gradients by convolutions, "transforms" by
//! transforms, "no map" the same scan without a map. The bound of the time by nodes is (nodes + 3) times that without a
//! map.

use recon::{
    CgOptions, Complex, Device, Error, ErrorKind, Geometry, Method, Normal, Options, Plan, Result, Trajectory,
};
use std::f64::consts::TAU;
use std::time::Instant;

const READOUT: f64 = 0.02;
const RUNS: usize = 5;
const ITERATIONS: usize = 20;

fn main() -> Result<()> {
    let argument = |i: usize| std::env::args().nth(i);
    let number = |i: usize, default: usize| argument(i).and_then(|a| a.parse().ok()).unwrap_or(default);
    let device = match argument(1).as_deref() {
        None | Some("cpu") => Device::Cpu,
        Some("cuda") => Device::Cuda(Vec::new()),
        Some(other) => {
            return Err(Error::new(ErrorKind::InvalidArgument, format!("no device '{other}': say cpu or cuda")))
        }
    };
    let (threads, coils) = (number(2, 0), number(3, 1));
    let (n, map) = match argument(4) {
        Some(path) => read(&path)?,
        None => (128, smooth(128)),
    };
    let dims = [n, n];
    let trajectory = Trajectory::spiral(16, 3000, n as f64 / 32.0, 1.0)?;
    let times: Vec<f32> = trajectory.times(READOUT)?.iter().map(|&t| t as f32).collect();
    let k: Vec<Vec<f32>> = (0..2).map(|axis| trajectory.axis_as(axis)).collect();
    let axes: Vec<&[f32]> = k.iter().map(|k| &k[..]).collect();
    let (samples, voxels) = (times.len(), n * n);
    let mut state = 1u64;
    let mut complexes = |count: usize| -> Vec<Complex<f32>> {
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f32 / (1u64 << 53) as f32 - 0.5
        };
        (0..count).map(|_| Complex::new(uniform(), uniform())).collect()
    };
    let maps = complexes(voxels * coils);
    let plain = {
        let geometry = Geometry::new(&dims, &axes).coils(coils);
        if coils > 1 {
            geometry.coil_maps(&maps)
        } else {
            geometry
        }
    };
    let mapped = plain.clone().field_map(&map, &times);

    // The exact sums, in double precision.
    let wide = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
    let (k64, map64, times64) = (k.iter().map(|k| wide(k)).collect::<Vec<_>>(), wide(&map), wide(&times));
    let axes64: Vec<&[f64]> = k64.iter().map(|k| &k[..]).collect();
    let exact = Plan::new(
        &Geometry::new(&dims, &axes64).field_map(&map64, &times64),
        &Options { method: Method::Exact, normal: Normal::Transforms, threads, ..Options::default() },
    )?;
    let double = |x: &[Complex<f32>]| x.iter().map(|z| Complex::new(z.re.into(), z.im.into())).collect::<Vec<_>>();
    let (d, x) = (complexes(samples), complexes(voxels));
    let end = |largest: bool| {
        let order = |a: &usize, b: &usize| map[*a].total_cmp(&map[*b]);
        if largest { (0..voxels).max_by(order) } else { (0..voxels).min_by(order) }.expect("there are voxels")
    };
    let one = |at: usize| {
        let mut image = vec![Complex::default(); voxels];
        image[at] = Complex::new(1.0f32, 0.0);
        image
    };
    let images = [x.clone(), one(end(false)), one(end(true))];
    let mut exact_values = Vec::new();
    for image in &images {
        let mut values = vec![Complex::default(); samples];
        exact.forward(&double(image), &mut values)?;
        exact_values.push(values);
    }
    let (mut exact_image, mut exact_normal) = (vec![Complex::default(); voxels], vec![Complex::default(); voxels]);
    exact.adjoint(&double(&d), &mut exact_image)?;
    exact.adjoint(&exact_values[0], &mut exact_normal)?;

    println!(
        "{samples} samples, {coils} coils, {n} x {n} voxels, {:.1} to {:.1} Hz, {:.0} ms",
        map[end(false)],
        map[end(true)],
        1e3 * READOUT
    );
    println!(
        "tolerance  segments nodes  forward   adjoint   one voxel normal    no map   nodes   (bound)   transforms"
    );
    for tolerance in [1e-2, 1e-3, 1e-4, 1e-5] {
        let options = Options { tolerance, threads, device: device.clone(), ..Options::default() };
        let through = |normal: Normal| Options { normal, ..options.clone() };
        let single = Plan::new(&Geometry::new(&dims, &axes).field_map(&map, &times), &through(Normal::Toeplitz))?;
        let mut errors = Vec::new();
        for (image, wanted) in images.iter().zip(&exact_values) {
            let mut values = vec![Complex::default(); samples];
            single.forward(image, &mut values)?;
            errors.push(distance(&values, wanted));
        }
        let (mut image, mut normal) = (vec![Complex::default(); voxels], vec![Complex::default(); voxels]);
        single.adjoint(&d, &mut image)?;
        single.normal(&x, &mut normal)?;
        let data = complexes(samples * coils);
        let time = |geometry: &Geometry<'_, f32>, normal: Normal| -> Result<f64> {
            let plan = Plan::new(geometry, &through(normal))?;
            let mut image = vec![Complex::default(); voxels];
            let mut seconds = Vec::new();
            for run in 0..=RUNS {
                let started = Instant::now();
                plan.cg(&data, &mut image, &CgOptions { iterations: ITERATIONS, ..CgOptions::default() })?;
                if run > 0 {
                    seconds.push(1e3 * started.elapsed().as_secs_f64());
                }
            }
            seconds.sort_by(f64::total_cmp);
            Ok(seconds[RUNS / 2])
        };
        let info = single.info();
        let none = time(&plain, Normal::Toeplitz)?;
        println!(
            "{tolerance:8.0e}  {:8} {:5}  {:.2e}  {:.2e}  {:.2e}  {:.2e}  {none:6.2}  {:6.2}  ({:6.2})  {:6.2} ms",
            info.segments,
            info.nodes,
            errors[0],
            distance(&image, &exact_image),
            errors[1].max(errors[2]),
            distance(&normal, &exact_normal),
            time(&mapped, Normal::Toeplitz)?,
            (info.nodes + 3) as f64 * none,
            time(&mapped, Normal::Transforms)?
        );
        let chosen = Plan::new(&mapped, &options)?.info();
        println!("          by cost: {}", if chosen.toeplitz { "nodes" } else { "transforms" });
    }
    Ok(())
}

/// Returns the distance from the exact result, relative to its norm.
fn distance(result: &[Complex<f32>], exact: &[Complex<f64>]) -> f64 {
    let difference =
        |(a, b): (&Complex<f32>, &Complex<f64>)| (Complex::new(f64::from(a.re), f64::from(a.im)) - b).norm_sqr();
    let size: f64 = exact.iter().map(|z| z.norm_sqr()).sum();
    (result.iter().zip(exact).map(difference).sum::<f64>() / size).sqrt()
}

/// Returns a smooth map from -40.6 to 128.4 Hz.
fn smooth(n: usize) -> Vec<f32> {
    let at = |i: usize| {
        let (x, y) = ((i % n) as f64 / n as f64, (i / n) as f64 / n as f64);
        (TAU * (0.7 * x + 0.4 * y)).sin() + 0.6 * (TAU * (1.3 * y - 0.5 * x) + 1.0).cos()
    };
    let all: Vec<f64> = (0..n * n).map(at).collect();
    let (low, high) = all.iter().fold((f64::MAX, f64::MIN), |(l, h), &x| (l.min(x), h.max(x)));
    all.iter().map(|x| (-40.6 + 169.0 * (x - low) / (high - low)) as f32).collect()
}

/// Reads a square map from a .npy file.
fn read(path: &str) -> Result<(usize, Vec<f32>)> {
    let bad = |why: String| Error::new(ErrorKind::BadFile, format!("{path}: {why}"));
    let bytes = std::fs::read(path).map_err(|e| bad(e.to_string()))?;
    if bytes.len() < 10 || &bytes[..8] != b"\x93NUMPY\x01\x00" {
        return Err(bad("no file .npy of version 1".into()));
    }
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    if !String::from_utf8_lossy(&bytes[10..start.min(bytes.len())]).contains("'<f4'") {
        return Err(bad("its numbers are not float32".into()));
    }
    let map: Vec<f32> = bytes[start..].chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    let n = (map.len() as f64).sqrt().round() as usize;
    if n * n != map.len() || n == 0 {
        return Err(bad(format!("{} numbers are no square", map.len())));
    }
    Ok((n, map))
}
