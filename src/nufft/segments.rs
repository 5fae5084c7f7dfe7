//! Off-resonance and decay as a short sum: exp(-(R + i 2 pi f) t) = sum_l b_l(t) exp(-(R + i 2 pi f) tau_l) for all f, R
//! and t of a scan, with as few l as keep a tolerance.
//!
//! Each term is a transform without off-resonance (Noll et al., IEEE Trans. Med. Imaging 10:629, 1991: time
//! segmentation). The b_l are those of least squares (Man et al., Magn. Reson. Med. 37:785, 1997; Fessler et al., IEEE
//! Trans. Signal Process. 53:3393, 2005), with four differences. Every frequency between the least and the largest
//! counts as much as any other, however few voxels have it, so that the error is kept in each voxel. The nodes tau_l
//! are denser towards both ends, as those of Chebyshev, but less so: with them the number of terms is that of the
//! singular value decomposition, or one more. The frequencies' range is taken symmetric about its middle, so that the
//! b_l are real. With decay, the nodes may also be the pivots of a QR decomposition of the signals by times (Cheng et
//! al., SIAM J. Sci. Comput. 26:1389, 2005). The b_l are then near 1 or below, and terms do not cancel at any decay.

use crate::base::dense::LeastSquares;
use crate::base::error::{bail, try_collect, try_vec, Error, ErrorKind, Result};
use crate::base::off_resonance::{MinMax, OffResonanceRange};
use crate::base::real::{narrow, wide, Real};
use num_complex::Complex;
use std::f64::consts::{PI, TAU};

/// Maximum number of terms. The time of a transform is proportional to the number of terms.
pub const MOST_SEGMENTS: usize = 128;

/// Maximum of rate times time in the slowest voxel: if all signals change by more than exp(60), the units are wrong.
/// It is also the maximum by which the signal of any voxel may grow at times before 0.
const MOST_DECAY: f64 = 60.0;

/// Maximum of rate times duration in any voxel. The series of b_l(t) becomes long for more.
const MOST_DECAY_IN_READOUT: f64 = 5000.0;

/// Rate times duration up to which nodes for frequencies are tried for decay as well.
const LITTLE_DECAY: f64 = 20.0;

/// The sum for one scan.
#[derive(Debug, Clone, PartialEq)]
pub struct Segments {
    /// tau_l in seconds.
    pub nodes: Vec<f64>,
    /// The frequency f0 in Hz at which the b_l turn: b_l(t) is [`Segments::weight`] exp(-i 2 pi f0 (t - tau_l)).
    pub frequency: f64,
    /// The largest error of the sum for any f, R and t, over the root mean square of exp(-R t) in that voxel. It is
    /// also measured, with all numbers in the precision of the plan's arrays.
    pub error: f64,
    /// The largest rate in 1/s that voxels are computed with. The signal of faster voxels is 0 in the plan's precision.
    pub fastest: f64,
    /// The middle of all times, and half their length.
    time: [f64; 2],
    /// b_l(t) as Chebyshev series over the times: [terms of the series, l].
    series: Vec<f64>,
}

/// The exponents to be fitted: half the range of frequencies in Hz about their middle, the range of decay rates in 1/s,
/// and half the range of times.
#[derive(Clone, Copy)]
struct Range {
    frequency: f64,
    decay: MinMax,
    time: f64,
}

fn half([low, high]: MinMax) -> f64 {
    0.5 * (high - low)
}

fn middle([low, high]: MinMax) -> f64 {
    0.5 * (high + low)
}

/// Whether a sum is for transforms or for E^H W E.
#[derive(Clone, Copy, PartialEq)]
enum Exponents {
    /// f and R of each voxel.
    Voxels,
    /// f(s) - f(r) and R(s) + R(r) of each pair of voxels.
    Pairs,
}

impl Segments {
    /// For transforms: f and R of each voxel, in arrays of precision `T`.
    ///
    /// # Errors
    /// `Unsupported` when more terms were needed than [`MOST_SEGMENTS`], or rounding exceeds the tolerance;
    /// `InvalidArgument` for decay that no measurement shows. Both name the voxel with the largest rate.
    pub fn of_voxels<T: Real>(band: &OffResonanceRange, tolerance: f64) -> Result<Self> {
        Self::new::<T>(band, Exponents::Voxels, tolerance)
    }

    /// For E^H W E: f(s) - f(r) and R(s) + R(r) of each pair of voxels, in arrays of precision `T`.
    ///
    /// # Errors
    /// As [`Segments::of_voxels`].
    pub fn of_pairs<T: Real>(band: &OffResonanceRange, tolerance: f64) -> Result<Self> {
        Self::new::<T>(band, Exponents::Pairs, tolerance)
    }

    fn new<T: Real>(band: &OffResonanceRange, exponents: Exponents, tolerance: f64) -> Result<Self> {
        let decay = usable_rates::<T>(band)?;
        let count = if exponents == Exponents::Pairs { 2.0 } else { 1.0 };
        let frequency = band.frequency.unwrap_or([0.0; 2]);
        let range =
            Range { frequency: count * half(frequency), decay: decay.map(|rate| count * rate), time: half(band.time) };
        let make = |fit: &Fit, error: f64| -> Result<Self> {
            let mut made = Segments {
                nodes: try_collect(fit.nodes.len(), "off-resonance", fit.nodes.iter().map(|s| s + middle(band.time)))?,
                frequency: if exponents == Exponents::Voxels { middle(frequency) } else { 0.0 },
                error,
                fastest: decay[1],
                time: [middle(band.time), range.time],
                series: fit.series(&range, T::EPSILON)?,
            };
            made.error = error.max(made.measured_error::<T>(&range, band.time[0], exponents)?);
            Ok(made)
        };
        // The sum with the fewest nodes of either kind, and the smallest error of all attempts.
        let (mut best, mut least): (Option<Self>, f64) = (None, f64::INFINITY);
        let needed = needed(&range, tolerance);
        let mut attempt = |expected: usize, most: usize, nodes: &dyn Fn(usize) -> Result<Vec<f64>>| -> Result<()> {
            let fit = |terms: usize| Fit::with_error(&range, nodes(terms)?, T::EPSILON);
            // From the number expected upwards, then downwards.
            let mut terms = expected.clamp(1, most);
            let mut found = fit(terms)?;
            while found.1 > tolerance && terms < most {
                terms += 1;
                found = fit(terms)?;
            }
            while found.1 <= tolerance && terms > 1 {
                match fit(terms - 1)? {
                    fewer if fewer.1 <= tolerance => (found, terms) = (fewer, terms - 1),
                    _ => break,
                }
            }
            // A few more terms, if the sum as it is stored exceeds the tolerance.
            for more in 0..=3 {
                if best.as_ref().is_some_and(|best| best.len() <= terms + more) || terms + more > most {
                    break;
                }
                if more > 0 {
                    found = fit(terms + more)?;
                }
                least = least.min(found.1);
                if found.1 > tolerance {
                    break;
                }
                let made = make(&found.0, found.1)?;
                least = least.min(made.error);
                if made.error <= tolerance {
                    best = Some(made);
                    break;
                }
            }
            Ok(())
        };
        if range.decay[1] > 0.0 {
            let pivots = Pivots::new(&range, needed, tolerance)?;
            attempt(pivots.expected, pivots.nodes.len(), &|terms| {
                try_collect(terms, "off-resonance", pivots.nodes[..terms].iter().copied())
            })?;
        }
        if range.decay[1] * 2.0 * range.time <= LITTLE_DECAY {
            attempt(needed, MOST_SEGMENTS, &|terms| {
                let mut nodes = nodes(TAU * range.frequency * range.time, terms)?;
                nodes.iter_mut().for_each(|x| *x *= range.time);
                Ok(nodes)
            })?;
        }
        best.map_or_else(|| Err(refusal(band, needed, least, T::NAME)), Ok)
    }

    /// Returns the largest root mean square error of the sum over that of a signal, with factors of voxels and samples
    /// rounded to the precision of the arrays, and summed in it. `start` is the first time.
    fn measured_error<T: Real>(&self, range: &Range, start: f64, exponents: Exponents) -> Result<f64> {
        let terms = self.len();
        let frequencies: &[f64] = if range.frequency > 0.0 { &[-1.0, -0.613, 0.0, 0.271, 0.894, 1.0] } else { &[0.0] };
        let rates = if range.decay[1] > range.decay[0] { 9 } else { 1 };
        let mut b = try_vec(terms, 0.0, "off-resonance")?;
        let mut stored: Vec<Complex<T>> = try_vec(terms, Complex::default(), "off-resonance")?;
        let turned = |size: f64, f: f64, t: f64| Complex::from_polar(size, -TAU * f * t);
        let points = frequencies.iter().flat_map(|f| range.rates(rates).map(move |r| (f * range.frequency, r)));
        let points = try_collect(frequencies.len() * rates, "off-resonance", points)?;
        let mut waves: Vec<Complex<T>> = try_vec(terms * points.len(), Complex::default(), "off-resonance")?;
        for (row, &(f, r)) in waves.chunks_exact_mut(terms).zip(&points) {
            for (wave, tau) in row.iter_mut().zip(&self.nodes) {
                let factor = match exponents {
                    Exponents::Voxels => wide(narrow::<T>(turned((-r * tau).exp(), f + self.frequency, *tau))),
                    Exponents::Pairs => {
                        let one = |f| wide(narrow::<T>(turned((-0.5 * r * tau).exp(), 0.5 * f, *tau)));
                        one(-f).conj() * one(f)
                    }
                };
                // Of the signal at the first time, which may be beyond the range of `T` for a pair.
                *wave = narrow(factor * (r * start).exp());
            }
        }
        let mut squares = try_vec(points.len(), 0.0, "off-resonance")?;
        for (s, share) in range.times(3 * terms + 9) {
            let t = self.time[0] + s;
            self.weights(t, &mut b);
            for ((stored, b), tau) in stored.iter_mut().zip(&b).zip(&self.nodes) {
                *stored = narrow(turned(*b, self.frequency, t) * turned(1.0, self.frequency, -tau));
            }
            for ((row, &(f, r)), square) in waves.chunks_exact(terms).zip(&points).zip(&mut squares) {
                let zero = Complex::new(T::ZERO, T::ZERO);
                let sum = row.iter().zip(&stored).fold(zero, |sum, (wave, b)| sum + *wave * *b);
                let exact = turned((-r * (t - start)).exp(), f + self.frequency, t);
                *square += share * (wide(sum) - exact).norm_sqr() / (2.0 * range.log_size(r)).exp();
            }
        }
        // NaN remains NaN, which is not within any tolerance.
        Ok(squares.iter().fold(0.0, |worst, x| if *x > worst || x.is_nan() { *x } else { worst }).sqrt())
    }

    /// The number of terms.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Writes b_l(t) of all l, without the phase factor.
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
    }

    /// Returns b_l(t) of one l, without the phase factor.
    pub fn weight(&self, l: usize, t: f64) -> f64 {
        let [middle, half] = self.time;
        let x = if half > 0.0 { ((t - middle) / half).clamp(-1.0, 1.0) } else { 0.0 };
        let (mut sum, mut now, mut next) = (0.0, 1.0, x);
        for row in self.series.chunks_exact(self.len()) {
            sum += now * row[l];
            (now, next) = (next, 2.0 * x * next - now);
        }
        sum
    }
}

/// Returns the range of the rates that voxels are computed with, or an error for rates that make no sense.
fn usable_rates<T: Real>(band: &OffResonanceRange) -> Result<MinMax> {
    let Some(decay) = band.decay else { return Ok([0.0; 2]) };
    let furthest = band.time[0].abs().max(band.time[1].abs());
    let growth = (-band.time[0]).max(0.0);
    let duration = band.time[1] - band.time[0];
    let (cause, rate, voxel, product) = if decay[0] * furthest > MOST_DECAY {
        ("even the slowest signal", decay[0], band.decay_voxels[0], decay[0] * furthest)
    } else if decay[1] * growth > MOST_DECAY {
        ("before the echo a signal", decay[1], band.decay_voxels[1], decay[1] * growth)
    } else if limited::<T>(decay[1], band.time[0]) * duration > MOST_DECAY_IN_READOUT {
        ("the fastest signal", decay[1], band.decay_voxels[1], decay[1] * duration)
    } else {
        return Ok(decay.map(|rate| limited::<T>(rate, band.time[0])));
    };
    bail!(
        InvalidArgument,
        "decay rate of voxel {voxel} is {rate} 1/s and sample times reach {furthest} s: {cause} would change by a factor \
         of exp({product:.0}). Rates are R2* in 1/s (1000 over T2* in ms), times in seconds. Limit the rates where the \
         map is noise"
    );
}

/// Returns a rate, or the one at which the signal at the first sample is below what precision `T` can tell from 0.
fn limited<T: Real>(rate: f64, first_time: f64) -> f64 {
    let least = if T::EPSILON > f64::EPSILON { 69.0 } else { 300.0 };
    if first_time > 0.0 {
        rate.min(least / first_time)
    } else {
        rate
    }
}

/// Returns the error for a map whose sum would exceed the tolerance. `least` is the smallest error reached.
fn refusal(band: &OffResonanceRange, needed: usize, least: f64, precision: &str) -> Error {
    let remedy = match least {
        // Twice as much, since gridding has a share of the tolerance.
        least if least < 0.3 => format!("a tolerance of {:.0e} would do", 2.0 * least),
        _ => "no tolerance would do".to_string(),
    };
    let mut reach = Vec::new();
    if let (Some([_, high]), [_, highest]) = (band.decay, band.decay_voxels) {
        reach.push(format!("the decay rate of voxel {highest} is {high} 1/s"));
    }
    if let (Some([low, high]), [lowest, highest]) = (band.frequency, band.frequency_voxels) {
        reach.push(format!("the field map reaches from {low:.1} (voxel {lowest}) to {high:.1} Hz (voxel {highest})"));
    }
    Error::new(
        ErrorKind::Unsupported,
        format!(
            "{} and sample times are {:.4} to {:.4} s: that takes about {needed} segments, and the error of at most \
             {MOST_SEGMENTS} is {least:.0e} in {precision}; {remedy}. Is the map in Hz, and are times in seconds? Limit the map's extremes where there is no \
             object, or use method exact",
            reach.join(", "),
            band.time[0],
            band.time[1]
        ),
    )
}

/// Returns about how many terms a tolerance takes: the eigenvalues of time and band limiting fall within a few terms of
/// twice their product (Landau and Widom, J. Math. Anal. Appl. 77:469, 1980).
fn needed(range: &Range, tolerance: f64) -> usize {
    let decay = half(range.decay) * range.time;
    if range.frequency == 0.0 && decay == 0.0 {
        return 1;
    }
    let product = 4.0 * range.frequency * range.time;
    let fall = (2.0 * PI * product.max(1.0)).ln() * (1.0 / tolerance).ln() / (PI * PI);
    // For strong decay about as many as its logarithm times that of the tolerance.
    let strong = 4.0 + (1.0 + 4.0 * decay).ln() * (1.0 / tolerance).ln() / 5.0;
    (product + fall + (2.0 * decay).min(strong)).ceil() as usize
}

/// Nodes for decay: of many times, those from which the signals at all times follow with small factors.
struct Pivots {
    /// From the middle of all times; the most important first.
    nodes: Vec<f64>,
    /// How many of them the tolerance takes, about.
    expected: usize,
}

impl Pivots {
    /// Chooses nodes by a QR decomposition with column pivots of the signals of all f and R. `needed` is the number
    /// expected for the frequencies.
    fn new(range: &Range, needed: usize, tolerance: f64) -> Result<Self> {
        const WHAT: &str = "off-resonance";
        let needed = needed.min(MOST_SEGMENTS);
        let points = range.points(if range.frequency > 0.0 { needed + 8 } else { 1 }, needed);
        let points = try_collect(points.clone().count(), WHAT, points)?;
        let (rows, early) = (2 * points.len(), range.times(2 * needed + 40).map(|(s, _)| s));
        let candidates = early.chain(even(-range.time, range.time, 4 * needed + 17));
        let candidates = try_collect(candidates.clone().count(), WHAT, candidates)?;
        let mut matrix = try_vec(rows * candidates.len(), 0.0, WHAT)?;
        for (column, s) in matrix.chunks_exact_mut(rows).zip(&candidates) {
            range.fill(column, &points, *s);
        }
        let mut nodes = try_vec(MOST_SEGMENTS.min(candidates.len()), 0.0, WHAT)?;
        let mut pivot = try_vec(rows, 0.0, WHAT)?;
        let (mut count, mut expected) = (0, None);
        while count < nodes.len() {
            let norms = matrix.chunks_exact(rows).map(|column| column.iter().map(|x| x * x).sum::<f64>());
            let (at, norm) = norms.enumerate().fold((0, 0.0), |all, one| if one.1 > all.1 { one } else { all });
            let norm = norm.sqrt();
            if norm <= 2.0 * tolerance {
                expected = expected.or(Some(count));
            }
            // Another column would be made of rounding errors.
            if norm <= 1e-3 * tolerance || norm < 1e-15 * (rows as f64).sqrt() {
                break;
            }
            nodes[count] = candidates[at];
            count += 1;
            pivot.iter_mut().zip(&matrix[at * rows..][..rows]).for_each(|(q, x)| *q = x / norm);
            for column in matrix.chunks_exact_mut(rows) {
                let dot: f64 = pivot.iter().zip(&*column).map(|(q, x)| q * x).sum();
                column.iter_mut().zip(&pivot).for_each(|(x, q)| *x -= dot * q);
            }
        }
        nodes.truncate(count);
        let expected = expected.unwrap_or(count).max(1);
        Ok(Pivots { nodes, expected })
    }
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
    /// The exponents that were fitted: frequency and decay.
    points: Vec<[f64; 2]>,
    solver: LeastSquares,
}

impl Fit {
    /// Fits with nodes from the middle of all times. Returns the largest error too, see [`Fit::error`].
    fn with_error(range: &Range, nodes: Vec<f64>, epsilon: f64) -> Result<(Self, f64)> {
        let fit = Self::new(range, nodes, epsilon)?;
        let error = fit.error(range, epsilon)?;
        Ok((fit, error))
    }

    fn new(range: &Range, nodes: Vec<f64>, epsilon: f64) -> Result<Self> {
        let terms = nodes.len();
        // The frequencies are symmetric: their negative half has the same equations.
        let points = range.points(if range.frequency > 0.0 { terms + 8 } else { 1 }, terms);
        let points = try_collect(points.clone().count(), "off-resonance", points)?;
        let equations = 2 * points.len();
        // With decay, the rounding of each term counts as an error: so terms do not cancel.
        let rows = equations + if range.decay[1] > 0.0 { terms } else { 0 };
        let mut matrix = try_vec(rows * terms, 0.0, "off-resonance")?;
        for (l, (column, &tau)) in matrix.chunks_exact_mut(rows).zip(&nodes).enumerate() {
            let (own, rounding) = column.split_at_mut(equations);
            range.fill(own, &points, tau);
            if let Some(rounding) = rounding.get_mut(l) {
                let largest = own.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
                // In the mean over all times, as the fastest signals are compared.
                *rounding =
                    1.5 * epsilon * (points.len() as f64).sqrt() * largest * range.log_size(range.decay[1]).exp();
            }
        }
        Ok(Fit { solver: LeastSquares::new(matrix, rows, terms, "off-resonance")?, nodes, points })
    }

    /// Makes room for [`Fit::at`].
    fn column(&self) -> Result<Vec<f64>> {
        try_vec(self.solver.rows(), 0.0, "off-resonance")
    }

    /// The b_l at a time from the middle of all.
    fn at(&self, range: &Range, s: f64, column: &mut [f64]) {
        let (own, rounding) = column.split_at_mut(2 * self.points.len());
        range.fill(own, &self.points, s);
        rounding.fill(0.0);
        self.solver.solve(column);
    }

    /// The largest error, over the size of a voxel's signal.
    fn error(&self, range: &Range, epsilon: f64) -> Result<f64> {
        let terms = self.nodes.len();
        // Between points the error is larger by a few percent at most.
        const BETWEEN: f64 = 1.05;
        let decays = range.decay[1] > 0.0;
        let count = if range.frequency > 0.0 { 2 * terms + 8 } else { 1 };
        let rates = if range.decay[1] > range.decay[0] { 7 + (4.0 * range.octaves()) as usize } else { 1 };
        // With decay, late times count little in the mean: the error there is looked at as well.
        let late = even(-range.time, range.time, if decays && range.time > 0.0 { 2 * terms + 9 } else { 0 });
        let mut b = self.column()?;
        // exp(-(R + i 2 pi f) tau_l) of all points: real part, imaginary part, size.
        let points = even(0.0, range.frequency, count).flat_map(|f| range.rates(rates).map(move |r| [f, r]));
        let points = try_collect(count * rates, "off-resonance", points)?;
        let mut waves = try_vec(3 * terms * points.len(), 0.0, "off-resonance")?;
        for (row, &[f, r]) in waves.chunks_exact_mut(3 * terms).zip(&points) {
            for (wave, tau) in row.chunks_exact_mut(3).zip(&self.nodes) {
                let (sin, cos) = (TAU * f * tau).sin_cos();
                let size = range.signal(r, *tau);
                wave.copy_from_slice(&[size * cos, size * sin, size]);
            }
        }
        // Of each point the largest error of the fit, and the mean square of rounding errors.
        let mut found = try_vec(points.len(), [0f64; 2], "off-resonance")?;
        for (s, share) in range.times(2 * terms + 9).chain(late.map(|s| (s, 0.0))) {
            self.at(range, s, &mut b);
            for ((row, &[f, r]), found) in waves.chunks_exact(3 * terms).zip(&points).zip(&mut found) {
                let (sin, cos) = (TAU * f * s).sin_cos();
                let size = range.signal(r, s);
                let (mut re, mut im, mut sum) = (-size * cos, -size * sin, 0.0);
                for (wave, b) in row.chunks_exact(3).zip(&b) {
                    re += wave[0] * b;
                    im += wave[1] * b;
                    sum += wave[2] * b.abs();
                }
                found[0] = found[0].max((re * re + im * im).sqrt());
                found[1] += share * (0.5 * epsilon * sum).powi(2);
            }
        }
        Ok(found.iter().fold(0.0, |worst, [fit, rounding]| worst.max(fit * BETWEEN + rounding.sqrt())))
    }

    /// The b_l as Chebyshev series, of as many terms as precision `epsilon` takes.
    fn series(&self, range: &Range, epsilon: f64) -> Result<Vec<f64>> {
        let terms = self.nodes.len();
        // exp(-a x) for x from 0 to 1 takes about 6 a^(1/2) terms in double precision.
        let decay = 6.0 * (2.0 * range.decay[1] * range.time).sqrt();
        let count = if range.time > 0.0 { 2 * terms + 24 + decay as usize } else { 1 };
        let mut series = try_vec(count * terms, 0.0, "off-resonance")?;
        let mut b = self.column()?;
        for (i, x) in chebyshev(count).enumerate() {
            self.at(range, x * range.time, &mut b);
            let angle = PI - (i as f64 + 0.5) / count as f64 * PI;
            for (n, row) in series.chunks_exact_mut(terms).enumerate() {
                let factor = (n as f64 * angle).cos() * if n == 0 { 1.0 } else { 2.0 } / count as f64;
                row.iter_mut().zip(&b).for_each(|(c, b)| *c += factor * b);
            }
        }
        let size = |row: &[f64]| row.iter().fold(0.0, |m: f64, c| m.max(c.abs()));
        let all = series.chunks_exact(terms).map(size).fold(0.0, f64::max);
        let needed = series.chunks_exact(terms).rposition(|row| size(row) > 1e-3 * epsilon * all);
        series.truncate((needed.unwrap_or(0) + 1) * terms);
        Ok(series)
    }
}

impl Range {
    /// The exponents to be fitted: frequencies, of which the negative ones are left out, and decay rates.
    fn points(&self, frequencies: usize, terms: usize) -> impl Iterator<Item = [f64; 2]> + Clone + '_ {
        let rates = match self.decay[1] > self.decay[0] {
            true if frequencies == 1 => terms + 6 + (2.0 * self.octaves()) as usize,
            true => 5 + (3.0 * self.octaves()) as usize,
            false => 1,
        };
        chebyshev(2 * frequencies).skip(frequencies).flat_map(move |f| {
            let at = chebyshev(rates).map(move |x| self.rate(if rates > 1 { 0.5 + 0.5 * x } else { 0.0 }));
            at.map(move |r| [f * self.frequency, r])
        })
    }

    /// The logarithm of the range of rates, in units of one over the duration.
    fn octaves(&self) -> f64 {
        (2.0 * (self.decay[1] - self.decay[0]) * self.time).ln_1p()
    }

    /// The rate at a fraction of the range: even for small ranges, and in powers for large ones.
    fn rate(&self, fraction: f64) -> f64 {
        let ([low, high], octaves) = (self.decay, self.octaves());
        if octaves < 1e-9 {
            low + fraction * (high - low)
        } else {
            low + (high - low) * (fraction * octaves).exp_m1() / octaves.exp_m1()
        }
    }

    /// The rates at even fractions of the range.
    fn rates(&self, count: usize) -> impl Iterator<Item = f64> + Clone + '_ {
        even(0.0, 1.0, count).map(|fraction| self.rate(fraction))
    }

    /// Times from the middle of all, the denser the earlier, as the fastest signals have to be sampled. Each with its
    /// share in the mean over all times.
    fn times(&self, count: usize) -> impl Iterator<Item = (f64, f64)> + Clone + '_ {
        let octaves = (2.0 * self.decay[1] * self.time).ln_1p().max(1e-9);
        let count = if self.time > 0.0 { count.max(2) } else { 1 };
        let fraction = move |i: usize| (i as f64 / (count - 1).max(1) as f64 * octaves).exp_m1() / octaves.exp_m1();
        (0..count).map(move |i| {
            let share = 0.5 * (fraction((i + 1).min(count - 1)) - fraction(i.saturating_sub(1)));
            (self.time * (2.0 * fraction(i) - 1.0), if count > 1 { share } else { 1.0 })
        })
    }

    /// The logarithm of the root mean square over all times of a signal that decays at `r` from 1 at the first time.
    fn log_size(&self, r: f64) -> f64 {
        let a = 4.0 * r * self.time;
        if a < 1e-6 {
            0.0
        } else {
            0.5 * (-(-a).exp_m1() / a).ln()
        }
    }

    /// exp(-R t) at a time from the middle of all, over its root mean square.
    fn signal(&self, r: f64, s: f64) -> f64 {
        (-r * (s + self.time) - self.log_size(r)).exp()
    }

    /// Writes exp(-(R + i 2 pi f) s) of all points, over their root mean squares: real and imaginary parts.
    fn fill(&self, column: &mut [f64], points: &[[f64; 2]], s: f64) {
        for (pair, &[f, r]) in column.chunks_exact_mut(2).zip(points) {
            let (sin, cos) = (TAU * f * s).sin_cos();
            let size = self.signal(r, s);
            pair.copy_from_slice(&[size * cos, size * sin]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex;

    fn band(frequency: MinMax, decay: MinMax, time: MinMax) -> OffResonanceRange {
        OffResonanceRange { frequency: Some(frequency), decay: Some(decay), time, ..OffResonanceRange::of_times(time) }
    }

    /// The largest error at points that the fit has not seen, over the size of a voxel's signal.
    fn error(segments: &Segments, band: &OffResonanceRange, pairs: bool) -> f64 {
        let (frequency, decay) = (band.frequency.unwrap(), band.decay.unwrap());
        let count = if pairs { 2.0 } else { 1.0 };
        let between = |[low, high]: MinMax, x: f64| low + (high - low) * x;
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
                let found = Segments::of_voxels::<f64>(&band, tolerance).unwrap();
                assert!(found.len() <= voxels[i] + 1, "{seconds} {tolerance}: {}", found.len());
                let error = error(&found, &band, false);
                assert!(error <= tolerance && found.error <= tolerance, "{error} {}", found.error);
                if let Some(&most) = pairs.as_ref().and_then(|pairs| pairs.get(i)) {
                    let found = Segments::of_pairs::<f64>(&band, tolerance).unwrap();
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
                    let make = if pairs { Segments::of_pairs::<f64> } else { Segments::of_voxels::<f64> };
                    let found = make(&band, tolerance).unwrap();
                    let error = error(&found, &band, pairs);
                    println!("{band:?} {tolerance} {pairs}: {} terms, {error:.1e} {:.1e}", found.len(), found.error);
                    assert!(error <= tolerance, "{band:?} {tolerance} {pairs}: {error} of {}", found.len());
                }
            }
        }
        let one = Segments::of_voxels::<f64>(&band([7.0, 7.0], [3.0, 3.0], [0.0, 0.1]), 1e-6).unwrap();
        assert_eq!(one.len(), 1);
    }

    #[test]
    fn steep_maps_and_wrong_units_are_refused_with_what_would_do() {
        let steep = band([-2000.0, 2000.0], [0.0; 2], [0.0, 0.05]);
        let error = Segments::of_voxels::<f64>(&steep, 1e-4).unwrap_err().to_string();
        assert!(error.contains("segments") && error.contains("no tolerance would do"), "{error}");
        let border = band([-600.0, 600.0], [0.0; 2], [0.0, 0.05]);
        let error = Segments::of_pairs::<f64>(&border, 1e-9).unwrap_err().to_string();
        assert!(error.contains("a tolerance of"), "{error}");
        // Rates in the wrong unit: even the slowest signal is gone, or a signal grows before the echo.
        for (decay, time, words) in [
            ([4.0, 40.0], [0.0, 20.0], ["voxel 3 is 4 1/s", "slowest", "exp(80)"]),
            ([0.0, 2000.0], [-0.04, 0.04], ["voxel 5 is 2000 1/s", "before the echo", "exp(80)"]),
            ([0.0, 1e6], [0.0, 0.02], ["voxel 5 is 1000000 1/s", "fastest", "exp(20000)"]),
        ] {
            let band = OffResonanceRange { decay_voxels: [3, 5], ..band([0.0, 1.0], decay, time) };
            let error = Segments::of_voxels::<f64>(&band, 1e-4).unwrap_err().to_string();
            assert!(error.contains("R2*") && words.iter().all(|word| error.contains(word)), "{error}");
        }
        // The message lists the voxels at the ends of both maps.
        let voxels = OffResonanceRange {
            frequency_voxels: [7, 8],
            decay_voxels: [3, 5],
            ..band([-2e3, 2e3], [0.0, 9.0], [0.0, 0.05])
        };
        let error = Segments::of_voxels::<f32>(&voxels, 1e-4).unwrap_err().to_string();
        for words in ["-2000.0 (voxel 7)", "2000.0 Hz (voxel 8)", "voxel 5 is 9 1/s"] {
            assert!(error.contains(words), "{error}");
        }
    }

    /// The largest root mean square error of factors rounded to `T`, over that of each signal, and the largest weight.
    fn stored_error<T: Real>(segments: &Segments, decay: MinMax, [first, last]: MinMax, pairs: bool) -> [f64; 2] {
        let (mut b, mut worst, mut largest) = (vec![0.0; segments.len()], 0f64, 0f64);
        let half = if pairs { 0.5 } else { 1.0 };
        for j in 0..=60 {
            let r = decay[0] + (decay[1] - decay[0]) * (j as f64 / 60.0).powi(3);
            let r = if pairs { 2.0 * r } else { r };
            let a = 2.0 * r * (last - first);
            let size = (-r * first).exp() * if a > 1e-9 { (-(-a).exp_m1() / a).sqrt() } else { 1.0 };
            let mut square = 0.0;
            for m in 1..=300 {
                let t = first + (last - first) * ((m as f64 - 0.5) / 300.0).powi(2);
                segments.weights(t, &mut b);
                let factor = |tau: f64| T::of((-half * r * tau).exp()).wide().powi(if pairs { 2 } else { 1 });
                let sum: f64 = segments.nodes.iter().zip(&b).map(|(tau, b)| factor(*tau) * T::of(*b).wide()).sum();
                let share = 2.0 * ((m as f64 - 0.5) / 300.0) / 300.0;
                square += share * (sum - (-r * t).exp()).powi(2) / (size * size);
                largest = b.iter().fold(largest, |m, b| m.max(b.abs()));
            }
            worst = worst.max(square.sqrt());
        }
        [worst, largest]
    }

    #[test]
    fn strong_decay_takes_few_terms_that_do_not_cancel() {
        fn check<T: Real>(tolerances: [f64; 2]) {
            for (decay, time) in [
                ([25.0, 1000.0], [0.0, 0.02]),
                ([20.0, 2000.0], [0.002, 0.022]),
                ([0.0, 10_000.0], [0.0, 0.02]),
                ([0.0, 100_000.0], [0.0, 0.02]),
                ([1000.0, 2000.0], [0.0, 0.02]),
                ([1500.0, 1500.0], [0.001, 0.03]),
                ([0.0, 1500.0], [-0.02, 0.02]),
                ([3.0, 3000.0], [0.02, 0.04]),
            ] {
                for tolerance in tolerances {
                    let band = OffResonanceRange { decay: Some(decay), ..OffResonanceRange::of_times(time) };
                    for pairs in [false, true] {
                        let made = match pairs {
                            false => Segments::of_voxels::<T>(&band, tolerance),
                            true => Segments::of_pairs::<T>(&band, tolerance),
                        };
                        let made = made.unwrap();
                        let [error, largest] =
                            stored_error::<T>(&made, [decay[0], decay[1].min(made.fastest)], time, pairs);
                        let what = format!("{} {decay:?} {time:?} {tolerance} pairs {pairs}", T::NAME);
                        println!(
                            "{what}: {} terms, {error:.1e} {:.1e}, weights to {largest:.1}",
                            made.len(),
                            made.error
                        );
                        assert!(error <= tolerance && made.error <= tolerance, "{what}: {error}");
                        assert!(largest < 5.0 && made.len() < 55, "{what}: {largest} {}", made.len());
                    }
                }
            }
        }
        check::<f32>([1e-3, 2e-6]);
        check::<f64>([1e-5, 1e-11]);
    }
}
