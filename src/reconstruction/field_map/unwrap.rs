//! Phase unwrapping along neighbours, the most reliable pairs first (Abdul-Rahman et al., Appl. Opt. 46:6623, 2007),
//! and connected pieces of the object.

use super::fit::nearest;
use super::grid::{each_voxel, VoxelGrid};
use crate::base::error::{try_collect, try_reserve, try_vec, Result};
use crate::base::interrupt;
use std::cmp::Ordering;
use std::f64::consts::{PI, TAU};

/// Name of the step in the message of an interruption.
const UNWRAPPING: &str = "the unwrapping of the field map";
/// Mean square of an angle that is unknown.
const UNKNOWN_ANGLE: f64 = PI * PI / 3.0;

impl VoxelGrid<'_> {
    /// Returns the connected pieces of the `signal_voxels` voxels with signal: pairs of piece and voxel, sorted.
    pub fn pieces(&self, signal_voxels: usize) -> Result<Vec<(usize, usize)>> {
        let voxels = self.weights.len();
        let mut parent = try_collect(voxels, UNWRAPPING, 0..voxels)?;
        let root = |parent: &mut [usize], mut i: usize| {
            while parent[i] != i {
                parent[i] = parent[parent[i]];
                i = parent[i];
            }
            i
        };
        each_voxel(self.dims, 0..voxels, |i, at| {
            for axis in 0..3 {
                if let Some(next) = self.next_with_signal(i, at, axis) {
                    let (a, b) = (root(&mut parent, i), root(&mut parent, next));
                    // The smaller index becomes the root, whatever the order.
                    parent[a.max(b)] = a.min(b);
                }
            }
        });
        let mut all = try_reserve(signal_voxels, UNWRAPPING)?;
        for i in (0..voxels).filter(|&i| self.weights[i] > 0.0) {
            all.push((root(&mut parent, i), i));
        }
        sort(&mut all, &|a: &(usize, usize), b| a.cmp(b))?;
        Ok(all)
    }

    /// Undoes wraps of the phase between neighbours, beginning with the most reliable pairs. Each of the connected
    /// objects, which have `signal_voxels` voxels in total, gets the median phase nearest 0. Returns the number of
    /// changed voxels.
    pub fn unwrap(&self, phase: &mut [f64], signal_voxels: usize) -> Result<usize> {
        /// Number of pairs between two checks for an interrupt.
        const CHECK_INTERVAL: usize = 1 << 16;
        let voxels = phase.len();
        let pairs = self.pairs_by_reliability(phase)?;
        let mut trees = PhaseTrees {
            parent: try_collect(voxels, UNWRAPPING, 0..voxels)?,
            turns: try_vec(voxels, 0i32, UNWRAPPING)?,
            size: try_vec(voxels, 1u32, UNWRAPPING)?,
        };
        for (number, (_, a, b)) in pairs.into_iter().enumerate() {
            if number % CHECK_INTERVAL == 0 {
                interrupt::check(UNWRAPPING)?;
            }
            // Turns to add to b for the smaller step from a.
            let step = ((nearest(phase[b], phase[a]) - phase[b]) / TAU).round() as i32;
            trees.join(a, b, step);
        }
        // Voxels by object, in the order of their unwrapped phases: object, phase, voxel, turns.
        let mut all = try_reserve::<(usize, f64, usize, i32)>(signal_voxels, UNWRAPPING)?;
        for i in (0..voxels).filter(|&i| self.weights[i] > 0.0) {
            let (object, turns) = trees.root(i);
            all.push((object, phase[i] + TAU * f64::from(turns), i, turns));
        }
        sort(&mut all, &|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.cmp(&b.2)))?;
        let mut changed = 0;
        for object in all.chunk_by(|a, b| a.0 == b.0) {
            let total: f64 = object.iter().map(|v| self.weights[v.2]).sum();
            let mut sum = 0.0;
            let median = object.iter().find(|v| {
                sum += self.weights[v.2];
                sum >= 0.5 * total
            });
            let median_turns = median.map_or(0.0, |v| (v.1 / TAU).round());
            for &(_, unwrapped, i, turns) in object {
                changed += usize::from(f64::from(turns) != median_turns);
                phase[i] = unwrapped - TAU * median_turns;
            }
        }
        Ok(changed)
    }

    /// Returns all pairs of neighbours with signal, the most reliable first: unreliability, then both voxels.
    ///
    /// The unreliability of a voxel is the sum of its squared second phase differences (Abdul-Rahman et al.); that of a
    /// pair is the sum of both voxels.
    fn pairs_by_reliability(&self, phase: &[f64]) -> Result<Vec<(f64, usize, usize)>> {
        let voxels = phase.len();
        let wrapped_difference = |a: f64, b: f64| nearest(b - a, 0.0);
        let mut unreliability = try_vec(voxels, 0.0f64, UNWRAPPING)?;
        let mut count = 0;
        each_voxel(self.dims, 0..voxels, |i, at| {
            for axis in (0..3).filter(|&a| self.dims[a] > 1) {
                count += usize::from(self.next_with_signal(i, at, axis).is_some());
                let stride = self.strides()[axis];
                let is_inside = at[axis] > 0 && at[axis] + 1 < self.dims[axis];
                let is_known = is_inside && [i - stride, i, i + stride].iter().all(|&j| self.weights[j] > 0.0);
                unreliability[i] += match is_known {
                    true => (wrapped_difference(phase[i], phase[i + stride])
                        - wrapped_difference(phase[i - stride], phase[i]))
                    .powi(2),
                    false => UNKNOWN_ANGLE,
                };
            }
        });
        let mut pairs = try_reserve::<(f64, usize, usize)>(count, UNWRAPPING)?;
        each_voxel(self.dims, 0..voxels, |i, at| {
            for axis in 0..3 {
                if let Some(next) = self.next_with_signal(i, at, axis) {
                    pairs.push((unreliability[i] + unreliability[next], i, next));
                }
            }
        });
        drop(unreliability);
        sort(&mut pairs, &|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))))?;
        Ok(pairs)
    }
}

/// Trees of joined voxels, with the phase turns between each voxel and its parent.
struct PhaseTrees {
    /// Parent of each voxel; a root is its own parent.
    parent: Vec<usize>,
    /// Turns of each voxel relative to its parent.
    turns: Vec<i32>,
    /// Number of voxels of the tree, for roots.
    size: Vec<u32>,
}

impl PhaseTrees {
    /// Returns the root of a voxel's tree and the turns of the voxel relative to it. Shortens the path.
    fn root(&mut self, i: usize) -> (usize, i32) {
        let PhaseTrees { parent, turns, .. } = self;
        let (mut at, mut total) = (i, 0);
        while parent[at] != at {
            let above = parent[at];
            if parent[above] != above {
                turns[at] += turns[above];
                parent[at] = parent[above];
            }
            total += turns[at];
            at = parent[at];
        }
        (at, total)
    }

    /// Joins the trees of two voxels, so that b has `step` turns more than a.
    fn join(&mut self, a: usize, b: usize, step: i32) {
        let ((root_a, turns_a), (root_b, turns_b)) = (self.root(a), self.root(b));
        if root_a == root_b {
            return;
        }
        let difference = turns_a + step - turns_b;
        if self.size[root_a] >= self.size[root_b] {
            (self.parent[root_b], self.turns[root_b]) = (root_a, difference);
            self.size[root_a] = self.size[root_a].saturating_add(self.size[root_b]);
        } else {
            (self.parent[root_a], self.turns[root_a]) = (root_b, -difference);
            self.size[root_b] = self.size[root_b].saturating_add(self.size[root_a]);
        }
    }
}

/// Sorts in parts, with checks for an interrupt in between: a volume has tens of millions of pairs of neighbours.
fn sort<E>(values: &mut [E], order: &impl Fn(&E, &E) -> Ordering) -> Result<()> {
    /// Number of values that are sorted at once, in a tenth of a second.
    const PART: usize = 1 << 20;
    interrupt::check(UNWRAPPING)?;
    if values.len() <= PART {
        values.sort_unstable_by(order);
        return Ok(());
    }
    let (low, _, high) = values.select_nth_unstable_by(values.len() / 2, order);
    sort(low, order)?;
    sort(high, order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::SplitMix64;

    #[test]
    fn lists_of_any_length_are_sorted() {
        let mut random = SplitMix64(1);
        for len in [0, 1, 2, 3, 1000, 1 << 20, (1 << 20) + 1, 2_500_000] {
            // A small range, so that many values are equal.
            let mut values: Vec<u32> = (0..len).map(|_| (random.next() >> 44) as u32).collect();
            let mut sorted = values.clone();
            sorted.sort();
            sort(&mut values, &u32::cmp).unwrap();
            assert!(values == sorted, "{len} values");
        }
    }
}
