//! Tests of the program `recon`, which run it as a user does.

// Only scan_example uses it.
#[cfg(unix)]
#[path = "../common/acquisitions.rs"]
mod acquisitions;
mod arguments;
mod bart;
mod brain;
mod calibration;
mod coils;
#[path = "../common/mod.rs"]
mod common;
mod compare;
mod damaged;
mod dicom;
// Examples of the documents are for a shell.
#[cfg(unix)]
mod documents;
mod field_map;
mod files;
mod foreign_files;
mod foreign_readers;
mod formats;
mod frames;
mod harness;
mod info;
#[allow(dead_code)]
mod io;
mod manual;
mod messages;
mod off_resonance;
mod opening;
mod orientation;
mod outputs;
mod partial_fourier;
mod pictures;
mod progress;
mod propeller;
mod raw_file;
mod reconstruction;
// The example is compiled by the system's C compiler.
#[cfg(unix)]
mod scan_example;
mod scanner;
mod streams;
mod tool_box;
mod trajectories;
mod velocity;
mod view;
#[cfg(windows)]
mod windows;

use harness::*;
