//! Readers and writers of files: ISMRMRD, `.cfl` of BART, NIfTI, PNG, `.npy` of NumPy.
//!
//! Arrays are laid out as everywhere in this crate: x fastest, k-space `[samples, coils]`, coordinates in cycles per
//! voxel in [-0.5, 0.5). Writers write to [`AtomicFiles`], so that an error, a panic or a killed process never leaves
//! part of a file under its name.

mod bytes;
pub mod cfl;
mod image;
pub mod ismrmrd;
pub mod nifti;
pub mod npy;
pub mod png;

pub use cfl::{kspace_from_bart, read_cfl, trajectory_from_bart, write_cfl};
pub use image::{Image, Placement, ScanIndex};
pub use ismrmrd::{write_dataset, Dataset, Noise, Scan};
pub use npy::read_npy;
pub use png::{write_png, PngOptions};

use num_complex::Complex;
use recon::atomic_file::AtomicFiles;
use recon::error::{bail, Result};
use recon::results::check_results;
use std::path::Path;

/// The kinds of files, by their endings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Hdf5,
    Cfl,
    Nifti { gzip: bool },
    Png,
    Npy,
}

impl Format {
    fn of(path: &Path, known: &[Format]) -> Result<Format> {
        let name = path.file_name().map(|n| n.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
        let endings = [
            (".h5", Format::Hdf5),
            (".mrd", Format::Hdf5),
            (".cfl", Format::Cfl),
            (".hdr", Format::Cfl),
            (".nii", Format::Nifti { gzip: false }),
            (".nii.gz", Format::Nifti { gzip: true }),
            (".png", Format::Png),
            (".npy", Format::Npy),
        ];
        let known: Vec<_> = endings.into_iter().filter(|(_, format)| known.contains(format)).collect();
        match known.iter().find(|(ending, _)| name.ends_with(ending)) {
            Some(&(_, format)) => Ok(format),
            None => {
                let list: Vec<_> = known.iter().map(|(ending, _)| *ending).collect();
                bail!(
                    InvalidArgument,
                    "{}: the ending of the name says the format, and must be one of {}",
                    path.display(),
                    list.join(", ")
                );
            }
        }
    }
}

const NIFTI: [Format; 2] = [Format::Nifti { gzip: false }, Format::Nifti { gzip: true }];

/// Checks that [`write_images`] knows the ending of `path`, before an image is computed for it.
///
/// # Errors
/// `InvalidArgument`, with the endings that are known.
pub fn check_image_path(path: impl AsRef<Path>) -> Result<()> {
    Format::of(path.as_ref(), &[Format::Hdf5, Format::Cfl, NIFTI[0], NIFTI[1], Format::Png]).map(drop)
}

/// Writes images among `files`, in the format of the ending of `path`:
///
/// - `.h5`, `.mrd`: ISMRMRD images ([`ismrmrd::write_images`]); complex, with placement and index;
/// - `.cfl`, `.hdr`: the two files of BART, complex, `[x, y, z, channels]`, several images along BART's dimension 10;
/// - `.nii`, `.nii.gz`: NIfTI-1, magnitude ([`nifti::write_nifti`]), channels and images along the fourth dimension;
/// - `.png`: magnitude ([`write_png`] with its defaults), upright, the images side by side.
///
/// # Errors
/// `InvalidArgument` for another ending and for no images, `SizeMismatch` when images that share a file other than
/// ISMRMRD differ in size, `NotFinite` for a voxel that is not finite, `IO` when the file cannot be written.
pub fn write_images(files: &mut AtomicFiles, path: &Path, images: &[Image]) -> Result<()> {
    let format = Format::of(path, &[Format::Hdf5, Format::Cfl, NIFTI[0], NIFTI[1], Format::Png])?;
    let Some(first) = images.first() else {
        bail!(InvalidArgument, "{}: there is no image to write", path.display());
    };
    let same = |i: &Image| i.dims == first.dims && i.channels == first.channels;
    if let Some(other) = images.iter().find(|i| format != Format::Hdf5 && !same(i)) {
        let (a, b, c, d) = (first.dims, first.channels, other.dims, other.channels);
        bail!(
            SizeMismatch,
            "{}: images of {a:?} voxels in {b} channels and of {c:?} in {d} cannot share this file: write a .h5 file, \
             or one file an image",
            path.display()
        );
    }
    for image in images {
        // In single precision, in which a result in double precision may overflow.
        check_results("voxel of the image", &image.data).map_err(|e| e.within(path.display()))?;
    }
    match format {
        Format::Hdf5 => ismrmrd::write_images(files, path, images),
        Format::Nifti { .. } => nifti::write_nifti(files, path, images),
        Format::Png => write_png(files, path, images, &PngOptions::default()),
        _ => {
            let [x, y, z] = first.dims;
            let mut dims = vec![x, y, z, first.channels];
            match images {
                [one] => {
                    one.check().map_err(|e| e.within(path.display()))?;
                    write_cfl(files, path, &dims, &one.data)
                }
                _ => {
                    dims.extend([1, 1, 1, 1, 1, 1, images.len()]);
                    let all: Vec<_> = images.iter().flat_map(|i| i.data.iter().copied()).collect();
                    write_cfl(files, path, &dims, &all)
                }
            }
        }
    }
}

/// Reads the images of a file: ISMRMRD images of all series (`.h5`, `.mrd`), BART (`.cfl`), NIfTI-1 (`.nii`, `.nii.gz`)
/// or NumPy (`.npy`, the fastest dimension first; rounded to single precision). All dimensions after `[x, y, z]` become
/// channels.
///
/// # Errors
/// `InvalidArgument` for another ending, `IO` and `BadFile` when the file cannot be read or is not of its format.
pub fn read_images(path: impl AsRef<Path>) -> Result<Vec<Image>> {
    let path = path.as_ref();
    let (dims, data) = match Format::of(path, &[Format::Hdf5, Format::Cfl, NIFTI[0], NIFTI[1], Format::Npy])? {
        Format::Hdf5 => return ismrmrd::read_images(path, None),
        Format::Nifti { .. } => return Ok(vec![nifti::read_nifti(path)?]),
        Format::Npy => {
            let npy = read_npy(path)?;
            (npy.dims, npy.data.iter().map(|z| Complex::new(z.re as f32, z.im as f32)).collect())
        }
        _ => {
            let cfl = read_cfl(path)?;
            (cfl.dims, cfl.data)
        }
    };
    let size = |i: usize| dims.get(i).copied().unwrap_or(1);
    let channels = dims.iter().skip(3).product();
    let image = Image::new([size(0), size(1), size(2)], channels, data).map_err(|e| e.within(path.display()))?;
    Ok(vec![image])
}

/// The image of a file that holds only one.
///
/// # Errors
/// `InvalidArgument` when the file holds several images.
pub fn the_only_image(path: &Path, mut images: Vec<Image>) -> Result<Image> {
    match (images.len(), images.pop()) {
        (1, Some(image)) => Ok(image),
        (n, _) => bail!(InvalidArgument, "{}: holds {n} images where one is wanted", path.display()),
    }
}

#[cfg(test)]
pub(crate) mod tests;
