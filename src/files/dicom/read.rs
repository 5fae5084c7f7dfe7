//! Reads the images of a DICOM file.

use super::elements::{Elements, Scope};
use super::pixels::PixelFormat;
use crate::bytes::read_up_to;
use crate::image::{Image, ScanIndex};
use crate::stacks::{cross, dot, length, placement_of, times};
use dicom_dictionary_std::tags;
use num_complex::Complex;
use recon::error::{bail, checked_product, Result};
use std::collections::BTreeSet;
use std::path::Path;

/// Reads the images of a file: one of a classic file, one per frame of an enhanced or other multi-frame file.
///
/// Pixels are multiplied by RescaleSlope, and RescaleIntercept is added. Position, directions and spacing of pixels
/// become placement and field of view. The placement is unknown if the file does not have position and directions. The
/// repetition is the temporal position minus 1, the slice is the position in the stack minus 1, and the contrast of a
/// classic file is the echo number minus 1. If two frames have the same numbers, the slice is the index of the frame.
///
/// # Errors
/// - `IO`: the file cannot be read.
/// - `BadFile`: it is not DICOM, or is damaged.
/// - `Unsupported`: the pixels are compressed, are colours, or have more than 32 bits.
pub fn read_dicom(path: impl AsRef<Path>) -> Result<Vec<Image>> {
    let path = path.as_ref();
    read_up_to(path, usize::MAX).and_then(|file| parse(&file)).map_err(|e| e.within(path.display()))
}

/// Returns the images of the bytes of a file.
pub fn parse(file: &[u8]) -> Result<Vec<Image>> {
    let elements = Elements::of_file(file)?;
    let Some(pixels) = elements.pixels.clone() else {
        bail!(BadFile, "the file does not have pixels: it is not an image, or is damaged");
    };
    if elements.has_value_table || elements.text(Scope::File, tags::DOSE_GRID_SCALING).is_some() {
        bail!(
            Unsupported,
            "the values of the pixels come from a table (ModalityLUTSequence) or from DoseGridScaling, and only \
             RescaleSlope and RescaleIntercept can be read: convert the file"
        );
    }
    let size = |tag| match elements.count(tag)? {
        Some(n) if n > 0 => Ok(n),
        n => bail!(
            BadFile,
            "element {tag} is {}: the file is not an image, or is damaged",
            n.map_or("missing".into(), |n| n.to_string())
        ),
    };
    let (rows, columns) = (size(tags::ROWS)?, size(tags::COLUMNS)?);
    let frames = elements.count(tags::NUMBER_OF_FRAMES)?.unwrap_or(1);
    let format = pixel_format(&elements)?;
    let required = checked_product(&[columns, rows, frames, format.bytes], "the pixels")?;
    let pixels = &file[pixels];
    if pixels.len() < required || frames == 0 || (format.has_swapped_bytes && pixels.len() % 2 != 0) {
        bail!(
            BadFile,
            "{frames} frames of {columns} x {rows} pixels of {} bytes require {required} bytes, and the file has {}: \
             it is damaged",
            format.bytes,
            pixels.len()
        );
    }
    let mut images = Vec::with_capacity(frames);
    for frame in 0..frames {
        let count = columns * rows;
        let [slope] = elements.numbers_of_frame(frame, tags::RESCALE_SLOPE)?.unwrap_or([1.0]);
        let [intercept] = elements.numbers_of_frame(frame, tags::RESCALE_INTERCEPT)?.unwrap_or([0.0]);
        let value = |i| (format.integer(pixels, frame * count + i) as f64 * slope + intercept) as f32;
        let data = (0..count).map(|i| Complex::from(value(i))).collect();
        let mut image = Image::new([columns, rows, 1], 1, data)?;
        put_geometry(&elements, frame, frames, &mut image)?;
        image.index = index(&elements, frame)?;
        images.push(image);
    }
    let indices: BTreeSet<ScanIndex> = images.iter().map(|image| image.index).collect();
    if indices.len() < images.len() {
        if images.len() > usize::from(u16::MAX) + 1 {
            bail!(Unsupported, "the file has {frames} frames, and at most 65536 can be numbered: split the file");
        }
        for (frame, image) in images.iter_mut().enumerate() {
            image.index = ScanIndex { slice: frame as u16, ..ScanIndex::default() };
        }
    }
    Ok(images)
}

/// Returns the format of the pixels.
fn pixel_format(elements: &Elements) -> Result<PixelFormat> {
    let number = |tag, default| Ok(elements.count(tag)?.unwrap_or(default));
    let kind = elements.text(Scope::File, tags::PHOTOMETRIC_INTERPRETATION).unwrap_or_else(|| "MONOCHROME2".into());
    let samples = number(tags::SAMPLES_PER_PIXEL, 1)?;
    if samples != 1 || !kind.starts_with("MONOCHROME") {
        bail!(
            Unsupported,
            "the pixels have {samples} samples and the photometric interpretation {kind}, and only grey values can be \
             read: convert the file to MONOCHROME2"
        );
    }
    let allocated = number(tags::BITS_ALLOCATED, 0)?;
    let stored = number(tags::BITS_STORED, allocated)?;
    let high = number(tags::HIGH_BIT, stored.saturating_sub(1))?;
    if ![8, 16, 32].contains(&allocated) {
        bail!(Unsupported, "the pixels have {allocated} bits, and only 8, 16 and 32 can be read: convert the file");
    }
    if stored == 0 || stored > allocated || high + 1 != stored {
        bail!(
            BadFile,
            "{stored} of {allocated} bits of a pixel are stored, and the highest is bit {high}: the file is damaged"
        );
    }
    Ok(PixelFormat {
        bytes: allocated / 8,
        bits: stored as u32,
        is_signed: number(tags::PIXEL_REPRESENTATION, 0)? == 1,
        is_big_endian: elements.is_big_endian,
        has_swapped_bytes: elements.is_big_endian && elements.has_words && allocated == 8,
    })
}

/// Sets the field of view and the placement of the image of one of `frames` frames.
fn put_geometry(elements: &Elements, frame: usize, frames: usize, image: &mut Image) -> Result<()> {
    let [nx, ny, _] = image.dims;
    // The first spacing is that of rows, which is along y.
    let [row, column] = elements.numbers_of_frame(frame, tags::PIXEL_SPACING)?.unwrap_or([0.0; 2]);
    let thickness = match elements.numbers_of_frame(frame, tags::SLICE_THICKNESS)? {
        None => elements.numbers_of_frame(frame, tags::SPACING_BETWEEN_SLICES)?,
        thickness => thickness,
    };
    let [thickness] = thickness.unwrap_or([0.0]);
    let known = |mm: f64| if mm > 0.0 { mm } else { 0.0 };
    image.fov_mm = [known(column) * nx as f64, known(row) * ny as f64, known(thickness)].map(|mm| mm as f32);
    // A position of the whole file is that of its only frame.
    let position: Option<[f64; 3]> = match frames {
        1 => elements.numbers_of_frame(frame, tags::IMAGE_POSITION_PATIENT)?,
        _ => elements.numbers_in_scope(Scope::Frame(frame), tags::IMAGE_POSITION_PATIENT)?,
    };
    let directions: Option<[f64; 6]> = elements.numbers_of_frame(frame, tags::IMAGE_ORIENTATION_PATIENT)?;
    if let (Some(origin), Some([a, b, c, d, e, f])) = (position, directions) {
        let step = |mm: f64| if mm > 0.0 { mm } else { 1.0 };
        let (x, y) = (times([a, b, c], step(column)), times([d, e, f], step(row)));
        let normal = cross(x, y);
        let placement = placement_of([x, y, normal], origin, image.dims);
        if placement.is_known() && is_unit(&[a, b, c]) && is_unit(&[d, e, f]) {
            image.placement = placement;
        }
    }
    let time = elements.numbers_of_frame(frame, tags::TEMPORAL_RESOLUTION)?;
    image.placement.repetition_time_ms = time.map(|[ms]: [f64; 1]| ms as f32).filter(|ms| *ms > 0.0);
    Ok(())
}

/// Returns whether a vector has the length 1, within 1 %.
fn is_unit(v: &[f64; 3]) -> bool {
    (length(*v) - 1.0).abs() < 0.01 && dot(*v, *v).is_finite()
}

/// Returns the counters of a frame.
fn index(elements: &Elements, frame: usize) -> Result<ScanIndex> {
    let counter = |tag| -> Result<u16> {
        let number = elements.numbers_of_frame(frame, tag)?;
        Ok(number.map_or(0, |[n]: [f64; 1]| (n - 1.0).clamp(0.0, f64::from(u16::MAX)) as u16))
    };
    let repetition = counter(tags::TEMPORAL_POSITION_IDENTIFIER)?.max(counter(tags::TEMPORAL_POSITION_INDEX)?);
    let slice = counter(tags::IN_STACK_POSITION_NUMBER)?;
    // Some files have several echo numbers, one for each combined echo.
    let contrast = match elements.numbers(Scope::File, tags::ECHO_NUMBERS)?[..] {
        [n] => (n - 1.0).clamp(0.0, f64::from(u16::MAX)) as u16,
        _ => 0,
    };
    Ok(ScanIndex { slice, repetition, contrast, ..ScanIndex::default() })
}
