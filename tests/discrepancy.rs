//! Lambda from the noise level: the resulting misfit, the image error compared with the best lambda of a grid, and
//! invalid arguments.

mod common;

use common::emulator::less_in_emulator;
use common::scans::RingScan;
use common::*;
use recon::phantom::{add_noise, Ellipsoid, Phantom};
use recon::{CgOptions, CgReport, Complex, Device, ErrorKind, Geometry, LambdaUnit, Options, Plan, Prior};

const COILS: usize = 8;

/// A noisy scan of a phantom by a ring of coils, whose maps have unit norm.
struct NoisyScan {
    ring: RingScan,
    data: Vec<Complex<f32>>,
    maps: Vec<Complex<f32>>,
    level: f64,
}

impl NoisyScan {
    fn new(phantom: &Phantom, n: usize, spokes: usize, snr: f64, seed: u64) -> Self {
        let mut ring = RingScan::new(phantom, n, spokes, COILS);
        let level = add_noise(&mut ring.data, snr, seed).unwrap();
        ring.normalise();
        NoisyScan { data: narrow(&ring.data), maps: narrow(&ring.maps), ring, level }
    }

    fn plan(&self) -> Plan<f32> {
        self.ring.plan(&self.maps, Device::Cpu)
    }

    fn solve(&self, plan: &Plan<f32>, options: &CgOptions<'_, f32>) -> (Vec<Complex<f32>>, CgReport) {
        let mut image = poisoned(self.ring.n * self.ring.n);
        let report = plan.cg(&self.data, &mut image, options).unwrap();
        (image, report)
    }

    /// Returns the mean |E x - d|^2 over the variance of the noise.
    fn misfit(&self, plan: &Plan<f32>, image: &[Complex<f32>]) -> f64 {
        let mut model = poisoned(self.data.len());
        plan.forward(image, &mut model).unwrap();
        let square: f64 = wide(&model).iter().zip(wide(&self.data)).map(|(m, d)| (m - d).norm_sqr()).sum();
        square / self.data.len() as f64 / self.level.powi(2)
    }
}

fn ellipse(density: f64, centre: [f64; 2], semi_axes: [f64; 2], phi: f64) -> Ellipsoid {
    let ([x, y], [a, b]) = (centre, semi_axes);
    Ellipsoid { density, centre: [x, y, 0.0], semi_axes: [a, b, 1.0], angles: [phi, 0.0, 0.0] }
}

/// Returns the head, a disc with rows of discs from large to small, and random overlapping ellipses.
fn phantoms(random: &mut Random) -> [Phantom; 3] {
    let mut discs = vec![ellipse(1.0, [0.0; 2], [0.85; 2], 0.0)];
    for row in 0..5 {
        let (size, y) = (0.11 - 0.02 * row as f64, 0.6 - 0.3 * row as f64);
        discs.extend((0..4).map(|i| ellipse(-0.8, [0.3 * (i as f64 - 1.5), y * 0.9], [size; 2], 0.0)));
    }
    let mut any = vec![ellipse(0.5, [0.0; 2], [0.8, 0.7], 0.3)];
    for _ in 0..12 {
        let mut within = |width: f64| width * random.uniform();
        let (density, centre) = (1.2 * (within(1.0) + 0.5), [within(0.9), within(0.9)]);
        any.push(ellipse(density, centre, [0.2 + within(0.3), 0.2 + within(0.3)], within(6.0)));
    }
    [Phantom::shepp_logan_2d(), Phantom::new(2, discs).unwrap(), Phantom::new(2, any).unwrap()]
}

#[test]
fn lambda_of_the_noise_is_near_the_best() {
    let mut random = Random::fresh();
    let scans = [(48, 3.0), (48, 10.0), (24, 3.0), (24, 10.0)];
    for (number, phantom) in phantoms(&mut random)[..less_in_emulator(3, 1)].iter().enumerate() {
        for &(spokes, snr) in &scans[..less_in_emulator(4, 1)] {
            let scan = NoisyScan::new(phantom, 96, spokes, snr, random.below(1 << 30) as u64);
            let plan = scan.plan();
            for prior in [Prior::Identity, Prior::Differences] {
                let options = CgOptions { prior, iterations: 30, ..CgOptions::default() };
                let (image, report) = scan.solve(&plan, &CgOptions { noise_level: scan.level, ..options });
                let misfit = scan.misfit(&plan, &image);
                assert!((misfit - 1.0).abs() < 0.1, "{misfit}");
                let error = distance(&image, &scan.ring.truth);
                let of = |exponent: i32| {
                    let lambda = 10f64.powf(exponent as f64 / 4.0);
                    (distance(&scan.solve(&plan, &CgOptions { lambda, ..options }).0, &scan.ring.truth), lambda)
                };
                let (best, at) = (-12..6).map(of).fold((f64::INFINITY, 0.0), |a, b| if b.0 < a.0 { b } else { a });
                let case = format!("phantom {number}, {spokes} spokes, SNR {snr}, {prior:?}, seed {}", random.seed);
                say(&format!("{case}: error {error:.3} by the noise level, {best:.3} at best (lambda {at:.3})"));
                assert!(error < 1.1 * best, "{case}: {error} against {best}");
                // The reported lambda is the one that was used.
                let told = CgOptions { lambda: report.lambda, lambda_unit: LambdaUnit::Absolute, ..options };
                assert_eq!(scan.solve(&plan, &told).0, image);
            }
        }
    }
}

#[test]
fn levels_that_do_not_fit_are_refused() {
    let scan = NoisyScan::new(&Phantom::shepp_logan_2d(), 48, 24, 5.0, 3);
    let plan = scan.plan();
    let fails = |plan: &Plan<f32>, options: &CgOptions<'_, f32>, kind: ErrorKind, words: &[&str]| {
        let mut image = vec![Complex::new(7f32, 0.0); 48 * 48];
        let error = plan.cg(&scan.data, &mut image, options).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(words.iter().all(|word| error.message().contains(word)), "{words:?} are not all in {error}");
        assert!(image.iter().all(|z| *z == Complex::new(7.0, 0.0)), "the image is as it was");
    };
    let at = |noise_level: f64| CgOptions { noise_level, ..CgOptions::default() };
    let invalid = ErrorKind::InvalidArgument;
    fails(&plan, &at(0.4 * scan.level), invalid, &["closest image", "too low"]);
    fails(&plan, &at(2.5 * scan.level), invalid, &["noise of the data is", "too high"]);
    fails(&plan, &at(-1.0), invalid, &["noise level is -1"]);
    fails(&plan, &at(f64::NAN), invalid, &["noise level is NaN"]);
    fails(&plan, &CgOptions { lambda: 0.5, ..at(1.0) }, invalid, &["lambda is 0.5", "give only one"]);
    let (k, weights) = (slices(&scan.ring.k), vec![1f32; scan.ring.samples()]);
    let geometry = Geometry::new(&[48, 48], &k).coils(COILS).coil_maps(&scan.maps).weights(&weights);
    let weighted = Plan::new(&geometry, &Options { device: Device::Cpu, ..Options::default() }).unwrap();
    fails(&weighted, &at(scan.level), ErrorKind::Unsupported, &["without density weights"]);
    // The search can be cancelled.
    let mut calls = 0;
    let mut image = poisoned(48 * 48);
    let stopped = plan.cg_with_progress(&scan.data, &mut image, &at(scan.level), |_| {
        calls += 1;
        if calls < 30 {
            std::ops::ControlFlow::Continue(())
        } else {
            std::ops::ControlFlow::Break(())
        }
    });
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Cancelled);
}
