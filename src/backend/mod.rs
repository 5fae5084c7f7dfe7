//! The one interface between algorithms and devices.
//!
//! Algorithms (nufft, toeplitz, encoding, cg, ...) are written once over [`Backend`]; a backend implements these
//! primitives and nothing else. All of them write every element of their output, give the same bits on every call, and
//! leave errors to the functions that allocate: a primitive on views that exist cannot fail but for the device itself,
//! and for direct sums, which a caller may interrupt.

pub mod cpu;
pub mod cuda;

use crate::base::error::Result;
pub use crate::base::real::Element;
use crate::base::real::Real;
use num_complex::Complex;
use std::marker::PhantomData;
use std::ops::Range;

/// The widest window that the gridding kernels take.
pub const MAX_WIDTH: usize = 16;
/// The highest degree of the taps' polynomials.
pub const MAX_DEGREE: usize = MAX_WIDTH + 8;

/// An array of the caller's to read, in the host's memory or a GPU's.
#[derive(Debug)]
pub enum Source<'a, E> {
    /// The host's memory.
    Host(&'a [E]),
    /// A GPU's memory, see [`Source::device`].
    Device(DeviceSlice<'a, E>),
}

/// Elements in the memory of a GPU, at an address that only the GPU follows.
#[derive(Debug)]
pub struct DeviceSlice<'a, E> {
    address: *mut E,
    len: usize,
    marker: PhantomData<&'a E>,
}

// SAFETY: a shared or unique borrow, as &[E] and &mut [E] are; the address is only followed on the GPU.
unsafe impl<E: Send + Sync> Send for DeviceSlice<'_, E> {}
// SAFETY: as above.
unsafe impl<E: Sync> Sync for DeviceSlice<'_, E> {}

impl<E> Clone for DeviceSlice<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<E> Copy for DeviceSlice<'_, E> {}
impl<E> Clone for Source<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<E> Copy for Source<'_, E> {}

impl<E> DeviceSlice<'_, E> {
    /// The address of the first element.
    pub fn address(&self) -> *mut E {
        self.address
    }

    /// The number of elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    fn part(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len, "part {range:?} of {} elements", self.len);
        DeviceSlice { address: self.address.wrapping_add(range.start), len: range.len(), marker: PhantomData }
    }
}

impl<'a, E> Source<'a, E> {
    /// `len` elements at an address in the memory of the plan's GPU, in place of a slice of the host's.
    ///
    /// # Safety
    /// The elements are there, and nothing writes them during `'a` but work that was queued before on the plan's stream
    /// ([`crate::Options::stream`]).
    pub unsafe fn device(address: *const E, len: usize) -> Self {
        Source::Device(DeviceSlice { address: address.cast_mut(), len, marker: PhantomData })
    }

    /// The number of elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match self {
            Source::Host(host) => host.len(),
            Source::Device(device) => device.len,
        }
    }

    /// A part. Panics when it is not inside.
    pub fn part(&self, range: Range<usize>) -> Source<'a, E> {
        match self {
            Source::Host(host) => Source::Host(&host[range]),
            Source::Device(device) => Source::Device(device.part(range)),
        }
    }
}

impl<'a, E, S: AsRef<[E]> + ?Sized> From<&'a S> for Source<'a, E> {
    fn from(host: &'a S) -> Self {
        Source::Host(host.as_ref())
    }
}

/// An array of the caller's to write, in the host's memory or a GPU's.
#[derive(Debug)]
pub enum Sink<'a, E> {
    /// The host's memory.
    Host(&'a mut [E]),
    /// A GPU's memory, see [`Sink::device`].
    Device(DeviceSlice<'a, E>),
}

impl<'a, E> Sink<'a, E> {
    /// `len` elements at an address in the memory of the plan's GPU, in place of a slice of the host's.
    ///
    /// # Safety
    /// The elements are there, and nothing else touches them during `'a` but work that was queued before on the plan's
    /// stream.
    pub unsafe fn device(address: *mut E, len: usize) -> Self {
        Sink::Device(DeviceSlice { address, len, marker: PhantomData })
    }

    /// The number of elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match self {
            Sink::Host(host) => host.len(),
            Sink::Device(device) => device.len,
        }
    }

    /// Takes the first `len` elements off. Panics when there are fewer.
    pub fn split_off(&mut self, len: usize) -> Sink<'a, E> {
        match self {
            Sink::Host(host) => {
                let (first, rest) = std::mem::take(host).split_at_mut(len);
                *host = rest;
                Sink::Host(first)
            }
            Sink::Device(device) => {
                let first = device.part(0..len);
                *device = device.part(len..device.len);
                Sink::Device(first)
            }
        }
    }
}

impl<'a, E, S: AsMut<[E]> + ?Sized> From<&'a mut S> for Sink<'a, E> {
    fn from(host: &'a mut S) -> Self {
        Sink::Host(host.as_mut())
    }
}

/// A borrowed part of an array in the memory of backend `B`.
pub struct View<'a, B: ?Sized, E> {
    address: *const E,
    len: usize,
    marker: PhantomData<(&'a E, fn(&B))>,
}

impl<B: ?Sized, E> Clone for View<'_, B, E> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B: ?Sized, E> Copy for View<'_, B, E> {}

// SAFETY: a view is a shared borrow, as &[E] is; the address is only followed on the backend that made it.
unsafe impl<B: ?Sized, E: Sync> Send for View<'_, B, E> {}
// SAFETY: as above.
unsafe impl<B: ?Sized, E: Sync> Sync for View<'_, B, E> {}

impl<'a, B: ?Sized, E> View<'a, B, E> {
    /// A view of `len` elements at `address`.
    ///
    /// # Safety
    /// The elements must be initialised, lie in memory of `B`, and not be written during `'a`.
    pub unsafe fn new(address: *const E, len: usize) -> Self {
        View { address, len, marker: PhantomData }
    }

    /// The address of the first element, in the memory of `B`.
    pub fn address(&self) -> *const E {
        self.address
    }

    /// The number of elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// A part of the view. Panics when it is not inside.
    pub fn part(&self, range: Range<usize>) -> View<'a, B, E> {
        assert!(range.start <= range.end && range.end <= self.len, "part {range:?} of a view of {}", self.len);
        // SAFETY: the range lies within the elements that self borrows for 'a.
        unsafe { View::new(self.address.wrapping_add(range.start), range.len()) }
    }
}

/// A mutably borrowed part of an array in the memory of backend `B`.
pub struct ViewMut<'a, B: ?Sized, E> {
    address: *mut E,
    len: usize,
    marker: PhantomData<(&'a mut E, fn(&B))>,
}

// SAFETY: a mutable view is a unique borrow, as &mut [E] is; the address is only followed on its backend.
unsafe impl<B: ?Sized, E: Send> Send for ViewMut<'_, B, E> {}
// SAFETY: through a shared reference to it nothing can be written.
unsafe impl<B: ?Sized, E: Sync> Sync for ViewMut<'_, B, E> {}

impl<'a, B: ?Sized, E> ViewMut<'a, B, E> {
    /// A mutable view of `len` elements at `address`.
    ///
    /// # Safety
    /// The elements must be initialised, lie in memory of `B`, and not be accessed otherwise during `'a`.
    pub unsafe fn new(address: *mut E, len: usize) -> Self {
        ViewMut { address, len, marker: PhantomData }
    }

    /// The address of the first element, in the memory of `B`.
    pub fn address(&self) -> *mut E {
        self.address
    }

    /// The number of elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The same elements, to read.
    pub fn view(&self) -> View<'_, B, E> {
        // SAFETY: self is borrowed for as long as the view lives, so nothing writes meanwhile.
        unsafe { View::new(self.address, self.len) }
    }

    /// The same elements, borrowed again for a shorter time.
    pub fn again(&mut self) -> ViewMut<'_, B, E> {
        // SAFETY: self is mutably borrowed for as long as the new view lives.
        unsafe { ViewMut::new(self.address, self.len) }
    }

    /// A part of the view. Panics when it is not inside.
    pub fn part(&mut self, range: Range<usize>) -> ViewMut<'_, B, E> {
        assert!(range.start <= range.end && range.end <= self.len, "part {range:?} of a view of {}", self.len);
        // SAFETY: the range lies within the elements that self borrows.
        unsafe { ViewMut::new(self.address.wrapping_add(range.start), range.len()) }
    }
}

/// Results on their way to the caller: each is delivered when the next has been asked for.
pub(crate) struct Deliveries<'a, T: Real, B: Backend<T>> {
    backend: &'a B,
    ready: Option<B::Output<'a, Complex<T>>>,
}

impl<'a, T: Real, B: Backend<T>> Deliveries<'a, T, B> {
    /// None yet.
    pub fn new(backend: &'a B) -> Self {
        Deliveries { backend, ready: None }
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

/// Real arrays of a backend, borrowed.
pub type Reals<'a, B, T> = View<'a, B, T>;
/// Complex arrays of a backend, borrowed.
pub type Complexes<'a, B, T> = View<'a, B, Complex<T>>;
/// Complex arrays of a backend, mutably borrowed.
pub type ComplexesMut<'a, B, T> = ViewMut<'a, B, Complex<T>>;

/// The sign of i in exp(+-i 2 pi k.r): plus takes k-space to the image, minus the image to k-space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// exp(-i 2 pi k.r), the direction of E.
    Minus,
    /// exp(+i 2 pi k.r), the direction of E^H.
    Plus,
}

/// A sparse matrix in compressed rows, in the memory of a backend.
pub struct Csr<'a, B: ?Sized, T> {
    /// Start of each row in `columns` and `values`, and the end of the last: [rows + 1].
    pub rows: View<'a, B, u32>,
    /// Column of each entry.
    pub columns: View<'a, B, u32>,
    /// Value of each entry.
    pub values: View<'a, B, Complex<T>>,
}

/// The primitives of one device in one precision. Sizes of views are the caller's duty, and checked.
pub trait Backend<T: Real>: Send + Sync + Sized + 'static {
    /// Memory that the backend owns.
    type Array<E: Element>: Send + Sync;
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

    /// A zeroed array. `what` is for the message when there is no memory.
    fn zeros<E: Element>(&self, len: usize, what: &str) -> Result<Self::Array<E>>;
    /// A copy of the caller's array.
    fn upload<E: Element>(&self, host: &[E], what: &str) -> Result<Self::Array<E>>;
    /// All of an array.
    fn view<'a, E: Element>(&self, array: &'a Self::Array<E>) -> View<'a, Self, E>;
    /// All of an array, to write.
    fn view_mut<'a, E: Element>(&self, array: &'a mut Self::Array<E>) -> ViewMut<'a, Self, E>;
    /// Copies to the caller's memory.
    fn download<E: Element>(&self, from: View<'_, Self, E>, host: &mut [E]) -> Result<()>;
    /// Makes the caller's memory readable. Memory of a GPU that is not this backend's is refused.
    fn input<'a, E: Element>(&self, source: Source<'a, E>) -> Result<Self::Input<'a, E>>;
    /// The elements of an input.
    fn read<'s, E: Element>(&self, input: &'s Self::Input<'_, E>) -> View<'s, Self, E>;
    /// Makes the caller's memory writable; it is not written before [`Backend::write`] or [`Backend::deliver`].
    fn output<'a, E: Element>(&self, sink: Sink<'a, E>) -> Result<Self::Output<'a, E>>;
    /// The elements of an output.
    fn write<'s, E: Element>(&self, output: &'s mut Self::Output<'_, E>) -> ViewMut<'s, Self, E>;
    /// Notes that all work that writes an output has been queued: it can be delivered while later work is done.
    fn mark_ready<E: Element>(&self, output: &mut Self::Output<'_, E>) -> Result<()>;
    /// Completes an output.
    fn deliver<E: Element>(&self, output: Self::Output<'_, E>) -> Result<()>;
    /// The backend's own array, as an operation takes the caller's.
    fn own_source<'a, E: Element>(&self, view: View<'a, Self, E>) -> Source<'a, E>;
    /// Likewise, to write.
    fn own<'a, E: Element>(&self, view: ViewMut<'a, Self, E>) -> Sink<'a, E>;
    /// y, which is this backend's, = x of another, as soon as that has made it.
    fn fetch<E: Element>(&self, from: &Self, x: View<'_, Self, E>, y: ViewMut<'_, Self, E>);
    /// y, which is another backend's, = x of this one, as soon as it is made. What either does with y before and after
    /// is kept apart by [`Backend::follow`].
    fn send<E: Element>(&self, x: View<'_, Self, E>, to: &Self, y: ViewMut<'_, Self, E>);
    /// Whatever is asked from now on comes after all that another was asked before.
    fn follow(&self, other: &Self);
    /// Waits until all that was asked for is done.
    fn wait(&self) -> Result<()>;
    /// The first number whose real or imaginary part is not below `limit` in magnitude, NaN among them, and its index.
    fn first_beyond(&self, values: Complexes<Self, T>, limit: T) -> Result<Option<(usize, Complex<T>)>>;
    /// Whether its memory is not the host's.
    fn is_apart(&self) -> bool;
    /// CPU threads at work.
    fn threads(&self) -> usize;
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
    /// What a convolution with Q costs, likewise.
    fn convolution_cost(&self, dims: &[usize]) -> f64;

    /// Sorts samples at `k` (one slice an axis, cycles per voxel) for spreading onto a periodic grid of size `grid`
    /// with a window of the taps that [`crate::nufft::window::Shape::polynomials`] gives. `arrays` is how many arrays
    /// of samples come at once, at most.
    fn gridder(&self, k: &[&[T]], grid: &[usize], taps: &[Vec<f64>], arrays: usize) -> Result<Self::Gridder>;
    /// Bytes that a gridder of so many samples and arrays at once holds, about.
    fn gridder_bytes(&self, samples: usize, grid: &[usize], width: usize, arrays: usize) -> usize;
    /// grid = sum over samples of value times window. Several arrays of samples may follow one another, and as many
    /// grids.
    fn spread(&self, g: &Self::Gridder, values: Complexes<Self, T>, grid: ComplexesMut<Self, T>);
    /// values = window-weighted sums of the grid: the transpose of [`Backend::spread`], likewise.
    fn interpolate(&self, g: &Self::Gridder, grid: Complexes<Self, T>, values: ComplexesMut<Self, T>);

    /// Plans transforms between a grid and an image of `dims` voxels whose voxels are multiplied by the product over
    /// axes of `correction`.
    fn grid_fft(&self, dims: &[usize], grid: &[usize], correction: &[Vec<f64>]) -> Result<Self::GridFft>;
    /// Bytes that these hold for a grid, about.
    fn grid_fft_bytes(&self, grid: &[usize]) -> usize;
    /// image(r) = correction(r) sum_u grid(u) exp(+i 2 pi u r / G). The grid is used as scratch. Several
    /// grids may follow one another, and as many images.
    fn grid_to_image(&self, f: &Self::GridFft, grid: ComplexesMut<Self, T>, image: ComplexesMut<Self, T>);
    /// grid(u) = sum_r correction(r) image(r) exp(-i 2 pi u r / G), likewise.
    fn image_to_grid(&self, f: &Self::GridFft, image: Complexes<Self, T>, grid: ComplexesMut<Self, T>);

    /// Plans the convolution of images of `dims` voxels with a kernel.
    fn convolver(&self, dims: &[usize]) -> Result<Self::Convolver>;
    /// A zeroed array for one half of a Hermitian kernel q(-delta) = conj q(delta) on the doubled grid: displacements 0
    /// to n - 1 along x, and -n to n - 1 along the other axes.
    fn kernel_grid(&self, c: &Self::Convolver) -> Result<Self::Array<Complex<T>>>;
    /// Puts one part of the kernel, of the image's size, in its place on that grid: displacements 0 to n - 1 along each
    /// axis or, where `half` says so, which it does not along x, -n to -1.
    fn place_kernel(&self, c: &Self::Convolver, half: [bool; 3], q: Complexes<Self, T>, grid: ComplexesMut<Self, T>);
    /// Makes the real spectrum of the kernel, whose grid is used as scratch.
    fn set_kernel(&self, c: &mut Self::Convolver, grid: ComplexesMut<Self, T>);
    /// The kernel's real spectrum on the doubled grid, x fastest, zero frequency first.
    fn spectrum(&self, c: &Self::Convolver) -> Result<Vec<T>>;
    /// Sets a spectrum as [`Backend::spectrum`] gave it, of as many elements.
    fn set_spectrum(&self, c: &mut Self::Convolver, spectrum: &[T]) -> Result<()>;
    /// Bytes that a convolver for images of `dims` voxels holds.
    fn convolver_bytes(&self, dims: &[usize]) -> usize;
    /// y(r) = sum_s q(r - s) x(s). Several images may follow one another.
    fn convolve(&self, c: &Self::Convolver, x: Complexes<Self, T>, y: ComplexesMut<Self, T>);

    /// Plans direct sums between samples at `k` and voxels: the grid of `dims`, or the positions `voxels` (one slice an
    /// axis) where given. Errors are those of rounding; a `tolerance` that is not 0 may ask for less than the usual
    /// ones.
    fn direct_sum(
        &self,
        k: &[&[T]],
        dims: &[usize],
        voxels: Option<&[&[T]]>,
        tolerance: f64,
    ) -> Result<Self::DirectSum>;
    /// Bytes that direct sums hold, about, to the grid of `dims` or to a list of as many voxels.
    fn direct_sum_bytes(&self, samples: usize, dims: &[usize], listed: Option<usize>) -> usize;
    /// image(r) = sum_m values(m) exp(+i 2 pi k_m.r). Where that takes long it can end with `Cancelled`, the image
    /// being half written.
    fn sum_to_image(&self, d: &Self::DirectSum, values: Complexes<Self, T>, image: ComplexesMut<Self, T>)
        -> Result<()>;
    /// values(m) = sum_r image(r) exp(-i 2 pi k_m.r), likewise.
    fn sum_to_samples(
        &self,
        d: &Self::DirectSum,
        image: Complexes<Self, T>,
        values: ComplexesMut<Self, T>,
    ) -> Result<()>;

    /// y = x.
    fn copy<E: Element>(&self, x: View<'_, Self, E>, y: ViewMut<'_, Self, E>);
    /// y = 0.
    fn clear<E: Element>(&self, y: ViewMut<'_, Self, E>);
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
    fn dot(&self, x: Complexes<Self, T>, y: Complexes<Self, T>, out: ViewMut<'_, Self, f64>);

    /// One step of conjugate gradients: with a = rr(0) / pq(0), x = x + a p, r = r - a q, and rr_new(0) = <r, r>.
    /// A direction without energy (pq <= 0) changes nothing.
    #[allow(clippy::too_many_arguments)]
    fn cg_step(
        &self,
        rr: View<'_, Self, f64>,
        pq: View<'_, Self, f64>,
        p: Complexes<Self, T>,
        q: Complexes<Self, T>,
        x: ComplexesMut<Self, T>,
        r: ComplexesMut<Self, T>,
        rr_new: ViewMut<'_, Self, f64>,
    );
    /// p = r + (rr_new(0) / rr(0)) p.
    fn cg_direction(
        &self,
        rr_new: View<'_, Self, f64>,
        rr: View<'_, Self, f64>,
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
