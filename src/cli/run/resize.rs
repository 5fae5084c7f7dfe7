//! The matrix of finished images, from the scan's header or from --matrix.

use crate::options::{checked_sizes, MatrixChoice};
use recon::bail;
use recon::{Complex, Real, Result};
use recon_files::Scan;

/// The resizing of images from the encoded matrix to the requested matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MatrixResize {
    resize: recon::Resize,
    /// Field of view of the requested matrix in mm; 0 if unknown.
    pub fov_mm: [f32; 3],
}

impl MatrixResize {
    /// Returns the resizing to the sizes of --matrix, or else to the reconstructed matrix of the scan's header.
    pub fn new(scan: &Scan, matrix: Option<&MatrixChoice>) -> Result<MatrixResize> {
        let encoded = &scan.encoded_matrix[..scan.ndim];
        let reconstructed = &scan.recon_matrix[..scan.ndim];
        let encoded_fov = &scan.encoded_fov_mm.map(f64::from)[..scan.ndim];
        let requested = match matrix {
            Some(MatrixChoice::Encoded) => {
                let resize = recon::Resize::new(encoded, encoded_fov, encoded, encoded_fov)?;
                return Ok(MatrixResize { resize, fov_mm: scan.encoded_fov_mm });
            }
            None => reconstructed.to_vec(),
            Some(MatrixChoice::Sizes(sizes)) => {
                let requested = checked_sizes(sizes)?;
                if scan.ndim == 2 && requested[2] != 1 {
                    bail!(InvalidSize, "--matrix: {sizes:?} has three sizes, but the scan is 2D: give two");
                }
                if scan.ndim == 3 && sizes.len() == 2 {
                    bail!(InvalidSize, "--matrix: {sizes:?} has two sizes, but the scan is 3D: give three");
                }
                requested[..scan.ndim].to_vec()
            }
        };
        let recon_fov = &scan.recon_fov_mm.map(f64::from)[..scan.ndim];
        let has_fov = |axis: usize| encoded_fov[axis] > 0.0 && recon_fov[axis] > 0.0;
        // Without fields of view the voxels of both matrices are assumed to have the same size.
        let extent = |mm: &[f64], sizes: &[usize]| -> Vec<f64> {
            (0..scan.ndim).map(|axis| if has_fov(axis) { mm[axis] } else { sizes[axis] as f64 }).collect()
        };
        let (from, to) = (extent(encoded_fov, encoded), extent(recon_fov, reconstructed));
        let resize = recon::Resize::new(encoded, &from, &requested, &to).map_err(|e| {
            e.within(
                "from the encoded to the reconstructed matrix (correct the header, or keep the encoded matrix by \
                 --matrix encoded)",
            )
        })?;
        for axis in (0..scan.ndim).filter(|_| matrix.is_none()) {
            let name = ["x", "y", "z"][axis];
            if encoded_fov[axis] > 0.0 && recon_fov[axis] > 1.01 * encoded_fov[axis] {
                log::warn!(
                    "the reconstructed field of view along {name}, {} mm, is larger than the encoded one, {} mm: zeros \
                     surround the image; if the header is wrong, use --matrix encoded",
                    recon_fov[axis],
                    encoded_fov[axis]
                );
            }
            if 2.0 * resize.scaled()[axis] <= encoded[axis] as f64 {
                log::warn!(
                    "the reconstructed voxels are {:.3} times as long along {name} as the encoded ones: details are \
                     averaged; if the header is wrong, use --matrix encoded",
                    encoded[axis] as f64 / resize.scaled()[axis]
                );
            }
        }
        Ok(MatrixResize { resize, fov_mm: scan.recon_fov_mm })
    }

    /// Returns the encoded matrix.
    pub fn encoded(&self) -> [usize; 3] {
        self.resize.from()
    }

    /// Returns the matrix of the finished image.
    pub fn requested(&self) -> [usize; 3] {
        self.resize.to()
    }

    /// Returns whether the voxels of both matrices have the same size, to half a voxel over the field of view. This is
    /// accurate enough for a smooth map.
    pub fn keeps_voxels(&self) -> bool {
        let rounded = self.resize.scaled().map(|n| n.round() as usize);
        rounded == self.resize.from()
    }

    /// Resizes an image from the encoded to the requested matrix.
    pub fn apply<T: Real>(&self, image: Vec<Complex<T>>) -> Result<Vec<Complex<T>>> {
        if self.resize.is_nothing() {
            return Ok(image);
        }
        let mut out = zeros(self.requested().iter().product())?;
        self.resize.apply(&image, &mut out)?;
        Ok(out)
    }

    /// Resizes an image from the requested to the encoded matrix.
    pub fn undo<T: Real>(&self, image: Vec<Complex<T>>) -> Result<Vec<Complex<T>>> {
        if self.resize.is_nothing() {
            return Ok(image);
        }
        let mut out = zeros(self.encoded().iter().product())?;
        self.resize.undo(&image, &mut out)?;
        Ok(out)
    }
}

/// Returns `count` zeros, or an error that contains the number of bytes that they need.
pub fn zeros<T: Real>(count: usize) -> Result<Vec<Complex<T>>> {
    recon::error::try_vec(count, Complex::default(), "images")
}

/// Returns a remedy if the sizes found are the expected ones in a different order, else an empty text.
pub fn order_hint(found: [usize; 3], expected: [usize; 3]) -> &'static str {
    let sorted = |mut sizes: [usize; 3]| {
        sizes.sort_unstable();
        sizes
    };
    match found != expected && sorted(found) == sorted(expected) {
        true => ": its axes are in another order; x comes first (in a NumPy array, last)",
        false => "",
    }
}
