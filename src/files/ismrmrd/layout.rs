//! The HDF5 layout of ISMRMRD: the fields of its structures, and acquisitions.

use crate::hdf5::{RecordField, Scalar};
use num_complex::Complex;
use recon::scan::AcquisitionHeader;
use Scalar::*;

/// An acquisition.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Acquisition {
    /// The header.
    pub header: AcquisitionHeader,
    /// The trajectory, `[dimensions, samples]`.
    pub trajectory: Vec<f32>,
    /// The data, `[samples, channels]`.
    pub data: Vec<Complex<f32>>,
}

const fn one(name: &'static str, scalar: Scalar) -> RecordField {
    RecordField { name, scalar, count: None }
}

const fn several(name: &'static str, scalar: Scalar, count: usize) -> RecordField {
    RecordField { name, scalar, count: Some(count) }
}

/// The fields of the header of an acquisition, in the order of [`AcquisitionHeader::to_bytes`].
pub const ACQUISITION_HEADER: [RecordField; 33] = [
    one("version", U16),
    one("flags", U64),
    one("measurement_uid", U32),
    one("scan_counter", U32),
    one("acquisition_time_stamp", U32),
    several("physiology_time_stamp", U32, 3),
    one("number_of_samples", U16),
    one("available_channels", U16),
    one("active_channels", U16),
    several("channel_mask", U64, 16),
    one("discard_pre", U16),
    one("discard_post", U16),
    one("center_sample", U16),
    one("encoding_space_ref", U16),
    one("trajectory_dimensions", U16),
    one("sample_time_us", F32),
    several("position", F32, 3),
    several("read_dir", F32, 3),
    several("phase_dir", F32, 3),
    several("slice_dir", F32, 3),
    several("patient_table_position", F32, 3),
    one("idx.kspace_encode_step_1", U16),
    one("idx.kspace_encode_step_2", U16),
    one("idx.average", U16),
    one("idx.slice", U16),
    one("idx.contrast", U16),
    one("idx.phase", U16),
    one("idx.repetition", U16),
    one("idx.set", U16),
    one("idx.segment", U16),
    several("idx.user", U16, 8),
    several("user_int", I32, 8),
    several("user_float", F32, 8),
];

/// The fields of the header of an image.
pub const IMAGE_HEADER: [RecordField; 26] = [
    one("version", U16),
    one("data_type", U16),
    one("flags", U64),
    one("measurement_uid", U32),
    several("matrix_size", U16, 3),
    several("field_of_view", F32, 3),
    one("channels", U16),
    several("position", F32, 3),
    several("read_dir", F32, 3),
    several("phase_dir", F32, 3),
    several("slice_dir", F32, 3),
    several("patient_table_position", F32, 3),
    one("average", U16),
    one("slice", U16),
    one("contrast", U16),
    one("phase", U16),
    one("repetition", U16),
    one("set", U16),
    one("acquisition_time_stamp", U32),
    several("physiology_time_stamp", U32, 3),
    one("image_type", U16),
    one("image_index", U16),
    one("image_series_index", U16),
    several("user_int", I32, 8),
    several("user_float", F32, 8),
    one("attribute_string_len", U32),
];

/// Returns the number of bytes of a structure.
pub const fn size(fields: &[RecordField]) -> usize {
    let (mut sum, mut i) = (0, 0);
    while i < fields.len() {
        sum += fields[i].size();
        i += 1;
    }
    sum
}

const _: () = assert!(size(&ACQUISITION_HEADER) == AcquisitionHeader::BYTES);
const _: () = assert!(size(&IMAGE_HEADER) == 198);
