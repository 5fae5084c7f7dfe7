//! The interface between a plan and its engine, which computes on one backend or on several GPUs.

use super::device_selection::DeviceSelection;
use crate::backend::{Sink, Source};
use crate::base::atomic_file::AtomicFiles;
use crate::base::error::Result;
use crate::base::geometry::{Geometry, InputRanges, CPU_OR_SEVERAL_GPUS};
use crate::base::input_check::PendingCheck;
use crate::base::interrupt;
use crate::base::options::{Method, Options, Window};
use crate::base::real::Real;
use crate::base::warning::Warning;
use crate::base::workers::Workers;
use crate::reconstruction::cg::{CgOptions, CgReport, Progress};
use crate::reconstruction::density::{Density, Weighting};
use num_complex::Complex;
use std::ops::ControlFlow;
use std::path::Path;

/// Name of the creation of a plan in messages about interrupted calls.
pub(crate) const CREATING_PLAN: &str = "the creation of a plan";
/// Name of a change in messages about interrupted calls.
pub(crate) const CHANGING_PLAN: &str = "the change of a plan";

/// A change of a plan. Its sizes and values have been checked, also that nothing else differs from the plan.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum Change<'a, T: Real> {
    /// New trajectory and weights, and new coil maps if the geometry has some.
    Trajectory(&'a Geometry<'a, T>),
    /// New density weights; `None` removes them.
    Weights(Option<Source<'a, T>>),
    /// New coil maps.
    CoilMaps(Source<'a, Complex<T>>),
}

/// Properties of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanInfo {
    /// [`Method::Exact`] or [`Method::Nufft`].
    pub method: Method,
    /// Whether the plan computes on GPUs.
    pub on_gpu: bool,
    /// `cpu`, or `cuda`, the GPU's index and name.
    pub device: String,
    /// Why the plan computes on this device.
    pub device_selection: DeviceSelection,
    /// The vector unit in use: `sse`, `avx2`, `avx512` or `avx512-256` on x86-64, `neon` on 64-bit ARM, else
    /// `portable`; `none` on a GPU.
    pub simd: &'static str,
    /// Number of CPU threads that compute, the caller's included. Smaller than requested if the system refused threads.
    pub threads: usize,
    /// The gridding window; `None` with exact sums.
    pub window: Option<Window>,
    /// The window's width in grid cells; 0 with exact sums.
    pub width: usize,
    /// The oversampled grid; empty with exact sums.
    pub grid: Vec<usize>,
    /// Grid size over image size, of the axis with the smallest ratio.
    pub oversampling: f64,
    /// Expected relative l2 error of a transform. It is at most the tolerance if the tolerance determined the window.
    /// For a window of a given width and oversampling it is the error for evenly spread samples. If all samples are at
    /// the edge of k-space, the error is up to 3.3 times as large.
    pub error: f64,
    /// Number of plain transforms per transform with off-resonance or decay; 0 without both, and with exact sums.
    pub segments: usize,
    /// Whether E^H W E is computed by convolution with Q.
    pub toeplitz: bool,
    /// Number of convolutions whose sum is E^H W E with off-resonance or decay; 0 without both, and if E^H W E is
    /// computed by transforms.
    pub nodes: usize,
    /// Bytes held on the host, including Q once it has been computed.
    pub host_bytes: usize,
    /// Bytes held on GPUs.
    pub device_bytes: usize,
    /// Duration in seconds of the creation of the plan, or of its last change, such as
    /// [`crate::Plan::set_trajectory`].
    pub seconds: f64,
}

/// The computations of a plan on its backends. The arrays belong to the caller; their sizes and values have been
/// checked.
#[doc(hidden)]
#[allow(missing_docs, private_interfaces)]
pub trait Engine<T: Real>: Send + Sync {
    /// Returns the properties that the engine knows, with the number of threads that was requested.
    fn info(&self) -> PlanInfo;
    /// Returns the number of CPU threads that compute. Waits for threads that are being started.
    fn running_threads(&self) -> usize;
    /// Returns the backend's warning, if it has one. Waits for threads that are being started.
    fn warning(&self) -> Option<Warning>;
    /// Returns this warning once, as soon as it is known. Does not wait.
    fn new_warning(&self) -> Option<Warning>;
    /// Creates the engine after a change. It shares all unchanged parts with this one. `options` are those of the plan.
    fn changed(&self, change: Change<'_, T>, options: &Options) -> Result<Box<dyn Engine<T>>>;
    /// Checks all values of a geometry, and creates the engine with this trajectory. Sizes have been checked.
    fn with_trajectory(
        &self,
        geometry: &Geometry<'_, T>,
        options: &Options,
    ) -> Result<(Box<dyn Engine<T>>, InputRanges)>;
    /// Returns the largest density weight, or an error if a weight is not finite or is negative.
    fn check_weights(&self, weights: Source<'_, T>) -> Result<f64>;
    /// Returns an upper bound of the real and imaginary parts of coil maps, or an error if a value is not finite.
    fn check_coil_maps(&self, maps: Source<'_, Complex<T>>) -> Result<f64>;
    /// Returns the threads for loops over arrays in host memory.
    fn workers(&self) -> &dyn Workers;
    /// Returns `MemoryLimit` if `bytes` more bytes, for `what`, exceed the caller's memory limit.
    fn check_memory(&self, bytes: usize, what: &str) -> Result<()>;
    /// Waits until the backend has completed all queued work.
    fn wait(&self) -> Result<()>;
    /// Returns the first value whose magnitude is not below `limit`, and its index, in host or GPU memory.
    fn first_exceeding(&self, values: Source<'_, Complex<T>>, limit: T) -> Result<Option<(usize, Complex<T>)>>;

    /// Begins a check that the magnitudes of the input of [`Engine::forward`] or [`Engine::adjoint`] are below `limit`.
    /// That call makes the check, and writes no output if it fails. Returns `None` if it does not support this.
    fn begin_check(&self, _input: Source<'_, Complex<T>>, _limit: T) -> Result<Option<Box<dyn PendingCheck>>> {
        Ok(None)
    }

    /// Computes s = E x: `image` [voxels, images, frames], `kspace` [samples, coils, frames].
    fn forward(&self, image: Source<'_, Complex<T>>, kspace: Sink<'_, Complex<T>>) -> Result<()>;
    /// Computes the density weights of gridding, if this weighting uses them and they do not exist yet.
    fn prepare_adjoint(&self, weighting: Weighting) -> Result<()>;
    /// Computes x = E^H d, E^H W d or the gridding reconstruction, with the same shapes.
    fn adjoint(&self, weighting: Weighting, kspace: Source<'_, Complex<T>>, image: Sink<'_, Complex<T>>) -> Result<()>;
    /// Computes the gridded k-space of one coil on the oversampled grid, with k = 0 in the middle cell, floor(G/2).
    fn grid_kspace(&self, values: &[Complex<T>], grid: &mut [Complex<T>]) -> Result<()>;
    /// Returns the factors along an axis by which an image is multiplied after the FFT of gridded k-space.
    fn window_correction(&self, axis: usize) -> Result<Vec<f64>>;

    /// Computes Q if E^H W E is computed by convolution with it.
    fn prepare_normal(&self) -> Result<()>;
    /// Computes y = E^H W E x for any number of images.
    fn normal(&self, x: Source<'_, Complex<T>>, y: Sink<'_, Complex<T>>) -> Result<()>;
    /// Returns the mean of the diagonal of E^H W E over the voxels that coils see.
    fn mean_diagonal(&self) -> Result<f64>;
    /// Computes Q on the doubled grid, [2 nx, 2 ny, 2 nz], with displacement delta at index delta + n. For a list of
    /// voxels, computes Q at the displacements in the list.
    fn q(&self, q: &mut [Complex<T>]) -> Result<()>;
    /// Saves the spectrum of Q, computing it first if necessary.
    fn save_q(&self, files: &mut AtomicFiles, path: &Path) -> Result<()>;
    /// Loads the spectrum of Q.
    fn load_q(&self, path: &Path) -> Result<()>;

    /// Computes density weights for this trajectory. `start` contains the initial weights of the iteration of Pipe and
    /// Menon; `None` means 1.
    fn density(&self, method: Density, start: Option<&[T]>) -> Result<Vec<T>>;
    /// Estimates coil sensitivities from the data of `frames` frames.
    fn coil_maps(&self, kspace: &[Complex<T>], frames: usize, calibration: usize) -> Result<Vec<Complex<T>>>;
    /// Solves for all images of all frames. Q must have been computed if it is used, and lambda must be absolute.
    fn cg(
        &self,
        kspace: Source<'_, Complex<T>>,
        image: Sink<'_, Complex<T>>,
        options: &CgOptions<'_, T>,
        report: &mut CgReport,
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<()>;
}

/// Checks all values of a geometry on the host, and creates the engine of several GPUs with this trajectory.
pub(super) fn changed_trajectory<T: Real>(
    engine: &dyn Engine<T>,
    geometry: &Geometry<'_, T>,
    options: &Options,
) -> Result<(Box<dyn Engine<T>>, InputRanges)> {
    geometry.check_on_host(CPU_OR_SEVERAL_GPUS)?;
    let ranges = geometry.check_numbers(engine.workers())?;
    interrupt::check(CHANGING_PLAN)?;
    let within = geometry.coordinates_within(engine.workers(), &ranges.coordinates)?;
    let geometry = Geometry { coordinates: within.iter().map(|k| &k[..]).collect(), ..geometry.clone() };
    Ok((engine.changed(Change::Trajectory(&geometry), options)?, ranges))
}
