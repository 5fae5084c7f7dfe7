//! The log callback: the library's only global state.

use super::structs::recon_log_callback;
use crate::base::error::{bail, Result};
use crate::base::per_process::PerProcess;
use log::{LevelFilter, Log, Metadata, Record};
use std::cell::Cell;
use std::ffi::{c_void, CString};
use std::sync::{PoisonError, RwLock, TryLockError};

#[derive(Clone, Copy)]
struct Target {
    callback: unsafe extern "C" fn(u32, *const std::ffi::c_char, *mut c_void),
    user_data: *mut c_void,
    level: LevelFilter,
}

// SAFETY: the caller of recon_set_log_callback promises that the callback may be called with this pointer from any
// thread.
unsafe impl Send for Target {}
// SAFETY: the caller promised a function for several threads at once.
unsafe impl Sync for Target {}

/// A forked process has its parent's callback, unless it was just being replaced: then it has none.
static TARGET: PerProcess<RwLock<Option<Target>>> = PerProcess::new(RwLock::new(None), |parent| {
    RwLock::new(match parent.try_read() {
        Ok(target) => *target,
        Err(TryLockError::Poisoned(target)) => *target.into_inner(),
        Err(TryLockError::WouldBlock) => None,
    })
});

thread_local! {
    /// This thread is inside the callback, and holds the lock.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// The logger. It has an address of its own, by which it is recognised.
struct Forward(#[allow(dead_code)] u8);

static FORWARD: Forward = Forward(0);

impl Log for Forward {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        // What the callback itself makes the library log would need the lock that this thread holds.
        if INSIDE.try_with(Cell::get).unwrap_or(true) {
            return;
        }
        // Reading while the callback runs: it is not called any more once another thread has replaced it.
        let target = TARGET.get().read().unwrap_or_else(PoisonError::into_inner);
        let Some(target) = target.as_ref().filter(|t| record.level() <= t.level) else { return };
        let text: Vec<u8> = record.args().to_string().bytes().filter(|&b| b != 0).collect();
        let text = CString::new(text).unwrap_or_default();
        INSIDE.set(true);
        // SAFETY: the caller promised a function of this type, callable from any thread until it is replaced.
        unsafe { (target.callback)(record.level() as u32, text.as_ptr(), target.user_data) };
        INSIDE.set(false);
    }

    fn flush(&self) {}
}

/// Installs, replaces or (None) removes the callback.
pub(super) fn set(callback: recon_log_callback, user_data: *mut c_void, level: u32) -> Result<()> {
    if INSIDE.get() {
        bail!(InvalidArgument, "the log callback cannot replace itself: call recon_set_log_callback from outside it");
    }
    let level = super::enumerations::choice("level", level)?;
    // It is installed once, and any later attempt fails.
    if log::set_logger(&FORWARD).is_err() && !std::ptr::addr_eq(log::logger(), &raw const FORWARD) {
        bail!(Unsupported, "this program has a logger of the Rust crate log already: recon's messages go there");
    }
    let mut target = TARGET.get().write().unwrap_or_else(PoisonError::into_inner);
    *target = callback.map(|callback| Target { callback, user_data, level });
    log::set_max_level(target.as_ref().map_or(LevelFilter::Off, |t| t.level));
    Ok(())
}
