//! The public structures and enumerations of the C API, and how versions of them are told apart.

use super::enumerations::Enumeration;
use super::versioned::{versioned, Versioned};
use crate::base::defaults;
use crate::propeller::PropellerOptions;
use crate::reconstruction::field_map::FieldMapOptions;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};

/// Receives one line of the log, without line end. May be called from any thread and from several at once, and while a
/// call of this library is running; it must return normally (no exception, no longjmp). What it makes the library log
/// itself is dropped.
pub type recon_log_callback = Option<unsafe extern "C" fn(level: u32, message: *const c_char, user_data: *mut c_void)>;

/// Where a solution stands.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_progress {
    /// Size of this structure in the library's version, in bytes: fields beyond it are not there.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// The image being solved for, from 0.
    pub image: u64,
    /// How many there are: frames with coil maps, coils times frames without.
    pub images: u64,
    /// Iterations done for this image.
    pub iteration: u64,
    /// The most there will be.
    pub iterations: u64,
    /// Norm of the residual relative to that of E^H W d.
    pub residual: f64,
}

/// Called before the first and after each iteration of recon_cg, by the thread that called recon_cg. Zero continues;
/// anything else ends the call with RECON_CANCELLED and leaves the image untouched. It may use the plan, but must not
/// destroy it, and must return normally (no exception, no longjmp).
pub type recon_progress_callback =
    Option<unsafe extern "C" fn(progress: *const recon_progress, user_data: *mut c_void) -> c_int>;

/// Asked whether the running call is to end, by the thread that made the call and no other. Zero continues; anything
/// else ends the call with RECON_CANCELLED. It should take some microseconds at most, must not use the plan, and must
/// return normally (no exception, no longjmp).
pub type recon_interrupt_callback = Option<unsafe extern "C" fn(user_data: *mut c_void) -> c_int>;

/// A scan: the trajectory, the image, the coils. Set it up with recon_geometry_init, then fill in at least dims,
/// samples and coordinates. The arrays are only read, and only during the call that is given the structure.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_geometry {
    /// Set by recon_geometry_init.
    pub struct_size: u32,
    /// A recon_precision: the type of every array here and of the plan; default RECON_F32.
    pub precision: u32,
    /// Dimensions of image and trajectory: 2 (default) or 3.
    pub ndim: u32,
    /// A recon_basis; default RECON_BASIS_POINT.
    pub basis: u32,
    /// Voxels along x, y, and with ndim 3 along z. With a voxel list, the field of view in voxels.
    pub dims: [u64; 3],
    /// Samples of one coil and frame.
    pub samples: u64,
    /// k-space coordinates along x, y, z in cycles per voxel, within [-0.5, 0.5]: [samples] reals each. What lies
    /// outside by no more than 1e-6 is taken for the edge.
    pub coordinates: [*const c_void; 3],
    /// Reals from one sample's coordinate to the next's. 0 or 1: separate arrays. Of one array with all coordinates of
    /// a sample together: ndim, with the addresses of its first ndim elements as coordinates.
    pub coordinate_stride: u64,
    /// Density weights, none negative: [samples] reals. Or NULL: all are 1 (and recon_grid computes its own).
    pub weights: *const c_void,
    /// Receive coils; default 1.
    pub coils: u64,
    /// Coil sensitivities: complex [nx, ny, nz, coils]. With them coils are combined into one image; NULL: one image
    /// for each coil.
    pub coil_maps: *const c_void,
    /// Frames measured on this trajectory, reconstructed independently; default 1.
    pub frames: u64,
    /// Positions of voxels in place of the grid, in voxels from its origin: [voxel_count] reals for each axis. Or NULL.
    /// Then nx ny nz is voxel_count in all shapes here, and only exact sums are possible. Positions are at most 262,144
    /// voxels from the origin with f32, 1.4e14 with f64: beyond, the numbers do not determine the phase.
    pub voxels: [*const c_void; 3],
    /// As coordinate_stride, for voxels.
    pub voxel_stride: u64,
    /// Voxels in the list; 0 without one.
    pub voxel_count: u64,
    /// Off-resonance f in Hz: [nx, ny, nz] reals. The model then has the factor exp(-i 2 pi f t). It wants times. Or
    /// NULL. f t is at most 131,072 turns, and a map whose range takes too many terms is refused, in voxels that a coil
    /// sees: the message names voxel and frequency.
    pub field_map: *const c_void,
    /// Time t of each sample in seconds from the excitation or the echo, for field_map and decay_map: [samples] reals.
    /// Or NULL without these.
    pub times: *const c_void,
    /// Decay rates R (R2*) in 1/s, none negative: [nx, ny, nz] reals. The model then has the factor exp(-R t). It wants
    /// times. Or NULL. Single voxels may decay as fast as noise in a map makes them, up to R of 5,000 over the duration
    /// of the readout. If even the slowest voxel has R t above 60, plan creation fails and names voxel and rate.
    pub decay_map: *const c_void,
}

/// How a plan computes. Set it up with recon_options_init.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_options {
    /// Set by recon_options_init.
    pub struct_size: u32,
    /// A recon_method; default RECON_METHOD_AUTO.
    pub method: u32,
    /// A recon_normal_operator; default RECON_NORMAL_AUTO.
    pub normal: u32,
    /// A recon_window; default RECON_WINDOW_MINIMAX.
    pub window: u32,
    /// A recon_device; default RECON_DEVICE_AUTO.
    pub device: u32,
    /// Indices in device_indices; 0 for the first GPU. Several share the work: coils with NUFFT, voxels with exact
    /// sums; under a memory limit, and where there is nothing to share, the first does it alone.
    pub device_count: u32,
    /// Which devices, for RECON_DEVICE_CUDA: [device_count]. Or NULL.
    pub device_indices: *const u32,
    /// CPU threads, the caller's among them; the others start with the plan and end with it. 0 (default): as many as
    /// the machine runs at once. Where the system refuses some, the plan computes with the others, and the log has a
    /// warning.
    pub threads: u32,
    /// Not 0: the k-space and image arrays of recon_forward, recon_fhd, recon_weighted_fhd, recon_normal, recon_grid
    /// and recon_cg are addresses in the GPU's memory. All else stays in the host's.
    pub pointers_on_device: u32,
    /// Relative l2 error of a transform against the exact sums, in (0, 1). 0 (default): 1e-5. It is kept wherever
    /// samples are, few or hundreds of thousands in one place; an entry of E, all of which have size 1, errs by at most
    /// five times as much. Exact sums err by rounding only; over a voxel list on a GPU in f32 the special function
    /// units make the sines (the sums' error is about 2e-6), unless the tolerance is below 1e-5, which takes 2.5 times
    /// the time.
    pub tolerance: f64,
    /// Bytes that the plan and its operations may hold beyond the caller's arrays. 0 (default): no limit.
    pub memory_limit: u64,
    /// A recon_simd; default RECON_SIMD_AUTO. RECON_UNSUPPORTED when the processor lacks the level.
    pub simd: u32,
    /// Not 0: the GPU's work is queued on stream. 0 (default): on a stream of the plan's own, and calls return when
    /// their results are there.
    pub use_stream: u32,
    /// A CUstream or cudaStream_t of the GPU's primary context that outlives the plan; NULL is the default stream.
    /// Calls whose arrays are all on the GPU then may return before their results are there: they are for what is
    /// queued next.
    pub stream: *mut c_void,
    /// Called now and then while the plan is made and in every call with it: about fifty times a second, less often
    /// where the work allows no more (one NUFFT of a large image). Once it says so the call ends; the plan is as good
    /// as before. For outputs to be untouched then, exact sums, Q, and transforms of several coils or frames are
    /// computed apart, in memory of the output's size that memory_limit counts. With pointers_on_device transforms only
    /// ask before they begin, and several GPUs that share work are not interrupted while they do their parts. Or NULL
    /// (default).
    pub interrupt: recon_interrupt_callback,
    /// Handed to interrupt; to be there until the plan is destroyed.
    pub interrupt_data: *mut c_void,
    /// Grid size over image size, 1.25 to 2.5. 0 (default): one between 1.25 and 2 that keeps the tolerance. The grid
    /// of each axis is the next larger size that has a fast FFT, and at least two windows wide. RECON_INVALID_ARGUMENT
    /// where sums are exact, which have no grid.
    pub oversampling: f64,
    /// Width of the window in grid cells, 2 to 16 (with RECON_WINDOW_BILINEAR 2). 0 (default): one that keeps the
    /// tolerance. RECON_INVALID_ARGUMENT where sums are exact. Width and oversampling may be named each alone or both:
    /// what is not named is chosen so that the tolerance is kept at the least cost. Where it cannot be, a tolerance
    /// that is named is RECON_TOLERANCE_OUT_OF_RANGE, with a text that says what would keep it. Without one the plan is
    /// made: recon_plan_info tells its error, and RECON_WARNING_TOLERANCE that it is above the default.
    pub width: u32,
    /// Zero.
    pub reserved: u32,
}

/// What a plan is. Set it up with recon_plan_properties_init.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_plan_properties {
    /// Set by recon_plan_properties_init.
    pub struct_size: u32,
    /// A recon_precision.
    pub precision: u32,
    /// A recon_method: RECON_METHOD_EXACT or RECON_METHOD_NUFFT.
    pub method: u32,
    /// A recon_window, the one asked for; of no effect with exact sums.
    pub window: u32,
    /// Width of the window in grid cells; 0 with exact sums.
    pub width: u32,
    /// Number of CPU threads that compute, the caller's included: fewer than asked for if the system refused some.
    pub threads: u32,
    /// 1 when E^H W E goes through Q, else 0.
    pub toeplitz: u32,
    /// Dimensions.
    pub ndim: u32,
    /// The oversampled grid [gx, gy, gz] (gz is 1 in 2D); zeros with exact sums.
    pub grid: [u64; 3],
    /// Grid size over image size, of the axis where it is least.
    pub oversampling: f64,
    /// The relative l2 error expected of a transform. It is at most the tolerance if that chose the window. For a
    /// window of a given width and oversampling it is the error for evenly spread samples. If all samples are at the
    /// edge of k-space, the error is up to 3.3 times as large.
    pub error: f64,
    /// Complex elements of an image array: voxels times images times frames.
    pub image_elements: u64,
    /// Complex elements of a k-space array: samples times coils times frames.
    pub kspace_elements: u64,
    /// Complex elements of Q.
    pub q_elements: u64,
    /// Complex elements of gridded k-space, grid times coils times frames; 0 with exact sums.
    pub grid_elements: u64,
    /// Bytes held on the host, Q included once it is there.
    pub host_bytes: u64,
    /// Bytes held on GPUs.
    pub device_bytes: u64,
    /// Seconds that the plan took to make, or its last change (recon_plan_set_trajectory and the like).
    pub seconds: f64,
    /// The device in words, ending in 0.
    pub device: [c_char; 64],
    /// The vector unit in use, ending in 0: "sse", "avx2", "avx512" or "avx512-256" (see RECON_SIMD_AUTO) on x86-64,
    /// else "portable"; "none" on a GPU.
    pub simd: [c_char; 32],
    /// With a field map or a decay map, the transforms without that make one transform with: their number follows from
    /// the tolerance. 0 without, and with exact sums.
    pub segments: u32,
    /// With a field map or a decay map, the convolutions that E^H W E is the sum of; 0 without, and where it goes
    /// through transforms.
    pub nodes: u32,
}

/// Bytes that a plan and its operations take, at their peaks, beyond the caller's arrays: see recon_plan_memory. Set it
/// up with recon_memory_init.
///
/// Each figure is that of a plan that serves this one operation, the plan included. Q stays: once recon_normal or
/// recon_cg were called, other operations take host_q and device_q more.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_memory {
    /// Set by recon_memory_init.
    pub struct_size: u32,
    /// Read, not written: the width of the centre of k-space for host_coil_maps, as recon_coil_maps takes it; 0, as
    /// recon_memory_init leaves it, for the default.
    pub calibration: u32,
    /// The host's memory, while the plan is made.
    pub host_plan: u64,
    /// For recon_forward, recon_fhd and recon_weighted_fhd.
    pub host_transform: u64,
    /// For recon_grid: without weights in the geometry with those of Pipe and Menon, which it then makes.
    pub host_grid: u64,
    /// For recon_density with RECON_DENSITY_PIPE_MENON and RECON_DENSITY_RAMP.
    pub host_density: u64,
    /// For recon_density with RECON_DENSITY_JACKSON.
    pub host_density_jackson: u64,
    /// For recon_coil_maps with that calibration.
    pub host_coil_maps: u64,
    /// For recon_normal, Q included where it is used.
    pub host_normal: u64,
    /// For recon_cg, Q included where it is used; what RECON_PRIOR_ANATOMICAL and RECON_PRIOR_MATRIX hold
    /// is not, and the image and twice the data that the search by noise_level holds are not.
    pub host_cg: u64,
    /// What Q holds once it is made; 0 where it is not used.
    pub host_q: u64,
    /// The same, in the memory of all GPUs that the plan is on; 0 on the CPU.
    pub device_plan: u64,
    /// See host_transform.
    pub device_transform: u64,
    /// See host_grid.
    pub device_grid: u64,
    /// See host_density.
    pub device_density: u64,
    /// See host_density_jackson.
    pub device_density_jackson: u64,
    /// See host_coil_maps.
    pub device_coil_maps: u64,
    /// See host_normal.
    pub device_normal: u64,
    /// See host_cg.
    pub device_cg: u64,
    /// See host_q.
    pub device_q: u64,
    /// The host's memory for recon_combine with RECON_COMBINE_ADAPTIVE of images of this size, which needs no plan.
    pub host_combine: u64,
    /// For recon_fbp, with spokes of at most 8 times as many samples as an axis has voxels; in 3D as for a plan.
    pub host_fbp: u64,
    /// See host_fbp.
    pub device_fbp: u64,
}

/// A GPU. Set it up with recon_device_properties_init.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_device_properties {
    /// Set by recon_device_properties_init.
    pub struct_size: u32,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Compute capability, for example 9 of 9.0.
    pub compute_major: u32,
    /// For example 0 of 9.0.
    pub compute_minor: u32,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Bytes of memory that nobody uses.
    pub memory_free_bytes: u64,
    /// Its name, ending in 0.
    pub name: [c_char; 256],
}

/// How to solve, and with what prior. Set it up with recon_cg_options_init.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_cg_options {
    /// Set by recon_cg_options_init.
    pub struct_size: u32,
    /// A recon_prior; default RECON_PRIOR_IDENTITY. While lambda is 0 it is checked, but has no effect.
    pub prior: u32,
    /// Maximum number of iterations for each image. Default: 12.
    pub iterations: u64,
    /// Stop when the residual's norm falls to this part of the norm of E^H W d, in [0, 1); 0 (default) never does.
    pub tolerance: f64,
    /// Weight of the prior, 0 (default) or more, in the unit that lambda_unit names.
    pub lambda: f64,
    /// RECON_PRIOR_ANATOMICAL: the reference image in any unit, [nx, ny, nz] reals.
    pub reference: *const c_void,
    /// RECON_PRIOR_ANATOMICAL: the difference that counts as a border, as a fraction of the reference's largest
    /// magnitude; default 0.1.
    pub edge: f64,
    /// RECON_PRIOR_MATRIX: rows of R; it has as many columns as the image has voxels.
    pub matrix_rows: u64,
    /// Where each row's entries begin, and the last row's end: [matrix_rows + 1], beginning with 0.
    pub matrix_starts: *const u64,
    /// The column (voxel index) of each entry: [matrix_starts[matrix_rows]].
    pub matrix_columns: *const u64,
    /// The value of each entry: complex [matrix_starts[matrix_rows]].
    pub matrix_values: *const c_void,
    /// Image to start from, of the result's shape. Or NULL: zeros.
    pub initial: *const c_void,
    /// Called before the first and after each iteration. Or NULL.
    pub progress: recon_progress_callback,
    /// Handed to progress.
    pub user_data: *mut c_void,
    /// A recon_lambda_unit; default RECON_LAMBDA_RELATIVE.
    pub lambda_unit: u32,
    /// Zero.
    pub reserved: u32,
    /// The root of the mean |noise|^2 of a sample, in the unit of the data (1 after recon_whitening): lambda, which
    /// must be 0 then, is found from it, after the discrepancy principle (Morozov 1966): the image is about as far from
    /// the data as the noise is. It takes seven to twelve solutions, each of which calls progress. For plans without
    /// weights, and arrays in the host's memory; RECON_INVALID_ARGUMENT for a level that is half or twice that of the
    /// data. 0 (default): lambda as it is given.
    pub noise_level: f64,
}

/// What came of recon_cg. Set it up with recon_cg_report_init; residuals and residual_capacity are the caller's to set,
/// all else is written when the call succeeds.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_cg_report {
    /// Set by recon_cg_report_init.
    pub struct_size: u32,
    /// Of the image that ended with the largest residual: why it ended, a recon_stop.
    pub stop: u32,
    /// Images solved for: frames with coil maps, coils times frames without.
    pub images: u64,
    /// Which image ended with the largest residual, from 0.
    pub worst_image: u64,
    /// Its iterations.
    pub iterations: u64,
    /// Its residual, relative to the norm of E^H W d.
    pub residual: f64,
    /// Seconds for Q; 0 where it was there already, or is not used.
    pub q_seconds: f64,
    /// Seconds for E^H W d.
    pub adjoint_seconds: f64,
    /// Seconds for the iterations.
    pub iteration_seconds: f64,
    /// Receives the relative residual before the first iteration and after each: [iterations + 1, images], iterations
    /// being those of the options, NaN for those not done. Or NULL.
    pub residuals: *mut f64,
    /// Elements that residuals has room for; at least (iterations + 1) images unless it is NULL.
    pub residual_capacity: u64,
    /// What lambda was in (E^H W E + lambda R^H R) x = E^H W d.
    pub lambda: f64,
}

/// What recon_propeller finds and corrects. Set it up with recon_propeller_options_init.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_propeller_options {
    /// Set by recon_propeller_options_init.
    pub struct_size: u32,
    /// A recon_blade_phase; default RECON_BLADE_PHASE_SMOOTH.
    pub phase: u32,
    /// Lines of a blade. 0 (default): as many as are parallel and evenly spaced.
    pub lines: u64,
    /// Not 0 (default 1): rotations are found and corrected.
    pub rotation: u32,
    /// Not 0 (default 1): translations are.
    pub translation: u32,
    /// Not 0 (default 1): blades that disagree with the others, as after motion through the plane, count less in the
    /// image.
    pub weighting: u32,
    /// Zero.
    pub reserved: u32,
}

/// What recon_propeller found. Set it up with recon_propeller_report_init.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_propeller_report {
    /// Set by recon_propeller_report_init.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Blades, written.
    pub blades: u64,
    /// Lines of a blade, written.
    pub lines: u64,
    /// Samples of a line, written.
    pub readout: u64,
    /// Receives where the object was while each blade was measured, from its mean position over all blades:
    /// [6, blades, frames]. Of each: the degrees that it was turned by about voxel floor(n/2), from x to y; the voxels
    /// along x, and along y, that it was moved by after that; the phase in radians that was taken from the blade (with
    /// RECON_BLADE_PHASE_SMOOTH its mean over the image); the correlation of the corrected blade with all others about
    /// the centre of k-space, from 0 to 1; how much the blade counts where it meets others, from 0 to 1. Or NULL.
    pub motion: *mut f64,
    /// Numbers that motion has room for; at least 6 blades frames unless it is NULL.
    pub motion_capacity: u64,
    /// Receive the coordinates of the samples along x and y as the object at rest sees them: [samples, frames] reals
    /// each. A sample that a rotation takes out of [-0.5, 0.5) is at the edge, with weight 0. Both or NULL.
    pub coordinates: [*mut c_void; 2],
    /// Receives density weights for these (Pipe and Menon 1999), with those of blades where they meet: [samples,
    /// frames] reals. Or NULL.
    pub weights: *mut c_void,
    /// Receives the corrected data, complex [samples, coils, frames]. Or NULL.
    pub kspace: *mut c_void,
}

/// How recon_field_map makes a map. Set it up with recon_field_map_options_init.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_field_map_options {
    /// Set by recon_field_map_options_init.
    pub struct_size: u32,
    /// Not 0 (default 1): wraps of the phase are undone. They are found, and warned of, in any case.
    pub unwrap: u32,
    /// The weight of squared differences between neighbouring voxels against that of a voxel of median signal; default
    /// 0.2. 0: voxels with signal keep what was measured, and the others are filled.
    pub smoothing: f64,
    /// Signal below this part of the largest, in [0, 1), counts as none, as that which noise alone may have does;
    /// default 0.1. 0: all voxels count.
    pub threshold: f64,
    /// CPU threads, the caller's among them. 0 (default): as many as the machine runs at once. The map has the same
    /// bits for any number.
    pub threads: u32,
    /// Zero.
    pub reserved: u32,
    /// Called now and then, by the thread that makes the call; less often where wraps of a large volume are undone.
    /// Once it returns another number than 0 the call ends, and outputs are untouched. Or NULL (default).
    pub interrupt: recon_interrupt_callback,
    /// Handed to interrupt.
    pub interrupt_data: *mut c_void,
}

/// What is known of a field map. Set it up with recon_field_map_report_init.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_field_map_report {
    /// Set by recon_field_map_report_init.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// The largest |f| in Hz that the phase tells without a wrap: 1 / (2 shortest spacing of echoes).
    pub limit: f64,
    /// The part of the voxels that has signal.
    pub signal: f64,
    /// The RMS in Hz, weighted as the fit is, of what smoothing changed in voxels with signal.
    pub change: f64,
    /// Pairs of neighbouring voxels with signal whose phases jumped by more than pi: wraps, where there are many.
    pub jumps: u64,
    /// Voxels whose phase was unwrapped.
    pub unwrapped: u64,
    /// Pairs that still jump by more than pi after that, or without it: there the map is wrong on one side.
    pub unresolved: u64,
    /// Ambiguity in Hz: f and f + period have the same phases at all echo times. With evenly spaced echoes it is
    /// 1 / spacing. Of each piece of the object the median nearest 0 Hz is taken, to which a multiple of the period may
    /// have to be added.
    pub period: f64,
    /// Separate pieces of voxels with signal. Nothing links the off-resonance of two pieces.
    pub pieces: u64,
    /// Voxels in pieces for which noise hides which f within the period is the right one.
    pub undecided: u64,
}

/// The error e = scale x - t of an image x against the truth t. Set it up with recon_quality_init.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_quality {
    /// Set by recon_quality_init.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// 100 RMS(e) / RMS(t), in percent.
    pub percent_error: f64,
    /// Mean squared error, RMS(e)^2, in squared units of the truth.
    pub mse: f64,
    /// Peak signal to noise ratio, 20 log10(max |t| / RMS(e)), in dB; infinite without error.
    pub psnr_db: f64,
    /// Signal to noise ratio, 20 log10(RMS(t) / RMS(e)), in dB; infinite without error.
    pub snr_db: f64,
    /// Real part of what the image was multiplied by: 1 with RECON_SCALE_NONE.
    pub scale_re: f64,
    /// Its imaginary part.
    pub scale_im: f64,
}

// Without decay_map: 168 bytes.
versioned!(recon_geometry, 176, older [168], {
    precision: 0, ndim: 2, basis: 0, dims: [0; 3], samples: 0, coordinates: [null(); 3], coordinate_stride: 0,
    weights: null(), coils: 1, coil_maps: null(), frames: 1, voxels: [null(); 3], voxel_stride: 0, voxel_count: 0,
    field_map: null(), times: null(), decay_map: null(),
});
// Without simd: 56 bytes; without a stream: 64; without interrupt: 72; without oversampling and width: 88.
versioned!(recon_options, 104, older [56, 64, 72, 88], {
    method: 0, normal: 0, window: defaults::WINDOW.number(), device: 0, device_count: 0, device_indices: null(),
    threads: 0, pointers_on_device: 0, tolerance: 0.0, memory_limit: 0, simd: 0, use_stream: 0, stream: null_mut(),
    interrupt: None, interrupt_data: null_mut(), oversampling: 0.0, width: 0, reserved: 0,
});
// Without segments and nodes: 224 bytes.
versioned!(recon_plan_properties, 232, older [224], {
    precision: 0, method: 0, window: 0, width: 0, threads: 0, toeplitz: 0, ndim: 0, grid: [0; 3], oversampling: 0.0,
    error: 0.0, image_elements: 0, kspace_elements: 0, q_elements: 0, grid_elements: 0, host_bytes: 0,
    device_bytes: 0, seconds: 0.0, device: [0; 64], simd: [0; 32], segments: 0, nodes: 0,
});
// Without host_combine: 152 bytes.
versioned!(recon_memory, 176, older [152, 160], {
    calibration: 0, host_plan: 0, host_transform: 0, host_grid: 0, host_density: 0, host_density_jackson: 0,
    host_coil_maps: 0, host_normal: 0, host_cg: 0, host_q: 0, device_plan: 0, device_transform: 0, device_grid: 0,
    device_density: 0, device_density_jackson: 0, device_coil_maps: 0, device_normal: 0, device_cg: 0, device_q: 0,
    host_combine: 0, host_fbp: 0, device_fbp: 0,
});
versioned!(recon_device_properties, 288, {
    multiprocessors: 0, compute_major: 0, compute_minor: 0, memory_bytes: 0, memory_free_bytes: 0, name: [0; 256],
});
// Without lambda_unit, in 104 bytes, lambda was absolute. Who was compiled so is told, and not given another image.
// Without noise_level: 112 bytes.
versioned!(recon_cg_options, 120, older [112], {
    prior: 0, iterations: defaults::ITERATIONS as u64, tolerance: defaults::RESIDUAL, lambda: defaults::LAMBDA,
    reference: null(), edge: defaults::EDGE, matrix_rows: 0, matrix_starts: null(), matrix_columns: null(),
    matrix_values: null(), initial: null(), progress: None, user_data: null_mut(),
    lambda_unit: defaults::LAMBDA_UNIT.number(),
    reserved: 0, noise_level: 0.0,
});
// Without lambda: 80 bytes.
versioned!(recon_cg_report, 88, older [80], {
    stop: 0, images: 0, worst_image: 0, iterations: 0, residual: 0.0, q_seconds: 0.0, adjoint_seconds: 0.0,
    iteration_seconds: 0.0, residuals: null_mut(), residual_capacity: 0, lambda: 0.0,
});
versioned!(recon_propeller_options, 32, {
    phase: PropellerOptions::DEFAULT.phase.number(), lines: PropellerOptions::DEFAULT.lines as u64,
    rotation: PropellerOptions::DEFAULT.rotation.into(), translation: PropellerOptions::DEFAULT.translation.into(),
    weighting: PropellerOptions::DEFAULT.weighting.into(), reserved: 0,
});
versioned!(recon_propeller_report, 80, {
    reserved: 0, blades: 0, lines: 0, readout: 0, motion: null_mut(), motion_capacity: 0, coordinates: [null_mut(); 2],
    weights: null_mut(), kspace: null_mut(),
});
// Without interrupt: 32 bytes.
versioned!(recon_field_map_options, 48, older [32], {
    unwrap: FieldMapOptions::DEFAULT.unwrap.into(), smoothing: FieldMapOptions::DEFAULT.smoothing,
    threshold: FieldMapOptions::DEFAULT.threshold, threads: FieldMapOptions::DEFAULT.threads as u32, reserved: 0,
    interrupt: None, interrupt_data: null_mut(),
});
versioned!(recon_field_map_report, 80, older [56], {
    reserved: 0, limit: 0.0, signal: 0.0, change: 0.0, jumps: 0, unwrapped: 0, unresolved: 0, period: 0.0, pieces: 0,
    undecided: 0,
});
versioned!(recon_quality, 56, {
    reserved: 0, percent_error: 0.0, mse: 0.0, psnr_db: 0.0, snr_db: 0.0, scale_re: 0.0, scale_im: 0.0,
});
