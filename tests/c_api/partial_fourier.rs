//! Partial Fourier: results as in Rust, warnings and errors.

use crate::support::*;

const N: usize = 24;
const FIRST: usize = 7;
const SAMPLES: usize = N * (N - FIRST);

/// A Cartesian scan with two coils and two frames, without the first lines.
struct PartialScene<T: Number> {
    k: [Vec<T>; 2],
    data: Vec<Complex<T>>,
    maps: Vec<Complex<T>>,
}

impl<T: Number> PartialScene<T> {
    fn new() -> Self {
        let at = |i: usize| T::of((i as f64 - (N / 2) as f64) / N as f64);
        let x = (0..SAMPLES).map(|m| at(m % N)).collect();
        let y = (0..SAMPLES).map(|m| at(FIRST + m / N)).collect();
        let mut scene =
            PartialScene { k: [x, y], data: poisoned::<T>(SAMPLES * 2 * FRAMES), maps: poisoned::<T>(2 * N * N) };
        let g = scene.geometry();
        // SAFETY: arrays have the lengths documented.
        unsafe {
            ok(recon_phantom_kspace(&raw const g, null(), 0, 1, 0, scene.data.as_mut_ptr().cast()));
            ok(recon_phantom_coil_maps(&raw const g, scene.maps.as_mut_ptr().cast()));
        }
        scene
    }

    fn geometry(&self) -> recon_geometry {
        let mut g = init(recon_geometry_init);
        g.precision = T::PRECISION;
        g.dims = [N as u64, N as u64, 0];
        (g.samples, g.coils, g.frames) = (SAMPLES as u64, 2, FRAMES as u64);
        g.coordinates = [self.k[0].as_ptr().cast(), self.k[1].as_ptr().cast(), null()];
        g
    }
}

#[test]
fn partial_fourier_images_are_those_of_rust() {
    fn check<T: Number>() {
        let scene = PartialScene::<T>::new();
        let mut how = init(recon_partial_fourier_options_init);
        let defaults = recon::PartialFourierOptions::default();
        assert_eq!((how.method, how.iterations, how.tolerance), (1, 20, 5e-4));
        assert_eq!((defaults.iterations, defaults.tolerance), (20, 5e-4));
        let o = options(|o| o.device = 1);
        let rust_options = recon::Options { device: recon::Device::Cpu, threads: 2, ..Default::default() };
        let axes = [&scene.k[0][..], &scene.k[1][..]];
        for (number, method) in
            [recon::PartialFourierMethod::Homodyne, recon::PartialFourierMethod::Pocs].into_iter().enumerate()
        {
            for with_maps in [false, true] {
                let mut g = scene.geometry();
                let mut geometry = Geometry::new(&[N, N], &axes).coils(2);
                geometry.frames = FRAMES;
                if with_maps {
                    g.coil_maps = scene.maps.as_ptr().cast();
                    geometry = geometry.coil_maps(&scene.maps);
                }
                how.method = number as u32;
                let rust_how = recon::PartialFourierOptions { method, ..defaults };
                let images = if with_maps { 1 } else { 2 };
                let mut expected = poisoned::<T>(N * N * images * FRAMES);
                let plan = recon::PartialFourier::new(&geometry, &rust_options, &rust_how).unwrap();
                let found = plan.reconstruct(&scene.data, &mut expected).unwrap();
                let (mut image, mut report) = (poisoned::<T>(expected.len()), init(recon_partial_fourier_report_init));
                let (from, to) = (scene.data.as_ptr().cast(), image.as_mut_ptr().cast());
                // SAFETY: arrays have the lengths documented.
                unsafe {
                    ok(recon_partial_fourier(&raw const g, &raw const o, &raw const how, from, to, &raw mut report));
                }
                same(&image, &expected);
                assert_eq!((report.axis, report.iterations), (1, found.iterations as u64));
                assert_eq!((report.extent, report.change), (found.extent, found.change));
                assert_eq!(report.residual, found.residual);
                // Five samples on the short side are few.
                let texts = warnings();
                assert!(
                    texts.len() == 1
                        && texts[0].0 == recon_warning::RECON_WARNING_PARTIAL_FOURIER as u32
                        && texts[0].1.contains("narrow"),
                    "{texts:?}"
                );
                if number == 1 && !with_maps {
                    // The defaults, and no report.
                    let mut again = poisoned::<T>(image.len());
                    let to = again.as_mut_ptr().cast();
                    // SAFETY: as above.
                    unsafe { ok(recon_partial_fourier(&raw const g, &raw const o, null(), from, to, null_mut())) };
                    same(&again, &image);
                }
            }
        }
    }
    check::<f32>();
    check::<f64>();
}

#[test]
fn unsuitable_partial_fourier_calls_are_refused() {
    let scene = PartialScene::<f64>::new();
    let mut image = poisoned::<f64>(N * N * 2 * FRAMES);
    let mut refused = |change: &dyn Fn(&mut recon_geometry, &mut recon_options, &mut recon_partial_fourier_options),
                       status: recon_status,
                       words: &[&str]| {
        let mut g = scene.geometry();
        let mut o = options(|o| o.device = 1);
        let mut how = init(recon_partial_fourier_options_init);
        let mut report = init(recon_partial_fourier_report_init);
        change(&mut g, &mut o, &mut how);
        image.fill(Complex::new(POISON, POISON));
        let (from, to) = (scene.data.as_ptr().cast(), image.as_mut_ptr().cast());
        // SAFETY: arrays have the lengths documented.
        let result =
            unsafe { recon_partial_fourier(&raw const g, &raw const o, &raw const how, from, to, &raw mut report) };
        fails(result, status, words);
        untouched(&image);
        assert_eq!(report.iterations, 0);
    };
    refused(&|_, _, how| how.method = 2, RECON_UNKNOWN_VALUE, &["method is 2", "RECON_PARTIAL_FOURIER_POCS"]);
    refused(&|_, _, how| how.iterations = 0, RECON_INVALID_ARGUMENT, &["iterations"]);
    refused(&|_, _, how| how.tolerance = -1.0, RECON_INVALID_ARGUMENT, &["tolerance", "-1"]);
    refused(&|_, _, how| how.struct_size = 20, RECON_UNKNOWN_STRUCT_SIZE, &["recon_partial_fourier_options"]);
    refused(&|_, o, _| o.pointers_on_device = 1, RECON_UNSUPPORTED, &["pointers_on_device"]);
    refused(&|_, o, _| o.geometry_on_device = 1, RECON_UNSUPPORTED, &["geometry_on_device"]);
    refused(&|g, _, _| g.basis = 1, RECON_UNSUPPORTED, &["boxes"]);
    // The first lines only.
    refused(&|g, _, _| g.samples = (10 * N) as u64, RECON_INVALID_ARGUMENT, &["no side of k-space is missing"]);
    refused(&|g, _, _| g.samples = (8 * N) as u64, RECON_INVALID_ARGUMENT, &["too narrow", "2.0 above"]);
    let to = image.as_mut_ptr().cast();
    let (g, from) = (scene.geometry(), scene.data.as_ptr().cast());
    // SAFETY: null pointers are refused.
    unsafe {
        let status = recon_partial_fourier(&raw const g, null(), null(), null(), to, null_mut());
        fails(status, RECON_NULL_POINTER, &["kspace"]);
        let status = recon_partial_fourier(&raw const g, null(), null(), from, null_mut(), null_mut());
        fails(status, RECON_NULL_POINTER, &["image"]);
    }
}
