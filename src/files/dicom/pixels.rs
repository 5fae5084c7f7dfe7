//! Integers of pixels from values, and values from integers.

use super::text::decimal;
use crate::image::Image;
use num_complex::Complex;
use recon::error::{bail, Result};

/// The largest integer. Readers that ignore whether pixels are signed find the same numbers.
const MAX_CODE: f64 = i16::MAX as f64;

/// The map from values to integers, the same for all images of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct PixelScaling {
    /// Whether the values are the real numbers of the images; otherwise their magnitudes.
    pub is_real: bool,
    /// Whether a value is negative.
    pub is_signed: bool,
    /// The value of the integer 1.
    pub slope: f64,
    /// `slope` as it is written.
    pub slope_text: String,
}

impl PixelScaling {
    /// Returns the scaling for these images.
    ///
    /// # Errors
    /// `NotFinite` if a voxel is not finite.
    pub fn of_images(images: &[Image]) -> Result<PixelScaling> {
        let voxels = || images.iter().flat_map(|image| &image.data);
        if let Some(z) = voxels().find(|z| !z.is_finite()) {
            bail!(NotFinite, "a voxel of the image is {z}, which integers cannot contain: write a .h5 file");
        }
        let is_real = voxels().all(|z| z.im == 0.0);
        let is_signed = is_real && voxels().any(|z| z.re < 0.0);
        let largest = voxels().map(|z| value(z, is_real).abs()).fold(0.0, f64::max);
        let slope_text = if largest > 0.0 { decimal(largest / MAX_CODE) } else { "1".to_owned() };
        // The integers are those of the number in the file, which has fewer digits.
        let slope = slope_text.parse().unwrap_or(1.0);
        Ok(PixelScaling { is_real, is_signed, slope, slope_text })
    }
}

fn value(z: &Complex<f32>, is_real: bool) -> f64 {
    if is_real {
        f64::from(z.re)
    } else {
        f64::from(z.re).hypot(f64::from(z.im))
    }
}

/// Returns the integers of voxels; negative ones as their two's complement.
pub fn quantise(voxels: &[Complex<f32>], scaling: &PixelScaling) -> Vec<u16> {
    let code = |z| (value(z, scaling.is_real) / scaling.slope).round().clamp(-MAX_CODE, MAX_CODE) as i16 as u16;
    voxels.iter().map(code).collect()
}

/// The format of the integers in a file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PixelFormat {
    /// The number of bytes of an integer: 1, 2 or 4.
    pub bytes: usize,
    /// The number of bits that belong to the value, at the lower end.
    pub bits: u32,
    /// Whether integers are signed.
    pub is_signed: bool,
    /// Whether the first byte is the most significant one.
    pub is_big_endian: bool,
    /// Whether bytes are swapped in pairs, as in words of big-endian files that hold integers of one byte.
    pub has_swapped_bytes: bool,
}

impl PixelFormat {
    /// Returns the integer with index `i`.
    pub fn integer(&self, bytes: &[u8], i: usize) -> i64 {
        let start = i * self.bytes;
        let all = (0..self.bytes).fold(0u32, |sum, at| {
            let at = start + if self.is_big_endian { at } else { self.bytes - 1 - at };
            sum << 8 | u32::from(bytes[if self.has_swapped_bytes { at ^ 1 } else { at }])
        });
        let unused = 32 - self.bits;
        match self.is_signed {
            true => i64::from((all << unused) as i32 >> unused),
            false => i64::from(all << unused >> unused),
        }
    }
}
