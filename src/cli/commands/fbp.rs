//! `recon fbp`.

use crate::options::{defaults, Combination, FilterKind, ImageOutputArgs, InputArgs, PlanArgs};
use crate::run::job::{FrameResult, Job, Reconstruction, ScanFrame};
use crate::run::plan::ReusablePlan;
use crate::run::resize::zeros;
use crate::run::session::Session;
use crate::run::weights::Weights;
use recon::{Normal, Real, Result};
use recon_files::Scan;

/// Reconstructs 2D radial data, at any angles, by filtered backprojection
///
/// Each spoke is multiplied by the ramp |k| and a window, transformed to positions along its line, and added to every
/// voxel by linear interpolation (Schiwietz et al. 2006). Spokes must pass the centre of k-space, with evenly spaced
/// samples in the order of acquisition. Other trajectories are an error. Each sample is weighted by the area of k-space
/// that it represents. Weights in the file are not used. Images have the scale of the object.
///
/// recon grid is faster, has a smaller error near the edge of k-space, and can correct off-resonance, which
/// backprojection cannot. Scans, files, coils and matrices are as for recon grid.
#[derive(clap::Args)]
#[command(after_help = "Example: with less noise than gridding:\n  \
    recon fbp scan.h5 --filter shepp-logan -o image.png")]
pub struct FbpArgs {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    output: ImageOutputArgs,

    #[command(flatten)]
    backprojection: Backprojection,

    #[command(flatten)]
    plan: PlanArgs,
}

/// The filtered backprojection.
#[derive(clap::Args)]
struct Backprojection {
    /// Filter; kmax is the largest measured |k|
    #[arg(long, value_enum, default_value_t = defaults::FILTER, help_heading = "Reconstruction")]
    filter: FilterKind,

    /// Combination of coil images
    #[arg(long, value_enum, default_value_t = defaults::COMBINE, help_heading = "Reconstruction")]
    combine: Combination,
}

pub fn run(args: &FbpArgs) -> Result<()> {
    Job::new(&args.input, &args.output, &args.backprojection, &args.plan).run()
}

impl Reconstruction for Backprojection {
    const TITLE: &'static str = "backprojection";
    type Plan<T: Real> = ReusablePlan<T>;
    type State<T: Real> = ();

    fn channels(&self, scan: &Scan) -> Option<usize> {
        Some(self.combine.channels(scan.coils))
    }

    fn begin<T: Real>(&self, _session: &Session) -> Result<()> {
        Ok(())
    }

    fn plan<T: Real>(&self, frame: &ScanFrame, previous: Option<Self::Plan<T>>, _: &mut ()) -> Result<Self::Plan<T>> {
        frame.plan(previous, &Weights::Default, None, Normal::Auto)
    }

    fn image<T: Real>(&self, frame: &ScanFrame, plan: &Self::Plan<T>, _: &mut ()) -> Result<FrameResult> {
        let mut coils = zeros(plan.plan.image_len())?;
        plan.plan.fbp(self.filter.into(), &frame.data::<T>()?, &mut coils)?;
        frame.finish(coils, self.combine).map(FrameResult::from)
    }
}
