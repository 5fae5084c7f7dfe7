//! Status codes, the text of the last error, and the one place where panics stop.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::float_mode::FloatMode;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::CStr;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Once;

/// What became of a call. Numbers never change their meaning; later versions may add some.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum recon_status {
    /// Done; outputs are written.
    RECON_OK = 0,
    /// A pointer that must not be null was null.
    RECON_NULL_POINTER = 1,
    /// A size or count is zero or otherwise impossible.
    RECON_INVALID_SIZE = 2,
    /// A size, or a product of sizes, does not fit the address space.
    RECON_SIZE_OVERFLOW = 3,
    /// Two counts that must agree do not.
    RECON_SIZE_MISMATCH = 4,
    /// A coordinate, weight, sample or voxel is NaN or infinite; the message says which.
    RECON_NOT_FINITE = 5,
    /// A k-space coordinate lies outside [-0.5, 0.5) cycles per voxel; the message says which.
    RECON_COORDINATE_OUT_OF_RANGE = 6,
    /// The tolerance cannot be met, or is no tolerance at all.
    RECON_TOLERANCE_OUT_OF_RANGE = 7,
    /// An enumeration holds a value that this version does not know; the message lists those it does.
    RECON_UNKNOWN_VALUE = 8,
    /// A structure announces a struct_size that this version does not know: call its _init function first.
    RECON_UNKNOWN_STRUCT_SIZE = 9,
    /// Another argument has a value that makes no sense: a misaligned pointer, arrays that overlap, a negative weight.
    RECON_INVALID_ARGUMENT = 10,
    /// The memory limit is too small; the message says the bytes needed.
    RECON_MEMORY_LIMIT = 11,
    /// The host is out of memory.
    RECON_OUT_OF_HOST_MEMORY = 12,
    /// The device is out of memory.
    RECON_OUT_OF_DEVICE_MEMORY = 13,
    /// There is no device of the kind asked for.
    RECON_NO_DEVICE = 14,
    /// A driver is there, but a library it needs (NVRTC) is not, or they do not fit together; the message says what to
    /// install.
    RECON_DRIVER_INCOMPLETE = 15,
    /// The progress callback or the interrupt callback asked to stop.
    RECON_CANCELLED = 16,
    /// This version cannot do what was asked.
    RECON_UNSUPPORTED = 17,
    /// A file could not be read or written.
    RECON_IO = 18,
    /// A file was read but its contents are wrong.
    RECON_BAD_FILE = 19,
    /// A defect in this library: please report the message. Outputs of the call may be half written.
    RECON_INTERNAL = 20,
    /// The GPU failed while computing. Outputs of the call may be half written, and the GPU may be of no use to this
    /// process any more.
    RECON_DEVICE_FAILED = 21,
}
use recon_status::*;

impl From<ErrorKind> for recon_status {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::NullPointer => RECON_NULL_POINTER,
            ErrorKind::InvalidSize => RECON_INVALID_SIZE,
            ErrorKind::SizeOverflow => RECON_SIZE_OVERFLOW,
            ErrorKind::SizeMismatch => RECON_SIZE_MISMATCH,
            ErrorKind::NotFinite => RECON_NOT_FINITE,
            ErrorKind::CoordinateOutOfRange => RECON_COORDINATE_OUT_OF_RANGE,
            ErrorKind::ToleranceOutOfRange => RECON_TOLERANCE_OUT_OF_RANGE,
            ErrorKind::UnknownValue => RECON_UNKNOWN_VALUE,
            ErrorKind::UnknownStructSize => RECON_UNKNOWN_STRUCT_SIZE,
            ErrorKind::InvalidArgument => RECON_INVALID_ARGUMENT,
            ErrorKind::MemoryLimit => RECON_MEMORY_LIMIT,
            ErrorKind::OutOfHostMemory => RECON_OUT_OF_HOST_MEMORY,
            ErrorKind::OutOfDeviceMemory => RECON_OUT_OF_DEVICE_MEMORY,
            ErrorKind::NoDevice => RECON_NO_DEVICE,
            ErrorKind::DriverIncomplete => RECON_DRIVER_INCOMPLETE,
            ErrorKind::Cancelled => RECON_CANCELLED,
            ErrorKind::Unsupported => RECON_UNSUPPORTED,
            ErrorKind::Io => RECON_IO,
            ErrorKind::BadFile => RECON_BAD_FILE,
            ErrorKind::Internal => RECON_INTERNAL,
            ErrorKind::DeviceFailed => RECON_DEVICE_FAILED,
        }
    }
}

/// The meaning of a status, as static text.
pub(super) fn text(status: i32) -> &'static CStr {
    const TEXTS: [&CStr; 22] = [
        c"ok",
        c"null pointer",
        c"invalid size",
        c"size overflow",
        c"sizes do not match",
        c"number is NaN or infinite",
        c"coordinate out of range",
        c"tolerance out of range",
        c"unknown value of an enumeration",
        c"unknown struct_size",
        c"invalid argument",
        c"memory limit too small",
        c"out of host memory",
        c"out of device memory",
        c"no such device",
        c"driver incomplete",
        c"cancelled",
        c"unsupported",
        c"file could not be read or written",
        c"file has wrong contents",
        c"internal error",
        c"device failed",
    ];
    usize::try_from(status).ok().and_then(|i| TEXTS.get(i)).copied().unwrap_or(c"unknown status")
}

/// Bytes of a message, its final zero included.
const LONGEST: usize = 2048;

thread_local! {
    /// In one place for the life of the thread: a pointer taken before a failure reads its message afterwards.
    static MESSAGE: RefCell<[u8; LONGEST]> = const { RefCell::new([0; LONGEST]) };
    /// This thread is inside a call, so a panic is ours to report.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// Where this thread's last panic began.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The message of this thread's last failure; empty if there was none.
pub(super) fn message() -> *const std::ffi::c_char {
    MESSAGE.try_with(|m| m.borrow().as_ptr().cast()).unwrap_or(c"".as_ptr())
}

fn fail(error: &Error) -> recon_status {
    log::error!("{error}");
    let mut text = error.message().replace('\0', "");
    while text.len() >= LONGEST {
        text.pop();
    }
    // A thread that is ending has no place for messages any more; it still gets its status.
    let _ = MESSAGE.try_with(|m| {
        let mut place = m.borrow_mut();
        place[..text.len()].copy_from_slice(text.as_bytes());
        place[text.len()] = 0;
    });
    error.kind().into()
}

/// Runs the body of a C function: its errors and panics become a status and a message, and the caller's floating-point
/// mode returns with it.
pub(super) fn call(body: impl FnOnce() -> Result<()>) -> recon_status {
    silence_panics();
    let _mode = FloatMode::standard();
    let outer = INSIDE.try_with(|i| i.replace(true)).unwrap_or(true);
    let outcome = catch_unwind(AssertUnwindSafe(body));
    let _ = INSIDE.try_with(|i| i.set(outer));
    match outcome {
        Ok(Ok(())) => RECON_OK,
        Ok(Err(error)) => fail(&error),
        Err(payload) => fail(&defect(payload)),
    }
}

/// The error that a panic's payload stands for.
fn defect(payload: Box<dyn Any + Send>) -> Error {
    let what = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(s), _) => (*s).to_owned(),
        (_, Some(s)) => s.clone(),
        _ => "a panic without a message".to_owned(),
    };
    // Whatever else it holds might panic again when dropped.
    std::mem::forget(payload);
    let place = PLACE.try_with(|p| std::mem::take(&mut *p.borrow_mut())).unwrap_or_default();
    Error::new(ErrorKind::Internal, format!("a defect in recon, please report it: {what}{place}"))
}

/// Keeps panics that [`call`] will report from being printed as well; all others go the way they went before.
fn silence_panics() {
    static ONCE: Once = Once::new();
    if ONCE.is_completed() || std::thread::panicking() {
        return;
    }
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let ours = INSIDE.try_with(Cell::get).unwrap_or(false);
            // A plan's own threads hand their panics to the caller.
            let worker = std::thread::current().name().is_some_and(|n| n.starts_with("recon "));
            if !(ours || worker) {
                return before(info);
            }
            let place = info.location().map(|l| format!(" ({}:{})", l.file(), l.line())).unwrap_or_default();
            let _ = PLACE.try_with(|p| *p.borrow_mut() = place);
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last() -> String {
        // SAFETY: the message is a C string that lives until this thread's next failure.
        unsafe { CStr::from_ptr(message()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_panic_becomes_a_status_and_a_message() {
        assert_eq!(call(|| panic!("seven is {}", 7)), RECON_INTERNAL);
        assert!(last().contains("seven is 7") && last().contains("status.rs"), "{}", last());
        assert_eq!(call(|| std::panic::panic_any(3)), RECON_INTERNAL);
        assert!(last().contains("without a message"), "{}", last());
        assert_eq!(call(|| Ok(())), RECON_OK);
        assert_eq!(call(|| Err(Error::new(ErrorKind::BadFile, "cut\0short"))), RECON_BAD_FILE);
        assert_eq!(last(), "cutshort");
        let place = message();
        assert_eq!(call(|| Err(Error::new(ErrorKind::Io, "\u{fc}".repeat(LONGEST)))), RECON_IO);
        assert_eq!((last(), message()), ("\u{fc}".repeat(LONGEST / 2 - 1), place));
    }

    #[test]
    fn a_thread_has_its_own_message() {
        assert_eq!(call(|| Err(Error::new(ErrorKind::Io, "mine"))), RECON_IO);
        std::thread::spawn(|| assert_eq!(last(), "")).join().unwrap();
        assert_eq!(last(), "mine");
    }

    #[test]
    fn every_status_has_a_text() {
        assert_eq!(text(RECON_OK as i32), c"ok");
        assert_eq!(text(RECON_INTERNAL as i32), c"internal error");
        assert_eq!(text(RECON_CANCELLED as i32), c"cancelled");
        assert_eq!(text(RECON_DEVICE_FAILED as i32), c"device failed");
        for unknown in [-1, RECON_DEVICE_FAILED as i32 + 1, i32::MIN, i32::MAX] {
            assert_eq!(text(unknown), c"unknown status");
        }
    }
}
