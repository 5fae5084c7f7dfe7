//! Field maps from images of several echoes, against maps that are known: their errors over noise levels, their sign,
//! wraps, decay, and what is refused.

mod common;

use common::*;
use recon::field_map::Echoes;
use recon::{estimate_field_map, Complex, ErrorKind, FieldMapOptions, FieldMapReport, Real};
use std::f64::consts::TAU;

/// An object in several coils, of known off-resonance and decay.
struct Object {
    dims: Vec<usize>,
    coils: usize,
    /// [voxels]: 0 outside, and in a hole.
    magnitude: Vec<f64>,
    /// [voxels], Hz.
    field: Vec<f64>,
    /// [voxels], 1/s.
    decay: Vec<f64>,
    /// [voxels, coils].
    maps: Vec<Complex<f64>>,
}

impl Object {
    /// `reach` is about the largest |f| of the smooth part in Hz; the steep part adds 60 Hz within some voxels.
    fn new(random: &mut Random, dims: &[usize], coils: usize, reach: f64) -> Object {
        let voxels: usize = dims.iter().product();
        let place = |i: usize| -> Vec<f64> {
            let mut rest = i;
            let mut axis = |&n: &usize| {
                let at = rest % n;
                rest /= n;
                at as f64 / n as f64 - 0.5
            };
            dims.iter().map(&mut axis).collect()
        };
        let waves: Vec<(Vec<f64>, f64)> = (0..4)
            .map(|_| ((0..dims.len()).map(|_| 3.0 * random.uniform()).collect(), 10.0 * random.uniform()))
            .collect();
        let phases: Vec<(Vec<f64>, f64)> = (0..coils)
            .map(|_| ((0..dims.len()).map(|_| 2.0 * random.uniform()).collect(), 10.0 * random.uniform()))
            .collect();
        let wave = |(k, phase): &(Vec<f64>, f64), r: &[f64]| {
            (TAU * k.iter().zip(r).map(|(k, r)| k * r).sum::<f64>() + phase).sin()
        };
        let steep: Vec<f64> = dims.iter().map(|_| 0.4 * random.uniform()).collect();
        let object: Vec<Vec<f64>> = (0..voxels).map(place).collect();
        let distance = |r: &[f64], to: &[f64]| r.iter().zip(to).map(|(r, t)| (r - t).powi(2)).sum::<f64>();
        let hole: Vec<f64> = dims.iter().map(|_| 0.4 * random.uniform()).collect();
        let field = |r: &Vec<f64>| {
            reach / 2.0 * waves.iter().map(|w| wave(w, r)).sum::<f64>()
                + 60.0 * (-distance(r, &steep) / (2.0 * 0.05f64.powi(2))).exp()
        };
        let inside = |r: &Vec<f64>| {
            let within = distance(r, &vec![0.0; r.len()]) < 0.42f64.powi(2) && distance(r, &hole) > 0.07f64.powi(2);
            f64::from(within) * (0.7 + 0.3 * wave(&waves[0], r))
        };
        let coil = |c: usize, r: &Vec<f64>| {
            let at: Vec<f64> = (0..r.len()).map(|a| 0.5 * (c as f64 * TAU / coils as f64 + a as f64).cos()).collect();
            Complex::from_polar((-1.5 * distance(r, &at)).exp(), 4.0 * wave(&phases[c], r))
        };
        Object {
            dims: dims.to_vec(),
            coils,
            magnitude: object.iter().map(inside).collect(),
            field: object.iter().map(field).collect(),
            decay: object.iter().map(|r| 25.0 + 20.0 * wave(&waves[1], r)).collect(),
            maps: (0..coils).flat_map(|c| object.iter().map(move |r| (c, r))).map(|(c, r)| coil(c, r)).collect(),
        }
    }

    /// Images of echoes with noise, of `snr` times less RMS in the combined image than the object's mean. Infinite: none.
    fn images<T: Real>(&self, random: &mut Random, times: &[f64], snr: f64) -> Vec<Complex<T>> {
        let voxels = self.field.len();
        let combined = |i: usize| (0..self.coils).map(|c| self.maps[c * voxels + i].norm_sqr()).sum::<f64>().sqrt();
        let inside: Vec<f64> = (0..voxels).filter(|&i| self.magnitude[i] > 0.0).map(combined).collect();
        let sigma = inside.iter().sum::<f64>() / inside.len() as f64 * 0.7 / snr / 2f64.sqrt();
        let mut images = Vec::new();
        for &t in times {
            for c in 0..self.coils {
                for i in 0..voxels {
                    // The model's sign.
                    let grown = Complex::from_polar((-self.decay[i] * t).exp(), -TAU * self.field[i] * t);
                    let noise = Complex::new(normal(random), normal(random)) * sigma;
                    let z = grown * self.magnitude[i] * self.maps[c * voxels + i] + noise;
                    images.push(Complex::new(T::of(z.re), T::of(z.im)));
                }
            }
        }
        images
    }

    fn estimate<T: Real>(&self, images: &[Complex<T>], times: &[f64], options: &FieldMapOptions) -> Found {
        let voxels = self.field.len();
        let (mut field, mut decay) = (vec![T::of(f64::NAN); voxels], vec![T::of(f64::NAN); voxels]);
        let echoes = Echoes { images, dims: &self.dims, coils: self.coils, times };
        let report = estimate_field_map(&echoes, options, &mut field, Some(&mut decay)).unwrap();
        let wide = |map: Vec<T>| map.iter().map(|v| v.wide()).collect();
        Found { field: wide(field), decay: wide(decay), report }
    }

    /// The RMS difference of a map from the truth where there is an object, and the largest.
    fn error(&self, map: &[f64], truth: &[f64]) -> (f64, f64) {
        let inside = (0..map.len()).filter(|&i| self.magnitude[i] > 0.0);
        let errors: Vec<f64> = inside.map(|i| (map[i] - truth[i]).abs()).collect();
        let square: f64 = errors.iter().map(|e| e * e).sum();
        ((square / errors.len() as f64).sqrt(), errors.iter().copied().fold(0.0, f64::max))
    }
}

struct Found {
    field: Vec<f64>,
    decay: Vec<f64>,
    report: FieldMapReport,
}

fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.uniform()).sum()
}

#[test]
fn survey() {
    for echoes in [2, 3] {
        for snr in [3.0, 5.0, 10.0, 20.0, 50.0, 200.0] {
            print!("{echoes} echoes, SNR {snr}:");
            for smoothing in [0.0, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1.0, 3.0, 10.0] {
                let (mut sum, mut worst) = (0.0, 0.0f64);
                let mut jumps = 0;
                for seed in 0..4 {
                    let mut random = Random::of(1000 + seed);
                    let object = Object::new(&mut random, &[96, 80], 4, 50.0);
                    let times = &[0.004, 0.0063, 0.0109][..echoes];
                    let images = object.images::<f32>(&mut random, times, snr);
                    let found =
                        object.estimate(&images, times, &FieldMapOptions { smoothing, ..Default::default() });
                    let (rms, most) = object.error(&found.field, &object.field);
                    sum += rms / 4.0;
                    worst = worst.max(most);
                    jumps += found.report.jumps;
                }
                print!("  {smoothing}: {sum:.2} ({worst:.0}, {jumps})");
            }
            println!();
        }
    }
}
