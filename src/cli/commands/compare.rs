//! `recon compare`.

use crate::progress::COMPARISON;
use crate::run::output::{check_outputs, say};
use crate::run::resize::{order_hint, zeros};
use crate::run::streams::input_path;
use crate::run::value_kind::ValueKind;
use clap::ValueEnum;
use recon::atomic_file::write_atomically;
use recon::bail;
use recon::error::checked_product;
use recon::metrics::{compare, compare_magnitude, Metrics, Scale};
use recon::resize::recentre;
use recon::{Complex, Result};
use recon_files::png::{write_png_row, GreySlice};
use recon_files::stacks::{length, minus, wide, ImageGeometry};
use recon_files::{read_images, FileUse, Image, Placement, ScanIndex};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Computes the error of images relative to a true image
///
/// Prints one line per image, with numbers over all compared voxels. The percent error is 100 RMS(image - truth) /
/// RMS(truth), and MSE is the mean squared error. PSNR is 20 log10(max |truth| / RMS(error)) and SNR is
/// 20 log10(RMS(truth) / RMS(error)), both in dB.
///
/// If a file contains several images, TRUTH contains the same number, or one for all of them. If the sizes differ, the
/// smaller image is placed in the middle of the larger one (index floor(n/2) on index floor(n/2)), with zeros around
/// it, and a warning is printed. The same sizes in a different order are an error.
///
/// The line says what was compared. If one of the two images is complex and the other a magnitude (real and
/// non-negative), magnitudes are compared, and a warning is printed. Otherwise values are compared as they are: phases
/// and signs count, and a warning is printed if only one of the two images has them.
///
/// A warning is also printed if a different scale, or TRUTH with reversed axes, would at least halve the error. Another
/// is printed if the files give the two images different voxel sizes, positions or orientations in the patient, or
/// different slices and repetitions.
#[derive(clap::Args)]
#[command(after_help = "Example: magnitudes, at the best scale, within the object, with a picture of all three:\n  \
    recon compare gridding.h5 cg.h5 truth.npy --magnitude --scale best --mask 0.05 --picture three.png")]
pub struct CompareArgs {
    #[arg(help = FileUse::ReadImages.help("Images, then the true image"))]
    #[arg(required = true, num_args = 2.., value_names = ["IMAGE", "TRUTH"])]
    files: Vec<PathBuf>,

    /// Factor by which each image is multiplied first
    #[arg(long, value_enum, default_value_t = ScaleKind::None)]
    scale: ScaleKind,

    /// Compare magnitudes only, without phases and signs
    #[arg(long)]
    magnitude: bool,

    /// Compare values as they are, with phases and signs, even if one of the two images is a magnitude
    #[arg(long, conflicts_with = "magnitude")]
    complex: bool,

    /// Compare only voxels where the truth exceeds this fraction of its largest magnitude, 0 to 1 [default:
    /// all voxels]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    mask: Option<f32>,

    /// Reverse the axes of TRUTH, for a NumPy array that is indexed [x, y, z]
    #[arg(long)]
    transpose: bool,

    /// Write a picture of truth and images side by side, with one grey scale; of volumes the middle slice. The
    /// orientation is that of the truth, or of the first image that has one
    #[arg(long, value_name = "FILE.png")]
    picture: Option<PathBuf>,

    /// Print one JSON object per line, with the keys percent_error, mse, psnr_db, snr_db, scale, voxels, magnitude,
    /// image_values, truth_values, placed, notes. With several files there is the key file, with several images the
    /// keys image (its number), slice, repetition, contrast, phase, set and channel. snr_db null means infinite.
    /// magnitude is whether magnitudes were compared; placed and notes are texts that are otherwise warnings
    #[arg(long)]
    json: bool,
}

/// The scaling of images before the comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ScaleKind {
    /// The factor with the smallest error
    Best,
    /// No factor
    None,
}

/// Returns the sizes of a volume or of a plane in reversed order.
fn reversed([x, y, z]: [usize; 3]) -> [usize; 3] {
    if z == 1 {
        [y, x, 1]
    } else {
        [z, y, x]
    }
}

/// One image with three axes.
#[derive(Clone)]
struct ImageVolume {
    dims: [usize; 3],
    data: Vec<Complex<f64>>,
    placement: Placement,
    /// Voxel size in mm; `None` if unknown.
    voxel_mm: Option<[f64; 3]>,
    index: ScanIndex,
    /// The number of the channel; `None` if the image has one channel.
    channel: Option<usize>,
    /// The kind of the values of the file: one coil of complex images can be real by chance.
    kind: ValueKind,
}

impl ImageVolume {
    /// Returns the image with reversed axes and unknown placement and voxel size. A 2D image stays 2D.
    fn transposed(&self) -> Result<ImageVolume> {
        let [a, b, c] = self.dims;
        let dims = reversed(self.dims);
        let mut data = zeros(self.data.len())?;
        for (i, z) in self.data.iter().enumerate() {
            let (x, y, w) = (i % a, i / a % b, i / (a * b));
            let at = if c == 1 { x * b + y } else { (x * b + y) * c + w };
            data[at] = *z;
        }
        Ok(ImageVolume { dims, data, placement: Placement::default(), voxel_mm: None, ..*self })
    }

    /// Returns the slice that a picture shows.
    fn middle_slice(&self) -> ImageVolume {
        let [nx, ny, nz] = self.dims;
        let data = self.data[nz / 2 * nx * ny..][..nx * ny].to_vec();
        ImageVolume { dims: [nx, ny, 1], data, ..*self }
    }

    /// Places the image in the middle of a larger one, with zeros around it.
    fn padded(self, dims: [usize; 3]) -> Result<ImageVolume> {
        let mut data = zeros(checked_product(&dims, "an image")?)?;
        recentre(&self.data, &self.dims, &mut data, &dims);
        Ok(ImageVolume { dims, data, ..self })
    }
}

/// Reads all images of a file, channels as separate images.
fn read_volumes(path: &Path) -> Result<Vec<ImageVolume>> {
    let images = read_images(&input_path(path)?)?;
    let kind = images.iter().map(|image| ValueKind::of(&image.data)).min().unwrap_or(ValueKind::Magnitude);
    let volume = |image: &Image, c: usize| {
        let geometry = ImageGeometry::new(image);
        ImageVolume {
            dims: image.dims,
            data: image.channel(c).iter().map(|z| Complex::new(z.re as f64, z.im as f64)).collect(),
            placement: image.placement,
            voxel_mm: geometry.is_fov_known().then(|| [0, 1, 2].map(|axis| geometry.voxel_mm(axis))),
            index: image.index,
            channel: (image.channels > 1).then_some(c),
            kind,
        }
    };
    Ok(images.iter().flat_map(|image| (0..image.channels).map(move |c| volume(image, c))).collect())
}

pub fn run(args: &CompareArgs) -> Result<()> {
    if let Some(mask) = args.mask.filter(|m| !(0.0..=1.0).contains(m)) {
        bail!(InvalidArgument, "--mask is {mask}: it must be between 0 and 1");
    }
    let (truth_path, image_paths) = args.files.split_last().expect("clap asks for two files at least");
    if let Some(picture) = &args.picture {
        FileUse::WritePicture.format(picture).map_err(|e| e.within("--picture"))?;
    }
    check_outputs(args.picture.as_slice(), &args.files)?;
    let mut truths = read_volumes(truth_path)?;
    if args.transpose {
        truths = truths.iter().map(ImageVolume::transposed).collect::<Result<_>>()?;
    }
    // The slices of the picture, with their factors.
    let mut slices: Vec<(ImageVolume, f64)> = Vec::new();
    for path in image_paths {
        let images = read_volumes(path)?;
        if truths.len() != 1 && truths.len() != images.len() {
            bail!(
                SizeMismatch,
                "{} has {} images of {:?} voxels and {} has {} of {:?}: give the same number of true images, or one",
                path.display(),
                images.len(),
                images[0].dims,
                truth_path.display(),
                truths.len(),
                truths[0].dims
            );
        }
        let count = images.len();
        if let Some(note) = order_note(&images, &truths) {
            log::warn!(target: COMPARISON, "{}: {note}", path.display());
        }
        for (i, image) in images.into_iter().enumerate() {
            let truth = truths[if truths.len() == 1 { 0 } else { i }].clone();
            let file = (image_paths.len() > 1).then_some(path.as_path());
            let comparison = Comparison::new(args, image, truth)?;
            comparison.print(args, file, (count > 1).then_some(i))?;
            if args.picture.is_none() {
                continue;
            }
            let Comparison { image, truth, metrics, .. } = &comparison;
            if slices.is_empty() {
                slices.push((truth.middle_slice(), 1.0));
            }
            slices.push((image.middle_slice(), metrics.scale.norm()));
        }
    }
    match &args.picture {
        None => Ok(()),
        Some(picture) => {
            // All slices have one orientation: that of the truth if it is known, otherwise that of the first image
            // whose orientation is known.
            let placements = slices.iter().map(|(slice, _)| slice.placement);
            let placement = placements.into_iter().find(|p| p.is_known()).unwrap_or_default();
            let grey = |(slice, scale): &(ImageVolume, f64)| {
                GreySlice::of(slice.dims, &placement, 0, |i| (slice.data[i].norm() * scale) as f32)
            };
            let greys: Vec<GreySlice> = slices.iter().map(grey).collect();
            let largest = greys[0].pixels.iter().copied().fold(0.0, f32::max);
            write_atomically(|files| write_png_row(files, picture, &greys, (largest > 0.0).then_some(largest)))
        }
    }
}

/// An image and its truth on one matrix, and the result of their comparison.
struct Comparison {
    image: ImageVolume,
    truth: ImageVolume,
    /// The kinds of the values of image and truth.
    kinds: [ValueKind; 2],
    metrics: Metrics,
    /// Whether magnitudes were compared.
    magnitude: bool,
    /// The number of compared voxels.
    voxels: usize,
    /// Warnings about images that were placed in a larger matrix.
    placed: Vec<String>,
    /// The warning about different kinds of values.
    kind_note: Option<String>,
    /// Other warnings.
    notes: Vec<String>,
}

/// Checks that the sizes are comparable: not in a different order, and not of a slice and a volume.
fn check_dims(args: &CompareArgs, image: [usize; 3], truth: [usize; 3]) -> Result<()> {
    let hint = order_hint(image, truth);
    if hint.is_empty() && (image[2] > 1) == (truth[2] > 1) {
        return Ok(());
    }
    let remedy = match (reversed(truth) == image, args.transpose) {
        (true, false) => ": --transpose reverses the axes of the truth",
        (true, true) => ": leave out --transpose",
        (false, _) if hint.is_empty() => ": one is a slice and the other a volume; coils and frames come after z",
        (false, _) => hint,
    };
    bail!(SizeMismatch, "the image has {image:?} voxels and the truth {truth:?}{remedy}");
}

/// Returns a warning if images and truths with the same numbers have different slices, repetitions or other counters.
/// Files without counters have the same ones in all images.
fn order_note(images: &[ImageVolume], truths: &[ImageVolume]) -> Option<String> {
    let has_counters = |volumes: &[ImageVolume]| {
        let indices: BTreeSet<_> = volumes.iter().map(|volume| (volume.index, volume.channel)).collect();
        volumes.len() > 1 && indices.len() == volumes.len() && volumes.iter().any(|v| v.index != volumes[0].index)
    };
    if !has_counters(images) || !has_counters(truths) {
        return None;
    }
    let mut pairs = images.iter().zip(truths).enumerate();
    let (i, (image, truth)) = pairs.find(|(_, (image, truth))| image.index != truth.index)?;
    Some(format!(
        "image {i} is {}, but that of the truth is {}: images are compared in the order of the files",
        image.index, truth.index
    ))
}

/// The smallest difference of voxel sizes, relative, that causes a warning.
const VOXEL_SIZE_DIFFERENCE: f64 = 0.01;
/// The smallest distance of positions, in voxels, that causes a warning.
const POSITION_DIFFERENCE: f64 = 0.1;

/// Returns warnings if the files give image and truth different voxel sizes, orientations or positions in the patient.
fn geometry_notes(image: &ImageVolume, truth: &ImageVolume) -> Vec<String> {
    const BY_INDEX: &str = "according to their files: voxels are compared by index";
    let mut notes = Vec::new();
    let axes = if image.dims[2] == 1 { 0..2 } else { 0..3 };
    if let (Some(a), Some(b)) = (image.voxel_mm, truth.voxel_mm) {
        if axes.clone().any(|axis| (a[axis] / b[axis] - 1.0).abs() > VOXEL_SIZE_DIFFERENCE) {
            let [a, b] = [a, b].map(|mm| mm.map(|x| format!("{x:.4}")).join(" x "));
            notes.push(format!("voxels of the image have {a} mm and those of the truth {b} mm, {BY_INDEX}"));
        }
    }
    if !image.placement.is_known() || !truth.placement.is_known() {
        return notes;
    }
    let (a, b) = (image.placement.directions(), truth.placement.directions());
    let cosine = |i: usize| (0..3).map(|j| a[i][j] * b[i][j]).sum::<f32>();
    if (0..3).any(|i| cosine(i) < 0.99) {
        notes.push(format!("image and truth have different orientations in the patient, {BY_INDEX}"));
        return notes;
    }
    // Without a voxel size, as with one of 1 mm.
    let voxel = image.voxel_mm.map_or(1.0, |mm| mm.into_iter().fold(f64::INFINITY, f64::min));
    let distance = length(minus(wide(image.placement.position), wide(truth.placement.position)));
    if distance > POSITION_DIFFERENCE * voxel {
        let [a, b] = [image, truth].map(|volume| volume.placement.position.map(|x| x.to_string()).join(", "));
        notes.push(format!("the image is at {a} mm and the truth at {b} mm in the patient, {BY_INDEX}"));
    }
    notes
}

/// Returns whether magnitudes are compared, and a warning if image and truth have values of different kinds.
fn magnitude_or_values(args: &CompareArgs, image: ValueKind, truth: ValueKind) -> (bool, Option<String>) {
    use ValueKind::{Complex, Magnitude};
    if args.magnitude || args.complex || image == truth {
        return (args.magnitude, None);
    }
    let [a, b] = [image, truth].map(|kind| match kind {
        ValueKind::Complex => "complex",
        ValueKind::Real => "real with negative numbers",
        ValueKind::Magnitude => "a magnitude",
    });
    let is_magnitude = matches!((image, truth), (Complex, Magnitude) | (Magnitude, Complex));
    let decision = match is_magnitude {
        true => "magnitudes are compared (--magnitude does this without a warning, --complex compares phases too)",
        false => {
            "values are compared with phase and sign (--complex does this without a warning, --magnitude compares \
             magnitudes)"
        }
    };
    (is_magnitude, Some(format!("the image is {a} and the truth is {b}: {decision}")))
}

impl Comparison {
    /// Brings both images to one matrix and compares them.
    fn new(args: &CompareArgs, image: ImageVolume, truth: ImageVolume) -> Result<Comparison> {
        check_dims(args, image.dims, truth.dims)?;
        let common = [0, 1, 2].map(|a| image.dims[a].max(truth.dims[a]));
        let mut placed = Vec::new();
        for (name, volume) in [("the image", &image), ("the truth", &truth)] {
            if volume.dims != common {
                placed.push(format!("{name} of {:?} voxels is placed in the middle of {common:?}", volume.dims));
            }
        }
        let (image, truth) = (image.padded(common)?, truth.padded(common)?);
        let mut notes = Vec::new();
        let kinds @ [image_kind, truth_kind] = [image.kind, truth.kind];
        let (magnitude, kind_note) = magnitude_or_values(args, image_kind, truth_kind);
        let mask: Option<Vec<bool>> = args.mask.map(|fraction| {
            let largest = truth.data.iter().map(|z| z.norm()).fold(0.0, f64::max);
            truth.data.iter().map(|z| z.norm() > fraction as f64 * largest).collect()
        });
        let compare_with = |truth: &ImageVolume, scale: Scale, mask: Option<&[bool]>| match magnitude {
            true => compare_magnitude(&image.data, &truth.data, scale, mask),
            false => compare(&image.data, &truth.data, scale, mask),
        };
        let scale = match args.scale {
            ScaleKind::Best => Scale::Best,
            ScaleKind::None => Scale::None,
        };
        let metrics = compare_with(&truth, scale, mask.as_deref())?;
        let best = compare_with(&truth, Scale::Best, mask.as_deref())?;
        // A best scale close to 1 is not reported.
        if 2.0 * best.percent_error < metrics.percent_error && (best.scale - 1.0).norm() > 0.01 {
            let factor = if magnitude { format!("{:.3e}", best.scale.re) } else { format!("{:.3e}", best.scale) };
            notes.push(format!(
                "the image times {factor} would have an error of {:.4} %: --scale best applies this factor",
                best.percent_error
            ));
        }
        if reversed(truth.dims) == truth.dims {
            let unchanged = compare_with(&truth, Scale::Best, None)?;
            let transposed = compare_with(&truth.transposed()?, Scale::Best, None)?;
            if 2.0 * transposed.percent_error < unchanged.percent_error {
                notes.push(format!(
                    "over all voxels and at the best scale the error is {:.4} %, and {:.4} % with reversed axes of the \
                     truth: {} --transpose",
                    unchanged.percent_error,
                    transposed.percent_error,
                    if args.transpose { "leave out" } else { "give" }
                ));
            }
        }
        notes.extend(geometry_notes(&image, &truth));
        let voxels = mask.map_or(image.data.len(), |m| m.iter().filter(|&&m| m).count());
        Ok(Comparison { image, truth, kinds, metrics, magnitude, voxels, placed, kind_note, notes })
    }

    fn print(&self, args: &CompareArgs, file: Option<&Path>, number: Option<usize>) -> Result<()> {
        if args.json {
            return say(&self.json(file, number).to_string());
        }
        let mut head = file.map_or(String::new(), |f| format!("{}: ", f.display()));
        // The kinds are usually the same in all images of a file: one warning.
        if let Some(line) = &self.kind_note {
            log::warn!(target: COMPARISON, "{head}{line}");
        }
        head += &number.map_or(String::new(), |i| format!("{}: ", self.name(i)));
        for line in self.placed.iter().chain(&self.notes) {
            log::warn!(target: COMPARISON, "{head}{line}");
        }
        let m = &self.metrics;
        let scale = match (args.scale, self.magnitude) {
            (ScaleKind::None, _) => "no scale".to_owned(),
            (_, true) => format!("scale {:.6e}", m.scale.re),
            (_, false) => format!("scale {:.6e} {:+.6e}i", m.scale.re, m.scale.im),
        };
        say(&format!(
            "{head}error {:.4} %, MSE {:.6e}, PSNR {:.3} dB, SNR {:.3} dB over {} voxels, {}, {scale}",
            m.percent_error,
            m.mse,
            m.psnr_db,
            m.snr_db,
            self.voxels,
            self.compared()
        ))
    }

    /// Returns what was compared.
    fn compared(&self) -> String {
        let [image, truth] = self.kinds;
        match (self.magnitude, image, image == truth) {
            (_, ValueKind::Magnitude, true) => "magnitudes".to_owned(),
            (true, _, true) => format!("magnitudes of {} values", image.name()),
            (false, _, true) => format!("{} values", image.name()),
            (true, ..) => format!("magnitudes (image {}, truth {})", image.name(), truth.name()),
            (false, ..) => format!("values (image {}, truth {})", image.name(), truth.name()),
        }
    }

    /// Returns the name of an image of a file with several images.
    fn name(&self, number: usize) -> String {
        let channel = self.image.channel.map_or(String::new(), |channel| format!(", channel {channel}"));
        match self.image.index == ScanIndex::default() {
            true => format!("image {number}{channel}"),
            false => format!("image {number}, {}{channel}", self.image.index),
        }
    }

    fn json(&self, file: Option<&Path>, number: Option<usize>) -> serde_json::Value {
        let m = &self.metrics;
        // JSON does not have infinity: it becomes null.
        let mut object = serde_json::json!({
            "percent_error": m.percent_error,
            "mse": m.mse,
            "psnr_db": m.psnr_db,
            "snr_db": m.snr_db,
            "scale": [m.scale.re, m.scale.im],
            "voxels": self.voxels,
            "magnitude": self.magnitude,
            "image_values": self.kinds[0].name(),
            "truth_values": self.kinds[1].name(),
            "placed": self.placed,
            "notes": self.kind_note.iter().chain(&self.notes).collect::<Vec<_>>(),
        });
        if let Some(file) = file {
            object["file"] = file.display().to_string().into();
        }
        if let Some(i) = number {
            let index = &self.image.index;
            object["image"] = i.into();
            for (name, counter) in [
                ("slice", index.slice),
                ("repetition", index.repetition),
                ("contrast", index.contrast),
                ("phase", index.phase),
                ("set", index.set),
            ] {
                object[name] = counter.into();
            }
            object["channel"] = self.image.channel.into();
        }
        object
    }
}
