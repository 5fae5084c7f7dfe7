//! The options of a plan.

use super::interrupt::Interrupt;
use std::ffi::c_void;
use std::fmt;
use std::str::FromStr;

/// The method for E and E^H.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Method {
    /// NUFFT for a grid of voxels, exact sums for a list.
    #[default]
    Auto,
    /// Direct sums to full precision. The time is proportional to samples times voxels.
    Exact,
    /// Gridding and FFT, which meet the tolerance.
    Nufft,
}

impl Method {
    /// Returns the method's name for messages and reports.
    pub fn name(self) -> &'static str {
        match self {
            Method::Auto => "auto",
            Method::Exact => "exact",
            Method::Nufft => "nufft",
        }
    }
}

/// The device of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Device {
    /// The first usable GPU or the CPU: the one that is estimated to finish a plan and one adjoint transform first, see
    /// [`crate::DeviceSelection`]. It is the GPU if [`Options::stream`] is set.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// These GPUs, by index; the first GPU if the list is empty. Several GPUs share the work: coils with NUFFT, voxels
    /// with exact sums. With a memory limit, or if there is nothing to share, only the first computes.
    Cuda(Vec<u32>),
}

/// The caller's stream on a GPU, on which a plan queues its work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CudaStream(*mut c_void);

// SAFETY: a driver handle, which any thread may use.
unsafe impl Send for CudaStream {}
// SAFETY: a driver handle, which several threads may use at once.
unsafe impl Sync for CudaStream {}

impl CudaStream {
    /// Wraps a `CUstream` or `cudaStream_t`; null is the default stream.
    ///
    /// # Safety
    /// The stream must belong to the primary context of the plan's GPU, and outlive the plan.
    pub unsafe fn new(stream: *mut c_void) -> Self {
        CudaStream(stream)
    }

    /// Returns the driver's handle.
    pub(crate) fn handle(self) -> *mut c_void {
        self.0
    }
}

/// The method for E^H W E.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Normal {
    /// The faster method by the cost model, within the memory limit.
    #[default]
    Auto,
    /// Convolution with Q.
    Toeplitz,
    /// One forward and one adjoint transform.
    Transforms,
}

/// The vector unit that a plan uses. Levels differ in speed and in rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Simd {
    /// The level in the environment variable `RECON_SIMD` (`baseline` or `sse`, `avx2`, `avx512` on x86-64; `baseline`
    /// or `neon` on 64-bit ARM). If it is unset or `auto`, the best level of the processor. On AMD's Zen 4 that is a
    /// special level, `avx512-256`: gridding in vectors of 256 bits, everything else in vectors of 512 bits. Any other
    /// value of this option overrides the variable.
    #[default]
    Auto,
    /// The vector unit of every processor of the architecture: SSE2 on x86-64, NEON on 64-bit ARM.
    Baseline,
    /// AVX2 with fused multiply-add.
    Avx2,
    /// AVX-512 F, VL, DQ and BW.
    Avx512,
    /// NEON with fused multiply-add, of 64-bit ARM.
    Neon,
}

impl fmt::Display for Simd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Simd::Auto => "auto",
            Simd::Baseline => "baseline",
            Simd::Avx2 => "avx2",
            Simd::Avx512 => "avx512",
            Simd::Neon => "neon",
        })
    }
}

impl FromStr for Simd {
    type Err = ();
    /// Parses the name of a level, as `Display` writes it, or `sse` on x86-64.
    fn from_str(name: &str) -> std::result::Result<Self, ()> {
        match name {
            "auto" => Ok(Simd::Auto),
            "baseline" => Ok(Simd::Baseline),
            "sse" if cfg!(target_arch = "x86_64") => Ok(Simd::Baseline),
            "avx2" => Ok(Simd::Avx2),
            "avx512" => Ok(Simd::Avx512),
            "neon" => Ok(Simd::Neon),
            _ => Err(()),
        }
    }
}

/// The options of a plan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    /// The method for E and E^H.
    pub method: Method,
    /// The method for E^H W E.
    pub normal: Normal,
    /// The device.
    pub device: Device,
    /// Relative l2 error of a transform compared with the exact sums, in (0, 1); 0 for the default of 1e-5. The error
    /// is met for any sample positions, for few samples or hundreds of thousands at one position. Each entry of E has
    /// magnitude 1 and an error of at most five times the tolerance.
    ///
    /// Exact sums have rounding errors only. Over a list of voxels on a GPU in f32, the special function units compute
    /// the sines, with an error of the sums of about 2e-6. A tolerance below 1e-5 selects slower, accurate sines.
    pub tolerance: f64,
    /// The gridding window.
    pub window: Window,
    /// Width of the window in cells of the oversampled grid, 2 to 16 (2 for the bilinear window); 0 selects it
    /// automatically.
    ///
    /// Width and oversampling can be set separately. Values of 0 are chosen so that the tolerance is met at the least
    /// cost. An explicit tolerance that cannot be met is an error. Without an explicit tolerance,
    /// [`crate::PlanInfo::error`] reports the error, and an error above the default tolerance raises a warning.
    pub width: usize,
    /// Ratio of grid size to image size, 1.25 to 2.5; 0 selects a value that meets the tolerance.
    /// The grid of each axis has the next larger size with a fast FFT, and is at least two windows wide.
    pub oversampling: f64,
    /// Number of CPU threads, including the calling thread; 0 for the number that the machine runs at once. If the
    /// system refuses some threads, the plan computes with the others and logs a warning.
    pub threads: usize,
    /// Maximum number of bytes that the plan and its operations use in addition to the caller's arrays; `None` for no
    /// limit.
    pub memory_limit: Option<usize>,
    /// The vector unit.
    pub simd: Simd,
    /// The stream for the work of a GPU; `None` for a stream of the plan. With the caller's stream, calls whose arrays
    /// are all on the GPU ([`crate::Source::device`], [`crate::Sink::device`]) may return before the results are
    /// written. Work that is queued on that stream afterwards sees the results.
    pub stream: Option<CudaStream>,
    /// A callback that can end the running call; `None` for no callback. It is called about fifty times per second,
    /// less often during long single steps (one NUFFT of a large image). Only the thread that made the call uses it,
    /// while the plan is created and in every operation. A call that ends this way fails with `Cancelled`, and the plan
    /// remains usable.
    ///
    /// To leave outputs unchanged, Q, exact sums, and transforms of several coils or frames are computed in temporary
    /// memory of the output's size, which `memory_limit` includes. Arrays on a GPU are written directly, and so are the
    /// outputs of transforms that are estimated to take less than 20 ms: these use the callback only before they begin.
    /// Several GPUs that share work are not interrupted during their parts.
    pub interrupt: Option<Interrupt>,
}

/// The family of gridding windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Window {
    /// The window with the smallest worst-case error. Among all windows of W cells that are polynomials in each cell,
    /// its largest error over the voxels of the image is smallest at the oversampling in use. This is the min-max
    /// criterion of Fessler and Sutton 2003, with the correction of Jacob 2009.
    ///
    /// It is the default, and the best at every tolerance: from four cells on, its error is 0.1 to 0.6 times that of
    /// Kaiser-Bessel at the same width and oversampling.
    #[default]
    Minimax,
    /// I0(beta sqrt(1 - (2 x / W)^2)) (Jackson et al. 1991; Beatty et al. 2005). For each width and oversampling, beta
    /// minimises the largest error over the voxels.
    KaiserBessel,
    /// A Gaussian truncated at W/2, for which truncation and aliasing errors are equal. It reaches about half the
    /// digits of Kaiser-Bessel.
    Gaussian,
    /// The triangle of W = 2 cells: linear interpolation along each axis. Its error is at least about 0.2.
    Bilinear,
}

impl Window {
    /// Returns the window's name for messages and logs.
    pub fn name(self) -> &'static str {
        match self {
            Window::Minimax => "minimax",
            Window::KaiserBessel => "Kaiser-Bessel",
            Window::Gaussian => "Gaussian",
            Window::Bilinear => "bilinear",
        }
    }
}

/// The filter of backprojection: the ramp |k| times a window over |k| up to the largest measured value. The order is
/// that of decreasing noise and detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Filter {
    /// The ramp alone (Ramachandran and Lakshminarayanan, 1971), equivalent to gridding with ramp weights.
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
    /// Returns the filter's name for messages and reports.
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
    /// The mean diagonal of E^H W E over the voxels that the coils see: sum_m w_m |phi(k_m)|^2, times the mean of sum_c
    /// |S_c|^2 with coil maps. One value then suits scans of any length and scale.
    #[default]
    Relative,
    /// The unit 1: lambda in (E^H W E + lambda R^H R) x = E^H W d is used unchanged.
    Absolute,
}
