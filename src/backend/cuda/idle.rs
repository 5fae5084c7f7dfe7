//! Memory of a GPU that nobody uses for the time being, kept for the next who asks for as much.

use cudarc::driver::sys as cu;
use std::collections::HashMap;

/// Memory that nobody uses for the time being.
#[derive(Default)]
pub struct Idle {
    /// In all.
    bytes: usize,
    /// Addresses by size.
    blocks: HashMap<usize, Vec<u64>>,
}

impl Idle {
    /// Memory of exactly this size, if there is some.
    pub fn take(&mut self, bytes: usize) -> Option<u64> {
        let address = self.blocks.get_mut(&bytes)?.pop()?;
        self.bytes -= bytes;
        Some(address)
    }

    /// Keeps memory that nobody uses any more.
    ///
    /// # Safety
    /// So many bytes were allocated there in this context, and whoever had them does not use them any more, but for
    /// work that is queued.
    pub unsafe fn put(&mut self, address: u64, bytes: usize) {
        self.bytes += bytes;
        self.blocks.entry(bytes).or_default().push(address);
    }

    /// Frees blocks until at most `most` bytes are left; gives the bytes freed. The context is current, and no work
    /// that uses them is under way.
    pub fn trim(&mut self, most: usize) -> usize {
        let before = self.bytes;
        for (&bytes, addresses) in &mut self.blocks {
            while self.bytes > most {
                let Some(address) = addresses.pop() else { break };
                // SAFETY: whoever put it here has promised that it was allocated, and that nobody has it any more.
                unsafe { cu::cuMemFree_v2(address) };
                self.bytes -= bytes;
            }
        }
        before - self.bytes
    }

    /// Bytes kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes all of it, as sizes and addresses.
    pub fn take_all(&mut self) -> impl Iterator<Item = (usize, u64)> {
        self.bytes = 0;
        std::mem::take(&mut self.blocks).into_iter().flat_map(|(bytes, at)| at.into_iter().map(move |at| (bytes, at)))
    }
}
