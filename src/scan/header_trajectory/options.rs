//! Options for trajectories from the header.

use crate::base::error::{bail, Result};
use crate::scan::header::{HeaderEncoding, TrajectoryDescription, TrajectoryKind};

/// The kind of a trajectory that is computed from the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderTrajectoryKind {
    /// Lines of a Cartesian grid: also echo-planar lines without samples on the gradient's ramps.
    Cartesian,
    /// Spokes at equal angles, in a plane or as a stack of stars.
    Radial,
    /// Spokes at multiples of a golden or tiny golden angle, in a plane or as a stack of stars.
    GoldenAngle,
    /// Spokes through a ball, in directions from the golden means of two dimensions (Chan et al. 2009).
    KooshballGoldenMeans,
    /// Spokes through a ball, in directions on a phyllotaxis spiral (Piccini et al. 2011).
    KooshballPhyllotaxis,
    /// Spokes through a ball, on a phyllotaxis spiral with the same solid angle for each: the trajectory of
    /// [`Trajectory::radial3d`](crate::Trajectory::radial3d).
    KooshballEqualArea,
    /// Spirals of Hargreaves' variable-density design.
    Spiral,
    /// Echo-planar lines with samples on the gradient's ramps.
    Epi,
}

impl HeaderTrajectoryKind {
    /// All kinds with their names, in the order of the variants.
    pub const NAMES: [(HeaderTrajectoryKind, &'static str); 8] = [
        (HeaderTrajectoryKind::Cartesian, "cartesian"),
        (HeaderTrajectoryKind::Radial, "radial"),
        (HeaderTrajectoryKind::GoldenAngle, "goldenangle"),
        (HeaderTrajectoryKind::KooshballGoldenMeans, "kooshball_golden_means"),
        (HeaderTrajectoryKind::KooshballPhyllotaxis, "kooshball_phyllotaxis"),
        (HeaderTrajectoryKind::KooshballEqualArea, "kooshball_equal_area"),
        (HeaderTrajectoryKind::Spiral, "spiral"),
        (HeaderTrajectoryKind::Epi, "epi"),
    ];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].1
    }
}

/// The beginning of the identifier of a trajectory description that settles all options of spokes: the name of the kind
/// follows, and the parameters have the names of the options.
pub const DESCRIPTION_PREFIX: &str = "recon_";

/// Conventions that settle everything which the header leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrajectoryConvention {
    /// The conventions of Gadgetron's radial gadgets, in the plane: the range of angles is 180 degrees, and the first
    /// sample of the first spoke is at the end of the positive x axis. The golden angle is 111.246 degrees, and
    /// spokes are numbered in the order of their acquisition.
    Gadgetron,
}

impl TrajectoryConvention {
    /// All conventions with their names, in the order of the variants.
    pub const NAMES: [(TrajectoryConvention, &'static str); 1] = [(TrajectoryConvention::Gadgetron, "gadgetron")];
}

/// The number of a spoke, from which its direction is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpokeNumber {
    /// The counter `kspace_encode_step_1`.
    EncodingStep,
    /// The number of earlier acquisitions of the same encoding, slice, contrast and set in the measurement.
    AcquisitionOrder,
}

impl SpokeNumber {
    /// All numbers with their names, in the order of the variants.
    pub const NAMES: [(SpokeNumber, &'static str); 2] =
        [(SpokeNumber::EncodingStep, "encoding_step"), (SpokeNumber::AcquisitionOrder, "acquisition_order")];
}

/// The scale of a spiral.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpiralExtent {
    /// k in 1/cm times the voxel size of the encoded space.
    FieldOfView,
    /// `krmax_per_cm` is the edge of the encoded matrix's k-space, as in Gadgetron.
    Matrix,
}

impl SpiralExtent {
    /// All scales with their names, in the order of the variants.
    pub const NAMES: [(SpiralExtent, &'static str); 2] =
        [(SpiralExtent::FieldOfView, "field_of_view"), (SpiralExtent::Matrix, "matrix")];
}

/// Choices that the header leaves open. `None` means that the header, or an unambiguous convention, decides; otherwise
/// an error names the options that are needed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TrajectoryOptions {
    /// The kind of trajectory. It replaces the header's, except for Cartesian encodings.
    pub kind: Option<HeaderTrajectoryKind>,
    /// Conventions for everything that is not in the header or in the other options.
    pub convention: Option<TrajectoryConvention>,
    /// The range of the angles of spokes, or of spiral interleaves, in degrees: the angle from the first shot to the
    /// (missing) shot after the last one. Positive from x towards y.
    pub angle_range_degrees: Option<f64>,
    /// The angle of the direction from the first to the last sample of the first spoke, or of the beginning of the
    /// first interleaf, in degrees from x towards y. Kooshball: the angle that is added to all azimuths; default: 0.
    pub first_angle_degrees: Option<f64>,
    /// The number N of the tiny golden angle 180 / (T + N - 1) degrees, T = (1 + sqrt(5)) / 2: 1 for the golden angle
    /// of 111.246 degrees, 2 for 68.754. Negative for a rotation from y towards x.
    pub golden_angle: Option<i32>,
    /// The number of spokes in the range of angles. `None`: from the encoding limits.
    pub spoke_count: Option<u32>,
    /// The number of a spoke at golden angles or in a kooshball. `None`: both numbers must be the same.
    pub spoke_number: Option<SpokeNumber>,
    /// The number of successive frames of `spoke_count` spokes whose spokes interleave: frame f is rotated by
    /// f / `frames_per_rotation` of the angle between spokes (Gadgetron's mode 1). Default: 1.
    pub frames_per_rotation: Option<u32>,
    /// The number of samples along a spoke from one edge of k-space to the other. `None`: the number of samples of an
    /// acquisition, if this is unambiguous.
    pub readout_samples: Option<u32>,
    /// The sample at the centre of k-space; spiral: at its beginning. `None`: the header's; spiral: 0.
    pub center_sample: Option<f64>,
    /// The delay of the gradients relative to the samples in microseconds. Default: 0.
    pub gradient_delay_us: Option<f64>,
    /// The time between samples in microseconds. `None`: from the acquisitions and from the trajectory description,
    /// which must agree.
    pub sample_time_us: Option<f64>,
    /// The scale of a spiral. `None`: both scales must agree.
    pub spiral_extent: Option<SpiralExtent>,
    /// The time from the beginning of an echo-planar gradient to its first sample in microseconds. `None`: the samples
    /// are in the middle of the gradient, and the header must agree.
    pub acquisition_delay_us: Option<f64>,
}

/// Returns the kind of trajectory of an encoding without a stored trajectory.
///
/// # Errors
/// `Unsupported` if the header does not name a kind; `InvalidArgument` if an option does not apply to the kind.
pub(super) fn kind_of(encoding: &HeaderEncoding, options: &TrajectoryOptions) -> Result<HeaderTrajectoryKind> {
    use HeaderTrajectoryKind::*;
    let described = encoding.description.as_ref().and_then(|d| d.identifier.strip_prefix(DESCRIPTION_PREFIX));
    let described = described.and_then(|name| HeaderTrajectoryKind::NAMES.iter().find(|entry| entry.1 == name));
    let kind = match (encoding.trajectory, options.kind.or(described.map(|entry| entry.0))) {
        (TrajectoryKind::Cartesian, _) => Cartesian,
        (_, Some(kind)) => kind,
        (TrajectoryKind::Radial, None) => Radial,
        (TrajectoryKind::GoldenAngle, None) => GoldenAngle,
        (TrajectoryKind::Spiral, None) => Spiral,
        (TrajectoryKind::Epi, None) => Epi,
        (TrajectoryKind::Other, None) => bail!(
            Unsupported,
            "no trajectory is stored, and the XML header does not say which one it is (<trajectory> is {}): store it, \
             or set the option header_trajectory to one of {}",
            encoding.trajectory.name(),
            HeaderTrajectoryKind::NAMES.map(|entry| entry.1).join(", ")
        ),
    };
    options.check(kind)?;
    Ok(kind)
}

impl TrajectoryOptions {
    /// Checks the values, and that no option is set in vain.
    fn check(&self, kind: HeaderTrajectoryKind) -> Result<()> {
        use HeaderTrajectoryKind::*;
        let is_koosh = matches!(kind, KooshballGoldenMeans | KooshballPhyllotaxis | KooshballEqualArea);
        let has_spokes = is_koosh || matches!(kind, Radial | GoldenAngle);
        let applies = [
            ("angle_range_degrees", self.angle_range_degrees.is_some(), matches!(kind, Radial | Spiral)),
            ("first_angle_degrees", self.first_angle_degrees.is_some(), has_spokes || kind == Spiral),
            ("golden_angle", self.golden_angle.is_some(), kind == GoldenAngle),
            (
                "spoke_count",
                self.spoke_count.is_some(),
                matches!(kind, Radial | KooshballPhyllotaxis | KooshballEqualArea),
            ),
            ("spoke_number", self.spoke_number.is_some(), is_koosh || kind == GoldenAngle),
            ("frames_per_rotation", self.frames_per_rotation.is_some(), kind == Radial),
            ("readout_samples", self.readout_samples.is_some(), has_spokes),
            ("center_sample", self.center_sample.is_some(), has_spokes || kind == Spiral),
            ("spiral_extent", self.spiral_extent.is_some(), kind == Spiral),
            ("acquisition_delay_us", self.acquisition_delay_us.is_some(), kind == Epi),
        ];
        // Calibration lines on a Cartesian grid may accompany any trajectory.
        for (name, is_set, is_used) in applies {
            if is_set && !is_used && kind != Cartesian {
                bail!(
                    InvalidArgument,
                    "the option {name} is set, but does not apply to the trajectory {}",
                    kind.name()
                );
            }
        }
        let numbers = [
            ("angle_range_degrees", self.angle_range_degrees, self.angle_range_degrees != Some(0.0)),
            ("first_angle_degrees", self.first_angle_degrees, true),
            ("golden_angle", self.golden_angle.map(f64::from), self.golden_angle != Some(0)),
            ("spoke_count", self.spoke_count.map(f64::from), self.spoke_count != Some(0)),
            ("frames_per_rotation", self.frames_per_rotation.map(f64::from), self.frames_per_rotation != Some(0)),
            ("readout_samples", self.readout_samples.map(f64::from), self.readout_samples != Some(0)),
            ("center_sample", self.center_sample, self.center_sample.is_none_or(|s| s >= 0.0)),
            ("gradient_delay_us", self.gradient_delay_us, true),
            ("sample_time_us", self.sample_time_us, self.sample_time_us.is_none_or(|t| t > 0.0)),
            ("acquisition_delay_us", self.acquisition_delay_us, self.acquisition_delay_us.is_none_or(|t| t >= 0.0)),
        ];
        for (name, value, is_valid) in numbers {
            if let Some(value) = value.filter(|value| !is_valid || !value.is_finite()) {
                bail!(InvalidArgument, "the option {name} cannot be {value}");
            }
        }
        Ok(())
    }

    /// Returns whether Gadgetron's conventions settle what is open.
    pub(super) fn follows_gadgetron(&self) -> bool {
        self.convention == Some(TrajectoryConvention::Gadgetron)
    }

    /// Returns the options with the numbers of a description of this library. Options that are set are not replaced.
    ///
    /// # Errors
    /// `BadFile` if a number of the description is not one.
    pub(super) fn with_description(&self, description: Option<&TrajectoryDescription>) -> Result<TrajectoryOptions> {
        let mut options = *self;
        let Some(description) = description.filter(|d| d.identifier.starts_with(DESCRIPTION_PREFIX)) else {
            return Ok(options);
        };
        let angle = |name: &str, is_allowed: fn(f64) -> bool| match description.number(name) {
            Some(value) if !value.is_finite() || !is_allowed(value) => {
                bail!(BadFile, "the XML header: {name} of the trajectory description cannot be {value}")
            }
            value => Ok(value),
        };
        let golden = angle("golden_angle", |n| n != 0.0 && n.fract() == 0.0 && n.abs() <= 1e6)?;
        options.angle_range_degrees = options.angle_range_degrees.or(angle("angle_range_degrees", |a| a != 0.0)?);
        options.first_angle_degrees = options.first_angle_degrees.or(angle("first_angle_degrees", |_| true)?);
        options.golden_angle = options.golden_angle.or(golden.map(|n| n as i32));
        Ok(options)
    }

    /// Returns the time between samples in microseconds; 0 if it is unknown. `described` and `acquired` are the times
    /// of the trajectory description and of an acquisition; 0 if unknown.
    ///
    /// # Errors
    /// `BadFile` if they differ by more than 1 %.
    pub(super) fn sample_time(&self, described: f64, acquired: f64) -> Result<f64> {
        if let Some(time) = self.sample_time_us {
            return Ok(time);
        }
        if described > 0.0 && acquired > 0.0 && (described / acquired - 1.0).abs() > 0.01 {
            bail!(
                BadFile,
                "the time between samples is {described} microseconds in the trajectory description and {acquired} in \
                 the acquisition: set the option sample_time_us to the right one"
            );
        }
        Ok(if described > 0.0 { described } else { acquired })
    }
}
