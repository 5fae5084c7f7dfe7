//! Writes ISMRMRD raw data.

use super::storage::{create, hdf5_error, Acquisition, StoredCounters, StoredHeader};
use hdf5::types::{VarLenArray, VarLenAscii};
use recon::atomic_file::AtomicFiles;
use recon::error::{bail, ErrorKind, Result};
use recon::geometry::wrap_coordinate;
use recon::scan::{flag, Dataset, Noise, Scan};
use std::path::Path;

/// Number of acquisitions per chunk of the file, and in memory at a time.
const CHUNK: usize = 64;
/// Maximum number of samples per noise acquisition.
const NOISE_SAMPLES: usize = 512;

/// Whether acquisitions have their trajectory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrajectoryStorage {
    /// With each acquisition.
    Stored,
    /// Not in the file.
    Omitted,
}

/// Writes a raw dataset to `files`, as the group `dataset` in ISMRMRD's layout.
///
/// The group has the XML header, noise, calibration, and one acquisition per shot with its trajectory. If the scan has
/// density weights, they are the last dimension of the trajectory. With [`TrajectoryStorage::Omitted`], acquisitions
/// have no trajectory: it must follow from the header and the counters. The sample time of a shot is the difference of
/// its first two times. `kspace_encode_step_1` is the number of the shot modulo the number of steps in the header, or
/// else 65536, and `kspace_encode_step_2` the number divided by it.
///
/// # Errors
///
/// - `InvalidSize`, `SizeMismatch`: the counts of a scan disagree, or its matrix is not that of its encoding in the
///   header.
/// - `CoordinateOutOfRange`, `NotFinite`: numbers that readers refuse.
/// - `Unsupported`: a shot has more than 65535 samples, or there are more than 65535 coils.
/// - `IO`: the file cannot be written.
pub fn write_dataset(
    files: &mut AtomicFiles,
    path: &Path,
    dataset: &Dataset,
    storage: TrajectoryStorage,
) -> Result<()> {
    if dataset.scans.is_empty() {
        bail!(InvalidArgument, "{}: there is no scan to write", path.display());
    }
    for (i, scan) in dataset.scans.iter().enumerate() {
        check(scan, dataset).map_err(|e| e.within(format_args!("{}: scan {i}", path.display())))?;
    }
    for (i, scan) in dataset.calibration.iter().enumerate() {
        check(scan, dataset).map_err(|e| e.within(format_args!("{}: calibration scan {i}", path.display())))?;
    }
    let noise = dataset.noise.iter().flat_map(noise_acquisitions);
    let calibration = dataset.calibration.iter().map(|scan| (scan, flag::bit(flag::CALIBRATION)));
    let scans = calibration.chain(dataset.scans.iter().map(|scan| (scan, 0)));
    let total = noise.clone().count() + scans.clone().map(|(s, _)| s.samples_per_shot.len()).sum::<usize>();
    let steps = |scan: &Scan| {
        let encoding = dataset.header.encodings.get(scan.index.encoding as usize);
        encoding.and_then(|e| e.steps[0]).map_or(1 << 16, |limits| limits.count())
    };
    let all = noise.chain(scans.flat_map(|(scan, flags)| acquisitions(scan, flags, steps(scan), storage)));
    let mut acquisitions = all.enumerate().map(|(i, mut a)| {
        a.head.scan_counter = i as u32;
        if i + 1 == total {
            a.head.flags |= flag::bit(flag::LAST_IN_MEASUREMENT);
        }
        a
    });
    write_raw(files, path, Some(&dataset.header.to_xml()), total, &mut acquisitions)
}

fn check(scan: &Scan, dataset: &Dataset) -> Result<()> {
    scan.check()?;
    let Some(encoding) = dataset.header.encodings.get(scan.index.encoding as usize) else {
        bail!(SizeMismatch, "encoding {} is not in the header", scan.index.encoding);
    };
    let matrix = encoding.encoded.matrix;
    if matrix != scan.encoded_matrix || scan.ndim != if matrix[2] == 1 { 2 } else { 3 } {
        let (ndim, own) = (scan.ndim, scan.encoded_matrix);
        bail!(SizeMismatch, "the trajectory is {ndim}D for {own:?} voxels, but the header encodes {matrix:?}");
    }
    for (axis, k) in scan.coordinates.iter().enumerate() {
        if let Some(i) = k.iter().position(|&k| wrap_coordinate(k).is_none()) {
            bail!(CoordinateOutOfRange, "sample {i}: coordinate {axis} is {}, outside [-0.5, 0.5)", k[i]);
        }
    }
    if let Some(i) = scan.data.iter().position(|z| !z.is_finite()) {
        let samples = scan.samples();
        bail!(NotFinite, "coil {}, sample {}: the data are {}", i / samples, i % samples, scan.data[i]);
    }
    if let Some(&n) = scan.samples_per_shot.iter().find(|&&n| n > u16::MAX as usize) {
        bail!(Unsupported, "a shot has {n} samples, but an ISMRMRD acquisition has at most 65535: split the shot");
    }
    if scan.coils > u16::MAX as usize {
        bail!(Unsupported, "the scan has {} coils, but an ISMRMRD acquisition has at most 65535", scan.coils);
    }
    Ok(())
}

fn noise_acquisitions(noise: &Noise) -> impl Iterator<Item = Acquisition> + Clone + '_ {
    let samples = noise.data.len() / noise.coils;
    (0..samples).step_by(NOISE_SAMPLES).map(move |start| {
        let range = start..samples.min(start + NOISE_SAMPLES);
        let coil = |c: usize| noise.data[c * samples..][range.clone()].iter().flat_map(|z| [z.re, z.im]);
        let data: Vec<f32> = (0..noise.coils).flat_map(coil).collect();
        let head = StoredHeader {
            version: 1,
            flags: flag::bit(flag::NOISE),
            number_of_samples: range.len() as u16,
            available_channels: noise.coils as u16,
            active_channels: noise.coils as u16,
            channel_mask: channel_mask(noise.coils),
            sample_time_us: noise.dwell * 1e6,
            ..Default::default()
        };
        Acquisition { head, traj: VarLenArray::from_slice(&[]), data: VarLenArray::from_slice(&data) }
    })
}

fn channel_mask(coils: usize) -> [u64; 16] {
    let mut mask = [0; 16];
    for c in 0..coils.min(1024) {
        mask[c / 64] |= 1 << (c % 64);
    }
    mask
}

/// Returns the acquisitions of a scan, all with the flags `purpose`. `steps`: number of values of
/// `kspace_encode_step_1`.
fn acquisitions(
    scan: &Scan,
    purpose: u64,
    steps: usize,
    storage: TrajectoryStorage,
) -> impl Iterator<Item = Acquisition> + '_ {
    let (samples, shots) = (scan.samples(), scan.samples_per_shot.len());
    let mut start = 0;
    scan.samples_per_shot.iter().enumerate().map(move |(shot, &count)| {
        let range = start..start + count;
        start += count;
        let columns: Vec<_> = match storage {
            TrajectoryStorage::Stored => scan.coordinates.iter().chain(&scan.weights).collect(),
            TrajectoryStorage::Omitted => Vec::new(),
        };
        let traj: Vec<f32> = range.clone().flat_map(|i| columns.iter().map(move |c| c[i])).collect();
        let coil = |c: usize| scan.data[c * samples..][range.clone()].iter().flat_map(|z| [z.re, z.im]);
        let data: Vec<f32> = (0..scan.coils).flat_map(coil).collect();
        let dwell = if count > 1 { scan.times[range.start + 1] - scan.times[range.start] } else { 0.0 };
        let mut flags = purpose;
        for (applies, bits) in [
            (shot == 0, [flag::FIRST_IN_SLICE, flag::FIRST_IN_REPETITION]),
            (shot + 1 == shots, [flag::LAST_IN_SLICE, flag::LAST_IN_REPETITION]),
        ] {
            if applies {
                flags |= bits.iter().fold(0, |f, &b| f | flag::bit(b));
            }
        }
        let (p, i) = (&scan.placement, &scan.index);
        let head = StoredHeader {
            version: 1,
            flags,
            measurement_uid: p.measurement_uid,
            acquisition_time_stamp: p.acquisition_time_stamp,
            physiology_time_stamp: p.physiology_time_stamp,
            number_of_samples: count as u16,
            available_channels: scan.coils as u16,
            active_channels: scan.coils as u16,
            channel_mask: channel_mask(scan.coils),
            center_sample: (count / 2) as u16,
            encoding_space_ref: i.encoding,
            trajectory_dimensions: columns.len() as u16,
            sample_time_us: dwell * 1e6,
            position: p.position,
            read_dir: p.read_dir,
            phase_dir: p.phase_dir,
            slice_dir: p.slice_dir,
            patient_table_position: p.table_position,
            idx: StoredCounters {
                kspace_encode_step_1: (shot % steps) as u16,
                kspace_encode_step_2: (shot / steps) as u16,
                average: i.average,
                slice: i.slice,
                contrast: i.contrast,
                phase: i.phase,
                repetition: i.repetition,
                set: i.set,
                ..Default::default()
            },
            ..Default::default()
        };
        Acquisition { head, traj: VarLenArray::from_slice(&traj), data: VarLenArray::from_slice(&data) }
    })
}

/// Writes `total` acquisitions without checks, and the XML header `xml`; `None` means that the file has no header.
pub fn write_raw(
    files: &mut AtomicFiles,
    path: &Path,
    xml: Option<&str>,
    total: usize,
    acquisitions: &mut dyn Iterator<Item = Acquisition>,
) -> Result<()> {
    let what = format!("{}: the file cannot be written", path.display());
    let io = hdf5_error(ErrorKind::IO, &what);
    let file = create(&files.add(path)?).map_err(&io)?;
    let mut write = || -> hdf5::Result<()> {
        let group = file.create_group("dataset")?;
        // ASCII, not UTF-8: the ISMRMRD library reads ASCII, and HDF5 does not convert one to the other.
        if let Some(xml) = xml {
            let text = VarLenAscii::from_ascii(xml).map_err(|e| hdf5::Error::Internal(e.to_string()))?;
            group.new_dataset::<VarLenAscii>().shape(1).create("xml")?.write_raw(&[text])?;
        }
        let builder = group.new_dataset::<Acquisition>().packed(true).shape(total..);
        let set = builder.chunk(total.clamp(1, CHUNK)).create("data")?;
        for start in (0..total).step_by(CHUNK) {
            let batch: Vec<_> = acquisitions.take(CHUNK).collect();
            set.write_slice(&batch, start..start + batch.len())?;
        }
        file.flush()
    };
    write().map_err(&io)?;
    file.close().map_err(&io)
}
