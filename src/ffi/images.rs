//! Combination and resizing of images.

use super::arrays::{size, CallArrays};
use super::enumerations::{choice, Precision};
use super::inputs::{with_precision, ScanInput};
use super::status::{call, recon_status};
use super::structs::recon_geometry;
use crate::base::error::{bail, checked_product, try_vec, Result};
use crate::{Combine, Complex, Real, Resize};
use std::ffi::c_void;

/// Combines the images of coils into one image per frame. It uses the geometry's precision, dims (or the voxel list's
/// length), coils and frames.
///
/// - method: a recon_combine_method.
/// - coil_images: complex [nx, ny, nz, coils, frames], read.
/// - image: complex [nx, ny, nz, frames], written.
///
/// Errors:
/// - RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_INVALID_SIZE, RECON_SIZE_OVERFLOW,
///   RECON_OUT_OF_HOST_MEMORY.
/// - RECON_INVALID_ARGUMENT if the arrays overlap.
/// - RECON_NOT_FINITE, with the voxel's index.
/// - RECON_UNSUPPORTED for a voxel list with RECON_COMBINE_ADAPTIVE.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_combine(
    geometry: *const recon_geometry,
    method: u32,
    coil_images: *const c_void,
    image: *mut c_void,
) -> recon_status {
    // SAFETY: the structures are the caller's, with arrays of the documented lengths.
    call(|| unsafe {
        let scan = ScanInput::read(geometry)?;
        let method = choice("method", method)?;
        with_precision!(scan.precision, T => combine::<T>(&scan, method, coil_images, image))
    })
}

/// Combines coil images in one precision.
///
/// # Safety The pointers lead to arrays of the lengths that `scan` gives.
unsafe fn combine<T: Real>(
    scan: &ScanInput,
    method: Combine,
    coil_images: *const c_void,
    image: *mut c_void,
) -> Result<()> {
    let (voxels, coils, frames) = (scan.voxels, scan.coils, scan.frames);
    let mut arrays = CallArrays::default();
    // SAFETY: the caller's promise; the largest product was checked when the scan was read.
    let (coil_images, image) = unsafe {
        let coil_images = arrays.input::<Complex<T>>("coil_images", coil_images.cast(), voxels * coils * frames)?;
        (coil_images, arrays.results::<Complex<T>>("image", image.cast(), voxels * frames)?)
    };
    if scan.listed && method == Combine::Adaptive {
        bail!(Unsupported, "voxels of a list have no neighbours: use RECON_COMBINE_ROOT_SUM_OF_SQUARES");
    }
    if voxels * coils * frames == 0 {
        bail!(InvalidSize, "{frames} frames of {coils} coil images of {voxels} voxels: nothing to combine");
    }
    let dims = if scan.listed { &[voxels][..] } else { &scan.dims };
    let mut result = try_vec(image.len(), Complex::default(), "the combined images")?;
    for (from, to) in coil_images.chunks_exact(voxels * coils).zip(result.chunks_exact_mut(voxels)) {
        crate::combine(from, dims, coils, method, to)?;
    }
    image.deliver(&result)
}

/// Resizes images from the encoded matrix, on which they are reconstructed, to the requested matrix and field of view.
/// It uses the geometry's precision, ndim, dims, coils and frames.
///
/// If the new voxels have a different size, the image is interpolated by Fourier to exactly that size. The field of
/// view need not contain a whole number of new voxels. Then the middle is cut out, or surrounded by zeros. The voxel
/// with index floor(n/2) keeps its position, and the object keeps its scale.
///
/// - fov: [ndim], the field of view that the geometry's dims cover, in any unit.
/// - dims: [ndim], the requested matrix.
/// - dims_fov: [ndim], the field of view that `dims` covers, in the same unit. The voxel size does not change along an
///   axis if its fov or dims_fov is 0 or less. fov and dims_fov may both be NULL: no voxel size changes.
/// - images: complex [nx, ny, nz, coils, frames], read.
/// - resized: complex [dims, coils, frames], written.
///
/// Errors:
/// - RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_SIZE_OVERFLOW, RECON_OUT_OF_HOST_MEMORY.
/// - RECON_INVALID_SIZE if a size is 0.
/// - RECON_INVALID_ARGUMENT if the arrays overlap.
/// - RECON_NOT_FINITE, with the voxel's index.
/// - RECON_UNSUPPORTED for a voxel list.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_resize(
    geometry: *const recon_geometry,
    fov: *const f64,
    dims: *const u64,
    dims_fov: *const f64,
    images: *const c_void,
    resized: *mut c_void,
) -> recon_status {
    // SAFETY: the structures are the caller's, with arrays of the documented lengths.
    call(|| unsafe {
        let scan = ScanInput::read(geometry)?;
        if scan.listed {
            bail!(Unsupported, "voxels of a list have no matrix: leave voxels and voxel_count unset");
        }
        let ndim = scan.dims.len();
        let mut arrays = CallArrays::default();
        let requested = arrays.input("dims", dims, ndim)?;
        let requested = requested.iter().map(|&n| size("dims", n)).collect::<Result<Vec<_>>>()?;
        let fov = arrays.optional("fov", fov, ndim)?.unwrap_or(&[0.0; 3][..ndim]);
        let dims_fov = arrays.optional("dims_fov", dims_fov, ndim)?.unwrap_or(&[0.0; 3][..ndim]);
        let resize = Resize::new(&scan.dims, fov, &requested, dims_fov)?;
        let voxels = checked_product(&requested, "the requested image")?;
        checked_product(&[voxels, scan.coils, scan.frames], "the requested images")?;
        with_precision!(scan.precision, T => {
            let count = scan.coils * scan.frames;
            let images = arrays.input::<Complex<T>>("images", images.cast(), scan.voxels * count)?;
            let resized = arrays.results::<Complex<T>>("resized", resized.cast(), voxels * count)?;
            if count == 0 {
                bail!(InvalidSize, "{} frames of {} coils: there are no images", scan.frames, scan.coils);
            }
            let mut result = try_vec(resized.len(), Complex::default(), "the requested images")?;
            for (from, to) in images.chunks_exact(scan.voxels).zip(result.chunks_exact_mut(voxels)) {
                resize.apply(from, to)?;
            }
            resized.deliver(&result)
        })
    })
}
