//! New trajectories, weights and coil maps for an existing plan: results have the bits of a new plan, also with several
//! threads and inside a callback, and an error changes nothing.

mod common;

use common::*;
use recon::trajectory::SpokeOrder;
use recon::{
    CgOptions, Complex, Density, Device, ErrorKind, Geometry, Interrupt, Method, Normal, Options, Plan, Real,
    Trajectory, VoxelBasis, WarningKind,
};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

/// The arrays of a scan, from which geometries are created.
struct Scan<T: Real> {
    dims: Vec<usize>,
    k: Vec<Vec<T>>,
    weights: Option<Vec<T>>,
    coils: usize,
    maps: Option<Vec<Complex<T>>>,
    frames: usize,
    basis: VoxelBasis,
    voxels: Option<Vec<Vec<T>>>,
}

impl<T: Real> Scan<T> {
    fn new(random: &mut Random, dims: &[usize], samples: usize) -> Self {
        Scan {
            dims: dims.to_vec(),
            k: trajectory(random, dims.len(), samples),
            weights: None,
            coils: 1,
            maps: None,
            frames: 1,
            basis: VoxelBasis::Point,
            voxels: None,
        }
    }

    /// Returns the same scan on a different trajectory, weighted if this one is.
    fn again(&self, random: &mut Random, samples: usize) -> Self {
        Scan {
            dims: self.dims.clone(),
            k: trajectory(random, self.dims.len(), samples),
            weights: self.weights.as_ref().map(|_| positive(random, samples)),
            maps: self.maps.clone(),
            voxels: self.voxels.clone(),
            ..*self
        }
    }

    fn geometry(&self) -> Geometry<'_, T> {
        Geometry {
            weights: self.weights.as_deref(),
            coils: self.coils,
            coil_maps: self.maps.as_deref(),
            frames: self.frames,
            basis: self.basis,
            voxels: self.voxels.as_ref().map(|lists| slices(lists)),
            ..Geometry::new(&self.dims, &slices(&self.k))
        }
    }
}

/// Returns samples at random positions. The first is in the centre, which gridding requires for its scale.
fn trajectory<T: Real>(random: &mut Random, ndim: usize, samples: usize) -> Vec<Vec<T>> {
    let mut k = random.trajectory(ndim, samples);
    k.iter_mut().for_each(|k| k[0] = T::ZERO);
    k
}

fn positive<T: Real>(random: &mut Random, samples: usize) -> Vec<T> {
    (0..samples).map(|_| T::of(random.uniform() + 0.6)).collect()
}

fn cpu() -> Options {
    Options { device: Device::Cpu, threads: 2, ..Options::default() }
}

/// Returns the bits of each operation's result. Inputs depend only on lengths.
fn results<T: Real>(plan: &Plan<T>) -> Vec<Vec<u64>> {
    let mut random = Random::of(7);
    let (data, image) = (random.complexes::<T>(plan.kspace_len()), random.complexes::<T>(plan.image_len()));
    let bits = |z: &[Complex<T>]| -> Vec<u64> {
        z.iter().flat_map(|z| [z.re.wide().to_bits(), z.im.wide().to_bits()]).collect()
    };
    let mut all = Vec::new();
    let mut samples = poisoned(plan.kspace_len());
    plan.forward(&image, &mut samples).unwrap();
    all.push(bits(&samples));
    let mut out = poisoned(plan.image_len());
    plan.adjoint(&data, &mut out).unwrap();
    all.push(bits(&out));
    plan.weighted_adjoint(&data, &mut out).unwrap();
    all.push(bits(&out));
    plan.grid(&data, &mut out).unwrap();
    all.push(bits(&out));
    plan.normal(&image, &mut out).unwrap();
    all.push(bits(&out));
    let cg = CgOptions { iterations: 3, lambda: 0.1, ..CgOptions::default() };
    plan.cg(&data, &mut out, &cg).unwrap();
    all.push(bits(&out));
    let mut q = poisoned(plan.q_len());
    plan.q(&mut q).unwrap();
    all.push(bits(&q));
    all.push(plan.density(Density::Jackson).unwrap().iter().map(|w| w.wide().to_bits()).collect());
    all
}

/// Ranges of [`results`] per operation.
const NAMES: [&str; 8] = ["forward", "adjoint", "weighted adjoint", "grid", "normal", "cg", "q", "density"];

fn assert_same<T: Real>(plan: &Plan<T>, scan: &Scan<T>, options: &Options, what: &str) {
    let new = Plan::new(&scan.geometry(), options).unwrap();
    for ((name, found), wanted) in NAMES.iter().zip(results(plan)).zip(results(&new)) {
        assert!(found == wanted, "{what}: {name} differs from a new plan's");
    }
    let (found, wanted) = (plan.info(), new.info());
    assert_eq!((found.width, &found.grid, found.toeplitz), (wanted.width, &wanted.grid, wanted.toeplitz), "{what}");
    assert_eq!((found.host_bytes, found.device_bytes), (wanted.host_bytes, wanted.device_bytes), "{what}");
    assert_eq!(plan.warnings(), new.warnings(), "{what}");
}

fn check_all<T: Real>(random: &mut Random, scan: Scan<T>, options: &Options, what: &str) {
    let what = &format!("{what}, {}, seed {}", T::NAME, random.seed);
    let samples = scan.k[0].len();
    let plan = Plan::new(&scan.geometry(), options).unwrap();
    // Creates Q, gridding weights and buffers of the first trajectory.
    results(&plan);
    let mut scan = scan.again(random, samples);
    plan.set_trajectory(&scan.geometry()).unwrap();
    assert_same(&plan, &scan, options, &format!("{what}: as many samples"));
    // Numbers of samples for which a different window is selected.
    for samples in [samples / 9 + 1, 12 * samples] {
        scan = scan.again(random, samples);
        plan.set_trajectory(&scan.geometry()).unwrap();
        assert_eq!(plan.samples(), samples);
        assert_same(&plan, &scan, options, &format!("{what}: {samples} samples"));
    }
    let count = scan.k[0].len();
    scan.weights = Some(positive(random, count));
    plan.set_weights(scan.weights.as_deref()).unwrap();
    assert_same(&plan, &scan, options, &format!("{what}: weights"));
    if scan.maps.is_some() {
        scan.maps = Some(random.complexes(plan.image_len() / scan.frames * scan.coils));
        plan.set_coil_maps(scan.maps.as_deref().unwrap()).unwrap();
        assert_same(&plan, &scan, options, &format!("{what}: coil maps"));
        // Without maps in the geometry, the plan keeps its own.
        let maps = scan.maps.take();
        scan = scan.again(random, samples);
        plan.set_trajectory(&scan.geometry()).unwrap();
        scan.maps = maps;
        assert_same(&plan, &scan, options, &format!("{what}: maps that stay"));
        scan.maps = Some(random.complexes(plan.image_len() / scan.frames * scan.coils));
    }
    scan.weights = None;
    plan.set_weights(None).unwrap();
    plan.set_trajectory(&scan.geometry()).unwrap();
    assert_same(&plan, &scan, options, &format!("{what}: no weights"));
}

fn check_kinds<T: Real>(method: Method, normal: Normal) {
    let random = &mut Random::fresh();
    let options = Options { method, normal, ..cpu() };
    let exact = method == Method::Exact;
    let samples = if exact { 60 } else { 700 };
    let dims: &[usize] = if exact { &[9, 10] } else { &[36, 41] };
    let scan = Scan::<T>::new(random, dims, samples);
    check_all(random, scan, &options, "plain");
    let mut scan = Scan::<T>::new(random, dims, samples);
    (scan.coils, scan.frames) = (3, 2);
    scan.weights = Some(positive(random, samples));
    check_all(random, scan, &options, "coils, frames, weights");
    let mut scan = Scan::<T>::new(random, dims, samples);
    scan.coils = 3;
    scan.maps = Some(random.complexes(3 * dims.iter().product::<usize>()));
    scan.basis = VoxelBasis::Box;
    check_all(random, scan, &options, "maps, box");
    let dims: &[usize] = if exact { &[4, 5, 6] } else { &[10, 12, 11] };
    let scan = Scan::<T>::new(random, dims, samples);
    check_all(random, scan, &options, "3D");
}

#[test]
fn nufft_has_the_bits_of_a_new_plan() {
    check_kinds::<f32>(Method::Nufft, Normal::Auto);
    check_kinds::<f64>(Method::Nufft, Normal::Toeplitz);
    check_kinds::<f32>(Method::Nufft, Normal::Transforms);
}

#[test]
fn exact_sums_have_the_bits_of_a_new_plan() {
    check_kinds::<f32>(Method::Exact, Normal::Auto);
    check_kinds::<f64>(Method::Exact, Normal::Transforms);
    let random = &mut Random::fresh();
    let mut scan = Scan::<f64>::new(random, &[20, 20], 80);
    scan.voxels = Some((0..2).map(|_| (0..33).map(|_| 20.0 * random.uniform()).collect()).collect());
    scan.coils = 2;
    check_all(random, scan, &Options { normal: Normal::Transforms, ..cpu() }, "a list of voxels");
}

/// Checks that window and grid are selected again: for many samples a finer grid with a narrower window is faster than
/// for few.
#[test]
fn another_number_of_samples_has_the_window_chosen_anew() {
    let random = &mut Random::of(13);
    let mut scan = Scan::<f32>::new(random, &[64, 64], 150);
    scan.coils = 3;
    scan.maps = Some(random.complexes(3 * 64 * 64));
    let plan = Plan::new(&scan.geometry(), &cpu()).unwrap();
    let few = plan.info();
    results(&plan);
    let many = scan.again(random, 100_000);
    plan.set_trajectory(&many.geometry()).unwrap();
    assert!(plan.info().width < few.width && plan.info().grid > few.grid, "{:?}, {few:?}", plan.info());
    assert_same(&plan, &many, &cpu(), "many samples");
    plan.set_trajectory(&scan.geometry()).unwrap();
    assert_eq!(plan.info().grid, few.grid);
    assert_same(&plan, &scan, &cpu(), "few samples again");
}

/// Checks a coordinate of 0.5, and a trajectory whose extent is less than the image could resolve.
#[test]
fn edges_and_warnings_are_those_of_a_new_plan() {
    let random = &mut Random::of(3);
    let mut scan = Scan::<f32>::new(random, &[32, 32], 200);
    let plan = Plan::new(&scan.geometry(), &cpu()).unwrap();
    assert_eq!(plan.warnings(), []);
    scan.k[0][17] = 0.5;
    plan.set_trajectory(&scan.geometry()).unwrap();
    assert_same(&plan, &scan, &cpu(), "edge");
    scan.k.iter_mut().flatten().for_each(|k| *k *= 0.1);
    plan.set_trajectory(&scan.geometry()).unwrap();
    assert_eq!(plan.warnings().iter().map(|w| w.kind).collect::<Vec<_>>(), [WarningKind::Extent]);
    assert_same(&plan, &scan, &cpu(), "extent");
}

/// Checks that a saved Q of a different trajectory is an error, and that a loaded Q is replaced with its trajectory.
#[test]
fn loaded_q_goes_with_its_trajectory() {
    let random = &mut Random::of(4);
    let first = Scan::<f32>::new(random, &[24, 24], 500);
    let second = first.again(random, 500);
    let options = Options { normal: Normal::Toeplitz, ..cpu() };
    let folder = std::env::temp_dir().join(format!("recon-set-trajectory-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("q");
    let plan = Plan::new(&first.geometry(), &options).unwrap();
    plan.save_q(&file).unwrap();
    plan.load_q(&file).unwrap();
    plan.set_trajectory(&second.geometry()).unwrap();
    assert_same(&plan, &second, &options, "after Q was loaded");
    assert_eq!(plan.load_q(&file).unwrap_err().kind(), ErrorKind::BadFile);
    plan.set_trajectory(&first.geometry()).unwrap();
    plan.load_q(&file).unwrap();
    assert_same(&plan, &first, &options, "Q loaded again");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn errors_name_the_cause_and_leave_the_plan_as_it_was() {
    let random = &mut Random::of(5);
    let mut scan = Scan::<f32>::new(random, &[20, 24], 300);
    scan.coils = 2;
    let plan = Plan::new(&scan.geometry(), &cpu()).unwrap();
    let before = results(&plan);
    let k = &scan.k;
    let good = scan.geometry();
    let refused = |result: recon::Result<()>, kind: ErrorKind, parts: &[&str]| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(parts.iter().all(|part| error.message().contains(part)), "{error}");
    };
    let set = |geometry: Geometry<'_, f32>| plan.set_trajectory(&geometry);
    use ErrorKind::*;
    let dims = vec![20, 25];
    refused(set(Geometry { dims, ..good.clone() }), SizeMismatch, &["[20, 25]", "[20, 24]", "make a new plan"]);
    refused(set(Geometry { dims: vec![20, 24, 1], ..good.clone() }), SizeMismatch, &["one per axis"]);
    refused(set(Geometry { coils: 3, ..good.clone() }), SizeMismatch, &["3 coils", "the plan 2"]);
    refused(set(Geometry { frames: 4, ..good.clone() }), SizeMismatch, &["4 frames", "the plan 1"]);
    refused(set(Geometry { basis: VoxelBasis::Box, ..good.clone() }), InvalidArgument, &["Box", "Point"]);
    refused(set(Geometry { coordinates: vec![&[]; 2], ..good.clone() }), InvalidSize, &["no samples"]);
    let positions: Vec<f32> = random.reals(5);
    let voxels = Some(vec![&positions[..]; 2]);
    refused(set(Geometry { voxels, ..good.clone() }), InvalidArgument, &["a list of voxels", "make a new plan"]);
    let maps = random.complexes(2 * 20 * 24);
    refused(set(good.clone().coil_maps(&maps)), InvalidArgument, &["made without", "2 coils"]);
    let weights = positive(random, 299);
    refused(set(good.clone().weights(&weights)), SizeMismatch, &["299", "300"]);
    let mut odd = positive(random, 300);
    odd[123] = -1.0;
    refused(set(good.clone().weights(&odd)), InvalidArgument, &["weight 123"]);
    let along_y = |ky| set(Geometry { coordinates: vec![&k[0], ky], ..good.clone() });
    let [not_a_number, outside] = [f32::NAN, 12.0].map(|wrong| {
        let mut ky = k[1].clone();
        ky[250] = wrong;
        ky
    });
    refused(along_y(&not_a_number), NotFinite, &["sample 250", "axis 1"]);
    refused(along_y(&outside), CoordinateOutOfRange, &["sample 250", "axis 1"]);
    refused(along_y(&k[1][..200]), SizeMismatch, &["200", "300"]);

    refused(plan.set_weights(Some(&weights)), SizeMismatch, &["299"]);
    refused(plan.set_weights(Some(&odd)), InvalidArgument, &["weight 123"]);
    odd[123] = f32::INFINITY;
    refused(plan.set_weights(Some(&odd)), NotFinite, &["weight 123"]);
    refused(plan.set_coil_maps(&maps), InvalidArgument, &["made without"]);
    assert!(results(&plan) == before);

    scan.maps = Some(maps.clone());
    let plan = Plan::new(&scan.geometry(), &cpu()).unwrap();
    let before = results(&plan);
    refused(plan.set_coil_maps(&maps[1..]), SizeMismatch, &["959"]);
    let mut odd = maps.clone();
    odd[77].im = f32::NAN;
    refused(plan.set_coil_maps(&odd), NotFinite, &["sensitivity 77"]);
    assert!(results(&plan) == before);

    let mut scan = Scan::<f32>::new(random, &[20, 20], 80);
    scan.voxels = Some(vec![random.reals(30), random.reals(30)]);
    let plan = Plan::new(&scan.geometry(), &cpu()).unwrap();
    let mut other = scan.again(random, 90);
    other.voxels.as_mut().unwrap()[1][29] += 1.0;
    refused(plan.set_trajectory(&other.geometry()), InvalidArgument, &["other positions"]);
    other.voxels = Some(vec![random.reals(31), random.reals(31)]);
    refused(plan.set_trajectory(&other.geometry()), SizeMismatch, &["31 voxels"]);
    other.voxels = None;
    refused(plan.set_trajectory(&other.geometry()), InvalidArgument, &["no list of voxels"]);
}

/// Checks that a call that is ended by the caller's function leaves the plan unchanged.
#[test]
fn an_interrupted_change_changes_nothing() {
    let random = &mut Random::of(6);
    let scan = Scan::<f32>::new(random, &[64, 64], 20_000);
    let stop = Arc::new(AtomicBool::new(false));
    let asked = stop.clone();
    let options = Options { interrupt: Some(Interrupt::new(move || asked.load(Ordering::Relaxed))), ..cpu() };
    let plan = Plan::new(&scan.geometry(), &options).unwrap();
    let before = results(&plan);
    stop.store(true, Ordering::Relaxed);
    let other = scan.again(random, 30_000);
    // The function is called at most once in 20 ms.
    std::thread::sleep(std::time::Duration::from_millis(30));
    assert_eq!(plan.set_trajectory(&other.geometry()).unwrap_err().kind(), ErrorKind::Cancelled);
    stop.store(false, Ordering::Relaxed);
    assert!(results(&plan) == before);
    plan.set_trajectory(&other.geometry()).unwrap();
    assert_same(&plan, &other, &options, "after an interruption");
}

/// Checks threads that compute while a different thread changes the trajectory: each result is that of one of the two
/// trajectories.
#[test]
fn every_thread_sees_one_trajectory_or_the_other() {
    let random = &mut Random::of(8);
    let mut first = Scan::<f32>::new(random, &[32, 32], 600);
    first.coils = 2;
    first.weights = Some(positive(random, 600));
    let second = first.again(random, 600);
    let options = Options { normal: Normal::Toeplitz, ..cpu() };
    let plan = Plan::new(&first.geometry(), &options).unwrap();
    let wanted = [&first, &second].map(|scan| results(&Plan::new(&scan.geometry(), &options).unwrap()));
    let (done, seen) = (AtomicBool::new(false), [AtomicUsize::new(0), AtomicUsize::new(0)]);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for round in 0.. {
                    if done.load(Ordering::SeqCst) && round > 3 {
                        break;
                    }
                    // Each operation separately, because the trajectory may change between two of them.
                    for (i, found) in results(&plan).into_iter().enumerate() {
                        let which = wanted.iter().position(|wanted| wanted[i] == found);
                        let which = which.unwrap_or_else(|| panic!("{} is of neither trajectory", NAMES[i]));
                        seen[which].fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
        for i in 0..60 {
            plan.set_trajectory(&if i % 2 == 0 { &second } else { &first }.geometry()).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        done.store(true, Ordering::SeqCst);
    });
    assert!(seen.iter().all(|seen| seen.load(Ordering::SeqCst) > 0));
    assert_same(&plan, &first, &options, "after all changes");
}

/// Checks that no change is lost if several are made at once.
#[test]
fn changes_from_several_threads_all_count() {
    let random = &mut Random::of(9);
    let mut scan = Scan::<f32>::new(random, &[24, 24], 400);
    scan.coils = 2;
    scan.maps = Some(random.complexes(2 * 24 * 24));
    for round in 0..30 {
        let plan = Plan::new(&scan.geometry(), &cpu()).unwrap();
        let mut after = scan.again(random, 400);
        after.maps = Some(random.complexes(2 * 24 * 24));
        let trajectory = Geometry { coil_maps: None, ..after.geometry() };
        std::thread::scope(|scope| {
            scope.spawn(|| plan.set_trajectory(&trajectory).unwrap());
            scope.spawn(|| plan.set_coil_maps(after.maps.as_deref().unwrap()).unwrap());
        });
        assert_same(&plan, &after, &cpu(), &format!("round {round}"));
    }
}

/// Checks changes inside a progress callback: the solution continues on the old trajectory, and the next uses the new
/// one.
#[test]
fn a_progress_callback_may_change_its_own_plan() {
    let random = &mut Random::of(10);
    for normal in [Normal::Toeplitz, Normal::Transforms] {
        let scan = Scan::<f64>::new(random, &[24, 24], 500);
        let options = Options { normal, ..cpu() };
        let plan = Plan::new(&scan.geometry(), &options).unwrap();
        let data = random.complexes(500);
        let cg = CgOptions { iterations: 4, ..CgOptions::default() };
        let (mut wanted, mut found) = (poisoned(24 * 24), poisoned(24 * 24));
        plan.cg(&data, &mut wanted, &cg).unwrap();
        let other = scan.again(random, 650);
        let clone = plan.clone();
        plan.cg_with_progress(&data, &mut found, &cg, |at| {
            if at.iteration == 1 {
                plan.set_trajectory(&other.geometry()).unwrap();
                plan.set_weights(None).unwrap();
                assert_same(&plan, &other, &options, "inside a callback");
            }
            ControlFlow::Continue(())
        })
        .unwrap();
        assert!(found == wanted, "{normal:?}");
        assert_same(&plan, &other, &options, "after a callback");
        // A clone is unchanged.
        assert_same(&clone, &scan, &options, "a clone");
    }
}

/// Checks that old and new samples are in memory together: a limit that is enough for a plan is not enough for its
/// change.
#[test]
fn the_memory_limit_counts_both_trajectories() {
    let random = &mut Random::of(11);
    let scan = Scan::<f32>::new(random, &[32, 32], 20_000);
    let other = scan.again(random, 20_000);
    let plan_of = |limit: usize| {
        let options = Options { memory_limit: Some(limit), normal: Normal::Transforms, ..cpu() };
        (Plan::new(&scan.geometry(), &options).unwrap(), options)
    };
    let needed = |error: recon::Error| -> usize {
        assert_eq!(error.kind(), ErrorKind::MemoryLimit, "{error}");
        let text = error.message().split(" needs ").nth(1).expect("the bytes needed");
        text.split(' ').next().unwrap().parse().unwrap()
    };
    let least = {
        let options = Options { memory_limit: Some(1), ..cpu() };
        needed(Plan::new(&scan.geometry(), &options).err().unwrap())
    };
    let (plan, _) = plan_of(least);
    let mut before = poisoned(32 * 32);
    let data = random.complexes(20_000);
    plan.adjoint(&data, &mut before).unwrap();
    let both = needed(plan.set_trajectory(&other.geometry()).unwrap_err());
    // Two offsets, a key, the order, and two coordinates.
    assert!(both >= least + 20_000 * (2 * 4 + 4 + 4 + 2 * 4), "{both} bytes with both, {least} with one");
    let mut after = poisoned(32 * 32);
    plan.adjoint(&data, &mut after).unwrap();
    assert!(before == after);
    let (plan, options) = plan_of(both);
    plan.set_trajectory(&other.geometry()).unwrap();
    let new = Plan::new(&other.geometry(), &options).unwrap();
    new.adjoint(&data, &mut before).unwrap();
    plan.adjoint(&data, &mut after).unwrap();
    assert!(before == after);
    assert_eq!(plan.info().host_bytes, new.info().host_bytes);
    // Fewer samples need less memory, and then more is available.
    plan.set_trajectory(&scan.again(random, 9_000).geometry()).unwrap();
    plan.set_trajectory(&other.geometry()).unwrap();
    // More samples than the limit allows, alone or together with the old ones.
    needed(plan.set_trajectory(&scan.again(random, 80_000).geometry()).unwrap_err());
    plan.adjoint(&data, &mut after).unwrap();
    assert!(before == after);
}

/// Prints the time of a real-time frame: 34 golden-angle spokes per frame, eight coils. It is not compared, because
/// tests share their machine.
#[test]
fn a_frame_of_real_time_radial() {
    const FRAMES: usize = 40;
    let all = Trajectory::radial2d(34 * FRAMES, 512, SpokeOrder::GoldenAngle).unwrap();
    let (kx, ky) = (all.axis_as::<f32>(0), all.axis_as::<f32>(1));
    let weights: Vec<f32> = kx.iter().zip(&ky).map(|(x, y)| x.hypot(*y) + 1e-4).collect();
    let each = 34 * 512;
    let random = &mut Random::of(12);
    let maps = random.complexes(8 * 192 * 192);
    let geometry = |i: usize| {
        let own = i * each..(i + 1) * each;
        Geometry::new(&[192, 192], &[&kx[own.clone()], &ky[own.clone()]]).weights(&weights[own]).coils(8)
    };
    let plan = Plan::new(&geometry(0).coil_maps(&maps), &cpu()).unwrap();
    let data = random.complexes(8 * each);
    let mut image = poisoned(192 * 192);
    plan.grid(&data, &mut image).unwrap();
    let (mut set, mut grid) = (Vec::new(), Vec::new());
    for i in 0..FRAMES {
        let started = std::time::Instant::now();
        plan.set_trajectory(&geometry(i)).unwrap();
        set.push(started.elapsed());
        let started = std::time::Instant::now();
        plan.grid(&data, &mut image).unwrap();
        grid.push(started.elapsed());
    }
    [&mut set, &mut grid].into_iter().for_each(|times| times.sort());
    println!("set_trajectory {:?}, grid {:?} (medians)", set[FRAMES / 2], grid[FRAMES / 2]);
    let mut new = poisoned(192 * 192);
    Plan::new(&geometry(FRAMES - 1).coil_maps(&maps), &cpu()).unwrap().grid(&data, &mut new).unwrap();
    assert!(new == image);
}
