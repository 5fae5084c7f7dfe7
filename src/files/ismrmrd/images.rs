//! Reads and writes ISMRMRD images.

use super::storage::{check_stored, checked_type, create, hdf5_error, open};
use crate::image::{Image, Placement, ScanIndex};
use hdf5::types::{TypeDescriptor, VarLenAscii};
use ndarray::ArrayView;
use num_complex::Complex;
use recon::atomic_file::AtomicFiles;
use recon::error::{bail, checked_product, ErrorKind, Result};
use std::path::Path;

/// The header of an image: 198 bytes in the file, without padding.
#[derive(hdf5::H5Type, Clone, Copy, Default)]
#[repr(C)]
struct ImageHeader {
    version: u16,
    data_type: u16,
    flags: u64,
    measurement_uid: u32,
    matrix_size: [u16; 3],
    field_of_view: [f32; 3],
    channels: u16,
    position: [f32; 3],
    read_dir: [f32; 3],
    phase_dir: [f32; 3],
    slice_dir: [f32; 3],
    patient_table_position: [f32; 3],
    average: u16,
    slice: u16,
    contrast: u16,
    phase: u16,
    repetition: u16,
    set: u16,
    acquisition_time_stamp: u32,
    physiology_time_stamp: [u32; 3],
    image_type: u16,
    image_index: u16,
    image_series_index: u16,
    user_int: [i32; 8],
    user_float: [f32; 8],
    attribute_string_len: u32,
}

/// A complex number with the field names of ISMRMRD.
#[derive(hdf5::H5Type, Clone, Copy)]
#[repr(C)]
struct IsmrmrdComplex {
    real: f32,
    imag: f32,
}

/// A complex number with the field names of h5py.
#[derive(hdf5::H5Type, Clone, Copy)]
#[repr(C)]
struct H5pyComplex {
    r: f32,
    i: f32,
}

const TYPE_FLOAT: u16 = 5;
const TYPE_COMPLEX_FLOAT: u16 = 7;
const IMAGE_MAGNITUDE: u16 = 1;
const IMAGE_REAL: u16 = 3;
const IMAGE_COMPLEX: u16 = 5;
const ATTRIBUTES: &str = "<?xml version=\"1.0\"?>\n<ismrmrdMeta></ismrmrdMeta>\n";

/// Writes images to `files` in the layout of the ISMRMRD library.
///
/// The groups are `dataset/image_0`, `dataset/image_1`, ... Each contains the images of one size and number of
/// channels, as `header`, `attributes` and `data` [images, channels, z, y, x]. If all imaginary parts of a group are 0,
/// the numbers are single precision, otherwise complex.
///
/// # Errors
///
/// - `InvalidArgument`: there are no images.
/// - `InvalidSize`, `SizeMismatch`: an image is not well formed.
/// - `Unsupported`: a size is above 65535, the maximum of ISMRMRD.
/// - `IO`: the file cannot be written.
pub fn write_images(files: &mut AtomicFiles, path: &Path, images: &[Image]) -> Result<()> {
    if images.is_empty() {
        bail!(InvalidArgument, "{}: no image was given: give one or more", path.display());
    }
    let mut series: Vec<((_, _), Vec<&Image>)> = Vec::new();
    for image in images {
        image.check().map_err(|e| e.within(path.display()))?;
        if let Some(n) = image.dims.iter().chain([&image.channels]).find(|&&n| n > u16::MAX as usize) {
            bail!(
                Unsupported,
                "{}: a size of the image is {n}, and ISMRMRD images have at most 65535: write a .cfl file",
                path.display()
            );
        }
        let key = (image.dims, image.channels);
        match series.iter_mut().find(|(k, _)| *k == key) {
            Some((_, list)) => list.push(image),
            None => series.push((key, vec![image])),
        }
    }
    let what = format!("{}: the file cannot be written", path.display());
    let io = hdf5_error(ErrorKind::IO, &what);
    let file = create(&files.add(path)?).map_err(&io)?;
    let write = || -> hdf5::Result<()> {
        let dataset = file.create_group("dataset")?;
        for (number, ((dims, channels), images)) in series.iter().enumerate() {
            let group = dataset.create_group(&format!("image_{number}"))?;
            write_series(&group, number, *dims, *channels, images)?;
        }
        file.flush()
    };
    write().map_err(&io)?;
    file.close().map_err(&io)
}

fn write_series(
    group: &hdf5::Group,
    number: usize,
    [nx, ny, nz]: [usize; 3],
    channels: usize,
    images: &[&Image],
) -> hdf5::Result<()> {
    let count = images.len();
    let real = images.iter().all(|image| image.data.iter().all(|z| z.im == 0.0));
    let headers: Vec<_> = images.iter().enumerate().map(|(i, image)| image_header(image, real, number, i)).collect();
    group.new_dataset::<ImageHeader>().packed(true).shape(count..).chunk(1).create("header")?.write_raw(&headers)?;
    let text = VarLenAscii::from_ascii(ATTRIBUTES).map_err(|e| hdf5::Error::Internal(e.to_string()))?;
    let texts = vec![text; count];
    group.new_dataset::<VarLenAscii>().shape(count..).chunk(1).create("attributes")?.write_raw(&texts)?;

    let shape = (count.., channels, nz, ny, nx);
    // One image per chunk, as in the ISMRMRD library, or one plane: HDF5 limits a chunk to 4 GiB.
    let image = (1, channels, nz, ny, nx);
    let chunk = if channels * nz * ny * nx >= 1 << 28 { (1, 1, 1, ny, nx) } else { image };
    let set = match real {
        true => group.new_dataset::<f32>().shape(shape).chunk(chunk).create("data")?,
        false => group.new_dataset::<IsmrmrdComplex>().shape(shape).chunk(chunk).create("data")?,
    };
    let view = (channels, nz, ny, nx);
    for (i, image) in images.iter().enumerate() {
        let at = (i, .., .., .., ..);
        if real {
            let values: Vec<f32> = image.data.iter().map(|z| z.re).collect();
            set.write_slice(ArrayView::from_shape(view, &values)?, at)?;
        } else {
            let values: Vec<_> = image.data.iter().map(|z| IsmrmrdComplex { real: z.re, imag: z.im }).collect();
            set.write_slice(ArrayView::from_shape(view, &values)?, at)?;
        }
    }
    Ok(())
}

fn image_header(image: &Image, real: bool, series: usize, number: usize) -> ImageHeader {
    let (p, i) = (&image.placement, &image.index);
    ImageHeader {
        version: 1,
        data_type: if real { TYPE_FLOAT } else { TYPE_COMPLEX_FLOAT },
        measurement_uid: p.measurement_uid,
        matrix_size: image.dims.map(|n| n as u16),
        field_of_view: image.fov_mm,
        channels: image.channels as u16,
        position: p.position,
        read_dir: p.read_dir,
        phase_dir: p.phase_dir,
        slice_dir: p.slice_dir,
        patient_table_position: p.table_position,
        average: i.average,
        slice: i.slice,
        contrast: i.contrast,
        phase: i.phase,
        repetition: i.repetition,
        set: i.set,
        acquisition_time_stamp: p.acquisition_time_stamp,
        physiology_time_stamp: p.physiology_time_stamp,
        image_type: match real {
            false => IMAGE_COMPLEX,
            true if image.data.iter().all(|z| z.re >= 0.0) => IMAGE_MAGNITUDE,
            true => IMAGE_REAL,
        },
        image_index: number as u16,
        image_series_index: series as u16,
        attribute_string_len: ATTRIBUTES.len() as u32,
        ..Default::default()
    }
}

/// Reads the images of the group `group`, for example `dataset/image_0`; `None` means all groups with images.
///
/// Groups are read in the order of their names, `image_10` after `image_9`. Several groups cause a warning. Numbers are
/// complex or real, of any width. The header of an ISMRMRD image does not have the encoding: it is 0 in the index.
///
/// # Errors
///
/// - `IO`: the file cannot be opened.
/// - `BadFile`: it is not an HDF5 file, is truncated, has no images there, or does not have ISMRMRD's layout.
pub fn read_images(path: impl AsRef<Path>, group: Option<&str>) -> Result<Vec<Image>> {
    let path = path.as_ref();
    read(path, group).map_err(|e| e.within(path.display()))
}

fn read(path: &Path, group: Option<&str>) -> Result<Vec<Image>> {
    let file = open(path)?;
    let mut found = Vec::new();
    match group {
        Some(name) => found.extend(file.group(name).ok().filter(has_images)),
        None => find_images(&file, 3, &mut found),
    }
    if found.is_empty() {
        let mut names = file.member_names().unwrap_or_default();
        names.sort();
        bail!(BadFile, "no images in {}; the file has: {}", group.unwrap_or("any group"), names.join(", "));
    }
    if found.len() > 1 {
        let names: Vec<_> = found.iter().map(|g| g.name().trim_start_matches('/').to_owned()).collect();
        log::warn!("{}: {} series of images, read in this order: {}", path.display(), names.len(), names.join(", "));
    }
    let mut images = Vec::new();
    for node in &found {
        images.extend(read_series(node)?);
    }
    Ok(images)
}

fn read_series(node: &hdf5::Group) -> Result<Vec<Image>> {
    let bad = |what| hdf5_error(ErrorKind::BadFile, what);
    let headers = node.dataset("header").map_err(bad("the image header cannot be opened"))?;
    let set = node.dataset("data").map_err(bad("the image data cannot be opened"))?;
    checked_type::<ImageHeader>(&headers, "header")?;
    check_stored(&headers, "header")?;
    check_stored(&set, "data")?;
    let &[count, channels, nz, ny, nx] = set.shape().as_slice() else {
        bail!(BadFile, "the image data have the shape {:?}: five dimensions are expected", set.shape());
    };
    if headers.ndim() != 1 || headers.size() != count || count == 0 {
        bail!(BadFile, "{} headers for {count} images: the file is damaged", headers.size());
    }
    let voxels = checked_product(&[channels, nz, ny, nx], "the image")?;
    let headers = headers.read_raw::<ImageHeader>().map_err(bad("the image header cannot be read"))?;
    let kind = set.dtype().and_then(|t| t.to_descriptor()).map_err(bad("the type of the image data cannot be read"))?;

    let unreadable = bad("the image data cannot be read");
    let mut images = Vec::with_capacity(count);
    for (i, h) in headers.iter().enumerate() {
        macro_rules! read_as {
            ($t:ty, $convert:expr) => {{
                let part = set.read_slice::<$t, _, ndarray::Ix4>((i, .., .., .., ..)).map_err(&unreadable)?;
                part.iter().map($convert).collect::<Vec<_>>()
            }};
        }
        let has_fields = |names: [&str; 2]| match &kind {
            TypeDescriptor::Compound(c) => {
                c.fields.len() == 2 && names.iter().all(|n| c.fields.iter().any(|f| f.name == *n))
            }
            _ => false,
        };
        let data: Vec<Complex<f32>> = match kind {
            TypeDescriptor::Float(_) | TypeDescriptor::Integer(_) | TypeDescriptor::Unsigned(_) => {
                read_as!(f32, |&v| Complex::new(v, 0.0))
            }
            _ if has_fields(["real", "imag"]) => read_as!(IsmrmrdComplex, |z| Complex::new(z.real, z.imag)),
            _ if has_fields(["r", "i"]) => read_as!(H5pyComplex, |z| Complex::new(z.r, z.i)),
            _ => bail!(BadFile, "the image data are neither real nor complex numbers"),
        };
        debug_assert_eq!(data.len(), voxels);
        let mut image = Image::new([nx, ny, nz], channels, data)?;
        image.fov_mm = h.field_of_view;
        image.placement = Placement {
            position: h.position,
            read_dir: h.read_dir,
            phase_dir: h.phase_dir,
            slice_dir: h.slice_dir,
            table_position: h.patient_table_position,
            measurement_uid: h.measurement_uid,
            acquisition_time_stamp: h.acquisition_time_stamp,
            physiology_time_stamp: h.physiology_time_stamp,
            repetition_time_ms: None,
        };
        image.index = ScanIndex {
            encoding: 0,
            slice: h.slice,
            repetition: h.repetition,
            contrast: h.contrast,
            phase: h.phase,
            set: h.set,
            average: h.average,
        };
        images.push(image);
    }
    Ok(images)
}

fn has_images(group: &hdf5::Group) -> bool {
    group.dataset("header").is_ok() && group.dataset("data").is_ok()
}

/// Adds all groups with images to `found`, starting with this one. Names are sorted, numbers in them by value.
fn find_images(group: &hdf5::Group, depth: usize, found: &mut Vec<hdf5::Group>) {
    if has_images(group) {
        found.push(group.clone());
        return;
    }
    let mut names = group.member_names().ok().filter(|_| depth > 0).unwrap_or_default();
    names.sort_by_cached_key(|name| {
        let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let (text, number) = name.split_at(name.len() - digits);
        (text.to_owned(), number.parse::<u64>().ok(), name.clone())
    });
    names.iter().filter_map(|n| group.group(n).ok()).for_each(|g| find_images(&g, depth - 1, found));
}
