//! Convolution of an image with a Hermitian kernel through its real spectrum on the doubled grid.
//!
//! The x axis is transformed for the whole image. Then each task processes a block of columns of the spectrum, one
//! column per lane of a vector. It transforms y and z, multiplies, and transforms z and y back, all in a block of
//! memory of its own. The whole doubled grid is never stored. A 3D image may have fewer such tasks than there are
//! threads: threads without a task share the steps of the others.

use super::lanes::{load, store, LaneTransform, Lines};
use super::{arrays_per_step, row_lines, FftAxis};
use crate::backend::cpu::simd::{Arith, Kernel, Level, SimdReal, Vector};
use crate::backend::threads::Threads;
use crate::base::buffer_pool::{Lease, Pool};
use crate::base::error::{checked_product, try_vec, Result};
use crate::base::memory::{Aligned, AlignedArena};
use crate::base::sizes::{product, three_axes};
use crate::base::workers::SharedSlice;
use num_complex::Complex;
use std::ops::Range;
use std::sync::Mutex;

/// A convolution with real spectra, see [`crate::backend::Backend::Convolver`].
pub struct Convolver<T> {
    level: Level,
    lanes: usize,
    axes: [FftAxis<T>; 3],
    /// Spectra [kernel][x block][y][z][lane], divided by the number of grid points; lanes beyond the grid are zero.
    spectrum: Aligned<T>,
    work: Pool<LineBuffers<T>>,
    /// Blocks with y transformed: cells (real, then imaginary parts of all lanes) of [y][z]. A row of z is a cell
    /// longer than the image, so that neighbours in y do not share cache sets. Unused in 2D.
    blocks: Pool<Aligned<T>>,
    /// Images with their rows transformed, padded to whole blocks: [image][z][y][x]. A concurrent call waits.
    rows: Mutex<Aligned<Complex<T>>>,
}

/// Lines before and after the product with the spectrum, of one thread.
type LineBuffers<T> = [Aligned<T>; 2];

/// Number of lines of a block, along y or z, that one task transforms.
const LINES_PER_TASK: usize = 8;

/// Returns the size of the doubled grid of an image.
fn doubled_grid(dims: &[usize]) -> [usize; 3] {
    [0, 1, 2].map(|a| dims.get(a).map_or(1, |&n| crate::base::fft_size::next_fast_size(2 * n)))
}

/// Lengths of the parts of a convolver, in elements.
struct ConvolverSizes {
    spectrum: usize,
    /// Length of the rows of one image.
    rows: usize,
    /// Number of images that are convolved together.
    arrays_per_step: usize,
    line: usize,
    block: usize,
}

impl ConvolverSizes {
    fn new(dims: &[usize], threads: usize, lanes: usize) -> Result<ConvolverSizes> {
        let grid = doubled_grid(dims);
        let [_, ny, nz] = three_axes(dims);
        let width = grid[0].next_multiple_of(lanes);
        let what = "the doubled grid";
        Ok(ConvolverSizes {
            spectrum: checked_product(&[width, grid[1], grid[2]], what)?,
            rows: checked_product(&[width, ny, nz], what)?,
            arrays_per_step: arrays_per_step(threads, (ny * nz).div_ceil(lanes)),
            line: checked_product(&[2 * lanes, grid[0].max(grid[1]).max(grid[2])], what)?,
            block: if dims.len() < 3 { 0 } else { checked_product(&[2 * lanes, grid[1], nz + 1], what)? },
        })
    }
}

/// Allocates the lines of one thread.
fn make_lines<T: SimdReal>(sizes: &ConvolverSizes) -> Result<LineBuffers<T>> {
    let line = || Aligned::zeros(sizes.line, "lines of the FFT");
    Ok([line()?, line()?])
}

/// Allocates blocks, which are written before they are read.
fn block_arena<T: SimdReal>(blocks: usize, sizes: &ConvolverSizes) -> Result<AlignedArena> {
    AlignedArena::unwritten(
        product(&[blocks, AlignedArena::bytes::<T>(sizes.block)]),
        "a block of the doubled grid for each thread",
    )
}

/// Allocates one block.
fn make_block<T: SimdReal>(sizes: &ConvolverSizes) -> Result<Aligned<T>> {
    Ok(block_arena::<T>(1, sizes)?.array(sizes.block))
}

impl<T: SimdReal> Convolver<T> {
    /// Implements [`crate::backend::Backend::convolver`].
    pub fn new(threads: &Threads, level: Level, dims: &[usize], kernels: usize) -> Result<Self> {
        let lanes = level.lanes::<T>();
        let grid = doubled_grid(dims);
        checked_product(&grid, "the doubled grid")?;
        let sizes = ConvolverSizes::new(dims, threads.count(), lanes)?;
        let rows = checked_product(&[sizes.arrays_per_step, sizes.rows], "the images' transformed rows")?;
        let axis = |a: usize| {
            let n = *dims.get(a).unwrap_or(&1);
            // The position of the image on the grid does not affect the convolution.
            FftAxis::new(n, grid[a], 0, try_vec(n, T::ONE, "an axis of the doubled grid")?)
        };
        let axes = [axis(0)?, axis(1)?, axis(2)?];
        // The largest array is allocated first: if it does not fit, the error names it.
        let all = checked_product(&[sizes.spectrum, kernels], "the spectrum of Q")?;
        let spectrum = Aligned::zeros(all, "the spectrum of Q")?;
        let mut blocks = block_arena::<T>(threads.count(), &sizes)?;
        Ok(Convolver {
            level,
            lanes,
            axes,
            spectrum,
            work: Pool::filled(threads.count(), || make_lines(&sizes))?,
            blocks: Pool::filled(threads.count(), || Ok(blocks.array(sizes.block)))?,
            rows: Mutex::new(Aligned::zeros(rows, "the images' transformed rows")?),
        })
    }

    /// Returns the bytes of a convolver for images of `dims` voxels and `kernels` kernels, including its scratch.
    pub fn bytes(dims: &[usize], kernels: usize, threads: usize, level: Level) -> usize {
        let real = std::mem::size_of::<T>();
        ConvolverSizes::new(dims, threads, level.lanes::<T>()).map_or(usize::MAX, |s| {
            let work = s.block.saturating_add(2 * s.line).saturating_mul(threads);
            let rows = s.rows.saturating_mul(2 * s.arrays_per_step);
            s.spectrum.saturating_mul(kernels).saturating_add(rows).saturating_add(work).saturating_mul(real)
        })
    }

    /// Returns the number of points of the doubled grid.
    pub fn grid_len(&self) -> usize {
        self.axes.iter().map(|a| a.grid).product()
    }

    /// Returns the number of blocks of a kernel's spectrum.
    fn blocks_of_kernel(&self) -> usize {
        self.axes[0].grid.div_ceil(self.lanes)
    }

    /// Returns the offset in the spectrum of a block's grid points at y and z. The blocks of all kernels are
    /// contiguous.
    fn spectrum_offset(&self, block: usize, y: usize, z: usize) -> usize {
        ((block * self.axes[1].grid + y) * self.axes[2].grid + z) * self.lanes
    }

    /// Calls `f(offset in the spectrum, first grid point, number of points)` for every row of every block of a kernel.
    fn each_run(&self, kernel: usize, mut f: impl FnMut(usize, usize, usize)) {
        let first_block = kernel * self.blocks_of_kernel();
        let [gx, gy, gz] = [0, 1, 2].map(|a| self.axes[a].grid);
        for (block, first) in (0..gx).step_by(self.lanes).enumerate() {
            for y in 0..gy {
                for z in 0..gz {
                    f(
                        self.spectrum_offset(first_block + block, y, z),
                        (z * gy + y) * gx + first,
                        self.lanes.min(gx - first),
                    );
                }
            }
        }
    }

    /// Implements [`crate::backend::Backend::spectrum`].
    pub fn spectrum(&self, kernel: usize) -> Result<Vec<T>> {
        let mut natural = try_vec(self.grid_len(), T::ZERO, "a copy of the spectrum of Q")?;
        let copy = |offset, point, n| natural[point..point + n].copy_from_slice(&self.spectrum[offset..offset + n]);
        self.each_run(kernel, copy);
        Ok(natural)
    }

    /// Implements [`crate::backend::Backend::set_spectrum`].
    pub fn set_spectrum(&mut self, kernel: usize, natural: &[T]) {
        assert_eq!(natural.len(), self.grid_len());
        let mut spectrum = std::mem::replace(&mut self.spectrum, Aligned::empty());
        self.each_run(kernel, |offset, point, n| {
            spectrum[offset..offset + n].copy_from_slice(&natural[point..point + n])
        });
        self.spectrum = spectrum;
    }

    /// Returns the number of points of the half of the doubled grid for a kernel: [z][y][x], x from 0 to n - 1.
    pub fn kernel_len(&self) -> usize {
        self.axes[0].n * self.axes[1].grid * self.axes[2].grid
    }

    /// Implements [`crate::backend::Backend::place_kernel`].
    pub fn place_kernel(&self, threads: &Threads, half: [bool; 3], q: &[Complex<T>], grid: &mut [Complex<T>]) {
        let [x, y, z] = &self.axes;
        assert!(!half[0]);
        assert_eq!(q.len(), x.n * y.n * z.n);
        assert_eq!(grid.len(), self.kernel_len());
        // Displacement -n has no counterpart +n, and images of n voxels never need it: it stays zero.
        let cell = |axis: usize, i: usize| match half[axis] {
            true if i == 0 => None,
            true => Some(self.axes[axis].grid - self.axes[axis].n + i),
            false => Some(i),
        };
        let grid = SharedSlice::new(grid);
        let rows = y.n * z.n;
        threads.run(rows.div_ceil(LINES_PER_TASK), |some| {
            for row in some * LINES_PER_TASK..rows.min((some + 1) * LINES_PER_TASK) {
                let (Some(gy), Some(gz)) = (cell(1, row % y.n), cell(2, row / y.n)) else { continue };
                // SAFETY: rows do not overlap.
                let to = unsafe { grid.part((gz * y.grid + gy) * x.n, x.n) };
                to.copy_from_slice(&q[row * x.n..][..x.n]);
                // Values are doubled for the half that is not stored: the kernel at -x is the conjugate of the kernel
                // at x.
                to[1..].iter_mut().for_each(|q| *q = *q + *q);
            }
        });
    }

    /// Implements [`crate::backend::Backend::set_kernel`].
    pub fn set_kernel(&mut self, threads: &Threads, kernel: usize, grid: &mut [Complex<T>]) {
        let [x, y, z] = &self.axes;
        assert_eq!(grid.len(), self.kernel_len());
        let grid = SharedSlice::new(grid);
        let columns = |work: &mut LineBuffers<T>, axis: &FftAxis<T>, start: usize, along: usize| {
            for first in (0..x.n).step_by(self.lanes) {
                let count = self.lanes.min(x.n - first);
                assert!(start + first + (axis.grid - 1) * along + count <= grid.len());
                let lines = Lines { address: grid.address(start + first), along, across: 1, count };
                let (from, to) = ((lines, &axis.full), (lines, &axis.full));
                let transform = LaneTransform { fft: &axis.fft, inverse: false, from, to, buffer: &mut work[0] };
                // SAFETY: each task has its own columns of the grid.
                unsafe { self.level.run(transform.kernel()) };
            }
        };
        if z.grid > 1 {
            threads.run_with(y.grid, || self.work(), |work, iy| columns(work, z, iy * x.n, x.n * y.grid));
        }
        threads.run_with(z.grid, || self.work(), |work, iz| columns(work, y, iz * x.n * y.grid, x.n));
        let scale = T::of(1.0 / self.grid_len() as f64);
        let mut spectrum = std::mem::replace(&mut self.spectrum, Aligned::empty());
        let [x, y, z] = &self.axes;
        let lines_of_x = y.grid * z.grid;
        let first_block = kernel * self.blocks_of_kernel();
        let out = SharedSlice::new(&mut spectrum[..]);
        threads.run_with(
            lines_of_x.div_ceil(self.lanes),
            || self.work(),
            |work, block| {
                let first = block * self.lanes;
                let count = self.lanes.min(lines_of_x - first);
                let [buffer, transformed] = &mut **work;
                let from = (row_lines(&grid, first * x.n, x.n, count, x.n), &x.image);
                let address: *mut Complex<T> = transformed.as_mut_ptr().cast();
                let to = (Lines { address, along: 1, across: x.grid, count }, &x.full);
                // SAFETY: each task has its own rows of the grid; `transformed` has the length of lines of any axis.
                unsafe { self.level.run(LaneTransform { fft: &x.fft, inverse: false, from, to, buffer }.kernel()) };
                for (line, values) in transformed.chunks_exact(2 * x.grid).take(count).enumerate() {
                    let (iy, iz) = ((first + line) % y.grid, (first + line) / y.grid);
                    for (block, values) in values.chunks(2 * self.lanes).enumerate() {
                        // SAFETY: each task has its own y and z.
                        let spectrum =
                            unsafe { out.part(self.spectrum_offset(first_block + block, iy, iz), values.len() / 2) };
                        for (s, value) in spectrum.iter_mut().zip(values.chunks_exact(2)) {
                            *s = value[0] * scale;
                        }
                    }
                }
            },
        );
        self.spectrum = spectrum;
    }

    /// Returns the number of voxels of an image.
    pub fn voxels(&self) -> usize {
        self.axes.iter().map(|axis| axis.n).product()
    }

    /// Implements [`crate::backend::Backend::convolve`].
    pub fn convolve(&self, threads: &Threads, kernels: Range<usize>, input: &[Complex<T>], output: &mut [Complex<T>]) {
        let voxels = self.voxels();
        assert!(input.len() == output.len() && input.len().is_multiple_of(voxels * kernels.len()));
        let images_per_kernel = input.len() / voxels / kernels.len();
        assert!(
            kernels.end * self.blocks_of_kernel() * self.axes[1].grid * self.axes[2].grid * self.lanes
                <= self.spectrum.len()
        );
        let mut transformed = self.rows.lock().unwrap_or_else(|e| e.into_inner());
        let rows = self.axes[0].grid.next_multiple_of(self.lanes) * voxels / self.axes[0].n;
        let group = transformed.len() / rows * voxels;
        for (i, (input, output)) in input.chunks(group).zip(output.chunks_mut(group)).enumerate() {
            let first = i * (group / voxels);
            let kernel = |image: usize| kernels.start + (first + image) / images_per_kernel;
            self.convolve_group(threads, kernel, input, &mut transformed[..input.len() / voxels * rows], output);
        }
    }

    /// Convolves several images together. `kernel` returns the kernel of an image, and `transformed` holds their rows.
    fn convolve_group(
        &self,
        threads: &Threads,
        kernel: impl Fn(usize) -> usize + Sync,
        input: &[Complex<T>],
        transformed: &mut [Complex<T>],
        output: &mut [Complex<T>],
    ) {
        let [x, y, z] = &self.axes;
        let image_rows = y.n * z.n;
        let all_rows = input.len() / x.n;
        let transformed = SharedSlice::new(transformed);
        let width = transformed.len() / all_rows;
        let blocks = all_rows.div_ceil(self.lanes);
        let block_of = |block: usize| (block * self.lanes, self.lanes.min(all_rows - block * self.lanes));

        threads.run_with(
            blocks,
            || self.work(),
            |work, block| {
                let (first, count) = block_of(block);
                // The lines are only read: a transform never writes to the lines that it loads.
                let address = input[first * x.n..(first + count) * x.n].as_ptr().cast_mut();
                let from = (Lines { address, along: 1, across: x.n, count }, &x.image);
                let to = (row_lines(&transformed, first * width, width, count, x.grid), &x.full);
                let transform = LaneTransform { fft: &x.fft, inverse: false, from, to, buffer: &mut work[0] };
                // SAFETY: each task has its own rows.
                unsafe { self.level.run(transform.kernel()) };
            },
        );
        let columns = width / self.lanes;
        let task = |task: usize| {
            let (image, block) = (task / columns, task % columns);
            let address = transformed.address(image * image_rows * width + block * self.lanes);
            // Each task has its own columns, including all of their rows.
            (kernel(image) * columns + block, Lines { address, along: width, across: 1, count: self.lanes })
        };
        let tasks = all_rows / image_rows * columns;
        if z.grid == 1 {
            let start = || self.work();
            threads.run_with(tasks, start, |work, i| {
                let (block, columns) = task(i);
                self.level.run(PlaneKernel { convolver: self, block, columns, work });
            });
        } else {
            let start = || self.block();
            threads.run_with(tasks, start, |middle, i| {
                let middle = &SharedSlice::new(middle);
                for (step, lines) in
                    [(VolumeStep::YForward, z.n), (VolumeStep::ZConvolution, y.grid), (VolumeStep::YInverse, z.n)]
                {
                    let start = || self.work();
                    threads.run_with(lines.div_ceil(LINES_PER_TASK), start, |work, some| {
                        let (block, columns) = task(i);
                        let lines = some * LINES_PER_TASK..lines.min((some + 1) * LINES_PER_TASK);
                        self.level.run(VolumeKernel { convolver: self, block, columns, middle, step, lines, work });
                    });
                }
            });
        }
        let out = SharedSlice::new(output);
        threads.run_with(
            blocks,
            || self.work(),
            |work, block| {
                let (first, count) = block_of(block);
                let from = (row_lines(&transformed, first * width, width, count, x.grid), &x.full);
                let to = (row_lines(&out, first * x.n, x.n, count, x.n), &x.image);
                let transform = LaneTransform { fft: &x.fft, inverse: true, from, to, buffer: &mut work[0] };
                // SAFETY: each task has its own rows.
                unsafe { self.level.run(transform.kernel()) };
            },
        );
    }

    /// Borrows the lines of a thread.
    fn work(&self) -> Lease<'_, LineBuffers<T>> {
        self.work.take_or_wait(|| make_lines(&self.sizes_of_one_thread()?))
    }

    /// Borrows a block.
    fn block(&self) -> Lease<'_, Aligned<T>> {
        self.blocks.take_or_wait(|| make_block(&self.sizes_of_one_thread()?))
    }

    /// Returns the lengths for one thread.
    fn sizes_of_one_thread(&self) -> Result<ConvolverSizes> {
        let [x, y, z] = &self.axes;
        let dims = [x.n, y.n, z.n];
        ConvolverSizes::new(&dims[..if z.grid > 1 { 3 } else { 2 }], 1, self.lanes)
    }
}

/// The steps between the x transforms, for a block of columns of a 2D spectrum.
struct PlaneKernel<'a, T> {
    convolver: &'a Convolver<T>,
    block: usize,
    /// The columns, which no other task uses.
    columns: Lines<T>,
    work: &'a mut LineBuffers<T>,
}

impl<T: SimdReal> Kernel for PlaneKernel<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arith>(self) {
        let PlaneKernel { convolver: c, block, columns, work } = self;
        let y = &c.axes[1];
        let [lines, product] = work.each_mut().map(|lines| lines.as_mut_ptr());
        // SAFETY: buffers have the lengths of `ConvolverSizes`; no other task uses these columns.
        unsafe {
            load::<T, A>(columns, &y.image, false, lines);
            y.fft.run::<A>(lines);
            multiply::<T, A>(c, c.spectrum_offset(block, 0, 0), y, lines, product);
            y.fft.run::<A>(product);
            store::<T, A>(columns, &y.image, true, product);
        }
    }
}

/// A step between the x transforms, for a block of columns of a 3D spectrum.
#[derive(Clone, Copy)]
enum VolumeStep {
    /// Transforms y of the image's planes, and writes them to the block's memory.
    YForward,
    /// Transforms z there, multiplies, and transforms z back, for rows of y.
    ZConvolution,
    /// Transforms y back, and writes the image's planes.
    YInverse,
}

/// Some lines of a step: planes of z, or rows of y. No concurrent task has the same lines.
struct VolumeKernel<'a, T> {
    convolver: &'a Convolver<T>,
    block: usize,
    /// The columns of row 0 of [z][y] rows.
    columns: Lines<T>,
    middle: &'a SharedSlice<'a, T>,
    step: VolumeStep,
    lines: Range<usize>,
    work: &'a mut LineBuffers<T>,
}

impl<T: SimdReal> Kernel for VolumeKernel<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arith>(self) {
        let VolumeKernel { convolver: c, block, columns, middle, step, lines: range, work } = self;
        let [_, y, z] = &c.axes;
        let cell = 2 * T::V::<A>::LANES;
        let [lines, product] = work.each_mut().map(|lines| lines.as_mut_ptr());
        let plane = |iz: usize| Lines { address: columns.address.wrapping_add(iz * y.n * columns.along), ..columns };
        let at = |iy: usize, iz: usize| middle.address((iy * (z.n + 1) + iz) * cell);
        // SAFETY: buffers have the lengths of `ConvolverSizes`, and no other task uses these planes or rows. `at` is
        // inside the block for iy below y.grid and iz below z.n.
        unsafe {
            match step {
                VolumeStep::YForward => {
                    for iz in range {
                        load::<T, A>(plane(iz), &y.image, false, lines);
                        y.fft.run::<A>(lines);
                        for iy in 0..y.grid {
                            copy::<T, A>(lines.add(iy * cell), at(iy, iz));
                        }
                    }
                }
                VolumeStep::ZConvolution => {
                    for iy in range {
                        for &offset in z.image.empty() {
                            let zero = T::V::<A>::splat(T::ZERO);
                            zero.store(lines.add(offset as usize * cell));
                            zero.store(lines.add(offset as usize * cell + cell / 2));
                        }
                        for (iz, &offset) in z.image.positions().iter().enumerate() {
                            copy::<T, A>(at(iy, iz), lines.add(offset as usize * cell));
                        }
                        z.fft.run::<A>(lines);
                        multiply::<T, A>(c, c.spectrum_offset(block, iy, 0), z, lines, product);
                        z.fft.run::<A>(product);
                        for iz in 0..z.n {
                            copy::<T, A>(product.add(iz * cell), at(iy, iz));
                        }
                    }
                }
                // Real and imaginary parts remain exchanged from the product to the store.
                VolumeStep::YInverse => {
                    for iz in range {
                        for (iy, &offset) in y.full.positions().iter().enumerate() {
                            copy::<T, A>(at(iy, iz), lines.add(offset as usize * cell));
                        }
                        y.fft.run::<A>(lines);
                        store::<T, A>(plane(iz), &y.image, true, lines);
                    }
                }
            }
        }
    }
}

/// Multiplies a transformed line by the spectrum from `offset` on, and writes it in the order of the next transform.
/// That is the inverse transform, so real and imaginary parts are exchanged.
///
/// # Safety
/// Both buffers must hold the axis's lines, and the spectrum the axis's grid from `offset` on.
#[inline(always)]
unsafe fn multiply<T: SimdReal, A: Arith>(
    c: &Convolver<T>,
    offset: usize,
    axis: &FftAxis<T>,
    lines: *const T,
    product: *mut T,
) {
    let lanes = T::V::<A>::LANES;
    let spectrum = c.spectrum[offset..offset + axis.grid * lanes].as_ptr();
    for (i, &to) in axis.full.positions().iter().enumerate() {
        // SAFETY: the caller promises buffers that hold the axis's lines.
        unsafe {
            let factor = T::V::<A>::load(spectrum.add(i * lanes));
            let from = lines.add(i * 2 * lanes);
            let to = product.add(to as usize * 2 * lanes);
            T::V::<A>::load(from.add(lanes)).mul(factor).store(to);
            T::V::<A>::load(from).mul(factor).store(to.add(lanes));
        }
    }
}
/// Copies a cell: two vectors.
///
/// # Safety
/// Two vectors must be readable at `from` and writable at `to`.
#[inline(always)]
unsafe fn copy<T: SimdReal, A: Arith>(from: *const T, to: *mut T) {
    let lanes = T::V::<A>::LANES;
    // SAFETY: the caller promises two readable and two writable vectors.
    unsafe {
        let (re, im) = (T::V::<A>::load(from), T::V::<A>::load(from.add(lanes)));
        re.store(to);
        im.store(to.add(lanes));
    }
}
