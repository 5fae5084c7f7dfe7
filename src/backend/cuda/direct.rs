//! The direct sums of Stone et al. 2008 on a GPU: F^H d and its transpose, to full precision.

mod grid;
mod list;

use super::compile::Kernels;
use super::gpu::Gpu;
use super::memory::DeviceArray;
use crate::backend::{DevicePointer, DeviceSlice, DeviceSliceMut};
use crate::base::error::Result;
use crate::base::real::Real;
use grid::Grid;
use list::List;
use num_complex::Complex;
use std::sync::Mutex;

/// Complex numbers to read, and to write.
type In<'a, T> = DeviceSlice<'a, Complex<T>>;
type Out<'a, T> = DeviceSliceMut<'a, Complex<T>>;

/// Direct sums between samples and voxels.
pub struct DirectSum<T> {
    voxels: Voxels<T>,
    /// Held while a sum is queued: what kernels hand on to the next lies in one place.
    queueing: Mutex<()>,
}

enum Voxels<T> {
    Grid(Box<Grid<T>>),
    List(Box<List<T>>),
}

impl<T: Real> DirectSum<T> {
    /// See [`crate::backend::Backend::direct_sum`]. With a list, a further axis may stand for off-resonance: voxels'
    /// frequencies and samples' times.
    pub fn new(gpu: &Gpu, k: &[&[T]], dims: &[usize], voxels: Option<&[&[T]]>, tolerance: f64) -> Result<Self> {
        let voxels = match voxels {
            Some(voxels) => Voxels::List(Box::new(List::new(gpu, k, voxels, tolerance)?)),
            None => Voxels::Grid(Box::new(Grid::new(gpu, k, dims)?)),
        };
        Ok(DirectSum { voxels, queueing: Mutex::new(()) })
    }

    /// Bytes that it holds.
    ///
    /// # Errors
    /// `SizeOverflow` for images of more voxels than a GPU takes.
    pub fn bytes(gpu: &Gpu, samples: usize, dims: &[usize], listed: Option<usize>) -> Result<usize> {
        match listed {
            Some(voxels) => Ok(List::<T>::bytes(gpu.properties(), samples, voxels, dims.len())),
            None => Grid::<T>::bytes(gpu.properties(), samples, dims),
        }
    }

    /// See [`crate::backend::Backend::sum_to_image`].
    pub fn to_image(&self, gpu: &Gpu, values: In<T>, image: Out<T>) {
        let _alone = self.queueing.lock().unwrap_or_else(|e| e.into_inner());
        match &self.voxels {
            Voxels::Grid(grid) => grid.to_image(gpu, values, image),
            Voxels::List(list) => list.to_image(gpu, values, image),
        }
    }

    /// See [`crate::backend::Backend::sum_to_samples`].
    pub fn to_samples(&self, gpu: &Gpu, image: In<T>, values: Out<T>) {
        let _alone = self.queueing.lock().unwrap_or_else(|e| e.into_inner());
        match &self.voxels {
            Voxels::Grid(grid) => grid.to_samples(gpu, image, values),
            Voxels::List(list) => list.to_samples(gpu, image, values),
        }
    }
}

/// The usual specialisations.
pub fn usual_kernels() -> Vec<Kernels> {
    let mut all = grid::usual_kernels();
    all.extend(list::usual_kernels());
    all
}

/// Bytes that parts of a sum, to be added up, may take, unless there is one part.
const PARTS_BYTES: usize = 64 << 20;

/// Threads of blocks that have an element a thread.
const THREADS: usize = 256;

/// As many such blocks as `count` elements need.
fn blocks(count: usize) -> [u32; 3] {
    [count.div_ceil(THREADS).max(1) as u32, 1, 1]
}

/// In how many parts work of `blocks` blocks is best divided, `fill` of which run at once: as few as let the last round
/// of blocks be nearly full.
fn parts(blocks: usize, fill: usize, most: usize, bytes: usize) -> usize {
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
struct Work(DeviceArray<u64>);

/// Places in it, in bytes from its start.
#[derive(Default)]
struct Places {
    end: usize,
}

impl Places {
    fn take(&mut self, bytes: usize) -> usize {
        let start = self.end;
        self.end += bytes.next_multiple_of(256);
        start
    }
}

impl Work {
    fn new(gpu: &Gpu, bytes: usize) -> Result<Self> {
        Ok(Work(gpu.array(bytes.div_ceil(8), "direct sums")?))
    }

    fn at<E>(&self, place: usize) -> DevicePointer<E> {
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
