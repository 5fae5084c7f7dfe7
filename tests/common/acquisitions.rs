//! Acquisitions as ISMRMRD's files and messages have them.

use recon::scan::AcquisitionHeader;

/// Returns the 340 bytes of an acquisition header: its fields without padding, in little-endian order.
pub fn header_bytes(h: &AcquisitionHeader) -> [u8; AcquisitionHeader::BYTES] {
    let mut bytes = Vec::with_capacity(AcquisitionHeader::BYTES);
    bytes.extend(h.version.to_le_bytes());
    bytes.extend(h.flags.to_le_bytes());
    let words =
        [h.measurement_uid, h.scan_counter, h.acquisition_time_stamp].into_iter().chain(h.physiology_time_stamp);
    words.for_each(|x| bytes.extend(x.to_le_bytes()));
    [h.number_of_samples, h.available_channels, h.active_channels].iter().for_each(|x| bytes.extend(x.to_le_bytes()));
    h.channel_mask.iter().for_each(|x| bytes.extend(x.to_le_bytes()));
    [h.discard_pre, h.discard_post, h.center_sample, h.encoding_space_ref, h.trajectory_dimensions]
        .iter()
        .for_each(|x| bytes.extend(x.to_le_bytes()));
    bytes.extend(h.sample_time_us.to_le_bytes());
    [h.position, h.read_dir, h.phase_dir, h.slice_dir, h.patient_table_position]
        .as_flattened()
        .iter()
        .for_each(|x| bytes.extend(x.to_le_bytes()));
    let i = &h.idx;
    [
        i.kspace_encode_step_1,
        i.kspace_encode_step_2,
        i.average,
        i.slice,
        i.contrast,
        i.phase,
        i.repetition,
        i.set,
        i.segment,
    ]
    .iter()
    .chain(&i.user)
    .for_each(|x| bytes.extend(x.to_le_bytes()));
    h.user_int.iter().for_each(|x| bytes.extend(x.to_le_bytes()));
    h.user_float.iter().for_each(|x| bytes.extend(x.to_le_bytes()));
    bytes.try_into().expect("the fields have 340 bytes")
}
