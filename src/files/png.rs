//! Writes grey pictures of magnitude images, in the orientation that radiologists use.

use super::image::{Image, Placement};
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
    /// Returns the slice z = floor(nz/2) of an image, in the orientation of a picture.
    ///
    /// If the directions of the image are unknown, x runs to the right and y upwards, as in the figures of Shepp and
    /// Logan 1974. If they are known, the orientation is the radiological convention:
    ///
    /// - axial: the patient's left on the right, the front at the top;
    /// - coronal: the left on the right, the head at the top;
    /// - sagittal: the front on the left, the head at the top;
    /// - oblique: as the nearest of these.
    ///
    /// `grey` returns the value of the voxel at an index of the array [x, y, z].
    pub fn of(dims: [usize; 3], placement: &Placement, grey: impl Fn(usize) -> f32) -> GreySlice {
        let [nx, ny, nz] = dims;
        let [x, y, _] = placement.directions();
        let dot = |a: [f32; 3], b: [f32; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        let normal: [f32; 3] =
            std::array::from_fn(|i| x[(i + 1) % 3] * y[(i + 2) % 3] - x[(i + 2) % 3] * y[(i + 1) % 3]);
        let main = (0..3).fold(0, |best, i| if normal[i].abs() > normal[best].abs() { i } else { best });
        // The directions of columns and rows, in the patient's coordinates (left, back, head).
        let (right, down) = match main {
            0 => ([0.0, 1.0, 0.0], [0.0, 0.0, -1.0]),
            1 => ([1.0, 0.0, 0.0], [0.0, 0.0, -1.0]),
            _ => ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]),
        };
        let x_in_rows = dot(x, right).abs() + dot(y, down).abs() >= dot(x, down).abs() + dot(y, right).abs();
        let (width, height) = if x_in_rows { (nx, ny) } else { (ny, nx) };
        let (columns, rows) = if x_in_rows { (x, y) } else { (y, x) };
        let (mirrored, upside_down) = (dot(columns, right) < 0.0, dot(rows, down) < 0.0);
        let slice = nz / 2 * nx * ny;
        let pixel = |i: usize| {
            let (column, row) = (i % width, i / width);
            let column = if mirrored { width - 1 - column } else { column };
            let row = if upside_down { height - 1 - row } else { row };
            let (x, y) = if x_in_rows { (column, row) } else { (row, column) };
            grey(slice + y * nx + x)
        };
        GreySlice { pixels: (0..nx * ny).map(pixel).collect(), width, height }
    }
}

/// Writes the magnitudes of images to `files` as one picture: a row of slices ([`GreySlice::of`]) with one grey scale,
/// all channels of the first image, then of the next.
///
/// # Errors
///
/// - `InvalidArgument`: there are no images, or the maximum is not positive.
/// - `NotFinite`: a voxel shown is NaN or infinite.
/// - `InvalidSize`, `SizeMismatch`: an image is not well formed.
/// - `IO`: the file cannot be written.
pub fn write_png(files: &mut AtomicFiles, path: &Path, images: &[Image], options: &PngOptions) -> Result<()> {
    let mut tiles = Vec::new();
    for image in images {
        image.check().map_err(|e| e.within(path.display()))?;
        for channel in 0..image.channels {
            let voxels = image.channel(channel);
            tiles.push(GreySlice::of(image.dims, &image.placement, |i| voxels[i].norm()));
        }
    }
    write_row(files, path, &tiles, options.maximum, options.depth)
}

/// Writes slices to `files` as one picture, side by side and aligned at the top, with one grey scale of 256 levels.
/// `maximum` is as in [`PngOptions`].
///
/// # Errors
/// Returns the errors of [`write_png`].
pub fn write_png_row(files: &mut AtomicFiles, path: &Path, tiles: &[GreySlice], maximum: Option<f32>) -> Result<()> {
    write_row(files, path, tiles, maximum, Depth::Eight)
}

fn write_row(
    files: &mut AtomicFiles,
    path: &Path,
    tiles: &[GreySlice],
    maximum: Option<f32>,
    depth: Depth,
) -> Result<()> {
    let (grey, width, height) = compose(tiles, maximum, depth).map_err(|e| e.within(path.display()))?;
    let io = |e: &dyn std::fmt::Display| Error::new(ErrorKind::IO, format!("{}: {e}", path.display()));
    let mut out = BufWriter::new(File::create(files.add(path)?).map_err(|e| io(&e))?);
    let mut encoder = ::png::Encoder::new(&mut out, width, height);
    encoder.set_color(::png::ColorType::Grayscale);
    encoder.set_depth(match depth {
        Depth::Eight => ::png::BitDepth::Eight,
        Depth::Sixteen => ::png::BitDepth::Sixteen,
    });
    let mut writer = encoder.write_header().map_err(|e| io(&e))?;
    writer.write_image_data(&grey).map_err(|e| io(&e))?;
    writer.finish().map_err(|e| io(&e))?;
    out.flush().map_err(|e| io(&e))
}

/// Returns the bytes of the picture, its width and its height.
fn compose(images: &[GreySlice], maximum: Option<f32>, depth: Depth) -> Result<(Vec<u8>, u32, u32)> {
    if images.is_empty() {
        bail!(InvalidArgument, "no image was given: give one or more");
    }
    let (mut width, mut height) = (0usize, 0);
    for (i, &GreySlice { ref pixels, width: w, height: h }) in images.iter().enumerate() {
        let count = checked_product(&[w, h], "the image")?;
        if count == 0 || count != pixels.len() {
            bail!(SizeMismatch, "image {i}: {w} x {h} pixels need {count} numbers, not {}", pixels.len());
        }
        if let Some(at) = pixels.iter().position(|v| !v.is_finite()) {
            bail!(NotFinite, "image {i}: pixel ({}, {}) is {}: it cannot be drawn", at % w, at / w, pixels[at]);
        }
        width = width.saturating_add(w);
        height = height.max(h);
    }
    let bytes = if depth == Depth::Sixteen { 2 } else { 1 };
    let size = checked_product(&[width, height, bytes], "the picture")?;
    let (Ok(w32), Ok(h32)) = (i32::try_from(width), i32::try_from(height)) else {
        bail!(SizeOverflow, "a picture of {width} x {height} pixels is too large for PNG");
    };
    let white = match maximum {
        Some(m) if m.is_finite() && m > 0.0 => m,
        Some(m) => bail!(InvalidArgument, "the magnitude of white is {m}: it must be positive"),
        None => white_level(images),
    };
    let levels = if depth == Depth::Sixteen { 65535.0 } else { 255.0 };
    let mut grey = recon::error::try_vec(size, 0u8, "the picture")?;
    let mut left = 0;
    for &GreySlice { ref pixels, width: w, .. } in images {
        for (y, line) in pixels.chunks_exact(w).enumerate() {
            for (x, &v) in line.iter().enumerate() {
                let level = ((v as f64 / white as f64).clamp(0.0, 1.0) * levels).round() as u16;
                let at = (y * width + left + x) * bytes;
                match depth {
                    Depth::Eight => grey[at] = level as u8,
                    Depth::Sixteen => grey[at..at + 2].copy_from_slice(&level.to_be_bytes()),
                }
            }
        }
        left += w;
    }
    Ok((grey, w32 as u32, h32 as u32))
}

/// Returns the 99.9th percentile; if it is not positive, the maximum; if that is not positive either, 1.
fn white_level(images: &[GreySlice]) -> f32 {
    let mut all: Vec<f32> = images.iter().flat_map(|tile| tile.pixels.iter().copied()).collect();
    let at = (all.len() - 1) - all.len() / 1000;
    let percentile = *all.select_nth_unstable_by(at, f32::total_cmp).1;
    let maximum = all.iter().copied().fold(0.0, f32::max);
    [percentile, maximum].into_iter().find(|&v| v > 0.0).unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ramp, write_png, write_png_row, TempDir};
    use super::*;
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
            let tile = GreySlice::of([nx, ny, 1], &placement, |i| i as f32);
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
        let image = Image::new([2, 3, 5], 1, (0..30).map(|i| (i as f32).into()).collect()).unwrap();
        let options = PngOptions { depth: Depth::Sixteen, maximum: Some(65535.0) };
        write_png(&path, std::slice::from_ref(&image), &options).unwrap();
        assert_eq!(read(&path), (2, 3, 16, vec![0, 16, 0, 17, 0, 14, 0, 15, 0, 12, 0, 13]));
        let coils = Image::new([2, 1, 1], 3, ramp(6)).unwrap();
        write_png(&path, &[coils.clone(), coils], &PngOptions::default()).unwrap();
        assert_eq!(read(&path).0, 12);
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
