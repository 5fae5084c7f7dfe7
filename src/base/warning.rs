//! Warnings of a plan, or of a correction: it can compute, but the image may not be the expected one.

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
}

/// A warning: its kind, and a sentence for a person that names the cause, the value and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// What it is about.
    pub kind: WarningKind,
    /// The sentence.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
