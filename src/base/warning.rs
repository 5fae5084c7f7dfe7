//! Warnings of a plan or of a call: it can compute, but the image may not be the expected one.

use std::cell::RefCell;
use std::fmt;

/// What a warning is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WarningKind {
    /// k reaches less than a quarter of what the image's size could resolve: perhaps wrong units, which blur the image.
    Extent,
    /// The window or the precision cannot reach the default tolerance. (For a tolerance that is given this is an
    /// error.)
    Tolerance,
    /// PROPELLER blades do not agree with one another after their motion was corrected.
    Blades,
    /// A noise scan is short, or a noise level does not fit the data.
    Noise,
    /// Few virtual coils hold little of the data's energy.
    Compression,
}

/// A warning: its kind, and a sentence for a person that names the cause, the value and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// What it is about.
    pub kind: WarningKind,
    /// The sentence.
    pub message: String,
}

thread_local! {
    /// What calls of this thread warned of, for those who do not listen to the log.
    static RAISED: RefCell<Vec<Warning>> = const { RefCell::new(Vec::new()) };
}

/// Logs a warning of the running call, and keeps it for [`taken`].
pub(crate) fn raise(kind: WarningKind, message: String) {
    log::warn!("{message}");
    // Where there is no memory for it, or the thread is ending, it was logged.
    let _ = RAISED.try_with(|raised| {
        let mut raised = raised.borrow_mut();
        if raised.try_reserve(1).is_ok() {
            raised.push(Warning { kind, message });
        }
    });
}

/// The warnings that this thread's calls raised since they were last taken.
pub(crate) fn taken() -> Vec<Warning> {
    RAISED.try_with(|raised| std::mem::take(&mut *raised.borrow_mut())).unwrap_or_default()
}

/// Gives warnings back that were taken, in place of those raised since.
pub(crate) fn restore(warnings: Vec<Warning>) {
    let _ = RAISED.try_with(|raised| *raised.borrow_mut() = warnings);
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
