//! Direct sums on a GPU.
use super::gpu::Gpu;
use crate::error::{bail, Result};
use crate::real::Real;
use std::marker::PhantomData;

/// Direct sums between samples and voxels.
pub struct DirectSum<T>(PhantomData<T>);

impl<T: Real> DirectSum<T> {
    pub fn new(_gpu: &Gpu, _k: &[&[T]], _dims: &[usize], _voxels: Option<&[&[T]]>) -> Result<Self> {
        bail!(Unsupported, "no kernels yet")
    }
    pub fn to_image(&self, _gpu: &Gpu, _values: u64, _image: u64) {}
    pub fn to_samples(&self, _gpu: &Gpu, _image: u64, _values: u64) {}
}

/// The usual specialisations.
pub fn usual_kernels() -> Vec<super::compile::Kernels> {
    Vec::new()
}
