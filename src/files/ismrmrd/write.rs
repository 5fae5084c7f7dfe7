//! Writes ISMRMRD raw data.

use super::layout::{Acquisition, ACQUISITION_HEADER};
use crate::hdf5::{array_type, record_type, text_type, HeapFile, REFERENCE};
use hdf5_pure::{CompoundTypeBuilder, FileBuilder};
use num_complex::Complex;
use recon::atomic_file::AtomicFiles;
use recon::error::{bail, Error, ErrorKind, Result};
use recon::geometry::wrap_coordinate;
use recon::scan::{flag, AcquisitionHeader, Dataset, EncodingCounters, Noise, Scan};
use std::path::Path;

/// The length of the record of an acquisition: its header, and references to trajectory and data.
const RECORD: usize = AcquisitionHeader::BYTES + 2 * REFERENCE;
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
    write_dataset_with_header(files, path, dataset, storage, &dataset.header.to_xml())
}

/// Writes a raw dataset as [`write_dataset`] does, with the text of its XML header. `xml` may have more than
/// `dataset.header`, which decides about the acquisitions.
///
/// # Errors
/// As [`write_dataset`].
pub fn write_dataset_with_header(
    files: &mut AtomicFiles,
    path: &Path,
    dataset: &Dataset,
    storage: TrajectoryStorage,
    xml: &str,
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
        a.header.scan_counter = i as u32;
        if i + 1 == total {
            a.header.flags |= flag::bit(flag::LAST_IN_MEASUREMENT);
        }
        a
    });
    write_raw(files, path, Some(xml), total, &mut acquisitions)
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
            bail!(CoordinateOutOfRange, "sample {i}: coordinate {axis} is {}, outside [-0.5, 0.5]", k[i]);
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
        let data = data_of_coils(&noise.data, samples, noise.coils, range.clone());
        let header = AcquisitionHeader {
            version: 1,
            flags: flag::bit(flag::NOISE),
            number_of_samples: range.len() as u16,
            available_channels: noise.coils as u16,
            active_channels: noise.coils as u16,
            channel_mask: channel_mask(noise.coils),
            sample_time_us: noise.dwell * 1e6,
            ..Default::default()
        };
        Acquisition { header, trajectory: Vec::new(), data }
    })
}

/// Returns some of the samples of all coils.
fn data_of_coils(
    data: &[Complex<f32>],
    samples: usize,
    coils: usize,
    range: std::ops::Range<usize>,
) -> Vec<Complex<f32>> {
    (0..coils).flat_map(|coil| &data[coil * samples..][range.clone()]).copied().collect()
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
        let trajectory = range.clone().flat_map(|i| columns.iter().map(move |c| c[i])).collect();
        let data = data_of_coils(&scan.data, samples, scan.coils, range.clone());
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
        let header = AcquisitionHeader {
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
            idx: EncodingCounters {
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
        Acquisition { header, trajectory, data }
    })
}

/// Writes `total` acquisitions without checks, and the XML header `xml`; `None` means that the file has no header.
///
/// The group is `dataset`. The lengths of `xml` and `data` are fixed: other programs cannot append acquisitions.
///
/// # Errors
/// `SizeMismatch` if there are more or fewer acquisitions than `total`; `IO` if the file cannot be written.
pub fn write_raw(
    files: &mut AtomicFiles,
    path: &Path,
    xml: Option<&str>,
    total: usize,
    acquisitions: &mut dyn Iterator<Item = Acquisition>,
) -> Result<()> {
    let file = files.add(path)?;
    let write = || {
        let empty = structure(xml.map(|_| [0; REFERENCE]), total, vec![0; total * RECORD])?;
        let mut heap = HeapFile::new(&file, empty)?;
        let xml = xml.map(|text| heap.add(text.len(), text.as_bytes())).transpose()?;
        let mut records = Vec::with_capacity(total * RECORD);
        for acquisition in acquisitions {
            records.extend(acquisition.header.to_bytes());
            let trajectory = acquisition.trajectory.iter().flat_map(|k| k.to_le_bytes()).collect::<Vec<_>>();
            records.extend(heap.add(acquisition.trajectory.len(), &trajectory)?);
            let parts = acquisition.data.iter().flat_map(|z| [z.re, z.im]);
            let data = parts.flat_map(|part| part.to_le_bytes()).collect::<Vec<_>>();
            records.extend(heap.add(2 * acquisition.data.len(), &data)?);
        }
        if records.len() != total * RECORD {
            bail!(SizeMismatch, "{} acquisitions were given where {total} were announced", records.len() / RECORD);
        }
        heap.finish(structure(xml, total, records)?)
    };
    write().map_err(|e| e.within(path.display()))
}

/// Returns the structure of a file: the group with XML header and acquisitions.
fn structure(xml: Option<[u8; REFERENCE]>, total: usize, records: Vec<u8>) -> Result<FileBuilder> {
    let array = || array_type(hdf5_pure::make_f32_type());
    let record = CompoundTypeBuilder::new().field("head", record_type(&ACQUISITION_HEADER)?);
    let record = record.field("traj", array()).field("data", array()).build();
    let record = record.map_err(|e| Error::new(ErrorKind::Internal, format!("the type of acquisitions: {e}")))?;
    let mut builder = FileBuilder::new();
    let mut group = builder.create_group("dataset");
    if let Some(reference) = xml {
        group.create_dataset("xml").with_raw_data(text_type(), reference.to_vec(), 1);
    }
    group.create_dataset("data").with_raw_data(record, records, total as u64);
    builder.add_group(group.finish());
    Ok(builder)
}
