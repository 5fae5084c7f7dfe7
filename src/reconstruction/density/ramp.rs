//! Ramp weights |k|^(d-1), and the test whether they are the density compensation of a trajectory.
//!
//! They are where samples lie evenly along lines through the centre, or along spirals whose radius grows evenly: every
//! shell of radii then has as many samples, however few the spokes. Both are recognised from the coordinates in their
//! order of acquisition: neighbours differ in radius by the same step, and the number of samples within |k| grows in
//! proportion to |k|.
//!
//! Spokes in a plane that are exactly lines are weighed by the angle that each stands for besides, as golden-angle
//! spokes are not spread evenly.

use crate::base::error::{bail, try_collect, try_reserve, try_vec, ErrorKind, Result};
use crate::base::real::Real;
use crate::reconstruction::spokes::{lacking, Spokes};

/// Smaller coordinates are taken for zero, and coordinates with a smaller distance are taken for equal.
const ROUNDING: f64 = 1e-6;
/// The most partitions of a stack that are looked for.
const MOST_PARTITIONS: usize = 4096;
/// A fraction of the samples should lie within the same fraction of the reach. The radius may differ by `FAR` of the
/// reach, and near the centre, where images have their energy, by `NEAR` of the Nyquist distance. PROPELLER blades and
/// spirals of variable density differ by more; spokes with a gradient delay of one sample pass.
const FAR: f64 = 0.06;
const NEAR: f64 = 0.25;
/// The end of the centre in Nyquist distances, at most half of the reach.
const CENTRE: f64 = 12.0;

/// |k|^(d-1), or in each partition of a stack |k| times the partition's share of k-space, up to a factor.
pub(super) fn ramp<T: Real>(k: &[&[T]], dims: &[usize]) -> Result<Vec<f64>> {
    // Axes along which nothing is encoded do not count: a single slice is 2D.
    let axes: Vec<usize> = (0..k.len()).filter(|&a| k[a].iter().any(|k| k.wide().abs() > ROUNDING)).collect();
    let samples = k[0].len();
    let weights = match axes[..] {
        [] | [_] => Some(try_vec(samples, 1.0, "the density weights")?),
        [x, y] => match spokes(&[k[x], k[y]], &[dims[x], dims[y]])? {
            None => Readouts::of(k, dims, &axes)?.lines()?,
            found => found,
        },
        _ => match stack(k, dims, &axes)? {
            None => Readouts::of(k, dims, &axes)?.ball()?,
            found => found,
        },
    };
    let Some(weights) = weights else {
        bail!(
            InvalidArgument,
            "ramp weights, |k|^(d-1), hold for samples that lie evenly along lines through the centre of k-space or \
             along spirals whose radius grows evenly, and for stacks of either; these {samples} samples, taken in the \
             order of acquisition, do not: use the weights of Pipe and Menon (pipe-menon)"
        );
    };
    Ok(weights)
}

/// The areas of the samples of spokes, whatever their angles; none where they are not exactly spokes.
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

/// Weights where the samples are a stack along one of the axes, usually the last.
fn stack<T: Real>(k: &[&[T]], dims: &[usize], axes: &[usize]) -> Result<Option<Vec<f64>>> {
    for &normal in axes.iter().rev() {
        let plane: Vec<usize> = axes.iter().copied().filter(|&a| a != normal).collect();
        if let Some(partitions) = Partitions::of(k[normal])? {
            let found = Readouts::of(k, dims, &plane)?.stack(&partitions)?;
            if found.is_some() {
                return Ok(found);
            }
        }
    }
    Ok(None)
}

/// Radii of the samples in the order of acquisition.
struct Readouts {
    radii: Vec<f64>,
    /// The change of the radius from one sample to the next; none where it is uneven.
    step: Option<f64>,
    /// The distance between samples that the image's size requires.
    nyquist: f64,
}

impl Readouts {
    fn of<T: Real>(k: &[&[T]], dims: &[usize], axes: &[usize]) -> Result<Self> {
        let radius = |m: usize| axes.iter().map(|&a| k[a][m].wide().powi(2)).sum::<f64>().sqrt();
        let radii = try_collect(k[0].len(), "the density weights", (0..k[0].len()).map(radius))?;
        let n = axes.iter().map(|&a| dims[a]).fold(1, usize::max);
        Ok(Readouts { step: even_step(&radii)?, radii, nyquist: 1.0 / n as f64 })
    }

    /// The samples of each group, numbered by `group`; none unless all groups are spread evenly over the radii.
    fn evenly(&self, groups: usize, group: impl Fn(usize) -> usize) -> Result<Option<Vec<EvenRadii>>> {
        let Some(step) = self.step else { return Ok(None) };
        let shell = |r: f64| (r / step + 0.5) as usize;
        let shells = shell(self.radii.iter().copied().fold(0.0, f64::max)).saturating_add(1);
        // Even samples reach every shell.
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

    fn lines(&self) -> Result<Option<Vec<f64>>> {
        let even = self.evenly(1, |_| 0)?;
        even.map(|even| self.weigh(|_, r| even[0].ramp(r))).transpose()
    }

    fn stack(&self, partitions: &Partitions) -> Result<Option<Vec<f64>>> {
        let group = |m: usize| partitions.of_sample[m] as usize;
        let even = self.evenly(partitions.thickness.len(), group)?;
        even.map(|even| {
            self.weigh(|m, r| partitions.thickness[group(m)] / even[group(m)].per_radius * even[group(m)].ramp(r))
        })
        .transpose()
    }

    fn ball(&self) -> Result<Option<Vec<f64>>> {
        // k^2 is smooth in the centre: the sum along a line needs no correction there.
        self.evenly(1, |_| 0)?.map(|_| self.weigh(|_, r| r * r)).transpose()
    }

    fn weigh(&self, weight: impl Fn(usize, f64) -> f64) -> Result<Vec<f64>> {
        let weights = self.radii.iter().enumerate().map(|(m, &r)| weight(m, r));
        try_collect(self.radii.len(), "the density weights", weights)
    }
}

/// The step between the radii of neighbours, where at least half of them have the same. Steps differ between shots, and
/// near the centre on lines that miss it a little. Neighbours of the same radius are left out.
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

/// Samples spread evenly over the radii.
struct EvenRadii {
    step: f64,
    /// Samples in an interval of radii of length 1.
    per_radius: f64,
    /// The factor of the correction near the centre, see [`EvenRadii::ramp`].
    share: f64,
}

impl EvenRadii {
    /// From the number of samples in shells of thickness `step` about the multiples of `step`, and the sum of 1 - |k| /
    /// step over the samples nearer than that; none if they are not even.
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
            let near = radius <= centre && off > f64::max(0.75 * step, NEAR * nyquist);
            if near || off > f64::max(1.5 * step, FAR * reach) {
                return None;
            }
        }
        let halves = per_radius * step;
        Some(EvenRadii { step, per_radius, share: if nearness > 0.0 { halves / nearness } else { 0.0 } })
    }

    /// The ramp |k|, and near the centre what the sum along half a line lacks of the integral, of which each sample
    /// within a step gets its share.
    fn ramp(&self, r: f64) -> f64 {
        let t = r / self.step;
        if t >= 1.0 {
            return r;
        }
        (r + self.step * self.share * (1.0 - t) * lacking(t)).max(0.0)
    }
}

/// The partitions of a stack: planes in which many samples lie.
struct Partitions {
    /// The partition of each sample.
    of_sample: Vec<u32>,
    /// For each, half the distance between its two neighbours; for the outermost, the distance to the one neighbour.
    thickness: Vec<f64>,
}

impl Partitions {
    /// None unless the coordinates are few values, each of many samples.
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
            let both = i > 0 && i + 1 < planes.len();
            (above - below) * if both { 0.5 } else { 1.0 }
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

    /// The sum over a line that begins and ends where g is 0 is the integral of |x| g, wherever samples lie about the
    /// centre.
    #[test]
    fn sums_along_lines_are_integrals() {
        let step = 0.05;
        let g = |x: f64| (-0.5 * (x / 0.1).powi(2)).exp();
        // Of exp(-x^2 / 2 s^2) x, from 0 on.
        let half = 0.01;
        for t in [0.0, 1e-9, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0 - 1e-9] {
            let line: Vec<f64> = (-40..40).map(|j| ((j as f64 + t) * step).abs()).collect();
            let even =
                Readouts { step: Some(step), radii: line.clone(), nyquist: 0.1 }.evenly(1, |_| 0).unwrap().unwrap();
            let sum: f64 = line.iter().map(|&r| even[0].ramp(r) * g(r)).sum();
            // The rest is of the fourth order in the step, and of the number of samples in a shell.
            assert!((sum * step / (2.0 * half) - 1.0).abs() < 0.01, "{t}: {}", sum * step);
        }
        let outwards: Vec<f64> = (0..40).map(|j| j as f64 * step).collect();
        let even =
            Readouts { step: Some(step), radii: outwards.clone(), nyquist: 0.1 }.evenly(1, |_| 0).unwrap().unwrap();
        let sum: f64 = outwards.iter().map(|&r| even[0].ramp(r) * g(r)).sum();
        assert!((sum * step / half - 1.0).abs() < 0.01, "{}", sum * step);
    }

    #[test]
    fn partitions_are_as_thick_as_their_distances() {
        let z = [-0.25, 0.0, 0.125];
        let normal: Vec<f32> = (0..30).map(|m| z[m % 3] + 1e-8 * m as f32).collect();
        let found = Partitions::of(&normal).unwrap().unwrap();
        assert!(found.of_sample.iter().enumerate().all(|(m, &q)| q as usize == m % 3));
        for (thickness, wanted) in found.thickness.iter().zip([0.25, 0.1875, 0.125]) {
            assert!((thickness - wanted).abs() < 1e-5, "{thickness} and {wanted}");
        }
        let all_different: Vec<f32> = (0..30).map(|m| 0.01 * m as f32).collect();
        assert!(Partitions::of(&all_different).unwrap().is_none() && Partitions::of(&[0.1_f32; 30]).unwrap().is_none());
    }
}
