//! Hargreaves' design of a variable-density spiral, from the limits of the gradients.
//!
//! The spiral is k = r e^(i a), whose turns are as far apart as the field of view F(r) requires with N interleaves:
//! da/dr = q(r) = 2 pi F(r) / N. Its derivatives in time are
//!
//! - k' = r' (1 + i r q) e^(i a),
//! - k'' = (r'' (1 + i r q) + r'^2 (-r q^2 + i (2 q + r dq/dr))) e^(i a).
//!
//! r starts at rest. |k''| = gamma S is a quadratic equation for r'', until |k'| is gamma G, or one sample per 1 / F
//! (Hargreaves 2001; Kim et al. 2003).
//!
//! Hargreaves' program integrates with one step per sample, velocities before positions. Sequences play the gradients
//! of this sum, which is up to half a sample ahead of the exact solution, so that the same steps are taken here.

use crate::base::error::{bail, Result};
use std::f64::consts::PI;

/// gamma / (2 pi) in Hz per gauss, as in Hargreaves' program and in Gadgetron.
pub(super) const GAMMA_HZ_PER_G: f64 = 4258.0;

/// Maximum number of samples of a design: more than an acquisition can have.
const MAX_SAMPLES: usize = 100_000;

/// The limits of a spiral, in the units of gauss and centimetres.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SpiralLimits {
    /// The time between samples of data and gradients in seconds.
    pub sample_time: f64,
    /// The number of interleaves.
    pub interleaves: f64,
    /// The maximum gradient in G/cm.
    pub gradient: f64,
    /// The maximum slew rate in G/cm/s.
    pub slew_rate: f64,
    /// The coefficients of the field of view in cm as a polynomial of r in 1/cm.
    pub fov: Vec<f64>,
    /// The radius at which the spiral ends, in 1/cm.
    pub krmax: f64,
}

/// The state of the integration.
#[derive(Default)]
struct SpiralState {
    radius: f64,
    speed: f64,
    angle: f64,
    angular_speed: f64,
}

impl SpiralLimits {
    /// Returns F and dF/dr at this radius.
    fn fov_at(&self, radius: f64) -> (f64, f64) {
        let horner = |(value, slope): (f64, f64), &c: &f64| (value * radius + c, slope * radius + value);
        self.fov.iter().rev().fold((0.0, 0.0), horner)
    }

    /// Returns r'' and a'' of the next step.
    fn acceleration(&self, state: &SpiralState) -> Result<(f64, f64)> {
        let (fov, slope) = self.fov_at(state.radius);
        if fov <= 0.0 {
            bail!(
                BadFile,
                "the field of view of the spiral is {fov} cm at {} per cm: correct FOVCoeff_1_cm in the trajectory \
                 description",
                state.radius
            );
        }
        let (r, v) = (state.radius, state.speed);
        let (q, dq) = (2.0 * PI * fov / self.interleaves, 2.0 * PI * slope / self.interleaves);
        let length = 1.0 + (r * q).powi(2);
        let speed_limit = (GAMMA_HZ_PER_G * self.gradient).min(1.0 / (fov * self.sample_time)) / length.sqrt();
        let radial = if v > speed_limit {
            (speed_limit - v) / self.sample_time
        } else {
            let (radial_rest, tangential_rest) = (-r * q * q * v * v, (2.0 * q + r * dq) * v * v);
            let half_b = (radial_rest + r * q * tangential_rest) / length;
            let slew = GAMMA_HZ_PER_G * self.slew_rate;
            let c = (radial_rest.powi(2) + tangential_rest.powi(2) - slew * slew) / length;
            // Rounding, or a gradient that had to fall, can leave no solution: the nearest one is the vertex.
            -half_b + (half_b * half_b - c).max(0.0).sqrt()
        };
        Ok((radial, dq * v * v + q * radial))
    }

    /// Returns the positions of the first interleaf in 1/cm: one per sample, and that at which `krmax` is reached.
    ///
    /// # Errors
    /// `BadFile` if the limits are invalid or the spiral does not reach `krmax`.
    pub fn design(&self) -> Result<Vec<[f64; 2]>> {
        let mut state = SpiralState::default();
        let mut nodes = vec![[0.0; 2]];
        while state.radius < self.krmax {
            if nodes.len() > MAX_SAMPLES {
                bail!(
                    BadFile,
                    "the spiral of the trajectory description is at {} per cm after {MAX_SAMPLES} samples, and krmax is \
                     {}: correct the limits of gradient and slew rate, SamplingTime_ns or krmax_per_cm",
                    state.radius,
                    self.krmax
                );
            }
            let (radial, angular) = self.acceleration(&state)?;
            let step = self.sample_time;
            state.angular_speed += angular * step;
            state.angle += state.angular_speed * step;
            state.speed += radial * step;
            state.radius += state.speed * step;
            if nodes.try_reserve(1).is_err() {
                bail!(OutOfHostMemory, "the host is out of memory for the spiral: read fewer images at once");
            }
            let (sin, cos) = state.angle.sin_cos();
            nodes.push([state.radius * cos, state.radius * sin]);
        }
        Ok(nodes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> SpiralLimits {
        SpiralLimits {
            sample_time: 2.5e-6,
            interleaves: 16.0,
            gradient: 2.4,
            slew_rate: 14_414.0,
            fov: vec![30.0],
            krmax: 3.2,
        }
    }

    /// Returns |k'| / (2 pi gamma) and |k''| / (2 pi gamma) of all samples, from differences.
    fn gradient_and_slew(nodes: &[[f64; 2]], step: f64) -> (Vec<f64>, Vec<f64>) {
        let difference = |v: &[[f64; 2]]| -> Vec<[f64; 2]> {
            v.windows(2).map(|w| std::array::from_fn(|i| (w[1][i] - w[0][i]) / step / GAMMA_HZ_PER_G)).collect()
        };
        let gradient = difference(nodes);
        let slew: Vec<f64> = difference(&gradient).iter().map(|s| s[0].hypot(s[1]) * GAMMA_HZ_PER_G).collect();
        (gradient.iter().map(|g| g[0].hypot(g[1])).collect(), slew)
    }

    #[test]
    fn gradient_and_slew_rate_stay_within_their_limits_and_reach_them() {
        for fov in [vec![30.0], vec![30.0, -4.0], vec![20.0, 2.0, 0.5]] {
            let limits = SpiralLimits { fov, ..limits() };
            let nodes = limits.design().unwrap();
            let (gradient, slew) = gradient_and_slew(&nodes, limits.sample_time);
            let largest = |v: &[f64]| v.iter().fold(0.0f64, |a, &b| a.max(b));
            // A step of the integration changes the limits by less than 1 %.
            let dense = |r: f64| limits.fov_at(r).0;
            let nyquist = 1.0 / (dense(0.0).max(dense(limits.krmax)) * limits.sample_time * GAMMA_HZ_PER_G);
            assert!(
                nyquist > limits.gradient && largest(&gradient) <= 1.01 * limits.gradient,
                "{}",
                largest(&gradient)
            );
            // The integration is of first order: the slew rate of its differences exceeds the limit by 4 % in the first
            // samples, and by a quarter of this with a quarter of the step.
            let excess = largest(&slew) / limits.slew_rate - 1.0;
            let fine = SpiralLimits { sample_time: 0.25 * limits.sample_time, ..limits.clone() };
            let (_, fine_slew) = gradient_and_slew(&fine.design().unwrap(), fine.sample_time);
            let fine_excess = largest(&fine_slew) / limits.slew_rate - 1.0;
            assert!(excess < 0.045 && fine_excess < 0.3 * excess, "{excess}, {fine_excess}");
            assert!(slew.iter().filter(|&&s| s > 1.02 * limits.slew_rate).count() < 10);
            // Nearly always, one of the limits is reached within 2 %.
            let limited = gradient
                .iter()
                .zip(&slew)
                .filter(|(g, s)| **s > 0.98 * limits.slew_rate || **g > 0.98 * limits.gradient);
            assert!(10 * limited.count() > 9 * slew.len());
        }
    }

    #[test]
    fn neighbouring_turns_are_as_far_apart_as_the_field_of_view_requires() {
        for fov in [vec![30.0], vec![30.0, -4.0]] {
            let limits = SpiralLimits { fov, ..limits() };
            let nodes = limits.design().unwrap();
            // The angle along the path, and the radius as a function of it.
            let mut angle = 0.0;
            let mut path: Vec<(f64, f64)> = vec![(0.0, 0.0)];
            for pair in nodes[1..].windows(2) {
                let [a, b] = [pair[0], pair[1]];
                angle += (a[0] * b[1] - a[1] * b[0]).atan2(a[0] * b[0] + a[1] * b[1]);
                path.push((angle, b[0].hypot(b[1])));
            }
            // The interleaves divide a turn, so that neighbours are 1/16 turn of one interleaf apart.
            let spacing = 2.0 * PI / limits.interleaves;
            let radius = |at: f64| {
                let after = path.partition_point(|p| p.0 < at);
                path.get(after).map(|b| {
                    let a = path[after - 1];
                    a.1 + (b.1 - a.1) * (at - a.0) / (b.0 - a.0)
                })
            };
            let mut checked = 0;
            for &(at, r) in path[10..].iter().step_by(50) {
                let Some(next) = radius(at + spacing) else { break };
                let (required, found) = (1.0 / limits.fov_at(0.5 * (r + next)).0, next - r);
                assert!((found / required - 1.0).abs() < 0.01, "at {r}: {found}, required {required}");
                checked += 1;
            }
            assert!(checked > 10);
        }
    }

    #[test]
    fn the_spiral_starts_at_0_and_ends_at_krmax() {
        let nodes = limits().design().unwrap();
        let radius = |k: &[f64; 2]| k[0].hypot(k[1]);
        assert_eq!(nodes[0], [0.0; 2]);
        // The first step: v = S T, r = S T^2 with S in 1/cm/s^2.
        assert!((radius(&nodes[1]) / (GAMMA_HZ_PER_G * 14_414.0 * 2.5e-6f64.powi(2)) - 1.0).abs() < 1e-12);
        assert!(nodes[..nodes.len() - 1].iter().all(|k| radius(k) < 3.2) && radius(nodes.last().unwrap()) >= 3.2);
        assert!(radius(nodes.last().unwrap()) < 3.21);
    }

    #[test]
    fn limits_without_a_spiral_are_errors() {
        let slow = SpiralLimits { slew_rate: 1e-6, ..limits() };
        assert!(slow.design().unwrap_err().to_string().contains("after 100000 samples"));
        let negative = SpiralLimits { fov: vec![30.0, -10.0], ..limits() };
        assert!(negative.design().unwrap_err().to_string().contains("FOVCoeff_1_cm"));
    }
}
