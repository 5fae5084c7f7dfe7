//! The threads of a plan. They start with the plan and are joined when it is dropped, so that a host program may unload
//! the library.
//!
//! A reconstruction of a small image is thousands of parallel regions of some microseconds each, so a region must cost
//! little and allocate nothing. That is why rayon does not serve here: its `broadcast` allocates a job for every
//! thread, and the thread that calls it sleeps meanwhile. Here the caller works too, a region lives on its stack, and
//! workers join it under one lock. A caller never waits for a worker to begin, only until workers that have begun end:
//! nested regions and calls from several threads at once make progress, with few workers or none.

use crate::base::error::{bail, Result};
use crate::base::float_mode::FloatMode;
use std::any::Any;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// More than any machine has; a negative number from C must not start four billion.
const MOST_THREADS: usize = 4096;
/// How long a thread spins before it sleeps: regions follow one another faster than a thread wakes.
const SPIN_TIME: Duration = Duration::from_micros(30);

/// The calling thread and `count - 1` more.
pub struct Threads {
    pool: Arc<Pool>,
    workers: Vec<JoinHandle<()>>,
    count: usize,
}

impl Threads {
    /// Starts `count - 1` threads beside the calling one; 0 means as many as the machine runs at once.
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
        let mut threads = Threads { pool: Arc::new(Pool::new()), workers: Vec::with_capacity(count - 1), count };
        for i in 1..count {
            let pool = threads.pool.clone();
            let worker = std::thread::Builder::new().name(format!("recon {i}")).spawn(move || {
                // A thread inherits the floating-point mode of the one that starts it.
                let _mode = FloatMode::standard();
                pool.serve();
            });
            match worker {
                Ok(worker) => threads.workers.push(worker),
                // Threads that have started end as `threads` is dropped.
                Err(e) => {
                    bail!(OutOfHostMemory, "could not start {count} threads ({e}): ask for fewer, or free memory")
                }
            }
        }
        Ok(threads)
    }

    /// The number of threads, the calling one included.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Runs `task(0..tasks)` in parallel. They are begun in this order, so that a task may wait for one before it. Each
    /// thread that takes part calls `start` once and passes what it returns to its tasks. A panic of a task is resumed here, once no thread is at work any more.
    pub fn run_with<S>(&self, tasks: usize, start: impl Fn() -> S + Sync, task: impl Fn(&mut S, usize) + Sync) {
        let next = AtomicUsize::new(0);
        let work = || {
            if next.load(Ordering::Relaxed) >= tasks {
                return;
            }
            // Before a task is taken: `start` may wait for memory, and others may wait for tasks that were taken.
            let mut state = start();
            let take = || next.fetch_add(1, Ordering::Relaxed);
            let mut i = take();
            while i < tasks {
                task(&mut state, i);
                i = take();
            }
        };
        match self.count.min(tasks) {
            0 | 1 => work(),
            all => self.pool.run(all - 1, &work),
        }
    }

    /// Runs `task(0..tasks)` in parallel, in any order.
    pub fn run(&self, tasks: usize, task: impl Fn(usize) + Sync) {
        self.run_with(tasks, || (), |_, i| task(i));
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.pool.close();
        for worker in self.workers.drain(..) {
            // Workers catch the panics of their tasks: there is none to report here.
            let _ = worker.join();
        }
    }
}

/// The state that callers and workers share.
struct Pool {
    state: Mutex<State>,
    /// Open seats, one more once the pool closes: workers read it without the lock.
    open: AtomicUsize,
    /// A seat has opened, or the pool closes.
    wake: Condvar,
    /// A region has lost its last worker.
    left: Condvar,
}

struct State {
    regions: Vec<RegionAddress>,
    /// Workers waiting for `wake`, and callers for `left`.
    sleeping: usize,
    waiting: usize,
    closing: bool,
}

/// A parallel region, on the stack of its caller. The caller takes it off the list, after which no worker joins,
/// and waits until none is inside.
struct Region<'a> {
    work: &'a (dyn Fn() + Sync),
    /// Workers that may yet join, and those inside; written under the pool's lock.
    seats: AtomicUsize,
    inside: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Region<'_> {
    /// Does the work, and keeps the first panic for the caller: only one can be passed on.
    fn work(&self) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(self.work)) {
            let mut first = self.panic.lock().unwrap_or_else(|e| e.into_inner());
            match &*first {
                None => *first = Some(panic),
                // Dropping it could panic again.
                Some(_) => std::mem::forget(panic),
            }
        }
    }
}

/// The address of a region.
#[derive(Clone, Copy, PartialEq)]
struct RegionAddress(*const Region<'static>);
// SAFETY: a region is Sync: its work is, and its other fields are atomic or locked.
unsafe impl Send for RegionAddress {}

impl Pool {
    fn new() -> Self {
        // Room for 64 callers at once without another allocation.
        let regions = Vec::with_capacity(64);
        Pool {
            state: Mutex::new(State { regions, sleeping: 0, waiting: 0, closing: false }),
            open: AtomicUsize::new(0),
            wake: Condvar::new(),
            left: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Calls `work` in this thread and in up to `seats` workers.
    fn run(&self, seats: usize, work: &(dyn Fn() + Sync)) {
        let region =
            Region { work, seats: AtomicUsize::new(seats), inside: AtomicUsize::new(0), panic: Mutex::new(None) };
        let listed = RegionAddress((&raw const region).cast());
        let sleeping = {
            let mut state = self.lock();
            state.regions.push(listed);
            self.open.fetch_add(seats, Ordering::Relaxed);
            state.sleeping
        };
        match sleeping {
            0 => {}
            _ if sleeping <= seats => self.wake.notify_all(),
            _ => (0..seats).for_each(|_| self.wake.notify_one()),
        }
        region.work();

        let mut state = self.lock();
        // From here on no worker joins.
        state.regions.retain(|r| *r != listed);
        self.open.fetch_sub(region.seats.load(Ordering::Relaxed), Ordering::Relaxed);
        let empty = || region.inside.load(Ordering::Relaxed) == 0;
        if !empty() {
            drop(state);
            spin_until(empty);
            // Under the lock, because the last worker holds it when it touches the region for the last time.
            state = self.lock();
            while !empty() {
                state.waiting += 1;
                state = self.left.wait(state).unwrap_or_else(|e| e.into_inner());
                state.waiting -= 1;
            }
        }
        drop(state);
        if let Some(panic) = region.panic.into_inner().unwrap_or_else(|e| e.into_inner()) {
            resume_unwind(panic);
        }
    }

    /// What a worker does until the pool closes.
    fn serve(&self) {
        let mut state = self.lock();
        while !state.closing {
            // SAFETY: regions on the list are alive: callers take them off, under this lock, before they go.
            let has_seats = |r: &&RegionAddress| unsafe { &*r.0 }.seats.load(Ordering::Relaxed) > 0;
            let open = state.regions.iter().find(has_seats).copied();
            if let Some(RegionAddress(region)) = open {
                // SAFETY: the region is on the list, whose lock is held; `inside` then keeps its caller waiting.
                let region = unsafe { &*region };
                region.seats.fetch_sub(1, Ordering::Relaxed);
                region.inside.fetch_add(1, Ordering::Relaxed);
                self.open.fetch_sub(1, Ordering::Relaxed);
                drop(state);
                region.work();
                state = self.lock();
                // The lock makes what this worker has written visible to the caller.
                if region.inside.fetch_sub(1, Ordering::Relaxed) == 1 && state.waiting > 0 {
                    self.left.notify_all();
                }
                continue;
            }
            drop(state);
            spin_until(|| self.open.load(Ordering::Relaxed) > 0);
            state = self.lock();
            if self.open.load(Ordering::Relaxed) == 0 && !state.closing {
                state.sleeping += 1;
                state = self.wake.wait(state).unwrap_or_else(|e| e.into_inner());
                state.sleeping -= 1;
            }
        }
    }

    /// Ends the workers.
    fn close(&self) {
        self.lock().closing = true;
        self.open.fetch_add(1, Ordering::Relaxed);
        self.wake.notify_all();
    }
}

/// Waits for a condition for a short while, and yields the processor to other threads meanwhile.
fn spin_until(condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() && started.elapsed() < SPIN_TIME {
        std::thread::yield_now();
    }
}

/// A slice that several threads write, each its own elements.
pub struct Shared<'a, E> {
    address: *mut E,
    len: usize,
    marker: std::marker::PhantomData<&'a mut [E]>,
}

// SAFETY: elements are used only through unsafe functions, whose callers promise to use different elements.
unsafe impl<E: Send> Sync for Shared<'_, E> {}
// SAFETY: sending it sends the use of its elements, which are Send.
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
        // SAFETY: inside the slice, as asserted; the caller promises that no other thread uses it.
        unsafe { std::slice::from_raw_parts_mut(self.address.add(start), len) }
    }

    /// Writes element `i`.
    ///
    /// # Safety
    /// No other thread may use this element meanwhile.
    #[inline(always)]
    pub unsafe fn set(&self, i: usize, value: E) {
        assert!(i < self.len);
        // SAFETY: inside the slice, as asserted; the caller promises that no other thread uses it.
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

    /// Progress needs no free worker: not within a region, and not when all of them serve another caller.
    #[test]
    fn regions_nest_and_callers_share_the_threads() {
        let threads = Threads::new(3).unwrap();
        let hits = AtomicUsize::new(0);
        let hit = |_| {
            hits.fetch_add(1, Ordering::Relaxed);
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..50).for_each(|_| threads.run(5, |_| threads.run(7, hit))));
            }
        });
        assert_eq!(hits.into_inner(), 4 * 50 * 5 * 7);
    }

    /// A panic must reach the caller, who turns it into an error, and leave a pool that works.
    #[test]
    fn panics_reach_the_caller() {
        let threads = Threads::new(4).unwrap();
        for bad in [0, 17, 99] {
            let done = AtomicUsize::new(0);
            let panic = catch_unwind(AssertUnwindSafe(|| {
                threads.run(100, |i| {
                    done.fetch_add(1, Ordering::Relaxed);
                    // Not `panic!`, which would print.
                    if i >= bad {
                        resume_unwind(Box::new(i));
                    }
                });
            }))
            .unwrap_err();
            assert!(*panic.downcast::<usize>().unwrap() >= bad);
            let hits = AtomicUsize::new(0);
            threads.run(100, |_| {
                hits.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(hits.into_inner(), 100);
        }
    }

    /// Tasks round in the standard mode on every thread, and a debugger shows the threads by name.
    #[test]
    fn workers_are_named_and_compute_in_the_standard_mode() {
        let threads = Threads::new(3).unwrap();
        let names = Mutex::new(std::collections::BTreeSet::new());
        // Each task waits until all threads have one.
        let all = std::sync::Barrier::new(3);
        threads.run(3, |_| {
            all.wait();
            #[cfg(target_arch = "x86_64")]
            if std::thread::current().name().is_some_and(|n| n.starts_with("recon ")) {
                let mut mode = 0u32;
                // SAFETY: MXCSR is stored to valid memory.
                unsafe { std::arch::asm!("stmxcsr [{}]", in(reg) &mut mode) };
                assert_eq!(mode & !0x3f, 0x1f80);
            }
            names.lock().unwrap().insert(std::thread::current().name().unwrap_or("none").to_owned());
        });
        let names = names.into_inner().unwrap();
        assert!(names.len() == 3 && names.contains("recon 1") && names.contains("recon 2"), "{names:?}");
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
