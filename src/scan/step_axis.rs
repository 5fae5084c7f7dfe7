//! The relation of encoding steps to k-space.

use super::header::HeaderEncoding;
use crate::base::error::{bail, Result};
use crate::base::geometry::wrap_coordinate;

/// A phase-encoding direction: y for encoding step 1, z for encoding step 2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StepAxis {
    /// 0 for encoding step 1, 1 for encoding step 2.
    which: usize,
    /// The step through the centre of k-space.
    pub centre: usize,
    /// The number of voxels of the encoded matrix.
    voxels: usize,
}

impl StepAxis {
    /// Returns the direction of encoding step 1 + `which`.
    pub fn new(encoding: &HeaderEncoding, which: usize) -> StepAxis {
        let voxels = encoding.encoded.matrix[1 + which];
        StepAxis { which, centre: encoding.steps[which].map_or(voxels / 2, |l| l.center as usize), voxels }
    }

    /// Returns the coordinate of an encoding step in cycles per voxel.
    ///
    /// # Errors
    /// `CoordinateOutOfRange`.
    pub fn coordinate(&self, step: u16) -> Result<f32> {
        let StepAxis { which, centre, voxels } = *self;
        match wrap_coordinate(((step as f64 - centre as f64) / voxels as f64) as f32) {
            Some(k) => Ok(k),
            None => bail!(
                CoordinateOutOfRange,
                "encoding step {} is {step}, which is outside k-space: the centre is step {centre} of {voxels}: correct \
                 the encoding limits or the matrix size in the XML header",
                which + 1
            ),
        }
    }
}
