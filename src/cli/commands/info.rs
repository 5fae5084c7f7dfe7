//! `recon info`.

mod images;
mod raw;
mod text;

use crate::options::AcquisitionArgs;
use crate::run::output::say;
use crate::run::streams::input_path;
use recon::backend::cuda::{compile, library, nvrtc, runtime};
use recon::{Device, Geometry, Method, Options, Plan, Result};
use recon_files::cfl::Cfl;
use recon_files::ismrmrd::{read_either, FileContents};
use recon_files::{read_cfl, read_images, Dataset, FileUse, Format, Image};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Describes the program and its machine, or the contents of a file
///
/// Without FILE: version, vector unit, threads, GPUs, NVRTC, and the folder of compiled kernels.
///
/// With FILE of raw data: the number of acquisitions of each use (images, coil maps, whitening, or nothing), noise
/// scans, and the scanner. For each encoding: matrices and fields of view (mm), coils, shots, samples, and the range of
/// the trajectory (cycles per voxel). Slices, repetitions, contrasts, phases and sets are counted in the data; their
/// lines say if the header announces more. The position is that of the first image, in mm to the left, back and head.
///
/// With FILE of images: number, sizes, complex or real values, the largest magnitude, and the position of voxel
/// floor(n/2) of the first image.
///
/// Nothing is reconstructed.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  recon info scan.h5")]
pub struct InfoArgs {
    #[arg(help = FileUse::ReadImages.help("Raw data or images"))]
    file: Option<PathBuf>,

    /// Group of the raw data in an HDF5 file
    #[arg(long, value_name = "NAME", default_value = "dataset")]
    group: String,

    /// Print one JSON object. Its keys are listed in docs/program.md; unknown values and numbers that are not finite
    /// are null
    #[arg(long, requires = "file")]
    json: bool,

    #[command(flatten)]
    acquisitions: AcquisitionArgs,
}

/// The contents of a file.
enum Contents {
    Raw(Box<Dataset>),
    Images(Vec<Image>),
    /// An array of BART: k-space, a trajectory, images or coil maps.
    Array(Cfl),
}

pub fn run(args: &InfoArgs) -> Result<()> {
    let Some(path) = &args.file else { return describe_program() };
    let path = &*input_path(path)?;
    let contents = match Format::of_input(path) {
        Some(Format::Bart) => Contents::Array(read_cfl(path)?),
        Some(Format::Nifti | Format::Dicom | Format::Numpy | Format::Matlab) => Contents::Images(read_images(path)?),
        _ => match read_either(path, &args.group, args.acquisitions.options())? {
            FileContents::Raw(dataset) => Contents::Raw(dataset),
            FileContents::Images(images) => Contents::Images(images),
        },
    };
    match (args.json, &contents) {
        (true, contents) => say(&contents.json(path).to_string()),
        (false, Contents::Raw(dataset)) => raw::print_raw(dataset),
        (false, Contents::Images(found)) => images::print_images(found),
        (false, Contents::Array(array)) => images::print_array(array),
    }
}

impl Contents {
    fn json(&self, path: &Path) -> Value {
        let mut object = match self {
            Contents::Raw(dataset) => raw::raw_json(dataset),
            Contents::Images(found) => images::images_json(found),
            Contents::Array(array) => images::array_json(array),
        };
        object["file"] = path.display().to_string().into();
        object["format"] = Format::of_input(path).map(Format::name).into();
        object
    }
}

fn describe_program() -> Result<()> {
    let k = [0.0f32];
    let options = Options { method: Method::Exact, device: Device::Cpu, ..Options::default() };
    let info = Plan::new(&Geometry::new(&[1, 1], &[&k, &k]), &options)?.info();
    say(&format!("recon {}", env!("CARGO_PKG_VERSION")))?;
    say(&format!("vector unit  {}", info.simd))?;
    say(&format!("threads      {}", info.threads))?;
    describe_gpus()
}

/// Prints the driver, the GPUs, the compiler of their kernels and the folder of compiled kernels.
fn describe_gpus() -> Result<()> {
    match library::driver_version() {
        Ok((major, minor)) => say(&format!("driver       for CUDA {major}.{minor}"))?,
        Err(e) => say(&format!("driver       none: {e}"))?,
    }
    for index in 0..runtime::count() {
        let gpu = runtime::properties(index)?;
        say(&format!(
            "GPU {index:<8} {}, compute capability {}.{}, {} multiprocessors, {:.0} GiB{}",
            gpu.name,
            gpu.capability.0,
            gpu.capability.1,
            gpu.multiprocessors,
            gpu.memory as f64 / (1u64 << 30) as f64,
            if gpu.supported() { "" } else { " (too old: 7.5 is needed)" }
        ))?;
    }
    match nvrtc::version() {
        Ok((major, minor)) => say(&format!("NVRTC        {major}.{minor}"))?,
        Err(e) => say(&format!("NVRTC        none: {e}"))?,
    }
    say("cuFFT        not used: transforms are recon's own")?;
    match compile::cache_folder() {
        Some(folder) => say(&format!("kernels in   {}", folder.display())),
        None => say("kernels in   no folder: neither RECON_CACHE_DIR nor a home; they are compiled by each process"),
    }
}
