//! `recon simulate`.

use crate::io::cfl::pair;
use crate::io::ismrmrd::{Encoding, Header, Limits, Space, TrajectoryKind};
use crate::io::{write_cfl, write_dataset, Dataset, FileUse, Format, Image, Noise, Placement, Scan, ScanIndex};
use crate::options::{checked_sizes, MatrixChoice, TimeArgs};
use crate::run::off_resonance::{image_of, smooth_map, Quantity};
use crate::run::output::{check_outputs, files_of, image_files, write_images};
use clap::ValueEnum;
use recon::atomic_file::{whole, AtomicFiles};
use recon::bail;
use recon::error::{checked_product, try_vec};
use recon::phantom::{noise_deviation, uniform, white_noise, CoilModel, Phantom};
use recon::simulated_scan::{phantom_kspace, subdivision};
use recon::trajectory::SpokeOrder;
use recon::{CoilMatrix, Complex, Density, Geometry, Method, Options, Plan, Result, RigidMotion, Trajectory};
use std::f64::consts::PI;
use std::path::{Path, PathBuf};

/// Simulates a scan of the Shepp-Logan phantom
///
/// k-space is that of the continuous phantom (analytic Fourier transforms of its ellipses, or ellipsoids in 3D), seen
/// by coils around the field of view, with white noise if wanted; the voxels are 1 mm wide. --matrix with two sizes
/// makes a 2D scan, with three a 3D one.
///
/// With off-resonance or decay (--off-resonance, --field-map, --decay-map) k-space is a direct sum over small boxes of
/// the phantom, 4 a voxel and axis in 2D and 2 in 3D, with maps interpolated between voxels. Times of samples are
/// those of --dwell and --readout-start, and begin anew in each shot. It takes a time of samples times boxes: seconds
/// in 2D, long in 3D.
///
/// Defaults of shots and samples sample k-space fully. With n the largest size along x and y: radial and golden-angle
/// pi/2 n spokes of 2 n samples; stack of stars the same in each of nz partitions; kooshball pi/2 n^2 spokes of 2 n;
/// spiral 16 interleaves of n/32 turns; rosette n/2 shots of 5 radial and 3 angular oscillations; propeller blades of
/// 16 lines of n samples.
#[derive(clap::Args)]
#[command(after_help = "Example: 96 spokes of a 2D scan with 8 coils, and what should come of it:\n  \
    recon simulate --matrix 256,256 --trajectory radial --shots 96 --coils 8 --snr 20 --truth truth.h5 -o scan.h5")]
pub struct SimulateArgs {
    /// Voxels of the image
    #[arg(long, value_name = "NX,NY[,NZ]")]
    matrix: MatrixChoice,

    /// Where samples are taken
    #[arg(long, value_enum, default_value_t = Kind::Radial, help_heading = "Trajectory")]
    trajectory: Kind,

    /// Spokes (of each partition), interleaves, rosettes or blades
    #[arg(long, value_name = "N", help_heading = "Trajectory")]
    shots: Option<usize>,

    /// Samples of each spoke, interleaf, rosette, or line of a blade
    #[arg(long, value_name = "N", help_heading = "Trajectory")]
    samples: Option<usize>,

    /// Partitions of a stack of stars, evenly spaced along kz
    #[arg(long, value_name = "N", help_heading = "Trajectory")]
    partitions: Option<usize>,

    /// Turns of each spiral interleaf
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Trajectory")]
    turns: Option<f64>,

    /// Spirals: the radius grows with this power of the time; 1 is Archimedean, more samples the centre more densely
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Trajectory")]
    exponent: Option<f64>,

    /// Lines of each propeller blade
    #[arg(long, value_name = "N", help_heading = "Trajectory")]
    lines: Option<usize>,

    /// Motion between propeller blades: each sees the phantom turned by up to so many degrees, and moved by up to so
    /// many voxels along x and y; the mean of all blades is the phantom where it is. -v tells the motion of each blade
    #[arg(long, value_name = "DEGREES,VOXELS", value_parser = parse_motion, help_heading = "Trajectory")]
    motion: Option<[f64; 2]>,

    /// Radial oscillations of each rosette
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Trajectory")]
    radial: Option<f64>,

    /// Turns of each rosette
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Trajectory")]
    angular: Option<f64>,

    /// Receive coils; 1: of uniform sensitivity
    #[arg(long, value_name = "N", default_value_t = 1)]
    coils: usize,

    /// Root mean square of the samples over that of the noise; without noise if not given
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    snr: Option<f64>,

    /// Share of each coil's noise that is added to the next coil's
    #[arg(long, value_name = "X", default_value_t = 0.0, requires = "snr", allow_negative_numbers = true)]
    coupling: f64,

    /// Deviation of the last coil's noise over the first's; those of the coils between are in even steps
    #[arg(long, value_name = "X", default_value_t = 1.0, requires = "snr", allow_negative_numbers = true)]
    noise_gain: f64,

    /// Write a noise scan too, of so many samples of the same noise (ISMRMRD only)
    #[arg(long, value_name = "N", default_value_t = 0, requires = "snr")]
    noise_samples: usize,

    /// Seed of the noise: the same seed makes the same noise everywhere
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Write ramp density weights, as --density ramp of recon grid has them, as the last component of the trajectory
    /// (ISMRMRD only; radial trajectories, stacks of stars, spirals of exponent 1)
    #[arg(long)]
    weights: bool,

    #[arg(long, value_name = "FILE", help = FileUse::ReadImages.help("Off-resonance in Hz: a map of this matrix"))]
    #[arg(help_heading = "Off-resonance", conflicts_with = "off_resonance")]
    field_map: Option<PathBuf>,

    /// Off-resonance of a smooth map, so many Hz in a bump at the front and minus half as many far from it
    #[arg(long, value_name = "HZ", allow_negative_numbers = true, help_heading = "Off-resonance")]
    off_resonance: Option<f64>,

    #[arg(help = FileUse::ReadImages.help("Decay rates R2* in 1/s: a map of this matrix"))]
    #[arg(long, value_name = "FILE", help_heading = "Off-resonance")]
    decay_map: Option<PathBuf>,

    #[arg(help = FileUse::WriteComplexImages.help(WRITTEN_MAP))]
    #[arg(long, value_name = "FILE", help_heading = "Off-resonance")]
    write_field_map: Option<PathBuf>,

    #[command(flatten)]
    times: TimeArgs,

    /// Echo times in seconds: a scan of several contrasts, of which each has all shots, and whose readouts begin at
    /// these times after the excitation (ISMRMRD only)
    #[arg(long, value_name = "S,S[,S...]", value_delimiter = ',', allow_negative_numbers = true)]
    #[arg(help_heading = "Off-resonance", conflicts_with = "readout_start")]
    echo_times: Vec<f64>,

    /// Write the true image: the phantom, times the root of the coils' sum of squares where there are several coils
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,

    #[arg(help = FileUse::WriteComplexImages.help("Write coil maps, [voxels, coils], of unit root sum of squares"))]
    #[arg(long, value_name = "FILE")]
    maps: Option<PathBuf>,

    #[arg(short, long, value_name = "FILE", help = output_help())]
    output: PathBuf,
}

const WRITTEN_MAP: &str = "Write the field map of the scan (of --off-resonance or --field-map) on its matrix, for \
                           --field-map of a reconstruction";

fn output_help() -> String {
    format!(
        "Scan to write: an ISMRMRD dataset ({}), or k-space of BART ({}) with the trajectory in NAME_traj.cfl",
        FileUse::WriteDataset.extensions(),
        Format::Bart.extensions()
    )
}

fn parse_motion(text: &str) -> std::result::Result<[f64; 2], String> {
    let parsed: Option<Vec<f64>> = text.split(',').map(|x| x.trim().parse().ok()).collect();
    match parsed.as_deref() {
        Some(&[degrees, voxels]) if (0.0..=180.0).contains(&degrees) && (0.0..1e6).contains(&voxels) => {
            Ok([degrees, voxels])
        }
        _ => Err("two numbers are expected, degrees from 0 to 180 and voxels, such as 10,5".into()),
    }
}

/// Kinds of trajectories.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Kind {
    /// All points of the grid, a line along x a shot
    Cartesian,
    /// Spokes through the centre, in the order of their angles (2D)
    Radial,
    /// Spokes through the centre, turned by the golden angle (2D)
    GoldenAngle,
    /// Spokes through the centre in the order of their angles, the same in each plane of a stack along z (3D)
    StackOfStars,
    /// Spokes through the centre in all directions (3D)
    Kooshball,
    /// Spirals from the centre (2D)
    Spiral,
    /// Rosettes (2D)
    Rosette,
    /// Turned blades of parallel lines (2D)
    Propeller,
}

pub fn run(args: &SimulateArgs) -> Result<()> {
    let MatrixChoice::Sizes(sizes) = &args.matrix else {
        bail!(InvalidArgument, "--matrix: numbers are needed to simulate a scan");
    };
    let matrix = checked_sizes(sizes)?;
    let format = FileUse::WriteRawData.format(&args.output)?;
    let bart = (format == Format::Bart).then(|| trajectory_path(&args.output));
    let mut outputs: Vec<PathBuf> = std::iter::once(&args.output).chain(&bart).flat_map(|p| files_of(p)).collect();
    for path in args.truth.iter().chain(&args.maps).chain(&args.write_field_map) {
        outputs.extend(image_files(path)?);
    }
    check_outputs(&outputs, args.field_map.iter().chain(&args.decay_map))?;
    check_off_resonance(args, bart.is_some())?;
    if args.weights && bart.is_some() {
        bail!(InvalidArgument, "--weights: BART's files have no place for density weights: write an .h5 file");
    }
    if let Some(path) = &args.maps {
        FileUse::WriteComplexImages.format(path).map_err(|e| e.within("coil maps are complex"))?;
    }
    if args.noise_samples > 0 && bart.is_some() {
        bail!(InvalidArgument, "--noise-samples: BART's files have no place for a noise scan: write an .h5 file");
    }
    if !(args.coupling.abs() < 1.0) {
        bail!(InvalidArgument, "--coupling is {}: it must be between -1 and 1", args.coupling);
    }
    if !(args.noise_gain > 0.0 && args.noise_gain.is_finite()) {
        bail!(InvalidArgument, "--noise-gain is {}: it must be above 0", args.noise_gain);
    }
    if (args.coupling != 0.0 || args.noise_gain != 1.0) && args.coils < 2 {
        bail!(InvalidArgument, "--coupling and --noise-gain: a single coil has no neighbour: give more --coils");
    }
    if args.maps.is_some() && args.coils < 2 {
        bail!(InvalidArgument, "--maps: a single coil is of uniform sensitivity: give more --coils");
    }

    let trajectory = trajectory(args, sizes)?;
    let (phantom, ndim) = match sizes.len() {
        2 => (Phantom::shepp_logan_2d(), 2),
        _ => (Phantom::shepp_logan_3d(), 3),
    };
    let coils = match args.coils {
        1 => None,
        n => Some(CoilModel::ring(n, ndim)?),
    };
    log::info!("{} shots of {} samples", trajectory.shots(), trajectory.samples_per_shot());
    let read = |path: &PathBuf, quantity: Quantity| -> Result<Vec<f64>> {
        Ok(quantity.read_one(path, matrix)?.into_iter().map(f64::from).collect())
    };
    let field = match (args.off_resonance, &args.field_map) {
        (Some(hz), _) => Some(smooth_map(matrix, hz)?),
        (None, path) => path.as_ref().map(|path| read(path, Quantity::Field)).transpose()?,
    };
    let decay = args.decay_map.as_ref().map(|path| read(path, Quantity::Decay)).transpose()?;
    let simulate = |start: f64| match args.motion {
        Some(most) => moving(args, &phantom, sizes, &trajectory, coils.as_ref(), most),
        None if args.has_maps() => {
            let times: Vec<f64> = sample_times(args, &trajectory).map(|t| start + t).collect();
            let axes = trajectory.axes();
            let mut geometry = Geometry::new(sizes, &axes);
            geometry.field_map = field.as_deref();
            geometry.decay_map = decay.as_deref();
            geometry.times = Some(&times);
            phantom_kspace(&phantom, &geometry, coils.as_ref(), subdivision(ndim), &Options::default())
        }
        None => phantom.kspace(sizes, &trajectory.axes(), coils.as_ref(), 0),
    };
    let starts = if args.echo_times.is_empty() { vec![args.times.start()] } else { args.echo_times.clone() };
    let mut echoes = starts.into_iter().map(simulate).collect::<Result<Vec<_>>>()?;
    let mut noise_scans = Vec::new();
    if let Some(snr) = args.snr {
        let deviation = noise_deviation(&echoes[0], snr)?;
        log::info!("noise of standard deviation {deviation:.6e}");
        for (echo, kspace) in (0u64..).zip(&mut echoes) {
            // Echoes have different noise.
            let seed = args.seed ^ (echo << 32);
            let noise = array_noise(kspace.len() / args.coils, deviation, seed, args)?;
            kspace.iter_mut().zip(noise).for_each(|(z, noise)| *z += noise);
        }
        if args.noise_samples > 0 {
            let data = single(&array_noise(args.noise_samples, deviation, !args.seed, args)?);
            noise_scans.push(Noise { coils: args.coils, dwell: 0.0, data });
        }
    }
    let truth = args.truth.as_ref().map(|_| phantom.image(sizes, 4)).transpose()?;
    let maps = match (&coils, &args.truth, &args.maps) {
        (Some(coils), t, m) if t.is_some() || m.is_some() => Some(coils.maps(sizes)?),
        _ => None,
    };

    let mut data: Vec<_> = echoes.into_iter().map(|kspace| single(&kspace)).collect();
    whole(|files| {
        match &bart {
            Some(path) => write_bart(files, args, path, matrix, &trajectory, data.remove(0))?,
            None => write_ismrmrd(files, args, matrix, ndim, &trajectory, data, noise_scans)?,
        }
        let voxels = matrix.iter().product();
        let root = |i: usize| maps.as_ref().map_or(1.0, |m| root_of_squares(m, voxels, i));
        if let (Some(path), Some(truth)) = (&args.truth, truth) {
            let data = truth.iter().enumerate().map(|(i, t)| Complex::new((t * root(i)) as f32, 0.0)).collect();
            write_images(files, path, &[image(matrix, 1, data)?])?;
        }
        if let (Some(path), Some(map)) = (&args.write_field_map, &field) {
            let mut image = image_of(matrix, map)?;
            image.fov_mm = matrix.map(|n| n as f32);
            write_images(files, path, &[image])?;
        }
        if let (Some(path), Some(maps)) = (&args.maps, &maps) {
            let maps = maps.iter().enumerate().map(|(i, s)| s / root(i % voxels));
            write_images(files, path, &[image(matrix, args.coils, single(&maps.collect::<Vec<_>>()))?])?;
        }
        Ok(())
    })
}

impl SimulateArgs {
    /// Whether there is off-resonance or decay.
    fn has_maps(&self) -> bool {
        self.field_map.is_some() || self.off_resonance.is_some() || self.decay_map.is_some()
    }
}

/// Refuses options of off-resonance that lack others, or contradict.
fn check_off_resonance(args: &SimulateArgs, bart: bool) -> Result<()> {
    args.times.check()?;
    if let Some(hz) = args.off_resonance.filter(|hz| !hz.is_finite()) {
        bail!(InvalidArgument, "--off-resonance is {hz}: it must be a number of Hz");
    }
    if let Some(path) = &args.write_field_map {
        FileUse::WriteComplexImages.format(path).map_err(|e| e.within("a map has negative numbers"))?;
    }
    if args.write_field_map.is_some() && args.off_resonance.is_none() && args.field_map.is_none() {
        bail!(
            InvalidArgument,
            "--write-field-map: there is no field map to write: give --off-resonance or --field-map"
        );
    }
    if let Some(time) = args.echo_times.iter().find(|t| !t.is_finite()) {
        bail!(InvalidArgument, "--echo-times: {time} is not a number of seconds");
    }
    if args.echo_times.len() > usize::from(u16::MAX) {
        bail!(InvalidArgument, "--echo-times: {} echoes are more than a file can number", args.echo_times.len());
    }
    if bart && !args.echo_times.is_empty() {
        bail!(InvalidArgument, "--echo-times: BART's files have no place for echo times: write an .h5 file");
    }
    if !args.has_maps() {
        if !args.echo_times.is_empty() {
            bail!(InvalidArgument, "--echo-times goes with a map: give --off-resonance, --field-map or --decay-map");
        }
        if args.times.readout_start.is_some() {
            bail!(InvalidArgument, "--readout-start goes with a map: give --off-resonance, --field-map or --decay-map");
        }
        if bart && args.times.dwell.is_some() {
            bail!(InvalidArgument, "--dwell: BART's files have no place for a sample time: write an .h5 file");
        }
        return Ok(());
    }
    if args.times.dwell.is_none() {
        bail!(
            InvalidArgument,
            "off-resonance and decay need the times of samples: give --dwell, the microseconds from one sample of a \
             shot to the next"
        );
    }
    if args.motion.is_some() {
        bail!(InvalidArgument, "--motion: a phantom with off-resonance or decay is simulated at rest: leave one out");
    }
    Ok(())
}

/// Seconds from the first sample of its shot to each sample; zero where no --dwell is given.
fn sample_times(args: &SimulateArgs, trajectory: &Trajectory) -> impl Iterator<Item = f64> {
    let (dwell, per_shot) = (args.times.dwell().unwrap_or(0.0), trajectory.samples_per_shot());
    (0..trajectory.samples()).map(move |m| dwell * (m % per_shot) as f64)
}

/// The k-space of a phantom that moves between the blades.
fn moving(
    args: &SimulateArgs,
    phantom: &Phantom,
    sizes: &[usize],
    trajectory: &Trajectory,
    coils: Option<&CoilModel>,
    [degrees, voxels]: [f64; 2],
) -> Result<Vec<Complex<f64>>> {
    let &[n, other] = sizes else { bail!(InvalidArgument, "--motion is for --trajectory propeller, which is 2D") };
    if n != other {
        bail!(InvalidArgument, "--motion: a matrix of {n} x {other} voxels: the motion is simulated for square ones");
    }
    let of_blade = lines_of(args, trajectory.samples_per_shot()) * trajectory.samples_per_shot();
    let samples = trajectory.samples();
    // Uniform in (-1, 1), another sequence than that of the noise.
    let mut random = uniform(args.seed ^ 0x6d6f_7469_6f6e);
    let mut between = move |most: f64| (2.0 * random() - 1.0) * most;
    let one = |_| RigidMotion { angle: between(degrees).to_radians(), translation: [between(voxels), between(voxels)] };
    let mut motions: Vec<RigidMotion> = (0..samples / of_blade).map(one).collect();
    RigidMotion::centre(&mut motions);
    let len = checked_product(&[samples, args.coils], "the k-space of a phantom")?;
    let mut kspace = try_vec(len, Complex::default(), "the k-space of a phantom")?;
    for (b, motion) in motions.iter().enumerate() {
        let [x, y] = motion.translation;
        log::info!("blade {b}: turned by {:.3} degrees, moved by {x:.3}, {y:.3} voxels", motion.angle.to_degrees());
        let own = b * of_blade..(b + 1) * of_blade;
        let axes: Vec<&[f64]> = trajectory.axes().into_iter().map(|k| &k[own.clone()]).collect();
        let blade = phantom.moved(n, motion)?.kspace(sizes, &axes, coils, 0)?;
        for (to, from) in kspace.chunks_exact_mut(samples).zip(blade.chunks_exact(of_blade)) {
            to[own.clone()].copy_from_slice(from);
        }
    }
    Ok(kspace)
}

/// The noise of an array, [samples, coils]: of white noise of this deviation a share of each coil's is added to the
/// next coil's, and coils have gains.
fn array_noise(samples: usize, deviation: f64, seed: u64, args: &SimulateArgs) -> Result<Vec<Complex<f64>>> {
    let coils = args.coils;
    let mut white = try_vec(checked_product(&[samples, coils], "the noise")?, Complex::default(), "the noise")?;
    white.iter_mut().zip(white_noise(deviation, seed)).for_each(|(to, noise)| *to = noise);
    if args.coupling == 0.0 && args.noise_gain == 1.0 {
        return Ok(white);
    }
    let gain = |c: usize| 1.0 + (args.noise_gain - 1.0) * c as f64 / (coils - 1) as f64;
    let mut entries = vec![Complex::default(); coils * coils];
    for c in 0..coils {
        let next = (c + 1) % coils;
        entries[c * coils + c] += gain(c);
        entries[c * coils + next] += args.coupling * gain(next);
    }
    let mut noise = try_vec(white.len(), Complex::default(), "the noise")?;
    CoilMatrix::new(coils, coils, entries)?.apply(samples, &white, &mut noise)?;
    Ok(noise)
}

/// Numbers as files hold them.
fn single(z: &[Complex<f64>]) -> Vec<Complex<f32>> {
    z.iter().map(|z| Complex::new(z.re as f32, z.im as f32)).collect()
}

fn root_of_squares(maps: &[Complex<f64>], voxels: usize, voxel: usize) -> f64 {
    maps[voxel..].iter().step_by(voxels).map(|z| z.norm_sqr()).sum::<f64>().sqrt()
}

fn image(matrix: [usize; 3], channels: usize, data: Vec<Complex<f32>>) -> Result<Image> {
    let mut image = Image::new(matrix, channels, data)?;
    image.fov_mm = matrix.map(|n| n as f32);
    Ok(image)
}

fn trajectory(args: &SimulateArgs, sizes: &[usize]) -> Result<Trajectory> {
    let given = [
        ("--shots", args.shots.is_some()),
        ("--samples", args.samples.is_some()),
        ("--partitions", args.partitions.is_some()),
        ("--turns", args.turns.is_some()),
        ("--exponent", args.exponent.is_some()),
        ("--lines", args.lines.is_some()),
        ("--motion", args.motion.is_some()),
        ("--radial", args.radial.is_some()),
        ("--angular", args.angular.is_some()),
    ];
    let (used, ndim): (&[&str], Option<usize>) = match args.trajectory {
        Kind::Cartesian => (&[], None),
        Kind::Radial | Kind::GoldenAngle => (&["--shots", "--samples"], Some(2)),
        Kind::StackOfStars => (&["--shots", "--samples", "--partitions"], Some(3)),
        Kind::Kooshball => (&["--shots", "--samples"], Some(3)),
        Kind::Spiral => (&["--shots", "--samples", "--turns", "--exponent"], Some(2)),
        Kind::Rosette => (&["--shots", "--samples", "--radial", "--angular"], Some(2)),
        Kind::Propeller => (&["--shots", "--samples", "--lines", "--motion"], Some(2)),
    };
    let kind = args.trajectory.to_possible_value().map(|v| v.get_name().to_owned()).unwrap_or_default();
    if let Some((name, _)) = given.iter().find(|(name, given)| *given && !used.contains(name)) {
        bail!(InvalidArgument, "{name} is no parameter of a {kind} trajectory");
    }
    if let Some(ndim) = ndim.filter(|&n| n != sizes.len()) {
        bail!(InvalidArgument, "a {kind} trajectory is {ndim}D: give --matrix {ndim} sizes, not {}", sizes.len());
    }
    let n = *sizes.iter().max().unwrap_or(&1);
    let up = |x: f64| (x.ceil() as usize).max(1);
    let samples = |default: usize| args.samples.unwrap_or(default);
    match args.trajectory {
        Kind::Cartesian => Trajectory::cartesian(sizes),
        Kind::StackOfStars => {
            let n = sizes[0].max(sizes[1]);
            let spokes = args.shots.unwrap_or(up(0.5 * PI * n as f64));
            let partitions = args.partitions.unwrap_or(sizes[2]);
            Trajectory::stack_of_stars(spokes, samples(2 * n), partitions, SpokeOrder::Linear)
        }
        Kind::Radial | Kind::GoldenAngle => {
            let order = if args.trajectory == Kind::Radial { SpokeOrder::Linear } else { SpokeOrder::GoldenAngle };
            Trajectory::radial2d(args.shots.unwrap_or(up(0.5 * PI * n as f64)), samples(2 * n), order)
        }
        Kind::Kooshball => {
            Trajectory::radial3d(args.shots.unwrap_or(up(0.5 * PI * n as f64 * n as f64)), samples(2 * n))
        }
        Kind::Spiral => {
            let shots = args.shots.unwrap_or(16);
            let turns = args.turns.unwrap_or_else(|| (n as f64 / (2.0 * shots.max(1) as f64)).max(1.0));
            Trajectory::spiral(shots, samples(up(PI * n as f64 * turns)), turns, args.exponent.unwrap_or(1.0))
        }
        Kind::Rosette => {
            let (radial, angular) = (args.radial.unwrap_or(5.0), args.angular.unwrap_or(3.0));
            let shots = args.shots.unwrap_or(n.div_ceil(2));
            Trajectory::rosette(shots, samples(up(PI * n as f64 * (radial + angular))), radial, angular)
        }
        Kind::Propeller => {
            let samples = samples(n);
            let lines = lines_of(args, samples);
            let shots = args.shots.unwrap_or(up(0.5 * PI * samples as f64 / lines.max(1) as f64));
            Trajectory::propeller(shots, lines, samples)
        }
    }
}

/// Lines of a propeller blade whose lines have so many samples.
fn lines_of(args: &SimulateArgs, samples: usize) -> usize {
    args.lines.unwrap_or(16.min(samples / 2).max(1))
}

fn write_ismrmrd(
    files: &mut AtomicFiles,
    args: &SimulateArgs,
    matrix: [usize; 3],
    ndim: usize,
    trajectory: &Trajectory,
    echoes: Vec<Vec<Complex<f32>>>,
    noise: Vec<Noise>,
) -> Result<()> {
    let coordinates: Vec<Vec<f32>> = (0..ndim).map(|axis| trajectory.axis_as::<f32>(axis)).collect();
    let weights = match args.weights {
        true => {
            let k: Vec<&[f32]> = coordinates.iter().map(|k| &k[..]).collect();
            let options = Options { method: Method::Exact, ..Options::default() };
            // The weights depend on the trajectory only; exact sums make the smallest plan.
            Some(Plan::new(&Geometry::new(&matrix[..ndim], &k), &options)?.density(Density::Ramp)?)
        }
        false => None,
    };
    let space = Space { matrix, fov_mm: matrix.map(|n| n as f32) };
    let shots = trajectory.shots();
    let last = (shots - 1).min(u16::MAX as usize) as u16;
    let header = Header {
        encodings: vec![Encoding {
            encoded: space,
            recon: space,
            trajectory: match args.trajectory {
                Kind::Cartesian => TrajectoryKind::Cartesian,
                Kind::Radial | Kind::StackOfStars | Kind::Kooshball => TrajectoryKind::Radial,
                Kind::GoldenAngle => TrajectoryKind::GoldenAngle,
                Kind::Spiral => TrajectoryKind::Spiral,
                Kind::Rosette | Kind::Propeller => TrajectoryKind::Other,
            },
            // Every shot has step 0 of the second; Gadgetron reads these limits without a check for their presence.
            steps: [
                Some(Limits { minimum: 0, maximum: last, center: (shots / 2).min(last as usize) as u16 }),
                Some(Limits { minimum: 0, maximum: 0, center: 0 }),
            ],
            parallel: None,
        }],
        receiver_channels: Some(args.coils.min(u16::MAX as usize) as u16),
        noise_bandwidth: None,
        h1_resonance_hz: None,
        echo_times_ms: args.echo_times.iter().map(|t| 1e3 * t).collect(),
    };
    let scan = |(contrast, data): (u16, Vec<Complex<f32>>)| Scan {
        index: ScanIndex { contrast, ..ScanIndex::default() },
        encoded_matrix: matrix,
        recon_matrix: matrix,
        encoded_fov_mm: space.fov_mm,
        recon_fov_mm: space.fov_mm,
        trajectory: header.encodings[0].trajectory,
        ndim,
        coordinates: coordinates.clone(),
        weights: weights.clone(),
        skipped_per_shot: vec![0; shots],
        samples_per_shot: vec![trajectory.samples_per_shot(); shots],
        coils: args.coils,
        data,
        times: sample_times(args, trajectory).map(|t| t as f32).collect(),
        placement: Placement::default(),
        coil_matrix: None,
        noise_level: None,
    };
    let scans = (0..).zip(echoes).map(scan).collect();
    let dataset = Dataset { header, scans, noise, calibration: Vec::new(), uses: Vec::new() };
    write_dataset(files, &args.output, &dataset)
}

/// NAME_traj.cfl beside NAME.cfl.
fn trajectory_path(kspace: &Path) -> PathBuf {
    let mut name = pair(kspace).0.with_extension("").into_os_string();
    name.push("_traj.cfl");
    name.into()
}

fn write_bart(
    files: &mut AtomicFiles,
    args: &SimulateArgs,
    path: &Path,
    matrix: [usize; 3],
    trajectory: &Trajectory,
    data: Vec<Complex<f32>>,
) -> Result<()> {
    let (samples, shots) = (trajectory.samples_per_shot(), trajectory.shots());
    let mut points = Vec::with_capacity(3 * trajectory.samples());
    for m in 0..trajectory.samples() {
        for (axis, &n) in matrix.iter().enumerate() {
            let k = if axis < trajectory.ndim() { trajectory.axis(axis)[m] * n as f64 } else { 0.0 };
            points.push(Complex::new(k as f32, 0.0));
        }
    }
    write_cfl(files, path, &[3, samples, shots], &points)?;
    write_cfl(files, &args.output, &[1, samples, shots, args.coils], &data)
}
