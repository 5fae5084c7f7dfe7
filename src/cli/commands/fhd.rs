//! `recon fhd`.

use crate::defaults;
use crate::io::Scan;
use crate::options::{Combination, InputArgs, PlanArgs, Precision};
use crate::run::off_resonance::{OffResonance, OffResonanceArgs};
use crate::run::output::{check_outputs, image_files, write_images};
use crate::run::reconstruct::{
    cast, channels, each_scan, read_maps, read_scans, Finish, Input, Kept, Sampling, Weights,
};
use crate::run::resize::zeros;
use recon::atomic_file::write_atomically;
use recon::{Real, Result};
use std::path::PathBuf;

/// The adjoint transform E^H d, without density weights and not scaled
///
/// F^H d of Stone et al. 2008: x(r) = sum over samples of d(k) exp(+i 2 pi k.r), for each coil. Several coils then
/// become one image: by default the root of their sum of squares, a magnitude. --combine none writes the complex
/// adjoint of each coil, one channel a coil; --maps writes the adjoint of the model with coils, sum_c conj(S_c) x_c.
/// Scans, files and matrices are as for recon grid.
#[derive(clap::Args)]
#[command(after_help = "Example: the complex adjoint of each coil, by the exact sums, in double precision:\n  \
    recon fhd scan.h5 --combine none --method exact --precision f64 -o coils.h5")]
pub struct FhdArgs {
    #[command(flatten)]
    input: InputArgs,

    /// Image to be written, its format by its ending: .h5, .mrd, .cfl, .nii, .nii.gz, .png
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// How several coil images become one
    #[arg(long, value_enum, default_value_t = defaults::COMBINE, help_heading = "Reconstruction")]
    combine: Combination,

    /// Coil maps, [encoded matrix, coils] (.cfl or .h5), with which coils are combined
    #[arg(long, value_name = "FILE", help_heading = "Reconstruction", conflicts_with = "combine")]
    maps: Option<PathBuf>,

    #[command(flatten)]
    off_resonance: OffResonanceArgs,

    #[command(flatten)]
    plan: PlanArgs,
}

pub fn run(args: &FhdArgs) -> Result<()> {
    args.plan.options()?;
    args.off_resonance.check()?;
    check_outputs(&image_files(&args.output)?, args.input.files().chain(&args.maps).chain(args.off_resonance.files()))?;
    match args.plan.precision {
        Precision::F32 => compute::<f32>(args),
        Precision::F64 => compute::<f64>(args),
    }
}

fn compute<T: Real>(args: &FhdArgs) -> Result<()> {
    let images_of = |s: &Scan| if args.maps.is_some() { 1 } else { channels(s.coils, args.combine) };
    let Input { scans, frames, resizes, .. } = read_scans(&args.input, Some(&args.output), images_of)?;
    let maps = OffResonance::read(&args.off_resonance, &scans, &resizes)?;
    // The maps of a scan's coils, which are read once for all of its frames.
    let mut known = None;
    let plan_of = |scan: &Scan, i: usize, before| {
        let sampling = Sampling::<T>::with_maps(scan, i, &maps)?;
        let mut geometry = sampling.geometry(&args.plan);
        if let Some(path) = &args.maps {
            let of = (scan.encoded_matrix, scan.coils, scan.coil_matrix.clone());
            if known.as_ref().is_none_or(|(before, _)| *before != of) {
                known = Some((of, read_maps(path, scan)?));
            }
            geometry.coil_maps = known.as_ref().map(|(_, maps)| &maps[..]);
        }
        Kept::new(before, &geometry, &Weights::Default, &args.plan.options()?)
    };
    let images = each_scan(&scans, frames, &maps, "adjoint", plan_of, |Kept { plan, .. }, scan, i| {
        let mut coils = zeros(plan.image_len())?;
        plan.adjoint(&cast::<T>(&scan.data)?, &mut coils)?;
        Finish { scan, resize: resizes[i], combine: args.combine }.image(coils)
    })?;
    write_atomically(|files| write_images(files, &args.output, &images))
}
