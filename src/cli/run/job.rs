//! The description of a run, and its loop over scans.

use crate::options::{
    in_precision, Combination, DicomArgs, ImageOutputArgs, ImageScale, InputArgs, OffResonanceArgs,
    PhaseDifferenceArgs, PlanArgs,
};
use crate::progress::ProgressIndicator;
use crate::run::input::{self, scan_name};
use crate::run::output::{check_picture_size, check_sizes, Outputs};
use crate::run::phase_difference::PhaseDifference;
use crate::run::plan::ReusablePlan;
use crate::run::post_processing;
use crate::run::precision::cast;
use crate::run::sampling::Sampling;
use crate::run::session::Session;
use crate::run::weights::Weights;
use recon::atomic_file::AtomicFiles;
use recon::{Complex, Normal, Options, Real, Result};
use recon_files::png::PictureEntry;
use recon_files::stacks::ImageGeometry;
use recon_files::{Dataset, Image, Scan, ScanIndex};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A reconstruction of scans: the part of a run that differs between commands.
pub trait Reconstruction {
    /// Name of the reconstruction beside the progress bar.
    const TITLE: &'static str;
    /// Whether the next group of scans may reuse the plan of a group. If not, the plan is freed before `begin_group`.
    const REUSES_PLAN: bool = true;
    /// Plan of a group of scans.
    type Plan<T: Real>;
    /// Data that stay available from scan to scan.
    type State<T: Real>;

    /// Checks the options before a file is read.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the files that are read, except raw data and maps of off-resonance.
    fn input_files(&self) -> Vec<&PathBuf> {
        Vec::new()
    }

    /// Returns the files that are written, except image and report.
    fn output_files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Returns the factor from an image of a scan to the image of BART's unitary transform.
    fn bart_factor(&self, scan: &Scan) -> f64 {
        voxel_count(scan).sqrt()
    }

    /// Returns the number of channels of a scan's image; `None` if the image does not have the requested matrix.
    fn channels(&self, scan: &Scan) -> Option<usize>;

    /// Returns the number of progress steps of an image.
    fn steps(&self, _scan: &Scan) -> usize {
        1
    }

    /// Returns whether two scans with the same trajectory share a plan.
    fn shares_plan(&self, _a: &Scan, _b: &Scan) -> bool {
        true
    }

    /// Checks the scans and prepares what all of them use.
    fn begin<T: Real>(&self, session: &Session) -> Result<Self::State<T>>;

    /// Prepares what the scans of a plan share, given their numbers.
    fn begin_group<T: Real>(&self, _session: &Session, _group: &[usize], _state: &mut Self::State<T>) -> Result<()> {
        Ok(())
    }

    /// Returns the plan of a scan or frame, which may be the previous plan with a new trajectory.
    fn plan<T: Real>(
        &self,
        frame: &ScanFrame,
        previous: Option<Self::Plan<T>>,
        state: &mut Self::State<T>,
    ) -> Result<Self::Plan<T>>;

    /// Computes the image of a scan or frame.
    fn image<T: Real>(
        &self,
        frame: &ScanFrame,
        plan: &Self::Plan<T>,
        state: &mut Self::State<T>,
    ) -> Result<FrameResult>;

    /// Writes the files of `output_files`, given the last plan.
    fn write<T: Real>(&self, _: Option<Self::Plan<T>>, _: Self::State<T>, _: &mut AtomicFiles) -> Result<()> {
        Ok(())
    }
}

/// Returns the number of voxels of the encoded matrix.
pub fn voxel_count(scan: &Scan) -> f64 {
    scan.encoded_matrix.iter().map(|&n| n as f64).product()
}

/// A scan, or a frame of a scan, that becomes one image.
pub struct ScanFrame<'a> {
    pub session: &'a Session,
    /// Number of the scan in the session.
    pub number: usize,
    pub scan: &'a Scan,
    /// Start of the computation.
    started: Instant,
    /// Displays the number of completed steps of the image.
    pub progress: &'a dyn Fn(usize),
}

impl ScanFrame<'_> {
    /// Returns the sampling, with off-resonance and decay.
    pub fn sampling<T: Real>(&self) -> Result<Sampling<T>> {
        self.session.sampling(self.number, self.scan)
    }

    /// Returns a plan for this frame, which may be the previous plan with a new trajectory.
    pub fn plan<T: Real>(
        &self,
        previous: Option<ReusablePlan<T>>,
        weights: &Weights<T>,
        coil_maps: Option<&[Complex<T>]>,
        normal: Normal,
    ) -> Result<ReusablePlan<T>> {
        let sampling = self.sampling()?;
        let mut geometry = sampling.geometry();
        geometry.coil_maps = coil_maps;
        ReusablePlan::new(previous, &geometry, weights, &Options { normal, ..self.session.options.clone() })
    }

    /// Returns the measured data in the precision of the computation.
    pub fn data<T: Real>(&self) -> Result<Vec<Complex<T>>> {
        cast(&self.scan.data)
    }

    /// Returns the finished image of coil images [encoded matrix, coils].
    pub fn finish<T: Real>(&self, images: Vec<Complex<T>>, combination: Combination) -> Result<Image> {
        post_processing::finish(self.scan, &self.session.resizes[self.number], combination, images)
    }

    /// Returns the seconds since the start of the computation.
    pub fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}

/// The result of a scan or frame.
pub struct FrameResult {
    pub image: Image,
    /// Entry of the report; `None` if the reconstruction has no report.
    pub report: Option<serde_json::Value>,
}

impl From<Image> for FrameResult {
    fn from(image: Image) -> Self {
        FrameResult { image, report: None }
    }
}

/// The images and reports of all scans, in the order of the scans, with the last plan and the state.
pub struct Reconstructed<T: Real, R: Reconstruction> {
    pub images: Vec<Image>,
    reports: Vec<serde_json::Value>,
    plan: Option<R::Plan<T>>,
    state: R::State<T>,
}

/// Reconstructs all scans of a session in memory.
pub fn reconstruct<T: Real, R: Reconstruction>(reconstruction: &R, session: &Session) -> Result<Reconstructed<T, R>> {
    let mut state = reconstruction.begin::<T>(session)?;
    let steps = |scan: &Scan| session.frame_count(scan) * reconstruction.steps(scan);
    let progress = ProgressIndicator::new(session.scans.iter().map(steps).sum(), R::TITLE);
    let mut results: Vec<(usize, FrameResult)> = Vec::new();
    let mut plan: Option<R::Plan<T>> = None;
    let mut done = 0;
    let count: usize = session.scans.iter().map(|scan| session.frame_count(scan)).sum();
    for group in session.groups(|a, b| reconstruction.shares_plan(a, b)) {
        plan = plan.filter(|_| R::REUSES_PLAN);
        reconstruction.begin_group(session, &group, &mut state)?;
        for (number, scan) in group.iter().flat_map(|&i| session.frames(i).map(move |scan| (i, scan))) {
            if count > 1 {
                progress.set_text(format!("{}: image {} of {count}", R::TITLE, results.len() + 1));
            }
            let progress_of_image = |step| progress.set(done + step);
            let started = Instant::now();
            let frame = ScanFrame { session, number, scan: &scan, started, progress: &progress_of_image };
            let current = match plan.take() {
                Some(plan) if session.frames.is_none() && number != group[0] => plan,
                previous => reconstruction.plan(&frame, previous, &mut state)?,
            };
            let mut result =
                reconstruction.image(&frame, &current, &mut state).map_err(|e| e.within(scan_name(&scan)))?;
            if session.scale == ImageScale::Bart {
                let factor = reconstruction.bart_factor(&scan);
                result
                    .image
                    .data
                    .iter_mut()
                    .for_each(|z| *z = Complex::new((z.re.wide() * factor) as f32, (z.im.wide() * factor) as f32));
            }
            if result.report.is_none() {
                let (name, samples) = (scan_name(&scan), scan.samples());
                log::info!("{name}: {samples} samples of {} coils, {:.3} s", scan.coils, frame.seconds());
            }
            results.push((number, result));
            plan = Some(current);
            done += reconstruction.steps(&scan);
            progress.set(done);
        }
    }
    // Scans are computed plan by plan. The sort is stable and keeps the order of frames.
    results.sort_by_key(|(number, _)| *number);
    let (images, reports): (_, Vec<_>) = results.into_iter().map(|(_, result)| (result.image, result.report)).unzip();
    Ok(Reconstructed { images, reports: reports.into_iter().flatten().collect(), plan, state })
}

/// A run: its input, its reconstruction and its outputs.
pub struct Job<'a, R> {
    input: &'a InputArgs,
    /// `None` if the reconstruction does not support off-resonance.
    off_resonance: Option<&'a OffResonanceArgs>,
    reconstruction: &'a R,
    /// `None` if the reconstruction does not support phase differences.
    phase_difference: Option<&'a PhaseDifferenceArgs>,
    plan: &'a PlanArgs,
    outputs: Outputs<'a>,
    dicom: &'a DicomArgs,
    scale: ImageScale,
}

impl<'a, R: Reconstruction> Job<'a, R> {
    /// Returns a run without off-resonance and report.
    pub fn new(input: &'a InputArgs, output: &'a ImageOutputArgs, reconstruction: &'a R, plan: &'a PlanArgs) -> Self {
        Job {
            input,
            off_resonance: None,
            reconstruction,
            phase_difference: None,
            plan,
            outputs: Outputs { image: &output.file.output, report: None },
            scale: output.scale,
            dicom: &output.dicom,
        }
    }

    /// Sets the options for off-resonance.
    pub fn with_off_resonance(self, args: &'a OffResonanceArgs) -> Self {
        Job { off_resonance: Some(args), ..self }
    }

    /// Sets the options for phase differences. The reconstruction must keep the phase of coil images.
    pub fn with_phase_difference(self, args: &'a PhaseDifferenceArgs) -> Self {
        Job { phase_difference: Some(args), ..self }
    }

    /// Sets the file of the report; `None` if no report is written.
    pub fn with_report(mut self, path: Option<&'a Path>) -> Self {
        self.outputs.report = path;
        self
    }

    /// Checks the options, reads the input file, reconstructs its scans and writes the outputs.
    pub fn run(&self) -> Result<()> {
        self.check()?;
        let dataset = input::read(self.input)?;
        in_precision!(self.plan.precision, run_on(self, dataset))
    }

    /// Checks options and outputs before a file is read.
    fn check(&self) -> Result<()> {
        self.plan.options()?;
        self.input.check()?;
        if let Some(off_resonance) = self.off_resonance {
            off_resonance.check()?;
        }
        if let Some(phase_difference) = self.phase_difference {
            phase_difference.check(self.outputs.image)?;
        }
        self.reconstruction.check()?;
        self.dicom.check(&[self.outputs.image])?;
        self.outputs.check(&self.reconstruction.output_files(), self.inputs())
    }

    /// Returns the files that are read.
    fn inputs(&self) -> impl Iterator<Item = &PathBuf> {
        let maps = self.off_resonance.into_iter().flat_map(|args| args.files());
        self.input.files().chain(self.reconstruction.input_files()).chain(maps)
    }

    /// Checks, before the computation, that the images of these scans fit into the output file.
    fn check_images(&self, session: &Session) -> Result<()> {
        let enabled = self.phase_difference.filter(|args| args.is_enabled());
        let size = |number: usize| {
            let channels = match enabled {
                Some(_) => 1,
                None => self.reconstruction.channels(&session.scans[number])?,
            };
            Some((session.resizes[number].requested(), channels))
        };
        let numbers = || 0..session.scans.len();
        check_sizes(self.outputs.image, numbers().filter_map(size))?;
        let pictures: Vec<PictureEntry> = numbers()
            .filter_map(|number| size(number).map(|size| (number, size)))
            .flat_map(|(number, (dims, channels))| {
                let placement = session.scans[number].placement;
                session.frame_indices(number).map(move |index| PictureEntry { index, dims, channels, placement })
            })
            .collect();
        check_picture_size(self.outputs.image, &pictures)?;
        let geometry = |number: usize, index: ScanIndex| ImageGeometry {
            index,
            dims: session.resizes[number].requested(),
            fov_mm: session.resizes[number].fov_mm,
            placement: session.scans[number].placement,
        };
        // Two sets become one phase difference, whose volumes are checked when they are written.
        if enabled.is_some() {
            return Ok(());
        }
        let images: Vec<ImageGeometry> = numbers()
            .flat_map(|number| session.frame_indices(number).map(move |index| geometry(number, index)))
            .collect();
        self.outputs.check_volumes(&images, &self.reconstruction.output_files(), self.inputs())
    }
}

/// Reconstructs raw data in memory, from a file or a scanner, and writes the outputs.
fn run_on<T: Real>(job: &Job<'_, impl Reconstruction>, dataset: Dataset) -> Result<()> {
    let enabled = job.phase_difference.filter(|args| args.is_enabled());
    let phase_difference = enabled
        .map(|args| PhaseDifference::new(args, &dataset.header, job.input.acquisitions.conjugate))
        .transpose()?;
    let fields = job.dicom.fields_of(&dataset, &[job.outputs.image]);
    let mut session = Session::new(dataset, job.input, job.off_resonance, job.plan)?;
    session.scale = job.scale;
    if let Some(phase_difference) = &phase_difference {
        phase_difference.check(&session.scans)?;
    }
    job.check_images(&session)?;
    let Reconstructed { images, reports, plan, state } = reconstruct::<T, _>(job.reconstruction, &session)?;
    let images = match &phase_difference {
        Some(phase_difference) => phase_difference.of_images(&images)?,
        None => images,
    };
    let mut files = AtomicFiles::new();
    job.reconstruction.write(plan, state, &mut files)?;
    job.outputs.write(files, &images, reports, &fields)
}
