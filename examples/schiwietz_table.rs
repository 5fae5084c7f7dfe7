//! The comparison of Schiwietz et al. 2006 (Proc. SPIE 6142:61423T) on our own phantom: gridding and filtered
//! backprojection of radial data, 504 and 248 spokes x 512 samples, 3 coils, to 256 x 256: errors and times.
//!
//! cargo run --release --example schiwietz_table -- [RUNS, default 9] [PICTURE.pgm]
//!
//! Spokes are spaced evenly, and by the golden angle. The coils surround the field of view. Images are combined by the
//! coils' own maps, and errors are at the best scale, relative to the phantom's image. No method can reproduce the
//! edges of that image, because k-space is limited. The noise is white, so that the windows of backprojection have an
//! effect. Times are medians for the coils' images with an existing plan.
//!
//! The picture shows the truth, then gridding and backprojection of 248 noisy golden-angle spokes.

use recon::metrics::{compare, Scale};
use recon::phantom::{add_noise, CoilModel, Phantom};
use recon::trajectory::SpokeOrder;
use recon::{Complex, Density, Error, ErrorKind, Filter, Geometry, Options, Plan, Result, Trajectory};
use std::io::Write;
use std::time::Instant;

const N: usize = 256;
const COILS: usize = 3;
/// RMS of the samples over RMS of the noise.
const SNR: f64 = 100.0;

/// A method and its name.
enum Method {
    Gridding,
    Backprojection(Filter),
}

fn main() -> Result<()> {
    let runs: usize = match std::env::args().nth(1) {
        None => 9,
        Some(text) => text.parse().ok().filter(|&runs| runs > 0).ok_or_else(|| {
            Error::new(ErrorKind::InvalidArgument, format!("'{text}' is no number of runs: say 1 or more"))
        })?,
    };
    let dims = [N, N];
    let phantom = Phantom::shepp_logan_2d();
    let truth = narrow(&phantom.image(&dims, 4)?.into_iter().map(|x| Complex::new(x, 0.0)).collect::<Vec<_>>());
    let coils = CoilModel::ring(COILS, 2)?;
    let maps = narrow(&coils.maps(&dims)?);
    let mut pictures = vec![truth.clone()];
    let methods = [
        ("gridding, ramp weights", Method::Gridding),
        ("backprojection, Ram-Lak", Method::Backprojection(Filter::RamLak)),
        ("backprojection, Shepp-Logan", Method::Backprojection(Filter::SheppLogan)),
        ("backprojection, cosine", Method::Backprojection(Filter::Cosine)),
        ("backprojection, Hamming", Method::Backprojection(Filter::Hamming)),
        ("backprojection, Hann", Method::Backprojection(Filter::Hann)),
    ];
    println!(
        "512 samples a spoke, {COILS} coils, to {N} x {N}: percent error and PSNR, milliseconds of the coils' images"
    );
    println!("{:<42} {:>18} {:>18} {:>8}", "", "without noise", format!("SNR {SNR}"), "ms");
    for (spokes, order) in [
        (504, SpokeOrder::Linear),
        (248, SpokeOrder::Linear),
        (504, SpokeOrder::GoldenAngle),
        (248, SpokeOrder::GoldenAngle),
    ] {
        let trajectory = Trajectory::radial2d(spokes, 512, order)?;
        let clean = phantom.kspace(&dims, &trajectory.axes(), Some(&coils), 0)?;
        let mut noisy = clean.clone();
        add_noise(&mut noisy, SNR, 1)?;
        let (clean, noisy) = (narrow(&clean), narrow(&noisy));
        let k: Vec<Vec<f32>> = (0..2).map(|axis| trajectory.axis_as(axis)).collect();
        let k = [&k[0][..], &k[1][..]];
        let options = Options { tolerance: 1e-3, ..Options::default() };
        let weights = Plan::new(&Geometry::new(&dims, &k), &options)?.density(Density::Ramp)?;
        let plan = Plan::new(&Geometry::new(&dims, &k).weights(&weights).coils(COILS), &options)?;
        let mut images = vec![Complex::default(); N * N * COILS];
        for (name, method) in &methods {
            let run = |data: &[Complex<f32>], images: &mut [Complex<f32>]| match method {
                Method::Gridding => plan.grid(data, images),
                Method::Backprojection(filter) => plan.fbp(*filter, data, images),
            };
            let mut cells = Vec::new();
            for data in [&clean, &noisy] {
                run(data, &mut images)?;
                let image = combined(&images, &maps);
                let m = compare(&image, &truth, Scale::Best, None)?;
                cells.push(format!("{:5.1} % {:4.1} dB", m.percent_error, m.psnr_db));
                let shown = matches!(method, Method::Gridding | Method::Backprojection(Filter::RamLak));
                if shown && std::ptr::eq(data, &noisy) && spokes == 248 && order == SpokeOrder::GoldenAngle {
                    pictures
                        .push(image.iter().map(|z| z * Complex::new(m.scale.re as f32, m.scale.im as f32)).collect());
                }
            }
            let mut seconds: Vec<f64> = Vec::new();
            for _ in 0..runs {
                let started = Instant::now();
                run(&noisy, &mut images)?;
                seconds.push(started.elapsed().as_secs_f64());
            }
            seconds.sort_by(f64::total_cmp);
            let order = if order == SpokeOrder::Linear { "even" } else { "golden" };
            let title = format!("{spokes} {order}, {name}");
            println!("{title:<42} {:>18} {:>18} {:>8.2}", cells[0], cells[1], 1e3 * seconds[runs / 2]);
        }
    }
    match std::env::args().nth(2) {
        Some(path) => draw(&path, &pictures),
        None => Ok(()),
    }
}

fn narrow(values: &[Complex<f64>]) -> Vec<Complex<f32>> {
    values.iter().map(|z| Complex::new(z.re as f32, z.im as f32)).collect()
}

/// Returns sum_c conj(S_c) x_c over sum_c |S_c|^2.
fn combined(images: &[Complex<f32>], maps: &[Complex<f32>]) -> Vec<Complex<f32>> {
    let at = |values: &[Complex<f32>], i: usize, c: usize| values[c * N * N + i];
    let voxel = |i: usize| {
        let sum: Complex<f32> = (0..COILS).map(|c| at(maps, i, c).conj() * at(images, i, c)).sum();
        sum / (0..COILS).map(|c| at(maps, i, c).norm_sqr()).sum::<f32>()
    };
    (0..N * N).map(voxel).collect()
}

/// Writes images side by side, y upwards, grey from 0 to half of the truth's maximum, the range of the head's interior.
fn draw(path: &str, images: &[Vec<Complex<f32>>]) -> Result<()> {
    let white = 0.5 * images[0].iter().map(|z| z.norm()).fold(0.0, f32::max);
    let row = |y: usize| images.iter().flat_map(move |image| image[y * N..(y + 1) * N].iter().map(|z| z.norm()));
    let pixels: Vec<u8> = (0..N).rev().flat_map(|y| row(y).map(|v| (255.0 * (v / white).min(1.0)) as u8)).collect();
    let mut file = std::fs::File::create(path).map_err(|e| Error::new(ErrorKind::IO, format!("{path}: {e}")))?;
    let write = write!(file, "P5\n{} {N}\n255\n", N * images.len()).and_then(|()| file.write_all(&pixels));
    write.map_err(|e| Error::new(ErrorKind::IO, format!("{path}: {e}")))
}
