//! ISMRMRD files in HDF5: raw data in, images out, and raw data out for simulations.
//!
//! A raw dataset becomes one [`Scan`] an image: the acquisitions of one encoding, slice, contrast, phase, repetition
//! and set. Acquisitions that differ only in their average, segment or encoding steps are samples of the same image and
//! stay together, so that averages are averaged by the reconstruction.
//!
//! Counts, sizes and field layouts in a file are checked before they are used. Older versions of the HDF5 library
//! (1.10, for example) do not survive every damaged file: the program reads files in a separate process (reader.rs).

mod header;
mod images;
mod read;
mod write;

pub use header::{Encoding, Header, Limits, Space, TrajectoryKind};
pub use images::{read_images, write_images};
pub use read::read_dataset;
pub use write::write_dataset;

use super::{Image, Placement};
use hdf5::types::{TypeDescriptor, VarLenArray};
use num_complex::Complex;
use recon::error::{bail, checked_product, Error, ErrorKind, Result};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A raw dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// The XML header.
    pub header: Header,
    /// The data of one image each, in ascending order of their index.
    pub scans: Vec<Scan>,
    /// The kinds of acquisitions that belong to no image, with their numbers.
    pub left_out: Vec<(String, usize)>,
}

/// The place of an image in a measurement: the counters of ISMRMRD, ordered as they are listed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ScanIndex {
    /// The encoding in the header.
    pub encoding: u16,
    /// The slice, or slab.
    pub slice: u16,
    /// The repetition, or time frame.
    pub repetition: u16,
    /// The contrast, or echo.
    pub contrast: u16,
    /// The phase of the heart or of breathing.
    pub phase: u16,
    /// The set, for example a flow encoding.
    pub set: u16,
    /// The first average; all averages are in the same [`Scan`].
    pub average: u16,
}

/// The raw data of one image.
#[derive(Debug, Clone, PartialEq)]
pub struct Scan {
    /// The place of the image in the measurement.
    pub index: ScanIndex,
    /// The encoded matrix: coordinates are in cycles per voxel of this matrix.
    pub encoded_matrix: [usize; 3],
    /// The reconstructed matrix.
    pub recon_matrix: [usize; 3],
    /// The field of view of the encoded matrix in mm.
    pub encoded_fov_mm: [f32; 3],
    /// The field of view of the reconstructed matrix in mm.
    pub recon_fov_mm: [f32; 3],
    /// 2 when the encoded matrix has one voxel along z, otherwise 3.
    pub ndim: usize,
    /// Per axis, the coordinates of all samples in cycles per voxel, [-0.5, 0.5).
    pub coordinates: Vec<Vec<f32>>,
    /// The density weights of all samples, where the file has them.
    pub weights: Option<Vec<f32>>,
    /// The samples of each acquisition; they may differ.
    pub samples_per_shot: Vec<usize>,
    /// The receive channels.
    pub coils: usize,
    /// The measured data, `[samples, coils]`.
    pub data: Vec<Complex<f32>>,
    /// The time of every sample in seconds since the first sample of its acquisition (before any was discarded). Zero
    /// where the file has no sample time.
    pub times: Vec<f32>,
    /// The position of the image, and the time of its first acquisition.
    pub placement: Placement,
}

impl Scan {
    /// The samples of all acquisitions.
    pub fn samples(&self) -> usize {
        self.samples_per_shot.iter().sum()
    }

    /// The data of the acquisitions 0, n, 2n, ... only; `n` = 0 counts as 1.
    pub fn every_nth_shot(&self, n: usize) -> Scan {
        let samples = self.samples();
        let mut ranges = Vec::new();
        let mut start = 0;
        for (shot, &count) in self.samples_per_shot.iter().enumerate() {
            if shot % n.max(1) == 0 {
                ranges.push(start..start + count);
            }
            start += count;
        }
        let pick = |v: &[f32]| -> Vec<f32> { ranges.iter().flat_map(|r| v[r.clone()].iter().copied()).collect() };
        let coil = |c: usize| ranges.iter().flat_map(move |r| self.data[c * samples..][r.clone()].iter().copied());
        Scan {
            coordinates: self.coordinates.iter().map(|v| pick(v)).collect(),
            weights: self.weights.as_deref().map(pick),
            samples_per_shot: ranges.iter().map(|r| r.len()).collect(),
            data: (0..self.coils).flat_map(coil).collect(),
            times: pick(&self.times),
            ..*self
        }
    }

    /// An image of this scan: with its index and placement, and with the field of view of the encoded or the
    /// reconstructed matrix, whichever has these sizes (otherwise with voxels of the encoded matrix).
    ///
    /// # Errors
    /// The same as of [`Image::new`].
    pub fn image(&self, dims: [usize; 3], channels: usize, data: Vec<Complex<f32>>) -> Result<Image> {
        let mut image = Image::new(dims, channels, data)?;
        image.fov_mm = match dims {
            d if d == self.encoded_matrix => self.encoded_fov_mm,
            d if d == self.recon_matrix => self.recon_fov_mm,
            d => std::array::from_fn(|i| self.encoded_fov_mm[i] / self.encoded_matrix[i] as f32 * d[i] as f32),
        };
        (image.placement, image.index) = (self.placement, self.index);
        Ok(image)
    }

    /// Checks that all counts agree.
    fn check(&self) -> Result<()> {
        let samples = self.samples();
        let wrong = self.coordinates.len() != self.ndim
            || self.coordinates.iter().chain(&self.weights).any(|v| v.len() != samples)
            || self.times.len() != samples;
        if wrong || !(2..=3).contains(&self.ndim) {
            let ndim = self.ndim;
            bail!(SizeMismatch, "{samples} samples need as many times, weights, and coordinates along {ndim} axes");
        }
        if samples == 0 || self.coils == 0 || self.samples_per_shot.contains(&0) {
            bail!(InvalidSize, "a scan without samples, without coils, or with an empty shot");
        }
        if checked_product(&[samples, self.coils], "the data")? != self.data.len() {
            let n = self.data.len();
            bail!(SizeMismatch, "{samples} samples of {} coils cannot be {n} numbers", self.coils);
        }
        Ok(())
    }
}

/// Bits of the flags of an acquisition, counted from 1 as ISMRMRD does.
mod flag {
    pub const FIRST_IN_SLICE: u32 = 7;
    pub const LAST_IN_SLICE: u32 = 8;
    pub const FIRST_IN_REPETITION: u32 = 13;
    pub const LAST_IN_REPETITION: u32 = 14;
    pub const NOISE: u32 = 19;
    pub const CALIBRATION: u32 = 20;
    pub const CALIBRATION_AND_IMAGING: u32 = 21;
    pub const REVERSE: u32 = 22;
    pub const NAVIGATION: u32 = 23;
    pub const PHASE_CORRECTION: u32 = 24;
    pub const LAST_IN_MEASUREMENT: u32 = 25;
    pub const HP_FEEDBACK: u32 = 26;
    pub const DUMMY: u32 = 27;
    pub const SURFACE_COIL: u32 = 29;
    pub const STABILIZATION_REFERENCE: u32 = 30;
    pub const STABILIZATION: u32 = 31;

    pub fn bit(flag: u32) -> u64 {
        1 << (flag - 1)
    }
}

// The structures of the files, mapped by field name. Fields of the file that are not listed are not read.

/// The counters of an acquisition.
#[derive(hdf5::H5Type, Clone, Copy, Default)]
#[repr(C)]
struct Counters {
    kspace_encode_step_1: u16,
    kspace_encode_step_2: u16,
    average: u16,
    slice: u16,
    contrast: u16,
    phase: u16,
    repetition: u16,
    set: u16,
    segment: u16,
    user: [u16; 8],
}

/// The head of an acquisition, 340 bytes in the file, where nothing is padded.
#[derive(hdf5::H5Type, Clone, Copy, Default)]
#[repr(C)]
struct AcquisitionHead {
    version: u16,
    flags: u64,
    measurement_uid: u32,
    scan_counter: u32,
    acquisition_time_stamp: u32,
    physiology_time_stamp: [u32; 3],
    number_of_samples: u16,
    available_channels: u16,
    active_channels: u16,
    channel_mask: [u64; 16],
    discard_pre: u16,
    discard_post: u16,
    center_sample: u16,
    encoding_space_ref: u16,
    trajectory_dimensions: u16,
    sample_time_us: f32,
    position: [f32; 3],
    read_dir: [f32; 3],
    phase_dir: [f32; 3],
    slice_dir: [f32; 3],
    patient_table_position: [f32; 3],
    idx: Counters,
    user_int: [i32; 8],
    user_float: [f32; 8],
}

/// An acquisition: `traj` is [dimensions, samples], `data` is [real and imaginary, samples, channels].
#[derive(hdf5::H5Type)]
#[repr(C)]
struct Acquisition {
    head: AcquisitionHead,
    traj: VarLenArray<f32>,
    data: VarLenArray<f32>,
}

/// Turns an error of the HDF5 library into one of this crate, on one line.
fn hdf5_error(kind: ErrorKind, what: &str) -> impl Fn(hdf5::Error) -> Error + '_ {
    move |e| {
        let detail = e.to_string();
        Error::new(kind, format!("{what} ({})", detail.split_whitespace().collect::<Vec<_>>().join(" ")))
    }
}

/// Opens a file, with a different error for each cause.
fn open(path: &Path) -> Result<hdf5::File> {
    let io = |e: std::io::Error| Error::new(ErrorKind::IO, e.to_string());
    let mut file = File::open(path).map_err(io)?;
    let about = file.metadata().map_err(io)?;
    if about.is_dir() {
        bail!(IO, "this is a folder, not a file");
    }
    if !about.is_file() {
        bail!(IO, "HDF5 reads files only, not devices or pipes: save it to a file first");
    }
    if about.len() == 0 {
        bail!(BadFile, "the file is empty");
    }
    // The signature is at the beginning or, after a user block, at a power of two.
    let signature = |at: u64| {
        let mut start = [0; 8];
        file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut start)).is_ok()
            && &start == b"\x89HDF\r\n\x1a\n"
    };
    if !std::iter::once(0).chain((9..=20).map(|b| 1 << b)).any(signature) {
        bail!(BadFile, "this is not an HDF5 file");
    }
    let damaged = hdf5_error(ErrorKind::BadFile, "the file is truncated, damaged or locked");
    hdf5::File::open(name_for_hdf5(path, &file)).map_err(damaged)
}

/// Creates a file in place of an empty one.
fn create(path: &Path) -> hdf5::Result<hdf5::File> {
    let file = File::open(path).map_err(|e| hdf5::Error::Internal(e.to_string()))?;
    hdf5::File::create(name_for_hdf5(path, &file))
}

/// The name of an open file, or of its descriptor where the name is not UTF-8, which HDF5's crate requires.
fn name_for_hdf5(path: &Path, file: &File) -> PathBuf {
    #[cfg(target_os = "linux")]
    if path.to_str().is_none() {
        use std::os::fd::AsRawFd;
        return format!("/proc/self/fd/{}", file.as_raw_fd()).into();
    }
    // Other systems have no names of descriptors.
    let _ = file;
    path.to_owned()
}

/// Checks that `found` has every field of `wanted`. HDF5 leaves others as they were in memory.
fn require_fields(found: &TypeDescriptor, wanted: &TypeDescriptor, name: &str) -> Result<()> {
    match (found, wanted) {
        (TypeDescriptor::Compound(found), TypeDescriptor::Compound(wanted)) => {
            // The library copies fields from the offsets in the file, so none may reach beyond its record.
            let mut ranges: Vec<_> =
                found.fields.iter().map(|f| (f.offset, f.offset.saturating_add(f.ty.size()))).collect();
            ranges.sort_unstable();
            let overlap = ranges.windows(2).any(|w| w[0].1 > w[1].0);
            if overlap || ranges.last().is_some_and(|last| last.1 > found.size) {
                bail!(BadFile, "the fields of {name} overlap or reach beyond its end: the file is damaged");
            }
            for field in &wanted.fields {
                let name = format!("{name}.{}", field.name);
                match found.fields.iter().find(|f| f.name == field.name) {
                    Some(f) => require_fields(&f.ty, &field.ty, &name)?,
                    None => bail!(BadFile, "there is no field {name}: this is not the layout of ISMRMRD"),
                }
            }
        }
        (_, TypeDescriptor::Compound(_)) => bail!(BadFile, "{name} has no fields: this is not the layout of ISMRMRD"),
        (TypeDescriptor::FixedArray(_, n), TypeDescriptor::FixedArray(_, m)) if n != m => {
            bail!(BadFile, "{name} has {n} entries where ISMRMRD has {m}");
        }
        _ => {}
    }
    Ok(())
}

/// The type descriptor of a dataset, checked to have every field of `T`.
fn checked_type<T: hdf5::H5Type>(set: &hdf5::Dataset, name: &str) -> Result<TypeDescriptor> {
    let what = format!("the type of {name} cannot be read");
    let found = set.dtype().and_then(|t| t.to_descriptor()).map_err(hdf5_error(ErrorKind::BadFile, &what))?;
    require_fields(&found, &T::type_descriptor(), name)?;
    Ok(found)
}

/// Checks that a dataset can hold as many entries as it announces, before memory is allocated for them.
fn check_stored(set: &hdf5::Dataset, name: &str) -> Result<()> {
    let entry = set.dtype().map(|t| t.size()).unwrap_or(1);
    let (stored, shape) = (set.storage_size(), set.shape());
    let announced = shape.iter().fold(entry as u128, |p, &n| p.saturating_mul(n as u128));
    // No filter of HDF5 compresses better than deflate, at 1032 to 1. Without a filter, entries in the file can still
    // be a little shorter than in memory, where the file's addresses have fewer bits.
    let factor = if set.filters().is_empty() { 2 } else { 1100 };
    if announced > stored as u128 * factor {
        bail!(BadFile, "{name} announces {announced} bytes, but {stored} are stored: the file is damaged");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
