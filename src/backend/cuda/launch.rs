//! Launches of kernels whose blocks may start while earlier kernels end: `begin_kernel` in kernels/common.cuh.

use crate::base::per_process::PerProcess;
use cudarc::driver::sys as cu;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::OnceLock;

/// Parameters of a launch, except the kernel's arguments.
pub struct Launch {
    /// Number of blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block in bytes.
    pub shared: u32,
    /// Stream.
    pub stream: cu::CUstream,
}

/// `CUlaunchAttribute` of cuda.h.
#[repr(C, align(8))]
struct Attribute {
    id: u32,
    value: [u32; 17],
}

/// `CUlaunchConfig` of cuda.h.
#[repr(C)]
struct Config {
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    stream: cu::CUstream,
    attributes: *const Attribute,
    count: u32,
}

type LaunchEx = unsafe extern "C" fn(*const Config, cu::CUfunction, *mut *mut c_void, *mut *mut c_void) -> cu::CUresult;

/// First version of the driver whose graphs can capture such launches: 12.3.
const OLDEST_DRIVER: i32 = 12030;

/// Returns the driver's function; `None` for older drivers.
fn launch_ex() -> Option<LaunchEx> {
    static FUNCTION: PerProcess<OnceLock<Option<LaunchEx>>> = PerProcess::new(OnceLock::new(), |_| OnceLock::new());
    *FUNCTION.get().get_or_init(|| {
        let mut version = 0;
        // SAFETY: streams exist only if the driver is loaded; its function of this name has this type.
        unsafe {
            let has_version = cu::cuDriverGetVersion(&mut version) == cu::CUresult::CUDA_SUCCESS;
            let is_new = has_version && version >= OLDEST_DRIVER;
            is_new.then(|| cu::culib().get::<LaunchEx>(b"cuLaunchKernelEx\0").ok().map(|f| *f)).flatten()
        }
    })
}

/// Returns whether such launches can be part of graphs.
pub fn has_graphs() -> bool {
    launch_ex().is_some()
}

impl Launch {
    /// Queues a kernel. GPUs before compute capability 9.0 start its blocks when earlier kernels have ended.
    ///
    /// # Safety
    /// As for [`super::runtime::Stream::launch`]; the kernel begins with `begin_kernel`.
    pub unsafe fn queue(&self, function: cu::CUfunction, arguments: &mut [*mut c_void]) -> cu::CUresult {
        let Launch { grid, block, shared, stream } = *self;
        let Some(launch_ex) = launch_ex() else {
            let ([gx, gy, gz], [bx, by, bz], arguments) = (grid, block, arguments.as_mut_ptr());
            // SAFETY: the caller's promise.
            return unsafe {
                cu::cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, arguments, null_mut())
            };
        };
        // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, allowed.
        let mut attribute = Attribute { id: 6, value: [0; 17] };
        attribute.value[1] = 1;
        let config = Config { grid, block, shared, stream, attributes: &attribute, count: 1 };
        // SAFETY: the caller's promise; the structures have the driver's layout and outlive the call.
        unsafe { launch_ex(&config, function, arguments.as_mut_ptr(), null_mut()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    #[test]
    fn structures_have_the_layout_of_cuda_h() {
        // 8 bytes for the number of the attribute, and a union of 64 bytes.
        assert_eq!((size_of::<Attribute>(), align_of::<Attribute>(), offset_of!(Attribute, value)), (72, 8, 4));
        let offsets = [offset_of!(Config, block), offset_of!(Config, shared), offset_of!(Config, stream)];
        assert_eq!(offsets, [12, 24, 32]);
        assert_eq!((offset_of!(Config, attributes), offset_of!(Config, count), size_of::<Config>()), (40, 48, 56));
    }
}
