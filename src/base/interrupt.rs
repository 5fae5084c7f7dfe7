//! Ends a long call when the caller asks for it.
//!
//! A plan may have a function of its user that says whether to stop. During a call it is active in the thread that made
//! the call, and only there: the plan's own threads, and the threads that serve several GPUs, never call it.
//! Computations [`check`] between their steps. Where a single step is long and shared among threads, all of them look
//! at a [`Watch`], for which the calling thread asks.

use crate::base::error::{bail, Result};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time between two calls of the function.
const PERIOD: Duration = Duration::from_millis(20);

/// A function that says whether a call is to end, see [`crate::Options::interrupt`].
#[derive(Clone)]
pub struct Interrupt(Arc<dyn Fn() -> bool + Send + Sync>);

impl Interrupt {
    /// `stop` returns true when the call that asks is to end. It should take a few microseconds at most, and must not
    /// use the plan.
    pub fn new(stop: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Interrupt(Arc::new(stop))
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupt(..)")
    }
}

/// Equal where both are the same function.
impl PartialEq for Interrupt {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

thread_local! {
    static ACTIVE: RefCell<Option<Interrupt>> = const { RefCell::new(None) };
    /// When this thread last asked: in a loop of short calls, too, a function is asked once in a period.
    static ASKED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Makes another function, or none, active in this thread, and returns the one before.
fn exchange(interrupt: Option<Interrupt>) -> Option<Interrupt> {
    // A thread that is ending has no thread-local storage any more: its calls are not interrupted.
    ACTIVE.try_with(|slot| slot.replace(interrupt)).unwrap_or_default()
}

/// Keeps a function active in this thread until this is dropped, which restores the one before.
pub(crate) struct ActiveInterrupt {
    before: Option<Interrupt>,
    /// Not Send: it belongs to the thread.
    not_send: std::marker::PhantomData<*const ()>,
}

impl ActiveInterrupt {
    /// Makes a function active, or none: a call within a call (from a callback) asks the function of the inner plan.
    pub fn new(interrupt: Option<Interrupt>) -> Self {
        ActiveInterrupt { before: exchange(interrupt), not_send: std::marker::PhantomData }
    }
}

impl Drop for ActiveInterrupt {
    fn drop(&mut self) {
        exchange(self.before.take());
    }
}

/// Asks the function that is active in this thread, when there is one and a period has passed.
fn wants_to_stop() -> bool {
    let active = ACTIVE.try_with(|slot| slot.borrow().clone()).unwrap_or_default();
    let Some(interrupt) = active else { return false };
    if ASKED.get().is_some_and(|at| at.elapsed() < PERIOD) {
        return false;
    }
    // Calls that it makes do not ask.
    let _none = ActiveInterrupt::new(None);
    let stop = (interrupt.0)();
    // The time after the call: a slow function must leave time for the work.
    ASKED.set(Some(Instant::now()));
    if stop {
        // The next call asks at once.
        ASKED.set(None);
    }
    stop
}

fn cancelled(what: &str) -> Result<()> {
    bail!(Cancelled, "interrupted by the caller's function during {what}")
}

/// Fails with `Cancelled` once the function has returned true; `what` is for the message. Call it where no result is
/// half written.
pub(crate) fn check(what: &str) -> Result<()> {
    if wants_to_stop() {
        return cancelled(what);
    }
    Ok(())
}

/// Whether a step that several threads share goes on.
pub(crate) struct Watch {
    /// A function is active.
    asks: bool,
    stop: AtomicBool,
}

impl Watch {
    /// Must be called by the thread that made the call, which must take part in the step.
    pub fn new() -> Self {
        let asks = ACTIVE.try_with(|slot| slot.borrow().is_some()).unwrap_or(false);
        Watch { asks, stop: AtomicBool::new(false) }
    }

    /// Whether to skip the rest of the step. Any thread may ask, a few times in a millisecond at most.
    #[inline(always)]
    pub fn stopped(&self) -> bool {
        self.asks && self.poll()
    }

    #[inline(never)]
    fn poll(&self) -> bool {
        if !self.stop.load(Ordering::Relaxed) && wants_to_stop() {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.stop.load(Ordering::Relaxed)
    }

    /// Fails when the step was not finished.
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
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let interrupt = Interrupt::new(move || {
            count.fetch_add(1, Ordering::Relaxed);
            // No function is active here.
            check("a question").unwrap();
            assert!(!Watch::new().stopped());
            stop
        });
        (interrupt, asked)
    }

    #[test]
    fn a_function_is_asked_now_and_then_in_its_own_thread() {
        let (interrupt, asked) = counting(false);
        let count = || asked.load(Ordering::Relaxed);
        check("nothing").unwrap();
        let started = Instant::now();
        {
            let _active = ActiveInterrupt::new(Some(interrupt.clone()));
            let watch = Watch::new();
            while started.elapsed() < 10 * PERIOD {
                check("a test").unwrap();
                assert!(!watch.stopped());
            }
            // At least at the beginning, even where the machine was busy.
            assert!((1..=11).contains(&count()), "{} questions", count());
            let before = count();
            ASKED.set(None);
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
            assert_eq!(count(), before);
            check("the call again").unwrap();
            assert_eq!(count(), before + 1);
        }
        ASKED.set(None);
        let before = count();
        check("after the call").unwrap();
        assert_eq!(count(), before);
        assert!(interrupt == interrupt.clone() && interrupt != counting(false).0);
        assert_eq!(format!("{interrupt:?}"), "Interrupt(..)");
    }

    #[test]
    fn stopping_reaches_every_thread_that_looks() {
        let (interrupt, asked) = counting(true);
        ASKED.set(None);
        let _active = ActiveInterrupt::new(Some(interrupt));
        let error = check("a test").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert_eq!(error.message(), "interrupted by the caller's function during a test");
        let watch = Watch::new();
        watch.check("sums").unwrap();
        std::thread::scope(|scope| scope.spawn(|| assert!(!watch.stopped())).join().unwrap());
        assert!(watch.stopped());
        std::thread::scope(|scope| scope.spawn(|| assert!(watch.stopped())).join().unwrap());
        assert_eq!(watch.check("sums").unwrap_err().kind(), ErrorKind::Cancelled);
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }
}
