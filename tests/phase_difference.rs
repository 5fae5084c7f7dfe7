//! Velocities from two encodings: compared with formulas in double precision, and with the truth of phantoms.

mod common;

use common::*;
use recon::concomitant_phase::gradient_axes;
use recon::phantom::CoilModel;
use recon::{
    phase_difference, Complex, ConcomitantPhase, ErrorKind, Geometry, ImagePosition, Options, PhaseDifferenceOptions,
    Plan, Real, Trajectory,
};
use std::f64::consts::{PI, TAU};

const N: usize = 48;
/// Velocity in cm/s that causes a phase of pi.
const VENC: f64 = 150.0;
const COILS: usize = 4;

/// Returns the position of a voxel as fractions of the field of view.
fn position(i: usize) -> [f64; 2] {
    [i % N, i / N].map(|j| (j as f64 - (N / 2) as f64) / N as f64)
}

/// Returns whether a voxel is in the phantom, a disk.
fn is_inside(i: usize) -> bool {
    let [x, y] = position(i);
    x * x + y * y < 0.16
}

/// Returns the velocity of the phantom in cm/s: two vessels with parabolic profiles in opposite directions.
fn velocity(i: usize) -> f64 {
    let [x, y] = position(i);
    let vessel = |cx: f64, peak: f64| (peak * (1.0 - ((x - cx).powi(2) + y * y) / 0.01)).max(0.0);
    vessel(0.15, 120.0) - vessel(-0.15, 70.0)
}

/// Returns the image of the phantom with this added phase per voxel. The object has a phase of its own.
fn object(phase: impl Fn(usize) -> f64) -> Vec<Complex<f64>> {
    let voxel = |i: usize| {
        let [x, y] = position(i);
        if is_inside(i) {
            Complex::from_polar(1.0 + 0.5 * x, 4.0 * x * y + 0.8 + phase(i))
        } else {
            Complex::default()
        }
    };
    (0..N * N).map(voxel).collect()
}

/// Returns coil images [N, N, COILS] of an object.
fn coil_images<T: Real>(object: &[Complex<f64>]) -> Vec<Complex<T>> {
    let maps = CoilModel::ring(COILS, 2).unwrap().maps(&[N, N]).unwrap();
    let images = maps.chunks(N * N).flat_map(|map| map.iter().zip(object).map(|(s, x)| s * x));
    images.map(|z| Complex::new(T::of(z.re), T::of(z.im))).collect()
}

/// Returns the phase of sum_c a_c conj(b_c) + `added` in double precision, by sums over real and imaginary parts.
fn reference<T: Real>(a: &[Complex<T>], b: &[Complex<T>], voxels: usize, added: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut phases = Vec::new();
    for i in 0..voxels {
        let (mut re, mut im) = (0.0, 0.0);
        for c in 0..a.len() / voxels {
            let (x, y) = (a[c * voxels + i], b[c * voxels + i]);
            re += x.re.wide() * y.re.wide() + x.im.wide() * y.im.wide();
            im += x.im.wide() * y.re.wide() - x.re.wide() * y.im.wide();
        }
        let phase = f64::atan2(im, re) + added(i);
        phases.push(if re == 0.0 && im == 0.0 { 0.0 } else { phase - TAU * ((phase + PI) / TAU).floor() });
    }
    phases
}

/// Returns the largest distance between phases, on the circle.
fn largest_distance<T: Real>(phases: &[T], expected: &[f64]) -> f64 {
    assert_eq!(phases.len(), expected.len());
    let on_circle = |d: f64| (d - TAU * (d / TAU).round()).abs();
    phases.iter().zip(expected).map(|(p, e)| on_circle(p.wide() - e)).fold(0.0, f64::max)
}

fn compare_with_formulas<T: Real>() {
    let mut random = Random::fresh();
    for dims in [vec![7, 5], vec![4, 3, 5], vec![1, 1]] {
        for coils in [1, 3, 32] {
            let voxels: usize = dims.iter().product();
            let mut a: Vec<Complex<T>> = random.complexes(voxels * coils);
            let b: Vec<Complex<T>> = random.complexes(voxels * coils);
            // A voxel without signal in one image.
            (0..coils).for_each(|c| a[c * voxels] = Complex::new(T::ZERO, T::ZERO));
            let coefficients = [0; 4].map(|_| 20.0 * random.uniform());
            let origin = [0; 3].map(|_| 300.0 * random.uniform());
            let steps = [[0; 3]; 3].map(|step| step.map(|_| 20.0 * random.uniform()));
            let concomitant = |i: usize| {
                let of = |axis: usize| dims.get(axis).copied().unwrap_or(1);
                let index = [i % of(0), i / of(0) % of(1), i / of(0) / of(1)];
                let mut r = origin;
                for (axis, &n) in index.iter().enumerate() {
                    (0..3).for_each(|k| r[k] += n as f64 * steps[axis][k]);
                }
                let [x, y, z] = r.map(|mm| 1e-3 * mm);
                let [c0, c1, c2, c3] = coefficients;
                TAU * (c0 * z * z + c1 * (x * x + y * y) + c2 * x * z + c3 * y * z)
            };
            let term = ConcomitantPhase::new(coefficients, origin, steps).unwrap();
            for (venc, concomitant_phase) in [(None, None), (Some(VENC), None), (None, Some(term))] {
                let options = PhaseDifferenceOptions { venc, concomitant: concomitant_phase };
                let mut out = vec![T::of(f64::NAN); voxels];
                phase_difference(&a, &b, &dims, coils, &options, &mut out).unwrap();
                let added = |i: usize| if concomitant_phase.is_some() { concomitant(i) } else { 0.0 };
                let expected = reference(&a, &b, voxels, added);
                let limit = T::of(venc.unwrap_or(PI));
                assert!(out.iter().all(|&p| -limit <= p && p < limit));
                let phases: Vec<f64> = out.iter().map(|p| p.wide() * PI / venc.unwrap_or(PI)).collect();
                let distance = largest_distance(&phases, &expected);
                // A sum of coils that nearly cancel amplifies rounding.
                assert!(distance < 1e4 * f64::EPSILON + 8.0 * T::EPSILON, "seed {}: {distance}", random.seed);
                assert_eq!(out[0].wide(), 0.0, "a voxel without signal");
            }
        }
    }
}

#[test]
fn phases_follow_the_formulas() {
    compare_with_formulas::<f32>();
    compare_with_formulas::<f64>();
}

/// Returns k-space [N, N, COILS] of images by sums in double precision, line by line, at k = -1/2, -1/2 + 1/N, ...
fn kspace(images: &[Complex<f64>]) -> Vec<Complex<f64>> {
    let wave = |k: usize, j: usize| {
        let [k, j] = [k, j].map(|n| n as f64 - (N / 2) as f64);
        Complex::from_polar(1.0, -TAU * k * j / N as f64)
    };
    let sums = |of: &dyn Fn(usize, usize) -> Complex<f64>| -> Vec<Complex<f64>> {
        let sum = |m: usize| (0..N).map(|j| of(m / N, j) * wave(m % N, j)).sum();
        (0..N * N).map(sum).collect()
    };
    let transform = |image: &[Complex<f64>]| {
        let rows = sums(&|y, x| image[y * N + x]);
        let columns = sums(&|kx, y| rows[y * N + kx]);
        (0..N * N).map(|m| columns[m % N * N + m / N]).collect::<Vec<_>>()
    };
    images.chunks(N * N).flat_map(transform).collect()
}

#[test]
fn velocities_of_a_phantom_are_reconstructed() {
    // Two scans, which differ in the phase of moving voxels.
    let trajectory = Trajectory::cartesian(&[N, N]).unwrap();
    let k: Vec<Vec<f64>> = (0..2).map(|axis| trajectory.axis_as(axis)).collect();
    let k = slices(&k);
    let plan = Plan::new(&Geometry::new(&[N, N], &k).coils(COILS), &Options::default()).unwrap();
    let scanned = |sign: f64| {
        let data = kspace(&coil_images(&object(|i| sign * 0.5 * PI * velocity(i) / VENC)));
        let mut images = poisoned(N * N * COILS);
        plan.grid(&data, &mut images).unwrap();
        images
    };
    let (a, b) = (scanned(1.0), scanned(-1.0));
    let options = PhaseDifferenceOptions { venc: Some(VENC), concomitant: None };
    let mut out = vec![f64::NAN; N * N];
    phase_difference(&a, &b, &[N, N], COILS, &options, &mut out).unwrap();
    let errors = (0..N * N).filter(|&i| is_inside(i)).map(|i| (out[i] - velocity(i)).abs());
    let worst = errors.fold(0.0, f64::max);
    // The tolerance of the transform is 1e-5: 3e-4 cm/s were measured.
    assert!(worst < 0.003, "{worst} cm/s");
    // The order of the images is the sign.
    let mut reversed = vec![f64::NAN; N * N];
    phase_difference(&b, &a, &[N, N], COILS, &options, &mut reversed).unwrap();
    assert!(out.iter().zip(&reversed).all(|(v, w)| (v + w).abs() < 1e-9 || *v == -VENC));
}

#[test]
fn concomitant_fields_are_corrected_in_each_patient_position() {
    let image = ImagePosition {
        centre_mm: [30.0, -45.0, 110.0],
        directions: [[0.8, 0.0, 0.6], [0.0, 1.0, 0.0], [-0.6, 0.0, 0.8]],
        voxel_mm: [5.0, 4.0, 8.0],
        dims: [N, N, 1],
    };
    let coefficients = [21.0, -8.0, 14.0, 11.0];
    // The direction of the gradients' axes for the head first and supine: left, front, feet. Every other position is
    // this one, turned about z (P, DR, DL) and about y (feet first).
    for (name, turn) in [
        ("HFS", [[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]]),
        ("FFP", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        ("HFDR", [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]),
    ] {
        let phase = |i: usize| {
            let [dx, dy] = [i % N, i / N].map(|j| j as f64 - (N / 2) as f64);
            let lps = [0, 1, 2]
                .map(|a| image.centre_mm[a] + dx * 5.0 * image.directions[0][a] + dy * 4.0 * image.directions[1][a]);
            let [x, y, z] = [0, 1, 2].map(|row| (0..3).map(|a| turn[row][a] * lps[a]).sum::<f64>() / 1000.0);
            let [c0, c1, c2, c3]: [f64; 4] = coefficients;
            TAU * (c0 * z * z + c1 * (x * x + y * y) + c2 * x * z + c3 * y * z)
        };
        // The fields leave -phi in the difference, which the correction adds.
        let a = coil_images::<f32>(&object(|i| PI * velocity(i) / VENC - phase(i)));
        let b = coil_images::<f32>(&object(|_| 0.0));
        let largest = (0..N * N).map(phase).fold(0.0, |a: f64, b| a.max(b.abs()));
        assert!(largest > 1.0, "{largest} rad are no test");
        let concomitant = Some(ConcomitantPhase::of_image(coefficients, &image, name).unwrap());
        for (concomitant, is_right) in [(concomitant, true), (None, false)] {
            let options = PhaseDifferenceOptions { venc: Some(VENC), concomitant };
            let mut out = vec![f32::NAN; N * N];
            phase_difference(&a, &b, &[N, N], COILS, &options, &mut out).unwrap();
            let errors = (0..N * N).filter(|&i| is_inside(i)).map(|i| (f64::from(out[i]) - velocity(i)).abs());
            let worst = errors.fold(0.0, f64::max);
            assert_eq!(worst < 1e-3, is_right, "{name}: {worst} cm/s");
            assert!((0..N * N).filter(|&i| !is_inside(i)).all(|i| out[i] == 0.0), "{name}: the background is not 0");
        }
        assert_eq!(gradient_axes(name).unwrap(), turn);
    }
}

#[test]
fn velocities_beyond_venc_wrap() {
    let phases = [0.9, 1.1, -1.2, 2.0, -1.0].map(|part| Complex::from_polar(2.0, part * PI));
    let b = [Complex::new(0.5, 0.0); 5];
    let mut out = [f64::NAN; 5];
    let options = PhaseDifferenceOptions { venc: Some(100.0), concomitant: None };
    phase_difference(&phases, &b, &[5, 1], 1, &options, &mut out).unwrap();
    for (value, expected) in out.iter().zip([90.0, -90.0, 80.0, 0.0, -100.0]) {
        assert!((value - expected).abs() < 1e-9, "{out:?}");
    }
    // Magnitudes that overflow or vanish in products.
    for scale in [1e-300, 1e300] {
        let scaled = phases.map(|z| z * scale);
        let mut again = [f64::NAN; 5];
        phase_difference(&scaled, &b.map(|z| z * scale), &[5, 1], 1, &options, &mut again).unwrap();
        assert!(out.iter().zip(again).all(|(a, b)| (a - b).abs() < 1e-9), "{again:?}");
    }
}

#[test]
fn errors_leave_the_output_unchanged() {
    let image = vec![Complex::new(0.0f32, 1.0); 12];
    let fails = |a: &[Complex<f32>],
                 b: &[Complex<f32>],
                 dims: &[usize],
                 coils,
                 options: &PhaseDifferenceOptions,
                 kind,
                 word: &str| {
        let mut out = vec![7.0f32; 6];
        let e = phase_difference(a, b, dims, coils, options, &mut out).unwrap_err();
        assert!(e.kind() == kind && e.message().contains(word), "{:?}: {e}", e.kind());
        assert_eq!(out, vec![7.0; 6]);
    };
    let plain = &PhaseDifferenceOptions::default();
    fails(&image[..11], &image, &[3, 2], 2, plain, ErrorKind::SizeMismatch, "11 voxels of images");
    fails(&image, &image[..6], &[3, 2], 2, plain, ErrorKind::SizeMismatch, "6 voxels of the reference");
    fails(&image, &image, &[6, 2], 1, plain, ErrorKind::SizeMismatch, "6 voxels of the phase difference");
    fails(&image, &image, &[3, 0], 2, plain, ErrorKind::InvalidSize, "[3, 0]");
    fails(&image, &image, &[3, 2], 0, plain, ErrorKind::InvalidSize, "0 coil images");
    fails(&image, &image, &[3, 2, 1, 1], 2, plain, ErrorKind::InvalidSize, "3 axes");
    let mut bad = image.clone();
    bad[4].im = f32::NAN;
    fails(&bad, &image, &[3, 2], 2, plain, ErrorKind::NotFinite, "image voxel 4 ");
    fails(&image, &bad, &[3, 2], 2, plain, ErrorKind::NotFinite, "reference voxel 4 ");
    // 1e39 overflows single precision, and 1e-50 is 0 in it.
    for venc in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e39, 1e-50] {
        let options = &PhaseDifferenceOptions { venc: Some(venc), concomitant: None };
        fails(&image, &image, &[3, 2], 2, options, ErrorKind::InvalidArgument, &format!("venc is {venc}"));
    }
    let magnitudes: Vec<Complex<f32>> = image.iter().map(|z| Complex::new(z.norm(), 0.0)).collect();
    fails(&magnitudes, &magnitudes, &[3, 2], 2, plain, ErrorKind::InvalidArgument, "no phase");
    let far = ConcomitantPhase::new([1.0; 4], [0.0, 1900.0, 0.0], [[1.0, 0.0, 0.0], [0.0, 101.0, 0.0], [0.0; 3]]);
    let options = &PhaseDifferenceOptions { venc: None, concomitant: Some(far.unwrap()) };
    fails(&image, &image, &[3, 2], 2, options, ErrorKind::InvalidArgument, "2001 mm");
    let e = ConcomitantPhase::new([1.0, f64::NAN, 0.0, 0.0], [0.0; 3], [[0.0; 3]; 3]).unwrap_err();
    assert!(e.kind() == ErrorKind::NotFinite && e.message().contains("coefficient 1"), "{e}");
    let e = ConcomitantPhase::new([0.0; 4], [0.0; 3], [[f64::INFINITY; 3]; 3]).unwrap_err();
    assert!(e.kind() == ErrorKind::NotFinite && e.message().contains("mm"), "{e}");
    // Images without any signal are not refused as magnitudes.
    let empty = vec![Complex::new(0.0f32, 0.0); 6];
    let mut out = vec![7.0f32; 6];
    phase_difference(&empty, &empty, &[3, 2], 1, plain, &mut out).unwrap();
    assert_eq!(out, vec![0.0; 6]);
}
