//! Raw data as a scanner sends them: without a trajectory, or with the other sign of k-space.

use crate::harness::{read_images, with_lock, write_dataset, TempDir};

/// The image of a file whose acquisitions have no trajectory is that of the same file with it.
#[test]
fn cartesian_scans_without_a_trajectory() {
    let dir = TempDir::new();
    for (number, options) in ["--matrix 20,15 --coils 3", "--matrix 12,9,7 --coils 2"].iter().enumerate() {
        dir.ok(&format!("simulate {options} --trajectory cartesian --snr 30 -o stored{number}.h5"));
        dir.ok(&format!("simulate {options} --trajectory cartesian --snr 30 --no-trajectory -o omitted{number}.h5"));
        for file in ["stored", "omitted"] {
            dir.ok(&format!("grid {file}{number}.h5 --combine none -o {file}{number}.cfl"));
        }
        let [stored, omitted] =
            ["stored", "omitted"].map(|file| std::fs::read(dir.path(&format!("{file}{number}.cfl"))));
        let (stored, omitted) = (stored.unwrap(), omitted.unwrap());
        assert!(stored.iter().any(|&byte| byte != 0) && stored == omitted, "{options}: the images differ");
    }
}

/// Radial scans without a trajectory: the header's description gives the angles, which one line says.
#[test]
fn radial_scans_without_a_trajectory() {
    let dir = TempDir::new();
    let scans = [
        "--matrix 24,24 --trajectory radial --shots 20",
        "--matrix 24,24 --trajectory golden-angle --shots 23 --samples 40",
        "--matrix 16,16,6 --trajectory stack-of-stars --shots 12",
    ];
    for options in scans {
        dir.ok(&format!("simulate {options} --coils 2 --snr 30 -o stored.h5"));
        dir.ok(&format!("simulate {options} --coils 2 --snr 30 --no-trajectory -o omitted.h5"));
        dir.ok("grid stored.h5 --combine none -o stored.cfl");
        let out = dir.run("grid omitted.h5 --combine none -o omitted.cfl");
        assert!(out.status == Some(0) && out.stderr.matches('\n').count() == 1, "{out:?}");
        assert!(out.stderr.contains("trajectory from the header"), "{out:?}");
        let [stored, omitted] = ["stored.cfl", "omitted.cfl"].map(|name| read_images(dir.path(name)).remove(0).data);
        let sum = |values: &mut dyn Iterator<Item = f32>| -> f32 { values.sum::<f32>().sqrt() };
        let difference = sum(&mut stored.iter().zip(&omitted).map(|(a, b)| (a - b).norm_sqr()));
        let norm = sum(&mut stored.iter().map(|z| z.norm_sqr()));
        assert!(norm > 0.0 && difference < 1e-5 * norm, "{options}: {difference} of {norm}");
    }
}

/// Without a description, the angles are open: an error names the options.
#[test]
fn open_angles_are_errors() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 16,16 --trajectory radial --shots 20 --no-trajectory -o scan.h5");
    let mut dataset = with_lock(|| crate::io::tests::read_dataset(dir.path("scan.h5"))).unwrap();
    dataset.header.encodings[0].description = None;
    let write = || {
        let stored = crate::io::TrajectoryStorage::Omitted;
        recon::atomic_file::write_atomically(|files| {
            crate::io::ismrmrd::write_dataset(files, &dir.path("open.h5"), &dataset, stored)
        })
    };
    with_lock(write).unwrap();
    dir.fails(1, "grid open.h5 -o a.h5", &["angle_range_degrees"]);
    dir.ok("grid scan.h5 -q -o wanted.h5");
    dir.ok("grid open.h5 -q --angle-range-degrees 180 --first-angle-degrees 0 -o found.h5");
    let [wanted, found] = ["wanted.h5", "found.h5"].map(|name| read_images(dir.path(name)).remove(0).data);
    assert_eq!(wanted, found);
}

#[test]
fn trajectories_that_do_not_follow_from_a_header_are_stored() {
    let dir = TempDir::new();
    dir.fails(1, "simulate --matrix 16,16 --trajectory rosette --no-trajectory -o a.h5", &["rosette", "leave it out"]);
    dir.fails(1, "simulate --matrix 16,16 --trajectory cartesian --no-trajectory -o a.cfl", &["BART", ".h5"]);
}

/// Conjugated samples give the right image with `--conjugate`, and the turned image without it.
#[test]
fn conjugated_samples() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 16,16 --trajectory golden-angle --coils 2 --snr 40 -o scan.h5");
    let mut dataset = with_lock(|| crate::io::tests::read_dataset(dir.path("scan.h5"))).unwrap();
    for scan in &mut dataset.scans {
        scan.data.iter_mut().for_each(|z| *z = z.conj());
    }
    write_dataset(dir.path("conjugated.h5"), &dataset);
    dir.ok("grid scan.h5 --combine none -o right.h5");
    dir.ok("grid conjugated.h5 --conjugate --combine none -o restored.h5");
    dir.ok("grid conjugated.h5 --combine none -o turned.h5");
    let [right, restored, turned] =
        ["right.h5", "restored.h5", "turned.h5"].map(|name| read_images(dir.path(name)).remove(0).data);
    assert_eq!(right, restored);
    // exp(+i 2 pi k.r) is the image at -r; index 0 has no counterpart in an even matrix.
    let index = |x: usize, y: usize| x + 16 * y;
    let largest = right.iter().map(|z| z.norm()).fold(0.0, f32::max);
    for (x, y) in (1..16).flat_map(|y| (1..16).map(move |x| (x, y))) {
        let difference = (turned[index(x, y)] - right[index(16 - x, 16 - y)].conj()).norm();
        assert!(difference < 1e-4 * largest, "voxel {x}, {y}: {difference}");
    }
}

#[test]
fn the_scanner_is_shown() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 8,8 --trajectory cartesian -o scan.h5");
    let mut dataset = with_lock(|| crate::io::tests::read_dataset(dir.path("scan.h5"))).unwrap();
    dataset.header.vendor = Some("SIEMENS".to_owned());
    dataset.header.model = Some("Avanto".to_owned());
    dataset.header.patient_position = Some("HFS".to_owned());
    write_dataset(dir.path("named.h5"), &dataset);
    let text = dir.run("info named.h5").stdout;
    assert!(text.contains("SIEMENS Avanto") && text.contains("HFS"), "{text}");
    assert!(!dir.run("info scan.h5").stdout.contains("scanner"));
}
