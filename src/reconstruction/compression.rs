//! Coil compression: fewer virtual coils that hold most of the signal's energy (Buehrer et al., Magn. Reson. Med.
//! 57:1131, 2007; Huang et al., Magn. Reson. Imaging 26:133, 2008).
//!
//! The virtual coils are the principal components of the data: the eigenvectors of their covariance, the strongest
//! first. Data should be whitened before, so that components are weighed by signal and not by a coil's gain.

use super::coil_matrix::{frame_len, CoilMatrix, Covariance};
use crate::base::dense::HermitianEigen;
use crate::base::error::{bail, checked_product, try_collect, Result};
use crate::base::geometry::check_finite;
use crate::base::real::Real;
use crate::base::results::check_results;
use crate::base::warning::{raise, WarningKind};
use num_complex::Complex;

/// Virtual coils with less of the energy lose signal that is seen.
const LEAST_ENERGY: f64 = 0.95;

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
        let HermitianEigen { values, vectors } =
            HermitianEigen::new(&self.covariance.entries, coils, "the covariance of coils")?;
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
