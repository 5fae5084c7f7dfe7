//! `recon bench`.

use crate::options::defaults::{CHECKED_OUTPUTS, RUNS, TOLERANCE};
use crate::options::{in_precision, DeviceChoice, MethodKind, PrecisionKind, SimdKind};
use crate::progress::ProgressIndicator;
use crate::run::output::say;
use crate::run::resize::zeros;
use clap::ValueEnum;
use recon::bail;
use recon::phantom::{uniform, CoilModel, Phantom};
use recon::trajectory::SpokeOrder;
use recon::{CgOptions, Complex, Geometry, Method, Options, Plan, PlanInfo, Real, Result, Trajectory};
use std::time::Instant;

/// Measures speed and error on cases of known size
///
/// Times are in milliseconds: plan_ms is the time to create the plan, median_ms the median of --runs operations, after
/// one that is not counted. Data are random numbers in host memory.
///
/// The error is the relative l2 distance from exact sums in double precision, for the same coordinates and data. It is
/// computed over 500 random outputs (voxels of the adjoint, samples of the forward transform), the same in each run.
///
/// The cases cg2d and cg3d reconstruct simulated data. Each run creates a new plan: median_ms is the time of E^H d, Q
/// and the iterations, and plan_ms is the median of the plans. Exact sums would take too long, so the error of the
/// image is relative to the same iterations in double precision with a tolerance of 1e-9.
///
/// The case exact measures exact sums on a part of the stone case. It adds the key gpairs_per_s: 10^9 pairs of a sample
/// and a voxel per second, measured on that part, not extrapolated.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    recon bench stone --operation adjoint --tolerance 1e-3 --tolerance 1e-5 --threads 2 --json")]
pub struct BenchArgs {
    /// Case to measure
    #[arg(value_enum)]
    case: BenchCase,

    /// Print one JSON object per line, with the keys case, backend, device, threads, method, tolerance, error, plan_ms,
    /// median_ms, runs, host_bytes, device_bytes, and operation, precision, simd, samples, voxels, coils
    #[arg(long)]
    json: bool,

    /// Transform to measure; not used by cg2d and cg3d
    #[arg(long, value_enum, default_value_t = Operation::Adjoint)]
    operation: Operation,

    /// Requested relative l2 error; may be given several times [default: 0.00001]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    tolerance: Vec<f64>,

    /// Number of CPU threads; 0 means all hardware threads
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,

    /// Number of timed runs
    #[arg(long, value_name = "N", default_value_t = RUNS)]
    runs: usize,

    /// Method of the sums; the case exact always uses exact
    #[arg(long, value_enum, default_value_t = MethodKind::Nufft)]
    method: MethodKind,

    /// Device: auto, cpu, cuda, or a list such as cuda:0,1
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: DeviceChoice,

    /// Level of the processor's vector unit; levels other than auto override the environment variable RECON_SIMD
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = SimdKind::Auto)]
    simd: SimdKind,

    /// Precision of the computation
    #[arg(long, value_enum, default_value_t = PrecisionKind::F32)]
    precision: PrecisionKind,
}

/// A case with its size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum BenchCase {
    /// 3D, 555 spokes of 512 samples to 128^3 (Stone et al. 2008)
    Stone,
    /// 504 spokes of 512 samples to 256^2
    Radial2d,
    /// 17 blades of 24 lines of 960 samples, scan matrix 256, to 512^2 (Yang et al. 2013)
    Propeller,
    /// 3D, 16384 spokes of 512 samples (8.4 million) to 256^3
    Large3d,
    /// 4096 samples of the stone case to 128^3 by exact sums
    Exact,
    /// 504 spokes of 512 samples, 8 coils with maps, to 256^2, 30 CG iterations
    Cg2d,
    /// The stone case, 60 CG iterations
    Cg3d,
}

/// The direction of the transform.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Operation {
    /// From samples to the image
    Adjoint,
    /// From the image to samples
    Forward,
}

pub fn run(args: &BenchArgs) -> Result<()> {
    if args.runs == 0 {
        bail!(InvalidArgument, "--runs is 0: at least one is needed");
    }
    in_precision!(args.precision, measure(args))
}

/// The problem of a case.
struct BenchSetup<T: Real> {
    dims: Vec<usize>,
    k: Vec<Vec<T>>,
    coils: usize,
    /// The number of CG iterations; 0 for transforms.
    iterations: usize,
}

impl<T: Real> BenchSetup<T> {
    fn new(case: BenchCase) -> Result<Self> {
        let (dims, trajectory) = match case {
            BenchCase::Stone | BenchCase::Exact | BenchCase::Cg3d => (vec![128; 3], Trajectory::radial3d(555, 512)?),
            BenchCase::Radial2d | BenchCase::Cg2d => {
                (vec![256; 2], Trajectory::radial2d(504, 512, SpokeOrder::Linear)?)
            }
            BenchCase::Propeller => (vec![512; 2], Trajectory::propeller_scan(17, 24, 960, 256)?),
            BenchCase::Large3d => (vec![256; 3], Trajectory::radial3d(16384, 512)?),
        };
        let mut k: Vec<Vec<T>> = (0..dims.len()).map(|axis| trajectory.axis_as(axis)).collect();
        if case == BenchCase::Exact {
            let chosen = choose(&mut uniform(1), trajectory.samples(), 4096);
            k = k.iter().map(|k| chosen.iter().map(|&m| k[m]).collect()).collect();
        }
        let (coils, iterations) = match case {
            BenchCase::Cg2d => (8, 30),
            BenchCase::Cg3d => (1, 60),
            _ => (1, 0),
        };
        Ok(BenchSetup { dims, k, coils, iterations })
    }

    fn slices(&self) -> Vec<&[T]> {
        self.k.iter().map(|k| &k[..]).collect()
    }

    fn samples(&self) -> usize {
        self.k[0].len()
    }

    fn voxels(&self) -> usize {
        self.dims.iter().product()
    }
}

/// Returns `count` complex numbers with parts in (-0.5, 0.5].
fn random_complexes<T: Real>(random: &mut impl FnMut() -> f64, count: usize) -> Result<Vec<Complex<T>>> {
    let mut out = zeros(count)?;
    let mut part = || T::of(random() - 0.5);
    out.iter_mut().for_each(|z| *z = Complex::new(part(), part()));
    Ok(out)
}

/// Returns `count` different indices below `n` in ascending order; all indices if `n` is not larger.
fn choose(random: &mut impl FnMut() -> f64, n: usize, count: usize) -> Vec<usize> {
    if count >= n {
        return (0..n).collect();
    }
    let mut set = std::collections::BTreeSet::new();
    while set.len() < count {
        set.insert((((1.0 - random()) * n as f64) as usize).min(n - 1));
    }
    set.into_iter().collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    0.5 * (values[(n - 1) / 2] + values[n / 2])
}

fn wide<T: Real>(values: &[T]) -> Vec<f64> {
    values.iter().map(|v| v.wide()).collect()
}

fn wide_complex<T: Real>(values: &[Complex<T>]) -> Vec<Complex<f64>> {
    values.iter().map(|z| Complex::new(z.re.wide(), z.im.wide())).collect()
}

/// Returns the relative l2 distance from exact values.
fn distance<T: Real>(values: impl Iterator<Item = Complex<T>>, exact: &[Complex<f64>]) -> f64 {
    let (mut error, mut norm) = (0.0, 0.0);
    for (z, e) in values.zip(exact) {
        error += (Complex::new(z.re.wide(), z.im.wide()) - e).norm_sqr();
        norm += e.norm_sqr();
    }
    (error / norm).sqrt()
}

/// The measurements of one tolerance.
struct BenchResult {
    tolerance: f64,
    error: f64,
    plan_ms: f64,
    median_ms: f64,
    info: PlanInfo,
}

fn measure<T: Real>(args: &BenchArgs) -> Result<()> {
    let setup = BenchSetup::<T>::new(args.case)?;
    let tolerances = if args.tolerance.is_empty() { vec![TOLERANCE] } else { args.tolerance.clone() };
    let options: Vec<Options> = tolerances
        .iter()
        .map(|&tolerance| Options {
            method: if args.case == BenchCase::Exact { Method::Exact } else { args.method.into() },
            device: args.device.0.clone(),
            tolerance,
            threads: args.threads,
            simd: args.simd.into(),
            ..Options::default()
        })
        .collect();
    if let Some(bad) = tolerances.iter().find(|&&t| !(t > 0.0 && t < 1.0)) {
        bail!(ToleranceOutOfRange, "--tolerance is {bad}: it must be between 0 and 1");
    }
    let progress = ProgressIndicator::new(tolerances.len() * (args.runs + 1), "measuring");
    let rows = match setup.iterations {
        0 => measure_transforms(args, &setup, &options, &progress)?,
        _ => measure_solutions(args, &setup, &options, &progress)?,
    };
    drop(progress);
    if !args.json {
        say("tolerance     error       plan ms    median ms      host MiB  method  device")?;
    }
    for row in &rows {
        print(args, &setup, row)?;
    }
    Ok(())
}

fn measure_transforms<T: Real>(
    args: &BenchArgs,
    setup: &BenchSetup<T>,
    options: &[Options],
    progress: &ProgressIndicator,
) -> Result<Vec<BenchResult>> {
    let (samples, voxels) = (setup.samples(), setup.voxels());
    let adjoint = args.operation == Operation::Adjoint;
    let mut random = uniform(2);
    let input = random_complexes::<T>(&mut random, if adjoint { samples } else { voxels })?;
    let mut output = zeros::<T>(if adjoint { voxels } else { samples })?;
    let checked = choose(&mut random, output.len(), CHECKED_OUTPUTS);
    let mut exact: Option<Vec<Complex<f64>>> = None;
    let mut rows = Vec::new();
    for (n, options) in options.iter().enumerate() {
        let plan = Plan::new(&Geometry::new(&setup.dims, &setup.slices()), options)?;
        let mut seconds = Vec::with_capacity(args.runs);
        for run in 0..=args.runs {
            let started = Instant::now();
            match args.operation {
                Operation::Adjoint => plan.adjoint(&input, &mut output)?,
                Operation::Forward => plan.forward(&input, &mut output)?,
            }
            if run > 0 {
                seconds.push(started.elapsed().as_secs_f64());
            }
            progress.set(n * (args.runs + 1) + run + 1);
        }
        if exact.is_none() {
            exact = Some(exact_outputs(args, setup, &input, &checked)?);
        }
        let error = distance(checked.iter().map(|&i| output[i]), exact.as_deref().unwrap_or_default());
        let info = plan.info();
        rows.push(BenchResult {
            tolerance: options.tolerance,
            error,
            plan_ms: 1e3 * info.seconds,
            median_ms: 1e3 * median(seconds),
            info,
        });
    }
    Ok(rows)
}

/// Computes the outputs at the indices `checked` by exact sums in double precision.
fn exact_outputs<T: Real>(
    args: &BenchArgs,
    setup: &BenchSetup<T>,
    input: &[Complex<T>],
    checked: &[usize],
) -> Result<Vec<Complex<f64>>> {
    let simd = args.simd.into();
    let options = Options { method: Method::Exact, threads: args.threads, simd, ..Options::default() };
    let input = wide_complex(input);
    let mut out = zeros::<f64>(checked.len())?;
    match args.operation {
        Operation::Adjoint => {
            let k: Vec<Vec<f64>> = setup.k.iter().map(|k| wide(k)).collect();
            let k: Vec<&[f64]> = k.iter().map(|k| &k[..]).collect();
            let mut stride = 1;
            let mut lists: Vec<Vec<f64>> = Vec::new();
            for &n in &setup.dims {
                lists.push(checked.iter().map(|&i| (i / stride % n) as f64 - (n / 2) as f64).collect());
                stride *= n;
            }
            let mut geometry = Geometry::new(&setup.dims, &k);
            geometry.voxels = Some(lists.iter().map(|l| &l[..]).collect());
            Plan::new(&geometry, &options)?.adjoint(&input, &mut out)?;
        }
        Operation::Forward => {
            let select = |k: &Vec<T>| checked.iter().map(|&m| k[m].wide()).collect::<Vec<f64>>();
            let k: Vec<Vec<f64>> = setup.k.iter().map(select).collect();
            let k: Vec<&[f64]> = k.iter().map(|k| &k[..]).collect();
            Plan::new(&Geometry::new(&setup.dims, &k), &options)?.forward(&input, &mut out)?;
        }
    }
    Ok(out)
}

fn measure_solutions<T: Real>(
    args: &BenchArgs,
    setup: &BenchSetup<T>,
    options: &[Options],
    progress: &ProgressIndicator,
) -> Result<Vec<BenchResult>> {
    let axes: Vec<Vec<f64>> = setup.k.iter().map(|k| wide(k)).collect();
    let axes: Vec<&[f64]> = axes.iter().map(|k| &k[..]).collect();
    let ndim = setup.dims.len();
    let phantom = if ndim == 2 { Phantom::shepp_logan_2d() } else { Phantom::shepp_logan_3d() };
    let coils = (setup.coils > 1).then(|| CoilModel::ring(setup.coils, ndim)).transpose()?;
    let kspace = phantom.kspace(&setup.dims, &axes, coils.as_ref(), args.threads)?;
    let maps = coils.as_ref().map(|c| c.maps(&setup.dims)).transpose()?;
    let narrow = |z: &Complex<f64>| Complex::new(T::of(z.re), T::of(z.im));
    let kspace: Vec<Complex<T>> = kspace.iter().map(narrow).collect();
    let maps: Option<Vec<Complex<T>>> = maps.map(|m| m.iter().map(narrow).collect());

    let mut rows = Vec::new();
    let mut image = zeros::<T>(setup.voxels())?;
    let mut solutions = Vec::new();
    for (n, options) in options.iter().enumerate() {
        let (mut plans, mut seconds) = (Vec::new(), Vec::new());
        let mut info = None;
        for run in 0..=args.runs {
            let started = Instant::now();
            let mut geometry = Geometry::new(&setup.dims, &setup.slices()).coils(setup.coils);
            geometry.coil_maps = maps.as_deref();
            let plan = Plan::new(&geometry, options)?;
            let planned = started.elapsed().as_secs_f64();
            let cg = CgOptions { iterations: setup.iterations, ..CgOptions::default() };
            plan.cg(&kspace, &mut image, &cg)?;
            if run > 0 {
                plans.push(planned);
                seconds.push(started.elapsed().as_secs_f64() - planned);
            }
            info = Some(plan.info());
            progress.set(n * (args.runs + 1) + run + 1);
        }
        solutions.push(image.clone());
        if let Some(info) = info {
            rows.push(BenchResult {
                tolerance: options.tolerance,
                error: 0.0,
                plan_ms: 1e3 * median(plans),
                median_ms: 1e3 * median(seconds),
                info,
            });
        }
    }
    let exact = reference(args, setup, &axes, &kspace, maps.as_deref())?;
    for (row, solution) in rows.iter_mut().zip(&solutions) {
        row.error = distance(solution.iter().copied(), &exact);
    }
    Ok(rows)
}

/// Computes the same iterations in double precision with a tolerance of 1e-9.
fn reference<T: Real>(
    args: &BenchArgs,
    setup: &BenchSetup<T>,
    axes: &[&[f64]],
    kspace: &[Complex<T>],
    maps: Option<&[Complex<T>]>,
) -> Result<Vec<Complex<f64>>> {
    let maps = maps.map(wide_complex);
    let mut geometry = Geometry::new(&setup.dims, axes).coils(setup.coils);
    geometry.coil_maps = maps.as_deref();
    let options = Options { tolerance: 1e-9, threads: args.threads, simd: args.simd.into(), ..Options::default() };
    let mut image = zeros::<f64>(setup.voxels())?;
    let cg = CgOptions { iterations: setup.iterations, ..CgOptions::default() };
    Plan::new(&geometry, &options)?.cg(&wide_complex(kspace), &mut image, &cg)?;
    Ok(image)
}

fn name<V: ValueEnum>(value: V) -> String {
    value.to_possible_value().map(|v| v.get_name().to_owned()).unwrap_or_default()
}

fn print<T: Real>(args: &BenchArgs, setup: &BenchSetup<T>, row: &BenchResult) -> Result<()> {
    let info = &row.info;
    let pairs = setup.samples() as f64 * setup.voxels() as f64 / (1e6 * row.median_ms);
    if !args.json {
        let rate = if info.method == Method::Exact { format!("  {pairs:.2} G pairs/s") } else { String::new() };
        return say(&format!(
            "{:<10.1e} {:>9.2e} {:>12.2} {:>12.3} {:>13.1}  {:<6}  {} ({}, {} threads){rate}",
            row.tolerance,
            row.error,
            row.plan_ms,
            row.median_ms,
            info.host_bytes as f64 / (1 << 20) as f64,
            info.method.name(),
            info.device,
            info.simd,
            info.threads
        ));
    }
    let operation = if setup.iterations > 0 { "cg".to_owned() } else { name(args.operation) };
    let mut object = serde_json::json!({
        "case": name(args.case),
        "backend": if info.on_gpu { "cuda" } else { "cpu" },
        "device": info.device,
        "threads": info.threads,
        "method": info.method.name(),
        "tolerance": row.tolerance,
        "error": row.error,
        "plan_ms": row.plan_ms,
        "median_ms": row.median_ms,
        "runs": args.runs,
        "host_bytes": info.host_bytes,
        "device_bytes": info.device_bytes,
        "operation": operation,
        "precision": T::NAME,
        "simd": info.simd,
        "samples": setup.samples(),
        "voxels": setup.voxels(),
        "coils": setup.coils,
    });
    if info.method == Method::Exact {
        object["gpairs_per_s"] = pairs.into();
    }
    say(&object.to_string())
}
