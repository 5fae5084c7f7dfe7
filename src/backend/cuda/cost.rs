//! What transforms cost on a GPU, in nanoseconds of one like an H200: only ratios matter here.

use crate::window::next_fast_size;

/// Nanoseconds that a launch takes, however small.
const LAUNCH: f64 = 4000.0;
/// Nanoseconds a byte that the FFT moves.
const BYTE: f64 = 0.35e-3;

/// An adjoint on an oversampled grid.
pub fn transform(grid: &[usize], dims: &[usize], samples: usize, width: usize, real: usize) -> f64 {
    // A sample for each tile that its window touches, tiles being 8 x 4 x 8 cells.
    const PAIR: f64 = 0.045;
    const CELL: f64 = 0.004;
    let tile = [8.0, 4.0, 8.0];
    let pairs: f64 = grid.iter().zip(tile).map(|(_, t)| (t + width as f64 - 1.0) / t).product();
    let cells: f64 = grid.iter().map(|&g| g as f64).product();
    let size = real as f64 / 4.0;
    3.0 * LAUNCH + size * (samples as f64 * PAIR * pairs + CELL * cells) + fft(grid, dims, real)
}

/// A convolution with Q.
pub fn convolution(dims: &[usize], real: usize) -> f64 {
    let mut doubled = [1; 3];
    doubled.iter_mut().zip(dims).for_each(|(d, &n)| *d = next_fast_size(2 * n));
    let spectrum = doubled.iter().map(|&d| d as f64).product::<f64>() * real as f64;
    BYTE * spectrum + 2.0 * fft(&doubled[..dims.len()], dims, real)
}

/// A pruned transform: each pass reads and writes what it must.
fn fft(grid: &[usize], dims: &[usize], real: usize) -> f64 {
    let mut nanoseconds = 0.0;
    for axis in 0..grid.len() {
        // Axes before this one are padded, those after it still have image size.
        let before: f64 = grid[..axis].iter().map(|&g| g as f64).product();
        let after: f64 = dims[axis + 1..].iter().map(|&n| n as f64).product();
        nanoseconds += LAUNCH + BYTE * 2.0 * real as f64 * before * after * (grid[axis] + dims[axis]) as f64;
    }
    nanoseconds
}
