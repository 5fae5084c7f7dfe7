//! Trajectories that are computed from the header: coordinates from other formulas, the same images as with the
//! trajectory stored, and an option or an error for all that the header leaves open.

mod common;

use common::slices;
use recon::cg::CgOptions;
use recon::phantom::Phantom;
use recon::scan::{
    flag, AcquisitionHeader, AssemblyOptions, Header, HeaderTrajectoryKind, Scan, ScanAssembler, SpiralExtent,
    SpokeNumber, TrajectoryConvention, TrajectoryOptions,
};
use recon::{Complex, Geometry, Options, Plan, Trajectory};
use std::f64::consts::{PI, TAU};

const GADGETRON: TrajectoryOptions =
    TrajectoryOptions { convention: Some(TrajectoryConvention::Gadgetron), ..NO_OPTIONS };
const NO_OPTIONS: TrajectoryOptions = TrajectoryOptions {
    kind: None,
    convention: None,
    angle_range_degrees: None,
    first_angle_degrees: None,
    golden_angle: None,
    spoke_count: None,
    spoke_number: None,
    frames_per_rotation: None,
    readout_samples: None,
    center_sample: None,
    gradient_delay_us: None,
    sample_time_us: None,
    spiral_extent: None,
    acquisition_delay_us: None,
};

/// The XML header of a measurement; `limits` are the numbers of the encoding steps 1 and 2.
fn header_of(kind: &str, matrix: [usize; 3], limits: [usize; 2], description: &str) -> Header {
    let xyz = |v: [f64; 3]| format!("<x>{}</x><y>{}</y><z>{}</z>", v[0], v[1], v[2]);
    let n = matrix.map(|n| n as f64);
    let space = |name: &str| {
        format!(
            "<{name}><matrixSize>{}</matrixSize><fieldOfView_mm>{}</fieldOfView_mm></{name}>",
            xyz(n),
            xyz(n.map(|n| 2.5 * n))
        )
    };
    let limit = |which: usize| match limits[which] {
        0 => String::new(),
        count => format!(
            "<kspace_encoding_step_{0}><minimum>0</minimum><maximum>{1}</maximum><center>{2}</center>\
             </kspace_encoding_step_{0}>",
            which + 1,
            count - 1,
            count / 2
        ),
    };
    let description = match description {
        "" => String::new(),
        text => format!("<trajectoryDescription>{text}</trajectoryDescription>"),
    };
    let xml = format!(
        "<ismrmrdHeader xmlns=\"http://www.ismrm.org/ISMRMRD\"><experimentalConditions><H1resonanceFrequency_Hz>0\
         </H1resonanceFrequency_Hz></experimentalConditions><encoding>{}{}<encodingLimits>{}{}</encodingLimits>\
         <trajectory>{kind}</trajectory>{description}</encoding></ismrmrdHeader>",
        space("encodedSpace"),
        space("reconSpace"),
        limit(0),
        limit(1)
    );
    Header::from_xml(&xml).unwrap()
}

fn long(name: &str, value: i64) -> String {
    format!("<userParameterLong><name>{name}</name><value>{value}</value></userParameterLong>")
}

fn double(name: &str, value: f64) -> String {
    format!("<userParameterDouble><name>{name}</name><value>{value}</value></userParameterDouble>")
}

/// The header of an acquisition of one coil with the centre in the middle.
fn shot(samples: usize, step_1: usize, step_2: usize) -> AcquisitionHeader {
    let mut header = AcquisitionHeader {
        number_of_samples: samples as u16,
        active_channels: 1,
        available_channels: 1,
        center_sample: (samples / 2) as u16,
        sample_time_us: 2.5,
        ..AcquisitionHeader::default()
    };
    (header.idx.kspace_encode_step_1, header.idx.kspace_encode_step_2) = (step_1 as u16, step_2 as u16);
    header
}

/// Assembles all images of acquisitions whose samples are `data`, with a stored trajectory if there is one.
fn assemble(
    header: &Header,
    shots: &[AcquisitionHeader],
    data: &[Complex<f32>],
    stored: Option<&[Vec<f64>]>,
    trajectory: TrajectoryOptions,
) -> recon::Result<Vec<Scan>> {
    let options = AssemblyOptions { trajectory, ..AssemblyOptions::default() };
    let mut assembler = ScanAssembler::new(header.clone(), options);
    let mut start = 0;
    for (number, shot) in shots.iter().enumerate() {
        let range = start..start + shot.number_of_samples as usize;
        let mut shot = *shot;
        let mut points = Vec::new();
        if let Some(axes) = stored {
            shot.trajectory_dimensions = axes.len() as u16;
            points = range.clone().flat_map(|i| axes.iter().map(move |k| k[i] as f32)).collect();
        }
        assembler.add(number, &shot, &points, &data[range.clone()])?;
        start = range.end;
    }
    Ok(assembler.finish()?.scans)
}

/// Returns the coordinates that the header gives to these acquisitions, or the error.
fn coordinates(header: &Header, shots: &[AcquisitionHeader], options: TrajectoryOptions) -> recon::Result<Vec<Scan>> {
    let samples = shots.iter().map(|shot| shot.number_of_samples as usize).sum();
    assemble(header, shots, &vec![Complex::new(1.0, 0.0); samples], None, options)
}

fn error_of(header: &Header, shots: &[AcquisitionHeader], options: TrajectoryOptions) -> String {
    coordinates(header, shots, options).unwrap_err().to_string()
}

fn image(scan: &Scan) -> Vec<Complex<f32>> {
    let dims = &scan.encoded_matrix[..scan.ndim];
    let k = slices(&scan.coordinates);
    let plan = Plan::new(&Geometry::new(dims, &k), &Options { threads: 2, ..Options::default() }).unwrap();
    let mut image = vec![Complex::default(); dims.iter().product()];
    plan.cg(&scan.data, &mut image, &CgOptions { iterations: 6, ..CgOptions::default() }).unwrap();
    image
}

/// Checks the coordinates of one image against `expected`, a function of shot and sample, and that the image of a
/// phantom is the same as with these coordinates stored.
fn check(
    header: &Header,
    shots: &[AcquisitionHeader],
    options: TrajectoryOptions,
    expected: impl Fn(usize, usize) -> [f64; 3],
) {
    let ndim = if header.encodings[0].encoded.matrix[2] > 1 { 3 } else { 2 };
    let dims = &header.encodings[0].encoded.matrix[..ndim];
    let mut axes = vec![Vec::new(); ndim];
    for (i, shot) in shots.iter().enumerate() {
        for sample in 0..shot.number_of_samples as usize {
            let k = expected(i, sample);
            axes.iter_mut().zip(k).for_each(|(axis, k)| axis.push(k));
        }
    }
    let phantom = if ndim == 3 { Phantom::shepp_logan_3d() } else { common::head() };
    let exact = phantom.kspace(dims, &slices(&axes), None, 1).unwrap();
    let data: Vec<Complex<f32>> = exact.iter().map(|z| Complex::new(z.re as f32, z.im as f32)).collect();
    let computed = assemble(header, shots, &data, None, options).unwrap();
    let stored = assemble(header, shots, &data, Some(&axes), NO_OPTIONS).unwrap();
    assert_eq!((computed.len(), stored.len()), (1, 1));
    let (computed, stored) = (&computed[0], &stored[0]);
    assert_eq!(computed.samples_per_shot, stored.samples_per_shot);
    for (axis, (a, b)) in computed.coordinates.iter().zip(&stored.coordinates).enumerate() {
        for (i, (a, b)) in a.iter().zip(b).enumerate() {
            // 0.5 and -0.5 are the same place.
            let difference = (a - b).abs();
            assert!(difference.min(1.0 - difference) < 2e-6, "axis {axis}, sample {i}: {a}, expected {b}");
        }
    }
    let (a, b) = (image(computed), image(stored));
    let exact: Vec<Complex<f64>> = b.iter().map(|z| Complex::new(z.re as f64, z.im as f64)).collect();
    let error = common::distance(&a, &exact);
    assert!(error < 1e-4, "images differ by {error}");
}

/// Returns the point at this radius and angle in degrees.
fn polar(radius: f64, degrees: f64) -> [f64; 3] {
    let z = Complex::from_polar(radius, degrees / 360.0 * TAU);
    [z.re, z.im, 0.0]
}

#[test]
fn gadgetrons_equal_angles() {
    // The angle is pi (1 + spoke / spokes), as in Gadgetron's mode 0, in the order in which its frames interleave.
    let header = header_of("radial", [32, 32, 1], [48, 0], "");
    let steps: Vec<usize> = (0..4).flat_map(|frame| (0..12).map(move |i| frame + 4 * i)).collect();
    let shots: Vec<_> = steps.iter().map(|&step| shot(32, step, 0)).collect();
    let expected = |i: usize, s: usize| polar((s as f64 - 16.0) / 32.0, 180.0 + steps[i] as f64 * 180.0 / 48.0);
    check(&header, &shots, GADGETRON, expected);
    let options =
        TrajectoryOptions { angle_range_degrees: Some(180.0), first_angle_degrees: Some(180.0), ..NO_OPTIONS };
    check(&header, &shots, options, expected);
}

#[test]
fn angles_over_a_full_turn_in_both_directions() {
    let header = header_of("radial", [32, 32, 1], [49, 0], "");
    let shots: Vec<_> = (0..49).map(|i| shot(32, i, 0)).collect();
    for range in [360.0, -360.0] {
        let options =
            TrajectoryOptions { angle_range_degrees: Some(range), first_angle_degrees: Some(30.0), ..NO_OPTIONS };
        check(&header, &shots, options, |i, s| polar((s as f64 - 16.0) / 32.0, 30.0 + range * i as f64 / 49.0));
    }
}

#[test]
fn frames_that_interleave_by_fractions_of_the_angle() {
    // Gadgetron's mode 1: the steps of each frame begin with 0.
    let header = header_of("radial", [32, 32, 1], [20, 0], "");
    let mut shots = Vec::new();
    for repetition in 0..4 {
        for step in 0..20 {
            let mut shot = shot(32, step, 0);
            shot.idx.repetition = repetition;
            shots.push(shot);
        }
    }
    let options = TrajectoryOptions { frames_per_rotation: Some(4), ..GADGETRON };
    let scans = coordinates(&header, &shots, options).unwrap();
    assert_eq!(scans.len(), 4);
    for (frame, scan) in scans.iter().enumerate() {
        for spoke in 0..20 {
            let k = polar(-0.5, 180.0 + (spoke as f64 + frame as f64 / 4.0) * 9.0);
            for (axis, k) in k[..2].iter().enumerate() {
                // 0.5 and -0.5 are the same place.
                let difference = scan.coordinates[axis][32 * spoke] as f64 - k;
                assert!((difference - difference.round()).abs() < 1e-6);
            }
        }
    }
}

#[test]
fn golden_and_tiny_golden_angles() {
    let header = header_of("goldenangle", [32, 32, 1], [55, 0], "");
    let shots: Vec<_> = (0..55).map(|i| shot(64, i, 0)).collect();
    let point = |s: usize, degrees: f64| polar((s as f64 - 32.0) / 64.0, degrees);
    // pi times the conjugate of the golden ratio, as in Gadgetron's mode 2.
    check(&header, &shots, GADGETRON, |i, s| point(s, 180.0 + i as f64 * 180.0 * (5f64.sqrt() - 1.0) / 2.0));
    // Gadgetron's mode 3 is the second tiny golden angle, pi (3 - sqrt(5)) / 2.
    let second = TrajectoryOptions { golden_angle: Some(2), ..GADGETRON };
    check(&header, &shots, second, |i, s| point(s, 180.0 + i as f64 * 90.0 * (3.0 - 5f64.sqrt())));
    // Published in degrees for N = 7 (Wundrak et al. 2015, table 1): 23.6281.
    let seventh = TrajectoryOptions { golden_angle: Some(-7), first_angle_degrees: Some(0.0), ..NO_OPTIONS };
    let scan = &coordinates(&header, &shots, seventh).unwrap()[0];
    let end = (64 + 63, 31.0 / 64.0);
    assert!((scan.coordinates[1][end.0] as f64 / end.1 - (-23.6281f64).to_radians().sin()).abs() < 1e-5);
}

#[test]
fn stacks_of_stars() {
    let matrix = [16, 16, 8];
    let shots: Vec<_> = (0..21 * 8).map(|i| shot(16, i % 21, i / 21)).collect();
    let kz = |i: usize| ((i / 21) as f64 - 4.0) / 8.0;
    let plane = |i: usize, s: usize, angle: f64| {
        let k = polar((s as f64 - 8.0) / 16.0, 180.0 + (i % 21) as f64 * angle);
        [k[0], k[1], kz(i)]
    };
    let header = header_of("radial", matrix, [21, 8], "");
    check(&header, &shots, GADGETRON, |i, s| plane(i, s, 180.0 / 21.0));
    let header = header_of("goldenangle", matrix, [21, 8], "");
    check(&header, &shots, GADGETRON, |i, s| plane(i, s, 111.246_117_975));
    let order = TrajectoryOptions { spoke_number: Some(SpokeNumber::AcquisitionOrder), ..GADGETRON };
    assert!(error_of(&header, &shots, order).contains("stack of stars are numbered by kspace_encode_step_1"));
}

#[test]
fn kooshballs() {
    let header = header_of("radial", [16, 16, 16], [200, 0], "");
    let shots: Vec<_> = (0..200).map(|i| shot(16, i, 0)).collect();
    let kind = |kind| TrajectoryOptions { kind: Some(kind), ..NO_OPTIONS };
    let along = |s: usize, [x, y, z]: [f64; 3]| [x, y, z].map(|d| d * (s as f64 - 8.0) / 16.0);
    // The golden means are the components of the eigenvector of their recurrence: powers of its inverse eigenvalue.
    let growth = (0..100).fold([1.0f64; 3], |v, _| {
        let w = [v[1], v[2], v[0] + v[2]];
        w.map(|x| x / w[2])
    });
    let (a, b) = (growth[0], growth[1]);
    assert!((a - 0.4656).abs() < 1e-4 && (b - 0.6823).abs() < 1e-4);
    check(&header, &shots, kind(HeaderTrajectoryKind::KooshballGoldenMeans), |i, s| {
        let (polar_angle, azimuth) = (((i as f64 * a) % 1.0).acos(), TAU * ((i as f64 * b) % 1.0));
        along(s, [polar_angle.sin() * azimuth.cos(), polar_angle.sin() * azimuth.sin(), polar_angle.cos()])
    });
    check(&header, &shots, kind(HeaderTrajectoryKind::KooshballPhyllotaxis), |i, s| {
        let (polar_angle, azimuth) = (PI / 2.0 * (i as f64 / 200.0).sqrt(), 137.507_764_05f64.to_radians() * i as f64);
        along(s, [polar_angle.sin() * azimuth.cos(), polar_angle.sin() * azimuth.sin(), polar_angle.cos()])
    });
    let simulated = Trajectory::radial3d(200, 16).unwrap();
    let point = |i: usize| [0, 1, 2].map(|axis| simulated.axis(axis)[i]);
    check(&header, &shots, kind(HeaderTrajectoryKind::KooshballEqualArea), |i, s| point(16 * i + s));

    let plane = header_of("radial", [16, 16, 1], [200, 0], "");
    let error = error_of(&plane, &shots, kind(HeaderTrajectoryKind::KooshballEqualArea));
    assert!(error.contains("one voxel along z"), "{error}");
    let few = TrajectoryOptions { spoke_count: Some(150), ..kind(HeaderTrajectoryKind::KooshballPhyllotaxis) };
    assert!(error_of(&header, &shots, few).contains("the number of the spoke is 150, but there are 150"));
    let stack: Vec<_> = (0..200).map(|i| shot(16, i, i % 2)).collect();
    let error = error_of(&header, &stack, kind(HeaderTrajectoryKind::KooshballEqualArea));
    assert!(error.contains("acquisition 1 has kspace_encode_step_2 1"), "{error}");
}

#[test]
fn the_librarys_own_description_settles_the_angles() {
    let numbers = double("first_angle_degrees", 0.0) + &double("angle_range_degrees", 180.0);
    let description = format!("<identifier>recon_radial</identifier>{numbers}");
    let header = header_of("radial", [32, 32, 1], [48, 0], &description);
    let shots: Vec<_> = (0..48).map(|i| shot(32, i, 0)).collect();
    check(&header, &shots, NO_OPTIONS, |i, s| polar((s as f64 - 16.0) / 32.0, i as f64 * 180.0 / 48.0));
    // An option replaces a number.
    let options = TrajectoryOptions { first_angle_degrees: Some(90.0), ..NO_OPTIONS };
    check(&header, &shots, options, |i, s| polar((s as f64 - 16.0) / 32.0, 90.0 + i as f64 * 180.0 / 48.0));
    let golden = long("golden_angle", 3) + &double("first_angle_degrees", 0.0);
    let header =
        header_of("other", [32, 32, 1], [0, 0], &format!("<identifier>recon_goldenangle</identifier>{golden}"));
    check(&header, &shots, NO_OPTIONS, |i, s| {
        polar((s as f64 - 16.0) / 32.0, i as f64 * 180.0 / ((1.0 + 5f64.sqrt()) / 2.0 + 2.0))
    });
    let header = header_of("other", [16, 16, 16], [48, 0], "<identifier>recon_kooshball_equal_area</identifier>");
    let simulated = Trajectory::radial3d(48, 32).unwrap();
    check(&header, &shots, NO_OPTIONS, |i, s| [0, 1, 2].map(|axis| simulated.axis(axis)[32 * i + s]));
    for (name, value) in [("golden_angle", 1.5), ("golden_angle", 0.0), ("angle_range_degrees", 0.0)] {
        let text = format!("<identifier>recon_goldenangle</identifier>{}", double(name, value));
        let error = error_of(&header_of("radial", [32, 32, 1], [48, 0], &text), &shots, NO_OPTIONS);
        assert!(error.contains(&format!("{name} of the trajectory description cannot be {value}")), "{error}");
    }
}

#[test]
fn samples_along_a_spoke() {
    let header = header_of("radial", [64, 64, 1], [4, 0], "");
    let along = |shot: AcquisitionHeader, options: TrajectoryOptions| -> Vec<f64> {
        let options = TrajectoryOptions { first_angle_degrees: Some(0.0), ..options };
        let options = TrajectoryOptions { angle_range_degrees: Some(180.0), ..options };
        let scan = &coordinates(&header, &[shot], options).unwrap()[0];
        scan.coordinates[0].iter().map(|&k| k as f64).collect()
    };
    let near = |a: &[f64], first: f64, step: f64| {
        for (i, k) in a.iter().enumerate() {
            assert!((k - first - step * i as f64).abs() < 1e-6, "sample {i}: {k}");
        }
    };
    // Oversampled, and a centre that the writer did not set.
    near(&along(shot(128, 0, 0), NO_OPTIONS), -0.5, 1.0 / 128.0);
    near(&along(AcquisitionHeader { center_sample: 0, ..shot(128, 0, 0) }, NO_OPTIONS), -0.5, 1.0 / 128.0);
    // Discarded samples, and a partial echo of as many samples as the matrix.
    let discarded = AcquisitionHeader { discard_pre: 3, discard_post: 1, center_sample: 35, ..shot(68, 0, 0) };
    near(&along(discarded, NO_OPTIONS), -0.5, 1.0 / 64.0);
    let partial = AcquisitionHeader { center_sample: 16, ..shot(48, 0, 0) };
    let full = TrajectoryOptions { readout_samples: Some(64), ..NO_OPTIONS };
    near(&along(partial, full), -0.25, 1.0 / 64.0);
    // From the centre outwards.
    let half = AcquisitionHeader { center_sample: 0, ..shot(32, 0, 0) };
    near(&along(half, full), 0.0, 1.0 / 64.0);
    let centre = TrajectoryOptions { center_sample: Some(31.5), ..NO_OPTIONS };
    near(&along(shot(64, 0, 0), centre), -31.5 / 64.0, 1.0 / 64.0);
    // Delays of 2 samples move samples out of k-space, which are discarded. A readout in the other direction.
    for (delay, kept) in [(5.0, 2..64), (-5.0, 0..63)] {
        let late = TrajectoryOptions { gradient_delay_us: Some(delay), ..NO_OPTIONS };
        let k = along(shot(64, 0, 0), late);
        assert_eq!(k.len(), kept.len());
        near(&k[..61], (kept.start as f64 - delay / 2.5 - 32.0) / 64.0, 1.0 / 64.0);
    }
    let late = TrajectoryOptions { gradient_delay_us: Some(5.0), center_sample: Some(30.0), ..full };
    near(&along(shot(60, 0, 0), late), -0.5, 1.0 / 64.0);
    let reversed = AcquisitionHeader { flags: flag::bit(flag::REVERSE), ..shot(64, 0, 0) };
    near(&along(reversed, NO_OPTIONS), 31.0 / 64.0, -1.0 / 64.0);
}

#[test]
fn voxels_of_different_sizes() {
    let mut header = header_of("radial", [32, 32, 1], [48, 0], "");
    header.encodings[0].encoded.fov_mm[1] *= 0.5;
    let shots: Vec<_> = (0..48).map(|i| shot(32, i, 0)).collect();
    check(&header, &shots, GADGETRON, |i, s| {
        let k = polar((s as f64 - 16.0) / 32.0, 180.0 + i as f64 * 180.0 / 48.0);
        [k[0], 0.5 * k[1], 0.0]
    });
    header.encodings[0].encoded.fov_mm[1] = 0.0;
    assert!(error_of(&header, &shots, GADGETRON).contains("correct <fieldOfView_mm>"));
}

#[test]
fn spokes_that_the_header_leaves_open_are_errors() {
    let radial = header_of("radial", [32, 32, 1], [8, 0], "");
    let golden = header_of("goldenangle", [32, 32, 1], [8, 0], "");
    let shots: Vec<_> = (0..8).map(|i| shot(32, i, 0)).collect();
    let expect = |header: &Header, shots: &[AcquisitionHeader], options, texts: &[&str]| {
        let error = error_of(header, shots, options);
        texts.iter().for_each(|text| assert!(error.contains(text), "{error}"));
    };
    let open = |option: &str| format!("set the option {option}, or set the option convention to gadgetron");
    expect(&radial, &shots, NO_OPTIONS, &["over which range of angles", &open("angle_range_degrees")]);
    let range = TrajectoryOptions { angle_range_degrees: Some(180.0), ..NO_OPTIONS };
    expect(&radial, &shots, range, &["at which angle the first spoke is", &open("first_angle_degrees")]);
    expect(&golden, &shots, NO_OPTIONS, &["by which golden angle", &open("golden_angle")]);
    // The number of spokes, with and without limits.
    let unlimited = header_of("radial", [32, 32, 1], [0, 0], "");
    expect(&unlimited, &shots, GADGETRON, &["how many spokes", "set the option spoke_count"]);
    let counted = TrajectoryOptions { spoke_count: Some(8), ..GADGETRON };
    check(&unlimited, &shots, counted, |i, s| polar((s as f64 - 16.0) / 32.0, 180.0 + 22.5 * i as f64));
    let few = TrajectoryOptions { spoke_count: Some(5), ..GADGETRON };
    expect(&radial, &shots, few, &["kspace_encode_step_1 is 5, but the 5 spokes"]);
    // The distance of samples.
    let short: Vec<_> = (0..8).map(|i| shot(24, i, 0)).collect();
    expect(&radial, &short, GADGETRON, &["24 samples with the centre at 12, for 32 voxels", "readout_samples"]);
    let far = TrajectoryOptions { readout_samples: Some(20), ..GADGETRON };
    expect(&radial, &short, far, &["outside k-space", "readout_samples and center_sample"]);
    // A volume that may be a kooshball.
    let volume = header_of("radial", [32, 32, 4], [8, 0], "");
    expect(&volume, &shots, GADGETRON, &["kspace_encode_step_2 in all acquisitions", "kooshball_golden_means"]);
    let other = header_of("other", [32, 32, 1], [8, 0], "");
    expect(&other, &shots, NO_OPTIONS, &["<trajectory> is other", "cartesian, radial, goldenangle"]);
}

#[test]
fn the_number_of_a_golden_spoke_is_never_guessed() {
    let header = header_of("goldenangle", [32, 32, 1], [0, 0], "");
    let mut shots: Vec<_> = (0..10).map(|i| shot(32, i % 5, 0)).collect();
    shots[5..].iter_mut().for_each(|shot| shot.idx.repetition = 1);
    let golden = TrajectoryOptions { golden_angle: Some(1), first_angle_degrees: Some(0.0), ..NO_OPTIONS };
    let error = error_of(&header, &shots, golden);
    assert!(error.contains("kspace_encode_step_1 0 and is number 5 of its slice"), "{error}");
    let angle = |options: TrajectoryOptions| {
        let scan = &coordinates(&header, &shots, options).unwrap()[1];
        (-scan.coordinates[1][0] as f64).atan2(-scan.coordinates[0][0] as f64).to_degrees().rem_euclid(360.0)
    };
    let by = |number| TrajectoryOptions { spoke_number: Some(number), ..golden };
    assert!(angle(by(SpokeNumber::EncodingStep)) < 1e-4);
    assert!((angle(by(SpokeNumber::AcquisitionOrder)) - (5.0 * 111.246_117_975f64).rem_euclid(360.0)).abs() < 1e-4);
    // Gadgetron counts spokes in the order of acquisition, for each slice.
    assert!((angle(GADGETRON) - (180.0 + 5.0 * 111.246_117_975f64).rem_euclid(360.0)).abs() < 1e-4);
    for (i, shot) in shots.iter_mut().enumerate() {
        (shot.idx.slice, shot.idx.repetition, shot.idx.kspace_encode_step_1) = (i as u16 % 2, 0, i as u16 / 2);
    }
    assert_eq!(coordinates(&header, &shots, golden).unwrap().len(), 2);
}

#[test]
fn options_that_do_not_apply_are_errors() {
    let header = header_of("radial", [32, 32, 1], [8, 0], "");
    let shots: Vec<_> = (0..8).map(|i| shot(32, i, 0)).collect();
    let error = |options: TrajectoryOptions| error_of(&header, &shots, options);
    let text = |name: &str| format!("the option {name} is set, but does not apply to the trajectory radial");
    assert!(error(TrajectoryOptions { golden_angle: Some(1), ..GADGETRON }).contains(&text("golden_angle")));
    let number = Some(SpokeNumber::EncodingStep);
    assert!(error(TrajectoryOptions { spoke_number: number, ..GADGETRON }).contains(&text("spoke_number")));
    let extent = Some(SpiralExtent::Matrix);
    assert!(error(TrajectoryOptions { spiral_extent: extent, ..GADGETRON }).contains(&text("spiral_extent")));
    let delay = TrajectoryOptions { acquisition_delay_us: Some(1.0), ..GADGETRON };
    assert!(error(delay).contains(&text("acquisition_delay_us")));
    for (options, name) in [
        (TrajectoryOptions { angle_range_degrees: Some(0.0), ..GADGETRON }, "angle_range_degrees cannot be 0"),
        (TrajectoryOptions { first_angle_degrees: Some(f64::NAN), ..GADGETRON }, "first_angle_degrees cannot be NaN"),
        (TrajectoryOptions { spoke_count: Some(0), ..GADGETRON }, "spoke_count cannot be 0"),
        (TrajectoryOptions { frames_per_rotation: Some(0), ..GADGETRON }, "frames_per_rotation cannot be 0"),
        (TrajectoryOptions { readout_samples: Some(0), ..GADGETRON }, "readout_samples cannot be 0"),
        (TrajectoryOptions { center_sample: Some(-1.0), ..GADGETRON }, "center_sample cannot be -1"),
        (TrajectoryOptions { sample_time_us: Some(0.0), ..GADGETRON }, "sample_time_us cannot be 0"),
        (TrajectoryOptions { gradient_delay_us: Some(f64::INFINITY), ..GADGETRON }, "gradient_delay_us cannot be inf"),
    ] {
        assert!(error(options).contains(name), "{}", error(options));
    }
    let mut timeless = shots.clone();
    timeless.iter_mut().for_each(|shot| shot.sample_time_us = 0.0);
    let late = TrajectoryOptions { gradient_delay_us: Some(1.0), ..GADGETRON };
    assert!(error_of(&header, &timeless, late).contains("a gradient delay needs the time between samples"));
    let cartesian = header_of("cartesian", [32, 32, 1], [8, 0], "");
    let kind = TrajectoryOptions { kind: Some(HeaderTrajectoryKind::Radial), ..GADGETRON };
    assert!(error_of(&cartesian, &shots, kind).contains("the XML header says that the scan is Cartesian"));
}

/// The limits of a spiral for 32 voxels of 2.5 mm: sample time in ns, interleaves, G/cm, G/cm/s, cm, 1/cm.
struct Spiral {
    sample_ns: i64,
    interleaves: i64,
    gradient: f64,
    slew_rate: f64,
    fov: f64,
    krmax: f64,
}

const SPIRAL: Spiral =
    Spiral { sample_ns: 2500, interleaves: 4, gradient: 2.4, slew_rate: 14_414.0, fov: 8.0, krmax: 2.0 };

impl Spiral {
    fn description(&self) -> String {
        [
            "<identifier>HargreavesVDS2000</identifier>".to_owned(),
            long("interleaves", self.interleaves),
            long("fov_coefficients", 1),
            long("SamplingTime_ns", self.sample_ns),
            double("MaxGradient_G_per_cm", self.gradient),
            double("MaxSlewRate_G_per_cm_per_s", self.slew_rate),
            double("FOVCoeff_1_cm", self.fov),
            double("krmax_per_cm", self.krmax),
        ]
        .concat()
    }

    fn header(&self) -> Header {
        header_of("spiral", [32, 32, 1], [self.interleaves as usize, 0], &self.description())
    }

    /// Returns the radii at the samples. The turns follow from k = r exp(i q r) and the speed from |k''|, which is
    /// evaluated as a complex number and solved by bisection.
    fn radii(&self) -> Vec<f64> {
        let (step, q) = (self.sample_ns as f64 * 1e-9, TAU * self.fov / self.interleaves as f64);
        let (mut r, mut v, mut radii) = (0.0f64, 0.0f64, vec![0.0]);
        while r < self.krmax {
            let slew = |a: f64| {
                let first = Complex::new(1.0, q * r);
                (first * a + Complex::new(-q * q * r, 2.0 * q) * v * v).norm()
            };
            let fastest = (4258.0 * self.gradient).min(1.0 / self.fov / step) / Complex::new(1.0, q * r).norm();
            let acceleration = if v > fastest {
                (fastest - v) / step
            } else {
                // The slew rate grows with the acceleration above the smallest one.
                let smallest = -(q * q * r * v * v) / (1.0 + q * q * r * r);
                let (mut low, mut high) = (smallest, 2.0 * 4258.0 * self.slew_rate);
                for _ in 0..200 {
                    let middle = 0.5 * (low + high);
                    if slew(middle) < 4258.0 * self.slew_rate {
                        low = middle;
                    } else {
                        high = middle;
                    }
                }
                low
            };
            v += acceleration * step;
            r += v * step;
            radii.push(r);
        }
        radii
    }

    fn samples(&self) -> usize {
        self.radii().len() - 1
    }

    /// Returns the coordinates of a sample after Gadgetron's conventions: negative, scaled by 2 krmax, and turned from
    /// y towards x.
    fn point(&self, radii: &[f64], interleaf: usize, time: f64) -> [f64; 3] {
        let q = TAU * self.fov / self.interleaves as f64;
        let at = |i: usize| Complex::from_polar(radii[i], q * radii[i]);
        let before = (time.max(0.0) as usize).min(radii.len() - 2);
        let part = (time - before as f64).max(0.0);
        let base = at(before) * (1.0 - part) + at(before + 1) * part;
        let turned = base * Complex::from_polar(-0.5 / self.krmax, -TAU * interleaf as f64 / self.interleaves as f64);
        [turned.re, turned.im, 0.0]
    }
}

fn spiral_shots(samples: usize) -> Vec<AcquisitionHeader> {
    (0..4).map(|i| AcquisitionHeader { center_sample: 0, ..shot(samples, i, 0) }).collect()
}

#[test]
fn spirals_of_hargreaves() {
    let (radii, samples) = (SPIRAL.radii(), SPIRAL.samples());
    let point = |i: usize, s: usize| SPIRAL.point(&radii, i, s as f64);
    check(&SPIRAL.header(), &spiral_shots(samples), NO_OPTIONS, point);
    // Limited by the gradient, and by one sample per field of view.
    let weak = Spiral { gradient: 1.0, ..SPIRAL };
    let radii = weak.radii();
    check(&weak.header(), &spiral_shots(weak.samples()), NO_OPTIONS, |i, s| weak.point(&radii, i, s as f64));
    let slow = Spiral { sample_ns: 10_000, ..SPIRAL };
    let mut shots = spiral_shots(slow.samples());
    shots.iter_mut().for_each(|shot| shot.sample_time_us = 10.0);
    let radii = slow.radii();
    check(&slow.header(), &shots, NO_OPTIONS, |i, s| slow.point(&radii, i, s as f64));
}

#[test]
fn gradient_delays_and_angles_of_spirals() {
    let (radii, samples) = (SPIRAL.radii(), SPIRAL.samples());
    let late = TrajectoryOptions { gradient_delay_us: Some(3.0), ..NO_OPTIONS };
    check(&SPIRAL.header(), &spiral_shots(samples), late, |i, s| SPIRAL.point(&radii, i, s as f64 - 1.2));
    // The other direction of rotation, from an angle of 90 degrees, and 5 samples before the gradient.
    let options = TrajectoryOptions {
        first_angle_degrees: Some(90.0),
        angle_range_degrees: Some(360.0),
        center_sample: Some(5.0),
        ..NO_OPTIONS
    };
    check(&SPIRAL.header(), &spiral_shots(samples + 5), options, |i, s| {
        let [x, y, _] = SPIRAL.point(&radii, 0, s as f64 - 5.0);
        let turned = Complex::new(x, y) * Complex::from_polar(1.0, -PI / 2.0 + TAU * i as f64 / 4.0);
        [turned.re, turned.im, 0.0]
    });
}

#[test]
fn readouts_that_are_longer_or_shorter_than_the_spiral() {
    let (radii, samples) = (SPIRAL.radii(), SPIRAL.samples());
    // As in Gadgetron, samples after the end are not used.
    let data: Vec<Complex<f32>> = (0..4 * (samples + 20)).map(|i| Complex::new(i as f32, 0.0)).collect();
    let shots = spiral_shots(samples + 20);
    let scan = &assemble(&SPIRAL.header(), &shots, &data, None, NO_OPTIONS).unwrap()[0];
    assert_eq!(scan.samples_per_shot, [samples; 4]);
    for interleaf in 0..4 {
        let last = samples * (interleaf + 1) - 1;
        assert_eq!(scan.data[last].re, ((samples + 20) * interleaf + samples - 1) as f32);
        let expected = SPIRAL.point(&radii, interleaf, (samples - 1) as f64);
        assert!((scan.coordinates[0][last] as f64 - expected[0]).abs() < 2e-6);
        assert_eq!(scan.times.len(), 4 * samples);
    }
    // A short readout ends early; its image is blurred, with a warning in the log.
    let shots = spiral_shots(samples - 30);
    let scan = &coordinates(&SPIRAL.header(), &shots, NO_OPTIONS).unwrap()[0];
    let expected = SPIRAL.point(&radii, 0, (samples - 31) as f64);
    assert!((scan.coordinates[1][samples - 31] as f64 - expected[1]).abs() < 2e-6);
    let late = TrajectoryOptions { center_sample: Some(-1.0), ..NO_OPTIONS };
    assert!(error_of(&SPIRAL.header(), &shots, late).contains("center_sample cannot be -1"));
    let mut discarded = spiral_shots(samples + 20);
    discarded[0].discard_pre = (samples + 10) as u16;
    assert!(error_of(&SPIRAL.header(), &discarded, NO_OPTIONS).contains("has no sample on the spiral"));
    discarded.swap(0, 1);
    assert!(error_of(&SPIRAL.header(), &discarded, NO_OPTIONS).contains("acquisition 1 has no samples"));
}

#[test]
fn stacks_of_spirals() {
    let spiral = Spiral { fov: 4.0, interleaves: 3, ..SPIRAL };
    let header = header_of("spiral", [16, 16, 8], [3, 8], &spiral.description());
    let (radii, samples) = (spiral.radii(), spiral.samples());
    let shots: Vec<_> =
        (0..24).map(|i| AcquisitionHeader { center_sample: 0, ..shot(samples, i % 3, i / 3) }).collect();
    check(&header, &shots, NO_OPTIONS, |i, s| {
        let [x, y, _] = spiral.point(&radii, i % 3, s as f64);
        [x, y, ((i / 3) as f64 - 4.0) / 8.0]
    });
}

#[test]
fn the_scale_of_a_spiral_is_never_guessed() {
    let spiral = Spiral { krmax: 1.5, ..SPIRAL };
    let (radii, samples) = (spiral.radii(), spiral.samples());
    let error = error_of(&spiral.header(), &spiral_shots(samples), NO_OPTIONS);
    assert!(error.contains("ends at 1.5 per cm") && error.contains("set the option spiral_extent"), "{error}");
    let with = |extent| TrajectoryOptions { spiral_extent: Some(extent), ..NO_OPTIONS };
    check(&spiral.header(), &spiral_shots(samples), with(SpiralExtent::Matrix), |i, s| {
        spiral.point(&radii, i, s as f64)
    });
    check(&spiral.header(), &spiral_shots(samples), with(SpiralExtent::FieldOfView), |i, s| {
        spiral.point(&radii, i, s as f64).map(|k| 0.75 * k)
    });
    let mut header = spiral.header();
    header.encodings[0].encoded.fov_mm = [0.0; 3];
    let error = error_of(&header, &spiral_shots(samples), with(SpiralExtent::FieldOfView));
    assert!(error.contains("the encoded field of view is 0 mm"), "{error}");
    let outside = Spiral { krmax: 2.5, ..SPIRAL };
    let error = error_of(&outside.header(), &spiral_shots(outside.samples()), with(SpiralExtent::FieldOfView));
    assert!(error.contains("set the option spiral_extent, or correct krmax_per_cm"), "{error}");
}

#[test]
fn spirals_that_cannot_be_computed_are_errors() {
    let shots = spiral_shots(SPIRAL.samples());
    let error =
        |description: &str| error_of(&header_of("spiral", [32, 32, 1], [4, 0], description), &shots, NO_OPTIONS);
    assert!(error("").contains("has no <trajectoryDescription> HargreavesVDS2000"));
    assert!(error("<identifier>Mine</identifier>").contains("\"Mine\": only HargreavesVDS2000 can be computed"));
    let text = SPIRAL.description();
    for name in [
        "interleaves",
        "SamplingTime_ns",
        "MaxGradient_G_per_cm",
        "MaxSlewRate_G_per_cm_per_s",
        "FOVCoeff_1_cm",
        "krmax_per_cm",
    ] {
        let renamed = text.replace(&format!("<name>{name}</name>"), "<name>unknown</name>");
        let missing = error(&renamed);
        assert!(missing.contains(&format!("HargreavesVDS2000 has no {name}")), "{missing}");
    }
    let negative = Spiral { krmax: -2.0, ..SPIRAL };
    assert!(
        error(&negative.description()).contains("krmax_per_cm of the trajectory description HargreavesVDS2000 is -2")
    );
    let third = text.replace("<value>4</value>", "<value>4.5</value>").replace("Long", "Double");
    assert!(error(&third).contains("interleaves of the trajectory description is 4.5"));
    let variable = text.replace("fov_coefficients</name><value>1", "fov_coefficients</name><value>2");
    assert!(error(&variable).contains("no valid FOVCoeff_2_cm"));
    let none = text.replace("fov_coefficients</name><value>1", "fov_coefficients</name><value>0");
    assert!(error(&none).contains("fov_coefficients of the trajectory description is 0"));
    let mut fifth = shots.clone();
    fifth[3].idx.kspace_encode_step_1 = 4;
    assert!(error_of(&SPIRAL.header(), &fifth, NO_OPTIONS).contains("kspace_encode_step_1 is 4, but"));
    // Two different sample times, and the option that chooses.
    let mut slow = shots.clone();
    slow.iter_mut().for_each(|shot| shot.sample_time_us = 5.0);
    let error = error_of(&SPIRAL.header(), &slow, NO_OPTIONS);
    assert!(error.contains("2.5 microseconds in the trajectory description and 5 in the acquisition"), "{error}");
    let radii = SPIRAL.radii();
    let options = TrajectoryOptions { sample_time_us: Some(2.5), ..NO_OPTIONS };
    check(&SPIRAL.header(), &slow, options, |i, s| SPIRAL.point(&radii, i, s as f64));
}

#[test]
fn variable_density_spirals_use_all_coefficients() {
    let text = SPIRAL.description().replace("fov_coefficients</name><value>1", "fov_coefficients</name><value>2");
    let header = header_of("spiral", [32, 32, 1], [4, 0], &(text + &double("FOVCoeff_2_cm", -2.0)));
    let shots = spiral_shots(SPIRAL.samples());
    let scan = &coordinates(&header, &shots, NO_OPTIONS).unwrap()[0];
    // Turns that are farther apart outside make the spiral shorter.
    assert!(scan.samples_per_shot[0] < SPIRAL.samples() * 9 / 10, "{}", scan.samples_per_shot[0]);
}

/// Returns the description of an echo-planar readout: ramps, flat top, samples and their time.
fn epi(up: i64, flat: i64, down: i64, delay: Option<i64>, samples: i64, dwell: f64) -> String {
    let delay = delay.map_or(String::new(), |delay| long("acqDelayTime", delay));
    let times = long("rampUpTime", up) + &long("flatTopTime", flat) + &long("rampDownTime", down);
    let samples = long("numSamples", samples) + &double("dwellTime", dwell);
    format!("<identifier>ConventionalEPI</identifier>{times}{delay}{samples}")
}

fn epi_shots(samples: usize) -> Vec<AcquisitionHeader> {
    let flags = |i: usize| if i % 2 == 1 { flag::bit(flag::REVERSE) } else { 0 };
    (0..32).map(|i| AcquisitionHeader { flags: flags(i), ..shot(samples, i, 0) }).collect()
}

/// Returns the integral of a trapezoid by sums of 0.001 microseconds.
fn trapezoid_area(ramps: [f64; 3], until: f64) -> f64 {
    let height = |t: f64| {
        let left = ramps[0] + ramps[1] + ramps[2] - t;
        let up = if ramps[0] > 0.0 { t / ramps[0] } else { 1.0 };
        let down = if ramps[2] > 0.0 { left / ramps[2] } else { 1.0 };
        if t < 0.0 || left < 0.0 {
            0.0
        } else {
            up.min(down).min(1.0)
        }
    };
    let steps = (until.max(0.0) * 1000.0).round() as usize;
    (0..steps).map(|i| height((i as f64 + 0.5) * 1e-3) * 1e-3).sum()
}

#[test]
fn echo_planar_lines_with_samples_on_the_ramps() {
    for (ramps, samples, dwell) in [([100.0, 60.0, 100.0], 48, 5.0), ([80.0, 140.0, 40.0], 40, 6.0)] {
        let [up, flat, down] = ramps.map(|t| t as i64);
        let header = header_of("epi", [32, 32, 1], [32, 0], &epi(up, flat, down, None, samples, dwell));
        let mut shots = epi_shots(samples as usize);
        shots.iter_mut().for_each(|shot| shot.sample_time_us = dwell as f32);
        let total: f64 = ramps.iter().sum();
        let start = 0.5 * (total - samples as f64 * dwell);
        let area = |t: f64| trapezoid_area(ramps, t);
        let (width, half) = (area(total - start) - area(start), 0.5 * area(total));
        let line: Vec<f64> = (0..samples).map(|s| (area(start + (s as f64 + 1.0) * dwell) - half) / width).collect();
        check(&header, &shots, NO_OPTIONS, |i, s| {
            [if i % 2 == 1 { -line[s] } else { line[s] }, (i as f64 - 16.0) / 32.0, 0.0]
        });
        // The gradient is 3 microseconds late.
        let late = TrajectoryOptions { gradient_delay_us: Some(3.0), ..NO_OPTIONS };
        let scan = &coordinates(&header, &shots, late).unwrap()[0];
        let expected = (area(start + 10.0 * dwell - 3.0) - half) / width;
        assert!((scan.coordinates[0][9] as f64 - expected).abs() < 2e-6);
    }
}

#[test]
fn echo_planar_lines_on_a_flat_top_and_in_volumes() {
    // Gadgetron: without a flat top time, the gradient is as long as the readout.
    let header = header_of("epi", [16, 16, 4], [16, 4], &epi(0, 0, 0, None, 16, 2.5));
    let shots: Vec<_> = (0..64).map(|i| shot(16, i % 16, i / 16)).collect();
    check(&header, &shots, NO_OPTIONS, |i, s| {
        [(s as f64 + 1.0 - 8.0) / 16.0, ((i % 16) as f64 - 8.0) / 16.0, ((i / 16) as f64 - 2.0) / 4.0]
    });
    // As Cartesian lines, samples are at the positions of the encoded matrix.
    let cartesian = TrajectoryOptions { kind: Some(HeaderTrajectoryKind::Cartesian), ..NO_OPTIONS };
    let scan = &coordinates(&header, &shots, cartesian).unwrap()[0];
    assert_eq!(scan.coordinates[0][..2], [-0.5, -7.0 / 16.0]);
}

#[test]
fn echo_planar_lines_that_the_header_leaves_open_are_errors() {
    let error = |description: &str, options| {
        let mut shots = epi_shots(48);
        shots.iter_mut().for_each(|shot| shot.sample_time_us = 5.0);
        error_of(&header_of("epi", [32, 32, 1], [32, 0], description), &shots, options)
    };
    assert!(error("", NO_OPTIONS).contains("has no <trajectoryDescription> ConventionalEPI"));
    let delayed = epi(100, 60, 100, Some(30), 48, 5.0);
    let text = error(&delayed, NO_OPTIONS);
    assert!(text.contains("acqDelayTime") && text.contains("30 microseconds") && text.contains("after 10"), "{text}");
    let header = header_of("epi", [32, 32, 1], [32, 0], &delayed);
    let mut shots = epi_shots(48);
    shots.iter_mut().for_each(|shot| shot.sample_time_us = 5.0);
    let ramps = [100.0, 60.0, 100.0];
    // The samples of the option's time; Gadgetron's are in the middle.
    let from = |start: f64| {
        let area = |t: f64| trapezoid_area(ramps, t);
        (area(start + 50.0) - 0.5 * area(260.0)) / (area(start + 240.0) - area(start))
    };
    for (options, start) in
        [(TrajectoryOptions { acquisition_delay_us: Some(12.0), ..NO_OPTIONS }, 12.0), (GADGETRON, 10.0)]
    {
        let scan = &coordinates(&header, &shots, options).unwrap()[0];
        assert!((scan.coordinates[0][9] as f64 - from(start)).abs() < 2e-6);
        // The last sample of a late readout is outside k-space, and discarded.
        assert_eq!(scan.samples_per_shot[0], if start == 12.0 { 47 } else { 48 });
    }
    assert!(error(&epi(50, 60, 50, None, 48, 5.0), NO_OPTIONS).contains("last longer than the gradient of 160"));
    assert!(error(&epi(-1, 60, 50, None, 48, 5.0), NO_OPTIONS).contains("rampUpTime of the trajectory description"));
    assert!(error(&epi(100, 60, 100, None, 47, 5.0), NO_OPTIONS).contains("has 48 samples, but"));
    assert!(error(&epi(100, 60, 100, None, 48, 4.0), NO_OPTIONS).contains("set the option sample_time_us"));
    let fraction = epi(100, 60, 100, None, 48, 5.0).replace("48", "47.5").replace("Long", "Double");
    assert!(error(&fraction, NO_OPTIONS).contains("numSamples of the trajectory description ConventionalEPI is 47.5"));
}

thread_local! {
    /// The log of this thread.
    static LOG: std::cell::RefCell<Vec<(log::Level, String)>> = const { std::cell::RefCell::new(Vec::new()) };
}

struct ThreadLog;

impl log::Log for ThreadLog {
    fn enabled(&self, _: &log::Metadata) -> bool {
        true
    }
    fn log(&self, record: &log::Record) {
        LOG.with(|log| log.borrow_mut().push((record.level(), record.args().to_string())));
    }
    fn flush(&self) {}
}

/// Returns the warnings while these acquisitions become scans.
fn logged(header: &Header, shots: &[AcquisitionHeader], options: TrajectoryOptions) -> Vec<String> {
    let _ = log::set_logger(&ThreadLog).map(|()| log::set_max_level(log::LevelFilter::Info));
    LOG.with(|log| log.borrow_mut().clear());
    coordinates(header, shots, options).unwrap();
    LOG.with(|log| {
        log.borrow().iter().filter(|entry| entry.0 == log::Level::Warn).map(|entry| entry.1.clone()).collect()
    })
}

#[test]
fn the_log_names_each_trajectory_once() {
    let header = header_of("radial", [32, 32, 1], [48, 0], "");
    let shots: Vec<_> = (0..96)
        .map(|i| {
            let mut shot = shot(32, i % 48, 0);
            shot.idx.repetition = (i / 48) as u16;
            shot
        })
        .collect();
    let expected =
        "trajectory from the header: radial, 48 spokes over 180 degrees, the first at 180; 32 samples across \
                    k-space, its centre at 16, by Gadgetron's conventions";
    assert_eq!(logged(&header, &shots, GADGETRON), [expected]);
    let shots = spiral_shots(SPIRAL.samples());
    let text = &logged(&SPIRAL.header(), &shots, NO_OPTIONS)[0];
    let samples = SPIRAL.samples();
    let expected = format!("spiral (HargreavesVDS2000), 4 interleaves of {samples} samples over -360 degrees");
    assert!(text.contains(&expected), "{text}");
}

#[test]
fn poor_images_are_warnings() {
    // One more warning names the trajectory.
    let warnings = |header: &Header, shots: &[AcquisitionHeader]| -> Vec<String> {
        let all = logged(header, shots, NO_OPTIONS);
        all.into_iter().filter(|text| !text.starts_with("trajectory from the header: ")).collect()
    };
    let complete = spiral_shots(SPIRAL.samples());
    assert_eq!(warnings(&SPIRAL.header(), &complete), [""; 0]);
    // The spiral is not complete, or its field of view may be Gadgetron's.
    let short = warnings(&SPIRAL.header(), &spiral_shots(SPIRAL.samples() / 2));
    assert!(short[0].contains("has 627 in acquisition 0") && short[0].contains("will be blurred"), "{short:?}");
    let text = SPIRAL.description().replace("fov_coefficients</name><value>1", "fov_coefficients</name><value>2");
    let header = header_of("spiral", [32, 32, 1], [4, 0], &(text + &double("FOVCoeff_2_cm", -2.0)));
    assert!(warnings(&header, &complete)[0].contains("of which Gadgetron reads the first only"));
    // Echo-planar lines in both directions, and off the centre.
    let header = header_of("epi", [32, 32, 1], [32, 0], &epi(100, 60, 100, None, 48, 5.0));
    let mut shots = epi_shots(48);
    for shot in &mut shots {
        (shot.sample_time_us, shot.position, shot.read_dir) = (5.0, [0.0, 20.0, 0.0], [0.0, 1.0, 0.0]);
        (shot.phase_dir, shot.slice_dir) = ([1.0, 0.0, 0.0], [0.0, 0.0, 1.0]);
    }
    let both = warnings(&header, &shots);
    assert!(both[0].contains("echo-planar lines in both directions") && both[1].contains("20 mm off"), "{both:?}");
    shots.iter_mut().for_each(|shot| (shot.flags, shot.position) = (0, [0.0; 3]));
    assert_eq!(warnings(&header, &shots), [""; 0]);
}
