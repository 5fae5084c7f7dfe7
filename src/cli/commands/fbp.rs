//! `recon fbp`.

use crate::defaults;
use crate::io::Scan;
use crate::options::{Combination, FilterKind, InputArgs, PlanArgs, Precision};
use crate::run::off_resonance::OffResonance;
use crate::run::output::{check_outputs, image_files, write_images};
use crate::run::reconstruct::{cast, channels, each_scan, read_scans, Finish, Input, Kept, Sampling, Weights};
use crate::run::resize::zeros;
use recon::atomic_file::write_atomically;
use recon::{Real, Result};
use std::path::PathBuf;

/// Filtered backprojection of 2D radial data, at any angles
///
/// Each spoke is multiplied by the ramp |k| and a window, transformed to positions along its line, and added to every
/// voxel by linear interpolation (Schiwietz et al. 2006). Spokes pass the centre of k-space, and their samples are
/// even and in the order of acquisition: other trajectories are refused. Each sample is weighed by the area of k-space
/// that it stands for, and weights in the file are not used. Images come at the scale of the object. recon grid is
/// faster, and errs less near the edge of k-space; it also corrects off-resonance, which backprojection cannot. Scans,
/// files, coils and matrices are as for recon grid.
#[derive(clap::Args)]
#[command(after_help = "Example: with less noise than gridding:\n  \
    recon fbp scan.h5 --filter shepp-logan -o image.png")]
pub struct FbpArgs {
    #[command(flatten)]
    input: InputArgs,

    /// Image to be written, its format by its ending: .h5, .mrd, .cfl, .nii, .nii.gz, .png
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// The filter; kmax is the largest |k| that is measured
    #[arg(long, value_enum, default_value_t = defaults::FILTER, help_heading = "Reconstruction")]
    filter: FilterKind,

    /// How several coil images become one
    #[arg(long, value_enum, default_value_t = defaults::COMBINE, help_heading = "Reconstruction")]
    combine: Combination,

    #[command(flatten)]
    plan: PlanArgs,
}

pub fn run(args: &FbpArgs) -> Result<()> {
    args.plan.options()?;
    check_outputs(&image_files(&args.output)?, args.input.files())?;
    match args.plan.precision {
        Precision::F32 => compute::<f32>(args),
        Precision::F64 => compute::<f64>(args),
    }
}

fn compute<T: Real>(args: &FbpArgs) -> Result<()> {
    let Input { scans, frames, resizes, .. } =
        read_scans(&args.input, Some(&args.output), |s| channels(s.coils, args.combine))?;
    let plan_of = |scan: &Scan, _, before| {
        let sampling = Sampling::<T>::of(scan);
        Kept::new(before, &sampling.geometry(&args.plan), &Weights::Default, &args.plan.options()?)
    };
    let images = each_scan(
        &scans,
        frames,
        &OffResonance::default(),
        "backprojection",
        plan_of,
        |Kept { plan, .. }, scan, i| {
            let mut coils = zeros(plan.image_len())?;
            plan.fbp(args.filter.into(), &cast::<T>(&scan.data)?, &mut coils)?;
            Finish { scan, resize: resizes[i], combine: args.combine }.image(coils)
        },
    )?;
    write_atomically(|files| write_images(files, &args.output, &images))
}
