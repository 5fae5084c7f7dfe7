//! The difference of the phases of two images, and velocity from it.
//!
//! A bipolar gradient gives moving spins a phase proportional to their velocity. Two acquisitions with different
//! gradients have the same phase otherwise, so that the difference of their phases is the velocity (phase contrast;
//! Nayler et al., J. Comput. Assist. Tomogr. 10:715, 1986). The coils' phases cancel in the sum over coils of
//! a_c conj(b_c), which weighs each coil by its signal (Bernstein et al., Magn. Reson. Med. 32:330, 1994).

use super::concomitant_phase::ConcomitantPhase;
use crate::base::error::{bail, checked_product, try_vec, Result};
use crate::base::float_mode::FloatMode;
use crate::base::geometry::{check_finite, check_len};
use crate::base::real::Real;
use crate::base::results::check_results;
use crate::base::sizes::three_axes;
use crate::base::warning::{raise, WarningKind};
use num_complex::Complex;
use std::f64::consts::{PI, TAU};

/// Signal of a voxel, relative to the largest, below which a jump of the phase to a neighbour is not counted: noise
/// alone causes jumps.
const LEAST_SIGNAL: f64 = 0.1;

/// Unit and correction of a difference of phases.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PhaseDifferenceOptions {
    /// The velocity that causes a difference of pi, positive, in any unit; the result is a velocity in this unit.
    /// `None`: the result is the phase in radians.
    pub venc: Option<f64>,
    /// The phase of concomitant fields, which is added to the difference. `None`: no correction.
    pub concomitant: Option<ConcomitantPhase>,
}

/// Computes the phase of `images` minus the phase of `reference`, [dims], from coil images or combined images
/// [dims, coils].
///
/// It is the phase of sum_c a_c conj(b_c), in [-pi, pi). With `venc`, the result is the velocity phase * venc / pi, in
/// [-venc, venc).
///
/// The result is 0 if that sum is 0, for example in voxels without signal. Do not combine coil images by the root of
/// the sum of squares, which loses the phase. Coil maps that combine them must be the same for both images.
///
/// If neighbouring voxels with signal differ by more than pi, there is a warning (`WarningKind::Wraps`): the velocity
/// may exceed `venc`.
///
/// # Errors
/// The output is unchanged after an error:
/// - `SizeMismatch` for wrong lengths, `InvalidSize` for empty images or more than three axes.
/// - `NotFinite` for a NaN, with its index.
/// - `InvalidArgument` for a `venc` that is not positive, for voxels more than 2 m from the isocentre, and for two
///   images that are magnitudes.
pub fn phase_difference<T: Real>(
    images: &[Complex<T>],
    reference: &[Complex<T>],
    dims: &[usize],
    coils: usize,
    options: &PhaseDifferenceOptions,
    out: &mut [T],
) -> Result<()> {
    let _mode = FloatMode::standard();
    let voxels = checked_product(dims, "the image")?;
    if voxels == 0 || coils == 0 || dims.len() > 3 {
        bail!(InvalidSize, "{coils} coil images of {dims:?} voxels: give at least one image, voxel, and up to 3 axes");
    }
    let needed = checked_product(&[voxels, coils], "the coil images")?;
    check_len("voxels of images", images.len(), needed, "voxels times coils")?;
    check_len("voxels of the reference", reference.len(), needed, "voxels times coils")?;
    check_len("voxels of the phase difference", out.len(), voxels, "one per voxel")?;
    let limit = T::of(options.venc.unwrap_or(PI));
    if !limit.finite() || limit <= T::ZERO {
        bail!(
            InvalidArgument,
            "venc is {}: it must be the positive velocity that causes a phase of pi",
            options.venc.unwrap_or(PI)
        );
    }
    check_finite("image voxel", images)?;
    check_finite("reference voxel", reference)?;
    let is_magnitude = |image: &[Complex<T>]| image.iter().all(|z| z.im == T::ZERO && z.re >= T::ZERO);
    let has_signal = images.iter().any(|z| z.re != T::ZERO || z.im != T::ZERO);
    if has_signal && is_magnitude(images) && is_magnitude(reference) {
        bail!(
            InvalidArgument,
            "both images are real and non-negative, so they have no phase: give coil images, or combine them in a way \
             that keeps the phase, with the same coil maps for both"
        );
    }
    let dims = three_axes(dims);
    if let Some(concomitant) = &options.concomitant {
        concomitant.check_distances(dims)?;
    }
    let mut phases = try_vec(voxels, 0.0, "the phase difference")?;
    let mut signals = try_vec(voxels, 0.0, "the signal of voxels")?;
    for (i, (phase, signal)) in phases.iter_mut().zip(&mut signals).enumerate() {
        (*phase, *signal) = difference(images, reference, i, voxels);
        if let Some(concomitant) = options.concomitant.as_ref().filter(|_| *signal > 0.0) {
            let index = [i % dims[0], i / dims[0] % dims[1], i / (dims[0] * dims[1])];
            *phase = wrap(*phase + concomitant.radians(index));
        }
    }
    let mut result = try_vec(voxels, T::ZERO, "the phase difference")?;
    for (out, &phase) in result.iter_mut().zip(&phases) {
        let value = T::of(phase * (options.venc.unwrap_or(PI) / PI));
        // Rounding may reach the upper end, which is not part of the range.
        *out = if value >= limit { -limit } else { value };
    }
    check_results("voxel of the phase difference", &result)?;
    warn_of_wraps(&phases, &signals, dims, options.venc);
    out.copy_from_slice(&result);
    Ok(())
}

/// Returns the phase of sum_c a_c conj(b_c) of a voxel in [-pi, pi), and the signal: the root of that sum's magnitude.
/// Both are 0 if the sum is 0.
fn difference<T: Real>(images: &[Complex<T>], reference: &[Complex<T>], voxel: usize, voxels: usize) -> (f64, f64) {
    let coils = |array: &[Complex<T>]| {
        let of_voxel = array.iter().skip(voxel).step_by(voxels);
        of_voxel.fold(0.0, |most: f64, z| most.max(z.re.wide().abs()).max(z.im.wide().abs()))
    };
    // Each image is divided by its largest component, so that no product overflows or vanishes.
    let (a, b) = (coils(images), coils(reference));
    if a == 0.0 || b == 0.0 {
        return (0.0, 0.0);
    }
    let pairs = images.iter().zip(reference).skip(voxel).step_by(voxels);
    let scaled = |z: Complex<T>, scale: f64| Complex::new(z.re.wide() / scale, z.im.wide() / scale);
    let sum: Complex<f64> = pairs.map(|(&x, &y)| scaled(x, a) * scaled(y, b).conj()).sum();
    if sum == Complex::default() {
        return (0.0, 0.0);
    }
    (wrap(sum.arg()), sum.norm().sqrt() * a.sqrt() * b.sqrt())
}

/// Returns a phase in [-pi, pi) that differs by a multiple of 2 pi.
fn wrap(phase: f64) -> f64 {
    if (-PI..PI).contains(&phase) {
        return phase;
    }
    let wrapped = phase - TAU * ((phase + PI) / TAU).floor();
    // Rounding may reach the upper end.
    if wrapped >= PI {
        -PI
    } else {
        wrapped.max(-PI)
    }
}

/// Warns of neighbouring voxels with signal whose phases differ by more than pi.
fn warn_of_wraps(phases: &[f64], signals: &[f64], dims: [usize; 3], venc: Option<f64>) {
    let least = LEAST_SIGNAL * signals.iter().fold(0.0, |a: f64, &b| a.max(b));
    let has_signal = |i: usize| signals[i] > 0.0 && signals[i] >= least;
    let steps = [1, dims[0], dims[0] * dims[1]];
    let mut jumps = 0usize;
    for i in (0..phases.len()).filter(|&i| has_signal(i)) {
        for axis in 0..3 {
            if i / steps[axis] % dims[axis] + 1 < dims[axis] {
                let next = i + steps[axis];
                jumps += usize::from(has_signal(next) && (phases[i] - phases[next]).abs() > PI);
            }
        }
    }
    if jumps == 0 {
        return;
    }
    let cause = match venc {
        Some(venc) => format!("{jumps} pairs of neighbouring voxels differ by more than venc, {venc}"),
        None => format!("{jumps} pairs of neighbouring voxels differ by more than pi"),
    };
    raise(
        WarningKind::Wraps,
        format!(
            "{cause}: the velocity may exceed the range of the encoding, and then has the wrong sign there. Measure \
             with a larger venc, or unwrap the result"
        ),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::warning::capture;

    #[test]
    fn phases_stay_in_the_half_open_range() {
        for (phase, expected) in [(0.0, 0.0), (PI, -PI), (-PI, -PI), (1.5 * PI, -0.5 * PI), (-7.0 * PI, -PI)] {
            assert!((wrap(phase) - expected).abs() < 1e-14, "{phase}");
        }
        let near = f64::from_bits(PI.to_bits() - 1);
        assert_eq!((wrap(near), wrap(-near)), (near, -near));
        assert!((-PI..PI).contains(&wrap(near + TAU)) && (-PI..PI).contains(&wrap(-near - TAU)));
        // The largest f64 below pi rounds to the f32 of pi, which is the end of the range.
        let (images, reference) = ([Complex::new(-1.0f32, 1e-9)], [Complex::new(1.0f32, 0.0)]);
        for (venc, expected) in [(None, -std::f32::consts::PI), (Some(1.5), -1.5)] {
            let mut out = [f32::NAN];
            let options = PhaseDifferenceOptions { venc, concomitant: None };
            phase_difference(&images, &reference, &[1, 1], 1, &options, &mut out).unwrap();
            assert_eq!(out, [expected]);
        }
    }

    #[test]
    fn jumps_between_voxels_with_signal_cause_a_warning() {
        let warnings = |phases: [f64; 4], last: f64, venc| {
            let image = phases.map(|p| Complex::from_polar(1.0, p));
            let mut reference = [Complex::new(1.0, 0.0); 4];
            reference[3] *= last;
            let options = PhaseDifferenceOptions { venc, concomitant: None };
            let mut out = [f64::NAN; 4];
            let call = || phase_difference(&image, &reference, &[2, 2], 1, &options, &mut out).unwrap();
            capture(call).1
        };
        // In an image of two columns, voxels 1 and 2 are not neighbours.
        assert!(warnings([0.0, 2.0, -2.0, 0.0], 1.0, None).is_empty());
        let found = warnings([0.0, 2.0, 0.5, -2.0], 1.0, None);
        assert_eq!((found.len(), found[0].kind), (1, WarningKind::Wraps));
        assert!(found[0].message.starts_with("1 pairs of neighbouring voxels differ by more than pi"), "{found:?}");
        assert!(warnings([0.0, 2.0, 0.5, -2.0], 1.0, Some(150.0))[0].message.contains("more than venc, 150"));
        // The signal is the geometric mean of both images: 0.07 of the largest.
        assert!(warnings([0.0, 2.0, 0.5, -2.0], 0.005, None).is_empty());
    }
}
