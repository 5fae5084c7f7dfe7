//! The one interface between algorithms and devices.
//!
//! Algorithms (nufft, toeplitz, encoding, cg, ...) are written once over [`Backend`]; a backend implements these
//! primitives and nothing else. All of them write every element of their output, give the same bits on every call, and
//! leave errors to the functions that allocate: a primitive on views that exist cannot fail but for the device itself,
//! and for direct sums, which a caller may interrupt.

mod arrays;
pub mod cpu;
pub mod cuda;
mod direct_lists;

use crate::base::error::Result;
pub use crate::base::off_resonance::OffResonance;
pub use crate::base::real::Element;
use crate::base::real::Real;
use crate::base::warning::Warning;
use crate::base::workers::Workers;
pub use arrays::{DevicePointer, DeviceSlice, DeviceSliceMut, Sink, Source, Span};
pub use direct_lists::MapPresence;
use num_complex::Complex;
use std::ops::Range;

/// The widest window that the gridding kernels take.
pub const MAX_WIDTH: usize = 16;
/// The highest degree of the taps' polynomials.
pub const MAX_DEGREE: usize = MAX_WIDTH + 8;

/// Results on their way to the caller: each is delivered when the next has been asked for.
pub(crate) struct DeliveryQueue<'a, T: Real, B: Backend<T>> {
    backend: &'a B,
    ready: Option<B::Output<'a, Complex<T>>>,
}

impl<'a, T: Real, B: Backend<T>> DeliveryQueue<'a, T, B> {
    /// None yet.
    pub fn new(backend: &'a B) -> Self {
        DeliveryQueue { backend, ready: None }
    }

    /// Takes an output whose work has been asked for.
    pub fn push(&mut self, mut output: B::Output<'a, Complex<T>>) -> Result<()> {
        self.backend.mark_ready(&mut output)?;
        self.ready.replace(output).map_or(Ok(()), |before| self.backend.deliver(before))
    }

    /// Delivers the last.
    pub fn finish(self) -> Result<()> {
        self.ready.map_or(Ok(()), |last| self.backend.deliver(last))
    }
}

/// Elements of an array of a backend, to read.
pub type View<'a, B, T, E> = <B as Backend<T>>::View<'a, E>;
/// Elements of an array of a backend, to write.
pub type ViewMut<'a, B, T, E> = <B as Backend<T>>::ViewMut<'a, E>;
/// Real numbers of the plan's precision, to read.
pub type Reals<'a, B, T> = View<'a, B, T, T>;
/// Complex numbers of the plan's precision, to read.
pub type Complexes<'a, B, T> = View<'a, B, T, Complex<T>>;
/// Complex numbers of the plan's precision, to write.
pub type ComplexesMut<'a, B, T> = ViewMut<'a, B, T, Complex<T>>;

/// The sign of i in exp(+-i 2 pi k.r): plus takes k-space to the image, minus the image to k-space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// exp(-i 2 pi k.r), the direction of E.
    Minus,
    /// exp(+i 2 pi k.r), the direction of E^H.
    Plus,
}

/// A sparse matrix in compressed rows, in the memory of a backend.
pub struct Csr<'a, B: Backend<T>, T: Real> {
    /// Start of each row in `columns` and `values`, and the end of the last: [rows + 1].
    pub rows: View<'a, B, T, u32>,
    /// Column of each entry.
    pub columns: View<'a, B, T, u32>,
    /// Value of each entry.
    pub values: Complexes<'a, B, T>,
}

/// A line through the centre of 2D k-space, sampled evenly: its sample j lies at (first + step j) direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spoke {
    /// Of length 1. Its larger component, which is x where both are as large, is positive.
    pub direction: [f64; 2],
    /// Where the first sample lies, in cycles per voxel.
    pub first: f64,
    /// From a sample to the next, in cycles per voxel; negative where the spoke goes against its direction.
    pub step: f64,
}

impl Spoke {
    /// The line in `direction`, of length 1, or against it: of both the one whose larger component is positive.
    pub fn new(direction: [f64; 2], first: f64, step: f64) -> Self {
        let spoke = Spoke { direction, first, step };
        match direction[spoke.axis()] < 0.0 {
            true => Spoke { direction: direction.map(|d| -d), first: -first, step: -step },
            false => spoke,
        }
    }

    /// The axis of the image that the spoke is nearer to: 0 for x, 1 for y.
    pub fn axis(&self) -> usize {
        (self.direction[1].abs() > self.direction[0].abs()) as usize
    }

    /// The distance of the knots that its projection is interpolated between, in voxels: two to a voxel along the axis
    /// that the spoke is nearer to. So voxels along that axis lie alike between their knots.
    pub fn knot_spacing(&self) -> f64 {
        0.5 * self.direction[self.axis()]
    }
}

/// The largest number of arrays of [`Backend::subtract_projections`].
pub(crate) const MAX_PROJECTIONS: usize = 4;

/// The primitives of one device in one precision. Sizes of views are the caller's duty, and checked.
pub trait Backend<T: Real>: Send + Sync + Sized + 'static {
    /// Memory that the backend owns.
    type Array<E: Element>: Send + Sync;
    /// Elements of an array, to read.
    type View<'a, E: Element>: Span + Copy + Sync;
    /// Elements of an array, to write.
    type ViewMut<'a, E: Element>: Span;
    /// The caller's memory made readable for the backend: borrowed where it can be, copied where not.
    type Input<'a, E: Element>;
    /// The caller's memory made writable for the backend, see [`Backend::deliver`].
    type Output<'a, E: Element>;
    /// Samples sorted for one grid and window.
    type Gridder: Send + Sync;
    /// The pruned transform between an oversampled grid and an image.
    type GridFft: Send + Sync;
    /// A real spectrum on the doubled grid and the pruned transforms around it.
    type Convolver: Send + Sync;
    /// Direct sums between samples and voxels.
    type DirectSum: Send + Sync;
    /// Spokes that are backprojected.
    type Backprojector: Send + Sync;

    /// A zeroed array. `what` is for the message when there is no memory.
    fn zeros<E: Element>(&self, len: usize, what: &str) -> Result<Self::Array<E>>;
    /// An array of any numbers, which must be written before they are read.
    fn unwritten<E: Element>(&self, len: usize, what: &str) -> Result<Self::Array<E>>;
    /// A copy of the caller's array.
    fn upload<E: Element>(&self, host: &[E], what: &str) -> Result<Self::Array<E>>;
    /// All of an array.
    fn view<'a, E: Element>(&self, array: &'a Self::Array<E>) -> Self::View<'a, E>;
    /// All of an array, to write.
    fn view_mut<'a, E: Element>(&self, array: &'a mut Self::Array<E>) -> Self::ViewMut<'a, E>;
    /// The same elements, for a shorter time.
    fn shorten<'s, 'a: 's, E: Element>(view: Self::View<'a, E>) -> Self::View<'s, E>;
    /// The same elements, to read.
    fn as_view<'s, E: Element>(view: &'s Self::ViewMut<'_, E>) -> Self::View<'s, E>;
    /// The same elements, for a shorter time.
    fn reborrow<'s, E: Element>(view: &'s mut Self::ViewMut<'_, E>) -> Self::ViewMut<'s, E>;
    /// Copies to the caller's memory.
    fn download<E: Element>(&self, from: Self::View<'_, E>, host: &mut [E]) -> Result<()>;
    /// Makes the caller's memory readable. Memory of a GPU that is not this backend's is refused.
    fn input<'a, E: Element>(&self, source: Source<'a, E>) -> Result<Self::Input<'a, E>>;
    /// The elements of an input.
    fn read<'s, E: Element>(&self, input: &'s Self::Input<'_, E>) -> Self::View<'s, E>;
    /// Makes the caller's memory writable; it is not written before [`Backend::write`] or [`Backend::deliver`].
    fn output<'a, E: Element>(&self, sink: Sink<'a, E>) -> Result<Self::Output<'a, E>>;
    /// The elements of an output.
    fn write<'s, E: Element>(&self, output: &'s mut Self::Output<'_, E>) -> Self::ViewMut<'s, E>;
    /// Notes that all work that writes an output has been queued: it can be delivered while later work is done.
    fn mark_ready<E: Element>(&self, output: &mut Self::Output<'_, E>) -> Result<()>;
    /// Completes an output.
    fn deliver<E: Element>(&self, output: Self::Output<'_, E>) -> Result<()>;
    /// An array of this backend, as an operation takes a caller's array to read.
    fn source<'a, E: Element + 'a>(&self, view: Self::View<'a, E>) -> Source<'a, E>;
    /// An array of this backend, as an operation takes a caller's array to write.
    fn sink<'a, E: Element + 'a>(&self, view: Self::ViewMut<'a, E>) -> Sink<'a, E>;
    /// y, which is this backend's, = x of another, as soon as that has made it.
    fn fetch<E: Element>(&self, from: &Self, x: Self::View<'_, E>, y: Self::ViewMut<'_, E>);
    /// y, which is another backend's, = x of this one, as soon as it is made. What either does with y before and after
    /// is kept apart by [`Backend::order_after`].
    fn send<E: Element>(&self, x: Self::View<'_, E>, to: &Self, y: Self::ViewMut<'_, E>);
    /// Whatever is asked from now on comes after all that another was asked before.
    fn order_after(&self, other: &Self);
    /// Waits until all that was asked for is done.
    fn wait(&self) -> Result<()>;
    /// The first number whose real or imaginary part is not below `limit` in magnitude, NaN among them, and its index.
    fn first_exceeding(&self, values: Complexes<Self, T>, limit: T) -> Result<Option<(usize, Complex<T>)>>;
    /// Whether it is a GPU, whose memory is not the host's.
    fn is_gpu(&self) -> bool;
    /// Returns the number of CPU threads that compute.
    fn threads(&self) -> usize;
    /// Returns what to warn the user of, if anything: fewer threads than were asked for.
    fn warning(&self) -> Option<Warning> {
        None
    }
    /// Who does loops over arrays in the host's memory.
    fn workers(&self) -> &dyn Workers;
    /// The kind of device, `cpu` or `cuda`, and after a space which one where there are several kinds.
    fn device_name(&self) -> String;
    /// The CPU's vector unit in use.
    fn simd_name(&self) -> &'static str;
    /// Bytes held on a GPU.
    fn device_bytes(&self) -> usize;
    /// Bytes of arrays that are better worked on together, because they stay in cache between one step and the next.
    fn batch_bytes(&self) -> usize;
    /// What an adjoint on this grid costs, in nanoseconds.
    fn transform_cost(&self, grid: &[usize], dims: &[usize], samples: usize, width: usize) -> f64;
    /// What a convolution with Q costs, in nanoseconds.
    fn convolution_cost(&self, dims: &[usize]) -> f64;

    /// Sorts samples at `k` (one slice an axis, cycles per voxel) for spreading onto a periodic grid of size `grid`
    /// with a window of the taps that [`crate::nufft::window::Shape::polynomials`] gives. `arrays` is how many arrays
    /// of samples come at once, at most. What samples do not decide may be shared with `before`, which was made for
    /// other samples and the same grid, taps and arrays.
    fn gridder(
        &self,
        k: &[&[T]],
        grid: &[usize],
        taps: &[Vec<f64>],
        arrays: usize,
        before: Option<&Self::Gridder>,
    ) -> Result<Self::Gridder>;
    /// Bytes that a gridder of so many samples and arrays at once holds, about.
    fn gridder_bytes(&self, samples: usize, grid: &[usize], width: usize, arrays: usize) -> usize;
    /// grid = sum over samples of value times window. Several arrays of samples may follow one another, and as many
    /// grids.
    fn spread(&self, g: &Self::Gridder, values: Complexes<Self, T>, grid: ComplexesMut<Self, T>);
    /// values = window-weighted sums of the grid: the transpose of [`Backend::spread`], for as many
    /// arrays.
    fn interpolate(&self, g: &Self::Gridder, grid: Complexes<Self, T>, values: ComplexesMut<Self, T>);

    /// Plans transforms between a grid and an image of `dims` voxels whose voxels are multiplied by the product over
    /// axes of `correction`.
    fn grid_fft(&self, dims: &[usize], grid: &[usize], correction: &[Vec<f64>]) -> Result<Self::GridFft>;
    /// Bytes that these hold for a grid, about.
    fn grid_fft_bytes(&self, grid: &[usize]) -> usize;
    /// image(r) = correction(r) sum_u grid(u) exp(+i 2 pi u r / G). The grid is used as scratch. Several
    /// grids may follow one another, and as many images.
    fn grid_to_image(&self, f: &Self::GridFft, grid: ComplexesMut<Self, T>, image: ComplexesMut<Self, T>);
    /// grid(u) = sum_r correction(r) image(r) exp(-i 2 pi u r / G). Several images may follow one another, and
    /// as many grids.
    fn image_to_grid(&self, f: &Self::GridFft, image: Complexes<Self, T>, grid: ComplexesMut<Self, T>);

    /// Plans the convolution of images of `dims` voxels with so many kernels.
    fn convolver(&self, dims: &[usize], kernels: usize) -> Result<Self::Convolver>;
    /// A zeroed array for one half of a Hermitian kernel q(-delta) = conj q(delta) on the doubled grid: displacements 0
    /// to n - 1 along x, and -n to n - 1 along the other axes.
    fn kernel_grid(&self, c: &Self::Convolver) -> Result<Self::Array<Complex<T>>>;
    /// Puts one part of the kernel, of the image's size, in its place on that grid: displacements 0 to n - 1 along each
    /// axis or, where `half` says so, which it does not along x, -n to -1.
    fn place_kernel(&self, c: &Self::Convolver, half: [bool; 3], q: Complexes<Self, T>, grid: ComplexesMut<Self, T>);
    /// Makes the real spectrum of the kernel of number `kernel`, whose grid is used as scratch.
    fn set_kernel(&self, c: &mut Self::Convolver, kernel: usize, grid: ComplexesMut<Self, T>);
    /// The kernel's real spectrum on the doubled grid, x fastest, zero frequency first.
    fn spectrum(&self, c: &Self::Convolver, kernel: usize) -> Result<Vec<T>>;
    /// Sets a spectrum as [`Backend::spectrum`] gave it, of as many elements.
    fn set_spectrum(&self, c: &mut Self::Convolver, kernel: usize, spectrum: &[T]) -> Result<()>;
    /// Bytes that a convolver for images of `dims` voxels and so many kernels holds.
    fn convolver_bytes(&self, dims: &[usize], kernels: usize) -> usize;
    /// y(r) = sum_s q(r - s) x(s), for one or several images with each of these kernels: those with the first kernel
    /// come first.
    fn convolve(&self, c: &Self::Convolver, kernels: Range<usize>, x: Complexes<Self, T>, y: ComplexesMut<Self, T>);

    /// Plans direct sums between samples at `k` and voxels: the grid of `dims`, or the positions `voxels` (one slice an
    /// axis) where given. With `off_resonance`, whose maps have a number a voxel in the order of these, sums to samples
    /// are of exp(-i 2 pi (k_m.r + f(r) t_m) - R(r) t_m), and sums to the image of the conjugate. Errors are those of
    /// rounding; a `tolerance` that is not 0 may ask for less than the usual ones. Decay of R t adds an error of about
    /// R t roundings, and its factors are kept between the smallest normal number and 2^100 (f32) or 2^900 (f64).
    fn direct_sum(
        &self,
        k: &[&[T]],
        dims: &[usize],
        voxels: Option<&[&[T]]>,
        off_resonance: Option<OffResonance<'_, T>>,
        tolerance: f64,
    ) -> Result<Self::DirectSum>;
    /// Bytes that direct sums hold, about, to the grid of `dims` or to a list of as many voxels, with these maps.
    fn direct_sum_bytes(&self, samples: usize, dims: &[usize], listed: Option<usize>, maps: MapPresence) -> usize;
    /// image(r) = sum_m values(m) exp(+i 2 pi k_m.r), with the maps of [`Backend::direct_sum`] where it has them. Where
    /// that takes long it can end with `Cancelled`, the image being half written.
    fn sum_to_image(&self, d: &Self::DirectSum, values: Complexes<Self, T>, image: ComplexesMut<Self, T>)
        -> Result<()>;
    /// values(m) = sum_r image(r) exp(-i 2 pi k_m.r), with the same maps. Where that takes long it can end with
    /// `Cancelled`, the values being half written.
    fn sum_to_samples(
        &self,
        d: &Self::DirectSum,
        image: Complexes<Self, T>,
        values: ComplexesMut<Self, T>,
    ) -> Result<()>;

    /// Plans the backprojection of spokes of `readout` samples each into images of `dims` voxels. `arrays` is how many
    /// arrays of samples come at once, at most.
    fn backprojector(
        &self,
        spokes: &[Spoke],
        readout: usize,
        dims: &[usize],
        arrays: usize,
    ) -> Result<Self::Backprojector>;
    /// Bytes that a backprojector and its room take, about.
    fn backprojector_bytes(&self, readout: usize, dims: &[usize], arrays: usize) -> usize;
    /// Complex numbers that [`Backend::backproject`] wants room for.
    fn backprojection_buffer_len(&self, p: &Self::Backprojector) -> usize;
    /// image(r) = sum over spokes of p(direction.r), p being linear between knots that are [`Spoke::knot_spacing`] apart, of
    /// which one is at 0, and there p(t) = sum_j values(j) exp(+i 2 pi (first + step j) t). Several arrays of samples
    /// may follow one another, and as many images.
    fn backproject(
        &self,
        p: &Self::Backprojector,
        values: Complexes<Self, T>,
        room: ComplexesMut<Self, T>,
        image: ComplexesMut<Self, T>,
    );

    /// y = x.
    fn copy<E: Element>(&self, x: Self::View<'_, E>, y: Self::ViewMut<'_, E>);
    /// y = 0.
    fn clear<E: Element>(&self, y: Self::ViewMut<'_, E>);
    /// z = x y, y being repeated for each array of its length in x and z.
    fn multiply(&self, x: Complexes<Self, T>, y: Complexes<Self, T>, z: ComplexesMut<Self, T>);
    /// z = z + conj(x) y, summed over the arrays of z's length in x and y.
    fn add_conj_products(&self, x: Complexes<Self, T>, y: Complexes<Self, T>, z: ComplexesMut<Self, T>);
    /// z = w x, w being real, and repeated for each array of its length in x and z.
    fn apply_weights(&self, w: Reals<Self, T>, x: Complexes<Self, T>, z: ComplexesMut<Self, T>);
    /// out(m) = w(m) exp(+i 2 pi k_m.shift), w being 1 where not given: weights whose adjoint is shifted by `shift`
    /// voxels.
    fn ramp(&self, k: &[Reals<Self, T>], shift: &[f64], w: Option<Reals<Self, T>>, out: ComplexesMut<Self, T>);
    /// y = y + a x.
    fn axpy(&self, a: f64, x: Complexes<Self, T>, y: ComplexesMut<Self, T>);
    /// out(0) = Re <x, y>, summed in double precision in a fixed order.
    fn dot(&self, x: Complexes<Self, T>, y: Complexes<Self, T>, out: Self::ViewMut<'_, f64>);

    /// One step of conjugate gradients: with a = rr(0) / pq(0), x = x + a p, r = r - a q, and rr_new(0) = <r, r>.
    /// A direction without energy (pq <= 0) changes nothing.
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
    /// Subtracts from x its projections on the arrays v_k of x's length in `v`, at most four:
    /// x = x - sum_k v_k <v_k, x> / norms[k], with norms[k] = <v_k, v_k>. Then sets xx(0) = <x, x>. Sums are in double
    /// precision in a fixed order.
    fn subtract_projections(
        &self,
        v: Complexes<Self, T>,
        norms: &[f64],
        x: ComplexesMut<Self, T>,
        xx: Self::ViewMut<'_, f64>,
    );
    /// p = r + (rr_new(0) / rr(0)) p.
    fn cg_direction(
        &self,
        rr_new: Self::View<'_, f64>,
        rr: Self::View<'_, f64>,
        r: Complexes<Self, T>,
        p: ComplexesMut<Self, T>,
    );

    /// y = y + lambda D^H W D x, D being the differences between neighbours along each axis of an image of `dims`
    /// voxels and W their weights: [voxels, axes], that of a voxel and the next one along the axis; 1 where not given.
    fn add_differences(
        &self,
        dims: &[usize],
        weights: Option<Reals<Self, T>>,
        lambda: f64,
        x: Complexes<Self, T>,
        y: ComplexesMut<Self, T>,
    );
    /// y = a A x + b y.
    fn csr_multiply(&self, a: f64, matrix: Csr<Self, T>, x: Complexes<Self, T>, b: f64, y: ComplexesMut<Self, T>);
}
