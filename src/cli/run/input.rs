//! Reading raw data from a file, and their selection by slice, repetition and shot.

use crate::options::{checked_sizes, InputArgs, MatrixChoice};
use crate::run::coils;
use crate::run::streams::input_path;
use recon::bail;
use recon::scan::{Header, TrajectoryKind};
use recon::Result;
use recon_files::ismrmrd::read_dataset;
use recon_files::{kspace_from_bart, read_cfl, trajectory_from_bart, Dataset, Format, Placement, Scan, ScanIndex};
use std::path::Path;

/// Reads the raw data of the input file.
pub fn read(args: &InputArgs) -> Result<Dataset> {
    let path = input_path(&args.input)?;
    let is_bart = Format::of(&path) == Some(Format::Bart);
    match (&args.trajectory, is_bart) {
        (Some(trajectory), true) => Ok(Dataset {
            header: Header::default(),
            scans: vec![read_bart(&args.input, trajectory, args.matrix.as_ref())?],
            noise: Vec::new(),
            calibration: Vec::new(),
            uses: Vec::new(),
        }),
        (None, true) => {
            bail!(InvalidArgument, "{}: k-space of BART needs --trajectory and --matrix", args.input.display())
        }
        (Some(_), false) => bail!(
            InvalidArgument,
            "{}: --trajectory is only for k-space of BART: an ISMRMRD file contains its trajectory",
            args.input.display()
        ),
        (None, false) => read_dataset(&path, &args.group, args.acquisitions.options()),
    }
}

/// Selects scans and shots of a dataset, whitens and compresses them. Leaves the calibration data as they were
/// measured.
pub fn prepare(args: &InputArgs, mut dataset: Dataset) -> Result<Dataset> {
    let file = args.input.display();
    if dataset.scans.is_empty() {
        bail!(BadFile, "{file}: there is no image data: all acquisitions are noise or calibration");
    }
    if args.slice.is_some() || args.repetition.is_some() {
        let [slices, repetitions] = [|s: &Scan| s.index.slice, |s: &Scan| s.index.repetition]
            .map(|number| list_numbers(&dataset.scans, number));
        dataset.scans.retain(|s| {
            args.slice.is_none_or(|n| s.index.slice == n) && args.repetition.is_none_or(|n| s.index.repetition == n)
        });
        if dataset.scans.is_empty() {
            bail!(
                InvalidArgument,
                "{file}: no such slice and repetition; the file has slices {slices}; repetitions {repetitions}"
            );
        }
    }
    if args.every > 1 {
        for scan in &mut dataset.scans {
            *scan = scan.every_nth_shot(args.every);
        }
    }
    coils::prepare(args, &mut dataset)?;
    Ok(dataset)
}

/// Lists the different numbers of scans for a message.
fn list_numbers(scans: &[Scan], number: impl Fn(&Scan) -> u16) -> String {
    let mut numbers: Vec<u16> = scans.iter().map(number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    match numbers.len() {
        0..=12 => numbers.iter().map(|n| n.to_string()).collect::<Vec<_>>().join(", "),
        n => format!("{n} from {} to {}", numbers[0], numbers[n - 1]),
    }
}

fn read_bart(kspace: &Path, trajectory: &Path, matrix: Option<&MatrixChoice>) -> Result<Scan> {
    let Some(MatrixChoice::Sizes(sizes)) = matrix else {
        bail!(
            InvalidArgument,
            "a trajectory of BART needs --matrix with the sizes that it was made for: it is in units of 1/FOV"
        );
    };
    let matrix = checked_sizes(sizes)?;
    let points = read_cfl(trajectory)?;
    let array = read_cfl(kspace)?;
    let coordinates = trajectory_from_bart(&points, matrix).map_err(|e| e.within(trajectory.display()))?;
    let files = || format!("{} and {}", kspace.display(), trajectory.display());
    let (samples, coils) = kspace_from_bart(&array, &points).map_err(|e| e.within(files()))?;
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

/// Returns the name of a scan for messages: its slice, and all other numbers that are not 0.
pub fn scan_name(scan: &Scan) -> String {
    scan.index.to_string()
}

/// Returns the name of a kind of trajectory for the user.
pub fn kind_name(kind: TrajectoryKind) -> &'static str {
    match kind {
        TrajectoryKind::GoldenAngle => "golden angle",
        other => other.name(),
    }
}
