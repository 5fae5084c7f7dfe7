//! Least-squares fit of the weights b_l at given nodes.

use super::exponents::{chebyshev, evenly_spaced, ExponentRange, PointGrid};
use crate::base::dense::{add_scaled, LeastSquares};
use crate::base::error::{try_collect, try_vec, Result};
use std::f64::consts::PI;
use std::ops::RangeInclusive;

const WHAT: &str = "off-resonance";

/// Between the points where the error is computed, it is at most a few percent larger.
const BETWEEN_POINTS: f64 = 1.05;

/// The signals at all points and times, which the fits of different nodes share.
pub(super) struct SegmentFitter<'a> {
    range: &'a ExponentRange,
    /// Relative rounding error of the plan's arrays.
    epsilon: f64,
    /// Maximum number of terms for which there are enough points and times.
    max_terms: usize,
    fitted: PointGrid,
    checked: PointGrid,
    /// Times at which errors are computed, and the weight of each in the mean over all times.
    times: Vec<(f64, f64)>,
    /// Factors of the signals at these times, of the fitted points and of the checked points.
    factors: [Vec<f64>; 2],
}

/// A least-squares fit at given nodes.
pub(super) struct SegmentFit {
    /// Nodes relative to the middle of all times.
    pub nodes: Vec<f64>,
    /// Number of equations of the fitted points.
    equations: usize,
    solver: LeastSquares,
}

impl<'a> SegmentFitter<'a> {
    /// Chooses points and times for fits of up to `max_terms` terms.
    pub fn new(range: &'a ExponentRange, max_terms: usize, epsilon: f64) -> Result<Self> {
        let (fitted, checked) = (range.fitted_points(max_terms)?, range.checked_points(max_terms)?);
        // With decay, late times have little weight in the mean, so their errors are also computed.
        let decays = range.decay[1] > 0.0 && range.time > 0.0;
        let late = evenly_spaced(-range.time, range.time, if decays { 2 * max_terms + 9 } else { 0 });
        let times = range.times(2 * max_terms + 9).chain(late.map(|s| (s, 0.0)));
        let mut times = try_collect(times.clone().count(), WHAT, times)?;
        // Errors are largest at both ends: a fit that exceeds a limit is found out after a few times.
        times.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
        let factors = |points: &PointGrid| -> Result<Vec<f64>> {
            let mut all = try_vec(times.len() * points.factor_count(), 0.0, WHAT)?;
            for (factors, (s, _)) in all.chunks_exact_mut(points.factor_count()).zip(&times) {
                points.compute_factors(*s, factors);
            }
            Ok(all)
        };
        let factors = [factors(&fitted)?, factors(&checked)?];
        Ok(SegmentFitter { range, epsilon, max_terms, fitted, checked, times, factors })
    }

    /// Finds the smallest number of terms whose error is at most `tolerance`: upwards from the start of `terms`, or
    /// else downwards. `nodes` returns the nodes for a number of terms. Returns the fit with its error, or that of the
    /// largest number, whose error is the first one found above `last_limit`.
    pub fn fewest_terms(
        &mut self,
        nodes: &dyn Fn(usize) -> Result<Vec<f64>>,
        terms: RangeInclusive<usize>,
        tolerance: f64,
        last_limit: f64,
    ) -> Result<(SegmentFit, f64)> {
        let (start, max) = terms.into_inner();
        let limit = |terms: usize| if terms < max { tolerance } else { last_limit };
        let mut terms = start;
        let mut best = self.fit(nodes(terms)?, limit(terms))?;
        while best.1 > tolerance && terms < max {
            terms += 1;
            best = self.fit(nodes(terms)?, limit(terms))?;
        }
        while best.1 <= tolerance && terms > 1 && terms <= start {
            match self.fit(nodes(terms - 1)?, tolerance)? {
                fewer if fewer.1 <= tolerance => (best, terms) = (fewer, terms - 1),
                _ => break,
            }
        }
        Ok(best)
    }

    /// Fits the weights at nodes relative to the middle of all times. Also returns the largest error relative to the
    /// signal of a voxel, or the first one found above `limit`.
    pub fn fit(&mut self, nodes: Vec<f64>, limit: f64) -> Result<(SegmentFit, f64)> {
        if nodes.len() > self.max_terms {
            *self = Self::new(self.range, 2 * nodes.len(), self.epsilon)?;
        }
        let (terms, equations) = (nodes.len(), self.fitted.rows());
        // With decay, the rounding error of each term is an equation too, so that terms do not cancel.
        let rows = equations + if self.range.decay[1] > 0.0 { terms } else { 0 };
        let mut matrix = try_vec(rows * terms, 0.0, WHAT)?;
        let mut factors = self.fitted.factors()?;
        for (l, (column, &tau)) in matrix.chunks_exact_mut(rows).zip(&nodes).enumerate() {
            let (signal, rounding) = column.split_at_mut(equations);
            self.fitted.compute_factors(tau, &mut factors);
            self.fitted.expand(&factors, signal);
            if let Some(rounding) = rounding.get_mut(l) {
                let largest = signal.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
                // The mean over all times, for comparison with the fastest signals.
                let mean = self.range.log_rms(self.range.decay[1]).exp();
                *rounding = 1.5 * self.epsilon * (self.fitted.len() as f64).sqrt() * largest * mean;
            }
        }
        let fit = SegmentFit { solver: LeastSquares::new(matrix, rows, terms, WHAT)?, nodes, equations };
        let error = self.error(&fit, limit)?;
        Ok((fit, error))
    }

    /// Returns the largest error relative to the signal of a voxel, or the first one found above `limit`.
    fn error(&self, fit: &SegmentFit, limit: f64) -> Result<f64> {
        let (terms, rows, points) = (fit.nodes.len(), self.checked.rows(), self.checked.len());
        let (mut voxel_factors, mut magnitudes) =
            (try_vec(terms * rows, 0.0, WHAT)?, try_vec(terms * self.checked.rates(), 0.0, WHAT)?);
        let mut factors = self.checked.factors()?;
        let all = voxel_factors.chunks_exact_mut(rows).zip(magnitudes.chunks_exact_mut(self.checked.rates()));
        for ((row, magnitudes), &tau) in all.zip(&fit.nodes) {
            self.checked.compute_factors(tau, &mut factors);
            self.checked.expand(&factors, row);
            magnitudes.copy_from_slice(self.checked.magnitudes(&factors));
        }
        let (mut b, mut signal) = (try_vec(terms, 0.0, WHAT)?, try_vec(self.fitted.rows(), 0.0, WHAT)?);
        let mut difference = try_vec(rows, 0.0, WHAT)?;
        let mut sums = try_vec(self.checked.rates(), 0.0, WHAT)?;
        // The largest square of the error of the fit of each point, and the mean square of the rounding errors of each
        // rate.
        let (mut squares, mut rounding) = (try_vec(points, 0f64, WHAT)?, try_vec(self.checked.rates(), 0.0, WHAT)?);
        let [fitted, checked] = &self.factors;
        let factors =
            fitted.chunks_exact(self.fitted.factor_count()).zip(checked.chunks_exact(self.checked.factor_count()));
        for ((fitted, checked), (_, weight)) in factors.zip(&self.times) {
            self.fitted.expand(fitted, &mut signal);
            fit.solver.solve(&signal, &mut b);
            self.checked.expand(checked, &mut difference);
            subtract_terms(&b, &voxel_factors, &mut difference);
            let (real, imaginary) = difference.split_at(points);
            let mut largest = 0f64;
            for (i, (square, re)) in squares.iter_mut().zip(real).enumerate() {
                let im = imaginary.get(i).unwrap_or(&0.0);
                *square = square.max(re * re + im * im);
                largest = largest.max(*square);
            }
            if BETWEEN_POINTS * largest.sqrt() > limit {
                return Ok(BETWEEN_POINTS * largest.sqrt());
            }
            sums.fill(0.0);
            for (b, magnitudes) in b.iter().zip(magnitudes.chunks_exact(sums.len())) {
                add_scaled(b.abs(), magnitudes, &mut sums);
            }
            for (rounding, sum) in rounding.iter_mut().zip(&sums) {
                *rounding += weight * (0.5 * self.epsilon * sum).powi(2);
            }
        }
        let errors = squares.chunks_exact(rounding.len()).flat_map(|squares| squares.iter().zip(&rounding));
        Ok(errors.fold(0.0, |worst, (fit, rounding)| worst.max(fit.sqrt() * BETWEEN_POINTS + rounding.sqrt())))
    }

    /// Computes the b_l of a fit as Chebyshev series, with the number of terms that the plan's precision requires.
    pub fn series(&self, fit: &SegmentFit) -> Result<Vec<f64>> {
        let (range, terms) = (self.range, fit.nodes.len());
        assert_eq!(fit.equations, self.fitted.rows(), "the fit has other points");
        // exp(-a x) for x from 0 to 1 requires about 6 a^(1/2) terms in double precision.
        let decay = 6.0 * (2.0 * range.decay[1] * range.time).sqrt();
        let count = if range.time > 0.0 { 2 * terms + 24 + decay as usize } else { 1 };
        let mut series = try_vec(count * terms, 0.0, WHAT)?;
        let (mut b, mut signal) = (try_vec(terms, 0.0, WHAT)?, try_vec(self.fitted.rows(), 0.0, WHAT)?);
        let mut factors = self.fitted.factors()?;
        // The cosines of all multiples of pi / (2 count).
        let angle = |i: usize| 0.5 * PI * i as f64 / count as f64;
        let cosines = try_collect(4 * count, WHAT, (0..4 * count).map(|i| angle(i).cos()))?;
        for (i, x) in chebyshev(count).enumerate() {
            self.fitted.compute_factors(x * range.time, &mut factors);
            self.fitted.expand(&factors, &mut signal);
            fit.solver.solve(&signal, &mut b);
            // x is the cosine of pi - (i + 1/2) pi / count.
            let steps = 2 * count - (2 * i + 1);
            for (n, row) in series.chunks_exact_mut(terms).enumerate() {
                let factor = cosines[n * steps % (4 * count)] * if n == 0 { 1.0 } else { 2.0 } / count as f64;
                add_scaled(factor, &b, row);
            }
        }
        let size = |row: &[f64]| row.iter().fold(0.0, |m: f64, c| m.max(c.abs()));
        let all = series.chunks_exact(terms).map(size).fold(0.0, f64::max);
        let expected_terms = series.chunks_exact(terms).rposition(|row| size(row) > 1e-3 * self.epsilon * all);
        series.truncate((expected_terms.unwrap_or(0) + 1) * terms);
        Ok(series)
    }
}

/// Computes y = y - sum_l b_l x_l. `rows` are the x_l, one after the other.
fn subtract_terms(b: &[f64], rows: &[f64], y: &mut [f64]) {
    let n = y.len();
    let (groups, rest) = (b.chunks_exact(4), b.chunks_exact(4).remainder());
    // Four terms at a time, so that y is loaded and stored less often.
    for (b, rows) in groups.zip(rows.chunks_exact(4 * n)) {
        let [x0, x1, x2, x3]: [&[f64]; 4] = std::array::from_fn(|i| &rows[i * n..][..n]);
        for i in 0..n {
            y[i] -= (b[0] * x0[i] + b[1] * x1[i]) + (b[2] * x2[i] + b[3] * x3[i]);
        }
    }
    for (b, row) in rest.iter().zip(rows[(b.len() - rest.len()) * n..].chunks_exact(n)) {
        add_scaled(-b, row, y);
    }
}
