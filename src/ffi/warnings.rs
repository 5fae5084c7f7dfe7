//! Warnings of calls and of plans.

use super::arrays::CallArrays;
use super::enumerations::{Enumeration, WarningNumber};
use super::plan_handle::{call_with_plan, recon_plan, warning_number};
use super::status::{self, call_keeping_warnings, recon_status};
use std::ffi::c_char;

/// Reads the warning with index `index`, from 0, of this thread's last call. A warning is about a result that may not
/// be the intended one. Each warning was also logged at RECON_LOG_WARNING. Warnings of a plan are read by
/// recon_plan_warning.
///
/// - kind: a recon_warning, written; RECON_WARNING_NONE if there are no more warnings.
/// - text: finding and remedy in UTF-8, written; NULL if there are no more warnings. It is valid until this thread
///   calls any function other than this one and recon_last_error_message.
///
/// Errors: RECON_NULL_POINTER.
#[no_mangle]
pub unsafe extern "C" fn recon_last_warning(index: u64, kind: *mut u32, text: *mut *const c_char) -> recon_status {
    // SAFETY: a number and an address to write.
    call_keeping_warnings(|| unsafe {
        let mut arrays = CallArrays::default();
        let kind = &mut arrays.output("kind", kind, 1)?[0];
        let text = &mut arrays.output("text", text, 1)?[0];
        let warning = usize::try_from(index).ok().and_then(status::warning);
        *kind = warning.map_or(WarningNumber::None.number(), |(kind, _)| warning_number(kind));
        *text = warning.map_or(std::ptr::null(), |(_, text)| text);
        Ok(())
    })
}

/// Reads the warning with index `index`, from 0, about images of a plan that may not be the intended ones. Each warning
/// is also logged at RECON_LOG_WARNING: when the plan is created, or when a new trajectory causes the first warning of
/// its kind. RECON_WARNING_THREADS is logged by the first call that ends after all threads were requested.
///
/// - kind: a recon_warning, written; RECON_WARNING_NONE if there are no more warnings.
/// - text: finding and remedy in UTF-8, written; NULL if there are no more warnings. It is valid until the plan is
///   destroyed or its trajectory is replaced.
///
/// Errors: RECON_NULL_POINTER.
#[no_mangle]
pub unsafe extern "C" fn recon_plan_warning(
    plan: *const recon_plan,
    index: u64,
    kind: *mut u32,
    text: *mut *const c_char,
) -> recon_status {
    // SAFETY: the caller's plan, and a number and an address to write.
    call_with_plan(plan, |plan| unsafe {
        let mut warnings = plan.warnings.lock().unwrap_or_else(|e| e.into_inner());
        let warnings = warnings.get_or_insert_with(|| plan.typed.warnings());
        let mut arrays = CallArrays::default();
        let kind = &mut arrays.output("kind", kind, 1)?[0];
        let text = &mut arrays.output("text", text, 1)?[0];
        let warning = usize::try_from(index).ok().and_then(|i| warnings.get(i));
        *kind = warning.map_or(WarningNumber::None.number(), |(kind, _)| *kind);
        *text = warning.map_or(std::ptr::null(), |(_, text)| text.as_ptr());
        Ok(())
    })
}
