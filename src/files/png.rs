//! Writes grey pictures of magnitude images, in the orientation that radiologists use.

use super::arrangement::{arrange, SeriesEntry};
use super::image::{Image, Placement, ScanIndex};
use super::orientation::PlaneOrientation;
use recon::atomic_file::AtomicFiles;
use recon::error::{bail, checked_product, Error, ErrorKind, Result};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// The number of grey levels of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Depth {
    /// 256 levels.
    #[default]
    Eight,
    /// 65536 levels.
    Sixteen,
}

/// The map from magnitudes to grey levels.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PngOptions {
    /// The grey levels.
    pub depth: Depth,
    /// The smallest magnitude that is white; 0 and less are black. `None` means the 99.9th percentile of all magnitudes
    /// shown, or their maximum if that percentile is 0.
    pub maximum: Option<f32>,
}

/// A slice of a picture.
#[derive(Debug, Clone, PartialEq)]
pub struct GreySlice {
    /// The grey values, row by row from the top, each row from the left.
    pub pixels: Vec<f32>,
    /// The number of pixels per row.
    pub width: usize,
    /// The number of rows.
    pub height: usize,
}

impl GreySlice {
    /// Returns the slice z of an image, in the orientation of a picture ([`PlaneOrientation`]).
    ///
    /// `grey` returns the value of the voxel at an index of the array [x, y, z].
    pub fn of(dims: [usize; 3], placement: &Placement, z: usize, grey: impl Fn(usize) -> f32) -> GreySlice {
        let [nx, ny, _] = dims;
        let orientation = PlaneOrientation::of(placement, [0, 1]);
        let size = orientation.picture_size([nx, ny]);
        let pixel = |i: usize| {
            let [x, y] = orientation.index_at([i % size[0], i / size[0]], size);
            grey((z * ny + y) * nx + x)
        };
        GreySlice { pixels: (0..nx * ny).map(pixel).collect(), width: size[0], height: size[1] }
    }
}

/// Largest number of slices, coils or frames of a picture that are side by side if only one of these numbers exceeds 1.
const MAX_SINGLE_ROW: usize = 4;
/// Largest width and height of a picture. Larger pictures cannot be opened by most programs.
const MAX_SIDE: usize = 32767;
/// Largest number of pixels of a picture: 512 MiB with 16 bits.
const MAX_PIXELS: usize = 1 << 28;

/// Returns the numbers of columns and rows of a mosaic of `slices`, `coils` and `frames` of the size [width, height].
///
/// If two of the numbers exceed 1, a row has the slices of one coil and frame, or the coils of one frame if there is
/// one slice. If only one number exceeds 1, up to four pictures are side by side, and more form a square, or as close
/// to a square as possible without being taller than wide.
fn mosaic_layout(slices: usize, coils: usize, frames: usize, [width, height]: [usize; 2]) -> [usize; 2] {
    let count = slices.saturating_mul(coils).saturating_mul(frames);
    let columns = match (slices, coils, frames) {
        (n, 1, 1) | (1, n, 1) | (1, 1, n) if n <= MAX_SINGLE_ROW => n,
        (n, 1, 1) | (1, n, 1) | (1, 1, n) => {
            let is_wide =
                |columns: &usize| columns.saturating_mul(width) >= n.div_ceil(*columns).saturating_mul(height);
            (1..n).find(is_wide).unwrap_or(n)
        }
        (1, coils, _) => coils,
        (slices, _, _) => slices,
    };
    [columns, count.div_ceil(columns)]
}

/// The sizes of an image for its place in a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PictureEntry {
    /// The counters.
    pub index: ScanIndex,
    /// The number of voxels along x, y and z.
    pub dims: [usize; 3],
    /// The number of channels.
    pub channels: usize,
    /// The position in the patient, which determines the orientation.
    pub placement: Placement,
}

/// A slice in a picture: the number of its image, its channel, z, and the pixel at its top left.
struct MosaicTile {
    image: usize,
    channel: usize,
    z: usize,
    left: usize,
    top: usize,
}

/// Arranges images in a picture. Returns the slices, and width and height of the picture.
fn arrange_tiles(entries: &[PictureEntry]) -> Result<(Vec<MosaicTile>, [usize; 2])> {
    let places: Vec<SeriesEntry> =
        entries.iter().map(|entry| SeriesEntry { index: entry.index, depth: entry.dims[2] }).collect();
    let (mut tiles, mut picture) = (Vec::new(), [0usize; 2]);
    for series in arrange(&places, |i| (entries[i].dims, entries[i].channels)) {
        let (frames, slices) = (series.frames.len(), series.images.len() / series.frames.len());
        let PictureEntry { dims: [nx, ny, nz], channels, .. } = entries[series.images[0]];
        // Images whose encoding directions differ may have different orientations.
        let size = |i: &usize| PlaneOrientation::of(&entries[*i].placement, [0, 1]).picture_size([nx, ny]);
        let sizes = || series.images.iter().map(size);
        let cell = [0, 1].map(|axis| sizes().map(|size| size[axis]).max().unwrap_or(1));
        let [columns, rows] = mosaic_layout(slices * nz, channels, frames, cell);
        let (width, height) = (columns.saturating_mul(cell[0]), rows.saturating_mul(cell[1]));
        let top = picture[1];
        picture = [picture[0].max(width), picture[1].saturating_add(height)];
        if picture.iter().any(|&n| n > MAX_SIDE) || picture[0].saturating_mul(picture[1]) > MAX_PIXELS {
            bail!(
                SizeOverflow,
                "a picture of {rows} rows of {columns} slices has {} x {} pixels, but at most {MAX_SIDE} on a side and \
                 {MAX_PIXELS} in all are possible: select images by --slice or --repetition, or write a .h5 file and \
                 look at it with recon view",
                picture[0],
                picture[1]
            );
        }
        let mut number = 0;
        for frame in 0..frames {
            for channel in 0..channels {
                for (&image, z) in series.frame(frame).iter().flat_map(|image| (0..nz).map(move |z| (image, z))) {
                    let (left, row) = (number % columns * cell[0], number / columns * cell[1]);
                    tiles.push(MosaicTile { image, channel, z, left, top: top + row });
                    number += 1;
                }
            }
        }
    }
    Ok((tiles, picture))
}

/// Checks, before images are computed, that their picture is not too large.
///
/// # Errors
/// `SizeOverflow` if the picture is wider or higher than 32767 pixels, or has more than 2^28.
pub fn check_picture(entries: &[PictureEntry]) -> Result<()> {
    arrange_tiles(entries).map(|_| ())
}

/// Writes the magnitudes of images to `files` as one picture with one grey scale: a mosaic of all slices, frames and
/// channels.
///
/// Each slice has the orientation of [`PlaneOrientation`]. Slices are in the order of z, or of their slice numbers;
/// the other counters of images make frames. The order is from left to right, then downwards: the slices of the first
/// channel, of the next channel, then of the next frame. If only one of the numbers of slices, channels and frames
/// exceeds 1, up to four are side by side, and more fill an approximate square. Otherwise a row has the slices of one
/// channel and frame, or the channels of one frame if there is one slice. Images of different sizes form mosaics below
/// each other.
///
/// # Errors
///
/// - `InvalidArgument`: there are no images, or the maximum is not positive.
/// - `NotFinite`: a voxel shown is NaN or infinite.
/// - `InvalidSize`, `SizeMismatch`: an image is not well formed.
/// - `SizeOverflow`: the picture is wider or higher than 32767 pixels, or has more than 2^28.
/// - `IO`: the file cannot be written.
pub fn write_png(files: &mut AtomicFiles, path: &Path, images: &[Image], options: &PngOptions) -> Result<()> {
    let within = |e: Error| e.within(path.display());
    images.iter().try_for_each(Image::check).map_err(within)?;
    let entry = |image: &Image| PictureEntry {
        index: image.index,
        dims: image.dims,
        channels: image.channels,
        placement: image.placement,
    };
    let (places, size) = arrange_tiles(&images.iter().map(entry).collect::<Vec<_>>()).map_err(within)?;
    let tile = |place: &MosaicTile| {
        let image = &images[place.image];
        let voxels = image.channel(place.channel);
        let slice = GreySlice::of(image.dims, &image.placement, place.z, |i| voxels[i].norm());
        PlacedSlice { slice, left: place.left, top: place.top }
    };
    let tiles: Vec<PlacedSlice> = places.iter().map(tile).collect();
    write_placed(files, path, &tiles, size, options)
}

/// Writes slices to `files` as one picture, side by side and aligned at the top, with one grey scale of 256 levels.
/// `maximum` is as in [`PngOptions`].
///
/// # Errors
/// Returns the errors of [`write_png`].
pub fn write_png_row(files: &mut AtomicFiles, path: &Path, tiles: &[GreySlice], maximum: Option<f32>) -> Result<()> {
    let (mut left, mut height) = (0usize, 0);
    let mut placed = Vec::new();
    for slice in tiles {
        placed.push(PlacedSlice { slice: slice.clone(), left, top: 0 });
        left = left.saturating_add(slice.width);
        height = height.max(slice.height);
    }
    write_placed(files, path, &placed, [left, height], &PngOptions { maximum, ..PngOptions::default() })
}

/// A slice, and the pixel at its top left in a picture.
struct PlacedSlice {
    slice: GreySlice,
    left: usize,
    top: usize,
}

fn write_placed(
    files: &mut AtomicFiles,
    path: &Path,
    tiles: &[PlacedSlice],
    size: [usize; 2],
    options: &PngOptions,
) -> Result<()> {
    let (grey, width, height) = compose(tiles, size, options).map_err(|e| e.within(path.display()))?;
    let io = |e: &dyn std::fmt::Display| Error::new(ErrorKind::IO, format!("{}: {e}", path.display()));
    let mut out = BufWriter::new(File::create(files.add(path)?).map_err(|e| io(&e))?);
    let mut encoder = ::png::Encoder::new(&mut out, width, height);
    encoder.set_color(::png::ColorType::Grayscale);
    encoder.set_depth(match options.depth {
        Depth::Eight => ::png::BitDepth::Eight,
        Depth::Sixteen => ::png::BitDepth::Sixteen,
    });
    let mut writer = encoder.write_header().map_err(|e| io(&e))?;
    writer.write_image_data(&grey).map_err(|e| io(&e))?;
    writer.finish().map_err(|e| io(&e))?;
    out.flush().map_err(|e| io(&e))
}

/// Returns the bytes of the picture, its width and its height.
fn compose(tiles: &[PlacedSlice], [width, height]: [usize; 2], options: &PngOptions) -> Result<(Vec<u8>, u32, u32)> {
    if tiles.is_empty() {
        bail!(InvalidArgument, "no image was given: give one or more");
    }
    for (i, PlacedSlice { slice: GreySlice { pixels, width: w, height: h }, .. }) in tiles.iter().enumerate() {
        let count = checked_product(&[*w, *h], "the image")?;
        if count == 0 || count != pixels.len() {
            bail!(SizeMismatch, "image {i}: {w} x {h} pixels need {count} numbers, not {}", pixels.len());
        }
        if let Some(at) = pixels.iter().position(|v| !v.is_finite()) {
            bail!(NotFinite, "image {i}: pixel ({}, {}) is {}: it cannot be drawn", at % w, at / w, pixels[at]);
        }
    }
    let bytes = if options.depth == Depth::Sixteen { 2 } else { 1 };
    let size = checked_product(&[width, height, bytes], "the picture")?;
    let (Ok(w32), Ok(h32)) = (i32::try_from(width), i32::try_from(height)) else {
        bail!(SizeOverflow, "a picture of {width} x {height} pixels is too large for PNG: give fewer images");
    };
    let white = match options.maximum {
        Some(m) if m.is_finite() && m > 0.0 => m,
        Some(m) => bail!(InvalidArgument, "the magnitude of white is {m}: it must be positive"),
        None => white_level(tiles),
    };
    let levels = if options.depth == Depth::Sixteen { 65535.0 } else { 255.0 };
    let mut grey = recon::error::try_vec(size, 0u8, "the picture")?;
    for PlacedSlice { slice, left, top } in tiles {
        for (y, line) in slice.pixels.chunks_exact(slice.width).enumerate() {
            for (x, &v) in line.iter().enumerate() {
                let level = ((v as f64 / white as f64).clamp(0.0, 1.0) * levels).round() as u16;
                let at = ((top + y) * width + left + x) * bytes;
                match options.depth {
                    Depth::Eight => grey[at] = level as u8,
                    Depth::Sixteen => grey[at..at + 2].copy_from_slice(&level.to_be_bytes()),
                }
            }
        }
    }
    Ok((grey, w32 as u32, h32 as u32))
}

/// Returns the 99.9th percentile; if it is not positive, the maximum; if that is not positive either, 1.
fn white_level(tiles: &[PlacedSlice]) -> f32 {
    let mut all: Vec<f32> = tiles.iter().flat_map(|tile| tile.slice.pixels.iter().copied()).collect();
    let at = (all.len() - 1) - all.len() / 1000;
    let percentile = *all.select_nth_unstable_by(at, f32::total_cmp).1;
    let maximum = all.iter().copied().fold(0.0, f32::max);
    [percentile, maximum].into_iter().find(|&v| v > 0.0).unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ramp, write_png, write_png_row, TempDir};
    use super::*;
    use num_complex::Complex;
    use std::io::BufReader;

    /// Returns width, height, depth in bits, and bytes of a picture.
    fn read(path: &Path) -> (u32, u32, u8, Vec<u8>) {
        let mut reader = ::png::Decoder::new(BufReader::new(File::open(path).unwrap())).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        assert_eq!(info.color_type, ::png::ColorType::Grayscale);
        (info.width, info.height, info.bit_depth as u8, bytes)
    }

    fn tile(pixels: &[f32], width: usize, height: usize) -> GreySlice {
        GreySlice { pixels: pixels.to_vec(), width, height }
    }

    /// Checks which voxels [x, y] are shown in the top left corner, on its right and below it.
    #[test]
    fn slices_have_the_radiological_orientation() {
        let (nx, ny) = (4, 3);
        let place = |read_dir, phase_dir, slice_dir| Placement { read_dir, phase_dir, slice_dir, ..Default::default() };
        let (left, back, head) = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]);
        let minus = |v: [f32; 3]| v.map(|v| -v);
        let (s, c) = 0.3f32.sin_cos();
        for (placement, corner, right, below) in [
            // Unknown: y upwards.
            (Placement::default(), [0, 2], [1, 2], [0, 1]),
            // Axial, with different encoding directions: the corner is the patient's right at the front.
            (place(left, back, head), [0, 0], [1, 0], [0, 1]),
            (place(left, minus(back), minus(head)), [0, 2], [1, 2], [0, 1]),
            (place(back, left, minus(head)), [0, 0], [0, 1], [1, 0]),
            (place(minus(back), left, head), [3, 0], [3, 1], [2, 0]),
            (place(minus(left), back, head), [3, 0], [2, 0], [3, 1]),
            (place([s, c, 0.0], [c, -s, 0.0], minus(head)), [0, 0], [0, 1], [1, 0]),
            // Coronal: the patient's right at the head.
            (place(left, minus(head), back), [0, 0], [1, 0], [0, 1]),
            (place(head, left, minus(back)), [3, 0], [3, 1], [2, 0]),
            // Sagittal: the front at the head.
            (place(back, minus(head), left), [0, 0], [1, 0], [0, 1]),
            (place(head, minus(back), left), [3, 2], [3, 1], [2, 2]),
        ] {
            let tile = GreySlice::of([nx, ny, 1], &placement, 0, |i| i as f32);
            let at = |column: usize, row: usize| {
                let i = tile.pixels[row * tile.width + column] as usize;
                [i % nx, i / nx]
            };
            assert_eq!([at(0, 0), at(1, 0), at(0, 1)], [corner, right, below], "{placement:?}");
        }
    }

    #[test]
    fn row_of_images() {
        let dir = TempDir::new();
        let path = dir.path("row.png");
        let a = tile(&[0.0, 1.0, 2.0, 4.0, 8.0, -1.0], 3, 2);
        write_png_row(&path, &[a.clone(), tile(&[2.0, 3.0], 2, 1)], Some(4.0)).unwrap();
        assert_eq!(read(&path), (5, 2, 8, vec![0, 64, 128, 128, 191, 255, 255, 0, 0, 0]));
        write_png_row(&path, &[a], None).unwrap();
        assert_eq!(read(&path).3, [0, 32, 64, 128, 255, 0]);
        write_png_row(&path, &[tile(&[0.0; 4], 2, 2)], None).unwrap();
        assert_eq!(read(&path).3, [0; 4]);
        let mut many = vec![1.0; 4000];
        many[17] = 1e6;
        write_png_row(&path, &[tile(&many, 40, 100)], None).unwrap();
        assert_eq!(read(&path).3, [255; 4000]);
    }

    #[test]
    fn volumes_and_depth() {
        let dir = TempDir::new();
        let path = dir.path("volume.png");
        let image = Image::new([2, 3, 3], 1, (0..18).map(|i| (i as f32).into()).collect()).unwrap();
        let options = PngOptions { depth: Depth::Sixteen, maximum: Some(65535.0) };
        write_png(&path, std::slice::from_ref(&image), &options).unwrap();
        // Three slices side by side, y upwards.
        let rows: [u8; 18] = [4, 5, 10, 11, 16, 17, 2, 3, 8, 9, 14, 15, 0, 1, 6, 7, 12, 13];
        assert_eq!(read(&path), (6, 3, 16, rows.iter().flat_map(|&v| [0, v]).collect()));
    }

    #[test]
    fn layout_of_mosaics() {
        let square = [64, 64];
        for (slices, coils, frames, size, layout) in [
            (1, 1, 1, square, [1, 1]),
            (4, 1, 1, square, [4, 1]),
            (5, 1, 1, square, [3, 2]),
            (1, 16, 1, square, [4, 4]),
            (1, 1, 17, square, [5, 4]),
            (12, 1, 1, [64, 32], [3, 4]),
            (12, 1, 1, [32, 64], [6, 2]),
            (5, 1, 1, [1, 1000], [5, 1]),
            (1, 8, 3, square, [8, 3]),
            (20, 1, 3, square, [20, 3]),
            (20, 2, 3, square, [20, 6]),
        ] {
            assert_eq!(mosaic_layout(slices, coils, frames, size), layout, "{slices} {coils} {frames} {size:?}");
        }
    }

    /// Checks the place of each slice, coil and frame: all pixels of an image have one value.
    #[test]
    fn slices_coils_and_frames_have_their_place() {
        let dir = TempDir::new();
        let path = dir.path("mosaic.png");
        let options = PngOptions { depth: Depth::Eight, maximum: Some(255.0) };
        // [columns, rows, values of tiles] of images with 1 x 1 pixels.
        let tiles = |images: &[Image]| {
            write_png(&path, images, &options).unwrap();
            let (width, height, _, bytes) = read(&path);
            (width, height, bytes)
        };
        let image = |slice, repetition, dims: [usize; 3], channels: usize, first: usize| {
            let count = dims[2] * channels;
            let data = (first..first + count).map(|v| Complex::from(v as f32)).collect();
            let mut image = Image::new(dims, channels, data).unwrap();
            (image.index.slice, image.index.repetition) = (slice, repetition);
            image
        };
        // A volume of two slices in three coils: a row for each coil.
        assert_eq!(tiles(&[image(0, 0, [1, 1, 2], 3, 10)]), (2, 3, vec![10, 11, 12, 13, 14, 15]));
        // Two repetitions of it: six rows.
        let both = [image(0, 0, [1, 1, 2], 3, 10), image(0, 1, [1, 1, 2], 3, 20)];
        assert_eq!(tiles(&both), (2, 6, (10..16).chain(20..26).collect()));
        // Two slices in the order of acquisition, three repetitions: a row for each repetition.
        let scans: Vec<Image> = (0..6).map(|i| image([1, 0][i % 2], i as u16 / 2, [1, 1, 1], 1, 10 * i + 10)).collect();
        assert_eq!(tiles(&scans), (2, 3, vec![20, 10, 40, 30, 60, 50]));
        // Two coils and three frames.
        let frames: Vec<Image> = (0..3).map(|i| image(0, i, [1, 1, 1], 2, 10 * i as usize + 10)).collect();
        assert_eq!(tiles(&frames), (2, 3, vec![10, 11, 20, 21, 30, 31]));
        // Seven coils: the last tiles are black.
        assert_eq!(tiles(&[image(0, 0, [1, 1, 1], 7, 1)]), (3, 3, vec![1, 2, 3, 4, 5, 6, 7, 0, 0]));
    }

    #[test]
    fn pictures_that_are_too_large() {
        let dir = TempDir::new();
        let entry = PictureEntry {
            index: ScanIndex::default(),
            dims: [256, 256, 256],
            channels: 1,
            placement: Placement::default(),
        };
        check_picture(&[entry]).unwrap();
        check_picture(&[PictureEntry { channels: 4096, dims: [256, 256, 1], ..entry }]).unwrap();
        // 65536 columns, 4097 tiles of 2^16 pixels, 2^15 rows.
        for (dims, channels) in [([256, 256, 256], 2), ([256, 256, 1], 4097), ([1, 1, 2], 40000)] {
            let e = check_picture(&[PictureEntry { dims, channels, ..entry }]).unwrap_err();
            assert!(e.kind() == ErrorKind::SizeOverflow && e.message().contains("recon view"), "{e}");
        }
        let wide = Image::new([40000, 1, 1], 1, ramp(40000)).unwrap();
        let e = write_png(dir.path("wide.png"), &[wide], &PngOptions::default()).unwrap_err();
        assert!(e.kind() == ErrorKind::SizeOverflow && e.message().contains("wide.png: a picture of 1 rows"), "{e}");
        assert_eq!(dir.count(), 0);
    }

    #[test]
    fn wrong_arguments() {
        let dir = TempDir::new();
        let path = dir.path("bad.png");
        let kind = |tiles: &[GreySlice], m| write_png_row(&path, tiles, m).unwrap_err().kind();
        assert_eq!(kind(&[], None), ErrorKind::InvalidArgument);
        assert_eq!(kind(&[tile(&[1.0], 1, 2)], None), ErrorKind::SizeMismatch);
        assert_eq!(kind(&[tile(&[], 0, 2)], None), ErrorKind::SizeMismatch);
        assert_eq!(kind(&[tile(&[1.0], 1, 1)], Some(0.0)), ErrorKind::InvalidArgument);
        assert_eq!(kind(&[tile(&[1.0], 1, 1)], Some(f32::NAN)), ErrorKind::InvalidArgument);
        let e = write_png_row(&path, &[tile(&[1.0, 2.0, f32::NAN, 1.0], 2, 2)], None).unwrap_err();
        assert!(e.kind() == ErrorKind::NotFinite && e.message().contains("(0, 1) is NaN"), "{e}");
        assert_eq!(dir.count(), 0);
    }
}
