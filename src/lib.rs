//! Magnetic resonance image reconstruction from k-space samples on any trajectory.

pub mod backend;
pub mod cg;
pub mod coils;
pub mod density;
mod encoding;
pub mod error;
pub mod ffi;
pub mod geometry;
#[cfg(feature = "cli")]
pub mod io;
pub mod metrics;
pub mod nufft;
pub mod phantom;
pub mod plan;
pub mod prior;
pub mod real;
mod toeplitz;
pub mod trajectory;
pub mod window;

pub use cg::{CgOptions, CgReport, CgRun, Progress, Stop};
pub use coils::{combine, Combine};
pub use density::Density;
pub use error::{Error, ErrorKind, Result};
pub use geometry::{Geometry, VoxelBasis};
pub use num_complex::Complex;
pub use plan::{Device, Method, Normal, Options, Plan, PlanInfo};
pub use prior::{Matrix, Prior};
pub use real::Real;
pub use trajectory::Trajectory;
pub use window::Window;
