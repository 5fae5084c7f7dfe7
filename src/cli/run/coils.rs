//! Whitening and compression of the coils of scans, before anything else is done with them.

use crate::io::ismrmrd::Header;
use crate::io::{read_cfl, Noise, Scan};
use crate::options::{InputArgs, KeepCoils, Whiten};
use crate::reader::read_dataset;
use crate::run::output::has_ending;
use crate::run::resize::zeros;
use recon::bail;
use recon::{CoilEnergy, CoilMatrix, Keep, NoiseCovariance, NoiseSampling, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// Whitens and compresses the scans as the options say. `noise` and `header` are those of the scans' file, where it can
/// have any.
pub fn prepare(args: &InputArgs, scans: &mut [Scan], noise: Vec<Noise>, header: Option<&Header>) -> Result<()> {
    let own = header.and_then(|h| h.noise_bandwidth);
    match &args.whiten {
        Whiten::None => {}
        Whiten::Auto if noise.is_empty() => {}
        Whiten::Auto => {
            whiten(scans, &noise, own, &args.input)?;
            log::warn!(
                "{}: noise acquisitions whiten the data: images are in units of the noise's standard deviation; \
                 --whiten none leaves data as they are",
                args.input.display()
            );
        }
        Whiten::File(path) => {
            let (noise, bandwidth) = read_noise(path, &args.group, scans)?;
            whiten(scans, &noise, bandwidth, path)?;
        }
    }
    match args.compress {
        Some(keep) => compress(scans, keep),
        None => Ok(()),
    }
}

/// The noise of another file, and its bandwidth.
fn read_noise(path: &Path, group: &str, scans: &[Scan]) -> Result<(Vec<Noise>, Option<f64>)> {
    if !has_ending(path, &[".cfl", ".hdr"]) {
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
            "{}: noise of sizes {:?}: k-space of BART's is expected, [1, samples, shots, coils]",
            path.display(),
            array.dims
        );
    }
    // BART's files have no sample time: noise is taken to be sampled like the scan.
    let dwell = scans.first().map_or(0.0, |scan| scan.dwell());
    Ok((vec![Noise { coils: sizes[3], dwell, data: array.data }], None))
}

/// Whitens each scan by noise of its coils.
fn whiten(scans: &mut [Scan], noise: &[Noise], bandwidth: Option<f64>, path: &Path) -> Result<()> {
    let mut made: Vec<(usize, f32, CoilMatrix)> = Vec::new();
    for scan in scans {
        let (coils, dwell) = (scan.coils, scan.dwell());
        let known = made.iter().position(|m| (m.0, m.1) == (coils, dwell));
        let at = match known {
            Some(at) => at,
            None => {
                let matrix = whitening(noise, coils, dwell, bandwidth).map_err(|e| e.within(path.display()))?;
                made.push((coils, dwell, matrix));
                made.len() - 1
            }
        };
        map(scan, &made[at].2)?;
        scan.noise_level = Some(1.0);
    }
    Ok(())
}

fn whitening(noise: &[Noise], coils: usize, dwell: f32, bandwidth: Option<f64>) -> Result<CoilMatrix> {
    let of_coils: Vec<&Noise> = noise.iter().filter(|n| n.coils == coils).collect();
    let noise = match of_coils[..] {
        [one] => one,
        [] => {
            let have: Vec<String> = noise.iter().map(|n| n.coils.to_string()).collect();
            bail!(
                SizeMismatch,
                "noise of {} coils cannot whiten data of {coils}: measure noise with the same coils, or give \
                 --whiten none",
                have.join(" and ")
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
        log::warn!("noise and data do not both have a sample time: noise is taken to be of the data's bandwidth");
    }
    let covariance = NoiseCovariance::of(&noise.data, coils, sampling)?;
    log::info!(
        "whitened by {} samples of noise of {coils} coils, of variance times {:.4}",
        noise.data.len() / coils,
        sampling.variance_ratio()?
    );
    covariance.whitening()
}

/// Compresses the coils of scans. Those of one encoding and slice have the same virtual coils, so that they can be
/// compared, and share maps.
fn compress(scans: &mut [Scan], keep: KeepCoils) -> Result<()> {
    let mut groups = BTreeMap::<_, Vec<&mut Scan>>::new();
    for scan in scans {
        groups.entry((scan.index.encoding, scan.index.slice, scan.coils)).or_default().push(scan);
    }
    for ((_, slice, coils), scans) in groups {
        let mut energy = CoilEnergy::new(coils)?;
        for scan in &scans {
            energy.add(scan.samples(), &scan.data)?;
        }
        let made = energy.compression(match keep {
            KeepCoils::Number(n) => Keep::Coils(n),
            KeepCoils::Percent(percent) => Keep::Energy(percent / 100.0),
        })?;
        let (kept, percent) = (made.matrix.virtual_coils(), 100.0 * made.kept());
        log::info!("slice {slice}: {kept} virtual coils of {coils} hold {percent:.2} % of the energy");
        for scan in scans {
            map(scan, &made.matrix)?;
        }
    }
    Ok(())
}

/// Gives a scan the virtual coils that a matrix makes of its own.
fn map(scan: &mut Scan, matrix: &CoilMatrix) -> Result<()> {
    let samples = scan.samples();
    let mut data = zeros(samples * matrix.virtual_coils())?;
    matrix.apply(samples, &scan.data, &mut data)?;
    scan.coil_matrix = Some(match &scan.coil_matrix {
        Some(before) => before.then(matrix)?,
        None => matrix.clone(),
    });
    (scan.data, scan.coils) = (data, matrix.virtual_coils());
    Ok(())
}
