//! Arrays of more than 2^31 and 2^32 bytes: all indices of the arithmetic must be wide enough. This program has only
//! one test, because it needs most of the memory of a small machine.

mod common;

use common::*;
use recon::{Complex, Geometry, Method, Options, Plan};

/// Maximum memory of the test, and some for other programs.
const NEEDED: u64 = 12 << 30;

/// Returns the bytes of free memory, or `None` if the system does not report it.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Computes few samples on a huge grid, so that direct sums are cheap. The grid has more than 2^32 bytes, the image
/// more than 2^31.
fn a_large_grid() {
    let dims = [648usize, 648, 656];
    let (samples, tolerance) = (300, 1e-2);
    let mut random = Random::fresh();
    let k = random.trajectory::<f32>(3, samples);
    let options = Options { method: Method::Nufft, tolerance, threads: 2, ..Options::default() };
    let plan = Plan::new(&Geometry::new(&dims, &slices(&k)), &options).unwrap();
    let cells: usize = plan.info().grid.iter().product();
    assert!(cells * 8 > 1 << 32, "the grid is too small for this test: {:?}", plan.info().grid);
    let total = plan.image_len();

    // Voxels at both ends, on both sides of byte 2^31, and at random places.
    let byte = 1usize << 31;
    let mut places = vec![0, 1, total - 2, total - 1, byte / 8 - 1, byte / 8, byte / 8 + 1];
    places.extend((0..60).map(|_| ((random.uniform() + 0.5) * total as f64) as usize));
    places.sort_unstable();
    places.dedup();
    let strides = [1, dims[0], dims[0] * dims[1]];
    let r: Vec<Vec<f64>> = (0..3)
        .map(|a| places.iter().map(|i| (i / strides[a] % dims[a]) as f64 - (dims[a] / 2) as f64).collect())
        .collect();
    let k = wide_lists(&k);

    let x = random.complexes::<f32>(places.len());
    let mut image = vec![Complex::<f32>::default(); total];
    places.iter().zip(&x).for_each(|(&i, &x)| image[i] = x);
    let mut values = poisoned(samples);
    plan.forward(&image, &mut values).unwrap();
    let error = distance(&values, &direct(-1.0, &r, &wide(&x), &k));
    // The tolerance is for the mean over many positions, and these are few.
    assert!(error < 3.0 * tolerance, "forward: {error:e}, seed {}", random.seed);

    let d = random.complexes::<f32>(samples);
    plan.adjoint(&d, &mut image).unwrap();
    let got: Vec<Complex<f32>> = places.iter().map(|&i| image[i]).collect();
    let error = distance(&got, &direct(1.0, &k, &wide(&d), &r));
    assert!(error < 3.0 * tolerance, "adjoint: {error:e}, seed {}", random.seed);
}

/// Computes many frames of a small plan, so that k-space has more than 2^32 bytes.
fn a_long_scan() {
    let (dims, samples, coils) = ([16usize, 16], 4096, 2);
    let frames = (1usize << 29) / (samples * coils) + 3;
    let mut random = Random::fresh();
    let k = random.trajectory::<f32>(2, samples);
    let axes = slices(&k);
    let mut geometry = Geometry::new(&dims, &axes).coils(coils);
    geometry.frames = frames;
    let tolerance = 1e-2;
    let plan = Plan::new(&geometry, &Options { method: Method::Nufft, tolerance, ..Options::default() }).unwrap();
    assert!(plan.kspace_len() * 8 > 1 << 32);
    let (k, r) = (wide_lists(&k), voxels(&dims));

    // Coil images at the ends, and on both sides of bytes 2^31 and 2^32 of k-space.
    let arrays = frames * coils;
    let at = |byte: usize| byte / 8 / samples;
    let places = [0, 1, at(1 << 31) - 1, at(1 << 31), at(1 << 32) - 1, at(1 << 32), arrays - 2, arrays - 1];
    let mut kspace = vec![Complex::<f32>::default(); plan.kspace_len()];
    for place in places {
        kspace[place * samples..][..samples].copy_from_slice(&random.complexes(samples));
    }
    let mut image = poisoned::<f32>(plan.image_len());
    plan.adjoint(&kspace, &mut image).unwrap();
    for (i, got) in image.chunks_exact(256).enumerate() {
        match places.contains(&i) {
            true => {
                let d = wide(&kspace[i * samples..][..samples]);
                let error = distance(got, &direct(1.0, &k, &d, &r));
                assert!(error < tolerance, "adjoint, coil image {i}: {error:e}, seed {}", random.seed);
            }
            false => assert!(got.iter().all(|z| *z == Complex::default()), "adjoint, coil image {i}"),
        }
    }
    for (i, image) in image.chunks_exact_mut(256).enumerate() {
        match places.contains(&i) {
            true => image.copy_from_slice(&random.complexes(256)),
            false => image.fill(Complex::default()),
        }
    }
    plan.forward(&image, &mut kspace).unwrap();
    for (i, got) in kspace.chunks_exact(samples).enumerate() {
        match places.contains(&i) {
            true => {
                let error = distance(got, &direct(-1.0, &r, &wide(&image[i * 256..][..256]), &k));
                assert!(error < tolerance, "forward, coil image {i}: {error:e}, seed {}", random.seed);
            }
            false => assert!(got.iter().all(|z| *z == Complex::default()), "forward, coil image {i}"),
        }
    }
}

#[test]
fn indices_hold_beyond_4_gib() {
    match available() {
        Some(bytes) if bytes >= NEEDED => {
            a_large_grid();
            a_long_scan();
        }
        Some(bytes) => {
            say(&format!("skipped: arrays beyond 4 GiB, because {} MiB of memory are free, not 12 GiB", bytes >> 20));
        }
        None => say("skipped: arrays beyond 4 GiB, because the system does not say how much memory is free"),
    }
}
