//! Arrays on their way between a caller and a backend: the caller's memory ([`Source`], [`Sink`]), parts of arrays
//! ([`Span`]), and memory of a GPU ([`DeviceSlice`], [`DeviceSliceMut`]).

use std::marker::PhantomData;
use std::ops::Range;

/// Elements of an array that a backend reads or writes.
#[allow(clippy::len_without_is_empty)]
pub trait Span: Sized + Send {
    /// The number of elements.
    fn len(&self) -> usize;
    /// A part. Panics when it is not inside.
    #[must_use]
    fn part(self, range: Range<usize>) -> Self;
}

impl<E: Sync> Span for &[E] {
    fn len(&self) -> usize {
        <[E]>::len(self)
    }
    fn part(self, range: Range<usize>) -> Self {
        &self[range]
    }
}

impl<E: Send> Span for &mut [E] {
    fn len(&self) -> usize {
        <[E]>::len(self)
    }
    fn part(self, range: Range<usize>) -> Self {
        &mut self[range]
    }
}

/// The address of elements in the memory of a GPU, as kernels take it. Only the GPU follows it, in code that is unsafe.
#[repr(transparent)]
pub struct DevicePointer<E>(u64, PhantomData<fn(E) -> E>);

impl<E> Clone for DevicePointer<E> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<E> Copy for DevicePointer<E> {}

impl<E> std::fmt::Debug for DevicePointer<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl<E> DevicePointer<E> {
    /// What kernels take where an array is optional.
    pub const NULL: Self = DevicePointer(0, PhantomData);

    /// The pointer to this address.
    pub fn new(address: u64) -> Self {
        DevicePointer(address, PhantomData)
    }

    /// The address.
    pub fn address(self) -> u64 {
        self.0
    }

    /// The pointer to the element `count` elements further on.
    #[must_use]
    pub fn offset(self, count: usize) -> Self {
        DevicePointer(self.0.wrapping_add((count * size_of::<E>()) as u64), PhantomData)
    }
}

/// Elements in the memory of a GPU, to read.
///
/// There is none without `unsafe` but what an array on the GPU lends:
///
/// ```compile_fail
/// use recon::backend::{DevicePointer, DeviceSlice};
/// let invented: DeviceSlice<'_, f32> = DeviceSlice::new(DevicePointer::new(4096), 8);
/// ```
#[derive(Debug)]
pub struct DeviceSlice<'a, E> {
    pointer: DevicePointer<E>,
    len: usize,
    borrowed: PhantomData<&'a E>,
}

impl<E> Clone for DeviceSlice<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<E> Copy for DeviceSlice<'_, E> {}

impl<E> DeviceSlice<'_, E> {
    /// `len` elements at an address.
    ///
    /// # Safety
    /// They are in the memory of a GPU and stay there, and nothing writes them, for the life of the slice and until the
    /// work is done that was queued with it.
    pub unsafe fn new(pointer: DevicePointer<E>, len: usize) -> Self {
        DeviceSlice { pointer, len, borrowed: PhantomData }
    }

    /// The address of the first element.
    pub fn pointer(&self) -> DevicePointer<E> {
        self.pointer
    }
}

impl<E: Sync> Span for DeviceSlice<'_, E> {
    fn len(&self) -> usize {
        self.len
    }
    fn part(self, range: Range<usize>) -> Self {
        check_part(&range, self.len);
        DeviceSlice { pointer: self.pointer.offset(range.start), len: range.len(), ..self }
    }
}

/// Elements in the memory of a GPU, to write.
///
/// What is read cannot be written:
///
/// ```compile_fail
/// use recon::backend::{cuda::gpu::Gpu, DeviceSlice};
/// fn swapped(gpu: &Gpu, from: DeviceSlice<'_, f32>, to: DeviceSlice<'_, f32>) {
///     gpu.copy(from, to);
/// }
/// ```
///
/// nor elements of one type as another:
///
/// ```compile_fail
/// use recon::backend::{cuda::gpu::Gpu, DeviceSlice, DeviceSliceMut};
/// fn mixed(gpu: &Gpu, from: DeviceSlice<'_, f32>, to: DeviceSliceMut<'_, f64>) {
///     gpu.copy(from, to);
/// }
/// ```
#[derive(Debug)]
pub struct DeviceSliceMut<'a, E> {
    pointer: DevicePointer<E>,
    len: usize,
    borrowed: PhantomData<&'a mut E>,
}

impl<E> DeviceSliceMut<'_, E> {
    /// `len` elements at an address.
    ///
    /// # Safety
    /// They are in the memory of a GPU and stay there, and nothing else touches them, for the life of the slice and
    /// until the work is done that was queued with it.
    pub unsafe fn new(pointer: DevicePointer<E>, len: usize) -> Self {
        DeviceSliceMut { pointer, len, borrowed: PhantomData }
    }

    /// The address of the first element.
    pub fn pointer(&self) -> DevicePointer<E> {
        self.pointer
    }

    /// The same elements, to read.
    pub fn as_slice(&self) -> DeviceSlice<'_, E> {
        DeviceSlice { pointer: self.pointer, len: self.len, borrowed: PhantomData }
    }

    /// The same elements, for a shorter time.
    pub fn reborrow(&mut self) -> DeviceSliceMut<'_, E> {
        DeviceSliceMut { pointer: self.pointer, len: self.len, borrowed: PhantomData }
    }
}

impl<E: Send> Span for DeviceSliceMut<'_, E> {
    fn len(&self) -> usize {
        self.len
    }
    fn part(self, range: Range<usize>) -> Self {
        check_part(&range, self.len);
        DeviceSliceMut { pointer: self.pointer.offset(range.start), len: range.len(), ..self }
    }
}

fn check_part(range: &Range<usize>, len: usize) {
    assert!(range.start <= range.end && range.end <= len, "part {range:?} of {len} elements");
}

/// A caller's array to read, in the host's memory or a GPU's.
#[derive(Debug)]
pub enum Source<'a, E> {
    /// The host's memory.
    Host(&'a [E]),
    /// A GPU's memory, see [`Source::device`].
    Device(DeviceSlice<'a, E>),
}

impl<E> Clone for Source<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<E> Copy for Source<'_, E> {}

impl<E> Source<'_, E> {
    /// `len` elements at an address in the memory of the plan's GPU, in place of a slice of the host's.
    ///
    /// # Safety
    /// The elements are there, and nothing writes them during the life of the source but work that was queued before on
    /// the plan's stream ([`crate::Options::stream`]).
    pub unsafe fn device(address: *const E, len: usize) -> Self {
        // SAFETY: the caller's promise.
        Source::Device(unsafe { DeviceSlice::new(DevicePointer::new(address as u64), len) })
    }
}

impl<E: Sync> Source<'_, E> {
    /// The number of elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match self {
            Source::Host(host) => host.len(),
            Source::Device(device) => device.len,
        }
    }

    /// A part. Panics when it is not inside.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> Self {
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

/// A caller's array to write, in the host's memory or a GPU's.
#[derive(Debug)]
pub enum Sink<'a, E> {
    /// The host's memory.
    Host(&'a mut [E]),
    /// A GPU's memory, see [`Sink::device`].
    Device(DeviceSliceMut<'a, E>),
}

impl<'a, E> Sink<'a, E> {
    /// `len` elements at an address in the memory of the plan's GPU, in place of a slice of the host's.
    ///
    /// # Safety
    /// The elements are there, and nothing else touches them during `'a` but work that was queued before on the plan's
    /// stream.
    pub unsafe fn device(address: *mut E, len: usize) -> Self {
        // SAFETY: the caller's promise.
        Sink::Device(unsafe { DeviceSliceMut::new(DevicePointer::new(address as u64), len) })
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
                check_part(&(0..len), device.len);
                let first = DeviceSliceMut { pointer: device.pointer, len, borrowed: PhantomData };
                (device.pointer, device.len) = (device.pointer.offset(len), device.len - len);
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
