//! Grey pictures of magnitude images.

use super::atomic::write_file;
use super::Image;
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

/// How to turn magnitudes into grey levels.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PngOptions {
    /// The grey levels.
    pub depth: Depth,
    /// The magnitude that becomes white, and all above it; zero is black, and all below it. When none is given, the
    /// 99.9th percentile of all magnitudes shown, or their maximum where that percentile is zero.
    pub maximum: Option<f32>,
}

/// Writes the magnitudes of images as a grey picture. x runs to the right and y runs down. The channels of the images,
/// and the images, stand side by side, all with the same grey scale; of a volume the slice z = floor(nz/2) is shown.
///
/// # Errors
/// `InvalidArgument` for no images and for a maximum that is not positive; `NotFinite` when a voxel shown is NaN or
/// infinite; `InvalidSize` and `SizeMismatch` for an image that is not well formed; `Io` when the file cannot be
/// written.
pub fn write_png(path: impl AsRef<Path>, images: &[Image], options: &PngOptions) -> Result<()> {
    let path = path.as_ref();
    let mut tiles = Vec::new();
    for image in images {
        image.check().map_err(|e| e.within(path.display()))?;
        let [nx, ny, nz] = image.dims;
        for channel in 0..image.channels {
            let voxels = image.channel(channel);
            let slice = &voxels[nz / 2 * nx * ny..][..nx * ny];
            tiles.push((slice.iter().map(|z| z.norm()).collect::<Vec<f32>>(), nx, ny));
        }
    }
    let tiles: Vec<_> = tiles.iter().map(|(pixels, width, height)| (pixels.as_slice(), *width, *height)).collect();
    write_row(path, &tiles, options.maximum, options.depth)
}

/// Writes real images, each with its pixels (x fastest), width and height, side by side and aligned at the top, with
/// one grey scale of 256 levels for all: zero and less are black, `maximum` and more are white. Without `maximum`, it
/// is the 99.9th percentile of all pixels, or their maximum where that is zero. x runs to the right, y runs down.
///
/// # Errors
/// As [`write_png`].
pub fn write_png_row(path: impl AsRef<Path>, images: &[(&[f32], usize, usize)], maximum: Option<f32>) -> Result<()> {
    write_row(path.as_ref(), images, maximum, Depth::Eight)
}

fn write_row(path: &Path, images: &[(&[f32], usize, usize)], maximum: Option<f32>, depth: Depth) -> Result<()> {
    let (grey, width, height) = compose(images, maximum, depth).map_err(|e| e.within(path.display()))?;
    write_file(path, |part| {
        let io = |e: &dyn std::fmt::Display| Error::new(ErrorKind::Io, format!("{}: {e}", path.display()));
        let mut out = BufWriter::new(File::create(part).map_err(|e| io(&e))?);
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
    })
}

/// The bytes of the picture, its width and its height.
fn compose(images: &[(&[f32], usize, usize)], maximum: Option<f32>, depth: Depth) -> Result<(Vec<u8>, u32, u32)> {
    if images.is_empty() {
        bail!(InvalidArgument, "there is no image to write");
    }
    let (mut width, mut height) = (0usize, 0);
    for (i, &(pixels, w, h)) in images.iter().enumerate() {
        let count = checked_product(&[w, h], "the image")?;
        if count == 0 || count != pixels.len() {
            bail!(SizeMismatch, "image {i}: {w} x {h} pixels cannot be made of {} numbers", pixels.len());
        }
        if let Some(at) = pixels.iter().position(|v| !v.is_finite()) {
            bail!(NotFinite, "image {i}: pixel ({}, {}) is {}: it has no grey level", at % w, at / w, pixels[at]);
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
        None => brightest(images),
    };
    let levels = if depth == Depth::Sixteen { 65535.0 } else { 255.0 };
    let mut grey = recon::error::try_vec(size, 0u8, "the picture")?;
    let mut left = 0;
    for &(pixels, w, _) in images {
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

/// The 99.9th percentile, or the maximum where that is not positive, or one.
fn brightest(images: &[(&[f32], usize, usize)]) -> f32 {
    let mut all: Vec<f32> = images.iter().flat_map(|(pixels, ..)| pixels.iter().copied()).collect();
    let at = (all.len() - 1) - all.len() / 1000;
    let percentile = *all.select_nth_unstable_by(at, f32::total_cmp).1;
    let maximum = all.iter().copied().fold(0.0, f32::max);
    [percentile, maximum].into_iter().find(|&v| v > 0.0).unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ramp, TempDir};
    use super::*;
    use std::io::BufReader;

    /// Width, height, depth in bits, bytes.
    fn read(path: &Path) -> (u32, u32, u8, Vec<u8>) {
        let mut reader = ::png::Decoder::new(BufReader::new(File::open(path).unwrap())).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        assert_eq!(info.color_type, ::png::ColorType::Grayscale);
        (info.width, info.height, info.bit_depth as u8, bytes)
    }

    #[test]
    fn row_of_images() {
        let dir = TempDir::new();
        let path = dir.path("row.png");
        let (a, b) = ([0.0, 1.0, 2.0, 4.0, 8.0, -1.0], [2.0, 3.0]);
        write_png_row(&path, &[(&a, 3, 2), (&b, 2, 1)], Some(4.0)).unwrap();
        assert_eq!(read(&path), (5, 2, 8, vec![0, 64, 128, 128, 191, 255, 255, 0, 0, 0]));
        write_png_row(&path, &[(&a, 3, 2)], None).unwrap();
        assert_eq!(read(&path).3, [0, 32, 64, 128, 255, 0]);
        write_png_row(&path, &[(&[0.0; 4], 2, 2)], None).unwrap();
        assert_eq!(read(&path).3, [0; 4]);
        let mut many = vec![1.0; 4000];
        many[17] = 1e6;
        write_png_row(&path, &[(&many, 40, 100)], None).unwrap();
        assert_eq!(read(&path).3, [255; 4000]);
    }

    #[test]
    fn volumes_and_depth() {
        let dir = TempDir::new();
        let path = dir.path("volume.png");
        let image = Image::new([2, 3, 5], 1, (0..30).map(|i| (i as f32).into()).collect()).unwrap();
        let options = PngOptions { depth: Depth::Sixteen, maximum: Some(65535.0) };
        write_png(&path, std::slice::from_ref(&image), &options).unwrap();
        assert_eq!(read(&path), (2, 3, 16, vec![0, 12, 0, 13, 0, 14, 0, 15, 0, 16, 0, 17]));
        let coils = Image::new([2, 1, 1], 3, ramp(6)).unwrap();
        write_png(&path, &[coils.clone(), coils], &PngOptions::default()).unwrap();
        assert_eq!(read(&path).0, 12);
    }

    #[test]
    fn wrong_arguments() {
        let dir = TempDir::new();
        let path = dir.path("bad.png");
        let kind = |images: &[(&[f32], usize, usize)], m| write_png_row(&path, images, m).unwrap_err().kind();
        assert_eq!(kind(&[], None), ErrorKind::InvalidArgument);
        assert_eq!(kind(&[(&[1.0], 1, 2)], None), ErrorKind::SizeMismatch);
        assert_eq!(kind(&[(&[], 0, 2)], None), ErrorKind::SizeMismatch);
        assert_eq!(kind(&[(&[1.0], 1, 1)], Some(0.0)), ErrorKind::InvalidArgument);
        assert_eq!(kind(&[(&[1.0], 1, 1)], Some(f32::NAN)), ErrorKind::InvalidArgument);
        let e = write_png_row(&path, &[(&[1.0, 2.0, f32::NAN, 1.0], 2, 2)], None).unwrap_err();
        assert!(e.kind() == ErrorKind::NotFinite && e.message().contains("(0, 1) is NaN"), "{e}");
        assert_eq!(dir.count(), 0);
    }
}
