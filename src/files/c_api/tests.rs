//! Tests of the interface in C: errors, panics and warnings. matlab/tests has those of the functions.

use super::outcome::{call, library_call};
use super::*;
use recon::error::{Error, ErrorKind};
use recon::ffi::{recon_status, recon_trajectory_cartesian};
use std::ffi::{CStr, CString};
use std::ptr::{null, null_mut};

fn message() -> String {
    // SAFETY: a C string that is valid until the next failure.
    unsafe { CStr::from_ptr(recon_files_message()) }.to_str().unwrap().to_owned()
}

fn warnings() -> Vec<(u32, String)> {
    let mut kind = 0;
    // SAFETY: the number is written, and a text that is not null is a C string.
    let read = |i| unsafe {
        let text = recon_files_warning(i, &mut kind);
        (!text.is_null()).then(|| (kind, CStr::from_ptr(text).to_str().unwrap().to_owned()))
    };
    (0..).map_while(read).collect()
}

#[test]
fn errors_and_panics_become_statuses() {
    assert_eq!(call(|| Ok(())), recon_status::RECON_OK);
    let bad = || Err(Error::new(ErrorKind::BadFile, "a file\0cut short"));
    assert_eq!((call(bad), message()), (recon_status::RECON_BAD_FILE, "a file cut short".to_owned()));
    assert_eq!(call(|| panic!("at the disco")), recon_status::RECON_INTERNAL);
    assert!(message().contains("please report"), "{}", message());
    // SAFETY: NULL is an error.
    let status = library_call(unsafe { recon_trajectory_cartesian(0, 1, null(), null_mut(), null_mut(), null_mut()) });
    assert_eq!(status.unwrap_err().kind(), ErrorKind::NullPointer);
}

#[test]
fn warnings_of_a_call_are_its_own() {
    assert_eq!(
        call(|| {
            log::warn!("first");
            log::info!("not a warning");
            log::warn!("second");
            log::warn!("first");
            Ok(())
        }),
        recon_status::RECON_OK
    );
    assert_eq!(warnings(), [(0, "first".to_owned()), (0, "second".to_owned())]);
    log::warn!("outside");
    assert_eq!(warnings().len(), 2);
    assert_eq!(call(|| Ok(())), recon_status::RECON_OK);
    assert_eq!(warnings(), []);
}

#[test]
fn names_are_checked() {
    let mut images = null_mut();
    let missing = CString::new("/nowhere/x.h5").unwrap();
    // SAFETY: C strings, and a pointer to write.
    unsafe {
        assert_eq!(recon_files_read_images(null(), &mut images), recon_status::RECON_NULL_POINTER);
        assert_eq!(recon_files_read_images(c"\xff.h5".as_ptr(), &mut images), recon_status::RECON_INVALID_ARGUMENT);
        assert!(message().contains("UTF-8"), "{}", message());
        assert_eq!(recon_files_read_images(missing.as_ptr(), &mut images), recon_status::RECON_IO);
        assert!(message().starts_with("/nowhere/x.h5: "), "{}", message());
        assert!(images.is_null());
        recon_files_free_images(images);
        recon_files_free_raw(null_mut());
    }
}
