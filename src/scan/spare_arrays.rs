//! Arrays of images that are no longer needed, for the next images.

use super::scan_data::Scan;
use crate::base::error::{try_grow, Result};
use num_complex::Complex;
use std::mem;
use std::sync::{Mutex, PoisonError};

/// Maximum number of spare arrays of each kind: those of an image.
const MAX_ARRAYS: usize = 6;

/// Spare arrays. Fresh memory costs more time than the copy of samples into it, because the system clears each page.
#[derive(Default)]
pub struct SpareArrays {
    samples: Mutex<Vec<Vec<Complex<f32>>>>,
    numbers: Mutex<Vec<Vec<f32>>>,
}

impl SpareArrays {
    /// Returns an array of `len` samples with any values.
    pub(super) fn samples(&self, len: usize) -> Result<Vec<Complex<f32>>> {
        let mut array = take(&self.samples, len);
        array.truncate(len);
        let missing = len - array.len();
        try_grow(&mut array, missing, "the samples")?;
        array.resize(len, Complex::ZERO);
        Ok(array)
    }

    /// Returns an empty array with memory for `len` numbers.
    pub(super) fn numbers(&self, len: usize) -> Result<Vec<f32>> {
        let mut array = take(&self.numbers, len);
        array.clear();
        try_grow(&mut array, len, "the samples")?;
        Ok(array)
    }

    /// Keeps an array of samples for the next image.
    pub(super) fn put_samples(&self, array: Vec<Complex<f32>>) {
        put(&self.samples, array);
    }

    /// Keeps an array of numbers for the next image.
    pub(super) fn put_numbers(&self, array: Vec<f32>) {
        put(&self.numbers, array);
    }

    /// Keeps the large arrays of an image for the next ones.
    pub fn put_scan(&self, scan: &mut Scan) {
        self.put_samples(mem::take(&mut scan.data));
        self.put_numbers(mem::take(&mut scan.times));
        scan.coordinates.iter_mut().chain(scan.weights.as_mut()).for_each(|k| self.put_numbers(mem::take(k)));
    }
}

/// Returns a spare array of suitable capacity, or a new empty one.
fn take<E>(arrays: &Mutex<Vec<Vec<E>>>, len: usize) -> Vec<E> {
    // Nothing panics while the list is locked.
    let mut arrays = arrays.lock().unwrap_or_else(PoisonError::into_inner);
    // A much larger array would occupy its memory as long as a small image.
    let is_suitable = |array: &Vec<E>| (len..=2 * len).contains(&array.capacity());
    match arrays.iter().position(is_suitable) {
        Some(position) => arrays.swap_remove(position),
        None => Vec::new(),
    }
}

/// Adds an array in place of the oldest one, if there are too many.
fn put<E>(arrays: &Mutex<Vec<Vec<E>>>, array: Vec<E>) {
    if array.capacity() > 0 {
        let mut arrays = arrays.lock().unwrap_or_else(PoisonError::into_inner);
        if arrays.len() == MAX_ARRAYS {
            arrays.remove(0);
        }
        arrays.push(array);
    }
}
