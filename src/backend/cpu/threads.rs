//! A plan's own threads: started with the plan, joined when it goes, so that a host program may unload the library.

use crate::error::{bail, Result};
use crate::float_mode::FloatMode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

/// More than any machine has; a negative number from C must not start four billion.
const MOST_THREADS: usize = 4096;

/// A pool of threads. One thread means the caller's own.
pub struct Threads {
    pool: Option<rayon::ThreadPool>,
    workers: Vec<JoinHandle<()>>,
    count: usize,
}

impl Threads {
    /// Starts `count` threads; 0 means as many as the machine runs at once.
    pub fn new(count: usize) -> Result<Self> {
        if count > MOST_THREADS {
            bail!(
                InvalidArgument,
                "{count} threads were asked for: at most {MOST_THREADS} make sense, 0 means all there are"
            );
        }
        let count = match count {
            0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
            n => n,
        };
        if count == 1 {
            return Ok(Threads { pool: None, workers: Vec::new(), count });
        }
        let mut workers = Vec::new();
        let built = rayon::ThreadPoolBuilder::new()
            .num_threads(count)
            .spawn_handler(|thread| {
                let name = format!("recon {}", thread.index());
                let worker = std::thread::Builder::new().name(name).spawn(move || {
                    // A thread inherits the floating-point mode of the one that starts it.
                    let _mode = FloatMode::standard();
                    thread.run()
                })?;
                workers.push(worker);
                Ok(())
            })
            .build();
        match built {
            Ok(pool) => Ok(Threads { pool: Some(pool), workers, count }),
            Err(e) => {
                // Dropping the half-built pool has told its threads to end.
                for worker in workers {
                    let _ = worker.join();
                }
                bail!(InvalidArgument, "could not start {count} threads ({e}): ask for fewer")
            }
        }
    }

    /// The number of threads.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Runs `task(0..tasks)`, in any order and side by side; each thread that takes part calls `start` once and hands
    /// what it returns to its tasks.
    pub fn run_with<S>(&self, tasks: usize, start: impl Fn() -> S + Sync, task: impl Fn(&mut S, usize) + Sync) {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut i = next.fetch_add(1, Ordering::Relaxed);
            if i >= tasks {
                return;
            }
            let mut state = start();
            while i < tasks {
                task(&mut state, i);
                i = next.fetch_add(1, Ordering::Relaxed);
            }
        };
        match &self.pool {
            Some(pool) if tasks > 1 => {
                pool.broadcast(|_| work());
            }
            _ => work(),
        }
    }

    /// Runs `task(0..tasks)`, in any order and side by side.
    pub fn run(&self, tasks: usize, task: impl Fn(usize) + Sync) {
        self.run_with(tasks, || (), |_, i| task(i));
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        drop(self.pool.take());
        for worker in self.workers.drain(..) {
            // A worker that panicked has already reported it to the caller of `run_with`.
            let _ = worker.join();
        }
    }
}

/// A slice that several threads write, each its own elements.
pub struct Shared<'a, E> {
    address: *mut E,
    len: usize,
    marker: std::marker::PhantomData<&'a mut [E]>,
}

// SAFETY: the elements are only reached through unsafe functions whose callers keep to their own.
unsafe impl<E: Send> Sync for Shared<'_, E> {}
// SAFETY: as above.
unsafe impl<E: Send> Send for Shared<'_, E> {}

impl<'a, E> Shared<'a, E> {
    /// Shares a slice.
    pub fn new(slice: &'a mut [E]) -> Self {
        Shared { address: slice.as_mut_ptr(), len: slice.len(), marker: std::marker::PhantomData }
    }

    /// The number of elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The address of element `start`.
    pub fn address(&self, start: usize) -> *mut E {
        assert!(start <= self.len);
        self.address.wrapping_add(start)
    }

    /// Elements `start .. start + len`.
    ///
    /// # Safety
    /// No other thread may use these elements while the result lives.
    #[allow(clippy::mut_from_ref)]
    #[inline(always)]
    pub unsafe fn part(&self, start: usize, len: usize) -> &mut [E] {
        assert!(start <= self.len && len <= self.len - start);
        // SAFETY: inside the slice that was shared; unique by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.address.add(start), len) }
    }

    /// Writes element `i`.
    ///
    /// # Safety
    /// No other thread may use this element meanwhile.
    #[inline(always)]
    pub unsafe fn set(&self, i: usize, value: E) {
        assert!(i < self.len);
        // SAFETY: inside the slice that was shared; unique by the caller's promise.
        unsafe { *self.address.add(i) = value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_runs_once() {
        for count in [1, 2, 5] {
            let threads = Threads::new(count).unwrap();
            let mut hits = vec![0u32; 1000];
            let shared = Shared::new(&mut hits);
            // SAFETY: each task has its own element.
            threads.run(1000, |i| unsafe { shared.part(i, 1)[0] += 1 });
            assert!(hits.iter().all(|&h| h == 1));
        }
    }

    #[test]
    fn threads_end_with_the_pool() {
        let alive = || {
            std::fs::read_dir("/proc/self/task").map_or(0, |d| {
                d.filter_map(|t| std::fs::read_to_string(t.ok()?.path().join("comm")).ok())
                    .filter(|name| name.starts_with("recon 77"))
                    .count()
            })
        };
        let threads = Threads::new(78).unwrap();
        threads.run(1, |_| ());
        drop(threads);
        assert_eq!(alive(), 0);
    }
}
