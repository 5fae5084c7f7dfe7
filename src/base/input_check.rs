//! Checks of a call's input on a GPU that run while the transform is being queued.
//!
//! A check that is waited for at once costs a small transform more than its kernels. Therefore the check is left in
//! this thread while the transform is queued, and [`confirm`] waits for it before the transform writes the caller's
//! output.

use crate::base::error::{bail, Result};
use std::cell::RefCell;
use std::marker::PhantomData;

/// A check that may still be running. Dropping it waits for its end.
pub trait PendingCheck {
    /// Waits for the result: whether all numbers are below the limit.
    fn wait(&mut self) -> Result<bool>;
}

/// State of this thread's check.
#[derive(Default)]
enum CheckState {
    /// No check, or one that all numbers have passed.
    #[default]
    Clear,
    Running(Box<dyn PendingCheck>),
    /// A number is not below the limit. Nothing was written.
    Exceeded,
}

thread_local! {
    static STATE: RefCell<CheckState> = const { RefCell::new(CheckState::Clear) };
}

/// Sets the state of this thread, and returns the previous one.
fn replace(state: CheckState) -> CheckState {
    // A thread that is ending has no thread-local storage.
    STATE.try_with(|slot| slot.replace(state)).unwrap_or_default()
}

/// Guard that restores the state of an outer call.
struct OuterState(CheckState, PhantomData<*const ()>);

impl Drop for OuterState {
    fn drop(&mut self) {
        drop(replace(std::mem::take(&mut self.0)));
    }
}

/// Calls `compute` while the check runs. `compute` must call [`confirm`] before it writes the caller's output. Returns
/// false if a number was not below the limit: the output is then unchanged.
pub(crate) fn run_during(check: Box<dyn PendingCheck>, compute: impl FnOnce() -> Result<()>) -> Result<bool> {
    let _outer = OuterState(replace(CheckState::Running(check)), PhantomData);
    let result = compute();
    match replace(CheckState::Clear) {
        CheckState::Exceeded => return Ok(false),
        CheckState::Running(_) => assert!(result.is_err(), "the transform has not confirmed its input"),
        CheckState::Clear => {}
    }
    result.map(|()| true)
}

/// Waits for this thread's check, if it has one.
///
/// # Errors
/// `NotFinite` if a number is not below the limit. The caller of [`run_during`] finds out which.
pub(crate) fn confirm() -> Result<()> {
    let CheckState::Running(mut check) = replace(CheckState::Clear) else { return Ok(()) };
    if !check.wait()? {
        replace(CheckState::Exceeded);
        bail!(NotFinite, "a number of the input is not finite or too large");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;

    struct Known(bool);

    impl PendingCheck for Known {
        fn wait(&mut self) -> Result<bool> {
            Ok(self.0)
        }
    }

    #[test]
    fn output_is_written_only_if_the_input_is_confirmed() {
        confirm().unwrap();
        for good in [true, false] {
            let mut written = false;
            let mut compute = || {
                // A nested call with a check of its own.
                assert!(!run_during(Box::new(Known(false)), confirm).unwrap());
                confirm()?;
                written = true;
                confirm()
            };
            assert_eq!(run_during(Box::new(Known(good)), &mut compute).unwrap(), good);
            assert_eq!(written, good);
        }
        // An error of the transform itself, before and after it has confirmed the input.
        let fail = || bail!(Cancelled, "a test");
        assert_eq!(run_during(Box::new(Known(true)), fail).unwrap_err().kind(), ErrorKind::Cancelled);
        let fail = || confirm().and_then(|()| bail!(Cancelled, "a test"));
        assert_eq!(run_during(Box::new(Known(true)), fail).unwrap_err().kind(), ErrorKind::Cancelled);
        confirm().unwrap();
    }
}
