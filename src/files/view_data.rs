//! Voxels as the page of `recon view` contains them: quantised, compressed, and as text.
//!
//! - Magnitudes and real numbers are multiples of one step per series. Phases have a power of two of levels.
//! - Each slice is compressed by itself (zlib), so that the page decompresses only what it shows. The first byte is the
//!   filter: 0, or 1 if each level is the difference from the previous one.
//! - Bytes become the UTF-16 code units 0x2000 to 0x9FFF, with 15 bits in each. These units are neither markup of
//!   HTML nor surrogates. Base64 would need 25 % more bytes in the file.

use super::image::Image;
use miniz_oxide::deflate::core::{self, CompressionStrategy, CompressorOxide, TDEFLFlush, TDEFLStatus};
use num_complex::Complex;
use recon::error::{bail, try_vec, Result};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

/// The number of bits of quantised voxels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewBits {
    /// Bits of magnitudes and of real numbers, 1 to 8.
    pub magnitude: u32,
    /// Bits of phases, 0 to 8. With 0 the page does not have phases.
    pub phase: u32,
}

/// The numbers of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VoxelKind {
    /// Real and not negative.
    Magnitude,
    /// Real, some negative.
    Real,
    /// Complex: a magnitude and a phase per voxel.
    Complex,
}

/// The levels of a series. The value of level q is (q - `zero`) `step`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantisation {
    /// The numbers.
    pub kind: VoxelKind,
    /// The difference of two neighbouring levels.
    pub step: f64,
    /// The level of the value 0.
    pub zero: u32,
    /// The highest level.
    pub highest: u32,
    /// The number of phase levels; level q is the phase -pi + 2 pi q / levels. 0 if there are no phases.
    pub phase_levels: u32,
}

/// The ratio of the largest value of a series to its 99.9th percentile from which on larger values are clipped. A few
/// bright voxels would otherwise take all levels.
const CLIPPING_RATIO: f32 = 4.0;

/// The fraction of voxels outside the first window, at each end.
const TAIL: f64 = 0.001;

impl Quantisation {
    /// Returns the levels for all voxels of a series.
    ///
    /// # Errors
    /// `NotFinite` if a voxel is NaN or infinite.
    pub fn of(images: &[&Image], bits: ViewBits) -> Result<Quantisation> {
        let all = || images.iter().flat_map(|image| image.data.iter());
        if let Some(z) = all().find(|z| !z.re.is_finite() || !z.im.is_finite()) {
            bail!(NotFinite, "a voxel is {z}, which cannot be shown: replace it by 0 in the file");
        }
        let kind = match (all().all(|z| z.im == 0.0), all().all(|z| z.re >= 0.0)) {
            (true, true) => VoxelKind::Magnitude,
            (true, false) => VoxelKind::Real,
            (false, _) => VoxelKind::Complex,
        };
        let highest = (1 << bits.magnitude) - 1;
        let phase_levels = if kind == VoxelKind::Complex && bits.phase > 0 { 1 << bits.phase } else { 0 };
        let (low, high) = match kind {
            VoxelKind::Real => all().fold((0f32, 0f32), |(low, high), z| (low.min(z.re), high.max(z.re))),
            _ => (0.0, largest_level(&mut all().map(|z| z.norm()).collect::<Vec<_>>())),
        };
        // Zero is a level: one level is lost if there are values on both sides.
        let intervals = if kind == VoxelKind::Real { (highest - 1).max(1) } else { highest };
        let step = (f64::from(high) - f64::from(low)) / f64::from(intervals);
        let step = if step > 0.0 { step } else { 1.0 };
        let zero = (f64::from(-low) / step).ceil() as u32;
        Ok(Quantisation { kind, step, zero: zero.min(highest), highest, phase_levels })
    }

    /// Returns the level of a voxel.
    pub fn level(&self, z: Complex<f32>) -> u8 {
        let value = if self.kind == VoxelKind::Complex { z.norm() } else { z.re };
        let level = (f64::from(value) / self.step).round() + f64::from(self.zero);
        level.clamp(0.0, f64::from(self.highest)) as u8
    }

    /// Returns the level of the phase of a voxel. Voxels whose magnitude has level 0 do not have a phase: 0.
    pub fn phase_level(&self, z: Complex<f32>) -> u8 {
        if self.level(z) == 0 {
            return 0;
        }
        let turn = std::f64::consts::TAU / f64::from(self.phase_levels);
        let level = ((f64::from(z.arg()) + std::f64::consts::PI) / turn).round() as u32;
        (level % self.phase_levels) as u8
    }
}

/// Returns the value of the highest level: the largest magnitude, or less if a few are much larger than all others.
fn largest_level(magnitudes: &mut [f32]) -> f32 {
    let largest = magnitudes.iter().copied().fold(0.0, f32::max);
    let rank = ((magnitudes.len() as f64 * (1.0 - TAIL)) as usize).min(magnitudes.len() - 1);
    let percentile = *magnitudes.select_nth_unstable_by(rank, f32::total_cmp).1;
    if percentile > 0.0 {
        largest.min(CLIPPING_RATIO * percentile)
    } else {
        largest
    }
}

/// The voxels of a series for the page.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedSeries {
    /// The levels.
    pub quantisation: Quantisation,
    /// The number of voxels above the highest level.
    pub clipped: usize,
    /// The levels that are black and white at first: the 0.1th (0 for magnitudes) and the 99.9th percentile.
    pub window: [u32; 2],
    /// Compressed levels of slices: of each image and channel in this order, slices along z, each followed by the
    /// levels of its phases if there are any.
    pub slices: Vec<Vec<u8>>,
}

impl EncodedSeries {
    /// Quantises and compresses the images of a series.
    ///
    /// # Errors
    /// `NotFinite` if a voxel is NaN or infinite, `OutOfMemory` if there is not enough memory.
    pub fn new(images: &[&Image], bits: ViewBits) -> Result<EncodedSeries> {
        let quantisation = Quantisation::of(images, bits)?;
        let parts = compress_all(&slices_of(images, &quantisation, 1), &quantisation)?;
        let mut histogram = [0usize; 256];
        for part in &parts {
            histogram.iter_mut().zip(&part.histogram).for_each(|(sum, &count)| *sum += count);
        }
        let limit = (f64::from(quantisation.highest - quantisation.zero) + 0.5) * quantisation.step;
        let is_above = |z: &&Complex<f32>| f64::from(z.norm()) > limit && quantisation.kind != VoxelKind::Real;
        Ok(EncodedSeries {
            quantisation,
            clipped: images.iter().flat_map(|image| image.data.iter()).filter(is_above).count(),
            window: window_of(&histogram, &quantisation),
            slices: parts.into_iter().map(|part| part.bytes).collect(),
        })
    }

    /// Returns the number of bytes of the voxels in a page.
    pub fn page_bytes(&self) -> usize {
        self.slices.iter().map(|bytes| text_bytes(bytes)).sum()
    }

    /// Estimates the number of bytes of the voxels in a page from some of the slices.
    ///
    /// # Errors
    /// Returns the errors of [`EncodedSeries::new`].
    pub fn estimate_page_bytes(images: &[&Image], bits: ViewBits) -> Result<usize> {
        let quantisation = Quantisation::of(images, bits)?;
        let all = slices_of(images, &quantisation, 1).len();
        let tasks = slices_of(images, &quantisation, SLICES_PER_ESTIMATE);
        let sum: usize = compress_all(&tasks, &quantisation)?.iter().map(|part| text_bytes(&part.bytes)).sum();
        Ok((sum as f64 * all as f64 / tasks.len() as f64) as usize)
    }
}

/// The number of slices of which one is compressed for an estimate.
const SLICES_PER_ESTIMATE: usize = 8;

/// Returns the number of bytes of compressed data in a page.
fn text_bytes(bytes: &[u8]) -> usize {
    2 * (8 * bytes.len()).div_ceil(UNIT_BITS)
}

/// Returns every `stride`th slice of images, and whether its phases are meant.
fn slices_of<'a>(images: &[&'a Image], quantisation: &Quantisation, stride: usize) -> Vec<(&'a [Complex<f32>], bool)> {
    let planes: &[bool] = if quantisation.phase_levels > 0 { &[false, true] } else { &[false] };
    let slices = images.iter().flat_map(|image| image.data.chunks_exact(image.dims[0] * image.dims[1]));
    slices.step_by(stride).flat_map(|slice| planes.iter().map(move |&is_phase| (slice, is_phase))).collect()
}

/// Returns the levels that are black and white at first.
fn window_of(histogram: &[usize; 256], quantisation: &Quantisation) -> [u32; 2] {
    let total: usize = histogram.iter().sum();
    let tail = (total as f64 * TAIL) as usize;
    let rank = |rank: usize| {
        let mut sum = 0;
        let is_reached = |&count: &usize| {
            sum += count;
            sum > rank
        };
        histogram.iter().position(is_reached).unwrap_or(0) as u32
    };
    let black = if quantisation.kind == VoxelKind::Real { rank(tail) } else { quantisation.zero };
    let highest = histogram.iter().rposition(|&count| count > 0).unwrap_or(0) as u32;
    // A window of no width would show nothing.
    let white = [rank(total - 1 - tail), highest, black + 1].into_iter().find(|&level| level > black);
    [black, white.unwrap_or(black + 1)]
}

/// A compressed slice.
struct CompressedSlice {
    bytes: Vec<u8>,
    /// The number of voxels of each level; 0 for phases.
    histogram: [usize; 256],
}

/// Compresses slices on all processors. A task is the voxels of a slice, and whether their phases are compressed.
fn compress_all(tasks: &[(&[Complex<f32>], bool)], quantisation: &Quantisation) -> Result<Vec<CompressedSlice>> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, Result<CompressedSlice>)>> = Mutex::new(Vec::new());
    let work = || loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(&(voxels, is_phase)) = tasks.get(number) else { break };
        let result = compress(voxels, is_phase, quantisation);
        results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((number, result));
    };
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(tasks.len());
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

/// The level of zlib. Higher levels take longer and save 1 % or less.
const ZLIB_LEVEL: i32 = 5;

fn compress(voxels: &[Complex<f32>], is_phase: bool, quantisation: &Quantisation) -> Result<CompressedSlice> {
    let mut levels = try_vec(1 + voxels.len(), 0u8, "the levels of a slice")?;
    let mut histogram = [0; 256];
    for (level, &z) in levels[1..].iter_mut().zip(voxels) {
        if is_phase {
            *level = quantisation.phase_level(z);
        } else {
            *level = quantisation.level(z);
            histogram[usize::from(*level)] += 1;
        }
    }
    let mask = if is_phase { quantisation.phase_levels - 1 } else { quantisation.highest } as u8;
    let differences = differences_of(&levels, mask)?;
    let levels = if entropy(&differences) < entropy(&levels) { differences } else { levels };
    Ok(CompressedSlice { bytes: zlib(&levels)?, histogram })
}

/// Returns a slice with the filter 1: differences from the previous level, modulo the number of levels.
fn differences_of(levels: &[u8], mask: u8) -> Result<Vec<u8>> {
    let mut differences = try_vec(levels.len(), 1u8, "the levels of a slice")?;
    for (difference, pair) in differences[1..].iter_mut().zip(levels.windows(2)) {
        *difference = pair[1].wrapping_sub(pair[0]) & mask;
    }
    Ok(differences)
}

/// Returns the entropy of bytes in bits per byte, as if they were independent.
fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0usize; 256];
    bytes.iter().for_each(|&byte| counts[usize::from(byte)] += 1);
    let share = counts.iter().filter(|&&count| count > 0).map(|&count| count as f64 / bytes.len() as f64);
    share.map(|p| -p * p.log2()).sum()
}

/// Compresses bytes (zlib) without short repetitions. In noise these take more bits than the levels themselves. flate2
/// does not offer this strategy.
fn zlib(bytes: &[u8]) -> Result<Vec<u8>> {
    // A positive number of window bits selects the header of zlib.
    let flags = core::create_comp_flags_from_zip_params(ZLIB_LEVEL, 15, CompressionStrategy::Filtered as i32);
    let mut compressed = Vec::new();
    let mut compressor = CompressorOxide::new(flags);
    let append = |part: &[u8]| {
        compressed.extend_from_slice(part);
        true
    };
    match core::compress_to_output(&mut compressor, bytes, TDEFLFlush::Finish, append) {
        (TDEFLStatus::Done, _) => Ok(compressed),
        (status, _) => bail!(Internal, "a slice cannot be compressed: {status:?}"),
    }
}

/// The number of bits of a code unit of the text.
const UNIT_BITS: usize = 15;
/// The code unit of 15 bits that are 0.
const FIRST_UNIT: u16 = 0x2000;

/// Appends bytes to `text` as UTF-16 code units: bits from the lowest, 15 per unit, the last unit filled by zeros.
pub fn append_units(text: &mut Vec<u16>, bytes: &[u8]) {
    let (mut bits, mut count) = (0u32, 0);
    for &byte in bytes {
        bits |= u32::from(byte) << count;
        count += 8;
        if count >= UNIT_BITS {
            text.push(FIRST_UNIT + (bits & 0x7fff) as u16);
            bits >>= UNIT_BITS;
            count -= UNIT_BITS;
        }
    }
    if count > 0 {
        text.push(FIRST_UNIT + bits as u16);
    }
}

#[cfg(test)]
mod tests;
