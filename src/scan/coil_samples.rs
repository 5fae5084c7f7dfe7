//! The samples of several coils, as they arrive one acquisition after the other.

use super::spare_arrays::SpareArrays;
use crate::base::error::{checked_product, Result};
use num_complex::Complex;
use std::ops::Range;

/// Samples in one array, [capacity, coils], so that the array of an image needs no copy if the number of its samples
/// is known in advance.
#[derive(Default)]
pub(super) struct CoilSamples {
    coils: usize,
    /// The number of samples of each coil.
    len: usize,
    /// The number of samples of each coil for which there is memory.
    capacity: usize,
    data: Vec<Complex<f32>>,
}

impl CoilSamples {
    /// Returns an empty array for `expected` samples of each coil.
    ///
    /// # Errors
    /// `OutOfHostMemory`, `SizeOverflow`.
    pub fn new(coils: usize, expected: usize, spare: &SpareArrays) -> Result<CoilSamples> {
        let data = spare.samples(checked_product(&[coils, expected], "the samples")?)?;
        Ok(CoilSamples { coils, len: 0, capacity: expected, data })
    }

    /// Returns the number of coils; 0 before any array was created.
    pub fn coils(&self) -> usize {
        self.coils
    }

    /// Returns the number of samples of each coil.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Reserves memory for `count` further samples of each coil.
    ///
    /// # Errors
    /// `OutOfHostMemory`, `SizeOverflow`. The samples are unchanged.
    pub fn reserve(&mut self, count: usize, spare: &SpareArrays) -> Result<()> {
        let needed = self.len.saturating_add(count);
        if needed > self.capacity {
            let mut larger = CoilSamples::new(self.coils, needed.max(2 * self.capacity), spare)?;
            for coil in 0..self.coils {
                let from = &self.data[coil * self.capacity..][..self.len];
                larger.data[coil * larger.capacity..][..self.len].copy_from_slice(from);
            }
            larger.len = self.len;
            spare.put_samples(std::mem::replace(self, larger).data);
        }
        Ok(())
    }

    /// Appends a range of each coil's samples, for which memory is reserved. `data`: [samples, coils].
    pub fn extend(&mut self, data: &[Complex<f32>], samples: usize, range: Range<usize>) {
        for (coil, from) in data.chunks_exact(samples).take(self.coils).enumerate() {
            self.data[coil * self.capacity + self.len..][..range.len()].copy_from_slice(&from[range.clone()]);
        }
        self.len += range.len();
    }

    /// Copies samples of each coil to a different position.
    pub fn copy_within(&mut self, from: Range<usize>, to: usize) {
        for coil in 0..self.coils {
            let start = coil * self.capacity;
            self.data.copy_within(start + from.start..start + from.end, start + to);
        }
    }

    /// Removes the samples after the first `len` of each coil.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Returns the samples, [samples, coils].
    pub fn into_array(mut self) -> Vec<Complex<f32>> {
        if self.len < self.capacity {
            for coil in 1..self.coils {
                let start = coil * self.capacity;
                self.data.copy_within(start..start + self.len, coil * self.len);
            }
        }
        self.data.truncate(self.coils * self.len);
        // Memory for many more samples than arrived would be occupied as long as the image.
        if self.data.capacity() > 2 * self.data.len() {
            self.data.shrink_to_fit();
        }
        self.data
    }
}
