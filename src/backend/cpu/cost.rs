//! The time of transforms on a CPU, for the choice between methods. The constants may be fitted again: results change
//! only if the choice of window or method changes.

use crate::backend::call_size::CallSize;
use crate::base::fft_size::next_fast_size;

/// Estimates the nanoseconds of an adjoint on one thread, with reals of `real` bytes.
///
/// The constants were fitted to 333 random cases on 2 Intel threads with AVX-512, in 2D and 3D, f32 and f64. Each had
/// all pairs of width and oversampling (1.25 to 2.5) that meet its tolerance. In the mean, transforms at the cheapest
/// pair take 1.3 % longer than at the fastest one, and at most 24 %. (examples/stages.rs measures the stages.) The
/// ratio of gridding to FFT is similar on AMD (Zen 4). Only ratios matter, and they vary less between machines than
/// times do.
pub fn transform(grid: &[usize], dims: &[usize], samples: usize, width: usize, real: usize) -> f64 {
    // Time per sample at any width, per vector of a window's row, and per grid cell for the addition of tiles.
    const SAMPLE: f64 = 5.7;
    const VECTOR: f64 = 0.4;
    const CELL: f64 = 1.6;
    let vectors = (width * 2 * real).div_ceil(64) as f64;
    let rows = (width as f64).powi(grid.len() as i32 - 1);
    let cells: f64 = grid.iter().map(|&g| g as f64).product();
    let size = real as f64 / 4.0;
    samples as f64 * (SAMPLE * size + VECTOR * rows * vectors) + CELL * size * cells + fft_cost(grid, dims, real)
}

/// Estimates the nanoseconds of a convolution with Q on one thread, with reals of `real` bytes.
pub fn convolution(dims: &[usize], real: usize) -> f64 {
    // Lines stay in cache between y and z, unlike those of a transform. Measured on AMD (Zen 4) and Intel with 128^3
    // voxels: 0.7 to 0.9 of the time of a forward and an adjoint transform at a tolerance of 1e-4.
    const IN_CACHE: f64 = 0.8;
    // An array rather than a vector, because every iteration of conjugate gradients calls this function.
    let mut doubled = [1; 3];
    doubled.iter_mut().zip(dims).for_each(|(d, &n)| *d = next_fast_size(2 * n));
    2.0 * IN_CACHE * fft_cost(&doubled[..dims.len()], dims, real)
}

/// Estimates the nanoseconds of a pruned transform: a constant per point of each transformed line, for any length.
fn fft_cost(grid: &[usize], dims: &[usize], real: usize) -> f64 {
    const POINT: f64 = 0.77;
    let mut points = 0.0;
    let mut padded = 1.0;
    for axis in 0..grid.len() {
        // Axes before this one are already padded; axes after it still have image size.
        padded *= grid[axis] as f64;
        points += padded * dims[axis + 1..].iter().map(|&n| n as f64).product::<f64>();
    }
    POINT * real as f64 / 4.0 * points
}

/// Estimates the nanoseconds of a plan and one transform on this number of threads.
///
/// The constants were fitted to 154 random cases on 2 and 16 Intel cores with AVX-512, in 2D and 3D, f32 and f64, with
/// 1 to 16 coils. Eight in ten times are 0.7 to 1.5 times the estimates, all are 0.5 to 2.8 times.
pub fn call(size: &CallSize, threads: usize) -> f64 {
    // Time that does not depend on sizes: on one thread, and for each doubling of the number of threads.
    const CALL: f64 = 145_000.0;
    const TEAM: f64 = 40_000.0;
    // Nanoseconds per coordinate for checking and sorting in single precision.
    const SORTED: f64 = 7.0;
    // Time of a transform with weights, copies and waits for memory, relative to the cost of gridding and FFT.
    const TRANSFORM: f64 = 1.9;
    // Nanoseconds per pair of a sample and a voxel in exact sums in single precision: to a grid, and to a list.
    const PAIR: f64 = 0.045;
    const LISTED_PAIR: f64 = 0.42;
    // Part of the time that threads do not shorten.
    const SERIAL: f64 = 0.029;
    let (sorted, transform) = if size.exact {
        let pair = if size.is_list { LISTED_PAIR } else { PAIR };
        (0.0, pair * size.pairs() * size.real as f64 / 4.0)
    } else {
        let one = transform(&size.grid, &size.dims, size.samples, size.width, size.real);
        (SORTED * size.coordinate_words(), TRANSFORM * one)
    };
    let threads = threads.max(1) as f64;
    let share = SERIAL + (1.0 - SERIAL) / threads;
    CALL + TEAM * threads.log2() + share * (sorted + size.transforms * transform)
}
