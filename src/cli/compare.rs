//! `recon compare`.

use crate::io::png::write_png_row;
use crate::io::{read_images, Image};
use crate::output::say;
use crate::resize::zeros;
use clap::ValueEnum;
use recon::bail;
use recon::error::checked_product;
use recon::metrics::{compare, compare_magnitude, Metrics, Scale};
use recon::resize::recentre;
use recon::{Complex, Result};
use std::path::{Path, PathBuf};

/// The error of images against the truth
///
/// Prints, over all voxels compared: the percent error, 100 RMS(image - truth) / RMS(truth); the mean squared error, MSE;
/// the peak signal to noise ratio, PSNR, 20 log10(max |truth| / RMS(error)), in dB; and the signal to noise ratio, SNR, 20
/// log10(RMS(truth) / RMS(error)), in dB. A line an image; where a file holds several, TRUTH holds as many, or one for all.
///
/// Where the sizes differ, the smaller image is placed in the middle of the larger one, index floor(n/2) on index
/// floor(n/2), with zeros around it, and a line says so.
#[derive(clap::Args)]
#[command(
    after_help = "Example: magnitudes, at the best scale, within the object, and a picture of all three:\n  recon compare gridding.h5 cg.h5 truth.npy --magnitude --scale best --mask 0.05 --picture three.png"
)]
pub struct CompareArgs {
    /// Images, and last what they should be: .h5, .mrd, .cfl, .nii, .nii.gz, .npy
    #[arg(required = true, num_args = 2.., value_names = ["IMAGE", "TRUTH"])]
    files: Vec<PathBuf>,

    /// Whether the image is first multiplied by the number that makes its error least
    #[arg(long, value_enum, default_value_t = ScaleKind::None)]
    scale: ScaleKind,

    /// Compare magnitudes only
    #[arg(long)]
    magnitude: bool,

    /// Compare only where the truth exceeds this part of its largest magnitude, 0 to 1
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    mask: Option<f32>,

    /// Reverse the axes of TRUTH: a NumPy array made to be indexed [x, y, z]
    #[arg(long)]
    transpose: bool,

    /// Write truth and images side by side, at one grey scale, the middle slice of volumes
    #[arg(long, value_name = "FILE.png")]
    picture: Option<PathBuf>,

    /// One JSON object a line, with the keys percent_error, mse, psnr_db, snr_db (null: infinite), scale, voxels, placed;
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

/// One image of three axes.
struct Volume {
    dims: [usize; 3],
    data: Vec<Complex<f64>>,
}

impl Volume {
    fn transposed(self) -> Result<Volume> {
        // A 2D image stays in the plane.
        let [a, b, c] = self.dims;
        let dims = if c == 1 { [b, a, 1] } else { [c, b, a] };
        let mut data = zeros(self.data.len())?;
        for (i, z) in self.data.iter().enumerate() {
            let (x, y, w) = (i % a, i / a % b, i / (a * b));
            let at = if c == 1 { x * b + y } else { (x * b + y) * c + w };
            data[at] = *z;
        }
        Ok(Volume { dims, data })
    }

    fn placed(self, dims: [usize; 3]) -> Result<Volume> {
        let mut data = zeros(checked_product(&dims, "an image")?)?;
        recentre(&self.data, &self.dims, &mut data, &dims);
        Ok(Volume { dims, data })
    }
}

fn volumes(path: &Path) -> Result<Vec<Volume>> {
    let images = read_images(path)?;
    let volume = |image: &Image, c: usize| Volume {
        dims: image.dims,
        data: image.channel(c).iter().map(|z| Complex::new(z.re as f64, z.im as f64)).collect(),
    };
    Ok(images.iter().flat_map(|image| (0..image.channels).map(move |c| volume(image, c))).collect())
}

pub fn run(args: &CompareArgs) -> Result<()> {
    if let Some(mask) = args.mask.filter(|m| !(0.0..=1.0).contains(m)) {
        bail!(InvalidArgument, "--mask is {mask}: it must be between 0 and 1");
    }
    let (truth_path, image_paths) = args.files.split_last().expect("clap asks for two files at least");
    if let Some(picture) = args.picture.as_ref().filter(|p| p.extension().is_none_or(|e| e != "png")) {
        bail!(InvalidArgument, "--picture {}: the name must end in .png", picture.display());
    }
    let mut truths = volumes(truth_path)?;
    if args.transpose {
        truths = truths.into_iter().map(Volume::transposed).collect::<Result<_>>()?;
    }
    let mut panels: Vec<Panel> = Vec::new();
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
            let truth = &truths[if truths.len() == 1 { 0 } else { i }];
            let truth = Volume { dims: truth.dims, data: truth.data.clone() };
            let several = (image_paths.len() > 1).then_some(path.as_path());
            let (truth, image) = one(args, image, truth, several, (count > 1).then_some(i))?;
            if panels.is_empty() {
                panels.push(truth);
            }
            panels.push(image);
        }
    }
    match &args.picture {
        None => Ok(()),
        Some(picture) => {
            let largest = panels[0].pixels.iter().copied().fold(0.0, f32::max);
            let row: Vec<_> = panels.iter().map(|p| (&p.pixels[..], p.width, p.height)).collect();
            write_png_row(picture, &row, (largest > 0.0).then_some(largest))
        }
    }
}

/// The middle slice of an image, for a picture.
struct Panel {
    pixels: Vec<f32>,
    width: usize,
    height: usize,
}

impl Panel {
    fn of(volume: &Volume, scale: f64) -> Panel {
        let [width, height, depth] = volume.dims;
        let slice = &volume.data[depth / 2 * width * height..][..width * height];
        Panel { pixels: slice.iter().map(|z| (z.norm() * scale) as f32).collect(), width, height }
    }
}

/// Compares one image, and returns what of it, after the truth, goes into a picture.
fn one(
    args: &CompareArgs,
    image: Volume,
    truth: Volume,
    file: Option<&Path>,
    number: Option<usize>,
) -> Result<(Panel, Panel)> {
    let common = [0, 1, 2].map(|a| image.dims[a].max(truth.dims[a]));
    let mut placed = Vec::new();
    for (name, volume) in [("the image", &image), ("the truth", &truth)] {
        if volume.dims != common {
            placed.push(format!("{name} of {:?} voxels is placed in the middle of {common:?}", volume.dims));
        }
    }
    let (image, truth) = (image.placed(common)?, truth.placed(common)?);
    let mask: Option<Vec<bool>> = args.mask.map(|part| {
        let largest = truth.data.iter().map(|z| z.norm()).fold(0.0, f64::max);
        truth.data.iter().map(|z| z.norm() > part as f64 * largest).collect()
    });
    let scale = match args.scale {
        ScaleKind::Best => Scale::Best,
        ScaleKind::None => Scale::None,
    };
    let metrics = match args.magnitude {
        true => compare_magnitude(&image.data, &truth.data, scale, mask.as_deref())?,
        false => compare(&image.data, &truth.data, scale, mask.as_deref())?,
    };
    let panels = (Panel::of(&truth, 1.0), Panel::of(&image, metrics.scale.norm()));
    let voxels = mask.map_or(image.data.len(), |m| m.iter().filter(|&&m| m).count());
    if args.json {
        say(&json(&metrics, voxels, &placed, file, number).to_string())?;
        return Ok(panels);
    }
    for line in &placed {
        log::warn!("{line}");
    }
    let mut head = file.map_or(String::new(), |f| format!("{}: ", f.display()));
    head += &number.map_or(String::new(), |i| format!("image {i}: "));
    let scale = match (args.scale, args.magnitude) {
        (ScaleKind::None, _) => String::new(),
        (_, true) => format!(", scale {:.6e}", metrics.scale.re),
        (_, false) => format!(", scale {:.6e} {:+.6e}i", metrics.scale.re, metrics.scale.im),
    };
    say(&format!(
        "{head}error {:.4} %, MSE {:.6e}, PSNR {:.3} dB, SNR {:.3} dB over {voxels} voxels{scale}",
        metrics.percent_error, metrics.mse, metrics.psnr_db, metrics.snr_db
    ))?;
    Ok(panels)
}

fn json(
    m: &Metrics,
    voxels: usize,
    placed: &[String],
    file: Option<&Path>,
    number: Option<usize>,
) -> serde_json::Value {
    // Infinity has no form in JSON, and becomes null.
    let mut object = serde_json::json!({
        "percent_error": m.percent_error,
        "mse": m.mse,
        "psnr_db": m.psnr_db,
        "snr_db": m.snr_db,
        "scale": [m.scale.re, m.scale.im],
        "voxels": voxels,
        "placed": placed,
    });
    if let Some(file) = file {
        object["file"] = file.display().to_string().into();
    }
    if let Some(i) = number {
        object["image"] = i.into();
    }
    object
}
