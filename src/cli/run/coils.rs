//! Whitening and compression of the coils of scans, before all other processing.

use crate::options::{CompressionTarget, InputArgs, WhiteningChoice};
use recon::bail;
use recon::scan::{transform_coils, warn_of_missing_noise, warn_of_noise_units, whiten, AssemblyOptions};
use recon::{CoilEnergy, Error, Keep, Result};
use recon_files::ismrmrd::read_dataset;
use recon_files::{read_cfl, Dataset, Format, Noise, Scan};
use std::collections::BTreeMap;
use std::path::Path;

/// Whitens and compresses the scans of a dataset as the options select.
pub fn prepare(args: &InputArgs, dataset: &mut Dataset) -> Result<()> {
    let Dataset { header, scans, noise, .. } = dataset;
    match &args.whiten {
        WhiteningChoice::None => {}
        WhiteningChoice::Auto if noise.is_empty() => warn_of_missing_noise(header),
        WhiteningChoice::Auto => {
            whiten(scans, noise, header.noise_bandwidth)
                .map_err(with_remedy)
                .map_err(|e| e.within(args.input.display()))?;
            warn_of_noise_units("--whiten none leaves the data unchanged");
        }
        WhiteningChoice::File(path) => {
            let (noise, bandwidth) = read_noise(path, &args.group, scans)?;
            whiten(scans, &noise, bandwidth).map_err(with_remedy).map_err(|e| e.within(path.display()))?;
        }
    }
    args.compress.map_or(Ok(()), |target| compress(scans, target))
}

/// Adds the option that leaves out whitening to its error.
fn with_remedy(error: Error) -> Error {
    Error::new(error.kind(), format!("{error} (option --whiten none)"))
}

/// Reads the noise of a separate file, and the noise bandwidth of the receiver; `None` if the file has no bandwidth.
fn read_noise(path: &Path, group: &str, scans: &[Scan]) -> Result<(Vec<Noise>, Option<f64>)> {
    if Format::of_input(path) != Some(Format::Bart) {
        let dataset = read_dataset(path, group, AssemblyOptions::default())?;
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
            transform_coils(&compression.matrix, scan)?;
        }
    }
    Ok(())
}
