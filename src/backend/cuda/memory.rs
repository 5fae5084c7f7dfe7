//! Memory of a GPU: arrays, and what a plan keeps of them for the next that asks.

use super::idle::Idle;
use super::library::check;
use super::runtime::{Event, Stream};
use crate::backend::{DevicePointer, DeviceSlice, DeviceSliceMut, Element};
use crate::base::error::{bail, ErrorKind, Result};
use cudarc::driver::sys as cu;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Bytes that a plan, and a GPU's context for the plans to come, keep for the next array of the same size, at most.
const KEPT: usize = 1 << 30;

/// A plan's memory on one GPU. What a stream still works on may be handed out again: the next work queues behind it.
///
/// The caller's arrays come and go on a stream of their own, so that one batch is copied while another is computed.
/// What has come in that way is not handed out again before the work that read it is done: see `used`.
pub struct Memory {
    stream: Arc<Stream>,
    copies: Stream,
    /// Arrays that were copied in and that work still reads until its event comes: address, bytes, event.
    used: Mutex<Vec<(u64, usize, Event)>>,
    /// Bytes taken from the GPU.
    held: AtomicUsize,
    idle: Mutex<Idle>,
}

impl Memory {
    /// Memory for work on this stream.
    pub fn new(stream: Arc<Stream>) -> Result<Arc<Self>> {
        let copies = Stream::new(&stream.context)?;
        #[cfg(test)]
        tests::LIVE.set(tests::LIVE.get() + 1);
        Ok(Arc::new(Memory {
            stream,
            copies,
            used: Mutex::default(),
            held: AtomicUsize::new(0),
            idle: Mutex::default(),
        }))
    }

    /// The stream of the caller's arrays.
    pub fn copies(&self) -> &Stream {
        &self.copies
    }

    /// A copy of a host's array; work that is queued from now on comes after it.
    ///
    /// # Safety
    /// The array stays as it is until the copies have been waited for.
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
            let _current = self.stream.context.enter();
            // SAFETY: both have so many bytes, the host's stay by the caller's promise; the stream exists.
            let (to, from) = (array.pointer.address(), host.as_ptr().cast());
            let status = unsafe { cu::cuMemcpyHtoDAsync_v2(to, from, bytes, self.copies.handle()) };
            check(status, what)?;
        }
        self.stream.wait_for(&self.copies.mark()?)?;
        Ok(array)
    }

    /// An array of this size that was copied in before, unless a second one would let copies run ahead.
    fn take_used(&self, bytes: usize) -> Option<(u64, usize, Event)> {
        let mut used = self.used.lock().unwrap_or_else(|e| e.into_inner());
        let mut same = used.iter().enumerate().filter(|(_, u)| u.1 == bytes).map(|(i, _)| i);
        let (first, second) = (same.next()?, same.next());
        (second.is_some() || used[first].2.has_come()).then(|| used.remove(first))
    }

    /// What was copied in and used may serve for anything, once the work that is queued is done.
    fn retire_used(&self) {
        let mut used = self.used.lock().unwrap_or_else(|e| e.into_inner());
        let mut idle = self.idle();
        // SAFETY: `used` has addresses of arrays that were dropped.
        used.drain(..).for_each(|(address, bytes, _)| unsafe { idle.put(address, bytes) });
    }

    /// Bytes that the plan holds on the GPU.
    pub fn held(&self) -> usize {
        self.held.load(Relaxed)
    }

    /// An array whose contents are whatever was there.
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
        let _current = self.stream.context.enter();
        let mut address = 0;
        let mut attempt = || {
            #[cfg(test)]
            tests::refuse()?;
            // SAFETY: the context is current; freed when it is idle and too much.
            check(unsafe { cu::cuMemAlloc_v2(&mut address, bytes) }, what)
        };
        let mut result = attempt();
        if result.as_ref().is_err_and(|e| e.kind() == ErrorKind::OutOfDeviceMemory)
            && self.trim(0) + self.stream.context.idle().trim(0) > 0
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

    fn idle(&self) -> std::sync::MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Gives idle memory back to the GPU until at most `most` bytes are left; gives the bytes freed.
    fn trim(&self, most: usize) -> usize {
        if most == 0 {
            self.retire_used();
        }
        let mut idle = self.idle();
        if idle.bytes() <= most {
            return 0;
        }
        let _current = self.stream.context.enter();
        // SAFETY: the stream exists. Should waiting fail, nothing runs there any more.
        unsafe { cu::cuStreamSynchronize(self.stream.handle()) };
        let freed = idle.trim(most);
        self.held.fetch_sub(freed, Relaxed);
        freed
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        #[cfg(test)]
        tests::LIVE.set(tests::LIVE.get() - 1);
        let _current = self.stream.context.enter();
        // SAFETY: the streams exist: their work is done before others get this memory.
        unsafe {
            cu::cuStreamSynchronize(self.copies.handle());
            cu::cuStreamSynchronize(self.stream.handle());
        }
        self.retire_used();
        let mut ours = self.idle();
        let mut theirs = self.stream.context.idle();
        // SAFETY: they were idle here, and are of the same context.
        ours.take_all().for_each(|(bytes, address)| unsafe { theirs.put(address, bytes) });
        let most = KEPT.min(self.stream.context.properties.memory / 16);
        theirs.trim(most);
    }
}

/// An array in a GPU's memory. Whatever bits lie there are elements.
pub struct DeviceArray<E> {
    pointer: DevicePointer<E>,
    len: usize,
    bytes: usize,
    copied_in: bool,
    memory: Arc<Memory>,
}

impl<E> DeviceArray<E> {
    /// The address on the GPU.
    pub fn pointer(&self) -> DevicePointer<E> {
        self.pointer
    }

    /// The number of elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// All of it, to read.
    pub fn view(&self) -> DeviceSlice<'_, E> {
        // SAFETY: so many elements lie there. The memory is handed out again only for work that queues behind this.
        unsafe { DeviceSlice::new(self.pointer, self.len) }
    }

    /// All of it, to write.
    pub fn view_mut(&mut self) -> DeviceSliceMut<'_, E> {
        // SAFETY: so many elements lie there, and the array is borrowed mutably. The memory is handed out again only
        // for work that queues behind this.
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
        // SAFETY: the array has them from `allocate`, and is gone.
        unsafe { self.memory.idle().put(self.pointer.address(), self.bytes) };
        self.memory.trim(KEPT);
    }
}

#[cfg(test)]
mod tests {
    //! Device memory runs out at any place of any call: from the n-th allocation on all fail, for every n.

    use super::*;
    use crate::backend::cuda::runtime::{first_usable, Context};
    use crate::{CgOptions, Complex, Density, Device, Geometry, Method, Normal, Options, Plan};
    use std::cell::Cell;

    thread_local! {
        /// This thread's allocations until they begin to fail; 0 for never.
        static LEFT: Cell<usize> = const { Cell::new(0) };
        static REFUSED: Cell<usize> = const { Cell::new(0) };
        /// Plans' memories that this thread has made and not given back. An array that were lost would keep one.
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

    /// A call with outputs that it leaves alone when it fails.
    struct Call<'a> {
        name: &'a str,
        out: usize,
        run: &'a dyn Fn(&Plan<f32>, &mut [Complex<f32>]) -> Result<()>,
    }

    /// What was seen of all calls: failures that were reported, and that the call did without.
    #[derive(Default)]
    struct Seen {
        reported: usize,
        done_without: usize,
    }

    /// Lets the call fail at every allocation, on a plan of its own each time.
    fn fail(context: &Context, what: &str, make: &dyn Fn() -> Result<Plan<f32>>, call: &Call<'_>, seen: &mut Seen) {
        let Call { name, out, run } = *call;
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
        let mut seen = Seen::default();
        for (what, dims, method, normal, with_maps) in cases {
            let (samples, voxels) = (700, dims.iter().product::<usize>());
            let mut k: Vec<Vec<f32>> = (0..dims.len()).map(|a| numbers(samples, 0.618_034 * (a + 1) as f32)).collect();
            // Gridding wants the centre of k-space.
            k.iter_mut().for_each(|k| k[0] = 0.0);
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
                fail(&context, what, &make, &Call { name, out, run: &run }, &mut seen);
            }
        }
        eprintln!("device allocations refused: {} reported, {} done without", seen.reported, seen.done_without);
        assert!(seen.reported > 100, "only {} failures were met", seen.reported);
        assert_eq!(LIVE.get(), 0, "plans' memories that are left");
    }
}
