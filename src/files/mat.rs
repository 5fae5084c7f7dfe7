//! Reads and writes `.mat` files of level 5, which MATLAB (`save`, `save -v6`, `save -v7`), Octave (`save -v6`,
//! `save -v7`) and SciPy read and write.
//!
//! Reader and writer are our own. The crate matfile 0.5 was tried: it does not write, it drops structures and damaged
//! elements at the end of a file without an error, and a compressed array may expand without limit. No other crate for
//! this format has been maintained in the last years. MATLAB's version 7.3 is HDF5 with private conventions, and is an
//! error that says how to save the file.

mod images;
mod read;
mod write;

pub use images::{read_images, write_images};
pub use read::{read_mat, MatArray};
pub use write::{write_mat, MatValues, MatVariable};

/// The type of an element's data in the file.
mod element {
    pub const INT8: u32 = 1;
    pub const UINT8: u32 = 2;
    pub const INT16: u32 = 3;
    pub const UINT16: u32 = 4;
    pub const INT32: u32 = 5;
    pub const UINT32: u32 = 6;
    pub const SINGLE: u32 = 7;
    pub const DOUBLE: u32 = 9;
    pub const INT64: u32 = 12;
    pub const UINT64: u32 = 13;
    pub const MATRIX: u32 = 14;
    pub const COMPRESSED: u32 = 15;
}

/// The class of an array in MATLAB.
mod class {
    pub const DOUBLE: u8 = 6;
    pub const SINGLE: u8 = 7;
    pub const UINT64: u8 = 15;
    /// The names of classes that are not numbers, which have the codes 1 to 5.
    pub const OTHERS: [&str; 5] = ["cell", "struct", "object", "char", "sparse"];
}

/// The bit of the array flags that marks complex numbers.
const COMPLEX: u32 = 1 << 11;
/// The length of the file's header in bytes.
const HEADER: usize = 128;

#[cfg(test)]
mod tests;
