//! Arrays aligned to cache lines; large arrays use huge pages. Arrays of at least 32 KiB are mapped (mapped.rs) and do
//! not use the host's allocator.
//!
//! An array that is written before it is read need not be cleared: a plan with many threads would wait for that. In
//! debug builds such an array is filled with NaN, so that tests detect elements that are read too early.

use crate::base::error::{bail, try_reserve, Error, ErrorKind, Result};
use crate::base::headroom;
use crate::base::mapped::{self, Block};
use crate::base::real::Element;
use std::alloc::{alloc, alloc_zeroed, dealloc, Layout};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

pub(crate) use crate::base::mapped::ALWAYS_FRESH;

/// Alignment in bytes: a cache line, and the widest vector.
const ALIGNMENT: usize = 64;
/// The default alignment of the system's allocator. Only with it does the allocator return fresh zero pages without
/// touching them.
const NATIVE_ALIGNMENT: usize = 2 * size_of::<usize>();

/// Smallest number of bytes that [`check_available`] asks the system for.
const SMALLEST_CHECKED: usize = 128 << 10;

/// Initial contents of memory.
#[derive(Clone, Copy, PartialEq)]
enum InitialContents {
    Zeros,
    /// Unspecified numbers.
    Unspecified,
}

/// A block of memory that begins on a cache line.
struct AlignedBlock {
    /// Address of the first cache line.
    address: NonNull<u8>,
    source: Allocation,
}

/// The allocation that a block is part of.
enum Allocation {
    Mapped(Block),
    Allocator {
        start: NonNull<u8>,
        layout: Layout,
    },
    /// Already returned.
    None,
}

// SAFETY: the block owns its bytes.
unsafe impl Send for AlignedBlock {}
// SAFETY: as above.
unsafe impl Sync for AlignedBlock {}

impl AlignedBlock {
    /// Allocates a nonzero number of bytes. `what` names the array in an error.
    fn new(bytes: usize, contents: InitialContents, what: &str) -> Result<Self> {
        let mapped = if bytes >= mapped::SMALLEST { mapped::take(bytes) } else { None };
        if let Some((block, is_fresh)) = mapped {
            let address = block.address();
            if contents == InitialContents::Zeros && !is_fresh {
                // SAFETY: the block has `bytes` bytes, and no other code uses them.
                unsafe { address.write_bytes(0, bytes) };
            } else if contents == InitialContents::Unspecified {
                // SAFETY: as above.
                unsafe { declare_initialised(address.as_ptr(), bytes) };
            }
            return Ok(AlignedBlock { address, source: Allocation::Mapped(block) });
        }
        let layout =
            Layout::from_size_align(bytes + ALIGNMENT - NATIVE_ALIGNMENT, NATIVE_ALIGNMENT).expect("below isize::MAX");
        let start = match contents {
            // SAFETY: the size is not zero.
            InitialContents::Zeros => unsafe { alloc_zeroed(layout) },
            InitialContents::Unspecified => allocate_unspecified(layout),
        };
        let Some(start) = NonNull::new(start) else { return Err(out_of_memory(bytes, what)) };
        if !headroom::has_room() {
            // SAFETY: allocated just now with this layout.
            unsafe { dealloc(start.as_ptr(), layout) };
            return Err(out_of_memory(bytes, what));
        }
        // SAFETY: the address is a multiple of NATIVE_ALIGNMENT, so that the next cache line begins at most ALIGNMENT -
        // NATIVE_ALIGNMENT bytes further on. The allocation is longer by this number.
        let address = unsafe { start.add(start.as_ptr().align_offset(ALIGNMENT)) };
        Ok(AlignedBlock { address, source: Allocation::Allocator { start, layout } })
    }
}

/// Returns the error of a refused allocation.
fn out_of_memory(bytes: usize, what: &str) -> Error {
    let message = format!("could not allocate {bytes} bytes for {what}: free memory, or use a smaller problem");
    Error::new(ErrorKind::OutOfHostMemory, message)
}

/// Checks that the system would now provide `bytes` bytes, without touching them. `what` names their purpose in an
/// error. Few bytes are not checked: their allocation fails as early, and the check takes two calls of the system.
///
/// # Errors
/// `OutOfHostMemory` if the system refuses.
pub(crate) fn check_available(bytes: usize, what: &str) -> Result<()> {
    if bytes < SMALLEST_CHECKED {
        return Ok(());
    }
    match mapped::is_available(bytes) {
        Some(true) => Ok(()),
        Some(false) => Err(out_of_memory(bytes, what)),
        None => try_reserve::<u8>(bytes, what).map(drop),
    }
}

/// Releases the host memory that the library keeps for the next plan. With glibc, free memory of the process's heap is
/// also released (malloc_trim).
pub fn release_host_memory() {
    mapped::release();
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: only free pages are released.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Returns the bytes of arrays in use that do not come from the allocator, for tests that measure memory.
#[doc(hidden)]
pub fn mapped_bytes_in_use() -> usize {
    mapped::bytes_in_use()
}

/// Allocates memory of unspecified numbers, for a nonzero size. Null if there is no memory.
fn allocate_unspecified(layout: Layout) -> *mut u8 {
    // SAFETY: the size is not zero.
    let start = unsafe {
        if HAS_ASSEMBLY || cfg!(debug_assertions) {
            alloc(layout)
        } else {
            alloc_zeroed(layout)
        }
    };
    if !start.is_null() {
        // SAFETY: the allocation has `layout.size()` bytes; without assembly they are zeros.
        unsafe { declare_initialised(start, layout.size()) };
    }
    start
}

/// Whether assembly is available to declare bytes as initialised without writing them.
const HAS_ASSEMBLY: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// Declares bytes as initialised to the compiler, without writing them. In debug builds they become NaN.
///
/// # Safety
/// `bytes` bytes at `start` must be writable. Without assembly they must be initialised.
unsafe fn declare_initialised(start: *mut u8, bytes: usize) {
    if cfg!(debug_assertions) {
        // SAFETY: the caller's promise.
        unsafe { start.write_bytes(0xff, bytes) };
        return;
    }
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: the instruction does nothing. The compiler must assume that it writes the bytes, so that they are
    // initialised from here on.
    unsafe {
        std::arch::asm!("/* {0} */", in(reg) start, options(nostack, preserves_flags))
    };
}

impl Drop for AlignedBlock {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.source, Allocation::None) {
            Allocation::Mapped(block) => mapped::give_back(block),
            // SAFETY: `new` allocated it with this layout.
            Allocation::Allocator { start, layout } => unsafe { dealloc(start.as_ptr(), layout) },
            Allocation::None => {}
        }
    }
}

/// An array of fixed length that begins on a cache line. The thread that first writes a page of a large array is the
/// first to touch it: creating a plan touches no grid.
pub struct Aligned<E> {
    address: NonNull<E>,
    len: usize,
    /// The memory of the array, which it may share with others; `None` for an array of no bytes.
    _memory: Option<Arc<AlignedBlock>>,
}

// SAFETY: the array owns its elements, as a Vec does.
unsafe impl<E: Send> Send for Aligned<E> {}
// SAFETY: a shared array provides shared references only, as a Vec does.
unsafe impl<E: Sync> Sync for Aligned<E> {}

impl<E: Element> Aligned<E> {
    /// Allocates an array of zeros. `what` names the array in an error.
    pub fn zeros(len: usize, what: &str) -> Result<Self> {
        Ok(AlignedArena::zeros(AlignedArena::bytes::<E>(len), what)?.array(len))
    }

    /// Allocates an array of unspecified numbers, which must be written before they are read.
    pub fn unwritten(len: usize, what: &str) -> Result<Self> {
        Ok(AlignedArena::unwritten(AlignedArena::bytes::<E>(len), what)?.array(len))
    }
}

impl<E> Aligned<E> {
    /// Creates an array of no elements.
    pub fn empty() -> Self {
        Aligned { address: NonNull::dangling(), len: 0, _memory: None }
    }
}

/// Memory for several arrays with the same lifetime. One large allocation uses huge pages, which each array alone may
/// be too small for.
pub struct AlignedArena {
    memory: Option<Arc<AlignedBlock>>,
    /// Size in bytes, and the number of bytes that arrays use.
    bytes: usize,
    used: usize,
}

impl AlignedArena {
    /// Returns the bytes that an array occupies: whole cache lines, so that the next array also begins on one.
    pub fn bytes<E>(len: usize) -> usize {
        len.saturating_mul(size_of::<E>()).div_ceil(ALIGNMENT).saturating_mul(ALIGNMENT)
    }

    /// Allocates `bytes` bytes for arrays of zeros. `what` describes the arrays in an error.
    pub fn zeros(bytes: usize, what: &str) -> Result<AlignedArena> {
        Self::new(bytes, InitialContents::Zeros, what)
    }

    /// Allocates `bytes` bytes for arrays that are written before they are read.
    pub fn unwritten(bytes: usize, what: &str) -> Result<AlignedArena> {
        Self::new(bytes, InitialContents::Unspecified, what)
    }

    fn new(bytes: usize, contents: InitialContents, what: &str) -> Result<AlignedArena> {
        if bytes > isize::MAX as usize - 2 * ALIGNMENT {
            bail!(
                SizeOverflow,
                "{what} would need {bytes} bytes, which is more than memory can address: use a smaller problem"
            );
        }
        let memory = if bytes > 0 { Some(Arc::new(AlignedBlock::new(bytes, contents, what)?)) } else { None };
        Ok(AlignedArena { memory, bytes, used: 0 })
    }

    /// Returns the next array.
    pub fn array<E: Element>(&mut self, len: usize) -> Aligned<E> {
        let bytes = Self::bytes::<E>(len);
        assert!(bytes <= self.bytes - self.used, "the arena has room for all arrays");
        let Some(memory) = self.memory.as_ref().filter(|_| bytes > 0) else {
            return Aligned { len, ..Aligned::empty() };
        };
        // SAFETY: the bytes are inside the memory, as asserted, and no other array uses them. An Element is a plain
        // number for which every bit pattern is valid, and a cache line is sufficiently aligned for it.
        let address = unsafe { memory.address.add(self.used) }.cast();
        self.used += bytes;
        Aligned { address, len, _memory: Some(memory.clone()) }
    }
}

impl<E> Deref for Aligned<E> {
    type Target = [E];
    fn deref(&self) -> &[E] {
        // SAFETY: len initialised elements, which live as long as self keeps the memory.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.len) }
    }
}

impl<E> DerefMut for Aligned<E> {
    fn deref_mut(&mut self) -> &mut [E] {
        // SAFETY: len initialised elements; self is mutably borrowed while they are used.
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
    fn arrays_of_one_arena_do_not_overlap() {
        let mut arena =
            AlignedArena::unwritten(AlignedArena::bytes::<u16>(5) + AlignedArena::bytes::<f64>(33), "a test").unwrap();
        let (mut a, empty, mut b) = (arena.array::<u16>(5), arena.array::<f32>(0), arena.array::<f64>(33));
        drop(arena);
        a.fill(1);
        b.fill(2.0);
        assert!(empty.is_empty() && a[..] == [1; 5] && b[..] == [2.0; 33]);
        assert_eq!(a.as_ptr() as usize % ALIGNMENT + b.as_ptr() as usize % ALIGNMENT, 0);
        drop(a);
        assert!(b[..] == [2.0; 33]);
    }
}
