//! The readers and writers for the MEX file, in C. `matlab/mex/files.h` is generated from the files of this folder.
//!
//! The static library `recon_files` contains the library and this interface. The MEX file is linked with it instead of
//! `librecon.a`. The interface is private to the MEX file and changes with it.

// Names are those of the header.
#![allow(non_camel_case_types)]
// The callers are the files of matlab/mex, which are listed with their arguments in the header.
#![allow(clippy::missing_safety_doc)]

mod images;
mod outcome;
mod raw;
mod raw_writer;

pub use images::*;
pub use outcome::{recon_files_message, recon_files_warning};
pub use raw::*;
pub use raw_writer::*;

#[cfg(test)]
mod tests;
