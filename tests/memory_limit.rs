//! Plans under a memory limit; tests/memory.rs compares what is told with what is taken.

mod common;

use common::*;
use recon::{CgOptions, Density, Device, Geometry, Method, Normal, Options, Plan, Result, ScanSize};

/// What is told of an operation's memory is enough as the memory limit of a plan for it.
#[test]
fn memory_that_was_told_serves_as_a_limit() {
    let mut random = Random::fresh();
    for case in 0..60 {
        let dims: Vec<usize> = (0..2 + case % 2).map(|_| 4 + random.below(20)).collect();
        let (samples, coils) = (50 + random.below(3000), 1 + random.below(3));
        let voxels: usize = dims.iter().product();
        let mut k = random.trajectory::<f32>(dims.len(), samples);
        // Gridding wants the centre of k-space.
        k.iter_mut().for_each(|k| k[0] = 0.0);
        let (k, weights) = (slices(&k), vec![1f32; samples]);
        let maps = random.complexes::<f32>(voxels * coils);
        let mut geometry = Geometry::new(&dims, &k).coils(coils);
        let combined = random.below(2) == 0;
        geometry.coil_maps = combined.then_some(&maps[..]);
        geometry.weights = (random.below(2) == 0).then_some(&weights[..]);
        let normal = [Normal::Auto, Normal::Toeplitz, Normal::Transforms][random.below(3)];
        let method = [Method::Nufft, Method::Exact][random.below(2)];
        let options = |memory_limit| Options {
            device: Device::Cpu,
            threads: 1 + case % 2,
            memory_limit,
            normal,
            method,
            ..Default::default()
        };
        let size = ScanSize::of(&geometry);
        let told = Plan::<f32>::memory(&size, &options(None)).unwrap().host;
        let data = random.complexes::<f32>(samples * coils);
        let mut image = poisoned::<f32>(voxels * if combined { 1 } else { coils });
        let x = random.complexes::<f32>(image.len());
        let cg = CgOptions { iterations: 2, ..Default::default() };
        let run = |name: &str, limit: usize, call: &mut dyn FnMut(&Plan<f32>) -> Result<()>| {
            let made = Plan::new(&geometry, &options(Some(limit))).and_then(|plan| call(&plan));
            made.unwrap_or_else(|e| {
                panic!("{name}, {dims:?}, {samples} samples, {coils} coils, seed {}: {e}", random.seed)
            });
        };
        run("adjoint", told.transform, &mut |p| p.fhd(&data, &mut image));
        run("weighted adjoint", told.transform, &mut |p| p.weighted_fhd(&data, &mut image));
        run("grid", told.grid, &mut |p| p.grid(&data, &mut image));
        run("normal", told.normal, &mut |p| p.normal(&x, &mut image));
        run("cg", told.cg, &mut |p| p.cg(&data, &mut image, &cg).map(drop));
        run("density", told.density, &mut |p| p.density(Density::default()).map(drop));
    }
}
