//! `recon grid`.

use crate::options::{
    defaults, Combination, DensityArgs, ImageOutputArgs, InputArgs, OffResonanceArgs, PartialFourierKind,
    PhaseDifferenceArgs, PlanArgs,
};
use crate::run::gaps::{warn_of_gaps, warn_of_missing_side};
use crate::run::job::{voxel_count, FrameResult, Job, Reconstruction, ScanFrame};
use crate::run::plan::ReusablePlan;
use crate::run::precision::to_single;
use crate::run::resize::zeros;
use crate::run::session::Session;
use crate::run::weights::{warn_of_file_weights, Weights};
use recon::bail;
use recon::{Complex, Normal, PartialFourier, PartialFourierOptions, Plan, Real, Result};
use recon_files::{FileUse, Image, Scan};

/// Reconstructs images by gridding, the adjoint transform of density-compensated data
///
/// Images have the scale of the object. All scans of the file (slices, repetitions, contrasts, ...) are reconstructed
/// and go to one file; `recon --help` lists which formats accept images of different sizes. Scans with the same
/// trajectory share one plan. Several coils become one image by the root of the sum of squares (--combine). The image
/// of a single coil stays complex.
///
/// Images are computed on the encoded matrix of the file, then brought to its reconstructed matrix. If the voxel sizes
/// differ, images are interpolated by Fourier transform. Then they are cut, or surrounded by zeros, about the voxel
/// floor(n/2).
///
/// Density weights come from the file (last trajectory dimension), or else from --density. Fully sampled Cartesian data
/// have equal weights, and the image is their inverse discrete Fourier transform.
///
/// --partial-fourier fills k-space of which one side is missing along one axis: partial Fourier lines or partitions,
/// and asymmetric echoes. The image must have a smooth phase. The axis and the symmetric centre follow from the
/// trajectory.
///
/// --frame-shots and --frame-step make several images of one series of shots (real time). All frames use one plan,
/// which gets the trajectory of each frame. If the file has no weights, they are computed for each frame. --density
/// ramp takes less time than the default.
#[derive(clap::Args)]
#[command(after_help = "Example: every second spoke of a radial scan, as a picture:\n  \
    recon grid scan.h5 --every 2 -o image.png")]
pub struct GridArgs {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    output: ImageOutputArgs,

    #[command(flatten)]
    gridding: Gridding,

    #[command(flatten)]
    phase_difference: PhaseDifferenceArgs,

    #[command(flatten)]
    off_resonance: OffResonanceArgs,

    #[command(flatten)]
    plan: PlanArgs,
}

const KSPACE: &str =
    "Write the gridded k-space of each coil instead of images: on the oversampled grid, with k = 0 in \
                      cell floor(n/2), not corrected for the gridding window";

/// The gridding reconstruction.
#[derive(clap::Args)]
pub struct Gridding {
    #[command(flatten)]
    pub density: DensityArgs,

    /// Combination of coil images
    #[arg(long, value_enum, default_value_t = defaults::COMBINE, help_heading = "Reconstruction")]
    pub combine: Combination,

    #[arg(help = FileUse::WriteComplexImages.help(KSPACE))]
    #[arg(long, help_heading = "Reconstruction", conflicts_with_all = ["combine", "phase_difference"])]
    pub kspace: bool,

    /// Method for k-space with a missing side
    #[arg(long, value_enum, value_name = "METHOD", default_value_t = defaults::PARTIAL_FOURIER)]
    #[arg(help_heading = "Reconstruction")]
    pub partial_fourier: PartialFourierKind,

    /// Whether the images are echoes of a field map, which have no warning about gaps between samples.
    #[arg(skip)]
    pub is_for_field_map: bool,
}

pub fn run(args: &GridArgs) -> Result<()> {
    if args.gridding.kspace {
        let format = FileUse::WriteComplexImages.format(&args.output.file.output);
        format.map_err(|e| e.within("gridded k-space is complex"))?;
    }
    // The phases of coils cancel in a phase difference, which the root of the sum of squares would lose.
    let coil_images = Gridding { combine: Combination::None, ..args.gridding };
    let gridding = if args.phase_difference.is_enabled() { &coil_images } else { &args.gridding };
    Job::new(&args.input, &args.output, gridding, &args.plan)
        .with_off_resonance(&args.off_resonance)
        .with_phase_difference(&args.phase_difference)
        .run()
}

/// The plan of a gridding reconstruction.
pub enum GriddingPlan<T: Real> {
    /// All of k-space is used unchanged.
    Complete(ReusablePlan<T>),
    /// The missing side of k-space is filled.
    Partial(PartialFourier<T>),
}

impl Reconstruction for Gridding {
    const TITLE: &'static str = "gridding";
    type Plan<T: Real> = GriddingPlan<T>;
    type State<T: Real> = ();

    fn check(&self) -> Result<()> {
        if self.kspace && self.partial_fourier != PartialFourierKind::None {
            bail!(InvalidArgument, "--kspace has the measured side of k-space only: leave out --partial-fourier");
        }
        Ok(())
    }

    fn bart_factor(&self, scan: &Scan) -> f64 {
        // Both transforms map their images to the measured k-space.
        if self.kspace {
            1.0
        } else {
            voxel_count(scan).sqrt()
        }
    }

    fn channels(&self, scan: &Scan) -> Option<usize> {
        (!self.kspace).then(|| self.combine.channels(scan.coils))
    }

    fn begin<T: Real>(&self, session: &Session) -> Result<()> {
        warn_of_file_weights(&session.scans, &self.density);
        // Partial Fourier reports gaps itself.
        match self.is_for_field_map || self.partial_fourier != PartialFourierKind::None {
            true => Ok(()),
            false => warn_of_gaps(session).and_then(|()| warn_of_missing_side(session)),
        }
    }

    fn plan<T: Real>(&self, frame: &ScanFrame, previous: Option<Self::Plan<T>>, _: &mut ()) -> Result<Self::Plan<T>> {
        let Some(method) = self.partial_fourier.method() else {
            let weights = Weights::for_image(frame.scan, &self.density)?;
            let previous = match previous {
                Some(GriddingPlan::Complete(plan)) => Some(plan),
                _ => None,
            };
            return frame.plan(previous, &weights, None, Normal::Auto).map(GriddingPlan::Complete);
        };
        drop(previous);
        let (sampling, options) = (frame.sampling()?, &frame.session.options);
        let weights = Weights::of_file_or_options(frame.scan, &self.density).compute(&sampling, options)?;
        let mut geometry = sampling.geometry();
        geometry.weights = weights.known();
        let how = PartialFourierOptions { method, ..PartialFourierOptions::default() };
        PartialFourier::new(&geometry, options, &how).map(GriddingPlan::Partial)
    }

    fn image<T: Real>(&self, frame: &ScanFrame, plan: &Self::Plan<T>, _: &mut ()) -> Result<FrameResult> {
        let kspace = frame.data::<T>()?;
        let plan = match plan {
            GriddingPlan::Complete(plan) => plan,
            GriddingPlan::Partial(plan) => {
                let mut coils = zeros(plan.image_len())?;
                plan.reconstruct(&kspace, &mut coils)?;
                return frame.finish(coils, self.combine).map(FrameResult::from);
            }
        };
        if self.kspace {
            return gridded_kspace(&plan.plan, frame.scan, &kspace);
        }
        let mut coils = zeros(plan.plan.image_len())?;
        plan.plan.grid(&kspace, &mut coils)?;
        frame.finish(coils, self.combine).map(FrameResult::from)
    }
}

fn gridded_kspace<T: Real>(plan: &Plan<T>, scan: &Scan, kspace: &[Complex<T>]) -> Result<FrameResult> {
    let grid = plan.info().grid;
    let cells: usize = grid.iter().product();
    // Exact sums have no grid: the library returns the error.
    let mut gridded = zeros(if grid.is_empty() { 0 } else { cells * scan.coils })?;
    plan.grid_kspace(kspace, &mut gridded)?;
    let dims = [0, 1, 2].map(|a| grid.get(a).copied().unwrap_or(1));
    let mut image = Image::of_scan(scan, dims, scan.coils, to_single(&gridded))?;
    image.fov_mm = [0.0; 3];
    Ok(image.into())
}
