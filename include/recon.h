// recon: magnetic resonance images from k-space samples on any trajectory.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
// Generated from src/ffi by `make header`: edit that instead.
//
// A full reconstruction of 128 x 128 voxels from 400 golden-angle spokes of 256 samples and 8 coils, in a function that
// returns the first error.
//
//     #define TRY(call) do { recon_status s_ = (call); if (s_ != RECON_OK) return s_; } while (0)
//
//     enum { N = 128, SPOKES = 400, READOUT = 256, COILS = 8, SAMPLES = SPOKES * READOUT };
//     float kx[SAMPLES], ky[SAMPLES];                       // cycles per voxel, within [-0.5, 0.5]
//     float kspace[2 * SAMPLES * COILS];                    // complex [samples, coils], interleaved re, im: your data
//     float maps[2 * N * N * COILS], image[2 * N * N];      // complex [nx, ny, coils], [nx, ny]
//
//     recon_geometry g;
//     TRY(recon_geometry_init(&g, sizeof g));               // f32, 2D, one coil
//     TRY(recon_trajectory_radial2d(RECON_F32, SPOKES, READOUT, RECON_SPOKES_GOLDEN_ANGLE, kx, ky));
//     g.dims[0] = g.dims[1] = N;
//     g.samples = SAMPLES;
//     g.coordinates[0] = kx;
//     g.coordinates[1] = ky;
//     g.coils = COILS;
//
//     recon_plan *plan;
//     TRY(recon_plan_create(&g, NULL, &plan));              // without maps: one image per coil
//     recon_status status = recon_coil_maps(plan, kspace, 0, maps);      // sensitivities from the data
//     recon_plan_destroy(plan);
//     TRY(status);
//
//     g.coil_maps = maps;
//     TRY(recon_plan_create(&g, NULL, &plan));              // with maps: one image
//     status = recon_cg(plan, kspace, image, NULL, NULL);   // 12 iterations of conjugate gradients
//     recon_plan_destroy(plan);
//     TRY(status);
//
// The model, for coil c, voxels r (integer coordinates, origin at index floor(n/2) of each axis) and samples m:
//
//     s_c(m) = sum_r phi(k_m) S_c(r) x(r) exp(-i 2 pi k_m.r)                                                   (E x)
//
// k is in cycles per voxel. S_c is the coil's sensitivity and phi the Fourier transform of the voxel shape. W is the
// diagonal matrix of density weights, ^H the conjugate transpose.
//
// Arrays. The first index runs fastest: in "[nx, ny]", elements along x are adjacent. In 2D read [nx, ny] for
// [nx, ny, nz]. "real" and "complex" have the precision of the plan or geometry. A complex number is interleaved
// (re, im) and counts as one element. Lengths are not passed; they follow from the geometry. The caller owns all
// arrays. They must be aligned for their precision, must not overlap an output, and are not used after the call
// returns. The exception are calls with use_stream on GPU arrays: these must stay valid until the work that is queued on
// the stream is complete.
//
// Errors. Every function that can fail returns a recon_status, and recon_last_error_message() gives the details. If a
// call fails, its outputs are unchanged, except that they may be partly written after RECON_INTERNAL and
// RECON_DEVICE_FAILED. In addition to the errors that a function lists, it can return:
//
// - RECON_NULL_POINTER, RECON_INVALID_ARGUMENT (misaligned, overlapping) and RECON_INTERNAL, if it has arguments by
//   address.
// - RECON_CANCELLED, if it creates or uses a plan and recon_options has an interrupt callback.
//
// Enumerations are passed as uint32_t. A value from a newer header is then an error rather than undefined behaviour.
//
// Threads. Different plans, and one plan, may be used from several threads at once. Threads of the library start with
// the first plan, not when the library is loaded, and end with the plan. After fork(), create new plans. The library
// installs no signal handler, prints nothing, and restores the floating-point mode. While it computes, also in
// callbacks, the mode is the standard one.


#ifndef RECON_H
#define RECON_H

#include <stdint.h>

// Version of this header. recon_version() returns the version of the library at run time.
#define RECON_VERSION_MAJOR 0
#define RECON_VERSION_MINOR 1
#define RECON_VERSION_PATCH 0

// A compiler warns if the status of these functions is dropped. After a failure the handle does not exist, the
// structure has no defaults, or the array still has its previous content: a program that does not look at the status
// would go on with these. All functions with a status have the macro, except recon_set_log_callback and those that read
// warnings: no image depends on them. Define RECON_MUST_USE as empty before #include to turn the warnings off.
#ifndef RECON_MUST_USE
#if (defined(__cplusplus) && __cplusplus >= 201703L) || (defined(_MSVC_LANG) && _MSVC_LANG >= 201703L)
#define RECON_MUST_USE [[nodiscard]]
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L
#define RECON_MUST_USE [[nodiscard]]
#elif defined(__GNUC__) || defined(__clang__)
#define RECON_MUST_USE __attribute__((warn_unused_result))
#elif defined(_MSC_VER)
#include <sal.h>
#define RECON_MUST_USE _Check_return_
#else
#define RECON_MUST_USE
#endif
#endif

// Result of a call. Numbers never change their meaning; later versions may add some.
typedef enum recon_status {
    // The call succeeded, and outputs are written.
    RECON_OK = 0,
    // A pointer that must not be null was null.
    RECON_NULL_POINTER = 1,
    // A size or count is zero or otherwise impossible.
    RECON_INVALID_SIZE = 2,
    // A size, or a product of sizes, does not fit the address space.
    RECON_SIZE_OVERFLOW = 3,
    // Two counts that must be equal differ.
    RECON_SIZE_MISMATCH = 4,
    // A coordinate, weight, sample or voxel is NaN or infinite; the message says which.
    RECON_NOT_FINITE = 5,
    // A k-space coordinate lies outside [-0.5, 0.5] cycles per voxel; the message says which.
    RECON_COORDINATE_OUT_OF_RANGE = 6,
    // The tolerance cannot be met, or is not a valid tolerance.
    RECON_TOLERANCE_OUT_OF_RANGE = 7,
    // An enumeration has a value that is unknown to this version; the message lists the known values.
    RECON_UNKNOWN_VALUE = 8,
    // A structure has a struct_size that is unknown to this version: call its _init function first.
    RECON_UNKNOWN_STRUCT_SIZE = 9,
    // Another argument has an invalid value: a misaligned pointer, arrays that overlap, a negative weight.
    RECON_INVALID_ARGUMENT = 10,
    // The memory limit is too small; the message states the bytes needed.
    RECON_MEMORY_LIMIT = 11,
    // The host is out of memory.
    RECON_OUT_OF_HOST_MEMORY = 12,
    // The device is out of memory.
    RECON_OUT_OF_DEVICE_MEMORY = 13,
    // No device of the requested kind exists.
    RECON_NO_DEVICE = 14,
    // A driver is installed, but a library that it needs (NVRTC) is missing, or the two are incompatible; the
    // message states what to install.
    RECON_DRIVER_INCOMPLETE = 15,
    // The progress callback or the interrupt callback requested a stop.
    RECON_CANCELLED = 16,
    // This version does not support the requested operation.
    RECON_UNSUPPORTED = 17,
    // A file could not be read or written.
    RECON_IO = 18,
    // A file was read, but its contents are invalid.
    RECON_BAD_FILE = 19,
    // A defect in this library: please report the message. Outputs of the call may be half written.
    RECON_INTERNAL = 20,
    // The GPU failed during a computation. Outputs of the call may be half written, and this process may be
    // unable to use the GPU again.
    RECON_DEVICE_FAILED = 21,
} recon_status;

// The type of every real number in the arrays of a plan; complex numbers are pairs (re, im) of it.
typedef enum recon_precision {
    // float
    RECON_F32 = 0,
    // double
    RECON_F64 = 1,
} recon_precision;

// The shape of a voxel, whose Fourier transform phi(k) multiplies the samples of the model.
typedef enum recon_basis {
    // A point: phi = 1.
    RECON_BASIS_POINT = 0,
    // A box of one voxel: phi = product over axes of sin(pi k)/(pi k).
    RECON_BASIS_BOX = 1,
} recon_basis;

// Method of evaluating E and E^H.
typedef enum recon_method {
    // NUFFT for a grid of voxels, exact sums for a list.
    RECON_METHOD_AUTO = 0,
    // The direct sums, to full precision, in time samples times voxels.
    RECON_METHOD_EXACT = 1,
    // Gridding and FFT, to the tolerance.
    RECON_METHOD_NUFFT = 2,
} recon_method;

// Method of evaluating E^H W E.
typedef enum recon_normal_operator {
    // The method that is faster by the cost model, within the memory limit.
    RECON_NORMAL_AUTO = 0,
    // By convolution with Q, on the doubled grid.
    RECON_NORMAL_TOEPLITZ = 1,
    // By one forward and one adjoint transform.
    RECON_NORMAL_TRANSFORMS = 2,
} recon_normal_operator;

// Device on which a plan computes.
typedef enum recon_device {
    // The first usable GPU or the CPU: the one that is estimated to finish a plan and one transform first. It is
    // the GPU with a stream or arrays on a GPU. See estimated_cpu_ms of recon_plan_properties.
    RECON_DEVICE_AUTO = 0,
    // The CPU.
    RECON_DEVICE_CPU = 1,
    // NVIDIA GPUs, of compute capability 7.5 or more.
    RECON_DEVICE_CUDA = 2,
} recon_device;

// Reason why a plan computes on its device.
typedef enum recon_device_reason {
    // The caller requested the device, by its name, by a stream, or by arrays on a GPU.
    RECON_DEVICE_REQUESTED = 0,
    // A plan and one transform are estimated to take less time than on the other device.
    RECON_DEVICE_ESTIMATED_FASTER = 1,
    // There is no GPU.
    RECON_DEVICE_NO_GPU = 2,
    // There is a GPU that cannot be used. The log has the cause: NVRTC is missing, the GPU is too old, or CUDA has
    // failed or was started before a fork.
    RECON_DEVICE_GPU_UNUSABLE = 3,
} recon_device_reason;

// Vector unit of the processor that a plan uses. Levels differ in speed and in rounding.
typedef enum recon_simd {
    // The level in the environment variable RECON_SIMD (baseline or sse, avx2, avx512 on x86-64; baseline or neon
    // on 64-bit ARM). If the variable is not set or is auto, the best level of the processor. On AMD's Zen 4 that
    // is avx512-256: gridding with vectors of 256 bits, the rest with 512 bits. Any other value of the option
    // takes precedence over the variable.
    RECON_SIMD_AUTO = 0,
    // The level of every processor of the architecture: SSE2 on x86-64, NEON on 64-bit ARM.
    RECON_SIMD_BASELINE = 1,
    // AVX2 with fused multiply-add.
    RECON_SIMD_AVX2 = 2,
    // AVX-512 F, VL, DQ and BW.
    RECON_SIMD_AVX512 = 3,
    // NEON with fused multiply-add, of 64-bit ARM.
    RECON_SIMD_NEON = 4,
} recon_simd;

// Family of gridding windows.
typedef enum recon_window {
    // Kaiser-Bessel, with the beta that minimises the maximum error.
    RECON_WINDOW_KAISER_BESSEL = 0,
    // A truncated Gaussian: about half as many correct digits as Kaiser-Bessel.
    RECON_WINDOW_GAUSSIAN = 1,
    // Linear interpolation along each axis, with an error of at least about 0.2: set tolerance to that, or to 0.
    RECON_WINDOW_BILINEAR = 2,
    // The smallest maximum error of all windows of its width. It is the default, and the best for every tolerance.
    RECON_WINDOW_MINIMAX = 3,
} recon_window;

// Filter of recon_fbp: the ramp |k| times a window of a = pi |k| / k_max, where k_max is the largest measured |k|.
// Noise and detail decrease from the first filter to the last.
typedef enum recon_filter {
    // The ramp alone.
    RECON_FILTER_RAM_LAK = 0,
    // sin(a/2) / (a/2).
    RECON_FILTER_SHEPP_LOGAN = 1,
    // cos(a/2).
    RECON_FILTER_COSINE = 2,
    // 0.54 + 0.46 cos(a).
    RECON_FILTER_HAMMING = 3,
    // (1 + cos(a)) / 2.
    RECON_FILTER_HANN = 4,
} recon_filter;

// Correction of the phase of blades in recon_propeller.
typedef enum recon_blade_phase {
    // The phase of a smooth image of each blade is removed from the blade, coil by coil (Pipe 1999). The smooth
    // phase of the object and of the coils is removed as well.
    RECON_BLADE_PHASE_SMOOTH = 0,
    // One phase per blade, equal in all coils, is removed.
    RECON_BLADE_PHASE_CONSTANT = 1,
    // The phase of blades is not changed.
    RECON_BLADE_PHASE_NONE = 2,
} recon_blade_phase;

// Method of recon_partial_fourier.
typedef enum recon_partial_fourier_method {
    // Homodyne detection (Noll et al. 1991), in one step.
    RECON_PARTIAL_FOURIER_HOMODYNE = 0,
    // Projection onto convex sets (Haacke et al. 1991): iterations, with a smaller error.
    RECON_PARTIAL_FOURIER_POCS = 1,
} recon_partial_fourier_method;

// Prior of recon_cg: the R of (E^H W E + lambda R^H R) x = E^H W d.
typedef enum recon_prior {
    // R = 1: the energy of the image.
    RECON_PRIOR_IDENTITY = 0,
    // Differences between neighbours along each axis.
    RECON_PRIOR_DIFFERENCES = 1,
    // Differences, each multiplied by exp(-(d/s)^2): smooth within tissues, free across their borders. d is the
    // difference of the same two voxels in a reference image, and s is `edge` times the reference's largest
    // magnitude. R^H R contains the squares of the factors, exp(-2 (d/s)^2).
    RECON_PRIOR_ANATOMICAL = 2,
    // A sparse matrix given by the caller.
    RECON_PRIOR_MATRIX = 3,
} recon_prior;

// Reason why an iteration ended.
typedef enum recon_stop {
    // All iterations were done.
    RECON_STOP_ITERATIONS = 0,
    // The residual fell to the tolerance.
    RECON_STOP_TOLERANCE = 1,
    // The residual is 0 or cannot be reduced further: the solution is exact to rounding.
    RECON_STOP_EXACT = 2,
} recon_stop;

// Method of computing density weights. Percentages are errors of a gridded phantom on fully sampled trajectories
// without noise, compared at the same resolution. examples/densities prints them for many trajectories.
typedef enum recon_density_method {
    // The fixed point of w = w / (C w), where C is a window that extends over two Nyquist distances (Pipe and
    // Menon 1999). For any trajectory; 0.4 to 3 %.
    RECON_DENSITY_PIPE_MENON = 0,
    // |k|^(ndim-1), for samples that lie evenly along lines through the centre or along spirals whose radius grows
    // evenly. For a stack of either along an axis: |k| in the plane times the thickness of the partition. The
    // error is 0 to 3 %. Spokes in 2D are weighted by the angle between their neighbours, since golden-angle
    // spokes are not spread evenly. Samples must be in the order of acquisition. Other trajectories are
    // RECON_INVALID_ARGUMENT; their error would be 20 to 300 %.
    RECON_DENSITY_RAMP = 1,
    // The inverse density of samples under a window that extends over one Nyquist distance (Jackson et al. 1991).
    // For any trajectory, in one step; 5 to 15 %.
    RECON_DENSITY_JACKSON = 2,
} recon_density_method;

// Method of combining coil images.
typedef enum recon_combine_method {
    // The root of the sum of squared magnitudes.
    RECON_COMBINE_ROOT_SUM_OF_SQUARES = 0,
    // sum_c conj(S_c) x_c with sensitivities estimated from the coil images. It keeps the phase and has less
    // noise.
    RECON_COMBINE_ADAPTIVE = 1,
} recon_combine_method;

// Order of the spokes' angles in recon_trajectory_radial2d and recon_trajectory_stack_of_stars.
typedef enum recon_spoke_order {
    // Spoke p has the angle p pi / spokes.
    RECON_SPOKES_LINEAR = 0,
    // Spoke p has the angle p times 111.246 degrees.
    RECON_SPOKES_GOLDEN_ANGLE = 1,
} recon_spoke_order;

// Coils that measure a phantom.
typedef enum recon_coil_model {
    // One coil with the same sensitivity everywhere.
    RECON_COILS_UNIFORM = 0,
    // Coils evenly spaced around the field of view, with the maps of recon_phantom_coil_maps.
    RECON_COILS_RING = 1,
} recon_coil_model;

// Whether complex images or their magnitudes are compared.
typedef enum recon_part {
    // Complex voxels.
    RECON_PART_COMPLEX = 0,
    // Magnitudes of voxels.
    RECON_PART_MAGNITUDE = 1,
} recon_part;

// Scaling of an image before it is compared with the truth.
typedef enum recon_scale {
    // No scaling.
    RECON_SCALE_NONE = 0,
    // The image is multiplied by the number that minimises the squared error.
    RECON_SCALE_BEST = 1,
} recon_scale;

// Level of log messages. The log callback receives messages of its level and of the levels above it in this list.
typedef enum recon_log_level {
    // No messages.
    RECON_LOG_OFF = 0,
    // Failures.
    RECON_LOG_ERROR = 1,
    // Results that may not be the intended ones.
    RECON_LOG_WARNING = 2,
    // One line per plan, and choices made for the caller.
    RECON_LOG_INFO = 3,
    // Steps of longer computations.
    RECON_LOG_DEBUG = 4,
    // Everything.
    RECON_LOG_TRACE = 5,
} recon_log_level;

// Warnings of plans and calls: see recon_plan_warning and recon_last_warning.
typedef enum recon_warning {
    // No warning.
    RECON_WARNING_NONE = 0,
    // The largest |k| is less than a quarter of what the image's size can resolve. The coordinates may have the
    // wrong units, or the image will be blurred.
    RECON_WARNING_EXTENT = 1,
    // The default tolerance cannot be met by the window or the precision. (A tolerance that is set and cannot be
    // met is an error.)
    RECON_WARNING_TOLERANCE = 2,
    // PROPELLER blades disagree after their motion was corrected, moved far, or are incomplete.
    RECON_WARNING_BLADES = 3,
    // A noise scan is short, or a noise level does not fit the data.
    RECON_WARNING_NOISE = 4,
    // The virtual coils contain little of the data's energy.
    RECON_WARNING_COMPRESSION = 5,
    // A phase wraps: off-resonance exceeds the range that the echo spacing determines, or a velocity exceeds the
    // range of its encoding.
    RECON_WARNING_WRAPS = 6,
    // The sample times are implausible for a readout: they may not be in seconds.
    RECON_WARNING_TIMES = 7,
    // The system refused threads: fewer compute than were requested.
    RECON_WARNING_THREADS = 8,
    // Gaps between samples reduce the centre of k-space from which coil maps are estimated, or bring aliases into
    // the field of view.
    RECON_WARNING_CALIBRATION = 9,
    // The acquisitions of a scan can be interpreted in several ways, or some are missing.
    RECON_WARNING_ACQUISITIONS = 10,
    // Partial Fourier: the phase of the image is not smooth, the symmetric centre of k-space is narrow, or k-space
    // has gaps.
    RECON_WARNING_PARTIAL_FOURIER = 11,
} recon_warning;

// Unit of the weight lambda of a prior.
typedef enum recon_lambda_unit {
    // Relative to the mean of the diagonal of E^H W E over the voxels that the coils see: sum_m w_m |phi(k_m)|^2,
    // times the mean of sum_c |S_c|^2 with coil maps. One value is then suitable for scans of any length and
    // scale.
    RECON_LAMBDA_RELATIVE = 0,
    // Absolute: lambda is used unchanged in (E^H W E + lambda R^H R) x = E^H W d.
    RECON_LAMBDA_ABSOLUTE = 1,
} recon_lambda_unit;

// Uses of an acquisition: bits of the number that recon_acquisition_use writes.
typedef enum recon_acquisition_purpose {
    // Samples of an image.
    RECON_PURPOSE_IMAGE = 1,
    // Samples from which coil maps are estimated.
    RECON_PURPOSE_CALIBRATION = 2,
    // Noise without signal, from which coils are whitened.
    RECON_PURPOSE_NOISE = 4,
} recon_acquisition_purpose;

// The counter whose change completes the images of a scan.
typedef enum recon_scan_counter {
    // No counter: images are complete at the end of the measurement.
    RECON_SCAN_COUNTER_NONE = 0,
    // The slice.
    RECON_SCAN_COUNTER_SLICE = 1,
    // The contrast.
    RECON_SCAN_COUNTER_CONTRAST = 2,
    // The phase.
    RECON_SCAN_COUNTER_PHASE = 3,
    // The repetition.
    RECON_SCAN_COUNTER_REPETITION = 4,
    // The set.
    RECON_SCAN_COUNTER_SET = 5,
} recon_scan_counter;

// How k-space is traversed: the trajectory of an encoding in ISMRMRD's header.
typedef enum recon_trajectory_kind {
    // Lines of a Cartesian grid.
    RECON_TRAJECTORY_CARTESIAN = 0,
    // Echo-planar.
    RECON_TRAJECTORY_EPI = 1,
    // Spokes through the centre.
    RECON_TRAJECTORY_RADIAL = 2,
    // Spokes at golden angles.
    RECON_TRAJECTORY_GOLDEN_ANGLE = 3,
    // Spirals.
    RECON_TRAJECTORY_SPIRAL = 4,
    // Anything else.
    RECON_TRAJECTORY_OTHER = 5,
} recon_trajectory_kind;

// The trajectory of acquisitions that have none.
typedef enum recon_header_trajectory {
    // The trajectory that the header names.
    RECON_HEADER_TRAJECTORY_AUTO = 0,
    // Lines of a Cartesian grid.
    RECON_HEADER_TRAJECTORY_CARTESIAN = 1,
    // Spokes at equal angles, in a plane or as a stack of stars.
    RECON_HEADER_TRAJECTORY_RADIAL = 2,
    // Spokes at multiples of a golden or tiny golden angle, in a plane or as a stack of stars.
    RECON_HEADER_TRAJECTORY_GOLDEN_ANGLE = 3,
    // Spokes through a ball, in directions from the golden means of two dimensions (Chan et al. 2009).
    RECON_HEADER_TRAJECTORY_KOOSHBALL_GOLDEN_MEANS = 4,
    // Spokes through a ball, in directions on a phyllotaxis spiral (Piccini et al. 2011).
    RECON_HEADER_TRAJECTORY_KOOSHBALL_PHYLLOTAXIS = 5,
    // Spokes through a ball with the same solid angle for each, as recon_trajectory_radial3d.
    RECON_HEADER_TRAJECTORY_KOOSHBALL_EQUAL_AREA = 6,
    // Spirals of the variable-density design of Hargreaves.
    RECON_HEADER_TRAJECTORY_SPIRAL = 7,
    // Echo-planar lines with samples on the ramps of the gradient.
    RECON_HEADER_TRAJECTORY_EPI = 8,
} recon_header_trajectory;

// Conventions for trajectories that the header does not define.
typedef enum recon_trajectory_convention {
    // No convention: what is open is an error.
    RECON_CONVENTION_NONE = 0,
    // Conventions of Gadgetron's radial gadgets, in the plane.
    RECON_CONVENTION_GADGETRON = 1,
} recon_trajectory_convention;

// The number from which the direction of a spoke is computed.
typedef enum recon_spoke_number {
    // Both numbers, which must agree.
    RECON_SPOKE_NUMBER_AUTO = 0,
    // The counter kspace_encode_step_1.
    RECON_SPOKE_NUMBER_ENCODING_STEP = 1,
    // The number of earlier acquisitions of the same encoding, slice, contrast and set.
    RECON_SPOKE_NUMBER_ACQUISITION_ORDER = 2,
} recon_spoke_number;

// The scale of a spiral from the header.
typedef enum recon_spiral_extent {
    // Both scales, which must agree.
    RECON_SPIRAL_EXTENT_AUTO = 0,
    // k in 1/cm times the voxel size of the encoded matrix.
    RECON_SPIRAL_EXTENT_FIELD_OF_VIEW = 1,
    // krmax_per_cm is the edge of the encoded matrix's k-space, as in Gadgetron.
    RECON_SPIRAL_EXTENT_MATRIX = 2,
} recon_spiral_extent;

// A plan: everything that depends on the trajectory. Created by recon_plan_create. Any number of threads may use a
// plan at once.
typedef struct recon_plan recon_plan;

// The acquisitions of a measurement. Created by recon_scan_create. Several threads may use a scan, one after the
// other.
typedef struct recon_scan recon_scan;

// The data of one image, or of its calibration. Created by recon_scan_next and recon_scan_image_calibration. Several
// threads may read it at once.
typedef struct recon_scan_image recon_scan_image;

// A message of the log.
typedef struct recon_log_message {
    // Size of this structure in the library's version, in bytes. Fields beyond it do not exist.
    uint32_t struct_size;
    // A recon_log_level.
    uint32_t level;
    // One line in UTF-8 without a line end; never NULL. It is valid until the callback returns.
    const char *text;
    // The plan that was passed to the call that caused the message, such as the call that failed. NULL for calls
    // without a plan (also recon_plan_create and recon_plan_destroy), and for messages of the library's own threads.
    // The callback may compare it with the host's plans, but must not use it in calls.
    const recon_plan *plan;
} recon_log_message;

// Log callback. It may be called from any thread, from several at once, and while a call of this library is running.
// Messages of a call come from the thread that made the call, and before it returns. It must return normally (no
// exception, no longjmp). Messages that the callback itself causes in the library are dropped.
typedef void (*recon_log_callback)(const recon_log_message *message, void *user_data);

// Properties of a GPU. Initialise them with recon_device_properties_init.
typedef struct recon_device_properties {
    // Set by recon_device_properties_init.
    uint32_t struct_size;
    // Number of streaming multiprocessors.
    uint32_t multiprocessors;
    // Major number of the compute capability, for example 9 of 9.0.
    uint32_t compute_major;
    // Minor number of the compute capability, for example 0 of 9.0.
    uint32_t compute_minor;
    // Bytes of memory.
    uint64_t memory_bytes;
    // Bytes of free memory.
    uint64_t memory_free_bytes;
    // Name of the GPU, ending in 0.
    char name[256];
} recon_device_properties;

// A scan: trajectory, image and coils. Initialise it with recon_geometry_init, then set at least dims, samples and
// coordinates. The arrays are only read, and only during the call that receives the structure.
typedef struct recon_geometry {
    // Set by recon_geometry_init.
    uint32_t struct_size;
    // A recon_precision: the type of every array here and of the plan. Default: RECON_F32.
    uint32_t precision;
    // Dimensions of image and trajectory: 2 (default) or 3.
    uint32_t ndim;
    // A recon_basis. Default: RECON_BASIS_POINT.
    uint32_t basis;
    // Voxels along x, y and, with ndim 3, z. With a voxel list: the field of view in voxels.
    uint64_t dims[3];
    // Samples of one coil and frame.
    uint64_t samples;
    // k-space coordinates along x, y, z in cycles per voxel, within [-0.5, 0.5]: real [samples] each. Coordinates
    // outside by at most 1e-6 are moved to the edge.
    const void *coordinates[3];
    // Distance between the coordinates of consecutive samples, in reals. 0 or 1: each axis has its own array. If one
    // array has all coordinates of a sample together: ndim, with the addresses of its first ndim elements as
    // coordinates.
    uint64_t coordinate_stride;
    // Non-negative density weights: real [samples]. NULL: all weights are 1, and recon_grid computes its own.
    const void *weights;
    // Number of receive coils. Default: 1.
    uint64_t coils;
    // Coil sensitivities: complex [nx, ny, nz, coils], which combine the coils into one image. NULL: one image per
    // coil.
    const void *coil_maps;
    // Number of frames measured on this trajectory, which are reconstructed independently. Default: 1.
    uint64_t frames;
    // Positions of voxels instead of a grid, in voxels from its origin: real [voxel_count] per axis. NULL: a grid.
    // With a list, nx ny nz is voxel_count in all shapes here, and only exact sums are possible. The maximum distance
    // from the origin is 262,144 voxels with f32 and 1.4e14 with f64; beyond that, the precision does not determine
    // the phase.
    const void *voxels[3];
    // Distance between the positions of consecutive voxels, as coordinate_stride.
    uint64_t voxel_stride;
    // Number of voxels in the list; 0 without a list.
    uint64_t voxel_count;
    // Off-resonance f in Hz: real [nx, ny, nz]. The model then has the factor exp(-i 2 pi f t), and times is required.
    // NULL: no off-resonance. |f t| may be at most 131,072 turns. A map whose range requires too many terms is
    // refused. Both limits apply to voxels that a coil sees, and the message gives voxel and frequency.
    const void *field_map;
    // Time t of each sample in seconds from the excitation or the echo, for field_map and decay_map: real [samples].
    // NULL without these maps.
    const void *times;
    // Non-negative decay rates R (R2*) in 1/s: real [nx, ny, nz]. The model then has the factor exp(-R t), and times
    // is required. NULL: no decay. Single voxels may decay as fast as noise in a map makes them, up to R = 5,000 over
    // the duration of the readout. If even the slowest voxel has R t above 60, plan creation fails with voxel and
    // rate.
    const void *decay_map;
} recon_geometry;

// Interrupt callback: polled by the thread that made the call, and by no other. 0 continues. Any other value ends the
// call with RECON_CANCELLED. It should take at most some microseconds, must not use the plan, and must return normally
// (no exception, no longjmp).
typedef int (*recon_interrupt_callback)(void *user_data);

// Options of a plan. Initialise them with recon_options_init.
typedef struct recon_options {
    // Set by recon_options_init.
    uint32_t struct_size;
    // A recon_method. Default: RECON_METHOD_AUTO.
    uint32_t method;
    // A recon_normal_operator. Default: RECON_NORMAL_AUTO.
    uint32_t normal;
    // A recon_window. Default: RECON_WINDOW_MINIMAX.
    uint32_t window;
    // A recon_device. Default: RECON_DEVICE_AUTO.
    uint32_t device;
    // Number of indices in device_indices; 0 for the first GPU. Several GPUs divide coils with NUFFT, and voxels with
    // exact sums. Only the first GPU computes with a memory limit, or if there is nothing to divide.
    uint32_t device_count;
    // Indices of the GPUs for RECON_DEVICE_CUDA: [device_count]. Or NULL.
    const uint32_t *device_indices;
    // Number of CPU threads, including the caller's. The others start with the plan and end with it. 0 (default): the
    // number that the machine runs at once. If the system refuses some, the plan computes with the others, and the log
    // has a warning (RECON_WARNING_THREADS). With GPUs, at most eight of them copy and check arrays of the host.
    uint32_t threads;
    // Not 0: the k-space and image arrays of recon_forward, recon_fhd, recon_weighted_fhd, recon_normal, recon_grid,
    // recon_fbp and recon_cg are addresses in the GPU's memory. All other arrays are in the host's memory.
    uint32_t pointers_on_device;
    // Relative l2 error of a transform compared with the exact sums, in (0, 1). 0 (default): 1e-5. It is met for any
    // distribution of samples, also with hundreds of thousands in one place. The entries of E have size 1, and the
    // error of an entry is at most five times the tolerance. Exact sums have rounding errors only. Exception: over a
    // voxel list on a GPU in f32, the special function units compute the sines, with an error of the sums of about
    // 2e-6. A tolerance below 1e-5 avoids this and takes 2.5 times as long.
    double tolerance;
    // Maximum number of bytes that the plan and its operations hold in addition to the caller's arrays. 0 (default):
    // no limit.
    uint64_t memory_limit;
    // A recon_simd. Default: RECON_SIMD_AUTO. RECON_UNSUPPORTED if the processor does not have the level.
    uint32_t simd;
    // Not 0: the GPU's work is queued on `stream`. 0 (default): it is queued on the plan's own stream, and calls
    // return when their results are complete.
    uint32_t use_stream;
    // A CUstream or cudaStream_t of the GPU's primary context that outlives the plan; NULL is the default stream.
    // Calls whose arrays are all on the GPU may then return before their results are complete. Work that is queued
    // later on the stream can use them.
    void *stream;
    // Callback that is polled while the plan is created and in every call with it: about fifty times a second, less
    // often if the work does not allow it (one NUFFT of a large image). When it requests a stop, the call ends; the
    // plan remains usable. NULL (default): none.
    //
    // Outputs are then unchanged. To ensure this, Q, exact sums, and transforms of several coils or frames are
    // computed in memory of the output's size, which memory_limit counts. With pointers_on_device, or if they are
    // estimated to take less than 20 ms, transforms poll only before they begin, and need no such memory. Several GPUs
    // that share work are not interrupted during their parts.
    recon_interrupt_callback interrupt;
    // Pointer that is passed to interrupt. It must be valid until the plan is destroyed.
    void *interrupt_data;
    // Grid size divided by image size, 1.25 to 2.5. 0 (default): a value that meets the tolerance.
    // The grid of each axis is the next larger size that has a fast FFT, and at least two windows wide.
    // RECON_INVALID_ARGUMENT with exact sums, which have no grid.
    double oversampling;
    // Width of the window in grid cells, 2 to 16 (with RECON_WINDOW_BILINEAR 2). 0 (default): a width that meets the
    // tolerance. RECON_INVALID_ARGUMENT with exact sums.
    //
    // Width and oversampling can be set independently. Those that are not set are chosen so that the tolerance is met
    // at the lowest cost. If it cannot be met: a tolerance that is set is RECON_TOLERANCE_OUT_OF_RANGE, with a message
    // that gives values which meet it. If no tolerance is set, the plan is created. recon_plan_info then reports its
    // error, and RECON_WARNING_TOLERANCE that the error exceeds the default.
    uint32_t width;
    // Not 0: coordinates, weights and coil_maps of the geometry, and those of recon_plan_set_trajectory,
    // recon_plan_set_weights and recon_plan_set_coil_maps, are addresses in the GPU's memory. They are checked and
    // sorted there, and are complete for work that was queued earlier on `stream`. RECON_UNSUPPORTED with voxel lists,
    // field_map, decay_map and times, and with several GPUs; RECON_INVALID_ARGUMENT with RECON_DEVICE_CPU, and for
    // addresses that are not on the plan's GPU.
    uint32_t geometry_on_device;
} recon_options;

// Progress of recon_cg.
typedef struct recon_progress {
    // Size of this structure in the library's version, in bytes. Fields beyond it do not exist.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // Index of the image that is being solved for, from 0.
    uint64_t image;
    // Number of images: frames with coil maps, coils times frames without.
    uint64_t images;
    // Number of finished iterations for this image.
    uint64_t iteration;
    // Maximum number of iterations.
    uint64_t iterations;
    // Norm of the residual relative to that of E^H W d.
    double residual;
} recon_progress;

// Progress callback: called before the first and after each iteration of recon_cg, by the thread that called recon_cg.
// 0 continues. Any other value ends the call with RECON_CANCELLED and leaves the image unchanged. It may use the plan,
// but must not destroy it, and must return normally (no exception, no longjmp).
typedef int (*recon_progress_callback)(const recon_progress *progress, void *user_data);

// Options of recon_cg. Initialise them with recon_cg_options_init.
typedef struct recon_cg_options {
    // Set by recon_cg_options_init.
    uint32_t struct_size;
    // A recon_prior. Default: RECON_PRIOR_IDENTITY. While lambda is 0 the prior is checked, but has no effect.
    uint32_t prior;
    // Maximum number of iterations for each image. Default: 12.
    uint64_t iterations;
    // Relative residual, in [0, 1), at which iteration stops: the norm of the residual divided by that of E^H W d. 0
    // (default): all iterations are done.
    double tolerance;
    // Non-negative weight of the prior in the unit lambda_unit. Default: 0.
    double lambda;
    // Reference image in any unit, for RECON_PRIOR_ANATOMICAL: real [nx, ny, nz].
    const void *reference;
    // Difference that counts as a border, as a fraction of the reference's largest magnitude, for
    // RECON_PRIOR_ANATOMICAL. Default: 0.1.
    double edge;
    // Number of rows of R, for RECON_PRIOR_MATRIX. R has one column per voxel.
    uint64_t matrix_rows;
    // Index of the first entry of each row, and the end of the last row: [matrix_rows + 1], beginning with 0.
    const uint64_t *matrix_starts;
    // Column (voxel index) of each entry: [matrix_starts[matrix_rows]].
    const uint64_t *matrix_columns;
    // Value of each entry: complex [matrix_starts[matrix_rows]].
    const void *matrix_values;
    // Initial image, of the result's shape. NULL: zeros.
    const void *initial;
    // Callback before the first and after each iteration. NULL: none.
    recon_progress_callback progress;
    // Pointer that is passed to progress.
    void *user_data;
    // A recon_lambda_unit. Default: RECON_LAMBDA_RELATIVE.
    uint32_t lambda_unit;
    // Zero.
    uint32_t reserved;
    // Noise level from which lambda is found by the discrepancy principle (Morozov 1966): the distance of the image
    // from the data is then about the noise. It is the root of the mean |noise|^2 of a sample, in the unit of the data
    // (1 after recon_whitening). lambda must then be 0. 0 (default): lambda is used unchanged.
    //
    // The search takes seven to twelve solutions, each of which calls progress. It is for plans without weights, and
    // for arrays in the host's memory. A level that is half or twice that of the data is RECON_INVALID_ARGUMENT.
    double noise_level;
} recon_cg_options;

// Report of recon_cg. Initialise it with recon_cg_report_init. The caller sets residuals and residual_capacity. All
// other fields are written when the call succeeds.
typedef struct recon_cg_report {
    // Set by recon_cg_report_init.
    uint32_t struct_size;
    // A recon_stop: stop reason of the image with the largest final residual.
    uint32_t stop;
    // Number of images: frames with coil maps, coils times frames without.
    uint64_t images;
    // Index of the image with the largest final residual, from 0.
    uint64_t worst_image;
    // Number of iterations of that image.
    uint64_t iterations;
    // Final residual of that image, relative to the norm of E^H W d.
    double residual;
    // Seconds for computing Q; 0 if it existed already or is not used.
    double q_seconds;
    // Seconds for E^H W d.
    double adjoint_seconds;
    // Seconds for the iterations.
    double iteration_seconds;
    // Array that receives the relative residual before the first iteration and after each: [iterations + 1, images],
    // with the iterations of the options. It is NaN for iterations that were not done. Or NULL.
    double *residuals;
    // Number of elements of residuals: at least (iterations + 1) images, unless residuals is NULL.
    uint64_t residual_capacity;
    // The lambda of (E^H W E + lambda R^H R) x = E^H W d that was used.
    double lambda;
} recon_cg_report;

// Options of recon_propeller. Initialise them with recon_propeller_options_init.
typedef struct recon_propeller_options {
    // Set by recon_propeller_options_init.
    uint32_t struct_size;
    // A recon_blade_phase. Default: RECON_BLADE_PHASE_SMOOTH.
    uint32_t phase;
    // Number of lines per blade. 0 (default): the number of lines that are parallel and evenly spaced.
    uint64_t lines;
    // Not 0 (default 1): rotations are estimated and corrected.
    uint32_t rotation;
    // Not 0 (default 1): translations are estimated and corrected.
    uint32_t translation;
    // Not 0 (default 1): blades that disagree with the others, as after motion through the plane, have smaller weights
    // in the image.
    uint32_t weighting;
    // Zero.
    uint32_t reserved;
} recon_propeller_options;

// Report of recon_propeller. Initialise it with recon_propeller_report_init.
typedef struct recon_propeller_report {
    // Set by recon_propeller_report_init.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // Number of blades, written.
    uint64_t blades;
    // Number of lines per blade, written.
    uint64_t lines;
    // Number of samples per line, written.
    uint64_t readout;
    // Array that receives the motion of each blade, relative to the mean position over all blades: [6, blades,
    // frames]. Or NULL. The six values are:
    // - Rotation in degrees about voxel floor(n/2), from x to y.
    // - Translation along x in voxels, after the rotation.
    // - Translation along y in voxels.
    // - Phase in radians that was removed from the blade; with RECON_BLADE_PHASE_SMOOTH its mean over the image.
    // - Correlation of the corrected blade with all others near the centre of k-space, from 0 to 1.
    // - Weight of the blade where it overlaps others, from 0 to 1.
    double *motion;
    // Number of elements of motion: at least 6 blades frames, unless motion is NULL.
    uint64_t motion_capacity;
    // Arrays that receive the coordinates of the samples along x and y, relative to the object at rest: real [samples,
    // frames] each. A sample that a rotation moves out of [-0.5, 0.5) is at the edge, with weight 0. Both or NULL.
    void *coordinates[2];
    // Array that receives density weights for these coordinates (Pipe and Menon 1999), multiplied by the weights of
    // overlapping blades: real [samples, frames]. Or NULL.
    void *weights;
    // Array that receives the corrected data: complex [samples, coils, frames]. Or NULL.
    void *kspace;
} recon_propeller_report;

// Options of recon_partial_fourier. Initialise them with recon_partial_fourier_options_init.
typedef struct recon_partial_fourier_options {
    // Set by recon_partial_fourier_options_init.
    uint32_t struct_size;
    // A recon_partial_fourier_method. Default: RECON_PARTIAL_FOURIER_POCS.
    uint32_t method;
    // Maximum number of iterations for each image, at least 1. Default: 20. Homodyne detection has no iterations.
    uint64_t iterations;
    // Relative change of an image, in [0, 1), at which its iterations end: the norm of the difference between
    // consecutive images, divided by the norm of the image. Default: 0.0005. 0: all iterations are done.
    double tolerance;
} recon_partial_fourier_options;

// Report of recon_partial_fourier. Initialise it with recon_partial_fourier_report_init. All other fields are written
// when the call succeeds.
typedef struct recon_partial_fourier_report {
    // Set by recon_partial_fourier_report_init.
    uint32_t struct_size;
    // Axis with a missing side: 0, 1 or 2 for x, y or z.
    uint32_t axis;
    // Measured extent below and above k = 0 along this axis, in samples of a Cartesian scan (units of 1/FOV).
    double extent[2];
    // Largest number of iterations of an image; 0 for homodyne detection.
    uint64_t iterations;
    // Largest relative change of an image in its last iteration; 0 for homodyne detection.
    double change;
    // Norm of the difference between the measured data and the data of the images with the smooth phase, relative to
    // the norm of the measured data: noise, and the error of the smooth phase.
    double residual;
} recon_partial_fourier_report;

// Options of recon_field_map. Initialise them with recon_field_map_options_init.
typedef struct recon_field_map_options {
    // Set by recon_field_map_options_init.
    uint32_t struct_size;
    // Not 0 (default 1): phase wraps are undone. Wraps are counted and reported as a warning in any case.
    uint32_t unwrap;
    // Weight of squared differences between neighbouring voxels, relative to that of a voxel of median signal.
    // Default: 0.2. 0: voxels with signal keep the measured value, and the others are filled.
    double smoothing;
    // Fraction of the largest signal, in [0, 1), below which a voxel is treated as noise without signal. Default: 0.1.
    // 0: all voxels have signal.
    double threshold;
    // Number of CPU threads, including the caller's. 0 (default): the number that the machine runs at once. The map
    // has the same bits for any number of threads.
    uint32_t threads;
    // Zero.
    uint32_t reserved;
    // Callback that is polled by the thread that makes the call; less often while wraps of a large volume are undone.
    // When it returns a value other than 0, the call ends, and outputs are unchanged. NULL (default): none.
    recon_interrupt_callback interrupt;
    // Pointer that is passed to interrupt.
    void *interrupt_data;
} recon_field_map_options;

// Report of recon_field_map. Initialise it with recon_field_map_report_init.
typedef struct recon_field_map_report {
    // Set by recon_field_map_report_init.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // Largest |f| in Hz that the phase determines without a wrap: 1 / (2 shortest spacing of echoes).
    double limit;
    // Fraction of voxels with signal.
    double signal;
    // Change by smoothing in voxels with signal: RMS in Hz, with the weights of the fit.
    double change;
    // Pairs of neighbouring voxels with signal whose phases differed by more than pi. Many such pairs are wraps.
    uint64_t jumps;
    // Voxels whose phase was unwrapped.
    uint64_t unwrapped;
    // Pairs whose phases still differ by more than pi after unwrapping, or without it. The map is wrong on one side of
    // each.
    uint64_t unresolved;
    // Ambiguity in Hz: f and f + period have the same phases at all echo times. With evenly spaced echoes it is 1 /
    // spacing. For each piece of the object the median nearest 0 Hz is chosen. The true value can differ by a multiple
    // of the period.
    double period;
    // Separate pieces of voxels with signal. The off-resonance of two pieces is not related.
    uint64_t pieces;
    // Voxels in pieces for which noise hides the correct multiple of the period.
    uint64_t undecided;
} recon_field_map_report;

// Properties of a plan. Initialise them with recon_plan_properties_init.
typedef struct recon_plan_properties {
    // Set by recon_plan_properties_init.
    uint32_t struct_size;
    // A recon_precision.
    uint32_t precision;
    // A recon_method: RECON_METHOD_EXACT or RECON_METHOD_NUFFT.
    uint32_t method;
    // The requested recon_window. It has no effect with exact sums.
    uint32_t window;
    // Width of the window in grid cells; 0 with exact sums.
    uint32_t width;
    // Number of CPU threads that compute, including the caller's. It is less than requested if the system refused
    // some.
    uint32_t threads;
    // 1 if E^H W E is computed by convolution with Q, otherwise 0.
    uint32_t toeplitz;
    // Dimensions of the image.
    uint32_t ndim;
    // Oversampled grid [gx, gy, gz] (gz is 1 in 2D); zeros with exact sums.
    uint64_t grid[3];
    // Grid size divided by image size, of the axis with the smallest ratio.
    double oversampling;
    // Expected relative l2 error of a transform. It is at most the tolerance if the tolerance chose the window. For a
    // window of a given width and oversampling it is the error for evenly spread samples. If all samples are at the
    // edge of k-space, the error is up to 3.3 times as large.
    double error;
    // Complex elements of an image array: voxels times images times frames.
    uint64_t image_elements;
    // Complex elements of a k-space array: samples times coils times frames.
    uint64_t kspace_elements;
    // Complex elements of Q.
    uint64_t q_elements;
    // Complex elements of gridded k-space: grid times coils times frames; 0 with exact sums.
    uint64_t grid_elements;
    // Bytes held on the host, including Q once it is computed.
    uint64_t host_bytes;
    // Bytes held on GPUs.
    uint64_t device_bytes;
    // Seconds for creating the plan, or for its last change (recon_plan_set_trajectory and similar).
    double seconds;
    // Name of the device, ending in 0.
    char device[64];
    // Vector unit in use, ending in 0: "sse", "avx2", "avx512" or "avx512-256" (see RECON_SIMD_AUTO) on x86-64,
    // "neon" on 64-bit ARM, otherwise "portable"; "none" on a GPU.
    char simd[32];
    // Number of transforms that one transform with a field map or a decay map consists of, which follows from the
    // tolerance. 0 without maps, and with exact sums.
    uint32_t segments;
    // Number of convolutions whose sum is E^H W E with a field map or a decay map. 0 without maps, and if E^H W E is
    // computed by transforms.
    uint32_t nodes;
    // A recon_device_reason: why the plan computes on its device.
    uint32_t device_reason;
    // 0.
    uint32_t reserved;
    // Estimated milliseconds of a plan and one adjoint transform of all coils and frames on the CPU, with arrays in
    // host memory. The estimate depends on sizes, options and the processor only. 0 if nothing was estimated, because
    // the device was requested or there is no usable GPU.
    double estimated_cpu_ms;
    // The same on the first usable GPU. The start of CUDA, which only the first plan of a process waits for, is not
    // included.
    double estimated_gpu_ms;
} recon_plan_properties;

// Bytes that a plan and its operations take at their peaks, in addition to the caller's arrays: see recon_plan_memory.
// Initialise them with recon_memory_init.
//
// Each number is the peak of a plan that is used for this one operation, the plan included. Q stays: after
// recon_normal or recon_cg were called, other operations take host_q and device_q more.
typedef struct recon_memory {
    // Set by recon_memory_init.
    uint32_t struct_size;
    // Width of the centre of k-space for host_coil_maps, as recon_coil_maps takes it; 0 for the default. Read, not
    // written.
    uint32_t calibration;
    // Host memory while the plan is created.
    uint64_t host_plan;
    // Host memory of recon_forward, recon_fhd and recon_weighted_fhd.
    uint64_t host_transform;
    // Host memory of recon_grid. Without weights in the geometry it includes the computation of those of Pipe and
    // Menon.
    uint64_t host_grid;
    // Host memory of recon_density with RECON_DENSITY_PIPE_MENON and RECON_DENSITY_RAMP.
    uint64_t host_density;
    // Host memory of recon_density with RECON_DENSITY_JACKSON.
    uint64_t host_density_jackson;
    // Host memory of recon_coil_maps with `calibration`.
    uint64_t host_coil_maps;
    // Host memory of recon_normal, including Q if it is used.
    uint64_t host_normal;
    // Host memory of recon_cg, including Q if it is used. Not included are the data of RECON_PRIOR_ANATOMICAL and
    // RECON_PRIOR_MATRIX, and the image and twice the data that the search by noise_level holds.
    uint64_t host_cg;
    // Host memory of Q after it is computed; 0 if it is not used.
    uint64_t host_q;
    // Memory of all GPUs of the plan while it is created; 0 on the CPU. The same holds for the other device_ fields.
    uint64_t device_plan;
    // Memory of GPUs, as host_transform.
    uint64_t device_transform;
    // Memory of GPUs, as host_grid.
    uint64_t device_grid;
    // Memory of GPUs, as host_density.
    uint64_t device_density;
    // Memory of GPUs, as host_density_jackson.
    uint64_t device_density_jackson;
    // Memory of GPUs, as host_coil_maps.
    uint64_t device_coil_maps;
    // Memory of GPUs, as host_normal.
    uint64_t device_normal;
    // Memory of GPUs, as host_cg.
    uint64_t device_cg;
    // Memory of GPUs, as host_q.
    uint64_t device_q;
    // Host memory of recon_combine with RECON_COMBINE_ADAPTIVE for images of this size, which requires no plan.
    uint64_t host_combine;
    // Host memory of recon_fbp, for spokes whose number of samples is at most 8 times the voxels of an axis; in 3D as
    // host_plan.
    uint64_t host_fbp;
    // Memory of GPUs, as host_fbp.
    uint64_t device_fbp;
} recon_memory;

// Options of recon_scan_create. Initialise them with recon_scan_options_init.
typedef struct recon_scan_options {
    // Set by recon_scan_options_init.
    uint32_t struct_size;
    // A recon_scan_counter: images are complete when this counter changes. Default: RECON_SCAN_COUNTER_NONE, which
    // means the end of the measurement.
    uint32_t complete;
    // Not 0 (default 0): k-space has the other sign than the model, exp(+i 2 pi k.r), as some converters write it. The
    // samples are conjugated.
    uint32_t conjugate;
    // Not 0 (default 1): noise acquisitions whiten the coils of image and calibration. Images are then in units of the
    // noise's standard deviation. Noise that is added after the first data of its number of coils were handed out has
    // no effect.
    uint32_t whiten;
    // A recon_header_trajectory: the trajectory of acquisitions that have none, unless the encoding is Cartesian.
    // Default: RECON_HEADER_TRAJECTORY_AUTO, that of the header. The next fields settle what the header leaves open.
    uint32_t header_trajectory;
    // A recon_trajectory_convention, for everything that is not in the header or in the other fields. Default:
    // RECON_CONVENTION_NONE.
    uint32_t convention;
    // A recon_spoke_number: the number from which the direction of a spoke is computed. Default:
    // RECON_SPOKE_NUMBER_AUTO.
    uint32_t spoke_number;
    // A recon_spiral_extent: the scale of a spiral. Default: RECON_SPIRAL_EXTENT_AUTO.
    uint32_t spiral_extent;
    // Number N of the tiny golden angle: 1 for the golden angle of 111.246 degrees, negative for a rotation from y
    // towards x. 0 (default): from the header.
    int32_t golden_angle;
    // Number of spokes in the range of angles. 0 (default): from the encoding limits.
    uint32_t spoke_count;
    // Number of successive frames whose spokes interleave. 0 (default): 1.
    uint32_t frames_per_rotation;
    // Number of samples along a spoke from one edge of k-space to the other. 0 (default): those of an acquisition.
    uint32_t readout_samples;
    // Range of the angles of spokes or interleaves in degrees, positive from x towards y. NAN (default): from the
    // header.
    double angle_range_degrees;
    // Angle of the first spoke or interleaf in degrees. NAN (default): from the header.
    double first_angle_degrees;
    // Sample at the centre of k-space. NAN (default): that of the acquisition; 0 for a spiral.
    double center_sample;
    // Delay of the gradients in microseconds. NAN (default): 0.
    double gradient_delay_us;
    // Time between samples in microseconds. NAN (default): from the acquisitions and the header.
    double sample_time_us;
    // Time from the beginning of an echo-planar gradient to its first sample in microseconds. NAN (default): the
    // samples are in the middle of the gradient.
    double acquisition_delay_us;
    // Number of newest images of the same encoding, slice, contrast, phase and set whose data are joined to one image:
    // a sliding window. 0 (default) and 1: no window.
    uint32_t window;
    // Zero.
    uint32_t reserved;
} recon_scan_options;

// Properties of the data of one image. Initialise them with recon_scan_properties_init. The arrays belong to the
// recon_scan_image, and exist until it is destroyed.
typedef struct recon_scan_properties {
    // Set by recon_scan_properties_init.
    uint32_t struct_size;
    // Dimensions of the image: 2 if the encoded matrix has one voxel along z, otherwise 3.
    uint32_t ndim;
    // Voxels of the encoded matrix along x, y, z. Coordinates are in cycles per voxel of this matrix.
    uint64_t encoded_matrix[3];
    // Voxels of the reconstructed matrix along x, y, z: recon_resize converts images to it.
    uint64_t recon_matrix[3];
    // Field of view of the encoded matrix along x, y, z in mm.
    double encoded_fov_mm[3];
    // Field of view of the reconstructed matrix along x, y, z in mm.
    double recon_fov_mm[3];
    // Number of samples of one coil, without discarded samples.
    uint64_t samples;
    // Number of acquisitions.
    uint64_t shots;
    // Number of receive coils.
    uint64_t coils;
    // Coordinates along x, y, z in cycles per voxel: float [samples] each; NULL along z in 2D.
    const float *coordinates[3];
    // Density weights: float [samples]. The weights of the acquisitions, or equal weights if the samples are a
    // complete Cartesian grid, of which the image is the inverse discrete Fourier transform. NULL for other samples.
    const float *weights;
    // Time of each sample in seconds since the first sample of its acquisition, which may be discarded: float
    // [samples]. All 0 if the acquisitions have no sample time.
    const float *times;
    // The data: complex float [samples, coils].
    const void *kspace;
    // Number of samples of each acquisition: [shots].
    const uint64_t *samples_per_shot;
    // Number of discarded samples at the beginning of each acquisition: [shots].
    const uint64_t *skipped_per_shot;
    // Time between samples in seconds; 0 if it is unknown.
    double dwell;
    // Position in mm of voxel floor(n/2) on every axis, in the patient's coordinates (x to the left, y to the back, z
    // to the head).
    double position[3];
    // Direction of increasing x index in the patient.
    double read_dir[3];
    // Direction of increasing y index in the patient.
    double phase_dir[3];
    // Direction of increasing z index in the patient.
    double slice_dir[3];
    // Position of the patient's table in mm.
    double table_position[3];
    // Number of the encoding in the header.
    uint32_t encoding;
    // The slice.
    uint32_t slice;
    // The repetition.
    uint32_t repetition;
    // The contrast, or echo.
    uint32_t contrast;
    // The phase of the heart or of breathing.
    uint32_t phase;
    // The set, for example a velocity encoding.
    uint32_t set;
    // The first average. All averages are in the same data.
    uint32_t average;
    // A recon_trajectory_kind.
    uint32_t trajectory;
    // 1 if noise has whitened the coils, otherwise 0.
    uint32_t is_whitened;
    // Number that identifies the measurement.
    uint32_t measurement_uid;
    // Time of the first acquisition, in the scanner's units.
    uint32_t acquisition_time_stamp;
    // Times of the first acquisition since the physiological triggers, in the scanner's units.
    uint32_t physiology_time_stamp[3];
    // Header of the first acquisition, in the order of recon_scan_add: 340 bytes, as there. With a sliding window it
    // is that of the newest image.
    const void *first_acquisition;
    // Header of the last acquisition.
    const void *last_acquisition;
} recon_scan_properties;

// Numbers of acquisitions by their use. Initialise them with recon_scan_counts_init.
typedef struct recon_scan_counts {
    // Set by recon_scan_counts_init.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // Acquisitions of images only.
    uint64_t image;
    // Acquisitions of calibration only.
    uint64_t calibration;
    // Acquisitions of image and calibration.
    uint64_t image_and_calibration;
    // Acquisitions of noise.
    uint64_t noise;
    // Acquisitions that are not used, such as navigators.
    uint64_t unused;
} recon_scan_counts;

// Error e = scale x - t of an image x compared with the truth t. Initialise it with recon_quality_init.
typedef struct recon_quality {
    // Set by recon_quality_init.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // 100 RMS(e) / RMS(t), in percent.
    double percent_error;
    // Mean squared error RMS(e)^2, in squared units of the truth.
    double mse;
    // Peak signal to noise ratio, 20 log10(max |t| / RMS(e)), in dB; infinite without error.
    double psnr_db;
    // Signal to noise ratio, 20 log10(RMS(t) / RMS(e)), in dB; infinite without error.
    double snr_db;
    // Real part of the scale by which the image was multiplied; 1 with RECON_SCALE_NONE.
    double scale_re;
    // Imaginary part of that scale.
    double scale_im;
} recon_quality;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of the library as text, "major.minor.patch". The text is never NULL and must not be freed.
const char *recon_version(void);

// Returns the meaning of a status in a few words. The text is never NULL, also for a number that is not a status, and
// must not be freed.
const char *recon_status_string(recon_status status);

// Returns the name of a status in one word, as in MATLAB's error identifiers: "InvalidSize" for RECON_INVALID_SIZE.
// The text is never NULL and must not be freed. It is "UnknownStatus" for a number that is not a status.
const char *recon_status_name(recon_status status);

// Finds the number of an option's value by its word, for hosts whose users write words, such as MATLAB. For example,
// option "window" and word "gaussian" give RECON_WINDOW_GAUSSIAN.
//
// Options are "precision" (words "single" and "double"), "basis", "method", "normal", "device", "simd", "window",
// "filter", "prior", "lambda_unit", "stop", "density", "combine" ("rss" and "adaptive"), "order" ("linear" and
// "golden"), "coil_model", "part", "scale", "warning", "phase", "purpose" and "level". Other words are the ends of the
// constants' names in lower case, with - for _.
//
// Errors:
// - RECON_NULL_POINTER.
// - RECON_UNKNOWN_VALUE if this version does not know the option or the word. The message lists those that it knows.
RECON_MUST_USE
recon_status recon_choice(const char *option, const char *word, uint32_t *value);

// Returns the word for a number of an option, see recon_choice. The text is never NULL and must not be freed. It is
// empty if the option or the number is unknown.
const char *recon_choice_word(const char *option, uint32_t value);

// Returns the message of this thread's last failed call in UTF-8: cause, value and remedy. The text is never NULL and
// must not be freed. It is empty before the first failure. The thread's next failure overwrites it in place.
const char *recon_last_error_message(void);

// Sets the callback that receives the library's log messages of `level` (a recon_log_level) and above, with
// `user_data`. It replaces the previous callback; NULL removes it. After the return the previous callback is not
// called any more. Without a callback the library is silent. The callback is the only setting of the whole process.
//
// Errors:
// - RECON_UNKNOWN_VALUE.
// - RECON_INVALID_ARGUMENT if called from within the callback.
// - RECON_UNSUPPORTED if the library is linked statically into a Rust program that has its own logger.
recon_status recon_set_log_callback(recon_log_callback callback, void *user_data, uint32_t level);

// Returns the number of GPUs that the driver reports; 0 without a driver. It cannot fail.
uint32_t recon_device_count(void);

// Describes the GPU with index `index`, counted from 0.
//
// Errors:
// - RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE.
// - RECON_NO_DEVICE if this GPU or the driver does not exist.
RECON_MUST_USE
recon_status recon_device_info(uint32_t index, recon_device_properties *properties);

// Sets the defaults of a geometry: f32, 2D, one coil, one frame, point voxels.
//
// `struct_size` is sizeof(recon_geometry). It informs the library of the header version that the caller was
// compiled with. The same holds for every _init function.
//
// Errors:
// - RECON_NULL_POINTER.
// - RECON_UNKNOWN_STRUCT_SIZE if the header is newer than the library.
RECON_MUST_USE
recon_status recon_geometry_init(recon_geometry *geometry, uint32_t struct_size);

// Sets the defaults of a plan's options: the library chooses everything. `struct_size` is sizeof(recon_options).
RECON_MUST_USE
recon_status recon_options_init(recon_options *options, uint32_t struct_size);

// Sets the defaults of recon_cg: 12 iterations, no prior. `struct_size` is sizeof(recon_cg_options).
RECON_MUST_USE
recon_status recon_cg_options_init(recon_cg_options *options, uint32_t struct_size);

// Sets an empty report without an array for residuals. `struct_size` is sizeof(recon_cg_report).
RECON_MUST_USE
recon_status recon_cg_report_init(recon_cg_report *report, uint32_t struct_size);

// Sets the defaults of recon_propeller: lines per blade from the trajectory; smooth phase, rotation and
// translation corrected. `struct_size` is sizeof(recon_propeller_options).
RECON_MUST_USE
recon_status recon_propeller_options_init(recon_propeller_options *options, uint32_t struct_size);

// Sets an empty report without arrays. `struct_size` is sizeof(recon_propeller_report).
RECON_MUST_USE
recon_status recon_propeller_report_init(recon_propeller_report *report, uint32_t struct_size);

// Sets the defaults of recon_partial_fourier: POCS with up to 20 iterations. `struct_size` is
// sizeof(recon_partial_fourier_options).
RECON_MUST_USE
recon_status recon_partial_fourier_options_init(recon_partial_fourier_options *options,
                                                uint32_t struct_size);

// Sets an empty report. `struct_size` is sizeof(recon_partial_fourier_report).
RECON_MUST_USE
recon_status recon_partial_fourier_report_init(recon_partial_fourier_report *report,
                                               uint32_t struct_size);

// Sets the defaults of recon_field_map. `struct_size` is sizeof(recon_field_map_options).
RECON_MUST_USE
recon_status recon_field_map_options_init(recon_field_map_options *options, uint32_t struct_size);

// Sets an empty report. `struct_size` is sizeof(recon_field_map_report).
RECON_MUST_USE
recon_status recon_field_map_report_init(recon_field_map_report *report, uint32_t struct_size);

// Sets empty properties. `struct_size` is sizeof(recon_plan_properties).
RECON_MUST_USE
recon_status recon_plan_properties_init(recon_plan_properties *properties, uint32_t struct_size);

// Sets all numbers of bytes to 0. `struct_size` is sizeof(recon_memory).
RECON_MUST_USE
recon_status recon_memory_init(recon_memory *memory, uint32_t struct_size);

// Sets the defaults of recon_scan_create: images are complete at the end, and noise whitens the coils.
// `struct_size` is sizeof(recon_scan_options).
RECON_MUST_USE
recon_status recon_scan_options_init(recon_scan_options *options, uint32_t struct_size);

// Sets empty properties. `struct_size` is sizeof(recon_scan_properties).
RECON_MUST_USE
recon_status recon_scan_properties_init(recon_scan_properties *properties, uint32_t struct_size);

// Sets all numbers to 0. `struct_size` is sizeof(recon_scan_counts).
RECON_MUST_USE
recon_status recon_scan_counts_init(recon_scan_counts *counts, uint32_t struct_size);

// Sets empty properties. `struct_size` is sizeof(recon_device_properties).
RECON_MUST_USE
recon_status recon_device_properties_init(recon_device_properties *properties, uint32_t struct_size);

// Sets all measures to 0. `struct_size` is sizeof(recon_quality).
RECON_MUST_USE
recon_status recon_quality_init(recon_quality *quality, uint32_t struct_size);

// Creates a plan for a geometry: checks every number, chooses window and grid, sorts the samples and starts the plan's
// threads. The geometry's arrays are not needed afterwards. `options` may be NULL for the defaults. On success the
// caller owns `*plan` and must pass it to recon_plan_destroy. After an error `*plan` is unchanged.
//
// Errors:
// - RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_SIZE_OVERFLOW,
//   RECON_TOLERANCE_OUT_OF_RANGE.
// - RECON_INVALID_SIZE if a size is 0.
// - RECON_NOT_FINITE and RECON_COORDINATE_OUT_OF_RANGE, with the index.
// - RECON_MEMORY_LIMIT, with the required bytes.
// - RECON_OUT_OF_HOST_MEMORY, RECON_OUT_OF_DEVICE_MEMORY, RECON_NO_DEVICE.
// - RECON_DRIVER_INCOMPLETE if the GPU's kernels are not cached and cannot be compiled.
// - RECON_UNSUPPORTED for a field map that requires more than 128 segments, for a voxel list with RECON_METHOD_NUFFT,
//   and for a vector unit that the processor does not have.
RECON_MUST_USE
recon_status recon_plan_create(const recon_geometry *geometry,
                               const recon_options *options,
                               recon_plan **plan);

// Estimates the bytes that a plan of this geometry and its operations take, before the plan is created.
//
// These are upper estimates. If the peaks exceed some MiB, the estimates are at most a fifth above them on the CPU and
// a quarter on a GPU. On a GPU they may be higher if samples lie neither evenly nor on spokes. On the CPU each number
// is sufficient as the memory_limit of a plan for that operation.
//
// A GPU's memory that is idle after the plan was created is counted, since the plan keeps it until memory is short.
// The caller's arrays are not counted, nor is memory that a GPU's driver takes for itself. Window, grid and device are
// chosen as in recon_plan_create.
//
// - geometry: its sizes are read, and whether weights and coil_maps are NULL. With a field map or a decay map, the
//   maps, times and coil_maps are read too, since their range decides. With coordinates, memory->host_coil_maps counts
//   the samples in the centre of k-space; if coordinates are NULL or geometry_on_device is set, it counts all samples.
//   Other arrays are not read.
// - options: as for recon_plan_create, or NULL. A memory_limit is used only if it decides how the plan computes.
//   Exceeding it is not an error here.
// - memory: written, except its calibration, which is read.
//
// Errors:
// - RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_SIZE_OVERFLOW.
// - RECON_INVALID_ARGUMENT if the calibration is wider than k-space.
// - RECON_INVALID_SIZE if a size is 0.
// - RECON_TOLERANCE_OUT_OF_RANGE, RECON_NO_DEVICE, RECON_DRIVER_INCOMPLETE, RECON_UNSUPPORTED.
RECON_MUST_USE
recon_status recon_plan_memory(const recon_geometry *geometry,
                               const recon_options *options,
                               recon_memory *memory);

// Reads the warning with index `index`, from 0, of this thread's last call. A warning is about a result that may not
// be the intended one. Each warning was also logged at RECON_LOG_WARNING. Warnings of a plan are read by
// recon_plan_warning.
//
// - kind: a recon_warning, written; RECON_WARNING_NONE if there are no more warnings.
// - text: finding and remedy in UTF-8, written; NULL if there are no more warnings. It is valid until this thread
//   calls any function other than this one and recon_last_error_message.
//
// Errors: RECON_NULL_POINTER.
recon_status recon_last_warning(uint64_t index, uint32_t *kind, const char **text);

// Reads the warning with index `index`, from 0, about images of a plan that may not be the intended ones. Each warning
// is also logged at RECON_LOG_WARNING: when the plan is created, or when a new trajectory causes the first warning of
// its kind. RECON_WARNING_THREADS is logged by the first call that ends after all threads were requested.
//
// - kind: a recon_warning, written; RECON_WARNING_NONE if there are no more warnings.
// - text: finding and remedy in UTF-8, written; NULL if there are no more warnings. It is valid until the plan is
//   destroyed or its trajectory is replaced.
//
// Errors: RECON_NULL_POINTER.
recon_status recon_plan_warning(const recon_plan *plan, uint64_t index, uint32_t *kind, const char **text);

// Frees everything that a plan holds. NULL is allowed. No call with this plan may be running.
//
// The plan's threads end if no other plan needs them. On Linux they wait a second for the next plan.
void recon_plan_destroy(recon_plan *plan);

// Returns to the system what the library keeps for the next plan. Existing plans lose nothing. It cannot fail. Call it
// after the last plan if other programs need the memory or the GPU, or before the library is unloaded.
//
// - Host memory: without plans at most 128 MiB. With plans at most the size of the plans, limited to between 128 MiB
//   and 1 GiB. On Linux with glibc it also calls malloc_trim(0).
// - GPUs: the context of each GPU that had plans, the loaded kernels, and up to an eighth of the GPU's memory. The
//   context itself holds several hundred MiB of GPU memory, and up to 64 MiB of page-locked host memory for copies. On
//   a GPU that plans still use, the context stays; kernels and memory that no plan uses are released. The next plan on
//   a released GPU takes about 0.1 s longer.
// - Threads that wait for the next plan.
//
// The end of the process releases all of it, and so does unloading the library on Linux with glibc.
void recon_release_memory(void);

// Checks that `bytes` bytes of memory are free on this machine and in all control groups of this process. Linux ends a
// process without a message when it uses more. If they are not free, the host memory that recon_release_memory
// returns is returned first. On systems other than Linux and Windows, every number is accepted.
//
// recon_plan_memory returns the bytes of a plan and its operations in advance.
//
// Errors: RECON_OUT_OF_HOST_MEMORY; the message has the limit, and the free memory in MiB.
RECON_MUST_USE
recon_status recon_check_free_memory(uint64_t bytes);

// Returns the maximum unused host memory in bytes that the library keeps for the next plan while all plans together
// hold `held` bytes. It keeps no more than what earlier plans and operations returned. See recon_release_memory.
uint64_t recon_unused_memory_limit(uint64_t held);

// Describes a plan: chosen method and window, lengths of its arrays, and bytes that it holds.
//
// Errors:
// - RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE.
// - RECON_INVALID_ARGUMENT for a misaligned structure.
// - RECON_SIZE_OVERFLOW if the gridded k-space of all coils and frames would exceed the address space.
RECON_MUST_USE
recon_status recon_plan_info(const recon_plan *plan, recon_plan_properties *properties);

// Replaces the trajectory of a plan, with its weights, and also the coil maps if the geometry has some. It is for
// real-time and other scans whose trajectory changes from frame to frame.
//
// Sorting the samples takes most of the time. Threads, window, tables, grids and buffers stay, unless a different
// number of samples makes a different window or grid the better choice. Results have the same bits as those of a new
// plan with this geometry and the plan's options.
//
// - geometry: samples, coordinates, coordinate_stride, weights and coil_maps are read. The structure that the plan was
//   created with can be used, with new addresses. All else must be as when the plan was created: precision, ndim,
//   dims, coils, frames, basis, and the positions in a voxel list. The arrays are not needed afterwards.
// - geometry->weights: NULL is an error if the plan has weights, since these belong to the old samples;
//   recon_plan_set_weights removes them.
// - geometry->coil_maps: NULL keeps the plan's coil maps.
// - geometry->field_map, decay_map, times: required again if the plan has maps. The values may be new.
//
// Results that depend on the old trajectory are discarded: Q, even if it was loaded, and the weights that recon_grid
// computed. recon_plan_info and recon_plan_warning describe the new trajectory.
//
// Other threads may use the plan meanwhile, and a progress callback may change its own plan; no thread waits for
// another. A running call continues with the trajectory that it began with. A call that begins after this function has
// returned uses the new one. With a different number of samples, the length of k-space arrays changes: until this
// function returns, arrays of a new call must be long enough for both. After an error the plan is unchanged.
//
// Errors:
// - As recon_plan_create for sizes, numbers and memory.
// - RECON_MEMORY_LIMIT also if the plan and the new samples together exceed the limit, since both exist until the
//   change is made.
// - RECON_SIZE_MISMATCH if ndim, dims, voxel_count, coils or frames differ.
// - RECON_INVALID_ARGUMENT if precision, basis or voxel list differ, for coil maps if the plan was created without,
//   and for missing weights if the plan has some.
// - RECON_CANCELLED.
RECON_MUST_USE
recon_status recon_plan_set_trajectory(recon_plan *plan, const recon_geometry *geometry);

// Replaces the density weights of a plan. The samples stay sorted. Q and the weights that recon_grid computed are
// discarded. Other threads may use the plan meanwhile, see recon_plan_set_trajectory.
//
// - weights: real [samples] in the plan's precision, non-negative, read; not needed afterwards. NULL: all weights are
//   1.
// - count: number of weights, equal to the plan's number of samples; 0 with NULL.
//
// Errors, after which the plan is unchanged:
// - RECON_NULL_POINTER for NULL and a count other than 0.
// - RECON_SIZE_MISMATCH for a wrong count.
// - RECON_NOT_FINITE and RECON_INVALID_ARGUMENT, with the index.
// - RECON_MEMORY_LIMIT, RECON_OUT_OF_HOST_MEMORY, RECON_OUT_OF_DEVICE_MEMORY, RECON_CANCELLED.
RECON_MUST_USE
recon_status recon_plan_set_weights(recon_plan *plan, const void *weights, uint64_t count);

// Replaces the coil maps of a plan that was created with coil maps. All else stays, including Q. Other threads may use
// the plan meanwhile, see recon_plan_set_trajectory.
//
// - maps: complex [nx, ny, nz, coils] in the plan's precision, read; not needed afterwards.
// - count: number of complex elements, voxels times coils.
//
// Errors, after which the plan is unchanged:
// - RECON_NULL_POINTER.
// - RECON_INVALID_ARGUMENT if the plan was created without maps: these decide the number of images, so create a new
//   plan.
// - RECON_INVALID_ARGUMENT if the maps see voxels whose off-resonance or decay is outside the range that the previous
//   maps saw.
// - RECON_SIZE_MISMATCH for a wrong count.
// - RECON_NOT_FINITE, with the index.
// - RECON_MEMORY_LIMIT if old and new maps together exceed the limit.
// - RECON_OUT_OF_HOST_MEMORY, RECON_OUT_OF_DEVICE_MEMORY, RECON_CANCELLED.
RECON_MUST_USE
recon_status recon_plan_set_coil_maps(recon_plan *plan, const void *maps, uint64_t count);

// Computes kspace = E image, the k-space that the scanner would measure.
//
// - image: complex [nx, ny, nz, images, frames], read. `images` is 1 with coil maps, otherwise the number of coils.
// - kspace: complex [samples, coils, frames], written.
//
// Errors:
// - RECON_NULL_POINTER, RECON_OUT_OF_HOST_MEMORY.
// - RECON_INVALID_ARGUMENT if the arrays overlap.
// - RECON_NOT_FINITE with the voxel's index, also if the result overflows.
RECON_MUST_USE
recon_status recon_forward(const recon_plan *plan, const void *image, void *kspace);

// Computes image = E^H kspace, unscaled and without weights: F^H d of Stone et al. 2008.
//
// - kspace: complex [samples, coils, frames], read.
// - image: complex [nx, ny, nz, images, frames], written.
//
// Errors: as recon_forward, with the sample's index for RECON_NOT_FINITE.
RECON_MUST_USE
recon_status recon_fhd(const recon_plan *plan, const void *kspace, void *image);

// Computes image = E^H W kspace, the right-hand side of the system that recon_cg solves. W are the density weights of
// the geometry, or 1 if it has none. Arrays and errors are those of recon_fhd.
RECON_MUST_USE
recon_status recon_weighted_fhd(const recon_plan *plan, const void *kspace, void *image);

// Computes y = E^H W E x.
//
// - x: complex [nx, ny, nz, images, frames], read.
// - y: the same shape, written.
//
// Errors: as recon_forward; RECON_MEMORY_LIMIT if Q was requested and does not fit.
RECON_MUST_USE
recon_status recon_normal(const recon_plan *plan, const void *x, void *y);

// Computes the gridding reconstruction: the adjoint of density-compensated data, scaled so that a fully sampled object
// keeps its scale. If the geometry has no weights, the first call computes those of Pipe and Menon.
//
// - kspace: complex [samples, coils, frames], read.
// - image: complex [nx, ny, nz, images, frames], written.
//
// Errors:
// - As recon_fhd.
// - RECON_INVALID_ARGUMENT if no sample with a positive weight is near the centre of k-space (an annulus), which
//   determines the scale of the image.
// - RECON_INVALID_ARGUMENT if one weight outweighs all others.
RECON_MUST_USE
recon_status recon_grid(const recon_plan *plan, const void *kspace, void *image);

// Computes the gridded k-space of the gridding reconstruction, before the FFT and the combination of coils. The image
// of a coil is the sum over cells u of grid(u) exp(+i 2 pi u.r / g), multiplied along each axis by the factors of
// recon_window_correction.
//
// - kspace: complex [samples, coils, frames], read.
// - grid: complex [gx, gy, gz, coils, frames], written, with k = 0 in cell floor(g/2). recon_plan_info returns the
//   size of this oversampled grid and its number of elements, grid_elements.
//
// Errors: as recon_grid; RECON_UNSUPPORTED with exact sums, which have no grid.
RECON_MUST_USE
recon_status recon_grid_kspace(const recon_plan *plan, const void *kspace, void *grid);

// Computes the factors along one axis by which an image is multiplied after the FFT of gridded k-space.
//
// - axis: 0 for x.
// - factors: double [dims[axis]], written, for either precision of the plan.
//
// Errors:
// - RECON_NULL_POINTER.
// - RECON_INVALID_ARGUMENT for an axis that the image does not have.
// - RECON_UNSUPPORTED with exact sums.
RECON_MUST_USE
recon_status recon_window_correction(const recon_plan *plan, uint32_t axis, double *factors);

// Computes Q(delta) = sum_m w_m |phi(k_m)|^2 exp(+i 2 pi k_m.delta), the kernel of E^H W E.
//
// - q: complex [2 nx, 2 ny, 2 nz] (2D: [2 nx, 2 ny]), written, with displacement delta at index delta + n. For a voxel
//   list: complex [voxel_count], Q at the listed positions.
//
// Errors: RECON_NULL_POINTER, RECON_OUT_OF_HOST_MEMORY.
RECON_MUST_USE
recon_status recon_q(const recon_plan *plan, void *q);

// Saves Q, as recon_normal and recon_cg use it, for plans of the same geometry in other processes. It computes Q first
// if necessary.
//
// `path` is in the file system's encoding (UTF-8 on Windows). A link is followed; a device or a FIFO is written into.
// Several threads and processes may save to one path at once.
//
// Errors:
// - RECON_NULL_POINTER, RECON_MEMORY_LIMIT.
// - RECON_IO if the file cannot be written. The previous content of the path is then unchanged.
// - RECON_UNSUPPORTED if the plan does not use Q.
RECON_MUST_USE
recon_status recon_plan_save_q(const recon_plan *plan, const char *path);

// Loads Q instead of computing it.
//
// Errors:
// - RECON_NULL_POINTER.
// - RECON_IO if the file cannot be read.
// - RECON_BAD_FILE if the file is truncated, damaged or too long, or belongs to a different geometry.
// - RECON_UNSUPPORTED if the plan does not use Q.
RECON_MUST_USE
recon_status recon_plan_load_q(const recon_plan *plan, const char *path);

// Solves (E^H W E + lambda R^H R) x = E^H W d by conjugate gradients, independently for each image.
//
// - kspace: complex [samples, coils, frames], read.
// - image: complex [nx, ny, nz, images, frames], written.
// - options: may be NULL for the defaults.
// - report: may be NULL.
//
// Errors, after which image and report are unchanged:
// - As recon_fhd.
// - RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_MEMORY_LIMIT.
// - RECON_INVALID_ARGUMENT, RECON_TOLERANCE_OUT_OF_RANGE and RECON_SIZE_MISMATCH for implausible options.
// - RECON_NOT_FINITE if a number overflows.
// - RECON_UNSUPPORTED for a prior on differences with a voxel list.
// - RECON_CANCELLED by the interrupt or the progress callback.
RECON_MUST_USE
recon_status recon_cg(const recon_plan *plan,
                      const void *kspace,
                      void *image,
                      const recon_cg_options *options,
                      recon_cg_report *report);

// Computes the filtered backprojection of 2D radial data at any angles (Schiwietz et al. 2006). Each spoke is
// multiplied by the ramp |k| and the filter's window, transformed to positions along its line, and added to every
// voxel by linear interpolation. The positions are at most half a voxel apart. The scale is that of recon_grid: a
// fully sampled object keeps its scale.
//
// The interpolation limits the accuracy. Its error is up to a tenth where |k| is near 0.5, and far less for smaller
// |k|. Each sample is weighted by the area of k-space that it represents, for any angles of the spokes. recon_grid is
// faster.
//
// Spokes are recognised from the trajectory. Samples must be in the order of acquisition, with the same number on each
// spoke, evenly spaced on a line through the centre of k-space. A spoke may begin at the centre or before it, and
// continue to either side. The geometry's weights are not used; its coil maps and voxel basis are.
//
// - filter: a recon_filter; RECON_FILTER_RAM_LAK is 0.
// - kspace: complex [samples, coils, frames], read.
// - image: complex [nx, ny, images, frames], written.
//
// Errors:
// - As recon_grid; RECON_UNKNOWN_VALUE.
// - RECON_UNSUPPORTED in 3D and for a voxel list.
// - RECON_INVALID_ARGUMENT for samples that are not such spokes, with the sample or spoke.
// - RECON_INVALID_ARGUMENT if spokes leave a sector of k-space unmeasured.
RECON_MUST_USE
recon_status recon_fbp(const recon_plan *plan, uint32_t filter, const void *kspace, void *image);

// Computes density weights for the plan's trajectory: the volume of k-space that each sample represents.
//
// - method: a recon_density_method.
// - iterations, tolerance: for RECON_DENSITY_PIPE_MENON only. Iteration stops after `iterations` steps, or when the
//   RMS of C w - 1 over the samples changes by less than the tolerance. 0 iterations means 30 iterations and a
//   tolerance of 1e-3.
// - weights: real [samples], written. They can be given to recon_plan_set_weights or to a new plan, or used by the
//   caller.
//
// Errors:
// - RECON_NULL_POINTER, RECON_UNKNOWN_VALUE, RECON_OUT_OF_HOST_MEMORY.
// - RECON_INVALID_ARGUMENT for a negative tolerance, for a trajectory that RECON_DENSITY_RAMP does not support, and if
//   no sample is near the centre of k-space.
RECON_MUST_USE
recon_status recon_density(const recon_plan *plan,
                           uint32_t method,
                           uint64_t iterations,
                           double tolerance,
                           void *weights);

// Estimates coil sensitivities from the centre of k-space of the data. In each voxel they are the dominant eigenvector
// of the coils' covariance in a neighbourhood (Walsh et al. 2000), scaled to sum_c |S_c|^2 = 1. Frames are averaged.
//
// Maps are 0 in voxels without an object: the low-resolution signal of all coils is below 1 % of its maximum. Maps are
// also 0 in the corners of the field of view if samples of spokes or turns of a spiral are about 1/FOV apart, since
// aliases of the object lie there. If gaps between samples reduce the centre to less than 24 samples, or bring aliases
// into the field of view, recon_last_warning returns RECON_WARNING_CALIBRATION.
//
// The phase of the maps is that of a virtual coil, not that of the object. The estimate is wrong if sensitivities
// change faster than the central samples resolve, or if the object is larger than the field of view. In these cases
// measure the maps and give them to the plan.
//
// - kspace: complex [samples, coils, frames], read.
// - calibration: width of that centre in samples of a Cartesian scan. A wider centre resolves more, with more noise.
//   0: 24, and in a plane up to 48 if k-space is sampled without gaps up to there.
// - maps: complex [nx, ny, nz, coils], written; to be given to a new plan.
//
// Errors:
// - As recon_fhd; RECON_UNSUPPORTED for a voxel list.
// - RECON_INVALID_ARGUMENT if no sample is in the centre.
// - RECON_INVALID_ARGUMENT if samples are missing from the central 8, as in a Cartesian scan of every second line:
//   estimate maps by a plan for its calibration lines.
// - RECON_INVALID_ARGUMENT for a centre wider than k-space (twice the image's largest size).
RECON_MUST_USE
recon_status recon_coil_maps(const recon_plan *plan,
                             const void *kspace,
                             uint64_t calibration,
                             void *maps);

// Combines the images of coils into one image per frame. It uses the geometry's precision, dims (or the voxel list's
// length), coils and frames.
//
// - method: a recon_combine_method.
// - coil_images: complex [nx, ny, nz, coils, frames], read.
// - image: complex [nx, ny, nz, frames], written.
//
// Errors:
// - RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_INVALID_SIZE, RECON_SIZE_OVERFLOW,
//   RECON_OUT_OF_HOST_MEMORY.
// - RECON_INVALID_ARGUMENT if the arrays overlap.
// - RECON_NOT_FINITE, with the voxel's index.
// - RECON_UNSUPPORTED for a voxel list with RECON_COMBINE_ADAPTIVE.
RECON_MUST_USE
recon_status recon_combine(const recon_geometry *geometry,
                           uint32_t method,
                           const void *coil_images,
                           void *image);

// Resizes images from the encoded matrix, on which they are reconstructed, to the requested matrix and field of view.
// It uses the geometry's precision, ndim, dims, coils and frames.
//
// If the new voxels have a different size, the image is interpolated by Fourier to exactly that size. The field of
// view need not contain a whole number of new voxels. Then the middle is cut out, or surrounded by zeros. The voxel
// with index floor(n/2) keeps its position, and the object keeps its scale.
//
// - fov: [ndim], the field of view that the geometry's dims cover, in any unit.
// - dims: [ndim], the requested matrix.
// - dims_fov: [ndim], the field of view that `dims` covers, in the same unit. The voxel size does not change along an
//   axis if its fov or dims_fov is 0 or less. fov and dims_fov may both be NULL: no voxel size changes.
// - images: complex [nx, ny, nz, coils, frames], read.
// - resized: complex [dims, coils, frames], written.
//
// Errors:
// - RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_SIZE_OVERFLOW, RECON_OUT_OF_HOST_MEMORY.
// - RECON_INVALID_SIZE if a size is 0.
// - RECON_INVALID_ARGUMENT if the arrays overlap.
// - RECON_NOT_FINITE, with the voxel's index.
// - RECON_UNSUPPORTED for a voxel list.
RECON_MUST_USE
recon_status recon_resize(const recon_geometry *geometry,
                          const double *fov,
                          const uint64_t *dims,
                          const double *dims_fov,
                          const void *images,
                          void *resized);

// Computes the phase of images minus the phase of reference images, from coil images or combined images. It is the
// phase of the sum over coils of image times conj(reference), in which the phases of the coils cancel. With venc, the
// result is a velocity: phase * venc / pi. It uses the geometry's precision, ndim, dims, coils and frames.
//
// The result is in [-pi, pi), or in [-venc, venc). It is 0 if the sum is 0, for example where an image is 0. If
// neighbouring voxels with signal differ by more than pi, recon_last_warning returns RECON_WARNING_WRAPS.
//
// With maxwell, the phase of concomitant fields is added, and the sum is wrapped into the range (Bernstein et al.,
// Magn. Reson. Med. 39:300, 1998). It is 2 pi (A z^2 + B (x^2 + y^2) + C x z + D y z), with A to D in maxwell.
//
// x, y and z are in metres from the isocentre along the gradients' axes, z along the main field. The coefficients are
// the user parameters MaxwellCoefficient_0 to MaxwellCoefficient_3 of ISMRMRD's header. If the phase is to be
// subtracted, negate them. In ISMRMRD's patient coordinates (x to the left, y to the back, z to the head), the axes
// depend on the patient's position. For HFS they are (1, 0, 0), (0, -1, 0) and (0, 0, -1).
//
// - images, reference: complex [nx, ny, nz, coils, frames], read.
// - venc: the velocity that causes a phase of pi, in any unit; 0: the result is the phase in radians.
// - maxwell: double [4], in cycles per square metre, read; or NULL for no correction.
// - origin: double [3], the position of the voxel with index 0 on all axes, in mm from the isocentre along the
//   gradients' axes, read. NULL if maxwell is NULL.
// - steps: double [3, 3], the steps from voxel to voxel along the image's x, then y, then z, as origin, read. NULL if
//   maxwell is NULL.
// - difference: real [nx, ny, nz, frames], written.
//
// Errors:
// - RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_INVALID_SIZE, RECON_SIZE_OVERFLOW,
//   RECON_OUT_OF_HOST_MEMORY.
// - RECON_INVALID_ARGUMENT if arrays overlap, for a negative venc, and if both images are magnitudes. Also for voxels
//   more than 2 m from the isocentre, and for an origin or steps without maxwell.
// - RECON_NOT_FINITE, with the voxel's index.
// - RECON_UNSUPPORTED for a voxel list.
RECON_MUST_USE
recon_status recon_phase_difference(const recon_geometry *geometry,
                                    const void *images,
                                    const void *reference,
                                    double venc,
                                    const double *maxwell,
                                    const double *origin,
                                    const double *steps,
                                    void *difference);

// Generates a fully sampled Cartesian grid: k = (index - floor(n/2)) / n on each axis, with x fastest.
//
// The errors are those of every generator below, as is the meaning of `precision`.
//
// - precision: a recon_precision, that of the coordinates.
// - ndim: 1 to 3.
// - dims: [ndim].
// - kx, ky, kz: real [product of dims] each, written. Arrays beyond ndim may be NULL.
//
// Errors:
// - RECON_NULL_POINTER, RECON_UNKNOWN_VALUE, RECON_SIZE_OVERFLOW, RECON_OUT_OF_HOST_MEMORY.
// - RECON_INVALID_SIZE if a size is 0.
// - RECON_INVALID_ARGUMENT if arrays overlap.
RECON_MUST_USE
recon_status recon_trajectory_cartesian(uint32_t precision,
                                        uint32_t ndim,
                                        const uint64_t *dims,
                                        void *kx,
                                        void *ky,
                                        void *kz);

// Generates 2D spokes through the centre. Sample j of a spoke is at the signed radius (j - floor(samples/2)) /
// samples.
//
// - order: a recon_spoke_order.
// - kx, ky: real [samples, spokes] each, written.
RECON_MUST_USE
recon_status recon_trajectory_radial2d(uint32_t precision,
                                       uint64_t spokes,
                                       uint64_t samples,
                                       uint32_t order,
                                       void *kx,
                                       void *ky);

// Generates a stack of stars: the spokes of recon_trajectory_radial2d, the same in each partition. Partition q is at
// kz = (q - floor(partitions/2)) / partitions.
//
// - order: a recon_spoke_order.
// - kx, ky, kz: real [samples, spokes, partitions] each, written.
RECON_MUST_USE
recon_status recon_trajectory_stack_of_stars(uint32_t precision,
                                             uint64_t spokes,
                                             uint64_t samples,
                                             uint64_t partitions,
                                             uint32_t order,
                                             void *kx,
                                             void *ky,
                                             void *kz);

// Generates 3D spokes through the centre, spread evenly over the sphere by a spiral from pole to equator.
//
// - kx, ky, kz: real [samples, spokes] each, written.
RECON_MUST_USE
recon_status recon_trajectory_radial3d(uint32_t precision,
                                       uint64_t spokes,
                                       uint64_t samples,
                                       void *kx,
                                       void *ky,
                                       void *kz);

// Generates 2D spirals from the centre outwards. With u = j / samples, sample j of interleaf p is at the radius 0.5
// u^density and the angle 2 pi (turns u + p / interleaves).
//
// - turns: turns of one interleaf.
// - density: 1 for the Archimedean spiral; greater than 1 for a centre that is sampled more densely.
// - kx, ky: real [samples, interleaves] each, written.
//
// Errors: also RECON_INVALID_ARGUMENT unless turns and density are positive and finite.
RECON_MUST_USE
recon_status recon_trajectory_spiral(uint32_t precision,
                                     uint64_t interleaves,
                                     uint64_t samples,
                                     double turns,
                                     double density,
                                     void *kx,
                                     void *ky);

// Generates 2D rosettes: k = 0.5 sin(2 pi radial u) exp(i 2 pi angular u), u = j / samples. Each shot is rotated by a
// golden angle.
//
// - radial, angular: oscillations and turns of one shot.
// - kx, ky: real [samples, shots] each, written.
//
// Errors: also RECON_INVALID_ARGUMENT unless radial and angular are positive and finite.
RECON_MUST_USE
recon_status recon_trajectory_rosette(uint32_t precision,
                                      uint64_t shots,
                                      uint64_t samples,
                                      double radial,
                                      double angular,
                                      void *kx,
                                      void *ky);

// Generates a closed 2D Lissajous curve, cut into shots of equal duration: k = 0.5 (sin(2 pi x_frequency u), sin(2 pi
// y_frequency u)). Sample j of shot p has u = (p samples + j) / (shots samples). An image of n x n voxels is fully
// sampled if both frequencies are at least 1.25 n.
//
// - x_frequency, y_frequency: oscillations of the whole curve along x and y. They have no common factor, and one of
//   them is even; otherwise, the curve would be traced several times.
// - kx, ky: real [samples, shots] each, written.
//
// Errors: also RECON_INVALID_ARGUMENT for other frequencies, and for fewer than four samples per oscillation.
RECON_MUST_USE
recon_status recon_trajectory_lissajous(uint32_t precision,
                                        uint64_t shots,
                                        uint64_t samples,
                                        uint64_t x_frequency,
                                        uint64_t y_frequency,
                                        void *kx,
                                        void *ky);

// Generates PROPELLER blades: strips of parallel lines, 1 / samples apart, rotated about the centre. The readout is
// not oversampled: recon_trajectory_propeller_scan is for blades with an oversampled readout.
//
// - kx, ky: real [samples, lines, blades] each, written.
//
// Errors: also RECON_INVALID_ARGUMENT if 2 lines > samples, a blade wider than half of k-space.
RECON_MUST_USE
recon_status recon_trajectory_propeller(uint32_t precision,
                                        uint64_t blades,
                                        uint64_t lines,
                                        uint64_t samples,
                                        void *kx,
                                        void *ky);

// Generates PROPELLER blades as a scanner measures them: strips of parallel lines, 1 / scan_matrix apart, rotated
// about the centre. A line has `samples` samples over the same width of k-space, and is oversampled if samples >
// scan_matrix. The blades cover k-space if blades * lines >= pi/2 scan_matrix. An example is 17 blades of 24 lines of
// 960 samples for the scan matrix 256.
//
// - scan_matrix: the matrix size of the scan, from 2 lines to samples.
// - kx, ky: real [samples, lines, blades] each, written.
//
// Errors: also RECON_INVALID_ARGUMENT if samples < scan_matrix, or if 2 lines > scan_matrix, a blade wider than half
// of k-space.
RECON_MUST_USE
recon_status recon_trajectory_propeller_scan(uint32_t precision,
                                             uint64_t blades,
                                             uint64_t lines,
                                             uint64_t samples,
                                             uint64_t scan_matrix,
                                             void *kx,
                                             void *ky);

// Computes the k-space of a phantom of ellipses (2D) or ellipsoids (3D) from its analytic Fourier transform. It uses
// the geometry's precision, dims, samples, coordinates, coils and frames. All frames are equal.
//
// If the geometry has field_map or decay_map, with times, the k-space includes off-resonance and decay. It is then
// computed on the CPU by direct sums over small boxes of the phantom, in a time proportional to samples times boxes.
// There are 4 boxes per voxel and axis in 2D, and 2 in 3D. Maps are interpolated linearly between voxels. The relative
// l2 error is below 1e-3.
//
// - shapes: double [10, shape_count]: density, centre x y z, semi-axes, Euler angles phi theta psi in radians
//   (rotation Rz(phi) Ry(theta) Rz(psi)). The field of view is [-1, 1]. NULL with a shape_count of 0: the head phantom
//   of Shepp and Logan with raised contrast.
// - coil_model: a recon_coil_model; RECON_COILS_UNIFORM is for one coil.
// - threads: maximum number of threads; 0 for the number that the machine runs at once. The result does not depend on
//   it.
// - kspace: complex [samples, coils, frames], written, in units of density times voxels.
//
// Errors:
// - RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_INVALID_SIZE, RECON_SIZE_OVERFLOW,
//   RECON_OUT_OF_HOST_MEMORY.
// - RECON_SIZE_MISMATCH for several uniform coils.
// - RECON_NOT_FINITE, with the index.
// - RECON_INVALID_ARGUMENT for an implausible shape, for maps without times or times without maps, and for a phantom
//   that extends beyond the maps.
// - RECON_UNSUPPORTED for maps of a voxel list.
// - RECON_COORDINATE_OUT_OF_RANGE with maps.
RECON_MUST_USE
recon_status recon_phantom_kspace(const recon_geometry *geometry,
                                  const double *shapes,
                                  uint64_t shape_count,
                                  uint32_t coil_model,
                                  uint32_t threads,
                                  void *kspace);

// Computes the image of a phantom. It uses the geometry's precision and dims.
//
// - shapes, shape_count: as for recon_phantom_kspace.
// - supersample: points per voxel and axis over which the density is averaged; 1 takes the density at the voxel's
//   centre.
// - image: complex [nx, ny, nz], written, with imaginary parts of 0.
//
// Errors: as recon_phantom_kspace; RECON_INVALID_SIZE for a supersample of 0.
RECON_MUST_USE
recon_status recon_phantom_image(const recon_geometry *geometry,
                                 const double *shapes,
                                 uint64_t shape_count,
                                 uint64_t supersample,
                                 void *image);

// Computes the sensitivities of RECON_COILS_RING. It uses the geometry's precision, dims and coils.
//
// - maps: complex [nx, ny, nz, coils], written.
//
// Errors: as recon_phantom_kspace.
RECON_MUST_USE
recon_status recon_phantom_coil_maps(const recon_geometry *geometry, void *maps);

// Adds complex white Gaussian noise to data. A seed gives the same noise on every platform. It uses the geometry's
// precision, samples, coils and frames.
//
// - snr: root mean square magnitude of the data of all coils, divided by that of the noise; not in dB.
// - kspace: complex [samples, coils, frames], read and written.
// - deviation: root mean square magnitude of the noise, written. Or NULL.
//
// Errors:
// - RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_INVALID_SIZE, RECON_SIZE_OVERFLOW.
// - RECON_NOT_FINITE, with the index.
// - RECON_INVALID_ARGUMENT for an snr that is not positive and finite, and if all data are 0.
RECON_MUST_USE
recon_status recon_add_noise(const recon_geometry *geometry,
                             double snr,
                             uint64_t seed,
                             void *kspace,
                             double *deviation);

// Measures the difference of an image from the truth. It uses the geometry's precision and dims (or the voxel list's
// length).
//
// - image, truth: complex [nx, ny, nz], read.
// - mask: [nx, ny, nz] bytes; voxels with 0 are ignored. NULL: all voxels are compared.
// - part: a recon_part.
// - scale: a recon_scale.
// - quality: written.
//
// Errors:
// - RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_SIZE_OVERFLOW.
// - RECON_INVALID_SIZE if the mask leaves no voxel to compare.
// - RECON_NOT_FINITE, with the index.
// - RECON_INVALID_ARGUMENT if the truth is 0 everywhere.
RECON_MUST_USE
recon_status recon_metrics(const recon_geometry *geometry,
                           const void *image,
                           const void *truth,
                           const uint8_t *mask,
                           uint32_t part,
                           uint32_t scale,
                           recon_quality *quality);

// Determines the use of an acquisition from its ISMRMRD flags. The program and the gadgets use this function.
//
// - Acquisitions without any of the flags below are image data.
// - Acquisitions for parallel imaging are for calibration, or for calibration and image
//   (IS_PARALLEL_CALIBRATION_AND_IMAGING).
// - Noise measurements are for noise only.
// - Navigators, phase correction, feedback, dummies, surface coil correction and phase stabilisation are not used,
//   regardless of other flags.
//
// Arguments:
// - ismrmrd_flags: `flags` of the ISMRMRD acquisition header.
// - use: sum of the recon_acquisition_purpose that apply, written; 0 for an acquisition that is not used.
//
// Errors: RECON_NULL_POINTER.
RECON_MUST_USE
recon_status recon_acquisition_use(uint64_t ismrmrd_flags, uint32_t *use);

// Returns the use of an acquisition in words, from its ISMRMRD flags: "image", "calibration", "image and calibration",
// "noise", or the kind of data that is not used ("navigation", "phase correction", ...). The text is never NULL and
// must not be freed.
const char *recon_acquisition_use_name(uint64_t ismrmrd_flags);

// Begins a scan: the acquisitions of one measurement in ISMRMRD's format.
//
// Pass the acquisitions to recon_scan_add in the order in which they were measured, and take the data of each complete
// image from recon_scan_next. recon_scan_end ends the measurement.
//
// The library decides what each acquisition is for (recon_acquisition_use), and sorts acquisitions into images: those
// of one encoding, slice, contrast, phase, repetition and set. Averages and segments are samples of one image. Noise
// whitens the coils, discarded samples are left out, and reversed readouts are reversed. If the header says that
// calibration is embedded, calibration lines are also part of the image.
//
// - xml: the XML header, in UTF-8.
// - xml_bytes: its length, at most 1 MiB.
// - options: may be NULL for the defaults.
// - scan: written. The caller owns it and must pass it to recon_scan_destroy.
//
// Errors:
// - RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_OUT_OF_HOST_MEMORY.
// - RECON_BAD_FILE for a header that is malformed, or lacks a matrix, a field of view or a trajectory.
RECON_MUST_USE
recon_status recon_scan_create(const char *xml,
                               uint64_t xml_bytes,
                               const recon_scan_options *options,
                               recon_scan **scan);

// Destroys a scan. The images that it gave remain. NULL is ignored.
void recon_scan_destroy(recon_scan *scan);

// Adds an acquisition to a scan.
//
// - header: the header of an acquisition as in ISMRMRD's files and messages: 340 bytes without padding, little-endian.
// - trajectory: float [trajectory_dimensions, number_of_samples]; NULL if the header's trajectory_dimensions is 0.
// - data: complex float [number_of_samples, active_channels].
//
// Acquisitions that are not used, such as navigators, are counted. After an error the next ones can be added. An image
// is not made without an acquisition that was refused: recon_scan_next returns the error in place of the image, except
// if the image is already complete. Calibration data are not made without such an acquisition either, with a warning.
//
// Errors: the message begins with the number of the acquisition, from 0.
// - RECON_NULL_POINTER, RECON_OUT_OF_HOST_MEMORY.
// - RECON_NOT_FINITE, with coil and sample.
// - RECON_BAD_FILE for a negative sample time, and for an image that is already complete.
// - RECON_UNSUPPORTED for compressed samples.
RECON_MUST_USE
recon_status recon_scan_add(recon_scan *scan,
                            const void *header,
                            const float *trajectory,
                            const void *data);

// Whitens the data of one acquisition in place, for hosts in which a later step sorts acquisitions. The noise is that
// of earlier calls of recon_scan_add. The acquisition is not added.
//
// - header: as for recon_scan_add.
// - data: complex float [number_of_samples, active_channels], written.
//
// The data stay unchanged if
//
// - the option whiten is 0, or no noise was added so far. Noise of this number of coils that is added later has no
//   effect, so that the units stay the same: recon_scan_end warns of it
// - the acquisition is noise, or has no samples
// - the acquisition is not used (recon_acquisition_use), and no noise of its number of coils was added
// - numbers are not finite: the step that makes images refuses them
//
// Otherwise they are whitened for their sample time, with a matrix that is computed once for each number of coils and
// sample time. recon_last_warning then returns a RECON_WARNING_NOISE for the first matrix.
//
// Errors: the data are unchanged.
// - RECON_NULL_POINTER, RECON_OUT_OF_HOST_MEMORY.
// - RECON_BAD_FILE for a negative sample time, RECON_UNSUPPORTED for compressed samples of used acquisitions.
// - RECON_SIZE_MISMATCH, RECON_INVALID_ARGUMENT, RECON_INVALID_SIZE, RECON_NOT_FINITE if the noise cannot whiten the
//   data.
RECON_MUST_USE
recon_status recon_scan_whiten(recon_scan *scan, const void *header, void *data);

// Completes the images of the acquisitions so far, also if the counter of the option complete did not change. Later
// acquisitions with the same counters begin a new image of the same index. For real-time scans, in which every n
// acquisitions are one image.
//
// Shots are counted over all images of an index: recon_last_warning returns RECON_WARNING_ACQUISITIONS if shots of the
// previous repetition are missing.
//
// Errors: RECON_NULL_POINTER, RECON_OUT_OF_HOST_MEMORY.
RECON_MUST_USE
recon_status recon_scan_complete(recon_scan *scan);

// Ends the measurement: all images are complete.
//
// recon_last_warning returns
//
// - RECON_WARNING_NOISE if noise acquisitions had no effect, because they came after the first data of their coils
// - RECON_WARNING_ACQUISITIONS if the XML header names a noise scan, the option whiten is set, and no noise came
// - RECON_WARNING_ACQUISITIONS if shots are missing in images that recon_scan_complete completed
//
// Errors: RECON_NULL_POINTER, RECON_OUT_OF_HOST_MEMORY.
RECON_MUST_USE
recon_status recon_scan_end(recon_scan *scan);

// Returns the data of the next complete image, in the order of encoding, slice, repetition, contrast, phase and set.
//
// - image: written: NULL if no image is complete. The caller owns it and must pass it to recon_scan_image_destroy.
//
// recon_last_warning returns RECON_WARNING_ACQUISITIONS if the acquisitions can be interpreted in several ways, or if
// some are missing. It returns RECON_WARNING_NOISE when noise whitens the first image.
//
// Errors: the image is left out, and the next call gives the next one.
// - The error of recon_scan_add, if it refused an acquisition of the image.
// - RECON_NULL_POINTER, RECON_OUT_OF_HOST_MEMORY.
// - RECON_BAD_FILE if counts or counters contradict each other, RECON_COORDINATE_OUT_OF_RANGE, RECON_NOT_FINITE.
// - RECON_UNSUPPORTED if the acquisitions have no trajectory, and the header does not give it.
// - RECON_SIZE_MISMATCH, RECON_INVALID_ARGUMENT, RECON_INVALID_SIZE if the noise cannot whiten the data.
RECON_MUST_USE
recon_status recon_scan_next(recon_scan *scan, recon_scan_image **image);

// Returns the calibration data of an image, from which recon_coil_maps estimates coil maps: those of its slice that
// share most other counters. Their coordinates are for the image's encoded matrix, and they are whitened like the
// image.
//
// - calibration: written: NULL if the slice has no calibration data. The caller owns it and must pass it to
//   recon_scan_image_destroy.
//
// If the measurement has calibration data, but not of this slice, recon_last_warning returns
// RECON_WARNING_ACQUISITIONS.
//
// Errors:
// - RECON_NULL_POINTER, RECON_OUT_OF_HOST_MEMORY.
// - RECON_SIZE_MISMATCH for a different number of coils or dimensions.
// - RECON_UNSUPPORTED for a different position or orientation.
// - RECON_INVALID_ARGUMENT if a field of view is unknown, or no samples are within the image's k-space.
RECON_MUST_USE
recon_status recon_scan_image_calibration(const recon_scan_image *image, recon_scan_image **calibration);

// Writes the properties of an image's data, with the addresses of its arrays.
//
// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE.
RECON_MUST_USE
recon_status recon_scan_image_properties(const recon_scan_image *image,
                                         recon_scan_properties *properties);

// Sets precision, ndim, dims, samples, coordinates, weights and coils of a geometry to those of an image's data.
// Everything else stays unchanged. The geometry refers to the arrays of the image: create the plan before the image is
// destroyed.
//
// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE.
RECON_MUST_USE
recon_status recon_scan_image_geometry(const recon_scan_image *image, recon_geometry *geometry);

// Destroys the data of an image. NULL is ignored.
void recon_scan_image_destroy(recon_scan_image *image);

// Writes the numbers of acquisitions so far by their use, refused ones included. Lines of embedded calibration are
// counted for both purposes when their image is complete.
//
// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE.
RECON_MUST_USE
recon_status recon_scan_acquisitions(recon_scan *scan, recon_scan_counts *counts);

// Computes the covariance of the coils' noise from samples without signal: the mean of n_a conj(n_b), for the sampling
// of the scan.
//
// - precision: a recon_precision, of noise.
// - noise: complex [samples, coils], read. 400 samples per coil give an error of about 10 %. With fewer samples,
//   recon_last_warning returns RECON_WARNING_NOISE.
// - noise_dwell, dwell: time between samples of the noise and of the scan, in the same unit (sample_time_us of
//   ISMRMRD). Noise that is sampled more slowly has less variance than in the scan. 0 and 0: they are equal.
// - receiver_bandwidth: noise bandwidth of the receiver divided by its sampling bandwidth, in (0, 1]
//   (relativeReceiverNoiseBandwidth of ISMRMRD); 0 for 1.
// - covariance: complex double [coils, coils], a running fastest, written.
//
// Errors:
// - RECON_NULL_POINTER, RECON_UNKNOWN_VALUE, RECON_SIZE_OVERFLOW, RECON_OUT_OF_HOST_MEMORY.
// - RECON_INVALID_SIZE for fewer samples than coils.
// - RECON_NOT_FINITE with the index, also for variances that overflow.
// - RECON_INVALID_ARGUMENT for implausible times and bandwidths, or if their ratio overflows.
RECON_MUST_USE
recon_status recon_noise_covariance(uint32_t precision,
                                    const void *noise,
                                    uint64_t samples,
                                    uint64_t coils,
                                    double noise_dwell,
                                    double dwell,
                                    double receiver_bandwidth,
                                    void *covariance);

// Computes the matrix M that whitens noise: M covariance M^H = 1. The noise of all virtual coils is then independent,
// with variance 1 (the mean of |n|^2). M is the inverse of the covariance's Cholesky factor. recon_virtual_coils
// applies it to data, and to coil maps that were not estimated from whitened data.
//
// - covariance: complex double [coils, coils], from recon_noise_covariance or known, read.
// - matrix: complex double [coils, coils], the virtual coil running fastest, written.
//
// Errors:
// - RECON_NULL_POINTER, RECON_SIZE_OVERFLOW, RECON_INVALID_SIZE, RECON_OUT_OF_HOST_MEMORY.
// - RECON_NOT_FINITE, with the index.
// - RECON_INVALID_ARGUMENT for a matrix that is not Hermitian, and for a singular matrix, with the coil.
RECON_MUST_USE
recon_status recon_whitening(const void *covariance, uint64_t coils, void *matrix);

// Computes the matrix of coil compression. Its virtual coils are the principal components that contain most of the
// data's energy, the strongest first (Buehrer et al. 2007). Whiten the data first. If the virtual coils contain less
// than 95 % of the energy, recon_last_warning returns RECON_WARNING_COMPRESSION. recon_virtual_coils applies the
// matrix to data, and to coil maps that were not estimated from data of the virtual coils.
//
// - precision: a recon_precision, of data.
// - data: complex [samples, coils, frames], read.
// - keep: number of virtual coils. 0: the smallest number that contains the fraction `energy` of the energy, in (0,
//   1].
// - energy: 0 if keep is given.
// - matrix: complex double [kept, coils], the virtual coil running fastest, written. If keep is 0, the array must have
//   room for [coils, coils]; elements after the first kept times coils are unchanged.
// - kept: number of virtual coils, written.
// - energies: double [coils], written: fraction of the energy in each virtual coil, also in those that are not kept.
//   Or NULL.
//
// Errors:
// - RECON_NULL_POINTER, RECON_UNKNOWN_VALUE, RECON_SIZE_OVERFLOW, RECON_OUT_OF_HOST_MEMORY.
// - RECON_INVALID_SIZE without coils or samples, and for more virtual coils than coils.
// - RECON_NOT_FINITE with the index, also for an energy that overflows.
// - RECON_INVALID_ARGUMENT unless exactly one of keep and energy is given, for an energy outside (0, 1], and if all
//   data are 0.
RECON_MUST_USE
recon_status recon_compression(uint32_t precision,
                               const void *data,
                               uint64_t samples,
                               uint64_t coils,
                               uint64_t frames,
                               uint64_t keep,
                               double energy,
                               void *matrix,
                               uint64_t *kept,
                               double *energies);

// Computes virtual coils from coils by a matrix: y_v = sum_c M(v, c) x_c. It applies to k-space, coil images and coil
// maps alike (for the latter two, "samples" are voxels).
//
// - matrix: complex double [virtual_coils, coils], the virtual coil running fastest, read.
// - precision: a recon_precision, of from and to.
// - from: complex [samples, coils, frames], read.
// - to: complex [samples, virtual_coils, frames], written.
//
// Errors:
// - RECON_NULL_POINTER, RECON_UNKNOWN_VALUE, RECON_SIZE_OVERFLOW, RECON_OUT_OF_HOST_MEMORY.
// - RECON_INVALID_SIZE and RECON_SIZE_MISMATCH for sizes of 0.
// - RECON_INVALID_ARGUMENT if the arrays overlap.
// - RECON_NOT_FINITE, with the index.
RECON_MUST_USE
recon_status recon_virtual_coils(const void *matrix,
                                 uint64_t virtual_coils,
                                 uint64_t coils,
                                 uint32_t precision,
                                 const void *from,
                                 uint64_t samples,
                                 uint64_t frames,
                                 void *to);

// Estimates the field map of gradient-echo images: off-resonance f in Hz, with the sign of the model, in which the
// signal at time t is multiplied by exp(-i 2 pi f t). The map follows from the growth of the phase from echo to echo,
// for any phases of the coils. Three or more echoes are fitted with weights. Phase wraps are undone along neighbouring
// voxels; if there are any, recon_last_warning returns RECON_WARNING_WRAPS. The map is smoothed with weights, which
// also fills voxels without signal.
//
// Each connected piece of the object has an ambiguity: a multiple of the report's period changes no phase. The period
// of evenly spaced echoes is 1 / spacing. The multiple whose median is nearest 0 Hz is taken: an object at 450 Hz,
// measured with echoes 2.5 ms apart, is mapped to 50 Hz. If the median of a piece is close to half a period,
// recon_last_warning returns both values.
//
// - precision: a recon_precision, of all arrays except echo_times.
// - ndim: 2 or 3.
// - dims: [ndim], read: voxels along x, y and, with ndim 3, z.
// - coils: number of coils of the images, which are not combined; or 1.
// - echoes: number of echoes, 2 or more.
// - echo_times: double [echoes] in seconds, increasing, read. Only their differences matter.
// - images: complex [nx, ny, nz, coils, echoes], read.
// - options: may be NULL for the defaults.
// - field_map: real [nx, ny, nz] in Hz, written.
// - decay_map: real [nx, ny, nz], written: non-negative R2* in 1/s from the magnitudes. Or NULL.
// - report: may be NULL.
//
// Errors:
// - RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_SIZE_OVERFLOW, RECON_OUT_OF_HOST_MEMORY.
// - RECON_INVALID_SIZE for sizes of 0, a wrong ndim, and fewer than two echoes.
// - RECON_NOT_FINITE, with the index.
// - RECON_INVALID_ARGUMENT for echo times that do not increase or exceed 1 s (milliseconds), for images that are real
//   or without signal, and for implausible options.
// - RECON_CANCELLED by the interrupt callback of the options.
RECON_MUST_USE
recon_status recon_field_map(uint32_t precision,
                             uint32_t ndim,
                             const uint64_t *dims,
                             uint64_t coils,
                             uint64_t echoes,
                             const double *echo_times,
                             const void *images,
                             const recon_field_map_options *options,
                             void *field_map,
                             void *decay_map,
                             recon_field_map_report *report);

// Computes the image of 2D PROPELLER data without the motion between blades (Pipe 1999). The motion is estimated from
// the centre of k-space, which each blade measures: phase, rotation up to 45 degrees, and translation. The corrected
// samples are then gridded as by recon_grid, with smaller weights for blades that disagree with the others. The report
// can also return the corrected samples, for recon_cg.
//
// Blades are recognised from the trajectory. Samples must be in the order of acquisition, and all lines must have the
// same number of samples. The lines of a blade are parallel and evenly spaced, in one direction or in alternating
// directions. Voxels are assumed to be square.
//
// The geometry's weights are not used. Its coil maps are used, except with RECON_BLADE_PHASE_SMOOTH, which removes the
// coils' phases from the data. Coils are assumed to move with the object. Each frame is corrected independently.
//
// - options: may be NULL for the defaults. memory_limit limits the gridding only; recon_propeller_memory estimates all
//   bytes. device applies to the gridding. Arrays are in the host's memory.
// - propeller: may be NULL for the defaults.
// - kspace: complex [samples, coils, frames], read.
// - image: complex [nx, ny, images, frames], written, at the scale of the object. NULL: only the motion is estimated.
// - report: may be NULL.
//
// A blade with missing lines is left out: its samples have weight 0, and its motion, correlation and weight are 0.
//
// recon_last_warning returns RECON_WARNING_BLADES if blades disagree, are incomplete, or moved by more than a quarter
// of the field of view.
//
// Errors:
// - As recon_plan_create and recon_grid.
// - RECON_UNSUPPORTED in 3D, for a voxel list, for field and decay maps, for pointers_on_device, and for coil maps
//   with RECON_BLADE_PHASE_SMOOTH.
// - RECON_INVALID_ARGUMENT for a trajectory without blades, with the blade.
// - RECON_INVALID_ARGUMENT if fewer than half of the blades, or fewer than two, are complete.
// - RECON_INVALID_ARGUMENT if image and report are both NULL.
// - RECON_SIZE_MISMATCH if motion_capacity is too small.
RECON_MUST_USE
recon_status recon_propeller(const recon_geometry *geometry,
                             const recon_options *options,
                             const recon_propeller_options *propeller,
                             const void *kspace,
                             void *image,
                             recon_propeller_report *report);

// Estimates the host memory that recon_propeller takes at its peak, in bytes, before it is called. It is an upper
// estimate. The density weights and the gridding are included; the caller's arrays and memory of a GPU are not.
//
// - geometry: its sizes and coordinates are read, and whether coil_maps is NULL. Other arrays are not read.
// - options, propeller: as for recon_propeller, or NULL for the defaults.
// - host_bytes: number of bytes, written.
//
// Errors:
// - RECON_NULL_POINTER, also if coordinates are NULL.
// - As recon_propeller for the geometry, the trajectory and the options.
RECON_MUST_USE
recon_status recon_propeller_memory(const recon_geometry *geometry,
                                    const recon_options *options,
                                    const recon_propeller_options *propeller,
                                    uint64_t *host_bytes);

// Computes images of partial Fourier data: one side of k-space is missing along one axis, except near the centre. The
// missing side follows from the smooth phase of the image, by homodyne detection or POCS. With a complete k-space,
// use recon_grid.
//
// The axis, and the width of the symmetric centre that determines the phase, follow from the coordinates. Any
// trajectory is possible: Cartesian lines in 2D and 3D, asymmetric echoes, stacks of spirals or spokes with missing
// partitions. Other axes must be complete. Samples on the points of the image's grid have equal weights if the
// geometry has no weights; other samples have the weights of Pipe and Menon.
//
// Images have the scale of recon_grid and keep their phase. Without coil maps each coil has an image and a phase of
// its own; with coil maps the combined image has one phase. Each image has its own iterations.
//
// - options: may be NULL for the defaults. memory_limit limits the plan only: the call takes four further arrays of
//   the size of image, and one of the size of kspace. Arrays are in the host's memory.
// - partial_fourier: may be NULL for the defaults.
// - kspace: complex [samples, coils, frames], read.
// - image: complex [nx, ny, nz, images, frames], written.
// - report: may be NULL.
//
// recon_last_warning returns RECON_WARNING_PARTIAL_FOURIER if the phase is not smooth, if the symmetric centre has
// fewer than seven samples on the short side, or if a trajectory that is not Cartesian has gaps. It also returns the
// warnings of the plan.
//
// Errors:
// - As recon_plan_create and recon_grid.
// - RECON_INVALID_ARGUMENT if no side is missing, if there are fewer than four samples on the short side, or if
//   points of a Cartesian grid are missing in the measured part, as in parallel imaging.
// - RECON_UNSUPPORTED if sides of several axes are missing, for a voxel list, voxels with the shape of a box, field
//   and decay maps, and for pointers_on_device.
RECON_MUST_USE
recon_status recon_partial_fourier(const recon_geometry *geometry,
                                   const recon_options *options,
                                   const recon_partial_fourier_options *partial_fourier,
                                   const void *kspace,
                                   void *image,
                                   recon_partial_fourier_report *report);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RECON_H */
