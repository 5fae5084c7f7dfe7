//! An independent interpretation of acquisitions: a direct reading of ISMRMRD's format, one acquisition at a time.

use crate::measurement::{Acquisition, Measurement};
use recon::scan::Scan;
use recon::Complex;
use std::collections::BTreeMap;

/// The data of an image.
#[derive(Default)]
pub struct ExpectedImage {
    /// One vector per axis.
    coordinates: Vec<Vec<f64>>,
    times: Vec<f64>,
    /// One vector per coil.
    data: Vec<Vec<Complex<f32>>>,
}

/// Encoding, slice, repetition, contrast, phase and set.
type Key = [u16; 6];

fn key(a: &Acquisition) -> Key {
    let i = &a.header.idx;
    [a.header.encoding_space_ref, i.slice, i.repetition, i.contrast, i.phase, i.set]
}

/// Returns whether an acquisition has one of these flags.
fn has(a: &Acquisition, flags: &[u32]) -> bool {
    flags.iter().any(|flag| a.header.flags >> (flag - 1) & 1 == 1)
}

/// Returns the images that the acquisitions should give.
pub fn images(measurement: &Measurement) -> BTreeMap<Key, ExpectedImage> {
    const UNUSED: [u32; 9] = [19, 23, 24, 26, 27, 28, 29, 30, 31];
    let mut images = BTreeMap::<Key, ExpectedImage>::new();
    let all = &measurement.acquisitions;
    let is_image = |a: &Acquisition| !has(a, &UNUSED) && (!has(a, &[20]) || has(a, &[21]));
    for (i, a) in all.iter().enumerate() {
        let steps = |a: &Acquisition| (a.header.idx.kspace_encode_step_1, a.header.idx.kspace_encode_step_2);
        let same = |b: &&Acquisition| key(b) == key(a) && steps(b) == steps(a);
        // The first calibration line of steps that the image does not have.
        let joins = measurement.interpretation.is_embedded
            && !has(a, &UNUSED)
            && all.iter().any(|b| is_image(b) && key(b) == key(a))
            && !all.iter().filter(same).any(is_image)
            && !all[..i].iter().filter(same).any(|b| !has(b, &UNUSED));
        if is_image(a) || joins {
            add(images.entry(key(a)).or_default(), a, measurement);
        }
    }
    images
}

fn add(image: &mut ExpectedImage, a: &Acquisition, measurement: &Measurement) {
    let (h, [nx, ny, nz]) = (&a.header, measurement.interpretation.matrix);
    let ndim = if nz > 1 { 3 } else { 2 };
    let count = h.number_of_samples as usize;
    image.coordinates.resize(ndim, Vec::new());
    image.data.resize(h.active_channels as usize, Vec::new());
    let centre = match h.center_sample as usize {
        // Unknown.
        0 if count > nx / 2 => count / 2,
        centre => centre,
    };
    for sample in h.discard_pre as usize..count - h.discard_post as usize {
        if h.trajectory_dimensions > 0 {
            let d = h.trajectory_dimensions as usize;
            (0..ndim).for_each(|axis| image.coordinates[axis].push(a.trajectory[sample * d + axis].into()));
        } else {
            let place = if has(a, &[22]) { count - 1 - sample } else { sample };
            let [cy, cz] = measurement.interpretation.centres;
            let k = [
                (place as f64 - centre as f64) / nx as f64,
                (f64::from(h.idx.kspace_encode_step_1) - cy) / ny as f64,
                (f64::from(h.idx.kspace_encode_step_2) - cz) / nz as f64,
            ];
            (0..ndim).for_each(|axis| image.coordinates[axis].push(k[axis]));
        }
        image.times.push(sample as f64 * f64::from(h.sample_time_us) * 1e-6);
        for coil in 0..h.active_channels as usize {
            image.data[coil].push(a.data[coil * count + sample]);
        }
    }
}

/// Returns the first difference from the images of the library.
pub fn difference(expected: &BTreeMap<Key, ExpectedImage>, scans: &[Scan]) -> Option<String> {
    let key = |scan: &Scan| {
        let i = &scan.index;
        [i.encoding, i.slice, i.repetition, i.contrast, i.phase, i.set]
    };
    let keys: Vec<Key> = scans.iter().map(key).collect();
    if !keys.iter().eq(expected.keys()) {
        return Some(format!("images {keys:?}, expected {:?}", expected.keys()));
    }
    for (scan, (key, image)) in scans.iter().zip(expected) {
        if scan.data != image.data.concat() {
            return Some(format!("the data of image {key:?} differ"));
        }
        // k is defined modulo 1.
        let is_same_k = |a: f64, b: f64| (a - b - (a - b).round()).abs() < 1e-6;
        let axes = scan.coordinates.len() == image.coordinates.len();
        let mut pairs = scan.coordinates.iter().zip(&image.coordinates);
        let is_near =
            |a: &[f32], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| is_same_k(a.into(), b));
        if !axes || !pairs.all(|(a, b)| is_near(a, b)) {
            return Some(format!("the coordinates of image {key:?} differ"));
        }
        let same_time = |a: f32, b: f64| (f64::from(a) - b).abs() <= 1e-6 * b.abs();
        if scan.times.len() != image.times.len() || !scan.times.iter().zip(&image.times).all(|(a, b)| same_time(*a, *b))
        {
            return Some(format!("the times of image {key:?} differ"));
        }
    }
    None
}
