//! Copies between ordinary host memory and a GPU through page-locked memory, by several threads.
//!
//! The driver copies ordinary memory with one thread, at 6 to 8 GB/s. The bus is several times faster, and so are a few
//! threads that copy parts to page-locked memory, from where the GPU fetches them.

use super::library::{check, PointerOwner};
use super::runtime::{Context, Stream};
use crate::backend::Element;
use crate::base::error::Result;
use crate::base::workers::copy_threads;
use cudarc::driver::sys as cu;
use std::collections::VecDeque;
use std::ptr::{null_mut, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes of a part.
const PART: usize = 1 << 20;
/// Parts of a lane: one is filled while the others are in transfer.
const PARTS: usize = 4;
/// Arrays of fewer bytes are copied by the driver: threads would start for longer than they save.
const LEAST: usize = 8 << 20;
/// Maximum number of lanes of a context: those of two copies at a time.
const MAX_LANES: usize = 8;

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
struct Lane {
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

    fn part(&self, part: usize) -> *mut u8 {
        self.memory.as_ptr().wrapping_add(part * PART)
    }

    /// Waits until the transfer of a part is complete.
    fn wait(&self, part: usize) -> Result<()> {
        // SAFETY: the event exists.
        check(unsafe { cu::cuEventSynchronize(self.events[part]) }, "copying")
    }

    /// Marks the end of the transfer that has been queued for a part.
    fn mark(&self, part: usize, stream: cu::CUstream) -> Result<()> {
        // SAFETY: event and stream exist, in the current context.
        check(unsafe { cu::cuEventRecord(self.events[part], stream) }, "copying")
    }
}

impl Staging {
    /// Takes as many lanes as threads should copy an array of this size; none if the driver should copy it.
    fn take(&self, host: *const u8, bytes: usize) -> Vec<Lane> {
        let threads = copy_threads();
        // The driver transfers memory directly that the caller has page-locked.
        if bytes < LEAST || threads < 2 || PointerOwner::of(host as u64).is_some_and(|owner| owner.is_host()) {
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

    fn put(&self, lanes: Vec<Lane>) {
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

/// Calls `copy` for each part of an array of this size, in a thread per lane: with the lane, and an iterator of the
/// parts' offsets and sizes. Returns the first failure.
fn each_lane(
    context: &Arc<Context>,
    bytes: usize,
    lanes: &[Lane],
    copy: impl Fn(&Lane, &mut dyn Iterator<Item = (usize, usize)>) -> Result<()> + Sync,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let run = |lane: &Lane| -> Result<()> {
        let _current = context.enter()?;
        let mut parts = std::iter::from_fn(|| {
            let at = next.fetch_add(PART, Ordering::Relaxed);
            (at < bytes).then(|| (at, PART.min(bytes - at)))
        });
        copy(lane, &mut parts)
    };
    let (first, others) = lanes.split_first().expect("a copy has lanes");
    std::thread::scope(|scope| {
        let run = &run;
        // Without a thread, the others copy all parts.
        let others: Vec<_> = others
            .iter()
            .filter_map(|lane| std::thread::Builder::new().spawn_scoped(scope, move || run(lane)).ok())
            .collect();
        let mut result = run(first);
        for thread in others {
            result = result.and(thread.join().expect("copying does not panic"));
        }
        result
    })
}

/// Queues a copy of a host array to the GPU. The context is current.
///
/// # Safety
/// The GPU has an array of this size at this address, and the stream exists. The host array must not change until the
/// stream has been waited for.
pub unsafe fn copy_in<E: Element>(context: &Arc<Context>, host: &[E], to: u64, stream: &Stream) -> Result<()> {
    let bytes = size_of_val(host);
    let (from, stream) = (host.as_ptr().cast::<u8>(), Shared(stream.handle()));
    let lanes = context.staging().take(from, bytes);
    if lanes.is_empty() {
        // SAFETY: the caller's promise.
        return check(unsafe { cu::cuMemcpyHtoDAsync_v2(to, from.cast(), bytes, *stream.get()) }, "copying to the GPU");
    }
    let from = Shared(from);
    let result = each_lane(context, bytes, &lanes, |lane, parts| {
        let (from, stream) = (*from.get(), *stream.get());
        for (i, (at, len)) in parts.enumerate() {
            let part = i % PARTS;
            lane.wait(part)?;
            // SAFETY: the part is inside of the host array. The lane's part has room and is not in transfer.
            unsafe { std::ptr::copy_nonoverlapping(from.wrapping_add(at), lane.part(part), len) };
            // SAFETY: both have `len` bytes; the lane's part stays until its event.
            let status = unsafe { cu::cuMemcpyHtoDAsync_v2(to + at as u64, lane.part(part).cast(), len, stream) };
            check(status, "copying to the GPU")?;
            lane.mark(part, stream)?;
        }
        Ok(())
    });
    context.staging().put(lanes);
    result
}

/// Copies an array from the GPU to the host after the work that has been queued on a stream. The context is current.
///
/// # Safety
/// The GPU has an array of this size at this address, and the stream exists. The host array must not be used until the
/// stream has been waited for.
pub unsafe fn copy_out<E: Element>(context: &Arc<Context>, from: u64, host: &mut [E], stream: &Stream) -> Result<()> {
    let bytes = size_of_val(host);
    let (to, stream) = (host.as_mut_ptr().cast::<u8>(), Shared(stream.handle()));
    let lanes = context.staging().take(to, bytes);
    if lanes.is_empty() {
        // SAFETY: the caller's promise. Any bits are valid elements.
        return check(
            unsafe { cu::cuMemcpyDtoHAsync_v2(to.cast(), from, bytes, *stream.get()) },
            "copying from the GPU",
        );
    }
    let to = Shared(to);
    let result = each_lane(context, bytes, &lanes, |lane, parts| {
        let (to, stream) = (*to.get(), *stream.get());
        let store = |part: usize, (at, len): (usize, usize)| -> Result<()> {
            lane.wait(part)?;
            // SAFETY: the part is inside of the host array, and no other thread has it. Any bits are valid elements.
            unsafe { std::ptr::copy_nonoverlapping(lane.part(part), to.wrapping_add(at), len) };
            Ok(())
        };
        let mut queued = VecDeque::with_capacity(PARTS);
        for (i, (at, len)) in parts.enumerate() {
            let part = i % PARTS;
            if queued.len() == PARTS {
                let (part, range) = queued.pop_front().expect("a part is queued");
                store(part, range)?;
            }
            // SAFETY: both have `len` bytes; the lane's part is not used until its event.
            let status = unsafe { cu::cuMemcpyDtoHAsync_v2(lane.part(part).cast(), from + at as u64, len, stream) };
            check(status, "copying from the GPU")?;
            lane.mark(part, stream)?;
            queued.push_back((part, (at, len)));
        }
        queued.into_iter().try_for_each(|(part, range)| store(part, range))
    });
    context.staging().put(lanes);
    result
}

/// An address or a stream that several threads use.
struct Shared<P>(P);

// SAFETY: the driver's handles may be used from any thread, and threads access different parts of an array.
unsafe impl<P> Sync for Shared<P> {}

impl<P> Shared<P> {
    fn get(&self) -> &P {
        &self.0
    }
}
