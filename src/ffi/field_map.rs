//! Field maps from images of several echoes.

use super::arrays::{size, CallArrays};
use super::enumerations::{choice, Precision};
use super::inputs::{interrupt, with_precision};
use super::status::{call, recon_status};
use super::structs::*;
use super::versioned::{read_or_initial, StructOutput, VersionedStruct};
use crate::base::error::{bail, checked_product};
use crate::reconstruction::field_map::{estimate_field_map, Echoes, FieldMapOptions};
use crate::Complex;
use std::ffi::c_void;

/// Estimates the field map of gradient-echo images: off-resonance f in Hz, with the sign of the model, in which the
/// signal at time t is multiplied by exp(-i 2 pi f t). The map follows from the growth of the phase from echo to echo,
/// for any phases of the coils. Three or more echoes are fitted with weights. Phase wraps are undone along neighbouring
/// voxels; if there are any, recon_last_warning returns RECON_WARNING_WRAPS. The map is smoothed with weights, which
/// also fills voxels without signal.
///
/// Each connected piece of the object has an ambiguity: a multiple of the report's period changes no phase. The period
/// of evenly spaced echoes is 1 / spacing. The multiple whose median is nearest 0 Hz is taken: an object at 450 Hz,
/// measured with echoes 2.5 ms apart, is mapped to 50 Hz. If the median of a piece is close to half a period,
/// recon_last_warning returns both values.
///
/// - precision: a recon_precision, of all arrays except echo_times.
/// - ndim: 2 or 3.
/// - dims: [ndim], read: voxels along x, y and, with ndim 3, z.
/// - coils: number of coils of the images, which are not combined; or 1.
/// - echoes: number of echoes, 2 or more.
/// - echo_times: double [echoes] in seconds, increasing, read. Only their differences matter.
/// - images: complex [nx, ny, nz, coils, echoes], read.
/// - options: may be NULL for the defaults.
/// - field_map: real [nx, ny, nz] in Hz, written.
/// - decay_map: real [nx, ny, nz], written: non-negative R2* in 1/s from the magnitudes. Or NULL.
/// - report: may be NULL.
///
/// Errors:
/// - RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_SIZE_OVERFLOW, RECON_OUT_OF_HOST_MEMORY.
/// - RECON_INVALID_SIZE for sizes of 0, a wrong ndim, and fewer than two echoes.
/// - RECON_NOT_FINITE, with the index.
/// - RECON_INVALID_ARGUMENT for echo times that do not increase or exceed 1 s (milliseconds), for images that are real
///   or without signal, and for implausible options.
/// - RECON_CANCELLED by the interrupt callback of the options.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_field_map(
    precision: u32,
    ndim: u32,
    dims: *const u64,
    coils: u64,
    echoes: u64,
    echo_times: *const f64,
    images: *const c_void,
    options: *const recon_field_map_options,
    field_map: *mut c_void,
    decay_map: *mut c_void,
    report: *mut recon_field_map_report,
) -> recon_status {
    // SAFETY: the structures are the caller's, with arrays of the documented lengths.
    call(|| unsafe {
        if ndim != 2 && ndim != 3 {
            bail!(InvalidSize, "ndim is {ndim}: it must be 2 or 3");
        }
        let mut arrays = CallArrays::default();
        let ndim = ndim as usize;
        let mut axes = [0; 3];
        for (axis, &n) in axes.iter_mut().zip(arrays.input("dims", dims, ndim)?) {
            *axis = size("a size of the image", n)?;
        }
        let dims = &axes[..ndim];
        let (coils, echoes) = (size("coils", coils)?, size("echoes", echoes)?);
        let times = arrays.input("echo_times", echo_times, echoes)?;
        let raw = read_or_initial("options", options)?;
        let options = FieldMapOptions {
            smoothing: raw.smoothing,
            threshold: raw.threshold,
            unwrap: raw.unwrap != 0,
            threads: raw.threads as usize,
            interrupt: interrupt(raw.interrupt, raw.interrupt_data),
        };
        let out = StructOutput::optional(&mut arrays, "report", report)?;
        let voxels = checked_product(dims, "the image")?;
        let all = checked_product(&[voxels, coils, echoes], "the images of echoes")?;
        let estimate = with_precision!(choice("precision", precision)?, T => {
            let images = arrays.input::<Complex<T>>("images", images.cast(), all)?;
            let field_map = arrays.output::<T>("field_map", field_map.cast(), voxels)?;
            let decay_map = arrays.optional_output::<T>("decay_map", decay_map.cast(), voxels)?;
            estimate_field_map(&Echoes { images, dims, coils, times }, &options, field_map, decay_map)?
        });
        if let Some(mut out) = out {
            out.value = recon_field_map_report {
                limit: estimate.limit,
                signal: estimate.signal,
                change: estimate.change,
                jumps: estimate.jumps as u64,
                unwrapped: estimate.unwrapped as u64,
                unresolved: estimate.unresolved as u64,
                period: estimate.period,
                pieces: estimate.pieces as u64,
                undecided: estimate.undecided as u64,
                ..recon_field_map_report::initial()
            };
            out.write();
        }
        Ok(())
    })
}
