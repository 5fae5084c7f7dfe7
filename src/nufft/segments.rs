//! Off-resonance and decay as a short sum: exp(-(R + i 2 pi f) t) = sum_l b_l(t) exp(-(R + i 2 pi f) tau_l) for all f, R
//! and t of a scan, with as few l as keep a tolerance.
//!
//! Each term is a transform without off-resonance (Noll et al., IEEE Trans. Med. Imaging 10:629, 1991: time
//! segmentation). The b_l are those of least squares (Man et al., Magn. Reson. Med. 37:785, 1997; Fessler et al., IEEE
//! Trans. Signal Process. 53:3393, 2005), with three differences. Every frequency between the least and the largest
//! counts as much as any other, however few voxels have it, so that the error is kept in each voxel. The nodes tau_l
//! are denser towards both ends, as those of Chebyshev, but less so: with them the number of terms is that of the
//! singular value decomposition, or one more. The frequencies' range is taken symmetric about its middle, so that the
//! b_l are real.

use crate::base::error::{bail, try_collect, try_vec, Result};
use crate::base::off_resonance::{Band, Ends};
use std::f64::consts::{PI, TAU};

/// Terms at most. A transform takes as many times the time of one without off-resonance.
pub const MOST_SEGMENTS: usize = 128;

/// Decay times duration at most: beyond, a voxel's signal differs from its first to its last sample by a factor of
/// more than exp(60), which no measurement shows.
const MOST_DECAY: f64 = 60.0;

/// The sum for one scan.
#[derive(Debug, Clone, PartialEq)]
pub struct Segments {
    /// tau_l in seconds.
    pub nodes: Vec<f64>,
    /// The frequency f0 in Hz at which the b_l turn: b_l(t) is [`Segments::weight`] exp(-i 2 pi f0 (t - tau_l)).
    pub frequency: f64,
    /// The largest error of the sum for any f, R and t, over the root mean square of exp(-R t) in that voxel.
    pub error: f64,
    /// The b_l decay by themselves at this rate in 1/s.
    rate: f64,
    /// The middle of all times, and half their length.
    time: [f64; 2],
    /// b_l(t) exp(rate t) as Chebyshev series over the times: [terms of the series, l].
    series: Vec<f64>,
}

/// The exponents that are to be fitted, all relative to the middle of their range: the half lengths of the ranges of
/// frequency in Hz, of decay rate in 1/s, and of time in seconds, and the rate in the middle.
#[derive(Clone, Copy)]
struct Range {
    frequency: f64,
    decay: f64,
    time: f64,
    rate: f64,
}

fn half([low, high]: Ends) -> f64 {
    0.5 * (high - low)
}

fn middle([low, high]: Ends) -> f64 {
    0.5 * (high + low)
}

impl Segments {
    /// For transforms: f and R of each voxel. `epsilon` is that of the arrays that they are kept in.
    ///
    /// # Errors
    /// `Unsupported` when more terms were needed than [`MOST_SEGMENTS`]; `InvalidArgument` for decay that no
    /// measurement shows.
    pub fn of_voxels(band: &Band, tolerance: f64, epsilon: f64) -> Result<Self> {
        Self::new(band, 1.0, tolerance, epsilon)
    }

    /// For E^H W E: f(s) - f(r) and R(s) + R(r) of each pair of voxels.
    ///
    /// # Errors
    /// As [`Segments::of_voxels`].
    pub fn of_pairs(band: &Band, tolerance: f64, epsilon: f64) -> Result<Self> {
        Self::new(band, 2.0, tolerance, epsilon)
    }

    /// `count` is how many voxels' exponents are added.
    fn new(band: &Band, count: f64, tolerance: f64, epsilon: f64) -> Result<Self> {
        let time = half(band.time);
        let (frequency, decay) = (band.frequency.unwrap_or([0.0; 2]), band.decay.unwrap_or([0.0; 2]));
        let range =
            Range { frequency: count * half(frequency), decay: count * half(decay), time, rate: count * middle(decay) };
        let furthest = band.time[0].abs().max(band.time[1].abs());
        if decay[1] * furthest > MOST_DECAY {
            bail!(
                InvalidArgument,
                "the largest decay rate is {} 1/s and sample times reach {furthest} s: signals would change by a \
                 factor of exp({:.0}). Rates are R2* in 1/s (1000 over T2* in ms), times in seconds. Limit the rates \
                 where the map is noise",
                decay[1],
                decay[1] * furthest
            );
        }
        let needed = needed(&range, tolerance);
        let fit = |terms: usize| -> Result<(Fit, f64)> {
            let fitted = Fit::new(&range, terms)?;
            let error = fitted.error(&range, epsilon)?;
            Ok((fitted, error))
        };
        // From the number expected upwards, then downwards.
        let mut terms = needed.clamp(1, MOST_SEGMENTS);
        let mut best = fit(terms)?;
        while best.1 > tolerance && terms < MOST_SEGMENTS {
            terms += 1;
            best = fit(terms)?;
        }
        while best.1 <= tolerance && terms > 1 {
            match fit(terms - 1)? {
                fewer if fewer.1 <= tolerance => (best, terms) = (fewer, terms - 1),
                _ => break,
            }
        }
        let (fitted, best) = best;
        if best <= tolerance {
            return Ok(Segments {
                nodes: try_collect(terms, "off-resonance", fitted.nodes.iter().map(|s| s + middle(band.time)))?,
                frequency: if count == 1.0 { middle(frequency) } else { 0.0 },
                error: best,
                rate: range.rate,
                time: [middle(band.time), time],
                series: fitted.series(&range, middle(band.time))?,
            });
        }
        let remedy = match best {
            // A little more, for what the error of gridding takes.
            best if best < 0.3 => format!("a tolerance of {:.0e} would do", 2.0 * best),
            _ => "no tolerance would do".to_string(),
        };
        bail!(
            Unsupported,
            "the field map reaches from {:.1} to {:.1} Hz and sample times from {:.4} to {:.4} s: that takes about \
             {needed} segments, and at most {MOST_SEGMENTS} are made; {remedy}. Is the map in Hz, and are times in \
             seconds? Limit the map's extremes where there is no object, or use method exact",
            frequency[0],
            frequency[1],
            band.time[0],
            band.time[1]
        );
    }

    /// The number of terms.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// b_l(t) of all l, but for its turning.
    pub fn weights(&self, t: f64, out: &mut [f64]) {
        let [middle, half] = self.time;
        let x = if half > 0.0 { ((t - middle) / half).clamp(-1.0, 1.0) } else { 0.0 };
        out.fill(0.0);
        let (mut now, mut next) = (1.0, x);
        for row in self.series.chunks_exact(out.len()) {
            for (out, c) in out.iter_mut().zip(row) {
                *out += now * c;
            }
            (now, next) = (next, 2.0 * x * next - now);
        }
        let decay = (-self.rate * t).exp();
        out.iter_mut().for_each(|b| *b *= decay);
    }

    /// b_l(t) of one l, but for its turning.
    pub fn weight(&self, l: usize, t: f64) -> f64 {
        let [middle, half] = self.time;
        let x = if half > 0.0 { ((t - middle) / half).clamp(-1.0, 1.0) } else { 0.0 };
        let (mut sum, mut now, mut next) = (0.0, 1.0, x);
        for row in self.series.chunks_exact(self.len()) {
            sum += now * row[l];
            (now, next) = (next, 2.0 * x * next - now);
        }
        sum * (-self.rate * t).exp()
    }
}

/// About how many terms a tolerance takes: the eigenvalues of time and band limiting fall within a few terms of twice
/// their product (Landau and Widom, J. Math. Anal. Appl. 77:469, 1980).
fn needed(range: &Range, tolerance: f64) -> usize {
    if range.frequency == 0.0 && range.decay == 0.0 {
        return 1;
    }
    let product = 4.0 * range.frequency * range.time;
    let fall = (2.0 * PI * product.max(1.0)).ln() * (1.0 / tolerance).ln() / (PI * PI);
    (product + fall + 2.0 * range.decay * range.time).ceil() as usize
}

/// Nodes between -1 and 1 for waves of up to `c` radians: the zeros of a prolate spheroidal function, which lie where
/// the integral of ((chi - c^2 x^2) / (1 - x^2))^(1/2) passes odd multiples of pi/2. They are Chebyshev's where c is
/// small, and even where there are no more of them than waves (Xiao, Rokhlin and Yarvin, Inverse Problems 17:805,
/// 2001).
fn nodes(c: f64, count: usize) -> Result<Vec<f64>> {
    // With x = sin(phi) and k^2 = c^2 / chi, the integral is c / k times that of (1 - k^2 sin^2 phi)^(1/2).
    const STEPS: usize = 512;
    let angle = |i: usize| ((i as f64 + 0.5) / STEPS as f64 - 0.5) * PI;
    let density = |k: f64, i: usize| (1.0 - (k * angle(i).sin()).powi(2)).max(0.0).sqrt() * PI / STEPS as f64;
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..50 {
        let k = 0.5 * (low + high);
        let all: f64 = (0..STEPS).map(|i| density(k, i)).sum();
        *if c * all > k * count as f64 * PI { &mut low } else { &mut high } = k;
    }
    let k = 0.5 * (low + high);
    let all: f64 = (0..STEPS).map(|i| density(k, i)).sum();
    let mut nodes = try_vec(count, 0.0, "off-resonance")?;
    let (mut before, mut step) = (0.0, 0);
    // The second half mirrors the first.
    for l in 0..count / 2 {
        let wanted = all * (l as f64 + 0.5) / count as f64;
        while before + density(k, step) < wanted {
            before += density(k, step);
            step += 1;
        }
        let phi = angle(step) + ((wanted - before) / density(k, step) - 0.5) * PI / STEPS as f64;
        (nodes[l], nodes[count - 1 - l]) = (phi.sin(), -phi.sin());
    }
    Ok(nodes)
}

/// Points of a range of -1 to 1, dense towards its ends, where polynomials are fitted.
fn chebyshev(count: usize) -> impl Iterator<Item = f64> + Clone {
    (0..count).map(move |i| -((i as f64 + 0.5) / count as f64 * PI).cos())
}

/// So many numbers from the first to the last.
fn even(first: f64, last: f64, count: usize) -> impl Iterator<Item = f64> + Clone {
    let step = if count > 1 { (last - first) / (count - 1) as f64 } else { 0.0 };
    (0..count).map(move |i| first + step * i as f64)
}

/// The least-squares fit at given nodes.
struct Fit {
    nodes: Vec<f64>,
    /// The exponents that were fitted: frequency, decay, and the weight of their equations.
    points: Vec<[f64; 3]>,
    solver: LeastSquares,
}

impl Fit {
    fn new(range: &Range, terms: usize) -> Result<Self> {
        let mut nodes = nodes(TAU * range.frequency * range.time, terms)?;
        nodes.iter_mut().for_each(|x| *x *= range.time);
        // The frequencies are symmetric: their negative half has the same equations.
        let frequencies = if range.frequency > 0.0 { terms + 8 } else { 1 };
        let decays = match range.decay > 0.0 {
            true if frequencies == 1 => terms + 4,
            true => 4 + (2.0 * range.decay * range.time) as usize,
            false => 1,
        };
        let points = chebyshev(2 * frequencies).skip(frequencies).flat_map(|f| {
            chebyshev(decays).map(move |r| [f * range.frequency, if decays > 1 { r * range.decay } else { 0.0 }])
        });
        let weighted = points.map(|[f, r]| [f, r, 1.0 / range.size(r)]);
        let points = try_collect(frequencies * decays, "off-resonance", weighted)?;
        let rows = 2 * points.len();
        let mut matrix = try_vec(rows * terms, 0.0, "off-resonance")?;
        for (column, &tau) in matrix.chunks_exact_mut(rows).zip(&nodes) {
            fill(column, &points, tau);
        }
        Ok(Fit { solver: LeastSquares::new(matrix, rows, terms)?, nodes, points })
    }

    /// The b_l at a time from the middle of all.
    fn at(&self, s: f64, column: &mut [f64]) {
        fill(column, &self.points, s);
        self.solver.solve(column);
    }

    /// The largest error, over the size of a voxel's signal.
    fn error(&self, range: &Range, epsilon: f64) -> Result<f64> {
        let terms = self.nodes.len();
        // Between points the error is larger by a few percent at most.
        const BETWEEN: f64 = 1.05;
        let count = if range.frequency > 0.0 { 2 * terms + 8 } else { 1 };
        let decays = if range.decay > 0.0 { 7 + (3.0 * range.decay * range.time) as usize } else { 1 };
        let times = if range.time > 0.0 { 2 * terms + 9 } else { 1 };
        let mut b = try_vec(2 * self.points.len(), 0.0, "off-resonance")?;
        // exp(-(R + i 2 pi f) tau_l) of all points: real part, imaginary part, size.
        let points = even(0.0, range.frequency, count)
            .flat_map(|f| even(-range.decay, range.decay, decays).map(move |r| [f, r, 1.0 / range.size(r)]));
        let points = try_collect(count * decays, "off-resonance", points)?;
        let mut waves = try_vec(3 * terms * points.len(), 0.0, "off-resonance")?;
        for (row, &[f, r, _]) in waves.chunks_exact_mut(3 * terms).zip(&points) {
            for (wave, tau) in row.chunks_exact_mut(3).zip(&self.nodes) {
                let (sin, cos) = (TAU * f * tau).sin_cos();
                let size = (-r * tau).exp();
                wave.copy_from_slice(&[size * cos, size * sin, size]);
            }
        }
        let mut worst = 0f64;
        for s in even(-range.time, range.time, times) {
            self.at(s, &mut b);
            let decay = (-range.rate * s).exp();
            for (row, &[f, r, weight]) in waves.chunks_exact(3 * terms).zip(&points) {
                let (sin, cos) = (TAU * f * s).sin_cos();
                let size = (-r * s).exp();
                let (mut re, mut im, mut sum) = (-size * cos, -size * sin, 0.0);
                for (wave, b) in row.chunks_exact(3).zip(&b) {
                    re += wave[0] * b;
                    im += wave[1] * b;
                    sum += wave[2] * b.abs();
                }
                let rounding = 0.5 * epsilon * sum;
                worst = worst.max(decay * weight * ((re * re + im * im).sqrt() * BETWEEN + rounding));
            }
        }
        Ok(worst)
    }

    /// The b_l as Chebyshev series, each divided by the decay at the middle rate up to its node.
    fn series(&self, range: &Range, middle: f64) -> Result<Vec<f64>> {
        let terms = self.nodes.len();
        let count = if range.time > 0.0 { 2 * terms + 24 } else { 1 };
        let mut series = try_vec(count * terms, 0.0, "off-resonance")?;
        let mut b = try_vec(2 * self.points.len(), 0.0, "off-resonance")?;
        for (i, x) in chebyshev(count).enumerate() {
            self.at(x * range.time, &mut b);
            let angle = PI - (i as f64 + 0.5) / count as f64 * PI;
            for (n, row) in series.chunks_exact_mut(terms).enumerate() {
                let factor = (n as f64 * angle).cos() * if n == 0 { 1.0 } else { 2.0 } / count as f64;
                row.iter_mut().zip(&b).for_each(|(c, b)| *c += factor * b);
            }
        }
        for row in series.chunks_exact_mut(terms) {
            row.iter_mut().zip(&self.nodes).for_each(|(c, s)| *c *= (range.rate * (s + middle)).exp());
        }
        Ok(series)
    }
}

impl Range {
    /// The root mean square over all times of a signal that decays at `r` beyond the middle rate.
    fn size(&self, r: f64) -> f64 {
        let a = 2.0 * (r + self.rate) * self.time;
        if a.abs() < 1e-6 {
            1.0
        } else {
            (a.sinh() / a).sqrt()
        }
    }
}

/// exp(-(R + i 2 pi f) s) of all points, their real and imaginary parts.
fn fill(column: &mut [f64], points: &[[f64; 3]], s: f64) {
    for (pair, [f, r, weight]) in column.chunks_exact_mut(2).zip(points) {
        let (sin, cos) = (TAU * f * s).sin_cos();
        let size = weight * (-r * s).exp();
        pair.copy_from_slice(&[size * cos, size * sin]);
    }
}

/// Householder's reduction of a matrix of more rows than columns, for any number of right-hand sides.
struct LeastSquares {
    /// By columns: the triangle, and below it the reflections.
    matrix: Vec<f64>,
    diagonal: Vec<f64>,
    rows: usize,
}

impl LeastSquares {
    fn new(mut matrix: Vec<f64>, rows: usize, columns: usize) -> Result<Self> {
        let mut diagonal = try_vec(columns, 0.0, "off-resonance")?;
        for j in 0..columns {
            let (before, after) = matrix.split_at_mut((j + 1) * rows);
            let v = &mut before[j * rows + j..];
            let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt();
            let alpha = if v[0] > 0.0 { -norm } else { norm };
            diagonal[j] = alpha;
            v[0] -= alpha;
            // The reflection becomes 1 - v v^T.
            let size = (norm * (norm + (v[0] + alpha).abs())).sqrt();
            if size > 0.0 {
                v.iter_mut().for_each(|x| *x /= size);
            }
            for column in after.chunks_exact_mut(rows) {
                reflect(v, &mut column[j..]);
            }
        }
        Ok(LeastSquares { matrix, diagonal, rows })
    }

    /// The solution, in the first elements of its right-hand side.
    fn solve(&self, right: &mut [f64]) {
        let columns = self.diagonal.len();
        let column = |j: usize| &self.matrix[j * self.rows..][..self.rows];
        for j in 0..columns {
            reflect(&column(j)[j..], &mut right[j..]);
        }
        for j in (0..columns).rev() {
            // A direction that the equations do not decide is left out.
            let x =
                if self.diagonal[j].abs() > 1e-15 * self.diagonal[0].abs() { right[j] / self.diagonal[j] } else { 0.0 };
            right[j] = x;
            for (r, a) in right[..j].iter_mut().zip(column(j)) {
                *r -= a * x;
            }
        }
    }
}

fn reflect(v: &[f64], x: &mut [f64]) {
    let dot: f64 = v.iter().zip(&*x).map(|(v, x)| v * x).sum();
    x.iter_mut().zip(v).for_each(|(x, v)| *x -= dot * v);
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex;

    fn band(frequency: Ends, decay: Ends, time: Ends) -> Band {
        Band { frequency: Some(frequency), decay: Some(decay), time }
    }

    /// The largest error at points that the fit has not seen, over the size of a voxel's signal.
    fn error(segments: &Segments, band: &Band, pairs: bool) -> f64 {
        let (frequency, decay) = (band.frequency.unwrap(), band.decay.unwrap());
        let count = if pairs { 2.0 } else { 1.0 };
        let between = |[low, high]: Ends, x: f64| low + (high - low) * x;
        let mut b = vec![0.0; segments.len()];
        let mut worst = 0f64;
        for i in 0..=57 {
            let f = match pairs {
                false => between(frequency, i as f64 / 57.0),
                true => (frequency[1] - frequency[0]) * (i as f64 / 28.5 - 1.0),
            };
            for j in 0..=if decay[1] > decay[0] { 11 } else { 0 } {
                let r = count * between(decay, j as f64 / 11.0);
                let signal = |t: f64| Complex::from_polar((-r * t).exp(), -TAU * f * t);
                let all: Vec<f64> = (0..=111).map(|m| between(band.time, m as f64 / 111.0)).collect();
                let size = (all.iter().map(|&t| signal(t).norm_sqr()).sum::<f64>() / all.len() as f64).sqrt();
                for (m, &t) in all.iter().enumerate() {
                    segments.weights(t, &mut b);
                    let (l, most) = (m % b.len(), b.iter().fold(1.0, |m: f64, b| m.max(b.abs())));
                    assert!((segments.weight(l, t) - b[l]).abs() <= 1e-13 * most);
                    let term = |(&tau, b): (&f64, &f64)| {
                        signal(tau) * Complex::from_polar(*b, -TAU * segments.frequency * (t - tau))
                    };
                    let sum: Complex<f64> = segments.nodes.iter().zip(&b).map(term).sum();
                    worst = worst.max((sum - signal(t)).norm() / size);
                }
            }
        }
        worst
    }

    #[test]
    fn numbers_of_terms_are_those_of_the_singular_values() {
        // 169 Hz: what a singular value decomposition takes at 1e-2 ... 1e-6, and one more at most; for pairs to 1e-5.
        let tolerances = [1e-2, 1e-3, 1e-4, 1e-5, 1e-6];
        for (seconds, voxels, pairs) in [
            (0.02, [7, 9, 10, 11, 12], Some([12, 13, 15, 17])),
            (0.005, [4, 5, 6, 6, 7], None),
            (0.05, [13, 15, 16, 18, 19], None),
        ] {
            let band = band([-40.6, 128.4], [0.0; 2], [0.001, 0.001 + seconds]);
            for (i, &tolerance) in tolerances.iter().enumerate() {
                let found = Segments::of_voxels(&band, tolerance, f64::EPSILON).unwrap();
                assert!(found.len() <= voxels[i] + 1, "{seconds} {tolerance}: {}", found.len());
                let error = error(&found, &band, false);
                assert!(error <= tolerance && found.error <= tolerance, "{error} {}", found.error);
                if let Some(&most) = pairs.as_ref().and_then(|pairs| pairs.get(i)) {
                    let found = Segments::of_pairs(&band, tolerance, f64::EPSILON).unwrap();
                    assert!(found.len() <= most, "{seconds} {tolerance}: {}", found.len());
                    let error = self::error(&found, &band, true);
                    assert!(error <= tolerance, "{error}");
                }
            }
        }
    }

    #[test]
    fn errors_are_kept_with_decay_and_where_there_is_little_of_either() {
        for (frequency, decay, time) in [
            ([-200.0, 50.0], [0.0, 80.0], [0.0, 0.03]),
            ([0.0, 0.0], [0.0, 200.0], [0.0, 0.03]),
            ([-440.0, 30.0], [5.0, 500.0], [0.002, 0.02]),
            ([30.0, 30.0], [7.0, 7.0], [0.0, 0.03]),
            ([0.0, 0.0], [0.0, 0.0], [0.0, 0.03]),
            ([-100.0, 100.0], [0.0, 30.0], [0.004, 0.004]),
            ([-100.0, 100.0], [0.0, 30.0], [-0.01, 0.01]),
            ([-1e-3, 1e-3], [0.0, 1e-3], [0.0, 1e-3]),
        ] {
            let band = band(frequency, decay, time);
            for tolerance in [1e-2, 1e-4, 1e-6, 1e-9] {
                for pairs in [false, true] {
                    let make = if pairs { Segments::of_pairs } else { Segments::of_voxels };
                    let found = make(&band, tolerance, f64::EPSILON).unwrap();
                    let error = error(&found, &band, pairs);
                    println!("{band:?} {tolerance} {pairs}: {} terms, {error:.1e} {:.1e}", found.len(), found.error);
                    assert!(error <= tolerance, "{band:?} {tolerance} {pairs}: {error} of {}", found.len());
                }
            }
        }
        let one = Segments::of_voxels(&band([7.0, 7.0], [3.0, 3.0], [0.0, 0.1]), 1e-6, f64::EPSILON).unwrap();
        assert_eq!(one.len(), 1);
    }

    #[test]
    fn steep_maps_and_wrong_units_are_refused_with_what_would_do() {
        let steep = band([-2000.0, 2000.0], [0.0; 2], [0.0, 0.05]);
        let error = Segments::of_voxels(&steep, 1e-4, f64::EPSILON).unwrap_err().to_string();
        assert!(error.contains("segments") && error.contains("no tolerance would do"), "{error}");
        let border = band([-600.0, 600.0], [0.0; 2], [0.0, 0.05]);
        let error = Segments::of_pairs(&border, 1e-9, f64::EPSILON).unwrap_err().to_string();
        assert!(error.contains("a tolerance of"), "{error}");
        let decay = band([0.0, 1.0], [0.0, 40.0], [0.0, 20.0]);
        let error = Segments::of_voxels(&decay, 1e-4, f64::EPSILON).unwrap_err().to_string();
        assert!(error.contains("R2*") && error.contains("exp(800)"), "{error}");
    }
}
