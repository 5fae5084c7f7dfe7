// recon: magnetic resonance images from k-space samples on any trajectory.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
// Generated from src/ffi by `make header`: edit that instead.
//
// A full reconstruction, errors unchecked for brevity: 400 golden-angle spokes of 256 samples, 8 coils, to 128 x 128.
//
//     enum { N = 128, SPOKES = 400, READOUT = 256, COILS = 8, SAMPLES = SPOKES * READOUT };
//     float kx[SAMPLES], ky[SAMPLES];                       // cycles per voxel, within [-0.5, 0.5)
//     float kspace[2 * SAMPLES * COILS];                    // complex [samples, coils], interleaved re, im: your data
//     float maps[2 * N * N * COILS], image[2 * N * N];      // complex [nx, ny, coils], [nx, ny]
//
//     recon_geometry g;
//     recon_geometry_init(&g, sizeof g);                    // f32, 2D, one coil
//     recon_trajectory_radial2d(RECON_F32, SPOKES, READOUT, RECON_SPOKES_GOLDEN_ANGLE, kx, ky);
//     g.dims[0] = g.dims[1] = N;
//     g.samples = SAMPLES;
//     g.coordinates[0] = kx;
//     g.coordinates[1] = ky;
//     g.coils = COILS;
//
//     recon_plan *plan;
//     recon_plan_create(&g, NULL, &plan);                   // without maps: one image for each coil
//     recon_coil_maps(plan, kspace, 0, maps);               // sensitivities from the data
//     recon_plan_destroy(plan);
//
//     g.coil_maps = maps;
//     recon_plan_create(&g, NULL, &plan);                   // with maps: one image
//     recon_cg(plan, kspace, image, NULL, NULL);            // 12 iterations of conjugate gradients
//     recon_plan_destroy(plan);
//
// The model. Of a coil c, voxels r (integer coordinates, the origin at index floor(n/2) of each axis) and samples m:
//
//     s_c(m) = sum_r phi(k_m) S_c(r) x(r) exp(-i 2 pi k_m.r)                                                   (E x)
//
// with k in cycles per voxel, S_c the coil's sensitivity, phi the Fourier transform of a voxel's shape. W is the diagonal
// matrix of density weights, ^H the conjugate transpose.
//
// Arrays. The first index runs fastest: "[nx, ny]" has x next to x. In 2D read [nx, ny] for [nx, ny, nz]. "real" and
// "complex" are those of the plan's or geometry's precision; complex numbers are interleaved (re, im) and counted as one
// element. Lengths are not passed, they follow from the geometry. Arrays belong to the caller, must be aligned for their
// precision, may not overlap an output, and are not used after the call returns.
//
// Errors. Every function that can fail returns a recon_status; recon_last_error_message() says more. Outputs are
// written whole or, when a call fails, left untouched. Any function that takes arguments by address may return
// RECON_NULL_POINTER, RECON_INVALID_ARGUMENT (misaligned, overlapping) and RECON_INTERNAL besides what it lists; with an
// interrupt callback in recon_options, any that computes with a plan, or makes one, RECON_CANCELLED.
//
// Enumerations are passed as uint32_t, so that a value from a newer header is an error and never undefined.
//
// Threads. Different plans, and one plan, may be used from several threads at once. Threads of the library start with
// the first plan, never at load, and end with the plan; after fork() make new plans. The library installs no signal
// handler, prints nothing, and leaves the floating-point mode as it was; while it computes, the mode is the standard one,
// in callbacks too.


#ifndef RECON_H
#define RECON_H

#include <stdint.h>

// What became of a call. Numbers never change their meaning; later versions may add some.
typedef enum {
    // Done; outputs are written.
    RECON_OK = 0,
    // A pointer that must not be null was null.
    RECON_NULL_POINTER = 1,
    // A size or count is zero or otherwise impossible.
    RECON_INVALID_SIZE = 2,
    // A size, or a product of sizes, does not fit the address space.
    RECON_SIZE_OVERFLOW = 3,
    // Two counts that must agree do not.
    RECON_SIZE_MISMATCH = 4,
    // A coordinate, weight, sample or voxel is NaN or infinite; the message says which.
    RECON_NOT_FINITE = 5,
    // A k-space coordinate lies outside [-0.5, 0.5) cycles per voxel; the message says which.
    RECON_COORDINATE_OUT_OF_RANGE = 6,
    // The tolerance cannot be met, or is no tolerance at all.
    RECON_TOLERANCE_OUT_OF_RANGE = 7,
    // An enumeration holds a value that this version does not know; the message lists those it does.
    RECON_UNKNOWN_VALUE = 8,
    // A structure announces a struct_size that this version does not know: call its _init function first.
    RECON_UNKNOWN_STRUCT_SIZE = 9,
    // Another argument has a value that makes no sense: a misaligned pointer, arrays that overlap, a negative
    // weight.
    RECON_INVALID_ARGUMENT = 10,
    // The memory limit is too small; the message says the bytes needed.
    RECON_MEMORY_LIMIT = 11,
    // The host is out of memory.
    RECON_OUT_OF_HOST_MEMORY = 12,
    // The device is out of memory.
    RECON_OUT_OF_DEVICE_MEMORY = 13,
    // There is no device of the kind asked for.
    RECON_NO_DEVICE = 14,
    // A driver is there, but a library it needs (NVRTC) is not, or they do not fit together; the message says
    // what to install.
    RECON_DRIVER_INCOMPLETE = 15,
    // The progress callback or the interrupt callback asked to stop.
    RECON_CANCELLED = 16,
    // This version cannot do what was asked.
    RECON_UNSUPPORTED = 17,
    // A file could not be read or written.
    RECON_IO = 18,
    // A file was read but its contents are wrong.
    RECON_BAD_FILE = 19,
    // A defect in this library: please report the message. Outputs of the call may be half written.
    RECON_INTERNAL = 20,
    // The GPU failed while computing. Outputs of the call may be half written, and the GPU may be of no use to
    // this process any more.
    RECON_DEVICE_FAILED = 21,
} recon_status;

// The type of every real number in the arrays of a plan; complex numbers are pairs (re, im) of it.
typedef enum {
    // float
    RECON_F32 = 0,
    // double
    RECON_F64 = 1,
} recon_precision;

// The shape of a voxel, whose Fourier transform phi(k) multiplies the samples of the model.
typedef enum {
    // A point: phi = 1.
    RECON_BASIS_POINT = 0,
    // A box of one voxel: phi = product over axes of sin(pi k)/(pi k).
    RECON_BASIS_BOX = 1,
} recon_basis;

// How E and E^H are evaluated.
typedef enum {
    // NUFFT for a grid of voxels, exact sums for a list.
    RECON_METHOD_AUTO = 0,
    // The direct sums, to full precision, in time samples times voxels.
    RECON_METHOD_EXACT = 1,
    // Gridding and FFT, to the tolerance.
    RECON_METHOD_NUFFT = 2,
} recon_method;

// How E^H W E is evaluated.
typedef enum {
    // Whichever the cost model finds faster, within the memory limit.
    RECON_NORMAL_AUTO = 0,
    // By convolution with Q, on the doubled grid.
    RECON_NORMAL_TOEPLITZ = 1,
    // By one forward and one adjoint transform.
    RECON_NORMAL_TRANSFORMS = 2,
} recon_normal_operator;

// Where a plan computes.
typedef enum {
    // The first GPU that can be used, else the CPU.
    RECON_DEVICE_AUTO = 0,
    // The CPU.
    RECON_DEVICE_CPU = 1,
    // NVIDIA GPUs, of compute capability 7.5 or more.
    RECON_DEVICE_CUDA = 2,
} recon_device;

// The vector unit of the processor that a plan computes with. Levels differ in speed, and in how results are
// rounded.
typedef enum {
    // What the environment variable RECON_SIMD names (baseline or sse, avx2, avx512); without it, or when it is
    // auto, the best that the processor has. On AMD's Zen 4 that is one of its own, avx512-256: gridding in
    // vectors of 256 bits, the rest in those of 512. Any other value of the option wins over the variable.
    RECON_SIMD_AUTO = 0,
    // What every processor of its kind has: SSE2 on x86-64.
    RECON_SIMD_BASELINE = 1,
    // AVX2 with fused multiply-add.
    RECON_SIMD_AVX2 = 2,
    // AVX-512 F, VL, DQ and BW.
    RECON_SIMD_AVX512 = 3,
} recon_simd;

// The family of gridding windows.
typedef enum {
    // With beta for the least worst error.
    RECON_WINDOW_KAISER_BESSEL = 0,
    // A truncated Gaussian: about half the digits of Kaiser-Bessel.
    RECON_WINDOW_GAUSSIAN = 1,
    // Linear interpolation along each axis: an error of about 0.2 at best; give that as tolerance, or 0.
    RECON_WINDOW_BILINEAR = 2,
    // The least worst error of all windows of its width: the default, and the best at every tolerance.
    RECON_WINDOW_MINIMAX = 3,
} recon_window;

// The filter of recon_fbp: the ramp |k| times a window over |k|, a = pi |k| / k_max, k_max being the largest |k|
// that is measured. The later in this list, the less noise and detail.
typedef enum {
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

// What recon_propeller does about the phase of blades.
typedef enum {
    // The phase of a smooth image of each blade, coil by coil, is taken from the blade (Pipe 1999). The smooth
    // phase of the object, and of the coils, goes with it.
    RECON_BLADE_PHASE_SMOOTH = 0,
    // One phase for each blade, the same in all coils.
    RECON_BLADE_PHASE_CONSTANT = 1,
    // Blades are as they were measured.
    RECON_BLADE_PHASE_NONE = 2,
} recon_blade_phase;

// What is known of the image beforehand: the R of (E^H W E + lambda R^H R) x = E^H W d.
typedef enum {
    // R = 1: the energy of the image.
    RECON_PRIOR_IDENTITY = 0,
    // Differences between neighbours along each axis.
    RECON_PRIOR_DIFFERENCES = 1,
    // Differences, each multiplied by exp(-(d/s)^2), d being the difference of the same two voxels in a reference
    // image and s `edge` times the reference's largest magnitude: smooth within tissues, free across their
    // borders. R^H R then has the squares, exp(-2 (d/s)^2).
    RECON_PRIOR_ANATOMICAL = 2,
    // A sparse matrix given by the caller.
    RECON_PRIOR_MATRIX = 3,
} recon_prior;

// Why a solution ended.
typedef enum {
    // All iterations were done.
    RECON_STOP_ITERATIONS = 0,
    // The residual fell to the tolerance.
    RECON_STOP_TOLERANCE = 1,
    // The residual is zero, or no direction is left in which to improve: the solution is exact to rounding.
    RECON_STOP_EXACT = 2,
} recon_stop;

// How density weights are computed. Percentages are errors of a gridded phantom on fully sampled trajectories
// without noise, against the same resolution (examples/densities prints them for many trajectories).
typedef enum {
    // The fixed point of w = w / (C w), C being a window that reaches two Nyquist distances (Pipe and Menon 1999):
    // any trajectory, 0.4 to 3 %.
    RECON_DENSITY_PIPE_MENON = 0,
    // |k|^(ndim-1), for samples that lie evenly along lines through the centre or along spirals whose radius grows
    // evenly; in a stack of either along an axis, |k| in the plane times the thickness of the partition: 0 to 3 %.
    // Spokes in 2D count for the angle between their neighbours, as those of the golden angle are not spread
    // evenly. Others, where it would make 20 to 300 %, are RECON_INVALID_ARGUMENT. Samples must be in the order of
    // acquisition.
    RECON_DENSITY_RAMP = 1,
    // One over the density of samples under a window that reaches one Nyquist distance (Jackson et al. 1991): any
    // trajectory, in one step, 5 to 15 %.
    RECON_DENSITY_JACKSON = 2,
} recon_density_method;

// How coil images are combined into one.
typedef enum {
    // The root of the sum of squared magnitudes.
    RECON_COMBINE_ROOT_SUM_OF_SQUARES = 0,
    // sum_c conj(S_c) x_c with sensitivities estimated from the coil images: keeps the phase, and less noise.
    RECON_COMBINE_ADAPTIVE = 1,
} recon_combine_method;

// The order in which recon_trajectory_radial2d and recon_trajectory_stack_of_stars turn their spokes.
typedef enum {
    // Spoke p at the angle p pi / spokes.
    RECON_SPOKES_LINEAR = 0,
    // Spoke p at p times 111.246 degrees.
    RECON_SPOKES_GOLDEN_ANGLE = 1,
} recon_spoke_order;

// The coils that see a phantom.
typedef enum {
    // One coil that is as sensitive everywhere.
    RECON_COILS_UNIFORM = 0,
    // Coils evenly spaced around the field of view, as recon_phantom_coil_maps draws them.
    RECON_COILS_RING = 1,
} recon_coil_model;

// Whether complex images or their magnitudes are compared.
typedef enum {
    // Complex voxels.
    RECON_PART_COMPLEX = 0,
    // Their magnitudes.
    RECON_PART_MAGNITUDE = 1,
} recon_part;

// Whether an image is brought to the scale of the truth before the two are compared.
typedef enum {
    // Compare as they are.
    RECON_SCALE_NONE = 0,
    // Multiply the image by the number that makes the squared error least.
    RECON_SCALE_BEST = 1,
} recon_scale;

// How much the log callback hears: messages of this level and those above it in this list.
typedef enum {
    // Nothing.
    RECON_LOG_OFF = 0,
    // What failed.
    RECON_LOG_ERROR = 1,
    // What may surprise.
    RECON_LOG_WARNING = 2,
    // One line a plan, and choices made for the caller.
    RECON_LOG_INFO = 3,
    // Steps of longer computations.
    RECON_LOG_DEBUG = 4,
    // Everything.
    RECON_LOG_TRACE = 5,
} recon_log_level;

// What a plan or a call warns of: see recon_plan_warning and recon_last_warning.
typedef enum {
    // Nothing.
    RECON_WARNING_NONE = 0,
    // k reaches less than a quarter of what the image's size could resolve: in the wrong units, it blurs the
    // image.
    RECON_WARNING_EXTENT = 1,
    // The default tolerance is out of the window's or the precision's reach. (One that is named and out of reach
    // is an error.)
    RECON_WARNING_TOLERANCE = 2,
    // PROPELLER blades do not agree with one another after their motion was corrected.
    RECON_WARNING_BLADES = 3,
    // A noise scan is short, or a noise level does not fit the data.
    RECON_WARNING_NOISE = 4,
    // Few virtual coils hold little of the data's energy.
    RECON_WARNING_COMPRESSION = 5,
    // The phase between echoes wraps: off-resonance is beyond what their spacing can tell.
    RECON_WARNING_WRAPS = 6,
    // The times of samples are no readout's: perhaps in other units than seconds.
    RECON_WARNING_TIMES = 7,
    // The system refused threads: fewer compute than were asked for.
    RECON_WARNING_THREADS = 8,
    // Gaps between samples narrow the centre of k-space that coil maps are estimated from, or bring aliases
    // into the field of view.
    RECON_WARNING_CALIBRATION = 9,
} recon_warning;

// What the weight of a prior is relative to.
typedef enum {
    // The mean of the diagonal of E^H W E over the voxels that the coils see: sum_m w_m |phi(k_m)|^2, times the
    // mean of sum_c |S_c|^2 with coil maps. One value then serves scans of any length and scale.
    RECON_LAMBDA_RELATIVE = 0,
    // 1: lambda stands in (E^H W E + lambda R^H R) x = E^H W d as it is.
    RECON_LAMBDA_ABSOLUTE = 1,
} recon_lambda_unit;

// Uses of an acquisition: bits of the number that recon_acquisition_use writes.
typedef enum {
    // Samples of an image.
    RECON_PURPOSE_IMAGE = 1,
    // Samples from which coil maps are estimated.
    RECON_PURPOSE_CALIBRATION = 2,
    // Noise without signal, which whitens the coils.
    RECON_PURPOSE_NOISE = 4,
} recon_acquisition_purpose;

// Everything that depends on the trajectory, made by recon_plan_create. Any number of threads may use a plan at once.
typedef struct recon_plan recon_plan;

// Receives one line of the log, without line end. May be called from any thread and from several at once, and while a
// call of this library is running; it must return normally (no exception, no longjmp). What it makes the library log
// itself is dropped.
typedef void (*recon_log_callback)(uint32_t level, const char *message, void *user_data);

// A GPU. Set it up with recon_device_properties_init.
typedef struct {
    // Set by recon_device_properties_init.
    uint32_t struct_size;
    // Streaming multiprocessors.
    uint32_t multiprocessors;
    // Compute capability, for example 9 of 9.0.
    uint32_t compute_major;
    // For example 0 of 9.0.
    uint32_t compute_minor;
    // Bytes of memory.
    uint64_t memory_bytes;
    // Bytes of memory that nobody uses.
    uint64_t memory_free_bytes;
    // Its name, ending in 0.
    char name[256];
} recon_device_properties;

// A scan: the trajectory, the image, the coils. Set it up with recon_geometry_init, then fill in at least dims,
// samples and coordinates. The arrays are only read, and only during the call that is given the structure.
typedef struct {
    // Set by recon_geometry_init.
    uint32_t struct_size;
    // A recon_precision: the type of every array here and of the plan; default RECON_F32.
    uint32_t precision;
    // Dimensions of image and trajectory: 2 (default) or 3.
    uint32_t ndim;
    // A recon_basis; default RECON_BASIS_POINT.
    uint32_t basis;
    // Voxels along x, y, and with ndim 3 along z. With a voxel list, the field of view in voxels.
    uint64_t dims[3];
    // Samples of one coil and frame.
    uint64_t samples;
    // k-space coordinates along x, y, z in cycles per voxel, within [-0.5, 0.5]: [samples] reals each. What lies
    // outside by no more than 1e-6 is taken for the edge.
    const void *coordinates[3];
    // Reals from one sample's coordinate to the next's. 0 or 1: separate arrays. Of one array with all coordinates of
    // a sample together: ndim, with the addresses of its first ndim elements as coordinates.
    uint64_t coordinate_stride;
    // Density weights, none negative: [samples] reals. Or NULL: all are 1 (and recon_grid computes its own).
    const void *weights;
    // Receive coils; default 1.
    uint64_t coils;
    // Coil sensitivities: complex [nx, ny, nz, coils]. With them coils are combined into one image; NULL: one image
    // for each coil.
    const void *coil_maps;
    // Frames measured on this trajectory, reconstructed independently; default 1.
    uint64_t frames;
    // Positions of voxels in place of the grid, in voxels from its origin: [voxel_count] reals for each axis. Or NULL.
    // Then nx ny nz is voxel_count in all shapes here, and only exact sums are possible. Positions are at most 262,144
    // voxels from the origin with f32, 1.4e14 with f64: beyond, the numbers do not determine the phase.
    const void *voxels[3];
    // As coordinate_stride, for voxels.
    uint64_t voxel_stride;
    // Voxels in the list; 0 without one.
    uint64_t voxel_count;
    // Off-resonance f in Hz: [nx, ny, nz] reals. The model then has the factor exp(-i 2 pi f t). It wants times. Or
    // NULL. f t is at most 131,072 turns, and a map whose range takes too many terms is refused, in voxels that a coil
    // sees: the message names voxel and frequency.
    const void *field_map;
    // Time t of each sample in seconds from the excitation or the echo, for field_map and decay_map: [samples] reals.
    // Or NULL without these.
    const void *times;
    // Decay rates R (R2*) in 1/s, none negative: [nx, ny, nz] reals. The model then has the factor exp(-R t). It wants
    // times. Or NULL. Single voxels may decay as fast as noise in a map makes them, up to R of 5,000 over the duration
    // of the readout. If even the slowest voxel has R t above 60, plan creation fails and names voxel and rate.
    const void *decay_map;
} recon_geometry;

// Asked whether the running call is to end, by the thread that made the call and no other. Zero continues; anything
// else ends the call with RECON_CANCELLED. It should take some microseconds at most, must not use the plan, and must
// return normally (no exception, no longjmp).
typedef int (*recon_interrupt_callback)(void *user_data);

// How a plan computes. Set it up with recon_options_init.
typedef struct {
    // Set by recon_options_init.
    uint32_t struct_size;
    // A recon_method; default RECON_METHOD_AUTO.
    uint32_t method;
    // A recon_normal_operator; default RECON_NORMAL_AUTO.
    uint32_t normal;
    // A recon_window; default RECON_WINDOW_MINIMAX.
    uint32_t window;
    // A recon_device; default RECON_DEVICE_AUTO.
    uint32_t device;
    // Indices in device_indices; 0 for the first GPU. Several share the work: coils with NUFFT, voxels with exact
    // sums; under a memory limit, and where there is nothing to share, the first does it alone.
    uint32_t device_count;
    // Which devices, for RECON_DEVICE_CUDA: [device_count]. Or NULL.
    const uint32_t *device_indices;
    // CPU threads, the caller's among them; the others start with the plan and end with it. 0 (default): as many as
    // the machine runs at once. Where the system refuses some, the plan computes with the others, and the log has a
    // warning.
    uint32_t threads;
    // Not 0: the k-space and image arrays of recon_forward, recon_fhd, recon_weighted_fhd, recon_normal, recon_grid
    // and recon_cg are addresses in the GPU's memory. All else stays in the host's.
    uint32_t pointers_on_device;
    // Relative l2 error of a transform against the exact sums, in (0, 1). 0 (default): 1e-5. It is kept wherever
    // samples are, few or hundreds of thousands in one place; an entry of E, all of which have size 1, errs by at most
    // five times as much. Exact sums err by rounding only; over a voxel list on a GPU in f32 the special function
    // units make the sines (the sums' error is about 2e-6), unless the tolerance is below 1e-5, which takes 2.5 times
    // the time.
    double tolerance;
    // Bytes that the plan and its operations may hold beyond the caller's arrays. 0 (default): no limit.
    uint64_t memory_limit;
    // A recon_simd; default RECON_SIMD_AUTO. RECON_UNSUPPORTED when the processor lacks the level.
    uint32_t simd;
    // Not 0: the GPU's work is queued on stream. 0 (default): on a stream of the plan's own, and calls return when
    // their results are there.
    uint32_t use_stream;
    // A CUstream or cudaStream_t of the GPU's primary context that outlives the plan; NULL is the default stream.
    // Calls whose arrays are all on the GPU then may return before their results are there: they are for what is
    // queued next.
    void *stream;
    // Called now and then while the plan is made and in every call with it: about fifty times a second, less often
    // where the work allows no more (one NUFFT of a large image). Once it says so the call ends; the plan is as good
    // as before. For outputs to be untouched then, exact sums, Q, and transforms of several coils or frames are
    // computed apart, in memory of the output's size that memory_limit counts. With pointers_on_device transforms only
    // ask before they begin, and several GPUs that share work are not interrupted while they do their parts. Or NULL
    // (default).
    recon_interrupt_callback interrupt;
    // Handed to interrupt; to be there until the plan is destroyed.
    void *interrupt_data;
    // Grid size over image size, 1.25 to 2.5. 0 (default): one between 1.25 and 2 that keeps the tolerance. The grid
    // of each axis is the next larger size that has a fast FFT, and at least two windows wide. RECON_INVALID_ARGUMENT
    // where sums are exact, which have no grid.
    double oversampling;
    // Width of the window in grid cells, 2 to 16 (with RECON_WINDOW_BILINEAR 2). 0 (default): one that keeps the
    // tolerance. RECON_INVALID_ARGUMENT where sums are exact. Width and oversampling may be named each alone or both:
    // what is not named is chosen so that the tolerance is kept at the least cost. Where it cannot be, a tolerance
    // that is named is RECON_TOLERANCE_OUT_OF_RANGE, with a text that says what would keep it. Without one the plan is
    // made: recon_plan_info tells its error, and RECON_WARNING_TOLERANCE that it is above the default.
    uint32_t width;
    // Zero.
    uint32_t reserved;
} recon_options;

// Where a solution stands.
typedef struct {
    // Size of this structure in the library's version, in bytes: fields beyond it are not there.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // The image being solved for, from 0.
    uint64_t image;
    // How many there are: frames with coil maps, coils times frames without.
    uint64_t images;
    // Iterations done for this image.
    uint64_t iteration;
    // The most there will be.
    uint64_t iterations;
    // Norm of the residual relative to that of E^H W d.
    double residual;
} recon_progress;

// Called before the first and after each iteration of recon_cg, by the thread that called recon_cg. Zero continues;
// anything else ends the call with RECON_CANCELLED and leaves the image untouched. It may use the plan, but must not
// destroy it, and must return normally (no exception, no longjmp).
typedef int (*recon_progress_callback)(const recon_progress *progress, void *user_data);

// How to solve, and with what prior. Set it up with recon_cg_options_init.
typedef struct {
    // Set by recon_cg_options_init.
    uint32_t struct_size;
    // A recon_prior; default RECON_PRIOR_IDENTITY. While lambda is 0 it is checked, but has no effect.
    uint32_t prior;
    // Maximum number of iterations for each image. Default: 12.
    uint64_t iterations;
    // Stop when the residual's norm falls to this part of the norm of E^H W d, in [0, 1); 0 (default) never does.
    double tolerance;
    // Weight of the prior, 0 (default) or more, in the unit that lambda_unit names.
    double lambda;
    // RECON_PRIOR_ANATOMICAL: the reference image in any unit, [nx, ny, nz] reals.
    const void *reference;
    // RECON_PRIOR_ANATOMICAL: the difference that counts as a border, as a fraction of the reference's largest
    // magnitude; default 0.1.
    double edge;
    // RECON_PRIOR_MATRIX: rows of R; it has as many columns as the image has voxels.
    uint64_t matrix_rows;
    // Where each row's entries begin, and the last row's end: [matrix_rows + 1], beginning with 0.
    const uint64_t *matrix_starts;
    // The column (voxel index) of each entry: [matrix_starts[matrix_rows]].
    const uint64_t *matrix_columns;
    // The value of each entry: complex [matrix_starts[matrix_rows]].
    const void *matrix_values;
    // Image to start from, of the result's shape. Or NULL: zeros.
    const void *initial;
    // Called before the first and after each iteration. Or NULL.
    recon_progress_callback progress;
    // Handed to progress.
    void *user_data;
    // A recon_lambda_unit; default RECON_LAMBDA_RELATIVE.
    uint32_t lambda_unit;
    // Zero.
    uint32_t reserved;
    // The root of the mean |noise|^2 of a sample, in the unit of the data (1 after recon_whitening): lambda, which
    // must be 0 then, is found from it, after the discrepancy principle (Morozov 1966): the image is about as far from
    // the data as the noise is. It takes seven to twelve solutions, each of which calls progress. For plans without
    // weights, and arrays in the host's memory; RECON_INVALID_ARGUMENT for a level that is half or twice that of the
    // data. 0 (default): lambda as it is given.
    double noise_level;
} recon_cg_options;

// What came of recon_cg. Set it up with recon_cg_report_init; residuals and residual_capacity are the caller's to set,
// all else is written when the call succeeds.
typedef struct {
    // Set by recon_cg_report_init.
    uint32_t struct_size;
    // Of the image that ended with the largest residual: why it ended, a recon_stop.
    uint32_t stop;
    // Images solved for: frames with coil maps, coils times frames without.
    uint64_t images;
    // Which image ended with the largest residual, from 0.
    uint64_t worst_image;
    // Its iterations.
    uint64_t iterations;
    // Its residual, relative to the norm of E^H W d.
    double residual;
    // Seconds for Q; 0 where it was there already, or is not used.
    double q_seconds;
    // Seconds for E^H W d.
    double adjoint_seconds;
    // Seconds for the iterations.
    double iteration_seconds;
    // Receives the relative residual before the first iteration and after each: [iterations + 1, images], iterations
    // being those of the options, NaN for those not done. Or NULL.
    double *residuals;
    // Elements that residuals has room for; at least (iterations + 1) images unless it is NULL.
    uint64_t residual_capacity;
    // What lambda was in (E^H W E + lambda R^H R) x = E^H W d.
    double lambda;
} recon_cg_report;

// What recon_propeller finds and corrects. Set it up with recon_propeller_options_init.
typedef struct {
    // Set by recon_propeller_options_init.
    uint32_t struct_size;
    // A recon_blade_phase; default RECON_BLADE_PHASE_SMOOTH.
    uint32_t phase;
    // Lines of a blade. 0 (default): as many as are parallel and evenly spaced.
    uint64_t lines;
    // Not 0 (default 1): rotations are found and corrected.
    uint32_t rotation;
    // Not 0 (default 1): translations are.
    uint32_t translation;
    // Not 0 (default 1): blades that disagree with the others, as after motion through the plane, count less in the
    // image.
    uint32_t weighting;
    // Zero.
    uint32_t reserved;
} recon_propeller_options;

// What recon_propeller found. Set it up with recon_propeller_report_init.
typedef struct {
    // Set by recon_propeller_report_init.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // Blades, written.
    uint64_t blades;
    // Lines of a blade, written.
    uint64_t lines;
    // Samples of a line, written.
    uint64_t readout;
    // Receives where the object was while each blade was measured, from its mean position over all blades:
    // [6, blades, frames]. Of each: the degrees that it was turned by about voxel floor(n/2), from x to y; the voxels
    // along x, and along y, that it was moved by after that; the phase in radians that was taken from the blade (with
    // RECON_BLADE_PHASE_SMOOTH its mean over the image); the correlation of the corrected blade with all others about
    // the centre of k-space, from 0 to 1; how much the blade counts where it meets others, from 0 to 1. Or NULL.
    double *motion;
    // Numbers that motion has room for; at least 6 blades frames unless it is NULL.
    uint64_t motion_capacity;
    // Receive the coordinates of the samples along x and y as the object at rest sees them: [samples, frames] reals
    // each. A sample that a rotation takes out of [-0.5, 0.5) is at the edge, with weight 0. Both or NULL.
    void *coordinates[2];
    // Receives density weights for these (Pipe and Menon 1999), with those of blades where they meet: [samples,
    // frames] reals. Or NULL.
    void *weights;
    // Receives the corrected data, complex [samples, coils, frames]. Or NULL.
    void *kspace;
} recon_propeller_report;

// How recon_field_map makes a map. Set it up with recon_field_map_options_init.
typedef struct {
    // Set by recon_field_map_options_init.
    uint32_t struct_size;
    // Not 0 (default 1): wraps of the phase are undone. They are found, and warned of, in any case.
    uint32_t unwrap;
    // The weight of squared differences between neighbouring voxels against that of a voxel of median signal; default
    // 0.2. 0: voxels with signal keep what was measured, and the others are filled.
    double smoothing;
    // Signal below this part of the largest, in [0, 1), counts as none, as that which noise alone may have does;
    // default 0.1. 0: all voxels count.
    double threshold;
    // CPU threads, the caller's among them. 0 (default): as many as the machine runs at once. The map has the same
    // bits for any number.
    uint32_t threads;
    // Zero.
    uint32_t reserved;
    // Called now and then, by the thread that makes the call; less often where wraps of a large volume are undone.
    // Once it returns another number than 0 the call ends, and outputs are untouched. Or NULL (default).
    recon_interrupt_callback interrupt;
    // Handed to interrupt.
    void *interrupt_data;
} recon_field_map_options;

// What is known of a field map. Set it up with recon_field_map_report_init.
typedef struct {
    // Set by recon_field_map_report_init.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // The largest |f| in Hz that the phase tells without a wrap: 1 / (2 shortest spacing of echoes).
    double limit;
    // The part of the voxels that has signal.
    double signal;
    // The RMS in Hz, weighted as the fit is, of what smoothing changed in voxels with signal.
    double change;
    // Pairs of neighbouring voxels with signal whose phases jumped by more than pi: wraps, where there are many.
    uint64_t jumps;
    // Voxels whose phase was unwrapped.
    uint64_t unwrapped;
    // Pairs that still jump by more than pi after that, or without it: there the map is wrong on one side.
    uint64_t unresolved;
    // Ambiguity in Hz: f and f + period have the same phases at all echo times. With evenly spaced echoes it is
    // 1 / spacing. Of each piece of the object the median nearest 0 Hz is taken, to which a multiple of the period may
    // have to be added.
    double period;
    // Separate pieces of voxels with signal. Nothing links the off-resonance of two pieces.
    uint64_t pieces;
    // Voxels in pieces for which noise hides which f within the period is the right one.
    uint64_t undecided;
} recon_field_map_report;

// What a plan is. Set it up with recon_plan_properties_init.
typedef struct {
    // Set by recon_plan_properties_init.
    uint32_t struct_size;
    // A recon_precision.
    uint32_t precision;
    // A recon_method: RECON_METHOD_EXACT or RECON_METHOD_NUFFT.
    uint32_t method;
    // A recon_window, the one asked for; of no effect with exact sums.
    uint32_t window;
    // Width of the window in grid cells; 0 with exact sums.
    uint32_t width;
    // Number of CPU threads that compute, the caller's included: fewer than asked for if the system refused some.
    uint32_t threads;
    // 1 when E^H W E goes through Q, else 0.
    uint32_t toeplitz;
    // Dimensions.
    uint32_t ndim;
    // The oversampled grid [gx, gy, gz] (gz is 1 in 2D); zeros with exact sums.
    uint64_t grid[3];
    // Grid size over image size, of the axis where it is least.
    double oversampling;
    // The relative l2 error expected of a transform. It is at most the tolerance if that chose the window. For a
    // window of a given width and oversampling it is the error for evenly spread samples. If all samples are at the
    // edge of k-space, the error is up to 3.3 times as large.
    double error;
    // Complex elements of an image array: voxels times images times frames.
    uint64_t image_elements;
    // Complex elements of a k-space array: samples times coils times frames.
    uint64_t kspace_elements;
    // Complex elements of Q.
    uint64_t q_elements;
    // Complex elements of gridded k-space, grid times coils times frames; 0 with exact sums.
    uint64_t grid_elements;
    // Bytes held on the host, Q included once it is there.
    uint64_t host_bytes;
    // Bytes held on GPUs.
    uint64_t device_bytes;
    // Seconds that the plan took to make, or its last change (recon_plan_set_trajectory and the like).
    double seconds;
    // The device in words, ending in 0.
    char device[64];
    // The vector unit in use, ending in 0: "sse", "avx2", "avx512" or "avx512-256" (see RECON_SIMD_AUTO) on x86-64,
    // else "portable"; "none" on a GPU.
    char simd[32];
    // With a field map or a decay map, the transforms without that make one transform with: their number follows from
    // the tolerance. 0 without, and with exact sums.
    uint32_t segments;
    // With a field map or a decay map, the convolutions that E^H W E is the sum of; 0 without, and where it goes
    // through transforms.
    uint32_t nodes;
} recon_plan_properties;

// Bytes that a plan and its operations take, at their peaks, beyond the caller's arrays: see recon_plan_memory. Set it
// up with recon_memory_init.
//
// Each figure is that of a plan that serves this one operation, the plan included. Q stays: once recon_normal or
// recon_cg were called, other operations take host_q and device_q more.
typedef struct {
    // Set by recon_memory_init.
    uint32_t struct_size;
    // Read, not written: the width of the centre of k-space for host_coil_maps, as recon_coil_maps takes it; 0, as
    // recon_memory_init leaves it, for the default.
    uint32_t calibration;
    // The host's memory, while the plan is made.
    uint64_t host_plan;
    // For recon_forward, recon_fhd and recon_weighted_fhd.
    uint64_t host_transform;
    // For recon_grid: without weights in the geometry with those of Pipe and Menon, which it then makes.
    uint64_t host_grid;
    // For recon_density with RECON_DENSITY_PIPE_MENON and RECON_DENSITY_RAMP.
    uint64_t host_density;
    // For recon_density with RECON_DENSITY_JACKSON.
    uint64_t host_density_jackson;
    // For recon_coil_maps with that calibration.
    uint64_t host_coil_maps;
    // For recon_normal, Q included where it is used.
    uint64_t host_normal;
    // For recon_cg, Q included where it is used; what RECON_PRIOR_ANATOMICAL and RECON_PRIOR_MATRIX hold
    // is not, and the image and twice the data that the search by noise_level holds are not.
    uint64_t host_cg;
    // What Q holds once it is made; 0 where it is not used.
    uint64_t host_q;
    // The same, in the memory of all GPUs that the plan is on; 0 on the CPU.
    uint64_t device_plan;
    // See host_transform.
    uint64_t device_transform;
    // See host_grid.
    uint64_t device_grid;
    // See host_density.
    uint64_t device_density;
    // See host_density_jackson.
    uint64_t device_density_jackson;
    // See host_coil_maps.
    uint64_t device_coil_maps;
    // See host_normal.
    uint64_t device_normal;
    // See host_cg.
    uint64_t device_cg;
    // See host_q.
    uint64_t device_q;
    // The host's memory for recon_combine with RECON_COMBINE_ADAPTIVE of images of this size, which needs no plan.
    uint64_t host_combine;
    // For recon_fbp, with spokes of at most 8 times as many samples as an axis has voxels; in 3D as for a plan.
    uint64_t host_fbp;
    // See host_fbp.
    uint64_t device_fbp;
} recon_memory;

// The error e = scale x - t of an image x against the truth t. Set it up with recon_quality_init.
typedef struct {
    // Set by recon_quality_init.
    uint32_t struct_size;
    // Zero.
    uint32_t reserved;
    // 100 RMS(e) / RMS(t), in percent.
    double percent_error;
    // Mean squared error, RMS(e)^2, in squared units of the truth.
    double mse;
    // Peak signal to noise ratio, 20 log10(max |t| / RMS(e)), in dB; infinite without error.
    double psnr_db;
    // Signal to noise ratio, 20 log10(RMS(t) / RMS(e)), in dB; infinite without error.
    double snr_db;
    // Real part of what the image was multiplied by: 1 with RECON_SCALE_NONE.
    double scale_re;
    // Its imaginary part.
    double scale_im;
} recon_quality;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the library as text, "major.minor.patch". Never NULL; not to be freed.
const char *recon_version(void);

// What a status means, in a few words. Never NULL, for numbers that are no status either; not to be freed.
const char *recon_status_string(int32_t status);

// The name of a status in one word: "InvalidSize" for RECON_INVALID_SIZE, as in MATLAB's error identifiers. Never
// NULL, "UnknownStatus" for numbers that are no status; not to be freed.
const char *recon_status_name(int32_t status);

// The number of an option's value by its word, for hosts whose users write words as MATLAB's do. For example option
// "window", word "gaussian": RECON_WINDOW_GAUSSIAN. Options are "precision" (words "single" and "double"), "basis",
// "method", "normal", "device", "simd", "window", "filter", "prior", "lambda_unit", "stop", "density", "combine"
// ("rss" and "adaptive"), "order" ("linear" and "golden"), "coil_model", "part", "scale", "warning", "purpose" and
// "level". Other words are the ends of the constants' names in lower case, with - for _.
//
// Errors: RECON_NULL_POINTER; RECON_UNKNOWN_VALUE for an option or a word that this version does not know, with those
// it does.
recon_status recon_choice(const char *option, const char *word, uint32_t *value);

// The word for a number of an option, see recon_choice. Never NULL; empty where there is none; not to be freed.
const char *recon_choice_word(const char *option, uint32_t value);

// What went wrong in the last call by this thread that failed: cause, value and remedy, in UTF-8. Empty before the
// first failure. Never NULL; not to be freed; the thread's next failure replaces the text in the same place.
const char *recon_last_error_message(void);

// Makes the library report what it does: `callback` receives messages of `level` (a recon_log_level) and above, and
// `user_data`. Replaces the callback before; NULL removes it. Once this returns the previous callback is not called
// any more. Without a callback the library is silent. This is its only global state.
//
// Errors: RECON_UNKNOWN_VALUE; RECON_INVALID_ARGUMENT from within the callback; RECON_UNSUPPORTED when the library is
// linked statically into a Rust program that has a logger of its own.
recon_status recon_set_log_callback(recon_log_callback callback, void *user_data, uint32_t level);

// The number of GPUs that the driver shows: 0 where there is no driver. Never an error.
uint32_t recon_device_count(void);

// Describes the GPU `index`, from 0.
//
// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE; RECON_NO_DEVICE when there is no such GPU, or no driver.
recon_status recon_device_info(uint32_t index, recon_device_properties *properties);

// Defaults of a geometry: f32, 2D, one coil, one frame, point voxels. `struct_size` is sizeof(recon_geometry): it
// tells the library which version of the header the caller was compiled with; so for every _init function.
//
// Errors: RECON_NULL_POINTER; RECON_UNKNOWN_STRUCT_SIZE when the header is newer than the library.
recon_status recon_geometry_init(recon_geometry *geometry, uint32_t struct_size);

// Defaults of a plan's options: everything chosen by the library. `struct_size` is sizeof(recon_options).
recon_status recon_options_init(recon_options *options, uint32_t struct_size);

// Defaults of recon_cg: 12 iterations, no prior. `struct_size` is sizeof(recon_cg_options).
recon_status recon_cg_options_init(recon_cg_options *options, uint32_t struct_size);

// An empty report, without room for residuals. `struct_size` is sizeof(recon_cg_report).
recon_status recon_cg_report_init(recon_cg_report *report, uint32_t struct_size);

// Defaults of recon_propeller: blades as they are found, their smooth phase, rotation and translation corrected.
// `struct_size` is sizeof(recon_propeller_options).
recon_status recon_propeller_options_init(recon_propeller_options *options, uint32_t struct_size);

// An empty report, without room for anything. `struct_size` is sizeof(recon_propeller_report).
recon_status recon_propeller_report_init(recon_propeller_report *report, uint32_t struct_size);

// Defaults of recon_field_map. `struct_size` is sizeof(recon_field_map_options).
recon_status recon_field_map_options_init(recon_field_map_options *options, uint32_t struct_size);

// An empty report. `struct_size` is sizeof(recon_field_map_report).
recon_status recon_field_map_report_init(recon_field_map_report *report, uint32_t struct_size);

// Empty properties. `struct_size` is sizeof(recon_plan_properties).
recon_status recon_plan_properties_init(recon_plan_properties *properties, uint32_t struct_size);

// Empty figures. `struct_size` is sizeof(recon_memory).
recon_status recon_memory_init(recon_memory *memory, uint32_t struct_size);

// Empty properties. `struct_size` is sizeof(recon_device_properties).
recon_status recon_device_properties_init(recon_device_properties *properties, uint32_t struct_size);

// Empty figures. `struct_size` is sizeof(recon_quality).
recon_status recon_quality_init(recon_quality *quality, uint32_t struct_size);

// Makes a plan for a geometry: checks every number, chooses window and grid, sorts the samples, starts the plan's
// threads. The geometry's arrays are not needed afterwards. `options` may be NULL for the defaults. On success `*plan`
// is the caller's, to be given to recon_plan_destroy; otherwise it is untouched.
//
// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE; RECON_INVALID_SIZE for a size of zero;
// RECON_SIZE_OVERFLOW; RECON_NOT_FINITE and RECON_COORDINATE_OUT_OF_RANGE with the index;
// RECON_TOLERANCE_OUT_OF_RANGE; RECON_MEMORY_LIMIT with the bytes needed; RECON_OUT_OF_HOST_MEMORY; RECON_NO_DEVICE;
// RECON_OUT_OF_DEVICE_MEMORY; RECON_DRIVER_INCOMPLETE where the GPU's kernels are neither kept nor can be compiled;
// RECON_UNSUPPORTED for a field map that takes more than 128 segments, a voxel list with RECON_METHOD_NUFFT, or a vector
// unit that the processor lacks.
recon_status recon_plan_create(const recon_geometry *geometry,
                               const recon_options *options,
                               recon_plan **plan);

// Tells the bytes that a plan of this geometry and its operations will take, before it is made: upper estimates,
// within a fifth of the peaks on the CPU and a quarter on a GPU where these are beyond some MiB. On the CPU each is
// enough as the memory_limit of a plan for that operation. A GPU's memory that the making of the
// plan leaves idle is counted, as it stays with the plan until memory lacks; for samples that lie neither evenly nor
// on spokes it may be more. The caller's arrays are not counted, nor what a GPU's driver takes for itself. Window,
// grid and device are chosen as recon_plan_create does.
//
// geometry: its sizes count, and whether weights and coil_maps are NULL. With a field map or decay map these, times and
// coil_maps are read, since their range decides. What other addresses lead to is not read. With coordinates, which may be NULL, memory->host_coil_maps counts the samples in the centre of k-space, without
// them all. options: as for recon_plan_create, or NULL. A memory_limit is heeded only where it decides what a plan
// does: that the plan exceeds it is no error here.
// memory: written, but for its calibration, which is read.
//
// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE; RECON_INVALID_ARGUMENT for a calibration
// that is wider than k-space; RECON_INVALID_SIZE for a size of zero;
// RECON_SIZE_OVERFLOW; RECON_TOLERANCE_OUT_OF_RANGE; RECON_NO_DEVICE; RECON_DRIVER_INCOMPLETE; RECON_UNSUPPORTED.
recon_status recon_plan_memory(const recon_geometry *geometry,
                               const recon_options *options,
                               recon_memory *memory);

// What may make the result of this thread's last call other than the one wanted: the warning `index`, from 0. Each was
// also logged, at RECON_LOG_WARNING. Those of a plan are told by recon_plan_warning.
//
// kind: a recon_warning, written; RECON_WARNING_NONE when there are no more.
// text: what was found, and what to do, in UTF-8, written; it lives until this thread's next call of any function but
// this one and recon_last_error_message. NULL when there are no more.
//
// Errors: RECON_NULL_POINTER.
recon_status recon_last_warning(uint64_t index, uint32_t *kind, const char **text);

// What may make a plan's images other than those wanted: the warning `index`, from 0. Each was also logged, at
// RECON_LOG_WARNING, when the plan was made, or when a new trajectory brought the first of its kind.
//
// kind: a recon_warning, written; RECON_WARNING_NONE when there are no more.
// text: what was found, and what to do, in UTF-8, written; it lives until the plan goes or gets another trajectory.
// NULL when there are no more.
//
// Errors: RECON_NULL_POINTER.
recon_status recon_plan_warning(const recon_plan *plan, uint64_t index, uint32_t *kind, const char **text);

// Gives back all that a plan holds, its threads included. NULL is allowed. No call with this plan may be running.
void recon_plan_destroy(recon_plan *plan);

// Gives the memory that the library keeps for the next plan back to the system. Without plans this is at most 32 MiB.
// With plans it is at most as much as the plans hold (at least 32 MiB, at most 1 GiB). Plans that exist lose nothing.
// On Linux with glibc it also calls malloc_trim(0). Call it after the last plan, or before the library is unloaded. It
// cannot fail.
void recon_release_memory(void);

// Describes a plan: what was chosen, the lengths of its arrays, the bytes it holds.
//
// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE; RECON_INVALID_ARGUMENT for a misaligned structure;
// RECON_SIZE_OVERFLOW where the gridded k-space of all coils and frames would exceed the address space.
recon_status recon_plan_info(const recon_plan *plan, recon_plan_properties *properties);

// Gives a plan another trajectory, with other weights, and other coil maps where the geometry has some: for real-time
// and other scans whose trajectory changes from frame to frame. It costs little beside sorting the samples: threads,
// window, tables, grids and buffers stay, unless another number of samples makes another window or grid the better
// choice. Results have the same bits as those of a new plan of this geometry and the plan's options.
//
// geometry: samples, coordinates, coordinate_stride, weights and coil_maps are read: the structure that the plan was
// made with, with other addresses, will do. Weights that are NULL are an error where the plan has weights, which are
// those of other samples: recon_plan_set_weights takes them away. Coil maps that are NULL mean those that the plan
// has. All else must be as the plan was made with: precision, ndim, dims, coils, frames,
// basis, and the positions in a voxel list. The arrays are not needed afterwards.
//
// What had been made of the old trajectory is forgotten: Q, also where it was loaded, and the weights that recon_grid
// computed. recon_plan_info and recon_plan_warning tell of the new one.
//
// Other threads may use the plan meanwhile, a progress callback may change its own plan, and nobody waits. A call that
// is under way goes on with the trajectory that it began with. A call that begins after this one has returned uses the
// new one. With another number of samples k-space arrays have another length: meanwhile no call may begin whose arrays
// are too short for either. After an error the plan is as it was.
//
// Errors: those of recon_plan_create for sizes, numbers and memory; RECON_MEMORY_LIMIT where the plan and the new
// samples exceed the limit together, since both are there until the change is made; RECON_SIZE_MISMATCH for other
// ndim, dims, voxel_count, coils or frames; RECON_INVALID_ARGUMENT for another precision, basis or voxel list, for
// coil maps where the plan was made without, and for no weights where it has some; RECON_CANCELLED.
recon_status recon_plan_set_trajectory(recon_plan *plan, const recon_geometry *geometry);

// Gives a plan other density weights. The samples stay sorted; Q, and the weights that recon_grid computed, are
// forgotten. Other threads may use the plan meanwhile, see recon_plan_set_trajectory.
//
// weights: real [samples] in the plan's precision, none negative, read; not needed afterwards. NULL: all are 1.
// count: how many there are, the plan's number of samples; 0 with NULL.
//
// Errors: RECON_NULL_POINTER for NULL and a count that is not 0; RECON_SIZE_MISMATCH for another count;
// RECON_NOT_FINITE and RECON_INVALID_ARGUMENT with the index; RECON_MEMORY_LIMIT; RECON_OUT_OF_HOST_MEMORY;
// RECON_OUT_OF_DEVICE_MEMORY; RECON_CANCELLED. The plan is as it was then.
recon_status recon_plan_set_weights(recon_plan *plan, const void *weights, uint64_t count);

// Gives a plan that was made with coil maps others. All else stays, Q among it. Other threads may use the plan
// meanwhile, see recon_plan_set_trajectory.
//
// maps: complex [nx, ny, nz, coils] in the plan's precision, read; not needed afterwards.
// count: how many complex numbers there are: voxels times coils.
//
// Errors: RECON_NULL_POINTER; RECON_INVALID_ARGUMENT where the plan was made without maps, which decide how many
// images there are: make a new plan; and where the maps see voxels whose off-resonance or decay is beyond what those
// before saw; RECON_SIZE_MISMATCH for another count; RECON_NOT_FINITE with the index;
// RECON_MEMORY_LIMIT where old and new maps exceed the limit together; RECON_OUT_OF_HOST_MEMORY;
// RECON_OUT_OF_DEVICE_MEMORY; RECON_CANCELLED. The plan is as it was then.
recon_status recon_plan_set_coil_maps(recon_plan *plan, const void *maps, uint64_t count);

// kspace = E image: what the scanner would measure.
//
// image: complex [nx, ny, nz, images, frames], read; images is 1 with coil maps, else coils.
// kspace: complex [samples, coils, frames], written.
//
// Errors: RECON_NULL_POINTER; RECON_INVALID_ARGUMENT when the arrays overlap; RECON_NOT_FINITE with the voxel's index;
// also for a result that overflows; RECON_OUT_OF_HOST_MEMORY.
recon_status recon_forward(const recon_plan *plan, const void *image, void *kspace);

// image = E^H kspace, unscaled and without weights: F^H d of Stone et al. 2008.
//
// kspace: complex [samples, coils, frames], read. image: complex [nx, ny, nz, images, frames], written.
//
// Errors: as recon_forward, RECON_NOT_FINITE with the sample's index.
recon_status recon_fhd(const recon_plan *plan, const void *kspace, void *image);

// image = E^H W kspace, W being the density weights of the geometry (1 where none were given): the right-hand side
// that recon_cg solves for. Arrays and errors as recon_fhd.
recon_status recon_weighted_fhd(const recon_plan *plan, const void *kspace, void *image);

// y = E^H W E x.
//
// x: complex [nx, ny, nz, images, frames], read. y: the same shape, written.
//
// Errors: as recon_forward; RECON_MEMORY_LIMIT when Q was asked for and does not fit.
recon_status recon_normal(const recon_plan *plan, const void *x, void *y);

// The gridding reconstruction: the adjoint of density-compensated data, scaled so that a fully sampled object comes
// back at its own scale. Without weights in the geometry those of Pipe and Menon are computed, with the first call.
//
// kspace: complex [samples, coils, frames], read. image: complex [nx, ny, nz, images, frames], written.
//
// Errors: as recon_fhd; RECON_INVALID_ARGUMENT when no sample with a positive weight lies near the centre of k-space
// (an annulus), where the scale of the image is decided, or when one weight outweighs all others.
recon_status recon_grid(const recon_plan *plan, const void *kspace, void *image);

// The gridding reconstruction stopped at gridded k-space, before coils are combined. The image of a coil is
// sum over cells u of grid(u) exp(+i 2 pi u.r / g), times the factors of recon_window_correction along each axis.
//
// kspace: complex [samples, coils, frames], read.
// grid: complex [gx, gy, gz, coils, frames] of the oversampled grid that recon_plan_info tells (its grid_elements in
// all), k = 0 in cell floor(g/2), written.
//
// Errors: as recon_grid; RECON_UNSUPPORTED with exact sums, which have no grid.
recon_status recon_grid_kspace(const recon_plan *plan, const void *kspace, void *grid);

// The factors along an axis by which an image is multiplied after the FFT of gridded k-space.
//
// axis: 0 for x. factors: double [dims[axis]], written, whatever the plan's precision.
//
// Errors: RECON_NULL_POINTER; RECON_INVALID_ARGUMENT for an axis that there is not; RECON_UNSUPPORTED with exact sums.
recon_status recon_window_correction(const recon_plan *plan, uint32_t axis, double *factors);

// Q(delta) = sum_m w_m |phi(k_m)|^2 exp(+i 2 pi k_m.delta), the kernel of E^H W E.
//
// q: complex [2 nx, 2 ny, 2 nz] (2D: [2 nx, 2 ny]), displacement delta at index delta + n, written; for a voxel list,
// complex [voxel_count], Q at the positions listed.
//
// Errors: RECON_NULL_POINTER, RECON_OUT_OF_HOST_MEMORY.
recon_status recon_q(const recon_plan *plan, void *q);

// Saves Q, as recon_normal and recon_cg use it, for plans of the same geometry in other sessions; computes it first if
// need be. `path` is in the file system's encoding (UTF-8 on Windows); a link is followed, a device or a fifo is
// written into. Several threads and processes may save to one path at once.
//
// Errors: RECON_NULL_POINTER; RECON_IO when the file cannot be written (the path has what it had before then);
// RECON_UNSUPPORTED when the plan does not use Q; RECON_MEMORY_LIMIT.
recon_status recon_plan_save_q(const recon_plan *plan, const char *path);

// Loads Q in place of computing it.
//
// Errors: RECON_NULL_POINTER; RECON_IO when the file cannot be read; RECON_BAD_FILE when it is cut short, damaged, too
// long, or belongs to another geometry; RECON_UNSUPPORTED when the plan does not use Q.
recon_status recon_plan_load_q(const recon_plan *plan, const char *path);

// Solves (E^H W E + lambda R^H R) x = E^H W d by conjugate gradients, each image on its own.
//
// kspace: complex [samples, coils, frames], read. image: complex [nx, ny, nz, images, frames], written.
// options: may be NULL for the defaults. report: may be NULL.
//
// Errors: as recon_fhd; RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE; RECON_INVALID_ARGUMENT,
// RECON_TOLERANCE_OUT_OF_RANGE and RECON_SIZE_MISMATCH for options that make no sense; RECON_NOT_FINITE on overflow;
// RECON_MEMORY_LIMIT; RECON_UNSUPPORTED for a prior on differences with a voxel list; RECON_CANCELLED by the progress
// callback too. Image and report are untouched then.
recon_status recon_cg(const recon_plan *plan,
                      const void *kspace,
                      void *image,
                      const recon_cg_options *options,
                      recon_cg_report *report);

// Filtered backprojection of 2D radial data at any angles (Schiwietz et al. 2006): each spoke times the ramp |k| and
// the filter's window, transformed to positions along its line, and added to every voxel by linear interpolation
// between positions half a voxel apart or less. Scaled as recon_grid is: a fully sampled object comes back at its own
// scale. What limits it is that interpolation: it errs by up to a tenth where |k| is near 0.5, and by far less below.
// Each sample is weighed by the area of k-space that it stands for, whatever the angles of the spokes. recon_grid is
// faster.
//
// Spokes are recognised from the trajectory: samples in the order of acquisition, as many on each spoke, evenly spaced
// on a line through the centre of k-space. They may begin there, or before it, and go on to either side. The
// geometry's weights are not used; its coil maps and voxel basis are.
//
// filter: a recon_filter; RECON_FILTER_RAM_LAK is 0.
// kspace: complex [samples, coils, frames], read. image: complex [nx, ny, images, frames], written.
//
// Errors: as recon_grid; RECON_UNKNOWN_VALUE; RECON_UNSUPPORTED in 3D and for a list of voxels; RECON_INVALID_ARGUMENT
// for samples that are not such spokes, with the sample or spoke, and where spokes leave a sector of k-space
// unmeasured.
recon_status recon_fbp(const recon_plan *plan, uint32_t filter, const void *kspace, void *image);

// Density weights for the plan's trajectory, the volume of k-space that each sample stands for.
//
// method: a recon_density_method.
// iterations, tolerance: of RECON_DENSITY_PIPE_MENON only: stop after so many iterations, or when the RMS over the
// samples of C w - 1 changes by less than the tolerance. 0 iterations means 30 and a tolerance of 1e-3.
// weights: real [samples], written; to be given to recon_plan_set_weights or a new plan, or used by the caller.
//
// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_VALUE; RECON_INVALID_ARGUMENT for a negative tolerance, for a trajectory
// that RECON_DENSITY_RAMP is not for, and where no sample lies near the centre of k-space; RECON_OUT_OF_HOST_MEMORY.
recon_status recon_density(const recon_plan *plan,
                           uint32_t method,
                           uint64_t iterations,
                           double tolerance,
                           void *weights);

// Coil sensitivities estimated from the data's own centre of k-space: in each voxel the dominant eigenvector of the
// coils' covariance in a neighbourhood (Walsh et al. 2000), scaled to sum_c |S_c|^2 = 1; frames are averaged.
//
// Maps are 0 in voxels where the signal of all coils at low resolution is below 1 % of its largest: there is no
// object.
//
// It is an estimate. Its phase is that of a virtual coil, not that of the object. It is wrong where sensitivities
// change faster than the central samples resolve, and where the object is larger than the field of view: measure the
// maps then, and give them to the plan. Maps are also 0 in the corners of the field of view if samples of spokes or
// turns of a spiral are about 1/FOV apart: aliases of the object lie there. If gaps between samples narrow the centre
// below 24 samples, or bring aliases into the field of view, recon_last_warning returns RECON_WARNING_CALIBRATION.
//
// kspace: complex [samples, coils, frames], read.
// calibration: the width of that centre in samples of a Cartesian scan; 0 for 24, and in a plane up to 48 if k-space
// is sampled without gaps so far out. A wider one resolves more, with more noise.
// maps: complex [nx, ny, nz, coils], written; to be given to a new plan.
//
// Errors: as recon_fhd; RECON_UNSUPPORTED for a voxel list; RECON_INVALID_ARGUMENT when no sample lies in the centre,
// if samples are missing from the central 8 (of a Cartesian scan of every second line: estimate maps by a plan over
// its calibration lines), and for a centre wider than k-space (twice the image's largest size).
recon_status recon_coil_maps(const recon_plan *plan, const void *kspace, uint64_t calibration, void *maps);

// Combines the images of coils into one, for each frame. Of the geometry, precision, dims (or the voxel list's
// length), coils and frames are used.
//
// method: a recon_combine_method.
// coil_images: complex [nx, ny, nz, coils, frames], read. image: complex [nx, ny, nz, frames], written.
//
// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_INVALID_SIZE,
// RECON_SIZE_OVERFLOW; RECON_INVALID_ARGUMENT when the arrays overlap; RECON_NOT_FINITE with the voxel's index;
// RECON_UNSUPPORTED for a voxel list with RECON_COMBINE_ADAPTIVE; RECON_OUT_OF_HOST_MEMORY.
recon_status recon_combine(const recon_geometry *geometry, uint32_t method, const void *coil_images, void *image);

// Brings images to a different matrix and field of view: from the encoded matrix, on which they are reconstructed,
// to the requested one. If the new voxels have a different size, the image is interpolated by Fourier to exactly
// that size. The field of view need not contain a whole number of new voxels. Then the middle is cut out, or
// surrounded by zeros. The voxel with index floor(n/2) stays where it is, and the object keeps its scale. Of the
// geometry, precision, ndim, dims, coils and frames are used.
//
// fov: [ndim], the field of view that dims cover, in any unit. dims: [ndim], the matrix wanted. dims_fov: [ndim], the
// field of view that it covers, in that unit. Along an axis where one of these is 0 or less, all voxels have one size;
// both may be NULL, for all axes.
// images: complex [nx, ny, nz, coils, frames], read. resized: complex [dims, coils, frames], written.
//
// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE; RECON_INVALID_SIZE for a size of 0;
// RECON_SIZE_OVERFLOW; RECON_INVALID_ARGUMENT when the arrays overlap; RECON_NOT_FINITE with the voxel's index;
// RECON_UNSUPPORTED for a voxel list; RECON_OUT_OF_HOST_MEMORY.
recon_status recon_resize(const recon_geometry *geometry,
                          const double *fov,
                          const uint64_t *dims,
                          const double *dims_fov,
                          const void *images,
                          void *resized);

// A fully sampled Cartesian grid: k = (index - floor(n/2)) / n on each axis, x fastest.
//
// precision: a recon_precision, that of the coordinates; so for every generator.
// ndim: 1 to 3. dims: [ndim].
// kx, ky, kz: real [product of dims] each, written; those beyond ndim may be NULL.
//
// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_VALUE; RECON_INVALID_SIZE for zero; RECON_SIZE_OVERFLOW;
// RECON_INVALID_ARGUMENT when arrays overlap; RECON_OUT_OF_HOST_MEMORY; so for every generator.
recon_status recon_trajectory_cartesian(uint32_t precision,
                                        uint32_t ndim,
                                        const uint64_t *dims,
                                        void *kx,
                                        void *ky,
                                        void *kz);

// 2D spokes through the centre: sample j of a spoke at the signed radius (j - floor(samples/2)) / samples.
//
// order: a recon_spoke_order. kx, ky: real [samples, spokes] each, written.
recon_status recon_trajectory_radial2d(uint32_t precision,
                                       uint64_t spokes,
                                       uint64_t samples,
                                       uint32_t order,
                                       void *kx,
                                       void *ky);

// A stack of stars: the spokes of recon_trajectory_radial2d, the same in each partition; partition q lies at
// kz = (q - floor(partitions/2)) / partitions.
//
// order: a recon_spoke_order. kx, ky, kz: real [samples, spokes, partitions] each, written.
recon_status recon_trajectory_stack_of_stars(uint32_t precision,
                                             uint64_t spokes,
                                             uint64_t samples,
                                             uint64_t partitions,
                                             uint32_t order,
                                             void *kx,
                                             void *ky,
                                             void *kz);

// 3D spokes through the centre, evenly spread over the sphere by a spiral from pole to equator.
//
// kx, ky, kz: real [samples, spokes] each, written.
recon_status recon_trajectory_radial3d(uint32_t precision,
                                       uint64_t spokes,
                                       uint64_t samples,
                                       void *kx,
                                       void *ky,
                                       void *kz);

// 2D spirals from the centre outwards: sample j at the radius 0.5 u^density and the angle
// 2 pi (turns u + p / interleaves), u = j / samples, p the interleaf.
//
// turns: of an interleaf. density: 1 for the Archimedean spiral, more for a centre sampled more densely.
// kx, ky: real [samples, interleaves] each, written.
//
// Errors: also RECON_INVALID_ARGUMENT unless turns and density are positive and finite.
recon_status recon_trajectory_spiral(uint32_t precision,
                                     uint64_t interleaves,
                                     uint64_t samples,
                                     double turns,
                                     double density,
                                     void *kx,
                                     void *ky);

// 2D rosettes: k = 0.5 sin(2 pi radial u) exp(i 2 pi angular u), u = j / samples, each shot turned by a golden angle.
//
// radial, angular: oscillations and turns of a shot. kx, ky: real [samples, shots] each, written.
//
// Errors: also RECON_INVALID_ARGUMENT unless both are positive and finite.
recon_status recon_trajectory_rosette(uint32_t precision,
                                      uint64_t shots,
                                      uint64_t samples,
                                      double radial,
                                      double angular,
                                      void *kx,
                                      void *ky);

// PROPELLER blades: strips of parallel lines, 1 / samples apart, turned about the centre.
//
// kx, ky: real [samples, lines, blades] each, written.
//
// Errors: also RECON_INVALID_ARGUMENT when 2 lines > samples, a blade wider than half of k-space.
recon_status recon_trajectory_propeller(uint32_t precision,
                                        uint64_t blades,
                                        uint64_t lines,
                                        uint64_t samples,
                                        void *kx,
                                        void *ky);

// The k-space of a phantom of ellipses (2D) or ellipsoids (3D), from its analytic Fourier transform. Of the geometry,
// precision, dims, samples, coordinates, coils and frames are used; all frames are alike.
//
// Where the geometry has field_map or decay_map, with times, the k-space has off-resonance and decay: direct sums over
// small boxes of the phantom, 4 a voxel and axis in 2D and 2 in 3D, with maps interpolated linearly between voxels, on
// the CPU. They take a time of samples times boxes. Their relative l2 error is below 1e-3.
//
// shapes: double [10, shape_count]: density, centre x y z, semi-axes, Euler angles phi theta psi in radians (turned by
// Rz(phi) Ry(theta) Rz(psi)) of each; [-1, 1] spans the field of view. NULL and 0 for the head of Shepp and Logan,
// with raised contrast.
// coil_model: a recon_coil_model; RECON_COILS_UNIFORM is for one coil.
// threads: the most to use; 0 for as many as the machine runs at once. The result does not depend on it.
// kspace: complex [samples, coils, frames], written, in units of density times voxels.
//
// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_INVALID_SIZE,
// RECON_SIZE_OVERFLOW; RECON_SIZE_MISMATCH for several uniform coils; RECON_NOT_FINITE with the index;
// RECON_INVALID_ARGUMENT for a shape that makes no sense, for maps without times or times without maps, and for a
// phantom that reaches out of the maps; RECON_UNSUPPORTED for maps of a list of voxels;
// RECON_COORDINATE_OUT_OF_RANGE with maps; RECON_OUT_OF_HOST_MEMORY.
recon_status recon_phantom_kspace(const recon_geometry *geometry,
                                  const double *shapes,
                                  uint64_t shape_count,
                                  uint32_t coil_model,
                                  uint32_t threads,
                                  void *kspace);

// The image of a phantom. Of the geometry, precision and dims are used.
//
// shapes, shape_count: as for recon_phantom_kspace.
// supersample: points a voxel and axis over which the density is averaged; 1 takes it at the voxel's centre.
// image: complex [nx, ny, nz], written, with imaginary parts of 0.
//
// Errors: as recon_phantom_kspace; RECON_INVALID_SIZE for a supersample of 0.
recon_status recon_phantom_image(const recon_geometry *geometry,
                                 const double *shapes,
                                 uint64_t shape_count,
                                 uint64_t supersample,
                                 void *image);

// The sensitivities of RECON_COILS_RING. Of the geometry, precision, dims and coils are used.
//
// maps: complex [nx, ny, nz, coils], written.
//
// Errors: as recon_phantom_kspace.
recon_status recon_phantom_coil_maps(const recon_geometry *geometry, void *maps);

// Adds complex white Gaussian noise to data, the same for the same seed on every platform. Of the geometry, precision,
// samples, coils and frames are used.
//
// snr: root mean square magnitude of the data, all coils together, over that of the noise; not in dB.
// kspace: complex [samples, coils, frames], read and written.
// deviation: receives the noise's root mean square magnitude. Or NULL.
//
// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_INVALID_SIZE, RECON_SIZE_OVERFLOW; RECON_NOT_FINITE
// with the index; RECON_INVALID_ARGUMENT for an snr that is not positive and finite, or for data of zeros.
recon_status recon_add_noise(const recon_geometry *geometry,
                             double snr,
                             uint64_t seed,
                             void *kspace,
                             double *deviation);

// How far an image is from the truth. Of the geometry, precision and dims (or the voxel list's length) are used.
//
// image, truth: complex [nx, ny, nz], read.
// mask: [nx, ny, nz] bytes; voxels where it is 0 are left out. Or NULL: all count.
// part: a recon_part. scale: a recon_scale.
// quality: written.
//
// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE; RECON_INVALID_SIZE when no voxel is left
// to compare; RECON_SIZE_OVERFLOW; RECON_NOT_FINITE with the index; RECON_INVALID_ARGUMENT for a truth of zeros.
recon_status recon_metrics(const recon_geometry *geometry,
                           const void *image,
                           const void *truth,
                           const uint8_t *mask,
                           uint32_t part,
                           uint32_t scale,
                           recon_quality *quality);

// Tells what an acquisition is used for, from its ISMRMRD flags. The program and the gadgets decide by it.
//
// Image data are everything without one of the flags below. Acquisitions for parallel imaging are for calibration, or
// for calibration and image (IS_PARALLEL_CALIBRATION_AND_IMAGING). Noise measurements are noise and nothing else.
// Navigators, phase correction, feedback, dummies, surface coil correction and phase stabilisation are not used,
// whatever other flags they have.
//
// ismrmrd_flags: `flags` of the ISMRMRD acquisition header.
// use: written: the sum of the recon_acquisition_purpose that apply; 0 for an acquisition that is not used.
//
// Errors: RECON_NULL_POINTER.
recon_status recon_acquisition_use(uint64_t ismrmrd_flags, uint32_t *use);

// Returns the use of an acquisition in words, from its ISMRMRD flags: "image", "calibration", "image and calibration",
// "noise", or the kind of data that is not used ("navigation", "phase correction", ...). Never NULL; not to be freed.
const char *recon_acquisition_use_name(uint64_t ismrmrd_flags);

// The covariance of coils' noise, from samples without signal: the mean of n_a conj(n_b), in the samples of the scan.
//
// precision: a recon_precision, of noise.
// noise: complex [samples, coils], read. 400 samples a coil give an error of about 10 %; with fewer the log has a
// warning.
// noise_dwell, dwell: the time from one sample of noise to the next, and that of the scan, in the same unit
// (sample_time_us of ISMRMRD): noise sampled slower has less variance than the scan's. 0 and 0: they are equal.
// receiver_bandwidth: the receiver's noise bandwidth over its sampling bandwidth, in (0, 1]
// (relativeReceiverNoiseBandwidth of ISMRMRD); 0 for 1.
// covariance: complex double [coils, coils], a running fastest, written.
//
// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_VALUE, RECON_SIZE_OVERFLOW; RECON_INVALID_SIZE for fewer samples than
// coils; RECON_NOT_FINITE with the index, also for variances that overflow; RECON_INVALID_ARGUMENT for times and
// bandwidths that make no sense, or whose ratio overflows;
// RECON_OUT_OF_HOST_MEMORY.
recon_status recon_noise_covariance(uint32_t precision,
                                    const void *noise,
                                    uint64_t samples,
                                    uint64_t coils,
                                    double noise_dwell,
                                    double dwell,
                                    double receiver_bandwidth,
                                    void *covariance);

// The matrix M that whitens noise: M covariance M^H = 1, so that the noise of all virtual coils is independent and of
// variance 1 (the mean of |n|^2). It is the inverse of the covariance's Cholesky factor. Data, and the coil maps if
// they were not estimated from whitened data, are mapped by recon_virtual_coils.
//
// covariance: complex double [coils, coils], of recon_noise_covariance or known, read.
// matrix: complex double [coils, coils], the virtual coil running fastest, written.
//
// Errors: RECON_NULL_POINTER, RECON_SIZE_OVERFLOW, RECON_INVALID_SIZE; RECON_NOT_FINITE with the index;
// RECON_INVALID_ARGUMENT for a matrix that is not Hermitian, and for one that is singular, with the coil;
// RECON_OUT_OF_HOST_MEMORY.
recon_status recon_whitening(const void *covariance, uint64_t coils, void *matrix);

// The matrix that makes fewer virtual coils, which hold most of the data's energy: their principal components, the
// strongest first (Buehrer et al. 2007). Whiten data before. Where they hold less than 95 % the log has a warning.
// Data, and the coil maps if they were not estimated from the virtual coils' data, are mapped by recon_virtual_coils.
//
// precision: a recon_precision, of data.
// data: complex [samples, coils, frames], read.
// keep: how many virtual coils; 0: the fewest that hold the part `energy` of the energy, in (0, 1].
// energy: 0 where keep is given.
// matrix: complex double [kept, coils], the virtual coil running fastest, written; with room for [coils, coils] where
// keep is 0. What is behind kept times coils entries stays as it was.
// kept: receives the number of virtual coils.
// energies: double [coils], written: the part of the energy that each virtual coil has, also those that are not kept.
// Or NULL.
//
// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_VALUE, RECON_SIZE_OVERFLOW; RECON_INVALID_SIZE for no coils or samples,
// and for more virtual coils than coils; RECON_NOT_FINITE with the index, also for an energy that overflows;
// RECON_INVALID_ARGUMENT for both or none of keep and energy, for an energy outside (0, 1], and if all data are 0;
// RECON_OUT_OF_HOST_MEMORY.
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

// The virtual coils that a matrix makes of coils: y_v = sum_c M(v, c) x_c, for k-space, coil images and maps alike
// (then "samples" are voxels).
//
// matrix: complex double [virtual_coils, coils], the virtual coil running fastest, read.
// precision: a recon_precision, of from and to.
// from: complex [samples, coils, frames], read. to: complex [samples, virtual_coils, frames], written.
//
// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_VALUE, RECON_SIZE_OVERFLOW; RECON_INVALID_SIZE and RECON_SIZE_MISMATCH for
// sizes of 0; RECON_INVALID_ARGUMENT when the arrays overlap; RECON_NOT_FINITE with the index;
// RECON_OUT_OF_HOST_MEMORY.
recon_status recon_virtual_coils(const void *matrix,
                                 uint64_t virtual_coils,
                                 uint64_t coils,
                                 uint32_t precision,
                                 const void *from,
                                 uint64_t samples,
                                 uint64_t frames,
                                 void *to);

// The field map of gradient-echo images: off-resonance f in Hz, with the sign of the model, in which the signal at
// time t is multiplied by exp(-i 2 pi f t). From the phase that grows from echo to echo, whatever
// the coils' phases; from three echoes on by a weighted fit. Where the phase wraps it is unwrapped along neighbours,
// and recon_last_warning tells it (RECON_WARNING_WRAPS). The map is smoothed by weights, which fills voxels without
// signal.
//
// Each connected piece of the object may be off by a multiple of the report's period, 1 / spacing of evenly spaced
// echoes, which changes no phase. The multiple with the median nearest 0 Hz is taken: an object at 450 Hz, measured
// by echoes 2.5 ms apart, comes out at 50 Hz. If the median of a piece is close to half a period, recon_last_warning
// names both values.
//
// precision: a recon_precision, of all arrays but echo_times.
// ndim: 2 or 3. dims: voxels along x, y and, with ndim 3, z: [ndim], read.
// coils: of the images, which are not combined; or 1.
// echoes: 2 or more. echo_times: in seconds, increasing, [echoes] doubles, read. Only their differences matter.
// images: complex [nx, ny, nz, coils, echoes], read.
// options: may be NULL for the defaults.
// field_map: [nx, ny, nz] reals, written: Hz.
// decay_map: [nx, ny, nz] reals, written: R2* in 1/s from the magnitudes, none negative. Or NULL.
// report: may be NULL.
//
// Errors: RECON_NULL_POINTER, RECON_UNKNOWN_STRUCT_SIZE, RECON_UNKNOWN_VALUE, RECON_SIZE_OVERFLOW; RECON_INVALID_SIZE
// for sizes of 0, another ndim and fewer than two echoes; RECON_NOT_FINITE with the index; RECON_INVALID_ARGUMENT for
// echo times that do not increase or are beyond 1 s (milliseconds), for images that are real or without signal, and
// for options without sense; RECON_OUT_OF_HOST_MEMORY; RECON_CANCELLED by an interrupt callback in the options.
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

// The image of PROPELLER data in 2D (Pipe 1999) without the motion between blades, which is found from the centre of
// k-space that each of them measures: phase, rotation up to 45 degrees, translation. What is corrected is then gridded
// as by recon_grid, with blades that disagree with the others weighted less; or the report takes it, for recon_cg.
//
// Blades are recognised from the trajectory: samples in the order of acquisition, lines of as many samples each, all
// in one direction or in alternating directions, parallel and evenly spaced within a blade. Voxels are taken to be
// square. The geometry's weights are not used; its coil maps are, but with RECON_BLADE_PHASE_SMOOTH, which takes the
// coils' phases from the data. Several coils are taken to move with the object. Each frame is corrected on its own.
//
// options: may be NULL for the defaults. memory_limit counts the gridding only; recon_propeller_memory estimates all
// bytes. device is that of the gridding; arrays are in the host's memory.
// propeller: may be NULL for the defaults.
// kspace: complex [samples, coils, frames], read.
// image: complex [nx, ny, images, frames], written, at the scale of the object. Or NULL: motion is found only.
// report: may be NULL.
//
// A blade that has lost lines is left out: its samples have weight 0, and its motion, correlation and weight are 0.
//
// recon_last_warning returns a warning if blades do not agree, are incomplete, or are moved by more than a quarter
// of the field of view (RECON_WARNING_BLADES).
//
// Errors: as recon_plan_create and recon_grid; RECON_UNSUPPORTED in 3D, for a list of voxels, for pointers_on_device,
// and for coil maps with RECON_BLADE_PHASE_SMOOTH; RECON_INVALID_ARGUMENT for a trajectory that is not of blades, or
// of which fewer than half of the blades, or fewer than two, are complete, with the blade, and where image and report
// are NULL; RECON_SIZE_MISMATCH when motion has too little room.
recon_status recon_propeller(const recon_geometry *geometry,
                             const recon_options *options,
                             const recon_propeller_options *propeller,
                             const void *kspace,
                             void *image,
                             recon_propeller_report *report);

// Estimates the bytes of host memory that recon_propeller takes at its peak, before it is called: an upper estimate.
// The caller's arrays are not counted, nor is the memory of a GPU.
//
// geometry: its sizes and coordinates are read, and whether coil_maps is NULL. Other arrays are not read.
// options, propeller: as for recon_propeller, or NULL.
// host_bytes: number of bytes, written.
//
// Errors: as recon_propeller for the geometry and the options; RECON_NULL_POINTER.
recon_status recon_propeller_memory(const recon_geometry *geometry,
                                    const recon_options *options,
                                    const recon_propeller_options *propeller,
                                    uint64_t *host_bytes);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RECON_H */
