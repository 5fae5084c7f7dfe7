//! Version, texts of statuses, words of options, the last error message, the log callback, and GPUs.

use super::arrays::{check_pointer, CallArrays};
use super::enumerations;
use super::logging;
use super::status::{self, call, recon_status, status_number};
use super::structs::{recon_device_properties, recon_log_callback};
use super::versioned::{put_text, StructOutput, VersionedStruct};
use crate::backend::cuda::{self, runtime};
use crate::base::error::Result;
use std::borrow::Cow;
use std::ffi::{c_char, c_void, CStr};

/// Returns a C string as text; bytes that are not UTF-8 are replaced.
///
/// # Safety
/// `text` is null or a C string that lives as long as the result.
unsafe fn text_at<'a>(name: &str, text: *const c_char) -> Result<Cow<'a, str>> {
    check_pointer(name, text)?;
    // SAFETY: `text` is not null, and by the caller's promise a C string.
    Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

/// Returns the version of the library as text, "major.minor.patch". The text is never NULL and must not be freed.
#[no_mangle]
pub extern "C" fn recon_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Returns the meaning of a status in a few words. The text is never NULL, also for a number that is not a status, and
/// must not be freed.
#[no_mangle]
pub extern "C" fn recon_status_string(status: status_number) -> *const c_char {
    status::text(status).as_ptr()
}

/// Returns the name of a status in one word, as in MATLAB's error identifiers: "InvalidSize" for RECON_INVALID_SIZE.
/// The text is never NULL and must not be freed. It is "UnknownStatus" for a number that is not a status.
#[no_mangle]
pub extern "C" fn recon_status_name(status: status_number) -> *const c_char {
    status::name(status).as_ptr()
}

/// Finds the number of an option's value by its word, for hosts whose users write words, such as MATLAB. For example,
/// option "window" and word "gaussian" give RECON_WINDOW_GAUSSIAN.
///
/// Options are "precision" (words "single" and "double"), "basis", "method", "normal", "device", "simd", "window",
/// "filter", "prior", "lambda_unit", "stop", "density", "combine" ("rss" and "adaptive"), "order" ("linear" and
/// "golden"), "coil_model", "part", "scale", "warning", "phase", "purpose" and "level". Other words are the ends of the
/// constants' names in lower case, with - for _.
///
/// Errors:
/// - RECON_NULL_POINTER.
/// - RECON_UNKNOWN_VALUE if this version does not know the option or the word. The message lists those that it knows.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_choice(option: *const c_char, word: *const c_char, value: *mut u32) -> recon_status {
    // SAFETY: the caller's C strings, and a number to write.
    call(|| unsafe {
        check_pointer("value", value)?;
        let number = enumerations::number_of(&text_at("option", option)?, &text_at("word", word)?)?;
        *value = number;
        Ok(())
    })
}

/// Returns the word for a number of an option, see recon_choice. The text is never NULL and must not be freed. It is
/// empty if the option or the number is unknown.
#[no_mangle]
pub unsafe extern "C" fn recon_choice_word(option: *const c_char, value: u32) -> *const c_char {
    if option.is_null() {
        return c"".as_ptr();
    }
    // SAFETY: the caller's C string.
    enumerations::word_of(&unsafe { CStr::from_ptr(option) }.to_string_lossy(), value).as_ptr()
}

/// Returns the message of this thread's last failed call in UTF-8: cause, value and remedy. The text is never NULL and
/// must not be freed. It is empty before the first failure. The thread's next failure overwrites it in place.
#[no_mangle]
pub extern "C" fn recon_last_error_message() -> *const c_char {
    status::message()
}

/// Sets the callback that receives the library's log messages of `level` (a recon_log_level) and above, with
/// `user_data`. It replaces the previous callback; NULL removes it. After the return the previous callback is not
/// called any more. Without a callback the library is silent. The callback is the only setting of the whole process.
///
/// Errors:
/// - RECON_UNKNOWN_VALUE.
/// - RECON_INVALID_ARGUMENT if called from within the callback.
/// - RECON_UNSUPPORTED if the library is linked statically into a Rust program that has its own logger.
#[no_mangle]
pub unsafe extern "C" fn recon_set_log_callback(
    callback: recon_log_callback,
    user_data: *mut c_void,
    level: u32,
) -> recon_status {
    call(|| logging::set(callback, user_data, level))
}

/// Returns the number of GPUs that the driver reports; 0 without a driver. It cannot fail.
#[no_mangle]
pub extern "C" fn recon_device_count() -> u32 {
    let mut count = 0;
    call(|| {
        count = runtime::count();
        Ok(())
    });
    count
}

/// Describes the GPU with index `index`, counted from 0.
///
/// Errors:
/// - RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE.
/// - RECON_NO_DEVICE if this GPU or the driver does not exist.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_device_info(index: u32, properties: *mut recon_device_properties) -> recon_status {
    call(|| {
        // SAFETY: the caller's structure.
        let mut out = unsafe { StructOutput::new(&mut CallArrays::default(), "properties", properties) }?;
        let gpu = runtime::properties(index)?;
        out.value = recon_device_properties {
            multiprocessors: gpu.multiprocessors,
            compute_major: gpu.capability.0,
            compute_minor: gpu.capability.1,
            memory_bytes: gpu.memory as u64,
            memory_free_bytes: cuda::free_memory(index)? as u64,
            ..recon_device_properties::initial()
        };
        put_text(&mut out.value.name, &gpu.name);
        out.write();
        Ok(())
    })
}
