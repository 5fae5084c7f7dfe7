//! Loops over the elements of arrays, by the calling thread or by several.
//!
//! Elements are worked on in chunks that the array's length decides, and results of chunks are put together in their
//! order: who does a loop changes its time and nothing else.

use super::error::{try_reserve, Result};
use super::memory::{Aligned, Room};
use super::real::Element;
use super::sizes::product;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Elements of a chunk, at least: an image of 256 x 256 is work for 16 threads.
const CHUNK: usize = 1 << 12;
/// Chunks begin at multiples of so many elements, that threads write no line of the cache together.
const LINE: usize = 64;
/// Chunks of one array, at most: their results fit the stack.
const MOST_CHUNKS: usize = 512;

/// Who does a loop.
///
/// # Safety
/// Every task must be done once.
pub unsafe trait Workers: Sync {
    /// Calls `task` with each of `0..tasks`, maybe with several at once. Returns when it has returned from all.
    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync));
}

/// The calling thread alone.
pub struct Alone;

// SAFETY: every task is done once.
unsafe impl Workers for Alone {
    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..tasks).for_each(task);
    }
}

/// Elements of each chunk of an array of `len`, but for the last, which may have fewer.
pub(crate) fn chunk_len(len: usize) -> usize {
    CHUNK.max(len.div_ceil(MOST_CHUNKS).next_multiple_of(LINE))
}

/// Calls `part(number, elements)` for all chunks of an array of `len` elements.
pub(crate) fn each_chunk(workers: &dyn Workers, len: usize, part: impl Fn(usize, Range<usize>) + Sync) {
    let chunk = chunk_len(len);
    workers.run(len.div_ceil(chunk), &|i| part(i, i * chunk..len.min((i + 1) * chunk)));
}

/// What `merge` makes of `start` and the results of all chunks, in their order.
pub(crate) fn fold<R: Copy + Send>(
    workers: &dyn Workers,
    len: usize,
    start: R,
    of: impl Fn(Range<usize>) -> R + Sync,
    merge: impl Fn(R, R) -> R,
) -> R {
    let mut results = [start; MOST_CHUNKS];
    let own = Shared::new(&mut results);
    // SAFETY: each chunk has its own result.
    each_chunk(workers, len, |i, elements| unsafe { own.set(i, of(elements)) });
    let chunks = len.div_ceil(chunk_len(len));
    results[..chunks].iter().fold(start, |all, one| merge(all, *one))
}

/// The least index that `found` finds, which looks for the first in a range.
pub(crate) fn first(
    workers: &dyn Workers,
    len: usize,
    found: impl Fn(Range<usize>) -> Option<usize> + Sync,
) -> Option<usize> {
    fold(workers, len, None, found, Option::or)
}

/// The elements `value(0..len)`, or an error that says how many bytes were wanted.
pub(crate) fn collect<E: Copy + Send>(
    workers: &dyn Workers,
    len: usize,
    what: &str,
    value: impl Fn(usize) -> E + Sync,
) -> Result<Vec<E>> {
    let mut elements = try_reserve(len, what)?;
    let shared = Shared::new(&mut elements.spare_capacity_mut()[..len]);
    each_chunk(workers, len, |_, range| {
        // SAFETY: chunks do not overlap.
        let part: &mut [MaybeUninit<E>] = unsafe { shared.part(range.start, range.len()) };
        for (element, i) in part.iter_mut().zip(range) {
            element.write(value(i));
        }
    });
    // SAFETY: chunks are all of 0..len, and each element of theirs has been written.
    unsafe { elements.set_len(len) };
    Ok(elements)
}

/// Copies of arrays of one length, or an error that says how many bytes were wanted.
pub(crate) fn copied<E: Element>(workers: &dyn Workers, arrays: &[&[E]], what: &str) -> Result<Vec<Aligned<E>>> {
    let len = arrays[0].len();
    let mut room = Room::unwritten(product(&[arrays.len(), Room::bytes::<E>(len)]), what)?;
    let mut copies: Vec<Aligned<E>> = arrays.iter().map(|_| room.array(len)).collect();
    let shared: Vec<Shared<E>> = copies.iter_mut().map(|copy| Shared::new(copy)).collect();
    each_chunk(workers, len, |_, range| {
        for (copy, array) in shared.iter().zip(arrays) {
            // SAFETY: chunks do not overlap.
            unsafe { copy.part(range.start, range.len()) }.copy_from_slice(&array[range.clone()]);
        }
    });
    drop(shared);
    Ok(copies)
}

/// A slice that several threads write, each its own elements.
pub struct Shared<'a, E> {
    address: *mut E,
    len: usize,
    marker: std::marker::PhantomData<&'a mut [E]>,
}

// SAFETY: elements are used only through unsafe functions, whose callers promise to use different elements.
unsafe impl<E: Send> Sync for Shared<'_, E> {}
// SAFETY: sending it sends the use of its elements, which are Send.
unsafe impl<E: Send> Send for Shared<'_, E> {}

impl<'a, E> Shared<'a, E> {
    /// Shares a slice.
    pub fn new(slice: &'a mut [E]) -> Self {
        Shared { address: slice.as_mut_ptr(), len: slice.len(), marker: std::marker::PhantomData }
    }

    /// The number of elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The address of element `start`.
    pub fn address(&self, start: usize) -> *mut E {
        assert!(start <= self.len);
        self.address.wrapping_add(start)
    }

    /// Elements `start .. start + len`.
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
    /// No other thread may use this element meanwhile.
    #[inline(always)]
    pub unsafe fn set(&self, i: usize, value: E) {
        assert!(i < self.len);
        // SAFETY: inside the slice, as asserted; the caller promises that no other thread uses it.
        unsafe { *self.address.add(i) = value }
    }
}
