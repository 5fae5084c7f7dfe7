//! HDF5 files, on the crate hdf5-pure: opening with the cause of a failure, records whose fields are found by name,
//! arrays of variable length, and a writer of those.
//!
//! Sizes in a file are compared with its length before memory is allocated for them, so that a damaged file is an
//! error and not a crash. hdf5-pure reads no arrays of variable length and does not write them: [`HeapReader`] and
//! [`HeapFile`] do, after section III.E of the HDF5 file format specification (global heap).

mod errors;
mod heap;
mod numbers;
mod open;
mod records;
mod write;

pub use errors::hdf5_error;
pub use heap::{HeapReader, HeapReference};
pub use numbers::{Number, Scalar};
pub use open::{check_stored, member_names, open, Hdf5File};
pub use records::{member, record_type, require_members, RecordField, RecordReader};
pub use write::{array_type, text_type, HeapFile, REFERENCE};
