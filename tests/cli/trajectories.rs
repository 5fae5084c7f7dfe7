//! Trajectories of `recon simulate`, and trajectories that were measured.

use crate::common::documents::blocks;
use crate::{with_lock, TempDir};
use std::process::Command;

#[test]
fn a_lissajous_curve_is_simulated_and_reconstructed() {
    let dir = TempDir::new();
    let scan = "simulate --matrix 64,64 --trajectory lissajous";
    let log = dir.run(&format!("-v {scan} --truth truth.h5 -o scan.h5")).stderr;
    assert!(log.contains("32 shots of "), "{log}");
    dir.ok("grid scan.h5 -o gridded.h5");
    dir.ok("cg scan.h5 --no-maps --iterations 20 -o solved.h5");
    let error = |file: &str| dir.error(&format!("{file} truth.h5 --magnitude --scale best"));
    println!("gridding {} %, conjugate gradients {} %", error("gridded.h5"), error("solved.h5"));
    // Spokes of the same matrix have 17 %.
    assert!(error("gridded.h5") < 17.0 && error("solved.h5") < 16.5);
    // Half of the frequencies leave gaps.
    dir.ok(&format!("{scan} --frequencies 36,35 -o half.h5"));
    dir.ok("grid half.h5 -o half_image.h5");
    assert!(error("half_image.h5") > 1.5 * error("gridded.h5"), "{} %", error("half_image.h5"));

    dir.fails(1, &format!("{scan} --frequencies 72,70 -o x.h5"), &["common factor 2", "72 and 73"]);
    dir.fails(1, &format!("{scan} --frequencies 71,73 -o x.h5"), &["both odd"]);
    dir.fails(1, &format!("{scan} --frequencies 72,73 --shots 1 --samples 100 -o x.h5"), &["100 samples"]);
    dir.fails(1, &format!("{scan} --turns 5 -o x.h5"), &["--turns", "lissajous"]);
    dir.fails(1, "simulate --matrix 64,64 --frequencies 72,73 -o x.h5", &["--frequencies", "radial"]);
    dir.fails(1, "simulate --matrix 64,64,64 --trajectory lissajous -o x.h5", &["2D"]);
    dir.fails(2, &format!("{scan} --frequencies 72 -o x.h5"), &["320,321"]);
}

/// Runs the Python block of docs/program.md that converts a measured trajectory, with other names and numbers. Returns
/// `None` on a Windows without Python.
fn convert(dir: &TempDir, changes: &[(&str, &str)]) -> Option<std::process::Output> {
    let all = blocks("docs/program.md");
    let block = all.iter().find(|block| block.language == "python" && block.text().contains("k.hdr")).unwrap();
    let mut text = block.text();
    for (old, new) in changes {
        assert!(text.contains(old), "{old} is not in:\n{text}");
        text = text.replace(old, new);
    }
    let mut python = Command::new("python3");
    python.args(["-c", &text]).current_dir(&dir.0);
    python.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    match with_lock(|| python.spawn()) {
        Err(e) if cfg!(windows) && e.kind() == std::io::ErrorKind::NotFound => None,
        child => Some(child.unwrap().wait_with_output().unwrap()),
    }
}

/// Returns the coordinates, in cycles per field of view, of a trajectory in BART's format.
fn coordinates(dir: &TempDir, name: &str) -> Vec<[f64; 2]> {
    let bytes = std::fs::read(dir.path(name)).unwrap();
    let numbers: Vec<f32> = bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    numbers.chunks_exact(6).map(|k| [f64::from(k[0]), f64::from(k[2])]).collect()
}

/// A scan whose gradients were late: the measured trajectory gives the image, and the nominal one does not.
#[test]
fn a_measured_trajectory_replaces_the_nominal_one() {
    let dir = TempDir::new();
    let scan = "simulate --matrix 64,64 --trajectory spiral --shots 8 --turns 5 --samples 600";
    dir.ok(&format!("{scan} --truth truth.h5 -o scan.cfl"));
    let measured = coordinates(&dir, "scan_traj.cfl");
    // The export of a scanner: rad/m of a field of view of 0.22 m, rounded as text.
    let to_rad_per_m = std::f64::consts::TAU / 0.22;
    let line = |k: &[f64; 2]| format!("{:.3} {:.3}\n", k[0] * to_rad_per_m, k[1] * to_rad_per_m);
    std::fs::write(dir.path("k_rad_per_m.txt"), measured.iter().map(line).collect::<String>()).unwrap();
    let sizes = [("matrix = 128", "matrix = 64"), ("shots = 16", "shots = 8")];
    let Some(out) = convert(&dir, &sizes) else {
        return crate::common::say("skipped: a measured trajectory, because there is no python3 here");
    };
    assert!(out.status.success(), "{out:?}");
    let converted = coordinates(&dir, "k.cfl");
    assert_eq!(converted.len(), 8 * 600);
    for (k, m) in converted.iter().zip(&measured) {
        assert!((k[0] - m[0]).abs() < 1e-3 && (k[1] - m[1]).abs() < 1e-3, "{k:?} and {m:?}");
    }
    // The nominal trajectory is 8 samples ahead of the measured one in each shot.
    let ahead = |m: usize| measured[m - m % 600 + (m % 600 + 8).min(599)];
    let nominal: String = (0..measured.len()).map(|m| line(&ahead(m))).collect();
    std::fs::write(dir.path("nominal.txt"), nominal).unwrap();
    let names = [("k_rad_per_m.txt", "nominal.txt"), ("\"k.", "\"nominal.")];
    assert!(convert(&dir, &[&sizes[..], &names[..]].concat()).unwrap().status.success());
    for name in ["k", "nominal"] {
        dir.ok(&format!("grid scan.cfl --trajectory {name}.cfl --matrix 64,64 -o {name}.h5"));
    }
    dir.ok("grid scan.cfl --trajectory scan_traj.cfl --matrix 64,64 -o exact.h5");
    let [with_measured, with_nominal, exact] =
        ["k", "nominal", "exact"].map(|name| dir.error(&format!("{name}.h5 truth.h5 --magnitude --scale best")));
    println!("measured {with_measured} %, nominal {with_nominal} %, without the text file {exact} %");
    assert!((with_measured - exact).abs() < 0.05 && exact < 18.0 && with_nominal > 2.0 * exact);
    assert!(dir.error("k.h5 exact.h5") < 0.1);

    // Coordinates in other units are errors with both ranges.
    for (change, words) in [
        (("/ (2 * math.pi)", "/ 1"), "the edge of k-space is 32.0"),
        (("fov = 0.22", "fov = 0.022"), "the edge of k-space is 32.0"),
    ] {
        let out = convert(&dir, &[&sizes[..], &[change]].concat()).unwrap();
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(!out.status.success() && text.contains(words), "{text}");
    }
    // A coordinate beyond the edge of the matrix is an error of the program too.
    dir.fails(1, "grid scan.cfl --trajectory k.cfl --matrix 48,48 -o x.h5", &["a matrix of 48 voxels"]);
}
