//! Pruned transforms on a GPU.
use super::gpu::Gpu;
use crate::error::{bail, Result};
use crate::real::Real;
use std::marker::PhantomData;

/// Between an oversampled grid and an image.
pub struct GridFft<T>(PhantomData<T>);

impl<T: Real> GridFft<T> {
    pub fn new(_gpu: &Gpu, _dims: &[usize], _grid: &[usize], _correction: &[Vec<f64>]) -> Result<Self> {
        bail!(Unsupported, "no kernels yet")
    }
    /// Addresses and complex elements of several grids and as many images.
    pub fn grid_to_image(&self, _gpu: &Gpu, _grid: u64, _cells: usize, _image: u64, _voxels: usize) {}
    pub fn image_to_grid(&self, _gpu: &Gpu, _image: u64, _voxels: usize, _grid: u64, _cells: usize) {}
}

/// A convolution with Q.
pub struct Convolver<T>(PhantomData<T>);

impl<T: Real> Convolver<T> {
    pub fn new(_gpu: &Gpu, _dims: &[usize]) -> Result<Self> {
        bail!(Unsupported, "no kernels yet")
    }
    /// Bytes held.
    pub fn bytes(_dims: &[usize]) -> usize {
        0
    }
    /// Complex elements of the array on which Q is put together.
    pub fn kernel_len(&self) -> usize {
        0
    }
    pub fn place_kernel(&self, _gpu: &Gpu, _half: [bool; 3], _q: u64, _grid: u64) {}
    pub fn set_kernel(&mut self, _gpu: &Gpu, _grid: u64) {}
    pub fn spectrum(&self, _gpu: &Gpu) -> Result<Vec<T>> {
        bail!(Unsupported, "no kernels yet")
    }
    pub fn set_spectrum(&mut self, _gpu: &Gpu, _spectrum: &[T]) -> Result<()> {
        bail!(Unsupported, "no kernels yet")
    }
    /// Addresses of as many images each; `voxels` complex elements in all.
    pub fn convolve(&self, _gpu: &Gpu, _x: u64, _y: u64, _voxels: usize) {}
}

/// The usual specialisations.
pub fn usual_kernels() -> Vec<super::compile::Kernels> {
    Vec::new()
}
