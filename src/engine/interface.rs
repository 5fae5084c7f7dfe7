//! What a plan asks of the engine behind it, be that one backend or several GPUs.

use crate::backend::{Sink, Source};
use crate::base::atomic_file::AtomicFiles;
use crate::base::error::Result;
use crate::base::geometry::Geometry;
use crate::base::options::{Method, Options, Window};
use crate::base::real::Real;
use crate::base::warning::Warning;
use crate::base::workers::Workers;
use crate::reconstruction::cg::{CgOptions, CgReport, Progress};
use crate::reconstruction::density::{Density, Weighting};
use num_complex::Complex;
use std::ops::ControlFlow;
use std::path::Path;

/// For the message when the caller interrupts it.
pub(crate) const MAKING: &str = "the making of a plan";
/// For the message when the caller interrupts that.
pub(crate) const CHANGING: &str = "the change of a plan";

/// What is to be another in a plan. Sizes and numbers have been checked, and what must stay is as it was.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub enum Change<'a, T: Real> {
    /// A trajectory, its weights, and coil maps where the geometry has some.
    Trajectory(&'a Geometry<'a, T>),
    /// Weights, or none.
    Weights(Option<&'a [T]>),
    /// Coil maps.
    CoilMaps(&'a [Complex<T>]),
}

impl<'a, T: Real> Change<'a, T> {
    /// Coil maps in place of those before, where there are any.
    pub(crate) fn coil_maps(&self) -> Option<&'a [Complex<T>]> {
        match *self {
            Change::Trajectory(geometry) => geometry.coil_maps,
            Change::Weights(_) => None,
            Change::CoilMaps(maps) => Some(maps),
        }
    }
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
    /// Number of CPU threads that compute, the caller's included. Fewer than asked for if the system refused some.
    pub threads: usize,
    /// The gridding window; none with exact sums.
    pub window: Option<Window>,
    /// The window's width in grid cells; 0 with exact sums.
    pub width: usize,
    /// The oversampled grid; empty with exact sums.
    pub grid: Vec<usize>,
    /// Grid size over image size, of the axis where it is least.
    pub oversampling: f64,
    /// The relative l2 error expected of a transform. It is at most the tolerance if that chose the window. For a
    /// window of a given width and oversampling it is the error for evenly spread samples. If all samples are at the
    /// edge of k-space, the error is up to 3.3 times as large.
    pub error: f64,
    /// With off-resonance or decay, the transforms without either that make one with; 0 without, and with exact sums.
    pub segments: usize,
    /// Whether E^H W E goes through Q.
    pub toeplitz: bool,
    /// With off-resonance or decay, the convolutions that E^H W E is the sum of; 0 without, and where it goes through
    /// transforms.
    pub nodes: usize,
    /// Bytes held on the host, Q included once it is there.
    pub host_bytes: usize,
    /// Bytes held on GPUs.
    pub device_bytes: usize,
    /// Seconds that the plan took to make, or its last change ([`crate::Plan::set_trajectory`] and the like).
    pub seconds: f64,
}

/// What computes for a plan, on some backend. Arrays are a caller's; their sizes and numbers have been checked.
#[doc(hidden)]
#[allow(missing_docs, private_interfaces)]
pub trait Engine<T: Real>: Send + Sync {
    fn info(&self) -> PlanInfo;
    /// Returns what the backend warns of.
    fn warning(&self) -> Option<Warning>;
    /// The engine after a change, which shares with this one what the change leaves as it is. `options` are the plan's.
    fn changed(&self, change: Change<'_, T>, options: &Options) -> Result<Box<dyn Engine<T>>>;
    /// Who does loops over arrays in the host's memory.
    fn workers(&self) -> &dyn Workers;
    /// Refuses `bytes` for `what` beyond the caller's memory limit.
    fn check_memory(&self, bytes: usize, what: &str) -> Result<()>;
    /// Waits until the backend has done all that it was asked.
    fn wait(&self) -> Result<()>;
    /// The first number that is not below `limit` in magnitude, and its index, wherever the numbers are.
    fn first_exceeding(&self, values: Source<'_, Complex<T>>, limit: T) -> Result<Option<(usize, Complex<T>)>>;

    /// s = E x: `image` [voxels, images, frames], `kspace` [samples, coils, frames].
    fn forward(&self, image: Source<'_, Complex<T>>, kspace: Sink<'_, Complex<T>>) -> Result<()>;
    /// x = E^H d, E^H W d or the gridding reconstruction, of the same shapes.
    fn adjoint(&self, weighting: Weighting, kspace: Source<'_, Complex<T>>, image: Sink<'_, Complex<T>>) -> Result<()>;
    /// The gridded k-space of one coil, on the oversampled grid, k = 0 in the middle cell, floor(G/2).
    fn grid_kspace(&self, values: &[Complex<T>], grid: &mut [Complex<T>]) -> Result<()>;
    /// The factors along an axis by which an image is multiplied after the FFT of gridded k-space.
    fn window_correction(&self, axis: usize) -> Result<Vec<f64>>;

    /// Makes Q where E^H W E goes through it.
    fn prepare_normal(&self) -> Result<()>;
    /// y = E^H W E x for any number of images.
    fn normal(&self, x: Source<'_, Complex<T>>, y: Sink<'_, Complex<T>>) -> Result<()>;
    /// The mean of the diagonal of E^H W E over the voxels that coils see.
    fn mean_diagonal(&self) -> Result<f64>;
    /// Q on the doubled grid, [2 nx, 2 ny, 2 nz], displacement delta at index delta + n; for a list of voxels, Q at the
    /// displacements listed.
    fn q(&self, q: &mut [Complex<T>]) -> Result<()>;
    /// Saves Q's spectrum, computing it if need be.
    fn save_q(&self, files: &mut AtomicFiles, path: &Path) -> Result<()>;
    /// Loads Q's spectrum.
    fn load_q(&self, path: &Path) -> Result<()>;

    /// Density weights for this trajectory, with those that Pipe and Menon's begin with, or 1.
    fn density(&self, method: Density, start: Option<&[T]>) -> Result<Vec<T>>;
    /// Coil sensitivities from the data of `frames` frames.
    fn coil_maps(&self, kspace: &[Complex<T>], frames: usize, calibration: usize) -> Result<Vec<Complex<T>>>;
    /// Solves for all images of all frames, Q being there where it is used and lambda absolute.
    fn cg(
        &self,
        kspace: Source<'_, Complex<T>>,
        image: Sink<'_, Complex<T>>,
        options: &CgOptions<'_, T>,
        report: &mut CgReport,
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<()>;
}
