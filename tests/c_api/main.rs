//! Tests of the C API through its C functions. Results equal those of the Rust API. Every documented error can be
//! provoked, has a message that explains it, and leaves the outputs unchanged.

#[path = "../common/acquisitions.rs"]
mod acquisitions;
mod arrays;
mod changes;
mod coils;
#[path = "../common/emulator.rs"]
mod emulator;
mod field_maps;
mod interruption;
mod library;
mod memory;
mod options;
mod partial_fourier;
mod phase_differences;
mod propeller;
mod results;
mod scan_rules;
mod scans;
mod simulation;
mod support;
