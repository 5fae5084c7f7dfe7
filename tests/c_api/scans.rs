//! Scans: acquisitions that become the data of images.

use crate::acquisitions::header_bytes;
use crate::support::*;
use recon::scan::{flag, AcquisitionHeader, EncodingLimits, EncodingSpace, Header, HeaderEncoding, TrajectoryKind};

pub const MATRIX: [usize; 3] = [16, 12, 1];

/// Returns the header of a Cartesian scan.
pub fn cartesian() -> Header {
    let space = EncodingSpace { matrix: MATRIX, fov_mm: [160.0, 120.0, 5.0] };
    let limits = EncodingLimits { minimum: 0, maximum: MATRIX[1] as u16 - 1, center: MATRIX[1] as u16 / 2 };
    let encoding = HeaderEncoding {
        encoded: space,
        recon: space,
        trajectory: TrajectoryKind::Cartesian,
        steps: [Some(limits), None],
        ..Default::default()
    };
    Header { encodings: vec![encoding], ..Default::default() }
}

fn xml() -> String {
    cartesian().to_xml()
}

pub fn line(step: usize, repetition: usize) -> AcquisitionHeader {
    let mut header = AcquisitionHeader {
        number_of_samples: MATRIX[0] as u16,
        active_channels: 1,
        center_sample: MATRIX[0] as u16 / 2,
        ..Default::default()
    };
    (header.idx.kspace_encode_step_1, header.idx.repetition) = (step as u16, repetition as u16);
    header
}

pub fn samples(step: usize, repetition: usize) -> Vec<Complex<f32>> {
    (0..MATRIX[0]).map(|i| Complex::new((100 * repetition + step) as f32, i as f32)).collect()
}

/// A scan that is destroyed when it goes out of scope.
pub struct ScanHandle(pub *mut recon_scan);

// SAFETY: several threads may use a scan.
unsafe impl Sync for ScanHandle {}

impl ScanHandle {
    pub fn new(change: impl FnOnce(&mut recon_scan_options)) -> ScanHandle {
        ScanHandle::with_header(&cartesian(), change)
    }

    pub fn with_header(header: &Header, change: impl FnOnce(&mut recon_scan_options)) -> ScanHandle {
        let mut options = init(recon_scan_options_init);
        change(&mut options);
        let (text, mut scan) = (header.to_xml(), null_mut());
        // SAFETY: the text has this length.
        ok(unsafe { recon_scan_create(text.as_ptr().cast(), text.len() as u64, &raw const options, &raw mut scan) });
        ScanHandle(scan)
    }

    pub fn add(&self, header: &AcquisitionHeader, data: &[Complex<f32>]) -> recon_status {
        // SAFETY: the data have the length that the header announces, or an error comes first.
        unsafe { recon_scan_add(self.0, header_bytes(header).as_ptr().cast(), null(), data.as_ptr().cast()) }
    }

    pub fn add_lines(&self, repetition: usize) {
        (0..MATRIX[1]).for_each(|step| ok(self.add(&line(step, repetition), &samples(step, repetition))));
    }

    /// Returns the status of the next image, which does not exist.
    pub fn next_fails(&self, status: recon_status, words: &[&str]) {
        let unset = 0x1230 as *mut recon_scan_image;
        let mut image = unset;
        // SAFETY: the scan is alive.
        fails(unsafe { recon_scan_next(self.0, &raw mut image) }, status, words);
        assert_eq!(image, unset, "the image was written");
    }

    /// Returns the next image; `None` if no image is complete.
    pub fn next(&self) -> Option<ImageHandle> {
        let mut image = null_mut();
        // SAFETY: the scan is alive.
        ok(unsafe { recon_scan_next(self.0, &raw mut image) });
        (!image.is_null()).then_some(ImageHandle(image))
    }

    pub fn complete(&self) {
        // SAFETY: the scan is alive.
        ok(unsafe { recon_scan_complete(self.0) });
    }

    /// Whitens the data of an acquisition.
    pub fn whiten(&self, header: &AcquisitionHeader, data: &mut [Complex<f32>]) -> recon_status {
        // SAFETY: the data have the length that the header announces, or an error comes first.
        unsafe { recon_scan_whiten(self.0, header_bytes(header).as_ptr().cast(), data.as_mut_ptr().cast()) }
    }

    pub fn end(&self) {
        // SAFETY: the scan is alive.
        ok(unsafe { recon_scan_end(self.0) });
    }

    pub fn counts(&self) -> recon_scan_counts {
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

pub struct ImageHandle(pub *mut recon_scan_image);

impl ImageHandle {
    pub fn properties(&self) -> recon_scan_properties {
        let mut properties = init(recon_scan_properties_init);
        // SAFETY: the image and the structure are alive.
        ok(unsafe { recon_scan_image_properties(self.0, &raw mut properties) });
        properties
    }

    /// Returns the headers of the first and the last acquisition.
    pub fn acquisitions(&self) -> [AcquisitionHeader; 2] {
        let p = self.properties();
        // SAFETY: the arrays have the documented length.
        [p.first_acquisition, p.last_acquisition]
            .map(|at| AcquisitionHeader::from_bytes(unsafe { &*at.cast::<[u8; AcquisitionHeader::BYTES]>() }))
    }

    /// Returns the calibration data; `None` for a null pointer.
    pub fn calibration(&self) -> Option<ImageHandle> {
        let mut calibration = null_mut();
        // SAFETY: the image is alive.
        ok(unsafe { recon_scan_image_calibration(self.0, &raw mut calibration) });
        (!calibration.is_null()).then_some(ImageHandle(calibration))
    }

    pub fn kspace(&self) -> Vec<Complex<f32>> {
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
        null_pointer(recon_scan_whiten(null_mut(), header.as_ptr().cast(), data.as_ptr() as *mut c_void), "scan");
        null_pointer(recon_scan_whiten(scan.0, null(), data.as_ptr() as *mut c_void), "header");
        null_pointer(recon_scan_whiten(scan.0, header.as_ptr().cast(), null_mut()), "data");
        null_pointer(recon_scan_complete(null_mut()), "scan");
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
    // Acquisitions without data or trajectory are counted.
    assert_eq!(scan.counts().image, MATRIX[1] as u64 + 2);
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

/// An acquisition that is refused is missing in its image: the image is refused for the same reason.
#[test]
fn images_are_not_made_without_refused_acquisitions() {
    let scan = ScanHandle::new(|_| ());
    (0..7).for_each(|repetition| scan.add_lines(repetition));
    let mut bad = samples(0, 0);
    bad[3].re = f32::NAN;
    fails(scan.add(&line(0, 1), &bad), RECON_NOT_FINITE, &["acquisition 84", "coil 0, sample 3"]);
    // Compressed samples are shorter than the header announces, and are not read.
    let compressed = AcquisitionHeader { flags: flag::bit(flag::COMPRESSION_1), ..line(1, 2) };
    fails(scan.add(&compressed, &[]), RECON_UNSUPPORTED, &["acquisition 85", "compressed"]);
    let unused = AcquisitionHeader { flags: 1 << 22, number_of_samples: u16::MAX, ..line(0, 0) };
    ok(scan.add(&unused, &[]));
    ok(scan.add(&AcquisitionHeader { discard_pre: 99, ..line(0, 3) }, &samples(0, 3)));
    let backwards = AcquisitionHeader { sample_time_us: -1.0, ..line(0, 4) };
    fails(scan.add(&backwards, &samples(0, 4)), RECON_BAD_FILE, &["acquisition 88", "-1 microseconds"]);
    // SAFETY: data and trajectory are null, which is found before they are read.
    unsafe {
        let header = header_bytes(&line(0, 5));
        let status = recon_scan_add(scan.0, header.as_ptr().cast(), null(), null());
        fails(status, RECON_NULL_POINTER, &["acquisition 89", "data"]);
        let header = header_bytes(&AcquisitionHeader { trajectory_dimensions: 2, ..line(0, 6) });
        let status = recon_scan_add(scan.0, header.as_ptr().cast(), null(), bad.as_ptr().cast());
        fails(status, RECON_NULL_POINTER, &["acquisition 90", "trajectory"]);
    }
    // An image of which no acquisition was accepted; its first error counts.
    fails(scan.add(&line(0, 7), &bad), RECON_NOT_FINITE, &["acquisition 91"]);
    fails(scan.add(&AcquisitionHeader { sample_time_us: -1.0, ..line(1, 7) }, &bad), RECON_BAD_FILE, &[]);
    scan.end();
    let image = scan.next().unwrap();
    assert_eq!(warnings(), []);
    let expected: Vec<Complex<f32>> = (0..MATRIX[1]).flat_map(|step| samples(step, 0)).collect();
    same(&image.kspace(), &expected);
    scan.next_fails(RECON_NOT_FINITE, &["acquisition 84: coil 0, sample 3"]);
    scan.next_fails(RECON_UNSUPPORTED, &["acquisition 85", "compressed"]);
    scan.next_fails(RECON_BAD_FILE, &["acquisition 87 keeps no samples"]);
    scan.next_fails(RECON_BAD_FILE, &["acquisition 88", "-1 microseconds"]);
    scan.next_fails(RECON_NULL_POINTER, &["acquisition 89", "data"]);
    scan.next_fails(RECON_NULL_POINTER, &["acquisition 90", "trajectory"]);
    scan.next_fails(RECON_NOT_FINITE, &["acquisition 91"]);
    assert!(scan.next().is_none());
    let counts = scan.counts();
    assert_eq!((counts.image, counts.unused, counts.noise, counts.calibration), (92, 1, 0, 0));
    // An image that is complete stays as it is, also if it was not taken.
    let scan = ScanHandle::new(|o| o.complete = recon_scan_counter::RECON_SCAN_COUNTER_REPETITION as u32);
    (0..2).for_each(|repetition| scan.add_lines(repetition));
    fails(scan.add(&line(0, 0), &bad), RECON_NOT_FINITE, &["acquisition 24"]);
    same(&scan.next().unwrap().kspace(), &expected);
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
