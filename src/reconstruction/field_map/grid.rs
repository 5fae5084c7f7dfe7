//! Voxels on a grid with their weights in the fit.

use crate::base::workers::{fold, Workers};
use std::f64::consts::PI;
use std::ops::Range;

/// Name of the computation in messages.
pub(super) const WHAT: &str = "the field map";

/// Grid of voxels with their weights.
pub(super) struct VoxelGrid<'a> {
    pub dims: [usize; 3],
    /// Inverse variance of each voxel's off-resonance, 0 without signal.
    pub weights: &'a [f64],
}

/// Calls `each(i, [x, y, z])` for the voxels of a range.
pub(super) fn each_voxel(dims: [usize; 3], range: Range<usize>, mut each: impl FnMut(usize, [usize; 3])) {
    let [nx, ny, _] = dims;
    let mut at = [range.start % nx, range.start / nx % ny, range.start / nx / ny];
    for i in range {
        each(i, at);
        at[0] += 1;
        if at[0] == nx {
            at[0] = 0;
            at[1] += 1;
            if at[1] == ny {
                at[1] = 0;
                at[2] += 1;
            }
        }
    }
}

impl VoxelGrid<'_> {
    /// Returns the distance of a voxel to the next one along each axis, in array elements.
    pub fn strides(&self) -> [usize; 3] {
        [1, self.dims[0], self.dims[0] * self.dims[1]]
    }

    /// Returns the voxel after `i` along the axis, if both have signal.
    pub fn next_with_signal(&self, i: usize, at: [usize; 3], axis: usize) -> Option<usize> {
        let next = i + self.strides()[axis];
        (at[axis] + 1 < self.dims[axis] && self.weights[i] > 0.0 && self.weights[next] > 0.0).then_some(next)
    }

    /// Counts the pairs of neighbours with signal whose phases differ by more than half a turn.
    pub fn jumps(&self, workers: &dyn Workers, phase: &[f64]) -> usize {
        let of_part = |range: Range<usize>| {
            let mut jumps = 0;
            each_voxel(self.dims, range, |i, at| {
                for axis in 0..3 {
                    let jump = |next: usize| (phase[next] - phase[i]).abs() > PI;
                    jumps += usize::from(self.next_with_signal(i, at, axis).is_some_and(jump));
                }
            });
            jumps
        };
        fold(workers, phase.len(), 0, of_part, |a, b| a + b)
    }

    /// Returns the weighted RMS of the difference of two maps.
    pub fn distance(&self, workers: &dyn Workers, a: &[f64], b: &[f64]) -> f64 {
        let of_part = |range: Range<usize>| {
            range.fold([0.0; 2], |sum: [f64; 2], i| {
                [sum[0] + self.weights[i] * (a[i] - b[i]).powi(2), sum[1] + self.weights[i]]
            })
        };
        let [square, weight] = fold(workers, a.len(), [0.0; 2], of_part, |a, b| [a[0] + b[0], a[1] + b[1]]);
        (square / weight).sqrt()
    }
}
