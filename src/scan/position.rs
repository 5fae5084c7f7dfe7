//! The position of an image in the patient, and its index in a measurement.

use std::fmt;

/// The position of an image in the patient and the time of its acquisition, as in ISMRMRD. All 0 if unknown.
///
/// Directions and positions are in the patient's coordinates (LPS: x to the left, y to the back, z to the head), in
/// millimetres. `position` is that of the voxel with index floor(n/2) on every axis, the origin of this library's
/// images.
///
/// ISMRMRD calls it the centre of the excited volume. For an even n, the middle of the array is between two voxels. But
/// the scanner demodulates the signal at the centre of the volume: an object there has the same phase in all samples.
/// Its image is therefore in voxel floor(n/2), for even and odd n. Gadgetron's DICOM writer has the same convention for
/// even n: its first voxel is half a field of view before `position` (gadgets/dicom/dicom_ismrmrd_utility.cpp).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Placement {
    /// The centre of the image, in mm.
    pub position: [f32; 3],
    /// The direction of increasing x index, a unit vector.
    pub read_dir: [f32; 3],
    /// The direction of increasing y index, a unit vector.
    pub phase_dir: [f32; 3],
    /// The direction of increasing z index, a unit vector.
    pub slice_dir: [f32; 3],
    /// The position of the patient's table, in mm.
    pub table_position: [f32; 3],
    /// The number that identifies the measurement.
    pub measurement_uid: u32,
    /// The time of the first acquisition, in the scanner's units.
    pub acquisition_time_stamp: u32,
    /// The times of the first acquisition since the physiological triggers, in the scanner's units.
    pub physiology_time_stamp: [u32; 3],
    /// The time from one repetition of the image to the next in ms; `None` if unknown. It is the TR of the header only
    /// if each image has one excitation.
    pub repetition_time_ms: Option<f32>,
}

impl Placement {
    /// Returns whether the position is finite and the directions are perpendicular unit vectors, within 1 %.
    pub fn is_known(&self) -> bool {
        let d = [self.read_dir, self.phase_dir, self.slice_dir];
        let dot = |a: [f32; 3], b: [f32; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        self.position.iter().all(|p| p.is_finite())
            && (0..3).all(|i| (0..=i).all(|j| (dot(d[i], d[j]) - if i == j { 1.0 } else { 0.0 }).abs() < 0.01))
    }

    /// Returns the directions of increasing x, y and z for pictures and NIfTI files. If they are unknown, they are to
    /// the left, to the front and to the head, as for the Shepp-Logan phantom.
    pub fn directions(&self) -> [[f32; 3]; 3] {
        match self.is_known() {
            true => [self.read_dir, self.phase_dir, self.slice_dir],
            false => [[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]],
        }
    }
}

/// The index of an image in a measurement: the counters of ISMRMRD. Images are sorted by these fields in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ScanIndex {
    /// The number of the encoding in the header.
    pub encoding: u16,
    /// The slice, or slab.
    pub slice: u16,
    /// The repetition, or time frame.
    pub repetition: u16,
    /// The contrast, or echo.
    pub contrast: u16,
    /// The phase of the heart or of breathing.
    pub phase: u16,
    /// The set, for example a flow encoding.
    pub set: u16,
    /// The number of the first average; all averages are in the same [`Scan`](super::scan_data::Scan).
    pub average: u16,
}

/// Encoding, slice, contrast, phase and set: the index of a series of images that differ in their repetition.
pub(super) type SliceKey = [u16; 5];

impl ScanIndex {
    /// Returns the index without the repetition.
    pub(super) fn slice_key(&self) -> SliceKey {
        [self.encoding, self.slice, self.contrast, self.phase, self.set]
    }
}

/// Writes the slice, and all other numbers that are not 0: "slice 1, repetition 2".
impl fmt::Display for ScanIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counters = [
            ("encoding", self.encoding),
            ("slice", self.slice),
            ("repetition", self.repetition),
            ("contrast", self.contrast),
            ("phase", self.phase),
            ("set", self.set),
        ];
        let named = counters.into_iter().filter(|(name, number)| *number > 0 || *name == "slice");
        named.enumerate().try_for_each(|(i, (name, number))| {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{name} {number}")
        })
    }
}
