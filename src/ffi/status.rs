//! Status codes, the text of the last error, and the conversion of panics to errors.

use crate::base::error::{error_kinds, Error, ErrorKind, Result};
use crate::base::float_mode::FloatMode;
use crate::base::headroom;
use crate::base::warning::{self, Warning, WarningKind};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void, CStr, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::null;
use std::sync::atomic::{AtomicBool, Ordering};

/// Defines the given items, and a constant with their source text.
macro_rules! with_source {
    ($source:ident, $($item:tt)+) => {
        $($item)+
        pub(super) const $source: &str = stringify!($($item)+);
    };
}
pub(super) use with_source;
/// Defines the statuses from the error kinds.
macro_rules! define_statuses {
    ($($(#[doc = $doc:literal])+ $kind:ident = $number:literal, $status:ident, $text:literal;)+) => {
        with_source! {
            SOURCE,
            /// Result of a call. Numbers never change their meaning; later versions may add some.
            #[repr(C)]
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub enum recon_status {
                /// The call succeeded, and outputs are written.
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

        /// Returns the name of a status in one word, and its meaning.
        fn name_and_meaning(status: status_number) -> [&'static str; 2] {
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

/// A recon_status of a caller, as which the header declares it. Its type here is a number, because a value that this
/// version does not know would be undefined behaviour as a recon_status.
pub type status_number = c_int;

/// Returns the name of a status in one word.
pub(super) fn name(status: status_number) -> &'static CStr {
    CStr::from_bytes_with_nul(name_and_meaning(status)[0].as_bytes()).expect("a zero at the end")
}

/// Returns the meaning of a status.
pub(super) fn text(status: status_number) -> &'static CStr {
    CStr::from_bytes_with_nul(name_and_meaning(status)[1].as_bytes()).expect("a zero at the end")
}

/// Maximum number of bytes of a message, its final zero included.
const MESSAGE_BYTES: usize = 2048;

thread_local! {
    /// Message of this thread's last failure. Its address does not change during the life of the thread, so that
    /// callers may keep the pointer.
    static MESSAGE: RefCell<[u8; MESSAGE_BYTES]> = const { RefCell::new([0; MESSAGE_BYTES]) };
    /// Warnings of this thread's last call.
    static WARNINGS: RefCell<Vec<(WarningKind, CString)>> = const { RefCell::new(Vec::new()) };
    /// Whether this thread is inside a call, which reports panics.
    static IS_INSIDE_CALL: Cell<bool> = const { Cell::new(false) };
    /// Address of the plan that this thread's running call uses; null without one. It is an address only, which is not
    /// read.
    static PLAN: Cell<*const c_void> = const { Cell::new(null()) };
    /// Source location of this thread's last panic.
    static PANIC_LOCATION: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Stores the warnings of a call that has ended.
fn store_warnings(raised: &[Warning]) {
    let text = |w: &Warning| CString::new(w.message.replace('\0', " ")).unwrap_or_default();
    let all = raised.iter().map(|w| (w.kind, text(w))).collect();
    let _ = WARNINGS.try_with(|stored| *stored.borrow_mut() = all);
}

/// Returns kind and text of warning `index` of this thread's last call.
pub(super) fn warning(index: usize) -> Option<(WarningKind, *const std::ffi::c_char)> {
    let read = |stored: &RefCell<Vec<(WarningKind, CString)>>| {
        stored.borrow().get(index).map(|(kind, text)| (*kind, text.as_ptr()))
    };
    WARNINGS.try_with(read).ok().flatten()
}

/// Returns the message of this thread's last failure; empty before the first failure.
pub(super) fn message() -> *const std::ffi::c_char {
    MESSAGE.try_with(|m| m.borrow().as_ptr().cast()).unwrap_or(c"".as_ptr())
}

/// Returns the address of the plan that this thread's running call uses; null without one, or outside of calls.
pub(super) fn plan_of_call() -> *const c_void {
    PLAN.try_with(Cell::get).unwrap_or(null())
}

/// The plan of a running call. A callback may make another call within it, whose end restores the plan of the outer
/// call.
struct PlanOfCall {
    outer: *const c_void,
}

impl PlanOfCall {
    /// Begins a call that uses the plan at this address; null for none.
    fn enter(plan: *const c_void) -> Self {
        PlanOfCall { outer: PLAN.try_with(|current| current.replace(plan)).unwrap_or(null()) }
    }
}

impl Drop for PlanOfCall {
    fn drop(&mut self) {
        let _ = PLAN.try_with(|current| current.set(self.outer));
    }
}

/// Logs an error, stores its message, and returns its status.
fn fail(error: &Error) -> recon_status {
    log::error!("{error}");
    let mut text = error.message().replace('\0', "");
    while text.len() >= MESSAGE_BYTES {
        text.pop();
    }
    // The storage does not exist any more in a thread that is ending. The status is returned in any case.
    let _ = MESSAGE.try_with(|m| {
        let mut buffer = m.borrow_mut();
        buffer[..text.len()].copy_from_slice(text.as_bytes());
        buffer[text.len()] = 0;
    });
    error.kind().into()
}

/// Reports that memory is short even for small allocations. It allocates nothing itself.
fn fail_without_memory() -> recon_status {
    const TEXT: &str = "less than 64 KiB of the host's memory are free: free memory, or use a smaller problem";
    log::error!("{TEXT}");
    let _ = MESSAGE.try_with(|m| {
        let mut buffer = m.borrow_mut();
        buffer[..TEXT.len()].copy_from_slice(TEXT.as_bytes());
        buffer[TEXT.len()] = 0;
    });
    RECON_OUT_OF_HOST_MEMORY
}

/// Runs the body of a C function. Errors and panics become a status and a message. The caller's floating-point mode is
/// restored afterwards.
pub(super) fn call(body: impl FnOnce() -> Result<()>) -> recon_status {
    call_of_plan(null(), body)
}

/// Runs a body as [`call`] does. Messages of the log have the plan at this address, which is not read.
pub(super) fn call_of_plan(plan: *const c_void, body: impl FnOnce() -> Result<()>) -> recon_status {
    let _plan = PlanOfCall::enter(plan);
    if !headroom::has_room() {
        store_warnings(&[]);
        return fail_without_memory();
    }
    run_call(true, body)
}

/// Runs a body as [`call`] does, for functions that free memory and allocate none.
pub(super) fn call_without_allocation(body: impl FnOnce()) {
    let _plan = PlanOfCall::enter(null());
    run_call(true, || {
        body();
        Ok(())
    });
}

/// Runs a body as [`call`] does, without replacing the warnings of the previous call.
pub(super) fn call_keeping_warnings(body: impl FnOnce() -> Result<()>) -> recon_status {
    let _plan = PlanOfCall::enter(null());
    run_call(false, body)
}

/// Runs a body, and stores its warnings if `stores_warnings` is set.
fn run_call(stores_warnings: bool, body: impl FnOnce() -> Result<()>) -> recon_status {
    silence_panics();
    let _mode = FloatMode::standard();
    let outer = IS_INSIDE_CALL.try_with(|i| i.replace(true)).unwrap_or(true);
    let (outcome, raised) = warning::capture(|| catch_unwind(AssertUnwindSafe(body)));
    if stores_warnings {
        store_warnings(&raised);
    }
    let _ = IS_INSIDE_CALL.try_with(|i| i.set(outer));
    match outcome {
        Ok(Ok(())) => RECON_OK,
        Ok(Err(error)) => fail(&error),
        Err(payload) => fail(&panic_error(payload)),
    }
}

/// Returns the error for the payload of a panic.
fn panic_error(payload: Box<dyn Any + Send>) -> Error {
    let what = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(s), _) => (*s).to_owned(),
        (_, Some(s)) => s.clone(),
        _ => "a panic without a message".to_owned(),
    };
    // Dropping an unknown payload could panic again.
    std::mem::forget(payload);
    let location = PANIC_LOCATION.try_with(|p| std::mem::take(&mut *p.borrow_mut())).unwrap_or_default();
    Error::new(ErrorKind::Internal, format!("a defect in recon, please report it: {what}{location}"))
}

/// Installs a panic hook that does not print panics which [`call`] reports. Other panics go to the previous hook.
fn silence_panics() {
    // No lock is used, since a forked process could find it held. A thread does not wait for the hook of another.
    static IS_SET: AtomicBool = AtomicBool::new(false);
    if IS_SET.load(Ordering::Relaxed) || std::thread::panicking() {
        return;
    }
    if !IS_SET.swap(true, Ordering::Relaxed) {
        let previous_hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let is_inside_call = IS_INSIDE_CALL.try_with(Cell::get).unwrap_or(false);
            // Threads of a plan pass their panics on to the calling thread.
            let is_worker = std::thread::current().name().is_some_and(|n| n.starts_with("recon "));
            if !(is_inside_call || is_worker) {
                return previous_hook(info);
            }
            let location = info.location().map(|l| format!(" ({}:{})", l.file(), l.line())).unwrap_or_default();
            let _ = PANIC_LOCATION.try_with(|p| *p.borrow_mut() = location);
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last() -> String {
        // SAFETY: the message is a C string that is valid until this thread's next failure.
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
        let address = message();
        assert_eq!(call(|| Err(Error::new(ErrorKind::IO, "\u{fc}".repeat(MESSAGE_BYTES)))), RECON_IO);
        assert_eq!((last(), message()), ("\u{fc}".repeat(MESSAGE_BYTES / 2 - 1), address));
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
