//! Phantoms, noise, and the comparison of images.

use super::arrays::{size, CallArrays};
use super::enumerations::{choice, CoilKind, ComparedPart, Precision};
use super::inputs::{with_precision, ScanInput};
use super::status::{call, recon_status};
use super::structs::{recon_geometry, recon_quality};
use super::versioned::{StructOutput, VersionedStruct};
use crate::base::error::{bail, checked_product, try_collect, try_vec, Result};
use crate::base::geometry::Geometry;
use crate::base::options::{Device, Options};
use crate::base::real::{narrow, wide, Real};
use crate::simulated_scan::{phantom_kspace, subdivision};
use crate::simulation::metrics::{compare, compare_magnitude};
use crate::simulation::phantom::{add_noise, CoilModel, Ellipsoid, Phantom};
use crate::Complex;
use std::ffi::c_void;

/// Returns the phantom of a caller's table, or the head phantom of Shepp and Logan without one.
///
/// # Safety `shapes` is null or leads to 10 `count` numbers.
unsafe fn phantom(arrays: &mut CallArrays, ndim: usize, shapes: *const f64, count: u64) -> Result<Phantom> {
    if shapes.is_null() && count == 0 {
        return Ok(if ndim == 2 { Phantom::shepp_logan_2d() } else { Phantom::shepp_logan_3d() });
    }
    let numbers = checked_product(&[10, size("shape_count", count)?], "the phantom")?;
    // SAFETY: the caller's promise.
    let table = unsafe { arrays.input("shapes", shapes, numbers) }?;
    let triple = |row: &[f64]| [row[0], row[1], row[2]];
    let shapes = table.chunks_exact(10).map(|row| Ellipsoid {
        density: row[0],
        centre: triple(&row[1..]),
        semi_axes: triple(&row[4..]),
        angles: triple(&row[7..]),
    });
    Phantom::new(ndim, try_collect(numbers / 10, "the phantom", shapes)?)
}

/// Computes the k-space of a phantom of ellipses (2D) or ellipsoids (3D) from its analytic Fourier transform. It uses
/// the geometry's precision, dims, samples, coordinates, coils and frames. All frames are equal.
///
/// If the geometry has field_map or decay_map, with times, the k-space includes off-resonance and decay. It is then
/// computed on the CPU by direct sums over small boxes of the phantom, in a time proportional to samples times boxes.
/// There are 4 boxes per voxel and axis in 2D, and 2 in 3D. Maps are interpolated linearly between voxels. The relative
/// l2 error is below 1e-3.
///
/// - shapes: double [10, shape_count]: density, centre x y z, semi-axes, Euler angles phi theta psi in radians
///   (rotation Rz(phi) Ry(theta) Rz(psi)). The field of view is [-1, 1]. NULL with a shape_count of 0: the head phantom
///   of Shepp and Logan with raised contrast.
/// - coil_model: a recon_coil_model; RECON_COILS_UNIFORM is for one coil.
/// - threads: maximum number of threads; 0 for the number that the machine runs at once. The result does not depend on
///   it.
/// - kspace: complex [samples, coils, frames], written, in units of density times voxels.
///
/// Errors:
/// - RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_INVALID_SIZE, RECON_SIZE_OVERFLOW,
///   RECON_OUT_OF_HOST_MEMORY.
/// - RECON_SIZE_MISMATCH for several uniform coils.
/// - RECON_NOT_FINITE, with the index.
/// - RECON_INVALID_ARGUMENT for an implausible shape, for maps without times or times without maps, and for a phantom
///   that extends beyond the maps.
/// - RECON_UNSUPPORTED for maps of a voxel list.
/// - RECON_COORDINATE_OUT_OF_RANGE with maps.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_phantom_kspace(
    geometry: *const recon_geometry,
    shapes: *const f64,
    shape_count: u64,
    coil_model: u32,
    threads: u32,
    kspace: *mut c_void,
) -> recon_status {
    // SAFETY: the structures are the caller's, with arrays of the documented lengths.
    call(|| unsafe {
        let scan = ScanInput::read(geometry)?;
        let ring = choice::<CoilKind>("coil_model", coil_model)? == CoilKind::Ring;
        if scan.frames == 0 {
            bail!(InvalidSize, "frames is 0: at least one is needed");
        }
        if !ring && scan.coils != 1 {
            bail!(SizeMismatch, "coils is {}: use RECON_COILS_RING, or 1 coil with RECON_COILS_UNIFORM", scan.coils);
        }
        let mut arrays = CallArrays::default();
        let phantom = phantom(&mut arrays, scan.dims.len(), shapes, shape_count)?;
        let coils = if ring { Some(CoilModel::ring(scan.coils, scan.dims.len())?) } else { None };
        with_precision!(scan.precision, T => {
            let k = scan.coordinates::<T>(&mut arrays)?;
            let len = scan.samples * scan.coils * scan.frames;
            let kspace = arrays.results::<Complex<T>>("kspace", kspace.cast(), len)?;
            let mut axes = Vec::new();
            for k in &k {
                let mut axis = try_vec(k.len(), 0.0, "coordinates")?;
                axis.iter_mut().zip(k.iter()).for_each(|(to, from)| *to = from.wide());
                axes.push(axis);
            }
            let axes: Vec<&[f64]> = axes.iter().map(|k| &k[..]).collect();
            let given = scan.off_resonance::<T>(&mut arrays)?;
            let mut maps: [Option<Vec<f64>>; 3] = Default::default();
            for (wide_map, given) in maps.iter_mut().zip(given) {
                let Some(given) = given else { continue };
                *wide_map = Some(try_collect(given.len(), "maps", given.iter().map(|x| x.wide()))?);
            }
            let mut geometry = Geometry::new(&scan.dims, &axes);
            (geometry.field_map, geometry.decay_map) = (maps[0].as_deref(), maps[1].as_deref());
            geometry.times = maps[2].as_deref();
            if scan.listed && geometry.times.is_some() {
                bail!(Unsupported, "maps of a list of voxels have no neighbours to interpolate between: leave it out");
            }
            let options = Options { device: Device::Cpu, threads: threads as usize, ..Options::default() };
            let boxes = subdivision(scan.dims.len());
            let values = phantom_kspace(&phantom, &geometry, coils.as_ref(), boxes, &options)?;
            let frames = values.iter().cycle().take(len).map(|&z| narrow(z));
            let frames = try_collect(len, "the k-space of a phantom", frames)?;
            kspace.deliver(&frames)
        })
    })
}

/// Computes the image of a phantom. It uses the geometry's precision and dims.
///
/// - shapes, shape_count: as for recon_phantom_kspace.
/// - supersample: points per voxel and axis over which the density is averaged; 1 takes the density at the voxel's
///   centre.
/// - image: complex [nx, ny, nz], written, with imaginary parts of 0.
///
/// Errors: as recon_phantom_kspace; RECON_INVALID_SIZE for a supersample of 0.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_phantom_image(
    geometry: *const recon_geometry,
    shapes: *const f64,
    shape_count: u64,
    supersample: u64,
    image: *mut c_void,
) -> recon_status {
    // SAFETY: the structures are the caller's, with arrays of the documented lengths.
    call(|| unsafe {
        let scan = ScanInput::read(geometry)?;
        let supersample = size("supersample", supersample)?;
        let mut arrays = CallArrays::default();
        let phantom = phantom(&mut arrays, scan.dims.len(), shapes, shape_count)?;
        with_precision!(scan.precision, T => {
            let voxels = scan.dims.iter().product();
            let image = arrays.results::<Complex<T>>("image", image.cast(), voxels)?;
            let values = phantom.image(&scan.dims, supersample)?;
            let values = values.iter().map(|&v| Complex::new(T::of(v), T::ZERO));
            image.deliver(&try_collect(voxels, "the image of a phantom", values)?)
        })
    })
}

/// Computes the sensitivities of RECON_COILS_RING. It uses the geometry's precision, dims and coils.
///
/// - maps: complex [nx, ny, nz, coils], written.
///
/// Errors: as recon_phantom_kspace.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_phantom_coil_maps(geometry: *const recon_geometry, maps: *mut c_void) -> recon_status {
    // SAFETY: the caller's structure, and an array as long as it says.
    call(|| unsafe {
        let scan = ScanInput::read(geometry)?;
        with_precision!(scan.precision, T => {
            let elements = checked_product(&[&scan.dims[..], &[scan.coils]].concat(), "coil maps")?;
            let maps = CallArrays::default().results::<Complex<T>>("maps", maps.cast(), elements)?;
            let values = CoilModel::ring(scan.coils, scan.dims.len())?.maps(&scan.dims)?;
            maps.deliver(&try_collect(elements, "coil maps", values.iter().map(|&z| narrow(z)))?)
        })
    })
}

/// Adds complex white Gaussian noise to data. A seed gives the same noise on every platform. It uses the geometry's
/// precision, samples, coils and frames.
///
/// - snr: root mean square magnitude of the data of all coils, divided by that of the noise; not in dB.
/// - kspace: complex [samples, coils, frames], read and written.
/// - deviation: root mean square magnitude of the noise, written. Or NULL.
///
/// Errors:
/// - RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_INVALID_SIZE, RECON_SIZE_OVERFLOW.
/// - RECON_NOT_FINITE, with the index.
/// - RECON_INVALID_ARGUMENT for an snr that is not positive and finite, and if all data are 0.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_add_noise(
    geometry: *const recon_geometry,
    snr: f64,
    seed: u64,
    kspace: *mut c_void,
    deviation: *mut f64,
) -> recon_status {
    // SAFETY: the structures are the caller's, with arrays of the documented lengths.
    call(|| unsafe {
        let scan = ScanInput::read(geometry)?;
        let mut arrays = CallArrays::default();
        with_precision!(scan.precision, T => {
            let len = scan.samples * scan.coils * scan.frames;
            let kspace = arrays.results::<Complex<T>>("kspace", kspace.cast(), len)?;
            let deviation = arrays.optional_results("deviation", deviation, 1)?;
            let mut noisy = try_collect(len, "noisy data", kspace.inputs().iter().map(|&z| wide(z)))?;
            let sigma = add_noise(&mut noisy, snr, seed)?;
            let noisy = try_collect(len, "noisy data", noisy.iter().map(|&z| narrow(z)))?;
            let kspace = kspace.check(&noisy)?;
            if let Some(deviation) = deviation {
                deviation.deliver(&[sigma])?;
            }
            kspace.write();
            Ok(())
        })
    })
}

/// Measures the difference of an image from the truth. It uses the geometry's precision and dims (or the voxel list's
/// length).
///
/// - image, truth: complex [nx, ny, nz], read.
/// - mask: [nx, ny, nz] bytes; voxels with 0 are ignored. NULL: all voxels are compared.
/// - part: a recon_part.
/// - scale: a recon_scale.
/// - quality: written.
///
/// Errors:
/// - RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_SIZE_OVERFLOW.
/// - RECON_INVALID_SIZE if the mask leaves no voxel to compare.
/// - RECON_NOT_FINITE, with the index.
/// - RECON_INVALID_ARGUMENT if the truth is 0 everywhere.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_metrics(
    geometry: *const recon_geometry,
    image: *const c_void,
    truth: *const c_void,
    mask: *const u8,
    part: u32,
    scale: u32,
    quality: *mut recon_quality,
) -> recon_status {
    // SAFETY: the structures are the caller's, with arrays of the documented lengths.
    call(|| unsafe {
        let scan = ScanInput::read(geometry)?;
        let magnitude = choice::<ComparedPart>("part", part)? == ComparedPart::Magnitude;
        let scale = choice("scale", scale)?;
        let mut arrays = CallArrays::default();
        let mut out = StructOutput::new(&mut arrays, "quality", quality)?;
        let included = match arrays.optional("mask", mask, scan.voxels)? {
            None => None,
            Some(mask) => {
                let mut included = try_vec(mask.len(), false, "the mask")?;
                included.iter_mut().zip(mask).for_each(|(included, byte)| *included = *byte != 0);
                Some(included)
            }
        };
        let m = with_precision!(scan.precision, T => {
            let image = arrays.input::<Complex<T>>("image", image.cast(), scan.voxels)?;
            let truth = arrays.input::<Complex<T>>("truth", truth.cast(), scan.voxels)?;
            match magnitude {
                false => compare(image, truth, scale, included.as_deref())?,
                true => compare_magnitude(image, truth, scale, included.as_deref())?,
            }
        });
        out.value = recon_quality {
            percent_error: m.percent_error,
            mse: m.mse,
            psnr_db: m.psnr_db,
            snr_db: m.snr_db,
            scale_re: m.scale.re,
            scale_im: m.scale.im,
            ..recon_quality::initial()
        };
        out.write();
        Ok(())
    })
}
