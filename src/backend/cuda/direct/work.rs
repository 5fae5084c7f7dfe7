//! What both kinds of direct sums share: how work is divided, and the memory in which kernels hand on what they make.

use crate::backend::cuda::gpu::Gpu;
use crate::backend::cuda::memory::DeviceArray;
use crate::backend::{DevicePointer, DeviceSlice, DeviceSliceMut};
use crate::base::error::Result;
use num_complex::Complex;

/// Complex numbers to read, and to write.
pub type In<'a, T> = DeviceSlice<'a, Complex<T>>;
pub type Out<'a, T> = DeviceSliceMut<'a, Complex<T>>;

/// Bytes that parts of a sum, to be added up, may take, unless there is one part.
pub const PARTS_BYTES: usize = 64 << 20;

/// Threads of blocks that have an element a thread.
pub const THREADS: usize = 256;

/// As many such blocks as `count` elements need.
pub fn blocks(count: usize) -> [u32; 3] {
    [count.div_ceil(THREADS).max(1) as u32, 1, 1]
}

/// In how many parts work of `blocks` blocks is best divided, `fill` of which run at once: as few as let the last round
/// of blocks be nearly full.
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

/// Memory in which kernels hand on what they make.
pub struct Work(DeviceArray<u64>);

/// Places in it, in bytes from its start.
#[derive(Default)]
pub struct Places {
    pub end: usize,
}

impl Places {
    pub fn take(&mut self, bytes: usize) -> usize {
        let start = self.end;
        self.end += bytes.next_multiple_of(256);
        start
    }
}

impl Work {
    pub fn new(gpu: &Gpu, bytes: usize) -> Result<Self> {
        Ok(Work(gpu.array(bytes.div_ceil(8), "direct sums")?))
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
