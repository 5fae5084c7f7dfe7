//! ISMRMRD files in HDF5: reads raw data and images, writes images and simulated raw data.
//!
//! A raw dataset becomes one [`Scan`] per image: the acquisitions of one encoding, slice, contrast, phase, repetition
//! and set. Acquisitions that differ only in their average, segment or encoding steps are samples of the same image.
//! They stay in one scan, so that the reconstruction averages the averages. Calibration acquisitions for parallel
//! imaging become separate scans.
//!
//! Counts, sizes and field layouts in a file are checked before they are used. Older versions of the HDF5 library
//! (1.10, for example) crash on some damaged files: the program reads files in a separate process (reader.rs).

mod acquisitions;
mod header;
mod images;
mod read;
mod scan;
mod scan_builder;
mod storage;
mod write;

pub use header::{
    CalibrationMode, EncodingLimits, EncodingSpace, Header, HeaderEncoding, ParallelImaging, TrajectoryKind,
};
pub use images::{read_images, write_images};
pub use read::read_dataset;
pub use scan::{Dataset, Noise, Scan};
pub use write::write_dataset;

#[cfg(test)]
pub(crate) mod tests;
