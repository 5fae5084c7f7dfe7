//! The lowest layer: options, geometry, errors, precisions, interruption, buffers and files. Three numerical
//! tools are used by several layers (`dense`, `random`, `roots_of_unity`). It contains no algorithms of reconstruction.

pub mod acquisition;
pub mod atomic_file;
pub(crate) mod buffer_pool;
pub(crate) mod checksum;
pub mod defaults;
pub(crate) mod dense;
#[cfg(unix)]
pub(crate) mod descriptor;
pub mod error;
pub(crate) mod fft_size;
pub(crate) mod float_mode;
pub(crate) mod free_memory;
pub mod geometry;
pub(crate) mod headroom;
pub(crate) mod input_check;
pub(crate) mod interrupt;
pub(crate) mod mapped;
pub(crate) mod memory;
pub mod off_resonance;
pub mod options;
pub(crate) mod per_process;
pub(crate) mod process_id;
pub(crate) mod processors;
pub(crate) mod random;
pub mod real;
pub mod results;
pub mod rigid_motion;
pub(crate) mod roots_of_unity;
pub mod scan_size;
pub(crate) mod sizes;
pub mod warning;
pub mod workers;
