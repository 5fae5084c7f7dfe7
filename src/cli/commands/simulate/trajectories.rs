//! The trajectory of `recon simulate`.

use super::SimulateArgs;
use clap::ValueEnum;
use recon::bail;
use recon::scan::{HeaderTrajectoryKind, TrajectoryDescription, UserParameter, DESCRIPTION_PREFIX};
use recon::trajectory::SpokeOrder;
use recon::{Result, Trajectory};
use std::f64::consts::PI;

/// Number of samples per line, relative to the image, from which a propeller without a scan matrix causes a warning.
const OVERSAMPLED: usize = 2;

/// The kind of trajectory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum TrajectoryChoice {
    /// All points of the grid, one line along x per shot
    Cartesian,
    /// Spokes through the centre, in the order of their angles (2D)
    Radial,
    /// Spokes through the centre, each turned by the golden angle from the previous one (2D)
    GoldenAngle,
    /// Spokes through the centre, in the order of their angles, the same in all planes of a stack along z (3D)
    StackOfStars,
    /// Spokes through the centre in all directions (3D)
    Kooshball,
    /// Spirals from the centre (2D)
    Spiral,
    /// Rosettes (2D)
    Rosette,
    /// A closed Lissajous curve in several shots (2D)
    Lissajous,
    /// Rotated blades of parallel lines (2D)
    Propeller,
}

impl TrajectoryChoice {
    /// Returns whether the trajectory follows from the header and the encoding steps.
    fn follows_from_header(self) -> bool {
        use TrajectoryChoice::*;
        matches!(self, Cartesian | Radial | GoldenAngle | StackOfStars)
    }

    /// Returns the description for a header, which says what `<trajectory>` leaves open; `None` if it leaves nothing
    /// open.
    pub fn description(self) -> Option<TrajectoryDescription> {
        let describe = |kind: HeaderTrajectoryKind, name: &str, value| {
            let parameter =
                |name: &str, value| UserParameter { name: name.to_owned(), value, is_integer: name == "golden_angle" };
            Some(TrajectoryDescription {
                identifier: format!("{DESCRIPTION_PREFIX}{}", kind.name()),
                numbers: vec![parameter(name, value), parameter("first_angle_degrees", 0.0)],
            })
        };
        match self {
            TrajectoryChoice::Radial | TrajectoryChoice::StackOfStars => {
                describe(HeaderTrajectoryKind::Radial, "angle_range_degrees", 180.0)
            }
            TrajectoryChoice::GoldenAngle => describe(HeaderTrajectoryKind::GoldenAngle, "golden_angle", 1.0),
            _ => None,
        }
    }
}

/// Returns the trajectory of the options, for an image of `sizes` voxels.
pub fn trajectory(args: &SimulateArgs, sizes: &[usize]) -> Result<Trajectory> {
    let given = [
        ("--shots", args.shots.is_some()),
        ("--samples", args.samples.is_some()),
        ("--partitions", args.partitions.is_some()),
        ("--turns", args.turns.is_some()),
        ("--exponent", args.exponent.is_some()),
        ("--frequencies", args.frequencies.is_some()),
        ("--lines", args.lines.is_some()),
        ("--scan-matrix", args.scan_matrix.is_some()),
        ("--motion", args.motion.is_some()),
        ("--radial", args.radial.is_some()),
        ("--angular", args.angular.is_some()),
    ];
    let (used, ndim): (&[&str], Option<usize>) = match args.trajectory {
        TrajectoryChoice::Cartesian => (&[], None),
        TrajectoryChoice::Radial | TrajectoryChoice::GoldenAngle => (&["--shots", "--samples"], Some(2)),
        TrajectoryChoice::StackOfStars => (&["--shots", "--samples", "--partitions"], Some(3)),
        TrajectoryChoice::Kooshball => (&["--shots", "--samples"], Some(3)),
        TrajectoryChoice::Spiral => (&["--shots", "--samples", "--turns", "--exponent"], Some(2)),
        TrajectoryChoice::Rosette => (&["--shots", "--samples", "--radial", "--angular"], Some(2)),
        TrajectoryChoice::Lissajous => (&["--shots", "--samples", "--frequencies"], Some(2)),
        TrajectoryChoice::Propeller => (&["--shots", "--samples", "--lines", "--scan-matrix", "--motion"], Some(2)),
    };
    let kind = args.trajectory.to_possible_value().map(|v| v.get_name().to_owned()).unwrap_or_default();
    if let Some((name, _)) = given.iter().find(|(name, given)| *given && !used.contains(name)) {
        bail!(InvalidArgument, "{name} is not a parameter of a {kind} trajectory: leave it out");
    }
    if let Some(ndim) = ndim.filter(|&n| n != sizes.len()) {
        bail!(InvalidArgument, "a {kind} trajectory is {ndim}D: give --matrix {ndim} sizes, not {}", sizes.len());
    }
    if args.no_trajectory && !args.trajectory.follows_from_header() {
        bail!(InvalidArgument, "--no-trajectory: a {kind} trajectory does not follow from the header: leave it out");
    }
    let n = *sizes.iter().max().unwrap_or(&1);
    let up = |x: f64| (x.ceil() as usize).max(1);
    let samples = |default: usize| args.samples.unwrap_or(default);
    match args.trajectory {
        TrajectoryChoice::Cartesian => Trajectory::cartesian(sizes),
        TrajectoryChoice::StackOfStars => {
            let n = sizes[0].max(sizes[1]);
            let spokes = args.shots.unwrap_or(up(0.5 * PI * n as f64));
            let partitions = args.partitions.unwrap_or(sizes[2]);
            Trajectory::stack_of_stars(spokes, samples(2 * n), partitions, SpokeOrder::Linear)
        }
        TrajectoryChoice::Radial | TrajectoryChoice::GoldenAngle => {
            let order =
                if args.trajectory == TrajectoryChoice::Radial { SpokeOrder::Linear } else { SpokeOrder::GoldenAngle };
            Trajectory::radial2d(args.shots.unwrap_or(up(0.5 * PI * n as f64)), samples(2 * n), order)
        }
        TrajectoryChoice::Kooshball => {
            Trajectory::radial3d(args.shots.unwrap_or(up(0.5 * PI * n as f64 * n as f64)), samples(2 * n))
        }
        TrajectoryChoice::Spiral => {
            let shots = args.shots.unwrap_or(16);
            let turns = args.turns.unwrap_or_else(|| (n as f64 / (2.0 * shots.max(1) as f64)).max(1.0));
            Trajectory::spiral(shots, samples(up(PI * n as f64 * turns)), turns, args.exponent.unwrap_or(1.0))
        }
        TrajectoryChoice::Rosette => {
            let (radial, angular) = (args.radial.unwrap_or(5.0), args.angular.unwrap_or(3.0));
            let shots = args.shots.unwrap_or(n.div_ceil(2));
            Trajectory::rosette(shots, samples(up(PI * n as f64 * (radial + angular))), radial, angular)
        }
        TrajectoryChoice::Lissajous => {
            let lowest = up(1.25 * n as f64);
            let [x, y] = args.frequencies.unwrap_or([lowest, lowest + 1]);
            let shots = args.shots.unwrap_or(n.div_ceil(2));
            // Samples are at most 1 / n apart, where the curve is fastest.
            let length = PI * (x as f64).hypot(y as f64) * n as f64;
            Trajectory::lissajous(shots, samples(up(length / shots.max(1) as f64)), x, y)
        }
        TrajectoryChoice::Propeller => propeller(args, n),
    }
}

/// Returns blades for an image whose largest size is `n`. Warns if the distance of lines is unlikely to be the intended
/// one.
fn propeller(args: &SimulateArgs, n: usize) -> Result<Trajectory> {
    let samples = args.samples.unwrap_or(n.max(args.scan_matrix.unwrap_or(n)));
    let matrix = scan_matrix(args, samples);
    let lines = lines_per_blade(args, matrix);
    // As many blades as cover the circle of radius 0.5.
    let shots = args.shots.unwrap_or((0.5 * PI * matrix as f64 / lines.max(1) as f64).ceil().max(1.0) as usize);
    let trajectory = Trajectory::propeller_scan(shots, lines, samples, matrix)?;
    match args.scan_matrix {
        None if samples >= OVERSAMPLED * n => log::warn!(
            "--samples: the lines of blades are 1 / {samples} of k-space apart, closer than an image of {n} voxels \
             needs: give --scan-matrix {n} if the readout is oversampled"
        ),
        Some(given) if given < n => log::warn!(
            "--scan-matrix: lines that are 1 / {given} of k-space apart resolve a field of view of {given} voxels, and \
             the image has {n}, so that the object is aliased: give --scan-matrix {n} or a smaller --matrix"
        ),
        _ => {}
    }
    Ok(trajectory)
}

/// Returns the scan matrix of a propeller. `samples` is the number of samples per line.
pub fn scan_matrix(args: &SimulateArgs, samples: usize) -> usize {
    args.scan_matrix.unwrap_or(samples)
}

/// Returns the number of lines of a propeller blade.
pub fn lines_per_blade(args: &SimulateArgs, scan_matrix: usize) -> usize {
    args.lines.unwrap_or(16.min(scan_matrix / 2).max(1))
}
