//! Errors and warnings of plans.

#[path = "../common/mod.rs"]
mod common;

mod geometry;
mod memory_limit;
mod named_window;
mod overflow;
mod warnings;
