//! E, its adjoint, E^H W E, the gridding reconstruction, and Q.

use super::arrays::{check_pointer, CallArrays};
use super::plan_handle::{call_with_plan, recon_plan, with_plan_snapshot, with_shared_plan, TypedPlan};
use super::status::recon_status;
use crate::base::error::{bail, Result};
use std::ffi::{c_char, c_void, CStr};
use std::path::Path;

/// Calls `$method` of the plan with an input array and an output array, both in the memory that the plan uses.
macro_rules! transform {
    ($plan:expr, $method:ident, $from:ident: $from_len:ident, $to:ident: $to_len:ident) => {{
        let plan = $plan;
        with_plan_snapshot!(plan, p => {
            let mut arrays = CallArrays::default();
            let from = arrays.source(stringify!($from), $from.cast(), p.$from_len(), plan.on_device)?;
            p.$method(from, arrays.sink(stringify!($to), $to.cast(), p.$to_len(), plan.on_device)?)
        })
    }};
}

/// Returns the path that a C string holds.
///
/// # Safety
/// `text` is null or a C string that outlives 'a.
unsafe fn path_at<'a>(text: *const c_char) -> Result<&'a Path> {
    check_pointer("path", text)?;
    // SAFETY: not null, and by the caller's promise a C string.
    let text = unsafe { CStr::from_ptr(text) };
    #[cfg(unix)]
    let path = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(text.to_bytes());
    #[cfg(not(unix))]
    let path: &std::ffi::OsStr = match text.to_str() {
        Ok(text) => text.as_ref(),
        Err(e) => bail!(InvalidArgument, "path is not UTF-8 ({e})"),
    };
    Ok(Path::new(path))
}

/// Computes kspace = E image, the k-space that the scanner would measure.
///
/// - image: complex [nx, ny, nz, images, frames], read. `images` is 1 with coil maps, otherwise the number of coils.
/// - kspace: complex [samples, coils, frames], written.
///
/// Errors:
/// - RECON_NULL_POINTER, RECON_OUT_OF_HOST_MEMORY.
/// - RECON_INVALID_ARGUMENT if the arrays overlap.
/// - RECON_NOT_FINITE with the voxel's index, also if the result overflows.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_forward(
    plan: *const recon_plan,
    image: *const c_void,
    kspace: *mut c_void,
) -> recon_status {
    // SAFETY: the plan is the caller's, with arrays of the documented lengths.
    call_with_plan(plan, |plan| unsafe { transform!(plan, forward, image: image_len, kspace: kspace_len) })
}

/// Computes image = E^H kspace, unscaled and without weights: F^H d of Stone et al. 2008.
///
/// - kspace: complex [samples, coils, frames], read.
/// - image: complex [nx, ny, nz, images, frames], written.
///
/// Errors: as recon_forward, with the sample's index for RECON_NOT_FINITE.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_fhd(plan: *const recon_plan, kspace: *const c_void, image: *mut c_void) -> recon_status {
    // SAFETY: the plan is the caller's, with arrays of the documented lengths.
    call_with_plan(plan, |plan| unsafe { transform!(plan, adjoint, kspace: kspace_len, image: image_len) })
}

/// Computes image = E^H W kspace, the right-hand side of the system that recon_cg solves. W are the density weights of
/// the geometry, or 1 if it has none. Arrays and errors are those of recon_fhd.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_weighted_fhd(
    plan: *const recon_plan,
    kspace: *const c_void,
    image: *mut c_void,
) -> recon_status {
    // SAFETY: the plan is the caller's, with arrays of the documented lengths.
    call_with_plan(plan, |plan| unsafe { transform!(plan, weighted_adjoint, kspace: kspace_len, image: image_len) })
}

/// Computes y = E^H W E x.
///
/// - x: complex [nx, ny, nz, images, frames], read.
/// - y: the same shape, written.
///
/// Errors: as recon_forward; RECON_MEMORY_LIMIT if Q was requested and does not fit.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_normal(plan: *const recon_plan, x: *const c_void, y: *mut c_void) -> recon_status {
    // SAFETY: the plan is the caller's, with arrays of the documented lengths.
    call_with_plan(plan, |plan| unsafe { transform!(plan, normal, x: image_len, y: image_len) })
}

/// Computes the gridding reconstruction: the adjoint of density-compensated data, scaled so that a fully sampled object
/// keeps its scale. If the geometry has no weights, the first call computes those of Pipe and Menon.
///
/// - kspace: complex [samples, coils, frames], read.
/// - image: complex [nx, ny, nz, images, frames], written.
///
/// Errors:
/// - As recon_fhd.
/// - RECON_INVALID_ARGUMENT if no sample with a positive weight is near the centre of k-space (an annulus), which
///   determines the scale of the image.
/// - RECON_INVALID_ARGUMENT if one weight outweighs all others.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_grid(
    plan: *const recon_plan,
    kspace: *const c_void,
    image: *mut c_void,
) -> recon_status {
    // SAFETY: the plan is the caller's, with arrays of the documented lengths.
    call_with_plan(plan, |plan| unsafe { transform!(plan, grid, kspace: kspace_len, image: image_len) })
}

/// Computes the gridded k-space of the gridding reconstruction, before the FFT and the combination of coils. The image
/// of a coil is the sum over cells u of grid(u) exp(+i 2 pi u.r / g), multiplied along each axis by the factors of
/// recon_window_correction.
///
/// - kspace: complex [samples, coils, frames], read.
/// - grid: complex [gx, gy, gz, coils, frames], written, with k = 0 in cell floor(g/2). recon_plan_info returns the
///   size of this oversampled grid and its number of elements, grid_elements.
///
/// Errors: as recon_grid; RECON_UNSUPPORTED with exact sums, which have no grid.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_grid_kspace(
    plan: *const recon_plan,
    kspace: *const c_void,
    grid: *mut c_void,
) -> recon_status {
    // SAFETY: the plan is the caller's, with arrays of the documented lengths.
    call_with_plan(plan, |plan| unsafe {
        let elements = plan.grid_elements(&plan.info())?;
        with_plan_snapshot!(plan, p => {
            let mut arrays = CallArrays::default();
            let kspace = arrays.input("kspace", kspace.cast(), p.kspace_len())?;
            let grid = arrays.output("grid", grid.cast(), elements)?;
            if elements == 0 {
                bail!(Unsupported, "there is no grid with exact sums: create the plan with RECON_METHOD_NUFFT");
            }
            p.grid_kspace(kspace, grid)
        })
    })
}

/// Computes the factors along one axis by which an image is multiplied after the FFT of gridded k-space.
///
/// - axis: 0 for x.
/// - factors: double [dims[axis]], written, for either precision of the plan.
///
/// Errors:
/// - RECON_NULL_POINTER.
/// - RECON_INVALID_ARGUMENT for an axis that the image does not have.
/// - RECON_UNSUPPORTED with exact sums.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_window_correction(
    plan: *const recon_plan,
    axis: u32,
    factors: *mut f64,
) -> recon_status {
    // SAFETY: the plan is the caller's, with an array of the documented length.
    call_with_plan(plan, |plan| unsafe {
        let Some(&n) = plan.dims.get(axis as usize) else {
            bail!(InvalidArgument, "axis is {axis}, but the image has {} axes, counted from 0", plan.dims.len());
        };
        let factors = CallArrays::default().results("factors", factors, n)?;
        let correction = with_plan_snapshot!(plan, p => p.window_correction(axis as usize))?;
        if correction.is_empty() {
            bail!(Unsupported, "there is no window with exact sums: create the plan with RECON_METHOD_NUFFT");
        }
        factors.deliver(&correction)
    })
}

/// Computes Q(delta) = sum_m w_m |phi(k_m)|^2 exp(+i 2 pi k_m.delta), the kernel of E^H W E.
///
/// - q: complex [2 nx, 2 ny, 2 nz] (2D: [2 nx, 2 ny]), written, with displacement delta at index delta + n. For a voxel
///   list: complex [voxel_count], Q at the listed positions.
///
/// Errors: RECON_NULL_POINTER, RECON_OUT_OF_HOST_MEMORY.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_q(plan: *const recon_plan, q: *mut c_void) -> recon_status {
    // SAFETY: the plan is the caller's, with an array of the documented length.
    call_with_plan(plan, |plan| unsafe {
        with_plan_snapshot!(plan, p => p.q(CallArrays::default().output("q", q.cast(), p.q_len())?))
    })
}

/// Saves Q, as recon_normal and recon_cg use it, for plans of the same geometry in other processes. It computes Q first
/// if necessary.
///
/// `path` is in the file system's encoding (UTF-8 on Windows). A link is followed; a device or a FIFO is written into.
/// Several threads and processes may save to one path at once.
///
/// Errors:
/// - RECON_NULL_POINTER, RECON_MEMORY_LIMIT.
/// - RECON_IO if the file cannot be written. The previous content of the path is then unchanged.
/// - RECON_UNSUPPORTED if the plan does not use Q.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_plan_save_q(plan: *const recon_plan, path: *const c_char) -> recon_status {
    // SAFETY: the caller's plan and C string.
    call_with_plan(plan, |plan| unsafe {
        let path = path_at(path)?;
        with_plan_snapshot!(plan, p => p.save_q(path))
    })
}

/// Loads Q instead of computing it.
///
/// Errors:
/// - RECON_NULL_POINTER.
/// - RECON_IO if the file cannot be read.
/// - RECON_BAD_FILE if the file is truncated, damaged or too long, or belongs to a different geometry.
/// - RECON_UNSUPPORTED if the plan does not use Q.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_plan_load_q(plan: *const recon_plan, path: *const c_char) -> recon_status {
    // SAFETY: the caller's plan and C string.
    call_with_plan(plan, |plan| unsafe {
        let path = path_at(path)?;
        with_plan_snapshot!(plan, p => p.load_q(path))
    })
}
