//! Width and oversampling by name: the error that a plan tells is kept, and what cannot be is refused with a remedy.

use crate::common::*;
use recon::{
    Complex, Device, ErrorKind, Geometry, Method, Normal, Options, Plan, Real, ScanSize, Trajectory, WarningKind,
    Window,
};

fn named(window: Window, width: usize, oversampling: f64) -> Options {
    let options = Options { method: Method::Nufft, device: Device::Cpu, threads: 2, ..Options::default() };
    Options { window, width, oversampling, ..options }
}

/// The errors of adjoint and forward against direct sums, and the plan's own figure, which is of the worst voxel but a
/// mean over positions. Random errors may exceed it by the tenth that a tolerance leaves; along one axis alone, where
/// forty voxels are all, by more.
fn errors<T: Real>(dims: &[usize], k: &[Vec<T>], options: &Options, random: &mut Random) -> ([f64; 2], f64) {
    let plan = Plan::new(&Geometry::new(dims, &slices(k)), options).unwrap();
    let info = plan.info();
    let at = format!("{dims:?} {options:?}: {info:?}");
    if options.width != 0 {
        assert_eq!(info.width, options.width, "{at}");
    }
    if options.oversampling != 0.0 {
        for (&g, &n) in info.grid.iter().zip(dims) {
            let least = (options.oversampling * n as f64 - 1e-9).max(2.0 * info.width as f64);
            // The next size that has a fast FFT is near.
            assert!(g as f64 >= least && g as f64 <= 1.34 * least + 2.0, "{at}");
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
fn errors_are_those_that_the_plan_tells() {
    fn check<T: Real>() {
        let mut random = Random::fresh();
        let all = [(0, 1.25), (0, 2.5), (2, 0.0), (5, 0.0), (16, 0.0)];
        let both = [(2, 2.0), (3, 1.5), (4, 1.25), (6, 2.0), (7, 2.5), (8, 1.6), (12, 1.3), (16, 1.25), (16, 2.0)];
        for dims in [&[40, 1][..], &[1, 64], &[24, 24], &[31, 17], &[12, 12, 12], &[9, 7, 16]] {
            let k = random.trajectory::<T>(dims.len(), 600);
            for window in [Window::Minimax, Window::KaiserBessel, Window::Gaussian] {
                for (width, oversampling) in all.into_iter().chain(both) {
                    let options = named(window, width, oversampling);
                    let (errors, bound) = errors(dims, &k, &options, &mut random);
                    for error in errors {
                        let seed = random.seed;
                        assert!(error <= bound, "{} {dims:?} {options:?}: {error:e} > {bound:e}, seed {seed}", T::NAME);
                    }
                }
            }
            let (errors, bound) = errors(dims, &k, &named(Window::Bilinear, 2, 2.0), &mut random);
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

/// What is not named is chosen by the tolerance, named or not.
#[test]
fn the_tolerance_is_kept_by_what_is_not_named() {
    let mut random = Random::fresh();
    let k = random.trajectory::<f64>(2, 500);
    let dims = [30, 21];
    for (width, oversampling) in [(6, 0.0), (9, 0.0), (14, 0.0), (0, 1.25), (0, 1.5), (0, 2.25)] {
        for tolerance in [0.0, 1e-2, 1e-4] {
            let options = Options { tolerance, ..named(Window::Minimax, width, oversampling) };
            let (errors, told) = errors(&dims, &k, &options, &mut random);
            let kept = if tolerance == 0.0 { 1e-5 } else { tolerance };
            assert!(told <= kept, "{options:?}: {told:e}");
            assert!(errors.iter().all(|e| *e <= kept), "{options:?}: {errors:?}, seed {}", random.seed);
        }
    }
    // With both named the window is the most exact one, whatever the tolerance: results have the same bits.
    let image = |tolerance: f64| {
        let plan =
            Plan::new(&Geometry::new(&dims, &slices(&k)), &Options { tolerance, ..named(Window::Minimax, 8, 2.0) });
        let mut image = poisoned::<f64>(dims.iter().product());
        plan.unwrap().adjoint(&vec![Complex::new(1.0, 0.0); 500], &mut image).unwrap();
        image
    };
    assert_eq!(image(1e-2), image(0.0));
}

#[test]
fn a_default_tolerance_that_cannot_be_kept_is_warned_of() {
    let k = [[0.1f32, -0.3, 0.2], [0.4, 0.0, -0.1]];
    let warning = |width, oversampling| {
        let options = named(Window::Minimax, width, oversampling);
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
    let options = Options { tolerance: 0.1, ..named(Window::Minimax, 3, 1.5) };
    let plan = Plan::new(&Geometry::new(&[64, 64], &[&k[0], &k[1]]), &options).unwrap();
    assert!(plan.warnings().iter().all(|w| w.kind != WarningKind::Tolerance));
}

fn refused(options: &Options, kind: ErrorKind, words: &[&str]) -> String {
    let k = [[0.1f64, -0.3, 0.2], [0.4, 0.0, -0.1]];
    let e = Plan::new(&Geometry::new(&[32, 30], &[&k[0], &k[1]]), options).err().expect("an error");
    assert!(e.kind() == kind && words.iter().all(|word| e.message().contains(word)), "{options:?}: {e}");
    // Asked for bytes, the same is said.
    let told = Plan::<f64>::memory(&ScanSize::new(&[32, 30], 3), options).unwrap_err();
    assert_eq!((told.kind(), told.message()), (e.kind(), e.message()));
    e.message().into()
}

#[test]
fn what_no_window_has_is_refused_with_the_range() {
    for width in [1, 17, usize::MAX] {
        let words = [&*format!("width is {width}"), "2 to 16"];
        refused(&named(Window::Minimax, width, 0.0), ErrorKind::InvalidArgument, &words);
    }
    let words = ["width is 3", "bilinear", "can have 2 grid"];
    refused(&named(Window::Bilinear, 3, 0.0), ErrorKind::InvalidArgument, &words);
    for oversampling in [-2.0, 1e-300, 1.0, 1.2499, 2.5001, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        let words = [&*format!("oversampling is {oversampling}"), "1.25 to 2.5"];
        refused(&named(Window::Minimax, 0, oversampling), ErrorKind::InvalidArgument, &words);
        let exact = Options { method: Method::Exact, ..named(Window::Minimax, 0, oversampling) };
        refused(&exact, ErrorKind::InvalidArgument, &words);
    }
}

/// A message names what is reached and what would keep the tolerance: that does, and what is less does not.
#[test]
fn a_named_tolerance_out_of_reach_is_refused_with_what_would_keep_it() {
    let number = |text: &str, after: &str| -> Option<f64> {
        let rest = &text[text.find(after)? + after.len()..];
        Some(rest.split([' ', ':', ',', ')']).next()?.parse().expect(rest))
    };
    let k = [[0.1f64, -0.3, 0.2], [0.4, 0.0, -0.1]];
    let keeps = |options: &Options| Plan::new(&Geometry::new(&[32, 30], &[&k[0], &k[1]]), options).is_ok();
    for (width, oversampling, tolerance) in
        [(4, 1.5, 1e-5), (4, 0.0, 1e-6), (6, 2.0, 1e-8), (3, 1.25, 1e-1 / 3.0), (2, 1.3, 1e-10), (12, 1.25, 1e-9)]
    {
        let options = Options { tolerance, ..named(Window::Minimax, width, oversampling) };
        let text = refused(&options, ErrorKind::ToleranceOutOfRange, &["minimax", "would meet it"]);
        let reached = number(&text, "(").unwrap();
        assert!(reached > tolerance, "{text}");
        // Printed with two digits.
        assert!(keeps(&Options { tolerance: 1.05 * reached, ..options.clone() }), "{text}");
        assert!(!keeps(&Options { tolerance: 0.94 * reached, ..options.clone() }), "{text}");
        let wider = number(&text, "a width of ").expect(&text) as usize;
        assert!(wider > width && keeps(&Options { width: wider, ..options.clone() }), "{text}");
        assert!(!keeps(&Options { width: wider - 1, ..options.clone() }), "{text}");
        if let Some(finer) = number(&text, " or an oversampling of ") {
            assert!(finer > oversampling && keeps(&Options { oversampling: finer, ..options.clone() }), "{text}");
        }
    }
    // Nothing that is named would help: a Gaussian has half the digits.
    let options = Options { tolerance: 1e-12, ..named(Window::Gaussian, 16, 2.5) };
    refused(&options, ErrorKind::ToleranceOutOfRange, &["Gaussian", "the minimax window would meet it"]);
}

#[test]
fn exact_sums_have_no_window() {
    let k = [0.1f64, -0.2];
    for (width, oversampling, word) in [(5, 0.0, "width"), (0, 1.5, "oversampling"), (5, 2.0, "width")] {
        let exact = Options { method: Method::Exact, ..named(Window::Minimax, width, oversampling) };
        refused(&exact, ErrorKind::InvalidArgument, &[word, "method exact"]);
        let mut listed = Geometry::new(&[8, 8], &[&k, &k]);
        listed.voxels = Some(vec![&k, &k]);
        let options = Options { method: Method::Auto, ..exact };
        let e = Plan::new(&listed, &options).err().expect("an error");
        let words = [word, "list of voxels"];
        assert!(e.kind() == ErrorKind::InvalidArgument && words.iter().all(|w| e.message().contains(w)), "{e}");
    }
}

/// Q, another trajectory and memory told beforehand go by the named window as by a chosen one.
#[test]
fn q_changes_and_memory_follow() {
    let mut random = Random::fresh();
    let dims = [20, 14, 11];
    for (width, oversampling) in [(5, 1.5), (4, 2.5), (0, 1.25), (7, 0.0)] {
        let options = named(Window::Minimax, width, oversampling);
        let first = random.trajectory::<f32>(3, 300);
        let plan = Plan::new(&Geometry::new(&dims, &slices(&first)), &options).unwrap();
        let info = plan.info();
        // More samples would have another window be cheaper.
        let k = random.trajectory::<f32>(3, 9000);
        let geometry = Geometry::new(&dims, &slices(&k));
        plan.set_trajectory(&geometry).unwrap();
        let anew = Plan::new(&geometry, &options).unwrap();
        let of = |plan: &Plan<f32>| (plan.info().width, plan.info().grid, plan.info().error);
        assert_eq!(of(&plan), of(&anew));
        if width != 0 && oversampling != 0.0 {
            assert_eq!(of(&plan), (info.width, info.grid, info.error));
        }
        let d = random.complexes::<f32>(9000);
        let images = [&plan, &anew].map(|plan| {
            let mut image = poisoned::<f32>(plan.image_len());
            plan.adjoint(&d, &mut image).unwrap();
            image
        });
        assert_eq!(images[0], images[1], "seed {}", random.seed);

        let told = Plan::<f32>::memory(&ScanSize::new(&dims, 9000), &options).unwrap().host.plan;
        let (held, grid) = (anew.info().host_bytes, anew.info().grid.iter().product::<usize>() * 8);
        assert!(told >= held && held > grid, "{told} told, {held} held, {grid} for the grid");
        assert!(told < 2 * held + (1 << 20), "{told} told, {held} held");

        let x = random.complexes::<f32>(anew.image_len());
        let through_q = Options { normal: Normal::Toeplitz, ..options.clone() };
        let exact = Options { method: Method::Exact, width: 0, oversampling: 0.0, ..options.clone() };
        let [y, exact] = [&through_q, &exact].map(|options| {
            let mut y = poisoned::<f32>(x.len());
            Plan::new(&geometry, options).unwrap().normal(&x, &mut y).unwrap();
            y
        });
        let (error, bound) = (distance(&y, &wide(&exact)), anew.info().error.max(2e-6));
        assert!(error <= 2.0 * bound, "{options:?}: {error:e} > 2 {bound:e}, seed {}", random.seed);
    }
}

/// The next size that has a fast FFT, as for a size that is exact in decimal: 1.6 times 120 is 192.
#[test]
fn the_grid_of_a_round_product_is_that_product() {
    let k = Trajectory::radial2d(3, 16, recon::trajectory::SpokeOrder::Linear).unwrap();
    let (kx, ky) = (k.axis_as::<f32>(0), k.axis_as::<f32>(1));
    for (n, oversampling, grid) in [(120, 1.6, 192), (100, 1.28, 128), (128, 1.5, 192), (100, 2.4, 240), (80, 2.4, 192)]
    {
        let options = named(Window::Minimax, 4, oversampling);
        let plan = Plan::new(&Geometry::new(&[n, n], &[&kx, &ky]), &options).unwrap();
        assert_eq!(plan.info().grid, [grid, grid], "{n} {oversampling}");
    }
}
