//! The use of ISMRMRD acquisitions.

use super::arrays::check_pointer;
use super::enumerations::Enumeration;
use super::status::{call, recon_status};
use crate::base::acquisition::AcquisitionUse;
use std::ffi::{c_char, CStr};

/// Tells what an acquisition is used for, from its ISMRMRD flags. The program and the gadgets decide by it.
///
/// Image data are everything without one of the flags below. Acquisitions for parallel imaging are for calibration, or
/// for calibration and image (IS_PARALLEL_CALIBRATION_AND_IMAGING). Noise measurements are noise and nothing else.
/// Navigators, phase correction, feedback, dummies, surface coil correction and phase stabilisation are not used,
/// whatever other flags they have.
///
/// ismrmrd_flags: `flags` of the ISMRMRD acquisition header.
/// use: written: the sum of the recon_acquisition_purpose that apply; 0 for an acquisition that is not used.
///
/// Errors: RECON_NULL_POINTER.
#[no_mangle]
pub unsafe extern "C" fn recon_acquisition_use(ismrmrd_flags: u64, r#use: *mut u32) -> recon_status {
    call(|| {
        check_pointer("use", r#use)?;
        let purposes = AcquisitionUse::of_flags(ismrmrd_flags).purposes();
        // SAFETY: the caller's number, which is not null.
        unsafe { *r#use = purposes.iter().map(|purpose| purpose.number()).sum() };
        Ok(())
    })
}

/// Returns the use of an acquisition in words, from its ISMRMRD flags: "image", "calibration", "image and calibration",
/// "noise", or the kind of data that is not used ("navigation", "phase correction", ...). Never NULL; not to be freed.
#[no_mangle]
pub extern "C" fn recon_acquisition_use_name(ismrmrd_flags: u64) -> *const c_char {
    let name = AcquisitionUse::of_flags(ismrmrd_flags).c_name();
    CStr::from_bytes_with_nul(name.as_bytes()).unwrap_or(c"").as_ptr()
}
