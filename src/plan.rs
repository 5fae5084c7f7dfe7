//! The way in: a plan holds everything that depends on the trajectory, and offers every operation on the caller's
//! arrays.

use crate::backend::cpu::memory::Aligned;
use crate::backend::{Sink, Source};
use crate::base::atomic_file::{whole, AtomicFiles};
use crate::base::defaults;
use crate::base::error::{bail, checked_product, try_reserve, try_vec, Result};
use crate::base::float_mode::FloatMode;
use crate::base::geometry::{check_below, check_finite, check_len, check_overflow, first_beyond, Geometry};
use crate::base::interrupt::{self, ActiveInterrupt, Interrupt};
use crate::base::options::{LambdaUnit, Method, Options, Window};
use crate::base::real::Real;
use crate::base::scan_size::ScanSize;
use crate::base::warning::{Warning, WarningKind};
use crate::engine::interface::{Engine, PlanInfo, MAKING};
use crate::engine::making;
use crate::engine::memory::Memory;
use crate::reconstruction::cg::{self, CgOptions, CgReport, Progress};
use crate::reconstruction::density::{Density, Weighting};
use crate::reconstruction::gridding_scale::LARGEST_WEIGHT;
use num_complex::Complex;
use std::ops::ControlFlow;
use std::path::Path;
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
/// Arrays are slices and vectors, or [`Source::device`] and [`Sink::device`] where the plan is on a GPU and so are
/// they.
pub struct Plan<T: Real> {
    engine: Box<dyn Engine<T>>,
    interrupt: Option<Interrupt>,
    /// A transform writes its output in several parts, between which it can be interrupted.
    parts: bool,
    frames: usize,
    sizes: Sizes,
    seconds: f64,
    warnings: Vec<Warning>,
    limits: Limits<T>,
}

/// Elements of the caller's arrays.
struct Sizes {
    samples: usize,
    coils: usize,
    /// Voxels of the images of one frame.
    image: usize,
    q: usize,
}

impl Sizes {
    fn new<T: Real>(geometry: &Geometry<'_, T>) -> Self {
        let (voxels, images) = (geometry.voxel_count(), if geometry.coil_maps.is_some() { 1 } else { geometry.coils });
        Sizes {
            samples: geometry.samples(),
            coils: geometry.coils,
            image: voxels * images,
            q: voxels << if geometry.voxels.is_some() { 0 } else { geometry.dims.len() },
        }
    }
}

/// Where the default tolerance is not kept, what is.
fn tolerance_warning(info: &PlanInfo, options: &Options) -> Option<Warning> {
    (options.tolerance == 0.0 && info.error > defaults::TOLERANCE).then(|| Warning {
        kind: WarningKind::Tolerance,
        message: format!(
            "transforms err by {:.1e}, and not by the default tolerance of {:.0e}: the {} window reaches no less \
             here. Use the minimax window or double precision, or name a tolerance that will do",
            info.error,
            defaults::TOLERANCE,
            info.window.map_or("", Window::name)
        ),
    })
}

/// A call under way: in the standard floating-point mode, and asking the caller's function whether to go on.
struct Call<'p, T: Real> {
    plan: &'p Plan<T>,
    done: bool,
    _interrupt: ActiveInterrupt,
    _mode: FloatMode,
}

impl<T: Real> Call<'_, T> {
    /// The call's result.
    fn done<R>(mut self, result: R) -> Result<R> {
        self.done = true;
        Ok(result)
    }
}

impl<T: Real> Drop for Call<'_, T> {
    fn drop(&mut self) {
        if !self.done {
            // What a GPU was asked for may still be reading the caller's arrays. How that ends is of no interest any
            // more.
            let _ = self.plan.engine.wait();
        }
    }
}

/// Numbers below these cannot make a result of an operation overflow. Results of larger ones are computed apart and
/// looked at before the caller gets them.
struct Limits<T> {
    forward: T,
    adjoint: T,
    grid: T,
    normal: T,
    /// Q is made of the weights alone: no other number of the caller comes in.
    q: bool,
}

impl<T: Real> Limits<T> {
    fn new(geometry: &Geometry<'_, T>) -> Self {
        // What window, transform and correction can make of a number in between: their sums' lengths are counted apart.
        const INSIDE: f64 = 1e10;
        let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(1.0, f64::max);
        let w = geometry.weights.map_or(1.0, |w| largest(&mut w.iter().map(|w| w.wide())));
        let maps = geometry.coil_maps.map_or(1.0, |maps| {
            // One look is enough for maps as they are; only odd ones are measured.
            const USUAL: f64 = 1e3;
            match first_beyond(maps, T::of(USUAL)) {
                None => USUAL,
                Some(_) => largest(&mut maps.iter().map(|s| s.re.wide().abs().max(s.im.wide().abs()))),
            }
        });
        let samples = (geometry.samples() * geometry.coils) as f64;
        let voxels = geometry.voxel_count() as f64;
        let below = |gain: f64| T::of(T::LARGEST / INSIDE / gain);
        Limits {
            forward: below(voxels * maps),
            adjoint: below(samples * maps * w),
            grid: below(samples * maps * LARGEST_WEIGHT),
            normal: below(voxels * samples * maps * maps * w),
            q: samples * w < T::LARGEST / INSIDE,
        }
    }
}

impl<T: Real> Plan<T> {
    /// Checks the geometry, chooses window and grid, and sorts the samples.
    ///
    /// # Errors
    /// As [`Geometry::check`]; `ToleranceOutOfRange` when the window cannot reach the tolerance; `NoDevice` for a GPU
    /// that is not there, `DriverIncomplete` for one whose kernels cannot be compiled; `MemoryLimit` with the bytes
    /// needed; `Unsupported` for a list of voxels with method nufft, and for a vector unit that this processor lacks;
    /// `UnknownValue` for an environment variable `RECON_SIMD` that names none.
    pub fn new(geometry: &Geometry<'_, T>, options: &Options) -> Result<Self> {
        let started = Instant::now();
        let _mode = FloatMode::standard();
        let _interrupt = ActiveInterrupt::new(options.interrupt.clone());
        geometry.check_sizes()?;
        Self::check_fits(geometry, options)?;
        let ends = geometry.checked_ends()?;
        interrupt::check(MAKING)?;
        let within = geometry.coordinates_within(&ends)?;
        let geometry = &Geometry { coordinates: within.iter().map(|k| &k[..]).collect(), ..geometry.clone() };
        log::debug!("geometry checked in {:.2} ms", 1e3 * started.elapsed().as_secs_f64());
        let engine = making::engine(geometry, options)?;
        let info = PlanInfo { seconds: started.elapsed().as_secs_f64(), ..engine.info() };
        let plan = Plan {
            engine,
            interrupt: options.interrupt.clone(),
            parts: info.method == Method::Exact
                || geometry.coil_maps.is_some()
                || geometry.coils.max(geometry.frames) > 1,
            frames: geometry.frames,
            sizes: Sizes::new(geometry),
            seconds: info.seconds,
            warnings: geometry.extent_warning(&ends).into_iter().chain(tolerance_warning(&info, options)).collect(),
            limits: Limits::new(geometry),
        };
        plan.warnings.iter().for_each(|warning| log::warn!("{warning}"));
        log::info!(
            "plan: {} on {} ({} threads, {}), {} window of width {}, oversampling {:.3}, grid {:?}, error {:.1e}, {} \
             bytes, {:.1} ms",
            info.method.name(),
            info.device,
            info.threads,
            info.simd,
            info.window.map_or("no", Window::name),
            info.width,
            info.oversampling,
            info.grid,
            info.error,
            info.host_bytes,
            1e3 * info.seconds
        );
        Ok(plan)
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

    /// Refuses what cannot fit before its numbers are read, which of billions takes a minute.
    fn check_fits(geometry: &Geometry<'_, T>, options: &Options) -> Result<()> {
        // Coordinates and weights, which every plan keeps.
        let kept = geometry.dims.len() + usize::from(geometry.weights.is_some());
        let least = geometry.samples().saturating_mul(kept * size_of::<T>());
        if options.memory_limit.is_some_and(|limit| limit < least) {
            // Ends in the error that names all bytes: memory is counted before anything else is done.
            making::engine(geometry, options)?;
        }
        drop(try_reserve::<u8>(least, "the trajectory")?);
        Ok(())
    }

    /// Begins a call of an operation.
    fn begin(&self) -> Call<'_, T> {
        Call {
            plan: self,
            done: false,
            _interrupt: ActiveInterrupt::new(self.interrupt.clone()),
            _mode: FloatMode::standard(),
        }
    }

    /// Has `work` write the caller's output whole or not at all, though it is interrupted.
    fn whole(&self, out: Sink<'_, Complex<T>>, work: impl FnOnce(Sink<'_, Complex<T>>) -> Result<()>) -> Result<()> {
        match out {
            _ if self.interrupt.is_none() || !self.parts => work(out),
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
        if check_below(what, limit, |limit| self.first_beyond(input, limit))? {
            return self.whole(out, work);
        }
        match out {
            Sink::Host(host) => self.apart(host, |own| {
                work(own.into())?;
                check_overflow(result, own)
            }),
            // Computed once to be looked at, and once more in place.
            Sink::Device(_) => {
                let mut trial = Aligned::zeros(out.len(), "a result that may overflow")?;
                work((&mut trial[..]).into())?;
                check_overflow(result, &trial)?;
                self.whole(out, work)
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

    /// What the plan is.
    pub fn info(&self) -> PlanInfo {
        PlanInfo { seconds: self.seconds, ..self.engine.info() }
    }

    /// What may make its images other than those wanted: [`crate::WarningKind`] tells of what there are. Each was also
    /// logged when the plan was made.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Elements of an image array.
    pub fn image_len(&self) -> usize {
        self.sizes.image * self.frames
    }

    /// Elements of a k-space array.
    pub fn kspace_len(&self) -> usize {
        self.sizes.samples * self.sizes.coils * self.frames
    }

    fn check_kspace_len(&self, len: usize) -> Result<()> {
        check_len("k-space samples", len, self.kspace_len(), "samples times coils times frames")
    }

    fn check_kspace(&self, kspace: Source<'_, Complex<T>>) -> Result<()> {
        self.check_kspace_len(kspace.len())?;
        check_below(SAMPLE, T::of(f64::INFINITY), |limit| self.first_beyond(kspace, limit)).map(|_| ())
    }

    /// The first number that is not below `limit` in magnitude, and its index, wherever the numbers are.
    fn first_beyond(&self, values: Source<'_, Complex<T>>, limit: T) -> Result<Option<(usize, Complex<T>)>> {
        match values {
            Source::Host(values) => Ok(first_beyond(values, limit)),
            Source::Device(_) => self.engine.first_beyond(values, limit),
        }
    }

    fn check_image_len(&self, len: usize) -> Result<()> {
        check_len("image voxels", len, self.image_len(), "voxels times images times frames")
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
        self.check_image_len(image.len())?;
        self.check_kspace_len(kspace.len())?;
        let forward = |kspace: Sink<'_, Complex<T>>| self.engine.forward(image, kspace);
        self.guarded((VOXEL, image, self.limits.forward), (SAMPLE, kspace), forward)?;
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
        self.to_images(kspace.into(), image.into(), self.limits.adjoint, |d, x| {
            self.engine.adjoint(Weighting::None, d, x)
        })
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
        self.to_images(kspace.into(), image.into(), self.limits.adjoint, |d, x| {
            self.engine.adjoint(Weighting::Given, d, x)
        })
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
        self.to_images(kspace.into(), image.into(), self.limits.grid, |d, x| {
            self.engine.adjoint(Weighting::Gridding, d, x)
        })
    }

    /// The gridding reconstruction stopped at gridded k-space: [gx, gy, gz, coils, frames] of the oversampled grid
    /// ([`PlanInfo::grid`]) with k = 0 in cell floor(g/2). The image is its sum over cells u of
    /// grid(u) exp(+i 2 pi u.r / g), times [`Plan::window_correction`] of each axis.
    ///
    /// # Errors
    /// As [`Plan::grid`]; `Unsupported` with method exact, which has no grid.
    pub fn grid_kspace(&self, kspace: &[Complex<T>], grid: &mut [Complex<T>]) -> Result<()> {
        let call = self.begin();
        self.check_kspace(kspace.into())?;
        let info = self.engine.info();
        if info.grid.is_empty() {
            bail!(Unsupported, "there is no grid with method exact: create the plan with method nufft");
        }
        let cells: usize = info.grid.iter().product();
        let arrays = kspace.len() / self.sizes.samples;
        let needed = checked_product(&[cells, arrays], "the gridded k-space")?;
        check_len("cells of gridded k-space", grid.len(), needed, "the plan's grid times coils and frames")?;
        let mut result = try_vec(grid.len(), Complex::default(), "the gridded k-space")?;
        for (i, values) in kspace.chunks_exact(self.sizes.samples).enumerate() {
            interrupt::check("gridding")?;
            self.engine.grid_kspace(values, &mut result[i * cells..(i + 1) * cells])?;
        }
        check_overflow("cell of gridded k-space", &result)?;
        grid.copy_from_slice(&result);
        call.done(())
    }

    /// The factors along an axis by which an image is multiplied after the FFT of gridded k-space: [n], empty with
    /// exact sums.
    ///
    /// # Errors
    /// `OutOfHostMemory`.
    pub fn window_correction(&self, axis: usize) -> Result<Vec<f64>> {
        self.engine.window_correction(axis)
    }

    fn to_images(
        &self,
        kspace: Source<'_, Complex<T>>,
        image: Sink<'_, Complex<T>>,
        limit: T,
        f: impl Fn(Source<'_, Complex<T>>, Sink<'_, Complex<T>>) -> Result<()>,
    ) -> Result<()> {
        let call = self.begin();
        self.check_image_len(image.len())?;
        self.check_kspace_len(kspace.len())?;
        self.guarded((SAMPLE, kspace, limit), (VOXEL, image), |image| f(kspace, image))?;
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
        self.check_image_len(x.len())?;
        self.check_image_len(y.len())?;
        self.engine.prepare_normal()?;
        self.guarded((VOXEL, x, self.limits.normal), (VOXEL, y), |y| self.engine.normal(x, y))?;
        call.done(())
    }

    /// Elements of Q: 2 nx 2 ny 2 nz, or as many as voxels in a list.
    pub fn q_len(&self) -> usize {
        self.sizes.q
    }

    /// Q(delta) = sum_m w_m |phi(k_m)|^2 exp(+i 2 pi k_m.delta), [2 nx, 2 ny, 2 nz] with displacement delta at index
    /// delta + n; for a list of voxels, at the positions listed.
    ///
    /// # Errors
    /// `SizeMismatch` for a wrong length.
    pub fn q(&self, q: &mut [Complex<T>]) -> Result<()> {
        let call = self.begin();
        check_len("elements of Q", q.len(), self.q_len(), "2 nx times 2 ny times 2 nz, or the voxels listed")?;
        if self.interrupt.is_none() && self.limits.q {
            self.engine.q(q)?;
        } else {
            self.apart(q, |q| {
                self.engine.q(q)?;
                check_overflow("element of Q", q)
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
        whole(|files| self.save_q_among(files, path.as_ref()))
    }

    /// As [`Plan::save_q`]; the file appears together with others.
    #[doc(hidden)]
    pub fn save_q_among(&self, files: &mut AtomicFiles, path: &Path) -> Result<()> {
        let call = self.begin();
        self.engine.save_q(files, path).map_err(|e| e.within("could not save Q"))?;
        call.done(())
    }

    /// Loads Q in place of computing it.
    ///
    /// # Errors
    /// `IO` when the file cannot be read; `BadFile` when it is cut short, damaged, longer than it should be, or belongs
    /// to another geometry.
    pub fn load_q(&self, path: impl AsRef<Path>) -> Result<()> {
        let call = self.begin();
        self.engine.load_q(path.as_ref())?;
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
        self.check_image_len(image.len())?;
        self.check_kspace(kspace)?;
        cg::check(options)?;
        if let Some(initial) = options.initial {
            check_len("voxels of the initial image", initial.len(), self.image_len(), "as many as the result has")?;
            check_finite("voxel of the initial image", initial)?;
        }
        let started = Instant::now();
        self.engine.prepare_normal()?;
        let mut report = CgReport { q_seconds: started.elapsed().as_secs_f64(), ..CgReport::default() };
        report.lambda = match options.lambda_unit {
            LambdaUnit::Relative if options.lambda > 0.0 => options.lambda * self.engine.mean_diagonal()?,
            _ => options.lambda,
        };
        let options = CgOptions { lambda: report.lambda, lambda_unit: LambdaUnit::Absolute, ..*options };
        self.engine.cg(kspace, image, &options, &mut report, &mut progress)?;
        call.done(report)
    }

    /// Density weights for this trajectory, [samples].
    ///
    /// # Errors
    /// `InvalidArgument` for parameters that make no sense.
    pub fn density(&self, method: Density) -> Result<Vec<T>> {
        let call = self.begin();
        call.done(self.engine.density(method)?)
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
        self.check_kspace(kspace.into())?;
        let maps = self.engine.coil_maps(kspace, self.frames, calibration)?;
        check_overflow("coil sensitivity", &maps)?;
        call.done(maps)
    }
}
