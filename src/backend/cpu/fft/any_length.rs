//! Transforms of lines of any length, a few lines at a time, in double precision. The grids of plans have lengths that
//! are products of 2, 3, 5 and 7; images in files may have any length.
//!
//! Other lengths are convolutions with a chirp (Bluestein, IEEE Trans. Audio Electroacoust. 18, 1970): with
//! c(j) = exp(i pi j^2 / n), X(f) = conj(c(f)) sum over m of [x(m) conj(c(m))] c(f - m).
//!
//! rustfft, which supports all lengths too, is not used because it ends the process if memory is insufficient.

use super::lanes::{LaneFft, LaneTransform, LineMapping, Lines, TABLES};
use crate::backend::cpu::simd::Level;
use crate::base::error::{try_collect, try_vec, Result};
use crate::base::fft_size::{is_product_of_small_primes, next_fast_size};
use crate::base::memory::Aligned;
use num_complex::Complex;
use std::f64::consts::PI;

/// The transform of lines of one length.
pub struct LineFft {
    n: usize,
    lines: SmoothFft,
    chirp: Option<BluesteinChirp>,
}

/// The chirp of the convolution, for lengths with other prime factors.
struct BluesteinChirp {
    /// c(j) for j < n.
    chirp: Vec<Complex<f64>>,
    /// The transform of c(j) for |j| < n, which is even, divided by the length.
    spectrum: Vec<Complex<f64>>,
    /// Buffer for lines of the convolution's length.
    work: Vec<Complex<f64>>,
}

impl LineFft {
    /// Plans transforms of lines of `n` points, `n` from 1 to 2^24.
    ///
    /// # Errors
    /// `OutOfHostMemory`.
    pub fn new(level: Level, n: usize) -> Result<LineFft> {
        assert!((1..=1 << 24).contains(&n), "a line of {n} points");
        if is_product_of_small_primes(n) {
            return Ok(LineFft { n, lines: SmoothFft::new(level, n)?, chirp: None });
        }
        let length = next_fast_size(2 * n - 1);
        let mut lines = SmoothFft::new(level, length)?;
        // j^2 modulo the period 2n keeps the angle exact for large j.
        let point = |j: usize| Complex::from_polar(1.0, PI * (j * j % (2 * n)) as f64 / n as f64);
        let chirp: Vec<Complex<f64>> = try_collect(n, TABLES, (0..n).map(point))?;
        let mut spectrum = try_vec(length, Complex::default(), TABLES)?;
        for (j, &c) in chirp.iter().enumerate() {
            spectrum[j] = c / length as f64;
            spectrum[(length - j) % length] = c / length as f64;
        }
        lines.run(false, &mut spectrum);
        let work = try_vec(lines.lanes * length, Complex::default(), TABLES)?;
        Ok(LineFft { n, lines, chirp: Some(BluesteinChirp { chirp, spectrum, work }) })
    }

    /// Returns the maximum number of lines per call.
    pub fn most_lines(&self) -> usize {
        self.lines.lanes
    }

    /// Transforms up to [`LineFft::most_lines`] lines in place, which are contiguous in memory: sums with exp(-2 pi i f
    /// m / n), or with the opposite sign for the inverse. Neither is divided by n.
    pub fn run(&mut self, inverse: bool, lines: &mut [Complex<f64>]) {
        assert!(lines.len().is_multiple_of(self.n));
        let Some(BluesteinChirp { chirp, spectrum, work }) = &mut self.chirp else {
            return self.lines.run(inverse, lines);
        };
        let conj_if_forward = |c: Complex<f64>| if inverse { c } else { c.conj() };
        let work = &mut work[..lines.len() / self.n * spectrum.len()];
        work.fill(Complex::default());
        for (work, line) in work.chunks_exact_mut(spectrum.len()).zip(lines.chunks_exact(self.n)) {
            work.iter_mut().zip(line).zip(&*chirp).for_each(|((w, z), c)| *w = z * conj_if_forward(*c));
        }
        self.lines.run(inverse, work);
        // The conjugate of an even sequence has the conjugate spectrum in the inverse transform.
        let conj_if_inverse = |s: Complex<f64>| if inverse { s.conj() } else { s };
        for work in work.chunks_exact_mut(spectrum.len()) {
            work.iter_mut().zip(&*spectrum).for_each(|(w, s)| *w *= conj_if_inverse(*s));
        }
        self.lines.run(!inverse, work);
        for (work, line) in work.chunks_exact(spectrum.len()).zip(lines.chunks_exact_mut(self.n)) {
            line.iter_mut().zip(work).zip(&*chirp).for_each(|((z, w), c)| *z = w * conj_if_forward(*c));
        }
    }
}

/// The transform of lines whose length is a product of 2, 3, 5 and 7.
struct SmoothFft {
    level: Level,
    lanes: usize,
    fft: LaneFft<f64>,
    full: LineMapping<f64>,
    buffer: Aligned<f64>,
}

impl SmoothFft {
    fn new(level: Level, n: usize) -> Result<SmoothFft> {
        let lanes = level.lanes::<f64>();
        let fft = LaneFft::new(n)?;
        let buffer = Aligned::zeros(fft.buffer_len(lanes), "lines of the FFT")?;
        Ok(SmoothFft { level, lanes, full: fft.full_mapping()?, fft, buffer })
    }

    fn run(&mut self, inverse: bool, lines: &mut [Complex<f64>]) {
        let n = self.full.positions().len();
        let count = lines.len() / n;
        assert!(count <= self.lanes && lines.len() == count * n);
        let at = Lines { address: lines.as_mut_ptr(), along: 1, across: n, count };
        let (from, to) = ((at, &self.full), (at, &self.full));
        let transform = LaneTransform { fft: &self.fft, inverse, from, to, buffer: &mut self.buffer };
        // SAFETY: the lines are inside the slice, which is mutably borrowed here; all are loaded before one is stored.
        unsafe { self.level.run(transform.kernel()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustfft::FftPlanner;

    #[test]
    fn all_lengths_agree_with_rustfft() {
        let mut state = 0x13_0007u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        };
        for n in (1..=70).chain([97, 121, 127, 250, 257, 331, 509, 1009, 1022, 4099, 65_537]) {
            for level in Level::all() {
                let mut fft = LineFft::new(level, n).unwrap();
                for (inverse, count) in [(false, 1), (true, fft.most_lines()), (false, fft.most_lines() - 1)] {
                    let count = count.max(1);
                    let line: Vec<_> = (0..n * count).map(|_| Complex::new(random(), random())).collect();
                    let (mut got, mut want) = (line.clone(), line);
                    fft.run(inverse, &mut got);
                    let mut planner = FftPlanner::new();
                    let reference = if inverse { planner.plan_fft_inverse(n) } else { planner.plan_fft_forward(n) };
                    reference.process(&mut want);
                    let error = got.iter().zip(&want).map(|(a, b)| (a - b).norm_sqr()).sum::<f64>().sqrt();
                    let size = want.iter().map(|z| z.norm_sqr()).sum::<f64>().sqrt();
                    assert!(error <= 2e-15 * size, "{n} points, {}: {:e}", level.name(), error / size);
                }
            }
        }
    }
}
