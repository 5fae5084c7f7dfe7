//! The log callback: the library's only global state.

use super::structs::recon_log_callback;
use crate::base::error::{bail, Result};
use crate::base::per_process::PerProcess;
use log::{LevelFilter, Log, Metadata, Record};
use std::cell::Cell;
use std::ffi::{c_void, CString};
use std::sync::{PoisonError, RwLock, TryLockError};

/// The caller's callback, its data, and the lowest level that it receives.
#[derive(Clone, Copy)]
struct LogTarget {
    callback: unsafe extern "C" fn(u32, *const std::ffi::c_char, *mut c_void),
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
        let text: Vec<u8> = record.args().to_string().bytes().filter(|&b| b != 0).collect();
        let text = CString::new(text).unwrap_or_default();
        IS_INSIDE_CALLBACK.set(true);
        // SAFETY: the caller promised a function of this type, callable from any thread until it is replaced.
        unsafe { (target.callback)(record.level() as u32, text.as_ptr(), target.user_data) };
        IS_INSIDE_CALLBACK.set(false);
    }

    fn flush(&self) {}
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
