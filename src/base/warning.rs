//! Warnings of a plan or call: the computation proceeds, but the image may not be the expected one.

use std::cell::RefCell;
use std::fmt;

/// The subject of a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WarningKind {
    /// The coordinates cover less than a quarter of the k-space that the image's size could resolve: possibly wrong
    /// units, which blur the image.
    Extent,
    /// The window or the precision cannot meet the default tolerance. (If the caller sets a tolerance, this is an
    /// error.)
    Tolerance,
    /// The PROPELLER blades disagree after motion correction.
    Blades,
    /// A noise scan is short, or a noise level does not fit the data.
    Noise,
    /// The requested number of virtual coils preserves little of the data's energy.
    Compression,
    /// A phase wraps: the echo spacing cannot determine the off-resonance, or a velocity exceeds its encoding.
    Wraps,
    /// The sample times are implausible for a readout, possibly not in seconds.
    Times,
    /// The system refused to start threads: fewer threads compute than requested.
    Threads,
    /// Gaps between samples narrow the central region of k-space used for coil maps.
    Calibration,
    /// The acquisitions of a scan can be interpreted in several ways, or some are missing.
    Acquisitions,
    /// Partial Fourier: the symmetric centre of k-space is narrow, the phase of the image is not smooth, or k-space has
    /// gaps.
    PartialFourier,
}

/// A warning: its kind, and a message for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The subject.
    pub kind: WarningKind,
    /// The message, which states cause, value and remedy.
    pub message: String,
}

thread_local! {
    /// Warnings of the running call of this thread; `None` if warnings are not captured.
    static CAPTURED: RefCell<Option<Vec<Warning>>> = const { RefCell::new(None) };
}

/// Logs a warning of the running call, and stores it for [`capture`].
pub(crate) fn raise(kind: WarningKind, message: String) {
    log::warn!("{message}");
    record(Warning { kind, message });
}

/// Stores a warning that has been logged, such as one of a plan, for [`capture`].
pub(crate) fn record(warning: Warning) {
    // Without memory for the list, or while the thread ends, the warning is only logged.
    let _ = CAPTURED.try_with(|raised| {
        if let Some(raised) = raised.borrow_mut().as_mut() {
            if raised.try_reserve(1).is_ok() {
                raised.push(warning);
            }
        }
    });
}

/// Returns the result of `call` and the warnings that it raised in this thread. A nested call captures its own
/// warnings.
pub(crate) fn capture<R>(call: impl FnOnce() -> R) -> (R, Vec<Warning>) {
    let replace = |list| CAPTURED.try_with(|raised| raised.replace(list)).ok().flatten();
    let outer = replace(Some(Vec::new()));
    let result = call();
    (result, replace(outer).unwrap_or_default())
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
    fn nested_calls_capture_their_own_warnings() {
        let warn = |text: &str| raise(WarningKind::Noise, text.into());
        let texts = |all: Vec<Warning>| all.into_iter().map(|w| w.message).collect::<Vec<_>>();
        warn("outside");
        let (inner, outer) = capture(|| {
            warn("first");
            let ((), inner) = capture(|| warn("inner"));
            warn("second");
            texts(inner)
        });
        assert_eq!((inner, texts(outer)), (vec!["inner".to_owned()], vec!["first".to_owned(), "second".to_owned()]));
        // Outside of `capture`, warnings are not stored.
        warn("outside again");
        assert!(CAPTURED.with(|raised| raised.borrow().is_none()));
        assert_eq!(capture(|| ()).1, []);
    }
}
