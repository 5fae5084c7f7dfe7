//! Makes the engine of a plan: chooses device, method, window and grid.

use super::chosen::Chosen;
use super::encoding::Encoding;
use super::estimate;
use super::interface::{Engine, MAKING};
use super::memory::Memory;
use super::multi_gpu::{self, Divided};
use crate::backend::cpu::Cpu;
use crate::backend::cuda::{self, Cuda};
use crate::backend::Backend;
use crate::base::error::{bail, try_box, ErrorKind, Result};
use crate::base::geometry::{Geometry, InputRanges};
use crate::base::interrupt;
use crate::base::options::{Device, Method, Options};
use crate::base::real::{PerPrecision, Real};
use crate::base::scan_size::ScanSize;
use std::sync::Arc;
use std::time::Instant;

/// An engine, and what was found in the numbers that it was made of.
type Made<T> = (Box<dyn Engine<T>>, InputRanges);

/// The engine of a geometry whose sizes were checked. Its numbers are checked here, by the engine's threads.
pub(crate) fn engine<T: Real>(geometry: &Geometry<'_, T>, options: &Options) -> Result<Made<T>> {
    struct Make;
    impl PerPrecision for Make {
        type Input<'a, T: Real> = (&'a Geometry<'a, T>, &'a Options);
        type Output<T: Real> = Result<Made<T>>;
        fn single((geometry, options): Self::Input<'_, f32>) -> Self::Output<f32> {
            on_backends(geometry.voxels.is_some(), options, &Making { geometry, options })
        }
        fn double((geometry, options): Self::Input<'_, f64>) -> Self::Output<f64> {
            on_backends(geometry.voxels.is_some(), options, &Making { geometry, options })
        }
    }
    T::per_precision::<Make>((geometry, options))
}

/// What a plan of these sizes takes.
pub(crate) fn memory<T: Real>(size: &ScanSize, options: &Options) -> Result<Memory> {
    struct Estimate;
    impl PerPrecision for Estimate {
        type Input<'a, T: Real> = (&'a ScanSize, &'a Options);
        type Output<T: Real> = Result<Memory>;
        fn single((size, options): Self::Input<'_, f32>) -> Self::Output<f32> {
            on_backends::<f32, _>(size.listed.is_some(), options, &Estimating { size, options })
        }
        fn double((size, options): Self::Input<'_, f64>) -> Self::Output<f64> {
            on_backends::<f64, _>(size.listed.is_some(), options, &Estimating { size, options })
        }
    }
    T::per_precision::<Estimate>((size, options))
}

/// What is to be done with the backends that a plan is for.
trait Task<T: Real> {
    type Output;
    /// With backends of one kind, one or several; `exact` says which method serves.
    fn on<B: Backend<T>>(&self, backends: Vec<B>, exact: bool) -> Result<Self::Output>;
}

/// Chooses backend and method.
fn on_backends<T: Real, W: Task<T>>(listed: bool, options: &Options, task: &W) -> Result<W::Output>
where
    Cpu: Backend<T>,
{
    let exact = match options.method {
        Method::Exact => true,
        Method::Auto => listed,
        Method::Nufft if listed => {
            bail!(Unsupported, "a list of voxels needs method exact: method nufft is for grids of voxels")
        }
        Method::Nufft => false,
    };
    let gpus = match &options.device {
        Device::Cpu => Vec::new(),
        Device::Auto => cuda::runtime::first_usable().into_iter().collect(),
        Device::Cuda(list) if list.is_empty() => vec![0],
        Device::Cuda(list) => list.clone(),
    };
    if gpus.is_empty() {
        return task.on(vec![Cpu::new(options.threads, options.simd)?], exact);
    }
    if gpus.len() > 1 && options.stream.is_some() {
        bail!(Unsupported, "a stream was given to a plan on GPUs {gpus:?}: name one GPU, or give no stream");
    }
    // SAFETY: whoever made the stream has promised it.
    let cuda = |&index: &u32| unsafe { Cuda::<T>::new(index, options.stream.map(|s| s.handle())) };
    let started = Instant::now();
    let found = gpus.iter().map(cuda).collect::<Result<Vec<_>>>();
    let found = found.and_then(|found| cuda::link(&found).map(|()| found));
    log::debug!("GPUs {gpus:?} ready in {:.2} ms", 1e3 * started.elapsed().as_secs_f64());
    match found.and_then(|found| task.on(found, exact)) {
        Err(e) if options.device == Device::Auto && e.kind() == ErrorKind::DriverIncomplete => {
            log::warn!("computing on the CPU: {e}");
            task.on(vec![Cpu::new(options.threads, options.simd)?], exact)
        }
        result => result,
    }
}

/// Makes a plan, dividing the scan where there are several backends.
struct Making<'a, T: Real> {
    geometry: &'a Geometry<'a, T>,
    options: &'a Options,
}

impl<T: Real> Task<T> for Making<'_, T> {
    type Output = Made<T>;
    fn on<B: Backend<T>>(&self, backends: Vec<B>, exact: bool) -> Result<Made<T>> {
        let Making { geometry, options } = *self;
        let backends: Vec<Arc<B>> = backends.into_iter().map(Arc::new).collect();
        let first = &backends[0];
        // What cannot fit is refused before its numbers are read, which of billions takes a minute.
        let size = ScanSize::with_band(first.workers(), geometry)?;
        let chosen = Chosen::new::<T, B>(first, &size, options, exact)?;
        Encoding::<T, B>::counted(first, &size, options, &chosen)?;
        let started = Instant::now();
        let numbers = geometry.check_numbers(first.workers())?;
        interrupt::check(MAKING)?;
        let within = geometry.coordinates_within(first.workers(), &numbers.coordinates)?;
        let geometry = &Geometry { coordinates: within.iter().map(|k| &k[..]).collect(), ..geometry.clone() };
        log::debug!("geometry checked in {:.2} ms", 1e3 * started.elapsed().as_secs_f64());
        let make =
            |backend, geometry: &Geometry<'_, T>| Encoding::new(backend, geometry, size.band, options, chosen.clone());
        if let Some(divided) = Divided::new(&backends, geometry, options, make, exact)? {
            return Ok((try_box(divided, "the plan")?, numbers));
        }
        Ok((try_box(make(first.clone(), geometry)?, "the plan")?, numbers))
    }
}

/// Tells what a plan would take.
struct Estimating<'a> {
    size: &'a ScanSize,
    options: &'a Options,
}

impl<T: Real> Task<T> for Estimating<'_> {
    type Output = Memory;
    fn on<B: Backend<T>>(&self, backends: Vec<B>, exact: bool) -> Result<Memory> {
        let Estimating { size, options } = *self;
        let first = &backends[0];
        let chosen = Chosen::new::<T, B>(first, size, options, exact)?;
        let memory = |size: &ScanSize| estimate::memory::<T, B>(first, size, options, &chosen);
        multi_gpu::memory(backends.len(), size, options, memory, exact)
    }
}
