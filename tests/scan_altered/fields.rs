//! Each field of the headers of acquisitions.

use crate::measurement::*;
use crate::outcome::{Table, Verdict};
use recon::scan::AcquisitionHeader;
use recon::Complex;
use Verdict::{Error, Right, Warning};

/// The altered acquisition.
const WHICH: usize = 5;

/// Adds an alteration of one acquisition, with arrays of the old lengths, to a table.
fn one(
    table: &mut Table,
    name: &str,
    measurement: &Measurement,
    change: impl Fn(&mut AcquisitionHeader),
    verdict: Verdict,
) {
    table.row(name, &measurement.clone().one(WHICH, |a| change(&mut a.header)), verdict);
}

/// Makes arrays of the lengths that the header announces, as a reader of a stream does.
fn with_new_arrays(a: &mut Acquisition) {
    let (count, coils) = (a.header.number_of_samples as usize, a.header.active_channels as usize);
    a.data.resize(count * coils, Complex::new(0.5, 0.25));
    a.trajectory.resize(count * a.header.trajectory_dimensions as usize, 0.125);
}

#[test]
fn lengths() {
    let mut table = Table::default();
    for (name, m) in [("2D", cartesian_2d()), ("radial", radial("other")), ("noise", noise())] {
        let t = &mut table;
        let samples = if name == "radial" { Error("the trajectory has") } else { Error("complex samples") };
        one(t, &format!("{name}: number_of_samples 0"), &m, |h| h.number_of_samples = 0, samples);
        one(t, &format!("{name}: number_of_samples max"), &m, |h| h.number_of_samples = u16::MAX, samples);
        one(t, &format!("{name}: number_of_samples 15"), &m, |h| h.number_of_samples = 15, samples);
        let coils = |n: u16| move |h: &mut AcquisitionHeader| h.active_channels = n;
        one(t, &format!("{name}: active_channels 0"), &m, coils(0), Error("samples of 0 coils"));
        one(t, &format!("{name}: active_channels 1"), &m, coils(1), Error("samples of 1 coils"));
        one(t, &format!("{name}: active_channels max"), &m, coils(u16::MAX), Error("samples of 65535 coils"));
        let dimensions = |n: u16| move |h: &mut AcquisitionHeader| h.trajectory_dimensions = n;
        for n in [1, 3, u16::MAX] {
            let name = format!("{name}: trajectory_dimensions {n}");
            one(t, &name, &m, dimensions(n), Error("dimensions need"));
        }
        let mut altered = |name: String, verdict: Verdict, change: &dyn Fn(&mut AcquisitionHeader)| {
            let altered = m.clone().one(WHICH, |a| {
                change(&mut a.header);
                with_new_arrays(a);
            });
            t.row(&name, &altered, verdict);
        };
        altered(format!("{name}: no samples"), Error("keeps no samples"), &|h| h.number_of_samples = 0);
        altered(format!("{name}: no coils"), Error("has 0 coils"), &|h| h.active_channels = 0);
        altered(format!("{name}: one coil"), Error("has 1 coils"), &|h| h.active_channels = 1);
        altered(format!("{name}: another trajectory"), Error("trajectory dimensions"), &|h| {
            h.trajectory_dimensions = 3;
        });
    }
    let m = noise();
    let altered = |change: &dyn Fn(&mut AcquisitionHeader)| {
        m.clone().one(0, |a| {
            change(&mut a.header);
            with_new_arrays(a);
        })
    };
    table.row("noise: NaN sample time", &altered(&|h| h.sample_time_us = f32::NAN), Error("sample time"));
    table.row("noise: one coil", &altered(&|h| h.active_channels = 1), Error("noise of 1 coils"));
    table.row("noise: few samples", &altered(&|h| h.number_of_samples = 4), Warning("noise"));
    table.row("noise: no sample time", &altered(&|h| h.sample_time_us = 0.0), Warning("sample time"));
    let mut without = radial("other").all(|h| h.trajectory_dimensions = 0);
    without.acquisitions.iter_mut().for_each(|a| a.trajectory.clear());
    table.row("radial: no trajectories", &without, Error("no trajectory is stored"));
    table.end(3 * 13 + 5);
}

#[test]
fn ranges_of_samples() {
    let mut table = Table::default();
    for (name, m) in [("2D", cartesian_2d()), ("discarded", discarded()), ("radial", radial("other"))] {
        let t = &mut table;
        let stored = name == "radial";
        one(
            t,
            &format!("{name}: discard_pre 0"),
            &m,
            |h| h.discard_pre = 0,
            match name {
                // Two more samples, which begin before k = -1/2.
                "discarded" => Error("center_sample"),
                _ => Right,
            },
        );
        one(t, &format!("{name}: discard_post 4"), &m, |h| h.discard_post = 4, Right);
        one(t, &format!("{name}: discard_pre 3"), &m, |h| h.discard_pre = 3, Right);
        one(t, &format!("{name}: discard_pre max"), &m, |h| h.discard_pre = u16::MAX, Error("keeps no samples"));
        one(t, &format!("{name}: discard_post max"), &m, |h| h.discard_post = u16::MAX, Error("keeps no samples"));
        let both = |h: &mut AcquisitionHeader| (h.discard_pre, h.discard_post) = (u16::MAX, u16::MAX);
        one(t, &format!("{name}: both max"), &m, both, Error("keeps no samples"));
        let outside = if stored { Right } else { Error("center_sample") };
        one(t, &format!("{name}: center_sample max"), &m, |h| h.center_sample = u16::MAX, outside);
        one(t, &format!("{name}: center_sample one more"), &m, |h| h.center_sample += 1, outside);
        one(t, &format!("{name}: center_sample one less"), &m, |h| h.center_sample -= 1, Right);
    }
    // The only possible centre of a readout that has as many samples as the matrix is its middle.
    one(&mut table, "2D: center_sample 0", &cartesian_2d(), |h| h.center_sample = 0, Right);
    let short = cartesian_2d().one(WHICH, |a| {
        (a.header.number_of_samples, a.header.center_sample) = (12, 0);
        a.data.truncate(12 * COILS);
    });
    table.row("2D: center_sample 0 of a short readout", &short, Warning("center_sample is 0"));
    table.end(29);
}

#[test]
fn places() {
    let mut table = Table::default();
    type Vector = fn(&mut AcquisitionHeader) -> &mut [f32; 3];
    let vectors: [(&str, [&str; 2], Vector); 5] = [
        ("position", ["position is [NaN", "position is ["], |h| &mut h.position),
        ("read_dir", ["read_dir is [NaN", "read_dir is ["], |h| &mut h.read_dir),
        ("phase_dir", ["phase_dir is [NaN", "phase_dir is ["], |h| &mut h.phase_dir),
        ("slice_dir", ["slice_dir is [NaN", "slice_dir is ["], |h| &mut h.slice_dir),
        ("patient_table_position", ["patient_table_position is [NaN", ""], |h| &mut h.patient_table_position),
    ];
    for m in [cartesian_2d(), radial("other")] {
        for (name, [not_finite, differs], vector) in vectors {
            let t = &mut table;
            let differs = if differs.is_empty() { Right } else { Warning(differs) };
            let all = |change: &dyn Fn(&mut [f32; 3])| m.clone().all(|h| change(vector(h)));
            one(t, &format!("{name}: one NaN"), &m, |h| vector(h)[0] = f32::NAN, Warning(not_finite));
            t.row(&format!("{name}: all NaN"), &all(&|v| v[0] = f32::NAN), Warning(not_finite));
            let infinite = |h: &mut AcquisitionHeader| vector(h)[2] = f32::INFINITY;
            one(t, &format!("{name}: one infinite"), &m, infinite, Warning("inf]"));
            one(t, &format!("{name}: one is different"), &m, |h| vector(h)[1] += 7.0, differs);
            one(t, &format!("{name}: one is max"), &m, |h| vector(h)[1] = f32::MAX, differs);
            // Positions are any; a direction must have length 1.
            let (skewed, zero) = match name.ends_with("dir") {
                true => (Warning("not perpendicular unit vectors"), Warning("not perpendicular unit vectors")),
                false => (Right, Right),
            };
            t.row(&format!("{name}: all are different"), &all(&|v| v[1] += 7.0), skewed);
            t.row(&format!("{name}: all are 0"), &all(&|v| *v = [0.0; 3]), zero);
        }
        let unknown = m.clone().all(|h| (h.read_dir, h.phase_dir, h.slice_dir) = ([0.0; 3], [0.0; 3], [0.0; 3]));
        table.row("unknown directions", &unknown, Right);
        let exchanged = m.clone().all(|h| std::mem::swap(&mut h.read_dir, &mut h.phase_dir));
        table.row("exchanged directions", &exchanged, Right);
    }
    table.end(2 * 37);
}

#[test]
fn other_fields() {
    let mut table = Table::default();
    for m in [cartesian_2d(), radial("other")] {
        let t = &mut table;
        let time = |x: f32| move |h: &mut AcquisitionHeader| h.sample_time_us = x;
        for x in [f32::NAN, f32::INFINITY, -1.0] {
            one(t, &format!("sample_time_us {x}"), &m, time(x), Error("the sample time is"));
        }
        for x in [0.0, 4.0, f32::MAX] {
            one(t, &format!("one sample_time_us {x}"), &m, time(x), Warning("sample_time_us is"));
            t.row(&format!("all sample_time_us {x}"), &m.clone().all(time(x)), Right);
        }
        let encoding = |n: u16| move |h: &mut AcquisitionHeader| h.encoding_space_ref = n;
        one(t, "encoding_space_ref 1", &m, encoding(1), Error("refers to encoding 1, but the header has 1"));
        one(t, "encoding_space_ref max", &m, encoding(u16::MAX), Error("refers to encoding 65535"));
        t.row("all encoding_space_ref 1", &m.clone().all(encoding(1)), Error("refers to encoding 1"));
        one(t, "channel_mask", &m, |h| h.channel_mask[0] = 5, Warning("channel_mask"));
        t.row("all channel_mask", &m.clone().all(|h| h.channel_mask = [u64::MAX; 16]), Right);
        // Fields that images do not depend on.
        let unused: [(&str, fn(&mut AcquisitionHeader)); 9] = [
            ("version", |h| h.version = u16::MAX),
            ("measurement_uid", |h| h.measurement_uid = u32::MAX),
            ("scan_counter", |h| h.scan_counter = u32::MAX),
            ("acquisition_time_stamp", |h| h.acquisition_time_stamp = u32::MAX),
            ("physiology_time_stamp", |h| h.physiology_time_stamp = [u32::MAX; 3]),
            ("available_channels", |h| h.available_channels = 0),
            ("user_int", |h| h.user_int = [i32::MIN; 8]),
            ("user_float", |h| h.user_float = [f32::NAN; 8]),
            ("user counters", |h| h.idx.user = [u16::MAX; 8]),
        ];
        for (name, change) in unused {
            one(t, name, &m, change, Right);
        }
        let samples: [(&str, fn(&mut Acquisition), Verdict); 3] = [
            ("a sample is NaN", |a| a.data[3].im = f32::NAN, Error("coil 0, sample 3")),
            ("a sample is infinite", |a| a.data[20].re = f32::INFINITY, Error("coil 1, sample 4")),
            ("a sample is max", |a| a.data[20].re = f32::MAX, Right),
        ];
        for (name, change, verdict) in samples {
            t.row(name, &m.clone().one(WHICH, change), verdict);
        }
    }
    let points: [(&str, f32, Verdict); 5] = [
        ("NaN", f32::NAN, Error("number 0 of its trajectory is NaN")),
        ("infinite", f32::INFINITY, Error("number 0 of its trajectory is inf")),
        ("outside", 0.6, Error("coordinate 0 is 0.6, outside")),
        ("cycles per field of view", -8.0, Error("by the matrix size")),
        ("within k-space", 0.25, Right),
    ];
    for (name, k, verdict) in points {
        table.row(&format!("a coordinate is {name}"), &radial("other").one(WHICH, |a| a.trajectory[6] = k), verdict);
    }
    table.end(2 * 26 + 5);
}
