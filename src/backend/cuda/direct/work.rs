//! Division of work and work memory of both kinds of direct sums.

use crate::backend::cuda::gpu::Gpu;
use crate::backend::cuda::memory::DeviceArray;
use crate::backend::DevicePointer;
use crate::base::error::Result;

/// Maximum bytes of the partial sums, unless there is one part.
pub const PARTS_BYTES: usize = 64 << 20;

/// Threads per block in kernels with one element per thread.
pub const THREADS: usize = 256;

/// Returns the number of blocks for `count` elements.
pub fn blocks(count: usize) -> [u32; 3] {
    [count.div_ceil(THREADS).max(1) as u32, 1, 1]
}

/// Returns the best number of parts for work of `blocks` blocks, `fill` of which run at once: the smallest number for
/// which the last round of blocks is nearly full.
pub fn parts(blocks: usize, fill: usize, most: usize, bytes: usize) -> usize {
    let most = most.min(PARTS_BYTES / bytes.max(1)).max(1);
    let rounds = |parts: usize| (blocks * parts).div_ceil(fill) as f64 / parts as f64;
    let mut best = 1;
    for parts in 2..=most.min(4 * fill) {
        if rounds(parts) < 0.93 * rounds(best) {
            best = parts;
        }
    }
    best
}

/// Work memory through which kernels pass data to later kernels.
pub struct WorkMemory(DeviceArray<u64>);

/// Offsets in the work memory, in bytes.
#[derive(Default)]
pub struct WorkOffsets {
    pub end: usize,
}

impl WorkOffsets {
    pub fn take(&mut self, bytes: usize) -> usize {
        let start = self.end;
        self.end += bytes.next_multiple_of(256);
        start
    }
}

impl WorkMemory {
    pub fn new(gpu: &Gpu, bytes: usize) -> Result<Self> {
        Ok(WorkMemory(gpu.array(bytes.div_ceil(8), "direct sums")?))
    }

    pub fn at<E>(&self, place: usize) -> DevicePointer<E> {
        DevicePointer::new(self.0.pointer().address() + place as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_fill_the_gpu() {
        assert_eq!(parts(264, 132, 1000, 8), 1);
        assert_eq!(parts(256, 132, 1000, 1 << 24), 1);
        assert_eq!(parts(1, 132, 1000, 8), 132);
        assert_eq!(parts(1, 132, 3, 8), 3);
        assert_eq!(parts(1, 132, 1000, PARTS_BYTES / 2), 2);
        assert_eq!(parts(133, 132, 1000, usize::MAX), 1);
        // Two rounds for 133 blocks become 1.33 with three parts.
        assert!(parts(133, 132, 1000, 8) > 1);
    }
}
