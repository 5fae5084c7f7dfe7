//! How a plan computes, as its user chooses.

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
    /// The direct sums, to full precision, in time samples times voxels.
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

/// Where.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Device {
    /// The first GPU that can be used, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// These GPUs, by index; the first where none are named. Several share the work: coils with NUFFT, voxels with
    /// exact sums; under a memory limit, and where there is nothing to share, the first does it alone.
    Cuda(Vec<u32>),
}

/// A stream of the caller's on a GPU, on which a plan then queues its work.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CudaStream(*mut c_void);

// SAFETY: a handle of the driver's, which any thread may use.
unsafe impl Send for CudaStream {}
// SAFETY: likewise, and at the same time.
unsafe impl Sync for CudaStream {}

impl CudaStream {
    /// The stream behind a `CUstream` or `cudaStream_t`; null is the default stream.
    ///
    /// # Safety
    /// It is a stream of the primary context of the plan's GPU, and outlives the plan.
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
    /// What the environment variable `RECON_SIMD` names (`baseline` or `sse`, `avx2`, `avx512`); without it, or when it
    /// is `auto`, the best that the processor has. Any other value of this option wins over the variable.
    #[default]
    Auto,
    /// What every processor of its kind has: SSE2 on x86-64.
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
    /// Reads the name of a level: what `Display` writes, or `sse`.
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
    /// Where.
    pub device: Device,
    /// Relative l2 error of a transform against the exact sums, in (0, 1); 0 for 1e-5. It is kept wherever samples are,
    /// few or hundreds of thousands in one place; an entry of E, all of which have size 1, errs by at most five times
    /// as much. Exact sums err by rounding only; over a list of voxels on a GPU in f32 the special function units make
    /// the sines (the sums' error is about 2e-6), unless the tolerance is below 1e-5, which takes 2.5 times the time.
    pub tolerance: f64,
    /// The gridding window.
    pub window: Window,
    /// CPU threads, the caller's among them; 0 for as many as the machine runs at once.
    pub threads: usize,
    /// Bytes that the plan and its operations may hold beyond the caller's arrays.
    pub memory_limit: Option<usize>,
    /// The vector unit.
    pub simd: Simd,
    /// Where a GPU's work is queued: the caller's stream, or None for one of the plan's own. With the caller's, calls
    /// whose arrays all lie on the GPU ([`crate::Source::device`], [`crate::Sink::device`]) may return before the
    /// results are there; they are for whatever is queued next on that stream.
    pub stream: Option<CudaStream>,
    /// Asked now and then whether to end the call that is running: about fifty times a second, less often where the
    /// work allows no more (one NUFFT of a large image), by the thread that made the call and no other, while the plan
    /// is made and in every operation of the plan. The call then fails with `Cancelled`, and the plan is as good as
    /// before.
    ///
    /// For outputs to be untouched then, exact sums, Q, and transforms of several coils or frames are computed apart,
    /// in memory of the output's size that `memory_limit` counts. Arrays on a GPU are written directly, so that
    /// transforms to them only ask before they begin. Several GPUs that share work are not interrupted while they do
    /// their parts.
    pub interrupt: Option<Interrupt>,
}

/// The family of gridding windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Window {
    /// I0(beta sqrt(1 - (2 x / W)^2)): the default, and the best at every tolerance (Jackson et al. 1991; Beatty et al.
    /// 2005). Its beta is optimised for each width and oversampling.
    #[default]
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
            Window::KaiserBessel => "Kaiser-Bessel",
            Window::Gaussian => "Gaussian",
            Window::Bilinear => "bilinear",
        }
    }
}

/// What the weight of a prior is relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LambdaUnit {
    /// The mean of the diagonal of E^H W E over the voxels that the coils see: sum_m w_m |phi(k_m)|^2, times the mean
    /// of sum_c |S_c|^2 with coil maps. One value then serves scans of any length and scale.
    #[default]
    Relative,
    /// 1: lambda stands in (E^H W E + lambda R^H R) x = E^H W d as it is.
    Absolute,
}
