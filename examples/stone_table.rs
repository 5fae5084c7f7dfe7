//! The quality table of Stone et al. 2008 on our own phantom: gridding and conjugate gradients, without and with noise,
//! without a prior and with an anatomical prior.
//!
//! cargo run --release --example stone_table -- [matrix, default 128]
//!
//! The scan is a kooshball of 1,176 spokes x 242 samples (284,592) for a 128^3 image of the ellipsoid phantom of Koay
//! et al. 2007. This is far below the Nyquist rate at the edge of k-space. For a different matrix both numbers are
//! scaled with it. Errors are at the best complex scale. The reference of the anatomical prior is an image of the same
//! anatomy with a different contrast: the phantom's ellipsoids with different densities. It has the same borders but
//! different intensities. The last lines are the energy of an image, if the machine has counters.

mod common;

use common::energy::Meter;
use recon::metrics::{compare, Metrics, Scale};
use recon::phantom::{add_noise, Ellipsoid, Phantom};
use recon::{CgOptions, Complex, Density, Geometry, Options, Plan, Prior, Result, Trajectory};

/// RMS of the samples over RMS of the noise. The centre of k-space dominates the samples, and ramp weights amplify the
/// noise away from the centre. With this much noise gridding loses as much as in the paper, about 1 dB.
const SNR: f64 = 600.0;

fn main() -> Result<()> {
    let n = common::matrix(128)?;
    let dims = [n; 3];
    let scaled = |full: usize, power: i32| (full as f64 * (n as f64 / 128.0).powi(power)).round() as usize;
    let trajectory = Trajectory::radial3d(scaled(1176, 2), scaled(121, 1) * 2)?;
    let phantom = Phantom::shepp_logan_3d();
    let truth: Vec<Complex<f32>> = phantom.image(&dims, 2)?.into_iter().map(|x| Complex::new(x as f32, 0.0)).collect();
    let clean = phantom.kspace(&dims, &trajectory.axes(), None, 0)?;
    let reference: Vec<f32> = other_contrast(&phantom)?.image(&dims, 1)?.into_iter().map(|x| x as f32).collect();

    let k: Vec<Vec<f32>> = (0..3).map(|axis| trajectory.axis_as(axis)).collect();
    let k: Vec<&[f32]> = k.iter().map(|k| &k[..]).collect();
    let options = Options { tolerance: 1e-5, ..Options::default() };
    let plan = Plan::new(&Geometry::new(&dims, &k), &options)?;
    let weights = plan.density(Density::Ramp)?;
    let gridding = Plan::new(&Geometry::new(&dims, &k).weights(&weights), &options)?;

    println!("{} samples to {n}^3, percent error and PSNR", trajectory.samples());
    println!("{:<42} {:>16} {:>16}", "", "without noise", format!("SNR {SNR}"));
    let mut rows: Vec<(String, Vec<Metrics>)> = Vec::new();
    for noisy in [false, true] {
        let mut data = clean.clone();
        if noisy {
            add_noise(&mut data, SNR, 1)?;
        }
        let data = common::narrow(&data);
        let mut image = vec![Complex::new(0.0, 0.0); n * n * n];
        let mut add = |name: String, image: &[Complex<f32>]| -> Result<()> {
            let metrics = compare(image, &truth, Scale::Best, None)?;
            match rows.iter_mut().find(|(row, _)| *row == name) {
                Some((_, columns)) => columns.push(metrics),
                None => rows.push((name, vec![metrics])),
            }
            Ok(())
        };
        gridding.grid(&data, &mut image)?;
        add("gridding, ramp weights".into(), &image)?;
        for iterations in [20, 60] {
            plan.cg(&data, &mut image, &CgOptions { iterations, ..CgOptions::default() })?;
            add(format!("CG, {iterations} iterations"), &image)?;
        }
        for (name, lambda, prior) in [
            ("finite differences", 1.0, Prior::Differences),
            ("anatomical prior", 3.0, Prior::Anatomical { reference: &reference, edge: 0.05 }),
        ] {
            let cg = CgOptions { iterations: 60, lambda, prior, ..CgOptions::default() };
            plan.cg(&data, &mut image, &cg)?;
            add(format!("CG, 60 iterations, {name}"), &image)?;
        }
    }
    for (name, columns) in &rows {
        print!("{name:<42}");
        for m in columns {
            print!(" {:>6.1} % {:>4.1} dB", m.percent_error, m.psnr_db);
        }
        println!();
    }
    println!();
    let data = common::narrow(&clean);
    let mut image = vec![Complex::default(); n * n * n];
    let cg = CgOptions { iterations: 60, ..CgOptions::default() };
    let meter = Meter::new(plan.info().on_gpu.then_some(0));
    meter.print("CG, 60 iterations, an image", || plan.cg(&data, &mut image, &cg).map(drop))
}

/// Returns the phantom with the same borders and different intensities.
fn other_contrast(phantom: &Phantom) -> Result<Phantom> {
    let shapes = phantom.shapes();
    let changed = shapes
        .iter()
        .enumerate()
        .map(|(i, shape)| Ellipsoid { density: 0.2 + 0.3 * ((i * 7 % 5) as f64), ..*shape })
        .collect();
    Phantom::new(phantom.ndim(), changed)
}
