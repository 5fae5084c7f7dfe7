//! The spokes of a 2D radial trajectory, at any angles, recognised from the coordinates in their order of acquisition,
//! and the area of k-space that each of their samples stands for.

use crate::backend::Spoke;
use crate::base::error::{bail, try_collect, try_reserve, try_vec, Result};
use crate::base::real::Real;
use std::f64::consts::{PI, TAU};

/// How far a sample may lie from where it is taken to be, in steps of its spoke: along it, and off an even line.
const UNEVEN: f64 = 0.1;
/// How far a spoke may pass from the centre, in distances of Nyquist.
const MISS: f64 = 0.1;
/// How far the nearest sample of a spoke may be from the centre, in steps.
const NEAREST: f64 = 1.0 + UNEVEN;
/// Nearer samples lie in the centre, in steps.
const CENTRE: f64 = 0.01;
/// Sectors beyond this width are not covered by the spokes at their ends.
const SECTOR: f64 = 0.6 * PI;
/// Directions that differ by less are the same, as those of a spoke that is measured again.
const SAME: f64 = 1e-5;
/// Reaches that differ by less, in steps or relatively, are the same.
const REACH: (f64, f64) = (1.5, 0.03);

/// The spokes of a trajectory, of as many samples each, one after the other.
pub struct Spokes {
    pub all: Vec<Spoke>,
    pub readout: usize,
    /// For each ring of k-space, from the centre outwards, its outer radius, and the angle that each half of each spoke
    /// stands for there: in the direction of the spoke, and against it.
    rings: Vec<(f64, Vec<[f64; 2]>)>,
}

/// One half of a spoke.
#[derive(Clone, Copy)]
struct Half {
    /// Its angle in [0, 2 pi).
    angle: f64,
    reach: f64,
    step: f64,
    spoke: usize,
    against: bool,
}

const REMEDY: &str =
    "filtered backprojection is for 2D radial data, samples in the order of acquisition; use gridding \
                      or conjugate gradients for any other trajectory";

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
                "sample {readout} is the first that is not on the line of sample 0, so spokes have {readout} samples, \
                 but after {count} spokes {rest} samples are left: give whole spokes of the same length; {REMEDY}"
            );
        }
        let rings = rings(&all, readout)?;
        Ok(Spokes { all, readout, rings })
    }

    /// The largest |k| that is measured, half a step beyond the outermost sample.
    pub fn reach(&self) -> f64 {
        let ends =
            |s: &Spoke| s.first.abs().max((s.first + s.step * (self.readout - 1) as f64).abs()) + 0.5 * s.step.abs();
        self.all.iter().map(ends).fold(0.0, f64::max)
    }

    /// The area of k-space that a sample stands for: the ramp |k| times the step and the angle, and near the centre
    /// what the sum along half a line lacks of the integral.
    pub fn area(&self, spoke: usize, sample: usize) -> f64 {
        let Spoke { first, step, .. } = self.all[spoke];
        let (k, width) = (first + step * sample as f64, step.abs());
        let ring = self.rings.iter().find(|ring| k.abs() <= ring.0).or(self.rings.last());
        let angles = ring.map_or([0.0; 2], |ring| ring.1[spoke]);
        let t = k.abs() / width;
        let correction = width * lacking(t);
        // A sample in the centre begins both halves, and then the samples beside it begin none.
        let area = match t {
            t if t < CENTRE => (angles[0] + angles[1]) * correction,
            t if t < 1.0 - CENTRE => angles[(k < 0.0) as usize] * (k.abs() + correction),
            _ => angles[(k < 0.0) as usize] * k.abs(),
        };
        (width * area).max(0.0)
    }
}

/// What a sum along half a line lacks of the integral: by the Euler-Maclaurin formula the sum of |k| g over samples of
/// which the first is t steps from the centre is too small by step g(0) times this times the step.
pub(super) fn lacking(t: f64) -> f64 {
    0.5 * (t * t - t + 1.0 / 6.0)
}

/// The coordinate of sample `m`. A plan takes 0.5 for -0.5, which is the same for voxels, but not on a line: there it
/// is the one that continues the samples before or behind it.
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

/// Where the line of samples that the first two begin ends.
pub(crate) fn first_turn(samples: usize, at: impl Fn(usize) -> [f64; 2]) -> usize {
    if samples < 2 {
        return samples;
    }
    let step = |m: usize| [at(m)[0] - at(m - 1)[0], at(m)[1] - at(m - 1)[1]];
    let first = step(1);
    let turns = |m: usize| (step(m)[0] - first[0]).hypot(step(m)[1] - first[1]) > 0.5 * first[0].hypot(first[1]);
    (2..samples).find(|&m| turns(m)).unwrap_or(samples)
}

/// The line through the centre that the samples of a spoke lie on.
fn line(spoke: usize, readout: usize, nyquist: f64, at: impl Fn(usize) -> [f64; 2]) -> Result<Spoke> {
    let from = spoke * readout;
    let (start, end) = (at(from), at(from + readout - 1));
    let steps = (readout - 1) as f64;
    let step = [(end[0] - start[0]) / steps, (end[1] - start[1]) / steps];
    let width = step[0].hypot(step[1]);
    if width == 0.0 {
        bail!(InvalidArgument, "spoke {spoke} begins and ends in one place, {start:?}: {REMEDY}");
    }
    for j in 0..readout {
        let place = at(from + j);
        let off = [0, 1].map(|a| place[a] - start[a] - step[a] * j as f64);
        let off = off[0].hypot(off[1]) / width;
        if off > UNEVEN {
            bail!(
                InvalidArgument,
                "sample {} lies {off:.2} steps off the even line of spoke {spoke}, of samples {from} to {}: {REMEDY}",
                from + j,
                from + readout - 1
            );
        }
    }
    let direction = step.map(|s| s / width);
    let first = start[0] * direction[0] + start[1] * direction[1];
    let miss = (start[0] * direction[1] - start[1] * direction[0]).abs() / nyquist;
    if miss > MISS {
        bail!(
            InvalidArgument,
            "spoke {spoke} passes the centre of k-space at {miss:.2} of the distance of Nyquist, 1 / (voxels along an \
             axis): {REMEDY}"
        );
    }
    let nearest = (-first / width).round().clamp(0.0, steps);
    let gap = (first + width * nearest).abs() / width;
    if gap > NEAREST {
        bail!(
            InvalidArgument,
            "the sample of spoke {spoke} that is nearest to the centre of k-space is {gap:.1} steps from it, of 1 at \
             most: {REMEDY}"
        );
    }
    Ok(Spoke::new(direction, first, width))
}

/// The rings of k-space in which as many halves of spokes are measured, and the angles that these stand for.
fn rings(all: &[Spoke], readout: usize) -> Result<Vec<(f64, Vec<[f64; 2]>)>> {
    let mut halves: Vec<Half> = try_reserve(2 * all.len(), "the halves of spokes")?;
    for (spoke, s) in all.iter().enumerate() {
        let ends = [s.first, s.first + s.step * (readout - 1) as f64];
        let angle = s.direction[1].atan2(s.direction[0]);
        let step = s.step.abs();
        for (against, reach) in [(false, ends[0].max(ends[1])), (true, -ends[0].min(ends[1]))] {
            if reach > UNEVEN * step {
                let angle = (angle + if against { PI } else { 0.0 }).rem_euclid(TAU);
                halves.push(Half { angle, reach: reach + 0.5 * step, step, spoke, against });
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
        if i < reaches.len() && reaches[i].0 - lowest <= f64::max(REACH.0 * step, REACH.1 * lowest) {
            continue;
        }
        let angles = angles(all.len(), halves.iter().filter(|h| h.reach >= lowest), rings.is_empty())?;
        if rings.try_reserve(1).is_err() {
            bail!(OutOfHostMemory, "could not allocate the rings of k-space: free memory");
        }
        rings.push((reaches[i - 1].0, angles));
        begin = i;
    }
    Ok(rings)
}

/// The angle that each half of `spokes` spokes stands for: half of the way to its neighbours. `innermost` must be
/// covered all around; beyond, a scan may measure one side only.
fn angles<'a>(spokes: usize, halves: impl Iterator<Item = &'a Half> + Clone, innermost: bool) -> Result<Vec<[f64; 2]>> {
    let mut angles = try_vec(spokes, [0.0; 2], "the angles of spokes")?;
    // Directions, each with the number of halves that have it.
    let mut directions: Vec<(f64, usize)> = try_reserve(2 * spokes, "the angles of spokes")?;
    for half in halves.clone() {
        match directions.last_mut() {
            Some(last) if half.angle - last.0 < SAME => last.1 += 1,
            _ => directions.push((half.angle, 1)),
        }
    }
    if directions.len() > 1 && directions[0].0 + TAU - directions[directions.len() - 1].0 < SAME {
        let (_, again) = directions.pop().expect("there are two");
        directions[0].1 += again;
    }
    let n = directions.len();
    let gap = |i: usize| match (directions[(i + 1) % n].0 - directions[i].0).rem_euclid(TAU) {
        0.0 => TAU,
        gap => gap,
    };
    let widest = (0..n).map(gap).fold(0.0, f64::max);
    if innermost && widest > SECTOR {
        bail!(
            InvalidArgument,
            "spokes leave a sector of {:.0} degrees of k-space unmeasured: they must go all around it, at most {:.0} \
             degrees apart; {REMEDY}",
            widest.to_degrees(),
            SECTOR.to_degrees()
        );
    }
    let mut i = 0;
    for half in halves {
        while i + 1 < n && half.angle - directions[i].0 >= SAME {
            i += 1;
        }
        // Halves just below a full turn may have gone to the first direction.
        let i = if half.angle - directions[i].0 >= SAME { 0 } else { i };
        let (before, after) = (gap((i + n - 1) % n), gap(i));
        let share = match (before > SECTOR, after > SECTOR) {
            (false, false) => 0.5 * (before + after),
            (true, false) => after,
            (false, true) => before,
            (true, true) => SECTOR,
        };
        angles[half.spoke][half.against as usize] = share / directions[i].1 as f64;
    }
    Ok(angles)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spoke(angle: f64, first: f64, step: f64, readout: usize) -> Vec<[f64; 2]> {
        (0..readout).map(|j| first + step * j as f64).map(|r| [r * angle.cos(), r * angle.sin()]).collect()
    }

    fn found(points: &[[f64; 2]], n: usize) -> Result<Spokes> {
        let axis = |a: usize| points.iter().map(|p| p[a]).collect::<Vec<f64>>();
        Spokes::of(&[&axis(0), &axis(1)], &[n, n])
    }

    /// The sum of areas times a Gaussian that ends before the spokes do, over its integral.
    fn covered(points: &[[f64; 2]], width: f64) -> f64 {
        let spokes = found(points, 64).unwrap();
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
    fn areas_cover_k_space_whatever_the_angles() {
        let golden = PI * (5.0_f64.sqrt() - 1.0) / 2.0;
        for offset in [0.0, 0.3, 0.5, 0.9] {
            let lines = |angle: &dyn Fn(usize) -> f64, count: usize| -> Vec<[f64; 2]> {
                (0..count).flat_map(|s| spoke(angle(s), (offset - 32.0) / 64.0 * 0.9, 0.9 / 64.0, 64)).collect()
            };
            let even = lines(&|s| PI * s as f64 / 24.0, 24);
            let gold = lines(&|s| golden * s as f64, 21);
            // Dense on one side, each angle twice.
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
        // Ends at 0.5, which a plan takes for -0.5, at either end of a spoke.
        let mut edges: Vec<[f64; 2]> =
            (0..24).flat_map(|s| spoke(PI * s as f64 / 24.0, 0.5, -1.0 / 32.0, 33)).collect();
        edges[12 * 33..].reverse();
        edges.iter_mut().flatten().for_each(|k| *k = if *k == 0.5 { -0.5 } else { *k });
        assert!(edges.contains(&[-0.5, 0.0]) && edges.iter().flatten().all(|&k| k < 0.5));
        let ratio = covered(&edges, 0.05);
        assert!((ratio - 1.0).abs() < 2e-3, "edges: {ratio}");
        // An echo that is not in the middle: inside all around, outside by one half of each spoke.
        let echo: Vec<[f64; 2]> =
            (0..48).flat_map(|s| spoke(TAU * s as f64 / 48.0, -8.0 / 64.0, 1.0 / 64.0, 40)).collect();
        for width in [0.02, 0.05, 0.1] {
            let ratio = covered(&echo, width);
            assert!((ratio - 1.0).abs() < 5e-3, "asymmetric, {width}: {ratio}");
        }
    }

    #[test]
    fn what_is_not_radial_is_refused() {
        let message = |points: &[[f64; 2]]| found(points, 64).err().expect("an error").to_string();
        let full: Vec<[f64; 2]> = (0..8).flat_map(|s| spoke(PI * s as f64 / 8.0, -0.5, 1.0 / 32.0, 32)).collect();
        assert_eq!(found(&full, 64).unwrap().all.len(), 8);
        let cut = message(&full[..250]);
        assert!(cut.contains("after 7 spokes 26 samples are left") && cut.contains("whole spokes"), "{cut}");
        assert!(!cut.contains("not radial"), "{cut}");
        let mut bent = full.clone();
        bent[40][0] += 0.01;
        assert!(message(&bent).contains("sample 40 lies 0.32 steps off"), "{}", message(&bent));
        let shifted: Vec<[f64; 2]> = full.iter().map(|p| [p[0] + 0.01, p[1]]).collect();
        assert!(message(&shifted).contains("passes the centre"), "{}", message(&shifted));
        let ring: Vec<[f64; 2]> = (0..8).flat_map(|s| spoke(TAU * s as f64 / 8.0, 0.2, 1.0 / 64.0, 16)).collect();
        assert!(message(&ring).contains("steps from it"), "{}", message(&ring));
        let half: Vec<[f64; 2]> = (0..8).flat_map(|s| spoke(PI * s as f64 / 8.0, 0.0, 1.0 / 64.0, 32)).collect();
        assert!(message(&half).contains("unmeasured"), "{}", message(&half));
        assert!(message(&[[0.0; 2]; 64]).contains("begins and ends in one place"));
        let cartesian: Vec<[f64; 2]> =
            (0..16).flat_map(|y| (0..16).map(move |x| [x as f64 / 16.0 - 0.5, y as f64 / 16.0 - 0.5])).collect();
        assert!(message(&cartesian).contains("passes the centre"), "{}", message(&cartesian));
        let spiral: Vec<[f64; 2]> =
            (0..512).map(|m| m as f64).map(|m| [0.001 * m * (0.1 * m).cos(), 0.001 * m * (0.1 * m).sin()]).collect();
        // Whether or not the number of samples can be divided by the first "spoke", the cause is the same.
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
