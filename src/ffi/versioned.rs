//! Versions of the structures of the C API, which are distinguished by their size.

use super::arrays::{check_pointer, CallArrays};
use crate::base::error::{bail, Result};
use std::ffi::c_char;

/// A structure that begins with its own size, which identifies its version.
///
/// # Safety
/// The type is `repr(C)`, begins with a u32, has no padding, and any bytes are a valid value of it.
pub(super) unsafe trait VersionedStruct: Copy {
    /// Name of the type, for messages.
    const NAME: &'static str;
    /// Sizes in earlier versions, which had the first of the present fields.
    const OLDER: &'static [usize] = &[];
    /// Returns the values that `_init` writes. They are also the values of fields that an older caller does not have.
    fn initial() -> Self;
}

/// Implements [`VersionedStruct`] for a structure, with its size, its earlier sizes and its initial values.
macro_rules! versioned {
    ($type:ident, $size:literal $(, older $older:expr)?, { $($field:ident: $value:expr),* $(,)? }) => {
        // Without padding, a new field always changes the size.
        #[cfg(target_pointer_width = "64")]
        const _: () = assert!(size_of::<$type>() == $size);
        // SAFETY: repr(C), u32 first; the asserted size is the sum of the fields' sizes. Any bytes are valid integers,
        // floats, raw pointers and optional function pointers.
        unsafe impl VersionedStruct for $type {
            const NAME: &'static str = stringify!($type);
            $(const OLDER: &'static [usize] = &$older;)?
            fn initial() -> Self {
                $type { struct_size: size_of::<$type>() as u32, $($field: $value),* }
            }
        }
    };
}
pub(super) use versioned;

/// Returns the size of a caller's structure, if it is that of a known version.
fn check_size<S: VersionedStruct>(size: u32) -> Result<usize> {
    let size = size as usize;
    if size != size_of::<S>() && !S::OLDER.contains(&size) {
        bail!(
            UnknownStructSize,
            "struct_size of {name} is {size}, which this version does not know (its own is {}): call {name}_init \
             first, and use the header of this library",
            size_of::<S>(),
            name = S::NAME
        );
    }
    Ok(size)
}

/// Writes the defaults into a caller's structure of `size` bytes, and no more.
///
/// # Safety
/// `pointer` is null, misaligned, or points to `size` writable bytes.
pub(super) unsafe fn init<S: VersionedStruct>(pointer: *mut S, size: u32) -> Result<()> {
    check_pointer(S::NAME, pointer)?;
    check_size::<S>(size)?;
    // SAFETY: checked above, and by the caller's promise of this size.
    unsafe { put(pointer, size, &S::initial()) };
    Ok(())
}

/// Reads a caller's structure, of this or an older version.
///
/// # Safety
/// `pointer` is null, misaligned, or points to a u32 that gives the number of readable bytes from `pointer` on.
pub(super) unsafe fn read<S: VersionedStruct>(name: &'static str, pointer: *const S) -> Result<S> {
    check_pointer(name, pointer)?;
    // SAFETY: checked above; every such structure begins with its size.
    let size = check_size::<S>(unsafe { pointer.cast::<u32>().read() })?;
    let mut value = S::initial();
    // SAFETY: the caller's structure has `size` bytes, ours has at least as many, and any bytes are a value of it.
    unsafe { std::ptr::copy_nonoverlapping(pointer.cast::<u8>(), (&raw mut value).cast::<u8>(), size) };
    Ok(value)
}

/// Reads a caller's structure, or returns its initial values for a null pointer.
///
/// # Safety
/// As for [`read`].
pub(super) unsafe fn read_or_initial<S: VersionedStruct>(name: &'static str, pointer: *const S) -> Result<S> {
    if pointer.is_null() {
        return Ok(S::initial());
    }
    // SAFETY: the caller's promise.
    unsafe { read(name, pointer) }
}

/// A caller's structure to be written, which is registered among the arrays of the call.
pub(super) struct StructOutput<S> {
    pointer: *mut S,
    /// Values to be written; at first those that the caller set.
    pub value: S,
    size: u32,
}

impl<S: VersionedStruct> StructOutput<S> {
    /// Checks the pointer, and reads the values that the caller set.
    ///
    /// # Safety
    /// As for [`read`], and the bytes are writable during the life of the result.
    pub unsafe fn new(arrays: &mut CallArrays, name: &'static str, pointer: *mut S) -> Result<Self> {
        // SAFETY: the caller's promise.
        let value = unsafe { read(name, pointer) }?;
        // SAFETY: read above.
        let size = unsafe { pointer.cast::<u32>().read() };
        arrays.register(name, pointer.cast::<u8>(), size as usize, true)?;
        Ok(StructOutput { pointer, value, size })
    }

    /// Checks the pointer as [`StructOutput::new`] does, or returns `None` if it is null.
    ///
    /// # Safety
    /// As for [`StructOutput::new`].
    pub unsafe fn optional(arrays: &mut CallArrays, name: &'static str, pointer: *mut S) -> Result<Option<Self>> {
        if pointer.is_null() {
            return Ok(None);
        }
        // SAFETY: the caller's promise.
        unsafe { Self::new(arrays, name, pointer) }.map(Some)
    }

    /// Writes the fields that the caller's version has.
    pub fn write(self) {
        // SAFETY: checked by `new`, whose caller promised that the structure stays writable.
        unsafe { put(self.pointer, self.size, &self.value) };
    }
}

/// Writes the first `size` bytes of a structure, with `size` as its struct_size.
///
/// # Safety
/// `pointer` is aligned and points to `size` writable bytes, at most the size of S.
unsafe fn put<S: VersionedStruct>(pointer: *mut S, size: u32, value: &S) {
    // SAFETY: the caller's promise. S has no padding, so all its bytes are initialised.
    unsafe {
        std::ptr::copy_nonoverlapping((&raw const *value).cast::<u8>(), pointer.cast::<u8>(), size as usize);
        pointer.cast::<u32>().write(size);
    }
}

/// Copies text into a fixed array of a structure, truncated to fit and terminated by 0.
pub(super) fn put_text<const N: usize>(to: &mut [c_char; N], text: &str) {
    *to = [0; N];
    for (to, byte) in to[..N - 1].iter_mut().zip(text.bytes()) {
        *to = byte as c_char;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind::*;
    use std::ptr::null;

    /// A structure with one field more than its first version, which had 16 bytes.
    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Grown {
        struct_size: u32,
        first: u32,
        second: f64,
        third: f64,
    }
    // SAFETY: repr(C), u32 first, no padding, plain numbers.
    unsafe impl VersionedStruct for Grown {
        const NAME: &'static str = "grown";
        const OLDER: &'static [usize] = &[16];
        fn initial() -> Self {
            Grown { struct_size: 24, first: 1, second: 2.0, third: 3.0 }
        }
    }

    #[test]
    fn structures_of_older_callers_are_read_and_written_within_their_size() {
        let mut older = Grown { struct_size: 9, first: 9, second: 9.0, third: 9.0 };
        // SAFETY: the structure is at least as large as each announced size that is accepted.
        unsafe {
            init(&raw mut older, 16).unwrap();
            assert_eq!(older, Grown { struct_size: 16, first: 1, second: 2.0, third: 9.0 });
            older.second = 5.0;
            // A field that the older caller does not have keeps its initial value.
            assert_eq!(read("g", &raw const older).unwrap(), Grown { second: 5.0, ..Grown::initial() }.sized(16));
            let mut out = StructOutput::new(&mut CallArrays::default(), "g", &raw mut older).unwrap();
            out.value = Grown { struct_size: 24, first: 6, second: 7.0, third: 8.0 };
            out.write();
            assert_eq!(older, Grown { struct_size: 16, first: 6, second: 7.0, third: 9.0 });
            for size in [0, 8, 20, 32, u32::MAX] {
                assert_eq!(init(&raw mut older, size).unwrap_err().kind(), UnknownStructSize);
                older.struct_size = size;
                assert_eq!(read("g", &raw const older).unwrap_err().kind(), UnknownStructSize);
            }
            assert_eq!(read::<Grown>("g", null()).unwrap_err().kind(), NullPointer);
            let odd = (&raw mut older).cast::<u8>().add(4).cast::<Grown>();
            assert_eq!(read("g", odd).unwrap_err().kind(), InvalidArgument);
        }
    }

    impl Grown {
        fn sized(self, struct_size: u32) -> Self {
            Grown { struct_size, ..self }
        }
    }

    #[test]
    fn text_is_truncated_to_fit() {
        let mut to = [1; 4];
        put_text(&mut to, "abcdef");
        assert_eq!(to.map(|c| c as u8), *b"abc\0");
        put_text(&mut to, "x");
        assert_eq!(to.map(|c| c as u8), *b"x\0\0\0");
    }
}
