//! `recon density`.

use crate::options::{in_precision, DensityArgs, MatrixChoice, OutputArgs, PlanArgs, RawDataArgs, WeightFile};
use crate::run::input;
use crate::run::output::{check_outputs, files_of};
use crate::run::raw_output::{dataset_of, samples_and_shots, write_raw_data};
use crate::run::session::Session;
use crate::run::streams::write_output;
use crate::run::weights::{warn_of_file_weights, Weights};
use recon::atomic_file::AtomicFiles;
use recon::bail;
use recon::results::check_results;
use recon::{Complex, Real, Result};
use recon_files::mat::{write_mat, MatValues, MatVariable};
use recon_files::{write_cfl, write_npy, Dataset, FileUse, Format};
use std::path::{Path, PathBuf};

/// Computes the density weights of the samples
///
/// These are the weights that recon grid uses: those of the file, or else of --density. Each weight is the volume of
/// k-space around its sample, in (cycles per voxel)^d, where d is 2 or 3. Weights are in the order of the samples.
///
/// An ISMRMRD file is a copy of the raw data with the weights as the last dimension of the trajectory, which all
/// commands use. Other files have the weights of one trajectory: .cfl [1, samples, shots], .npy (shots, samples), .mat
/// the variable `weights`, [samples, shots].
#[derive(clap::Args)]
#[command(after_help = "Example: ramp weights of a radial scan, for MATLAB, and in the scan itself:\n  \
    recon density scan.h5 --density ramp -o weights.mat\n  \
    recon density scan.h5 --density ramp -o weighted.h5")]
pub struct DensityFileArgs {
    #[arg(help = FileUse::WriteRawData.help("Raw data: an ISMRMRD dataset, or k-space of BART with --trajectory"))]
    input: PathBuf,

    #[command(flatten)]
    output: OutputArgs<WeightFile>,

    /// Trajectory of BART, [3, samples, shots] in cycles per field of view, for k-space of BART
    #[arg(long, value_name = "FILE", requires = "matrix", help_heading = "Input")]
    trajectory: Option<PathBuf>,

    /// Number of voxels along each axis for which --trajectory was made
    #[arg(long, value_name = "NX,NY[,NZ]", requires = "trajectory", help_heading = "Input")]
    matrix: Option<MatrixChoice>,

    #[command(flatten)]
    raw: RawDataArgs,

    #[command(flatten)]
    density: DensityArgs,

    #[command(flatten)]
    plan: PlanArgs,
}

pub fn run(args: &DensityFileArgs) -> Result<()> {
    args.plan.options()?;
    FileUse::WriteWeights.format(&args.output.output)?;
    check_outputs(&files_of(&args.output.output), std::iter::once(&args.input).chain(&args.trajectory))?;
    let input = args.raw.input(&args.input, args.trajectory.as_ref(), args.matrix.as_ref());
    let mut dataset = input::prepare(&input, input::read(&input)?)?;
    if args.trajectory.is_some() {
        dataset = dataset_of(dataset.scans.remove(0));
    }
    warn_of_file_weights(&dataset.scans, &args.density);
    let (header, noise) = (dataset.header.clone(), dataset.noise.clone());
    let session = Session::new(dataset, &input, None, &args.plan)?;
    let groups = session.trajectories();
    let is_raw_data = Format::of(&args.output.output) == Some(Format::Ismrmrd);
    if groups.len() > 1 && !is_raw_data {
        bail!(
            InvalidArgument,
            "{}: the scans have {} different trajectories, but the file has the weights of one: select one by --slice \
             and --repetition, or write a .h5 file",
            args.output.output.display(),
            groups.len()
        );
    }
    let weights = |group: &Vec<usize>| in_precision!(args.plan.precision, weights_of(args, &session, group[0]));
    let weights = groups.iter().map(weights).collect::<Result<Vec<_>>>()?;
    let Session { mut scans, calibration, .. } = session;
    for (group, weights) in groups.iter().zip(&weights) {
        group.iter().for_each(|&number| scans[number].weights = Some(weights.clone()));
    }
    let dataset = Dataset { header, scans, noise, calibration, uses: Vec::new() };
    write_output(AtomicFiles::new(), &args.output.output, |files, path| match is_raw_data {
        true => write_raw_data(files, path, &dataset),
        false => write_weights(files, path, &dataset),
    })
}

/// Returns the weights of a scan in single precision, the precision of files.
fn weights_of<T: Real>(args: &DensityFileArgs, session: &Session, number: usize) -> Result<Vec<f32>> {
    let scan = &session.scans[number];
    let sampling = session.sampling::<T>(number, scan)?;
    let weights = Weights::<T>::for_data_term(scan, &args.density)?.compute(&sampling, &session.options)?;
    let Some(weights) = weights.known() else { bail!(Internal, "the density weights were not computed") };
    Ok(weights.iter().map(|w| w.wide() as f32).collect())
}

/// Writes the weights of the first scan as an array.
fn write_weights(files: &mut AtomicFiles, path: &Path, dataset: &Dataset) -> Result<()> {
    let scan = &dataset.scans[0];
    let weights = scan.weights.iter().flatten();
    let weights: Vec<Complex<f32>> = weights.map(|&w| Complex::new(w, 0.0)).collect();
    check_results("density weight", &weights)?;
    let [samples, shots] = samples_and_shots(scan).unwrap_or_else(|| {
        log::warn!(
            "{}: the shots have different lengths: the weights of all {} samples are in one row, shot by shot",
            path.display(),
            weights.len()
        );
        [weights.len(), 1]
    });
    match Format::of(path) {
        Some(Format::Bart) => write_cfl(files, path, &[1, samples, shots], &weights),
        Some(Format::Numpy) => write_npy(files, path, &[samples, shots], &[&weights]),
        _ => {
            let values = MatValues::Single(vec![&weights]);
            write_mat(files, path, &[MatVariable { name: "weights", dims: vec![samples, shots], values }])
        }
    }
}
