//! Writes raw data: the scans that recon_files_scan returns, and their noise.

use super::images::index_of;
use super::outcome::{array_of, call, path_of, text_of};
use super::raw::recon_files_noise;
use crate::ismrmrd::{write_dataset_with_header, TrajectoryStorage};
use crate::{Dataset, FileUse, Placement};
use num_complex::Complex;
use recon::atomic_file::write_atomically;
use recon::error::{bail, checked_product, Result};
use recon::ffi::{recon_scan_properties, recon_status};
use recon::scan::{CalibrationMode, EncodingSpace, Header, HeaderEncoding, Noise, Scan, TrajectoryKind};
use std::ffi::c_char;

/// Relative difference of two sample times of one shot that is due to rounding.
const TIME_ROUNDING: f64 = 1e-3;

/// Writes raw data as an ISMRMRD file.
///
/// - xml: the XML header; NULL for a header with the matrix and field of view of the first scan.
/// - scans: their times may be NULL.
/// - calibration: scans with 0 samples are left out, and of several with the same counters all but the first.
#[no_mangle]
pub unsafe extern "C" fn recon_files_write_raw(
    path: *const c_char,
    xml: *const c_char,
    scans: *const recon_scan_properties,
    calibration: *const recon_scan_properties,
    count: u64,
    noise: *const recon_files_noise,
    noise_count: u64,
) -> recon_status {
    call(|| {
        // SAFETY: the caller's text.
        let path = unsafe { path_of(path) }?;
        FileUse::WriteDataset.format(&path)?;
        let build = || {
            // SAFETY: the caller's structures.
            let (scans, calibration, noise) = unsafe {
                (
                    array_of("the scans", scans, count as usize)?,
                    array_of("the calibration", calibration, count as usize)?,
                    array_of("the noise", noise, noise_count as usize)?,
                )
            };
            let xml = match xml.is_null() {
                true => None,
                // SAFETY: the caller's text.
                false => Some(unsafe { text_of("the header", xml) }?.to_owned()),
            };
            // SAFETY: the arrays have the lengths that the structures announce.
            unsafe { dataset_of(xml, scans, calibration, noise) }
        };
        let (xml, dataset) = build().map_err(|e| e.within(path.display()))?;
        write_atomically(|files| write_dataset_with_header(files, &path, &dataset, TrajectoryStorage::Stored, &xml))
    })
}

/// Returns the XML header and the dataset.
///
/// # Safety
/// The arrays have the lengths that the structures announce.
unsafe fn dataset_of(
    xml: Option<String>,
    scans: &[recon_scan_properties],
    calibration: &[recon_scan_properties],
    noise: &[recon_files_noise],
) -> Result<(String, Dataset)> {
    let copy = |(number, properties): (usize, &recon_scan_properties)| {
        // SAFETY: the caller's promise.
        unsafe { scan_of(properties) }.map_err(|e| e.within(format_args!("image {number}")))
    };
    let scans = scans.iter().enumerate().map(copy).collect::<Result<Vec<_>>>()?;
    let mut calibrations: Vec<Scan> = Vec::new();
    for properties in calibration.iter().enumerate().filter(|(_, properties)| properties.samples > 0) {
        let scan = copy(properties).map_err(|e| e.within("calibration"))?;
        if calibrations.iter().all(|other| other.index != scan.index) {
            calibrations.push(scan);
        }
    }
    // SAFETY: the caller's promise.
    let noise = noise.iter().map(|group| unsafe { noise_of(group) }).collect::<Result<Vec<_>>>()?;
    let header = match &xml {
        Some(xml) => Header::from_xml(xml)?,
        None => header_of(&scans)?,
    };
    let is_embedded = |encoding: &HeaderEncoding| {
        encoding.parallel.is_some_and(|parallel| parallel.calibration == Some(CalibrationMode::Embedded))
    };
    if !calibrations.is_empty() && header.encodings.iter().any(is_embedded) {
        log::warn!(
            "the calibration data are not written: the header says that they are part of the image, and a reader would \
             add them to it a second time"
        );
        calibrations.clear();
    }
    let xml = xml.unwrap_or_else(|| header.to_xml());
    Ok((xml, Dataset { header, scans, noise, calibration: calibrations, uses: Vec::new() }))
}

/// Returns a header with the matrix and the field of view of the first scan.
fn header_of(scans: &[Scan]) -> Result<Header> {
    let Some(scan) = scans.first() else { bail!(InvalidArgument, "there is no image to write") };
    if scan.encoded_fov_mm.iter().any(|&fov| !(fov > 0.0)) {
        bail!(
            InvalidArgument,
            "the field of view is {:?} mm: a header needs it: set info.fov to [x y z] in mm",
            scan.encoded_fov_mm
        );
    }
    let encoding = HeaderEncoding {
        encoded: EncodingSpace { matrix: scan.encoded_matrix, fov_mm: scan.encoded_fov_mm },
        recon: EncodingSpace { matrix: scan.recon_matrix, fov_mm: scan.recon_fov_mm },
        ..Default::default()
    };
    Ok(Header { encodings: vec![encoding], ..Default::default() })
}

/// Copies noise of the caller.
///
/// # Safety
/// The data have the length that the structure announces.
unsafe fn noise_of(noise: &recon_files_noise) -> Result<Noise> {
    let (coils, samples) = (noise.coils as usize, noise.samples as usize);
    let count = checked_product(&[samples, coils], "the noise")?;
    if count == 0 {
        bail!(InvalidSize, "noise of {samples} samples and {coils} coils is empty");
    }
    // SAFETY: the caller's promise.
    let data = unsafe { array_of("the noise", noise.data.cast::<Complex<f32>>(), count) }?;
    Ok(Noise { coils, dwell: noise.dwell as f32, data: data.to_vec() })
}

/// Copies a scan of the caller.
///
/// # Safety
/// The arrays have the lengths that the structure announces.
unsafe fn scan_of(p: &recon_scan_properties) -> Result<Scan> {
    let (samples, coils, ndim) = (p.samples as usize, p.coils as usize, p.ndim as usize);
    let count = checked_product(&[samples, coils], "the data")?;
    if !(2..=3).contains(&ndim) {
        bail!(InvalidSize, "the trajectory has {ndim} dimensions: 2 or 3 are required");
    }
    // SAFETY: the caller's promise.
    let scan = unsafe {
        let floats = |what, start: *const f32| array_of(what, start, samples).map(<[f32]>::to_vec);
        let shots = |start| array_of("the shots", start, p.shots as usize);
        let sizes = |shots: &[u64]| shots.iter().map(|&n| n as usize).collect::<Vec<_>>();
        let narrow = |values: [f64; 3]| values.map(|value| value as f32);
        Scan {
            index: index_of([p.encoding, p.slice, p.repetition, p.contrast, p.phase, p.set, p.average])?,
            encoded_matrix: p.encoded_matrix.map(|n| n as usize),
            recon_matrix: p.recon_matrix.map(|n| n as usize),
            encoded_fov_mm: narrow(p.encoded_fov_mm),
            recon_fov_mm: narrow(p.recon_fov_mm),
            trajectory: TrajectoryKind::Other,
            ndim,
            coordinates: p.coordinates[..ndim].iter().map(|&k| floats("the trajectory", k)).collect::<Result<_>>()?,
            weights: if p.weights.is_null() { None } else { Some(floats("the weights", p.weights)?) },
            samples_per_shot: sizes(shots(p.samples_per_shot)?),
            skipped_per_shot: sizes(shots(p.skipped_per_shot)?),
            coils,
            data: array_of("the data", p.kspace.cast::<Complex<f32>>(), count)?.to_vec(),
            times: if p.times.is_null() { vec![0.0; samples] } else { floats("the times", p.times)? },
            placement: Placement {
                position: narrow(p.position),
                read_dir: narrow(p.read_dir),
                phase_dir: narrow(p.phase_dir),
                slice_dir: narrow(p.slice_dir),
                table_position: narrow(p.table_position),
                measurement_uid: p.measurement_uid,
                acquisition_time_stamp: p.acquisition_time_stamp,
                physiology_time_stamp: p.physiology_time_stamp,
                repetition_time_ms: None,
            },
            coil_matrix: None,
            noise_level: None,
        }
    };
    scan.check()?;
    check_times(&scan)?;
    Ok(scan)
}

/// Checks that the file can store the times: each shot has one sample time, and begins at 0.
fn check_times(scan: &Scan) -> Result<()> {
    let mut start = 0;
    for (shot, &count) in scan.samples_per_shot.iter().enumerate() {
        let times = &scan.times[start..start + count];
        start += count;
        let Some((&first, last)) = times.first().zip(times.last()) else { continue };
        let dwell = if count > 1 { f64::from(times[1]) - f64::from(first) } else { 0.0 };
        let expected = |i: usize| f64::from(first) + i as f64 * dwell;
        let rounding = TIME_ROUNDING * dwell.abs() + f64::from(last.abs()) * f64::from(f32::EPSILON) * 8.0;
        let uneven = times
            .iter()
            .enumerate()
            .position(|(i, &t)| (f64::from(t) - expected(i)).abs() > rounding * (1.0 + i as f64));
        if uneven.is_some() || dwell < 0.0 {
            bail!(
                Unsupported,
                "the times of shot {shot} do not ascend in equal steps, which is all that ISMRMRD stores: set \
                 info.times to [] to leave them out"
            );
        }
        if f64::from(first) > rounding {
            bail!(
                Unsupported,
                "the times of shot {shot} begin at {first} s: ISMRMRD stores times from 0 at the first sample. Subtract \
                 the first time of each shot from info.times, or set it to [] to leave the times out"
            );
        }
    }
    Ok(())
}
