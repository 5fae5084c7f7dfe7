//! Makes plans for any small geometry with any options, and runs the operations on them. Every call must return an
//! error or a result. It must never panic, and never access memory outside an array (cargo fuzz builds with
//! AddressSanitizer).
//!
//!     RUSTC_BOOTSTRAP=1 cargo fuzz run plan -- -max_total_time=60

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use recon::{CgOptions, Complex, Density, Geometry, Method, Normal, Options, Plan, Prior, Real, VoxelBasis, Window};

#[derive(Arbitrary, Debug)]
struct Input {
    double: bool,
    dims: Vec<u8>,
    coordinates: Vec<Vec<i16>>,
    odd_coordinate: Option<f64>,
    weights: Option<Vec<u8>>,
    coils: u8,
    frames: u8,
    maps: bool,
    voxels: Option<Vec<Vec<i8>>>,
    boxed: bool,
    method: u8,
    normal: u8,
    window: u8,
    tolerance: f64,
    memory_limit: Option<u32>,
    threads: u8,
    lambda: f32,
    prior: u8,
}

fuzz_target!(|input: Input| {
    if input.double {
        run::<f64>(&input)
    } else {
        run::<f32>(&input)
    }
});

fn run<T: Real>(input: &Input) {
    // Sizes are so small that a run takes milliseconds.
    let dims: Vec<usize> = input.dims.iter().take(4).map(|&n| n as usize % 40).collect();
    let scaled = |k: &i16| T::of(*k as f64 / 65536.0);
    let mut coordinates: Vec<Vec<T>> =
        input.coordinates.iter().take(4).map(|k| k.iter().take(500).map(scaled).collect()).collect();
    if let (Some(odd), Some(first)) = (input.odd_coordinate, coordinates.first_mut().and_then(|k| k.first_mut())) {
        *first = T::of(odd);
    }
    let k: Vec<&[T]> = coordinates.iter().map(|k| &k[..]).collect();
    let weights: Option<Vec<T>> = input.weights.as_ref().map(|w| w.iter().map(|&w| T::of(w as f64)).collect());
    let voxels: Option<Vec<Vec<T>>> = input
        .voxels
        .as_ref()
        .map(|lists| lists.iter().take(4).map(|r| r.iter().map(|&r| T::of(r as f64 / 3.0)).collect()).collect());
    let mut geometry = Geometry::new(&dims, &k);
    geometry.weights = weights.as_deref();
    geometry.coils = input.coils as usize % 4;
    geometry.frames = input.frames as usize % 3;
    geometry.voxels = voxels.as_ref().map(|lists| lists.iter().map(|r| &r[..]).collect());
    geometry.basis = if input.boxed { VoxelBasis::Box } else { VoxelBasis::Point };
    let maps = vec![Complex::new(T::of(0.5), T::of(0.25)); geometry.voxel_count().min(1 << 18) * geometry.coils];
    if input.maps {
        geometry.coil_maps = Some(&maps);
    }
    let options = Options {
        method: [Method::Auto, Method::Exact, Method::Nufft][input.method as usize % 3],
        normal: [Normal::Auto, Normal::Toeplitz, Normal::Transforms][input.normal as usize % 3],
        window: [Window::Minimax, Window::KaiserBessel, Window::Gaussian, Window::Bilinear][input.window as usize % 4],
        tolerance: input.tolerance,
        memory_limit: input.memory_limit.map(|m| m as usize),
        threads: 1 + input.threads as usize % 2,
        ..Options::default()
    };
    let Ok(plan) = Plan::new(&geometry, &options) else { return };
    let mut image = vec![Complex::new(T::ONE, T::ZERO); plan.image_len()];
    let mut kspace = vec![Complex::new(T::ONE, T::ZERO); plan.kspace_len()];
    let finite = |z: &[Complex<T>]| z.iter().all(|z| z.re.finite() && z.im.finite());
    plan.forward(&image, &mut kspace).expect("sizes and numbers are right");
    assert!(finite(&kspace));
    plan.adjoint(&kspace, &mut image).expect("sizes and numbers are right");
    assert!(finite(&image));
    // These calls may return an error: for lack of memory, because the centre of k-space has no weight, or because the
    // plan has no grid.
    let _ = plan.grid(&kspace, &mut image);
    let _ = plan.density(Density::Jackson);
    let _ = plan.coil_maps(&kspace, 8);
    let mut q = vec![Complex::default(); plan.q_len()];
    let _ = plan.q(&mut q);
    let prior = [Prior::Identity, Prior::Differences][input.prior as usize % 2];
    let cg = CgOptions { iterations: 2, lambda: input.lambda as f64, prior, ..CgOptions::default() };
    if plan.cg(&kspace, &mut image, &cg).is_ok() {
        assert!(finite(&image));
    }
}
