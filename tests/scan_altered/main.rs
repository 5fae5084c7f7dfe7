//! Altered and hostile acquisitions. One flag, counter, header field or element of the XML header is altered at a time.
//! The result is data that an independent interpretation confirms, a warning, or an error that names the cause.
//!
//! `cargo test --test scan_altered -- --nocapture` prints the result of each alteration.

#[path = "../common/acquisitions.rs"]
mod acquisitions;
#[path = "../common/mod.rs"]
mod common;
mod counters;
mod expected;
mod fields;
mod flags;
mod measurement;
mod mutations;
mod outcome;
mod page;
mod xml;
