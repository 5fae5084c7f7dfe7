//! The sampling of a scan, from which the geometry of a plan is made.

use crate::run::off_resonance::{OffResonanceMaps, ScanFieldMaps};
use recon::{Geometry, Real, Result, VoxelBasis};
use recon_files::Scan;

/// The matrix, coordinates and field maps of a scan, in the precision of the computation.
pub struct Sampling<T: Real> {
    dims: Vec<usize>,
    coordinates: Vec<Vec<T>>,
    coils: usize,
    basis: VoxelBasis,
    /// `None` without off-resonance and decay.
    maps: Option<ScanFieldMaps<T>>,
}

impl<T: Real> Sampling<T> {
    /// Returns the sampling of a scan without off-resonance.
    pub fn new(scan: &Scan, basis: VoxelBasis) -> Self {
        let axis = |k: &Vec<f32>| k.iter().map(|&k| T::of(k as f64)).collect();
        Sampling {
            dims: scan.encoded_matrix[..scan.ndim].to_vec(),
            coordinates: scan.coordinates.iter().map(axis).collect(),
            coils: scan.coils,
            basis,
            maps: None,
        }
    }

    /// Returns the sampling of a scan, or of some of its shots, with the maps of scan `number`.
    pub fn with_maps(scan: &Scan, basis: VoxelBasis, number: usize, maps: &OffResonanceMaps) -> Result<Self> {
        Ok(Sampling { maps: maps.for_scan(number, scan)?, ..Self::new(scan, basis) })
    }

    /// Returns the geometry of a plan.
    pub fn geometry(&self) -> Geometry<'_, T> {
        let mut geometry = self.geometry_without_maps();
        if let Some(ScanFieldMaps { field_map, decay_map, times }) = &self.maps {
            (geometry.field_map, geometry.decay_map) = (field_map.as_deref(), decay_map.as_deref());
            geometry.times = Some(times);
        }
        geometry
    }

    /// Returns the geometry without off-resonance and decay, on which density weights do not depend.
    pub fn geometry_without_maps(&self) -> Geometry<'_, T> {
        let k: Vec<&[T]> = self.coordinates.iter().map(|k| &k[..]).collect();
        let mut geometry = Geometry::new(&self.dims, &k).coils(self.coils);
        geometry.basis = self.basis;
        geometry
    }
}
