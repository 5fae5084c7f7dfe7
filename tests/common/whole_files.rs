//! Helpers for tests that write files: the writers of recon-files, each completing its files at once.

use super::*;
use num_complex::Complex;
use recon::atomic_file::{write_atomically, AtomicFiles};
use recon::error::Result;
use recon::scan::AssemblyOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Defines writers that complete their file, or pair of files, at once.
macro_rules! whole_file_writers {
    ($($name:ident: $writer:path, ($($argument:ident: $kind:ty),+));+ $(;)?) => {
        $(pub fn $name(path: impl AsRef<Path>, $($argument: $kind),+) -> Result<()> {
            write_atomically(|files| $writer(files, path.as_ref(), $($argument),+))
        })+
    };
}

whole_file_writers! {
    write_images: super::write_images, (images: &[Image]);
    write_series: ismrmrd::write_images, (images: &[Image]);
    write_acquisitions: ismrmrd::write_raw,
        (xml: Option<&str>, total: usize, acquisitions: &mut dyn Iterator<Item = ismrmrd::Acquisition>);
    write_dataset: write_stored, (dataset: &Dataset);
    write_cfl: cfl::write_cfl, (dims: &[usize], data: &[Complex<f32>]);
    write_nifti: nifti::write_nifti, (images: &[Image]);
    write_png: png::write_png, (images: &[Image], options: &PngOptions);
    write_png_row: png::write_png_row, (tiles: &[png::GreySlice], maximum: Option<f32>);
}

/// Writes a dataset whose acquisitions have their trajectory.
fn write_stored(files: &mut AtomicFiles, path: &Path, dataset: &Dataset) -> Result<()> {
    ismrmrd::write_dataset(files, path, dataset, TrajectoryStorage::Stored)
}

/// Returns the path of a file of the test data; `None`, with a line, if the data are not on this machine.
pub fn test_data(name: &str) -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let dir = std::env::var_os("RECON_DATA_DIR").map_or(default, PathBuf::from);
    let path = dir.join(name);
    if !path.exists() {
        // Not eprintln!: the test harness hides its output if the test passes.
        let _ = writeln!(std::io::stderr(), "skipped: {} is not there (set RECON_DATA_DIR)", path.display());
        return None;
    }
    Some(path)
}

/// Reads the raw data of the usual group.
pub fn read_dataset(path: impl AsRef<Path>) -> Result<Dataset> {
    ismrmrd::read_dataset(path.as_ref(), ismrmrd::GROUP, AssemblyOptions::default())
}
