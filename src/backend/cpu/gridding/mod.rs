//! Gridding on a CPU: spreading samples onto the oversampled grid, and interpolating from it.
//!
//! The grid is divided into tiles (tiling.rs), and samples are sorted by the tile in which their window starts
//! (sorting.rs, keys.rs). A tile of many samples is divided into parts. A part's samples are summed in a buffer that
//! covers the tile and the overhang of its windows. The buffer stays in cache and needs no wrap-around (spread.rs). The
//! sums of parts are added in pairs, and then the totals of tiles are added to the grid. The order is fixed when
//! samples are sorted (schedule.rs): every grid point receives its sums in the same order for any number of threads. No
//! thread waits for a slower one, because sums that must wait are left in their buffers (merging.rs).
//! A tile of few samples is not summed: their windows are added to the grid one by one (sparse_tiles.rs).
//!
//! Rows of a tile are added in whole vectors: the taps are shifted within the vectors to the start of the window
//! (taps.rs). Samples whose windows start in the same vector are then summed in the same registers, and no load waits
//! for a store that covers part of it.
//!
//! A running sum is rounded at every addition. If thousands of samples add the same value to the same cells, as in the
//! centre of a kooshball, all rounding errors may have the same sign. Many samples whose windows start in one vector
//! are therefore summed in blocks, and the blocks' sums are added to the tile in twice the precision (Knuth's TwoSum).

mod gridder;
mod interpolate;
mod keys;
mod merging;
mod schedule;
mod sorting;
mod sparse_tiles;
mod spread;
mod taps;
mod tiling;
mod windows;

pub use gridder::Gridder;
