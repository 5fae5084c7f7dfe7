//! A plan: everything that depends on the trajectory, and all operations on the caller's arrays.

mod changes;
mod params;
mod reconstruction;
mod state;
mod transforms;
mod warnings;

use crate::base::error::Result;
use crate::base::float_mode::FloatMode;
use crate::base::geometry::{Geometry, InputRanges};
use crate::base::interrupt::ActiveInterrupt;
use crate::base::memory::check_available;
use crate::base::options::{Options, Window};
use crate::base::real::Real;
use crate::base::scan_size::ScanSize;
use crate::base::sizes::product;
use crate::base::warning::Warning;
use crate::engine::factory;
use crate::engine::interface::PlanInfo;
use crate::engine::memory::Memory;
use params::PlanParams;
use state::{InputMaxima, OverflowLimits, PlanCall, PlanState};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;
use warnings::{time_warning, tolerance_warning};

/// Everything that depends on the trajectory, ready to transform any number of data sets.
///
/// Image arrays are [nx, ny, nz, frames] with coil maps and [nx, ny, nz, coils, frames] without (or [voxels, ...] for a
/// list of voxels); k-space arrays are [samples, coils, frames]; x fastest. A plan may be used from several threads at
/// once. Outputs are written completely or, if an error is returned, not at all (except if the GPU itself fails). Every
/// operation can also fail with `Cancelled`, see [`Options::interrupt`].
///
/// Trajectory, weights and coil maps may change: [`Plan::set_trajectory`], [`Plan::set_weights`],
/// [`Plan::set_coil_maps`]. Each replaces the state of the plan at once and as a whole. An operation in progress, in
/// this or another thread, continues with the state with which it began, and no thread waits. An operation that begins
/// after the change has returned uses the new state. After an error the plan is unchanged.
///
/// A clone is an independent plan that shares its memory with the original until one of them changes. A change of one
/// does not affect the other.
///
/// Arrays are slices and vectors, or [`crate::Source::device`] and [`crate::Sink::device`] if both the plan and the
/// arrays are on a GPU.
pub struct Plan<T: Real> {
    /// The state with which new operations begin. Locked only briefly, to copy or replace the reference.
    state: Mutex<Arc<PlanState<T>>>,
}

impl<T: Real> Clone for Plan<T> {
    fn clone(&self) -> Self {
        Plan { state: Mutex::new(self.snapshot()) }
    }
}

impl<T: Real> Plan<T> {
    /// Checks the geometry, chooses window and grid, and sorts the samples.
    ///
    /// # Errors
    /// In addition to the errors of [`Geometry::check`]:
    /// - `ToleranceOutOfRange`: the window cannot reach the tolerance.
    /// - `InvalidArgument`: no window has this width or oversampling, or one of them is set for exact sums.
    /// - `NoDevice`: the GPU does not exist. `DriverIncomplete`: its kernels cannot be compiled.
    /// - `MemoryLimit`: the message reports the bytes needed.
    /// - `Unsupported`: a list of voxels with method nufft, a field map so steep that it requires more than 128
    ///   segments, or a vector unit that this processor does not have.
    /// - `UnknownValue`: the environment variable `RECON_SIMD` has an unknown value.
    pub fn new(geometry: &Geometry<'_, T>, options: &Options) -> Result<Self> {
        Plan::create(log::Level::Info, true, geometry, options)
    }

    /// Creates a plan for calibration data, from which [`Plan::coil_maps`] estimates maps. Unlike [`Plan::new`], does
    /// not warn if k reaches less far than the image size suggests ([`crate::WarningKind::Extent`]): maps need only the
    /// centre of k-space.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn for_coil_maps(geometry: &Geometry<'_, T>, options: &Options) -> Result<Self> {
        Plan::create(log::Level::Info, false, geometry, options)
    }

    /// Creates a plan for one step of a larger computation. It is logged at debug level only.
    pub(crate) fn of_step(geometry: &Geometry<'_, T>, options: &Options) -> Result<Self> {
        Plan::create(log::Level::Debug, true, geometry, options)
    }

    /// Creates a plan and logs it at `level`.
    fn create(level: log::Level, warn_of_extent: bool, geometry: &Geometry<'_, T>, options: &Options) -> Result<Self> {
        let started = Instant::now();
        let _mode = FloatMode::standard();
        let _interrupt = ActiveInterrupt::new(options.interrupt.clone());
        geometry.check_sizes()?;
        // Plans copy coordinates and weights. Check their memory first, as reading billions takes a minute.
        let is_on_host = usize::from(geometry.on_device.is_none());
        let arrays = is_on_host * (geometry.dims.len() + usize::from(geometry.has_weights()));
        check_available(product(&[arrays, geometry.samples(), size_of::<T>()]), "the trajectory")?;
        let ((engine, ranges), device_selection) = factory::create_engine(geometry, options)?;
        let InputRanges { coordinates: ranges, weight, map } = ranges;
        let info = PlanInfo { seconds: started.elapsed().as_secs_f64(), ..engine.info() };
        let params = PlanParams::new(geometry, options, info.method, device_selection);
        let maxima = InputMaxima { weight, map: map.unwrap_or(1.0) };
        let state = PlanState {
            samples: geometry.samples(),
            seconds: info.seconds,
            warnings: geometry
                .extent_warning(&ranges)
                .filter(|_| warn_of_extent)
                .into_iter()
                .chain(tolerance_warning(&info, options))
                .chain(time_warning(geometry))
                .collect(),
            limits: OverflowLimits::new(&params, geometry.samples(), maxima),
            interruption: params.interruption(geometry.samples(), size_of::<T>()),
            engine,
            params: Arc::new(params),
        };
        state.warnings.iter().for_each(|warning| log::warn!("{warning}"));
        state.log_new_warning();
        log::log!(
            level,
            "plan: {} on {} ({} threads, {}), {} window of width {}, oversampling {:.3}, grid {:?}, {} segments, {} \
             nodes, error {:.1e}, {} bytes, {:.1} ms; device: {}",
            info.method.name(),
            info.device,
            info.threads,
            info.simd,
            info.window.map_or("no", Window::name),
            info.width,
            info.oversampling,
            info.grid,
            info.segments,
            info.nodes,
            info.error,
            info.host_bytes,
            1e3 * info.seconds,
            device_selection
        );
        Ok(Plan { state: Mutex::new(Arc::new(state)) })
    }

    /// Estimates the bytes that a plan of a scan of these sizes and its operations need, without creating the plan.
    ///
    /// The figures are upper estimates. For a plan on the CPU they are within a fifth of the peaks, if these are more
    /// than a few MiB. They do not include the caller's arrays or the memory that the driver of a GPU uses.
    ///
    /// Window, grid and device are chosen as in [`Plan::new`]. This briefly requires the plan's threads, or the GPU.
    ///
    /// # Errors
    /// `InvalidSize` and `SizeOverflow` for invalid sizes; for options those of [`Plan::new`], except `MemoryLimit`. A
    /// memory limit is used only if it affects the choices of a plan.
    pub fn memory(size: &ScanSize, options: &Options) -> Result<Memory> {
        let _mode = FloatMode::standard();
        size.check()?;
        factory::estimate_memory::<T>(size, options)
    }

    /// Locks the reference to the current state.
    fn lock(&self) -> MutexGuard<'_, Arc<PlanState<T>>> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Returns the current state.
    fn snapshot(&self) -> Arc<PlanState<T>> {
        self.lock().clone()
    }

    /// Begins a call of an operation.
    fn begin(&self) -> PlanCall<T> {
        PlanCall::new(self.snapshot())
    }

    /// Returns the properties of the plan.
    pub fn info(&self) -> PlanInfo {
        let state = self.snapshot();
        PlanInfo {
            seconds: state.seconds,
            device_selection: state.params.device_selection,
            threads: state.engine.running_threads(),
            ..state.engine.info()
        }
    }

    /// Returns the warnings about possible errors in the plan's images; [`crate::WarningKind`] lists the kinds. Each
    /// warning is also logged: when the plan is created, or when a change first causes a warning of this kind. That the
    /// system refused threads is logged by the first call that ends after all threads were requested.
    pub fn warnings(&self) -> Vec<Warning> {
        let state = self.snapshot();
        state.warnings.iter().cloned().chain(state.engine.warning()).collect()
    }

    /// Returns the number of elements of an image array.
    pub fn image_len(&self) -> usize {
        self.snapshot().params.image_len()
    }

    /// Returns the number of elements of a k-space array.
    pub fn kspace_len(&self) -> usize {
        self.snapshot().kspace_len()
    }

    /// Returns the number of samples per coil and frame.
    pub fn samples(&self) -> usize {
        self.snapshot().samples
    }
}
