//! Whitening of scans with the noise of their coils, and virtual coils.

use super::scan_data::{Noise, Scan};
use crate::base::error::{bail, try_vec, Result};
use crate::base::warning::{raise, WarningKind};
use crate::reconstruction::coil_matrix::CoilMatrix;
use crate::reconstruction::whitening::{NoiseCovariance, NoiseSampling};
use num_complex::Complex;

/// Whitens each scan with the noise of the same number of coils, for the scan's time between samples. `bandwidth`: the
/// ratio of the receiver's noise bandwidth to its sampling bandwidth; `None` means 1.
///
/// # Errors
/// - `SizeMismatch`: there is no noise of this number of coils.
/// - `InvalidArgument`: there is noise of different sample times, or a time or bandwidth is implausible.
/// - The errors of [`NoiseCovariance::of`] and [`NoiseCovariance::whitening`].
pub fn whiten(scans: &mut [Scan], noise: &[Noise], bandwidth: Option<f64>) -> Result<()> {
    let mut matrices: Vec<(usize, f32, CoilMatrix)> = Vec::new();
    for scan in scans {
        let (coils, dwell) = (scan.coils, scan.dwell());
        let position = match matrices.iter().position(|m| (m.0, m.1) == (coils, dwell)) {
            Some(position) => position,
            None => {
                let matrix = whitening_matrix(noise, coils, dwell, bandwidth)?;
                matrices.push((coils, dwell, matrix));
                matrices.len() - 1
            }
        };
        transform_coils(&matrices[position].2, scan)?;
        scan.noise_level = Some(1.0);
    }
    Ok(())
}

/// Warns that noise acquisitions whiten the data, although no option asks for it. `remedy`: how to avoid it.
pub fn warn_of_noise_units(remedy: &str) {
    let text = "noise acquisitions whiten the data: images are in units of the noise's standard deviation";
    raise(WarningKind::Noise, format!("{text}; {remedy}"));
}

/// Returns the whitening matrix for data with this number of coils and time between samples, and logs its noise.
pub(super) fn whitening_matrix(
    noise: &[Noise],
    coils: usize,
    dwell: f32,
    bandwidth: Option<f64>,
) -> Result<CoilMatrix> {
    let candidates: Vec<&Noise> = noise.iter().filter(|n| n.coils == coils).collect();
    let noise = match candidates[..] {
        [noise] => noise,
        [] => {
            let numbers: Vec<String> = noise.iter().map(|n| n.coils.to_string()).collect();
            bail!(
                SizeMismatch,
                "noise of {} coils cannot whiten data of {coils}: measure noise with the same coils, or do \
                 not whiten",
                numbers.join(" and ")
            )
        }
        _ => bail!(
            InvalidArgument,
            "there is noise of {coils} coils with different sample times: keep one, or do not whiten"
        ),
    };
    let mut sampling = NoiseSampling { receiver_bandwidth: bandwidth.unwrap_or(1.0), ..NoiseSampling::SAME };
    if noise.dwell > 0.0 && dwell > 0.0 {
        (sampling.noise_dwell, sampling.dwell) = (noise.dwell as f64, dwell as f64);
    } else if noise.dwell != dwell {
        raise(
            WarningKind::Noise,
            "noise and data do not both have a sample time: they are assumed to have the same bandwidth".to_owned(),
        );
    }
    let covariance = NoiseCovariance::of(&noise.data, coils, sampling)?;
    log::info!(
        "whitened by {} samples of noise of {coils} coils; variance scaled by {:.4}",
        noise.data.len() / coils,
        sampling.variance_ratio()?
    );
    covariance.whitening()
}

/// Replaces the coils of a scan by the virtual coils of a matrix.
///
/// # Errors
/// `SizeMismatch` for a matrix of a different number of coils; `OutOfHostMemory`.
pub fn transform_coils(matrix: &CoilMatrix, scan: &mut Scan) -> Result<()> {
    let data = try_vec(scan.samples() * matrix.virtual_coils(), Complex::ZERO, "the data")?;
    transform_coils_into(matrix, scan, data).map(drop)
}

/// Replaces the coils of a scan by the virtual coils of a matrix, in the array `data`. Returns the previous data.
pub(super) fn transform_coils_into(
    matrix: &CoilMatrix,
    scan: &mut Scan,
    mut data: Vec<Complex<f32>>,
) -> Result<Vec<Complex<f32>>> {
    matrix.apply(scan.samples(), &scan.data, &mut data)?;
    scan.coil_matrix = Some(match &scan.coil_matrix {
        Some(previous) => previous.then(matrix)?,
        None => matrix.clone(),
    });
    scan.coils = matrix.virtual_coils();
    Ok(std::mem::replace(&mut scan.data, data))
}
