//! Coil compression: fewer virtual coils that contain most of the signal's energy (Buehrer et al., Magn. Reson. Med.
//! 57:1131, 2007; Huang et al., Magn. Reson. Imaging 26:133, 2008).
//!
//! The virtual coils are the principal components of the data: the eigenvectors of their covariance, the strongest
//! first. Data should be whitened first, so that components are weighted by signal and not by a coil's gain.

use super::coil_matrix::{frame_len, CoilMatrix, Covariance};
use crate::base::dense::HermitianEigen;
use crate::base::error::{bail, checked_product, try_collect, Result};
use crate::base::geometry::check_finite;
use crate::base::real::Real;
use crate::base::results::check_results;
use crate::base::warning::{raise, WarningKind};
use num_complex::Complex;

/// Share of the energy below which virtual coils visibly lose signal.
const LEAST_ENERGY: f64 = 0.95;

/// Number of virtual coils to keep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Keep {
    /// This number.
    Coils(usize),
    /// The smallest number that contains this share of the energy, in (0, 1].
    Energy(f64),
}

/// Energy of a scan's data by coils, from which virtual coils are computed. Several scans may be added; they then have
/// the same virtual coils.
pub struct CoilEnergy {
    covariance: Covariance,
}

/// Virtual coils of a scan.
#[derive(Debug, Clone, PartialEq)]
pub struct Compression {
    /// Matrix with orthonormal rows.
    pub matrix: CoilMatrix,
    /// Share of the energy of each virtual coil, the strongest first, for all coils. The matrix computes the first
    /// ones.
    pub energies: Vec<f64>,
}

impl Compression {
    /// Returns the share of the energy that the matrix keeps.
    pub fn kept(&self) -> f64 {
        self.energies[..self.matrix.virtual_coils()].iter().sum()
    }
}

impl CoilEnergy {
    /// Creates the energy of no data.
    ///
    /// # Errors
    /// `InvalidSize` for no coils, `OutOfHostMemory`.
    pub fn new(coils: usize) -> Result<Self> {
        if coils == 0 {
            bail!(InvalidSize, "0 coils cannot be compressed: give at least one");
        }
        Ok(CoilEnergy { covariance: Covariance::zero(coils)? })
    }

    /// Adds data, [samples, coils, frames].
    ///
    /// # Errors
    /// `SizeMismatch` for a length that is not a whole number of frames, `NotFinite` for a NaN, with its index.
    pub fn add<T: Real>(&mut self, samples: usize, data: &[Complex<T>]) -> Result<()> {
        frame_len(data.len(), samples, self.covariance.coils)?;
        check_finite("number", data)?;
        self.covariance.add(samples, data)
    }

    /// Returns the virtual coils.
    ///
    /// # Errors
    /// - `InvalidSize` for 0 virtual coils, or more virtual coils than coils.
    /// - `InvalidArgument` for an energy outside (0, 1], and if all data are 0.
    /// - `NotFinite` for an energy that overflows.
    /// - `OutOfHostMemory`.
    pub fn compression(&self, keep: Keep) -> Result<Compression> {
        let coils = self.covariance.coils;
        match keep {
            Keep::Coils(0) => bail!(InvalidSize, "0 virtual coils: keep at least one"),
            Keep::Coils(count) if count > coils => {
                bail!(InvalidSize, "{count} virtual coils of {coils} coils: give at most the number of coils")
            }
            Keep::Energy(part) if !(part > 0.0 && part <= 1.0) => {
                bail!(InvalidArgument, "the share of the energy to keep is {part}: it must be above 0 and at most 1")
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
                "all data are 0, or so small that their squares are 0: virtual coils need data with energy"
            );
        }
        let what = "the virtual coils";
        let energies = try_collect(coils, what, values.iter().map(|value| value.max(0.0) / total))?;
        let count = match keep {
            Keep::Coils(count) => count,
            Keep::Energy(part) => {
                let mut sum = 0.0;
                // Due to rounding, the sum of all energies may be just below 1.
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
        let len = checked_product(&[count, coils], what)?;
        let entries = (0..len).map(|i| vectors[i % count * coils + i / count].conj());
        let matrix = CoilMatrix::new(count, coils, try_collect(len, what, entries)?)?;
        let compression = Compression { matrix, energies };
        if compression.kept() < LEAST_ENERGY {
            let message = format!(
                "{count} virtual coils of {coils} contain {:.1} % of the energy, and the image loses signal: keep \
                 more coils",
                100.0 * compression.kept()
            );
            raise(WarningKind::Compression, message);
        }
        Ok(compression)
    }
}
