//! ISMRMRD files in HDF5: raw data in, images out, and raw data out for simulations.
//!
//! A raw dataset becomes one [`Scan`] an image: the acquisitions of one encoding, slice, contrast, phase, repetition
//! and set. Acquisitions that differ only in their average, segment or encoding steps are samples of the same image and
//! stay together, so that averages are averaged by the reconstruction. Calibration acquisitions for parallel imaging
//! become scans of their own.
//!
//! Counts, sizes and field layouts in a file are checked before they are used. Older versions of the HDF5 library
//! (1.10, for example) do not survive every damaged file: the program reads files in a separate process (reader.rs).

mod header;
mod images;
mod read;
mod scan;
mod storage;
mod write;

pub use header::{CalibrationMode, Encoding, Header, Limits, ParallelImaging, Space, TrajectoryKind};
pub use images::{read_images, write_images};
pub use read::read_dataset;
pub use scan::{Dataset, Noise, Scan};
pub use write::write_dataset;

#[cfg(test)]
mod tests;
