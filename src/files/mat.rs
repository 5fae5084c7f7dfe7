//! Reads and writes `.mat` files of level 5, which MATLAB (`save`, `save -v6`, `save -v7`), Octave (`save -v6`,
//! `save -v7`) and SciPy read and write.
//!
//! Reader and writer are our own. The crate matfile 0.5 was tried: it does not write, it drops structures and damaged
//! elements at the end of a file without an error, and a compressed array may expand without limit. No other crate for
//! this format has been maintained in the last years. MATLAB's version 7.3 is HDF5 with private conventions, and is an
//! error that says how to save the file.

mod images;
mod layout;
mod read;
mod write;

pub use images::{read_images, write_images};
pub use read::{read_mat, MatArray};
pub use write::{write_mat, MatValues, MatVariable};

#[cfg(test)]
mod tests;
