//! Each counter: doubled, constant, out of range in one acquisition, and exchanged between two acquisitions.

use crate::measurement::*;
use crate::outcome::{Table, Verdict};
use recon::scan::AcquisitionHeader;
use Verdict::{Error, Right, Warning};

type Counter = fn(&mut AcquisitionHeader) -> &mut u16;

/// The acquisitions whose counters are exchanged: neighbours of the same image, or lines of two images.
const NEIGHBOURS: [usize; 2] = [4, 5];

/// Adds the four alterations of a counter to a table.
fn rows(
    table: &mut Table,
    name: &str,
    measurement: &Measurement,
    counter: Counter,
    exchanged: [usize; 2],
    verdicts: [Verdict; 4],
) {
    let of = |which: usize| *counter(&mut measurement.acquisitions[which].header.clone());
    let [a, b] = exchanged.map(of);
    let altered: [(&str, Measurement); 4] = [
        ("doubled", measurement.clone().all(|h| *counter(h) *= 2)),
        ("constant", measurement.clone().all(|h| *counter(h) = 0)),
        ("out of range", measurement.clone().one(5, |a| *counter(&mut a.header) = u16::MAX)),
        (
            "exchanged",
            measurement
                .clone()
                .one(exchanged[0], |x| *counter(&mut x.header) = b)
                .one(exchanged[1], |x| *counter(&mut x.header) = a),
        ),
    ];
    for ((alteration, measurement), verdict) in altered.iter().zip(verdicts) {
        table.row(&format!("{name}: {alteration}"), measurement, verdict);
    }
}

#[test]
fn encoding_steps() {
    let mut table = Table::default();
    let step_1: Counter = |h| &mut h.idx.kspace_encode_step_1;
    let step_2: Counter = |h| &mut h.idx.kspace_encode_step_2;
    let outside = |which: u32| match which {
        1 => Error("encoding step 1 is"),
        _ => Error("encoding step 2 is"),
    };
    let constant = |which: u32| match which {
        1 => Error("kspace_encode_step_1 is 0 in all"),
        _ => Error("kspace_encode_step_2 is 0 in all"),
    };
    // Any order of lines is right, so that exchanged steps are read as they are.
    let steps = |which| [outside(which), constant(which), outside(which), Right];
    rows(&mut table, "2D: step 1", &cartesian_2d(), step_1, NEIGHBOURS, steps(1));
    rows(&mut table, "3D: step 1", &cartesian_3d(), step_1, NEIGHBOURS, steps(1));
    rows(&mut table, "3D: step 2", &cartesian_3d(), step_2, [4, 28], steps(2));
    rows(&mut table, "slices: step 1", &slices(), step_1, NEIGHBOURS, steps(1));
    rows(&mut table, "averages: step 1", &averages(), step_1, NEIGHBOURS, steps(1));
    rows(&mut table, "reversed: step 1", &reversed(), step_1, NEIGHBOURS, steps(1));
    rows(&mut table, "embedded: step 1", &embedded(), step_1, [0, 1], [outside(1), constant(1), outside(1), Right]);
    let partition = Error("kspace_encode_step_2 differs");
    rows(&mut table, "2D: step 2", &cartesian_2d(), step_2, NEIGHBOURS, [Right, Right, partition, Right]);
    // Stored trajectories do not need steps.
    rows(&mut table, "radial: step 1", &radial("radial"), step_1, NEIGHBOURS, [Right; 4]);
    let differs = Warning("kspace_encode_step_2 differs");
    rows(&mut table, "radial: step 2", &radial("radial"), step_2, NEIGHBOURS, [Right, Right, differs, Right]);
    table.row("3D: one partition lacks a line", &cartesian_3d().one(0, |a| a.header.idx.kspace_encode_step_2 = 3), {
        Warning("different counters")
    });
    let mut lost = cartesian_3d();
    lost.acquisitions.remove(17);
    table.row("3D: a line is lost", &lost, Warning("kspace_encode_step_1 between 4 and 6"));
    let mut lost = cartesian_3d();
    lost.acquisitions.retain(|a| a.header.idx.kspace_encode_step_2 != 2);
    table.row("3D: a partition is lost", &lost, Warning("kspace_encode_step_2 between 1 and 3"));
    let mut lost = separate();
    lost.acquisitions.remove(7);
    table.row("separate: a line is lost", &lost, Warning("acceleration factor in the XML header is 2"));
    table.end(44);
}

#[test]
fn counters_of_samples_of_one_image() {
    let mut table = Table::default();
    let average: Counter = |h| &mut h.idx.average;
    let segment: Counter = |h| &mut h.idx.segment;
    let repeated = Warning("24 acquisitions of an image have 12 different counters");
    rows(&mut table, "averages: average", &averages(), average, [4, 16], [Right, repeated, Right, Right]);
    rows(&mut table, "2D: average", &cartesian_2d(), average, NEIGHBOURS, [Right; 4]);
    rows(&mut table, "2D: segment", &cartesian_2d(), segment, NEIGHBOURS, [Right; 4]);
    for user in 0..8 {
        let altered = cartesian_2d().all(|h| h.idx.user[user] = u16::MAX);
        table.row(&format!("2D: user counter {user}"), &altered, Right);
    }
    table.end(20);
}

#[test]
fn counters_of_images() {
    let mut table = Table::default();
    let repeated = Warning("24 acquisitions of an image have 12 different counters");
    let counters: [(&str, [&str; 2], Counter); 4] = [
        ("contrast", ["contrast is 2, but", "contrast is 65535, but"], |h| &mut h.idx.contrast),
        ("phase", ["phase is 2, but", "phase is 65535, but"], |h| &mut h.idx.phase),
        ("repetition", ["repetition is 2, but", "repetition is 65535, but"], |h| &mut h.idx.repetition),
        ("set", ["set is 2, but", "set is 65535, but"], |h| &mut h.idx.set),
    ];
    for (name, [doubled, outside], counter) in counters {
        let pair = pair(name, counter);
        // The exchanged acquisitions have the same line: nothing in the file says which one belongs to which image.
        let verdicts = [Warning(doubled), repeated, Warning(outside), Right];
        rows(&mut table, name, &pair, counter, [4, 16], verdicts);
        let lines = pair.clone().one(4, |a| *counter(&mut a.header) = 1).one(17, |a| *counter(&mut a.header) = 0);
        table.row(&format!("{name}: different lines exchanged"), &lines, Warning("different counters"));
    }
    let slice: Counter = |h| &mut h.idx.slice;
    let position = Warning("position is [10.0, -20.0, ");
    let verdicts = [Warning("slice is 4, but"), position, Warning("slice is 65535, but"), position];
    rows(&mut table, "slice", &slices(), slice, [4, 16], verdicts);
    let verdicts = [Warning("slice is 2, but"), position, Warning("slice is 65535, but"), position];
    rows(&mut table, "radial: slice", &radial_slices(), slice, [4, 16], verdicts);
    let unknown = radial_slices().all(|h| (h.position, h.idx.slice) = ([0.0; 3], 0));
    table.row("radial: slice constant, no positions", &unknown, Warning("24 acquisitions of an image have 12"));
    table.end(29);
}
