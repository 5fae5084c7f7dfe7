//! Outputs: their checks before the computation, images, reports, and text on the standard output.

use crate::run::streams::{check_standard_output, is_standard_output, write_output};
use recon::atomic_file::{self, AtomicFiles};
use recon::bail;
use recon::{Error, ErrorKind, Result};
use recon_files::bart::arrange_images;
use recon_files::cfl::pair;
use recon_files::png::{check_picture, PictureEntry};
use recon_files::stacks::{divide_into_stacks, ImageGeometry};
use recon_files::{dicom, nifti, DicomFields, FileUse, Format, Image, ScanIndex};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Name of the standard output as the file of a report.
pub const STANDARD_OUTPUT: &str = "-";

const READER_CLOSED: &str = "the reader of the output closed it";

/// Writes a line of results to the standard output stream.
pub fn say(line: &str) -> Result<()> {
    print(&format!("{line}\n"))
}

/// Writes to the standard output stream.
pub fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => bail!(IO, "{READER_CLOSED}"),
        Err(e) => bail!(IO, "the standard output cannot be written: {e}"),
    }
}

/// Returns whether the error reports that the reader of the standard output closed it.
pub fn is_closed_by_reader(error: &Error) -> bool {
    error.kind() == ErrorKind::IO && error.message() == READER_CLOSED
}

/// Returns the files of an array or image: two for BART. The name of an input may lack its extension.
pub fn files_of(path: &Path) -> Vec<PathBuf> {
    match Format::of_input(path) {
        Some(Format::Bart) => <[PathBuf; 2]>::from(pair(path)).into(),
        _ => vec![path.to_owned()],
    }
}

/// Returns the files of an image that will be written. Checks the extension of its name.
pub fn image_files(path: &Path) -> Result<Vec<PathBuf>> {
    FileUse::WriteImages.format(path)?;
    Ok(files_of(path))
}

/// Checks, before the computation, that a command can write its outputs: each can be created, no two are the same file
/// (even with different names), and no output is an input.
pub fn check_outputs<'a>(outputs: &[PathBuf], inputs: impl IntoIterator<Item = &'a PathBuf>) -> Result<()> {
    let identify = |path: &PathBuf| atomic_file::identity(path).map(|id| (path.clone(), id));
    let inputs: Vec<_> =
        inputs.into_iter().flat_map(|path| files_of(path)).filter_map(|path| identify(&path)).collect();
    let mut checked: Vec<(PathBuf, atomic_file::Identity)> = Vec::new();
    for output in outputs {
        let shown = output.display();
        if is_standard_output(output) {
            check_standard_output()?;
            continue;
        }
        atomic_file::check_writable(output)?;
        let Some((path, id)) = identify(output) else { continue };
        if inputs.iter().any(|(_, other)| *other == id) {
            bail!(InvalidArgument, "{shown}: this is a file to be read as input: give the output another name");
        }
        if let Some((other, _)) = checked.iter().find(|(_, other)| *other == id) {
            let alias = if other == output { String::new() } else { format!(", which is {} as well", other.display()) };
            bail!(InvalidArgument, "{shown}{alias}: two outputs go to this file: give one of them another name");
        }
        checked.push((path, id));
    }
    Ok(())
}

/// Checks that images of these sizes and channels can share the file.
pub fn check_sizes(path: &Path, mut shapes: impl Iterator<Item = ([usize; 3], usize)>) -> Result<()> {
    if Format::of(path) == Some(Format::Dicom) {
        return shapes
            .try_for_each(|(_, channels)| dicom::check_channels(channels))
            .map_err(|e| e.within(path.display()));
    }
    if FileUse::WriteMixedSizes.allows(path) {
        return Ok(());
    }
    let Some(first) = shapes.next() else { return Ok(()) };
    if let Some(other) = shapes.find(|s| *s != first) {
        bail!(
            SizeMismatch,
            "{}: images of {:?} voxels in {} channels and of {:?} in {} cannot share this file: write a .h5 file, or \
             select some by --slice, --repetition and --contrast",
            path.display(),
            first.0,
            first.1,
            other.0,
            other.1
        );
    }
    Ok(())
}

/// Checks, before the computation, that images form a picture that is not too large. Other formats have no limit.
pub fn check_picture_size(path: &Path, images: &[PictureEntry]) -> Result<()> {
    match Format::of(path) {
        Some(Format::Png) => check_picture(images).map_err(|e| e.within(path.display())),
        _ => Ok(()),
    }
}

/// Returns the files of images, if their number depends on the images: one per volume of NIfTI, or one per slice of
/// DICOM; `None` for other formats.
///
/// # Errors
/// `InvalidArgument` if the images do not form volumes or series, or if the standard output would need several files.
pub fn volume_files(path: &Path, images: &[ImageGeometry]) -> Result<Option<Vec<PathBuf>>> {
    let names = match Format::of(path) {
        Some(Format::Nifti) => divide_into_stacks(images).map(|stacks| nifti::file_names(path, &stacks)),
        Some(Format::Dicom) => dicom::file_names(path, images),
        _ => return Ok(None),
    };
    let names = names.map_err(|e| e.within(path.display()))?;
    if names.len() > 1 && is_standard_output(path) {
        bail!(
            InvalidArgument,
            "the images need {} files, and the standard output receives one: give --format h5, or select images",
            names.len()
        );
    }
    Ok(Some(names))
}

/// Returns "1 image" or "n images".
pub fn counted_images(n: usize) -> String {
    format!("{n} {}", if n == 1 { "image" } else { "images" })
}

/// Writes images to one of `files`.
pub fn write_images(files: &mut AtomicFiles, path: &Path, images: &[Image]) -> Result<()> {
    write_images_with_fields(files, path, images, &DicomFields::default())
}

/// Writes images to one of `files`, or to several for DICOM, which also have these fields.
pub fn write_images_with_fields(
    files: &mut AtomicFiles,
    path: &Path,
    images: &[Image],
    fields: &DicomFields,
) -> Result<()> {
    recon_files::write_images_with_fields(files, path, images, fields)?;
    log::info!("{}: {} written", path.display(), counted_images(images.len()));
    Ok(())
}

/// The image and report that a command writes.
pub struct Outputs<'a> {
    pub image: &'a Path,
    /// `None` if no report is written; [`STANDARD_OUTPUT`] prints it.
    pub report: Option<&'a Path>,
}

impl Outputs<'_> {
    /// Checks the outputs and `further` output files before the computation.
    pub fn check<'a>(&self, further: &[PathBuf], inputs: impl IntoIterator<Item = &'a PathBuf>) -> Result<()> {
        self.check_files(image_files(self.image)?, further, inputs)
    }

    /// Checks, before the computation, that images form the volumes of NIfTI files, the series of DICOM files or the
    /// array of a BART file, and that each file can be written.
    pub fn check_volumes<'a>(
        &self,
        images: &[ImageGeometry],
        further: &[PathBuf],
        inputs: impl IntoIterator<Item = &'a PathBuf>,
    ) -> Result<()> {
        if Format::of(self.image) == Some(Format::Bart) {
            let indices: Vec<ScanIndex> = images.iter().map(|image| image.index).collect();
            return arrange_images(&indices).map(drop).map_err(|e| e.within(self.image.display()));
        }
        match volume_files(self.image, images)? {
            Some(names) => self.check_files(names, further, inputs),
            None => Ok(()),
        }
    }

    fn check_files<'a>(
        &self,
        mut files: Vec<PathBuf>,
        further: &[PathBuf],
        inputs: impl IntoIterator<Item = &'a PathBuf>,
    ) -> Result<()> {
        if is_standard_output(self.image) && self.report == Some(Path::new(STANDARD_OUTPUT)) {
            bail!(InvalidArgument, "--report -: the image goes to the standard output: write the report to a file");
        }
        files.extend(self.report.filter(|path| *path != Path::new(STANDARD_OUTPUT)).map(Path::to_owned));
        files.extend_from_slice(further);
        check_outputs(&files, inputs)
    }

    /// Writes images and report along with `files`. Either all outputs appear, or none. DICOM files have `fields`.
    pub fn write(
        &self,
        mut files: AtomicFiles,
        images: &[Image],
        reports: Vec<serde_json::Value>,
        fields: &DicomFields,
    ) -> Result<()> {
        let report = format!("{:#}\n", serde_json::Value::Array(reports));
        match self.report {
            Some(path) if path == Path::new(STANDARD_OUTPUT) => {
                write_images_with_fields(&mut files, self.image, images, fields)?;
                match print(&report) {
                    // The image is written even if the reader of the report closes it early.
                    Err(e) if !is_closed_by_reader(&e) => return Err(e),
                    printed => return files.commit().and(printed),
                }
            }
            Some(path) => write_text(&mut files, path, &report)?,
            None => {}
        }
        write_output(files, self.image, |files, path| write_images_with_fields(files, path, images, fields))
    }
}

/// Returns the counters of a scan, with which its report begins.
pub fn report_of(index: &ScanIndex) -> serde_json::Value {
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
fn write_text(files: &mut AtomicFiles, path: &Path, text: &str) -> Result<()> {
    match std::fs::write(files.add(path)?, text) {
        Ok(()) => Ok(()),
        Err(e) => bail!(IO, "{}: {e}", path.display()),
    }
}
