//! Release of what the library keeps for the next plan.

use crate::backend::cuda::release_unused;
use crate::backend::threads::end_unused_threads;
use crate::base::memory::release_host_memory;
use crate::nufft::corrections;

/// Releases all that the library keeps for the next plan: threads, host memory, and the contexts of GPUs that no plan
/// uses, with their kernels and memory. Existing plans are unaffected. With glibc, free memory of the process's heap is
/// also released (malloc_trim).
pub fn release_memory() {
    end_unused_threads();
    release_unused();
    corrections::release();
    release_host_memory();
}
