//! Echo-planar lines from the trajectory description `ConventionalEPI`.

use super::options::TrajectoryOptions;
use super::points;
use super::spiral::{described, parameter};
use crate::base::error::{bail, Result};
use crate::base::geometry::in_range;
use crate::scan::acquisition_header::AcquisitionHeader;
use crate::scan::header::{HeaderEncoding, TrajectoryDescription};
use crate::scan::shots::Shot;
use crate::scan::warnings::warn;
use std::ops::Range;

/// The identifier of the description.
const IDENTIFIER: &str = "ConventionalEPI";

/// A trapezoidal gradient of height 1; times in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Trapezoid {
    ramp_up: f64,
    flat_top: f64,
    ramp_down: f64,
}

impl Trapezoid {
    fn duration(&self) -> f64 {
        self.ramp_up + self.flat_top + self.ramp_down
    }

    /// Returns the integral of the gradient until `time`.
    fn area(&self, time: f64) -> f64 {
        let up = time.clamp(0.0, self.ramp_up);
        let flat = (time - self.ramp_up).clamp(0.0, self.flat_top);
        let down = (time - self.ramp_up - self.flat_top).clamp(0.0, self.ramp_down);
        // Without a ramp, its part is 0, and not 0 / 0.
        let ramp = |part: f64, length: f64| if length > 0.0 { part * part / (2.0 * length) } else { 0.0 };
        ramp(up, self.ramp_up) + flat + down - ramp(down, self.ramp_down)
    }
}

/// Echo-planar lines.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EpiTrajectory {
    gradient: Trapezoid,
    /// The time between samples in microseconds.
    sample_time: f64,
    /// The time from the beginning of the gradient to the first sample.
    start: f64,
    /// The delay of the gradient.
    delay: f64,
    samples: usize,
    /// The description, for the log.
    pub text: String,
}

/// Returns a time of the description in microseconds; 0 if it is missing, as in Gadgetron.
fn time(description: &TrajectoryDescription, name: &str) -> Result<f64> {
    match description.number(name) {
        None => Ok(0.0),
        Some(time) if time.is_finite() && time >= 0.0 => Ok(time),
        Some(time) => bail!(
            BadFile,
            "{name} of the trajectory description {IDENTIFIER} is {time} microseconds: it must be 0 or more"
        ),
    }
}

impl EpiTrajectory {
    /// Returns the lines of an image.
    pub fn new(encoding: &HeaderEncoding, shots: &[Shot], options: &TrajectoryOptions) -> Result<EpiTrajectory> {
        let description = described(encoding, IDENTIFIER, "echo-planar")?;
        let first = &shots[0].header;
        let dwell = parameter(description, "dwellTime")?;
        let sample_time = options.sample_time(dwell, first.sample_time_us as f64)?;
        let samples = parameter(description, "numSamples")?;
        if samples.fract() != 0.0 || samples > u16::MAX as f64 {
            bail!(BadFile, "numSamples of the trajectory description {IDENTIFIER} is {samples}: it must be an integer");
        }
        let readout = samples * sample_time;
        let flat_top = match time(description, "flatTopTime")? {
            0.0 => readout,
            flat_top => flat_top,
        };
        let gradient = Trapezoid {
            ramp_up: time(description, "rampUpTime")?,
            flat_top,
            ramp_down: time(description, "rampDownTime")?,
        };
        let centred = 0.5 * (gradient.duration() - readout);
        // Times in headers are rounded.
        if centred < -0.5 * sample_time {
            bail!(
                BadFile,
                "{samples} samples of {sample_time} microseconds last longer than the gradient of {} microseconds: \
                 correct the trajectory description {IDENTIFIER}",
                gradient.duration()
            );
        }
        let stated = description.number("acqDelayTime");
        let start = match (options.acquisition_delay_us, stated) {
            (Some(delay), _) => delay,
            (None, Some(stated)) if !options.follows_gadgetron() && !((stated - centred).abs() <= sample_time) => {
                bail!(
                BadFile,
                "acqDelayTime of the trajectory description is {stated} microseconds, but samples in the middle of the \
                 gradient begin after {centred}: set the option acquisition_delay_us to the right one (Gadgetron \
                 always uses the second)"
            )
            }
            (None, _) => centred,
        };
        warn_of_differences(shots, gradient, first.sample_time_us as f64);
        let delay = options.gradient_delay_us.unwrap_or(0.0);
        let text = format!(
            "echo-planar ({IDENTIFIER}), {samples} samples of {sample_time} microseconds, on a gradient of {} + {} + {} \
             from {start}, gradient delay {delay}",
            gradient.ramp_up, gradient.flat_top, gradient.ramp_down
        );
        Ok(EpiTrajectory { gradient, sample_time, start, delay, samples: samples as usize, text })
    }

    /// Returns the position of a sample in cycles per voxel, without reversal.
    fn position(&self, sample: usize) -> f64 {
        // As in Gadgetron, at the end of the sample, and k-space is as wide as the readout.
        let area = |time: f64| self.gradient.area(time);
        let time = self.start + (sample as f64 + 1.0) * self.sample_time - self.delay;
        let readout = area(self.start + self.samples as f64 * self.sample_time) - area(self.start);
        (area(time) - 0.5 * area(self.gradient.duration())) / readout
    }

    /// Returns the samples of an acquisition inside k-space: delays can move a few samples out of it.
    pub fn available_samples(&self, header: &AcquisitionHeader) -> Range<usize> {
        let kept = header.kept_samples();
        let mut range = kept.clone();
        while !range.is_empty() && !in_range(self.position(range.start)) {
            range.start += 1;
        }
        while !range.is_empty() && !in_range(self.position(range.end - 1)) {
            range.end -= 1;
        }
        // More samples are an error of the header.
        if 8 * range.len() < 7 * kept.len() {
            return kept;
        }
        range
    }

    /// Appends the coordinates along x.
    pub fn add(&self, shot: &Shot, coordinates: &mut [Vec<f32>]) -> Result<()> {
        let header = &shot.header;
        if header.number_of_samples as usize != self.samples {
            bail!(
                BadFile,
                "the acquisition has {} samples, but the trajectory description {IDENTIFIER} has {}: correct numSamples",
                header.number_of_samples,
                self.samples
            );
        }
        let sign = if header.is_reversed() { -1.0 } else { 1.0 };
        for sample in header.kept_samples() {
            let remedy = "correct the trajectory description, or the option acquisition_delay_us";
            points::push(coordinates, &[sign * self.position(sample)], sample, remedy)?;
        }
        Ok(())
    }
}

/// Warns of effects that coordinates do not describe.
fn warn_of_differences(shots: &[Shot], gradient: Trapezoid, sample_time: f64) {
    let reversed = shots.iter().filter(|shot| shot.header.is_reversed()).count();
    if reversed > 0 && reversed < shots.len() {
        warn(
            "echo-planar lines in both directions: differences of their phase and delay are not corrected, and cause \
             ghosts. If necessary, correct the lines before, or set the option gradient_delay_us",
        );
    }
    let header = &shots[0].header;
    let shift: f32 = header.position.iter().zip(&header.read_dir).map(|(p, d)| p * d).sum();
    if gradient.ramp_up + gradient.ramp_down > 0.0 && sample_time > 0.0 && shift.abs() > 0.5 {
        warn(format!(
            "the image is {shift} mm off the centre along the readout, and samples on the ramps may have a phase that \
             depends on the scanner's receiver. It is not corrected here"
        ));
    }
}
