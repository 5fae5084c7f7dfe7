//! Page-locked host memory of a context, through which `copies` copies large arrays.

use super::library::{check, PointerOwner};
use crate::base::error::Result;
use cudarc::driver::sys as cu;
use std::ptr::{null_mut, NonNull};
use std::sync::Mutex;

/// Maximum bytes of a part.
pub const PART: usize = 1 << 20;
/// Minimum bytes that a thread copies. With less, it takes longer to wake the threads than to copy.
const SHARE: usize = 1 << 20;
/// Parts of a lane: one is filled while the others are in transfer.
pub const PARTS: usize = 4;
/// Maximum number of lanes of a context: those of two copies at a time.
const MAX_LANES: usize = 16;

/// Page-locked memory of a context for copies.
#[derive(Default)]
pub struct Staging {
    lanes: Mutex<LaneList>,
}

#[derive(Default)]
struct LaneList {
    idle: Vec<Lane>,
    count: usize,
}

/// Page-locked memory of a thread that copies.
pub struct Lane {
    memory: NonNull<u8>,
    /// When the transfer of each part is complete.
    events: [cu::CUevent; PARTS],
}

// SAFETY: all threads reach the memory, and the driver's handles may be used from any thread.
unsafe impl Send for Lane {}
// SAFETY: the same. One thread at a time writes the memory: the one that the lane is for.
unsafe impl Sync for Lane {}

impl Lane {
    /// Allocates a lane. The context is current.
    fn new() -> Result<Lane> {
        let mut memory = null_mut();
        // SAFETY: the context is current; freed in `free`.
        check(
            unsafe { cu::cuMemHostAlloc(&mut memory, PART * PARTS, cu::CU_MEMHOSTALLOC_PORTABLE) },
            "page-locked memory",
        )?;
        let memory = NonNull::new(memory.cast()).expect("the driver gave memory");
        let mut lane = Lane { memory, events: [null_mut(); PARTS] };
        for event in &mut lane.events {
            let flags = cu::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
            // SAFETY: the context is current; destroyed in `free`.
            if let Err(e) = check(unsafe { cu::cuEventCreate(event, flags) }, "making an event") {
                // SAFETY: nothing uses the lane.
                unsafe { lane.free() };
                return Err(e);
            }
        }
        Ok(lane)
    }

    /// Frees the lane.
    ///
    /// # Safety
    /// The context is current, and no transfer uses the lane.
    unsafe fn free(self) {
        for event in self.events.into_iter().filter(|event| !event.is_null()) {
            // SAFETY: created in `new`.
            unsafe { cu::cuEventDestroy_v2(event) };
        }
        // SAFETY: allocated in `new`.
        unsafe { cu::cuMemFreeHost(self.memory.as_ptr().cast()) };
    }

    /// Returns the address of a part.
    pub fn part(&self, part: usize) -> *mut u8 {
        self.memory.as_ptr().wrapping_add(part * PART)
    }

    /// Waits until the transfer of a part is complete.
    pub fn wait(&self, part: usize) -> Result<()> {
        // SAFETY: the event exists.
        check(unsafe { cu::cuEventSynchronize(self.events[part]) }, "copying")
    }

    /// Marks the end of the transfer that has been queued for a part.
    pub fn mark(&self, part: usize, stream: cu::CUstream) -> Result<()> {
        // SAFETY: event and stream exist, in the current context.
        check(unsafe { cu::cuEventRecord(self.events[part], stream) }, "copying")
    }
}

impl Staging {
    /// Takes as many lanes as threads, at most `threads`, should copy an array of this size; none if the driver should
    /// copy it.
    pub fn take(&self, host: *const u8, bytes: usize, threads: usize) -> Vec<Lane> {
        let threads = threads.min(bytes / SHARE);
        // The driver transfers memory directly that the caller has page-locked.
        if threads < 2 || PointerOwner::of(host as u64).is_some_and(|owner| owner.is_host()) {
            return Vec::new();
        }
        let mut list = self.lanes.lock().unwrap_or_else(|e| e.into_inner());
        let mut lanes = Vec::new();
        while lanes.len() < threads {
            let lane = match list.idle.pop() {
                Some(lane) => lane,
                None if list.count == MAX_LANES => break,
                None => match Lane::new() {
                    Ok(lane) => {
                        list.count += 1;
                        lane
                    }
                    Err(e) => {
                        log::debug!("arrays are copied without page-locked memory: {e}");
                        break;
                    }
                },
            };
            lanes.push(lane);
        }
        lanes
    }

    /// Gives lanes back, whose transfers may still be in progress.
    pub fn put(&self, lanes: Vec<Lane>) {
        self.lanes.lock().unwrap_or_else(|e| e.into_inner()).idle.extend(lanes);
    }

    /// Frees unused memory. The context is current.
    pub fn free_idle(&self) {
        let mut list = self.lanes.lock().unwrap_or_else(|e| e.into_inner());
        list.count -= list.idle.len();
        for lane in list.idle.drain(..) {
            // Transfers from the lane may still be in progress. After a failure there are no transfers.
            let _ = (0..PARTS).try_for_each(|part| lane.wait(part));
            // SAFETY: the context is current, and transfers have ended.
            unsafe { lane.free() };
        }
    }
}
