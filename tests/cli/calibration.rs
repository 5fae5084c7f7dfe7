//! Calibration lines for parallel imaging: their position in the file does not change the quality of the image, and
//! without them the error has a remedy.

use crate::{inverse_fft, only_image, raw_file, space, with_lock, TempDir};
use num_complex::Complex;
use recon::phantom::{CoilModel, Phantom};
use recon::scan::{
    CalibrationMode, EncodingLimits, EncodingSpace, Header, HeaderEncoding, ParallelImaging, TrajectoryKind,
};

const DIMS: [usize; 2] = [64, 56];
const COILS: usize = 8;
/// The number of calibration lines around the centre.
const LINES: isize = 24;
/// Flags of ISMRMRD: calibration, calibration and imaging, noise, navigation.
const CALIBRATION: u64 = 1 << 19;
const BOTH: u64 = 1 << 20;
const NOISE: u64 = 1 << 18;
const NAVIGATION: u64 = 1 << 22;

/// Percent errors of BART 0.8 on these data, with calibration lines in the image and without, by acceleration factor.
/// The commands are `ecalib -m1 -r24` and `pics -p pattern -l2 -r 0 -i 12`. The error of the complete scan is 2.78 %.
const BART_MAPS: [(usize, f64, f64); 3] = [(2, 4.53, 5.19), (3, 9.91, 32.83), (4, 16.41, 45.35)];
/// Percent errors of BART 0.8 with the true maps and without calibration lines, by acceleration factor.
const BART_TRUE_MAPS: [(usize, f64); 3] = [(2, 3.16), (3, 13.85), (4, 34.66)];

/// Returns one line of the exact k-space of a phantom on a Cartesian grid, [samples, coils].
fn line(dims: [usize; 2], step: usize) -> Vec<f32> {
    let axis = |i: usize, n: usize| (i as f64 - (n / 2) as f64) / n as f64;
    let kx: Vec<f64> = (0..dims[0]).map(|i| axis(i, dims[0])).collect();
    let ky = vec![axis(step, dims[1]); dims[0]];
    let model = CoilModel::ring(COILS, 2).unwrap();
    let data = Phantom::shepp_logan_2d().kspace(&dims, &[&kx, &ky], Some(&model), 1).unwrap();
    data.iter().flat_map(|z| [z.re as f32, z.im as f32]).collect()
}

/// Returns a line of the scan.
fn acquisition(flags: u64, step: usize) -> raw_file::RawAcquisition {
    raw_file::RawAcquisition {
        flags,
        coils: COILS as u16,
        steps: [step as u16, 0],
        data: line(DIMS, step),
        ..Default::default()
    }
}

/// The matrix of an external calibration scan.
const SMALL: [usize; 2] = [32, 24];

/// Returns a line of the external calibration scan, encoding 1.
fn external(step: usize) -> raw_file::RawAcquisition {
    let mut data = line(SMALL, step);
    // The voxels of a smaller matrix are larger.
    let voxels = (DIMS[0] * DIMS[1]) as f32 / (SMALL[0] * SMALL[1]) as f32;
    data.iter_mut().for_each(|x| *x *= voxels);
    raw_file::RawAcquisition {
        flags: CALIBRATION,
        encoding: 1,
        coils: COILS as u16,
        steps: [step as u16, 0],
        data,
        ..Default::default()
    }
}

fn header(factor: usize, calibration: Option<CalibrationMode>) -> String {
    let encoding = |dims: [usize; 2]| {
        let matrix: EncodingSpace = space([dims[0], dims[1], 1], [DIMS[0] as f32 * 3.0, DIMS[1] as f32 * 3.0, 5.0]);
        let limits = EncodingLimits { minimum: 0, maximum: dims[1] as u16 - 1, center: dims[1] as u16 / 2 };
        HeaderEncoding {
            encoded: matrix,
            recon: matrix,
            trajectory: TrajectoryKind::Cartesian,
            steps: [Some(limits), None],
            parallel: Some(ParallelImaging { acceleration: [factor as u16, 1], calibration }),
            ..Default::default()
        }
    };
    Header { encodings: vec![encoding(DIMS), encoding(SMALL)], ..Header::default() }.to_xml()
}

fn is_central(step: usize) -> bool {
    (-LINES / 2..LINES / 2).contains(&(step as isize - (DIMS[1] / 2) as isize))
}

/// Returns the root of the sum of squares of the coils' inverse Fourier transforms.
fn truth() -> Vec<f64> {
    let lines: Vec<Vec<f32>> = (0..DIMS[1]).map(|step| line(DIMS, step)).collect();
    let mut squares = vec![0.0; DIMS[0] * DIMS[1]];
    for coil in 0..COILS {
        let of_line = |line: &Vec<f32>| -> Vec<Complex<f32>> {
            let own = &line[2 * coil * DIMS[0]..2 * (coil + 1) * DIMS[0]];
            own.chunks_exact(2).map(|pair| Complex::new(pair[0], pair[1])).collect()
        };
        let kspace: Vec<Complex<f32>> = lines.iter().flat_map(of_line).collect();
        squares.iter_mut().zip(inverse_fft(&kspace, DIMS)).for_each(|(s, z)| *s += z.norm_sqr());
    }
    squares.iter().map(|s| s.sqrt()).collect()
}

/// Returns the percent error of the magnitude at the best scale.
fn error(dir: &TempDir, file: &str, truth: &[f64]) -> f64 {
    let image: Vec<f64> = only_image(&dir.path(file)).data.iter().map(|z| f64::from(z.norm())).collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let scale = dot(&image, truth) / dot(&image, &image);
    let wrong: f64 = image.iter().zip(truth).map(|(a, b)| (scale * a - b).powi(2)).sum();
    100.0 * (wrong / dot(truth, truth)).sqrt()
}

#[test]
fn calibration_lines_make_coil_maps() {
    let dir = TempDir::new();
    let write = |name: &str, xml: &str, lines: &[raw_file::RawAcquisition]| {
        with_lock(|| raw_file::write(&dir.path(name), xml, lines))
    };
    let truth = truth();
    let all = 0..DIMS[1];
    // Maps from the complete scan, as a reference.
    write("whole.h5", &header(1, None), &all.clone().map(|s| acquisition(0, s)).collect::<Vec<_>>());
    dir.ok("cg whole.h5 -o whole_image.h5");
    let whole = error(&dir, "whole_image.h5", &truth);
    println!("the complete scan: {whole:.2} %");
    assert!(whole < 5.5, "{whole} %");
    for (factor, within, apart) in BART_MAPS {
        let image = || all.clone().step_by(factor).map(|s| acquisition(0, s));
        let central = || all.clone().filter(|&s| is_central(s));
        let cases: [(&str, Option<CalibrationMode>, Vec<raw_file::RawAcquisition>); 6] = [
            // The flags of Siemens' converter.
            ("embedded", Some(CalibrationMode::Embedded), {
                let of = |s: usize| match (s % factor == 0, is_central(s)) {
                    (true, true) => Some(acquisition(BOTH, s)),
                    (true, false) => Some(acquisition(0, s)),
                    (false, true) => Some(acquisition(CALIBRATION, s)),
                    (false, false) => None,
                };
                all.clone().filter_map(of).collect()
            }),
            // Only lines that the image does not have are flagged.
            (
                "between",
                Some(CalibrationMode::Embedded),
                image().chain(central().filter(|s| s % factor != 0).map(|s| acquisition(CALIBRATION, s))).collect(),
            ),
            ("both", None, {
                let rest = image().filter(|line| !is_central(line.steps[0] as usize));
                rest.chain(central().map(|s| acquisition(BOTH, s))).collect()
            }),
            // All calibration lines are measured separately, before or after the scan.
            (
                "separate",
                Some(CalibrationMode::Separate),
                central().map(|s| acquisition(CALIBRATION, s)).chain(image()).collect(),
            ),
            ("unnamed", None, image().chain(central().map(|s| acquisition(CALIBRATION, s))).collect()),
            ("external", Some(CalibrationMode::External), (0..SMALL[1]).map(external).chain(image()).collect()),
        ];
        for (name, mode, lines) in &cases {
            write("scan.h5", &header(factor, *mode), lines);
            dir.ok("cg scan.h5 -o image.h5");
            let found = error(&dir, "image.h5", &truth);
            let bart = if ["embedded", "between", "both"].contains(name) { within } else { apart };
            println!("factor {factor}, {name}: {found:.2} %, BART {bart} %");
            assert!(found < 1.2 * bart, "factor {factor}, {name}: {found} %, BART {bart} %");
        }
        // A line that is measured for both purposes does not count twice.
        let (_, mode, lines) = &cases[0];
        let again = central().map(|s| acquisition(CALIBRATION, s));
        write("twice.h5", &header(factor, *mode), &lines.iter().cloned().chain(again).collect::<Vec<_>>());
        write("scan.h5", &header(factor, *mode), lines);
        dir.ok("cg scan.h5 -o once_image.h5");
        dir.ok("cg twice.h5 -o twice_image.h5");
        assert!(dir.error("twice_image.h5 once_image.h5") < 1e-2);
    }
}

#[test]
fn missing_calibration_lines_have_a_remedy() {
    let dir = TempDir::new();
    let write = |name: &str, xml: &str, lines: &[raw_file::RawAcquisition]| {
        with_lock(|| raw_file::write(&dir.path(name), xml, lines))
    };
    let truth = truth();
    dir.ok("simulate --matrix 64,56 --coils 8 --maps maps.cfl -o whole.h5");
    for (factor, bart) in BART_TRUE_MAPS {
        let image: Vec<_> = (0..DIMS[1]).step_by(factor).map(|s| acquisition(0, s)).collect();
        write("scan.h5", &header(factor, None), &image);
        dir.fails(1, "cg scan.h5 -o image.h5", &["slice 0", "gaps wider than 1/FOV", "calibration lines", "coil maps"]);
        // Fewer iterations, a wider region and fewer coils do not help.
        dir.fails(1, "cg scan.h5 --calibration 48 --compress 4 -o image.h5", &["gaps wider than 1/FOV"]);
        dir.ok("cg scan.h5 --maps maps.cfl -o image.h5");
        let found = error(&dir, "image.h5", &truth);
        println!("factor {factor}, the true maps: {found:.2} %, BART {bart} %");
        assert!((found - bart).abs() < 0.02 * bart, "factor {factor}: {found} %, BART {bart} %");
        dir.ok("cg scan.h5 --no-maps -o image.h5");
        let grid = dir.run("grid scan.h5 -o image.h5");
        assert_eq!((grid.status, grid.stderr.matches('\n').count()), (Some(0), 1), "{grid:?}");
        for word in ["aliased", "coil maps", "% of the points of the Cartesian grid"] {
            assert!(grid.stderr.contains(word), "no {word} in {grid:?}");
        }

        // Lines of a different coil array, and too few lines.
        let mut wrong = external(0);
        (wrong.coils, wrong.data) = (4, wrong.data[..wrong.data.len() / 2].to_vec());
        write("wrong.h5", &header(factor, None), &[image.clone(), vec![wrong]].concat());
        dir.fails(1, "cg wrong.h5 -o a.h5", &["calibration data have 4 coils", "scan 8", "--maps"]);
        let few = (27..30).map(|s| acquisition(CALIBRATION, s)).collect();
        write("few.h5", &header(factor, None), &[image.clone(), few].concat());
        dir.fails(1, "cg few.h5 -o a.h5", &["axis 1", "central 8"]);
        // A complete scan of a different slice.
        let mut other: Vec<_> = (0..DIMS[1]).map(|s| acquisition(CALIBRATION, s)).collect();
        other.iter_mut().for_each(|line| line.slice = 1);
        write("other.h5", &header(factor, None), &[image, other].concat());
        let out = dir.run("cg other.h5 -o a.h5");
        assert!(out.status == Some(1) && out.stderr.contains("of different slices"), "{out:?}");
    }
}

/// Gaps of 1 to 1.5/FOV in all of k-space, which the search for missing lines does not find.
#[test]
fn undersampled_spirals_cause_warnings() {
    let dir = TempDir::new();
    let narrowed = "coil maps are estimated from the central 8 samples, because the scan is undersampled further out";
    let cleared =
        "coil maps are 0 in the corners of the field of view, because gaps between samples are wider than 1/FOV";
    // The gaps are 48 / turns / interleaves, in 1/FOV. The gaps of the last spiral are exactly 1/FOV.
    for (interleaves, turns, warning) in
        [(4, 8.0, Some(narrowed)), (5, 8.0, Some(narrowed)), (8, 5.5, Some(cleared)), (6, 8.0, None)]
    {
        let options = format!("--matrix 96,96 --trajectory spiral --samples 1536 --turns {turns} --coils 8");
        dir.ok(&format!("simulate {options} --shots {interleaves} -o scan.h5"));
        let out = dir.run("cg scan.h5 -o image.h5");
        assert_eq!(out.status, Some(0), "{out:?}");
        match warning {
            Some(text) => assert!(out.stderr.contains(text) && out.stderr.lines().count() == 1, "{out:?}"),
            None => assert_eq!(out.stderr, "", "{interleaves}"),
        }
    }
}

#[test]
fn uses_of_acquisitions_are_printed() {
    let dir = TempDir::new();
    let of = |flags: u64, steps: std::ops::Range<usize>| steps.map(move |s| acquisition(flags, s));
    let lines: Vec<_> = of(0, 0..20)
        .chain(of(BOTH, 20..30))
        .chain(of(CALIBRATION, 30..36))
        .chain(of(NOISE, 0..3))
        .chain(of(NAVIGATION, 0..2))
        .chain((0..24).map(external))
        .collect();
    with_lock(|| raw_file::write(&dir.path("scan.h5"), &header(2, Some(CalibrationMode::Separate)), &lines));
    let info = dir.ok("info scan.h5");
    for line in [
        "acquisitions            65",
        "used for images       20 image",
        "used for coil maps    30 calibration",
        "used for images and coil maps 10 image and calibration",
        "used for whitening    3 noise",
        "used for nothing      2 navigation",
        "parallel imaging      factors 2 and 1, separate calibration",
        "calibration           16 shots of 64 samples; slices 1 (0)",
        "calibration           24 shots of 32 samples; slices 1 (0)",
    ] {
        assert!(info.contains(line), "no {line:?} in {info}");
    }
}
