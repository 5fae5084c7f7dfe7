//! The threads of plans: they compute on a CPU, and copy and check large arrays of the host for a GPU.

mod copy_threads;
pub(super) mod task_order;
mod team;
mod worker_pool;
mod worker_thread;

pub use copy_threads::CopyThreads;
pub use team::{end_unused_threads, Threads};
