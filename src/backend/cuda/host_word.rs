//! Words of page-locked host memory that kernels write, so that the host reads a result without waiting for a stream.

use super::library::check;
use crate::base::error::Result;
use cudarc::driver::sys as cu;
use std::any::Any;
use std::ptr::{null_mut, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes that are allocated at once, and bytes of a word: a cache line.
const BLOCK: usize = 4096;
const LINE: usize = 64;

/// Address of a word on the host and on the GPU.
type Addresses = (NonNull<AtomicU64>, u64);

/// The words of a context. Clones share them.
#[derive(Clone, Default)]
pub struct HostWords(Arc<Mutex<WordLists>>);

#[derive(Default)]
struct WordLists {
    unused: Vec<Addresses>,
    blocks: Vec<*mut std::ffi::c_void>,
}

// SAFETY: the addresses are of memory that all threads reach.
unsafe impl Send for WordLists {}

impl HostWords {
    /// Frees all words.
    ///
    /// # Safety
    /// The context is current, and no work that writes words is queued.
    pub unsafe fn free(&self) {
        let mut lists = self.0.lock().unwrap_or_else(|e| e.into_inner());
        lists.unused.clear();
        for block in lists.blocks.drain(..) {
            // SAFETY: allocated by `HostWord::new`; nothing uses it any more.
            unsafe { cu::cuMemFreeHost(block) };
        }
    }
}

/// A word that one kernel writes once.
pub struct HostWord {
    addresses: Addresses,
    words: HostWords,
    /// Keeps the memory of the words.
    _context: Arc<dyn Any + Send + Sync>,
}

// SAFETY: the word is in memory that all threads reach, and is accessed atomically.
unsafe impl Send for HostWord {}

impl HostWord {
    /// Returns an unused word with this value.
    ///
    /// # Safety
    /// The context of these words is current, and `context` keeps it.
    pub unsafe fn new(words: &HostWords, context: Arc<dyn Any + Send + Sync>, value: u64) -> Result<Self> {
        let mut lists = words.0.lock().unwrap_or_else(|e| e.into_inner());
        if lists.unused.is_empty() {
            let (mut block, mut device) = (null_mut(), 0);
            let flags = cu::CU_MEMHOSTALLOC_PORTABLE | cu::CU_MEMHOSTALLOC_DEVICEMAP;
            // SAFETY: the context is current; freed by `HostWords::free`.
            check(unsafe { cu::cuMemHostAlloc(&mut block, BLOCK, flags) }, "a word of page-locked memory")?;
            lists.blocks.push(block);
            // SAFETY: the block has just been allocated for use by the GPU.
            check(unsafe { cu::cuMemHostGetDevicePointer_v2(&mut device, block, 0) }, "a word of page-locked memory")?;
            for at in (0..BLOCK).step_by(LINE) {
                // SAFETY: inside of the block; blocks are aligned to pages.
                let host = unsafe { block.cast::<u8>().add(at) }.cast();
                lists.unused.push((NonNull::new(host).expect("an address in the block"), device + at as u64));
            }
        }
        let addresses = lists.unused.pop().expect("there are unused words");
        drop(lists);
        let word = HostWord { addresses, words: words.clone(), _context: context };
        word.value().store(value, Ordering::Release);
        Ok(word)
    }

    /// Returns the word's value.
    pub fn value(&self) -> &AtomicU64 {
        // SAFETY: the block exists as long as the context, and its words are accessed atomically only.
        unsafe { self.addresses.0.as_ref() }
    }

    /// Returns its address on the GPU.
    pub fn device_address(&self) -> u64 {
        self.addresses.1
    }
}

impl Drop for HostWord {
    fn drop(&mut self) {
        self.words.0.lock().unwrap_or_else(|e| e.into_inner()).unused.push(self.addresses);
    }
}
