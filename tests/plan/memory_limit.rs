//! Plans with a memory limit. tests/memory.rs compares estimates with the allocated memory.

use crate::common::*;
use recon::{
    CgOptions, Complex, Density, Device, ErrorKind, Geometry, Method, Normal, Options, Plan, Result, ScanSize,
};

/// The estimate for an operation is sufficient as the memory limit of a plan for that operation.
#[test]
fn estimates_are_sufficient_as_memory_limits() {
    let mut random = Random::fresh();
    for case in 0..60 {
        let dims: Vec<usize> = (0..2 + case % 2).map(|_| 4 + random.below(20)).collect();
        let (samples, coils) = (50 + random.below(3000), 1 + random.below(3));
        let voxels: usize = dims.iter().product();
        let mut k = random.trajectory::<f32>(dims.len(), samples);
        // Gridding requires samples at the centre of k-space.
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
            threads: [1, 2, 16][case % 3],
            memory_limit,
            normal,
            method,
            ..Default::default()
        };
        let size = ScanSize::of(&geometry).unwrap();
        let estimate = Plan::<f32>::memory(&size, &options(None)).unwrap().host;
        let data = random.complexes::<f32>(samples * coils);
        let mut image = poisoned::<f32>(voxels * if combined { 1 } else { coils });
        let x = random.complexes::<f32>(image.len());
        let cg = CgOptions { iterations: 2, ..Default::default() };
        let run = |name: &str, limit: usize, call: &mut dyn FnMut(&Plan<f32>) -> Result<()>| {
            let result = Plan::new(&geometry, &options(Some(limit))).and_then(|plan| call(&plan));
            result.unwrap_or_else(|e| {
                panic!("{name}, {dims:?}, {samples} samples, {coils} coils, seed {}: {e}", random.seed)
            });
        };
        run("adjoint", estimate.transform, &mut |p| p.adjoint(&data, &mut image));
        run("weighted adjoint", estimate.transform, &mut |p| p.weighted_adjoint(&data, &mut image));
        run("grid", estimate.grid, &mut |p| p.grid(&data, &mut image));
        run("normal", estimate.normal, &mut |p| p.normal(&x, &mut image));
        run("cg", estimate.cg, &mut |p| p.cg(&data, &mut image, &cg).map(drop));
        run("density", estimate.density, &mut |p| p.density(Density::default()).map(drop));
    }
}

#[test]
fn errors_for_memory_limits_give_sufficient_bytes() {
    let mut random = Random::fresh();
    let k = random.trajectory::<f32>(3, 500);
    let d = random.complexes(500);
    let geometry = Geometry::new(&[20, 20, 20], &slices(&k));
    let bytes_in = |message: &str| -> usize {
        let words: Vec<&str> = message.split([' ', ',', ':']).collect();
        let at = words.iter().position(|w| *w == "needs").unwrap();
        words[at + 1].parse().unwrap()
    };
    let plan = |limit, normal| {
        let options = Options { memory_limit: Some(limit), normal, ..Options::default() };
        Plan::new(&geometry, &options)
    };
    let e = plan(1000, Normal::Auto).err().unwrap();
    assert_eq!(e.kind(), ErrorKind::MemoryLimit);
    let needed = bytes_in(e.message());
    let small = plan(needed, Normal::Auto).unwrap();
    assert!(!small.info().toeplitz, "Q does not fit and is not used");
    assert!(small.info().host_bytes <= needed);
    let e = small.cg(&d, &mut poisoned(8000), &CgOptions::default()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::MemoryLimit);
    let enough = plan(bytes_in(e.message()), Normal::Auto).unwrap();
    enough.cg(&d, &mut poisoned(8000), &CgOptions::default()).unwrap();
    let e = plan(needed, Normal::Toeplitz).unwrap().normal(&vec![Complex::default(); 8000], &mut poisoned(8000));
    assert_eq!(e.unwrap_err().kind(), ErrorKind::MemoryLimit);
}
