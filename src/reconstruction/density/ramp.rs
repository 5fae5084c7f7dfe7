//! Ramp weights |k|^(d-1), and the check whether they compensate the density of a trajectory.
//!
//! They do if samples are spaced evenly along lines through the centre, or along spirals whose radius grows evenly.
//! Every shell of radii then has the same number of samples, even for few spokes. Both are recognised from the
//! coordinates in the order of acquisition. Neighbours differ in radius by the same step, and the number of samples
//! within |k| is proportional to |k|.
//!
//! Exactly straight spokes in a plane are also weighted by the angle between their neighbours, as golden-angle spokes
//! are not spread evenly.

use crate::base::error::{bail, try_collect, try_reserve, try_vec, ErrorKind, Result};
use crate::base::real::Real;
use crate::reconstruction::spokes::{sum_deficit, Spokes};

/// Coordinate below which a sample is at 0, and distance below which coordinates are equal.
const ROUNDING: f64 = 1e-6;
/// Maximum number of partitions of a stack.
const MOST_PARTITIONS: usize = 4096;
/// Largest deviation of the radii from an even distribution, relative to the reach of k.
///
/// In an even distribution, a fraction of the samples lies within the same fraction of the reach. PROPELLER blades and
/// spirals of variable density deviate by more; spokes with a gradient delay of one sample pass.
const MOST_DEVIATION: f64 = 0.06;
/// Largest deviation near the centre, where images have their energy, relative to the Nyquist distance.
const MOST_CENTRAL_DEVIATION: f64 = 0.25;
/// Radius of the centre in Nyquist distances; it is at most half of the reach.
const CENTRE: f64 = 12.0;

/// Returns |k|^(d-1), or in each partition of a stack |k| times the partition's share of k-space, up to a factor.
pub(super) fn ramp<T: Real>(k: &[&[T]], dims: &[usize]) -> Result<Vec<f64>> {
    // Axes without encoding do not count: a single slice is 2D.
    let axes: Vec<usize> = (0..k.len()).filter(|&a| k[a].iter().any(|k| k.wide().abs() > ROUNDING)).collect();
    let samples = k[0].len();
    let weights = match axes[..] {
        [] | [_] => Some(try_vec(samples, 1.0, "the density weights")?),
        [x, y] => match spokes(&[k[x], k[y]], &[dims[x], dims[y]])? {
            None => SampleRadii::of(k, dims, &axes)?.lines()?,
            weights => weights,
        },
        _ => match stack(k, dims, &axes)? {
            None => SampleRadii::of(k, dims, &axes)?.ball()?,
            weights => weights,
        },
    };
    let Some(weights) = weights else {
        bail!(
            InvalidArgument,
            "ramp weights, |k|^(d-1), require samples spaced evenly along lines through the centre of k-space or \
             along spirals whose radius grows evenly, or stacks of either; these {samples} samples, in the order of \
             acquisition, are not: use Pipe-Menon weights (pipe-menon)"
        );
    };
    Ok(weights)
}

/// Returns the areas of the samples of spokes at any angles; `None` if the samples are not exactly on spokes.
fn spokes<T: Real>(k: &[&[T]], dims: &[usize]) -> Result<Option<Vec<f64>>> {
    match Spokes::of(k, dims) {
        Ok(spokes) => {
            let area = |m: usize| spokes.area(m / spokes.readout, m % spokes.readout);
            try_collect(k[0].len(), "the density weights", (0..k[0].len()).map(area)).map(Some)
        }
        Err(e) if e.kind() == ErrorKind::InvalidArgument => Ok(None),
        Err(e) => Err(e),
    }
}

/// Returns the weights of a stack along one of the axes, usually the last; `None` if the samples are not a stack.
fn stack<T: Real>(k: &[&[T]], dims: &[usize], axes: &[usize]) -> Result<Option<Vec<f64>>> {
    for &normal in axes.iter().rev() {
        let plane: Vec<usize> = axes.iter().copied().filter(|&a| a != normal).collect();
        if let Some(partitions) = Partitions::of(k[normal])? {
            let weights = SampleRadii::of(k, dims, &plane)?.stack(&partitions)?;
            if weights.is_some() {
                return Ok(weights);
            }
        }
    }
    Ok(None)
}

/// Radii of the samples in the order of acquisition.
struct SampleRadii {
    radii: Vec<f64>,
    /// Change of the radius from one sample to the next; `None` if it is uneven.
    step: Option<f64>,
    /// Distance between samples that the image's size requires.
    nyquist: f64,
}

impl SampleRadii {
    /// Computes the radii of samples from their coordinates on `axes`.
    fn of<T: Real>(k: &[&[T]], dims: &[usize], axes: &[usize]) -> Result<Self> {
        let radius = |m: usize| axes.iter().map(|&a| k[a][m].wide().powi(2)).sum::<f64>().sqrt();
        let radii = try_collect(k[0].len(), "the density weights", (0..k[0].len()).map(radius))?;
        let n = axes.iter().map(|&a| dims[a]).fold(1, usize::max);
        Ok(SampleRadii { step: even_step(&radii)?, radii, nyquist: 1.0 / n as f64 })
    }

    /// Returns the distribution of each group of samples, numbered by `group`; `None` unless all groups are spread
    /// evenly over the radii.
    fn even_radii(&self, groups: usize, group: impl Fn(usize) -> usize) -> Result<Option<Vec<EvenRadii>>> {
        let Some(step) = self.step else { return Ok(None) };
        let shell = |r: f64| (r / step + 0.5) as usize;
        let shells = shell(self.radii.iter().copied().fold(0.0, f64::max)).saturating_add(1);
        // Evenly spread samples are in every shell.
        if shells.saturating_mul(groups) > self.radii.len().saturating_mul(4) {
            return Ok(None);
        }
        let mut counts = try_vec(shells * groups, 0u32, "the density of samples")?;
        let mut nearness = try_vec(groups, 0.0, "the density of samples")?;
        for (m, &r) in self.radii.iter().enumerate() {
            counts[shells * group(m) + shell(r)] += 1;
            nearness[group(m)] += (1.0 - r / step).max(0.0);
        }
        let each = counts.chunks_exact(shells).zip(nearness);
        let mut all = try_reserve(groups, "the density of samples")?;
        for (counts, nearness) in each {
            let Some(even) = EvenRadii::of(counts, step, self.nyquist, nearness) else { return Ok(None) };
            all.push(even);
        }
        Ok(Some(all))
    }

    /// Returns the weights of lines and spirals in a plane.
    fn lines(&self) -> Result<Option<Vec<f64>>> {
        let even = self.even_radii(1, |_| 0)?;
        even.map(|even| self.weights(|_, r| even[0].ramp(r))).transpose()
    }

    /// Returns the weights of a stack of partitions.
    fn stack(&self, partitions: &Partitions) -> Result<Option<Vec<f64>>> {
        let group = |m: usize| partitions.of_sample[m] as usize;
        let even = self.even_radii(partitions.thickness.len(), group)?;
        even.map(|even| {
            self.weights(|m, r| partitions.thickness[group(m)] / even[group(m)].per_radius * even[group(m)].ramp(r))
        })
        .transpose()
    }

    /// Returns the weights of lines in 3D.
    fn ball(&self) -> Result<Option<Vec<f64>>> {
        // k^2 is smooth in the centre: the sum along a line needs no correction there.
        self.even_radii(1, |_| 0)?.map(|_| self.weights(|_, r| r * r)).transpose()
    }

    /// Computes the weight of each sample from its index and radius.
    fn weights(&self, weight: impl Fn(usize, f64) -> f64) -> Result<Vec<f64>> {
        let weights = self.radii.iter().enumerate().map(|(m, &r)| weight(m, r));
        try_collect(self.radii.len(), "the density weights", weights)
    }
}

/// Returns the step between the radii of neighbours; `None` unless at least half of the neighbours have the same step.
///
/// Steps differ between shots, and near the centre on lines that miss it slightly. Neighbours of equal radius are
/// ignored.
fn even_step(radii: &[f64]) -> Result<Option<f64>> {
    let steps = radii.windows(2).map(|r| (r[1] - r[0]).abs());
    let mut moves = try_collect(radii.len(), "the density weights", steps.filter(|&d| d > ROUNDING))?;
    if moves.is_empty() {
        return Ok(None);
    }
    let middle = moves.len() / 2;
    let step = *moves.select_nth_unstable_by(middle, f64::total_cmp).1;
    let same = moves.iter().filter(|&&d| (d - step).abs() <= 0.25 * step).count();
    Ok((2 * same >= moves.len()).then_some(step))
}

/// Distribution of samples that are spread evenly over the radii.
struct EvenRadii {
    step: f64,
    /// Number of samples per unit of radius.
    per_radius: f64,
    /// Factor of the correction near the centre, see [`EvenRadii::ramp`].
    share: f64,
}

impl EvenRadii {
    /// Creates the distribution; returns `None` if the samples are not spread evenly.
    ///
    /// `counts` is the number of samples in shells of thickness `step` around multiples of `step`. `nearness` is the
    /// sum of 1 - |k| / step over the samples within a step of the centre.
    fn of(counts: &[u32], step: f64, nyquist: f64, nearness: f64) -> Option<EvenRadii> {
        let last = counts.iter().rposition(|&n| n > 0)?;
        let total: u64 = counts.iter().map(|&n| n as u64).sum();
        let reach = (last as f64 + 0.5) * step;
        let per_radius = total as f64 / reach;
        let mut within = 0;
        let centre = f64::min(CENTRE * nyquist, 0.5 * reach);
        for (shell, &n) in counts[..=last].iter().enumerate() {
            within += n as u64;
            let radius = (shell as f64 + 0.5) * step;
            let off = (within as f64 / per_radius - radius).abs();
            let near = radius <= centre && off > f64::max(0.75 * step, MOST_CENTRAL_DEVIATION * nyquist);
            if near || off > f64::max(1.5 * step, MOST_DEVIATION * reach) {
                return None;
            }
        }
        let halves = per_radius * step;
        Some(EvenRadii { step, per_radius, share: if nearness > 0.0 { halves / nearness } else { 0.0 } })
    }

    /// Returns the ramp |k|. Samples within a step of the centre also get their share of the difference between the
    /// integral and the sum along half a line.
    fn ramp(&self, r: f64) -> f64 {
        let t = r / self.step;
        if t >= 1.0 {
            return r;
        }
        (r + self.step * self.share * (1.0 - t) * sum_deficit(t)).max(0.0)
    }
}

/// Partitions of a stack: planes that each contain many samples.
struct Partitions {
    /// Partition of each sample.
    of_sample: Vec<u32>,
    /// Thickness of each partition: half the distance between its two neighbours, or the distance to the only
    /// neighbour.
    thickness: Vec<f64>,
}

impl Partitions {
    /// Finds the partitions; returns `None` unless the coordinates have few values with many samples each.
    fn of<T: Real>(normal: &[T]) -> Result<Option<Partitions>> {
        let find = |planes: &[f64], z: f64| planes.partition_point(|&p| p < z - ROUNDING);
        let most = MOST_PARTITIONS.min(normal.len() / 4);
        let mut planes: Vec<f64> = try_reserve(most, "the partitions of a stack")?;
        for z in normal.iter().map(|z| z.wide()) {
            let at = find(&planes, z);
            if planes.get(at).is_none_or(|&p| p > z + ROUNDING) {
                if planes.len() == most {
                    return Ok(None);
                }
                planes.insert(at, z);
            }
        }
        if planes.len() < 2 {
            return Ok(None);
        }
        let thickness = (0..planes.len()).map(|i| {
            let (below, above) = (planes[i.saturating_sub(1)], planes[(i + 1).min(planes.len() - 1)]);
            let is_inner = i > 0 && i + 1 < planes.len();
            (above - below) * if is_inner { 0.5 } else { 1.0 }
        });
        let of_sample = normal.iter().map(|z| find(&planes, z.wide()) as u32);
        let of_sample = try_collect(normal.len(), "the partitions of a stack", of_sample)?;
        Ok(Some(Partitions {
            thickness: try_collect(planes.len(), "the partitions of a stack", thickness)?,
            of_sample,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the sum over a line whose ends have g = 0 with the integral of |x| g, for any position of samples near
    /// the centre.
    #[test]
    fn sums_along_lines_are_integrals() {
        let step = 0.05;
        let g = |x: f64| (-0.5 * (x / 0.1).powi(2)).exp();
        // Integral of exp(-x^2 / 2 s^2) x from 0.
        let half = 0.01;
        for t in [0.0, 1e-9, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0 - 1e-9] {
            let line: Vec<f64> = (-40..40).map(|j| ((j as f64 + t) * step).abs()).collect();
            let even = SampleRadii { step: Some(step), radii: line.clone(), nyquist: 0.1 }
                .even_radii(1, |_| 0)
                .unwrap()
                .unwrap();
            let sum: f64 = line.iter().map(|&r| even[0].ramp(r) * g(r)).sum();
            // The remaining error is of fourth order in the step and in the number of samples per shell.
            assert!((sum * step / (2.0 * half) - 1.0).abs() < 0.01, "{t}: {}", sum * step);
        }
        let outwards: Vec<f64> = (0..40).map(|j| j as f64 * step).collect();
        let even = SampleRadii { step: Some(step), radii: outwards.clone(), nyquist: 0.1 }
            .even_radii(1, |_| 0)
            .unwrap()
            .unwrap();
        let sum: f64 = outwards.iter().map(|&r| even[0].ramp(r) * g(r)).sum();
        assert!((sum * step / half - 1.0).abs() < 0.01, "{}", sum * step);
    }

    #[test]
    fn thickness_is_the_distance_of_partitions() {
        let z = [-0.25, 0.0, 0.125];
        let normal: Vec<f32> = (0..30).map(|m| z[m % 3] + 1e-8 * m as f32).collect();
        let partitions = Partitions::of(&normal).unwrap().unwrap();
        assert!(partitions.of_sample.iter().enumerate().all(|(m, &q)| q as usize == m % 3));
        for (thickness, expected) in partitions.thickness.iter().zip([0.25, 0.1875, 0.125]) {
            assert!((thickness - expected).abs() < 1e-5, "{thickness} and {expected}");
        }
        let all_different: Vec<f32> = (0..30).map(|m| 0.01 * m as f32).collect();
        assert!(Partitions::of(&all_different).unwrap().is_none() && Partitions::of(&[0.1_f32; 30]).unwrap().is_none());
    }
}
