//! The last steps of an image: resizing and combination of coils.

use crate::options::Combination;
use crate::run::precision::to_single;
use crate::run::resize::{zeros, MatrixResize};
use recon::{combine, Complex, Real, Result};
use recon_files::{Image, Scan};

/// Brings images of a scan, [encoded matrix, images], to the requested matrix, then combines them.
pub fn finish<T: Real>(
    scan: &Scan,
    resize: &MatrixResize,
    combination: Combination,
    images: Vec<Complex<T>>,
) -> Result<Image> {
    let voxels: usize = resize.encoded().iter().product();
    let count = images.len() / voxels;
    let mut resized = match count {
        1 => resize.apply(images)?,
        _ => {
            let mut resized = Vec::new();
            for image in images.chunks_exact(voxels) {
                resized.extend(resize.apply(image.to_vec())?);
            }
            resized
        }
    };
    let matrix = resize.requested();
    if let Some(method) = combination.method().filter(|_| count > 1) {
        let mut combined = zeros(matrix.iter().product())?;
        combine(&resized, &matrix[..scan.ndim], count, method, &mut combined)?;
        resized = combined;
    }
    let mut image = Image::of_scan(scan, matrix, combination.channels(count), to_single(&resized))?;
    image.fov_mm = resize.fov_mm;
    Ok(image)
}
