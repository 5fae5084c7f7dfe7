//! Cache of unused GPU memory, by size.

use cudarc::driver::sys as cu;
use std::collections::BTreeMap;

/// Unused blocks of GPU memory.
#[derive(Default)]
pub struct DeviceMemoryCache {
    /// Total bytes.
    bytes: usize,
    /// Addresses of blocks by size.
    blocks: BTreeMap<usize, Vec<u64>>,
}

impl DeviceMemoryCache {
    /// Takes a block of exactly this size, if there is one.
    pub fn take(&mut self, bytes: usize) -> Option<u64> {
        let address = self.blocks.get_mut(&bytes)?.pop()?;
        self.bytes -= bytes;
        Some(address)
    }

    /// Adds a block that is not used any more.
    ///
    /// # Safety
    /// The block of this size was allocated in this context, and its previous owner does not use it any more, except in
    /// queued work.
    pub unsafe fn put(&mut self, address: u64, bytes: usize) {
        self.bytes += bytes;
        self.blocks.entry(bytes).or_default().push(address);
    }

    /// Frees blocks, the largest first, until at most `most` bytes are left, and returns the number of bytes freed. The
    /// allocation of a few megabytes takes 0.2 ms and that of a gigabyte 0.5 ms, so that many small blocks cost most to
    /// allocate again. The context must be current, and no work that uses the blocks may be running.
    pub fn trim(&mut self, most: usize) -> usize {
        let before = self.bytes;
        while self.bytes > most {
            let Some(mut largest) = self.blocks.last_entry() else { break };
            let Some(address) = largest.get_mut().pop() else {
                largest.remove();
                continue;
            };
            self.bytes -= largest.key();
            // SAFETY: by the promise of `put`, the block was allocated and is not used any more.
            unsafe { cu::cuMemFree_v2(address) };
        }
        before - self.bytes
    }

    /// Returns the total bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Empties the cache and returns the size and address of each block, which the caller must free.
    pub fn take_all(&mut self) -> impl Iterator<Item = (usize, u64)> {
        self.bytes = 0;
        std::mem::take(&mut self.blocks).into_iter().flat_map(|(bytes, at)| at.into_iter().map(move |at| (bytes, at)))
    }
}
