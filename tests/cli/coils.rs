//! Several coils: whitening, compression, coil maps.

use crate::io::tests::write_cfl;
use crate::{noise, only_image, with_lock, write_dataset, TempDir};
use std::fs;

#[test]
fn whitening_and_compression() {
    let dir = TempDir::new();
    let scan = "simulate --matrix 48,48 --trajectory golden-angle --shots 40 --coils 8 --snr 4 --seed 3";
    let scan = &format!("{scan} --coupling 0.5 --noise-gain 8");
    dir.ok("simulate --matrix 48,48 --coils 4 --snr 9 --noise-samples 3000 -o four.h5");
    dir.ok(&format!("{scan} --noise-samples 20000 --truth truth.h5 --maps maps.cfl -o noisy.h5"));
    assert!(dir.ok("info noisy.h5").contains("20000 samples of 8 coils"));
    // The noise in the file is used, with a warning.
    let auto = dir.run("cg noisy.h5 --maps maps.cfl --iterations 4 -o white.h5");
    assert_eq!((auto.status, auto.stderr.matches('\n').count()), (Some(0), 1), "{auto:?}");
    assert!(["noise acquisitions whiten", "--whiten none"].iter().all(|w| auto.stderr.contains(w)), "{auto:?}");
    dir.ok("cg noisy.h5 --maps maps.cfl --iterations 4 --whiten none -o plain.h5");
    let [white, plain] = ["white.h5", "plain.h5"].map(|f| dir.error(&format!("{f} truth.h5 --scale best")));
    assert!(white < 0.97 * plain, "{white} against {plain}");
    // Maps are whitened as the data: the units of the noise cancel in the image.
    assert!(dir.error("white.h5 truth.h5") < 1.05 * white);

    // Lambda from the noise level of whitened data.
    let found = dir.run("cg noisy.h5 --maps maps.cfl --iterations 30 --noise-level auto --report r.json -o level.h5");
    assert!(found.status == Some(0) && dir.error("level.h5 truth.h5") < white, "{found:?}");
    let report: serde_json::Value = serde_json::from_slice(&fs::read(dir.path("r.json")).unwrap()).unwrap();
    assert!(report[0]["absolute_lambda"].as_f64().unwrap() > 0.0);
    dir.fails(1, "cg four.h5 --whiten none --noise-level auto -o a.h5", &["--noise-level auto", "not whitened"]);
    dir.fails(1, "cg four.h5 --whiten none --noise-level 1e-6 -o a.h5", &["too low"]);
    dir.fails(2, "cg four.h5 --noise-level 1 --lambda 1 -o a.h5", &["--lambda"]);
    for wrong in ["0", "-1", "x"] {
        dir.fails(2, &format!("cg four.h5 --noise-level {wrong} -o a.h5"), &["auto"]);
    }

    // The same noise from a different file.
    dir.ok(&format!("{scan} -o data.h5"));
    dir.ok("cg data.h5 --maps maps.cfl --iterations 4 --whiten noisy.h5 -o other.h5");
    assert_eq!(only_image(&dir.path("other.h5")).data, only_image(&dir.path("white.h5")).data);
    dir.fails(1, "grid data.h5 --whiten data.h5 -o a.h5", &["data.h5", "no noise acquisitions"]);
    dir.fails(1, "grid data.h5 --whiten four.h5 -o a.h5", &["four.h5", "4 coils", "data of 8"]);
    dir.ok("simulate --matrix 48,48 --coils 8 --snr 9 --noise-samples 7 -o short.h5");
    dir.fails(1, "grid data.h5 --whiten short.h5 -o a.h5", &["short.h5", "7 samples", "8 coils"]);
    write_cfl(dir.path("noise.cfl"), &[1, 500, 10, 8], &noise(40_000, 5)).unwrap();
    dir.ok("grid data.h5 --whiten noise.cfl -o cfl.h5");
    write_cfl(dir.path("odd.cfl"), &[2, 500, 5, 8], &noise(40_000, 5)).unwrap();
    dir.fails(1, "grid data.h5 --whiten odd.cfl -o a.h5", &["odd.cfl", "[1, samples, shots, coils]"]);

    // A few virtual coils have almost all of the energy.
    dir.ok("simulate --matrix 48,48 --coils 8 --maps all.cfl -o eight.h5");
    dir.ok("cg eight.h5 --maps all.cfl -o eight_image.h5");
    dir.ok("cg eight.h5 --maps all.cfl --compress 5 -o five.h5");
    dir.ok("cg eight.h5 --maps all.cfl --compress 99.9% -o most.h5");
    for image in ["five.h5", "most.h5"] {
        assert!(dir.error(&format!("{image} eight_image.h5")) < 1.0);
    }
    dir.ok("grid eight.h5 --compress 5 --combine none -o coils.h5");
    assert_eq!(only_image(&dir.path("coils.h5")).channels, 5);
    let few = dir.run("grid eight.h5 --compress 1 -o one.h5");
    assert!(few.status == Some(0) && few.stderr.contains("1 virtual coils of 8 contain"), "{few:?}");
    dir.fails(1, "grid eight.h5 --compress 9 -o a.h5", &["9 virtual coils of 8"]);
    for wrong in ["0", "0%", "101%", "1.5", "x"] {
        dir.fails(2, &format!("grid eight.h5 --compress {wrong} -o a.h5"), &["percentage"]);
    }
    dir.fails(2, "simulate --matrix 9,9 --coupling 0.5 -o a.h5", &["--snr"]);
    dir.fails(1, "simulate --matrix 9,9 --coils 2 --snr 9 --coupling 1 -o a.h5", &["--coupling is 1"]);
    dir.fails(1, "simulate --matrix 9,9 --snr 9 --coupling 0.5 -o a.h5", &["more --coils"]);
    dir.fails(1, "simulate --matrix 9,9 --coils 2 --snr 9 --noise-gain 0 -o a.h5", &["--noise-gain is 0"]);
    dir.fails(1, "simulate --matrix 9,9 --snr 9 --noise-samples 5 -o a.cfl", &["--noise-samples"]);
}

#[test]
fn a_noise_scan_that_is_missing_causes_a_warning() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 24,24 --shots 40 --coils 2 --snr 30 -o plain.h5");
    let mut dataset = with_lock(|| crate::io::tests::read_dataset(dir.path("plain.h5"))).unwrap();
    dataset.header.dependencies = vec![("NOISE".to_owned(), "45_6".to_owned())];
    write_dataset(dir.path("scan.h5"), &dataset);
    let out = dir.run("grid scan.h5 -o image.h5");
    assert!(out.status == Some(0) && out.stderr.contains("names measurement \"45_6\" as its noise scan"), "{out:?}");
    // Not if the data are not to be whitened.
    dir.ok("grid scan.h5 --whiten none -o image.h5");
}

#[test]
fn radial_scan_with_coils() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 96,96 --coils 4 --snr 200 --seed 7 --truth truth.h5 --maps maps.cfl -o scan.h5");
    dir.ok("grid scan.h5 -o grid.h5");
    // The remaining error is at the sharp edges of the phantom, which no image of finite resolution shows.
    assert!(dir.error("grid.h5 truth.h5 --magnitude") < 13.5);
    dir.ok("cg scan.h5 -o cg.h5 --iterations 15 --report report.json");
    assert!(dir.error("cg.h5 truth.h5 --magnitude") < 12.0);
    dir.ok("cg scan.h5 -o maps.h5 --iterations 15 --maps maps.cfl");
    assert!(dir.error("maps.h5 truth.h5") < 12.0);
    dir.ok("cg scan.h5 -o coils.h5 --iterations 8 --no-maps --weighted");
    assert!(dir.error("coils.h5 truth.h5") < 13.5);
    dir.ok("fhd scan.h5 --maps maps.cfl -o fhd.h5");
    assert!(dir.error("fhd.h5 truth.h5 --scale best") > 30.0, "the plain adjoint is blurred");

    let report: serde_json::Value = serde_json::from_slice(&fs::read(dir.path("report.json")).unwrap()).unwrap();
    assert_eq!(report[0]["images"][0]["iterations"], 15);
    assert_eq!(report[0]["images"][0]["residuals"].as_array().unwrap().len(), 16);
    assert!(report[0]["seconds"]["total"].as_f64().unwrap() > 0.0);

    // Started at a solution, the first residual is small. An anatomical reference is accepted.
    dir.ok("cg scan.h5 -o warm.h5 --iterations 1 --maps maps.cfl --initial maps.h5 --report warm.json");
    let warm: serde_json::Value = serde_json::from_slice(&fs::read(dir.path("warm.json")).unwrap()).unwrap();
    assert!(warm[0]["images"][0]["residuals"][0].as_f64().unwrap() < 0.1);
    dir.ok("cg scan.h5 -o prior.h5 --iterations 15 --prior anatomical --reference truth.h5 --lambda 1e-3");
    assert!(dir.error("prior.h5 truth.h5 --magnitude") < 12.0);

    // A saved and loaded Q makes the same image.
    dir.ok("cg scan.h5 -o a.h5 --iterations 5 --save-q q.bin");
    dir.ok("cg scan.h5 -o b.h5 --iterations 5 --load-q q.bin");
    assert_eq!(only_image(&dir.path("a.h5")).data, only_image(&dir.path("b.h5")).data);
    // Q of a different trajectory is an error.
    dir.fails(1, "cg scan.h5 -o c.h5 --every 2 --load-q q.bin", &["q.bin"]);
}
