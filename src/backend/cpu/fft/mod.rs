//! Pruned multi-dimensional FFTs between an oversampled grid and an image. lanes.rs transforms single lines,
//! convolver.rs convolves on the doubled grid, any_length.rs transforms lines of any length.
//!
//! Axes are transformed one after another. Lines of zeros are not transformed for the grid, and cropped lines are not
//! transformed for the image; neither are columns of the grid that no sample's window reaches. Image index i of n
//! stands for r = i - floor(n/2) and for grid index r mod G.
//!
//! rustfft is not used because it transforms one line at a time without pruning: lines would have to be gathered, and
//! zeros transformed. The tests use it as reference. For whole rows in double precision it is faster: examples/ffts.rs
//! prints both times.

pub mod any_length;
pub mod convolver;
pub(super) mod lanes;

use super::reached_columns::ReachedColumns;
use super::simd::Level;
use crate::backend::cpu::simd::SimdReal;
use crate::backend::threads::Threads;
use crate::base::buffer_pool::Pool;
use crate::base::error::{try_collect, Result};
use crate::base::memory::{Aligned, AlignedArena};
use crate::base::sizes::{product, sum};
use crate::base::workers::SharedSlice;
use lanes::{LaneFft, LaneTransform, LineMapping, Lines};
use num_complex::Complex;
use std::ops::Range;
use std::sync::Arc;

/// Minimum number of planes for which tasks are whole planes. Fewer planes are divided into rows and columns.
const MIN_WHOLE_PLANES: usize = 16;
/// Minimum number of tasks per thread that makes a step worth its overhead. With fewer tasks, several arrays share a
/// step; otherwise one array stays in cache from step to step.
const MIN_TASKS_PER_THREAD: usize = 4;

/// Returns the number of arrays that share a step, which has `tasks` tasks per array.
fn arrays_per_step(threads: usize, tasks: usize) -> usize {
    match threads {
        1 => 1,
        threads => (MIN_TASKS_PER_THREAD * threads).div_ceil(tasks.max(1)),
    }
}

/// One axis, with `n` image cells inside `grid` grid cells.
struct FftAxis<T> {
    n: usize,
    grid: usize,
    fft: LaneFft<T>,
    /// A line of the image.
    image: LineMapping<T>,
    /// A line of the grid.
    full: LineMapping<T>,
}

impl<T: SimdReal> FftAxis<T> {
    /// Creates an axis for which image cell i is grid cell i - `origin`, multiplied by its `correction`.
    fn new(n: usize, grid: usize, origin: usize, correction: Vec<T>) -> Result<Self> {
        let fft = LaneFft::new(grid)?;
        let image = fft.mapping((0..n).map(|i| (i + grid - origin) % grid), correction)?;
        Ok(FftAxis { n, grid, image, full: fft.full_mapping()?, fft })
    }
}

/// The transform between a grid and an image, both of up to three axes.
pub struct GridFft<T> {
    level: Level,
    lanes: usize,
    /// Equal axes share their tables.
    axes: [Arc<FftAxis<T>>; 3],
    buffers: Pool<Aligned<T>>,
}

impl<T: SimdReal> GridFft<T> {
    /// Implements [`crate::backend::Backend::grid_fft`].
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
        let is_equal = |a: usize, b: usize| {
            b < dims.len() && dims[a] == dims[b] && grid[a] == grid[b] && correction[a] == correction[b]
        };
        let x = Arc::new(axis(0)?);
        let y = if is_equal(0, 1) { x.clone() } else { Arc::new(axis(1)?) };
        let z = match [(0, &x), (1, &y)].into_iter().find(|&(a, _)| is_equal(a, 2)) {
            Some((_, axis)) => axis.clone(),
            None => Arc::new(axis(2)?),
        };
        let axes = [x, y, z];
        let lanes = level.lanes::<T>();
        let len = axes.iter().map(|a| a.fft.buffer_len(lanes)).max().unwrap_or(0);
        let mut arena =
            AlignedArena::unwritten(product(&[threads.count(), AlignedArena::bytes::<T>(len)]), "lines of the FFT")?;
        let buffers = Pool::filled(threads.count(), || Ok(arena.array(len)))?;
        Ok(GridFft { level, lanes, axes, buffers })
    }

    /// Estimates the bytes held: the threads' lines, and tables of the axes.
    pub fn bytes(threads: usize, level: Level, grid: &[usize]) -> usize {
        let lanes = level.lanes::<T>();
        let longest = grid.iter().copied().max().unwrap_or(1);
        let lines = product(&[threads, 2 * lanes, longest, size_of::<T>()]);
        sum(&[lines, product(&[grid.len(), longest, 16 * size_of::<T>()])])
    }

    /// Implements [`crate::backend::Backend::grid_to_image`]. All columns of the grid that are not `reached` must be
    /// zero; by default, all are reached.
    pub fn grid_to_image(
        &self,
        threads: &Threads,
        grid: &mut [Complex<T>],
        image: &mut [Complex<T>],
        reached: Option<&ReachedColumns>,
    ) {
        let [cells, voxels] = self.cells_and_voxels(grid.len(), image.len());
        let (grid, image) = (SharedSlice::new(grid), SharedSlice::new(image));
        self.transform_in_groups(threads, grid.len() / cells, |arrays| {
            // SAFETY: each group has its own arrays.
            let (grid, image) = unsafe {
                (
                    grid.part(arrays.start * cells, arrays.len() * cells),
                    image.part(arrays.start * voxels, arrays.len() * voxels),
                )
            };
            self.to_image(threads, grid, image, reached);
        });
    }

    /// Implements [`crate::backend::Backend::image_to_grid`]. Columns of the grid that are not `reached` have no
    /// meaning afterwards; by default, all are reached.
    pub fn image_to_grid(
        &self,
        threads: &Threads,
        image: &[Complex<T>],
        grid: &mut [Complex<T>],
        reached: Option<&ReachedColumns>,
    ) {
        let [cells, voxels] = self.cells_and_voxels(grid.len(), image.len());
        let grid = SharedSlice::new(grid);
        self.transform_in_groups(threads, grid.len() / cells, |arrays| {
            // SAFETY: each group has its own arrays.
            let grid = unsafe { grid.part(arrays.start * cells, arrays.len() * cells) };
            self.to_grid(threads, &image[arrays.start * voxels..arrays.end * voxels], grid, reached);
        });
    }

    /// Calls `transform` with groups of arrays. If there is at least one array per thread, each group is one array,
    /// which then stays in that core's cache from step to step. Threads without an array help the others.
    fn transform_in_groups(&self, threads: &Threads, arrays: usize, transform: impl Fn(Range<usize>) + Sync) {
        if arrays >= threads.count() {
            threads.run(arrays, |i| transform(i..i + 1));
            return;
        }
        let group = arrays_per_step(threads.count(), self.task_count());
        (0..arrays).step_by(group).for_each(|first| transform(first..arrays.min(first + group)));
    }

    /// Returns the number of tasks for the rows of one array.
    fn task_count(&self) -> usize {
        let [_, y, z] = &self.axes;
        if z.n >= MIN_WHOLE_PLANES {
            z.n
        } else {
            z.n * y.n.div_ceil(self.lanes)
        }
    }

    /// Returns the cells of a grid and the voxels of an image. Panics unless the lengths `grid` and `image` are
    /// multiples of them for the same number of arrays.
    fn cells_and_voxels(&self, grid: usize, image: usize) -> [usize; 2] {
        let cells: usize = self.axes.iter().map(|a| a.grid).product();
        let voxels: usize = self.axes.iter().map(|a| a.n).product();
        assert!(grid.is_multiple_of(cells) && image.is_multiple_of(voxels) && grid / cells == image / voxels);
        [cells, voxels]
    }

    /// Transforms the grids of one or several arrays to images.
    fn to_image(
        &self,
        threads: &Threads,
        grid: &mut [Complex<T>],
        image: &mut [Complex<T>],
        reached: Option<&ReachedColumns>,
    ) {
        let [x, y, z] = &self.axes;
        let (grid, image) = (SharedSlice::new(grid), SharedSlice::new(image));
        if z.grid > 1 {
            self.transform_z(threads, &grid, true, reached);
        }
        self.each_plane(
            threads,
            image.len() / (x.n * y.n),
            [x.grid.div_ceil(self.lanes), y.n.div_ceil(self.lanes)],
            |buffer, plane, block| self.transform_columns(&grid, plane, block, true, buffer, reached),
            |buffer, plane, block| {
                let (first, count) = self.line_block(block, y.n);
                let from = self.plane_start(plane) + first * x.grid;
                let to = (plane * y.n + first) * x.n;
                let from = (row_lines(&grid, from, x.grid, count, x.grid), &x.full);
                let to = (row_lines(&image, to, x.n, count, x.n), &x.image);
                // SAFETY: each task has its own rows of the grid and of the image.
                unsafe { self.level.run(LaneTransform { fft: &x.fft, inverse: true, from, to, buffer }.kernel()) };
            },
        );
    }

    /// Transforms the images of one or several arrays to grids.
    fn to_grid(
        &self,
        threads: &Threads,
        image: &[Complex<T>],
        grid: &mut [Complex<T>],
        reached: Option<&ReachedColumns>,
    ) {
        let [x, y, z] = &self.axes;
        let grid = SharedSlice::new(grid);
        self.each_plane(
            threads,
            image.len() / (x.n * y.n),
            [y.n.div_ceil(self.lanes), x.grid.div_ceil(self.lanes)],
            |buffer, plane, block| {
                let (first, count) = self.line_block(block, y.n);
                let from = (plane * y.n + first) * x.n;
                // The lines are only read: a transform never writes to the lines that it loads.
                let address = image[from..from + count * x.n].as_ptr().cast_mut();
                let from = (Lines { address, along: 1, across: x.n, count }, &x.image);
                let to = (row_lines(&grid, self.plane_start(plane) + first * x.grid, x.grid, count, x.grid), &x.full);
                // SAFETY: each task has its own rows of the grid, and no code writes to the image in the meantime.
                unsafe { self.level.run(LaneTransform { fft: &x.fft, inverse: false, from, to, buffer }.kernel()) };
            },
            |buffer, plane, block| self.transform_columns(&grid, plane, block, false, buffer, reached),
        );
        if z.grid > 1 {
            self.transform_z(threads, &grid, false, reached);
        }
    }

    /// Returns the first cell of a plane of the images on the grids.
    fn plane_start(&self, plane: usize) -> usize {
        let [x, y, z] = &self.axes;
        (plane / z.n * z.grid + plane % z.n) * y.grid * x.grid
    }

    /// Returns the first line and the number of lines of block `block` among `count` lines.
    fn line_block(&self, block: usize, count: usize) -> (usize, usize) {
        let first = block * self.lanes;
        (first, self.lanes.min(count - first))
    }

    /// Borrows the buffer of a thread.
    fn buffer(&self) -> crate::base::buffer_pool::Lease<'_, Aligned<T>> {
        let len = self.axes.iter().map(|a| a.fft.buffer_len(self.lanes)).max().unwrap_or(0);
        self.buffers.take_or_wait(|| Aligned::unwritten(len, "lines of the FFT"))
    }

    /// Calls, for every plane of the images, `first(buffer, plane, block)` for `blocks[0]` blocks and then `second` for
    /// `blocks[1]` blocks. If there are enough planes, a plane stays in cache between the two.
    fn each_plane(
        &self,
        threads: &Threads,
        planes: usize,
        blocks: [usize; 2],
        first: impl Fn(&mut [T], usize, usize) + Sync,
        second: impl Fn(&mut [T], usize, usize) + Sync,
    ) {
        if self.axes[2].n >= MIN_WHOLE_PLANES {
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

    /// Transforms a block of columns along y of one plane in place: to the image's rows (`to_image`), or from them.
    fn transform_columns(
        &self,
        grid: &SharedSlice<'_, Complex<T>>,
        plane: usize,
        block: usize,
        to_image: bool,
        buffer: &mut [T],
        reached: Option<&ReachedColumns>,
    ) {
        let [x, y, _] = &self.axes;
        let (first, count) = self.line_block(block, x.grid);
        if reached.is_some_and(|reached| !reached.contains_in_any_row(first, count)) {
            return;
        }
        let start = self.plane_start(plane) + first;
        // SAFETY: no two tasks have the same columns of the same plane.
        unsafe { self.transform_column_block(y, grid, start, x.grid, count, to_image, buffer) };
    }

    /// Transforms all columns along z in place: to the images' planes (`to_image`), or from them.
    fn transform_z(
        &self,
        threads: &Threads,
        grid: &SharedSlice<'_, Complex<T>>,
        to_image: bool,
        reached: Option<&ReachedColumns>,
    ) {
        let [x, y, z] = &self.axes;
        let blocks = x.grid.div_ceil(self.lanes);
        threads.run_with(
            grid.len() / (x.grid * z.grid),
            || self.buffer(),
            |buffer, row| {
                let (array, row) = (row / y.grid, row % y.grid);
                for block in 0..blocks {
                    let (first, count) = self.line_block(block, x.grid);
                    if reached.is_some_and(|reached| !reached.contains(row, first, count)) {
                        continue;
                    }
                    let start = (array * z.grid * y.grid + row) * x.grid + first;
                    // SAFETY: each task has its own row of columns of the grid.
                    unsafe { self.transform_column_block(z, grid, start, x.grid * y.grid, count, to_image, buffer) };
                }
            },
        );
    }

    /// Transforms a block of columns in place.
    ///
    /// # Safety
    /// No other thread may use these columns of the grid in the meantime.
    #[allow(clippy::too_many_arguments)]
    unsafe fn transform_column_block(
        &self,
        axis: &FftAxis<T>,
        grid: &SharedSlice<'_, Complex<T>>,
        start: usize,
        along: usize,
        count: usize,
        to_image: bool,
        buffer: &mut [T],
    ) {
        assert!(start + (axis.grid - 1) * along + count <= grid.len());
        let lines = Lines { address: grid.address(start), along, across: 1, count };
        let (from, to) = if to_image { (&axis.full, &axis.image) } else { (&axis.image, &axis.full) };
        let transform =
            LaneTransform { fft: &axis.fft, inverse: to_image, from: (lines, from), to: (lines, to), buffer };
        // SAFETY: the columns are inside the grid, as asserted; the caller promises that no other thread uses them.
        unsafe { self.level.run(transform.kernel()) };
    }
}

/// Returns `count` rows of `len` elements at distance `across`, from element `start` of an array on.
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
