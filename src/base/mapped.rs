//! Large blocks of memory mapped from the system rather than allocated by the C library.
//!
//! glibc has an arena for each thread, and each arena keeps the memory that was freed there: 16 threads that create
//! plans would keep 16 times the memory of one. glibc also raises its thresholds for the whole process when a large
//! array is freed. Blocks of at least [`SMALLEST`] bytes are therefore mapped here, which leaves the host's allocator
//! unchanged. Windows' heap returns each large array to the system when it is freed. Unused blocks stay in a cache that
//! all threads share, so that the next plan needs no fresh pages. The cache is limited to [`IDLE_BYTES`] when no block
//! is in use, and [`release`] empties it.
//!
//! On systems other than Unix and Windows there are no blocks, and the allocator of the C library is used.

use super::per_process::PerProcess;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Smallest block in bytes. glibc itself maps arrays from 128 KiB on, and returns the end of its heap to the system
/// when 128 KiB are free there. With arrays of 32 KiB on the heap, each small plan would wait for fresh pages.
pub const SMALLEST: usize = 32 << 10;
/// Maximum number of unused bytes that stay cached when no block is in use. It is enough for a plan of about 5 million
/// samples, whose creation takes a quarter longer in fresh pages.
const IDLE_BYTES: usize = 128 << 20;
/// Blocks of this size or larger are never cached, since they would not stay: they always consist of fresh pages of
/// zeros.
pub const ALWAYS_FRESH: usize = IDLE_BYTES;
/// Maximum number of unused bytes that stay cached while blocks are in use. The bytes in use are a further limit.
const IDLE_BYTES_IN_USE: usize = 1 << 30;
/// Maximum number of cached blocks, which bounds the time of a search.
const IDLE_BLOCKS: usize = 1024;
/// Size and alignment of a huge page. Blocks from [`HUGE_PAGES`] on begin at a multiple of it.
const HUGE_PAGE: usize = 2 << 20;
/// Blocks of at least this size ask for huge pages: transforms along y and z touch a page per row.
const HUGE_PAGES: usize = 4 << 20;

/// A block of mapped pages, unmapped when dropped.
pub struct Block {
    address: NonNull<u8>,
    /// Size in bytes, whole pages.
    bytes: usize,
    /// Bytes that the current user requested.
    used: usize,
}

// SAFETY: the block owns its pages.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// Returns the address of the first byte, which begins a page.
    pub fn address(&self) -> NonNull<u8> {
        self.address
    }
}

/// Unused blocks, the oldest first.
#[derive(Default)]
struct Cache {
    blocks: Vec<Block>,
    bytes: usize,
}

impl Cache {
    const EMPTY: Cache = Cache { blocks: Vec::new(), bytes: 0 };

    /// Removes the smallest block of at least `bytes` bytes that is larger by at most 1/32.
    fn take(&mut self, bytes: usize) -> Option<Block> {
        let fits = |block: &Block| block.bytes >= bytes && block.bytes - bytes <= bytes / 32;
        let (index, _) = self.blocks.iter().enumerate().filter(|(_, b)| fits(b)).min_by_key(|(_, b)| b.bytes)?;
        let block = self.blocks.remove(index);
        self.bytes -= block.bytes;
        Some(block)
    }

    /// Adds a block. Returns the block if there is no memory for the list.
    fn put(&mut self, block: Block) -> Result<(), Block> {
        if self.blocks.try_reserve(1).is_err() {
            return Err(block);
        }
        self.bytes += block.bytes;
        self.blocks.push(block);
        Ok(())
    }

    /// Removes the oldest block if there are too many blocks or more than `limit` bytes.
    fn evict(&mut self, limit: usize) -> Option<Block> {
        if self.bytes <= limit && self.blocks.len() <= IDLE_BLOCKS || self.blocks.is_empty() {
            return None;
        }
        let block = self.blocks.remove(0);
        self.bytes -= block.bytes;
        Some(block)
    }
}

/// The cache of this process. A forked child takes over the parent's blocks, unless another thread was using the cache
/// at that moment: then they are lost to the child.
static CACHE: PerProcess<Mutex<Cache>> = PerProcess::new(Mutex::new(Cache::EMPTY), |parent| {
    Mutex::new(parent.try_lock().map(|mut cache| std::mem::take(&mut *cache)).unwrap_or_default())
});
/// Bytes that the users of all blocks requested.
static IN_USE: AtomicUsize = AtomicUsize::new(0);

/// Calls `f` with the locked cache.
fn with_cache<R>(f: impl FnOnce(&mut Cache) -> R) -> R {
    f(&mut CACHE.get().lock().unwrap_or_else(PoisonError::into_inner))
}

/// Unmaps the oldest cached blocks until at most `limit` bytes are left. Returns the number of bytes unmapped.
fn trim(limit: usize) -> usize {
    let mut unmapped = 0;
    // Blocks are unmapped without the lock, since this takes milliseconds per GiB.
    while let Some(block) = with_cache(|cache| cache.evict(limit)) {
        unmapped += block.bytes;
    }
    unmapped
}

/// Returns a block of at least `used` bytes, and whether all its bytes are 0. `None` if the system refuses, or has no
/// such blocks.
pub fn take(used: usize) -> Option<(Block, bool)> {
    let bytes = used.checked_next_multiple_of(page_size())?;
    let cached = if bytes < ALWAYS_FRESH { with_cache(|cache| cache.take(bytes)) } else { None };
    let (mut block, is_fresh) = match cached {
        Some(block) => (block, false),
        // Cached memory is released before an allocation fails.
        None => (map(bytes).or_else(|| (trim(0) > 0).then(|| map(bytes)).flatten())?, true),
    };
    block.used = used;
    IN_USE.fetch_add(used, Ordering::Relaxed);
    Some((block, is_fresh))
}

/// Returns the maximum number of unused bytes that stay cached while blocks of `in_use` bytes are in use.
pub fn unused_limit(in_use: usize) -> usize {
    in_use.clamp(IDLE_BYTES, IDLE_BYTES_IN_USE)
}

/// Takes back a block that is no longer used.
pub fn give_back(block: Block) {
    let in_use = IN_USE.fetch_sub(block.used, Ordering::Relaxed) - block.used;
    if block.bytes < ALWAYS_FRESH {
        // A block that the cache rejects is unmapped after the lock is released.
        drop(with_cache(|cache| cache.put(block)));
    }
    trim(unused_limit(in_use));
}

/// Releases all unused blocks to the system. Returns the number of bytes.
pub fn release() -> usize {
    trim(0)
}

/// Returns the number of bytes that users of blocks requested, for tests that measure memory.
pub fn bytes_in_use() -> usize {
    IN_USE.load(Ordering::Relaxed)
}

/// Returns whether the system would now provide `bytes` bytes in one block; `None` if unknown.
pub fn is_available(bytes: usize) -> Option<bool> {
    if cfg!(not(any(unix, windows))) {
        return None;
    }
    // The pages for alignment are left out. The cache is not used because it would keep the block.
    let bytes = bytes.checked_next_multiple_of(page_size())?;
    Some(map_pages(bytes).map(|address| unmap(address, bytes)).is_some())
}

/// Returns whether `bytes` more bytes of address space can be mapped, without memory behind them.
pub fn has_addresses(_bytes: usize) -> bool {
    #[cfg(unix)]
    // SAFETY: the mapping is new, and is unmapped at once.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
        let address = libc::mmap(std::ptr::null_mut(), _bytes, libc::PROT_NONE, flags, -1, 0);
        if address == libc::MAP_FAILED {
            return false;
        }
        libc::munmap(address, _bytes);
    }
    true
}

/// Returns the size of a page in bytes.
#[cfg(unix)]
fn page_size() -> usize {
    // SAFETY: sysconf only returns a number.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

#[cfg(not(unix))]
fn page_size() -> usize {
    4096
}

/// Maps fresh pages of zeros.
#[cfg(unix)]
fn map_pages(bytes: usize) -> Option<NonNull<u8>> {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
    // SAFETY: the mapping is new; no existing mapping changes.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
    if address == libc::MAP_FAILED {
        return None;
    }
    NonNull::new(address.cast())
}

#[cfg(windows)]
fn map_pages(bytes: usize) -> Option<NonNull<u8>> {
    use windows_sys::Win32::System::Memory::{VirtualAlloc, MEM_COMMIT, MEM_RESERVE, PAGE_READWRITE};
    // SAFETY: the pages are new; no existing pages change.
    let address = unsafe { VirtualAlloc(std::ptr::null(), bytes, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE) };
    NonNull::new(address.cast())
}

#[cfg(not(any(unix, windows)))]
fn map_pages(_bytes: usize) -> Option<NonNull<u8>> {
    None
}

/// Unmaps all or, on Unix, some of the pages that `map_pages` returned.
fn unmap(_address: NonNull<u8>, _bytes: usize) {
    #[cfg(unix)]
    // SAFETY: the callers own these pages and no longer use them. If the system refuses to split a mapping, the pages
    // stay mapped.
    unsafe {
        libc::munmap(_address.as_ptr().cast(), _bytes);
    }
    #[cfg(windows)]
    // SAFETY: the callers own these pages and no longer use them. The address is that of `map_pages`, and 0 stands for
    // all pages.
    unsafe {
        use windows_sys::Win32::System::Memory::{VirtualFree, MEM_RELEASE};
        VirtualFree(_address.as_ptr().cast(), 0, MEM_RELEASE);
    }
}

/// Maps a block of `bytes` bytes, a multiple of the page size.
fn map(bytes: usize) -> Option<Block> {
    // Windows unmaps no part of a block, and has huge pages for administrators only.
    if bytes < HUGE_PAGES || cfg!(windows) {
        return map_pages(bytes).map(|address| Block { address, bytes, used: 0 });
    }
    let block = map_aligned(bytes).or_else(|| map_pages(bytes).map(|address| Block { address, bytes, used: 0 }))?;
    #[cfg(target_os = "linux")]
    // SAFETY: the pages belong to the block. The advice changes no contents, and may be refused.
    unsafe {
        libc::madvise(block.address.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
    }
    Some(block)
}

/// Maps a block that begins at a multiple of a huge page, so that most of it can consist of huge pages.
fn map_aligned(bytes: usize) -> Option<Block> {
    let mapped = bytes.checked_add(HUGE_PAGE - page_size())?;
    let start = map_pages(mapped)?;
    let skipped = start.as_ptr().align_offset(HUGE_PAGE);
    // SAFETY: both addresses are inside the mapping, which has room for the alignment.
    let (address, end) = unsafe { (start.add(skipped), start.add(skipped + bytes)) };
    let after = mapped - skipped - bytes;
    [(start, skipped), (end, after)].into_iter().filter(|part| part.1 > 0).for_each(|(at, bytes)| unmap(at, bytes));
    Some(Block { address, bytes, used: 0 })
}

impl Drop for Block {
    fn drop(&mut self) {
        unmap(self.address, self.bytes);
    }
}

/// Unmaps the cached blocks when the library is unloaded, since they could not be found afterwards.
#[cfg(all(target_os = "linux", not(test)))]
#[used]
#[link_section = ".fini_array"]
static AT_UNLOADING: extern "C" fn() = {
    extern "C" fn unmap_all() {
        // Other threads may still run while a process ends, so no lock is waited for.
        if let Ok(mut cache) = CACHE.get().try_lock() {
            cache.blocks.clear();
            cache.bytes = 0;
        }
    }
    unmap_all
};

/// The same on Windows, whose loader calls this function before the library is unloaded. At the end of the process
/// `process_ends` is not null.
#[cfg(all(windows, not(test)))]
#[used]
#[link_section = ".CRT$XLB"]
static AT_UNLOADING: extern "system" fn(*mut std::ffi::c_void, u32, *mut std::ffi::c_void) = {
    use windows_sys::Win32::System::SystemServices::DLL_PROCESS_DETACH;
    extern "system" fn unmap_all(_: *mut std::ffi::c_void, reason: u32, process_ends: *mut std::ffi::c_void) {
        if reason == DLL_PROCESS_DETACH && process_ends.is_null() {
            // Other threads may still run, so no lock is waited for.
            if let Ok(mut cache) = CACHE.get().try_lock() {
                cache.blocks.clear();
                cache.bytes = 0;
            }
        }
    }
    unmap_all
};

#[cfg(all(test, any(unix, windows)))]
mod tests {
    use super::*;

    fn block(bytes: usize) -> Block {
        Block { address: map_pages(bytes).unwrap(), bytes, used: 0 }
    }

    #[test]
    fn the_cache_returns_the_smallest_block_that_fits() {
        let mut cache = Cache::EMPTY;
        let page = page_size();
        for pages in [64, 80, 72, 200] {
            assert!(cache.put(block(pages * page)).is_ok());
        }
        assert_eq!(cache.bytes, 416 * page);
        assert!(cache.take(201 * page).is_none());
        // 72 pages are too many for 69.
        assert!(cache.take(69 * page).is_none());
        assert_eq!(cache.take(70 * page).unwrap().bytes, 72 * page);
        assert!(cache.take(70 * page).is_none());
        assert_eq!(cache.take(63 * page).unwrap().bytes, 64 * page);
        assert_eq!(cache.bytes, 280 * page);
        // The oldest block is evicted first.
        assert_eq!(cache.evict(279 * page).unwrap().bytes, 80 * page);
        assert!(cache.evict(200 * page).is_none());
        assert_eq!(cache.evict(0).unwrap().bytes, 200 * page);
        assert!(cache.evict(0).is_none() && cache.bytes == 0);
    }

    #[test]
    fn large_blocks_are_fresh_zeros_and_aligned() {
        for bytes in [SMALLEST, HUGE_PAGES, HUGE_PAGES + 1, ALWAYS_FRESH] {
            let (block, _) = take(bytes).unwrap();
            assert!(block.bytes >= bytes);
            if bytes >= HUGE_PAGES && cfg!(unix) {
                assert_eq!(block.address.as_ptr() as usize % HUGE_PAGE, 0);
            }
            // SAFETY: the block has `bytes` bytes, and no other code uses them.
            let all = unsafe { std::slice::from_raw_parts_mut(block.address.as_ptr(), bytes) };
            all.fill(7);
            give_back(block);
            let (again, is_fresh) = take(bytes).unwrap();
            // SAFETY: as above.
            let all = unsafe { std::slice::from_raw_parts(again.address.as_ptr(), bytes) };
            // Other tests may have taken the block in the meantime.
            assert!(!is_fresh || all.iter().all(|&b| b == 0));
            assert!(is_fresh || bytes < ALWAYS_FRESH);
            give_back(again);
        }
        assert!(take(usize::MAX).is_none() && take(1 << 60).is_none());
    }
}
