//! Arrays at addresses that suit vectors and caches, in huge pages where they are large. Arrays of 128 KiB or more are
//! mapped (mapped.rs) and leave the host's allocator alone.
//!
//! An array that is written before it is read need not be cleared: that would be what a plan with many threads waits
//! for. In debug builds such an array is full of NaN, so that tests find who reads it too early.

use crate::base::error::{bail, try_reserve, Error, ErrorKind, Result};
use crate::base::headroom;
use crate::base::mapped::{self, Block};
use crate::base::real::Element;
use std::alloc::{alloc, alloc_zeroed, dealloc, Layout};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

pub(crate) use crate::base::mapped::ALWAYS_FRESH;

/// A cache line, and the widest vector.
const ALIGNMENT: usize = 64;
/// What the system's allocator aligns to by itself. Only then does it hand out fresh zero pages without touching them.
const BY_ITSELF: usize = 2 * size_of::<usize>();

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
    source: Source,
}

/// The allocation that memory is from.
enum Source {
    Mapped(Block),
    Allocator {
        start: NonNull<u8>,
        layout: Layout,
    },
    /// Given back already.
    None,
}

// SAFETY: it owns its bytes, and says nothing but where they are.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// `bytes`, not zero, for `what`.
    fn new(bytes: usize, contents: Contents, what: &str) -> Result<Self> {
        let mapped = if bytes >= mapped::SMALLEST { mapped::take(bytes) } else { None };
        if let Some((block, is_fresh)) = mapped {
            let address = block.address();
            if contents == Contents::Zeros && !is_fresh {
                // SAFETY: the block has so many bytes, and nobody else has it.
                unsafe { address.write_bytes(0, bytes) };
            } else if contents == Contents::Any {
                // SAFETY: as above.
                unsafe { set_any_numbers(address.as_ptr(), bytes) };
            }
            return Ok(Memory { address, source: Source::Mapped(block) });
        }
        let layout = Layout::from_size_align(bytes + ALIGNMENT - BY_ITSELF, BY_ITSELF).expect("below isize::MAX");
        let start = match contents {
            // SAFETY: the size is not zero.
            Contents::Zeros => unsafe { alloc_zeroed(layout) },
            Contents::Any => of_any_numbers(layout),
        };
        let Some(start) = NonNull::new(start) else { return Err(out_of_memory(bytes, what)) };
        if !headroom::is_there() {
            // SAFETY: allocated just now with this layout.
            unsafe { dealloc(start.as_ptr(), layout) };
            return Err(out_of_memory(bytes, what));
        }
        // SAFETY: the address is a multiple of BY_ITSELF, so that the next cache line begins at most
        // ALIGNMENT - BY_ITSELF bytes on, by which the allocation is longer.
        let address = unsafe { start.add(start.as_ptr().align_offset(ALIGNMENT)) };
        Ok(Memory { address, source: Source::Allocator { start, layout } })
    }
}

/// Returns the error of an allocation that was refused.
fn out_of_memory(bytes: usize, what: &str) -> Error {
    let message = format!("could not allocate {bytes} bytes for {what}: free memory, or use a smaller problem");
    Error::new(ErrorKind::OutOfHostMemory, message)
}

/// Checks that the system would now give `bytes` bytes for `what`, without touching them.
///
/// # Errors
/// `OutOfHostMemory` if it would not.
pub(crate) fn check_available(bytes: usize, what: &str) -> Result<()> {
    match mapped::is_available(bytes) {
        Some(true) => Ok(()),
        Some(false) => Err(out_of_memory(bytes, what)),
        None => try_reserve::<u8>(bytes, what).map(drop),
    }
}

/// Gives the memory back to the system that the library keeps for the next plan. Plans that exist lose nothing. On
/// glibc the free memory of the process's heap is given back too (malloc_trim).
pub fn release_memory() {
    mapped::release();
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: gives back free pages only.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Bytes of the arrays in use that do not come from the allocator, for tests that count memory.
#[doc(hidden)]
pub fn mapped_bytes_in_use() -> usize {
    mapped::bytes_in_use()
}

/// Returns an allocation of any numbers, for a size that is not zero. Null if there is no memory.
fn of_any_numbers(layout: Layout) -> *mut u8 {
    // SAFETY: the size is not zero.
    let start = unsafe {
        if HAS_ASSEMBLY || cfg!(debug_assertions) {
            alloc(layout)
        } else {
            alloc_zeroed(layout)
        }
    };
    if !start.is_null() {
        // SAFETY: the allocation has so many bytes; without assembly they are zeros.
        unsafe { set_any_numbers(start, layout.size()) };
    }
    start
}

/// Whether bytes can be declared as written to the compiler without writing them.
const HAS_ASSEMBLY: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// Makes bytes numbers for the compiler, whatever they are. In debug builds they are NaN.
///
/// # Safety
/// `bytes` bytes at `start` may be written. Without assembly they are initialised.
unsafe fn set_any_numbers(start: *mut u8, bytes: usize) {
    if cfg!(debug_assertions) {
        // SAFETY: the caller's promise.
        unsafe { start.write_bytes(0xff, bytes) };
        return;
    }
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: nothing is done. For all that the compiler knows the bytes are written here: they are numbers from here
    // on, and not uninitialised.
    unsafe {
        std::arch::asm!("/* {0} */", in(reg) start, options(nostack, preserves_flags))
    };
}

impl Drop for Memory {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.source, Source::None) {
            Source::Mapped(block) => mapped::give_back(block),
            // SAFETY: `new` allocated it with this layout.
            Source::Allocator { start, layout } => unsafe { dealloc(start.as_ptr(), layout) },
            Source::None => {}
        }
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
