//! Status codes, the text of the last error, and the one place where panics stop.

use crate::base::error::{error_kinds, Error, ErrorKind, Result};
use crate::base::float_mode::FloatMode;
use crate::base::headroom;
use crate::base::warning::{self, Warning, WarningKind};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};

/// Defines what follows, and its text.
macro_rules! with_source {
    ($source:ident, $($item:tt)+) => {
        $($item)+
        pub(super) const $source: &str = stringify!($($item)+);
    };
}
pub(super) use with_source;
macro_rules! define_statuses {
    ($($(#[doc = $doc:literal])+ $kind:ident = $number:literal, $status:ident, $text:literal;)+) => {
        with_source! {
            SOURCE,
            /// What became of a call. Numbers never change their meaning; later versions may add some.
            #[repr(C)]
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub enum recon_status {
                /// Done; outputs are written.
                RECON_OK = 0,
                $($(#[doc = $doc])+ $status = $number,)+
            }
        }

        impl From<ErrorKind> for recon_status {
            fn from(kind: ErrorKind) -> Self {
                match kind {
                    $(ErrorKind::$kind => recon_status::$status,)+
                }
            }
        }

        /// The name of a status in one word, and its meaning.
        fn entry(status: i32) -> [&'static str; 2] {
            match status {
                0 => ["Ok\0", "ok\0"],
                $($number => [concat!(stringify!($kind), "\0"), concat!($text, "\0")],)+
                _ => ["UnknownStatus\0", "unknown status\0"],
            }
        }
    };
}
error_kinds!(define_statuses);
use recon_status::*;

/// The name of a status in one word.
pub(super) fn name(status: i32) -> &'static CStr {
    CStr::from_bytes_with_nul(entry(status)[0].as_bytes()).expect("a zero at the end")
}

/// The meaning of a status.
pub(super) fn text(status: i32) -> &'static CStr {
    CStr::from_bytes_with_nul(entry(status)[1].as_bytes()).expect("a zero at the end")
}

/// Bytes of a message, its final zero included.
const LONGEST: usize = 2048;

thread_local! {
    /// In one place for the life of the thread: a pointer taken before a failure reads its message afterwards.
    static MESSAGE: RefCell<[u8; LONGEST]> = const { RefCell::new([0; LONGEST]) };
    /// What this thread's last call warned of.
    static WARNINGS: RefCell<Vec<(WarningKind, CString)>> = const { RefCell::new(Vec::new()) };
    /// This thread is inside a call, so a panic is ours to report.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// Where this thread's last panic began.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps the warnings of a call that has ended.
fn keep(raised: &[Warning]) {
    let text = |w: &Warning| CString::new(w.message.replace('\0', " ")).unwrap_or_default();
    let all = raised.iter().map(|w| (w.kind, text(w))).collect();
    let _ = WARNINGS.try_with(|kept| *kept.borrow_mut() = all);
}

/// The kind and text of warning `index` of this thread's last call.
pub(super) fn warning(index: usize) -> Option<(WarningKind, *const std::ffi::c_char)> {
    let kept = |kept: &RefCell<Vec<(WarningKind, CString)>>| kept.borrow().get(index).map(|(k, t)| (*k, t.as_ptr()));
    WARNINGS.try_with(kept).ok().flatten()
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

/// Reports that there is no memory even for small things, without allocating any.
fn fail_without_memory() -> recon_status {
    const TEXT: &str = "less than 64 KiB of the host's memory are free: free memory, or use a smaller problem";
    let _ = MESSAGE.try_with(|m| {
        let mut place = m.borrow_mut();
        place[..TEXT.len()].copy_from_slice(TEXT.as_bytes());
        place[TEXT.len()] = 0;
    });
    RECON_OUT_OF_HOST_MEMORY
}

/// Runs the body of a C function: its errors and panics become a status and a message, and the caller's floating-point
/// mode returns with it.
pub(super) fn call(body: impl FnOnce() -> Result<()>) -> recon_status {
    if !headroom::is_there() {
        keep(&[]);
        return fail_without_memory();
    }
    call_that(true, body)
}

/// As [`call`], for functions that give memory back and need none.
pub(super) fn call_that_frees(body: impl FnOnce()) {
    call_that(true, || {
        body();
        Ok(())
    });
}

/// As [`call`]; the warnings of the call before stay, to be read.
pub(super) fn call_about_the_last(body: impl FnOnce() -> Result<()>) -> recon_status {
    call_that(false, body)
}

fn call_that(warns: bool, body: impl FnOnce() -> Result<()>) -> recon_status {
    silence_panics();
    let _mode = FloatMode::standard();
    let outer = INSIDE.try_with(|i| i.replace(true)).unwrap_or(true);
    let (outcome, raised) = warning::during(|| catch_unwind(AssertUnwindSafe(body)));
    if warns {
        keep(&raised);
    }
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
    // No lock, which a forked process could find held. A thread that comes meanwhile does not wait for the hook.
    static IS_SET: AtomicBool = AtomicBool::new(false);
    if IS_SET.load(Ordering::Relaxed) || std::thread::panicking() {
        return;
    }
    if !IS_SET.swap(true, Ordering::Relaxed) {
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
    }
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
        assert_eq!(call(|| Err(Error::new(ErrorKind::IO, "\u{fc}".repeat(LONGEST)))), RECON_IO);
        assert_eq!((last(), message()), ("\u{fc}".repeat(LONGEST / 2 - 1), place));
    }

    #[test]
    fn a_thread_has_its_own_message() {
        assert_eq!(call(|| Err(Error::new(ErrorKind::IO, "mine"))), RECON_IO);
        std::thread::spawn(|| assert_eq!(last(), "")).join().unwrap();
        assert_eq!(last(), "mine");
    }

    #[test]
    fn every_status_has_a_text() {
        assert_eq!(text(RECON_OK as i32), c"ok");
        assert_eq!(text(RECON_INTERNAL as i32), c"internal error");
        assert_eq!(text(RECON_CANCELLED as i32), c"cancelled");
        assert_eq!(text(RECON_DEVICE_FAILED as i32), c"device failed");
        for unknown in [-1, ErrorKind::ALL.len() as i32 + 1, i32::MIN, i32::MAX] {
            assert_eq!(text(unknown), c"unknown status");
        }
    }
}
