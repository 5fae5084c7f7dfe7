//! Reads the acquisitions of a raw dataset: all headers first, then trajectories and samples in batches.

use super::storage::hdf5_error;
use super::storage::StoredHeader;
use hdf5::types::VarLenArray;
use recon::acquisition::AcquisitionUse;
use recon::error::{ErrorKind, Result};
use recon::scan::AcquisitionHeader;

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
    head: StoredHeader,
}

/// The trajectory and the samples of an acquisition, mapped by their names in the file.
#[derive(hdf5::H5Type)]
#[repr(C)]
pub(super) struct AcquisitionBody {
    pub traj: VarLenArray<f32>,
    pub data: VarLenArray<f32>,
}

/// Reads the headers of all acquisitions.
pub(super) fn read_headers(set: &hdf5::Dataset) -> Result<Vec<AcquisitionHeader>> {
    let count = set.size();
    let mut headers = Vec::new();
    for start in (0..count).step_by(HEADER_BATCH) {
        let end = (start + HEADER_BATCH).min(count);
        let what = format!("the headers of acquisitions {start} to {} cannot be read: the file is damaged", end - 1);
        let batch = set.read_slice_1d::<HeaderField, _>(start..end);
        let batch = batch.map_err(hdf5_error(ErrorKind::BadFile, &what))?;
        headers.extend(batch.iter().map(|field| field.head.to_library()));
    }
    Ok(headers)
}

/// Reads trajectories and samples in the order of the file, and calls `use_body` for each acquisition with its number.
/// The samples of acquisitions that are not used are not read.
pub(super) fn read_bodies(
    set: &hdf5::Dataset,
    headers: &[AcquisitionHeader],
    mut use_body: impl FnMut(usize, &AcquisitionBody) -> Result<()>,
) -> Result<()> {
    let is_used = |number: usize| AcquisitionUse::of_flags(headers[number].flags).is_used();
    let empty = AcquisitionBody { traj: VarLenArray::from_slice(&[]), data: VarLenArray::from_slice(&[]) };
    let mut start = 0;
    while start < headers.len() {
        if !is_used(start) {
            use_body(start, &empty)?;
            start += 1;
            continue;
        }
        let (mut end, mut bytes) = (start + 1, body_bytes(&headers[start]));
        while end < headers.len() && end - start < BODY_BATCH && is_used(end) {
            bytes += body_bytes(&headers[end]);
            if bytes > BODY_BATCH_BYTES {
                break;
            }
            end += 1;
        }
        let what = format!("acquisitions {start} to {} cannot be read: the file is damaged", end - 1);
        let bodies = set.read_slice_1d::<AcquisitionBody, _>(start..end);
        let bodies = bodies.map_err(hdf5_error(ErrorKind::BadFile, &what))?;
        for (number, body) in (start..end).zip(bodies.iter()) {
            use_body(number, body)?;
        }
        start = end;
    }
    Ok(())
}

fn body_bytes(header: &AcquisitionHeader) -> usize {
    let values = 8 * header.active_channels as usize + 4 * header.trajectory_dimensions as usize;
    header.number_of_samples as usize * values
}
