//! Reading raw data from a file, and their selection by slice, repetition and shot.

use crate::options::{checked_sizes, InputArgs, MatrixChoice};
use crate::run::coils;
use crate::run::streams::input_path;
use recon::bail;
use recon::scan::TrajectoryKind;
use recon::Result;
use recon_files::ismrmrd::read_dataset;
use recon_files::{read_bart, Dataset, Format, Scan, TrajectoryFile};

/// Reads the raw data of the input file.
pub fn read(args: &InputArgs) -> Result<Dataset> {
    let path = input_path(&args.input)?;
    let shown = args.input.display();
    let is_bart = Format::of_input(&path) == Some(Format::Bart);
    if is_bart && args.acquisitions.conjugate {
        bail!(
            InvalidArgument,
            "{shown}: --conjugate is for ISMRMRD files: bart conj IN OUT conjugates k-space of BART"
        );
    }
    match (&args.trajectory, is_bart) {
        (Some(path), true) => {
            let Some(MatrixChoice::Sizes(sizes)) = &args.matrix else {
                bail!(
                    InvalidArgument,
                    "a trajectory of BART needs --matrix with the sizes that it was made for: it is in units of 1/FOV"
                );
            };
            read_bart(&args.input, Some(TrajectoryFile { path, matrix: checked_sizes(sizes)? }))
        }
        (None, true) => read_bart(&args.input, None),
        (Some(_), false) => bail!(
            InvalidArgument,
            "{shown}: --trajectory is only for k-space of BART: an ISMRMRD file contains its trajectory"
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
    dataset.scans = args.selection.select(dataset.scans, |scan| scan.index).map_err(|e| e.within(file))?;
    if args.every > 1 {
        for scan in &mut dataset.scans {
            *scan = scan.every_nth_shot(args.every);
        }
    }
    coils::prepare(args, &mut dataset)?;
    Ok(dataset)
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
