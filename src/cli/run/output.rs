//! Output: checks of the outputs before anything is computed, images, and text on the standard output.

use crate::io::cfl::pair;
use crate::io::{check_image_path, Image, ScanIndex};
use recon::atomic_file::{self, AtomicFiles};
use recon::bail;
use recon::{Error, ErrorKind, Result};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The name of the standard output, where a report may go.
pub const STANDARD_OUTPUT: &str = "-";

const READER_LEFT: &str = "the reader of the output has left";

/// Writes a line of results to the standard output stream.
pub fn say(line: &str) -> Result<()> {
    print(&format!("{line}\n"))
}

/// Writes to the standard output stream.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => bail!(IO, "{READER_LEFT}"),
        Err(e) => bail!(IO, "the standard output cannot be written: {e}"),
    }
}

/// Whether the error is a standard output that its reader has closed.
pub fn reader_left(error: &Error) -> bool {
    error.kind() == ErrorKind::IO && error.message() == READER_LEFT
}

/// The files behind the name of an array or an image: BART's are two.
pub fn files_of(path: &Path) -> Vec<PathBuf> {
    match has_ending(path, &[".cfl", ".hdr"]) {
        true => <[PathBuf; 2]>::from(pair(path)).into(),
        false => vec![path.to_owned()],
    }
}

/// The files of an image to be written. The ending of the name is checked.
pub fn image_files(path: &Path) -> Result<Vec<PathBuf>> {
    check_image_path(path)?;
    Ok(files_of(path))
}

/// Checks, before anything is computed, that a command can write its outputs: each can be created, no two are the same
/// file, under any names, and none is an input.
pub fn check_outputs<'a>(outputs: &[PathBuf], inputs: impl IntoIterator<Item = &'a PathBuf>) -> Result<()> {
    let known = |path: &PathBuf| atomic_file::identity(path).map(|id| (path.clone(), id));
    let inputs: Vec<_> = inputs.into_iter().flat_map(|path| files_of(path)).filter_map(|path| known(&path)).collect();
    let mut before: Vec<(PathBuf, atomic_file::Identity)> = Vec::new();
    for output in outputs {
        let shown = output.display();
        atomic_file::check_writable(output)?;
        let Some((path, id)) = known(output) else { continue };
        if inputs.iter().any(|(_, other)| *other == id) {
            bail!(InvalidArgument, "{shown}: this is a file to be read: the output needs another name");
        }
        if let Some((other, _)) = before.iter().find(|(_, other)| *other == id) {
            let also = if other == output { String::new() } else { format!(", which is {} as well", other.display()) };
            bail!(InvalidArgument, "{shown}{also}: two outputs go to this file: give one of them another name");
        }
        before.push((path, id));
    }
    Ok(())
}

/// Whether the name has one of these endings.
pub fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let name = path.file_name().map(|n| n.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    endings.iter().any(|e| name.ends_with(e))
}

/// Checks that images of these sizes and channels can share the file: all can in ISMRMRD, images of one shape
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

/// Returns `1 image`, or `n images`.
pub fn counted_images(n: usize) -> String {
    format!("{n} {}", if n == 1 { "image" } else { "images" })
}

/// Writes images to one of `files`.
pub fn write_images(files: &mut AtomicFiles, path: &Path, images: &[Image]) -> Result<()> {
    crate::io::write_images(files, path, images)?;
    log::info!("{}: {} written", path.display(), counted_images(images.len()));
    Ok(())
}

/// Writes images and a report, if there is a path for it. All outputs appear, or none.
pub fn write_with_report(
    mut files: AtomicFiles,
    (output, images): (&Path, &[Image]),
    (path, reports): (Option<&Path>, Vec<serde_json::Value>),
) -> Result<()> {
    write_images(&mut files, output, images)?;
    let report = format!("{:#}\n", serde_json::Value::Array(reports));
    let printed = match path {
        Some(path) if path == Path::new(STANDARD_OUTPUT) => print(&report),
        Some(path) => write_text(&mut files, path, &report),
        None => Ok(()),
    };
    match printed {
        // Where the reader of the report leaves before its end, the image is written nevertheless.
        Err(e) if !reader_left(&e) => Err(e),
        printed => files.commit().and(printed),
    }
}

/// The place of a scan in the measurement, with which its report begins.
pub fn place_of(index: &ScanIndex) -> serde_json::Value {
    serde_json::json!({
        "encoding": index.encoding,
        "slice": index.slice,
        "repetition": index.repetition,
        "contrast": index.contrast,
        "phase": index.phase,
        "set": index.set,
    })
}

/// Writes text to one of `files`.
pub fn write_text(files: &mut AtomicFiles, path: &Path, text: &str) -> Result<()> {
    match std::fs::write(files.add(path)?, text) {
        Ok(()) => Ok(()),
        Err(e) => bail!(IO, "{}: {e}", path.display()),
    }
}
