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

    /// Takes out blocks, the largest first, until at most `most` bytes are left, and gives each one's address and size
    /// to `leave`. Returns the number of bytes taken. The allocation of a few megabytes takes 0.2 ms and that of a
    /// gigabyte 0.5 ms, so that many small blocks cost most to allocate again.
    fn take_excess(&mut self, most: usize, mut leave: impl FnMut(u64, usize)) -> usize {
        let before = self.bytes;
        while self.bytes > most {
            let Some(mut largest) = self.blocks.last_entry() else { break };
            let Some(address) = largest.get_mut().pop() else {
                largest.remove();
                continue;
            };
            let bytes = *largest.key();
            self.bytes -= bytes;
            leave(address, bytes);
        }
        before - self.bytes
    }

    /// Frees the largest blocks until at most `most` bytes are left, and returns the number of bytes freed. The context
    /// must be current, and no work that uses the blocks may be running.
    pub fn trim(&mut self, most: usize) -> usize {
        // SAFETY: by the promise of `put`, the block was allocated and is not used any more.
        self.take_excess(most, |address, _| unsafe { _ = cu::cuMemFree_v2(address) })
    }

    /// Moves the largest blocks to a cache of the same context until at most `most` bytes are left, and returns the
    /// number of bytes moved. No work that uses the blocks may be running.
    pub fn move_excess(&mut self, most: usize, to: &mut Self) -> usize {
        // SAFETY: by the promise of `put`, as it is here.
        self.take_excess(most, |address, bytes| unsafe { to.put(address, bytes) })
    }

    /// Returns the total bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
