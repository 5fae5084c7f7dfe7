//! Parts of an encoding, grouped by the input that they depend on: sample positions, density weights, coil maps. Each
//! part is shared by all encodings to which it applies.

use super::super::memory::MemoryLimit;
use super::samples::{host_axes, SampleArray};
use crate::backend::{Backend, Source};
use crate::base::buffer_pool::Pool;
use crate::base::error::{try_collect, ErrorKind, Result};
use crate::base::geometry::VoxelBasis;
use crate::base::memory::Aligned;
use crate::base::real::Real;
use crate::base::workers::{collect, copied};
use crate::nufft::segmented::Segmented;
use crate::nufft::toeplitz::Toeplitz;
use crate::nufft::Nufft;
use crate::reconstruction::fbp::FilteredBackprojection;
use num_complex::Complex;
use std::sync::{Arc, Mutex};

/// The transform between k-space samples and one image.
pub(crate) enum EncodingTransform<T: Real, B: Backend<T>> {
    /// Direct summation.
    Exact(B::DirectSum),
    /// Gridding and FFT.
    Nufft(Nufft<T, B>),
    /// NUFFT with off-resonance or decay, by time segmentation.
    Segmented(Segmented<T, B>),
}

/// State that depends on the positions and times of the samples, but not on their weights.
pub(crate) struct TrajectoryState<T: Real, B: Backend<T>> {
    pub transform: EncodingTransform<T, B>,
    /// k-space coordinates in cycles per voxel, one array per axis.
    pub coordinates: Vec<SampleArray<T, B>>,
    /// Sample times in seconds; `None` without off-resonance or decay.
    pub times: Option<Aligned<T>>,
    /// phi(k_m), the Fourier transform of the voxel shape, per sample; `None` for point voxels, where phi = 1.
    pub phi: Option<B::Array<T>>,
    /// Filtered backprojection; created on first use.
    pub backprojection: Mutex<Option<Arc<FilteredBackprojection<T, B>>>>,
}

impl<T: Real, B: Backend<T>> TrajectoryState<T, B> {
    /// Copies the times, and evaluates phi at each of `samples` samples.
    pub fn new(
        backend: &B,
        samples: usize,
        coordinates: Vec<SampleArray<T, B>>,
        times: Option<&[T]>,
        basis: VoxelBasis,
        transform: EncodingTransform<T, B>,
    ) -> Result<Self> {
        let times = times.map(|times| copied(backend.workers(), &[times], "the sample times")).transpose()?;
        let times = times.and_then(|mut copies| copies.pop());
        let phi = match basis {
            VoxelBasis::Point => None,
            VoxelBasis::Box => {
                let k = host_axes(backend, &coordinates)?;
                Some(sample_factors(backend, samples, |m| basis_factor(basis, k.iter().map(|k| k[m].wide())))?)
            }
        };
        Ok(TrajectoryState { transform, coordinates, times, phi, backprojection: Mutex::default() })
    }

    /// Returns the k-space coordinates on the host, one slice per axis.
    pub fn axes(&self, backend: &B) -> Result<Vec<&[T]>> {
        host_axes(backend, &self.coordinates)
    }
}

/// State that depends on the sample positions and the density weights w.
pub(crate) struct WeightingState<T: Real, B: Backend<T>> {
    /// The caller's density weights w; `None` means that all are 1.
    pub weights: Option<SampleArray<T, B>>,
    /// phi w, the factors of E^H W; `None` if all are 1, and if `weights` has them in the memory of a GPU.
    own_adjoint_weights: Option<B::Array<T>>,
    /// phi^2 w, the factors of E^H W E; `None` for point voxels, where they equal those of E^H W.
    box_normal_weights: Option<B::Array<T>>,
    /// phi w, with w scaled so that gridding preserves the scale of the object. Computed on first use.
    pub gridding_weights: Mutex<Option<Arc<B::Array<T>>>>,
    /// The convolution with Q. Computed on first use.
    pub toeplitz: Mutex<Option<Arc<Toeplitz<T, B>>>>,
    /// Held by the thread that computes Q, so that it is computed only once.
    pub toeplitz_init: Mutex<()>,
}

impl<T: Real, B: Backend<T>> WeightingState<T, B> {
    /// Computes phi w and phi^2 w of `samples` samples.
    pub fn new(
        backend: &B,
        samples: usize,
        coordinates: &[SampleArray<T, B>],
        basis: VoxelBasis,
        weights: Option<SampleArray<T, B>>,
    ) -> Result<Self> {
        let boxes = basis == VoxelBasis::Box;
        let on_device = weights.as_ref().is_some_and(|w| w.device().is_some());
        let (mut own_adjoint_weights, mut box_normal_weights) = (None, None);
        if boxes || weights.is_some() && !on_device {
            let k = if boxes { host_axes(backend, coordinates)? } else { Vec::new() };
            let w = weights.as_ref().map(|w| w.host(backend)).transpose()?;
            let phi = |m: usize| basis_factor(basis, k.iter().map(|k| k[m].wide()));
            let weight = |m: usize| w.map_or(1.0, |w| w[m].wide());
            own_adjoint_weights = Some(sample_factors(backend, samples, |m| phi(m) * weight(m))?);
            if boxes {
                box_normal_weights = Some(sample_factors(backend, samples, |m| phi(m) * phi(m) * weight(m))?);
            }
        }
        Ok(WeightingState {
            weights,
            own_adjoint_weights,
            box_normal_weights,
            gridding_weights: Mutex::new(None),
            toeplitz: Mutex::new(None),
            toeplitz_init: Mutex::new(()),
        })
    }

    /// Returns phi w, the factors of E^H W; `None` if all are 1.
    pub fn adjoint_weights(&self) -> Option<&B::Array<T>> {
        self.own_adjoint_weights.as_ref().or_else(|| self.weights.as_ref()?.device())
    }

    /// Returns phi^2 w, the factors of E^H W E; `None` if all are 1.
    pub fn normal_weights(&self) -> Option<&B::Array<T>> {
        self.box_normal_weights.as_ref().or_else(|| self.adjoint_weights())
    }
}

/// Computes one factor per sample and copies the factors to the backend's memory.
pub(super) fn sample_factors<T: Real, B: Backend<T>>(
    backend: &B,
    samples: usize,
    factor: impl Fn(usize) -> f64 + Sync,
) -> Result<B::Array<T>> {
    let values = collect(backend.workers(), samples, "the weights", |m| T::of(factor(m)))?;
    backend.upload(&values, "the weights")
}

/// Returns phi(k), the Fourier transform of the voxel shape.
pub(super) fn basis_factor(basis: VoxelBasis, k: impl Iterator<Item = f64>) -> f64 {
    match basis {
        VoxelBasis::Point => 1.0,
        VoxelBasis::Box => k
            .map(|k| {
                let a = std::f64::consts::PI * k;
                if a == 0.0 {
                    1.0
                } else {
                    a.sin() / a
                }
            })
            .product(),
    }
}

/// Coil sensitivities, [voxels, coils].
pub(crate) enum CoilMaps<T: Real, B: Backend<T>> {
    /// In the backend's memory.
    Resident(B::Array<Complex<T>>),
    /// In the host's memory, copied to the GPU batch by batch because the GPU cannot hold all of them.
    Streamed(Vec<Complex<T>>),
}

impl<T: Real, B: Backend<T>> CoilMaps<T, B> {
    /// Copies the maps to the backend's memory if they fit. Under a memory limit a GPU must also have `reserve` bytes
    /// left for later operations.
    pub fn new(backend: &B, maps: Source<'_, Complex<T>>, limit: &MemoryLimit, reserve: usize) -> Result<Self> {
        let what = "the coil sensitivities";
        let bytes = maps.len().saturating_mul(size_of::<Complex<T>>());
        // On the CPU the maps are already part of the plan's memory, as there is no other place for them.
        let fits = if backend.is_gpu() { limit.check(bytes.saturating_add(reserve), what) } else { Ok(()) };
        let maps = match maps {
            Source::Host(maps) => maps,
            Source::Device(_) => {
                fits?;
                let mut resident = backend.unwritten(maps.len(), what)?;
                backend.copy(backend.read(&backend.input(maps)?), backend.view_mut(&mut resident));
                return Ok(CoilMaps::Resident(resident));
            }
        };
        match fits.and_then(|()| backend.upload(maps, what)) {
            Ok(resident) => Ok(CoilMaps::Resident(resident)),
            Err(e) if backend.is_gpu() && matches!(e.kind(), ErrorKind::OutOfDeviceMemory | ErrorKind::MemoryLimit) => {
                log::info!("coil sensitivities stay in host memory and are copied to the GPU in batches: {e}");
                Ok(CoilMaps::Streamed(try_collect(maps.len(), what, maps.iter().copied())?))
            }
            Err(e) => Err(e),
        }
    }
}

/// Pools of reusable buffers for complex values.
pub(crate) struct EncodingBuffers<T: Real, B: Backend<T>> {
    /// Buffers for one image.
    pub image: Arc<Pool<B::Array<Complex<T>>>>,
    /// Buffers for the images of one batch of coils or frames.
    pub image_batch: Arc<Pool<B::Array<Complex<T>>>>,
    /// Buffers for the k-space samples of one batch.
    pub sample_batch: Arc<Pool<B::Array<Complex<T>>>>,
    /// Buffers for one image per off-resonance node of a batch of nodes.
    pub node_image: Arc<Pool<B::Array<Complex<T>>>>,
    /// Buffers for the images of one batch of coils per node of a batch of nodes.
    pub node_coil_image: Arc<Pool<B::Array<Complex<T>>>>,
}

impl<T: Real, B: Backend<T>> EncodingBuffers<T, B> {
    /// Creates empty pools.
    pub fn new() -> Self {
        EncodingBuffers {
            image: Arc::default(),
            image_batch: Arc::default(),
            sample_batch: Arc::default(),
            node_image: Arc::default(),
            node_coil_image: Arc::default(),
        }
    }

    /// Returns the pools of a changed encoding. Pools whose buffers keep their size are shared.
    pub fn after_change(&self, same_batch_size: bool, same_sample_count: bool) -> Self {
        let mut buffers = EncodingBuffers { image: self.image.clone(), ..EncodingBuffers::new() };
        if same_batch_size {
            buffers.image_batch = self.image_batch.clone();
        }
        if same_batch_size && same_sample_count {
            buffers.sample_batch = self.sample_batch.clone();
        }
        buffers
    }
}
