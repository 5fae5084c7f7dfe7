//! The C API: checks the caller's arguments and calls the Rust API.
//!
//! `include/recon.h` is generated from the files of this folder. Their comments are the reference for callers.

// Names are those of the header.
#![allow(non_camel_case_types)]
// The requirements on callers are the same for every function. The top of the header lists them once.
#![allow(clippy::missing_safety_doc)]

mod acquisition;
mod arrays;
mod coil_matrices;
mod conjugate_gradients;
mod enumerations;
mod field_map;
mod images;
mod initialisers;
mod inputs;
mod library;
mod logging;
mod partial_fourier;
mod phantoms;
mod phase_difference;
mod plan;
mod plan_changes;
mod plan_handle;
mod propeller;
mod reconstruction;
mod scan_structs;
mod scans;
mod status;
mod structs;
mod trajectories;
mod transforms;
mod versioned;
mod warnings;

pub use acquisition::*;
pub use coil_matrices::*;
pub use conjugate_gradients::*;
pub use enumerations::{
    recon_acquisition_purpose, recon_basis, recon_blade_phase, recon_coil_model, recon_combine_method,
    recon_density_method, recon_device, recon_device_reason, recon_filter, recon_header_trajectory, recon_lambda_unit,
    recon_log_level, recon_method, recon_normal_operator, recon_part, recon_partial_fourier_method, recon_precision,
    recon_prior, recon_scale, recon_scan_counter, recon_simd, recon_spiral_extent, recon_spoke_number,
    recon_spoke_order, recon_stop, recon_trajectory_convention, recon_trajectory_kind, recon_warning, recon_window,
};
pub use field_map::*;
pub use images::*;
pub use initialisers::*;
pub use library::*;
pub use partial_fourier::*;
pub use phantoms::*;
pub use phase_difference::*;
pub use plan::*;
pub use plan_changes::*;
pub use plan_handle::recon_plan;
pub use propeller::*;
pub use reconstruction::*;
pub use scan_structs::*;
pub use scans::*;
pub use status::recon_status;
pub use structs::*;
pub use trajectories::*;
pub use transforms::*;
pub use warnings::*;

/// Returns the enumerations and the initialisers as source text, for the header: macros define them, and cbindgen does
/// not expand macros.
#[doc(hidden)]
pub fn generated_sources() -> [String; 2] {
    [enumerations::sources(), initialisers::SOURCE.to_owned()]
}
