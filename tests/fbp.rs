//! Filtered backprojection: compared with exact sums with ramp weights and with gridding of the analytic phantom; its
//! filters, coils, and invalid arguments.

mod common;

use common::transforms::radial;
use common::*;
use recon::phantom::Phantom;
use recon::trajectory::SpokeOrder;
use recon::{
    Complex, Density, Device, ErrorKind, Filter, Geometry, Method, Options, Plan, Real, Trajectory, VoxelBasis,
};

const FILTERS: [Filter; 5] = [Filter::RamLak, Filter::SheppLogan, Filter::Cosine, Filter::Hamming, Filter::Hann];

fn options() -> Options {
    Options { device: Device::Cpu, threads: 2, ..Options::default() }
}

fn plan<T: Real>(dims: &[usize], k: &[Vec<T>]) -> Plan<T> {
    Plan::new(&Geometry::new(dims, &slices(k)), &options()).unwrap()
}

fn fbp<T: Real>(plan: &Plan<T>, filter: Filter, data: &[Complex<T>]) -> Vec<Complex<T>> {
    let mut image = poisoned(plan.image_len());
    plan.fbp(filter, data, &mut image).unwrap();
    image
}

fn narrowed<T: Real>(list: &[Vec<f64>]) -> Vec<Vec<T>> {
    list.iter().map(|k| k.iter().map(|&k| T::of(k)).collect()).collect()
}

/// Returns the samples of the head phantom.
fn head(k: &[Vec<f64>], n: usize) -> Vec<Complex<f64>> {
    Phantom::shepp_logan_2d().kspace(&[n, n], &slices(k), None, 2).unwrap()
}

/// Returns the error between a result and the truth in decibels.
fn decibels<T: Real>(image: &[Complex<T>], truth: &[f64]) -> f64 {
    let truth: Vec<Complex<f64>> = truth.iter().map(|&t| Complex::new(t, 0.0)).collect();
    -20.0 * distance(image, &truth).log10()
}

#[test]
fn smooth_images_are_those_of_exact_sums_with_ramp_weights() {
    let mut random = Random::fresh();
    for (n, spokes, samples) in [(32, 60, 64), (33, 61, 80), (24, 48, 49)] {
        let k = radial(spokes, samples);
        let data = head(&k, n);
        let weights = plan(&[n, n], &k).density(Density::Ramp).unwrap();
        let exact = Options { method: Method::Exact, ..options() };
        let exact = Plan::new(&Geometry::new(&[n, n], &slices(&k)).weights(&weights), &exact).unwrap();
        let mut expected = poisoned(n * n);
        exact.weighted_adjoint(&data, &mut expected).unwrap();
        let error = distance(&fbp(&plan(&[n, n], &k), Filter::RamLak, &data), &expected);
        assert!(error < 0.03, "{n}, {spokes} spokes of {samples}: {error}");
        // Data with equal energy at all frequencies: at 0.5 cycles per voxel linear interpolation leaves 0.05 to 0.12.
        let data = random.complexes::<f64>(k[0].len());
        exact.weighted_adjoint(&data, &mut expected).unwrap();
        let error = distance(&fbp(&plan(&[n, n], &k), Filter::RamLak, &data), &expected);
        println!("{n}: {error}");
        assert!(error < 0.1, "{n}, random data: {error}");
    }
}

/// Checks the scans of Schiwietz et al. 2006, with 504 and 248 spokes.
#[test]
fn the_phantom_is_as_good_as_gridded() {
    let n = 256;
    let truth = Phantom::shepp_logan_2d().image(&[n, n], 4).unwrap();
    for (spokes, order) in [(504, SpokeOrder::Linear), (248, SpokeOrder::Linear), (248, SpokeOrder::GoldenAngle)] {
        let t = Trajectory::radial2d(spokes, 512, order).unwrap();
        let k: Vec<Vec<f64>> = (0..2).map(|a| t.axis(a).to_vec()).collect();
        let (data, k) = (head(&k, n), narrowed::<f32>(&k));
        let data: Vec<Complex<f32>> = data.iter().map(|z| Complex::new(z.re as f32, z.im as f32)).collect();
        let density = plan(&[n, n], &k).density(Density::Ramp).unwrap();
        let weighted = Plan::new(&Geometry::new(&[n, n], &slices(&k)).weights(&density), &options()).unwrap();
        let mut gridded = poisoned(n * n);
        weighted.grid(&data, &mut gridded).unwrap();
        let by_grid = decibels(&gridded, &truth);
        let found = FILTERS.map(|filter| decibels(&fbp(&weighted, filter, &data), &truth));
        say(&format!("{spokes} spokes, {order:?}: gridding {by_grid:.2} dB, backprojection {found:.2?}"));
        assert!(found[0] > by_grid - 1.0, "{spokes} spokes: {found:?} dB and {by_grid} by gridding");
    }
}

#[test]
fn filters_are_windows_over_the_largest_k() {
    let mut random = Random::fresh();
    let (n, k) = (20, radial(31, 40));
    let plan = plan(&[n, n], &k);
    let data = random.complexes::<f64>(k[0].len());
    // Half a step beyond the outermost sample.
    let reach = 0.5 + 0.5 / 40.0;
    for filter in FILTERS {
        let window = |m: usize| {
            let a = std::f64::consts::PI * k[0][m].hypot(k[1][m]) / reach;
            match filter {
                Filter::RamLak => 1.0,
                Filter::SheppLogan if a == 0.0 => 1.0,
                Filter::SheppLogan => (a / 2.0).sin() / (a / 2.0),
                Filter::Cosine => (a / 2.0).cos(),
                Filter::Hamming => 0.54 + 0.46 * a.cos(),
                Filter::Hann => 0.5 + 0.5 * a.cos(),
            }
        };
        let windowed: Vec<Complex<f64>> = data.iter().enumerate().map(|(m, d)| d * window(m)).collect();
        let error = distance(&fbp(&plan, filter, &data), &fbp(&plan, Filter::RamLak, &windowed));
        assert!(error < 1e-9, "{filter:?}: {error}");
    }
}

#[test]
fn coils_are_combined_by_their_maps() {
    let mut random = Random::fresh();
    let (dims, coils, frames) = ([18, 22], 3, 2);
    let k = narrowed::<f32>(&radial(27, 44));
    let (samples, voxels) = (k[0].len(), dims[0] * dims[1]);
    let (maps, data) = (random.complexes::<f32>(voxels * coils), random.complexes::<f32>(samples * coils * frames));
    let lists = slices(&k);
    let mut geometry = Geometry::new(&dims, &lists).coils(coils);
    geometry.frames = frames;
    geometry.basis = VoxelBasis::Box;
    let apart = fbp(&Plan::new(&geometry, &options()).unwrap(), Filter::Cosine, &data);
    let combined = fbp(&Plan::new(&geometry.coil_maps(&maps), &options()).unwrap(), Filter::Cosine, &data);
    let expected: Vec<Complex<f64>> = (0..voxels * frames)
        .map(|i| {
            let of = |c: usize| (i / voxels * coils + c) * voxels + i % voxels;
            let maps = wide(&maps);
            (0..coils).map(|c| maps[c * voxels + i % voxels].conj() * wide(&apart[of(c)..=of(c)])[0]).sum()
        })
        .collect();
    assert!(distance(&combined, &expected) < 1e-6);
    // The basis matters: a box attenuates.
    let points =
        Plan::new(&Geometry { basis: VoxelBasis::Point, ..Geometry::new(&dims, &lists).coils(coils) }, &options());
    assert!(
        distance(&fbp(&points.unwrap(), Filter::Cosine, &data[..samples * coils]), &wide(&apart[..voxels * coils]))
            > 0.01
    );
}

#[test]
fn bits_are_the_same_for_any_number_of_threads() {
    let mut random = Random::fresh();
    let k = narrowed::<f32>(&radial(90, 96));
    let data = random.complexes::<f32>(k[0].len() * 3);
    let lists = slices(&k);
    let of = |threads: usize| {
        let options = Options { threads, ..options() };
        fbp(&Plan::new(&Geometry::new(&[48, 48], &lists).coils(3), &options).unwrap(), Filter::Hann, &data)
    };
    let one = of(1);
    for threads in [2, 3, 8] {
        assert!(of(threads) == one, "{threads} threads");
    }
}

#[test]
fn a_new_trajectory_is_backprojected() {
    let mut random = Random::fresh();
    let (first, second) = (radial(30, 40), radial(44, 36));
    let changed = plan(&[20, 20], &first);
    fbp(&changed, Filter::RamLak, &random.complexes(first[0].len()));
    changed.set_trajectory(&Geometry::new(&[20, 20], &slices(&second))).unwrap();
    let data = random.complexes::<f64>(second[0].len());
    let again = fbp(&changed, Filter::RamLak, &data);
    assert!(again == fbp(&plan(&[20, 20], &second), Filter::RamLak, &data));
}

#[test]
fn what_has_no_spokes_is_refused() {
    let refused = |geometry: &Geometry<'_, f64>, kind: ErrorKind, part: &str| {
        let plan = Plan::new(geometry, &options()).unwrap();
        let mut image = vec![Complex::new(7.0, 0.0); plan.image_len()];
        let e = plan.fbp(Filter::RamLak, &vec![Complex::default(); plan.kspace_len()], &mut image).unwrap_err();
        assert!(e.kind() == kind && e.to_string().contains(part), "{e}");
        assert!(image.iter().all(|z| *z == Complex::new(7.0, 0.0)), "the image was touched");
    };
    let spiral = Trajectory::spiral(8, 300, 4.0, 1.0).unwrap();
    refused(&Geometry::new(&[16, 16], &spiral.axes()), ErrorKind::InvalidArgument, "2D radial data");
    let cartesian = Trajectory::cartesian(&[16, 16]).unwrap();
    refused(&Geometry::new(&[16, 16], &cartesian.axes()), ErrorKind::InvalidArgument, "2D radial data");
    let ball = Trajectory::radial3d(40, 20).unwrap();
    refused(&Geometry::new(&[8, 8, 8], &ball.axes()), ErrorKind::Unsupported, "3 axes");
    let k = radial(12, 16);
    let lists = slices(&k);
    let mut listed = Geometry::new(&[4, 4], &lists);
    listed.voxels = Some(vec![&[0.0, 1.0][..], &[0.0, 2.0]]);
    refused(&listed, ErrorKind::Unsupported, "list of voxels");
    let half: Vec<Vec<f64>> = k.iter().map(|k| k[..5 * 16].to_vec()).collect();
    refused(&Geometry::new(&[8, 8], &slices(&half)), ErrorKind::InvalidArgument, "unmeasured");
    let mut short = options();
    short.memory_limit =
        Some(Plan::<f64>::new(&Geometry::new(&[64, 64], &lists), &options()).unwrap().info().host_bytes);
    let plan = Plan::new(&Geometry::new(&[64, 64], &lists), &short);
    let e = match plan {
        Ok(plan) => {
            plan.fbp(Filter::RamLak, &[Complex::default(); 12 * 16], &mut [Complex::default(); 64 * 64]).unwrap_err()
        }
        Err(e) => e,
    };
    assert_eq!(e.kind(), ErrorKind::MemoryLimit, "{e}");
}

#[test]
fn backprojection_holds_at_every_level() {
    again_at_other_levels();
}
