//! Matrices that make virtual coils of coils: whitening (whitening.rs) and compression (compression.rs).

use crate::base::error::{bail, checked_product, try_vec, Result};
use crate::base::geometry::{check_finite, check_len};
use crate::base::interrupt;
use crate::base::real::{narrow, wide, Real};
use crate::base::results::check_results;
use num_complex::Complex;

/// Samples whose virtual coils are summed at once: they stay in the first cache.
const BLOCK: usize = 512;

/// A matrix M that makes virtual coils of coils: y_v = sum_c M(v, c) x_c.
///
/// k-space, coil images and coil sensitivities of a scan are all mapped by the same matrix: the encoding of the virtual
/// coils is that of the mapped sensitivities.
#[derive(Debug, Clone, PartialEq)]
pub struct CoilMatrix {
    virtual_coils: usize,
    coils: usize,
    entries: Vec<Complex<f64>>,
}

impl CoilMatrix {
    /// `entries` are [virtual coils, coils], the virtual coil running fastest.
    ///
    /// # Errors
    /// `InvalidSize` for no coils, `SizeMismatch` for another number of entries, `NotFinite` for a NaN, with its index.
    pub fn new(virtual_coils: usize, coils: usize, entries: Vec<Complex<f64>>) -> Result<Self> {
        if virtual_coils == 0 || coils == 0 {
            bail!(InvalidSize, "a matrix of {virtual_coils} virtual coils of {coils} coils: give one of each at least");
        }
        let needed = checked_product(&[virtual_coils, coils], "the coil matrix")?;
        check_len("entries of the coil matrix", entries.len(), needed, "virtual coils times coils")?;
        check_finite("coil matrix's entry", &entries)?;
        Ok(CoilMatrix { virtual_coils, coils, entries })
    }

    /// The coils that it makes.
    pub fn virtual_coils(&self) -> usize {
        self.virtual_coils
    }

    /// The coils that it takes.
    pub fn coils(&self) -> usize {
        self.coils
    }

    /// [virtual coils, coils], the virtual coil running fastest.
    pub fn entries(&self) -> &[Complex<f64>] {
        &self.entries
    }

    /// The matrix that does `self`, then `next`.
    ///
    /// # Errors
    /// `SizeMismatch` where `next` takes another number of coils, `OutOfHostMemory`.
    pub fn then(&self, next: &CoilMatrix) -> Result<CoilMatrix> {
        check_len("coils of the second matrix", next.coils, self.virtual_coils, "as many as the first makes")?;
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

    /// The virtual coils of `from`, [samples, coils, frames], as [samples, virtual coils, frames]. Sums are in double
    /// precision.
    ///
    /// # Errors
    /// `InvalidSize` for no samples, `SizeMismatch` for other lengths, `NotFinite` for a NaN, with its index, and where
    /// a sum is too large for the precision, `OutOfHostMemory`. `to` is then as it was.
    pub fn apply<T: Real>(&self, samples: usize, from: &[Complex<T>], to: &mut [Complex<T>]) -> Result<()> {
        let frame = frame_len(from.len(), samples, self.coils)?;
        let made = checked_product(&[samples, self.virtual_coils], "the virtual coils")?;
        let needed = checked_product(&[made, from.len() / frame], "the virtual coils")?;
        check_len("numbers of the virtual coils", to.len(), needed, "samples times virtual coils times frames")?;
        check_finite("number", from)?;
        let mut result = try_vec(needed, Complex::default(), "the virtual coils")?;
        for (from, to) in from.chunks_exact(frame).zip(result.chunks_exact_mut(made)) {
            for start in (0..samples).step_by(BLOCK) {
                interrupt::check("the making of virtual coils")?;
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

/// The numbers of one frame, of data of so many: [samples, coils, frames].
///
/// # Errors
/// `SizeMismatch` where they are none, or not whole frames.
pub(super) fn frame_len(len: usize, samples: usize, coils: usize) -> Result<usize> {
    let frame = checked_product(&[samples, coils], "the data")?;
    if frame == 0 || len == 0 || !len.is_multiple_of(frame) {
        bail!(
            SizeMismatch,
            "{len} numbers are not whole frames of {samples} samples of {coils} coils: give [samples, coils, frames]"
        );
    }
    Ok(frame)
}

/// Sums over samples of x_a conj(x_b), of data [samples, coils, frames]: Hermitian, [coils, coils], a running fastest.
pub(super) struct Covariance {
    pub coils: usize,
    pub entries: Vec<Complex<f64>>,
}

impl Covariance {
    pub fn zero(coils: usize) -> Result<Self> {
        let len = checked_product(&[coils, coils], "the covariance of coils")?;
        Ok(Covariance { coils, entries: try_vec(len, Complex::default(), "the covariance of coils")? })
    }

    /// Adds the samples of frames. Sums are in double precision, in blocks, which keeps them accurate.
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

/// The sum of a conj(b), in lanes that the compiler makes vectors of.
fn product<T: Real>(a: &[Complex<T>], b: &[Complex<T>]) -> Complex<f64> {
    const LANES: usize = 8;
    let mut sums = [Complex::<f64>::default(); LANES];
    let add = |sum: &mut Complex<f64>, a: Complex<T>, b: Complex<T>| {
        let (a, b) = (wide(a), wide(b));
        sum.re += a.re * b.re + a.im * b.im;
        sum.im += a.im * b.re - a.re * b.im;
    };
    let (some, rest) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in some.0.iter().zip(rest.0) {
        for lane in 0..LANES {
            add(&mut sums[lane], a[lane], b[lane]);
        }
    }
    for (sum, (&a, &b)) in sums.iter_mut().zip(some.1.iter().zip(rest.1)) {
        add(sum, a, b);
    }
    sums.iter().sum()
}
