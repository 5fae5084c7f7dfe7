//! `recon cg`.

use crate::options::{
    defaults, Combination, DensityArgs, ImageOutputArgs, ImageScale, InputArgs, LambdaUnitKind, OffResonanceArgs,
    PhaseDifferenceArgs, PlanArgs, PriorKind,
};
use crate::run::coil_maps::{self, shares_maps, CoilMapFile};
use crate::run::input::scan_name;
use crate::run::job::{FrameResult, Job, Reconstruction, ScanFrame};
use crate::run::output::{report_of, STANDARD_OUTPUT};
use crate::run::phase_difference::reference_scans;
use crate::run::plan::ReusablePlan;
use crate::run::precision::cast;
use crate::run::resize::zeros;
use crate::run::sampling::Sampling;
use crate::run::scan_images::ScanImages;
use crate::run::session::Session;
use crate::run::weights::{warn_of_file_weights, Weights};
use clap::ValueEnum;
use recon::atomic_file::AtomicFiles;
use recon::bail;
use recon::{CgOptions, CgReport, Complex, Normal, PlanInfo, Prior, Real, Result, Stop};
use recon_files::{FileUse, Scan};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Reconstructs images by regularised least squares with conjugate gradients
///
/// Solves (E^H W E + lambda R^H R) x = E^H W d. Coil maps combine several coils: the maps of --maps, or else a Walsh
/// estimate (Walsh et al. 2000, Magn. Reson. Med. 43:682). The estimate is scaled so that the image has the magnitude
/// of the root of the sum of squares. With --no-maps each coil is solved separately, and --combine combines the images.
///
/// Maps are estimated from the calibration acquisitions of the file (embedded, separate, or of another encoding), which
/// `recon info` lists. Without them maps come from the centre of the scan's own k-space. All repetitions and phases of
/// a slice that share their trajectory have one set of maps.
///
/// If samples of the centre are missing, as in an undersampled Cartesian scan without calibration lines, the program
/// stops with an error. Spokes that are too far apart narrow the centre, with a warning. If samples are about 1/FOV
/// apart, maps are 0 in the corners of the field of view, where aliases lie; a warning reports wider gaps.
///
/// The estimate is wrong if the object is larger than the field of view, because one map per coil cannot describe
/// folded voxels. It is arbitrary in regions that contain only noise. If --calibration is too small, maps miss
/// variations of the sensitivities; if it is too large, they contain noise. Give --maps or --no-maps in these cases.
///
/// W is 1 (--unweighted), or the density weights (--weighted). Weights reduce the number of iterations, but slightly
/// amplify noise.
///
/// Scans, files, frames and matrices are as for recon grid. All shots of a series give one set of maps. Maps, reference
/// and initial image are on the encoded matrix; reference and initial image may also be on the reconstructed matrix.
#[derive(clap::Args)]
#[command(after_help = "Example: 20 iterations that prefer a smooth image, and a report of the residuals:\n  \
    recon cg scan.h5 --iterations 20 --prior differences --lambda 0.01 --report r.json -o i.h5")]
pub struct CgArgs {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    output: ImageOutputArgs,

    #[command(flatten)]
    solver: RegularisedLeastSquares,

    /// Write iterations, residuals and seconds of every image as JSON; `-` writes to the standard output
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    #[command(flatten)]
    off_resonance: OffResonanceArgs,

    #[command(flatten)]
    plan: PlanArgs,
}

/// The reconstruction by least squares.
#[derive(clap::Args)]
struct RegularisedLeastSquares {
    /// Maximum number of iterations
    #[arg(long, value_name = "N", default_value_t = defaults::ITERATIONS, help_heading = "Reconstruction")]
    iterations: usize,

    /// Stop when the ratio of the residual to the norm of the right-hand side has fallen to this value; 0: never
    #[arg(long, value_name = "X", default_value_t = defaults::RESIDUAL, allow_negative_numbers = true)]
    #[arg(help_heading = "Reconstruction")]
    residual: f64,

    /// Weight of the prior, in the unit of --lambda-unit
    #[arg(long, value_name = "X", default_value_t = defaults::LAMBDA, allow_negative_numbers = true)]
    #[arg(help_heading = "Reconstruction")]
    lambda: f64,

    /// Unit of --lambda
    #[arg(long, value_enum, default_value_t = defaults::LAMBDA_UNIT, help_heading = "Reconstruction")]
    lambda_unit: LambdaUnitKind,

    /// Find lambda from the noise, in place of --lambda. The value is the root of the mean |noise|^2 of a sample in the
    /// unit of the data, or `auto` for whitened data. The distance of the image from the data then equals the noise
    /// (Morozov's discrepancy principle). This takes seven to twelve solutions
    #[arg(long, value_name = "X|auto", value_parser = parse_noise_level, allow_negative_numbers = true)]
    #[arg(help_heading = "Reconstruction", conflicts_with_all = ["lambda", "lambda_unit", "weighted"])]
    noise_level: Option<NoiseLevel>,

    /// Prior: the property of the image that --lambda weighs
    #[arg(long, value_enum, default_value_t = defaults::PRIOR, help_heading = "Reconstruction")]
    prior: PriorKind,

    /// Image whose edges the anatomical prior preserves (its magnitude, in any unit)
    #[arg(long, value_name = "FILE", help_heading = "Reconstruction")]
    reference: Option<PathBuf>,

    /// Smallest difference that counts as an edge, relative to the reference's maximum
    #[arg(long, value_name = "X", default_value_t = defaults::EDGE, allow_negative_numbers = true)]
    #[arg(help_heading = "Reconstruction")]
    edge: f64,

    /// Initial image, at the scale that --scale selects [default: zero]
    #[arg(long, value_name = "FILE", help_heading = "Reconstruction")]
    initial: Option<PathBuf>,

    /// With --frame-shots: start each frame from the image of the previous frame (the first frame from --initial)
    #[arg(long, help_heading = "Reconstruction", requires = "frame_shots")]
    warm_start: bool,

    #[arg(long, help = WEIGHTED, help_heading = "Reconstruction", conflicts_with = "unweighted")]
    weighted: bool,

    #[arg(long, help = UNWEIGHTED, help_heading = "Reconstruction")]
    unweighted: bool,

    #[command(flatten)]
    density: DensityArgs,

    #[arg(help = FileUse::ReadImages.help("Coil maps, [encoded matrix, coils]"))]
    #[arg(long, value_name = "FILE", help_heading = "Coils", conflicts_with = "no_maps")]
    maps: Option<PathBuf>,

    /// Solve for each coil separately, then combine the images
    #[arg(long, help_heading = "Coils")]
    no_maps: bool,

    /// Width of the centre of k-space from which maps are estimated, in samples of a Cartesian scan [default: 24, and
    /// in a plane up to 48 if k-space is sampled without gaps to that width]
    #[arg(long, value_name = "N", help_heading = "Coils")]
    calibration: Option<usize>,

    /// Combination of coil images, with --no-maps
    #[arg(long, value_enum, default_value_t = defaults::COMBINE, help_heading = "Coils")]
    combine: Combination,

    #[command(flatten)]
    phase_difference: PhaseDifferenceArgs,

    /// Method of computing E^H W E
    #[arg(long, value_enum, default_value_t = NormalKind::Auto, help_heading = "Computation")]
    normal: NormalKind,

    /// Write Q, the kernel of E^H W E, for further scans with the same trajectory, weights and matrix
    #[arg(long, value_name = "FILE", help_heading = "Computation")]
    save_q: Option<PathBuf>,

    /// Read Q instead of computing it
    #[arg(long, value_name = "FILE", help_heading = "Computation")]
    load_q: Option<PathBuf>,
}

const WEIGHTED: &str = match defaults::WEIGHTED {
    true => "Use density weights in the data term [default]",
    false => "Use density weights in the data term",
};
const UNWEIGHTED: &str = match defaults::WEIGHTED {
    true => "Use no weights in the data term",
    false => "Use no weights in the data term [default]",
};

/// The noise level from which lambda is found.
#[derive(Clone, Copy, PartialEq, Debug)]
enum NoiseLevel {
    /// The level of whitened data.
    Auto,
    Given(f64),
}

fn parse_noise_level(text: &str) -> std::result::Result<NoiseLevel, String> {
    if text == "auto" {
        return Ok(NoiseLevel::Auto);
    }
    let level = text.parse().ok().filter(|x: &f64| *x > 0.0 && x.is_finite());
    level.map(NoiseLevel::Given).ok_or_else(|| "a number above 0 is expected, or auto".into())
}

/// A method of computing E^H W E.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum NormalKind {
    /// The method that is expected to be faster
    Auto,
    /// Convolution with Q
    Toeplitz,
    /// One forward and one adjoint transform
    Transforms,
}

pub fn run(args: &CgArgs) -> Result<()> {
    if args.input.frame_shots.is_some() && (args.solver.save_q.is_some() || args.solver.load_q.is_some()) {
        bail!(
            InvalidArgument,
            "--save-q and --load-q are for one trajectory, but with --frame-shots each frame has its own: leave \
             one of them out"
        );
    }
    Job::new(&args.input, &args.output, &args.solver, &args.plan)
        .with_off_resonance(&args.off_resonance)
        .with_phase_difference(&args.solver.phase_difference)
        .with_report(args.report.as_deref())
        .run()
}

/// Data that scans share.
struct SolverState<T: Real> {
    initial: Option<ScanImages>,
    reference: Option<ScanImages>,
    /// Density weights, and the number of the scan whose trajectory they belong to; `None` before the first scan.
    weights: Option<(usize, Weights<T>)>,
    map_file: CoilMapFile<T>,
    /// Estimated coil maps of the current group of scans; `None` if they are not estimated.
    estimated_maps: Option<Vec<Complex<T>>>,
    /// The previous frame's image and the number of its scan; `None` without --warm-start.
    previous_image: Option<(usize, Vec<Complex<T>>)>,
}

impl RegularisedLeastSquares {
    fn is_weighted(&self) -> bool {
        self.weighted || (defaults::WEIGHTED && !self.unweighted)
    }

    /// Returns whether coil maps combine the coils of a scan.
    fn uses_maps(&self, scan: &Scan) -> bool {
        self.maps.is_some() || (scan.coils > 1 && !self.no_maps)
    }

    fn estimates_maps(&self, scan: &Scan) -> bool {
        self.uses_maps(scan) && self.maps.is_none()
    }

    /// Returns the number of images that are solved for in a scan.
    fn image_count(&self, scan: &Scan) -> usize {
        if self.uses_maps(scan) {
            1
        } else {
            scan.coils
        }
    }

    fn normal(&self) -> Normal {
        match self.normal {
            NormalKind::Auto if self.save_q.is_some() || self.load_q.is_some() => Normal::Toeplitz,
            NormalKind::Auto => Normal::Auto,
            NormalKind::Toeplitz => Normal::Toeplitz,
            NormalKind::Transforms => Normal::Transforms,
        }
    }

    fn weights<T: Real>(&self, scan: &Scan) -> Result<Weights<T>> {
        match self.is_weighted() {
            true => Weights::for_data_term(scan, &self.density),
            false => Ok(Weights::Default),
        }
    }

    /// Returns the initial image of a scan at the scale of this program.
    fn initial_image<T: Real>(&self, frame: &ScanFrame, image: &[Complex<f32>]) -> Result<Vec<Complex<T>>> {
        let mut image = cast::<T>(image)?;
        if frame.session.scale == ImageScale::Bart {
            let factor = 1.0 / self.bart_factor(frame.scan);
            image.iter_mut().for_each(|z| *z = Complex::new(T::of(z.re.wide() * factor), T::of(z.im.wide() * factor)));
        }
        Ok(image)
    }

    fn noise_level(&self, scan: &Scan) -> Result<f64> {
        match (self.noise_level, scan.noise_level) {
            (None, _) => Ok(0.0),
            (Some(NoiseLevel::Given(level)), _) | (Some(NoiseLevel::Auto), Some(level)) => Ok(level),
            (Some(NoiseLevel::Auto), None) => bail!(
                InvalidArgument,
                "--noise-level auto: the scan is not whitened: give --whiten a file with noise, or give the level"
            ),
        }
    }
}

impl Reconstruction for RegularisedLeastSquares {
    const TITLE: &'static str = "conjugate gradients";
    const REUSES_PLAN: bool = false;
    type Plan<T: Real> = ReusablePlan<T>;
    type State<T: Real> = SolverState<T>;

    fn check(&self) -> Result<()> {
        if !(self.lambda >= 0.0 && self.lambda.is_finite()) {
            bail!(InvalidArgument, "--lambda is {}: it must be 0 or more", self.lambda);
        }
        if !(self.residual >= 0.0 && self.residual < 1.0) {
            bail!(ToleranceOutOfRange, "--residual is {}: it must be in [0, 1)", self.residual);
        }
        match (self.prior, &self.reference) {
            (PriorKind::Anatomical, None) => bail!(InvalidArgument, "--prior anatomical needs --reference"),
            (PriorKind::Identity | PriorKind::Differences, Some(_)) => {
                bail!(InvalidArgument, "--reference is for --prior anatomical only")
            }
            _ => {}
        }
        if self.prior != PriorKind::Identity && self.lambda == 0.0 && self.noise_level.is_none() {
            log::warn!("--lambda is 0: the prior has no effect");
        }
        if self.save_q.as_ref().is_some_and(|path| path == Path::new(STANDARD_OUTPUT)) {
            bail!(InvalidArgument, "--save-q -: Q is written to a file or named pipe; ./- is a file of that name");
        }
        Ok(())
    }

    fn input_files(&self) -> Vec<&PathBuf> {
        [&self.maps, &self.reference, &self.initial, &self.load_q].into_iter().flatten().collect()
    }

    fn output_files(&self) -> Vec<PathBuf> {
        self.save_q.iter().cloned().collect()
    }

    fn channels(&self, scan: &Scan) -> Option<usize> {
        Some(self.combine.channels(self.image_count(scan)))
    }

    fn steps(&self, scan: &Scan) -> usize {
        self.image_count(scan) * self.iterations
    }

    /// Returns whether two scans have the same coil maps, which a plan holds. Estimated maps differ between slices.
    fn shares_plan(&self, a: &Scan, b: &Scan) -> bool {
        let key = |scan: &Scan| (scan.index.encoding, scan.index.slice, scan.index.contrast);
        let all_sets_share = self.phase_difference.is_enabled() && key(a) == key(b);
        !self.estimates_maps(a) || all_sets_share || shares_maps(a, b)
    }

    fn begin<T: Real>(&self, session: &Session) -> Result<SolverState<T>> {
        let trajectories = session.trajectories().len();
        if self.save_q.is_some() && trajectories > 1 {
            bail!(
                InvalidArgument,
                "--save-q writes one Q, but the scans have {trajectories} different trajectories or maps of \
                 off-resonance and decay: select some by --slice and --repetition"
            );
        }
        let read = |path: &PathBuf, channels: &dyn Fn(&Scan) -> usize| ScanImages::read(path, session, channels);
        let reference = self.reference.as_ref().map(|path| read(path, &|_| 1)).transpose()?;
        let initial = self.initial.as_ref().map(|path| read(path, &|scan| self.image_count(scan))).transpose()?;
        if self.is_weighted() || session.scans.iter().any(|scan| self.estimates_maps(scan)) {
            warn_of_file_weights(&session.scans, &self.density);
        }
        Ok(SolverState {
            initial,
            reference,
            weights: None,
            map_file: CoilMapFile::new(),
            estimated_maps: None,
            previous_image: None,
        })
    }

    fn begin_group<T: Real>(&self, session: &Session, group: &[usize], state: &mut SolverState<T>) -> Result<()> {
        let scan = &session.scans[group[0]];
        // The weights of frames are computed when the plan has their trajectory.
        if session.frames.is_none() {
            let is_known = |&(number, _): &(usize, _)| session.is_same_trajectory(number, group[0]);
            if !state.weights.as_ref().is_some_and(is_known) {
                let sampling = Sampling::new(scan, session.basis);
                state.weights = Some((group[0], self.weights(scan)?.compute(&sampling, &session.options)?));
            }
        }
        state.estimated_maps = None;
        if self.estimates_maps(scan) {
            // Maps of each velocity encoding may have the phases of different virtual coils, which remain in the
            // difference.
            let reference = match self.phase_difference.is_enabled() {
                true => reference_scans(&self.phase_difference, session, scan)?,
                false => Vec::new(),
            };
            let group = if reference.is_empty() { group } else { &reference };
            state.estimated_maps =
                Some(coil_maps::estimate(session, group, &self.density, self.calibration.unwrap_or(0))?);
        }
        Ok(())
    }

    fn plan<T: Real>(
        &self,
        frame: &ScanFrame,
        previous: Option<ReusablePlan<T>>,
        state: &mut SolverState<T>,
    ) -> Result<ReusablePlan<T>> {
        let coil_maps = match &self.maps {
            Some(path) => Some(state.map_file.read(path, frame.scan)?),
            None => state.estimated_maps.as_deref(),
        };
        if frame.session.frames.is_some() {
            state.weights = Some((frame.number, self.weights(frame.scan)?));
        }
        let weights = state.weights.as_ref().map_or(&Weights::Default, |(_, weights)| weights);
        let plan = frame.plan(previous, weights, coil_maps, self.normal())?;
        if let Some(path) = &self.load_q {
            plan.plan.load_q(path).map_err(|e| with_file_name(e, path))?;
        }
        Ok(plan)
    }

    fn image<T: Real>(
        &self,
        frame: &ScanFrame,
        ReusablePlan { plan, .. }: &ReusablePlan<T>,
        state: &mut SolverState<T>,
    ) -> Result<FrameResult> {
        let initial = match state.previous_image.take() {
            Some((number, image)) if number == frame.number => Some(image),
            _ => match &state.initial {
                Some(images) => Some(self.initial_image(frame, images.image(frame.number))?),
                None => None,
            },
        };
        let reference = state.reference.as_ref().map(|images| cast::<T>(images.image(frame.number))).transpose()?;
        let reference: Option<Vec<T>> =
            reference.map(|r| r.iter().map(|z| T::of(z.re.wide().hypot(z.im.wide()))).collect());
        let options = CgOptions {
            iterations: self.iterations,
            tolerance: self.residual,
            lambda: self.lambda,
            lambda_unit: self.lambda_unit.into(),
            noise_level: self.noise_level(frame.scan)?,
            prior: match (self.prior, &reference) {
                (PriorKind::Anatomical, Some(reference)) => Prior::Anatomical { reference, edge: self.edge },
                (PriorKind::Anatomical, None) => bail!(InvalidArgument, "--prior anatomical needs --reference"),
                (PriorKind::Differences, _) => Prior::Differences,
                (PriorKind::Identity, _) => Prior::Identity,
            },
            initial: initial.as_deref(),
        };
        let mut solution = zeros::<T>(plan.image_len())?;
        let report = plan.cg_with_progress(&frame.data::<T>()?, &mut solution, &options, |p| {
            (frame.progress)(p.image * p.iterations + p.iteration);
            ControlFlow::Continue(())
        })?;
        log_summary(frame, &report);
        let report = describe(frame, &report, &plan.info());
        state.previous_image = self.warm_start.then(|| (frame.number, solution.clone()));
        let combination = if self.phase_difference.is_enabled() { Combination::None } else { self.combine };
        Ok(FrameResult { image: frame.finish(solution, combination)?, report: Some(report) })
    }

    fn write<T: Real>(
        &self,
        plan: Option<ReusablePlan<T>>,
        _state: SolverState<T>,
        files: &mut AtomicFiles,
    ) -> Result<()> {
        // All plans of one trajectory have the same Q, with any coil maps.
        match (&self.save_q, plan) {
            (Some(path), Some(ReusablePlan { plan, .. })) => {
                plan.save_q_among(files, path).map_err(|e| with_file_name(e, path))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the error with the file's name, unless the message contains it.
fn with_file_name(error: recon::Error, path: &Path) -> recon::Error {
    let name = path.display().to_string();
    if error.message().contains(&name) {
        error
    } else {
        error.within(name)
    }
}

fn stop_name(stop: Stop) -> &'static str {
    match stop {
        Stop::Iterations => "iterations",
        Stop::Tolerance => "residual",
        Stop::Exact => "exact",
    }
}

fn log_summary(frame: &ScanFrame, report: &CgReport) {
    for (i, run) in report.runs.iter().enumerate() {
        let image = if report.runs.len() > 1 { format!(", coil {i}") } else { String::new() };
        log::info!(
            "{}{image}: {} iterations, residual {:.3e}, stopped by {}, {:.3} s in all",
            scan_name(frame.scan),
            run.iterations(),
            run.residuals.last().copied().unwrap_or(0.0),
            stop_name(run.stop),
            frame.seconds()
        );
    }
}

/// Returns the report of an image.
fn describe(frame: &ScanFrame, report: &CgReport, plan: &PlanInfo) -> serde_json::Value {
    let describe_run = |run: &recon::CgRun| {
        serde_json::json!({
            "iterations": run.iterations(),
            "stop": stop_name(run.stop),
            "residuals": run.residuals,
        })
    };
    let mut value = report_of(&frame.scan.index);
    value["absolute_lambda"] = report.lambda.into();
    value["images"] = report.runs.iter().map(describe_run).collect::<Vec<_>>().into();
    if !frame.session.off_resonance.is_empty() {
        value["off_resonance"] =
            serde_json::json!({ "segments": plan.segments, "nodes": plan.nodes, "error": plan.error });
    }
    value["seconds"] = serde_json::json!({
        "plan": plan.seconds,
        "q": report.q_seconds,
        "adjoint": report.adjoint_seconds,
        "iterations": report.iteration_seconds,
        "total": frame.seconds(),
    });
    value
}
