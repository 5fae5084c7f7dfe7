//! The direct sums of Stone et al. 2008 on a GPU: F^H d and its transpose, to full precision.

mod grid;
mod list;
mod work;

use super::compile::Kernels;
use super::gpu::Gpu;
use crate::backend::direct_lists::{MapPresence, PointLists};
use crate::base::error::Result;
use crate::base::off_resonance::OffResonance;
use crate::base::real::Real;
use crate::base::sizes::product;
use grid::Grid;
use list::List;
use std::sync::Mutex;
use work::{In, Out};

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
    /// See [`crate::backend::Backend::direct_sum`].
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
            Voxels::List(Box::new(List::new(gpu, &lists, tolerance)?))
        } else {
            Voxels::Grid(Box::new(Grid::new(gpu, k, dims)?))
        };
        Ok(DirectSum { voxels, queueing: Mutex::new(()) })
    }

    /// Bytes that it holds.
    ///
    /// # Errors
    /// `SizeOverflow` for images of more voxels than a GPU takes.
    pub fn bytes(gpu: &Gpu, samples: usize, dims: &[usize], listed: Option<usize>, maps: MapPresence) -> Result<usize> {
        if listed.is_some() || maps.any() {
            let voxels = listed.unwrap_or_else(|| product(dims));
            return Ok(List::<T>::bytes(gpu.properties(), samples, voxels, dims.len(), maps));
        }
        Grid::<T>::bytes(gpu.properties(), samples, dims)
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
