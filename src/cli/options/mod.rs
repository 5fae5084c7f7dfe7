//! Options that several commands share.

mod acquisitions;
mod choices;
pub mod defaults;
mod dicom;
mod off_resonance;
mod output;
mod phase_difference;
mod selection;

pub use acquisitions::AcquisitionArgs;
pub use choices::{
    BladePhaseKind, Combination, DensityKind, FilterKind, ImageScale, LambdaUnitKind, MethodKind, PartialFourierKind,
    PrecisionKind, PriorKind, SimdKind,
};
pub use dicom::DicomArgs;
pub use off_resonance::{OffResonanceArgs, TimeArgs};
pub use output::{AnyFile, MapFile, OutputArgs, RawDataFile, WeightFile};
pub use phase_difference::{MaxwellChoice, PhaseDifferenceArgs};
pub use selection::SelectionArgs;

use choices::{BasisKind, WindowKind};
use clap::Args;
use recon::bail;
use recon::{Device, Options, Result};
use recon_files::{FileUse, Format};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Calls a function that is generic over the precision.
macro_rules! in_precision {
    ($precision:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match $precision {
            $crate::options::PrecisionKind::F32 => $function::<f32>($($argument),*),
            $crate::options::PrecisionKind::F64 => $function::<f64>($($argument),*),
        }
    };
}
pub(crate) use in_precision;

/// Options for the input of a reconstruction.
#[derive(Args)]
pub struct InputArgs {
    #[arg(help = input_help())]
    pub input: PathBuf,

    #[arg(long, value_name = "FILE", help = trajectory_help(), help_heading = "Input")]
    pub trajectory: Option<PathBuf>,

    /// Number of voxels of the image along each axis, in place of the file's reconstructed matrix. The field of view
    /// stays the same. `encoded` selects the encoded matrix. With --trajectory this option is required: it is the
    /// matrix of that trajectory
    #[arg(long, value_name = "NX,NY[,NZ]", help_heading = "Input")]
    pub matrix: Option<MatrixChoice>,

    /// Group of the HDF5 file that contains the raw data
    #[arg(long, value_name = "NAME", default_value = "dataset", help_heading = "Input")]
    pub group: String,

    #[command(flatten)]
    pub selection: SelectionArgs,

    /// Use only every N-th shot (spoke, line, interleaf), beginning with the first
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Input")]
    pub every: usize,

    /// Reconstruct several images from one series of shots: sliding windows of this number of shots, in the order of
    /// acquisition. The images are numbered as repetitions
    #[arg(long, value_name = "SHOTS", help_heading = "Input")]
    pub frame_shots: Option<usize>,

    /// Number of shots from the first shot of a frame to the first shot of the next [default: --frame-shots]
    #[arg(long, value_name = "SHOTS", help_heading = "Input", requires = "frame_shots")]
    pub frame_step: Option<usize>,

    #[command(flatten)]
    pub acquisitions: AcquisitionArgs,

    #[arg(long, value_name = "auto|none|FILE", default_value = "auto", help = whiten_help(), help_heading = "Coils")]
    pub whiten: WhiteningChoice,

    /// Compress the coils, after whitening, to this number of virtual coils, or to as many as hold this percentage of
    /// the energy, such as 99% [default: no compression]
    #[arg(long, value_name = "N|P%", value_parser = parse_compression, help_heading = "Coils")]
    pub compress: Option<CompressionTarget>,
}

fn input_help() -> String {
    format!(
        "Raw data: an ISMRMRD dataset ({}), or k-space of BART ({}, or the name without an ending): Cartesian, [x, y, \
         z, coils], or [1, samples, shots, coils] with --trajectory",
        FileUse::ReadDataset.extensions(),
        Format::Bart.extensions()
    )
}

fn trajectory_help() -> String {
    format!(
        "Trajectory of BART ({}; [3, samples, shots], real, in units of 1/FOV) for k-space of BART. Numbers of samples \
         and shots must be those of k-space, in this order. If the two numbers are equal, the order cannot be checked. \
         It has one frame for each frame of k-space, or one for all",
        Format::Bart.extensions()
    )
}

fn whiten_help() -> String {
    format!(
        "Noise that whitens the coils. auto: noise acquisitions of the input file, if it has any; none: no whitening; \
         a file: noise acquisitions ({}) or noise samples, [1, samples, shots, coils], ({})",
        FileUse::ReadDataset.extensions(),
        Format::Bart.extensions()
    )
}

/// The noise that whitens the coils.
#[derive(Clone, PartialEq, Debug)]
pub enum WhiteningChoice {
    /// The noise of the input file, if it has any.
    Auto,
    /// No whitening.
    None,
    /// The noise of this file.
    File(PathBuf),
}

impl From<&OsStr> for WhiteningChoice {
    fn from(text: &OsStr) -> Self {
        match text.to_str() {
            Some("auto") => WhiteningChoice::Auto,
            Some("none") => WhiteningChoice::None,
            _ => WhiteningChoice::File(text.into()),
        }
    }
}

impl WhiteningChoice {
    /// Returns the file of the noise; `None` if the option names no file.
    pub fn file(&self) -> Option<&PathBuf> {
        match self {
            WhiteningChoice::File(path) => Some(path),
            WhiteningChoice::Auto | WhiteningChoice::None => None,
        }
    }
}

/// The number of virtual coils after compression.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum CompressionTarget {
    Coils(usize),
    /// The smallest number of coils that hold this percentage of the energy.
    Percent(f64),
}

fn parse_compression(text: &str) -> std::result::Result<CompressionTarget, String> {
    let target = match text.strip_suffix('%') {
        Some(percent) => percent.parse().ok().filter(|p| *p > 0.0 && *p <= 100.0).map(CompressionTarget::Percent),
        None => text.parse().ok().filter(|n| *n > 0).map(CompressionTarget::Coils),
    };
    target.ok_or_else(|| "a number of coils is expected, or a percentage of the energy such as 99%".into())
}

impl InputArgs {
    /// Checks the options before a file is read.
    pub fn check(&self) -> Result<()> {
        if self.every == 0 {
            bail!(InvalidArgument, "--every is 0: give 1 to keep all shots, or a larger number");
        }
        for (option, shots) in [("--frame-shots", self.frame_shots), ("--frame-step", self.frame_step)] {
            if shots == Some(0) {
                bail!(InvalidArgument, "{option} is 0: give 1 shot or more");
            }
        }
        Ok(())
    }

    /// Returns the files that are read.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.input).chain(&self.trajectory).chain(self.whiten.file())
    }
}

/// Options that select and interpret the raw data of a file.
#[derive(Args)]
pub struct RawDataArgs {
    /// Group of the HDF5 file that contains the raw data
    #[arg(long, value_name = "NAME", default_value = "dataset", help_heading = "Input")]
    pub group: String,

    #[command(flatten)]
    pub selection: SelectionArgs,

    #[command(flatten)]
    pub acquisitions: AcquisitionArgs,
}

impl RawDataArgs {
    /// Returns the options of an input that is read without whitening and compression. `trajectory` and `matrix` are
    /// for k-space of BART.
    pub fn input(&self, path: &Path, trajectory: Option<&PathBuf>, matrix: Option<&MatrixChoice>) -> InputArgs {
        InputArgs {
            input: path.to_owned(),
            trajectory: trajectory.cloned(),
            matrix: matrix.cloned(),
            group: self.group.clone(),
            selection: self.selection.clone(),
            every: 1,
            frame_shots: None,
            frame_step: None,
            acquisitions: self.acquisitions.clone(),
            whiten: WhiteningChoice::None,
            compress: None,
        }
    }
}

/// Options for the image that a reconstruction writes.
#[derive(Args)]
pub struct ImageOutputArgs {
    #[command(flatten)]
    pub file: OutputArgs,

    /// Scale of the images
    #[arg(long, value_enum, default_value_t = ImageScale::Recon, help_heading = "Output")]
    pub scale: ImageScale,

    #[command(flatten)]
    pub dicom: DicomArgs,
}

/// Options for the computation of plans.
#[derive(Args)]
pub struct PlanArgs {
    /// Method of computing sums over samples
    #[arg(long, value_enum, default_value_t = MethodKind::Auto, help_heading = "Computation")]
    pub method: MethodKind,

    /// Relative l2 error of the transforms, compared with exact sums, in (0, 1) [default: 1e-5, or the smallest error
    /// of the window]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Computation")]
    pub tolerance: Option<f64>,

    /// Gridding window
    #[arg(long, value_enum, default_value_t = WindowKind::Minimax, help_heading = "Computation")]
    pub window: WindowKind,

    /// Width of the gridding window in grid cells, 2 to 16; 0: a width that meets the tolerance
    #[arg(long, value_name = "CELLS", default_value_t = 0, help_heading = "Computation")]
    pub width: usize,

    /// Ratio of the grid size to the image size, 1.25 to 2.5; 0: a ratio that meets the tolerance
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_negative_numbers = true, help_heading = "Computation")]
    pub oversampling: f64,

    /// Number of CPU threads; 0: as many as the machine runs at once
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Computation")]
    pub threads: usize,

    /// Device: auto (the GPU or the CPU, by estimated times), cpu, cuda, or cuda: with a list of GPUs, such as cuda:0,1
    #[arg(long, value_name = "DEVICE", default_value = "auto", help_heading = "Computation")]
    pub device: DeviceChoice,

    /// Maximum number of bytes of a plan: a number, or one with K, M, G or T (powers of 1024) [default: no limit]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = "Computation")]
    pub memory_limit: Option<usize>,

    /// Level of the processor's vector unit; any value except auto overrides the environment variable RECON_SIMD
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = SimdKind::Auto, help_heading = "Computation")]
    pub simd: SimdKind,

    /// Precision of the computation; files always hold single precision
    #[arg(long, value_enum, default_value_t = PrecisionKind::F32, help_heading = "Computation")]
    pub precision: PrecisionKind,

    /// Shape of a voxel: point, or box. For box, E and its adjoint multiply samples by sincs, which cg compensates
    #[arg(long, value_enum, default_value_t = BasisKind::Point, help_heading = "Computation")]
    pub basis: BasisKind,
}

impl PlanArgs {
    /// Returns the library's options.
    ///
    /// # Errors
    /// `ToleranceOutOfRange` for a tolerance outside (0, 1).
    pub fn options(&self) -> Result<Options> {
        if let Some(tolerance) = self.tolerance.filter(|t| !(*t > 0.0 && *t < 1.0)) {
            bail!(ToleranceOutOfRange, "--tolerance is {tolerance}: it must be between 0 and 1");
        }
        Ok(Options {
            method: self.method.into(),
            device: self.device.0.clone(),
            tolerance: self.tolerance.unwrap_or(0.0),
            window: self.window.into(),
            width: self.width,
            oversampling: self.oversampling,
            threads: self.threads,
            memory_limit: self.memory_limit,
            simd: self.simd.into(),
            ..Options::default()
        })
    }
}

/// Options for density weights.
#[derive(Args, Clone, Copy)]
pub struct DensityArgs {
    /// Density compensation if the file has no weights. [default: pipe-menon; equal weights, which give the inverse
    /// discrete Fourier transform, if the samples are a complete Cartesian grid]
    #[arg(long, value_enum, help_heading = "Reconstruction")]
    pub density: Option<DensityKind>,

    /// Ignore the density weights in the file and compute new ones
    #[arg(long, help_heading = "Reconstruction")]
    pub ignore_weights: bool,
}

/// The matrix of an image.
#[derive(Clone, Debug, PartialEq)]
pub enum MatrixChoice {
    /// The encoded matrix of the scan.
    Encoded,
    /// Two or three sizes.
    Sizes(Vec<usize>),
}

impl FromStr for MatrixChoice {
    type Err = String;
    fn from_str(text: &str) -> std::result::Result<MatrixChoice, String> {
        if text == "encoded" {
            return Ok(MatrixChoice::Encoded);
        }
        let sizes: Option<Vec<usize>> = text.split([',', 'x']).map(|n| n.trim().parse().ok()).collect();
        match sizes {
            Some(sizes) if (2..=3).contains(&sizes.len()) => Ok(MatrixChoice::Sizes(sizes)),
            _ => Err("two or three whole numbers are expected, such as 256,256".into()),
        }
    }
}

/// Checks the sizes of a matrix and returns [nx, ny, nz]; nz is 1 in 2D.
pub fn checked_sizes(sizes: &[usize]) -> Result<[usize; 3]> {
    let matrix = [sizes[0], sizes[1], sizes.get(2).copied().unwrap_or(1)];
    if let Some(axis) = matrix.iter().position(|&n| n == 0) {
        let axis = ["x", "y", "z"][axis];
        bail!(InvalidSize, "--matrix: the size along {axis} is 0: every axis needs at least one voxel");
    }
    Ok(matrix)
}

/// The device that computes.
#[derive(Clone, Debug)]
pub struct DeviceChoice(pub Device);

impl FromStr for DeviceChoice {
    type Err = String;
    fn from_str(text: &str) -> std::result::Result<DeviceChoice, String> {
        let device = match text {
            "auto" => Some(Device::Auto),
            "cpu" => Some(Device::Cpu),
            "cuda" => Some(Device::Cuda(vec![0])),
            _ => text
                .strip_prefix("cuda:")
                .and_then(|list| list.split(',').map(|n| n.parse().ok()).collect())
                .map(Device::Cuda),
        };
        device.map(DeviceChoice).ok_or_else(|| "the device must be auto, cpu, cuda, or a list such as cuda:0,1".into())
    }
}

fn parse_bytes(text: &str) -> std::result::Result<usize, String> {
    let upper = text.trim().to_ascii_uppercase();
    let short = upper.strip_suffix("IB").or(upper.strip_suffix('B')).unwrap_or(&upper);
    let (digits, power) = match short.char_indices().last() {
        Some((at, unit)) if unit.is_ascii_alphabetic() => (&short[..at], "KMGT".find(unit).map(|p| p + 1)),
        _ => (short, Some(0)),
    };
    let bytes = power.and_then(|p| digits.parse::<usize>().ok()?.checked_mul(1 << (10 * p)));
    bytes.ok_or_else(|| "a whole number is expected, alone or with K, M, G or T, such as 512M".into())
}
