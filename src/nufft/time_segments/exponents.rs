//! The range of exponents of a sum: half the range of frequencies, the range of decay rates, and half the range of
//! times.

use crate::base::off_resonance::MinMax;
use std::f64::consts::{PI, TAU};

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
    /// Returns the exponents to be fitted: non-negative frequencies, and decay rates.
    pub fn points(&self, frequencies: usize, terms: usize) -> impl Iterator<Item = [f64; 2]> + Clone + '_ {
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

    /// Returns exp(-R t) at time `s` relative to the middle, divided by its root mean square.
    pub fn signal(&self, r: f64, s: f64) -> f64 {
        (-r * (s + self.time) - self.log_rms(r)).exp()
    }

    /// Writes real and imaginary part of exp(-(R + i 2 pi f) s) for all points, divided by its root mean square.
    pub fn fill(&self, column: &mut [f64], points: &[[f64; 2]], s: f64) {
        for (pair, &[f, r]) in column.chunks_exact_mut(2).zip(points) {
            let (sin, cos) = (TAU * f * s).sin_cos();
            let magnitude = self.signal(r, s);
            pair.copy_from_slice(&[magnitude * cos, magnitude * sin]);
        }
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
