//! `recon view`.

use crate::run::output::check_outputs;
use recon::atomic_file::write_atomically;
use recon::bail;
use recon::{Error, ErrorKind, Result};
use recon_files::arrangement::{arrange, ImageSeries, SeriesEntry};
use recon_files::orientation::PlaneOrientation;
use recon_files::read_images;
use recon_files::stacks::ImageGeometry;
use recon_files::view_data::{append_units, EncodedSeries, Quantisation, ViewBits, VoxelKind};
use recon_files::{FileUse, Image};
use serde_json::{json, Value};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes a page to look at images in a browser: one HTML file, without network
///
/// The page has sliders for slices, frames (repetitions, contrasts, ...) and coils, window and level, magnitude, phase
/// and difference, two images side by side, the planes of volumes, and the value of the voxel under the cursor. It
/// needs a browser of 2023 or newer: Chrome or Edge from 80, Firefox from 113, Safari from 16.4.
///
/// The page contains all voxels, rounded: magnitudes have 8 bits and phases 6, and the page shows the steps. If it
/// would have more than 20 MB, or 20 MB for each 256 x 256 x 256 voxels, phases and magnitudes have fewer bits, and a
/// warning is printed.
#[derive(clap::Args)]
#[command(after_help = "Example: two images side by side, and their difference:\n  \
    recon view cg.h5 truth.h5 -o page.html")]
pub struct ViewArgs {
    #[arg(help = FileUse::ReadImages.help("Images"))]
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The page (.html)
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Bits of magnitudes (2 to 8) and of phases (1 to 8, or 0 for a page without phases). Default: 8,6, or fewer if
    /// the page would be too large
    #[arg(long, value_name = "M,P", value_delimiter = ',')]
    bits: Option<Vec<u32>>,
}

/// Bits of magnitudes and phases, in the order in which they are tried.
const BITS: [[u32; 2]; 7] = [[8, 6], [8, 5], [8, 4], [7, 4], [6, 4], [6, 3], [5, 3]];
/// Bytes of a page of at most `PAGE_VOXELS` voxels; larger pages have proportionally more.
const PAGE_BYTES: usize = 20_000_000;
const PAGE_VOXELS: usize = 256 * 256 * 256;
/// Largest page in bytes. Browsers keep the text several times.
const MAX_PAGE_BYTES: usize = 1_000_000_000;
/// Bytes of a voxel in a page that does not compress: 14 bits, and 15 bits in each code unit of text.
const MAX_BYTES_PER_VOXEL: f64 = 14.0 / 15.0 * 2.1;
/// Bytes of a page without voxels: an upper bound.
const FRAME_BYTES: usize = 100_000;

const PAGE: &str = include_str!("../view/page.html");
const STYLE: &str = include_str!("../view/page.css");
const SCRIPT: &str = include_str!("../view/page.js");

/// Images of a file that share sizes and orientation.
struct PageSeries {
    name: String,
    images: Vec<Image>,
    arrangement: ImageSeries,
}

pub fn run(args: &ViewArgs) -> Result<()> {
    let chosen = args.bits.as_deref().map(checked_bits).transpose()?;
    let extension = args.output.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    if !matches!(extension.as_deref(), Some("html" | "htm")) {
        bail!(InvalidArgument, "{}: the page is an HTML file: its name must end in .html", args.output.display());
    }
    for file in &args.files {
        FileUse::ReadImages.format(file)?;
    }
    check_outputs(std::slice::from_ref(&args.output), &args.files)?;
    let mut all = Vec::new();
    for file in &args.files {
        all.extend(series_of_file(file)?);
    }
    let encoded = match chosen {
        Some(bits) => encode(&all, bits)?,
        None => encode_within_limit(&all)?,
    };
    let bytes = page_bytes(&encoded);
    if bytes > MAX_PAGE_BYTES {
        bail!(
            Unsupported,
            "{}: the page would have {} MB, and browsers open at most about {} MB: give fewer files, or files of fewer \
             slices and repetitions",
            args.output.display(),
            bytes / 1_000_000,
            MAX_PAGE_BYTES / 1_000_000
        );
    }
    write_page(&args.output, &all, &encoded)
}

fn page_bytes(encoded: &[EncodedSeries]) -> usize {
    encoded.iter().map(EncodedSeries::page_bytes).sum()
}

fn checked_bits(bits: &[u32]) -> Result<ViewBits> {
    match *bits {
        [magnitude @ 2..=8, phase @ 0..=8] => Ok(ViewBits { magnitude, phase }),
        _ => bail!(
            InvalidArgument,
            "--bits {}: give the bits of magnitudes, 2 to 8, and of phases, 0 to 8, for example 8,6",
            bits.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
        ),
    }
}

/// Adds the remedy for a file of raw data.
fn with_remedy(e: Error) -> Error {
    match e.kind() {
        ErrorKind::BadFile => {
            let remedy = "if the file has raw data, reconstruct it first, for example by recon grid";
            Error::new(e.kind(), format!("{}: {remedy}", e.message()))
        }
        _ => e,
    }
}

/// Reads the images of a file, and divides them into series of the same sizes and orientation.
fn series_of_file(path: &Path) -> Result<Vec<PageSeries>> {
    let images = read_images(path).map_err(with_remedy)?;
    for image in &images {
        image.check().map_err(|e| e.within(path.display()))?;
    }
    let entry = |image: &Image| SeriesEntry { index: image.index, depth: image.dims[2] };
    let entries: Vec<SeriesEntry> = images.iter().map(entry).collect();
    let key = |i: usize| {
        let image: &Image = &images[i];
        (image.dims, image.channels, planes_of(image))
    };
    let arrangements = arrange(&entries, key);
    let mut images: Vec<Option<Image>> = images.into_iter().map(Some).collect();
    let count = arrangements.len();
    let file = path.display();
    let series = |(i, arrangement): (usize, ImageSeries)| {
        let images = arrangement.images.iter().filter_map(|&image| images[image].take()).collect();
        let name = if count > 1 { format!("{file}, series {i}") } else { file.to_string() };
        PageSeries { name, images, arrangement }
    };
    Ok(arrangements.into_iter().enumerate().map(series).collect())
}

/// The axes of the planes of a volume.
const PLANES: [[usize; 2]; 3] = [[0, 1], [0, 2], [1, 2]];

/// Returns the orientations of the planes of an image: of all three if it is a volume.
fn planes_of(image: &Image) -> Vec<PlaneOrientation> {
    let count = if image.dims[2] > 1 { PLANES.len() } else { 1 };
    PLANES[..count].iter().map(|&axes| PlaneOrientation::of(&image.placement, axes)).collect()
}

fn encode(all: &[PageSeries], bits: ViewBits) -> Result<Vec<EncodedSeries>> {
    let encode = |series: &PageSeries| {
        let images: Vec<&Image> = series.images.iter().collect();
        EncodedSeries::new(&images, bits).map_err(|e| e.within(&series.name))
    };
    all.iter().map(encode).collect()
}

/// Encodes with the largest number of bits with which the page is not too large.
fn encode_within_limit(all: &[PageSeries]) -> Result<Vec<EncodedSeries>> {
    let voxels: usize = all.iter().flat_map(|series| &series.images).map(|image| image.data.len()).sum();
    let limit = (PAGE_BYTES as f64 * (voxels as f64 / PAGE_VOXELS as f64).max(1.0)) as usize - FRAME_BYTES;
    let largest = limit as f64 / MAX_BYTES_PER_VOXEL;
    for [magnitude, phase] in BITS {
        let bits = ViewBits { magnitude, phase };
        let is_last = Some(&[magnitude, phase]) == BITS.last();
        // Compressing all slices for each number of bits would take several times as long.
        if voxels as f64 > largest && !is_last && estimate(all, bits)? > limit {
            continue;
        }
        let encoded = encode(all, bits)?;
        if is_last || page_bytes(&encoded) <= limit {
            if [magnitude, phase] != BITS[0] {
                log::warn!(
                    "magnitudes have {magnitude} bits and phases {phase}, because the page would otherwise have more than \
                     {} MB: --bits 8,6 makes a larger page",
                    (limit + FRAME_BYTES) / 1_000_000
                );
            }
            return Ok(encoded);
        }
    }
    bail!(Internal, "no number of bits was tried")
}

fn estimate(all: &[PageSeries], bits: ViewBits) -> Result<usize> {
    let estimate = |series: &PageSeries| {
        let images: Vec<&Image> = series.images.iter().collect();
        EncodedSeries::estimate_page_bytes(&images, bits).map_err(|e| e.within(&series.name))
    };
    all.iter().map(estimate).sum()
}

fn write_page(path: &Path, all: &[PageSeries], encoded: &[EncodedSeries]) -> Result<()> {
    let series: Vec<Value> = all.iter().zip(encoded).map(|(series, encoded)| describe(series, encoded)).collect();
    // A name may contain "</script>" or "<!--".
    let header = json!({ "series": series }).to_string().replace('<', "\\u003c");
    // Each marker is in the page once.
    let (before, rest) = PAGE.split_once("@DATA@").unwrap_or((PAGE, ""));
    let before = before.replacen("@STYLE@", STYLE, 1).replacen("@HEADER@", &header, 1);
    let after = rest.replacen("@SCRIPT@", SCRIPT, 1);
    // UTF-16 with a byte order mark, which has priority over the character set that a web server declares.
    let mut units: Vec<u16> = "\u{feff}".encode_utf16().chain(before.encode_utf16()).collect();
    write_atomically(|files| {
        let io = |e: std::io::Error| Error::new(ErrorKind::IO, format!("{}: {e}", path.display()));
        let mut out = std::io::BufWriter::new(std::fs::File::create(files.add(path)?).map_err(io)?);
        for (number, (series, encoded)) in all.iter().zip(encoded).enumerate() {
            for (volume, slices) in volumes_of(series, encoded).iter().enumerate() {
                units.extend(format!("<script type=\"text/plain\" id=\"d{number}-{volume}\">").encode_utf16());
                slices.iter().for_each(|bytes| append_units(&mut units, bytes));
                units.extend("</script>\n".encode_utf16());
                write_units(&mut out, &mut units).map_err(io)?;
            }
        }
        units.extend(after.encode_utf16());
        write_units(&mut out, &mut units).map_err(io)?;
        out.flush().map_err(io)
    })?;
    log::info!("{}: written, {} series of images", path.display(), all.len());
    Ok(())
}

/// Writes UTF-16 code units in the order of bytes little-endian, and removes them from `units`.
fn write_units(out: &mut impl Write, units: &mut Vec<u16>) -> std::io::Result<()> {
    let bytes: Vec<u8> = units.drain(..).flat_map(u16::to_le_bytes).collect();
    out.write_all(&bytes)
}

/// Returns the compressed slices of each volume of a series. Volumes are in the order of frames, then coils. A volume
/// is one channel of an image, or of all slices of a frame.
fn volumes_of<'a>(series: &PageSeries, encoded: &'a EncodedSeries) -> Vec<Vec<&'a [u8]>> {
    let first = &series.images[0];
    let (coils, depth) = (first.channels, first.dims[2]);
    let per_slice = if encoded.quantisation.phase_levels > 0 { 2 } else { 1 };
    let frames = series.arrangement.frames.len();
    let slices = series.images.len() / frames;
    let mut volumes = Vec::new();
    for frame in 0..frames {
        for coil in 0..coils {
            let start = |slice: usize| ((frame * slices + slice) * coils + coil) * depth * per_slice;
            let parts = (0..slices).flat_map(|slice| &encoded.slices[start(slice)..][..depth * per_slice]);
            volumes.push(parts.map(Vec::as_slice).collect());
        }
    }
    volumes
}

/// Returns the description of a series for the page's script.
fn describe(series: &PageSeries, encoded: &EncodedSeries) -> Value {
    let first = &series.images[0];
    let [nx, ny, nz] = first.dims;
    let slices = series.images.len() / series.arrangement.frames.len();
    let geometry = ImageGeometry::new(first);
    let voxel = geometry.is_fov_known().then(|| [0, 1, 2].map(|axis| geometry.voxel_mm(axis)));
    let Quantisation { kind, step, zero, highest, phase_levels } = encoded.quantisation;
    let plane = |(axes, plane): (&[usize; 2], &PlaneOrientation)| {
        json!({
            "axes": axes,
            "firstInRows": plane.is_first_in_rows,
            "mirrored": plane.is_mirrored,
            "upwards": plane.is_upwards,
            "right": plane.right,
            "bottom": plane.bottom,
            "known": first.placement.is_known(),
        })
    };
    let bytes: Vec<Vec<usize>> =
        volumes_of(series, encoded).iter().map(|slices| slices.iter().map(|bytes| bytes.len()).collect()).collect();
    json!({
        "name": series.name,
        "size": [nx, ny, if slices > 1 { slices } else { nz }],
        "slices": series.arrangement.slices,
        "frames": series.arrangement.frames,
        "coils": first.channels,
        "kind": match kind {
            VoxelKind::Magnitude => "magnitude",
            VoxelKind::Real => "real",
            VoxelKind::Complex => "complex",
        },
        "step": step,
        "zero": zero,
        "highest": highest,
        "phaseLevels": phase_levels,
        "clipped": encoded.clipped,
        "window": encoded.window,
        "voxel": voxel,
        "planes": PLANES.iter().zip(&planes_of(first)).map(plane).collect::<Vec<_>>(),
        "bytes": bytes,
    })
}
