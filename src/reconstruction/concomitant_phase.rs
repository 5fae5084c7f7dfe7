//! The phase of concomitant fields (Maxwell terms) in the difference of two velocity encodings.
//!
//! A gradient that encodes velocity is accompanied by fields across it, which grow with the square of the distance from
//! the isocentre. If the gradients of the two encodings differ, these fields leave a phase in the difference (Bernstein
//! et al., Magn. Reson. Med. 39:300, 1998):
//!
//! phi(x, y, z) = 2 pi (A z^2 + B (x^2 + y^2) + C x z + D y z)
//!
//! x, y and z are the gradients' axes, z along the main field, in metres from the isocentre. A to D are in cycles per
//! square metre. The converter of one vendor's data writes them into ISMRMRD's header as the user parameters
//! `MaxwellCoefficient_0` to `MaxwellCoefficient_3`, in this order, scaled such that phi is added to the difference of
//! phases. Gadgetron's MaxwellCorrectionGadget uses them with the same units and sign.

use crate::base::error::{bail, Result};
use std::f64::consts::TAU;

/// Largest distance from the isocentre in mm. No scanner images further out, so positions beyond it have a wrong unit.
const MAX_DISTANCE_MM: f64 = 2000.0;

/// Names of the coefficients in ISMRMRD's header, without their number.
const PARAMETER: &str = "MaxwellCoefficient_";

/// The number of coefficients of the quadratic terms.
const TERMS: usize = 4;

/// The phase that concomitant fields leave in a difference of phases, on the voxels of an image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConcomitantPhase {
    /// A, B, C and D in cycles per square metre: the factors of z^2, x^2 + y^2, x z and y z.
    coefficients: [f64; TERMS],
    /// The position of the voxel with index 0 on all axes, in mm from the isocentre, along the gradients' axes.
    origin_mm: [f64; 3],
    /// The steps from voxel to voxel along the image's axes x, y and z, in mm along the gradients' axes.
    steps_mm: [[f64; 3]; 3],
}

/// The place of an image in the patient: positions and directions in the patient's coordinates (LPS: x to the left, y
/// to the back, z to the head).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImagePosition {
    /// The position of the voxel with index floor(n/2) on every axis, in mm from the isocentre.
    pub centre_mm: [f64; 3],
    /// The directions of increasing x, y and z index: unit vectors.
    pub directions: [[f64; 3]; 3],
    /// The distances of voxels along x, y and z, in mm.
    pub voxel_mm: [f64; 3],
    /// The numbers of voxels along x, y and z.
    pub dims: [usize; 3],
}

impl ConcomitantPhase {
    /// Returns the phase for coefficients in cycles per square metre, and for positions in mm along the gradients'
    /// axes. `origin_mm` is the position of the voxel with index 0 on all axes. `steps_mm` has the steps from voxel to
    /// voxel along the image's x, y and z.
    ///
    /// # Errors
    /// `NotFinite` for a coefficient, position or step that is not finite.
    pub fn new(coefficients: [f64; TERMS], origin_mm: [f64; 3], steps_mm: [[f64; 3]; 3]) -> Result<ConcomitantPhase> {
        if let Some(i) = coefficients.iter().position(|value| !value.is_finite()) {
            let value = coefficients[i];
            bail!(NotFinite, "coefficient {i} of concomitant fields is {value}: give cycles per square metre");
        }
        let mut positions = origin_mm.iter().chain(steps_mm.iter().flatten());
        if let Some(value) = positions.find(|value| !value.is_finite()) {
            bail!(NotFinite, "a position or step of concomitant fields is {value}: give mm from the isocentre");
        }
        Ok(ConcomitantPhase { coefficients, origin_mm, steps_mm })
    }

    /// Returns the phase for an image in the patient. `patient_position` is the patient's position in the scanner as
    /// DICOM and ISMRMRD write it, such as `HFS` ([`gradient_axes`]).
    ///
    /// # Errors
    /// The errors of [`ConcomitantPhase::new`] and [`gradient_axes`].
    pub fn of_image(
        coefficients: [f64; TERMS],
        image: &ImagePosition,
        patient_position: &str,
    ) -> Result<ConcomitantPhase> {
        let axes = gradient_axes(patient_position)?;
        let turn = |v: [f64; 3]| axes.map(|axis| axis[0] * v[0] + axis[1] * v[1] + axis[2] * v[2]);
        let steps: [[f64; 3]; 3] = [0, 1, 2].map(|i| turn(image.directions[i].map(|d| d * image.voxel_mm[i])));
        let centre = turn(image.centre_mm);
        let before = image.dims.map(|n| (n / 2) as f64);
        let origin = [0, 1, 2].map(|a| centre[a] - (0..3).map(|i| before[i] * steps[i][a]).sum::<f64>());
        ConcomitantPhase::new(coefficients, origin, steps)
    }

    /// Returns the phase of a voxel in radians, not wrapped.
    pub fn radians(&self, index: [usize; 3]) -> f64 {
        let [x, y, z] = self.position_mm(index).map(|mm| mm / 1000.0);
        let [a, b, c, d] = self.coefficients;
        TAU * (a * z * z + b * (x * x + y * y) + c * x * z + d * y * z)
    }

    /// Returns the position of a voxel in mm from the isocentre, along the gradients' axes.
    fn position_mm(&self, index: [usize; 3]) -> [f64; 3] {
        [0, 1, 2].map(|a| self.origin_mm[a] + (0..3).map(|i| index[i] as f64 * self.steps_mm[i][a]).sum::<f64>())
    }

    /// Checks that all voxels of an image are where a scanner can measure them.
    ///
    /// # Errors
    /// `InvalidArgument` with the corner that is too far out.
    pub(crate) fn check_distances(&self, dims: [usize; 3]) -> Result<()> {
        for corner in 0..8 {
            let index = [0, 1, 2].map(|axis| if corner >> axis & 1 == 1 { dims[axis].saturating_sub(1) } else { 0 });
            let position = self.position_mm(index);
            let distance = position.iter().map(|p| p * p).sum::<f64>().sqrt();
            if distance.is_nan() || distance > MAX_DISTANCE_MM {
                bail!(
                    InvalidArgument,
                    "voxel {index:?} is {distance:.0} mm from the isocentre, but concomitant fields are computed up to \
                     {MAX_DISTANCE_MM} mm: give positions and steps in mm from the isocentre"
                );
            }
        }
        Ok(())
    }
}

/// Returns the directions of the gradients' axes x, y and z in the patient's coordinates (LPS), for the patient's
/// position in the scanner. For `HFS`, the head first and supine: x to the left, y to the front, z to the feet.
///
/// # Errors
/// `InvalidArgument` for a position other than HFS, HFP, HFDR, HFDL, FFS, FFP, FFDR and FFDL.
pub fn gradient_axes(patient_position: &str) -> Result<[[f64; 3]; 3]> {
    // z leaves the bore towards the end at which the patient enters; y is upwards. With the head first, z thus points
    // to the feet. x completes a right-handed system.
    let axes: [[i8; 3]; 3] = match patient_position {
        "HFS" => [[1, 0, 0], [0, -1, 0], [0, 0, -1]],
        "HFP" => [[-1, 0, 0], [0, 1, 0], [0, 0, -1]],
        "HFDR" => [[0, 1, 0], [1, 0, 0], [0, 0, -1]],
        "HFDL" => [[0, -1, 0], [-1, 0, 0], [0, 0, -1]],
        "FFS" => [[-1, 0, 0], [0, -1, 0], [0, 0, 1]],
        "FFP" => [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        "FFDR" => [[0, -1, 0], [1, 0, 0], [0, 0, 1]],
        "FFDL" => [[0, 1, 0], [-1, 0, 0], [0, 0, 1]],
        other => bail!(
            InvalidArgument,
            "the patient's position in the scanner is {other:?}: concomitant fields need one of HFS, HFP, HFDR, HFDL, \
             FFS, FFP, FFDR and FFDL"
        ),
    };
    Ok(axes.map(|axis| axis.map(f64::from)))
}

/// The coefficients of concomitant fields in a header.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MaxwellCoefficients {
    /// A, B, C and D in cycles per square metre.
    pub coefficients: [f64; TERMS],
    /// Number of the first further coefficient that is not 0, whose meaning is unknown; `None` if all are 0.
    pub unknown_term: Option<usize>,
}

/// Returns the coefficients among the user parameters of ISMRMRD's header, (name, value), or `None` if the header does
/// not have them.
///
/// # Errors
/// `BadFile` if the header has some of the four coefficients, one of them twice, or one that is not finite.
pub fn maxwell_coefficients<'a>(
    parameters: impl IntoIterator<Item = (&'a str, f64)>,
) -> Result<Option<MaxwellCoefficients>> {
    let mut found = [None; TERMS];
    let mut unknown_term: Option<usize> = None;
    for (name, value) in parameters {
        let Some(number) = name.strip_prefix(PARAMETER).and_then(|number| number.parse::<usize>().ok()) else {
            continue;
        };
        if !value.is_finite() {
            bail!(BadFile, "the XML header: {name} is {value}: correct it, or remove all {PARAMETER}*");
        }
        match found.get_mut(number) {
            Some(Some(_)) => bail!(BadFile, "the XML header has {name} twice: keep one of them"),
            Some(place) => *place = Some(value),
            None if value != 0.0 => unknown_term = Some(unknown_term.map_or(number, |n| n.min(number))),
            None => {}
        }
    }
    if found == [None; TERMS] && unknown_term.is_none() {
        return Ok(None);
    }
    let mut coefficients = [0.0; TERMS];
    for (i, value) in found.iter().enumerate() {
        let Some(value) = value else {
            bail!(
                BadFile,
                "the XML header has some {PARAMETER}*, but not {PARAMETER}{i}: concomitant fields need 0 to 3; add it, \
                 or remove the others"
            );
        };
        coefficients[i] = *value;
    }
    Ok(Some(MaxwellCoefficients { coefficients, unknown_term }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;

    #[test]
    fn axes_are_right_handed_and_follow_the_patient() {
        for name in ["HFS", "HFP", "HFDR", "HFDL", "FFS", "FFP", "FFDR", "FFDL"] {
            let [x, y, z] = gradient_axes(name).unwrap();
            let cross = [x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]];
            assert_eq!(cross, z, "{name}");
            // Upwards is the front of a supine patient, the back of a prone one, and the side that is not below.
            let up = match &name[2..] {
                "S" => [0.0, -1.0, 0.0],
                "P" => [0.0, 1.0, 0.0],
                // The patient lies on the right side: the left side is above.
                "DR" => [1.0, 0.0, 0.0],
                _ => [-1.0, 0.0, 0.0],
            };
            assert_eq!(y, up, "{name}");
            assert_eq!(z, [0.0, 0.0, if name.starts_with('H') { -1.0 } else { 1.0 }], "{name}");
        }
        for bad in ["", "hfs", "HFX", "LFS"] {
            let e = gradient_axes(bad).unwrap_err();
            assert!(e.kind() == ErrorKind::InvalidArgument && e.message().contains("HFS"), "{bad}: {e}");
        }
    }

    #[test]
    fn coefficients_are_complete_or_an_error() {
        let read = |list: &[(&'static str, f64)]| maxwell_coefficients(list.iter().copied());
        assert_eq!(read(&[("Flow_Dir", 4.0), ("MaxwellCoefficients", 2.0)]).unwrap(), None);
        let four = [("MaxwellCoefficient_2", 3.0), ("MaxwellCoefficient_0", 1.0), ("MaxwellCoefficient_3", -4.0)];
        let mut all = four.to_vec();
        all.extend([("MaxwellCoefficient_1", 2.0), ("MaxwellCoefficient_4", 0.0)]);
        let coefficients = [1.0, 2.0, 3.0, -4.0];
        assert_eq!(read(&all).unwrap(), Some(MaxwellCoefficients { coefficients, unknown_term: None }));
        all.extend([("MaxwellCoefficient_9", 0.5), ("MaxwellCoefficient_7", 0.5)]);
        assert_eq!(read(&all).unwrap().unwrap().unknown_term, Some(7));
        let fails = |list: &[(&'static str, f64)], word: &str| {
            let e = read(list).unwrap_err();
            assert!(e.kind() == ErrorKind::BadFile && e.message().contains(word), "{e}");
        };
        fails(&four, "not MaxwellCoefficient_1");
        fails(&[("MaxwellCoefficient_9", 0.5)], "not MaxwellCoefficient_0");
        all.push(("MaxwellCoefficient_2", 3.0));
        fails(&all, "MaxwellCoefficient_2 twice");
        fails(&[("MaxwellCoefficient_0", f64::NAN)], "MaxwellCoefficient_0 is NaN");
    }
}
