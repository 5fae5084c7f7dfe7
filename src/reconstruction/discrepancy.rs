//! The weight of a prior from the noise level, by the discrepancy principle (Morozov, Soviet Math. Dokl. 7:414, 1966).
//!
//! Morozov's image is as far from the data as the noise is: r = |E x - d|^2 = N sigma^2. This assumes exact coil maps
//! and an object that the model represents exactly, because r also includes their errors. Therefore r is compared with
//! r_0, the misfit of a solution with almost no prior, which fits all of the signal and part of the noise.
//!
//! The same solution of noise alone yields the share g of the energy of any noise that is fitted. The requested image
//! has returned most of it, r = r_0 + 3/4 g N sigma^2: the prior has suppressed noise, but no signal yet.

use crate::base::error::{bail, Result};
use crate::base::results::check_result;
use crate::base::warning::{raise, WarningKind};

/// Range of lambda in the search, relative to the mean of the diagonal of E^H W E.
const RANGE: [f64; 2] = [1e-6, 1e3];
/// Initial lambda of the search.
const FIRST: f64 = 0.1;
/// Factor between lambdas until two of them enclose the level.
const STEP: f64 = 10.0;
/// Accepted difference between the logarithms of the misfit and of the level.
const ACCURACY: f64 = 5e-3;
/// Ratio of two lambdas below which the search stops.
const LEAST_RATIO: f64 = 1.05;
/// Maximum number of solutions between two lambdas.
const MOST_SOLUTIONS: usize = 12;

/// Share of the fitted noise that is returned. Determined on three phantoms and a brain, with 24 and 48 spokes, SNR 3
/// to 20, two priors, and known and estimated maps (docs/method.md).
const RETURNED_SHARE: f64 = 0.75;
/// Largest ratio, in either direction, between the noise measured in the data and the level. Beyond it, the level or
/// the model must be wrong.
const MOST_RATIO: f64 = 2.0;
/// Smallest share of noise that must remain in the data, so that the noise of the data can be measured.
const MEASURABLE_SHARE: f64 = 0.05;
/// Ratio beyond which a difference causes a warning.
const WARNING_RATIO: f64 = 1.1;

/// Misfit of solutions with almost no prior.
pub(crate) struct MisfitFloor {
    /// |E x - d|^2 for the data.
    pub data: f64,
    /// |E x - d|^2 for noise of variance 1.
    pub noise: f64,
    /// Number of samples of all coils and frames.
    pub samples: usize,
}

impl MisfitFloor {
    /// Lambda of these solutions.
    pub const LAMBDA: f64 = RANGE[0];

    /// Returns the |E x - d|^2 of the requested image.
    ///
    /// # Errors
    /// `InvalidArgument` if the level cannot be that of the data.
    pub fn target(&self, level: f64) -> Result<f64> {
        let samples = self.samples as f64;
        let taken = (samples - self.noise).max(0.0);
        // If the image can fit almost any noise, the noise of the data cannot be measured.
        if self.noise > MEASURABLE_SHARE * samples {
            let measured = (self.data / self.noise).sqrt();
            if measured > MOST_RATIO * level {
                bail!(
                    InvalidArgument,
                    "the closest image differs from the data by {measured:.4} per sample, but the noise level is \
                     {level}: the level is too low, or the coil maps or the field of view do not fit"
                );
            }
            if measured * MOST_RATIO < level {
                bail!(
                    InvalidArgument,
                    "the noise of the data is {measured:.4} per sample, but the noise level is {level}: the level is \
                     too high; give the root of the mean |noise|^2 of a sample, in the unit of the data"
                );
            }
        }
        Ok(self.data + RETURNED_SHARE * taken * level * level)
    }

    /// Warns if the distance of the image from the data does not match the noise level.
    ///
    /// `reached` is the image's |E x - d|^2 divided by [`MisfitFloor::target`], `iterations` the number of iterations
    /// of each solution.
    pub fn warn(&self, level: f64, reached: f64, iterations: usize) -> Result<()> {
        let samples = self.samples as f64;
        let target = self.target(level)?;
        let ratio = (target / samples).sqrt() * reached.sqrt() / level;
        check_result("distance of the image from the data", ratio)?;
        if ratio > WARNING_RATIO || reached.sqrt() > WARNING_RATIO || reached.sqrt() * WARNING_RATIO < 1.0 {
            let message = format!(
                "the image differs from the data by {ratio:.2} times the noise level of {level}, and no lambda reaches \
                 the level: {iterations} iterations are too few, or the level is too low, or the coil maps or the \
                 field of view do not fit; raise the iterations, or give lambda"
            );
            raise(WarningKind::Noise, message);
            return Ok(());
        }
        if self.noise > MEASURABLE_SHARE * samples {
            let measured = (self.data / self.noise).sqrt();
            if measured > WARNING_RATIO * level || measured * WARNING_RATIO < level {
                let message = format!(
                    "images differ from the data by {measured:.4} per sample, but the noise level is {level}, on which \
                     lambda depends: give the root of the mean |noise|^2 of a sample, in the unit of the data"
                );
                raise(WarningKind::Noise, message);
            }
        }
        Ok(())
    }
}

/// Returns the lambda whose misfit is closest to 1, and its misfit. `misfit` returns |E x - d|^2 for the image of a
/// lambda, relative to the target; it grows with lambda.
///
/// # Errors
/// `InvalidArgument` if no lambda of the range reaches 1; errors of `misfit`.
pub(crate) fn lambda(level: f64, mut misfit: impl FnMut(f64) -> Result<f64>) -> Result<(f64, f64)> {
    // Points below and above the level: the logarithms of lambda and of its misfit.
    let (mut below, mut above): (Option<[f64; 2]>, Option<[f64; 2]>) = (None, None);
    let mut next = FIRST;
    while below.is_none() || above.is_none() {
        let value = misfit(next)?;
        if !(value > 0.0) {
            bail!(
                InvalidArgument,
                "an image fits the data exactly, so that they have no noise of level {level}: give lambda, or the \
                 noise level of the data"
            );
        }
        let point = [next.ln(), value.ln()];
        if point[1] <= 0.0 {
            if next >= RANGE[1] {
                bail!(
                    InvalidArgument,
                    "an image of zeros is within a noise level of {level} from the data: the level is too high; give \
                     the root of the mean |noise|^2 of a sample, in the unit of the data"
                );
            }
            below = Some(point);
            next *= STEP;
        } else {
            if next <= RANGE[0] {
                bail!(
                    InvalidArgument,
                    "with almost no prior the image still differs from the data by {:.2} times the distance that a \
                     noise level of {level} allows: the level is too low, or the iterations are too few",
                    value.sqrt()
                );
            }
            above = Some(point);
            next /= STEP;
        }
        // An endpoint of the range is not tried twice.
        next = next.clamp(RANGE[0], RANGE[1]);
    }
    let (Some(mut below), Some(mut above)) = (below, above) else { unreachable!("the loop sets both") };
    // False position; the weight of an endpoint that stays is halved (Illinois).
    let (mut weights, mut last) = ([1.0, 1.0], 0);
    let mut best = if -below[1] < above[1] { below } else { above };
    for _ in 0..MOST_SOLUTIONS {
        if best[1].abs() <= ACCURACY || above[0] - below[0] < LEAST_RATIO.ln() {
            break;
        }
        let [low, high] = [below[1] * weights[0], above[1] * weights[1]];
        let at = (below[0] * high - above[0] * low) / (high - low);
        let point = [at, misfit(at.exp())?.ln()];
        if point[1].abs() < best[1].abs() {
            best = point;
        }
        let side = if point[1] <= 0.0 { 1 } else { 2 };
        if side == 1 {
            below = point;
            weights = [1.0, if last == 1 { 0.5 * weights[1] } else { 1.0 }];
        } else {
            above = point;
            weights = [if last == 2 { 0.5 * weights[0] } else { 1.0 }, 1.0];
        }
        last = side;
    }
    Ok((best[0].exp(), best[1].exp()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_solutions_reach_the_level() {
        // From overfitting to underfitting: typical misfits, with a knee.
        for (floor, at) in [(0.9, 0.03), (0.98, 1.0), (0.7, 4.0), (0.95, 1e-5), (0.5, 300.0)] {
            let mut count = 0;
            let misfit = |lambda: f64| floor + (1.0 - floor) * (lambda / at) * (1.0 + lambda / at) / 2.0;
            let (result, reached) = lambda(1.0, |lambda| {
                count += 1;
                Ok(misfit(lambda))
            })
            .unwrap();
            assert!((reached / misfit(result) - 1.0).abs() < 1e-9);
            assert!(
                (misfit(result).ln()).abs() <= ACCURACY || (result / at).ln().abs() < LEAST_RATIO.ln(),
                "{floor} {at} {result}"
            );
            assert!(count <= 14, "{count} solutions for {floor} at {at}");
        }
    }

    #[test]
    fn a_level_that_is_not_reached_causes_a_warning() {
        use crate::base::warning::capture;
        let warnings = |floor: &MisfitFloor, reached: f64| capture(|| floor.warn(2.0, reached, 16).unwrap()).1;
        // The image fits all of the noise, and still differs from the data by 1.54 levels.
        let few = MisfitFloor { data: 1.54f64.powi(2) * 4.0 * 100.0 - 300.0, noise: 0.0, samples: 100 };
        let messages = warnings(&few, 1.0);
        assert!(messages.len() == 1 && messages[0].kind == WarningKind::Noise, "{messages:?}");
        assert!(
            messages[0].message.contains("1.54 times") && messages[0].message.contains("16 iterations"),
            "{messages:?}"
        );
        // Data at their level, reached and missed.
        let usual = MisfitFloor { data: 240.0, noise: 60.0, samples: 100 };
        assert_eq!(warnings(&usual, 1.0), []);
        assert!(warnings(&usual, 0.5)[0].message.contains("no lambda reaches"));
        assert!(warnings(&usual, 1.5)[0].message.contains("no lambda reaches"));
        // The level is reached, but the noise of the data is different.
        let other = MisfitFloor { data: 170.0, noise: 60.0, samples: 100 };
        assert!(warnings(&other, 1.0)[0].message.contains("by 1.6833 per sample"), "{:?}", warnings(&other, 1.0));
    }

    #[test]
    fn levels_that_do_not_fit_are_refused() {
        for (misfit, words) in [(2.25, "1.50 times"), (0.5, "image of zeros"), (0.0, "fits the data exactly")] {
            let error = lambda(3.0, |_| Ok(misfit)).unwrap_err();
            assert!(error.message().contains(words) && error.message().contains('3'), "{error}");
        }
        assert!(lambda(1.0, |_| bail!(Cancelled, "cancelled")).is_err());
    }
}
