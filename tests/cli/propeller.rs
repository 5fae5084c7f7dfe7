//! The command `propeller`.

use crate::TempDir;

#[test]
fn motion_of_blades_is_corrected() {
    let dir = TempDir::new();
    let scan = "simulate --matrix 96,96 --trajectory propeller --shots 12 --lines 18 --samples 128 --coils 3";
    dir.ok(&format!("{scan} --truth truth.h5 -o still.h5"));
    let log = dir.run(&format!("-v {scan} --motion 10,5 -o moving.h5")).stderr;
    assert_eq!(log.matches(": turned by ").count(), 12, "{log}");
    let error = |file: &str| dir.error(&format!("{file} truth.h5 --magnitude --scale best"));
    dir.ok("grid still.h5 -o at_rest.h5");
    dir.ok("grid moving.h5 -o uncorrected.h5");
    dir.ok("propeller moving.h5 -o corrected.h5 --report motion.json --corrected again.h5");
    let [at_rest, corrected, uncorrected] = ["at_rest.h5", "corrected.h5", "uncorrected.h5"].map(error);
    println!("at rest {at_rest} %, corrected {corrected} %, uncorrected {uncorrected} %");
    assert!(corrected < 1.5 * at_rest && uncorrected > 2.5 * at_rest);

    // The report has the simulated motion, relative to the mean position.
    let report = std::fs::read_to_string(dir.path("motion.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!((report[0]["lines"].as_u64(), report[0]["samples"].as_u64()), (Some(18), Some(128)));
    let blades = report[0]["blades"].as_array().unwrap();
    for (line, blade) in log.lines().filter(|l| l.contains(": turned by ")).zip(blades) {
        let numbers: Vec<f64> = line
            .split(": turned by ")
            .nth(1)
            .unwrap()
            .split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'))
            .filter_map(|t| t.parse().ok())
            .collect();
        let shift = &blade["translation_voxels"];
        let estimate = [&blade["rotation_degrees"], &shift[0], &shift[1]].map(|v| v.as_f64().unwrap());
        assert!((0..3).all(|i| (numbers[i] - estimate[i]).abs() < 0.3), "{line}: {estimate:?}");
        assert!(blade["correlation"].as_f64().unwrap() > 0.95 && blade["weight"].as_f64().unwrap() > 0.5);
    }
    assert_eq!(blades.len(), 12);
    assert!(dir.ok("propeller moving.h5 -o x.h5 --report -").contains("rotation_degrees"));

    // Other commands reconstruct the corrected scan.
    dir.ok("cg again.h5 --no-maps --weighted -o solved.h5");
    assert!(error("solved.h5") < 1.5 * at_rest, "{} %", error("solved.h5"));
    dir.ok("grid again.h5 -o gridded.h5");
    assert!(dir.error("gridded.h5 corrected.h5 --magnitude") < 1e-3);
    dir.ok("propeller moving.h5 -o none.h5 --no-rotation --no-translation --no-weighting --phase none");
    // Only the number of iterations of the density weights differs.
    assert!(dir.error("none.h5 uncorrected.h5 --magnitude --scale best") < 6.0);
    dir.ok("propeller moving.h5 -o x.png --precision f64 --lines 18 --phase constant");

    // Two frames, each with half of the blades.
    dir.ok("propeller moving.h5 -o frames.h5 --frame-shots 108 --report frames.json");
    let frames = std::fs::read_to_string(dir.path("frames.json")).unwrap();
    let frames: serde_json::Value = serde_json::from_str(&frames).unwrap();
    let blades = |i: usize| frames[i]["blades"].as_array().unwrap().len();
    assert_eq!((blades(0), blades(1), frames[1]["repetition"].as_u64()), (6, 6, Some(1)));
    // A frame that ends within a blade: the incomplete blade is left out, with a warning.
    let out = dir.run("propeller moving.h5 -o cut.h5 --frame-shots 100");
    let warning = "blade 5 (lines 90 to 99 of the scan) has 10 of 18 lines: the blade is left out";
    assert!(out.status == Some(0) && out.stderr.contains(warning), "{out:?}");

    dir.fails(1, "propeller moving.h5 -o x.h5 --lines 17", &["blades of 17 lines"]);
    dir.fails(1, "propeller moving.h5 -o x.h5 --corrected x.cfl", &["x.cfl", ".h5"]);
    dir.fails(1, "propeller moving.h5 -o x.h5 --corrected x.h5", &["two outputs"]);
    dir.fails(2, "propeller moving.h5 -o x.h5 --phase rough", &["smooth"]);
    dir.ok("simulate --matrix 48,48 --trajectory radial -o radial.h5");
    dir.fails(1, "propeller radial.h5 -o x.h5", &["PROPELLER", "gridding"]);
    dir.ok("simulate --matrix 16,16,8 --trajectory stack-of-stars --partitions 8 -o stack.h5");
    dir.fails(1, "propeller stack.h5 -o x.h5", &["2D"]);
    dir.fails(1, "simulate --matrix 48,48 --motion 1,1 -o x.h5", &["--motion", "radial"]);
    dir.fails(1, "simulate --matrix 48,32 --trajectory propeller --motion 1,1 -o x.h5", &["48 x 32"]);
    dir.fails(2, "simulate --matrix 48,48 --trajectory propeller --motion 1 -o x.h5", &["10,5"]);
}

#[test]
fn lines_are_as_far_apart_as_the_scan_matrix_says() {
    let dir = TempDir::new();
    let scan = "simulate --matrix 64,64 --trajectory propeller --samples 240";
    // As many blades as cover the outer circle: pi / 2 x 64 / 16, and pi / 2 x 240 / 16.
    let log = dir.run(&format!("-v {scan} --scan-matrix 64 --motion 8,3 --truth truth.h5 -o scan.h5")).stderr;
    assert!(log.contains("112 shots of 240 samples") && log.matches(": turned by ").count() == 7, "{log}");
    assert!(!log.contains("--scan-matrix"), "{log}");
    let log = dir.run(&format!("-v {scan} -o narrow.h5")).stderr;
    assert!(log.contains("384 shots of 240 samples") && log.contains("give --scan-matrix 64"), "{log}");
    let log = dir.run("simulate --matrix 64,64 --trajectory propeller --scan-matrix 48 -o wide.h5").stderr;
    assert!(log.contains("give --scan-matrix 64"), "{log}");
    // Samples are not fewer than the scan matrix.
    let log = dir.run("-v simulate --matrix 64,64 --trajectory propeller --scan-matrix 80 -o close.h5").stderr;
    assert!(log.contains("128 shots of 80 samples"), "{log}");

    let error = |file: &str| dir.error(&format!("{file} truth.h5 --magnitude --scale best"));
    dir.ok("propeller scan.h5 -o corrected.h5 --report motion.json");
    dir.ok("grid scan.h5 -o uncorrected.h5");
    let (corrected, uncorrected) = (error("corrected.h5"), error("uncorrected.h5"));
    assert!(corrected < 0.5 * uncorrected, "{corrected} and {uncorrected}");
    let report = std::fs::read_to_string(dir.path("motion.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!((report[0]["lines"].as_u64(), report[0]["samples"].as_u64()), (Some(16), Some(240)));

    dir.fails(1, "simulate --matrix 64,64 --scan-matrix 64 -o x.h5", &["--scan-matrix", "radial"]);
    dir.fails(1, &format!("{scan} --scan-matrix 256 -o x.h5"), &["240 samples", "at least 256"]);
    dir.fails(1, &format!("{scan} --scan-matrix 64 --lines 33 -o x.h5"), &["at most 32 lines"]);
    dir.fails(1, &format!("{scan} --scan-matrix 0 -o x.h5"), &["the scan matrix is 0"]);
}
