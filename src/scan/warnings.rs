//! Warnings about acquisitions.

use crate::base::warning::{raise, WarningKind};

/// Warns of acquisitions that can be interpreted in several ways, or contradict each other or the header.
pub(super) fn warn(message: impl Into<String>) {
    raise(WarningKind::Acquisitions, message.into());
}
