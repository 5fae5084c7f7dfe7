//! Gaps in the sampling of the centre of k-space, measured from the trajectory alone.
//!
//! Samples at most 1/FOV apart determine an image; wider gaps alias. The measure places test points over the centre,
//! four per 1/FOV along each axis. A test point is covered if a sample is within 3/4 of 1/FOV along every axis. A gap
//! between lines is thus detected if it is wider than 1.5/FOV: a Cartesian scan without one line has a gap of 2/FOV.
//!
//! The threshold lies between the two because coil maps taper the centre to 0 at its edge. In-vivo radial data of 24
//! spokes, with gaps of up to 1.6/FOV at the edge, gave better maps from the whole centre than from a narrower one.
//!
//! Only the sampled extent is tested: the end of the sampling limits the resolution and is not a gap.

use crate::base::error::{try_collect, try_vec, Result};
use crate::base::interrupt;
use crate::base::real::Real;
use crate::base::sizes::product;

/// Test points per 1/FOV.
const STEPS: usize = 4;
/// Distance along an axis, in test points, within which a sample covers a test point.
const REACH: usize = 3;
/// Distance if gaps wider than 1/FOV count.
pub(crate) const STRICT_REACH: usize = 2;
/// Tolerated share of uncovered test points, for irregular trajectories. One missing line of 24 has 2 %.
const TOLERATED: f64 = 0.005;
/// Width of the centre that [`missing_share`] tests, in units of 1/FOV.
const CENTRE: usize = 64;

/// The sampling of the centre of k-space.
pub(crate) struct Coverage {
    /// Width of the sampled extent along each axis in units of 1/FOV, at most that of the centre, plus 1.
    pub extent: Vec<f64>,
    /// Diameter of the largest centred ball without gaps, in units of 1/FOV; `None` if the whole centre has no gaps.
    pub complete: Option<usize>,
    /// Share of test points that no sample covers.
    pub missing: f64,
}

/// Test points along one axis.
struct TestAxis {
    /// Sampled extent below and above 0, in units of 1/FOV.
    extent: [f64; 2],
    /// Position of k = 0 among the points.
    origin: usize,
    /// Number of points, with a margin of REACH at both ends.
    points: usize,
}

impl TestAxis {
    /// Places the points over a sampled extent.
    fn new(extent: [f64; 2]) -> TestAxis {
        let [below, above] = extent.map(|width| (width * STEPS as f64 + 1e-3) as usize);
        TestAxis { extent, origin: below + REACH, points: below + above + 1 + 2 * REACH }
    }

    /// Returns the test point next to a position in units of 1/FOV.
    fn nearest(&self, position: f64) -> Option<usize> {
        let point = (position * STEPS as f64).round() + self.origin as f64;
        (point >= 0.0 && point < self.points as f64).then_some(point as usize)
    }

    /// Returns the position of a test point in units of 1/FOV, and relative to the extent.
    fn position(&self, point: usize) -> (f64, f64) {
        let position = (point as f64 - self.origin as f64) / STEPS as f64;
        let extent = self.extent[usize::from(position > 0.0)];
        (position, if position == 0.0 { 0.0 } else { position / extent })
    }
}

/// Returns the width of the centre that is tested. A wider centre would take memory without more information.
fn tested_width(ndim: usize, width: usize) -> usize {
    width.min(if ndim < 3 { 512 } else { 64 })
}

impl Coverage {
    /// Measures the sampling of the centre of k-space, a ball of diameter `width` in units of 1/FOV.
    ///
    /// `k` is in cycles per voxel of an image of `dims` voxels. `what` is the name of the step in the message of an
    /// interruption.
    pub fn new<T: Real>(k: &[&[T]], dims: &[usize], width: usize, what: &'static str) -> Result<Coverage> {
        Self::within(k, dims, width, REACH, what)
    }

    /// Measures the sampling like [`Coverage::new`], with `reach` in place of [`REACH`]. `reach` must not exceed it.
    pub fn within<T: Real>(
        k: &[&[T]],
        dims: &[usize],
        width: usize,
        reach: usize,
        what: &'static str,
    ) -> Result<Coverage> {
        let radius = 0.5 * tested_width(dims.len(), width) as f64;
        let position = |a: usize, m: usize| k[a][m].wide() * dims[a] as f64;
        let samples = k.first().map_or(0, |k| k.len());
        let axes: Vec<TestAxis> = (0..dims.len())
            .map(|a| {
                let ends = (0..samples).map(|m| position(a, m));
                let [low, high] = ends.fold([0f64; 2], |[low, high], u| [low.min(u), high.max(u)]);
                TestAxis::new([(-low).min(radius), high.min(radius)])
            })
            .collect();

        let points = product(&axes.iter().map(|axis| axis.points).collect::<Vec<_>>());
        let mut covered = try_vec(points, 0u8, "the test points of k-space")?;
        for m in 0..samples {
            let (mut row, mut stride) = (Some(0), axes[0].points);
            for (a, axis) in axes.iter().enumerate().skip(1) {
                row = row.zip(axis.nearest(position(a, m))).map(|(row, i)| row + i * stride);
                stride *= axis.points;
            }
            if let Some((row, i)) = row.zip(axes[0].nearest(position(0, m))) {
                // Points along the first axis. `widen` adds those along the other axes.
                covered[row + i.saturating_sub(reach)..row + axes[0].points.min(i + reach + 1)].fill(1);
            }
        }
        widen(&mut covered, &axes, reach, what)?;

        // Number of tested and of uncovered points by diameter.
        let diameters = (2.0 * radius).ceil() as usize + 1;
        let mut tested = try_vec(diameters, 0u64, "the test points of k-space")?;
        let mut uncovered = try_vec(diameters, 0u64, "the test points of k-space")?;
        let squares = |axis: &TestAxis, point: usize| {
            let (position, of_extent) = axis.position(point);
            (position * position, of_extent * of_extent)
        };
        let first = axes[0].points;
        let along = try_collect(first, "the test points of k-space", (0..first).map(|i| squares(&axes[0], i)))?;
        for (i, row) in covered.chunks_exact(first).enumerate() {
            let (mut rest, mut square, mut relative) = (i, 0.0, 0.0);
            for axis in &axes[1..] {
                let own = squares(axis, rest % axis.points);
                (square, relative) = (square + own.0, relative + own.1);
                rest /= axis.points;
            }
            if relative > 1.0 + 1e-9 || square >= radius * radius {
                continue;
            }
            for (&covered, own) in row.iter().zip(&along) {
                let (square, relative) = (square + own.0, relative + own.1);
                if relative <= 1.0 + 1e-9 && square < radius * radius {
                    let diameter = (2.0 * square.sqrt()).ceil() as usize;
                    tested[diameter] += 1;
                    uncovered[diameter] += u64::from(covered == 0);
                }
            }
        }
        let (mut all, mut gaps, mut complete) = (0, 0, 0);
        for diameter in 0..diameters {
            all += tested[diameter];
            gaps += uncovered[diameter];
            if gaps as f64 <= TOLERATED * all as f64 {
                complete = diameter;
            }
        }
        let missing = gaps as f64 / all.max(1) as f64;
        Ok(Coverage {
            extent: axes.iter().map(|axis| axis.extent[0] + axis.extent[1] + 1.0).collect(),
            complete: (missing > TOLERATED).then_some(complete),
            missing,
        })
    }
}

/// Returns the bytes that [`Coverage::new`] allocates.
pub(crate) fn bytes(dims: &[usize], width: usize) -> usize {
    let width = tested_width(dims.len(), width);
    let along = |n: &usize| STEPS * width.min(*n) + 2 + 2 * REACH;
    let points: Vec<usize> = dims.iter().map(along).collect();
    let (largest_row, first) = (product(&points[..points.len() - 1]), points[0] * size_of::<[f64; 2]>());
    product(&points).saturating_add(largest_row).saturating_add(first + 2 * (width + 2) * size_of::<u64>())
}

/// Marks the points within `reach` of a marked point along every axis except the first.
fn widen(covered: &mut [u8], axes: &[TestAxis], reach: usize, what: &'static str) -> Result<()> {
    /// Mark of a point within reach of a marked point before it.
    const WITHIN: u8 = 2;
    let largest = covered.len() / axes.last().map_or(1, |axis| axis.points);
    // Number of further rows within reach of the last marked point, for each point of a row.
    let mut left = try_vec(largest, 0u8, "the test points of k-space")?;
    let mut stride = axes[0].points;
    for axis in &axes[1..] {
        interrupt::check(what)?;
        let left = &mut left[..stride];
        let step = |point: u8, left: &mut u8| {
            *left = if point == 1 { reach as u8 + 1 } else { left.saturating_sub(1) };
            *left > 0
        };
        for block in covered.chunks_exact_mut(stride * axis.points) {
            left.fill(0);
            for row in block.chunks_exact_mut(stride) {
                for (point, left) in row.iter_mut().zip(&mut *left) {
                    let is_within = step(*point, left);
                    *point = if is_within && *point == 0 { WITHIN } else { *point };
                }
            }
            left.fill(0);
            for row in block.chunks_exact_mut(stride).rev() {
                for (point, left) in row.iter_mut().zip(&mut *left) {
                    *point = u8::from(step(*point, left) | (*point == WITHIN));
                }
            }
        }
        stride *= axis.points;
    }
    Ok(())
}

/// Returns the missing share of the centre of k-space: of the sampled part of the central 64 samples along each axis,
/// the share that is further than 3/4 of 1/FOV from every sample.
///
/// It is 0 for complete sampling, and 1/8 for every second line of a Cartesian scan. `k` is in cycles per voxel of an
/// image of `dims` voxels.
///
/// # Errors
/// `OutOfHostMemory`.
pub fn missing_share<T: Real>(k: &[&[T]], dims: &[usize]) -> Result<f64> {
    Coverage::new(k, dims, CENTRE, "the search for gaps").map(|coverage| coverage.missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the samples of a Cartesian grid that `keep` selects.
    fn grid(dims: &[usize], keep: impl Fn(&[isize]) -> bool) -> Vec<Vec<f64>> {
        let mut k = vec![Vec::new(); dims.len()];
        for i in 0..dims.iter().product::<usize>() {
            let mut rest = i;
            let u: Vec<isize> = dims
                .iter()
                .map(|&n| {
                    let at = (rest % n) as isize - (n / 2) as isize;
                    rest /= n;
                    at
                })
                .collect();
            if keep(&u) {
                (0..dims.len()).for_each(|a| k[a].push(u[a] as f64 / dims[a] as f64));
            }
        }
        k
    }

    fn measure(k: &[Vec<f64>], dims: &[usize], width: usize) -> Coverage {
        let k: Vec<&[f64]> = k.iter().map(|k| &k[..]).collect();
        Coverage::new(&k, dims, width, "a test").unwrap()
    }

    #[test]
    fn whole_grids_of_any_size_are_complete() {
        for dims in [
            vec![1usize, 1],
            vec![2, 1],
            vec![2, 3],
            vec![5, 4],
            vec![33, 40],
            vec![40, 1],
            vec![1, 1, 1],
            vec![20, 3, 2],
            vec![30, 28, 26],
        ] {
            let k = grid(&dims, |_| true);
            for width in [1, 2, 3, 8, 24, 64] {
                let coverage = measure(&k, &dims, width);
                assert_eq!((coverage.complete, coverage.missing), (None, 0.0), "{dims:?} {width}");
            }
            // Also beside the grid.
            for shift in [0.1, 0.25, 0.5, 0.77] {
                let shifted: Vec<Vec<f64>> =
                    k.iter().zip(&dims).map(|(k, &n)| k.iter().map(|k| k + shift / n as f64).collect()).collect();
                assert_eq!(measure(&shifted, &dims, 24).complete, None, "{dims:?} shifted by {shift}");
            }
        }
    }

    #[test]
    fn missing_lines_are_found_at_any_position() {
        for factor in [2isize, 3, 4] {
            for offset in 0..factor {
                for (dims, axes) in [(vec![48usize, 40], 0..2), (vec![20, 18, 28], 2..3)] {
                    for axis in axes {
                        let k = grid(&dims, |u| (u[axis] - offset).rem_euclid(factor) == 0);
                        let coverage = measure(&k, &dims, 24);
                        assert!(
                            coverage.complete.is_some_and(|w| w < 4),
                            "{factor} {offset} {axis} {:?}",
                            coverage.complete
                        );
                        let share = 1.0 - 1.5 / factor as f64;
                        assert!(coverage.missing > 0.4 * share, "{factor} {offset} {axis}: {}", coverage.missing);
                        // With 12 complete lines in the centre.
                        let k =
                            grid(&dims, |u| (u[axis] - offset).rem_euclid(factor) == 0 || (-6..6).contains(&u[axis]));
                        let complete = measure(&k, &dims, 24).complete.unwrap();
                        assert!((10..=15).contains(&complete), "{factor} {offset} {axis}: {complete}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_end_of_the_sampling_is_not_a_gap() {
        let k = grid(&[48, 40], |u| (-4..12).contains(&u[1]) && u[0] < 9);
        let coverage = measure(&k, &[48, 40], 24);
        assert_eq!(coverage.complete, None);
        assert_eq!(coverage.extent, [12.0 + 8.0 + 1.0, 4.0 + 11.0 + 1.0]);
        // Without the centre, no ball is complete.
        let k = grid(&[48, 40], |u| u[1] > 2);
        assert_eq!(measure(&k, &[48, 40], 24).complete, Some(0));
    }

    #[test]
    fn spokes_are_complete_up_to_their_spacing() {
        for spokes in [8usize, 13, 16, 40] {
            let angle = |p: usize| std::f64::consts::PI * p as f64 / spokes as f64;
            let at = |f: fn(f64) -> f64| -> Vec<f64> {
                (0..spokes).flat_map(|p| (-64..64).map(move |i| i as f64 / 128.0 * f(angle(p)))).collect()
            };
            let complete = measure(&[at(f64::cos), at(f64::sin)], &[64, 64], 24).complete;
            // Spokes are 1.5/FOV apart at this diameter.
            let expected = 3.0 * spokes as f64 / std::f64::consts::PI;
            match complete {
                None => assert!(expected > 20.0, "{spokes}"),
                Some(w) => assert!((w as f64 - expected).abs() < 0.5 * expected, "{spokes}: {w}, {expected}"),
            }
        }
    }

    #[test]
    fn the_estimated_bytes_are_sufficient() {
        for (dims, width) in [(vec![64usize, 48], 24), (vec![20, 1], 24), (vec![30, 30, 30], 40), (vec![2, 2, 2], 24)] {
            let k = grid(&dims, |_| true);
            let coverage = measure(&k, &dims, width);
            let axes: Vec<f64> = coverage.extent.iter().map(|e| (e - 1.0) * STEPS as f64 + 2.0 + 6.0).collect();
            assert!(axes.iter().product::<f64>() <= bytes(&dims, width) as f64, "{dims:?}");
        }
    }
}
