//! Pruned multi-dimensional FFTs between an oversampled grid and an image; `lanes` has the transforms of single lines,
//! `convolver` the convolution on the doubled grid, `any_length` transforms of lines of any length.
//!
//! Axes are transformed one after the other. Lines of zeros are not transformed on the way to the grid, nor lines that
//! are cropped on the way to the image. Image index i of n stands for r = i - floor(n/2) and for grid index r mod G.
//!
//! Why not rustfft: it transforms one line at a time without pruning, so that lines would have to be gathered, and
//! zeros transformed. It is the reference in the tests. On whole rows in double precision it is faster:
//! examples/ffts.rs prints both times.

pub mod any_length;
pub mod convolver;
pub(super) mod lanes;

use super::simd::Level;
use super::thread_pool::Threads;
use crate::backend::cpu::simd::SimdReal;
use crate::base::buffer_pool::Pool;
use crate::base::error::{try_collect, Result};
use crate::base::memory::{Aligned, AlignedArena};
use crate::base::sizes::{product, sum};
use crate::base::workers::SharedSlice;
use lanes::{LaneFft, LaneTransform, LineMapping, Lines};
use num_complex::Complex;
use std::ops::Range;

/// From so many planes on threads share whole planes; fewer planes are cut into rows and columns.
const MANY_PLANES: usize = 16;
/// Tasks for each thread that make a step worth its begin and end. With fewer, several arrays take a step together;
/// with more, one array stays in cache from step to step.
const TASKS: usize = 4;

/// How many arrays take a step together, which is `tasks` tasks for one of them.
fn arrays_per_step(threads: usize, tasks: usize) -> usize {
    match threads {
        1 => 1,
        threads => (TASKS * threads).div_ceil(tasks.max(1)),
    }
}

/// One axis: `n` image cells inside `grid` grid cells.
struct FftAxis<T> {
    n: usize,
    grid: usize,
    fft: LaneFft<T>,
    /// A line of the image, and a line of the grid.
    image: LineMapping<T>,
    full_line: LineMapping<T>,
}

impl<T: SimdReal> FftAxis<T> {
    /// Image cell i is grid cell i - `origin`, and multiplied by its `correction`.
    fn new(n: usize, grid: usize, origin: usize, correction: Vec<T>) -> Result<Self> {
        let fft = LaneFft::new(grid)?;
        let image = fft.line_mapping((0..n).map(|i| (i + grid - origin) % grid), correction)?;
        Ok(FftAxis { n, grid, image, full_line: fft.full_line()?, fft })
    }
}

/// The transform between a grid and an image, both of up to three axes.
pub struct GridFft<T> {
    level: Level,
    lanes: usize,
    axes: [FftAxis<T>; 3],
    buffers: Pool<Aligned<T>>,
}

impl<T: SimdReal> GridFft<T> {
    /// See [`crate::backend::Backend::grid_fft`].
    pub fn new(
        threads: &Threads,
        level: Level,
        dims: &[usize],
        grid: &[usize],
        correction: &[Vec<f64>],
    ) -> Result<Self> {
        let axis = |a: usize| match dims.get(a) {
            Some(&n) => {
                let correction =
                    try_collect(n, "the correction of the window", correction[a].iter().map(|&c| T::of(c)))?;
                FftAxis::new(n, grid[a], n / 2, correction)
            }
            None => FftAxis::new(1, 1, 0, vec![T::ONE]),
        };
        let axes = [axis(0)?, axis(1)?, axis(2)?];
        let lanes = level.lanes::<T>();
        let len = axes.iter().map(|a| a.fft.buffer_len(lanes)).max().unwrap_or(0);
        let mut room =
            AlignedArena::zeros(product(&[threads.count(), AlignedArena::bytes::<T>(len)]), "lines of the FFT")?;
        let buffers = Pool::filled(threads.count(), || Ok(room.array(len)))?;
        Ok(GridFft { level, lanes, axes, buffers })
    }

    /// Bytes held: the threads' lines, and tables of the axes.
    pub fn bytes(threads: usize, level: Level, grid: &[usize]) -> usize {
        let lanes = level.lanes::<T>();
        let longest = grid.iter().copied().max().unwrap_or(1);
        let lines = product(&[threads, 2 * lanes, longest, size_of::<T>()]);
        sum(&[lines, product(&[grid.len(), longest, 16 * size_of::<T>()])])
    }

    /// See [`crate::backend::Backend::grid_to_image`].
    pub fn grid_to_image(&self, threads: &Threads, grid: &mut [Complex<T>], image: &mut [Complex<T>]) {
        let [cells, voxels] = self.sizes(grid.len(), image.len());
        let (grid, image) = (SharedSlice::new(grid), SharedSlice::new(image));
        self.in_groups(threads, grid.len() / cells, |arrays| {
            // SAFETY: each group has its own arrays.
            let (grid, image) = unsafe {
                (
                    grid.part(arrays.start * cells, arrays.len() * cells),
                    image.part(arrays.start * voxels, arrays.len() * voxels),
                )
            };
            self.down(threads, grid, image);
        });
    }

    /// See [`crate::backend::Backend::image_to_grid`].
    pub fn image_to_grid(&self, threads: &Threads, image: &[Complex<T>], grid: &mut [Complex<T>]) {
        let [cells, voxels] = self.sizes(grid.len(), image.len());
        let grid = SharedSlice::new(grid);
        self.in_groups(threads, grid.len() / cells, |arrays| {
            // SAFETY: each group has its own arrays.
            let grid = unsafe { grid.part(arrays.start * cells, arrays.len() * cells) };
            self.up(threads, &image[arrays.start * voxels..arrays.end * voxels], grid);
        });
    }

    /// Calls `transform` with groups of so many arrays: with one array a thread where there are as many, which then
    /// stays in that core's cache from step to step. Threads that have none left help the others.
    fn in_groups(&self, threads: &Threads, arrays: usize, transform: impl Fn(Range<usize>) + Sync) {
        if arrays >= threads.count() {
            threads.run(arrays, |i| transform(i..i + 1));
            return;
        }
        let group = arrays_per_step(threads.count(), self.tasks());
        (0..arrays).step_by(group).for_each(|first| transform(first..arrays.min(first + group)));
    }

    /// Tasks of the rows of one array.
    fn tasks(&self) -> usize {
        let [_, y, z] = &self.axes;
        if z.n >= MANY_PLANES {
            z.n
        } else {
            z.n * y.n.div_ceil(self.lanes)
        }
    }

    /// Cells of a grid and voxels of an image; `grid` and `image` must hold as many of the one as of the other.
    fn sizes(&self, grid: usize, image: usize) -> [usize; 2] {
        let cells: usize = self.axes.iter().map(|a| a.grid).product();
        let voxels: usize = self.axes.iter().map(|a| a.n).product();
        assert!(grid.is_multiple_of(cells) && image.is_multiple_of(voxels) && grid / cells == image / voxels);
        [cells, voxels]
    }

    /// One array or several.
    fn down(&self, threads: &Threads, grid: &mut [Complex<T>], image: &mut [Complex<T>]) {
        let [x, y, z] = &self.axes;
        let (grid, image) = (SharedSlice::new(grid), SharedSlice::new(image));
        if z.grid > 1 {
            self.along_z(threads, &grid, true);
        }
        self.each_plane(
            threads,
            image.len() / (x.n * y.n),
            [x.grid.div_ceil(self.lanes), y.n.div_ceil(self.lanes)],
            |buffer, plane, block| self.columns(&grid, plane, block, true, buffer),
            |buffer, plane, block| {
                let (first, count) = self.block(block, y.n);
                let from = self.plane(plane) + first * x.grid;
                let to = (plane * y.n + first) * x.n;
                let from = (row_lines(&grid, from, x.grid, count, x.grid), &x.full_line);
                let to = (row_lines(&image, to, x.n, count, x.n), &x.image);
                // SAFETY: each task has its own rows of the grid and of the image.
                unsafe { self.level.run(LaneTransform { fft: &x.fft, inverse: true, from, to, buffer }.kernel()) };
            },
        );
    }

    /// One array or several.
    fn up(&self, threads: &Threads, image: &[Complex<T>], grid: &mut [Complex<T>]) {
        let [x, y, z] = &self.axes;
        let grid = SharedSlice::new(grid);
        self.each_plane(
            threads,
            image.len() / (x.n * y.n),
            [y.n.div_ceil(self.lanes), x.grid.div_ceil(self.lanes)],
            |buffer, plane, block| {
                let (first, count) = self.block(block, y.n);
                let from = (plane * y.n + first) * x.n;
                // Only read: a transform never writes to the lines that it loads.
                let address = image[from..from + count * x.n].as_ptr().cast_mut();
                let from = (Lines { address, along: 1, across: x.n, count }, &x.image);
                let to = (row_lines(&grid, self.plane(plane) + first * x.grid, x.grid, count, x.grid), &x.full_line);
                // SAFETY: each task has its own rows of the grid; nobody writes to the image meanwhile.
                unsafe { self.level.run(LaneTransform { fft: &x.fft, inverse: false, from, to, buffer }.kernel()) };
            },
            |buffer, plane, block| self.columns(&grid, plane, block, false, buffer),
        );
        if z.grid > 1 {
            self.along_z(threads, &grid, false);
        }
    }

    /// The first cell on the grids of a plane of the images.
    fn plane(&self, plane: usize) -> usize {
        let [x, y, z] = &self.axes;
        (plane / z.n * z.grid + plane % z.n) * y.grid * x.grid
    }

    /// The first line of block `block` of `count` lines, and the number of its lines.
    fn block(&self, block: usize, count: usize) -> (usize, usize) {
        let first = block * self.lanes;
        (first, self.lanes.min(count - first))
    }

    fn buffer(&self) -> crate::base::buffer_pool::Lease<'_, Aligned<T>> {
        let len = self.axes.iter().map(|a| a.fft.buffer_len(self.lanes)).max().unwrap_or(0);
        self.buffers.take_or_wait(|| Aligned::zeros(len, "lines of the FFT"))
    }

    /// Calls, for every plane of the images, `first(buffer, plane, block)` for `blocks[0]` blocks and then `second` for
    /// `blocks[1]` blocks. A plane stays in cache between the two where there are planes enough.
    fn each_plane(
        &self,
        threads: &Threads,
        planes: usize,
        blocks: [usize; 2],
        first: impl Fn(&mut [T], usize, usize) + Sync,
        second: impl Fn(&mut [T], usize, usize) + Sync,
    ) {
        if self.axes[2].n >= MANY_PLANES {
            threads.run_with(
                planes,
                || self.buffer(),
                |buffer, plane| {
                    (0..blocks[0]).for_each(|block| first(buffer, plane, block));
                    (0..blocks[1]).for_each(|block| second(buffer, plane, block));
                },
            );
        } else {
            threads.run_with(planes * blocks[0], || self.buffer(), |b, i| first(b, i / blocks[0], i % blocks[0]));
            threads.run_with(planes * blocks[1], || self.buffer(), |b, i| second(b, i / blocks[1], i % blocks[1]));
        }
    }

    /// Transforms a block of columns along y of one plane, in place: to the image's rows (`down`), or from them.
    fn columns(&self, grid: &SharedSlice<'_, Complex<T>>, plane: usize, block: usize, down: bool, buffer: &mut [T]) {
        let [x, y, _] = &self.axes;
        let (first, count) = self.block(block, x.grid);
        let start = self.plane(plane) + first;
        // SAFETY: no two tasks have the same columns of the same plane.
        unsafe { self.in_columns(y, grid, start, x.grid, count, down, buffer) };
    }

    /// Transforms all columns along z, in place: to the images' planes (`down`), or from them.
    fn along_z(&self, threads: &Threads, grid: &SharedSlice<'_, Complex<T>>, down: bool) {
        let [x, y, z] = &self.axes;
        let blocks = x.grid.div_ceil(self.lanes);
        threads.run_with(
            grid.len() / (x.grid * z.grid),
            || self.buffer(),
            |buffer, row| {
                let (array, row) = (row / y.grid, row % y.grid);
                for block in 0..blocks {
                    let (first, count) = self.block(block, x.grid);
                    let start = (array * z.grid * y.grid + row) * x.grid + first;
                    // SAFETY: each task has its own row of columns of the grid.
                    unsafe { self.in_columns(z, grid, start, x.grid * y.grid, count, down, buffer) };
                }
            },
        );
    }

    /// # Safety
    /// No other thread may use these columns of the grid meanwhile.
    #[allow(clippy::too_many_arguments)]
    unsafe fn in_columns(
        &self,
        axis: &FftAxis<T>,
        grid: &SharedSlice<'_, Complex<T>>,
        start: usize,
        along: usize,
        count: usize,
        down: bool,
        buffer: &mut [T],
    ) {
        assert!(start + (axis.grid - 1) * along + count <= grid.len());
        let lines = Lines { address: grid.address(start), along, across: 1, count };
        let (from, to) = if down { (&axis.full_line, &axis.image) } else { (&axis.image, &axis.full_line) };
        let transform = LaneTransform { fft: &axis.fft, inverse: down, from: (lines, from), to: (lines, to), buffer };
        // SAFETY: the columns lie inside the grid, as asserted; the caller promises that no other thread uses them.
        unsafe { self.level.run(transform.kernel()) };
    }
}

/// `count` rows of `len` elements at distance `across`, from element `start` of an array on.
fn row_lines<T>(
    array: &SharedSlice<'_, Complex<T>>,
    start: usize,
    across: usize,
    count: usize,
    len: usize,
) -> Lines<T> {
    assert!(start + (count - 1) * across + len <= array.len());
    Lines { address: array.address(start), along: 1, across, count }
}
