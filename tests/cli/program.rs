//! Tests of the program `recon`, which run it as a user does.

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
mod info;
#[allow(dead_code)]
mod io;
mod manual;
mod messages;
mod off_resonance;
mod orientation;
mod outputs;
mod partial_fourier;
mod pictures;
mod progress;
mod propeller;
mod raw_file;
mod reader;
mod reconstruction;
mod scan_example;
mod scanner;
mod trajectories;
mod velocity;

use harness::*;
