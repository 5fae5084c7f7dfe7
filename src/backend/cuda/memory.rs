//! GPU memory: arrays, and freed memory that a plan keeps for its next arrays.

use super::copies;
use super::library::check;
use super::memory_cache::DeviceMemoryCache;
use super::runtime::{Event, Stream};
use crate::backend::threads::CopyThreads;
use crate::backend::{DevicePointer, DeviceSlice, DeviceSliceMut, Element};
use crate::base::defaults::{IDLE_DEVICE_SHARE, IDLE_PLAN_BYTES};
use crate::base::error::{bail, ErrorKind, Result};
use cudarc::driver::sys as cu;
use num_complex::Complex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// Memory of a plan on one GPU. Memory is reused while a stream still works on it, because the next work queues behind
/// that.
///
/// The caller's arrays are copied on a separate stream, so that one batch is copied while a different one is computed.
/// A copied input is not reused before the work that reads it is done: see `used`.
pub struct DeviceMemory {
    stream: Arc<Stream>,
    copies: Stream,
    /// Threads that copy between ordinary host memory and the GPU.
    threads: CopyThreads,
    /// Number of copies to the GPU that have been queued, and of those that are known to be complete.
    copies_queued: AtomicU64,
    copies_done: AtomicU64,
    /// Copied inputs that queued work still reads until its event: address, bytes, event.
    used: Mutex<Vec<(u64, usize, Event)>>,
    /// Bytes allocated on the GPU.
    held: AtomicUsize,
    idle: Mutex<DeviceMemoryCache>,
}

impl DeviceMemory {
    /// Creates the memory for work on this stream. `threads` copy between ordinary host memory and the GPU.
    pub fn new(stream: Arc<Stream>, threads: CopyThreads) -> Result<Arc<Self>> {
        let copies = Stream::new(&stream.context)?;
        #[cfg(test)]
        tests::LIVE.set(tests::LIVE.get() + 1);
        Ok(Arc::new(DeviceMemory {
            stream,
            copies,
            threads,
            copies_queued: AtomicU64::new(0),
            copies_done: AtomicU64::new(0),
            used: Mutex::default(),
            held: AtomicUsize::new(0),
            idle: Mutex::default(),
        }))
    }

    /// Returns the threads that copy between ordinary host memory and the GPU.
    pub fn threads(&self) -> &CopyThreads {
        &self.threads
    }

    /// Returns the stream that copies the caller's arrays.
    pub fn copies(&self) -> &Stream {
        &self.copies
    }

    /// Copies a host array to the GPU. Work that is queued from now on runs after the copy.
    ///
    /// # Safety
    /// The array must not change until the copies have been waited for.
    pub unsafe fn copy_in<E: Element>(self: &Arc<Self>, host: &[E], what: &str) -> Result<DeviceArray<E>> {
        let bytes = std::mem::size_of_val(host);
        let mut array = match self.take_used(bytes.max(1).next_multiple_of(256)) {
            Some((address, room, event)) => {
                self.copies.wait_for(&event)?;
                let (pointer, len) = (DevicePointer::new(address), host.len());
                DeviceArray { pointer, len, bytes: room, copied_in: true, memory: self.clone() }
            }
            None => {
                let array = self.array(host.len(), what)?;
                self.copies.wait_for(&self.stream.mark()?)?;
                array
            }
        };
        array.copied_in = true;
        {
            let _current = self.stream.context.enter()?;
            // SAFETY: both have this number of bytes; the host array remains by the caller's promise; the stream
            // exists.
            let queued = unsafe {
                copies::copy_in(&self.stream.context, &self.threads, host, array.pointer.address(), &self.copies)
            };
            // Counted after the copy is queued: whoever reads the number and then waits, waits for this copy too.
            self.copies_queued.fetch_add(1, SeqCst);
            queued.map_err(|e| e.within(what))?;
        }
        self.stream.wait_for(&self.copies.mark()?)?;
        Ok(array)
    }

    /// Waits until the host arrays of all copies queued so far may change.
    pub fn wait_for_copies(&self) -> Result<()> {
        let queued = self.copies_queued.load(SeqCst);
        if self.copies_done.load(SeqCst) < queued {
            self.copies.synchronize()?;
            self.copies_done.fetch_max(queued, SeqCst);
        }
        Ok(())
    }

    /// Returns the memory of an earlier input of this size, unless a second one would let copies run ahead of the work.
    fn take_used(&self, bytes: usize) -> Option<(u64, usize, Event)> {
        let mut used = self.used.lock().unwrap_or_else(|e| e.into_inner());
        let mut same = used.iter().enumerate().filter(|(_, u)| u.1 == bytes).map(|(i, _)| i);
        let (first, second) = (same.next()?, same.next());
        (second.is_some() || used[first].2.has_come()).then(|| used.remove(first))
    }

    /// Releases the memory of used inputs, once the queued work is done.
    fn retire_used(&self) {
        let mut used = self.used.lock().unwrap_or_else(|e| e.into_inner());
        let mut idle = self.idle();
        // SAFETY: `used` contains addresses of dropped arrays.
        used.drain(..).for_each(|(address, bytes, _)| unsafe { idle.put(address, bytes) });
    }

    /// Returns the bytes that the plan holds on the GPU.
    pub fn held(&self) -> usize {
        self.held.load(Relaxed)
    }

    /// Returns an array with undefined contents.
    pub fn array<E: Element>(self: &Arc<Self>, len: usize, what: &str) -> Result<DeviceArray<E>> {
        let Some(bytes) = len.checked_mul(size_of::<E>()).and_then(|b| b.max(1).checked_next_multiple_of(256)) else {
            bail!(SizeOverflow, "{what} of {len} elements exceeds the address space: use smaller sizes");
        };
        let kept = self.idle().take(bytes);
        let address = match kept {
            Some(address) => address,
            None => self.allocate(bytes, what)?,
        };
        Ok(DeviceArray { pointer: DevicePointer::new(address), len, bytes, copied_in: false, memory: self.clone() })
    }

    fn allocate(&self, bytes: usize, what: &str) -> Result<u64> {
        if let Some(address) = self.stream.context.idle().take(bytes) {
            self.held.fetch_add(bytes, Relaxed);
            return Ok(address);
        }
        let _current = self.stream.context.enter()?;
        let mut address = 0;
        let mut attempt = || {
            #[cfg(test)]
            tests::refuse()?;
            // SAFETY: the context is current; the memory is freed by `trim` or `drop`.
            check(unsafe { cu::cuMemAlloc_v2(&mut address, bytes) }, what)
        };
        let mut result = attempt();
        if result.as_ref().is_err_and(|e| e.kind() == ErrorKind::OutOfDeviceMemory)
            && self.free_idle() + self.stream.context.idle().trim(0) > 0
        {
            result = attempt();
        }
        if let Err(e) = result {
            if e.kind() != ErrorKind::OutOfDeviceMemory {
                return Err(e);
            }
            let free = self.stream.context.free_memory().map_or("an unknown number of".to_owned(), |f| f.to_string());
            bail!(
                OutOfDeviceMemory,
                "could not allocate {bytes} bytes for {what} on GPU {}, which has {free} bytes free: free memory \
                 there, use a smaller problem, or device cpu",
                self.stream.context.index
            );
        }
        self.held.fetch_add(bytes, Relaxed);
        Ok(address)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, DeviceMemoryCache> {
        self.idle.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Frees all idle memory, and returns the number of bytes freed.
    fn free_idle(&self) -> usize {
        self.retire_used();
        self.shrink_idle(0, |idle| idle.trim(0))
    }

    /// Calls `shrink` if there are more than `most` bytes of idle memory, once no work uses them. It returns the number
    /// of bytes that the plan does not hold any more.
    fn shrink_idle(&self, most: usize, shrink: impl FnOnce(&mut DeviceMemoryCache) -> usize) -> usize {
        let mut idle = self.idle();
        if idle.bytes() <= most {
            return 0;
        }
        // The memory of a destroyed context does not exist any more.
        let Ok(_current) = self.stream.context.enter() else { return 0 };
        // SAFETY: the stream exists. If waiting fails, no work runs there any more.
        unsafe { cu::cuStreamSynchronize(self.stream.handle()) };
        let bytes = shrink(&mut idle);
        self.held.fetch_sub(bytes, Relaxed);
        bytes
    }

    /// Leaves idle memory to other plans, until this one has at most `most` bytes of it.
    fn leave_idle(&self, most: usize) {
        self.shrink_idle(most, |ours| {
            let mut theirs = self.stream.context.idle();
            let moved = ours.move_excess(most, &mut theirs);
            theirs.trim(self.stream.context.properties.memory / IDLE_DEVICE_SHARE);
            moved
        });
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        #[cfg(test)]
        tests::LIVE.set(tests::LIVE.get() - 1);
        {
            // The memory of a destroyed context does not exist any more.
            let Ok(_current) = self.stream.context.enter() else { return };
            // SAFETY: the stream exists. Its work is done before other plans get this memory.
            unsafe { cu::cuStreamSynchronize(self.copies.handle()) };
        }
        self.retire_used();
        self.leave_idle(0);
    }
}

/// A complex array on a GPU, to read.
pub type ComplexSlice<'a, T> = DeviceSlice<'a, Complex<T>>;
/// A complex array on a GPU, to write.
pub type ComplexSliceMut<'a, T> = DeviceSliceMut<'a, Complex<T>>;

/// An array in GPU memory. Any bits are valid elements.
pub struct DeviceArray<E> {
    pointer: DevicePointer<E>,
    len: usize,
    bytes: usize,
    copied_in: bool,
    memory: Arc<DeviceMemory>,
}

impl<E> DeviceArray<E> {
    /// Returns the address on the GPU.
    pub fn pointer(&self) -> DevicePointer<E> {
        self.pointer
    }

    /// Returns the number of elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns an array of `len` elements with undefined contents in this array's memory, if that is large enough and
    /// at least half of it is used. Allocating and freeing a gigabyte takes half a millisecond.
    pub fn reused<F: Element>(self, len: usize) -> Option<DeviceArray<F>> {
        let needed = len.checked_mul(size_of::<F>())?;
        if self.copied_in || needed > self.bytes || needed < self.bytes / 2 {
            return None;
        }
        let array = std::mem::ManuallyDrop::new(self);
        // SAFETY: `array` is not dropped, so that this is its only copy.
        let memory = unsafe { std::ptr::read(&array.memory) };
        let pointer = DevicePointer::new(array.pointer.address());
        Some(DeviceArray { pointer, len, bytes: array.bytes, copied_in: false, memory })
    }

    /// Returns a view of the whole array, for reading.
    pub fn view(&self) -> DeviceSlice<'_, E> {
        // SAFETY: the array has this number of elements. The memory is reused only for work that queues behind this.
        unsafe { DeviceSlice::new(self.pointer, self.len) }
    }

    /// Returns a view of the whole array, for writing.
    pub fn view_mut(&mut self) -> DeviceSliceMut<'_, E> {
        // SAFETY: the array has this number of elements and is borrowed mutably. The memory is reused only for work
        // that queues behind this.
        unsafe { DeviceSliceMut::new(self.pointer, self.len) }
    }
}

impl<E> Drop for DeviceArray<E> {
    fn drop(&mut self) {
        if self.copied_in {
            if let Ok(read) = self.memory.stream.mark() {
                let mut used = self.memory.used.lock().unwrap_or_else(|e| e.into_inner());
                used.push((self.pointer.address(), self.bytes, read));
                return;
            }
        }
        // SAFETY: the memory comes from `allocate`, and the array is dropped.
        unsafe { self.memory.idle().put(self.pointer.address(), self.bytes) };
        self.memory.leave_idle(IDLE_PLAN_BYTES);
    }
}

#[cfg(test)]
mod tests {
    //! Makes device allocations fail in all calls: for each n, all allocations from the n-th on fail.

    use super::*;
    use crate::backend::cuda::runtime::{first_usable, Context};
    use crate::{CgOptions, Complex, Density, Device, Geometry, Method, Normal, Options, Plan};
    use std::cell::Cell;

    thread_local! {
        /// Number of this thread's allocations until they begin to fail; 0 means never.
        static LEFT: Cell<usize> = const { Cell::new(0) };
        static REFUSED: Cell<usize> = const { Cell::new(0) };
        /// Number of `DeviceMemory` objects of this thread that still exist. A lost array would keep one alive.
        pub static LIVE: Cell<isize> = const { Cell::new(0) };
    }

    pub fn refuse() -> Result<()> {
        match LEFT.get() {
            0 => {}
            1 => {
                REFUSED.set(REFUSED.get() + 1);
                bail!(OutOfDeviceMemory, "refused by a test");
            }
            n => LEFT.set(n - 1),
        }
        Ok(())
    }

    fn numbers(n: usize, by: f32) -> Vec<f32> {
        (0..n).map(|i| (i as f32 * by).fract() - 0.5).collect()
    }
    fn complexes(n: usize, by: f32) -> Vec<Complex<f32>> {
        numbers(n, by).iter().zip(numbers(n, 0.7 * by)).map(|(&re, im)| Complex::new(re, im)).collect()
    }

    const POISON: Complex<f32> = Complex::new(123.0, -321.0);

    /// A call whose outputs remain unchanged when it fails.
    struct FailingCall<'a> {
        name: &'a str,
        out: usize,
        run: &'a dyn Fn(&Plan<f32>, &mut [Complex<f32>]) -> Result<()>,
    }

    /// Counts over all calls: reported failures, and failures that the call could do without.
    #[derive(Default)]
    struct FailureCounts {
        reported: usize,
        done_without: usize,
    }

    /// Makes the call fail at each allocation in turn, with a new plan each time.
    fn fail(
        context: &Context,
        what: &str,
        make: &dyn Fn() -> Result<Plan<f32>>,
        call: &FailingCall<'_>,
        seen: &mut FailureCounts,
    ) {
        let FailingCall { name, out, run } = *call;
        let mut right = vec![POISON; out];
        run(&make().unwrap(), &mut right).unwrap();
        for n in 1.. {
            let plan = make().unwrap();
            context.free_idle_memory();
            let mut got = vec![POISON; out];
            LEFT.set(n);
            REFUSED.set(0);
            let result = run(&plan, &mut got);
            LEFT.set(0);
            let at = format!("{name}, {what}, allocation {n}");
            match result {
                Ok(()) => {
                    assert_eq!(got, right, "{at}: done, and wrong");
                    if REFUSED.get() == 0 {
                        return;
                    }
                    seen.done_without += 1;
                }
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::OutOfDeviceMemory, "{at}: {e}");
                    assert!(got.iter().all(|z| *z == POISON), "{at}: the output was touched");
                    run(&plan, &mut got).unwrap_or_else(|e| panic!("{at}, the next call: {e}"));
                    assert_eq!(got, right, "{at}: the next call is wrong");
                    seen.reported += 1;
                }
            }
        }
    }

    #[test]
    fn device_allocations_fail_one_by_one() {
        let Some(index) = first_usable() else {
            eprintln!("skipped: failing device allocations (no GPU)");
            return;
        };
        let context = Context::of(index).unwrap();
        const COILS: usize = 3;
        let cases: [(&str, &[usize], Method, Normal, bool); 5] = [
            ("2D with maps", &[24, 20], Method::Nufft, Normal::Toeplitz, true),
            ("2D", &[24, 20], Method::Nufft, Normal::Transforms, false),
            ("3D with maps", &[12, 10, 9], Method::Nufft, Normal::Toeplitz, true),
            ("exact 2D with maps", &[24, 20], Method::Exact, Normal::Toeplitz, true),
            ("exact 3D", &[12, 10, 9], Method::Exact, Normal::Transforms, false),
        ];
        let mut seen = FailureCounts::default();
        for (what, dims, method, normal, with_maps) in cases {
            let (samples, voxels) = (700, dims.iter().product::<usize>());
            let mut k: Vec<Vec<f32>> = (0..dims.len()).map(|a| numbers(samples, 0.618_034 * (a + 1) as f32)).collect();
            // Gridding and coil maps require samples in the centre of k-space: 8 Cartesian ones along each axis.
            for (axis, (k, &n)) in k.iter_mut().zip(dims).enumerate() {
                let central = 8usize.pow(dims.len() as u32);
                k[..central].iter_mut().enumerate().for_each(|(i, k)| {
                    *k = ((i >> (3 * axis) & 7) as f32 - 4.0) / n as f32;
                });
            }
            let k: Vec<&[f32]> = k.iter().map(|k| &k[..]).collect();
            let (weights, maps) = (vec![1.0f32; samples], complexes(voxels * COILS, 0.414_214));
            let options = Options { device: Device::Cuda(vec![index]), method, normal, ..Options::default() };
            let make = || {
                let geometry = Geometry::new(dims, &k).coils(COILS);
                let geometry = if with_maps { geometry.coil_maps(&maps).weights(&weights) } else { geometry };
                Plan::<f32>::new(&geometry, &options)
            };
            let (data, image) = (complexes(samples * COILS, 0.302_776), complexes(voxels * COILS, 0.236_068));
            let (plan, cg) = (make().unwrap(), CgOptions { iterations: 3, lambda: 0.1, ..CgOptions::default() });
            let (images, q_len) = (plan.image_len(), plan.q_len());
            drop(plan);
            type Run<'a> = Box<dyn Fn(&Plan<f32>, &mut [Complex<f32>]) -> Result<()> + 'a>;
            let weights_of = |plan: &Plan<f32>, out: &mut [Complex<f32>], method| {
                plan.density(method).map(|w| out.iter_mut().zip(w).for_each(|(z, w)| *z = w.into()))
            };
            let few = Density::PipeMenon { iterations: 3, tolerance: 0.0 };
            let mut calls: Vec<(&str, usize, Run<'_>)> = vec![
                ("plan", 0, Box::new(|_, _| make().map(drop))),
                ("forward", samples * COILS, Box::new(|p, out| p.forward(&image[..images], out))),
                ("adjoint", images, Box::new(|p, out| p.adjoint(&data, out))),
                ("weighted adjoint", images, Box::new(|p, out| p.weighted_adjoint(&data, out))),
                ("normal", images, Box::new(|p, out| p.normal(&image[..images], out))),
                ("q", q_len, Box::new(|p, out| p.q(out))),
                ("cg", images, Box::new(|p, out| p.cg(&data, out, &cg).map(drop))),
                ("grid", images, Box::new(|p, out| p.grid(&data, out))),
                (
                    "coil maps",
                    voxels * COILS,
                    Box::new(|p, out| p.coil_maps(&data, 8).map(|m| out.copy_from_slice(&m))),
                ),
            ];
            calls.push(("Pipe-Menon weights", samples, Box::new(|p, out| weights_of(p, out, few))));
            calls.push(("Jackson's weights", samples, Box::new(|p, out| weights_of(p, out, Density::Jackson))));
            for (name, out, run) in calls {
                fail(&context, what, &make, &FailingCall { name, out, run: &run }, &mut seen);
            }
        }
        eprintln!("device allocations refused: {} reported, {} done without", seen.reported, seen.done_without);
        assert!(seen.reported > 100, "only {} failures were met", seen.reported);
        assert_eq!(LIVE.get(), 0, "plans' memories that are left");
    }
}
