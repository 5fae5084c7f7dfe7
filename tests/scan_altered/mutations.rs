//! Random bytes in the XML header, the acquisition headers and the samples, through the C API.

use crate::acquisitions::header_bytes;
use crate::common::Random;
use crate::measurement::*;
use recon::ffi::*;
use recon::scan::AcquisitionHeader;
use recon::Complex;
use std::ffi::CStr;
use std::ptr::{null, null_mut};
use std::time::{Duration, Instant};

/// A measurement in bytes.
#[derive(Clone)]
struct Bytes {
    xml: Vec<u8>,
    headers: Vec<[u8; AcquisitionHeader::BYTES]>,
    trajectories: Vec<Vec<f32>>,
    data: Vec<Vec<Complex<f32>>>,
}

fn bytes(m: &Measurement) -> Bytes {
    let all = &m.acquisitions;
    Bytes {
        xml: m.xml.clone().into_bytes(),
        headers: all.iter().map(|a| header_bytes(&a.header)).collect(),
        trajectories: all.iter().map(|a| a.trajectory.clone()).collect(),
        data: all.iter().map(|a| a.data.clone()).collect(),
    }
}

/// Values that readers get wrong, as bytes.
const ODD: [[u8; 2]; 6] = [[0, 0], [255, 255], [255, 127], [0, 128], [1, 0], [128, 127]];

/// Alters bytes of a measurement.
fn mutate(random: &mut Random, from: &Bytes) -> Bytes {
    let mut m = from.clone();
    for _ in 0..1 + random.below(4) {
        let which = random.below(m.headers.len());
        match random.below(8) {
            0 => {
                let at = random.below(m.xml.len());
                m.xml[at] = random.below(256) as u8;
            }
            1 => {
                // Parts are removed or repeated.
                let (a, b) = (random.below(m.xml.len()), random.below(m.xml.len()));
                let part = m.xml[a.min(b)..a.max(b)].to_vec();
                let keep = random.below(2) == 0;
                m.xml.splice(a.min(b)..a.max(b), if keep { [&part[..], &part[..]].concat() } else { Vec::new() });
                // The next alteration needs a byte.
                m.xml.push(b' ');
            }
            2 => {
                let digits: Vec<usize> = (0..m.xml.len()).filter(|&i| m.xml[i].is_ascii_digit()).collect();
                if !digits.is_empty() {
                    m.xml[digits[random.below(digits.len())]] = b'0' + random.below(10) as u8;
                }
            }
            3 => {
                let at = random.below(AcquisitionHeader::BYTES);
                m.headers[which][at] = random.below(256) as u8;
            }
            4 => {
                let at = 2 * random.below(AcquisitionHeader::BYTES / 2);
                m.headers[which][at..at + 2].copy_from_slice(&ODD[random.below(ODD.len())]);
            }
            5 => {
                let flag = random.below(64);
                m.headers[which][2 + flag / 8] ^= 1 << (flag % 8);
            }
            6 => {
                let other = random.below(m.headers.len());
                m.headers.swap(which, other);
            }
            _ => {
                let values = [f32::NAN, f32::INFINITY, f32::MAX, -0.5, 0.5, 1e-40];
                let value = values[random.below(values.len())];
                match m.trajectories[which].is_empty() || random.below(2) == 0 {
                    true => m.data[which][0].re = value,
                    false => m.trajectories[which][0] = value,
                }
            }
        }
    }
    m
}

/// Asserts that a call succeeded, or that its error has a message of one line. Returns whether it succeeded.
fn is_ok(status: recon_status, seed: u64) -> bool {
    if status == recon_status::RECON_OK {
        return true;
    }
    // SAFETY: a C string that lives until this thread's next failure.
    let message = unsafe { CStr::from_ptr(recon_last_error_message()) }.to_str().unwrap();
    assert_ne!(status, recon_status::RECON_INTERNAL, "seed {seed}: {message}");
    assert!(!message.is_empty() && !message.contains('\n'), "seed {seed}: {message:?}");
    false
}

/// Feeds a measurement to the C API. Returns the number of images.
fn feed(m: &Bytes, seed: u64) -> usize {
    let (mut scan, mut images) = (null_mut(), 0);
    // SAFETY: the arrays have the lengths that the headers announce, and handles are used while they exist.
    unsafe {
        if !is_ok(recon_scan_create(m.xml.as_ptr().cast(), m.xml.len() as u64, null(), &raw mut scan), seed) {
            return 0;
        }
        for (i, header) in m.headers.iter().enumerate() {
            let read = AcquisitionHeader::from_bytes(header);
            let (count, coils) = (read.number_of_samples as usize, read.active_channels as usize);
            let dimensions = read.trajectory_dimensions as usize;
            // The largest acquisition has 34 GB.
            if count * coils.max(dimensions) > 1 << 18 {
                continue;
            }
            let (mut trajectory, mut data) = (m.trajectories[i].clone(), m.data[i].clone());
            trajectory.resize(count * dimensions, 0.25);
            data.resize(count * coils, Complex::new(1.0, 0.0));
            let trajectory = if trajectory.is_empty() { null() } else { trajectory.as_ptr() };
            is_ok(recon_scan_add(scan, header.as_ptr().cast(), trajectory, data.as_ptr().cast()), seed);
        }
        assert!(is_ok(recon_scan_end(scan), seed));
        loop {
            let mut image = null_mut();
            if !is_ok(recon_scan_next(scan, &raw mut image), seed) {
                continue;
            }
            if image.is_null() {
                break;
            }
            images += 1;
            check(image, seed);
            recon_scan_image_destroy(image);
        }
        recon_scan_destroy(scan);
    }
    images
}

/// Reads all arrays of an image.
///
/// # Safety
/// The image exists.
unsafe fn check(image: *mut recon_scan_image, seed: u64) {
    let mut properties = std::mem::MaybeUninit::<recon_scan_properties>::uninit();
    let mut calibration = null_mut();
    // SAFETY: the structure has the size given, and the arrays have the documented lengths.
    unsafe {
        let size = size_of::<recon_scan_properties>() as u32;
        assert!(is_ok(recon_scan_properties_init(properties.as_mut_ptr(), size), seed));
        assert!(is_ok(recon_scan_image_properties(image, properties.as_mut_ptr()), seed));
        let p = properties.assume_init();
        let samples = p.samples as usize;
        for k in p.coordinates.iter().filter(|k| !k.is_null()) {
            let k = std::slice::from_raw_parts(*k, samples);
            assert!(k.iter().all(|k| (-0.5..0.5).contains(k)), "seed {seed}");
        }
        let kspace = std::slice::from_raw_parts(p.kspace.cast::<Complex<f32>>(), samples * p.coils as usize);
        // Whitening may overflow, and the plan then refuses the data.
        assert!(p.is_whitened == 1 || kspace.iter().all(|z| z.is_finite()), "seed {seed}");
        let shots = std::slice::from_raw_parts(p.samples_per_shot, p.shots as usize);
        assert_eq!(shots.iter().sum::<u64>(), p.samples, "seed {seed}");
        if is_ok(recon_scan_image_calibration(image, &raw mut calibration), seed) {
            recon_scan_image_destroy(calibration);
        }
    }
}

/// Returns the largest memory of this process so far in MiB; `None` if the system does not say it.
fn peak_memory() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<usize>().ok().map(|kib| kib >> 10)
}

#[test]
fn random_bytes_are_errors_or_images() {
    const COUNT: u64 = 20_000;
    let base = std::env::var("RECON_TEST_SEED").map_or(32, |seed| seed.parse().expect("RECON_TEST_SEED is a number"));
    println!("seeds {base} to {}", base + COUNT - 1);
    let all = [cartesian_2d(), cartesian_3d(), radial("radial"), slices(), averages(), noise(), embedded(), separate()];
    let all: Vec<Bytes> = all.iter().map(bytes).collect();
    let start = Instant::now();
    let mut images = 0;
    for seed in base..base + COUNT {
        let mut random = Random::of(seed);
        let valid = &all[random.below(all.len())];
        images += feed(&mutate(&mut random, valid), seed);
        // A slow machine makes fewer alterations.
        if start.elapsed() > Duration::from_secs(10) {
            println!("stopped after seed {seed}");
            break;
        }
    }
    println!("{images} images in {:.1} s", start.elapsed().as_secs_f64());
    assert!(images > 100, "{images} images: the alterations leave nothing");
    if let Some(peak) = peak_memory() {
        assert!(peak < 1024, "{peak} MiB");
    }
}

/// Headers that announce many coils, without samples, must not need memory for each coil.
#[test]
fn memory_is_bounded_by_the_samples() {
    let m = cartesian_2d();
    let mut hostile = bytes(&m);
    hostile.headers = (0..20_000)
        .map(|i| {
            let mut header = m.acquisitions[0].header;
            (header.number_of_samples, header.active_channels) = (0, u16::MAX);
            header.flags = if i % 2 == 0 { mask(&[NOISE]) } else { 0 };
            // Groups of noise, and images.
            header.sample_time_us = i as f32 * 0.25;
            (header.idx.slice, header.idx.repetition) = (i as u16, (i / 2) as u16);
            header_bytes(&header)
        })
        .collect();
    hostile.trajectories = vec![Vec::new(); hostile.headers.len()];
    hostile.data = vec![Vec::new(); hostile.headers.len()];
    assert_eq!(feed(&hostile, 0), 0);
    if let Some(peak) = peak_memory() {
        assert!(peak < 1024, "{peak} MiB");
    }
}

#[test]
fn headers_are_written_as_they_are_read() {
    let mut random = Random::fresh();
    let bytes: [u8; AcquisitionHeader::BYTES] = std::array::from_fn(|i| (i + random.below(3)) as u8 & 63);
    assert_eq!(header_bytes(&AcquisitionHeader::from_bytes(&bytes)), bytes, "seed {}", random.seed);
}
