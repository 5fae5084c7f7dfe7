//! Interruption of calls, and plans that several threads use.

use crate::emulator::less_in_emulator;
use crate::support::*;

/// Without interruption, these sums would take a quarter of an hour.
#[test]
fn long_exact_sums_are_interrupted() {
    let s = Spokes::new(8000, 512, 1, 1);
    let image: Vec<Complex<f32>> = vec![Complex::new(0.5, 0.25); 224 * 192 * 160];
    let list: Vec<f32> = (0..image.len()).map(|i| (i % 199) as f32 - 99.5).collect();
    let on_grid = s.geometry(&[224, 192, 160]);
    let listed = recon_geometry { voxels: [list.as_ptr().cast(); 3], voxel_count: list.len() as u64, ..on_grid };
    let mut out = poisoned::<f32>(image.len().max(s.kspace.len()));
    let mut large = poisoned::<f32>(8 * image.len());
    for g in [on_grid, listed] {
        let caller = Caller::default();
        let plan = Handle::new(&g, &caller.options(|o| (o.method, o.normal) = (1, 2)));
        let (x, to) = (image.as_ptr().cast(), out.as_mut_ptr().cast());
        // SAFETY: arrays have the lengths documented.
        unsafe {
            for poll in [1, 2, 4] {
                // The first polls are made before the sums begin.
                let during = if poll > 2 { "exact sums" } else { "" };
                caller.stops(poll, during, || recon_fhd(plan.0, s.at(), to));
                caller.stops(poll, during, || recon_forward(plan.0, x, to));
                caller.stops(poll, during, || recon_normal(plan.0, x, to));
                caller.stops(poll, during, || recon_weighted_fhd(plan.0, s.at(), to));
                caller.stops(poll, during, || recon_cg(plan.0, s.at(), to, null(), null_mut()));
                caller.stops(poll, during, || recon_q(plan.0, large.as_mut_ptr().cast()));
            }
        }
        caller.polled_in_this_thread_only();
        untouched(&out);
        untouched(&large);
    }
}

#[test]
fn all_long_calls_are_interrupted() {
    let s = Spokes::new(800, 96, 8, 6);
    let g = s.geometry(&[48, 44, 40]);
    let voxels = 48 * 44 * 40;
    let caller = Caller::default();
    let o = caller.options(|o| (o.normal, o.tolerance) = (2, 1e-6));
    let plan = Handle::new(&g, &o);
    caller.polled_in_this_thread_only();
    let mut maps = poisoned::<f32>(voxels * 8);
    // SAFETY: arrays have the lengths documented.
    unsafe { ok(recon_coil_maps(plan.0, s.at(), 0, maps.as_mut_ptr().cast())) };
    let combined = recon_geometry { coil_maps: maps.as_ptr().cast(), ..g };
    let combined = Handle::new(&combined, &o);
    let mut out = poisoned::<f32>(voxels * 8 * 6);
    let mut weights = vec![POISON as f32; s.k[0].len()];
    let cells = plan.info().grid_elements as usize;
    let (mut grid, mut q) = (poisoned::<f32>(cells), poisoned::<f32>(8 * voxels));
    let image: Vec<Complex<f32>> = vec![Complex::new(0.5, 0.25); voxels * 8 * 6];
    let (x, to) = (image.as_ptr().cast(), out.as_mut_ptr().cast());
    let mut cg = init(recon_cg_options_init);
    cg.iterations = 1_000_000;
    // SAFETY: arrays have the lengths documented.
    unsafe {
        for plan in [&plan, &combined] {
            for poll in [1, 2, 3] {
                caller.stops(poll, "transform", || recon_fhd(plan.0, s.at(), to));
                caller.stops(poll, "transform", || recon_forward(plan.0, x, to));
                caller.stops(poll, "", || recon_normal(plan.0, x, to));
                caller.stops(poll, "", || recon_cg(plan.0, s.at(), to, &raw const cg, null_mut()));
            }
        }
        for poll in [1, 3] {
            let to = weights.as_mut_ptr().cast();
            caller.stops(poll, "weights", || recon_density(plan.0, 0, 1_000_000, 0.0, to));
        }
        caller.stops(1, "weights", || recon_grid(plan.0, s.at(), to));
        caller.stops(2, "", || recon_grid_kspace(plan.0, s.at(), grid.as_mut_ptr().cast()));
        caller.stops(1, "Q", || recon_q(plan.0, q.as_mut_ptr().cast()));
        for poll in [1, 3] {
            caller.stops(poll, "", || recon_coil_maps(plan.0, s.at(), 0, q.as_mut_ptr().cast()));
        }
        let unset = 0x1230 as *mut recon_plan;
        let mut made = unset;
        caller.stops(1, "the creation of a plan", || recon_plan_create(&raw const g, &raw const o, &raw mut made));
        assert_eq!(made, unset, "the plan was written");
    }
    [&out, &grid, &q].into_iter().for_each(|out| untouched(out));
    assert!(weights.iter().all(|&w| w == POISON as f32));
    caller.polled_in_this_thread_only();
}

/// Makes a call, and returns whether it was interrupted.
type Guard<'a> = dyn FnMut(&mut dyn FnMut() -> recon_status) -> bool + 'a;

/// Returns the results of every operation. Each call is made through `guard`; interrupted calls leave their output
/// unchanged.
fn results_of_operations(
    plan: &Handle,
    s: &Spokes,
    image: &[Complex<f32>],
    guard: &mut Guard<'_>,
) -> Vec<Vec<Complex<f32>>> {
    let info = plan.info();
    let (pixels, samples) = (info.image_elements as usize, info.kspace_elements as usize);
    let mut cg = init(recon_cg_options_init);
    cg.iterations = 2;
    let mut results: Vec<Vec<Complex<f32>>> = Vec::new();
    let mut run = |len: usize, call: &mut dyn FnMut(*mut c_void) -> recon_status| {
        let mut out = poisoned::<f32>(len);
        let to = out.as_mut_ptr().cast();
        if guard(&mut || call(to)) {
            untouched(&out);
        }
        results.push(out);
    };
    // SAFETY: arrays have the lengths documented.
    unsafe {
        run(pixels, &mut |to| recon_fhd(plan.0, s.at(), to));
        run(pixels, &mut |to| recon_grid(plan.0, s.at(), to));
        run(samples, &mut |to| recon_forward(plan.0, image.as_ptr().cast(), to));
        run(pixels, &mut |to| recon_normal(plan.0, image.as_ptr().cast(), to));
        run(info.q_elements as usize, &mut |to| recon_q(plan.0, to));
        run(pixels, &mut |to| recon_cg(plan.0, s.at(), to, &raw const cg, null_mut()));
        run(s.k[0].len() / 2, &mut |to| recon_density(plan.0, 0, 5, 0.0, to));
        // A list of voxels has no coil maps, and its Q has one element per voxel.
        if info.q_elements > listed_voxels() {
            run(3 * grid_dims().iter().product::<u64>() as usize, &mut |to| recon_coil_maps(plan.0, s.at(), 0, to));
        }
    }
    results
}

/// Sizes of the images in the test below: a list of positions, and a grid.
fn listed_voxels() -> u64 {
    less_in_emulator(5000, 500)
}

fn grid_dims() -> [u64; 3] {
    less_in_emulator([30, 34, 27], [12, 10, 9])
}

/// After an interruption at any point, the results of a plan have the same bits as those of a new plan.
#[test]
fn interrupted_plans_equal_new_ones() {
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let mut state = clock.as_nanos() as u64 | 1;
    println!("seed {state}");
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    // Transforms that take less than 20 ms are interrupted only before they begin. NUFFTs are the faster ones.
    let [spokes, readout, frames] = less_in_emulator([100, 64, 16], [60, 32, 2]);
    let (for_sums, for_nuffts) = (Spokes::new(spokes, readout, 3, 2), Spokes::new(spokes, readout, 3, frames));
    let dims = grid_dims();
    let grid_voxels = dims.iter().product::<u64>() as usize;
    let maps: Vec<Complex<f32>> =
        (0..3 * grid_voxels).map(|i| Complex::new((0.1 * i as f32).cos(), (0.2 * i as f32).sin())).collect();
    let list: Vec<f32> = (0..listed_voxels()).map(|i| (i % 171) as f32 * 0.2 - 17.0).collect();
    let on_grid = |s: &Spokes| s.geometry(&dims);
    let combined = |s: &Spokes| recon_geometry { coil_maps: maps.as_ptr().cast(), ..on_grid(s) };
    let listed =
        |s: &Spokes| recon_geometry { voxels: [list.as_ptr().cast(); 3], voxel_count: listed_voxels(), ..on_grid(s) };
    let image: Vec<Complex<f32>> =
        (0..grid_voxels * 3 * frames).map(|i| Complex::new((0.3 * i as f32).sin(), 1.0)).collect();
    let mut interrupted = 0;
    for (s, g, method, normal) in [
        (&for_sums, on_grid(&for_sums), 1, 2),
        (&for_sums, combined(&for_sums), 1, 1),
        (&for_sums, listed(&for_sums), 1, 2),
        (&for_nuffts, on_grid(&for_nuffts), 2, 2),
        (&for_nuffts, combined(&for_nuffts), 2, 1),
        (&for_nuffts, combined(&for_nuffts), 2, 2),
    ] {
        let (caller, idle) = (Caller::default(), Caller::default());
        let set = |o: &mut recon_options| {
            (o.method, o.normal, o.tolerance, o.threads) = (method, normal, 1e-6, 2);
        };
        let plan = Handle::new(&g, &caller.options(set));
        let operations = |plan: &Handle, guard: &mut Guard<'_>| results_of_operations(plan, s, &image, guard);
        for _ in 0..less_in_emulator(4, 2) {
            operations(&plan, &mut |call| {
                caller.poll_time.store(random(3000), Relaxed);
                let stopped = caller.may_stop(1 + random(5), call);
                interrupted += usize::from(stopped);
                stopped
            });
        }
        let all = &mut |call: &mut dyn FnMut() -> recon_status| {
            ok(call());
            false
        };
        let on_cpu = options(|o| {
            o.device = 1;
            set(o)
        });
        let expected = operations(&Handle::new(&g, &on_cpu), all);
        for (i, result) in operations(&plan, all).iter().enumerate() {
            assert!(*result == expected[i], "operation {i} with method {method}, normal {normal}");
        }
        // A callback that never requests a stop does not change results.
        for (i, result) in operations(&Handle::new(&g, &idle.options(set)), all).iter().enumerate() {
            assert!(*result == expected[i], "operation {i} with method {method}, normal {normal}");
        }
        assert!(idle.poll_count.load(Relaxed) > 0);
        [caller, idle].iter().for_each(Caller::polled_in_this_thread_only);
    }
    println!("{interrupted} calls were interrupted");
    assert!(interrupted > less_in_emulator(20, 0), "{interrupted} calls were interrupted");
}

/// A short transform polls once, before it writes, and needs no memory for a second output.
#[test]
fn short_transforms_are_interrupted_before_they_begin() {
    let s = Spokes::new(40, 48, 8, 2);
    let g = s.geometry(&[24, 24, 24]);
    let maps = vec![Complex::new(0.5f32, 0.5); 8 * 24 * 24 * 24];
    let combined = recon_geometry { coil_maps: maps.as_ptr().cast(), ..g };
    for g in [g, combined] {
        let (caller, none) = (Caller::default(), options(|_| ()));
        let polled = caller.options(|_| ());
        let memory = |o: &recon_options| {
            let mut memory = init(recon_memory_init);
            // SAFETY: the geometry's arrays live, and the address is valid.
            unsafe { ok(recon_plan_memory(&raw const g, o, &raw mut memory)) };
            memory.host_transform
        };
        assert_eq!(memory(&polled), memory(&none));
        let plan = Handle::new(&g, &polled);
        let info = plan.info();
        let mut image = poisoned::<f32>(info.image_elements as usize);
        let mut kspace = poisoned::<f32>(info.kspace_elements as usize);
        let (x, y) = (image.as_mut_ptr().cast(), kspace.as_mut_ptr().cast());
        // SAFETY: arrays have the lengths documented.
        unsafe {
            // The callback is called at most once in 20 ms.
            let wait = || std::thread::sleep(std::time::Duration::from_millis(25));
            wait();
            caller.stops(1, "a transform", || recon_fhd(plan.0, s.at(), x));
            untouched(&image);
            assert!(!caller.may_stop(2, &mut || recon_fhd(plan.0, s.at(), x)));
            wait();
            caller.stops(1, "the density weights", || recon_grid(plan.0, s.at(), x));
            wait();
            caller.stops(1, "a transform", || recon_forward(plan.0, x, y));
            untouched(&kspace);
            assert!(!caller.may_stop(2, &mut || recon_forward(plan.0, x, y)));
        }
        assert!(image.iter().chain(&kspace).all(|z| z.re != POISON as f32), "all elements are written");
    }
}

/// Several threads use one plan. Each polls in its own thread, and a stop request in one does not end calls of others.
#[test]
fn threads_are_interrupted_independently() {
    let s = Spokes::new(400, 96, 1, 1);
    let g = s.geometry(&[56, 60, 64]);
    let voxels = 56 * 60 * 64;
    /// Requests a stop in one thread only.
    unsafe extern "C" fn one(data: *mut c_void) -> c_int {
        // SAFETY: the address of `data` below.
        let (stopped, seen) = unsafe { &*data.cast::<(ThreadId, Mutex<HashSet<ThreadId>>)>() };
        let here = std::thread::current().id();
        seen.lock().unwrap().insert(here);
        (here == *stopped).into()
    }
    /// A value that can be sent to a different thread.
    struct Sendable<S>(S);
    // SAFETY: the addresses lead to arrays that are only read while the threads run.
    unsafe impl<S> Send for Sendable<S> {}
    // SAFETY: the addresses lead to arrays that are only read while the threads run.
    unsafe impl<S> Sync for Sendable<S> {}
    impl<S> Sendable<S> {
        fn get(&self) -> &S {
            &self.0
        }
    }
    let data = (std::thread::current().id(), Mutex::new(HashSet::<ThreadId>::new()));
    let mut none = null_mut();
    let o = options(|o| (o.device, o.method) = (1, 1));
    let o = recon_options { interrupt: Some(one), interrupt_data: (&raw const data).cast_mut().cast(), ..o };
    // SAFETY: structures and arrays are alive. In this thread, creating the plan is stopped at the first poll.
    fails(unsafe { recon_plan_create(&raw const g, &raw const o, &raw mut none) }, RECON_CANCELLED, &["the creation"]);
    let (g, o) = (Sendable(g), Sendable(o));
    let plan = std::thread::scope(|scope| {
        let make = || Sendable(Handle::new(g.get(), o.get()));
        scope.spawn(make).join().unwrap().0
    });
    let call = || {
        let plan = &plan;
        let mut out = poisoned::<f32>(voxels);
        // SAFETY: arrays have the lengths documented.
        let status = unsafe { recon_fhd(plan.0, s.at(), out.as_mut_ptr().cast()) };
        (std::thread::current().id(), status, out)
    };
    let callers = std::thread::scope(|scope| {
        let others = [(); 2].map(|()| scope.spawn(call));
        for _ in 0..5 {
            let (_, status, out) = call();
            fails(status, RECON_CANCELLED, &["interrupted"]);
            untouched(&out);
        }
        others.map(|other| other.join().unwrap())
    });
    let seen = data.1.lock().unwrap();
    for (id, status, out) in &callers {
        assert_eq!(*status, RECON_OK);
        assert!(seen.contains(id), "a caller did not poll");
        same(out, &callers[0].2);
    }
    // The two callers, this thread, and the thread that created the plan.
    assert_eq!(seen.len(), 4);
}

#[test]
fn plans_may_be_shared_among_threads() {
    let s = Scene::<f32>::new();
    let solve = |plan: &Handle| {
        let (mut x, mut y) = (poisoned::<f32>(VOXELS * FRAMES), poisoned::<f32>(VOXELS * FRAMES));
        // SAFETY: arrays have the lengths documented.
        unsafe {
            ok(recon_grid(plan.0, s.kspace_at(), y.as_mut_ptr().cast()));
            ok(recon_cg(plan.0, s.kspace_at(), x.as_mut_ptr().cast(), null(), null_mut()));
        }
        (x, y)
    };
    let wanted = solve(&Handle::new(&s.combined(), &options(|o| o.threads = 1)));
    let shared = Handle::new(&s.combined(), &options(|_| ()));
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|i| {
                let (s, shared, solve) = (&s, &shared, &solve);
                scope.spawn(move || {
                    (0..3)
                        .map(|_| match i % 2 {
                            0 => solve(shared),
                            _ => solve(&Handle::new(&s.combined(), &options(|o| o.threads = i))),
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        for worker in workers {
            for (x, y) in worker.join().unwrap() {
                same(&x, &wanted.0);
                same(&y, &wanted.1);
            }
        }
    });
}
