//! Convolution of images with a Hermitian kernel through its real spectrum on the doubled grid.
//!
//! x lines are padded to the doubled grid, y lines likewise; z lines are padded, transformed, multiplied with the
//! spectrum, transformed back and cropped by one kernel, so that the doubled grid as a whole is never stored; then y
//! and x back. In 2D, y is the axis in the middle.

use super::lines::{arrays_at_once, check, place_kernels, Lie, LineFft, Lines, Side};
use crate::backend::cuda::gpu::{launch, Gpu};
use crate::backend::cuda::memory::DeviceArray;
use crate::backend::cuda::runtime::Function;
use crate::base::error::{checked_product, try_vec, Result};
use crate::base::real::Real;
use crate::base::sizes::three_axes;
use num_complex::Complex;
use std::sync::Mutex;

/// Bytes of scratch up to which several images are worked on at once, so that small ones fill the GPU.
const SEVERAL: usize = 32 << 20;
/// Images worked on at once, at most.
const MOST: usize = 32;

/// See [`crate::backend::Backend::Convolver`].
pub struct Convolver<T: Real> {
    sizes: Sizes,
    /// As many as there are axes.
    ffts: Vec<LineFft<T>>,
    place: Function,
    /// In natural order, divided by the number of grid points.
    spectrum: DeviceArray<T>,
    /// Whoever queues a convolution has it.
    scratch: Mutex<Scratch<T>>,
}

struct Scratch<T> {
    /// Images with x on the doubled grid: [image][z][y][x].
    rows: DeviceArray<Complex<T>>,
    /// And y, too. Of no length in 2D.
    planes: DeviceArray<Complex<T>>,
}

/// Sizes of image and grid, 1 where there is no such axis, and of the parts of a convolver.
struct Sizes {
    ndim: usize,
    n: [usize; 3],
    grid: [usize; 3],
    /// Images worked on at once.
    images: usize,
    /// Elements of scratch for an image.
    rows: usize,
    planes: usize,
}

impl Sizes {
    fn new(dims: &[usize], bytes: usize) -> Result<Self> {
        let n = three_axes(dims);
        let grid = [0, 1, 2].map(|a| dims.get(a).map_or(1, |&n| crate::base::fft_size::next_fast_size(2 * n)));
        let what = "the doubled grid";
        checked_product(&grid, what)?;
        let rows = checked_product(&[grid[0], n[1], n[2]], what)?;
        let planes = if dims.len() < 3 { 0 } else { checked_product(&[grid[0], grid[1], n[2]], what)? };
        let images = (SEVERAL / (2 * bytes * (rows + planes))).clamp(1, MOST);
        Ok(Sizes { ndim: dims.len(), n, grid, images, rows, planes })
    }

    /// Points of the doubled grid.
    fn points(&self) -> usize {
        self.grid.iter().product()
    }

    /// How the lines of an axis lie, and how many there are.
    fn lines(&self, a: usize) -> (Lie, usize) {
        let ([_, ny, nz], [gx, gy, _]) = (self.n, self.grid);
        match a {
            0 => (Lie::Rows, ny * nz),
            1 => (Lie::Columns, gx * nz),
            _ => (Lie::Columns, gx * gy),
        }
    }
}

impl<T: Real> Convolver<T> {
    /// See [`crate::backend::Backend::convolver`].
    pub fn new(gpu: &Gpu, dims: &[usize]) -> Result<Self> {
        let sizes = Sizes::new(dims, size_of::<T>())?;
        let [gx, gy, gz] = sizes.grid;
        // The largest piece first: what does not fit must not cost the time of the rest.
        let spectrum = gpu.zeros(sizes.points(), "the spectrum of Q")?;
        let scratch = Scratch {
            rows: gpu.array(sizes.images * sizes.rows, "the image's transformed rows")?,
            planes: gpu.array(sizes.images * sizes.planes, "the image's transformed planes")?,
        };
        for plane in [[gx, gy], [gy, gz], [gx, gz]] {
            check(&plane)?;
        }
        let fft = |a: usize| {
            let (lie, lines) = sizes.lines(a);
            LineFft::new(gpu, sizes.grid[a], lie, lines, true)
        };
        let ffts = (0..dims.len()).map(fft).collect::<Result<_>>()?;
        let place = gpu.function(&place_kernels(size_of::<T>()), "place_kernel", 0)?;
        Ok(Convolver { sizes, ffts, place, spectrum, scratch: Mutex::new(scratch) })
    }

    /// Bytes that a convolver for images of `dims` voxels holds, its scratch included.
    pub fn bytes(dims: &[usize]) -> usize {
        let real = size_of::<T>();
        Sizes::new(dims, real).map_or(usize::MAX, |s| {
            let scratch = s.images.saturating_mul(s.rows.saturating_add(s.planes)).saturating_mul(2 * real);
            let lines = (0..s.ndim).map(|a| LineFft::<T>::bytes(s.grid[a], s.lines(a).0));
            lines.fold(s.points().saturating_mul(real).saturating_add(scratch), usize::saturating_add)
        })
    }

    /// Points of the half of the doubled grid that a kernel is placed on: [z][y][x], x from 0 to n - 1.
    pub fn kernel_len(&self) -> usize {
        self.sizes.n[0] * self.sizes.grid[1] * self.sizes.grid[2]
    }

    /// See [`crate::backend::Backend::place_kernel`]: addresses of a part of the kernel, and of its grid.
    pub fn place_kernel(&self, gpu: &Gpu, half: [bool; 3], q: u64, grid: u64) {
        assert!(!half[0]);
        let n = self.sizes.n.map(|n| n as i32);
        let [_, gy, gz] = self.sizes.grid.map(|g| g as i32);
        let half = i32::from(half[1]) << 1 | i32::from(half[2]) << 2;
        let blocks = self.sizes.n.iter().product::<usize>().div_ceil(256).min(65535) as u32;
        // SAFETY: a part has as many elements as an image, the grid those of `kernel_len`.
        unsafe { launch!(gpu, &self.place, [blocks, 1, 1], [256, 1, 1], 0; q, grid, n[0], n[1], n[2], gy, gz, half) };
    }

    /// See [`crate::backend::Backend::set_kernel`]: the address of its grid.
    pub fn set_kernel(&mut self, gpu: &Gpu, grid: u64) {
        let ([nx, _, _], [gx, gy, gz]) = (self.sizes.n, self.sizes.grid);
        if let Some(fft) = self.ffts.get(2) {
            let z = Side::new([1, 0, 0], nx * gy, gz, 0);
            fft.up(gpu, Lines::new([nx * gy, 1, 1]), grid, z, grid, z, 0);
        }
        let y = Side::new([1, nx * gy, 0], nx, gy, 0);
        self.ffts[1].up(gpu, Lines::new([nx, gz, 1]), grid, y, grid, y, 0);
        let (from, to) = (Side::new([nx, 0, 0], 1, nx, 0), Side::new([gx, 0, 0], 1, gx, 0));
        let scale = 1.0 / self.sizes.points() as f64;
        let rows = Lines::new([gy * gz, 1, 1]);
        self.ffts[0].real_parts(gpu, rows, grid, from, self.spectrum.address(), to, scale);
    }

    /// See [`crate::backend::Backend::spectrum`].
    pub fn spectrum(&self, gpu: &Gpu) -> Result<Vec<T>> {
        let mut natural = try_vec(self.spectrum.len(), T::ZERO, "a copy of the spectrum of Q")?;
        gpu.download(self.spectrum.address(), &mut natural)?;
        Ok(natural)
    }

    /// See [`crate::backend::Backend::set_spectrum`].
    pub fn set_spectrum(&mut self, gpu: &Gpu, natural: &[T]) -> Result<()> {
        assert_eq!(natural.len(), self.spectrum.len());
        let copy = gpu.upload(natural, "the spectrum of Q")?;
        gpu.copy(copy.address(), self.spectrum.address(), std::mem::size_of_val(natural));
        gpu.synchronize()
    }

    /// See [`crate::backend::Backend::convolve`]: addresses of as many images each, of `voxels` elements in all.
    pub fn convolve(&self, gpu: &Gpu, x: u64, y: u64, voxels: usize) {
        let each: usize = self.sizes.n.iter().product();
        let images = voxels / each;
        assert_eq!(voxels, images * each);
        // Kernels of two callers must not take turns on the scratch.
        let scratch = self.scratch.lock().unwrap_or_else(|e| e.into_inner());
        let lines = (0..self.sizes.ndim).map(|a| self.sizes.lines(a).1).max().unwrap_or(1);
        let most = self.sizes.images.min(arrays_at_once(lines));
        for first in (0..images).step_by(most) {
            let at = (first * each * size_of::<Complex<T>>()) as u64;
            self.convolve_at_once(gpu, x + at, y + at, most.min(images - first), &scratch);
        }
    }

    fn convolve_at_once(&self, gpu: &Gpu, x: u64, y: u64, images: usize, scratch: &Scratch<T>) {
        let ([nx, ny, nz], [gx, gy, gz]) = (self.sizes.n, self.sizes.grid);
        let (rows, planes, spectrum) = (scratch.rows.address(), scratch.planes.address(), self.spectrum.address());
        let x_lines = Lines::new([ny * nz * images, 1, 1]);
        let (x_image, x_whole) = (Side::new([nx, 0, 0], 1, nx, 0), Side::new([gx, 0, 0], 1, gx, 0));
        self.ffts[0].up(gpu, x_lines, x, x_image, rows, x_whole, 0);
        if let Some(fft) = self.ffts.get(2) {
            let y_lines = Lines::new([gx, nz * images, 1]);
            let (y_image, y_whole) = (Side::new([1, gx * ny, 0], gx, ny, 0), Side::new([1, gx * gy, 0], gx, gy, 0));
            self.ffts[1].up(gpu, y_lines, rows, y_image, planes, y_whole, 0);
            let plane = gx * gy;
            let (image, whole) = (Side::new([1, plane * nz, 0], plane, nz, 0), Side::new([1, 0, 0], plane, gz, 0));
            fft.convolve(gpu, Lines::new([plane, images, 1]), planes, image, spectrum, whole);
            self.ffts[1].down(gpu, y_lines, planes, y_whole, rows, y_image, 0);
        } else {
            let (image, whole) = (Side::new([1, gx * ny, 0], gx, ny, 0), Side::new([1, 0, 0], gx, gy, 0));
            self.ffts[1].convolve(gpu, Lines::new([gx, images, 1]), rows, image, spectrum, whole);
        }
        self.ffts[0].down(gpu, x_lines, rows, x_whole, y, x_image, 0);
    }
}
