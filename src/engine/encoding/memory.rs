//! Memory of an encoding: batch sizes, the bytes it holds, and the caller's memory limit.

use super::super::memory::{MemoryLimit, MemoryRequirements};
use super::super::transform_params::{even_batch_size, TransformParams};
use super::samples::SampleArray;
use super::state::CoilMaps;
use super::Encoding;
use crate::backend::{Backend, Source, Span};
use crate::base::error::Result;
use crate::base::options::Options;
use crate::base::real::Real;
use crate::base::scan_size::ScanSize;
use crate::reconstruction::cg;
use num_complex::Complex;
use std::sync::Arc;

impl<T: Real, B: Backend<T>> Encoding<T, B> {
    /// Returns the batch size and the caller's memory limit, after checking that the plan fits within the limit.
    pub fn batch_and_limit(
        b: &B,
        size: &ScanSize,
        options: &Options,
        params: &TransformParams,
    ) -> Result<(usize, MemoryLimit)> {
        let batch_size = Self::batch_size(b, size, options, params)?;
        let held = Self::bytes(&MemoryRequirements::new(b, size, options, params, batch_size)?);
        let limit = MemoryLimit { bytes: options.memory_limit, held };
        limit.check(0, "the plan")?;
        Ok((batch_size, limit))
    }

    /// Returns the number of coils or frames transformed at once. The taps of a sample are computed once per batch, and
    /// the grids of a batch stay in cache from one step to the next.
    pub fn batch_size(b: &B, size: &ScanSize, options: &Options, params: &TransformParams) -> Result<usize> {
        let Some(gridding) = &params.gridding else { return Ok(1) };
        let arrays = if size.coil_maps { size.coils } else { size.coils.saturating_mul(size.frames) };
        Ok(even_batch_size(options, arrays, b.transform_batch(&gridding.grid, size.samples)))
    }

    /// Returns the bytes that a plan and the buffers of its transforms occupy. Coil maps on a GPU are not included, as
    /// they can be streamed.
    pub fn bytes(requirements: &MemoryRequirements) -> usize {
        requirements.held_without_maps().saturating_add(requirements.transform_buffers(true))
    }

    /// Returns the bytes of a plan and its transforms: where it computes, and on the host if that is a GPU.
    pub fn transform_bytes(b: &B, size: &ScanSize, options: &Options, params: &TransformParams) -> Result<[usize; 2]> {
        let batch_size = Self::batch_size(b, size, options, params)?;
        let requirements = MemoryRequirements::new(b, size, options, params, batch_size)?;
        Ok([Self::bytes(&requirements), if b.is_gpu() { requirements.geometry_copy() } else { 0 }])
    }

    /// Returns the bytes held in host memory, including Q once it has been computed.
    pub fn host_bytes(&self) -> usize {
        if !self.b().is_gpu() {
            return self.bytes_held();
        }
        // Copies of the geometry for the host.
        let arrays = self.trajectory.coordinates.iter().chain(&self.weighting.weights);
        let times = self.trajectory.times.as_ref().map_or(0, |times| size_of_val(&times[..]));
        arrays.map(SampleArray::host_bytes).sum::<usize>()
            + times
            + self.field.as_ref().map_or(0, |field| field.host_bytes())
    }

    /// Returns the caller's memory limit with the bytes that the plan holds at present.
    pub fn limit(&self) -> MemoryLimit {
        MemoryLimit { held: self.bytes_held(), ..self.execution.limit }
    }

    /// Returns the bytes held where the plan computes, including Q once it has been computed.
    pub(super) fn bytes_held(&self) -> usize {
        let has_q = self.weighting.toeplitz.lock().unwrap_or_else(|e| e.into_inner()).is_some();
        let q = if has_q { self.execution.transform.bytes_of_q::<T, B>(self.b(), &self.size()) } else { 0 };
        self.execution.limit.held + q
    }

    /// Copies coil maps to the backend's memory if that leaves space for Q and the vectors of conjugate gradients.
    pub(super) fn new_coil_maps(
        b: &B,
        maps: Source<'_, Complex<T>>,
        size: &ScanSize,
        limit: &MemoryLimit,
        params: &TransformParams,
    ) -> Result<Arc<CoilMaps<T, B>>> {
        let vectors = size.voxels().saturating_mul((cg::VECTORS + 1 + size.frames) * size_of::<Complex<T>>());
        let q = if size.listed.is_some() { 0 } else { Self::q_bytes(b, size, params) };
        CoilMaps::new(b, maps, limit, q.saturating_add(vectors)).map(Arc::new)
    }

    /// Returns the bytes of coil maps that [`Encoding::bytes`] does not include: those resident on a GPU.
    pub(super) fn bytes_of_maps(b: &B, maps: Option<&CoilMaps<T, B>>) -> usize {
        match maps {
            Some(CoilMaps::Resident(maps)) if b.is_gpu() => b.view(maps).len().saturating_mul(size_of::<Complex<T>>()),
            _ => 0,
        }
    }
}
