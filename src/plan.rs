//! The way in: a plan holds everything that depends on the trajectory, and offers every operation on the caller's
//! arrays.

use crate::backend::{Sink, Source};
use crate::base::atomic_file::{write_atomically, AtomicFiles};
use crate::base::checksum::Checksum;
use crate::base::defaults;
use crate::base::error::{bail, checked_product, try_collect, try_vec, Result};
use crate::base::float_mode::FloatMode;
use crate::base::geometry::{
    check_below, check_coil_maps, check_finite, check_len, check_map_len, check_weight_count, check_weights, Geometry,
    InputRanges, VoxelBasis,
};
use crate::base::interrupt::{self, ActiveInterrupt};
use crate::base::memory::{check_available, Aligned};
use crate::base::options::{Filter, LambdaUnit, Method, Options, Window};
use crate::base::real::{narrow, wide, Real};
use crate::base::results::{check_result, check_results};
use crate::base::scan_size::ScanSize;
use crate::base::sizes::product;
use crate::base::warning::{Warning, WarningKind};
use crate::engine::interface::{Change, Engine, PlanInfo, CHANGING};
use crate::engine::making;
use crate::engine::memory::Memory;
use crate::nufft::choice::four_places;
use crate::reconstruction::cg::{self, CgOptions, CgReport, Progress};
use crate::reconstruction::density::{Density, Weighting};
use crate::reconstruction::discrepancy;
use crate::reconstruction::gridding_scale::LARGEST_WEIGHT;
use crate::simulation::phantom::white_noise;
use num_complex::Complex;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// The elements of arrays, for messages.
const SAMPLE: &str = "k-space sample";
const VOXEL: &str = "image voxel";

/// Everything that depends on the trajectory, ready to transform any number of data sets.
///
/// Image arrays are [nx, ny, nz, frames] with coil maps and [nx, ny, nz, coils, frames] without (or [voxels, ...] for a
/// list of voxels); k-space arrays are [samples, coils, frames]; x fastest. A plan may be used from several threads at
/// once. Outputs are written whole or, when an error is returned, not at all (but when the GPU itself fails). Every
/// operation can also fail with `Cancelled`, see [`Options::interrupt`].
///
/// Trajectory, weights and coil maps may change: [`Plan::set_trajectory`], [`Plan::set_weights`],
/// [`Plan::set_coil_maps`]. Each puts another state in the plan's place, at once and as a whole. An operation under way
/// goes on with the state that it began with, in this thread or another, and nobody waits. An operation that begins
/// after the change has returned uses the new state. After an error the plan is as it was.
///
/// A clone is a plan of its own that shares what both have in common: a change of one is none of the other.
///
/// Arrays are slices and vectors, or [`Source::device`] and [`Sink::device`] where the plan is on a GPU and so are
/// they.
pub struct Plan<T: Real> {
    /// What operations begin with now. Locked for a moment only, to take or to exchange it.
    state: Mutex<Arc<State<T>>>,
}

impl<T: Real> Clone for Plan<T> {
    fn clone(&self) -> Self {
        Plan { state: Mutex::new(self.now()) }
    }
}

/// What a plan computes with until its next change, and what every operation that begins meanwhile keeps.
struct State<T: Real> {
    engine: Box<dyn Engine<T>>,
    fixed: Arc<Fixed>,
    samples: usize,
    seconds: f64,
    warnings: Vec<Warning>,
    limits: Limits<T>,
}

/// What stays with a plan.
struct Fixed {
    options: Options,
    /// A transform writes its output in several parts, between which it can be interrupted.
    parts: bool,
    dims: Vec<usize>,
    voxels: usize,
    /// A checksum of the voxels' positions, where they are a list.
    listed: Option<u64>,
    basis: VoxelBasis,
    coils: usize,
    frames: usize,
    /// Coils are combined by coil maps.
    combined: bool,
    /// Whether there is a field map, and whether there is a decay map.
    off_resonance: [bool; 2],
}

impl Fixed {
    fn new<T: Real>(geometry: &Geometry<'_, T>, options: &Options, method: Method) -> Self {
        let combined = geometry.coil_maps.is_some();
        Fixed {
            options: options.clone(),
            parts: method == Method::Exact
                || combined
                || geometry.off_resonance().is_some()
                || geometry.coils.max(geometry.frames) > 1,
            dims: geometry.dims.clone(),
            voxels: geometry.voxel_count(),
            listed: geometry.voxels.as_ref().map(|lists| positions(lists)),
            basis: geometry.basis,
            coils: geometry.coils,
            frames: geometry.frames,
            combined,
            off_resonance: [geometry.field_map.is_some(), geometry.decay_map.is_some()],
        }
    }

    /// Refuses a geometry of which more is new than the trajectory, the weights, and the values of coil maps.
    fn check_same<T: Real>(&self, geometry: &Geometry<'_, T>) -> Result<()> {
        let remedy = "a new trajectory leaves it as it is, so give the plan's, or make a new plan";
        if geometry.dims != self.dims {
            bail!(
                SizeMismatch,
                "the geometry has an image of {:?} voxels, the plan one of {:?}: {remedy}",
                geometry.dims,
                self.dims
            );
        }
        let (given, own) = (geometry.voxels.is_some(), self.listed.is_some());
        if given != own {
            let list = |listed| if listed { "a list of voxels" } else { "no list of voxels" };
            bail!(InvalidArgument, "the geometry has {}, the plan has {}: {remedy}", list(given), list(own));
        }
        for (name, given, own) in [
            ("voxels in its list", geometry.voxel_count(), self.voxels),
            ("coils", geometry.coils, self.coils),
            ("frames", geometry.frames, self.frames),
        ] {
            if given != own {
                bail!(SizeMismatch, "the geometry has {given} {name}, the plan {own}: {remedy}");
            }
        }
        if geometry.voxels.as_ref().map(|lists| positions(lists)) != self.listed {
            bail!(InvalidArgument, "the geometry lists other positions of voxels than the plan has: {remedy}");
        }
        if geometry.basis != self.basis {
            bail!(
                InvalidArgument,
                "the geometry has the voxel basis {:?}, the plan {:?}: {remedy}",
                geometry.basis,
                self.basis
            );
        }
        let given = [geometry.field_map.is_some(), geometry.decay_map.is_some()];
        for (name, (given, own)) in ["field map", "decay map"].iter().zip(given.into_iter().zip(self.off_resonance)) {
            if given != own {
                let with = |there| if there { "a" } else { "no" };
                bail!(
                    InvalidArgument,
                    "the geometry has {} {name}, the plan has {}: give one where the plan has one, with the times of \
                     the new samples, or make a new plan",
                    with(given),
                    if own { "one" } else { "none" }
                );
            }
        }
        if geometry.coil_maps.is_some() {
            self.check_combined()?;
        }
        Ok(())
    }

    /// Coil maps may be others, but they decide how many images there are.
    fn check_combined(&self) -> Result<()> {
        if !self.combined {
            bail!(
                InvalidArgument,
                "coil maps were given to a plan that was made without, and has an image for each of {} coils: make a \
                 new plan with the maps",
                self.coils
            );
        }
        Ok(())
    }

    /// Elements of an image array.
    fn image_len(&self) -> usize {
        self.voxels * self.frames * if self.combined { 1 } else { self.coils }
    }

    fn q_len(&self) -> usize {
        self.voxels << if self.listed.is_some() { 0 } else { self.dims.len() }
    }
}

/// A checksum of voxels' positions.
fn positions<T: Real>(lists: &[&[T]]) -> u64 {
    let mut sum = Checksum::new();
    lists.iter().flat_map(|r| r.iter()).for_each(|r| sum.add(&r.wide().to_le_bytes()));
    sum.0
}

/// Times in another unit than seconds would blur the image in another way.
fn time_warning<T: Real>(geometry: &Geometry<'_, T>) -> Option<Warning> {
    // Signals of protons in tissue are gone by then, and no readout is as long.
    const LONGEST: f64 = 1.0;
    let times = geometry.off_resonance()?.times;
    let (m, t) = times.iter().map(|t| t.wide()).enumerate().find(|(_, t)| t.abs() > LONGEST)?;
    Some(Warning {
        kind: WarningKind::Times,
        message: format!(
            "sample {m} was taken at {t} s by the times given: are they in ms or us? Times are in seconds from the \
             excitation or the echo"
        ),
    })
}

/// Where the default tolerance is not kept, what is.
fn tolerance_warning(info: &PlanInfo, options: &Options) -> Option<Warning> {
    if options.tolerance != 0.0 || info.error <= defaults::TOLERANCE {
        return None;
    }
    let other_window = info.window != Some(Window::Minimax);
    let (mut named, mut remedy) = (
        String::new(),
        if other_window { "Use the minimax window or double precision" } else { "Use double precision" },
    );
    if options.width != 0 || options.oversampling != 0.0 {
        named = format!("of {} cells at an oversampling of {} ", info.width, four_places(info.oversampling));
        remedy = match (options.width, options.oversampling) {
            (0, _) => "Name a larger oversampling or none",
            (_, 0.0) => "Name a larger width or none",
            _ => "Name a larger width or oversampling, or one of them alone",
        };
    }
    Some(Warning {
        kind: WarningKind::Tolerance,
        message: format!(
            "transforms err by {:.1e}, and not by the default tolerance of {:.0e}: the {} window {}reaches no less \
             here. {}, or name a tolerance that will do",
            info.error,
            defaults::TOLERANCE,
            info.window.map_or("", Window::name),
            named,
            remedy
        ),
    })
}

/// A call under way: in the standard floating-point mode, and asking the caller's function whether to go on.
struct Call<T: Real> {
    state: Arc<State<T>>,
    done: bool,
    _interrupt: ActiveInterrupt,
    _mode: FloatMode,
}

impl<T: Real> Call<T> {
    /// The call's result.
    fn done<R>(mut self, result: R) -> Result<R> {
        self.done = true;
        Ok(result)
    }
}

impl<T: Real> std::ops::Deref for Call<T> {
    type Target = State<T>;
    fn deref(&self) -> &State<T> {
        &self.state
    }
}

impl<T: Real> Drop for Call<T> {
    fn drop(&mut self) {
        if !self.done {
            // What a GPU was asked for may still be reading the caller's arrays. How that ends is of no interest any
            // more.
            let _ = self.state.engine.wait();
        }
    }
}

/// InputRanges below these cannot make a result of an operation overflow. Results of larger ones are computed apart and
/// looked at before the caller gets them.
struct Limits<T> {
    largest: Largest,
    forward: T,
    adjoint: T,
    grid: T,
    normal: T,
    /// Q is made of the weights alone: no other number of the caller comes in.
    q: bool,
}

/// The largest weight, where there are weights, and an upper bound of the coil maps' real and imaginary parts; 1 where
/// there are none.
#[derive(Clone, Copy)]
struct Largest {
    weight: Option<f64>,
    map: f64,
}

impl<T: Real> Limits<T> {
    fn new(fixed: &Fixed, samples: usize, largest: Largest) -> Self {
        // What window, transform and correction can make of a number in between: their sums' lengths are counted apart.
        const INSIDE: f64 = 1e10;
        let Largest { weight, map } = largest;
        let weight = weight.unwrap_or(1.0).max(1.0);
        let samples = (samples * fixed.coils) as f64;
        let voxels = fixed.voxels as f64;
        let below = |gain: f64| T::of(T::LARGEST / INSIDE / gain);
        Limits {
            largest,
            forward: below(voxels * map),
            adjoint: below(samples * map * weight),
            grid: below(samples * map * LARGEST_WEIGHT),
            normal: below(voxels * samples * map * map * weight),
            q: samples * weight < T::LARGEST / INSIDE,
        }
    }
}

impl<T: Real> State<T> {
    /// Has `work` write the caller's output whole or not at all, though it is interrupted.
    fn write_atomically(
        &self,
        out: Sink<'_, Complex<T>>,
        work: impl FnOnce(Sink<'_, Complex<T>>) -> Result<()>,
    ) -> Result<()> {
        match out {
            _ if self.fixed.options.interrupt.is_none() || !self.fixed.parts => work(out),
            Sink::Host(host) => self.apart(host, |own| work(own.into())),
            Sink::Device(_) => {
                interrupt::check("a transform")?;
                let _none = ActiveInterrupt::new(None);
                work(out)
            }
        }
    }

    /// Has `work` make the caller's output of the caller's input, which is checked. Where numbers of the input are
    /// beyond `limit`, the output could overflow: then the caller gets it only when it did not.
    fn guarded(
        &self,
        (what, input, limit): (&str, Source<'_, Complex<T>>, T),
        (result, out): (&str, Sink<'_, Complex<T>>),
        work: impl Fn(Sink<'_, Complex<T>>) -> Result<()>,
    ) -> Result<()> {
        if check_below(what, limit, |limit| self.engine.first_exceeding(input, limit))? {
            return self.write_atomically(out, work);
        }
        match out {
            Sink::Host(host) => self.apart(host, |own| {
                work(own.into())?;
                check_results(result, own)
            }),
            // Computed once to be looked at, and once more in place.
            Sink::Device(_) => {
                let mut trial = Aligned::zeros(out.len(), "a result that may overflow")?;
                work((&mut trial[..]).into())?;
                check_results(result, &trial)?;
                self.write_atomically(out, work)
            }
        }
    }

    /// Has `work` write an array in place of the caller's, which gets it when all of it is there.
    fn apart(&self, out: &mut [Complex<T>], work: impl FnOnce(&mut [Complex<T>]) -> Result<()>) -> Result<()> {
        let what = "the output of a call that can be interrupted";
        self.engine.check_memory(size_of_val(out), what)?;
        let mut own = Aligned::zeros(out.len(), what)?;
        work(&mut own)?;
        out.copy_from_slice(&own);
        Ok(())
    }

    /// The absolute lambda of the discrepancy principle, for all images together.
    fn lambda_of_noise(
        &self,
        kspace: Source<'_, Complex<T>>,
        options: &CgOptions<'_, T>,
        progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<f64> {
        let Source::Host(data) = kspace else {
            bail!(
                Unsupported,
                "lambda is found from the noise level for data in the host's memory only: find it there once, and give \
                 lambda for data on the GPU"
            );
        };
        if self.limits.largest.weight.is_some() {
            bail!(
                Unsupported,
                "lambda is found from the noise level by plans without density weights only, as noise is the same in \
                 all samples: make the plan without, or give lambda"
            );
        }
        let what = "the search for lambda";
        let complex = size_of::<Complex<T>>();
        self.engine.check_memory((self.fixed.image_len() + 2 * data.len()) * complex, what)?;
        let mut image = try_vec(self.fixed.image_len(), Complex::default(), what)?;
        let mut model = try_vec(data.len(), Complex::default(), what)?;
        let noise = try_collect(data.len(), what, white_noise(1.0, 0).take(data.len()).map(narrow))?;
        let mean = self.engine.mean_diagonal()?;
        let mut distance = |data: &[Complex<T>], lambda: f64| -> Result<f64> {
            let options = CgOptions { lambda: lambda * mean, lambda_unit: LambdaUnit::Absolute, ..*options };
            let mut report = CgReport::default();
            self.engine.cg(data.into(), (&mut image[..]).into(), &options, &mut report, progress)?;
            self.engine.forward((&image[..]).into(), (&mut model[..]).into())?;
            let square = |(m, d): (&Complex<T>, &Complex<T>)| (wide(*m) - wide(*d)).norm_sqr();
            Ok(model.iter().zip(data).map(square).sum())
        };
        let floor = discrepancy::MisfitFloor {
            data: distance(data, discrepancy::MisfitFloor::LAMBDA)?,
            noise: distance(&noise, discrepancy::MisfitFloor::LAMBDA)?,
            samples: data.len(),
        };
        let sought = floor.target(options.noise_level)?;
        let level = options.noise_level;
        let (relative, reached) = discrepancy::lambda(level, |lambda| Ok(distance(data, lambda)? / sought))?;
        floor.warn(level, reached, options.iterations)?;
        log::info!("lambda {relative:.4} by a noise level of {}", options.noise_level);
        Ok(relative * mean)
    }

    fn kspace_len(&self) -> usize {
        self.samples * self.fixed.coils * self.fixed.frames
    }

    fn check_kspace_len(&self, len: usize) -> Result<()> {
        check_len("k-space samples", len, self.kspace_len(), "samples times coils times frames")
    }

    fn check_kspace(&self, kspace: Source<'_, Complex<T>>) -> Result<()> {
        self.check_kspace_len(kspace.len())?;
        check_below(SAMPLE, T::of(f64::INFINITY), |limit| self.engine.first_exceeding(kspace, limit)).map(|_| ())
    }

    fn check_image_len(&self, len: usize) -> Result<()> {
        check_len("image voxels", len, self.fixed.image_len(), "voxels times images times frames")
    }
}

impl<T: Real> Plan<T> {
    /// Checks the geometry, chooses window and grid, and sorts the samples.
    ///
    /// # Errors
    /// As [`Geometry::check`]; `ToleranceOutOfRange` when the window cannot reach the tolerance; `InvalidArgument` for
    /// a width or an oversampling that no window has, or that is named for exact sums; `NoDevice` for a GPU that is not
    /// there, `DriverIncomplete` for one whose kernels cannot be compiled; `MemoryLimit` with the bytes needed;
    /// `Unsupported` for a list of voxels with method nufft, for a field map so steep that it takes more than 128
    /// segments, and for a vector unit that this processor lacks;
    /// `UnknownValue` for an environment variable `RECON_SIMD` that names none.
    pub fn new(geometry: &Geometry<'_, T>, options: &Options) -> Result<Self> {
        Plan::logged(log::Level::Info, true, geometry, options)
    }

    /// [`Plan::new`] for calibration data, from which [`Plan::coil_maps`] estimates maps. Does not warn that k reaches
    /// less far than the image's size suggests ([`WarningKind::Extent`]): maps need the centre of k-space only.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn for_coil_maps(geometry: &Geometry<'_, T>, options: &Options) -> Result<Self> {
        Plan::logged(log::Level::Info, false, geometry, options)
    }

    /// [`Plan::new`] for a step of something larger, which the log tells to those who want everything.
    pub(crate) fn of_step(geometry: &Geometry<'_, T>, options: &Options) -> Result<Self> {
        Plan::logged(log::Level::Debug, true, geometry, options)
    }

    fn logged(level: log::Level, warn_of_extent: bool, geometry: &Geometry<'_, T>, options: &Options) -> Result<Self> {
        let started = Instant::now();
        let _mode = FloatMode::standard();
        let _interrupt = ActiveInterrupt::new(options.interrupt.clone());
        geometry.check_sizes()?;
        // Coordinates and weights, which every plan keeps: those of billions take a minute to be read.
        let arrays = geometry.dims.len() + usize::from(geometry.weights.is_some());
        check_available(product(&[arrays, geometry.samples(), size_of::<T>()]), "the trajectory")?;
        let (engine, InputRanges { coordinates: ranges, weight, map }) = making::engine(geometry, options)?;
        let info = PlanInfo { seconds: started.elapsed().as_secs_f64(), ..engine.info() };
        let fixed = Fixed::new(geometry, options, info.method);
        let largest = Largest { weight, map: map.unwrap_or(1.0) };
        let state = State {
            samples: geometry.samples(),
            seconds: info.seconds,
            warnings: geometry
                .extent_warning(&ranges)
                .filter(|_| warn_of_extent)
                .into_iter()
                .chain(tolerance_warning(&info, options))
                .chain(time_warning(geometry))
                .chain(engine.warning())
                .collect(),
            limits: Limits::new(&fixed, geometry.samples(), largest),
            engine,
            fixed: Arc::new(fixed),
        };
        state.warnings.iter().for_each(|warning| log::warn!("{warning}"));
        log::log!(
            level,
            "plan: {} on {} ({} threads, {}), {} window of width {}, oversampling {:.3}, grid {:?}, {} segments, {} \
             nodes, error {:.1e}, {} bytes, {:.1} ms",
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
            1e3 * info.seconds
        );
        Ok(Plan { state: Mutex::new(Arc::new(state)) })
    }

    /// Bytes that a plan of a scan of these sizes and its operations take, before it is made: upper estimates, for a
    /// plan on the CPU within a fifth of the peaks where these are beyond some MiB. The caller's arrays are not
    /// counted, nor what the driver of a GPU takes for itself.
    ///
    /// Window, grid and device are chosen as [`Plan::new`] does, which needs the plan's threads for a moment, or the
    /// GPU.
    ///
    /// # Errors
    /// `InvalidSize` and `SizeOverflow` for sizes that make no sense; those of [`Plan::new`] for options, but for
    /// `MemoryLimit`: a limit is heeded only where it decides what a plan does.
    pub fn memory(size: &ScanSize, options: &Options) -> Result<Memory> {
        let _mode = FloatMode::standard();
        size.check()?;
        making::memory::<T>(size, options)
    }

    fn lock(&self) -> MutexGuard<'_, Arc<State<T>>> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// What operations begin with now.
    fn now(&self) -> Arc<State<T>> {
        self.lock().clone()
    }

    /// Begins a call of an operation.
    fn begin(&self) -> Call<T> {
        let state = self.now();
        Call {
            done: false,
            _interrupt: ActiveInterrupt::new(state.fixed.options.interrupt.clone()),
            _mode: FloatMode::standard(),
            state,
        }
    }

    /// What the plan is.
    pub fn info(&self) -> PlanInfo {
        let now = self.now();
        PlanInfo { seconds: now.seconds, ..now.engine.info() }
    }

    /// What may make its images other than those wanted: [`crate::WarningKind`] tells of what there are. Each was also
    /// logged when the plan was made, or when a change of the plan brought the first of its kind.
    pub fn warnings(&self) -> Vec<Warning> {
        self.now().warnings.clone()
    }

    /// Elements of an image array.
    pub fn image_len(&self) -> usize {
        self.now().fixed.image_len()
    }

    /// Elements of a k-space array.
    pub fn kspace_len(&self) -> usize {
        self.now().kspace_len()
    }

    /// Samples of one coil and frame.
    pub fn samples(&self) -> usize {
        self.now().samples
    }

    /// Gives the plan another trajectory, with its weights where the plan has some, and other coil maps where the
    /// geometry has some: without, the plan's stay. This costs little beside sorting the samples. Threads, window and
    /// its correction, tables, grids and buffers stay, unless another number of samples makes another window or grid
    /// the better choice. What had been made of the old trajectory is forgotten: Q, also where it was loaded, and the
    /// weights that [`Plan::grid`] computes.
    ///
    /// Results have the same bits as those of a new plan of this geometry and these options.
    ///
    /// ```
    /// use recon::trajectory::SpokeOrder;
    /// use recon::{Complex, Geometry, Options, Plan, Trajectory};
    ///
    /// // Real time: every frame has spokes of its own.
    /// let all = Trajectory::radial2d(3 * 34, 128, SpokeOrder::GoldenAngle)?;
    /// let (kx, ky) = (all.axis_as::<f32>(0), all.axis_as::<f32>(1));
    /// let frames: Vec<_> = kx.chunks_exact(34 * 128).zip(ky.chunks_exact(34 * 128)).collect();
    /// let geometry = |i: usize| Geometry::new(&[64, 64], &[frames[i].0, frames[i].1]);
    ///
    /// let plan = Plan::new(&geometry(0), &Options::default())?;
    /// let kspace = vec![Complex::new(1.0, 0.0); plan.kspace_len()];
    /// let mut image = vec![Complex::default(); plan.image_len()];
    /// for i in 0..frames.len() {
    ///     plan.set_trajectory(&geometry(i))?;
    ///     plan.adjoint(&kspace, &mut image)?;
    /// }
    /// # Ok::<(), recon::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Plan::new`] for numbers and memory. The old samples and the new ones are there together until the change is
    /// made: `MemoryLimit` counts both, but not what calls under way keep of earlier changes. `SizeMismatch` and
    /// `InvalidArgument` where the geometry has another image, list of voxels, voxel basis, number of coils or of
    /// frames, coil maps where the plan has none, or no weights where it has some: [`Plan::set_weights`] takes these
    /// away. A plan with a field map or a decay map wants it again, which may have other numbers, and the times of the
    /// new samples. The plan is as it was then.
    pub fn set_trajectory(&self, geometry: &Geometry<'_, T>) -> Result<()> {
        let started = Instant::now();
        let call = self.begin();
        geometry.check_sizes()?;
        call.fixed.check_same(geometry)?;
        let workers = call.engine.workers();
        let InputRanges { coordinates: ranges, weight, map } = geometry.check_numbers(workers)?;
        interrupt::check(CHANGING)?;
        let within = geometry.coordinates_within(workers, &ranges)?;
        let geometry = &Geometry { coordinates: within.iter().map(|k| &k[..]).collect(), ..geometry.clone() };
        self.change(call, started, |now| {
            if now.limits.largest.weight.is_some() && weight.is_none() {
                bail!(
                    InvalidArgument,
                    "the plan has density weights, the new trajectory comes without: give its weights in the geometry, \
                     or take the plan's away first, by setting none"
                );
            }
            let options = &now.fixed.options;
            let engine = now.engine.changed(Change::Trajectory(geometry), options)?;
            let tolerance = tolerance_warning(&engine.info(), options);
            let warnings = geometry.extent_warning(&ranges).into_iter().chain(tolerance).chain(time_warning(geometry));
            let warnings = warnings.chain(engine.warning()).collect();
            let map = map.unwrap_or(now.limits.largest.map);
            Ok((engine, geometry.samples(), warnings, Largest { weight, map }))
        })
    }

    /// Gives the plan other weights of [samples], or none. What had been made of the old ones is forgotten. The samples
    /// stay sorted.
    ///
    /// # Errors
    /// As [`Plan::set_trajectory`]; `SizeMismatch` for another number of weights than samples.
    pub fn set_weights(&self, weights: Option<&[T]>) -> Result<()> {
        let started = Instant::now();
        let call = self.begin();
        weights.map_or(Ok(()), |w| check_weight_count(w.len(), call.samples))?;
        let weight = weights.map(|w| check_weights(call.engine.workers(), w)).transpose()?;
        self.change(call, started, |now| {
            // The trajectory may have become another one meanwhile.
            weights.map_or(Ok(()), |w| check_weight_count(w.len(), now.samples))?;
            let engine = now.engine.changed(Change::Weights(weights), &now.fixed.options)?;
            Ok((engine, now.samples, now.warnings.clone(), Largest { weight, ..now.limits.largest }))
        })
    }

    /// Gives the plan other coil maps, [nx, ny, nz, coils]. All else stays, Q among it.
    ///
    /// # Errors
    /// As [`Plan::set_trajectory`]; `SizeMismatch` for maps of another length; `InvalidArgument` where the plan was
    /// made without maps, and where they see voxels whose off-resonance or decay is beyond what the maps before saw.
    pub fn set_coil_maps(&self, maps: &[Complex<T>]) -> Result<()> {
        let started = Instant::now();
        let call = self.begin();
        call.fixed.check_combined()?;
        check_map_len(maps.len(), call.fixed.voxels * call.fixed.coils)?;
        let map = check_coil_maps(call.engine.workers(), maps)?;
        self.change(call, started, |now| {
            let engine = now.engine.changed(Change::CoilMaps(maps), &now.fixed.options)?;
            Ok((engine, now.samples, now.warnings.clone(), Largest { map, ..now.limits.largest }))
        })
    }

    /// Puts another state in the present one's place: `make` makes its engine, its number of samples, its warnings and
    /// its largest numbers of the present one. Where another change comes first, the new state is made again, of what
    /// that one made. So no change is lost, and none waits for another, which may be one in a callback further up.
    fn change(
        &self,
        mut call: Call<T>,
        started: Instant,
        make: impl Fn(&State<T>) -> Result<(Box<dyn Engine<T>>, usize, Vec<Warning>, Largest)>,
    ) -> Result<()> {
        loop {
            let now = &call.state;
            let (engine, samples, warnings, largest) = make(now)?;
            let seconds = started.elapsed().as_secs_f64();
            let (fixed, limits) = (now.fixed.clone(), Limits::new(&now.fixed, samples, largest));
            let made = Arc::new(State { engine, fixed, samples, seconds, warnings, limits });
            let mut slot = self.lock();
            if Arc::ptr_eq(&slot, now) {
                // What nobody uses any more is given back when `call` goes, and the lock has gone.
                *slot = made.clone();
                drop(slot);
                let is_new = |warning: &&Warning| call.warnings.iter().all(|before| before.kind != warning.kind);
                made.warnings.iter().filter(is_new).for_each(|warning| log::warn!("{warning}"));
                log::debug!("plan changed in {:.2} ms", 1e3 * seconds);
                return call.done(());
            }
            let newer = slot.clone();
            drop(slot);
            call.state = newer;
        }
    }

    /// kspace = E image: what the scanner would measure.
    ///
    /// # Errors
    /// `SizeMismatch` for a wrong length, `NotFinite` for a NaN or infinity in the image, with its index, and for
    /// results that overflow.
    pub fn forward<'a>(
        &self,
        image: impl Into<Source<'a, Complex<T>>>,
        kspace: impl Into<Sink<'a, Complex<T>>>,
    ) -> Result<()> {
        let (image, kspace) = (image.into(), kspace.into());
        let call = self.begin();
        call.check_image_len(image.len())?;
        call.check_kspace_len(kspace.len())?;
        let forward = |kspace: Sink<'_, Complex<T>>| call.engine.forward(image, kspace);
        call.guarded((VOXEL, image, call.limits.forward), (SAMPLE, kspace), forward)?;
        call.done(())
    }

    /// image = E^H kspace, unscaled and without weights: F^H d of Stone et al. 2008.
    ///
    /// # Errors
    /// `SizeMismatch` for a wrong length, `NotFinite` for a NaN or infinity in the data, with its index, and for
    /// results that overflow.
    pub fn adjoint<'a>(
        &self,
        kspace: impl Into<Source<'a, Complex<T>>>,
        image: impl Into<Sink<'a, Complex<T>>>,
    ) -> Result<()> {
        self.to_images(Weighting::None, kspace.into(), image.into())
    }

    /// image = E^H W kspace, W being the density weights (1 where none were given).
    ///
    /// # Errors
    /// As [`Plan::adjoint`].
    pub fn weighted_adjoint<'a>(
        &self,
        kspace: impl Into<Source<'a, Complex<T>>>,
        image: impl Into<Sink<'a, Complex<T>>>,
    ) -> Result<()> {
        self.to_images(Weighting::Given, kspace.into(), image.into())
    }

    /// The gridding reconstruction: the adjoint of density-compensated data, scaled so that a fully sampled object
    /// comes back at its own scale. Without weights in the geometry those of Pipe and Menon are computed, once.
    ///
    /// # Errors
    /// As [`Plan::adjoint`]; `InvalidArgument` when no sample with a positive weight lies near the centre of k-space
    /// (an annulus), where the scale of the image is decided, or when one weight outweighs all others.
    pub fn grid<'a>(
        &self,
        kspace: impl Into<Source<'a, Complex<T>>>,
        image: impl Into<Sink<'a, Complex<T>>>,
    ) -> Result<()> {
        self.to_images(Weighting::Gridding, kspace.into(), image.into())
    }

    /// Filtered backprojection of 2D radial data, at any angles: each spoke is multiplied by the ramp |k| and the
    /// filter's window, transformed to positions along its line, and added to every voxel by linear interpolation
    /// (Schiwietz et al. 2006). Spokes are recognised from the trajectory, whose samples must be in the order of
    /// acquisition; each sample is weighed by the area of k-space that it stands for, whatever the angles, so that an
    /// object comes back at its own scale, as with [`Plan::grid`]. The geometry's weights are not used. It is gridding
    /// with another interpolation, which is worse near the edge of k-space; [`Plan::grid`] is the faster one.
    ///
    /// # Errors
    /// As [`Plan::adjoint`]; `Unsupported` in 3D and for a list of voxels; `InvalidArgument` for samples that are not
    /// even spokes of one length through the centre of k-space, and where these leave a sector of it unmeasured.
    pub fn fbp<'a>(
        &self,
        filter: Filter,
        kspace: impl Into<Source<'a, Complex<T>>>,
        image: impl Into<Sink<'a, Complex<T>>>,
    ) -> Result<()> {
        self.to_images(Weighting::Backprojection(filter), kspace.into(), image.into())
    }

    /// The gridding reconstruction stopped at gridded k-space: [gx, gy, gz, coils, frames] of the oversampled grid
    /// ([`PlanInfo::grid`]) with k = 0 in cell floor(g/2). The image is its sum over cells u of
    /// grid(u) exp(+i 2 pi u.r / g), times [`Plan::window_correction`] of each axis.
    ///
    /// # Errors
    /// As [`Plan::grid`]; `Unsupported` with method exact, which has no grid.
    pub fn grid_kspace(&self, kspace: &[Complex<T>], grid: &mut [Complex<T>]) -> Result<()> {
        let call = self.begin();
        call.check_kspace(kspace.into())?;
        let info = call.engine.info();
        if info.grid.is_empty() {
            bail!(Unsupported, "there is no grid with method exact: create the plan with method nufft");
        }
        let cells: usize = info.grid.iter().product();
        let arrays = kspace.len() / call.samples;
        let needed = checked_product(&[cells, arrays], "the gridded k-space")?;
        check_len("cells of gridded k-space", grid.len(), needed, "the plan's grid times coils and frames")?;
        let mut result = try_vec(grid.len(), Complex::default(), "the gridded k-space")?;
        for (i, values) in kspace.chunks_exact(call.samples).enumerate() {
            interrupt::check("gridding")?;
            call.engine.grid_kspace(values, &mut result[i * cells..(i + 1) * cells])?;
        }
        check_results("cell of gridded k-space", &result)?;
        grid.copy_from_slice(&result);
        call.done(())
    }

    /// The factors along an axis by which an image is multiplied after the FFT of gridded k-space: [n], empty with
    /// exact sums.
    ///
    /// # Errors
    /// `OutOfHostMemory`.
    pub fn window_correction(&self, axis: usize) -> Result<Vec<f64>> {
        self.now().engine.window_correction(axis)
    }

    fn to_images(
        &self,
        weighting: Weighting,
        kspace: Source<'_, Complex<T>>,
        image: Sink<'_, Complex<T>>,
    ) -> Result<()> {
        let call = self.begin();
        call.check_image_len(image.len())?;
        call.check_kspace_len(kspace.len())?;
        let limit = match weighting {
            Weighting::None | Weighting::Given => call.limits.adjoint,
            Weighting::Gridding | Weighting::Backprojection(_) => call.limits.grid,
        };
        let adjoint = |image: Sink<'_, Complex<T>>| call.engine.adjoint(weighting, kspace, image);
        call.guarded((SAMPLE, kspace, limit), (VOXEL, image), adjoint)?;
        call.done(())
    }

    /// y = E^H W E x, for images as [`Plan::adjoint`] makes them.
    ///
    /// # Errors
    /// `SizeMismatch` for a wrong length, `NotFinite` for a NaN or infinity in x, with its index, and for results that
    /// overflow.
    pub fn normal<'a>(&self, x: impl Into<Source<'a, Complex<T>>>, y: impl Into<Sink<'a, Complex<T>>>) -> Result<()> {
        let (x, y) = (x.into(), y.into());
        let call = self.begin();
        call.check_image_len(x.len())?;
        call.check_image_len(y.len())?;
        call.engine.prepare_normal()?;
        call.guarded((VOXEL, x, call.limits.normal), (VOXEL, y), |y| call.engine.normal(x, y))?;
        call.done(())
    }

    /// Elements of Q: 2 nx 2 ny 2 nz, or as many as voxels in a list.
    pub fn q_len(&self) -> usize {
        self.now().fixed.q_len()
    }

    /// Q(delta) = sum_m w_m |phi(k_m)|^2 exp(+i 2 pi k_m.delta), [2 nx, 2 ny, 2 nz] with displacement delta at index
    /// delta + n; for a list of voxels, at the positions listed.
    ///
    /// # Errors
    /// `SizeMismatch` for a wrong length.
    pub fn q(&self, q: &mut [Complex<T>]) -> Result<()> {
        let call = self.begin();
        check_len("elements of Q", q.len(), call.fixed.q_len(), "2 nx times 2 ny times 2 nz, or the voxels listed")?;
        if call.fixed.options.interrupt.is_none() && call.limits.q {
            call.engine.q(q)?;
        } else {
            call.apart(q, |q| {
                call.engine.q(q)?;
                check_results("element of Q", q)
            })?;
        }
        call.done(())
    }

    /// Saves Q, as [`Plan::normal`] and [`Plan::cg`] use it, for plans of the same geometry in other sessions. A link
    /// is followed; a device or a fifo is written into.
    ///
    /// # Errors
    /// `IO` when the file cannot be written (the name has what it had before), `Unsupported` when the plan does not use
    /// Q.
    pub fn save_q(&self, path: impl AsRef<Path>) -> Result<()> {
        write_atomically(|files| self.save_q_among(files, path.as_ref()))
    }

    /// As [`Plan::save_q`]; the file appears together with others.
    #[doc(hidden)]
    pub fn save_q_among(&self, files: &mut AtomicFiles, path: &Path) -> Result<()> {
        let call = self.begin();
        call.engine.save_q(files, path).map_err(|e| e.within("could not save Q"))?;
        call.done(())
    }

    /// Loads Q in place of computing it.
    ///
    /// # Errors
    /// `IO` when the file cannot be read; `BadFile` when it is cut short, damaged, longer than it should be, or belongs
    /// to another geometry.
    pub fn load_q(&self, path: impl AsRef<Path>) -> Result<()> {
        let call = self.begin();
        call.engine.load_q(path.as_ref())?;
        call.done(())
    }

    /// Solves (E^H W E + lambda R^H R) x = E^H W d by conjugate gradients, each image on its own.
    ///
    /// Many iterations without a prior amplify errors of E^H d where k-space was not sampled: a plan for them should
    /// have the default tolerance or less.
    ///
    /// # Errors
    /// As [`Plan::adjoint`]; `InvalidArgument`, `ToleranceOutOfRange` and `SizeMismatch` for options that make no
    /// sense; `NotFinite` on overflow. The image is not touched then.
    pub fn cg<'a>(
        &self,
        kspace: impl Into<Source<'a, Complex<T>>>,
        image: impl Into<Sink<'a, Complex<T>>>,
        options: &CgOptions<'_, T>,
    ) -> Result<CgReport> {
        self.cg_with_progress(kspace, image, options, |_| ControlFlow::Continue(()))
    }

    /// [`Plan::cg`], calling `progress` before the first and after each iteration.
    ///
    /// # Errors
    /// Also `Cancelled` when `progress` breaks; the image is not touched then. In a call that [`Options::interrupt`]
    /// ends `progress` is not called any more.
    pub fn cg_with_progress<'a>(
        &self,
        kspace: impl Into<Source<'a, Complex<T>>>,
        image: impl Into<Sink<'a, Complex<T>>>,
        options: &CgOptions<'_, T>,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<CgReport> {
        let (kspace, image) = (kspace.into(), image.into());
        let call = self.begin();
        call.check_image_len(image.len())?;
        call.check_kspace(kspace)?;
        cg::check(options)?;
        if let Some(initial) = options.initial {
            check_len(
                "voxels of the initial image",
                initial.len(),
                call.fixed.image_len(),
                "as many as the result has",
            )?;
            check_finite("voxel of the initial image", initial)?;
        }
        let started = Instant::now();
        call.engine.prepare_normal()?;
        let mut report = CgReport { q_seconds: started.elapsed().as_secs_f64(), ..CgReport::default() };
        report.lambda = match options.lambda_unit {
            _ if options.noise_level > 0.0 => call.lambda_of_noise(kspace, options, &mut progress)?,
            LambdaUnit::Relative if options.lambda > 0.0 => options.lambda * call.engine.mean_diagonal()?,
            _ => options.lambda,
        };
        check_result("lambda", report.lambda)?;
        let options = CgOptions { lambda: report.lambda, lambda_unit: LambdaUnit::Absolute, ..*options };
        call.engine.cg(kspace, image, &options, &mut report, &mut progress)?;
        call.done(report)
    }

    /// Density weights for this trajectory, [samples].
    ///
    /// # Errors
    /// `InvalidArgument` for parameters that make no sense.
    pub fn density(&self, method: Density) -> Result<Vec<T>> {
        let call = self.begin();
        let weights = call.engine.density(method, None)?;
        check_results("density weight", &weights)?;
        call.done(weights)
    }

    /// As [`Plan::density`]; those of Pipe and Menon begin with `start`, positive numbers, [samples]: samples in one
    /// place keep the ratios of what they began with.
    pub(crate) fn density_from(&self, method: Density, start: &[T]) -> Result<Vec<T>> {
        let call = self.begin();
        check_len("weights to begin with", start.len(), call.samples, "one a sample")?;
        let weights = call.engine.density(method, Some(start))?;
        check_results("density weight", &weights)?;
        call.done(weights)
    }

    /// Coil sensitivities estimated from the data's own centre of k-space, [nx, ny, nz, coils]: see [`coils`], also for
    /// where the estimate fails.
    /// `calibration` is the width of that centre in samples of a Cartesian scan; 0 for the default.
    ///
    /// # Errors
    /// As [`Plan::adjoint`]; `Unsupported` for a list of voxels; `InvalidArgument` when there are no samples in the
    /// centre.
    pub fn coil_maps(&self, kspace: &[Complex<T>], calibration: usize) -> Result<Vec<Complex<T>>> {
        let call = self.begin();
        call.check_kspace(kspace.into())?;
        let maps = call.engine.coil_maps(kspace, call.fixed.frames, calibration)?;
        check_results("coil sensitivity", &maps)?;
        call.done(maps)
    }
}
