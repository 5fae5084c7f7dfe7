//! The run of a command that reconstructs scans: from the input file, or from raw data in memory, to the output files.
//!
//! [`job`] describes a run and contains its loop over scans; each command implements [`job::Reconstruction`]. The other
//! modules are the steps of a run.

pub mod coil_maps;
pub mod coils;
pub mod frames;
pub mod gaps;
pub mod input;
pub mod job;
pub mod off_resonance;
pub mod output;
pub mod phase_difference;
pub mod plan;
pub mod post_processing;
pub mod precision;
pub mod raw_output;
pub mod resize;
pub mod sampling;
pub mod scan_images;
pub mod session;
mod slices;
pub mod streams;
pub mod value_kind;
pub mod weights;
