//! Coil matrices, and the combination and resizing of images.

use crate::support::*;

#[test]
fn warnings_of_the_last_call_are_read() {
    let s = Scene::<f32>::new();
    let mut matrix = poisoned::<f64>(COILS);
    let mut kept = 0;
    let to: *mut c_void = matrix.as_mut_ptr().cast();
    // SAFETY: arrays have the lengths documented.
    unsafe {
        let mut compress = |keep: u64| {
            let (samples, coils) = (SAMPLES as u64, COILS as u64);
            let status =
                recon_compression(0, s.kspace_at(), samples, coils, 1, keep, 0.0, to, &raw mut kept, null_mut());
            (status, warnings())
        };
        let (status, found) = compress(1);
        ok(status);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, recon_warning::RECON_WARNING_COMPRESSION as u32);
        assert!(found[0].1.contains("1 virtual coils of 3"), "{found:?}");
        // Reading warnings keeps them. A failed call and a different thread have their own warnings.
        assert_eq!(warnings(), found);
        std::thread::spawn(|| assert_eq!(warnings(), [])).join().unwrap();
        assert_eq!(warnings(), found);
        let (status, found) = compress(0);
        assert_eq!((status, found.len()), (RECON_INVALID_ARGUMENT, 0));
        fails(recon_last_warning(0, null_mut(), null_mut()), RECON_NULL_POINTER, &["kind"]);
    }
}

#[test]
fn coil_matrices_are_those_of_rust() {
    let s = Scene::<f32>::new();
    let (coils, samples, at) = (COILS as u64, SAMPLES as u64, s.kspace_at());
    let mut covariance = poisoned::<f64>(COILS * COILS);
    let to = covariance.as_mut_ptr().cast();
    let noise = &s.kspace[..SAMPLES * COILS];
    let sampling = recon::NoiseSampling { noise_dwell: 3.0, dwell: 2.0, receiver_bandwidth: 0.75 };
    let known = recon::NoiseCovariance::of(noise, COILS, sampling).unwrap();
    // SAFETY: arrays have the lengths documented.
    unsafe { ok(recon_noise_covariance(0, at, samples, coils, 3.0, 2.0, 0.75, to)) };
    assert_eq!(covariance, known.entries());
    let mut matrix = poisoned::<f64>(COILS * COILS);
    // SAFETY: as above.
    unsafe { ok(recon_whitening(to, coils, matrix.as_mut_ptr().cast())) };
    let whitening = known.whitening().unwrap();
    assert_eq!(matrix, whitening.entries());

    let mut out = poisoned::<f32>(SAMPLES * COILS * FRAMES);
    let mut expected = out.clone();
    whitening.apply(SAMPLES, &s.kspace, &mut expected).unwrap();
    let (m, frames) = (matrix.as_ptr().cast(), FRAMES as u64);
    // SAFETY: as above.
    unsafe { ok(recon_virtual_coils(m, coils, coils, 0, at, samples, frames, out.as_mut_ptr().cast())) };
    assert_eq!(out, expected);

    let mut energy = recon::CoilEnergy::new(COILS).unwrap();
    energy.add(SAMPLES, &s.kspace).unwrap();
    for (keep, part, how) in [(2, 0.0, recon::Keep::Coils(2)), (0, 0.7, recon::Keep::Energy(0.7))] {
        let made = energy.compression(how).unwrap();
        let (mut matrix, mut kept, mut energies) = (poisoned::<f64>(COILS * COILS), 99, [POISON; COILS]);
        let (to, energies_to) = (matrix.as_mut_ptr().cast(), energies.as_mut_ptr());
        // SAFETY: as above.
        unsafe { ok(recon_compression(0, at, samples, coils, frames, keep, part, to, &raw mut kept, energies_to)) };
        assert_eq!(kept, made.matrix.virtual_coils() as u64);
        let len = made.matrix.entries().len();
        assert_eq!(&matrix[..len], made.matrix.entries());
        assert!(matrix[len..].iter().all(|z| z.re == POISON && z.im == POISON));
        assert_eq!(energies, made.energies[..]);
        // SAFETY: as above; energies may be left out.
        unsafe { ok(recon_compression(0, at, samples, coils, frames, keep, part, to, &raw mut kept, null_mut())) };
    }

    // SAFETY: as above; what is wrong is found before it is used.
    unsafe {
        let (mut kept, none) = (99, null_mut());
        let kept = &raw mut kept;
        let noise = |samples, coils, dwell| recon_noise_covariance(0, at, samples, coils, 0.0, dwell, 0.0, to);
        fails(noise(samples, coils, 1.0), RECON_INVALID_ARGUMENT, &["noise is 0", "scan 1"]);
        fails(noise(2, coils, 0.0), RECON_INVALID_SIZE, &["2 samples"]);
        fails(noise(0, coils, 0.0), RECON_INVALID_SIZE, &["0 samples"]);
        fails(noise(u64::MAX / 2, coils, 0.0), RECON_SIZE_OVERFLOW, &["noise"]);
        let number = recon_noise_covariance(7, at, samples, coils, 0.0, 0.0, 0.0, to);
        fails(number, RECON_UNKNOWN_VALUE, &["precision is 7"]);
        let nothing = recon_noise_covariance(0, null(), samples, coils, 0.0, 0.0, 0.0, to);
        fails(nothing, RECON_NULL_POINTER, &["noise"]);
        fails(recon_noise_covariance(0, at, samples, coils, 0.0, 0.0, 0.0, none), RECON_NULL_POINTER, &["covariance"]);
        let mut bad = [Complex::new(1.0f64, 0.0); COILS * COILS];
        fails(recon_whitening(bad.as_ptr().cast(), coils, to), RECON_INVALID_ARGUMENT, &["singular"]);
        fails(recon_whitening(to, coils, to), RECON_INVALID_ARGUMENT, &["overlap"]);
        fails(recon_whitening(null(), coils, to), RECON_NULL_POINTER, &["covariance"]);
        fails(recon_whitening(bad.as_ptr().cast(), 0, to), RECON_INVALID_SIZE, &["0 coils"]);
        bad[3].re = f64::NAN;
        fails(recon_whitening(bad.as_ptr().cast(), coils, to), RECON_NOT_FINITE, &["entry 3"]);
        let compress = |keep, energy| recon_compression(0, at, samples, coils, 1, keep, energy, to, kept, none.cast());
        fails(compress(0, 0.0), RECON_INVALID_ARGUMENT, &["keep and energy are 0"]);
        fails(compress(2, 0.5), RECON_INVALID_ARGUMENT, &["one of the two"]);
        fails(compress(0, 1.5), RECON_INVALID_ARGUMENT, &["1.5"]);
        fails(compress(4, 0.0), RECON_INVALID_SIZE, &["4 virtual coils of 3"]);
        assert_eq!(*kept, 99);
        let mix = |rows, frames| recon_virtual_coils(bad.as_ptr().cast(), rows, coils, 0, at, samples, frames, to);
        fails(mix(coils, 1), RECON_NOT_FINITE, &["entry 3"]);
        fails(mix(0, 1), RECON_INVALID_SIZE, &["0 virtual coils"]);
        fails(mix(1, 0), RECON_SIZE_MISMATCH, &["whole number of frames"]);
    }
}

#[test]
fn coil_images_are_combined_frame_by_frame() {
    let s = Scene::<f32>::new();
    let g = s.geometry();
    for (number, how) in [(0, recon::Combine::RootSumOfSquares), (1, recon::Combine::Adaptive)] {
        let mut a = poisoned::<f32>(VOXELS * FRAMES);
        // SAFETY: arrays have the lengths documented.
        unsafe { ok(recon_combine(&raw const g, number, s.image_at(), a.as_mut_ptr().cast())) };
        for (frame, a) in s.image.chunks(VOXELS * COILS).zip(a.chunks(VOXELS)) {
            let mut b = poisoned::<f32>(VOXELS);
            recon::combine(frame, &N, COILS, how, &mut b).unwrap();
            same(a, &b);
        }
    }
    let mut a = poisoned::<f32>(VOXELS * FRAMES);
    let at = a.as_mut_ptr().cast();
    let mut bad = s.image.clone();
    // The bad value is in the second frame. The first frame must not be written either.
    bad[VOXELS * COILS + 5].re = f32::INFINITY;
    // SAFETY: arrays have the lengths documented.
    unsafe {
        fails(recon_combine(&raw const g, 0, bad.as_ptr().cast(), at), RECON_NOT_FINITE, &["voxel 5 "]);
        fails(recon_combine(&raw const g, 5, s.image_at(), at), RECON_UNKNOWN_VALUE, &["method is 5", "ADAPTIVE"]);
        fails(recon_combine(&raw const g, 0, null(), at), RECON_NULL_POINTER, &["coil_images"]);
        fails(recon_combine(&raw const g, 0, s.image_at(), null_mut()), RECON_NULL_POINTER, &["image"]);
        fails(recon_combine(null(), 0, s.image_at(), at), RECON_NULL_POINTER, &["geometry"]);
        let none = recon_geometry { frames: 0, ..g };
        fails(recon_combine(&raw const none, 0, s.image_at(), at), RECON_INVALID_SIZE, &["0 frames"]);
        fails(recon_combine(&raw const g, 0, at, at), RECON_INVALID_ARGUMENT, &["overlap"]);
        let list = recon_geometry { voxel_count: VOXELS as u64, ..g };
        fails(recon_combine(&raw const list, 1, s.image_at(), at), RECON_UNSUPPORTED, &["list"]);
    }
    untouched(&a);
}

#[test]
fn images_are_resized_coil_by_coil() {
    let s = Scene::<f64>::new();
    let g = s.geometry();
    // Voxels become finer along x, and y is cropped.
    let (fov, dims_fov) = ([1.0, 2.0, 3.0], [1.0, 1.5, 0.0]);
    let wanted: Vec<usize> = N.iter().enumerate().map(|(axis, n)| [2 * n, n - 1, n + 2][axis]).collect();
    let dims: Vec<u64> = wanted.iter().map(|&n| n as u64).collect();
    let voxels: usize = wanted.iter().product();
    let mut a = poisoned::<f64>(voxels * COILS * FRAMES);
    let at = a.as_mut_ptr().cast();
    // SAFETY: arrays have the lengths documented.
    unsafe { ok(recon_resize(&raw const g, fov.as_ptr(), dims.as_ptr(), dims_fov.as_ptr(), s.image_at(), at)) };
    let resize = recon::Resize::new(&N, &fov[..N.len()], &wanted, &dims_fov[..N.len()]).unwrap();
    for (image, a) in s.image.chunks(VOXELS).zip(a.chunks(voxels)) {
        let mut b = poisoned::<f64>(voxels);
        resize.apply(image, &mut b).unwrap();
        same(a, &b);
    }
    // Without fields of view, voxels keep their size.
    // SAFETY: arrays have the lengths documented.
    unsafe { ok(recon_resize(&raw const g, null(), dims.as_ptr(), null(), s.image_at(), at)) };
    let resize = recon::Resize::new(&N, &[0.0; 3][..N.len()], &wanted, &[0.0; 3][..N.len()]).unwrap();
    let mut b = poisoned::<f64>(voxels);
    resize.apply(&s.image[..VOXELS], &mut b).unwrap();
    same(&a[..voxels], &b);

    let mut a = poisoned::<f64>(voxels * COILS * FRAMES);
    let at = a.as_mut_ptr().cast();
    let (f, d, to) = (fov.as_ptr(), dims.as_ptr(), dims_fov.as_ptr());
    let mut bad = s.image.clone();
    // The bad value is in the last image. No image before it must be written.
    let last = bad.len() - 1;
    bad[last].re = f64::INFINITY;
    // SAFETY: arrays have the lengths documented.
    unsafe {
        fails(recon_resize(&raw const g, f, d, to, bad.as_ptr().cast(), at), RECON_NOT_FINITE, &["voxel"]);
        fails(recon_resize(null(), f, d, to, s.image_at(), at), RECON_NULL_POINTER, &["geometry"]);
        fails(recon_resize(&raw const g, f, null(), to, s.image_at(), at), RECON_NULL_POINTER, &["dims"]);
        fails(recon_resize(&raw const g, f, d, to, null(), at), RECON_NULL_POINTER, &["images"]);
        fails(recon_resize(&raw const g, f, d, to, s.image_at(), null_mut()), RECON_NULL_POINTER, &["resized"]);
        fails(recon_resize(&raw const g, f, d, to, at, at), RECON_INVALID_ARGUMENT, &["overlap"]);
        let none = recon_geometry { frames: 0, ..g };
        fails(recon_resize(&raw const none, f, d, to, s.image_at(), at), RECON_INVALID_SIZE, &["0 frames"]);
        fails(recon_resize(&raw const g, f, [0; 3].as_ptr(), to, s.image_at(), at), RECON_INVALID_SIZE, &["0"]);
        let far = [1e-12; 3];
        fails(
            recon_resize(&raw const g, f, d, far.as_ptr(), s.image_at(), at),
            RECON_SIZE_OVERFLOW,
            &["fields of view"],
        );
        let list = recon_geometry { voxel_count: VOXELS as u64, ..g };
        fails(recon_resize(&raw const list, f, d, to, s.image_at(), at), RECON_UNSUPPORTED, &["list"]);
    }
    untouched(&a);
}
