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
    /// The phase between echoes wraps: off-resonance is beyond what their spacing can tell.
    Wraps,
    /// The times of samples are no readout's: perhaps in other units than seconds.
    Times,
    /// The system refused threads: fewer compute than were asked for.
    Threads,
    /// Gaps between samples narrow the centre of k-space that coil maps are estimated from.
    Calibration,
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
    /// What the call that this thread is in warned of; none where nobody asks.
    static RAISED: RefCell<Option<Vec<Warning>>> = const { RefCell::new(None) };
}

/// Logs a warning of the running call, and keeps it for [`during`].
pub(crate) fn raise(kind: WarningKind, message: String) {
    log::warn!("{message}");
    // Where there is no memory for it, or the thread is ending, it was logged.
    let _ = RAISED.try_with(|raised| {
        if let Some(raised) = raised.borrow_mut().as_mut() {
            if raised.try_reserve(1).is_ok() {
                raised.push(Warning { kind, message });
            }
        }
    });
}

/// What `call` returns, and what it warned of in this thread. A call within another has its own warnings.
pub(crate) fn during<R>(call: impl FnOnce() -> R) -> (R, Vec<Warning>) {
    let exchange = |by| RAISED.try_with(|raised| raised.replace(by)).ok().flatten();
    let before = exchange(Some(Vec::new()));
    let result = call();
    (result, exchange(before).unwrap_or_default())
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_its_own_warnings_and_nobody_elses() {
        let warn = |text: &str| raise(WarningKind::Noise, text.into());
        let texts = |all: Vec<Warning>| all.into_iter().map(|w| w.message).collect::<Vec<_>>();
        warn("outside");
        let (inner, outer) = during(|| {
            warn("first");
            let ((), inner) = during(|| warn("inner"));
            warn("second");
            texts(inner)
        });
        assert_eq!((inner, texts(outer)), (vec!["inner".to_owned()], vec!["first".to_owned(), "second".to_owned()]));
        // Nothing is kept where nobody asks.
        warn("outside again");
        assert!(RAISED.with(|raised| raised.borrow().is_none()));
        assert_eq!(during(|| ()).1, []);
    }
}
