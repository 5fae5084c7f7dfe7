//! The enumerations of the C API, a table each: what there is to choose, its number and name in C, what it is in Rust,
//! and the word by which MATLAB and other hosts name it.
//!
//! A new value is a new row, and `make header`: the checks of numbers and MATLAB's words follow.

use crate::base::acquisition::AcquisitionPurpose;
use crate::base::error::{bail, Result};
use crate::base::geometry::VoxelBasis;
use crate::base::options::{Filter, LambdaUnit, Method, Normal, Simd, Window};
use crate::propeller::BladePhase;
use crate::reconstruction::cg::Stop;
use crate::reconstruction::coils::Combine;
use crate::simulation::metrics::Scale;
use crate::simulation::trajectory::SpokeOrder;
use log::LevelFilter;
use std::ffi::CStr;

/// An enumeration of the C API.
pub(super) trait Enumeration: Sized {
    /// What there is to choose.
    const TABLE: Table;
    /// The number in the C API.
    fn number(self) -> u32;
    /// The value of a number.
    fn of_number(number: u32) -> Option<Self>;
}

/// What is known of an enumeration.
pub(super) struct Table {
    /// The option that has it, as hosts name it.
    option: &'static str,
    rows: &'static [Row],
    /// Its definition, which cbindgen makes the header from.
    source: &'static str,
}

struct Row {
    number: u32,
    name: &'static str,
    /// With a zero at the end.
    word: &'static str,
}

impl Row {
    fn word(&self) -> &str {
        self.word.trim_end_matches('\0')
    }
}

/// The value that the field `field` of a structure, or an argument, has in its enumeration.
pub(super) fn choice<E: Enumeration>(field: &str, value: u32) -> Result<E> {
    match E::of_number(value) {
        Some(choice) => Ok(choice),
        None => {
            let names: Vec<String> = E::TABLE.rows.iter().map(|row| format!("{} ({})", row.number, row.name)).collect();
            bail!(UnknownValue, "{field} is {value}, which this version does not know: use {}", names.join(", "))
        }
    }
}

fn table(option: &str) -> Result<&'static Table> {
    match ALL.iter().find(|table| table.option == option) {
        Some(table) => Ok(table),
        None => {
            let options: Vec<&str> = ALL.iter().map(|table| table.option).collect();
            bail!(UnknownValue, "there is no option {option}: use one of {}", options.join(", "))
        }
    }
}

/// The number of an option's value by its word.
pub(super) fn number_of(option: &str, word: &str) -> Result<u32> {
    let table = table(option)?;
    match table.rows.iter().find(|row| row.word() == word) {
        Some(row) => Ok(row.number),
        None => {
            let words: Vec<&str> = table.rows.iter().map(Row::word).collect();
            bail!(UnknownValue, "{option} is '{word}': it must be '{}'", words.join("' or '"))
        }
    }
}

/// The word of an option's value; empty where there is none.
pub(super) fn word_of(option: &str, number: u32) -> &'static CStr {
    let row = table(option).ok().and_then(|table| table.rows.iter().find(|row| row.number == number));
    row.map_or(c"", |row| CStr::from_bytes_with_nul(row.word.as_bytes()).expect("a zero at the end"))
}

/// The definitions of all enumerations, for the header.
#[doc(hidden)]
pub fn sources() -> String {
    let all: Vec<&str> = [super::status::SOURCE].into_iter().chain(ALL.iter().map(|table| table.source)).collect();
    all.join("\n")
}

/// An enumeration `for` a type of the Rust API, or `as` one that only the C API has.
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
            const TABLE: Table = Table {
                option: $option,
                rows: &[$(Row { number: $number, name: stringify!($name), word: concat!($word, "\0") }),+],
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
    /// How E and E^H are evaluated.
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
    /// How E^H W E is evaluated.
    pub enum recon_normal_operator "normal" for Normal {
        /// Whichever the cost model finds faster, within the memory limit.
        RECON_NORMAL_AUTO = 0 is Auto, "auto";
        /// By convolution with Q, on the doubled grid.
        RECON_NORMAL_TOEPLITZ = 1 is Toeplitz, "toeplitz";
        /// By one forward and one adjoint transform.
        RECON_NORMAL_TRANSFORMS = 2 is Transforms, "transforms";
    }
}

c_enum! {
    /// Where a plan computes.
    pub enum recon_device "device" as DeviceKind {
        /// The first GPU that can be used, else the CPU.
        RECON_DEVICE_AUTO = 0 is Auto, "auto";
        /// The CPU.
        RECON_DEVICE_CPU = 1 is Cpu, "cpu";
        /// NVIDIA GPUs, of compute capability 7.5 or more.
        RECON_DEVICE_CUDA = 2 is Cuda, "cuda";
    }
}

c_enum! {
    /// The vector unit of the processor that a plan computes with. Levels differ in speed, and in how results are
    /// rounded.
    pub enum recon_simd "simd" for Simd {
        /// What the environment variable RECON_SIMD names (baseline or sse, avx2, avx512); without it, or when it is
        /// auto, the best that the processor has. On AMD's Zen 4 that is one of its own, avx512-256: gridding in
        /// vectors of 256 bits, the rest in those of 512. Any other value of the option wins over the variable.
        RECON_SIMD_AUTO = 0 is Auto, "auto";
        /// What every processor of its kind has: SSE2 on x86-64.
        RECON_SIMD_BASELINE = 1 is Baseline, "baseline";
        /// AVX2 with fused multiply-add.
        RECON_SIMD_AVX2 = 2 is Avx2, "avx2";
        /// AVX-512 F, VL, DQ and BW.
        RECON_SIMD_AVX512 = 3 is Avx512, "avx512";
    }
}

c_enum! {
    /// The family of gridding windows.
    pub enum recon_window "window" for Window {
        /// With beta for the least worst error.
        RECON_WINDOW_KAISER_BESSEL = 0 is KaiserBessel, "kaiser-bessel";
        /// A truncated Gaussian: about half the digits of Kaiser-Bessel.
        RECON_WINDOW_GAUSSIAN = 1 is Gaussian, "gaussian";
        /// Linear interpolation along each axis: an error of about 0.2 at best; give that as tolerance, or 0.
        RECON_WINDOW_BILINEAR = 2 is Bilinear, "bilinear";
        /// The least worst error of all windows of its width: the default, and the best at every tolerance.
        RECON_WINDOW_MINIMAX = 3 is Minimax, "minimax";
    }
}

c_enum! {
    /// The filter of recon_fbp: the ramp |k| times a window over |k|, a = pi |k| / k_max, k_max being the largest |k|
    /// that is measured. The later in this list, the less noise and detail.
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
    /// What is known of the image beforehand: the R of (E^H W E + lambda R^H R) x = E^H W d.
    pub enum recon_prior "prior" as PriorKind {
        /// R = 1: the energy of the image.
        RECON_PRIOR_IDENTITY = 0 is Identity, "identity";
        /// Differences between neighbours along each axis.
        RECON_PRIOR_DIFFERENCES = 1 is Differences, "differences";
        /// Differences, each multiplied by exp(-(d/s)^2), d being the difference of the same two voxels in a reference
        /// image and s `edge` times the reference's largest magnitude: smooth within tissues, free across their
        /// borders. R^H R then has the squares, exp(-2 (d/s)^2).
        RECON_PRIOR_ANATOMICAL = 2 is Anatomical, "anatomical";
        /// A sparse matrix given by the caller.
        RECON_PRIOR_MATRIX = 3 is Matrix, "matrix";
    }
}

c_enum! {
    /// What the weight of a prior is relative to.
    pub enum recon_lambda_unit "lambda_unit" for LambdaUnit {
        /// The mean of the diagonal of E^H W E over the voxels that the coils see: sum_m w_m |phi(k_m)|^2, times the
        /// mean of sum_c |S_c|^2 with coil maps. One value then serves scans of any length and scale.
        RECON_LAMBDA_RELATIVE = 0 is Relative, "relative";
        /// 1: lambda stands in (E^H W E + lambda R^H R) x = E^H W d as it is.
        RECON_LAMBDA_ABSOLUTE = 1 is Absolute, "absolute";
    }
}

c_enum! {
    /// Why a solution ended.
    pub enum recon_stop "stop" for Stop {
        /// All iterations were done.
        RECON_STOP_ITERATIONS = 0 is Iterations, "iterations";
        /// The residual fell to the tolerance.
        RECON_STOP_TOLERANCE = 1 is Tolerance, "tolerance";
        /// The residual is zero, or no direction is left in which to improve: the solution is exact to rounding.
        RECON_STOP_EXACT = 2 is Exact, "exact";
    }
}

c_enum! {
    /// How density weights are computed. Percentages are errors of a gridded phantom on fully sampled trajectories
    /// without noise, against the same resolution (examples/densities prints them for many trajectories).
    pub enum recon_density_method "density" as DensityKind {
        /// The fixed point of w = w / (C w), C being a window that reaches two Nyquist distances (Pipe and Menon 1999):
        /// any trajectory, 0.4 to 3 %.
        RECON_DENSITY_PIPE_MENON = 0 is PipeMenon, "pipe-menon";
        /// |k|^(ndim-1), for samples that lie evenly along lines through the centre or along spirals whose radius grows
        /// evenly; in a stack of either along an axis, |k| in the plane times the thickness of the partition: 0 to 3 %.
        /// Spokes in 2D count for the angle between their neighbours, as those of the golden angle are not spread
        /// evenly. Others, where it would make 20 to 300 %, are RECON_INVALID_ARGUMENT. Samples must be in the order of
        /// acquisition.
        RECON_DENSITY_RAMP = 1 is Ramp, "ramp";
        /// One over the density of samples under a window that reaches one Nyquist distance (Jackson et al. 1991): any
        /// trajectory, in one step, 5 to 15 %.
        RECON_DENSITY_JACKSON = 2 is Jackson, "jackson";
    }
}

c_enum! {
    /// How coil images are combined into one.
    pub enum recon_combine_method "combine" for Combine {
        /// The root of the sum of squared magnitudes.
        RECON_COMBINE_ROOT_SUM_OF_SQUARES = 0 is RootSumOfSquares, "rss";
        /// sum_c conj(S_c) x_c with sensitivities estimated from the coil images: keeps the phase, and less noise.
        RECON_COMBINE_ADAPTIVE = 1 is Adaptive, "adaptive";
    }
}

c_enum! {
    /// The order in which recon_trajectory_radial2d and recon_trajectory_stack_of_stars turn their spokes.
    pub enum recon_spoke_order "order" for SpokeOrder {
        /// Spoke p at the angle p pi / spokes.
        RECON_SPOKES_LINEAR = 0 is Linear, "linear";
        /// Spoke p at p times 111.246 degrees.
        RECON_SPOKES_GOLDEN_ANGLE = 1 is GoldenAngle, "golden";
    }
}

c_enum! {
    /// The coils that see a phantom.
    pub enum recon_coil_model "coil_model" as CoilKind {
        /// One coil that is as sensitive everywhere.
        RECON_COILS_UNIFORM = 0 is Uniform, "uniform";
        /// Coils evenly spaced around the field of view, as recon_phantom_coil_maps draws them.
        RECON_COILS_RING = 1 is Ring, "ring";
    }
}

c_enum! {
    /// Whether complex images or their magnitudes are compared.
    pub enum recon_part "part" as Part {
        /// Complex voxels.
        RECON_PART_COMPLEX = 0 is Complex, "complex";
        /// Their magnitudes.
        RECON_PART_MAGNITUDE = 1 is Magnitude, "magnitude";
    }
}

c_enum! {
    /// Whether an image is brought to the scale of the truth before the two are compared.
    pub enum recon_scale "scale" for Scale {
        /// Compare as they are.
        RECON_SCALE_NONE = 0 is None, "none";
        /// Multiply the image by the number that makes the squared error least.
        RECON_SCALE_BEST = 1 is Best, "best";
    }
}

c_enum! {
    /// What recon_propeller does about the phase of blades.
    pub enum recon_blade_phase "phase" for BladePhase {
        /// The phase of a smooth image of each blade, coil by coil, is taken from the blade (Pipe 1999). The smooth
        /// phase of the object, and of the coils, goes with it.
        RECON_BLADE_PHASE_SMOOTH = 0 is Smooth, "smooth";
        /// One phase for each blade, the same in all coils.
        RECON_BLADE_PHASE_CONSTANT = 1 is Constant, "constant";
        /// Blades are as they were measured.
        RECON_BLADE_PHASE_NONE = 2 is None, "none";
    }
}

c_enum! {
    /// What a plan or a call warns of: see recon_plan_warning and recon_last_warning.
    pub enum recon_warning "warning" as WarningNumber {
        /// Nothing.
        RECON_WARNING_NONE = 0 is None, "none";
        /// k reaches less than a quarter of what the image's size could resolve: in the wrong units, it blurs the
        /// image.
        RECON_WARNING_EXTENT = 1 is Extent, "extent";
        /// The default tolerance is out of the window's or the precision's reach. (One that is named and out of reach
        /// is an error.)
        RECON_WARNING_TOLERANCE = 2 is Tolerance, "tolerance";
        /// PROPELLER blades do not agree with one another after their motion was corrected.
        RECON_WARNING_BLADES = 3 is Blades, "blades";
        /// A noise scan is short, or a noise level does not fit the data.
        RECON_WARNING_NOISE = 4 is Noise, "noise";
        /// Few virtual coils hold little of the data's energy.
        RECON_WARNING_COMPRESSION = 5 is Compression, "compression";
        /// The phase between echoes wraps: off-resonance is beyond what their spacing can tell.
        RECON_WARNING_WRAPS = 6 is Wraps, "wraps";
        /// The times of samples are no readout's: perhaps in other units than seconds.
        RECON_WARNING_TIMES = 7 is Times, "times";
        /// The system refused threads: fewer compute than were asked for.
        RECON_WARNING_THREADS = 8 is Threads, "threads";
        /// Gaps between samples narrow the centre of k-space that coil maps are estimated from, or bring aliases
        /// into the field of view.
        RECON_WARNING_CALIBRATION = 9 is Calibration, "calibration";
    }
}

c_enum! {
    /// Uses of an acquisition: bits of the number that recon_acquisition_use writes.
    pub enum recon_acquisition_purpose "purpose" for AcquisitionPurpose {
        /// Samples of an image.
        RECON_PURPOSE_IMAGE = 1 is Image, "image";
        /// Samples from which coil maps are estimated.
        RECON_PURPOSE_CALIBRATION = 2 is Calibration, "calibration";
        /// Noise without signal, which whitens the coils.
        RECON_PURPOSE_NOISE = 4 is Noise, "noise";
    }
}

c_enum! {
    /// How much the log callback hears: messages of this level and those above it in this list.
    pub enum recon_log_level "level" for LevelFilter {
        /// Nothing.
        RECON_LOG_OFF = 0 is Off, "off";
        /// What failed.
        RECON_LOG_ERROR = 1 is Error, "error";
        /// What may surprise.
        RECON_LOG_WARNING = 2 is Warn, "warning";
        /// One line a plan, and choices made for the caller.
        RECON_LOG_INFO = 3 is Info, "info";
        /// Steps of longer computations.
        RECON_LOG_DEBUG = 4 is Debug, "debug";
        /// Everything.
        RECON_LOG_TRACE = 5 is Trace, "trace";
    }
}

/// In the order of the header.
static ALL: [&Table; 21] = [
    &<Precision as Enumeration>::TABLE,
    &<VoxelBasis as Enumeration>::TABLE,
    &<Method as Enumeration>::TABLE,
    &<Normal as Enumeration>::TABLE,
    &<DeviceKind as Enumeration>::TABLE,
    &<Simd as Enumeration>::TABLE,
    &<Window as Enumeration>::TABLE,
    &<Filter as Enumeration>::TABLE,
    &<PriorKind as Enumeration>::TABLE,
    &<LambdaUnit as Enumeration>::TABLE,
    &<Stop as Enumeration>::TABLE,
    &<DensityKind as Enumeration>::TABLE,
    &<Combine as Enumeration>::TABLE,
    &<SpokeOrder as Enumeration>::TABLE,
    &<CoilKind as Enumeration>::TABLE,
    &<Part as Enumeration>::TABLE,
    &<Scale as Enumeration>::TABLE,
    &<WarningNumber as Enumeration>::TABLE,
    &<BladePhase as Enumeration>::TABLE,
    &<AcquisitionPurpose as Enumeration>::TABLE,
    &<LevelFilter as Enumeration>::TABLE,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_numbers_and_words_are_named_with_those_that_are_known() {
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
    fn words_and_numbers_lead_to_one_another() {
        for table in ALL {
            for (i, row) in table.rows.iter().enumerate() {
                // Purposes are bits, everything else is counted from 0.
                let number = if table.option == "purpose" { 1 << i } else { i };
                assert_eq!((row.number as usize, number_of(table.option, row.word()).unwrap()), (number, row.number));
                assert_eq!(word_of(table.option, row.number).to_str().unwrap(), row.word());
            }
        }
        assert_eq!(Method::of_number(Method::Nufft.number()), Some(Method::Nufft));
        assert_eq!(log::Level::Trace as u32, LevelFilter::Trace.number());
    }
}
