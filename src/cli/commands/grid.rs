//! `recon grid`.

use crate::defaults;
use crate::io::{Image, Scan};
use crate::options::{Combination, DensityArgs, InputArgs, PlanArgs, Precision};
use crate::run::off_resonance::{OffResonance, OffResonanceArgs};
use crate::run::output::{check_outputs, has_ending, image_files, write_images};
use crate::run::reconstruct::{
    cast, channels, each_scan, read_scans, warn_of_gaps, warn_of_weights, Finish, Input, Kept, Sampling, Weights,
};
use crate::run::resize::zeros;
use recon::atomic_file::write_atomically;
use recon::bail;
use recon::{Complex, Plan, Real, Result};
use std::path::PathBuf;

/// Gridding reconstruction: the adjoint transform of density-compensated data
///
/// Images come at the scale of the object. All scans of the file (slices, repetitions, contrasts, ...) are
/// reconstructed, those with an identical trajectory by one plan, and go to one file: .h5 and .mrd take images of any
/// sizes; .cfl (BART's dimension 10), .nii, .nii.gz (fourth dimension; magnitude) and .png (side by side; magnitude)
/// take images of one size. Several coils become one image by the root of the sum of squares (--combine); a single
/// coil's image stays complex.
///
/// Images are computed on the encoded matrix of the file, then brought to its reconstructed matrix: interpolated by
/// Fourier where the voxel sizes differ, and cut to, or surrounded by zeros up to, the matrix, about the voxel
/// floor(n/2).
///
/// Density weights are the file's (last trajectory dimension), else those of --density. Fully sampled Cartesian data
/// are weighted equally, which makes the result their inverse discrete Fourier transform.
///
/// --frame-shots and --frame-step make several images of one series of shots (real time), by one plan that is given the
/// trajectory of each. Weights that the file does not have are computed for each frame; those of --density ramp take
/// less time than the default's.
#[derive(clap::Args)]
#[command(after_help = "Example: every second spoke of a radial scan, as a picture:\n  \
    recon grid scan.h5 --every 2 -o image.png")]
pub struct GridArgs {
    #[command(flatten)]
    input: InputArgs,

    /// Image to be written, its format by its ending: .h5, .mrd, .cfl, .nii, .nii.gz, .png
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    #[command(flatten)]
    density: DensityArgs,

    /// How several coil images become one
    #[arg(long, value_enum, default_value_t = defaults::COMBINE, help_heading = "Reconstruction")]
    combine: Combination,

    /// Stop at the gridded k-space of each coil, on the oversampled grid, k = 0 in cell floor(n/2), not corrected for
    /// the gridding window (.cfl, .h5 or .mrd)
    #[arg(long, help_heading = "Reconstruction", conflicts_with = "combine")]
    kspace: bool,

    #[command(flatten)]
    off_resonance: OffResonanceArgs,

    #[command(flatten)]
    plan: PlanArgs,
}

pub fn run(args: &GridArgs) -> Result<()> {
    if args.kspace && !has_ending(&args.output, &[".cfl", ".h5", ".mrd"]) {
        bail!(
            InvalidArgument,
            "{}: gridded k-space is complex: it is written to .cfl, .h5 or .mrd files only",
            args.output.display()
        );
    }
    args.plan.options()?;
    args.off_resonance.check()?;
    check_outputs(&image_files(&args.output)?, args.input.files().chain(args.off_resonance.files()))?;
    match args.plan.precision {
        Precision::F32 => compute::<f32>(args),
        Precision::F64 => compute::<f64>(args),
    }
}

fn compute<T: Real>(args: &GridArgs) -> Result<()> {
    // Gridded k-space has other sizes than images.
    let output = (!args.kspace).then_some(&*args.output);
    let Input { scans, frames, resizes, .. } = read_scans(&args.input, output, |s| channels(s.coils, args.combine))?;
    let maps = OffResonance::read(&args.off_resonance, &scans, &resizes)?;
    warn_of_weights(&scans, &args.density);
    warn_of_gaps(&scans, frames)?;
    let plan_of = |scan: &Scan, i: usize, before: Option<(Kept<T>, bool)>| {
        let weights = Weights::of(scan, &args.density);
        let sampling = Sampling::<T>::with_maps(scan, i, &maps)?;
        let geometry = sampling.geometry(&args.plan);
        let plan = Kept::new(before.map(|(plan, _)| plan), &geometry, &weights, &args.plan.options()?)?;
        Ok((plan, matches!(weights, Weights::Volumes(_))))
    };
    let images = each_scan(&scans, frames, &maps, "gridding", plan_of, |(Kept { plan, .. }, volumes), scan, i| {
        let kspace = cast::<T>(&scan.data)?;
        if args.kspace {
            return gridded(plan, scan, &kspace);
        }
        let mut coils = zeros(plan.image_len())?;
        if *volumes {
            plan.weighted_adjoint(&kspace, &mut coils)?;
        } else {
            plan.grid(&kspace, &mut coils)?;
        }
        Finish { scan, resize: resizes[i], combine: args.combine }.image(coils)
    })?;
    write_atomically(|files| write_images(files, &args.output, &images))
}

fn gridded<T: Real>(plan: &Plan<T>, scan: &Scan, kspace: &[Complex<T>]) -> Result<Image> {
    let grid = plan.info().grid;
    let cells: usize = grid.iter().product();
    // With exact sums there is no grid: the library returns the error.
    let mut out = zeros(if grid.is_empty() { 0 } else { cells * scan.coils })?;
    plan.grid_kspace(kspace, &mut out)?;
    let data = out.iter().map(|z| Complex::new(z.re.wide() as f32, z.im.wide() as f32)).collect();
    let dims = [0, 1, 2].map(|a| grid.get(a).copied().unwrap_or(1));
    let mut image = scan.image(dims, scan.coils, data)?;
    image.fov_mm = [0.0; 3];
    Ok(image)
}
