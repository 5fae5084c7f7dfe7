//! `recon cg`.

use crate::defaults;
use crate::io::{Image, Scan};
use crate::options::{Combination, DensityArgs, InputArgs, LambdaUnitKind, PlanArgs, Precision, PriorKind};
use crate::progress::ProgressIndicator;
use crate::reader::read_images;
use crate::run::calibration;
use crate::run::frames;
use crate::run::input;
use crate::run::off_resonance::{OffResonance, OffResonanceArgs};
use crate::run::output::{check_outputs, image_files, place_of, write_with_report, STANDARD_OUTPUT};
use crate::run::reconstruct::{
    cast, channels, groups, read_maps, read_scans, warn_of_weights, Finish, Input, Kept, Sampling, Weights,
};
use crate::run::resize::{order_hint, Resize};
use clap::ValueEnum;
use recon::atomic_file::AtomicFiles;
use recon::bail;
use recon::{CgOptions, CgReport, Complex, Normal, Plan, PlanInfo, Prior, Real, Result, Stop};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Regularised least squares by conjugate gradients
///
/// Solves (E^H W E + lambda R^H R) x = E^H W d. Several coils are combined through coil maps: those of --maps, or else
/// a Walsh estimate (Walsh et al. 2000, Magn. Reson. Med. 43:682), scaled so that the image has the magnitude of the
/// root of the sum of squares. With --no-maps each coil is solved for on its own, and the images are combined by
/// --combine.
///
/// Maps are estimated from the calibration acquisitions of the file (embedded, separate, or of another encoding).
/// `recon info` lists them. Without them maps come from the centre of the scan's own k-space. All repetitions and
/// phases of a slice that share their trajectory have one set of maps. If samples of the centre are missing there, as
/// in an undersampled Cartesian scan without calibration lines, the program stops with an error. Spokes that are too
/// far apart narrow the centre, with a warning. If samples are about 1/FOV apart, maps are 0 in the corners of the
/// field of view, where aliases lie; with a warning if gaps are wider than that.
///
/// The estimate is wrong if the object is larger than the field of view (one map per coil cannot say what is folded).
/// It is arbitrary where there is only noise. With too small a --calibration maps miss how the coils vary; with too
/// large a one they take in noise. Give --maps then, or --no-maps.
///
/// W is 1 (--unweighted), or the density weights (--weighted), with which fewer iterations do but noise is a little
/// stronger.
///
/// Scans, files, frames and matrices are as for recon grid; all shots of a series make one set of maps. Maps, reference
/// and initial image are on the encoded matrix (the latter two may be on the reconstructed matrix as well).
#[derive(clap::Args)]
#[command(after_help = "Example: 20 iterations with a smooth image preferred, and a report of the residuals:\n  \
    recon cg scan.h5 --iterations 20 --prior differences --lambda 0.01 --report r.json -o i.h5")]
pub struct CgArgs {
    #[command(flatten)]
    input: InputArgs,

    /// Image to be written, its format by its ending: .h5, .mrd, .cfl, .nii, .nii.gz, .png
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// At most so many iterations
    #[arg(long, value_name = "N", default_value_t = defaults::ITERATIONS, help_heading = "Reconstruction")]
    iterations: usize,

    /// Stop when the residual has fallen to this part of the right-hand side's norm; 0 never does
    #[arg(long, value_name = "X", default_value_t = defaults::RESIDUAL, allow_negative_numbers = true)]
    #[arg(help_heading = "Reconstruction")]
    residual: f64,

    /// Weight of the prior, in the unit that --lambda-unit names
    #[arg(long, value_name = "X", default_value_t = defaults::LAMBDA, allow_negative_numbers = true)]
    #[arg(help_heading = "Reconstruction")]
    lambda: f64,

    /// What --lambda is relative to
    #[arg(long, value_enum, default_value_t = defaults::LAMBDA_UNIT, help_heading = "Reconstruction")]
    lambda_unit: LambdaUnitKind,

    /// Find lambda from the noise, in place of --lambda: the root of the mean |noise|^2 of a sample in the unit of the
    /// data, or `auto` for data that are whitened. The image is then as far from the data as the noise is (Morozov's
    /// discrepancy principle); it takes seven to twelve solutions
    #[arg(long, value_name = "X|auto", value_parser = parse_noise_level, allow_negative_numbers = true)]
    #[arg(help_heading = "Reconstruction", conflicts_with_all = ["lambda", "lambda_unit", "weighted"])]
    noise_level: Option<NoiseLevel>,

    /// What is small in the image wanted
    #[arg(long, value_enum, default_value_t = defaults::PRIOR, help_heading = "Reconstruction")]
    prior: PriorKind,

    /// Image whose borders the anatomical prior keeps (its magnitude; any unit)
    #[arg(long, value_name = "FILE", help_heading = "Reconstruction")]
    reference: Option<PathBuf>,

    /// Difference that counts as a border, as a part of the reference's maximum
    #[arg(long, value_name = "X", default_value_t = defaults::EDGE, allow_negative_numbers = true)]
    #[arg(help_heading = "Reconstruction")]
    edge: f64,

    /// Image to start from; otherwise zero
    #[arg(long, value_name = "FILE", help_heading = "Reconstruction")]
    initial: Option<PathBuf>,

    /// With --frame-shots: start each frame from the image of the frame before (the first from --initial)
    #[arg(long, help_heading = "Reconstruction", requires = "frame_shots")]
    warm_start: bool,

    #[arg(long, help = WEIGHTED, help_heading = "Reconstruction", conflicts_with = "unweighted")]
    weighted: bool,

    #[arg(long, help = UNWEIGHTED, help_heading = "Reconstruction")]
    unweighted: bool,

    #[command(flatten)]
    density: DensityArgs,

    /// Coil maps, [encoded matrix, coils] (.cfl or .h5)
    #[arg(long, value_name = "FILE", help_heading = "Coils", conflicts_with = "no_maps")]
    maps: Option<PathBuf>,

    /// Solve for each coil on its own, then combine
    #[arg(long, help_heading = "Coils")]
    no_maps: bool,

    /// Width of the centre of k-space that maps are estimated from, in samples of a Cartesian scan [default: 24, and in
    /// a plane up to 48 if k-space is sampled without gaps so far out]
    #[arg(long, value_name = "N", help_heading = "Coils")]
    calibration: Option<usize>,

    /// How coil images become one, with --no-maps
    #[arg(long, value_enum, default_value_t = defaults::COMBINE, help_heading = "Coils")]
    combine: Combination,

    /// How E^H W E is computed
    #[arg(long, value_enum, default_value_t = NormalKind::Auto, help_heading = "Computation")]
    normal: NormalKind,

    /// Write Q, the kernel of E^H W E, for further scans with the same trajectory, weights and matrix
    #[arg(long, value_name = "FILE", help_heading = "Computation")]
    save_q: Option<PathBuf>,

    /// Read Q in place of computing it
    #[arg(long, value_name = "FILE", help_heading = "Computation")]
    load_q: Option<PathBuf>,

    /// Write iterations, residuals and seconds of every image, as JSON; `-`: to the standard output
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    #[command(flatten)]
    off_resonance: OffResonanceArgs,

    #[command(flatten)]
    plan: PlanArgs,
}

const WEIGHTED: &str = match defaults::WEIGHTED {
    true => "Density weights in the data term [default]",
    false => "Density weights in the data term",
};
const UNWEIGHTED: &str = match defaults::WEIGHTED {
    true => "No weights in the data term",
    false => "No weights in the data term [default]",
};

/// The noise by which lambda is found.
#[derive(Clone, Copy, PartialEq, Debug)]
enum NoiseLevel {
    /// That of whitened data.
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

/// How E^H W E is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum NormalKind {
    /// Whichever is expected to be faster
    Auto,
    /// Convolution with Q
    Toeplitz,
    /// One forward and one adjoint transform
    Transforms,
}

impl CgArgs {
    fn options(&self) -> Result<recon::Options> {
        let normal = match self.normal {
            NormalKind::Auto if self.save_q.is_some() || self.load_q.is_some() => Normal::Toeplitz,
            NormalKind::Auto => Normal::Auto,
            NormalKind::Toeplitz => Normal::Toeplitz,
            NormalKind::Transforms => Normal::Transforms,
        };
        Ok(recon::Options { normal, ..self.plan.options()? })
    }

    fn is_weighted(&self) -> bool {
        self.weighted || (defaults::WEIGHTED && !self.unweighted)
    }

    /// Whether a scan's coils are combined by maps.
    fn uses_maps(&self, scan: &Scan) -> bool {
        self.maps.is_some() || (scan.coils > 1 && !self.no_maps)
    }

    /// The images solved for in a scan.
    fn images(&self, scan: &Scan) -> usize {
        if self.uses_maps(scan) {
            1
        } else {
            scan.coils
        }
    }

    /// Checks options before a file is read.
    fn check(&self) -> Result<()> {
        self.options()?;
        self.off_resonance.check()?;
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
            bail!(InvalidArgument, "--save-q -: Q goes to a file or a pipe by its name; ./- is a file of that name");
        }
        if self.input.frame_shots.is_some() && (self.save_q.is_some() || self.load_q.is_some()) {
            bail!(
                InvalidArgument,
                "--save-q and --load-q are for one trajectory, and with --frame-shots each frame has its own: leave \
                 one out"
            );
        }
        let mut outputs = image_files(&self.output)?;
        outputs.extend(self.report.clone().filter(|path| path != Path::new(STANDARD_OUTPUT)));
        outputs.extend(self.save_q.clone());
        let more = [&self.maps, &self.reference, &self.initial, &self.load_q];
        check_outputs(&outputs, self.input.files().chain(more.into_iter().flatten()).chain(self.off_resonance.files()))
    }
}

pub fn run(args: &CgArgs) -> Result<()> {
    args.check()?;
    match args.plan.precision {
        Precision::F32 => compute::<f32>(args),
        Precision::F64 => compute::<f64>(args),
    }
}

fn compute<T: Real>(args: &CgArgs) -> Result<()> {
    let Input { scans, calibration, frames, resizes } =
        read_scans(&args.input, Some(&args.output), |s| channels(args.images(s), args.combine))?;
    let field = OffResonance::read(&args.off_resonance, &scans, &resizes)?;
    let plans = groups(&scans, |a, b| frames.is_none() && field.same(&scans, a, b));
    if args.save_q.is_some() && plans.len() > 1 {
        bail!(
            InvalidArgument,
            "--save-q writes one Q, but the scans have {} different trajectories or maps of off-resonance and decay: \
             choose some by --slice and --repetition",
            plans.len()
        );
    }
    let references = args.reference.as_ref().map(|p| companion(p, &scans, &resizes, |_| 1)).transpose()?;
    let initials = args.initial.as_ref().map(|p| companion(p, &scans, &resizes, |s| args.images(s))).transpose()?;

    if args.is_weighted() || args.maps.is_none() && scans.iter().any(|scan| args.uses_maps(scan)) {
        warn_of_weights(&scans, &args.density);
    }
    let options = args.options()?;
    let total: usize = scans.iter().map(|s| frames::count(frames, s) * args.images(s) * args.iterations).sum();
    let progress = ProgressIndicator::new(total, "conjugate gradients");
    let mut done = 0;
    let mut files = AtomicFiles::new();
    let mut q_written = false;
    let mut images: Vec<Vec<Image>> = vec![Vec::new(); scans.len()];
    let mut reports: Vec<Vec<serde_json::Value>> = vec![Vec::new(); scans.len()];
    for same_trajectory in plans {
        let first = &scans[same_trajectory[0]];
        let sampling = Sampling::<T>::of(first);
        let weights_of = |scan: &Scan| match args.is_weighted() {
            true => Weights::explicit(scan, &args.density),
            false => Weights::Default,
        };
        // Those of frames are computed by the plan when it has their trajectory.
        let weights = match frames {
            None => weights_of(first).computed(&sampling, &args.plan)?,
            Some(_) => Weights::Default,
        };
        let estimated = args.uses_maps(first) && args.maps.is_none();
        // Maps differ between slices, and a plan holds its maps.
        for group in if estimated { by_slice(&scans, same_trajectory) } else { vec![same_trajectory] } {
            let maps = match (&args.maps, estimated) {
                (Some(path), _) => Some(read_maps::<T>(path, first)?),
                (None, true) => Some(estimate_of_group(args, &scans, &group, &calibration, &field)?),
                (None, false) => None,
            };
            let mut kept: Option<Kept<T>> = None;
            for &i in &group {
                let mut last: Option<Vec<Complex<T>>> = None;
                for scan in frames::each(frames, &scans[i]) {
                    let started = Instant::now();
                    let here = match (kept.take(), frames) {
                        (Some(here), None) => here,
                        (before, _) => {
                            let sampling = Sampling::<T>::with_maps(&scan, i, &field)?;
                            let mut geometry = sampling.geometry(&args.plan);
                            geometry.coil_maps = maps.as_deref();
                            let own = frames.map(|_| weights_of(&scan));
                            let here = Kept::new(before, &geometry, own.as_ref().unwrap_or(&weights), &options)?;
                            if let Some(path) = &args.load_q {
                                here.plan.load_q(path).map_err(|e| named(e, path))?;
                            }
                            here
                        }
                    };
                    let plan = &kept.insert(here).plan;
                    let initial = match last.take() {
                        None => companion_of(&initials, i).map(cast::<T>).transpose()?,
                        last => last,
                    };
                    let reference = companion_of(&references, i);
                    let (solution, report) = solve(args, plan, &scan, reference, initial.as_deref(), |p| {
                        progress.set(done + p.image * p.iterations + p.iteration);
                    })?;
                    done += args.images(&scan) * args.iterations;
                    progress.set(done);
                    let seconds = started.elapsed().as_secs_f64();
                    summary(&scan, &report, seconds);
                    reports[i].push(describe(&scan, &report, field.is_there(), &plan.info(), seconds));
                    last = args.warm_start.then(|| solution.clone());
                    let finish = Finish { scan: &scan, resize: resizes[i], combine: args.combine };
                    images[i].push(finish.image(solution)?);
                }
            }
            // Plans of one trajectory have the same Q, with any maps.
            if let (Some(path), Some(Kept { plan, .. })) = (args.save_q.as_ref().filter(|_| !q_written), &kept) {
                plan.save_q_among(&mut files, path).map_err(|e| named(e, path))?;
                q_written = true;
            }
        }
    }
    drop(progress);
    write_with_report(files, (&args.output, &images.concat()), (args.report.as_deref(), reports.concat()))
}

/// Solves for the images of one scan.
fn solve<T: Real>(
    args: &CgArgs,
    plan: &Plan<T>,
    scan: &Scan,
    reference: Option<&[Complex<f32>]>,
    initial: Option<&[Complex<T>]>,
    progress: impl Fn(&recon::Progress),
) -> Result<(Vec<Complex<T>>, CgReport)> {
    let reference = reference.map(cast::<T>).transpose()?;
    let reference: Option<Vec<T>> =
        reference.map(|r| r.iter().map(|z| T::of(z.re.wide().hypot(z.im.wide()))).collect());
    let options = CgOptions {
        iterations: args.iterations,
        tolerance: args.residual,
        lambda: args.lambda,
        lambda_unit: args.lambda_unit.into(),
        noise_level: match (args.noise_level, scan.noise_level) {
            (None, _) => 0.0,
            (Some(NoiseLevel::Given(level)), _) | (Some(NoiseLevel::Auto), Some(level)) => level,
            (Some(NoiseLevel::Auto), None) => bail!(
                InvalidArgument,
                "--noise-level auto: {} is not whitened: give --whiten a file with noise, or the level",
                input::name(scan)
            ),
        },
        prior: match (args.prior, &reference) {
            (PriorKind::Anatomical, Some(reference)) => Prior::Anatomical { reference, edge: args.edge },
            (PriorKind::Anatomical, None) => bail!(InvalidArgument, "--prior anatomical needs --reference"),
            (PriorKind::Differences, _) => Prior::Differences,
            (PriorKind::Identity, _) => Prior::Identity,
        },
        initial,
    };
    let mut solution = crate::run::resize::zeros::<T>(plan.image_len())?;
    let report = plan.cg_with_progress(&cast::<T>(&scan.data)?, &mut solution, &options, |p| {
        progress(p);
        ControlFlow::Continue(())
    })?;
    Ok((solution, report))
}

/// The error with the file's name, unless the message has it.
fn named(error: recon::Error, path: &Path) -> recon::Error {
    let name = path.display().to_string();
    if error.message().contains(&name) {
        error
    } else {
        error.within(name)
    }
}

/// Scans of one trajectory, by what coil maps depend on.
fn by_slice(scans: &[Scan], members: Vec<usize>) -> Vec<Vec<usize>> {
    let key = |i: usize| {
        let index = &scans[i].index;
        (index.encoding, index.slice, index.contrast, index.set)
    };
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for i in members {
        match groups.iter_mut().find(|g| key(g[0]) == key(i)) {
            Some(group) => group.push(i),
            None => groups.push(vec![i]),
        }
    }
    groups
}

/// Estimates the coil maps of scans of one trajectory and slice: from the calibration data of the slice, or else from
/// the mean of the scans.
fn estimate_of_group<T: Real>(
    args: &CgArgs,
    scans: &[Scan],
    group: &[usize],
    calibration: &[Scan],
    field: &OffResonance<'_>,
) -> Result<Vec<Complex<T>>> {
    let first = &scans[group[0]];
    let estimated = match calibration::of_scan(calibration, first) {
        Some(lines) => {
            let lines = calibration::on_matrix_of(lines, first).map_err(|e| e.within(input::name(first)))?;
            field.check(&lines)?;
            let sampling = Sampling::<T>::with_maps(&lines, group[0], field)?;
            estimate(args, &sampling, std::iter::once(&lines))
        }
        None => {
            if !calibration.is_empty() {
                log::warn!(
                    "{}: the calibration acquisitions of the file are of other slices: coil maps come from the scan",
                    input::name(first)
                );
            }
            let sampling = Sampling::<T>::with_maps(first, group[0], field)?;
            estimate(args, &sampling, group.iter().map(|&i| &scans[i]))
        }
    };
    estimated.map_err(|e| e.within(input::name(first)))
}

/// Coil maps from the mean of scans that share their trajectory.
fn estimate<'a, T: Real>(
    args: &CgArgs,
    sampling: &Sampling<T>,
    scans: impl Iterator<Item = &'a Scan>,
) -> Result<Vec<Complex<T>>> {
    let scans: Vec<_> = scans.collect();
    let mut mean = cast::<T>(&scans[0].data)?;
    for scan in &scans[1..] {
        for (m, z) in mean.iter_mut().zip(&scan.data) {
            *m = Complex::new(T::of(m.re.wide() + z.re as f64), T::of(m.im.wide() + z.im as f64));
        }
    }
    let share = 1.0 / scans.len() as f64;
    mean.iter_mut().for_each(|z| *z = Complex::new(T::of(z.re.wide() * share), T::of(z.im.wide() * share)));
    let weights = Weights::for_coil_maps(scans[0], &args.density);
    let geometry = sampling.geometry(&args.plan);
    let started = Instant::now();
    let maps = Kept::for_coil_maps(&geometry, &weights, &args.plan.options()?)?
        .coil_maps(&mean, args.calibration.unwrap_or(0))?;
    log::info!(
        "{}: maps of {} coils from {} shots, {:.3} s",
        input::name(scans[0]),
        sampling.coils,
        scans[0].samples_per_shot.len(),
        started.elapsed().as_secs_f64()
    );
    Ok(maps)
}

/// Images of one use for all scans, or for each.
type Companions = Vec<Vec<Complex<f32>>>;

fn companion_of(all: &Option<Companions>, scan: usize) -> Option<&[Complex<f32>]> {
    all.as_ref().map(|all| &all[scan.min(all.len() - 1)][..])
}

/// Reads images that go with the scans: one for all, or one a scan, each with the number of channels that `channels`
/// returns, on the encoded or on the reconstructed matrix.
fn companion(path: &Path, scans: &[Scan], resizes: &[Resize], channels: impl Fn(&Scan) -> usize) -> Result<Companions> {
    let images = read_images(path)?;
    let wanted = channels(&scans[0]);
    let dims = images[0].dims;
    let mut volumes: Vec<&[Complex<f32>]> = Vec::new();
    for image in &images {
        if image.dims != dims {
            bail!(SizeMismatch, "{}: images of {dims:?} and of {:?} voxels", path.display(), image.dims);
        }
        volumes.extend((0..image.channels).map(|c| image.channel(c)));
    }
    let count = volumes.len() / wanted;
    if !volumes.len().is_multiple_of(wanted) || (count != 1 && count != scans.len()) {
        bail!(
            SizeMismatch,
            "{}: {} images, but {wanted} are needed for each of {} scans, or {wanted} for all",
            path.display(),
            volumes.len(),
            scans.len()
        );
    }
    let mut out = Vec::with_capacity(count);
    for (i, parts) in volumes.chunks_exact(wanted).enumerate() {
        let users = if count == 1 { 0..scans.len() } else { i..i + 1 };
        for resize in &resizes[users.clone()] {
            if dims != resize.encoded() && dims != resize.wanted() || resizes[users.start] != *resize {
                bail!(
                    SizeMismatch,
                    "{}: images of {dims:?} voxels, but the encoded matrix of the scans is {:?} and the reconstructed \
                     one {:?}{}",
                    path.display(),
                    resize.encoded(),
                    resize.wanted(),
                    order_hint(dims, resize.wanted())
                );
            }
        }
        let resize = resizes[users.start];
        let mut all = Vec::new();
        for part in parts {
            all.extend(if dims == resize.encoded() { part.to_vec() } else { resize.undo(part.to_vec())? });
        }
        out.push(all);
    }
    Ok(out)
}

fn stop_name(stop: Stop) -> &'static str {
    match stop {
        Stop::Iterations => "iterations",
        Stop::Tolerance => "residual",
        Stop::Exact => "exact",
    }
}

fn summary(scan: &Scan, report: &CgReport, seconds: f64) {
    for (i, run) in report.runs.iter().enumerate() {
        let image = if report.runs.len() > 1 { format!(", coil {i}") } else { String::new() };
        log::info!(
            "{}{image}: {} iterations, residual {:.3e}, stopped by {}, {seconds:.3} s in all",
            input::name(scan),
            run.iterations(),
            run.residuals.last().copied().unwrap_or(0.0),
            stop_name(run.stop)
        );
    }
}

fn describe(scan: &Scan, report: &CgReport, off_resonance: bool, plan: &PlanInfo, seconds: f64) -> serde_json::Value {
    let runs: Vec<_> = report
        .runs
        .iter()
        .map(|run| {
            serde_json::json!({
                "iterations": run.iterations(),
                "stop": stop_name(run.stop),
                "residuals": run.residuals,
            })
        })
        .collect();
    let mut value = place_of(&scan.index);
    value["absolute_lambda"] = report.lambda.into();
    value["images"] = runs.into();
    if off_resonance {
        value["off_resonance"] =
            serde_json::json!({ "segments": plan.segments, "nodes": plan.nodes, "error": plan.error });
    }
    value["seconds"] = serde_json::json!({
        "plan": plan.seconds,
        "q": report.q_seconds,
        "adjoint": report.adjoint_seconds,
        "iterations": report.iteration_seconds,
        "total": seconds,
    });
    value
}
