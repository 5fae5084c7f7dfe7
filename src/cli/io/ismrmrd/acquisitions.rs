//! Reads the acquisitions of a raw dataset: all headers first, then trajectories and samples in batches.

use super::scan::Noise;
use super::storage::{hdf5_error, AcquisitionHeader};
use crate::io::image::ScanIndex;
use hdf5::types::VarLenArray;
use num_complex::Complex;
use recon::acquisition::AcquisitionUse;
use recon::error::{bail, ErrorKind, Result};
use std::collections::BTreeMap;
use std::ops::Range;

/// Number of headers read at a time.
const HEADER_BATCH: usize = 4096;
/// Maximum number of acquisitions read at a time.
const BODY_BATCH: usize = 1024;
/// Maximum size of the acquisitions read at a time, in bytes.
const BODY_BATCH_BYTES: usize = 16 << 20;

/// The header field of an acquisition, mapped by its name in the file.
#[derive(hdf5::H5Type, Clone, Copy)]
#[repr(C)]
struct HeaderField {
    head: AcquisitionHeader,
}

/// The trajectory and the samples of an acquisition, mapped by their names in the file.
#[derive(hdf5::H5Type)]
#[repr(C)]
pub(super) struct AcquisitionBody {
    pub traj: VarLenArray<f32>,
    pub data: VarLenArray<f32>,
}

/// An acquisition of the file whose samples are used.
pub(super) struct AcquisitionEntry {
    /// The position in the file.
    pub number: usize,
    pub header: AcquisitionHeader,
    pub usage: AcquisitionUse,
}

impl AcquisitionEntry {
    /// Returns the index of the image that the acquisition belongs to.
    pub fn index(&self) -> ScanIndex {
        let counters = &self.header.idx;
        ScanIndex {
            encoding: self.header.encoding_space_ref,
            slice: counters.slice,
            repetition: counters.repetition,
            contrast: counters.contrast,
            phase: counters.phase,
            set: counters.set,
            average: 0,
        }
    }

    /// Returns the encoding steps 1 and 2.
    pub fn steps(&self) -> [u16; 2] {
        [self.header.idx.kspace_encode_step_1, self.header.idx.kspace_encode_step_2]
    }

    fn bytes(&self) -> usize {
        let h = &self.header;
        h.number_of_samples as usize * (8 * h.active_channels as usize + 4 * h.trajectory_dimensions as usize)
    }

    /// Returns the range of samples that the file does not mark as discarded.
    pub fn kept_samples(&self) -> Range<usize> {
        let (n, pre, post) = (self.header.number_of_samples, self.header.discard_pre, self.header.discard_post);
        pre as usize..(n as usize).saturating_sub(post as usize).max(pre as usize)
    }

    /// Returns the time between samples in seconds; 0 if the file does not have it.
    pub fn dwell(&self) -> Result<f64> {
        let dwell = self.header.sample_time_us as f64 * 1e-6;
        if !dwell.is_finite() || dwell < 0.0 {
            bail!(BadFile, "the sample time is {} microseconds: it must be 0 or more", self.header.sample_time_us);
        }
        Ok(dwell)
    }
}

/// The acquisitions of a file, by their use.
#[derive(Default)]
pub(super) struct AcquisitionList {
    /// Image and calibration acquisitions.
    pub signal: Vec<AcquisitionEntry>,
    pub noise: Vec<AcquisitionEntry>,
    /// The number of acquisitions of each use, including unused ones.
    pub counts: BTreeMap<AcquisitionUse, usize>,
}

/// Reads the headers of all acquisitions.
pub(super) fn read_headers(set: &hdf5::Dataset) -> Result<AcquisitionList> {
    let count = set.size();
    let mut list = AcquisitionList::default();
    for start in (0..count).step_by(HEADER_BATCH) {
        let end = (start + HEADER_BATCH).min(count);
        let what = format!("the headers of acquisitions {start} to {} cannot be read: the file is damaged", end - 1);
        let batch = set.read_slice_1d::<HeaderField, _>(start..end);
        for (i, field) in batch.map_err(hdf5_error(ErrorKind::BadFile, &what))?.iter().enumerate() {
            let usage = AcquisitionUse::of_flags(field.head.flags);
            *list.counts.entry(usage).or_default() += 1;
            let entry = AcquisitionEntry { number: start + i, header: field.head, usage };
            match usage {
                AcquisitionUse::Noise => list.noise.push(entry),
                AcquisitionUse::Unused(_) => {}
                _ => list.signal.push(entry),
            }
        }
    }
    Ok(list)
}

/// Reads trajectories and samples, and calls `use_body` for each acquisition with its position in `entries`.
pub(super) fn read_bodies(
    set: &hdf5::Dataset,
    entries: &[AcquisitionEntry],
    mut use_body: impl FnMut(usize, &AcquisitionEntry, &AcquisitionBody) -> Result<()>,
) -> Result<()> {
    let mut first = 0;
    while first < entries.len() {
        let (mut count, mut bytes) = (1, entries[first].bytes());
        while count < BODY_BATCH && first + count < entries.len() {
            let next = &entries[first + count];
            bytes += next.bytes();
            if next.number != entries[first].number + count || bytes > BODY_BATCH_BYTES {
                break;
            }
            count += 1;
        }
        let start = entries[first].number;
        let what = format!("acquisitions {start} to {} cannot be read: the file is damaged", start + count - 1);
        let bodies = set.read_slice_1d::<AcquisitionBody, _>(start..start + count);
        let bodies = bodies.map_err(hdf5_error(ErrorKind::BadFile, &what))?;
        for (i, body) in bodies.iter().enumerate() {
            let entry = &entries[first + i];
            let used = use_body(first + i, entry, body);
            used.map_err(|e| e.within(format_args!("acquisition {}", entry.number)))?;
        }
        first += count;
    }
    Ok(())
}

/// Reads all samples of noise acquisitions, also samples marked as discarded.
pub(super) fn read_noise(set: &hdf5::Dataset, entries: &[AcquisitionEntry]) -> Result<Vec<Noise>> {
    // The samples of each coil, by number of coils and sample time.
    let mut groups: BTreeMap<(usize, u32), Vec<Vec<Complex<f32>>>> = BTreeMap::new();
    read_bodies(set, entries, |_, entry, body| {
        let (count, coils) = (entry.header.number_of_samples as usize, entry.header.active_channels as usize);
        if body.data.len() != 2 * count * coils {
            let (n, need) = (body.data.len(), 2 * count * coils);
            bail!(BadFile, "the noise has {n} numbers, but {count} complex samples of {coils} coils need {need}");
        }
        let dwell = entry.dwell()? as f32;
        let group = groups.entry((coils, dwell.to_bits())).or_insert_with(|| vec![Vec::new(); coils]);
        for (coil, numbers) in group.iter_mut().zip(body.data.chunks_exact(2 * count.max(1))) {
            coil.extend(numbers.chunks_exact(2).map(|pair| Complex::new(pair[0], pair[1])));
        }
        Ok(())
    })?;
    let noise =
        |((coils, dwell), data): (_, Vec<Vec<_>>)| Noise { coils, dwell: f32::from_bits(dwell), data: data.concat() };
    Ok(groups.into_iter().map(noise).filter(|noise| !noise.data.is_empty()).collect())
}
