//! The use of ISMRMRD acquisitions.

use super::arrays::check_pointer;
use super::enumerations::Enumeration;
use super::status::{call, recon_status};
use crate::base::acquisition::AcquisitionUse;
use std::ffi::{c_char, CStr};

/// Determines the use of an acquisition from its ISMRMRD flags. The program and the gadgets use this function.
///
/// - Acquisitions without any of the flags below are image data.
/// - Acquisitions for parallel imaging are for calibration, or for calibration and image
///   (IS_PARALLEL_CALIBRATION_AND_IMAGING).
/// - Noise measurements are for noise only.
/// - Navigators, phase correction, feedback, dummies, surface coil correction and phase stabilisation are not used,
///   regardless of other flags.
///
/// Arguments:
/// - ismrmrd_flags: `flags` of the ISMRMRD acquisition header.
/// - use: sum of the recon_acquisition_purpose that apply, written; 0 for an acquisition that is not used.
///
/// Errors: RECON_NULL_POINTER.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_acquisition_use(ismrmrd_flags: u64, r#use: *mut u32) -> recon_status {
    call(|| {
        check_pointer("use", r#use)?;
        let purposes = AcquisitionUse::of_flags(ismrmrd_flags).purposes();
        // SAFETY: the number is the caller's, and its address is not null.
        unsafe { *r#use = purposes.iter().map(|purpose| purpose.number()).sum() };
        Ok(())
    })
}

/// Returns the use of an acquisition in words, from its ISMRMRD flags: "image", "calibration", "image and calibration",
/// "noise", or the kind of data that is not used ("navigation", "phase correction", ...). The text is never NULL and
/// must not be freed.
#[no_mangle]
pub extern "C" fn recon_acquisition_use_name(ismrmrd_flags: u64) -> *const c_char {
    let name = AcquisitionUse::of_flags(ismrmrd_flags).c_name();
    CStr::from_bytes_with_nul(name.as_bytes()).unwrap_or(c"").as_ptr()
}
