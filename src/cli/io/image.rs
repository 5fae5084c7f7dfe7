//! An image of a file: voxels, where they lie in the patient, and the place in a measurement.

use num_complex::Complex;
use recon::error::{bail, checked_product, Result};

/// The position of an image in the patient and the time of its acquisition, as in ISMRMRD. All zero when not known.
///
/// Directions and positions are in the patient's coordinates (x to the left, y to the back, z to the head; LPS), in
/// millimetres. `position` is the position of the voxel with index floor(n/2) on every axis, the origin of this
/// library's images.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Placement {
    /// The centre of the image, in mm.
    pub position: [f32; 3],
    /// The direction of rising x index, a unit vector.
    pub read_dir: [f32; 3],
    /// The direction of rising y index, a unit vector.
    pub phase_dir: [f32; 3],
    /// The direction of rising z index, a unit vector.
    pub slice_dir: [f32; 3],
    /// The position of the patient's table, in mm.
    pub table_position: [f32; 3],
    /// The identity of the measurement.
    pub measurement_uid: u32,
    /// The clock at the first acquisition, in the scanner's units.
    pub acquisition_time_stamp: u32,
    /// The clocks of the physiological signals at the first acquisition, in the scanner's units.
    pub physiology_time_stamp: [u32; 3],
}

impl Placement {
    /// Whether the three directions are known: finite, of unit length and perpendicular, to 1 %.
    pub fn is_known(&self) -> bool {
        let d = [self.read_dir, self.phase_dir, self.slice_dir];
        let dot = |a: [f32; 3], b: [f32; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        self.position.iter().all(|p| p.is_finite())
            && (0..3).all(|i| (0..=i).all(|j| (dot(d[i], d[j]) - if i == j { 1.0 } else { 0.0 }).abs() < 0.01))
    }

    /// The directions of rising x, y and z; where they are not known, to the left, to the front and to the head, as for
    /// the Shepp-Logan phantom. Pictures and NIfTI files both use this.
    pub fn directions(&self) -> [[f32; 3]; 3] {
        match self.is_known() {
            true => [self.read_dir, self.phase_dir, self.slice_dir],
            false => [[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]],
        }
    }
}

/// An image, or one image a channel on the same grid.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    /// The voxels along x, y and z; z is 1 for a 2D image.
    pub dims: [usize; 3],
    /// The number of images on this grid: coils or frames.
    pub channels: usize,
    /// `[x, y, z, channels]`, x fastest.
    pub data: Vec<Complex<f32>>,
    /// The field of view along x, y and z in mm: the voxel size times `dims`. Zero when not known.
    pub fov_mm: [f32; 3],
    /// The position of the image.
    pub placement: Placement,
    /// The place of the image in a measurement.
    pub index: ScanIndex,
}

impl Image {
    /// An image of unknown size and placement.
    ///
    /// # Errors
    /// `InvalidSize` when a size is zero, `SizeMismatch` when the length of `data` is not the product of the sizes.
    pub fn new(dims: [usize; 3], channels: usize, data: Vec<Complex<f32>>) -> Result<Image> {
        let (placement, index) = Default::default();
        let image = Image { dims, channels, data, fov_mm: [0.0; 3], placement, index };
        image.check()?;
        Ok(image)
    }

    /// The voxels of one channel, `[x, y, z]`.
    pub fn channel(&self, channel: usize) -> &[Complex<f32>] {
        let voxels = self.dims.iter().product();
        &self.data[channel * voxels..][..voxels]
    }

    /// The size of a voxel in mm along x, y and z; 1 where the field of view is not known.
    pub fn voxel_mm(&self) -> [f32; 3] {
        std::array::from_fn(|i| {
            let size = self.fov_mm[i] / self.dims[i] as f32;
            if size.is_finite() && size > 0.0 {
                size
            } else {
                1.0
            }
        })
    }

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

/// The place of an image in a measurement: the counters of ISMRMRD, ordered as they are listed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ScanIndex {
    /// The encoding in the header.
    pub encoding: u16,
    /// The slice, or slab.
    pub slice: u16,
    /// The repetition, or time frame.
    pub repetition: u16,
    /// The contrast, or echo.
    pub contrast: u16,
    /// The phase of the heart or of breathing.
    pub phase: u16,
    /// The set, for example a flow encoding.
    pub set: u16,
    /// The first average; all averages are in the same [`Scan`].
    pub average: u16,
}
