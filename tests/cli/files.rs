//! Files that could be read in more than one way cause an error or a warning.

use crate::common::Random;
use crate::io::tests::write_cfl;
use crate::io::{read_cfl, Dataset, ScanIndex};
use crate::raw_file::RawAcquisition;
use crate::{distance, noise, only_image, raw_file, read_images, scan, space, with_lock, write_dataset, TempDir};
use num_complex::Complex;
use recon::scan::{EncodingLimits, EncodingSpace, Header, HeaderEncoding, TrajectoryKind};
use recon::trajectory::SpokeOrder;
use recon::Trajectory;
use std::fs;

/// Returns an array with exchanged axes: axis i of the result is axis `order[i]` of `data`.
fn permuted(dims: &[usize], data: &[Complex<f32>], order: &[usize]) -> (Vec<usize>, Vec<Complex<f32>>) {
    let new: Vec<usize> = order.iter().map(|&axis| dims[axis]).collect();
    let stride = |axis: usize| dims[..axis].iter().product::<usize>();
    let value = |i: usize| {
        let mut rest = i;
        let at: usize = order
            .iter()
            .zip(&new)
            .map(|(&axis, &n)| {
                let here = rest % n;
                rest /= n;
                here * stride(axis)
            })
            .sum();
        data[at]
    };
    (new.clone(), (0..data.len()).map(value).collect())
}

/// Returns all orders of n axes, the unchanged order first.
fn orders(n: usize) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for _ in 0..n {
        all = all
            .into_iter()
            .flat_map(|o: Vec<usize>| {
                (0..n).filter(|i| !o.contains(i)).map(|i| [o.clone(), vec![i]].concat()).collect::<Vec<_>>()
            })
            .collect();
    }
    all
}

/// Formats sizes without trailing ones, as in messages.
fn format_dims(dims: &[usize]) -> String {
    let kept = dims.iter().rposition(|&n| n != 1).map_or(1, |last| last + 1);
    format!("{:?}", &dims[..kept])
}

/// Writes k-space [1, samples, shots, coils] to k.cfl and its trajectory [3, samples, shots] to k_traj.cfl, for an
/// image of 24 x 20 voxels.
fn bart(dir: &TempDir, random: &mut Random) -> [usize; 3] {
    let pick = |random: &mut Random, low: usize, count: usize| low + ((random.uniform() + 0.5) * count as f64) as usize;
    let (samples, shots, coils) = (2 * pick(random, 20, 10), pick(random, 10, 9), pick(random, 2, 5));
    dir.ok(&format!(
        "simulate --matrix 24,20 --samples {samples} --shots {shots} --coils {coils} --maps maps.cfl -o k.cfl"
    ));
    [samples, shots, coils]
}

#[test]
fn bart_arrays_in_the_wrong_order_are_errors() {
    let mut random = Random::fresh();
    println!("seed {}", random.seed);
    let dir = TempDir::new();
    let [samples, shots, coils] = bart(&dir, &mut random);
    let (k, t) = (read_cfl(dir.path("k.cfl")).unwrap(), read_cfl(dir.path("k_traj.cfl")).unwrap());
    let (k_dims, t_dims) = ([1, samples, shots, coils], [3, samples, shots]);
    let both = "grid a.cfl --trajectory t.cfl --matrix 24,20 -o x.h5";
    dir.ok("grid k.cfl --trajectory k_traj.cfl --matrix 24,20 -o right.h5");

    write_cfl(dir.path("t.cfl"), &t_dims, &t.data).unwrap();
    for order in &orders(4)[1..] {
        let (dims, data) = permuted(&k_dims, &k.data, order);
        write_cfl(dir.path("a.cfl"), &dims, &data).unwrap();
        let names = ["a.cfl", "t.cfl", &format_dims(&dims), "samples", "shots"];
        dir.fails(1, both, &names);
    }
    // The message contains the BART command that helps.
    for (order, command) in [([0, 2, 1, 3], "bart transpose 1 2"), ([0, 1, 3, 2], "bart transpose 2 3")] {
        let (dims, data) = permuted(&k_dims, &k.data, &order);
        write_cfl(dir.path("a.cfl"), &dims, &data).unwrap();
        dir.fails(1, both, &[command, &format_dims(&dims), &format_dims(&t_dims)]);
    }
    // The same number of values, with different sizes.
    for dims in [vec![1, samples / 2, 2 * shots, coils], vec![1, samples * shots, 1, coils]] {
        write_cfl(dir.path("a.cfl"), &dims, &k.data).unwrap();
        dir.fails(1, both, &[&format_dims(&dims), &format_dims(&t_dims)]);
    }
    write_cfl(dir.path("a.cfl"), &[1, samples, shots, 1, coils], &k.data).unwrap();
    dir.fails(1, both, &["bart transpose 3 4"]);
    write_cfl(dir.path("a.cfl"), &[24, 20], &noise(480, random.seed)).unwrap();
    dir.fails(1, both, &["[24, 20]", "[1, samples, shots, coils]"]);

    write_cfl(dir.path("a.cfl"), &k_dims, &k.data).unwrap();
    for order in &orders(3)[1..] {
        let (dims, data) = permuted(&t_dims, &t.data, order);
        write_cfl(dir.path("t.cfl"), &dims, &data).unwrap();
        dir.fails(1, both, &["t.cfl", &format_dims(&dims), "[3, samples, shots]", "bart transpose"]);
    }
    for (components, remedy) in [(1, "bart join"), (2, "bart resize 0 3"), (4, "bart join")] {
        let points: Vec<_> =
            t.data.chunks_exact(3).flat_map(|p| [p[0], p[1], p[2], p[2]][..components].to_vec()).collect();
        write_cfl(dir.path("t.cfl"), &[components, samples, shots], &points).unwrap();
        dir.fails(1, both, &[&format_dims(&[components, samples, shots]), "[3, samples, shots]", remedy]);
    }
    // The samples of each shot as two frames.
    write_cfl(dir.path("t.cfl"), &[3, samples / 2, shots, 2], &t.data).unwrap();
    dir.fails(1, both, &["[3, samples, shots]", "bart slice"]);
}

#[test]
fn bart_trajectories_are_real() {
    let mut random = Random::fresh();
    println!("seed {}", random.seed);
    let dir = TempDir::new();
    bart(&dir, &mut random);
    let t = read_cfl(dir.path("k_traj.cfl")).unwrap();
    let line = "grid k.cfl --trajectory t.cfl --matrix 24,20";
    dir.ok("grid k.cfl --trajectory k_traj.cfl --matrix 24,20 -o right.h5");
    let right = only_image(&dir.path("right.h5")).data;
    let write = |f: &dyn Fn(Complex<f32>) -> Complex<f32>| {
        let data: Vec<_> = t.data.iter().map(|&z| f(z)).collect();
        write_cfl(dir.path("t.cfl"), &t.dims, &data).unwrap();
    };
    write(&|z| Complex::new(0.0, z.re));
    dir.fails(1, &format!("{line} -o x.h5"), &["t.cfl", "purely imaginary", "real", "bart scale"]);
    let part = (1e-4 + 0.5 * (random.uniform() + 0.5)) as f32;
    write(&|z| Complex::new(z.re, part * z.re));
    dir.fails(1, &format!("{line} -o x.h5"), &["t.cfl", "must be real", "bart creal"]);
    // One number that is not real.
    let mut one = t.clone();
    let at = ((random.uniform() + 0.5) * one.data.len() as f64) as usize;
    one.data[at].im = 1.0;
    write_cfl(dir.path("t.cfl"), &one.dims, &one.data).unwrap();
    dir.fails(1, &format!("{line} -o x.h5"), &["must be real"]);
    // Imaginary parts that are as small as rounding errors are accepted.
    write(&|z| Complex::new(z.re, 1e-7 * z.re));
    dir.ok(&format!("{line} -o a.h5"));
    assert_eq!(only_image(&dir.path("a.h5")).data, right);

    // Coordinates outside by rounding become the edge, which is at -12 for 24 voxels.
    let edge: Vec<usize> = (0..t.data.len()).filter(|i| t.data[*i].re.abs() == 12.0).collect();
    assert!(!edge.is_empty(), "no sample at the edge");
    write(&|z| if z.re.abs() == 12.0 { z * 1.000_000_2 } else { z });
    dir.ok(&format!("{line} -o b.h5"));
    let wide: Vec<_> = right.iter().map(|z| Complex::new(z.re as f64, z.im as f64)).collect();
    assert!(distance(&only_image(&dir.path("b.h5")).data, &wide) < 1e-5);
    write(&|z| if z.re.abs() == 12.0 { z * 1.000_1 } else { z });
    dir.fails(1, &format!("{line} -o x.h5"), &["outside the range"]);
}

#[test]
fn maps_in_the_wrong_order_are_errors() {
    let mut random = Random::fresh();
    println!("seed {}", random.seed);
    let dir = TempDir::new();
    let [_, _, coils] = bart(&dir, &mut random);
    let line = "cg k.cfl --trajectory k_traj.cfl --matrix 24,20 --iterations 2 -o";
    let maps = read_cfl(dir.path("maps.cfl")).unwrap();
    assert_eq!(maps.dims, [24, 20, 1, coils]);
    dir.ok(&format!("{line} right.h5 --maps maps.cfl"));
    for order in &orders(4)[1..] {
        let (dims, data) = permuted(&maps.dims, &maps.data, order);
        write_cfl(dir.path("a.cfl"), &dims, &data).unwrap();
        dir.fails(1, &format!("{line} x.h5 --maps a.cfl"), &["a.cfl", &format_dims(&dims), &format_dims(&maps.dims)]);
    }
    for (dims, remedy) in
        [(vec![24, 20, coils], "bart transpose 2 3"), (vec![24, 20, 1, 1, coils], "bart transpose 3 4")]
    {
        write_cfl(dir.path("a.cfl"), &dims, &maps.data).unwrap();
        dir.fails(1, &format!("{line} x.h5 --maps a.cfl"), &[&format_dims(&dims), remedy]);
    }
    // Two sets of maps, as from ESPIRiT, and coils along the wrong dimension.
    write_cfl(dir.path("a.cfl"), &[24, 20, 1, coils, 2], &[&maps.data[..], &maps.data].concat()).unwrap();
    let out = dir.run(&format!("{line} first.h5 --maps a.cfl"));
    assert!(out.status == Some(0) && out.stderr.contains("2 sets of maps"), "{out:?}");
    assert!(out.stderr.contains("100.0 % of the voxels") && out.stderr.contains("bart slice 4 0"), "{out:?}");
    assert_eq!(read_images(dir.path("first.h5"))[0].data, read_images(dir.path("right.h5"))[0].data);
    // A second set of zeros is not used.
    let zeros = vec![Complex::default(); maps.data.len()];
    write_cfl(dir.path("a.cfl"), &[24, 20, 1, coils, 2], &[&maps.data[..], &zeros].concat()).unwrap();
    dir.ok(&format!("{line} first.h5 --maps a.cfl"));
    // Maps of several slices.
    write_cfl(
        dir.path("a.cfl"),
        &[&[24, 20, 1, coils][..], &[1; 9], &[2]].concat(),
        &[&maps.data[..], &zeros].concat(),
    )
    .unwrap();
    dir.fails(1, &format!("{line} x.h5 --maps a.cfl"), &["bart slice 13 N", "--slice"]);
    write_cfl(dir.path("a.cfl"), &[24, 20, 1, 1, 1, 1, coils], &maps.data).unwrap();
    dir.fails(1, &format!("{line} x.h5 --maps a.cfl"), &["bart transpose 3 6"]);
    // Magnitudes of maps cause a warning.
    let magnitudes: Vec<_> = maps.data.iter().map(|z| Complex::new(z.norm(), 0.0)).collect();
    write_cfl(dir.path("a.cfl"), &maps.dims, &magnitudes).unwrap();
    let out = dir.run(&format!("{line} magnitude.h5 --maps a.cfl"));
    assert!(out.status == Some(0) && out.stderr.contains("a.cfl: the coil maps are real"), "{out:?}");
    // Initial images and anatomical references.
    write_cfl(dir.path("a.cfl"), &[20, 24], &noise(480, random.seed)).unwrap();
    for option in ["--initial a.cfl", "--prior anatomical --lambda 1e-3 --reference a.cfl"] {
        dir.fails(1, &format!("{line} x.h5 {option}"), &["a.cfl", "[20, 24, 1]", "[24, 20, 1]", "another order"]);
    }
}

/// Returns the XML header of one encoding.
fn xml(matrix: [usize; 3], trajectory: TrajectoryKind, steps: [Option<EncodingLimits>; 2]) -> String {
    let whole = EncodingSpace { matrix, fov_mm: matrix.map(|n| n as f32) };
    let encoding = HeaderEncoding { encoded: whole, recon: whole, trajectory, steps, ..Default::default() };
    Header { encodings: vec![encoding], ..Header::default() }.to_xml()
}

/// Returns the acquisitions of a trajectory. `numbers` converts the coordinates of a sample and the number of its shot
/// to the trajectory numbers of the file.
fn lines(k: &Trajectory, numbers: impl Fn(&[f32], usize) -> Vec<f32>) -> Vec<RawAcquisition> {
    let samples = k.samples_per_shot();
    let point = |m: usize| (0..k.ndim()).map(|axis| k.axis(axis)[m] as f32).collect::<Vec<_>>();
    let line = |shot: usize| {
        let trajectory: Vec<f32> =
            (shot * samples..(shot + 1) * samples).flat_map(|m| numbers(&point(m), shot)).collect();
        RawAcquisition {
            steps: [shot as u16, 0],
            dimensions: (trajectory.len() / samples) as u16,
            trajectory,
            data: noise(samples, shot as u64 + 1).iter().flat_map(|z| [z.re, z.im]).collect(),
            ..Default::default()
        }
    };
    (0..k.shots()).map(line).collect()
}

/// A file of raw data, and the result of reconstructing it.
struct RawDataCase {
    name: &'static str,
    header: String,
    acquisitions: Vec<RawAcquisition>,
    status: i32,
    /// Words on the error stream. An empty list means that the error stream is empty.
    words: &'static [&'static str],
}

const PLANE: [usize; 3] = [16, 16, 1];
const VOLUME: [usize; 3] = [12, 12, 8];

fn case(
    name: &'static str,
    header: String,
    acquisitions: Vec<RawAcquisition>,
    status: i32,
    words: &'static [&'static str],
) -> RawDataCase {
    RawDataCase { name, header, acquisitions, status, words }
}

fn limits(maximum: u16, center: u16) -> Option<EncodingLimits> {
    Some(EncodingLimits { minimum: 0, maximum, center })
}

/// Returns a header without encoding limits, for a stored trajectory.
fn stored(matrix: [usize; 3]) -> String {
    xml(matrix, TrajectoryKind::Other, [None, None])
}

fn spokes() -> Trajectory {
    Trajectory::radial2d(20, 32, SpokeOrder::Linear).unwrap()
}

fn kooshball() -> Trajectory {
    Trajectory::radial3d(60, 24).unwrap()
}

/// Returns the acquisitions of spokes whose trajectory is (kx, ky).
fn plain_spokes() -> Vec<RawAcquisition> {
    lines(&spokes(), |k, _| k.to_vec())
}

/// Sets the encoding steps of each acquisition.
fn with_steps(mut lines: Vec<RawAcquisition>, steps: impl Fn(u16) -> [u16; 2]) -> Vec<RawAcquisition> {
    lines.iter_mut().enumerate().for_each(|(i, line)| line.steps = steps(i as u16));
    lines
}

/// Reconstructs each file, and checks the exit status and the messages.
fn check_cases(cases: Vec<RawDataCase>) {
    let dir = TempDir::new();
    for RawDataCase { name, header, acquisitions, status, words } in cases {
        with_lock(|| raw_file::write(&dir.path("a.h5"), &header, &acquisitions));
        if status != 0 {
            dir.fails(status, "grid a.h5 -o x.h5", words);
            continue;
        }
        let out = dir.run("grid a.h5 -o x.h5");
        let warnings = out.stderr.matches('\n').count();
        assert!(out.status == Some(0) && warnings == usize::from(!words.is_empty()), "{name}: {out:?}");
        assert!(words.iter().all(|word| out.stderr.contains(word)), "{name}: {out:?}");
        assert!(only_image(&dir.path("x.h5")).data.iter().all(|z| z.is_finite()), "{name}");
        fs::remove_file(dir.path("x.h5")).unwrap();
    }
}

#[test]
fn ambiguous_trajectories() {
    let components_apart = plain_spokes().into_iter().map(|mut line| {
        let (x, y): (Vec<f32>, Vec<f32>) = line.trajectory.chunks_exact(2).map(|k| (k[0], k[1])).unzip();
        line.trajectory = [x, y].concat();
        line
    });
    let weighted = lines(&spokes(), |k, _| vec![k[0], k[1], k[0].hypot(k[1])]);
    let quarter = lines(&spokes(), |k, _| vec![k[0], k[1], 0.25]);
    let upper_half = lines(&kooshball(), |k, _| vec![k[0], k[1], k[2].abs()]);
    let radians = lines(&spokes(), |k, _| k.iter().map(|k| k * std::f32::consts::TAU).collect());
    let short = xml(PLANE, TrajectoryKind::Radial, [limits(39, 20), limits(0, 0)]);
    check_cases(vec![
        case("right", stored(PLANE), plain_spokes(), 0, &[]),
        case("weights", stored(PLANE), weighted, 0, &[]),
        case("kz read as weights", stored(PLANE), quarter, 0, &["is constant along each shot", "kz"]),
        case(
            "all kx of a shot before ky",
            stored(PLANE),
            components_apart.collect(),
            1,
            &["kx and ky are nearly the same", "store the 2 trajectory numbers of each sample together"],
        ),
        case("weights read as kz", stored(VOLUME), upper_half, 0, &["never negative: it is read as kz", "last of 4"]),
        case("cut short", short, plain_spokes(), 0, &["20 of the 40 shots", "cut short"]),
        case("radians", stored(PLANE), radians, 1, &["acquisition 0", "radians by 2 pi"]),
    ]);
}

#[test]
fn ambiguous_counters() {
    let grid: Vec<RawAcquisition> =
        (0..16).map(|y| RawAcquisition { steps: [y, 0], ..cartesian_line(16, y) }).collect();
    let cartesian = || xml(PLANE, TrajectoryKind::Cartesian, [limits(15, 8), None]);
    check_cases(vec![
        case("whole grid", cartesian(), grid.clone(), 0, &[]),
        case(
            "partitions in a plane",
            stored(PLANE),
            with_steps(plain_spokes(), |i| [i, i % 4]),
            0,
            &["kspace_encode_step_2 differs", "one voxel along z"],
        ),
        case(
            "a stack without its partitions",
            stored(VOLUME),
            plain_spokes(),
            1,
            &["kspace_encode_step_2 is 0 in all 20 acquisitions", "8 voxels along z"],
        ),
        case("two partitions", stored([16, 16, 2]), with_steps(plain_spokes(), |i| [i / 2, i % 2]), 0, &[]),
        case(
            "constant counters",
            cartesian(),
            with_steps(grid.clone(), |_| [0, 0]),
            1,
            &["kspace_encode_step_1 is 0 in all 16 acquisitions", "16 voxels along y"],
        ),
        case(
            "lines in pairs",
            cartesian(),
            with_steps(grid.clone(), |i| [4 + i / 2, 0]),
            0,
            &["16 acquisitions of an image have 8 different counters"],
        ),
        case(
            "partitions without z",
            cartesian(),
            with_steps(grid.clone(), |i| [i, i % 2]),
            1,
            &["kspace_encode_step_2 differs", "number of partitions"],
        ),
        case(
            "half of k-space",
            cartesian(),
            grid[8..].to_vec(),
            0,
            &["kspace_encode_step_1 runs from 8 to 15", "one half of k-space along y is missing"],
        ),
    ]);
}

#[test]
fn inconsistent_matrices() {
    let dir = TempDir::new();
    // All samples have the same kz, at the edge, where the plan itself does not warn.
    let edge = lines(&kooshball(), |k, _| vec![k[0], k[1], -0.5]);
    with_lock(|| raw_file::write(&dir.path("a.h5"), &stored(VOLUME), &edge));
    let out = dir.run("fhd a.h5 -o x.h5");
    let line = "recon: warn: k along z is -0.5 in all samples, but the encoded matrix has 8 voxels";
    assert!(out.status == Some(0) && out.stderr.starts_with(line), "{out:?}");

    // The reconstructed space of the header does not fit the encoded space.
    for (recon, words) in [
        (space([32, 16, 1], [32.0, 16.0, 1.0]), "along x, 32 mm, is larger than the encoded one, 16 mm"),
        (space([4, 16, 1], [16.0, 16.0, 1.0]), "4.000 times as long along x"),
    ] {
        let data = noise(spokes().samples(), 9);
        write_dataset(dir.path("a.h5"), &scan(&spokes(), space(PLANE, [16.0, 16.0, 1.0]), recon, 1, data));
        let out = dir.run("grid a.h5 -o x.h5");
        assert!(out.status == Some(0) && out.stderr.contains(words), "{out:?}");
        dir.ok("grid a.h5 --matrix encoded -o x.h5");
    }
}

/// Returns a line of a Cartesian scan, without a trajectory.
fn cartesian_line(samples: usize, seed: u16) -> RawAcquisition {
    let data = noise(samples, seed as u64 + 1).iter().flat_map(|z| [z.re, z.im]).collect();
    RawAcquisition { data, ..Default::default() }
}

/// Returns scans of three slices with slightly different trajectories, so that each needs its own plan.
fn slices(scale: f64) -> Dataset {
    let mut all: Option<Dataset> = None;
    for slice in 0..3 {
        let k = Trajectory::radial2d(30, 64, SpokeOrder::Linear).unwrap();
        let shrunk = |axis: usize| k.axis(axis).iter().map(|k| k * scale * (1.0 - 0.1 * slice as f64)).collect();
        let k = Trajectory::new(vec![shrunk(0), shrunk(1)], 64).unwrap();
        let whole = space([32, 32, 1], [32.0, 32.0, 1.0]);
        let mut one = scan(&k, whole, whole, 2, noise(2 * k.samples(), slice as u64 + 1));
        one.scans[0].index = ScanIndex { slice, ..ScanIndex::default() };
        match &mut all {
            Some(all) => all.scans.append(&mut one.scans),
            None => all = Some(one),
        }
    }
    all.unwrap()
}

#[test]
fn warnings_of_several_plans_come_once() {
    let dir = TempDir::new();
    write_dataset(dir.path("right.h5"), &slices(1.0));
    write_dataset(dir.path("a.h5"), &slices(1.0 / 32.0));
    for command in ["grid", "fhd", "cg --iterations 2 --no-maps", "cg --iterations 2 --no-maps --weighted"] {
        dir.ok(&format!("{command} right.h5 -o x.h5"));
        // Each slice has plans for the image, for maps and for weights, and the warning comes once.
        let out = dir.run(&format!("{command} a.h5 -o x.h5"));
        assert!(out.status == Some(0) && out.stderr.matches('\n').count() == 1, "{out:?}");
        assert!(out.stderr.starts_with("recon: warn: ") && out.stderr.contains("cycles per voxel"), "{out:?}");
        assert_eq!(read_images(dir.path("x.h5")).len(), 3);
        dir.ok(&format!("--quiet {command} a.h5 -o x.h5"));
    }
    let mut command = dir.command("--quiet grid a.h5 -o x.h5");
    let out = with_lock(|| command.env("RUST_LOG", "warn").output()).unwrap();
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
    // A BART trajectory in cycles per voxel is divided by the matrix twice.
    dir.ok("simulate --matrix 32,32 -o k.cfl");
    let t = read_cfl(dir.path("k_traj.cfl")).unwrap();
    let data: Vec<_> = t.data.iter().map(|z| z / 32.0).collect();
    write_cfl(dir.path("t.cfl"), &t.dims, &data).unwrap();
    let out = dir.run("grid k.cfl --trajectory t.cfl --matrix 32,32 -o x.h5");
    assert!(out.status == Some(0) && out.stderr.contains("size twice"), "{out:?}");
}
