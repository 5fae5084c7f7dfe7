//! Each window at all widths and oversampling factors, compared with direct sums in double precision.

mod common;

use common::transforms::*;
use common::*;
use recon::nufft::gridding_params::{choose, WindowRequest};
use recon::{ErrorKind, Options, Real, Window};

fn survey<T: Real>(window: Window, smallest: i32) {
    let mut random = Random::fresh();
    for dims in SIZES {
        for exponent in 1..=smallest {
            let tolerance = 10f64.powi(-exponent);
            let k = random.trajectory::<T>(dims.len(), 700);
            match errors(&k, dims, &nufft(window, tolerance), &mut random) {
                Ok(errors) => {
                    for (error, name) in errors.into_iter().zip(["adjoint", "forward"]) {
                        assert!(
                            error <= tolerance,
                            "{name} {} {window:?} {dims:?}: {error:e} > {tolerance:e}, seed {}",
                            T::NAME,
                            random.seed
                        );
                    }
                }
                // Only the Gaussian and the bilinear window may reject a tolerance, and only below their reachable
                // error.
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::ToleranceOutOfRange);
                    let reach = match window {
                        Window::Minimax | Window::KaiserBessel => 0.0,
                        Window::Gaussian => 1e-5,
                        Window::Bilinear => 0.3,
                    };
                    assert!(tolerance < reach, "{window:?} refuses {tolerance:e} for {dims:?}: {e}");
                }
            }
        }
    }
}

#[test]
fn minimax_keeps_the_tolerance_f32() {
    survey::<f32>(Window::Minimax, 6);
}

#[test]
fn minimax_keeps_the_tolerance_f64() {
    survey::<f64>(Window::Minimax, 12);
}

#[test]
fn kaiser_bessel_keeps_the_tolerance_f32() {
    survey::<f32>(Window::KaiserBessel, 6);
}

#[test]
fn kaiser_bessel_keeps_the_tolerance_f64() {
    survey::<f64>(Window::KaiserBessel, 12);
}

#[test]
fn gaussian_keeps_the_tolerance_f32() {
    survey::<f32>(Window::Gaussian, 6);
}

#[test]
fn gaussian_keeps_the_tolerance_f64() {
    survey::<f64>(Window::Gaussian, 12);
}

#[test]
fn bilinear_keeps_the_tolerance() {
    survey::<f32>(Window::Bilinear, 2);
    let mut random = Random::fresh();
    for dims in SIZES {
        let k = random.trajectory::<f64>(dims.len(), 500);
        for tolerance in [0.5, 0.35] {
            for error in errors(&k, dims, &nufft(Window::Bilinear, tolerance), &mut random).unwrap() {
                assert!(error <= tolerance, "{dims:?}: {error} > {tolerance}, seed {}", random.seed);
            }
        }
    }
}

#[test]
fn the_default_tolerance_is_1e_5_or_the_windows_best() {
    let mut random = Random::fresh();
    let k = random.trajectory::<f32>(2, 500);
    let default = (Window::default(), 1e-5);
    for (window, bound) in [default, (Window::KaiserBessel, 1e-5), (Window::Gaussian, 1e-5), (Window::Bilinear, 0.25)] {
        for error in errors(&k, &[30, 20], &nufft(window, 0.0), &mut random).unwrap() {
            assert!(error <= bound, "{window:?}: {error}, seed {}", random.seed);
        }
    }
}

/// Checks all widths and oversampling factors that some tolerance needs, with few samples, so that errors do not
/// average out.
#[test]
fn every_width_and_oversampling_keeps_the_tolerance_with_few_samples() {
    fn check<T: Real>(window: Window, smallest: f64, widths: std::ops::RangeInclusive<usize>) {
        let mut random = Random::fresh();
        let sizes: [&[usize]; 10] = [
            &[24, 3],
            &[40, 1],
            &[5, 31],
            &[2, 2],
            &[64, 1],
            &[9, 8, 3],
            &[1, 20, 1],
            &[6, 1, 7],
            &[1, 1, 1],
            &[4, 1, 1],
        ];
        let mut of_width = std::collections::BTreeMap::<usize, Vec<(f64, &[usize], f64)>>::new();
        for step in 0..(smallest / 0.11) as usize {
            let tolerance = 10f64.powf(-0.11 * (step + 5) as f64);
            // Two sizes each, because selecting one window takes long.
            for dims in [sizes[2 * step % sizes.len()], sizes[(2 * step + 1) % sizes.len()]] {
                for oversampling in (0..=12).map(|step| 1.25 + 0.0625 * f64::from(step)) {
                    let request = WindowRequest { oversampling, ..WindowRequest::new(window, tolerance) };
                    if let Ok(choice) = choose(request, dims, T::EPSILON, |_, _| 1.0) {
                        of_width.entry(choice.shape.width()).or_default().push((tolerance, dims, oversampling));
                    }
                }
            }
        }
        let missing = widths.clone().find(|width| !of_width.contains_key(width));
        assert!(missing.is_none(), "{window:?}: no tolerance needs width {missing:?}");
        let mut worst = 0f64;
        for (width, cases) in of_width {
            for _ in 0..20 {
                let (tolerance, dims, oversampling) = cases[random.below(cases.len())];
                let samples = [1, 2, 7][random.below(3)];
                let mut k = random.trajectory::<T>(dims.len(), samples);
                let in_corners = random.below(3) == 0;
                if in_corners {
                    let corners = corners::<T>(dims.len());
                    for m in 0..samples {
                        let corner = random.below(corners[0].len());
                        k.iter_mut().zip(&corners).for_each(|(k, corners)| k[m] = corners[corner]);
                    }
                }
                let bound = excess(window, width) * tolerance;
                // Few values, each a sum over all voxels, do not average: forward has the larger bound.
                let bounds = [bound, 1.5 * bound];
                // The plan makes the same choice, the narrowest window at this oversampling.
                let options = Options { oversampling, threads: 1, ..nufft(window, tolerance) };
                let what = format!(
                    "{} {window:?} width {width} oversampling {oversampling} {dims:?}, {samples} samples, in corners \
                     {in_corners}, seed {}",
                    T::NAME,
                    random.seed
                );
                let errors = errors_by(fair_distance, &k, dims, &options, &mut random).expect(&what);
                for ((error, bound), name) in errors.into_iter().zip(bounds).zip(["adjoint", "forward"]) {
                    worst = worst.max(error / bound);
                    assert!(error <= bound, "{name} {what}: {error:e}, tolerance {tolerance:e}");
                }
            }
        }
        println!("{} {window:?}: at worst {worst:.2} of the bound, seed {}", T::NAME, random.seed);
    }
    check::<f64>(Window::Minimax, 13.0, 2..=16);
    check::<f32>(Window::Minimax, 6.2, 2..=9);
    check::<f64>(Window::KaiserBessel, 13.0, 2..=16);
    check::<f32>(Window::KaiserBessel, 6.2, 2..=10);
    check::<f64>(Window::Gaussian, 6.5, 2..=16);
    check::<f32>(Window::Gaussian, 6.2, 2..=16);
}

/// Runs the tests at all levels of the vector unit, not only at this machine's best one.
#[test]
fn every_level_of_the_vector_unit_passes() {
    again_at_other_levels();
}
