//! Pruned multi-dimensional FFTs: between an oversampled grid and an image, and the convolution on the doubled grid.
//!
//! An axis at a time; lines that stay zero are never transformed on the way up, lines that nobody reads never on the way
//! down. Image index i of n stands for r = i - floor(n/2) and for grid index r mod G: two runs of cells.

use super::threads::{Shared, Threads};
use crate::error::{checked_product, try_vec, Result};
use crate::pool::Pool;
use crate::real::Real;
use num_complex::Complex;
use rustfft::{Fft, FftDirection, FftPlanner};
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Columns that are gathered and transformed together: a cache line or more of each row.
const COLUMNS: usize = 16;

/// So many planes are shared among threads as they are; fewer are cut into rows and columns.
const MANY_PLANES: usize = 16;

/// One axis: `n` image cells inside `grid` grid cells.
struct Axis<T> {
    n: usize,
    grid: usize,
    /// Image cell i stands for r = i - floor(n/2) instead of r = i.
    centred: bool,
    /// Factors of the image's cells.
    correction: Vec<T>,
    up: Arc<dyn Fft<T>>,
    down: Arc<dyn Fft<T>>,
}

impl<T: Real> Axis<T> {
    fn new(planner: &mut FftPlanner<T>, n: usize, grid: usize, correction: Option<&[f64]>) -> Self {
        Axis {
            n,
            grid,
            centred: correction.is_some(),
            correction: correction.map_or(vec![T::ONE; n], |c| c.iter().map(|&c| T::of(c)).collect()),
            up: planner.plan_fft(grid, FftDirection::Forward),
            down: planner.plan_fft(grid, FftDirection::Inverse),
        }
    }

    /// Image cells and the grid cells they are: the run of r < 0, and that of r >= 0.
    fn runs(&self) -> [(Range<usize>, Range<usize>); 2] {
        let half = if self.centred { self.n / 2 } else { 0 };
        [(0..half, self.grid - half..self.grid), (half..self.n, 0..self.n - half)]
    }

    /// Transforms a line of the grid, and takes the image's cells from it.
    fn line_down(&self, line: &mut [Complex<T>], image: &mut [Complex<T>], scratch: &mut [Complex<T>]) {
        self.down.process_with_scratch(line, scratch);
        for (to, from) in self.runs() {
            for ((i, g), c) in image[to.clone()].iter_mut().zip(&line[from]).zip(&self.correction[to]) {
                *i = *g * *c;
            }
        }
    }

    /// The other way: puts the image's cells into a line of zeros, and transforms it.
    fn line_up(&self, image: &[Complex<T>], line: &mut [Complex<T>], scratch: &mut [Complex<T>]) {
        line.fill(Complex::default());
        for (from, to) in self.runs() {
            for ((i, g), c) in image[from.clone()].iter().zip(&mut line[to]).zip(&self.correction[from]) {
                *g = *i * *c;
            }
        }
        self.up.process_with_scratch(line, scratch);
    }

    fn scratch_len(&self) -> usize {
        self.up.get_inplace_scratch_len().max(self.down.get_inplace_scratch_len())
    }
}

/// Buffers of one thread.
struct Work<T> {
    lines: Vec<Complex<T>>,
    block: Vec<Complex<T>>,
    scratch: Vec<Complex<T>>,
}

/// The transform between a grid and an image, both of up to three axes.
pub struct GridFft<T> {
    axes: [Axis<T>; 3],
    work: Pool<Work<T>>,
}

impl<T: Real> GridFft<T> {
    /// See [`crate::backend::Backend::grid_fft`].
    pub fn new(dims: &[usize], grid: &[usize], correction: &[Vec<f64>]) -> Self {
        let mut planner = FftPlanner::new();
        let axes = [0, 1, 2].map(|a| match dims.get(a) {
            Some(&n) => Axis::new(&mut planner, n, grid[a], Some(&correction[a])),
            None => Axis::new(&mut planner, 1, 1, None),
        });
        GridFft { axes, work: Pool::new() }
    }

    fn make_work(&self) -> Work<T> {
        let longest = self.axes.iter().map(|a| a.grid).max().unwrap_or(1);
        let scratch = self.axes.iter().map(|a| a.scratch_len()).max().unwrap_or(0);
        let zeros = |n| vec![Complex::default(); n];
        Work { lines: zeros(COLUMNS * longest), block: Vec::new(), scratch: zeros(scratch) }
    }

    /// See [`crate::backend::Backend::grid_to_image`].
    pub fn grid_to_image(&self, threads: &Threads, grid: &mut [Complex<T>], image: &mut [Complex<T>]) {
        let [x, y, z] = &self.axes;
        assert_eq!(grid.len(), x.grid * y.grid * z.grid);
        assert_eq!(image.len(), x.n * y.n * z.n);
        let blocks = x.grid.div_ceil(COLUMNS);
        let shared = Shared::new(grid);
        let work = || self.work.take(|| self.make_work());
        if z.grid > 1 {
            threads.run_with(y.grid * blocks, work, |work, task| {
                let (row, block) = (task / blocks, task % blocks);
                let start = row * x.grid + block * COLUMNS;
                let columns = COLUMNS.min(x.grid - block * COLUMNS);
                // SAFETY: each task has its own columns of the grid.
                unsafe { columns_down(z, &shared, start, x.grid * y.grid, columns, work) };
            });
        }
        let out = Shared::new(image);
        let column = |work: &mut Work<T>, plane: usize, block: usize| {
            let start = plane * x.grid * y.grid + block * COLUMNS;
            // SAFETY: each task has its own columns of its own plane.
            unsafe { columns_down(y, &shared, start, x.grid, COLUMNS.min(x.grid - block * COLUMNS), work) };
        };
        let row = |work: &mut Work<T>, plane: usize, row: usize| {
            // SAFETY: each task has its own row of the grid and of the image.
            let (line, image) = unsafe {
                let at = plane * y.n + row;
                (shared.part((plane * y.grid + row) * x.grid, x.grid), out.part(at * x.n, x.n))
            };
            x.line_down(line, image, &mut work.scratch);
        };
        if z.n >= MANY_PLANES {
            // A plane stays in cache between its columns and its rows.
            threads.run_with(z.n, work, |work, plane| {
                (0..blocks).for_each(|block| column(work, plane, block));
                (0..y.n).for_each(|r| row(work, plane, r));
            });
        } else {
            threads.run_with(z.n * blocks, work, |work, task| column(work, task / blocks, task % blocks));
            threads.run_with(z.n * y.n, work, |work, task| row(work, task / y.n, task % y.n));
        }
    }

    /// See [`crate::backend::Backend::image_to_grid`].
    pub fn image_to_grid(&self, threads: &Threads, image: &[Complex<T>], grid: &mut [Complex<T>]) {
        let [x, y, z] = &self.axes;
        assert_eq!(grid.len(), x.grid * y.grid * z.grid);
        assert_eq!(image.len(), x.n * y.n * z.n);
        let shared = Shared::new(grid);
        self.rows_and_columns_up(threads, &shared, |line, plane, row, work| {
            x.line_up(&image[(plane * y.n + row) * x.n..][..x.n], line, &mut work.scratch);
        });
    }

    /// The transform of a whole grid in its place (image and grid being of one size).
    fn transform(&self, threads: &Threads, grid: &mut [Complex<T>]) {
        let x = &self.axes[0];
        self.rows_and_columns_up(threads, &Shared::new(grid), |line, _, _, work| {
            x.up.process_with_scratch(line, &mut work.scratch);
        });
    }

    /// `row(line of the grid, plane, row, buffers)` for each row of the image, then the transforms along y and z.
    fn rows_and_columns_up(
        &self,
        threads: &Threads,
        grid: &Shared<'_, Complex<T>>,
        row: impl Fn(&mut [Complex<T>], usize, usize, &mut Work<T>) + Sync,
    ) {
        let [x, y, z] = &self.axes;
        let blocks = x.grid.div_ceil(COLUMNS);
        let work = || self.work.take(|| self.make_work());
        let columns = |block: usize| COLUMNS.min(x.grid - block * COLUMNS);
        let row = |work: &mut Work<T>, plane: usize, r: usize| {
            // SAFETY: each task has its own row of the grid.
            let line = unsafe { grid.part((plane * y.grid + r) * x.grid, x.grid) };
            row(line, plane, r, work);
        };
        let column = |work: &mut Work<T>, plane: usize, block: usize| {
            let start = plane * x.grid * y.grid + block * COLUMNS;
            // SAFETY: each task has its own columns of its own plane.
            unsafe { columns_up(y, grid, start, x.grid, columns(block), work) };
        };
        if z.n >= MANY_PLANES {
            threads.run_with(z.n, work, |work, plane| {
                (0..y.n).for_each(|r| row(work, plane, r));
                (0..blocks).for_each(|block| column(work, plane, block));
            });
        } else {
            threads.run_with(z.n * y.n, work, |work, task| row(work, task / y.n, task % y.n));
            threads.run_with(z.n * blocks, work, |work, task| column(work, task / blocks, task % blocks));
        }
        if z.grid > 1 {
            threads.run_with(y.grid * blocks, work, |work, task| {
                let (r, block) = (task / blocks, task % blocks);
                let start = r * x.grid + block * COLUMNS;
                // SAFETY: each task has its own columns of the grid.
                unsafe { columns_up(z, grid, start, x.grid * y.grid, columns(block), work) };
            });
        }
    }
}

/// Transforms `columns` neighbouring columns of the grid along an axis, whose cells are `stride` apart, and leaves the
/// cells of the image in the first `axis.n` rows, corrected.
///
/// # Safety
/// No other thread may use these columns meanwhile.
unsafe fn columns_down<T: Real>(
    axis: &Axis<T>,
    grid: &Shared<'_, Complex<T>>,
    start: usize,
    stride: usize,
    columns: usize,
    work: &mut Work<T>,
) {
    let g = axis.grid;
    let lines = &mut work.lines[..columns * g];
    for i in 0..g {
        // SAFETY: the caller's promise.
        let row = unsafe { grid.part(start + i * stride, columns) };
        for (c, v) in row.iter().enumerate() {
            lines[c * g + i] = *v;
        }
    }
    axis.down.process_with_scratch(lines, &mut work.scratch);
    for (to, from) in axis.runs() {
        for (i, j) in to.zip(from) {
            let factor = axis.correction[i];
            // SAFETY: the caller's promise.
            let row = unsafe { grid.part(start + i * stride, columns) };
            for (c, v) in row.iter_mut().enumerate() {
                *v = lines[c * g + j] * factor;
            }
        }
    }
}

/// The other way: takes the first `axis.n` rows, corrects them, pads them with zeros, transforms.
///
/// # Safety
/// No other thread may use these columns meanwhile.
unsafe fn columns_up<T: Real>(
    axis: &Axis<T>,
    grid: &Shared<'_, Complex<T>>,
    start: usize,
    stride: usize,
    columns: usize,
    work: &mut Work<T>,
) {
    let g = axis.grid;
    let lines = &mut work.lines[..columns * g];
    lines.fill(Complex::default());
    for (from, to) in axis.runs() {
        for (i, j) in from.zip(to) {
            let factor = axis.correction[i];
            // SAFETY: the caller's promise.
            let row = unsafe { grid.part(start + i * stride, columns) };
            for (c, v) in row.iter().enumerate() {
                lines[c * g + j] = *v * factor;
            }
        }
    }
    axis.up.process_with_scratch(lines, &mut work.scratch);
    for i in 0..g {
        // SAFETY: the caller's promise.
        let row = unsafe { grid.part(start + i * stride, columns) };
        for (c, v) in row.iter_mut().enumerate() {
            *v = lines[c * g + i];
        }
    }
}

/// Convolution of an image with a Hermitian kernel through its real spectrum on the doubled grid.
///
/// The x axis is transformed for the whole image; then, for a few columns of the spectrum at a time, y and z up, the
/// product, and z and y down again, all in one thread's buffer: the doubled grid as a whole is never stored.
pub struct Convolver<T> {
    axes: [Axis<T>; 3],
    /// [x block][y][z][column], divided by the number of grid points.
    spectrum: Vec<T>,
    work: Pool<Work<T>>,
    /// The image with its rows transformed; a second call at the same time waits for it.
    rows: Mutex<Vec<Complex<T>>>,
}

/// Columns of the spectrum that a thread works on at once: its buffer must stay in cache.
const BLOCK: usize = 4;

/// The doubled grid of an image.
fn doubled(dims: &[usize]) -> [usize; 3] {
    [0, 1, 2].map(|a| dims.get(a).map_or(1, |&n| crate::window::next_fast_size(2 * n)))
}

impl<T: Real> Convolver<T> {
    /// See [`crate::backend::Backend::convolver`].
    pub fn new(dims: &[usize]) -> Result<Self> {
        let grid = doubled(dims);
        let mut planner = FftPlanner::new();
        let axes = [0, 1, 2].map(|a| Axis::new(&mut planner, *dims.get(a).unwrap_or(&1), grid[a], None));
        let len = checked_product(&grid, "the doubled grid")?;
        let spectrum = try_vec(len, T::ZERO, "the spectrum of Q")?;
        let rows = checked_product(&[grid[0], axes[1].n, axes[2].n], "the image's transformed rows")?;
        let rows = Mutex::new(try_vec(rows, Complex::default(), "the image's transformed rows")?);
        Ok(Convolver { axes, spectrum, work: Pool::new(), rows })
    }

    /// Bytes that a convolver for images of `dims` voxels holds, its scratch included.
    pub fn bytes(dims: &[usize], threads: usize) -> usize {
        let grid = doubled(dims);
        let product = |sizes: &[usize]| sizes.iter().fold(1usize, |p, &n| p.saturating_mul(n));
        let rows = grid[0].saturating_mul(product(&dims[1..]));
        let blocks = product(&[threads, BLOCK, grid[1], grid[2]]);
        let real = std::mem::size_of::<T>();
        product(&grid).saturating_add(rows.saturating_add(blocks).saturating_mul(2)).saturating_mul(real)
    }

    fn make_work(&self) -> Work<T> {
        let [x, y, z] = &self.axes;
        let scratch = x.scratch_len().max(y.scratch_len()).max(z.scratch_len());
        let zeros = |n| vec![Complex::default(); n];
        Work {
            lines: zeros((BLOCK * y.grid.max(z.grid)).max(x.grid)),
            block: zeros(BLOCK * y.grid * z.grid),
            scratch: zeros(scratch),
        }
    }

    /// See [`crate::backend::Backend::spectrum`].
    pub fn spectrum(&self) -> &[T] {
        &self.spectrum
    }

    /// See [`crate::backend::Backend::set_spectrum`].
    pub fn set_spectrum(&mut self, spectrum: &[T]) {
        assert_eq!(spectrum.len(), self.spectrum.len());
        self.spectrum.copy_from_slice(spectrum);
    }

    /// Points of the doubled grid.
    pub fn grid_len(&self) -> usize {
        self.spectrum.len()
    }

    /// See [`crate::backend::Backend::place_kernel`].
    pub fn place_kernel(&self, half: [bool; 3], q: &[Complex<T>], grid: &mut [Complex<T>]) {
        let [x, y, z] = &self.axes;
        assert_eq!(q.len(), x.n * y.n * z.n);
        assert_eq!(grid.len(), self.grid_len());
        // Displacement -n has no partner +n, and images of n voxels never need it: it stays zero.
        let cells = |axis: usize| {
            let a = &self.axes[axis];
            (0..a.n)
                .filter(move |i| !(half[axis] && *i == 0))
                .map(move |i| if half[axis] { a.grid - a.n + i } else { i })
        };
        let skip = half.map(usize::from);
        for (iz, gz) in (skip[2]..).zip(cells(2)) {
            for (iy, gy) in (skip[1]..).zip(cells(1)) {
                let from = &q[(iz * y.n + iy) * x.n..][..x.n];
                let to = &mut grid[(gz * y.grid + gy) * x.grid..][..x.grid];
                for (ix, gx) in (skip[0]..).zip(cells(0)) {
                    to[gx] = from[ix];
                }
            }
        }
    }

    /// See [`crate::backend::Backend::set_kernel`].
    pub fn set_kernel(&mut self, threads: &Threads, grid: &mut [Complex<T>]) {
        let g = [0, 1, 2].map(|a| self.axes[a].grid);
        let mut planner = FftPlanner::new();
        let whole = GridFft { axes: g.map(|g| Axis::new(&mut planner, g, g, None)), work: Pool::new() };
        whole.transform(threads, grid);
        let scale = T::of(1.0 / grid.len() as f64);
        let mut at = 0;
        for block in (0..g[0]).step_by(BLOCK) {
            for iy in 0..g[1] {
                for iz in 0..g[2] {
                    for value in &grid[(iz * g[1] + iy) * g[0]..][block..(block + BLOCK).min(g[0])] {
                        self.spectrum[at] = value.re * scale;
                        at += 1;
                    }
                }
            }
        }
    }

    /// See [`crate::backend::Backend::convolve`].
    pub fn convolve(&self, threads: &Threads, input: &[Complex<T>], output: &mut [Complex<T>]) {
        let [x, y, z] = &self.axes;
        assert_eq!(input.len(), x.n * y.n * z.n);
        assert_eq!(output.len(), input.len());
        let mut rows = self.rows.lock().unwrap_or_else(|e| e.into_inner());
        let shared = Shared::new(&mut rows);
        let work = || self.work.take(|| self.make_work());
        threads.run_with(y.n * z.n, work, |work, row| {
            // SAFETY: each task has its own row.
            let line = unsafe { shared.part(row * x.grid, x.grid) };
            // A kernel does not care where the image lies on the grid, so no half is rotated here.
            line[..x.n].copy_from_slice(&input[row * x.n..][..x.n]);
            line[x.n..].fill(Complex::default());
            x.up.process_with_scratch(line, &mut work.scratch);
        });
        threads.run_with(x.grid.div_ceil(BLOCK), work, |work, task| {
            let first = task * BLOCK;
            let columns = BLOCK.min(x.grid - first);
            // SAFETY: each task has its own columns.
            unsafe { self.convolve_columns(&shared, first, columns, work) };
        });
        let out = Shared::new(output);
        threads.run_with(y.n * z.n, work, |work, row| {
            // SAFETY: each task has its own row.
            let (line, output) = unsafe { (shared.part(row * x.grid, x.grid), out.part(row * x.n, x.n)) };
            x.down.process_with_scratch(line, &mut work.scratch);
            output.copy_from_slice(&line[..x.n]);
        });
    }

    /// Everything between the x transforms, for some columns of the spectrum.
    ///
    /// # Safety
    /// No other thread may use these columns of `rows` meanwhile.
    unsafe fn convolve_columns(&self, rows: &Shared<'_, Complex<T>>, first: usize, columns: usize, work: &mut Work<T>) {
        let [x, y, z] = &self.axes;
        let (gy, gz) = (y.grid, z.grid);
        let zero = Complex::default();
        // The block holds, for each y of the doubled grid, `columns` lines along z.
        let block = &mut work.block[..columns * gy * gz];
        for iz in 0..z.n {
            let lines = &mut work.lines[..columns * gy];
            lines.fill(zero);
            for iy in 0..y.n {
                // SAFETY: the caller's promise.
                let row = unsafe { rows.part((iz * y.n + iy) * x.grid + first, columns) };
                for (c, v) in row.iter().enumerate() {
                    lines[c * gy + iy] = *v;
                }
            }
            y.up.process_with_scratch(lines, &mut work.scratch);
            for iy in 0..gy {
                for c in 0..columns {
                    block[(iy * columns + c) * gz + iz] = lines[c * gy + iy];
                }
            }
        }
        let spectrum = &self.spectrum[first * gy * gz..][..columns * gy * gz];
        for iy in 0..gy {
            let lines = &mut block[iy * columns * gz..][..columns * gz];
            if gz > 1 {
                for line in lines.chunks_exact_mut(gz) {
                    line[z.n..].fill(zero);
                }
                z.up.process_with_scratch(lines, &mut work.scratch);
            }
            let spectrum = &spectrum[iy * gz * columns..][..gz * columns];
            for (c, line) in lines.chunks_exact_mut(gz).enumerate() {
                for (iz, v) in line.iter_mut().enumerate() {
                    *v *= spectrum[iz * columns + c];
                }
            }
            if gz > 1 {
                z.down.process_with_scratch(lines, &mut work.scratch);
            }
        }
        for iz in 0..z.n {
            let lines = &mut work.lines[..columns * gy];
            for iy in 0..gy {
                for c in 0..columns {
                    lines[c * gy + iy] = block[(iy * columns + c) * gz + iz];
                }
            }
            y.down.process_with_scratch(lines, &mut work.scratch);
            for iy in 0..y.n {
                // SAFETY: the caller's promise.
                let row = unsafe { rows.part((iz * y.n + iy) * x.grid + first, columns) };
                for (c, v) in row.iter_mut().enumerate() {
                    *v = lines[c * gy + iy];
                }
            }
        }
    }
}
