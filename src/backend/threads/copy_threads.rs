//! Threads that copy and check arrays of the host for a plan on a GPU.

use super::team::Threads;
use crate::base::processors::requested_threads;
use crate::base::workers::Workers;
use std::sync::OnceLock;

/// Maximum number of threads: eight reach 80 % of the rate of a bus of 54 GB/s, four 45 %.
const MAX_COUNT: usize = 8;
/// Minimum number of tasks of a loop over an array that the threads share: the chunks of an array of 262,144 elements.
/// It takes longer to wake the threads than to process a smaller one.
const MANY_TASKS: usize = 64;

/// Threads that start when they are first needed, since most plans have small arrays.
pub struct CopyThreads {
    count: usize,
    threads: OnceLock<Option<Threads>>,
}

impl CopyThreads {
    /// Returns up to `requested` threads, including the calling thread; 0 means as many as the machine runs at once.
    pub fn new(requested: usize) -> Self {
        CopyThreads { count: requested_threads(requested).min(MAX_COUNT), threads: OnceLock::new() }
    }

    /// Returns the number of threads, including the calling thread.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Runs `task(0..tasks)` in parallel, in any order.
    pub fn run(&self, tasks: usize, task: impl Fn(usize) + Sync) {
        let start = || {
            let threads = Threads::for_copies(self.count);
            threads.inspect_err(|e| log::debug!("one thread copies and checks arrays: {e}")).ok()
        };
        match self.threads.get_or_init(start) {
            Some(threads) => threads.run(tasks, task),
            None => (0..tasks).for_each(task),
        }
    }
}

// SAFETY: each number is passed once.
unsafe impl Workers for CopyThreads {
    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        if tasks < MANY_TASKS {
            (0..tasks).for_each(task);
        } else {
            CopyThreads::run(self, tasks, task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn loops_run_each_task_once() {
        for count in [0, 1, 3] {
            let threads = CopyThreads::new(count);
            for tasks in [0, 1, MANY_TASKS - 1, MANY_TASKS, 5000] {
                let runs: Vec<_> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                Workers::run(&threads, tasks, &|i| assert_eq!(runs[i].fetch_add(1, Ordering::Relaxed), 0));
                assert!(runs.iter().all(|runs| runs.load(Ordering::Relaxed) == 1), "{tasks} tasks, {count} threads");
            }
        }
    }
}
