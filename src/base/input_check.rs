//! Checks of a call's input that the kernels of a transform on a GPU make.
//!
//! A check of its own costs a small transform as much as one of its steps. Therefore the kernels that read the caller's
//! input check it, and those that write the caller's output write nothing if the check has failed. The host learns the
//! result when all is queued. The check is left in this thread meanwhile.

use crate::base::error::Result;
use std::cell::RefCell;
use std::marker::PhantomData;

/// A check that kernels make. Dropping it waits for its end.
pub trait PendingCheck {
    /// Returns the parameters of the kernels.
    fn in_kernels(&self) -> KernelCheck;
    /// Waits for the result: whether all numbers are below the limit. The kernels that make the check are queued.
    fn wait(&mut self) -> Result<bool>;
}

/// Parameters of kernels that check input, or that write output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KernelCheck {
    /// Parts of numbers must be smaller than this in magnitude.
    pub limit: f64,
    /// Address on the GPU of the state of the check.
    pub state: u64,
    /// Address for the GPU of the word for the host.
    pub word: u64,
    /// Whether the kernels of the transform make the check. Otherwise it was queued before them.
    pub is_merged: bool,
}

thread_local! {
    static RUNNING: RefCell<Option<Box<dyn PendingCheck>>> = const { RefCell::new(None) };
}

/// Sets the check of this thread, and returns the previous one.
fn replace(check: Option<Box<dyn PendingCheck>>) -> Option<Box<dyn PendingCheck>> {
    // A thread that is ending has no thread-local storage.
    RUNNING.try_with(|slot| slot.replace(check)).unwrap_or_default()
}

/// Guard that restores the check of an outer call.
struct OuterCheck(Option<Box<dyn PendingCheck>>, PhantomData<*const ()>);

impl Drop for OuterCheck {
    fn drop(&mut self) {
        drop(replace(self.0.take()));
    }
}

/// Calls `compute`, whose kernels make this check with the parameters of [`in_kernels`]. Returns false if a number was
/// not below the limit: the output is then unchanged.
pub(crate) fn run_during(check: Box<dyn PendingCheck>, compute: impl FnOnce() -> Result<()>) -> Result<bool> {
    let _outer = OuterCheck(replace(Some(check)), PhantomData);
    compute()?;
    match replace(None) {
        Some(mut check) => check.wait(),
        None => unreachable!("the check of a call stays until its end"),
    }
}

/// Returns the parameters of this thread's check, if it has one.
pub(crate) fn in_kernels() -> Option<KernelCheck> {
    RUNNING.try_with(|slot| slot.borrow().as_ref().map(|check| check.in_kernels())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::{bail, ErrorKind};

    struct Known(bool);

    impl PendingCheck for Known {
        fn in_kernels(&self) -> KernelCheck {
            KernelCheck { limit: f64::from(u8::from(self.0)), state: 0, word: 0, is_merged: true }
        }
        fn wait(&mut self) -> Result<bool> {
            Ok(self.0)
        }
    }

    #[test]
    fn a_check_belongs_to_its_call() {
        let limit = || in_kernels().map(|check| check.limit);
        assert_eq!(limit(), None);
        for good in [true, false] {
            let result = run_during(Box::new(Known(good)), || {
                assert_eq!(limit(), Some(f64::from(u8::from(good))));
                // A nested call with a check of its own.
                let inner = || {
                    assert_eq!(limit(), Some(0.0));
                    Ok(())
                };
                assert!(!run_during(Box::new(Known(false)), inner).unwrap());
                assert_eq!(limit(), Some(f64::from(u8::from(good))));
                Ok(())
            });
            assert_eq!(result.unwrap(), good);
            assert_eq!(limit(), None);
        }
        // An error of the transform itself.
        let fail = || bail!(Cancelled, "a test");
        assert_eq!(run_during(Box::new(Known(true)), fail).unwrap_err().kind(), ErrorKind::Cancelled);
        assert_eq!(limit(), None);
    }
}
