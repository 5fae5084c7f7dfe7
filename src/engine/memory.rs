//! Estimates of the memory of a plan and its operations, before the plan exists. They depend on sizes only.
//!
//! Each estimate counts the allocations of the code that it is next to. This file counts the arrays of the encoding;
//! the files of density weights and coil maps count theirs; the backend counts sorted samples, transforms and Q.

use super::transform_params::TransformParams;
use crate::backend::{Backend, MapPresence};
use crate::base::error::{bail, Result};
use crate::base::geometry::{is_in_range, min_max, Geometry, VoxelBasis};
use crate::base::off_resonance::OffResonanceRange;
use crate::base::options::Options;
use crate::base::real::Real;
use crate::base::scan_size::ScanSize;
use crate::base::sizes::{product, sum, StepBytes};
use crate::base::workers::SerialExecutor;
use crate::nufft::segmented::Segmented;
use crate::nufft::time_segments::TimeSegments;
use crate::nufft::toeplitz;
use crate::nufft::Nufft;
use crate::reconstruction::cg;
use crate::reconstruction::coils;
use crate::reconstruction::density;
use crate::reconstruction::fbp;

impl ScanSize {
    /// Returns the sizes of a geometry. Reads its coordinates, field map, decay map and sample times.
    ///
    /// # Errors
    /// `NotFinite` and `InvalidArgument` for invalid values of a field map, a decay map or of sample times.
    pub fn of<T: Real>(geometry: &Geometry<'_, T>) -> Result<Self> {
        Self::with_calibration(geometry, 0)
    }

    /// Returns the sizes of a geometry for coil maps from a centre of k-space of this width.
    ///
    /// # Errors
    /// As [`ScanSize::of`].
    pub fn with_calibration<T: Real>(geometry: &Geometry<'_, T>, calibration: usize) -> Result<Self> {
        if geometry.on_device.is_some() {
            // All samples are counted, as their coordinates are not on the host.
            return Ok(ScanSize { calibration, ..Self::lengths(geometry) });
        }
        let k = &geometry.coordinates;
        let central_samples = coils::central_samples(k, &geometry.dims, calibration);
        let edge = k.iter().any(|k| !is_in_range(min_max(&SerialExecutor, k)));
        Ok(ScanSize { calibration, central_samples, edge, ..Self::with_band(&SerialExecutor, geometry)? })
    }
}

/// Bytes in one memory, that of the host or of the GPUs, without the caller's arrays.
///
/// Each figure is the peak during one operation of a plan that is used for this operation only. It includes the plan.
///
/// On GPUs, the figures include idle memory: a plan keeps the memory that its creation used, and frees it if memory
/// runs short. Its amount depends on the sample positions. The figures are those of evenly spread or radial samples, or
/// up to a quarter larger.
///
/// A plan keeps little memory for later calls, except for Q: after [`crate::Plan::normal`] or [`crate::Plan::cg`],
/// other operations need `q` more bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryPeaks {
    /// Creation of the plan; at least the bytes that the plan then holds.
    pub plan: usize,
    /// [`crate::Plan::forward`], [`crate::Plan::adjoint`] and [`crate::Plan::weighted_adjoint`].
    pub transform: usize,
    /// [`crate::Plan::grid`]; without weights in the geometry, including the computation of those of Pipe and Menon.
    pub grid: usize,
    /// [`crate::Plan::fbp`] for spokes of at most 8 samples per voxel of an axis; in 3D equal to `plan`.
    pub fbp: usize,
    /// [`crate::Plan::density`] by the methods of Pipe and Menon and of the ramp.
    pub density: usize,
    /// [`crate::Plan::density`] by the method of Jackson, which uses a larger grid.
    pub density_jackson: usize,
    /// [`crate::Plan::coil_maps`] with [`ScanSize::calibration`].
    pub coil_maps: usize,
    /// [`crate::Plan::normal`], including Q if it is used.
    pub normal: usize,
    /// [`crate::Plan::cg`], including Q if it is used. Not included are the arrays of priors other than the identity
    /// and differences. A search by a noise level needs one more image and twice the data.
    pub cg: usize,
    /// Bytes of Q once it has been computed; 0 if Q is not used.
    pub q: usize,
}

impl MemoryPeaks {
    /// Adds two sets of figures.
    pub(crate) fn plus(self, other: Self) -> Self {
        let add = usize::saturating_add;
        MemoryPeaks {
            plan: add(self.plan, other.plan),
            transform: add(self.transform, other.transform),
            grid: add(self.grid, other.grid),
            fbp: add(self.fbp, other.fbp),
            density: add(self.density, other.density),
            density_jackson: add(self.density_jackson, other.density_jackson),
            coil_maps: add(self.coil_maps, other.coil_maps),
            normal: add(self.normal, other.normal),
            cg: add(self.cg, other.cg),
            q: add(self.q, other.q),
        }
    }

    /// Raises every peak to at least that of creating the plan.
    fn at_least_plan(self) -> Self {
        let at_least = |bytes: usize| bytes.max(self.plan);
        MemoryPeaks {
            plan: self.plan,
            transform: at_least(self.transform),
            grid: at_least(self.grid),
            fbp: at_least(self.fbp),
            density: at_least(self.density),
            density_jackson: at_least(self.density_jackson),
            coil_maps: at_least(self.coil_maps),
            normal: at_least(self.normal),
            cg: at_least(self.cg),
            q: self.q,
        }
    }
}

/// Bytes of a plan and its operations: see [`crate::Plan::memory`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// Host memory.
    pub host: MemoryPeaks,
    /// Memory of all GPUs of the plan together.
    pub device: MemoryPeaks,
}

impl Memory {
    /// Adds two estimates.
    pub(crate) fn plus(self, other: Self) -> Self {
        Memory { host: self.host.plus(other.host), device: self.device.plus(other.device) }
    }
}

/// The caller's memory limit, and the bytes that the plan holds already.
#[derive(Clone, Copy)]
pub(crate) struct MemoryLimit {
    /// Limit in bytes; `None` means no limit.
    pub bytes: Option<usize>,
    /// Bytes that the plan holds.
    pub held: usize,
}

impl MemoryLimit {
    /// Returns `MemoryLimit` if `extra` more bytes, for `what`, exceed the limit.
    pub fn check(&self, extra: usize, what: &str) -> Result<()> {
        let needed = self.held.saturating_add(extra);
        match self.bytes {
            Some(limit) if needed > limit => bail!(
                MemoryLimit,
                "{what} needs {needed} bytes, but the memory limit is {limit}: raise the limit to {needed}, or use a \
                 smaller problem"
            ),
            _ => Ok(()),
        }
    }
}

/// Allowance for tables, polynomials, per-thread data and other small allocations.
const SMALL_ALLOCATIONS: usize = 1 << 18;

/// Bytes of the arrays of an encoding and its operations, before the encoding exists.
pub(crate) struct MemoryRequirements {
    size: ScanSize,
    /// Number of coils or frames per batch.
    batch_size: usize,
    /// Bytes of a real number.
    real: usize,
    /// Whether the plan computes in device memory, which is separate from host memory.
    has_device_memory: bool,
    /// Grids, sorted samples, tables.
    transform: usize,
    /// Arrays of off-resonance.
    field: usize,
    /// Temporary memory while these arrays are created.
    field_creation: usize,
    /// Q once it has been computed.
    q: usize,
    /// Whether E^H W E has nodes of off-resonance.
    has_nodes: bool,
    /// Images for the convolution of one batch of nodes.
    node_images: usize,
}

/// Peaks of E^H W E and of conjugate gradients, in addition to the memory that the plan holds.
struct NormalPeaks {
    /// Q; 0 if it is not used.
    q: usize,
    normal: usize,
    cg: usize,
}

impl MemoryRequirements {
    /// Computes the bytes of an encoding with these parameters and batch size.
    pub fn new<T: Real, B: Backend<T>>(
        b: &B,
        size: &ScanSize,
        options: &Options,
        params: &TransformParams,
        batch_size: usize,
    ) -> Result<Self> {
        let transform = match &params.gridding {
            Some(gridding) => Nufft::<T, B>::bytes(b, gridding, size.samples, params.gridding_batch_size(batch_size))?,
            None => {
                let given = |band: &OffResonanceRange| MapPresence {
                    field: band.frequency.is_some(),
                    decay: band.decay.is_some(),
                };
                let maps = size.band.as_ref().map(given).unwrap_or_default();
                b.direct_sum_bytes(size.samples, &size.dims, size.listed, maps)
            }
        };
        let transform = transform.saturating_add(SMALL_ALLOCATIONS);
        let (samples, voxels) = (size.samples, size.voxels());
        let segments = params.segments().map_or(0, TimeSegments::len);
        let (mut field, mut field_creation) = (0, 0);
        if size.band.is_some() {
            // f and R.
            field = product(&[2, voxels, size_of::<T>()]);
            // The sample times, where the plan computes.
            field_creation = product(&[samples, size_of::<T>()]);
            let arrays = params.gridding_batch_size(1);
            field = sum(&[field, Segmented::<T, B>::bytes(segments, arrays, samples, voxels)]);
        }
        let node_images = match params.nodes() {
            None => 0,
            Some(_) => {
                let nodes = params.node_batch_size::<T, B>(b, size, options, batch_size);
                let coils = if size.coil_maps { batch_size } else { 0 };
                product(&[2, nodes, 1 + coils, voxels, 2 * size_of::<T>()])
            }
        };
        Ok(MemoryRequirements {
            size: size.clone(),
            batch_size,
            real: size_of::<T>(),
            has_device_memory: b.is_gpu(),
            transform,
            field,
            field_creation,
            q: params.bytes_of_q::<T, B>(b, size),
            has_nodes: params.nodes().is_some(),
            node_images,
        })
    }

    /// Returns the bytes of a complex number.
    fn complex(&self) -> usize {
        2 * self.real
    }

    /// Returns whether samples are multiplied by density weights or by phi.
    fn has_sample_factors(&self) -> bool {
        self.size.weights || self.size.basis == VoxelBasis::Box
    }

    /// Returns the bytes of the maps of all coils.
    fn maps(&self) -> usize {
        product(&[usize::from(self.size.coil_maps), self.size.coils, self.size.voxels(), self.complex()])
    }

    /// Returns the bytes of the sample factors: w, or phi, phi w and phi^2 w.
    fn sample_factors(&self) -> usize {
        let phi = usize::from(self.size.basis == VoxelBasis::Box);
        product(&[phi + self.weight_arrays(), self.size.samples, self.real])
    }

    /// Returns the number of sample factor arrays that depend on the weights.
    fn weight_arrays(&self) -> usize {
        match self.size.basis {
            VoxelBasis::Box => 2,
            VoxelBasis::Point => usize::from(self.size.weights),
        }
    }

    /// Returns the bytes of the copy of the geometry in host memory.
    pub fn geometry_copy(&self) -> usize {
        let arrays = self.size.dims.len() + usize::from(self.size.weights) + usize::from(self.size.band.is_some());
        product(&[arrays, self.size.samples, self.real])
    }

    /// Returns the bytes of coordinates and weights that a plan on a GPU keeps there, without weights that are sample
    /// factors.
    fn device_samples(&self) -> usize {
        let weights = self.size.weights && self.size.basis == VoxelBasis::Box;
        product(&[self.size.dims.len() + usize::from(weights), self.size.samples, self.real])
    }

    /// Returns the bytes of the images of a batch.
    fn image_batch(&self) -> usize {
        product(&[self.batch_size, self.size.voxels(), self.complex()])
    }

    /// Returns the bytes of the samples of a batch.
    fn sample_batch(&self) -> usize {
        product(&[self.batch_size, self.size.samples, self.complex()])
    }

    /// Returns the requirements for batches of one array, as under a memory limit.
    fn with_single_batches(&self) -> MemoryRequirements {
        MemoryRequirements { size: self.size.clone(), batch_size: 1, ..*self }
    }

    /// Returns the bytes of the buffers of a transform: coil images to combine and weighted samples. On a GPU also the
    /// copies of input and output, twice if there are several batches, as two are then in transit at once.
    pub fn transform_buffers(&self, weighted: bool) -> usize {
        let combined = if self.size.coil_maps { self.image_batch() } else { 0 };
        let weighted = if weighted { self.sample_batch() } else { 0 };
        let out = if self.size.coil_maps { product(&[self.size.voxels(), self.complex()]) } else { self.image_batch() };
        let batch_copies = sum(&[self.sample_batch(), out, out.max(self.sample_batch())]);
        let batches_in_transit = if self.size.coils.saturating_mul(self.size.frames) > self.batch_size { 2 } else { 1 };
        let copies = if self.has_device_memory { product(&[batches_in_transit, batch_copies]) } else { 0 };
        sum(&[combined, weighted, copies])
    }

    /// Returns the extra bytes while the trajectory is replaced. `points` are the bytes of the new sorted samples if
    /// window and grid stay, otherwise `None`. `same_arrays` means that the buffers of a batch stay as well.
    pub fn trajectory_change(&self, points: Option<usize>, same_arrays: bool) -> usize {
        let geometry = if self.has_device_memory { self.device_samples() } else { self.geometry_copy() };
        let buffers = if same_arrays { 0 } else { self.transform_buffers(true) };
        sum(&[points.unwrap_or(self.transform), self.sample_factors(), self.field, geometry, buffers])
    }

    /// Returns the extra bytes while the weights are replaced.
    pub fn weight_change(&self) -> usize {
        let is_kept = !self.has_device_memory || self.size.basis == VoxelBasis::Box;
        let copy = usize::from(self.size.weights && is_kept);
        product(&[self.weight_arrays() + copy, self.size.samples, self.real])
    }

    /// Returns the bytes that the plan holds where it computes, without coil maps on a GPU, as they can be streamed.
    pub fn held_without_maps(&self) -> usize {
        let (geometry, maps) = match self.has_device_memory {
            true => (self.device_samples(), 0),
            false => (self.geometry_copy(), self.maps()),
        };
        sum(&[self.transform, self.field, self.sample_factors(), geometry, maps])
    }

    /// Returns the peaks of all operations. `use_toeplitz` means that E^H W E uses Q, `temporary_output` that outputs
    /// are computed in a temporary. `coil_maps` are the bytes of the estimation of coil sensitivities.
    pub fn peaks<T: Real, B: Backend<T>>(
        &self,
        b: &B,
        use_toeplitz: bool,
        temporary_output: bool,
        coil_maps: StepBytes,
    ) -> Result<Memory> {
        let ScanSize { samples, coils, frames, .. } = self.size;
        let (dims, voxels, images) = (&self.size.dims, self.size.voxels(), self.size.images());
        let reals = product(&[samples, self.real]);
        let device_maps = if self.has_device_memory { self.maps() } else { 0 };
        let held = sum(&[self.held_without_maps(), device_maps]);
        let host_held = if self.has_device_memory { self.geometry_copy() } else { 0 };
        // Host copies during creation: coordinates that were moved to the edge, and sample factors.
        let moved = if self.size.edge { dims.len() } else { 0 };
        let factors = usize::from(self.has_sample_factors());
        let creation = sum(&[product(&[moved + factors, reals]), self.field_creation]);

        let temporary = |arrays: usize, elements: usize| {
            if temporary_output {
                product(&[arrays, elements, self.complex()])
            } else {
                0
            }
        };
        let image_output = temporary(images * frames, voxels);
        let output = image_output.max(temporary(coils * frames, samples));

        let pipe_menon = density::bytes::<T, B>(b, samples, dims, Default::default())?;
        let jackson = density::bytes::<T, B>(b, samples, dims, density::Density::Jackson)?;
        let gridding = self.gridding_peak(pipe_menon);
        let backprojection = match dims.len() == 2 && self.size.listed.is_none() {
            true => fbp::bytes::<T, B>(b, samples, fbp::usual_readout(samples, dims), dims, self.batch_size),
            false => 0,
        };
        let NormalPeaks { q, normal, cg } = self.normal_peaks::<T>(use_toeplitz);

        // A plan with a memory limit checks this much, so that each figure is a sufficient limit.
        let checked = self.with_single_batches().transform_buffers(true);
        let compute = |bytes: usize| held.saturating_add(bytes.max(checked));
        let host = |bytes: usize| host_held.saturating_add(bytes);
        let compute_peaks = MemoryPeaks {
            plan: held,
            transform: compute(self.transform_buffers(self.has_sample_factors())),
            grid: compute(gridding.device),
            fbp: compute(sum(&[backprojection, self.transform_buffers(true)])),
            density: compute(pipe_menon.device),
            density_jackson: compute(jackson.device),
            coil_maps: compute(coil_maps.device),
            normal: compute(normal),
            cg: compute(cg),
            q,
        };
        let host_peaks = MemoryPeaks {
            plan: host(creation),
            transform: host(output),
            grid: host(gridding.host.saturating_add(image_output)),
            fbp: host(reals.saturating_add(image_output)),
            density: host(pipe_menon.host),
            density_jackson: host(jackson.host),
            coil_maps: host(coil_maps.host),
            normal: host(image_output),
            cg: host(0),
            q: 0,
        };
        Ok(match self.has_device_memory {
            true => Memory { host: host_peaks.at_least_plan(), device: compute_peaks.at_least_plan() },
            false => Memory { host: compute_peaks.plus(host_peaks).at_least_plan(), device: MemoryPeaks::default() },
        })
    }

    /// Returns the peak of gridding, including the computation of density weights if the geometry has none.
    fn gridding_peak(&self, pipe_menon: StepBytes) -> StepBytes {
        let reals = product(&[self.size.samples, self.real]);
        let device = sum(&[reals, self.transform_buffers(true)]);
        // The weights, and the weights times phi.
        let host = product(&[2, reals]);
        if self.size.weights {
            return StepBytes { device, host };
        }
        let image = product(&[self.size.voxels(), self.complex()]);
        let out = if self.has_device_memory { product(&[self.batch_size.min(self.size.images()), image]) } else { 0 };
        StepBytes { device: device.max(sum(&[pipe_menon.device, out])), host: host.max(pipe_menon.host) }
    }

    /// Returns the peaks of E^H W E and conjugate gradients where the plan computes.
    fn normal_peaks<T: Real>(&self, use_toeplitz: bool) -> NormalPeaks {
        let (dims, images) = (&self.size.dims, self.size.images());
        let image = product(&[self.size.voxels(), self.complex()]);
        let reals = product(&[self.size.samples, self.real]);
        let weighted = if self.has_sample_factors() { self.sample_batch() } else { 0 };
        let combined = if self.size.coil_maps { self.image_batch() } else { 0 };
        // While Q is computed: its convolution, half of the doubled grid, one octant, and the weights with their
        // phases.
        let (mut q, mut q_checked, mut q_creation) = (0, 0, 0);
        if use_toeplitz {
            q = self.q;
            q_checked = sum(&[q, toeplitz::construction_bytes::<T>(dims)]);
            let weights = product(&[dims.len() + 3 * usize::from(self.has_nodes), reals]);
            q_creation = sum(&[q_checked, weights, product(&[self.size.samples, self.complex()])]);
        }
        let normal = match use_toeplitz {
            // The right-hand side has already allocated the images of a batch.
            true if self.has_nodes => sum(&[self.node_images, combined]),
            true => product(&[2, combined]),
            false => sum(&[combined, self.sample_batch(), weighted]),
        };
        // Residual, direction, its image under the operator, the right-hand side of one frame, the solution of all
        // frames, and an image for the mean diagonal.
        let vectors =
            product(&[cg::VECTORS + (1 + self.size.frames) * images + usize::from(self.size.coil_maps), image]);
        // Buffer pools keep the buffers of the right-hand side.
        let right_hand_side = if use_toeplitz { weighted } else { 0 };
        let (data, copies) = if self.has_device_memory { (self.sample_batch(), product(&[3, image])) } else { (0, 0) };
        // On a GPU, the plan keeps the idle memory of the creation of Q.
        let with_q = |bytes: usize| {
            if self.has_device_memory {
                sum(&[q_creation, bytes])
            } else {
                q_creation.max(sum(&[q, bytes]))
            }
        };
        let checked = self.with_single_batches().transform_buffers(true);
        NormalPeaks {
            q,
            normal: with_q(sum(&[normal, copies])).max(sum(&[checked, q_checked])),
            cg: with_q(sum(&[normal, vectors, right_hand_side, data]))
                .max(sum(&[checked, q_checked.max(sum(&[q, vectors]))])),
        }
    }
}
