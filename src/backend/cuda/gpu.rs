//! A plan's place on one GPU: its stream, its memory, its kernels, and the first thing that went wrong there.

use super::compile::Kernels;
use super::library::check;
use super::memory::{DeviceArray, Memory};
use super::runtime::{Context, Event, Function, Properties, Stream};
use crate::backend::{DeviceSlice, DeviceSliceMut, Element, Span};
use crate::base::error::{Error, Result};
use cudarc::driver::sys as cu;
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

/// Where a plan computes. Work is queued in the order of the calls; a failure shows in the next call that waits.
pub struct Gpu {
    stream: Arc<Stream>,
    memory: Arc<Memory>,
    /// Whether the stream is the caller's, who then waits for results.
    borrowed: bool,
    fault: Mutex<Option<Error>>,
}

impl Gpu {
    /// A place on GPU `index`, on a stream of its own or the caller's.
    ///
    /// # Safety
    /// The caller's stream belongs to the GPU's primary context and outlives this.
    pub unsafe fn new(index: u32, stream: Option<*mut c_void>) -> Result<Self> {
        let context = Context::of(index)?;
        let borrowed = stream.is_some();
        let stream = Arc::new(match stream {
            // SAFETY: the caller's promise.
            Some(stream) => unsafe { Stream::borrowed(&context, stream) },
            None => Stream::new(&context)?,
        });
        Ok(Gpu { memory: Memory::new(stream.clone())?, stream, borrowed, fault: Mutex::default() })
    }

    /// Lets data go straight between this GPU and another, both ways, where they can.
    pub fn link(&self, other: &Gpu) -> Result<()> {
        self.stream.context.reach(&other.stream.context)?;
        other.stream.context.reach(&self.stream.context)
    }

    /// What the GPU is.
    pub fn properties(&self) -> &Properties {
        &self.stream.context.properties
    }

    /// The GPU's index.
    pub fn index(&self) -> u32 {
        self.stream.context.index
    }

    /// Bytes held on the GPU.
    pub fn held(&self) -> usize {
        self.memory.held()
    }

    /// One of these kernels. `shared` is the dynamic shared memory in bytes that launches may ask for.
    pub fn function(&self, kernels: &Kernels, name: &'static str, shared: usize) -> Result<Function> {
        let module = self.stream.context.module(kernels)?;
        Function::new(&self.stream.context, &module, name, shared)
    }

    /// An array whose contents are whatever was there: for what a kernel writes whole.
    pub fn array<E: Element>(&self, len: usize, what: &str) -> Result<DeviceArray<E>> {
        self.memory.array(len, what)
    }

    /// A zeroed array.
    pub fn zeros<E: Element>(&self, len: usize, what: &str) -> Result<DeviceArray<E>> {
        let mut array = self.memory.array::<E>(len, what)?;
        self.clear(array.view_mut());
        Ok(array)
    }

    /// A copy of the host's array, which may change as soon as this returns.
    pub fn upload<E: Element>(&self, host: &[E], what: &str) -> Result<DeviceArray<E>> {
        let array = self.memory.array::<E>(host.len(), what)?;
        {
            let _current = self.stream.context.enter();
            let (to, from, bytes) = (array.pointer().address(), host.as_ptr().cast(), std::mem::size_of_val(host));
            // SAFETY: both have so many bytes; the stream exists.
            check(unsafe { cu::cuMemcpyHtoDAsync_v2(to, from, bytes, self.stream.handle()) }, what)?;
        }
        self.synchronize()?;
        Ok(array)
    }

    /// A copy of a host's array, beside the work that is under way.
    ///
    /// # Safety
    /// The array stays as it is until this GPU has been waited for.
    pub unsafe fn copy_in<E: Element>(&self, host: &[E], what: &str) -> Result<DeviceArray<E>> {
        // SAFETY: the caller's promise.
        unsafe { self.memory.copy_in(host, what) }
    }

    /// What is queued by now, for [`Gpu::copy_out`].
    pub fn mark(&self) -> Result<Event> {
        self.stream.mark()
    }

    /// Copies to the caller's array what was made before `ready`, beside the work queued since, and waits.
    pub fn copy_out<E: Element>(&self, from: DeviceSlice<'_, E>, host: &mut [E], ready: Option<Event>) -> Result<()> {
        // A kernel that could not be queued must not reach the caller as what lay there before.
        self.check_queued()?;
        let copies = self.memory.copies();
        copies.wait_for(&ready.map_or_else(|| self.stream.mark(), Ok)?)?;
        self.copy_to_host(from, host, copies)?;
        copies.synchronize()
    }

    /// Copies from the GPU, and waits.
    pub fn download<E: Element>(&self, from: DeviceSlice<'_, E>, host: &mut [E]) -> Result<()> {
        self.copy_to_host(from, host, &self.stream)?;
        self.synchronize()
    }

    fn copy_to_host<E: Element>(&self, from: DeviceSlice<'_, E>, host: &mut [E], stream: &Stream) -> Result<()> {
        assert_eq!(from.len(), host.len());
        let _current = self.stream.context.enter();
        let (to, from, bytes) = (host.as_mut_ptr().cast(), from.pointer().address(), std::mem::size_of_val(host));
        // SAFETY: both have so many bytes, of which any are elements; whoever calls this waits for the stream.
        check(unsafe { cu::cuMemcpyDtoHAsync_v2(to, from, bytes, stream.handle()) }, "copying from the GPU")
    }

    /// Queues zeroing.
    pub fn clear<E: Element>(&self, to: DeviceSliceMut<'_, E>) {
        self.fill(to, 0);
    }

    /// Queues setting every byte.
    pub fn fill<E: Element>(&self, to: DeviceSliceMut<'_, E>, byte: u8) {
        let (address, bytes) = (to.pointer().address(), to.len() * size_of::<E>());
        if bytes == 0 {
            return;
        }
        let _current = self.stream.context.enter();
        // SAFETY: the slice has so many bytes, of which any are elements.
        self.note(check(unsafe { cu::cuMemsetD8Async(address, byte, bytes, self.stream.handle()) }, "filling"));
    }

    /// Queues a copy within the GPU.
    pub fn copy<E: Element>(&self, from: DeviceSlice<'_, E>, to: DeviceSliceMut<'_, E>) {
        assert_eq!(from.len(), to.len());
        let (from, to, bytes) = (from.pointer().address(), to.pointer().address(), from.len() * size_of::<E>());
        let _current = self.stream.context.enter();
        // SAFETY: both slices have so many bytes.
        self.note(check(unsafe { cu::cuMemcpyDtoDAsync_v2(to, from, bytes, self.stream.handle()) }, "copying"));
    }

    /// Queues a copy between GPUs, one of which is this one, here.
    pub fn copy_between<E: Element>(
        &self,
        from_gpu: &Gpu,
        from: DeviceSlice<'_, E>,
        to_gpu: &Gpu,
        to: DeviceSliceMut<'_, E>,
    ) {
        assert_eq!(from.len(), to.len());
        let (from, to, bytes) = (from.pointer().address(), to.pointer().address(), from.len() * size_of::<E>());
        let _current = self.stream.context.enter();
        let (from_context, to_context) = (from_gpu.stream.context.handle(), to_gpu.stream.context.handle());
        // SAFETY: both slices have so many bytes.
        let status = unsafe { cu::cuMemcpyPeerAsync(to, to_context, from, from_context, bytes, self.stream.handle()) };
        self.note(check(status, "copying between GPUs"));
    }

    /// What is queued from now on waits for all that is queued on another GPU's stream by now.
    pub fn order_after(&self, other: &Gpu) {
        self.note(other.stream.mark().and_then(|event| self.stream.wait_for(&event)));
    }

    /// Queues a kernel; see `launch!` for a way to write it.
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

    fn note(&self, result: Result<()>) {
        if let Err(e) = result {
            self.fault.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(e);
        }
    }

    /// Waits for all that was queued, and says what went wrong.
    pub fn synchronize(&self) -> Result<()> {
        let waited = self.stream.synchronize();
        match self.fault.lock().unwrap_or_else(|e| e.into_inner()).take() {
            // What failed first says more.
            Some(e) => Err(e),
            None => waited,
        }
    }

    /// Ends a call whose results stay on the GPU: on the caller's stream they are waited for there.
    pub fn finish(&self) -> Result<()> {
        if self.borrowed {
            // The caller's arrays on the host may go when the call has ended.
            self.memory.copies().synchronize()?;
            self.check_queued()
        } else {
            self.synchronize()
        }
    }

    /// Says whether anything could not be queued, without waiting.
    pub fn check_queued(&self) -> Result<()> {
        match self.fault.lock().unwrap_or_else(|e| e.into_inner()).take() {
            Some(e) => Err(e),
            None => Ok(()),
        }
    }
}

/// Queues a kernel: `launch!(gpu, function, grid, block, shared; arguments...)`, the arguments being places or values
/// of the parameters' types. Unsafe, as [`Gpu::launch`] is.
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
