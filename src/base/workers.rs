//! Loops over the elements of arrays, by the calling thread or by several.

use super::error::{try_reserve, Result};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Who does a loop.
///
/// # Safety
/// The ranges of one loop must not overlap, and must together be all of it.
pub unsafe trait Workers: Sync {
    /// Calls `part` for ranges that together are `0..len`, maybe for several at once. Returns when it has returned from
    /// all.
    fn run(&self, len: usize, part: &(dyn Fn(Range<usize>) + Sync));
}

/// The calling thread alone.
pub struct Alone;

// SAFETY: there is one range, which is all of the loop.
unsafe impl Workers for Alone {
    fn run(&self, len: usize, part: &(dyn Fn(Range<usize>) + Sync)) {
        part(0..len);
    }
}

/// The elements `value(0..len)`, or an error that says how many bytes were wanted.
pub(crate) fn collect<E: Copy + Send>(
    workers: &dyn Workers,
    len: usize,
    what: &str,
    value: impl Fn(usize) -> E + Sync,
) -> Result<Vec<E>> {
    write_parts(workers, len, what, |part, range| {
        for (element, i) in part.iter_mut().zip(range) {
            element.write(value(i));
        }
    })
}

/// A copy of `elements`, or an error that says how many bytes were wanted.
pub(crate) fn copied<E: Copy + Send + Sync>(workers: &dyn Workers, elements: &[E], what: &str) -> Result<Vec<E>> {
    write_parts(workers, elements.len(), what, |part, range| {
        for (to, from) in part.iter_mut().zip(&elements[range]) {
            to.write(*from);
        }
    })
}

/// Elements of which `write(part, range)` writes all parts.
fn write_parts<E: Copy + Send>(
    workers: &dyn Workers,
    len: usize,
    what: &str,
    write: impl Fn(&mut [MaybeUninit<E>], Range<usize>) + Sync,
) -> Result<Vec<E>> {
    struct Start<E>(*mut MaybeUninit<E>);
    // SAFETY: each element is written by one thread, in a range of its own.
    unsafe impl<E: Send> Sync for Start<E> {}
    impl<E> Start<E> {
        fn at(&self, i: usize) -> *mut MaybeUninit<E> {
            self.0.wrapping_add(i)
        }
    }
    let mut elements = try_reserve(len, what)?;
    let start = Start(elements.spare_capacity_mut()[..len].as_mut_ptr());
    workers.run(len, &|range| {
        assert!(range.end <= len);
        // SAFETY: the range is within the memory, and no other thread has a part of it.
        let part = unsafe { std::slice::from_raw_parts_mut(start.at(range.start), range.len()) };
        write(part, range);
    });
    // SAFETY: the ranges were all of 0..len, and each element of theirs has been written.
    unsafe { elements.set_len(len) };
    Ok(elements)
}

/// The least index that `found` finds, which looks for it in a range.
pub(crate) fn first(
    workers: &dyn Workers,
    len: usize,
    found: impl Fn(Range<usize>) -> Option<usize> + Sync,
) -> Option<usize> {
    let least = AtomicUsize::new(usize::MAX);
    workers.run(len, &|range| {
        if let Some(at) = found(range) {
            least.fetch_min(at, Ordering::Relaxed);
        }
    });
    Some(least.into_inner()).filter(|&at| at != usize::MAX)
}

/// What `merge` makes of the results for all ranges, beginning with `start`: they come in any order.
pub(crate) fn merged<R: Send>(
    workers: &dyn Workers,
    len: usize,
    start: R,
    of: impl Fn(Range<usize>) -> R + Sync,
    merge: impl Fn(&mut R, R) + Sync,
) -> R {
    let all = Mutex::new(start);
    workers.run(len, &|range| {
        let one = of(range);
        merge(&mut all.lock().unwrap_or_else(PoisonError::into_inner), one);
    });
    all.into_inner().unwrap_or_else(PoisonError::into_inner)
}
