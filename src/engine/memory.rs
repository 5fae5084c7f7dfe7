//! How much memory a plan and its operations take, told before there is one: sizes decide, and not the numbers.
//!
//! What is counted is what the plan's code allocates, and stands beside it: the encoding's arrays here, those of
//! density weights and coil maps in their files, sorted samples, transforms and Q in the backend.

use super::chosen::Chosen;
use crate::backend::{Backend, MapPresence};
use crate::base::error::Result;
use crate::base::geometry::{is_in_range, min_max, Geometry, VoxelBasis};
use crate::base::off_resonance::OffResonanceRange;
use crate::base::options::Options;
use crate::base::real::Real;
use crate::base::scan_size::ScanSize;
use crate::base::sizes::{product, sum, StepBytes};
use crate::base::workers::SerialExecutor;
use crate::nufft::segmented::Segmented;
use crate::nufft::segments::Segments;
use crate::nufft::toeplitz;
use crate::nufft::Nufft;
use crate::reconstruction::cg;
use crate::reconstruction::coils;
use crate::reconstruction::density;
use crate::reconstruction::fbp;

impl ScanSize {
    /// Those of a geometry, its coordinates and what belongs to off-resonance looked at.
    ///
    /// # Errors
    /// `NotFinite` and `InvalidArgument` for numbers of a field map, a decay map or of times that make no sense.
    pub fn of<T: Real>(geometry: &Geometry<'_, T>) -> Result<Self> {
        Self::with_calibration(geometry, 0)
    }

    /// Those of a geometry for coil maps from a centre of k-space of this width.
    ///
    /// # Errors
    /// As [`ScanSize::of`].
    pub fn with_calibration<T: Real>(geometry: &Geometry<'_, T>, calibration: usize) -> Result<Self> {
        let k = &geometry.coordinates;
        let central_samples = coils::central_samples(k, &geometry.dims, calibration);
        let edge = k.iter().any(|k| !is_in_range(min_max(&SerialExecutor, k)));
        Ok(ScanSize { calibration, central_samples, edge, ..Self::with_band(&SerialExecutor, geometry)? })
    }
}

/// Bytes in one memory, the host's or the GPUs', beyond the caller's arrays.
///
/// Each is the peak of an operation, the plan included, of a plan that serves this one operation. On GPUs memory counts
/// that is idle meanwhile: what the making of a plan took stays with it, and is given back where memory lacks. How much
/// of it there is depends on where samples lie: the figures are those of evenly spread or radial ones, and up to a
/// quarter more. What a plan keeps for later calls is small beside that but for Q: once [`crate::Plan::normal`] or
/// [`crate::Plan::cg`] were called, other operations take `q` more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryPeaks {
    /// While the plan is made; no less than what it then holds.
    pub plan: usize,
    /// [`crate::Plan::forward`], [`crate::Plan::adjoint`] and [`crate::Plan::weighted_adjoint`].
    pub transform: usize,
    /// [`crate::Plan::grid`]: without weights in the geometry with those of Pipe and Menon, which it then makes.
    pub grid: usize,
    /// [`crate::Plan::fbp`], of spokes of at most 8 times as many samples as an axis has voxels; in 3D as a plan.
    pub fbp: usize,
    /// [`crate::Plan::density`] by the methods of Pipe and Menon and of the ramp.
    pub density: usize,
    /// [`crate::Plan::density`] by Jackson's, which has a larger grid.
    pub density_jackson: usize,
    /// [`crate::Plan::coil_maps`] with [`ScanSize::calibration`].
    pub coil_maps: usize,
    /// [`crate::Plan::normal`], Q included where it is used.
    pub normal: usize,
    /// [`crate::Plan::cg`], Q included where it is used, and but for what a prior holds that is not the identity or
    /// differences, and for the image and twice the data that the search by a noise level holds.
    pub cg: usize,
    /// What Q holds once it is made; 0 where it is not used.
    pub q: usize,
}

impl MemoryPeaks {
    /// The sum, figure by figure.
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

    /// No operation's peak is below that of making the plan.
    fn at_least_the_plan(self) -> Self {
        let most = |bytes: usize| bytes.max(self.plan);
        MemoryPeaks {
            plan: self.plan,
            transform: most(self.transform),
            grid: most(self.grid),
            fbp: most(self.fbp),
            density: most(self.density),
            density_jackson: most(self.density_jackson),
            coil_maps: most(self.coil_maps),
            normal: most(self.normal),
            cg: most(self.cg),
            q: self.q,
        }
    }
}

/// Bytes that a plan and its operations take: see [`crate::Plan::memory`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// In the host's memory.
    pub host: MemoryPeaks,
    /// In that of all GPUs that the plan is on.
    pub device: MemoryPeaks,
}

impl Memory {
    pub(crate) fn plus(self, other: Self) -> Self {
        Memory { host: self.host.plus(other.host), device: self.device.plus(other.device) }
    }
}

/// Tables, polynomials, what threads have of their own, and the like.
const SMALL_THINGS: usize = 1 << 18;

/// What an encoding holds and takes meanwhile, where it computes and, if that is elsewhere, on the host.
pub(crate) struct Needs {
    size: ScanSize,
    /// Coils or frames at once.
    batch: usize,
    real: usize,
    apart: bool,
    /// Grids, sorted samples, tables.
    transform: usize,
    /// Arrays of off-resonance, and what making them takes on the host meanwhile.
    field: usize,
    making_field: usize,
    /// What Q holds, once it is made.
    q: usize,
    /// Whether it is of several nodes.
    nodes: bool,
    /// Images in which some of them are convolved.
    node_images: usize,
}

impl Needs {
    /// `chosen` and `batch` are those of the encoding.
    pub fn new<T: Real, B: Backend<T>>(
        b: &B,
        size: &ScanSize,
        options: &Options,
        chosen: &Chosen,
        batch: usize,
    ) -> Result<Self> {
        let transform = match &chosen.window {
            Some(window) => Nufft::<T, B>::bytes(b, window, size.samples, chosen.arrays(batch))?,
            None => {
                let given = |band: &OffResonanceRange| MapPresence {
                    field: band.frequency.is_some(),
                    decay: band.decay.is_some(),
                };
                let maps = size.band.as_ref().map(given).unwrap_or_default();
                b.direct_sum_bytes(size.samples, &size.dims, size.listed, maps)
            }
        };
        let transform = transform.saturating_add(SMALL_THINGS);
        let (samples, voxels) = (size.samples, size.voxels());
        let segments = chosen.segments().map_or(0, Segments::len);
        let (mut field, mut making_field) = (0, 0);
        if size.band.is_some() {
            // f, R and what makes a node's R of it.
            field = product(&[2, voxels, size_of::<T>()]);
            making_field = product(&[segments.saturating_mul(2), samples, size_of::<T>()]);
            field = sum(&[field, Segmented::<T, B>::bytes(segments, chosen.arrays(1), samples, voxels)]);
        }
        Ok(Needs {
            size: size.clone(),
            batch,
            real: size_of::<T>(),
            apart: b.is_gpu(),
            transform,
            field,
            making_field,
            q: chosen.bytes_of_q::<T, B>(b, size),
            nodes: chosen.nodes().is_some(),
            node_images: match chosen.nodes() {
                None => 0,
                Some(_) => {
                    let nodes = chosen.nodes_at_once::<T, B>(b, size, options, batch);
                    let coils = if size.coil_maps { batch } else { 0 };
                    product(&[2, nodes, 1 + coils, voxels, 2 * size_of::<T>()])
                }
            },
        })
    }

    fn complex(&self) -> usize {
        2 * self.real
    }

    /// Whether samples are multiplied by weights or by the voxel's transform.
    fn weighed(&self) -> bool {
        self.size.weights || self.size.basis == VoxelBasis::Box
    }

    /// Coil maps, of all coils.
    fn maps(&self) -> usize {
        product(&[usize::from(self.size.coil_maps), self.size.coils, self.size.voxels(), self.complex()])
    }

    /// w, or phi, phi w and phi^2 w.
    fn factors(&self) -> usize {
        let phi = usize::from(self.size.basis == VoxelBasis::Box);
        product(&[phi + self.factors_of_weights(), self.size.samples, self.real])
    }

    /// How many of these arrays depend on weights.
    fn factors_of_weights(&self) -> usize {
        match self.size.basis {
            VoxelBasis::Box => 2,
            VoxelBasis::Point => usize::from(self.size.weights),
        }
    }

    /// What is kept of the geometry, on the host.
    pub fn kept(&self) -> usize {
        let arrays = self.size.dims.len() + usize::from(self.size.weights) + usize::from(self.size.band.is_some());
        product(&[arrays, self.size.samples, self.real])
    }

    /// Images, and samples, of a batch.
    fn image_batch(&self) -> usize {
        product(&[self.batch, self.size.voxels(), self.complex()])
    }
    fn sample_batch(&self) -> usize {
        product(&[self.batch, self.size.samples, self.complex()])
    }

    /// The same scan under a memory limit, where arrays go one at a time.
    fn one_at_a_time(&self) -> Needs {
        Needs { size: self.size.clone(), batch: 1, ..*self }
    }

    /// Arrays of a transform: images of coils to combine, weighted samples, and on a GPU what comes in and goes out, of
    /// which two batches are on their way at once where there are several.
    pub fn working(&self, weighed: bool) -> usize {
        let combined = if self.size.coil_maps { self.image_batch() } else { 0 };
        let weighed = if weighed { self.sample_batch() } else { 0 };
        let out = if self.size.coil_maps { product(&[self.size.voxels(), self.complex()]) } else { self.image_batch() };
        let one_way = sum(&[self.sample_batch(), out, out.max(self.sample_batch())]);
        let on_their_way = if self.size.coils.saturating_mul(self.size.frames) > self.batch { 2 } else { 1 };
        let caller = if self.apart { product(&[on_their_way, one_way]) } else { 0 };
        sum(&[combined, weighed, caller])
    }

    /// What another trajectory takes beside the one before. `points` are the bytes of its sorted samples where window
    /// and grid stay; `same_arrays` says that arrays of a batch stay as well.
    pub fn of_trajectory(&self, points: Option<usize>, same_arrays: bool) -> usize {
        let kept = if self.apart { 0 } else { self.kept() };
        let working = if same_arrays { 0 } else { self.working(true) };
        sum(&[points.unwrap_or(self.transform), self.factors(), self.field, kept, working])
    }

    /// What other weights take beside those before.
    pub fn of_weights(&self) -> usize {
        let kept = usize::from(self.size.weights && !self.apart);
        product(&[self.factors_of_weights() + kept, self.size.samples, self.real])
    }

    /// Where it computes: what the plan holds, but for coil maps on a GPU, which are sent where there is no room.
    pub fn held_without_maps(&self) -> usize {
        let kept = if self.apart { 0 } else { self.kept() };
        let maps = if self.apart { 0 } else { self.maps() };
        sum(&[self.transform, self.field, self.factors(), kept, maps])
    }

    /// The peaks of all operations. `q` says whether E^H W E goes through Q, `own_output` whether outputs are computed
    /// apart, `maps` what the estimation of coil sensitivities takes.
    pub fn peaks<T: Real, B: Backend<T>>(&self, b: &B, q: bool, own_output: bool, maps: StepBytes) -> Result<Memory> {
        let ScanSize { samples, coils, frames, .. } = self.size;
        let (dims, voxels, images) = (&self.size.dims, self.size.voxels(), self.size.images());
        let image = product(&[voxels, self.complex()]);
        let reals = product(&[samples, self.real]);
        let complexes = product(&[samples, self.complex()]);
        let held = sum(&[self.held_without_maps(), if self.apart { self.maps() } else { 0 }]);
        // While factors are made there is a copy on the host.
        let moved = if self.size.edge { dims.len() } else { 0 };
        let copies = sum(&[product(&[moved + usize::from(self.weighed()), reals]), self.making_field]);
        let host_held = if self.apart { self.kept() } else { 0 };

        let apart =
            |arrays: usize, elements: usize| if own_output { product(&[arrays, elements, self.complex()]) } else { 0 };
        let output = apart(images * frames, voxels);
        let outputs = output.max(apart(coils * frames, samples));

        let pipe_menon = density::bytes::<T, B>(b, samples, dims, Default::default())?;
        let jackson = density::bytes::<T, B>(b, samples, dims, density::Density::Jackson)?;
        let gridding = sum(&[reals, self.working(true)]);
        // Weights as they come, and times phi.
        let gridding_host = product(&[2, reals]);
        let out = if self.apart { product(&[self.batch.min(images), image]) } else { 0 };
        let (grid, grid_host) = match self.size.weights {
            true => (gridding, gridding_host),
            false => (gridding.max(sum(&[pipe_menon.device, out])), gridding_host.max(pipe_menon.host)),
        };

        let backprojection = match dims.len() == 2 && self.size.listed.is_none() {
            true => fbp::bytes::<T, B>(b, samples, fbp::usual_readout(samples, dims), dims, self.batch),
            false => 0,
        };

        // While Q is made: its convolution, half of the doubled grid, a part of Q, the weights' phases.
        let convolver = if q { self.q } else { 0 };
        let q_making = match q {
            true => sum(&[
                convolver,
                toeplitz::making_bytes::<T>(dims),
                product(&[dims.len() + 3 * usize::from(self.nodes), reals]),
                complexes,
            ]),
            false => 0,
        };
        let batches = if self.size.coil_maps { self.image_batch() } else { 0 };
        let caller = if self.apart { product(&[3, image]) } else { 0 };
        // With Q, beside its convolution.
        let normal = match q {
            // The right-hand side has taken the images of a batch.
            true if self.nodes => sum(&[self.node_images, batches]),
            true => product(&[2, batches]),
            false => sum(&[batches, self.sample_batch(), if self.weighed() { self.sample_batch() } else { 0 }]),
        };
        // Residual, direction, its image under the operator, the right-hand side of one frame, the solution of all, and
        // what the mean diagonal is made of.
        let vectors = product(&[cg::VECTORS + (1 + frames) * images + usize::from(self.size.coil_maps), image]);
        // Its pools keep what the right-hand side took.
        let right_hand_side = if q {
            if self.weighed() {
                self.sample_batch()
            } else {
                0
            }
        } else {
            0
        };
        let data = if self.apart { self.sample_batch() } else { 0 };
        // A GPU's memory that the making of Q has left idle stays with the plan.
        let beside_q =
            |bytes: usize| if self.apart { sum(&[q_making, bytes]) } else { q_making.max(sum(&[convolver, bytes])) };
        let cg = beside_q(sum(&[normal, vectors, right_hand_side, data]));

        // What a plan asks for that has a memory limit: each figure serves as one.
        let asked = self.one_at_a_time().working(true);
        let asked_of_q = if q { sum(&[convolver, toeplitz::making_bytes::<T>(dims)]) } else { 0 };
        let asked_of_cg = sum(&[asked, asked_of_q.max(sum(&[convolver, vectors]))]);

        let here = |bytes: usize| held.saturating_add(bytes.max(asked));
        let there = |bytes: usize| host_held.saturating_add(bytes);
        let device = MemoryPeaks {
            plan: held,
            transform: here(self.working(self.weighed())),
            grid: here(grid),
            fbp: here(sum(&[backprojection, self.working(true)])),
            density: here(pipe_menon.device),
            density_jackson: here(jackson.device),
            coil_maps: here(maps.device),
            normal: here(beside_q(sum(&[normal, caller])).max(sum(&[asked, asked_of_q]))),
            cg: here(cg.max(asked_of_cg)),
            q: convolver,
        };
        let host = MemoryPeaks {
            plan: there(copies),
            transform: there(outputs),
            grid: there(grid_host.saturating_add(output)),
            fbp: there(reals.saturating_add(output)),
            density: there(pipe_menon.host),
            density_jackson: there(jackson.host),
            coil_maps: there(maps.host),
            normal: there(output),
            cg: there(0),
            q: 0,
        };
        Ok(match self.apart {
            true => Memory { host: host.at_least_the_plan(), device: device.at_least_the_plan() },
            false => Memory { host: device.plus(host).at_least_the_plan(), device: MemoryPeaks::default() },
        })
    }
}
