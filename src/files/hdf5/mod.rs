//! HDF5 files, on the crate hdf5-pure: opening with the cause of a failure, records whose fields are found by name,
//! arrays of variable length, and a writer of those.
//!
//! Sizes in a file are compared with its length before memory is allocated for them, so that a damaged file is an
//! error and not a crash. hdf5-pure reads no arrays of variable length and does not write them: [`HeapReader`] and
//! [`HeapFile`] do, after section III.E of the HDF5 file format specification (global heap).

mod heap;
mod numbers;
mod open;
mod records;
mod write;

pub use heap::{HeapReader, HeapReference};
pub use numbers::{Number, Scalar};
pub use open::{check_stored, member_names, open, Hdf5File};
pub use records::{member, record_type, require_members, Field, RecordReader};
pub use write::{array_type, text_type, HeapFile, REFERENCE};

use recon::error::{Error, ErrorKind};

/// Converts an error of the HDF5 crate to an error of this crate, with a message of one line.
pub fn hdf5_error(kind: ErrorKind, what: &str) -> impl Fn(hdf5_pure::Error) -> Error + '_ {
    move |e| {
        let detail = e.to_string();
        Error::new(kind, format!("{what} ({})", detail.split_whitespace().collect::<Vec<_>>().join(" ")))
    }
}
