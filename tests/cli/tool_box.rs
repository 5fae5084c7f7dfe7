//! `convert`, `coilmaps`, `density` and `forward`: what the program knows, as files.

use crate::common::say;
use crate::io::tests::write_cfl;
use crate::io::{ismrmrd, read_cfl, Dataset};
use crate::{with_lock, TempDir};
use std::process::Command;

/// Runs `bart` in a folder; false if it is not there.
fn bart(dir: &TempDir, line: &str) -> bool {
    let mut command = Command::new("bart");
    command.args(line.split_whitespace()).current_dir(&dir.0);
    let Ok(out) = with_lock(|| command.output()) else { return false };
    assert!(out.status.success(), "bart {line}: {out:?}");
    true
}

fn read_dataset(dir: &TempDir, name: &str) -> Dataset {
    with_lock(|| ismrmrd::read_dataset(dir.path(name), None)).unwrap()
}

#[test]
fn raw_data_are_converted_in_both_directions() {
    let dir = TempDir::new();
    for (matrix, fov, options) in [
        ("24,20", "24,20,1", "--trajectory spiral --coils 3"),
        ("12,10,8", "12,10,8", "--trajectory kooshball --coils 2"),
    ] {
        dir.ok(&format!("simulate --matrix {matrix} {options} -o raw.h5"));
        dir.ok("convert raw.h5 -o k.cfl");
        // The same files as those of the simulation for BART.
        dir.ok(&format!("simulate --matrix {matrix} {options} -o simulated.cfl"));
        let (k, simulated) = (read_cfl(dir.path("k.cfl")).unwrap(), read_cfl(dir.path("simulated.cfl")).unwrap());
        assert_eq!(k, simulated);
        let points = ["k_traj.cfl", "simulated_traj.cfl"].map(|name| read_cfl(dir.path(name)).unwrap());
        assert_eq!(points[0].dims, points[1].dims);
        for (a, b) in points[0].data.iter().zip(&points[1].data) {
            assert!((a - b).norm() <= 1e-5 && a.im == 0.0, "{a} and {b}");
        }
        dir.ok(&format!("convert k.cfl --trajectory k_traj.cfl --matrix {matrix} --fov {fov} -o again.h5"));
        let (raw, again) = (read_dataset(&dir, "raw.h5"), read_dataset(&dir, "again.h5"));
        let (a, b) = (&raw.scans[0], &again.scans[0]);
        assert_eq!((&a.data, a.encoded_matrix, a.encoded_fov_mm), (&b.data, b.encoded_matrix, b.encoded_fov_mm));
        assert_eq!((&a.samples_per_shot, a.coils), (&b.samples_per_shot, b.coils));
        for (a, b) in a.coordinates.iter().flatten().zip(b.coordinates.iter().flatten()) {
            assert!((a - b).abs() < 1e-6, "{a} and {b}");
        }
    }
    // Without a field of view there is a warning. The file is read.
    let out = dir.run("convert k.cfl --trajectory k_traj.cfl --matrix 12,10,8 -o unknown.h5");
    assert!(out.status == Some(0) && out.stderr.contains("--fov"), "{out:?}");
    assert!(dir.ok("info unknown.h5").contains("12 x 10 x 8 voxels"));
    // Noise and weights are not in files of BART.
    dir.ok("simulate --matrix 16,16 --coils 2 --snr 20 --noise-samples 500 --weights -o noisy.h5");
    let out = dir.run("convert noisy.h5 -o noisy.cfl");
    assert!(out.status == Some(0) && out.stderr.contains("noise acquisitions, density weights"), "{out:?}");

    dir.fails(1, "convert raw.h5 -o raw.nii", &["raw data", ".h5, .mrd, .cfl"]);
    dir.fails(1, "convert raw.h5 -o x", &["x:", ".npy, .mat"]);
    dir.fails(1, "convert raw.h5 --slice 4 -o x.cfl", &["no such slice"]);
    dir.fails(1, "convert k.cfl --trajectory k_traj.cfl --matrix 12,10,8 --fov 1,2 -o x.h5", &["--fov", "220,220,5"]);
    dir.fails(1, "convert k.cfl --trajectory k_traj.cfl --matrix 12,10,8 -o k_traj.hdr", &["k_traj", "another name"]);
    dir.fails(2, "convert k.cfl --trajectory k_traj.cfl -o x.h5", &["--matrix"]);
    // K-space that is taken for an image.
    write_cfl(dir.path("plain.cfl"), &[1, 6, 4, 2], &crate::noise(48, 2)).unwrap();
    let out = dir.run("convert plain.cfl -o plain.npy");
    assert!(out.status == Some(0) && out.stderr.contains("give --trajectory and --matrix"), "{out:?}");
}

#[test]
fn files_of_bart_become_ismrmrd_files() {
    let dir = TempDir::new();
    if !bart(&dir, "traj -r -x 32 -y 48 t") {
        say("skipped: scans of BART, because there is no bart here");
        return;
    }
    bart(&dir, "phantom -k -s 4 -t t k");
    dir.ok("convert k.cfl --trajectory t.cfl --matrix 32,32 --fov 220,220,5 -o scan.h5");
    dir.ok("grid scan.h5 -o converted.h5");
    dir.ok("grid k.cfl --trajectory t.cfl --matrix 32,32 -o direct.h5");
    assert_eq!(dir.error("converted.h5 direct.h5"), 0.0);
    // Back to BART: the files that it wrote.
    dir.run("convert scan.h5 -o back.cfl");
    assert_eq!(read_cfl(dir.path("back.cfl")).unwrap(), read_cfl(dir.path("k.cfl")).unwrap());
    bart(&dir, "nrmse -t 0.000001 t back_traj");
}
