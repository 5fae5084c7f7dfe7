//! The HDF5 layout of ISMRMRD: structures, flags, and the checks of a file before it is read.

#![allow(missing_docs)]

use hdf5::types::{TypeDescriptor, VarLenArray};
use recon::error::{bail, Error, ErrorKind, Result};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

// The structures of the files, mapped by field name. Other fields of a file are not read.

/// The encoding counters of an acquisition.
#[derive(hdf5::H5Type, Clone, Copy, Default)]
#[repr(C)]
pub struct StoredCounters {
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

/// The header of an acquisition: 340 bytes in the file, without padding.
#[derive(hdf5::H5Type, Clone, Copy, Default)]
#[repr(C)]
pub struct StoredHeader {
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
    pub idx: StoredCounters,
    pub user_int: [i32; 8],
    pub user_float: [f32; 8],
}

impl StoredHeader {
    /// Returns the header as the library has it.
    pub fn to_library(self) -> recon::scan::AcquisitionHeader {
        let idx = &self.idx;
        recon::scan::AcquisitionHeader {
            version: self.version,
            flags: self.flags,
            measurement_uid: self.measurement_uid,
            scan_counter: self.scan_counter,
            acquisition_time_stamp: self.acquisition_time_stamp,
            physiology_time_stamp: self.physiology_time_stamp,
            number_of_samples: self.number_of_samples,
            available_channels: self.available_channels,
            active_channels: self.active_channels,
            channel_mask: self.channel_mask,
            discard_pre: self.discard_pre,
            discard_post: self.discard_post,
            center_sample: self.center_sample,
            encoding_space_ref: self.encoding_space_ref,
            trajectory_dimensions: self.trajectory_dimensions,
            sample_time_us: self.sample_time_us,
            position: self.position,
            read_dir: self.read_dir,
            phase_dir: self.phase_dir,
            slice_dir: self.slice_dir,
            patient_table_position: self.patient_table_position,
            idx: recon::scan::EncodingCounters {
                kspace_encode_step_1: idx.kspace_encode_step_1,
                kspace_encode_step_2: idx.kspace_encode_step_2,
                average: idx.average,
                slice: idx.slice,
                contrast: idx.contrast,
                phase: idx.phase,
                repetition: idx.repetition,
                set: idx.set,
                segment: idx.segment,
                user: idx.user,
            },
            user_int: self.user_int,
            user_float: self.user_float,
        }
    }
}

/// An acquisition: `traj` is [dimensions, samples], `data` is [real and imaginary, samples, channels].
#[derive(hdf5::H5Type)]
#[repr(C)]
pub struct Acquisition {
    pub head: StoredHeader,
    pub traj: VarLenArray<f32>,
    pub data: VarLenArray<f32>,
}

/// Converts an error of the HDF5 library to an error of this crate, with a message of one line.
pub fn hdf5_error(kind: ErrorKind, what: &str) -> impl Fn(hdf5::Error) -> Error + '_ {
    move |e| {
        let detail = e.to_string();
        Error::new(kind, format!("{what} ({})", detail.split_whitespace().collect::<Vec<_>>().join(" ")))
    }
}

/// Opens a file. Each cause of failure has its own error.
pub fn open(path: &Path) -> Result<hdf5::File> {
    let io = |e: std::io::Error| Error::new(ErrorKind::IO, e.to_string());
    let mut file = File::open(path).map_err(io)?;
    let about = file.metadata().map_err(io)?;
    if about.is_dir() {
        bail!(IO, "this is a folder, not a file");
    }
    if !about.is_file() {
        bail!(IO, "HDF5 cannot read a device or a pipe: save the data to a file first");
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
                    "{by} has locked the file, probably to write it: wait until it closes the file, or set \
                     HDF5_USE_FILE_LOCKING=FALSE to read it anyway"
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
                "the file is marked as open for writing: wait until the writing program closes it. If that program \
                 crashed, remove the mark with `h5clear -s`"
                    .to_owned(),
            ),
            OpenFailure::Damaged => (ErrorKind::BadFile, "the file is truncated or damaged".to_owned()),
        };
        let describe = hdf5_error(kind, &cause);
        describe(e)
    })
}

/// The reason why HDF5 does not open a file that has its signature.
enum OpenFailure {
    /// A process has an exclusive lock on the file.
    Locked {
        by: String,
    },
    /// The file system refuses locks with this error.
    NoLocks(std::io::Error),
    /// The superblock says that a program has the file open for writing.
    MarkedAsOpen,
    Damaged,
}

/// Returns the reason, which HDF5 reports as text only. The superblock of the file begins at `start`.
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
    // Byte 11 of the superblock, from version 3: bit 0 is set while the file is open for writing, bit 2 for
    // single-writer access.
    let mut superblock = [0; 12];
    let read = file.seek(SeekFrom::Start(start)).and_then(|_| file.read_exact(&mut superblock));
    if read.is_ok() && superblock[8] >= 3 && superblock[11] & 0b101 != 0 {
        return OpenFailure::MarkedAsOpen;
    }
    OpenFailure::Damaged
}

/// Returns `process N` from the kernel's list of locks, or `another process` if the list does not have the file.
#[cfg(unix)]
fn lock_holder(file: &File) -> String {
    use std::os::unix::fs::MetadataExt;
    let inode: u64 = file.metadata().map_or(0, |about| about.ino());
    let list = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    // Each line: number, kind, ADVISORY, READ or WRITE, process, device:device:inode, first byte, last byte.
    let holder = list.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[_, "FLOCK", _, "WRITE", process, device_and_inode, ..] = &words[..] else { return None };
        let process: u32 = process.parse().ok()?;
        (process != 0 && device_and_inode.rsplit(':').next()?.parse() == Ok(inode)).then_some(process)
    });
    holder.map_or("another process".to_owned(), |process| format!("process {process}"))
}

/// Creates an HDF5 file that replaces an empty file.
pub fn create(path: &Path) -> hdf5::Result<hdf5::File> {
    let file = File::open(path).map_err(|e| hdf5::Error::Internal(e.to_string()))?;
    hdf5::File::create(name_for_hdf5(path, &file))
}

/// Returns a name of an open file in UTF-8, which HDF5's crate requires: its path, or else its descriptor in /proc.
pub fn name_for_hdf5(path: &Path, file: &File) -> PathBuf {
    #[cfg(target_os = "linux")]
    if path.to_str().is_none() {
        use std::os::fd::AsRawFd;
        return format!("/proc/self/fd/{}", file.as_raw_fd()).into();
    }
    // Other systems do not have names for descriptors.
    let _ = file;
    path.to_owned()
}

/// Checks that `found` has every field of `required`. HDF5 would not initialise a missing field in memory.
pub fn require_fields(found: &TypeDescriptor, required: &TypeDescriptor, name: &str) -> Result<()> {
    match (found, required) {
        (TypeDescriptor::Compound(found), TypeDescriptor::Compound(required)) => {
            // The library copies fields from the offsets in the file: every field must end within its record.
            let mut ranges: Vec<_> =
                found.fields.iter().map(|f| (f.offset, f.offset.saturating_add(f.ty.size()))).collect();
            ranges.sort_unstable();
            let overlap = ranges.windows(2).any(|w| w[0].1 > w[1].0);
            if overlap || ranges.last().is_some_and(|last| last.1 > found.size) {
                bail!(BadFile, "the fields of {name} overlap or reach beyond its end: the file is damaged");
            }
            for field in &required.fields {
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

/// Returns the type descriptor of a dataset after checking that it has every field of `T`.
pub fn checked_type<T: hdf5::H5Type>(set: &hdf5::Dataset, name: &str) -> Result<TypeDescriptor> {
    let what = format!("the type of {name} cannot be read");
    let found = set.dtype().and_then(|t| t.to_descriptor()).map_err(hdf5_error(ErrorKind::BadFile, &what))?;
    require_fields(&found, &T::type_descriptor(), name)?;
    Ok(found)
}

/// Checks that the stored bytes can contain the announced number of entries, before memory is allocated for them.
pub fn check_stored(set: &hdf5::Dataset, name: &str) -> Result<()> {
    let entry = set.dtype().map(|t| t.size()).unwrap_or(1);
    let (stored, shape) = (set.storage_size(), set.shape());
    let announced = shape.iter().fold(entry as u128, |p, &n| p.saturating_mul(n as u128));
    // No filter of HDF5 compresses better than deflate, at most 1032 to 1. Without a filter, entries can still be a
    // little shorter in the file than in memory, because addresses in the file may have fewer bits.
    let factor = if set.filters().is_empty() { 2 } else { 1100 };
    if announced > stored as u128 * factor {
        bail!(BadFile, "{name} announces {announced} bytes, but {stored} are stored: the file is damaged");
    }
    Ok(())
}
