//! Creation of a plan's engine, and the estimate of its memory: both choose device, method, window and grid.

use super::coil_maps;
use super::device_selection::{DeviceReason, DeviceSelection};
use super::encoding::samples::SampleArrays;
use super::encoding::Encoding;
use super::interface::{Engine, CREATING_PLAN};
use super::interruption::Interruption;
use super::memory::{Memory, MemoryLimit, MemoryRequirements};
use super::multi_gpu::MultiGpuEngine;
use super::partition;
use super::transform_params::TransformParams;
use crate::backend::cpu::Cpu;
use crate::backend::cuda::{self, Cuda};
use crate::backend::Backend;
use crate::base::error::{bail, try_box, ErrorKind, Result};
use crate::base::geometry::{Geometry, InputRanges, CPU_OR_SEVERAL_GPUS};
use crate::base::interrupt;
use crate::base::options::{Device, Method, Options};
use crate::base::real::{PerPrecision, Real};
use crate::base::scan_size::ScanSize;
use std::sync::Arc;
use std::time::Instant;

/// An engine, and the ranges of the geometry's values.
type CheckedEngine<T> = (Box<dyn Engine<T>>, InputRanges);

/// Creates the engine of a geometry whose sizes were checked. The threads of the engine check the geometry's values.
pub(crate) fn create_engine<T: Real>(
    geometry: &Geometry<'_, T>,
    options: &Options,
) -> Result<(CheckedEngine<T>, DeviceSelection)> {
    struct EngineDispatch;
    impl PerPrecision for EngineDispatch {
        type Input<'a, T: Real> = (&'a Geometry<'a, T>, &'a Options);
        type Output<T: Real> = Result<(CheckedEngine<T>, DeviceSelection)>;
        fn single((geometry, options): Self::Input<'_, f32>) -> Self::Output<f32> {
            run_on_backends(&ScanSize::lengths(geometry), options, &EngineCreation { geometry, options })
        }
        fn double((geometry, options): Self::Input<'_, f64>) -> Self::Output<f64> {
            run_on_backends(&ScanSize::lengths(geometry), options, &EngineCreation { geometry, options })
        }
    }
    T::per_precision::<EngineDispatch>((geometry, options))
}

/// Estimates the memory of a plan of these sizes and of its operations.
pub(crate) fn estimate_memory<T: Real>(size: &ScanSize, options: &Options) -> Result<Memory> {
    struct MemoryDispatch;
    impl PerPrecision for MemoryDispatch {
        type Input<'a, T: Real> = (&'a ScanSize, &'a Options);
        type Output<T: Real> = Result<Memory>;
        fn single((size, options): Self::Input<'_, f32>) -> Self::Output<f32> {
            run_on_backends::<f32, _>(size, options, &MemoryEstimation { size, options }).map(|(memory, _)| memory)
        }
        fn double((size, options): Self::Input<'_, f64>) -> Self::Output<f64> {
            run_on_backends::<f64, _>(size, options, &MemoryEstimation { size, options }).map(|(memory, _)| memory)
        }
    }
    T::per_precision::<MemoryDispatch>((size, options))
}

/// A task that requires the backends of a plan.
trait BackendTask<T: Real> {
    type Output;
    /// Returns whether there is a field map or a decay map.
    fn has_maps(&self) -> bool;
    /// Runs the task on one or several backends of the same kind. `exact` selects exact sums.
    fn run<B: Backend<T>>(&self, backends: Vec<B>, exact: bool) -> Result<Self::Output>;
}

/// Chooses backends and method, and runs a task with them. Also returns why the device was chosen.
fn run_on_backends<T: Real, W: BackendTask<T>>(
    size: &ScanSize,
    options: &Options,
    task: &W,
) -> Result<(W::Output, DeviceSelection)>
where
    Cpu: Backend<T>,
{
    let is_voxel_list = size.listed.is_some();
    let exact = match options.method {
        Method::Exact => true,
        Method::Auto => is_voxel_list,
        Method::Nufft if is_voxel_list => {
            bail!(Unsupported, "a list of voxels needs method exact: method nufft is for grids of voxels")
        }
        Method::Nufft => false,
    };
    let (gpus, choice) = DeviceSelection::new(size, options, exact, task.has_maps(), size_of::<T>());
    let on_cpu = |choice| {
        let cpu = Cpu::new(options.threads, options.simd)?.saving_memory(options.memory_limit.is_some());
        Ok((task.run(vec![cpu], exact)?, choice))
    };
    if gpus.is_empty() {
        return on_cpu(choice);
    }
    if gpus.len() > 1 && options.stream.is_some() {
        bail!(Unsupported, "a stream cannot be used with several GPUs ({gpus:?}): use one GPU, or set no stream");
    }
    // SAFETY: the caller of `CudaStream::new` guaranteed a stream of this GPU that outlives the plan.
    let cuda = |&index: &u32| unsafe { Cuda::<T>::new(index, options.stream.map(|s| s.handle()), options.threads) };
    let started = Instant::now();
    let backends = gpus.iter().map(cuda).collect::<Result<Vec<_>>>();
    let backends = backends.and_then(|backends| cuda::link(&backends).map(|()| backends));
    log::debug!("GPUs {gpus:?} ready in {:.2} ms", 1e3 * started.elapsed().as_secs_f64());
    match backends.and_then(|backends| task.run(backends, exact)) {
        Err(e) if options.device == Device::Auto && e.kind() == ErrorKind::DriverIncomplete => {
            log::warn!("computing on the CPU: {e}");
            on_cpu(DeviceSelection { reason: DeviceReason::GpuUnusable, ..choice })
        }
        result => Ok((result?, choice)),
    }
}

/// The task of [`create_engine`]. It divides the scan if there are several backends.
struct EngineCreation<'a, T: Real> {
    geometry: &'a Geometry<'a, T>,
    options: &'a Options,
}

impl<T: Real> BackendTask<T> for EngineCreation<'_, T> {
    type Output = CheckedEngine<T>;
    fn has_maps(&self) -> bool {
        self.geometry.off_resonance().is_some()
    }
    fn run<B: Backend<T>>(&self, backends: Vec<B>, exact: bool) -> Result<CheckedEngine<T>> {
        let EngineCreation { geometry, options } = *self;
        let backends: Vec<Arc<B>> = backends.into_iter().map(Arc::new).collect();
        let first = &backends[0];
        // Check the memory before the values: reading billions of values takes a minute.
        let size = ScanSize::with_band(first.workers(), geometry)?;
        let params = TransformParams::new::<T, B>(first, &size, options, exact)?;
        Encoding::<T, B>::batch_and_limit(first, &size, options, &params)?;
        let started = Instant::now();
        if backends.len() == 1 {
            let (samples, ranges) = SampleArrays::checked(&**first, geometry)?;
            interrupt::check(CREATING_PLAN)?;
            log::debug!("geometry copied and checked in {:.2} ms", 1e3 * started.elapsed().as_secs_f64());
            let encoding = Encoding::new(first.clone(), geometry, Some(samples), size.band, options, params)?;
            return Ok((try_box(encoding, "the plan")?, ranges));
        }
        geometry.check_on_host(CPU_OR_SEVERAL_GPUS)?;
        let numbers = geometry.check_numbers(first.workers())?;
        interrupt::check(CREATING_PLAN)?;
        let within = geometry.coordinates_within(first.workers(), &numbers.coordinates)?;
        let geometry = &Geometry { coordinates: within.iter().map(|k| &k[..]).collect(), ..geometry.clone() };
        log::debug!("geometry checked in {:.2} ms", 1e3 * started.elapsed().as_secs_f64());
        let create = |backend, geometry: &Geometry<'_, T>| {
            Encoding::new(backend, geometry, None, size.band, options, params.clone())
        };
        if let Some(engine) = MultiGpuEngine::new(&backends, geometry, options, create, exact)? {
            return Ok((try_box(engine, "the plan")?, numbers));
        }
        Ok((try_box(create(first.clone(), geometry)?, "the plan")?, numbers))
    }
}

/// The task of [`estimate_memory`].
struct MemoryEstimation<'a> {
    size: &'a ScanSize,
    options: &'a Options,
}

impl<T: Real> BackendTask<T> for MemoryEstimation<'_> {
    type Output = Memory;
    fn has_maps(&self) -> bool {
        self.size.band.is_some()
    }
    fn run<B: Backend<T>>(&self, backends: Vec<B>, exact: bool) -> Result<Memory> {
        let MemoryEstimation { size, options } = *self;
        let first = &backends[0];
        let params = TransformParams::new::<T, B>(first, size, options, exact)?;
        let memory = |size: &ScanSize| encoding_memory::<T, B>(first, size, options, &params);
        partition::memory(backends.len(), size, options, memory, exact)
    }
}

/// Estimates the memory of a plan on one backend and of its operations.
fn encoding_memory<T: Real, B: Backend<T>>(
    b: &B,
    size: &ScanSize,
    options: &Options,
    params: &TransformParams,
) -> Result<Memory> {
    let batch_size = Encoding::<T, B>::batch_size(b, size, options, params)?;
    let requirements = MemoryRequirements::new(b, size, options, params, batch_size)?;
    let limit = MemoryLimit { bytes: options.memory_limit, held: Encoding::<T, B>::bytes(&requirements) };
    let use_toeplitz = Encoding::<T, B>::selects_toeplitz(b, options.normal, size, &limit, params);
    let exact = params.gridding.is_none();
    let interruption = Interruption::new(size, options, exact, size.band.is_some(), size_of::<T>());
    let coil_maps = coil_maps::bytes::<T, B>(b, size)?;
    requirements.peaks::<T, B>(b, use_toeplitz, interruption == Interruption::WithTemporary, coil_maps)
}
