//! Creation of plans, and the memory that they will take.

use super::arrays::{size, CallArrays};
use super::enumerations::{Enumeration, Precision};
use super::inputs::{self, with_precision, ScanInput};
use super::plan_handle::{recon_plan, TypedPlan};
use super::status::{call, recon_status};
use super::structs::*;
use super::versioned::{read_or_initial, StructOutput, VersionedStruct};
use crate::base::error::try_box;
use crate::plan::Plan;
use crate::reconstruction::coils::combine_bytes;
use crate::{Combine, Complex};
use std::sync::Mutex;

/// Creates a plan for a geometry: checks every number, chooses window and grid, sorts the samples and starts the plan's
/// threads. The geometry's arrays are not needed afterwards. `options` may be NULL for the defaults. On success the
/// caller owns `*plan` and must pass it to recon_plan_destroy. After an error `*plan` is unchanged.
///
/// Errors:
/// - RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_SIZE_OVERFLOW,
///   RECON_TOLERANCE_OUT_OF_RANGE.
/// - RECON_INVALID_SIZE if a size is 0.
/// - RECON_NOT_FINITE and RECON_COORDINATE_OUT_OF_RANGE, with the index.
/// - RECON_MEMORY_LIMIT, with the required bytes.
/// - RECON_OUT_OF_HOST_MEMORY, RECON_OUT_OF_DEVICE_MEMORY, RECON_NO_DEVICE.
/// - RECON_DRIVER_INCOMPLETE if the GPU's kernels are not cached and cannot be compiled.
/// - RECON_UNSUPPORTED for a field map that requires more than 128 segments, for a voxel list with RECON_METHOD_NUFFT,
///   and for a vector unit that the processor does not have.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_plan_create(
    geometry: *const recon_geometry,
    options: *const recon_options,
    plan: *mut *mut recon_plan,
) -> recon_status {
    // SAFETY: the structures are the caller's, with arrays of the documented lengths.
    call(|| unsafe {
        let mut arrays = CallArrays::default();
        let out = &mut arrays.output("plan", plan, 1)?[0];
        let mut scan = ScanInput::read(geometry)?;
        let raw = read_or_initial("options", options)?;
        scan.on_device = raw.geometry_on_device != 0;
        let options = inputs::options(options)?;
        let typed = with_precision!(scan.precision, T => {
            scan.with_geometry::<T, TypedPlan>(&mut arrays, |g| Ok(Plan::new(g, &options)?.into()))
        })?;
        let plan = recon_plan {
            typed,
            warnings: Mutex::default(),
            precision: scan.precision.number(),
            window: raw.window,
            on_device: raw.pointers_on_device != 0,
            geometry_on_device: scan.on_device,
            has_coil_maps: scan.has_maps(),
            voxels: scan.voxels,
            coils: scan.coils,
            frames: scan.frames,
            dims: scan.dims,
        };
        *out = Box::into_raw(try_box(plan, "the plan")?);
        Ok(())
    })
}

/// Estimates the bytes that a plan of this geometry and its operations take, before the plan is created.
///
/// These are upper estimates. If the peaks exceed some MiB, the estimates are at most a fifth above them on the CPU and
/// a quarter on a GPU. On a GPU they may be higher if samples lie neither evenly nor on spokes. On the CPU each number
/// is sufficient as the memory_limit of a plan for that operation.
///
/// A GPU's memory that is idle after the plan was created is counted, since the plan keeps it until memory is short.
/// The caller's arrays are not counted, nor is memory that a GPU's driver takes for itself. Window, grid and device are
/// chosen as in recon_plan_create.
///
/// - geometry: its sizes are read, and whether weights and coil_maps are NULL. With a field map or a decay map, the
///   maps, times and coil_maps are read too, since their range decides. With coordinates, memory->host_coil_maps counts
///   the samples in the centre of k-space; if coordinates are NULL or geometry_on_device is set, it counts all samples.
///   Other arrays are not read.
/// - options: as for recon_plan_create, or NULL. A memory_limit is used only if it decides how the plan computes.
///   Exceeding it is not an error here.
/// - memory: written, except its calibration, which is read.
///
/// Errors:
/// - RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_SIZE_OVERFLOW.
/// - RECON_INVALID_ARGUMENT if the calibration is wider than k-space.
/// - RECON_INVALID_SIZE if a size is 0.
/// - RECON_TOLERANCE_OUT_OF_RANGE, RECON_NO_DEVICE, RECON_DRIVER_INCOMPLETE, RECON_UNSUPPORTED.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_plan_memory(
    geometry: *const recon_geometry,
    options: *const recon_options,
    memory: *mut recon_memory,
) -> recon_status {
    // SAFETY: the structures are the caller's, with arrays of the documented lengths.
    call(|| unsafe {
        let mut arrays = CallArrays::default();
        let mut out = StructOutput::new(&mut arrays, "memory", memory)?;
        let mut scan = ScanInput::read(geometry)?;
        scan.on_device = read_or_initial("options", options)?.geometry_on_device != 0;
        let options = inputs::options(options)?;
        let calibration = out.value.calibration;
        let (peaks, combine) = with_precision!(scan.precision, T => {
            let scan_size = scan.size::<T>(&mut arrays, size("calibration", calibration.into())?)?;
            let peaks = Plan::<T>::memory(&scan_size, &options)?;
            let dims = if scan.listed { &[scan.voxels][..] } else { &scan.dims };
            let images = scan.voxels * scan.frames * size_of::<Complex<T>>();
            (peaks, combine_bytes::<T>(dims, scan.coils, Combine::Adaptive).saturating_add(images))
        });
        let (host, device) = (peaks.host, peaks.device);
        out.value = recon_memory {
            host_plan: host.plan as u64,
            host_transform: host.transform as u64,
            host_grid: host.grid as u64,
            host_density: host.density as u64,
            host_density_jackson: host.density_jackson as u64,
            host_fbp: host.fbp as u64,
            device_fbp: device.fbp as u64,
            host_coil_maps: host.coil_maps as u64,
            host_normal: host.normal as u64,
            host_cg: host.cg as u64,
            host_q: host.q as u64,
            device_plan: device.plan as u64,
            device_transform: device.transform as u64,
            device_grid: device.grid as u64,
            device_density: device.density as u64,
            device_density_jackson: device.density_jackson as u64,
            device_coil_maps: device.coil_maps as u64,
            device_normal: device.normal as u64,
            device_cg: device.cg as u64,
            device_q: device.q as u64,
            calibration,
            host_combine: combine as u64,
            ..recon_memory::initial()
        };
        out.write();
        Ok(())
    })
}
