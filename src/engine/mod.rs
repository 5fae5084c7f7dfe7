//! The engine that computes for a plan: an encoding on one backend, or one encoding per GPU on several GPUs.

pub(crate) mod coil_maps;
pub mod device_selection;
pub(crate) mod encoding;
pub(crate) mod factory;
pub(crate) mod field;
pub mod interface;
pub(crate) mod interruption;
pub mod memory;
pub(crate) mod multi_gpu;
pub(crate) mod one_backend;
mod partition;
pub(crate) mod transform_params;
pub mod unused_memory;
