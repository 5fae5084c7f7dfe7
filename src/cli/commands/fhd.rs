//! `recon fhd`.

use crate::options::{defaults, Combination, ImageOutputArgs, InputArgs, OffResonanceArgs, PlanArgs};
use crate::run::coil_maps::CoilMapFile;
use crate::run::job::{voxel_count, FrameResult, Job, Reconstruction, ScanFrame};
use crate::run::plan::ReusablePlan;
use crate::run::resize::zeros;
use crate::run::session::Session;
use crate::run::weights::Weights;
use recon::{Normal, Real, Result};
use recon_files::{FileUse, Scan};
use std::path::PathBuf;

/// Computes the adjoint transform E^H d, without density weights and without a scale factor
///
/// F^H d of Stone et al. 2008: x(r) = sum over samples of d(k) exp(+i 2 pi k.r), for each coil. Several coils then
/// become one image: by default the root of their sum of squares, a magnitude. --combine none writes the complex
/// adjoint of each coil, one channel per coil. --maps writes the adjoint of the model with coils, sum_c conj(S_c) x_c.
/// Scans, files and matrices are as for recon grid.
#[derive(clap::Args)]
#[command(after_help = "Example: the complex adjoint of each coil, by exact sums, in double precision:\n  \
    recon fhd scan.h5 --combine none --method exact --precision f64 -o coils.h5")]
pub struct FhdArgs {
    #[command(flatten)]
    input: InputArgs,

    #[command(flatten)]
    output: ImageOutputArgs,

    #[command(flatten)]
    adjoint: Adjoint,

    #[command(flatten)]
    off_resonance: OffResonanceArgs,

    #[command(flatten)]
    plan: PlanArgs,
}

/// The adjoint transform.
#[derive(clap::Args)]
struct Adjoint {
    /// Combination of coil images
    #[arg(long, value_enum, default_value_t = defaults::COMBINE, help_heading = "Reconstruction")]
    combine: Combination,

    #[arg(help = FileUse::ReadImages.help("Coil maps, [encoded matrix, coils], that combine the coils"))]
    #[arg(long, value_name = "FILE", help_heading = "Reconstruction", conflicts_with = "combine")]
    maps: Option<PathBuf>,
}

pub fn run(args: &FhdArgs) -> Result<()> {
    Job::new(&args.input, &args.output, &args.adjoint, &args.plan).with_off_resonance(&args.off_resonance).run()
}

impl Reconstruction for Adjoint {
    const TITLE: &'static str = "adjoint";
    type Plan<T: Real> = ReusablePlan<T>;
    type State<T: Real> = CoilMapFile<T>;

    fn input_files(&self) -> Vec<&PathBuf> {
        self.maps.iter().collect()
    }

    fn bart_factor(&self, scan: &Scan) -> f64 {
        1.0 / voxel_count(scan).sqrt()
    }

    fn channels(&self, scan: &Scan) -> Option<usize> {
        Some(if self.maps.is_some() { 1 } else { self.combine.channels(scan.coils) })
    }

    fn begin<T: Real>(&self, _session: &Session) -> Result<CoilMapFile<T>> {
        Ok(CoilMapFile::new())
    }

    fn plan<T: Real>(
        &self,
        frame: &ScanFrame,
        previous: Option<ReusablePlan<T>>,
        file: &mut CoilMapFile<T>,
    ) -> Result<ReusablePlan<T>> {
        let maps = self.maps.as_ref().map(|path| file.read(path, frame.scan)).transpose()?;
        frame.plan(previous, &Weights::Default, maps, Normal::Auto)
    }

    fn image<T: Real>(&self, frame: &ScanFrame, plan: &Self::Plan<T>, _: &mut CoilMapFile<T>) -> Result<FrameResult> {
        let mut coils = zeros(plan.plan.image_len())?;
        plan.plan.adjoint(&frame.data::<T>()?, &mut coils)?;
        frame.finish(coils, self.combine).map(FrameResult::from)
    }
}
