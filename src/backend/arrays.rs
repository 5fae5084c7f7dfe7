//! Arrays that callers and backends exchange: the caller's memory ([`Source`], [`Sink`]), parts of arrays ([`Span`]),
//! and memory of a GPU ([`DeviceSlice`], [`DeviceSliceMut`]).

use std::marker::PhantomData;
use std::ops::Range;

/// A view of array elements that a backend reads or writes.
#[allow(clippy::len_without_is_empty)]
pub trait Span: Sized + Send {
    /// Returns the number of elements.
    fn len(&self) -> usize;
    /// Returns a part. Panics if the range is not inside.
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

/// The address of elements in the memory of a GPU, as passed to kernels. Only unsafe code that runs on the GPU
/// dereferences it.
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
    /// The null pointer, for optional arrays of kernels.
    pub const NULL: Self = DevicePointer(0, PhantomData);

    /// Creates a pointer from an address.
    pub fn new(address: u64) -> Self {
        DevicePointer(address, PhantomData)
    }

    /// Returns the address.
    pub fn address(self) -> u64 {
        self.0
    }

    /// Returns the pointer to the element `count` elements further on.
    #[must_use]
    pub fn offset(self, count: usize) -> Self {
        DevicePointer(self.0.wrapping_add((count * size_of::<E>()) as u64), PhantomData)
    }
}

/// Read-only elements in the memory of a GPU.
///
/// Safe code obtains a slice only by borrowing an array on the GPU:
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
    /// Creates a slice of `len` elements at an address.
    ///
    /// # Safety
    /// The elements must be in the memory of a GPU. They must stay valid and unchanged for the lifetime of the slice,
    /// and until the work that was queued with it is done.
    pub unsafe fn new(pointer: DevicePointer<E>, len: usize) -> Self {
        DeviceSlice { pointer, len, borrowed: PhantomData }
    }

    /// Returns the address of the first element.
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

/// Writable elements in the memory of a GPU.
///
/// A read-only slice cannot be written:
///
/// ```compile_fail
/// use recon::backend::{cuda::gpu::Gpu, DeviceSlice};
/// fn swapped(gpu: &Gpu, from: DeviceSlice<'_, f32>, to: DeviceSlice<'_, f32>) {
///     gpu.copy(from, to);
/// }
/// ```
///
/// Elements of one type cannot be copied to a different type:
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
    /// Creates a slice of `len` elements at an address.
    ///
    /// # Safety
    /// The elements must be in the memory of a GPU. They must stay valid, and no other code may access them, for the
    /// lifetime of the slice and until the work that was queued with it is done.
    pub unsafe fn new(pointer: DevicePointer<E>, len: usize) -> Self {
        DeviceSliceMut { pointer, len, borrowed: PhantomData }
    }

    /// Returns the address of the first element.
    pub fn pointer(&self) -> DevicePointer<E> {
        self.pointer
    }

    /// Returns a read-only slice of the same elements.
    pub fn as_slice(&self) -> DeviceSlice<'_, E> {
        DeviceSlice { pointer: self.pointer, len: self.len, borrowed: PhantomData }
    }

    /// Returns the same slice with a shorter lifetime.
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

/// Panics if a range is not inside an array of `len` elements.
fn check_part(range: &Range<usize>, len: usize) {
    assert!(range.start <= range.end && range.end <= len, "part {range:?} of {len} elements");
}

/// A caller's input array, in host or GPU memory.
#[derive(Debug)]
pub enum Source<'a, E> {
    /// Host memory.
    Host(&'a [E]),
    /// GPU memory, see [`Source::device`].
    Device(DeviceSlice<'a, E>),
}

impl<E> Clone for Source<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<E> Copy for Source<'_, E> {}

impl<E> Source<'_, E> {
    /// Creates an array of `len` elements at an address in the memory of the plan's GPU.
    ///
    /// # Safety
    /// The elements must exist at this address. During the lifetime of the source, only work that was queued earlier on
    /// the plan's stream ([`crate::Options::stream`]) may write them.
    pub unsafe fn device(address: *const E, len: usize) -> Self {
        // SAFETY: the caller's promise.
        Source::Device(unsafe { DeviceSlice::new(DevicePointer::new(address as u64), len) })
    }
}

impl<E: Sync> Source<'_, E> {
    /// Returns the number of elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match self {
            Source::Host(host) => host.len(),
            Source::Device(device) => device.len,
        }
    }

    /// Returns a part. Panics if the range is not inside.
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

/// A caller's output array, in host or GPU memory.
#[derive(Debug)]
pub enum Sink<'a, E> {
    /// Host memory.
    Host(&'a mut [E]),
    /// GPU memory, see [`Sink::device`].
    Device(DeviceSliceMut<'a, E>),
}

impl<'a, E> Sink<'a, E> {
    /// Creates an array of `len` elements at an address in the memory of the plan's GPU.
    ///
    /// # Safety
    /// The elements must exist at this address. During `'a`, only work that was queued earlier on the plan's stream may
    /// access them.
    pub unsafe fn device(address: *mut E, len: usize) -> Self {
        // SAFETY: the caller's promise.
        Sink::Device(unsafe { DeviceSliceMut::new(DevicePointer::new(address as u64), len) })
    }

    /// Returns the number of elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        match self {
            Sink::Host(host) => host.len(),
            Sink::Device(device) => device.len,
        }
    }

    /// Removes the first `len` elements and returns them. Panics if there are fewer.
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
