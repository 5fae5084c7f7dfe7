//! Rules of scans: parts of images, whitening, windows, calibration, and warnings.

use crate::acquisitions::header_bytes;
use crate::scans::*;
use crate::support::*;
use recon::scan::{flag, AcquisitionHeader, EncodingLimits, EncodingSpace, Header, HeaderEncoding, TrajectoryKind};

const NOISE: u64 = 1 << 18;
const CALIBRATION: u64 = 1 << 19;
const NAVIGATOR: u64 = 1 << 22;
const SPOKES: u16 = 8;

fn complex(re: f32, im: f32) -> Complex<f32> {
    Complex::new(re, im)
}

/// Returns the texts of the last call's warnings of this kind.
fn texts(kind: recon_warning) -> Vec<String> {
    let kind = kind as u32;
    warnings().into_iter().filter(|(number, _)| *number == kind).map(|(_, text)| text).collect()
}

fn acquisition_warnings() -> Vec<String> {
    texts(recon_warning::RECON_WARNING_ACQUISITIONS)
}

/// Takes the next image. Returns it with the warnings of the call, which the next call would replace.
fn next_with_warnings(scan: &ScanHandle) -> (ImageHandle, Vec<String>) {
    let image = scan.next().unwrap();
    let all = warnings();
    let texts = acquisition_warnings();
    assert_eq!(all.len(), texts.len(), "{all:?}");
    (image, texts)
}

#[track_caller]
fn has(texts: &[String], words: &[&str]) {
    let [text] = texts else { panic!("{texts:?}") };
    words.iter().for_each(|word| assert!(text.contains(word), "no {word:?} in {text:?}"));
}

/// Returns the samples of lines in the order of their addition, [samples, coils], with one coil.
fn lines(steps: std::ops::Range<usize>, repetition: usize) -> Vec<Complex<f32>> {
    steps.flat_map(|step| samples(step, repetition)).collect()
}

fn by_repetition(options: &mut recon_scan_options) {
    options.complete = recon_scan_counter::RECON_SCAN_COUNTER_REPETITION as u32;
}

#[test]
fn images_are_completed_by_request() {
    let scan = ScanHandle::new(by_repetition);
    let add = |steps: std::ops::Range<usize>, repetition| {
        steps.for_each(|step| ok(scan.add(&line(step, repetition), &samples(step, repetition))));
    };
    scan.complete();
    assert!(scan.next().is_none(), "an image without acquisitions");
    add(0..4, 0);
    assert!(scan.next().is_none());
    scan.complete();
    scan.complete();
    let first = scan.next().unwrap();
    assert!(scan.next().is_none());
    // A new image of the same index.
    add(4..10, 0);
    scan.complete();
    add(10..12, 0);
    add(0..12, 1);
    let (second, third) = (scan.next().unwrap(), scan.next().unwrap());
    for (image, steps) in [(first, 0..4), (second, 4..10), (third, 10..12)] {
        assert_eq!((image.properties().repetition, image.properties().shots), (0, steps.len() as u64));
        same(&image.kspace(), &lines(steps, 0));
    }
    // The counter has closed repetition 0.
    fails(scan.add(&line(0, 0), &samples(0, 0)), RECON_BAD_FILE, &["already complete"]);
    scan.end();
    same(&scan.next().unwrap().kspace(), &lines(0..12, 1));
    assert!(scan.next().is_none());
}

/// Noise of two coils with the covariance [4, -2i; 2i, 10], whose Cholesky factor is [2, 0; i, 3].
fn noise(samples: usize, sample_time_us: f32) -> (AcquisitionHeader, Vec<Complex<f32>>) {
    let first = (0..samples).map(|i| complex(if i % 2 == 0 { 2.0 } else { -2.0 }, 0.0));
    let independent = (0..samples).map(|i| complex(if i % 4 < 2 { 3.0 } else { -3.0 }, 0.0));
    let second = first.clone().zip(independent).map(|(a, b)| complex(0.0, 0.5) * a + b);
    let header = AcquisitionHeader {
        flags: NOISE,
        number_of_samples: samples as u16,
        active_channels: 2,
        sample_time_us,
        ..AcquisitionHeader::default()
    };
    (header, first.clone().chain(second).collect())
}

/// Returns the data of two coils, and these data whitened. `ratio`: the variance of their noise over that of the noise
/// samples.
fn two_coils(count: usize, ratio: f32) -> (Vec<Complex<f32>>, Vec<Complex<f32>>) {
    let data: Vec<Complex<f32>> = (0..2 * count).map(|i| complex(i as f32 + 1.0, 7.0 - (i * i % 11) as f32)).collect();
    let (first, second) = data.split_at(count);
    let scale = 1.0 / ratio.sqrt();
    let of_first = first.iter().map(|x| x * (scale / 2.0));
    let of_second = first.iter().zip(second).map(|(x, y)| (y - complex(0.0, 0.5) * x) * (scale / 3.0));
    let whitened = of_first.chain(of_second).collect();
    (data, whitened)
}

#[track_caller]
fn near(found: &[Complex<f32>], expected: &[Complex<f32>]) {
    assert_eq!(found.len(), expected.len());
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).norm() <= 1e-5 * (1.0 + b.norm()), "{a} instead of {b}");
    }
}

fn two_coil_line(sample_time_us: f32, flags: u64) -> AcquisitionHeader {
    AcquisitionHeader { active_channels: 2, sample_time_us, flags, ..line(0, 0) }
}

#[test]
fn acquisitions_are_whitened_in_place() {
    let mut header = cartesian();
    header.noise_bandwidth = Some(0.8);
    let scan = ScanHandle::with_header(&header, |_| ());
    let (noise_header, noise_data) = noise(1000, 5.0);
    ok(scan.add(&noise_header, &noise_data));
    // The sample times scale the noise, also for acquisitions that are not used.
    let cases = [(5.0, 0), (10.0, 0), (10.0, CALIBRATION), (5.0, NAVIGATOR), (5.0, 0)];
    for (number, (time, flags)) in cases.into_iter().enumerate() {
        let (mut data, expected) = two_coils(MATRIX[0], 5.0 / time / 0.8);
        ok(scan.whiten(&two_coil_line(time, flags), &mut data));
        // The warning is given once.
        match number {
            0 => has(&texts(recon_warning::RECON_WARNING_NOISE), &["units of the noise's standard deviation"]),
            _ => assert_eq!(warnings(), []),
        }
        near(&data, &expected);
    }
    // Noise, acquisitions of other coils that are not used, and data that are not finite stay unchanged.
    let (original, _) = two_coils(MATRIX[0], 1.0);
    let unchanged = |header: &AcquisitionHeader, original: &[Complex<f32>]| {
        let mut data = original.to_vec();
        ok(scan.whiten(header, &mut data));
        assert!(data.iter().zip(original).all(|(a, b)| a.re.to_bits() == b.re.to_bits() && a.im == b.im));
    };
    unchanged(&two_coil_line(5.0, NOISE), &original);
    unchanged(&AcquisitionHeader { flags: NAVIGATOR, ..line(0, 0) }, &samples(0, 0));
    let mut infinite = original.clone();
    (infinite[7].re, infinite[9].re) = (f32::NAN, f32::INFINITY);
    unchanged(&two_coil_line(5.0, 0), &infinite);
    unchanged(&AcquisitionHeader { number_of_samples: 0, ..two_coil_line(5.0, 0) }, &[]);
    // Compressed samples are not read.
    let compressed = flag::bit(flag::COMPRESSION_1);
    unchanged(&two_coil_line(5.0, compressed | NAVIGATOR), &[]);
    let refused = |header: &AcquisitionHeader, original: &[Complex<f32>], status, words: &[&str]| {
        let mut data = original.to_vec();
        fails(scan.whiten(&AcquisitionHeader { scan_counter: 77, ..*header }, &mut data), status, words);
        same(&data, original);
    };
    refused(&two_coil_line(5.0, compressed), &[], RECON_UNSUPPORTED, &["scan_counter 77", "compressed"]);
    refused(&line(0, 0), &samples(0, 0), RECON_SIZE_MISMATCH, &["noise of 2 coils cannot whiten data of 1"]);
    refused(&two_coil_line(-1.0, 0), &original, RECON_BAD_FILE, &["-1 microseconds"]);
    assert_eq!((scan.counts().noise, scan.counts().image), (1, 0));
    // More noise of these coils has no effect, which is counted.
    (0..2).for_each(|_| ok(scan.add(&noise(4, 5.0).0, &noise(4, 5.0).1)));
    let (mut data, expected) = two_coils(MATRIX[0], 5.0 / 7.0 / 0.8);
    ok(scan.whiten(&two_coil_line(7.0, 0), &mut data));
    near(&data, &expected);
    scan.end();
    has(
        &texts(recon_warning::RECON_WARNING_NOISE),
        &["2 noise acquisitions came after", "store noise before the data"],
    );
    scan.end();
    assert_eq!(warnings(), []);
}

#[test]
fn data_before_their_noise_are_not_whitened() {
    let (original, _) = two_coils(MATRIX[0], 1.0);
    let (noise_header, noise_data) = noise(1000, 5.0);
    for whiten in [0, 1] {
        let scan = ScanHandle::new(|o| o.whiten = whiten);
        // Compressed samples are not read.
        ok(scan.whiten(&two_coil_line(5.0, flag::bit(flag::COMPRESSION_1)), &mut []));
        let mut data = original.clone();
        // A navigator does not settle the units.
        ok(scan.whiten(&two_coil_line(5.0, NAVIGATOR), &mut data));
        if whiten == 1 {
            ok(scan.whiten(&two_coil_line(5.0, 0), &mut data));
        }
        ok(scan.add(&noise_header, &noise_data));
        ok(scan.whiten(&two_coil_line(5.0, 0), &mut data));
        same(&data, &original);
        // Also the data of images stay as they are.
        let scan_line = two_coil_line(5.0, 0);
        ok(scan.add(&scan_line, &original));
        scan.end();
        assert_eq!(texts(recon_warning::RECON_WARNING_NOISE).len(), whiten as usize);
        let image = scan.next().unwrap();
        same(&image.kspace(), &original);
        assert_eq!(image.properties().is_whitened, 0);
    }
    let scan = ScanHandle::new(|_| ());
    let (mut data, expected) = two_coils(MATRIX[0], 1.0);
    ok(scan.whiten(&two_coil_line(5.0, NAVIGATOR), &mut data.clone()));
    ok(scan.add(&noise_header, &noise_data));
    ok(scan.whiten(&two_coil_line(5.0, 0), &mut data));
    near(&data, &expected);
    // Data of the other sign have noise of the other sign.
    let scan = ScanHandle::new(|o| o.conjugate = 1);
    ok(scan.add(&noise_header, &noise_data));
    let (mut data, expected) = two_coils(MATRIX[0], 1.0);
    ok(scan.whiten(&two_coil_line(5.0, 0), &mut data));
    near(&data, &expected);
}

#[test]
fn images_are_whitened_with_one_matrix() {
    let scan = ScanHandle::new(by_repetition);
    let (noise_header, noise_data) = noise(1000, 5.0);
    let (data, expected) = two_coils(MATRIX[0], 0.5);
    let two_coil_lines = |repetition: u16| {
        for step in 0..MATRIX[1] as u16 {
            let mut header = two_coil_line(10.0, 0);
            (header.idx.kspace_encode_step_1, header.idx.repetition) = (step, repetition);
            ok(scan.add(&header, &data));
        }
    };
    // The noise of several acquisitions is used together.
    (0..2).for_each(|_| ok(scan.add(&noise_header, &noise_data)));
    (0..3).for_each(two_coil_lines);
    let whitened = |is_first: bool| {
        let image = scan.next().unwrap();
        let expected_warnings = usize::from(is_first);
        assert_eq!(texts(recon_warning::RECON_WARNING_NOISE).len(), expected_warnings, "{:?}", warnings());
        let (kspace, p) = (image.kspace(), image.properties());
        let (first, second) = kspace.split_at(kspace.len() / 2);
        near(&first[..MATRIX[0]], &expected[..MATRIX[0]]);
        near(&second[..MATRIX[0]], &expected[MATRIX[0]..]);
        assert_eq!((p.is_whitened, p.samples), (1, (MATRIX[0] * MATRIX[1]) as u64));
    };
    whitened(true);
    // Noise after the first image has no effect, so that all images have the same units.
    let quiet: Vec<Complex<f32>> = noise_data.iter().map(|z| z * 0.1).collect();
    ok(scan.add(&noise_header, &quiet));
    whitened(false);
    scan.end();
    has(&texts(recon_warning::RECON_WARNING_NOISE), &["1 noise acquisitions came after"]);
    whitened(false);
    assert!(scan.next().is_none());
    assert_eq!(scan.counts().noise, 3);
}

#[test]
fn a_noise_scan_that_does_not_come_causes_a_warning() {
    let mut header = cartesian();
    header.dependencies = vec![("Image".to_owned(), "7".to_owned()), ("nOISE".to_owned(), "45_6".to_owned())];
    let scan = ScanHandle::with_header(&header, |_| ());
    scan.add_lines(0);
    assert_eq!(warnings(), []);
    scan.end();
    has(&acquisition_warnings(), &["measurement \"45_6\" as its noise scan", "no noise acquisitions"]);
    scan.end();
    assert_eq!(warnings(), []);
    let scan = ScanHandle::with_header(&header, |o| o.whiten = 0);
    scan.end();
    assert_eq!(warnings(), []);
    let scan = ScanHandle::with_header(&header, |_| ());
    ok(scan.add(&noise(1000, 5.0).0, &noise(1000, 5.0).1));
    scan.end();
    assert_eq!(warnings(), []);
    header.dependencies.pop();
    ScanHandle::with_header(&header, |_| ()).end();
    assert_eq!(warnings(), []);
}

#[test]
fn windows_join_the_newest_images_of_a_slice() {
    let scan = ScanHandle::new(|o| {
        by_repetition(o);
        o.window = 2;
    });
    let add = |repetition: usize, slice: u16| {
        for step in 0..MATRIX[1] {
            let mut header = line(step, repetition);
            (header.idx.slice, header.scan_counter) = (slice, (100 * repetition + step) as u32);
            header.position = [repetition as f32, 0.0, 0.0];
            ok(scan.add(&header, &samples(step, repetition)));
        }
    };
    (0..3).for_each(|repetition| (0..2).for_each(|slice| add(repetition, slice)));
    scan.end();
    for repetition in 0..3 {
        // The other slice has a window of its own.
        for slice in 0..2 {
            let mut expected = lines(0..MATRIX[1], repetition);
            if repetition > 0 {
                expected = [lines(0..MATRIX[1], repetition - 1), expected].concat();
            }
            let image = scan.next().unwrap();
            assert_eq!(warnings(), []);
            same(&image.kspace(), &expected);
            let p = image.properties();
            assert_eq!((p.slice, p.repetition as usize, p.position[0]), (slice, repetition, repetition as f64));
            assert_eq!((p.samples as usize, p.shots as usize), (expected.len(), expected.len() / MATRIX[0]));
            let [first, last] = image.acquisitions();
            assert_eq!([first, last].map(|header| header.scan_counter as usize % 100), [0, MATRIX[1] - 1]);
            assert_eq!(first.idx.repetition as usize, repetition);
            // SAFETY: the arrays have the documented lengths.
            let (ky, counts) = unsafe {
                (
                    std::slice::from_raw_parts(p.coordinates[1], p.samples as usize),
                    std::slice::from_raw_parts(p.samples_per_shot, p.shots as usize),
                )
            };
            let expected_ky = |m: usize| ((m / MATRIX[0] % MATRIX[1]) as f32 - 6.0) / 12.0;
            assert!(ky.iter().enumerate().all(|(m, k)| (k - expected_ky(m)).abs() < 1e-6), "{ky:?}");
            assert!(counts.iter().all(|&count| count == MATRIX[0] as u64));
        }
    }
}

#[test]
fn windows_start_again_if_the_coils_change() {
    let scan = ScanHandle::new(|o| {
        by_repetition(o);
        o.window = 3;
    });
    let add = |repetition: usize, coils: u16, data: &[Complex<f32>]| {
        scan.add(&AcquisitionHeader { active_channels: coils, ..line(6, repetition) }, data)
    };
    let of = |repetition: usize| samples(6, repetition);
    let two = [of(3), of(4)].concat();
    ok(add(0, 1, &of(0)));
    ok(add(1, 1, &of(1)));
    // An image that cannot be made is not in the window.
    ok(scan.add(&AcquisitionHeader { center_sample: 300, ..line(6, 2) }, &of(2)));
    ok(add(3, 1, &of(3)));
    ok(add(4, 2, &two));
    ok(add(5, 2, &two));
    scan.end();
    let next = |expected: &[Complex<f32>]| {
        let (image, mut texts) = next_with_warnings(&scan);
        same(&image.kspace(), expected);
        // The images of this test have one line.
        texts.retain(|text| !text.contains("on one line of k-space"));
        texts
    };
    assert_eq!([next(&of(0)), next(&[of(0), of(1)].concat())].concat(), [""; 0]);
    scan.next_fails(RECON_COORDINATE_OUT_OF_RANGE, &["outside k-space"]);
    assert_eq!(next(&[of(0), of(1), of(3)].concat()), [""; 0]);
    let words = ["the sliding window starts again", "has 2 coils", "1 coils and 2 dimensions without density", "of 3"];
    has(&next(&two), &words);
    // [samples, coils]: the first coil of both images, then the second.
    assert_eq!(next(&[of(3), of(3), of(4), of(4)].concat()), [""; 0]);
}

#[test]
fn structures_of_older_versions_are_accepted() {
    let (text, mut scan) = (cartesian().to_xml(), null_mut());
    let mut options = init(recon_scan_options_init);
    // SAFETY: the structures are alive, and the text has its length.
    unsafe {
        ok(recon_scan_options_init(&raw mut options, 96));
        (options.complete, options.window) = (recon_scan_counter::RECON_SCAN_COUNTER_REPETITION as u32, 2);
        ok(recon_scan_create(text.as_ptr().cast(), text.len() as u64, &raw const options, &raw mut scan));
    }
    let scan = ScanHandle(scan);
    (0..2).for_each(|repetition| scan.add_lines(repetition));
    scan.end();
    let (_first, second) = (scan.next().unwrap(), scan.next().unwrap());
    same(&second.kspace(), &lines(0..MATRIX[1], 1));
    let mut properties = init(recon_scan_properties_init);
    let unset = 0x1230 as *const c_void;
    (properties.struct_size, properties.first_acquisition) = (376, unset);
    // SAFETY: the image and the structure are alive.
    ok(unsafe { recon_scan_image_properties(second.0, &raw mut properties) });
    assert_eq!((properties.repetition, properties.first_acquisition), (1, unset));
}

#[test]
fn images_have_their_first_and_last_acquisition() {
    let scan = ScanHandle::new(|_| ());
    let header = |step: usize, flags: u64| AcquisitionHeader {
        flags,
        scan_counter: 40 + step as u32,
        discard_pre: 1,
        channel_mask: std::array::from_fn(|i| i as u64),
        user_int: [step as i32 - 3; 8],
        user_float: [0.5; 8],
        ..line(step, 0)
    };
    for step in [5, 2, 7] {
        ok(scan.add(&header(step, 0), &samples(step, 0)));
    }
    for step in [6, 4] {
        ok(scan.add(&header(step, CALIBRATION), &samples(step, 0)));
    }
    ok(scan.add(&header(1, NAVIGATOR), &samples(1, 0)));
    scan.end();
    let image = scan.next().unwrap();
    assert_eq!(image.acquisitions(), [header(5, 0), header(7, 0)]);
    let p = image.properties();
    // SAFETY: the array has the documented length.
    let bytes = unsafe { std::slice::from_raw_parts(p.last_acquisition.cast::<u8>(), AcquisitionHeader::BYTES) };
    assert_eq!(bytes, header_bytes(&header(7, 0)));
    let calibration = image.calibration().unwrap();
    assert_eq!(calibration.acquisitions(), [header(6, CALIBRATION), header(4, CALIBRATION)]);
    assert_eq!(calibration.properties().shots, 2);
}

#[test]
fn calibration_of_other_slices_causes_a_warning() {
    let scan = ScanHandle::new(|_| ());
    let calibration = |slice: u16, value: f32| {
        let mut header = AcquisitionHeader { flags: CALIBRATION, ..line(6, 0) };
        header.idx.slice = slice;
        ok(scan.add(&header, &vec![complex(value, 0.0); MATRIX[0]]));
    };
    calibration(0, 1.0);
    scan.add_lines(0);
    let mut other = line(6, 0);
    other.idx.slice = 1;
    ok(scan.add(&other, &samples(6, 0)));
    scan.end();
    let (first, second) = (scan.next().unwrap(), scan.next().unwrap());
    let found = first.calibration().unwrap();
    assert_eq!(warnings(), []);
    same(&found.kspace(), &vec![complex(1.0, 0.0); MATRIX[0]]);
    assert!(second.calibration().is_none());
    has(&acquisition_warnings(), &["slice 1: the calibration acquisitions are of different slices"]);
    // Without any calibration data, nothing is missing.
    let scan = ScanHandle::new(|_| ());
    scan.add_lines(0);
    scan.end();
    let image = scan.next().unwrap();
    assert!(image.calibration().is_none());
    assert_eq!(warnings(), []);
}

#[test]
fn the_newest_calibration_of_a_slice_remains() {
    let scan = ScanHandle::new(by_repetition);
    let add = |repetition: usize, contrast: u16, value: Option<f32>| {
        let mut header = line(6, repetition);
        header.idx.contrast = contrast;
        if let Some(value) = value {
            let header = AcquisitionHeader { flags: CALIBRATION, ..header };
            ok(scan.add(&header, &vec![complex(value, 0.0); MATRIX[0]]));
        }
        ok(scan.add(&header, &samples(6, repetition)));
    };
    let value = |image: Option<ImageHandle>| image.unwrap().calibration().unwrap().kspace()[0].re;
    add(0, 0, Some(1.0));
    add(0, 1, Some(2.0));
    add(1, 0, Some(3.0));
    // Images that wait have the calibration of their repetition.
    add(2, 0, None);
    assert_eq!([value(scan.next()), value(scan.next()), value(scan.next())], [1.0, 2.0, 3.0]);
    assert!(scan.next().is_none());
    // The calibration of repetition 0 was discarded with the next completion, except that of contrast 1.
    add(3, 0, None);
    assert_eq!(value(scan.next()), 3.0);
    add(3, 1, None);
    add(4, 0, None);
    assert_eq!([value(scan.next()), value(scan.next())], [3.0, 2.0]);
    scan.end();
    assert_eq!(value(scan.next()), 3.0);
    // A refused calibration acquisition leaves out the calibration of its index, with a warning, and not the image.
    let mut bad = samples(6, 5);
    bad[0].im = f32::INFINITY;
    let status = scan.add(&AcquisitionHeader { flags: CALIBRATION, ..line(6, 5) }, &bad);
    fails(status, RECON_NOT_FINITE, &["coil 0, sample 0"]);
    add(5, 0, Some(7.0));
    scan.end();
    has(&acquisition_warnings(), &["calibration acquisitions are not used: acquisition", "coil 0, sample 0"]);
    assert_eq!(value(scan.next()), 3.0);
}

/// Returns the header of a radial scan of 8 spokes. `has_limits`: whether the number is in the header.
fn radial(has_limits: bool) -> Header {
    let space = EncodingSpace { matrix: [16, 16, 1], fov_mm: [160.0, 160.0, 5.0] };
    let limits = EncodingLimits { minimum: 0, maximum: SPOKES - 1, center: SPOKES / 2 };
    let encoding = HeaderEncoding {
        encoded: space,
        recon: space,
        trajectory: TrajectoryKind::Radial,
        steps: [has_limits.then_some(limits), None],
        ..Default::default()
    };
    Header { encodings: vec![encoding], ..Default::default() }
}

fn add_spokes(scan: &ScanHandle, spokes: impl IntoIterator<Item = u16>, repetition: usize) {
    for spoke in spokes {
        let header = AcquisitionHeader { trajectory_dimensions: 2, ..line(spoke as usize, repetition) };
        let (sin, cos) = (f32::from(spoke) * std::f32::consts::PI / f32::from(SPOKES)).sin_cos();
        let k: Vec<f32> = (-8..8).flat_map(|i| [cos * i as f32 / 16.0, sin * i as f32 / 16.0]).collect();
        let (bytes, data) = (header_bytes(&header), samples(spoke as usize, repetition));
        // SAFETY: the arrays have the lengths that the header announces.
        ok(unsafe { recon_scan_add(scan.0, bytes.as_ptr().cast(), k.as_ptr(), data.as_ptr().cast()) });
    }
}

#[test]
fn missing_shots_cause_a_warning() {
    let scan = ScanHandle::with_header(&radial(true), by_repetition);
    add_spokes(&scan, 0..8, 0);
    add_spokes(&scan, 0..6, 1);
    // Every second spoke, by design.
    add_spokes(&scan, (0..8).step_by(2), 2);
    add_spokes(&scan, (0..8).filter(|&spoke| spoke != 3), 3);
    scan.end();
    let next = || next_with_warnings(&scan).1;
    assert_eq!(next(), [""; 0]);
    has(&next(), &["an image has 6 of the 8 shots", "step_1 from 0 to 7", "step 1 goes from 0 to 5", "cut short"]);
    assert_eq!(next(), [""; 0]);
    has(&next(), &["an image has 7 of the 8 shots", "were lost"]);
    // Without limits, the number is that of a previous image.
    let scan = ScanHandle::with_header(&radial(false), by_repetition);
    [8, 8, 5].into_iter().enumerate().for_each(|(repetition, count)| add_spokes(&scan, 0..count, repetition));
    scan.end();
    let next = || next_with_warnings(&scan).1;
    assert_eq!([next(), next()].concat(), [""; 0]);
    has(&next(), &["an image has 5 shots, but a previous image had 8"]);
}

#[test]
fn shots_of_images_that_are_completed_by_request_are_counted_together() {
    let scan = ScanHandle::with_header(&radial(true), by_repetition);
    let part = |spokes: std::ops::Range<u16>, repetition: usize| {
        add_spokes(&scan, spokes, repetition);
        scan.complete();
        let texts = acquisition_warnings();
        assert_eq!(next_with_warnings(&scan).1, [""; 0], "a part has fewer shots");
        texts
    };
    assert_eq!([part(0..4, 0), part(4..8, 0), part(0..3, 1), part(3..6, 1)].concat(), [""; 0]);
    has(&part(0..4, 2), &["the image of slice 0, repetition 1 has 6 of the 8 shots", "step 1 goes from 0 to 5"]);
    // The counter completes the last part.
    add_spokes(&scan, 4..8, 2);
    add_spokes(&scan, 0..8, 3);
    let (image, texts) = next_with_warnings(&scan);
    assert_eq!((image.properties().shots, texts), (4, vec![]));
    scan.complete();
    assert_eq!(acquisition_warnings(), [""; 0]);
    assert_eq!(next_with_warnings(&scan).1, [""; 0]);
    part(0..5, 4);
    add_spokes(&scan, 5..6, 4);
    scan.end();
    has(&acquisition_warnings(), &["repetition 4 has 6 of the 8 shots"]);
    scan.end();
    assert_eq!(warnings(), []);
    let (image, texts) = next_with_warnings(&scan);
    assert_eq!(image.properties().shots, 1);
    has(&texts, &["on one line of k-space"]);
}

#[test]
fn zero_acquisitions_and_short_readouts_cause_warnings() {
    let scan = ScanHandle::new(|_| ());
    for step in 0..MATRIX[1] {
        let data = if step % 5 == 1 { vec![Complex::ZERO; MATRIX[0]] } else { samples(step, 0) };
        ok(scan.add(&line(step, 0), &data));
    }
    let shorter = |count: u16, center: u16, discarded: u16, repetition: usize| {
        for step in 0..MATRIX[1] {
            let header = AcquisitionHeader {
                number_of_samples: count,
                center_sample: center,
                discard_pre: discarded,
                ..line(step, repetition)
            };
            ok(scan.add(&header, &samples(step, repetition)[..count as usize]));
        }
    };
    shorter(8, 4, 0, 1);
    // A partial echo, and samples that are discarded.
    shorter(10, 2, 0, 2);
    shorter(10, 5, 1, 3);
    scan.end();
    has(&next_with_warnings(&scan).1, &["3 of the 12 acquisitions of an image are zero in every sample"]);
    let words = ["readout has 8 samples", "has 16 voxels along x", "50 % of the resolution", "encodedSpace"];
    has(&next_with_warnings(&scan).1, &words);
    (0..2).for_each(|_| assert_eq!(next_with_warnings(&scan).1, [""; 0]));
}

/// Returns the density weights of an image; `None` without weights.
fn weights(image: &ImageHandle) -> Option<Vec<f32>> {
    let p = image.properties();
    let mut geometry = init(recon_geometry_init);
    // SAFETY: the image and the structure are alive.
    ok(unsafe { recon_scan_image_geometry(image.0, &raw mut geometry) });
    assert_eq!(geometry.weights.cast(), p.weights);
    // SAFETY: one weight for each sample, and the image is alive.
    (!p.weights.is_null()).then(|| unsafe { std::slice::from_raw_parts(p.weights, p.samples as usize) }.to_vec())
}

/// Complete Cartesian grids have equal weights. The weights of a line that was measured twice are half. Other samples
/// do not have weights.
#[test]
fn complete_grids_have_equal_weights() {
    let scan = ScanHandle::new(by_repetition);
    scan.add_lines(0);
    scan.add_lines(1);
    ok(scan.add(&line(3, 1), &samples(3, 1)));
    (0..MATRIX[1] - 1).for_each(|step| ok(scan.add(&line(step, 2), &samples(step, 2))));
    scan.end();
    let point = 1.0 / (MATRIX[0] * MATRIX[1]) as f32;
    let complete = weights(&scan.next().unwrap()).unwrap();
    assert!(complete.len() == MATRIX[0] * MATRIX[1] && complete.iter().all(|&w| w == point), "{complete:?}");
    let twice = weights(&scan.next().unwrap()).unwrap();
    for (i, &weight) in twice.iter().enumerate() {
        let is_repeated = [3, MATRIX[1]].contains(&(i / MATRIX[0]));
        assert_eq!(weight, if is_repeated { point / 2.0 } else { point }, "sample {i}");
    }
    // The box of the lines is smaller than the matrix, but complete.
    assert!(weights(&scan.next().unwrap()).is_some());
    let gap = ScanHandle::new(|_| ());
    (0..MATRIX[1]).filter(|&step| step != 5).for_each(|step| ok(gap.add(&line(step, 0), &samples(step, 0))));
    gap.end();
    assert!(weights(&gap.next().unwrap()).is_none());
}

/// The arrays of a destroyed image become those of later images, with different numbers of samples and coils.
#[test]
fn arrays_of_destroyed_images_are_used_again() {
    let scan = ScanHandle::new(by_repetition);
    let coil = |repetition: usize, coil: usize| -> Vec<Complex<f32>> {
        lines(0..MATRIX[1], repetition).into_iter().map(|z| z * complex(1.0, coil as f32)).collect()
    };
    for (repetition, coils) in [1, 3, 2, 2, 1, 4].into_iter().enumerate() {
        for step in 0..MATRIX[1] {
            let data: Vec<_> = (0..coils)
                .flat_map(|c| samples(step, repetition).into_iter().map(move |z| z * complex(1.0, c as f32)))
                .collect();
            let header = AcquisitionHeader { active_channels: coils, ..line(step, repetition) };
            ok(scan.add(&header, &data));
        }
        scan.complete();
        let image = scan.next().unwrap();
        let expected: Vec<_> = (0..coils as usize).flat_map(|c| coil(repetition, c)).collect();
        same(&image.kspace(), &expected);
        assert_eq!(weights(&image).unwrap().len(), MATRIX[0] * MATRIX[1]);
    }
}

/// Samples that do not show the object cause a warning. With a window, those of all its images count.
#[test]
fn samples_on_one_line_or_at_one_point() {
    let spoke = |angle: f32| -> Vec<f32> {
        (0..16).flat_map(|i| [angle.cos(), angle.sin()].map(|u| u * (i as f32 - 8.0) / 16.0)).collect()
    };
    let mut header = cartesian();
    header.encodings[0].trajectory = TrajectoryKind::Other;
    header.encodings[0].steps = [None; 2];
    let mut warnings_of = |trajectories: &[Vec<f32>], matrix: [usize; 3]| {
        header.encodings[0].encoded.matrix = matrix;
        let scan = ScanHandle::with_header(&header, |_| ());
        for (step, k) in trajectories.iter().enumerate() {
            let shot = AcquisitionHeader { trajectory_dimensions: 2, ..line(step, 0) };
            // SAFETY: the arrays have the lengths of the header.
            ok(unsafe {
                recon_scan_add(
                    scan.0,
                    header_bytes(&shot).as_ptr().cast(),
                    k.as_ptr(),
                    samples(step, 0).as_ptr().cast(),
                )
            });
        }
        scan.end();
        next_with_warnings(&scan).1
    };
    assert_eq!(warnings_of(&[spoke(0.3), spoke(1.3)], MATRIX), [""; 0]);
    has(&warnings_of(&[spoke(0.3), spoke(0.3)], MATRIX), &["all 32 samples lie on one line of k-space"]);
    has(&warnings_of(&[vec![0.0; 32]], MATRIX), &["all 16 samples lie at one point of k-space"]);
    let window = ScanHandle::new(|options| {
        by_repetition(options);
        options.window = 2;
    });
    ok(window.add(&line(5, 0), &samples(5, 0)));
    ok(window.add(&line(6, 1), &samples(6, 1)));
    window.end();
    has(&next_with_warnings(&window).1, &["all 16 samples lie on one line of k-space"]);
    assert_eq!(next_with_warnings(&window).1, [""; 0]);
    // One row needs one line.
    assert_eq!(warnings_of(&[spoke(0.0)], [16, 1, 1]), [""; 0]);
}
