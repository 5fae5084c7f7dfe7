//! Ending a long call at the caller's wish.
//!
//! A plan has a function of the caller's that says whether to stop. For the time of a call it is in force in the thread
//! that made the call, and only there: a plan's own threads, and those that serve several GPUs, have none and so can
//! never ask. Computations [`check`] between their steps; where a single step is long and shared among threads, all of
//! them look at a [`Watch`], for which the calling thread asks.

use crate::base::error::{bail, Result};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time between one question and the next.
const PERIOD: Duration = Duration::from_millis(20);

/// A function that says whether a call is to end, see [`crate::Options::interrupt`].
#[derive(Clone)]
pub struct Interrupt(Arc<dyn Fn() -> bool + Send + Sync>);

impl Interrupt {
    /// `stop` says true when the call that asks is to end. It should take no longer than some microseconds, and must
    /// not use the plan.
    pub fn new(stop: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Interrupt(Arc::new(stop))
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupt(..)")
    }
}

/// The same function, not one that does the same.
impl PartialEq for Interrupt {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

thread_local! {
    static IN_FORCE: RefCell<Option<Interrupt>> = const { RefCell::new(None) };
    /// When this thread last asked anything: in a loop of short calls too a function is asked so often, and not more.
    static ASKED: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Puts another function, or none, in force in this thread, and says what was there before.
fn exchange(interrupt: Option<Interrupt>) -> Option<Interrupt> {
    // A thread that is ending has no place for it any more: its calls are not interrupted.
    IN_FORCE.try_with(|slot| slot.replace(interrupt)).unwrap_or_default()
}

/// A function in force in this thread until this is dropped; then again what was before.
pub(crate) struct ActiveInterrupt {
    before: Option<Interrupt>,
    /// It belongs to the thread.
    stays: std::marker::PhantomData<*const ()>,
}

impl ActiveInterrupt {
    /// Puts a function in force, or none: a call within a call (from a callback) asks its own plan's or nobody.
    pub fn new(interrupt: Option<Interrupt>) -> Self {
        ActiveInterrupt { before: exchange(interrupt), stays: std::marker::PhantomData }
    }
}

impl Drop for ActiveInterrupt {
    fn drop(&mut self) {
        exchange(self.before.take());
    }
}

/// Asks the function in force in this thread, when there is one and it is time to.
fn wants_to_stop() -> bool {
    let there = IN_FORCE.try_with(|slot| slot.borrow().clone()).unwrap_or_default();
    let Some(interrupt) = there else { return false };
    if ASKED.get().is_some_and(|at| at.elapsed() < PERIOD) {
        return false;
    }
    // What it calls in turn does not ask.
    let _none = ActiveInterrupt::new(None);
    let stop = (interrupt.0)();
    // Not the time before: a function that takes long must not be all that is done.
    ASKED.set(Some(Instant::now()));
    if stop {
        // The next call begins by asking.
        ASKED.set(None);
    }
    stop
}

fn cancelled(what: &str) -> Result<()> {
    bail!(Cancelled, "interrupted by the caller's function during {what}")
}

/// Fails with `Cancelled` once the caller's function has said so; `what` is for the message. To be called where nothing
/// is half done.
pub(crate) fn check(what: &str) -> Result<()> {
    if wants_to_stop() {
        return cancelled(what);
    }
    Ok(())
}

/// Whether a step that several threads share goes on.
pub(crate) struct Watch {
    /// There is somebody to ask.
    asks: bool,
    stop: AtomicBool,
}

impl Watch {
    /// To be made by the thread that made the call, which must take part in the step.
    pub fn new() -> Self {
        let asks = IN_FORCE.try_with(|slot| slot.borrow().is_some()).unwrap_or(false);
        Watch { asks, stop: AtomicBool::new(false) }
    }

    /// Whether to leave undone what is not done: for any thread to look at, some times a millisecond at most.
    #[inline(always)]
    pub fn stopped(&self) -> bool {
        self.asks && self.look()
    }

    #[inline(never)]
    fn look(&self) -> bool {
        if !self.stop.load(Ordering::Relaxed) && wants_to_stop() {
            self.stop.store(true, Ordering::Relaxed);
        }
        self.stop.load(Ordering::Relaxed)
    }

    /// Fails when the step was left.
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
            // Neither asks itself nor anybody else.
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
            let _in_force = ActiveInterrupt::new(Some(interrupt.clone()));
            let watch = Watch::new();
            while started.elapsed() < 10 * PERIOD {
                check("a test").unwrap();
                assert!(!watch.stopped());
            }
            // At the beginning at least, however the machine stands still.
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
        let _in_force = ActiveInterrupt::new(Some(interrupt));
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
