//! The readers and writers of the program, with helpers for tests.

pub use recon_files::*;

#[path = "../common/whole_files.rs"]
pub mod tests;
