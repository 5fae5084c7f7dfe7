//! The public structures and callbacks of the C API.

use super::enumerations::Enumeration;
use super::plan_handle::recon_plan;
use super::versioned::{versioned, VersionedStruct};
use crate::base::defaults;
use crate::partial_fourier::PartialFourierOptions;
use crate::propeller::PropellerOptions;
use crate::reconstruction::field_map::FieldMapOptions;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};

/// A message of the log.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_log_message {
    /// Size of this structure in the library's version, in bytes. Fields beyond it do not exist.
    pub struct_size: u32,
    /// A recon_log_level.
    pub level: u32,
    /// One line in UTF-8 without a line end; never NULL. It is valid until the callback returns.
    pub text: *const c_char,
    /// The plan that was passed to the call that caused the message, such as the call that failed. NULL for calls
    /// without a plan (also recon_plan_create and recon_plan_destroy), and for messages of the library's own threads.
    /// The callback may compare it with the host's plans, but must not use it in calls.
    pub plan: *const recon_plan,
}

/// Log callback. It may be called from any thread, from several at once, and while a call of this library is running.
/// Messages of a call come from the thread that made the call, and before it returns. It must return normally (no
/// exception, no longjmp). Messages that the callback itself causes in the library are dropped.
pub type recon_log_callback = Option<unsafe extern "C" fn(message: *const recon_log_message, user_data: *mut c_void)>;

/// Progress of recon_cg.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_progress {
    /// Size of this structure in the library's version, in bytes. Fields beyond it do not exist.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Index of the image that is being solved for, from 0.
    pub image: u64,
    /// Number of images: frames with coil maps, coils times frames without.
    pub images: u64,
    /// Number of finished iterations for this image.
    pub iteration: u64,
    /// Maximum number of iterations.
    pub iterations: u64,
    /// Norm of the residual relative to that of E^H W d.
    pub residual: f64,
}

/// Progress callback: called before the first and after each iteration of recon_cg, by the thread that called recon_cg.
/// 0 continues. Any other value ends the call with RECON_CANCELLED and leaves the image unchanged. It may use the plan,
/// but must not destroy it, and must return normally (no exception, no longjmp).
pub type recon_progress_callback =
    Option<unsafe extern "C" fn(progress: *const recon_progress, user_data: *mut c_void) -> c_int>;

/// Interrupt callback: polled by the thread that made the call, and by no other. 0 continues. Any other value ends the
/// call with RECON_CANCELLED. It should take at most some microseconds, must not use the plan, and must return normally
/// (no exception, no longjmp).
pub type recon_interrupt_callback = Option<unsafe extern "C" fn(user_data: *mut c_void) -> c_int>;

/// A scan: trajectory, image and coils. Initialise it with recon_geometry_init, then set at least dims, samples and
/// coordinates. The arrays are only read, and only during the call that receives the structure.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_geometry {
    /// Set by recon_geometry_init.
    pub struct_size: u32,
    /// A recon_precision: the type of every array here and of the plan. Default: RECON_F32.
    pub precision: u32,
    /// Dimensions of image and trajectory: 2 (default) or 3.
    pub ndim: u32,
    /// A recon_basis. Default: RECON_BASIS_POINT.
    pub basis: u32,
    /// Voxels along x, y and, with ndim 3, z. With a voxel list: the field of view in voxels.
    pub dims: [u64; 3],
    /// Samples of one coil and frame.
    pub samples: u64,
    /// k-space coordinates along x, y, z in cycles per voxel, within [-0.5, 0.5]: real [samples] each. Coordinates
    /// outside by at most 1e-6 are moved to the edge.
    pub coordinates: [*const c_void; 3],
    /// Distance between the coordinates of consecutive samples, in reals. 0 or 1: each axis has its own array. If one
    /// array has all coordinates of a sample together: ndim, with the addresses of its first ndim elements as
    /// coordinates.
    pub coordinate_stride: u64,
    /// Non-negative density weights: real [samples]. NULL: all weights are 1, and recon_grid computes its own.
    pub weights: *const c_void,
    /// Number of receive coils. Default: 1.
    pub coils: u64,
    /// Coil sensitivities: complex [nx, ny, nz, coils], which combine the coils into one image. NULL: one image per
    /// coil.
    pub coil_maps: *const c_void,
    /// Number of frames measured on this trajectory, which are reconstructed independently. Default: 1.
    pub frames: u64,
    /// Positions of voxels instead of a grid, in voxels from its origin: real [voxel_count] per axis. NULL: a grid.
    /// With a list, nx ny nz is voxel_count in all shapes here, and only exact sums are possible. The maximum distance
    /// from the origin is 262,144 voxels with f32 and 1.4e14 with f64; beyond that, the precision does not determine
    /// the phase.
    pub voxels: [*const c_void; 3],
    /// Distance between the positions of consecutive voxels, as coordinate_stride.
    pub voxel_stride: u64,
    /// Number of voxels in the list; 0 without a list.
    pub voxel_count: u64,
    /// Off-resonance f in Hz: real [nx, ny, nz]. The model then has the factor exp(-i 2 pi f t), and times is required.
    /// NULL: no off-resonance. |f t| may be at most 131,072 turns. A map whose range requires too many terms is
    /// refused. Both limits apply to voxels that a coil sees, and the message gives voxel and frequency.
    pub field_map: *const c_void,
    /// Time t of each sample in seconds from the excitation or the echo, for field_map and decay_map: real [samples].
    /// NULL without these maps.
    pub times: *const c_void,
    /// Non-negative decay rates R (R2*) in 1/s: real [nx, ny, nz]. The model then has the factor exp(-R t), and times
    /// is required. NULL: no decay. Single voxels may decay as fast as noise in a map makes them, up to R = 5,000 over
    /// the duration of the readout. If even the slowest voxel has R t above 60, plan creation fails with voxel and
    /// rate.
    pub decay_map: *const c_void,
}

/// Options of a plan. Initialise them with recon_options_init.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_options {
    /// Set by recon_options_init.
    pub struct_size: u32,
    /// A recon_method. Default: RECON_METHOD_AUTO.
    pub method: u32,
    /// A recon_normal_operator. Default: RECON_NORMAL_AUTO.
    pub normal: u32,
    /// A recon_window. Default: RECON_WINDOW_MINIMAX.
    pub window: u32,
    /// A recon_device. Default: RECON_DEVICE_AUTO.
    pub device: u32,
    /// Number of indices in device_indices; 0 for the first GPU. Several GPUs divide coils with NUFFT, and voxels with
    /// exact sums. Only the first GPU computes with a memory limit, or if there is nothing to divide.
    pub device_count: u32,
    /// Indices of the GPUs for RECON_DEVICE_CUDA: [device_count]. Or NULL.
    pub device_indices: *const u32,
    /// Number of CPU threads, including the caller's. The others start with the plan and end with it. 0 (default): the
    /// number that the machine runs at once. If the system refuses some, the plan computes with the others, and the log
    /// has a warning (RECON_WARNING_THREADS). With GPUs, at most eight of them copy and check arrays of the host.
    pub threads: u32,
    /// Not 0: the k-space and image arrays of recon_forward, recon_fhd, recon_weighted_fhd, recon_normal, recon_grid,
    /// recon_fbp and recon_cg are addresses in the GPU's memory. All other arrays are in the host's memory.
    pub pointers_on_device: u32,
    /// Relative l2 error of a transform compared with the exact sums, in (0, 1). 0 (default): 1e-5. It is met for any
    /// distribution of samples, also with hundreds of thousands in one place. The entries of E have size 1, and the
    /// error of an entry is at most five times the tolerance. Exact sums have rounding errors only. Exception: over a
    /// voxel list on a GPU in f32, the special function units compute the sines, with an error of the sums of about
    /// 2e-6. A tolerance below 1e-5 avoids this and takes 2.5 times as long.
    pub tolerance: f64,
    /// Maximum number of bytes that the plan and its operations hold in addition to the caller's arrays. 0 (default):
    /// no limit.
    pub memory_limit: u64,
    /// A recon_simd. Default: RECON_SIMD_AUTO. RECON_UNSUPPORTED if the processor does not have the level.
    pub simd: u32,
    /// Not 0: the GPU's work is queued on `stream`. 0 (default): it is queued on the plan's own stream, and calls
    /// return when their results are complete.
    pub use_stream: u32,
    /// A CUstream or cudaStream_t of the GPU's primary context that outlives the plan; NULL is the default stream.
    /// Calls whose arrays are all on the GPU may then return before their results are complete. Work that is queued
    /// later on the stream can use them.
    pub stream: *mut c_void,
    /// Callback that is polled while the plan is created and in every call with it: about fifty times a second, less
    /// often if the work does not allow it (one NUFFT of a large image). When it requests a stop, the call ends; the
    /// plan remains usable. NULL (default): none.
    ///
    /// Outputs are then unchanged. To ensure this, Q, exact sums, and transforms of several coils or frames are
    /// computed in memory of the output's size, which memory_limit counts. With pointers_on_device, or if they are
    /// estimated to take less than 20 ms, transforms poll only before they begin, and need no such memory. Several GPUs
    /// that share work are not interrupted during their parts.
    pub interrupt: recon_interrupt_callback,
    /// Pointer that is passed to interrupt. It must be valid until the plan is destroyed.
    pub interrupt_data: *mut c_void,
    /// Grid size divided by image size, 1.25 to 2.5. 0 (default): a value that meets the tolerance.
    /// The grid of each axis is the next larger size that has a fast FFT, and at least two windows wide.
    /// RECON_INVALID_ARGUMENT with exact sums, which have no grid.
    pub oversampling: f64,
    /// Width of the window in grid cells, 2 to 16 (with RECON_WINDOW_BILINEAR 2). 0 (default): a width that meets the
    /// tolerance. RECON_INVALID_ARGUMENT with exact sums.
    ///
    /// Width and oversampling can be set independently. Those that are not set are chosen so that the tolerance is met
    /// at the lowest cost. If it cannot be met: a tolerance that is set is RECON_TOLERANCE_OUT_OF_RANGE, with a message
    /// that gives values which meet it. If no tolerance is set, the plan is created. recon_plan_info then reports its
    /// error, and RECON_WARNING_TOLERANCE that the error exceeds the default.
    pub width: u32,
    /// Not 0: coordinates, weights and coil_maps of the geometry, and those of recon_plan_set_trajectory,
    /// recon_plan_set_weights and recon_plan_set_coil_maps, are addresses in the GPU's memory. They are checked and
    /// sorted there, and are complete for work that was queued earlier on `stream`. RECON_UNSUPPORTED with voxel lists,
    /// field_map, decay_map and times, and with several GPUs; RECON_INVALID_ARGUMENT with RECON_DEVICE_CPU, and for
    /// addresses that are not on the plan's GPU.
    pub geometry_on_device: u32,
}

/// Properties of a plan. Initialise them with recon_plan_properties_init.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_plan_properties {
    /// Set by recon_plan_properties_init.
    pub struct_size: u32,
    /// A recon_precision.
    pub precision: u32,
    /// A recon_method: RECON_METHOD_EXACT or RECON_METHOD_NUFFT.
    pub method: u32,
    /// The requested recon_window. It has no effect with exact sums.
    pub window: u32,
    /// Width of the window in grid cells; 0 with exact sums.
    pub width: u32,
    /// Number of CPU threads that compute, including the caller's. It is less than requested if the system refused
    /// some.
    pub threads: u32,
    /// 1 if E^H W E is computed by convolution with Q, otherwise 0.
    pub toeplitz: u32,
    /// Dimensions of the image.
    pub ndim: u32,
    /// Oversampled grid [gx, gy, gz] (gz is 1 in 2D); zeros with exact sums.
    pub grid: [u64; 3],
    /// Grid size divided by image size, of the axis with the smallest ratio.
    pub oversampling: f64,
    /// Expected relative l2 error of a transform. It is at most the tolerance if the tolerance chose the window. For a
    /// window of a given width and oversampling it is the error for evenly spread samples. If all samples are at the
    /// edge of k-space, the error is up to 3.3 times as large.
    pub error: f64,
    /// Complex elements of an image array: voxels times images times frames.
    pub image_elements: u64,
    /// Complex elements of a k-space array: samples times coils times frames.
    pub kspace_elements: u64,
    /// Complex elements of Q.
    pub q_elements: u64,
    /// Complex elements of gridded k-space: grid times coils times frames; 0 with exact sums.
    pub grid_elements: u64,
    /// Bytes held on the host, including Q once it is computed.
    pub host_bytes: u64,
    /// Bytes held on GPUs.
    pub device_bytes: u64,
    /// Seconds for creating the plan, or for its last change (recon_plan_set_trajectory and similar).
    pub seconds: f64,
    /// Name of the device, ending in 0.
    pub device: [c_char; 64],
    /// Vector unit in use, ending in 0: "sse", "avx2", "avx512" or "avx512-256" (see RECON_SIMD_AUTO) on x86-64,
    /// "neon" on 64-bit ARM, otherwise "portable"; "none" on a GPU.
    pub simd: [c_char; 32],
    /// Number of transforms that one transform with a field map or a decay map consists of, which follows from the
    /// tolerance. 0 without maps, and with exact sums.
    pub segments: u32,
    /// Number of convolutions whose sum is E^H W E with a field map or a decay map. 0 without maps, and if E^H W E is
    /// computed by transforms.
    pub nodes: u32,
    /// A recon_device_reason: why the plan computes on its device.
    pub device_reason: u32,
    /// 0.
    pub reserved: u32,
    /// Estimated milliseconds of a plan and one adjoint transform of all coils and frames on the CPU, with arrays in
    /// host memory. The estimate depends on sizes, options and the processor only. 0 if nothing was estimated, because
    /// the device was requested or there is no usable GPU.
    pub estimated_cpu_ms: f64,
    /// The same on the first usable GPU. The start of CUDA, which only the first plan of a process waits for, is not
    /// included.
    pub estimated_gpu_ms: f64,
}

/// Bytes that a plan and its operations take at their peaks, in addition to the caller's arrays: see recon_plan_memory.
/// Initialise them with recon_memory_init.
///
/// Each number is the peak of a plan that is used for this one operation, the plan included. Q stays: after
/// recon_normal or recon_cg were called, other operations take host_q and device_q more.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_memory {
    /// Set by recon_memory_init.
    pub struct_size: u32,
    /// Width of the centre of k-space for host_coil_maps, as recon_coil_maps takes it; 0 for the default. Read, not
    /// written.
    pub calibration: u32,
    /// Host memory while the plan is created.
    pub host_plan: u64,
    /// Host memory of recon_forward, recon_fhd and recon_weighted_fhd.
    pub host_transform: u64,
    /// Host memory of recon_grid. Without weights in the geometry it includes the computation of those of Pipe and
    /// Menon.
    pub host_grid: u64,
    /// Host memory of recon_density with RECON_DENSITY_PIPE_MENON and RECON_DENSITY_RAMP.
    pub host_density: u64,
    /// Host memory of recon_density with RECON_DENSITY_JACKSON.
    pub host_density_jackson: u64,
    /// Host memory of recon_coil_maps with `calibration`.
    pub host_coil_maps: u64,
    /// Host memory of recon_normal, including Q if it is used.
    pub host_normal: u64,
    /// Host memory of recon_cg, including Q if it is used. Not included are the data of RECON_PRIOR_ANATOMICAL and
    /// RECON_PRIOR_MATRIX, and the image and twice the data that the search by noise_level holds.
    pub host_cg: u64,
    /// Host memory of Q after it is computed; 0 if it is not used.
    pub host_q: u64,
    /// Memory of all GPUs of the plan while it is created; 0 on the CPU. The same holds for the other device_ fields.
    pub device_plan: u64,
    /// Memory of GPUs, as host_transform.
    pub device_transform: u64,
    /// Memory of GPUs, as host_grid.
    pub device_grid: u64,
    /// Memory of GPUs, as host_density.
    pub device_density: u64,
    /// Memory of GPUs, as host_density_jackson.
    pub device_density_jackson: u64,
    /// Memory of GPUs, as host_coil_maps.
    pub device_coil_maps: u64,
    /// Memory of GPUs, as host_normal.
    pub device_normal: u64,
    /// Memory of GPUs, as host_cg.
    pub device_cg: u64,
    /// Memory of GPUs, as host_q.
    pub device_q: u64,
    /// Host memory of recon_combine with RECON_COMBINE_ADAPTIVE for images of this size, which requires no plan.
    pub host_combine: u64,
    /// Host memory of recon_fbp, for spokes whose number of samples is at most 8 times the voxels of an axis; in 3D as
    /// host_plan.
    pub host_fbp: u64,
    /// Memory of GPUs, as host_fbp.
    pub device_fbp: u64,
}

/// Properties of a GPU. Initialise them with recon_device_properties_init.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_device_properties {
    /// Set by recon_device_properties_init.
    pub struct_size: u32,
    /// Number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// Major number of the compute capability, for example 9 of 9.0.
    pub compute_major: u32,
    /// Minor number of the compute capability, for example 0 of 9.0.
    pub compute_minor: u32,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Bytes of free memory.
    pub memory_free_bytes: u64,
    /// Name of the GPU, ending in 0.
    pub name: [c_char; 256],
}

/// Options of recon_cg. Initialise them with recon_cg_options_init.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_cg_options {
    /// Set by recon_cg_options_init.
    pub struct_size: u32,
    /// A recon_prior. Default: RECON_PRIOR_IDENTITY. While lambda is 0 the prior is checked, but has no effect.
    pub prior: u32,
    /// Maximum number of iterations for each image. Default: 12.
    pub iterations: u64,
    /// Relative residual, in [0, 1), at which iteration stops: the norm of the residual divided by that of E^H W d. 0
    /// (default): all iterations are done.
    pub tolerance: f64,
    /// Non-negative weight of the prior in the unit lambda_unit. Default: 0.
    pub lambda: f64,
    /// Reference image in any unit, for RECON_PRIOR_ANATOMICAL: real [nx, ny, nz].
    pub reference: *const c_void,
    /// Difference that counts as a border, as a fraction of the reference's largest magnitude, for
    /// RECON_PRIOR_ANATOMICAL. Default: 0.1.
    pub edge: f64,
    /// Number of rows of R, for RECON_PRIOR_MATRIX. R has one column per voxel.
    pub matrix_rows: u64,
    /// Index of the first entry of each row, and the end of the last row: [matrix_rows + 1], beginning with 0.
    pub matrix_starts: *const u64,
    /// Column (voxel index) of each entry: [matrix_starts[matrix_rows]].
    pub matrix_columns: *const u64,
    /// Value of each entry: complex [matrix_starts[matrix_rows]].
    pub matrix_values: *const c_void,
    /// Initial image, of the result's shape. NULL: zeros.
    pub initial: *const c_void,
    /// Callback before the first and after each iteration. NULL: none.
    pub progress: recon_progress_callback,
    /// Pointer that is passed to progress.
    pub user_data: *mut c_void,
    /// A recon_lambda_unit. Default: RECON_LAMBDA_RELATIVE.
    pub lambda_unit: u32,
    /// Zero.
    pub reserved: u32,
    /// Noise level from which lambda is found by the discrepancy principle (Morozov 1966): the distance of the image
    /// from the data is then about the noise. It is the root of the mean |noise|^2 of a sample, in the unit of the data
    /// (1 after recon_whitening). lambda must then be 0. 0 (default): lambda is used unchanged.
    ///
    /// The search takes seven to twelve solutions, each of which calls progress. It is for plans without weights, and
    /// for arrays in the host's memory. A level that is half or twice that of the data is RECON_INVALID_ARGUMENT.
    pub noise_level: f64,
}

/// Report of recon_cg. Initialise it with recon_cg_report_init. The caller sets residuals and residual_capacity. All
/// other fields are written when the call succeeds.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_cg_report {
    /// Set by recon_cg_report_init.
    pub struct_size: u32,
    /// A recon_stop: stop reason of the image with the largest final residual.
    pub stop: u32,
    /// Number of images: frames with coil maps, coils times frames without.
    pub images: u64,
    /// Index of the image with the largest final residual, from 0.
    pub worst_image: u64,
    /// Number of iterations of that image.
    pub iterations: u64,
    /// Final residual of that image, relative to the norm of E^H W d.
    pub residual: f64,
    /// Seconds for computing Q; 0 if it existed already or is not used.
    pub q_seconds: f64,
    /// Seconds for E^H W d.
    pub adjoint_seconds: f64,
    /// Seconds for the iterations.
    pub iteration_seconds: f64,
    /// Array that receives the relative residual before the first iteration and after each: [iterations + 1, images],
    /// with the iterations of the options. It is NaN for iterations that were not done. Or NULL.
    pub residuals: *mut f64,
    /// Number of elements of residuals: at least (iterations + 1) images, unless residuals is NULL.
    pub residual_capacity: u64,
    /// The lambda of (E^H W E + lambda R^H R) x = E^H W d that was used.
    pub lambda: f64,
}

/// Options of recon_propeller. Initialise them with recon_propeller_options_init.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_propeller_options {
    /// Set by recon_propeller_options_init.
    pub struct_size: u32,
    /// A recon_blade_phase. Default: RECON_BLADE_PHASE_SMOOTH.
    pub phase: u32,
    /// Number of lines per blade. 0 (default): the number of lines that are parallel and evenly spaced.
    pub lines: u64,
    /// Not 0 (default 1): rotations are estimated and corrected.
    pub rotation: u32,
    /// Not 0 (default 1): translations are estimated and corrected.
    pub translation: u32,
    /// Not 0 (default 1): blades that disagree with the others, as after motion through the plane, have smaller weights
    /// in the image.
    pub weighting: u32,
    /// Zero.
    pub reserved: u32,
}

/// Report of recon_propeller. Initialise it with recon_propeller_report_init.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_propeller_report {
    /// Set by recon_propeller_report_init.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Number of blades, written.
    pub blades: u64,
    /// Number of lines per blade, written.
    pub lines: u64,
    /// Number of samples per line, written.
    pub readout: u64,
    /// Array that receives the motion of each blade, relative to the mean position over all blades: [6, blades,
    /// frames]. Or NULL. The six values are:
    /// - Rotation in degrees about voxel floor(n/2), from x to y.
    /// - Translation along x in voxels, after the rotation.
    /// - Translation along y in voxels.
    /// - Phase in radians that was removed from the blade; with RECON_BLADE_PHASE_SMOOTH its mean over the image.
    /// - Correlation of the corrected blade with all others near the centre of k-space, from 0 to 1.
    /// - Weight of the blade where it overlaps others, from 0 to 1.
    pub motion: *mut f64,
    /// Number of elements of motion: at least 6 blades frames, unless motion is NULL.
    pub motion_capacity: u64,
    /// Arrays that receive the coordinates of the samples along x and y, relative to the object at rest: real [samples,
    /// frames] each. A sample that a rotation moves out of [-0.5, 0.5) is at the edge, with weight 0. Both or NULL.
    pub coordinates: [*mut c_void; 2],
    /// Array that receives density weights for these coordinates (Pipe and Menon 1999), multiplied by the weights of
    /// overlapping blades: real [samples, frames]. Or NULL.
    pub weights: *mut c_void,
    /// Array that receives the corrected data: complex [samples, coils, frames]. Or NULL.
    pub kspace: *mut c_void,
}

/// Options of recon_partial_fourier. Initialise them with recon_partial_fourier_options_init.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_partial_fourier_options {
    /// Set by recon_partial_fourier_options_init.
    pub struct_size: u32,
    /// A recon_partial_fourier_method. Default: RECON_PARTIAL_FOURIER_POCS.
    pub method: u32,
    /// Maximum number of iterations for each image, at least 1. Default: 20. Homodyne detection has no iterations.
    pub iterations: u64,
    /// Relative change of an image, in [0, 1), at which its iterations end: the norm of the difference between
    /// consecutive images, divided by the norm of the image. Default: 0.0005. 0: all iterations are done.
    pub tolerance: f64,
}

/// Report of recon_partial_fourier. Initialise it with recon_partial_fourier_report_init. All other fields are written
/// when the call succeeds.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_partial_fourier_report {
    /// Set by recon_partial_fourier_report_init.
    pub struct_size: u32,
    /// Axis with a missing side: 0, 1 or 2 for x, y or z.
    pub axis: u32,
    /// Measured extent below and above k = 0 along this axis, in samples of a Cartesian scan (units of 1/FOV).
    pub extent: [f64; 2],
    /// Largest number of iterations of an image; 0 for homodyne detection.
    pub iterations: u64,
    /// Largest relative change of an image in its last iteration; 0 for homodyne detection.
    pub change: f64,
    /// Norm of the difference between the measured data and the data of the images with the smooth phase, relative to
    /// the norm of the measured data: noise, and the error of the smooth phase.
    pub residual: f64,
}

/// Options of recon_field_map. Initialise them with recon_field_map_options_init.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_field_map_options {
    /// Set by recon_field_map_options_init.
    pub struct_size: u32,
    /// Not 0 (default 1): phase wraps are undone. Wraps are counted and reported as a warning in any case.
    pub unwrap: u32,
    /// Weight of squared differences between neighbouring voxels, relative to that of a voxel of median signal.
    /// Default: 0.2. 0: voxels with signal keep the measured value, and the others are filled.
    pub smoothing: f64,
    /// Fraction of the largest signal, in [0, 1), below which a voxel is treated as noise without signal. Default: 0.1.
    /// 0: all voxels have signal.
    pub threshold: f64,
    /// Number of CPU threads, including the caller's. 0 (default): the number that the machine runs at once. The map
    /// has the same bits for any number of threads.
    pub threads: u32,
    /// Zero.
    pub reserved: u32,
    /// Callback that is polled by the thread that makes the call; less often while wraps of a large volume are undone.
    /// When it returns a value other than 0, the call ends, and outputs are unchanged. NULL (default): none.
    pub interrupt: recon_interrupt_callback,
    /// Pointer that is passed to interrupt.
    pub interrupt_data: *mut c_void,
}

/// Report of recon_field_map. Initialise it with recon_field_map_report_init.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_field_map_report {
    /// Set by recon_field_map_report_init.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Largest |f| in Hz that the phase determines without a wrap: 1 / (2 shortest spacing of echoes).
    pub limit: f64,
    /// Fraction of voxels with signal.
    pub signal: f64,
    /// Change by smoothing in voxels with signal: RMS in Hz, with the weights of the fit.
    pub change: f64,
    /// Pairs of neighbouring voxels with signal whose phases differed by more than pi. Many such pairs are wraps.
    pub jumps: u64,
    /// Voxels whose phase was unwrapped.
    pub unwrapped: u64,
    /// Pairs whose phases still differ by more than pi after unwrapping, or without it. The map is wrong on one side of
    /// each.
    pub unresolved: u64,
    /// Ambiguity in Hz: f and f + period have the same phases at all echo times. With evenly spaced echoes it is 1 /
    /// spacing. For each piece of the object the median nearest 0 Hz is chosen. The true value can differ by a multiple
    /// of the period.
    pub period: f64,
    /// Separate pieces of voxels with signal. The off-resonance of two pieces is not related.
    pub pieces: u64,
    /// Voxels in pieces for which noise hides the correct multiple of the period.
    pub undecided: u64,
}

/// Error e = scale x - t of an image x compared with the truth t. Initialise it with recon_quality_init.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_quality {
    /// Set by recon_quality_init.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// 100 RMS(e) / RMS(t), in percent.
    pub percent_error: f64,
    /// Mean squared error RMS(e)^2, in squared units of the truth.
    pub mse: f64,
    /// Peak signal to noise ratio, 20 log10(max |t| / RMS(e)), in dB; infinite without error.
    pub psnr_db: f64,
    /// Signal to noise ratio, 20 log10(RMS(t) / RMS(e)), in dB; infinite without error.
    pub snr_db: f64,
    /// Real part of the scale by which the image was multiplied; 1 with RECON_SCALE_NONE.
    pub scale_re: f64,
    /// Imaginary part of that scale.
    pub scale_im: f64,
}

// 168 bytes: without decay_map.
versioned!(recon_geometry, 176, older [168], {
    precision: 0, ndim: 2, basis: 0, dims: [0; 3], samples: 0, coordinates: [null(); 3], coordinate_stride: 0,
    weights: null(), coils: 1, coil_maps: null(), frames: 1, voxels: [null(); 3], voxel_stride: 0, voxel_count: 0,
    field_map: null(), times: null(), decay_map: null(),
});
// 56 bytes: without simd. 64: without stream. 72: without interrupt. 88: without oversampling and width.
versioned!(recon_options, 104, older [56, 64, 72, 88], {
    method: 0, normal: 0, window: defaults::WINDOW.number(), device: 0, device_count: 0, device_indices: null(),
    threads: 0, pointers_on_device: 0, tolerance: 0.0, memory_limit: 0, simd: 0, use_stream: 0, stream: null_mut(),
    interrupt: None, interrupt_data: null_mut(), oversampling: 0.0, width: 0, geometry_on_device: 0,
});
// 224 bytes: without segments and nodes. 232: without device_reason and estimates.
versioned!(recon_plan_properties, 256, older [224, 232], {
    precision: 0, method: 0, window: 0, width: 0, threads: 0, toeplitz: 0, ndim: 0, grid: [0; 3], oversampling: 0.0,
    error: 0.0, image_elements: 0, kspace_elements: 0, q_elements: 0, grid_elements: 0, host_bytes: 0,
    device_bytes: 0, seconds: 0.0, device: [0; 64], simd: [0; 32], segments: 0, nodes: 0,
    device_reason: 0, reserved: 0, estimated_cpu_ms: 0.0, estimated_gpu_ms: 0.0,
});
// 152 bytes: without host_combine. 160: without fbp.
versioned!(recon_memory, 176, older [152, 160], {
    calibration: 0, host_plan: 0, host_transform: 0, host_grid: 0, host_density: 0, host_density_jackson: 0,
    host_coil_maps: 0, host_normal: 0, host_cg: 0, host_q: 0, device_plan: 0, device_transform: 0, device_grid: 0,
    device_density: 0, device_density_jackson: 0, device_coil_maps: 0, device_normal: 0, device_cg: 0, device_q: 0,
    host_combine: 0, host_fbp: 0, device_fbp: 0,
});
versioned!(recon_device_properties, 288, {
    multiprocessors: 0, compute_major: 0, compute_minor: 0, memory_bytes: 0, memory_free_bytes: 0, name: [0; 256],
});
// 112 bytes: without noise_level. The version of 104 bytes, without lambda_unit, is refused: its lambda was absolute,
// so that callers would get a different image.
versioned!(recon_cg_options, 120, older [112], {
    prior: 0, iterations: defaults::ITERATIONS as u64, tolerance: defaults::RESIDUAL, lambda: defaults::LAMBDA,
    reference: null(), edge: defaults::EDGE, matrix_rows: 0, matrix_starts: null(), matrix_columns: null(),
    matrix_values: null(), initial: null(), progress: None, user_data: null_mut(),
    lambda_unit: defaults::LAMBDA_UNIT.number(),
    reserved: 0, noise_level: 0.0,
});
// 80 bytes: without lambda.
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
versioned!(recon_partial_fourier_options, 24, {
    method: PartialFourierOptions::DEFAULT.method.number(), iterations: PartialFourierOptions::DEFAULT.iterations as u64,
    tolerance: PartialFourierOptions::DEFAULT.tolerance,
});
versioned!(recon_partial_fourier_report, 48, {
    axis: 0, extent: [0.0; 2], iterations: 0, change: 0.0, residual: 0.0,
});
// 32 bytes: without interrupt.
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
