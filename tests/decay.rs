//! Strong decay: the tolerance is met, or plan creation fails with the voxel and its rate.

mod common;

use common::decay::{sweep, Rates, Scan, DECAY_TIMES};
use common::emulator::less_in_emulator;
use common::*;
use recon::{CgOptions, Complex, Device, Geometry, LambdaUnit, Method, Options, Plan, Trajectory};

#[test]
fn decay_of_any_strength_meets_the_tolerance() {
    let mut random = Random::fresh();
    let (mut beyond, mut refused) = sweep::<f32>(&Device::Cpu, &[1e-3, 1e-5], &mut random);
    let (more, also) = sweep::<f64>(&Device::Cpu, &[1e-5, 1e-9], &mut random);
    beyond.extend(more);
    refused += also;
    println!("{refused} plans refused");
    assert!(beyond.is_empty(), "{} cases\n{}", beyond.len(), beyond.join("\n"));
    // Only maps whose slowest voxel has no signal left may be rejected.
    let most = 2 * 6 * DECAY_TIMES.iter().filter(|x| **x >= 100.0).count();
    assert!(refused <= most, "{refused} plans refused");
}

/// Returns a head-sized disc with some structure.
fn object(n: usize) -> Vec<Complex<f64>> {
    let r = voxels(&[n, n]);
    let value = |i: usize| {
        let (x, y) = (r[0][i] / n as f64, r[1][i] / n as f64);
        let inside = |a: f64, b: f64| f64::from((x / a).powi(2) + (y / b).powi(2) < 1.0);
        Complex::new(inside(0.42, 0.36) - 0.6 * inside(0.2, 0.12), 0.3 * inside(0.07, 0.09))
    };
    (0..n * n).map(value).collect()
}

/// Returns the distance between CG with all defaults in f32 and CG with exact sums in f64, for these rates.
fn distance_from_exact(interleaves: usize, per_shot: usize, density: f64, rates: &[f64]) -> f64 {
    let n = 64;
    let trajectory = Trajectory::spiral(interleaves, per_shot, n as f64 / interleaves as f64, density).unwrap();
    // Both use the values of single precision.
    let k: Vec<Vec<f64>> =
        (0..2).map(|a| trajectory.axis_as::<f32>(a).iter().map(|k| f64::from(*k)).collect()).collect();
    let time = |m: usize| f64::from((0.02 * (m % per_shot) as f64 / (per_shot - 1) as f64) as f32);
    let times: Vec<f64> = (0..k[0].len()).map(time).collect();
    let axes = slices(&k);
    let mut geometry = Geometry::new(&[n, n], &axes);
    (geometry.decay_map, geometry.times) = (Some(rates), Some(&times[..]));
    let exact = Plan::new(&geometry, &Options { method: Method::Exact, ..Options::default() }).unwrap();
    let mut data = poisoned(times.len());
    exact.forward(&object(n), &mut data).unwrap();
    let transforms = Options { method: Method::Exact, normal: recon::Normal::Transforms, ..Options::default() };
    let mut wanted = poisoned(n * n);
    Plan::new(&geometry, &transforms).unwrap().cg(&data, &mut wanted, &CgOptions::default()).unwrap();
    let of = |x: &[f64]| x.iter().map(|x| *x as f32).collect::<Vec<f32>>();
    let (k, times, rates) = (k.iter().map(|k| of(k)).collect::<Vec<_>>(), of(&times), of(rates));
    let axes = slices(&k);
    let mut geometry = Geometry::new(&[n, n], &axes);
    (geometry.decay_map, geometry.times) = (Some(&rates[..]), Some(&times[..]));
    let plan = Plan::new(&geometry, &Options::default()).unwrap();
    let mut image = poisoned(n * n);
    plan.cg(&narrow(&data), &mut image, &CgOptions::default()).unwrap();
    println!("{} segments, {} nodes", plan.info().segments, plan.info().nodes);
    distance(&image, &wanted)
}

#[test]
fn one_voxel_of_strong_decay_leaves_the_image_as_it_is() {
    let mut random = Random::fresh();
    let spirals = [(8, 900, 0.7), (16, 500, 0.8), (4, 1800, 0.7)];
    let outliers = [(1, 1000.0), (1, 1250.0), (5, 900.0), (1, 2000.0)];
    for &(interleaves, per_shot, density) in &spirals[..less_in_emulator(3, 1)] {
        for &(count, rate) in &outliers[..less_in_emulator(4, 1)] {
            let mut rates = vec![25.0; 64 * 64];
            for _ in 0..count {
                rates[random.below(64 * 64)] = rate;
            }
            let error = distance_from_exact(interleaves, per_shot, density, &rates);
            let what =
                format!("{interleaves} interleaves, {count} voxels of {rate}: {error:.2e}, seed {}", random.seed);
            println!("{what}");
            assert!(error <= 3e-3, "{what}");
        }
    }
}

/// Checks the mean diagonal of E^H W E, the unit of lambda, with its formula.
#[test]
fn lambda_is_relative_to_the_mean_diagonal_at_any_decay() {
    let mut random = Random::fresh();
    for (rates, decay_time) in
        [(Rates::Outlier, 0.0), (Rates::Outlier, 200.0), (Rates::Smooth, 50.0), (Rates::Fast, 30.0)]
    {
        let scan = Scan::new([22, 20], rates, decay_time, true, &mut random);
        let weights: Vec<f64> = scan.times.iter().map(|_| random.uniform() + 0.6).collect();
        let data = random.complexes::<f64>(scan.times.len());
        let found = scan.with_geometry::<f64, _>(|geometry| {
            let plan = Plan::new(&geometry.clone().weights(&weights), &Options::default()).unwrap();
            let cg =
                CgOptions { iterations: 1, lambda: 0.25, lambda_unit: LambdaUnit::Relative, ..CgOptions::default() };
            plan.cg(&data, &mut poisoned(scan.decay.len()), &cg).unwrap().lambda
        });
        let diagonal =
            |rate: f64| -> f64 { scan.times.iter().zip(&weights).map(|(t, w)| w * (-2.0 * rate * t).exp()).sum() };
        let mean = scan.decay.iter().map(|rate| diagonal(*rate)).sum::<f64>() / scan.decay.len() as f64;
        let ratio = found / (0.25 * mean);
        println!("{rates:?} {decay_time}: {ratio}");
        assert!((ratio - 1.0).abs() < 1e-3, "{rates:?} {decay_time}: {ratio}, seed {}", random.seed);
    }
}
