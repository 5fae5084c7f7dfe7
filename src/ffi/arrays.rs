//! Checks of the caller's pointers. Every pointer of the C API is checked here before it is used.

use crate::backend::{Sink, Source};
use crate::base::error::{bail, Result};
use crate::base::real::ResultNumber;
use crate::base::results::check_results;
use std::ops::Range;

/// Maximum size of an array: the address space of a process on present 64-bit machines.
const MAX_BYTES: u128 = 1 << 47;

/// The arrays of one call, for checks: they are not null and aligned, and no output overlaps another array.
#[derive(Default)]
pub(super) struct CallArrays {
    /// Name and address range of each array, and whether it is an output.
    registered: Vec<(&'static str, Range<usize>, bool)>,
}

impl CallArrays {
    /// Returns an input array of `len` elements.
    ///
    /// # Safety
    /// `pointer` is null, misaligned, or points to `len` elements that are not written during 'a.
    pub unsafe fn input<'a, E>(&mut self, name: &'static str, pointer: *const E, len: usize) -> Result<&'a [E]> {
        self.register(name, pointer, len, false)?;
        // SAFETY: not null, aligned, within the address space, by the caller's promise readable, and separate from
        // outputs.
        Ok(unsafe { std::slice::from_raw_parts(pointer, len) })
    }

    /// Returns an input array, or `None` for a null pointer.
    ///
    /// # Safety
    /// As for [`CallArrays::input`].
    pub unsafe fn optional<'a, E>(
        &mut self,
        name: &'static str,
        pointer: *const E,
        len: usize,
    ) -> Result<Option<&'a [E]>> {
        if pointer.is_null() {
            return Ok(None);
        }
        // SAFETY: the caller's promise is the same.
        unsafe { self.input(name, pointer, len) }.map(Some)
    }

    /// Returns an output array of `len` elements.
    ///
    /// # Safety
    /// `pointer` is null, misaligned, or points to `len` elements that are not accessed otherwise during 'a.
    pub unsafe fn output<'a, E>(&mut self, name: &'static str, pointer: *mut E, len: usize) -> Result<&'a mut [E]> {
        self.register(name, pointer, len, true)?;
        // SAFETY: not null, aligned, within the address space, by the caller's promise writable, and separate from all
        // other arrays.
        Ok(unsafe { std::slice::from_raw_parts_mut(pointer, len) })
    }

    /// Returns an output array, or `None` for a null pointer.
    ///
    /// # Safety
    /// As for [`CallArrays::output`], unless the pointer is null.
    pub unsafe fn optional_output<'a, E>(
        &mut self,
        name: &'static str,
        pointer: *mut E,
        len: usize,
    ) -> Result<Option<&'a mut [E]>> {
        if pointer.is_null() {
            return Ok(None);
        }
        // SAFETY: the caller's promise.
        Ok(Some(unsafe { self.output(name, pointer, len) }?))
    }

    /// Returns an output array of `len` numbers that is written as [`ResultArray`].
    ///
    /// # Safety
    /// As for [`CallArrays::output`].
    pub unsafe fn results<'a, N: ResultNumber>(
        &mut self,
        name: &'static str,
        pointer: *mut N,
        len: usize,
    ) -> Result<ResultArray<'a, N>> {
        // SAFETY: the caller's promise is the same.
        Ok(ResultArray { name, to: unsafe { self.output(name, pointer, len) }? })
    }

    /// Returns an output array as [`CallArrays::results`] does, or `None` for a null pointer.
    ///
    /// # Safety
    /// As for [`CallArrays::output`], unless the pointer is null.
    pub unsafe fn optional_results<'a, N: ResultNumber>(
        &mut self,
        name: &'static str,
        pointer: *mut N,
        len: usize,
    ) -> Result<Option<ResultArray<'a, N>>> {
        if pointer.is_null() {
            return Ok(None);
        }
        // SAFETY: the caller's promise.
        Ok(Some(unsafe { self.results(name, pointer, len) }?))
    }

    /// Returns an input array in the host's memory or, if `on_device` is set, in the GPU's.
    ///
    /// # Safety
    /// As for [`CallArrays::input`], in that memory.
    pub unsafe fn source<'a, E>(
        &mut self,
        name: &'static str,
        pointer: *const E,
        len: usize,
        on_device: bool,
    ) -> Result<Source<'a, E>> {
        if !on_device {
            // SAFETY: the caller's promise is the same.
            return unsafe { self.input(name, pointer, len) }.map(Source::Host);
        }
        self.register(name, pointer, len, false)?;
        // SAFETY: not null, aligned, by the caller's promise readable on the GPU, and separate from outputs.
        Ok(unsafe { Source::device(pointer, len) })
    }

    /// Returns an output array in the host's memory or, if `on_device` is set, in the GPU's.
    ///
    /// # Safety
    /// As for [`CallArrays::output`], in that memory.
    pub unsafe fn sink<'a, E>(
        &mut self,
        name: &'static str,
        pointer: *mut E,
        len: usize,
        on_device: bool,
    ) -> Result<Sink<'a, E>> {
        if !on_device {
            // SAFETY: the caller's promise is the same.
            return unsafe { self.output(name, pointer, len) }.map(Sink::Host);
        }
        self.register(name, pointer, len, true)?;
        // SAFETY: not null, aligned, by the caller's promise writable on the GPU, and separate from all other arrays.
        Ok(unsafe { Sink::device(pointer, len) })
    }

    /// Checks a pointer to `len` elements, and registers their address range.
    pub fn register<E>(&mut self, name: &'static str, pointer: *const E, len: usize, output: bool) -> Result<()> {
        check_pointer(name, pointer)?;
        let (start, bytes) = (pointer as usize, len as u128 * size_of::<E>() as u128);
        if bytes > MAX_BYTES || start.checked_add(bytes as usize).is_none() {
            bail!(SizeOverflow, "{name} has {len} elements, {bytes} bytes: more than a process can address");
        }
        let range = start..start + bytes as usize;
        for (other, taken, other_output) in &self.registered {
            let overlap = range.start < taken.end && taken.start < range.end;
            if overlap && (output || *other_output) {
                bail!(InvalidArgument, "{name} and {other} overlap in memory: give separate arrays");
            }
        }
        self.registered.push((name, range, output));
        Ok(())
    }
}

/// An output array of numbers. It is written as a whole, and only with finite numbers.
pub(super) struct ResultArray<'a, N> {
    name: &'static str,
    to: &'a mut [N],
}

impl<'a, N: ResultNumber> ResultArray<'a, N> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.to.len()
    }

    /// Returns the numbers in an input and output array before the call.
    pub fn inputs(&self) -> &[N] {
        self.to
    }

    /// Checks the results of a call with several arrays, before any of them is written. Results that are shorter than
    /// the array are for its first elements.
    ///
    /// # Errors
    /// `NotFinite` with the array's name and the index.
    pub fn check<'b>(self, results: &'b [N]) -> Result<CheckedResults<'a, 'b, N>> {
        check_results(self.name, results)?;
        Ok(CheckedResults { to: &mut self.to[..results.len()], from: results })
    }

    /// Checks and writes results.
    ///
    /// # Errors
    /// `NotFinite` with the array's name and the index.
    pub fn deliver(self, results: &[N]) -> Result<()> {
        self.check(results)?.write();
        Ok(())
    }
}

/// Finite results, and the array that will receive them.
#[must_use]
pub(super) struct CheckedResults<'a, 'b, N> {
    to: &'a mut [N],
    from: &'b [N],
}

impl<N: Copy> CheckedResults<'_, '_, N> {
    /// Writes the array.
    pub fn write(self) {
        self.to.copy_from_slice(self.from);
    }
}

/// Refuses null pointers and misaligned pointers.
pub(super) fn check_pointer<E>(name: &str, pointer: *const E) -> Result<()> {
    if pointer.is_null() {
        bail!(NullPointer, "{name} is a null pointer: give the address of an array or structure");
    }
    if !pointer.is_aligned() {
        bail!(
            InvalidArgument,
            "{name} is at {pointer:p}, which is not a multiple of {}: check that precision matches the arrays",
            align_of::<E>()
        );
    }
    Ok(())
}

/// Converts a size from C.
///
/// # Errors
/// `SizeOverflow` if it exceeds the address space.
pub(super) fn size(name: &str, value: u64) -> Result<usize> {
    match usize::try_from(value) {
        Ok(size) => Ok(size),
        Err(_) => bail!(SizeOverflow, "{name} is {value}: more than this machine can address"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind::*;

    #[test]
    fn pointers_are_checked() {
        let x = [1.0f64; 8];
        let mut y = [0.0f64; 8];
        // SAFETY: lengths are those of the arrays, or are refused before anything is read.
        unsafe {
            let mut a = CallArrays::default();
            assert_eq!(a.input("x", x.as_ptr(), 8).unwrap(), &x);
            assert_eq!(a.input("x again", x[2..].as_ptr(), 4).unwrap(), &x[2..6]);
            a.output("y", y.as_mut_ptr(), 4).unwrap()[3] = 2.0;
            // Adjacent arrays do not overlap.
            a.output("the rest of y", y[4..].as_mut_ptr(), 4).unwrap()[0] = 3.0;
            let e = a.input("part of y", y[3..].as_ptr(), 2).unwrap_err();
            assert!(e.kind() == InvalidArgument && e.message().contains("part of y and y overlap"), "{e}");
            assert_eq!(a.output("x", x.as_ptr().cast_mut(), 1).unwrap_err().kind(), InvalidArgument);
            assert_eq!(a.input::<f64>("n", std::ptr::null(), 0).unwrap_err().kind(), NullPointer);
            let odd = x.as_ptr().cast::<u8>().add(4).cast::<f64>();
            assert_eq!(a.input("odd", odd, 1).unwrap_err().kind(), InvalidArgument);
            assert!(a.input("odd", odd.cast::<f32>(), 1).is_ok());
            for len in [1 << 45, 1 << 60, usize::MAX] {
                assert_eq!(a.input("huge", x.as_ptr(), len).unwrap_err().kind(), SizeOverflow);
            }
        }
        assert_eq!((y[3], y[4]), (2.0, 3.0));
    }
}
