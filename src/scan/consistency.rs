//! Checks that the acquisitions of one image agree with each other and with the XML header. A contradiction that leaves
//! the data usable is a warning.

use super::acquisition_header::AcquisitionHeader;
use super::header::{EncodingLimits, HeaderEncoding};
use super::scan_data::Scan;
use super::shots::Shot;
use super::warnings::warn;
use std::collections::{BTreeMap, BTreeSet};

/// The largest distance in mm of two positions that count as one. Slices have larger distances.
const SAME_POSITION_MM: f64 = 0.1;
/// The largest difference of two unit vectors that count as one direction.
const SAME_DIRECTION: f64 = 0.01;

/// Warns if acquisitions contradict each other or the header.
pub(super) fn check(encoding: &HeaderEncoding, shots: &[Shot]) {
    check_placement(shots);
    check_receiver(shots);
    check_limits(encoding, shots);
}

/// Warns of counters that sort acquisitions into images and are outside the header's limits.
fn check_limits(encoding: &HeaderEncoding, shots: &[Shot]) {
    type Counter = fn(&AcquisitionHeader) -> u16;
    let counters: [(&str, Option<EncodingLimits>, Counter); 5] = [
        ("slice", encoding.slices, |h| h.idx.slice),
        ("contrast", encoding.contrasts, |h| h.idx.contrast),
        ("phase", encoding.phases, |h| h.idx.phase),
        ("repetition", encoding.repetitions, |h| h.idx.repetition),
        ("set", encoding.sets, |h| h.idx.set),
    ];
    for (name, limits, counter) in counters {
        warn_outside(name, limits, shots, counter);
    }
}

/// Warns of encoding steps outside the header's limits. `which`: 0 for step 1, 1 for step 2.
pub(super) fn check_step_limits(encoding: &HeaderEncoding, which: usize, shots: &[Shot]) {
    let name = ["kspace_encode_step_1", "kspace_encode_step_2"][which];
    warn_outside(name, encoding.steps[which], shots, |header| header.steps()[which]);
}

fn warn_outside(
    name: &str,
    limits: Option<EncodingLimits>,
    shots: &[Shot],
    counter: impl Fn(&AcquisitionHeader) -> u16,
) {
    let Some(limits) = limits else { return };
    let is_outside = |shot: &&Shot| !(limits.minimum..=limits.maximum).contains(&counter(&shot.header));
    if let Some(shot) = shots.iter().find(is_outside) {
        warn(format!(
            "acquisition {}: {name} is {}, but the encoding limits in the XML header are {} to {}: correct the counter \
             or the limits",
            shot.number,
            counter(&shot.header),
            limits.minimum,
            limits.maximum
        ));
    }
}

/// Warns if positions or directions are not finite or differ.
fn check_placement(shots: &[Shot]) {
    type Vector = fn(&AcquisitionHeader) -> [f32; 3];
    let vectors: [(&str, Vector, f64); 5] = [
        ("position", |h| h.position, SAME_POSITION_MM),
        ("read_dir", |h| h.read_dir, SAME_DIRECTION),
        ("phase_dir", |h| h.phase_dir, SAME_DIRECTION),
        ("slice_dir", |h| h.slice_dir, SAME_DIRECTION),
        // The table may move while an image is measured.
        ("patient_table_position", |h| h.patient_table_position, f64::INFINITY),
    ];
    let first = &shots[0];
    for (name, vector, tolerance) in vectors {
        if let Some(shot) = shots.iter().find(|shot| vector(&shot.header).iter().any(|x| !x.is_finite())) {
            let value = vector(&shot.header);
            warn(format!("acquisition {}: {name} is {value:?}: the place of the image is unknown", shot.number));
            continue;
        }
        let distance = |shot: &Shot| -> f64 {
            let pairs = vector(&shot.header).into_iter().zip(vector(&first.header));
            pairs.map(|(a, b)| (f64::from(a) - f64::from(b)).powi(2)).sum::<f64>().sqrt()
        };
        if let Some(shot) = shots.iter().find(|shot| distance(shot) > tolerance) {
            warn(format!(
                "acquisition {}: {name} is {:?}, and that of acquisition {} of the same image is {:?}: the image has \
                 the place of the first one. If they belong to different images, correct their counters",
                shot.number,
                vector(&shot.header),
                first.number,
                vector(&first.header)
            ));
        }
    }
    let placement = first.header.placement();
    let directions = [placement.read_dir, placement.phase_dir, placement.slice_dir];
    let is_finite = directions.iter().flatten().chain(&placement.position).all(|x| x.is_finite());
    if is_finite && directions != [[0.0; 3]; 3] && !placement.is_known() {
        warn(format!(
            "acquisition {}: read_dir, phase_dir and slice_dir are {directions:?}, which are not perpendicular unit \
             vectors: the orientation of the image is unknown",
            first.number
        ));
    }
}

/// Warns if the receiver's parameters differ.
fn check_receiver(shots: &[Shot]) {
    let first = &shots[0];
    if let Some(shot) = shots.iter().find(|shot| shot.header.sample_time_us != first.header.sample_time_us) {
        warn(format!(
            "acquisition {}: sample_time_us is {}, and that of acquisition {} of the same image is {}: noise is scaled \
             for the first one",
            shot.number, shot.header.sample_time_us, first.number, first.header.sample_time_us
        ));
    }
    if let Some(shot) = shots.iter().find(|shot| shot.header.channel_mask != first.header.channel_mask) {
        warn(format!(
            "acquisitions {} and {} of the same image have different values of channel_mask: their data are used as if \
             they came from the same coils",
            first.number, shot.number
        ));
    }
}

/// Warns of missing lines within a Cartesian grid. Lines may be missing at the ends of k-space.
pub(super) fn check_gaps(encoding: &HeaderEncoding, shots: &[Shot]) {
    let factors = encoding.parallel.map_or([1; 2], |parallel| parallel.acceleration.map(|factor| factor.max(1)));
    // Regular undersampling of both axes may be shifted from plane to plane, so that only the steps of all planes
    // together are regular.
    let is_complete = factors == [1; 2];
    let mut planes: BTreeMap<u16, BTreeSet<u16>> = BTreeMap::new();
    for shot in shots {
        let [first, second] = shot.header.steps();
        planes.entry(if is_complete { second } else { 0 }).or_default().insert(first);
    }
    let second: BTreeSet<u16> = shots.iter().map(|shot| shot.header.steps()[1]).collect();
    let gaps = planes.values().map(|steps| (0, largest_gap(steps))).chain([(1, largest_gap(&second))]);
    let wide = gaps.filter_map(|(which, gap)| gap.map(|[a, b]| (which, a, b)));
    let Some((which, a, b)) = wide.into_iter().find(|(which, a, b)| b - a > factors[*which]) else { return };
    warn(format!(
        "an image has no acquisition with kspace_encode_step_{} between {a} and {b}, but the acceleration factor in the \
         XML header is {}: the image will be aliased. Acquisitions are missing, or have wrong counters or flags. If the \
         scan is undersampled on purpose, set accelerationFactor",
        which + 1,
        factors[which]
    ));
}

/// Returns the neighbouring steps with the largest distance; `None` for fewer than two steps.
pub(super) fn largest_gap(steps: &BTreeSet<u16>) -> Option<[u16; 2]> {
    let pairs = steps.iter().zip(steps.iter().skip(1));
    // The first one of equal gaps.
    pairs.map(|(&a, &b)| [a, b]).rev().max_by_key(|[a, b]| b - a)
}

/// The distance below which two samples count as one point of k-space, in units of 1 / field of view.
const SAME_POINT: f64 = 0.5;
/// The distance below which a sample counts as on a line. A small disc around the centre of k-space is not a line.
const SAME_LINE: f64 = 0.05;

/// Warns if all samples lie at one point or on one line of k-space, although the image has several voxels across it.
pub(super) fn check_spread(scan: &Scan) {
    let axes: Vec<usize> = (0..scan.ndim).filter(|&axis| scan.encoded_matrix[axis] > 1).collect();
    // The position of a sample relative to the first one, in units of 1 / field of view.
    let offset = |m: usize| -> [f64; 3] {
        let mut offset = [0.0; 3];
        for &axis in &axes {
            let k = &scan.coordinates[axis];
            offset[axis] = (f64::from(k[m]) - f64::from(k[0])) * scan.encoded_matrix[axis] as f64;
        }
        offset
    };
    let dot = |a: [f64; 3], b: [f64; 3]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let samples = scan.samples();
    if axes.is_empty() {
        return;
    }
    // The search ends at the first samples that span a plane.
    let Some(line) = (0..samples).map(offset).find(|&p| dot(p, p) >= SAME_POINT.powi(2)) else {
        warn(format!(
            "all {samples} samples lie at one point of k-space: the image does not show the object. Check whether the \
             trajectory was ever filled in"
        ));
        return;
    };
    let is_across = |p: [f64; 3]| dot(p, p) - dot(p, line).powi(2) / dot(line, line) >= SAME_LINE.powi(2);
    if axes.len() > 1 && !(0..samples).map(offset).any(is_across) {
        warn(format!(
            "all {samples} samples lie on one line of k-space: the image has no detail across it. If more shots were \
             measured, check their counters and flags"
        ));
    }
}
