//! Images that are given along with scans, such as an initial image.

use crate::run::resize::{order_hint, MatrixResize};
use crate::run::session::Session;
use crate::run::slices::{first_of_each_slice, slices_of_scans};
use recon::bail;
use recon::{Complex, Result};
use recon_files::{read_images, Scan};
use std::path::Path;

/// Images of one file on the encoded matrices of the scans: one for all scans, or one per scan.
pub struct ScanImages {
    images: Vec<Vec<Complex<f32>>>,
}

impl ScanImages {
    /// Reads the images. Each has the number of channels that `channels` returns, on the encoded or on the
    /// reconstructed matrix.
    pub fn read(path: &Path, session: &Session, channels: impl Fn(&Scan) -> usize) -> Result<ScanImages> {
        let Session { scans, resizes, .. } = session;
        let files = read_images(path)?;
        // A volume with repetitions has as many channels as images of each slice.
        let targets = match files.first() {
            Some(image) if image.channels > 1 => first_of_each_slice(scans),
            _ => scans.iter().collect(),
        };
        let files = slices_of_scans(files, &targets).map_err(|e| e.within(path.display()))?;
        let per_scan = channels(&scans[0]);
        let dims = files[0].dims;
        let mut volumes: Vec<&[Complex<f32>]> = Vec::new();
        for image in &files {
            if image.dims != dims {
                bail!(SizeMismatch, "{}: images of {dims:?} and of {:?} voxels", path.display(), image.dims);
            }
            volumes.extend((0..image.channels).map(|c| image.channel(c)));
        }
        let count = volumes.len() / per_scan;
        if !volumes.len().is_multiple_of(per_scan) || (count != 1 && count != scans.len()) {
            bail!(
                SizeMismatch,
                "{}: the file has {} images, but {per_scan} are required for each of {} scans, or {per_scan} for all",
                path.display(),
                volumes.len(),
                scans.len()
            );
        }
        let mut images = Vec::with_capacity(count);
        for (i, parts) in volumes.chunks_exact(per_scan).enumerate() {
            let resize = common_resize(if count == 1 { resizes } else { &resizes[i..=i] }, dims)
                .map_err(|e| e.within(path.display()))?;
            let mut image = Vec::new();
            for part in parts {
                image.extend(if dims == resize.encoded() { part.to_vec() } else { resize.undo(part.to_vec())? });
            }
            images.push(image);
        }
        Ok(ScanImages { images })
    }

    /// Returns the image of scan `number`.
    pub fn image(&self, number: usize) -> &[Complex<f32>] {
        &self.images[number.min(self.images.len() - 1)]
    }
}

/// Returns the resizing of the scans that use an image of `dims` voxels.
fn common_resize(resizes: &[MatrixResize], dims: [usize; 3]) -> Result<MatrixResize> {
    for resize in resizes {
        if dims != resize.encoded() && dims != resize.requested() || resizes[0] != *resize {
            bail!(
                SizeMismatch,
                "images of {dims:?} voxels, but the encoded matrix of the scans is {:?} and the reconstructed one \
                 {:?}{}",
                resize.encoded(),
                resize.requested(),
                order_hint(dims, resize.requested())
            );
        }
    }
    Ok(resizes[0])
}
