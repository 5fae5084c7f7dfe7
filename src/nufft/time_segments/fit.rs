//! Least-squares fit of the weights b_l at given nodes.

use super::exponents::{chebyshev, evenly_spaced, ExponentRange};
use crate::base::dense::LeastSquares;
use crate::base::error::{try_collect, try_vec, Result};
use std::f64::consts::{PI, TAU};

/// A least-squares fit at given nodes.
pub(super) struct SegmentFit {
    pub nodes: Vec<f64>,
    /// Fitted exponents: frequency and decay rate.
    points: Vec<[f64; 2]>,
    solver: LeastSquares,
}

impl SegmentFit {
    /// Fits the weights at nodes relative to the middle of all times. Also returns the largest error, see
    /// [`SegmentFit::error`].
    pub fn with_error(range: &ExponentRange, nodes: Vec<f64>, epsilon: f64) -> Result<(Self, f64)> {
        let fit = Self::new(range, nodes, epsilon)?;
        let error = fit.error(range, epsilon)?;
        Ok((fit, error))
    }

    /// Fits the weights at nodes relative to the middle of all times.
    fn new(range: &ExponentRange, nodes: Vec<f64>, epsilon: f64) -> Result<Self> {
        let terms = nodes.len();
        // The frequency range is symmetric: negative frequencies have the same equations.
        let points = range.points(if range.frequency > 0.0 { terms + 8 } else { 1 }, terms);
        let points = try_collect(points.clone().count(), "off-resonance", points)?;
        let equations = 2 * points.len();
        // With decay, the rounding error of each term is an equation too, so that terms do not cancel.
        let rows = equations + if range.decay[1] > 0.0 { terms } else { 0 };
        let mut matrix = try_vec(rows * terms, 0.0, "off-resonance")?;
        for (l, (column, &tau)) in matrix.chunks_exact_mut(rows).zip(&nodes).enumerate() {
            let (signal, rounding) = column.split_at_mut(equations);
            range.fill(signal, &points, tau);
            if let Some(rounding) = rounding.get_mut(l) {
                let largest = signal.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
                // The mean over all times, for comparison with the fastest signals.
                *rounding =
                    1.5 * epsilon * (points.len() as f64).sqrt() * largest * range.log_rms(range.decay[1]).exp();
            }
        }
        Ok(SegmentFit { solver: LeastSquares::new(matrix, rows, terms, "off-resonance")?, nodes, points })
    }

    /// Allocates the column for [`SegmentFit::weights_at`].
    fn column(&self) -> Result<Vec<f64>> {
        try_vec(self.solver.rows(), 0.0, "off-resonance")
    }

    /// Computes the b_l at time `s` relative to the middle, in the first elements of `column`.
    fn weights_at(&self, range: &ExponentRange, s: f64, column: &mut [f64]) {
        let (signal, rounding) = column.split_at_mut(2 * self.points.len());
        range.fill(signal, &self.points, s);
        rounding.fill(0.0);
        self.solver.solve(column);
    }

    /// Returns the largest error relative to the signal of a voxel.
    fn error(&self, range: &ExponentRange, epsilon: f64) -> Result<f64> {
        let terms = self.nodes.len();
        // Between points, the error is at most a few percent larger.
        const BETWEEN_POINTS: f64 = 1.05;
        let decays = range.decay[1] > 0.0;
        let count = if range.frequency > 0.0 { 2 * terms + 8 } else { 1 };
        let rates = if range.decay[1] > range.decay[0] { 7 + (4.0 * range.octaves()) as usize } else { 1 };
        // With decay, late times have little weight in the mean, so their errors are also computed.
        let late = evenly_spaced(-range.time, range.time, if decays && range.time > 0.0 { 2 * terms + 9 } else { 0 });
        let mut b = self.column()?;
        // exp(-(R + i 2 pi f) tau_l) of all points: real part, imaginary part, magnitude.
        let points = evenly_spaced(0.0, range.frequency, count).flat_map(|f| range.rates(rates).map(move |r| [f, r]));
        let points = try_collect(count * rates, "off-resonance", points)?;
        let mut voxel_factors = try_vec(3 * terms * points.len(), 0.0, "off-resonance")?;
        for (row, &[f, r]) in voxel_factors.chunks_exact_mut(3 * terms).zip(&points) {
            for (factor, tau) in row.chunks_exact_mut(3).zip(&self.nodes) {
                let (sin, cos) = (TAU * f * tau).sin_cos();
                let magnitude = range.signal(r, *tau);
                factor.copy_from_slice(&[magnitude * cos, magnitude * sin, magnitude]);
            }
        }
        // For each point, the largest error of the fit and the mean square of rounding errors.
        let mut errors = try_vec(points.len(), [0f64; 2], "off-resonance")?;
        for (s, weight) in range.times(2 * terms + 9).chain(late.map(|s| (s, 0.0))) {
            self.weights_at(range, s, &mut b);
            for ((row, &[f, r]), errors) in voxel_factors.chunks_exact(3 * terms).zip(&points).zip(&mut errors) {
                let (sin, cos) = (TAU * f * s).sin_cos();
                let magnitude = range.signal(r, s);
                let (mut re, mut im, mut sum) = (-magnitude * cos, -magnitude * sin, 0.0);
                for (factor, b) in row.chunks_exact(3).zip(&b) {
                    re += factor[0] * b;
                    im += factor[1] * b;
                    sum += factor[2] * b.abs();
                }
                errors[0] = errors[0].max((re * re + im * im).sqrt());
                errors[1] += weight * (0.5 * epsilon * sum).powi(2);
            }
        }
        Ok(errors.iter().fold(0.0, |worst, [fit, rounding]| worst.max(fit * BETWEEN_POINTS + rounding.sqrt())))
    }

    /// Computes the b_l as Chebyshev series, with the number of terms that machine epsilon `epsilon` requires.
    pub fn series(&self, range: &ExponentRange, epsilon: f64) -> Result<Vec<f64>> {
        let terms = self.nodes.len();
        // exp(-a x) for x from 0 to 1 requires about 6 a^(1/2) terms in double precision.
        let decay = 6.0 * (2.0 * range.decay[1] * range.time).sqrt();
        let count = if range.time > 0.0 { 2 * terms + 24 + decay as usize } else { 1 };
        let mut series = try_vec(count * terms, 0.0, "off-resonance")?;
        let mut b = self.column()?;
        for (i, x) in chebyshev(count).enumerate() {
            self.weights_at(range, x * range.time, &mut b);
            let angle = PI - (i as f64 + 0.5) / count as f64 * PI;
            for (n, row) in series.chunks_exact_mut(terms).enumerate() {
                let factor = (n as f64 * angle).cos() * if n == 0 { 1.0 } else { 2.0 } / count as f64;
                row.iter_mut().zip(&b).for_each(|(c, b)| *c += factor * b);
            }
        }
        let size = |row: &[f64]| row.iter().fold(0.0, |m: f64, c| m.max(c.abs()));
        let all = series.chunks_exact(terms).map(size).fold(0.0, f64::max);
        let expected_terms = series.chunks_exact(terms).rposition(|row| size(row) > 1e-3 * epsilon * all);
        series.truncate((expected_terms.unwrap_or(0) + 1) * terms);
        Ok(series)
    }
}
