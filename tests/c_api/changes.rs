//! Changes of plans, and their warnings.

use crate::support::*;

/// Returns the images of every reconstruction by a plan.
fn images_of<T: Number>(plan: &Handle, kspace: &[Complex<T>]) -> Vec<Vec<Complex<T>>> {
    let info = plan.info();
    assert_eq!(info.kspace_elements as usize, kspace.len());
    let mut images = vec![poisoned::<T>(info.image_elements as usize); 4];
    let mut out = images.iter_mut().map(|image| image.as_mut_ptr().cast());
    let kspace = kspace.as_ptr().cast();
    // SAFETY: arrays have the lengths documented.
    unsafe {
        ok(recon_fhd(plan.0, kspace, out.next().unwrap()));
        ok(recon_weighted_fhd(plan.0, kspace, out.next().unwrap()));
        ok(recon_grid(plan.0, kspace, out.next().unwrap()));
        ok(recon_cg(plan.0, kspace, out.next().unwrap(), null(), null_mut()));
    }
    images
}

fn changed_plans_equal_new_ones<T: Number>() {
    let s = Scene::<T>::new();
    let o = options(|o| o.normal = recon_normal_operator::RECON_NORMAL_TOEPLITZ as u32);
    let new = |g: &recon_geometry, kspace: &[Complex<T>]| images_of(&Handle::new(g, &o), kspace);
    let plan = Handle::new(&s.combined(), &o);
    images_of(&plan, &s.kspace);
    // The first half of the spokes: the same structure with new addresses and a new number of samples.
    let half = SAMPLES / 2;
    let data = &s.kspace[..half * COILS * FRAMES];
    let mut g = s.combined();
    g.samples = half as u64;
    let mut weights = [T::of(0.25); SAMPLES];
    let mut maps = s.maps.clone();
    maps.iter_mut().enumerate().for_each(|(i, z)| *z *= T::of(1.0 + (i % 5) as f64));
    // SAFETY: arrays have the lengths documented.
    unsafe {
        ok(recon_plan_set_trajectory(plan.0, &raw const g));
        assert_eq!(images_of(&plan, data), new(&g, data));
        // Without maps, the plan keeps its own. Missing weights are an error if the plan has weights.
        let own = recon_geometry { weights: null(), ..g };
        fails(recon_plan_set_trajectory(plan.0, &raw const own), RECON_INVALID_ARGUMENT, &["density weights"]);
        assert_eq!(images_of(&plan, data), new(&g, data));
        ok(recon_plan_set_weights(plan.0, null(), 0));
        ok(recon_plan_set_trajectory(plan.0, &recon_geometry { coil_maps: null(), ..own }));
        assert_eq!(images_of(&plan, data), new(&own, data));
        ok(recon_plan_set_coil_maps(plan.0, maps.as_ptr().cast(), maps.len() as u64));
        g.coil_maps = maps.as_ptr().cast();
        assert_eq!(images_of(&plan, data), new(&recon_geometry { weights: null(), ..g }, data));
        ok(recon_plan_set_weights(plan.0, weights.as_ptr().cast(), half as u64));
        g.weights = weights.as_ptr().cast();
        assert_eq!(images_of(&plan, data), new(&g, data));
        // The caller's arrays may be overwritten after the call.
        weights.fill(T::of(f64::NAN));
        images_of(&plan, data);
        ok(recon_plan_set_weights(plan.0, null(), 0));
        g.weights = null();
        assert_eq!(images_of(&plan, data), new(&g, data));
        // Interleaved coordinates, and density weights for the new number of samples.
        let both: Vec<T> = s.k[0].iter().zip(&s.k[1]).flat_map(|(x, y)| [*x, *y]).collect();
        let mut g = s.combined();
        g.coordinates = [both.as_ptr().cast(), both[1..].as_ptr().cast(), null()];
        g.coordinate_stride = 2;
        ok(recon_plan_set_trajectory(plan.0, &raw const g));
        assert_eq!(images_of(&plan, &s.kspace), new(&g, &s.kspace));
        let (mut found, mut wanted) = (vec![T::ZERO; SAMPLES], vec![T::ZERO; SAMPLES]);
        ok(recon_density(plan.0, 2, 0, 0.0, found.as_mut_ptr().cast()));
        ok(recon_density(Handle::new(&g, &o).0, 2, 0, 0.0, wanted.as_mut_ptr().cast()));
        same(&found, &wanted);
    }
}

#[test]
fn changed_plans_equal_new_ones_in_both_precisions() {
    changed_plans_equal_new_ones::<f32>();
    changed_plans_equal_new_ones::<f64>();
}

#[test]
fn implausible_changes_are_refused() {
    let s = Scene::<f64>::new();
    let plan = Handle::new(&s.weighted(), &options(|_| ()));
    let combined = Handle::new(&s.combined(), &options(|_| ()));
    let before = images_of(&plan, &s.kspace);
    let g = s.weighted();
    let refused = |g: recon_geometry, status: recon_status, words: &[&str]| {
        // SAFETY: errors of the structure are found before its pointers are used.
        fails(unsafe { recon_plan_set_trajectory(plan.0, &raw const g) }, status, words);
    };
    refused(recon_geometry { precision: 0, ..g }, RECON_INVALID_ARGUMENT, &["single precision", "double", "new plan"]);
    refused(recon_geometry { precision: 9, ..g }, RECON_UNKNOWN_VALUE, &["precision"]);
    refused(recon_geometry { ndim: 4, ..g }, RECON_INVALID_SIZE, &["ndim"]);
    refused(recon_geometry { dims: [24, 21, 0], ..g }, RECON_SIZE_MISMATCH, &["[24, 21]", "[24, 20]"]);
    refused(recon_geometry { coils: 1, ..g }, RECON_SIZE_MISMATCH, &["1 coils", "3"]);
    refused(recon_geometry { frames: 1, ..g }, RECON_SIZE_MISMATCH, &["1 frames", "2"]);
    refused(recon_geometry { basis: 1, ..g }, RECON_INVALID_ARGUMENT, &["basis"]);
    refused(recon_geometry { basis: 7, ..g }, RECON_UNKNOWN_VALUE, &["basis"]);
    refused(recon_geometry { samples: 0, ..g }, RECON_INVALID_SIZE, &["no samples"]);
    refused(recon_geometry { struct_size: 3, ..g }, RECON_UNKNOWN_STRUCT_SIZE, &["struct_size"]);
    refused(recon_geometry { coordinates: [g.coordinates[0], null(), null()], ..g }, RECON_NULL_POINTER, &["[1]"]);
    let coil_maps = s.maps.as_ptr().cast();
    refused(recon_geometry { coil_maps, ..g }, RECON_INVALID_ARGUMENT, &["without", "new plan"]);
    refused(recon_geometry { voxels: g.coordinates, voxel_count: 9, ..g }, RECON_INVALID_ARGUMENT, &["list of voxels"]);
    let (map, times) = (vec![0.0f32; VOXELS], vec![0.0f32; SAMPLES]);
    let with_map = recon_geometry { field_map: map.as_ptr().cast(), times: times.as_ptr().cast(), ..g };
    refused(with_map, RECON_INVALID_ARGUMENT, &["a field map", "none"]);
    let mut odd = s.k[1].clone();
    odd[5] = 0.75;
    let coordinates = [g.coordinates[0], odd.as_ptr().cast(), null()];
    refused(recon_geometry { coordinates, ..g }, RECON_COORDINATE_OUT_OF_RANGE, &["sample 5", "axis 1"]);
    let maps = || s.maps.as_ptr().cast();
    let (samples, elements) = (SAMPLES as u64, s.maps.len() as u64);
    // SAFETY: errors are found before more is read than exists.
    unsafe {
        fails(recon_plan_set_trajectory(null_mut(), &raw const g), RECON_NULL_POINTER, &["plan"]);
        fails(recon_plan_set_trajectory(plan.0, null()), RECON_NULL_POINTER, &["geometry"]);
        let w = s.weights.as_ptr().cast();
        fails(recon_plan_set_weights(null_mut(), w, samples), RECON_NULL_POINTER, &["plan"]);
        fails(recon_plan_set_weights(plan.0, null(), samples), RECON_NULL_POINTER, &["weights"]);
        fails(recon_plan_set_weights(plan.0, w, samples - 1), RECON_SIZE_MISMATCH, &["767", "768"]);
        fails(recon_plan_set_weights(plan.0, w, 0), RECON_SIZE_MISMATCH, &["0", "768"]);
        fails(recon_plan_set_weights(plan.0, s.k[0].as_ptr().cast(), samples), RECON_INVALID_ARGUMENT, &["negative"]);
        fails(recon_plan_set_coil_maps(null_mut(), maps(), elements), RECON_NULL_POINTER, &["plan"]);
        fails(recon_plan_set_coil_maps(combined.0, null(), elements), RECON_NULL_POINTER, &["maps"]);
        fails(recon_plan_set_coil_maps(plan.0, maps(), elements), RECON_INVALID_ARGUMENT, &["without", "new plan"]);
        fails(recon_plan_set_coil_maps(combined.0, maps(), elements - 1), RECON_SIZE_MISMATCH, &["1439", "1440"]);
        let misaligned = s.weights.as_ptr().cast::<u8>().add(4).cast();
        fails(recon_plan_set_weights(plan.0, misaligned, samples - 1), RECON_INVALID_ARGUMENT, &["multiple of 8"]);
    }
    assert_eq!(images_of(&plan, &s.kspace), before);
}

/// Replaces the trajectory of the plan in `user_data`.
unsafe extern "C" fn change_in_progress(p: *const recon_progress, user_data: *mut c_void) -> c_int {
    // SAFETY: the library's structure, and the test's plan and geometry.
    unsafe {
        if (*p).iteration == 1 {
            let (plan, g) = *user_data.cast::<(*mut recon_plan, *const recon_geometry)>();
            ok(recon_plan_set_trajectory(plan, g));
        }
    }
    0
}

#[test]
fn a_progress_callback_may_change_the_trajectory() {
    let s = Scene::<f32>::new();
    let plan = Handle::new(&s.combined(), &options(|_| ()));
    let wanted = images_of(&plan, &s.kspace).pop().unwrap();
    let half = recon_geometry { samples: SAMPLES as u64 / 2, ..s.combined() };
    let mut both = (plan.0, &raw const half);
    let mut c = init(recon_cg_options_init);
    c.progress = Some(change_in_progress);
    c.user_data = (&raw mut both).cast();
    let mut image = poisoned::<f32>(VOXELS * FRAMES);
    // SAFETY: arrays have the lengths documented.
    ok(unsafe { recon_cg(plan.0, s.kspace_at(), image.as_mut_ptr().cast(), &raw const c, null_mut()) });
    same(&image, &wanted);
    let data = &s.kspace[..s.kspace.len() / 2];
    assert_eq!(images_of(&plan, data), images_of(&Handle::new(&half, &options(|_| ())), data));
}

#[test]
fn warnings_of_a_plan_are_read() {
    let mut s = Scene::<f64>::new();
    let read = |plan: &Handle, index: u64| {
        let (mut kind, mut text) = (77, c"before".as_ptr());
        // SAFETY: the plan is alive, and the text is valid during its life.
        unsafe {
            ok(recon_plan_warning(plan.0, index, &raw mut kind, &raw mut text));
            (kind, (!text.is_null()).then(|| CStr::from_ptr(text).to_str().unwrap().to_owned()))
        }
    };
    assert_eq!(read(&Handle::new(&s.geometry(), &options(|_| ())), 0), (0, None));
    s.k.iter_mut().flatten().for_each(|k| *k /= 64.0);
    let plan = Handle::new(&s.geometry(), &options(|_| ()));
    let (kind, text) = read(&plan, 0);
    assert_eq!(kind, recon_warning::RECON_WARNING_EXTENT as u32);
    assert!(text.is_some_and(|t| t.contains("axis 0") && t.contains("divided by the image's size twice")));
    assert_eq!((read(&plan, 1), read(&plan, u64::MAX)), ((0, None), (0, None)));
    // Warnings are about the present trajectory of the plan.
    let good = Scene::<f64>::new();
    // SAFETY: plan, structure and arrays are alive.
    unsafe {
        ok(recon_plan_set_trajectory(plan.0, &good.geometry()));
        assert_eq!(read(&plan, 0), (0, None));
        ok(recon_plan_set_trajectory(plan.0, &s.geometry()));
    }
    assert_eq!(read(&plan, 0).0, recon_warning::RECON_WARNING_EXTENT as u32);
    let (mut kind, mut text) = (0, null());
    // SAFETY: null pointers are refused.
    unsafe {
        fails(recon_plan_warning(null(), 0, &raw mut kind, &raw mut text), RECON_NULL_POINTER, &["plan"]);
        fails(recon_plan_warning(plan.0, 0, null_mut(), &raw mut text), RECON_NULL_POINTER, &["kind"]);
        fails(recon_plan_warning(plan.0, 0, &raw mut kind, null_mut()), RECON_NULL_POINTER, &["text"]);
    }
}
