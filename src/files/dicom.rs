//! Reads and writes DICOM files, `.dcm`.
//!
//! The writer makes classic single-frame files (MR Image Storage), one per slice. All viewers and archives read them.
//! Many do not read enhanced MR files, or ignore the positions of their frames.
//!
//! Elements are encoded and decoded by the crates of dicom-rs. The reader uses its tokens and not its objects:
//! dicom-object reserves the length that an element announces (up to 4 GiB) before it reads, and calls itself for each
//! nested sequence.

mod elements;
mod fields;
mod pixels;
mod read;
mod series;
mod text;
mod uids;
mod write;

pub use fields::DicomFields;
pub use read::read_dicom;
pub use series::file_names;
pub use uids::identify_dataset;
pub use write::{check_channels, write_dicom};

#[cfg(test)]
mod tests;
