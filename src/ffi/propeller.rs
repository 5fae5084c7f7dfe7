//! PROPELLER: the motion of blades, and the image without it.

use super::arrays::{size, Arrays, Results};
use super::enumerations::{choice, Precision};
use super::scan::{self, with_precision, Scan};
use super::status::{call, recon_status};
use super::structs::*;
use crate::base::error::{bail, checked_product, try_collect, Result};
use crate::{BladeMotion, Complex, Corrected, Options, PropellerOptions};
use std::ffi::c_void;

/// Numbers of a blade in the report.
const NUMBERS: usize = 6;

/// The image of PROPELLER data in 2D (Pipe 1999) without the motion between blades, which is found from the centre of
/// k-space that each of them measures: phase, rotation up to 45 degrees, translation. What is corrected is then gridded
/// as by recon_grid, with blades that disagree with the others weighted less; or the report takes it, for recon_cg.
///
/// Blades are recognised from the trajectory: samples in the order of acquisition, lines of as many samples each, all
/// in one direction or in alternating directions, parallel and evenly spaced within a blade. Voxels are taken to be
/// square. The geometry's weights are not used; its coil maps are, but with RECON_BLADE_PHASE_SMOOTH, which takes the
/// coils' phases from the data. Several coils are taken to move with the object. Each frame is corrected on its own.
///
/// options: may be NULL for the defaults. memory_limit counts the gridding only; recon_propeller_memory estimates all
/// bytes. device is that of the gridding; arrays are in the host's memory.
/// propeller: may be NULL for the defaults.
/// kspace: complex [samples, coils, frames], read.
/// image: complex [nx, ny, images, frames], written, at the scale of the object. Or NULL: motion is found only.
/// report: may be NULL.
///
/// A blade that has lost lines is left out: its samples have weight 0, and its motion, correlation and weight are 0.
///
/// recon_last_warning returns a warning if blades do not agree, are incomplete, or are moved by more than a quarter
/// of the field of view (RECON_WARNING_BLADES).
///
/// Errors: as recon_plan_create and recon_grid; RECON_UNSUPPORTED in 3D, for a list of voxels, for pointers_on_device,
/// and for coil maps with RECON_BLADE_PHASE_SMOOTH; RECON_INVALID_ARGUMENT for a trajectory that is not of blades, or
/// of which fewer than half of the blades, or fewer than two, are complete, with the blade, and where image and report
/// are NULL; RECON_SIZE_MISMATCH when motion has too little room.
#[no_mangle]
pub unsafe extern "C" fn recon_propeller(
    geometry: *const recon_geometry,
    options: *const recon_options,
    propeller: *const recon_propeller_options,
    kspace: *const c_void,
    image: *mut c_void,
    report: *mut recon_propeller_report,
) -> recon_status {
    // SAFETY: the caller's structures, and arrays as long as they say.
    call(|| unsafe {
        let mut arrays = Arrays::default();
        let scan = Scan::read(geometry)?;
        let options = host_options(options)?;
        let how = propeller_options(propeller)?;
        if image.is_null() && report.is_null() {
            bail!(InvalidArgument, "image and report are NULL: give one of the two, or both");
        }
        let out = match report.is_null() {
            true => None,
            false => Some(Out::new(&mut arrays, "report", report)?),
        };
        with_precision!(scan.precision, T => {
            let of_coil = checked_product(&[scan.samples, scan.frames], "the k-space data")?;
            let kspace = arrays.input::<Complex<T>>("kspace", kspace.cast(), of_coil * scan.coils)?;
            let images = if scan.has_maps() { 1 } else { scan.coils };
            let voxels = checked_product(&[scan.voxels, images, scan.frames], "the images")?;
            let image = arrays.optional_output::<Complex<T>>("image", image.cast(), voxels)?;
            let mut room = Room::<T>::default();
            if let Some(out) = &out {
                let [x, y] = out.value.coordinates;
                if x.is_null() != y.is_null() {
                    bail!(InvalidArgument, "one of coordinates[0] and coordinates[1] is NULL: give both, or none");
                }
                room = Room {
                    x: arrays.optional_results("coordinates[0]", x.cast(), of_coil)?,
                    y: arrays.optional_results("coordinates[1]", y.cast(), of_coil)?,
                    weights: arrays.optional_results("weights", out.value.weights.cast(), of_coil)?,
                    kspace: arrays.optional_results("kspace of the report", out.value.kspace.cast(), kspace.len())?,
                    motion: None,
                };
                // Its length follows from the data; room is checked once that is known.
                let capacity = size("motion_capacity", out.value.motion_capacity)?;
                if !out.value.motion.is_null() {
                    room.motion = Some(arrays.results("motion", out.value.motion, capacity)?);
                }
            }
            let corrected = scan.with_geometry::<T, Corrected<T>>(&mut arrays, |geometry| {
                let corrected = Corrected::new(geometry, &options, &how, kspace)?;
                let needed = NUMBERS * corrected.motion.len();
                if let Some(short) = room.motion.as_ref().map(|m| m.len()).filter(|&len| len < needed) {
                    bail!(
                        SizeMismatch,
                        "motion has room for {short} numbers, but {needed} are needed: {NUMBERS} for each of {} blades \
                         and {} frames",
                        corrected.blades,
                        scan.frames
                    );
                }
                if let Some(image) = image {
                    corrected.grid(geometry, &options, image)?;
                }
                Ok(corrected)
            })?;
            room.fill(&corrected)?;
            if let Some(mut out) = out {
                out.value = recon_propeller_report {
                    blades: corrected.blades as u64,
                    lines: corrected.lines as u64,
                    readout: corrected.readout as u64,
                    ..out.value
                };
                out.write();
            }
            Ok(())
        })
    })
}

/// Estimates the bytes of host memory that recon_propeller takes at its peak, before it is called: an upper estimate.
/// The caller's arrays are not counted, nor is the memory of a GPU.
///
/// geometry: its sizes and coordinates are read, and whether coil_maps is NULL. Other arrays are not read.
/// options, propeller: as for recon_propeller, or NULL.
/// host_bytes: number of bytes, written.
///
/// Errors: as recon_propeller for the geometry and the options; RECON_NULL_POINTER.
#[no_mangle]
pub unsafe extern "C" fn recon_propeller_memory(
    geometry: *const recon_geometry,
    options: *const recon_options,
    propeller: *const recon_propeller_options,
    host_bytes: *mut u64,
) -> recon_status {
    // SAFETY: the caller's structures, coordinates as many as they say, and a number to write.
    call(|| unsafe {
        let mut arrays = Arrays::default();
        let host_bytes = &mut arrays.output("host_bytes", host_bytes, 1)?[0];
        let scan = Scan::read(geometry)?;
        let options = host_options(options)?;
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

/// Reads the options of a plan, and refuses arrays on a GPU.
///
/// # Safety
/// As for [`scan::options`].
unsafe fn host_options(options: *const recon_options) -> Result<Options> {
    // SAFETY: the caller's promise.
    let raw = if options.is_null() { recon_options::initial() } else { unsafe { read("options", options) }? };
    if raw.pointers_on_device != 0 {
        bail!(
            Unsupported,
            "pointers_on_device is {}: blades are corrected in the host's memory; set it to 0",
            raw.pointers_on_device
        );
    }
    // SAFETY: the caller's promise.
    unsafe { scan::options(options) }
}

/// Reads the options of the correction; null means the defaults.
///
/// # Safety
/// As for [`read`].
unsafe fn propeller_options(options: *const recon_propeller_options) -> Result<PropellerOptions> {
    let raw = match options.is_null() {
        true => recon_propeller_options::initial(),
        // SAFETY: the caller's promise.
        false => unsafe { read("propeller", options) }?,
    };
    Ok(PropellerOptions {
        lines: size("lines", raw.lines)?,
        phase: choice("phase", raw.phase)?,
        rotation: raw.rotation != 0,
        translation: raw.translation != 0,
        weighting: raw.weighting != 0,
    })
}

/// The caller's arrays that the report leads to.
struct Room<'a, T: crate::Real> {
    x: Option<Results<'a, T>>,
    y: Option<Results<'a, T>>,
    weights: Option<Results<'a, T>>,
    kspace: Option<Results<'a, Complex<T>>>,
    motion: Option<Results<'a, f64>>,
}

impl<T: crate::Real> Default for Room<'_, T> {
    fn default() -> Self {
        Room { x: None, y: None, weights: None, kspace: None, motion: None }
    }
}

impl<T: crate::Real> Room<'_, T> {
    /// Writes the arrays. [`Corrected::new`] has checked the numbers.
    fn fill(self, corrected: &Corrected<T>) -> Result<()> {
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
            let numbers =
                |m: &BladeMotion| [m.rotation, m.translation[0], m.translation[1], m.phase, m.correlation, m.weight];
            let numbers = corrected.motion.iter().flat_map(numbers);
            to.deliver(&try_collect(NUMBERS * corrected.motion.len(), "the motion of blades", numbers)?)?;
        }
        Ok(())
    }
}
