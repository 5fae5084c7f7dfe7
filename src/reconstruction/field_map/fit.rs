//! Fits of f and R in single voxels, and the weights of these fits.

use super::echoes::Echoes;
use super::grid::WHAT;
use crate::base::error::{bail, try_collect, Result};
use crate::base::geometry::first_exceeding;
use crate::base::real::{wide, Real};
use crate::base::sizes::three_axes;
use crate::base::workers::{collect, fold, Workers};
use num_complex::Complex;
use std::f64::consts::TAU;

/// Relative difference below which two spacings are equal.
const SAME_SPACING: f64 = 1e-3;
/// Maximum number of turns of the shortest spacing that are tried for a piece, and the longest period that is searched
/// for.
const MOST_TURNS: usize = 16;
/// Part of a turn by which the phase at some echo must differ for two frequencies to be distinguished.
const LEAST_DIFFERENCE: f64 = 0.1;
/// Least difference, as a share of the power, between the misfits of the best and the second best number of turns.
const LEAST_MARGIN: f64 = 0.05;
/// Negative logarithm of the probability that noise alone counts as signal in a voxel, by the bound on sums of squares
/// of Laurent and Massart (Ann. Stat. 28:1302, 2000).
const LOG_RARITY: f64 = 5.0;
/// Median of |n| for a normal variable of variance 1.
const MEDIAN_OF_NORMAL: f64 = 0.6745;
/// Standard deviation of the noise divided by that of the magnitude. For one coil it is between 1, with signal, and
/// 1.53, without signal (Rayleigh's distribution).
const OVER_MAGNITUDE: f64 = 1.25;

/// Fits of the echoes in single voxels.
pub(super) struct EchoFit<'a, T: Real> {
    echoes: &'a Echoes<'a, T>,
    voxels: usize,
    /// Inverse of the largest number in the images.
    scale: f64,
    /// Shortest spacing of echoes in seconds: the unit of time in this file.
    pub unit: f64,
    /// Index of the first echo of each pair of neighbouring echoes with this spacing.
    shortest: Vec<usize>,
}

/// Sums of the weighted fit of a line.
#[derive(Default, Clone, Copy)]
struct LineFit {
    weight: f64,
    time: f64,
    square: f64,
    value: f64,
    product: f64,
}

impl LineFit {
    /// Adds a point.
    fn add(&mut self, weight: f64, time: f64, value: f64) {
        self.weight += weight;
        self.time += weight * time;
        self.square += weight * time * time;
        self.value += weight * value;
        self.product += weight * time * value;
    }

    /// Returns the inverse variance of the slope, for values of variance 1 / weight.
    fn precision(&self) -> f64 {
        if self.weight > 0.0 {
            (self.square - self.time * self.time / self.weight).max(0.0)
        } else {
            0.0
        }
    }

    /// Returns the slope; `None` if all points have the same time.
    fn slope(&self) -> Option<f64> {
        let precision = self.precision();
        (precision > 0.0).then(|| (self.product - self.time * self.value / self.weight) / precision)
    }
}

/// Returns `angle` plus the whole number of turns that brings it nearest to `target`.
pub(super) fn nearest(angle: f64, target: f64) -> f64 {
    angle + TAU * ((target - angle) / TAU).round()
}

impl<'a, T: Real> EchoFit<'a, T> {
    /// Checks the images and prepares the fit.
    pub fn new(echoes: &'a Echoes<'a, T>, voxels: usize, workers: &dyn Workers) -> Result<Self> {
        let of_echo = voxels * echoes.coils;
        let limit = T::of(f64::INFINITY);
        if let Some((at, z)) = first_exceeding(workers, echoes.images, limit) {
            let (k, c, i) = (at / of_echo, at / voxels % echoes.coils, at % voxels);
            bail!(NotFinite, "voxel {i} of coil {c} and echo {k} is {} + {}i: it must be a number", z.re, z.im);
        }
        let mut largest = [0.0f64; 2];
        for (k, echo) in echoes.images.chunks_exact(of_echo).enumerate() {
            let of_part = |range: std::ops::Range<usize>| {
                let larger =
                    |most: [f64; 2], z: &Complex<T>| [most[0].max(z.re.wide().abs()), most[1].max(z.im.wide().abs())];
                echo[range].iter().fold([0.0; 2], larger)
            };
            let most = fold(workers, of_echo, [0.0; 2], of_part, |a, b| [a[0].max(b[0]), a[1].max(b[1])]);
            if most == [0.0; 2] {
                bail!(
                    InvalidArgument,
                    "the images of echo {k} are 0 everywhere: give images with signal in all echoes"
                );
            }
            largest = [largest[0].max(most[0]), largest[1].max(most[1])];
        }
        if largest[1] == 0.0 {
            bail!(
                InvalidArgument,
                "the images are real, and off-resonance cannot be estimated without phases: give complex images, not \
                 magnitudes"
            );
        }
        let gap = |k: usize| echoes.times[k + 1] - echoes.times[k];
        let gaps = echoes.times.len() - 1;
        let unit = (0..gaps).map(gap).fold(f64::INFINITY, f64::min);
        let is_shortest = |k: &usize| gap(*k) <= unit * (1.0 + SAME_SPACING);
        let count = (0..gaps).filter(is_shortest).count();
        let shortest = try_collect(count, WHAT, (0..gaps).filter(is_shortest))?;
        let scale = 1.0 / largest[0].max(largest[1]).max(f64::MIN_POSITIVE);
        Ok(EchoFit { echoes, voxels, scale, unit, shortest })
    }

    /// Returns the scaled value of a voxel.
    fn value(&self, i: usize, coil: usize, echo: usize) -> Complex<f64> {
        wide(self.echoes.images[(echo * self.echoes.coils + coil) * self.voxels + i]) * self.scale
    }

    /// Returns the time of an echo after the first echo, in units of the shortest spacing.
    fn time(&self, echo: usize) -> f64 {
        (self.echoes.times[echo] - self.echoes.times[0]) / self.unit
    }

    /// Returns the product of an echo with the next one. Its phase accumulates between the two.
    fn product(&self, i: usize, echo: usize) -> Complex<f64> {
        (0..self.echoes.coils).map(|c| self.value(i, c, echo).conj() * self.value(i, c, echo + 1)).sum()
    }

    /// Returns the power of a voxel, summed over coils.
    fn power(&self, i: usize, echo: usize) -> f64 {
        (0..self.echoes.coils).map(|c| self.value(i, c, echo).norm_sqr()).sum()
    }

    /// Returns the phase that accumulates within the shortest spacing, between -pi and pi.
    pub fn base_phase(&self, i: usize) -> f64 {
        self.shortest.iter().map(|&k| self.product(i, k)).sum::<Complex<f64>>().arg()
    }

    /// Returns the time between an echo and the next one, in units of the shortest spacing.
    fn gap(&self, echo: usize) -> f64 {
        self.time(echo + 1) - self.time(echo)
    }

    /// Returns the smallest number of turns of the shortest spacing that no pair of neighbouring echoes detects, at
    /// most [`MOST_TURNS`].
    pub fn period(&self) -> usize {
        let gaps = self.echoes.times.len() - 1;
        let is_seen = |turns: usize| {
            (0..gaps).map(|k| turns as f64 * self.gap(k)).any(|turns| (turns - turns.round()).abs() > LEAST_DIFFERENCE)
        };
        (1..MOST_TURNS).find(|&turns| !is_seen(turns)).unwrap_or(MOST_TURNS)
    }

    /// Returns the number of turns of the shortest spacing to add to a piece's phases so that they fit all echoes best,
    /// and whether no other number within the period fits almost equally well. If several fit, 0 is preferred.
    pub fn choose_turn(&self, piece: &[(usize, usize)], phase: &[f64], period: usize) -> (i32, bool) {
        let mut misfits = [0.0; MOST_TURNS];
        let mut power = 0.0;
        // Numbers of turns in the order 0, 1, -1, 2, -2.
        let turns_of = |number: usize| if number % 2 == 1 { number.div_ceil(2) as i32 } else { -(number as i32 / 2) };
        for &(_, i) in piece {
            for k in (0..self.echoes.times.len() - 1).filter(|k| !self.shortest.contains(k)) {
                let (product, gap) = (self.product(i, k), self.gap(k));
                power += product.norm();
                for (number, misfit) in misfits.iter_mut().enumerate().take(period) {
                    let expected = gap * (phase[i] + TAU * f64::from(turns_of(number)));
                    *misfit += product.norm() - (product * Complex::from_polar(1.0, -expected)).re;
                }
            }
        }
        let best = (0..period).fold(0, |best, number| if misfits[number] < misfits[best] { number } else { best });
        let next = (0..period).filter(|&n| n != best).map(|n| misfits[n]).fold(f64::INFINITY, f64::min);
        let is_decided = next - misfits[best] > LEAST_MARGIN * power;
        let is_better = misfits[0] - misfits[best] > LEAST_MARGIN * power;
        (if is_better { turns_of(best) } else { 0 }, is_decided)
    }

    /// Returns the inverse variance of each voxel's off-resonance; 0 without signal.
    pub fn weights(&self, workers: &dyn Workers, threshold: f64) -> Result<Vec<f64>> {
        let weight = |i: usize| {
            let mut line = LineFit::default();
            (0..self.echoes.times.len()).for_each(|k| line.add(self.power(i, k), self.time(k), 0.0));
            let has_signal = self.shortest.iter().any(|&k| self.product(i, k) != Complex::default());
            if has_signal {
                line.precision()
            } else {
                0.0
            }
        };
        let mut weights = collect(workers, self.voxels, WHAT, weight)?;
        let most = weights.iter().copied().fold(0.0, f64::max);
        if most == 0.0 {
            bail!(InvalidArgument, "no voxel has signal in two echoes: give images of the same object");
        }
        if threshold == 0.0 {
            return Ok(weights);
        }
        let mut even = LineFit::default();
        for k in 0..self.echoes.times.len() {
            even.add(self.noise_power(workers, k)?, self.time(k), 0.0);
        }
        let least = even.precision().max(threshold * threshold * most);
        if most < least {
            bail!(
                InvalidArgument,
                "no voxel has more signal than noise alone may have: measure with less noise, or set threshold to 0, \
                 so that all voxels count"
            );
        }
        weights.iter_mut().filter(|w| **w < least).for_each(|w| *w = 0.0);
        Ok(weights)
    }

    /// Returns the power of an echo that noise alone rarely exceeds in a voxel.
    ///
    /// The noise level is estimated from the median of differences of magnitudes over two voxels in x and y (Donoho and
    /// Johnstone, Biometrika 81:425, 1994), as most of these differ only by noise. The distance is two voxels because
    /// neighbours in interpolated images have almost the same noise.
    fn noise_power(&self, workers: &dyn Workers, echo: usize) -> Result<f64> {
        let [nx, ny, _] = three_axes(self.echoes.dims);
        let [columns, rows] = [nx, ny].map(|n| n.saturating_sub(2));
        let slices = self.voxels / (nx * ny);
        if columns * rows == 0 {
            return Ok(0.0);
        }
        let magnitude = |i: usize| self.power(i, echo).sqrt();
        let mut differences = collect(workers, columns * rows * slices, "the noise level", |j| {
            let i = j % columns + nx * (j / columns % rows + ny * (j / columns / rows));
            let (near, far) = (magnitude(i) - magnitude(i + 2), magnitude(i + 2 * nx) - magnitude(i + 2 * nx + 2));
            0.5 * (near - far).abs()
        })?;
        let middle = differences.len() / 2;
        let median = *differences.select_nth_unstable_by(middle, f64::total_cmp).1;
        let level = OVER_MAGNITUDE * median / MEDIAN_OF_NORMAL;
        let parts = 2.0 * self.echoes.coils as f64;
        Ok(level * level * (parts + 2.0 * (parts * LOG_RARITY).sqrt() + 2.0 * LOG_RARITY))
    }

    /// Returns the off-resonance in Hz of a voxel whose phase grows by about `rate` per unit of time.
    pub fn frequency(&self, i: usize, rate: f64) -> f64 {
        let echoes = self.echoes.times.len();
        let [mut low, mut high] = [self.shortest[0]; 2];
        let [mut phase_low, mut phase_high] = [0.0; 2];
        let mut line = LineFit::default();
        line.add(self.power(i, low), self.time(low), 0.0);
        // Echoes are added in the order of their distance from those already added, whose slope unwraps them.
        while high - low + 1 < echoes {
            let below = if low > 0 { self.time(low) - self.time(low - 1) } else { f64::INFINITY };
            let above = if high + 1 < echoes { self.time(high + 1) - self.time(high) } else { f64::INFINITY };
            let (gap, echo) = if above <= below { (above, high) } else { (below, low - 1) };
            let slope = if gap <= 1.0 + SAME_SPACING { rate } else { line.slope().unwrap_or(rate) };
            let product = self.product(i, echo);
            let increase =
                if product == Complex::default() { slope * gap } else { nearest(product.arg(), slope * gap) };
            if above <= below {
                high += 1;
                phase_high += increase;
                line.add(self.power(i, high), self.time(high), phase_high);
            } else {
                low -= 1;
                phase_low -= increase;
                line.add(self.power(i, low), self.time(low), phase_low);
            }
        }
        -line.slope().unwrap_or(rate) / (TAU * self.unit)
    }

    /// Returns the decay rate of a voxel in 1/s. Noise may make it negative.
    pub fn decay(&self, i: usize) -> f64 {
        let mut line = LineFit::default();
        for k in 0..self.echoes.times.len() {
            let power = self.power(i, k);
            if power > 0.0 {
                line.add(power, self.time(k), 0.5 * power.ln());
            }
        }
        -line.slope().unwrap_or(0.0) / self.unit
    }
}
