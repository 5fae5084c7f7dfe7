//! `recon simulate`.

mod trajectories;

use self::trajectories::{lines_per_blade, scan_matrix, trajectory, TrajectoryChoice};
use crate::options::{checked_sizes, MatrixChoice, OutputArgs, RawDataFile, TimeArgs};
use crate::run::off_resonance::{image_of, smooth_map, Quantity};
use crate::run::output::{check_outputs, files_of, image_files, write_images};
use crate::run::raw_output::trajectory_path;
use crate::run::streams::write_output;
use recon::atomic_file::AtomicFiles;
use recon::bail;
use recon::error::{checked_product, try_vec};
use recon::phantom::{noise_deviation, uniform, white_noise, CoilModel, Phantom};
use recon::scan::{EncodingLimits, EncodingSpace, Header, HeaderEncoding, TrajectoryKind};
use recon::simulated_scan::{phantom_kspace, subdivision};
use recon::{CoilMatrix, Complex, Density, Geometry, Method, Options, Plan, Result, RigidMotion, Trajectory};
use recon_files::{
    write_cfl, write_dataset, Dataset, FileUse, Format, Image, Noise, Placement, Scan, ScanIndex, TrajectoryStorage,
};
use std::path::{Path, PathBuf};

/// Simulates a scan of the Shepp-Logan phantom
///
/// k-space is that of the continuous phantom: analytic Fourier transforms of its ellipses (ellipsoids in 3D). Coils
/// are placed around the field of view. White noise can be added. Voxels are 1 mm wide. --matrix with two sizes makes a
/// 2D scan, with three sizes a 3D scan.
///
/// With off-resonance or decay (--off-resonance, --field-map, --decay-map) k-space is a direct sum over small boxes of
/// the phantom, 4 per voxel and axis in 2D and 2 in 3D, with maps interpolated between voxels. Sample times follow
/// from --dwell and --readout-start, and begin again in each shot. The time is proportional to samples times boxes:
/// seconds in 2D, long in 3D.
///
/// By default, shots and samples cover k-space fully. With n the largest size along x and y: radial and golden-angle
/// have pi/2 n spokes of 2 n samples, and a stack of stars has the same in each of nz partitions. Kooshball has
/// pi/2 n^2 spokes of 2 n samples. A spiral has 16 interleaves of n/32 turns. A rosette has n/2 shots of 5 radial and 3
/// angular oscillations. A Lissajous curve has the frequencies 1.25 n and 1 more, in n/2 shots. A propeller has blades
/// of 16 lines of n samples, as many as cover the outer circle.
///
/// Without --scan-matrix, the lines of a propeller's blades are 1 / samples of k-space apart, also if --samples is
/// larger than the image. Scanners oversample the readout: with --samples 960 --scan-matrix 256, lines of 960 samples
/// are 1/256 apart.
#[derive(clap::Args)]
#[command(after_help = "Example: 96 spokes of a 2D scan with 8 coils, and the true image:\n  \
    recon simulate --matrix 256,256 --trajectory radial --shots 96 --coils 8 --snr 20 --truth truth.h5 -o scan.h5\n\
    Example: 17 moving blades with an oversampled readout (Yang et al. 2013, Magn. Reson. Imaging 31):\n  \
    recon simulate --matrix 256,256 --trajectory propeller --shots 17 --lines 24 --samples 960 --scan-matrix 256 \
    --motion 10,5 -o blades.h5")]
pub struct SimulateArgs {
    /// Size of the image in voxels
    #[arg(long, value_name = "NX,NY[,NZ]")]
    matrix: MatrixChoice,

    /// Kind of trajectory
    #[arg(long, value_enum, default_value_t = TrajectoryChoice::Radial, help_heading = "Trajectory")]
    trajectory: TrajectoryChoice,

    /// Number of spokes (per partition), interleaves, rosettes, parts of a Lissajous curve, or blades [default: full
    /// sampling, as above]
    #[arg(long, value_name = "N", help_heading = "Trajectory")]
    shots: Option<usize>,

    /// Number of samples per spoke, interleaf, rosette, part of a Lissajous curve, or line of a blade [default: full
    /// sampling, as above]
    #[arg(long, value_name = "N", help_heading = "Trajectory")]
    samples: Option<usize>,

    /// Number of partitions of a stack of stars, evenly spaced along kz [default: the size along z]
    #[arg(long, value_name = "N", help_heading = "Trajectory")]
    partitions: Option<usize>,

    /// Number of turns per spiral interleaf [default: n / (2 shots), at least 1]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Trajectory")]
    turns: Option<f64>,

    /// Power of the time with which the radius of a spiral grows; 1 is Archimedean, above 1 samples the centre more
    /// densely [default: 1]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Trajectory")]
    exponent: Option<f64>,

    /// Numbers of oscillations of the whole Lissajous curve along x and y: without a common factor, one of them even
    /// [default: 1.25 n and 1 more]
    #[arg(long, value_name = "X,Y", value_parser = parse_frequencies, help_heading = "Trajectory")]
    frequencies: Option<[usize; 2]>,

    /// Number of lines per propeller blade [default: 16, at most half the scan matrix]
    #[arg(long, value_name = "N", help_heading = "Trajectory")]
    lines: Option<usize>,

    /// Scan matrix of a propeller: lines of a blade are 1 / N of k-space apart, and the readout is oversampled if
    /// --samples is above N [default: --samples, no oversampling]
    #[arg(long, value_name = "N", help_heading = "Trajectory")]
    scan_matrix: Option<usize>,

    /// Motion between propeller blades: maximum rotation in degrees and maximum translation in voxels along x and y.
    /// The mean position of all blades is that of the phantom. -v prints the motion of each blade
    /// [default: no motion]
    #[arg(long, value_name = "DEGREES,VOXELS", value_parser = parse_motion, help_heading = "Trajectory")]
    motion: Option<[f64; 2]>,

    /// Number of radial oscillations per rosette [default: 5]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Trajectory")]
    radial: Option<f64>,

    /// Number of turns per rosette [default: 3]
    #[arg(long, value_name = "X", allow_negative_numbers = true, help_heading = "Trajectory")]
    angular: Option<f64>,

    /// Store no trajectory: reconstructions compute it from the header and the encoding steps, as for data of most
    /// scanners (ISMRMRD only; Cartesian, radial and golden-angle trajectories, stacks of stars)
    #[arg(long, conflicts_with = "weights", help_heading = "Trajectory")]
    no_trajectory: bool,

    /// Number of receive coils; 1 means a coil of uniform sensitivity
    #[arg(long, value_name = "N", default_value_t = 1)]
    coils: usize,

    /// Ratio of the root mean squares of samples and noise, not in dB [default: no noise]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    snr: Option<f64>,

    /// Fraction of each coil's noise that is added to the next coil
    #[arg(long, value_name = "X", default_value_t = 0.0, requires = "snr", allow_negative_numbers = true)]
    coupling: f64,

    /// Ratio of the noise deviations of the last and the first coil; the deviations in between increase linearly
    #[arg(long, value_name = "X", default_value_t = 1.0, requires = "snr", allow_negative_numbers = true)]
    noise_gain: f64,

    /// Number of samples per coil of a noise scan, which is also written (ISMRMRD only); 0 means no noise scan
    #[arg(long, value_name = "N", default_value_t = 0, requires = "snr")]
    noise_samples: usize,

    /// Seed of the noise; the same seed makes the same noise on every machine
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Write ramp density weights, as of recon grid --density ramp, as the last component of the trajectory (ISMRMRD
    /// only; radial trajectories, stacks of stars, spirals of exponent 1)
    #[arg(long)]
    weights: bool,

    #[arg(long, value_name = "FILE", help = FileUse::ReadImages.help("Map of off-resonance in Hz, of the size of --matrix"))]
    #[arg(help_heading = "Off-resonance", conflicts_with = "off_resonance")]
    field_map: Option<PathBuf>,

    /// Smooth map of off-resonance: HZ in a bump at the front, -HZ/2 far from it
    #[arg(long, value_name = "HZ", allow_negative_numbers = true, help_heading = "Off-resonance")]
    off_resonance: Option<f64>,

    #[arg(help = FileUse::ReadImages.help("Map of decay rates R2* in 1/s, of the size of --matrix"))]
    #[arg(long, value_name = "FILE", help_heading = "Off-resonance")]
    decay_map: Option<PathBuf>,

    #[arg(help = FileUse::WriteComplexImages.help(WRITTEN_MAP))]
    #[arg(long, value_name = "FILE", help_heading = "Off-resonance")]
    write_field_map: Option<PathBuf>,

    #[command(flatten)]
    times: TimeArgs,

    /// Echo times in seconds: makes one contrast per time, each with all shots, whose readouts begin at that time after
    /// the excitation (ISMRMRD only)
    #[arg(long, value_name = "S,S[,S...]", value_delimiter = ',', allow_negative_numbers = true)]
    #[arg(help_heading = "Off-resonance", conflicts_with = "readout_start")]
    echo_times: Vec<f64>,

    /// Write the true image: the phantom, with several coils multiplied by the root of the coils' sum of squares
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,

    #[arg(help = FileUse::WriteComplexImages.help("Write coil maps, [voxels, coils], of unit root sum of squares"))]
    #[arg(long, value_name = "FILE")]
    maps: Option<PathBuf>,

    #[command(flatten)]
    output: OutputArgs<RawDataFile>,
}

const WRITTEN_MAP: &str = "Write the field map of --off-resonance or --field-map, for --field-map of a reconstruction";

fn parse_frequencies(text: &str) -> std::result::Result<[usize; 2], String> {
    let parsed: Option<Vec<usize>> = text.split(',').map(|x| x.trim().parse().ok()).collect();
    match parsed.as_deref() {
        Some(&[x, y]) => Ok([x, y]),
        _ => Err("two whole numbers are expected, such as 320,321".into()),
    }
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

pub fn run(args: &SimulateArgs) -> Result<()> {
    let MatrixChoice::Sizes(sizes) = &args.matrix else {
        bail!(InvalidArgument, "--matrix: sizes are needed to simulate a scan, for example 256,256");
    };
    let matrix = checked_sizes(sizes)?;
    let format = FileUse::WriteRawData.format(&args.output.output)?;
    let bart = (format == Format::Bart).then(|| trajectory_path(&args.output.output));
    let mut outputs: Vec<PathBuf> =
        std::iter::once(&args.output.output).chain(&bart).flat_map(|p| files_of(p)).collect();
    for path in args.truth.iter().chain(&args.maps).chain(&args.write_field_map) {
        outputs.extend(image_files(path)?);
    }
    check_outputs(&outputs, args.field_map.iter().chain(&args.decay_map))?;
    check_off_resonance(args, bart.is_some())?;
    check_coils_and_noise(args, bart.is_some())?;

    let simulation = Simulation::new(args, sizes, matrix)?;
    let starts = if args.echo_times.is_empty() { vec![args.times.start()] } else { args.echo_times.clone() };
    let mut echoes = starts.into_iter().map(|start| simulation.kspace(start)).collect::<Result<Vec<_>>>()?;
    let noise = simulation.add_noise(&mut echoes)?;
    let truth = args.truth.as_ref().map(|_| simulation.phantom.image(sizes, 4)).transpose()?;
    let maps = match &simulation.coils {
        Some(coils) if args.truth.is_some() || args.maps.is_some() => Some(coils.maps(sizes)?),
        _ => None,
    };
    let mut data: Vec<_> = echoes.into_iter().map(|kspace| single(&kspace)).collect();
    let mut files = AtomicFiles::new();
    simulation.write_images(&mut files, truth, maps)?;
    write_output(files, &args.output.output, |files, path| match &bart {
        Some(trajectory) => simulation.write_bart(files, path, trajectory, data.remove(0)),
        None => simulation.write_ismrmrd(files, path, data, noise),
    })
}

/// Checks the options of coils, noise and weights. `bart` is whether the output is a pair of BART files.
fn check_coils_and_noise(args: &SimulateArgs, bart: bool) -> Result<()> {
    if args.no_trajectory && bart {
        bail!(InvalidArgument, "--no-trajectory: BART files need a trajectory: write an .h5 file");
    }
    if args.weights && bart {
        bail!(InvalidArgument, "--weights: BART files cannot contain density weights: write an .h5 file");
    }
    if let Some(path) = &args.maps {
        FileUse::WriteComplexImages.format(path).map_err(|e| e.within("coil maps are complex"))?;
    }
    if args.noise_samples > 0 && bart {
        bail!(InvalidArgument, "--noise-samples: BART files cannot contain a noise scan: write an .h5 file");
    }
    if !(args.coupling.abs() < 1.0) {
        bail!(InvalidArgument, "--coupling is {}: it must be between -1 and 1", args.coupling);
    }
    if !(args.noise_gain > 0.0 && args.noise_gain.is_finite()) {
        bail!(InvalidArgument, "--noise-gain is {}: it must be above 0", args.noise_gain);
    }
    if (args.coupling != 0.0 || args.noise_gain != 1.0) && args.coils < 2 {
        bail!(InvalidArgument, "--coupling and --noise-gain need at least 2 coils: give more --coils");
    }
    if args.maps.is_some() && args.coils < 2 {
        bail!(InvalidArgument, "--maps: a single coil has uniform sensitivity: give more --coils");
    }
    Ok(())
}

/// A scan to be simulated.
struct Simulation<'a> {
    args: &'a SimulateArgs,
    /// The sizes of `--matrix`, two or three.
    sizes: &'a [usize],
    /// The sizes as a matrix of three axes.
    matrix: [usize; 3],
    trajectory: Trajectory,
    phantom: Phantom,
    /// The coils; `None` for one coil of uniform sensitivity.
    coils: Option<CoilModel>,
    /// Off-resonance in Hz, per voxel; `None` without off-resonance.
    field: Option<Vec<f64>>,
    /// Decay rates in 1/s, per voxel; `None` without decay.
    decay: Option<Vec<f64>>,
}

impl<'a> Simulation<'a> {
    /// Creates trajectory, phantom and coils, and reads the maps.
    fn new(args: &'a SimulateArgs, sizes: &'a [usize], matrix: [usize; 3]) -> Result<Self> {
        let trajectory = trajectory(args, sizes)?;
        let phantom = match sizes.len() {
            2 => Phantom::shepp_logan_2d(),
            _ => Phantom::shepp_logan_3d(),
        };
        let coils = match args.coils {
            1 => None,
            n => Some(CoilModel::ring(n, sizes.len())?),
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
        Ok(Simulation { args, sizes, matrix, trajectory, phantom, coils, field, decay })
    }

    /// Returns the k-space, [samples, coils], without noise. Readouts begin `start` seconds after the excitation.
    fn kspace(&self, start: f64) -> Result<Vec<Complex<f64>>> {
        let (axes, coils) = (self.trajectory.axes(), self.coils.as_ref());
        if let Some(bounds) = self.args.motion {
            return self.kspace_with_motion(bounds);
        }
        if !self.args.has_maps() {
            return self.phantom.kspace(self.sizes, &axes, coils, 0);
        }
        let times: Vec<f64> = self.sample_times().map(|t| start + t).collect();
        let mut geometry = Geometry::new(self.sizes, &axes);
        geometry.field_map = self.field.as_deref();
        geometry.decay_map = self.decay.as_deref();
        geometry.times = Some(&times);
        phantom_kspace(&self.phantom, &geometry, coils, subdivision(self.sizes.len()), &Options::default())
    }

    /// Returns the time of each sample in seconds since the first sample of its shot; 0 without `--dwell`.
    fn sample_times(&self) -> impl Iterator<Item = f64> {
        let (dwell, per_shot) = (self.args.times.dwell().unwrap_or(0.0), self.trajectory.samples_per_shot());
        (0..self.trajectory.samples()).map(move |m| dwell * (m % per_shot) as f64)
    }

    /// Returns the k-space of a phantom that moves between the blades. The bounds are degrees and voxels.
    fn kspace_with_motion(&self, [degrees, voxels]: [f64; 2]) -> Result<Vec<Complex<f64>>> {
        let (args, trajectory) = (self.args, &self.trajectory);
        let &[n, height] = self.sizes else {
            bail!(InvalidArgument, "--motion is for --trajectory propeller, which is 2D")
        };
        if n != height {
            bail!(InvalidArgument, "--motion: the matrix is {n} x {height}: motion needs a square matrix");
        }
        let blade_samples =
            lines_per_blade(args, scan_matrix(args, trajectory.samples_per_shot())) * trajectory.samples_per_shot();
        let samples = trajectory.samples();
        // Uniform in (-1, 1), with a seed that differs from that of the noise.
        let mut random = uniform(args.seed ^ 0x6d6f_7469_6f6e);
        let mut within = move |bound: f64| (2.0 * random() - 1.0) * bound;
        let motion =
            |_| RigidMotion { angle: within(degrees).to_radians(), translation: [within(voxels), within(voxels)] };
        let mut motions: Vec<RigidMotion> = (0..samples / blade_samples).map(motion).collect();
        RigidMotion::centre(&mut motions);
        let len = checked_product(&[samples, args.coils], "the k-space of a phantom")?;
        let mut kspace = try_vec(len, Complex::default(), "the k-space of a phantom")?;
        for (b, motion) in motions.iter().enumerate() {
            let [x, y] = motion.translation;
            log::info!("blade {b}: turned by {:.3} degrees, moved by {x:.3}, {y:.3} voxels", motion.angle.to_degrees());
            let range = b * blade_samples..(b + 1) * blade_samples;
            let axes: Vec<&[f64]> = trajectory.axes().into_iter().map(|k| &k[range.clone()]).collect();
            let blade = self.phantom.moved(n, motion)?.kspace(self.sizes, &axes, self.coils.as_ref(), 0)?;
            for (to, from) in kspace.chunks_exact_mut(samples).zip(blade.chunks_exact(blade_samples)) {
                to[range.clone()].copy_from_slice(from);
            }
        }
        Ok(kspace)
    }

    /// Adds noise to all echoes if there is an SNR. Returns the noise scan of `--noise-samples`.
    fn add_noise(&self, echoes: &mut [Vec<Complex<f64>>]) -> Result<Vec<Noise>> {
        let args = self.args;
        let Some(snr) = args.snr else { return Ok(Vec::new()) };
        let deviation = noise_deviation(&echoes[0], snr)?;
        log::info!("noise of standard deviation {deviation:.6e}");
        for (echo, kspace) in (0u64..).zip(echoes) {
            // Echoes have different noise.
            let seed = args.seed ^ (echo << 32);
            let noise = array_noise(kspace.len() / args.coils, deviation, seed, args)?;
            kspace.iter_mut().zip(noise).for_each(|(z, noise)| *z += noise);
        }
        if args.noise_samples == 0 {
            return Ok(Vec::new());
        }
        let data = single(&array_noise(args.noise_samples, deviation, !args.seed, args)?);
        let dwell = args.times.dwell().unwrap_or(0.0) as f32;
        Ok(vec![Noise { coils: args.coils, dwell, data }])
    }

    /// Writes the truth, the field map and the coil maps to `files`, as far as the options ask for them.
    fn write_images(
        &self,
        files: &mut AtomicFiles,
        truth: Option<Vec<f64>>,
        maps: Option<Vec<Complex<f64>>>,
    ) -> Result<()> {
        let (args, matrix) = (self.args, self.matrix);
        let voxels = matrix.iter().product();
        let root = |i: usize| maps.as_ref().map_or(1.0, |m| root_of_squares(m, voxels, i));
        if let (Some(path), Some(truth)) = (&args.truth, truth) {
            let data = truth.iter().enumerate().map(|(i, t)| Complex::new((t * root(i)) as f32, 0.0)).collect();
            write_images(files, path, &[image(matrix, 1, data)?])?;
        }
        if let (Some(path), Some(map)) = (&args.write_field_map, &self.field) {
            let mut image = image_of(matrix, map)?;
            image.fov_mm = matrix.map(|n| n as f32);
            write_images(files, path, &[image])?;
        }
        if let (Some(path), Some(maps)) = (&args.maps, &maps) {
            let maps = maps.iter().enumerate().map(|(i, s)| s / root(i % voxels));
            write_images(files, path, &[image(matrix, args.coils, single(&maps.collect::<Vec<_>>()))?])?;
        }
        Ok(())
    }

    /// Writes the scan to `files` in ISMRMRD's format, one contrast per echo.
    fn write_ismrmrd(
        &self,
        files: &mut AtomicFiles,
        path: &Path,
        echoes: Vec<Vec<Complex<f32>>>,
        noise: Vec<Noise>,
    ) -> Result<()> {
        let (args, matrix, trajectory, ndim) = (self.args, self.matrix, &self.trajectory, self.sizes.len());
        let coordinates: Vec<Vec<f32>> = (0..ndim).map(|axis| trajectory.axis_as::<f32>(axis)).collect();
        let weights = match args.weights {
            true => {
                let k: Vec<&[f32]> = coordinates.iter().map(|k| &k[..]).collect();
                let options = Options { method: Method::Exact, ..Options::default() };
                // The weights depend on the trajectory only; a plan with exact sums is the smallest one.
                Some(Plan::new(&Geometry::new(&matrix[..ndim], &k), &options)?.density(Density::Ramp)?)
            }
            false => None,
        };
        let header = self.header();
        let shots = trajectory.shots();
        let scan = |(contrast, data): (u16, Vec<Complex<f32>>)| Scan {
            index: ScanIndex { contrast, ..ScanIndex::default() },
            encoded_matrix: matrix,
            recon_matrix: matrix,
            encoded_fov_mm: header.encodings[0].encoded.fov_mm,
            recon_fov_mm: header.encodings[0].recon.fov_mm,
            trajectory: header.encodings[0].trajectory,
            ndim,
            coordinates: coordinates.clone(),
            weights: weights.clone(),
            skipped_per_shot: vec![0; shots],
            samples_per_shot: vec![trajectory.samples_per_shot(); shots],
            coils: args.coils,
            data,
            times: self.sample_times().map(|t| t as f32).collect(),
            placement: Placement::default(),
            coil_matrix: None,
            noise_level: None,
        };
        let scans = (0..).zip(echoes).map(scan).collect();
        let dataset = Dataset { header, scans, noise, calibration: Vec::new(), uses: Vec::new() };
        let storage = if args.no_trajectory { TrajectoryStorage::Omitted } else { TrajectoryStorage::Stored };
        write_dataset(files, path, &dataset, storage)
    }

    /// Returns the XML header of the scan.
    fn header(&self) -> Header {
        let space = EncodingSpace { matrix: self.matrix, fov_mm: self.matrix.map(|n| n as f32) };
        let shots = self.trajectory.shots();
        // The order of shots is step 1, step 2.
        let steps = match self.args.trajectory {
            TrajectoryChoice::Cartesian => [self.matrix[1], self.matrix[2]],
            TrajectoryChoice::StackOfStars => {
                let partitions = self.args.partitions.unwrap_or(self.matrix[2]);
                [shots / partitions, partitions]
            }
            _ => [shots, 1],
        };
        let encoding = HeaderEncoding {
            encoded: space,
            recon: space,
            trajectory: match self.args.trajectory {
                TrajectoryChoice::Cartesian => TrajectoryKind::Cartesian,
                TrajectoryChoice::Radial | TrajectoryChoice::StackOfStars | TrajectoryChoice::Kooshball => {
                    TrajectoryKind::Radial
                }
                TrajectoryChoice::GoldenAngle => TrajectoryKind::GoldenAngle,
                TrajectoryChoice::Spiral => TrajectoryKind::Spiral,
                TrajectoryChoice::Rosette | TrajectoryChoice::Lissajous | TrajectoryChoice::Propeller => {
                    TrajectoryKind::Other
                }
            },
            // Gadgetron reads both limits without checking that they are present.
            steps: steps.map(|count| {
                let last = (count - 1).min(u16::MAX as usize) as u16;
                Some(EncodingLimits { minimum: 0, maximum: last, center: (count / 2).min(last as usize) as u16 })
            }),
            description: self.args.no_trajectory.then(|| self.args.trajectory.description()).flatten(),
            ..Default::default()
        };
        Header {
            encodings: vec![encoding],
            receiver_channels: Some(self.args.coils.min(u16::MAX as usize) as u16),
            echo_times_ms: self.args.echo_times.iter().map(|t| 1e3 * t).collect(),
            ..Default::default()
        }
    }

    /// Writes the scan to `files` in BART's format: k-space and trajectory.
    fn write_bart(
        &self,
        files: &mut AtomicFiles,
        path: &Path,
        trajectory_path: &Path,
        data: Vec<Complex<f32>>,
    ) -> Result<()> {
        let (args, trajectory) = (self.args, &self.trajectory);
        let (samples, shots) = (trajectory.samples_per_shot(), trajectory.shots());
        let mut points = Vec::with_capacity(3 * trajectory.samples());
        for m in 0..trajectory.samples() {
            for (axis, &n) in self.matrix.iter().enumerate() {
                let k = if axis < trajectory.ndim() { trajectory.axis(axis)[m] * n as f64 } else { 0.0 };
                points.push(Complex::new(k as f32, 0.0));
            }
        }
        write_cfl(files, trajectory_path, &[3, samples, shots], &points)?;
        write_cfl(files, path, &[1, samples, shots, args.coils], &data)
    }
}

impl SimulateArgs {
    /// Returns whether the scan has off-resonance or decay.
    fn has_maps(&self) -> bool {
        self.field_map.is_some() || self.off_resonance.is_some() || self.decay_map.is_some()
    }
}

/// Checks that the options of off-resonance are complete and consistent. `bart` is whether the output is a pair of BART
/// files.
fn check_off_resonance(args: &SimulateArgs, bart: bool) -> Result<()> {
    args.times.check()?;
    if let Some(hz) = args.off_resonance.filter(|hz| !hz.is_finite()) {
        bail!(InvalidArgument, "--off-resonance is {hz}: it must be a finite number of Hz");
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
        let (echoes, maximum) = (args.echo_times.len(), u16::MAX);
        bail!(InvalidArgument, "--echo-times has {echoes} times: an ISMRMRD file has at most {maximum} echoes");
    }
    if bart && !args.echo_times.is_empty() {
        bail!(InvalidArgument, "--echo-times: BART files cannot contain echo times: write an .h5 file");
    }
    if !args.has_maps() {
        if !args.echo_times.is_empty() {
            bail!(InvalidArgument, "--echo-times goes with a map: give --off-resonance, --field-map or --decay-map");
        }
        if args.times.readout_start.is_some() {
            bail!(InvalidArgument, "--readout-start goes with a map: give --off-resonance, --field-map or --decay-map");
        }
        if bart && args.times.dwell.is_some() {
            bail!(InvalidArgument, "--dwell: BART files cannot contain a sample time: write an .h5 file");
        }
        return Ok(());
    }
    if args.times.dwell.is_none() {
        bail!(
            InvalidArgument,
            "off-resonance and decay need the times of samples: give --dwell, the time between samples in microseconds"
        );
    }
    if args.motion.is_some() {
        bail!(
            InvalidArgument,
            "--motion: a phantom with off-resonance or decay can only be simulated at rest: leave out one of them"
        );
    }
    Ok(())
}

/// Returns the noise of a coil array, [samples, coils]: white noise of this deviation, with the coupling between
/// neighbouring coils and the gains of the options.
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

/// Rounds to single precision, the precision of files.
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
