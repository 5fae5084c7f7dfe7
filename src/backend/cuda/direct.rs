//! Direct sums of Stone et al. 2008 on a GPU: F^H d and its transpose, to full precision.

mod grid;
mod list;
mod work;

use super::compile::Kernels;
use super::gpu::Gpu;
use super::memory::{ComplexSlice, ComplexSliceMut};
use crate::backend::direct_lists::{MapPresence, PointLists};
use crate::base::error::Result;
use crate::base::off_resonance::OffResonance;
use crate::base::real::Real;
use crate::base::sizes::product;
use grid::GridSum;
use list::ListSum;
use std::sync::Mutex;

/// Direct sums between samples and voxels.
pub struct DirectSum<T> {
    voxels: Voxels<T>,
    /// Held while a sum is queued, because its kernels exchange data through one buffer.
    queueing: Mutex<()>,
}

enum Voxels<T> {
    GridSum(Box<GridSum<T>>),
    ListSum(Box<ListSum<T>>),
}

impl<T: Real> DirectSum<T> {
    /// Implements [`crate::backend::Backend::direct_sum`].
    pub fn new(
        gpu: &Gpu,
        k: &[&[T]],
        dims: &[usize],
        voxels: Option<&[&[T]]>,
        off_resonance: Option<OffResonance<'_, T>>,
        tolerance: f64,
    ) -> Result<Self> {
        let voxels = if voxels.is_some() || MapPresence::of(&off_resonance).any() {
            let lists = PointLists::new(k, dims, voxels, off_resonance)?;
            Voxels::ListSum(Box::new(ListSum::new(gpu, &lists, tolerance)?))
        } else {
            Voxels::GridSum(Box::new(GridSum::new(gpu, k, dims)?))
        };
        Ok(DirectSum { voxels, queueing: Mutex::new(()) })
    }

    /// Returns its bytes.
    ///
    /// # Errors
    /// `SizeOverflow` for images with more voxels than a GPU supports.
    pub fn bytes(gpu: &Gpu, samples: usize, dims: &[usize], listed: Option<usize>, maps: MapPresence) -> Result<usize> {
        if listed.is_some() || maps.any() {
            let voxels = listed.unwrap_or_else(|| product(dims));
            return Ok(ListSum::<T>::bytes(gpu.properties(), samples, voxels, dims.len(), maps));
        }
        GridSum::<T>::bytes(gpu.properties(), samples, dims)
    }

    /// Implements [`crate::backend::Backend::sum_to_image`].
    pub fn to_image(&self, gpu: &Gpu, values: ComplexSlice<T>, image: ComplexSliceMut<T>) {
        let _alone = self.queueing.lock().unwrap_or_else(|e| e.into_inner());
        match &self.voxels {
            Voxels::GridSum(grid) => grid.to_image(gpu, values, image),
            Voxels::ListSum(list) => list.to_image(gpu, values, image),
        }
    }

    /// Implements [`crate::backend::Backend::sum_to_samples`].
    pub fn to_samples(&self, gpu: &Gpu, image: ComplexSlice<T>, values: ComplexSliceMut<T>) {
        let _alone = self.queueing.lock().unwrap_or_else(|e| e.into_inner());
        match &self.voxels {
            Voxels::GridSum(grid) => grid.to_samples(gpu, image, values),
            Voxels::ListSum(list) => list.to_samples(gpu, image, values),
        }
    }
}

/// Returns the usual specialisations.
pub fn usual_kernels() -> Vec<Kernels> {
    let mut all = grid::usual_kernels();
    all.extend(list::usual_kernels());
    all
}
