//! Arrays at addresses that suit vectors and caches: zeroed, and in huge pages where they are large.

use crate::backend::Element;
use crate::base::error::{bail, Result};
use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A cache line, and the widest vector.
const ALIGNMENT: usize = 64;
/// What the system's allocator aligns to by itself. Only then does it hand out fresh zero pages without touching them.
const BY_ITSELF: usize = 2 * size_of::<usize>();
/// Arrays of so many bytes ask for huge pages: transforms along y and z touch a page a row.
const LARGE: usize = 4 << 20;

/// An array of a fixed length that begins on a cache line. The pages of a large one are first touched by the thread
/// that first writes there: to make a plan touches no grid.
pub struct Aligned<E> {
    address: NonNull<E>,
    len: usize,
    /// The allocation, in which the array begins at the first cache line.
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the array owns its elements, as a Vec does.
unsafe impl<E: Send> Send for Aligned<E> {}
// SAFETY: a shared array gives out shared references only, as a Vec does.
unsafe impl<E: Sync> Sync for Aligned<E> {}

impl<E: Element> Aligned<E> {
    /// An array of zeros. `what` is for the message when there is no memory.
    pub fn zeros(len: usize, what: &str) -> Result<Self> {
        let bytes = len.checked_mul(std::mem::size_of::<E>()).filter(|&b| b <= isize::MAX as usize - 2 * ALIGNMENT);
        let Some(bytes) = bytes else {
            bail!(SizeOverflow, "{what} of {len} elements is more than memory can address: use a smaller problem");
        };
        if bytes == 0 {
            return Ok(Aligned { len, ..Self::empty() });
        }
        let layout = Layout::from_size_align(bytes + ALIGNMENT - BY_ITSELF, BY_ITSELF).expect("below isize::MAX");
        // SAFETY: the size is not zero.
        let Some(start) = NonNull::new(unsafe { alloc_zeroed(layout) }) else {
            bail!(
                OutOfHostMemory,
                "could not allocate {bytes} bytes for {what}: free memory, or use a smaller problem"
            );
        };
        // SAFETY: the address is a multiple of BY_ITSELF, so that the next cache line begins at most
        // ALIGNMENT - BY_ITSELF bytes on, by which the allocation is longer than the array.
        let address = unsafe { start.add(start.as_ptr().align_offset(ALIGNMENT)) };
        #[cfg(target_os = "linux")]
        if bytes >= LARGE {
            // SAFETY: whole pages inside the allocation; the advice changes no contents, and may be refused.
            unsafe {
                let page = libc::sysconf(libc::_SC_PAGESIZE) as usize;
                let inside = address.as_ptr().align_offset(page);
                libc::madvise(address.as_ptr().add(inside).cast(), bytes - inside, libc::MADV_HUGEPAGE);
            }
        }
        // An Element is plain numbers, for which zero bits are zeros.
        Ok(Aligned { address: address.cast(), len, start, layout })
    }
}

impl<E> Aligned<E> {
    /// An array of no elements.
    pub fn empty() -> Self {
        Aligned { address: NonNull::dangling(), len: 0, start: NonNull::dangling(), layout: Layout::new::<()>() }
    }
}

impl<E> Deref for Aligned<E> {
    type Target = [E];
    fn deref(&self) -> &[E] {
        // SAFETY: len elements, initialised, for as long as self lives.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.len) }
    }
}

impl<E> DerefMut for Aligned<E> {
    fn deref_mut(&mut self) -> &mut [E] {
        // SAFETY: len elements, initialised, and self is mutably borrowed while they are used.
        unsafe { std::slice::from_raw_parts_mut(self.address.as_ptr(), self.len) }
    }
}

impl<E> Drop for Aligned<E> {
    fn drop(&mut self) {
        if self.layout.size() > 0 {
            // SAFETY: `zeros` allocated it with this layout; elements are Copy and need no drop.
            unsafe { dealloc(self.start.as_ptr(), self.layout) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_aligned_and_zero() {
        assert!(Aligned::<f64>::zeros(0, "nothing").unwrap().is_empty());
        for len in [1, 1000, 3 << 20] {
            let mut array = Aligned::<f64>::zeros(len, "a test").unwrap();
            assert_eq!(array.len(), len);
            assert_eq!(array.as_ptr() as usize % ALIGNMENT, 0);
            assert!(array.iter().all(|&x| x == 0.0));
            array.fill(1.0);
        }
        assert!(Aligned::<f64>::zeros(usize::MAX / 4, "too much").is_err());
    }
}
