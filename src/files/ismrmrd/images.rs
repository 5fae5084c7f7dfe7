//! Reads and writes ISMRMRD images.

use super::layout::{self, IMAGE_HEADER};
use crate::hdf5::{
    check_stored, hdf5_error, member_names, open, record_type, require_members, text_type, Hdf5File, HeapFile, Number,
    RecordReader, REFERENCE,
};
use crate::image::{Image, Placement, ScanIndex};
use hdf5_pure::{CompoundMember, CompoundTypeBuilder, Datatype, FileBuilder, Group, GroupBuilder};
use num_complex::Complex;
use recon::atomic_file::AtomicFiles;
use recon::error::{bail, checked_product, Error, ErrorKind, Result};
use std::path::Path;

/// The length of the header of an image.
const HEADER: usize = layout::size(&IMAGE_HEADER);

/// The header of an image.
#[derive(Clone, Copy, Default)]
struct ImageHeader {
    version: u16,
    data_type: u16,
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
    attribute_string_len: u32,
}

/// A number of a header.
trait HeaderNumber: Copy {
    /// Copies the number to its bytes in the file, or from them.
    fn exchange(&mut self, bytes: &mut [u8], direction: Direction);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Read,
    Write,
}

macro_rules! header_numbers {
    ($($t:ty),+) => {$(
        impl HeaderNumber for $t {
            fn exchange(&mut self, bytes: &mut [u8], direction: Direction) {
                let mut own = self.to_le_bytes();
                match direction {
                    Direction::Read => own.copy_from_slice(bytes),
                    Direction::Write => bytes.copy_from_slice(&own),
                }
                *self = <$t>::from_le_bytes(own);
            }
        }
    )+};
}

header_numbers!(u16, u32, f32);

/// The bytes of a header, of which a part was exchanged.
struct HeaderBytes<'a> {
    rest: &'a mut [u8],
    direction: Direction,
}

impl HeaderBytes<'_> {
    fn several<T: HeaderNumber>(&mut self, numbers: &mut [T]) {
        let (bytes, rest) = std::mem::take(&mut self.rest).split_at_mut(size_of_val(numbers));
        let pairs = numbers.iter_mut().zip(bytes.chunks_exact_mut(size_of::<T>()));
        pairs.for_each(|(number, bytes)| number.exchange(bytes, self.direction));
        self.rest = rest;
    }

    fn one<T: HeaderNumber>(&mut self, number: &mut T) {
        self.several(std::slice::from_mut(number));
    }

    fn skip(&mut self, count: usize) {
        self.rest = &mut std::mem::take(&mut self.rest)[count..];
    }
}

impl ImageHeader {
    fn of_bytes(bytes: &[u8; HEADER]) -> ImageHeader {
        let mut header = ImageHeader::default();
        header.exchange(HeaderBytes { rest: &mut { *bytes }, direction: Direction::Read });
        header
    }

    fn to_bytes(mut self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        self.exchange(HeaderBytes { rest: &mut bytes, direction: Direction::Write });
        bytes
    }

    /// Exchanges all fields with bytes in the order of [`IMAGE_HEADER`]. Flags and numbers of users are not exchanged.
    fn exchange(&mut self, mut bytes: HeaderBytes) {
        bytes.one(&mut self.version);
        bytes.one(&mut self.data_type);
        bytes.skip(8);
        bytes.one(&mut self.measurement_uid);
        bytes.several(&mut self.matrix_size);
        bytes.several(&mut self.field_of_view);
        bytes.one(&mut self.channels);
        for vector in [
            &mut self.position,
            &mut self.read_dir,
            &mut self.phase_dir,
            &mut self.slice_dir,
            &mut self.patient_table_position,
        ] {
            bytes.several(vector);
        }
        for number in [
            &mut self.average,
            &mut self.slice,
            &mut self.contrast,
            &mut self.phase,
            &mut self.repetition,
            &mut self.set,
        ] {
            bytes.one(number);
        }
        bytes.one(&mut self.acquisition_time_stamp);
        bytes.several(&mut self.physiology_time_stamp);
        bytes.one(&mut self.image_type);
        bytes.one(&mut self.image_index);
        bytes.one(&mut self.image_series_index);
        bytes.skip(64);
        bytes.one(&mut self.attribute_string_len);
    }
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
    let mut series: Vec<Series> = Vec::new();
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
    let file = files.add(path)?;
    let write = || {
        // The references in the attributes are known when the structure was laid out once.
        let mut references: Vec<_> = series.iter().map(|(_, images)| vec![[0; REFERENCE]; images.len()]).collect();
        let mut heap = HeapFile::new(&file, structure(&series, &references, DatasetContents::Zeros)?)?;
        for reference in references.iter_mut().flatten() {
            *reference = heap.add(ATTRIBUTES.len(), ATTRIBUTES.as_bytes())?;
        }
        heap.finish(structure(&series, &references, DatasetContents::Voxels)?)
    };
    write().map_err(|e: Error| e.within(path.display()))
}

/// DatasetContents of the datasets of a structure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DatasetContents {
    /// Zeros: only the length of the structure matters.
    Zeros,
    /// The voxels.
    Voxels,
}

/// Images of one size and number of channels.
type Series<'a> = (([usize; 3], usize), Vec<&'a Image>);

/// Returns the structure of a file: a group for each series.
fn structure(series: &[Series], references: &[Vec<[u8; REFERENCE]>], contents: DatasetContents) -> Result<FileBuilder> {
    let mut builder = FileBuilder::new();
    let mut dataset = builder.create_group("dataset");
    for (number, (((dims, channels), images), references)) in series.iter().zip(references).enumerate() {
        let mut group = dataset.create_group(&format!("image_{number}"));
        add_series(&mut group, number, *dims, *channels, images, contents)?;
        let texts = references.as_flattened().to_vec();
        group.create_dataset("attributes").with_raw_data(text_type(), texts, images.len() as u64);
        dataset.add_group(group.finish());
    }
    builder.add_group(dataset.finish());
    Ok(builder)
}

fn add_series(
    group: &mut GroupBuilder,
    number: usize,
    [nx, ny, nz]: [usize; 3],
    channels: usize,
    images: &[&Image],
    contents: DatasetContents,
) -> Result<()> {
    let count = images.len() as u64;
    let real = images.iter().all(|image| image.data.iter().all(|z| z.im == 0.0));
    let headers = images.iter().enumerate().flat_map(|(i, image)| image_header(image, real, number, i).to_bytes());
    group.create_dataset("header").with_raw_data(record_type(&IMAGE_HEADER)?, headers.collect(), count);
    let datatype = if real { hdf5_pure::make_f32_type() } else { complex_type()? };
    let mut bytes = Vec::new();
    let size = datatype.type_size() as usize * images.iter().map(|image| image.data.len()).sum::<usize>();
    if bytes.try_reserve_exact(size).is_err() {
        bail!(OutOfHostMemory, "could not allocate {size} bytes for the images of a file");
    }
    let voxels = images.iter().flat_map(|image| &image.data);
    match (contents, real) {
        // Zeros from the system need no memory until they are changed.
        (DatasetContents::Zeros, _) => bytes = vec![0; size],
        (DatasetContents::Voxels, true) => voxels.for_each(|z| bytes.extend(z.re.to_le_bytes())),
        (DatasetContents::Voxels, false) => {
            voxels.for_each(|z| bytes.extend([z.re.to_le_bytes(), z.im.to_le_bytes()].as_flattened()))
        }
    }
    let shape = [count, channels as u64, nz as u64, ny as u64, nx as u64];
    group.create_dataset("data").with_raw_data(datatype, bytes, shape.iter().product()).with_shape(&shape);
    Ok(())
}

/// Returns the type of complex numbers with the field names of ISMRMRD.
fn complex_type() -> Result<Datatype> {
    let parts = CompoundTypeBuilder::new().f32_field("real").f32_field("imag").build();
    parts.map_err(|e| Error::new(ErrorKind::Internal, format!("the type of complex numbers: {e}")))
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
        Some(name) => found.extend(file.file.group(name).ok().filter(has_images).map(|g| (name.to_owned(), g))),
        None => find_images("", &file.file.root(), 3, &mut found),
    }
    if found.is_empty() {
        let names = member_names(&file.file.root());
        bail!(BadFile, "no images in {}; the file has: {}", group.unwrap_or("any group"), names.join(", "));
    }
    if found.len() > 1 {
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        log::warn!("{}: {} series of images, read in this order: {}", path.display(), names.len(), names.join(", "));
    }
    let mut images = Vec::new();
    for (_, node) in &found {
        images.extend(read_series(&file, node)?);
    }
    Ok(images)
}

/// The numbers of images in a file.
enum VoxelType {
    Real(Number),
    /// Records of a size, with the places and types of real and imaginary part.
    Complex(usize, [(usize, Number); 2]),
}

impl VoxelType {
    fn of(datatype: &Datatype) -> Result<VoxelType> {
        let Datatype::Compound { size, members } = datatype else {
            return Ok(VoxelType::Real(Number::of(datatype, "the image")?));
        };
        require_members(datatype, "the image")?;
        // ISMRMRD and h5py have different names for the parts.
        for names in [["real", "imag"], ["r", "i"]] {
            let part = |name: &str| members.iter().find(|m| m.name == name);
            if let ([Some(re), Some(im)], 2) = (names.map(part), members.len()) {
                let place = |m: &CompoundMember| Ok((m.byte_offset as usize, Number::of(&m.datatype, "the image")?));
                return Ok(VoxelType::Complex(*size as usize, [place(re)?, place(im)?]));
            }
        }
        bail!(BadFile, "the image data are neither real nor complex numbers")
    }

    fn read(&self, bytes: &[u8]) -> Vec<Complex<f32>> {
        match self {
            VoxelType::Real(number) => {
                let mut values = Vec::new();
                number.read_f32(bytes, &mut values);
                values.into_iter().map(|v| Complex::new(v, 0.0)).collect()
            }
            VoxelType::Complex(size, places) => {
                let part = |record: &[u8], (at, number): (usize, Number)| number.f32(&record[at..]);
                bytes.chunks_exact(*size).map(|r| Complex::new(part(r, places[0]), part(r, places[1]))).collect()
            }
        }
    }
}

fn read_series(file: &Hdf5File, node: &Group) -> Result<Vec<Image>> {
    let bad = |what| hdf5_error(ErrorKind::BadFile, what);
    let headers = node.dataset("header").map_err(bad("the image header cannot be opened"))?;
    let set = node.dataset("data").map_err(bad("the image data cannot be opened"))?;
    let record = headers.datatype().map_err(bad("the type of header cannot be read"))?;
    let reader = RecordReader::new(&record, "header", &IMAGE_HEADER)?;
    check_stored(&headers, &file.bytes, "header")?;
    check_stored(&set, &file.bytes, "data")?;
    let shape = set.shape().map_err(bad("the size of the images cannot be read"))?;
    let &[count, channels, nz, ny, nx] = shape.as_slice() else {
        bail!(BadFile, "the image data have the shape {shape:?}: five dimensions are expected");
    };
    let header_shape = headers.shape().map_err(bad("the number of headers cannot be read"))?;
    if header_shape != [count] || count == 0 {
        bail!(BadFile, "headers of the shape {header_shape:?} for {count} images: the file is damaged");
    }
    let [channels, nz, ny, nx] = [channels, nz, ny, nx].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    let voxels = checked_product(&[channels, nz, ny, nx], "the image")?;
    let records = headers.read_raw().map_err(bad("the image header cannot be read"))?;
    let kind = set.datatype().map_err(bad("the type of the image data cannot be read"))?;
    let voxel_type = VoxelType::of(&kind)?;

    let mut images = Vec::new();
    for (i, record) in (0..count).zip(records.chunks_exact(record.type_size() as usize)) {
        let mut header = [0; HEADER];
        reader.read(record, &mut header)?;
        let bytes = set.read_raw_rows(i, 1).map_err(bad("the image data cannot be read"))?;
        let data = voxel_type.read(&bytes);
        if data.len() != voxels {
            bail!(BadFile, "image {i} has {} voxels where {voxels} are announced: the file is damaged", data.len());
        }
        images.push(image_of(&ImageHeader::of_bytes(&header), [nx, ny, nz], channels, data)?);
    }
    Ok(images)
}

fn image_of(h: &ImageHeader, dims: [usize; 3], channels: usize, data: Vec<Complex<f32>>) -> Result<Image> {
    let mut image = Image::new(dims, channels, data)?;
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
    Ok(image)
}

fn has_images(group: &Group) -> bool {
    group.dataset("header").is_ok() && group.dataset("data").is_ok()
}

/// Adds all groups with images to `found`, with their paths, starting with this one. Names are sorted, numbers in them
/// by value.
fn find_images(path: &str, group: &Group, depth: usize, found: &mut Vec<(String, Group)>) {
    if has_images(group) {
        found.push((path.to_owned(), group.clone()));
        return;
    }
    let mut names = group.groups().ok().filter(|_| depth > 0).unwrap_or_default();
    names.sort_by_cached_key(|name| {
        let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let (text, number) = name.split_at(name.len() - digits);
        (text.to_owned(), number.parse::<u64>().ok(), name.clone())
    });
    for name in names {
        if let Ok(inner) = group.group(&name) {
            let path = if path.is_empty() { name } else { format!("{path}/{name}") };
            find_images(&path, &inner, depth - 1, found);
        }
    }
}
