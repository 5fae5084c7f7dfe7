//! `recon fieldmap`.

use crate::defaults;
use crate::io::ismrmrd::Header;
use crate::io::{read_cfl, Dataset, Image, Scan, ScanIndex};
use crate::options::{DensityArgs, InputArgs, Matrix, PlanArgs, Precision, Whiten};
use crate::reader::{read_either, read_images, FileContents};
use crate::run::input::{self, name};
use crate::run::off_resonance::OffResonance;
use crate::run::output::{
    check_outputs, has_ending, image_files, place_of, write_images, write_with_report, STANDARD_OUTPUT,
};
use crate::run::reconstruct::{cast, each_scan, warn_of_weights, Kept, Sampling, Weights};
use crate::run::resize::zeros;
use recon::atomic_file::AtomicFiles;
use recon::bail;
use recon::error::try_vec;
use recon::{estimate_field_map, Complex, Echoes, FieldMapOptions, FieldMapReport, Plan, Real, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Field maps, in Hz, from images of two echoes or more
///
/// From the phase that grows from echo to echo; from three echoes on by a weighted fit. If the phase wraps, it is
/// unwrapped along neighbouring voxels, with a warning. Each connected piece of the object may be off by a multiple
/// of 1 / spacing of the echoes, which changes no phase: the median nearest 0 Hz is taken. The map is smoothed by
/// weights, which fills voxels without signal. With the sign of the model: the signal at time t is multiplied by
/// exp(-i 2 pi f t).
///
/// Inputs are raw data of several echoes in one file (contrasts of ISMRMRD, whose header has the echo times): they are
/// gridded on the encoded matrix, for which the commands that correct off-resonance want the map. Or complex images:
/// a file for each echo, in the order of --echo-times; or one file of ISMRMRD images of several contrasts, or of BART's
/// with echoes in dimension 5. Channels of images (BART's dimension 3) are coils, which need not be combined. Slices
/// and repetitions have a map each.
#[derive(clap::Args)]
#[command(
    after_help = "Example: from raw data of two echoes, and from two images, 4.92 and 7.38 ms after excitation:\n  \
    recon fieldmap scan.h5 -o field.h5\n  \
    recon fieldmap first.cfl second.cfl --echo-times 0.00492,0.00738 -o field.nii.gz"
)]
pub struct FieldMapArgs {
    /// Raw data or images of all echoes (.h5, .mrd), images of all echoes (.cfl), or the images of each echo (.h5, .mrd,
    /// .cfl, .nii, .nii.gz, .npy)
    #[arg(value_name = "FILE", required = true)]
    inputs: Vec<PathBuf>,

    /// Map to be written, its format by its ending: .h5, .mrd, .cfl, .nii, .nii.gz
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Echo times in seconds; needed for images, and for raw data whose header has none
    #[arg(long, value_name = "S,S[,S...]", value_delimiter = ',', allow_negative_numbers = true)]
    echo_times: Vec<f64>,

    /// Write the map of decay too, R2* in 1/s
    #[arg(long, value_name = "FILE")]
    decay: Option<PathBuf>,

    /// Write what was found of each map as JSON: limit, signal, wraps; - for the standard output
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Weight of differences between neighbouring voxels against that of a voxel of median signal; 0: voxels with signal
    /// keep what was measured
    #[arg(long, value_name = "X", default_value_t = defaults::FIELD_MAP_SMOOTHING, allow_negative_numbers = true)]
    smoothing: f64,

    /// Signal below this part of the largest counts as none, as that which noise alone may have does; 0: all voxels count
    #[arg(long, value_name = "X", default_value_t = defaults::FIELD_MAP_THRESHOLD, allow_negative_numbers = true)]
    threshold: f64,

    /// Leave wraps of the phase; they are warned of all the same
    #[arg(long)]
    no_unwrap: bool,

    /// Group of the HDF5 file that has the raw data
    #[arg(long, value_name = "NAME", default_value = "dataset", help_heading = "Input")]
    group: String,

    /// Only this slice; otherwise all
    #[arg(long, value_name = "N", help_heading = "Input")]
    slice: Option<u16>,

    /// Only this repetition; otherwise all
    #[arg(long, value_name = "N", help_heading = "Input")]
    repetition: Option<u16>,

    /// Noise by which coils of raw data are whitened: auto, none, or a file, as for recon grid
    #[arg(long, value_name = "auto|none|FILE", default_value = "auto", help_heading = "Coils")]
    whiten: Whiten,

    #[command(flatten)]
    density: DensityArgs,

    #[command(flatten)]
    plan: PlanArgs,
}

/// Images of one echo, and where they are in the measurement.
struct Echo {
    image: Image,
    /// The contrast, which the echo time belongs to.
    contrast: usize,
}

pub fn run(args: &FieldMapArgs) -> Result<()> {
    args.plan.options()?;
    let mut outputs = Vec::new();
    for path in std::iter::once(&args.output).chain(&args.decay) {
        if has_ending(path, &[".png"]) {
            bail!(
                InvalidArgument,
                "{}: a picture has magnitudes, and a map has a sign: write .h5, .mrd, .cfl, .nii or .nii.gz",
                path.display()
            );
        }
        outputs.extend(image_files(path)?);
    }
    outputs.extend(args.report.clone().filter(|path| path != Path::new(STANDARD_OUTPUT)));
    let noise = match &args.whiten {
        Whiten::File(path) => Some(path),
        Whiten::Auto | Whiten::None => None,
    };
    check_outputs(&outputs, args.inputs.iter().chain(noise))?;
    match args.plan.precision {
        Precision::F32 => compute::<f32>(args),
        Precision::F64 => compute::<f64>(args),
    }
}

fn compute<T: Real>(args: &FieldMapArgs) -> Result<()> {
    let (echoes, header) = match &args.inputs[..] {
        [one] if has_ending(one, &[".h5", ".mrd"]) => match read_either(one, &args.group)? {
            FileContents::Raw(dataset) => gridded::<T>(args, dataset)?,
            FileContents::Images(images) => (of_contrasts(args, images)?, None),
        },
        [one] if has_ending(one, &[".cfl", ".hdr"]) => (of_bart(one)?, None),
        [one] => bail!(
            InvalidArgument,
            "{}: a file of this format holds one echo, and a field map needs two or more: give the file of each",
            one.display()
        ),
        several => (of_files(args, several)?, None),
    };
    // The echoes of each map, in their order.
    let mut maps = BTreeMap::<ScanIndex, Vec<Echo>>::new();
    for echo in echoes {
        maps.entry(ScanIndex { contrast: 0, average: 0, ..echo.image.index }).or_default().push(echo);
    }
    let options = FieldMapOptions {
        smoothing: args.smoothing,
        threshold: args.threshold,
        unwrap: !args.no_unwrap,
        threads: args.plan.threads,
        ..FieldMapOptions::DEFAULT
    };
    let (mut fields, mut decays, mut reports) = (Vec::new(), Vec::new(), Vec::new());
    for (index, echoes) in maps {
        let times = times_of(args, &echoes, header.as_ref())?;
        let place = place_name(&index);
        let (field, decay, report) = map_of::<T>(args, &echoes, &times, &options).map_err(|e| e.within(&place))?;
        log::info!(
            "{place}: {} echoes, {:.1} % of the voxels have signal, |f| up to {:.1} Hz without a wrap; smoothing \
             changed {:.2} Hz",
            echoes.len(),
            100.0 * report.signal,
            report.limit,
            report.change
        );
        reports.push(describe(&index, &times, &report));
        fields.push(field);
        decays.extend(decay);
    }
    let mut files = AtomicFiles::new();
    if let Some(path) = &args.decay {
        write_images(&mut files, path, &decays)?;
    }
    write_with_report(files, (&args.output, &fields), (args.report.as_deref(), reports))
}

fn place_name(index: &ScanIndex) -> String {
    format!("slice {}, repetition {}", index.slice, index.repetition)
}

/// The coil images of each echo, gridded on the encoded matrix.
fn gridded<T: Real>(args: &FieldMapArgs, dataset: Dataset) -> Result<(Vec<Echo>, Option<Header>)> {
    let input = InputArgs {
        input: args.inputs[0].clone(),
        trajectory: None,
        matrix: Some(Matrix::Encoded),
        group: args.group.clone(),
        slice: args.slice,
        repetition: args.repetition,
        every: 1,
        frame_shots: None,
        frame_step: None,
        whiten: args.whiten.clone(),
        compress: None,
    };
    let scans = input::select(&input, dataset.scans, dataset.noise, Some(&dataset.header))?;
    warn_of_weights(&scans, &args.density);
    let plan_of = |scan: &Scan, _: usize, before: Option<(Kept<T>, bool)>| {
        let weights = Weights::of(scan, &args.density);
        let sampling = Sampling::<T>::of(scan);
        let geometry = sampling.geometry(&args.plan);
        let plan = Kept::new(before.map(|(plan, _)| plan), &geometry, &weights, &args.plan.options()?)?;
        Ok((plan, matches!(weights, Weights::Volumes(_))))
    };
    // The images of echoes have no map yet.
    let none = OffResonance::default();
    let images = each_scan(&scans, None, &none, "gridding", plan_of, |(Kept { plan, .. }, volumes), scan, _| {
        grid(plan, scan, *volumes).map_err(|e| e.within(name(scan)))
    })?;
    let echo = |image: Image| Echo { contrast: image.index.contrast.into(), image };
    Ok((images.into_iter().map(echo).collect(), Some(dataset.header)))
}

fn grid<T: Real>(plan: &Plan<T>, scan: &Scan, volumes: bool) -> Result<Image> {
    let kspace = cast::<T>(&scan.data)?;
    let mut coils = zeros(plan.image_len())?;
    if volumes {
        plan.weighted_adjoint(&kspace, &mut coils)?;
    } else {
        plan.grid(&kspace, &mut coils)?;
    }
    let data = coils.iter().map(|z| Complex::new(z.re.wide() as f32, z.im.wide() as f32)).collect();
    scan.image(scan.encoded_matrix, scan.coils, data)
}

/// ISMRMRD images of several contrasts.
fn of_contrasts(args: &FieldMapArgs, images: Vec<Image>) -> Result<Vec<Echo>> {
    let chosen =
        |i: &ScanIndex| args.slice.is_none_or(|n| i.slice == n) && args.repetition.is_none_or(|n| i.repetition == n);
    let echoes: Vec<Echo> = images
        .into_iter()
        .filter(|image| chosen(&image.index))
        .map(|image| Echo { contrast: image.index.contrast.into(), image })
        .collect();
    if echoes.is_empty() {
        bail!(InvalidArgument, "{}: no such slice and repetition", args.inputs[0].display());
    }
    Ok(echoes)
}

/// One file of BART's, with echoes in dimension 5.
fn of_bart(path: &Path) -> Result<Vec<Echo>> {
    let array = read_cfl(path)?;
    let sizes = array.sizes();
    let others = sizes[4] > 1 || sizes[6..].iter().any(|&n| n > 1);
    if others || sizes[5] < 2 {
        bail!(
            SizeMismatch,
            "{}: images of sizes {:?}: [x, y, z, coils, 1, echoes] is expected, with two echoes or more; or give the \
             file of each echo",
            path.display(),
            array.dims
        );
    }
    let dims = [sizes[0], sizes[1], sizes[2]];
    let one: usize = sizes[..4].iter().product();
    let image = |(contrast, data): (usize, &[Complex<f32>])| {
        Ok(Echo { image: Image::new(dims, sizes[3], data.to_vec())?, contrast })
    };
    array.data.chunks_exact(one).enumerate().map(image).collect()
}

/// A file for each echo.
fn of_files(args: &FieldMapArgs, paths: &[PathBuf]) -> Result<Vec<Echo>> {
    let mut echoes = Vec::new();
    for (contrast, path) in paths.iter().enumerate() {
        let images = read_images(path)?;
        let count = images.len();
        let chosen = images.into_iter().filter(|image| {
            args.slice.is_none_or(|n| image.index.slice == n)
                && args.repetition.is_none_or(|n| image.index.repetition == n)
        });
        let before = echoes.len();
        echoes.extend(chosen.map(|mut image| {
            // The order of the files counts, whatever they say of themselves.
            image.index.contrast = 0;
            Echo { image, contrast }
        }));
        if echoes.len() == before {
            bail!(InvalidArgument, "{}: no such slice and repetition among {count} images", path.display());
        }
    }
    Ok(echoes)
}

/// The echo times of a map's echoes, in seconds.
fn times_of(args: &FieldMapArgs, echoes: &[Echo], header: Option<&Header>) -> Result<Vec<f64>> {
    let place = place_name(&echoes[0].image.index);
    if let Some(pair) = echoes.windows(2).find(|pair| pair[0].contrast >= pair[1].contrast) {
        bail!(
            InvalidArgument,
            "{place}: two images of echo {}: a map needs one of each echo, in their order",
            pair[1].contrast
        );
    }
    if !args.echo_times.is_empty() {
        if args.echo_times.len() != echoes.len() {
            bail!(
                SizeMismatch,
                "{place}: --echo-times has {} times, but there are {} echoes: give one for each",
                args.echo_times.len(),
                echoes.len()
            );
        }
        return Ok(args.echo_times.clone());
    }
    let Some(header) = header else {
        bail!(InvalidArgument, "images have no echo times: give --echo-times, in seconds, such as 0.00492,0.00738");
    };
    let time = |echo: &Echo| match header.echo_times_ms.get(echo.contrast) {
        Some(ms) => Ok(ms / 1000.0),
        None => bail!(
            InvalidArgument,
            "{place}: the header of the file has {} echo times (sequenceParameters, TE), and none for contrast {}: \
             give --echo-times, in seconds",
            header.echo_times_ms.len(),
            echo.contrast
        ),
    };
    echoes.iter().map(time).collect()
}

type Maps = (Image, Option<Image>, FieldMapReport);

fn map_of<T: Real>(args: &FieldMapArgs, echoes: &[Echo], times: &[f64], options: &FieldMapOptions) -> Result<Maps> {
    let first = &echoes[0].image;
    let mut images = Vec::new();
    for Echo { image, contrast } in echoes {
        if (image.dims, image.channels) != (first.dims, first.channels) {
            bail!(
                SizeMismatch,
                "echo {contrast} has {:?} voxels in {} coils, and the first {:?} in {}: they must be the same",
                image.dims,
                image.channels,
                first.dims,
                first.channels
            );
        }
        images.extend(cast::<T>(&image.data)?);
    }
    let voxels: usize = first.dims.iter().product();
    let ndim = if first.dims[2] > 1 { 3 } else { 2 };
    let mut field = try_vec(voxels, T::ZERO, "the field map")?;
    let mut decay = match &args.decay {
        Some(_) => Some(try_vec(voxels, T::ZERO, "the decay map")?),
        None => None,
    };
    let of = Echoes { images: &images, dims: &first.dims[..ndim], coils: first.channels, times };
    let report = estimate_field_map(&of, options, &mut field, decay.as_deref_mut())?;
    let image = |map: Vec<T>| -> Result<Image> {
        let data = map.iter().map(|v| Complex::new(v.wide() as f32, 0.0)).collect();
        let mut image = Image::new(first.dims, 1, data)?;
        (image.fov_mm, image.placement) = (first.fov_mm, first.placement);
        image.index = ScanIndex { contrast: 0, ..first.index };
        Ok(image)
    };
    Ok((image(field)?, decay.map(image).transpose()?, report))
}

fn describe(index: &ScanIndex, times: &[f64], report: &FieldMapReport) -> serde_json::Value {
    let mut value = place_of(index);
    value["echo_times_s"] = times.into();
    value["limit_hz"] = report.limit.into();
    value["signal"] = report.signal.into();
    value["change_hz"] = report.change.into();
    value["jumps"] = report.jumps.into();
    value["unwrapped"] = report.unwrapped.into();
    value["unresolved"] = report.unresolved.into();
    value["period_hz"] = report.period.into();
    value["pieces"] = report.pieces.into();
    value["undecided"] = report.undecided.into();
    value
}
