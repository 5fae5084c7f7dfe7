//! Images of partial Fourier data.

use super::arrays::{size, CallArrays};
use super::enumerations::{choice, Precision};
use super::inputs::{host_options, with_precision, ScanInput};
use super::status::{call, recon_status};
use super::structs::*;
use super::versioned::{read_or_initial, StructOutput};
use crate::base::error::{checked_product, Result};
use crate::{Complex, Options, PartialFourier, PartialFourierOptions, PartialFourierReport, Real};
use std::ffi::c_void;

/// Computes images of partial Fourier data: one side of k-space is missing along one axis, except near the centre. The
/// missing side follows from the smooth phase of the image, by homodyne detection or POCS. With a complete k-space,
/// use recon_grid.
///
/// The axis, and the width of the symmetric centre that determines the phase, follow from the coordinates. Any
/// trajectory is possible: Cartesian lines in 2D and 3D, asymmetric echoes, stacks of spirals or spokes with missing
/// partitions. Other axes must be complete. Samples on the points of the image's grid have equal weights if the
/// geometry has no weights; other samples have the weights of Pipe and Menon.
///
/// Images have the scale of recon_grid and keep their phase. Without coil maps each coil has an image and a phase of
/// its own; with coil maps the combined image has one phase. Each image has its own iterations.
///
/// - options: may be NULL for the defaults. memory_limit limits the plan only: the call takes four further arrays of
///   the size of image, and one of the size of kspace. Arrays are in the host's memory.
/// - partial_fourier: may be NULL for the defaults.
/// - kspace: complex [samples, coils, frames], read.
/// - image: complex [nx, ny, nz, images, frames], written.
/// - report: may be NULL.
///
/// recon_last_warning returns RECON_WARNING_PARTIAL_FOURIER if the phase is not smooth, if the symmetric centre has
/// fewer than seven samples on the short side, or if a trajectory that is not Cartesian has gaps. It also returns the
/// warnings of the plan.
///
/// Errors:
/// - As recon_plan_create and recon_grid.
/// - RECON_INVALID_ARGUMENT if no side is missing, if there are fewer than four samples on the short side, or if
///   points of a Cartesian grid are missing in the measured part, as in parallel imaging.
/// - RECON_UNSUPPORTED if sides of several axes are missing, for a voxel list, voxels with the shape of a box, field
///   and decay maps, and for pointers_on_device.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_partial_fourier(
    geometry: *const recon_geometry,
    options: *const recon_options,
    partial_fourier: *const recon_partial_fourier_options,
    kspace: *const c_void,
    image: *mut c_void,
    report: *mut recon_partial_fourier_report,
) -> recon_status {
    // SAFETY: the structures are the caller's, with arrays of the documented lengths.
    call(|| unsafe {
        let mut arrays = CallArrays::default();
        let scan = ScanInput::read(geometry)?;
        let options = host_options(options, "partial Fourier images are computed")?;
        let how = partial_fourier_options(partial_fourier)?;
        let output = StructOutput::optional(&mut arrays, "report", report)?;
        let found = with_precision!(scan.precision, T => {
            reconstruct::<T>(&scan, &mut arrays, &options, &how, kspace.cast(), image.cast())?
        });
        if let Some(mut output) = output {
            output.value.axis = found.axis as u32;
            output.value.extent = found.extent;
            output.value.iterations = found.iterations as u64;
            output.value.change = found.change;
            output.value.residual = found.residual;
            output.write();
        }
        Ok(())
    })
}

/// Computes and writes the images.
///
/// # Safety
/// The pointers are null or lead to arrays of the documented lengths.
unsafe fn reconstruct<T: Real>(
    scan: &ScanInput,
    arrays: &mut CallArrays,
    options: &Options,
    how: &PartialFourierOptions,
    kspace: *const Complex<T>,
    image: *mut Complex<T>,
) -> Result<PartialFourierReport> {
    let data = checked_product(&[scan.samples, scan.coils, scan.frames], "the k-space data")?;
    let images = if scan.has_maps() { 1 } else { scan.coils };
    let voxels = checked_product(&[scan.voxels, images, scan.frames], "the images")?;
    // SAFETY: the caller's promise.
    unsafe {
        let kspace = arrays.input("kspace", kspace, data)?;
        let image = arrays.output("image", image, voxels)?;
        scan.with_geometry::<T, PartialFourierReport>(arrays, |geometry| {
            PartialFourier::new(geometry, options, how)?.reconstruct(kspace, image)
        })
    }
}

/// Reads the options of the reconstruction; null means the defaults.
///
/// # Safety
/// As for [`read_or_initial`].
unsafe fn partial_fourier_options(options: *const recon_partial_fourier_options) -> Result<PartialFourierOptions> {
    // SAFETY: the caller's promise.
    let raw = unsafe { read_or_initial("partial_fourier", options) }?;
    Ok(PartialFourierOptions {
        method: choice("method", raw.method)?,
        iterations: size("iterations", raw.iterations)?,
        tolerance: raw.tolerance,
    })
}
