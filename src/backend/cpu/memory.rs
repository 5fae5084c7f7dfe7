//! Arrays at addresses that suit vectors and caches: zeroed, and in huge pages where they are large.

use crate::backend::Element;
use crate::base::error::{bail, Result};
use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

/// A cache line, and the widest vector.
const ALIGNMENT: usize = 64;
/// What the system's allocator aligns to by itself. Only then does it hand out fresh zero pages without touching them.
const BY_ITSELF: usize = 2 * size_of::<usize>();
/// Arrays of so many bytes ask for huge pages: transforms along y and z touch a page a row.
const LARGE: usize = 4 << 20;

/// Memory of zeros that begins on a cache line.
struct Memory {
    /// The first cache line.
    address: NonNull<u8>,
    /// The allocation around it.
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns its bytes, and says nothing but where they are.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// `bytes`, not zero, for `what`.
    fn zeros(bytes: usize, what: &str) -> Result<Self> {
        let layout = Layout::from_size_align(bytes + ALIGNMENT - BY_ITSELF, BY_ITSELF).expect("below isize::MAX");
        // SAFETY: the size is not zero.
        let Some(start) = NonNull::new(unsafe { alloc_zeroed(layout) }) else {
            bail!(
                OutOfHostMemory,
                "could not allocate {bytes} bytes for {what}: free memory, or use a smaller problem"
            );
        };
        // SAFETY: the address is a multiple of BY_ITSELF, so that the next cache line begins at most
        // ALIGNMENT - BY_ITSELF bytes on, by which the allocation is longer.
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
        Ok(Memory { address, start, layout })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `zeros` allocated it with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// An array of a fixed length that begins on a cache line. The pages of a large one are first touched by the thread
/// that first writes there: to make a plan touches no grid.
pub struct Aligned<E> {
    address: NonNull<E>,
    len: usize,
    /// Where the array lies, alone or beside others; it only has to stay. None for an array of no bytes.
    _memory: Option<Arc<Memory>>,
}

// SAFETY: the array owns its elements, as a Vec does.
unsafe impl<E: Send> Send for Aligned<E> {}
// SAFETY: a shared array gives out shared references only, as a Vec does.
unsafe impl<E: Sync> Sync for Aligned<E> {}

impl<E: Element> Aligned<E> {
    /// An array of zeros. `what` is for the message when there is no memory.
    pub fn zeros(len: usize, what: &str) -> Result<Self> {
        Ok(Room::new(Room::bytes::<E>(len), what)?.zeros(len))
    }
}

impl<E> Aligned<E> {
    /// An array of no elements.
    pub fn empty() -> Self {
        Aligned { address: NonNull::dangling(), len: 0, _memory: None }
    }
}

/// Memory for several arrays that come and go together: asked for at once it is in huge pages, where each of the arrays
/// alone would be too small for one.
pub struct Room {
    memory: Option<Arc<Memory>>,
    /// Bytes, and how many of them arrays have.
    bytes: usize,
    used: usize,
}

impl Room {
    /// The bytes that an array takes: whole cache lines, so that the next begins on one too.
    pub fn bytes<E>(len: usize) -> usize {
        len.saturating_mul(size_of::<E>()).div_ceil(ALIGNMENT).saturating_mul(ALIGNMENT)
    }

    /// Room of so many bytes for `what`.
    pub fn new(bytes: usize, what: &str) -> Result<Room> {
        if bytes > isize::MAX as usize - 2 * ALIGNMENT {
            bail!(SizeOverflow, "{what} of {bytes} bytes is more than memory can address: use a smaller problem");
        }
        let memory = if bytes > 0 { Some(Arc::new(Memory::zeros(bytes, what)?)) } else { None };
        Ok(Room { memory, bytes, used: 0 })
    }

    /// The next array of zeros.
    pub fn zeros<E: Element>(&mut self, len: usize) -> Aligned<E> {
        let bytes = Self::bytes::<E>(len);
        assert!(bytes <= self.bytes - self.used, "there is room for all arrays");
        let Some(memory) = self.memory.as_ref().filter(|_| bytes > 0) else {
            return Aligned { len, ..Aligned::empty() };
        };
        // SAFETY: inside the memory, as asserted. An Element is plain numbers, for which zero bits are zeros, and a
        // cache line suits it. No other array has these bytes.
        let address = unsafe { memory.address.add(self.used) }.cast();
        self.used += bytes;
        Aligned { address, len, _memory: Some(memory.clone()) }
    }
}

impl<E> Deref for Aligned<E> {
    type Target = [E];
    fn deref(&self) -> &[E] {
        // SAFETY: len elements, initialised, for as long as self lives, which keeps the memory.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.len) }
    }
}

impl<E> DerefMut for Aligned<E> {
    fn deref_mut(&mut self) -> &mut [E] {
        // SAFETY: len elements, initialised, and self is mutably borrowed while they are used.
        unsafe { std::slice::from_raw_parts_mut(self.address.as_ptr(), self.len) }
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

    #[test]
    fn arrays_of_one_room_are_apart() {
        let mut room = Room::new(Room::bytes::<u16>(5) + Room::bytes::<f64>(33), "a test").unwrap();
        let (mut a, none, mut b) = (room.zeros::<u16>(5), room.zeros::<f32>(0), room.zeros::<f64>(33));
        drop(room);
        a.fill(1);
        b.fill(2.0);
        assert!(none.is_empty() && a[..] == [1; 5] && b[..] == [2.0; 33]);
        assert_eq!(a.as_ptr() as usize % ALIGNMENT + b.as_ptr() as usize % ALIGNMENT, 0);
        drop(a);
        assert!(b[..] == [2.0; 33]);
    }
}
