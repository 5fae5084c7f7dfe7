//! Spokes in a plane: equal, golden and tiny golden angles.

use super::options::{HeaderTrajectoryKind, SpokeNumber, TrajectoryOptions};
use super::readout::SpokeReadouts;
use crate::base::error::{bail, Result};
use crate::scan::header::HeaderEncoding;
use crate::scan::shots::Shot;
use std::ops::Range;

/// The golden ratio.
const GOLDEN_RATIO: f64 = 1.618_033_988_749_895;

/// Returns the tiny golden angle of this number in degrees (Wundrak et al. 2015, equation 2). Negative for a negative
/// number.
pub(super) fn tiny_golden_angle(number: i32) -> f64 {
    180.0 / (GOLDEN_RATIO + number.unsigned_abs() as f64 - 1.0) * number.signum() as f64
}

/// The angles of spokes as a function of their number.
#[derive(Debug, Clone, Copy, PartialEq)]
enum SpokeAngles {
    /// Equal angles: `count` spokes from number `first`, in frames that interleave.
    Equal { range: f64, first: u16, count: usize, frames: usize },
    /// Multiples of a tiny golden angle.
    Golden { number: i32, spoke_number: SpokeNumber },
}

/// Spokes in a plane.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RadialTrajectory {
    angles: SpokeAngles,
    /// The angle of the first spoke in degrees.
    first_angle: f64,
    readouts: SpokeReadouts,
    /// The voxel sizes in units of that along x.
    ratios: [f64; 3],
    /// The description, for the log.
    pub text: String,
}

/// Returns the number of spokes along encoding step 1, and its first step.
///
/// # Errors
/// `Unsupported` if it is neither in the header nor in the options.
pub(super) fn spoke_count(encoding: &HeaderEncoding, options: &TrajectoryOptions) -> Result<(usize, u16)> {
    match (options.spoke_count, encoding.steps[0]) {
        (Some(count), limits) => Ok((count as usize, limits.map_or(0, |l| l.minimum))),
        (None, Some(limits)) => Ok((limits.count(), limits.minimum)),
        (None, None) => bail!(
            Unsupported,
            "the header does not say how many spokes there are: store the limits of kspace_encoding_step_1 in the XML \
             header, or set the option spoke_count"
        ),
    }
}

/// Returns which number determines the direction of a spoke.
///
/// # Errors
/// `Unsupported` if the two numbers differ and no option chooses.
pub(super) fn spoke_number(shots: &[Shot], is_stack: bool, options: &TrajectoryOptions) -> Result<SpokeNumber> {
    match options.spoke_number {
        Some(SpokeNumber::AcquisitionOrder) if is_stack => bail!(
            InvalidArgument,
            "the option spoke_number is acquisition_order, but the spokes of a stack of stars are numbered by \
             kspace_encode_step_1: remove the option"
        ),
        Some(number) => return Ok(number),
        None if is_stack => return Ok(SpokeNumber::EncodingStep),
        None if options.follows_gadgetron() => return Ok(SpokeNumber::AcquisitionOrder),
        None => {}
    }
    let differs = |shot: &&Shot| shot.order != shot.header.idx.kspace_encode_step_1 as usize;
    match shots.iter().find(differs) {
        None => Ok(SpokeNumber::EncodingStep),
        Some(shot) => bail!(
            Unsupported,
            "acquisition {} has kspace_encode_step_1 {} and is number {} of its slice and set in the measurement (from \
             0): the header does not say which of them determines the direction of the spoke: set the option \
             spoke_number to encoding_step or acquisition_order",
            shot.number,
            shot.header.idx.kspace_encode_step_1,
            shot.order
        ),
    }
}

/// Returns the number of a shot.
pub(super) fn number_of(shot: &Shot, number: SpokeNumber) -> usize {
    match number {
        SpokeNumber::EncodingStep => shot.header.idx.kspace_encode_step_1 as usize,
        SpokeNumber::AcquisitionOrder => shot.order,
    }
}

/// Returns the value of an option, or Gadgetron's if its conventions are chosen.
///
/// # Errors
/// `Unsupported`.
fn required<T>(name: &str, value: Option<T>, convention: T, what: &str, options: &TrajectoryOptions) -> Result<T> {
    match value {
        Some(value) => Ok(value),
        None if options.follows_gadgetron() => Ok(convention),
        None => bail!(
            Unsupported,
            "no trajectory is stored, and the header does not say {what}: store the trajectory, set the option {name}, \
             or set the option convention to gadgetron, which settles all that is open"
        ),
    }
}

impl RadialTrajectory {
    /// Returns the spokes of an image. `options` include the header's description.
    pub fn new(
        kind: HeaderTrajectoryKind,
        encoding: &HeaderEncoding,
        shots: &[Shot],
        ratios: [f64; 3],
        options: &TrajectoryOptions,
    ) -> Result<RadialTrajectory> {
        let (is_stack, voxels) = (encoding.encoded.matrix[2] > 1, encoding.encoded.matrix[0]);
        let (angles, text) = if kind == HeaderTrajectoryKind::GoldenAngle {
            let what = "by which golden angle the spokes turn (1 for 111.246 degrees, N for 180 / (0.618 + N))";
            let number = required("golden_angle", options.golden_angle, 1, what, options)?;
            let spoke_number = spoke_number(shots, is_stack, options)?;
            let counter = match spoke_number {
                SpokeNumber::EncodingStep => "kspace_encode_step_1",
                SpokeNumber::AcquisitionOrder => "the order of acquisition",
            };
            let text = format!("golden angle {number} ({:.3} degrees), by {counter}", tiny_golden_angle(number));
            (SpokeAngles::Golden { number, spoke_number }, text)
        } else {
            let what = "over which range of angles the spokes are spread (180 and 360 degrees are usual)";
            let range = required("angle_range_degrees", options.angle_range_degrees, 180.0, what, options)?;
            let (count, first) = spoke_count(encoding, options)?;
            let frames = options.frames_per_rotation.unwrap_or(1) as usize;
            let interleaved = if frames > 1 { format!(" in {frames} interleaved frames") } else { String::new() };
            let text = format!("radial, {count} spokes over {range} degrees{interleaved}");
            (SpokeAngles::Equal { range, first, count, frames }, text)
        };
        let what = "at which angle the first spoke is";
        let first_angle = required("first_angle_degrees", options.first_angle_degrees, 180.0, what, options)?;
        let readouts = SpokeReadouts::new(shots, voxels, options)?;
        let convention = if options.follows_gadgetron() { ", by Gadgetron's conventions" } else { "" };
        let text = format!(
            "{text}, the first at {first_angle}; {} samples across k-space, its centre at {}{convention}",
            readouts.first.full, readouts.first.centre
        );
        Ok(RadialTrajectory { angles, first_angle, readouts, ratios, text })
    }

    /// Returns the angle of a spoke in degrees.
    ///
    /// # Errors
    /// `BadFile` if the counter of the spoke is outside the header's limits.
    fn angle(&self, shot: &Shot) -> Result<f64> {
        let turned = match self.angles {
            SpokeAngles::Golden { number, spoke_number } => {
                tiny_golden_angle(number) * number_of(shot, spoke_number) as f64
            }
            SpokeAngles::Equal { range, first, count, frames } => {
                let step = shot.header.idx.kspace_encode_step_1;
                let Some(spoke) = (step as usize).checked_sub(first as usize).filter(|&spoke| spoke < count) else {
                    bail!(
                        BadFile,
                        "kspace_encode_step_1 is {step}, but the {count} spokes have the steps from {first}: correct \
                         the encoding limits in the XML header, or set the option spoke_count"
                    );
                };
                let frame = shot.order / count % frames;
                range * (spoke as f64 + frame as f64 / frames as f64) / count as f64
            }
        };
        Ok(self.first_angle + turned)
    }

    /// Returns the samples for which there are coordinates.
    pub fn available_samples(&self, shot: &Shot) -> Range<usize> {
        self.readouts.of(shot).available_samples(&shot.header)
    }

    /// Appends the coordinates in the plane.
    pub fn add(&self, shot: &Shot, coordinates: &mut [Vec<f32>]) -> Result<()> {
        let (sin, cos) = (self.angle(shot)? % 360.0).to_radians().sin_cos();
        self.readouts.of(shot).add(&shot.header, &[cos, sin * self.ratios[1]], coordinates)
    }
}
