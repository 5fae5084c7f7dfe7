//! Output: files that appear whole or not at all, and text whose reader may leave.

use crate::interrupt::whole;
use crate::io::{check_image_path, Image};
use recon::bail;
use recon::{Error, ErrorKind, Result};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

const READER_LEFT: &str = "the reader of the output has left";

/// Writes a line of results to the standard output stream.
pub fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => bail!(Io, "{READER_LEFT}"),
        Err(e) => bail!(Io, "the standard output cannot be written: {e}"),
    }
}

/// Whether the error is that nobody reads the output any more.
pub fn reader_left(error: &Error) -> bool {
    error.kind() == ErrorKind::Io && error.message() == READER_LEFT
}

/// Checks, before anything is computed, that images can be written to `path`: its ending, its folder, and that it is none
/// of the files read.
pub fn check_image_output(path: &Path, inputs: &[&Path]) -> Result<()> {
    check_image_path(path)?;
    check_output(path, inputs)
}

/// Checks that a file can be written to `path`.
pub fn check_output(path: &Path, inputs: &[&Path]) -> Result<()> {
    let shown = path.display();
    let Some(name) = path.file_name() else { bail!(Io, "{shown}: this is no name of a file") };
    if path.is_dir() {
        bail!(Io, "{shown}: this is a folder: give a file name");
    }
    let same = |other: &Path| matches!((path.canonicalize(), other.canonicalize()), (Ok(a), Ok(b)) if a == b);
    if inputs.iter().any(|other| same(other)) {
        bail!(InvalidArgument, "{shown}: this is a file to be read: the output needs another name");
    }
    let folder = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        bail!(Io, "{shown}: the folder {} does not exist: create it first", folder.display());
    }
    // Whether a file can be created is best found out by creating one.
    let probe = folder.join(format!(".recon-{}-{}.probe", std::process::id(), name.len()));
    whole(|| {
        if let Err(e) = File::create(&probe) {
            bail!(Io, "{shown}: no file can be created in the folder {}: {e}", folder.display());
        }
        let _ = fs::remove_file(&probe);
        Ok(())
    })
}

/// Whether the name ends like one of these.
pub fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let name = path.file_name().map(|n| n.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    endings.iter().any(|e| name.ends_with(e))
}

/// Checks that images of these sizes and numbers of channels can share the file: all can in ISMRMRD, those of one shape
/// in the other formats.
pub fn check_together(path: &Path, mut shapes: impl Iterator<Item = ([usize; 3], usize)>) -> Result<()> {
    if has_ending(path, &[".h5", ".mrd"]) {
        return Ok(());
    }
    let Some(first) = shapes.next() else { return Ok(()) };
    if let Some(other) = shapes.find(|s| *s != first) {
        bail!(
            SizeMismatch,
            "{}: images of {:?} voxels in {} channels and of {:?} in {} cannot share this file: write a .h5 file, or \
             choose some by --slice and --repetition",
            path.display(),
            first.0,
            first.1,
            other.0,
            other.1
        );
    }
    Ok(())
}

/// Writes images to one file.
pub fn write_images(path: &Path, images: &[Image]) -> Result<()> {
    whole(|| crate::io::write_images(path, images))?;
    log::info!(
        "{}: {} written",
        path.display(),
        if images.len() == 1 { "1 image".into() } else { format!("{} images", images.len()) }
    );
    Ok(())
}

/// Writes a text file.
pub fn write_text(path: &Path, text: &str) -> Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    whole(|| {
        let write = || -> std::io::Result<()> {
            let mut file = File::create(&part)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&part, path)
        };
        if let Err(e) = write() {
            let _ = fs::remove_file(&part);
            bail!(Io, "{}: {e}", path.display());
        }
        Ok(())
    })
}
