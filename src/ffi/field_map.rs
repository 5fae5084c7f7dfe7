//! Field maps from images of several echoes.

use super::arrays::{size, Arrays};
use super::enumerations::{choice, Precision};
use super::scan::{interrupt, with_precision};
use super::status::{call, recon_status};
use super::structs::*;
use crate::base::error::{bail, checked_product};
use crate::reconstruction::field_map::{estimate_field_map, Echoes, FieldMapOptions};
use crate::Complex;
use std::ffi::c_void;

/// The field map of gradient-echo images: off-resonance f in Hz, with the sign of the model, in which the signal at
/// time t is multiplied by exp(-i 2 pi f t). From the phase that grows from echo to echo, whatever
/// the coils' phases; from three echoes on by a weighted fit. Where the phase wraps it is unwrapped along neighbours,
/// and recon_last_warning tells it (RECON_WARNING_WRAPS). The map is smoothed by weights, which fills voxels without
/// signal.
///
/// Each connected piece of the object may be off by a multiple of the report's period, 1 / spacing of evenly spaced
/// echoes, which changes no phase. The multiple with the median nearest 0 Hz is taken: an object at 450 Hz, measured
/// by echoes 2.5 ms apart, comes out at 50 Hz. If the median of a piece is close to half a period, recon_last_warning
/// names both values.
///
/// precision: a recon_precision, of all arrays but echo_times.
/// ndim: 2 or 3. dims: voxels along x, y and, with ndim 3, z: [ndim], read.
/// coils: of the images, which are not combined; or 1.
/// echoes: 2 or more. echo_times: in seconds, increasing, [echoes] doubles, read. Only their differences matter.
/// images: complex [nx, ny, nz, coils, echoes], read.
/// options: may be NULL for the defaults.
/// field_map: [nx, ny, nz] reals, written: Hz.
/// decay_map: [nx, ny, nz] reals, written: R2* in 1/s from the magnitudes, none negative. Or NULL.
/// report: may be NULL.
///
/// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_SIZE_OVERFLOW; RECON_INVALID_SIZE
/// for sizes of 0, another ndim and fewer than two echoes; RECON_NOT_FINITE with the index; RECON_INVALID_ARGUMENT for
/// echo times that do not increase or are beyond 1 s (milliseconds), for images that are real or without signal, and
/// for options without sense; RECON_OUT_OF_HOST_MEMORY; RECON_CANCELLED by an interrupt callback in the options.
#[no_mangle]
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
    // SAFETY: the caller's structures, and arrays as long as its numbers say.
    call(|| unsafe {
        if ndim != 2 && ndim != 3 {
            bail!(InvalidSize, "ndim is {ndim}: 2 or 3 are supported");
        }
        let mut arrays = Arrays::default();
        let ndim = ndim as usize;
        let mut axes = [0; 3];
        for (axis, &n) in axes.iter_mut().zip(arrays.input("dims", dims, ndim)?) {
            *axis = size("a size of the image", n)?;
        }
        let dims = &axes[..ndim];
        let (coils, echoes) = (size("coils", coils)?, size("echoes", echoes)?);
        let times = arrays.input("echo_times", echo_times, echoes)?;
        let raw = if options.is_null() { recon_field_map_options::initial() } else { read("options", options)? };
        let options = FieldMapOptions {
            smoothing: raw.smoothing,
            threshold: raw.threshold,
            unwrap: raw.unwrap != 0,
            threads: raw.threads as usize,
            interrupt: interrupt(raw.interrupt, raw.interrupt_data),
        };
        let out = match report.is_null() {
            true => None,
            false => Some(Out::new(&mut arrays, "report", report)?),
        };
        let voxels = checked_product(dims, "the image")?;
        let all = checked_product(&[voxels, coils, echoes], "the images of echoes")?;
        let found = with_precision!(choice("precision", precision)?, T => {
            let images = arrays.input::<Complex<T>>("images", images.cast(), all)?;
            let field_map = arrays.output::<T>("field_map", field_map.cast(), voxels)?;
            let decay_map = arrays.optional_output::<T>("decay_map", decay_map.cast(), voxels)?;
            estimate_field_map(&Echoes { images, dims, coils, times }, &options, field_map, decay_map)?
        });
        if let Some(mut out) = out {
            out.value = recon_field_map_report {
                limit: found.limit,
                signal: found.signal,
                change: found.change,
                jumps: found.jumps as u64,
                unwrapped: found.unwrapped as u64,
                unresolved: found.unresolved as u64,
                period: found.period,
                pieces: found.pieces as u64,
                undecided: found.undecided as u64,
                ..recon_field_map_report::initial()
            };
            out.write();
        }
        Ok(())
    })
}
