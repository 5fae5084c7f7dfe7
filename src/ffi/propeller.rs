//! PROPELLER: motion of blades, and the image without it.

use super::arrays::{size, CallArrays, ResultArray};
use super::enumerations::{choice, Precision};
use super::inputs::{host_options, with_precision, ScanInput};
use super::status::{call, recon_status};
use super::structs::*;
use super::versioned::{read_or_initial, StructOutput};
use crate::base::error::{bail, checked_product, try_collect, Result};
use crate::{BladeMotion, Complex, Corrected, Options, PropellerOptions, Real};
use std::ffi::c_void;

/// Number of values per blade in the report's motion.
const MOTION_VALUES: usize = 6;

/// Computes the image of 2D PROPELLER data without the motion between blades (Pipe 1999). The motion is estimated from
/// the centre of k-space, which each blade measures: phase, rotation up to 45 degrees, and translation. The corrected
/// samples are then gridded as by recon_grid, with smaller weights for blades that disagree with the others. The report
/// can also return the corrected samples, for recon_cg.
///
/// Blades are recognised from the trajectory. Samples must be in the order of acquisition, and all lines must have the
/// same number of samples. The lines of a blade are parallel and evenly spaced, in one direction or in alternating
/// directions. Voxels are assumed to be square.
///
/// The geometry's weights are not used. Its coil maps are used, except with RECON_BLADE_PHASE_SMOOTH, which removes the
/// coils' phases from the data. Coils are assumed to move with the object. Each frame is corrected independently.
///
/// - options: may be NULL for the defaults. memory_limit limits the gridding only; recon_propeller_memory estimates all
///   bytes. device applies to the gridding. Arrays are in the host's memory.
/// - propeller: may be NULL for the defaults.
/// - kspace: complex [samples, coils, frames], read.
/// - image: complex [nx, ny, images, frames], written, at the scale of the object. NULL: only the motion is estimated.
/// - report: may be NULL.
///
/// A blade with missing lines is left out: its samples have weight 0, and its motion, correlation and weight are 0.
///
/// recon_last_warning returns RECON_WARNING_BLADES if blades disagree, are incomplete, or moved by more than a quarter
/// of the field of view.
///
/// Errors:
/// - As recon_plan_create and recon_grid.
/// - RECON_UNSUPPORTED in 3D, for a voxel list, for field and decay maps, for pointers_on_device, and for coil maps
///   with RECON_BLADE_PHASE_SMOOTH.
/// - RECON_INVALID_ARGUMENT for a trajectory without blades, with the blade.
/// - RECON_INVALID_ARGUMENT if fewer than half of the blades, or fewer than two, are complete.
/// - RECON_INVALID_ARGUMENT if image and report are both NULL.
/// - RECON_SIZE_MISMATCH if motion_capacity is too small.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_propeller(
    geometry: *const recon_geometry,
    options: *const recon_options,
    propeller: *const recon_propeller_options,
    kspace: *const c_void,
    image: *mut c_void,
    report: *mut recon_propeller_report,
) -> recon_status {
    // SAFETY: the structures are the caller's, with arrays of the documented lengths.
    call(|| unsafe {
        let mut arrays = CallArrays::default();
        let scan = ScanInput::read(geometry)?;
        let options = host_options(options, "blades are corrected")?;
        let propeller = propeller_options(propeller)?;
        if image.is_null() && report.is_null() {
            bail!(InvalidArgument, "image and report are NULL: give one of the two, or both");
        }
        let mut report = StructOutput::optional(&mut arrays, "report", report)?;
        with_precision!(scan.precision, T => {
            correct::<T>(&scan, arrays, &options, &propeller, kspace.cast(), image.cast(), report.as_mut())?;
        });
        if let Some(report) = report {
            report.write();
        }
        Ok(())
    })
}

/// Corrects the blades and writes image and arrays of the report. The numbers of the report are set, but not written.
///
/// # Safety
/// The pointers, also those of the report, are null or lead to arrays of the documented lengths.
unsafe fn correct<T: Real>(
    scan: &ScanInput,
    mut arrays: CallArrays,
    options: &Options,
    propeller: &PropellerOptions,
    kspace: *const Complex<T>,
    image: *mut Complex<T>,
    report: Option<&mut StructOutput<recon_propeller_report>>,
) -> Result<()> {
    let arrays = &mut arrays;
    let coil_samples = checked_product(&[scan.samples, scan.frames], "the k-space data")?;
    let images = if scan.has_maps() { 1 } else { scan.coils };
    let voxels = checked_product(&[scan.voxels, images, scan.frames], "the images")?;
    // SAFETY: the caller's promise.
    unsafe {
        let kspace = arrays.input("kspace", kspace, coil_samples * scan.coils)?;
        let image = arrays.optional_output("image", image, voxels)?;
        let mut outputs = ReportArrays::default();
        if let Some(report) = &report {
            outputs = ReportArrays::new(arrays, &report.value, coil_samples, kspace.len())?;
        }
        let corrected = scan.with_geometry::<T, Corrected<T>>(arrays, |geometry| {
            let corrected = Corrected::new(geometry, options, propeller, kspace)?;
            outputs.check_motion_capacity(&corrected, scan.frames)?;
            if let Some(image) = image {
                corrected.grid(geometry, options, image)?;
            }
            Ok(corrected)
        })?;
        outputs.write(&corrected)?;
        if let Some(report) = report {
            report.value.blades = corrected.blades as u64;
            report.value.lines = corrected.lines as u64;
            report.value.readout = corrected.readout as u64;
        }
    }
    Ok(())
}

/// The caller's arrays in a report; `None` for those that are NULL.
struct ReportArrays<'a, T: Real> {
    x: Option<ResultArray<'a, T>>,
    y: Option<ResultArray<'a, T>>,
    weights: Option<ResultArray<'a, T>>,
    kspace: Option<ResultArray<'a, Complex<T>>>,
    motion: Option<ResultArray<'a, f64>>,
}

impl<T: Real> Default for ReportArrays<'_, T> {
    fn default() -> Self {
        ReportArrays { x: None, y: None, weights: None, kspace: None, motion: None }
    }
}

impl<T: Real> ReportArrays<'_, T> {
    /// Checks the addresses in a report, for data with `coil_samples` samples per coil in all frames.
    ///
    /// # Safety
    /// Addresses that are not null lead to arrays of the documented lengths.
    unsafe fn new(
        arrays: &mut CallArrays,
        report: &recon_propeller_report,
        coil_samples: usize,
        kspace_len: usize,
    ) -> Result<Self> {
        let [x, y] = report.coordinates;
        if x.is_null() != y.is_null() {
            bail!(InvalidArgument, "one of coordinates[0] and coordinates[1] is NULL: give both, or none");
        }
        // The required length of motion follows from the data; it is checked when they are known.
        let capacity = size("motion_capacity", report.motion_capacity)?;
        // SAFETY: the caller's promise.
        unsafe {
            Ok(ReportArrays {
                x: arrays.optional_results("coordinates[0]", x.cast(), coil_samples)?,
                y: arrays.optional_results("coordinates[1]", y.cast(), coil_samples)?,
                weights: arrays.optional_results("weights", report.weights.cast(), coil_samples)?,
                kspace: arrays.optional_results("kspace of the report", report.kspace.cast(), kspace_len)?,
                motion: arrays.optional_results("motion", report.motion, capacity)?,
            })
        }
    }

    /// Checks that the motion of all blades fits into the caller's array.
    fn check_motion_capacity(&self, corrected: &Corrected<T>, frames: usize) -> Result<()> {
        let needed = MOTION_VALUES * corrected.motion.len();
        if let Some(capacity) = self.motion.as_ref().map(ResultArray::len).filter(|&capacity| capacity < needed) {
            bail!(
                SizeMismatch,
                "motion has room for {capacity} numbers, but {needed} are needed: {MOTION_VALUES} for each of {} \
                 blades and {frames} frames",
                corrected.blades
            );
        }
        Ok(())
    }

    /// Writes the arrays. [`Corrected::new`] has checked the numbers.
    fn write(self, corrected: &Corrected<T>) -> Result<()> {
        let [x, y] = &corrected.coordinates;
        for (to, from) in [(self.x, x), (self.y, y), (self.weights, &corrected.weights)] {
            if let Some(to) = to {
                to.deliver(from)?;
            }
        }
        if let Some(to) = self.kspace {
            to.deliver(&corrected.kspace)?;
        }
        if let Some(to) = self.motion {
            let values =
                |m: &BladeMotion| [m.rotation, m.translation[0], m.translation[1], m.phase, m.correlation, m.weight];
            let values = corrected.motion.iter().flat_map(values);
            to.deliver(&try_collect(MOTION_VALUES * corrected.motion.len(), "the motion of blades", values)?)?;
        }
        Ok(())
    }
}

/// Estimates the host memory that recon_propeller takes at its peak, in bytes, before it is called. It is an upper
/// estimate. The density weights and the gridding are included; the caller's arrays and memory of a GPU are not.
///
/// - geometry: its sizes and coordinates are read, and whether coil_maps is NULL. Other arrays are not read.
/// - options, propeller: as for recon_propeller, or NULL for the defaults.
/// - host_bytes: number of bytes, written.
///
/// Errors:
/// - RECON_NULL_POINTER, also if coordinates are NULL.
/// - As recon_propeller for the geometry, the trajectory and the options.
#[no_mangle]
#[must_use]
pub unsafe extern "C" fn recon_propeller_memory(
    geometry: *const recon_geometry,
    options: *const recon_options,
    propeller: *const recon_propeller_options,
    host_bytes: *mut u64,
) -> recon_status {
    // SAFETY: the structures are the caller's, with coordinates of the documented length and a number to write.
    call(|| unsafe {
        let mut arrays = CallArrays::default();
        let host_bytes = &mut arrays.output("host_bytes", host_bytes, 1)?[0];
        let scan = ScanInput::read(geometry)?;
        let options = host_options(options, "blades are corrected")?;
        let propeller = propeller_options(propeller)?;
        let bytes = with_precision!(scan.precision, T => {
            let size = scan.size::<T>(&mut arrays, 0)?;
            let k = scan.coordinates::<T>(&mut arrays)?;
            let k: Vec<&[T]> = k.iter().map(|k| &**k).collect();
            let copies = scan.copied_coordinates() * size_of::<T>();
            Corrected::<T>::memory(&size, &k, &options, &propeller)?.saturating_add(copies)
        });
        *host_bytes = bytes as u64;
        Ok(())
    })
}

/// Reads the options of the correction; null means the defaults.
///
/// # Safety
/// As for [`read_or_initial`].
unsafe fn propeller_options(options: *const recon_propeller_options) -> Result<PropellerOptions> {
    // SAFETY: the caller's promise.
    let raw = unsafe { read_or_initial("propeller", options) }?;
    Ok(PropellerOptions {
        lines: size("lines", raw.lines)?,
        phase: choice("phase", raw.phase)?,
        rotation: raw.rotation != 0,
        translation: raw.translation != 0,
        weighting: raw.weighting != 0,
    })
}
