//! ISMRMRD files in HDF5: reads raw data and images, writes images and simulated raw data.
//!
//! [`recon::scan`] sorts the acquisitions of a raw dataset into images.
//!
//! Counts, sizes and field layouts in a file are checked before they are used. Older versions of the HDF5 library
//! (1.10, for example) crash on some damaged files: the program reads files in a separate process (reader.rs).

mod acquisitions;
mod images;
mod read;
mod storage;
mod write;

pub use images::{read_images, write_images};
pub use read::{read_dataset, read_raw, DatasetBuilder, RawReceiver};
pub use storage::{Acquisition, StoredCounters, StoredHeader};
pub use write::{write_dataset, write_raw, TrajectoryStorage};

#[cfg(test)]
mod tests;
