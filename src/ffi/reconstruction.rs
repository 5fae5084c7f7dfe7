//! Filtered backprojection, density weights and coil maps.

use super::arrays::{size, CallArrays};
use super::enumerations::{choice, DensityNumber};
use super::plan_handle::{call_with_plan, recon_plan, with_plan_snapshot, with_shared_plan, TypedPlan};
use super::status::recon_status;
use crate::base::error::bail;
use crate::Density;
use std::ffi::c_void;

/// Computes the filtered backprojection of 2D radial data at any angles (Schiwietz et al. 2006). Each spoke is
/// multiplied by the ramp |k| and the filter's window, transformed to positions along its line, and added to every
/// voxel by linear interpolation. The positions are at most half a voxel apart. The scale is that of recon_grid: a
/// fully sampled object keeps its scale.
///
/// The interpolation limits the accuracy. Its error is up to a tenth where |k| is near 0.5, and far less for smaller
/// |k|. Each sample is weighted by the area of k-space that it represents, for any angles of the spokes. recon_grid is
/// faster.
///
/// Spokes are recognised from the trajectory. Samples must be in the order of acquisition, with the same number on each
/// spoke, evenly spaced on a line through the centre of k-space. A spoke may begin at the centre or before it, and
/// continue to either side. The geometry's weights are not used; its coil maps and voxel basis are.
///
/// - filter: a recon_filter; RECON_FILTER_RAM_LAK is 0.
/// - kspace: complex [samples, coils, frames], read.
/// - image: complex [nx, ny, images, frames], written.
///
/// Errors:
/// - As recon_grid; RECON_UNKNOWN_VALUE.
/// - RECON_UNSUPPORTED in 3D and for a voxel list.
/// - RECON_INVALID_ARGUMENT for samples that are not such spokes, with the sample or spoke.
/// - RECON_INVALID_ARGUMENT if spokes leave a sector of k-space unmeasured.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_fbp(
    plan: *const recon_plan,
    filter: u32,
    kspace: *const c_void,
    image: *mut c_void,
) -> recon_status {
    // SAFETY: the plan is the caller's, with arrays of the documented lengths.
    call_with_plan(plan, |plan| unsafe {
        let filter = choice("filter", filter)?;
        with_plan_snapshot!(plan, p => {
            let mut arrays = CallArrays::default();
            let from = arrays.source("kspace", kspace.cast(), p.kspace_len(), plan.on_device)?;
            p.fbp(filter, from, arrays.sink("image", image.cast(), p.image_len(), plan.on_device)?)
        })
    })
}

/// Computes density weights for the plan's trajectory: the volume of k-space that each sample represents.
///
/// - method: a recon_density_method.
/// - iterations, tolerance: for RECON_DENSITY_PIPE_MENON only. Iteration stops after `iterations` steps, or when the
///   RMS of C w - 1 over the samples changes by less than the tolerance. 0 iterations means 30 iterations and a
///   tolerance of 1e-3.
/// - weights: real [samples], written. They can be given to recon_plan_set_weights or to a new plan, or used by the
///   caller.
///
/// Errors:
/// - RECON_NULL_POINTER, RECON_UNKNOWN_VALUE, RECON_OUT_OF_HOST_MEMORY.
/// - RECON_INVALID_ARGUMENT for a negative tolerance, for a trajectory that RECON_DENSITY_RAMP does not support, and if
///   no sample is near the centre of k-space.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_density(
    plan: *const recon_plan,
    method: u32,
    iterations: u64,
    tolerance: f64,
    weights: *mut c_void,
) -> recon_status {
    // SAFETY: the plan is the caller's, with an array of the documented length.
    call_with_plan(plan, |plan| unsafe {
        let method = choice("method", method)?;
        if method == DensityNumber::PipeMenon && !(tolerance >= 0.0) {
            bail!(InvalidArgument, "tolerance is {tolerance}: Pipe-Menon weights need one of 0 or more");
        }
        let pipe_menon = match iterations {
            0 => Density::default(),
            n => Density::PipeMenon { iterations: size("iterations", n)?, tolerance },
        };
        let method = match method {
            DensityNumber::PipeMenon => pipe_menon,
            DensityNumber::Ramp => Density::Ramp,
            DensityNumber::Jackson => Density::Jackson,
        };
        with_plan_snapshot!(plan, p => {
            let weights = CallArrays::default().results("weights", weights.cast(), p.samples())?;
            weights.deliver(&p.density(method)?)
        })
    })
}

/// Estimates coil sensitivities from the centre of k-space of the data. In each voxel they are the dominant eigenvector
/// of the coils' covariance in a neighbourhood (Walsh et al. 2000), scaled to sum_c |S_c|^2 = 1. Frames are averaged.
///
/// Maps are 0 in voxels without an object: the low-resolution signal of all coils is below 1 % of its maximum. Maps are
/// also 0 in the corners of the field of view if samples of spokes or turns of a spiral are about 1/FOV apart, since
/// aliases of the object lie there. If gaps between samples reduce the centre to less than 24 samples, or bring aliases
/// into the field of view, recon_last_warning returns RECON_WARNING_CALIBRATION.
///
/// The phase of the maps is that of a virtual coil, not that of the object. The estimate is wrong if sensitivities
/// change faster than the central samples resolve, or if the object is larger than the field of view. In these cases
/// measure the maps and give them to the plan.
///
/// - kspace: complex [samples, coils, frames], read.
/// - calibration: width of that centre in samples of a Cartesian scan. A wider centre resolves more, with more noise.
///   0: 24, and in a plane up to 48 if k-space is sampled without gaps up to there.
/// - maps: complex [nx, ny, nz, coils], written; to be given to a new plan.
///
/// Errors:
/// - As recon_fhd; RECON_UNSUPPORTED for a voxel list.
/// - RECON_INVALID_ARGUMENT if no sample is in the centre.
/// - RECON_INVALID_ARGUMENT if samples are missing from the central 8, as in a Cartesian scan of every second line:
///   estimate maps by a plan for its calibration lines.
/// - RECON_INVALID_ARGUMENT for a centre wider than k-space (twice the image's largest size).
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_coil_maps(
    plan: *const recon_plan,
    kspace: *const c_void,
    calibration: u64,
    maps: *mut c_void,
) -> recon_status {
    // SAFETY: the plan is the caller's, with arrays of the documented lengths.
    call_with_plan(plan, |plan| unsafe {
        let calibration = size("calibration", calibration)?;
        with_plan_snapshot!(plan, p => {
            let mut arrays = CallArrays::default();
            let kspace = arrays.input("kspace", kspace.cast(), p.kspace_len())?;
            let maps = arrays.results("maps", maps.cast(), plan.voxels * plan.coils)?;
            maps.deliver(&p.coil_maps(kspace, calibration)?)
        })
    })
}
