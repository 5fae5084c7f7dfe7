//! Options that several commands share.

use clap::{Args, ValueEnum};
use recon::bail;
use recon::{
    BladePhase, Combine, Density, Device, Filter, LambdaUnit, Method, Options, Result, Simd, VoxelBasis, Window,
};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::str::FromStr;

/// The input of a reconstruction.
#[derive(Args)]
pub struct InputArgs {
    /// Raw data: ISMRMRD (.h5, .mrd), or BART's k-space (.cfl, [1, samples, shots, coils]) with --trajectory
    pub input: PathBuf,

    /// Trajectory of BART's (.cfl, [3, samples, shots], real, in units of 1/FOV) for k-space in a .cfl file. Samples
    /// and shots must be those of k-space, in this order; where both are the same number, the order cannot be checked
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub trajectory: Option<PathBuf>,

    /// Voxels of the image, in place of the file's reconstructed matrix, over the same field of view; `encoded`: stay
    /// on the encoded matrix. With --trajectory: the matrix that the trajectory was made for (needed)
    #[arg(long, value_name = "NX,NY[,NZ]", help_heading = "Input")]
    pub matrix: Option<Matrix>,

    /// Group of the HDF5 file that has the raw data
    #[arg(long, value_name = "NAME", default_value = "dataset", help_heading = "Input")]
    pub group: String,

    /// Only this slice; otherwise all
    #[arg(long, value_name = "N", help_heading = "Input")]
    pub slice: Option<u16>,

    /// Only this repetition; otherwise all
    #[arg(long, value_name = "N", help_heading = "Input")]
    pub repetition: Option<u16>,

    /// Keep every N-th shot (spoke, line, interleaf) only, the first being kept
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Input")]
    pub every: usize,

    /// Images of so many shots each, from one series of shots: sliding windows in the order of acquisition. Images are
    /// numbered as repetitions
    #[arg(long, value_name = "SHOTS", help_heading = "Input")]
    pub frame_shots: Option<usize>,

    /// Shots from the first of one frame to the first of the next [default: those of a frame]
    #[arg(long, value_name = "SHOTS", help_heading = "Input", requires = "frame_shots")]
    pub frame_step: Option<usize>,

    /// Noise by which coils are whitened: auto: the noise acquisitions of the file, if it has any; none: not at all; or
    /// a file with noise acquisitions (.h5, .mrd) or samples of noise (.cfl, [1, samples, shots, coils])
    #[arg(long, value_name = "auto|none|FILE", default_value = "auto", help_heading = "Coils")]
    pub whiten: Whiten,

    /// Make fewer virtual coils of the coils, after whitening: so many, or as many as hold this percentage of the
    /// energy, such as 99%
    #[arg(long, value_name = "N|P%", value_parser = parse_keep, help_heading = "Coils")]
    pub compress: Option<KeepCoils>,
}

/// The noise by which coils are whitened.
#[derive(Clone, PartialEq, Debug)]
pub enum Whiten {
    Auto,
    None,
    File(PathBuf),
}

impl From<&OsStr> for Whiten {
    fn from(text: &OsStr) -> Self {
        match text.to_str() {
            Some("auto") => Whiten::Auto,
            Some("none") => Whiten::None,
            _ => Whiten::File(text.into()),
        }
    }
}

/// How many virtual coils are made.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum KeepCoils {
    Number(usize),
    Percent(f64),
}

fn parse_keep(text: &str) -> std::result::Result<KeepCoils, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.parse().ok().filter(|p| *p > 0.0 && *p <= 100.0).map(KeepCoils::Percent),
        None => text.parse().ok().filter(|n| *n > 0).map(KeepCoils::Number),
    };
    number.ok_or_else(|| "a number of coils is expected, or a percentage of the energy such as 99%".into())
}

impl InputArgs {
    /// The files that are read.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let noise = match &self.whiten {
            Whiten::File(path) => Some(path),
            Whiten::Auto | Whiten::None => None,
        };
        std::iter::once(&self.input).chain(&self.trajectory).chain(noise)
    }
}

/// How plans compute.
#[derive(Args)]
pub struct PlanArgs {
    /// How sums over samples are computed: auto is nufft
    #[arg(long, value_enum, default_value_t = MethodKind::Auto, help_heading = "Computation")]
    pub method: MethodKind,

    /// Relative l2 error of the transforms against exact sums, in (0, 1) [default: 1e-5, or the best that the window
    /// reaches]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Computation")]
    pub tolerance: Option<f64>,

    /// Gridding window
    #[arg(long, value_enum, default_value_t = WindowKind::Minimax, help_heading = "Computation")]
    pub window: WindowKind,

    /// Width of the gridding window in grid cells, 2 to 16; 0: one that keeps the tolerance
    #[arg(long, value_name = "CELLS", default_value_t = 0, help_heading = "Computation")]
    pub width: usize,

    /// Size of the grid over that of the image, 1.25 to 2.5; 0: one between 1.25 and 2 that keeps the tolerance
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_negative_numbers = true, help_heading = "Computation")]
    pub oversampling: f64,

    /// CPU threads; 0: as many as the machine runs at once
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Computation")]
    pub threads: usize,

    /// Where: auto, cpu, cuda, or cuda: with the GPUs to use, such as cuda:0,1
    #[arg(long, value_name = "DEVICE", default_value = "auto", help_heading = "Computation")]
    pub device: DeviceChoice,

    /// Most bytes that a plan may hold: a number, or one with K, M, G or T (powers of 1024)
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, help_heading = "Computation")]
    pub memory_limit: Option<usize>,

    /// Level of the processor's vector unit; any but auto wins over the environment variable RECON_SIMD
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = SimdKind::Auto, help_heading = "Computation")]
    pub simd: SimdKind,

    /// Precision of the computation; files hold single precision
    #[arg(long, value_enum, default_value_t = Precision::F32, help_heading = "Computation")]
    pub precision: Precision,

    /// Shape of a voxel: point, or box (then E and its adjoint multiply samples by sincs, which cg undoes)
    #[arg(long, value_enum, default_value_t = BasisKind::Point, help_heading = "Computation")]
    pub basis: BasisKind,
}

impl PlanArgs {
    pub fn options(&self) -> Result<Options> {
        if let Some(tolerance) = self.tolerance.filter(|t| !(*t > 0.0 && *t < 1.0)) {
            bail!(ToleranceOutOfRange, "--tolerance is {tolerance}: it must be between 0 and 1");
        }
        Ok(Options {
            method: self.method.into(),
            device: self.device.0.clone(),
            tolerance: self.tolerance.unwrap_or(0.0),
            window: match self.window {
                WindowKind::Minimax => Window::Minimax,
                WindowKind::KaiserBessel => Window::KaiserBessel,
                WindowKind::Gaussian => Window::Gaussian,
                WindowKind::Bilinear => Window::Bilinear,
            },
            width: self.width,
            oversampling: self.oversampling,
            threads: self.threads,
            memory_limit: self.memory_limit,
            simd: self.simd.into(),
            ..Options::default()
        })
    }

    pub fn basis(&self) -> VoxelBasis {
        match self.basis {
            BasisKind::Point => VoxelBasis::Point,
            BasisKind::Box => VoxelBasis::Box,
        }
    }
}

/// Density weights.
#[derive(Args)]
pub struct DensityArgs {
    /// Density weights where the file has none. By default pipe-menon, or, where the samples are a whole Cartesian
    /// grid, equal weights: the inverse discrete Fourier transform
    #[arg(long, value_enum, help_heading = "Reconstruction")]
    pub density: Option<DensityKind>,

    /// Compute density weights although the file has some
    #[arg(long, help_heading = "Reconstruction")]
    pub ignore_weights: bool,
}

macro_rules! choices {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $case:ident),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
        pub enum $name { $($(#[$about])* $case),+ }
    };
}

choices!(
    /// How sums are computed.
    MethodKind {
        /// Gridding (nufft)
        Auto,
        /// The direct sums, slow and to full precision
        Exact,
        /// Gridding and FFT, to the tolerance
        Nufft
    }
);
choices!(
    /// Gridding windows.
    WindowKind {
        /// Least worst error: the best at every tolerance
        Minimax,
        /// Kaiser-Bessel: one to two cells wider
        KaiserBessel,
        /// About half the digits
        Gaussian,
        /// Linear interpolation: reaches errors of about 0.2
        Bilinear
    }
);
choices!(
    /// Precisions.
    Precision {
        /// Single
        F32,
        /// Double
        F64
    }
);
choices!(
    /// Vector units.
    SimdKind {
        /// What RECON_SIMD names, else the best that the processor has
        Auto,
        /// What every processor has: SSE2 on x86-64
        #[value(alias = "sse")]
        Baseline,
        /// AVX2 with fused multiply-add
        Avx2,
        /// AVX-512
        Avx512
    }
);
choices!(
    /// Voxel shapes.
    BasisKind {
        /// A point
        Point,
        /// A box
        Box
    }
);
choices!(
    /// Ways to density weights.
    DensityKind {
        /// The fixed point of Pipe and Menon 1999: any trajectory; 0.4 to 3 % error where sampling is full
        PipeMenon,
        /// One over the density of samples (Jackson et al. 1991): any trajectory, in one step; 5 to 15 % error
        Jackson,
        /// |k|^(d-1): even spokes through the centre, even (Archimedean) spirals, stacks of either along an axis; 0 to
        /// 3 % error. Other trajectories are refused
        Ramp
    }
);
choices!(
    /// Filters of backprojection: each with less noise and less detail than the one before.
    FilterKind {
        /// The ramp |k| alone
        RamLak,
        /// The ramp times sin(a) / a, a = pi |k| / (2 kmax)
        SheppLogan,
        /// The ramp times cos(a)
        Cosine,
        /// The ramp times 0.54 + 0.46 cos(2a)
        Hamming,
        /// The ramp times (1 + cos(2a)) / 2
        Hann
    }
);
choices!(
    /// What is done about the phase of blades.
    BladePhaseKind {
        /// The phase of a smooth image of each blade, coil by coil, is taken away, with that of the object and the
        /// coils
        Smooth,
        /// One phase for each blade, the same in all coils
        Constant,
        /// Nothing
        None
    }
);
choices!(
    /// Ways to combine coils.
    Combination {
        /// Root of the sum of squares: a magnitude
        Rss,
        /// Weighted by sensitivities estimated from the coil images: keeps the phase
        Adaptive,
        /// Not at all: one image a coil
        None
    }
);
choices!(
    /// Priors.
    PriorKind {
        /// Small values
        Identity,
        /// Small differences between neighbours
        Differences,
        /// Small differences between neighbours, except across borders of --reference
        Anatomical
    }
);

impl From<MethodKind> for Method {
    fn from(kind: MethodKind) -> Method {
        match kind {
            MethodKind::Auto => Method::Auto,
            MethodKind::Exact => Method::Exact,
            MethodKind::Nufft => Method::Nufft,
        }
    }
}

impl From<SimdKind> for Simd {
    fn from(kind: SimdKind) -> Simd {
        match kind {
            SimdKind::Auto => Simd::Auto,
            SimdKind::Baseline => Simd::Baseline,
            SimdKind::Avx2 => Simd::Avx2,
            SimdKind::Avx512 => Simd::Avx512,
        }
    }
}

impl From<FilterKind> for Filter {
    fn from(kind: FilterKind) -> Filter {
        match kind {
            FilterKind::RamLak => Filter::RamLak,
            FilterKind::SheppLogan => Filter::SheppLogan,
            FilterKind::Cosine => Filter::Cosine,
            FilterKind::Hamming => Filter::Hamming,
            FilterKind::Hann => Filter::Hann,
        }
    }
}

impl From<BladePhaseKind> for BladePhase {
    fn from(kind: BladePhaseKind) -> BladePhase {
        match kind {
            BladePhaseKind::Smooth => BladePhase::Smooth,
            BladePhaseKind::Constant => BladePhase::Constant,
            BladePhaseKind::None => BladePhase::None,
        }
    }
}

impl From<DensityKind> for Density {
    fn from(kind: DensityKind) -> Density {
        match kind {
            DensityKind::PipeMenon => Density::default(),
            DensityKind::Jackson => Density::Jackson,
            DensityKind::Ramp => Density::Ramp,
        }
    }
}

impl Combination {
    pub fn how(self) -> Option<Combine> {
        match self {
            Combination::Rss => Some(Combine::RootSumOfSquares),
            Combination::Adaptive => Some(Combine::Adaptive),
            Combination::None => None,
        }
    }
}

/// The voxels of an image.
#[derive(Clone, Debug, PartialEq)]
pub enum Matrix {
    Encoded,
    Sizes(Vec<usize>),
}

impl FromStr for Matrix {
    type Err = String;
    fn from_str(text: &str) -> std::result::Result<Matrix, String> {
        if text == "encoded" {
            return Ok(Matrix::Encoded);
        }
        let sizes: Option<Vec<usize>> = text.split([',', 'x']).map(|n| n.trim().parse().ok()).collect();
        match sizes {
            Some(sizes) if (2..=3).contains(&sizes.len()) => Ok(Matrix::Sizes(sizes)),
            _ => Err("two or three whole numbers are expected, such as 256,256".into()),
        }
    }
}

/// Checked sizes of a matrix, [nx, ny, nz]; nz is 1 in 2D.
pub fn checked_sizes(sizes: &[usize]) -> Result<[usize; 3]> {
    let all = [sizes[0], sizes[1], sizes.get(2).copied().unwrap_or(1)];
    if let Some(axis) = all.iter().position(|&n| n == 0) {
        let axis = ["x", "y", "z"][axis];
        bail!(InvalidSize, "--matrix: the size along {axis} is 0: every axis needs at least one voxel");
    }
    Ok(all)
}

/// Where to compute.
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
        device.map(DeviceChoice).ok_or_else(|| "it must be auto, cpu, cuda, or a list such as cuda:0,1".into())
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

/// What --lambda is relative to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum LambdaUnitKind {
    /// The mean of the diagonal of E^H W E over the voxels that the coils see (the sum of the data's weights, where
    /// coil maps have unit norm): one value serves scans of any length
    Relative,
    /// 1: lambda stands in the equations as it is
    Absolute,
}

impl From<LambdaUnitKind> for LambdaUnit {
    fn from(kind: LambdaUnitKind) -> LambdaUnit {
        match kind {
            LambdaUnitKind::Relative => LambdaUnit::Relative,
            LambdaUnitKind::Absolute => LambdaUnit::Absolute,
        }
    }
}
