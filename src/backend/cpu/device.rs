//! The CPU as a plan has it: a vector unit and threads.

use super::simd::Level;
use super::thread_pool::Threads;
use crate::base::error::Result;
use crate::base::options::Simd;
use crate::base::warning::Warning;

/// The CPU, with a plan's own threads.
pub struct Cpu {
    pub(super) threads: Threads,
    pub(super) level: Level,
}

impl Cpu {
    /// Computes with `threads` threads, the calling one included; 0 means as many as the machine runs at once.
    ///
    /// # Errors
    /// `Unsupported` for a vector unit that this processor lacks, `UnknownValue` for an environment variable
    /// `RECON_SIMD` that names none; `InvalidArgument` for more threads than can be started.
    pub fn new(threads: usize, simd: Simd) -> Result<Self> {
        let level = Level::choose(simd)?;
        Ok(Cpu { threads: Threads::new(threads)?, level })
    }

    /// Returns a warning if the system refused threads.
    pub(crate) fn warning(&self) -> Option<Warning> {
        self.threads.warning()
    }

    /// The vector unit in use.
    pub fn level(&self) -> Level {
        self.level
    }
}
