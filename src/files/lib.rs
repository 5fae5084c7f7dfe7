//! Readers and writers of the file formats that [`formats`] lists.
//!
//! Arrays have the layout of the library: x fastest, k-space `[samples, coils]`, coordinates in cycles per voxel in
//! [-0.5, 0.5). Writers write to [`AtomicFiles`]: an error, a panic or a killed process never leaves part of a file
//! under its name.

pub mod arrangement;
pub mod bart;
mod bytes;
#[doc(hidden)]
pub mod c_api;
pub mod cfl;
pub mod dicom;
pub mod formats;
mod hdf5;
mod image;
pub mod ismrmrd;
pub mod mat;
pub mod nifti;
pub mod npy;
pub mod orientation;
pub mod png;
pub mod stacks;
pub mod view_data;

pub use bart::{read_bart, TrajectoryFile};
pub use cfl::{read_cfl, write_cfl};
pub use dicom::DicomFields;
pub use formats::{FileUse, Format};
pub use image::{Image, Placement, ScanIndex};
pub use ismrmrd::{write_dataset, TrajectoryStorage};
pub use npy::{read_npy, write_npy};
pub use png::{write_png, PngOptions};
pub use recon::scan::{Dataset, Noise, Scan};

use num_complex::Complex;
use recon::atomic_file::AtomicFiles;
use recon::error::{bail, Result};
use recon::results::check_results;
use std::path::Path;

/// Writes images among `files`, in the format that the extension of `path` selects:
///
/// - ISMRMRD: complex images with placement and index ([`ismrmrd::write_images`]);
/// - BART: complex, `[x, y, z, channels]`, contrasts, repetitions, phases, slices and sets along dimensions 5, 10, 11,
///   13 and 15 ([`bart::write_bart_images`]);
/// - NIfTI: volumes of slices, repetitions along dimension 4, channels along dimension 5, and one file for each
///   contrast, phase and set ([`nifti::write_nifti`]);
/// - DICOM: one file for each slice and repetition, without the facts that are not in images
///   ([`dicom::write_dicom`]);
/// - NumPy: complex, shape `(images, channels, z, y, x)` without leading ones, at least `(y, x)` ([`write_npy`]);
/// - MATLAB: complex, `[x, y, z, channels, images]`, with positions and counters ([`mat::write_images`]);
/// - PNG: magnitudes, upright, a mosaic of slices, channels and frames ([`write_png`] with its defaults).
///
/// # Errors
/// - `InvalidArgument` for a different extension or no images.
/// - `SizeMismatch` if images of different sizes share a file other than ISMRMRD.
/// - `NotFinite` if a voxel is not finite.
/// - `Unsupported` if the format cannot contain such images.
/// - `IO` if the file cannot be written.
pub fn write_images(files: &mut AtomicFiles, path: &Path, images: &[Image]) -> Result<()> {
    write_images_with_fields(files, path, images, &DicomFields::default())
}

/// Writes images as [`write_images`] does. DICOM files also have the facts in `fields`.
///
/// # Errors
/// Returns the errors of [`write_images`], and those of [`DicomFields::check`].
pub fn write_images_with_fields(
    files: &mut AtomicFiles,
    path: &Path,
    images: &[Image],
    fields: &DicomFields,
) -> Result<()> {
    let format = FileUse::WriteImages.format(path)?;
    let Some(first) = images.first() else {
        bail!(InvalidArgument, "{}: no image was given: give one or more", path.display());
    };
    let is_same_size = |i: &Image| i.dims == first.dims && i.channels == first.channels;
    let allows_all = FileUse::WriteMixedSizes.allows(path);
    if let Some(other) = images.iter().find(|i| !allows_all && !is_same_size(i)) {
        let (a, b, c, d) = (first.dims, first.channels, other.dims, other.channels);
        bail!(
            SizeMismatch,
            "{}: images of {a:?} voxels in {b} channels and of {c:?} in {d} cannot share this file: write a .h5 file, \
             or one file per image",
            path.display()
        );
    }
    for image in images {
        // A result in double precision may overflow in the single precision of the file.
        check_results("voxel of the image", &image.data).map_err(|e| e.within(path.display()))?;
    }
    match format {
        Format::Ismrmrd => ismrmrd::write_images(files, path, images),
        Format::Nifti => nifti::write_nifti(files, path, images),
        Format::Dicom => dicom::write_dicom(files, path, images, fields),
        Format::Matlab => mat::write_images(files, path, images),
        Format::Numpy => {
            let [x, y, z] = first.dims;
            let mut dims = vec![x, y, z, first.channels, images.len()];
            while dims.len() > 2 && dims.last() == Some(&1) {
                dims.pop();
            }
            let parts: Vec<_> = images.iter().map(|image| &image.data[..]).collect();
            write_npy(files, path, &dims, &parts)
        }
        Format::Png => write_png(files, path, images, &PngOptions::default()),
        _ => bart::write_bart_images(files, path, images),
    }
}

/// Reads the images of a file in any format that [`FileUse::ReadImages`] lists. All dimensions after `[x, y, z]` become
/// channels, except those of BART that are contrasts, repetitions, phases, slices and sets, and those of files of
/// MATLAB that [`mat::write_images`] wrote. Numbers of `.npy` and `.mat` files are rounded to single precision; the
/// last axis of `.npy` files is x.
///
/// # Errors
/// `InvalidArgument` for another extension; `IO` if the file cannot be read; `BadFile` if it is not of its format.
pub fn read_images(path: impl AsRef<Path>) -> Result<Vec<Image>> {
    let path = path.as_ref();
    let (dims, data) = match FileUse::ReadImages.format(path)? {
        Format::Ismrmrd => return ismrmrd::read_images(path, None),
        Format::Nifti => return Ok(vec![nifti::read_nifti(path)?]),
        Format::Dicom => return dicom::read_dicom(path),
        Format::Matlab => return mat::read_images(path),
        Format::Bart => return bart::read_bart_images(path),
        _ => {
            let npy = read_npy(path)?;
            let data: Vec<_> = npy.data.iter().map(|z| Complex::new(z.re as f32, z.im as f32)).collect();
            (npy.dims, data)
        }
    };
    let size = |i: usize| dims.get(i).copied().unwrap_or(1);
    let channels = dims.iter().skip(3).product();
    let image = Image::new([size(0), size(1), size(2)], channels, data).map_err(|e| e.within(path.display()))?;
    Ok(vec![image])
}

/// Returns the only image of a file.
///
/// # Errors
/// `InvalidArgument` if the number of images is not 1.
pub fn the_only_image(path: &Path, mut images: Vec<Image>) -> Result<Image> {
    match (images.len(), images.pop()) {
        (1, Some(image)) => Ok(image),
        (n, _) => bail!(InvalidArgument, "{}: the file holds {n} images, but exactly one is required", path.display()),
    }
}

/// Reads a file of one image.
///
/// # Errors
/// The errors of [`read_images`] and [`the_only_image`].
pub fn read_image(path: &Path) -> Result<Image> {
    the_only_image(path, read_images(path)?)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
#[path = "../../tests/common/whole_files.rs"]
mod whole_files;
