//! Conjugate gradients for (E^H W E + lambda R^H R) x = E^H W d (Hestenes and Stiefel 1952; Pruessmann et al., Magn.
//! Reson. Med. 46:638, 2001, for the normal equations of an MR scan).

use crate::backend::{Backend, Complexes, ComplexesMut, Deliveries, Sink, Source};
use crate::base::defaults;
use crate::base::error::{bail, try_reserve, Result};
use crate::base::interrupt;
use crate::base::options::LambdaUnit;
use crate::base::real::Real;
use crate::reconstruction::prior::{Prior, PriorOperator};
use num_complex::Complex;
use std::ops::ControlFlow;
use std::time::Instant;

/// Residuals that room is made for beforehand.
const MOST_RESIDUALS: usize = 10_000;

/// How to solve, and with what prior.
#[derive(Debug, Clone, Copy)]
pub struct CgOptions<'a, T: Real> {
    /// At most so many iterations.
    pub iterations: usize,
    /// Stop when the residual's norm falls to this part of the right-hand side's; 0 never does.
    pub tolerance: f64,
    /// Weight of the prior, 0 or more.
    pub lambda: f64,
    /// What `lambda` is relative to.
    pub lambda_unit: LambdaUnit,
    /// The prior.
    pub prior: Prior<'a, T>,
    /// Image to start from, of the result's shape; zero where not given.
    pub initial: Option<&'a [Complex<T>]>,
}

impl<T: Real> Default for CgOptions<'_, T> {
    fn default() -> Self {
        CgOptions {
            iterations: defaults::ITERATIONS,
            tolerance: defaults::RESIDUAL,
            lambda: defaults::LAMBDA,
            lambda_unit: defaults::LAMBDA_UNIT,
            prior: Prior::default(),
            initial: None,
        }
    }
}

/// Where a solution stands, for a progress callback.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// The image being solved for, and how many there are (frames, times coils without maps).
    pub image: usize,
    /// See `image`.
    pub images: usize,
    /// Iterations done, of at most `iterations`.
    pub iteration: usize,
    /// See `iteration`.
    pub iterations: usize,
    /// Norm of the residual relative to that of the right-hand side.
    pub residual: f64,
}

/// Why a solution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stop {
    /// All iterations were done.
    Iterations,
    /// The residual fell to the tolerance.
    Tolerance,
    /// The residual is zero, or no direction is left in which to improve: the solution is exact to rounding.
    Exact,
}

/// One image's solution.
#[derive(Debug, Clone, PartialEq)]
pub struct CgRun {
    /// Why it ended.
    pub stop: Stop,
    /// Relative residual before the first iteration and after each: [iterations + 1].
    pub residuals: Vec<f64>,
}

impl CgRun {
    /// Iterations done.
    pub fn iterations(&self) -> usize {
        self.residuals.len() - 1
    }
}

/// What came of a call of [`crate::Plan::cg`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CgReport {
    /// The solution of each image.
    pub runs: Vec<CgRun>,
    /// What lambda was in (E^H W E + lambda R^H R) x = E^H W d.
    pub lambda: f64,
    /// Seconds for Q (0 where it was there already, or is not used).
    pub q_seconds: f64,
    /// Seconds for E^H W d.
    pub adjoint_seconds: f64,
    /// Seconds for the iterations.
    pub iteration_seconds: f64,
}

pub(crate) fn check<T: Real>(options: &CgOptions<'_, T>) -> Result<()> {
    if !(options.lambda >= 0.0 && options.lambda.is_finite()) {
        bail!(InvalidArgument, "lambda is {}: it must be 0 or more", options.lambda);
    }
    if !(options.tolerance >= 0.0 && options.tolerance < 1.0) {
        bail!(
            ToleranceOutOfRange,
            "the residual to stop at is {}: it must be in [0, 1), 0 meaning all iterations",
            options.tolerance
        );
    }
    Ok(())
}

/// The equations that are solved: E^H W E and E^H W d of a scan, wherever its parts are computed.
pub(crate) trait System<T: Real, B: Backend<T>> {
    /// Where vectors live.
    fn b(&self) -> &B;
    /// The size of an image, which does not describe a list of voxels.
    fn dims(&self) -> &[usize];
    /// Whether voxels are a list.
    fn listed(&self) -> bool;
    /// Voxels of an image.
    fn voxels(&self) -> usize;
    /// Images of one frame.
    fn images(&self) -> usize;
    /// Samples of all coils of one frame.
    fn kspace_len(&self) -> usize;
    /// Makes Q where it is used.
    fn prepare_normal(&self) -> Result<()>;
    /// Refuses `bytes` for `what` beyond the caller's memory limit.
    fn check_memory(&self, bytes: usize, what: &str) -> Result<()>;
    /// The mean of the diagonal of E^H W E over the voxels that coils see.
    fn mean_diagonal(&self) -> Result<f64>;
    /// The images E^H W d of one frame.
    fn right_hand_side(&self, kspace: Source<'_, Complex<T>>, image: ComplexesMut<B, T>) -> Result<()>;
    /// y = E^H W E x for one image.
    fn normal(&self, x: Complexes<B, T>, y: ComplexesMut<B, T>) -> Result<()>;
}

/// y = E^H W E x for any number of images.
pub(crate) fn normal_of_images<T: Real, B: Backend<T>>(
    system: &impl System<T, B>,
    x: Source<'_, Complex<T>>,
    mut y: Sink<'_, Complex<T>>,
) -> Result<()> {
    let (b, voxels) = (system.b(), system.voxels());
    let mut deliveries = Deliveries::new(b);
    for first in (0..x.len()).step_by(voxels) {
        interrupt::check("E^H W E")?;
        let (x, mut out) = (b.input(x.part(first..first + voxels))?, b.output(y.split_off(voxels))?);
        system.normal(b.read(&x), b.write(&mut out))?;
        deliveries.push(out)?;
    }
    deliveries.finish()
}

/// Buffers of a solution.
struct Solver<'s, T: Real, B: Backend<T>, S: System<T, B>> {
    system: &'s S,
    prior: PriorOperator<T, B>,
    r: B::Array<Complex<T>>,
    p: B::Array<Complex<T>>,
    q: B::Array<Complex<T>>,
    /// <r, r>, <p, q>, the new <r, r>.
    sums: [B::Array<f64>; 3],
}

impl<'s, T: Real, B: Backend<T>, S: System<T, B>> Solver<'s, T, B, S> {
    fn new(system: &'s S, options: &CgOptions<'_, T>) -> Result<Self> {
        let b = system.b();
        let vector = || b.zeros::<Complex<T>>(system.voxels(), "a vector of conjugate gradients");
        let sum = || b.zeros::<f64>(1, "a sum");
        Ok(Solver {
            system,
            prior: PriorOperator::new(b, &options.prior, system.dims(), system.voxels(), system.listed())?,
            r: vector()?,
            p: vector()?,
            q: vector()?,
            sums: [sum()?, sum()?, sum()?],
        })
    }

    fn value(&self, i: usize) -> Result<f64> {
        let mut value = [0.0];
        self.system.b().download(self.system.b().view(&self.sums[i]), &mut value)?;
        Ok(value[0])
    }

    /// Solves for one image. `x` holds the first guess if `warm`, else whatever; `rhs` is E^H W d.
    fn solve(
        &mut self,
        options: &CgOptions<'_, T>,
        rhs: Complexes<B, T>,
        mut x: ComplexesMut<B, T>,
        warm: bool,
        progress: &mut dyn FnMut(usize, f64) -> ControlFlow<()>,
    ) -> Result<CgRun> {
        let system = self.system;
        let b = system.b();
        let dot = |x: Complexes<B, T>, out: &mut B::Array<f64>| b.dot(x, x, b.view_mut(out));

        dot(rhs, &mut self.sums[0]);
        let scale = self.value(0)?.sqrt();
        b.copy(rhs, b.view_mut(&mut self.r));
        if warm {
            system.normal(x.view(), b.view_mut(&mut self.q))?;
            if options.lambda > 0.0 {
                self.prior.add(b, options.lambda, x.view(), b.view_mut(&mut self.q));
            }
            b.axpy(-1.0, b.view(&self.q), b.view_mut(&mut self.r));
            dot(b.view(&self.r), &mut self.sums[0]);
        } else {
            b.clear(x.again());
        }
        b.copy(b.view(&self.r), b.view_mut(&mut self.p));
        let mut square = self.value(0)?;
        if !(square.is_finite() && scale.is_finite()) {
            bail!(NotFinite, "E^H W d overflows {}: scale the data or the weights down", T::NAME);
        }
        // Data of zeros have no norm to compare with.
        let scale = if scale > 0.0 { scale } else { square.sqrt() };
        let relative = |square: f64| if scale > 0.0 { square.sqrt() / scale } else { 0.0 };
        // Room for all of them, so that iterations allocate nothing; for a count that means "until it converges", some.
        let mut residuals = try_reserve(options.iterations.min(MOST_RESIDUALS) + 1, "the residuals")?;
        residuals.push(relative(square));
        let mut run = CgRun { stop: Stop::Iterations, residuals };
        if progress(0, relative(square)).is_break() {
            bail!(Cancelled, "cancelled by the progress callback before the first iteration");
        }
        for iteration in 1..=options.iterations {
            if square == 0.0 {
                run.stop = Stop::Exact;
                break;
            }
            if relative(square) <= options.tolerance {
                run.stop = Stop::Tolerance;
                break;
            }
            interrupt::check("conjugate gradients")?;
            system.normal(b.view(&self.p), b.view_mut(&mut self.q))?;
            if options.lambda > 0.0 {
                self.prior.add(b, options.lambda, b.view(&self.p), b.view_mut(&mut self.q));
            }
            let [rr, pq, rr_new] = &mut self.sums;
            b.dot(b.view(&self.p), b.view(&self.q), b.view_mut(pq));
            b.cg_step(
                b.view(rr),
                b.view(pq),
                b.view(&self.p),
                b.view(&self.q),
                x.again(),
                b.view_mut(&mut self.r),
                b.view_mut(rr_new),
            );
            b.cg_direction(b.view(rr_new), b.view(rr), b.view(&self.r), b.view_mut(&mut self.p));
            let before = square;
            self.sums.swap(0, 2);
            square = self.value(0)?;
            if !square.is_finite() {
                bail!(
                    NotFinite,
                    "the residual overflows {} in iteration {iteration}: scale the data or the weights down",
                    T::NAME
                );
            }
            if run.residuals.try_reserve(1).is_err() {
                bail!(
                    OutOfHostMemory,
                    "could not allocate room for the residuals of {iteration} iterations: ask for fewer"
                );
            }
            run.residuals.push(relative(square));
            if progress(iteration, relative(square)).is_break() {
                bail!(Cancelled, "cancelled by the progress callback after iteration {iteration}");
            }
            if square == before {
                // The direction has no energy left: rounding is all that remains.
                run.stop = Stop::Exact;
                break;
            }
        }
        if run.stop == Stop::Iterations && options.tolerance > 0.0 && relative(square) <= options.tolerance {
            run.stop = Stop::Tolerance;
        }
        Ok(run)
    }
}

/// Solves for all images of all frames: `kspace` [samples, coils, frames], `image` [voxels, images, frames].
pub(crate) fn solve<T: Real, B: Backend<T>>(
    system: &impl System<T, B>,
    kspace: Source<'_, Complex<T>>,
    image: Sink<'_, Complex<T>>,
    options: &CgOptions<'_, T>,
    report: &mut CgReport,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<()> {
    let b = system.b();
    let started = Instant::now();
    system.prepare_normal()?;
    report.q_seconds = started.elapsed().as_secs_f64();
    report.lambda = match options.lambda_unit {
        LambdaUnit::Relative if options.lambda > 0.0 => options.lambda * system.mean_diagonal()?,
        _ => options.lambda,
    };
    let options = &CgOptions { lambda: report.lambda, lambda_unit: LambdaUnit::Absolute, ..*options };
    let (voxels, images, kspace_len) = (system.voxels(), system.images(), system.kspace_len());
    let frames = kspace.len() / kspace_len;
    // Residual, direction, its image under the operator, the right-hand side of one frame and the solution of all.
    let vectors = voxels.saturating_mul(3 + (1 + frames) * images);
    system.check_memory(vectors.saturating_mul(size_of::<Complex<T>>()), "the conjugate gradient solution")?;
    report.runs = try_reserve(frames * images, "the report")?;
    let mut solver = Solver::new(system, options)?;
    let mut rhs = b.zeros::<Complex<T>>(voxels * images, "E^H W d")?;
    // Apart from the caller's array, which is written when all of it is there.
    let mut solution = match options.initial {
        Some(initial) => b.upload(initial, "the solution")?,
        None => b.zeros(image.len(), "the solution")?,
    };
    for frame in 0..frames {
        let started = Instant::now();
        let data = kspace.part(frame * kspace_len..(frame + 1) * kspace_len);
        system.right_hand_side(data, b.view_mut(&mut rhs))?;
        report.adjoint_seconds += started.elapsed().as_secs_f64();
        let started = Instant::now();
        for i in 0..images {
            let number = frame * images + i;
            let mut all = b.view_mut(&mut solution);
            let x = all.part(number * voxels..(number + 1) * voxels);
            let rhs = b.view(&rhs).part(i * voxels..(i + 1) * voxels);
            let run = solver.solve(options, rhs, x, options.initial.is_some(), &mut |iteration, residual| {
                progress(&Progress {
                    image: number,
                    images: frames * images,
                    iteration,
                    iterations: options.iterations,
                    residual,
                })
            })?;
            report.runs.push(run);
        }
        report.iteration_seconds += started.elapsed().as_secs_f64();
    }
    if b.first_beyond(b.view(&solution), T::of(f64::INFINITY))?.is_some() {
        bail!(NotFinite, "the image overflows {}: scale the data or the weights down", T::NAME);
    }
    match image {
        Sink::Host(host) => b.download(b.view(&solution), host),
        Sink::Device(_) => {
            let mut x = b.output(image)?;
            b.copy(b.view(&solution), b.write(&mut x));
            b.mark_ready(&mut x)?;
            b.deliver(x)
        }
    }
}
