//! The error type of the crate: a kind that callers can match on, and a message that names the cause, the value and
//! the remedy. Kinds are numbered for the C API; numbers are never reused.

use std::fmt;

/// What went wrong, in the coarse terms a caller can act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A pointer that must not be null was null.
    NullPointer,
    /// A size or count is zero, negative or otherwise impossible.
    InvalidSize,
    /// A product of sizes does not fit the address space or the index type.
    SizeOverflow,
    /// Two counts that must agree do not.
    SizeMismatch,
    /// A coordinate, weight, sample or voxel is NaN or infinite.
    NotFinite,
    /// A k-space coordinate lies outside [-0.5, 0.5) cycles per voxel.
    CoordinateOutOfRange,
    /// The tolerance cannot be met, or is no tolerance at all.
    ToleranceOutOfRange,
    /// An enumeration holds a value that this version does not know.
    UnknownValue,
    /// A public structure announces a size that this version does not know.
    UnknownStructSize,
    /// Another argument has a value that makes no sense.
    InvalidArgument,
    /// The memory limit given by the caller is too small; the message says the bytes needed.
    MemoryLimit,
    /// The host is out of memory.
    OutOfHostMemory,
    /// The device is out of memory.
    OutOfDeviceMemory,
    /// There is no device of the kind asked for.
    NoDevice,
    /// A driver is there, but a library it needs (NVRTC) is not, or they do not fit together.
    DriverIncomplete,
    /// The device failed while computing.
    DeviceFailed,
    /// The caller's progress callback, or the function that interrupts calls, asked to stop.
    Cancelled,
    /// This version cannot do what was asked.
    Unsupported,
    /// A file could not be read or written.
    Io,
    /// A file was read but its contents are wrong.
    BadFile,
    /// A defect in this library: a panic was caught at its boundary.
    Internal,
}

/// An error: its kind, and a sentence for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of this kind with this message.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into() }
    }

    /// What went wrong, in the terms a program can act on.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What went wrong, in a sentence that names the cause, the value and the remedy.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The same error with "`place`: " in front of its message.
    #[must_use]
    pub fn within(self, place: impl fmt::Display) -> Self {
        Error { kind: self.kind, message: format!("{place}: {}", self.message) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// Returns an [`Error`] of the given kind from the enclosing function; the rest is as for `format!`.
#[macro_export]
#[doc(hidden)]
macro_rules! bail {
    ($kind:ident, $($message:tt)+) => {
        return Err($crate::error::Error::new($crate::error::ErrorKind::$kind, format!($($message)+)))
    };
}
#[doc(hidden)]
pub use bail;

/// Allocates a vector of `count` copies of `value`, or says how many bytes were wanted.
pub fn try_vec<E: Clone>(count: usize, value: E, what: &str) -> Result<Vec<E>> {
    let mut v = try_reserve(count, what)?;
    v.resize(count, value);
    Ok(v)
}

/// An empty vector with room for `count` elements, or an error that says how many bytes were wanted.
pub fn try_reserve<E>(count: usize, what: &str) -> Result<Vec<E>> {
    let mut v = Vec::new();
    if v.try_reserve_exact(count).is_err() {
        let bytes = count as u128 * std::mem::size_of::<E>() as u128;
        bail!(OutOfHostMemory, "could not allocate {bytes} bytes for {what}: free memory, or use a smaller problem");
    }
    Ok(v)
}

/// Collects `count` elements, or says how many bytes were wanted.
pub(crate) fn try_collect<E>(count: usize, what: &str, elements: impl Iterator<Item = E>) -> Result<Vec<E>> {
    let mut v = try_reserve(count, what)?;
    v.extend(elements.take(count));
    Ok(v)
}

/// A value in memory of its own, or an error that says how many bytes were wanted.
pub(crate) fn try_box<E>(value: E, what: &str) -> Result<Box<E>> {
    let mut one = try_reserve(1, what)?;
    one.push(value);
    let one: Box<[E]> = one.into_boxed_slice();
    debug_assert_eq!(one.len(), 1);
    // SAFETY: a slice of one element has the element's layout and address.
    Ok(unsafe { Box::from_raw(Box::into_raw(one).cast::<E>()) })
}

/// The product of sizes, or an error that names them.
pub fn checked_product(sizes: &[usize], what: &str) -> Result<usize> {
    match sizes.iter().try_fold(1usize, |p, &n| p.checked_mul(n)) {
        // Arrays are limited to isize::MAX bytes; 16 is the largest element.
        Some(p) if p <= isize::MAX as usize / 16 => Ok(p),
        _ => bail!(SizeOverflow, "the size of {what}, {sizes:?}, overflows the address space: use smaller sizes"),
    }
}
