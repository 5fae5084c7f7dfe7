//! The sizes of a scan, from which memory is counted before there is a plan.

use super::error::{bail, checked_product, Result};
use super::geometry::{check_dims, Geometry, VoxelBasis};
use super::off_resonance::Band;
use super::real::Real;
use super::workers::Workers;

/// The sizes of a scan.
#[derive(Debug, Clone, PartialEq)]
pub struct ScanSize {
    /// Image size, [nx, ny] or [nx, ny, nz].
    pub dims: Vec<usize>,
    /// Samples of one coil and frame.
    pub samples: usize,
    /// The width of the centre of k-space that coil maps are made from, as [`crate::Plan::coil_maps`] takes it; 0 for
    /// the default.
    pub calibration: usize,
    /// Samples in that centre, at most; `samples` where it is not known.
    pub central_samples: usize,
    /// Whether there are coordinates of 0.5, or beyond by rounding, which a copy replaces while the plan is made; true
    /// where it is not known.
    pub edge: bool,
    /// Receive coils.
    pub coils: usize,
    /// Frames measured on this trajectory.
    pub frames: usize,
    /// Whether there are coil maps, with which coils are combined.
    pub coil_maps: bool,
    /// Whether there are density weights.
    pub weights: bool,
    /// Voxels of a list, in place of the grid that `dims` describes.
    pub listed: Option<usize>,
    /// The shape of a voxel.
    pub basis: VoxelBasis,
    /// What off-resonance, decay and times reach, where there is a field map or a decay map.
    pub band: Option<Band>,
}

impl ScanSize {
    /// One coil, one frame, no weights, point voxels.
    pub fn new(dims: &[usize], samples: usize) -> Self {
        ScanSize {
            dims: dims.to_vec(),
            samples,
            calibration: 0,
            central_samples: samples,
            edge: true,
            coils: 1,
            frames: 1,
            coil_maps: false,
            weights: false,
            listed: None,
            basis: VoxelBasis::Point,
            band: None,
        }
    }

    /// The sizes of a geometry's arrays, and what off-resonance reaches: of the numbers only those are looked at.
    pub(crate) fn with_band<T: Real>(workers: &dyn Workers, geometry: &Geometry<'_, T>) -> Result<Self> {
        geometry.check_off_resonance(geometry.voxel_count(), geometry.samples())?;
        let band = geometry.off_resonance().map(|maps| maps.band(workers, geometry.coil_maps)).transpose()?;
        Ok(ScanSize { band, ..Self::lengths(geometry) })
    }

    /// The sizes of a geometry's arrays.
    pub(crate) fn lengths<T: Real>(geometry: &Geometry<'_, T>) -> Self {
        ScanSize {
            coils: geometry.coils,
            frames: geometry.frames,
            coil_maps: geometry.coil_maps.is_some(),
            weights: geometry.weights.is_some(),
            listed: geometry.voxels.as_ref().map(|_| geometry.voxel_count()),
            basis: geometry.basis,
            ..Self::new(&geometry.dims, geometry.samples())
        }
    }

    /// Voxels of one image.
    pub fn voxels(&self) -> usize {
        self.listed.unwrap_or_else(|| self.dims.iter().product())
    }

    /// Images of one frame: one with coil maps, else one a coil.
    pub(crate) fn images(&self) -> usize {
        if self.coil_maps {
            1
        } else {
            self.coils
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        check_dims(&self.dims)?;
        if [self.samples, self.coils, self.frames, self.listed.unwrap_or(1)].contains(&0) {
            bail!(
                InvalidSize,
                "an image of {:?} voxels, {} samples, {} coils and {} frames: all must be at least 1",
                self.dims,
                self.samples,
                self.coils,
                self.frames
            );
        }
        checked_product(&[self.voxels(), self.coils, self.frames], "the images")?;
        checked_product(&[self.samples, self.coils, self.frames], "the k-space data").map(|_| ())
    }
}
