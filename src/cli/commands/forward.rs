//! `recon forward`.

use crate::options::{in_precision, OffResonanceArgs, OutputArgs, PlanArgs, RawDataArgs, RawDataFile};
use crate::run::coil_maps::CoilMapFile;
use crate::run::input::{self, scan_name};
use crate::run::output::check_outputs;
use crate::run::plan::ReusablePlan;
use crate::run::precision::{cast, to_single};
use crate::run::raw_output::{dataset_of, raw_files, write_raw_data};
use crate::run::resize::zeros;
use crate::run::scan_images::ScanImages;
use crate::run::session::Session;
use crate::run::streams::{input_path, write_output};
use crate::run::weights::Weights;
use recon::atomic_file::AtomicFiles;
use recon::bail;
use recon::results::check_results;
use recon::scan::{Header, TrajectoryKind};
use recon::{Complex, Real, Result};
use recon_files::bart::scan;
use recon_files::cfl::trajectory_from_bart;
use recon_files::read_images;
use recon_files::{read_cfl, Dataset, FileUse, Format, Image, Scan, ScanIndex};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Computes the samples E x that a scanner would measure of an image, without noise
///
/// The trajectory is that of a raw file (--like), whose header, counters and positions are copied, or a trajectory of
/// BART for the matrix of the image. The image is on the encoded matrix, or on the reconstructed one, which is then
/// brought to the encoded matrix. A file has one image for all scans, or one per scan.
///
/// With --maps the image is seen by the coils of these maps. Without maps, each channel of the image is the image of
/// one coil. --field-map and --decay-map add off-resonance and decay, as in the model of recon cg. Noise is not added:
/// `recon simulate` adds noise to a phantom.
#[derive(clap::Args)]
#[command(after_help = "Example: the samples of an image on the trajectory of a scan, seen by eight coils:\n  \
    recon forward image.h5 --like scan.h5 --maps maps.h5 -o samples.h5\n\
    Example: samples for BART, on a trajectory of BART:\n  \
    recon forward image.cfl --trajectory traj.cfl -o k.cfl")]
pub struct ForwardArgs {
    #[arg(help = FileUse::ReadImages.help("Image, or images"))]
    image: PathBuf,

    #[command(flatten)]
    output: OutputArgs<RawDataFile>,

    /// Raw data of ISMRMRD with the trajectory, times and header of the new file
    #[arg(long, value_name = "FILE", required_unless_present = "trajectory", help_heading = "Input")]
    like: Option<PathBuf>,

    /// Trajectory of BART, [3, samples, shots] in cycles per field of view, for the matrix of the image
    #[arg(long, value_name = "FILE", conflicts_with = "like", help_heading = "Input")]
    trajectory: Option<PathBuf>,

    #[command(flatten)]
    raw: RawDataArgs,

    #[arg(help = FileUse::ReadImages.help("Coil maps, [encoded matrix, coils]"))]
    #[arg(long, value_name = "FILE", help_heading = "Coils")]
    maps: Option<PathBuf>,

    #[command(flatten)]
    off_resonance: OffResonanceArgs,

    #[command(flatten)]
    plan: PlanArgs,
}

pub fn run(args: &ForwardArgs) -> Result<()> {
    args.plan.options()?;
    args.off_resonance.check()?;
    let files = [&args.like, &args.trajectory, &args.maps].into_iter().flatten();
    let inputs = std::iter::once(&args.image).chain(files).chain(args.off_resonance.files());
    check_outputs(&raw_files(&args.output.output)?, inputs)?;
    let image = input_path(&args.image)?;
    let mut dataset = match (&args.like, &args.trajectory) {
        (Some(like), _) => {
            let input = args.raw.input(like, None, None);
            input::prepare(&input, input::read(&input)?)?
        }
        (None, Some(trajectory)) => {
            dataset_of_images(&read_images(&args.image)?, trajectory).map_err(|e| e.within(args.image.display()))?
        }
        (None, None) => bail!(InvalidArgument, "give --like or --trajectory"),
    };
    let coils = count_coils(args.maps.as_deref().unwrap_or(&image))?;
    for scan in &mut dataset.scans {
        (scan.coils, scan.data) = (coils, Vec::new());
        if let Some(dwell) = args.off_resonance.times.dwell() {
            let shots = scan.samples_per_shot.iter().zip(&scan.skipped_per_shot);
            let numbers = shots.flat_map(|(&count, &skipped)| skipped..skipped + count);
            scan.times = numbers.map(|m| (dwell * m as f64) as f32).collect();
        }
    }
    let has_no_fov = |scan: &Scan| scan.encoded_fov_mm.contains(&0.0);
    if args.trajectory.is_some() && dataset.scans.iter().any(has_no_fov) && !is_bart(&args.output.output) {
        log::warn!(
            "{}: the field of view of the image is unknown, and 0 is written: images in .h5, .nii and .mat files have it",
            args.output.output.display()
        );
    }
    let is_late = |scan: &Scan| scan.skipped_per_shot.iter().any(|&n| n > 0);
    if dataset.scans.iter().any(is_late) {
        log::warn!(
            "{}: samples that the raw data mark as discarded are not computed, and times are measured from the first \
             sample that is",
            args.output.output.display()
        );
    }
    let header = Header { receiver_channels: u16::try_from(coils).ok(), ..dataset.header.clone() };
    let scans = in_precision!(args.plan.precision, samples_of(args, &image, dataset))?;
    let dataset = Dataset { header, scans, noise: Vec::new(), calibration: Vec::new(), uses: Vec::new() };
    write_output(AtomicFiles::new(), &args.output.output, |files, path| write_raw_data(files, path, &dataset))
}

fn is_bart(path: &Path) -> bool {
    Format::of(path) == Some(Format::Bart)
}

/// Returns the number of coils in a file of coil maps or coil images.
fn count_coils(path: &Path) -> Result<usize> {
    if is_bart(path) {
        return Ok(read_cfl(path)?.sizes()[3]);
    }
    Ok(read_images(path)?.first().map_or(1, |image| image.channels))
}

/// Returns a dataset without data of one scan per image, on a trajectory of BART.
fn dataset_of_images(images: &[Image], trajectory: &Path) -> Result<Dataset> {
    let Some(first) = images.first() else { bail!(InvalidArgument, "there is no image") };
    let points =
        trajectory_from_bart(&read_cfl(trajectory)?, first.dims).map_err(|e| e.within(trajectory.display()))?;
    let mut indices = BTreeSet::new();
    let mut scans = Vec::new();
    for image in images {
        if image.dims != first.dims {
            bail!(
                SizeMismatch,
                "images of {:?} and of {:?} voxels have different trajectories",
                first.dims,
                image.dims
            );
        }
        if !indices.insert(image.index) {
            bail!(
                InvalidArgument,
                "two images have the counters {}: their samples could not be told apart",
                image.index
            );
        }
        let index = ScanIndex { encoding: 0, ..image.index };
        scans.push(Scan {
            encoded_fov_mm: image.fov_mm,
            recon_fov_mm: image.fov_mm,
            placement: image.placement,
            ..scan(index, first.dims, points.clone(), TrajectoryKind::Other, 1, Vec::new())
        });
    }
    let dataset = dataset_of(scans.remove(0));
    Ok(Dataset { scans: dataset.scans.into_iter().chain(scans).collect(), ..dataset })
}

/// Returns the scans with the samples of their images.
fn samples_of<T: Real>(args: &ForwardArgs, image: &Path, dataset: Dataset) -> Result<Vec<Scan>> {
    let input = args.raw.input(&args.image, None, None);
    let mut session = Session::new(dataset, &input, Some(&args.off_resonance), &args.plan)?;
    let channels = |scan: &Scan| if args.maps.is_some() { 1 } else { scan.coils };
    let images = ScanImages::read(image, &session, channels)?;
    let mut map_file = CoilMapFile::<T>::new();
    let mut all_samples: Vec<Vec<Complex<f32>>> = vec![Vec::new(); session.scans.len()];
    let mut plan: Option<ReusablePlan<T>> = None;
    for group in session.trajectories() {
        let scan = &session.scans[group[0]];
        let sampling = session.sampling::<T>(group[0], scan)?;
        let mut geometry = sampling.geometry();
        geometry.coil_maps = args.maps.as_ref().map(|path| map_file.read(path, scan)).transpose()?;
        let current = ReusablePlan::new(plan.take(), &geometry, &Weights::Default, &session.options)?;
        for &number in &group {
            let name = scan_name(&session.scans[number]);
            let image = cast::<T>(images.image(number))?;
            let mut samples = zeros(current.plan.kspace_len())?;
            current.plan.forward(&image, &mut samples).map_err(|e| e.within(&name))?;
            all_samples[number] = to_single(&samples);
            // A result in double precision may overflow in the single precision of the file.
            check_results("sample", &all_samples[number]).map_err(|e| e.within(&name))?;
        }
        plan = Some(current);
    }
    for (scan, data) in session.scans.iter_mut().zip(all_samples) {
        scan.data = data;
    }
    Ok(session.scans)
}
