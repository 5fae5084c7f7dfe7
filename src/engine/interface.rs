//! What a plan asks of the engine behind it, be that one backend or several GPUs.

use crate::backend::{Sink, Source};
use crate::base::atomic_file::AtomicFiles;
use crate::base::error::Result;
use crate::base::options::{Method, Window};
use crate::base::real::Real;
use crate::reconstruction::cg::{CgOptions, CgReport, Progress};
use crate::reconstruction::density::Density;
use num_complex::Complex;
use std::ops::ControlFlow;
use std::path::Path;

/// For the message when the caller interrupts it.
pub(crate) const MAKING: &str = "the making of a plan";

/// Which weights go into an adjoint.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weighting {
    None,
    Given,
}

/// What a plan is.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanInfo {
    /// [`Method::Exact`] or [`Method::Nufft`].
    pub method: Method,
    /// Whether it computes on GPUs.
    pub on_gpu: bool,
    /// `cpu`, or `cuda`, the GPU's index and name.
    pub device: String,
    /// The vector unit in use: `sse`, `avx2` or `avx512` on x86-64, else `portable`; `none` on a GPU.
    pub simd: &'static str,
    /// CPU threads.
    pub threads: usize,
    /// The gridding window; none with exact sums.
    pub window: Option<Window>,
    /// The window's width in grid cells; 0 with exact sums.
    pub width: usize,
    /// The oversampled grid; empty with exact sums.
    pub grid: Vec<usize>,
    /// Grid size over image size, of the axis where it is least.
    pub oversampling: f64,
    /// The relative l2 error expected of a transform.
    pub error: f64,
    /// Whether E^H W E goes through Q.
    pub toeplitz: bool,
    /// Bytes held on the host, Q included once it is there.
    pub host_bytes: usize,
    /// Bytes held on GPUs.
    pub device_bytes: usize,
    /// Seconds that the plan took to make.
    pub seconds: f64,
}

/// A plan on some backend, for the caller's arrays, whose sizes and numbers have been checked.
#[doc(hidden)]
#[allow(missing_docs, private_interfaces)]
pub trait Engine<T: Real>: Send + Sync {
    fn info(&self) -> PlanInfo;
    fn samples(&self) -> usize;
    fn image_len(&self) -> usize;
    fn kspace_len(&self) -> usize;
    fn q_len(&self) -> usize;
    fn first_beyond(&self, values: Source<'_, Complex<T>>, limit: T) -> Result<Option<(usize, Complex<T>)>>;
    fn check_room(&self, bytes: usize, what: &str) -> Result<()>;
    fn wait(&self) -> Result<()>;
    fn forward(&self, image: Source<'_, Complex<T>>, kspace: Sink<'_, Complex<T>>) -> Result<()>;
    fn adjoint(&self, weighting: Weighting, kspace: Source<'_, Complex<T>>, image: Sink<'_, Complex<T>>) -> Result<()>;
    fn grid(&self, kspace: Source<'_, Complex<T>>, image: Sink<'_, Complex<T>>) -> Result<()>;
    fn grid_kspace(&self, values: &[Complex<T>], grid: &mut [Complex<T>]) -> Result<()>;
    fn window_correction(&self, axis: usize) -> Result<Vec<f64>>;
    fn prepare_normal(&self) -> Result<()>;
    fn normal(&self, x: Source<'_, Complex<T>>, y: Sink<'_, Complex<T>>) -> Result<()>;
    fn q(&self, q: &mut [Complex<T>]) -> Result<()>;
    fn save_q(&self, files: &mut AtomicFiles, path: &Path) -> Result<()>;
    fn load_q(&self, path: &Path) -> Result<()>;
    fn density(&self, method: Density) -> Result<Vec<T>>;
    fn coil_maps(&self, kspace: &[Complex<T>], frames: usize, calibration: usize) -> Result<Vec<Complex<T>>>;
    fn cg(
        &self,
        kspace: Source<'_, Complex<T>>,
        image: Sink<'_, Complex<T>>,
        options: &CgOptions<'_, T>,
        report: &mut CgReport,
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<()>;
}
