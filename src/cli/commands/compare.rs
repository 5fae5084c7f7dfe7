//! `recon compare`.

use crate::io::png::{write_png_row, Tile};
use crate::io::{FileUse, Image, Placement};
use crate::reader::read_images;
use crate::run::output::{check_outputs, say};
use crate::run::precision::is_magnitude;
use crate::run::resize::order_hint;
use crate::run::resize::zeros;
use clap::ValueEnum;
use recon::atomic_file::whole;
use recon::bail;
use recon::error::checked_product;
use recon::metrics::{compare, compare_magnitude, Metrics, Scale};
use recon::resize::recentre;
use recon::{Complex, Result};
use std::path::{Path, PathBuf};

/// The error of images against the truth
///
/// Prints, over all voxels compared: the percent error, 100 RMS(image - truth) / RMS(truth); the mean squared error,
/// MSE; the peak signal to noise ratio, PSNR, 20 log10(max |truth| / RMS(error)), in dB; and the signal to noise ratio,
/// SNR, 20 log10(RMS(truth) / RMS(error)), in dB. A line an image; where a file holds several, TRUTH holds as many, or
/// one for all.
///
/// Where the sizes differ, the smaller image is placed in the middle of the larger one, index floor(n/2) on index
/// floor(n/2), with zeros around it, and a line says so. The same sizes in another order are an error.
///
/// Where one of the two is a magnitude (real, nowhere negative) and the other is complex, magnitudes are compared, and
/// a line says so; --complex compares them as they are. A line also says where another scale, or TRUTH with its axes
/// reversed, would at least halve the error, and where the files have the two lie differently in the patient.
#[derive(clap::Args)]
#[command(after_help = "Example: magnitudes, at the best scale, within the object, and a picture of all three:\n  \
    recon compare gridding.h5 cg.h5 truth.npy --magnitude --scale best --mask 0.05 --picture three.png")]
pub struct CompareArgs {
    #[arg(help = FileUse::ReadImages.help("Images, and last the truth"))]
    #[arg(required = true, num_args = 2.., value_names = ["IMAGE", "TRUTH"])]
    files: Vec<PathBuf>,

    /// Whether the image is first multiplied by the number that makes its error least
    #[arg(long, value_enum, default_value_t = ScaleKind::None)]
    scale: ScaleKind,

    /// Compare magnitudes only
    #[arg(long)]
    magnitude: bool,

    /// Compare complex numbers, although one of the two is a magnitude
    #[arg(long, conflicts_with = "magnitude")]
    complex: bool,

    /// Compare only where the truth exceeds this part of its largest magnitude, 0 to 1
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    mask: Option<f32>,

    /// Reverse the axes of TRUTH: a NumPy array made to be indexed [x, y, z]
    #[arg(long)]
    transpose: bool,

    /// Write truth and images side by side, at one grey scale, the middle slice of volumes. Their orientation is that
    /// of the truth, or of the first image that has one
    #[arg(long, value_name = "FILE.png")]
    picture: Option<PathBuf>,

    /// One JSON object a line, with the keys percent_error, mse, psnr_db, snr_db (null: infinite), scale, voxels,
    /// magnitude (whether magnitudes were compared), placed and notes (lists of lines that are otherwise warnings);
    /// file where there are several
    #[arg(long)]
    json: bool,
}

/// How the image is scaled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ScaleKind {
    /// By the best number
    Best,
    /// Not at all
    None,
}

/// The sizes of a volume or of a plane in reversed order.
fn reversed([x, y, z]: [usize; 3]) -> [usize; 3] {
    if z == 1 {
        [y, x, 1]
    } else {
        [z, y, x]
    }
}

/// One image of three axes.
#[derive(Clone)]
struct Volume {
    dims: [usize; 3],
    data: Vec<Complex<f64>>,
    placement: Placement,
}

impl Volume {
    /// With its axes reversed: a 2D image stays in the plane. Its placement is then unknown.
    fn transposed(&self) -> Result<Volume> {
        let [a, b, c] = self.dims;
        let dims = reversed(self.dims);
        let mut data = zeros(self.data.len())?;
        for (i, z) in self.data.iter().enumerate() {
            let (x, y, w) = (i % a, i / a % b, i / (a * b));
            let at = if c == 1 { x * b + y } else { (x * b + y) * c + w };
            data[at] = *z;
        }
        Ok(Volume { dims, data, placement: Placement::default() })
    }

    /// Returns the slice that pictures show.
    fn middle_slice(&self) -> Volume {
        let [nx, ny, nz] = self.dims;
        let data = self.data[nz / 2 * nx * ny..][..nx * ny].to_vec();
        Volume { dims: [nx, ny, 1], data, placement: self.placement }
    }

    fn placed(self, dims: [usize; 3]) -> Result<Volume> {
        let mut data = zeros(checked_product(&dims, "an image")?)?;
        recentre(&self.data, &self.dims, &mut data, &dims);
        Ok(Volume { dims, data, ..self })
    }
}

fn volumes(path: &Path) -> Result<Vec<Volume>> {
    let images = read_images(path)?;
    let volume = |image: &Image, c: usize| Volume {
        dims: image.dims,
        data: image.channel(c).iter().map(|z| Complex::new(z.re as f64, z.im as f64)).collect(),
        placement: image.placement,
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
    let mut truths = volumes(truth_path)?;
    if args.transpose {
        truths = truths.iter().map(Volume::transposed).collect::<Result<_>>()?;
    }
    // The slices of the picture, each with its factor.
    let mut slices: Vec<(Volume, f64)> = Vec::new();
    for path in image_paths {
        let images = volumes(path)?;
        if truths.len() != 1 && truths.len() != images.len() {
            bail!(
                SizeMismatch,
                "{} has {} images and {} has {}: as many, or one, are needed",
                path.display(),
                images.len(),
                truth_path.display(),
                truths.len()
            );
        }
        let count = images.len();
        for (i, image) in images.into_iter().enumerate() {
            let truth = truths[if truths.len() == 1 { 0 } else { i }].clone();
            let file = (image_paths.len() > 1).then_some(path.as_path());
            let compared = Comparison::new(args, image, truth)?;
            compared.print(args, file, (count > 1).then_some(i))?;
            if args.picture.is_none() {
                continue;
            }
            let Comparison { image, truth, metrics, .. } = &compared;
            if slices.is_empty() {
                slices.push((truth.middle_slice(), 1.0));
            }
            slices.push((image.middle_slice(), metrics.scale.norm()));
        }
    }
    match &args.picture {
        None => Ok(()),
        Some(picture) => {
            // All panels have one orientation: that of the truth if it is known, else that of the first image that has
            // one.
            let placements = slices.iter().map(|(slice, _)| slice.placement);
            let placement = placements.into_iter().find(|p| p.is_known()).unwrap_or_default();
            let panel = |(slice, scale): &(Volume, f64)| {
                Tile::of(slice.dims, &placement, |i| (slice.data[i].norm() * scale) as f32)
            };
            let panels: Vec<Tile> = slices.iter().map(panel).collect();
            let largest = panels[0].pixels.iter().copied().fold(0.0, f32::max);
            whole(|files| write_png_row(files, picture, &panels, (largest > 0.0).then_some(largest)))
        }
    }
}

/// An image and its truth on one matrix, and the result of comparing them.
struct Comparison {
    image: Volume,
    truth: Volume,
    metrics: Metrics,
    /// Whether magnitudes were compared.
    magnitude: bool,
    voxels: usize,
    placed: Vec<String>,
    notes: Vec<String>,
}

impl Comparison {
    fn new(args: &CompareArgs, image: Volume, truth: Volume) -> Result<Comparison> {
        let hint = order_hint(image.dims, truth.dims);
        let volumes = [&image, &truth].map(|v| v.dims[2] > 1);
        if !hint.is_empty() || volumes[0] != volumes[1] {
            let remedy = match (reversed(truth.dims) == image.dims, args.transpose) {
                (true, false) => ": --transpose reverses the axes of the truth",
                (true, true) => ": leave out --transpose",
                (false, _) if hint.is_empty() => {
                    ": one is a slice and the other a volume; coils and frames come after z"
                }
                (false, _) => hint,
            };
            bail!(SizeMismatch, "the image has {:?} voxels and the truth {:?}{remedy}", image.dims, truth.dims);
        }
        let common = [0, 1, 2].map(|a| image.dims[a].max(truth.dims[a]));
        let mut placed = Vec::new();
        for (name, volume) in [("the image", &image), ("the truth", &truth)] {
            if volume.dims != common {
                placed.push(format!("{name} of {:?} voxels is placed in the middle of {common:?}", volume.dims));
            }
        }
        let (image, truth) = (image.placed(common)?, truth.placed(common)?);
        let mut notes = Vec::new();
        let kinds = [is_magnitude(&image.data), is_magnitude(&truth.data)];
        let mixed = kinds[0] != kinds[1];
        if mixed && !args.magnitude && !args.complex {
            let names = if kinds[0] { ["image", "truth"] } else { ["truth", "image"] };
            notes.push(format!(
                "the {} is a magnitude and the {} complex: magnitudes are compared (--magnitude says so, --complex \
                 compares the phase too)",
                names[0], names[1]
            ));
        }
        let magnitude = args.magnitude || (mixed && !args.complex);
        let mask: Option<Vec<bool>> = args.mask.map(|part| {
            let largest = truth.data.iter().map(|z| z.norm()).fold(0.0, f64::max);
            truth.data.iter().map(|z| z.norm() > part as f64 * largest).collect()
        });
        let by = |truth: &Volume, scale: Scale, mask: Option<&[bool]>| match magnitude {
            true => compare_magnitude(&image.data, &truth.data, scale, mask),
            false => compare(&image.data, &truth.data, scale, mask),
        };
        let scale = match args.scale {
            ScaleKind::Best => Scale::Best,
            ScaleKind::None => Scale::None,
        };
        let metrics = by(&truth, scale, mask.as_deref())?;
        let best = by(&truth, Scale::Best, mask.as_deref())?;
        // A scale of 1 up to rounding is not reported.
        if 2.0 * best.percent_error < metrics.percent_error && (best.scale - 1.0).norm() > 0.01 {
            let factor = if magnitude { format!("{:.3e}", best.scale.re) } else { format!("{:.3e}", best.scale) };
            notes.push(format!(
                "the image times {factor} would be {:.4} % off: --scale best compares it so",
                best.percent_error
            ));
        }
        if reversed(truth.dims) == truth.dims {
            let [straight, turned] = [by(&truth, Scale::Best, None)?, by(&truth.transposed()?, Scale::Best, None)?];
            if 2.0 * turned.percent_error < straight.percent_error {
                notes.push(format!(
                    "all in all the image is {:.4} % off at the best scale, and {:.4} % with the axes of the truth \
                     reversed: {} --transpose",
                    straight.percent_error,
                    turned.percent_error,
                    if args.transpose { "leave out" } else { "give" }
                ));
            }
        }
        let directions = [&image, &truth].map(|v| v.placement.is_known().then(|| v.placement.directions()));
        if let [Some(a), Some(b)] = directions {
            let along = |i: usize| (0..3).map(|j| a[i][j] * b[i][j]).sum::<f32>();
            if (0..3).any(|i| along(i) < 0.99) {
                notes.push(
                    "the files have image and truth lie differently in the patient: voxels are compared by index"
                        .into(),
                );
            }
        }
        let voxels = mask.map_or(image.data.len(), |m| m.iter().filter(|&&m| m).count());
        Ok(Comparison { image, truth, metrics, magnitude, voxels, placed, notes })
    }

    fn print(&self, args: &CompareArgs, file: Option<&Path>, number: Option<usize>) -> Result<()> {
        if args.json {
            return say(&self.json(file, number).to_string());
        }
        let mut head = file.map_or(String::new(), |f| format!("{}: ", f.display()));
        for line in self.placed.iter().chain(&self.notes) {
            log::warn!("{head}{line}");
        }
        head += &number.map_or(String::new(), |i| format!("image {i}: "));
        let m = &self.metrics;
        let scale = match (args.scale, self.magnitude) {
            (ScaleKind::None, _) => String::new(),
            (_, true) => format!(", scale {:.6e}", m.scale.re),
            (_, false) => format!(", scale {:.6e} {:+.6e}i", m.scale.re, m.scale.im),
        };
        say(&format!(
            "{head}error {:.4} %, MSE {:.6e}, PSNR {:.3} dB, SNR {:.3} dB over {} voxels{scale}",
            m.percent_error, m.mse, m.psnr_db, m.snr_db, self.voxels
        ))
    }

    fn json(&self, file: Option<&Path>, number: Option<usize>) -> serde_json::Value {
        let m = &self.metrics;
        // JSON has no infinity: it becomes null.
        let mut object = serde_json::json!({
            "percent_error": m.percent_error,
            "mse": m.mse,
            "psnr_db": m.psnr_db,
            "snr_db": m.snr_db,
            "scale": [m.scale.re, m.scale.im],
            "voxels": self.voxels,
            "magnitude": self.magnitude,
            "placed": self.placed,
            "notes": self.notes,
        });
        if let Some(file) = file {
            object["file"] = file.display().to_string().into();
        }
        if let Some(i) = number {
            object["image"] = i.into();
        }
        object
    }
}
