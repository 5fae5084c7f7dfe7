//! Pruned multi-dimensional FFTs between an oversampled grid and an image. `lines` has the transforms of single lines,
//! `convolver` the convolution on the doubled grid.
//!
//! The axes are transformed one at a time, in place on the grid. From the grid to the image: z first, of which only the
//! image's planes remain, then y, then x directly into the image. From the image to the grid: the reverse. Lines that
//! are zero, and lines that are not needed, are not transformed. The correction is applied when an axis is loaded or
//! stored.
//!
//! cuFFT is not used: it transforms whole grids, neither crops nor corrects, and users would have to install it.
//! examples/gpu_ffts.rs prints both times. These FFTs take 0.6 to 0.7 of cuFFT's time in 3D on an H200, and 0.75 to 0.9
//! in 2D.

mod convolver;
mod line_layout;
mod lines;

pub use convolver::Convolver;

use super::compile::Kernels;
use super::gpu::Gpu;
use super::graph::new_id;
use super::kernel_check::CheckArguments;
use super::memory::{ComplexSlice, ComplexSliceMut, DeviceArray};
use super::runtime::Properties;
use crate::backend::Span;
use crate::base::error::{checked_product, Result};
use crate::base::fft_size::next_fast_size;
use crate::base::real::Real;
use crate::base::sizes::three_axes;
use line_layout::{Arrangement, AxisLines, ImagePoints, Step};
use lines::{arrays_at_once, check, Buffers, ImageEnd, LineFft, Lines, Side};
use std::ops::Range;

/// See [`crate::backend::Backend::GridFft`].
pub struct GridFft<T: Real> {
    /// Sizes; 1 for a missing axis.
    dims: [usize; 3],
    grid: [usize; 3],
    /// One entry per axis.
    axes: Vec<Axis<T>>,
    id: u64,
}

struct Axis<T: Real> {
    fft: LineFft<T>,
    correction: DeviceArray<T>,
}

/// Returns the lines of axis `a`.
fn lines_of(a: usize, dims: [usize; 3], grid: [usize; 3]) -> AxisLines {
    let (arrangement, count) = match a {
        0 => (Arrangement::Rows, dims[1] * dims[2]),
        1 => (Arrangement::Columns, grid[0] * dims[2]),
        _ => (Arrangement::Columns, grid[0] * grid[1]),
    };
    AxisLines { n: grid[a], image: image_points(dims[a]), arrangement, count, steps: STEPS }
}

/// The steps of [`GridFft`].
const STEPS: &[Step] = &[Step::Transforms];

/// Returns the image's points on a line of the oversampled grid.
fn image_points(n: usize) -> ImagePoints {
    ImagePoints { count: n, origin: n / 2 }
}

impl<T: Real> GridFft<T> {
    /// Implements [`crate::backend::Backend::grid_fft`].
    pub fn new(gpu: &Gpu, dims: &[usize], grid: &[usize], correction: &[Vec<f64>]) -> Result<Self> {
        checked_product(grid, "the oversampled grid")?;
        let count = dims.len();
        let (dims, grid) = (three_axes(dims), three_axes(grid));
        check(&grid[..2])?;
        let axis = |a: usize| {
            let lines = lines_of(a, dims, grid);
            check(&[lines.count])?;
            let factors: Vec<T> = correction[a].iter().map(|&c| T::of(c)).collect();
            Ok(Axis { fft: LineFft::new(gpu, lines)?, correction: gpu.send(&factors, "the correction of the window")? })
        };
        Ok(GridFft { dims, grid, axes: (0..count).map(axis).collect::<Result<_>>()?, id: new_id() })
    }

    /// Returns the number of these transforms, see [`Sequence::with`](super::graph::Sequence::with).
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns for each axis from x on, for `arrays` arrays: the lines, and their sides in the grid of whole lines and
    /// of pruned ones. Pruned rows are arranged in the image.
    fn sides(&self, arrays: usize) -> [(Lines, Side, Side); 3] {
        let ([nx, ny, nz], [gx, gy, gz]) = (self.dims, self.grid);
        let (plane, cells, voxels) = (gx * gy, gx * gy * gz, nx * ny * nz);
        let side = |a: usize, across, along| {
            let (n, whole) = (self.dims[a], self.grid[a]);
            (Side::new(across, along, whole, 0), Side::new(across, along, n, image_points(n).origin))
        };
        let x = (side(0, [gx, plane, cells], 1).0, side(0, [nx, nx * ny, voxels], 1).1);
        let y = side(1, [1, plane, cells], gx);
        let z = side(2, [1, cells, 0], plane);
        [
            (Lines::new([ny, nz, arrays]), x.0, x.1),
            (Lines::new([gx, nz, arrays]), y.0, y.1),
            (Lines::new([plane, arrays, 1]), z.0, z.1),
        ]
    }

    /// Iterates over parts with the maximum number of arrays: their number, cells and voxels.
    fn parts(&self, cells: usize, voxels: usize) -> impl Iterator<Item = (usize, Range<usize>, Range<usize>)> {
        let (cells_each, voxels_each) = (self.grid.iter().product::<usize>(), self.dims.iter().product::<usize>());
        let arrays = cells / cells_each;
        assert!(cells == arrays * cells_each && voxels == arrays * voxels_each);
        let most = self.arrays_at_once();
        (0..arrays).step_by(most).map(move |first| {
            let end = (first + most).min(arrays);
            (end - first, first * cells_each..end * cells_each, first * voxels_each..end * voxels_each)
        })
    }

    /// Returns whether [`GridFft::image_to_grid`] can check these images: one kernel reads all of them.
    pub fn can_check(&self, image: ComplexSlice<T>) -> bool {
        let arrays = image.len() / self.dims.iter().product::<usize>();
        self.axes[0].fft.can_check() && arrays <= self.arrays_at_once()
    }

    /// Returns the maximum number of arrays that a kernel transforms.
    fn arrays_at_once(&self) -> usize {
        let most = (0..self.axes.len()).map(|a| lines_of(a, self.dims, self.grid).count).max().unwrap_or(1);
        arrays_at_once(most)
    }

    /// Implements [`crate::backend::Backend::grid_to_image`]. If the check has failed, the image is not written.
    pub fn grid_to_image(
        &self,
        gpu: &Gpu,
        mut grid: ComplexSliceMut<T>,
        mut image: ComplexSliceMut<T>,
        check: CheckArguments<T>,
    ) {
        for (arrays, cells, voxels) in self.parts(grid.len(), image.len()) {
            let (mut grid, mut image) = (grid.reborrow().part(cells), image.reborrow().part(voxels));
            for (a, axis) in self.axes.iter().enumerate().rev() {
                let (lines, whole, pruned) = self.sides(arrays)[a];
                let buffers = match a {
                    0 => Buffers::Two(grid.as_slice(), image.reborrow()),
                    _ => Buffers::InPlace(grid.reborrow()),
                };
                let check = if a == 0 { check } else { CheckArguments::NONE };
                let end = ImageEnd { factor: Some(axis.correction.view()), check };
                axis.fft.down(gpu, lines, &buffers, [whole, pruned], end);
            }
        }
    }

    /// Implements [`crate::backend::Backend::image_to_grid`]. The check is of the image, see [`GridFft::can_check`].
    pub fn image_to_grid(
        &self,
        gpu: &Gpu,
        image: ComplexSlice<T>,
        mut grid: ComplexSliceMut<T>,
        check: CheckArguments<T>,
    ) {
        for (arrays, cells, voxels) in self.parts(grid.len(), image.len()) {
            let (image, mut grid) = (image.part(voxels), grid.reborrow().part(cells));
            for (a, axis) in self.axes.iter().enumerate() {
                let (lines, whole, pruned) = self.sides(arrays)[a];
                let buffers = match a {
                    0 => Buffers::Two(image, grid.reborrow()),
                    _ => Buffers::InPlace(grid.reborrow()),
                };
                let check = if a == 0 { check } else { CheckArguments::NONE };
                let end = ImageEnd { factor: Some(axis.correction.view()), check };
                axis.fft.up(gpu, lines, &buffers, [pruned, whole], end);
            }
        }
    }
}

/// Returns the kernels that [`GridFft::new`] uses.
pub fn plan_kernels<T: Real>(properties: &Properties, dims: &[usize], grid: &[usize]) -> Vec<Kernels> {
    let (count, dims, grid) = (dims.len(), three_axes(dims), three_axes(grid));
    (0..count).flat_map(|a| lines_of(a, dims, grid).kernels(size_of::<T>(), properties.shared)).collect()
}

/// Returns the kernels for grids and doubled grids of usual sizes.
pub fn usual_kernels() -> Vec<Kernels> {
    let mut all = vec![line_layout::place_kernels(4), line_layout::place_kernels(8)];
    let mut add = |n, image, arrangement, bytes, count, steps| {
        let lines = AxisLines { n, image, arrangement, count, steps };
        // Lines of usual sizes fit in the 64 KiB that every GPU has.
        for kernels in lines.kernels(bytes, 64 << 10) {
            if !all.contains(&kernels) {
                all.push(kernels);
            }
        }
    };
    let (rows, columns) = (Arrangement::Rows, Arrangement::Columns);
    for bytes in [4, 8] {
        for n in [64, 96, 128, 192, 256] {
            for oversampling in [1.25, 1.5, 2.0] {
                let (grid, image) = (next_fast_size((oversampling * n as f64) as usize), image_points(n));
                // 3D, then 2D.
                for lines in [grid * grid, grid] {
                    add(grid, image, rows, bytes, lines, STEPS);
                    add(grid, image, columns, bytes, lines, STEPS);
                }
            }
            let (grid, image) = (2 * n, convolver::image_points(n));
            for (ndim, lines) in [(3, grid * grid), (2, grid)] {
                add(grid, image, rows, bytes, lines, convolver::steps(ndim, 0));
                add(grid, image, columns, bytes, lines, convolver::steps(ndim, 1));
            }
            add(grid, image, columns, bytes, grid * grid, convolver::steps(3, 2));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::Cpu;
    use crate::backend::cuda::runtime;
    use crate::backend::Backend;
    use num_complex::Complex;

    /// Returns the first GPU, or prints a line if the machine has no GPU.
    fn gpu() -> Option<Gpu> {
        // SAFETY: no stream is passed.
        let gpu = runtime::first_usable().map(|index| unsafe { Gpu::new(index, None, 0) }.unwrap());
        if gpu.is_none() {
            crate::backend::cuda::skipped("transforms on a GPU");
        }
        gpu
    }

    fn random<T: Real>(len: usize) -> Vec<Complex<T>> {
        use std::hash::{BuildHasher, Hasher, RandomState};
        let mut state = RandomState::new().build_hasher().finish() | 1;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 40) as f64 / (1u64 << 24) as f64 - 0.5
        };
        (0..len).map(|_| Complex::new(T::of(next()), T::of(next()))).collect()
    }

    fn poisoned<T: Real>(len: usize) -> Vec<Complex<T>> {
        vec![Complex::new(T::of(f64::NAN), T::of(f64::NAN)); len]
    }

    fn wide<T: Real>(z: &[Complex<T>]) -> Vec<Complex<f64>> {
        z.iter().map(|z| Complex::new(z.re.wide(), z.im.wide())).collect()
    }

    fn close<T: Real>(found: &[Complex<T>], expected: &[Complex<f64>], what: &str) {
        let norm = |z: &mut dyn Iterator<Item = Complex<f64>>| z.map(|z| z.norm_sqr()).sum::<f64>().sqrt();
        let difference = norm(&mut wide(found).iter().zip(expected).map(|(a, b)| a - b));
        let error = difference / norm(&mut expected.iter().copied());
        // The CPU's sums in double precision have errors of this size themselves. NaN must not pass.
        let allowed = if size_of::<T>() == 8 { 8.0 } else { 5.0 };
        assert!(error <= allowed * T::EPSILON, "{what} {}: {error:e}", T::NAME);
    }

    fn check_grid<T: Real>(gpu: &Gpu, dims: &[usize], grid: &[usize], arrays: usize) {
        let what = format!("{dims:?} {grid:?} x {arrays}");
        let correction: Vec<Vec<f64>> =
            dims.iter().map(|&n| (0..n).map(|i| 0.5 + (i * 7 % 11) as f64 / 11.0).collect()).collect();
        let cpu = Cpu::new(1, crate::Simd::Auto).unwrap();
        let reference = Backend::<f64>::grid_fft(&cpu, dims, grid, &correction).unwrap();
        let fft = GridFft::<T>::new(gpu, dims, grid, &correction).unwrap();
        let (cells, voxels) = (arrays * grid.iter().product::<usize>(), arrays * dims.iter().product::<usize>());
        let (grids, images) = (random::<T>(cells), random::<T>(voxels));

        let mut expected = poisoned(voxels);
        cpu.grid_to_image(&reference, &mut wide(&grids), &mut expected);
        let mut found = [poisoned::<T>(voxels), poisoned(voxels)];
        for found in &mut found {
            let (mut from, mut to) = (gpu.upload(&grids, "grids").unwrap(), gpu.upload(found, "images").unwrap());
            fft.grid_to_image(gpu, from.view_mut(), to.view_mut(), CheckArguments::NONE);
            gpu.download(to.view(), found).unwrap();
        }
        close(&found[0], &expected, &what);
        assert!(found[0] == found[1], "{what}");

        let mut expected = poisoned(cells);
        cpu.image_to_grid(&reference, &wide(&images), &mut expected);
        let mut found = [poisoned::<T>(cells), poisoned(cells)];
        for found in &mut found {
            let (from, mut to) = (gpu.upload(&images, "images").unwrap(), gpu.upload(found, "grids").unwrap());
            fft.image_to_grid(gpu, from.view(), to.view_mut(), CheckArguments::NONE);
            gpu.download(to.view(), found).unwrap();
        }
        close(&found[0], &expected, &what);
        assert!(found[0] == found[1], "{what}");
    }

    #[test]
    fn pruned_transforms_agree_with_the_cpus() {
        let Some(gpu) = gpu() else { return };
        fn both(gpu: &Gpu, dims: &[usize], grid: &[usize], arrays: usize) {
            check_grid::<f32>(gpu, dims, grid, arrays);
            check_grid::<f64>(gpu, dims, grid, arrays);
        }
        both(&gpu, &[1, 5], &[8, 8], 3);
        both(&gpu, &[5, 1], &[14, 2], 1);
        both(&gpu, &[33, 100], &[48, 126], 2);
        both(&gpu, &[256, 200], &[320, 384], 1);
        both(&gpu, &[1, 1, 1], &[8, 8, 8], 2);
        both(&gpu, &[20, 13, 9], &[28, 18, 12], 32);
        both(&gpu, &[50, 61, 70], &[80, 96, 112], 1);
        both(&gpu, &[6, 90, 120], &[8, 120, 160], 1);
        // Long columns of three passes, with 64 and 32 bytes of neighbours.
        both(&gpu, &[900, 1555], &[1120, 1944], 1);
        both(&gpu, &[40, 2400], &[48, 3000], 2);
        // Lines that do not fit in shared memory.
        both(&gpu, &[40_000, 3], &[64_000, 4], 1);
        both(&gpu, &[3, 30_001], &[4, 42_000], 2);
    }

    fn check_convolution<T: Real>(gpu: &Gpu, dims: &[usize], arrays: usize) {
        let what = format!("{dims:?} x {arrays}");
        let cpu = Cpu::new(1, crate::Simd::Auto).unwrap();
        let voxels: usize = dims.iter().product();
        const KERNELS: usize = 3;
        let mut reference = Backend::<f64>::convolver(&cpu, dims, KERNELS).unwrap();
        let mut convolver = Convolver::<T>::new(gpu, dims, KERNELS).unwrap();
        let mut spectra = Vec::new();
        for kernel in 0..KERNELS {
            let mut reference_grid = Backend::<f64>::kernel_grid(&cpu, &reference).unwrap();
            let mut grid = gpu.zeros::<Complex<T>>(convolver.kernel_len(), "Q").unwrap();
            for o in 0..1 << (dims.len() - 1) {
                let half = [false, o & 1 != 0, o & 2 != 0];
                let q = random::<T>(voxels);
                let on_gpu = gpu.upload(&q, "q").unwrap();
                convolver.place_kernel(gpu, half, on_gpu.view(), grid.view_mut());
                cpu.place_kernel(&reference, half, &wide(&q), &mut reference_grid);
            }
            cpu.set_kernel(&mut reference, kernel, &mut reference_grid);
            convolver.set_kernel(gpu, kernel, grid.view_mut());
            let spectrum = convolver.spectrum(gpu, kernel).unwrap();
            let complex = |r: &[f64]| r.iter().map(|&r| Complex::new(r, 0.0)).collect::<Vec<_>>();
            let found: Vec<Complex<T>> = spectrum.iter().map(|&r| Complex::new(r, T::ZERO)).collect();
            close(&found, &complex(&Backend::<f64>::spectrum(&cpu, &reference, kernel).unwrap()), &what);
            spectra.push(spectrum);
        }

        // With the last two kernels, then with the first.
        for kernels in [1..KERNELS, 0..1] {
            let x = random::<T>(voxels * arrays * kernels.len());
            let mut expected = Vec::new();
            for (i, x) in x.chunks_exact(voxels).enumerate() {
                let mut y = poisoned(voxels);
                let kernel = kernels.start + i / arrays;
                cpu.convolve(&reference, kernel..kernel + 1, &wide(x), &mut y);
                expected.extend(y);
            }
            let mut all = poisoned(x.len());
            cpu.convolve(&reference, kernels.clone(), &wide(&x), &mut all);
            assert!(all == expected, "{what}");
            let on_gpu = gpu.upload(&x, "x").unwrap();
            let run = |convolver: &Convolver<T>| {
                let mut found = poisoned::<T>(x.len());
                let mut y = gpu.upload(&found, "y").unwrap();
                convolver.convolve(gpu, kernels.clone(), on_gpu.view(), y.view_mut());
                gpu.download(y.view(), &mut found).unwrap();
                found
            };
            let found = run(&convolver);
            close(&found, &expected, &what);
            assert!(found == run(&convolver), "{what}");
            // A second convolver with these spectra.
            let mut other = Convolver::<T>::new(gpu, dims, KERNELS).unwrap();
            for (kernel, spectrum) in spectra.iter().enumerate() {
                other.set_spectrum(gpu, kernel, spectrum).unwrap();
            }
            assert!(found == run(&other), "{what}");
        }
        check_coils(gpu, &convolver, &what, (voxels, arrays), |x, y| cpu.convolve(&reference, 0..1, x, y));
    }

    /// Compares images times coil maps, convolved with the first kernel, with the same steps on the CPU.
    fn check_coils<T: Real>(
        gpu: &Gpu,
        convolver: &Convolver<T>,
        what: &str,
        (voxels, coils): (usize, usize),
        convolve: impl Fn(&[Complex<f64>], &mut [Complex<f64>]),
    ) {
        if !convolver.has_coils() {
            return;
        }
        let (maps, x, before) = (random::<T>(voxels * coils), random::<T>(voxels), random::<T>(voxels));
        let (wide_maps, wide_x, mut sum) = (wide(&maps), wide(&x), wide(&before));
        let images: Vec<_> = wide_maps.iter().enumerate().map(|(i, s)| s * wide_x[i % voxels]).collect();
        let mut convolved = poisoned(images.len());
        convolve(&images, &mut convolved);
        wide_maps.iter().zip(&convolved).enumerate().for_each(|(i, (s, z))| sum[i % voxels] += s.conj() * z);
        let [on_maps, on_x] = [&maps, &x].map(|z| gpu.upload(z, "maps").unwrap());
        let mut runs = (0..2).map(|_| {
            let mut found = [before.clone(), poisoned::<T>(images.len())];
            let [mut y, mut products] = [&found[0], &found[1]].map(|z| gpu.upload(z, "images").unwrap());
            let is_added =
                convolver.convolve_coils(gpu, on_maps.view(), on_x.view(), products.view_mut(), y.view_mut());
            gpu.download(y.view(), &mut found[0]).unwrap();
            gpu.download(products.view(), &mut found[1]).unwrap();
            let [y, products] = found;
            assert!(is_added || y == before, "{what}");
            (is_added, if is_added { y } else { products })
        });
        let (is_added, found) = runs.next().unwrap();
        close(&found, if is_added { &sum } else { &convolved }, &format!("{what}, coils"));
        assert!(found == runs.next().unwrap().1, "{what}");
    }

    #[test]
    fn convolutions_agree_with_the_cpus() {
        let Some(gpu) = gpu() else { return };
        fn both(gpu: &Gpu, dims: &[usize], arrays: usize) {
            check_convolution::<f32>(gpu, dims, arrays);
            check_convolution::<f64>(gpu, dims, arrays);
        }
        both(&gpu, &[1, 5], 3);
        both(&gpu, &[33, 20], 1);
        both(&gpu, &[150, 256], 40);
        both(&gpu, &[1, 1, 1], 1);
        both(&gpu, &[40, 36, 35], 1);
        both(&gpu, &[40, 36, 35], 20);
        both(&gpu, &[100, 80, 66], 2);
        // Planes of an image in several parts, of different lengths.
        check_convolution::<f64>(&gpu, &[216, 95, 140], 1);
        // Lines that do not fit in shared memory.
        both(&gpu, &[2, 20_000], 2);
        both(&gpu, &[16_000, 3], 1);
        // Kernels that multiply by coil maps exist for all others.
        let has_coils = |dims: &[usize]| Convolver::<f32>::new(&gpu, dims, 1).unwrap().has_coils();
        assert!(has_coils(&[150, 256]) && has_coils(&[100, 80, 66]) && !has_coils(&[16_000, 3]));
    }
}
