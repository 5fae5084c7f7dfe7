//! Opens files, and finds out why one cannot be opened.

use super::errors::hdf5_error;
use crate::bytes::open_file;
use hdf5_pure::{Chunk, ChunkIndex, FileAccessProperties, FormatError, Group, Layout, MetadataCacheConfig, Source};
use recon::error::{bail, Error, ErrorKind, Result};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Memory for parts of the file's structure that are read more than once, in bytes.
const METADATA_CACHE: usize = 8 << 20;
/// The largest ratio of a filter, that of deflate, which no filter of HDF5 exceeds.
const COMPRESSION: u64 = 1100;

/// The contents of a file, by position.
#[derive(Clone)]
pub struct FileBytes {
    file: Arc<File>,
    length: u64,
}

impl FileBytes {
    /// Fills `to` with the bytes from `start` on.
    pub fn read(&self, start: u64, to: &mut [u8]) -> io::Result<()> {
        if start.checked_add(to.len() as u64).is_none_or(|end| end > self.length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        #[cfg(unix)]
        return std::os::unix::fs::FileExt::read_exact_at(&*self.file, to, start);
        #[cfg(windows)]
        {
            let mut read = 0;
            while read < to.len() {
                match std::os::windows::fs::FileExt::seek_read(&*self.file, &mut to[read..], start + read as u64)? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    n => read += n,
                }
            }
            Ok(())
        }
    }

    /// Returns the length of the file in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }
}

impl Source for FileBytes {
    fn len(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, to: &mut [u8]) -> std::result::Result<(), FormatError> {
        self.read(offset, to).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => FormatError::UnexpectedEof {
                expected: usize::try_from(offset).unwrap_or(usize::MAX).saturating_add(to.len()),
                available: usize::try_from(self.length).unwrap_or(usize::MAX),
            },
            _ => FormatError::Source(e.to_string()),
        })
    }
}

/// An open file.
pub struct Hdf5File {
    /// The file as its structure.
    pub file: hdf5_pure::File,
    /// The file as bytes.
    pub bytes: FileBytes,
}

/// Opens a file. Each cause of failure has its own error.
///
/// # Errors
/// `IO` if the file cannot be opened, is a folder or a device, or is locked; `BadFile` if it is not an HDF5 file, is
/// open for writing, or is damaged.
pub fn open(path: &Path) -> Result<Hdf5File> {
    let io = |e: io::Error| Error::new(ErrorKind::IO, e.to_string());
    let file = open_file(path)?;
    let about = file.metadata().map_err(io)?;
    if !about.is_file() {
        bail!(IO, "HDF5 cannot be read from a device or a pipe: save the data to a file first");
    }
    if about.len() == 0 {
        bail!(BadFile, "the file is empty");
    }
    let bytes = FileBytes { file: Arc::new(file), length: about.len() };
    // The signature is at the beginning or, after a user block, at a power of two.
    let has_signature = |at: &u64| {
        let mut start = [0; 8];
        bytes.read(*at, &mut start).is_ok() && &start == b"\x89HDF\r\n\x1a\n"
    };
    if !std::iter::once(0).chain((9..=20).map(|b| 1 << b)).any(|at| has_signature(&at)) {
        bail!(BadFile, "this is not an HDF5 file");
    }
    #[cfg(unix)]
    lock(&bytes.file)?;
    let properties = FileAccessProperties::new().with_metadata_cache(MetadataCacheConfig::new(METADATA_CACHE));
    let opened = hdf5_pure::File::from_source_with_options(bytes.clone(), properties);
    let file = opened.map_err(|e| match e {
        hdf5_pure::Error::FileMarkedInUse { .. } => Error::new(
            ErrorKind::BadFile,
            "the file is marked as open for writing: wait until the writing program closes it. If that program \
             crashed, remove the mark with `h5clear -s`",
        ),
        e => hdf5_error(ErrorKind::BadFile, "the file is truncated or damaged")(e),
    })?;
    let announced = file.superblock().eof_address;
    if announced > about.len() {
        bail!(BadFile, "the file is truncated or damaged: it has {} bytes of {announced}", about.len());
    }
    Ok(Hdf5File { file, bytes })
}

/// Locks the file against programs that write it, as HDF5's library does. The lock ends when the file is closed.
#[cfg(unix)]
fn lock(file: &File) -> Result<()> {
    use std::os::fd::AsRawFd;
    if std::env::var_os("HDF5_USE_FILE_LOCKING").is_some_and(|value| value == "FALSE" || value == "0") {
        return Ok(());
    }
    // SAFETY: the call takes no address, and the descriptor is open.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::WouldBlock {
        bail!(
            IO,
            "{} has locked the file, probably to write it: wait until it closes the file, or set \
             HDF5_USE_FILE_LOCKING=FALSE to read it anyway",
            lock_holder(file)
        );
    }
    bail!(
        IO,
        "the file system cannot lock the file ({error}): set HDF5_USE_FILE_LOCKING=FALSE to read it without a lock"
    );
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

/// Returns the names of the groups and datasets of a group for a message of one line, sorted.
pub fn member_names(group: &Group) -> Vec<String> {
    let names = [group.groups(), group.datasets()].into_iter().flat_map(|list| list.unwrap_or_default());
    let mut names: Vec<String> = names.map(|name| name.escape_debug().to_string()).collect();
    names.sort();
    names
}

/// Checks that the stored bytes can contain the announced entries and chunks, before memory is allocated for them.
///
/// # Errors
/// `BadFile` if they cannot; `Unsupported` for a virtual dataset.
pub fn check_stored(set: &hdf5_pure::Dataset, bytes: &FileBytes, name: &str) -> Result<()> {
    let what = format!(
        "the layout of {name} cannot be read: the file is damaged, or has a layout that came with HDF5 2.0; h5repack \
         --high=v114 copies it into an older one"
    );
    let bad = hdf5_error(ErrorKind::BadFile, &what);
    let entry = set.element_size().map_err(&bad)? as u128;
    let product = |sizes: &[u64]| sizes.iter().fold(entry, |p, &n| p.saturating_mul(n as u128));
    let announced = product(&set.shape().map_err(&bad)?);
    let factor = if set.filters().is_empty() { 1 } else { COMPRESSION };
    let stored = match set.layout().map_err(&bad)? {
        Layout::Compact { size } => size,
        Layout::Contiguous { address: None, .. } => 0,
        Layout::Contiguous { size, .. } => size.min(bytes.length()),
        Layout::Chunked { chunk_shape, index } => {
            let chunk = product(&chunk_shape);
            if chunk > bytes.length() as u128 * factor as u128 {
                let length = bytes.length();
                bail!(BadFile, "{name} has chunks of {chunk} bytes in a file of {length}: the file is damaged");
            }
            match set.chunks() {
                Ok(chunks) => {
                    let is_inside =
                        |c: &Chunk| c.address.checked_add(c.storage_size).is_some_and(|end| end <= bytes.length());
                    if let Some(c) = chunks.iter().find(|c| !is_inside(c)) {
                        bail!(
                            BadFile,
                            "{name} has a chunk of {} bytes at {} in a file of {}: the file is damaged",
                            c.storage_size,
                            c.address,
                            bytes.length()
                        );
                    }
                    chunks.iter().fold(0u64, |sum, c| sum.saturating_add(c.storage_size)).min(bytes.length())
                }
                // Chunks in a tree of version 2 cannot be listed. They are not longer than the file.
                Err(_) if index == ChunkIndex::BTreeV2 => bytes.length(),
                Err(e) => return Err(bad(e)),
            }
        }
        _ => bail!(Unsupported, "{name} takes its data from other files: copy them into one file, with h5repack"),
    };
    if announced > stored as u128 * factor as u128 {
        bail!(BadFile, "{name} announces {announced} bytes, but {stored} are stored: the file is damaged");
    }
    Ok(())
}
