//! Files on the standard input and the standard output.
//!
//! A file for the standard output is first written to a folder of this process, because its writer needs the name that
//! selects the format, and HDF5's writer cannot write to a stream. It is sent when it is complete. A file of the
//! standard input goes to the same folder, with the extension of its contents.

use recon::atomic_file::{write_atomically, AtomicFiles, TEMPORARY_FOLDER};
use recon::bail;
use recon::{Error, ErrorKind, Result};
use recon_files::formats::{extension_of_contents, FileUse};
use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Name of the standard input and the standard output.
pub const STREAM: &str = "-";

/// Number of bytes that determine the format of a file.
const START: usize = 348;

const READER_CLOSED: &str = "the reader of the standard output closed it before the file was complete";

/// The folder of this process, once it exists.
static FOLDER: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Removes the folder of this process when it is dropped.
pub struct FolderGuard;

impl Drop for FolderGuard {
    fn drop(&mut self) {
        remove_folder();
    }
}

/// Removes the folder of this process, if there is one.
pub fn remove_folder() {
    if let Some(folder) = FOLDER.lock().unwrap_or_else(PoisonError::into_inner).take() {
        if let Err(e) = fs::remove_dir_all(&folder) {
            log::warn!("{}: a temporary folder could not be removed: {e}", folder.display());
        }
    }
}

/// Returns the folder of this process, which only its user can read.
fn folder() -> Result<PathBuf> {
    let mut folder = FOLDER.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(folder) = &*folder {
        return Ok(folder.clone());
    }
    // On Windows the folder for temporary files is the user's own.
    #[cfg_attr(windows, allow(unused_mut))]
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    for number in 0.. {
        let path = std::env::temp_dir().join(format!("recon-stream-{}-{number}", std::process::id()));
        match builder.create(&path) {
            Ok(()) => return Ok(folder.insert(path).clone()),
            // A folder of a process in another container, or one that was killed.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => {
                bail!(IO, "{}: no folder can be created for a stream: {e}: set {TEMPORARY_FOLDER}", path.display())
            }
        }
    }
    bail!(IO, "no folder can be created for a stream")
}

/// Returns whether a path stands for the standard output: `-.npy`, as the options make it of `-` and `--format npy`.
pub fn is_standard_output(path: &Path) -> bool {
    path.components().count() == 1 && path.as_os_str().as_encoded_bytes().starts_with(b"-.")
}

/// Checks, before the computation, that the standard output can receive a file.
pub fn check_standard_output() -> Result<()> {
    if io::stdout().is_terminal() {
        bail!(
            InvalidArgument,
            "the standard output is a terminal, which cannot show the file: redirect it, or give -o"
        );
    }
    Ok(())
}

/// Calls `write` with an output, and completes it together with `files`. The standard output receives its file when all
/// files are written, and before the first of them gets its name.
pub fn write_output(
    mut files: AtomicFiles,
    output: &Path,
    write: impl FnOnce(&mut AtomicFiles, &Path) -> Result<()>,
) -> Result<()> {
    if !is_standard_output(output) {
        write(&mut files, output)?;
        return files.commit();
    }
    let folder = folder()?;
    let path = folder.join(output);
    let prefix = format!("{}{}", folder.display(), std::path::MAIN_SEPARATOR);
    let without_folder = |e: Error| Error::new(e.kind(), e.message().replace(&prefix, ""));
    write_atomically(|own| write(own, &path)).map_err(without_folder)?;
    send(&path)?;
    files.commit()
}

/// Copies a file to the standard output.
fn send(path: &Path) -> Result<()> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => bail!(
            InvalidArgument,
            "the images need several files, and the standard output receives one: write a .h5 file, or select images"
        ),
        Err(e) => bail!(IO, "{}: {e}", path.display()),
    };
    let mut out = io::stdout().lock();
    match io::copy(&mut file, &mut out).and_then(|_| out.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => bail!(IO, "{READER_CLOSED}"),
        Err(e) => bail!(IO, "the standard output cannot be written: {e}"),
    }
}

/// Returns whether the error reports that the reader of a file on the standard output closed it early.
pub fn is_closed_early(error: &Error) -> bool {
    error.kind() == ErrorKind::IO && error.message() == READER_CLOSED
}

/// Returns the path of an input file. For `-`, it is a copy of the standard input, with the extension of its contents.
///
/// # Errors
/// `InvalidArgument` if the standard input is a terminal; `BadFile` if its format is unknown; `IO`.
pub fn input_path(path: &Path) -> Result<Cow<'_, Path>> {
    static COPY: OnceLock<PathBuf> = OnceLock::new();
    if path != Path::new(STREAM) {
        return Ok(Cow::Borrowed(path));
    }
    if let Some(copy) = COPY.get() {
        return Ok(Cow::Owned(copy.clone()));
    }
    let mut input = io::stdin().lock();
    if input.is_terminal() {
        bail!(InvalidArgument, "the standard input is a terminal: redirect a file to it, or give the name of a file");
    }
    let failed = |e: io::Error| Error::new(ErrorKind::IO, format!("the standard input cannot be copied: {e}"));
    let mut start = Vec::new();
    input.by_ref().take(START as u64).read_to_end(&mut start).map_err(failed)?;
    if start.is_empty() {
        bail!(BadFile, "the standard input is empty");
    }
    let Some(extension) = extension_of_contents(&start) else {
        bail!(
            BadFile,
            "the standard input is not a file of a format that can be read from a stream ({})",
            FileUse::ReadStream.extensions()
        );
    };
    let copy = folder()?.join(format!("standard_input{extension}"));
    let copied = File::create(&copy).and_then(|mut file| {
        file.write_all(&start)?;
        io::copy(&mut input, &mut file)
    });
    copied.map_err(failed)?;
    Ok(Cow::Owned(COPY.get_or_init(|| copy).clone()))
}
