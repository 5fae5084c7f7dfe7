//! Arrays at addresses that suit vectors and caches, in huge pages where they are large.
//!
//! An array that is written before it is read need not be cleared: that would be what a plan with many threads waits
//! for. In debug builds such an array is full of NaN, so that tests find who reads it too early.

use crate::base::error::{bail, Result};
use crate::base::real::Element;
use std::alloc::{alloc, alloc_zeroed, dealloc, Layout};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

/// A cache line, and the widest vector.
const ALIGNMENT: usize = 64;
/// What the system's allocator aligns to by itself. Only then does it hand out fresh zero pages without touching them.
const BY_ITSELF: usize = 2 * size_of::<usize>();
/// Arrays of so many bytes ask for huge pages: transforms along y and z touch a page a row.
const LARGE: usize = 4 << 20;
/// Allocations of so many bytes are fresh pages of zeros, also where others have been given back: the most that glibc
/// keeps (DEFAULT_MMAP_THRESHOLD_MAX).
pub const ALWAYS_FRESH: usize = 32 << 20;

/// What memory holds at first.
#[derive(Clone, Copy, PartialEq)]
enum Contents {
    Zeros,
    /// Any numbers.
    Any,
}

/// Memory that begins on a cache line.
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
    fn new(bytes: usize, contents: Contents, what: &str) -> Result<Self> {
        keep_what_is_freed();
        let layout = Layout::from_size_align(bytes + ALIGNMENT - BY_ITSELF, BY_ITSELF).expect("below isize::MAX");
        let start = match contents {
            // SAFETY: the size is not zero.
            Contents::Zeros => unsafe { alloc_zeroed(layout) },
            Contents::Any => of_any_numbers(layout),
        };
        let Some(start) = NonNull::new(start) else {
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

/// Has the C library keep up to 64 MiB of freed memory for the next allocation, as it does in a process that has ever
/// freed an array of 32 MiB. Before that, glibc gives what is freed back to the system beyond twice the largest array
/// freed so far (mallopt(3), M_MMAP_THRESHOLD), and each plan that follows another pays for fresh pages: up to three
/// times what the plan itself takes. The first call allocates such an array, touches none of its pages, and frees it.
/// Options that the user gives glibc (mallopt, GLIBC_TUNABLES) stay in force.
fn keep_what_is_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        static ONCE: std::sync::Once = std::sync::Once::new();
        /// The largest page of any processor: glibc adds less to an array of its own mapping.
        const PAGE: usize = 1 << 16;
        // SAFETY: what malloc returned is freed once. Null, where there is no memory, may be freed too.
        ONCE.call_once(|| unsafe { libc::free(std::hint::black_box(libc::malloc(ALWAYS_FRESH - PAGE))) });
    }
}

/// An allocation of what the allocator has left there, for a size that is not zero. Null where there is no memory.
fn of_any_numbers(layout: Layout) -> *mut u8 {
    if cfg!(debug_assertions) {
        // SAFETY: the size is not zero.
        let start = unsafe { alloc(layout) };
        if !start.is_null() {
            // SAFETY: the allocation has so many bytes.
            unsafe { start.write_bytes(0xff, layout.size()) };
        }
        return start;
    }
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        // SAFETY: the size is not zero.
        let start = unsafe { alloc(layout) };
        // SAFETY: nothing is done. For all that the compiler knows the bytes are written here: they are numbers from
        // here on, and not uninitialised.
        unsafe { std::arch::asm!("/* {0} */", in(reg) start, options(nostack, preserves_flags)) };
        start
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    // SAFETY: the size is not zero.
    unsafe {
        alloc_zeroed(layout)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `new` allocated it with this layout.
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
        Ok(Room::zeros(Room::bytes::<E>(len), what)?.array(len))
    }

    /// An array of any numbers, which must be written before they are read.
    pub fn unwritten(len: usize, what: &str) -> Result<Self> {
        Ok(Room::unwritten(Room::bytes::<E>(len), what)?.array(len))
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

    /// Room of so many bytes for arrays of zeros; `what` they are is for the message when there is no memory.
    pub fn zeros(bytes: usize, what: &str) -> Result<Room> {
        Self::new(bytes, Contents::Zeros, what)
    }

    /// Room for arrays that are written before they are read.
    pub fn unwritten(bytes: usize, what: &str) -> Result<Room> {
        Self::new(bytes, Contents::Any, what)
    }

    fn new(bytes: usize, contents: Contents, what: &str) -> Result<Room> {
        if bytes > isize::MAX as usize - 2 * ALIGNMENT {
            bail!(SizeOverflow, "{what} of {bytes} bytes is more than memory can address: use a smaller problem");
        }
        let memory = if bytes > 0 { Some(Arc::new(Memory::new(bytes, contents, what)?)) } else { None };
        Ok(Room { memory, bytes, used: 0 })
    }

    /// The next array.
    pub fn array<E: Element>(&mut self, len: usize) -> Aligned<E> {
        let bytes = Self::bytes::<E>(len);
        assert!(bytes <= self.bytes - self.used, "there is room for all arrays");
        let Some(memory) = self.memory.as_ref().filter(|_| bytes > 0) else {
            return Aligned { len, ..Aligned::empty() };
        };
        // SAFETY: inside the memory, as asserted. An Element is plain numbers, of which any bits are one and zero bits
        // are zero, and a cache line suits it. No other array has these bytes.
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
        let mut room = Room::unwritten(Room::bytes::<u16>(5) + Room::bytes::<f64>(33), "a test").unwrap();
        let (mut a, none, mut b) = (room.array::<u16>(5), room.array::<f32>(0), room.array::<f64>(33));
        drop(room);
        a.fill(1);
        b.fill(2.0);
        assert!(none.is_empty() && a[..] == [1; 5] && b[..] == [2.0; 33]);
        assert_eq!(a.as_ptr() as usize % ALIGNMENT + b.as_ptr() as usize % ALIGNMENT, 0);
        drop(a);
        assert!(b[..] == [2.0; 33]);
    }
}
