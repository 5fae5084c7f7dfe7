//! The structures of scans: acquisitions that become images.

use super::enumerations::{ConventionNumber, Enumeration, HeaderKindNumber, SpiralExtentChoice, SpokeNumberChoice};
use super::versioned::{versioned, VersionedStruct};
use crate::scan::{CompletionCounter, TrajectoryKind};
use std::ffi::c_void;
use std::ptr::null;

/// Options of recon_scan_create. Initialise them with recon_scan_options_init.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_scan_options {
    /// Set by recon_scan_options_init.
    pub struct_size: u32,
    /// A recon_scan_counter: images are complete when this counter changes. Default: RECON_SCAN_COUNTER_NONE, which
    /// means the end of the measurement.
    pub complete: u32,
    /// Not 0 (default 0): k-space has the other sign than the model, exp(+i 2 pi k.r), as some converters write it. The
    /// samples are conjugated.
    pub conjugate: u32,
    /// Not 0 (default 1): noise acquisitions whiten the coils of image and calibration. Images are then in units of the
    /// noise's standard deviation. Noise that is added after the first data of its number of coils were handed out has
    /// no effect.
    pub whiten: u32,
    /// A recon_header_trajectory: the trajectory of acquisitions that have none, unless the encoding is Cartesian.
    /// Default: RECON_HEADER_TRAJECTORY_AUTO, that of the header. The next fields settle what the header leaves open.
    pub header_trajectory: u32,
    /// A recon_trajectory_convention, for everything that is not in the header or in the other fields. Default:
    /// RECON_CONVENTION_NONE.
    pub convention: u32,
    /// A recon_spoke_number: the number from which the direction of a spoke is computed. Default:
    /// RECON_SPOKE_NUMBER_AUTO.
    pub spoke_number: u32,
    /// A recon_spiral_extent: the scale of a spiral. Default: RECON_SPIRAL_EXTENT_AUTO.
    pub spiral_extent: u32,
    /// Number N of the tiny golden angle: 1 for the golden angle of 111.246 degrees, negative for a rotation from y
    /// towards x. 0 (default): from the header.
    pub golden_angle: i32,
    /// Number of spokes in the range of angles. 0 (default): from the encoding limits.
    pub spoke_count: u32,
    /// Number of successive frames whose spokes interleave. 0 (default): 1.
    pub frames_per_rotation: u32,
    /// Number of samples along a spoke from one edge of k-space to the other. 0 (default): those of an acquisition.
    pub readout_samples: u32,
    /// Range of the angles of spokes or interleaves in degrees, positive from x towards y. NAN (default): from the
    /// header.
    pub angle_range_degrees: f64,
    /// Angle of the first spoke or interleaf in degrees. NAN (default): from the header.
    pub first_angle_degrees: f64,
    /// Sample at the centre of k-space. NAN (default): that of the acquisition; 0 for a spiral.
    pub center_sample: f64,
    /// Delay of the gradients in microseconds. NAN (default): 0.
    pub gradient_delay_us: f64,
    /// Time between samples in microseconds. NAN (default): from the acquisitions and the header.
    pub sample_time_us: f64,
    /// Time from the beginning of an echo-planar gradient to its first sample in microseconds. NAN (default): the
    /// samples are in the middle of the gradient.
    pub acquisition_delay_us: f64,
    /// Number of newest images of the same encoding, slice, contrast, phase and set whose data are joined to one image:
    /// a sliding window. 0 (default) and 1: no window.
    pub window: u32,
    /// Zero.
    pub reserved: u32,
}

/// Properties of the data of one image. Initialise them with recon_scan_properties_init. The arrays belong to the
/// recon_scan_image, and exist until it is destroyed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_scan_properties {
    /// Set by recon_scan_properties_init.
    pub struct_size: u32,
    /// Dimensions of the image: 2 if the encoded matrix has one voxel along z, otherwise 3.
    pub ndim: u32,
    /// Voxels of the encoded matrix along x, y, z. Coordinates are in cycles per voxel of this matrix.
    pub encoded_matrix: [u64; 3],
    /// Voxels of the reconstructed matrix along x, y, z: recon_resize converts images to it.
    pub recon_matrix: [u64; 3],
    /// Field of view of the encoded matrix along x, y, z in mm.
    pub encoded_fov_mm: [f64; 3],
    /// Field of view of the reconstructed matrix along x, y, z in mm.
    pub recon_fov_mm: [f64; 3],
    /// Number of samples of one coil, without discarded samples.
    pub samples: u64,
    /// Number of acquisitions.
    pub shots: u64,
    /// Number of receive coils.
    pub coils: u64,
    /// Coordinates along x, y, z in cycles per voxel: float [samples] each; NULL along z in 2D.
    pub coordinates: [*const f32; 3],
    /// Density weights: float [samples]. The weights of the acquisitions, or equal weights if the samples are a
    /// complete Cartesian grid, of which the image is the inverse discrete Fourier transform. NULL for other samples.
    pub weights: *const f32,
    /// Time of each sample in seconds since the first sample of its acquisition, which may be discarded: float
    /// [samples]. All 0 if the acquisitions have no sample time.
    pub times: *const f32,
    /// The data: complex float [samples, coils].
    pub kspace: *const c_void,
    /// Number of samples of each acquisition: [shots].
    pub samples_per_shot: *const u64,
    /// Number of discarded samples at the beginning of each acquisition: [shots].
    pub skipped_per_shot: *const u64,
    /// Time between samples in seconds; 0 if it is unknown.
    pub dwell: f64,
    /// Position in mm of voxel floor(n/2) on every axis, in the patient's coordinates (x to the left, y to the back, z
    /// to the head).
    pub position: [f64; 3],
    /// Direction of increasing x index in the patient.
    pub read_dir: [f64; 3],
    /// Direction of increasing y index in the patient.
    pub phase_dir: [f64; 3],
    /// Direction of increasing z index in the patient.
    pub slice_dir: [f64; 3],
    /// Position of the patient's table in mm.
    pub table_position: [f64; 3],
    /// Number of the encoding in the header.
    pub encoding: u32,
    /// The slice.
    pub slice: u32,
    /// The repetition.
    pub repetition: u32,
    /// The contrast, or echo.
    pub contrast: u32,
    /// The phase of the heart or of breathing.
    pub phase: u32,
    /// The set, for example a velocity encoding.
    pub set: u32,
    /// The first average. All averages are in the same data.
    pub average: u32,
    /// A recon_trajectory_kind.
    pub trajectory: u32,
    /// 1 if noise has whitened the coils, otherwise 0.
    pub is_whitened: u32,
    /// Number that identifies the measurement.
    pub measurement_uid: u32,
    /// Time of the first acquisition, in the scanner's units.
    pub acquisition_time_stamp: u32,
    /// Times of the first acquisition since the physiological triggers, in the scanner's units.
    pub physiology_time_stamp: [u32; 3],
    /// Header of the first acquisition, in the order of recon_scan_add: 340 bytes, as there. With a sliding window it
    /// is that of the newest image.
    pub first_acquisition: *const c_void,
    /// Header of the last acquisition.
    pub last_acquisition: *const c_void,
}

/// Numbers of acquisitions by their use. Initialise them with recon_scan_counts_init.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_scan_counts {
    /// Set by recon_scan_counts_init.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Acquisitions of images only.
    pub image: u64,
    /// Acquisitions of calibration only.
    pub calibration: u64,
    /// Acquisitions of image and calibration.
    pub image_and_calibration: u64,
    /// Acquisitions of noise.
    pub noise: u64,
    /// Acquisitions that are not used, such as navigators.
    pub unused: u64,
}

versioned!(recon_scan_options, 104, older [96], {
    complete: CompletionCounter::None.number(), conjugate: 0, whiten: 1, header_trajectory: HeaderKindNumber::Auto.number(),
    convention: ConventionNumber::None.number(), spoke_number: SpokeNumberChoice::Auto.number(),
    spiral_extent: SpiralExtentChoice::Auto.number(), golden_angle: 0, spoke_count: 0, frames_per_rotation: 0,
    readout_samples: 0, angle_range_degrees: f64::NAN, first_angle_degrees: f64::NAN, center_sample: f64::NAN,
    gradient_delay_us: f64::NAN, sample_time_us: f64::NAN, acquisition_delay_us: f64::NAN, window: 0, reserved: 0,
});
versioned!(recon_scan_properties, 392, older [376], {
    ndim: 0, encoded_matrix: [0; 3], recon_matrix: [0; 3], encoded_fov_mm: [0.0; 3], recon_fov_mm: [0.0; 3],
    samples: 0, shots: 0, coils: 0, coordinates: [null(); 3], weights: null(), times: null(), kspace: null(),
    samples_per_shot: null(), skipped_per_shot: null(), dwell: 0.0, position: [0.0; 3], read_dir: [0.0; 3],
    phase_dir: [0.0; 3], slice_dir: [0.0; 3], table_position: [0.0; 3], encoding: 0, slice: 0, repetition: 0,
    contrast: 0, phase: 0, set: 0, average: 0, trajectory: TrajectoryKind::Other.number(), is_whitened: 0,
    measurement_uid: 0, acquisition_time_stamp: 0, physiology_time_stamp: [0; 3], first_acquisition: null(), last_acquisition: null(),
});
versioned!(recon_scan_counts, 48, { reserved: 0, image: 0, calibration: 0, image_and_calibration: 0, noise: 0, unused: 0 });
