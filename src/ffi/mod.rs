//! The C API: checks what C hands over, and passes it on. `include/recon.h` is generated from this module; its comments
//! are the reference for callers.

// Names are those of the header.
#![allow(non_camel_case_types)]
// What callers must keep to is the same for every function, and said once at the top of the header.
#![allow(clippy::missing_safety_doc)]

mod acquisition;
mod arrays;
mod coil_matrices;
#[doc(hidden)]
pub mod enumerations;
mod field_map;
mod logging;
mod propeller;
mod scan;
mod status;
mod structs;

pub use acquisition::*;
pub use coil_matrices::*;
pub use enumerations::{
    recon_acquisition_purpose, recon_basis, recon_blade_phase, recon_coil_model, recon_combine_method,
    recon_density_method, recon_device, recon_filter, recon_lambda_unit, recon_log_level, recon_method,
    recon_normal_operator, recon_part, recon_precision, recon_prior, recon_scale, recon_simd, recon_spoke_order,
    recon_stop, recon_warning, recon_window,
};
pub use field_map::*;
pub use propeller::*;
pub use status::recon_status;
pub use structs::*;

use crate::backend::cuda::runtime;
use crate::base::error::{bail, checked_product, try_box, try_collect, try_vec, Result};
use crate::base::geometry::Geometry;
use crate::base::options::{Device, Options};
use crate::base::real::{narrow, wide, Real};
use crate::engine::interface::PlanInfo;
use crate::plan::Plan;
use crate::reconstruction::coils::combine_bytes;
use crate::release_memory;
use crate::simulated_scan::{phantom_kspace, subdivision};
use crate::simulation::phantom::{CoilModel, Ellipsoid, Phantom};
use crate::simulation::trajectory::{SpokeOrder, Trajectory};
use crate::{Combine, Complex, Density, Progress, Resize, Warning, WarningKind};
use arrays::{check_pointer, size, Accepted, Arrays, Results};
use enumerations::{choice, CoilKind, DensityKind, Enumeration, Part, Precision, WarningNumber};
use scan::{precision, with_precision, Scan};
use status::{call, call_about_the_last, call_that_frees};
use std::ffi::{c_char, c_void, CStr, CString};
use std::ops::ControlFlow;
use std::sync::Mutex;
use structs::{put_text, read, Out, Versioned};

/// Everything that depends on the trajectory, made by recon_plan_create. Any number of threads may use a plan at once.
pub struct recon_plan {
    typed: TypedPlan,
    /// The geometry without its arrays, for lengths.
    precision: u32,
    window: u32,
    dims: Vec<usize>,
    voxels: usize,
    coils: usize,
    frames: usize,
    combines: bool,
    /// Images and k-space are in the GPU's memory.
    on_device: bool,
    /// A recon_warning each, and its text.
    warnings: Mutex<Vec<(u32, CString)>>,
}

enum TypedPlan {
    F32(Plan<f32>),
    F64(Plan<f64>),
}

impl From<Plan<f32>> for TypedPlan {
    fn from(plan: Plan<f32>) -> Self {
        TypedPlan::F32(plan)
    }
}

impl From<Plan<f64>> for TypedPlan {
    fn from(plan: Plan<f64>) -> Self {
        TypedPlan::F64(plan)
    }
}

/// Evaluates an expression with `$p` standing for the plan of whichever precision, which the expression changes.
macro_rules! change_plan {
    ($plan:expr, $p:ident => $body:expr) => {
        match &$plan.typed {
            TypedPlan::F32($p) => $body,
            TypedPlan::F64($p) => $body,
        }
    };
}

/// Evaluates an expression with `$p` standing for the plan of whichever precision, as it is now: lengths of arrays are
/// those of the operation, though another thread changes the trajectory in between.
macro_rules! with_plan {
    ($plan:expr, $p:ident => $body:expr) => {
        change_plan!($plan, p => {
            let $p = &p.clone();
            $body
        })
    };
}

/// Calls `$method` of the plan with an array that is read and one that is written, where the plan has them.
macro_rules! transform {
    ($plan:expr, $method:ident, $from:ident: $from_len:ident, $to:ident: $to_len:ident) => {{
        let plan = plan_at($plan)?;
        with_plan!(plan, p => {
            let mut arrays = Arrays::default();
            let from = arrays.source(stringify!($from), $from.cast(), p.$from_len(), plan.on_device)?;
            p.$method(from, arrays.sink(stringify!($to), $to.cast(), p.$to_len(), plan.on_device)?)
        })
    }};
}

impl recon_plan {
    fn info(&self) -> PlanInfo {
        with_plan!(self, p => p.info())
    }

    fn images(&self) -> usize {
        self.frames * if self.combines { 1 } else { self.coils }
    }

    fn grid_elements(&self, info: &PlanInfo) -> Result<usize> {
        if info.grid.is_empty() {
            return Ok(0);
        }
        checked_product(&[&info.grid[..], &[self.coils, self.frames]].concat(), "the gridded k-space")
    }
}

/// # Safety
/// `plan` is null or was made by recon_plan_create and not destroyed.
unsafe fn plan_at<'a>(plan: *const recon_plan) -> Result<&'a recon_plan> {
    check_pointer("plan", plan)?;
    // SAFETY: not null, and by the caller's promise alive; what changes of a plan after it was made is behind locks.
    Ok(unsafe { &*plan })
}

/// # Safety
/// `text` is null or a C string that outlives 'a.
unsafe fn path_at<'a>(text: *const c_char) -> Result<&'a std::path::Path> {
    check_pointer("path", text)?;
    // SAFETY: not null, and by the caller's promise a C string.
    let text = unsafe { CStr::from_ptr(text) };
    #[cfg(unix)]
    let path = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(text.to_bytes());
    #[cfg(not(unix))]
    let path: &std::ffi::OsStr = match text.to_str() {
        Ok(text) => text.as_ref(),
        Err(e) => bail!(InvalidArgument, "path is not UTF-8 ({e})"),
    };
    Ok(std::path::Path::new(path))
}

/// A C string as text.
///
/// # Safety
/// `text` is null or a C string that lives as long as the result.
unsafe fn text_at<'a>(name: &str, text: *const c_char) -> Result<std::borrow::Cow<'a, str>> {
    check_pointer(name, text)?;
    // SAFETY: not null, and by the caller's promise a C string.
    Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

// ---------------------------------------------------------------------------------------------------- the library

/// The version of the library as text, "major.minor.patch". Never NULL; not to be freed.
#[no_mangle]
pub extern "C" fn recon_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// What a status means, in a few words. Never NULL, for numbers that are no status either; not to be freed.
#[no_mangle]
pub extern "C" fn recon_status_string(status: i32) -> *const c_char {
    status::text(status).as_ptr()
}

/// The name of a status in one word: "InvalidSize" for RECON_INVALID_SIZE, as in MATLAB's error identifiers. Never
/// NULL, "UnknownStatus" for numbers that are no status; not to be freed.
#[no_mangle]
pub extern "C" fn recon_status_name(status: i32) -> *const c_char {
    status::name(status).as_ptr()
}

/// The number of an option's value by its word, for hosts whose users write words as MATLAB's do. For example option
/// "window", word "gaussian": RECON_WINDOW_GAUSSIAN. Options are "precision" (words "single" and "double"), "basis",
/// "method", "normal", "device", "simd", "window", "filter", "prior", "lambda_unit", "stop", "density", "combine"
/// ("rss" and "adaptive"), "order" ("linear" and "golden"), "coil_model", "part", "scale", "warning", "purpose" and
/// "level". Other words are the ends of the constants' names in lower case, with - for _.
///
/// Errors: RECON_NULL_POINTER; RECON_UNKNOWN_VALUE for an option or a word that this version does not know, with those
/// it does.
#[no_mangle]
pub unsafe extern "C" fn recon_choice(option: *const c_char, word: *const c_char, value: *mut u32) -> recon_status {
    // SAFETY: the caller's C strings, and a number to write.
    call(|| unsafe {
        check_pointer("value", value)?;
        let number = enumerations::number_of(&text_at("option", option)?, &text_at("word", word)?)?;
        *value = number;
        Ok(())
    })
}

/// The word for a number of an option, see recon_choice. Never NULL; empty where there is none; not to be freed.
#[no_mangle]
pub unsafe extern "C" fn recon_choice_word(option: *const c_char, value: u32) -> *const c_char {
    if option.is_null() {
        return c"".as_ptr();
    }
    // SAFETY: the caller's C string.
    enumerations::word_of(&unsafe { CStr::from_ptr(option) }.to_string_lossy(), value).as_ptr()
}

/// What went wrong in the last call by this thread that failed: cause, value and remedy, in UTF-8. Empty before the
/// first failure. Never NULL; not to be freed; the thread's next failure replaces the text in the same place.
#[no_mangle]
pub extern "C" fn recon_last_error_message() -> *const c_char {
    status::message()
}

/// Makes the library report what it does: `callback` receives messages of `level` (a recon_log_level) and above, and
/// `user_data`. Replaces the callback before; NULL removes it. Once this returns the previous callback is not called
/// any more. Without a callback the library is silent. This is its only global state.
///
/// Errors: RECON_UNKNOWN_VALUE; RECON_INVALID_ARGUMENT from within the callback; RECON_UNSUPPORTED when the library is
/// linked statically into a Rust program that has a logger of its own.
#[no_mangle]
pub unsafe extern "C" fn recon_set_log_callback(
    callback: recon_log_callback,
    user_data: *mut c_void,
    level: u32,
) -> recon_status {
    call(|| logging::set(callback, user_data, level))
}

/// The number of GPUs that the driver shows: 0 where there is no driver. Never an error.
#[no_mangle]
pub extern "C" fn recon_device_count() -> u32 {
    let mut count = 0;
    call(|| {
        count = runtime::count();
        Ok(())
    });
    count
}

/// Describes the GPU `index`, from 0.
///
/// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE; RECON_NO_DEVICE when there is no such GPU, or no driver.
#[no_mangle]
pub unsafe extern "C" fn recon_device_info(index: u32, properties: *mut recon_device_properties) -> recon_status {
    call(|| {
        // SAFETY: the caller's structure.
        let mut out = unsafe { Out::new(&mut Arrays::default(), "properties", properties) }?;
        let found = runtime::properties(index)?;
        out.value = recon_device_properties {
            multiprocessors: found.multiprocessors,
            compute_major: found.capability.0,
            compute_minor: found.capability.1,
            memory_bytes: found.memory as u64,
            memory_free_bytes: runtime::Context::of(index)?.free_memory()? as u64,
            ..recon_device_properties::initial()
        };
        put_text(&mut out.value.name, &found.name);
        out.write();
        Ok(())
    })
}

// ---------------------------------------------------------------------------------------------------- structures

/// Defaults of a geometry: f32, 2D, one coil, one frame, point voxels. `struct_size` is sizeof(recon_geometry): it
/// tells the library which version of the header the caller was compiled with; so for every _init function.
///
/// Errors: RECON_NULL_POINTER; RECON_UNKNOWN_STRUCT_SIZE when the header is newer than the library.
#[no_mangle]
pub unsafe extern "C" fn recon_geometry_init(geometry: *mut recon_geometry, struct_size: u32) -> recon_status {
    // SAFETY: the caller's structure has struct_size bytes.
    call(|| unsafe { structs::init(geometry, struct_size) })
}

/// Defaults of a plan's options: everything chosen by the library. `struct_size` is sizeof(recon_options).
#[no_mangle]
pub unsafe extern "C" fn recon_options_init(options: *mut recon_options, struct_size: u32) -> recon_status {
    // SAFETY: the caller's structure has struct_size bytes.
    call(|| unsafe { structs::init(options, struct_size) })
}

/// Defaults of recon_cg: 12 iterations, no prior. `struct_size` is sizeof(recon_cg_options).
#[no_mangle]
pub unsafe extern "C" fn recon_cg_options_init(options: *mut recon_cg_options, struct_size: u32) -> recon_status {
    // SAFETY: the caller's structure has struct_size bytes.
    call(|| unsafe { structs::init(options, struct_size) })
}

/// An empty report, without room for residuals. `struct_size` is sizeof(recon_cg_report).
#[no_mangle]
pub unsafe extern "C" fn recon_cg_report_init(report: *mut recon_cg_report, struct_size: u32) -> recon_status {
    // SAFETY: the caller's structure has struct_size bytes.
    call(|| unsafe { structs::init(report, struct_size) })
}

/// Defaults of recon_propeller: blades as they are found, their smooth phase, rotation and translation corrected.
/// `struct_size` is sizeof(recon_propeller_options).
#[no_mangle]
pub unsafe extern "C" fn recon_propeller_options_init(
    options: *mut recon_propeller_options,
    struct_size: u32,
) -> recon_status {
    // SAFETY: the caller's structure has struct_size bytes.
    call(|| unsafe { structs::init(options, struct_size) })
}

/// An empty report, without room for anything. `struct_size` is sizeof(recon_propeller_report).
#[no_mangle]
pub unsafe extern "C" fn recon_propeller_report_init(
    report: *mut recon_propeller_report,
    struct_size: u32,
) -> recon_status {
    // SAFETY: the caller's structure has struct_size bytes.
    call(|| unsafe { structs::init(report, struct_size) })
}

/// Defaults of recon_field_map. `struct_size` is sizeof(recon_field_map_options).
#[no_mangle]
pub unsafe extern "C" fn recon_field_map_options_init(
    options: *mut recon_field_map_options,
    struct_size: u32,
) -> recon_status {
    // SAFETY: the caller's structure has struct_size bytes.
    call(|| unsafe { structs::init(options, struct_size) })
}

/// An empty report. `struct_size` is sizeof(recon_field_map_report).
#[no_mangle]
pub unsafe extern "C" fn recon_field_map_report_init(
    report: *mut recon_field_map_report,
    struct_size: u32,
) -> recon_status {
    // SAFETY: the caller's structure has struct_size bytes.
    call(|| unsafe { structs::init(report, struct_size) })
}

/// Empty properties. `struct_size` is sizeof(recon_plan_properties).
#[no_mangle]
pub unsafe extern "C" fn recon_plan_properties_init(
    properties: *mut recon_plan_properties,
    struct_size: u32,
) -> recon_status {
    // SAFETY: the caller's structure has struct_size bytes.
    call(|| unsafe { structs::init(properties, struct_size) })
}

/// Empty figures. `struct_size` is sizeof(recon_memory).
#[no_mangle]
pub unsafe extern "C" fn recon_memory_init(memory: *mut recon_memory, struct_size: u32) -> recon_status {
    // SAFETY: the caller's structure has struct_size bytes.
    call(|| unsafe { structs::init(memory, struct_size) })
}

/// Empty properties. `struct_size` is sizeof(recon_device_properties).
#[no_mangle]
pub unsafe extern "C" fn recon_device_properties_init(
    properties: *mut recon_device_properties,
    struct_size: u32,
) -> recon_status {
    // SAFETY: the caller's structure has struct_size bytes.
    call(|| unsafe { structs::init(properties, struct_size) })
}

/// Empty figures. `struct_size` is sizeof(recon_quality).
#[no_mangle]
pub unsafe extern "C" fn recon_quality_init(quality: *mut recon_quality, struct_size: u32) -> recon_status {
    // SAFETY: the caller's structure has struct_size bytes.
    call(|| unsafe { structs::init(quality, struct_size) })
}

// ---------------------------------------------------------------------------------------------------- plans

/// Makes a plan for a geometry: checks every number, chooses window and grid, sorts the samples, starts the plan's
/// threads. The geometry's arrays are not needed afterwards. `options` may be NULL for the defaults. On success `*plan`
/// is the caller's, to be given to recon_plan_destroy; otherwise it is untouched.
///
/// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE; RECON_INVALID_SIZE for a size of zero;
/// RECON_SIZE_OVERFLOW; RECON_NOT_FINITE and RECON_COORDINATE_OUT_OF_RANGE with the index;
/// RECON_TOLERANCE_OUT_OF_RANGE; RECON_MEMORY_LIMIT with the bytes needed; RECON_OUT_OF_HOST_MEMORY; RECON_NO_DEVICE;
/// RECON_OUT_OF_DEVICE_MEMORY; RECON_DRIVER_INCOMPLETE where the GPU's kernels are neither kept nor can be compiled;
/// RECON_UNSUPPORTED for a field map that takes more than 128 segments, a voxel list with RECON_METHOD_NUFFT, or a vector
/// unit that the processor lacks.
#[no_mangle]
pub unsafe extern "C" fn recon_plan_create(
    geometry: *const recon_geometry,
    options: *const recon_options,
    plan: *mut *mut recon_plan,
) -> recon_status {
    // SAFETY: the caller's structures, and arrays as long as they say.
    call(|| unsafe {
        let mut arrays = Arrays::default();
        let out = &mut arrays.output("plan", plan, 1)?[0];
        let scan = Scan::read(geometry)?;
        let raw = if options.is_null() { recon_options::initial() } else { read("options", options)? };
        let options = scan::options(options)?;
        let typed = with_precision!(scan.precision, T => {
            scan.with_geometry::<T, TypedPlan>(&mut arrays, |g| Ok(Plan::new(g, &options)?.into()))
        })?;
        let plan = recon_plan {
            warnings: Mutex::new(plan_warnings(&typed)),
            typed,
            precision: scan.precision.number(),
            window: raw.window,
            on_device: raw.pointers_on_device != 0,
            combines: scan.has_maps(),
            voxels: scan.voxels,
            coils: scan.coils,
            frames: scan.frames,
            dims: scan.dims,
        };
        *out = Box::into_raw(try_box(plan, "the plan")?);
        Ok(())
    })
}

/// Tells the bytes that a plan of this geometry and its operations will take, before it is made: upper estimates,
/// within a fifth of the peaks on the CPU and a quarter on a GPU where these are beyond some MiB. On the CPU each is
/// enough as the memory_limit of a plan for that operation. A GPU's memory that the making of the
/// plan leaves idle is counted, as it stays with the plan until memory lacks; for samples that lie neither evenly nor
/// on spokes it may be more. The caller's arrays are not counted, nor what a GPU's driver takes for itself. Window,
/// grid and device are chosen as recon_plan_create does.
///
/// geometry: its sizes count, and whether weights and coil_maps are NULL. With a field map or decay map these, times and
/// coil_maps are read, since their range decides. What other addresses lead to is not read. With coordinates, which may be NULL, memory->host_coil_maps counts the samples in the centre of k-space, without
/// them all. options: as for recon_plan_create, or NULL. A memory_limit is heeded only where it decides what a plan
/// does: that the plan exceeds it is no error here.
/// memory: written, but for its calibration, which is read.
///
/// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE; RECON_INVALID_ARGUMENT for a calibration
/// that is wider than k-space; RECON_INVALID_SIZE for a size of zero;
/// RECON_SIZE_OVERFLOW; RECON_TOLERANCE_OUT_OF_RANGE; RECON_NO_DEVICE; RECON_DRIVER_INCOMPLETE; RECON_UNSUPPORTED.
#[no_mangle]
pub unsafe extern "C" fn recon_plan_memory(
    geometry: *const recon_geometry,
    options: *const recon_options,
    memory: *mut recon_memory,
) -> recon_status {
    // SAFETY: the caller's structures, and coordinates as many as they say.
    call(|| unsafe {
        let mut arrays = Arrays::default();
        let mut out = Out::new(&mut arrays, "memory", memory)?;
        let scan = Scan::read(geometry)?;
        let options = scan::options(options)?;
        let calibration = out.value.calibration;
        let (found, combine) = with_precision!(scan.precision, T => {
            let scan_size = scan.size::<T>(&mut arrays, size("calibration", calibration.into())?)?;
            let found = Plan::<T>::memory(&scan_size, &options)?;
            let dims = if scan.listed { &[scan.voxels][..] } else { &scan.dims };
            let images = scan.voxels * scan.frames * size_of::<Complex<T>>();
            (found, combine_bytes::<T>(dims, scan.coils, Combine::Adaptive).saturating_add(images))
        });
        let (host, device) = (found.host, found.device);
        out.value = recon_memory {
            host_plan: host.plan as u64,
            host_transform: host.transform as u64,
            host_grid: host.grid as u64,
            host_density: host.density as u64,
            host_density_jackson: host.density_jackson as u64,
            host_fbp: host.fbp as u64,
            device_fbp: device.fbp as u64,
            host_coil_maps: host.coil_maps as u64,
            host_normal: host.normal as u64,
            host_cg: host.cg as u64,
            host_q: host.q as u64,
            device_plan: device.plan as u64,
            device_transform: device.transform as u64,
            device_grid: device.grid as u64,
            device_density: device.density as u64,
            device_density_jackson: device.density_jackson as u64,
            device_coil_maps: device.coil_maps as u64,
            device_normal: device.normal as u64,
            device_cg: device.cg as u64,
            device_q: device.q as u64,
            calibration,
            host_combine: combine as u64,
            ..recon_memory::initial()
        };
        out.write();
        Ok(())
    })
}

/// The warnings of a plan.
fn plan_warnings(plan: &TypedPlan) -> Vec<(u32, CString)> {
    let warnings = match plan {
        TypedPlan::F32(p) => p.warnings(),
        TypedPlan::F64(p) => p.warnings(),
    };
    warnings.iter().map(plan_warning).collect()
}

/// A warning as the C API tells it.
fn plan_warning(warning: &Warning) -> (u32, CString) {
    (warning_number(warning.kind), CString::new(warning.message.replace('\0', " ")).unwrap_or_default())
}

fn warning_number(kind: WarningKind) -> u32 {
    let kind = match kind {
        WarningKind::Extent => WarningNumber::Extent,
        WarningKind::Tolerance => WarningNumber::Tolerance,
        WarningKind::Blades => WarningNumber::Blades,
        WarningKind::Noise => WarningNumber::Noise,
        WarningKind::Compression => WarningNumber::Compression,
        WarningKind::Wraps => WarningNumber::Wraps,
        WarningKind::Times => WarningNumber::Times,
        WarningKind::Threads => WarningNumber::Threads,
        WarningKind::Calibration => WarningNumber::Calibration,
    };
    kind.number()
}

/// What may make the result of this thread's last call other than the one wanted: the warning `index`, from 0. Each was
/// also logged, at RECON_LOG_WARNING. Those of a plan are told by recon_plan_warning.
///
/// kind: a recon_warning, written; RECON_WARNING_NONE when there are no more.
/// text: what was found, and what to do, in UTF-8, written; it lives until this thread's next call of any function but
/// this one and recon_last_error_message. NULL when there are no more.
///
/// Errors: RECON_NULL_POINTER.
#[no_mangle]
pub unsafe extern "C" fn recon_last_warning(index: u64, kind: *mut u32, text: *mut *const c_char) -> recon_status {
    // SAFETY: a number and an address to write.
    call_about_the_last(|| unsafe {
        let mut arrays = Arrays::default();
        let kind = &mut arrays.output("kind", kind, 1)?[0];
        let text = &mut arrays.output("text", text, 1)?[0];
        let found = usize::try_from(index).ok().and_then(status::warning);
        *kind = found.map_or(WarningNumber::None.number(), |(kind, _)| warning_number(kind));
        *text = found.map_or(std::ptr::null(), |(_, text)| text);
        Ok(())
    })
}

/// What may make a plan's images other than those wanted: the warning `index`, from 0. Each was also logged, at
/// RECON_LOG_WARNING, when the plan was made, or when a new trajectory brought the first of its kind.
///
/// kind: a recon_warning, written; RECON_WARNING_NONE when there are no more.
/// text: what was found, and what to do, in UTF-8, written; it lives until the plan goes or gets another trajectory.
/// NULL when there are no more.
///
/// Errors: RECON_NULL_POINTER.
#[no_mangle]
pub unsafe extern "C" fn recon_plan_warning(
    plan: *const recon_plan,
    index: u64,
    kind: *mut u32,
    text: *mut *const c_char,
) -> recon_status {
    // SAFETY: the caller's plan, and a number and an address to write.
    call(|| unsafe {
        let warnings = plan_at(plan)?.warnings.lock().unwrap_or_else(|e| e.into_inner());
        let mut arrays = Arrays::default();
        let kind = &mut arrays.output("kind", kind, 1)?[0];
        let text = &mut arrays.output("text", text, 1)?[0];
        let found = usize::try_from(index).ok().and_then(|i| warnings.get(i));
        *kind = found.map_or(WarningNumber::None.number(), |(kind, _)| *kind);
        *text = found.map_or(std::ptr::null(), |(_, text)| text.as_ptr());
        Ok(())
    })
}

/// Gives back all that a plan holds, its threads included. NULL is allowed. No call with this plan may be running.
#[no_mangle]
pub unsafe extern "C" fn recon_plan_destroy(plan: *mut recon_plan) {
    if !plan.is_null() {
        // SAFETY: made by Box::into_raw in recon_plan_create, and by the caller's promise given back once.
        call_that_frees(|| drop(unsafe { Box::from_raw(plan) }));
    }
}

/// Gives the memory that the library keeps for the next plan back to the system. Without plans this is at most 32 MiB.
/// With plans it is at most as much as the plans hold (at least 32 MiB, at most 1 GiB). Plans that exist lose nothing.
/// On Linux with glibc it also calls malloc_trim(0). Call it after the last plan, or before the library is unloaded. It
/// cannot fail.
#[no_mangle]
pub extern "C" fn recon_release_memory() {
    call_that_frees(release_memory);
}

/// Describes a plan: what was chosen, the lengths of its arrays, the bytes it holds.
///
/// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE; RECON_INVALID_ARGUMENT for a misaligned structure;
/// RECON_SIZE_OVERFLOW where the gridded k-space of all coils and frames would exceed the address space.
#[no_mangle]
pub unsafe extern "C" fn recon_plan_info(
    plan: *const recon_plan,
    properties: *mut recon_plan_properties,
) -> recon_status {
    // SAFETY: the caller's plan and structure.
    call(|| unsafe {
        let plan = plan_at(plan)?;
        let mut out = Out::new(&mut Arrays::default(), "properties", properties)?;
        let info = plan.info();
        let mut grid = [0; 3];
        if !info.grid.is_empty() {
            grid = [0, 1, 2].map(|axis| info.grid.get(axis).map_or(1, |&g| g as u64));
        }
        let (image, kspace, q) = with_plan!(plan, p => (p.image_len(), p.kspace_len(), p.q_len()));
        out.value = recon_plan_properties {
            precision: plan.precision,
            method: info.method.number(),
            window: plan.window,
            width: info.width as u32,
            threads: info.threads as u32,
            toeplitz: info.toeplitz.into(),
            ndim: plan.dims.len() as u32,
            grid,
            oversampling: info.oversampling,
            error: info.error,
            image_elements: image as u64,
            kspace_elements: kspace as u64,
            q_elements: q as u64,
            grid_elements: plan.grid_elements(&info)? as u64,
            host_bytes: info.host_bytes as u64,
            device_bytes: info.device_bytes as u64,
            seconds: info.seconds,
            segments: info.segments as u32,
            nodes: info.nodes as u32,
            ..recon_plan_properties::initial()
        };
        put_text(&mut out.value.device, &info.device);
        put_text(&mut out.value.simd, info.simd);
        out.write();
        Ok(())
    })
}

/// Gives a plan another trajectory, with other weights, and other coil maps where the geometry has some: for real-time
/// and other scans whose trajectory changes from frame to frame. It costs little beside sorting the samples: threads,
/// window, tables, grids and buffers stay, unless another number of samples makes another window or grid the better
/// choice. Results have the same bits as those of a new plan of this geometry and the plan's options.
///
/// geometry: samples, coordinates, coordinate_stride, weights and coil_maps are read: the structure that the plan was
/// made with, with other addresses, will do. Weights that are NULL are an error where the plan has weights, which are
/// those of other samples: recon_plan_set_weights takes them away. Coil maps that are NULL mean those that the plan
/// has. All else must be as the plan was made with: precision, ndim, dims, coils, frames,
/// basis, and the positions in a voxel list. The arrays are not needed afterwards.
///
/// What had been made of the old trajectory is forgotten: Q, also where it was loaded, and the weights that recon_grid
/// computed. recon_plan_info and recon_plan_warning tell of the new one.
///
/// Other threads may use the plan meanwhile, a progress callback may change its own plan, and nobody waits. A call that
/// is under way goes on with the trajectory that it began with. A call that begins after this one has returned uses the
/// new one. With another number of samples k-space arrays have another length: meanwhile no call may begin whose arrays
/// are too short for either. After an error the plan is as it was.
///
/// Errors: those of recon_plan_create for sizes, numbers and memory; RECON_MEMORY_LIMIT where the plan and the new
/// samples exceed the limit together, since both are there until the change is made; RECON_SIZE_MISMATCH for other
/// ndim, dims, voxel_count, coils or frames; RECON_INVALID_ARGUMENT for another precision, basis or voxel list, for
/// coil maps where the plan was made without, and for no weights where it has some; RECON_CANCELLED.
#[no_mangle]
pub unsafe extern "C" fn recon_plan_set_trajectory(
    plan: *mut recon_plan,
    geometry: *const recon_geometry,
) -> recon_status {
    // SAFETY: the caller's plan and structure, and arrays as long as it says.
    call(|| unsafe {
        let plan = plan_at(plan)?;
        let scan = Scan::read(geometry)?;
        if scan.precision.number() != plan.precision {
            let name = |precision: Precision| if precision == Precision::F64 { "double" } else { "single" };
            let own = if scan.precision == Precision::F64 { Precision::F32 } else { Precision::F64 };
            bail!(
                InvalidArgument,
                "the geometry has {} precision, the plan {}: give arrays in the plan's precision, or make a new plan",
                name(scan.precision),
                name(own)
            );
        }
        let mut arrays = Arrays::default();
        match &plan.typed {
            TypedPlan::F32(p) => scan.with_geometry::<f32, ()>(&mut arrays, |g| p.set_trajectory(g)),
            TypedPlan::F64(p) => scan.with_geometry::<f64, ()>(&mut arrays, |g| p.set_trajectory(g)),
        }?;
        // Those of the plan as it is by now, so that of several changes the last counts. Where they are the same, their
        // texts stay where they are.
        let mut warnings = plan.warnings.lock().unwrap_or_else(|e| e.into_inner());
        let now = plan_warnings(&plan.typed);
        if *warnings != now {
            *warnings = now;
        }
        Ok(())
    })
}

/// Gives a plan other density weights. The samples stay sorted; Q, and the weights that recon_grid computed, are
/// forgotten. Other threads may use the plan meanwhile, see recon_plan_set_trajectory.
///
/// weights: real [samples] in the plan's precision, none negative, read; not needed afterwards. NULL: all are 1.
/// count: how many there are, the plan's number of samples; 0 with NULL.
///
/// Errors: RECON_NULL_POINTER for NULL and a count that is not 0; RECON_SIZE_MISMATCH for another count;
/// RECON_NOT_FINITE and RECON_INVALID_ARGUMENT with the index; RECON_MEMORY_LIMIT; RECON_OUT_OF_HOST_MEMORY;
/// RECON_OUT_OF_DEVICE_MEMORY; RECON_CANCELLED. The plan is as it was then.
#[no_mangle]
pub unsafe extern "C" fn recon_plan_set_weights(
    plan: *mut recon_plan,
    weights: *const c_void,
    count: u64,
) -> recon_status {
    // SAFETY: the caller's plan, and an array of as many numbers as it says.
    call(|| unsafe {
        let plan = plan_at(plan)?;
        let count = size("count", count)?;
        change_plan!(plan, p => {
            let given = match count {
                0 if weights.is_null() => None,
                _ => Some(Arrays::default().input("weights", weights.cast(), count)?),
            };
            p.set_weights(given)
        })
    })
}

/// Gives a plan that was made with coil maps others. All else stays, Q among it. Other threads may use the plan
/// meanwhile, see recon_plan_set_trajectory.
///
/// maps: complex [nx, ny, nz, coils] in the plan's precision, read; not needed afterwards.
/// count: how many complex numbers there are: voxels times coils.
///
/// Errors: RECON_NULL_POINTER; RECON_INVALID_ARGUMENT where the plan was made without maps, which decide how many
/// images there are: make a new plan; and where the maps see voxels whose off-resonance or decay is beyond what those
/// before saw; RECON_SIZE_MISMATCH for another count; RECON_NOT_FINITE with the index;
/// RECON_MEMORY_LIMIT where old and new maps exceed the limit together; RECON_OUT_OF_HOST_MEMORY;
/// RECON_OUT_OF_DEVICE_MEMORY; RECON_CANCELLED. The plan is as it was then.
#[no_mangle]
pub unsafe extern "C" fn recon_plan_set_coil_maps(
    plan: *mut recon_plan,
    maps: *const c_void,
    count: u64,
) -> recon_status {
    // SAFETY: the caller's plan, and an array of as many numbers as it says.
    call(|| unsafe {
        let plan = plan_at(plan)?;
        let count = size("count", count)?;
        change_plan!(plan, p => p.set_coil_maps(Arrays::default().input("maps", maps.cast(), count)?))
    })
}

// ---------------------------------------------------------------------------------------------------- transforms

/// kspace = E image: what the scanner would measure.
///
/// image: complex [nx, ny, nz, images, frames], read; images is 1 with coil maps, else coils.
/// kspace: complex [samples, coils, frames], written.
///
/// Errors: RECON_NULL_POINTER; RECON_INVALID_ARGUMENT when the arrays overlap; RECON_NOT_FINITE with the voxel's index;
/// also for a result that overflows; RECON_OUT_OF_HOST_MEMORY.
#[no_mangle]
pub unsafe extern "C" fn recon_forward(
    plan: *const recon_plan,
    image: *const c_void,
    kspace: *mut c_void,
) -> recon_status {
    // SAFETY: the caller's plan, and arrays as long as its geometry says.
    call(|| unsafe { transform!(plan, forward, image: image_len, kspace: kspace_len) })
}

/// image = E^H kspace, unscaled and without weights: F^H d of Stone et al. 2008.
///
/// kspace: complex [samples, coils, frames], read. image: complex [nx, ny, nz, images, frames], written.
///
/// Errors: as recon_forward, RECON_NOT_FINITE with the sample's index.
#[no_mangle]
pub unsafe extern "C" fn recon_fhd(plan: *const recon_plan, kspace: *const c_void, image: *mut c_void) -> recon_status {
    // SAFETY: the caller's plan, and arrays as long as its geometry says.
    call(|| unsafe { transform!(plan, adjoint, kspace: kspace_len, image: image_len) })
}

/// image = E^H W kspace, W being the density weights of the geometry (1 where none were given): the right-hand side
/// that recon_cg solves for. Arrays and errors as recon_fhd.
#[no_mangle]
pub unsafe extern "C" fn recon_weighted_fhd(
    plan: *const recon_plan,
    kspace: *const c_void,
    image: *mut c_void,
) -> recon_status {
    // SAFETY: the caller's plan, and arrays as long as its geometry says.
    call(|| unsafe { transform!(plan, weighted_adjoint, kspace: kspace_len, image: image_len) })
}

/// y = E^H W E x.
///
/// x: complex [nx, ny, nz, images, frames], read. y: the same shape, written.
///
/// Errors: as recon_forward; RECON_MEMORY_LIMIT when Q was asked for and does not fit.
#[no_mangle]
pub unsafe extern "C" fn recon_normal(plan: *const recon_plan, x: *const c_void, y: *mut c_void) -> recon_status {
    // SAFETY: the caller's plan, and arrays as long as its geometry says.
    call(|| unsafe { transform!(plan, normal, x: image_len, y: image_len) })
}

// ---------------------------------------------------------------------------------------------------- reconstruction

/// The gridding reconstruction: the adjoint of density-compensated data, scaled so that a fully sampled object comes
/// back at its own scale. Without weights in the geometry those of Pipe and Menon are computed, with the first call.
///
/// kspace: complex [samples, coils, frames], read. image: complex [nx, ny, nz, images, frames], written.
///
/// Errors: as recon_fhd; RECON_INVALID_ARGUMENT when no sample with a positive weight lies near the centre of k-space
/// (an annulus), where the scale of the image is decided, or when one weight outweighs all others.
#[no_mangle]
pub unsafe extern "C" fn recon_grid(
    plan: *const recon_plan,
    kspace: *const c_void,
    image: *mut c_void,
) -> recon_status {
    // SAFETY: the caller's plan, and arrays as long as its geometry says.
    call(|| unsafe { transform!(plan, grid, kspace: kspace_len, image: image_len) })
}

/// The gridding reconstruction stopped at gridded k-space, before coils are combined. The image of a coil is
/// sum over cells u of grid(u) exp(+i 2 pi u.r / g), times the factors of recon_window_correction along each axis.
///
/// kspace: complex [samples, coils, frames], read.
/// grid: complex [gx, gy, gz, coils, frames] of the oversampled grid that recon_plan_info tells (its grid_elements in
/// all), k = 0 in cell floor(g/2), written.
///
/// Errors: as recon_grid; RECON_UNSUPPORTED with exact sums, which have no grid.
#[no_mangle]
pub unsafe extern "C" fn recon_grid_kspace(
    plan: *const recon_plan,
    kspace: *const c_void,
    grid: *mut c_void,
) -> recon_status {
    // SAFETY: the caller's plan, and arrays as long as its geometry and grid say.
    call(|| unsafe {
        let plan = plan_at(plan)?;
        let elements = plan.grid_elements(&plan.info())?;
        with_plan!(plan, p => {
            let mut arrays = Arrays::default();
            let kspace = arrays.input("kspace", kspace.cast(), p.kspace_len())?;
            let grid = arrays.output("grid", grid.cast(), elements)?;
            if elements == 0 {
                bail!(Unsupported, "there is no grid with exact sums: create the plan with RECON_METHOD_NUFFT");
            }
            p.grid_kspace(kspace, grid)
        })
    })
}

/// The factors along an axis by which an image is multiplied after the FFT of gridded k-space.
///
/// axis: 0 for x. factors: double [dims[axis]], written, whatever the plan's precision.
///
/// Errors: RECON_NULL_POINTER; RECON_INVALID_ARGUMENT for an axis that there is not; RECON_UNSUPPORTED with exact sums.
#[no_mangle]
pub unsafe extern "C" fn recon_window_correction(
    plan: *const recon_plan,
    axis: u32,
    factors: *mut f64,
) -> recon_status {
    // SAFETY: the caller's plan, and an array as long as its geometry says.
    call(|| unsafe {
        let plan = plan_at(plan)?;
        let Some(&n) = plan.dims.get(axis as usize) else {
            bail!(InvalidArgument, "axis is {axis}, but the image has {} axes, counted from 0", plan.dims.len());
        };
        let factors = Arrays::default().results("factors", factors, n)?;
        let correction = with_plan!(plan, p => p.window_correction(axis as usize))?;
        if correction.is_empty() {
            bail!(Unsupported, "there is no window with exact sums: create the plan with RECON_METHOD_NUFFT");
        }
        factors.deliver(&correction)
    })
}

/// Q(delta) = sum_m w_m |phi(k_m)|^2 exp(+i 2 pi k_m.delta), the kernel of E^H W E.
///
/// q: complex [2 nx, 2 ny, 2 nz] (2D: [2 nx, 2 ny]), displacement delta at index delta + n, written; for a voxel list,
/// complex [voxel_count], Q at the positions listed.
///
/// Errors: RECON_NULL_POINTER, RECON_OUT_OF_HOST_MEMORY.
#[no_mangle]
pub unsafe extern "C" fn recon_q(plan: *const recon_plan, q: *mut c_void) -> recon_status {
    // SAFETY: the caller's plan, and an array as long as its geometry says.
    call(|| unsafe { with_plan!(plan_at(plan)?, p => p.q(Arrays::default().output("q", q.cast(), p.q_len())?)) })
}

/// Saves Q, as recon_normal and recon_cg use it, for plans of the same geometry in other sessions; computes it first if
/// need be. `path` is in the file system's encoding (UTF-8 on Windows); a link is followed, a device or a fifo is
/// written into. Several threads and processes may save to one path at once.
///
/// Errors: RECON_NULL_POINTER; RECON_IO when the file cannot be written (the path has what it had before then);
/// RECON_UNSUPPORTED when the plan does not use Q; RECON_MEMORY_LIMIT.
#[no_mangle]
pub unsafe extern "C" fn recon_plan_save_q(plan: *const recon_plan, path: *const c_char) -> recon_status {
    // SAFETY: the caller's plan and C string.
    call(|| unsafe {
        let path = path_at(path)?;
        with_plan!(plan_at(plan)?, p => p.save_q(path))
    })
}

/// Loads Q in place of computing it.
///
/// Errors: RECON_NULL_POINTER; RECON_IO when the file cannot be read; RECON_BAD_FILE when it is cut short, damaged, too
/// long, or belongs to another geometry; RECON_UNSUPPORTED when the plan does not use Q.
#[no_mangle]
pub unsafe extern "C" fn recon_plan_load_q(plan: *const recon_plan, path: *const c_char) -> recon_status {
    // SAFETY: the caller's plan and C string.
    call(|| unsafe {
        let path = path_at(path)?;
        with_plan!(plan_at(plan)?, p => p.load_q(path))
    })
}

/// Solves (E^H W E + lambda R^H R) x = E^H W d by conjugate gradients, each image on its own.
///
/// kspace: complex [samples, coils, frames], read. image: complex [nx, ny, nz, images, frames], written.
/// options: may be NULL for the defaults. report: may be NULL.
///
/// Errors: as recon_fhd; RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE; RECON_INVALID_ARGUMENT,
/// RECON_TOLERANCE_OUT_OF_RANGE and RECON_SIZE_MISMATCH for options that make no sense; RECON_NOT_FINITE on overflow;
/// RECON_MEMORY_LIMIT; RECON_UNSUPPORTED for a prior on differences with a voxel list; RECON_CANCELLED by the progress
/// callback too. Image and report are untouched then.
#[no_mangle]
pub unsafe extern "C" fn recon_cg(
    plan: *const recon_plan,
    kspace: *const c_void,
    image: *mut c_void,
    options: *const recon_cg_options,
    report: *mut recon_cg_report,
) -> recon_status {
    // SAFETY: the caller's plan, structures, and arrays as long as they say.
    call(|| unsafe {
        let plan = plan_at(plan)?;
        let raw = if options.is_null() { recon_cg_options::initial() } else { read("options", options)? };
        let mut arrays = Arrays::default();
        let mut out = match report.is_null() {
            true => None,
            false => Some(Out::new(&mut arrays, "report", report)?),
        };
        let mut history = None;
        if let Some(out) = out.as_ref().filter(|out| !out.value.residuals.is_null()) {
            let rows = size("iterations", raw.iterations.saturating_add(1))?;
            let needed = checked_product(&[rows, plan.images()], "the history of residuals")?;
            if out.value.residual_capacity < needed as u64 {
                bail!(
                    SizeMismatch,
                    "residuals has room for {} numbers, but {needed} are needed: iterations + 1 for each of {} images",
                    out.value.residual_capacity,
                    plan.images()
                );
            }
            history = Some((arrays.output("residuals", out.value.residuals, needed)?, rows));
        }
        let done = with_plan!(plan, p => {
            let kspace = arrays.source("kspace", kspace.cast(), p.kspace_len(), plan.on_device)?;
            let image = arrays.sink("image", image.cast(), p.image_len(), plan.on_device)?;
            let options = scan::cg_options(&mut arrays, &raw, plan.voxels, p.image_len())?;
            p.cg_with_progress(kspace, image, &options, |at| report_progress(&raw, at))
        })?;
        if let Some((residuals, rows)) = history {
            residuals.fill(f64::NAN);
            for (run, to) in done.runs.iter().zip(residuals.chunks_exact_mut(rows)) {
                to[..run.residuals.len()].copy_from_slice(&run.residuals);
            }
        }
        let last = |image: usize| done.runs[image].residuals.last().copied().unwrap_or(0.0);
        if let (Some(out), Some(worst)) = (&mut out, (0..done.runs.len()).max_by(|&a, &b| last(a).total_cmp(&last(b))))
        {
            let (before, run) = (out.value, &done.runs[worst]);
            out.value = recon_cg_report {
                stop: run.stop.number(),
                images: done.runs.len() as u64,
                worst_image: worst as u64,
                iterations: run.iterations() as u64,
                residual: last(worst),
                lambda: done.lambda,
                q_seconds: done.q_seconds,
                adjoint_seconds: done.adjoint_seconds,
                iteration_seconds: done.iteration_seconds,
                ..before
            };
        }
        if let Some(out) = out {
            out.write();
        }
        Ok(())
    })
}

/// # Safety
/// The progress callback of `options` may be called.
unsafe fn report_progress(options: &recon_cg_options, at: &Progress) -> ControlFlow<()> {
    let Some(callback) = options.progress else { return ControlFlow::Continue(()) };
    let progress = recon_progress {
        struct_size: size_of::<recon_progress>() as u32,
        reserved: 0,
        image: at.image as u64,
        images: at.images as u64,
        iteration: at.iteration as u64,
        iterations: at.iterations as u64,
        residual: at.residual,
    };
    // SAFETY: the caller's promise; the structure lives for the call.
    match unsafe { callback(&raw const progress, options.user_data) } {
        0 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    }
}

/// Filtered backprojection of 2D radial data at any angles (Schiwietz et al. 2006): each spoke times the ramp |k| and
/// the filter's window, transformed to positions along its line, and added to every voxel by linear interpolation
/// between positions half a voxel apart or less. Scaled as recon_grid is: a fully sampled object comes back at its own
/// scale. What limits it is that interpolation: it errs by up to a tenth where |k| is near 0.5, and by far less below.
/// Each sample is weighed by the area of k-space that it stands for, whatever the angles of the spokes. recon_grid is
/// faster.
///
/// Spokes are recognised from the trajectory: samples in the order of acquisition, as many on each spoke, evenly spaced
/// on a line through the centre of k-space. They may begin there, or before it, and go on to either side. The
/// geometry's weights are not used; its coil maps and voxel basis are.
///
/// filter: a recon_filter; RECON_FILTER_RAM_LAK is 0.
/// kspace: complex [samples, coils, frames], read. image: complex [nx, ny, images, frames], written.
///
/// Errors: as recon_grid; RECON_UNKNOWN_VALUE; RECON_UNSUPPORTED in 3D and for a list of voxels; RECON_INVALID_ARGUMENT
/// for samples that are not such spokes, with the sample or spoke, and where spokes leave a sector of k-space
/// unmeasured.
#[no_mangle]
pub unsafe extern "C" fn recon_fbp(
    plan: *const recon_plan,
    filter: u32,
    kspace: *const c_void,
    image: *mut c_void,
) -> recon_status {
    // SAFETY: the caller's plan, and arrays as long as its geometry says.
    call(|| unsafe {
        let plan = plan_at(plan)?;
        let filter = choice("filter", filter)?;
        with_plan!(plan, p => {
            let mut arrays = Arrays::default();
            let from = arrays.source("kspace", kspace.cast(), p.kspace_len(), plan.on_device)?;
            p.fbp(filter, from, arrays.sink("image", image.cast(), p.image_len(), plan.on_device)?)
        })
    })
}

/// Density weights for the plan's trajectory, the volume of k-space that each sample stands for.
///
/// method: a recon_density_method.
/// iterations, tolerance: of RECON_DENSITY_PIPE_MENON only: stop after so many iterations, or when the RMS over the
/// samples of C w - 1 changes by less than the tolerance. 0 iterations means 30 and a tolerance of 1e-3.
/// weights: real [samples], written; to be given to recon_plan_set_weights or a new plan, or used by the caller.
///
/// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_VALUE; RECON_INVALID_ARGUMENT for a negative tolerance, for a trajectory
/// that RECON_DENSITY_RAMP is not for, and where no sample lies near the centre of k-space; RECON_OUT_OF_HOST_MEMORY.
#[no_mangle]
pub unsafe extern "C" fn recon_density(
    plan: *const recon_plan,
    method: u32,
    iterations: u64,
    tolerance: f64,
    weights: *mut c_void,
) -> recon_status {
    // SAFETY: the caller's plan, and an array as long as its geometry says.
    call(|| unsafe {
        let plan = plan_at(plan)?;
        let method = choice("method", method)?;
        if method == DensityKind::PipeMenon && !(tolerance >= 0.0) {
            bail!(InvalidArgument, "tolerance is {tolerance}: Pipe-Menon weights need one of 0 or more");
        }
        let pipe_menon = match iterations {
            0 => Density::default(),
            n => Density::PipeMenon { iterations: size("iterations", n)?, tolerance },
        };
        let method = match method {
            DensityKind::PipeMenon => pipe_menon,
            DensityKind::Ramp => Density::Ramp,
            DensityKind::Jackson => Density::Jackson,
        };
        with_plan!(plan, p => {
            let weights = Arrays::default().results("weights", weights.cast(), p.samples())?;
            weights.deliver(&p.density(method)?)
        })
    })
}

/// Coil sensitivities estimated from the data's own centre of k-space: in each voxel the dominant eigenvector of the
/// coils' covariance in a neighbourhood (Walsh et al. 2000), scaled to sum_c |S_c|^2 = 1; frames are averaged.
///
/// Maps are 0 in voxels where the signal of all coils at low resolution is below 1 % of its largest: there is no
/// object.
///
/// It is an estimate. Its phase is that of a virtual coil, not that of the object. It is wrong where sensitivities
/// change faster than the central samples resolve, and where the object is larger than the field of view: measure the
/// maps then, and give them to the plan. Maps are also 0 in the corners of the field of view if samples of spokes or
/// turns of a spiral are about 1/FOV apart: aliases of the object lie there. If gaps between samples narrow the centre
/// below 24 samples, or bring aliases into the field of view, recon_last_warning returns RECON_WARNING_CALIBRATION.
///
/// kspace: complex [samples, coils, frames], read.
/// calibration: the width of that centre in samples of a Cartesian scan; 0 for 24, and in a plane up to 48 if k-space
/// is sampled without gaps so far out. A wider one resolves more, with more noise.
/// maps: complex [nx, ny, nz, coils], written; to be given to a new plan.
///
/// Errors: as recon_fhd; RECON_UNSUPPORTED for a voxel list; RECON_INVALID_ARGUMENT when no sample lies in the centre,
/// if samples are missing from the central 8 (of a Cartesian scan of every second line: estimate maps by a plan over
/// its calibration lines), and for a centre wider than k-space (twice the image's largest size).
#[no_mangle]
pub unsafe extern "C" fn recon_coil_maps(
    plan: *const recon_plan,
    kspace: *const c_void,
    calibration: u64,
    maps: *mut c_void,
) -> recon_status {
    // SAFETY: the caller's plan, and arrays as long as its geometry says.
    call(|| unsafe {
        let plan = plan_at(plan)?;
        let calibration = size("calibration", calibration)?;
        with_plan!(plan, p => {
            let mut arrays = Arrays::default();
            let kspace = arrays.input("kspace", kspace.cast(), p.kspace_len())?;
            let maps = arrays.results("maps", maps.cast(), plan.voxels * plan.coils)?;
            maps.deliver(&p.coil_maps(kspace, calibration)?)
        })
    })
}

/// Combines the images of coils into one, for each frame. Of the geometry, precision, dims (or the voxel list's
/// length), coils and frames are used.
///
/// method: a recon_combine_method.
/// coil_images: complex [nx, ny, nz, coils, frames], read. image: complex [nx, ny, nz, frames], written.
///
/// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_INVALID_SIZE,
/// RECON_SIZE_OVERFLOW; RECON_INVALID_ARGUMENT when the arrays overlap; RECON_NOT_FINITE with the voxel's index;
/// RECON_UNSUPPORTED for a voxel list with RECON_COMBINE_ADAPTIVE; RECON_OUT_OF_HOST_MEMORY.
#[no_mangle]
pub unsafe extern "C" fn recon_combine(
    geometry: *const recon_geometry,
    method: u32,
    coil_images: *const c_void,
    image: *mut c_void,
) -> recon_status {
    // SAFETY: the caller's structure, and arrays as long as it says.
    call(|| unsafe {
        let scan = Scan::read(geometry)?;
        let method = choice("method", method)?;
        with_precision!(scan.precision, T => combine::<T>(&scan, method, coil_images, image))
    })
}

/// # Safety
/// The pointers lead to arrays as long as `scan` says.
unsafe fn combine<T: Real>(scan: &Scan, method: Combine, coil_images: *const c_void, image: *mut c_void) -> Result<()> {
    let (voxels, coils, frames) = (scan.voxels, scan.coils, scan.frames);
    let mut arrays = Arrays::default();
    // SAFETY: the caller's promise; the largest product was checked when the scan was read.
    let (coil_images, image) = unsafe {
        let coil_images = arrays.input::<Complex<T>>("coil_images", coil_images.cast(), voxels * coils * frames)?;
        (coil_images, arrays.results::<Complex<T>>("image", image.cast(), voxels * frames)?)
    };
    if scan.listed && method == Combine::Adaptive {
        bail!(Unsupported, "voxels of a list have no neighbours: use RECON_COMBINE_ROOT_SUM_OF_SQUARES");
    }
    if voxels * coils * frames == 0 {
        bail!(InvalidSize, "{frames} frames of {coils} coil images of {voxels} voxels: nothing to combine");
    }
    let dims = if scan.listed { &[voxels][..] } else { &scan.dims };
    let mut result = try_vec(image.len(), Complex::default(), "the combined images")?;
    for (from, to) in coil_images.chunks_exact(voxels * coils).zip(result.chunks_exact_mut(voxels)) {
        crate::combine(from, dims, coils, method, to)?;
    }
    image.deliver(&result)
}

/// Brings images to a different matrix and field of view: from the encoded matrix, on which they are reconstructed,
/// to the requested one. If the new voxels have a different size, the image is interpolated by Fourier to exactly
/// that size. The field of view need not contain a whole number of new voxels. Then the middle is cut out, or
/// surrounded by zeros. The voxel with index floor(n/2) stays where it is, and the object keeps its scale. Of the
/// geometry, precision, ndim, dims, coils and frames are used.
///
/// fov: [ndim], the field of view that dims cover, in any unit. dims: [ndim], the matrix wanted. dims_fov: [ndim], the
/// field of view that it covers, in that unit. Along an axis where one of these is 0 or less, all voxels have one size;
/// both may be NULL, for all axes.
/// images: complex [nx, ny, nz, coils, frames], read. resized: complex [dims, coils, frames], written.
///
/// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE; RECON_INVALID_SIZE for a size of 0;
/// RECON_SIZE_OVERFLOW; RECON_INVALID_ARGUMENT when the arrays overlap; RECON_NOT_FINITE with the voxel's index;
/// RECON_UNSUPPORTED for a voxel list; RECON_OUT_OF_HOST_MEMORY.
#[no_mangle]
pub unsafe extern "C" fn recon_resize(
    geometry: *const recon_geometry,
    fov: *const f64,
    dims: *const u64,
    dims_fov: *const f64,
    images: *const c_void,
    resized: *mut c_void,
) -> recon_status {
    // SAFETY: the caller's structure, and arrays as long as it says.
    call(|| unsafe {
        let scan = Scan::read(geometry)?;
        if scan.listed {
            bail!(Unsupported, "voxels of a list have no matrix: leave voxels and voxel_count unset");
        }
        let ndim = scan.dims.len();
        let mut arrays = Arrays::default();
        let wanted = arrays.input("dims", dims, ndim)?;
        let wanted = wanted.iter().map(|&n| size("dims", n)).collect::<Result<Vec<_>>>()?;
        let fov = arrays.optional("fov", fov, ndim)?.unwrap_or(&[0.0; 3][..ndim]);
        let dims_fov = arrays.optional("dims_fov", dims_fov, ndim)?.unwrap_or(&[0.0; 3][..ndim]);
        let resize = Resize::new(&scan.dims, fov, &wanted, dims_fov)?;
        let voxels = checked_product(&wanted, "the image wanted")?;
        checked_product(&[voxels, scan.coils, scan.frames], "the images wanted")?;
        with_precision!(scan.precision, T => {
            let count = scan.coils * scan.frames;
            let images = arrays.input::<Complex<T>>("images", images.cast(), scan.voxels * count)?;
            let resized = arrays.results::<Complex<T>>("resized", resized.cast(), voxels * count)?;
            if count == 0 {
                bail!(InvalidSize, "{} frames of {} coils: there are no images", scan.frames, scan.coils);
            }
            let mut result = try_vec(resized.len(), Complex::default(), "the images wanted")?;
            for (from, to) in images.chunks_exact(scan.voxels).zip(result.chunks_exact_mut(voxels)) {
                resize.apply(from, to)?;
            }
            resized.deliver(&result)
        })
    })
}

// ---------------------------------------------------------------------------------------------------- trajectories

fn spoke_order(order: u32) -> Result<SpokeOrder> {
    choice("order", order)
}

/// Checks the caller's coordinate arrays of as many elements as the product of `counts`, then makes and writes the
/// trajectory.
///
/// # Safety
/// The pointers lead to arrays of the precision's type and that length.
unsafe fn write_trajectory(
    precision_number: u32,
    counts: &[u64],
    axes: &[(&'static str, *mut c_void)],
    make: impl FnOnce(&[usize]) -> Result<Trajectory>,
) -> Result<()> {
    let precision = precision(precision_number)?;
    let counts = counts.iter().map(|&n| size("a count", n)).collect::<Result<Vec<_>>>()?;
    let samples = checked_product(&counts, "a trajectory")?;
    with_precision!(precision, T => {
        let mut arrays = Arrays::default();
        let mut outputs: Vec<Results<'_, T>> = Vec::new();
        for (name, pointer) in axes {
            // SAFETY: the caller's promise.
            outputs.push(unsafe { arrays.results(name, pointer.cast(), samples) }?);
        }
        let trajectory = make(&counts)?;
        let mut axes = Vec::new();
        for axis in 0..outputs.len() {
            let k = trajectory.axis(axis).iter().map(|&k| T::coordinate(k));
            axes.push(try_collect(samples, "a trajectory", k)?);
        }
        let accepted = outputs.into_iter().zip(&axes).map(|(out, k)| out.accept(k)).collect::<Result<Vec<_>>>()?;
        accepted.into_iter().for_each(Accepted::write);
        Ok(())
    })
}

/// A fully sampled Cartesian grid: k = (index - floor(n/2)) / n on each axis, x fastest.
///
/// precision: a recon_precision, that of the coordinates; so for every generator.
/// ndim: 1 to 3. dims: [ndim].
/// kx, ky, kz: real [product of dims] each, written; those beyond ndim may be NULL.
///
/// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_VALUE; RECON_INVALID_SIZE for zero; RECON_SIZE_OVERFLOW;
/// RECON_INVALID_ARGUMENT when arrays overlap; RECON_OUT_OF_HOST_MEMORY; so for every generator.
#[no_mangle]
pub unsafe extern "C" fn recon_trajectory_cartesian(
    precision: u32,
    ndim: u32,
    dims: *const u64,
    kx: *mut c_void,
    ky: *mut c_void,
    kz: *mut c_void,
) -> recon_status {
    // SAFETY: the caller's arrays, of the lengths documented.
    call(|| unsafe {
        if !(1..=3).contains(&ndim) {
            bail!(InvalidSize, "ndim is {ndim}: a Cartesian grid has 1 to 3 axes");
        }
        let ndim = ndim as usize;
        let dims = Arrays::default().input("dims", dims, ndim)?;
        let axes = [("kx", kx), ("ky", ky), ("kz", kz)];
        write_trajectory(precision, dims, &axes[..ndim], Trajectory::cartesian)
    })
}

/// 2D spokes through the centre: sample j of a spoke at the signed radius (j - floor(samples/2)) / samples.
///
/// order: a recon_spoke_order. kx, ky: real [samples, spokes] each, written.
#[no_mangle]
pub unsafe extern "C" fn recon_trajectory_radial2d(
    precision: u32,
    spokes: u64,
    samples: u64,
    order: u32,
    kx: *mut c_void,
    ky: *mut c_void,
) -> recon_status {
    // SAFETY: the caller's arrays, of the lengths documented.
    call(|| unsafe {
        let order = spoke_order(order)?;
        write_trajectory(precision, &[spokes, samples], &[("kx", kx), ("ky", ky)], |n| {
            Trajectory::radial2d(n[0], n[1], order)
        })
    })
}

/// A stack of stars: the spokes of recon_trajectory_radial2d, the same in each partition; partition q lies at
/// kz = (q - floor(partitions/2)) / partitions.
///
/// order: a recon_spoke_order. kx, ky, kz: real [samples, spokes, partitions] each, written.
#[no_mangle]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn recon_trajectory_stack_of_stars(
    precision: u32,
    spokes: u64,
    samples: u64,
    partitions: u64,
    order: u32,
    kx: *mut c_void,
    ky: *mut c_void,
    kz: *mut c_void,
) -> recon_status {
    // SAFETY: the caller's arrays, of the lengths documented.
    call(|| unsafe {
        let order = spoke_order(order)?;
        let axes = [("kx", kx), ("ky", ky), ("kz", kz)];
        write_trajectory(precision, &[spokes, samples, partitions], &axes, |n| {
            Trajectory::stack_of_stars(n[0], n[1], n[2], order)
        })
    })
}

/// 3D spokes through the centre, evenly spread over the sphere by a spiral from pole to equator.
///
/// kx, ky, kz: real [samples, spokes] each, written.
#[no_mangle]
pub unsafe extern "C" fn recon_trajectory_radial3d(
    precision: u32,
    spokes: u64,
    samples: u64,
    kx: *mut c_void,
    ky: *mut c_void,
    kz: *mut c_void,
) -> recon_status {
    // SAFETY: the caller's arrays, of the lengths documented.
    call(|| unsafe {
        write_trajectory(precision, &[spokes, samples], &[("kx", kx), ("ky", ky), ("kz", kz)], |n| {
            Trajectory::radial3d(n[0], n[1])
        })
    })
}

/// 2D spirals from the centre outwards: sample j at the radius 0.5 u^density and the angle
/// 2 pi (turns u + p / interleaves), u = j / samples, p the interleaf.
///
/// turns: of an interleaf. density: 1 for the Archimedean spiral, more for a centre sampled more densely.
/// kx, ky: real [samples, interleaves] each, written.
///
/// Errors: also RECON_INVALID_ARGUMENT unless turns and density are positive and finite.
#[no_mangle]
pub unsafe extern "C" fn recon_trajectory_spiral(
    precision: u32,
    interleaves: u64,
    samples: u64,
    turns: f64,
    density: f64,
    kx: *mut c_void,
    ky: *mut c_void,
) -> recon_status {
    // SAFETY: the caller's arrays, of the lengths documented.
    call(|| unsafe {
        write_trajectory(precision, &[interleaves, samples], &[("kx", kx), ("ky", ky)], |n| {
            Trajectory::spiral(n[0], n[1], turns, density)
        })
    })
}

/// 2D rosettes: k = 0.5 sin(2 pi radial u) exp(i 2 pi angular u), u = j / samples, each shot turned by a golden angle.
///
/// radial, angular: oscillations and turns of a shot. kx, ky: real [samples, shots] each, written.
///
/// Errors: also RECON_INVALID_ARGUMENT unless both are positive and finite.
#[no_mangle]
pub unsafe extern "C" fn recon_trajectory_rosette(
    precision: u32,
    shots: u64,
    samples: u64,
    radial: f64,
    angular: f64,
    kx: *mut c_void,
    ky: *mut c_void,
) -> recon_status {
    // SAFETY: the caller's arrays, of the lengths documented.
    call(|| unsafe {
        write_trajectory(precision, &[shots, samples], &[("kx", kx), ("ky", ky)], |n| {
            Trajectory::rosette(n[0], n[1], radial, angular)
        })
    })
}

/// PROPELLER blades: strips of parallel lines, 1 / samples apart, turned about the centre.
///
/// kx, ky: real [samples, lines, blades] each, written.
///
/// Errors: also RECON_INVALID_ARGUMENT when 2 lines > samples, a blade wider than half of k-space.
#[no_mangle]
pub unsafe extern "C" fn recon_trajectory_propeller(
    precision: u32,
    blades: u64,
    lines: u64,
    samples: u64,
    kx: *mut c_void,
    ky: *mut c_void,
) -> recon_status {
    // SAFETY: the caller's arrays, of the lengths documented.
    call(|| unsafe {
        write_trajectory(precision, &[blades, lines, samples], &[("kx", kx), ("ky", ky)], |n| {
            Trajectory::propeller(n[0], n[1], n[2])
        })
    })
}

// ---------------------------------------------------------------------------------------------------- phantoms

/// The phantom of a caller's table, or the head of Shepp and Logan.
///
/// # Safety
/// `shapes` is null or leads to 10 `count` numbers.
unsafe fn phantom(arrays: &mut Arrays, ndim: usize, shapes: *const f64, count: u64) -> Result<Phantom> {
    if shapes.is_null() && count == 0 {
        return Ok(if ndim == 2 { Phantom::shepp_logan_2d() } else { Phantom::shepp_logan_3d() });
    }
    let numbers = checked_product(&[10, size("shape_count", count)?], "the phantom")?;
    // SAFETY: the caller's promise.
    let table = unsafe { arrays.input("shapes", shapes, numbers) }?;
    let triple = |row: &[f64]| [row[0], row[1], row[2]];
    let shapes = table.chunks_exact(10).map(|row| Ellipsoid {
        density: row[0],
        centre: triple(&row[1..]),
        semi_axes: triple(&row[4..]),
        angles: triple(&row[7..]),
    });
    Phantom::new(ndim, try_collect(numbers / 10, "the phantom", shapes)?)
}

/// The k-space of a phantom of ellipses (2D) or ellipsoids (3D), from its analytic Fourier transform. Of the geometry,
/// precision, dims, samples, coordinates, coils and frames are used; all frames are alike.
///
/// Where the geometry has field_map or decay_map, with times, the k-space has off-resonance and decay: direct sums over
/// small boxes of the phantom, 4 a voxel and axis in 2D and 2 in 3D, with maps interpolated linearly between voxels, on
/// the CPU. They take a time of samples times boxes. Their relative l2 error is below 1e-3.
///
/// shapes: double [10, shape_count]: density, centre x y z, semi-axes, Euler angles phi theta psi in radians (turned by
/// Rz(phi) Ry(theta) Rz(psi)) of each; [-1, 1] spans the field of view. NULL and 0 for the head of Shepp and Logan,
/// with raised contrast.
/// coil_model: a recon_coil_model; RECON_COILS_UNIFORM is for one coil.
/// threads: the most to use; 0 for as many as the machine runs at once. The result does not depend on it.
/// kspace: complex [samples, coils, frames], written, in units of density times voxels.
///
/// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_INVALID_SIZE,
/// RECON_SIZE_OVERFLOW; RECON_SIZE_MISMATCH for several uniform coils; RECON_NOT_FINITE with the index;
/// RECON_INVALID_ARGUMENT for a shape that makes no sense, for maps without times or times without maps, and for a
/// phantom that reaches out of the maps; RECON_UNSUPPORTED for maps of a list of voxels;
/// RECON_COORDINATE_OUT_OF_RANGE with maps; RECON_OUT_OF_HOST_MEMORY.
#[no_mangle]
pub unsafe extern "C" fn recon_phantom_kspace(
    geometry: *const recon_geometry,
    shapes: *const f64,
    shape_count: u64,
    coil_model: u32,
    threads: u32,
    kspace: *mut c_void,
) -> recon_status {
    // SAFETY: the caller's structure, and arrays as long as it says.
    call(|| unsafe {
        let scan = Scan::read(geometry)?;
        let ring = choice::<CoilKind>("coil_model", coil_model)? == CoilKind::Ring;
        if scan.frames == 0 {
            bail!(InvalidSize, "frames is 0: at least one is needed");
        }
        if !ring && scan.coils != 1 {
            bail!(SizeMismatch, "coils is {}: use RECON_COILS_RING, or 1 coil with RECON_COILS_UNIFORM", scan.coils);
        }
        let mut arrays = Arrays::default();
        let phantom = phantom(&mut arrays, scan.dims.len(), shapes, shape_count)?;
        let coils = if ring { Some(CoilModel::ring(scan.coils, scan.dims.len())?) } else { None };
        with_precision!(scan.precision, T => {
            let k = scan.coordinates::<T>(&mut arrays)?;
            let len = scan.samples * scan.coils * scan.frames;
            let kspace = arrays.results::<Complex<T>>("kspace", kspace.cast(), len)?;
            let mut wide = Vec::new();
            for k in &k {
                let mut axis = try_vec(k.len(), 0.0, "coordinates")?;
                axis.iter_mut().zip(k.iter()).for_each(|(to, from)| *to = from.wide());
                wide.push(axis);
            }
            let axes: Vec<&[f64]> = wide.iter().map(|k| &k[..]).collect();
            let given = scan.off_resonance::<T>(&mut arrays)?;
            let mut maps: [Option<Vec<f64>>; 3] = Default::default();
            for (own, given) in maps.iter_mut().zip(given) {
                let Some(given) = given else { continue };
                *own = Some(try_collect(given.len(), "maps", given.iter().map(|x| x.wide()))?);
            }
            let mut geometry = Geometry::new(&scan.dims, &axes);
            (geometry.field_map, geometry.decay_map) = (maps[0].as_deref(), maps[1].as_deref());
            geometry.times = maps[2].as_deref();
            if scan.listed && geometry.times.is_some() {
                bail!(Unsupported, "maps of a list of voxels have no neighbours to interpolate between: leave it out");
            }
            let options = Options { device: Device::Cpu, threads: threads as usize, ..Options::default() };
            let boxes = subdivision(scan.dims.len());
            let values = phantom_kspace(&phantom, &geometry, coils.as_ref(), boxes, &options)?;
            let frames = values.iter().cycle().take(len).map(|&z| narrow(z));
            let frames = try_collect(len, "the k-space of a phantom", frames)?;
            kspace.deliver(&frames)
        })
    })
}

/// The image of a phantom. Of the geometry, precision and dims are used.
///
/// shapes, shape_count: as for recon_phantom_kspace.
/// supersample: points a voxel and axis over which the density is averaged; 1 takes it at the voxel's centre.
/// image: complex [nx, ny, nz], written, with imaginary parts of 0.
///
/// Errors: as recon_phantom_kspace; RECON_INVALID_SIZE for a supersample of 0.
#[no_mangle]
pub unsafe extern "C" fn recon_phantom_image(
    geometry: *const recon_geometry,
    shapes: *const f64,
    shape_count: u64,
    supersample: u64,
    image: *mut c_void,
) -> recon_status {
    // SAFETY: the caller's structure, and arrays as long as it says.
    call(|| unsafe {
        let scan = Scan::read(geometry)?;
        let supersample = size("supersample", supersample)?;
        let mut arrays = Arrays::default();
        let phantom = phantom(&mut arrays, scan.dims.len(), shapes, shape_count)?;
        with_precision!(scan.precision, T => {
            let voxels = scan.dims.iter().product();
            let image = arrays.results::<Complex<T>>("image", image.cast(), voxels)?;
            let values = phantom.image(&scan.dims, supersample)?;
            let values = values.iter().map(|&v| Complex::new(T::of(v), T::ZERO));
            image.deliver(&try_collect(voxels, "the image of a phantom", values)?)
        })
    })
}

/// The sensitivities of RECON_COILS_RING. Of the geometry, precision, dims and coils are used.
///
/// maps: complex [nx, ny, nz, coils], written.
///
/// Errors: as recon_phantom_kspace.
#[no_mangle]
pub unsafe extern "C" fn recon_phantom_coil_maps(geometry: *const recon_geometry, maps: *mut c_void) -> recon_status {
    // SAFETY: the caller's structure, and an array as long as it says.
    call(|| unsafe {
        let scan = Scan::read(geometry)?;
        with_precision!(scan.precision, T => {
            let elements = checked_product(&[&scan.dims[..], &[scan.coils]].concat(), "coil maps")?;
            let maps = Arrays::default().results::<Complex<T>>("maps", maps.cast(), elements)?;
            let values = CoilModel::ring(scan.coils, scan.dims.len())?.maps(&scan.dims)?;
            maps.deliver(&try_collect(elements, "coil maps", values.iter().map(|&z| narrow(z)))?)
        })
    })
}

/// Adds complex white Gaussian noise to data, the same for the same seed on every platform. Of the geometry, precision,
/// samples, coils and frames are used.
///
/// snr: root mean square magnitude of the data, all coils together, over that of the noise; not in dB.
/// kspace: complex [samples, coils, frames], read and written.
/// deviation: receives the noise's root mean square magnitude. Or NULL.
///
/// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_INVALID_SIZE, RECON_SIZE_OVERFLOW; RECON_NOT_FINITE
/// with the index; RECON_INVALID_ARGUMENT for an snr that is not positive and finite, or for data of zeros.
#[no_mangle]
pub unsafe extern "C" fn recon_add_noise(
    geometry: *const recon_geometry,
    snr: f64,
    seed: u64,
    kspace: *mut c_void,
    deviation: *mut f64,
) -> recon_status {
    // SAFETY: the caller's structure, and arrays as long as it says.
    call(|| unsafe {
        let scan = Scan::read(geometry)?;
        let mut arrays = Arrays::default();
        with_precision!(scan.precision, T => {
            let len = scan.samples * scan.coils * scan.frames;
            let kspace = arrays.results::<Complex<T>>("kspace", kspace.cast(), len)?;
            let deviation = arrays.optional_results("deviation", deviation, 1)?;
            let mut noisy = try_collect(len, "noisy data", kspace.before().iter().map(|&z| wide(z)))?;
            let sigma = crate::simulation::phantom::add_noise(&mut noisy, snr, seed)?;
            let noisy = try_collect(len, "noisy data", noisy.iter().map(|&z| narrow(z)))?;
            let kspace = kspace.accept(&noisy)?;
            if let Some(deviation) = deviation {
                deviation.deliver(&[sigma])?;
            }
            kspace.write();
            Ok(())
        })
    })
}

/// How far an image is from the truth. Of the geometry, precision and dims (or the voxel list's length) are used.
///
/// image, truth: complex [nx, ny, nz], read.
/// mask: [nx, ny, nz] bytes; voxels where it is 0 are left out. Or NULL: all count.
/// part: a recon_part. scale: a recon_scale.
/// quality: written.
///
/// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE; RECON_INVALID_SIZE when no voxel is left
/// to compare; RECON_SIZE_OVERFLOW; RECON_NOT_FINITE with the index; RECON_INVALID_ARGUMENT for a truth of zeros.
#[no_mangle]
pub unsafe extern "C" fn recon_metrics(
    geometry: *const recon_geometry,
    image: *const c_void,
    truth: *const c_void,
    mask: *const u8,
    part: u32,
    scale: u32,
    quality: *mut recon_quality,
) -> recon_status {
    // SAFETY: the caller's structures, and arrays as long as the geometry says.
    call(|| unsafe {
        let scan = Scan::read(geometry)?;
        let magnitude = choice::<Part>("part", part)? == Part::Magnitude;
        let scale = choice("scale", scale)?;
        let mut arrays = Arrays::default();
        let mut out = Out::new(&mut arrays, "quality", quality)?;
        let kept = match arrays.optional("mask", mask, scan.voxels)? {
            None => None,
            Some(mask) => {
                let mut kept = try_vec(mask.len(), false, "the mask")?;
                kept.iter_mut().zip(mask).for_each(|(kept, byte)| *kept = *byte != 0);
                Some(kept)
            }
        };
        let m = with_precision!(scan.precision, T => {
            let image = arrays.input::<Complex<T>>("image", image.cast(), scan.voxels)?;
            let truth = arrays.input::<Complex<T>>("truth", truth.cast(), scan.voxels)?;
            match magnitude {
                false => crate::simulation::metrics::compare(image, truth, scale, kept.as_deref())?,
                true => crate::simulation::metrics::compare_magnitude(image, truth, scale, kept.as_deref())?,
            }
        });
        out.value = recon_quality {
            percent_error: m.percent_error,
            mse: m.mse,
            psnr_db: m.psnr_db,
            snr_db: m.snr_db,
            scale_re: m.scale.re,
            scale_im: m.scale.im,
            ..recon_quality::initial()
        };
        out.write();
        Ok(())
    })
}
