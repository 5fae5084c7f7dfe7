//! Convolution of images with a Hermitian kernel through its real spectrum on the doubled grid.
//!
//! x lines and y lines are padded to the doubled grid. One kernel pads, transforms, multiplies with the spectrum,
//! transforms back and crops z lines, so that the whole doubled grid is never stored. Then y and x are transformed
//! back. In 2D, y is the middle axis.

use super::lines::{arrays_at_once, check, place_kernels, Arrangement, Buffers, ImageEnd, LineFft, Lines, Side};
use crate::backend::cuda::gpu::{launch, Gpu};
use crate::backend::cuda::memory::{ComplexSlice, ComplexSliceMut, DeviceArray};
use crate::backend::cuda::runtime::Function;
use crate::backend::Span;
use crate::base::error::{checked_product, try_vec, Result};
use crate::base::real::Real;
use crate::base::sizes::three_axes;
use num_complex::Complex;
use std::ops::Range;
use std::sync::Mutex;

/// Maximum bytes of scratch for several images at once, so that small images fill the GPU.
const SEVERAL: usize = 32 << 20;
/// Maximum number of images at once.
const MOST: usize = 32;

/// See [`crate::backend::Backend::Convolver`].
pub struct Convolver<T: Real> {
    sizes: Sizes,
    /// One entry per axis.
    ffts: Vec<LineFft<T>>,
    place: Function,
    /// Spectra of all kernels in natural order, divided by the number of grid points.
    spectrum: DeviceArray<T>,
    /// Held by the thread that queues a convolution.
    scratch: Mutex<ConvolverScratch<T>>,
}

struct ConvolverScratch<T> {
    /// Images with x on the doubled grid: [image][z][y][x].
    rows: DeviceArray<Complex<T>>,
    /// Images with x and y on the doubled grid: [image][z][y][x]. Empty in 2D.
    planes: DeviceArray<Complex<T>>,
}

/// Sizes of image and grid (1 for a missing axis), and of the parts of a convolver.
struct Sizes {
    ndim: usize,
    n: [usize; 3],
    grid: [usize; 3],
    /// Number of images at once.
    images: usize,
    /// Elements of scratch per image.
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

    /// Returns the number of points of the doubled grid.
    fn points(&self) -> usize {
        self.grid.iter().product()
    }

    /// Returns the arrangement of the lines of an axis, and their number.
    fn lines(&self, a: usize) -> (Arrangement, usize) {
        let ([_, ny, nz], [gx, gy, _]) = (self.n, self.grid);
        match a {
            0 => (Arrangement::Rows, ny * nz),
            1 => (Arrangement::Columns, gx * nz),
            _ => (Arrangement::Columns, gx * gy),
        }
    }
}

impl<T: Real> Convolver<T> {
    /// Implements [`crate::backend::Backend::convolver`].
    pub fn new(gpu: &Gpu, dims: &[usize], kernels: usize) -> Result<Self> {
        let sizes = Sizes::new(dims, size_of::<T>())?;
        let [gx, gy, gz] = sizes.grid;
        // The largest array first, so that a lack of memory is found early.
        let points = checked_product(&[sizes.points(), kernels], "the spectrum of Q")?;
        let spectrum = gpu.zeros(points, "the spectrum of Q")?;
        let scratch = ConvolverScratch {
            rows: gpu.array(sizes.images * sizes.rows, "the image's transformed rows")?,
            planes: gpu.array(sizes.images * sizes.planes, "the image's transformed planes")?,
        };
        for plane in [[gx, gy], [gy, gz], [gx, gz]] {
            check(&plane)?;
        }
        let fft = |a: usize| {
            let (arrangement, lines) = sizes.lines(a);
            LineFft::new(gpu, sizes.grid[a], arrangement, lines, true)
        };
        let ffts = (0..dims.len()).map(fft).collect::<Result<_>>()?;
        let place = gpu.function(&place_kernels(size_of::<T>()), "place_kernel", 0)?;
        Ok(Convolver { sizes, ffts, place, spectrum, scratch: Mutex::new(scratch) })
    }

    /// Returns the bytes of a convolver for images of `dims` voxels and `kernels` kernels, including scratch.
    pub fn bytes(dims: &[usize], kernels: usize) -> usize {
        let real = size_of::<T>();
        Sizes::new(dims, real).map_or(usize::MAX, |s| {
            let scratch = s.images.saturating_mul(s.rows.saturating_add(s.planes)).saturating_mul(2 * real);
            let lines = (0..s.ndim).map(|a| LineFft::<T>::bytes(s.grid[a], s.lines(a).0));
            let spectra = s.points().saturating_mul(kernels).saturating_mul(real);
            lines.fold(spectra.saturating_add(scratch), usize::saturating_add)
        })
    }

    /// Returns the number of points of the half of the doubled grid on which a kernel is placed: [z][y][x], x from 0 to
    /// n - 1.
    pub fn kernel_len(&self) -> usize {
        self.sizes.n[0] * self.sizes.grid[1] * self.sizes.grid[2]
    }

    /// Implements [`crate::backend::Backend::place_kernel`].
    pub fn place_kernel(&self, gpu: &Gpu, half: [bool; 3], q: ComplexSlice<T>, grid: ComplexSliceMut<T>) {
        assert!(!half[0] && q.len() == self.voxels() && grid.len() == self.kernel_len());
        let n = self.sizes.n.map(|n| n as i32);
        let [_, gy, gz] = self.sizes.grid.map(|g| g as i32);
        let half = i32::from(half[1]) << 1 | i32::from(half[2]) << 2;
        let blocks = self.voxels().div_ceil(256).min(65535) as u32;
        let (q, grid) = (q.pointer(), grid.pointer());
        // SAFETY: the kernel's parameters are these. A part has the image's elements, the grid those of `kernel_len`.
        unsafe { launch!(gpu, &self.place, [blocks, 1, 1], [256, 1, 1], 0; q, grid, n[0], n[1], n[2], gy, gz, half) };
    }

    /// Implements [`crate::backend::Backend::set_kernel`].
    pub fn set_kernel(&mut self, gpu: &Gpu, kernel: usize, mut grid: ComplexSliceMut<T>) {
        let ([nx, _, _], [gx, gy, gz]) = (self.sizes.n, self.sizes.grid);
        if let Some(fft) = self.ffts.get(2) {
            let z = Side::new([1, 0, 0], nx * gy, gz, 0);
            fft.up(gpu, Lines::new([nx * gy, 1, 1]), &Buffers::InPlace(grid.reborrow()), [z, z], ImageEnd::PLAIN);
        }
        let y = Side::new([1, nx * gy, 0], nx, gy, 0);
        self.ffts[1].up(gpu, Lines::new([nx, gz, 1]), &Buffers::InPlace(grid.reborrow()), [y, y], ImageEnd::PLAIN);
        let sides = [Side::new([nx, 0, 0], 1, nx, 0), Side::new([gx, 0, 0], 1, gx, 0)];
        let scale = 1.0 / self.sizes.points() as f64;
        let rows = Lines::new([gy * gz, 1, 1]);
        let range = self.of(kernel);
        self.ffts[0].real_parts(gpu, rows, grid.as_slice(), &self.spectrum.view_mut().part(range), sides, scale);
    }

    /// Implements [`crate::backend::Backend::spectrum`].
    pub fn spectrum(&self, gpu: &Gpu, kernel: usize) -> Result<Vec<T>> {
        let mut natural = try_vec(self.sizes.points(), T::ZERO, "a copy of the spectrum of Q")?;
        gpu.download(self.spectrum.view().part(self.of(kernel)), &mut natural)?;
        Ok(natural)
    }

    /// Returns the range of a kernel's spectrum.
    fn of(&self, kernel: usize) -> Range<usize> {
        let points = self.sizes.points();
        kernel * points..(kernel + 1) * points
    }

    /// Implements [`crate::backend::Backend::set_spectrum`].
    pub fn set_spectrum(&mut self, gpu: &Gpu, kernel: usize, natural: &[T]) -> Result<()> {
        let copy = gpu.upload(natural, "the spectrum of Q")?;
        let range = self.of(kernel);
        gpu.copy(copy.view(), self.spectrum.view_mut().part(range));
        gpu.synchronize()
    }

    fn voxels(&self) -> usize {
        self.sizes.n.iter().product()
    }

    /// Implements [`crate::backend::Backend::convolve`].
    pub fn convolve(&self, gpu: &Gpu, kernels: Range<usize>, x: ComplexSlice<T>, mut y: ComplexSliceMut<T>) {
        let each = self.voxels();
        // Images per kernel.
        let images = x.len() / (each * kernels.len());
        assert!(x.len() == images * kernels.len() * each && y.len() == x.len());
        // The work of two callers must not alternate on the scratch.
        let mut scratch = self.scratch.lock().unwrap_or_else(|e| e.into_inner());
        let lines = (0..self.sizes.ndim).map(|a| self.sizes.lines(a).1).max().unwrap_or(1);
        let most = self.sizes.images.min(arrays_at_once(lines));
        // Either several kernels at once with all their images, or some images of one kernel.
        let (kernels_at_once, images_at_once) = ((most / images.max(1)).max(1), most.min(images.max(1)));
        for kernel in kernels.clone().step_by(kernels_at_once) {
            let some = kernel..(kernel + kernels_at_once).min(kernels.end);
            let before = (kernel - kernels.start) * images;
            for first in (0..images).step_by(images_at_once) {
                let count = images_at_once.min(images - first) * some.len();
                let voxels = (before + first) * each..(before + first + count) * each;
                let (x, y) = (x.part(voxels.clone()), y.reborrow().part(voxels));
                self.convolve_at_once(gpu, some.clone(), count, x, y, &mut scratch);
            }
        }
    }

    /// Convolves at once. `images` are those of all these kernels.
    fn convolve_at_once(
        &self,
        gpu: &Gpu,
        kernels: Range<usize>,
        images: usize,
        x: ComplexSlice<T>,
        y: ComplexSliceMut<T>,
        scratch: &mut ConvolverScratch<T>,
    ) {
        let ([nx, ny, nz], [gx, gy, gz]) = (self.sizes.n, self.sizes.grid);
        let spectra = self.spectrum.view().part(self.of(kernels.start).start..self.of(kernels.end - 1).end);
        let (points, each) = (self.sizes.points(), images / kernels.len());
        let ConvolverScratch { rows, planes } = scratch;
        let x_lines = Lines::new([ny * nz * images, 1, 1]);
        let (x_image, x_whole) = (Side::new([nx, 0, 0], 1, nx, 0), Side::new([gx, 0, 0], 1, gx, 0));
        self.ffts[0].up(gpu, x_lines, &Buffers::Two(x, rows.view_mut()), [x_image, x_whole], ImageEnd::PLAIN);
        if let Some(fft) = self.ffts.get(2) {
            let y_lines = Lines::new([gx, nz * images, 1]);
            let (y_image, y_whole) = (Side::new([1, gx * ny, 0], gx, ny, 0), Side::new([1, gx * gy, 0], gx, gy, 0));
            self.ffts[1].up(
                gpu,
                y_lines,
                &Buffers::Two(rows.view(), planes.view_mut()),
                [y_image, y_whole],
                ImageEnd::PLAIN,
            );
            let plane = gx * gy;
            let image = Side::new([1, plane * nz, plane * nz * each], plane, nz, 0);
            let whole = Side::new([1, 0, points], plane, gz, 0);
            let lines = Lines::new([plane, each, kernels.len()]);
            fft.convolve(gpu, lines, &planes.view_mut(), image, spectra, whole);
            self.ffts[1].down(
                gpu,
                y_lines,
                &Buffers::Two(planes.view(), rows.view_mut()),
                [y_whole, y_image],
                ImageEnd::PLAIN,
            );
        } else {
            let image = Side::new([1, gx * ny, gx * ny * each], gx, ny, 0);
            let whole = Side::new([1, 0, points], gx, gy, 0);
            let lines = Lines::new([gx, each, kernels.len()]);
            self.ffts[1].convolve(gpu, lines, &rows.view_mut(), image, spectra, whole);
        }
        self.ffts[0].down(gpu, x_lines, &Buffers::Two(rows.view(), y), [x_whole, x_image], ImageEnd::PLAIN);
    }
}
