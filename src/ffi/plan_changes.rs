//! End, description and changes of plans.

use super::arrays::{size, CallArrays};
use super::enumerations::{Enumeration, Precision};
use super::inputs::ScanInput;
use super::plan_handle::{call_with_plan, recon_plan, with_plan_snapshot, with_shared_plan, TypedPlan};
use super::status::{call, call_without_allocation, recon_status};
use super::structs::*;
use super::versioned::{put_text, StructOutput, VersionedStruct};
use crate::base::error::bail;
use crate::base::free_memory::check_free_memory;
use crate::base::mapped::unused_limit;
use crate::release_memory;
use std::ffi::c_void;

/// Frees everything that a plan holds. NULL is allowed. No call with this plan may be running.
///
/// The plan's threads end if no other plan needs them. On Linux they wait a second for the next plan.
#[no_mangle]
pub unsafe extern "C" fn recon_plan_destroy(plan: *mut recon_plan) {
    if !plan.is_null() {
        // SAFETY: made by Box::into_raw in recon_plan_create, and by the caller's promise given back once.
        call_without_allocation(|| drop(unsafe { Box::from_raw(plan) }));
    }
}

/// Returns to the system what the library keeps for the next plan. Existing plans lose nothing. It cannot fail. Call it
/// after the last plan if other programs need the memory or the GPU, or before the library is unloaded.
///
/// - Host memory: without plans at most 128 MiB. With plans at most the size of the plans, limited to between 128 MiB
///   and 1 GiB. On Linux with glibc it also calls malloc_trim(0).
/// - GPUs: the context of each GPU that had plans, the loaded kernels, and up to an eighth of the GPU's memory. The
///   context itself holds several hundred MiB of GPU memory, and up to 64 MiB of page-locked host memory for copies. On
///   a GPU that plans still use, the context stays; kernels and memory that no plan uses are released. The next plan on
///   a released GPU takes about 0.1 s longer.
/// - Threads that wait for the next plan.
///
/// The end of the process releases all of it, and so does unloading the library on Linux with glibc.
#[no_mangle]
pub extern "C" fn recon_release_memory() {
    call_without_allocation(release_memory);
}

/// Checks that `bytes` bytes of memory are free on this machine and in all control groups of this process. Linux ends a
/// process without a message when it uses more. If they are not free, the host memory that recon_release_memory
/// returns is returned first. On systems other than Linux and Windows, every number is accepted.
///
/// recon_plan_memory returns the bytes of a plan and its operations in advance.
///
/// Errors: RECON_OUT_OF_HOST_MEMORY; the message has the limit, and the free memory in MiB.
#[no_mangle]
#[must_use]
pub extern "C" fn recon_check_free_memory(bytes: u64) -> recon_status {
    call(|| check_free_memory(bytes))
}

/// Returns the maximum unused host memory in bytes that the library keeps for the next plan while all plans together
/// hold `held` bytes. It keeps no more than what earlier plans and operations returned. See recon_release_memory.
#[no_mangle]
pub extern "C" fn recon_unused_memory_limit(held: u64) -> u64 {
    unused_limit(usize::try_from(held).unwrap_or(usize::MAX)) as u64
}

/// Describes a plan: chosen method and window, lengths of its arrays, and bytes that it holds.
///
/// Errors:
/// - RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE.
/// - RECON_INVALID_ARGUMENT for a misaligned structure.
/// - RECON_SIZE_OVERFLOW if the gridded k-space of all coils and frames would exceed the address space.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_plan_info(
    plan: *const recon_plan,
    properties: *mut recon_plan_properties,
) -> recon_status {
    // SAFETY: the caller's plan and structure.
    call_with_plan(plan, |plan| unsafe {
        let mut out = StructOutput::new(&mut CallArrays::default(), "properties", properties)?;
        let info = plan.info();
        let mut grid = [0; 3];
        if !info.grid.is_empty() {
            grid = [0, 1, 2].map(|axis| info.grid.get(axis).map_or(1, |&g| g as u64));
        }
        let (image, kspace, q) = with_plan_snapshot!(plan, p => (p.image_len(), p.kspace_len(), p.q_len()));
        out.value = recon_plan_properties {
            precision: plan.precision,
            method: info.method.number(),
            window: plan.window,
            width: info.width as u32,
            threads: info.threads as u32,
            toeplitz: info.toeplitz.into(),
            ndim: plan.dims.len() as u32,
            grid,
            oversampling: info.oversampling,
            error: info.error,
            image_elements: image as u64,
            kspace_elements: kspace as u64,
            q_elements: q as u64,
            grid_elements: plan.grid_elements(&info)? as u64,
            host_bytes: info.host_bytes as u64,
            device_bytes: info.device_bytes as u64,
            seconds: info.seconds,
            segments: info.segments as u32,
            nodes: info.nodes as u32,
            device_reason: info.device_selection.reason.number(),
            estimated_cpu_ms: info.device_selection.cpu_ms,
            estimated_gpu_ms: info.device_selection.gpu_ms,
            ..recon_plan_properties::initial()
        };
        put_text(&mut out.value.device, &info.device);
        put_text(&mut out.value.simd, info.simd);
        out.write();
        Ok(())
    })
}

/// Replaces the trajectory of a plan, with its weights, and also the coil maps if the geometry has some. It is for
/// real-time and other scans whose trajectory changes from frame to frame.
///
/// Sorting the samples takes most of the time. Threads, window, tables, grids and buffers stay, unless a different
/// number of samples makes a different window or grid the better choice. Results have the same bits as those of a new
/// plan with this geometry and the plan's options.
///
/// - geometry: samples, coordinates, coordinate_stride, weights and coil_maps are read. The structure that the plan was
///   created with can be used, with new addresses. All else must be as when the plan was created: precision, ndim,
///   dims, coils, frames, basis, and the positions in a voxel list. The arrays are not needed afterwards.
/// - geometry->weights: NULL is an error if the plan has weights, since these belong to the old samples;
///   recon_plan_set_weights removes them.
/// - geometry->coil_maps: NULL keeps the plan's coil maps.
/// - geometry->field_map, decay_map, times: required again if the plan has maps. The values may be new.
///
/// Results that depend on the old trajectory are discarded: Q, even if it was loaded, and the weights that recon_grid
/// computed. recon_plan_info and recon_plan_warning describe the new trajectory.
///
/// Other threads may use the plan meanwhile, and a progress callback may change its own plan; no thread waits for
/// another. A running call continues with the trajectory that it began with. A call that begins after this function has
/// returned uses the new one. With a different number of samples, the length of k-space arrays changes: until this
/// function returns, arrays of a new call must be long enough for both. After an error the plan is unchanged.
///
/// Errors:
/// - As recon_plan_create for sizes, numbers and memory.
/// - RECON_MEMORY_LIMIT also if the plan and the new samples together exceed the limit, since both exist until the
///   change is made.
/// - RECON_SIZE_MISMATCH if ndim, dims, voxel_count, coils or frames differ.
/// - RECON_INVALID_ARGUMENT if precision, basis or voxel list differ, for coil maps if the plan was created without,
///   and for missing weights if the plan has some.
/// - RECON_CANCELLED.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_plan_set_trajectory(
    plan: *mut recon_plan,
    geometry: *const recon_geometry,
) -> recon_status {
    // SAFETY: plan and structure are the caller's, with arrays of the documented lengths.
    call_with_plan(plan, |plan| unsafe {
        let mut scan = ScanInput::read(geometry)?;
        scan.on_device = plan.geometry_on_device;
        if scan.precision.number() != plan.precision {
            let name = |precision: Precision| if precision == Precision::F64 { "double" } else { "single" };
            let own = if scan.precision == Precision::F64 { Precision::F32 } else { Precision::F64 };
            bail!(
                InvalidArgument,
                "the geometry has {} precision, the plan {}: give arrays in the plan's precision, or make a new plan",
                name(scan.precision),
                name(own)
            );
        }
        let mut arrays = CallArrays::default();
        match &plan.typed {
            TypedPlan::F32(p) => scan.with_geometry::<f32, ()>(&mut arrays, |g| p.set_trajectory(g)),
            TypedPlan::F64(p) => scan.with_geometry::<f64, ()>(&mut arrays, |g| p.set_trajectory(g)),
        }?;
        // Read the warnings after the lock, so that the last of several changes counts. Texts do not move if the
        // warnings are the same.
        let mut warnings = plan.warnings.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(read) = &mut *warnings {
            let current = plan.typed.warnings();
            if *read != current {
                *read = current;
            }
        }
        Ok(())
    })
}

/// Replaces the density weights of a plan. The samples stay sorted. Q and the weights that recon_grid computed are
/// discarded. Other threads may use the plan meanwhile, see recon_plan_set_trajectory.
///
/// - weights: real [samples] in the plan's precision, non-negative, read; not needed afterwards. NULL: all weights are
///   1.
/// - count: number of weights, equal to the plan's number of samples; 0 with NULL.
///
/// Errors, after which the plan is unchanged:
/// - RECON_NULL_POINTER for NULL and a count other than 0.
/// - RECON_SIZE_MISMATCH for a wrong count.
/// - RECON_NOT_FINITE and RECON_INVALID_ARGUMENT, with the index.
/// - RECON_MEMORY_LIMIT, RECON_OUT_OF_HOST_MEMORY, RECON_OUT_OF_DEVICE_MEMORY, RECON_CANCELLED.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_plan_set_weights(
    plan: *mut recon_plan,
    weights: *const c_void,
    count: u64,
) -> recon_status {
    // SAFETY: the plan is the caller's, with an array of `count` numbers.
    call_with_plan(plan, |plan| unsafe {
        let count = size("count", count)?;
        with_shared_plan!(plan, p => {
            let given = match count {
                0 if weights.is_null() => None,
                _ => {
                    let on_device = plan.geometry_on_device;
                    Some(CallArrays::default().source("weights", weights.cast(), count, on_device)?)
                }
            };
            p.set_weights_from(given)
        })
    })
}

/// Replaces the coil maps of a plan that was created with coil maps. All else stays, including Q. Other threads may use
/// the plan meanwhile, see recon_plan_set_trajectory.
///
/// - maps: complex [nx, ny, nz, coils] in the plan's precision, read; not needed afterwards.
/// - count: number of complex elements, voxels times coils.
///
/// Errors, after which the plan is unchanged:
/// - RECON_NULL_POINTER.
/// - RECON_INVALID_ARGUMENT if the plan was created without maps: these decide the number of images, so create a new
///   plan.
/// - RECON_INVALID_ARGUMENT if the maps see voxels whose off-resonance or decay is outside the range that the previous
///   maps saw.
/// - RECON_SIZE_MISMATCH for a wrong count.
/// - RECON_NOT_FINITE, with the index.
/// - RECON_MEMORY_LIMIT if old and new maps together exceed the limit.
/// - RECON_OUT_OF_HOST_MEMORY, RECON_OUT_OF_DEVICE_MEMORY, RECON_CANCELLED.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_plan_set_coil_maps(
    plan: *mut recon_plan,
    maps: *const c_void,
    count: u64,
) -> recon_status {
    // SAFETY: the plan is the caller's, with an array of `count` numbers.
    call_with_plan(plan, |plan| unsafe {
        let count = size("count", count)?;
        let on_device = plan.geometry_on_device;
        with_shared_plan!(plan, p => {
            p.set_coil_maps(CallArrays::default().source("maps", maps.cast(), count, on_device)?)
        })
    })
}
