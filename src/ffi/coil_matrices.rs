//! Preparation of coils: covariance of their noise, whitening, compression, and virtual coils.

use super::arrays::{size, CallArrays, ResultArray};
use super::enumerations::{choice, Precision};
use super::inputs::with_precision;
use super::status::{call, recon_status};
use crate::base::error::{bail, checked_product, try_collect, Result};
use crate::{CoilEnergy, CoilMatrix, Complex, Keep, NoiseCovariance, NoiseSampling};
use std::ffi::c_void;

/// Computes the covariance of the coils' noise from samples without signal: the mean of n_a conj(n_b), for the sampling
/// of the scan.
///
/// - precision: a recon_precision, of noise.
/// - noise: complex [samples, coils], read. 400 samples per coil give an error of about 10 %. With fewer samples,
///   recon_last_warning returns RECON_WARNING_NOISE.
/// - noise_dwell, dwell: time between samples of the noise and of the scan, in the same unit (sample_time_us of
///   ISMRMRD). Noise that is sampled more slowly has less variance than in the scan. 0 and 0: they are equal.
/// - receiver_bandwidth: noise bandwidth of the receiver divided by its sampling bandwidth, in (0, 1]
///   (relativeReceiverNoiseBandwidth of ISMRMRD); 0 for 1.
/// - covariance: complex double [coils, coils], a running fastest, written.
///
/// Errors:
/// - RECON_NULL_POINTER, RECON_UNKNOWN_VALUE, RECON_SIZE_OVERFLOW, RECON_OUT_OF_HOST_MEMORY.
/// - RECON_INVALID_SIZE for fewer samples than coils.
/// - RECON_NOT_FINITE with the index, also for variances that overflow.
/// - RECON_INVALID_ARGUMENT for implausible times and bandwidths, or if their ratio overflows.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_noise_covariance(
    precision: u32,
    noise: *const c_void,
    samples: u64,
    coils: u64,
    noise_dwell: f64,
    dwell: f64,
    receiver_bandwidth: f64,
    covariance: *mut c_void,
) -> recon_status {
    // SAFETY: the arrays are the caller's, with the documented lengths.
    call(|| unsafe {
        let [samples, coils] = [size("samples", samples)?, size("coils", coils)?];
        let sampling = match (noise_dwell, dwell) {
            (0.0, 0.0) => NoiseSampling::SAME,
            _ => NoiseSampling { noise_dwell, dwell, ..NoiseSampling::SAME },
        };
        let sampling = match receiver_bandwidth {
            0.0 => sampling,
            receiver_bandwidth => NoiseSampling { receiver_bandwidth, ..sampling },
        };
        let mut arrays = CallArrays::default();
        let covariance = coil_matrix_output(&mut arrays, "covariance", covariance, coils, coils)?;
        let len = checked_product(&[samples, coils], "the noise")?;
        with_precision!(choice("precision", precision)?, T => {
            let noise = arrays.input::<Complex<T>>("noise", noise.cast(), len)?;
            covariance.deliver(NoiseCovariance::of(noise, coils, sampling)?.entries())?;
        });
        Ok(())
    })
}

/// Returns the caller's matrix as an output array.
///
/// # Safety
/// The pointer leads to `rows` times `coils` entries.
unsafe fn coil_matrix_output<'a>(
    arrays: &mut CallArrays,
    name: &'static str,
    matrix: *mut c_void,
    rows: usize,
    coils: usize,
) -> Result<ResultArray<'a, Complex<f64>>> {
    // SAFETY: the caller's promise.
    unsafe { arrays.results(name, matrix.cast(), checked_product(&[rows, coils], name)?) }
}

/// Computes the matrix M that whitens noise: M covariance M^H = 1. The noise of all virtual coils is then independent,
/// with variance 1 (the mean of |n|^2). M is the inverse of the covariance's Cholesky factor. recon_virtual_coils
/// applies it to data, and to coil maps that were not estimated from whitened data.
///
/// - covariance: complex double [coils, coils], from recon_noise_covariance or known, read.
/// - matrix: complex double [coils, coils], the virtual coil running fastest, written.
///
/// Errors:
/// - RECON_NULL_POINTER, RECON_SIZE_OVERFLOW, RECON_INVALID_SIZE, RECON_OUT_OF_HOST_MEMORY.
/// - RECON_NOT_FINITE, with the index.
/// - RECON_INVALID_ARGUMENT for a matrix that is not Hermitian, and for a singular matrix, with the coil.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_whitening(covariance: *const c_void, coils: u64, matrix: *mut c_void) -> recon_status {
    // SAFETY: the arrays are the caller's, with the documented lengths.
    call(|| unsafe {
        let coils = size("coils", coils)?;
        let mut arrays = CallArrays::default();
        let entries = checked_product(&[coils, coils], "the noise covariance")?;
        let covariance = arrays.input::<Complex<f64>>("covariance", covariance.cast(), entries)?;
        let matrix = coil_matrix_output(&mut arrays, "matrix", matrix, coils, coils)?;
        let covariance = try_collect(entries, "the noise covariance", covariance.iter().copied())?;
        matrix.deliver(NoiseCovariance::new(coils, covariance)?.whitening()?.entries())
    })
}

/// Computes the matrix of coil compression. Its virtual coils are the principal components that contain most of the
/// data's energy, the strongest first (Buehrer et al. 2007). Whiten the data first. If the virtual coils contain less
/// than 95 % of the energy, recon_last_warning returns RECON_WARNING_COMPRESSION. recon_virtual_coils applies the
/// matrix to data, and to coil maps that were not estimated from data of the virtual coils.
///
/// - precision: a recon_precision, of data.
/// - data: complex [samples, coils, frames], read.
/// - keep: number of virtual coils. 0: the smallest number that contains the fraction `energy` of the energy, in (0,
///   1].
/// - energy: 0 if keep is given.
/// - matrix: complex double [kept, coils], the virtual coil running fastest, written. If keep is 0, the array must have
///   room for [coils, coils]; elements after the first kept times coils are unchanged.
/// - kept: number of virtual coils, written.
/// - energies: double [coils], written: fraction of the energy in each virtual coil, also in those that are not kept.
///   Or NULL.
///
/// Errors:
/// - RECON_NULL_POINTER, RECON_UNKNOWN_VALUE, RECON_SIZE_OVERFLOW, RECON_OUT_OF_HOST_MEMORY.
/// - RECON_INVALID_SIZE without coils or samples, and for more virtual coils than coils.
/// - RECON_NOT_FINITE with the index, also for an energy that overflows.
/// - RECON_INVALID_ARGUMENT unless exactly one of keep and energy is given, for an energy outside (0, 1], and if all
///   data are 0.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_compression(
    precision: u32,
    data: *const c_void,
    samples: u64,
    coils: u64,
    frames: u64,
    keep: u64,
    energy: f64,
    matrix: *mut c_void,
    kept: *mut u64,
    energies: *mut f64,
) -> recon_status {
    // SAFETY: the arrays are the caller's, with the documented lengths.
    call(|| unsafe {
        let [samples, coils, frames] = [size("samples", samples)?, size("coils", coils)?, size("frames", frames)?];
        let keep = match (size("keep", keep)?, energy) {
            (0, 0.0) => bail!(
                InvalidArgument,
                "keep and energy are 0: give the number of virtual coils, or the fraction of the energy"
            ),
            (0, energy) => Keep::Energy(energy),
            (keep, 0.0) => Keep::Coils(keep),
            (keep, energy) => {
                bail!(InvalidArgument, "keep is {keep} and energy {energy}: give one of the two, and 0 for the other")
            }
        };
        let rows = match keep {
            Keep::Coils(rows) => rows,
            Keep::Energy(_) => coils,
        };
        let mut arrays = CallArrays::default();
        let matrix = coil_matrix_output(&mut arrays, "matrix", matrix, rows, coils)?;
        let kept = arrays.output("kept", kept, 1)?;
        let energies = arrays.optional_results("energies", energies, coils)?;
        let len = checked_product(&[samples, coils, frames], "the data")?;
        let compression = with_precision!(choice("precision", precision)?, T => {
            let data = arrays.input::<Complex<T>>("data", data.cast(), len)?;
            let mut energy = CoilEnergy::new(coils)?;
            energy.add(samples, data)?;
            energy.compression(keep)?
        });
        let matrix = matrix.check(compression.matrix.entries())?;
        if let Some(energies) = energies {
            energies.deliver(&compression.energies)?;
        }
        matrix.write();
        kept[0] = compression.matrix.virtual_coils() as u64;
        Ok(())
    })
}

/// Computes virtual coils from coils by a matrix: y_v = sum_c M(v, c) x_c. It applies to k-space, coil images and coil
/// maps alike (for the latter two, "samples" are voxels).
///
/// - matrix: complex double [virtual_coils, coils], the virtual coil running fastest, read.
/// - precision: a recon_precision, of from and to.
/// - from: complex [samples, coils, frames], read.
/// - to: complex [samples, virtual_coils, frames], written.
///
/// Errors:
/// - RECON_NULL_POINTER, RECON_UNKNOWN_VALUE, RECON_SIZE_OVERFLOW, RECON_OUT_OF_HOST_MEMORY.
/// - RECON_INVALID_SIZE and RECON_SIZE_MISMATCH for sizes of 0.
/// - RECON_INVALID_ARGUMENT if the arrays overlap.
/// - RECON_NOT_FINITE, with the index.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_virtual_coils(
    matrix: *const c_void,
    virtual_coils: u64,
    coils: u64,
    precision: u32,
    from: *const c_void,
    samples: u64,
    frames: u64,
    to: *mut c_void,
) -> recon_status {
    // SAFETY: the arrays are the caller's, with the documented lengths.
    call(|| unsafe {
        let [virtual_coils, coils] = [size("virtual_coils", virtual_coils)?, size("coils", coils)?];
        let [samples, frames] = [size("samples", samples)?, size("frames", frames)?];
        let mut arrays = CallArrays::default();
        let entries = checked_product(&[virtual_coils, coils], "the coil matrix")?;
        let matrix = arrays.input::<Complex<f64>>("matrix", matrix.cast(), entries)?;
        let matrix = try_collect(entries, "the coil matrix", matrix.iter().copied())?;
        let matrix = CoilMatrix::new(virtual_coils, coils, matrix)?;
        let [from_len, to_len] = [coils, virtual_coils].map(|c| checked_product(&[samples, c, frames], "the data"));
        with_precision!(choice("precision", precision)?, T => {
            let from = arrays.input::<Complex<T>>("from", from.cast(), from_len?)?;
            let to = arrays.output::<Complex<T>>("to", to.cast(), to_len?)?;
            matrix.apply(samples, from, to)
        })
    })
}
