//! The threads of plans. All plans of a process share them: their number is the largest that a plan requests. Threads
//! start with plans, and the last plan ends them, so that a host program may unload the library. A plan starts one
//! thread, which starts the others while the plan is being created.
//!
//! A reconstruction of a small image consists of thousands of parallel regions of a few microseconds each, so a region
//! must cost little and allocate nothing. rayon is not used because its `broadcast` allocates a job for every thread,
//! and the calling thread sleeps in the meantime.
//!
//! Here the caller also computes, a region is on its stack, and workers join it with one atomic operation. A caller
//! waits only for workers that have joined its region. Nested regions and calls from several threads therefore make
//! progress with few workers or none.

use super::task_order::nth_in_lanes;
use crate::base::error::{bail, Result};
use crate::base::float_mode::FloatMode;
use crate::base::mapped;
use crate::base::per_process::{is_ending, PerProcess};
use crate::base::process_id;
use crate::base::warning::{Warning, WarningKind};
use std::any::Any;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// More threads than any machine has. A negative number from C must not start four billion.
const MAX_THREADS: usize = 4096;
/// Bytes of address space that must be free before a thread is started: a stack of 2 MiB, and 128 MiB that glibc maps
/// for allocations. A thread without them aborts inside glibc when it starts.
const THREAD_ADDRESS_SPACE: usize = 136 << 20;
/// The system's error number for insufficient memory (ENOMEM).
const ENOMEM: i32 = 12;
/// Time that a thread spins before it sleeps. Most regions follow one another faster than a thread wakes up, which
/// takes 20 to 200 microseconds.
const SPIN_TIME: Duration = Duration::from_micros(200);
/// Number of checks of a spinning thread before it yields its processor, a call of the system that may be slow.
const SPINS_BEFORE_YIELD: u32 = 16;

/// The threads of a plan: the calling thread and up to `count - 1` of the process's workers.
pub struct Threads {
    team: Arc<Team>,
    count: usize,
    /// Whether the team counts these threads: not those of [`Threads::share`].
    is_member: bool,
}

/// The team of this process, while a plan exists. The lock is held while a plan is created or dropped. A forked process
/// has its parent's memory but not its threads, so it begins without a team.
static TEAM: PerProcess<Mutex<Weak<Team>>> = PerProcess::new(Mutex::new(Weak::new()), |_| Mutex::new(Weak::new()));

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
    workers: Vec<JoinHandle<()>>,
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

    /// Returns the process's team, or a new one, together with the lock for the creation and end of plans.
    fn shared() -> (Registry, Arc<Team>) {
        let mut registry = registry();
        let team = registry.upgrade().unwrap_or_else(|| {
            let team = Team::new();
            *registry = Arc::downgrade(&team);
            team
        });
        (registry, team)
    }

    /// Removes the team from the registry if it has no plan.
    fn leave(self: &Arc<Self>, mut registry: Registry) {
        if self.members().requests.is_empty() && Weak::ptr_eq(&registry, &Arc::downgrade(self)) {
            *registry = Weak::new();
        }
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Registers a plan with `count` threads, and starts the first missing worker, which starts the others. If the
    /// system refuses threads, the plan computes with the existing ones: see `Threads::running`.
    fn admit(self: &Arc<Self>, count: usize) -> Result<()> {
        let mut members = self.members();
        if members.requests.try_reserve(1).is_err() || members.workers.try_reserve(count).is_err() {
            bail!(
                OutOfHostMemory,
                "could not allocate the list of {count} threads: request fewer threads, or free memory"
            );
        }
        members.requests.push(count);
        if !members.starting && members.workers.len() < members.required() {
            self.start_next(&mut members, true);
        }
        Ok(())
    }

    /// Starts the next worker, and returns whether the system allowed it. The first missing worker starts the others.
    fn start_next(self: &Arc<Self>, members: &mut Members, first: bool) -> bool {
        if !mapped::has_addresses(THREAD_ADDRESS_SPACE) {
            members.refusal = Some(ENOMEM);
            return false;
        }
        let index = members.workers.len();
        self.pool.set_worker_limit(index + 1);
        let (pool, team) = (self.pool.clone(), first.then(|| self.clone()));
        let name = format!("recon {}", index + 1);
        let worker = std::thread::Builder::new().name(name).spawn(move || {
            // A thread inherits the floating-point mode of the thread that starts it.
            let _mode = FloatMode::standard();
            if let Some(team) = team {
                team.start_remaining();
            }
            pool.run_worker(index);
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
    /// meantime.
    fn start_remaining(self: &Arc<Self>) {
        loop {
            let mut members = self.members();
            if members.workers.len() >= members.required() || !self.start_next(&mut members, false) {
                members.starting = false;
                self.started.notify_all();
                return;
            }
        }
    }

    /// Unregisters a plan with `count` threads, and ends the workers that no other plan requests. The registry's lock
    /// makes plans come and go one at a time.
    fn dismiss(&self, count: usize) {
        let mut members = self.members();
        if let Some(index) = members.requests.iter().position(|&requests| requests == count) {
            members.requests.swap_remove(index);
        }
        let (existing, required) = (members.workers.len(), members.required());
        if required >= existing {
            return;
        }
        self.pool.set_worker_limit(required);
        for _ in required..existing {
            let Some(worker) = members.workers.pop() else { return };
            // The lock is released because the worker that starts others may wait for it.
            drop(members);
            // Workers catch the panics of their tasks, so that the result contains no panic.
            let _ = worker.join();
            members = self.members();
        }
    }
}

impl Members {
    /// Returns the number of workers that the plans require.
    fn required(&self) -> usize {
        self.requests.iter().max().map_or(0, |most| most - 1)
    }
}

/// The locked registry of the process's team.
type Registry = MutexGuard<'static, Weak<Team>>;

/// Locks the registry of the process's team.
fn registry() -> Registry {
    TEAM.get().lock().unwrap_or_else(|e| e.into_inner())
}

/// Returns the number of threads for a request of `count`; 0 requests as many as the machine runs at once.
pub fn requested_threads(count: usize) -> usize {
    let all = || std::thread::available_parallelism().map_or(1, |n| n.get());
    Some(count).filter(|&count| count > 0).unwrap_or_else(all)
}

impl Threads {
    /// Creates the threads of a plan. `count` includes the calling thread; 0 means the number that the machine runs at
    /// once.
    pub fn new(count: usize) -> Result<Self> {
        if count > MAX_THREADS {
            bail!(
                InvalidArgument,
                "{count} threads were requested: at most {MAX_THREADS} are supported, and 0 uses all processors"
            );
        }
        let (count, (registry, team)) = (requested_threads(count), Team::shared());
        let admitted = team.admit(count);
        team.leave(registry);
        admitted.map(|()| Threads { team, count, is_member: true })
    }

    /// Returns the threads for one of `regions` regions that run at once. Together, the regions use all threads.
    pub fn share(&self, regions: usize) -> Threads {
        Threads { team: self.team.clone(), count: self.count.div_ceil(regions.max(1)), is_member: false }
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

    /// Returns a warning if the system refused threads.
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
            all => self.team.pool.run(all - 1, &work),
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
            let registry = registry();
            self.team.dismiss(self.count);
            self.team.leave(registry);
        } else if self.is_member {
            // A forked or ending process has no workers to end, and their locks may be locked for ever. The handles of
            // the threads must not be dropped because these threads do not exist here.
            std::mem::forget(self.team.clone());
        }
    }
}

/// Maximum number of concurrent regions. A caller without a free slot computes alone.
const SLOTS: usize = u32::BITS as usize;

/// The state that callers and workers share. Workers join and leave regions without a lock, which would be a bottleneck
/// with many threads. Only sleeping threads use the lock.
struct WorkerPool {
    /// Slots that a caller holds, one bit each.
    held_slots: AtomicU32,
    /// Slots that have seats, one bit each.
    open_slots: AtomicU32,
    slots: [RegionSlot; SLOTS],
    /// Number of workers that wait for `wake` or are about to.
    sleeping: AtomicUsize,
    /// Number of callers that wait for `region_left` or are about to.
    waiting: AtomicUsize,
    /// Number of workers that stay: those with the lowest indices.
    required: AtomicUsize,
    lock: Mutex<()>,
    /// Notified when a seat opens or workers must end.
    wake: Condvar,
    /// Notified when the last worker leaves a region.
    region_left: Condvar,
}

/// A slot in which workers find a region.
struct RegionSlot {
    /// Workers that may still join the region, and workers inside: multiples of `SEAT` and `INSIDE`. They change
    /// together, so that no worker joins a region whose caller has left.
    count: AtomicU64,
    region: AtomicPtr<Region<'static>>,
}

const SEAT: u64 = 1;
const INSIDE: u64 = 1 << 32;

/// Returns the number of workers that may still join.
fn seats(count: u64) -> u64 {
    count % INSIDE
}

/// Returns whether no worker is inside.
fn is_empty(count: u64) -> bool {
    count < INSIDE
}

/// A parallel region on the stack of its caller. The caller leaves when no worker is inside and no worker can join.
struct Region<'a> {
    work: &'a (dyn Fn() + Sync),
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Region<'_> {
    /// Runs the work, and stores the first panic for the caller: only one can be passed on.
    fn work(&self) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(self.work)) {
            let mut first = self.panic.lock().unwrap_or_else(|e| e.into_inner());
            match &*first {
                None => *first = Some(panic),
                // Dropping the panic could panic again.
                Some(_) => std::mem::forget(panic),
            }
        }
    }
}

impl WorkerPool {
    fn new() -> Self {
        WorkerPool {
            held_slots: AtomicU32::new(0),
            open_slots: AtomicU32::new(0),
            slots: std::array::from_fn(|_| RegionSlot { count: AtomicU64::new(0), region: AtomicPtr::default() }),
            sleeping: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            required: AtomicUsize::new(0),
            lock: Mutex::new(()),
            wake: Condvar::new(),
            region_left: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Calls `work` in this thread and in at most `max_workers` workers.
    fn run(&self, max_workers: usize, work: &(dyn Fn() + Sync)) {
        let region = Region { work, panic: Mutex::new(None) };
        match self.take_slot() {
            None => region.work(),
            Some(index) => {
                let slot = &self.slots[index];
                slot.region.store((&raw const region).cast_mut().cast(), Ordering::Relaxed);
                // The bit is set first, because the worker that takes the last seat clears it. Workers that see seats
                // also see the region.
                self.open_slots.fetch_or(1 << index, Ordering::SeqCst);
                slot.count.store(max_workers as u64 * SEAT, Ordering::Release);
                self.wake_some();
                region.work();
                self.close(index);
            }
        }
        if let Some(panic) = region.panic.into_inner().unwrap_or_else(|e| e.into_inner()) {
            resume_unwind(panic);
        }
    }

    /// Reserves a slot; `None` if all are held.
    fn take_slot(&self) -> Option<usize> {
        let mut held_slots = self.held_slots.load(Ordering::Relaxed);
        while held_slots != u32::MAX {
            let index = held_slots.trailing_ones();
            // Acquire orders the previous caller's use of the slot before this one's.
            match self.held_slots.compare_exchange_weak(
                held_slots,
                held_slots | 1 << index,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(index as usize),
                Err(now) => held_slots = now,
            }
        }
        None
    }

    /// Closes a region: prevents workers from joining, waits until no worker is inside, and frees the slot.
    fn close(&self, index: usize) {
        let count = &self.slots[index].count;
        let previous = count.fetch_and(!(INSIDE - 1), Ordering::Relaxed);
        if seats(previous) > 0 {
            self.open_slots.fetch_and(!(1 << index), Ordering::Relaxed);
        }
        // Results of workers are visible after they have left.
        let empty = || is_empty(count.load(Ordering::SeqCst));
        if !spin_until(empty) {
            let mut lock = self.lock();
            self.waiting.fetch_add(1, Ordering::SeqCst);
            while !empty() {
                lock = self.region_left.wait(lock).unwrap_or_else(|e| e.into_inner());
            }
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        self.held_slots.fetch_and(!(1 << index), Ordering::Release);
    }

    /// Wakes up to two sleeping workers. Each of them wakes two more, which is faster than one thread that wakes all.
    fn wake_some(&self) {
        let sleeping = self.sleeping.load(Ordering::SeqCst);
        if sleeping > 0 {
            // A worker increments the count under the lock, and checks for seats again before it sleeps.
            drop(self.lock());
            (0..sleeping.min(2)).for_each(|_| self.wake.notify_one());
        }
    }

    /// Takes a seat in an open region; `None` if no seat is free. The region's caller waits until the worker leaves.
    fn join(&self) -> Option<&RegionSlot> {
        let mut open_slots = self.open_slots.load(Ordering::SeqCst);
        while open_slots != 0 {
            let index = open_slots.trailing_zeros();
            let slot = &self.slots[index as usize];
            let take_seat = |count| (seats(count) > 0).then(|| count - SEAT + INSIDE);
            if let Ok(previous) = slot.count.fetch_update(Ordering::Acquire, Ordering::Relaxed, take_seat) {
                if seats(previous) == 1 {
                    self.open_slots.fetch_and(!(1 << index), Ordering::Relaxed);
                }
                return Some(slot);
            }
            open_slots &= open_slots - 1;
        }
        None
    }

    /// Leaves a region, which may not exist afterwards.
    fn leave(&self, slot: &RegionSlot) {
        let previous = slot.count.fetch_sub(INSIDE, Ordering::SeqCst);
        if is_empty(previous - INSIDE) && self.waiting.load(Ordering::SeqCst) > 0 {
            drop(self.lock());
            self.region_left.notify_all();
        }
    }

    /// Runs worker `index` until it is no longer required.
    fn run_worker(&self, index: usize) {
        let is_required = || index < self.required.load(Ordering::Relaxed);
        let has_seats = || self.open_slots.load(Ordering::SeqCst) != 0;
        while is_required() {
            let mut joined = None;
            let found = spin_until(|| {
                joined = self.join();
                joined.is_some() || !is_required()
            });
            if let Some(slot) = joined {
                // SAFETY: the region is alive because its caller waits until this worker leaves.
                unsafe { &*slot.region.load(Ordering::Relaxed) }.work();
                self.leave(slot);
            } else if !found {
                let mut lock = self.lock();
                self.sleeping.fetch_add(1, Ordering::SeqCst);
                // A worker that woke too late for one region spins for the next like any other.
                if !has_seats() && is_required() {
                    lock = self.wake.wait(lock).unwrap_or_else(|e| e.into_inner());
                }
                self.sleeping.fetch_sub(1, Ordering::Relaxed);
                drop(lock);
                if has_seats() {
                    self.wake_some();
                }
            }
        }
    }

    /// Ends all workers except the first `required`.
    fn set_worker_limit(&self, required: usize) {
        let _lock = self.lock();
        self.required.store(required, Ordering::Relaxed);
        self.wake.notify_all();
    }
}

/// Waits for a condition for at most `SPIN_TIME`, and yields the processor to other threads. Returns whether the
/// condition became true.
fn spin_until(mut condition: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    loop {
        for _ in 0..SPINS_BEFORE_YIELD {
            if condition() {
                return true;
            }
            std::hint::spin_loop();
        }
        if started.elapsed() >= SPIN_TIME {
            return false;
        }
        std::thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::float_mode::is_standard;
    use crate::base::workers::SharedSlice;

    /// Waits for a condition, long enough for a loaded machine. Returns whether the condition became true.
    fn becomes_true(condition: impl Fn() -> bool) -> bool {
        (0..300_000).any(|_| spin_until(&condition))
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
        let slots = || [&threads.team.pool.held_slots, &threads.team.pool.open_slots];
        assert!(becomes_true(|| slots().iter().all(|slots| slots.load(Ordering::SeqCst) == 0)));
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
            if std::thread::current().name().is_some_and(|n| n.starts_with("recon ")) {
                assert!(is_standard());
            }
            names.lock().unwrap().insert(std::thread::current().name().unwrap_or("unnamed").to_owned());
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
        // Linux still lists a thread for a short time after it was joined.
        assert!(becomes_true(|| alive() == 0), "{} are left", alive());
    }
}
