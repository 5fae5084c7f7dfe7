//! Status, message and warnings of a call of the C interface.
//!
//! The library has the same for its own functions, but they are private to it: an error here must not depend on them.

use log::{Level, LevelFilter, Log, Metadata, Record};
use recon::error::{bail, Error, ErrorKind, Result};
use recon::ffi::{recon_last_error_message, recon_last_warning, recon_status};
use std::cell::{Cell, RefCell};
use std::ffi::{c_char, CStr, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::PathBuf;
use std::ptr::null;
use std::sync::Once;

/// A warning of the running call.
struct CallWarning {
    /// A recon_warning; 0 for a warning about a file.
    kind: u32,
    text: CString,
}

thread_local! {
    /// The message of this thread's last failure.
    static MESSAGE: RefCell<CString> = RefCell::default();
    /// The warnings of this thread's last call.
    static WARNINGS: RefCell<Vec<CallWarning>> = const { RefCell::new(Vec::new()) };
    /// Whether this thread is inside a call.
    static IS_COLLECTING: Cell<bool> = const { Cell::new(false) };
}

/// Collects the warnings that readers and writers log.
struct WarningCollector;

static COLLECTOR: WarningCollector = WarningCollector;

impl Log for WarningCollector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Warn
    }

    fn log(&self, record: &Record<'_>) {
        if record.level() == Level::Warn && IS_COLLECTING.try_with(Cell::get).unwrap_or(false) {
            add_warning(0, &record.args().to_string());
        }
    }

    fn flush(&self) {}
}

fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// Adds a warning. An equal text only receives the kind, since the library also logs its warnings.
fn add_warning(kind: u32, text: &str) {
    let text = c_text(text);
    let _ = WARNINGS.try_with(|all| {
        let mut all = all.borrow_mut();
        match all.iter_mut().find(|warning| warning.text == text) {
            Some(warning) => warning.kind = warning.kind.max(kind),
            None => all.push(CallWarning { kind, text }),
        }
    });
}

/// Runs the body of a C function. Errors and panics become a status and a message.
pub fn call(body: impl FnOnce() -> Result<()>) -> recon_status {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // A process with a logger of its own shows the warnings there.
        if log::set_logger(&COLLECTOR).is_ok() {
            log::set_max_level(log::max_level().max(LevelFilter::Warn));
        }
    });
    let _ = WARNINGS.try_with(|all| all.borrow_mut().clear());
    let _ = IS_COLLECTING.try_with(|is| is.set(true));
    let outcome = catch_unwind(AssertUnwindSafe(body));
    let _ = IS_COLLECTING.try_with(|is| is.set(false));
    let error = match outcome {
        Ok(Ok(())) => return recon_status::RECON_OK,
        Ok(Err(error)) => error,
        Err(payload) => {
            // Dropping an unknown payload could panic again.
            std::mem::forget(payload);
            Error::new(ErrorKind::Internal, "a defect in recon's readers and writers of files, please report it")
        }
    };
    let _ = MESSAGE.try_with(|message| *message.borrow_mut() = c_text(error.message()));
    error.kind().into()
}

/// Returns the outcome of a call of the library, and adds its warnings to those of this call.
pub fn library_call(status: recon_status) -> Result<()> {
    // SAFETY: the message is a C string that is valid until the library's next failure.
    let message = || unsafe { CStr::from_ptr(recon_last_error_message()) }.to_string_lossy().into_owned();
    if status != recon_status::RECON_OK {
        let kind = ErrorKind::ALL.iter().copied().find(|&kind| recon_status::from(kind) == status);
        return Err(Error::new(kind.unwrap_or(ErrorKind::Internal), message()));
    }
    for index in 0.. {
        let (mut kind, mut text) = (0, null());
        // SAFETY: both are written. The text is valid until the library's next call.
        let status = unsafe { recon_last_warning(index, &mut kind, &mut text) };
        if status != recon_status::RECON_OK || text.is_null() {
            break;
        }
        // SAFETY: not null, and a C string.
        add_warning(kind, &unsafe { CStr::from_ptr(text) }.to_string_lossy());
    }
    Ok(())
}

/// Returns the message of this thread's last failure, in UTF-8. It is valid until the next failure.
#[no_mangle]
pub extern "C" fn recon_files_message() -> *const c_char {
    MESSAGE.try_with(|message| message.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// Returns the text of warning `index` of this thread's last call of a reader or writer, in UTF-8, and writes its
/// recon_warning, or 0 for a warning about a file. NULL if there are no more. It is valid until the next call.
#[no_mangle]
pub unsafe extern "C" fn recon_files_warning(index: u64, kind: *mut u32) -> *const c_char {
    let read = |all: &RefCell<Vec<CallWarning>>| {
        all.borrow().get(index as usize).map(|warning| (warning.kind, warning.text.as_ptr()))
    };
    match WARNINGS.try_with(read).ok().flatten() {
        Some((number, text)) => {
            // SAFETY: the caller's number.
            unsafe { *kind = number };
            text
        }
        None => null(),
    }
}

/// Returns a text of the caller.
///
/// # Safety
/// `text` is null or a C string.
pub unsafe fn text_of<'a>(what: &str, text: *const c_char) -> Result<&'a str> {
    if text.is_null() {
        bail!(NullPointer, "{what} is NULL");
    }
    // SAFETY: not null, and a C string.
    match unsafe { CStr::from_ptr(text) }.to_str() {
        Ok(text) => Ok(text),
        Err(_) => bail!(InvalidArgument, "{what} is not UTF-8: rename the file with characters of Unicode"),
    }
}

/// Returns the name of a file.
///
/// # Safety
/// `path` is null or a C string.
pub unsafe fn path_of(path: *const c_char) -> Result<PathBuf> {
    // SAFETY: the caller's promise.
    unsafe { text_of("the file's name", path) }.map(PathBuf::from)
}

/// Returns an array of the caller; empty if `count` is 0.
///
/// # Safety
/// `count` is 0, or `start` points to `count` elements that are not written during 'a.
pub unsafe fn array_of<'a, E>(what: &str, start: *const E, count: usize) -> Result<&'a [E]> {
    match count {
        0 => Ok(&[]),
        _ if start.is_null() || !start.is_aligned() => bail!(NullPointer, "{what} is NULL or misaligned"),
        // SAFETY: not null and aligned; the length is the caller's promise.
        _ => Ok(unsafe { std::slice::from_raw_parts(start, count) }),
    }
}
