//! The error type of the crate: a kind that callers can match on, and a message that names the cause, the value and
//! the remedy. A new kind is a new row of `error_kinds`, and `make header`: texts and MATLAB's identifiers follow.

use super::{headroom, mapped};
use std::fmt;

/// All that there is to say of each kind of error: what it means, its number and name in the C API, and its text.
/// Numbers are never reused. `$with` makes of it what it needs: the kinds here, the header's statuses in
/// src/ffi/status.rs.
macro_rules! error_kinds {
    ($with:ident) => {
        $with! {
            /// A pointer that must not be null was null.
            NullPointer = 1, RECON_NULL_POINTER, "null pointer";
            /// A size or count is zero or otherwise impossible.
            InvalidSize = 2, RECON_INVALID_SIZE, "invalid size";
            /// A size, or a product of sizes, does not fit the address space.
            SizeOverflow = 3, RECON_SIZE_OVERFLOW, "size overflow";
            /// Two counts that must agree do not.
            SizeMismatch = 4, RECON_SIZE_MISMATCH, "sizes do not match";
            /// A coordinate, weight, sample or voxel is NaN or infinite; the message says which.
            NotFinite = 5, RECON_NOT_FINITE, "number is NaN or infinite";
            /// A k-space coordinate lies outside [-0.5, 0.5) cycles per voxel; the message says which.
            CoordinateOutOfRange = 6, RECON_COORDINATE_OUT_OF_RANGE, "coordinate out of range";
            /// The tolerance cannot be met, or is no tolerance at all.
            ToleranceOutOfRange = 7, RECON_TOLERANCE_OUT_OF_RANGE, "tolerance out of range";
            /// An enumeration holds a value that this version does not know; the message lists those it does.
            UnknownValue = 8, RECON_UNKNOWN_VALUE, "unknown value of an enumeration";
            /// A structure announces a struct_size that this version does not know: call its _init function first.
            UnknownStructSize = 9, RECON_UNKNOWN_STRUCT_SIZE, "unknown struct_size";
            /// Another argument has a value that makes no sense: a misaligned pointer, arrays that overlap, a negative
            /// weight.
            InvalidArgument = 10, RECON_INVALID_ARGUMENT, "invalid argument";
            /// The memory limit is too small; the message says the bytes needed.
            MemoryLimit = 11, RECON_MEMORY_LIMIT, "memory limit too small";
            /// The host is out of memory.
            OutOfHostMemory = 12, RECON_OUT_OF_HOST_MEMORY, "out of host memory";
            /// The device is out of memory.
            OutOfDeviceMemory = 13, RECON_OUT_OF_DEVICE_MEMORY, "out of device memory";
            /// There is no device of the kind asked for.
            NoDevice = 14, RECON_NO_DEVICE, "no such device";
            /// A driver is there, but a library it needs (NVRTC) is not, or they do not fit together; the message says
            /// what to install.
            DriverIncomplete = 15, RECON_DRIVER_INCOMPLETE, "driver incomplete";
            /// The progress callback or the interrupt callback asked to stop.
            Cancelled = 16, RECON_CANCELLED, "cancelled";
            /// This version cannot do what was asked.
            Unsupported = 17, RECON_UNSUPPORTED, "unsupported";
            /// A file could not be read or written.
            IO = 18, RECON_IO, "file could not be read or written";
            /// A file was read but its contents are wrong.
            BadFile = 19, RECON_BAD_FILE, "file has wrong contents";
            /// A defect in this library: please report the message. Outputs of the call may be half written.
            Internal = 20, RECON_INTERNAL, "internal error";
            /// The GPU failed while computing. Outputs of the call may be half written, and the GPU may be of no use to
            /// this process any more.
            DeviceFailed = 21, RECON_DEVICE_FAILED, "device failed";
        }
    };
}
pub(crate) use error_kinds;

macro_rules! define_kinds {
    ($($(#[doc = $doc:literal])+ $kind:ident = $number:literal, $status:ident, $text:literal;)+) => {
        /// What went wrong, in the coarse terms a caller can act on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind {
            $($(#[doc = $doc])+ $kind = $number,)+
        }

        impl ErrorKind {
            /// All of them.
            pub const ALL: &'static [ErrorKind] = &[$(ErrorKind::$kind),+];
        }
    };
}
error_kinds!(define_kinds);

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
    // Cached memory is given back before an allocation fails.
    let is_refused =
        v.try_reserve_exact(count).is_err() && (mapped::release() == 0 || v.try_reserve_exact(count).is_err());
    // Without room for small allocations the vector goes back, which leaves some for the message.
    if is_refused || !headroom::is_there() {
        drop(v);
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
