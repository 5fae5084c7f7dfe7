//! Strong decay: the tolerance is met, or the plan is refused with the voxel and its rate.

mod common;

use common::decay::{sweep, DECAY_TIMES};
use common::*;
use recon::{CgOptions, Complex, Device, Geometry, Method, Options, Plan, Trajectory};

#[test]
fn decay_of_any_strength_meets_the_tolerance() {
    let mut random = Random::fresh();
    let (mut beyond, mut refused) = sweep::<f32>(&Device::Cpu, &[1e-3, 1e-5], &mut random);
    let (more, also) = sweep::<f64>(&Device::Cpu, &[1e-5, 1e-9], &mut random);
    beyond.extend(more);
    refused += also;
    println!("{refused} plans refused");
    assert!(beyond.is_empty(), "{} cases\n{}", beyond.len(), beyond.join("\n"));
    // Only maps whose slowest voxel has no signal left may be refused.
    let most = 2 * 6 * DECAY_TIMES.iter().filter(|x| **x >= 100.0).count();
    assert!(refused <= most, "{refused} plans refused");
}

/// A head-sized disc with some structure.
fn object(n: usize) -> Vec<Complex<f64>> {
    let r = voxels(&[n, n]);
    let value = |i: usize| {
        let (x, y) = (r[0][i] / n as f64, r[1][i] / n as f64);
        let inside = |a: f64, b: f64| f64::from((x / a).powi(2) + (y / b).powi(2) < 1.0);
        Complex::new(inside(0.42, 0.36) - 0.6 * inside(0.2, 0.12), 0.3 * inside(0.07, 0.09))
    };
    (0..n * n).map(value).collect()
}

/// The distance of CG with all defaults in f32 from CG with exact sums in f64, for these rates.
fn distance_from_exact(interleaves: usize, per_shot: usize, rates: &[f64]) -> f64 {
    let n = 64;
    let trajectory = Trajectory::spiral(interleaves, per_shot, n as f64 / (2 * interleaves) as f64, 1.0).unwrap();
    let k: Vec<Vec<f64>> = (0..2).map(|a| trajectory.axis_as::<f64>(a)).collect();
    let times: Vec<f64> = (0..k[0].len()).map(|m| 0.02 * (m % per_shot) as f64 / (per_shot - 1) as f64).collect();
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
    for (interleaves, per_shot) in [(8, 1600), (4, 2000), (16, 900)] {
        for (count, rate) in [(0, 0.0), (1, 1000.0), (1, 1250.0), (5, 900.0), (1, 2000.0)] {
            let mut rates = vec![25.0; 64 * 64];
            for _ in 0..count {
                rates[random.below(64 * 64)] = rate;
            }
            let error = distance_from_exact(interleaves, per_shot, &rates);
            let what = format!("{interleaves} interleaves, {count} voxels of {rate}: {error:.2e}, seed {}", random.seed);
            println!("{what}");
            assert!(error <= 3e-3, "{what}");
        }
    }
}
