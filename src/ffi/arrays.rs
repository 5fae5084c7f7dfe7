//! Checks on the caller's pointers. Every pointer of the C API goes through this file before it is used.

use crate::backend::{Sink, Source};
use crate::base::error::{bail, Result};
use crate::base::real::ResultNumber;
use crate::base::results::check_results;
use std::ops::Range;

/// No array is larger: the address space of a process on today's 64-bit machines.
const MOST_BYTES: u128 = 1 << 47;

/// The arrays of one call: none null, none misaligned, and no output overlaps anything else.
#[derive(Default)]
pub(super) struct Arrays {
    seen: Vec<(&'static str, Range<usize>, bool)>,
}

impl Arrays {
    /// An array of `len` elements that is read.
    ///
    /// # Safety
    /// `pointer` is null, misaligned, or points to as many elements that nobody writes during 'a.
    pub unsafe fn input<'a, E>(&mut self, name: &'static str, pointer: *const E, len: usize) -> Result<&'a [E]> {
        self.register(name, pointer, len, false)?;
        // SAFETY: not null, aligned, within the address space, by the caller's promise readable, and apart from
        // outputs.
        Ok(unsafe { std::slice::from_raw_parts(pointer, len) })
    }

    /// An array that may be left out.
    ///
    /// # Safety
    /// As for [`Arrays::input`].
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

    /// An array of `len` elements that is written.
    ///
    /// # Safety
    /// `pointer` is null, misaligned, or points to as many elements that nobody else touches during 'a.
    pub unsafe fn output<'a, E>(&mut self, name: &'static str, pointer: *mut E, len: usize) -> Result<&'a mut [E]> {
        self.register(name, pointer, len, true)?;
        // SAFETY: not null, aligned, within the address space, by the caller's promise writable, and apart from all
        // else.
        Ok(unsafe { std::slice::from_raw_parts_mut(pointer, len) })
    }

    /// An array that is written, or left out.
    ///
    /// # Safety
    /// As for [`Arrays::output`], unless the pointer is null.
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

    /// An array of `len` numbers that is written through [`Results`].
    ///
    /// # Safety
    /// As for [`Arrays::output`].
    pub unsafe fn results<'a, N: ResultNumber>(
        &mut self,
        name: &'static str,
        pointer: *mut N,
        len: usize,
    ) -> Result<Results<'a, N>> {
        // SAFETY: the caller's promise is the same.
        Ok(Results { name, to: unsafe { self.output(name, pointer, len) }? })
    }

    /// As [`Arrays::results`], or `None` for a null pointer.
    ///
    /// # Safety
    /// As for [`Arrays::output`], unless the pointer is null.
    pub unsafe fn optional_results<'a, N: ResultNumber>(
        &mut self,
        name: &'static str,
        pointer: *mut N,
        len: usize,
    ) -> Result<Option<Results<'a, N>>> {
        if pointer.is_null() {
            return Ok(None);
        }
        // SAFETY: the caller's promise.
        Ok(Some(unsafe { self.results(name, pointer, len) }?))
    }

    /// An array that is read, in the host's memory or, where `on_device`, in the GPU's.
    ///
    /// # Safety
    /// As for [`Arrays::input`], in that memory.
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
        // SAFETY: not null, aligned, by the caller's promise readable on the GPU, and apart from outputs.
        Ok(unsafe { Source::device(pointer, len) })
    }

    /// An array that is written, checked as one that is read.
    ///
    /// # Safety
    /// As for [`Arrays::output`], in that memory.
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
        // SAFETY: not null, aligned, by the caller's promise writable on the GPU, and apart from all else.
        Ok(unsafe { Sink::device(pointer, len) })
    }

    /// Checks a pointer to `len` elements, and remembers where they are.
    pub fn register<E>(&mut self, name: &'static str, pointer: *const E, len: usize, output: bool) -> Result<()> {
        check_pointer(name, pointer)?;
        let (start, bytes) = (pointer as usize, len as u128 * size_of::<E>() as u128);
        if bytes > MOST_BYTES || start.checked_add(bytes as usize).is_none() {
            bail!(SizeOverflow, "{name} has {len} elements, {bytes} bytes: more than a process can address");
        }
        let range = start..start + bytes as usize;
        for (other, taken, other_output) in &self.seen {
            let overlap = range.start < taken.end && taken.start < range.end;
            if overlap && (output || *other_output) {
                bail!(InvalidArgument, "{name} and {other} overlap in memory: give separate arrays");
            }
        }
        self.seen.push((name, range, output));
        Ok(())
    }
}

/// An output array of numbers. It is written as a whole, and only with numbers that are finite.
pub(super) struct Results<'a, N> {
    name: &'static str,
    to: &'a mut [N],
}

impl<'a, N: ResultNumber> Results<'a, N> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.to.len()
    }

    /// The numbers that an input and output array holds before the call.
    pub fn before(&self) -> &[N] {
        self.to
    }

    /// Checks the results of a call that has several arrays, before any of them is written. Results that are
    /// shorter than the array are for its beginning.
    ///
    /// # Errors
    /// `NotFinite` with the array's name and the index.
    pub fn accept<'b>(self, results: &'b [N]) -> Result<Accepted<'a, 'b, N>> {
        check_results(self.name, results)?;
        Ok(Accepted { to: &mut self.to[..results.len()], from: results })
    }

    /// Checks and writes results.
    ///
    /// # Errors
    /// `NotFinite` with the array's name and the index.
    pub fn deliver(self, results: &[N]) -> Result<()> {
        self.accept(results)?.write();
        Ok(())
    }
}

/// Results that are finite, and their array.
#[must_use]
pub(super) struct Accepted<'a, 'b, N> {
    to: &'a mut [N],
    from: &'b [N],
}

impl<N: Copy> Accepted<'_, '_, N> {
    /// Writes the array.
    pub fn write(self) {
        self.to.copy_from_slice(self.from);
    }
}

/// Refuses null, and addresses that no element of this type can have.
pub(super) fn check_pointer<E>(name: &str, pointer: *const E) -> Result<()> {
    if pointer.is_null() {
        bail!(NullPointer, "{name} is a null pointer: give the address of an array or structure");
    }
    if !pointer.is_aligned() {
        bail!(
            InvalidArgument,
            "{name} is at {pointer:p}, which is not a multiple of {}: is the precision that of the arrays?",
            align_of::<E>()
        );
    }
    Ok(())
}

/// A size from C as one of Rust.
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
        // SAFETY: lengths are those of the arrays, or refused before anything is read.
        unsafe {
            let mut a = Arrays::default();
            assert_eq!(a.input("x", x.as_ptr(), 8).unwrap(), &x);
            assert_eq!(a.input("x again", x[2..].as_ptr(), 4).unwrap(), &x[2..6]);
            a.output("y", y.as_mut_ptr(), 4).unwrap()[3] = 2.0;
            // Neighbours do not overlap.
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
