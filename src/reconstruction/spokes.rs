//! Recognition of the spokes of a 2D radial trajectory, at any angles, from the coordinates in the order of
//! acquisition, and the area of k-space that each of their samples represents.

use crate::backend::Spoke;
use crate::base::error::{bail, try_collect, try_reserve, try_vec, Result};
use crate::base::real::Real;
use std::f64::consts::{PI, TAU};

/// Largest distance of a sample from its expected position, along the spoke and off an even line, in steps of the
/// spoke.
const UNEVEN: f64 = 0.1;
/// Largest distance of a spoke from the centre, in Nyquist distances.
const MOST_OFFSET: f64 = 0.1;
/// Largest distance of a spoke's nearest sample from the centre, in steps.
const NEAREST: f64 = 1.0 + UNEVEN;
/// Distance in steps below which a sample is at the centre.
const CENTRE: f64 = 0.01;
/// Largest width in radians of a sector that the spokes at its ends cover.
const MOST_SECTOR: f64 = 0.6 * PI;
/// Difference in radians below which directions are equal, such as those of a repeated spoke.
const SAME_DIRECTION: f64 = 1e-5;
/// Differences below which two reaches are equal: in steps, and relative.
const SAME_REACH: (f64, f64) = (1.5, 0.03);

/// Spokes of a trajectory, one after the other, with the same number of samples each.
pub struct Spokes {
    pub all: Vec<Spoke>,
    /// Number of samples per spoke.
    pub readout: usize,
    /// Outer radius of each ring of k-space, from the centre outwards, and the angle that each half of each spoke
    /// represents in the ring: in the direction of the spoke, and opposite to it.
    rings: Vec<(f64, Vec<[f64; 2]>)>,
}

/// One half of a spoke, from the centre outwards.
#[derive(Clone, Copy)]
struct HalfSpoke {
    /// Angle in [0, 2 pi).
    angle: f64,
    /// Largest |k|, half a step beyond the outermost sample.
    reach: f64,
    step: f64,
    spoke: usize,
    /// Whether the half is opposite to the direction of the spoke.
    is_opposite: bool,
}

/// Remedy in messages about trajectories that are not radial.
const REMEDY: &str = "filtered backprojection requires 2D radial data with samples in the order of acquisition; use \
                      gridding or conjugate gradients for other trajectories";

impl Spokes {
    /// Finds the spokes that samples at `k` lie on, for an image of `dims` voxels.
    pub fn of<T: Real>(k: &[&[T]], dims: &[usize]) -> Result<Spokes> {
        let &[kx, ky] = k else {
            bail!(Unsupported, "the trajectory has {} axes: {REMEDY}", k.len());
        };
        let at = |m: usize| [unwrapped(kx, m), unwrapped(ky, m)];
        let readout = first_turn(kx.len(), at);
        if readout < 2 {
            bail!(InvalidArgument, "a spoke needs two samples, but the trajectory has {}: {REMEDY}", kx.len());
        }
        let nyquist = 1.0 / dims.iter().copied().fold(1, usize::max) as f64;
        let (count, rest) = (kx.len() / readout, kx.len() % readout);
        let mut all = try_reserve(count, "the spokes")?;
        for spoke in 0..count {
            all.push(line(spoke, readout, nyquist, at).map_err(|e| e.within("the trajectory is not radial"))?);
        }
        if rest != 0 {
            bail!(
                InvalidArgument,
                "spokes have {readout} samples, because sample {readout} is not on the line of sample 0, but after \
                 {count} spokes {rest} samples are left: give whole spokes of equal length; {REMEDY}"
            );
        }
        let rings = rings(&all, readout)?;
        Ok(Spokes { all, readout, rings })
    }

    /// Returns the largest measured |k|, half a step beyond the outermost sample.
    pub fn reach(&self) -> f64 {
        let ends =
            |s: &Spoke| s.first.abs().max((s.first + s.step * (self.readout - 1) as f64).abs()) + 0.5 * s.step.abs();
        self.all.iter().map(ends).fold(0.0, f64::max)
    }

    /// Returns the area of k-space that a sample represents: the ramp |k| times the step and the angle. Near the
    /// centre, the difference between the integral and the sum along half a line is added.
    pub fn area(&self, spoke: usize, sample: usize) -> f64 {
        let Spoke { first, step, .. } = self.all[spoke];
        let (k, width) = (first + step * sample as f64, step.abs());
        let ring = self.rings.iter().find(|ring| k.abs() <= ring.0).or(self.rings.last());
        let angles = ring.map_or([0.0; 2], |ring| ring.1[spoke]);
        let t = k.abs() / width;
        let correction = width * sum_deficit(t);
        // A sample at the centre starts both halves; the samples next to it then start none.
        let area = match t {
            t if t < CENTRE => (angles[0] + angles[1]) * correction,
            t if t < 1.0 - CENTRE => angles[(k < 0.0) as usize] * (k.abs() + correction),
            _ => angles[(k < 0.0) as usize] * k.abs(),
        };
        (width * area).max(0.0)
    }
}

/// Returns the difference between the integral and the sum of |k| g along half a line, in units of g(0) times the
/// squared step. `t` is the distance of the first sample from the centre in steps.
///
/// By the Euler-Maclaurin formula, the sum is too small by this amount.
pub(super) fn sum_deficit(t: f64) -> f64 {
    0.5 * (t * t - t + 1.0 / 6.0)
}

/// Returns the coordinate of sample `m`, with the sign of 0.5 that continues the neighbouring samples.
///
/// A plan replaces 0.5 by -0.5. This makes no difference for voxels, but on a line it does.
pub(crate) fn unwrapped<T: Real>(k: &[T], m: usize) -> f64 {
    let own = k[m].wide();
    if own > -0.5 {
        return own;
    }
    let bend = |own: f64| {
        let off = |near: usize, far: usize| match (k.get(near), k.get(far)) {
            (Some(near), Some(far)) => (own - 2.0 * near.wide() + far.wide()).abs(),
            _ => f64::INFINITY,
        };
        off(m + 1, m + 2).min(off(m.wrapping_sub(1), m.wrapping_sub(2)))
    };
    if bend(0.5) < bend(-0.5) {
        0.5
    } else {
        own
    }
}

/// Returns the index of the first sample that is not on the line of the first two.
pub(crate) fn first_turn(samples: usize, at: impl Fn(usize) -> [f64; 2]) -> usize {
    if samples < 2 {
        return samples;
    }
    let step = |m: usize| [at(m)[0] - at(m - 1)[0], at(m)[1] - at(m - 1)[1]];
    let first = step(1);
    let turns = |m: usize| (step(m)[0] - first[0]).hypot(step(m)[1] - first[1]) > 0.5 * first[0].hypot(first[1]);
    (2..samples).find(|&m| turns(m)).unwrap_or(samples)
}

/// Returns the line through the centre that the samples of a spoke are on.
fn line(spoke: usize, readout: usize, nyquist: f64, at: impl Fn(usize) -> [f64; 2]) -> Result<Spoke> {
    let from = spoke * readout;
    let (start, end) = (at(from), at(from + readout - 1));
    let steps = (readout - 1) as f64;
    let step = [(end[0] - start[0]) / steps, (end[1] - start[1]) / steps];
    let width = step[0].hypot(step[1]);
    if width == 0.0 {
        bail!(InvalidArgument, "spoke {spoke} begins and ends at the same position, {start:?}: {REMEDY}");
    }
    for j in 0..readout {
        let place = at(from + j);
        let off = [0, 1].map(|a| place[a] - start[a] - step[a] * j as f64);
        let off = off[0].hypot(off[1]) / width;
        if off > UNEVEN {
            bail!(
                InvalidArgument,
                "sample {} is {off:.2} steps off the even line of spoke {spoke}, of samples {from} to {}: {REMEDY}",
                from + j,
                from + readout - 1
            );
        }
    }
    let direction = step.map(|s| s / width);
    let first = start[0] * direction[0] + start[1] * direction[1];
    let offset = (start[0] * direction[1] - start[1] * direction[0]).abs() / nyquist;
    if offset > MOST_OFFSET {
        bail!(
            InvalidArgument,
            "spoke {spoke} passes the centre of k-space at {offset:.2} of the Nyquist distance, 1 / (voxels along \
             an axis): {REMEDY}"
        );
    }
    let nearest = (-first / width).round().clamp(0.0, steps);
    let gap = (first + width * nearest).abs() / width;
    if gap > NEAREST {
        bail!(
            InvalidArgument,
            "the nearest sample of spoke {spoke} to the centre of k-space is {gap:.1} steps from it, but at most 1 \
             step is allowed: {REMEDY}"
        );
    }
    Ok(Spoke::new(direction, first, width))
}

/// Returns the rings of k-space, each with the same halves of spokes, and the angles that these represent.
fn rings(all: &[Spoke], readout: usize) -> Result<Vec<(f64, Vec<[f64; 2]>)>> {
    let mut halves: Vec<HalfSpoke> = try_reserve(2 * all.len(), "the halves of spokes")?;
    for (spoke, s) in all.iter().enumerate() {
        let ends = [s.first, s.first + s.step * (readout - 1) as f64];
        let angle = s.direction[1].atan2(s.direction[0]);
        let step = s.step.abs();
        for (is_opposite, reach) in [(false, ends[0].max(ends[1])), (true, -ends[0].min(ends[1]))] {
            if reach > UNEVEN * step {
                let angle = (angle + if is_opposite { PI } else { 0.0 }).rem_euclid(TAU);
                halves.push(HalfSpoke { angle, reach: reach + 0.5 * step, step, spoke, is_opposite });
            }
        }
    }
    halves.sort_unstable_by(|a, b| a.angle.total_cmp(&b.angle).then(a.spoke.cmp(&b.spoke)));
    let mut reaches = try_collect(halves.len(), "the halves of spokes", halves.iter().map(|h| (h.reach, h.step)))?;
    reaches.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut rings: Vec<(f64, Vec<[f64; 2]>)> = Vec::new();
    let mut begin = 0;
    for i in 1..=reaches.len() {
        let (lowest, step) = reaches[begin];
        if i < reaches.len() && reaches[i].0 - lowest <= f64::max(SAME_REACH.0 * step, SAME_REACH.1 * lowest) {
            continue;
        }
        let angles = angles(all.len(), halves.iter().filter(|h| h.reach >= lowest), rings.is_empty())?;
        if rings.try_reserve(1).is_err() {
            bail!(OutOfHostMemory, "could not allocate memory for the rings of k-space: free memory");
        }
        rings.push((reaches[i - 1].0, angles));
        begin = i;
    }
    Ok(rings)
}

/// Returns the angle that each half of `spokes` spokes represents: half of the angles to its neighbours. The innermost
/// ring must be covered all around; further out, a scan may measure one side only.
fn angles<'a>(
    spokes: usize,
    halves: impl Iterator<Item = &'a HalfSpoke> + Clone,
    innermost: bool,
) -> Result<Vec<[f64; 2]>> {
    let mut angles = try_vec(spokes, [0.0; 2], "the angles of spokes")?;
    // Directions, each with its number of halves.
    let mut directions: Vec<(f64, usize)> = try_reserve(2 * spokes, "the angles of spokes")?;
    for half in halves.clone() {
        match directions.last_mut() {
            Some(last) if half.angle - last.0 < SAME_DIRECTION => last.1 += 1,
            _ => directions.push((half.angle, 1)),
        }
    }
    if directions.len() > 1 && directions[0].0 + TAU - directions[directions.len() - 1].0 < SAME_DIRECTION {
        let (_, count) = directions.pop().expect("the list has at least two");
        directions[0].1 += count;
    }
    let n = directions.len();
    let gap = |i: usize| match (directions[(i + 1) % n].0 - directions[i].0).rem_euclid(TAU) {
        0.0 => TAU,
        gap => gap,
    };
    let widest = (0..n).map(gap).fold(0.0, f64::max);
    if innermost && widest > MOST_SECTOR {
        bail!(
            InvalidArgument,
            "a sector of {:.0} degrees of k-space is unmeasured: spokes must cover all angles and be at most {:.0} \
             degrees apart; {REMEDY}",
            widest.to_degrees(),
            MOST_SECTOR.to_degrees()
        );
    }
    let mut i = 0;
    for half in halves {
        while i + 1 < n && half.angle - directions[i].0 >= SAME_DIRECTION {
            i += 1;
        }
        // Halves just below a full turn may belong to the first direction.
        let i = if half.angle - directions[i].0 >= SAME_DIRECTION { 0 } else { i };
        let (left, right) = (gap((i + n - 1) % n), gap(i));
        let share = match (left > MOST_SECTOR, right > MOST_SECTOR) {
            (false, false) => 0.5 * (left + right),
            (true, false) => right,
            (false, true) => left,
            (true, true) => MOST_SECTOR,
        };
        angles[half.spoke][half.is_opposite as usize] = share / directions[i].1 as f64;
    }
    Ok(angles)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the samples of a spoke.
    fn spoke(angle: f64, first: f64, step: f64, readout: usize) -> Vec<[f64; 2]> {
        (0..readout).map(|j| first + step * j as f64).map(|r| [r * angle.cos(), r * angle.sin()]).collect()
    }

    /// Recognises the spokes of samples for an image of n x n voxels.
    fn spokes_of(points: &[[f64; 2]], n: usize) -> Result<Spokes> {
        let axis = |a: usize| points.iter().map(|p| p[a]).collect::<Vec<f64>>();
        Spokes::of(&[&axis(0), &axis(1)], &[n, n])
    }

    /// Returns the sum of areas times a Gaussian that ends before the spokes, divided by the Gaussian's integral.
    fn covered(points: &[[f64; 2]], width: f64) -> f64 {
        let spokes = spokes_of(points, 64).unwrap();
        let sum: f64 = points
            .iter()
            .enumerate()
            .map(|(m, p)| {
                let g = (-0.5 * (p[0] * p[0] + p[1] * p[1]) / (width * width)).exp();
                spokes.area(m / spokes.readout, m % spokes.readout) * g
            })
            .sum();
        sum / (TAU * width * width)
    }

    #[test]
    fn areas_cover_k_space_for_any_angles() {
        let golden = PI * (5.0_f64.sqrt() - 1.0) / 2.0;
        for offset in [0.0, 0.3, 0.5, 0.9] {
            let lines = |angle: &dyn Fn(usize) -> f64, count: usize| -> Vec<[f64; 2]> {
                (0..count).flat_map(|s| spoke(angle(s), (offset - 32.0) / 64.0 * 0.9, 0.9 / 64.0, 64)).collect()
            };
            let even = lines(&|s| PI * s as f64 / 24.0, 24);
            let gold = lines(&|s| golden * s as f64, 21);
            // Spokes that are dense on one side, with each angle twice.
            let uneven = lines(&|s| PI * ((s / 2) as f64 / 20.0).powi(2), 40);
            let turned = lines(&|s| TAU * s as f64 / 31.0, 31);
            for (name, points) in [("even", even), ("golden", gold), ("uneven", uneven), ("turned", turned)] {
                let ratio = covered(&points, 0.05);
                assert!((ratio - 1.0).abs() < 2e-3, "{name}, offset {offset}: {ratio}");
            }
        }
        let outwards: Vec<[f64; 2]> =
            (0..40).flat_map(|s| spoke(TAU * s as f64 / 40.0, 0.002, 0.9 / 64.0, 32)).collect();
        let ratio = covered(&outwards, 0.05);
        assert!((ratio - 1.0).abs() < 2e-3, "outwards: {ratio}");
        // Ends at 0.5, which a plan replaces by -0.5, at either end of a spoke.
        let mut edges: Vec<[f64; 2]> =
            (0..24).flat_map(|s| spoke(PI * s as f64 / 24.0, 0.5, -1.0 / 32.0, 33)).collect();
        edges[12 * 33..].reverse();
        edges.iter_mut().flatten().for_each(|k| *k = if *k == 0.5 { -0.5 } else { *k });
        assert!(edges.contains(&[-0.5, 0.0]) && edges.iter().flatten().all(|&k| k < 0.5));
        let ratio = covered(&edges, 0.05);
        assert!((ratio - 1.0).abs() < 2e-3, "edges: {ratio}");
        // An asymmetric echo: inside, all angles are measured; outside, one half of each spoke.
        let echo: Vec<[f64; 2]> =
            (0..48).flat_map(|s| spoke(TAU * s as f64 / 48.0, -8.0 / 64.0, 1.0 / 64.0, 40)).collect();
        for width in [0.02, 0.05, 0.1] {
            let ratio = covered(&echo, width);
            assert!((ratio - 1.0).abs() < 5e-3, "asymmetric, {width}: {ratio}");
        }
    }

    #[test]
    fn other_trajectories_are_errors() {
        let message = |points: &[[f64; 2]]| spokes_of(points, 64).err().expect("an error").to_string();
        let full: Vec<[f64; 2]> = (0..8).flat_map(|s| spoke(PI * s as f64 / 8.0, -0.5, 1.0 / 32.0, 32)).collect();
        assert_eq!(spokes_of(&full, 64).unwrap().all.len(), 8);
        let cut = message(&full[..250]);
        assert!(cut.contains("after 7 spokes 26 samples are left") && cut.contains("whole spokes"), "{cut}");
        assert!(!cut.contains("not radial"), "{cut}");
        let mut bent = full.clone();
        bent[40][0] += 0.01;
        assert!(message(&bent).contains("sample 40 is 0.32 steps off"), "{}", message(&bent));
        let shifted: Vec<[f64; 2]> = full.iter().map(|p| [p[0] + 0.01, p[1]]).collect();
        assert!(message(&shifted).contains("passes the centre"), "{}", message(&shifted));
        let ring: Vec<[f64; 2]> = (0..8).flat_map(|s| spoke(TAU * s as f64 / 8.0, 0.2, 1.0 / 64.0, 16)).collect();
        assert!(message(&ring).contains("steps from it"), "{}", message(&ring));
        let half: Vec<[f64; 2]> = (0..8).flat_map(|s| spoke(PI * s as f64 / 8.0, 0.0, 1.0 / 64.0, 32)).collect();
        assert!(message(&half).contains("unmeasured"), "{}", message(&half));
        assert!(message(&[[0.0; 2]; 64]).contains("begins and ends at the same position"));
        let cartesian: Vec<[f64; 2]> =
            (0..16).flat_map(|y| (0..16).map(move |x| [x as f64 / 16.0 - 0.5, y as f64 / 16.0 - 0.5])).collect();
        assert!(message(&cartesian).contains("passes the centre"), "{}", message(&cartesian));
        let spiral: Vec<[f64; 2]> =
            (0..512).map(|m| m as f64).map(|m| [0.001 * m * (0.1 * m).cos(), 0.001 * m * (0.1 * m).sin()]).collect();
        // The cause is the same whether or not the length of the first "spoke" divides the number of samples.
        let readout = first_turn(spiral.len(), |m| spiral[m]);
        for samples in [spiral.len(), spiral.len() / readout * readout] {
            let text = message(&spiral[..samples]);
            for part in ["the trajectory is not radial: sample ", " steps off the even line of spoke", "use gridding"] {
                assert!(text.contains(part), "{text}");
            }
        }
        for few in [&[][..], &[[0.1, 0.2]]] {
            assert!(message(few).contains("a spoke needs two samples"), "{}", message(few));
        }
    }
}
