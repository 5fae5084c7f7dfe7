//! The unmeasured side of k-space, its symmetric centre, and the density weights of the samples.

use crate::base::error::{bail, try_collect, try_vec, Result};
use crate::base::real::Real;
use crate::base::warning::{raise, WarningKind};
use crate::reconstruction::coverage;
use std::f64::consts::PI;

/// Name of the computation in messages.
pub(super) const WHAT: &str = "partial Fourier";
/// An axis is complete if its two sides differ by less than this number of samples. The sides of a complete Cartesian
/// scan with an even number of lines differ by 1.
const LEAST_DIFFERENCE: f64 = 1.5;
/// An axis is complete if its two sides differ by less than this share of the longer side.
const LEAST_SHARE: f64 = 0.04;
/// Smallest extent of the short side in samples. The symmetric centre then has 9 lines of a Cartesian scan.
const LEAST_EXTENT: f64 = 4.0;
/// Extent of the short side in samples, below which a warning is raised.
const NARROW_EXTENT: f64 = 7.0;
/// Distance of a coordinate from a point of the Cartesian grid in samples, below which it is at this point.
const GRID_ROUNDING: f64 = 1e-3;
/// Tolerated share of unmeasured points of a Cartesian grid.
const TOLERATED_POINTS: f64 = 0.01;
/// Tolerated share of gaps in the centre of k-space of other trajectories.
const TOLERATED_GAPS: f64 = 0.2;

/// The axis of which one side is only measured near the centre. Positions are in samples of a Cartesian scan (units of
/// 1/FOV), positive on the complete side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PartialAxis {
    /// Number of the axis.
    pub axis: usize,
    /// Measured extent below and above k = 0 in samples.
    pub extent: [f64; 2],
    /// Number of voxels along the axis.
    n: usize,
}

impl PartialAxis {
    /// Finds the axis from the coordinates.
    ///
    /// # Errors
    /// - `InvalidArgument` if both sides of all axes are complete, and if the symmetric centre is too narrow.
    /// - `Unsupported` if several axes have an unmeasured side.
    pub fn of<T: Real>(k: &[&[T]], dims: &[usize]) -> Result<PartialAxis> {
        let mut partial = Vec::new();
        let mut extents = Vec::new();
        for (axis, (k, &n)) in k.iter().zip(dims).enumerate().filter(|(_, (_, &n))| n > 1) {
            let ends = k.iter().map(|k| k.wide() * n as f64);
            let [low, high] = ends.fold([0f64; 2], |[low, high], u| [low.min(u), high.max(u)]);
            let found = PartialAxis { axis, extent: [0.0 - low, high], n };
            extents.push(found.text());
            if found.long() - found.short() >= LEAST_DIFFERENCE.max(LEAST_SHARE * found.long()) {
                partial.push(found);
            }
        }
        let found = match partial[..] {
            [found] => found,
            [] => bail!(
                InvalidArgument,
                "no side of k-space is missing ({}): reconstruct these data without partial Fourier",
                extents.join(", ")
            ),
            _ => bail!(
                Unsupported,
                "k-space has a missing side along {} axes ({}), but one is supported: cut all axes except one to \
                 their symmetric part, or reconstruct without partial Fourier",
                partial.len(),
                partial.iter().map(PartialAxis::text).collect::<Vec<_>>().join(", ")
            ),
        };
        if found.short() < LEAST_EXTENT - GRID_ROUNDING {
            bail!(
                InvalidArgument,
                "the symmetric centre of k-space is too narrow for the phase of the image ({}): partial Fourier needs \
                 at least {LEAST_EXTENT:.0} samples on the short side; reconstruct without it",
                found.text()
            );
        }
        Ok(found)
    }

    /// Returns the measured extent as text.
    fn text(&self) -> String {
        let [below, above] = self.extent;
        format!("{}: {below:.1} samples below and {above:.1} above k = 0", ["x", "y", "z"][self.axis])
    }

    /// Returns the extent of the short side.
    pub fn short(&self) -> f64 {
        self.extent[0].min(self.extent[1])
    }

    /// Returns the extent of the complete side.
    fn long(&self) -> f64 {
        self.extent[0].max(self.extent[1])
    }

    /// Returns the position of a coordinate.
    fn position<T: Real>(&self, k: T) -> f64 {
        let position = k.wide() * self.n as f64;
        if self.extent[0] > self.extent[1] {
            -position
        } else {
            position
        }
    }

    /// Returns the Hann filter of a sample, which selects the symmetric centre: 1 at k = 0, and 0 one sample beyond the
    /// short side.
    pub fn centre_filter<T: Real>(&self, k: T) -> f64 {
        let relative = self.position(k).abs() / (self.short() + 1.0);
        if relative < 1.0 {
            0.5 + 0.5 * (PI * relative).cos()
        } else {
            0.0
        }
    }

    /// Returns the weight w of a sample for homodyne detection, with w(u) + w(-u) = 2: a ramp over the symmetric
    /// centre, and 2 beyond it. On a Cartesian grid k = -0.5 and k = 0.5 are the same point, which has the weight 1.
    pub fn homodyne_weight<T: Real>(&self, k: T, is_cartesian: bool) -> f64 {
        let position = self.position(k);
        if is_cartesian && 2.0 * position.abs() > self.n as f64 - GRID_ROUNDING {
            return 1.0;
        }
        (1.0 + position / (self.short() + 1.0)).clamp(0.0, 2.0)
    }

    /// Warns if the symmetric centre is narrow.
    pub fn warn_if_narrow(&self) {
        if self.short() < NARROW_EXTENT - GRID_ROUNDING {
            let message = format!(
                "the symmetric centre of k-space is narrow ({}): the phase of the image is correct only if it varies \
                 slowly, over {:.0} voxels or more; measure more samples on the short side",
                self.text(),
                self.n as f64 / (self.short() + 1.0)
            );
            raise(WarningKind::PartialFourier, message);
        }
    }
}

/// Returns the index in the image's grid of each axis of a sample; `None` if it is between grid points. k = 0.5 is the
/// point of k = -0.5.
fn grid_point<T: Real>(k: &[&[T]], dims: &[usize], m: usize) -> Option<usize> {
    k.iter().zip(dims).rev().try_fold(0, |point, (k, &n)| {
        if n == 1 {
            return Some(point);
        }
        let u = k[m].wide() * n as f64;
        let index = u.round() as isize + (n / 2) as isize;
        ((u - u.round()).abs() <= GRID_ROUNDING).then_some(point * n + index.rem_euclid(n as isize) as usize)
    })
}

/// Returns the density weights of samples on the points of the image's grid, with which the weighted adjoint is the
/// inverse discrete Fourier transform; `None` if a sample is between grid points. A point that was measured c times has
/// the weight 1 / (voxels c) each time.
///
/// # Errors
/// `InvalidArgument` if points of the measured part are missing, as in parallel imaging.
pub(super) fn cartesian_weights<T: Real>(k: &[&[T]], dims: &[usize], partial: &PartialAxis) -> Result<Option<Vec<T>>> {
    let (voxels, samples) = (dims.iter().product::<usize>(), k[0].len());
    if (0..samples).any(|m| grid_point(k, dims, m).is_none()) {
        return Ok(None);
    }
    let point = |m: usize| grid_point(k, dims, m).unwrap_or(0);
    let mut counts = try_vec(voxels, 0u32, WHAT)?;
    (0..samples).for_each(|m| counts[point(m)] = counts[point(m)].saturating_add(1));
    let missing = missing_share(&counts, k, dims, partial);
    if missing > TOLERATED_POINTS {
        bail!(
            InvalidArgument,
            "{:.0} % of the points of the Cartesian grid in the measured part of k-space are missing, as in parallel \
             imaging, which partial Fourier cannot fill: reconstruct iteratively with coil maps, without partial \
             Fourier",
            100.0 * missing
        );
    }
    let weight = |m: usize| T::of(1.0 / (voxels as f64 * counts[point(m)] as f64));
    try_collect(samples, WHAT, (0..samples).map(weight)).map(Some)
}

/// Returns the share of grid points without a sample, within the measured part of the ellipsoid that the samples span:
/// a scan may omit the corners of k-space.
fn missing_share<T: Real>(counts: &[u32], k: &[&[T]], dims: &[usize], partial: &PartialAxis) -> f64 {
    let reach: Vec<f64> = k
        .iter()
        .zip(dims)
        .map(|(k, &n)| 0.5 + k.iter().fold(0.0, |most: f64, k| most.max(k.wide().abs())) * n as f64)
        .collect();
    let (mut inside, mut missing) = (0usize, 0usize);
    for (i, &count) in counts.iter().enumerate() {
        let (mut rest, mut radius, mut is_measured_side) = (i, 0.0, true);
        for (axis, &n) in dims.iter().enumerate() {
            let u = (rest % n) as f64 - (n / 2) as f64;
            rest /= n;
            if n > 1 {
                radius += (u / reach[axis]).powi(2);
                let [below, above] = partial.extent;
                is_measured_side &= axis != partial.axis || (-below - 0.5..=above + 0.5).contains(&u);
            }
        }
        if radius <= 1.0 && is_measured_side {
            inside += 1;
            missing += usize::from(count == 0);
        }
    }
    missing as f64 / inside.max(1) as f64
}

/// Warns of gaps between the samples of a trajectory that is not Cartesian.
pub(super) fn warn_of_gaps<T: Real>(k: &[&[T]], dims: &[usize]) -> Result<()> {
    let missing = coverage::missing_share(k, dims)?;
    if missing > TOLERATED_GAPS {
        let message = format!(
            "in {:.0} % of the centre of k-space, gaps between the samples are wider than 1/FOV: the image is aliased, \
             which partial Fourier cannot correct; measure more shots, or reconstruct iteratively with coil maps",
            100.0 * missing
        );
        raise(WarningKind::PartialFourier, message);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;
    use crate::simulation::trajectory::Trajectory;

    /// Returns the coordinates of a Cartesian grid within ranges of indices.
    fn grid(dims: &[usize], ranges: &[std::ops::RangeInclusive<isize>]) -> Vec<Vec<f64>> {
        let all = Trajectory::cartesian(dims).unwrap();
        let index = |axis: usize, m: usize| (all.axis(axis)[m] * dims[axis] as f64).round() as isize;
        let is_inside = |&m: &usize| (0..dims.len()).all(|axis| ranges[axis].contains(&index(axis, m)));
        let inside: Vec<usize> = (0..all.samples()).filter(is_inside).collect();
        (0..dims.len()).map(|axis| inside.iter().map(|&m| all.axis(axis)[m]).collect()).collect()
    }

    fn axes(k: &[Vec<f64>]) -> Vec<&[f64]> {
        k.iter().map(|k| &k[..]).collect()
    }

    #[test]
    fn the_partial_axis_is_found_on_either_side() {
        let dims = [32usize, 24, 20];
        for axis in 0..3 {
            for is_above_short in [true, false] {
                let all = |n: usize| -(n as isize / 2)..=n as isize / 2 - 1;
                let mut ranges = dims.map(all);
                let half = dims[axis] as isize / 2;
                ranges[axis] = if is_above_short { -half..=5 } else { -5..=half - 1 };
                let k = grid(&dims, &ranges);
                let found = PartialAxis::of(&axes(&k), &dims).unwrap();
                assert_eq!((found.axis, found.short()), (axis, 5.0));
                let weights = cartesian_weights(&axes(&k), &dims, &found).unwrap().unwrap();
                assert!(weights.iter().all(|w| w * 32.0 * 24.0 * 20.0 == 1.0));
                // Weights of opposite samples have the sum 2.
                for u in [0.0f64, 1.0, 3.5, 5.0, 6.0, 9.0] {
                    let of = |u: f64| found.homodyne_weight(u / dims[axis] as f64, true);
                    assert!((of(u) + of(-u) - 2.0).abs() < 1e-12);
                    let filter = |u: f64| found.centre_filter(u / dims[axis] as f64);
                    assert!(filter(u) == filter(-u) && (filter(u) < 1e-12) == (u >= 6.0));
                }
                assert_eq!(found.homodyne_weight(-0.5, true), 1.0);
                assert_eq!(found.homodyne_weight(if is_above_short { -0.5 } else { 0.5 }, false), 2.0);
            }
        }
    }

    #[test]
    fn other_samplings_are_errors() {
        let dims = [32usize, 32];
        let check = |x: std::ops::RangeInclusive<isize>, y, kind, words: &str| {
            let error = PartialAxis::of(&axes(&grid(&dims, &[x, y])), &dims).unwrap_err();
            assert!(error.kind() == kind && error.message().contains(words), "{error}");
        };
        use ErrorKind::{InvalidArgument, Unsupported};
        check(-16..=15, -16..=15, InvalidArgument, "no side of k-space is missing (x: 16.0 samples below and 15.0");
        check(-10..=9, -12..=11, InvalidArgument, "no side");
        check(-16..=5, -5..=15, Unsupported, "along 2 axes (x: 16.0 samples below and 5.0 above k = 0, y: 5.0");
        check(-16..=15, -16..=3, InvalidArgument, "too narrow");
        check(-16..=15, 1..=15, InvalidArgument, "y: 0.0 samples below");
        // Every second line: 11 of the 23 lines within the ellipsoid are missing.
        let mut k = grid(&dims, &[-16..=15, -16..=6]);
        let keep: Vec<bool> = k[1].iter().map(|k| (k * 32.0) as isize % 2 == 0).collect();
        for axis in &mut k {
            let mut keep = keep.iter();
            axis.retain(|_| *keep.next().unwrap());
        }
        let partial = PartialAxis::of(&axes(&k), &dims).unwrap();
        let error = cartesian_weights(&axes(&k), &dims, &partial).unwrap_err();
        assert!(error.message().contains("parallel imaging") && error.message().contains("48 %"), "{error}");
    }

    #[test]
    fn repeated_samples_share_a_weight_and_samples_between_points_have_none() {
        let dims = [16usize, 16];
        let mut k = grid(&dims, &[-8..=7, -8..=4]);
        for axis in &mut k {
            axis.push(axis[3]);
        }
        let partial = PartialAxis::of(&axes(&k), &dims).unwrap();
        let weights = cartesian_weights(&axes(&k), &dims, &partial).unwrap().unwrap();
        let last = weights.len() - 1;
        assert_eq!([weights[2], weights[3], weights[last]].map(|w| w * 256.0), [1.0, 0.5, 0.5]);
        k[0][5] += 0.25 / 16.0;
        assert!(cartesian_weights(&axes(&k), &dims, &partial).unwrap().is_none());
    }
}
