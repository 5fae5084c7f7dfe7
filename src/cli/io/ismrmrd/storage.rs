//! How ISMRMRD lies in an HDF5 file: its structures, their flags, and what is checked of a file before it is read.

use hdf5::types::{TypeDescriptor, VarLenArray};
use recon::error::{bail, Error, ErrorKind, Result};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Bits of the flags of an acquisition, counted from 1 as in ISMRMRD. `recon::acquisition` decides on its use.
pub mod flag {
    pub const FIRST_IN_SLICE: u32 = 7;
    pub const LAST_IN_SLICE: u32 = 8;
    pub const FIRST_IN_REPETITION: u32 = 13;
    pub const LAST_IN_REPETITION: u32 = 14;
    pub const NOISE: u32 = 19;
    pub const CALIBRATION: u32 = 20;
    pub const REVERSE: u32 = 22;
    pub const LAST_IN_MEASUREMENT: u32 = 25;

    pub fn bit(flag: u32) -> u64 {
        1 << (flag - 1)
    }
}

// The structures of the files, mapped by field name. Fields of the file that are not listed are not read.

/// The counters of an acquisition.
#[derive(hdf5::H5Type, Clone, Copy, Default)]
#[repr(C)]
pub struct Counters {
    pub kspace_encode_step_1: u16,
    pub kspace_encode_step_2: u16,
    pub average: u16,
    pub slice: u16,
    pub contrast: u16,
    pub phase: u16,
    pub repetition: u16,
    pub set: u16,
    pub segment: u16,
    pub user: [u16; 8],
}

/// The head of an acquisition, 340 bytes in the file, where nothing is padded.
#[derive(hdf5::H5Type, Clone, Copy, Default)]
#[repr(C)]
pub struct AcquisitionHead {
    pub version: u16,
    pub flags: u64,
    pub measurement_uid: u32,
    pub scan_counter: u32,
    pub acquisition_time_stamp: u32,
    pub physiology_time_stamp: [u32; 3],
    pub number_of_samples: u16,
    pub available_channels: u16,
    pub active_channels: u16,
    pub channel_mask: [u64; 16],
    pub discard_pre: u16,
    pub discard_post: u16,
    pub center_sample: u16,
    pub encoding_space_ref: u16,
    pub trajectory_dimensions: u16,
    pub sample_time_us: f32,
    pub position: [f32; 3],
    pub read_dir: [f32; 3],
    pub phase_dir: [f32; 3],
    pub slice_dir: [f32; 3],
    pub patient_table_position: [f32; 3],
    pub idx: Counters,
    pub user_int: [i32; 8],
    pub user_float: [f32; 8],
}

/// An acquisition: `traj` is [dimensions, samples], `data` is [real and imaginary, samples, channels].
#[derive(hdf5::H5Type)]
#[repr(C)]
pub struct Acquisition {
    pub head: AcquisitionHead,
    pub traj: VarLenArray<f32>,
    pub data: VarLenArray<f32>,
}

/// Turns an error of the HDF5 library into one of this crate, on one line.
pub fn hdf5_error(kind: ErrorKind, what: &str) -> impl Fn(hdf5::Error) -> Error + '_ {
    move |e| {
        let detail = e.to_string();
        Error::new(kind, format!("{what} ({})", detail.split_whitespace().collect::<Vec<_>>().join(" ")))
    }
}

/// Opens a file, with a different error for each cause.
pub fn open(path: &Path) -> Result<hdf5::File> {
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
    let mut has_signature = |at: &u64| {
        let mut start = [0; 8];
        file.seek(SeekFrom::Start(*at)).and_then(|_| file.read_exact(&mut start)).is_ok()
            && &start == b"\x89HDF\r\n\x1a\n"
    };
    let Some(start) = std::iter::once(0).chain((9..=20).map(|b| 1 << b)).find(&mut has_signature) else {
        bail!(BadFile, "this is not an HDF5 file");
    };
    hdf5::File::open(name_for_hdf5(path, &file)).map_err(|e| {
        let (kind, cause) = match open_failure(&mut file, start) {
            OpenFailure::Locked { by } => (
                ErrorKind::IO,
                format!(
                    "{by} has locked the file, as programs do that write it: wait until it is closed, or set \
                     HDF5_USE_FILE_LOCKING=FALSE to read it all the same"
                ),
            ),
            OpenFailure::NoLocks(e) => (
                ErrorKind::IO,
                format!(
                    "the file system cannot lock the file ({e}): set HDF5_USE_FILE_LOCKING=FALSE to read it without a \
                     lock"
                ),
            ),
            OpenFailure::MarkedAsOpen => (
                ErrorKind::BadFile,
                "the file is marked as open for writing: wait until the program that writes it has closed it, or, if \
                 that program was ended early, remove the mark with `h5clear -s`"
                    .to_owned(),
            ),
            OpenFailure::Damaged => (ErrorKind::BadFile, "the file is truncated or damaged".to_owned()),
        };
        let describe = hdf5_error(kind, &cause);
        describe(e)
    })
}

/// The reason why HDF5 does not open a file that begins as an HDF5 file does.
enum OpenFailure {
    /// Another process holds an exclusive lock.
    Locked {
        by: String,
    },
    /// The file system refuses locks, with this error.
    NoLocks(std::io::Error),
    /// The superblock says that a program has the file open for writing.
    MarkedAsOpen,
    Damaged,
}

/// Finds the reason in the file itself, whose superblock begins at `start`. HDF5 reports it in text only.
fn open_failure(file: &mut File, start: u64) -> OpenFailure {
    #[cfg(unix)]
    if std::env::var_os("HDF5_USE_FILE_LOCKING").is_none_or(|v| v != "FALSE" && v != "0") {
        use std::os::fd::AsRawFd;
        // SAFETY: the calls take no address, and the descriptor is open.
        let locked = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB) };
        let error = std::io::Error::last_os_error();
        if locked == 0 {
            // SAFETY: as above. If it fails, the lock ends with the descriptor.
            unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_UN) };
        } else if error.kind() == std::io::ErrorKind::WouldBlock {
            return OpenFailure::Locked { by: lock_holder(file) };
        } else {
            return OpenFailure::NoLocks(error);
        }
    }
    // From version 3 on, byte 11 of the superblock has the marks: bit 0 for writing, bit 2 for single-writer access.
    let mut superblock = [0; 12];
    let read = file.seek(SeekFrom::Start(start)).and_then(|_| file.read_exact(&mut superblock));
    if read.is_ok() && superblock[8] >= 3 && superblock[11] & 0b101 != 0 {
        return OpenFailure::MarkedAsOpen;
    }
    OpenFailure::Damaged
}

/// Returns `process N`, by the kernel's list of locks, or `another process`.
#[cfg(unix)]
fn lock_holder(file: &File) -> String {
    use std::os::unix::fs::MetadataExt;
    let inode: u64 = file.metadata().map_or(0, |about| about.ino());
    let list = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    // A line: number, kind, ADVISORY, READ or WRITE, process, device:device:inode, first byte, last byte.
    let holder = list.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[_, "FLOCK", _, "WRITE", process, place, ..] = &words[..] else { return None };
        let process: u32 = process.parse().ok()?;
        (process != 0 && place.rsplit(':').next()?.parse() == Ok(inode)).then_some(process)
    });
    holder.map_or("another process".to_owned(), |process| format!("process {process}"))
}

/// Creates a file in place of an empty one.
pub fn create(path: &Path) -> hdf5::Result<hdf5::File> {
    let file = File::open(path).map_err(|e| hdf5::Error::Internal(e.to_string()))?;
    hdf5::File::create(name_for_hdf5(path, &file))
}

/// The name of an open file, or of its descriptor where the name is not UTF-8, which HDF5's crate requires.
pub fn name_for_hdf5(path: &Path, file: &File) -> PathBuf {
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
pub fn require_fields(found: &TypeDescriptor, wanted: &TypeDescriptor, name: &str) -> Result<()> {
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
pub fn checked_type<T: hdf5::H5Type>(set: &hdf5::Dataset, name: &str) -> Result<TypeDescriptor> {
    let what = format!("the type of {name} cannot be read");
    let found = set.dtype().and_then(|t| t.to_descriptor()).map_err(hdf5_error(ErrorKind::BadFile, &what))?;
    require_fields(&found, &T::type_descriptor(), name)?;
    Ok(found)
}

/// Checks that a dataset can hold as many entries as it announces, before memory is allocated for them.
pub fn check_stored(set: &hdf5::Dataset, name: &str) -> Result<()> {
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
