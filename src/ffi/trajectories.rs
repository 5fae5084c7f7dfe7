//! Generators of trajectories.

use super::arrays::{size, CallArrays, CheckedResults, ResultArray};
use super::enumerations::{choice, Precision};
use super::inputs::{precision, with_precision};
use super::status::{call, recon_status};
use crate::base::error::{bail, checked_product, try_collect, Result};
use crate::simulation::trajectory::{SpokeOrder, Trajectory};
use crate::Real;
use std::ffi::c_void;

/// Returns the spoke order of a recon_spoke_order.
fn spoke_order(order: u32) -> Result<SpokeOrder> {
    choice("order", order)
}

/// Generates a trajectory and writes it to the caller's coordinate arrays. The number of samples is the product of
/// `counts`. The arrays are checked first.
///
/// # Safety The pointers lead to arrays of that length, of the precision's type.
unsafe fn write_trajectory(
    precision_number: u32,
    counts: &[u64],
    axes: &[(&'static str, *mut c_void)],
    make: impl FnOnce(&[usize]) -> Result<Trajectory>,
) -> Result<()> {
    let precision = precision(precision_number)?;
    let counts = counts.iter().map(|&n| size("a count", n)).collect::<Result<Vec<_>>>()?;
    let samples = checked_product(&counts, "a trajectory")?;
    with_precision!(precision, T => {
        let mut arrays = CallArrays::default();
        let mut outputs: Vec<ResultArray<'_, T>> = Vec::new();
        for (name, pointer) in axes {
            // SAFETY: the caller's promise.
            outputs.push(unsafe { arrays.results(name, pointer.cast(), samples) }?);
        }
        let trajectory = make(&counts)?;
        let mut axes = Vec::new();
        for axis in 0..outputs.len() {
            let k = trajectory.axis(axis).iter().map(|&k| T::coordinate(k));
            axes.push(try_collect(samples, "a trajectory", k)?);
        }
        let checked = outputs.into_iter().zip(&axes).map(|(out, k)| out.check(k)).collect::<Result<Vec<_>>>()?;
        checked.into_iter().for_each(CheckedResults::write);
        Ok(())
    })
}

/// Generates a fully sampled Cartesian grid: k = (index - floor(n/2)) / n on each axis, with x fastest.
///
/// The errors are those of every generator below, as is the meaning of `precision`.
///
/// - precision: a recon_precision, that of the coordinates.
/// - ndim: 1 to 3.
/// - dims: [ndim].
/// - kx, ky, kz: real [product of dims] each, written. Arrays beyond ndim may be NULL.
///
/// Errors:
/// - RECON_NULL_POINTER, RECON_UNKNOWN_VALUE, RECON_SIZE_OVERFLOW, RECON_OUT_OF_HOST_MEMORY.
/// - RECON_INVALID_SIZE if a size is 0.
/// - RECON_INVALID_ARGUMENT if arrays overlap.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_trajectory_cartesian(
    precision: u32,
    ndim: u32,
    dims: *const u64,
    kx: *mut c_void,
    ky: *mut c_void,
    kz: *mut c_void,
) -> recon_status {
    // SAFETY: the arrays are the caller's, with the documented lengths.
    call(|| unsafe {
        if !(1..=3).contains(&ndim) {
            bail!(InvalidSize, "ndim is {ndim}: a Cartesian grid has 1 to 3 axes");
        }
        let ndim = ndim as usize;
        let dims = CallArrays::default().input("dims", dims, ndim)?;
        let axes = [("kx", kx), ("ky", ky), ("kz", kz)];
        write_trajectory(precision, dims, &axes[..ndim], Trajectory::cartesian)
    })
}

/// Generates 2D spokes through the centre. Sample j of a spoke is at the signed radius (j - floor(samples/2)) /
/// samples.
///
/// - order: a recon_spoke_order.
/// - kx, ky: real [samples, spokes] each, written.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_trajectory_radial2d(
    precision: u32,
    spokes: u64,
    samples: u64,
    order: u32,
    kx: *mut c_void,
    ky: *mut c_void,
) -> recon_status {
    // SAFETY: the arrays are the caller's, with the documented lengths.
    call(|| unsafe {
        let order = spoke_order(order)?;
        write_trajectory(precision, &[spokes, samples], &[("kx", kx), ("ky", ky)], |n| {
            Trajectory::radial2d(n[0], n[1], order)
        })
    })
}

/// Generates a stack of stars: the spokes of recon_trajectory_radial2d, the same in each partition. Partition q is at
/// kz = (q - floor(partitions/2)) / partitions.
///
/// - order: a recon_spoke_order.
/// - kx, ky, kz: real [samples, spokes, partitions] each, written.
#[no_mangle]
#[must_use]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn recon_trajectory_stack_of_stars(
    precision: u32,
    spokes: u64,
    samples: u64,
    partitions: u64,
    order: u32,
    kx: *mut c_void,
    ky: *mut c_void,
    kz: *mut c_void,
) -> recon_status {
    // SAFETY: the arrays are the caller's, with the documented lengths.
    call(|| unsafe {
        let order = spoke_order(order)?;
        let axes = [("kx", kx), ("ky", ky), ("kz", kz)];
        write_trajectory(precision, &[spokes, samples, partitions], &axes, |n| {
            Trajectory::stack_of_stars(n[0], n[1], n[2], order)
        })
    })
}

/// Generates 3D spokes through the centre, spread evenly over the sphere by a spiral from pole to equator.
///
/// - kx, ky, kz: real [samples, spokes] each, written.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_trajectory_radial3d(
    precision: u32,
    spokes: u64,
    samples: u64,
    kx: *mut c_void,
    ky: *mut c_void,
    kz: *mut c_void,
) -> recon_status {
    // SAFETY: the arrays are the caller's, with the documented lengths.
    call(|| unsafe {
        write_trajectory(precision, &[spokes, samples], &[("kx", kx), ("ky", ky), ("kz", kz)], |n| {
            Trajectory::radial3d(n[0], n[1])
        })
    })
}

/// Generates 2D spirals from the centre outwards. With u = j / samples, sample j of interleaf p is at the radius 0.5
/// u^density and the angle 2 pi (turns u + p / interleaves).
///
/// - turns: turns of one interleaf.
/// - density: 1 for the Archimedean spiral; greater than 1 for a centre that is sampled more densely.
/// - kx, ky: real [samples, interleaves] each, written.
///
/// Errors: also RECON_INVALID_ARGUMENT unless turns and density are positive and finite.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_trajectory_spiral(
    precision: u32,
    interleaves: u64,
    samples: u64,
    turns: f64,
    density: f64,
    kx: *mut c_void,
    ky: *mut c_void,
) -> recon_status {
    // SAFETY: the arrays are the caller's, with the documented lengths.
    call(|| unsafe {
        write_trajectory(precision, &[interleaves, samples], &[("kx", kx), ("ky", ky)], |n| {
            Trajectory::spiral(n[0], n[1], turns, density)
        })
    })
}

/// Generates 2D rosettes: k = 0.5 sin(2 pi radial u) exp(i 2 pi angular u), u = j / samples. Each shot is rotated by a
/// golden angle.
///
/// - radial, angular: oscillations and turns of one shot.
/// - kx, ky: real [samples, shots] each, written.
///
/// Errors: also RECON_INVALID_ARGUMENT unless radial and angular are positive and finite.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_trajectory_rosette(
    precision: u32,
    shots: u64,
    samples: u64,
    radial: f64,
    angular: f64,
    kx: *mut c_void,
    ky: *mut c_void,
) -> recon_status {
    // SAFETY: the arrays are the caller's, with the documented lengths.
    call(|| unsafe {
        write_trajectory(precision, &[shots, samples], &[("kx", kx), ("ky", ky)], |n| {
            Trajectory::rosette(n[0], n[1], radial, angular)
        })
    })
}

/// Generates a closed 2D Lissajous curve, cut into shots of equal duration: k = 0.5 (sin(2 pi x_frequency u), sin(2 pi
/// y_frequency u)). Sample j of shot p has u = (p samples + j) / (shots samples). An image of n x n voxels is fully
/// sampled if both frequencies are at least 1.25 n.
///
/// - x_frequency, y_frequency: oscillations of the whole curve along x and y. They have no common factor, and one of
///   them is even; otherwise, the curve would be traced several times.
/// - kx, ky: real [samples, shots] each, written.
///
/// Errors: also RECON_INVALID_ARGUMENT for other frequencies, and for fewer than four samples per oscillation.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_trajectory_lissajous(
    precision: u32,
    shots: u64,
    samples: u64,
    x_frequency: u64,
    y_frequency: u64,
    kx: *mut c_void,
    ky: *mut c_void,
) -> recon_status {
    // SAFETY: the arrays are the caller's, with the documented lengths.
    call(|| unsafe {
        let (x_frequency, y_frequency) = (size("x_frequency", x_frequency)?, size("y_frequency", y_frequency)?);
        write_trajectory(precision, &[shots, samples], &[("kx", kx), ("ky", ky)], |n| {
            Trajectory::lissajous(n[0], n[1], x_frequency, y_frequency)
        })
    })
}

/// Generates PROPELLER blades: strips of parallel lines, 1 / samples apart, rotated about the centre. The readout is
/// not oversampled: recon_trajectory_propeller_scan is for blades with an oversampled readout.
///
/// - kx, ky: real [samples, lines, blades] each, written.
///
/// Errors: also RECON_INVALID_ARGUMENT if 2 lines > samples, a blade wider than half of k-space.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_trajectory_propeller(
    precision: u32,
    blades: u64,
    lines: u64,
    samples: u64,
    kx: *mut c_void,
    ky: *mut c_void,
) -> recon_status {
    // SAFETY: the arrays are the caller's, with the documented lengths.
    call(|| unsafe {
        write_trajectory(precision, &[blades, lines, samples], &[("kx", kx), ("ky", ky)], |n| {
            Trajectory::propeller(n[0], n[1], n[2])
        })
    })
}

/// Generates PROPELLER blades as a scanner measures them: strips of parallel lines, 1 / scan_matrix apart, rotated
/// about the centre. A line has `samples` samples over the same width of k-space, and is oversampled if samples >
/// scan_matrix. The blades cover k-space if blades * lines >= pi/2 scan_matrix. An example is 17 blades of 24 lines of
/// 960 samples for the scan matrix 256.
///
/// - scan_matrix: the matrix size of the scan, from 2 lines to samples.
/// - kx, ky: real [samples, lines, blades] each, written.
///
/// Errors: also RECON_INVALID_ARGUMENT if samples < scan_matrix, or if 2 lines > scan_matrix, a blade wider than half
/// of k-space.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_trajectory_propeller_scan(
    precision: u32,
    blades: u64,
    lines: u64,
    samples: u64,
    scan_matrix: u64,
    kx: *mut c_void,
    ky: *mut c_void,
) -> recon_status {
    // SAFETY: the arrays are the caller's, with the documented lengths.
    call(|| unsafe {
        let scan_matrix = size("scan_matrix", scan_matrix)?;
        write_trajectory(precision, &[blades, lines, samples], &[("kx", kx), ("ky", ky)], |n| {
            Trajectory::propeller_scan(n[0], n[1], n[2], scan_matrix)
        })
    })
}
