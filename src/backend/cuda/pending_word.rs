//! Results of kernels that the host reads while later work is queued.

use super::host_word::HostWord;
use super::library::check;
use super::runtime::Stream;
use crate::base::error::{bail, Result};
use cudarc::driver::sys as cu;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Value of the word before the kernel has written its result. No array is that long, and as a double it is a NaN that
/// no operation returns.
const PENDING: u64 = u64::MAX - 1;
/// Time between two queries of the stream, which find out if it has failed.
const QUERY_PERIOD: Duration = Duration::from_micros(50);

/// A result that a queued kernel writes to the host's memory. Dropping it waits for the kernel.
pub struct PendingWord {
    /// `None` once the result has been read.
    word: Option<HostWord>,
    stream: Arc<Stream>,
}

impl PendingWord {
    /// Returns a word for the kernel that is about to be queued.
    pub fn new(stream: &Arc<Stream>) -> Result<Self> {
        Ok(PendingWord { word: Some(stream.context.host_word(PENDING)?), stream: stream.clone() })
    }

    /// Returns the address where the kernel writes its result.
    pub fn device_address(&self) -> u64 {
        self.word.as_ref().expect("the kernel has not been queued").device_address()
    }

    /// Waits for the result.
    pub fn read(&mut self) -> Result<u64> {
        let word = self.word.take().expect("the result is read once");
        let result = self.poll(&word);
        if result.is_err() {
            // The kernel may still write the word, for example if it was captured in a graph.
            std::mem::forget(word);
        }
        result
    }

    fn poll(&self, word: &HostWord) -> Result<u64> {
        let mut queried = Instant::now();
        loop {
            let value = word.value().load(Ordering::Acquire);
            if value != PENDING {
                return Ok(value);
            }
            if queried.elapsed() < QUERY_PERIOD {
                std::hint::spin_loop();
                continue;
            }
            let _current = self.stream.context.enter()?;
            // SAFETY: the stream exists.
            match unsafe { cu::cuStreamQuery(self.stream.handle()) } {
                cu::CUresult::CUDA_ERROR_NOT_READY => std::thread::yield_now(),
                status => {
                    check(status, "waiting for a number from the GPU")?;
                    let value = word.value().load(Ordering::Acquire);
                    if value == PENDING {
                        bail!(DeviceFailed, "the GPU has completed its work without a result: create the plan again");
                    }
                    return Ok(value);
                }
            }
            queried = Instant::now();
        }
    }
}

impl Drop for PendingWord {
    fn drop(&mut self) {
        if self.word.is_some() {
            // The word must not be used again before the kernel has written it. A failure is reported by other calls.
            let _ = self.read();
        }
    }
}
