//! Nodes tau_l of a sum, and the number that a tolerance requires.

use super::exponents::{evenly_spaced, half, ExponentRange};
use crate::base::dense::{add_scaled, dot};
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
        let points = range.fitted_points(terms)?;
        let (rows, early) = (points.rows(), range.times(2 * terms + 40).map(|(s, _)| s));
        let candidates = early.chain(evenly_spaced(-range.time, range.time, 4 * terms + 17));
        let candidates = try_collect(candidates.clone().count(), WHAT, candidates)?;
        let mut matrix = try_vec(rows * candidates.len(), 0.0, WHAT)?;
        let mut norms = try_vec(candidates.len(), 0.0, WHAT)?;
        let mut factors = points.factors()?;
        for ((column, &s), norm) in matrix.chunks_exact_mut(rows).zip(&candidates).zip(&mut norms) {
            points.compute_factors(s, &mut factors);
            points.expand(&factors, column);
            *norm = dot(column, column);
        }
        let mut nodes = try_vec(MAX_SEGMENTS.min(candidates.len()), 0.0, WHAT)?;
        let mut pivot = try_vec(rows, 0.0, WHAT)?;
        let (mut count, mut expected) = (0, None);
        while count < nodes.len() {
            let (at, norm) =
                norms.iter().enumerate().fold((0, 0.0), |all, (i, &norm)| if norm > all.1 { (i, norm) } else { all });
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
            for (column, norm) in matrix.chunks_exact_mut(rows).zip(&mut norms) {
                add_scaled(-dot(&pivot, column), &pivot, column);
                *norm = dot(column, column);
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
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..50 {
        let k = 0.5 * (low + high);
        *if 2.0 * c * complete_elliptic_integral(k) > k * count as f64 * PI { &mut low } else { &mut high } = k;
    }
    let k = 0.5 * (low + high);
    // Steps from -pi/2 to 0. The second half of the nodes mirrors the first.
    const STEPS: usize = 256;
    let angle = |i: usize| ((i as f64 + 0.5) / STEPS as f64 - 1.0) * 0.5 * PI;
    let mut densities = [0.0; STEPS];
    for (i, density) in densities.iter_mut().enumerate() {
        *density = (1.0 - (k * angle(i).sin()).powi(2)).max(0.0).sqrt();
    }
    let half: f64 = densities.iter().sum();
    let mut nodes = try_vec(count, 0.0, "off-resonance")?;
    let (mut integral, mut step) = (0.0, 0);
    for l in 0..count / 2 {
        let target = half * (2 * l + 1) as f64 / count as f64;
        while step + 1 < STEPS && integral + densities[step] < target {
            integral += densities[step];
            step += 1;
        }
        let phi = angle(step) + ((target - integral) / densities[step] - 0.5) * 0.5 * PI / STEPS as f64;
        (nodes[l], nodes[count - 1 - l]) = (phi.sin(), -phi.sin());
    }
    Ok(nodes)
}

/// Returns the integral of (1 - k^2 sin^2 phi)^(1/2) from 0 to pi/2, for k from 0 to below 1, by the
/// arithmetic-geometric mean (Abramowitz and Stegun, 17.6).
fn complete_elliptic_integral(k: f64) -> f64 {
    let (mut a, mut b, mut c) = (1.0, ((1.0 - k) * (1.0 + k)).sqrt(), k);
    let (mut sum, mut power) = (0.5 * c * c, 0.5);
    while c > 1e-15 * a {
        (a, b, c) = (0.5 * (a + b), (a * b).sqrt(), 0.5 * (a - b));
        power *= 2.0;
        sum += power * c * c;
    }
    0.5 * PI / a * (1.0 - sum)
}
