//! `recon convert`.

use crate::options::{AnyFile, MatrixChoice, OutputArgs, RawDataArgs};
use crate::run::input;
use crate::run::output::{check_outputs, check_sizes, image_files, volume_files, write_images};
use crate::run::raw_output::{dataset_of, raw_files, write_raw_data};
use crate::run::streams::{input_path, write_output};
use recon::acquisition::AcquisitionUse;
use recon::atomic_file::AtomicFiles;
use recon::bail;
use recon::Result;
use recon_files::ismrmrd::{read_either, FileContents};
use recon_files::read_images;
use recon_files::stacks::ImageGeometry;
use recon_files::{read_cfl, Dataset, FileUse, Format, Image};
use std::path::{Path, PathBuf};

/// Converts images or raw data to another file format
///
/// Images are converted between all formats. A warning lists the properties that the new format cannot hold: the phase
/// in NIfTI files and pictures, positions and counters in BART and NumPy files.
///
/// Raw data are converted between ISMRMRD and BART. BART's trajectory is in cycles per field of view, and ISMRMRD's in
/// cycles per voxel of the encoded matrix: coordinates are multiplied or divided by the matrix. Samples are copied
/// unchanged, neither whitened nor compressed. Acquisitions of an ISMRMRD file get the trajectory that the header
/// describes, if they have none.
#[derive(clap::Args)]
#[command(after_help = "Example: a volume for MATLAB or Octave, and a scan for BART (scan.cfl and scan_traj.cfl):\n  \
    recon convert image.h5 -o image.mat\n  \
    recon convert scan.h5 --slice 3 -o scan.cfl\n\
    Example: k-space of BART as an ISMRMRD file, with a field of view of 220 mm and slices of 5 mm:\n  \
    recon convert k.cfl --trajectory traj.cfl --matrix 128,128 --fov 220,220,5 -o scan.h5")]
pub struct ConvertArgs {
    #[arg(help = FileUse::ReadImages.help("Images, raw data of ISMRMRD, or k-space of BART with --trajectory"))]
    input: PathBuf,

    #[command(flatten)]
    output: OutputArgs<AnyFile>,

    /// Trajectory of BART, [3, samples, shots] in cycles per field of view: the input is k-space of BART
    #[arg(long, value_name = "FILE", requires = "matrix", help_heading = "Input")]
    trajectory: Option<PathBuf>,

    /// Number of voxels along each axis for which --trajectory was made
    #[arg(long, value_name = "NX,NY[,NZ]", requires = "trajectory", help_heading = "Input")]
    matrix: Option<MatrixChoice>,

    /// Field of view in mm for the header of k-space of BART [default: unknown, 0]
    #[arg(long, value_name = "X,Y,Z", value_delimiter = ',', num_args = 1, requires = "trajectory")]
    #[arg(help_heading = "Input")]
    fov: Vec<f32>,

    #[command(flatten)]
    raw: RawDataArgs,
}

pub fn run(args: &ConvertArgs) -> Result<()> {
    let fov_mm = checked_fov(&args.fov)?;
    // Formats of raw data are also formats of images.
    check_outputs(&image_files(&args.output.output)?, args.inputs())?;
    let input = args.raw.input(&args.input, args.trajectory.as_ref(), args.matrix.as_ref());
    if args.trajectory.is_some() {
        let mut dataset = input::read(&input)?;
        let scan = &mut dataset.scans[0];
        (scan.encoded_fov_mm, scan.recon_fov_mm) = (fov_mm, fov_mm);
        let dataset = dataset_of(dataset.scans.remove(0));
        if fov_mm[0] == 0.0 && Format::of(&args.output.output) == Some(Format::Ismrmrd) {
            log::warn!(
                "{}: the field of view is unknown, and 0 is written: --fov sets it",
                args.output.output.display()
            );
        }
        return write_dataset(args, &dataset);
    }
    let path = input_path(&args.input)?;
    if Format::of(&path) != Some(Format::Ismrmrd) {
        warn_of_kspace(&path)?;
        return write_selected_images(args, read_images(&path)?);
    }
    match read_either(&path, &args.raw.group, args.raw.acquisitions.options())? {
        FileContents::Raw(dataset) => {
            let dataset = input::prepare(&input, *dataset)?;
            warn_of_lost_acquisitions(args, &dataset);
            write_dataset(args, &dataset)
        }
        FileContents::Images(images) => write_selected_images(args, images),
    }
}

impl ConvertArgs {
    fn inputs(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.input).chain(&self.trajectory)
    }
}

/// Returns the field of view of --fov; zeros, which mean unknown, without it.
fn checked_fov(fov: &[f32]) -> Result<[f32; 3]> {
    match *fov {
        [] => Ok([0.0; 3]),
        [x, y, z] if fov.iter().all(|mm| *mm > 0.0 && mm.is_finite()) => Ok([x, y, z]),
        _ => bail!(InvalidArgument, "--fov is {fov:?}: three numbers of mm above 0 are needed, such as 220,220,5"),
    }
}

/// Warns if a BART array without a trajectory has the sizes of k-space.
fn warn_of_kspace(path: &Path) -> Result<()> {
    if Format::of_input(path) != Some(Format::Bart) {
        return Ok(());
    }
    let sizes = read_cfl(path)?.sizes();
    if sizes[0] == 1 && sizes[1] > 1 && sizes[2] > 1 {
        log::warn!(
            "{}: an array of sizes {:?} is converted as an image of one voxel along x: if it is k-space, give \
             --trajectory and --matrix",
            path.display(),
            &sizes[..4]
        );
    }
    Ok(())
}

fn write_dataset(args: &ConvertArgs, dataset: &Dataset) -> Result<()> {
    let outputs = raw_files(&args.output.output).map_err(|e| e.within("raw data"))?;
    check_outputs(&outputs, args.inputs())?;
    write_output(AtomicFiles::new(), &args.output.output, |files, path| write_raw_data(files, path, dataset))
}

/// Warns of parts of an ISMRMRD file that are not written.
fn warn_of_lost_acquisitions(args: &ConvertArgs, dataset: &Dataset) {
    let shown = args.output.output.display();
    let mut lost = Vec::new();
    let unused = |usage: &AcquisitionUse| matches!(usage, AcquisitionUse::Unused(_));
    let count: usize = dataset.uses.iter().filter(|(usage, _)| unused(usage)).map(|(_, n)| n).sum();
    if count > 0 {
        lost.push(format!("{count} acquisitions that no image uses"));
    }
    if Format::of(&args.output.output) == Some(Format::Bart) {
        let has_weights = dataset.scans.iter().any(|scan| scan.weights.is_some());
        let is_placed = dataset.scans.iter().any(|scan| scan.placement.is_known());
        for (is_lost, what) in [
            (!dataset.noise.is_empty(), "noise acquisitions"),
            (!dataset.calibration.is_empty(), "calibration acquisitions"),
            (has_weights, "density weights"),
            (is_placed, "the position in the patient"),
        ] {
            lost.extend(is_lost.then(|| what.to_owned()));
        }
    } else if dataset.scans.iter().any(|scan| scan.skipped_per_shot.iter().any(|&n| n > 0)) {
        lost.push("discarded samples, from which the times of the others are measured".into());
    }
    if !lost.is_empty() {
        log::warn!("{shown}: not in the new file: {}", lost.join(", "));
    }
}

fn write_selected_images(args: &ConvertArgs, images: Vec<Image>) -> Result<()> {
    let selected = args.raw.selection.select(images, |image| image.index);
    let images = selected.map_err(|e| e.within(args.input.display()))?;
    check_sizes(&args.output.output, images.iter().map(|image| (image.dims, image.channels)))?;
    let geometries: Vec<ImageGeometry> = images.iter().map(ImageGeometry::new).collect();
    if let Some(files) = volume_files(&args.output.output, &geometries)? {
        check_outputs(&files, args.inputs())?;
    }
    warn_of_lost_properties(&args.output.output, &images);
    write_output(AtomicFiles::new(), &args.output.output, |files, path| write_images(files, path, &images))
}

/// Warns of properties of images that the format of a file cannot hold.
fn warn_of_lost_properties(path: &Path, images: &[Image]) {
    let (shown, format) = (path.display(), Format::of(path));
    let any = |holds: fn(&Image) -> bool| images.iter().any(holds);
    let is_complex = any(|image| image.data.iter().any(|z| z.im != 0.0));
    let has_negative = any(|image| image.data.iter().any(|z| z.re < 0.0));
    let mut lost = Vec::new();
    if !FileUse::WriteComplexImages.allows(path) && is_complex {
        lost.push("the phase: magnitudes are written");
    } else if !FileUse::WriteSignedImages.allows(path) && has_negative {
        lost.push("the signs: magnitudes are written");
    }
    if format == Some(Format::Png) {
        lost.push("the scale: grey levels are written");
    }
    let holds_positions = matches!(format, Some(Format::Ismrmrd | Format::Nifti | Format::Dicom | Format::Matlab));
    if !holds_positions && any(|image| image.fov_mm.iter().any(|&mm| mm > 0.0)) {
        lost.push("the voxel size");
    }
    // Pictures are oriented by the position.
    if !holds_positions && format != Some(Format::Png) && any(|image| image.placement.is_known()) {
        lost.push("the position in the patient");
    }
    // The dimensions of BART's arrays are counters.
    let holds_counters = holds_positions || format == Some(Format::Bart);
    if !holds_counters && any(|image| image.index != Default::default()) {
        lost.push("the counters (slice, repetition, ...)");
    }
    if !lost.is_empty() {
        log::warn!("{shown}: not in the new file: {}", lost.join("; "));
    }
}
