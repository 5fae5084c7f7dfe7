//! Memory limits, memory estimates, and missing resources.

use crate::support::*;

#[test]
fn memory_limits_are_met_and_errors_give_the_required_bytes() {
    let s = Scene::<f32>::new();
    let g = s.combined();
    let limited = |limit: u64, normal: u32| options(|o| (o.memory_limit, o.normal) = (limit, normal));
    create_fails(&g, &limited(1, 2), RECON_MEMORY_LIMIT, &["bytes", "limit is 1", "raise"]);
    let for_plan = required_bytes();
    create_fails(&g, &limited(for_plan - 1, 2), RECON_MEMORY_LIMIT, &[&for_plan.to_string()]);
    let plan = Handle::new(&g, &limited(for_plan, 2));
    let mut image = poisoned::<f32>(VOXELS * FRAMES);
    let to: *mut c_void = image.as_mut_ptr().cast();
    // SAFETY: arrays have the lengths documented.
    let cg = |plan: &Handle| unsafe { recon_cg(plan.0, s.kspace_at(), to, null(), null_mut()) };
    fails(cg(&plan), RECON_MEMORY_LIMIT, &["conjugate gradient", "bytes"]);
    untouched(&image);
    ok(cg(&Handle::new(&g, &limited(required_bytes(), 2))));

    // Q is requested and does not fit. It fits if the limit is raised to the value in the message.
    let mut image = poisoned::<f32>(VOXELS * FRAMES);
    let to: *mut c_void = image.as_mut_ptr().cast();
    // SAFETY: arrays have the lengths documented.
    let normal = |plan: &Handle| unsafe { recon_normal(plan.0, s.image_at(), to) };
    fails(normal(&Handle::new(&g, &limited(for_plan, 1))), RECON_MEMORY_LIMIT, &["Q needs"]);
    untouched(&image);
    ok(normal(&Handle::new(&g, &limited(required_bytes(), 1))));
    // Without a limit.
    Handle::new(&g, &limited(u64::MAX, 0));
}

#[test]
fn free_memory_is_compared_with_bytes() {
    ok(recon_check_free_memory(0));
    ok(recon_check_free_memory(1 << 20));
    if cfg!(any(target_os = "linux", windows)) {
        let words = ["17592186044416 MiB are needed", "MiB of ", "MiB are left", "raise the limit"];
        fails(recon_check_free_memory(u64::MAX), RECON_OUT_OF_HOST_MEMORY, &words);
    }
}

/// The limits that docs/c.md states, and those of a host that asks for every number.
#[test]
fn unused_memory_is_limited_by_that_of_plans() {
    let mib = |n: u64| n << 20;
    for (held, limit) in [(0, 128), (127, 128), (300, 300), (1024, 1024), (1 << 30, 1024)] {
        assert_eq!(recon_unused_memory_limit(mib(held)), mib(limit), "{held} MiB held");
    }
    assert_eq!(recon_unused_memory_limit(u64::MAX), mib(1024));
}

/// Estimates follow from sizes alone and equal those of the Rust API, which tests/memory.rs compares with allocations.
#[test]
fn memory_estimates_are_those_of_the_rust_api() {
    let s = Scene::<f32>::new();
    let on_cpu = options(|o| (o.device, o.threads) = (1, 2));
    let mut told = init(recon_memory_init);
    let mut tell = |g: &recon_geometry, o: *const recon_options| {
        // SAFETY: structures are alive. Coordinates have the stated length, or are null.
        ok(unsafe { recon_plan_memory(g, o, &raw mut told) });
        told
    };
    let wanted = Plan::<f32>::memory(
        &recon::ScanSize::of(&s.rust()).unwrap(),
        &recon::Options { device: recon::Device::Cpu, threads: 2, ..Default::default() },
    );
    let (wanted, found) = (wanted.unwrap(), tell(&s.geometry(), &raw const on_cpu));
    assert_eq!(
        [found.host_plan, found.host_transform, found.host_grid, found.host_density, found.host_coil_maps],
        [
            wanted.host.plan as u64,
            wanted.host.transform as u64,
            wanted.host.grid as u64,
            wanted.host.density as u64,
            wanted.host.coil_maps as u64
        ]
    );
    assert_eq!([found.host_normal, found.host_cg], [wanted.host.normal as u64, wanted.host.cg as u64]);
    assert_eq!([found.device_plan, found.device_cg, found.device_q], [0; 3]);
    // Without coordinates, all samples may be in the centre. Maps and weights are counted, but not read.
    let bare = recon_geometry { coordinates: [null(); 3], ..s.geometry() };
    let more = tell(&bare, &raw const on_cpu);
    assert!(more.host_coil_maps >= found.host_coil_maps && more.host_cg == found.host_cg); // equal where all lie in it
    let nowhere: *const c_void = std::ptr::without_provenance(1);
    let one = recon_geometry { frames: 1, ..bare };
    let plain = tell(&one, &raw const on_cpu);
    let mapped = tell(&recon_geometry { coil_maps: nowhere, weights: nowhere, ..one }, &raw const on_cpu);
    assert!(mapped.host_plan > plain.host_plan && mapped.host_plan < 100 * plain.host_plan);
    // A narrower centre has fewer samples. A centre wider than k-space is refused, as by recon_coil_maps.
    let mut wide = init(recon_memory_init);
    wide.calibration = 8;
    // SAFETY: structures and arrays are alive.
    ok(unsafe { recon_plan_memory(&s.geometry(), &raw const on_cpu, &raw mut wide) });
    assert!(wide.host_coil_maps < found.host_coil_maps && wide.host_cg == found.host_cg && wide.calibration == 8);
    wide.calibration = u32::MAX;
    // SAFETY: structures and arrays are alive.
    let status = unsafe { recon_plan_memory(&s.geometry(), &raw const on_cpu, &raw mut wide) };
    fails(status, RECON_INVALID_ARGUMENT, &["calibration", &u32::MAX.to_string()]);
    assert!(found.host_combine as usize >= (COILS * 16 + 8) * VOXELS, "{}", found.host_combine);
    // The plan does not hold more than estimated.
    let plan = Handle::new(&s.geometry(), &on_cpu);
    let mut properties = init(recon_plan_properties_init);
    // SAFETY: the plan is alive.
    ok(unsafe { recon_plan_info(plan.0, &raw mut properties) });
    assert!(properties.host_bytes <= found.host_transform.max(found.host_grid), "{}", properties.host_bytes);
    tell(&s.geometry(), null());
    // SAFETY: structures are alive, or pointers are null, which is refused.
    unsafe {
        let g = s.geometry();
        fails(recon_plan_memory(null(), null(), &raw mut told), RECON_NULL_POINTER, &["geometry"]);
        fails(recon_plan_memory(&g, null(), null_mut()), RECON_NULL_POINTER, &["memory"]);
        let none = recon_geometry { samples: 0, ..g };
        fails(recon_plan_memory(&none, null(), &raw mut told), RECON_INVALID_SIZE, &["0 samples"]);
        let beyond = options(|o| o.tolerance = 1.0);
        fails(recon_plan_memory(&g, &beyond, &raw mut told), RECON_TOLERANCE_OUT_OF_RANGE, &["1"]);
        told.struct_size = 7;
        fails(recon_plan_memory(&g, null(), &raw mut told), RECON_UNKNOWN_STRUCT_SIZE, &["recon_memory"]);
    }
}

#[test]
fn missing_devices_grids_and_q_are_errors() {
    let s = Scene::<f32>::new();
    let g = s.combined();
    let beyond = recon_device_count();
    let mut device = init(recon_device_properties_init);
    device.memory_bytes = 99;
    // SAFETY: the structure is alive.
    fails(unsafe { recon_device_info(beyond, &raw mut device) }, RECON_NO_DEVICE, &["device cpu"]);
    assert_eq!(device.memory_bytes, 99);
    let indices = [beyond, 0];
    let o = options(|o| (o.device, o.device_count, o.device_indices) = (2, 2, indices.as_ptr()));
    create_fails(&g, &o, RECON_NO_DEVICE, &["device cpu"]);
    Handle::new(&g, &options(|o| o.device = 1));
    if beyond == 0 {
        create_fails(&g, &options(|o| o.device = 2), RECON_NO_DEVICE, &["driver", "device cpu"]);
        create_fails(&g, &options(|o| o.pointers_on_device = 1), RECON_NO_DEVICE, &["driver"]);
    }
    let o = options(|o| (o.device, o.pointers_on_device) = (1, 1));
    create_fails(&g, &o, RECON_INVALID_ARGUMENT, &["pointers_on_device is 1", "RECON_DEVICE_CPU"]);
    if beyond == 0 {
        create_fails(&g, &options(|o| o.geometry_on_device = 1), RECON_NO_DEVICE, &["driver"]);
    } else {
        // Addresses of the host.
        let o = options(|o| o.geometry_on_device = 1);
        create_fails(&g, &o, RECON_INVALID_ARGUMENT, &["not in the memory of a GPU"]);
    }
    let o = options(|o| (o.device, o.geometry_on_device) = (1, 1));
    create_fails(&g, &o, RECON_INVALID_ARGUMENT, &["geometry_on_device is 1", "RECON_DEVICE_CPU"]);
    let map = vec![0.0f32; VOXELS];
    let times = vec![0.0f32; SAMPLES];
    let with_map = recon_geometry { field_map: map.as_ptr().cast(), ..g };
    create_fails(&with_map, &options(|_| ()), RECON_INVALID_ARGUMENT, &["field map", "times"]);
    if beyond > 0 {
        let o = options(|o| o.geometry_on_device = 1);
        create_fails(&with_map, &o, RECON_UNSUPPORTED, &["geometry_on_device is set", "field_map"]);
    }
    let only_times = recon_geometry { times: times.as_ptr().cast(), ..g };
    create_fails(&only_times, &options(|_| ()), RECON_INVALID_ARGUMENT, &["times", "field map"]);

    let plan = Handle::new(&g, &options(|o| o.method = 1));
    let mut out = poisoned::<f32>(VOXELS * FRAMES);
    let to: *mut c_void = out.as_mut_ptr().cast();
    // SAFETY: arrays have the lengths documented.
    unsafe {
        fails(recon_fbp(plan.0, 5, s.kspace_at(), to), RECON_UNKNOWN_VALUE, &["filter is 5", "RECON_FILTER_HANN"]);
        fails(recon_grid_kspace(plan.0, s.kspace_at(), to), RECON_UNSUPPORTED, &["exact", "NUFFT"]);
        fails(recon_window_correction(plan.0, 0, to.cast()), RECON_UNSUPPORTED, &["exact", "NUFFT"]);
    }
    untouched(&out);
}

#[test]
fn errors_for_missing_memory_give_the_bytes() {
    // Q of 2^49 numbers is a valid size, but exceeds the memory of any machine. The plan itself is small.
    let s = Scene::<f32>::new();
    let coordinates = [s.geometry().coordinates[0]; 3];
    let g = recon_geometry { ndim: 3, dims: [1 << 16, 1 << 15, 1 << 15], coordinates, ..s.geometry() };
    let plan = Handle::new(&g, &options(|o| (o.device, o.method, o.normal) = (1, 1, 1)));
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("huge.{}", std::process::id()));
    let path = CString::new(file.to_str().unwrap()).unwrap();
    // SAFETY: the plan and the path are alive.
    let status = unsafe { recon_plan_save_q(plan.0, path.as_ptr()) };
    fails(status, RECON_OUT_OF_HOST_MEMORY, &["could not allocate 2251799813685248 bytes for", "Q", "free memory"]);
    assert!(!file.exists());
}

/// Outputs that are first computed in separate memory are counted against the limit.
#[test]
fn separate_outputs_are_within_the_memory_limit() {
    // Short transforms have no separate output.
    let s = Spokes::new(400, 64, 8, 2);
    let g = s.geometry(&[30, 34, 27]);
    let caller = Caller::default();
    let o = |limit: u64| caller.options(|o| (o.memory_limit, o.normal, o.threads) = (limit, 2, 1));
    create_fails(&g, &o(1), RECON_MEMORY_LIMIT, &["the plan needs"]);
    let for_plan = required_bytes();
    let mut image = poisoned::<f32>(30 * 34 * 27 * 16);
    let to = image.as_mut_ptr().cast();
    // SAFETY: arrays have the lengths documented.
    let fhd = |limit: u64| unsafe { recon_fhd(Handle::new(&g, &o(limit)).0, s.at(), to) };
    fails(fhd(for_plan), RECON_MEMORY_LIMIT, &["can be interrupted needs"]);
    let needed = required_bytes();
    assert_eq!(needed, for_plan + (image.len() * size_of::<Complex<f32>>()) as u64);
    ok(fhd(needed));
}
