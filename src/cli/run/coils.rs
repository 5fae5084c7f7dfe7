//! Whitening and compression of the coils of scans, before all other processing.

use crate::io::{read_cfl, Dataset, Format, Noise, Scan};
use crate::options::{CompressionTarget, InputArgs, WhiteningChoice};
use crate::reader::read_dataset;
use crate::run::resize::zeros;
use recon::bail;
use recon::{CoilEnergy, CoilMatrix, Keep, NoiseCovariance, NoiseSampling, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// Whitens and compresses the scans of a dataset as the options select.
pub fn prepare(args: &InputArgs, dataset: &mut Dataset) -> Result<()> {
    let Dataset { header, scans, noise, .. } = dataset;
    match &args.whiten {
        WhiteningChoice::None => {}
        WhiteningChoice::Auto if noise.is_empty() => {}
        WhiteningChoice::Auto => {
            whiten(scans, noise, header.noise_bandwidth, &args.input)?;
            log::warn!(
                "{}: noise acquisitions whiten the data: images are in units of the noise's standard deviation; \
                 --whiten none leaves the data unchanged",
                args.input.display()
            );
        }
        WhiteningChoice::File(path) => {
            let (noise, bandwidth) = read_noise(path, &args.group, scans)?;
            whiten(scans, &noise, bandwidth, path)?;
        }
    }
    args.compress.map_or(Ok(()), |target| compress(scans, target))
}

/// Reads the noise of a separate file, and the noise bandwidth of the receiver; `None` if the file has no bandwidth.
fn read_noise(path: &Path, group: &str, scans: &[Scan]) -> Result<(Vec<Noise>, Option<f64>)> {
    if Format::of(path) != Some(Format::Bart) {
        let dataset = read_dataset(path, group)?;
        if dataset.noise.is_empty() {
            bail!(InvalidArgument, "{}: --whiten: the file has no noise acquisitions", path.display());
        }
        return Ok((dataset.noise, dataset.header.noise_bandwidth));
    }
    let array = read_cfl(path)?;
    let sizes = array.sizes();
    if sizes[0] != 1 || sizes[4..].iter().any(|&n| n > 1) {
        bail!(
            SizeMismatch,
            "{}: the noise has sizes {:?}, but k-space of BART, [1, samples, shots, coils], is expected",
            path.display(),
            array.dims
        );
    }
    // BART's files have no sample time: the noise is assumed to have that of the scan.
    let dwell = scans.first().map_or(0.0, |scan| scan.dwell());
    Ok((vec![Noise { coils: sizes[3], dwell, data: array.data }], None))
}

/// Whitens each scan with the noise of the same number of coils.
fn whiten(scans: &mut [Scan], noise: &[Noise], bandwidth: Option<f64>, path: &Path) -> Result<()> {
    let mut matrices: Vec<(usize, f32, CoilMatrix)> = Vec::new();
    for scan in scans {
        let (coils, dwell) = (scan.coils, scan.dwell());
        let position = match matrices.iter().position(|m| (m.0, m.1) == (coils, dwell)) {
            Some(position) => position,
            None => {
                let matrix = whitening(noise, coils, dwell, bandwidth).map_err(|e| e.within(path.display()))?;
                matrices.push((coils, dwell, matrix));
                matrices.len() - 1
            }
        };
        apply(&matrices[position].2, scan)?;
        scan.noise_level = Some(1.0);
    }
    Ok(())
}

/// Returns the whitening matrix for scans with this number of coils and time between samples.
fn whitening(noise: &[Noise], coils: usize, dwell: f32, bandwidth: Option<f64>) -> Result<CoilMatrix> {
    let candidates: Vec<&Noise> = noise.iter().filter(|n| n.coils == coils).collect();
    let noise = match candidates[..] {
        [noise] => noise,
        [] => {
            let numbers: Vec<String> = noise.iter().map(|n| n.coils.to_string()).collect();
            bail!(
                SizeMismatch,
                "noise of {} coils cannot whiten data of {coils}: measure noise with the same coils, or give \
                 --whiten none",
                numbers.join(" and ")
            )
        }
        _ => bail!(
            InvalidArgument,
            "there is noise of {coils} coils with different sample times: keep one, or give --whiten none"
        ),
    };
    let mut sampling = NoiseSampling { receiver_bandwidth: bandwidth.unwrap_or(1.0), ..NoiseSampling::SAME };
    if noise.dwell > 0.0 && dwell > 0.0 {
        (sampling.noise_dwell, sampling.dwell) = (noise.dwell as f64, dwell as f64);
    } else if noise.dwell != dwell {
        log::warn!("noise and data do not both have a sample time: they are assumed to have the same bandwidth");
    }
    let covariance = NoiseCovariance::of(&noise.data, coils, sampling)?;
    log::info!(
        "whitened by {} samples of noise of {coils} coils; variance scaled by {:.4}",
        noise.data.len() / coils,
        sampling.variance_ratio()?
    );
    covariance.whitening()
}

/// Compresses the coils of scans. Scans of one encoding and slice have the same virtual coils, so that their images can
/// be compared and share coil maps.
fn compress(scans: &mut [Scan], target: CompressionTarget) -> Result<()> {
    let mut groups = BTreeMap::<_, Vec<&mut Scan>>::new();
    for scan in scans {
        groups.entry((scan.index.encoding, scan.index.slice, scan.coils)).or_default().push(scan);
    }
    for ((_, slice, coils), scans) in groups {
        let mut energy = CoilEnergy::new(coils)?;
        for scan in &scans {
            energy.add(scan.samples(), &scan.data)?;
        }
        let compression = energy.compression(match target {
            CompressionTarget::Coils(n) => Keep::Coils(n),
            CompressionTarget::Percent(percent) => Keep::Energy(percent / 100.0),
        })?;
        let (virtual_coils, percent) = (compression.matrix.virtual_coils(), 100.0 * compression.kept());
        log::info!("slice {slice}: {virtual_coils} virtual coils of {coils} hold {percent:.2} % of the energy");
        for scan in scans {
            apply(&compression.matrix, scan)?;
        }
    }
    Ok(())
}

/// Replaces the coils of a scan by the virtual coils of a matrix.
fn apply(matrix: &CoilMatrix, scan: &mut Scan) -> Result<()> {
    let samples = scan.samples();
    let mut data = zeros(samples * matrix.virtual_coils())?;
    matrix.apply(samples, &scan.data, &mut data)?;
    scan.coil_matrix = Some(match &scan.coil_matrix {
        Some(previous) => previous.then(matrix)?,
        None => matrix.clone(),
    });
    (scan.data, scan.coils) = (data, matrix.virtual_coils());
    Ok(())
}
