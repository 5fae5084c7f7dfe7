//! Feeds arbitrary bytes to recon_scan_*: an XML header, acquisition headers and their arrays. Every call must return
//! an error or a result. It must never panic, and never access memory outside an array (cargo fuzz builds with
//! AddressSanitizer).
//!
//!     RUSTC_BOOTSTRAP=1 cargo fuzz run scan -- -max_total_time=60 -rss_limit_mb=1024

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use recon::ffi::*;
use recon::scan::AcquisitionHeader;
use recon::Complex;
use std::mem::MaybeUninit;
use std::ptr::null_mut;

#[derive(Arbitrary, Debug)]
struct Input {
    /// Replacements in a valid header: position, and the new bytes.
    edits: Vec<(u16, Vec<u8>)>,
    /// A header instead of the valid one.
    xml: Option<Vec<u8>>,
    complete: u32,
    conjugate: bool,
    window: u32,
    acquisitions: Vec<Acquisition>,
}

#[derive(Arbitrary, Debug)]
struct Acquisition {
    header: Vec<u8>,
    /// Small sizes, which most inputs need to get further.
    samples: Option<u8>,
    coils: Option<u8>,
    dimensions: Option<u8>,
    value: f32,
    k: f32,
    /// Whether the images of the acquisitions so far are completed.
    completes: bool,
}

const XML: &str = "<ismrmrdHeader><encoding><encodedSpace><matrixSize><x>16</x><y>16</y><z>1</z></matrixSize>\
    <fieldOfView_mm><x>1</x><y>1</y><z>1</z></fieldOfView_mm></encodedSpace><reconSpace><matrixSize><x>16</x><y>16</y>\
    <z>1</z></matrixSize><fieldOfView_mm><x>1</x><y>1</y><z>1</z></fieldOfView_mm></reconSpace>\
    <trajectory>cartesian</trajectory><encodingLimits><kspace_encoding_step_1><minimum>0</minimum><maximum>15</maximum>\
    <center>8</center></kspace_encoding_step_1></encodingLimits><parallelImaging><accelerationFactor>\
    <kspace_encoding_step_1>2</kspace_encoding_step_1></accelerationFactor><calibrationMode>embedded</calibrationMode>\
    </parallelImaging></encoding></ismrmrdHeader>";

/// Returns the text of the XML header.
fn text(input: &Input) -> Vec<u8> {
    let mut text = input.xml.clone().unwrap_or_else(|| XML.as_bytes().to_vec());
    for (at, bytes) in input.edits.iter().take(8) {
        let at = *at as usize % (text.len() + 1);
        let end = (at + bytes.len()).min(text.len());
        text.splice(at..end, bytes.iter().copied());
    }
    text
}

/// Returns the bytes of a header, with the small sizes of the input.
fn header(a: &Acquisition) -> [u8; AcquisitionHeader::BYTES] {
    let mut bytes = [0; AcquisitionHeader::BYTES];
    bytes.iter_mut().zip(&a.header).for_each(|(to, from)| *to = *from);
    for (at, size) in [(34, a.samples), (38, a.coils), (176, a.dimensions)] {
        if let Some(size) = size {
            bytes[at..at + 2].copy_from_slice(&u16::from(size).to_le_bytes());
        }
    }
    bytes
}

fuzz_target!(|input: Input| {
    let (text, mut scan) = (text(&input), null_mut());
    // SAFETY: arrays have the lengths that the headers announce, and handles are used while they exist.
    unsafe {
        let mut options = MaybeUninit::<recon_scan_options>::uninit();
        let status = recon_scan_options_init(options.as_mut_ptr(), size_of::<recon_scan_options>() as u32);
        assert_eq!(status, recon_status::RECON_OK);
        let mut options = options.assume_init();
        (options.complete, options.conjugate) = (input.complete % 7, input.conjugate.into());
        options.window = input.window % 4;
        let status = recon_scan_create(text.as_ptr().cast(), text.len() as u64, &raw const options, &raw mut scan);
        if status != recon_status::RECON_OK {
            assert_ne!(status, recon_status::RECON_INTERNAL);
            return;
        }
        for a in input.acquisitions.iter().take(64) {
            let bytes = header(a);
            let h = AcquisitionHeader::from_bytes(&bytes);
            let (samples, coils) = (h.number_of_samples as usize, h.active_channels as usize);
            let dimensions = h.trajectory_dimensions as usize;
            if samples * coils.max(dimensions) > 1 << 16 {
                continue;
            }
            let (trajectory, mut data) =
                (vec![a.k; samples * dimensions], vec![Complex::new(a.value, 1.0); samples * coils]);
            let status = recon_scan_add(scan, bytes.as_ptr().cast(), trajectory.as_ptr(), data.as_ptr().cast());
            assert_ne!(status, recon_status::RECON_INTERNAL);
            let status = recon_scan_whiten(scan, bytes.as_ptr().cast(), data.as_mut_ptr().cast());
            assert_ne!(status, recon_status::RECON_INTERNAL);
            if a.completes {
                assert_eq!(recon_scan_complete(scan), recon_status::RECON_OK);
            }
            take(scan);
        }
        assert_eq!(recon_scan_end(scan), recon_status::RECON_OK);
        take(scan);
        recon_scan_destroy(scan);
    }
});

/// Takes all complete images.
///
/// # Safety
/// The scan exists.
unsafe fn take(scan: *mut recon_scan) {
    loop {
        let (mut image, mut calibration) = (null_mut(), null_mut());
        // SAFETY: the scan exists, and the image is destroyed once.
        unsafe {
            let status = recon_scan_next(scan, &raw mut image);
            assert_ne!(status, recon_status::RECON_INTERNAL);
            match (status, image.is_null()) {
                (recon_status::RECON_OK, true) => return,
                (recon_status::RECON_OK, false) => {}
                _ => continue,
            }
            assert_ne!(recon_scan_image_calibration(image, &raw mut calibration), recon_status::RECON_INTERNAL);
            recon_scan_image_destroy(calibration);
            recon_scan_image_destroy(image);
        }
    }
}
