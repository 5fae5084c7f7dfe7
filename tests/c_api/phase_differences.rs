//! Differences of phases.

use crate::support::*;
use std::f64::consts::{PI, TAU};

const MAXWELL: [f64; 4] = [3.0, -2.0, 5.0, 1.5];

const ORIGIN: [f64; 3] = [-120.0, -90.0, 40.0];

/// Steps along x, y and z, of an oblique plane.
const STEPS: [f64; 9] = [8.0, 0.0, 6.0, 0.0, 9.0, 0.0, -6.0, 0.0, 8.0];

/// Returns the velocity of each voxel and frame in double precision, by the formulas of the header.
fn expected(a: &[Complex<f64>], b: &[Complex<f64>], venc: f64) -> Vec<f64> {
    let mut all = Vec::new();
    for frame in 0..FRAMES {
        for i in 0..VOXELS {
            let at = |image: &[Complex<f64>], c: usize| image[(frame * COILS + c) * VOXELS + i];
            let sum: Complex<f64> = (0..COILS).map(|c| at(a, c) * at(b, c).conj()).sum();
            let index = [(i % N[0]) as f64, (i / N[0]) as f64];
            let [x, y, z] = [0, 1, 2].map(|k| (ORIGIN[k] + index[0] * STEPS[k] + index[1] * STEPS[3 + k]) / 1000.0);
            let [c0, c1, c2, c3] = MAXWELL;
            let phase = sum.arg() + TAU * (c0 * z * z + c1 * (x * x + y * y) + c2 * x * z + c3 * y * z);
            all.push(venc / PI * (phase - TAU * (phase / TAU).round()));
        }
    }
    all
}

#[test]
fn velocities_follow_the_formulas_of_the_header() {
    let s = Scene::<f64>::new();
    let g = s.geometry();
    let reference: Vec<_> = s.image.iter().rev().map(|z| z * Complex::new(0.3, 0.9)).collect();
    let at = |array: &[Complex<f64>]| -> *const c_void { array.as_ptr().cast() };
    let mut out = vec![POISON; VOXELS * FRAMES];
    let to: *mut c_void = out.as_mut_ptr().cast();
    let (m, o, steps) = (MAXWELL.as_ptr(), ORIGIN.as_ptr(), STEPS.as_ptr());
    // SAFETY: arrays have the lengths documented.
    unsafe { ok(recon_phase_difference(&raw const g, s.image_at(), at(&reference), 150.0, m, o, steps, to)) };
    for (i, (value, expected)) in out.iter().zip(expected(&s.image, &reference, 150.0)).enumerate() {
        let distance = value - expected;
        // Both ends of the range are the same phase.
        assert!((distance - 300.0 * (distance / 300.0).round()).abs() < 1e-9, "voxel {i}: {value}, {expected}");
    }
    // These phases are random.
    let found = warnings();
    assert_eq!((found.len(), found[0].0), (FRAMES, recon_warning::RECON_WARNING_WRAPS as u32), "{found:?}");

    // Without maxwell and venc, the phase of the Rust function.
    // SAFETY: as above.
    unsafe {
        let none = null();
        ok(recon_phase_difference(&raw const g, s.image_at(), at(&reference), 0.0, none, none, none, to));
    }
    let frame = VOXELS * COILS;
    for (f, out) in out.chunks(VOXELS).enumerate() {
        let (a, b) = (&s.image[f * frame..][..frame], &reference[f * frame..][..frame]);
        let mut expected = vec![POISON; VOXELS];
        recon::phase_difference(a, b, &N, COILS, &recon::PhaseDifferenceOptions::default(), &mut expected).unwrap();
        same(out, &expected);
    }
}

#[test]
fn errors_leave_the_output_unchanged() {
    let s = Scene::<f32>::new();
    let g = s.geometry();
    let a = s.image_at();
    let mut out = vec![POISON as f32; VOXELS * FRAMES];
    let to: *mut c_void = out.as_mut_ptr().cast();
    let mut bad = s.image.clone();
    // The bad value is in the second frame. The first frame must not be written either.
    bad[VOXELS * COILS + 5].im = f32::NAN;
    let bad: *const c_void = bad.as_ptr().cast();
    let magnitudes: Vec<_> = s.image.iter().map(|z| Complex::new(z.norm(), 0.0)).collect();
    let magnitudes: *const c_void = magnitudes.as_ptr().cast();
    let (m, o, steps, none) = (MAXWELL.as_ptr(), ORIGIN.as_ptr(), STEPS.as_ptr(), null());
    let far = [0.0, 0.0, 2500.0];
    let infinite = [1.0, f64::INFINITY, 0.0, 0.0];
    let list = recon_geometry { voxel_count: VOXELS as u64, ..g };
    let empty = recon_geometry { frames: 0, ..g };
    let number = recon_geometry { precision: 7, ..g };
    // SAFETY: arrays have the lengths documented.
    unsafe {
        let call = |g: &recon_geometry, a, b, venc| recon_phase_difference(g, a, b, venc, none, none, none, to);
        fails(call(&g, a, bad, 0.0), RECON_NOT_FINITE, &["reference voxel 5 "]);
        fails(call(&g, bad, a, 0.0), RECON_NOT_FINITE, &["image voxel 5 "]);
        fails(call(&g, null(), a, 0.0), RECON_NULL_POINTER, &["images"]);
        fails(call(&g, a, null(), 0.0), RECON_NULL_POINTER, &["reference"]);
        fails(call(&g, a, to, 0.0), RECON_INVALID_ARGUMENT, &["overlap"]);
        fails(call(&g, a, a, -150.0), RECON_INVALID_ARGUMENT, &["venc is -150", "positive"]);
        fails(call(&g, a, a, f64::NAN), RECON_INVALID_ARGUMENT, &["venc is NaN"]);
        fails(call(&g, magnitudes, magnitudes, 0.0), RECON_INVALID_ARGUMENT, &["no phase"]);
        fails(call(&list, a, a, 0.0), RECON_UNSUPPORTED, &["list"]);
        fails(call(&empty, a, a, 0.0), RECON_INVALID_SIZE, &["0 frames"]);
        fails(call(&number, a, a, 0.0), RECON_UNKNOWN_VALUE, &["precision is 7"]);
        let g = &raw const g;
        fails(recon_phase_difference(null(), a, a, 0.0, none, none, none, to), RECON_NULL_POINTER, &["geometry"]);
        let nowhere = recon_phase_difference(g, a, a, 0.0, none, none, none, null_mut());
        fails(nowhere, RECON_NULL_POINTER, &["difference"]);
        let maxwell = |m, o, steps| recon_phase_difference(g, a, a, 0.0, m, o, steps, to);
        fails(maxwell(m, none, steps), RECON_NULL_POINTER, &["origin"]);
        fails(maxwell(m, o, none), RECON_NULL_POINTER, &["steps"]);
        fails(maxwell(none, o, none), RECON_INVALID_ARGUMENT, &["without maxwell"]);
        fails(maxwell(none, none, steps), RECON_INVALID_ARGUMENT, &["without maxwell"]);
        fails(maxwell(m, far.as_ptr(), steps), RECON_INVALID_ARGUMENT, &["[0, 0, 0]", "2500 mm"]);
        fails(maxwell(infinite.as_ptr(), o, steps), RECON_NOT_FINITE, &["coefficient 1", "inf"]);
    }
    assert!(out.iter().all(|&x| x == POISON as f32), "an output was written");
}
