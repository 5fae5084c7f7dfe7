//! Each element of the XML header: removed, doubled, negative, huge, and text in place of a number.

use crate::measurement::*;
use crate::outcome::{Table, Verdict};
use std::ops::Range;
use Verdict::{Error, Right, Warning};

/// Returns the range of an element's text, and of the whole element. `path` names its ancestors, with gaps.
fn find(xml: &str, path: &str) -> [Range<usize>; 2] {
    let mut at = 0;
    let mut name = "";
    for part in path.split('/') {
        name = part;
        at += xml[at..].find(&format!("<{name}>")).unwrap_or_else(|| panic!("no {path}")) + 1;
    }
    let (start, inner) = (at - 1, at + name.len() + 1);
    let end = inner + xml[inner..].find(&format!("</{name}>")).unwrap();
    [inner..end, start..end + name.len() + 3]
}

/// Returns the measurement with a new text of an element.
fn with_text(m: &Measurement, path: &str, text: &str) -> Measurement {
    let mut altered = m.clone();
    altered.xml.replace_range(find(&m.xml, path)[0].clone(), text);
    altered
}

fn removed(m: &Measurement, path: &str) -> Measurement {
    let mut altered = m.clone();
    altered.xml.replace_range(find(&m.xml, path)[1].clone(), "");
    altered
}

fn doubled(m: &Measurement, path: &str) -> Measurement {
    let mut altered = m.clone();
    let element = find(&m.xml, path)[1].clone();
    altered.xml.insert_str(element.end, &m.xml[element]);
    altered
}

/// Verdicts for an element: removed, doubled, negative, huge (the largest 16-bit number), text.
type Row = (&'static str, [Verdict; 5]);

fn check(table: &mut Table, name: &str, m: &Measurement, rows: &[Row]) {
    for (path, verdicts) in rows {
        let altered: [(&str, Measurement); 5] = [
            ("removed", removed(m, path)),
            ("doubled", doubled(m, path)),
            ("negative", with_text(m, path, "-1")),
            ("huge", with_text(m, path, "65535")),
            ("text", with_text(m, path, "many")),
        ];
        for ((alteration, measurement), verdict) in altered.iter().zip(verdicts) {
            table.row(&format!("{name}: {path} {alteration}"), measurement, *verdict);
        }
    }
}

const TWICE: Verdict = Error("more than one");

/// Verdicts for a required number, with the verdict of a huge one.
const fn required(word: &'static str, huge: Verdict) -> [Verdict; 5] {
    [Error(word), TWICE, Error(word), huge, Error(word)]
}

/// Verdicts for a number that may be missing.
const fn optional(word: &'static str, huge: Verdict) -> [Verdict; 5] {
    [Right, TWICE, Error(word), huge, Error(word)]
}

const EXTENT: Verdict = Warning("the image will be blurred");

#[test]
fn spaces() {
    let mut table = Table::default();
    let rows: [Row; 5] = [
        ("encodedSpace/fieldOfView_mm/x", required("x", Right)),
        ("encodedSpace/fieldOfView_mm/z", required("z", Right)),
        // Images are resized to it.
        ("reconSpace/matrixSize/x", required("<x>", Error("matrixSize of <reconSpace>"))),
        ("reconSpace/matrixSize/z", required("<z>", Error("matrixSize of <reconSpace>"))),
        ("reconSpace/fieldOfView_mm/y", required("y", Right)),
    ];
    check(&mut table, "2D", &cartesian_2d(), &rows);
    check(&mut table, "radial", &radial("other"), &rows);
    for (name, m) in [("2D", cartesian_2d()), ("radial", radial("other"))] {
        let axes = ["x", "y", "z"].map(|axis| format!("encodedSpace/matrixSize/{axis}"));
        for (axis, path) in axes.iter().enumerate() {
            let word = ["<x>", "<y>", "<z>"][axis];
            table.row(&format!("{name}: {path} removed"), &removed(&m, path), Error(word));
            table.row(&format!("{name}: {path} doubled"), &doubled(&m, path), TWICE);
            for text in ["-1", "many", "", "1.5", "70000", "NaN", "16 16"] {
                table.row(&format!("{name}: {path} {text:?}"), &with_text(&m, path, text), Error(word));
            }
            table.row(&format!("{name}: {path} 0"), &with_text(&m, path, "0"), Error("matrixSize"));
            table.row(&format!("{name}: {path} 65440"), &with_text(&m, path, "65440"), Error("matrixSize"));
        }
        for element in ["encodedSpace", "reconSpace", "encodedSpace/matrixSize", "encodedSpace/fieldOfView_mm"] {
            let word = element.rsplit('/').next().unwrap();
            let word = ["encodedSpace", "reconSpace", "matrixSize", "fieldOfView_mm"].iter().find(|w| **w == word);
            table.row(&format!("{name}: {element} removed"), &removed(&m, element), Error(word.unwrap()));
            table.row(&format!("{name}: {element} doubled"), &doubled(&m, element), TWICE);
        }
        for text in ["NaN", "inf", "1e30", "-0.5"] {
            let altered = with_text(&m, "encodedSpace/fieldOfView_mm/y", text);
            table.row(&format!("{name}: field of view {text}"), &altered, Error("fieldOfView_mm"));
        }
        let unknown = with_text(&m, "encodedSpace/fieldOfView_mm/y", "0");
        table.row(&format!("{name}: unknown field of view"), &unknown, Right);
    }
    table.end(130);
}

/// A larger matrix is read as it is: the same lines, in a k-space that reaches further.
#[test]
fn sizes_that_do_not_fit() {
    let mut table = Table::default();
    let size = |m: &Measurement, axis: &str, n: usize| {
        with_text(m, &format!("encodedSpace/matrixSize/{axis}"), &n.to_string()).interpreted_as(|i| {
            i.matrix[["x", "y", "z"].iter().position(|a| *a == axis).unwrap()] = n;
        })
    };
    let m = cartesian_2d();
    let short = Warning("the readout has 16 samples around the centre of k-space, but the encoded matrix has 32");
    table.row("2D: x doubled", &size(&m, "x", 2 * READOUT), short);
    table.row("2D: x halved", &size(&m, "x", READOUT / 2), Error("outside k-space"));
    table.row("2D: x huge", &size(&m, "x", 2000), EXTENT);
    table.row("2D: y doubled", &size(&m, "y", 2 * LINES), Right);
    table.row("2D: y halved", &size(&m, "y", LINES / 2), Error("encoding step 1 is 0"));
    table.row("2D: y huge", &size(&m, "y", 2000), EXTENT);
    table.row("2D: z 2", &size(&m, "z", 2), Error("kspace_encode_step_2 is 0 in all"));
    table.row("3D: z 1", &size(&cartesian_3d(), "z", 1), Error("kspace_encode_step_2 differs"));
    table.row("radial: z 2", &size(&radial("other"), "z", 2), Error("kspace_encode_step_2 is 0 in all"));
    let huge = size(&size(&m, "x", 65535), "y", 65535);
    table.row("2D: x and y huge", &size(&huge, "z", 65535), Error("matrixSize of <encodedSpace>"));
    table.end(10);
}

#[test]
fn trajectories_and_limits() {
    let mut table = Table::default();
    for (name, m, text) in [
        ("2D", cartesian_2d(), Error("no trajectory is stored")),
        ("radial", radial("radial"), Warning("<trajectory> is \"many\"")),
    ] {
        table.row(&format!("{name}: trajectory removed"), &removed(&m, "trajectory"), Error("<trajectory>"));
        table.row(&format!("{name}: trajectory doubled"), &doubled(&m, "trajectory"), TWICE);
        table.row(&format!("{name}: trajectory text"), &with_text(&m, "trajectory", "many"), text);
        // Stored trajectories are used in any case.
        table.row(&format!("{name}: trajectory in capitals"), &with_text(&m, "trajectory", "CARTESIAN"), Right);
        table.row(&format!("{name}: encodingLimits removed"), &removed(&m, "encodingLimits"), Right);
        table.row(&format!("{name}: encodingLimits doubled"), &doubled(&m, "encodingLimits"), TWICE);
        let limits = "kspace_encoding_step_1";
        table.row(&format!("{name}: step 1 removed"), &removed(&m, limits), Right);
        table.row(&format!("{name}: step 1 doubled"), &doubled(&m, limits), TWICE);
        let longer = if name == "2D" { Right } else { Warning("of the 65536 shots that the encoding limits") };
        let outside = if name == "2D" { Error("encoding step 1 is 0") } else { Warning("the center of") };
        check(
            &mut table,
            name,
            &m,
            &[
                ("kspace_encoding_step_1/minimum", required("<minimum>", Error("the minimum of"))),
                ("kspace_encoding_step_1/maximum", required("<maximum>", longer)),
                ("kspace_encoding_step_1/center", required("<center>", outside)),
                ("kspace_encoding_step_2/minimum", required("<minimum>", Error("the minimum of"))),
            ],
        );
        let early = with_text(&m, "kspace_encoding_step_1/minimum", "3");
        let step = if name == "2D" { Warning("kspace_encode_step_1 is 0, but") } else { Right };
        table.row(&format!("{name}: minimum 3"), &early, step);
    }
    let center = |m: &Measurement, n: usize| {
        with_text(m, "kspace_encoding_step_1/center", &n.to_string()).interpreted_as(|i| i.centres[0] = n as f64)
    };
    // k = (11 - 5) / 12 is that of step -1.
    table.row("2D: center 5", &center(&cartesian_2d(), 5), Right);
    table.row("2D: center 7", &center(&cartesian_2d(), 7), Error("encoding step 1 is 0"));
    let mut partial = cartesian_2d();
    partial.acquisitions.truncate(9);
    table.row("partial: limits", &partial, Right);
    let unknown = removed(&partial, "kspace_encoding_step_1");
    table.row("partial: no limits", &unknown, Warning("step 6 is taken as the centre"));
    table.end(60);
}

#[test]
fn parallel_imaging() {
    let mut table = Table::default();
    let m = embedded();
    let gap = "acceleration factor in the XML header is 1";
    let lines = removed(&m, "parallelImaging").interpreted_as(|i| i.is_embedded = false);
    table.row("parallelImaging removed", &lines, Warning(gap));
    table.row("parallelImaging doubled", &doubled(&m, "parallelImaging"), TWICE);
    let mode = removed(&m, "calibrationMode").interpreted_as(|i| i.is_embedded = false);
    table.row("calibrationMode removed", &mode, Right);
    table.row("calibrationMode doubled", &doubled(&m, "calibrationMode"), TWICE);
    let mode = with_text(&m, "calibrationMode", "many").interpreted_as(|i| i.is_embedded = false);
    table.row("calibrationMode text", &mode, Warning("<calibrationMode> is \"many\""));
    table.row("accelerationFactor removed", &removed(&m, "accelerationFactor"), Warning(gap));
    let factor = "accelerationFactor/kspace_encoding_step_1";
    table.row("factor removed", &removed(&m, factor), Warning(gap));
    table.row("factor doubled", &doubled(&m, factor), TWICE);
    for text in ["-1", "many", "2.5", "NaN", "70000"] {
        let word = Error("<kspace_encoding_step_1> of <accelerationFactor>");
        table.row(&format!("factor {text}"), &with_text(&m, factor, text), word);
    }
    table.row("factor 0", &with_text(&m, factor, "0"), Warning("is 0: it is read as 1"));
    table.row("factor huge", &with_text(&m, factor, "65535"), Right);
    table.end(15);
}

#[test]
fn other_elements() {
    let mut table = Table::default();
    let m = noise();
    check(
        &mut table,
        "noise",
        &m,
        &[
            ("receiverChannels", optional("receiverChannels", Right)),
            ("H1resonanceFrequency_Hz", optional("H1resonanceFrequency_Hz", Right)),
            (
                "relativeReceiverNoiseBandwidth",
                [Right, TWICE, Error("bandwidth"), Error("bandwidth"), Error("relativeReceiverNoiseBandwidth")],
            ),
            // Used for series and field maps only.
            ("TR", [Right; 5]),
            ("TE", [Right; 5]),
            ("systemVendor", [Right, TWICE, Right, Right, Right]),
            ("patientPosition", [Right, TWICE, Right, Right, Right]),
        ],
    );
    for (name, verdict) in [
        ("measurementInformation", Right),
        ("acquisitionSystemInformation", Right),
        ("experimentalConditions", Right),
        ("sequenceParameters", Right),
        ("encoding", Error("no <encoding>")),
    ] {
        table.row(&format!("{name} removed"), &removed(&m, name), verdict);
        // A second encoding is not used.
        let twice = if name == "encoding" { Right } else { TWICE };
        table.row(&format!("{name} doubled"), &doubled(&m, name), twice);
    }
    let limits = slices();
    check(
        &mut table,
        "slices",
        &limits,
        &[
            ("slice/maximum", required("<maximum>", Right)),
            ("slice/minimum", required("<minimum>", Error("the minimum of <slice>"))),
        ],
    );
    table.row("slice limits removed", &removed(&limits, "slice"), Right);
    table.row("slice limits too small", &with_text(&limits, "slice/maximum", "1"), Warning("slice is 2, but"));
    table.end(55);
}

#[test]
fn texts_that_are_no_header() {
    let mut table = Table::default();
    let m = cartesian_2d();
    let nested = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
    let entities = "<!DOCTYPE a [<!ENTITY b \"cccccccc\">]><ismrmrdHeader>&b;</ismrmrdHeader>".to_owned();
    for (name, xml, verdict) in [
        ("nothing", String::new(), Error("malformed")),
        ("text", "many".to_owned(), Error("malformed")),
        ("half", m.xml[..m.xml.len() / 2].to_owned(), Error("malformed")),
        ("another root", m.xml.replace("ismrmrdHeader", "html"), Error("<html>")),
        ("an empty root", "<ismrmrdHeader/>".to_owned(), Error("no <encoding>")),
        ("a long text", " ".repeat(2 << 20), Error("at most 1048576")),
        ("entities", entities, Error("malformed")),
        ("deep elements", nested, Error("<a>")),
        ("a comment in a number", m.xml.replace("<x>16", "<x>1<!-- a -->6"), Right),
        ("no namespace", m.xml.replace(" xmlns=\"http://www.ismrm.org/ISMRMRD\"", ""), Right),
        ("a byte order mark", format!("\u{feff}{}", m.xml), Right),
    ] {
        table.row(name, &Measurement { xml, ..m.clone() }, verdict);
    }
    table.end(11);
}
