//! The range of exponents of a sum: half the range of frequencies, the range of decay rates, and half the range of
//! times.

use crate::base::error::{try_collect, try_vec, Result};
use crate::base::off_resonance::MinMax;
use std::f64::consts::{PI, TAU};

const WHAT: &str = "off-resonance";

/// The range of exponents to be fitted.
#[derive(Clone, Copy)]
pub(super) struct ExponentRange {
    /// Half the range of frequencies in Hz, about its middle.
    pub frequency: f64,
    /// Range of decay rates in 1/s.
    pub decay: MinMax,
    /// Half the range of times in seconds, about its middle.
    pub time: f64,
}

/// Returns half the length of a range.
pub(super) fn half([low, high]: MinMax) -> f64 {
    0.5 * (high - low)
}

/// Returns the middle of a range.
pub(super) fn middle([low, high]: MinMax) -> f64 {
    0.5 * (high + low)
}

impl ExponentRange {
    /// Returns the exponents to which `terms` terms are fitted: non-negative frequencies, and decay rates.
    pub fn fitted_points(&self, terms: usize) -> Result<PointGrid> {
        let decays = self.decay[1] > self.decay[0];
        // Half of the range has at most half of the terms.
        let frequencies = match self.frequency > 0.0 {
            true if decays => terms / 2 + 8,
            true => terms + 8,
            false => 1,
        };
        let rates = match decays {
            true if frequencies == 1 => terms + 6 + (2.0 * self.octaves()) as usize,
            true => 5 + (3.0 * self.octaves()) as usize,
            false => 1,
        };
        let fraction = move |x: f64| if rates > 1 { 0.5 + 0.5 * x } else { 0.0 };
        PointGrid::new(
            self,
            chebyshev(2 * frequencies).skip(frequencies).map(|f| f * self.frequency),
            chebyshev(rates).map(|x| self.rate(fraction(x))),
        )
    }

    /// Returns the exponents at which the error of `terms` terms is computed, in the same half of the range.
    pub fn checked_points(&self, terms: usize) -> Result<PointGrid> {
        let frequencies = if self.frequency > 0.0 { 2 * terms + 8 } else { 1 };
        let rates = if self.decay[1] > self.decay[0] { 7 + (4.0 * self.octaves()) as usize } else { 1 };
        PointGrid::new(self, evenly_spaced(0.0, self.frequency, frequencies), self.rates(rates))
    }

    /// Returns the logarithm of the range of rates, in units of one over the duration.
    pub fn octaves(&self) -> f64 {
        (2.0 * (self.decay[1] - self.decay[0]) * self.time).ln_1p()
    }

    /// Returns the rate at a fraction of the range, which is linear for small ranges and logarithmic for large ones.
    fn rate(&self, fraction: f64) -> f64 {
        let ([low, high], octaves) = (self.decay, self.octaves());
        if octaves < 1e-9 {
            low + fraction * (high - low)
        } else {
            low + (high - low) * (fraction * octaves).exp_m1() / octaves.exp_m1()
        }
    }

    /// Returns the rates at evenly spaced fractions of the range.
    pub fn rates(&self, count: usize) -> impl Iterator<Item = f64> + Clone + '_ {
        evenly_spaced(0.0, 1.0, count).map(|fraction| self.rate(fraction))
    }

    /// Returns times relative to the middle, and the weight of each in the mean over all times. They are denser at
    /// early times, to sample the fastest signals.
    pub fn times(&self, count: usize) -> impl Iterator<Item = (f64, f64)> + Clone + '_ {
        let octaves = (2.0 * self.decay[1] * self.time).ln_1p().max(1e-9);
        let count = if self.time > 0.0 { count.max(2) } else { 1 };
        let fraction = move |i: usize| (i as f64 / (count - 1).max(1) as f64 * octaves).exp_m1() / octaves.exp_m1();
        (0..count).map(move |i| {
            let weight = 0.5 * (fraction((i + 1).min(count - 1)) - fraction(i.saturating_sub(1)));
            (self.time * (2.0 * fraction(i) - 1.0), if count > 1 { weight } else { 1.0 })
        })
    }

    /// Returns the logarithm of the root mean square, over all times, of a signal that is 1 at the first time and
    /// decays at rate `r`.
    pub fn log_rms(&self, r: f64) -> f64 {
        let a = 4.0 * r * self.time;
        if a < 1e-6 {
            0.0
        } else {
            0.5 * (-(-a).exp_m1() / a).ln()
        }
    }
}

/// A grid of exponents: all pairs of some frequencies and some decay rates.
pub(super) struct PointGrid {
    frequencies: Vec<f64>,
    /// Decay rates, and the logarithm of the root mean square of each signal.
    rates: Vec<[f64; 2]>,
    /// Half the range of times.
    time: f64,
    /// Whether signals have an imaginary part.
    is_complex: bool,
}

impl PointGrid {
    fn new(
        range: &ExponentRange,
        frequencies: impl Iterator<Item = f64> + Clone,
        rates: impl Iterator<Item = f64> + Clone,
    ) -> Result<Self> {
        let rates = rates.map(|r| [r, range.log_rms(r)]);
        Ok(PointGrid {
            frequencies: try_collect(frequencies.clone().count(), WHAT, frequencies)?,
            rates: try_collect(rates.clone().count(), WHAT, rates)?,
            time: range.time,
            is_complex: range.frequency > 0.0,
        })
    }

    /// Returns the number of exponents.
    pub fn len(&self) -> usize {
        self.frequencies.len() * self.rates.len()
    }

    /// Returns the number of decay rates.
    pub fn rates(&self) -> usize {
        self.rates.len()
    }

    /// Returns the length of a column: the real parts of all exponents, then the imaginary parts.
    pub fn rows(&self) -> usize {
        self.len() * if self.is_complex { 2 } else { 1 }
    }

    /// Returns the number of factors of the signals at one time.
    pub fn factor_count(&self) -> usize {
        2 * self.frequencies.len() + self.rates.len()
    }

    /// Allocates the factors of the signals at one time.
    pub fn factors(&self) -> Result<Vec<f64>> {
        try_vec(self.factor_count(), 0.0, WHAT)
    }

    /// Computes the factors of the signals at time `s` relative to the middle: cosines and sines of all frequencies,
    /// and exp(-R t) of all rates, each divided by its root mean square over all times.
    pub fn compute_factors(&self, s: f64, factors: &mut [f64]) {
        let (waves, magnitudes) = factors.split_at_mut(2 * self.frequencies.len());
        for (wave, f) in waves.chunks_exact_mut(2).zip(&self.frequencies) {
            let (sin, cos) = (TAU * f * s).sin_cos();
            wave.copy_from_slice(&[cos, sin]);
        }
        for (magnitude, [r, log_rms]) in magnitudes.iter_mut().zip(&self.rates) {
            *magnitude = (-r * (s + self.time) - log_rms).exp();
        }
    }

    /// Returns the part of the factors that belongs to the rates.
    pub fn magnitudes<'a>(&self, factors: &'a [f64]) -> &'a [f64] {
        &factors[2 * self.frequencies.len()..]
    }

    /// Writes the real and imaginary parts of the signals of all exponents: the products of the factors.
    pub fn expand(&self, factors: &[f64], column: &mut [f64]) {
        let (magnitudes, count) = (self.magnitudes(factors), self.rates.len());
        let (real, imaginary) = column.split_at_mut(self.len());
        let fill = |column: &mut [f64], part: usize| {
            for (row, wave) in column.chunks_exact_mut(count).zip(factors.chunks_exact(2)) {
                row.iter_mut().zip(magnitudes).for_each(|(x, magnitude)| *x = magnitude * wave[part]);
            }
        };
        fill(real, 0);
        fill(imaginary, 1);
    }
}

/// Returns `count` Chebyshev points between -1 and 1, which are denser towards the ends.
pub(super) fn chebyshev(count: usize) -> impl Iterator<Item = f64> + Clone {
    (0..count).map(move |i| -((i as f64 + 0.5) / count as f64 * PI).cos())
}

/// Returns `count` evenly spaced numbers from `first` to `last`.
pub(super) fn evenly_spaced(first: f64, last: f64, count: usize) -> impl Iterator<Item = f64> + Clone {
    let step = if count > 1 { (last - first) / (count - 1) as f64 } else { 0.0 };
    (0..count).map(move |i| first + step * i as f64)
}
