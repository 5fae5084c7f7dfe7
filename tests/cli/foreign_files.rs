//! HDF5 files of other programs: any byte order, width, version of the format, layout and filter.

use crate::harness::{python, TempDir};
use std::fs;
use std::io::Write;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/cli/foreign_files.py");

/// Returns a folder with a scan and complex images; `None`, with a line, if there is no Python with h5py.
fn folder() -> Option<TempDir> {
    let dir = TempDir::new();
    if !python(&["-c", "import h5py"], &dir).is_some_and(|out| out.status.success()) {
        // Not eprintln!: the test harness hides its output if the test passes.
        let _ = writeln!(std::io::stderr(), "skipped: HDF5 files of other programs (no h5py; RECON_TEST_PYTHON)");
        return None;
    }
    dir.ok("simulate --matrix 17,20 --coils 3 --shots 23 --snr 30 -o scan.h5");
    dir.ok("grid scan.h5 --combine none -o images.h5");
    Some(dir)
}

/// Runs the script, and returns the lines that it prints.
fn script(dir: &TempDir, arguments: &[&str]) -> Vec<String> {
    let out = python(&[&[SCRIPT], arguments].concat(), dir).unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn all_variants_have_the_same_contents() {
    let Some(dir) = folder() else { return };
    let names = script(&dir, &["write", "scan.h5", "images.h5", "."]);
    assert_eq!(names.len(), 13 + 5);
    dir.ok("grid scan.h5 -o scan.cfl");
    for name in names {
        if name.starts_with("scan") {
            dir.ok(&format!("grid {name}.h5 -o {name}.cfl"));
            let [found, wanted] = [&name, "scan"].map(|name| fs::read(dir.path(&format!("{name}.cfl"))).unwrap());
            assert!(found == wanted, "{name}: another image");
        } else {
            let [found, wanted] = [&name, "images"].map(|name| crate::read_images(dir.path(&format!("{name}.h5"))));
            assert!(found == wanted, "{name}: other images");
        }
    }
}

#[test]
fn announcements_beyond_the_file_are_errors() {
    let Some(dir) = folder() else { return };
    let lines = script(&dir, &["damage", "scan.h5", "."]);
    assert_eq!(lines.len(), 6);
    for line in lines {
        let (name, message) = line.split_once(' ').unwrap();
        dir.fails(1, &format!("grid {name}.h5 -o x.h5"), &[name, message]);
    }
}
