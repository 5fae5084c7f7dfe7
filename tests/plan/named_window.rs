//! Width and oversampling that are set: the reported error is met, and values that cannot meet the tolerance are
//! refused with a remedy.

use crate::common::*;
use recon::{
    Complex, Device, ErrorKind, Geometry, Method, Normal, Options, Plan, Real, ScanSize, Trajectory, WarningKind,
    Window,
};

/// Returns options with a given window; 0 for a width or oversampling that is not set.
fn window_options(window: Window, width: usize, oversampling: f64) -> Options {
    let options = Options { method: Method::Nufft, device: Device::Cpu, threads: 2, ..Options::default() };
    Options { window, width, oversampling, ..options }
}

/// Returns the errors of adjoint and forward compared with direct sums, and the error that the plan reports. The latter
/// is that of the worst voxel, averaged over positions. Random errors may exceed it by a tenth, which a tolerance
/// leaves as a margin. With a single axis of forty voxels they may exceed it by more.
fn errors<T: Real>(dims: &[usize], k: &[Vec<T>], options: &Options, random: &mut Random) -> ([f64; 2], f64) {
    let plan = Plan::new(&Geometry::new(dims, &slices(k)), options).unwrap();
    let info = plan.info();
    let at = format!("{dims:?} {options:?}: {info:?}");
    if options.width != 0 {
        assert_eq!(info.width, options.width, "{at}");
    }
    if options.oversampling != 0.0 {
        for (&g, &n) in info.grid.iter().zip(dims) {
            let minimum = (options.oversampling * n as f64 - 1e-9).max(2.0 * info.width as f64);
            // The next size with a fast FFT is near.
            assert!(g as f64 >= minimum && g as f64 <= 1.34 * minimum + 2.0, "{at}");
        }
    }
    let warned = plan.warnings().iter().any(|w| w.kind == WarningKind::Tolerance);
    assert_eq!(warned, options.tolerance == 0.0 && info.error > 1e-5, "{at}");
    let (d, x) = (random.complexes::<T>(plan.kspace_len()), random.complexes::<T>(plan.image_len()));
    let (mut image, mut values) = (poisoned(x.len()), poisoned(d.len()));
    plan.adjoint(&d, &mut image).unwrap();
    plan.forward(&x, &mut values).unwrap();
    let (k, r) = (wide_lists(k), voxels(dims));
    let (exact_image, exact_values) = (direct(1.0, &k, &wide(&d), &r), direct(-1.0, &r, &wide(&x), &k));
    let slack = if dims.contains(&1) { 1.3 } else { 1.1 };
    ([distance(&image, &exact_image), distance(&values, &exact_values)].map(|e| e / slack), info.error)
}

#[test]
fn errors_are_within_the_reported_error() {
    fn check<T: Real>() {
        let mut random = Random::fresh();
        let single = [(0, 1.25), (0, 2.5), (2, 0.0), (5, 0.0), (16, 0.0)];
        let both = [(2, 2.0), (3, 1.5), (4, 1.25), (6, 2.0), (7, 2.5), (8, 1.6), (12, 1.3), (16, 1.25), (16, 2.0)];
        for dims in [&[40, 1][..], &[1, 64], &[24, 24], &[31, 17], &[12, 12, 12], &[9, 7, 16]] {
            let k = random.trajectory::<T>(dims.len(), 600);
            for window in [Window::Minimax, Window::KaiserBessel, Window::Gaussian] {
                for (width, oversampling) in single.into_iter().chain(both) {
                    let options = window_options(window, width, oversampling);
                    let (errors, bound) = errors(dims, &k, &options, &mut random);
                    for error in errors {
                        let seed = random.seed;
                        assert!(error <= bound, "{} {dims:?} {options:?}: {error:e} > {bound:e}, seed {seed}", T::NAME);
                    }
                }
            }
            let (errors, bound) = errors(dims, &k, &window_options(Window::Bilinear, 2, 2.0), &mut random);
            assert!(
                errors.iter().all(|e| *e <= bound),
                "{dims:?} bilinear: {errors:?} > {bound}, seed {}",
                random.seed
            );
        }
    }
    check::<f32>();
    check::<f64>();
}

/// A width or oversampling that is not set is chosen by the tolerance, which may be the default one.
#[test]
fn a_width_or_oversampling_that_is_not_set_meets_the_tolerance() {
    let mut random = Random::fresh();
    let k = random.trajectory::<f64>(2, 500);
    let dims = [30, 21];
    for (width, oversampling) in [(6, 0.0), (9, 0.0), (14, 0.0), (0, 1.25), (0, 1.5), (0, 2.25)] {
        for tolerance in [0.0, 1e-2, 1e-4] {
            let options = Options { tolerance, ..window_options(Window::Minimax, width, oversampling) };
            let (errors, reported) = errors(&dims, &k, &options, &mut random);
            let bound = if tolerance == 0.0 { 1e-5 } else { tolerance };
            assert!(reported <= bound, "{options:?}: {reported:e}");
            assert!(errors.iter().all(|e| *e <= bound), "{options:?}: {errors:?}, seed {}", random.seed);
        }
    }
    // With both set, the window is the most accurate one for any tolerance: results have the same bits.
    let image = |tolerance: f64| {
        let plan = Plan::new(
            &Geometry::new(&dims, &slices(&k)),
            &Options { tolerance, ..window_options(Window::Minimax, 8, 2.0) },
        );
        let mut image = poisoned::<f64>(dims.iter().product());
        plan.unwrap().adjoint(&vec![Complex::new(1.0, 0.0); 500], &mut image).unwrap();
        image
    };
    assert_eq!(image(1e-2), image(0.0));
}

#[test]
fn a_default_tolerance_that_cannot_be_met_is_a_warning() {
    let k = [[0.1f32, -0.3, 0.2], [0.4, 0.0, -0.1]];
    let warning = |width, oversampling| {
        let options = window_options(Window::Minimax, width, oversampling);
        let plan = Plan::new(&Geometry::new(&[64, 64], &[&k[0], &k[1]]), &options).unwrap();
        assert!(plan.info().error > 1e-5);
        let found: Vec<_> = plan.warnings().into_iter().filter(|w| w.kind == WarningKind::Tolerance).collect();
        assert_eq!(found.len(), 1);
        found[0].message.clone()
    };
    for (width, oversampling, words) in [
        (3, 0.0, ["3 cells", "larger width"]),
        (3, 1.5, ["oversampling of 1.5 ", "larger width or oversampling"]),
        (2, 2.0, ["2 cells", "1e-5"]),
    ] {
        let text = warning(width, oversampling);
        assert!(words.iter().all(|word| text.contains(word)), "{text}");
    }
    let options = Options { tolerance: 0.1, ..window_options(Window::Minimax, 3, 1.5) };
    let plan = Plan::new(&Geometry::new(&[64, 64], &[&k[0], &k[1]]), &options).unwrap();
    assert!(plan.warnings().iter().all(|w| w.kind != WarningKind::Tolerance));
}

/// Checks that a plan and its memory estimate are refused with the same message, which is returned.
fn refused(options: &Options, kind: ErrorKind, words: &[&str]) -> String {
    let k = [[0.1f64, -0.3, 0.2], [0.4, 0.0, -0.1]];
    let e = Plan::new(&Geometry::new(&[32, 30], &[&k[0], &k[1]]), options).err().expect("an error");
    assert!(e.kind() == kind && words.iter().all(|word| e.message().contains(word)), "{options:?}: {e}");
    let estimate = Plan::<f64>::memory(&ScanSize::new(&[32, 30], 3), options).unwrap_err();
    assert_eq!((estimate.kind(), estimate.message()), (e.kind(), e.message()));
    e.message().into()
}

#[test]
fn widths_and_oversamplings_out_of_range_are_refused_with_the_range() {
    for width in [1, 17, usize::MAX] {
        let words = [&*format!("width is {width}"), "2 to 16"];
        refused(&window_options(Window::Minimax, width, 0.0), ErrorKind::InvalidArgument, &words);
    }
    let words = ["width is 3", "bilinear", "can have 2 grid"];
    refused(&window_options(Window::Bilinear, 3, 0.0), ErrorKind::InvalidArgument, &words);
    for oversampling in [-2.0, 1e-300, 1.0, 1.2499, 2.5001, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        let words = [&*format!("oversampling is {oversampling}"), "1.25 to 2.5"];
        refused(&window_options(Window::Minimax, 0, oversampling), ErrorKind::InvalidArgument, &words);
        let exact = Options { method: Method::Exact, ..window_options(Window::Minimax, 0, oversampling) };
        refused(&exact, ErrorKind::InvalidArgument, &words);
    }
}

/// The message gives the reached error and a width or oversampling that meets the tolerance. Smaller values do not.
#[test]
fn a_tolerance_that_cannot_be_met_is_refused_with_a_remedy() {
    let number = |text: &str, after: &str| -> Option<f64> {
        let rest = &text[text.find(after)? + after.len()..];
        Some(rest.split([' ', ':', ',', ')']).next()?.parse().expect(rest))
    };
    let k = [[0.1f64, -0.3, 0.2], [0.4, 0.0, -0.1]];
    let is_met = |options: &Options| Plan::new(&Geometry::new(&[32, 30], &[&k[0], &k[1]]), options).is_ok();
    for (width, oversampling, tolerance) in
        [(4, 1.5, 1e-5), (4, 0.0, 1e-6), (6, 2.0, 1e-8), (3, 1.25, 1e-1 / 3.0), (2, 1.3, 1e-10), (12, 1.25, 1e-9)]
    {
        let options = Options { tolerance, ..window_options(Window::Minimax, width, oversampling) };
        let text = refused(&options, ErrorKind::ToleranceOutOfRange, &["minimax", "would meet it"]);
        let reached = number(&text, "(").unwrap();
        assert!(reached > tolerance, "{text}");
        // The message has two digits.
        assert!(is_met(&Options { tolerance: 1.05 * reached, ..options.clone() }), "{text}");
        assert!(!is_met(&Options { tolerance: 0.94 * reached, ..options.clone() }), "{text}");
        let wider = number(&text, "a width of ").expect(&text) as usize;
        assert!(wider > width && is_met(&Options { width: wider, ..options.clone() }), "{text}");
        assert!(!is_met(&Options { width: wider - 1, ..options.clone() }), "{text}");
        if let Some(finer) = number(&text, " or an oversampling of ") {
            assert!(finer > oversampling && is_met(&Options { oversampling: finer, ..options.clone() }), "{text}");
        }
    }
    // No Gaussian meets the tolerance: it has half the digits.
    let options = Options { tolerance: 1e-12, ..window_options(Window::Gaussian, 16, 2.5) };
    refused(&options, ErrorKind::ToleranceOutOfRange, &["Gaussian", "the minimax window would meet it"]);
}

#[test]
fn exact_sums_have_no_window() {
    let k = [0.1f64, -0.2];
    for (width, oversampling, word) in [(5, 0.0, "width"), (0, 1.5, "oversampling"), (5, 2.0, "width")] {
        let exact = Options { method: Method::Exact, ..window_options(Window::Minimax, width, oversampling) };
        refused(&exact, ErrorKind::InvalidArgument, &[word, "method exact"]);
        let mut listed = Geometry::new(&[8, 8], &[&k, &k]);
        listed.voxels = Some(vec![&k, &k]);
        let options = Options { method: Method::Auto, ..exact };
        let e = Plan::new(&listed, &options).err().expect("an error");
        let words = [word, "list of voxels"];
        assert!(e.kind() == ErrorKind::InvalidArgument && words.iter().all(|w| e.message().contains(w)), "{e}");
    }
}

/// Q, a new trajectory and memory estimates use a window that is set as they use a chosen one.
#[test]
fn q_changes_and_estimates_use_the_window() {
    let mut random = Random::fresh();
    let dims = [20, 14, 11];
    for (width, oversampling) in [(5, 1.5), (4, 2.5), (0, 1.25), (7, 0.0)] {
        let options = window_options(Window::Minimax, width, oversampling);
        let first = random.trajectory::<f32>(3, 300);
        let plan = Plan::new(&Geometry::new(&dims, &slices(&first)), &options).unwrap();
        let info = plan.info();
        // With more samples, a different window would be cheaper.
        let k = random.trajectory::<f32>(3, 9000);
        let geometry = Geometry::new(&dims, &slices(&k));
        plan.set_trajectory(&geometry).unwrap();
        let new_plan = Plan::new(&geometry, &options).unwrap();
        let window_of = |plan: &Plan<f32>| (plan.info().width, plan.info().grid, plan.info().error);
        assert_eq!(window_of(&plan), window_of(&new_plan));
        if width != 0 && oversampling != 0.0 {
            assert_eq!(window_of(&plan), (info.width, info.grid, info.error));
        }
        let d = random.complexes::<f32>(9000);
        let images = [&plan, &new_plan].map(|plan| {
            let mut image = poisoned::<f32>(plan.image_len());
            plan.adjoint(&d, &mut image).unwrap();
            image
        });
        assert_eq!(images[0], images[1], "seed {}", random.seed);

        let estimate = Plan::<f32>::memory(&ScanSize::new(&dims, 9000), &options).unwrap().host.plan;
        let (held, grid) = (new_plan.info().host_bytes, new_plan.info().grid.iter().product::<usize>() * 8);
        assert!(estimate >= held && held > grid, "{estimate} estimated, {held} held, {grid} for the grid");
        assert!(estimate < 2 * held + (1 << 20), "{estimate} estimated, {held} held");

        let x = random.complexes::<f32>(new_plan.image_len());
        let through_q = Options { normal: Normal::Toeplitz, ..options.clone() };
        let exact = Options { method: Method::Exact, width: 0, oversampling: 0.0, ..options.clone() };
        let [y, exact] = [&through_q, &exact].map(|options| {
            let mut y = poisoned::<f32>(x.len());
            Plan::new(&geometry, options).unwrap().normal(&x, &mut y).unwrap();
            y
        });
        let (error, bound) = (distance(&y, &wide(&exact)), new_plan.info().error.max(2e-6));
        assert!(error <= 2.0 * bound, "{options:?}: {error:e} > 2 {bound:e}, seed {}", random.seed);
    }
}

/// Rounding does not enlarge the grid: 1.6 times 120 is 192, a size with a fast FFT.
#[test]
fn the_grid_of_a_round_product_is_that_product() {
    let k = Trajectory::radial2d(3, 16, recon::trajectory::SpokeOrder::Linear).unwrap();
    let (kx, ky) = (k.axis_as::<f32>(0), k.axis_as::<f32>(1));
    for (n, oversampling, grid) in [(120, 1.6, 192), (100, 1.28, 128), (128, 1.5, 192), (100, 2.4, 240), (80, 2.4, 192)]
    {
        let options = window_options(Window::Minimax, 4, oversampling);
        let plan = Plan::new(&Geometry::new(&[n, n], &[&kx, &ky]), &options).unwrap();
        assert_eq!(plan.info().grid, [grid, grid], "{n} {oversampling}");
    }
}
