//! The options of a plan.

use super::interrupt::Interrupt;
use std::ffi::c_void;
use std::fmt;
use std::str::FromStr;

/// How E and E^H are evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Method {
    /// NUFFT for a grid of voxels, exact sums for a list.
    #[default]
    Auto,
    /// The direct sums, to full precision; the time is proportional to samples times voxels.
    Exact,
    /// Gridding and FFT, to the tolerance.
    Nufft,
}

impl Method {
    /// The method's name, for messages and reports.
    pub fn name(self) -> &'static str {
        match self {
            Method::Auto => "auto",
            Method::Exact => "exact",
            Method::Nufft => "nufft",
        }
    }
}

/// Where a plan computes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Device {
    /// The first GPU that can be used, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// These GPUs, by index; the first where none are named. Several share the work: coils with NUFFT, voxels with
    /// exact sums. Under a memory limit, and where there is nothing to share, the first computes alone.
    Cuda(Vec<u32>),
}

/// A stream on a GPU that the caller owns, on which a plan queues its work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CudaStream(*mut c_void);

// SAFETY: a handle of the driver, which any thread may use.
unsafe impl Send for CudaStream {}
// SAFETY: a handle of the driver, which several threads may use at once.
unsafe impl Sync for CudaStream {}

impl CudaStream {
    /// The stream behind a `CUstream` or `cudaStream_t`; null is the default stream.
    ///
    /// # Safety
    /// It must be a stream of the primary context of the plan's GPU, and outlive the plan.
    pub unsafe fn new(stream: *mut c_void) -> Self {
        CudaStream(stream)
    }

    /// The driver's handle.
    pub(crate) fn handle(self) -> *mut c_void {
        self.0
    }
}

/// How E^H W E is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Normal {
    /// Whichever the cost model finds faster, within the memory limit.
    #[default]
    Auto,
    /// By convolution with Q.
    Toeplitz,
    /// By one forward and one adjoint transform.
    Transforms,
}

/// The vector unit of the processor that a plan computes with. Levels differ in speed, and in how results are rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Simd {
    /// The level that the environment variable `RECON_SIMD` names (`baseline` or `sse`, `avx2`, `avx512`); without it,
    /// or when it is `auto`, the best of the processor. On AMD's Zen 4 that is one of its own, `avx512-256`: gridding
    /// in vectors of 256 bits, the rest in those of 512. Any other value of this option overrides the variable.
    #[default]
    Auto,
    /// The vector unit of every processor of its kind: SSE2 on x86-64.
    Baseline,
    /// AVX2 with fused multiply-add.
    Avx2,
    /// AVX-512 F, VL, DQ and BW.
    Avx512,
}

impl fmt::Display for Simd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Simd::Auto => "auto",
            Simd::Baseline => "baseline",
            Simd::Avx2 => "avx2",
            Simd::Avx512 => "avx512",
        })
    }
}

impl FromStr for Simd {
    type Err = ();
    /// Reads the name of a level, as `Display` writes it, or `sse`.
    fn from_str(name: &str) -> std::result::Result<Self, ()> {
        match name {
            "auto" => Ok(Simd::Auto),
            "baseline" | "sse" => Ok(Simd::Baseline),
            "avx2" => Ok(Simd::Avx2),
            "avx512" => Ok(Simd::Avx512),
            _ => Err(()),
        }
    }
}

/// How a plan computes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    /// How E and E^H are evaluated.
    pub method: Method,
    /// How E^H W E is evaluated.
    pub normal: Normal,
    /// Where the plan computes.
    pub device: Device,
    /// Relative l2 error of a transform against the exact sums, in (0, 1); 0 for 1e-5. It is kept for any positions of
    /// samples, few samples or hundreds of thousands in one place. An entry of E, all of which have size 1, errs by at
    /// most five times as much. Exact sums err by rounding only. Over a list of voxels on a GPU in f32 the special
    /// function units compute the sines (the error of the sums is about 2e-6), unless the tolerance is below 1e-5; that
    /// is slower.
    pub tolerance: f64,
    /// The gridding window.
    pub window: Window,
    /// The window's width in cells of the oversampled grid, 2 to 16 (of the bilinear window 2); 0 for one that keeps
    /// the tolerance. Width and oversampling may be named each alone or both: what is not named is chosen so that the
    /// tolerance is kept at the least cost. A tolerance that is named and cannot be kept is an error. Where none is
    /// named, the plan tells its error ([`crate::PlanInfo::error`]), with a warning where that is above the default.
    pub width: usize,
    /// Grid size over image size, 1.25 to 2.5; 0 for one between 1.25 and 2 that keeps the tolerance. The grid of each
    /// axis is the next larger size that has a fast FFT, and at least two windows wide.
    pub oversampling: f64,
    /// CPU threads, the calling one included; 0 for as many as the machine runs at once. Where the system refuses some,
    /// the plan computes with the others, and the log has a warning.
    pub threads: usize,
    /// Bytes that the plan and its operations may hold beside the arrays of the caller.
    pub memory_limit: Option<usize>,
    /// The vector unit.
    pub simd: Simd,
    /// The stream that a GPU's work is queued on; None for a stream of the plan. With a stream of the caller, calls
    /// whose arrays all lie on the GPU ([`crate::Source::device`], [`crate::Sink::device`]) may return before the
    /// results are written. Work that is queued next on that stream finds them.
    pub stream: Option<CudaStream>,
    /// Asked whether to end the running call: about fifty times a second, less often where a single step takes longer
    /// (one NUFFT of a large image). Only the thread that made the call asks, while the plan is made and in every
    /// operation of the plan. The call then fails with `Cancelled`, and the plan can be used again.
    ///
    /// For outputs to be unchanged then, exact sums, Q, and transforms of several coils or frames are computed in other
    /// memory of the output's size, which `memory_limit` counts. Arrays on a GPU are written directly, so that
    /// transforms to them ask only before they begin. Several GPUs that share work are not interrupted during their
    /// parts.
    pub interrupt: Option<Interrupt>,
}

/// The family of gridding windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Window {
    /// The least worst error: of all windows of W cells that are polynomials in each cell, the one whose largest error
    /// over the voxels of the image is least at the oversampling in use (the min-max criterion of Fessler and Sutton
    /// 2003, with the correction of Jacob 2009). The default, and the best at every tolerance: at the same width and
    /// oversampling it errs by 0.1 to 0.6 of what Kaiser-Bessel does from four cells on.
    #[default]
    Minimax,
    /// I0(beta sqrt(1 - (2 x / W)^2)) (Jackson et al. 1991; Beatty et al. 2005). For each width and oversampling beta
    /// is the one whose largest error over the voxels is least.
    KaiserBessel,
    /// A Gaussian truncated at W/2, where truncation and aliasing are equal. About half the digits of Kaiser-Bessel.
    Gaussian,
    /// The triangle of W = 2 cells: linear interpolation in each axis. Its error is about 0.2, at best.
    Bilinear,
}

impl Window {
    /// The window's name, for messages and logs.
    pub fn name(self) -> &'static str {
        match self {
            Window::Minimax => "minimax",
            Window::KaiserBessel => "Kaiser-Bessel",
            Window::Gaussian => "Gaussian",
            Window::Bilinear => "bilinear",
        }
    }
}

/// The filter of backprojection: the ramp |k|, times a window over |k| up to the largest that is measured. Windows
/// fall in this order: less noise, less detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Filter {
    /// The ramp alone (Ramachandran and Lakshminarayanan, 1971), as gridding with ramp weights has it.
    #[default]
    RamLak,
    /// sin(a) / a, a = pi / 2 |k| / k_max (Shepp and Logan, 1974): 0.64 at k_max.
    SheppLogan,
    /// cos(pi / 2 |k| / k_max): 0 at k_max.
    Cosine,
    /// 0.54 + 0.46 cos(pi |k| / k_max): 0.08 at k_max.
    Hamming,
    /// (1 + cos(pi |k| / k_max)) / 2: 0 at k_max.
    Hann,
}

impl Filter {
    /// The filter's name, for messages and reports.
    pub fn name(self) -> &'static str {
        match self {
            Filter::RamLak => "Ram-Lak",
            Filter::SheppLogan => "Shepp-Logan",
            Filter::Cosine => "cosine",
            Filter::Hamming => "Hamming",
            Filter::Hann => "Hann",
        }
    }
}

/// The unit of a prior's weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LambdaUnit {
    /// The mean of the diagonal of E^H W E over the voxels that the coils see: sum_m w_m |phi(k_m)|^2, times the mean
    /// of sum_c |S_c|^2 with coil maps. One value then serves scans of any length and scale.
    #[default]
    Relative,
    /// 1: lambda is used in (E^H W E + lambda R^H R) x = E^H W d as given.
    Absolute,
}
