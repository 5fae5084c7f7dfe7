//! Workers that compute parallel regions together with the threads that call them.
//!
//! A reconstruction of a small image consists of thousands of parallel regions of a few microseconds each, so a region
//! must cost little and allocate nothing. rayon is not used because its `broadcast` allocates a job for every thread,
//! and the calling thread sleeps in the meantime.
//!
//! Here the caller also computes, a region is on its stack, and workers join it with one atomic operation. A caller
//! waits only for workers that have joined its region. Nested regions and calls from several threads therefore make
//! progress with few workers or none.

use std::any::Any;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Time that a thread spins before it sleeps. Most regions follow one another faster than a thread wakes up, which
/// takes 20 to 200 microseconds.
pub const SPIN_TIME: Duration = Duration::from_micros(200);
/// The same after regions that copy or check the arrays of a GPU's call. One follows the other, and then the caller
/// works alone. Plans of 17,000 samples took 0.38 instead of 0.28 ms while threads spun for 200 us.
pub const BRIEF_SPIN_TIME: Duration = Duration::from_micros(30);
/// Number of checks of a spinning thread before it yields its processor, a call of the system that may be slow.
const SPINS_BEFORE_YIELD: u32 = 16;
/// Time that workers stay after the last plan, for the next one. A program that makes one plan after another starts
/// threads only once.
const LINGER_TIME: Duration = Duration::from_secs(1);
/// Maximum number of concurrent regions. A caller without a free slot computes alone.
pub const SLOTS: usize = u32::BITS as usize;

/// The state that callers and workers share. Workers join and leave regions without a lock, which would be a bottleneck
/// with many threads. Only sleeping threads use the lock.
pub struct WorkerPool {
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
    /// Whether no plan needs the workers. One of them then waits for at most `LINGER_TIME`.
    is_unused: AtomicBool,
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
    /// Time that workers spin after it.
    spin_time: Duration,
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
    /// Creates a pool without workers. Each worker is a thread that calls [`WorkerPool::run_worker`].
    pub fn new() -> Self {
        WorkerPool {
            held_slots: AtomicU32::new(0),
            open_slots: AtomicU32::new(0),
            slots: std::array::from_fn(|_| RegionSlot { count: AtomicU64::new(0), region: AtomicPtr::default() }),
            sleeping: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            required: AtomicUsize::new(0),
            is_unused: AtomicBool::new(false),
            lock: Mutex::new(()),
            wake: Condvar::new(),
            region_left: Condvar::new(),
        }
    }

    /// Returns whether no caller has a slot.
    #[cfg(test)]
    pub fn is_idle(&self) -> bool {
        [&self.held_slots, &self.open_slots].iter().all(|slots| slots.load(Ordering::SeqCst) == 0)
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Calls `work` in this thread and in at most `max_workers` workers, which spin for `spin_time` afterwards.
    pub fn run(&self, max_workers: usize, spin_time: Duration, work: &(dyn Fn() + Sync)) {
        let region = Region { work, spin_time, panic: Mutex::new(None) };
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
        if !spin_until(SPIN_TIME, empty) {
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

    /// Runs worker `index` until it is no longer required. `end_unused` is called when no plan has needed the workers
    /// for `LINGER_TIME`.
    pub fn run_worker(&self, index: usize, end_unused: impl Fn()) {
        let is_required = || index < self.required.load(Ordering::Relaxed);
        let has_seats = || self.open_slots.load(Ordering::SeqCst) != 0;
        let mut spin_time = SPIN_TIME;
        while is_required() {
            let mut joined = None;
            let found = spin_until(spin_time, || {
                joined = self.join();
                joined.is_some() || !is_required()
            });
            if let Some(slot) = joined {
                // SAFETY: the region is alive because its caller waits until this worker leaves.
                let region = unsafe { &*slot.region.load(Ordering::Relaxed) };
                region.work();
                spin_time = region.spin_time;
                self.leave(slot);
            } else if !found {
                let mut lock = self.lock();
                self.sleeping.fetch_add(1, Ordering::SeqCst);
                let mut has_lingered = false;
                // A worker that woke too late for one region spins for the next like any other.
                if !has_seats() && is_required() {
                    (lock, has_lingered) = self.sleep(lock);
                }
                self.sleeping.fetch_sub(1, Ordering::Relaxed);
                drop(lock);
                if has_seats() {
                    self.wake_some();
                } else if has_lingered {
                    end_unused();
                }
            }
        }
    }

    /// Waits until a seat opens or workers must end. Also returns whether `LINGER_TIME` has passed without a plan.
    fn sleep<'a>(&'a self, lock: MutexGuard<'a, ()>) -> (MutexGuard<'a, ()>, bool) {
        if !self.is_unused.load(Ordering::Relaxed) {
            return (self.wake.wait(lock).unwrap_or_else(|e| e.into_inner()), false);
        }
        let (lock, result) = self.wake.wait_timeout(lock, LINGER_TIME).unwrap_or_else(|e| e.into_inner());
        (lock, result.timed_out() && self.is_unused.load(Ordering::Relaxed))
    }

    /// Sets whether no plan needs the workers.
    pub fn set_unused(&self, is_unused: bool) {
        let _lock = self.lock();
        self.is_unused.store(is_unused, Ordering::Relaxed);
        if is_unused {
            // A worker that sleeps already must wait for a limited time instead.
            self.wake.notify_one();
        }
    }

    /// Ends all workers except the first `required`.
    pub fn set_worker_limit(&self, required: usize) {
        let _lock = self.lock();
        self.required.store(required, Ordering::Relaxed);
        self.wake.notify_all();
    }
}

/// Waits for a condition for at most `time`, and yields the processor to other threads. Returns whether the condition
/// became true.
pub fn spin_until(time: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    loop {
        for _ in 0..SPINS_BEFORE_YIELD {
            if condition() {
                return true;
            }
            std::hint::spin_loop();
        }
        if started.elapsed() >= time {
            return false;
        }
        std::thread::yield_now();
    }
}
