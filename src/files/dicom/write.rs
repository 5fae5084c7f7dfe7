//! Writes images as classic single-frame MR files.

use super::fields::DicomFields;
use super::pixels::{quantise, PixelScaling};
use super::series::{divide_into_series, DicomFile, DicomSeries};
use super::text::{clean, decimal, millionths};
use super::uids::{ContentIdentity, IMPLEMENTATION_UID};
use crate::image::Image;
use crate::stacks::{dot, length, times, ImageGeometry};
use dicom_core::{DataElement, PrimitiveValue, Tag, VR};
use dicom_dictionary_std::{tags, uids};
use dicom_object::{FileMetaTableBuilder, InMemDicomObject};
use recon::atomic_file::AtomicFiles;
use recon::error::{bail, Error, ErrorKind, Result};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// The precession frequency of protons in MHz per tesla.
const PROTON_MHZ_PER_TESLA: f64 = 42.577_478_518;

/// The patient's positions that DICOM defines and ISMRMRD has.
const PATIENT_POSITIONS: [&str; 8] = ["HFS", "HFP", "HFDR", "HFDL", "FFS", "FFP", "FFDR", "FFDL"];

/// The sizes of images that DICOM can store.
const MAX_SIZE: usize = u16::MAX as usize;

/// Writes images among `files` as classic MR files, one per slice and repetition ([`super::file_names`]).
///
/// Pixels are integers of 16 bits: magnitudes, or the values themselves if all numbers of all images are real. One
/// factor for all files, RescaleSlope, maps the largest absolute value to 32767. Zero stays zero. Values are unsigned
/// unless one of them is negative.
///
/// ImagePositionPatient is the centre of the first voxel. ISMRMRD and DICOM have the same coordinates. If position and
/// directions are unknown, those of [`Placement::directions`](crate::Placement::directions) are written, with
/// the origin in the middle of the volume, a warning, and a comment in the file. If the field of view is unknown,
/// voxels have 1 mm, with a warning.
///
/// Images of different contrasts, phases, sets and encodings are series of one study, and so are the slabs of 3D
/// images. UIDs are computed from the contents. All images of the same raw data and patient are in one study, and share
/// the frame of reference.
///
/// # Errors
/// - `InvalidArgument`: there are no images, two have the same counters, the positions of some slices are unknown, or
///   `fields` are not valid.
/// - `InvalidSize`, `SizeMismatch`: images are not well formed.
/// - `Unsupported`: an image has several channels, or a size is above 65535.
/// - `NotFinite`: a voxel is not finite.
/// - `IO`: a file cannot be written.
pub fn write_dicom(files: &mut AtomicFiles, path: &Path, images: &[Image], fields: &DicomFields) -> Result<()> {
    let within = |e: Error| e.within(path.display());
    fields.check().map_err(within)?;
    check_images(images).map_err(within)?;
    let geometries: Vec<ImageGeometry> = images.iter().map(ImageGeometry::new).collect();
    let all = divide_into_series(path, &geometries).map_err(within)?;
    let scaling = PixelScaling::of_images(images).map_err(within)?;
    let call = identify(images, &geometries, fields);
    let scan = match fields.raw_data {
        Some(raw_data) => ContentIdentity::from_uuid(raw_data).with(&fields.patient_name).with(&fields.patient_id),
        None => call,
    };
    warn_about_files(path, &all, images);
    for (number, series) in all.iter().enumerate() {
        let common = CommonElements { fields, scaling: &scaling, call, scan, number, series };
        let elements = common.elements();
        for (instance, file) in series.files.iter().enumerate() {
            let mut object = elements.clone();
            common.put_file(&mut object, instance, file, &images[file.image]);
            write_object(&files.add(&file.path)?, &file.path, object)?;
        }
    }
    Ok(())
}

/// Checks that images are well formed and can be written.
fn check_images(images: &[Image]) -> Result<()> {
    if images.is_empty() {
        bail!(InvalidArgument, "no image was given: give one or more");
    }
    for image in images {
        image.check()?;
        check_channels(image.channels)?;
        if image.dims[..2].iter().any(|&n| n > MAX_SIZE) {
            bail!(
                Unsupported,
                "the image has {:?} voxels, and DICOM allows at most {MAX_SIZE} rows and columns: write a .h5 or .cfl \
                 file",
                image.dims
            );
        }
    }
    Ok(())
}

/// Checks that images of this number of channels can be written.
///
/// # Errors
/// `Unsupported` for more than one.
pub fn check_channels(channels: usize) -> Result<()> {
    if channels != 1 {
        bail!(
            Unsupported,
            "the image has {channels} channels (coils), and a DICOM file has one image: combine the coils, or write a \
             .h5, .cfl or .nii file"
        );
    }
    Ok(())
}

/// Returns the identity of everything that the files of a call contain.
fn identify(images: &[Image], geometries: &[ImageGeometry], fields: &DicomFields) -> ContentIdentity {
    let mut identity = ContentIdentity::new();
    identity.add_debug(fields);
    for (image, geometry) in images.iter().zip(geometries) {
        identity.add_debug(geometry);
        identity.add_values(&image.data, |z, bytes| {
            bytes.extend(z.re.to_le_bytes());
            bytes.extend(z.im.to_le_bytes());
        });
    }
    identity
}

/// Warns if there are several files, or if a position or a size is not from the headers.
fn warn_about_files(path: &Path, all: &[DicomSeries], images: &[Image]) {
    let files: Vec<&DicomFile> = all.iter().flat_map(|series| &series.files).collect();
    if let [first, .., last] = files[..] {
        let (first, last, series) = (first.path.display(), last.path.display(), all.len());
        log::warn!(
            "{}: each slice and repetition is in a separate file: {} files in {series} series, {first} to {last}",
            path.display(),
            files.len()
        );
    }
    if all.iter().any(|series| !series.is_placed) {
        log::warn!(
            "{}: the position in the patient is unknown, but DICOM requires one: axial slices around the origin are \
             written. Do not use the orientation of these files",
            path.display()
        );
    }
    if let Some(series) = all.iter().find(|series| !series.has_voxel_size) {
        let fov = images[series.files[0].image].fov_mm;
        log::warn!(
            "{}: the field of view is {fov:?} mm: the voxel size is unknown along axes with 0, and 1 mm is written",
            path.display()
        );
    }
}

/// The elements of a series.
struct CommonElements<'a> {
    fields: &'a DicomFields,
    scaling: &'a PixelScaling,
    /// Identity of all contents of the call.
    call: ContentIdentity,
    /// Identity of the scan and its patient.
    scan: ContentIdentity,
    /// Index of the series.
    number: usize,
    series: &'a DicomSeries,
}

impl CommonElements<'_> {
    /// Returns the elements that all files of the series share.
    fn elements(&self) -> InMemDicomObject {
        let mut object = InMemDicomObject::new_empty();
        self.put_patient_and_study(&mut object);
        self.put_series(&mut object);
        self.put_acquisition(&mut object);
        self.put_pixel_format(&mut object);
        object
    }

    fn put_patient_and_study(&self, object: &mut InMemDicomObject) {
        let fields = self.fields;
        let study = fields.study_uid.clone().unwrap_or_else(|| self.scan.with("study").uid());
        put(object, tags::SPECIFIC_CHARACTER_SET, VR::CS, "ISO_IR 192");
        put(object, tags::PATIENT_NAME, VR::PN, &fields.patient_name);
        put(object, tags::PATIENT_ID, VR::LO, &fields.patient_id);
        put(object, tags::STUDY_INSTANCE_UID, VR::UI, &study);
        // Type 2 elements that are unknown.
        for (tag, vr) in [
            (tags::PATIENT_BIRTH_DATE, VR::DA),
            (tags::PATIENT_SEX, VR::CS),
            (tags::STUDY_DATE, VR::DA),
            (tags::STUDY_TIME, VR::TM),
            (tags::STUDY_ID, VR::SH),
            (tags::ACCESSION_NUMBER, VR::SH),
            (tags::REFERRING_PHYSICIAN_NAME, VR::PN),
            (tags::LATERALITY, VR::CS),
            (tags::POSITION_REFERENCE_INDICATOR, VR::LO),
            (tags::CONTENT_DATE, VR::DA),
            (tags::CONTENT_TIME, VR::TM),
        ] {
            put(object, tag, vr, "");
        }
    }

    fn put_series(&self, object: &mut InMemDicomObject) {
        let (header, series) = (&self.fields.header, self.series);
        let identity = self.call.with(&format!("series {}", self.number));
        let text = |text: &Option<String>| clean(text.as_deref().unwrap_or_default());
        let position = header.patient_position.as_deref().filter(|p| PATIENT_POSITIONS.contains(p));
        put(object, tags::SOP_CLASS_UID, VR::UI, uids::MR_IMAGE_STORAGE);
        put(object, tags::SERIES_INSTANCE_UID, VR::UI, &identity.uid());
        put(object, tags::FRAME_OF_REFERENCE_UID, VR::UI, &self.scan.with("frame of reference").uid());
        put(object, tags::MODALITY, VR::CS, "MR");
        put(object, tags::SERIES_NUMBER, VR::IS, &(self.number + 1).to_string());
        put(object, tags::SERIES_DESCRIPTION, VR::LO, &format!("recon{}", series.suffix.replace('_', " ")));
        put(object, tags::PATIENT_POSITION, VR::CS, position.unwrap_or_default());
        put(object, tags::MANUFACTURER, VR::LO, &text(&header.vendor));
        put(object, tags::MANUFACTURER_MODEL_NAME, VR::LO, &text(&header.model));
        put(object, tags::SOFTWARE_VERSIONS, VR::LO, concat!("recon ", env!("CARGO_PKG_VERSION")));
        if !series.is_placed {
            put(object, tags::IMAGE_COMMENTS, VR::LT, "The position in the patient is unknown.");
        }
    }

    fn put_acquisition(&self, object: &mut InMemDicomObject) {
        let (header, contrast) = (&self.fields.header, self.series.index.contrast);
        let number = |value: Option<f64>| value.filter(|v| v.is_finite()).map(decimal).unwrap_or_default();
        // One time for all contrasts, or one per contrast.
        let time_of_contrast = |times: &[f64]| times.get(usize::from(contrast)).copied();
        let repetition_time = match header.repetition_times_ms[..] {
            [one] => Some(one),
            ref times => time_of_contrast(times),
        };
        let megahertz = header.h1_resonance_hz.filter(|&hz| hz > 0).map(|hz| hz as f64 * 1e-6);
        let kind = if self.scaling.is_signed { "DERIVED\\PRIMARY\\OTHER" } else { "ORIGINAL\\PRIMARY\\OTHER" };
        put(object, tags::IMAGE_TYPE, VR::CS, kind);
        // The sequence is unknown: a research mode.
        put(object, tags::SCANNING_SEQUENCE, VR::CS, "RM");
        put(object, tags::SEQUENCE_VARIANT, VR::CS, "NONE");
        put(object, tags::SCAN_OPTIONS, VR::CS, "");
        put(object, tags::ECHO_TRAIN_LENGTH, VR::IS, "");
        put(object, tags::ECHO_TIME, VR::DS, &number(time_of_contrast(&header.echo_times_ms)));
        put(object, tags::ECHO_NUMBERS, VR::IS, &(u32::from(contrast) + 1).to_string());
        put(object, tags::REPETITION_TIME, VR::DS, &number(repetition_time));
        if let Some(megahertz) = megahertz {
            put(object, tags::MAGNETIC_FIELD_STRENGTH, VR::DS, &millionths(megahertz / PROTON_MHZ_PER_TESLA));
            put(object, tags::IMAGING_FREQUENCY, VR::DS, &millionths(megahertz));
            put(object, tags::IMAGED_NUCLEUS, VR::SH, "1H");
        }
        if let Some(spacing) = self.series.spacing_mm {
            put(object, tags::SPACING_BETWEEN_SLICES, VR::DS, &millionths(spacing));
        }
    }

    fn put_pixel_format(&self, object: &mut InMemDicomObject) {
        put(object, tags::PHOTOMETRIC_INTERPRETATION, VR::CS, "MONOCHROME2");
        for (tag, value) in [
            (tags::SAMPLES_PER_PIXEL, 1),
            (tags::BITS_ALLOCATED, 16),
            (tags::BITS_STORED, 16),
            (tags::HIGH_BIT, 15),
            (tags::PIXEL_REPRESENTATION, u16::from(self.scaling.is_signed)),
        ] {
            object.put(DataElement::new(tag, VR::US, PrimitiveValue::from(value)));
        }
        put(object, tags::RESCALE_INTERCEPT, VR::DS, "0");
        put(object, tags::RESCALE_SLOPE, VR::DS, &self.scaling.slope_text);
        put(object, tags::RESCALE_TYPE, VR::LO, "US");
    }

    /// Adds the elements of one file.
    fn put_file(&self, object: &mut InMemDicomObject, instance: usize, file: &DicomFile, image: &Image) {
        let [nx, ny, _] = image.dims;
        let identity = self.call.with(&format!("series {}, image {instance}", self.number));
        put(object, tags::SOP_INSTANCE_UID, VR::UI, &identity.uid());
        put(object, tags::INSTANCE_NUMBER, VR::IS, &(instance + 1).to_string());
        let repetition = self.series.repetitions.iter().position(|&r| r == image.index.repetition).unwrap_or_default();
        put(object, tags::ACQUISITION_NUMBER, VR::IS, &(repetition + 1).to_string());
        if self.series.repetitions.len() > 1 {
            put(object, tags::TEMPORAL_POSITION_IDENTIFIER, VR::IS, &(repetition + 1).to_string());
            let count = self.series.repetitions.len().to_string();
            put(object, tags::NUMBER_OF_TEMPORAL_POSITIONS, VR::IS, &count);
            let time = image.placement.repetition_time_ms.filter(|ms| *ms > 0.0 && ms.is_finite());
            if let Some(time) = time {
                put(object, tags::TEMPORAL_RESOLUTION, VR::DS, &millionths(f64::from(time)));
            }
        }
        put(object, tags::MR_ACQUISITION_TYPE, VR::CS, if image.dims[2] > 1 { "3D" } else { "2D" });
        put_geometry(object, file);
        object.put(DataElement::new(tags::ROWS, VR::US, PrimitiveValue::from(ny as u16)));
        object.put(DataElement::new(tags::COLUMNS, VR::US, PrimitiveValue::from(nx as u16)));
        let voxels = &image.data[file.z * nx * ny..][..nx * ny];
        let pixels = PrimitiveValue::U16(quantise(voxels, self.scaling).into());
        object.put(DataElement::new(tags::PIXEL_DATA, VR::OW, pixels));
    }
}

/// Adds position, directions and voxel sizes. Rows are along x, so that the first direction is x, and the spacing of
/// rows is the voxel size along y.
fn put_geometry(object: &mut InMemDicomObject, file: &DicomFile) {
    let spacing = file.columns.map(length);
    let unit = |axis: usize| times(file.columns[axis], 1.0 / spacing[axis]);
    let list = |values: &[f64], text: fn(f64) -> String| values.iter().map(|&v| text(v)).collect::<Vec<_>>().join("\\");
    put(object, tags::IMAGE_POSITION_PATIENT, VR::DS, &list(&file.origin, millionths));
    put(object, tags::IMAGE_ORIENTATION_PATIENT, VR::DS, &list(&[unit(0), unit(1)].concat(), decimal));
    put(object, tags::PIXEL_SPACING, VR::DS, &list(&[spacing[1], spacing[0]], millionths));
    put(object, tags::SLICE_THICKNESS, VR::DS, &millionths(spacing[2]));
    put(object, tags::SLICE_LOCATION, VR::DS, &millionths(dot(file.origin, unit(2))));
}

fn put(object: &mut InMemDicomObject, tag: Tag, vr: VR, text: &str) {
    let value = match text {
        "" => PrimitiveValue::Empty,
        _ => PrimitiveValue::from(text),
    };
    object.put(DataElement::new(tag, vr, value));
}

/// Writes an object to the file `part`, which becomes the file `path`.
fn write_object(part: &Path, path: &Path, object: InMemDicomObject) -> Result<()> {
    let failed = |e: &dyn std::fmt::Display| Error::new(ErrorKind::IO, format!("{}: {e}", path.display()));
    let meta = FileMetaTableBuilder::new()
        .transfer_syntax(uids::EXPLICIT_VR_LITTLE_ENDIAN)
        .implementation_class_uid(IMPLEMENTATION_UID)
        .implementation_version_name("RECON");
    let object = object.with_meta(meta).map_err(|e| failed(&e))?;
    let mut out = BufWriter::new(File::create(part).map_err(|e| failed(&e))?);
    object.write_all(&mut out).map_err(|e| failed(&e))?;
    out.flush().map_err(|e| failed(&e))
}
