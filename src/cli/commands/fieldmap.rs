//! `recon fieldmap`.

use crate::commands::grid::Gridding;
use crate::options::{
    defaults, in_precision, AcquisitionArgs, Combination, DensityArgs, DicomArgs, InputArgs, MapFile, MatrixChoice,
    OutputArgs, PlanArgs, SelectionArgs, WhiteningChoice,
};
use crate::run::job::{reconstruct, Reconstructed};
use crate::run::output::{files_of, report_of, write_images_with_fields, Outputs};
use crate::run::precision::cast;
use crate::run::session::Session;
use crate::run::streams::input_path;
use recon::atomic_file::AtomicFiles;
use recon::bail;
use recon::error::try_vec;
use recon::scan::Header;
use recon::{estimate_field_map, Complex, Echoes, FieldMapOptions, FieldMapReport, Real, Result};
use recon_files::ismrmrd::{read_either, FileContents};
use recon_files::stacks::ImageGeometry;
use recon_files::{read_images, Dataset, DicomFields, FileUse, Format, Image, ScanIndex};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Estimates field maps, in Hz, from images of two or more echoes
///
/// The map comes from the phase that grows from echo to echo, for three or more echoes by a weighted fit. If the phase
/// wraps, it is unwrapped along neighbouring voxels, with a warning. Each connected piece of the object may be off by a
/// multiple of 1 / spacing of the echoes, which does not change any phase. The multiple with the median nearest 0 Hz is
/// taken. The map is smoothed with weights, which fills voxels without signal. Its sign is that of the model: the
/// signal at time t is multiplied by exp(-i 2 pi f t).
///
/// The input is raw data of several echoes in one file (contrasts of ISMRMRD; the header contains the echo times). They
/// are gridded on the encoded matrix, on which the commands that correct off-resonance need the map.
///
/// The input can also be complex images: a file for each echo, in the order of --echo-times, or one file of all echoes.
/// That file has ISMRMRD images of several contrasts, or is a file of BART with echoes in dimension 5. Channels of
/// images (dimension 3 of BART) are coils, which need not be combined. Each slice and repetition has its own map.
#[derive(clap::Args)]
#[command(
    after_help = "Example: from raw data of two echoes, and from two images, 4.92 and 7.38 ms after excitation:\n  \
    recon fieldmap scan.h5 -o field.h5\n  \
    recon fieldmap first.cfl second.cfl --echo-times 0.00492,0.00738 -o field.nii.gz"
)]
pub struct FieldMapArgs {
    #[arg(value_name = "FILE", required = true, help = inputs_help())]
    inputs: Vec<PathBuf>,

    #[command(flatten)]
    output: OutputArgs<MapFile>,

    #[command(flatten)]
    dicom: DicomArgs,

    #[command(flatten)]
    acquisitions: AcquisitionArgs,

    /// Echo times in seconds; required for images, and for raw data whose header has no echo times
    #[arg(long, value_name = "S,S[,S...]", value_delimiter = ',', allow_negative_numbers = true)]
    echo_times: Vec<f64>,

    /// Also write the map of decay rates, R2* in 1/s
    #[arg(long, value_name = "FILE")]
    decay: Option<PathBuf>,

    /// Write limit, signal, wraps and other properties of each map as JSON; `-` writes to the standard output
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Weight of differences between neighbouring voxels, relative to the weight of a voxel with median signal; 0:
    /// voxels with signal keep the measured value
    #[arg(long, value_name = "X", default_value_t = defaults::FIELD_MAP_SMOOTHING, allow_negative_numbers = true)]
    smoothing: f64,

    /// Signal below this ratio to the maximum counts as no signal, since noise alone may cause it; 0: all voxels count
    #[arg(long, value_name = "X", default_value_t = defaults::FIELD_MAP_THRESHOLD, allow_negative_numbers = true)]
    threshold: f64,

    /// Do not unwrap the phase; a warning still reports wraps
    #[arg(long)]
    no_unwrap: bool,

    /// Group of the HDF5 file that contains the raw data
    #[arg(long, value_name = "NAME", default_value = "dataset", help_heading = "Input")]
    group: String,

    #[command(flatten)]
    selection: SelectionArgs,

    /// Noise that whitens the coils of raw data: auto, none, or a file, as for recon grid
    #[arg(long, value_name = "auto|none|FILE", default_value = "auto", help_heading = "Coils")]
    whiten: WhiteningChoice,

    #[command(flatten)]
    density: DensityArgs,

    #[command(flatten)]
    plan: PlanArgs,
}

fn inputs_help() -> String {
    format!(
        "Raw data or images of all echoes ({}), images of all echoes ({}), or one file of images per echo ({})",
        FileUse::ReadDataset.extensions(),
        Format::Bart.extensions(),
        FileUse::ReadImages.extensions()
    )
}

/// The images of one echo.
struct Echo {
    image: Image,
    /// Number of the contrast, to which the echo time belongs.
    contrast: usize,
}

pub fn run(args: &FieldMapArgs) -> Result<()> {
    args.plan.options()?;
    for path in args.images() {
        FileUse::WriteSignedImages.format(path).map_err(|e| e.within("a field map has a sign"))?;
    }
    args.dicom.check(&args.images())?;
    let decay_files: Vec<PathBuf> = args.decay.iter().flat_map(|path| files_of(path)).collect();
    let inputs = args.inputs.iter().chain(args.whiten.file());
    args.outputs().check(&decay_files, inputs)?;
    in_precision!(args.plan.precision, compute(args))
}

impl FieldMapArgs {
    /// Returns the files of maps that are written.
    fn images(&self) -> Vec<&Path> {
        std::iter::once(&self.output.output).chain(&self.decay).map(PathBuf::as_path).collect()
    }

    fn outputs(&self) -> Outputs<'_> {
        Outputs { image: &self.output.output, report: self.report.as_deref() }
    }

    /// Checks, before the computation, that the maps form the volumes of NIfTI files.
    fn check_volumes(&self, maps: &BTreeMap<ScanIndex, Vec<Echo>>) -> Result<()> {
        let geometry = |(index, echoes): (&ScanIndex, &Vec<Echo>)| {
            Some(ImageGeometry { index: *index, ..ImageGeometry::new(&echoes.first()?.image) })
        };
        let geometries: Vec<ImageGeometry> = maps.iter().filter_map(geometry).collect();
        for image in self.images() {
            let inputs = self.inputs.iter().chain(self.whiten.file());
            Outputs { image, report: None }.check_volumes(&geometries, &[], inputs)?;
        }
        Ok(())
    }

    /// Returns the images of a file that the options select.
    fn select(&self, path: &Path, images: Vec<Image>) -> Result<Vec<Image>> {
        self.selection.select(images, |image| image.index).map_err(|e| e.within(path.display()))
    }
}

fn compute<T: Real>(args: &FieldMapArgs) -> Result<()> {
    let (echoes, facts) = read_echoes::<T>(args)?;
    // The echoes of each map, in their order.
    let mut maps = BTreeMap::<ScanIndex, Vec<Echo>>::new();
    for echo in echoes {
        maps.entry(ScanIndex { contrast: 0, average: 0, ..echo.image.index }).or_default().push(echo);
    }
    args.check_volumes(&maps)?;
    let options = FieldMapOptions {
        smoothing: args.smoothing,
        threshold: args.threshold,
        unwrap: !args.no_unwrap,
        threads: args.plan.threads,
        ..FieldMapOptions::DEFAULT
    };
    let (mut fields, mut decays, mut reports) = (Vec::new(), Vec::new(), Vec::new());
    for (index, echoes) in maps {
        let name = map_name(&index);
        let times =
            echo_times(args, &echoes, facts.as_ref().map(|facts| &facts.header)).map_err(|e| e.within(&name))?;
        let FieldMap { field, decay, report } =
            estimate::<T>(args.decay.is_some(), &echoes, &times, &options).map_err(|e| e.within(&name))?;
        log::info!(
            "{name}: {} echoes, {:.1} % of the voxels have signal, |f| up to {:.1} Hz without a wrap; smoothing \
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
    let mut facts = facts.unwrap_or_else(|| args.dicom.fields());
    // A map does not belong to one echo.
    facts.header.echo_times_ms.clear();
    let mut files = AtomicFiles::new();
    if let Some(path) = &args.decay {
        write_images_with_fields(&mut files, path, &decays, &facts)?;
    }
    args.outputs().write(files, &fields, reports, &facts)
}

/// Returns the name of a map for messages.
fn map_name(index: &ScanIndex) -> String {
    format!("slice {}, repetition {}", index.slice, index.repetition)
}

/// Reads the echoes of all maps, and the facts about the scan; `None` for images.
fn read_echoes<T: Real>(args: &FieldMapArgs) -> Result<(Vec<Echo>, Option<DicomFields>)> {
    match &args.inputs[..] {
        [file] => match Format::of_input(input_path(file)?.as_ref()) {
            Some(Format::Ismrmrd) => match read_either(&input_path(file)?, &args.group, args.acquisitions.options())? {
                FileContents::Raw(dataset) => grid_echoes::<T>(args, *dataset),
                FileContents::Images(images) => Ok((echoes_of_contrasts(args, images)?, None)),
            },
            Some(Format::Bart) => Ok((echoes_of_bart(args, file)?, None)),
            _ => bail!(
                InvalidArgument,
                "{}: a file of this format holds one echo, but a field map needs two or more: give one file per echo",
                file.display()
            ),
        },
        files => Ok((echoes_of_files(args, files)?, None)),
    }
}

/// Returns the coil images of each echo, gridded on the encoded matrix.
fn grid_echoes<T: Real>(args: &FieldMapArgs, dataset: Dataset) -> Result<(Vec<Echo>, Option<DicomFields>)> {
    let input = InputArgs {
        acquisitions: args.acquisitions.clone(),
        input: args.inputs[0].clone(),
        trajectory: None,
        matrix: Some(MatrixChoice::Encoded),
        group: args.group.clone(),
        selection: args.selection.clone(),
        every: 1,
        frame_shots: None,
        frame_step: None,
        whiten: args.whiten.clone(),
        compress: None,
    };
    let facts = args.dicom.fields_of(&dataset, &args.images());
    let session = Session::new(dataset, &input, None, &args.plan)?;
    let gridding = Gridding {
        density: args.density,
        combine: Combination::None,
        kspace: false,
        partial_fourier: defaults::PARTIAL_FOURIER,
        is_for_field_map: true,
    };
    let Reconstructed { images, .. } = reconstruct::<T, _>(&gridding, &session)?;
    let echo = |image: Image| Echo { contrast: image.index.contrast.into(), image };
    Ok((images.into_iter().map(echo).collect(), Some(facts)))
}

/// Returns the echoes of images of several contrasts.
fn echoes_of_contrasts(args: &FieldMapArgs, images: Vec<Image>) -> Result<Vec<Echo>> {
    let selected = args.select(&args.inputs[0], images)?.into_iter();
    Ok(selected.map(|image| Echo { contrast: image.index.contrast.into(), image }).collect())
}

/// Reads the echoes of one file of BART, where they are in dimension 5.
fn echoes_of_bart(args: &FieldMapArgs, path: &Path) -> Result<Vec<Echo>> {
    let images = read_images(path)?;
    if images.iter().all(|image| image.index.contrast == 0) {
        let [x, y, z] = images[0].dims;
        bail!(
            SizeMismatch,
            "{}: images of sizes {:?} and one echo: [x, y, z, coils, 1, echoes] is expected, with two or more echoes in \
             dimension 5; or give one file per echo",
            path.display(),
            [x, y, z, images[0].channels]
        );
    }
    echoes_of_contrasts(args, images)
}

/// Reads the echoes of one file per echo.
fn echoes_of_files(args: &FieldMapArgs, paths: &[PathBuf]) -> Result<Vec<Echo>> {
    let mut echoes = Vec::new();
    for (contrast, path) in paths.iter().enumerate() {
        let selected = args.select(path, read_images(path)?)?;
        echoes.extend(selected.into_iter().map(|mut image| {
            // The order of the files determines the echo, not the contrast in the file.
            image.index.contrast = 0;
            Echo { image, contrast }
        }));
    }
    Ok(echoes)
}

/// Returns the echo times of the echoes of a map in seconds.
fn echo_times(args: &FieldMapArgs, echoes: &[Echo], header: Option<&Header>) -> Result<Vec<f64>> {
    if let Some(pair) = echoes.windows(2).find(|pair| pair[0].contrast >= pair[1].contrast) {
        bail!(
            InvalidArgument,
            "two images of echo {}: a map needs one image of each echo, in their order",
            pair[1].contrast
        );
    }
    if !args.echo_times.is_empty() {
        if args.echo_times.len() != echoes.len() {
            bail!(
                SizeMismatch,
                "--echo-times has {} times, but there are {} echoes: give one time per echo",
                args.echo_times.len(),
                echoes.len()
            );
        }
        return Ok(args.echo_times.clone());
    }
    let Some(header) = header else {
        bail!(
            InvalidArgument,
            "files of images do not contain echo times: give --echo-times, in seconds, such as 0.00492,0.00738"
        );
    };
    let time = |echo: &Echo| match header.echo_times_ms.get(echo.contrast) {
        Some(ms) => Ok(ms / 1000.0),
        None => bail!(
            InvalidArgument,
            "the header of the file has {} echo times (sequenceParameters, TE), but no time for contrast {}: give \
             --echo-times, in seconds",
            header.echo_times_ms.len(),
            echo.contrast
        ),
    };
    echoes.iter().map(time).collect()
}

/// A field map and the map of decay; `decay` is `None` if it was not requested.
struct FieldMap {
    field: Image,
    decay: Option<Image>,
    report: FieldMapReport,
}

fn estimate<T: Real>(with_decay: bool, echoes: &[Echo], times: &[f64], options: &FieldMapOptions) -> Result<FieldMap> {
    let first = &echoes[0].image;
    let mut images = Vec::new();
    for Echo { image, contrast } in echoes {
        if (image.dims, image.channels) != (first.dims, first.channels) {
            bail!(
                SizeMismatch,
                "echo {contrast} has {:?} voxels in {} coils, but the first echo {:?} in {}: they must be the same",
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
    let mut decay = with_decay.then(|| try_vec(voxels, T::ZERO, "the decay map")).transpose()?;
    let input = Echoes { images: &images, dims: &first.dims[..ndim], coils: first.channels, times };
    let report = estimate_field_map(&input, options, &mut field, decay.as_deref_mut())?;
    let image = |map: Vec<T>| -> Result<Image> {
        let data = map.iter().map(|v| Complex::new(v.wide() as f32, 0.0)).collect();
        let mut image = Image::new(first.dims, 1, data)?;
        (image.fov_mm, image.placement) = (first.fov_mm, first.placement);
        image.index = ScanIndex { contrast: 0, ..first.index };
        Ok(image)
    };
    Ok(FieldMap { field: image(field)?, decay: decay.map(image).transpose()?, report })
}

/// Returns the report of a map.
fn describe(index: &ScanIndex, times: &[f64], report: &FieldMapReport) -> serde_json::Value {
    let mut value = report_of(index);
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
