//! The weight of a prior from the level of the noise, after the discrepancy principle (Morozov, Soviet Math. Dokl.
//! 7:414, 1966).
//!
//! Morozov's image is as far from the data as the noise is, r = |E x - d|^2 = N sigma^2. That takes coil maps and
//! object for
//! exact: what they miss is in r as well. So r is compared with that of a solution with next to no prior, r_0, which
//! has fitted all that can be fitted, and as much of the noise. How much of the noise is found by the same solution of
//! noise
//! alone: it takes a part g of the energy of any noise. The image sought has given most of that back, r = r_0 +
//! 3/4 g N sigma^2: the prior has suppressed noise, and not yet signal.

use crate::base::error::{bail, Result};
use crate::base::results::check_result;
use crate::base::warning::{raise, WarningKind};

/// lambda is sought between these, relative to the mean of the diagonal of E^H W E.
const RANGE: [f64; 2] = [1e-6, 1e3];
/// Where the search begins, and the factor by which it goes on until the level lies between two lambdas.
const FIRST: f64 = 0.1;
const STEP: f64 = 10.0;
/// The misfit's logarithm may be so far from that of the level.
const CLOSE: f64 = 5e-3;
/// Between two lambdas of so small a ratio none is sought.
const NARROW: f64 = 1.05;
/// Solutions between two lambdas, at most.
const MOST: usize = 12;

/// How much of the noise that a solution with next to no prior takes up is given back. Found on three phantoms and a
/// brain, 24 and 48 spokes, SNR 3 to 20, two priors, maps known and estimated (docs/method.md).
const BACK: f64 = 0.75;
/// The data's own noise may be this much of the level, or one over it, before the level or the model must be wrong.
const APART: f64 = 2.0;
/// The part of noise that images must leave in the data, so that the noise of the data can be measured.
const TELLING: f64 = 0.05;
/// Such a difference is told.
const TOLD: f64 = 1.1;

/// What solutions with next to no prior say of a scan.
pub(crate) struct Floor {
    /// |E x - d|^2 for the data and for noise of variance 1.
    pub data: f64,
    pub noise: f64,
    /// The samples of all coils and frames.
    pub samples: usize,
}

impl Floor {
    /// The lambda of these solutions.
    pub const LAMBDA: f64 = RANGE[0];

    /// The |E x - d|^2 that is sought.
    ///
    /// # Errors
    /// `InvalidArgument` where the level cannot be that of the data.
    pub fn sought(&self, level: f64) -> Result<f64> {
        let samples = self.samples as f64;
        let taken = (samples - self.noise).max(0.0);
        // Where the image can take up almost any noise, the data do not tell their own.
        if self.noise > TELLING * samples {
            let own = (self.data / self.noise).sqrt();
            if own > APART * level {
                bail!(
                    InvalidArgument,
                    "no image is nearer to the data than {own:.4} in a sample, and the noise level is {level}: the \
                     level is too low, or the coil maps or the field of view do not fit"
                );
            }
            if own * APART < level {
                bail!(
                    InvalidArgument,
                    "the data's own noise is {own:.4} in a sample, and the noise level is {level}: the level is too \
                     high; it is the root of the mean |noise|^2 of a sample, in the unit of the data"
                );
            }
        }
        Ok(self.data + BACK * taken * level * level)
    }

    /// Warns if the image of the lambda found is not as far from the data as noise of this level is. `reached` is its
    /// |E x - d|^2 over what is sought, `iterations` the number of iterations of each solution.
    pub fn warn(&self, level: f64, reached: f64, iterations: usize) -> Result<()> {
        let samples = self.samples as f64;
        let sought = self.sought(level)?;
        let ratio = (sought / samples).sqrt() * reached.sqrt() / level;
        check_result("distance of the image from the data", ratio)?;
        if ratio > TOLD || reached.sqrt() > TOLD || reached.sqrt() * TOLD < 1.0 {
            let message = format!(
                "the image stays {ratio:.2} times the noise level of {level} from the data, and no lambda reaches the \
                 level: {iterations} iterations are too few, or the level is too low, or the coil maps or the field of \
                 view do not fit; raise the iterations, or give lambda"
            );
            raise(WarningKind::Noise, message);
            return Ok(());
        }
        if self.noise > TELLING * samples {
            let own = (self.data / self.noise).sqrt();
            if own > TOLD * level || own * TOLD < level {
                let message = format!(
                    "images stay {own:.4} in a sample from the data, where the noise level is {level}: lambda is as \
                     good as that level; it is the root of the mean |noise|^2 of a sample, in the unit of the data"
                );
                raise(WarningKind::Noise, message);
            }
        }
        Ok(())
    }
}

/// Returns the lambda whose misfit is closest to 1, and its misfit. `misfit` is |E x - d|^2 for the image of a lambda,
/// relative to the sought one; it grows with lambda.
///
/// # Errors
/// `InvalidArgument` where no lambda of the range does; those of `misfit`.
pub(crate) fn lambda(level: f64, mut misfit: impl FnMut(f64) -> Result<f64>) -> Result<(f64, f64)> {
    // Below and above the level: the logarithms of lambda and of its misfit.
    let (mut below, mut above): (Option<[f64; 2]>, Option<[f64; 2]>) = (None, None);
    let mut next = FIRST;
    while below.is_none() || above.is_none() {
        let found = misfit(next)?;
        if !(found > 0.0) {
            bail!(
                InvalidArgument,
                "the data are met exactly, and have no noise of level {level}: give lambda, or the level of their noise"
            );
        }
        let point = [next.ln(), found.ln()];
        if point[1] <= 0.0 {
            if next >= RANGE[1] {
                bail!(
                    InvalidArgument,
                    "the data are within a noise level of {level} of no image at all: the level is the root of the \
                     mean |noise|^2 of a sample, in the unit of the data"
                );
            }
            below = Some(point);
            next *= STEP;
        } else {
            if next <= RANGE[0] {
                bail!(
                    InvalidArgument,
                    "with next to no prior the data are still {:.2} times as far from the image as a noise level of \
                     {level} allows: the level is too low, or the iterations are too few",
                    found.sqrt()
                );
            }
            above = Some(point);
            next /= STEP;
        }
        // The side that is known already is not gone to again.
        next = next.clamp(RANGE[0], RANGE[1]);
    }
    let (Some(mut below), Some(mut above)) = (below, above) else { unreachable!("both are known") };
    // False position, whose kept end is halved (Illinois).
    let (mut weights, mut last) = ([1.0, 1.0], 0);
    let mut best = if -below[1] < above[1] { below } else { above };
    for _ in 0..MOST {
        if best[1].abs() <= CLOSE || above[0] - below[0] < NARROW.ln() {
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
    fn the_level_is_met_with_few_solutions() {
        // From overfitted to missed: misfits as they are found, with a knee.
        for (floor, at) in [(0.9, 0.03), (0.98, 1.0), (0.7, 4.0), (0.95, 1e-5), (0.5, 300.0)] {
            let mut count = 0;
            let misfit = |lambda: f64| floor + (1.0 - floor) * (lambda / at) * (1.0 + lambda / at) / 2.0;
            let (found, reached) = lambda(1.0, |lambda| {
                count += 1;
                Ok(misfit(lambda))
            })
            .unwrap();
            assert!((reached / misfit(found) - 1.0).abs() < 1e-9);
            assert!(
                (misfit(found).ln()).abs() <= CLOSE || (found / at).ln().abs() < NARROW.ln(),
                "{floor} {at} {found}"
            );
            assert!(count <= 14, "{count} solutions for {floor} at {at}");
        }
    }

    #[test]
    fn a_level_that_is_not_reached_is_told() {
        use crate::base::warning::capture;
        let warnings = |floor: &Floor, reached: f64| capture(|| floor.warn(2.0, reached, 16).unwrap()).1;
        // The image takes up all of the noise, and the data stay 1.54 levels away.
        let few = Floor { data: 1.54f64.powi(2) * 4.0 * 100.0 - 300.0, noise: 0.0, samples: 100 };
        let told = warnings(&few, 1.0);
        assert!(told.len() == 1 && told[0].kind == WarningKind::Noise, "{told:?}");
        assert!(told[0].message.contains("1.54 times") && told[0].message.contains("16 iterations"), "{told:?}");
        // Data at their level, reached and missed.
        let usual = Floor { data: 240.0, noise: 60.0, samples: 100 };
        assert_eq!(warnings(&usual, 1.0), []);
        assert!(warnings(&usual, 0.5)[0].message.contains("no lambda reaches"));
        assert!(warnings(&usual, 1.5)[0].message.contains("no lambda reaches"));
        // Reached, but the data's own noise is not that of the level.
        let other = Floor { data: 170.0, noise: 60.0, samples: 100 };
        assert!(warnings(&other, 1.0)[0].message.contains("images stay 1.6833"), "{:?}", warnings(&other, 1.0));
    }

    #[test]
    fn levels_that_do_not_fit_are_refused() {
        for (misfit, words) in [(2.25, "1.50 times"), (0.5, "no image at all"), (0.0, "met exactly")] {
            let error = lambda(3.0, |_| Ok(misfit)).unwrap_err();
            assert!(error.message().contains(words) && error.message().contains('3'), "{error}");
        }
        assert!(lambda(1.0, |_| bail!(Cancelled, "cancelled")).is_err());
    }
}
