//! Magnetic resonance images from k-space samples taken along any trajectory.
//!
//! ```
//! use recon::trajectory::SpokeOrder;
//! use recon::{Complex, Geometry, Options, Plan, Trajectory};
//!
//! // 100 golden-angle spokes of 128 samples, and the data of one coil.
//! let trajectory = Trajectory::radial2d(100, 128, SpokeOrder::GoldenAngle)?;
//! let (kx, ky) = (trajectory.axis_as::<f32>(0), trajectory.axis_as::<f32>(1));
//! let kspace = vec![Complex::new(1.0, 0.0); kx.len()];
//!
//! let plan = Plan::new(&Geometry::new(&[64, 64], &[&kx, &ky]), &Options::default())?;
//! let mut image = vec![Complex::default(); 64 * 64];
//! plan.grid(&kspace, &mut image)?;
//! // Samples that are all 1 belong to a point in the centre.
//! assert!(image[32 * 64 + 32].norm() > 0.5);
//! # Ok::<(), recon::Error>(())
//! ```
//!
//! A [`Plan`] holds all data that depends on the trajectory. Its operations are [`Plan::forward`] and [`Plan::adjoint`]
//! (E and E^H), [`Plan::normal`] (E^H W E), [`Plan::grid`], [`Plan::fbp`], [`Plan::cg`], [`Plan::q`],
//! [`Plan::density`], [`Plan::coil_maps`].
//!
//! A change of a plan's trajectory costs less than a new plan, and is possible while other threads use the plan:
//! [`Plan::set_trajectory`], [`Plan::set_weights`], [`Plan::set_coil_maps`].
//!
//! A callback can interrupt long calls: [`Options::interrupt`].
//!
//! Transforms are not normalised ([`Plan::adjoint`] is the plain sum; only [`Plan::grid`] is scaled), and images are
//! not filtered. Whitening of data and compression of coils are separate steps: [`NoiseCovariance`], [`CoilEnergy`]. k
//! is in cycles per voxel; [`Geometry`] defines the model and the order of arrays.
//!
//! The library uses the best vector unit of the processor. [`Options::simd`] or the environment variable `RECON_SIMD`
//! (on x86-64 `baseline` or `sse`, `avx2`, `avx512`; on 64-bit ARM only `baseline` or `neon`) selects a different one;
//! the option takes precedence. With the same vector unit, results have the same bits for any number of threads and on
//! every call.
//!
//! A plan computes on an NVIDIA GPU if one is available ([`Options::device`]), otherwise on the CPU. Kernels are
//! compiled with NVRTC when a plan first needs them. They are stored in the folder `RECON_CACHE_DIR`, or
//! `$XDG_CACHE_HOME/recon`, or `~/.cache/recon` (on Windows `%LOCALAPPDATA%\recon\cache`). `RECON_NVRTC` is the path of
//! NVRTC if the system does not find it. Arrays may be on the GPU: [`Source::device`], [`Sink::device`].
//!
//! Results on a GPU also have the same bits on every call. They agree with those of the CPU within the tolerance, and
//! to rounding errors if both choose the same window.
//!
//! Algorithms are written once, using the primitives of the trait `Backend`. Each device implements this trait.

#[doc(hidden)]
pub mod backend;
mod base;
mod engine;
pub mod ffi;
pub mod nufft;
pub mod partial_fourier;
pub mod plan;
pub mod propeller;
mod reconstruction;
pub mod scan;
pub mod simulated_scan;
mod simulation;

#[doc(hidden)]
pub use base::headroom::BYTES as HEADROOM;
#[doc(hidden)]
pub use base::memory::mapped_bytes_in_use;
pub use base::{acquisition, defaults, error, geometry, options, real, warning};
#[doc(hidden)]
pub use base::{atomic_file, results};
pub use engine::memory;
pub use nufft::window;
pub use reconstruction::{
    cg, coil_matrix, coils, compression, concomitant_phase, coverage, density, field_map, phase_difference, prior,
    resize, whitening,
};
pub use simulation::{metrics, phantom, trajectory};

pub use backend::{Sink, Source};
pub use base::error::{Error, ErrorKind, Result};
pub use base::geometry::{DeviceGeometry, Geometry, VoxelBasis};
pub use base::interrupt::Interrupt;
pub use base::off_resonance::OffResonanceRange as Band;
pub use base::options::{CudaStream, Device, Filter, LambdaUnit, Method, Normal, Options, Simd, Window};
pub use base::real::Real;
pub use base::rigid_motion::RigidMotion;
pub use base::scan_size::ScanSize;
pub use base::warning::{Warning, WarningKind};
pub use engine::device_selection::{DeviceReason, DeviceSelection};
pub use engine::interface::PlanInfo;
pub use engine::memory::{Memory, MemoryPeaks};
pub use engine::unused_memory::release_memory;
pub use num_complex::Complex;
pub use partial_fourier::{PartialFourier, PartialFourierMethod, PartialFourierOptions, PartialFourierReport};
pub use plan::Plan;
pub use propeller::{BladeMotion, BladePhase, Corrected, PropellerOptions};
pub use reconstruction::cg::{CgOptions, CgReport, CgRun, Progress, Stop};
pub use reconstruction::coil_matrix::CoilMatrix;
pub use reconstruction::coils::{combine, Combine};
pub use reconstruction::compression::{CoilEnergy, Compression, Keep};
pub use reconstruction::concomitant_phase::{ConcomitantPhase, ImagePosition, MaxwellCoefficients};
pub use reconstruction::density::Density;
pub use reconstruction::field_map::{estimate_field_map, Echoes, FieldMapOptions, FieldMapReport};
pub use reconstruction::phase_difference::{phase_difference, PhaseDifferenceOptions};
pub use reconstruction::prior::{Matrix, Prior};
pub use reconstruction::resize::Resize;
pub use reconstruction::whitening::{NoiseCovariance, NoiseSampling};
pub use simulation::trajectory::Trajectory;
