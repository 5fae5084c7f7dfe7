//! The option --phase-difference of the commands grid and cg.

use crate::io::{Dataset, Image, Placement, Scan, ScanIndex};
use crate::{read_images, write_dataset, TempDir};
use num_complex::Complex;
use recon::phantom::CoilModel;
use recon::scan::{EncodingSpace, Header, HeaderEncoding, TrajectoryKind, UserParameter};
use recon::Trajectory;
use std::f64::consts::{PI, TAU};
use std::fs;

/// The size of the images.
const N: usize = 32;
const COILS: usize = 4;
const FOV_MM: f32 = 320.0;
/// Velocity in cm/s that causes a phase of pi.
const VENC: f64 = 150.0;
/// Coefficients of concomitant fields in the header, in cycles per square metre.
const MAXWELL: [f64; 4] = [3.0, -1.0, 2.0, 1.0];
/// The centre of the image in the patient, in mm.
const CENTRE: [f64; 3] = [-30.0, 40.0, 90.0];
/// The line that reports missing coefficients.
const NOT_CORRECTED: &str = "concomitant fields (Maxwell terms) are not corrected";

/// Returns the position of a voxel as fractions of the field of view.
fn position(i: usize) -> [f64; 2] {
    [i % N, i / N].map(|j| (j as f64 - (N / 2) as f64) / N as f64)
}

fn is_inside(i: usize) -> bool {
    let [x, y] = position(i);
    x * x + y * y < 0.16
}

/// Returns the velocity in cm/s: smooth, and different in each set and slice.
fn velocity(i: usize, set: u16, slice: u16) -> f64 {
    let [x, y] = position(i);
    let profile = (1.0 - (x * x + y * y) / 0.16).max(0.0);
    (100.0 - 30.0 * f64::from(set - 1)) * profile * if slice == 0 { 1.0 } else { -1.0 }
}

/// Returns the phase of concomitant fields by the formula of the documentation, for the head first and supine.
fn concomitant(i: usize) -> f64 {
    let [dx, dy] = position(i).map(|part| part * f64::from(FOV_MM));
    // The image's x is to the left and its y to the head; the gradients' axes are left, front and feet.
    let [x, y, z] = [CENTRE[0] + dx, -CENTRE[1], -(CENTRE[2] + dy)].map(|mm| mm / 1000.0);
    TAU * (MAXWELL[0] * z * z + MAXWELL[1] * (x * x + y * y) + MAXWELL[2] * x * z + MAXWELL[3] * y * z)
}

/// Returns the coil images of a set, whose velocity phase is added to that of the object.
fn coil_images(set: u16, slice: u16, with_fields: bool) -> Vec<Complex<f64>> {
    let maps = CoilModel::ring(COILS, 2).unwrap().maps(&[N, N]).unwrap();
    let object: Vec<Complex<f64>> = (0..N * N)
        .map(|i| {
            let [x, y] = position(i);
            let moving = if set == 0 { 0.0 } else { PI * velocity(i, set, slice) / VENC };
            let fields = if set > 0 && with_fields { -concomitant(i) } else { 0.0 };
            let magnitude = if is_inside(i) { 1.0 + x } else { 0.0 };
            Complex::from_polar(magnitude, 1.0 + 3.0 * x * y + moving + fields)
        })
        .collect();
    maps.chunks(N * N).flat_map(|map| map.iter().zip(&object).map(|(s, x)| s * x)).collect()
}

/// Returns the Fourier transform of images, line by line, at k = -1/2, -1/2 + 1/N, ...
fn kspace(images: &[Complex<f64>]) -> Vec<Complex<f32>> {
    let centred = |n: usize| n as f64 - (N / 2) as f64;
    let sums = |of: &dyn Fn(usize, usize) -> Complex<f64>| -> Vec<Complex<f64>> {
        let wave = |m: usize, j: usize| Complex::from_polar(1.0, -TAU * centred(m % N) * centred(j) / N as f64);
        (0..N * N).map(|m| (0..N).map(|j| of(m / N, j) * wave(m, j)).sum()).collect()
    };
    let transform = |image: &[Complex<f64>]| {
        let rows = sums(&|y, x| image[y * N + x]);
        let columns = sums(&|kx, y| rows[y * N + kx]);
        (0..N * N)
            .map(|m| columns[m % N * N + m / N])
            .map(|z| Complex::new(z.re as f32, z.im as f32))
            .collect::<Vec<_>>()
    };
    images.chunks(N * N).flat_map(transform).collect()
}

/// Returns raw data of these (set, slice), without concomitant fields or coefficients in the header.
fn dataset(images: &[(u16, u16)], with_fields: bool) -> Dataset {
    let trajectory = Trajectory::cartesian(&[N, N]).unwrap();
    let space = EncodingSpace { matrix: [N, N, 1], fov_mm: [FOV_MM, FOV_MM, 8.0] };
    let scan = |&(set, slice): &(u16, u16)| Scan {
        index: ScanIndex { set, slice, ..Default::default() },
        encoded_matrix: space.matrix,
        recon_matrix: space.matrix,
        encoded_fov_mm: space.fov_mm,
        recon_fov_mm: space.fov_mm,
        ndim: 2,
        coordinates: (0..2).map(|axis| trajectory.axis_as(axis)).collect(),
        weights: None,
        trajectory: TrajectoryKind::Other,
        samples_per_shot: vec![N; N],
        skipped_per_shot: vec![0; N],
        coils: COILS,
        data: kspace(&coil_images(set, slice, with_fields)),
        times: (0..N * N).map(|m| (m % N) as f32 * 1e-5).collect(),
        placement: Placement {
            position: CENTRE.map(|mm| mm as f32),
            read_dir: [1.0, 0.0, 0.0],
            phase_dir: [0.0, 0.0, 1.0],
            slice_dir: [0.0, -1.0, 0.0],
            ..Placement::default()
        },
        coil_matrix: None,
        noise_level: None,
    };
    let encoding = HeaderEncoding { encoded: space, recon: space, ..Default::default() };
    Dataset {
        header: Header { encodings: vec![encoding], ..Default::default() },
        scans: images.iter().map(scan).collect(),
        noise: Vec::new(),
        calibration: Vec::new(),
        uses: Vec::new(),
    }
}

/// Returns the user parameters of all 16 coefficients.
fn coefficients() -> Vec<UserParameter> {
    let value = |i: usize| MAXWELL.get(i).copied().unwrap_or(0.0);
    let name = |i: usize| format!("MaxwellCoefficient_{i}");
    (0..16).map(|i| UserParameter { name: name(i), value: value(i), is_integer: false }).collect()
}

/// Returns the largest distance in the object from `sign` times the velocities times `scale`, on the circle of phases.
fn largest_error(image: &Image, scale: f64, sign: f64) -> f64 {
    assert_eq!((image.dims, image.channels), ([N, N, 1], 1));
    let of_voxel = |i: usize| {
        assert!(image.data[i].im == 0.0);
        let set = image.index.set.max(1);
        let distance = f64::from(image.data[i].re) - sign * scale * velocity(i, set, image.index.slice);
        let range = 2.0 * VENC * scale;
        (distance - range * (distance / range).round()).abs()
    };
    (0..N * N).filter(|&i| is_inside(i)).map(of_voxel).fold(0.0, f64::max)
}

/// Runs a command that succeeds with one warning, which contains these words.
fn warned(dir: &TempDir, line: &str, words: &[&str]) {
    let out = dir.run(line);
    assert_eq!((out.status, out.stderr.matches('\n').count()), (Some(0), 1), "{out:?}");
    for word in words {
        assert!(out.stderr.contains(word), "no {word:?} in {out:?}");
    }
}

#[test]
fn phase_differences_of_two_encodings() {
    let dir = TempDir::new();
    write_dataset(dir.path("scan.h5"), &dataset(&[(0, 0), (1, 0), (0, 1), (1, 1)], false));
    let radians = PI / VENC;
    // 5e-4 cm/s were measured for gridding, 8e-4 cm/s for cg with and without maps.
    let most = 0.005;
    for command in ["grid", "cg", "cg --no-maps", "grid --precision f64"] {
        warned(&dir, &format!("{command} scan.h5 --phase-difference -o phase.h5"), &[NOT_CORRECTED]);
        dir.ok(&format!("{command} scan.h5 --phase-difference --venc 150 --maxwell none -o v.h5"));
        let (phases, velocities) = (read_images(dir.path("phase.h5")), read_images(dir.path("v.h5")));
        assert_eq!((phases.len(), velocities.len()), (2, 2));
        for (slice, (phase, v)) in phases.iter().zip(&velocities).enumerate() {
            assert_eq!((v.index.slice as usize, v.index.set, v.placement.position), (slice, 1, [-30.0, 40.0, 90.0]));
            let (a, b) = (largest_error(phase, radians, 1.0), largest_error(v, 1.0, 1.0));
            assert!(a < most * radians && b < most, "{command}, slice {slice}: {a} rad, {b} cm/s");
        }
    }
    // The reference set determines the sign.
    dir.ok("grid scan.h5 --phase-difference --venc 150 --reference-set 1 --maxwell none --slice 1 -o reversed.nii");
    let image = &mut read_images(dir.path("reversed.nii"))[0];
    image.index.slice = 1;
    let error = largest_error(image, 1.0, -1.0);
    assert!(error < 0.01, "{error} cm/s");
}

#[test]
fn several_encodings_need_a_reference() {
    let dir = TempDir::new();
    write_dataset(dir.path("scan.h5"), &dataset(&[(0, 0), (1, 0), (2, 0)], false));
    let command = "grid scan.h5 --phase-difference --venc 150 --maxwell none";
    dir.fails(1, &format!("{command} -o v.h5"), &["sets 0, 1, 2", "--reference-set"]);
    dir.ok(&format!("{command} --reference-set 0 -o v.h5"));
    let images = read_images(dir.path("v.h5"));
    assert_eq!(images.iter().map(|image| image.index.set).collect::<Vec<_>>(), [1, 2]);
    for image in &images {
        let error = largest_error(image, 1.0, 1.0);
        assert!(error < 0.01, "set {}: {error} cm/s", image.index.set);
    }
}

#[test]
fn concomitant_fields_are_corrected_from_the_header() {
    let dir = TempDir::new();
    let mut data = dataset(&[(0, 0), (1, 0)], true);
    data.header.user_parameters = coefficients();
    data.header.patient_position = Some("HFS".into());
    write_dataset(dir.path("scan.h5"), &data);
    let error = |name: &str| largest_error(&read_images(dir.path(name))[0], 1.0, 1.0);
    for command in ["grid", "grid --maxwell header", "cg --maxwell auto"] {
        let line = format!("{command} scan.h5 --phase-difference --venc 150 -o v.h5");
        warned(&dir, &line, &["concomitant fields are corrected", "added to", "negated"]);
        assert!(error("v.h5") < 0.01, "{command}: {}", error("v.h5"));
    }
    dir.ok("grid scan.h5 --phase-difference --venc 150 --maxwell none -o none.h5");
    let out = dir.run("grid scan.h5 --phase-difference --venc 150 --maxwell negated -o negated.h5");
    assert!(out.status == Some(0) && out.stderr.contains("subtracted from"), "{out:?}");
    // The uncorrected fields are the error, and the wrong sign doubles it.
    let (none, negated) = (error("none.h5"), error("negated.h5"));
    assert!(none > 10.0 && (negated - 2.0 * none).abs() < 0.02, "{none} and {negated} cm/s");
    // With conjugated samples, the sign of the coefficients is the user's decision.
    let mut conjugated = dataset(&[(0, 0), (1, 0)], true);
    (conjugated.header.user_parameters, conjugated.header.patient_position) = (coefficients(), Some("HFS".into()));
    conjugated.scans.iter_mut().flat_map(|scan| &mut scan.data).for_each(|z| *z = z.conj());
    write_dataset(dir.path("conjugated.h5"), &conjugated);
    let line = "grid conjugated.h5 --conjugate --phase-difference --venc 150";
    dir.fails(1, &format!("{line} -o out.h5"), &["--conjugate", "--maxwell negated", "--maxwell header"]);
    warned(&dir, &format!("{line} --maxwell header -o v.h5"), &["concomitant fields are corrected", "added to"]);
    assert!(error("v.h5") < 0.01, "{}", error("v.h5"));
    let with_header = |change: &dyn Fn(&mut Dataset), line: &str, words: &[&str]| {
        let mut data = dataset(&[(0, 0), (1, 0)], true);
        data.header.user_parameters = coefficients();
        data.header.patient_position = Some("HFS".into());
        change(&mut data);
        write_dataset(dir.path("changed.h5"), &data);
        if words[0].starts_with("concomitant") || words[0].starts_with("MaxwellCoefficient_7 ") {
            let out = dir.run(&format!("{line} -o changed_v.h5"));
            assert!(out.status == Some(0) && words.iter().all(|w| out.stderr.contains(w)), "{out:?}");
        } else {
            dir.fails(1, &format!("{line} -o out.h5"), words);
        }
        fs::remove_file(dir.path("changed.h5")).unwrap();
    };
    let line = "grid changed.h5 --phase-difference";
    with_header(&|d| drop(d.header.user_parameters.remove(2)), line, &["not MaxwellCoefficient_2"]);
    with_header(&|d| d.header.user_parameters[1].value = f64::NAN, line, &["MaxwellCoefficient_1 is NaN"]);
    with_header(&|d| d.header.user_parameters[7].value = 1.0, line, &["MaxwellCoefficient_7 is not 0"]);
    with_header(&|d| d.header.user_parameters.clear(), line, &[NOT_CORRECTED, "--maxwell none"]);
    with_header(&|d| d.header.user_parameters.iter_mut().for_each(|p| p.value = 0.0), line, &[NOT_CORRECTED, "are 0"]);
    let required = format!("{line} --maxwell header");
    with_header(&|d| d.header.user_parameters.clear(), &required, &["no MaxwellCoefficient_0", "--maxwell none"]);
    with_header(&|d| d.header.patient_position = None, line, &["no patientPosition"]);
    with_header(&|d| d.header.patient_position = Some("up".into()), line, &["\"up\"", "HFS"]);
    with_header(&|d| d.scans.iter_mut().for_each(|s| s.placement = Placement::default()), line, &["unknown"]);
    with_header(&|d| d.scans.iter_mut().for_each(|s| s.placement.position[2] = 3e3), line, &["mm from the isocentre"]);
}

#[test]
fn missing_or_different_encodings_are_errors() {
    let dir = TempDir::new();
    write_dataset(dir.path("one.h5"), &dataset(&[(1, 0)], false));
    write_dataset(dir.path("two.h5"), &dataset(&[(0, 0), (1, 0)], false));
    write_dataset(dir.path("incomplete.h5"), &dataset(&[(0, 0), (1, 0), (0, 1)], false));
    write_dataset(dir.path("without.h5"), &dataset(&[(0, 0), (1, 0), (1, 1)], false));
    write_dataset(dir.path("later.h5"), &dataset(&[(1, 0), (2, 0)], false));
    let mut moved = dataset(&[(0, 0), (1, 0)], false);
    moved.scans[1].placement.position[0] += 1.0;
    write_dataset(dir.path("moved.h5"), &moved);
    let mut turned = dataset(&[(0, 0), (1, 0)], false);
    turned.scans[1].placement.read_dir[0] = -1.0;
    write_dataset(dir.path("turned.h5"), &turned);
    let mut fewer = dataset(&[(0, 0), (1, 0)], false);
    fewer.scans[1].coils = 2;
    fewer.scans[1].data.truncate(2 * N * N);
    write_dataset(dir.path("fewer.h5"), &fewer);
    for command in ["grid", "cg"] {
        let fails = |file: &str, words: &[&str]| {
            dir.fails(1, &format!("{command} {file}.h5 --phase-difference --maxwell none -o v.h5"), words);
        };
        fails("one", &["set 1", "two sets"]);
        fails("incomplete", &["slice 1", "reference set only"]);
        fails("without", &["slice 1", "no image of set 0"]);
        fails("later", &["sets 1, 2", "--reference-set"]);
        fails("moved", &["set 1", "position", "same slice"]);
        fails("turned", &["set 1", "directions", "same slice"]);
        fails("fewer", &["set 1", "2", "must be the same"]);
        let line = |options: &str| format!("{command} two.h5 -o {options}");
        dir.fails(1, &line("v.h5 --phase-difference --venc 0"), &["--venc is 0"]);
        dir.fails(1, &line("v.h5 --phase-difference --venc -5"), &["--venc is -5"]);
        dir.fails(1, &line("v.h5 --phase-difference --venc inf"), &["--venc is inf"]);
        dir.fails(1, &line("v.png --phase-difference"), &["a phase difference has a sign"]);
        dir.fails(1, &line("v.h5 --phase-difference --reference-set 3"), &["--reference-set 3", "sets 0, 1"]);
        for option in ["--venc 150", "--reference-set 0", "--maxwell none"] {
            dir.fails(2, &line(&format!("v.h5 {option}")), &["--phase-difference"]);
        }
        dir.fails(2, &line("v.h5 --phase-difference --combine adaptive"), &["--combine"]);
    }
    dir.fails(2, "grid two.h5 -o v.h5 --phase-difference --kspace", &["--kspace"]);
}

#[test]
fn sets_with_different_trajectories_share_coil_maps() {
    // The signal is on different sides of the object, so that coil maps of each set have the phase of another coil. The
    // second set measures the lines in the reverse order, so that the plans of the sets differ as well.
    let dir = TempDir::new();
    let mut data = dataset(&[(0, 0), (1, 0)], false);
    for (set, scan) in data.scans.iter_mut().enumerate() {
        let side = if set == 0 { 3.0 } else { -3.0 };
        let mut images = coil_images(set as u16, 0, false);
        images.iter_mut().enumerate().for_each(|(i, z)| *z *= (side * position(i % (N * N))[0]).exp());
        scan.data = kspace(&images);
    }
    let scan = &mut data.scans[1];
    for axis in &mut scan.coordinates {
        axis.reverse();
    }
    scan.data.chunks_mut(N * N).for_each(|coil| coil.reverse());
    write_dataset(dir.path("scan.h5"), &data);
    dir.ok("cg scan.h5 --phase-difference --venc 150 --maxwell none -o v.h5");
    let error = largest_error(&read_images(dir.path("v.h5"))[0], 1.0, 1.0);
    // 0.001 cm/s were measured, and 148 cm/s with maps of each set.
    assert!(error < 0.01, "{error} cm/s");
    // Each pair of frames is one image.
    dir.ok("grid scan.h5 --phase-difference --venc 150 --maxwell none --frame-shots 32 -o frames.h5");
    assert_eq!(read_images(dir.path("frames.h5")).len(), 1);
}
