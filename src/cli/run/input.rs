//! Reading raw data.

use crate::io::ismrmrd::{Header, TrajectoryKind};
use crate::io::{kspace_from_bart, read_cfl, trajectory_from_bart, Noise, Placement, Scan, ScanIndex};
use crate::options::{checked_sizes, InputArgs, Matrix};
use crate::reader::read_dataset;
use crate::run::coils;
use crate::run::output::has_ending;
use recon::bail;
use recon::Result;
use std::path::Path;

/// Reads the scans that the options select, whitened and compressed as they say. Returns the calibration data of the
/// file as well, as they were measured.
pub fn read(args: &InputArgs) -> Result<(Vec<Scan>, Vec<Scan>)> {
    if args.every == 0 {
        bail!(InvalidArgument, "--every is 0: give 1 to keep all shots, or more");
    }
    let bart = has_ending(&args.input, &[".cfl", ".hdr"]);
    let (scans, calibration, noise, header) = match (&args.trajectory, bart) {
        (Some(trajectory), true) => {
            (vec![read_bart(&args.input, trajectory, args.matrix.as_ref())?], Vec::new(), Vec::new(), None)
        }
        (None, true) => {
            bail!(InvalidArgument, "{}: k-space in a .cfl file needs --trajectory and --matrix", args.input.display())
        }
        (Some(_), false) => bail!(
            InvalidArgument,
            "{}: --trajectory goes with k-space in a .cfl file: an ISMRMRD file has its own",
            args.input.display()
        ),
        (None, false) => {
            let dataset = read_dataset(&args.input, &args.group)?;
            (dataset.scans, dataset.calibration, dataset.noise, Some(dataset.header))
        }
    };
    Ok((select(args, scans, noise, header.as_ref())?, calibration))
}

/// Of the scans of a file those that the options select, whitened and compressed as they say.
pub fn select(args: &InputArgs, mut scans: Vec<Scan>, noise: Vec<Noise>, header: Option<&Header>) -> Result<Vec<Scan>> {
    if scans.is_empty() {
        bail!(BadFile, "{}: there is no image data: all acquisitions are noise or calibration", args.input.display());
    }
    if args.slice.is_some() || args.repetition.is_some() {
        let list = |of: &dyn Fn(&Scan) -> u16| {
            let mut numbers: Vec<u16> = scans.iter().map(of).collect();
            numbers.sort_unstable();
            numbers.dedup();
            match numbers.len() {
                0..=12 => numbers.iter().map(|n| n.to_string()).collect::<Vec<_>>().join(", "),
                n => format!("{n} from {} to {}", numbers[0], numbers[n - 1]),
            }
        };
        let have = format!("slices {}; repetitions {}", list(&|s| s.index.slice), list(&|s| s.index.repetition));
        scans.retain(|s| {
            args.slice.is_none_or(|n| s.index.slice == n) && args.repetition.is_none_or(|n| s.index.repetition == n)
        });
        if scans.is_empty() {
            bail!(InvalidArgument, "{}: no such slice and repetition; the file has {have}", args.input.display());
        }
    }
    if args.every > 1 {
        for scan in &mut scans {
            *scan = scan.every_nth_shot(args.every);
        }
    }
    coils::prepare(args, &mut scans, noise, header)?;
    Ok(scans)
}

fn read_bart(kspace: &Path, trajectory: &Path, matrix: Option<&Matrix>) -> Result<Scan> {
    let Some(Matrix::Sizes(sizes)) = matrix else {
        bail!(
            InvalidArgument,
            "a trajectory in a .cfl file needs --matrix with the sizes that it was made for: it is in units of 1/FOV"
        );
    };
    let matrix = checked_sizes(sizes)?;
    let points = read_cfl(trajectory)?;
    let array = read_cfl(kspace)?;
    let coordinates = trajectory_from_bart(&points, matrix).map_err(|e| e.within(trajectory.display()))?;
    let both = || format!("{} and {}", kspace.display(), trajectory.display());
    let (samples, coils) = kspace_from_bart(&array, &points).map_err(|e| e.within(both()))?;
    if let Some(i) = array.data.iter().position(|z| !z.is_finite()) {
        let (coil, m) = (i / samples, i % samples);
        bail!(NotFinite, "{}: coil {coil}, sample {m}: the data are {}", kspace.display(), array.data[i]);
    }
    Ok(Scan {
        index: ScanIndex::default(),
        encoded_matrix: matrix,
        recon_matrix: matrix,
        encoded_fov_mm: [0.0; 3],
        recon_fov_mm: [0.0; 3],
        trajectory: TrajectoryKind::Other,
        ndim: coordinates.coordinates.len(),
        coordinates: coordinates.coordinates,
        weights: None,
        skipped_per_shot: vec![0; coordinates.samples_per_shot.len()],
        samples_per_shot: coordinates.samples_per_shot,
        coils,
        data: array.data,
        times: vec![0.0; samples],
        placement: Placement::default(),
        coil_matrix: None,
        noise_level: None,
    })
}

/// The name of a scan in its file, in words.
pub fn name(scan: &Scan) -> String {
    let i = &scan.index;
    let all = [
        ("encoding", i.encoding),
        ("slice", i.slice),
        ("repetition", i.repetition),
        ("contrast", i.contrast),
        ("phase", i.phase),
        ("set", i.set),
    ];
    let parts: Vec<_> =
        all.iter().filter(|(name, n)| *n > 0 || *name == "slice").map(|(name, n)| format!("{name} {n}")).collect();
    parts.join(", ")
}

/// The name of a kind of trajectory.
pub fn kind_name(kind: TrajectoryKind) -> &'static str {
    match kind {
        TrajectoryKind::GoldenAngle => "golden angle",
        other => other.name(),
    }
}
