//! The header of an acquisition.

use super::position::{Placement, ScanIndex};
use crate::base::error::{bail, Result};
use std::ops::Range;

/// The flags of an acquisition that say where it is in the measurement: bit numbers, counted from 1 as in ISMRMRD.
/// [`AcquisitionUse::of_flags`](crate::acquisition::AcquisitionUse::of_flags) evaluates the others.
pub mod flag {
    /// The first acquisition of a slice.
    pub const FIRST_IN_SLICE: u32 = 7;
    /// The last acquisition of a slice.
    pub const LAST_IN_SLICE: u32 = 8;
    /// The first acquisition of a repetition.
    pub const FIRST_IN_REPETITION: u32 = 13;
    /// The last acquisition of a repetition.
    pub const LAST_IN_REPETITION: u32 = 14;
    /// Noise without signal.
    pub const NOISE: u32 = 19;
    /// Calibration for parallel imaging.
    pub const CALIBRATION: u32 = 20;
    /// A readout in the direction of decreasing k.
    pub const REVERSE: u32 = 22;
    /// The last acquisition of the measurement.
    pub const LAST_IN_MEASUREMENT: u32 = 25;
    /// Compressed samples, which are not complex numbers: this flag and the next three.
    pub const COMPRESSION_1: u32 = 53;

    /// Returns the mask of a flag.
    pub fn bit(flag: u32) -> u64 {
        1 << (flag - 1)
    }
}

/// The encoding counters of an acquisition.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EncodingCounters {
    /// The step along the first phase-encoding direction, or the number of a spoke or interleaf.
    pub kspace_encode_step_1: u16,
    /// The step along the second phase-encoding direction.
    pub kspace_encode_step_2: u16,
    /// The average.
    pub average: u16,
    /// The slice.
    pub slice: u16,
    /// The contrast, or echo.
    pub contrast: u16,
    /// The phase of the heart or of breathing.
    pub phase: u16,
    /// The repetition.
    pub repetition: u16,
    /// The set, for example a velocity encoding.
    pub set: u16,
    /// The segment.
    pub segment: u16,
    /// Counters of the sequence's author.
    pub user: [u16; 8],
}

/// The header of an acquisition, as in ISMRMRD.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AcquisitionHeader {
    /// The version of the format.
    pub version: u16,
    /// The flags, see [`flag`].
    pub flags: u64,
    /// The number that identifies the measurement.
    pub measurement_uid: u32,
    /// The number of the acquisition in the measurement.
    pub scan_counter: u32,
    /// The time of the acquisition, in the scanner's units.
    pub acquisition_time_stamp: u32,
    /// The times since the physiological triggers, in the scanner's units.
    pub physiology_time_stamp: [u32; 3],
    /// The number of samples, including discarded samples.
    pub number_of_samples: u16,
    /// The number of receive channels of the scanner.
    pub available_channels: u16,
    /// The number of receive channels of this acquisition.
    pub active_channels: u16,
    /// One bit per channel that is active.
    pub channel_mask: [u64; 16],
    /// The number of samples to discard at the beginning.
    pub discard_pre: u16,
    /// The number of samples to discard at the end.
    pub discard_post: u16,
    /// The sample at the centre of k-space.
    pub center_sample: u16,
    /// The number of the encoding in the XML header.
    pub encoding_space_ref: u16,
    /// The number of trajectory values per sample; 0 without a trajectory.
    pub trajectory_dimensions: u16,
    /// The time between samples in microseconds.
    pub sample_time_us: f32,
    /// The position of the centre of k-space's image in mm, in the patient's coordinates.
    pub position: [f32; 3],
    /// The direction of the readout.
    pub read_dir: [f32; 3],
    /// The direction of the first phase encoding.
    pub phase_dir: [f32; 3],
    /// The direction of the slices.
    pub slice_dir: [f32; 3],
    /// The position of the patient's table in mm.
    pub patient_table_position: [f32; 3],
    /// The encoding counters.
    pub idx: EncodingCounters,
    /// Integers of the sequence's author.
    pub user_int: [i32; 8],
    /// Numbers of the sequence's author.
    pub user_float: [f32; 8],
}

/// Reads numbers one after the other.
struct Fields<'a>(&'a [u8]);

macro_rules! field {
    ($name:ident, $t:ty) => {
        fn $name(&mut self) -> $t {
            let (bytes, rest) = self.0.split_at(size_of::<$t>());
            self.0 = rest;
            <$t>::from_le_bytes(bytes.try_into().expect("the length is that of the type"))
        }
    };
}

impl Fields<'_> {
    field!(u16, u16);
    field!(u32, u32);
    field!(u64, u64);
    field!(i32, i32);
    field!(f32, f32);

    fn vector(&mut self) -> [f32; 3] {
        std::array::from_fn(|_| self.f32())
    }

    fn counters(&mut self) -> EncodingCounters {
        EncodingCounters {
            kspace_encode_step_1: self.u16(),
            kspace_encode_step_2: self.u16(),
            average: self.u16(),
            slice: self.u16(),
            contrast: self.u16(),
            phase: self.u16(),
            repetition: self.u16(),
            set: self.u16(),
            segment: self.u16(),
            user: std::array::from_fn(|_| self.u16()),
        }
    }
}

/// Writes numbers one after the other.
struct FieldWriter {
    bytes: [u8; AcquisitionHeader::BYTES],
    len: usize,
}

impl FieldWriter {
    fn put<const N: usize, const COUNT: usize>(&mut self, fields: [[u8; N]; COUNT]) {
        let fields = fields.as_flattened();
        self.bytes[self.len..self.len + fields.len()].copy_from_slice(fields);
        self.len += fields.len();
    }
}

impl AcquisitionHeader {
    /// Length of the header in files and messages of ISMRMRD: its fields without padding, in little-endian order.
    pub const BYTES: usize = 340;

    /// Reads the fields of a header in a file or message.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> AcquisitionHeader {
        let mut fields = Fields(bytes);
        // The fields are read in the order of the expressions.
        AcquisitionHeader {
            version: fields.u16(),
            flags: fields.u64(),
            measurement_uid: fields.u32(),
            scan_counter: fields.u32(),
            acquisition_time_stamp: fields.u32(),
            physiology_time_stamp: std::array::from_fn(|_| fields.u32()),
            number_of_samples: fields.u16(),
            available_channels: fields.u16(),
            active_channels: fields.u16(),
            channel_mask: std::array::from_fn(|_| fields.u64()),
            discard_pre: fields.u16(),
            discard_post: fields.u16(),
            center_sample: fields.u16(),
            encoding_space_ref: fields.u16(),
            trajectory_dimensions: fields.u16(),
            sample_time_us: fields.f32(),
            position: fields.vector(),
            read_dir: fields.vector(),
            phase_dir: fields.vector(),
            slice_dir: fields.vector(),
            patient_table_position: fields.vector(),
            idx: fields.counters(),
            user_int: std::array::from_fn(|_| fields.i32()),
            user_float: std::array::from_fn(|_| fields.f32()),
        }
    }

    /// Returns the bytes of the header, as in files and messages.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut out = FieldWriter { bytes: [0; Self::BYTES], len: 0 };
        out.put([self.version.to_le_bytes()]);
        out.put([self.flags.to_le_bytes()]);
        out.put([self.measurement_uid, self.scan_counter, self.acquisition_time_stamp].map(u32::to_le_bytes));
        out.put(self.physiology_time_stamp.map(u32::to_le_bytes));
        out.put([self.number_of_samples, self.available_channels, self.active_channels].map(u16::to_le_bytes));
        out.put(self.channel_mask.map(u64::to_le_bytes));
        let [pre, post, center] = [self.discard_pre, self.discard_post, self.center_sample];
        out.put([pre, post, center, self.encoding_space_ref, self.trajectory_dimensions].map(u16::to_le_bytes));
        out.put([self.sample_time_us.to_le_bytes()]);
        for vector in [self.position, self.read_dir, self.phase_dir, self.slice_dir, self.patient_table_position] {
            out.put(vector.map(f32::to_le_bytes));
        }
        let i = &self.idx;
        let [step_1, step_2] = self.steps();
        let counters = [step_1, step_2, i.average, i.slice, i.contrast, i.phase, i.repetition, i.set, i.segment];
        out.put(counters.map(u16::to_le_bytes));
        out.put(i.user.map(u16::to_le_bytes));
        out.put(self.user_int.map(i32::to_le_bytes));
        out.put(self.user_float.map(f32::to_le_bytes));
        debug_assert_eq!(out.len, Self::BYTES);
        out.bytes
    }

    /// Returns the index of the image that the acquisition belongs to. All averages belong to one image.
    pub fn index(&self) -> ScanIndex {
        let counters = &self.idx;
        ScanIndex {
            encoding: self.encoding_space_ref,
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
        [self.idx.kspace_encode_step_1, self.idx.kspace_encode_step_2]
    }

    /// Checks that the samples are complex numbers.
    ///
    /// # Errors
    /// `Unsupported` for a flag of compressed samples.
    pub fn check_encoding(&self) -> Result<()> {
        let compressed = (flag::COMPRESSION_1..flag::COMPRESSION_1 + 4).find(|&f| self.flags & flag::bit(f) != 0);
        if let Some(flag) = compressed {
            bail!(Unsupported, "flag {flag} says that the samples are compressed: decompress them and clear the flag");
        }
        Ok(())
    }

    /// Returns whether the readout has the direction of decreasing k.
    pub fn is_reversed(&self) -> bool {
        self.flags & flag::bit(flag::REVERSE) != 0
    }

    /// Returns the range of samples that are not marked as discarded.
    pub fn kept_samples(&self) -> Range<usize> {
        let (n, pre, post) = (self.number_of_samples, self.discard_pre, self.discard_post);
        pre as usize..(n as usize).saturating_sub(post as usize).max(pre as usize)
    }

    /// Returns the time between samples in seconds; 0 if it is unknown.
    ///
    /// # Errors
    /// `BadFile` if it is negative or not finite.
    pub fn dwell(&self) -> Result<f64> {
        let dwell = self.sample_time_us as f64 * 1e-6;
        if !dwell.is_finite() || dwell < 0.0 {
            bail!(BadFile, "the sample time is {} microseconds: it must be 0 or more", self.sample_time_us);
        }
        Ok(dwell)
    }

    /// Returns the position and the time of the acquisition.
    pub fn placement(&self) -> Placement {
        Placement {
            position: self.position,
            read_dir: self.read_dir,
            phase_dir: self.phase_dir,
            slice_dir: self.slice_dir,
            table_position: self.patient_table_position,
            measurement_uid: self.measurement_uid,
            acquisition_time_stamp: self.acquisition_time_stamp,
            physiology_time_stamp: self.physiology_time_stamp,
            repetition_time_ms: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_at_the_positions_of_the_format() {
        // Byte i is i modulo 251, so that each field has its own value.
        let bytes: [u8; AcquisitionHeader::BYTES] = std::array::from_fn(|i| (i % 251) as u8);
        let header = AcquisitionHeader::from_bytes(&bytes);
        let u16_at = |at: usize| u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap());
        let f32_at = |at: usize| f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(header.flags, u64::from_le_bytes(bytes[2..10].try_into().unwrap()));
        assert_eq!((header.number_of_samples, header.active_channels), (u16_at(34), u16_at(38)));
        assert_eq!((header.discard_pre, header.center_sample), (u16_at(168), u16_at(172)));
        assert_eq!((header.encoding_space_ref, header.trajectory_dimensions), (u16_at(174), u16_at(176)));
        assert_eq!((header.sample_time_us, header.position[0]), (f32_at(178), f32_at(182)));
        assert_eq!((header.read_dir[0], header.patient_table_position[2]), (f32_at(194), f32_at(238)));
        assert_eq!((header.idx.kspace_encode_step_1, header.idx.set), (u16_at(242), u16_at(256)));
        assert_eq!((header.idx.user[7], header.user_float[7]), (u16_at(274), f32_at(336)));
        assert_eq!(header.to_bytes(), bytes);
    }
}
