//! The threads that plans compute with. All plans of a process share them: there are as many as the plan that asks for
//! most wants, they start with plans, and none is left after the last, so that a host program may unload the library.
//! A plan starts one, which starts the others while the plan is being made.
//!
//! A reconstruction of a small image is thousands of parallel regions of some microseconds each, so a region must cost
//! little and allocate nothing. That is why rayon does not serve here: its `broadcast` allocates a job for every
//! thread, and the thread that calls it sleeps meanwhile. Here the caller works too, a region lives on its stack, and
//! workers join it by one atomic operation. A caller never waits for a worker to begin, only until workers that have
//! begun end: nested regions and calls from several threads at once make progress, with few workers or none.

use crate::base::error::{bail, Result};
use crate::base::float_mode::FloatMode;
use crate::base::mapped;
use crate::base::per_process::PerProcess;
use crate::base::warning::{Warning, WarningKind};
use std::any::Any;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// More than any machine has; a negative number from C must not start four billion.
const MAX_THREADS: usize = 4096;
/// Bytes of addresses that must be free before a thread is started: its stack of 2 MiB, and 128 MiB that glibc maps for
/// its allocations. A thread that does not get these aborts inside of glibc when it starts.
const ADDRESSES_OF_A_THREAD: usize = 136 << 20;
/// The error number for too little memory (ENOMEM).
const OUT_OF_MEMORY: i32 = 12;
/// How long a thread spins before it sleeps: most regions follow one another faster than a thread wakes, which takes 20
/// to 200 microseconds.
const SPIN_TIME: Duration = Duration::from_micros(200);

/// The calling thread and up to `count - 1` of the process's workers.
pub struct Threads {
    team: Arc<Team>,
    count: usize,
}

/// The team of this process, while there is a plan. The lock is held while a plan comes or goes. A forked process has
/// its parent's memory but not its threads, so it begins without a team.
static TEAM: PerProcess<Mutex<Weak<Team>>> = PerProcess::new(Mutex::new(Weak::new()), |_| Mutex::new(Weak::new()));

/// The workers of a process.
struct Team {
    /// Id of the process whose threads they are.
    process: u32,
    pool: Arc<WorkerPool>,
    members: Mutex<Members>,
    /// Signals that no worker is starting others any more.
    started: Condvar,
}

#[derive(Default)]
struct Members {
    workers: Vec<JoinHandle<()>>,
    /// The threads that each plan has asked for.
    requests: Vec<usize>,
    /// A worker is starting others.
    starting: bool,
    /// Why the system refused the last thread that it refused: an error number.
    refusal: Option<i32>,
}

impl Team {
    fn new() -> Arc<Team> {
        Arc::new(Team {
            process: std::process::id(),
            pool: Arc::new(WorkerPool::new()),
            members: Mutex::default(),
            started: Condvar::new(),
        })
    }

    /// Returns the process's team, or a new one, and the lock under which plans come and go.
    fn shared() -> (Registry, Arc<Team>) {
        let mut registry = registry();
        let team = registry.upgrade().unwrap_or_else(|| {
            let team = Team::new();
            *registry = Arc::downgrade(&team);
            team
        });
        (registry, team)
    }

    /// Forgets the team once it has no plan.
    fn leave(self: &Arc<Self>, mut registry: Registry) {
        if self.members().requests.is_empty() && Weak::ptr_eq(&registry, &Arc::downgrade(self)) {
            *registry = Weak::new();
        }
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// A plan comes that asks for `count` threads: starts the first of the workers that are missing. It starts the
    /// others. If the system refuses threads, the plan computes with those that there are: see `Threads::running`.
    fn admit(self: &Arc<Self>, count: usize) -> Result<()> {
        let mut members = self.members();
        if members.requests.try_reserve(1).is_err() || members.workers.try_reserve(count).is_err() {
            bail!(OutOfHostMemory, "could not allocate room for {count} threads: ask for fewer, or free memory");
        }
        members.requests.push(count);
        if !members.starting && members.workers.len() < members.required() {
            self.start_next(&mut members, true);
        }
        Ok(())
    }

    /// Starts the next worker, and returns whether the system allowed it. The first of the workers that are missing
    /// starts the others.
    fn start_next(self: &Arc<Self>, members: &mut Members, first: bool) -> bool {
        if !mapped::has_addresses(ADDRESSES_OF_A_THREAD) {
            members.refusal = Some(OUT_OF_MEMORY);
            return false;
        }
        let index = members.workers.len();
        self.pool.set_worker_limit(index + 1);
        let (pool, team) = (self.pool.clone(), first.then(|| self.clone()));
        let name = format!("recon {}", index + 1);
        let worker = std::thread::Builder::new().name(name).spawn(move || {
            // A thread inherits the floating-point mode of the one that starts it.
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

    /// Starts workers until there are as many as plans ask for, or the system refuses: plans may come and go meanwhile.
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

    /// A plan that asked for `count` threads goes: ends the workers that no other plan asks for. Plans come and go one
    /// at a time.
    fn dismiss(&self, count: usize) {
        let mut members = self.members();
        if let Some(slot) = members.requests.iter().position(|&requests| requests == count) {
            members.requests.swap_remove(slot);
        }
        let (there, required) = (members.workers.len(), members.required());
        if required >= there {
            return;
        }
        self.pool.set_worker_limit(required);
        for _ in required..there {
            let Some(worker) = members.workers.pop() else { return };
            // Not under the lock, for which the one that starts others may wait.
            drop(members);
            // Workers catch the panics of their tasks: there is none to report here.
            let _ = worker.join();
            members = self.members();
        }
    }
}

impl Members {
    /// Workers that the plans ask for.
    fn required(&self) -> usize {
        self.requests.iter().max().map_or(0, |most| most - 1)
    }
}

type Registry = MutexGuard<'static, Weak<Team>>;

/// Locks the process's team.
fn registry() -> Registry {
    TEAM.get().lock().unwrap_or_else(|e| e.into_inner())
}

impl Threads {
    /// Threads for a plan that wants `count`, the calling one included; 0 means as many as the machine runs at once.
    pub fn new(count: usize) -> Result<Self> {
        if count > MAX_THREADS {
            bail!(
                InvalidArgument,
                "{count} threads were asked for: at most {MAX_THREADS} make sense, 0 means all there are"
            );
        }
        let count = match count {
            0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
            n => n,
        };
        let (registry, team) = Team::shared();
        let admitted = team.admit(count);
        team.leave(registry);
        admitted.map(|()| Threads { team, count })
    }

    /// Returns the number of threads that was asked for, the calling one included.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the number of threads that compute, the calling one included, and the error number of the system's
    /// refusal if there are fewer than were asked for. Waits for threads that are being started.
    fn count_running(&self) -> (usize, Option<i32>) {
        if self.count == 1 || self.team.process != std::process::id() {
            return (1, None);
        }
        let mut members = self.team.members();
        while members.starting {
            members = self.team.started.wait(members).unwrap_or_else(|e| e.into_inner());
        }
        (self.count.min(members.workers.len() + 1), members.refusal)
    }

    /// Returns the number of threads that compute, the calling one included: fewer than [`Threads::count`] if the
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
                 but take longer: allow more threads (ulimit -u, or pids.max of the cgroup), free memory, or ask for \
                 fewer threads",
                self.count
            ),
        })
    }

    /// Runs `task(0..tasks)` in parallel. They are begun in this order, so that a task may wait for one before it. Each
    /// thread that takes part calls `start` once and passes what it returns to its tasks. A panic of a task is resumed
    /// here, once no thread is at work any more.
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
            all => self.team.pool.run(all - 1, &work),
        }
    }

    /// Runs `task(0..tasks)` in parallel, in any order.
    pub fn run(&self, tasks: usize, task: impl Fn(usize) + Sync) {
        self.run_with(tasks, || (), |_, i| task(i));
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if self.team.process == std::process::id() {
            let registry = registry();
            self.team.dismiss(self.count);
            self.team.leave(registry);
        } else {
            // A forked process has no workers to end, and its parent's locks may be held for ever. The handles of the
            // parent's threads must not be dropped: their threads do not exist here.
            std::mem::forget(self.team.clone());
        }
    }
}

/// Regions at once, at most. A caller who finds no place for another does its work alone.
const SLOTS: usize = u32::BITS as usize;

/// What callers and workers share. Workers join regions and leave them without a lock: with many threads it would be
/// what regions wait for. The lock is for those that sleep.
struct WorkerPool {
    /// A bit for each place that a caller holds, and for each that has seats.
    held_slots: AtomicU32,
    open_slots: AtomicU32,
    slots: [RegionSlot; SLOTS],
    /// Workers waiting for `wake`, and callers for `region_left`, or about to.
    sleeping: AtomicUsize,
    waiting: AtomicUsize,
    /// Workers that are to stay: those with the lowest numbers.
    required: AtomicUsize,
    lock: Mutex<()>,
    /// A seat has opened, or workers are to end.
    wake: Condvar,
    /// A region has lost its last worker.
    region_left: Condvar,
}

/// Where workers find a region.
struct RegionSlot {
    /// Workers that may yet join the region, and those inside: `SEAT` and `INSIDE` times their numbers. They change
    /// together, so that no worker joins a region whose caller has left.
    count: AtomicU64,
    region: AtomicPtr<Region<'static>>,
}

const SEAT: u64 = 1;
const INSIDE: u64 = 1 << 32;

fn seats(count: u64) -> u64 {
    count % INSIDE
}

fn is_empty(count: u64) -> bool {
    count < INSIDE
}

/// A parallel region, on the stack of its caller, who leaves it when no worker is inside and none can join any more.
struct Region<'a> {
    work: &'a (dyn Fn() + Sync),
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

    /// Calls `work` in this thread and in up to `most` workers.
    fn run(&self, most: usize, work: &(dyn Fn() + Sync)) {
        let region = Region { work, panic: Mutex::new(None) };
        match self.take_slot() {
            None => region.work(),
            Some(index) => {
                let slot = &self.slots[index];
                slot.region.store((&raw const region).cast_mut().cast(), Ordering::Relaxed);
                // The bit first: whoever takes the last seat clears it. Workers that see seats see the region.
                self.open_slots.fetch_or(1 << index, Ordering::SeqCst);
                slot.count.store(most as u64 * SEAT, Ordering::Release);
                self.wake_some();
                region.work();
                self.close(index);
            }
        }
        if let Some(panic) = region.panic.into_inner().unwrap_or_else(|e| e.into_inner()) {
            resume_unwind(panic);
        }
    }

    /// A place that no caller holds.
    fn take_slot(&self) -> Option<usize> {
        let mut held_slots = self.held_slots.load(Ordering::Relaxed);
        while held_slots != u32::MAX {
            let index = held_slots.trailing_ones();
            // What the caller before did with the place comes before what this one does.
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

    /// Lets no worker join any more, waits until none is inside, and gives the place back.
    fn close(&self, index: usize) {
        let count = &self.slots[index].count;
        let before = count.fetch_and(!(INSIDE - 1), Ordering::Relaxed);
        if seats(before) > 0 {
            self.open_slots.fetch_and(!(1 << index), Ordering::Relaxed);
        }
        // What workers have written is visible once they have left.
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

    /// Wakes two workers, if so many sleep. Each of them wakes two in turn, which is faster than one that wakes all.
    fn wake_some(&self) {
        let sleeping = self.sleeping.load(Ordering::SeqCst);
        if sleeping > 0 {
            // A worker counts itself under the lock, and looks for seats once more before it sleeps.
            drop(self.lock());
            (0..sleeping.min(2)).for_each(|_| self.wake.notify_one());
        }
    }

    /// Takes a seat. The place's caller waits until it is given back.
    fn join(&self) -> Option<&RegionSlot> {
        let mut open_slots = self.open_slots.load(Ordering::SeqCst);
        while open_slots != 0 {
            let index = open_slots.trailing_zeros();
            let slot = &self.slots[index as usize];
            let take = |count| (seats(count) > 0).then(|| count - SEAT + INSIDE);
            if let Ok(before) = slot.count.fetch_update(Ordering::Acquire, Ordering::Relaxed, take) {
                if seats(before) == 1 {
                    self.open_slots.fetch_and(!(1 << index), Ordering::Relaxed);
                }
                return Some(slot);
            }
            open_slots &= open_slots - 1;
        }
        None
    }

    /// Gives a seat back, after which the region may be gone.
    fn leave(&self, slot: &RegionSlot) {
        let before = slot.count.fetch_sub(INSIDE, Ordering::SeqCst);
        if is_empty(before - INSIDE) && self.waiting.load(Ordering::SeqCst) > 0 {
            drop(self.lock());
            self.region_left.notify_all();
        }
    }

    /// What worker `index` does as long as it is wanted.
    fn run_worker(&self, index: usize) {
        let is_wanted = || index < self.required.load(Ordering::Relaxed);
        let has_seats = || self.open_slots.load(Ordering::SeqCst) != 0;
        while is_wanted() {
            let mut joined = None;
            let found = spin_until(|| {
                joined = self.join();
                joined.is_some() || !is_wanted()
            });
            if let Some(slot) = joined {
                // SAFETY: the region is alive: its caller waits until this worker leaves.
                unsafe { &*slot.region.load(Ordering::Relaxed) }.work();
                self.leave(slot);
            } else if !found {
                let mut lock = self.lock();
                self.sleeping.fetch_add(1, Ordering::SeqCst);
                // Woken too late for one region, a worker looks out for the next as long as any other.
                if !has_seats() && is_wanted() {
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

    /// Ends all workers but the first `required`.
    fn set_worker_limit(&self, required: usize) {
        let _lock = self.lock();
        self.required.store(required, Ordering::Relaxed);
        self.wake.notify_all();
    }
}

/// Waits for a condition for a short while, and yields the processor to other threads meanwhile. False where it does
/// not come.
fn spin_until(mut condition: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    loop {
        if condition() {
            return true;
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
    use crate::base::workers::SharedSlice;

    /// Waits for a condition as long as a loaded machine may need. False where it does not come.
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

    /// Many callers with short regions, and more of them than places: every task runs once, and no bit is left behind
    /// that would keep workers awake.
    #[test]
    fn places_are_given_back() {
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
        let all: usize = (0..SLOTS + 3).flat_map(|caller| (0..300).map(move |i| 1 + (caller + i) % 6)).sum();
        assert_eq!(hits.into_inner(), all);
        // Other tests may have regions at the same time, for a moment.
        let pool = &threads.team.pool;
        assert!(becomes_true(
            || pool.held_slots.load(Ordering::SeqCst) == 0 && pool.open_slots.load(Ordering::SeqCst) == 0
        ));
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

    /// Tasks round in the standard mode on every thread, and a debugger shows the threads by name. Threads of other
    /// tests may be among them: a process has one team.
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
        assert!(names.len() == 3 && names.iter().filter(|name| name.starts_with("recon ")).count() == 2, "{names:?}");
    }

    /// Plans come and go while the threads of others are still being started: each has its threads in the end, and none
    /// is left.
    #[test]
    fn plans_come_and_go_while_threads_start() {
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
        // Linux lists a thread for a moment after it was joined.
        assert!(becomes_true(|| alive() == 0), "{} are left", alive());
    }
}
