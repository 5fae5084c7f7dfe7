//! The `_init` functions of the structures.

use super::scan_structs::*;
use super::status::{call, recon_status, with_source};
use super::structs::*;
use super::versioned::init;

/// Defines the functions, and their declarations as text: cbindgen, which writes the header, does not expand macros.
macro_rules! initialisers {
    ($($(#[doc = $doc:literal])+ fn $function:ident($pointer:ident: $type:ident);)+) => {
        with_source! {
            SOURCE,
            $(
                $(#[doc = $doc])+
                #[no_mangle]
                #[must_use]
                pub unsafe extern "C" fn $function($pointer: *mut $type, struct_size: u32) -> recon_status {
                    // SAFETY: the structure is the caller's and has struct_size bytes.
                    call(|| unsafe { init($pointer, struct_size) })
                }
            )+
        }
    };
}

initialisers! {
    /// Sets the defaults of a geometry: f32, 2D, one coil, one frame, point voxels.
    ///
    /// `struct_size` is sizeof(recon_geometry). It informs the library of the header version that the caller was
    /// compiled with. The same holds for every _init function.
    ///
    /// Errors:
    /// - RECON_NULL_POINTER.
    /// - RECON_UNKNOWN_STRUCT_SIZE if the header is newer than the library.
    fn recon_geometry_init(geometry: recon_geometry);
    /// Sets the defaults of a plan's options: the library chooses everything. `struct_size` is sizeof(recon_options).
    fn recon_options_init(options: recon_options);
    /// Sets the defaults of recon_cg: 12 iterations, no prior. `struct_size` is sizeof(recon_cg_options).
    fn recon_cg_options_init(options: recon_cg_options);
    /// Sets an empty report without an array for residuals. `struct_size` is sizeof(recon_cg_report).
    fn recon_cg_report_init(report: recon_cg_report);
    /// Sets the defaults of recon_propeller: lines per blade from the trajectory; smooth phase, rotation and
    /// translation corrected. `struct_size` is sizeof(recon_propeller_options).
    fn recon_propeller_options_init(options: recon_propeller_options);
    /// Sets an empty report without arrays. `struct_size` is sizeof(recon_propeller_report).
    fn recon_propeller_report_init(report: recon_propeller_report);
    /// Sets the defaults of recon_partial_fourier: POCS with up to 20 iterations. `struct_size` is
    /// sizeof(recon_partial_fourier_options).
    fn recon_partial_fourier_options_init(options: recon_partial_fourier_options);
    /// Sets an empty report. `struct_size` is sizeof(recon_partial_fourier_report).
    fn recon_partial_fourier_report_init(report: recon_partial_fourier_report);
    /// Sets the defaults of recon_field_map. `struct_size` is sizeof(recon_field_map_options).
    fn recon_field_map_options_init(options: recon_field_map_options);
    /// Sets an empty report. `struct_size` is sizeof(recon_field_map_report).
    fn recon_field_map_report_init(report: recon_field_map_report);
    /// Sets empty properties. `struct_size` is sizeof(recon_plan_properties).
    fn recon_plan_properties_init(properties: recon_plan_properties);
    /// Sets all numbers of bytes to 0. `struct_size` is sizeof(recon_memory).
    fn recon_memory_init(memory: recon_memory);
    /// Sets the defaults of recon_scan_create: images are complete at the end, and noise whitens the coils.
    /// `struct_size` is sizeof(recon_scan_options).
    fn recon_scan_options_init(options: recon_scan_options);
    /// Sets empty properties. `struct_size` is sizeof(recon_scan_properties).
    fn recon_scan_properties_init(properties: recon_scan_properties);
    /// Sets all numbers to 0. `struct_size` is sizeof(recon_scan_counts).
    fn recon_scan_counts_init(counts: recon_scan_counts);
    /// Sets empty properties. `struct_size` is sizeof(recon_device_properties).
    fn recon_device_properties_init(properties: recon_device_properties);
    /// Sets all measures to 0. `struct_size` is sizeof(recon_quality).
    fn recon_quality_init(quality: recon_quality);
}
