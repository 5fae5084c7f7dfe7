//! From a scanner's acquisitions to the k-space of images.
//!
//! A [`ScanAssembler`] receives the XML header and the acquisitions of a measurement in ISMRMRD's format, from a file
//! or as they are measured. It decides what each acquisition is for, sorts the acquisitions into images, and hands out
//! one [`Scan`] per image: coordinates, k-space, geometry and times, ready for a [`Plan`](crate::Plan). Noise and
//! calibration data are separate. Nothing here reads files.
//!
//! One image consists of the acquisitions of one encoding, slice, contrast, phase, repetition and set. Acquisitions
//! that differ only in their average, segment or encoding steps are samples of the same image, so that the
//! reconstruction averages the averages. Calibration acquisitions for parallel imaging become separate scans.

mod acquisition_header;
mod assembler;
mod builder;
mod calibration;
mod cartesian;
mod coil_samples;
mod consistency;
mod header;
mod header_reader;
mod header_trajectory;
mod header_writer;
mod missing_shots;
mod noise;
mod position;
mod scan_data;
mod shots;
mod spare_arrays;
mod step_axis;
mod warnings;
mod whitening;
mod window;

pub use acquisition_header::{flag, AcquisitionHeader, EncodingCounters};
pub use assembler::{AssembledImage, AssemblyOptions, CompletionCounter, ScanAssembler};
pub use calibration::{calibration_of, to_matrix_of, warn_of_other_slices};
pub use cartesian::{complete_grid_weights, missing_share};
pub use header::{
    CalibrationMode, EncodingLimits, EncodingSpace, Header, HeaderEncoding, ParallelImaging, TrajectoryDescription,
    TrajectoryKind, UserParameter, MAX_XML,
};
pub use header_trajectory::{
    HeaderTrajectoryKind, SpiralExtent, SpokeNumber, TrajectoryConvention, TrajectoryOptions, DESCRIPTION_PREFIX,
};
pub use noise::warn_of_missing_noise;
pub use position::{Placement, ScanIndex};
pub use scan_data::{Dataset, MeasuredScan, Noise, Scan};
pub use spare_arrays::SpareArrays;
pub use whitening::{transform_coils, warn_of_noise_units, whiten};
