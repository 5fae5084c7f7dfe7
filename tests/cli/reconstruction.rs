//! Matrix sizes, density weights, backprojection and windows.

use crate::{distance, noise, only_image, scan, space, write_dataset, TempDir};
use num_complex::Complex;
use recon::trajectory::SpokeOrder;
use recon::Trajectory;

/// Checks the ramp weights of a stack of stars, and that they are an error for other trajectories.
#[test]
fn ramp_weights() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 24,24,12 --trajectory stack-of-stars --truth truth.h5 -o stack.h5");
    let info = dir.ok("info stack.h5");
    for words in ["24 x 24 x 12 voxels", "samples per shot      48", "radial"] {
        assert!(info.contains(words), "{words}: {info}");
    }
    dir.ok("grid stack.h5 --density ramp -o ramp.h5");
    dir.ok("grid stack.h5 --density pipe-menon -o pipe_menon.h5");
    // Both errors are large because 24 voxels show few details. The errors are similar, and the images differ by a few
    // percent.
    let (ramp, pipe_menon) = (dir.error("ramp.h5 truth.h5"), dir.error("pipe_menon.h5 truth.h5"));
    assert!((ramp - pipe_menon).abs() < 3.0 && dir.error("ramp.h5 pipe_menon.h5") < 6.0, "{ramp} and {pipe_menon}");
    // Weights in the file are the same.
    dir.ok("simulate --matrix 24,24,12 --trajectory stack-of-stars --weights -o weighted.h5");
    dir.ok("grid weighted.h5 -o weighted_image.h5");
    assert!(dir.error("weighted_image.h5 ramp.h5") < 0.01);
    for trajectory in ["cartesian", "propeller", "rosette", "lissajous", "spiral --exponent 1.5"] {
        dir.ok(&format!("simulate --matrix 32,32 --trajectory {trajectory} -o scan.h5"));
        dir.fails(1, "grid scan.h5 --density ramp -o x.h5", &["ramp", "pipe-menon"]);
        assert!(!dir.path("x.h5").exists(), "{trajectory}");
    }
}

#[test]
fn image_is_cropped_to_the_reconstructed_matrix() {
    let dir = TempDir::new();
    let trajectory = Trajectory::radial2d(60, 64, SpokeOrder::Linear).unwrap();
    let (encoded, recon) = (space([48, 32, 1], [96.0, 64.0, 5.0]), space([24, 30, 1], [48.0, 60.0, 5.0]));
    write_dataset(dir.path("scan.h5"), &scan(&trajectory, encoded, recon, 1, noise(60 * 64, 3)));
    dir.ok("grid scan.h5 --matrix encoded -o whole.h5");
    dir.ok("grid scan.h5 -o part.h5");
    let (whole, part) = (only_image(&dir.path("whole.h5")), only_image(&dir.path("part.h5")));
    assert_eq!((whole.dims, whole.fov_mm), ([48, 32, 1], [96.0, 64.0, 5.0]));
    assert_eq!((part.dims, part.fov_mm), ([24, 30, 1], [48.0, 60.0, 5.0]));
    for y in 0..30 {
        for x in 0..24 {
            assert_eq!(part.data[y * 24 + x], whole.data[(y + 1) * 48 + x + 12], "{x} {y}");
        }
    }
    // A truth of a smaller matrix is placed in the middle of the image.
    let out = dir.run("compare whole.h5 part.h5");
    assert!(out.status == Some(0) && out.stderr.contains("truth of [24, 30, 1] voxels is placed"), "{out:?}");
    // --matrix gives the same voxels as the encoded matrix, over the same field of view.
    dir.ok("grid scan.h5 --matrix 24,30 -o same.h5");
    assert_eq!(only_image(&dir.path("same.h5")).data, part.data);
    dir.fails(1, "grid scan.h5 --matrix 24,30,2 -o x.h5", &["2D"]);
}

#[test]
fn different_voxel_sizes_are_interpolated_by_fourier() {
    let dir = TempDir::new();
    // Two waves, sampled on a Cartesian grid of 16 x 12 points. The image has 24 x 9 voxels and the same field of view.
    let trajectory = Trajectory::cartesian(&[16, 12]).unwrap();
    let waves = [((3i32, -2i32), Complex::new(1.0, 0.5)), ((-5, 4), Complex::new(-0.25, 2.0))];
    // Lines of zeros cause a warning.
    let mut data = vec![Complex::new(1e-12f32, 0.0); 16 * 12];
    for ((u, v), amplitude) in waves {
        data[((v + 6) * 16 + u + 8) as usize] = amplitude * (16.0 * 12.0);
    }
    let (encoded, recon) = (space([16, 12, 1], [32.0, 36.0, 5.0]), space([24, 9, 1], [32.0, 36.0, 5.0]));
    write_dataset(dir.path("scan.h5"), &scan(&trajectory, encoded, recon, 1, data));
    dir.ok("grid scan.h5 -o image.h5");
    let image = only_image(&dir.path("image.h5"));
    assert_eq!((image.dims, image.fov_mm), ([24, 9, 1], [32.0, 36.0, 5.0]));
    let exact: Vec<Complex<f64>> = (0..24 * 9)
        .map(|i| {
            let (x, y) = ((i % 24) as f64 - 12.0, (i / 24) as f64 - 4.0);
            waves
                .iter()
                .map(|((u, v), a)| {
                    let turns = *u as f64 * x / 24.0 + *v as f64 * y / 9.0;
                    Complex::new(a.re as f64, a.im as f64) * Complex::cis(std::f64::consts::TAU * turns)
                })
                .sum()
        })
        .collect();
    assert!(distance(&image.data, &exact) < 1e-4);
    // The initial image may have the matrix of the result or the encoded matrix.
    dir.ok("cg scan.h5 -o cg.h5 --iterations 5 --initial image.h5 --report r.json");
    assert!(distance(&only_image(&dir.path("cg.h5")).data, &exact) < 1e-3);
}

#[test]
fn backprojections_are_near_gridding_with_ramp_weights() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 64,64 --trajectory radial --shots 150 --coils 3 --snr 100 --truth truth.h5 -o scan.h5");
    dir.ok("grid scan.h5 --density ramp -o gridding.h5");
    let mut before = 0.0;
    for filter in ["ram-lak", "shepp-logan", "cosine", "hamming", "hann"] {
        dir.ok(&format!("fbp scan.h5 --filter {filter} -o {filter}.h5"));
        let error = dir.error(&format!("{filter}.h5 gridding.h5 --magnitude"));
        println!("{filter}: {error:.2} % from gridding");
        assert!(error > before && error < if filter == "ram-lak" { 2.0 } else { 35.0 }, "{filter}: {error} %");
        before = error;
    }
    // In both precisions, and a picture.
    dir.ok("fbp scan.h5 --precision f64 -o double.h5");
    assert!(dir.error("double.h5 ram-lak.h5") < 1e-3);
    dir.ok("fbp scan.h5 --filter hann -o image.png");
    dir.ok("simulate --matrix 16,16,8 --trajectory stack-of-stars --partitions 8 -o stack.h5");
    dir.fails(1, "fbp stack.h5 -o x.h5", &["3 axes", "gridding"]);
}

#[test]
fn default_tolerance_of_each_window() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 32,32 --trajectory radial --truth truth.h5 -o scan.h5");
    dir.ok("grid scan.h5 -o reference.h5 --tolerance 1e-6");
    for (window, bound) in [("minimax", 0.01), ("kaiser-bessel", 0.01), ("gaussian", 0.01), ("bilinear", 20.0)] {
        dir.ok(&format!("-q grid scan.h5 --window {window} -o image.h5"));
        let out = dir.run(&format!("grid scan.h5 --window {window} -o said.h5"));
        assert_eq!(out.stderr.contains("above the default tolerance"), window == "bilinear", "{out:?}");
        let error = dir.error("image.h5 reference.h5");
        assert!(error < bound, "{window}: {error} %");
    }
}

#[test]
fn width_and_oversampling_options() {
    let dir = TempDir::new();
    dir.ok("simulate --matrix 32,32 --trajectory radial -o scan.h5");
    dir.ok("fhd scan.h5 -o reference.h5 --method exact");
    for (named, window, percent, warned) in [
        ("--width 4 --oversampling 1.5", "width 4, oversampling 1.5", 0.03..3.0, true),
        ("--width 7 --oversampling 2", "width 7, oversampling 2.0", 1e-5..1e-3, false),
        ("--width 8", "width 8, ", 1e-5..1e-3, false),
        ("--oversampling 2.5", "oversampling 2.5", 1e-5..1e-3, false),
    ] {
        let out = dir.run(&format!("-v fhd scan.h5 -o image.h5 {named}"));
        assert!(out.stderr.contains(window), "{named}: {out:?}");
        assert_eq!(out.stderr.contains("above the default tolerance"), warned, "{named}: {out:?}");
        let error = dir.error("image.h5 reference.h5");
        assert!(percent.contains(&error), "{named}: {error} %");
    }
}
