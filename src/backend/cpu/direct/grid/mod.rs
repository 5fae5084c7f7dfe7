//! Direct sums between samples and a Cartesian grid of voxels.
//!
//! exp(i 2 pi k.r) is a product over axes, so the sums are matrix products: a factor per sample and position along x,
//! times a factor per sample and line of voxels along x.
//!
//! Positions +u and -u about the middle of a line share their cosine and their sine. Let A = sum C R and B = sum S R
//! with C and S real and R complex. The voxel at +u is A + iB, and the voxel at -u is A - iB. The products are thus
//! real by complex, with two fused operations per sample and voxel. The crate gemm multiplies complex by complex, which
//! is twice the work.

mod axes;
mod image_sums;
mod sample_sums;

use crate::backend::cpu::simd::{Level, SimdReal};
use crate::backend::threads::Threads;
use crate::base::error::{try_vec, Result};
use axes::LINE;
pub use image_sums::to_image;
use image_sums::ImageSumLayout;
pub use sample_sums::to_samples;
use sample_sums::SampleSumLayout;

/// Returns the length of [`scratch`].
pub fn scratch_len<T: SimdReal>(threads: usize, level: Level, samples: usize, dims: [usize; 3]) -> usize {
    let to_image = ImageSumLayout::<T>::new(level, &[], samples, dims).scratch(threads);
    to_image.max(SampleSumLayout::<T>::new(level, &[], dims).scratch(threads)) + LINE / size_of::<T>()
}

/// Allocates scratch for one sum at a time, in either direction.
pub fn scratch<T: SimdReal>(threads: &Threads, level: Level, samples: usize, dims: [usize; 3]) -> Result<Vec<T>> {
    try_vec(scratch_len::<T>(threads.count(), level, samples, dims), T::ZERO, "exact sums")
}
