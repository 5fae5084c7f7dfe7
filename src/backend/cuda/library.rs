//! The CUDA driver of this machine, loaded on first use.

use crate::base::error::{bail, Error, ErrorKind, Result};
use crate::base::per_process::PerProcess;
use cudarc::driver::sys as cu;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::OnceLock;

/// Lowest CUDA version of a supported driver, in the driver's notation: 11.4.
const OLDEST_DRIVER: i32 = 11040;
/// Whether NVIDIA has drivers for this system.
pub const HAS_CUDA: bool = cfg!(any(target_os = "linux", windows));
/// Name of the driver's library, for messages.
const DRIVER_FILE: &str = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };

/// Whether this is a static build with musl, whose `dlopen` loads nothing.
pub const IS_STATIC: bool = cfg!(all(target_env = "musl", target_feature = "crt-static"));

/// Status after which the driver does nothing more for this process; 0 if there was none.
static FATAL: AtomicU32 = AtomicU32::new(0);

/// Returns whether this status is permanent: all later calls of this process report it too.
fn is_fatal(status: cu::CUresult) -> bool {
    use cu::CUresult::*;
    matches!(
        status,
        CUDA_ERROR_ILLEGAL_ADDRESS
            | CUDA_ERROR_LAUNCH_FAILED
            | CUDA_ERROR_LAUNCH_TIMEOUT
            | CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUDA_ERROR_MISALIGNED_ADDRESS
            | CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUDA_ERROR_INVALID_PC
            | CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUDA_ERROR_ASSERT
            | CUDA_ERROR_ECC_UNCORRECTABLE
            | CUDA_ERROR_NVLINK_UNCORRECTABLE
    )
}

/// Converts a driver status to an error that states the failed action.
pub fn check(status: cu::CUresult, what: &str) -> Result<()> {
    use cu::CUresult::*;
    match status {
        CUDA_SUCCESS => Ok(()),
        CUDA_ERROR_OUT_OF_MEMORY => bail!(OutOfDeviceMemory, "{what}: the GPU is out of memory"),
        CUDA_ERROR_NO_BINARY_FOR_GPU | CUDA_ERROR_UNSUPPORTED_PTX_VERSION | CUDA_ERROR_INVALID_IMAGE => bail!(
            DriverIncomplete,
            "{what}: the driver does not support this machine code ({}): update the NVIDIA driver, or use an NVRTC that \
             is no newer than the driver",
            words(status)
        ),
        CUDA_ERROR_CONTEXT_IS_DESTROYED => bail!(
            DeviceFailed,
            "{what}: the GPU was reset by another part of this process ({}): create the plan again",
            words(status)
        ),
        _ if is_fatal(status) => {
            FATAL.store(status as u32, Ordering::Relaxed);
            bail!(
                DeviceFailed,
                "{what}: the CUDA driver reports {}; this process cannot use its GPU any more: restart it, or use device cpu",
                words(status)
            )
        }
        _ => bail!(DeviceFailed, "{what}: the CUDA driver reports {}", words(status)),
    }
}

fn words(status: cu::CUresult) -> String {
    let mut text = std::ptr::null();
    // SAFETY: the driver is loaded, since it returned a status. It writes the address of a constant text, or null.
    let text = unsafe {
        match cu::cuGetErrorString(status, &mut text) {
            cu::CUresult::CUDA_SUCCESS if !text.is_null() => CStr::from_ptr(text).to_string_lossy().into_owned(),
            _ => "no description".to_owned(),
        }
    };
    format!("\"{text}\" ({status:?})")
}

/// Loads and starts the driver once. Errors: `NoDevice` with what is missing, `DeviceFailed` with the reason why this
/// process cannot use the GPU any more.
pub fn driver() -> Result<()> {
    /// State of the driver in one process.
    struct Start {
        /// Whether this process, or a process that it was forked from, has begun to start the driver.
        begun: AtomicBool,
        result: OnceLock<Result<()>>,
    }
    impl Start {
        const fn not_begun() -> Self {
            Start { begun: AtomicBool::new(false), result: OnceLock::new() }
        }
    }
    static DRIVER: PerProcess<Start> = PerProcess::new(Start::not_begun(), |parent| match parent.result.get() {
        Some(Err(e)) => Start { begun: AtomicBool::new(true), result: OnceLock::from(Err(e.clone())) },
        // Started, or a different thread of the parent was starting it.
        _ if parent.begun.load(Ordering::SeqCst) => {
            Start { begun: AtomicBool::new(true), result: OnceLock::from(Err(forked())) }
        }
        _ => Start::not_begun(),
    });
    let start = DRIVER.get();
    let result = start.result.get_or_init(|| {
        start.begun.store(true, Ordering::SeqCst);
        start_driver()
    });
    if FATAL.load(Ordering::Relaxed) != 0 {
        bail!(
            DeviceFailed,
            "the GPU of this process failed earlier (CUDA error {}): restart the process, or use device cpu",
            FATAL.load(Ordering::Relaxed)
        );
    }
    result.clone()
}

/// Returns the error of a child process whose parent has used CUDA: the driver's state is not inherited.
fn forked() -> Error {
    Error::new(
        ErrorKind::DeviceFailed,
        "CUDA cannot be used after fork: the parent process had already started it. Start a new process \
         instead (in Python, multiprocessing's \"spawn\"), or use device cpu",
    )
}

fn start_driver() -> Result<()> {
    if IS_STATIC {
        bail!(NoDevice, "this static build cannot load the NVIDIA driver: use a build for glibc, or device cpu");
    }
    if !HAS_CUDA {
        bail!(NoDevice, "NVIDIA has no driver for this system: use device cpu");
    }
    // SAFETY: loading the driver's library runs its initialisers only.
    if !unsafe { cu::is_culib_present() } {
        bail!(NoDevice, "there is no NVIDIA driver on this machine ({DRIVER_FILE}): install it, or use device cpu");
    }
    let mut version = 0;
    // SAFETY: the library is loaded; all of its versions have this function.
    check(unsafe { cu::cuDriverGetVersion(&mut version) }, "reading the driver's version")?;
    check_version(version)?;
    // SAFETY: the library is loaded; the function may be called any number of times.
    match unsafe { cu::cuInit(0) } {
        cu::CUresult::CUDA_SUCCESS => Ok(()),
        // CUDA was started by a different library before the fork.
        cu::CUresult::CUDA_ERROR_NOT_INITIALIZED => Err(forked()),
        status => bail!(NoDevice, "the NVIDIA driver does not start: {}; use device cpu", words(status)),
    }
}

/// Returns an error if the driver is too old.
fn check_version(version: i32) -> Result<()> {
    if version < OLDEST_DRIVER {
        bail!(
            NoDevice,
            "the NVIDIA driver supports only CUDA {}.{}, but {}.{} is required: update the driver, or use device cpu",
            version / 1000,
            version % 1000 / 10,
            OLDEST_DRIVER / 1000,
            OLDEST_DRIVER % 1000 / 10
        );
    }
    Ok(())
}

/// Asks the driver for the number of a primary context: each context of a process has its own number, also if it is
/// created at the address of a destroyed one. `None` with drivers before CUDA 12, which have no such numbers.
fn ask_number(context: cu::CUcontext) -> Option<std::result::Result<u64, cu::CUresult>> {
    type GetId = unsafe extern "C" fn(cu::CUcontext, *mut u64) -> cu::CUresult;
    static GET_ID: PerProcess<OnceLock<Option<GetId>>> = PerProcess::new(OnceLock::new(), |_| OnceLock::new());
    // SAFETY: contexts exist only if the driver is loaded; its function of this name has this type.
    let find = || unsafe { cu::culib().get::<GetId>(b"cuCtxGetId\0") }.ok().map(|function| *function);
    let get_id = (*GET_ID.get().get_or_init(find))?;
    let mut number = 0;
    // SAFETY: the driver keeps the memory of a primary context after it was destroyed.
    Some(match unsafe { get_id(context, &mut number) } {
        cu::CUresult::CUDA_SUCCESS => Ok(number),
        status => Err(status),
    })
}

/// Returns the driver's number of a primary context; `None` if the driver has no numbers.
pub fn context_number(context: cu::CUcontext) -> Option<u64> {
    ask_number(context)?.ok()
}

/// Returns whether the primary context with this number still exists, so that it was not destroyed by a reset of the
/// GPU. A context that failed exists.
pub fn context_exists(context: cu::CUcontext, number: u64) -> bool {
    use cu::CUresult::{CUDA_ERROR_CONTEXT_IS_DESTROYED, CUDA_ERROR_INVALID_CONTEXT};
    match ask_number(context) {
        Some(Ok(now)) => now == number,
        Some(Err(status)) => !matches!(status, CUDA_ERROR_CONTEXT_IS_DESTROYED | CUDA_ERROR_INVALID_CONTEXT),
        None => true,
    }
}

/// Where memory is that the driver knows.
pub struct PointerOwner {
    kind: u32,
    gpu: i32,
}

impl PointerOwner {
    /// Asks the driver about an address; `None` for ordinary host memory. The driver is loaded.
    pub fn of(address: u64) -> Option<PointerOwner> {
        use cu::CUpointer_attribute::{CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
        let mut owner = PointerOwner { kind: 0, gpu: -1 };
        let mut attributes = [CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL];
        let mut values = [(&raw mut owner.kind).cast(), (&raw mut owner.gpu).cast()];
        // SAFETY: the attributes are numbers of these types. Any address may be asked for: those that the driver does
        // not know have no kind of memory.
        let status = unsafe { cu::cuPointerGetAttributes(2, attributes.as_mut_ptr(), values.as_mut_ptr(), address) };
        (status == cu::CUresult::CUDA_SUCCESS && owner.kind != 0).then_some(owner)
    }

    /// Returns whether it is page-locked host memory.
    pub fn is_host(&self) -> bool {
        self.kind == cu::CUmemorytype::CU_MEMORYTYPE_HOST as u32
    }

    /// Returns the index of the GPU of device memory.
    pub fn gpu(&self) -> Option<u32> {
        let is_device = self.kind == cu::CUmemorytype::CU_MEMORYTYPE_DEVICE as u32;
        is_device.then_some(self.gpu).and_then(|gpu| u32::try_from(gpu).ok())
    }
}

/// Returns the CUDA version of the driver, as major and minor.
pub fn driver_version() -> Result<(u32, u32)> {
    driver()?;
    let mut version = 0;
    // SAFETY: the driver is loaded.
    check(unsafe { cu::cuDriverGetVersion(&mut version) }, "reading the driver's version")?;
    Ok((version as u32 / 1000, version as u32 % 1000 / 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_drivers_are_refused() {
        check_version(OLDEST_DRIVER).unwrap();
        let e = check_version(11010).unwrap_err();
        assert!(e.kind() == ErrorKind::NoDevice && e.message().contains("only CUDA 11.1, but 11.4 is required"), "{e}");
    }

    #[test]
    fn code_that_a_driver_does_not_take_says_what_to_update() {
        if driver().is_err() {
            // The driver's texts are not available without it.
            return crate::backend::cuda::skipped("the words of a driver");
        }
        let e = check(cu::CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU, "loading").unwrap_err();
        assert!(e.kind() == ErrorKind::DriverIncomplete && e.message().contains("update the NVIDIA driver"), "{e}");
    }
}
