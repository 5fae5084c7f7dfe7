//! The k-space of phantoms with off-resonance and decay, compared with closed-form results.

mod common;

use common::*;
use recon::phantom::{CoilModel, Ellipsoid, Phantom};
use recon::simulated_scan::{phantom_kspace, subdivision};
use recon::trajectory::SpokeOrder;
use recon::{Complex, Device, ErrorKind, Geometry, Options, Trajectory};
use std::f64::consts::TAU;

/// Relative error with 4 boxes per voxel and axis in 2D, and 2 in 3D.
const BOUND: f64 = 1e-3;

struct Case {
    phantom: Phantom,
    dims: Vec<usize>,
    trajectory: Trajectory,
    times: Vec<f64>,
    coils: CoilModel,
}

fn cases(random: &mut Random) -> Vec<Case> {
    let case = |phantom: Phantom, dims: &[usize], trajectory: Trajectory, start: f64| {
        let per_shot = trajectory.samples_per_shot();
        let times = (0..trajectory.samples()).map(|m| start + 2e-5 * (m % per_shot) as f64).collect();
        let coils = CoilModel::ring(3, dims.len()).unwrap();
        Case { phantom, dims: dims.to_vec(), trajectory, times, coils }
    };
    vec![
        case(Phantom::shepp_logan_2d(), &[32, 31], Trajectory::spiral(3, 700, 5.0, 1.0).unwrap(), 0.0),
        case(
            Phantom::shepp_logan_2d(),
            &[33, 28],
            Trajectory::radial2d(40, 60, SpokeOrder::GoldenAngle).unwrap(),
            0.01 * random.uniform(),
        ),
        case(Phantom::shepp_logan_3d(), &[16, 18, 15], Trajectory::radial3d(150, 32).unwrap(), 0.002),
    ]
}

/// Compares the phantom with these maps of each voxel's position with `wanted`, for all coils and for one.
fn check(
    case: &Case,
    maps: [Option<&dyn Fn([f64; 3]) -> f64>; 2],
    wanted: impl Fn(Option<&CoilModel>) -> Vec<Complex<f64>>,
    bound: f64,
    what: &str,
) {
    let axes = case.trajectory.axes();
    let r = voxels(&case.dims);
    let map = |of: &dyn Fn([f64; 3]) -> f64| -> Vec<f64> {
        (0..r[0].len()).map(|i| of([r[0][i], r[1][i], r.get(2).map_or(0.0, |z| z[i])])).collect()
    };
    let [field, decay] = maps.map(|of| of.map(map));
    let mut geometry = Geometry::new(&case.dims, &axes);
    (geometry.field_map, geometry.decay_map) = (field.as_deref(), decay.as_deref());
    geometry.times = Some(&case.times);
    for coils in [None, Some(&case.coils)] {
        let boxes = subdivision(case.dims.len());
        let found = phantom_kspace(&case.phantom, &geometry, coils, boxes, &Options::default()).unwrap();
        let error = distance(&found, &wanted(coils));
        println!("{what}, {:?}, coils {}: {error:.1e}", case.dims, coils.is_some());
        assert!(error < bound, "{what}: {error} in {:?}", case.dims);
    }
}

#[test]
fn maps_with_a_k_space_in_closed_form() {
    let mut random = Random::fresh();
    println!("seed {}", random.seed);
    for case in cases(&mut random) {
        let analytic =
            |axes: &[&[f64]], coils: Option<&CoilModel>| case.phantom.kspace(&case.dims, axes, coils, 0).unwrap();
        let own = case.trajectory.axes();
        let times_factor = |coils: Option<&CoilModel>, of: &dyn Fn(f64) -> Complex<f64>| -> Vec<Complex<f64>> {
            let samples = case.times.len();
            analytic(&own, coils).iter().enumerate().map(|(i, z)| z * of(case.times[i % samples])).collect()
        };
        check(&case, [Some(&|_| 0.0), None], |coils| analytic(&own, coils), BOUND, "zeros");
        let (hz, rate) = (400.0 * random.uniform(), 60.0 * (random.uniform() + 0.5));
        let phase = |t: f64| Complex::cis(-TAU * hz * t);
        check(&case, [Some(&|_| hz), None], |coils| times_factor(coils, &phase), BOUND, "one frequency");
        let falling = |t: f64| Complex::new((-rate * t).exp(), 0.0);
        check(&case, [None, Some(&|_| rate)], |coils| times_factor(coils, &falling), BOUND, "one rate");
        let both = |t: f64| phase(t) * falling(t);
        check(&case, [Some(&|_| hz), Some(&|_| rate)], |coils| times_factor(coils, &both), BOUND, "both");
        // A field f = g.r measures k + g t.
        let g = [0, 1, 2].map(|_| 4.0 * (random.uniform() - 0.5));
        let linear = |[x, y, z]: [f64; 3]| g[0] * x + g[1] * y + g[2] * z;
        let moved: Vec<Vec<f64>> =
            own.iter().zip(g).map(|(k, g)| k.iter().zip(&case.times).map(|(k, t)| k + g * t).collect()).collect();
        check(&case, [Some(&linear), None], |coils| analytic(&slices(&moved), coils), 2.0 * BOUND, "a gradient");
    }
}

/// Checks that the error decreases with the square of the number of boxes, with coils and with rotated overlapping
/// shapes.
#[test]
fn more_boxes_are_nearer() {
    let mut random = Random::fresh();
    let mut shapes = vec![];
    for _ in 0..4 {
        let mut some = |low: f64, high: f64| low + (high - low) * (random.uniform() + 0.5).clamp(0.0, 1.0);
        shapes.push(Ellipsoid {
            density: some(-1.0, 1.0),
            centre: [some(-0.4, 0.4), some(-0.4, 0.4), 0.0],
            semi_axes: [some(0.1, 0.4), some(0.1, 0.4), 1.0],
            angles: [some(0.0, 3.0), 0.0, 0.0],
        });
    }
    let dims = [24, 26];
    let trajectory = Trajectory::spiral(2, 800, 6.0, 1.0).unwrap();
    let (axes, times) = (trajectory.axes(), vec![0.0; trajectory.samples()]);
    let zeros = vec![0.0; dims.iter().product()];
    for phantom in [Phantom::new(2, shapes).unwrap(), Phantom::shepp_logan_2d()] {
        let coils = CoilModel::ring(2, 2).unwrap();
        let geometry = Geometry::new(&dims, &axes).field_map(&zeros, &times);
        let exact = phantom.kspace(&dims, &axes, Some(&coils), 0).unwrap();
        let errors = [1, 2, 4, 8].map(|boxes| {
            let found = phantom_kspace(&phantom, &geometry, Some(&coils), boxes, &Options::default()).unwrap();
            distance(&found, &exact)
        });
        println!("seed {}: {errors:?}", random.seed);
        assert!(errors[3] < errors[1] / 6.0, "{errors:?}, seed {}", random.seed);
    }
}

/// Checks that without maps it is the analytic k-space, that threads change no bit, and that a curved map gives the
/// result of finer boxes.
#[test]
fn no_maps_threads_and_curved_maps() {
    let mut random = Random::fresh();
    let dims = [30, 32];
    let trajectory = Trajectory::spiral(2, 600, 6.0, 1.0).unwrap();
    let axes = trajectory.axes();
    let phantom = Phantom::shepp_logan_2d();
    let options = Options { device: Device::Cpu, ..Options::default() };
    let plain = phantom_kspace(&phantom, &Geometry::new(&dims, &axes), None, 4, &options).unwrap();
    assert!(plain == phantom.kspace(&dims, &axes, None, 1).unwrap());
    let times: Vec<f64> = (0..1200).map(|m| 3e-5 * (m % 600) as f64).collect();
    let (a, b) = (0.2 + 0.1 * random.uniform(), TAU * random.uniform());
    let field: Vec<f64> =
        (0..960).map(|i| 60.0 * (a * (i % 30) as f64 + b).sin() * (a * (i / 30) as f64).cos()).collect();
    let geometry = Geometry::new(&dims, &axes).field_map(&field, &times);
    let of = |boxes, threads| {
        phantom_kspace(&phantom, &geometry, None, boxes, &Options { threads, ..options.clone() }).unwrap()
    };
    let one = of(4, 1);
    assert!(one == of(4, 3), "threads change bits");
    let error = distance(&one, &of(8, 0));
    assert!(error < 1e-3, "{error}, seed {}", random.seed);
    assert!(distance(&one, &plain) > 0.1, "the field changes nothing");
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let dims = [16, 16];
    let k = vec![0.1; 10];
    let (axes, times, map) = ([&k[..], &k[..]], vec![0.01; 10], vec![1.0; 256]);
    let options = Options::default();
    let phantom = Phantom::shepp_logan_2d();
    let good = Geometry::new(&dims, &axes).field_map(&map, &times);
    let expect = |phantom: &Phantom, geometry: &Geometry<'_, f64>, boxes: usize, kind: ErrorKind, words: &str| {
        let error = phantom_kspace(phantom, geometry, None, boxes, &options).unwrap_err();
        assert!(error.kind() == kind && error.message().contains(words), "{error:?}");
    };
    assert!(phantom_kspace(&phantom, &good, None, 1, &options).is_ok());
    expect(&phantom, &good, 0, ErrorKind::InvalidSize, "boxes");
    let without_times = Geometry { times: None, ..good.clone() };
    expect(&phantom, &without_times, 1, ErrorKind::InvalidArgument, "without times");
    let short = Geometry { field_map: Some(&map[1..]), ..good.clone() };
    expect(&phantom, &short, 1, ErrorKind::SizeMismatch, "off-resonance");
    let odd = [&[f64::NAN], &map[1..]].concat();
    expect(&phantom, &Geometry { field_map: Some(&odd), ..good.clone() }, 1, ErrorKind::NotFinite, "voxel 0");
    let negative = [&[-1.0], &map[1..]].concat();
    let falls = Geometry { decay_map: Some(&negative), ..good.clone() };
    expect(&phantom, &falls, 1, ErrorKind::InvalidArgument, "negative");
    let far = [&[0.7], &k[1..]].concat();
    let outside = Geometry { coordinates: vec![&k, &far], ..good.clone() };
    expect(&phantom, &outside, 1, ErrorKind::CoordinateOutOfRange, "0.7");
    let large = Ellipsoid { semi_axes: [1.2, 0.5, 0.5], ..phantom.shapes()[0] };
    expect(&Phantom::new(2, vec![large]).unwrap(), &good, 1, ErrorKind::InvalidArgument, "field of view");
    let listed = Geometry { voxels: Some(vec![&map, &map]), ..good.clone() };
    expect(&phantom, &listed, 1, ErrorKind::Unsupported, "list of voxels");
    expect(&Phantom::shepp_logan_3d(), &good, 1, ErrorKind::SizeMismatch, "dimensions");
    let coils = CoilModel::ring(2, 3).unwrap();
    let error = phantom_kspace(&phantom, &good, Some(&coils), 1, &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SizeMismatch);
}
