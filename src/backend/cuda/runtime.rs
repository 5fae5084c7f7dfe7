//! GPUs, their contexts, streams and modules. Each call restores the caller's current context.

use super::compile::{self, Kernels};
use super::host_word::{HostWord, HostWords};
use super::launch::Launch;
use super::library::{check, context_exists, context_number, driver};
use super::memory_cache::DeviceMemoryCache;
use super::staging::Staging;
use crate::base::error::{bail, ErrorKind, Result};
use crate::base::per_process::PerProcess;
use cudarc::driver::sys as cu;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{c_void, CString};
use std::marker::PhantomData;
use std::ptr::{null_mut, NonNull};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// Lowest compute capability that the kernels support.
const OLDEST_ARCHITECTURE: (u32, u32) = (7, 5);

/// Properties of a GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Properties {
    /// Name.
    pub name: String,
    /// Compute capability, for example (9, 0).
    pub capability: (u32, u32),
    /// Number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// Memory in bytes.
    pub memory: usize,
    /// Level-2 cache in bytes.
    pub cache: usize,
    /// Maximum shared memory of a block in bytes.
    pub shared: usize,
}

impl Properties {
    /// Returns the architecture in the compiler's notation: `sm_90`.
    pub fn architecture(&self) -> String {
        format!("sm_{}{}", self.capability.0, self.capability.1)
    }

    /// Returns whether the kernels support this GPU.
    pub fn supported(&self) -> bool {
        self.capability >= OLDEST_ARCHITECTURE
    }
}

/// Returns the number of GPUs that the driver reports; 0 without a driver.
pub fn count() -> u32 {
    let mut count = 0;
    // SAFETY: the driver has started.
    match driver().and_then(|()| check(unsafe { cu::cuDeviceGetCount(&mut count) }, "counting GPUs")) {
        Ok(()) => count as u32,
        Err(e) => {
            // Report a driver that failed, since the GPU may have worked before.
            let level = if e.kind() == ErrorKind::DeviceFailed { log::Level::Warn } else { log::Level::Debug };
            log::log!(level, "no GPU is used: {e}");
            0
        }
    }
}

/// Returns the index of the first supported GPU.
pub fn first_usable() -> Option<u32> {
    (0..count()).find(|&index| properties(index).is_ok_and(|p| p.supported()))
}

/// Returns whether the machine has a GPU, also one that cannot be used.
pub fn has_gpu() -> bool {
    match driver() {
        Ok(()) => count() > 0,
        Err(e) => e.kind() == ErrorKind::DeviceFailed,
    }
}

/// Returns the properties of GPU `index`. The driver is asked once.
pub fn properties(index: u32) -> Result<Properties> {
    static KNOWN: PerProcess<Mutex<BTreeMap<u32, Properties>>> =
        PerProcess::new(Mutex::new(BTreeMap::new()), |_| Mutex::new(BTreeMap::new()));
    driver()?;
    let known = || KNOWN.get().lock().unwrap_or_else(|e| e.into_inner());
    if let Some(properties) = known().get(&index) {
        return Ok(properties.clone());
    }
    let properties = ask_properties(index)?;
    known().insert(index, properties.clone());
    Ok(properties)
}

/// Asks the driver for the properties of GPU `index`.
fn ask_properties(index: u32) -> Result<Properties> {
    let device = device(index)?;
    let attribute = |which| -> Result<u32> {
        let mut value = 0;
        // SAFETY: the device exists.
        check(unsafe { cu::cuDeviceGetAttribute(&mut value, which, device) }, "asking what the GPU is")?;
        Ok(value as u32)
    };
    let mut name = [0; 256];
    let mut memory = 0;
    // SAFETY: the device exists; the buffer has 256 characters, the last of which stays 0.
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
            "there is no GPU {index}: the NVIDIA driver reports {count} (CUDA_VISIBLE_DEVICES may hide some); use a lower \
             index, or device cpu"
        );
    }
    let mut device = 0;
    // SAFETY: the driver has started.
    check(unsafe { cu::cuDeviceGet(&mut device, index as i32) }, "finding the GPU")?;
    Ok(device)
}

/// A primary context of the driver. Another part of the process can destroy it by a reset of the GPU
/// (`cudaDeviceReset`). The driver then creates a different context at the same address, and old streams, modules and
/// addresses must not reach the driver any more: it would crash, or free memory of another user.
#[derive(Clone, Copy)]
struct PrimaryContext {
    handle: cu::CUcontext,
    /// The driver's number of this context; `None` with drivers before CUDA 12, which have no such numbers.
    number: Option<u64>,
}

impl PrimaryContext {
    /// Returns whether the context still exists. Assumes so if the driver has no numbers of contexts.
    fn exists(&self) -> bool {
        self.number.is_none_or(|number| context_exists(self.handle, number))
    }

    /// Makes this context the thread's current one while the guard lives.
    fn enter<'a>(&self) -> Result<ContextGuard<'a>> {
        if !self.exists() {
            bail!(
                DeviceFailed,
                "the GPU was reset by another part of this process, which destroyed the plan's arrays: create the plan \
                 again"
            );
        }
        let mut current = null_mut();
        // SAFETY: the driver has started.
        let asked = unsafe { cu::cuCtxGetCurrent(&mut current) };
        // Usually the caller's context is this one, and nothing has to be changed.
        let pushed = asked != cu::CUresult::CUDA_SUCCESS || current != self.handle;
        if pushed {
            // SAFETY: the context exists, since its users hold it.
            check(unsafe { cu::cuCtxPushCurrent_v2(self.handle) }, "using the GPU")?;
        }
        Ok(ContextGuard { pushed, context: PhantomData })
    }
}

/// The primary context of a GPU, with loaded modules and unused memory and streams. [`Context::of`] returns the one
/// that all plans share.
pub struct Context {
    /// Index of the GPU.
    pub index: u32,
    /// Properties of the GPU.
    pub properties: Properties,
    device: cu::CUdevice,
    primary: PrimaryContext,
    modules: Mutex<HashMap<u64, ModuleSlot>>,
    /// Memory of deleted plans, for later plans.
    idle: Mutex<DeviceMemoryCache>,
    /// Streams of deleted plans without queued work, for later plans.
    idle_streams: Mutex<Vec<cu::CUstream>>,
    /// Host memory that kernels write.
    words: HostWords,
    /// Host memory through which arrays are copied.
    staging: Staging,
}

/// The module of one source with one set of options, once it is loaded.
type ModuleSlot = Arc<OnceLock<Result<Arc<Module>>>>;

/// Maximum number of idle streams: those of a few plans.
const MAX_IDLE_STREAMS: usize = 16;

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Context {}
// SAFETY: any number of threads may use the driver at the same time.
unsafe impl Sync for Context {}

impl Context {
    /// Starts the GPU, or joins other users of its primary context.
    pub(super) fn open(index: u32) -> Result<Context> {
        let device = device(index)?;
        let properties = properties(index)?;
        if !properties.supported() {
            bail!(
                NoDevice,
                "GPU {index} ({}) has compute capability {}.{}, at least {}.{} is required: use a different GPU, or device cpu",
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
        let primary = PrimaryContext { handle, number: context_number(handle) };
        let (modules, idle, idle_streams, words, staging) = Default::default();
        Ok(Context { index, properties, device, primary, modules, idle, idle_streams, words, staging })
    }

    /// Returns whether the driver's context still exists; `None` if the driver does not report it.
    pub(super) fn exists(&self) -> Option<bool> {
        self.primary.number.map(|_| self.primary.exists())
    }

    /// Makes this context the thread's current one while the guard lives.
    ///
    /// # Errors
    /// `DeviceFailed` if another part of the process has reset the GPU, or if the GPU has failed.
    pub fn enter(&self) -> Result<ContextGuard<'_>> {
        self.primary.enter()
    }

    /// Enables direct copies from a different GPU to this one, if the machine supports them. Otherwise copies go
    /// through host memory. The setting remains, because other users of the context may rely on it.
    pub fn reach(&self, other: &Context) -> Result<()> {
        let mut can = 0;
        // SAFETY: both devices exist.
        check(unsafe { cu::cuDeviceCanAccessPeer(&mut can, self.device, other.device) }, "asking how GPUs are linked")?;
        if can == 0 {
            log::info!("GPUs {} and {} exchange data through the host's memory", self.index, other.index);
            return Ok(());
        }
        let _current = self.enter()?;
        // SAFETY: this context is current, the other exists.
        match unsafe { cu::cuCtxEnablePeerAccess(other.primary.handle, 0) } {
            cu::CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => Ok(()),
            status => check(status, "linking GPUs"),
        }
    }

    /// Returns the driver's handle.
    pub fn handle(&self) -> cu::CUcontext {
        self.primary.handle
    }

    /// Returns the host memory through which arrays are copied.
    pub fn staging(&self) -> &Staging {
        &self.staging
    }

    /// Returns the memory of deleted plans.
    pub fn idle(&self) -> MutexGuard<'_, DeviceMemoryCache> {
        self.idle.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn idle_streams(&self) -> MutexGuard<'_, Vec<cu::CUstream>> {
        self.idle_streams.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn modules(&self) -> MutexGuard<'_, HashMap<u64, ModuleSlot>> {
        self.modules.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Frees the memory of deleted plans.
    pub fn free_idle_memory(&self) {
        // Memory and streams of a destroyed context do not exist any more.
        let Ok(_current) = self.enter() else { return };
        self.idle().trim(0);
        self.staging.free_idle();
        for stream in self.idle_streams().drain(..) {
            // SAFETY: the stream exists, and no work is queued on it.
            unsafe { cu::cuStreamDestroy_v2(stream) };
        }
    }

    /// Frees the memory of deleted plans, and unloads the modules that no plan uses.
    pub(super) fn release_unused(&self) {
        self.free_idle_memory();
        let is_used = |module: &Arc<Module>| Arc::strong_count(module) > 1;
        // A thread that waits for a module holds its slot.
        self.modules().retain(|_, slot| {
            Arc::strong_count(slot) > 1 || slot.get().is_some_and(|module| module.as_ref().is_ok_and(is_used))
        });
    }

    /// Returns a word of host memory that a kernel can write.
    pub fn host_word(self: &Arc<Self>, value: u64) -> Result<HostWord> {
        let _current = self.enter()?;
        // SAFETY: the context is current, and retained while self lives.
        unsafe { HostWord::new(&self.words, self.clone(), value) }
    }

    /// Returns the free memory of the GPU in bytes.
    pub fn free_memory(&self) -> Result<usize> {
        let _current = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the context is current.
        check(unsafe { cu::cuMemGetInfo_v2(&mut free, &mut total) }, "asking for free memory")?;
        Ok(free)
    }

    /// Returns the module of these kernels, from the process, the disk or the compiler.
    pub fn module(self: &Arc<Self>, kernels: &Kernels) -> Result<Arc<Module>> {
        let key = kernels.key();
        let slot = self.modules().entry(key).or_default().clone();
        // Several threads may load different kernels at once. Threads that need the same kernels wait for the first.
        let loaded = slot.get_or_init(|| self.load(kernels).map(Arc::new));
        if loaded.is_err() {
            // Not stored: a later attempt may succeed, for example after installing NVRTC or making the folder
            // writable.
            self.modules().remove(&key);
        }
        loaded.clone()
    }

    /// Loads those of these kernels that are not loaded yet, each in a thread of its own, because compiling one takes
    /// up to a second. A failure is reported by [`Context::module`], which then tries again.
    pub fn load_all(self: &Arc<Self>, all: &[Kernels]) {
        let mut missing: Vec<&Kernels> = Vec::new();
        for kernels in all {
            if !missing.contains(&kernels) && !self.has_module(kernels) {
                missing.push(kernels);
            }
        }
        // The calling thread loads the last one.
        let Some((last, others)) = missing.split_last() else { return };
        std::thread::scope(|scope| {
            for kernels in others {
                let load = || drop(self.module(kernels));
                // Without a thread, the kernels are loaded when they are used.
                if let Err(e) = std::thread::Builder::new().spawn_scoped(scope, load) {
                    log::debug!("no thread to load the kernels {}: {e}", kernels.name);
                }
            }
            drop(self.module(last));
        });
    }

    /// Returns whether these kernels are loaded.
    pub fn has_module(&self, kernels: &Kernels) -> bool {
        self.modules().get(&kernels.key()).is_some_and(|slot| slot.get().is_some())
    }

    /// Returns the number of loaded modules, for tests.
    #[doc(hidden)]
    pub fn module_count(&self) -> usize {
        self.modules().len()
    }

    fn load(&self, kernels: &Kernels) -> Result<Module> {
        let architecture = self.properties.architecture();
        let load = |code: &[u8]| -> Result<Module> {
            let _current = self.enter()?;
            let mut handle = null_mut();
            // SAFETY: the context is current; the code is a complete cubin, which contains its size.
            let status = unsafe { cu::cuModuleLoadData(&mut handle, code.as_ptr().cast()) };
            check(status, &format!("loading the kernels {} for {architecture}", kernels.name))?;
            Ok(Module { handle, context: self.primary, functions: Mutex::default() })
        };
        compile::code(kernels, &architecture, compile::cache_folder().as_deref(), load)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.free_idle_memory();
        if let Ok(_current) = self.enter() {
            // SAFETY: the context is current. Users of words also hold the context, so there are none left.
            unsafe { self.words.free() };
        }
        // Unload the modules before releasing their context.
        self.modules().clear();
        // SAFETY: retained once, in `open`. A reset of the GPU by another part of the process does not change how often
        // the context is retained.
        unsafe { cu::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// Guard during whose life the context is the thread's current one.
pub struct ContextGuard<'a> {
    pushed: bool,
    context: PhantomData<(&'a Context, *mut ())>,
}

impl Drop for ContextGuard<'_> {
    fn drop(&mut self) {
        if self.pushed {
            let mut popped = null_mut();
            // SAFETY: pops the context that `enter` pushed on this thread. The guard stays on the thread, and guards
            // nest.
            unsafe { cu::cuCtxPopCurrent_v2(&mut popped) };
        }
    }
}

/// Kernels loaded on a GPU.
pub struct Module {
    handle: cu::CUmodule,
    context: PrimaryContext,
    /// Kernels by name, with the maximum dynamic shared memory of their launches in bytes.
    functions: Mutex<HashMap<&'static str, (NonNull<cu::CUfunc_st>, usize)>>,
}

// SAFETY: as for Context.
unsafe impl Send for Module {}
// SAFETY: as for Context.
unsafe impl Sync for Module {}

impl Module {
    /// Returns the kernel of this name, whose launches may use `shared` bytes of dynamic shared memory. It takes the
    /// driver several microseconds to find a kernel, so it is asked once.
    fn function(&self, name: &'static str, shared: usize) -> Result<NonNull<cu::CUfunc_st>> {
        let mut functions = self.functions.lock().unwrap_or_else(|e| e.into_inner());
        let _current = self.context.enter()?;
        let known = match functions.entry(name) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let symbol = CString::new(name).expect("names of kernels have no zeros");
                let mut handle = null_mut();
                // SAFETY: the module is loaded; the name ends in 0.
                check(unsafe { cu::cuModuleGetFunction(&mut handle, self.handle, symbol.as_ptr()) }, name)?;
                unknown.insert((NonNull::new(handle).expect("the driver gave a function"), 0))
            }
        };
        // Without the attribute, a block has 48 KiB for dynamic and static shared memory together.
        if shared > known.1 {
            let which = cu::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function exists.
            check(unsafe { cu::cuFuncSetAttribute(known.0.as_ptr(), which, shared as i32) }, name)?;
            known.1 = shared;
        }
        Ok(known.0)
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // The modules of a destroyed context do not exist any more.
        let Ok(_current) = self.context.enter() else { return };
        // SAFETY: loaded in this context, which still exists because users of a module also hold the context.
        unsafe { cu::cuModuleUnload(self.handle) };
    }
}

/// A kernel and its module.
#[derive(Clone)]
pub struct Function {
    handle: NonNull<cu::CUfunc_st>,
    name: &'static str,
    _module: Arc<Module>,
    // Declared after the module, so that the module is unloaded first.
    _context: Arc<Context>,
}

// SAFETY: as for Context.
unsafe impl Send for Function {}
// SAFETY: as for Context.
unsafe impl Sync for Function {}

impl Function {
    /// Returns the kernel of this name. `shared` is the maximum dynamic shared memory of its launches in bytes.
    pub fn new(context: &Arc<Context>, module: &Arc<Module>, name: &'static str, shared: usize) -> Result<Self> {
        let handle = module.function(name, shared)?;
        Ok(Function { handle, name, _module: module.clone(), _context: context.clone() })
    }
}

/// A queue of work on a GPU: the plan's own stream or the caller's.
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
    /// Creates a new stream that does not wait for other streams.
    pub fn new(context: &Arc<Context>) -> Result<Self> {
        if let Some(handle) = context.idle_streams().pop() {
            return Ok(Stream { context: context.clone(), handle, owned: true });
        }
        let _current = context.enter()?;
        let mut handle = null_mut();
        let flags = cu::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the context is current; destroyed by this or by the context.
        check(unsafe { cu::cuStreamCreate(&mut handle, flags) }, "making a stream")?;
        Ok(Stream { context: context.clone(), handle, owned: true })
    }

    /// Wraps the caller's stream, a CUstream or cudaStream_t of the GPU's primary context.
    ///
    /// # Safety
    /// The stream must live at least as long as the result.
    pub unsafe fn borrowed(context: &Arc<Context>, stream: *mut c_void) -> Self {
        Stream { context: context.clone(), handle: stream.cast(), owned: false }
    }

    /// Returns the driver's handle.
    pub fn handle(&self) -> cu::CUstream {
        self.handle
    }

    /// Returns an event that completes when all work queued so far is done.
    pub fn mark(&self) -> Result<Event> {
        let event = Event::new(&self.context)?;
        let _current = self.context.enter()?;
        // SAFETY: event and stream exist, in the same context.
        check(unsafe { cu::cuEventRecord(event.handle, self.handle) }, "recording an event")?;
        Ok(event)
    }

    /// Makes work that is queued from now on wait for an event of this GPU or a different one.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: event and stream exist.
        check(unsafe { cu::cuStreamWaitEvent(self.handle, event.handle, 0) }, "waiting for an event")
    }

    /// Returns whether the caller captures what is queued. A stream that the driver cannot be asked about counts as
    /// captured.
    pub fn is_capturing(&self) -> bool {
        if self.owned {
            return false;
        }
        let Ok(_current) = self.context.enter() else { return true };
        let mut status = cu::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the stream exists.
        let asked = unsafe { cu::cuStreamIsCapturing(self.handle, &mut status) };
        asked != cu::CUresult::CUDA_SUCCESS || status != cu::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
    }

    /// Waits until everything queued is done.
    pub fn synchronize(&self) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: the stream exists.
        check(unsafe { cu::cuStreamSynchronize(self.handle) }, "computing on the GPU")
    }

    /// Queues a kernel.
    ///
    /// # Safety
    /// `arguments` are addresses of the kernel's parameters, of their types and in their order. Pointers among them
    /// refer to memory of this GPU that remains until the kernel has run.
    pub unsafe fn launch(
        &self,
        function: &Function,
        grid: [u32; 3],
        block: [u32; 3],
        shared: usize,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        let _current = self.context.enter()?;
        let launch = Launch { grid, block, shared: shared as u32, stream: self.handle };
        // SAFETY: the caller's promise; stream and function exist, and the function begins with `begin_kernel`.
        check(unsafe { launch.queue(function.handle.as_ptr(), arguments) }, function.name)
    }
}

/// A position in a stream's queue.
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
        let _current = context.enter()?;
        let mut handle = null_mut();
        let flags = cu::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: the context is current; destroyed when this is dropped.
        check(unsafe { cu::cuEventCreate(&mut handle, flags) }, "making an event")?;
        Ok(Event { context: context.clone(), handle })
    }

    /// Returns whether the event is complete.
    pub fn has_come(&self) -> bool {
        let Ok(_current) = self.context.enter() else { return false };
        // SAFETY: the event exists.
        unsafe { cu::cuEventQuery(self.handle) == cu::CUresult::CUDA_SUCCESS }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // The events of a destroyed context do not exist any more.
        let Ok(_current) = self.context.enter() else { return };
        // SAFETY: the event exists; the driver keeps an event while a stream waits for it.
        unsafe { cu::cuEventDestroy_v2(self.handle) };
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // The streams of a destroyed context do not exist any more.
        let Ok(_current) = self.context.enter() else { return };
        // SAFETY: the stream exists; memory that its work uses is freed afterwards.
        let is_done = unsafe { cu::cuStreamSynchronize(self.handle) } == cu::CUresult::CUDA_SUCCESS;
        if !self.owned {
            return;
        }
        let mut idle = self.context.idle_streams();
        if is_done && idle.len() < MAX_IDLE_STREAMS {
            idle.push(self.handle);
        } else {
            // SAFETY: the stream exists and is not used any more.
            unsafe { cu::cuStreamDestroy_v2(self.handle) };
        }
    }
}
