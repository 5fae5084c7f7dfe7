//! recon_cg.

use super::arrays::{size, CallArrays};
use super::enumerations::Enumeration;
use super::inputs;
use super::plan_handle::{call_with_plan, recon_plan, with_plan_snapshot, with_shared_plan, TypedPlan};
use super::status::recon_status;
use super::structs::*;
use super::versioned::{read_or_initial, StructOutput};
use crate::base::error::{bail, checked_product};
use crate::Progress;
use std::ffi::c_void;
use std::ops::ControlFlow;

/// Solves (E^H W E + lambda R^H R) x = E^H W d by conjugate gradients, independently for each image.
///
/// - kspace: complex [samples, coils, frames], read.
/// - image: complex [nx, ny, nz, images, frames], written.
/// - options: may be NULL for the defaults.
/// - report: may be NULL.
///
/// Errors, after which image and report are unchanged:
/// - As recon_fhd.
/// - RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_MEMORY_LIMIT.
/// - RECON_INVALID_ARGUMENT, RECON_TOLERANCE_OUT_OF_RANGE and RECON_SIZE_MISMATCH for implausible options.
/// - RECON_NOT_FINITE if a number overflows.
/// - RECON_UNSUPPORTED for a prior on differences with a voxel list.
/// - RECON_CANCELLED by the interrupt or the progress callback.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_cg(
    plan: *const recon_plan,
    kspace: *const c_void,
    image: *mut c_void,
    options: *const recon_cg_options,
    report: *mut recon_cg_report,
) -> recon_status {
    // SAFETY: plan and structures are the caller's, with arrays of the documented lengths.
    call_with_plan(plan, |plan| unsafe {
        let raw = read_or_initial("options", options)?;
        let mut arrays = CallArrays::default();
        let mut out = StructOutput::optional(&mut arrays, "report", report)?;
        let mut history = None;
        if let Some(out) = out.as_ref().filter(|out| !out.value.residuals.is_null()) {
            let rows = size("iterations", raw.iterations.saturating_add(1))?;
            let needed = checked_product(&[rows, plan.images()], "the history of residuals")?;
            if out.value.residual_capacity < needed as u64 {
                bail!(
                    SizeMismatch,
                    "residuals has room for {} numbers, but {needed} are needed: iterations + 1 for each of {} images",
                    out.value.residual_capacity,
                    plan.images()
                );
            }
            history = Some((arrays.output("residuals", out.value.residuals, needed)?, rows));
        }
        let done = with_plan_snapshot!(plan, p => {
            let kspace = arrays.source("kspace", kspace.cast(), p.kspace_len(), plan.on_device)?;
            let image = arrays.sink("image", image.cast(), p.image_len(), plan.on_device)?;
            let options = inputs::cg_options(&mut arrays, &raw, plan.voxels, p.image_len())?;
            p.cg_with_progress(kspace, image, &options, |at| report_progress(&raw, at))
        })?;
        if let Some((residuals, rows)) = history {
            residuals.fill(f64::NAN);
            for (run, to) in done.runs.iter().zip(residuals.chunks_exact_mut(rows)) {
                to[..run.residuals.len()].copy_from_slice(&run.residuals);
            }
        }
        let last = |image: usize| done.runs[image].residuals.last().copied().unwrap_or(0.0);
        if let (Some(out), Some(worst)) = (&mut out, (0..done.runs.len()).max_by(|&a, &b| last(a).total_cmp(&last(b))))
        {
            let (previous, run) = (out.value, &done.runs[worst]);
            out.value = recon_cg_report {
                stop: run.stop.number(),
                images: done.runs.len() as u64,
                worst_image: worst as u64,
                iterations: run.iterations() as u64,
                residual: last(worst),
                lambda: done.lambda,
                q_seconds: done.q_seconds,
                adjoint_seconds: done.adjoint_seconds,
                iteration_seconds: done.iteration_seconds,
                ..previous
            };
        }
        if let Some(out) = out {
            out.write();
        }
        Ok(())
    })
}

/// Calls the caller's progress callback, if there is one.
///
/// # Safety The progress callback of `options` may be called.
unsafe fn report_progress(options: &recon_cg_options, at: &Progress) -> ControlFlow<()> {
    let Some(callback) = options.progress else { return ControlFlow::Continue(()) };
    let progress = recon_progress {
        struct_size: size_of::<recon_progress>() as u32,
        reserved: 0,
        image: at.image as u64,
        images: at.images as u64,
        iteration: at.iteration as u64,
        iterations: at.iterations as u64,
        residual: at.residual,
    };
    // SAFETY: the caller's promise; the structure lives until the callback returns.
    match unsafe { callback(&raw const progress, options.user_data) } {
        0 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    }
}
