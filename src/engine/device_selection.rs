//! The choice between CPU and GPU for device `auto`: the device that finishes a plan and one transform first.
//!
//! The choice depends on sizes, options and the properties of CPU and GPU only. It does not depend on measurements or
//! on the state of the process, so that the same call gives the same bits on the same machine. The start of CUDA, which
//! only the first plan of a process waits for, is therefore not counted.

use crate::backend::call_size::CallSize;
use crate::backend::{cpu, cuda};
use crate::base::options::{Device, Options};
use crate::base::processors::requested_threads;
use crate::base::scan_size::ScanSize;
use std::fmt;

/// The reason why a plan computes on its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DeviceReason {
    /// The caller requested the device, by its name or by a stream of a GPU.
    #[default]
    Requested,
    /// A plan and one transform are estimated to take less time than on the other device.
    EstimatedFaster,
    /// There is no GPU.
    NoGpu,
    /// There is a GPU that cannot be used. The log has the cause: NVRTC is missing, the GPU is too old, or CUDA has
    /// failed or was started before a fork.
    GpuUnusable,
}

impl DeviceReason {
    /// Returns the reason in words, for messages and reports.
    pub fn name(self) -> &'static str {
        match self {
            DeviceReason::Requested => "requested",
            DeviceReason::EstimatedFaster => "estimated faster",
            DeviceReason::NoGpu => "no GPU",
            DeviceReason::GpuUnusable => "GPU unusable",
        }
    }
}

/// Estimates the nanoseconds of a plan and one adjoint transform on the CPU.
pub(super) fn cpu_cost(size: &CallSize, options: &Options) -> f64 {
    cpu::cost::call(size, requested_threads(options.threads))
}

/// Why a plan computes on its device, and the estimates that decided.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DeviceSelection {
    /// The reason.
    pub reason: DeviceReason,
    /// Estimated milliseconds of a plan and one adjoint transform of all coils and frames on the CPU, with arrays in
    /// host memory; 0 if nothing was estimated.
    pub cpu_ms: f64,
    /// The same on the first usable GPU, without the start of CUDA; 0 if nothing was estimated.
    pub gpu_ms: f64,
}

impl fmt::Display for DeviceSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason.name())?;
        if self.cpu_ms > 0.0 {
            write!(f, " (estimates: {:.3} ms on the CPU, {:.3} ms on the GPU)", self.cpu_ms, self.gpu_ms)?;
        }
        Ok(())
    }
}

impl DeviceSelection {
    /// Chooses the GPUs of a plan; an empty list means the CPU. `has_maps` says whether there is a field map or a decay
    /// map, `real` is the number of bytes of a real number.
    pub(crate) fn new(
        size: &ScanSize,
        options: &Options,
        exact: bool,
        has_maps: bool,
        real: usize,
    ) -> (Vec<u32>, DeviceSelection) {
        let because = |reason| DeviceSelection { reason, ..DeviceSelection::default() };
        match &options.device {
            Device::Cpu => return (Vec::new(), because(DeviceReason::Requested)),
            Device::Cuda(list) if list.is_empty() => return (vec![0], because(DeviceReason::Requested)),
            Device::Cuda(list) => return (list.clone(), because(DeviceReason::Requested)),
            Device::Auto => {}
        }
        let Some(gpu) = cuda::runtime::first_usable() else {
            let exists = cuda::runtime::has_gpu();
            return (Vec::new(), because(if exists { DeviceReason::GpuUnusable } else { DeviceReason::NoGpu }));
        };
        if options.stream.is_some() {
            return (vec![gpu], because(DeviceReason::Requested));
        }
        let Ok(properties) = cuda::runtime::properties(gpu) else {
            return (Vec::new(), because(DeviceReason::GpuUnusable));
        };
        let size = CallSize::new(size, options, exact, has_maps, real);
        let cpu_ms = 1e-6 * cpu_cost(&size, options);
        let gpu_ms = 1e-6 * cuda::call_cost(&size, &properties);
        let gpus = if gpu_ms < cpu_ms { vec![gpu] } else { Vec::new() };
        (gpus, DeviceSelection { reason: DeviceReason::EstimatedFaster, cpu_ms, gpu_ms })
    }
}
