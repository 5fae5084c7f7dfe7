//! Convolution of images with a Hermitian kernel through its real spectrum on the doubled grid.
//!
//! In 3D, z lines are padded to the doubled grid and transformed first. Then each plane of one z frequency is convolved
//! by itself, in three kernels. The first one pads and transforms x lines. The second one pads y lines, transforms
//! them, multiplies by the spectrum, transforms back and crops. The third one transforms x lines back and crops. Only
//! some planes are convolved at once, so that the doubled grid is never stored. Then z is transformed back. In 2D, an
//! image is one such plane.

use super::line_layout::{place_kernels, Arrangement, AxisLines, ImagePoints, Step};
use super::lines::{arrays_at_once, check, Buffers, ImageEnd, LineFft, Lines, Side};
use crate::backend::cuda::gpu::{launch, Gpu};
use crate::backend::cuda::graph::Graphs;
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
/// Maximum bytes of the planes that are convolved at once, unless one plane has more. With fewer, launches take longer
/// than the cache saves; with more, only memory is lost.
const PLANES: usize = 64 << 20;

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
    graphs: Graphs,
}

struct ConvolverScratch<T> {
    /// Images with z on the doubled grid: [image][z][y][x]. Empty in 2D.
    columns: DeviceArray<Complex<T>>,
    /// Planes with x on the doubled grid: [plane][y][x].
    rows: DeviceArray<Complex<T>>,
}

/// Sizes of image and grid (1 for a missing axis), and of the parts of a convolver.
struct Sizes {
    ndim: usize,
    n: [usize; 3],
    grid: [usize; 3],
    /// Number of images at once.
    images: usize,
    /// Number of planes at once.
    planes: usize,
}

impl Sizes {
    fn new(dims: &[usize], bytes: usize) -> Result<Self> {
        let n = three_axes(dims);
        let grid = [0, 1, 2].map(|a| dims.get(a).map_or(1, |&n| crate::base::fft_size::next_fast_size(2 * n)));
        let what = "the doubled grid";
        checked_product(&grid, what)?;
        let rows = checked_product(&[grid[0], n[1], 2 * bytes], what)?;
        let columns = checked_product(&[n[0], n[1], grid[2], 2 * bytes], what)?;
        let (ndim, gz) = (dims.len(), grid[2]);
        let images = (SEVERAL / if ndim == 2 { rows } else { columns }).clamp(1, MOST);
        let planes = match PLANES / rows {
            _ if ndim == 2 => images,
            // Equal parts of one image.
            most if most < gz => gz.div_ceil(gz.div_ceil(most.max(1))),
            most => (most / gz).min(images) * gz,
        };
        Ok(Sizes { ndim, n, grid, images, planes })
    }

    /// Returns the number of points of the doubled grid.
    fn points(&self) -> usize {
        self.grid.iter().product()
    }

    /// Returns the elements of scratch: columns and rows.
    fn scratch(&self) -> [usize; 2] {
        let ([nx, ny, _], [gx, _, gz]) = (self.n, self.grid);
        let columns = if self.ndim < 3 { 0 } else { nx * ny * gz };
        [self.images.saturating_mul(columns), self.planes.saturating_mul(gx * ny)]
    }

    /// Returns the lines of an axis that are transformed at once.
    fn lines(&self, a: usize) -> AxisLines {
        let (arrangement, count) = match a {
            0 => (Arrangement::Rows, self.n[1] * self.planes),
            1 => (Arrangement::Columns, self.grid[0] * self.planes),
            _ => (Arrangement::Columns, self.n[0] * self.n[1] * self.images),
        };
        AxisLines { n: self.grid[a], image: image_points(self.n[a]), arrangement, count, steps: steps(self.ndim, a) }
    }
}

/// Returns the image's points on a line of the doubled grid.
pub fn image_points(n: usize) -> ImagePoints {
    ImagePoints { count: n, origin: 0 }
}

/// Returns the steps for the lines of an axis. z lines are not part of planes. The axis that is transformed first is
/// multiplied by coil maps.
pub fn steps(ndim: usize, axis: usize) -> &'static [Step] {
    match (axis, ndim) {
        (0, 2) => &[Step::Transforms, Step::RealParts, Step::Maps],
        (0, _) => &[Step::Transforms, Step::RealParts],
        (1, _) => &[Step::WholeColumns, Step::Convolution],
        _ => &[Step::Transforms, Step::WholeColumns, Step::Maps, Step::ConjugateMaps],
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
        let [columns, rows] = sizes.scratch();
        let scratch = ConvolverScratch {
            columns: gpu.array(columns, "the image's transformed columns")?,
            rows: gpu.array(rows, "the transformed rows of planes")?,
        };
        for plane in [[gx, gy], [gy, gz], [gx, gz]] {
            check(&plane)?;
        }
        let axes: Vec<_> = (0..dims.len()).map(|a| sizes.lines(a)).collect();
        let (bytes, shared) = (size_of::<T>(), gpu.properties().shared);
        let place = place_kernels(bytes);
        let mut all: Vec<_> = axes.iter().flat_map(|lines| lines.kernels(bytes, shared)).collect();
        all.push(place.clone());
        gpu.load(&all);
        let ffts = axes.into_iter().map(|lines| LineFft::new(gpu, lines)).collect::<Result<_>>()?;
        let place = gpu.function(&place, "place_kernel", 0)?;
        Ok(Convolver { sizes, ffts, place, spectrum, scratch: Mutex::new(scratch), graphs: Graphs::default() })
    }

    /// Returns the graphs of convolutions with this convolver.
    pub fn graphs(&self) -> &Graphs {
        &self.graphs
    }

    /// Returns the bytes of a convolver for images of `dims` voxels and `kernels` kernels, including scratch.
    pub fn bytes(dims: &[usize], kernels: usize) -> usize {
        let real = size_of::<T>();
        Sizes::new(dims, real).map_or(usize::MAX, |s| {
            let [columns, rows] = s.scratch();
            let scratch = columns.saturating_add(rows).saturating_mul(2 * real);
            let lines = (0..s.ndim).map(|a| LineFft::<T>::bytes(s.grid[a], s.lines(a).arrangement));
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
    pub fn set_kernel(&mut self, gpu: &Gpu, kernel: usize, grid: ComplexSliceMut<T>) {
        let ([nx, _, _], [gx, gy, gz]) = (self.sizes.n, self.sizes.grid);
        if let Some(fft) = self.ffts.get(2) {
            let z = Side::new([1, 0, 0], nx * gy, gz, 0);
            fft.whole(gpu, Lines::new([nx * gy, 1, 1]), &grid, z);
        }
        let y = Side::new([1, nx * gy, 0], nx, gy, 0);
        self.ffts[1].whole(gpu, Lines::new([nx, gz, 1]), &grid, y);
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
        let most = self.images_at_once();
        // Either several kernels at once with all their images, or some images of one kernel. In 3D, lines of several
        // kernels have only one image of each.
        let several = self.sizes.ndim < 3 || images == 1;
        let kernels_at_once = if several { (most / images.max(1)).max(1) } else { 1 };
        let images_at_once = most.min(images.max(1));
        for kernel in kernels.clone().step_by(kernels_at_once) {
            let some = kernel..(kernel + kernels_at_once).min(kernels.end);
            let before = (kernel - kernels.start) * images;
            for first in (0..images).step_by(images_at_once) {
                let count = images_at_once.min(images - first) * some.len();
                let voxels = (before + first) * each..(before + first + count) * each;
                let (x, y) = (x.part(voxels.clone()), y.reborrow().part(voxels));
                match self.sizes.ndim {
                    2 => self.convolve_2d(gpu, some.clone(), count, x, y, &mut scratch.rows),
                    _ => self.convolve_3d(gpu, some.clone(), count, x, y, &mut scratch),
                }
            }
        }
    }

    /// Returns the maximum number of images that are transformed at once.
    fn images_at_once(&self) -> usize {
        self.sizes.images.min(self.most_images())
    }

    /// Returns the maximum number of images whose lines the kernels can count.
    fn most_images(&self) -> usize {
        arrays_at_once((0..self.sizes.ndim).map(|a| self.sizes.lines(a).count).max().unwrap_or(1))
    }

    /// Returns whether [`Convolver::convolve_coils`] exists for images of this size.
    pub fn has_coils(&self) -> bool {
        self.ffts.iter().any(LineFft::has_maps)
    }

    /// Implements [`crate::backend::Backend::convolve_coils`]. Returns whether the images have been added to y. In 2D
    /// they are in `products`: there are few lines, and different blocks transform those of different coils.
    pub fn convolve_coils(
        &self,
        gpu: &Gpu,
        maps: ComplexSlice<T>,
        x: ComplexSlice<T>,
        mut products: ComplexSliceMut<T>,
        y: ComplexSliceMut<T>,
    ) -> bool {
        let each = self.voxels();
        let coils = maps.len() / each;
        assert!(x.len() == each && y.len() == each && maps.len() == coils * each && products.len() == maps.len());
        // The work of two callers must not alternate on the scratch.
        let mut scratch = self.scratch.lock().unwrap_or_else(|e| e.into_inner());
        let parts =
            |most: usize| (0..coils).step_by(most).map(move |first| first * each..(first + most).min(coils) * each);
        if self.sizes.ndim == 2 {
            for voxels in parts(self.images_at_once()) {
                let planes = Planes { lines: [voxels.len() / each, 1], first: 0, steps: [0, 0] };
                let mut buffers = Buffers::Two(x, products.reborrow().part(voxels.clone()));
                self.convolve_planes(gpu, &planes, &mut buffers, Some(maps.part(voxels)), &mut scratch.rows);
            }
            return false;
        }
        let ConvolverScratch { columns, rows } = &mut *scratch;
        // Nothing else is written to `products`, which often has space for more images than the scratch.
        let room = (products.len() / self.column_len()).min(self.most_images());
        let most = room.max(self.images_at_once());
        let mut columns = if room == most { products } else { columns.view_mut() };
        let (z, [image, whole], plane) = (&self.ffts[2], self.z_sides(), self.sizes.n[0] * self.sizes.n[1]);
        for voxels in parts(most) {
            let (count, maps) = (voxels.len() / each, maps.part(voxels));
            z.up_maps(gpu, Lines::new([plane, count, 1]), x, maps, &columns, [image.of_all_coils(), whole]);
            self.convolve_columns(gpu, 0..1, count, columns.reborrow(), rows);
            let used = columns.as_slice().part(0..count * self.column_len());
            z.down_maps(gpu, Lines::new([plane, 1, 1]), used, maps, &y, [whole, image]);
        }
        true
    }

    /// Convolves 2D images, those of all these kernels.
    fn convolve_2d(
        &self,
        gpu: &Gpu,
        kernels: Range<usize>,
        images: usize,
        x: ComplexSlice<T>,
        y: ComplexSliceMut<T>,
        rows: &mut DeviceArray<Complex<T>>,
    ) {
        let planes = Planes {
            lines: [images / kernels.len(), kernels.len()],
            first: self.of(kernels.start).start,
            steps: [0, self.sizes.points()],
        };
        self.convolve_planes(gpu, &planes, &mut Buffers::Two(x, y), None, rows);
    }

    /// Convolves 3D images of one kernel, or one image of each of these kernels.
    fn convolve_3d(
        &self,
        gpu: &Gpu,
        kernels: Range<usize>,
        images: usize,
        x: ComplexSlice<T>,
        y: ComplexSliceMut<T>,
        scratch: &mut ConvolverScratch<T>,
    ) {
        let ([nx, ny, _], z, [image, whole]) = (self.sizes.n, &self.ffts[2], self.z_sides());
        let lines = Lines::new([nx * ny, images, 1]);
        let ConvolverScratch { columns, rows } = scratch;
        z.up(gpu, lines, &Buffers::Two(x, columns.view_mut()), [image, whole], ImageEnd::PLAIN);
        self.convolve_columns(gpu, kernels, images, columns.view_mut(), rows);
        z.down(gpu, lines, &Buffers::Two(columns.view(), y), [whole, image], ImageEnd::PLAIN);
    }

    /// Returns the sides of z lines in the image and on the doubled grid. Images are the second axis of the lines.
    fn z_sides(&self) -> [Side; 2] {
        let ([nx, ny, nz], gz, plane) = (self.sizes.n, self.sizes.grid[2], self.sizes.n[0] * self.sizes.n[1]);
        [Side::new([1, nx * ny * nz, 0], plane, nz, 0), Side::new([1, self.column_len(), 0], plane, gz, 0)]
    }

    /// Returns the elements of an image whose z lines are on the doubled grid.
    fn column_len(&self) -> usize {
        self.sizes.n[0] * self.sizes.n[1] * self.sizes.grid[2]
    }

    /// Convolves the planes of images whose z lines are transformed.
    fn convolve_columns(
        &self,
        gpu: &Gpu,
        kernels: Range<usize>,
        images: usize,
        mut columns: ComplexSliceMut<T>,
        rows: &mut DeviceArray<Complex<T>>,
    ) {
        let ([gx, gy, gz], points) = (self.sizes.grid, self.sizes.points());
        let plane = self.sizes.n[0] * self.sizes.n[1];
        let per_image = if kernels.len() > 1 { points } else { 0 };
        // Several images at once, or a part of the planes of one.
        let (images_at_once, planes_at_once) = ((self.sizes.planes / gz).max(1), self.sizes.planes.min(gz));
        for image in (0..images).step_by(images_at_once) {
            for first in (0..gz).step_by(planes_at_once) {
                let lines = [planes_at_once.min(gz - first), images_at_once.min(images - image)];
                let planes = Planes {
                    lines,
                    first: self.of(kernels.start).start + image * per_image + first * gx * gy,
                    steps: [gx * gy, per_image],
                };
                let begin = (image * gz + first) * plane;
                let elements = begin..begin + lines[0] * lines[1] * plane;
                let mut planes_of = Buffers::InPlace(columns.reborrow().part(elements));
                self.convolve_planes(gpu, &planes, &mut planes_of, None, rows);
            }
        }
    }

    /// Convolves planes, [plane][y][x]. With `maps`, the input is one image, and plane c is this image times map c.
    fn convolve_planes(
        &self,
        gpu: &Gpu,
        planes: &Planes,
        buffers: &mut Buffers<'_, T>,
        maps: Option<ComplexSlice<T>>,
        rows: &mut DeviceArray<Complex<T>>,
    ) {
        let ([nx, ny, _], [gx, gy, _]) = (self.sizes.n, self.sizes.grid);
        let [inner, outer] = planes.lines;
        // Planes are the second axis of the lines.
        let x_lines = Lines::new([ny, inner * outer, 1]);
        let (x_image, x_whole) = (Side::new([nx, nx * ny, 0], 1, nx, 0), Side::new([gx, gx * ny, 0], 1, gx, 0));
        match maps {
            Some(maps) => {
                let sides = [x_image.of_all_coils(), x_whole];
                self.ffts[0].up_maps(gpu, x_lines, buffers.input(), maps, &rows.view_mut(), sides);
            }
            None => {
                let to_rows = Buffers::Two(buffers.input(), rows.view_mut());
                self.ffts[0].up(gpu, x_lines, &to_rows, [x_image, x_whole], ImageEnd::PLAIN);
            }
        }
        let image = Side::new([1, gx * ny, gx * ny * inner], gx, ny, 0);
        let whole = Side::new([1, planes.steps[0], planes.steps[1]], gx, gy, 0);
        let spectra = self.spectrum.view().part(planes.first..self.spectrum.len());
        self.ffts[1].convolve(gpu, Lines::new([gx, inner, outer]), &rows.view_mut(), image, spectra, whole);
        let from_rows = Buffers::Two(rows.view(), buffers.output());
        self.ffts[0].down(gpu, x_lines, &from_rows, [x_whole, x_image], ImageEnd::PLAIN);
    }
}

/// Planes that are convolved at once.
struct Planes {
    /// Their number along two axes, the first fastest.
    lines: [usize; 2],
    /// The position of the first plane's spectrum, and the distance to the next along both axes.
    first: usize,
    steps: [usize; 2],
}
