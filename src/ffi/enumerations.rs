//! Tables of the enumerations of the C API. A row of a table is one value: its number and name in C, its value in Rust,
//! and the word that MATLAB and other hosts use for it.
//!
//! To add a value, add a row and run `make header`. The checks of numbers and MATLAB's words follow from the table.

use crate::base::acquisition::AcquisitionPurpose;
use crate::base::error::{bail, Result};
use crate::base::geometry::VoxelBasis;
use crate::base::options::{Filter, LambdaUnit, Method, Normal, Simd, Window};
use crate::engine::device_selection::DeviceReason;
use crate::partial_fourier::PartialFourierMethod;
use crate::propeller::BladePhase;
use crate::reconstruction::cg::Stop;
use crate::reconstruction::coils::Combine;
use crate::scan::{CompletionCounter, TrajectoryKind};
use crate::simulation::metrics::Scale;
use crate::simulation::trajectory::SpokeOrder;
use log::LevelFilter;
use std::ffi::CStr;

/// An enumeration of the C API.
pub(super) trait Enumeration: Sized {
    /// Values, with their numbers, names and words.
    const TABLE: EnumTable;
    /// Returns the number in the C API.
    fn number(self) -> u32;
    /// Returns the value of a number; `None` for an unknown number.
    fn of_number(number: u32) -> Option<Self>;
}

/// EnumTable of an enumeration.
pub(super) struct EnumTable {
    /// Name of the option in hosts such as MATLAB.
    option: &'static str,
    rows: &'static [EnumRow],
    /// Definition in Rust, from which cbindgen generates the header.
    source: &'static str,
}

/// One value of an enumeration.
struct EnumRow {
    number: u32,
    name: &'static str,
    /// Word in hosts, with a zero at the end.
    word: &'static str,
}

impl EnumRow {
    /// Returns the word without the zero.
    fn word(&self) -> &str {
        self.word.trim_end_matches('\0')
    }
}

/// Returns the value for the number in field or argument `field`.
///
/// # Errors
/// `UnknownValue` with the known numbers and names.
pub(super) fn choice<E: Enumeration>(field: &str, value: u32) -> Result<E> {
    match E::of_number(value) {
        Some(choice) => Ok(choice),
        None => {
            let names: Vec<String> = E::TABLE.rows.iter().map(|row| format!("{} ({})", row.number, row.name)).collect();
            bail!(UnknownValue, "{field} is {value}, which this version does not know: use {}", names.join(", "))
        }
    }
}

/// Returns the table of an option.
fn table(option: &str) -> Result<&'static EnumTable> {
    match ALL.iter().find(|table| table.option == option) {
        Some(table) => Ok(table),
        None => {
            let options: Vec<&str> = ALL.iter().map(|table| table.option).collect();
            bail!(UnknownValue, "there is no option {option}: use one of {}", options.join(", "))
        }
    }
}

/// Returns the number of an option's value by its word.
///
/// # Errors
/// `UnknownValue` with the known options or words.
pub(super) fn number_of(option: &str, word: &str) -> Result<u32> {
    let table = table(option)?;
    match table.rows.iter().find(|row| row.word() == word) {
        Some(row) => Ok(row.number),
        None => {
            let words: Vec<&str> = table.rows.iter().map(EnumRow::word).collect();
            bail!(UnknownValue, "{option} is '{word}': it must be '{}'", words.join("' or '"))
        }
    }
}

/// Returns the word of an option's value; empty if the option or the number is unknown.
pub(super) fn word_of(option: &str, number: u32) -> &'static CStr {
    let row = table(option).ok().and_then(|table| table.rows.iter().find(|row| row.number == number));
    row.map_or(c"", |row| CStr::from_bytes_with_nul(row.word.as_bytes()).expect("a zero at the end"))
}

/// Returns the definitions of all enumerations, for the header.
pub(super) fn sources() -> String {
    let all: Vec<&str> = [super::status::SOURCE].into_iter().chain(ALL.iter().map(|table| table.source)).collect();
    all.join("\n")
}

/// Defines an enumeration: `for` an existing type of the Rust API, or `as` a new type for the C API only.
macro_rules! c_enum {
    ($(#[doc = $doc:literal])+ pub enum $c:ident $option:literal as $rust:ident {
        $($(#[doc = $about:literal])+ $name:ident = $number:literal is $value:ident, $word:literal;)+
    }) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum $rust {
            $($(#[doc = $about])+ $value),+
        }
        c_enum! {
            $(#[doc = $doc])+ pub enum $c $option for $rust {
                $($(#[doc = $about])+ $name = $number is $value, $word;)+
            }
        }
    };
    ($(#[doc = $doc:literal])+ pub enum $c:ident $option:literal for $rust:ident {
        $($(#[doc = $about:literal])+ $name:ident = $number:literal is $value:ident, $word:literal;)+
    }) => {
        $(#[doc = $doc])+
        #[repr(C)]
        pub enum $c {
            $($(#[doc = $about])+ $name = $number),+
        }
        impl Enumeration for $rust {
            const TABLE: EnumTable = EnumTable {
                option: $option,
                rows: &[$(EnumRow { number: $number, name: stringify!($name), word: concat!($word, "\0") }),+],
                source: stringify!(
                    $(#[doc = $doc])+
                    #[repr(C)]
                    pub enum $c {
                        $($(#[doc = $about])+ $name = $number),+
                    }
                ),
            };
            fn number(self) -> u32 {
                match self {
                    $($rust::$value => $number),+
                }
            }
            fn of_number(number: u32) -> Option<Self> {
                match number {
                    $($number => Some($rust::$value),)+
                    _ => None,
                }
            }
        }
    };
}

c_enum! {
    /// The type of every real number in the arrays of a plan; complex numbers are pairs (re, im) of it.
    pub enum recon_precision "precision" as Precision {
        /// float
        RECON_F32 = 0 is F32, "single";
        /// double
        RECON_F64 = 1 is F64, "double";
    }
}

c_enum! {
    /// The shape of a voxel, whose Fourier transform phi(k) multiplies the samples of the model.
    pub enum recon_basis "basis" for VoxelBasis {
        /// A point: phi = 1.
        RECON_BASIS_POINT = 0 is Point, "point";
        /// A box of one voxel: phi = product over axes of sin(pi k)/(pi k).
        RECON_BASIS_BOX = 1 is Box, "box";
    }
}

c_enum! {
    /// Method of evaluating E and E^H.
    pub enum recon_method "method" for Method {
        /// NUFFT for a grid of voxels, exact sums for a list.
        RECON_METHOD_AUTO = 0 is Auto, "auto";
        /// The direct sums, to full precision, in time samples times voxels.
        RECON_METHOD_EXACT = 1 is Exact, "exact";
        /// Gridding and FFT, to the tolerance.
        RECON_METHOD_NUFFT = 2 is Nufft, "nufft";
    }
}

c_enum! {
    /// Method of evaluating E^H W E.
    pub enum recon_normal_operator "normal" for Normal {
        /// The method that is faster by the cost model, within the memory limit.
        RECON_NORMAL_AUTO = 0 is Auto, "auto";
        /// By convolution with Q, on the doubled grid.
        RECON_NORMAL_TOEPLITZ = 1 is Toeplitz, "toeplitz";
        /// By one forward and one adjoint transform.
        RECON_NORMAL_TRANSFORMS = 2 is Transforms, "transforms";
    }
}

c_enum! {
    /// Device on which a plan computes.
    pub enum recon_device "device" as DeviceKind {
        /// The first usable GPU or the CPU: the one that is estimated to finish a plan and one transform first. It is
        /// the GPU with a stream or arrays on a GPU. See estimated_cpu_ms of recon_plan_properties.
        RECON_DEVICE_AUTO = 0 is Auto, "auto";
        /// The CPU.
        RECON_DEVICE_CPU = 1 is Cpu, "cpu";
        /// NVIDIA GPUs, of compute capability 7.5 or more.
        RECON_DEVICE_CUDA = 2 is Cuda, "cuda";
    }
}

c_enum! {
    /// Reason why a plan computes on its device.
    pub enum recon_device_reason "device_reason" for DeviceReason {
        /// The caller requested the device, by its name, by a stream, or by arrays on a GPU.
        RECON_DEVICE_REQUESTED = 0 is Requested, "requested";
        /// A plan and one transform are estimated to take less time than on the other device.
        RECON_DEVICE_ESTIMATED_FASTER = 1 is EstimatedFaster, "estimated-faster";
        /// There is no GPU.
        RECON_DEVICE_NO_GPU = 2 is NoGpu, "no-gpu";
        /// There is a GPU that cannot be used. The log has the cause: NVRTC is missing, the GPU is too old, or CUDA has
        /// failed or was started before a fork.
        RECON_DEVICE_GPU_UNUSABLE = 3 is GpuUnusable, "gpu-unusable";
    }
}

c_enum! {
    /// Vector unit of the processor that a plan uses. Levels differ in speed and in rounding.
    pub enum recon_simd "simd" for Simd {
        /// The level in the environment variable RECON_SIMD (baseline or sse, avx2, avx512 on x86-64; baseline or neon
        /// on 64-bit ARM). If the variable is not set or is auto, the best level of the processor. On AMD's Zen 4 that
        /// is avx512-256: gridding with vectors of 256 bits, the rest with 512 bits. Any other value of the option
        /// takes precedence over the variable.
        RECON_SIMD_AUTO = 0 is Auto, "auto";
        /// The level of every processor of the architecture: SSE2 on x86-64, NEON on 64-bit ARM.
        RECON_SIMD_BASELINE = 1 is Baseline, "baseline";
        /// AVX2 with fused multiply-add.
        RECON_SIMD_AVX2 = 2 is Avx2, "avx2";
        /// AVX-512 F, VL, DQ and BW.
        RECON_SIMD_AVX512 = 3 is Avx512, "avx512";
        /// NEON with fused multiply-add, of 64-bit ARM.
        RECON_SIMD_NEON = 4 is Neon, "neon";
    }
}

c_enum! {
    /// Family of gridding windows.
    pub enum recon_window "window" for Window {
        /// Kaiser-Bessel, with the beta that minimises the maximum error.
        RECON_WINDOW_KAISER_BESSEL = 0 is KaiserBessel, "kaiser-bessel";
        /// A truncated Gaussian: about half as many correct digits as Kaiser-Bessel.
        RECON_WINDOW_GAUSSIAN = 1 is Gaussian, "gaussian";
        /// Linear interpolation along each axis, with an error of at least about 0.2: set tolerance to that, or to 0.
        RECON_WINDOW_BILINEAR = 2 is Bilinear, "bilinear";
        /// The smallest maximum error of all windows of its width. It is the default, and the best for every tolerance.
        RECON_WINDOW_MINIMAX = 3 is Minimax, "minimax";
    }
}

c_enum! {
    /// Filter of recon_fbp: the ramp |k| times a window of a = pi |k| / k_max, where k_max is the largest measured |k|.
    /// Noise and detail decrease from the first filter to the last.
    pub enum recon_filter "filter" for Filter {
        /// The ramp alone.
        RECON_FILTER_RAM_LAK = 0 is RamLak, "ram-lak";
        /// sin(a/2) / (a/2).
        RECON_FILTER_SHEPP_LOGAN = 1 is SheppLogan, "shepp-logan";
        /// cos(a/2).
        RECON_FILTER_COSINE = 2 is Cosine, "cosine";
        /// 0.54 + 0.46 cos(a).
        RECON_FILTER_HAMMING = 3 is Hamming, "hamming";
        /// (1 + cos(a)) / 2.
        RECON_FILTER_HANN = 4 is Hann, "hann";
    }
}

c_enum! {
    /// Prior of recon_cg: the R of (E^H W E + lambda R^H R) x = E^H W d.
    pub enum recon_prior "prior" as PriorNumber {
        /// R = 1: the energy of the image.
        RECON_PRIOR_IDENTITY = 0 is Identity, "identity";
        /// Differences between neighbours along each axis.
        RECON_PRIOR_DIFFERENCES = 1 is Differences, "differences";
        /// Differences, each multiplied by exp(-(d/s)^2): smooth within tissues, free across their borders. d is the
        /// difference of the same two voxels in a reference image, and s is `edge` times the reference's largest
        /// magnitude. R^H R contains the squares of the factors, exp(-2 (d/s)^2).
        RECON_PRIOR_ANATOMICAL = 2 is Anatomical, "anatomical";
        /// A sparse matrix given by the caller.
        RECON_PRIOR_MATRIX = 3 is Matrix, "matrix";
    }
}

c_enum! {
    /// Unit of the weight lambda of a prior.
    pub enum recon_lambda_unit "lambda_unit" for LambdaUnit {
        /// Relative to the mean of the diagonal of E^H W E over the voxels that the coils see: sum_m w_m |phi(k_m)|^2,
        /// times the mean of sum_c |S_c|^2 with coil maps. One value is then suitable for scans of any length and
        /// scale.
        RECON_LAMBDA_RELATIVE = 0 is Relative, "relative";
        /// Absolute: lambda is used unchanged in (E^H W E + lambda R^H R) x = E^H W d.
        RECON_LAMBDA_ABSOLUTE = 1 is Absolute, "absolute";
    }
}

c_enum! {
    /// Reason why an iteration ended.
    pub enum recon_stop "stop" for Stop {
        /// All iterations were done.
        RECON_STOP_ITERATIONS = 0 is Iterations, "iterations";
        /// The residual fell to the tolerance.
        RECON_STOP_TOLERANCE = 1 is Tolerance, "tolerance";
        /// The residual is 0 or cannot be reduced further: the solution is exact to rounding.
        RECON_STOP_EXACT = 2 is Exact, "exact";
    }
}

c_enum! {
    /// Method of computing density weights. Percentages are errors of a gridded phantom on fully sampled trajectories
    /// without noise, compared at the same resolution. examples/densities prints them for many trajectories.
    pub enum recon_density_method "density" as DensityNumber {
        /// The fixed point of w = w / (C w), where C is a window that extends over two Nyquist distances (Pipe and
        /// Menon 1999). For any trajectory; 0.4 to 3 %.
        RECON_DENSITY_PIPE_MENON = 0 is PipeMenon, "pipe-menon";
        /// |k|^(ndim-1), for samples that lie evenly along lines through the centre or along spirals whose radius grows
        /// evenly. For a stack of either along an axis: |k| in the plane times the thickness of the partition. The
        /// error is 0 to 3 %. Spokes in 2D are weighted by the angle between their neighbours, since golden-angle
        /// spokes are not spread evenly. Samples must be in the order of acquisition. Other trajectories are
        /// RECON_INVALID_ARGUMENT; their error would be 20 to 300 %.
        RECON_DENSITY_RAMP = 1 is Ramp, "ramp";
        /// The inverse density of samples under a window that extends over one Nyquist distance (Jackson et al. 1991).
        /// For any trajectory, in one step; 5 to 15 %.
        RECON_DENSITY_JACKSON = 2 is Jackson, "jackson";
    }
}

c_enum! {
    /// Method of combining coil images.
    pub enum recon_combine_method "combine" for Combine {
        /// The root of the sum of squared magnitudes.
        RECON_COMBINE_ROOT_SUM_OF_SQUARES = 0 is RootSumOfSquares, "rss";
        /// sum_c conj(S_c) x_c with sensitivities estimated from the coil images. It keeps the phase and has less
        /// noise.
        RECON_COMBINE_ADAPTIVE = 1 is Adaptive, "adaptive";
    }
}

c_enum! {
    /// Order of the spokes' angles in recon_trajectory_radial2d and recon_trajectory_stack_of_stars.
    pub enum recon_spoke_order "order" for SpokeOrder {
        /// Spoke p has the angle p pi / spokes.
        RECON_SPOKES_LINEAR = 0 is Linear, "linear";
        /// Spoke p has the angle p times 111.246 degrees.
        RECON_SPOKES_GOLDEN_ANGLE = 1 is GoldenAngle, "golden";
    }
}

c_enum! {
    /// Coils that measure a phantom.
    pub enum recon_coil_model "coil_model" as CoilKind {
        /// One coil with the same sensitivity everywhere.
        RECON_COILS_UNIFORM = 0 is Uniform, "uniform";
        /// Coils evenly spaced around the field of view, with the maps of recon_phantom_coil_maps.
        RECON_COILS_RING = 1 is Ring, "ring";
    }
}

c_enum! {
    /// Whether complex images or their magnitudes are compared.
    pub enum recon_part "part" as ComparedPart {
        /// Complex voxels.
        RECON_PART_COMPLEX = 0 is Complex, "complex";
        /// Magnitudes of voxels.
        RECON_PART_MAGNITUDE = 1 is Magnitude, "magnitude";
    }
}

c_enum! {
    /// Scaling of an image before it is compared with the truth.
    pub enum recon_scale "scale" for Scale {
        /// No scaling.
        RECON_SCALE_NONE = 0 is None, "none";
        /// The image is multiplied by the number that minimises the squared error.
        RECON_SCALE_BEST = 1 is Best, "best";
    }
}

c_enum! {
    /// Correction of the phase of blades in recon_propeller.
    pub enum recon_blade_phase "phase" for BladePhase {
        /// The phase of a smooth image of each blade is removed from the blade, coil by coil (Pipe 1999). The smooth
        /// phase of the object and of the coils is removed as well.
        RECON_BLADE_PHASE_SMOOTH = 0 is Smooth, "smooth";
        /// One phase per blade, equal in all coils, is removed.
        RECON_BLADE_PHASE_CONSTANT = 1 is Constant, "constant";
        /// The phase of blades is not changed.
        RECON_BLADE_PHASE_NONE = 2 is None, "none";
    }
}

c_enum! {
    /// Method of recon_partial_fourier.
    pub enum recon_partial_fourier_method "partial_fourier" for PartialFourierMethod {
        /// Homodyne detection (Noll et al. 1991), in one step.
        RECON_PARTIAL_FOURIER_HOMODYNE = 0 is Homodyne, "homodyne";
        /// Projection onto convex sets (Haacke et al. 1991): iterations, with a smaller error.
        RECON_PARTIAL_FOURIER_POCS = 1 is Pocs, "pocs";
    }
}

c_enum! {
    /// Warnings of plans and calls: see recon_plan_warning and recon_last_warning.
    pub enum recon_warning "warning" as WarningNumber {
        /// No warning.
        RECON_WARNING_NONE = 0 is None, "none";
        /// The largest |k| is less than a quarter of what the image's size can resolve. The coordinates may have the
        /// wrong units, or the image will be blurred.
        RECON_WARNING_EXTENT = 1 is Extent, "extent";
        /// The default tolerance cannot be met by the window or the precision. (A tolerance that is set and cannot be
        /// met is an error.)
        RECON_WARNING_TOLERANCE = 2 is Tolerance, "tolerance";
        /// PROPELLER blades disagree after their motion was corrected, moved far, or are incomplete.
        RECON_WARNING_BLADES = 3 is Blades, "blades";
        /// A noise scan is short, or a noise level does not fit the data.
        RECON_WARNING_NOISE = 4 is Noise, "noise";
        /// The virtual coils contain little of the data's energy.
        RECON_WARNING_COMPRESSION = 5 is Compression, "compression";
        /// A phase wraps: off-resonance exceeds the range that the echo spacing determines, or a velocity exceeds the
        /// range of its encoding.
        RECON_WARNING_WRAPS = 6 is Wraps, "wraps";
        /// The sample times are implausible for a readout: they may not be in seconds.
        RECON_WARNING_TIMES = 7 is Times, "times";
        /// The system refused threads: fewer compute than were requested.
        RECON_WARNING_THREADS = 8 is Threads, "threads";
        /// Gaps between samples reduce the centre of k-space from which coil maps are estimated, or bring aliases into
        /// the field of view.
        RECON_WARNING_CALIBRATION = 9 is Calibration, "calibration";
        /// The acquisitions of a scan can be interpreted in several ways, or some are missing.
        RECON_WARNING_ACQUISITIONS = 10 is Acquisitions, "acquisitions";
        /// Partial Fourier: the phase of the image is not smooth, the symmetric centre of k-space is narrow, or k-space
        /// has gaps.
        RECON_WARNING_PARTIAL_FOURIER = 11 is PartialFourier, "partial-fourier";
    }
}

c_enum! {
    /// The counter whose change completes the images of a scan.
    pub enum recon_scan_counter "complete" for CompletionCounter {
        /// No counter: images are complete at the end of the measurement.
        RECON_SCAN_COUNTER_NONE = 0 is None, "none";
        /// The slice.
        RECON_SCAN_COUNTER_SLICE = 1 is Slice, "slice";
        /// The contrast.
        RECON_SCAN_COUNTER_CONTRAST = 2 is Contrast, "contrast";
        /// The phase.
        RECON_SCAN_COUNTER_PHASE = 3 is Phase, "phase";
        /// The repetition.
        RECON_SCAN_COUNTER_REPETITION = 4 is Repetition, "repetition";
        /// The set.
        RECON_SCAN_COUNTER_SET = 5 is Set, "set";
    }
}

c_enum! {
    /// The trajectory of acquisitions that have none.
    pub enum recon_header_trajectory "header_trajectory" as HeaderKindNumber {
        /// The trajectory that the header names.
        RECON_HEADER_TRAJECTORY_AUTO = 0 is Auto, "auto";
        /// Lines of a Cartesian grid.
        RECON_HEADER_TRAJECTORY_CARTESIAN = 1 is Cartesian, "cartesian";
        /// Spokes at equal angles, in a plane or as a stack of stars.
        RECON_HEADER_TRAJECTORY_RADIAL = 2 is Radial, "radial";
        /// Spokes at multiples of a golden or tiny golden angle, in a plane or as a stack of stars.
        RECON_HEADER_TRAJECTORY_GOLDEN_ANGLE = 3 is GoldenAngle, "goldenangle";
        /// Spokes through a ball, in directions from the golden means of two dimensions (Chan et al. 2009).
        RECON_HEADER_TRAJECTORY_KOOSHBALL_GOLDEN_MEANS = 4 is KooshballGoldenMeans, "kooshball_golden_means";
        /// Spokes through a ball, in directions on a phyllotaxis spiral (Piccini et al. 2011).
        RECON_HEADER_TRAJECTORY_KOOSHBALL_PHYLLOTAXIS = 5 is KooshballPhyllotaxis, "kooshball_phyllotaxis";
        /// Spokes through a ball with the same solid angle for each, as recon_trajectory_radial3d.
        RECON_HEADER_TRAJECTORY_KOOSHBALL_EQUAL_AREA = 6 is KooshballEqualArea, "kooshball_equal_area";
        /// Spirals of the variable-density design of Hargreaves.
        RECON_HEADER_TRAJECTORY_SPIRAL = 7 is Spiral, "spiral";
        /// Echo-planar lines with samples on the ramps of the gradient.
        RECON_HEADER_TRAJECTORY_EPI = 8 is Epi, "epi";
    }
}

c_enum! {
    /// Conventions for trajectories that the header does not define.
    pub enum recon_trajectory_convention "convention" as ConventionNumber {
        /// No convention: what is open is an error.
        RECON_CONVENTION_NONE = 0 is None, "none";
        /// Conventions of Gadgetron's radial gadgets, in the plane.
        RECON_CONVENTION_GADGETRON = 1 is Gadgetron, "gadgetron";
    }
}

c_enum! {
    /// The number from which the direction of a spoke is computed.
    pub enum recon_spoke_number "spoke_number" as SpokeNumberChoice {
        /// Both numbers, which must agree.
        RECON_SPOKE_NUMBER_AUTO = 0 is Auto, "auto";
        /// The counter kspace_encode_step_1.
        RECON_SPOKE_NUMBER_ENCODING_STEP = 1 is EncodingStep, "encoding_step";
        /// The number of earlier acquisitions of the same encoding, slice, contrast and set.
        RECON_SPOKE_NUMBER_ACQUISITION_ORDER = 2 is AcquisitionOrder, "acquisition_order";
    }
}

c_enum! {
    /// The scale of a spiral from the header.
    pub enum recon_spiral_extent "spiral_extent" as SpiralExtentChoice {
        /// Both scales, which must agree.
        RECON_SPIRAL_EXTENT_AUTO = 0 is Auto, "auto";
        /// k in 1/cm times the voxel size of the encoded matrix.
        RECON_SPIRAL_EXTENT_FIELD_OF_VIEW = 1 is FieldOfView, "field_of_view";
        /// krmax_per_cm is the edge of the encoded matrix's k-space, as in Gadgetron.
        RECON_SPIRAL_EXTENT_MATRIX = 2 is Matrix, "matrix";
    }
}

c_enum! {
    /// How k-space is traversed: the trajectory of an encoding in ISMRMRD's header.
    pub enum recon_trajectory_kind "trajectory" for TrajectoryKind {
        /// Lines of a Cartesian grid.
        RECON_TRAJECTORY_CARTESIAN = 0 is Cartesian, "cartesian";
        /// Echo-planar.
        RECON_TRAJECTORY_EPI = 1 is Epi, "epi";
        /// Spokes through the centre.
        RECON_TRAJECTORY_RADIAL = 2 is Radial, "radial";
        /// Spokes at golden angles.
        RECON_TRAJECTORY_GOLDEN_ANGLE = 3 is GoldenAngle, "goldenangle";
        /// Spirals.
        RECON_TRAJECTORY_SPIRAL = 4 is Spiral, "spiral";
        /// Anything else.
        RECON_TRAJECTORY_OTHER = 5 is Other, "other";
    }
}

c_enum! {
    /// Uses of an acquisition: bits of the number that recon_acquisition_use writes.
    pub enum recon_acquisition_purpose "purpose" for AcquisitionPurpose {
        /// Samples of an image.
        RECON_PURPOSE_IMAGE = 1 is Image, "image";
        /// Samples from which coil maps are estimated.
        RECON_PURPOSE_CALIBRATION = 2 is Calibration, "calibration";
        /// Noise without signal, from which coils are whitened.
        RECON_PURPOSE_NOISE = 4 is Noise, "noise";
    }
}

c_enum! {
    /// Level of log messages. The log callback receives messages of its level and of the levels above it in this list.
    pub enum recon_log_level "level" for LevelFilter {
        /// No messages.
        RECON_LOG_OFF = 0 is Off, "off";
        /// Failures.
        RECON_LOG_ERROR = 1 is Error, "error";
        /// Results that may not be the intended ones.
        RECON_LOG_WARNING = 2 is Warn, "warning";
        /// One line per plan, and choices made for the caller.
        RECON_LOG_INFO = 3 is Info, "info";
        /// Steps of longer computations.
        RECON_LOG_DEBUG = 4 is Debug, "debug";
        /// Everything.
        RECON_LOG_TRACE = 5 is Trace, "trace";
    }
}

/// Tables of all enumerations.
static ALL: [&EnumTable; 29] = [
    &<Precision as Enumeration>::TABLE,
    &<VoxelBasis as Enumeration>::TABLE,
    &<Method as Enumeration>::TABLE,
    &<Normal as Enumeration>::TABLE,
    &<DeviceKind as Enumeration>::TABLE,
    &<DeviceReason as Enumeration>::TABLE,
    &<Simd as Enumeration>::TABLE,
    &<Window as Enumeration>::TABLE,
    &<Filter as Enumeration>::TABLE,
    &<PriorNumber as Enumeration>::TABLE,
    &<LambdaUnit as Enumeration>::TABLE,
    &<Stop as Enumeration>::TABLE,
    &<DensityNumber as Enumeration>::TABLE,
    &<Combine as Enumeration>::TABLE,
    &<SpokeOrder as Enumeration>::TABLE,
    &<CoilKind as Enumeration>::TABLE,
    &<ComparedPart as Enumeration>::TABLE,
    &<Scale as Enumeration>::TABLE,
    &<WarningNumber as Enumeration>::TABLE,
    &<BladePhase as Enumeration>::TABLE,
    &<CompletionCounter as Enumeration>::TABLE,
    &<HeaderKindNumber as Enumeration>::TABLE,
    &<ConventionNumber as Enumeration>::TABLE,
    &<SpokeNumberChoice as Enumeration>::TABLE,
    &<SpiralExtentChoice as Enumeration>::TABLE,
    &<TrajectoryKind as Enumeration>::TABLE,
    &<PartialFourierMethod as Enumeration>::TABLE,
    &<AcquisitionPurpose as Enumeration>::TABLE,
    &<LevelFilter as Enumeration>::TABLE,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_for_unknown_numbers_and_words_list_the_known_ones() {
        assert_eq!(choice::<DeviceKind>("device", 2).unwrap(), DeviceKind::Cuda);
        let error = choice::<DeviceKind>("device", 3).unwrap_err();
        assert!(
            error.message().contains("device is 3") && error.message().contains("2 (RECON_DEVICE_CUDA)"),
            "{error}"
        );
        assert_eq!(number_of("window", "gaussian").unwrap(), Window::Gaussian.number());
        let error = number_of("window", "Gaussian").unwrap_err();
        assert!(error.message().contains("'kaiser-bessel' or 'gaussian' or 'bilinear' or 'minimax'"), "{error}");
        let error = number_of("windows", "gaussian").unwrap_err();
        assert!(error.message().contains("precision, basis"), "{error}");
        assert_eq!(word_of("precision", 1), c"double");
        assert_eq!([word_of("precision", 2), word_of("precisions", 1)], [c"", c""]);
    }

    #[test]
    fn words_and_numbers_correspond() {
        for table in ALL {
            for (i, row) in table.rows.iter().enumerate() {
                // Purposes are bits; other values are counted from 0.
                let number = if table.option == "purpose" { 1 << i } else { i };
                assert_eq!((row.number as usize, number_of(table.option, row.word()).unwrap()), (number, row.number));
                assert_eq!(word_of(table.option, row.number).to_str().unwrap(), row.word());
            }
        }
        assert_eq!(Method::of_number(Method::Nufft.number()), Some(Method::Nufft));
        assert_eq!(log::Level::Trace as u32, LevelFilter::Trace.number());
    }
}
