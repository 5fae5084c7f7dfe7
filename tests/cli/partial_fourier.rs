//! `recon grid --partial-fourier`: a phantom of which lines on one side are missing.

use crate::harness::*;
use crate::io::{Dataset, Image};
use num_complex::Complex;
use recon::phantom::Phantom;
use recon::trajectory::Trajectory;

const N: usize = 64;

/// Returns a Cartesian scan of the phantom with a smooth phase, with the lines of `rows`.
fn lines(rows: std::ops::Range<usize>) -> Dataset {
    let mut k = vec![Vec::new(), Vec::new()];
    let at = |i: usize| (i as f64 - (N / 2) as f64) / N as f64;
    for (row, column) in rows.flat_map(|row| (0..N).map(move |column| (row, column))) {
        k[0].push(at(column));
        k[1].push(at(row));
    }
    let truth = Phantom::shepp_logan_2d().image(&[N, N], 2).unwrap();
    let x: Vec<Complex<f64>> = (0..N * N)
        .map(|i| Complex::from_polar(truth[i], 1.2 * at(i % N) + 2.0 * at(i / N) * at(i / N) * 4.0))
        .collect();
    let data = (0..k[0].len()).map(|m| {
        let turn = |i: usize| k[0][m] * at(i % N) * N as f64 + k[1][m] * at(i / N) * N as f64;
        let sum: Complex<f64> =
            x.iter().enumerate().map(|(i, x)| x * Complex::from_polar(1.0, -std::f64::consts::TAU * turn(i))).sum();
        Complex::new(sum.re as f32, sum.im as f32)
    });
    let data = data.collect();
    let trajectory = Trajectory::new(k, N).unwrap();
    let whole = space([N, N, 1], [64.0, 64.0, 1.0]);
    scan(&trajectory, whole, whole, 1, data)
}

fn error(image: &Image, truth: &Image) -> f64 {
    let difference: f32 = image.data.iter().zip(&truth.data).map(|(x, t)| (x.norm() - t.norm()).powi(2)).sum();
    let size: f32 = truth.data.iter().map(|t| t.norm_sqr()).sum();
    (difference / size).sqrt().into()
}

#[test]
fn a_missing_side_is_filled() {
    let dir = TempDir::new();
    write_dataset(dir.path("full.h5"), &lines(0..N));
    write_dataset(dir.path("part.h5"), &lines(N / 4..N));
    dir.ok("grid full.h5 -o full.cfl");
    let truth = &read_images(dir.path("full.cfl"))[0];
    let mut errors = Vec::new();
    for method in ["none", "homodyne", "pocs"] {
        let out = dir.run(&format!("grid part.h5 --partial-fourier {method} -o part.cfl"));
        assert_eq!(out.status, Some(0), "{out:?}");
        // Without the option, a warning gives its name.
        assert_eq!(out.stderr.contains("--partial-fourier pocs fills it"), method == "none", "{out:?}");
        let image = &read_images(dir.path("part.cfl"))[0];
        errors.push(error(image, truth));
    }
    let default = dir.run("grid part.h5 -o none.cfl");
    assert!(default.stderr.contains("along y, k-space has 16 samples below and 31 above k = 0"), "{default:?}");
    // Measured: 14.1, 4.9 and 2.2 %.
    println!("errors with zeros, homodyne detection and POCS: {errors:.4?}");
    assert!(errors[1] < 0.5 * errors[0] && errors[2] < 0.25 * errors[0], "{errors:?}");
}

#[test]
fn scans_without_a_missing_side_are_errors() {
    let dir = TempDir::new();
    write_dataset(dir.path("full.h5"), &lines(0..N));
    write_dataset(dir.path("part.h5"), &lines(N / 4..N));
    for (line, words) in [
        ("grid full.h5 --partial-fourier pocs -o x.h5", "no side of k-space is missing"),
        ("grid part.h5 --partial-fourier pocs --kspace -o x.h5", "leave out --partial-fourier"),
        ("grid part.h5 --partial-fourier pocs --basis box -o x.h5", "boxes"),
    ] {
        let out = dir.run(line);
        assert!(out.status != Some(0) && out.stderr.contains(words), "{line}: {out:?}");
        assert!(!dir.path("x.h5").exists());
    }
    // A complete scan has no warning.
    let out = dir.run("grid full.h5 -o x.h5");
    assert!(out.status == Some(0) && !out.stderr.contains("--partial-fourier"), "{out:?}");
}
