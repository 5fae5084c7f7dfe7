//! Spokes through a ball.

use super::options::{HeaderTrajectoryKind, SpokeNumber, TrajectoryOptions};
use super::radial;
use super::readout::SpokeReadouts;
use crate::base::error::{bail, Result};
use crate::scan::header::HeaderEncoding;
use crate::scan::shots::Shot;
use std::f64::consts::{FRAC_PI_2, PI};
use std::ops::Range;

/// The golden means of two dimensions: the real root of x^3 + x = 1, and its square (Chan et al. 2009).
const GOLDEN_MEANS: [f64; 2] = [0.465_571_231_876_768, 0.682_327_803_828_019_3];

/// Spokes through a ball.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct KooshballTrajectory {
    kind: HeaderTrajectoryKind,
    number: SpokeNumber,
    /// The number of spokes of a phyllotaxis spiral.
    count: usize,
    /// The angle that is added to all azimuths, in radians.
    azimuth: f64,
    readouts: SpokeReadouts,
    ratios: [f64; 3],
    /// The description, for the log.
    pub text: String,
}

impl KooshballTrajectory {
    /// Returns the spokes of a volume.
    pub fn new(
        kind: HeaderTrajectoryKind,
        encoding: &HeaderEncoding,
        shots: &[Shot],
        ratios: [f64; 3],
        options: &TrajectoryOptions,
    ) -> Result<KooshballTrajectory> {
        let voxels = encoding.encoded.matrix[0];
        if encoding.encoded.matrix[2] == 1 {
            bail!(
                InvalidArgument,
                "the trajectory is {}, but the encoded matrix has one voxel along z: correct the option \
                 header_trajectory or the matrix size in the XML header",
                kind.name()
            );
        }
        let first_step = shots[0].header.idx.kspace_encode_step_2;
        if let Some(shot) = shots.iter().find(|shot| shot.header.idx.kspace_encode_step_2 != first_step) {
            bail!(
                BadFile,
                "the spokes of a {} trajectory have one number each, but acquisition {} has kspace_encode_step_2 {} and \
                 acquisition {} has {first_step}: for a stack of stars, set the option header_trajectory to radial or \
                 goldenangle",
                kind.name(),
                shot.number,
                shot.header.idx.kspace_encode_step_2,
                shots[0].number
            );
        }
        // The convention is Gadgetron's for the plane.
        let number = radial::spoke_number(shots, false, &TrajectoryOptions { convention: None, ..*options })?;
        let (count, text) = match kind {
            HeaderTrajectoryKind::KooshballPhyllotaxis | HeaderTrajectoryKind::KooshballEqualArea => {
                let (count, _) = radial::spoke_count(encoding, options)?;
                (count, format!("{}, {count} spokes", kind.name()))
            }
            _ => (usize::MAX, format!("{}, spokes without a fixed number", kind.name())),
        };
        let readouts = SpokeReadouts::new(shots, voxels, options)?;
        let azimuth = options.first_angle_degrees.unwrap_or(0.0).to_radians();
        let text =
            format!("{text}; {} samples across k-space, its centre at {}", readouts.first.full, readouts.first.centre);
        Ok(KooshballTrajectory { kind, number, count, azimuth, readouts, ratios, text })
    }

    /// Returns the unit vector from the first to the last sample of a spoke.
    fn direction(&self, shot: &Shot) -> Result<[f64; 3]> {
        let number = radial::number_of(shot, self.number);
        if number >= self.count {
            bail!(
                BadFile,
                "the number of the spoke is {number}, but there are {}: correct the limits of kspace_encoding_step_1 in \
                 the XML header, or set the options spoke_count and spoke_number",
                self.count
            );
        }
        let n = number as f64;
        // The golden angle of a full turn: 137.508 degrees.
        let golden = PI * (3.0 - 5f64.sqrt());
        let (z, azimuth) = match self.kind {
            HeaderTrajectoryKind::KooshballPhyllotaxis => {
                ((FRAC_PI_2 * (n / self.count as f64).sqrt()).cos(), n * golden)
            }
            HeaderTrajectoryKind::KooshballEqualArea => (1.0 - (n + 0.5) / self.count as f64, n * golden),
            _ => ((n * GOLDEN_MEANS[0]).fract(), 2.0 * PI * (n * GOLDEN_MEANS[1]).fract()),
        };
        let across = (1.0 - z * z).max(0.0).sqrt();
        let (sin, cos) = (azimuth + self.azimuth).sin_cos();
        Ok([across * cos, across * sin, z])
    }

    /// Returns the samples for which there are coordinates.
    pub fn available_samples(&self, shot: &Shot) -> Range<usize> {
        self.readouts.of(shot).available_samples(&shot.header)
    }

    /// Appends the coordinates.
    pub fn add(&self, shot: &Shot, coordinates: &mut [Vec<f32>]) -> Result<()> {
        let direction = self.direction(shot)?;
        let scaled: [f64; 3] = std::array::from_fn(|axis| direction[axis] * self.ratios[axis]);
        self.readouts.of(shot).add(&shot.header, &scaled, coordinates)
    }
}
