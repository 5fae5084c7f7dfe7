//! ISMRMRD files in HDF5: reads raw data and images, writes images and simulated raw data.
//!
//! [`recon::scan`] sorts the acquisitions of a raw dataset into images.
//!
//! Counts, sizes and field layouts in a file are checked before they are used.

mod acquisitions;
mod images;
mod layout;
mod read;
mod write;

pub use images::{read_images, write_images};
pub use layout::Acquisition;
pub use read::{read_dataset, read_either, FileContents, RawFile, GROUP};
pub use write::{write_dataset, write_dataset_with_header, write_raw, TrajectoryStorage};

#[cfg(test)]
mod tests;
