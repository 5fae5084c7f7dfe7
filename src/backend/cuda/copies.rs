//! Copies between ordinary host memory and a GPU through page-locked memory, by several threads.
//!
//! The driver copies ordinary memory with one thread, at 6 to 8 GB/s. The bus is several times faster, and so are a few
//! threads that copy parts to page-locked memory, from where the GPU fetches them.

use super::library::check;
use super::runtime::{Context, Stream};
use super::staging::{Lane, PART, PARTS};
use crate::backend::threads::CopyThreads;
use crate::backend::Element;
use crate::base::error::Result;
use cudarc::driver::sys as cu;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Parts begin at multiples of this number of bytes.
const ALIGNMENT: usize = 4096;

/// Calls `copy` for each lane, in the threads of a plan: with the lane, and an iterator of the offsets and sizes of
/// parts of an array of this size. Returns the first failure.
fn each_lane(
    context: &Arc<Context>,
    threads: &CopyThreads,
    bytes: usize,
    lanes: &[Lane],
    copy: impl Fn(&Lane, &mut dyn Iterator<Item = (usize, usize)>) -> Result<()> + Sync,
) -> Result<()> {
    let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
    // At least two parts for each lane: one is filled while the other is in transfer.
    let part = bytes.div_ceil(2 * lanes.len()).next_multiple_of(ALIGNMENT).min(PART);
    let run = |lane: &Lane| -> Result<()> {
        let _current = context.enter()?;
        let mut parts = std::iter::from_fn(|| {
            let at = next.fetch_add(part, Ordering::Relaxed);
            (at < bytes).then(|| (at, part.min(bytes - at)))
        });
        copy(lane, &mut parts)
    };
    threads.run(lanes.len(), |i| {
        if let Err(e) = run(&lanes[i]) {
            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
        }
    });
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Queues a copy of a host array to the GPU. The context is current.
///
/// # Safety
/// The GPU has an array of this size at this address, and the stream exists. The host array must not change until the
/// stream has been waited for.
pub unsafe fn copy_in<E: Element>(
    context: &Arc<Context>,
    threads: &CopyThreads,
    host: &[E],
    to: u64,
    stream: &Stream,
) -> Result<()> {
    let bytes = size_of_val(host);
    let (from, stream) = (host.as_ptr().cast::<u8>(), Shared(stream.handle()));
    let lanes = context.staging().take(from, bytes, threads.count());
    if lanes.is_empty() {
        // SAFETY: the caller's promise.
        return check(unsafe { cu::cuMemcpyHtoDAsync_v2(to, from.cast(), bytes, *stream.get()) }, "copying to the GPU");
    }
    let from = Shared(from);
    let result = each_lane(context, threads, bytes, &lanes, |lane, parts| {
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
pub unsafe fn copy_out<E: Element>(
    context: &Arc<Context>,
    threads: &CopyThreads,
    from: u64,
    host: &mut [E],
    stream: &Stream,
) -> Result<()> {
    let bytes = size_of_val(host);
    let (to, stream) = (host.as_mut_ptr().cast::<u8>(), Shared(stream.handle()));
    let lanes = context.staging().take(to, bytes, threads.count());
    if lanes.is_empty() {
        // SAFETY: the caller's promise. Any bits are valid elements.
        return check(
            unsafe { cu::cuMemcpyDtoHAsync_v2(to.cast(), from, bytes, *stream.get()) },
            "copying from the GPU",
        );
    }
    let to = Shared(to);
    let result = each_lane(context, threads, bytes, &lanes, |lane, parts| {
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
            // An earlier copy to the GPU, also of another plan, may still read this part.
            lane.wait(part)?;
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
