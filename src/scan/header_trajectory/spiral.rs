//! Spirals from the trajectory description `HargreavesVDS2000`.

use super::options::{SpiralExtent, TrajectoryOptions};
use super::points;
use super::spiral_design::SpiralLimits;
use crate::base::error::{bail, Result};
use crate::scan::acquisition_header::AcquisitionHeader;
use crate::scan::header::{HeaderEncoding, TrajectoryDescription};
use crate::scan::shots::Shot;
use crate::scan::warnings::warn;
use std::ops::Range;

/// The identifier of the description.
const IDENTIFIER: &str = "HargreavesVDS2000";

/// Interleaves of a spiral.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SpiralTrajectory {
    /// The positions of the first interleaf before its rotation, in 1/cm: one per sample, and the end.
    nodes: Vec<[f64; 2]>,
    interleaves: usize,
    /// The angles of the first interleaf, and of all interleaves, in degrees.
    first_angle: f64,
    angle_range: f64,
    /// Cycles per voxel of 1/cm along x and y.
    scale: [f64; 2],
    /// The gradient delay, and the sample at the beginning, in samples.
    delay: f64,
    start: f64,
    /// The description, for the log.
    pub text: String,
}

/// Returns a positive parameter of the description.
///
/// # Errors
/// `BadFile`.
pub(super) fn parameter(description: &TrajectoryDescription, name: &str) -> Result<f64> {
    match description.number(name) {
        Some(value) if value.is_finite() && value > 0.0 => Ok(value),
        Some(value) => bail!(
            BadFile,
            "{name} of the trajectory description {} is {value}: it must be positive",
            description.identifier
        ),
        None => bail!(
            BadFile,
            "the trajectory description {} has no {name}: add it to the XML header, or store the trajectory",
            description.identifier
        ),
    }
}

/// Returns the description with this identifier.
///
/// # Errors
/// `Unsupported`.
pub(super) fn described<'a>(
    encoding: &'a HeaderEncoding,
    identifier: &str,
    kind: &str,
) -> Result<&'a TrajectoryDescription> {
    match &encoding.description {
        Some(description) if description.identifier == identifier => Ok(description),
        Some(description) => bail!(
            Unsupported,
            "no trajectory is stored, and the trajectory description of the {kind} trajectory is {:?}: only {identifier} \
             can be computed; store the trajectory",
            description.identifier
        ),
        None => bail!(
            Unsupported,
            "no trajectory is stored, and the header of the {kind} trajectory has no <trajectoryDescription> \
             {identifier}: add it, or store the trajectory"
        ),
    }
}

/// Returns the coefficients of the field of view.
fn fov_coefficients(description: &TrajectoryDescription) -> Result<Vec<f64>> {
    let count = match description.number("fov_coefficients") {
        None => 1,
        Some(count) if count.fract() == 0.0 && (1.0..=10.0).contains(&count) => count as usize,
        Some(count) => bail!(BadFile, "fov_coefficients of the trajectory description is {count}: it must be 1 to 10"),
    };
    let mut coefficients = vec![parameter(description, "FOVCoeff_1_cm")?];
    for i in 2..=count {
        let name = format!("FOVCoeff_{i}_cm");
        match description.number(&name) {
            Some(value) if value.is_finite() => coefficients.push(value),
            _ => bail!(BadFile, "the trajectory description has {count} fov_coefficients, but no valid {name}"),
        }
    }
    if count > 1 {
        warn(format!(
            "the spiral has {count} coefficients of the field of view, of which Gadgetron reads the first only: if the \
             image is wrong, correct fov_coefficients in the trajectory description"));
    }
    Ok(coefficients)
}

/// Returns the number of cycles per voxel along x of 1/cm, and the name of the scale.
fn scale(encoding: &HeaderEncoding, krmax: f64, options: &TrajectoryOptions) -> Result<(f64, &'static str)> {
    let space = &encoding.encoded;
    let (from_matrix, n) = (0.5 / krmax, space.matrix[0] as f64);
    let from_fov = space.fov_mm[0] as f64 / 10.0 / n;
    match options.spiral_extent {
        Some(SpiralExtent::Matrix) => Ok((from_matrix, "krmax at the edge of k-space")),
        Some(SpiralExtent::FieldOfView) if from_fov > 0.0 => Ok((from_fov, "scaled by the field of view")),
        Some(SpiralExtent::FieldOfView) => bail!(
            BadFile,
            "the option spiral_extent is field_of_view, but the encoded field of view is 0 mm along x: correct it in \
             the XML header"
        ),
        // Less than half a voxel at the edge of the image.
        None if from_fov == 0.0 || (from_fov / from_matrix - 1.0).abs() <= 1.0 / n => {
            Ok((from_matrix, "krmax at the edge of k-space"))
        }
        None => bail!(
            BadFile,
            "the spiral ends at {krmax} per cm (krmax_per_cm), but {n} voxels in {} mm end at {:.5} per cm: set the \
             option spiral_extent to field_of_view if k is in 1/cm, or to matrix if the spiral ends at the edge of \
             k-space (as in Gadgetron)",
            space.fov_mm[0],
            0.5 / from_fov
        ),
    }
}

impl SpiralTrajectory {
    /// Returns the interleaves of an image.
    pub fn new(
        encoding: &HeaderEncoding,
        shots: &[Shot],
        ratios: [f64; 3],
        options: &TrajectoryOptions,
    ) -> Result<SpiralTrajectory> {
        let description = described(encoding, IDENTIFIER, "spiral")?;
        let number = |name: &str| parameter(description, name);
        let described_us = number("SamplingTime_ns")? * 1e-3;
        let sample_us = options.sample_time(described_us, shots[0].header.sample_time_us as f64)?;
        let interleaves = number("interleaves")?;
        if interleaves.fract() != 0.0 || interleaves > u16::MAX as f64 {
            bail!(BadFile, "interleaves of the trajectory description is {interleaves}: it must be a small integer");
        }
        let limits = SpiralLimits {
            sample_time: sample_us * 1e-6,
            interleaves,
            gradient: number("MaxGradient_G_per_cm")?,
            slew_rate: number("MaxSlewRate_G_per_cm_per_s")?,
            fov: fov_coefficients(description)?,
            krmax: number("krmax_per_cm")?,
        };
        let nodes = limits.design()?;
        let (scale, scale_name) = scale(encoding, limits.krmax, options)?;
        let ratio = if scale_name.starts_with("krmax") { 1.0 } else { ratios[1] };
        // Gadgetron's: the interleaves begin in the direction of negative x and turn from y towards x.
        let first_angle = options.first_angle_degrees.unwrap_or(180.0);
        let angle_range = options.angle_range_degrees.unwrap_or(-360.0);
        let delay_us = options.gradient_delay_us.unwrap_or(0.0);
        let text = format!(
            "spiral ({IDENTIFIER}), {interleaves} interleaves of {} samples over {angle_range} degrees, the first at \
             {first_angle}, gradient delay {delay_us} microseconds, {scale_name}",
            nodes.len() - 1
        );
        let trajectory = SpiralTrajectory {
            interleaves: interleaves as usize,
            first_angle,
            angle_range,
            scale: [scale, scale * ratio],
            delay: delay_us / sample_us,
            start: options.center_sample.unwrap_or(0.0),
            nodes,
            text,
        };
        trajectory.check_end(&shots[0])?;
        Ok(trajectory)
    }

    /// Returns the time of a sample since the beginning of the gradient, in samples.
    fn time(&self, sample: usize) -> f64 {
        sample as f64 - self.start - self.delay
    }

    /// Returns the samples of an acquisition before the end of the spiral.
    pub fn available_samples(&self, header: &AcquisitionHeader) -> Range<usize> {
        // The last position is the end of the last sample's gradient.
        let last = self.nodes.len() as f64 - 2.0;
        let kept = header.kept_samples();
        kept.start..kept.start + kept.take_while(|&sample| self.time(sample) <= last).count()
    }

    /// Warns if the samples of a shot end long before the spiral does.
    fn check_end(&self, shot: &Shot) -> Result<()> {
        let available = self.available_samples(&shot.header);
        if available.is_empty() {
            bail!(
                BadFile,
                "acquisition {} has no sample on the spiral, which has {} samples: correct discard_pre, or the options \
                 center_sample and gradient_delay_us",
                shot.number,
                self.nodes.len() - 1
            );
        }
        let last = available.end - 1;
        let radius = |k: [f64; 2]| k[0].hypot(k[1]);
        let (found, end) = (radius(self.base(self.time(last))), radius(self.nodes[self.nodes.len() - 1]));
        if found < 0.95 * end {
            warn(format!(
                "the spiral of {} samples has {} in acquisition {}, which end at {:.0} % of its radius: the image will be \
                 blurred. Correct the trajectory description, if the acquisitions are complete",
                self.nodes.len() - 1,
                shot.header.number_of_samples,
                shot.number,
                100.0 * found / end));
        }
        Ok(())
    }

    /// Returns the position of the first interleaf at a time in samples. Gradients are constant between samples, so
    /// that positions are linear.
    fn base(&self, time: f64) -> [f64; 2] {
        let time = time.clamp(0.0, self.nodes.len() as f64 - 1.0);
        let before = (time.floor() as usize).min(self.nodes.len() - 2);
        let part = time - before as f64;
        std::array::from_fn(|axis| self.nodes[before][axis] * (1.0 - part) + self.nodes[before + 1][axis] * part)
    }

    /// Appends the coordinates in the plane.
    pub fn add(&self, shot: &Shot, coordinates: &mut [Vec<f32>]) -> Result<()> {
        let step = shot.header.idx.kspace_encode_step_1 as usize;
        if step >= self.interleaves {
            bail!(
                BadFile,
                "kspace_encode_step_1 is {step}, but the trajectory description has {} interleaves: correct either",
                self.interleaves
            );
        }
        let angle = self.first_angle + self.angle_range * step as f64 / self.interleaves as f64;
        let (sin, cos) = angle.to_radians().sin_cos();
        for sample in shot.header.kept_samples() {
            let [x, y] = self.base(self.time(sample));
            let point = [(x * cos - y * sin) * self.scale[0], (x * sin + y * cos) * self.scale[1]];
            let remedy = "set the option spiral_extent, or correct krmax_per_cm";
            points::push(coordinates, &point, sample, remedy)?;
        }
        Ok(())
    }
}
