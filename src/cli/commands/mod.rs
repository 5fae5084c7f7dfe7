//! The commands of the program, one file per command. Each defines the arguments, the help text and the function `run`.

pub mod bench;
pub mod cg;
pub mod coilmaps;
pub mod compare;
pub mod convert;
pub mod density;
pub mod fbp;
pub mod fhd;
pub mod fieldmap;
pub mod forward;
pub mod grid;
pub mod info;
pub mod manual;
pub mod precompile;
pub mod propeller;
pub mod simulate;
pub mod view;
