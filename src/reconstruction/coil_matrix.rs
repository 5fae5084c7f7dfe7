//! Matrices that combine coils to virtual coils: whitening (whitening.rs) and compression (compression.rs).

use crate::base::error::{bail, checked_product, try_vec, Result};
use crate::base::geometry::{check_finite, check_len};
use crate::base::interrupt;
use crate::base::real::{narrow, wide, Real};
use crate::base::results::check_results;
use num_complex::Complex;

/// Number of samples that are summed at once. They fit in the first-level cache.
const BLOCK: usize = 512;

/// A matrix M that combines coils to virtual coils: y_v = sum_c M(v, c) x_c.
///
/// The same matrix maps the k-space, the coil images and the coil sensitivities of a scan: the encoding of the virtual
/// coils is that of the mapped sensitivities.
#[derive(Debug, Clone, PartialEq)]
pub struct CoilMatrix {
    virtual_coils: usize,
    coils: usize,
    entries: Vec<Complex<f64>>,
}

impl CoilMatrix {
    /// Creates a matrix from its entries, [virtual coils, coils], the virtual coil running fastest.
    ///
    /// # Errors
    /// `InvalidSize` for no coils, `SizeMismatch` for a different number of entries, `NotFinite` for a NaN, with its
    /// index.
    pub fn new(virtual_coils: usize, coils: usize, entries: Vec<Complex<f64>>) -> Result<Self> {
        if virtual_coils == 0 || coils == 0 {
            bail!(InvalidSize, "a matrix of {virtual_coils} virtual coils of {coils} coils: give at least one of each");
        }
        let needed = checked_product(&[virtual_coils, coils], "the coil matrix")?;
        check_len("entries of the coil matrix", entries.len(), needed, "virtual coils times coils")?;
        check_finite("coil matrix's entry", &entries)?;
        Ok(CoilMatrix { virtual_coils, coils, entries })
    }

    /// Returns the number of virtual coils, the outputs.
    pub fn virtual_coils(&self) -> usize {
        self.virtual_coils
    }

    /// Returns the number of coils, the inputs.
    pub fn coils(&self) -> usize {
        self.coils
    }

    /// Returns the entries, [virtual coils, coils], the virtual coil running fastest.
    pub fn entries(&self) -> &[Complex<f64>] {
        &self.entries
    }

    /// Returns the matrix that applies `self`, then `next`.
    ///
    /// # Errors
    /// `SizeMismatch` if `next` has a different number of input coils, `OutOfHostMemory`.
    pub fn then(&self, next: &CoilMatrix) -> Result<CoilMatrix> {
        check_len(
            "coils of the second matrix",
            next.coils,
            self.virtual_coils,
            "the virtual coils of the first matrix",
        )?;
        let len = checked_product(&[next.virtual_coils, self.coils], "the coil matrix")?;
        let mut entries = try_vec(len, Complex::default(), "the coil matrix")?;
        for (column, out) in
            self.entries.chunks_exact(self.virtual_coils).zip(entries.chunks_exact_mut(next.virtual_coils))
        {
            for (x, column) in column.iter().zip(next.entries.chunks_exact(next.virtual_coils)) {
                out.iter_mut().zip(column).for_each(|(out, m)| *out += m * x);
            }
        }
        CoilMatrix::new(next.virtual_coils, self.coils, entries)
    }

    /// Writes the virtual coils of `from`, [samples, coils, frames], to `to`, [samples, virtual coils, frames]. Sums
    /// are in double precision.
    ///
    /// # Errors
    /// `to` is unchanged after an error:
    /// - `InvalidSize` for no samples, `SizeMismatch` for different lengths.
    /// - `NotFinite` for a NaN, with its index, and for a sum that overflows the precision.
    /// - `OutOfHostMemory`.
    pub fn apply<T: Real>(&self, samples: usize, from: &[Complex<T>], to: &mut [Complex<T>]) -> Result<()> {
        let frame = frame_len(from.len(), samples, self.coils)?;
        let virtual_frame = checked_product(&[samples, self.virtual_coils], "the virtual coils")?;
        let needed = checked_product(&[virtual_frame, from.len() / frame], "the virtual coils")?;
        check_len("numbers of the virtual coils", to.len(), needed, "samples times virtual coils times frames")?;
        check_finite("number", from)?;
        let mut result = try_vec(needed, Complex::default(), "the virtual coils")?;
        for (from, to) in from.chunks_exact(frame).zip(result.chunks_exact_mut(virtual_frame)) {
            for start in (0..samples).step_by(BLOCK) {
                interrupt::check("the computation of virtual coils")?;
                let len = BLOCK.min(samples - start);
                for v in 0..self.virtual_coils {
                    let mut sums = [Complex::<f64>::default(); BLOCK];
                    for (c, coil) in from.chunks_exact(samples).enumerate() {
                        let m = self.entries[c * self.virtual_coils + v];
                        for (sum, &x) in sums.iter_mut().zip(&coil[start..start + len]) {
                            let x = wide(x);
                            sum.re += m.re * x.re - m.im * x.im;
                            sum.im += m.re * x.im + m.im * x.re;
                        }
                    }
                    let to = &mut to[v * samples + start..][..len];
                    to.iter_mut().zip(&sums).for_each(|(to, &sum)| *to = narrow(sum));
                }
            }
        }
        check_results("number of the virtual coils", &result)?;
        to.copy_from_slice(&result);
        Ok(())
    }
}

/// Returns the number of elements of one frame, for `len` elements of data [samples, coils, frames].
///
/// # Errors
/// `SizeMismatch` if the data are empty or not whole frames.
pub(super) fn frame_len(len: usize, samples: usize, coils: usize) -> Result<usize> {
    let frame = checked_product(&[samples, coils], "the data")?;
    if frame == 0 || len == 0 || !len.is_multiple_of(frame) {
        bail!(
            SizeMismatch,
            "{len} numbers are not a whole number of frames of {samples} samples of {coils} coils: give [samples, \
             coils, frames]"
        );
    }
    Ok(frame)
}

/// Covariance of coils: sums over samples of x_a conj(x_b), for data [samples, coils, frames].
pub(super) struct Covariance {
    pub coils: usize,
    /// Hermitian matrix, [coils, coils], a running fastest.
    pub entries: Vec<Complex<f64>>,
}

impl Covariance {
    /// Creates a covariance of no data.
    pub fn zero(coils: usize) -> Result<Self> {
        let len = checked_product(&[coils, coils], "the covariance of coils")?;
        Ok(Covariance { coils, entries: try_vec(len, Complex::default(), "the covariance of coils")? })
    }

    /// Adds the samples of frames. Sums are in double precision and in blocks, which keeps them accurate.
    pub fn add<T: Real>(&mut self, samples: usize, data: &[Complex<T>]) -> Result<()> {
        let coils = self.coils;
        for frame in data.chunks_exact(samples * coils) {
            for start in (0..samples).step_by(BLOCK) {
                interrupt::check("the covariance of coils")?;
                let block = |c: usize| &frame[c * samples + start..][..BLOCK.min(samples - start)];
                for b in 0..coils {
                    for a in b..coils {
                        self.entries[b * coils + a] += product(block(a), block(b));
                    }
                }
            }
        }
        for b in 0..coils {
            self.entries[b * coils + b].im = 0.0;
            for a in b + 1..coils {
                self.entries[a * coils + b] = self.entries[b * coils + a].conj();
            }
        }
        Ok(())
    }
}

/// Returns the sum of a conj(b), in lanes that the compiler vectorises.
fn product<T: Real>(a: &[Complex<T>], b: &[Complex<T>]) -> Complex<f64> {
    const LANES: usize = 8;
    let mut sums = [Complex::<f64>::default(); LANES];
    let add = |sum: &mut Complex<f64>, a: Complex<T>, b: Complex<T>| {
        let (a, b) = (wide(a), wide(b));
        sum.re += a.re * b.re + a.im * b.im;
        sum.im += a.im * b.re - a.re * b.im;
    };
    let ((a_chunks, a_rest), (b_chunks, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for lane in 0..LANES {
            add(&mut sums[lane], a[lane], b[lane]);
        }
    }
    for (sum, (&a, &b)) in sums.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        add(sum, a, b);
    }
    sums.iter().sum()
}
