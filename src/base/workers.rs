//! Loops over the elements of arrays, in one or several threads.
//!
//! Arrays are processed in chunks that depend on the array's length only, and the results of chunks are combined in
//! their order. The number of threads therefore affects the time, but not the results.

use super::error::{try_reserve, Result};
use super::memory::{Aligned, AlignedArena};
use super::real::Element;
use super::sizes::product;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Minimum number of elements per chunk: an image of 256 x 256 gives 16 chunks.
const CHUNK: usize = 1 << 12;
/// Chunks begin at multiples of this number of elements, so that threads do not write to the same cache line.
const CHUNK_ALIGNMENT: usize = 64;
/// Maximum number of chunks per array: their results fit the stack.
const MAX_CHUNKS: usize = 512;

/// An executor of parallel loops.
///
/// # Safety
/// Every task must be run exactly once.
pub unsafe trait Workers: Sync {
    /// Calls `task` with each of `0..tasks`, possibly in parallel. Returns after all calls have returned.
    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync));
}

/// An executor that uses the calling thread only.
pub struct SerialExecutor;

// SAFETY: every task is run exactly once.
unsafe impl Workers for SerialExecutor {
    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..tasks).for_each(task);
    }
}

/// Returns the number of elements per chunk for an array of `len` elements. The last chunk may have fewer.
pub(crate) fn chunk_len(len: usize) -> usize {
    CHUNK.max(len.div_ceil(MAX_CHUNKS).next_multiple_of(CHUNK_ALIGNMENT))
}

/// Calls `part(number, elements)` for all chunks of an array of `len` elements.
pub(crate) fn each_chunk(workers: &dyn Workers, len: usize, part: impl Fn(usize, Range<usize>) + Sync) {
    let chunk = chunk_len(len);
    workers.run(len.div_ceil(chunk), &|i| part(i, i * chunk..len.min((i + 1) * chunk)));
}

/// Combines `start` and the results of all chunks with `merge`, in their order.
pub(crate) fn fold<R: Copy + Send>(
    workers: &dyn Workers,
    len: usize,
    start: R,
    of: impl Fn(Range<usize>) -> R + Sync,
    merge: impl Fn(R, R) -> R,
) -> R {
    let chunks = len.div_ceil(chunk_len(len));
    if chunks == 1 {
        // Filling the list of results would take longer than most short arrays.
        return merge(start, of(0..len));
    }
    let mut results = [start; MAX_CHUNKS];
    let shared = SharedSlice::new(&mut results);
    // SAFETY: each chunk has its own result.
    each_chunk(workers, len, |i, elements| unsafe { shared.set(i, of(elements)) });
    results[..chunks].iter().fold(start, |total, result| merge(total, *result))
}

/// Returns the smallest index found. `find` returns the first index in a range.
pub(crate) fn find_first(
    workers: &dyn Workers,
    len: usize,
    find: impl Fn(Range<usize>) -> Option<usize> + Sync,
) -> Option<usize> {
    fold(workers, len, None, find, Option::or)
}

/// Returns the elements `value(0..len)`. If memory is insufficient, the error states the number of bytes.
pub(crate) fn collect<E: Copy + Send>(
    workers: &dyn Workers,
    len: usize,
    what: &str,
    value: impl Fn(usize) -> E + Sync,
) -> Result<Vec<E>> {
    let mut elements = try_reserve(len, what)?;
    let shared = SharedSlice::new(&mut elements.spare_capacity_mut()[..len]);
    each_chunk(workers, len, |_, range| {
        // SAFETY: chunks do not overlap.
        let part: &mut [MaybeUninit<E>] = unsafe { shared.part(range.start, range.len()) };
        for (element, i) in part.iter_mut().zip(range) {
            element.write(value(i));
        }
    });
    // SAFETY: the chunks cover 0..len, and all of their elements have been written.
    unsafe { elements.set_len(len) };
    Ok(elements)
}

/// Copies an array to another one of equal length.
pub(crate) fn copy<E: Copy + Send + Sync>(workers: &dyn Workers, from: &[E], to: &mut [E]) {
    assert_eq!(from.len(), to.len());
    let to = SharedSlice::new(to);
    // SAFETY: chunks do not overlap.
    each_chunk(workers, from.len(), |_, range| unsafe {
        to.part(range.start, range.len()).copy_from_slice(&from[range]);
    });
}

/// Allocates arrays of `len` elements. If memory is insufficient, the error states the number of bytes.
pub(crate) fn unwritten_arrays<E: Element>(count: usize, len: usize, what: &str) -> Result<Vec<Aligned<E>>> {
    let mut arena = AlignedArena::unwritten(product(&[count, AlignedArena::bytes::<E>(len)]), what)?;
    Ok((0..count).map(|_| arena.array(len)).collect())
}

/// Copies arrays of equal length. If memory is insufficient, the error states the number of bytes.
pub(crate) fn copied<E: Element>(workers: &dyn Workers, arrays: &[&[E]], what: &str) -> Result<Vec<Aligned<E>>> {
    let len = arrays[0].len();
    let mut copies = unwritten_arrays(arrays.len(), len, what)?;
    let shared: Vec<SharedSlice<E>> = copies.iter_mut().map(|copy| SharedSlice::new(copy)).collect();
    each_chunk(workers, len, |_, range| {
        for (copy, array) in shared.iter().zip(arrays) {
            // SAFETY: chunks do not overlap.
            unsafe { copy.part(range.start, range.len()) }.copy_from_slice(&array[range.clone()]);
        }
    });
    drop(shared);
    Ok(copies)
}

/// A slice that several threads write, each thread to different elements.
pub struct SharedSlice<'a, E> {
    address: *mut E,
    len: usize,
    marker: std::marker::PhantomData<&'a mut [E]>,
}

// SAFETY: elements are used only through unsafe functions, whose callers promise to use different elements.
unsafe impl<E: Send> Sync for SharedSlice<'_, E> {}
// SAFETY: sending the slice sends the use of its elements, which are Send.
unsafe impl<E: Send> Send for SharedSlice<'_, E> {}

impl<'a, E> SharedSlice<'a, E> {
    /// Shares a slice.
    pub fn new(slice: &'a mut [E]) -> Self {
        SharedSlice { address: slice.as_mut_ptr(), len: slice.len(), marker: std::marker::PhantomData }
    }

    /// Returns the number of elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the address of element `start`.
    pub fn address(&self, start: usize) -> *mut E {
        assert!(start <= self.len);
        self.address.wrapping_add(start)
    }

    /// Returns the elements `start .. start + len`.
    ///
    /// # Safety
    /// No other thread may use these elements while the result lives.
    #[allow(clippy::mut_from_ref)]
    #[inline(always)]
    pub unsafe fn part(&self, start: usize, len: usize) -> &mut [E] {
        assert!(start <= self.len && len <= self.len - start);
        // SAFETY: inside the slice, as asserted; the caller promises that no other thread uses it.
        unsafe { std::slice::from_raw_parts_mut(self.address.add(start), len) }
    }

    /// Writes element `i`.
    ///
    /// # Safety
    /// No other thread may use this element during the call.
    #[inline(always)]
    pub unsafe fn set(&self, i: usize, value: E) {
        assert!(i < self.len);
        // SAFETY: inside the slice, as asserted; the caller promises that no other thread uses it.
        unsafe { *self.address.add(i) = value }
    }
}
