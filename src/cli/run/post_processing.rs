//! The last steps of an image: resizing and combination of coils.

use crate::io::{Image, Scan};
use crate::options::Combination;
use crate::run::precision::to_single;
use crate::run::resize::{zeros, MatrixResize};
use recon::{combine, Complex, Real, Result};

/// The last steps of the images of a scan.
pub struct PostProcessing<'a> {
    pub scan: &'a Scan,
    pub resize: MatrixResize,
    pub combination: Combination,
}

impl PostProcessing<'_> {
    /// Brings images [encoded matrix, images] to the reconstructed matrix, then combines them.
    pub fn apply<T: Real>(&self, images: Vec<Complex<T>>) -> Result<Image> {
        let voxels: usize = self.resize.encoded().iter().product();
        let count = images.len() / voxels;
        let mut resized = match count {
            1 => self.resize.apply(images)?,
            _ => {
                let mut resized = Vec::new();
                for image in images.chunks_exact(voxels) {
                    resized.extend(self.resize.apply(image.to_vec())?);
                }
                resized
            }
        };
        let matrix = self.resize.requested();
        if let Some(method) = self.combination.method().filter(|_| count > 1) {
            let mut combined = zeros(matrix.iter().product())?;
            combine(&resized, &matrix[..self.scan.ndim], count, method, &mut combined)?;
            resized = combined;
        }
        let mut image = self.scan.image(matrix, self.combination.channels(count), to_single(&resized))?;
        image.fov_mm = self.resize.fov_mm;
        Ok(image)
    }
}
