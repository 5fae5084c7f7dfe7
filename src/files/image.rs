//! An image of a file: voxels, their position in the patient, and the index in a measurement.

use num_complex::Complex;
use recon::error::{bail, checked_product, Result};
use recon::scan::Scan;
pub use recon::scan::{Placement, ScanIndex};

/// An image, or several images (channels) on the same grid.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    /// The number of voxels along x, y and z; z is 1 for a 2D image.
    pub dims: [usize; 3],
    /// The number of images on this grid: coils or frames.
    pub channels: usize,
    /// The voxels, `[x, y, z, channels]`, x fastest.
    pub data: Vec<Complex<f32>>,
    /// The field of view along x, y and z in mm: the voxel size times `dims`; 0 if unknown.
    pub fov_mm: [f32; 3],
    /// The position in the patient.
    pub placement: Placement,
    /// The index in a measurement.
    pub index: ScanIndex,
}

impl Image {
    /// Creates an image of unknown field of view and placement.
    ///
    /// # Errors
    /// `InvalidSize` if a size is 0, `SizeMismatch` if the length of `data` is not the product of the sizes.
    pub fn new(dims: [usize; 3], channels: usize, data: Vec<Complex<f32>>) -> Result<Image> {
        let (placement, index) = Default::default();
        let image = Image { dims, channels, data, fov_mm: [0.0; 3], placement, index };
        image.check()?;
        Ok(image)
    }

    /// Creates an image of a scan, with the scan's index, placement and field of view ([`Scan::fov_mm`]).
    ///
    /// # Errors
    /// Returns the errors of [`Image::new`].
    pub fn of_scan(scan: &Scan, dims: [usize; 3], channels: usize, data: Vec<Complex<f32>>) -> Result<Image> {
        let fov_mm = scan.fov_mm(dims);
        Ok(Image { fov_mm, placement: scan.placement, index: scan.index, ..Image::new(dims, channels, data)? })
    }

    /// Returns the voxels of one channel, `[x, y, z]`.
    pub fn channel(&self, channel: usize) -> &[Complex<f32>] {
        let voxels = self.dims.iter().product();
        &self.data[channel * voxels..][..voxels]
    }

    /// Checks that the length of `data` is the product of the sizes, and that it is not 0.
    pub fn check(&self) -> Result<()> {
        let [x, y, z] = self.dims;
        let count = checked_product(&[x, y, z, self.channels], "the image")?;
        if count == 0 {
            bail!(InvalidSize, "an image of {:?} voxels in {} channels is empty", self.dims, self.channels);
        }
        if count != self.data.len() {
            let n = self.data.len();
            bail!(
                SizeMismatch,
                "an image of {:?} voxels in {} channels needs {count} numbers, not {n}",
                self.dims,
                self.channels
            );
        }
        Ok(())
    }
}
