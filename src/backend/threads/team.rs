//! The threads of plans. All plans of a process share them: their number is the largest that a plan requests. Threads
//! start with plans. A plan starts one thread, which starts the others while the plan is being created and used.
//! Nothing waits for them but a question for their number: with 16 threads they all run after 0.3 ms, and a small plan
//! and its only call take 0.1 ms.
//!
//! On Linux, threads that no plan needs any more wait a second for the next plan. Otherwise a program that makes one
//! plan after another would start and end them for each, which takes longer than a small image. They also end when the
//! library is unloaded, and by [`end_unused_threads`]. Elsewhere they end with the last plan: on Windows, a library
//! cannot wait for its threads while it is unloaded.

use super::task_order::nth_in_lanes;
use super::worker_pool::{WorkerPool, BRIEF_SPIN_TIME, SPIN_TIME};
use super::worker_thread::WorkerThread;
use crate::base::error::{bail, Result};
use crate::base::float_mode::FloatMode;
use crate::base::mapped;
use crate::base::per_process::{is_ending, PerProcess};
use crate::base::process_id;
use crate::base::processors::requested_threads;
use crate::base::warning::{Warning, WarningKind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

/// More threads than any machine has. A negative number from C must not start four billion.
const MAX_THREADS: usize = 4096;
/// Bytes of address space that must be free before a thread is started: a stack of 2 MiB, and 128 MiB that glibc maps
/// for allocations. A thread without them aborts inside glibc when it starts.
const THREAD_ADDRESS_SPACE: usize = 136 << 20;
/// Whether threads that no plan needs wait for the next plan.
const THREADS_LINGER: bool = cfg!(target_os = "linux");
/// The system's error number for insufficient memory (ENOMEM).
const ENOMEM: i32 = 12;

/// The threads of a plan: the calling thread and up to `count - 1` of the process's workers.
pub struct Threads {
    team: Arc<Team>,
    count: usize,
    /// Time that workers spin after a parallel region.
    spin_time: Duration,
    /// Whether the team counts these threads: not those of [`Threads::share`].
    is_member: bool,
    /// Whether [`Threads::new_warning`] knows that all threads run, or has returned the warning.
    is_reported: AtomicBool,
}

/// The team of this process, from the first plan on. The lock is held while a plan is created or dropped. A forked
/// process has its parent's memory but not its threads, so it begins without a team.
static TEAM: PerProcess<Mutex<Option<Arc<Team>>>> = PerProcess::new(Mutex::new(None), |_| Mutex::new(None));

/// The workers of a process.
struct Team {
    /// Id of the process that the threads belong to.
    process: u32,
    pool: Arc<WorkerPool>,
    members: Mutex<Members>,
    /// Notified when no worker is starting others any more.
    started: Condvar,
}

/// The workers of a team, and the plans that need them.
#[derive(Default)]
struct Members {
    workers: Vec<WorkerThread>,
    /// Threads that end because no plan needed them.
    ending: Vec<WorkerThread>,
    /// Number of threads that each plan requested.
    requests: Vec<usize>,
    /// Whether a worker is starting others.
    starting: bool,
    /// Error number of the system's last refusal to start a thread; `None` without a refusal.
    refusal: Option<i32>,
}

impl Team {
    fn new() -> Arc<Team> {
        Arc::new(Team {
            process: process_id::current(),
            pool: Arc::new(WorkerPool::new()),
            members: Mutex::default(),
            started: Condvar::new(),
        })
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Registers a plan with `count` threads, and starts the first missing worker, which starts the others. If the
    /// system refuses threads, the plan computes with the existing ones: see `Threads::running`. The registry's lock is
    /// held.
    fn admit(self: &Arc<Self>, count: usize) -> Result<()> {
        let mut members = self.join_ending();
        if members.requests.try_reserve(1).is_err() || members.workers.try_reserve(count).is_err() {
            bail!(
                OutOfHostMemory,
                "could not allocate the list of {count} threads: request fewer threads, or free memory"
            );
        }
        members.requests.push(count);
        if members.required() > 0 {
            self.pool.set_unused(false);
            members = self.end_workers(members);
        }
        let missing = members.required().saturating_sub(members.workers.len());
        if !members.starting && missing > 0 {
            // One question for all threads is faster than one for each, and the others have not taken theirs yet.
            let has_room = mapped::has_addresses(missing.saturating_mul(THREAD_ADDRESS_SPACE));
            self.start_next(&mut members, true, if has_room { missing } else { 0 });
        }
        Ok(())
    }

    /// Starts the next worker, and returns whether the system allowed it. The first missing worker starts the others.
    /// The process is known to have addresses for `room` threads.
    fn start_next(self: &Arc<Self>, members: &mut Members, first: bool, room: usize) -> bool {
        if room == 0 && !mapped::has_addresses(THREAD_ADDRESS_SPACE) {
            members.refusal = Some(ENOMEM);
            return false;
        }
        let index = members.workers.len();
        self.pool.set_worker_limit(index + 1);
        let team = self.clone();
        let worker = WorkerThread::start(index + 1, move || {
            // A thread inherits the floating-point mode of the thread that starts it.
            let _mode = FloatMode::standard();
            if first {
                team.start_remaining(room.saturating_sub(1));
            }
            team.pool.run_worker(index, || team.end_unused());
        });
        match worker {
            Ok(worker) => {
                members.workers.push(worker);
                members.starting |= first;
                true
            }
            Err(e) => {
                members.refusal = e.raw_os_error();
                false
            }
        }
    }

    /// Starts workers until the plans' requests are met or the system refuses. Plans may be created and dropped in the
    /// meantime. The process is known to have addresses for `room` threads.
    fn start_remaining(self: &Arc<Self>, mut room: usize) {
        loop {
            let mut members = self.members();
            if members.workers.len() >= members.required() || !self.start_next(&mut members, false, room) {
                members.starting = false;
                self.started.notify_all();
                return;
            }
            room = room.saturating_sub(1);
        }
    }

    /// Unregisters a plan with `count` threads, and ends the workers that no other plan requests. If no plan requests
    /// any, they may wait for the next plan. The registry's lock makes plans come and go one at a time.
    fn dismiss(&self, count: usize) {
        let mut members = self.members();
        if let Some(index) = members.requests.iter().position(|&requests| requests == count) {
            members.requests.swap_remove(index);
        }
        if members.required() > 0 || !THREADS_LINGER {
            drop(self.end_workers(members));
        } else if !members.workers.is_empty() {
            self.pool.set_unused(true);
        }
    }

    /// Ends the workers that no plan requests. The registry's lock is held.
    fn end_workers<'a>(&'a self, mut members: MutexGuard<'a, Members>) -> MutexGuard<'a, Members> {
        let (existing, required) = (members.workers.len(), members.required());
        if required >= existing {
            return members;
        }
        self.pool.set_worker_limit(required);
        for _ in required..existing {
            let Some(worker) = members.workers.pop() else { return members };
            // The lock is released because the worker that starts others may wait for it.
            drop(members);
            worker.join();
            members = self.members();
        }
        members
    }

    /// Lets all workers end if no plan requests any. A worker calls this, which cannot wait for its own end.
    fn end_unused(&self) {
        let mut members = self.members();
        if members.required() == 0 && !members.workers.is_empty() {
            self.pool.set_worker_limit(0);
            members.ending = std::mem::take(&mut members.workers);
        }
    }

    /// Waits for the end of the threads of [`Team::end_unused`]: if they were still running, new workers with their
    /// indices would keep them. The registry's lock is held.
    fn join_ending(&self) -> MutexGuard<'_, Members> {
        loop {
            let mut members = self.members();
            let ending = std::mem::take(&mut members.ending);
            if ending.is_empty() {
                return members;
            }
            // They may wait for the lock.
            drop(members);
            ending.into_iter().for_each(WorkerThread::join);
        }
    }

    /// Ends all workers if no plan requests any, and returns when they have ended. The registry's lock is held.
    fn end_now(&self) {
        let members = self.join_ending();
        if members.required() == 0 {
            drop(self.end_workers(members));
            // A worker may have called `end_unused` meanwhile.
            drop(self.join_ending());
        }
    }
}

impl Members {
    /// Returns the number of workers that the plans require.
    fn required(&self) -> usize {
        self.requests.iter().max().map_or(0, |most| most - 1)
    }
}

/// Locks the registry of the process's team.
fn registry() -> MutexGuard<'static, Option<Arc<Team>>> {
    TEAM.get().lock().unwrap_or_else(|e| e.into_inner())
}

/// Ends the threads that wait for the next plan, and returns when they have ended.
pub fn end_unused_threads() {
    if let Some(team) = &*registry() {
        team.end_now();
    }
}

/// Ends the threads that wait for the next plan when the library is unloaded, before their code is gone.
#[cfg(all(target_os = "linux", not(test)))]
#[used]
#[link_section = ".fini_array"]
static AT_UNLOADING: extern "C" fn() = {
    extern "C" fn end_threads() {
        // Other threads may still run while a process ends, so no lock is waited for.
        let Ok(registry) = TEAM.get().try_lock() else { return };
        if let Some(team) = registry.as_ref().filter(|team| team.members.try_lock().is_ok()) {
            team.end_now();
        }
    }
    end_threads
};

impl Threads {
    /// Creates the threads of a plan. `count` includes the calling thread; 0 means the number that the machine runs at
    /// once.
    pub fn new(count: usize) -> Result<Self> {
        Self::with_spin_time(count, SPIN_TIME)
    }

    /// Creates the threads of [`super::CopyThreads`].
    pub(super) fn for_copies(count: usize) -> Result<Self> {
        Self::with_spin_time(count, BRIEF_SPIN_TIME)
    }

    fn with_spin_time(count: usize, spin_time: Duration) -> Result<Self> {
        if count > MAX_THREADS {
            bail!(
                InvalidArgument,
                "{count} threads were requested: at most {MAX_THREADS} are supported, and 0 uses all processors"
            );
        }
        let count = requested_threads(count);
        let mut registry = registry();
        let team = registry.get_or_insert_with(Team::new).clone();
        team.admit(count)?;
        Ok(Threads { team, count, spin_time, is_member: true, is_reported: AtomicBool::new(count == 1) })
    }

    /// Returns the threads for one of `regions` regions that run at once. Together, the regions use all threads.
    pub fn share(&self, regions: usize) -> Threads {
        let count = self.count.div_ceil(regions.max(1));
        let is_reported = AtomicBool::new(true);
        Threads { team: self.team.clone(), count, spin_time: self.spin_time, is_member: false, is_reported }
    }

    /// Returns the requested number of threads, including the calling thread.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the number of threads that compute, including the calling thread, and the error number of the system's
    /// refusal; `None` without a refusal. Waits for threads that are being started.
    fn count_running(&self) -> (usize, Option<i32>) {
        if self.count == 1 || self.team.process != process_id::current() {
            return (1, None);
        }
        let mut members = self.team.members();
        while members.starting {
            members = self.team.started.wait(members).unwrap_or_else(|e| e.into_inner());
        }
        (self.count.min(members.workers.len() + 1), members.refusal)
    }

    /// Returns the number of threads that compute, including the calling thread: less than [`Threads::count`] if the
    /// system refused some. Waits for threads that are being started.
    pub fn running(&self) -> usize {
        self.count_running().0
    }

    /// Returns the warning of [`Threads::warning`] for the log: once, and not while threads are being started. Does not
    /// wait.
    pub fn new_warning(&self) -> Option<Warning> {
        if self.is_reported.load(Ordering::Relaxed) || self.team.process != process_id::current() {
            return None;
        }
        let is_starting = match self.team.members.try_lock() {
            Ok(members) => members.starting,
            Err(TryLockError::Poisoned(members)) => members.into_inner().starting,
            Err(TryLockError::WouldBlock) => true,
        };
        if is_starting || self.is_reported.swap(true, Ordering::Relaxed) {
            return None;
        }
        self.warning()
    }

    /// Returns a warning if the system refused threads. Waits for threads that are being started.
    pub fn warning(&self) -> Option<Warning> {
        let (running, refusal) = self.count_running();
        if running == self.count {
            return None;
        }
        let reason =
            refusal.map_or(String::new(), |number| format!(" ({})", std::io::Error::from_raw_os_error(number)));
        Some(Warning {
            kind: WarningKind::Threads,
            message: format!(
                "{running} of {} threads compute, as the system refused to start more{reason}. Images are the same, \
                 but take longer: allow more threads (ulimit -u, or pids.max of the cgroup), free memory, or request \
                 fewer threads",
                self.count
            ),
        })
    }

    /// Runs `task(0..tasks)` in parallel. Tasks begin in this order, so that a task may wait for an earlier one. Each
    /// participating thread calls `start` once and passes the result to its tasks. A panic of a task is resumed in the
    /// caller after all threads have finished.
    pub fn run_with<S>(&self, tasks: usize, start: impl Fn() -> S + Sync, task: impl Fn(&mut S, usize) + Sync) {
        let next = AtomicUsize::new(0);
        let work = || {
            if next.load(Ordering::Relaxed) >= tasks {
                return;
            }
            // `start` is called before a task is taken, since it may wait for memory while other threads wait for tasks
            // that were taken.
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
            all => self.team.pool.run(all - 1, self.spin_time, &work),
        }
    }

    /// Runs `task(0..tasks)` in parallel, in any order: that of [`nth_in_lanes`].
    pub fn run(&self, tasks: usize, task: impl Fn(usize) + Sync) {
        self.run_with(tasks, || (), |_, i| task(nth_in_lanes(i, tasks, self.count)));
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if self.is_member && self.team.process == process_id::current() && !is_ending() {
            let _registry = registry();
            self.team.dismiss(self.count);
        } else if self.is_member {
            // A forked or ending process has no workers to end, and their locks may be locked for ever. The handles of
            // the threads must not be dropped because these threads do not exist here.
            std::mem::forget(self.team.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::threads::worker_pool::{spin_until, SLOTS};
    use crate::base::float_mode::is_standard;
    use crate::base::workers::SharedSlice;
    use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

    /// Waits for a condition, long enough for a loaded machine. Returns whether the condition became true.
    fn becomes_true(condition: impl Fn() -> bool) -> bool {
        (0..300_000).any(|_| spin_until(SPIN_TIME, &condition))
    }

    #[test]
    fn every_task_runs_once() {
        for count in [1, 2, 5] {
            let threads = Threads::new(count).unwrap();
            let mut hits = vec![0u32; 1000];
            let shared = SharedSlice::new(&mut hits);
            // SAFETY: each task has its own element.
            threads.run(1000, |i| unsafe { shared.part(i, 1)[0] += 1 });
            assert!(hits.iter().all(|&h| h == 1));
        }
    }

    /// Progress requires no free worker, neither in a nested region nor while all workers compute for another caller.
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

    /// Many callers with short regions, more than there are slots: every task runs once, and no bit is left that would
    /// keep workers awake.
    #[test]
    fn slots_are_freed() {
        let threads = Threads::new(5).unwrap();
        let hits = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for caller in 0..SLOTS + 3 {
                let (threads, hits) = (&threads, &hits);
                scope.spawn(move || {
                    for i in 0..300 {
                        threads.run(1 + (caller + i) % 6, |_| {
                            hits.fetch_add(1, Ordering::Relaxed);
                        });
                    }
                });
            }
        });
        let all = (0..SLOTS + 3).flat_map(|caller| (0..300).map(move |i| 1 + (caller + i) % 6));
        assert_eq!(hits.into_inner(), all.sum::<usize>());
        // Other tests may briefly have regions at the same time.
        assert!(becomes_true(|| threads.team.pool.is_idle()));
    }

    /// A panic must reach the caller, who turns it into an error, and the pool must remain usable.
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

    /// Returns the system's name of the calling thread. Workers are not threads of Rust's standard library on Unix.
    fn name_of_this_thread() -> String {
        let system = std::fs::read_to_string("/proc/thread-self/comm").ok().filter(|_| cfg!(target_os = "linux"));
        let own = || std::thread::current().name().unwrap_or("unnamed").to_owned();
        system.map_or_else(own, |name| name.trim_end().to_owned())
    }

    /// Tasks use the standard rounding mode on every thread, and a debugger shows the names of threads. Threads of
    /// other tests may be among them, since a process has one team.
    #[test]
    fn workers_are_named_and_compute_in_the_standard_mode() {
        let threads = Threads::new(3).unwrap();
        let names = Mutex::new(std::collections::BTreeSet::new());
        // Each task waits until every thread has one.
        let all = std::sync::Barrier::new(3);
        threads.run(3, |_| {
            all.wait();
            let name = name_of_this_thread();
            if name.starts_with("recon ") {
                assert!(is_standard());
            }
            names.lock().unwrap().insert(name);
        });
        let names = names.into_inner().unwrap();
        assert!(names.len() == 3 && names.iter().filter(|name| name.starts_with("recon ")).count() == 2, "{names:?}");
    }

    /// Plans are created and dropped while threads of other plans are still being started: each plan finally has its
    /// threads, and no thread is left.
    #[test]
    fn plans_can_change_while_threads_start() {
        for round in 0..40 {
            let many = Threads::new(20 + round).unwrap();
            let few = Threads::new(15).unwrap();
            drop(many);
            let sum = AtomicUsize::new(0);
            few.run(100, |i| {
                sum.fetch_add(i, Ordering::Relaxed);
            });
            assert_eq!(sum.into_inner(), 4950);
            let team = few.team.clone();
            assert!(becomes_true(|| team.members().workers.len() >= 14 && !team.members().starting));
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
        end_unused_threads();
        // Linux still lists a thread for a short time after it was joined.
        assert!(becomes_true(|| alive() == 0), "{} are left", alive());
    }
}
