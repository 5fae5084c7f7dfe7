//! Resizing of images from the encoded matrix and field of view, on which they are reconstructed, to those of the
//! result.
//!
//! If the new voxels have a different size, the image is interpolated by its Fourier series, without the frequencies
//! that the new voxels cannot represent. Then its centre is cut out, or surrounded by zeros. Readout oversampling (a
//! larger field of view with equal voxels) is thus only cut off. The voxel with index floor(n/2) keeps its position,
//! and the object keeps its scale.
//!
//! The new voxels have exactly the requested size. If a whole number of them fills the field of view, the series is
//! evaluated by an inverse FFT of that length (`PaddedSpectrum`), otherwise by a chirp z-transform (`ChirpSeries`;
//! Rabiner, Schafer and Rader, Bell Syst. Tech. J. 48:1249, 1969).

use crate::backend::cpu::fft::any_length::LineFft;
use crate::backend::cpu::simd::Level;
use crate::base::error::{bail, checked_product, try_collect, try_vec, Result};
use crate::base::fft_size::next_fast_size;
use crate::base::geometry::{check_finite, check_len};
use crate::base::options::Simd;
use crate::base::real::{narrow, wide, Real};
use crate::base::results::check_results;
use num_complex::Complex;
use std::f64::consts::PI;

/// Largest number of voxels along an axis.
const MOST_VOXELS: usize = 1 << 24;
/// Smallest field of view of the given images, in new voxels.
const LEAST_FIELD_OF_VIEW: f64 = 1e-3;
/// Relative distance from a whole number of voxels that counts as rounding: files store fields of view in single
/// precision. It moves the edge of a field of view of 1000 voxels by 1e-4 voxel.
const ROUNDING: f64 = 2.5e-7;
/// Largest part of a voxel that counts as rounding, for axes of any length.
const ROUNDING_LIMIT: f64 = 1e-2;

/// Conversion of images from one matrix and field of view to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resize {
    from: [usize; 3],
    /// Field of view of `from`, in new voxels.
    scaled: [f64; 3],
    to: [usize; 3],
}

impl Resize {
    /// Creates the conversion from images of `from` voxels that cover `fov` to images of `to` voxels that cover
    /// `to_fov`, both in the same unit. Along an axis with an unknown field of view (0, negative, or not a number), all
    /// voxels have the same size.
    ///
    /// # Errors
    /// - `InvalidSize` for a number of sizes other than 1 to 3, or a size of 0.
    /// - `SizeMismatch` for a different number of fields of view.
    /// - `SizeOverflow` if there are too many new voxels.
    pub fn new(from: &[usize], fov: &[f64], to: &[usize], to_fov: &[f64]) -> Result<Resize> {
        let ndim = from.len();
        if !(1..=3).contains(&ndim) || from.contains(&0) || to.contains(&0) {
            bail!(
                InvalidSize,
                "an image of {from:?} voxels cannot be resized to {to:?}: give 1 to 3 sizes above 0 for each"
            );
        }
        check_len("sizes of the new image", to.len(), ndim, "one per axis of the image")?;
        check_len("fields of view", fov.len(), ndim, "one per axis")?;
        check_len("new fields of view", to_fov.len(), ndim, "one per axis")?;
        let mut resize = Resize { from: [1; 3], scaled: [1.0; 3], to: [1; 3] };
        for axis in 0..ndim {
            let is_known = fov[axis] > 0.0 && to_fov[axis] > 0.0 && (fov[axis] / to_fov[axis]).is_finite();
            let exact = if is_known { fov[axis] / to_fov[axis] * to[axis] as f64 } else { from[axis] as f64 };
            if !(LEAST_FIELD_OF_VIEW..MOST_VOXELS as f64).contains(&exact) || to[axis] > MOST_VOXELS {
                bail!(
                    SizeOverflow,
                    "axis {axis}: resizing an image of field of view {} with {} voxels to field of view {} with {} \
                     voxels requires {exact:.3e} voxels in between: correct the fields of view",
                    fov[axis],
                    from[axis],
                    to_fov[axis],
                    to[axis]
                );
            }
            (resize.from[axis], resize.to[axis]) = (from[axis], to[axis]);
            let whole = exact.round();
            let is_whole = whole >= 1.0 && (exact - whole).abs() <= (ROUNDING * whole).min(ROUNDING_LIMIT);
            resize.scaled[axis] = if is_whole { whole } else { exact };
            if !is_whole && longest_chirp(from[axis], exact, to[axis]) > MOST_VOXELS {
                bail!(
                    SizeOverflow,
                    "axis {axis}: {exact:.6} new voxels fill the field of view of {} voxels, and an image of this \
                     length can only be resized to a whole number of new voxels: change the fields of view",
                    from[axis]
                );
            }
        }
        Ok(resize)
    }

    /// Returns the matrix of the given images, 1 on missing axes.
    pub fn from(&self) -> [usize; 3] {
        self.from
    }

    /// Returns the field of view of the given images in new voxels, which need not be a whole number.
    pub fn scaled(&self) -> [f64; 3] {
        self.scaled
    }

    /// Returns the matrix of the result, 1 on missing axes.
    pub fn to(&self) -> [usize; 3] {
        self.to
    }

    /// Returns whether images stay unchanged.
    pub fn is_nothing(&self) -> bool {
        !self.any_interpolates() && self.from == self.to
    }

    /// Resizes an image to the new matrix.
    ///
    /// # Errors
    /// - `SizeMismatch` for a different number of voxels.
    /// - `NotFinite` with the index of a voxel that is not finite, or that overflows.
    /// - `OutOfHostMemory`.
    pub fn apply<T: Real>(&self, image: &[Complex<T>], out: &mut [Complex<T>]) -> Result<()> {
        check(image, &self.from, out, &self.to)?;
        if !self.any_interpolates() {
            recentre(image, &self.from, out, &self.to);
            return Ok(());
        }
        // Axes that are only cut are cut first, so that fewer voxels are interpolated.
        let cut = [0, 1, 2].map(|axis| if self.interpolates(axis) { self.from[axis] } else { self.to[axis] });
        let mut steps = try_vec(checked_product(&cut, "an image")?, Complex::default(), "an image")?;
        recentre(image, &self.from, &mut steps, &cut);
        let mut steps = IntermediateImage { dims: cut, voxels: widened(&steps)? };
        for axis in (0..3).filter(|&axis| self.interpolates(axis)) {
            let mut resampler = LineResampler::new(self.from[axis], self.scaled[axis], self.to[axis])?;
            steps.along(axis, self.to[axis], resampler.most_lines(), |lines, new| resampler.run(lines, new))?;
        }
        write_narrowed(&steps.voxels, out)
    }

    /// Resizes an image of the new matrix back to the matrix on which images are reconstructed.
    ///
    /// If the field of view does not contain a whole number of new voxels, the image is assumed to be zero near its
    /// edges: its Fourier series has the period of the next whole number.
    ///
    /// # Errors
    /// The errors of [`Resize::apply`].
    pub fn undo<T: Real>(&self, image: &[Complex<T>], out: &mut [Complex<T>]) -> Result<()> {
        check(image, &self.to, out, &self.from)?;
        if !self.any_interpolates() {
            recentre(image, &self.to, out, &self.from);
            return Ok(());
        }
        let mut steps = IntermediateImage { dims: self.to, voxels: widened(image)? };
        for axis in (0..3).filter(|&axis| self.interpolates(axis)) {
            let (to, from) = (self.to[axis], self.from[axis]);
            // Whole number of new voxels that contains the field of view, and number of given voxels in their length.
            let period = self.scaled[axis].ceil() as usize;
            let scaled = period as f64 * from as f64 / self.scaled[axis];
            let mut resampler = LineResampler::new(period, scaled, from)?;
            let mut padded = try_vec(period * resampler.most_lines(), Complex::default(), LINES)?;
            steps.along(axis, from, resampler.most_lines(), |lines, new| {
                let count = lines.len() / to;
                let padded = &mut padded[..period * count];
                recentre(lines, &[to, count, 1], padded, &[period, count, 1]);
                resampler.run(padded, new);
            })?;
        }
        let mut all = try_vec(out.len(), Complex::default(), "an image")?;
        recentre(&steps.voxels, &steps.dims, &mut all, &self.from);
        write_narrowed(&all, out)
    }

    /// Returns whether voxels along an axis change their size.
    fn interpolates(&self, axis: usize) -> bool {
        self.from[axis] as f64 != self.scaled[axis]
    }

    /// Returns whether voxels change their size along any axis.
    fn any_interpolates(&self) -> bool {
        (0..3).any(|axis| self.interpolates(axis))
    }
}

/// Checks the numbers of voxels of both images, and that the voxels are finite.
fn check<T: Real>(image: &[Complex<T>], from: &[usize; 3], out: &[Complex<T>], to: &[usize; 3]) -> Result<()> {
    check_len("voxels of the image", image.len(), checked_product(from, "the image")?, "the size of its matrix")?;
    check_len("voxels of the new image", out.len(), checked_product(to, "the new image")?, "the size of its matrix")?;
    check_finite("voxel", image)
}

/// Converts an image to double precision.
fn widened<T: Real>(image: &[Complex<T>]) -> Result<Vec<Complex<f64>>> {
    try_collect(image.len(), "an image", image.iter().map(|z| wide(*z)))
}

/// Writes an image in the precision of `out`. `out` is unchanged after an error.
fn write_narrowed<T: Real>(image: &[Complex<f64>], out: &mut [Complex<T>]) -> Result<()> {
    let image = try_collect(image.len(), "an image", image.iter().map(|z| narrow(*z)))?;
    check_results("voxel of the new image", &image)?;
    out.copy_from_slice(&image);
    Ok(())
}

/// Cuts the centre out of an image of `from` voxels, or surrounds the image by zeros, to `to` voxels. The voxel with
/// index floor(n/2) keeps its position.
///
/// # Panics
/// If the number of voxels of an image differs from its matrix.
pub fn recentre<E: Copy + Default>(image: &[E], from: &[usize; 3], out: &mut [E], to: &[usize; 3]) {
    assert!(image.len() == from.iter().product::<usize>() && out.len() == to.iter().product::<usize>());
    if from == to {
        return out.copy_from_slice(image);
    }
    out.fill(E::default());
    let shared = [0, 1, 2].map(|axis| from[axis].min(to[axis]));
    let at = [0, 1, 2].map(|axis| from[axis] / 2 - shared[axis] / 2);
    let put = [0, 1, 2].map(|axis| to[axis] / 2 - shared[axis] / 2);
    for z in 0..shared[2] {
        for y in 0..shared[1] {
            let row = |at: &[usize; 3], n: &[usize; 3]| at[0] + n[0] * (at[1] + y + n[1] * (at[2] + z));
            let (a, b) = (row(&at, from), row(&put, to));
            out[b..b + shared[0]].copy_from_slice(&image[a..a + shared[0]]);
        }
    }
}

/// Intermediate image between the steps along its axes.
struct IntermediateImage {
    dims: [usize; 3],
    voxels: Vec<Complex<f64>>,
}

impl IntermediateImage {
    /// Replaces the lines along an axis by lines of `size` voxels: `f(lines, new lines)`, up to `most` lines per call.
    fn along(
        &mut self,
        axis: usize,
        size: usize,
        most: usize,
        mut f: impl FnMut(&mut [Complex<f64>], &mut [Complex<f64>]),
    ) -> Result<()> {
        let n = self.dims[axis];
        let stride: usize = self.dims[..axis].iter().product();
        let count: usize = stride * self.dims[axis + 1..].iter().product::<usize>();
        self.dims[axis] = size;
        let mut out = try_vec(checked_product(&self.dims, "an image")?, Complex::default(), "an image")?;
        let mut from = try_vec(n * most, Complex::default(), LINES)?;
        let mut to = try_vec(size * most, Complex::default(), LINES)?;
        // Index of the first voxel of a line that has `len` voxels.
        let start = |line: usize, len: usize| line / stride * len * stride + line % stride;
        for first in (0..count).step_by(most) {
            let lines = first..count.min(first + most);
            for (line, from) in lines.clone().zip(from.chunks_exact_mut(n)) {
                let voxels = self.voxels[start(line, n)..].iter().step_by(stride);
                from.iter_mut().zip(voxels).for_each(|(z, voxel)| *z = *voxel);
            }
            f(&mut from[..n * lines.len()], &mut to[..size * lines.len()]);
            for (line, to) in lines.zip(to.chunks_exact(size)) {
                let voxels = out[start(line, size)..].iter_mut().step_by(stride);
                to.iter().zip(voxels).for_each(|(z, voxel)| *voxel = *z);
            }
        }
        self.voxels = out;
        Ok(())
    }
}

/// Name of the array in the message when memory runs out.
const LINES: &str = "lines of an image";

/// Interpolation of lines of `n` voxels at `to` new voxels, of which `scaled` fill the length of a line. New voxels
/// beyond the ends of the line are zero.
enum LineResampler {
    Padded(PaddedSpectrum),
    Chirp(ChirpSeries),
}

impl LineResampler {
    /// Prepares the transforms.
    fn new(n: usize, scaled: f64, to: usize) -> Result<Self> {
        let level = Level::choose(Simd::Auto)?;
        if scaled.fract() == 0.0 {
            return PaddedSpectrum::new(level, n, scaled as usize, to).map(LineResampler::Padded);
        }
        ChirpSeries::new(level, n, scaled, to).map(LineResampler::Chirp)
    }

    /// Returns the maximum number of lines per call.
    fn most_lines(&self) -> usize {
        match self {
            LineResampler::Padded(padded) => padded.down.most_lines(),
            LineResampler::Chirp(chirp) => chirp.down.most_lines().min(chirp.convolution.most_lines()),
        }
    }

    /// Interpolates `lines` to `new`, and overwrites `lines`.
    fn run(&mut self, lines: &mut [Complex<f64>], new: &mut [Complex<f64>]) {
        match self {
            LineResampler::Padded(padded) => padded.run(lines, new),
            LineResampler::Chirp(chirp) => chirp.run(lines, new),
        }
    }
}

/// Interpolation by a line's spectrum with zeros appended, or with its ends cut off: for a whole number of new voxels.
struct PaddedSpectrum {
    n: usize,
    size: usize,
    to: usize,
    down: LineFft,
    up: LineFft,
    /// Lines of `size` voxels.
    whole: Vec<Complex<f64>>,
}

impl PaddedSpectrum {
    fn new(level: Level, n: usize, size: usize, to: usize) -> Result<Self> {
        let (down, up) = (LineFft::new(level, n)?, LineFft::new(level, size)?);
        let whole = try_vec(size * down.most_lines(), Complex::default(), LINES)?;
        Ok(PaddedSpectrum { n, size, to, down, up, whole })
    }

    fn run(&mut self, lines: &mut [Complex<f64>], new: &mut [Complex<f64>]) {
        let (n, size, count) = (self.n, self.size, lines.len() / self.n);
        let whole = &mut self.whole[..size * count];
        lines.chunks_exact_mut(n).for_each(|line| line.rotate_left(n / 2));
        self.down.run(false, lines);
        for (line, whole) in lines.chunks_exact(n).zip(whole.chunks_exact_mut(size)) {
            move_frequencies(line, whole);
        }
        self.up.run(true, whole);
        whole.iter_mut().for_each(|z| *z *= 1.0 / n as f64);
        whole.chunks_exact_mut(size).for_each(|whole| whole.rotate_right(size / 2));
        recentre(whole, &[size, count, 1], new, &[self.to, count, 1]);
    }
}

/// Interpolation by a line's Fourier series at equidistant positions, as a convolution with a chirp. With alpha = 1 /
/// scaled:
/// - f m = (f^2 + m^2 - (m - f)^2) / 2,
/// - y(m) = sum_f c(f) exp(i 2 pi f m alpha),
/// - y(m) = exp(i pi alpha m^2) sum_f [c(f) exp(i pi alpha f^2)] exp(-i pi alpha (m - f)^2).
struct ChirpSeries {
    n: usize,
    to: usize,
    /// Largest retained frequency.
    highest: usize,
    down: LineFft,
    convolution: LineFft,
    /// Factor of each frequency: weight times exp(i pi alpha f^2) / n.
    frequency_factors: Vec<Complex<f64>>,
    /// Factor of each new voxel: exp(i pi alpha m^2), 0 beyond the ends of the line.
    voxel_factors: Vec<Complex<f64>>,
    /// Transform of exp(-i pi alpha d^2).
    kernel: Vec<Complex<f64>>,
    /// Lines of the convolution.
    work: Vec<Complex<f64>>,
}

/// Returns the length of the convolution of [`ChirpSeries`].
fn chirp_length(highest: usize, to: usize) -> usize {
    next_fast_size(to + 2 * highest)
}

/// Returns an upper bound of the convolution lengths of [`Resize::apply`] and [`Resize::undo`] along an axis.
fn longest_chirp(from: usize, scaled: f64, to: usize) -> usize {
    chirp_length(from.max(scaled.ceil() as usize) / 2, to.max(from))
}

impl ChirpSeries {
    fn new(level: Level, n: usize, scaled: f64, to: usize) -> Result<Self> {
        let alpha = 1.0 / scaled;
        let limit = 0.5 * scaled.min(n as f64);
        let highest = limit as usize;
        let length = chirp_length(highest, to);
        let (down, mut convolution) = (LineFft::new(level, n)?, LineFft::new(level, length)?);
        // The square is exact. Whole turns are subtracted before the multiplication by pi.
        let chirp = |d: i64| Complex::from_polar(1.0, PI * ((d * d) as f64 * alpha % 2.0));
        let (reach, middle) = (highest as i64, (to / 2) as i64);
        let weight = |f: i64| {
            // At the limit, the frequency and its negative share the value.
            let half = f.unsigned_abs() as usize == highest && highest as f64 == limit;
            chirp(f) * (if half && highest > 0 { 0.5 } else { 1.0 } / n as f64)
        };
        let voxel_factor = |m: i64| {
            let inside = -0.5 * scaled <= m as f64 && (m as f64) < 0.5 * scaled;
            if inside {
                chirp(m)
            } else {
                Complex::default()
            }
        };
        let frequency_factors = try_collect(2 * highest + 1, LINES, (-reach..=reach).map(weight))?;
        let voxel_factors = try_collect(to, LINES, (-middle..to as i64 - middle).map(voxel_factor))?;
        let mut kernel = try_vec(length, Complex::default(), LINES)?;
        // Entry q - p of the kernel takes frequency p - highest to voxel q - middle.
        for d in -2 * reach..to as i64 {
            let at = d.rem_euclid(length as i64) as usize;
            kernel[at] = chirp(d + reach - middle).conj() / length as f64;
        }
        convolution.run(false, &mut kernel);
        let lines = down.most_lines().min(convolution.most_lines());
        let work = try_vec(length * lines, Complex::default(), LINES)?;
        Ok(ChirpSeries { n, to, highest, down, convolution, frequency_factors, voxel_factors, kernel, work })
    }

    fn run(&mut self, lines: &mut [Complex<f64>], new: &mut [Complex<f64>]) {
        let (n, length) = (self.n, self.kernel.len());
        let work = &mut self.work[..length * (lines.len() / n)];
        lines.chunks_exact_mut(n).for_each(|line| line.rotate_left(n / 2));
        self.down.run(false, lines);
        work.fill(Complex::default());
        for (line, work) in lines.chunks_exact(n).zip(work.chunks_exact_mut(length)) {
            for (p, (to, factor)) in work.iter_mut().zip(&self.frequency_factors).enumerate() {
                *to = line[(p + n - self.highest) % n] * factor;
            }
        }
        self.convolution.run(false, work);
        work.chunks_exact_mut(length).for_each(|w| w.iter_mut().zip(&self.kernel).for_each(|(w, k)| *w *= k));
        self.convolution.run(true, work);
        for (work, new) in work.chunks_exact(length).zip(new.chunks_exact_mut(self.to)) {
            new.iter_mut()
                .zip(work)
                .zip(&self.voxel_factors)
                .for_each(|((new, w), voxel_factors)| *new = w * voxel_factors);
        }
    }
}

/// Converts the spectrum of a line to a different number of voxels: surplus frequencies are cut off, missing ones are
/// 0.
fn move_frequencies(line: &[Complex<f64>], new: &mut [Complex<f64>]) {
    let (n, size) = (line.len(), new.len());
    let shared = n.min(size);
    new.fill(Complex::default());
    // Frequencies -shared/2 .. (shared - 1)/2. With an even number, the lowest also represents the highest.
    let positive = shared.div_ceil(2);
    new[..positive].copy_from_slice(&line[..positive]);
    for f in 1..=shared / 2 {
        new[size - f] = line[n - f];
    }
    if shared.is_multiple_of(2) {
        let f = shared / 2;
        if size > n {
            new[size - f] = line[n - f] * 0.5;
            new[f] = line[n - f] * 0.5;
        } else {
            new[size - f] = (line[n - f] + line[f]) * 0.5;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;
    use crate::base::random::SplitMix64;

    /// Returns a generator of numbers in [-0.5, 0.5), from a seed that is printed.
    fn random(seed: u64) -> impl FnMut() -> f64 {
        println!("seed {seed}");
        let mut random = SplitMix64(seed);
        move || 0.5 - random.uniform()
    }

    /// Returns the image of `from` voxels as a sum of its frequencies, at the new voxels. A frequency at the limit
    /// counts half, and so does its negative. Fields of view and matrices are as requested.
    fn slow_resize(image: &[Complex<f64>], [from, to]: [&[usize]; 2], [fov, to_fov]: [&[f64]; 2]) -> Vec<Complex<f64>> {
        let tau = std::f64::consts::TAU;
        let sizes = |n: &[usize]| [0, 1, 2].map(|axis| n.get(axis).copied().unwrap_or(1));
        let (from, to) = (sizes(from), sizes(to));
        // Weight of voxel `j` of a line in voxel `i` of the new line.
        let weight = |axis: usize, i: usize, j: usize| -> f64 {
            let n = from[axis] as f64;
            let s = if axis < fov.len() { to[axis] as f64 * fov[axis] / to_fov[axis] } else { 1.0 };
            let s = if (s - s.round()).abs() < 1e-9 { s.round() } else { s };
            let x = i as f64 - (to[axis] / 2) as f64;
            // Values beyond the field of view are zero.
            let inside = if s.fract() == 0.0 {
                x >= -(s / 2.0).floor() && x < s - (s / 2.0).floor()
            } else {
                x >= -s / 2.0 && x < s / 2.0
            };
            let d = x / s - (j as f64 - (from[axis] / 2) as f64) / n;
            if !inside {
                return 0.0;
            }
            if n == s {
                return if d.abs() < 1e-9 { 1.0 } else { 0.0 };
            }
            let limit = 0.5 * n.min(s);
            let highest = limit as i64;
            let half = |f: i64| if f != 0 && f.abs() as f64 == limit { 0.5 } else { 1.0 };
            (-highest..=highest).map(|f| half(f) * (tau * f as f64 * d).cos()).sum::<f64>() / n
        };
        let mut out = vec![Complex::default(); to.iter().product()];
        for (o, out) in out.iter_mut().enumerate() {
            let i = [o % to[0], o / to[0] % to[1], o / (to[0] * to[1])];
            for (m, z) in image.iter().enumerate() {
                let j = [m % from[0], m / from[0] % from[1], m / (from[0] * from[1])];
                *out += z * (0..3).map(|axis| weight(axis, i[axis], j[axis])).product::<f64>();
            }
        }
        out
    }

    fn apply(resize: &Resize, image: &[Complex<f64>]) -> Vec<Complex<f64>> {
        let mut out = vec![Complex::new(f64::NAN, 0.0); resize.to.iter().product()];
        resize.apply(image, &mut out).unwrap();
        out
    }

    #[test]
    fn images_equal_the_sums_over_their_frequencies() {
        let mut random = random(0x12_0011);
        let mut pick = |choices: &[f64]| choices[((random() + 0.5) * choices.len() as f64) as usize];
        for case in 0..120 {
            let ndim = if case % 2 == 0 { 2 } else { 3 };
            let sizes = [1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 8.0, 11.0];
            let mut size = || (0..ndim).map(|_| pick(&sizes) as usize).collect::<Vec<_>>();
            let (from, to) = (size(), size());
            let fov: Vec<f64> = from.iter().map(|&n| n as f64 * pick(&[1.0, 1.5, 2.0])).collect();
            let to_fov: Vec<f64> = fov.iter().map(|f| f * pick(&[0.5, 0.61803, 1.0, 1.3])).collect();
            let resize = Resize::new(&from, &fov, &to, &to_fov).unwrap();
            let count = from.iter().product();
            let image: Vec<Complex<f64>> =
                (0..count).map(|_| Complex::new(pick(&[0.3, -1.2, 2.0]), pick(&[-0.7, 0.4]))).collect();
            let (got, want) = (apply(&resize, &image), slow_resize(&image, [&from, &to], [&fov, &to_fov]));
            let error = got.iter().zip(&want).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
            assert!(error < 1e-12, "{resize:?}: {error:e}");
        }
    }

    #[test]
    fn equal_voxels_are_cut_or_surrounded_by_zeros() {
        let image: Vec<Complex<f32>> = (0..6 * 5).map(|i| Complex::new(i as f32, -1.0)).collect();
        let resize = Resize::new(&[6, 5], &[12.0, 10.0], &[3, 7], &[6.0, 14.0]).unwrap();
        let mut out = vec![Complex::new(f32::NAN, 0.0); 21];
        resize.apply(&image, &mut out).unwrap();
        for y in 0..7 {
            for x in 0..3 {
                let inside = (1..6).contains(&y);
                let want = if inside { image[x + 2 + 6 * (y - 1)] } else { Complex::default() };
                assert_eq!(out[x + 3 * y], want, "{x} {y}");
            }
        }
        // Unknown fields of view.
        for unknown in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let without = Resize::new(&[6, 5], &[unknown; 2], &[3, 7], &[6.0, 14.0]).unwrap();
            let mut again = vec![Complex::new(f32::NAN, 0.0); 21];
            without.apply(&image, &mut again).unwrap();
            assert_eq!(again, out);
        }
        assert!(Resize::new(&[6, 5], &[1.0; 2], &[6, 5], &[1.0; 2]).unwrap().is_nothing());
    }

    #[test]
    fn undo_reverses_apply() {
        let mut random = random(0x12_0012);
        // Finer voxels and surrounding zeros: no information is lost with an odd number of frequencies. (With an even
        // number, the lowest is.)
        let resize = Resize::new(&[7, 5, 4], &[7.0, 5.0, 4.0], &[16, 12, 6], &[8.0, 6.0, 6.0]).unwrap();
        assert_eq!((resize.scaled, resize.from(), resize.to()), ([14.0, 10.0, 4.0], [7, 5, 4], [16, 12, 6]));
        let image: Vec<Complex<f64>> = (0..140).map(|_| Complex::new(random(), random())).collect();
        let mut back = vec![Complex::new(f64::NAN, 0.0); 140];
        resize.undo(&apply(&resize, &image), &mut back).unwrap();
        let error =
            |a: &[Complex<f64>], b: &[Complex<f64>]| a.iter().zip(b).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
        assert!(error(&back, &image) < 1e-12, "{:e}", error(&back, &image));
    }

    /// Returns a Gaussian around `centre`, in voxels of width `size` from the middle voxel.
    fn blob(n: usize, size: f64, centre: [f64; 2]) -> Vec<Complex<f64>> {
        let place = |i: usize, axis: usize| ((i as f64 - (n / 2) as f64) * size - centre[axis]) / 4.0;
        let value = |i: usize| (-0.5 * (place(i % n, 0).powi(2) + place(i / n, 1).powi(2))).exp();
        (0..n * n).map(|i| Complex::new(value(i), 0.0)).collect()
    }

    #[test]
    fn objects_keep_their_position_for_any_ratio_of_voxel_sizes() {
        // Voxels of the result that are 256 / 300 as long as the given ones: 112.5 of them fill the field of view of
        // 96.
        let relative = |a: &[Complex<f64>], b: &[Complex<f64>]| {
            let square = |z: &Complex<f64>| z.norm_sqr();
            (a.iter().zip(b).map(|(a, b)| (a - b).norm_sqr()).sum::<f64>() / b.iter().map(square).sum::<f64>()).sqrt()
        };
        for (to, fov, to_fov) in [(75, 384.0, 256.0), (97, 300.0, 290.0), (64, 300.0, 217.7)] {
            let resize = Resize::new(&[96, 96], &[fov; 2], &[to; 2], &[to_fov; 2]).unwrap();
            let size = 96.0 / resize.scaled[0];
            assert!((size - to_fov / to as f64 / (fov / 96.0)).abs() < 1e-12);
            let centre = [14.3, -11.8];
            let made = apply(&resize, &blob(96, 1.0, centre));
            let error = relative(&made, &blob(to, size, centre));
            assert!(error < 1e-6, "{to} {to_fov}: {error:e}");
            // With voxels of rounded size the object would be off by more than a percent.
            let rounded = relative(&blob(to, 96.0 / resize.scaled[0].round(), centre), &blob(to, size, centre));
            assert!(rounded > 3e-3, "{to} {to_fov}: {rounded:e}");
            // If the result contains the object, `undo` restores it.
            let mut back = vec![Complex::new(f64::NAN, 0.0); 96 * 96];
            resize.undo(&made, &mut back).unwrap();
            let error = relative(&back, &blob(96, 1.0, centre));
            assert!(error < 2e-4, "{to} {to_fov}: {error:e} back");
        }
        // Fields of view in single precision: 333.3 mm with 128 voxels and its half with 64 are equal voxels.
        let fov = f64::from(333.3f32);
        let half = f64::from(333.3f32 / 2.0);
        assert_eq!(Resize::new(&[128], &[fov], &[64], &[half]).unwrap().scaled[0], 128.0);
        assert_eq!(Resize::new(&[128], &[f64::from(0.1f32)], &[96], &[f64::from(0.3f32)]).unwrap().scaled[0], 32.0);
        // Lines too long for a chirp z-transform.
        let long = Resize::new(&[(1 << 23) + 1], &[1.0], &[1 << 23], &[1.0 + 1e-5]).unwrap_err();
        assert!(long.kind() == ErrorKind::SizeOverflow && long.message().contains("whole number"), "{long}");
    }

    #[test]
    fn overflow_is_an_error() {
        // Interpolation overshoots next to the largest numbers.
        let image: Vec<Complex<f32>> = (0..8).map(|i| Complex::new([3.3e38f32, -3.3e38][i / 2 % 2], 0.0)).collect();
        let resize = Resize::new(&[8, 1], &[1.0; 2], &[32, 1], &[1.0; 2]).unwrap();
        let mut out = vec![Complex::new(7.0f32, 0.0); 32];
        let e = resize.apply(&image, &mut out).unwrap_err();
        assert!(e.kind() == ErrorKind::NotFinite && e.message().contains("overflows"), "{e}");
        assert_eq!(out, vec![Complex::new(7.0f32, 0.0); 32]);
    }

    #[test]
    fn invalid_sizes_are_errors() {
        let kind = |r: Result<Resize>| r.unwrap_err().kind();
        assert_eq!(kind(Resize::new(&[], &[], &[], &[])), ErrorKind::InvalidSize);
        assert_eq!(kind(Resize::new(&[4, 0], &[1.0; 2], &[4, 4], &[1.0; 2])), ErrorKind::InvalidSize);
        assert_eq!(kind(Resize::new(&[4, 4], &[1.0; 2], &[4, 0], &[1.0; 2])), ErrorKind::InvalidSize);
        assert_eq!(kind(Resize::new(&[4, 4], &[1.0; 2], &[4; 3], &[1.0; 2])), ErrorKind::SizeMismatch);
        assert_eq!(kind(Resize::new(&[4, 4], &[1.0; 1], &[4; 2], &[1.0; 2])), ErrorKind::SizeMismatch);
        let far = Resize::new(&[4, 4], &[300.0, 300.0], &[4, 4], &[300.0, 1e-9]).unwrap_err();
        assert!(far.kind() == ErrorKind::SizeOverflow && far.message().contains("axis 1"), "{far}");
        let resize = Resize::new(&[4, 4], &[1.0; 2], &[2, 2], &[1.0; 2]).unwrap();
        let mut out = vec![Complex::new(7.0f32, 0.0); 4];
        let mut image = vec![Complex::new(1.0f32, 0.0); 16];
        assert_eq!(resize.apply(&image[1..], &mut out).unwrap_err().kind(), ErrorKind::SizeMismatch);
        assert_eq!(resize.apply(&image, &mut out[1..]).unwrap_err().kind(), ErrorKind::SizeMismatch);
        image[9].im = f32::NAN;
        let e = resize.apply(&image, &mut out).unwrap_err();
        assert!(e.kind() == ErrorKind::NotFinite && e.message().contains("voxel 9 "), "{e}");
        assert_eq!(out, vec![Complex::new(7.0f32, 0.0); 4]);
    }
}
