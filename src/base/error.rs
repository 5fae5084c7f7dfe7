//! The error type of the crate: a kind that callers can match, and a message that states cause, value and remedy. A new
//! kind is a new row of `error_kinds`; `make header` then updates texts and MATLAB identifiers.

use super::{headroom, mapped};
use std::fmt;

/// The table of error kinds: meaning, number and name in the C API, and text. Numbers are never reused. `$with` is the
/// macro that processes the rows: the kinds are defined here, the header's statuses in src/ffi/status.rs.
macro_rules! error_kinds {
    ($with:ident) => {
        $with! {
            /// A pointer that must not be null was null.
            NullPointer = 1, RECON_NULL_POINTER, "null pointer";
            /// A size or count is zero or otherwise impossible.
            InvalidSize = 2, RECON_INVALID_SIZE, "invalid size";
            /// A size, or a product of sizes, does not fit the address space.
            SizeOverflow = 3, RECON_SIZE_OVERFLOW, "size overflow";
            /// Two counts that must be equal differ.
            SizeMismatch = 4, RECON_SIZE_MISMATCH, "sizes do not match";
            /// A coordinate, weight, sample or voxel is NaN or infinite; the message says which.
            NotFinite = 5, RECON_NOT_FINITE, "number is NaN or infinite";
            /// A k-space coordinate lies outside [-0.5, 0.5] cycles per voxel; the message says which.
            CoordinateOutOfRange = 6, RECON_COORDINATE_OUT_OF_RANGE, "coordinate out of range";
            /// The tolerance cannot be met, or is not a valid tolerance.
            ToleranceOutOfRange = 7, RECON_TOLERANCE_OUT_OF_RANGE, "tolerance out of range";
            /// An enumeration has a value that is unknown to this version; the message lists the known values.
            UnknownValue = 8, RECON_UNKNOWN_VALUE, "unknown value of an enumeration";
            /// A structure has a struct_size that is unknown to this version: call its _init function first.
            UnknownStructSize = 9, RECON_UNKNOWN_STRUCT_SIZE, "unknown struct_size";
            /// Another argument has an invalid value: a misaligned pointer, arrays that overlap, a negative weight.
            InvalidArgument = 10, RECON_INVALID_ARGUMENT, "invalid argument";
            /// The memory limit is too small; the message states the bytes needed.
            MemoryLimit = 11, RECON_MEMORY_LIMIT, "memory limit too small";
            /// The host is out of memory.
            OutOfHostMemory = 12, RECON_OUT_OF_HOST_MEMORY, "out of host memory";
            /// The device is out of memory.
            OutOfDeviceMemory = 13, RECON_OUT_OF_DEVICE_MEMORY, "out of device memory";
            /// No device of the requested kind exists.
            NoDevice = 14, RECON_NO_DEVICE, "no such device";
            /// A driver is installed, but a library that it needs (NVRTC) is missing, or the two are incompatible; the
            /// message states what to install.
            DriverIncomplete = 15, RECON_DRIVER_INCOMPLETE, "driver incomplete";
            /// The progress callback or the interrupt callback requested a stop.
            Cancelled = 16, RECON_CANCELLED, "cancelled";
            /// This version does not support the requested operation.
            Unsupported = 17, RECON_UNSUPPORTED, "unsupported";
            /// A file could not be read or written.
            IO = 18, RECON_IO, "file could not be read or written";
            /// A file was read, but its contents are invalid.
            BadFile = 19, RECON_BAD_FILE, "file has wrong contents";
            /// A defect in this library: please report the message. Outputs of the call may be half written.
            Internal = 20, RECON_INTERNAL, "internal error";
            /// The GPU failed during a computation. Outputs of the call may be half written, and this process may be
            /// unable to use the GPU again.
            DeviceFailed = 21, RECON_DEVICE_FAILED, "device failed";
        }
    };
}
pub(crate) use error_kinds;

macro_rules! define_kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident = $number:literal, $status:ident, $text:literal;)+) => {
        /// The kind of an error, on which a caller can act.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[doc = $doc])+ $kind = $number,)+
        }

        impl ErrorKind {
            /// All kinds.
            pub const ALL: &'static [ErrorKind] = &[$(ErrorKind::$kind),+];
        }
    };
}
error_kinds!(define_kinds);

/// An error: its kind, and a message for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// The result of a function that can fail.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Creates an error of this kind with this message.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into() }
    }

    /// Returns the kind, for programs.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the message, which states cause, value and remedy.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the error with "`place`: " in front of its message.
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

/// Returns an [`Error`] of this kind from the enclosing function. The other arguments are those of `format!`.
#[macro_export]
#[doc(hidden)]
macro_rules! bail {
    ($kind:ident, $($message:tt)+) => {
        return Err($crate::error::Error::new($crate::error::ErrorKind::$kind, format!($($message)+)))
    };
}
#[doc(hidden)]
pub use bail;

/// Allocates a vector of `count` copies of `value`; the error states the number of bytes.
pub fn try_vec<E: Clone>(count: usize, value: E, what: &str) -> Result<Vec<E>> {
    let mut v = try_reserve(count, what)?;
    v.resize(count, value);
    Ok(v)
}

/// Allocates an empty vector with capacity for `count` elements; the error states the number of bytes.
pub fn try_reserve<E>(count: usize, what: &str) -> Result<Vec<E>> {
    let mut v = Vec::new();
    // Cached memory is released before an allocation fails.
    let is_refused =
        v.try_reserve_exact(count).is_err() && (mapped::release() == 0 || v.try_reserve_exact(count).is_err());
    // If small allocations would fail, the vector is freed, which leaves memory for the message.
    if is_refused || !headroom::has_room() {
        drop(v);
        let bytes = count as u128 * std::mem::size_of::<E>() as u128;
        bail!(OutOfHostMemory, "could not allocate {bytes} bytes for {what}: free memory, or use a smaller problem");
    }
    Ok(v)
}

/// Reserves capacity for `additional` more elements of a vector that grows again and again; the error states the number
/// of bytes. The vector is unchanged after an error.
pub(crate) fn try_grow<E>(v: &mut Vec<E>, additional: usize, what: &str) -> Result<()> {
    // Cached memory is released before an allocation fails.
    let is_refused =
        v.try_reserve(additional).is_err() && (mapped::release() == 0 || v.try_reserve(additional).is_err());
    if is_refused || !headroom::has_room() {
        let bytes = (v.len() as u128 + additional as u128) * std::mem::size_of::<E>() as u128;
        bail!(OutOfHostMemory, "could not allocate {bytes} bytes for {what}: free memory, or use a smaller problem");
    }
    Ok(())
}

/// Collects `count` elements; the error states the number of bytes.
pub(crate) fn try_collect<E>(count: usize, what: &str, elements: impl Iterator<Item = E>) -> Result<Vec<E>> {
    let mut v = try_reserve(count, what)?;
    v.extend(elements.take(count));
    Ok(v)
}

/// Moves a value into an allocation of its own; the error states the number of bytes.
pub(crate) fn try_box<E>(value: E, what: &str) -> Result<Box<E>> {
    let mut slice = try_reserve(1, what)?;
    slice.push(value);
    let slice: Box<[E]> = slice.into_boxed_slice();
    debug_assert_eq!(slice.len(), 1);
    // SAFETY: a slice of one element has the element's layout and address.
    Ok(unsafe { Box::from_raw(Box::into_raw(slice).cast::<E>()) })
}

/// Returns the product of sizes, or an error that lists them.
pub fn checked_product(sizes: &[usize], what: &str) -> Result<usize> {
    match sizes.iter().try_fold(1usize, |p, &n| p.checked_mul(n)) {
        // An array has at most isize::MAX bytes; the largest element has 16.
        Some(p) if p <= isize::MAX as usize / 16 => Ok(p),
        _ => bail!(SizeOverflow, "the size of {what}, {sizes:?}, overflows the address space: use smaller sizes"),
    }
}
