//! The interface between algorithms and devices.
//!
//! Algorithms (nufft, toeplitz, encoding, cg, ...) are written once, in terms of [`Backend`]; a backend implements
//! these primitives and nothing else. All primitives write every element of their output, and give the same bits on
//! every call. Errors are returned by the functions that allocate. A primitive on existing views cannot fail, except if
//! the device fails; direct sums can also be interrupted by the caller.

mod arrays;
pub(crate) mod call_size;
pub mod cpu;
pub mod cuda;
mod direct_lists;
pub(crate) mod spectral_sums;
pub mod threads;

use crate::base::error::Result;
use crate::base::fft_size::GridSizes;
use crate::base::geometry::CheckedValues;
use crate::base::input_check::PendingCheck;
use crate::base::interrupt;
pub use crate::base::off_resonance::OffResonance;
pub use crate::base::real::Element;
use crate::base::real::Real;
use crate::base::sizes::product;
use crate::base::warning::Warning;
use crate::base::workers::Workers;
pub use arrays::{DevicePointer, DeviceSlice, DeviceSliceMut, Sink, Source, Span};
pub use direct_lists::MapPresence;
use num_complex::Complex;
use spectral_sums::{SpectralSums, SpectralWindow};
use std::ops::Range;

/// Maximum width of a window, in cells.
pub const MAX_WIDTH: usize = 16;
/// Maximum degree of the polynomials of the taps.
pub const MAX_DEGREE: usize = MAX_WIDTH + 8;

/// Outputs on their way to the caller: each is delivered after the next one has been queued.
pub(crate) struct DeliveryQueue<'a, T: Real, B: Backend<T>> {
    backend: &'a B,
    ready: Option<B::Output<'a, Complex<T>>>,
}

impl<'a, T: Real, B: Backend<T>> DeliveryQueue<'a, T, B> {
    /// Creates an empty queue.
    pub fn new(backend: &'a B) -> Self {
        DeliveryQueue { backend, ready: None }
    }

    /// Adds an output whose work has been queued, and delivers the previous one.
    pub fn push(&mut self, mut output: B::Output<'a, Complex<T>>) -> Result<()> {
        self.backend.mark_ready(&mut output)?;
        self.ready.replace(output).map_or(Ok(()), |previous| self.backend.deliver(previous))
    }

    /// Delivers the last output.
    pub fn finish(self) -> Result<()> {
        self.ready.map_or(Ok(()), |last| self.backend.deliver(last))
    }
}

/// Read-only view of elements of a backend's array.
pub type View<'a, B, T, E> = <B as Backend<T>>::View<'a, E>;
/// Writable view of elements of a backend's array.
pub type ViewMut<'a, B, T, E> = <B as Backend<T>>::ViewMut<'a, E>;
/// Read-only view of real numbers of the plan's precision.
pub type Reals<'a, B, T> = View<'a, B, T, T>;
/// Read-only view of complex numbers of the plan's precision.
pub type Complexes<'a, B, T> = View<'a, B, T, Complex<T>>;
/// Writable view of complex numbers of the plan's precision.
pub type ComplexesMut<'a, B, T> = ViewMut<'a, B, T, Complex<T>>;

/// The sign of i in exp(+-i 2 pi k.r): plus for k-space to image, minus for image to k-space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// exp(-i 2 pi k.r), the direction of E.
    Minus,
    /// exp(+i 2 pi k.r), the direction of E^H.
    Plus,
}

/// A sparse matrix in compressed rows, in the memory of a backend.
pub struct Csr<'a, B: Backend<T>, T: Real> {
    /// Start of each row in `columns` and `values`, and the end of the last row: [rows + 1].
    pub rows: View<'a, B, T, u32>,
    /// Column of each entry.
    pub columns: View<'a, B, T, u32>,
    /// Value of each entry.
    pub values: Complexes<'a, B, T>,
}

/// A line through the centre of 2D k-space, sampled evenly: sample j is at (first + step j) direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spoke {
    /// Direction of length 1. Its larger component is positive; for equal components, that is x.
    pub direction: [f64; 2],
    /// Position of the first sample along the direction, in cycles per voxel.
    pub first: f64,
    /// Distance from a sample to the next, in cycles per voxel; negative if the spoke runs against its direction.
    pub step: f64,
}

impl Spoke {
    /// Creates a spoke from a direction of length 1. If its larger component is negative, the direction is reversed.
    pub fn new(direction: [f64; 2], first: f64, step: f64) -> Self {
        let spoke = Spoke { direction, first, step };
        match direction[spoke.axis()] < 0.0 {
            true => Spoke { direction: direction.map(|d| -d), first: -first, step: -step },
            false => spoke,
        }
    }

    /// Returns the axis of the image that is nearest to the spoke: 0 for x, 1 for y.
    pub fn axis(&self) -> usize {
        (self.direction[1].abs() > self.direction[0].abs()) as usize
    }

    /// Returns the distance between the knots of the projection's interpolation, in voxels. Along the nearest axis
    /// there are two knots per voxel, so that all voxels of a row have the same position between their knots.
    pub fn knot_spacing(&self) -> f64 {
        0.5 * self.direction[self.axis()]
    }
}

/// Functions of time, as Chebyshev series over an interval.
#[derive(Clone, Copy)]
pub struct ChebyshevSeries<'a> {
    /// Middle of the interval in seconds, and half its length. Outside the interval, functions have the values at its
    /// ends.
    pub interval: [f64; 2],
    /// Number of functions.
    pub functions: usize,
    /// Coefficients, those of all functions together: [functions, terms].
    pub coefficients: &'a [f64],
}

impl ChebyshevSeries<'_> {
    /// Returns the number of terms.
    pub fn terms(&self) -> usize {
        self.coefficients.len() / self.functions
    }
}

/// An array to be checked by [`Backend::check_values`].
pub struct ValueCheck<V, M> {
    /// The numbers, `stride` elements apart.
    pub from: V,
    /// Number of elements from a number to the next.
    pub stride: usize,
    /// Number of numbers.
    pub samples: usize,
    /// Smallest and largest valid number.
    pub valid: [f64; 2],
    /// Where the numbers are copied to, without gaps; `None` for no copy.
    pub to: Option<M>,
    /// The copy of numbers from 0.5 on; those below -0.5 become -0.5. `None` copies all numbers unchanged.
    pub top: Option<f64>,
}

/// Maximum number of arrays of [`Backend::subtract_projections`].
pub(crate) const MAX_PROJECTIONS: usize = 4;

/// The primitives of one device in one precision. Callers must pass views of the right sizes, which are checked.
pub trait Backend<T: Real>: Send + Sync + Sized + 'static {
    /// Memory that the backend owns.
    type Array<E: Element>: Send + Sync;
    /// A read-only view of elements of an array.
    type View<'a, E: Element>: Span + Copy + Sync;
    /// A writable view of elements of an array.
    type ViewMut<'a, E: Element>: Span;
    /// The caller's memory, readable for the backend: borrowed if possible, otherwise copied.
    type Input<'a, E: Element>;
    /// The caller's memory, writable for the backend, see [`Backend::deliver`].
    type Output<'a, E: Element>;
    /// Samples sorted for one grid and window.
    type Gridder: Send + Sync;
    /// The pruned transform between an oversampled grid and an image.
    type GridFft: Send + Sync;
    /// A real spectrum on the doubled grid, with pruned transforms.
    type Convolver: Send + Sync;
    /// Direct sums between samples and voxels.
    type DirectSum: Send + Sync;
    /// The state of a backprojection of spokes.
    type Backprojector: Send + Sync;
    /// A number that is being copied to the host.
    type PendingScalar;

    /// Allocates a zeroed array. `what` names it in an error.
    fn zeros<E: Element>(&self, len: usize, what: &str) -> Result<Self::Array<E>>;
    /// Allocates an array of unspecified numbers, which must be written before they are read.
    fn unwritten<E: Element>(&self, len: usize, what: &str) -> Result<Self::Array<E>>;
    /// Copies the caller's array to the device. The caller may change it afterwards.
    fn upload<E: Element>(&self, host: &[E], what: &str) -> Result<Self::Array<E>>;
    /// Returns a view of a whole array.
    fn view<'a, E: Element>(&self, array: &'a Self::Array<E>) -> Self::View<'a, E>;
    /// Returns a writable view of a whole array.
    fn view_mut<'a, E: Element>(&self, array: &'a mut Self::Array<E>) -> Self::ViewMut<'a, E>;
    /// Returns the same view with a shorter lifetime.
    fn shorten<'s, 'a: 's, E: Element>(view: Self::View<'a, E>) -> Self::View<'s, E>;
    /// Returns a read-only view of the same elements.
    fn as_view<'s, E: Element>(view: &'s Self::ViewMut<'_, E>) -> Self::View<'s, E>;
    /// Returns the same writable view with a shorter lifetime.
    fn reborrow<'s, E: Element>(view: &'s mut Self::ViewMut<'_, E>) -> Self::ViewMut<'s, E>;
    /// Copies to the caller's memory.
    fn download<E: Element>(&self, from: Self::View<'_, E>, host: &mut [E]) -> Result<()>;
    /// Makes the caller's memory readable. Memory of a different GPU is an error.
    fn input<'a, E: Element>(&self, source: Source<'a, E>) -> Result<Self::Input<'a, E>>;
    /// Returns a view of an input.
    fn read<'s, E: Element>(&self, input: &'s Self::Input<'_, E>) -> Self::View<'s, E>;
    /// Makes the caller's memory writable. It is not written before [`Backend::write`] or [`Backend::deliver`].
    fn output<'a, E: Element>(&self, sink: Sink<'a, E>) -> Result<Self::Output<'a, E>>;
    /// Returns a writable view of an output.
    fn write<'s, E: Element>(&self, output: &'s mut Self::Output<'_, E>) -> Self::ViewMut<'s, E>;
    /// Records that all work that writes an output has been queued. The output can then be delivered during later work.
    fn mark_ready<E: Element>(&self, output: &mut Self::Output<'_, E>) -> Result<()>;
    /// Completes an output.
    fn deliver<E: Element>(&self, output: Self::Output<'_, E>) -> Result<()>;
    /// Wraps an array of this backend as an operation's input.
    fn source<'a, E: Element + 'a>(&self, view: Self::View<'a, E>) -> Source<'a, E>;
    /// Wraps an array of this backend as an operation's output.
    fn sink<'a, E: Element + 'a>(&self, view: Self::ViewMut<'a, E>) -> Sink<'a, E>;
    /// Copies x of the backend `from` to y of this backend, as soon as x has been computed.
    fn fetch<E: Element>(&self, from: &Self, x: Self::View<'_, E>, y: Self::ViewMut<'_, E>);
    /// Copies x of this backend to y of the backend `to`, as soon as x has been computed. [`Backend::order_after`]
    /// orders this copy with other uses of y.
    fn send<E: Element>(&self, x: Self::View<'_, E>, to: &Self, y: Self::ViewMut<'_, E>);
    /// Orders all work that is queued on this backend from now on after all work queued on `other`.
    fn order_after(&self, other: &Self);
    /// Waits until all queued work is done.
    fn wait(&self) -> Result<()>;
    /// Returns the index and value of the first number whose real or imaginary part is NaN or not below `limit` in
    /// magnitude.
    fn first_exceeding(&self, values: Complexes<Self, T>, limit: T) -> Result<Option<(usize, Complex<T>)>>;
    /// Begins the same check, without its index, as part of the transform that follows; `None` if the backend cannot.
    /// `at_once` says whether one call of [`Backend::samples_to_image`] or [`Backend::image_to_samples`] reads all
    /// values.
    fn begin_check(
        &self,
        _values: Complexes<Self, T>,
        _limit: T,
        _at_once: bool,
    ) -> Result<Option<Box<dyn PendingCheck>>> {
        Ok(None)
    }
    /// Returns an error unless an address of the caller is in memory that this backend's GPU reads.
    fn check_address(&self, address: usize) -> Result<()>;
    /// Checks arrays of samples in the memory of a GPU. Arrays with a `to` are copied there.
    fn check_values(
        &self,
        checks: &mut [ValueCheck<Reals<'_, Self, T>, ViewMut<'_, Self, T, T>>],
    ) -> Result<Vec<CheckedValues<T>>>;
    /// Returns whether the device is a GPU, whose memory differs from the host's.
    fn is_gpu(&self) -> bool;
    /// Returns the requested number of CPU threads.
    fn threads(&self) -> usize;
    /// Returns the number of CPU threads that compute. Waits for threads that are being started.
    fn running_threads(&self) -> usize {
        self.threads()
    }
    /// Returns a warning for the user, if fewer threads run than requested. Waits for threads that are being started.
    fn warning(&self) -> Option<Warning> {
        None
    }
    /// Returns this warning once, as soon as no thread is being started. Does not wait.
    fn new_warning(&self) -> Option<Warning> {
        None
    }
    /// Returns the executor of loops over arrays in host memory.
    fn workers(&self) -> &dyn Workers;
    /// Returns the kind of device, `cpu` or `cuda`, followed by a space and the model if there are several.
    fn device_name(&self) -> String;
    /// Returns the name of the CPU's vector unit in use.
    fn simd_name(&self) -> &'static str;
    /// Returns the number of bytes held on a GPU.
    fn device_bytes(&self) -> usize;
    /// Returns the size in bytes of arrays that are best processed together, because they stay in cache between two
    /// steps.
    fn batch_bytes(&self) -> usize;
    /// Estimates the time of an adjoint on this grid, in nanoseconds.
    fn transform_cost(&self, grid: &[usize], dims: &[usize], samples: usize, width: usize) -> f64;
    /// Returns which sizes of oversampled grids are fast.
    fn grid_sizes(&self) -> GridSizes {
        GridSizes::default()
    }
    /// Returns the largest oversampling that may be chosen if the caller requests none; 0 means any.
    fn largest_oversampling(&self) -> f64 {
        0.0
    }
    /// Estimates the time of a convolution with Q, in nanoseconds.
    fn convolution_cost(&self, dims: &[usize]) -> f64;

    /// Makes ready, several at once, the parts that a gridder of `samples` samples and transforms of images of `dims`
    /// voxels will need, in addition to those that exist. No `dims`: no transforms. An error is reported where the part
    /// is used. Does nothing by default.
    fn prepare(&self, _dims: &[usize], _grid: &[usize], _taps: &[Vec<f64>], _samples: usize) {}

    /// Sorts samples at `k` (one view per axis, in cycles per voxel) for gridding on a periodic grid of size `grid`.
    /// The taps of the window are those of [`crate::nufft::window::Shape::polynomials`]. `arrays` is the maximum number
    /// of sample arrays per call.
    ///
    /// The new gridder may share memory that does not depend on the samples with `previous`, which must have the same
    /// grid, taps and `arrays`.
    ///
    /// Calls `meanwhile` once, for work of the host such as allocations while a GPU sorts.
    fn gridder(
        &self,
        k: &[Reals<Self, T>],
        grid: &[usize],
        taps: &[Vec<f64>],
        arrays: usize,
        previous: Option<&Self::Gridder>,
        meanwhile: impl FnOnce() -> Result<()>,
    ) -> Result<Self::Gridder>;
    /// Estimates the bytes of a gridder for `samples` samples and `arrays` arrays per call.
    fn gridder_bytes(&self, samples: usize, grid: &[usize], width: usize, arrays: usize) -> usize;
    /// Computes grid = sum over samples of value times window. Several arrays of samples may be concatenated, and the
    /// same number of grids.
    fn spread(&self, g: &Self::Gridder, values: Complexes<Self, T>, grid: ComplexesMut<Self, T>);
    /// Computes values = window-weighted sums of the grid, the transpose of [`Backend::spread`], for the same number of
    /// arrays.
    fn interpolate(&self, g: &Self::Gridder, grid: Complexes<Self, T>, values: ComplexesMut<Self, T>);

    /// Plans transforms between a grid and an image of `dims` voxels. Voxels are multiplied by the product over axes of
    /// `correction`.
    fn grid_fft(&self, dims: &[usize], grid: &[usize], correction: &[Vec<f64>]) -> Result<Self::GridFft>;
    /// Estimates the bytes of these transforms for a grid.
    fn grid_fft_bytes(&self, grid: &[usize]) -> usize;
    /// Computes image(r) = correction(r) sum_u grid(u) exp(+i 2 pi u r / G). The grid is used as scratch. Several grids
    /// may be concatenated, and the same number of images.
    fn grid_to_image(&self, f: &Self::GridFft, grid: ComplexesMut<Self, T>, image: ComplexesMut<Self, T>);
    /// Computes grid(u) = sum_r correction(r) image(r) exp(-i 2 pi u r / G). Several images may be concatenated, and
    /// the same number of grids.
    fn image_to_grid(&self, f: &Self::GridFft, image: Complexes<Self, T>, grid: ComplexesMut<Self, T>);

    /// Computes images of arrays of samples: [`Backend::spread`], then [`Backend::grid_to_image`]. Can be interrupted
    /// with `Cancelled`, which leaves the images half written.
    fn samples_to_image(
        &self,
        g: &Self::Gridder,
        f: &Self::GridFft,
        values: Complexes<Self, T>,
        mut grid: ComplexesMut<Self, T>,
        image: ComplexesMut<Self, T>,
    ) -> Result<()> {
        self.spread(g, values, Self::reborrow(&mut grid));
        interrupt::check("an adjoint transform")?;
        self.grid_to_image(f, grid, image);
        Ok(())
    }
    /// Computes samples of images: [`Backend::image_to_grid`], then [`Backend::interpolate`]. Can be interrupted with
    /// `Cancelled`, before any sample is written.
    fn image_to_samples(
        &self,
        g: &Self::Gridder,
        f: &Self::GridFft,
        image: Complexes<Self, T>,
        mut grid: ComplexesMut<Self, T>,
        values: ComplexesMut<Self, T>,
    ) -> Result<()> {
        self.image_to_grid(f, image, Self::reborrow(&mut grid));
        interrupt::check("a forward transform")?;
        self.interpolate(g, Self::as_view(&grid), values);
        Ok(())
    }
    /// Returns the number of arrays of `samples` samples on this grid that are best transformed together; 0 if a single
    /// grid exceeds the cache.
    fn transform_batch(&self, grid: &[usize], _samples: usize) -> usize {
        self.batch_bytes() / product(&[product(grid), size_of::<Complex<T>>()]).max(1)
    }

    /// Plans the convolution of images of `dims` voxels with `kernels` kernels.
    fn convolver(&self, dims: &[usize], kernels: usize) -> Result<Self::Convolver>;
    /// Allocates a zeroed array for one half of a Hermitian kernel q(-delta) = conj q(delta) on the doubled grid. Its
    /// displacements are 0 to n - 1 along x, and -n to n - 1 along the other axes.
    fn kernel_grid(&self, c: &Self::Convolver) -> Result<Self::Array<Complex<T>>>;
    /// Copies one part of the kernel, of the image's size, to that grid. Its displacements along an axis are 0 to n -
    /// 1, or -n to -1 if `half` is set for the axis. `half` must not be set for x.
    fn place_kernel(&self, c: &Self::Convolver, half: [bool; 3], q: Complexes<Self, T>, grid: ComplexesMut<Self, T>);
    /// Computes the real spectrum of a kernel. The grid is used as scratch.
    fn set_kernel(&self, c: &mut Self::Convolver, kernel: usize, grid: ComplexesMut<Self, T>);
    /// Returns the kernel's real spectrum on the doubled grid, x fastest, zero frequency first.
    fn spectrum(&self, c: &Self::Convolver, kernel: usize) -> Result<Vec<T>>;
    /// Sets a spectrum that [`Backend::spectrum`] returned.
    fn set_spectrum(&self, c: &mut Self::Convolver, kernel: usize, spectrum: &[T]) -> Result<()>;
    /// Returns the bytes of a convolver for images of `dims` voxels and `kernels` kernels.
    fn convolver_bytes(&self, dims: &[usize], kernels: usize) -> usize;
    /// Computes y(r) = sum_s q(r - s) x(s), for one or several images per kernel. The images of the first kernel come
    /// first.
    fn convolve(&self, c: &Self::Convolver, kernels: Range<usize>, x: Complexes<Self, T>, y: ComplexesMut<Self, T>);
    /// Computes y(r) = y(r) + sum_c conj(S_c(r)) sum_s q(r - s) S_c(s) x(s) for the coil maps S, with the first kernel.
    /// `images` and `products` are scratch of the maps' length.
    fn convolve_coils(
        &self,
        c: &Self::Convolver,
        maps: Complexes<Self, T>,
        x: Complexes<Self, T>,
        [images, products]: [ComplexesMut<Self, T>; 2],
        y: ComplexesMut<Self, T>,
    ) {
        convolve_coil_images(self, c, maps, x, [images, products], y);
    }

    /// Plans direct sums between samples at `k` and voxels: the grid of `dims`, or the positions `voxels` (one slice
    /// per axis) if given.
    ///
    /// With `off_resonance`, whose maps have one value per voxel in this order, sums to samples are over exp(-i 2 pi
    /// (k_m.r + f(r) t_m) - R(r) t_m). Sums to the image are over the conjugate. Errors are rounding errors; a nonzero
    /// `tolerance` may request smaller ones. Decay adds an error of about R t roundings, and its factors are limited to
    /// the range from the smallest normal number to 2^100 (f32) or 2^900 (f64).
    fn direct_sum(
        &self,
        k: &[&[T]],
        dims: &[usize],
        voxels: Option<&[&[T]]>,
        off_resonance: Option<OffResonance<'_, T>>,
        tolerance: f64,
    ) -> Result<Self::DirectSum>;
    /// Estimates the bytes of direct sums to the grid of `dims`, or to a list of `listed` voxels, with these maps.
    fn direct_sum_bytes(&self, samples: usize, dims: &[usize], listed: Option<usize>, maps: MapPresence) -> usize;
    /// Computes image(r) = sum_m values(m) exp(+i 2 pi k_m.r), with the maps of [`Backend::direct_sum`]. A long sum can
    /// be interrupted with `Cancelled`, which leaves the image half written.
    fn sum_to_image(&self, d: &Self::DirectSum, values: Complexes<Self, T>, image: ComplexesMut<Self, T>)
        -> Result<()>;
    /// Computes values(m) = sum_r image(r) exp(-i 2 pi k_m.r), with the same maps. A long sum can be interrupted with
    /// `Cancelled`, which leaves the values half written.
    fn sum_to_samples(
        &self,
        d: &Self::DirectSum,
        image: Complexes<Self, T>,
        values: ComplexesMut<Self, T>,
    ) -> Result<()>;

    /// Plans the backprojection of spokes of `readout` samples each into images of `dims` voxels. `arrays` is the
    /// maximum number of sample arrays per call.
    fn backprojector(
        &self,
        spokes: &[Spoke],
        readout: usize,
        dims: &[usize],
        arrays: usize,
    ) -> Result<Self::Backprojector>;
    /// Estimates the bytes of a backprojector and its buffer.
    fn backprojector_bytes(&self, readout: usize, dims: &[usize], arrays: usize) -> usize;
    /// Returns the length of the buffer of [`Backend::backproject`], in complex numbers.
    fn backprojection_buffer_len(&self, p: &Self::Backprojector) -> usize;
    /// Computes image(r) = sum over spokes of p(direction.r), where p is linear between knots at distance
    /// [`Spoke::knot_spacing`], one of which is at 0. At the knots p(t) = sum_j values(j) exp(+i 2 pi (first + step j)
    /// t). Several arrays of samples may be concatenated, and the same number of images.
    fn backproject(
        &self,
        p: &Self::Backprojector,
        values: Complexes<Self, T>,
        buffer: ComplexesMut<Self, T>,
        image: ComplexesMut<Self, T>,
    );

    /// Computes y = x.
    fn copy<E: Element>(&self, x: Self::View<'_, E>, y: Self::ViewMut<'_, E>);
    /// Sets y = 0.
    fn clear<E: Element>(&self, y: Self::ViewMut<'_, E>);
    /// Computes z = x y. y is repeated for each array of its length in x and z.
    fn multiply(&self, x: Complexes<Self, T>, y: Complexes<Self, T>, z: ComplexesMut<Self, T>);
    /// Computes z = z + conj(x) y, summed over the arrays of z's length in x and y.
    fn add_conj_products(&self, x: Complexes<Self, T>, y: Complexes<Self, T>, z: ComplexesMut<Self, T>);
    /// Computes z = w x. The real w is repeated for each array of its length in x and z.
    fn apply_weights(&self, w: Reals<Self, T>, x: Complexes<Self, T>, z: ComplexesMut<Self, T>);
    /// Computes out(m) = w(m) exp(+i 2 pi k_m.shift), with w = 1 if `None`: weights whose adjoint is shifted by `shift`
    /// voxels.
    fn ramp(&self, k: &[Reals<Self, T>], shift: &[f64], w: Option<Reals<Self, T>>, out: ComplexesMut<Self, T>);
    /// Returns exp(-(R + i 2 pi (f - `origin`)) tau) of all voxels for each tau of `nodes`, [voxels, nodes]. `decay` is
    /// R, which is limited to `max_rate`; `None` means 0.
    fn voxel_waves(
        &self,
        frequencies: Reals<Self, T>,
        decay: Option<Reals<Self, T>>,
        max_rate: f64,
        origin: f64,
        nodes: &[f64],
    ) -> Result<Self::Array<Complex<T>>>;
    /// Returns b_l(t) exp(+i 2 pi `frequency` t) at all times for each function b_l of a series, [times, functions].
    fn sample_waves(
        &self,
        times: Reals<Self, T>,
        series: ChebyshevSeries<'_>,
        frequency: f64,
    ) -> Result<Self::Array<Complex<T>>>;
    /// Returns w b(t) at all times for one function b of a series, with w = 1 if `None`.
    fn series_values(
        &self,
        times: Reals<Self, T>,
        series: ChebyshevSeries<'_>,
        function: usize,
        w: Option<Reals<Self, T>>,
    ) -> Result<Self::Array<T>>;
    /// Computes the sums of weights times the spectra of `windows`, one per axis of `k`, that the scale of gridding
    /// needs. `largest` is the largest weight. Returns `None` if the device is not faster than a loop on the host.
    fn spectral_sums(
        &self,
        _k: &[Reals<Self, T>],
        _weights: Reals<Self, T>,
        _largest: f64,
        _windows: &[SpectralWindow],
    ) -> Option<Result<SpectralSums>> {
        None
    }
    /// Computes y = y + a x.
    fn axpy(&self, a: f64, x: Complexes<Self, T>, y: ComplexesMut<Self, T>);
    /// Computes out(0) = Re <x, y>, summed in double precision in a fixed order.
    fn dot(&self, x: Complexes<Self, T>, y: Complexes<Self, T>, out: Self::ViewMut<'_, f64>);
    /// Begins to read x(0), for [`Backend::finish_read`]. More work may be queued meanwhile, which may change x.
    fn begin_read(&self, x: Self::View<'_, f64>) -> Result<Self::PendingScalar>;
    /// Waits for the number.
    fn finish_read(&self, scalar: Self::PendingScalar) -> Result<f64>;

    /// Computes one step of conjugate gradients: with a = rr(0) / pq(0), x = x + a p, r = r - a q, and rr_new(0) = <r,
    /// r>. A direction without energy (pq <= 0) changes nothing.
    #[allow(clippy::too_many_arguments)]
    fn cg_step(
        &self,
        rr: Self::View<'_, f64>,
        pq: Self::View<'_, f64>,
        p: Complexes<Self, T>,
        q: Complexes<Self, T>,
        x: ComplexesMut<Self, T>,
        r: ComplexesMut<Self, T>,
        rr_new: Self::ViewMut<'_, f64>,
    );
    /// Subtracts from x its projections on the arrays v_k of x's length in `v`, at most four: x = x - sum_k v_k <v_k,
    /// x> / norms[k], with norms[k] = <v_k, v_k>. Then sets xx(0) = <x, x>. Sums are computed in double precision in a
    /// fixed order.
    fn subtract_projections(
        &self,
        v: Complexes<Self, T>,
        norms: &[f64],
        x: ComplexesMut<Self, T>,
        xx: Self::ViewMut<'_, f64>,
    );
    /// Computes p = r + (rr_new(0) / rr(0)) p.
    fn cg_direction(
        &self,
        rr_new: Self::View<'_, f64>,
        rr: Self::View<'_, f64>,
        r: Complexes<Self, T>,
        p: ComplexesMut<Self, T>,
    );

    /// Computes y = y + lambda D^H W D x. D are the differences between neighbours along each axis of an image of
    /// `dims` voxels. W are their weights, [voxels, axes], for a voxel and the next one along the axis; 1 if `None`.
    fn add_differences(
        &self,
        dims: &[usize],
        weights: Option<Reals<Self, T>>,
        lambda: f64,
        x: Complexes<Self, T>,
        y: ComplexesMut<Self, T>,
    );
    /// Computes y = a A x + b y.
    fn csr_multiply(&self, a: f64, matrix: Csr<Self, T>, x: Complexes<Self, T>, b: f64, y: ComplexesMut<Self, T>);
}

/// Computes [`Backend::convolve_coils`] in three steps.
pub fn convolve_coil_images<T: Real, B: Backend<T>>(
    b: &B,
    c: &B::Convolver,
    maps: Complexes<B, T>,
    x: Complexes<B, T>,
    [mut images, mut products]: [ComplexesMut<B, T>; 2],
    y: ComplexesMut<B, T>,
) {
    b.multiply(B::shorten(maps), x, B::reborrow(&mut images));
    b.convolve(c, 0..1, B::as_view(&images), B::reborrow(&mut products));
    b.add_conj_products(maps, B::as_view(&products), y);
}
