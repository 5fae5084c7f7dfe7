//! A writer of raw data in the layout of ISMRMRD, without checks. It can write what the program's writer cannot: any
//! counters, and acquisitions without a trajectory.

use crate::io::ismrmrd::Acquisition;
use crate::io::tests::write_acquisitions;
use num_complex::Complex;
use recon::scan::{AcquisitionHeader, EncodingCounters};

/// An acquisition.
#[derive(Clone, Default)]
pub struct RawAcquisition {
    /// Flags of ISMRMRD as a bit mask.
    pub flags: u64,
    /// The number of the encoding.
    pub encoding: u16,
    /// The number of coils; 0 means 1.
    pub coils: u16,
    /// The number of the slice.
    pub slice: u16,
    /// Encoding steps 1 and 2.
    pub steps: [u16; 2],
    /// The position in the patient in mm.
    pub position: [f32; 3],
    /// The number of trajectory dimensions.
    pub dimensions: u16,
    /// The trajectory, [dimensions, samples].
    pub trajectory: Vec<f32>,
    /// The data, [real and imaginary, samples, coils].
    pub data: Vec<f32>,
    /// The number of discarded samples at the beginning.
    pub discard_pre: u16,
    /// The time between samples in microseconds; 0 means unknown.
    pub sample_time: f32,
}

pub fn write(path: &std::path::Path, xml: &str, acquisitions: &[RawAcquisition]) {
    let converted = acquisitions.iter().map(|a| {
        let coils = a.coils.max(1);
        let samples = (a.data.len() / 2) as u16 / coils;
        Acquisition {
            header: AcquisitionHeader {
                version: 1,
                flags: a.flags,
                encoding_space_ref: a.encoding,
                number_of_samples: samples,
                available_channels: coils,
                active_channels: coils,
                center_sample: samples / 2,
                trajectory_dimensions: a.dimensions,
                discard_pre: a.discard_pre,
                sample_time_us: a.sample_time,
                position: a.position,
                idx: EncodingCounters {
                    kspace_encode_step_1: a.steps[0],
                    kspace_encode_step_2: a.steps[1],
                    slice: a.slice,
                    ..Default::default()
                },
                ..Default::default()
            },
            trajectory: a.trajectory.clone(),
            data: a.data.chunks_exact(2).map(|z| Complex::new(z[0], z[1])).collect(),
        }
    });
    write_acquisitions(path, Some(xml), acquisitions.len(), &mut { converted }).unwrap();
}
