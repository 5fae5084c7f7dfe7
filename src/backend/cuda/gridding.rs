//! Gridding on a GPU.
use super::gpu::Gpu;
use crate::error::{bail, Result};
use crate::real::Real;
use crate::window::Shape;
use std::marker::PhantomData;

/// Samples sorted for one grid and window.
pub struct Gridder<T>(PhantomData<T>);

impl<T: Real> Gridder<T> {
    pub fn new(
        _gpu: &Gpu,
        _k: &[&[T]],
        _grid: &[usize],
        _shape: &Shape,
        _accuracy: f64,
        _arrays: usize,
    ) -> Result<Self> {
        bail!(Unsupported, "no kernels yet")
    }
    /// Bytes held, at most.
    pub fn bytes(_samples: usize, _grid: &[usize], _width: usize) -> usize {
        0
    }
    /// Addresses and complex elements of arrays of samples and as many grids.
    pub fn spread(&self, _gpu: &Gpu, _values: u64, _samples: usize, _grid: u64, _cells: usize) {}
    pub fn interpolate(&self, _gpu: &Gpu, _grid: u64, _cells: usize, _values: u64, _samples: usize) {}
}

/// The usual specialisations.
pub fn usual_kernels() -> Vec<super::compile::Kernels> {
    Vec::new()
}
