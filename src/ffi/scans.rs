//! Scans: acquisitions of a scanner that become the data of images.

use super::arrays::{check_pointer, size, CallArrays};
use super::enumerations::{
    choice, ConventionNumber, Enumeration, HeaderKindNumber, SpiralExtentChoice, SpokeNumberChoice,
};
use super::scan_structs::*;
use super::status::{call, recon_status};
use super::structs::recon_geometry;
use super::versioned::{read_or_initial, StructOutput};
use crate::acquisition::{AcquisitionPurpose, AcquisitionUse};
use crate::base::error::{bail, try_box, try_collect, Error, ErrorKind, Result};
use crate::scan::{
    complete_grid_weights, to_matrix_of, warn_of_other_slices, AcquisitionHeader, AssembledImage, AssemblyOptions,
    Header, HeaderTrajectoryKind, MeasuredScan, Scan, ScanAssembler, SpareArrays, SpiralExtent, SpokeNumber,
    TrajectoryConvention, TrajectoryOptions,
};
use crate::Complex;
use std::ffi::{c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard};

/// The acquisitions of a measurement. Created by recon_scan_create. Several threads may use a scan, one after the
/// other.
pub struct recon_scan {
    state: Mutex<ScanState>,
}

struct ScanState {
    assembler: ScanAssembler,
    /// The number of acquisitions so far.
    acquisitions: usize,
}

/// The data of one image, or of its calibration. Created by recon_scan_next and recon_scan_image_calibration. Several
/// threads may read it at once.
pub struct recon_scan_image {
    scan: Scan,
    samples_per_shot: Vec<u64>,
    skipped_per_shot: Vec<u64>,
    /// Equal weights for a complete Cartesian grid; `None` for other samples, and if the acquisitions have weights.
    grid_weights: Option<Vec<f32>>,
    /// The headers of the first and the last acquisition.
    acquisitions: [[u8; AcquisitionHeader::BYTES]; 2],
    /// The calibration data of this image.
    calibration: Option<Arc<MeasuredScan>>,
    /// Whether the measurement has calibration data, but not of this image's slice.
    has_other_calibration: bool,
    /// The arrays of the scan that later images use again.
    spare: Arc<SpareArrays>,
}

impl Drop for recon_scan_image {
    fn drop(&mut self) {
        self.spare.put_scan(&mut self.scan);
    }
}

/// Begins a scan: the acquisitions of one measurement in ISMRMRD's format.
///
/// Pass the acquisitions to recon_scan_add in the order in which they were measured, and take the data of each complete
/// image from recon_scan_next. recon_scan_end ends the measurement.
///
/// The library decides what each acquisition is for (recon_acquisition_use), and sorts acquisitions into images: those
/// of one encoding, slice, contrast, phase, repetition and set. Averages and segments are samples of one image. Noise
/// whitens the coils, discarded samples are left out, and reversed readouts are reversed. If the header says that
/// calibration is embedded, calibration lines are also part of the image.
///
/// - xml: the XML header, in UTF-8.
/// - xml_bytes: its length, at most 1 MiB.
/// - options: may be NULL for the defaults.
/// - scan: written. The caller owns it and must pass it to recon_scan_destroy.
///
/// Errors:
/// - RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_OUT_OF_HOST_MEMORY.
/// - RECON_BAD_FILE for a header that is malformed, or lacks a matrix, a field of view or a trajectory.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_scan_create(
    xml: *const c_char,
    xml_bytes: u64,
    options: *const recon_scan_options,
    scan: *mut *mut recon_scan,
) -> recon_status {
    // SAFETY: the arrays and structures are the caller's, with the documented lengths.
    call(|| unsafe {
        let mut arrays = CallArrays::default();
        let out = &mut arrays.output("scan", scan, 1)?[0];
        let text = arrays.input("xml", xml.cast::<u8>(), size("xml_bytes", xml_bytes)?)?;
        let raw = read_or_initial("options", options)?;
        let options = AssemblyOptions {
            completion: choice("complete", raw.complete)?,
            conjugate: raw.conjugate != 0,
            whiten: raw.whiten != 0,
            window: raw.window as usize,
            trajectory: trajectory_options(&raw)?,
        };
        let Ok(text) = std::str::from_utf8(text) else { bail!(BadFile, "the XML header is not UTF-8") };
        let assembler = ScanAssembler::new(Header::from_xml(text)?, options);
        let state = ScanState { assembler, acquisitions: 0 };
        *out = Box::into_raw(try_box(recon_scan { state: Mutex::new(state) }, "the scan")?);
        Ok(())
    })
}

/// Returns the options of trajectories from the header.
fn trajectory_options(raw: &recon_scan_options) -> Result<TrajectoryOptions> {
    let number = |value: f64| Some(value).filter(|value| !value.is_nan());
    let count = |value: u32| Some(value).filter(|&value| value > 0);
    Ok(TrajectoryOptions {
        kind: match choice("header_trajectory", raw.header_trajectory)? {
            HeaderKindNumber::Auto => None,
            HeaderKindNumber::Cartesian => Some(HeaderTrajectoryKind::Cartesian),
            HeaderKindNumber::Radial => Some(HeaderTrajectoryKind::Radial),
            HeaderKindNumber::GoldenAngle => Some(HeaderTrajectoryKind::GoldenAngle),
            HeaderKindNumber::KooshballGoldenMeans => Some(HeaderTrajectoryKind::KooshballGoldenMeans),
            HeaderKindNumber::KooshballPhyllotaxis => Some(HeaderTrajectoryKind::KooshballPhyllotaxis),
            HeaderKindNumber::KooshballEqualArea => Some(HeaderTrajectoryKind::KooshballEqualArea),
            HeaderKindNumber::Spiral => Some(HeaderTrajectoryKind::Spiral),
            HeaderKindNumber::Epi => Some(HeaderTrajectoryKind::Epi),
        },
        convention: match choice("convention", raw.convention)? {
            ConventionNumber::None => None,
            ConventionNumber::Gadgetron => Some(TrajectoryConvention::Gadgetron),
        },
        spoke_number: match choice("spoke_number", raw.spoke_number)? {
            SpokeNumberChoice::Auto => None,
            SpokeNumberChoice::EncodingStep => Some(SpokeNumber::EncodingStep),
            SpokeNumberChoice::AcquisitionOrder => Some(SpokeNumber::AcquisitionOrder),
        },
        spiral_extent: match choice("spiral_extent", raw.spiral_extent)? {
            SpiralExtentChoice::Auto => None,
            SpiralExtentChoice::FieldOfView => Some(SpiralExtent::FieldOfView),
            SpiralExtentChoice::Matrix => Some(SpiralExtent::Matrix),
        },
        golden_angle: Some(raw.golden_angle).filter(|&angle| angle != 0),
        spoke_count: count(raw.spoke_count),
        frames_per_rotation: count(raw.frames_per_rotation),
        readout_samples: count(raw.readout_samples),
        angle_range_degrees: number(raw.angle_range_degrees),
        first_angle_degrees: number(raw.first_angle_degrees),
        center_sample: number(raw.center_sample),
        gradient_delay_us: number(raw.gradient_delay_us),
        sample_time_us: number(raw.sample_time_us),
        acquisition_delay_us: number(raw.acquisition_delay_us),
    })
}

/// Destroys a scan. The images that it gave remain. NULL is ignored.
#[no_mangle]
pub unsafe extern "C" fn recon_scan_destroy(scan: *mut recon_scan) {
    if !scan.is_null() {
        call(|| {
            // SAFETY: created by recon_scan_create, and by the caller's promise not destroyed before.
            drop(unsafe { Box::from_raw(scan) });
            Ok(())
        });
    }
}

/// Adds an acquisition to a scan.
///
/// - header: the header of an acquisition as in ISMRMRD's files and messages: 340 bytes without padding, little-endian.
/// - trajectory: float [trajectory_dimensions, number_of_samples]; NULL if the header's trajectory_dimensions is 0.
/// - data: complex float [number_of_samples, active_channels].
///
/// Acquisitions that are not used, such as navigators, are counted. After an error the next ones can be added. An image
/// is not made without an acquisition that was refused: recon_scan_next returns the error in place of the image, except
/// if the image is already complete. Calibration data are not made without such an acquisition either, with a warning.
///
/// Errors: the message begins with the number of the acquisition, from 0.
/// - RECON_NULL_POINTER, RECON_OUT_OF_HOST_MEMORY.
/// - RECON_NOT_FINITE, with coil and sample.
/// - RECON_BAD_FILE for a negative sample time, and for an image that is already complete.
/// - RECON_UNSUPPORTED for compressed samples.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_scan_add(
    scan: *mut recon_scan,
    header: *const c_void,
    trajectory: *const f32,
    data: *const c_void,
) -> recon_status {
    // SAFETY: the scan is the caller's, and the arrays have the lengths that the header announces.
    call(|| unsafe {
        let mut arrays = CallArrays::default();
        let mut state = state_of(scan)?;
        let header = read_header(&mut arrays, header)?;
        let (samples, coils) = (header.number_of_samples as usize, header.active_channels as usize);
        let number = state.acquisitions;
        state.acquisitions += 1;
        let is_used = AcquisitionUse::of_flags(header.flags).is_used();
        let len = |count: usize| if is_used { count } else { 0 };
        let mut read = || {
            if is_used {
                // Compressed samples are shorter than the header announces.
                header.check_encoding()?;
            }
            let trajectory = match len(samples * header.trajectory_dimensions as usize) {
                0 => &[][..],
                len => arrays.input("trajectory", trajectory, len)?,
            };
            let data = match len(samples * coils) {
                0 => &[][..],
                len => arrays.input("data", data.cast::<Complex<f32>>(), len)?,
            };
            Ok((trajectory, data))
        };
        let added = match read() {
            Ok((trajectory, data)) => state.assembler.add(number, &header, trajectory, data).map(drop),
            Err(error) => {
                state.assembler.refuse(number, &header, &error);
                Err(error)
            }
        };
        added.map_err(|e| e.within(format_args!("acquisition {number}")))
    })
}

/// Whitens the data of one acquisition in place, for hosts in which a later step sorts acquisitions. The noise is that
/// of earlier calls of recon_scan_add. The acquisition is not added.
///
/// - header: as for recon_scan_add.
/// - data: complex float [number_of_samples, active_channels], written.
///
/// The data stay unchanged if
///
/// - the option whiten is 0, or no noise was added so far. Noise of this number of coils that is added later has no
///   effect, so that the units stay the same: recon_scan_end warns of it
/// - the acquisition is noise, or has no samples
/// - the acquisition is not used (recon_acquisition_use), and no noise of its number of coils was added
/// - numbers are not finite: the step that makes images refuses them
///
/// Otherwise they are whitened for their sample time, with a matrix that is computed once for each number of coils and
/// sample time. recon_last_warning then returns a RECON_WARNING_NOISE for the first matrix.
///
/// Errors: the data are unchanged.
/// - RECON_NULL_POINTER, RECON_OUT_OF_HOST_MEMORY.
/// - RECON_BAD_FILE for a negative sample time, RECON_UNSUPPORTED for compressed samples of used acquisitions.
/// - RECON_SIZE_MISMATCH, RECON_INVALID_ARGUMENT, RECON_INVALID_SIZE, RECON_NOT_FINITE if the noise cannot whiten the
///   data.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_scan_whiten(
    scan: *mut recon_scan,
    header: *const c_void,
    data: *mut c_void,
) -> recon_status {
    // SAFETY: the scan is the caller's, and the array has the length that the header announces.
    call(|| unsafe {
        let mut arrays = CallArrays::default();
        let mut state = state_of(scan)?;
        let header = read_header(&mut arrays, header)?;
        // Compressed samples are shorter than the header announces, and are not read.
        let is_whitened = state.assembler.has_whitening() && AcquisitionUse::of_flags(header.flags).is_used();
        if header.check_encoding().is_err() && !is_whitened {
            return Ok(());
        }
        let whitened = header.check_encoding().and_then(|()| {
            match header.number_of_samples as usize * header.active_channels as usize {
                0 => Ok(()),
                len => state.assembler.whiten(&header, arrays.output("data", data.cast(), len)?),
            }
        });
        whitened.map_err(|e| e.within(format_args!("acquisition with scan_counter {}", header.scan_counter)))
    })
}

/// Reads the header of an acquisition.
///
/// # Safety
/// `header` is null or points to the bytes of a header.
unsafe fn read_header(arrays: &mut CallArrays, header: *const c_void) -> Result<AcquisitionHeader> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { arrays.input("header", header.cast::<u8>(), AcquisitionHeader::BYTES) }?;
    Ok(AcquisitionHeader::from_bytes(bytes.try_into().expect("the array has this length")))
}

/// Completes the images of the acquisitions so far, also if the counter of the option complete did not change. Later
/// acquisitions with the same counters begin a new image of the same index. For real-time scans, in which every n
/// acquisitions are one image.
///
/// Shots are counted over all images of an index: recon_last_warning returns RECON_WARNING_ACQUISITIONS if shots of the
/// previous repetition are missing.
///
/// Errors: RECON_NULL_POINTER, RECON_OUT_OF_HOST_MEMORY.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_scan_complete(scan: *mut recon_scan) -> recon_status {
    // SAFETY: the scan is the caller's.
    call(|| unsafe {
        state_of(scan)?.assembler.complete();
        Ok(())
    })
}

/// Ends the measurement: all images are complete.
///
/// recon_last_warning returns
///
/// - RECON_WARNING_NOISE if noise acquisitions had no effect, because they came after the first data of their coils
/// - RECON_WARNING_ACQUISITIONS if the XML header names a noise scan, the option whiten is set, and no noise came
/// - RECON_WARNING_ACQUISITIONS if shots are missing in images that recon_scan_complete completed
///
/// Errors: RECON_NULL_POINTER, RECON_OUT_OF_HOST_MEMORY.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_scan_end(scan: *mut recon_scan) -> recon_status {
    // SAFETY: the scan is the caller's.
    call(|| unsafe {
        state_of(scan)?.assembler.end();
        Ok(())
    })
}

/// Returns the data of the next complete image, in the order of encoding, slice, repetition, contrast, phase and set.
///
/// - image: written: NULL if no image is complete. The caller owns it and must pass it to recon_scan_image_destroy.
///
/// recon_last_warning returns RECON_WARNING_ACQUISITIONS if the acquisitions can be interpreted in several ways, or if
/// some are missing. It returns RECON_WARNING_NOISE when noise whitens the first image.
///
/// Errors: the image is left out, and the next call gives the next one.
/// - The error of recon_scan_add, if it refused an acquisition of the image.
/// - RECON_NULL_POINTER, RECON_OUT_OF_HOST_MEMORY.
/// - RECON_BAD_FILE if counts or counters contradict each other, RECON_COORDINATE_OUT_OF_RANGE, RECON_NOT_FINITE.
/// - RECON_UNSUPPORTED if the acquisitions have no trajectory, and the header does not give it.
/// - RECON_SIZE_MISMATCH, RECON_INVALID_ARGUMENT, RECON_INVALID_SIZE if the noise cannot whiten the data.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_scan_next(scan: *mut recon_scan, image: *mut *mut recon_scan_image) -> recon_status {
    // SAFETY: the scan and the pointer are the caller's.
    call(|| unsafe {
        let mut arrays = CallArrays::default();
        let out = &mut arrays.output("image", image, 1)?[0];
        let mut state = state_of(scan)?;
        let next = match state.assembler.next_image() {
            None => std::ptr::null_mut(),
            Some(image) => Box::into_raw(try_box(
                recon_scan_image::new(image?, true, state.assembler.spare_arrays())?,
                "the image",
            )?),
        };
        *out = next;
        Ok(())
    })
}

/// Returns the calibration data of an image, from which recon_coil_maps estimates coil maps: those of its slice that
/// share most other counters. Their coordinates are for the image's encoded matrix, and they are whitened like the
/// image.
///
/// - calibration: written: NULL if the slice has no calibration data. The caller owns it and must pass it to
///   recon_scan_image_destroy.
///
/// If the measurement has calibration data, but not of this slice, recon_last_warning returns
/// RECON_WARNING_ACQUISITIONS.
///
/// Errors:
/// - RECON_NULL_POINTER, RECON_OUT_OF_HOST_MEMORY.
/// - RECON_SIZE_MISMATCH for a different number of coils or dimensions.
/// - RECON_UNSUPPORTED for a different position or orientation.
/// - RECON_INVALID_ARGUMENT if a field of view is unknown, or no samples are within the image's k-space.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_scan_image_calibration(
    image: *const recon_scan_image,
    calibration: *mut *mut recon_scan_image,
) -> recon_status {
    // SAFETY: the image and the pointer are the caller's.
    call(|| unsafe {
        let mut arrays = CallArrays::default();
        let out = &mut arrays.output("calibration", calibration, 1)?[0];
        let image = image_at(image)?;
        *out = match &image.calibration {
            None => std::ptr::null_mut(),
            Some(calibration) => {
                let scan = to_matrix_of(&calibration.scan, &image.scan)?;
                let image = MeasuredScan { scan, ..**calibration };
                let image = AssembledImage { image, calibration: None, has_other_calibration: false };
                Box::into_raw(try_box(recon_scan_image::new(image, false, Arc::default())?, "the calibration")?)
            }
        };
        if image.has_other_calibration {
            warn_of_other_slices(format_args!("slice {}", image.scan.index.slice));
        }
        Ok(())
    })
}

/// Writes the properties of an image's data, with the addresses of its arrays.
///
/// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_scan_image_properties(
    image: *const recon_scan_image,
    properties: *mut recon_scan_properties,
) -> recon_status {
    // SAFETY: the image and the structure are the caller's.
    call(|| unsafe {
        let mut arrays = CallArrays::default();
        let mut out = StructOutput::new(&mut arrays, "properties", properties)?;
        out.value = image_at(image)?.properties(out.value);
        out.write();
        Ok(())
    })
}

/// Sets precision, ndim, dims, samples, coordinates, weights and coils of a geometry to those of an image's data.
/// Everything else stays unchanged. The geometry refers to the arrays of the image: create the plan before the image is
/// destroyed.
///
/// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_scan_image_geometry(
    image: *const recon_scan_image,
    geometry: *mut recon_geometry,
) -> recon_status {
    // SAFETY: the image and the structure are the caller's.
    call(|| unsafe {
        let mut arrays = CallArrays::default();
        let mut out = StructOutput::new(&mut arrays, "geometry", geometry)?;
        let image = image_at(image)?;
        let scan = &image.scan;
        let geometry = &mut out.value;
        geometry.precision = super::enumerations::Precision::F32.number();
        geometry.ndim = scan.ndim as u32;
        geometry.dims = scan.encoded_matrix.map(|n| n as u64);
        geometry.samples = scan.samples() as u64;
        geometry.coordinates = coordinates_of(scan).map(<*const f32>::cast);
        geometry.coordinate_stride = 0;
        geometry.weights = image.weights().cast();
        geometry.coils = scan.coils as u64;
        out.write();
        Ok(())
    })
}

/// Destroys the data of an image. NULL is ignored.
#[no_mangle]
pub unsafe extern "C" fn recon_scan_image_destroy(image: *mut recon_scan_image) {
    if !image.is_null() {
        call(|| {
            // SAFETY: created by this library, and by the caller's promise not destroyed before.
            drop(unsafe { Box::from_raw(image) });
            Ok(())
        });
    }
}

/// Writes the numbers of acquisitions so far by their use, refused ones included. Lines of embedded calibration are
/// counted for both purposes when their image is complete.
///
/// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_scan_acquisitions(
    scan: *mut recon_scan,
    counts: *mut recon_scan_counts,
) -> recon_status {
    // SAFETY: the scan and the structure are the caller's.
    call(|| unsafe {
        let mut arrays = CallArrays::default();
        let mut out = StructOutput::new(&mut arrays, "counts", counts)?;
        out.value = recon_scan_counts { struct_size: out.value.struct_size, ..empty_counts() };
        for (usage, count) in state_of(scan)?.assembler.uses() {
            let number = match (usage.has(AcquisitionPurpose::Image), usage.has(AcquisitionPurpose::Calibration)) {
                (true, true) => &mut out.value.image_and_calibration,
                (true, false) => &mut out.value.image,
                (false, true) => &mut out.value.calibration,
                (false, false) if usage == AcquisitionUse::Noise => &mut out.value.noise,
                (false, false) => &mut out.value.unused,
            };
            *number += count as u64;
        }
        out.write();
        Ok(())
    })
}

fn empty_counts() -> recon_scan_counts {
    <recon_scan_counts as super::versioned::VersionedStruct>::initial()
}

fn coordinates_of(scan: &Scan) -> [*const f32; 3] {
    std::array::from_fn(|axis| scan.coordinates.get(axis).map_or(std::ptr::null(), |k| k.as_ptr()))
}

impl recon_scan_image {
    /// `is_image`: false for calibration data, whose lines recon_coil_maps recognises itself.
    fn new(assembled: AssembledImage, is_image: bool, spare: Arc<SpareArrays>) -> Result<recon_scan_image> {
        let AssembledImage { image: MeasuredScan { scan, first, last }, calibration, has_other_calibration } =
            assembled;
        let numbers = |list: &[usize]| try_collect(list.len(), "the shots", list.iter().map(|&n| n as u64));
        let grid_weights = match is_image && scan.weights.is_none() {
            true => complete_grid_weights(&scan)?,
            false => None,
        };
        Ok(recon_scan_image {
            grid_weights: match grid_weights {
                Some(weights) => {
                    Some(try_collect(weights.len(), "the weights", weights.iter().map(|&weight| weight as f32))?)
                }
                None => None,
            },
            samples_per_shot: numbers(&scan.samples_per_shot)?,
            skipped_per_shot: numbers(&scan.skipped_per_shot)?,
            acquisitions: [first.to_bytes(), last.to_bytes()],
            scan,
            calibration,
            has_other_calibration,
            spare,
        })
    }

    /// Returns the address of the density weights; null without weights.
    fn weights(&self) -> *const f32 {
        let weights = self.scan.weights.as_ref().or(self.grid_weights.as_ref());
        weights.map_or(std::ptr::null(), |weights| weights.as_ptr())
    }

    /// Returns the properties, with the struct_size of `initial`.
    fn properties(&self, initial: recon_scan_properties) -> recon_scan_properties {
        let Scan { placement, index, .. } = &self.scan;
        let wide = |values: [f32; 3]| values.map(f64::from);
        recon_scan_properties {
            struct_size: initial.struct_size,
            ndim: self.scan.ndim as u32,
            encoded_matrix: self.scan.encoded_matrix.map(|n| n as u64),
            recon_matrix: self.scan.recon_matrix.map(|n| n as u64),
            encoded_fov_mm: wide(self.scan.encoded_fov_mm),
            recon_fov_mm: wide(self.scan.recon_fov_mm),
            samples: self.scan.samples() as u64,
            shots: self.samples_per_shot.len() as u64,
            coils: self.scan.coils as u64,
            coordinates: coordinates_of(&self.scan),
            weights: self.weights(),
            times: self.scan.times.as_ptr(),
            kspace: self.scan.data.as_ptr().cast(),
            samples_per_shot: self.samples_per_shot.as_ptr(),
            skipped_per_shot: self.skipped_per_shot.as_ptr(),
            dwell: f64::from(self.scan.dwell()),
            position: wide(placement.position),
            read_dir: wide(placement.read_dir),
            phase_dir: wide(placement.phase_dir),
            slice_dir: wide(placement.slice_dir),
            table_position: wide(placement.table_position),
            encoding: index.encoding.into(),
            slice: index.slice.into(),
            repetition: index.repetition.into(),
            contrast: index.contrast.into(),
            phase: index.phase.into(),
            set: index.set.into(),
            average: index.average.into(),
            trajectory: self.scan.trajectory.number(),
            is_whitened: (self.scan.noise_level == Some(1.0)).into(),
            measurement_uid: placement.measurement_uid,
            acquisition_time_stamp: placement.acquisition_time_stamp,
            physiology_time_stamp: placement.physiology_time_stamp,
            first_acquisition: self.acquisitions[0].as_ptr().cast(),
            last_acquisition: self.acquisitions[1].as_ptr().cast(),
        }
    }
}

/// Locks the scan at an address.
///
/// # Safety
/// `scan` is null, or was created by recon_scan_create and not destroyed.
unsafe fn state_of<'a>(scan: *mut recon_scan) -> Result<MutexGuard<'a, ScanState>> {
    check_pointer("scan", scan)?;
    // SAFETY: not null, and by the caller's promise alive.
    let scan = unsafe { &*scan };
    // A panic in another call may have left the scan half changed.
    scan.state.lock().map_err(|_| {
        Error::new(ErrorKind::Internal, "an earlier call for this scan failed by a defect: destroy the scan")
    })
}

/// Returns the image at an address.
///
/// # Safety
/// `image` is null, or was created by this library and not destroyed.
unsafe fn image_at<'a>(image: *const recon_scan_image) -> Result<&'a recon_scan_image> {
    check_pointer("image", image)?;
    // SAFETY: not null, and by the caller's promise alive. Nothing changes an image.
    Ok(unsafe { &*image })
}
