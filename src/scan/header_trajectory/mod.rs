//! Trajectories that are computed from the header if the acquisitions carry none.
//!
//! Coordinates follow the header's elements, and Gadgetron's conventions for the descriptions that are its own. An
//! option settles each question that the header leaves open; without it, an error names the option.

mod epi;
mod kooshball;
mod options;
mod points;
mod radial;
mod readout;
mod spiral;
mod spiral_design;

use super::header::{Header, HeaderEncoding, TrajectoryKind};
use super::shots::Shot;
use super::step_axis::StepAxis;
use crate::base::error::{bail, Result};
use epi::EpiTrajectory;
use kooshball::KooshballTrajectory;
use radial::RadialTrajectory;
use spiral::SpiralTrajectory;
use std::collections::BTreeSet;
use std::ops::Range;

pub use options::{
    HeaderTrajectoryKind, SpiralExtent, SpokeNumber, TrajectoryConvention, TrajectoryOptions, DESCRIPTION_PREFIX,
};

/// The path of a shot.
#[derive(Debug, Clone, PartialEq)]
enum ShotPath {
    Radial(RadialTrajectory),
    Kooshball(KooshballTrajectory),
    Spiral(SpiralTrajectory),
    Epi(EpiTrajectory),
}

/// The trajectory of an image's acquisitions.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HeaderTrajectory {
    path: ShotPath,
    /// The axes whose coordinates are encoding steps, after the axes of the path.
    steps: Vec<StepAxis>,
}

/// Returns the trajectory of acquisitions without a stored one; `None` if they are lines of a Cartesian grid, or have a
/// stored trajectory.
///
/// # Errors
/// The errors of [`HeaderTrajectory::new`].
pub(super) fn trajectory_of(
    header: &Header,
    encoding: &HeaderEncoding,
    shots: &[Shot],
    options: &TrajectoryOptions,
) -> Result<Option<HeaderTrajectory>> {
    if shots.first().is_none_or(|first| first.header.trajectory_dimensions > 0) {
        return Ok(None);
    }
    let is_cartesian = |e: &HeaderEncoding| e.trajectory == TrajectoryKind::Cartesian;
    if let Some(kind) = options.kind.filter(|&kind| kind != HeaderTrajectoryKind::Cartesian) {
        // A scan with several encodings may have Cartesian calibration lines.
        if header.encodings.iter().all(is_cartesian) {
            bail!(
                InvalidArgument,
                "the option header_trajectory is {}, but the XML header says that the scan is Cartesian: correct <trajectory> in the \
                 header, or remove the option",
                kind.name()
            );
        }
    }
    match options::kind_of(encoding, options)? {
        HeaderTrajectoryKind::Cartesian => Ok(None),
        kind => HeaderTrajectory::new(encoding, shots, kind, options).map(Some),
    }
}

/// Checks that the acquisitions of a volume of spokes have different partitions. `is_settled`: an option or the
/// description says that they are a stack of stars.
///
/// # Errors
/// `Unsupported` if they do not, because the scan may be a kooshball.
fn check_stack(kind: HeaderTrajectoryKind, shots: &[Shot], is_settled: bool) -> Result<()> {
    let partitions: BTreeSet<u16> = shots.iter().map(|shot| shot.header.idx.kspace_encode_step_2).collect();
    if partitions.len() > 1 || is_settled {
        return Ok(());
    }
    bail!(
        Unsupported,
        "the {} trajectory of a volume has the same kspace_encode_step_2 in all acquisitions: the header does not say how \
         the spokes fill k-space: store the trajectory, or set the option header_trajectory to kooshball_golden_means, \
         kooshball_phyllotaxis, kooshball_equal_area, or for a stack of stars to radial or goldenangle",
        kind.name()
    )
}

impl HeaderTrajectory {
    /// Returns the trajectory of an image's acquisitions, of which there is at least one.
    ///
    /// # Errors
    /// `Unsupported` names an option if the header leaves something open; `BadFile` if elements of the header are
    /// missing, invalid or contradict each other; `InvalidArgument` for invalid options.
    fn new(
        encoding: &HeaderEncoding,
        shots: &[Shot],
        kind: HeaderTrajectoryKind,
        options: &TrajectoryOptions,
    ) -> Result<HeaderTrajectory> {
        use HeaderTrajectoryKind::*;
        let options = &options.with_description(encoding.description.as_ref())?;
        let is_volume = encoding.encoded.matrix[2] > 1;
        let ratios = points::voxel_ratios(&encoding.encoded, if is_volume { 3 } else { 2 })?;
        if is_volume && matches!(kind, Radial | GoldenAngle) {
            let is_described =
                encoding.description.as_ref().is_some_and(|d| d.identifier.starts_with(DESCRIPTION_PREFIX));
            check_stack(kind, shots, options.kind.is_some() || is_described)?;
        }
        let path = match kind {
            Radial | GoldenAngle => ShotPath::Radial(RadialTrajectory::new(kind, encoding, shots, ratios, options)?),
            KooshballGoldenMeans | KooshballPhyllotaxis | KooshballEqualArea => {
                ShotPath::Kooshball(KooshballTrajectory::new(kind, encoding, shots, ratios, options)?)
            }
            Spiral => ShotPath::Spiral(SpiralTrajectory::new(encoding, shots, ratios, options)?),
            Epi => ShotPath::Epi(EpiTrajectory::new(encoding, shots, options)?),
            Cartesian => bail!(InvalidArgument, "a Cartesian scan has no trajectory from the header"),
        };
        let axes = match (&path, is_volume) {
            (ShotPath::Kooshball(_), _) | (ShotPath::Radial(_) | ShotPath::Spiral(_), false) => 0..0,
            (ShotPath::Radial(_) | ShotPath::Spiral(_), true) => 1..2,
            (ShotPath::Epi(_), _) => 0..1 + is_volume as usize,
        };
        Ok(HeaderTrajectory { path, steps: axes.map(|which| StepAxis::new(encoding, which)).collect() })
    }

    /// Returns one line for the log.
    pub fn describe(&self) -> String {
        let text = match &self.path {
            ShotPath::Radial(path) => &path.text,
            ShotPath::Kooshball(path) => &path.text,
            ShotPath::Spiral(path) => &path.text,
            ShotPath::Epi(path) => &path.text,
        };
        let stack = match (&self.path, self.steps.len()) {
            (ShotPath::Radial(_) | ShotPath::Spiral(_), 1) => ", the same in all partitions",
            _ => "",
        };
        format!("trajectory from the header: {text}{stack}")
    }

    /// Returns the encoding steps that are coordinates, as `which` of y and z.
    pub fn step_axes(&self) -> Range<usize> {
        match (&self.path, self.steps.len()) {
            (_, 0) => 0..0,
            (ShotPath::Epi(_), count) => 0..count,
            _ => 1..2,
        }
    }

    /// Returns the samples of an acquisition for which there are coordinates. A spiral's readout may continue after its
    /// end, and a delay can move samples out of k-space.
    pub fn available_samples(&self, shot: &Shot) -> Range<usize> {
        match &self.path {
            ShotPath::Radial(path) => path.available_samples(shot),
            ShotPath::Kooshball(path) => path.available_samples(shot),
            ShotPath::Spiral(path) => path.available_samples(&shot.header),
            ShotPath::Epi(path) => path.available_samples(&shot.header),
        }
    }

    /// Appends the coordinates of the samples of an acquisition that are not discarded, in cycles per voxel.
    ///
    /// # Errors
    /// `CoordinateOutOfRange`, `BadFile`.
    pub fn add(&self, shot: &Shot, coordinates: &mut [Vec<f32>]) -> Result<()> {
        match &self.path {
            ShotPath::Radial(path) => path.add(shot, coordinates)?,
            ShotPath::Kooshball(path) => path.add(shot, coordinates)?,
            ShotPath::Spiral(path) => path.add(shot, coordinates)?,
            ShotPath::Epi(path) => path.add(shot, coordinates)?,
        }
        let first = coordinates.len() - self.steps.len();
        for ((axis, which), values) in self.steps.iter().zip(self.step_axes()).zip(&mut coordinates[first..]) {
            let k = axis.coordinate(shot.header.steps()[which])?;
            values.extend(shot.header.kept_samples().map(|_| k));
        }
        Ok(())
    }
}
