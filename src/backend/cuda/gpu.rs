//! State of a plan on one GPU: stream, memory, kernels, and the first failure.

use super::compile::Kernels;
use super::copies;
use super::library::{check, PointerOwner};
use super::memory::{DeviceArray, DeviceMemory};
use super::runtime::{Context, Event, Function, Properties, Stream};
use crate::backend::threads::CopyThreads;
use crate::backend::{DevicePointer, DeviceSlice, DeviceSliceMut, Element, Span};
use crate::base::error::{bail, Error, Result};
use cudarc::driver::sys as cu;
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

/// A GPU on which a plan computes. Work is queued in the order of the calls. A failure is reported by the next call
/// that waits.
pub struct Gpu {
    stream: Arc<Stream>,
    memory: Arc<DeviceMemory>,
    /// Whether the stream is the caller's, who then waits for results.
    borrowed: bool,
    fault: Mutex<Option<Error>>,
}

impl Gpu {
    /// Opens GPU `index`, with a new stream or the caller's. At most `threads` threads of the CPU copy and check arrays
    /// of the host; 0 means as many as the machine runs at once.
    ///
    /// # Safety
    /// The caller's stream belongs to the GPU's primary context and outlives this.
    pub unsafe fn new(index: u32, stream: Option<*mut c_void>, threads: usize) -> Result<Self> {
        let context = Context::of(index)?;
        let borrowed = stream.is_some();
        let stream = Arc::new(match stream {
            // SAFETY: the caller's promise.
            Some(stream) => unsafe { Stream::borrowed(&context, stream) },
            None => Stream::new(&context)?,
        });
        Ok(Gpu {
            memory: DeviceMemory::new(stream.clone(), CopyThreads::new(threads))?,
            stream,
            borrowed,
            fault: Mutex::default(),
        })
    }

    /// Returns the threads of the CPU that copy and check arrays of the host.
    pub fn threads(&self) -> &CopyThreads {
        self.memory.threads()
    }

    /// Enables direct copies between this GPU and a different one in both directions, if possible.
    pub fn link(&self, other: &Gpu) -> Result<()> {
        self.stream.context.reach(&other.stream.context)?;
        other.stream.context.reach(&self.stream.context)
    }

    /// Returns the properties of the GPU.
    pub fn properties(&self) -> &Properties {
        &self.stream.context.properties
    }

    /// Returns the index of the GPU.
    pub fn index(&self) -> u32 {
        self.stream.context.index
    }

    /// Returns the stream on which work is queued.
    pub fn stream(&self) -> &Arc<Stream> {
        &self.stream
    }

    /// Returns the bytes held on the GPU.
    pub fn held(&self) -> usize {
        self.memory.held()
    }

    /// Loads these kernels in parallel. A failure is reported when one of them is used.
    pub fn load(&self, kernels: &[Kernels]) {
        self.stream.context.load_all(kernels);
    }

    /// Returns one of these kernels. `shared` is the maximum dynamic shared memory of its launches in bytes.
    pub fn function(&self, kernels: &Kernels, name: &'static str, shared: usize) -> Result<Function> {
        let module = self.stream.context.module(kernels)?;
        Function::new(&self.stream.context, &module, name, shared)
    }

    /// Returns an array with undefined contents, for kernels that write all of it.
    pub fn array<E: Element>(&self, len: usize, what: &str) -> Result<DeviceArray<E>> {
        self.memory.array(len, what)
    }

    /// Returns a zeroed array.
    pub fn zeros<E: Element>(&self, len: usize, what: &str) -> Result<DeviceArray<E>> {
        let mut array = self.memory.array::<E>(len, what)?;
        self.clear(array.view_mut());
        Ok(array)
    }

    /// Copies a host array to the GPU, and waits.
    pub fn upload<E: Element>(&self, host: &[E], what: &str) -> Result<DeviceArray<E>> {
        let array = self.send(host, what)?;
        self.synchronize()?;
        Ok(array)
    }

    /// Queues copying a host array to the GPU. The host array may change when this returns.
    pub fn send<E: Element>(&self, host: &[E], what: &str) -> Result<DeviceArray<E>> {
        let array = self.memory.array::<E>(host.len(), what)?;
        let is_ordinary = {
            let _current = self.stream.context.enter()?;
            // SAFETY: both have this number of bytes; the stream exists. The driver returns when it has copied ordinary
            // memory to memory of its own ("API synchronization behavior" in its manual). Other memory is waited for.
            let queued = unsafe {
                copies::copy_in(&self.stream.context, self.threads(), host, array.pointer().address(), &self.stream)
            };
            queued.map_err(|e| e.within(what))?;
            PointerOwner::of(host.as_ptr() as u64).is_none()
        };
        if !is_ordinary {
            self.synchronize()?;
        }
        Ok(array)
    }

    /// Copies a host array to the GPU, in parallel with running work.
    ///
    /// # Safety
    /// The array must not change until this GPU has been waited for.
    pub unsafe fn copy_in<E: Element>(&self, host: &[E], what: &str) -> Result<DeviceArray<E>> {
        // SAFETY: the caller's promise.
        unsafe { self.memory.copy_in(host, what) }
    }

    /// Returns an event for the work queued so far, for [`Gpu::copy_out`].
    pub fn mark(&self) -> Result<Event> {
        self.stream.mark()
    }

    /// Copies results that were complete at `ready` to the caller's array, in parallel with work queued since, and
    /// waits.
    pub fn copy_out<E: Element>(&self, from: DeviceSlice<'_, E>, host: &mut [E], ready: Option<Event>) -> Result<()> {
        // If a kernel could not be queued, the caller must not receive the previous contents.
        self.check_queued()?;
        let copies = self.memory.copies();
        copies.wait_for(&ready.map_or_else(|| self.stream.mark(), Ok)?)?;
        self.copy_to_host(from, host, copies)?;
        copies.synchronize()
    }

    /// Returns an error unless an address of the caller is in the memory of this GPU.
    pub fn check_address(&self, address: usize) -> Result<()> {
        let _current = self.stream.context.enter();
        let gpu = PointerOwner::of(address as u64).and_then(|owner| owner.gpu());
        if gpu != Some(self.index()) {
            let place = match gpu {
                Some(gpu) => format!("in the memory of GPU {gpu}"),
                None => "not in the memory of a GPU".to_owned(),
            };
            bail!(
                InvalidArgument,
                "the address {address:#x} of the geometry is {place}, but the plan is on GPU {}: give arrays there, or \
                 give the geometry in host memory",
                self.index()
            );
        }
        Ok(())
    }

    /// Copies from the GPU and waits.
    pub fn download<E: Element>(&self, from: DeviceSlice<'_, E>, host: &mut [E]) -> Result<()> {
        self.copy_to_host(from, host, &self.stream)?;
        self.synchronize()
    }

    fn copy_to_host<E: Element>(&self, from: DeviceSlice<'_, E>, host: &mut [E], stream: &Stream) -> Result<()> {
        assert_eq!(from.len(), host.len());
        let _current = self.stream.context.enter()?;
        // SAFETY: both have this number of bytes; the callers wait for the stream.
        unsafe { copies::copy_out(&self.stream.context, self.threads(), from.pointer().address(), host, stream) }
    }

    /// Queues setting all bytes to 0.
    pub fn clear<E: Element>(&self, to: DeviceSliceMut<'_, E>) {
        self.fill(to, 0);
    }

    /// Queues setting all bytes to `byte`.
    pub fn fill<E: Element>(&self, to: DeviceSliceMut<'_, E>, byte: u8) {
        let (address, bytes) = (to.pointer().address(), to.len() * size_of::<E>());
        if bytes == 0 {
            return;
        }
        self.note(self.stream.context.enter().and_then(|_current| {
            // SAFETY: the slice has this number of bytes, and any bits are valid elements.
            check(unsafe { cu::cuMemsetD8Async(address, byte, bytes, self.stream.handle()) }, "filling")
        }));
    }

    /// Queues setting one word of an array to 0, while other words of the array are in use.
    pub fn clear_word(&self, word: DevicePointer<u64>) {
        self.note(self.stream.context.enter().and_then(|_current| {
            // SAFETY: the caller has the pointer of an array's element.
            check(unsafe { cu::cuMemsetD8Async(word.address(), 0, size_of::<u64>(), self.stream.handle()) }, "filling")
        }));
    }

    /// Queues a copy within the GPU.
    pub fn copy<E: Element>(&self, from: DeviceSlice<'_, E>, to: DeviceSliceMut<'_, E>) {
        assert_eq!(from.len(), to.len());
        let (from, to, bytes) = (from.pointer().address(), to.pointer().address(), from.len() * size_of::<E>());
        self.note(self.stream.context.enter().and_then(|_current| {
            // SAFETY: both slices have this number of bytes.
            check(unsafe { cu::cuMemcpyDtoDAsync_v2(to, from, bytes, self.stream.handle()) }, "copying")
        }));
    }

    /// Queues a copy between two GPUs, one of which is this one, on this GPU's stream.
    pub fn copy_between<E: Element>(
        &self,
        from_gpu: &Gpu,
        from: DeviceSlice<'_, E>,
        to_gpu: &Gpu,
        to: DeviceSliceMut<'_, E>,
    ) {
        assert_eq!(from.len(), to.len());
        let (from, to, bytes) = (from.pointer().address(), to.pointer().address(), from.len() * size_of::<E>());
        let (from_context, to_context) = (from_gpu.stream.context.handle(), to_gpu.stream.context.handle());
        self.note(self.stream.context.enter().and_then(|_current| {
            let stream = self.stream.handle();
            // SAFETY: both slices have this number of bytes.
            check(
                unsafe { cu::cuMemcpyPeerAsync(to, to_context, from, from_context, bytes, stream) },
                "copying between GPUs",
            )
        }));
    }

    /// Makes work that is queued from now on wait for all work queued so far on a different GPU's stream.
    pub fn order_after(&self, other: &Gpu) {
        self.note(other.stream.mark().and_then(|event| self.stream.wait_for(&event)));
    }

    /// Queues a kernel. The macro `launch!` is a shorter form.
    ///
    /// # Safety
    /// As for [`Stream::launch`].
    pub unsafe fn launch(
        &self,
        function: &Function,
        grid: [u32; 3],
        block: [u32; 3],
        shared: usize,
        arguments: &mut [*mut c_void],
    ) {
        // SAFETY: the caller's promise.
        self.note(unsafe { self.stream.launch(function, grid, block, shared, arguments) });
    }

    /// Returns a GPU that queues work on a different stream of the same context, with this one's memory.
    pub(super) fn with_stream(&self, stream: Arc<Stream>) -> Gpu {
        Gpu { stream, memory: self.memory.clone(), borrowed: false, fault: Mutex::default() }
    }

    /// Keeps the first failure for the next call that waits.
    pub(super) fn note(&self, result: Result<()>) {
        if let Err(e) = result {
            self.fault.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(e);
        }
    }

    /// Waits for all queued work, and returns the first failure.
    pub fn synchronize(&self) -> Result<()> {
        let waited = self.stream.synchronize();
        match self.fault.lock().unwrap_or_else(|e| e.into_inner()).take() {
            // The first failure is the cause.
            Some(e) => Err(e),
            None => waited,
        }
    }

    /// Ends a call whose results stay on the GPU. With the caller's stream, the caller waits for them.
    pub fn finish(&self) -> Result<()> {
        if self.borrowed {
            // The caller may free its host arrays when the call has ended.
            self.memory.wait_for_copies()?;
            self.check_queued()
        } else {
            self.synchronize()
        }
    }

    /// Returns the first failure to queue work, without waiting.
    pub fn check_queued(&self) -> Result<()> {
        match self.fault.lock().unwrap_or_else(|e| e.into_inner()).take() {
            Some(e) => Err(e),
            None => Ok(()),
        }
    }
}

/// Queues a kernel: `launch!(gpu, function, grid, block, shared; arguments...)`. The arguments are places or values of
/// the parameters' types. Unsafe like [`Gpu::launch`].
macro_rules! launch {
    ($gpu:expr, $function:expr, $grid:expr, $block:expr, $shared:expr; $($argument:expr),+ $(,)?) => {
        $gpu.launch(
            $function,
            $grid,
            $block,
            $shared,
            &mut [$((&raw const *&$argument).cast_mut().cast::<std::ffi::c_void>()),+],
        )
    };
}
pub(super) use launch;
