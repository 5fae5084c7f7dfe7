//! Positions in the patient: the points of a phantom in 48 poses, and the volumes of NIfTI files.

use crate::io::{Dataset, Placement};
use crate::{noise, only_image, python, raw_file, read_images, scan, space, with_lock, write_dataset, TempDir};
use num_complex::Complex;
use recon::scan::{Header, HeaderEncoding, TrajectoryKind};
use recon::Trajectory;
use std::io::Write;

/// The points of a phantom in 48 poses are within 0.1 mm of their positions. nibabel reads NIfTI files, ISMRMRD's
/// package reads its images, and pydicom and dcm2niix read DICOM files. Patient position and table position do not
/// matter: positions of ISMRMRD are in the patient's coordinates.
#[test]
fn points_in_48_poses() {
    const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cli/orientation.py");
    let dir = TempDir::new();
    if !python(&["-c", "import h5py, ismrmrd, nibabel, pydicom"], &dir).is_some_and(|out| out.status.success()) {
        // Not eprintln!: the test harness hides its output if the test passes.
        let _ =
            writeln!(std::io::stderr(), "skipped: no Python with h5py, ismrmrd, nibabel, pydicom (RECON_TEST_PYTHON)");
        return;
    }
    let out = python(&[SCRIPT, "write", "."], &dir).unwrap();
    assert!(out.status.success(), "{out:?}");
    let names = String::from_utf8(out.stdout).unwrap();
    assert_eq!(names.lines().count(), 48);
    for name in names.lines() {
        dir.ok(&format!("grid {name}.h5 -o {name}.nii"));
        dir.ok(&format!("grid {name}.h5 -o {name}_image.h5"));
        std::fs::create_dir(dir.path(&format!("{name}_dicom"))).unwrap();
        dir.ok(&format!("grid {name}.h5 -q -o {name}_dicom/image.dcm"));
    }
    let out = python(&[SCRIPT, "check", "."], &dir).unwrap();
    let (table, errors) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{table}{errors}");
    let _ = writeln!(std::io::stderr(), "{errors}{table}");
    assert_eq!(table.lines().count(), 2 + 8);
    // docs/program.md has the same kinds and numbers of poses.
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/program.md")).unwrap();
    for line in table.lines().skip(2) {
        let start: Vec<&str> = line.splitn(4, '|').take(3).collect();
        assert!(page.contains(&start.join("|")), "docs/program.md lacks {line}");
    }
}

const AXIAL: Placement = Placement {
    position: [0.0; 3],
    read_dir: [1.0, 0.0, 0.0],
    phase_dir: [0.0, 1.0, 0.0],
    slice_dir: [0.0, 0.0, 1.0],
    table_position: [0.0; 3],
    measurement_uid: 0,
    acquisition_time_stamp: 0,
    physiology_time_stamp: [0; 3],
    repetition_time_ms: None,
};

/// Returns axial slices at these positions; all voxels of slice i are i + 1.
fn slices(positions: &[[f32; 3]]) -> Dataset {
    let trajectory = Trajectory::cartesian(&[8, 8]).unwrap();
    let matrix = space([8, 8, 1], [16.0, 16.0, 5.0]);
    let mut dataset = scan(&trajectory, matrix, matrix, 1, noise(64, 1));
    let first = dataset.scans.remove(0);
    for (i, &position) in positions.iter().enumerate() {
        let mut scan = first.clone();
        scan.index.slice = i as u16;
        scan.placement = Placement { position, ..AXIAL };
        // The sum of the voxels is at k = 0, and the image is at the scale of the object.
        // Lines of zeros cause a warning.
        let is_centre = |m: usize| scan.coordinates.iter().all(|k| k[m] == 0.0);
        scan.data =
            (0..64).map(|m| if is_centre(m) { Complex::from(64.0 * (i + 1) as f32) } else { 1e-12.into() }).collect();
        dataset.scans.push(scan);
    }
    dataset
}

/// Slices that do not form a volume are an error before the computation, with the slices, the values and a remedy.
#[test]
fn slices_that_do_not_form_a_volume() {
    let dir = TempDir::new();
    let regular = [0.0, 6.0, 12.0, 18.0].map(|z| [1.0, 2.0, z]);
    let changed = |slice: usize, change: &dyn Fn(&mut Placement)| {
        let mut dataset = slices(&regular);
        change(&mut dataset.scans[slice].placement);
        dataset
    };
    let turned = |p: &mut Placement| {
        let (sin, cos) = 0.02f32.sin_cos();
        (p.read_dir, p.phase_dir) = ([cos, sin, 0.0], [-sin, cos, 0.0]);
    };
    for (words, dataset) in [
        (&["slices 1 and 2 have the same position", "6 mm"][..], changed(2, &|p| p.position[2] = 6.0)),
        (&["not evenly spaced", "slices 1 and 2 are 5.900 mm", "2 and 3 6.100"], changed(2, &|p| p.position[2] = 11.9)),
        (&["slices 0 and 3 are not parallel (their axes differ by 1.15 degrees)"], changed(3, &turned)),
        (&["slice 1 is 0.200 mm beside slice 0"], changed(1, &|p| p.position[0] = 1.2)),
        (&["slice 2 has no valid position"], changed(2, &|p| p.read_dir = [0.0; 3])),
    ] {
        write_dataset(dir.path("scan.h5"), &dataset);
        dir.fails(1, "grid scan.h5 -q -o x.nii", &[words, &["x.nii", "--slice", ".h5"][..]].concat());
        // In ISMRMRD images, each slice has its own position.
        dir.ok("grid scan.h5 -q -o x.h5");
        assert_eq!(read_images(dir.path("x.h5")).len(), 4);
        std::fs::remove_file(dir.path("x.h5")).unwrap();
    }
    // Deviations up to 1 % of the step are rounding.
    write_dataset(dir.path("scan.h5"), &changed(2, &|p| p.position[2] = 12.05));
    dir.ok("grid scan.h5 -q -o x.nii");

    // A slice that moves between repetitions, and a missing repetition.
    let mut dataset = slices(&regular);
    for i in 0..4 {
        let mut scan = dataset.scans[i].clone();
        scan.index.repetition = 1;
        dataset.scans.push(scan);
    }
    dataset.scans[6].placement.position[1] += 0.5;
    write_dataset(dir.path("scan.h5"), &dataset);
    dir.fails(
        1,
        "grid scan.h5 -o y.nii",
        &["slice 2 moved by 0.500 mm", "repetition 0", "repetition 1", "--repetition"],
    );
    dataset.scans.remove(6);
    write_dataset(dir.path("scan.h5"), &dataset);
    dir.fails(1, "grid scan.h5 -o y.nii", &["slice 0 has 2 repetitions and slice 2 has 1", "--repetition"]);
}

/// Slices without a position are stacked by their numbers, with a warning.
#[test]
fn slices_without_positions() {
    let dir = TempDir::new();
    let mut dataset = slices(&[[0.0; 3]; 3]);
    dataset.scans.iter_mut().for_each(|scan| scan.placement = Placement::default());
    write_dataset(dir.path("scan.h5"), &dataset);
    let out = dir.run("grid scan.h5 -o x.nii");
    assert!(out.status == Some(0) && out.stderr.contains("no valid positions"), "{out:?}");
    assert!(out.stderr.contains("in the order of their numbers, 5 mm apart"), "{out:?}");
    let volume = only_image(&dir.path("x.nii"));
    assert_eq!((volume.dims, volume.fov_mm), ([8, 8, 3], [16.0, 16.0, 15.0]));
}

/// Contrasts and sets are in separate files, whose names have the numbers.
#[test]
fn contrasts_have_separate_files() {
    let dir = TempDir::new();
    let mut dataset = slices(&[[0.0, 0.0, 6.0], [0.0, 0.0, 0.0]]);
    for contrast in 1..3 {
        for i in 0..2 {
            let mut scan = dataset.scans[i].clone();
            (scan.index.contrast, scan.index.set) = (contrast, 7);
            scan.data.iter_mut().for_each(|z| *z *= (1 + contrast) as f32);
            dataset.scans.push(scan);
        }
    }
    dataset.scans.iter_mut().for_each(|scan| scan.index.set = 7);
    write_dataset(dir.path("scan.h5"), &dataset);
    let out = dir.run("grid scan.h5 -o echoes.nii.gz");
    assert!(out.status == Some(0) && out.stderr.contains("separate files"), "{out:?}");
    for contrast in 0..3 {
        let name = format!("echoes_contrast{contrast}.nii.gz");
        assert!(out.stderr.contains(&name), "{out:?}");
        let volume = only_image(&dir.path(&name));
        assert_eq!((volume.dims, volume.channels, volume.placement.position), ([8, 8, 2], 1, [0.0, 0.0, 6.0]));
        // Slice 1 is below slice 0.
        let factor = 1.0 + contrast as f32;
        assert!((volume.data[0].re - 2.0 * factor).abs() < 1e-3 && (volume.data[64].re - factor).abs() < 1e-3);
    }
    assert!(!dir.path("echoes.nii.gz").exists());
    // An input is not overwritten under a numbered name either.
    std::fs::copy(dir.path("scan.h5"), dir.path("other.h5")).unwrap();
    std::fs::create_dir(dir.path("echoes_contrast1.nii")).unwrap();
    dir.fails(1, "grid other.h5 -o echoes.nii", &["echoes_contrast1.nii"]);
}

/// The slices of a NIfTI field map belong to the scans at their positions, not to the scans in the order of numbers.
#[test]
fn slices_of_a_field_map() {
    let dir = TempDir::new();
    // The numbers of the slices are not in the order of their positions.
    let mut dataset = slices(&[[0.0, 0.0, 0.0], [0.0, 0.0, 12.0], [0.0, 0.0, 6.0]]);
    write_dataset(dir.path("scan.h5"), &dataset);
    // The images are used as maps: 1, 2 and 3 Hz in slices 0, 1 and 2.
    dir.ok("grid scan.h5 -o map.nii");
    dir.ok("grid scan.h5 -o complex.h5");
    let mut maps = read_images(dir.path("complex.h5"));
    maps.iter_mut().flat_map(|map| &mut map.data).for_each(|z| z.im = 0.0);
    with_lock(|| crate::io::tests::write_images(dir.path("map.h5"), &maps)).unwrap();
    assert_eq!(only_image(&dir.path("map.nii")).dims, [8, 8, 3]);
    dir.ok("grid scan.h5 --field-map map.h5 --dwell 400 -o a.h5");
    dir.ok("grid scan.h5 --field-map map.nii --dwell 400 -o b.h5");
    let (a, b) = (read_images(dir.path("a.h5")), read_images(dir.path("b.h5")));
    for (slice, (a, b)) in a.iter().zip(&b).enumerate() {
        // The sample at k = 0 is at t = 4 * 0.4 ms.
        let phase = std::f32::consts::TAU * (slice + 1) as f32 * 1.6e-3;
        assert!((a.data[0].arg() - phase).abs() < 1e-3, "slice {slice}: {} and {phase}", a.data[0].arg());
        assert!(a.data.iter().zip(&b.data).all(|(x, y)| (x - y).norm() < 1e-4), "slice {slice}");
    }
    // An initial image that is the solution leaves no residual.
    dir.ok("cg scan.h5 --no-maps --initial map.nii --iterations 1 --report report.json -o from_map.h5");
    let report = std::fs::read_to_string(dir.path("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    for slice in 0..3 {
        let residual = report[slice]["images"][0]["residuals"][0].as_f64().unwrap();
        assert!(residual < 1e-3, "slice {slice}: {residual}");
    }
    // A map of other slices is an error.
    dataset.scans[1].placement.position[2] = 14.0;
    write_dataset(dir.path("scan.h5"), &dataset);
    dir.fails(
        1,
        "grid scan.h5 --field-map map.nii --dwell 400 -o c.h5",
        &["slice 1", "map.nii", "no slice at", "14 mm"],
    );
}

/// Acquisitions of one image with different positions cause a warning with both.
#[test]
fn acquisitions_in_different_positions() {
    let dir = TempDir::new();
    let matrix = space([8, 8, 1], [16.0, 16.0, 5.0]);
    let encoding =
        HeaderEncoding { encoded: matrix, recon: matrix, trajectory: TrajectoryKind::Cartesian, ..Default::default() };
    let xml = Header { encodings: vec![encoding], ..Header::default() }.to_xml();
    let mut lines: Vec<_> =
        (0..8).map(|y| raw_file::RawAcquisition { steps: [y, 0], data: vec![1.0; 16], ..Default::default() }).collect();
    with_lock(|| raw_file::write(&dir.path("scan.h5"), &xml, &lines));
    dir.ok("grid scan.h5 -o image.h5");
    lines[5].position = [0.0, 0.0, 0.5];
    with_lock(|| raw_file::write(&dir.path("scan.h5"), &xml, &lines));
    let out = dir.run("grid scan.h5 -o image.h5");
    assert!(out.status == Some(0) && out.stderr.contains("acquisition 5: position is [0.0, 0.0, 0.5]"), "{out:?}");
    assert_eq!(only_image(&dir.path("image.h5")).placement.position, [0.0; 3]);
}
