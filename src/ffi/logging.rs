//! The log callback: the library's only global state.

use super::status;
use super::structs::{recon_log_callback, recon_log_message};
use crate::base::error::{bail, Result};
use crate::base::per_process::PerProcess;
use log::{LevelFilter, Log, Metadata, Record};
use std::cell::Cell;
use std::ffi::{c_void, CString};
use std::fmt::{self, Write};
use std::sync::{PoisonError, RwLock, TryLockError};

/// The caller's callback, its data, and the lowest level that it receives.
#[derive(Clone, Copy)]
struct LogTarget {
    callback: unsafe extern "C" fn(*const recon_log_message, *mut c_void),
    user_data: *mut c_void,
    level: LevelFilter,
}

// SAFETY: the caller of recon_set_log_callback promises that the callback may be called with this pointer from any
// thread.
unsafe impl Send for LogTarget {}
// SAFETY: the caller promised that several threads may call the function at once.
unsafe impl Sync for LogTarget {}

/// The target; `None` without a callback. A forked process keeps its parent's callback, except one that was being
/// replaced at that moment.
static TARGET: PerProcess<RwLock<Option<LogTarget>>> = PerProcess::new(RwLock::new(None), |parent| {
    RwLock::new(match parent.try_read() {
        Ok(target) => *target,
        Err(TryLockError::Poisoned(target)) => *target.into_inner(),
        Err(TryLockError::WouldBlock) => None,
    })
});

thread_local! {
    /// Whether this thread is inside the callback, and holds the lock.
    static IS_INSIDE_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

/// The logger, which calls the callback. A byte gives it a unique address, by which it is recognised.
struct CallbackLogger(#[allow(dead_code)] u8);

static LOGGER: CallbackLogger = CallbackLogger(0);

impl Log for CallbackLogger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        // Messages that the callback causes would require the lock that this thread holds.
        if IS_INSIDE_CALLBACK.try_with(Cell::get).unwrap_or(true) {
            return;
        }
        // The lock is held while the callback runs, so that it is not called any more after another thread replaced it.
        let target = TARGET.get().read().unwrap_or_else(PoisonError::into_inner);
        let Some(target) = target.as_ref().filter(|t| record.level() <= t.level) else { return };
        let mut line = ShortLine { bytes: [0; SHORT_LINE], length: 0 };
        // Most messages need no allocation, such as that of a call without free memory.
        let long_line = line.write_fmt(*record.args()).is_err().then(|| {
            let text: Vec<u8> = record.args().to_string().bytes().filter(|&b| b != 0).collect();
            CString::new(text).unwrap_or_default()
        });
        let message = recon_log_message {
            struct_size: size_of::<recon_log_message>() as u32,
            level: record.level() as u32,
            text: long_line.as_ref().map_or(line.bytes.as_ptr().cast(), |text| text.as_ptr()),
            plan: status::plan_of_call().cast(),
        };
        IS_INSIDE_CALLBACK.set(true);
        // SAFETY: the caller promised a function of this type, callable from any thread until it is replaced. The
        // message lives until it returns.
        unsafe { (target.callback)(&raw const message, target.user_data) };
        IS_INSIDE_CALLBACK.set(false);
    }

    fn flush(&self) {}
}

/// Bytes of a line of the log that needs no allocation, its final zero included.
const SHORT_LINE: usize = 1024;

/// A line of the log as a C string in an array.
struct ShortLine {
    bytes: [u8; SHORT_LINE],
    length: usize,
}

impl fmt::Write for ShortLine {
    /// Appends text without its zeros. It fails if the text and a final zero do not fit.
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes().filter(|&b| b != 0) {
            if self.length + 1 == SHORT_LINE {
                return Err(fmt::Error);
            }
            self.bytes[self.length] = byte;
            self.length += 1;
        }
        Ok(())
    }
}

/// Installs or replaces the callback; `None` removes it.
pub(super) fn set(callback: recon_log_callback, user_data: *mut c_void, level: u32) -> Result<()> {
    if IS_INSIDE_CALLBACK.get() {
        bail!(InvalidArgument, "the log callback cannot replace itself: call recon_set_log_callback from outside it");
    }
    let level = super::enumerations::choice("level", level)?;
    // The logger can be installed only once; later attempts fail.
    if log::set_logger(&LOGGER).is_err() && !std::ptr::addr_eq(log::logger(), &raw const LOGGER) {
        bail!(Unsupported, "this program has a logger of the Rust crate log already: recon's messages go there");
    }
    let mut target = TARGET.get().write().unwrap_or_else(PoisonError::into_inner);
    *target = callback.map(|callback| LogTarget { callback, user_data, level });
    log::set_max_level(target.as_ref().map_or(LevelFilter::Off, |t| t.level));
    Ok(())
}
