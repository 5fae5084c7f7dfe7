//! Cost model of transforms on a GPU, in nanoseconds of an H200. Only ratios matter here, and those vary less between
//! GPUs.

use super::runtime::Properties;
use crate::backend::call_size::CallSize;
use crate::base::fft_size::next_fast_size;

/// Largest oversampling to choose. The costs were measured up to it. With 2.5, the choice changed for 33 of 167 random
/// shapes on an H200: their adjoints took 0.89 of the time in the mean, but up to 1.17, and forward transforms 0.93 and
/// 1.26. The usual 2D scan of 8 or 32 coils became slower, and a plan of 168 million samples too.
pub const LARGEST_OVERSAMPLING: f64 = 2.0;
/// Minimum time of a launch in nanoseconds.
const LAUNCH: f64 = 3000.0;
/// Nanoseconds per byte that the FFT moves: measured 0.26e-3 to 0.33e-3 from 160^3 to 320^3.
const BYTE: f64 = 0.28e-3;
/// The same for grids of at most this number of bytes, which stay in the level-2 cache: half of it on data-centre GPUs.
const CACHED_BYTE: f64 = 0.14e-3;
const CACHED: f64 = 25e6;

/// Returns the cost of a transform on an oversampled grid: the mean of an adjoint and a forward transform.
///
/// 31 sets of points were measured on an H200, each with three to six grids and windows. The cheapest by this function
/// take 1.4 % longer than the fastest in the mean, and at most 15 %.
pub fn transform(grid: &[usize], dims: &[usize], samples: usize, width: usize, real: usize) -> f64 {
    // Nanoseconds per pair of a sample and a tile that its window touches, and per cell without its FFT. The kernels
    // for 3D in single precision are the fastest.
    let size = real as f64 / 4.0;
    let (pair, cell) = if grid.len() == 3 && real == 4 { (0.025, 0.004) } else { (0.04 * size, 0.002 * size) };
    let tile: &[f64] = if grid.len() == 2 { &[32.0, 16.0] } else { &[8.0, 4.0, 16.0] };
    let pairs: f64 = tile.iter().map(|t| (t + width as f64 - 1.0) / t).product();
    let cells: f64 = grid.iter().map(|&g| g as f64).product();
    let of_samples = samples as f64 * pair * pairs + cell * cells;
    3.0 * LAUNCH + of_samples + passes(grid, dims, real).iter().sum::<f64>()
}

/// Returns the cost of a convolution with Q. In 3D, z is transformed first. The last axis, y, is padded, transformed,
/// multiplied, transformed back and cropped in one pass.
pub fn convolution(dims: &[usize], real: usize) -> f64 {
    let mut dims = dims.to_vec();
    if dims.len() == 3 {
        dims.rotate_right(1);
    }
    let doubled: Vec<usize> = dims.iter().map(|&n| next_fast_size(2 * n)).collect();
    let last = dims.len() - 1;
    let points: f64 = doubled.iter().map(|&d| d as f64).product();
    let lines = points / doubled[last] as f64;
    let fused = LAUNCH + byte_cost(points, real) * real as f64 * (points + 4.0 * lines * dims[last] as f64);
    2.0 * passes(&doubled, &dims, real)[..last].iter().sum::<f64>() + fused
}

/// Returns the nanoseconds per byte that is moved for a grid of this number of points.
fn byte_cost(points: f64, real: usize) -> f64 {
    if 2.0 * real as f64 * points <= CACHED {
        CACHED_BYTE
    } else {
        BYTE
    }
}

/// Returns the cost of each pass of a pruned transform, by the bytes that it reads and writes.
fn passes(grid: &[usize], dims: &[usize], real: usize) -> [f64; 3] {
    let mut nanoseconds = [0.0; 3];
    let byte = byte_cost(grid.iter().map(|&g| g as f64).product(), real);
    for axis in 0..grid.len() {
        // Axes before this one are padded, later axes still have image size.
        let before: f64 = grid[..axis].iter().map(|&g| g as f64).product();
        let after: f64 = dims[axis + 1..].iter().map(|&n| n as f64).product();
        nanoseconds[axis] = LAUNCH + byte * 2.0 * real as f64 * before * after * (grid[axis] + dims[axis]) as f64;
    }
    nanoseconds
}

/// Number of multiprocessors of the GPU of the constants.
const MULTIPROCESSORS: f64 = 132.0;

/// Estimates the nanoseconds of a plan and one transform with arrays in host memory, without the start of CUDA.
///
/// The constants were fitted to the 154 random cases of the estimate for the CPU, on an H200. The time that does not
/// depend on sizes was fitted again to 89 others, after plans had become faster. Eight in ten of these are 0.7 to 1.4
/// times the estimates, all are 0.6 to 1.7 times.
pub fn call(size: &CallSize, gpu: &Properties) -> f64 {
    // Launches and waits.
    const CALL: f64 = 340_000.0;
    // Nanoseconds per coordinate for checking and sorting in single precision, and per byte copied from or to the host.
    const SORTED: f64 = 0.25;
    const COPIED: f64 = 0.06;
    // Time of a transform of several coils per coil, as a part of the time of a single transform.
    const TRANSFORM: f64 = 1.0;
    // Nanoseconds per pair of a sample and a voxel in exact sums: to a grid, and to a list.
    const PAIR: f64 = 3.3e-5;
    const LISTED_PAIR: f64 = 4.3e-4;
    let speed = MULTIPROCESSORS / f64::from(gpu.multiprocessors.max(1));
    let is_double = size.real == 8;
    // Double precision is half as fast as single precision on data-centre GPUs, and 32 times slower on others.
    let double = match gpu.capability {
        _ if !is_double => 1.0,
        (8, 0) | (9 | 10, _) => 2.0,
        _ => 32.0,
    };
    let (sorted, transform) = if size.exact {
        (0.0, size.pairs() * double * if size.is_list { LISTED_PAIR } else { PAIR })
    } else {
        // The cost of a transform already has the bytes of double precision.
        let of_double = if is_double { double / 2.0 } else { 1.0 };
        let one = transform(&size.grid, &size.dims, size.samples, size.width, size.real);
        (SORTED * size.coordinate_words(), TRANSFORM * of_double * one)
    };
    let copied = COPIED * (size.geometry_bytes + size.data_bytes);
    CALL + copied + speed * (sorted + size.transforms * transform)
}
