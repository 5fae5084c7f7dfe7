//! Calibration data for parallel imaging, from which the coil maps of a scan are estimated.

use super::position::ScanIndex;
use super::scan_data::Scan;
use super::warnings::warn;
use crate::base::error::{bail, try_vec, Result};
use num_complex::Complex;
use std::fmt::Display;

/// Returns the calibration data of a scan: of those of its slice, the one that shares most of its other counters.
/// `None` if the slice has no calibration data.
pub fn calibration_of<'a>(calibration: &'a [Scan], scan: &Scan) -> Option<&'a Scan> {
    position_of(calibration.iter().map(|other| &other.index), &scan.index).map(|position| &calibration[position])
}

/// Returns the position of the calibration data of an image in a list, given their indices.
pub(super) fn position_of<'a>(
    calibration: impl DoubleEndedIterator<Item = &'a ScanIndex> + ExactSizeIterator,
    image: &ScanIndex,
) -> Option<usize> {
    let agreement = |other: &ScanIndex| {
        [
            other.encoding == image.encoding,
            other.contrast == image.contrast,
            other.set == image.set,
            other.repetition == image.repetition,
            other.phase == image.phase,
        ]
    };
    let candidates = calibration.enumerate().filter(|(_, other)| other.slice == image.slice);
    // `max_by_key` returns the last of equal elements. In reverse order this is the first one.
    candidates.rev().max_by_key(|(_, other)| agreement(other)).map(|(position, _)| position)
}

/// Warns that the measurement has calibration data, but not of the slice of an image. `name`: the image.
pub fn warn_of_other_slices(name: impl Display) {
    warn(format!(
        "{name}: the calibration acquisitions are of different slices: coil maps of this slice can only be estimated \
         from its own data"
    ));
}

/// Converts calibration data to samples of a scan's encoded matrix, in its virtual coils. Leaves out samples beyond the
/// k-space of that matrix.
///
/// # Errors
/// `SizeMismatch` for a different number of coils or dimensions; `Unsupported` for a different position or orientation;
/// `InvalidArgument` if a field of view is unknown or no samples remain.
pub fn to_matrix_of(calibration: &Scan, scan: &Scan) -> Result<Scan> {
    const REMEDY: &str = "give coil maps, or reconstruct without them";
    if calibration.ndim != scan.ndim {
        bail!(SizeMismatch, "the calibration data are {}D and the scan is {}D: {REMEDY}", calibration.ndim, scan.ndim);
    }
    let coils = scan.coil_matrix.as_ref().map_or(scan.coils, |matrix| matrix.coils());
    if calibration.coils != coils {
        bail!(SizeMismatch, "the calibration data have {} coils and the scan {coils}: {REMEDY}", calibration.coils);
    }
    check_position(calibration, scan, REMEDY)?;

    let mut factors = [1.0; 3];
    for (axis, factor) in factors.iter_mut().enumerate().take(scan.ndim) {
        let voxel = |s: &Scan| f64::from(s.encoded_fov_mm[axis]) / s.encoded_matrix[axis] as f64;
        let (calibration_voxel, scan_voxel) = (voxel(calibration), voxel(scan));
        let is_equal = calibration.encoded_matrix[axis] == scan.encoded_matrix[axis]
            && calibration.encoded_fov_mm[axis] == scan.encoded_fov_mm[axis];
        let has_voxel_sizes = calibration_voxel > 0.0 && scan_voxel > 0.0;
        if !is_equal && !has_voxel_sizes {
            bail!(
                InvalidArgument,
                "the calibration data are on a different matrix, and the header has no field of view: correct the \
                 header, or {REMEDY}"
            );
        }
        // Without rounding for equal spaces.
        *factor = if is_equal { 1.0 } else { scan_voxel / calibration_voxel };
    }
    let samples = calibration.samples();
    let is_inside = |m: usize| {
        (0..scan.ndim).all(|a| (-0.5..0.5).contains(&(f64::from(calibration.coordinates[a][m]) * factors[a])))
    };
    let mut selected = try_vec(samples, false, "the calibration data")?;
    selected.iter_mut().enumerate().for_each(|(m, selected)| *selected = is_inside(m));
    let count = selected.iter().filter(|&&selected| selected).count();
    if count == 0 {
        bail!(InvalidArgument, "the calibration data have no samples within the scan's k-space: {REMEDY}");
    }
    let select = |values: &[f32], factor: f64| -> Vec<f32> {
        let values = values.iter().zip(&selected).filter(|(_, &selected)| selected);
        values.map(|(&value, _)| if factor == 1.0 { value } else { (f64::from(value) * factor) as f32 }).collect()
    };
    let mut data: Vec<Complex<f32>> = try_vec(count * coils, Complex::ZERO, "the calibration data")?;
    let measured = calibration.data.iter().enumerate().filter(|(i, _)| selected[i % samples]);
    data.iter_mut().zip(measured).for_each(|(to, (_, from))| *to = *from);
    if let Some(matrix) = &scan.coil_matrix {
        let mut virtual_data = try_vec(count * scan.coils, Complex::ZERO, "the calibration data")?;
        matrix.apply(count, &data, &mut virtual_data)?;
        data = virtual_data;
    }
    let (mut samples_per_shot, mut skipped_per_shot, mut start) = (Vec::new(), Vec::new(), 0);
    for (&shot, &skipped) in calibration.samples_per_shot.iter().zip(&calibration.skipped_per_shot) {
        let selected = &selected[start..start + shot];
        if let Some(first) = selected.iter().position(|&selected| selected) {
            samples_per_shot.push(selected.iter().filter(|&&selected| selected).count());
            skipped_per_shot.push(skipped + first);
        }
        start += shot;
    }
    Ok(Scan {
        encoded_matrix: scan.encoded_matrix,
        encoded_fov_mm: scan.encoded_fov_mm,
        recon_matrix: scan.recon_matrix,
        recon_fov_mm: scan.recon_fov_mm,
        coordinates: calibration.coordinates.iter().zip(factors).map(|(k, factor)| select(k, factor)).collect(),
        weights: calibration.weights.as_ref().map(|weights| select(weights, 1.0)),
        samples_per_shot,
        skipped_per_shot,
        coils: scan.coils,
        data,
        times: select(&calibration.times, 1.0),
        coil_matrix: scan.coil_matrix.clone(),
        ..calibration.clone()
    })
}

/// Checks that calibration data have the position and orientation of the scan. Otherwise the maps would be shifted or
/// rotated.
fn check_position(calibration: &Scan, scan: &Scan, remedy: &str) -> Result<()> {
    let (a, b) = (&calibration.placement, &scan.placement);
    let distance = |a: [f32; 3], b: [f32; 3]| {
        a.iter().zip(b).map(|(&a, b)| (f64::from(a) - f64::from(b)).powi(2)).sum::<f64>().sqrt()
    };
    let voxel = (0..scan.ndim).map(|i| f64::from(scan.encoded_fov_mm[i]) / scan.encoded_matrix[i] as f64);
    let shift = distance(a.position, b.position) + distance(a.table_position, b.table_position);
    if shift > voxel.fold(0.5, f64::max) {
        bail!(Unsupported, "the calibration data were measured {shift:.1} mm away from the scan: {remedy}");
    }
    let is_set = |v: [f32; 3]| v != [0.0; 3];
    for (axis, a, b) in [("readout", a.read_dir, b.read_dir), ("phase", a.phase_dir, b.phase_dir)] {
        if is_set(a) && is_set(b) && distance(a, b) > 0.02 {
            bail!(Unsupported, "the {axis} direction of the calibration data differs from that of the scan: {remedy}");
        }
    }
    Ok(())
}
