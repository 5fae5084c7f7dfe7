//! Scans: acquisitions that become the data of images.

use crate::acquisitions::header_bytes;
use crate::support::*;
use recon::scan::{flag, AcquisitionHeader, EncodingLimits, EncodingSpace, Header, HeaderEncoding, TrajectoryKind};

const MATRIX: [usize; 3] = [16, 12, 1];

/// Returns the XML header of a Cartesian scan.
fn xml() -> String {
    let space = EncodingSpace { matrix: MATRIX, fov_mm: [160.0, 120.0, 5.0] };
    let limits = EncodingLimits { minimum: 0, maximum: MATRIX[1] as u16 - 1, center: MATRIX[1] as u16 / 2 };
    let encoding = HeaderEncoding {
        encoded: space,
        recon: space,
        trajectory: TrajectoryKind::Cartesian,
        steps: [Some(limits), None],
        ..Default::default()
    };
    Header { encodings: vec![encoding], ..Default::default() }.to_xml()
}

fn line(step: usize, repetition: usize) -> AcquisitionHeader {
    let mut header = AcquisitionHeader {
        number_of_samples: MATRIX[0] as u16,
        active_channels: 1,
        center_sample: MATRIX[0] as u16 / 2,
        ..Default::default()
    };
    (header.idx.kspace_encode_step_1, header.idx.repetition) = (step as u16, repetition as u16);
    header
}

fn samples(step: usize, repetition: usize) -> Vec<Complex<f32>> {
    (0..MATRIX[0]).map(|i| Complex::new((100 * repetition + step) as f32, i as f32)).collect()
}

/// A scan that is destroyed when it goes out of scope.
struct ScanHandle(*mut recon_scan);

// SAFETY: several threads may use a scan.
unsafe impl Sync for ScanHandle {}

impl ScanHandle {
    fn new(change: impl FnOnce(&mut recon_scan_options)) -> ScanHandle {
        let mut options = init(recon_scan_options_init);
        change(&mut options);
        let (text, mut scan) = (xml(), null_mut());
        // SAFETY: the text has this length.
        ok(unsafe { recon_scan_create(text.as_ptr().cast(), text.len() as u64, &raw const options, &raw mut scan) });
        ScanHandle(scan)
    }

    fn add(&self, header: &AcquisitionHeader, data: &[Complex<f32>]) -> recon_status {
        // SAFETY: the data have the length that the header announces, or an error comes first.
        unsafe { recon_scan_add(self.0, header_bytes(header).as_ptr().cast(), null(), data.as_ptr().cast()) }
    }

    fn add_lines(&self, repetition: usize) {
        (0..MATRIX[1]).for_each(|step| ok(self.add(&line(step, repetition), &samples(step, repetition))));
    }

    /// Returns the next image; `None` if no image is complete.
    fn next(&self) -> Option<ImageHandle> {
        let mut image = null_mut();
        // SAFETY: the scan is alive.
        ok(unsafe { recon_scan_next(self.0, &raw mut image) });
        (!image.is_null()).then_some(ImageHandle(image))
    }

    fn end(&self) {
        // SAFETY: the scan is alive.
        ok(unsafe { recon_scan_end(self.0) });
    }

    fn counts(&self) -> recon_scan_counts {
        let mut counts = init(recon_scan_counts_init);
        // SAFETY: the scan and the structure are alive.
        ok(unsafe { recon_scan_acquisitions(self.0, &raw mut counts) });
        counts
    }
}

impl Drop for ScanHandle {
    fn drop(&mut self) {
        // SAFETY: created by recon_scan_create, and destroyed once.
        unsafe { recon_scan_destroy(self.0) };
    }
}

struct ImageHandle(*mut recon_scan_image);

impl ImageHandle {
    fn properties(&self) -> recon_scan_properties {
        let mut properties = init(recon_scan_properties_init);
        // SAFETY: the image and the structure are alive.
        ok(unsafe { recon_scan_image_properties(self.0, &raw mut properties) });
        properties
    }

    fn kspace(&self) -> Vec<Complex<f32>> {
        let p = self.properties();
        // SAFETY: the array has the documented length.
        unsafe { std::slice::from_raw_parts(p.kspace.cast(), (p.samples * p.coils) as usize) }.to_vec()
    }
}

impl Drop for ImageHandle {
    fn drop(&mut self) {
        // SAFETY: created by the library, and destroyed once.
        unsafe { recon_scan_image_destroy(self.0) };
    }
}

#[test]
fn null_pointers_name_the_argument() {
    let scan = ScanHandle::new(|_| ());
    scan.add_lines(0);
    scan.end();
    let image = scan.next().unwrap();
    let (header, data) = (header_bytes(&line(0, 1)), samples(0, 1));
    let text = xml();
    let (xml_at, bytes) = (text.as_ptr().cast::<c_char>(), text.len() as u64);
    let mut geometry = init(recon_geometry_init);
    let (mut scan_out, mut image_out) = (null_mut(), null_mut());
    let mut counts = init(recon_scan_counts_init);
    let mut properties = init(recon_scan_properties_init);
    // SAFETY: one pointer of each call is null, which is found before anything is read.
    unsafe {
        let null_pointer = |status, name: &str| fails(status, RECON_NULL_POINTER, &[name]);
        null_pointer(recon_scan_create(null(), bytes, null(), &raw mut scan_out), "xml");
        null_pointer(recon_scan_create(xml_at, bytes, null(), null_mut()), "scan");
        null_pointer(recon_scan_add(null_mut(), header.as_ptr().cast(), null(), data.as_ptr().cast()), "scan");
        null_pointer(recon_scan_add(scan.0, null(), null(), data.as_ptr().cast()), "header");
        null_pointer(recon_scan_add(scan.0, header.as_ptr().cast(), null(), null()), "data");
        let spoke = header_bytes(&AcquisitionHeader { trajectory_dimensions: 2, ..line(0, 1) });
        null_pointer(recon_scan_add(scan.0, spoke.as_ptr().cast(), null(), data.as_ptr().cast()), "trajectory");
        null_pointer(recon_scan_end(null_mut()), "scan");
        null_pointer(recon_scan_next(null_mut(), &raw mut image_out), "scan");
        null_pointer(recon_scan_next(scan.0, null_mut()), "image");
        null_pointer(recon_scan_image_properties(image.0, null_mut()), "properties");
        null_pointer(recon_scan_image_properties(null(), &raw mut properties), "image");
        null_pointer(recon_scan_image_geometry(null(), &raw mut geometry), "image");
        null_pointer(recon_scan_image_geometry(image.0, null_mut()), "geometry");
        null_pointer(recon_scan_image_calibration(null(), &raw mut image_out), "image");
        null_pointer(recon_scan_image_calibration(image.0, null_mut()), "calibration");
        null_pointer(recon_scan_acquisitions(null_mut(), &raw mut counts), "scan");
        null_pointer(recon_scan_acquisitions(scan.0, null_mut()), "counts");
        // NULL is ignored.
        recon_scan_destroy(null_mut());
        recon_scan_image_destroy(null_mut());
    }
    assert!(scan_out.is_null() && image_out.is_null());
    assert_eq!(scan.counts().image, MATRIX[1] as u64);
}

#[test]
fn structures_and_numbers_are_checked() {
    let (text, unset) = (xml(), 0x1230 as *mut recon_scan);
    let create = |text: &[u8], change: fn(&mut recon_scan_options)| {
        let (mut options, mut scan) = (init(recon_scan_options_init), unset);
        change(&mut options);
        // SAFETY: the text has this length.
        let status =
            unsafe { recon_scan_create(text.as_ptr().cast(), text.len() as u64, &raw const options, &raw mut scan) };
        assert_eq!(scan, unset, "the scan was written");
        status
    };
    let text = text.as_bytes();
    fails(create(text, |o| o.struct_size = 3), RECON_UNKNOWN_STRUCT_SIZE, &["recon_scan_options_init"]);
    fails(create(text, |o| o.complete = 99), RECON_UNKNOWN_VALUE, &["complete is 99"]);
    fails(create(b"", |_| ()), RECON_BAD_FILE, &["malformed"]);
    fails(create(b"\xff\xfe", |_| ()), RECON_BAD_FILE, &["UTF-8"]);
    fails(create(b"<html/>", |_| ()), RECON_BAD_FILE, &["<html>"]);
    fails(create(&vec![b' '; (1 << 20) + 1], |_| ()), RECON_BAD_FILE, &["at most 1048576"]);
    let scan = ScanHandle::new(|_| ());
    scan.add_lines(0);
    scan.end();
    let image = scan.next().unwrap();
    let mut properties = init(recon_scan_properties_init);
    (properties.struct_size, properties.samples) = (5, 77);
    let mut counts = init(recon_scan_counts_init);
    (counts.struct_size, counts.image) = (5, 77);
    let mut geometry = init(recon_geometry_init);
    (geometry.struct_size, geometry.samples) = (5, 77);
    // SAFETY: the structures are alive, and the wrong size is found before anything is written.
    unsafe {
        let status = recon_scan_image_properties(image.0, &raw mut properties);
        fails(status, RECON_UNKNOWN_STRUCT_SIZE, &["recon_scan_properties_init"]);
        let status = recon_scan_acquisitions(scan.0, &raw mut counts);
        fails(status, RECON_UNKNOWN_STRUCT_SIZE, &["recon_scan_counts_init"]);
        let status = recon_scan_image_geometry(image.0, &raw mut geometry);
        fails(status, RECON_UNKNOWN_STRUCT_SIZE, &["recon_geometry_init"]);
    }
    assert_eq!((properties.samples, counts.image, geometry.samples), (77, 77, 77));
}

#[test]
fn images_are_complete_when_their_counter_changes() {
    let scan = ScanHandle::new(|o| o.complete = recon_scan_counter::RECON_SCAN_COUNTER_REPETITION as u32);
    assert!(scan.next().is_none(), "an image without acquisitions");
    scan.add_lines(0);
    assert!(scan.next().is_none(), "the repetition is not complete");
    scan.add_lines(1);
    let image = scan.next().unwrap();
    assert_eq!(image.properties().repetition, 0);
    assert!(scan.next().is_none());
    fails(scan.add(&line(0, 0), &samples(0, 0)), RECON_BAD_FILE, &["acquisition 24", "already complete"]);
    scan.end();
    scan.end();
    assert_eq!(scan.next().unwrap().properties().repetition, 1);
    assert!(scan.next().is_none());
    // Acquisitions after the end are added, and complete with the next end.
    scan.add_lines(2);
    assert!(scan.next().is_none());
    scan.end();
    let last = scan.next().unwrap();
    // An image does not need its scan.
    drop(scan);
    let expected: Vec<Complex<f32>> = (0..MATRIX[1]).flat_map(|step| samples(step, 2)).collect();
    same(&last.kspace(), &expected);
    let p = last.properties();
    assert_eq!((p.samples, p.shots, p.coils, p.ndim, p.repetition), (192, 12, 1, 2, 2));
}

#[test]
fn a_scan_continues_after_an_error() {
    let scan = ScanHandle::new(|_| ());
    let mut bad = samples(0, 0);
    bad[3].re = f32::NAN;
    fails(scan.add(&line(0, 0), &bad), RECON_NOT_FINITE, &["acquisition 0", "coil 0, sample 3"]);
    scan.add_lines(0);
    // Compressed samples are shorter than the header announces, and are not read.
    let compressed = AcquisitionHeader { flags: flag::bit(flag::COMPRESSION_1), ..line(1, 1) };
    fails(scan.add(&compressed, &[]), RECON_UNSUPPORTED, &["acquisition 13", "compressed"]);
    let unused = AcquisitionHeader { flags: 1 << 22, number_of_samples: u16::MAX, ..line(0, 0) };
    ok(scan.add(&unused, &[]));
    ok(scan.add(&AcquisitionHeader { discard_pre: 99, ..line(0, 1) }, &samples(0, 1)));
    scan.end();
    let image = scan.next().unwrap();
    assert_eq!(warnings(), []);
    let expected: Vec<Complex<f32>> = (0..MATRIX[1]).flat_map(|step| samples(step, 0)).collect();
    same(&image.kspace(), &expected);
    let mut next = null_mut();
    // SAFETY: the scan is alive.
    let status = unsafe { recon_scan_next(scan.0, &raw mut next) };
    fails(status, RECON_BAD_FILE, &["acquisition 15 keeps no samples"]);
    assert!(next.is_null() && scan.next().is_none());
    let counts = scan.counts();
    assert_eq!((counts.unused, counts.noise, counts.calibration), (1, 0, 0));
}

#[test]
fn doubtful_acquisitions_cause_warnings_of_next() {
    let scan = ScanHandle::new(|_| ());
    (0..MATRIX[1]).filter(|step| *step != 5).for_each(|step| ok(scan.add(&line(step, 0), &samples(step, 0))));
    scan.end();
    let _image = scan.next().unwrap();
    let [(kind, text)] = &warnings()[..] else { panic!("{:?}", warnings()) };
    assert_eq!(*kind, recon_warning::RECON_WARNING_ACQUISITIONS as u32);
    assert!(text.contains("kspace_encode_step_1 between 4 and 6"), "{text}");
}

#[test]
fn two_threads_use_a_scan() {
    let scan = ScanHandle::new(|_| ());
    std::thread::scope(|threads| {
        for repetition in 0..2 {
            let scan = &scan;
            threads.spawn(move || {
                (0..50).for_each(|set| {
                    for step in 0..MATRIX[1] {
                        let mut header = line(step, repetition);
                        header.idx.set = set;
                        ok(scan.add(&header, &samples(step, repetition)));
                    }
                })
            });
        }
    });
    scan.end();
    assert_eq!(scan.counts().image, 100 * MATRIX[1] as u64);
    let images = Mutex::new(Vec::new());
    std::thread::scope(|threads| {
        for _ in 0..2 {
            let (scan, images) = (&scan, &images);
            threads.spawn(move || {
                while let Some(image) = scan.next() {
                    let p = image.properties();
                    let expected: Vec<Complex<f32>> =
                        (0..MATRIX[1]).flat_map(|step| samples(step, p.repetition as usize)).collect();
                    same(&image.kspace(), &expected);
                    images.lock().unwrap().push((p.repetition, p.set));
                }
            });
        }
    });
    let images: HashSet<(u32, u32)> = images.into_inner().unwrap().into_iter().collect();
    assert_eq!(images.len(), 100);
}
