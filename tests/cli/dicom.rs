//! DICOM files: those of the program as pydicom and dciodvfy read them, and those of pydicom as the program reads them.

use crate::harness::python;
use crate::io::{Placement, ScanIndex};
use crate::{noise, only_image, read_images, scan, space, with_lock, write_dataset, TempDir};
use num_complex::Complex;
use recon::Trajectory;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cli/dicom.py");

/// Prints a line about tests that are not run. The test harness hides the output of eprintln! if the test passes.
fn skip(reason: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}

/// Returns whether Python has pydicom. If not, prints so.
fn has_pydicom(dir: &TempDir) -> bool {
    let found = python(&["-c", "import ismrmrd, pydicom"], dir).is_some_and(|out| out.status.success());
    if !found {
        skip("no Python with ismrmrd and pydicom (RECON_TEST_PYTHON)");
    }
    found
}

/// Runs the script of this test.
fn script(arguments: &[&str], dir: &TempDir) -> String {
    let out = python(&[&[SCRIPT], arguments].concat(), dir).unwrap();
    assert!(out.status.success(), "{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// Writes the files of dciodvfy's errors; `None` if dciodvfy is not there.
fn errors_of_dciodvfy(files: &[PathBuf]) -> Option<Vec<String>> {
    let mut errors = Vec::new();
    for file in files {
        let mut command = Command::new("dciodvfy");
        command.arg(file).stdin(std::process::Stdio::null());
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let out = with_lock(|| command.spawn()).ok()?.wait_with_output().unwrap();
        let text = [out.stdout, out.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert!(text.contains("MRImage"), "{text}");
        let lines = text.lines().filter(|line| line.starts_with("Error"));
        errors.extend(lines.map(|line| format!("{}: {line}", file.display())));
    }
    Some(errors)
}

/// Returns the names of DICOM files.
fn dicom_files(dir: &TempDir) -> Vec<PathBuf> {
    dir.names().iter().filter(|name| name.ends_with(".dcm")).map(|name| dir.path(name)).collect()
}

/// Writes scan.h5: 3 slices in reversed order, 2 repetitions and 2 contrasts, double oblique.
fn write_scan(dir: &TempDir) {
    let trajectory = Trajectory::cartesian(&[12, 9]).unwrap();
    let matrix = space([12, 9, 1], [30.0, 27.0, 5.0]);
    let mut dataset = scan(&trajectory, matrix, matrix, 1, noise(108, 1));
    let mut first = dataset.scans.remove(0);
    // With one excitation for each image, TR is the time between repetitions.
    (first.samples_per_shot, first.skipped_per_shot) = (vec![108], vec![0]);
    let (s, c) = 0.7f32.sin_cos();
    let (s2, c2) = 0.4f32.sin_cos();
    let slice_dir = [s * s2, -c * s2, c2];
    for number in 0..12u16 {
        let mut scan = first.clone();
        let (slice, repetition, contrast) = (number % 3, number / 3 % 2, number / 6);
        scan.index = ScanIndex { slice, repetition, contrast, ..ScanIndex::default() };
        scan.data = noise(108, 2 + u64::from(number));
        let position = std::array::from_fn(|i| [10.0, -20.0, 30.0][i] - 6.0 * f32::from(slice) * slice_dir[i]);
        let (read_dir, phase_dir) = ([c, s, 0.0], [-s * c2, c * c2, s2]);
        scan.placement = Placement { position, read_dir, phase_dir, slice_dir, ..Placement::default() };
        scan.placement.acquisition_time_stamp = u32::from(number);
        dataset.scans.push(scan);
    }
    let header = &mut dataset.header;
    (header.echo_times_ms, header.repetition_times_ms) = (vec![5.0, 12.5], vec![250.0]);
    header.h1_resonance_hz = Some(123_200_000);
    (header.vendor, header.model) = (Some("Vendor A".into()), Some("Model 3T".into()));
    header.patient_position = Some("FFP".into());
    write_dataset(dir.path("scan.h5"), &dataset);
}

/// Positions, values, series and UIDs as pydicom reads them, and no errors of dciodvfy.
#[test]
fn files_of_other_readers() {
    let dir = TempDir::new();
    write_scan(&dir);
    // The arguments of a line are separated by spaces.
    let patient = "--patient-name Müller^Jürgen --patient-id 4711";
    dir.ok(&format!("grid scan.h5 -q {patient} -o image.dcm"));
    dir.ok("grid scan.h5 -o image.h5");
    dir.ok(&format!("cg scan.h5 --no-maps --iterations 1 -q {patient} -o other.dcm"));
    // The map is the imaginary part of an image, in Hz.
    let mut map = read_images(dir.path("image.h5")).remove(0);
    map.data.iter_mut().for_each(|z| *z = Complex::from(100.0 * z.im));
    write_map(&dir, &map);
    assert_eq!(dicom_files(&dir).len(), 12 + 12 + 1);
    match errors_of_dciodvfy(&dicom_files(&dir)) {
        Some(errors) => assert_eq!(errors, Vec::<String>::new()),
        None => skip("no dciodvfy (Debian: dicom3tools)"),
    }
    if has_pydicom(&dir) {
        script(&["check", "."], &dir);
    }

    // The program reads its own files: the same position, and values within half a step.
    let images = read_images(dir.path("image.h5"));
    for image in &images {
        let ScanIndex { slice, repetition, contrast, .. } = image.index;
        let name = format!("image_contrast{contrast}_repetition{repetition}_slice{slice}.dcm");
        let read = only_image(&dir.path(&name));
        let largest = images.iter().flat_map(|i| &i.data).map(|z| z.norm()).fold(0.0, f32::max);
        let near = |a: [f32; 3], b: [f32; 3]| (0..3).all(|i| (a[i] - b[i]).abs() < 1e-4);
        assert!(read.dims == image.dims && near(read.fov_mm, image.fov_mm), "{:?} {:?}", read.fov_mm, image.fov_mm);
        assert_eq!((read.index.repetition, read.index.contrast), (repetition, contrast));
        let (a, b) = (&read.placement, &image.placement);
        assert!(near(a.position, b.position) && near(a.slice_dir, b.slice_dir), "{a:?} {b:?}");
        assert!(near(a.read_dir, b.read_dir) && near(a.phase_dir, b.phase_dir), "{a:?} {b:?}");
        let error = read.data.iter().zip(&image.data).map(|(x, y)| (x.re - y.norm()).abs()).fold(0.0, f32::max);
        assert!(error < 0.51 * largest / 32767.0 && read.data.iter().all(|z| z.im == 0.0), "{error}");
    }
    // The same call writes the same bits, and a different patient is a different study.
    let bytes = |name: &str| std::fs::read(dir.path(name)).unwrap();
    let first = bytes("image_contrast1_repetition1_slice2.dcm");
    dir.ok(&format!("grid scan.h5 -q {patient} -o image.dcm"));
    assert_eq!(bytes("image_contrast1_repetition1_slice2.dcm"), first);
}

/// Writes map.dcm, and map.npy for the script.
fn write_map(dir: &TempDir, map: &crate::io::Image) {
    let fields = crate::io::DicomFields { study_uid: Some("1.2.3.4".into()), ..Default::default() };
    recon::atomic_file::write_atomically(|files| {
        crate::io::dicom::write_dicom(files, &dir.path("map.dcm"), std::slice::from_ref(map), &fields)
    })
    .unwrap();
    let shape = format!("({}, {})", map.dims[1], map.dims[0]);
    let mut npy = b"\x93NUMPY\x01\x00".to_vec();
    let mut text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    while (10 + text.len() + 1) % 64 != 0 {
        text.push(' ');
    }
    text.push('\n');
    npy.extend((text.len() as u16).to_le_bytes());
    npy.extend(text.as_bytes());
    npy.extend(map.data.iter().flat_map(|z| z.re.to_le_bytes()));
    std::fs::write(dir.path("map.npy"), npy).unwrap();
}

/// Files of pydicom: byte orders, implicit and explicit types, numbers of bits, frames of enhanced files; and files
/// that are an error.
#[test]
fn files_of_other_writers() {
    let dir = TempDir::new();
    if !has_pydicom(&dir) {
        return;
    }
    let (mut good, mut bad) = (0, 0);
    for line in script(&["write", "."], &dir).lines() {
        let expected: serde_json::Value = serde_json::from_str(line).unwrap();
        let name = format!("{}.dcm", expected["name"].as_str().unwrap());
        if let Some(words) = expected["words"].as_array() {
            let words: Vec<&str> = words.iter().map(|word| word.as_str().unwrap()).chain([name.as_str()]).collect();
            dir.fails(1, &format!("info {name}"), &words);
            bad += 1;
            continue;
        }
        let images = read_images(dir.path(&name));
        let all = expected["images"].as_array().unwrap();
        assert_eq!(images.len(), all.len(), "{name}");
        for (image, expected) in images.iter().zip(all) {
            check_image(image, expected, &name);
        }
        dir.ok(&format!("info {name}"));
        good += 1;
    }
    assert_eq!((good, bad), (3 * 8 + 2 + 3, 6));
}

fn check_image(image: &crate::io::Image, expected: &serde_json::Value, name: &str) {
    let numbers = |value: &serde_json::Value| -> Vec<f64> {
        value.as_array().map_or(Vec::new(), |all| all.iter().map(|v| v.as_f64().unwrap()).collect())
    };
    let near = |found: &[f32], expected: &[f64]| {
        found.len() == expected.len()
            && found.iter().zip(expected).all(|(a, b)| (f64::from(*a) - b).abs() <= 1e-6 * (1.0 + b.abs()))
    };
    let dims: Vec<f64> = image.dims.iter().map(|&n| n as f64).collect();
    assert_eq!(dims, numbers(&expected["dims"]), "{name}");
    let values: Vec<f32> = image.data.iter().map(|z| z.re).collect();
    assert!(near(&values, &numbers(&expected["values"])), "{name}: {values:?} {}", expected["values"]);
    assert!(near(&image.fov_mm, &numbers(&expected["fov"])), "{name}: {:?}", image.fov_mm);
    let counters = ["slice", "repetition", "contrast"].map(|key| expected[key].as_u64().unwrap() as u16);
    assert_eq!([image.index.slice, image.index.repetition, image.index.contrast], counters, "{name}");
    let Placement { position, read_dir, phase_dir, slice_dir, .. } = image.placement;
    if expected["position"].is_null() {
        assert_eq!(image.placement, Placement::default(), "{name}");
        return;
    }
    assert!(near(&position, &numbers(&expected["position"])), "{name}: {position:?} {expected}");
    for (found, expected) in [read_dir, phase_dir, slice_dir].iter().zip(expected["directions"].as_array().unwrap()) {
        assert!(near(found, &numbers(expected)), "{name}: {found:?} {expected}");
    }
}

/// Slices that do not form a volume, names, volumes, coils, unknown positions and wrong options.
#[test]
fn names_and_errors() {
    let dir = TempDir::new();
    write_scan(&dir);
    // One image has the name of the option. One slice is selected, and its numbers are not in the names.
    let out = dir.run("grid scan.h5 --slice 1 --repetition 0 -o one.DCM");
    assert!(out.status == Some(0) && out.stderr.contains("2 files in 2 series"), "{out:?}");
    assert!(dir.path("one_contrast0.DCM").exists() && dir.path("one_contrast1.DCM").exists());
    // Frames are repetitions.
    dir.ok("simulate --matrix 16,16 --trajectory golden-angle --shots 40 -o spokes.h5");
    let out = dir.run("grid spokes.h5 --frame-shots 20 --density ramp -o frames.dcm");
    assert!(out.status == Some(0) && out.stderr.contains("position in the patient is unknown"), "{out:?}");
    assert!(dir.path("frames_repetition0.dcm").exists() && dir.path("frames_repetition1.dcm").exists());
    // An output under a numbered name is not an input, and is checked before the computation.
    std::fs::create_dir(dir.path("other_repetition1.dcm")).unwrap();
    dir.fails(1, "grid spokes.h5 --frame-shots 20 --density ramp -o other.dcm", &["other_repetition1.dcm"]);
    // A volume has a file for each slice.
    dir.ok("simulate --matrix 8,8,12 --trajectory kooshball -o volume.h5");
    dir.ok("grid volume.h5 -q --density ramp -o volume.dcm");
    assert!(dir.path("volume_z00.dcm").exists() && dir.path("volume_z11.dcm").exists());
    // Coils.
    dir.ok("simulate --matrix 16,16 --trajectory spiral --coils 2 --maps maps.h5 -o coils.h5");
    dir.fails(1, "grid coils.h5 --combine none -o coils.dcm", &["2 channels", "combine", ".nii", "coils.dcm"]);
    dir.fails(1, "simulate --matrix 16,16 --coils 2 --maps maps.dcm -o x.h5", &["maps.dcm", ".cfl"]);
    match errors_of_dciodvfy(&dicom_files(&dir).into_iter().filter(|path| path.is_file()).collect::<Vec<_>>()) {
        Some(errors) => assert_eq!(errors, Vec::<String>::new()),
        None => skip("no dciodvfy (Debian: dicom3tools)"),
    }
    // Wrong options.
    for (arguments, words) in [
        ("grid scan.h5 --patient-id 1 -o x.nii", ["--patient-id", ".dcm"]),
        ("grid scan.h5 --study-uid 1.02 -o x.dcm", ["1.02", "leading zeros"]),
        ("grid scan.h5 --patient-name a\\b -o x.dcm", ["a\\\\b", "backslash"]),
    ] {
        dir.fails(1, arguments, &words);
    }
}

/// Damaged files: each is an error or an image, and no file makes the program panic.
#[test]
fn damaged_files() {
    let dir = TempDir::new();
    write_scan(&dir);
    dir.ok("grid scan.h5 -q --slice 1 --repetition 0 -o one.dcm");
    let good = std::fs::read(dir.path("one_contrast0.dcm")).unwrap();
    let path = dir.path("bad.dcm");
    let read = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        crate::io::read_images(Path::new(&path))
    };
    for length in (0..good.len()).step_by(13) {
        let e = read(&good[..length]).unwrap_err();
        assert!(e.message().contains("bad.dcm"), "{length}: {e}");
    }
    for at in 128..good.len() - 2 * 108 {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[at] = value;
            let images = read(&bad).unwrap_or_default();
            let voxels: usize = images.iter().map(|image| image.data.len()).sum();
            assert!(voxels <= bad.len(), "byte {at} is {value}: {voxels} voxels");
        }
    }
}
