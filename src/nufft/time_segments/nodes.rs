//! Nodes tau_l of a sum, and the number that a tolerance requires.

use super::exponents::{evenly_spaced, half, ExponentRange};
use crate::base::error::{try_collect, try_vec, Result};
use std::f64::consts::PI;

/// Maximum number of terms. The time of a transform is proportional to the number of terms.
pub const MAX_SEGMENTS: usize = 128;

/// Estimates the number of terms that a tolerance requires. The eigenvalues of time and band limiting fall within a few
/// terms of twice the product of both limits (Landau and Widom, J. Math. Anal. Appl. 77:469, 1980).
pub(super) fn expected_terms(range: &ExponentRange, tolerance: f64) -> usize {
    let decay = half(range.decay) * range.time;
    if range.frequency == 0.0 && decay == 0.0 {
        return 1;
    }
    let product = 4.0 * range.frequency * range.time;
    let fall = (2.0 * PI * product.max(1.0)).ln() * (1.0 / tolerance).ln() / (PI * PI);
    // For strong decay, about the product of the logarithms of decay and tolerance.
    let strong = 4.0 + (1.0 + 4.0 * decay).ln() * (1.0 / tolerance).ln() / 5.0;
    (product + fall + (2.0 * decay).min(strong)).ceil() as usize
}

/// Nodes for decay: times from which the signals at all times can be computed with small factors.
pub(super) struct PivotNodes {
    /// Nodes relative to the middle of all times, the most important first.
    pub nodes: Vec<f64>,
    /// Estimated number of nodes that the tolerance requires.
    pub expected: usize,
}

impl PivotNodes {
    /// Chooses nodes by a QR decomposition, with column pivots, of the signals of all f and R. `terms` is the estimated
    /// number of terms for the frequencies.
    pub fn new(range: &ExponentRange, terms: usize, tolerance: f64) -> Result<Self> {
        const WHAT: &str = "off-resonance";
        let terms = terms.min(MAX_SEGMENTS);
        let points = range.points(if range.frequency > 0.0 { terms + 8 } else { 1 }, terms);
        let points = try_collect(points.clone().count(), WHAT, points)?;
        let (rows, early) = (2 * points.len(), range.times(2 * terms + 40).map(|(s, _)| s));
        let candidates = early.chain(evenly_spaced(-range.time, range.time, 4 * terms + 17));
        let candidates = try_collect(candidates.clone().count(), WHAT, candidates)?;
        let mut matrix = try_vec(rows * candidates.len(), 0.0, WHAT)?;
        for (column, s) in matrix.chunks_exact_mut(rows).zip(&candidates) {
            range.fill(column, &points, *s);
        }
        let mut nodes = try_vec(MAX_SEGMENTS.min(candidates.len()), 0.0, WHAT)?;
        let mut pivot = try_vec(rows, 0.0, WHAT)?;
        let (mut count, mut expected) = (0, None);
        while count < nodes.len() {
            let norms = matrix.chunks_exact(rows).map(|column| column.iter().map(|x| x * x).sum::<f64>());
            let (at, norm) = norms.enumerate().fold((0, 0.0), |all, one| if one.1 > all.1 { one } else { all });
            let norm = norm.sqrt();
            if norm <= 2.0 * tolerance {
                expected = expected.or(Some(count));
            }
            // The remaining columns consist of rounding errors.
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
        Ok(PivotNodes { nodes, expected })
    }
}

/// Computes `count` nodes between -1 and 1 for waves of up to `c` radians: the zeros of a prolate spheroidal function.
///
/// At these points the integral of ((chi - c^2 x^2) / (1 - x^2))^(1/2) passes odd multiples of pi/2. They are Chebyshev
/// nodes for small c, and evenly spaced if there are no more nodes than waves (Xiao, Rokhlin and Yarvin, Inverse
/// Problems 17:805, 2001).
pub(super) fn prolate_nodes(c: f64, count: usize) -> Result<Vec<f64>> {
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
    let (mut integral, mut step) = (0.0, 0);
    // The second half mirrors the first.
    for l in 0..count / 2 {
        let target = all * (l as f64 + 0.5) / count as f64;
        while integral + density(k, step) < target {
            integral += density(k, step);
            step += 1;
        }
        let phi = angle(step) + ((target - integral) / density(k, step) - 0.5) * PI / STEPS as f64;
        (nodes[l], nodes[count - 1 - l]) = (phi.sin(), -phi.sin());
    }
    Ok(nodes)
}
