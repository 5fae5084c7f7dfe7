//! Arguments: errors, help, and the command `bench`.

use crate::{with_lock, TempDir};
use std::process::Stdio;

#[test]
fn invalid_arguments_are_errors() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 16,16 --coils 2 -o scan.h5");
    dir.ok("simulate --matrix 16,16 --trajectory spiral -o spiral.h5");
    for (line, words) in [
        ("grid scan.h5 -o x.jpg", ["x.jpg", "ending"]),
        ("grid scan.h5 -o x", ["x:", "ending"]),
        ("grid scan.h5 -o nowhere/x.h5", ["nowhere", "does not exist"]),
        ("grid scan.h5 -o scan.h5", ["scan.h5", "another name"]),
        ("grid scan.h5 -o x.png --kspace", ["x.png", "k-space"]),
        ("grid scan.h5 -o x.h5 --matrix 0,0", ["size along x is 0", "--matrix"]),
        ("grid scan.h5 -o x.h5 --matrix 16,0", ["size along y is 0", "--matrix"]),
        ("grid scan.h5 -o x.h5 --matrix 99999999,99999999", ["voxels", "header"]),
        ("grid scan.h5 -o x.h5 --every 0", ["--every", "0"]),
        ("grid scan.h5 -o x.h5 --tolerance 0", ["--tolerance", "0"]),
        ("grid scan.h5 -o x.h5 --tolerance nan", ["--tolerance", "NaN"]),
        ("grid scan.h5 -o x.h5 --tolerance 1e-30", ["1e-30", "tolerance"]),
        ("grid scan.h5 -o x.h5 --window bilinear --tolerance 1e-4", ["bilinear", "tolerance"]),
        ("grid scan.h5 -o x.h5 --width 1", ["width is 1", "2 to 16"]),
        ("grid scan.h5 -o x.h5 --width 17", ["width is 17", "2 to 16"]),
        ("grid scan.h5 -o x.h5 --oversampling 1.2", ["oversampling is 1.2", "1.25 to 2.5"]),
        ("grid scan.h5 -o x.h5 --oversampling -2", ["oversampling is -2", "1.25 to 2.5"]),
        ("grid scan.h5 -o x.h5 --oversampling nan", ["oversampling is NaN", "1.25 to 2.5"]),
        ("grid scan.h5 -o x.h5 --oversampling inf", ["oversampling is inf", "1.25 to 2.5"]),
        ("grid scan.h5 -o x.h5 --window bilinear --width 4", ["width is 4", "bilinear"]),
        ("grid scan.h5 -o x.h5 --width 4 --oversampling 1.5 --tolerance 1e-5", ["1e-5", "a width of"]),
        ("fhd scan.h5 -o x.h5 --method exact --width 4", ["width", "method exact"]),
        ("fhd scan.h5 -o x.h5 --method exact --oversampling 2", ["oversampling", "method exact"]),
        ("grid scan.h5 -o x.h5 --memory-limit 1K", ["memory limit", "1024"]),
        ("grid scan.h5 -o x.h5 --kspace --method exact", ["no grid", "exact"]),
        ("fbp spiral.h5 -o x.h5", ["radial", "gridding"]),
        ("cg scan.h5 -o x.h5 --lambda -1", ["--lambda", "-1"]),
        ("cg scan.h5 -o x.h5 --residual 2", ["--residual", "2"]),
        ("cg scan.h5 -o x.h5 --prior anatomical", ["--reference", "anatomical"]),
        ("cg scan.h5 -o x.h5 --maps nowhere.cfl", ["nowhere.hdr", ".cfl"]),
        ("cg scan.h5 -o x.h5 --load-q scan.h5", ["scan.h5", ""]),
        ("cg scan.h5 -o x.h5 --report nowhere/r.json", ["nowhere", "does not exist"]),
        ("simulate --matrix 0,16 -o x.h5", ["size along x", "0"]),
        ("simulate --matrix 16,16 --trajectory kooshball -o x.h5", ["kooshball", "3D"]),
        ("simulate --matrix 16,16 --turns 3 -o x.h5", ["--turns", "radial"]),
        ("simulate --matrix 16,16 --partitions 3 -o x.h5", ["--partitions", "radial"]),
        ("simulate --matrix 16,16 --trajectory stack-of-stars -o x.h5", ["stack-of-stars", "3D"]),
        ("simulate --matrix 16,16,4 --trajectory stack-of-stars --partitions 0 -o x.h5", ["partitions", "0"]),
        ("simulate --matrix 16,16 --trajectory spiral --exponent 2 --weights -o x.h5", ["ramp", "pipe-menon"]),
        ("simulate --matrix 16,16 --coils 0 -o x.h5", ["coils", "0"]),
        ("simulate --matrix 16,16 --snr 0 -o x.h5", ["noise", "0"]),
        ("simulate --matrix 16,16 --shots 0 -o x.h5", ["spokes", "0"]),
        ("simulate --matrix 16,16 -o x.png", ["x.png", "ending"]),
        ("bench radial2d --runs 0", ["--runs", "0"]),
        ("bench radial2d --tolerance 3", ["--tolerance", "3"]),
        ("compare scan.h5 scan.h5", ["no images", ""]),
        ("compare scan.h5 scan.h5 --mask 3", ["--mask", "3"]),
    ] {
        dir.fails(1, line, &words);
    }
    for (line, words) in [
        ("grid", "required"),
        ("grid scan.h5", "--output"),
        ("frobnicate", "frobnicate"),
        ("grid scan.h5 -o x.h5 --matrix 16", "--matrix"),
        ("grid scan.h5 -o x.h5 --memory-limit 12Q", "--memory-limit"),
        ("grid scan.h5 -o x.h5 --memory-limit 99999999999T", "--memory-limit"),
        ("grid scan.h5 -o x.h5 --device tpu", "--device"),
        ("grid scan.h5 -o x.h5 --slice 70000", "--slice"),
        ("fbp scan.h5 -o x.h5 --filter hanning", "shepp-logan"),
        ("cg scan.h5 -o x.h5 --iterations -3", "-3"),
        ("cg scan.h5 -o x.h5 --weighted --unweighted", "--weighted"),
    ] {
        dir.fails(2, line, &[words]);
    }
    #[cfg(target_os = "linux")]
    dir.fails(1, "grid scan.h5 -o /proc/x.h5", &["/proc"]);
    dir.ok("grid scan.h5 -o x.h5 --memory-limit 512M --device cpu --threads 1");
}

#[test]
fn help_and_version() {
    let dir = TempDir::new();
    assert_eq!(dir.ok("--version").trim(), format!("recon {}", env!("CARGO_PKG_VERSION")));
    let help = dir.ok("--help");
    for command in [
        "info",
        "simulate",
        "grid",
        "fbp",
        "propeller",
        "fhd",
        "cg",
        "fieldmap",
        "coilmaps",
        "density",
        "forward",
        "convert",
        "compare",
        "bench",
    ] {
        assert!(help.contains(command));
        let long = dir.ok(&format!("{command} --help"));
        assert!(long.contains("Example") && long.contains(&format!("recon {command}")), "{long}");
        assert!(dir.ok(&format!("{command} -h")).contains("Usage"));
    }
    let out = dir.run("");
    assert!(out.status == Some(2) && out.stderr.contains("Usage"), "{out:?}");
    let info = dir.ok("info");
    assert!(info.contains("vector unit") && info.contains("threads"), "{info}");
}

#[test]
fn benchmarks_print_all_keys() {
    let dir = TempDir::new();
    let keys = [
        "case",
        "backend",
        "device",
        "threads",
        "method",
        "tolerance",
        "error",
        "plan_ms",
        "median_ms",
        "runs",
        "host_bytes",
        "device_bytes",
    ];
    for operation in ["adjoint", "forward"] {
        let out = dir.ok(&format!(
            "bench radial2d --json --runs 2 --tolerance 1e-2 --tolerance 1e-4 --operation {operation} --threads 2"
        ));
        let lines: Vec<serde_json::Value> = out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        for (line, tolerance) in lines.iter().zip([1e-2, 1e-4]) {
            for key in keys {
                assert!(!line[key].is_null(), "{key}: {line}");
            }
            assert_eq!((line["tolerance"].as_f64(), line["runs"].as_u64()), (Some(tolerance), Some(2)));
            let error = line["error"].as_f64().unwrap();
            assert!(error > 0.0 && error < tolerance, "{line}");
            assert!(line["median_ms"].as_f64().unwrap() > 0.0);
        }
    }
    assert!(dir.ok("bench propeller --runs 1").lines().count() == 2);
}

/// `--simd` overrides RECON_SIMD. A level that the processor does not have is an error that contains the level.
#[test]
fn simd_option_overrides_the_environment() {
    // The lowest level of this architecture, and the variable's word for it.
    let (lowest, word) = match std::env::consts::ARCH {
        "x86_64" => ("sse", "sse"),
        "aarch64" => ("neon", "neon"),
        _ => ("portable", "baseline"),
    };
    let dir = TempDir::new();
    let bench = |options: &str, variable: &str| {
        let line = format!("bench radial2d --runs 1 --tolerance 1e-2 --json {options}");
        let mut command = dir.command(&line);
        command.env("RECON_SIMD", variable).stdout(Stdio::piped()).stderr(Stdio::piped());
        let out = with_lock(|| command.spawn()).unwrap().wait_with_output().unwrap();
        let level = serde_json::from_slice::<serde_json::Value>(&out.stdout).map(|v| v["simd"].clone());
        level.map_err(|_| String::from_utf8(out.stderr).unwrap())
    };
    assert_eq!(bench("", word).unwrap(), lowest);
    assert_eq!(bench("--simd baseline", "mmx").unwrap(), lowest);
    let refused = bench("", "mmx").unwrap_err();
    assert!(refused.starts_with("recon: error: ") && refused.contains("RECON_SIMD is 'mmx'"), "{refused}");
    let best = bench("", "").unwrap();
    for (level, is_available) in [
        ("avx2", best == "avx2" || best.as_str().is_some_and(|best| best.starts_with("avx512"))),
        ("avx512", best.as_str().is_some_and(|best| best.starts_with("avx512"))),
        ("neon", best == "neon"),
    ] {
        match bench(&format!("--simd {level}"), word) {
            Ok(used) => assert!(is_available && used == level, "{level}: {used}"),
            Err(error) => assert!(!is_available && error.contains(level), "{error}"),
        }
    }
    dir.fails(2, "bench radial2d --simd mmx", &["--simd"]);
}
