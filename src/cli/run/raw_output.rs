//! Raw data that commands write: ISMRMRD, or k-space and trajectory of BART.

use crate::run::input::scan_name;
use crate::run::output::files_of;
use recon::atomic_file::AtomicFiles;
use recon::bail;
use recon::error::try_reserve;
use recon::scan::{EncodingLimits, EncodingSpace, Header, HeaderEncoding};
use recon::{Complex, Result};
use recon_files::cfl::pair;
use recon_files::{write_cfl, write_dataset, Dataset, FileUse, Format, Scan, TrajectoryStorage};
use std::path::{Path, PathBuf};

/// Returns the path of the trajectory, NAME_traj.cfl, for the k-space NAME.cfl.
pub fn trajectory_path(kspace: &Path) -> PathBuf {
    let mut name = pair(kspace).0.with_extension("").into_os_string();
    name.push("_traj.cfl");
    name.into()
}

/// Returns the files of raw data that will be written. Checks the extension of their name.
pub fn raw_files(path: &Path) -> Result<Vec<PathBuf>> {
    let mut files = files_of(path);
    if FileUse::WriteRawData.format(path)? == Format::Bart {
        files.extend(files_of(&trajectory_path(path)));
    }
    Ok(files)
}

/// Returns a dataset of one scan with a header for its trajectory.
pub fn dataset_of(scan: Scan) -> Dataset {
    let last = (scan.samples_per_shot.len().clamp(1, 1 << 16) - 1) as u16;
    let encoding = HeaderEncoding {
        encoded: EncodingSpace { matrix: scan.encoded_matrix, fov_mm: scan.encoded_fov_mm },
        recon: EncodingSpace { matrix: scan.recon_matrix, fov_mm: scan.recon_fov_mm },
        trajectory: scan.trajectory,
        // Gadgetron reads both limits without checking that they are present.
        steps: [last, 0].map(|maximum| Some(EncodingLimits { minimum: 0, maximum, center: maximum.div_ceil(2) })),
        ..Default::default()
    };
    let header =
        Header { encodings: vec![encoding], receiver_channels: u16::try_from(scan.coils).ok(), ..Header::default() };
    Dataset { header, scans: vec![scan], noise: Vec::new(), calibration: Vec::new(), uses: Vec::new() }
}

/// Returns the numbers of samples and shots of a scan whose shots have the same length; `None` if they differ.
pub fn samples_and_shots(scan: &Scan) -> Option<[usize; 2]> {
    let samples = *scan.samples_per_shot.first()?;
    let is_even = scan.samples_per_shot.iter().all(|&n| n == samples);
    is_even.then_some([samples, scan.samples_per_shot.len()])
}

/// Writes raw data to `files`, each acquisition with its trajectory. BART's files contain one scan: k-space [1,
/// samples, shots, coils] in `path`, and the trajectory [3, samples, shots] in units of 1/FOV in NAME_traj.cfl.
///
/// # Errors
/// Returns the errors of [`write_dataset`]; for BART, `InvalidArgument` if there are several scans, or shots of
/// different lengths.
pub fn write_raw_data(files: &mut AtomicFiles, path: &Path, dataset: &Dataset) -> Result<()> {
    if FileUse::WriteRawData.format(path)? != Format::Bart {
        return write_dataset(files, path, dataset, TrajectoryStorage::Stored);
    }
    let shown = path.display();
    let scan = match &dataset.scans[..] {
        [scan] => scan,
        scans => bail!(
            InvalidArgument,
            "{shown}: {} scans, {} to {}, but files of BART contain one: select one by --slice and --repetition, or \
             write a .h5 file",
            scans.len(),
            scans.first().map(scan_name).unwrap_or_default(),
            scans.last().map(scan_name).unwrap_or_default()
        ),
    };
    let Some([samples, shots]) = samples_and_shots(scan) else {
        bail!(
            InvalidArgument,
            "{shown}: the shots have different lengths, but those of BART's files have one: write \
                                a .h5 file"
        )
    };
    write_cfl(files, path, &[1, samples, shots, scan.coils], &scan.data)?;
    let mut points = try_reserve(3 * scan.samples(), "the trajectory")?;
    for m in 0..scan.samples() {
        let cycles_per_fov =
            |axis: usize| scan.coordinates.get(axis).map_or(0.0, |k| k[m] * scan.encoded_matrix[axis] as f32);
        points.extend([0, 1, 2].map(|axis| Complex::new(cycles_per_fov(axis), 0.0)));
    }
    write_cfl(files, &trajectory_path(path), &[3, samples, shots], &points)
}
