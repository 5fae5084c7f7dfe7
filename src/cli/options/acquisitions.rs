//! Options for the interpretation of a scanner's acquisitions.

use clap::builder::PossibleValuesParser;
use clap::Args;
use recon::scan::{
    AssemblyOptions, HeaderTrajectoryKind, SpiralExtent, SpokeNumber, TrajectoryConvention, TrajectoryOptions,
};

/// How acquisitions of an ISMRMRD file become k-space.
#[derive(Args, Clone, Default)]
pub struct AcquisitionArgs {
    /// Conjugate the samples: k-space of the file has the other sign, exp(+i 2 pi k.r), and the image would be turned
    /// by 180 degrees. Some vendors' data have this sign after conversion; `recon info` shows the vendor
    #[arg(long, help_heading = "Input")]
    pub conjugate: bool,

    /// Trajectory of acquisitions that have none [default: that of the header]
    #[arg(long, value_name = "KIND", value_parser = names(HeaderTrajectoryKind::NAMES), help_heading = HEADING)]
    header_trajectory: Option<String>,

    /// Conventions for everything that neither the header nor an option says. gadgetron: spokes over 180 degrees from
    /// the positive x axis, in the order of acquisition
    #[arg(long, value_name = "NAME", value_parser = names(TrajectoryConvention::NAMES), help_heading = HEADING)]
    convention: Option<String>,

    /// Range of the angles of spokes or interleaves in degrees, positive from x towards y [default: from the header]
    #[arg(long, value_name = "DEGREES", allow_negative_numbers = true, help_heading = HEADING)]
    angle_range_degrees: Option<f64>,

    /// Angle of the first spoke or interleaf in degrees [default: from the header]
    #[arg(long, value_name = "DEGREES", allow_negative_numbers = true, help_heading = HEADING)]
    first_angle_degrees: Option<f64>,

    /// Number of the tiny golden angle: 1 for the golden angle, 111.246 degrees; negative for a rotation from y to x
    /// [default: from the header]
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = HEADING)]
    golden_angle: Option<i32>,

    /// Number of spokes in the range of angles [default: from the encoding limits]
    #[arg(long, value_name = "N", help_heading = HEADING)]
    spoke_count: Option<u32>,

    /// Number of a spoke from which its direction follows [default: both must agree]
    #[arg(long, value_name = "NUMBER", value_parser = names(SpokeNumber::NAMES), help_heading = HEADING)]
    spoke_number: Option<String>,

    /// Number of successive frames whose spokes interleave [default: 1]
    #[arg(long, value_name = "N", help_heading = HEADING)]
    frames_per_rotation: Option<u32>,

    /// Number of samples along a spoke from one edge of k-space to the other [default: that of the acquisitions]
    #[arg(long, value_name = "N", help_heading = HEADING)]
    readout_samples: Option<u32>,

    /// Sample at the centre of k-space [default: that of the acquisitions; spiral: 0]
    #[arg(long, value_name = "SAMPLE", help_heading = HEADING)]
    center_sample: Option<f64>,

    /// Delay of the gradients in microseconds [default: 0]
    #[arg(long, value_name = "US", allow_negative_numbers = true, help_heading = HEADING)]
    gradient_delay_us: Option<f64>,

    /// Time between samples in microseconds [default: from the file]
    #[arg(long, value_name = "US", help_heading = HEADING)]
    sample_time_us: Option<f64>,

    /// Scale of a spiral: k in 1/cm times the voxel size, or krmax_per_cm at the edge of the matrix [default: both must
    /// agree]
    #[arg(long, value_name = "SCALE", value_parser = names(SpiralExtent::NAMES), help_heading = HEADING)]
    spiral_extent: Option<String>,

    /// Time from the beginning of an echo-planar gradient to its first sample in microseconds [default: the samples are
    /// in the middle of the gradient]
    #[arg(long, value_name = "US", help_heading = HEADING)]
    acquisition_delay_us: Option<f64>,
}

const HEADING: &str = "Trajectory from the header";

fn names<T, const N: usize>(table: [(T, &'static str); N]) -> PossibleValuesParser {
    PossibleValuesParser::new(table.map(|entry| entry.1))
}

/// Returns the value of a name, which the parser has checked.
fn named<T, const N: usize>(table: [(T, &'static str); N], name: &Option<String>) -> Option<T> {
    let name = name.as_ref()?;
    table.into_iter().find(|entry| entry.1 == name).map(|entry| entry.0)
}

impl AcquisitionArgs {
    /// Returns the options of the library.
    pub fn options(&self) -> AssemblyOptions {
        let trajectory = TrajectoryOptions {
            kind: named(HeaderTrajectoryKind::NAMES, &self.header_trajectory),
            convention: named(TrajectoryConvention::NAMES, &self.convention),
            angle_range_degrees: self.angle_range_degrees,
            first_angle_degrees: self.first_angle_degrees,
            golden_angle: self.golden_angle,
            spoke_count: self.spoke_count,
            spoke_number: named(SpokeNumber::NAMES, &self.spoke_number),
            frames_per_rotation: self.frames_per_rotation,
            readout_samples: self.readout_samples,
            center_sample: self.center_sample,
            gradient_delay_us: self.gradient_delay_us,
            sample_time_us: self.sample_time_us,
            spiral_extent: named(SpiralExtent::NAMES, &self.spiral_extent),
            acquisition_delay_us: self.acquisition_delay_us,
        };
        AssemblyOptions { conjugate: self.conjugate, trajectory, ..AssemblyOptions::default() }
    }
}
