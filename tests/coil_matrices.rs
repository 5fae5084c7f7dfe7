//! Whitening and compression of coils: noise after whitening, effects on a CG-SENSE reconstruction, and invalid
//! arguments.

mod common;

use common::scans::RingScan;
use common::*;
use recon::phantom::Phantom;
use recon::{
    CgOptions, CoilEnergy, CoilMatrix, Complex, Device, ErrorKind, Keep, NoiseCovariance, NoiseSampling, Real,
};

/// Returns complex numbers of variance 1.
fn white(random: &mut Random, n: usize) -> Vec<Complex<f64>> {
    let two = |random: &mut Random| -> f64 { (0..12).map(|_| random.uniform()).sum() };
    (0..n).map(|_| Complex::new(two(random), two(random))).map(|z| z / 2f64.sqrt()).collect()
}

/// Returns the noise matrix of a coil array: gains from 1 to 10, and a third of each neighbour's noise.
fn coupling(random: &mut Random, coils: usize) -> CoilMatrix {
    let mut entries = vec![Complex::default(); coils * coils];
    for c in 0..coils {
        let gain = 1.0 + 9.0 * (c % 7) as f64 / 6.0;
        for (offset, share) in [(0, 1.0), (1, 0.35), (coils - 1, 0.35)] {
            let phase = if offset == 0 { 0.0 } else { 6.0 * random.uniform() };
            entries[(c + offset) % coils * coils + c] += Complex::from_polar(gain * share, phase);
        }
    }
    CoilMatrix::new(coils, coils, entries).unwrap()
}

fn mapped<T: Real>(matrix: &CoilMatrix, samples: usize, from: &[Complex<T>]) -> Vec<Complex<T>> {
    let mut to = poisoned(from.len() / matrix.coils() * matrix.virtual_coils());
    matrix.apply(samples, from, &mut to).unwrap();
    to
}

/// Returns the mean of x_a conj(x_b), by the definition.
fn covariance(x: &[Complex<f64>], coils: usize) -> Vec<Complex<f64>> {
    let samples = x.len() / coils;
    let coil = |c: usize| &x[c * samples..][..samples];
    let mean = |a: usize, b: usize| coil(a).iter().zip(coil(b)).map(|(a, b)| a * b.conj()).sum::<Complex<f64>>();
    (0..coils * coils).map(|i| mean(i % coils, i / coils) / samples as f64).collect()
}

fn kind<R: std::fmt::Debug>(result: recon::Result<R>, expected: ErrorKind, words: &[&str]) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), expected, "{error}");
    assert!(words.iter().all(|word| error.message().contains(word)), "{words:?} are not all in {error}");
}

#[test]
fn noise_is_white_after_whitening() {
    let mut random = Random::fresh();
    for coils in [1, 2, 8, 32] {
        let samples = 20_000;
        let coupling = coupling(&mut random, coils);
        let noise = mapped(&coupling, samples, &white(&mut random, samples * coils));
        let known = NoiseCovariance::of(&noise, coils, NoiseSampling::SAME).unwrap();
        let expected = covariance(&noise, coils);
        assert!(distance(known.entries(), &expected) < 1e-12);
        let single = NoiseCovariance::of(&narrow::<f32>(&noise), coils, NoiseSampling::SAME).unwrap();
        assert!(distance(single.entries(), &expected) < 1e-6);
        let whitening = known.whitening().unwrap();
        // The same samples are exactly white. Others deviate by the error of the covariance.
        let other = mapped(&coupling, samples, &white(&mut random, samples * coils));
        for (noise, most) in [(&noise, 1e-9), (&other, 0.03)] {
            let after = covariance(&mapped(&whitening, samples, noise), coils);
            for (i, z) in after.iter().enumerate() {
                let identity = f64::from(i % coils == i / coils);
                // Three standard deviations of an entry are 0.03.
                assert!((z - identity).norm() < 1.6 * most, "{coils} coils, entry {i}: {z}");
            }
            let off: f64 =
                after.iter().enumerate().map(|(i, z)| (z - f64::from(i % coils == i / coils)).norm_sqr()).sum();
            assert!((off / (coils * coils) as f64).sqrt() < most, "{coils} coils: {off}");
        }
    }
}

#[test]
fn noise_of_another_bandwidth_is_scaled() {
    let noise = white(&mut Random::fresh(), 1000);
    let same = NoiseCovariance::of(&noise, 1, NoiseSampling::SAME).unwrap().entries()[0].re;
    let sampling = NoiseSampling { noise_dwell: 5.0, dwell: 2.5, receiver_bandwidth: 0.8 };
    let scaled = NoiseCovariance::of(&noise, 1, sampling).unwrap().entries()[0].re;
    assert!((scaled / same - 2.5).abs() < 1e-12, "twice the bandwidth, over 0.8");
    for (noise_dwell, dwell, receiver_bandwidth) in
        [(0.0, 1.0, 1.0), (1.0, -1.0, 1.0), (1.0, f64::NAN, 1.0), (1.0, 1.0, 0.0), (1.0, 1.0, 1.1)]
    {
        let sampling = NoiseSampling { noise_dwell, dwell, receiver_bandwidth };
        kind(NoiseCovariance::of(&noise, 1, sampling), ErrorKind::InvalidArgument, &["is"]);
    }
}

#[test]
fn virtual_coils_are_sums_of_coils() {
    let mut random = Random::fresh();
    // More samples than a block, two frames.
    let (samples, coils, rows, frames) = (1300, 5, 3, 2);
    let matrix = CoilMatrix::new(rows, coils, random.complexes(rows * coils)).unwrap();
    let data = random.complexes::<f64>(samples * coils * frames);
    let found = mapped(&matrix, samples, &data);
    for (i, z) in found.iter().enumerate() {
        let (m, v, frame) = (i % samples, i / samples % rows, i / samples / rows);
        let at = |c: usize| data[(frame * coils + c) * samples + m];
        let sum: Complex<f64> = (0..coils).map(|c| matrix.entries()[c * rows + v] * at(c)).sum();
        assert!((z - sum).norm() < 1e-13);
    }
    assert!(distance(&mapped(&matrix, samples, &narrow::<f32>(&data)), &found) < 1e-6);
    let next = CoilMatrix::new(2, rows, random.complexes(2 * rows)).unwrap();
    let both = mapped(&matrix.then(&next).unwrap(), samples, &data);
    assert!(distance(&both, &mapped(&next, samples, &found)) < 1e-13);
    kind(matrix.then(&matrix), ErrorKind::SizeMismatch, &["5", "3"]);
    let mut out = vec![Complex::new(7.0, 0.0); 10];
    kind(matrix.apply(samples, &data, &mut out), ErrorKind::SizeMismatch, &["7800", "10"]);
    kind(matrix.apply(samples, &data[1..], &mut out), ErrorKind::SizeMismatch, &["12999", "1300", "5"]);
    let mut bad = data.clone();
    bad[4].im = f64::NAN;
    let mut out = vec![Complex::new(7.0, 0.0); samples * rows * frames];
    kind(matrix.apply(samples, &bad, &mut out), ErrorKind::NotFinite, &["number 4 "]);
    assert!(out.iter().all(|&z| z == Complex::new(7.0, 0.0)));
    kind(CoilMatrix::new(0, 2, vec![]), ErrorKind::InvalidSize, &["0 virtual coils"]);
    kind(CoilMatrix::new(2, 2, vec![Complex::default(); 3]), ErrorKind::SizeMismatch, &["3", "4"]);
}

#[test]
fn the_strongest_virtual_coils_are_kept() {
    let mut random = Random::fresh();
    for coils in [1, 2, 3, 16, 64] {
        let samples = 500;
        let mixed = random.complexes::<f64>(coils * coils);
        let mut energy = CoilEnergy::new(coils).unwrap();
        let signals = white(&mut random, samples * coils);
        let data: Vec<Complex<f64>> =
            signals.iter().enumerate().map(|(i, z)| z * 0.95f64.powi((i / samples) as i32)).collect();
        let matrix = CoilMatrix::new(coils, coils, mixed).unwrap();
        let data = mapped(&matrix, samples, &data);
        energy.add(samples, &data).unwrap();
        let all = energy.compression(Keep::Energy(1.0)).unwrap();
        assert_eq!(all.matrix.virtual_coils(), coils);
        assert!((all.energies.iter().sum::<f64>() - 1.0).abs() < 1e-12 && all.energies.is_sorted_by(|a, b| a >= b));
        // Rows are orthonormal, and virtual coils are uncorrelated and have the reported energies.
        let made = mapped(&all.matrix, samples, &data);
        let total = norm(&data).powi(2);
        for (i, z) in covariance(&made, coils).iter().enumerate() {
            let (a, b) = (i % coils, i / coils);
            let expected = if a == b { all.energies[a] * total / samples as f64 } else { 0.0 };
            assert!((z - expected).norm() < 1e-12 * total, "{coils} coils, ({a}, {b}): {z}, {expected}");
            let entries = all.matrix.entries();
            let row = |v: usize| (0..coils).map(move |c| entries[c * coils + v]);
            let product: Complex<f64> = row(a).zip(row(b)).map(|(x, y)| x * y.conj()).sum();
            assert!((product - f64::from(a == b)).norm() < 1e-12);
        }
        // A part of the energy selects the smallest number of coils; a number of coils selects the first ones.
        let part = energy.compression(Keep::Energy(0.9)).unwrap();
        let kept = part.matrix.virtual_coils();
        assert!(part.kept() >= 0.9 && part.energies[..kept - 1].iter().sum::<f64>() < 0.9);
        let counted = energy.compression(Keep::Coils(kept)).unwrap();
        assert_eq!(counted, part);
        let lost = norm(&mapped(&part.matrix, samples, &data)).powi(2) / total;
        assert!((lost - part.kept()).abs() < 1e-12);
        kind(energy.compression(Keep::Coils(0)), ErrorKind::InvalidSize, &["at least one"]);
        kind(energy.compression(Keep::Coils(coils + 1)), ErrorKind::InvalidSize, &["at most the number of coils"]);
        for part in [0.0, 1.1, f64::NAN] {
            kind(energy.compression(Keep::Energy(part)), ErrorKind::InvalidArgument, &["energy"]);
        }
    }
    let empty = CoilEnergy::new(3).unwrap();
    kind(empty.compression(Keep::Coils(2)), ErrorKind::InvalidArgument, &["all data are 0"]);
    assert!(CoilEnergy::new(0).is_err());
    let mut energy = CoilEnergy::new(3).unwrap();
    kind(energy.add::<f32>(4, &[]), ErrorKind::SizeMismatch, &["whole number of frames"]);
    kind(energy.add::<f32>(4, &[Complex::default(); 13]), ErrorKind::SizeMismatch, &["13", "3 coils"]);
    kind(energy.add(1, &[Complex::new(f32::NAN, 0.0); 3]), ErrorKind::NotFinite, &["number 0 "]);
}

#[test]
fn covariances_that_cannot_be_inverted_are_refused() {
    let one = |re: f64| Complex::new(re, 0.0);
    let singular = |entries: Vec<Complex<f64>>| NoiseCovariance::new(2, entries).and_then(|c| c.whitening());
    // The second coil is the first, and almost the first.
    kind(singular(vec![one(1.0), one(2.0), one(2.0), one(4.0)]), ErrorKind::InvalidArgument, &["singular", "coil 1"]);
    kind(singular(vec![one(1.0), one(2.0), one(2.0), one(4.0 + 1e-7)]), ErrorKind::InvalidArgument, &["coil 1"]);
    kind(singular(vec![one(1.0), one(2.0), one(2.0), one(1.0)]), ErrorKind::InvalidArgument, &["coil 1"]);
    kind(singular(vec![one(1.0), one(0.0), one(0.0), one(0.0)]), ErrorKind::InvalidArgument, &["coil 1", "variance 0"]);
    kind(singular(vec![one(-1.0), one(0.0), one(0.0), one(1.0)]), ErrorKind::InvalidArgument, &["coil 0", "-1"]);
    let crooked = vec![one(1.0), Complex::new(0.0, 0.3), Complex::new(0.0, 0.3), one(1.0)];
    kind(singular(crooked), ErrorKind::InvalidArgument, &["Hermitian", "(0, 1)"]);
    kind(singular(vec![one(1.0); 3]), ErrorKind::SizeMismatch, &["3", "4"]);
    kind(singular(vec![one(f64::NAN); 4]), ErrorKind::NotFinite, &["entry"]);
    kind(NoiseCovariance::new(0, vec![]), ErrorKind::InvalidSize, &["0 coils"]);
    let of = |noise: &[Complex<f32>], coils| NoiseCovariance::of(noise, coils, NoiseSampling::SAME);
    let noise = vec![Complex::new(1f32, 0.0); 15];
    kind(of(&noise, 4), ErrorKind::SizeMismatch, &["15", "4 coils"]);
    kind(of(&noise, 5), ErrorKind::InvalidSize, &["3 samples", "5 coils", "2000"]);
    kind(of(&noise, 0), ErrorKind::InvalidSize, &["0 coils"]);
    kind(of(&[], 2), ErrorKind::InvalidSize, &["0 samples"]);
    kind(of(&[Complex::new(0f32, f32::INFINITY); 4], 1), ErrorKind::NotFinite, &["noise sample 0"]);
    // A dead coil among noise.
    let mut noise = narrow::<f32>(&white(&mut Random::fresh(), 3000));
    noise[1000..2000].fill(Complex::default());
    kind(of(&noise, 3).unwrap().whitening(), ErrorKind::InvalidArgument, &["coil 1 has no noise:"]);
}

const COILS: usize = 32;

/// A scan of the head by a ring of coils. Full sampling of its 64 voxels requires 100 spokes.
fn head_scan(spokes: usize) -> RingScan {
    RingScan::new(&Phantom::shepp_logan_2d(), 64, spokes, COILS)
}

/// Computes CG-SENSE with these data and maps.
fn sense(scan: &RingScan, data: &[Complex<f32>], maps: &[Complex<f32>], iterations: usize) -> Vec<Complex<f32>> {
    let mut image = poisoned(scan.n * scan.n);
    let cg = CgOptions { iterations, tolerance: 0.0, ..CgOptions::default() };
    scan.plan(maps, Device::Cpu).cg(data, &mut image, &cg).unwrap();
    image
}

#[test]
fn whitened_data_give_a_better_image() {
    let mut random = Random::fresh();
    let scan = head_scan(25);
    let coupling = coupling(&mut random, COILS);
    let level = 0.2 * norm(&scan.data) / (scan.data.len() as f64).sqrt();
    let mut noise = |samples: usize| {
        let noise = mapped(&coupling, samples, &white(&mut random, samples * COILS));
        noise.into_iter().map(|z| z * level).collect::<Vec<_>>()
    };
    let noisy: Vec<_> = scan.data.iter().zip(noise(scan.samples())).map(|(d, n)| d + n).collect();
    let whitening = NoiseCovariance::of(&noise(20_000), COILS, NoiseSampling::SAME).unwrap().whitening().unwrap();
    let best = |data: &[Complex<f64>], maps: &[Complex<f64>]| {
        let (data, maps) = (narrow(data), narrow(maps));
        let errors = (1..=10).map(|i| distance(&sense(&scan, &data, &maps, i), &scan.truth));
        errors.fold(f64::INFINITY, f64::min)
    };
    let plain = best(&noisy, &scan.maps);
    let voxels = scan.n * scan.n;
    let whitened = best(&mapped(&whitening, scan.samples(), &noisy), &mapped(&whitening, voxels, &scan.maps));
    say(&format!("CG-SENSE, 32 correlated coils, R = 4: error {plain:.3} as measured, {whitened:.3} whitened"));
    assert!(whitened < 0.8 * plain, "{whitened} against {plain}");
}

#[test]
fn ten_virtual_coils_of_32_give_the_same_image() {
    let scan = head_scan(100);
    let (data, maps) = (narrow::<f32>(&scan.data), narrow::<f32>(&scan.maps));
    let mut energy = CoilEnergy::new(COILS).unwrap();
    energy.add(scan.samples(), &data).unwrap();
    let made = energy.compression(Keep::Coils(10)).unwrap();
    let all = wide(&sense(&scan, &data, &maps, 16));
    let (data, maps) = (mapped(&made.matrix, scan.samples(), &data), mapped(&made.matrix, scan.n * scan.n, &maps));
    let change = distance(&sense(&scan, &data, &maps, 16), &all);
    say(&format!(
        "10 of 32 coils: {:.3} % of the energy, the image changes by {:.2} %",
        100.0 * made.kept(),
        100.0 * change
    ));
    assert!(change < 0.01, "{change}");
}
