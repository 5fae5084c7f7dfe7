//! Off-resonance and decay as a short sum.
//!
//! For all f, R and t of a scan, exp(-(R + i 2 pi f) t) = sum_l b_l(t) exp(-(R + i 2 pi f) tau_l). The sum has the
//! smallest number of terms that meets a tolerance.
//!
//! Each term is a transform without off-resonance (time segmentation: Noll et al., IEEE Trans. Med. Imaging 10:629,
//! 1991). The b_l are a least-squares fit (Man et al., Magn. Reson. Med. 37:785, 1997; Fessler et al., IEEE Trans.
//! Signal Process. 53:3393, 2005), with four differences:
//!
//! - All frequencies of the range have the same weight, however few voxels have them. So every voxel meets the
//!   tolerance.
//! - The nodes tau_l are denser towards both ends, but less than Chebyshev nodes. The number of terms is then that of
//!   the singular value decomposition, or one more.
//! - The frequency range is shifted to be symmetric about 0, so that the b_l are real.
//! - With decay, the nodes may also be the pivots of a QR decomposition of the signals by times (Cheng et al., SIAM J.
//!   Sci. Comput. 26:1389, 2005). The b_l are then at most about 1, and terms do not cancel at any decay.

mod exponents;
mod fit;
mod nodes;

use crate::backend::ChebyshevSeries;
use crate::base::error::{bail, try_collect, try_vec, Error, ErrorKind, Result};
use crate::base::off_resonance::{MinMax, OffResonanceRange};
use crate::base::real::{narrow, wide, Real};
use exponents::{half, middle, ExponentRange};
use fit::{SegmentFit, SegmentFitter};
use nodes::{expected_terms, prolate_nodes, PivotNodes};
use num_complex::Complex;
use std::f64::consts::TAU;

pub use nodes::MAX_SEGMENTS;

const WHAT: &str = "off-resonance";

/// Maximum of rate times time in the slowest voxel: if all signals change by more than exp(60), the units are wrong.
/// It is also the maximum by which the signal of any voxel may grow at times before 0.
const MAX_DECAY: f64 = 60.0;

/// Maximum of rate times duration in any voxel. Above it, the series of b_l(t) becomes long.
const MAX_DECAY_IN_READOUT: f64 = 5000.0;

/// Product of rate and duration up to which nodes for frequencies are also tried for decay.
const WEAK_DECAY: f64 = 20.0;

/// Nodes and weights of the sum for one scan.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeSegments {
    /// Nodes tau_l in seconds.
    pub nodes: Vec<f64>,
    /// Frequency f0 in Hz, the middle of the range for transforms and 0 for E^H W E. Factors of voxels have the
    /// frequency f - f0, factors of samples are b_l(t) exp(-i 2 pi f0 t).
    pub frequency: f64,
    /// Largest error of the sum for any f, R and t, relative to the root mean square of exp(-R t) in that voxel. It
    /// includes a measurement in the precision of the plan's arrays.
    pub error: f64,
    /// Largest rate in 1/s that is used for voxels. The signal of faster voxels is 0 in the plan's precision.
    pub max_rate: f64,
    /// Middle of the range of times, and half its length.
    time: [f64; 2],
    /// Coefficients of b_l(t) as Chebyshev series over the times: [terms of the series, l].
    series: Vec<f64>,
}

/// The operator that a sum is for: a transform, or E^H W E.
#[derive(Clone, Copy, PartialEq)]
enum ExponentKind {
    /// f and R of each voxel.
    Voxels,
    /// f(s) - f(r) and R(s) + R(r) of each pair of voxels.
    Pairs,
}

impl TimeSegments {
    /// Computes the sum for transforms: f and R of each voxel, in arrays of precision `T`.
    ///
    /// # Errors
    /// `Unsupported` if more than [`MAX_SEGMENTS`] terms are necessary, or if rounding errors exceed the tolerance.
    /// `InvalidArgument` for implausible decay rates. Both messages contain the voxel with the largest rate.
    pub fn of_voxels<T: Real>(band: &OffResonanceRange, tolerance: f64) -> Result<Self> {
        Self::new::<T>(band, ExponentKind::Voxels, tolerance)
    }

    /// Computes the sum for E^H W E: f(s) - f(r) and R(s) + R(r) of each pair of voxels, in arrays of precision `T`.
    ///
    /// # Errors
    /// As [`TimeSegments::of_voxels`].
    pub fn of_pairs<T: Real>(band: &OffResonanceRange, tolerance: f64) -> Result<Self> {
        Self::new::<T>(band, ExponentKind::Pairs, tolerance)
    }

    /// Finds the sum with the smallest number of terms.
    fn new<T: Real>(band: &OffResonanceRange, kind: ExponentKind, tolerance: f64) -> Result<Self> {
        let decay = usable_rates::<T>(band)?;
        let factor = if kind == ExponentKind::Pairs { 2.0 } else { 1.0 };
        let frequency = band.frequency.unwrap_or([0.0; 2]);
        let range = ExponentRange {
            frequency: factor * half(frequency),
            decay: decay.map(|rate| factor * rate),
            time: half(band.time),
        };
        let create = |fitter: &SegmentFitter, (fit, error): &(SegmentFit, f64)| -> Result<Self> {
            let mut segments = TimeSegments {
                nodes: try_collect(fit.nodes.len(), WHAT, fit.nodes.iter().map(|s| s + middle(band.time)))?,
                frequency: if kind == ExponentKind::Voxels { middle(frequency) } else { 0.0 },
                error: *error,
                max_rate: decay[1],
                time: [middle(band.time), range.time],
                series: fitter.series(fit)?,
            };
            segments.error = error.max(segments.measured_error::<T>(&range, band.time[0], kind)?);
            Ok(segments)
        };
        // The sum with the smallest number of nodes of either kind, and the smallest error of all attempts.
        let (mut best, mut least_error): (Option<Self>, f64) = (None, f64::INFINITY);
        let expected = expected_terms(&range, tolerance);
        let mut fitter = SegmentFitter::new(&range, (expected + 6).min(MAX_SEGMENTS), T::EPSILON)?;
        let mut attempt = |expected: usize, max: usize, nodes: &dyn Fn(usize) -> Result<Vec<f64>>| -> Result<()> {
            // Nodes of the second kind are used only if they are fewer, by one or more.
            let has_sum = best.is_some();
            let max = best.as_ref().map_or(max, |best: &Self| max.min(best.len() - 1));
            if max == 0 {
                return Ok(());
            }
            // Without any sum, the error for the maximum is part of the message, so it is computed for all times.
            let (start, last_limit) = if has_sum { (max, tolerance) } else { (expected.clamp(1, max), f64::INFINITY) };
            let mut best_fit = fitter.fewest_terms(nodes, start..=max, tolerance, last_limit)?;
            let terms = best_fit.0.nodes.len();
            // Add a few terms if the rounded sum exceeds the tolerance.
            for extra in 0..=3 {
                if terms + extra > max {
                    break;
                }
                if extra > 0 {
                    best_fit = fitter.fit(nodes(terms + extra)?, f64::INFINITY)?;
                }
                least_error = least_error.min(best_fit.1);
                if best_fit.1 > tolerance {
                    break;
                }
                let segments = create(&fitter, &best_fit)?;
                least_error = least_error.min(segments.error);
                if segments.error <= tolerance {
                    best = Some(segments);
                    break;
                }
            }
            Ok(())
        };
        if range.decay[1] > 0.0 {
            let pivots = PivotNodes::new(&range, expected, tolerance)?;
            // The estimate is often one or two too large, and a fit with too few terms takes less time.
            attempt(pivots.expected.saturating_sub(2), pivots.nodes.len(), &|terms| {
                try_collect(terms, WHAT, pivots.nodes[..terms].iter().copied())
            })?;
        }
        if range.decay[1] * 2.0 * range.time <= WEAK_DECAY {
            attempt(expected, MAX_SEGMENTS, &|terms| {
                let mut nodes = prolate_nodes(TAU * range.frequency * range.time, terms)?;
                nodes.iter_mut().for_each(|x| *x *= range.time);
                Ok(nodes)
            })?;
        }
        best.map_or_else(|| Err(unsupported_error(band, expected, least_error, T::NAME)), Ok)
    }

    /// Returns the largest root mean square error of the sum, relative to that of a signal. Factors of voxels and
    /// samples are rounded to the precision of the arrays, and summed in it. `start` is the first time.
    fn measured_error<T: Real>(&self, range: &ExponentRange, start: f64, kind: ExponentKind) -> Result<f64> {
        let terms = self.len();
        let frequencies: &[f64] = if range.frequency > 0.0 { &[-1.0, -0.613, 0.0, 0.271, 0.894, 1.0] } else { &[0.0] };
        let rates = if range.decay[1] > range.decay[0] { 9 } else { 1 };
        let signal = |magnitude: f64, f: f64, t: f64| Complex::from_polar(magnitude, -TAU * f * t);
        let frequencies = try_collect(frequencies.len(), WHAT, frequencies.iter().map(|f| f * range.frequency))?;
        let rates = try_collect(rates, WHAT, range.rates(rates).map(|r| (r, (2.0 * range.log_rms(r)).exp())))?;
        let points = frequencies.len() * rates.len();
        let mut voxel_factors: Vec<Complex<T>> = try_vec(terms * points, Complex::default(), WHAT)?;
        let mut rows = voxel_factors.chunks_exact_mut(terms);
        for &f in &frequencies {
            for (&(r, _), row) in rates.iter().zip(&mut rows) {
                for (voxel_factor, tau) in row.iter_mut().zip(&self.nodes) {
                    let factor = match kind {
                        ExponentKind::Voxels => wide(narrow::<T>(signal((-r * tau).exp(), f, *tau))),
                        // The product of the factors of two voxels, with frequencies of different signs.
                        ExponentKind::Pairs => wide(narrow::<T>(signal((-0.5 * r * tau).exp(), 0.5 * f, *tau))).powu(2),
                    };
                    // Relative to the signal at the first time, which may exceed the range of `T` for a pair.
                    *voxel_factor = narrow(factor * (r * start).exp());
                }
            }
        }
        let (mut b, mut squares) = (try_vec(terms, 0.0, WHAT)?, try_vec(points, 0.0, WHAT)?);
        let mut sample_factors: Vec<Complex<T>> = try_vec(terms, Complex::default(), WHAT)?;
        let (mut waves, mut sizes) =
            (try_vec(frequencies.len(), Complex::default(), WHAT)?, try_vec(rates.len(), 0.0, WHAT)?);
        for (s, share) in range.times(3 * terms + 9) {
            let t = self.time[0] + s;
            self.weights(t, &mut b);
            let phase = signal(1.0, self.frequency, t);
            sample_factors.iter_mut().zip(&b).for_each(|(factor, b)| *factor = narrow(phase * *b));
            waves.iter_mut().zip(&frequencies).for_each(|(wave, f)| *wave = signal(1.0, f + self.frequency, t));
            sizes.iter_mut().zip(&rates).for_each(|(size, (r, _))| *size = (-r * (t - start)).exp());
            let exact =
                waves.iter().flat_map(|wave| sizes.iter().zip(&rates).map(move |(size, rate)| (wave * size, rate.1)));
            for ((row, square), (exact, mean_square)) in voxel_factors.chunks_exact(terms).zip(&mut squares).zip(exact)
            {
                let zero = Complex::new(T::ZERO, T::ZERO);
                let sum = row.iter().zip(&sample_factors).fold(zero, |sum, (factor, b)| sum + *factor * *b);
                *square += share * (wide(sum) - exact).norm_sqr() / mean_square;
            }
        }
        // NaN remains NaN, which is not within any tolerance.
        Ok(squares.iter().fold(0.0, |worst, x| if *x > worst || x.is_nan() { *x } else { worst }).sqrt())
    }

    /// Returns the number of terms.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Writes b_l(t) for all l, without the phase factor.
    pub fn weights(&self, t: f64, out: &mut [f64]) {
        let [middle, half] = self.time;
        let x = if half > 0.0 { ((t - middle) / half).clamp(-1.0, 1.0) } else { 0.0 };
        out.fill(0.0);
        let (mut term, mut next) = (1.0, x);
        for row in self.series.chunks_exact(out.len()) {
            for (out, c) in out.iter_mut().zip(row) {
                *out += term * c;
            }
            (term, next) = (next, 2.0 * x * next - term);
        }
    }

    /// Returns the b_l as series.
    pub fn series(&self) -> ChebyshevSeries<'_> {
        ChebyshevSeries { interval: self.time, functions: self.len(), coefficients: &self.series }
    }
}

/// Returns the range of rates to use for voxels, or an error for implausible rates.
fn usable_rates<T: Real>(band: &OffResonanceRange) -> Result<MinMax> {
    let Some(decay) = band.decay else { return Ok([0.0; 2]) };
    let max_time = band.time[0].abs().max(band.time[1].abs());
    let growth = (-band.time[0]).max(0.0);
    let duration = band.time[1] - band.time[0];
    let (cause, rate, voxel, product) = if decay[0] * max_time > MAX_DECAY {
        ("even the slowest signal", decay[0], band.decay_voxels[0], decay[0] * max_time)
    } else if decay[1] * growth > MAX_DECAY {
        ("before the echo a signal", decay[1], band.decay_voxels[1], decay[1] * growth)
    } else if limited_rate::<T>(decay[1], band.time[0]) * duration > MAX_DECAY_IN_READOUT {
        ("the fastest signal", decay[1], band.decay_voxels[1], decay[1] * duration)
    } else {
        return Ok(decay.map(|rate| limited_rate::<T>(rate, band.time[0])));
    };
    bail!(
        InvalidArgument,
        "the decay rate of voxel {voxel} is {rate} 1/s, and sample times reach {max_time} s: {cause} would change by \
         a factor of exp({product:.0}). Rates are R2* in 1/s (1000 over T2* in ms), times in seconds. Limit the rates where the \
         map is noise"
    );
}

/// Reduces a rate to at most the one at which the signal at the first sample is 0 in precision `T`.
fn limited_rate<T: Real>(rate: f64, first_time: f64) -> f64 {
    let exponent = if T::EPSILON > f64::EPSILON { 69.0 } else { 300.0 };
    if first_time > 0.0 {
        rate.min(exponent / first_time)
    } else {
        rate
    }
}

/// Returns the error for a map whose sum cannot meet the tolerance. `least` is the smallest error reached.
fn unsupported_error(band: &OffResonanceRange, expected: usize, least: f64, precision: &str) -> Error {
    let remedy = match least {
        // Twice the error, since gridding uses a share of the tolerance.
        least if least < 0.3 => format!("use a tolerance of {:.0e} or more", 2.0 * least),
        _ => "no tolerance is large enough".to_string(),
    };
    let mut ranges = Vec::new();
    if let (Some([_, high]), [_, highest]) = (band.decay, band.decay_voxels) {
        ranges.push(format!("the decay rate of voxel {highest} is {high} 1/s"));
    }
    if let (Some([low, high]), [lowest, highest]) = (band.frequency, band.frequency_voxels) {
        ranges.push(format!("the field map reaches from {low:.1} (voxel {lowest}) to {high:.1} Hz (voxel {highest})"));
    }
    Error::new(
        ErrorKind::Unsupported,
        format!(
            "{} and sample times are {:.4} to {:.4} s: this requires about {expected} segments. With the maximum of \
             {MAX_SEGMENTS}, the error is {least:.0e} in {precision}: {remedy}. Is the map in Hz, and are times in \
             seconds? Limit the map's extremes outside the object, or use method exact",
            ranges.join(", "),
            band.time[0],
            band.time[1]
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex;

    fn band(frequency: MinMax, decay: MinMax, time: MinMax) -> OffResonanceRange {
        OffResonanceRange { frequency: Some(frequency), decay: Some(decay), time, ..OffResonanceRange::of_times(time) }
    }

    /// Returns the largest error between the fitted points, relative to the signal of a voxel.
    fn largest_error(segments: &TimeSegments, band: &OffResonanceRange, pairs: bool) -> f64 {
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
                for &t in &all {
                    segments.weights(t, &mut b);
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
    fn number_of_terms_is_that_of_the_singular_values() {
        // Range of 169 Hz: number of terms of a singular value decomposition for tolerances of 1e-2 to 1e-6, for pairs
        // to 1e-5. One more term is allowed.
        let tolerances = [1e-2, 1e-3, 1e-4, 1e-5, 1e-6];
        for (seconds, voxels, pairs) in [
            (0.02, [7, 9, 10, 11, 12], Some([12, 13, 15, 17])),
            (0.005, [4, 5, 6, 6, 7], None),
            (0.05, [13, 15, 16, 18, 19], None),
        ] {
            let band = band([-40.6, 128.4], [0.0; 2], [0.001, 0.001 + seconds]);
            for (i, &tolerance) in tolerances.iter().enumerate() {
                let segments = TimeSegments::of_voxels::<f64>(&band, tolerance).unwrap();
                assert!(segments.len() <= voxels[i] + 1, "{seconds} {tolerance}: {}", segments.len());
                let error = largest_error(&segments, &band, false);
                assert!(error <= tolerance && segments.error <= tolerance, "{error} {}", segments.error);
                if let Some(&most) = pairs.as_ref().and_then(|pairs| pairs.get(i)) {
                    let segments = TimeSegments::of_pairs::<f64>(&band, tolerance).unwrap();
                    assert!(segments.len() <= most, "{seconds} {tolerance}: {}", segments.len());
                    let error = largest_error(&segments, &band, true);
                    assert!(error <= tolerance, "{error}");
                }
            }
        }
    }

    #[test]
    fn tolerance_is_met_with_decay_and_for_small_ranges() {
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
                    let make = if pairs { TimeSegments::of_pairs::<f64> } else { TimeSegments::of_voxels::<f64> };
                    let segments = make(&band, tolerance).unwrap();
                    let error = largest_error(&segments, &band, pairs);
                    println!(
                        "{band:?} {tolerance} {pairs}: {} terms, {error:.1e} {:.1e}",
                        segments.len(),
                        segments.error
                    );
                    assert!(error <= tolerance, "{band:?} {tolerance} {pairs}: {error} of {}", segments.len());
                }
            }
        }
        let one = TimeSegments::of_voxels::<f64>(&band([7.0, 7.0], [3.0, 3.0], [0.0, 0.1]), 1e-6).unwrap();
        assert_eq!(one.len(), 1);
    }

    #[test]
    fn errors_for_steep_maps_and_wrong_units_contain_a_remedy() {
        let steep = band([-2000.0, 2000.0], [0.0; 2], [0.0, 0.05]);
        let error = TimeSegments::of_voxels::<f64>(&steep, 1e-4).unwrap_err().to_string();
        assert!(error.contains("segments") && error.contains("no tolerance is large enough"), "{error}");
        let border = band([-600.0, 600.0], [0.0; 2], [0.0, 0.05]);
        let error = TimeSegments::of_pairs::<f64>(&border, 1e-9).unwrap_err().to_string();
        assert!(error.contains("a tolerance of"), "{error}");
        // Rates in a wrong unit: even the slowest signal is 0, or a signal grows before the echo.
        for (decay, time, words) in [
            ([4.0, 40.0], [0.0, 20.0], ["voxel 3 is 4 1/s", "slowest", "exp(80)"]),
            ([0.0, 2000.0], [-0.04, 0.04], ["voxel 5 is 2000 1/s", "before the echo", "exp(80)"]),
            ([0.0, 1e6], [0.0, 0.02], ["voxel 5 is 1000000 1/s", "fastest", "exp(20000)"]),
        ] {
            let band = OffResonanceRange { decay_voxels: [3, 5], ..band([0.0, 1.0], decay, time) };
            let error = TimeSegments::of_voxels::<f64>(&band, 1e-4).unwrap_err().to_string();
            assert!(error.contains("R2*") && words.iter().all(|word| error.contains(word)), "{error}");
        }
        // The message contains the voxels with the extreme values of both maps.
        let voxels = OffResonanceRange {
            frequency_voxels: [7, 8],
            decay_voxels: [3, 5],
            ..band([-2e3, 2e3], [0.0, 9.0], [0.0, 0.05])
        };
        let error = TimeSegments::of_voxels::<f32>(&voxels, 1e-4).unwrap_err().to_string();
        for words in ["-2000.0 (voxel 7)", "2000.0 Hz (voxel 8)", "voxel 5 is 9 1/s"] {
            assert!(error.contains(words), "{error}");
        }
    }

    /// Returns the largest root mean square error with factors rounded to `T`, relative to that of each signal, and the
    /// largest weight.
    fn rounded_error<T: Real>(segments: &TimeSegments, decay: MinMax, [first, last]: MinMax, pairs: bool) -> [f64; 2] {
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
    fn strong_decay_requires_few_terms_that_do_not_cancel() {
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
                        let segments = match pairs {
                            false => TimeSegments::of_voxels::<T>(&band, tolerance),
                            true => TimeSegments::of_pairs::<T>(&band, tolerance),
                        };
                        let segments = segments.unwrap();
                        let [error, largest] =
                            rounded_error::<T>(&segments, [decay[0], decay[1].min(segments.max_rate)], time, pairs);
                        let what = format!("{} {decay:?} {time:?} {tolerance} pairs {pairs}", T::NAME);
                        println!(
                            "{what}: {} terms, {error:.1e} {:.1e}, weights to {largest:.1}",
                            segments.len(),
                            segments.error
                        );
                        assert!(error <= tolerance && segments.error <= tolerance, "{what}: {error}");
                        assert!(largest < 5.0 && segments.len() < 55, "{what}: {largest} {}", segments.len());
                    }
                }
            }
        }
        check::<f32>([1e-3, 2e-6]);
        check::<f64>([1e-5, 1e-11]);
    }
}
