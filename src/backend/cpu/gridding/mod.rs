//! Gridding on a CPU: spreading samples onto the oversampled grid, and interpolating from it.
//!
//! The grid is cut into tiles (tiling.rs), and samples are sorted by the tile in which their window starts
//! (sorting.rs). A tile of many samples is worked on in parts. A part's samples are added up in a buffer of the tile
//! and the overhang of its windows, which stays in cache and needs no wrap-around (spread.rs). The buffers are added to
//! the grid in an order that is fixed when samples are sorted (schedule.rs): every grid point receives its sums in the
//! same order whatever the number of threads.
//!
//! Rows of a tile are added in whole vectors: the window's taps are shifted within the vectors to where the window
//! starts (taps.rs). Samples whose windows start in the same vector are then summed in the same registers, and no load
//! waits for a store that covers a part of it.
//!
//! A running sum rounds with every addition. Where thousands of samples add the same value to the same cells, as in the
//! centre of a kooshball, all roundings may have one sign. So where many samples' windows start in one vector,
//! they are summed in blocks, and the blocks' sums are added to the tile in twice the precision (Knuth's TwoSum).

mod gridder;
mod interpolate;
mod schedule;
mod sorting;
mod spread;
mod taps;
mod tiling;

pub use gridder::Gridder;
