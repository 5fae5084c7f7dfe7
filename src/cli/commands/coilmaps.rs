//! `recon coilmaps`.

use crate::options::{in_precision, DensityArgs, InputArgs, OffResonanceArgs, OutputArgs, PlanArgs};
use crate::run::coil_maps::{self, shares_maps, to_coils_of_file};
use crate::run::input;
use crate::run::output::{check_outputs, check_sizes, image_files, write_images};
use crate::run::precision::to_single;
use crate::run::session::Session;
use crate::run::streams::write_output;
use crate::run::weights::warn_of_file_weights;
use recon::atomic_file::AtomicFiles;
use recon::bail;
use recon::{Real, Result};
use recon_files::{Dataset, FileUse, Image};

/// Estimates coil maps, as recon cg does without --maps
///
/// The maps are [encoded matrix, coils], one set per slice, contrast and set. They come from the calibration
/// acquisitions of the file, or else from the centre of the scan's own k-space; `recon cg --help` describes the method
/// and its limits.
///
/// recon cg and recon fhd read the file with --maps. The maps are those of the coils in the file: after whitening or
/// compression for the estimate, they are converted back. recon cg with the same options then gives the same image up
/// to rounding. Without whitening and compression the image has the same bits (with --precision f32).
#[derive(clap::Args)]
#[command(after_help = "Example: maps for BART (dimension 3), and for recon itself:\n  \
    recon coilmaps scan.h5 -o maps.cfl\n  \
    recon coilmaps scan.h5 -o maps.h5\n  \
    recon cg scan.h5 --maps maps.h5 -o image.h5")]
pub struct CoilMapsArgs {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    density: DensityArgs,

    /// Width of the centre of k-space from which maps are estimated, in samples of a Cartesian scan [default: 24, and
    /// in a plane up to 48 if k-space is sampled without gaps to that width]
    #[arg(long, value_name = "N", help_heading = "Coils")]
    calibration: Option<usize>,

    #[command(flatten)]
    off_resonance: OffResonanceArgs,

    #[command(flatten)]
    plan: PlanArgs,
}

pub fn run(args: &CoilMapsArgs) -> Result<()> {
    args.plan.options()?;
    args.input.check()?;
    args.off_resonance.check()?;
    if args.input.frame_shots.is_some() {
        bail!(InvalidArgument, "--frame-shots: maps are estimated from all shots of a series: leave it out");
    }
    let output = &args.output.output;
    FileUse::WriteComplexImages.format(output).map_err(|e| e.within("coil maps are complex"))?;
    check_outputs(&image_files(output)?, args.input.files().chain(args.off_resonance.files()))?;
    let dataset = input::read(&args.input)?;
    let maps = in_precision!(args.plan.precision, estimate_all(args, dataset))?;
    check_sizes(output, maps.iter().map(|image| (image.dims, image.channels)))?;
    write_output(AtomicFiles::new(), output, |files, path| write_images(files, path, &maps))
}

/// Returns one set of maps per group of scans that share their maps.
fn estimate_all<T: Real>(args: &CoilMapsArgs, dataset: Dataset) -> Result<Vec<Image>> {
    let session = Session::new(dataset, &args.input, Some(&args.off_resonance), &args.plan)?;
    warn_of_file_weights(&session.scans, &args.density);
    let mut sets = Vec::new();
    for group in session.groups(shares_maps) {
        let scan = &session.scans[group[0]];
        let maps = coil_maps::estimate::<T>(&session, &group, &args.density, args.calibration.unwrap_or(0))?;
        let maps = to_coils_of_file(scan, maps)?;
        let coils = scan.coil_matrix.as_ref().map_or(scan.coils, |matrix| matrix.coils());
        let mut image = Image::of_scan(scan, scan.encoded_matrix, coils, to_single(&maps))?;
        image.fov_mm = scan.encoded_fov_mm;
        sets.push((group[0], image));
    }
    sets.sort_by_key(|(number, _)| *number);
    Ok(sets.into_iter().map(|(_, image)| image).collect())
}
