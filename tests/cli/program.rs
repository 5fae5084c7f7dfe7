//! Tests of the program `recon`, which run it as a user does.

// The readers and writers of the program, with their own tests, which run here.
#[allow(dead_code, unused_imports)]
#[path = "../../src/cli/io/mod.rs"]
mod io;

#[path = "../common/acquisitions.rs"]
mod acquisitions;
mod arguments;
mod brain;
mod calibration;
mod coils;
#[path = "../common/mod.rs"]
mod common;
mod compare;
mod damaged;
mod documents;
mod field_map;
mod files;
mod formats;
mod frames;
mod harness;
mod messages;
mod off_resonance;
mod orientation;
mod outputs;
mod partial_fourier;
mod pictures;
mod propeller;
mod raw_file;
mod reader;
mod reconstruction;
mod scan_example;
mod scanner;
mod trajectories;
mod velocity;

use harness::*;
