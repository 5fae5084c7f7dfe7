//! Differences of phases, and velocity from them.

use super::arrays::CallArrays;
use super::enumerations::Precision;
use super::inputs::{with_precision, ScanInput};
use super::status::{call, recon_status};
use super::structs::recon_geometry;
use crate::base::error::{bail, try_vec, Result};
use crate::{phase_difference, Complex, ConcomitantPhase, PhaseDifferenceOptions, Real};
use std::ffi::c_void;

/// Computes the phase of images minus the phase of reference images, from coil images or combined images. It is the
/// phase of the sum over coils of image times conj(reference), in which the phases of the coils cancel. With venc, the
/// result is a velocity: phase * venc / pi. It uses the geometry's precision, ndim, dims, coils and frames.
///
/// The result is in [-pi, pi), or in [-venc, venc). It is 0 if the sum is 0, for example where an image is 0. If
/// neighbouring voxels with signal differ by more than pi, recon_last_warning returns RECON_WARNING_WRAPS.
///
/// With maxwell, the phase of concomitant fields is added, and the sum is wrapped into the range (Bernstein et al.,
/// Magn. Reson. Med. 39:300, 1998). It is 2 pi (A z^2 + B (x^2 + y^2) + C x z + D y z), with A to D in maxwell.
///
/// x, y and z are in metres from the isocentre along the gradients' axes, z along the main field. The coefficients are
/// the user parameters MaxwellCoefficient_0 to MaxwellCoefficient_3 of ISMRMRD's header. If the phase is to be
/// subtracted, negate them. In ISMRMRD's patient coordinates (x to the left, y to the back, z to the head), the axes
/// depend on the patient's position. For HFS they are (1, 0, 0), (0, -1, 0) and (0, 0, -1).
///
/// - images, reference: complex [nx, ny, nz, coils, frames], read.
/// - venc: the velocity that causes a phase of pi, in any unit; 0: the result is the phase in radians.
/// - maxwell: double [4], in cycles per square metre, read; or NULL for no correction.
/// - origin: double [3], the position of the voxel with index 0 on all axes, in mm from the isocentre along the
///   gradients' axes, read. NULL if maxwell is NULL.
/// - steps: double [3, 3], the steps from voxel to voxel along the image's x, then y, then z, as origin, read. NULL if
///   maxwell is NULL.
/// - difference: real [nx, ny, nz, frames], written.
///
/// Errors:
/// - RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_INVALID_SIZE, RECON_SIZE_OVERFLOW,
///   RECON_OUT_OF_HOST_MEMORY.
/// - RECON_INVALID_ARGUMENT if arrays overlap, for a negative venc, and if both images are magnitudes. Also for voxels
///   more than 2 m from the isocentre, and for an origin or steps without maxwell.
/// - RECON_NOT_FINITE, with the voxel's index.
/// - RECON_UNSUPPORTED for a voxel list.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_phase_difference(
    geometry: *const recon_geometry,
    images: *const c_void,
    reference: *const c_void,
    venc: f64,
    maxwell: *const f64,
    origin: *const f64,
    steps: *const f64,
    difference: *mut c_void,
) -> recon_status {
    // SAFETY: the structures are the caller's, with arrays of the documented lengths.
    call(|| unsafe {
        let scan = ScanInput::read(geometry)?;
        if scan.listed {
            bail!(Unsupported, "voxels of a list have no neighbours: leave voxels and voxel_count unset");
        }
        let mut arrays = CallArrays::default();
        let concomitant = match arrays.optional("maxwell", maxwell, 4)? {
            Some(&[a, b, c, d]) => {
                let origin = arrays.input("origin", origin, 3)?;
                let steps = arrays.input("steps", steps, 9)?;
                let step = |axis: usize| [0, 1, 2].map(|i| steps[3 * axis + i]);
                let origin = [origin[0], origin[1], origin[2]];
                Some(ConcomitantPhase::new([a, b, c, d], origin, [step(0), step(1), step(2)])?)
            }
            _ if origin.is_null() && steps.is_null() => None,
            _ => bail!(InvalidArgument, "origin or steps are given without maxwell: give maxwell, or leave all NULL"),
        };
        // The library refuses a negative or infinite number.
        let options = PhaseDifferenceOptions { venc: (venc != 0.0).then_some(venc), concomitant };
        with_precision!(scan.precision, T => subtract::<T>(&scan, images, reference, &options, arrays, difference))
    })
}

/// Computes the differences of all frames in one precision.
///
/// # Safety The pointers lead to arrays of the lengths that `scan` gives.
unsafe fn subtract<T: Real>(
    scan: &ScanInput,
    images: *const c_void,
    reference: *const c_void,
    options: &PhaseDifferenceOptions,
    mut arrays: CallArrays,
    difference: *mut c_void,
) -> Result<()> {
    let (voxels, coils, frames) = (scan.voxels, scan.coils, scan.frames);
    let per_frame = voxels * coils;
    // SAFETY: the caller's promise; the largest product was checked when the scan was read.
    let (images, reference, difference) = unsafe {
        let images = arrays.input::<Complex<T>>("images", images.cast(), per_frame * frames)?;
        let reference = arrays.input::<Complex<T>>("reference", reference.cast(), per_frame * frames)?;
        (images, reference, arrays.results::<T>("difference", difference.cast(), voxels * frames)?)
    };
    if per_frame * frames == 0 {
        bail!(InvalidSize, "{frames} frames of {coils} coil images of {voxels} voxels: there are no images");
    }
    let mut result = try_vec(difference.len(), T::ZERO, "the phase differences")?;
    let pairs = images.chunks_exact(per_frame).zip(reference.chunks_exact(per_frame));
    for ((image, reference), to) in pairs.zip(result.chunks_exact_mut(voxels)) {
        phase_difference(image, reference, &scan.dims, coils, options, to)?;
    }
    difference.deliver(&result)
}
