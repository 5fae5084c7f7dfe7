//! The warnings about gaps between samples and about a missing side of k-space.

use crate::run::input::scan_name;
use crate::run::session::Session;
use recon::coverage;
use recon::partial_fourier::missing_side;
use recon::scan::missing_share;
use recon::Result;

/// Tolerated share of missing points of a Cartesian grid: a few missing lines.
const TOLERATED_POINTS: f64 = 0.01;
/// Tolerated share of gaps in the centre of k-space: the irregular gaps of few spokes.
const TOLERATED_GAPS: f64 = 0.2;

/// Warns, once for all scans, of gaps between samples that cause aliases in gridded images.
///
/// For a Cartesian scan it counts the points of the grid that were not measured. For other trajectories it counts the
/// gaps in the centre of k-space. Radial scans whose spokes are far apart only at the edge of k-space have few of these
/// gaps: their images have streaks, but no aliases.
pub fn warn_of_gaps(session: &Session) -> Result<()> {
    const REMEDY: &str = "gridding cannot undo this; recon cg can, with coil maps from calibration lines or --maps";
    let mut previous: Option<&[Vec<f32>]> = None;
    for number in 0..session.scans.len() {
        let trajectory = &session.scans[number].coordinates[..];
        if previous.replace(trajectory).is_some_and(|previous| previous == trajectory) {
            continue;
        }
        let Some(scan) = session.frames(number).next() else { continue };
        let (is_aliased, cause, remedy) = match missing_share(&scan)? {
            Some(missing) => (
                missing > TOLERATED_POINTS,
                format!(
                    "{:.0} % of the points of the Cartesian grid were not measured, as in parallel imaging",
                    100.0 * missing
                ),
                "",
            ),
            None => {
                let k: Vec<&[f32]> = scan.coordinates.iter().map(|k| &k[..]).collect();
                let missing = coverage::missing_share(&k, &scan.encoded_matrix[..scan.ndim])?;
                (
                    missing > TOLERATED_GAPS,
                    format!(
                        "in {:.0} % of the centre of k-space, gaps between the samples are wider than 1/FOV",
                        100.0 * missing
                    ),
                    ", or measure more shots",
                )
            }
        };
        if is_aliased {
            log::warn!("{}: {cause}: the image is aliased; {REMEDY}{remedy}", scan_name(&scan));
            return Ok(());
        }
    }
    Ok(())
}

/// Warns, once for all scans, of Cartesian scans of which one side of k-space is missing along one axis.
pub fn warn_of_missing_side(session: &Session) -> Result<()> {
    for number in 0..session.scans.len() {
        let Some(scan) = session.frames(number).next() else { continue };
        let k: Vec<&[f32]> = scan.coordinates.iter().map(|k| &k[..]).collect();
        let Some((axis, [below, above])) = missing_side(&k, &scan.encoded_matrix[..scan.ndim]) else { continue };
        if missing_share(&scan)?.is_some_and(|missing| missing <= TOLERATED_POINTS) {
            log::warn!(
                "{}: along {}, k-space has {below:.0} samples below and {above:.0} above k = 0: the missing side is \
                 replaced by zeros, which blurs the image; --partial-fourier pocs fills it",
                scan_name(&scan),
                ["x", "y", "z"][axis]
            );
            return Ok(());
        }
    }
    Ok(())
}
