//! Ends a long call at the caller's request.
//!
//! A plan may have an interrupt callback. During a call the callback is active in the calling thread only: neither the
//! plan's own threads nor the threads of several GPUs call it. Computations call [`check`] between their steps. In a
//! long step that several threads share, all threads poll a [`StopSignal`], and the calling thread calls the callback.

use crate::base::error::{bail, Result};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Minimum time between two calls of the callback.
pub(crate) const PERIOD: Duration = Duration::from_millis(20);

/// A callback that requests the end of a call, see [`crate::Options::interrupt`].
#[derive(Clone)]
pub struct Interrupt(Arc<dyn Fn() -> bool + Send + Sync>);

impl Interrupt {
    /// Creates a callback. `stop` returns true to end the running call. It should take at most a few microseconds, and
    /// must not use the plan.
    pub fn new(stop: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Interrupt(Arc::new(stop))
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupt(..)")
    }
}

/// Two interrupts are equal if they are the same function.
impl PartialEq for Interrupt {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

thread_local! {
    static ACTIVE: RefCell<Option<Interrupt>> = const { RefCell::new(None) };
    /// Time of this thread's last call of the callback. It limits the rate in loops of short calls, too.
    static LAST_CALL: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Sets this thread's active callback, and returns the previous one.
fn replace_active(interrupt: Option<Interrupt>) -> Option<Interrupt> {
    // A thread that is ending has no thread-local storage: its calls are not interrupted.
    ACTIVE.try_with(|slot| slot.replace(interrupt)).unwrap_or_default()
}

/// Guard that makes a callback active in this thread. Dropping it restores the previous one.
pub(crate) struct ActiveInterrupt {
    previous: Option<Interrupt>,
    /// Makes the guard not Send: it belongs to its thread.
    not_send: std::marker::PhantomData<*const ()>,
}

impl ActiveInterrupt {
    /// Makes a callback active; `None` for no callback. A nested call (from a callback) uses the callback of its own
    /// plan.
    pub fn new(interrupt: Option<Interrupt>) -> Self {
        ActiveInterrupt { previous: replace_active(interrupt), not_send: std::marker::PhantomData }
    }
}

impl Drop for ActiveInterrupt {
    fn drop(&mut self) {
        replace_active(self.previous.take());
    }
}

/// Calls the active callback of this thread, if one exists and the minimum time has passed. Returns whether to stop.
fn should_stop() -> bool {
    let active = ACTIVE.try_with(|slot| slot.borrow().clone()).unwrap_or_default();
    let Some(interrupt) = active else { return false };
    if LAST_CALL.get().is_some_and(|at| at.elapsed() < PERIOD) {
        return false;
    }
    // Calls that the callback makes are not interrupted.
    let _none = ActiveInterrupt::new(None);
    let stop = (interrupt.0)();
    // The time is taken after the call, so that a slow callback leaves time for the computation.
    LAST_CALL.set(Some(Instant::now()));
    if stop {
        // The next call of the library polls at once.
        LAST_CALL.set(None);
    }
    stop
}

/// Returns the error of an interrupted call.
fn cancelled(what: &str) -> Result<()> {
    bail!(Cancelled, "interrupted by the caller's function during {what}")
}

/// Returns `Cancelled` if the callback requests a stop. `what` names the computation in the message. Call it only at
/// points where no result is half written.
pub(crate) fn check(what: &str) -> Result<()> {
    if should_stop() {
        return cancelled(what);
    }
    Ok(())
}

/// The stop request for a step that several threads share.
pub(crate) struct StopSignal {
    /// Whether a callback is active.
    is_active: bool,
    stop: AtomicBool,
}

impl StopSignal {
    /// Creates the signal. Must be called by the thread that made the call, and this thread must take part in the step.
    pub fn new() -> Self {
        let is_active = ACTIVE.try_with(|slot| slot.borrow().is_some()).unwrap_or(false);
        StopSignal { is_active, stop: AtomicBool::new(false) }
    }

    /// Returns whether to skip the rest of the step. Any thread may poll, at most a few times per millisecond.
    #[inline(always)]
    pub fn stopped(&self) -> bool {
        self.is_active && self.poll()
    }

    #[inline(never)]
    fn poll(&self) -> bool {
        if !self.stop.load(Ordering::Relaxed) && should_stop() {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns `Cancelled` if the step was not finished.
    pub fn check(&self, what: &str) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return cancelled(what);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;
    use std::sync::atomic::AtomicUsize;

    fn counting(stop: bool) -> (Interrupt, Arc<AtomicUsize>) {
        let calls = Arc::new(AtomicUsize::new(0));
        let count = calls.clone();
        let interrupt = Interrupt::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
            // No callback is active during a callback.
            check("a callback").unwrap();
            assert!(!StopSignal::new().stopped());
            stop
        });
        (interrupt, calls)
    }

    #[test]
    fn callbacks_are_called_periodically_in_their_own_thread() {
        let (interrupt, calls) = counting(false);
        let count = || calls.load(Ordering::Relaxed);
        check("nothing").unwrap();
        let started = Instant::now();
        {
            let _active = ActiveInterrupt::new(Some(interrupt.clone()));
            let watch = StopSignal::new();
            while started.elapsed() < 10 * PERIOD {
                check("a test").unwrap();
                assert!(!watch.stopped());
            }
            // At least one call occurs at the beginning, even if the machine is busy.
            assert!((1..=11).contains(&count()), "{} calls", count());
            let previous = count();
            LAST_CALL.set(None);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    check("another thread").unwrap();
                    assert!(!watch.stopped());
                });
            });
            {
                let _none = ActiveInterrupt::new(None);
                check("a call within").unwrap();
            }
            assert_eq!(count(), previous);
            check("the call again").unwrap();
            assert_eq!(count(), previous + 1);
        }
        LAST_CALL.set(None);
        let previous = count();
        check("after the call").unwrap();
        assert_eq!(count(), previous);
        assert!(interrupt == interrupt.clone() && interrupt != counting(false).0);
        assert_eq!(format!("{interrupt:?}"), "Interrupt(..)");
    }

    #[test]
    fn a_stop_request_reaches_all_polling_threads() {
        let (interrupt, calls) = counting(true);
        LAST_CALL.set(None);
        let _active = ActiveInterrupt::new(Some(interrupt));
        let error = check("a test").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert_eq!(error.message(), "interrupted by the caller's function during a test");
        let watch = StopSignal::new();
        watch.check("sums").unwrap();
        std::thread::scope(|scope| scope.spawn(|| assert!(!watch.stopped())).join().unwrap());
        assert!(watch.stopped());
        std::thread::scope(|scope| scope.spawn(|| assert!(watch.stopped())).join().unwrap());
        assert_eq!(watch.check("sums").unwrap_err().kind(), ErrorKind::Cancelled);
        assert_eq!(calls.load(Ordering::Relaxed), 2);
    }
}
