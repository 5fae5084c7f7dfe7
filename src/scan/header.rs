//! The XML header of ISMRMRD: the elements that image reconstruction needs.

/// Maximum length of an XML header in bytes.
pub const MAX_XML: usize = 1 << 20;

/// How k-space is traversed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TrajectoryKind {
    /// Lines of a Cartesian grid.
    Cartesian,
    /// Echo-planar.
    Epi,
    /// Spokes through the centre.
    Radial,
    /// Spokes at golden angles.
    GoldenAngle,
    /// Spirals.
    Spiral,
    /// Anything else.
    #[default]
    Other,
}

impl TrajectoryKind {
    /// All kinds with their names, in the order of the variants.
    pub const NAMES: [(TrajectoryKind, &'static str); 6] = [
        (TrajectoryKind::Cartesian, "cartesian"),
        (TrajectoryKind::Epi, "epi"),
        (TrajectoryKind::Radial, "radial"),
        (TrajectoryKind::GoldenAngle, "goldenangle"),
        (TrajectoryKind::Spiral, "spiral"),
        (TrajectoryKind::Other, "other"),
    ];

    /// Returns the name in ISMRMRD.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].1
    }
}

/// The relation of calibration lines for parallel imaging to the undersampled scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalibrationMode {
    /// Lines in the centre of the scan itself.
    Embedded,
    /// Undersampled images that together are complete.
    Interleaved,
    /// Lines of a separate acquisition of the same encoding.
    Separate,
    /// Lines of a different scan.
    External,
    /// Anything else.
    Other,
}

impl CalibrationMode {
    /// All modes with their names, in the order of the variants.
    pub const NAMES: [(CalibrationMode, &'static str); 5] = [
        (CalibrationMode::Embedded, "embedded"),
        (CalibrationMode::Interleaved, "interleaved"),
        (CalibrationMode::Separate, "separate"),
        (CalibrationMode::External, "external"),
        (CalibrationMode::Other, "other"),
    ];

    /// Returns the name in ISMRMRD.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize].1
    }
}

/// Parallel imaging of an encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParallelImaging {
    /// Acceleration factors along `kspace_encode_step_1` and `kspace_encode_step_2`.
    pub acceleration: [u16; 2],
    /// The calibration mode; `None` if the header does not have one.
    pub calibration: Option<CalibrationMode>,
}

/// The voxel grid of an encoded or reconstructed space.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EncodingSpace {
    /// The number of voxels along x, y, z; never 0.
    pub matrix: [usize; 3],
    /// The field of view along x, y, z in mm.
    pub fov_mm: [f32; 3],
}

/// The range of an encoding step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EncodingLimits {
    /// The first step.
    pub minimum: u16,
    /// The last step.
    pub maximum: u16,
    /// The step through the centre of k-space.
    pub center: u16,
}

impl EncodingLimits {
    /// Returns the number of steps.
    pub fn count(&self) -> usize {
        self.maximum.saturating_sub(self.minimum) as usize + 1
    }
}

/// A number that the sequence's author named: `userParameterLong` or `userParameterDouble`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UserParameter {
    /// The name.
    pub name: String,
    /// The value.
    pub value: f64,
    /// Whether it is a `userParameterLong`.
    pub is_integer: bool,
}

/// The parameters of a trajectory, as the sequence's author named them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrajectoryDescription {
    /// The name of the description, which gives the parameters their meaning, such as `HargreavesVDS2000`.
    pub identifier: String,
    /// The parameters of `userParameterLong` and `userParameterDouble`.
    pub numbers: Vec<UserParameter>,
}

impl TrajectoryDescription {
    /// Returns the parameter of this name.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.numbers.iter().find(|parameter| parameter.name == name).map(|parameter| parameter.value)
    }
}

/// One encoding of a measurement: matrix sizes, trajectory and encoding steps.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HeaderEncoding {
    /// The grid that k-space is sampled for.
    pub encoded: EncodingSpace,
    /// The grid of the reconstructed image.
    pub recon: EncodingSpace,
    /// How k-space is traversed.
    pub trajectory: TrajectoryKind,
    /// The ranges of `kspace_encode_step_1` and `kspace_encode_step_2`; `None` if the header does not have them.
    pub steps: [Option<EncodingLimits>; 2],
    /// The range of `kspace_encode_step_0`; `None` if the header does not have it.
    pub readout: Option<EncodingLimits>,
    /// The range of the averages; `None` if the header does not have it.
    pub averages: Option<EncodingLimits>,
    /// The range of the slices; `None` if the header does not have it.
    pub slices: Option<EncodingLimits>,
    /// The range of the contrasts; `None` if the header does not have it.
    pub contrasts: Option<EncodingLimits>,
    /// The range of the phases; `None` if the header does not have it.
    pub phases: Option<EncodingLimits>,
    /// The range of the repetitions; `None` if the header does not have it.
    pub repetitions: Option<EncodingLimits>,
    /// The range of the sets; `None` if the header does not have it.
    pub sets: Option<EncodingLimits>,
    /// Parallel imaging; `None` if the header does not have it.
    pub parallel: Option<ParallelImaging>,
    /// The parameters of the trajectory; `None` if the header does not have them.
    pub description: Option<TrajectoryDescription>,
}

/// The XML header of a dataset.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Header {
    /// The encodings; acquisitions refer to them by position.
    pub encodings: Vec<HeaderEncoding>,
    /// The number of receive channels; `None` if the header does not have it.
    pub receiver_channels: Option<u16>,
    /// The ratio of the receiver's noise bandwidth to its sampling bandwidth; `None` if the header does not have it.
    pub noise_bandwidth: Option<f64>,
    /// The resonance frequency of protons in Hz; `None` if the header does not have it.
    pub h1_resonance_hz: Option<u64>,
    /// The echo times in ms, one per contrast; empty if the header does not have them.
    pub echo_times_ms: Vec<f64>,
    /// The repetition times in ms; empty if the header does not have them.
    pub repetition_times_ms: Vec<f64>,
    /// The scanner's vendor; `None` if the header does not have it.
    pub vendor: Option<String>,
    /// The scanner's model; `None` if the header does not have it.
    pub model: Option<String>,
    /// The patient's position, such as `HFS`; `None` if the header does not have it. Positions and directions of
    /// acquisitions are in the patient's coordinates, whatever this position is.
    pub patient_position: Option<String>,
    /// The measurements on which this one depends, as (type, identifier): a separate noise scan has the type `Noise`.
    pub dependencies: Vec<(String, String)>,
    /// The parameters of `userParameterLong` and `userParameterDouble`.
    pub user_parameters: Vec<UserParameter>,
}
