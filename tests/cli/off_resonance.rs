//! Off-resonance and decay: simulated, and corrected by maps.

use crate::io::Image;
use crate::{distance, raw_file, read_images, with_lock, write_dataset, TempDir};
use num_complex::Complex;
use recon::scan::TrajectoryKind;
use std::f64::consts::TAU;
use std::fs;

/// A spiral of 5 ms with twice the necessary number of turns.
const SPIRAL: &str = "simulate --matrix 48,48 --trajectory spiral --shots 12 --turns 4 --samples 1000 --dwell 5";
/// Off-resonance of -50 to 100 Hz. The map is written to map.h5.
const FIELD: &str = "--off-resonance 100 --write-field-map map.h5";

fn read_dataset(dir: &TempDir, name: &str) -> crate::io::Dataset {
    with_lock(|| crate::io::tests::read_dataset(dir.path(name))).unwrap()
}

fn write_map(dir: &TempDir, name: &str, dims: [usize; 3], channels: usize, of: impl Fn(usize) -> Complex<f32>) {
    let data = (0..dims.iter().product::<usize>() * channels).map(of).collect();
    let image = Image::new(dims, channels, data).unwrap();
    with_lock(|| crate::io::tests::write_images(dir.path(name), &[image])).unwrap();
}

/// Writes a NumPy array of f4.
fn write_npy(dir: &TempDir, name: &str, shape: &str, data: &[f32]) {
    let mut text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}), }}");
    while (10 + text.len() + 1) % 64 != 0 {
        text.push(' ');
    }
    text.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((text.len() as u16).to_le_bytes());
    file.extend(text.as_bytes());
    data.iter().for_each(|x| file.extend(x.to_le_bytes()));
    fs::write(dir.path(name), file).unwrap();
}

fn error_of(dir: &TempDir, line: &str) -> f64 {
    dir.ok(&format!("--quiet {line} -o image.h5"));
    dir.error("image.h5 reference.h5 --complex --scale best")
}

/// With the map, the image is at least 10 dB closer to the image of a scan without off-resonance than without the map,
/// and about as close to the truth.
#[test]
fn maps_correct_off_resonance() {
    let dir = TempDir::new();
    dir.ok(&format!("{SPIRAL} --truth truth.h5 -o plain.h5"));
    dir.ok(&format!("{SPIRAL} {FIELD} -o scan.h5"));
    for line in ["cg FILE --iterations 12", "grid FILE", "cg FILE --iterations 12 --weighted --normal transforms"] {
        dir.ok(&format!("{} -o reference.h5", line.replace("FILE", "plain.h5")));
        let error = |options: &str| {
            dir.ok(&format!("{} {options} -o image.h5", line.replace("FILE", "scan.h5")));
            ["reference.h5", "truth.h5"].map(|of| dir.error(&format!("image.h5 {of} --complex --scale best")))
        };
        let plain = dir.error("reference.h5 truth.h5 --complex --scale best");
        let (without, with) = (error(""), error("--field-map map.h5"));
        println!("{line}: {plain} % without off-resonance, {without:?} % with it, {with:?} % by its map");
        let better = 20.0 * (without[0] / with[0]).log10();
        assert!(better > 10.0 && with[1] < 1.1 * plain, "{line}: {better} dB, {with:?} {plain}");
    }
    // The adjoint by exact sums and by time segmentation.
    dir.ok("fhd scan.h5 --field-map map.h5 --method exact -o exact.h5");
    dir.ok("fhd scan.h5 --field-map map.h5 --tolerance 1e-4 -o image.h5");
    assert!(dir.error("image.h5 exact.h5 --complex") < 0.02);
    dir.ok("fhd scan.h5 -o image.h5");
    let without = dir.error("image.h5 exact.h5 --complex");
    assert!(without > 3.0, "{without}");
}

/// Several coils with given and estimated maps, decay, the numbers of segments and nodes in the report, and a saved Q.
#[test]
fn coils_decay_report_and_q() {
    let dir = TempDir::new();
    let rates: Vec<f32> = (0..48 * 48).map(|i| 50.0 + 100.0 * (i % 48) as f32 / 48.0).collect();
    write_npy(&dir, "decay.npy", "48, 48", &rates);
    dir.ok(&format!("{SPIRAL} --coils 4 --truth truth.h5 --maps coils.h5 -o plain.h5"));
    dir.ok(&format!("{SPIRAL} {FIELD} --decay-map decay.npy --coils 4 -o scan.h5"));
    let both = "--field-map map.h5 --decay-map decay.npy --maps coils.h5";
    let cg = "cg scan.h5 --iterations 12 --tolerance 1e-4 --normal toeplitz";
    dir.ok(&format!("{} --maps coils.h5 -o reference.h5", cg.replace("scan", "plain")));
    let with = error_of(&dir, &format!("{cg} {both} --report report.json --save-q q.bin"));
    let without = error_of(&dir, &format!("{cg} --maps coils.h5"));
    let field_only = error_of(&dir, &format!("{cg} --maps coils.h5 --field-map map.h5"));
    println!("{without} % without maps, {field_only} % with the field, {with} % with both");
    assert!(20.0 * (without / with).log10() > 10.0 && with < 0.8 * field_only, "{without} {field_only} {with}");
    let report: serde_json::Value = serde_json::from_slice(&fs::read(dir.path("report.json")).unwrap()).unwrap();
    let entry = &report[0]["off_resonance"];
    assert!(entry["segments"].as_u64().unwrap() > 2 && entry["nodes"].as_u64().unwrap() > 2, "{report}");
    assert!(entry["error"].as_f64().unwrap() < 1.1e-4, "{report}");
    let verbose = dir.run(&format!("-v {cg} {both} -o image.h5")).stderr;
    assert!(verbose.contains("segments") && verbose.contains("off-resonance from -49.9"), "{verbose}");
    // A saved Q can only be used with its maps.
    dir.ok(&format!("{cg} {both} -o first.h5"));
    dir.ok(&format!("{cg} {both} --load-q q.bin -o image.h5"));
    assert_eq!(read_images(dir.path("first.h5"))[0].data, read_images(dir.path("image.h5"))[0].data);
    dir.fails(1, &format!("{cg} --maps coils.h5 --field-map map.h5 --load-q q.bin -o no.h5"), &["q.bin"]);
    dir.fails(1, &format!("{cg} --maps coils.h5 --load-q q.bin -o no.h5"), &["q.bin"]);
    // Without maps the report does not have this key.
    dir.ok(&format!("{cg} --report report.json -o image.h5"));
    assert!(!fs::read_to_string(dir.path("report.json")).unwrap().contains("off_resonance"));
    // Estimated coil maps.
    let magnitude = |file: &str, options: &str| {
        dir.ok(&format!("cg {file} --iterations 12 {options} -o image.h5"));
        dir.error("image.h5 truth.h5 --magnitude --scale best")
    };
    let plain = magnitude("plain.h5", "");
    let with = magnitude("scan.h5", "--field-map map.h5 --decay-map decay.npy");
    let without = magnitude("scan.h5", "");
    println!("estimated coil maps: {plain} % without off-resonance, {without} % with it, {with} % by its maps");
    assert!(with < 1.2 * plain && without > 1.5 * with, "{plain} {without} {with}");
}

/// The sample times of the file, of --dwell, and of BART files with --dwell agree.
#[test]
fn sample_times_of_file_and_dwell_agree() {
    let dir = TempDir::new();
    dir.ok(&format!("{SPIRAL} {FIELD} -o scan.h5"));
    assert!(dir.ok("info scan.h5").contains("sample time           5.000"), "{}", dir.ok("info scan.h5"));
    let scan = &read_dataset(&dir, "scan.h5").scans[0];
    assert!((scan.times[999] - 0.004995).abs() < 1e-7 && scan.times[1000] == 0.0, "{:?}", &scan.times[998..1001]);
    dir.ok("fhd scan.h5 --field-map map.h5 -o own.h5");
    dir.ok("fhd scan.h5 --field-map map.h5 --dwell 5 -o given.h5");
    assert!(dir.error("given.h5 own.h5 --complex") < 1e-3);
    dir.ok("fhd scan.h5 --field-map map.h5 --dwell 2.5 -o half.h5");
    assert!(dir.error("half.h5 own.h5 --complex") > 1.0);
    // BART files do not contain times.
    dir.ok(&format!("{SPIRAL} {FIELD} -o scan.cfl").replace("map.h5", "map.cfl"));
    let bart = "fhd scan.cfl --trajectory scan_traj.cfl --matrix 48,48 --field-map map.cfl";
    dir.ok(&format!("{bart} --dwell 5 -o bart.h5"));
    assert!(dir.error("bart.h5 own.h5 --complex") < 1e-2);
    dir.fails(1, &format!("{bart} -o no.h5"), &["no sample time", "--dwell"]);
    // A different t = 0 multiplies each voxel by exp(2 pi i f t).
    dir.ok("fhd scan.h5 --field-map map.h5 --readout-start -3 -o other.h5");
    let (own, other) = (&read_images(dir.path("own.h5"))[0], &read_images(dir.path("other.h5"))[0]);
    let map = &read_images(dir.path("map.h5"))[0];
    let turned: Vec<_> =
        own.data.iter().zip(&map.data).map(|(z, f)| z * Complex::cis(-std::f32::consts::TAU * f.re * 3e-3)).collect();
    let far = |a: &[Complex<f32>], b: &[Complex<f32>]| {
        let error: f32 = a.iter().zip(b).map(|(a, b)| (a - b).norm_sqr()).sum();
        (error / b.iter().map(|b| b.norm_sqr()).sum::<f32>()).sqrt()
    };
    assert!(far(&other.data, &turned) < 1e-3 && far(&other.data, &own.data) > 0.1);
    dir.ok(&format!("{SPIRAL} {FIELD} --readout-start 5 -o later.h5"));
    dir.ok("fhd later.h5 --field-map map.h5 --readout-start 5 -o image.h5");
    dir.ok("simulate --matrix 48,48 --trajectory spiral --shots 12 --samples 1000 -o no_times.h5");
    assert!(dir.ok("info no_times.h5").contains("sample time           not in the file"));
    dir.fails(1, "grid no_times.h5 --field-map map.h5 -o no.h5", &["no sample time", "--dwell"]);
    dir.ok("grid no_times.h5 --field-map map.h5 --dwell 5 -o image.h5");
    // The times of the lines of an echo train since the excitation are unknown.
    let mut dataset = read_dataset(&dir, "scan.h5");
    dataset.header.encodings[0].trajectory = TrajectoryKind::Epi;
    write_dataset(dir.path("epi.h5"), &dataset);
    dir.fails(1, "grid epi.h5 --field-map map.h5 -o no.h5", &["echo-planar"]);
}

/// Discarded samples delay the samples after them: the adjoint is the direct sum with these times, both with the sample
/// time of the file and with --dwell.
#[test]
fn discarded_samples_count_for_the_times() {
    let dir = TempDir::new();
    dir.ok(&format!("{SPIRAL} {FIELD} -o scan.h5"));
    let dataset = read_dataset(&dir, "scan.h5");
    let (scan, discarded, per_shot) = (&dataset.scans[0], 300, 1000);
    let lines: Vec<raw_file::RawAcquisition> = (0..scan.samples_per_shot.len() * per_shot)
        .step_by(per_shot)
        .map(|first| raw_file::RawAcquisition {
            dimensions: 2,
            trajectory: (first..first + per_shot).flat_map(|m| [0, 1].map(|a| scan.coordinates[a][m])).collect(),
            data: scan.data[first..first + per_shot].iter().flat_map(|z| [z.re, z.im]).collect(),
            discard_pre: discarded as u16,
            sample_time: 5.0,
            ..Default::default()
        })
        .collect();
    with_lock(|| raw_file::write(&dir.path("late.h5"), &dataset.header.to_xml(), &lines));
    let kept: Vec<usize> = (0..scan.data.len()).filter(|m| m % per_shot >= discarded).collect();
    let map = &read_images(dir.path("map.h5"))[0].data;
    let exact: Vec<Complex<f64>> = (0..48 * 48)
        .map(|i| {
            let place = [i % 48, i / 48].map(|r| r as f64 - 24.0);
            let term = |&m: &usize| {
                let k = [0, 1].map(|a| f64::from(scan.coordinates[a][m]));
                let time = 5e-6 * (m % per_shot) as f64;
                let turns = k[0] * place[0] + k[1] * place[1] + f64::from(map[i].re) * time;
                let value = scan.data[m];
                Complex::new(f64::from(value.re), f64::from(value.im)) * Complex::from_polar(1.0, TAU * turns)
            };
            kept.iter().map(term).sum()
        })
        .collect();
    for options in ["", "--dwell 5"] {
        dir.ok(&format!("fhd late.h5 --field-map map.h5 --tolerance 1e-4 {options} -o image.h5"));
        let error = distance(&read_images(dir.path("image.h5"))[0].data, &exact);
        assert!(error < 1e-3, "{options:?}: {error}");
    }
}

/// Frames have the same bits as images of files with only their shots. Each slice has its own map.
#[test]
fn frames_and_slices() {
    let dir = TempDir::new();
    dir.ok(&format!("{SPIRAL} {FIELD} --coils 2 --maps coils.h5 -o scan.h5"));
    let whole = read_dataset(&dir, "scan.h5");
    let mut part = whole.clone();
    part.scans[0] = whole.scans[0].shots(4..10);
    write_dataset(dir.path("part.h5"), &part);
    for line in [
        "grid FILE --density ramp",
        "fhd FILE --maps coils.h5",
        "cg FILE --maps coils.h5 --iterations 4 --memory-limit 1G",
    ] {
        let line = format!("{line} --field-map map.h5");
        dir.ok(&format!("--quiet {} --frame-shots 6 -o part_image.h5", line.replace("FILE", "part.h5")));
        // Few shots alias: --quiet suppresses the warning.
        dir.ok(&format!("--quiet {} --frame-shots 6 --frame-step 2 -o frames.h5", line.replace("FILE", "scan.h5")));
        let (frames, part) = (read_images(dir.path("frames.h5")), read_images(dir.path("part_image.h5")));
        assert!(frames.len() == 4 && frames[2].data == part[0].data, "{line}");
        assert_ne!(frames[2].data, frames[1].data, "{line}");
    }
    // Two slices, whose maps have opposite signs.
    let map = read_images(dir.path("map.h5"))[0].data.clone();
    let mut slices = whole.clone();
    slices.scans.push(whole.scans[0].clone());
    slices.scans[1].index.slice = 1;
    slices.scans[1].index.repetition = 0;
    write_dataset(dir.path("slices.h5"), &slices);
    write_map(&dir, "two.cfl", [48, 48, 1], 2, |i| if i < 48 * 48 { map[i] } else { -map[i - 48 * 48] });
    write_map(&dir, "minus.cfl", [48, 48, 1], 1, |i| -map[i]);
    for line in ["grid FILE", "cg FILE --maps coils.h5 --iterations 4", "cg FILE --iterations 4"] {
        dir.ok(&format!("{} --field-map two.cfl -o slices_image.h5", line.replace("FILE", "slices.h5")));
        dir.ok(&format!("{} --field-map map.h5 -o a.h5", line.replace("FILE", "scan.h5")));
        dir.ok(&format!("{} --field-map minus.cfl -o b.h5", line.replace("FILE", "scan.h5")));
        let both = read_images(dir.path("slices_image.h5"));
        assert_eq!(both[0].data, read_images(dir.path("a.h5"))[0].data, "{line}");
        assert_eq!(both[1].data, read_images(dir.path("b.h5"))[0].data, "{line}");
    }
    let cg = "cg slices.h5 --maps coils.h5 --field-map two.cfl";
    dir.fails(1, &format!("{cg} --save-q q.bin -o no.h5"), &["2 different trajectories or maps"]);
    write_map(&dir, "three.cfl", [48, 48, 1], 3, |_| Complex::default());
    dir.fails(1, "grid slices.h5 --field-map three.cfl -o no.h5", &["3 maps", "2 slices"]);
}

/// Maps on a reconstructed matrix that is smaller than the encoded one and has the same voxels.
#[test]
fn maps_on_the_reconstructed_matrix() {
    let dir = TempDir::new();
    dir.ok(&format!("{SPIRAL} {FIELD} -o scan.h5"));
    let mut dataset = read_dataset(&dir, "scan.h5");
    let recon = &mut dataset.header.encodings[0].recon;
    (recon.matrix, recon.fov_mm) = ([48, 40, 1], [48.0, 40.0, 1.0]);
    (dataset.scans[0].recon_matrix, dataset.scans[0].recon_fov_mm) = (recon.matrix, recon.fov_mm);
    write_dataset(dir.path("cut.h5"), &dataset);
    let map = read_images(dir.path("map.h5"))[0].data.clone();
    // Four rows on either side are removed.
    write_map(&dir, "small.cfl", [48, 40, 1], 1, |i| map[i + 4 * 48]);
    write_map(&dir, "padded.cfl", [48, 48, 1], 1, |i| {
        if (4..44).contains(&(i / 48)) {
            map[i]
        } else {
            Complex::default()
        }
    });
    dir.ok("grid cut.h5 --field-map small.cfl -o small.h5");
    dir.ok("grid cut.h5 --field-map padded.cfl -o padded.h5");
    assert_eq!(read_images(dir.path("small.h5"))[0].data, read_images(dir.path("padded.h5"))[0].data);
    dataset.header.encodings[0].recon.fov_mm = [48.0, 48.0, 1.0];
    write_dataset(dir.path("scaled.h5"), &dataset);
    dir.fails(1, "grid scaled.h5 --field-map small.cfl -o no.h5", &["[48, 40, 1]", "[48, 48, 1]", "encoded matrix"]);
}

#[test]
fn invalid_maps_and_options_are_errors() {
    let dir = TempDir::new();
    dir.ok(&format!("{SPIRAL} {FIELD} -o scan.h5"));
    dir.ok("simulate --matrix 48,40 --trajectory radial --shots 20 -o other.h5");
    write_map(&dir, "complex.cfl", [48, 48, 1], 1, |i| Complex::new(1.0, if i == 7 { 2.0 } else { 0.0 }));
    // The writer refuses NaN: the test writes it into the file.
    write_map(&dir, "nan.cfl", [48, 48, 1], 1, |_| Complex::new(1.0, 0.0));
    let mut bytes = std::fs::read(dir.path("nan.cfl")).unwrap();
    bytes[9 * 8..9 * 8 + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(dir.path("nan.cfl"), bytes).unwrap();
    write_map(&dir, "minus.cfl", [48, 48, 1], 1, |_| Complex::new(-2.0, 0.0));
    write_map(&dir, "turned.cfl", [40, 48, 1], 1, |_| Complex::new(1.0, 0.0));
    for command in ["grid", "fhd", "cg"] {
        for (options, words) in [
            ("scan.h5 --field-map complex.cfl", &["complex.cfl", "voxel 7", "complex", "Hz"][..]),
            ("scan.h5 --field-map nan.cfl", &["nan.cfl", "voxel 9", "NaN"]),
            ("scan.h5 --decay-map minus.cfl", &["minus.cfl", "-2", "1/s", "negative"]),
            ("scan.h5 --field-map turned.cfl", &["turned.cfl", "[40, 48, 1]", "[48, 48, 1]"]),
            ("other.h5 --dwell 5 --field-map turned.cfl", &["[40, 48, 1]", "[48, 40, 1]", "another order"]),
            ("scan.h5 --dwell 5", &["--dwell goes with a map", "--field-map"]),
            ("scan.h5 --readout-start 5", &["--readout-start goes with a map"]),
            ("scan.h5 --field-map map.h5 --dwell 0", &["--dwell is 0"]),
            ("scan.h5 --field-map map.h5 --dwell NaN", &["--dwell is NaN"]),
            ("scan.h5 --field-map map.h5 --readout-start inf", &["--readout-start is inf"]),
            ("scan.h5 --field-map none.h5", &["none.h5"]),
        ] {
            dir.fails(1, &format!("{command} {options} -o no.h5"), words);
        }
        dir.fails(1, &format!("{command} scan.h5 --field-map map.h5 -o map.h5"), &["map.h5", "to be read"]);
    }
    dir.fails(1, "grid scan.h5 --kspace --field-map map.h5 -o no.h5", &["no gridded k-space"]);
    for command in ["fbp", "propeller"] {
        dir.fails(2, &format!("{command} scan.h5 --field-map map.h5 -o no.h5"), &["--field-map"]);
    }
    let simulate = "simulate --matrix 48,40 --trajectory radial";
    for (options, words) in [
        ("--off-resonance 50", &["--dwell"][..]),
        ("--off-resonance inf --dwell 5", &["--off-resonance is inf"]),
        ("--readout-start 5", &["--readout-start goes with a map"]),
        ("--field-map map.h5 --dwell 5", &["[48, 48, 1]", "[48, 40, 1]"]),
        ("--field-map turned.cfl --dwell 5", &["[40, 48, 1]", "another order"]),
        ("--decay-map minus.cfl --dwell 5", &["negative"]),
        ("--off-resonance 50 --dwell 5 --write-field-map no.nii", &["negative numbers", ".cfl"]),
        ("--dwell -5", &["--dwell is -5"]),
    ] {
        dir.fails(1, &format!("{simulate} {options} -o no.h5"), words);
    }
    dir.fails(1, &format!("{simulate} --dwell 5 -o no.cfl"), &["BART", "sample time"]);
    dir.fails(2, &format!("{simulate} --field-map map.h5 --off-resonance 5 -o no.h5"), &["--off-resonance"]);
    dir.fails(1, &format!("{simulate} --write-field-map map.h5 -o no.h5"), &["--off-resonance"]);
    let moving = "simulate --matrix 48,48 --trajectory propeller --motion 5,2 --off-resonance 50 --dwell 5 -o no.h5";
    dir.fails(1, moving, &["--motion", "at rest"]);
}
