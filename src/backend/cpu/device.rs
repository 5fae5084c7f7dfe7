//! The CPU device of a plan: a vector unit and threads.

use super::simd::Level;
use crate::backend::threads::Threads;
use crate::base::error::Result;
use crate::base::options::Simd;
use crate::base::warning::Warning;

/// The CPU with a plan's threads.
pub struct Cpu {
    pub(super) threads: Threads,
    pub(super) level: Level,
    /// Whether plans omit large buffers that only save time.
    pub(super) saves_memory: bool,
}

impl Cpu {
    /// Creates the device with `threads` threads, including the calling thread; 0 means the number that the machine
    /// runs at once.
    ///
    /// # Errors
    /// `Unsupported` if the processor lacks the vector unit, `UnknownValue` if `RECON_SIMD` has an unknown value,
    /// `InvalidArgument` if there are too many threads.
    pub fn new(threads: usize, simd: Simd) -> Result<Self> {
        let level = Level::choose(simd)?;
        Ok(Cpu { threads: Threads::new(threads)?, level, saves_memory: false })
    }

    /// Sets whether plans omit large buffers that only save time. A plan with a memory limit has to: it transforms one
    /// array at a time, and must not take more memory than one without a limit, which transforms several.
    pub fn saving_memory(self, saves_memory: bool) -> Self {
        Cpu { saves_memory, ..self }
    }

    /// Returns a warning if the system refused threads. Waits for threads that are being started.
    pub(crate) fn warning(&self) -> Option<Warning> {
        self.threads.warning()
    }

    /// Returns this warning once, without waiting.
    pub(crate) fn new_warning(&self) -> Option<Warning> {
        self.threads.new_warning()
    }

    /// Returns the vector unit in use.
    pub fn level(&self) -> Level {
        self.level
    }
}
