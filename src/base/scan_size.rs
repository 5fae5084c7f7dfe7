//! The sizes of a scan, from which memory is estimated before a plan exists.

use super::error::{bail, checked_product, Result};
use super::geometry::{check_dims, Geometry, VoxelBasis};
use super::off_resonance::OffResonanceRange;
use super::real::Real;
use super::workers::Workers;

/// The sizes of a scan.
#[derive(Debug, Clone, PartialEq)]
pub struct ScanSize {
    /// Image size, [nx, ny] or [nx, ny, nz].
    pub dims: Vec<usize>,
    /// Samples of one coil and frame.
    pub samples: usize,
    /// Width of the central region of k-space used for coil maps, see [`crate::Plan::coil_maps`]; 0 for the default.
    pub calibration: usize,
    /// Maximum number of samples in that region; `samples` if unknown.
    pub central_samples: usize,
    /// Whether a coordinate is 0.5, or beyond it by rounding, so that the plan creates corrected copies; true if
    /// unknown.
    pub edge: bool,
    /// Receive coils.
    pub coils: usize,
    /// Frames measured on this trajectory.
    pub frames: usize,
    /// Whether there are coil maps. With maps, coils are combined into one image.
    pub coil_maps: bool,
    /// Whether there are density weights.
    pub weights: bool,
    /// Number of voxels in a list that replaces the grid of `dims`; `None` for the grid.
    pub listed: Option<usize>,
    /// The shape of a voxel.
    pub basis: VoxelBasis,
    /// Ranges of off-resonance, decay and sample times; `None` without a field map or decay map.
    pub band: Option<OffResonanceRange>,
}

impl ScanSize {
    /// Creates the sizes of a scan with one coil, one frame, no weights and point voxels.
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

    /// Returns the sizes of a geometry's arrays and the ranges of off-resonance. No other values are read.
    pub(crate) fn with_band<T: Real>(workers: &dyn Workers, geometry: &Geometry<'_, T>) -> Result<Self> {
        geometry.check_off_resonance(geometry.voxel_count(), geometry.samples())?;
        let band = geometry.off_resonance().map(|maps| maps.band(workers, geometry.coil_maps)).transpose()?;
        Ok(ScanSize { band, ..Self::lengths(geometry) })
    }

    /// Returns the sizes of a geometry's arrays.
    pub(crate) fn lengths<T: Real>(geometry: &Geometry<'_, T>) -> Self {
        ScanSize {
            coils: geometry.coils,
            frames: geometry.frames,
            coil_maps: geometry.has_coil_maps(),
            weights: geometry.has_weights(),
            listed: geometry.voxels.as_ref().map(|_| geometry.voxel_count()),
            basis: geometry.basis,
            ..Self::new(&geometry.dims, geometry.samples())
        }
    }

    /// Returns the number of voxels of one image.
    pub fn voxels(&self) -> usize {
        self.listed.unwrap_or_else(|| self.dims.iter().product())
    }

    /// Returns the number of images of one frame: one with coil maps, otherwise one per coil.
    pub(crate) fn images(&self) -> usize {
        if self.coil_maps {
            1
        } else {
            self.coils
        }
    }

    /// Checks that all sizes are positive and that the arrays fit the address space.
    pub(crate) fn check(&self) -> Result<()> {
        check_dims(&self.dims)?;
        if [self.samples, self.coils, self.frames, self.listed.unwrap_or(1)].contains(&0) {
            bail!(
                InvalidSize,
                "the sizes are {:?} voxels, {} samples, {} coils and {} frames: each must be at least 1",
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
