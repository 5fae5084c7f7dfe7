//! The steps of a command that reconstructs scans, from the input file to the finished images.

pub mod calibration;
pub mod coils;
pub mod frames;
pub mod input;
pub mod off_resonance;
pub mod output;
pub mod reconstruct;
pub mod resize;
