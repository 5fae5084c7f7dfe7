//! Each flag, set and cleared.

use crate::measurement::*;
use crate::outcome::{Table, Verdict};
use Verdict::{Error, Right, Warning};

/// Flags of acquisitions that are neither image nor calibration.
const UNUSED: [u32; 9] = [19, 23, 24, 26, 27, 28, 29, 30, 31];
const COMPRESSED: std::ops::RangeInclusive<u32> = 53..=56;

/// The acquisition that gets a flag.
const WHICH: usize = 5;

#[test]
fn flags_that_are_set() {
    let mut table = Table::default();
    let cases: [(&str, Measurement, &str); 4] = [
        ("2D", cartesian_2d(), "no acquisition with kspace_encode_step_1 between 4 and 6"),
        ("3D", cartesian_3d(), "no acquisition with kspace_encode_step_1 between 4 and 6"),
        ("radial", radial("radial"), "11 of the 12 shots"),
        ("discarded samples", discarded(), "no acquisition with kspace_encode_step_1 between 4 and 6"),
    ];
    for (name, measurement, missing) in cases {
        for flag in 1..=64 {
            let altered = measurement.clone().one(WHICH, |a| a.header.flags |= mask(&[flag]));
            let verdict = match flag {
                // The line is not part of the image.
                _ if UNUSED.contains(&flag) || flag == CALIBRATION => Warning(missing),
                _ if COMPRESSED.contains(&flag) => Error("the samples are compressed"),
                // First and last acquisitions, reversed lines, and flags of the sequence's author.
                _ => Right,
            };
            table.row(&format!("{name}: flag {flag}"), &altered, verdict);
        }
    }
    table.end(4 * 64);
}

/// All acquisitions get the flag: there is no image without a word.
#[test]
fn flags_of_all_acquisitions() {
    let mut table = Table::default();
    for flag in 1..=64 {
        let altered = cartesian_2d().all(|header| header.flags |= mask(&[flag]));
        let verdict = match flag {
            _ if COMPRESSED.contains(&flag) => Error("the samples are compressed"),
            // No image is expected, and the numbers of acquisitions by use say why.
            _ => Right,
        };
        table.row(&format!("all lines: flag {flag}"), &altered, verdict);
    }
    table.end(64);
}

#[test]
fn flags_that_are_cleared() {
    let mut table = Table::default();
    let cleared = |measurement: Measurement, which: usize| measurement.one(which, |a| a.header.flags = 0);
    // The 900 samples of noise reach beyond the k-space of 16 voxels.
    table.row("noise: cleared", &cleared(noise(), 0), Error("outside k-space"));
    table.row("embedded: calibration and image cleared", &cleared(embedded(), 2), Right);
    table.row("embedded: calibration cleared", &cleared(embedded(), 3), Right);
    table.row("separate: cleared, a line that the image has", &cleared(separate(), 0), Warning("different counters"));
    table.row("separate: cleared, a new line", &cleared(separate(), 1), Right);
    table.row("reversed: cleared", &cleared(reversed(), 1), Right);
    table.end(6);
}

#[test]
fn valid_measurements() {
    let mut table = Table::default();
    let all: [(&str, Measurement); 12] = [
        ("2D", cartesian_2d()),
        ("3D", cartesian_3d()),
        ("radial", radial("radial")),
        ("slices of spokes", radial_slices()),
        ("slices", slices()),
        ("averages", averages()),
        ("noise", noise()),
        ("embedded calibration", embedded()),
        ("separate calibration", separate()),
        ("reversed lines", reversed()),
        ("discarded samples", discarded()),
        ("contrasts", pair("contrast", |h| &mut h.idx.contrast)),
    ];
    for (name, measurement) in &all {
        table.row(name, measurement, Right);
    }
    table.end(all.len());
}
