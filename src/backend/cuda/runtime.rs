//! GPUs, their contexts, streams and modules: what kernels run on. Every call leaves the caller's current context as it
//! was.

use super::compile::{self, Kernels};
use super::idle::Idle;
use super::library::{check, driver};
use crate::base::error::{bail, ErrorKind, Result};
use cudarc::driver::sys as cu;
use std::collections::HashMap;
use std::ffi::{c_void, CString};
use std::marker::PhantomData;
use std::ptr::{null_mut, NonNull};
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// The oldest compute capability that kernels are written for.
const OLDEST_ARCHITECTURE: (u32, u32) = (7, 5);

/// What a GPU is.
#[derive(Debug, Clone, PartialEq)]
pub struct Properties {
    /// Its name.
    pub name: String,
    /// Compute capability, for example (9, 0).
    pub capability: (u32, u32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of its memory.
    pub memory: usize,
    /// Bytes of level 2 cache.
    pub cache: usize,
    /// Bytes of shared memory that a block may ask for.
    pub shared: usize,
}

impl Properties {
    /// The architecture as compilers name it: `sm_90`.
    pub fn architecture(&self) -> String {
        format!("sm_{}{}", self.capability.0, self.capability.1)
    }

    /// Whether there are kernels for it.
    pub fn supported(&self) -> bool {
        self.capability >= OLDEST_ARCHITECTURE
    }
}

/// GPUs that the driver shows; 0 without a driver.
pub fn count() -> u32 {
    let mut count = 0;
    // SAFETY: the driver has started.
    match driver().and_then(|()| check(unsafe { cu::cuDeviceGetCount(&mut count) }, "counting GPUs")) {
        Ok(()) => count as u32,
        Err(e) => {
            // Whoever has had a GPU wants to know why it is gone.
            let level = if e.kind() == ErrorKind::DeviceFailed { log::Level::Warn } else { log::Level::Debug };
            log::log!(level, "no GPU is used: {e}");
            0
        }
    }
}

/// The first GPU that there are kernels for.
pub fn first_usable() -> Option<u32> {
    (0..count()).find(|&index| properties(index).is_ok_and(|p| p.supported()))
}

/// What GPU `index` is.
pub fn properties(index: u32) -> Result<Properties> {
    let device = device(index)?;
    let attribute = |which| -> Result<u32> {
        let mut value = 0;
        // SAFETY: the device exists.
        check(unsafe { cu::cuDeviceGetAttribute(&mut value, which, device) }, "asking what the GPU is")?;
        Ok(value as u32)
    };
    let mut name = [0; 256];
    let mut memory = 0;
    // SAFETY: the device exists; the name has room for 256 characters, the last of which stays 0.
    unsafe {
        check(cu::cuDeviceGetName(name.as_mut_ptr(), 255, device), "asking for the GPU's name")?;
        check(cu::cuDeviceTotalMem_v2(&mut memory, device), "asking for the GPU's memory")?;
    }
    // SAFETY: the driver ends the name with 0.
    let name = unsafe { std::ffi::CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
    use cu::CUdevice_attribute::*;
    Ok(Properties {
        name,
        capability: (
            attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        memory,
        cache: attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)? as usize,
        shared: attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? as usize,
    })
}

fn device(index: u32) -> Result<cu::CUdevice> {
    driver()?;
    let count = count();
    if index >= count {
        bail!(
            NoDevice,
            "there is no GPU {index}: the NVIDIA driver shows {count} (CUDA_VISIBLE_DEVICES counts); use a lower \
             index, or device cpu"
        );
    }
    let mut device = 0;
    // SAFETY: the driver has started.
    check(unsafe { cu::cuDeviceGet(&mut device, index as i32) }, "finding the GPU")?;
    Ok(device)
}

/// A GPU's primary context, held as long as a plan needs it, and the modules loaded there.
pub struct Context {
    /// The GPU's index.
    pub index: u32,
    /// What the GPU is.
    pub properties: Properties,
    device: cu::CUdevice,
    handle: cu::CUcontext,
    modules: Mutex<HashMap<u64, Arc<OnceLock<Result<Arc<Module>>>>>>,
    /// What plans that are gone have left for those to come.
    idle: Mutex<Idle>,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Context {}
// SAFETY: any number of threads may use the driver at the same time.
unsafe impl Sync for Context {}

impl Context {
    /// The context of a GPU, shared by all plans that live there.
    pub fn of(index: u32) -> Result<Arc<Context>> {
        driver()?;
        // Holds nothing alive: with its last plan a GPU's context is given back.
        static LIVE: Mutex<Vec<(u32, Weak<Context>)>> = Mutex::new(Vec::new());
        let mut live = LIVE.lock().unwrap_or_else(|e| e.into_inner());
        live.retain(|(_, context)| context.strong_count() > 0);
        if let Some(context) = live.iter().find(|(i, _)| *i == index).and_then(|(_, context)| context.upgrade()) {
            return Ok(context);
        }
        let device = device(index)?;
        let properties = properties(index)?;
        if !properties.supported() {
            bail!(
                NoDevice,
                "GPU {index} ({}) has compute capability {}.{}, at least {}.{} is needed: use another, or device cpu",
                properties.name,
                properties.capability.0,
                properties.capability.1,
                OLDEST_ARCHITECTURE.0,
                OLDEST_ARCHITECTURE.1
            );
        }
        let mut handle = null_mut();
        // SAFETY: the device exists; released when this is dropped.
        check(unsafe { cu::cuDevicePrimaryCtxRetain(&mut handle, device) }, &format!("starting GPU {index}"))?;
        let context =
            Arc::new(Context { index, properties, device, handle, modules: Mutex::default(), idle: Mutex::default() });
        live.push((index, Arc::downgrade(&context)));
        Ok(context)
    }

    /// Makes this context the thread's current one until the guard goes.
    pub fn enter(&self) -> Entered<'_> {
        // SAFETY: the context is retained while self lives. Should it fail, so will the calls that follow, and say so.
        let pushed = unsafe { cu::cuCtxPushCurrent_v2(self.handle) } == cu::CUresult::CUDA_SUCCESS;
        Entered { pushed, context: PhantomData }
    }

    /// Lets copies from another GPU come straight to this one, where the machine can do that; else they go through the
    /// host's memory. It stays so: whoever else uses the context may have asked for the same.
    pub fn reach(&self, other: &Context) -> Result<()> {
        let mut can = 0;
        // SAFETY: both devices exist.
        check(unsafe { cu::cuDeviceCanAccessPeer(&mut can, self.device, other.device) }, "asking how GPUs are linked")?;
        if can == 0 {
            log::info!("GPUs {} and {} exchange data through the host's memory", self.index, other.index);
            return Ok(());
        }
        let _current = self.enter();
        // SAFETY: this context is current, the other exists.
        match unsafe { cu::cuCtxEnablePeerAccess(other.handle, 0) } {
            cu::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(()),
            status => check(status, "linking GPUs"),
        }
    }

    /// The driver's handle.
    pub fn handle(&self) -> cu::CUcontext {
        self.handle
    }

    /// Memory that plans have left.
    pub fn idle(&self) -> std::sync::MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Frees the memory that plans have left.
    pub fn free_idle_memory(&self) {
        let _current = self.enter();
        self.idle().trim(0);
    }

    /// Bytes of the GPU's memory that nobody uses.
    pub fn free_memory(&self) -> Result<usize> {
        let _current = self.enter();
        let (mut free, mut total) = (0, 0);
        // SAFETY: the context is current.
        check(unsafe { cu::cuMemGetInfo_v2(&mut free, &mut total) }, "asking for free memory")?;
        Ok(free)
    }

    /// The module of these kernels, from the process, the disk, or the compiler.
    pub fn module(self: &Arc<Self>, kernels: &Kernels) -> Result<Arc<Module>> {
        let key = kernels.key();
        let slot = self.modules.lock().unwrap_or_else(|e| e.into_inner()).entry(key).or_default().clone();
        // Several threads may load different kernels at once; those that want the same wait for the first.
        let loaded = slot.get_or_init(|| self.load(kernels).map(Arc::new));
        if loaded.is_err() {
            // Next time may go better: an NVRTC installed meanwhile, a folder made writable.
            self.modules.lock().unwrap_or_else(|e| e.into_inner()).remove(&key);
        }
        loaded.clone()
    }

    fn load(&self, kernels: &Kernels) -> Result<Module> {
        let architecture = self.properties.architecture();
        let load = |code: &[u8]| -> Result<Module> {
            let _current = self.enter();
            let mut handle = null_mut();
            // SAFETY: the context is current, the code is a whole cubin; its size is in itself.
            let status = unsafe { cu::cuModuleLoadData(&mut handle, code.as_ptr().cast()) };
            check(status, &format!("loading the kernels {} for {architecture}", kernels.name))?;
            Ok(Module { handle, context: self.handle })
        };
        compile::code(kernels, &architecture, compile::cache_folder().as_deref(), load)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        {
            let _current = self.enter();
            self.idle().trim(0);
        }
        // Modules go before their context.
        self.modules.lock().unwrap_or_else(|e| e.into_inner()).clear();
        // SAFETY: retained once, in `of`.
        unsafe { cu::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// While it lives the context is the thread's current one.
pub struct Entered<'a> {
    pushed: bool,
    context: PhantomData<(&'a Context, *mut ())>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if self.pushed {
            let mut popped = null_mut();
            // SAFETY: pops what `enter` pushed on this thread: the guard does not leave it, and guards nest.
            unsafe { cu::cuCtxPopCurrent_v2(&mut popped) };
        }
    }
}

/// Kernels loaded on a GPU.
pub struct Module {
    handle: cu::CUmodule,
    context: cu::CUcontext,
}

// SAFETY: as for Context.
unsafe impl Send for Module {}
// SAFETY: as for Context.
unsafe impl Sync for Module {}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: loaded in this context, which lives on: whoever holds a module holds the context too.
        unsafe {
            if cu::cuCtxPushCurrent_v2(self.context) == cu::CUresult::CUDA_SUCCESS {
                cu::cuModuleUnload(self.handle);
                cu::cuCtxPopCurrent_v2(&mut null_mut());
            }
        }
    }
}

/// One kernel, with the module it is from.
#[derive(Clone)]
pub struct Function {
    handle: NonNull<cu::CUfunc_st>,
    name: &'static str,
    _module: Arc<Module>,
    // After the module, which is unloaded first.
    _context: Arc<Context>,
}

// SAFETY: as for Context.
unsafe impl Send for Function {}
// SAFETY: as for Context.
unsafe impl Sync for Function {}

impl Function {
    /// The kernel of this name. `shared` is the dynamic shared memory in bytes that launches may ask for.
    pub fn new(context: &Arc<Context>, module: &Arc<Module>, name: &'static str, shared: usize) -> Result<Self> {
        let _current = context.enter();
        let symbol = CString::new(name).expect("names of kernels have no zeros");
        let mut handle = null_mut();
        // SAFETY: the module is loaded; the name ends in 0.
        check(unsafe { cu::cuModuleGetFunction(&mut handle, module.handle, symbol.as_ptr()) }, name)?;
        if shared > 48 << 10 {
            let which = cu::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function exists.
            check(unsafe { cu::cuFuncSetAttribute(handle, which, shared as i32) }, name)?;
        }
        let handle = NonNull::new(handle).expect("the driver gave a function");
        Ok(Function { handle, name, _module: module.clone(), _context: context.clone() })
    }
}

/// A queue of work on a GPU: the plan's own, or the caller's.
pub struct Stream {
    /// The GPU.
    pub context: Arc<Context>,
    handle: cu::CUstream,
    owned: bool,
}

// SAFETY: as for Context.
unsafe impl Send for Stream {}
// SAFETY: as for Context.
unsafe impl Sync for Stream {}

impl Stream {
    /// A stream of its own, which no other waits for.
    pub fn new(context: &Arc<Context>) -> Result<Self> {
        let _current = context.enter();
        let mut handle = null_mut();
        let flags = cu::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the context is current; destroyed when this is dropped.
        check(unsafe { cu::cuStreamCreate(&mut handle, flags) }, "making a stream")?;
        Ok(Stream { context: context.clone(), handle, owned: true })
    }

    /// The caller's stream, a CUstream or cudaStream_t of the GPU's primary context.
    ///
    /// # Safety
    /// It lives as long as this.
    pub unsafe fn borrowed(context: &Arc<Context>, stream: *mut c_void) -> Self {
        Stream { context: context.clone(), handle: stream.cast(), owned: false }
    }

    /// The driver's handle.
    pub fn handle(&self) -> cu::CUstream {
        self.handle
    }

    /// An event that comes when all that is queued by now is done.
    pub fn mark(&self) -> Result<Event> {
        let event = Event::new(&self.context)?;
        let _current = self.context.enter();
        // SAFETY: event and stream exist, in the same context.
        check(unsafe { cu::cuEventRecord(event.handle, self.handle) }, "recording an event")?;
        Ok(event)
    }

    /// What is queued from now on waits for an event, of this GPU or another.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        let _current = self.context.enter();
        // SAFETY: event and stream exist.
        check(unsafe { cu::cuStreamWaitEvent(self.handle, event.handle, 0) }, "waiting for an event")
    }

    /// Waits until everything queued is done.
    pub fn synchronize(&self) -> Result<()> {
        let _current = self.context.enter();
        // SAFETY: the stream exists.
        check(unsafe { cu::cuStreamSynchronize(self.handle) }, "computing on the GPU")
    }

    /// Queues a kernel.
    ///
    /// # Safety
    /// `arguments` are addresses of the kernel's parameters, of their types and in their order; what those point to is
    /// memory of this GPU that stays until the kernel has run.
    pub unsafe fn launch(
        &self,
        function: &Function,
        grid: [u32; 3],
        block: [u32; 3],
        shared: usize,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        let _current = self.context.enter();
        let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
        // SAFETY: the caller's promise; stream and function exist.
        let status = unsafe {
            cu::cuLaunchKernel(
                function.handle.as_ptr(),
                gx,
                gy,
                gz,
                bx,
                by,
                bz,
                shared as u32,
                self.handle,
                arguments.as_mut_ptr(),
                null_mut(),
            )
        };
        check(status, function.name)
    }
}

/// A place in a stream.
pub struct Event {
    context: Arc<Context>,
    handle: cu::CUevent,
}

// SAFETY: as for Context.
unsafe impl Send for Event {}
// SAFETY: as for Context.
unsafe impl Sync for Event {}

impl Event {
    fn new(context: &Arc<Context>) -> Result<Self> {
        let _current = context.enter();
        let mut handle = null_mut();
        let flags = cu::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: the context is current; destroyed when this is dropped.
        check(unsafe { cu::cuEventCreate(&mut handle, flags) }, "making an event")?;
        Ok(Event { context: context.clone(), handle })
    }

    /// Whether it has come.
    pub fn has_come(&self) -> bool {
        let _current = self.context.enter();
        // SAFETY: the event exists.
        unsafe { cu::cuEventQuery(self.handle) == cu::CUresult::CUDA_SUCCESS }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let _current = self.context.enter();
        // SAFETY: the event exists; the driver keeps what a stream still waits for.
        unsafe { cu::cuEventDestroy_v2(self.handle) };
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _current = self.context.enter();
        // SAFETY: the stream exists; what it still runs uses memory that is freed afterwards.
        unsafe {
            cu::cuStreamSynchronize(self.handle);
            if self.owned {
                cu::cuStreamDestroy_v2(self.handle);
            }
        }
    }
}
