//! Recognition of the blades of a PROPELLER trajectory from the coordinates in the order of acquisition.

use crate::base::error::{bail, try_collect, try_reserve, Result};
use crate::base::real::Real;
use crate::reconstruction::spokes::{first_turn, unwrapped};
use std::ops::Range;

/// Largest distance of a sample from its expected position, in steps along its line, and of a line, in line distances.
const UNEVEN: f64 = 0.1;
/// Difference below which directions are parallel: one step over a line of 1000 samples.
const PARALLEL: f64 = 1e-3;
/// Largest share of incomplete blades. With more, the trajectory is unlikely to consist of blades.
const MOST_INCOMPLETE: f64 = 0.5;
/// Smallest radius of the disc that all blades cover, in line distances and in Nyquist distances. A smaller disc
/// contains too little to compare.
const LEAST_RADIUS: f64 = 3.0;

/// Remedy in messages about trajectories without blades.
const REMEDY: &str = "PROPELLER blades are strips of parallel, evenly spaced lines about the centre of k-space, with \
                      samples in the order of acquisition; use gridding or conjugate gradients for other \
                      trajectories";

/// Blade: sample j of line l is at `first` + l `across` + j `along`, which are at a right angle.
pub(super) struct Blade {
    first: [f64; 2],
    across: [f64; 2],
    along: [f64; 2],
    /// Whether every second line is measured in the opposite direction.
    alternate: bool,
}

/// Complete blades of a trajectory, one after the other, with the same number of lines each.
pub(super) struct Blades {
    pub all: Vec<Blade>,
    /// First line of each blade in the trajectory. Incomplete blades may be in between.
    pub first_lines: Vec<usize>,
    /// Index of each blade among all blades of the scan, including incomplete ones.
    pub numbers: Vec<usize>,
    /// Number of blades of the scan, including incomplete ones.
    pub count: usize,
    /// Number of lines per blade.
    pub lines: usize,
    /// Number of samples per line.
    pub readout: usize,
    /// Radius of the disc about k = 0 that every blade covers, in cycles per voxel.
    pub radius: f64,
    /// One message per incomplete blade, for the caller to raise.
    pub warnings: Vec<String>,
}

/// Returns the length of a vector.
fn length(v: [f64; 2]) -> f64 {
    v[0].hypot(v[1])
}

/// Returns the dot product of two vectors.
fn dot(a: [f64; 2], b: [f64; 2]) -> f64 {
    a[0] * b[0] + a[1] * b[1]
}

/// Returns a - b.
fn minus(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    [a[0] - b[0], a[1] - b[1]]
}

/// Line of samples, as measured.
#[derive(Clone, Copy)]
struct BladeLine {
    first: [f64; 2],
    last: [f64; 2],
}

impl BladeLine {
    /// Returns the line in the opposite direction.
    fn reversed(self) -> BladeLine {
        BladeLine { first: self.last, last: self.first }
    }

    /// Returns whether two lines have the same direction and length.
    fn is_parallel(&self, other: &BladeLine) -> bool {
        let (a, b) = (minus(self.last, self.first), minus(other.last, other.first));
        length(minus(a, b)) < PARALLEL * length(a)
    }
}

impl Blade {
    /// Returns the index of a sample among the blade's samples.
    pub fn index(&self, line: usize, sample: usize, readout: usize) -> usize {
        let is_reversed = self.alternate && line % 2 == 1;
        line * readout + if is_reversed { readout - 1 - sample } else { sample }
    }

    /// Returns the position of k = 0, in lines and samples.
    pub fn centre(&self) -> [f64; 2] {
        [self.across, self.along].map(|step| -dot(self.first, step) / dot(step, step))
    }

    /// Returns the distance of lines, and that of samples on a line, in cycles per voxel.
    pub fn steps(&self) -> [f64; 2] {
        [length(self.across), length(self.along)]
    }

    /// Creates the blade with these lines.
    fn of(lines: &[BladeLine], readout: usize) -> Blade {
        let first = lines[0];
        let along = minus(first.last, first.first).map(|d| d / (readout - 1) as f64);
        let alternate = !first.is_parallel(&lines[1]);
        let aligned = |l: usize| if alternate && l % 2 == 1 { lines[l].reversed() } else { lines[l] };
        let across = minus(aligned(lines.len() - 1).first, first.first).map(|d| d / (lines.len() - 1) as f64);
        Blade { first: first.first, across, along, alternate }
    }

    /// Returns the distance of line l from its expected position, in line distances.
    fn deviation(&self, l: usize, line: BladeLine) -> f64 {
        let line = if self.alternate && l % 2 == 1 { line.reversed() } else { line };
        let expected = [0, 1].map(|a| self.first[a] + l as f64 * self.across[a]);
        length(minus(line.first, expected)) / length(self.across)
    }

    /// Returns the radius of the disc about k = 0 that the blade covers; negative if k = 0 is outside.
    fn radius(&self, lines: usize, readout: usize) -> f64 {
        let ends = |i: usize, count: usize| {
            let (centre, step) = (self.centre()[i], self.steps()[i]);
            (centre + 0.5).min(count as f64 - 0.5 - centre) * step
        };
        ends(0, lines).min(ends(1, readout))
    }
}

impl Blades {
    /// Finds the blades of samples at `k`, for an image of `dims` voxels. `lines` is the number of lines per blade; 0:
    /// the number of parallel, evenly spaced lines.
    pub fn of<T: Real>(k: &[&[T]], dims: &[usize], lines: usize) -> Result<Blades> {
        let &[kx, ky] = k else {
            bail!(Unsupported, "the trajectory has {} axes, but blades have 2: correct the slices one by one", k.len());
        };
        let at = |m: usize| [unwrapped(kx, m), unwrapped(ky, m)];
        let samples = kx.len();
        let readout = first_turn(samples, at);
        if readout < 2 || samples % readout != 0 {
            bail!(
                InvalidArgument,
                "the first line ends after {readout} samples, but {samples} samples are not a whole number of such \
                 lines: {REMEDY}"
            );
        }
        let count = samples / readout;
        let mut all_lines: Vec<BladeLine> = try_reserve(count, "the lines of blades")?;
        for line in 0..count {
            all_lines.push(straight(line, readout, at)?);
        }
        let LineGroups { lines, complete, incomplete } = LineGroups::of(&all_lines, lines)?;
        let blade_count = complete.len() + incomplete.len();
        let mut all = try_reserve(complete.len(), "the blades")?;
        let mut first_lines = try_reserve(complete.len(), "the blades")?;
        let mut numbers = try_reserve(complete.len(), "the blades")?;
        for &first in &complete {
            let number = complete.iter().filter(|&&other| other < first).count()
                + incomplete.iter().filter(|group| group.start < first).count();
            all.push(blade(number, &all_lines[first..first + lines], readout)?);
            first_lines.push(first);
            numbers.push(number);
        }
        let radius = all.iter().map(|b| b.radius(lines, readout)).fold(f64::INFINITY, f64::min);
        let spacing = all.iter().map(|b| b.steps()[0]).fold(0.0, f64::max);
        let nyquist = 1.0 / dims.iter().copied().fold(1, usize::max) as f64;
        if radius < LEAST_RADIUS * spacing.max(nyquist) {
            bail!(
                InvalidArgument,
                "the blades have a disc of radius {radius:.4} cycles per voxel in common about the centre of k-space, \
                 which is {:.1} distances of lines and {:.1} Nyquist distances (1 / voxels), but at least \
                 {LEAST_RADIUS} are needed: {REMEDY}",
                radius / spacing,
                radius / nyquist
            );
        }
        if all.len() < 2 {
            bail!(InvalidArgument, "there is only one blade of {lines} lines, but motion needs at least two: {REMEDY}");
        }
        let mut warnings = try_reserve(incomplete.len(), "the blades")?;
        for group in &incomplete {
            let number = complete.iter().filter(|&&other| other < group.start).count()
                + incomplete.iter().filter(|other| other.start < group.start).count();
            let side_by_side = lines_of_first(&all_lines[group.clone()]);
            let gap = match side_by_side < group.len() {
                true => format!("; the gap follows line {}", group.start + side_by_side - 1),
                false => String::new(),
            };
            let message = format!(
                "blade {number} (lines {} to {} of the scan) has {} of {lines} lines{gap}: the blade is left out, with \
                 weight 0; measure it again if the image has streaks",
                group.start,
                group.end - 1,
                group.len()
            );
            warnings.push(message);
        }
        Ok(Blades { all, first_lines, numbers, count: blade_count, lines, readout, radius, warnings })
    }

    /// Returns the number of samples per blade.
    pub fn samples(&self) -> usize {
        self.lines * self.readout
    }
}

/// Lines of a scan, divided into blades.
struct LineGroups {
    /// Number of lines of a complete blade.
    lines: usize,
    /// First line of each complete blade.
    complete: Vec<usize>,
    /// Lines of each incomplete blade.
    incomplete: Vec<Range<usize>>,
}

impl LineGroups {
    /// Divides lines into runs of neighbours. `lines` is the number of lines per blade; 0: the most frequent length of
    /// runs.
    fn of(all: &[BladeLine], lines: usize) -> Result<LineGroups> {
        const WHAT: &str = "the blades";
        let mut runs: Vec<Range<usize>> = try_reserve(all.len(), WHAT)?;
        let mut first = 0;
        while first < all.len() {
            let length = lines_of_first(&all[first..]).max(1);
            runs.push(first..first + length);
            first += length;
        }
        let usual = usual_length(&runs)?;
        if lines == 0 && usual < 2 {
            bail!(
                InvalidArgument,
                "most lines are not parallel neighbours of the next one, so that a blade would have one line: {REMEDY}"
            );
        }
        if lines == 1 {
            bail!(InvalidArgument, "blades need at least two lines, but one was requested: {REMEDY}");
        }
        let lines = if lines == 0 { usual } else { lines };
        let mut groups = LineGroups {
            lines,
            complete: try_reserve(all.len() / lines, WHAT)?,
            incomplete: try_reserve(runs.len(), WHAT)?,
        };
        for run in runs {
            if run.len() >= lines && run.len() % lines == 0 {
                groups.complete.extend(run.step_by(lines));
                continue;
            }
            // A missing line within a blade leaves two runs of one direction.
            match groups.incomplete.last_mut() {
                Some(last) if last.end == run.start && is_one_direction(&all[last.start], &all[run.start]) => {
                    last.end = run.end;
                }
                _ => groups.incomplete.push(run),
            }
        }
        let blades = groups.complete.len() + groups.incomplete.len();
        let too_long = groups.incomplete.iter().find(|group| group.len() >= lines);
        let too_few = groups.incomplete.len() as f64 > MOST_INCOMPLETE * blades as f64 || groups.complete.len() < 2;
        let bad = too_long.or(groups.incomplete.first().filter(|_| too_few));
        if let Some(bad) = bad {
            let number = groups.complete.iter().filter(|&&first| first < bad.start).count()
                + groups.incomplete.iter().filter(|other| other.start < bad.start).count();
            bail!(
                InvalidArgument,
                "blade {number} (lines {} to {}) has {} lines side by side: these are not blades of {lines} lines, the \
                 requested or most frequent number; {} of {blades} blades have that number, but at least half of \
                 them, and two, must have it: {REMEDY}",
                bad.start,
                bad.end - 1,
                lines_of_first(&all[bad.clone()]),
                groups.complete.len()
            );
        }
        Ok(groups)
    }
}

/// Returns the most frequent length of runs; the largest of equally frequent ones.
fn usual_length(runs: &[Range<usize>]) -> Result<usize> {
    let mut lengths = try_collect(runs.len(), "the blades", runs.iter().map(ExactSizeIterator::len))?;
    lengths.sort_unstable();
    let of_equals = lengths.chunk_by(|a, b| a == b).max_by_key(|equal| equal.len());
    Ok(of_equals.map_or(0, |equal| equal[0]))
}

/// Returns whether two lines are parallel, in the same or the opposite direction.
fn is_one_direction(a: &BladeLine, b: &BladeLine) -> bool {
    a.is_parallel(b) || a.is_parallel(&b.reversed())
}

/// Returns how many lines, from the first one, are parallel and evenly spaced.
fn lines_of_first(lines: &[BladeLine]) -> usize {
    let &[first, second, ..] = lines else { return lines.len() };
    let alternate = !first.is_parallel(&second);
    if alternate && !first.is_parallel(&second.reversed()) {
        return 1;
    }
    let aligned = |l: usize| if alternate && l % 2 == 1 { lines[l].reversed() } else { lines[l] };
    let across = minus(aligned(1).first, first.first);
    let continues = |l: &usize| {
        let step = minus(aligned(*l).first, aligned(l - 1).first);
        aligned(*l).is_parallel(&first) && length(minus(step, across)) < 2.0 * UNEVEN * length(across)
    };
    1 + (1..lines.len()).take_while(continues).count()
}

/// Returns the line of evenly spaced samples.
fn straight(line: usize, readout: usize, at: impl Fn(usize) -> [f64; 2]) -> Result<BladeLine> {
    let from = line * readout;
    let (first, last) = (at(from), at(from + readout - 1));
    let step = minus(last, first).map(|d| d / (readout - 1) as f64);
    let width = length(step);
    if width == 0.0 {
        bail!(InvalidArgument, "line {line} begins and ends at the same position, {first:?}: {REMEDY}");
    }
    for j in 0..readout {
        let expected = [0, 1].map(|a| first[a] + step[a] * j as f64);
        let off = length(minus(at(from + j), expected)) / width;
        if off > UNEVEN {
            bail!(
                InvalidArgument,
                "sample {} is {off:.2} steps off the even line {line}, of samples {from} to {}: {REMEDY}",
                from + j,
                from + readout - 1
            );
        }
    }
    Ok(BladeLine { first, last })
}

/// Returns the blade with these lines; an error if they are not even.
fn blade(b: usize, lines: &[BladeLine], readout: usize) -> Result<Blade> {
    let blade = Blade::of(lines, readout);
    for (l, &line) in lines.iter().enumerate() {
        let off = blade.deviation(l, line);
        if off > UNEVEN {
            bail!(InvalidArgument, "line {l} of blade {b} is {off:.2} distances of lines off the even blade: {REMEDY}");
        }
    }
    let [across, along] = blade.steps();
    let skew = dot(blade.across, blade.along).abs() / (across * along);
    if skew * across > UNEVEN * along {
        bail!(
            InvalidArgument,
            "each line of blade {b} begins {:.2} samples later than the previous one: {REMEDY}",
            skew * across / along
        );
    }
    Ok(blade)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::trajectory::{SpokeOrder, Trajectory};

    /// Recognises the blades of a trajectory, of `lines` lines each.
    fn blades_of(t: &Trajectory, lines: usize) -> Result<Blades> {
        Blades::of(&t.axes(), &[64, 64], lines)
    }

    /// Returns the error message for a trajectory.
    fn message(t: &Trajectory, lines: usize) -> String {
        blades_of(t, lines).err().expect("an error").to_string()
    }

    /// Returns a trajectory with changed samples.
    fn changed(t: &Trajectory, change: impl Fn(usize, [f64; 2]) -> [f64; 2]) -> Trajectory {
        let k: Vec<[f64; 2]> = (0..t.samples()).map(|m| change(m, [t.axis(0)[m], t.axis(1)[m]])).collect();
        let axis = |a: usize| k.iter().map(|k| k[a]).collect::<Vec<f64>>();
        Trajectory::new(vec![axis(0), axis(1)], t.samples_per_shot()).unwrap()
    }

    #[test]
    fn blades_are_found_with_their_lines_and_centres() {
        for (count, lines, samples) in [(17, 24, 96), (5, 10, 64), (9, 13, 100)] {
            let t = Trajectory::propeller(count, lines, samples).unwrap();
            for given in [0, lines] {
                let blades = blades_of(&t, given).unwrap();
                assert_eq!((blades.all.len(), blades.lines, blades.readout), (count, lines, samples));
                let radius = (lines as f64 - 0.5 - (lines / 2) as f64) / samples as f64;
                assert!((blades.radius - radius).abs() < 1e-9);
                for (b, blade) in blades.all.iter().enumerate() {
                    let [u, v] = blade.centre();
                    assert!((u - (lines / 2) as f64).abs() < 1e-6 && (v - (samples / 2) as f64).abs() < 1e-6);
                    assert_eq!(blade.index(3, 7, samples), 3 * samples + 7, "blade {b}");
                }
            }
        }
        // Lines in alternating directions, as an EPI readout measures them.
        let t = Trajectory::propeller(6, 12, 64).unwrap();
        let k: Vec<usize> =
            (0..t.samples()).map(|m| if m / 64 % 2 == 1 { m / 64 * 64 + 63 - m % 64 } else { m }).collect();
        let axis = |a: usize| k.iter().map(|&m| t.axis(a)[m]).collect::<Vec<f64>>();
        let blades = blades_of(&Trajectory::new(vec![axis(0), axis(1)], 64).unwrap(), 0).unwrap();
        assert_eq!((blades.all.len(), blades.lines), (6, 12));
        assert_eq!((blades.all[2].index(3, 7, 64), blades.all[2].index(4, 7, 64)), (3 * 64 + 56, 4 * 64 + 7));
    }

    /// Returns the trajectory without some lines.
    fn without(t: &Trajectory, lost: &[usize]) -> Trajectory {
        let readout = t.samples_per_shot();
        let stays = |m: &usize| !lost.contains(&(m / readout));
        let axis = |a: usize| (0..t.samples()).filter(stays).map(|m| t.axis(a)[m]).collect::<Vec<f64>>();
        Trajectory::new(vec![axis(0), axis(1)], readout).unwrap()
    }

    #[test]
    fn incomplete_blades_are_left_out_with_a_warning() {
        let t = Trajectory::propeller(8, 12, 64).unwrap();
        let complete = [0, 12, 24, 36, 48, 60, 72, 84];
        // Missing lines: the first, second, middle and last line of a blade; two lines; lines of three blades.
        for lost in [&[0][..], &[24], &[25], &[30], &[35], &[95], &[26, 27], &[26, 29], &[3, 40, 95]] {
            let of = |line: usize| line / 12;
            let short = without(&t, lost);
            for given in [0, 12] {
                let blades = blades_of(&short, given).unwrap();
                assert_eq!((blades.count, blades.lines, blades.readout), (8, 12, 64), "{lost:?}");
                let left: Vec<usize> = (0..8).filter(|b| lost.iter().all(|&line| of(line) != *b)).collect();
                assert_eq!(blades.numbers, left, "{lost:?}");
                let first = |&b: &usize| complete[b] - lost.iter().filter(|&&line| line < complete[b]).count();
                assert_eq!(blades.first_lines, left.iter().map(first).collect::<Vec<_>>(), "{lost:?}");
                let mut damaged: Vec<usize> = lost.iter().map(|&line| of(line)).collect();
                damaged.dedup();
                assert_eq!(blades.warnings.len(), damaged.len(), "{:?}", blades.warnings);
                for (b, text) in damaged.iter().zip(&blades.warnings) {
                    assert!(text.contains(&format!("blade {b} (lines ")) && text.contains("of 12 lines"), "{text}");
                }
            }
        }
        // Lines in alternating directions.
        let turned = |m: usize| if m / 64 % 2 == 1 { m / 64 * 64 + 63 - m % 64 } else { m };
        let axis = |a: usize| (0..t.samples()).map(|m| t.axis(a)[turned(m)]).collect::<Vec<f64>>();
        let alternating = without(&Trajectory::new(vec![axis(0), axis(1)], 64).unwrap(), &[41]);
        assert_eq!(blades_of(&alternating, 0).unwrap().numbers, [0, 1, 2, 4, 5, 6, 7]);
    }

    #[test]
    fn other_trajectories_are_errors() {
        let t = Trajectory::propeller(8, 12, 64).unwrap();
        assert!(message(&t, 5).contains("blade 0 (lines 0 to 11) has 12 lines side by side: these are not blades of 5"));
        assert!(
            message(&t, 24).contains("blade 0 (lines 0 to 11) has 12 lines side by side: these are not blades of 24")
        );
        assert!(message(&t, 6).contains("centre of k-space"), "{}", message(&t, 6));
        let radial = Trajectory::radial2d(20, 64, SpokeOrder::Linear).unwrap();
        assert!(message(&radial, 0).contains("one line"));
        let cartesian = Trajectory::cartesian(&[64, 64]).unwrap();
        assert!(message(&cartesian, 0).contains("one blade of 64 lines"));
        // All blades except two have missing lines.
        let short = without(&t, &[0, 17, 30, 40, 52, 63]);
        assert!(message(&short, 12).contains("2 of 8 blades have that number"), "{}", message(&short, 12));
        let bent = changed(&t, |m, k| if m == 700 { [k[0] + 0.01, k[1]] } else { k });
        assert!(message(&bent, 0).contains("sample 700"), "{}", message(&bent, 0));
        let thin = Trajectory::propeller(8, 4, 64).unwrap();
        assert!(message(&thin, 0).contains("1.5 distances of lines"), "{}", message(&thin, 0));
        let off = |m: usize| if m / (12 * 64) == 3 { 0.1 } else { 0.0 };
        let moved = changed(&t, |m, k| k.map(|k| 0.6 * k - off(m)));
        assert!(message(&moved, 0).contains("in common"), "{}", message(&moved, 0));
        assert!(Blades::of::<f64>(&[&[0.0], &[0.0], &[0.0]], &[4, 4, 4], 0).is_err());
    }
}
