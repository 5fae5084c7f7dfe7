//! The commands of the program, one file per command: its arguments, its help text and its function `run`.

pub mod bench;
pub mod cg;
pub mod compare;
pub mod fbp;
pub mod fhd;
pub mod fieldmap;
pub mod grid;
pub mod info;
pub mod precompile;
pub mod propeller;
pub mod simulate;
