//! The division of the arrays of a call (coils, frames, segments) among threads: one array is one task.
//!
//! Otherwise the threads divide the samples and lines of every array. Few samples are few parts of tiles, and the
//! threads meet after spreading and after each axis of the FFT. Tasks of different arrays never wait, and the grid of
//! an array stays in the cache of its core from spreading to the FFT. The taps of a sample are computed for
//! each array again, so that many samples are divided among the threads instead. Both divisions give the same bits.

use crate::backend::threads::Threads;
use crate::base::sizes::product;
use crate::base::workers::SharedSlice;
use std::ops::Range;

/// Largest grid in bytes that is one task. It stays in the cache of a core.
const MAX_GRID: usize = 6 << 20;
/// Number of tasks per thread from which threads that have finished need not help the others.
const TASKS_PER_THREAD: usize = 4;

/// Returns whether each array is one task, if all arrays have this grid, in cells of `cell` bytes. It depends on sizes
/// only, as the estimate of a plan's memory does.
///
/// Measured with 4 to 16 arrays in 2D and 3D on 2, 4 and 16 threads (Intel, AVX-512): with few threads, samples divide
/// well from a few thousand on, with 16 threads from about 200,000. In 3D, taps take a smaller part of the time.
pub fn is_task_per_array(threads: usize, samples: usize, grid: &[usize], cell: usize) -> bool {
    let most = (1000 * threads.saturating_mul(threads)).min(10_000 * threads);
    let most = if grid.len() == 3 { 4 * most } else { most };
    threads > 1 && samples <= most && product(&[product(grid), cell]) <= MAX_GRID
}

/// Calls `transform` for every array in parallel, with the threads of its task. Threads without an array help the
/// others.
pub fn each_array(threads: &Threads, arrays: usize, transform: impl Fn(&Threads, TaskArray) + Sync) {
    let all_help = arrays < TASKS_PER_THREAD * threads.count();
    let share = threads.share(if all_help { 1 } else { threads.count() });
    threads.run(arrays, |array| transform(&share, TaskArray { array, arrays }));
}

/// One of the arrays of a call.
#[derive(Clone, Copy)]
pub struct TaskArray {
    array: usize,
    /// Number of arrays of the call.
    arrays: usize,
}

impl TaskArray {
    /// Returns the range of the array's elements, if all arrays have `len` elements together.
    fn elements(self, len: usize) -> Range<usize> {
        let one = len / self.arrays;
        self.array * one..(self.array + 1) * one
    }

    /// Returns the array's part of concatenated arrays.
    pub fn part<E>(self, all: &[E]) -> &[E] {
        &all[self.elements(all.len())]
    }

    /// Returns the array's part of concatenated arrays, for writing.
    ///
    /// # Safety
    /// No other thread may use the part while the result lives.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn part_mut<'a, E>(self, all: &'a SharedSlice<'_, E>) -> &'a mut [E] {
        let range = self.elements(all.len());
        // SAFETY: the caller promises that no other thread uses the part.
        unsafe { all.part(range.start, range.len()) }
    }
}
