//! What computes for a plan: an encoding on one backend, or one a GPU on several; the choice among them.

pub(crate) mod chosen;
pub(crate) mod coil_maps;
pub(crate) mod encoding;
pub(crate) mod estimate;
pub(crate) mod field;
pub mod interface;
pub(crate) mod making;
pub mod memory;
pub(crate) mod multi_gpu;
pub(crate) mod one_backend;
