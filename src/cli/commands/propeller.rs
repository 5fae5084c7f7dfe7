//! `recon propeller`.

use crate::defaults;
use crate::io::ismrmrd::{EncodingSpace, Header, HeaderEncoding, TrajectoryKind};
use crate::io::{write_dataset, Dataset, Scan};
use crate::options::{BladePhaseKind, Combination, InputArgs, PlanArgs, Precision};
use crate::progress::ProgressIndicator;
use crate::run::frames;
use crate::run::input::name;
use crate::run::output;
use crate::run::output::{check_outputs, has_ending, image_files, write_with_report, STANDARD_OUTPUT};
use crate::run::reconstruct::{cast, channels, read_scans, Finish, Input, Sampling};
use crate::run::resize::zeros;
use recon::atomic_file::AtomicFiles;
use recon::bail;
use recon::{BladeMotion, Complex, Corrected, PropellerOptions, Real, Result};
use std::path::{Path, PathBuf};

/// PROPELLER: the image of blades without the motion between them
///
/// Every blade measures the centre of k-space anew, from which its phase, rotation (up to 45 degrees) and translation
/// are found (Pipe 1999, Magn. Reson. Med. 42:963). Blades that disagree with the others, as after motion through the
/// plane, count less. What is corrected is gridded as by recon grid, with weights of Pipe and Menon; those in the file
/// are not used. Blades are recognised from the trajectory: lines in the order of acquisition, parallel and evenly
/// spaced. They are 2D, and voxels square. Off-resonance is not corrected: a map would move with the object. Scans,
/// files, coils and matrices are as for recon grid.
#[derive(clap::Args)]
#[command(after_help = "Example: the image, and the motion of each blade:\n  \
    recon propeller scan.h5 --report motion.json -o image.png\n\
    Example: conjugate gradients of the corrected blades:\n  \
    recon propeller scan.h5 -o image.png --corrected still.h5 && recon cg still.h5 --weighted -o better.png")]
pub struct PropellerArgs {
    #[command(flatten)]
    input: InputArgs,

    /// Image to be written, its format by its ending: .h5, .mrd, .cfl, .nii, .nii.gz, .png
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Lines of a blade; 0: as many as are parallel and evenly spaced
    #[arg(long, value_name = "N", default_value_t = PropellerOptions::DEFAULT.lines, help_heading = "Motion")]
    lines: usize,

    /// What is done about the phase of blades
    #[arg(long, value_enum, default_value_t = defaults::BLADE_PHASE, help_heading = "Motion")]
    phase: BladePhaseKind,

    /// Do not correct rotations
    #[arg(long, help_heading = "Motion")]
    no_rotation: bool,

    /// Do not correct translations
    #[arg(long, help_heading = "Motion")]
    no_translation: bool,

    /// Let all blades count alike
    #[arg(long, help_heading = "Motion")]
    no_weighting: bool,

    /// Write the motion of each blade as JSON; - for the standard output
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Write the corrected scan too, with its weights (.h5 or .mrd), for recon cg
    #[arg(long, value_name = "FILE")]
    corrected: Option<PathBuf>,

    /// How several coil images become one
    #[arg(long, value_enum, default_value_t = defaults::COMBINE, help_heading = "Reconstruction")]
    combine: Combination,

    #[command(flatten)]
    plan: PlanArgs,
}

pub fn run(args: &PropellerArgs) -> Result<()> {
    args.plan.options()?;
    if let Some(path) = args.corrected.iter().find(|p| !has_ending(p, &[".h5", ".mrd"])) {
        bail!(InvalidArgument, "{}: a scan with weights is written as .h5 or .mrd", path.display());
    }
    let mut outputs = image_files(&args.output)?;
    outputs.extend(args.corrected.clone());
    outputs.extend(args.report.clone().filter(|path| path != Path::new(STANDARD_OUTPUT)));
    check_outputs(&outputs, args.input.files())?;
    match args.plan.precision {
        Precision::F32 => compute::<f32>(args),
        Precision::F64 => compute::<f64>(args),
    }
}

fn compute<T: Real>(args: &PropellerArgs) -> Result<()> {
    let Input { scans, frames, resizes, .. } =
        read_scans(&args.input, Some(&args.output), |s| channels(s.coils, args.combine))?;
    let how = PropellerOptions {
        lines: args.lines,
        phase: args.phase.into(),
        rotation: !args.no_rotation,
        translation: !args.no_translation,
        weighting: !args.no_weighting,
    };
    let options = args.plan.options()?;
    let progress = ProgressIndicator::new(scans.iter().map(|s| frames::count(frames, s)).sum(), "motion correction");
    let (mut images, mut reports, mut still) = (Vec::new(), Vec::new(), Vec::new());
    for (scan, &resize) in scans.iter().zip(&resizes) {
        square_voxels(scan)?;
        if scan.weights.is_some() {
            log::info!("{}: weights in the file are not used: those of corrected blades are others", name(scan));
        }
        for frame in frames::each(frames, scan) {
            let sampling = Sampling::<T>::of(&frame);
            let geometry = sampling.geometry(&args.plan);
            let corrected = Corrected::new(&geometry, &options, &how, &cast::<T>(&frame.data)?)
                .map_err(|e| e.within(name(&frame)))?;
            let mut coils = zeros(geometry.voxel_count() * frame.coils)?;
            corrected.grid(&geometry, &options, &mut coils)?;
            images.push(Finish { scan: &frame, resize, combine: args.combine }.image(coils)?);
            let most = |of: fn(&BladeMotion) -> f64| corrected.motion.iter().map(of).fold(0.0, f64::max);
            log::info!(
                "{}: {} blades of {} lines, turned by up to {:.2} degrees, moved by up to {:.2} voxels",
                name(&frame),
                corrected.blades,
                corrected.lines,
                most(|m| m.rotation.abs()),
                most(|m| m.translation[0].hypot(m.translation[1]))
            );
            reports.push(describe(&frame, &corrected));
            if args.corrected.is_some() {
                let mut frame = frame.into_owned();
                put_back(&mut frame, &corrected);
                still.push(frame);
            }
            progress.set(images.len());
        }
    }
    drop(progress);
    let mut files = AtomicFiles::new();
    if let Some(path) = &args.corrected {
        let header = header(&still);
        let dataset = Dataset { header, scans: still, noise: Vec::new(), calibration: Vec::new(), uses: Vec::new() };
        write_dataset(&mut files, path, &dataset)?;
        log::info!("{}: the corrected scan written", path.display());
    }
    write_with_report(files, (&args.output, &images), (args.report.as_deref(), reports))
}

/// Refuses voxels that a rotation would not leave as they are.
fn square_voxels(scan: &Scan) -> Result<()> {
    let [x, y] = [0, 1].map(|a| scan.encoded_fov_mm[a] as f64 / scan.encoded_matrix[a] as f64);
    if x > 0.0 && y > 0.0 && (x / y - 1.0).abs() > 0.01 {
        bail!(
            Unsupported,
            "{}: the encoded voxels are {x:.3} mm x {y:.3} mm: rotations are found for square voxels only",
            name(scan)
        );
    }
    Ok(())
}

/// Makes a scan the corrected one.
fn put_back<T: Real>(scan: &mut Scan, corrected: &Corrected<T>) {
    for (to, from) in scan.coordinates.iter_mut().zip(&corrected.coordinates) {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = from.wide() as f32);
    }
    let narrow = |z: &Complex<T>| Complex::new(z.re.wide() as f32, z.im.wide() as f32);
    scan.data.iter_mut().zip(&corrected.kspace).for_each(|(to, from)| *to = narrow(from));
    scan.weights = Some(corrected.weights.iter().map(|w| w.wide() as f32).collect());
}

/// What a file with these scans begins with: an encoding for each that they name.
fn header(scans: &[Scan]) -> Header {
    let last = scans.iter().map(|s| s.index.encoding).max().unwrap_or(0);
    let encoding = |number| {
        let scan = scans.iter().find(|s| s.index.encoding == number).unwrap_or(&scans[0]);
        HeaderEncoding {
            encoded: EncodingSpace { matrix: scan.encoded_matrix, fov_mm: scan.encoded_fov_mm },
            recon: EncodingSpace { matrix: scan.recon_matrix, fov_mm: scan.recon_fov_mm },
            trajectory: TrajectoryKind::Other,
            steps: [None, None],
            parallel: None,
        }
    };
    Header {
        encodings: (0..=last).map(encoding).collect(),
        receiver_channels: Some(scans[0].coils.min(u16::MAX as usize) as u16),
        noise_bandwidth: None,
        h1_resonance_hz: None,
        echo_times_ms: Vec::new(),
    }
}

fn describe<T: Real>(scan: &Scan, corrected: &Corrected<T>) -> serde_json::Value {
    let blades: Vec<_> = corrected
        .motion
        .iter()
        .map(|m| {
            serde_json::json!({
                "rotation_degrees": m.rotation,
                "translation_voxels": m.translation,
                "phase_radians": m.phase,
                "correlation": m.correlation,
                "weight": m.weight,
            })
        })
        .collect();
    let mut report = output::place_of(&scan.index);
    report["lines"] = corrected.lines.into();
    report["samples"] = corrected.readout.into();
    report["blades"] = blades.into();
    report
}
