//! Coil compression: fewer virtual coils that hold most of the signal's energy (Buehrer et al., Magn. Reson. Med.
//! 57:1131, 2007; Huang et al., Magn. Reson. Imaging 26:133, 2008).
//!
//! The virtual coils are the principal components of the data: the eigenvectors of their covariance, the strongest
//! first. Data should be whitened before, so that components are weighed by signal and not by a coil's gain.

use super::coil_matrix::{frame_len, CoilMatrix, Covariance};
use crate::base::error::{bail, checked_product, try_collect, try_vec, Result};
use crate::base::geometry::check_finite;
use crate::base::real::Real;
use crate::base::results::check_results;
use crate::base::warning::{raise, WarningKind};
use num_complex::Complex;

/// Virtual coils with less of the energy lose signal that is seen.
const LEAST_ENERGY: f64 = 0.95;
/// Rounds of rotations: four to eight are enough for any matrix.
const SWEEPS: usize = 30;

/// How many virtual coils are kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Keep {
    /// So many.
    Coils(usize),
    /// The fewest that hold this part of the energy, in (0, 1].
    Energy(f64),
}

/// The energy of a scan's data by coils, from which virtual coils are made. Several scans may be added, which then have
/// the same virtual coils.
pub struct CoilEnergy {
    covariance: Covariance,
}

/// Virtual coils.
#[derive(Debug, Clone, PartialEq)]
pub struct Compression {
    /// The matrix, of orthonormal rows.
    pub matrix: CoilMatrix,
    /// The part of the energy that each of all virtual coils has, the strongest first: the matrix makes the first ones.
    pub energies: Vec<f64>,
}

impl Compression {
    /// The part of the energy that is kept.
    pub fn kept(&self) -> f64 {
        self.energies[..self.matrix.virtual_coils()].iter().sum()
    }
}

impl CoilEnergy {
    /// Of no data.
    ///
    /// # Errors
    /// `InvalidSize` for no coils, `OutOfHostMemory`.
    pub fn new(coils: usize) -> Result<Self> {
        if coils == 0 {
            bail!(InvalidSize, "0 coils cannot be compressed: at least one is needed");
        }
        Ok(CoilEnergy { covariance: Covariance::zero(coils)? })
    }

    /// Adds data, [samples, coils, frames].
    ///
    /// # Errors
    /// `SizeMismatch` for a length that is not whole frames, `NotFinite` for a NaN, with its index.
    pub fn add<T: Real>(&mut self, samples: usize, data: &[Complex<T>]) -> Result<()> {
        frame_len(data.len(), samples, self.covariance.coils)?;
        check_finite("number", data)?;
        self.covariance.add(samples, data)
    }

    /// The virtual coils.
    ///
    /// # Errors
    /// `InvalidSize` for none, and for more than there are coils; `InvalidArgument` for an energy that is not in (0,
    /// 1], and where all data are 0; `NotFinite` for an energy that overflows; `OutOfHostMemory`.
    pub fn compression(&self, keep: Keep) -> Result<Compression> {
        let coils = self.covariance.coils;
        match keep {
            Keep::Coils(0) => bail!(InvalidSize, "0 virtual coils: keep at least one"),
            Keep::Coils(wanted) if wanted > coils => {
                bail!(InvalidSize, "{wanted} virtual coils of {coils} coils: there are no more than coils")
            }
            Keep::Energy(part) if !(part > 0.0 && part <= 1.0) => {
                bail!(InvalidArgument, "{part} of the energy is to be kept: it must be above 0 and at most 1")
            }
            _ => {}
        }
        check_results("energy of coils", &self.covariance.entries)?;
        let Eigen { values, vectors } = Eigen::of(&self.covariance)?;
        let total: f64 = values.iter().sum();
        if !(total > 0.0) {
            bail!(
                InvalidArgument,
                "all data are 0, or so small that their squares are: there is no energy to make virtual coils by"
            );
        }
        let what = "the virtual coils";
        let energies = try_collect(coils, what, values.iter().map(|value| value.max(0.0) / total))?;
        let wanted = match keep {
            Keep::Coils(wanted) => wanted,
            Keep::Energy(part) => {
                let mut sum = 0.0;
                // Rounding may leave the sum of all just below 1.
                1 + energies
                    .iter()
                    .take(coils - 1)
                    .take_while(|&energy| {
                        sum += energy;
                        sum < part - 1e-12
                    })
                    .count()
            }
        };
        // Row v is the conjugate of eigenvector v.
        let len = checked_product(&[wanted, coils], what)?;
        let entries = (0..len).map(|i| vectors[i % wanted * coils + i / wanted].conj());
        let matrix = CoilMatrix::new(wanted, coils, try_collect(len, what, entries)?)?;
        let made = Compression { matrix, energies };
        if made.kept() < LEAST_ENERGY {
            let message = format!(
                "{wanted} virtual coils of {coils} hold {:.1} % of the energy: the image loses signal; keep more coils",
                100.0 * made.kept()
            );
            raise(WarningKind::Compression, message);
        }
        Ok(made)
    }
}

/// Eigenvalues in units of the matrix's largest entry, the largest first, and unit eigenvectors, one after the other.
struct Eigen {
    values: Vec<f64>,
    vectors: Vec<Complex<f64>>,
}

impl Eigen {
    /// By Jacobi's rotations (Golub and Van Loan, Matrix Computations, 8.5). Each eigenvector is turned so that its
    /// largest entry is real and positive: bits do not depend on the order of rotations alone.
    fn of(matrix: &Covariance) -> Result<Eigen> {
        let (n, what) = (matrix.coils, "the covariance of coils");
        let at = |a: usize, b: usize| b * n + a;
        // In units of the largest entry, so that squares neither overflow nor vanish. Its division cannot overflow.
        let largest = matrix.entries.iter().fold(0.0, |most: f64, z| most.max(z.re.abs()).max(z.im.abs()));
        let unit = if largest > 0.0 { largest } else { 1.0 };
        let mut m = try_collect(n * n, what, matrix.entries.iter().map(|z| z / unit))?;
        let mut v = try_vec(n * n, Complex::default(), what)?;
        (0..n).for_each(|i| v[at(i, i)] = Complex::new(1.0, 0.0));
        let norm: f64 = m.iter().map(|z| z.norm_sqr()).sum();
        for _ in 0..SWEEPS {
            let off: f64 = (0..n).flat_map(|b| (0..b).map(move |a| (a, b))).map(|(a, b)| m[at(a, b)].norm_sqr()).sum();
            if off <= 1e-32 * norm {
                break;
            }
            for q in 1..n {
                for p in 0..q {
                    rotate(&mut m, &mut v, n, p, q);
                }
            }
        }
        let mut order = try_collect(n, what, 0..n)?;
        order.sort_by(|&a, &b| m[at(b, b)].re.total_cmp(&m[at(a, a)].re));
        let values = try_collect(n, what, order.iter().map(|&i| m[at(i, i)].re))?;
        let mut vectors = try_vec(n * n, Complex::default(), what)?;
        for (&i, to) in order.iter().zip(vectors.chunks_exact_mut(n)) {
            let vector = &v[i * n..][..n];
            let mut largest = vector[0];
            for &z in vector {
                if z.norm_sqr() > largest.norm_sqr() {
                    largest = z;
                }
            }
            let turn = largest.conj() / largest.norm();
            to.iter_mut().zip(vector).for_each(|(to, z)| *to = z * turn);
        }
        Ok(Eigen { values, vectors })
    }
}

/// Makes the entries (p, q) and (q, p) of a Hermitian matrix 0 by a rotation, which is also applied to the columns of
/// `v`.
fn rotate(m: &mut [Complex<f64>], v: &mut [Complex<f64>], n: usize, p: usize, q: usize) {
    let at = |a: usize, b: usize| b * n + a;
    let beside = m[at(p, q)];
    let size = beside.norm();
    if size == 0.0 {
        return;
    }
    let phase = beside / size;
    let theta = (m[at(q, q)].re - m[at(p, p)].re) / (2.0 * size);
    let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
    let c = 1.0 / t.hypot(1.0);
    let s = t * c;
    // Columns p and q become c p - s conj(phase) q and s phase p + c q.
    let columns = |x: &mut [Complex<f64>]| {
        for i in 0..n {
            let (xp, xq) = (x[at(i, p)], x[at(i, q)]);
            x[at(i, p)] = xp * c - xq * phase.conj() * s;
            x[at(i, q)] = xp * phase * s + xq * c;
        }
    };
    columns(m);
    columns(v);
    for i in 0..n {
        let (xp, xq) = (m[at(p, i)], m[at(q, i)]);
        m[at(p, i)] = xp * c - xq * phase * s;
        m[at(q, i)] = xp * phase.conj() * s + xq * c;
    }
    (m[at(p, q)], m[at(q, p)]) = Default::default();
    (m[at(p, p)].im, m[at(q, q)].im) = (0.0, 0.0);
}
