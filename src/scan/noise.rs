//! The noise of a measurement: its samples, and the matrices that whiten data as they arrive.

use super::acquisition_header::AcquisitionHeader;
use super::header::Header;
use super::scan_data::{Noise, Scan};
use super::spare_arrays::SpareArrays;
use super::warnings::warn;
use super::whitening::{transform_coils_into, warn_of_noise_units, whitening_matrix};
use crate::acquisition::AcquisitionUse;
use crate::base::error::{bail, checked_product, try_grow, try_reserve, try_vec, Result};
use crate::base::warning::{raise, WarningKind};
use crate::reconstruction::coil_matrix::CoilMatrix;
use num_complex::Complex;
use std::collections::{BTreeMap, BTreeSet};

/// Number of coils, and bits of the sample time in seconds.
type NoiseKey = (usize, u32);

/// Noise acquisitions, and the whitening matrices that are computed from them.
///
/// The units of the data of one number of coils do not change: noise that comes after the first of these data has no
/// effect.
#[derive(Default)]
pub(super) struct NoiseWhitener {
    /// The ratio of the receiver's noise bandwidth to its sampling bandwidth; `None` means 1.
    bandwidth: Option<f64>,
    /// The samples of each coil, by number of coils and sample time.
    samples: BTreeMap<NoiseKey, Vec<Vec<Complex<f32>>>>,
    /// The whitening matrices, by number of coils and sample time of the data.
    matrices: BTreeMap<NoiseKey, CoilMatrix>,
    /// The numbers of coils whose units are settled.
    settled_coils: BTreeSet<usize>,
    /// The number of noise acquisitions.
    acquisitions: usize,
    /// The number of noise acquisitions without effect since the last report.
    late_acquisitions: usize,
    /// Whether the warning of missing noise was given.
    has_reported_missing: bool,
}

impl NoiseWhitener {
    /// Creates a whitener without noise.
    pub fn new(bandwidth: Option<f64>) -> NoiseWhitener {
        NoiseWhitener { bandwidth, ..NoiseWhitener::default() }
    }

    /// Adds the samples of a noise acquisition, [samples, coils], also samples marked as discarded. They have no effect
    /// if data of these coils came before.
    ///
    /// # Errors
    /// `BadFile` for a length that the header does not announce and a sample time that is not one; `OutOfHostMemory`.
    pub fn add(&mut self, header: &AcquisitionHeader, data: &[Complex<f32>]) -> Result<()> {
        let (count, coils) = (header.number_of_samples as usize, header.active_channels as usize);
        if data.len() != count * coils {
            let (n, need) = (2 * data.len(), 2 * count * coils);
            bail!(BadFile, "the noise has {n} numbers, but {count} complex samples of {coils} coils need {need}");
        }
        let dwell = header.dwell()? as f32;
        self.acquisitions += 1;
        // A group of noise without samples would need memory for its coils only.
        if data.is_empty() {
            return Ok(());
        }
        if self.settled_coils.contains(&coils) {
            self.late_acquisitions += 1;
            return Ok(());
        }
        let group = match self.samples.entry((coils, dwell.to_bits())) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => entry.insert(try_vec(coils, Vec::new(), "the noise")?),
        };
        // All coils keep the same number of samples after an error.
        group.iter_mut().try_for_each(|coil| try_grow(coil, count, "the noise"))?;
        group.iter_mut().zip(data.chunks_exact(count)).for_each(|(coil, samples)| coil.extend_from_slice(samples));
        Ok(())
    }

    /// Returns whether there is noise.
    pub fn has_samples(&self) -> bool {
        self.samples.values().flatten().any(|coil| !coil.is_empty())
    }

    /// Returns the noise so far, one entry per number of coils and sample time.
    ///
    /// # Errors
    /// `OutOfHostMemory`.
    pub fn noise(&self) -> Result<Vec<Noise>> {
        let joined = |(&(coils, dwell), samples): (&NoiseKey, &Vec<Vec<Complex<f32>>>)| {
            let count = samples.first().map_or(0, Vec::len);
            let mut data = try_reserve(checked_product(&[coils, count], "the noise")?, "the noise")?;
            samples.iter().for_each(|coil| data.extend_from_slice(coil));
            Ok(Noise { coils, dwell: f32::from_bits(dwell), data })
        };
        let has_samples = |(_, samples): &(&NoiseKey, &Vec<Vec<Complex<f32>>>)| samples.iter().any(|s| !s.is_empty());
        self.samples.iter().filter(has_samples).map(joined).collect()
    }

    /// Whitens the data of an image, if noise was measured.
    ///
    /// # Errors
    /// The errors of [`whiten`](super::whiten).
    pub fn whiten_scan(&mut self, scan: &mut Scan, spare: &SpareArrays) -> Result<()> {
        if !self.has_samples() {
            self.settled_coils.insert(scan.coils);
            return Ok(());
        }
        let whitened = spare.samples(scan.data.len())?;
        spare.put_samples(transform_coils_into(self.matrix(scan.coils, scan.dwell())?, scan, whitened)?);
        scan.noise_level = Some(1.0);
        Ok(())
    }

    /// Returns the whitened data of an acquisition, [samples, coils]. `None` if the data stay unchanged: there is no
    /// noise, the acquisition is noise, it is not used and has other coils than the noise, or its data are not finite.
    ///
    /// # Errors
    /// The errors of [`whiten`](super::whiten); `BadFile` for a sample time that is not one.
    pub fn whiten_acquisition(
        &mut self,
        header: &AcquisitionHeader,
        data: &[Complex<f32>],
    ) -> Result<Option<Vec<Complex<f32>>>> {
        let (usage, coils) = (AcquisitionUse::of_flags(header.flags), header.active_channels as usize);
        if usage == AcquisitionUse::Noise || data.is_empty() {
            return Ok(None);
        }
        if !self.has_samples() {
            if usage.is_used() {
                self.settled_coils.insert(coils);
            }
            return Ok(None);
        }
        let has_noise = self.samples.keys().any(|key| key.0 == coils);
        if !usage.is_used() && !has_noise || data.iter().any(|z| !z.is_finite()) {
            return Ok(None);
        }
        let matrix = self.matrix(coils, header.dwell()? as f32)?;
        let mut whitened = try_vec(data.len(), Complex::ZERO, "the whitened data")?;
        matrix.apply(header.number_of_samples as usize, data, &mut whitened)?;
        Ok(Some(whitened))
    }

    /// Returns the whitening matrix for data with this number of coils and time between samples.
    fn matrix(&mut self, coils: usize, dwell: f32) -> Result<&CoilMatrix> {
        let key = (coils, dwell.to_bits());
        if !self.matrices.contains_key(&key) {
            let matrix = whitening_matrix(&self.noise()?, coils, dwell, self.bandwidth)?;
            if self.matrices.is_empty() {
                warn_of_noise_units("scan option whiten = 0 leaves the data unchanged");
            }
            self.matrices.insert(key, matrix);
            self.settled_coils.insert(coils);
        }
        Ok(&self.matrices[&key])
    }

    /// Warns of noise that had no effect, and of a noise scan that the header names and that did not come. Each warning
    /// is given once.
    pub fn report(&mut self, header: &Header) {
        let late = std::mem::take(&mut self.late_acquisitions);
        if late > 0 {
            raise(
                WarningKind::Noise,
                format!(
                    "{late} noise acquisitions came after the first data of their coils, and have no effect: store \
                     noise before the data, or use the program recon, which uses the noise of the whole file"
                ),
            );
        }
        if self.acquisitions == 0 && !std::mem::replace(&mut self.has_reported_missing, true) {
            warn_of_missing_noise(header);
        }
    }
}

/// Warns if the header names a noise scan. Call it if the measurement has no noise acquisitions.
pub fn warn_of_missing_noise(header: &Header) {
    for (_, measurement) in header.dependencies.iter().filter(|(kind, _)| kind.eq_ignore_ascii_case("noise")) {
        warn(format!(
            "the XML header names measurement {measurement:?} as its noise scan, but there are no noise acquisitions: \
             the data are whitened only if an earlier step did so. To whiten them, store the noise before the data"
        ));
    }
}
