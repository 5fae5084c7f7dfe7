//! `recon propeller`.

use crate::options::{defaults, BladePhaseKind, Combination, ImageOutputArgs, InputArgs, PlanArgs};
use crate::run::input::scan_name;
use crate::run::job::{FrameResult, Job, Reconstruction, ScanFrame};
use crate::run::output::report_of;
use crate::run::precision::to_single;
use crate::run::resize::zeros;
use crate::run::session::Session;
use recon::atomic_file::AtomicFiles;
use recon::bail;
use recon::scan::{EncodingSpace, Header, HeaderEncoding, TrajectoryKind};
use recon::{BladeMotion, Corrected, PropellerOptions, Real, Result};
use recon_files::{write_dataset, Dataset, FileUse, Scan, TrajectoryStorage};
use std::path::PathBuf;

/// Reconstructs PROPELLER blades with correction of the motion between them
///
/// Every blade measures the centre of k-space. Phase, rotation (up to 45 degrees) and translation of a blade are found
/// from its central data (Pipe 1999, Magn. Reson. Med. 42:963). Blades that disagree with the others, for instance
/// after through-plane motion, have smaller weights. The corrected data are gridded as by recon grid, with weights of
/// Pipe and Menon. Weights in the file are not used.
///
/// Blades are recognised from the trajectory: parallel, evenly spaced lines in the order of acquisition. They are 2D,
/// and voxels must be square. Off-resonance is not corrected, since a map would move with the object. Scans, files,
/// coils and matrices are as for recon grid.
#[derive(clap::Args)]
#[command(after_help = "Example: the image, and the motion of each blade:\n  \
    recon propeller scan.h5 --report motion.json -o image.png\n\
    Example: conjugate gradients with the corrected blades:\n  \
    recon propeller scan.h5 -o image.png --corrected still.h5 && recon cg still.h5 --weighted -o better.png")]
pub struct PropellerArgs {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    output: ImageOutputArgs,

    #[command(flatten)]
    correction: MotionCorrection,

    /// Write the motion of each blade as JSON; `-` writes to the standard output
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    #[command(flatten)]
    plan: PlanArgs,
}

/// The reconstruction of blades with motion correction.
#[derive(clap::Args)]
struct MotionCorrection {
    /// Number of lines of a blade; 0: as many lines as are parallel and evenly spaced
    #[arg(long, value_name = "N", default_value_t = PropellerOptions::DEFAULT.lines, help_heading = "Motion")]
    lines: usize,

    /// Correction of the phase of blades
    #[arg(long, value_enum, default_value_t = defaults::BLADE_PHASE, help_heading = "Motion")]
    phase: BladePhaseKind,

    /// Do not correct rotations
    #[arg(long, help_heading = "Motion")]
    no_rotation: bool,

    /// Do not correct translations
    #[arg(long, help_heading = "Motion")]
    no_translation: bool,

    /// Give all blades the same weight
    #[arg(long, help_heading = "Motion")]
    no_weighting: bool,

    #[arg(help = FileUse::WriteDataset.help("Also write the corrected scan with its weights, for recon cg"))]
    #[arg(long, value_name = "FILE")]
    corrected: Option<PathBuf>,

    /// Combination of coil images
    #[arg(long, value_enum, default_value_t = defaults::COMBINE, help_heading = "Reconstruction")]
    combine: Combination,
}

pub fn run(args: &PropellerArgs) -> Result<()> {
    Job::new(&args.input, &args.output, &args.correction, &args.plan).with_report(args.report.as_deref()).run()
}

impl Reconstruction for MotionCorrection {
    const TITLE: &'static str = "motion correction";
    /// `Corrected` makes its own plans.
    type Plan<T: Real> = ();
    /// The corrected scans for --corrected, with the numbers of the original scans.
    type State<T: Real> = Vec<(usize, Scan)>;

    fn check(&self) -> Result<()> {
        if let Some(path) = &self.corrected {
            FileUse::WriteDataset.format(path).map_err(|e| e.within("a scan with density weights"))?;
        }
        Ok(())
    }

    fn output_files(&self) -> Vec<PathBuf> {
        self.corrected.iter().cloned().collect()
    }

    fn channels(&self, scan: &Scan) -> Option<usize> {
        Some(self.combine.channels(scan.coils))
    }

    fn begin<T: Real>(&self, session: &Session) -> Result<Self::State<T>> {
        for scan in &session.scans {
            check_voxels(scan).map_err(|e| e.within(scan_name(scan)))?;
            if scan.weights.is_some() {
                log::info!(
                    "{}: weights in the file are not used: corrected blades need other weights",
                    scan_name(scan)
                );
            }
        }
        Ok(Vec::new())
    }

    fn plan<T: Real>(&self, _: &ScanFrame, _: Option<()>, _: &mut Self::State<T>) -> Result<()> {
        Ok(())
    }

    fn image<T: Real>(
        &self,
        frame: &ScanFrame,
        _plan: &(),
        corrected_scans: &mut Self::State<T>,
    ) -> Result<FrameResult> {
        let propeller = PropellerOptions {
            lines: self.lines,
            phase: self.phase.into(),
            rotation: !self.no_rotation,
            translation: !self.no_translation,
            weighting: !self.no_weighting,
        };
        let options = &frame.session.options;
        let sampling = frame.sampling::<T>()?;
        let geometry = sampling.geometry();
        let corrected = Corrected::new(&geometry, options, &propeller, &frame.data::<T>()?)?;
        let mut coils = zeros(geometry.voxel_count() * frame.scan.coils)?;
        corrected.grid(&geometry, options, &mut coils)?;
        let maximum = |of: fn(&BladeMotion) -> f64| corrected.motion.iter().map(of).fold(0.0, f64::max);
        log::info!(
            "{}: {} blades of {} lines, rotated by up to {:.2} degrees, moved by up to {:.2} voxels",
            scan_name(frame.scan),
            corrected.blades,
            corrected.lines,
            maximum(|m| m.rotation.abs()),
            maximum(|m| m.translation[0].hypot(m.translation[1]))
        );
        if self.corrected.is_some() {
            corrected_scans.push((frame.number, corrected_scan(frame.scan, &corrected)));
        }
        Ok(FrameResult { image: frame.finish(coils, self.combine)?, report: Some(describe(frame.scan, &corrected)) })
    }

    fn write<T: Real>(&self, _: Option<()>, mut scans: Self::State<T>, files: &mut AtomicFiles) -> Result<()> {
        let Some(path) = &self.corrected else { return Ok(()) };
        scans.sort_by_key(|(number, _)| *number);
        let scans: Vec<Scan> = scans.into_iter().map(|(_, scan)| scan).collect();
        let header = header(&scans);
        let dataset = Dataset { header, scans, noise: Vec::new(), calibration: Vec::new(), uses: Vec::new() };
        write_dataset(files, path, &dataset, TrajectoryStorage::Stored)?;
        log::info!("{}: the corrected scan written", path.display());
        Ok(())
    }
}

/// Checks that the voxels of a scan are square: motion estimation requires this.
fn check_voxels(scan: &Scan) -> Result<()> {
    let [x, y] = [0, 1].map(|a| scan.encoded_fov_mm[a] as f64 / scan.encoded_matrix[a] as f64);
    if x > 0.0 && y > 0.0 && (x / y - 1.0).abs() > 0.01 {
        bail!(
            Unsupported,
            "the encoded voxels are {x:.3} mm x {y:.3} mm, but rotations can only be found for square voxels"
        );
    }
    Ok(())
}

/// Returns a scan with corrected coordinates, data and weights.
fn corrected_scan<T: Real>(scan: &Scan, corrected: &Corrected<T>) -> Scan {
    let narrow = |values: &[T]| values.iter().map(|x| x.wide() as f32).collect::<Vec<_>>();
    Scan {
        coordinates: corrected.coordinates.iter().map(|k| narrow(k)).collect(),
        data: to_single(&corrected.kspace),
        weights: Some(narrow(&corrected.weights)),
        ..scan.clone()
    }
}

/// Returns the header of a file with these scans. It has an encoding for each number that a scan names.
fn header(scans: &[Scan]) -> Header {
    let last = scans.iter().map(|s| s.index.encoding).max().unwrap_or(0);
    let encoding = |number| {
        let scan = scans.iter().find(|s| s.index.encoding == number).unwrap_or(&scans[0]);
        HeaderEncoding {
            encoded: EncodingSpace { matrix: scan.encoded_matrix, fov_mm: scan.encoded_fov_mm },
            recon: EncodingSpace { matrix: scan.recon_matrix, fov_mm: scan.recon_fov_mm },
            trajectory: TrajectoryKind::Other,
            ..Default::default()
        }
    };
    Header {
        encodings: (0..=last).map(encoding).collect(),
        receiver_channels: Some(scans[0].coils.min(u16::MAX as usize) as u16),
        ..Default::default()
    }
}

/// Returns the report of an image.
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
    let mut report = report_of(&scan.index);
    report["lines"] = corrected.lines.into();
    report["samples"] = corrected.readout.into();
    report["blades"] = blades.into();
    report
}
