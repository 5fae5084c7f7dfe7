//! Files of BART, with arrays that Debian's BART makes and transforms: an independent reference.

use crate::common::say;
use crate::io::read_cfl;
use crate::{with_lock, TempDir};
use std::fs;
use std::process::{Command, Stdio};

/// Returns whether BART is on this machine; if not, prints a line.
pub fn has_bart() -> bool {
    let found = Command::new("bart").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        say("skipped: a test with BART, which is not there (Debian: bart)");
    }
    found
}

impl TempDir {
    /// Runs a tool of BART in this folder.
    fn bart(&self, line: &str) {
        let mut command = Command::new("bart");
        command.args(line.split_whitespace()).current_dir(&self.0).stdout(Stdio::piped()).stderr(Stdio::piped());
        let out = with_lock(|| command.spawn()).unwrap().wait_with_output().unwrap();
        assert!(out.status.success(), "bart {line}: {}", String::from_utf8_lossy(&out.stderr));
    }
}

/// Returns the largest percent error of the images of two files, which are compared with their phase.
fn largest_error(dir: &TempDir, files: &str) -> f64 {
    let lines = dir.ok(&format!("compare {files} --complex --json"));
    let error =
        |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["percent_error"].as_f64().unwrap();
    lines.lines().map(error).reduce(f64::max).unwrap()
}

/// Cartesian k-space without a trajectory gives BART's Fourier transform: even, odd and different sizes, 2D and 3D,
/// complete and undersampled.
#[test]
fn cartesian_kspace_is_transformed_as_by_bart() {
    if !has_bart() {
        return;
    }
    let dir = TempDir::new();
    dir.bart("phantom -k -x 24 -s 3 plane");
    dir.bart("phantom -k -x 12 -3 volume");
    let cases = [
        ("plane", "0 24 1 24"),
        ("plane", "0 21 1 16"),
        ("plane", "0 15 1 1"),
        ("plane", "0 1 1 1"),
        ("volume", "0 12 1 11 2 9"),
    ];
    for (number, (source, sizes)) in cases.into_iter().enumerate() {
        dir.bart(&format!("resize -c {sizes} {source} ksp"));
        dir.bart("fft -u -i 7 ksp reference");
        dir.ok(&format!("grid ksp --combine none --scale bart --precision f64 -o {number}.cfl"));
        assert!(largest_error(&dir, &format!("{number}.cfl reference")) < 1e-3, "{sizes}");
        // Every second line along y, and the adjoint: zeros add nothing.
        if sizes == "0 24 1 24" {
            dir.bart("ones 2 1 12 on");
            dir.bart("zeros 2 1 12 off");
            dir.bart("join 0 on off both");
            dir.bart("reshape 3 1 24 both pattern");
            dir.bart("fmac ksp pattern ksp");
            dir.bart("fft -u -i 7 ksp reference");
            let log = dir.run("-v fhd ksp --combine none --scale bart -o half.cfl").stderr;
            assert!(log.contains("288 of 576 points were measured"), "{log}");
            assert!(largest_error(&dir, "half.cfl reference") < 1e-3);
        }
    }
}

/// Slices, times and echoes of BART become scans, and their images the same dimensions; each image is that of its part
/// alone.
#[test]
fn slices_times_and_echoes_are_scans() {
    if !has_bart() {
        return;
    }
    let dir = TempDir::new();
    dir.bart("traj -x 40 -y 13 -r -G -t 3 whole");
    dir.bart("scale 0.5 whole traj");
    dir.bart("phantom -k -s 2 -t traj first");
    dir.bart("scale 2 first second");
    dir.bart("join 13 first second first second slices");
    dir.bart("scale 3 slices later");
    dir.bart("join 5 slices later ksp");
    let options = "--matrix 20,20 --density ramp --combine none";
    dir.ok(&format!("grid ksp --trajectory traj {options} -o all.cfl"));
    let all = read_cfl(dir.path("all.cfl")).unwrap();
    assert_eq!(all.dims, [20, 20, 1, 2, 1, 2, 1, 1, 1, 1, 3, 1, 1, 4]);
    dir.ok(&format!("grid ksp --trajectory traj {options} --slice 0,2-3 --repetition 1-2 --contrast 1 -o some.cfl"));
    let some = read_cfl(dir.path("some.cfl")).unwrap();
    assert_eq!(some.dims, [20, 20, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 3]);
    for (time, slice, echo) in [(0, 0, 0), (2, 3, 1), (1, 2, 0), (1, 1, 1)] {
        dir.bart(&format!("slice 10 {time} traj traj_part"));
        dir.bart(&format!("slice 10 {time} 13 {slice} 5 {echo} ksp ksp_part"));
        dir.ok(&format!("grid ksp_part --trajectory traj_part {options} -o part.cfl"));
        let part = read_cfl(dir.path("part.cfl")).unwrap();
        assert_eq!(part.data, all.data[800 * (echo + 2 * (time + 3 * slice))..][..800], "{time} {slice} {echo}");
        // BART finds the image at the same place.
        dir.bart(&format!("slice 10 {time} 13 {slice} 5 {echo} all found"));
        assert_eq!(read_cfl(dir.path("found")).unwrap().data, part.data);
        // One trajectory for all frames.
        dir.ok(&format!("fhd ksp --trajectory traj_part {options} -o shared.cfl", options = "--matrix 20,20"));
    }
    assert_eq!(some.data[..800], all.data[800 * (1 + 2)..][..800]);

    let grid = "grid ksp --trajectory traj --matrix 20,20 -o no.cfl";
    dir.fails(1, &format!("{grid} --slice 4"), &["ksp", "--slice", "no such number, 4", "slices 0, 1, 2, 3"]);
    dir.fails(1, &format!("{grid} --contrast 0-2"), &["--contrast", "2", "contrasts 0, 1"]);
    dir.fails(1, &format!("{grid} --set 1"), &["--set", "sets 0"]);
    dir.fails(1, &format!("{grid} --cardiac-phase 1"), &["--cardiac-phase", "cardiac phases 0"]);
    dir.fails(2, &format!("{grid} --slice 3-1"), &["--slice", "ascending ranges"]);
    // A trajectory of another number of frames, and one for frames that k-space does not have.
    dir.bart("extract 10 0 2 traj two");
    dir.fails(1, "grid ksp --trajectory two --matrix 20,20 -o no.cfl", &["size 3 along dimension 10", "has size 2"]);
    dir.bart("slice 10 0 ksp one");
    dir.fails(1, "grid one --trajectory traj --matrix 20,20 -o no.cfl", &["size 1 along dimension 10", "has size 3"]);
    dir.fails(1, "grid ksp -o no.cfl", &["ksp", "--trajectory and --matrix", "bart transpose 0 2"]);
    dir.fails(1, "grid traj -o no.cfl", &["a trajectory, not k-space"]);
    dir.fails(1, "grid ksp --trajectory traj -o no.cfl", &["--matrix"]);
    dir.fails(1, "grid ksp --conjugate --trajectory traj --matrix 20,20 -o no.cfl", &["--conjugate", "bart conj"]);
}

/// Frames of one trajectory per frame, reconstructed by conjugate gradients with maps that BART estimates. Frames in
/// BART's dimension 10 are read back as initial images and compared in the order of the scans.
#[test]
fn images_of_frames_are_read_back_in_order() {
    if !has_bart() {
        return;
    }
    let dir = TempDir::new();
    dir.bart("phantom -k -x 20 -s 4 ksp");
    dir.bart("scale 2 ksp double");
    dir.bart("join 10 ksp double ksp times");
    dir.bart("scale 5 times other");
    dir.bart("join 13 times other series");
    dir.ok("grid series -o images.cfl");
    dir.ok("grid series -o images.h5");
    assert_eq!(read_cfl(dir.path("images")).unwrap().dims, [20, 20, 1, 1, 1, 1, 1, 1, 1, 1, 3, 1, 1, 2]);
    let found = dir.ok("compare images images.h5 --magnitude --json");
    assert_eq!(found.matches("\"percent_error\":0.0,").count(), 6, "{found}");
    // The initial image of each scan is its own: the solver starts with a small residual.
    dir.bart("ecalib -m 1 -r 20 -c 0 ksp maps");
    dir.ok("cg series --maps maps --iterations 20 --scale bart -o solved.cfl");
    dir.ok("cg series --maps maps --iterations 1 --initial solved --scale bart --report again.json -o again.cfl");
    let report: serde_json::Value = serde_json::from_slice(&fs::read(dir.path("again.json")).unwrap()).unwrap();
    for image in report.as_array().unwrap() {
        let first = image["images"][0]["residuals"][0].as_f64().unwrap();
        assert!(first < 0.05, "{image}");
    }
}

/// Names without an ending, as BART's tools take them.
#[test]
fn names_without_an_ending() {
    if !has_bart() {
        return;
    }
    let dir = TempDir::new();
    dir.bart("phantom -k -x 16 -s 2 scan.v1");
    dir.ok("grid scan.v1.cfl -o image.cfl");
    dir.ok("grid scan.v1 -o again.cfl");
    assert_eq!(dir.error("again image"), 0.0);
    assert!(dir.ok("info scan.v1").contains("[16, 16, 1, 2]"));
    // An input is not overwritten under its other name.
    dir.fails(1, "grid scan.v1 -o scan.v1.cfl", &["scan.v1.cfl", "read as input"]);
    // An output needs its ending, and a file of the name itself is not BART's.
    dir.fails(1, "grid scan.v1 -o image", &["image", "ending", ".cfl"]);
    dir.fails(1, "grid nothing -o no.cfl", &["nothing"]);
    fs::write(dir.path("scan.v1"), "text").unwrap();
    dir.fails(1, "grid scan.v1 -o no.cfl", &["scan.v1"]);
    fs::remove_file(dir.path("scan.v1")).unwrap();
    fs::remove_file(dir.path("scan.v1.hdr")).unwrap();
    dir.fails(1, "grid scan.v1 -o no.cfl", &["scan.v1.hdr", "needs its .hdr"]);
}
