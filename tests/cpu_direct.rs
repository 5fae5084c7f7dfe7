//! Speed of direct sums over lists on the CPU, with and without off-resonance and decay. Their values are checked in
//! src/backend/cpu/direct/mod.rs.

mod common;

use common::*;
use num_complex::Complex;
use recon::backend::cpu::direct::DirectSum;
use recon::backend::cpu::simd::Level;
use recon::backend::threads::Threads;
use recon::backend::OffResonance;

#[test]
#[ignore = "a measurement"]
fn pairs_a_second() {
    let mut random = Random::fresh();
    // A sum takes about a millisecond, so at least one of many is not disturbed by other programs.
    let (samples, voxels) = (1024, 3840);
    let d = random.complexes::<f32>(samples);
    let mut image = vec![Complex::new(0.0, 0.0); voxels];
    let times: Vec<f32> = random.reals(samples).iter().map(|t: &f32| 0.1 * t).collect();
    let f: Vec<f32> = random.reals(voxels).iter().map(|f: &f32| 400.0 * f).collect();
    let rates: Vec<f32> = random.reals(voxels).iter().map(|r: &f32| 100.0 * r.abs()).collect();
    for ndim in [2, 3] {
        let k: Vec<Vec<f32>> = (0..ndim).map(|_| random.reals(samples)).collect();
        let r: Vec<Vec<f32>> =
            (0..ndim).map(|_| random.reals(voxels).iter().map(|x: &f32| 100.0 * x).collect()).collect();
        for level in Level::all() {
            for count in [1, 2] {
                let threads = Threads::new(count).unwrap();
                let mut line = format!("{ndim}D {} {count} threads:", level.name());
                for (name, field, decay) in
                    [("no map", false, false), ("f", true, false), ("R", false, true), ("f and R", true, true)]
                {
                    let (field_map, decay_map) = (field.then_some(&f[..]), decay.then_some(&rates[..]));
                    let maps = OffResonance { field_map, decay_map, times: &times };
                    let list = slices(&r);
                    let sum = DirectSum::new(&threads, level, &slices(&k), &vec![200; ndim], Some(&list), Some(maps));
                    let sum = sum.unwrap();
                    let mut best = f64::INFINITY;
                    for _ in 0..200 {
                        let started = std::time::Instant::now();
                        sum.to_image(&threads, &d, &mut image).unwrap();
                        best = best.min(started.elapsed().as_secs_f64());
                    }
                    line += &format!("  {name} {:.2}", (samples * voxels) as f64 / best / 1e9);
                }
                say(&format!("{line}  10^9 pairs a second"));
            }
        }
    }
}
