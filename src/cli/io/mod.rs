//! Readers and writers of files: ISMRMRD, `.cfl` of BART, NIfTI, PNG, `.npy` of NumPy.
//!
//! Arrays are laid out as everywhere in this crate: x fastest, k-space `[samples, coils]`, coordinates in cycles per
//! voxel in [-0.5, 0.5). Writers write to [`AtomicFiles`], so that an error, a panic or a killed process never leaves
//! part of a file under its name.

pub mod cfl;
pub mod ismrmrd;
pub mod nifti;
pub mod npy;
pub mod png;

pub use cfl::{kspace_from_bart, read_cfl, trajectory_from_bart, write_cfl};
pub use ismrmrd::{write_dataset, Dataset, Scan, ScanIndex};
pub use npy::read_npy;
pub use png::{write_png, PngOptions};

use num_complex::Complex;
use recon::atomic_file::AtomicFiles;
use recon::error::{bail, checked_product, Error, ErrorKind, Result};
use recon::geometry::in_range;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

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

    fn check(&self) -> Result<()> {
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
/// ISMRMRD differ in size, `IO` when the file cannot be written.
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

/// The coordinate in [-0.5, 0.5) of the same point of k-space, if there is one up to rounding: 0.5 is the same as -0.5
/// for voxels at integer positions.
fn wrap_coordinate(k: f32) -> Option<f32> {
    match k {
        k if (-0.5..0.5).contains(&k) => Some(k),
        k if in_range(k as f64) => Some(-0.5),
        _ => None,
    }
}

/// The bytes of a file, at most `limit` of them; more are an error.
fn read_up_to(path: &Path, limit: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match File::open(path).and_then(|f| f.take((limit as u64).saturating_add(1)).read_to_end(&mut bytes)) {
        Ok(n) if n > limit => bail!(BadFile, "the file is longer than {limit} bytes"),
        Ok(_) => Ok(bytes),
        Err(e) => Err(Error::new(ErrorKind::IO, e.to_string())),
    }
}

/// Numbers in a file of known byte order.
struct Bytes<'a> {
    big: bool,
    bytes: &'a [u8],
}

macro_rules! number {
    ($name:ident, $t:ty) => {
        fn $name(&self, at: usize) -> $t {
            let mut b = [0; std::mem::size_of::<$t>()];
            b.copy_from_slice(&self.bytes[at..at + std::mem::size_of::<$t>()]);
            if self.big {
                <$t>::from_be_bytes(b)
            } else {
                <$t>::from_le_bytes(b)
            }
        }
    };
}

impl Bytes<'_> {
    number!(i8, i8);
    number!(u8, u8);
    number!(i16, i16);
    number!(u16, u16);
    number!(i32, i32);
    number!(u32, u32);
    number!(i64, i64);
    number!(u64, u64);
    number!(f32, f32);
    number!(f64, f64);
}

/// Writes numbers in little-endian order, a block at a time.
fn write_blocks<T>(out: &mut impl Write, data: &[T], each: impl Fn(&T, &mut Vec<u8>)) -> std::io::Result<()> {
    let mut block = Vec::with_capacity(1 << 16);
    for part in data.chunks(1 << 13) {
        block.clear();
        for value in part {
            each(value, &mut block);
        }
        out.write_all(&block)?;
    }
    Ok(())
}

fn write_complex(out: &mut impl Write, data: &[Complex<f32>]) -> std::io::Result<()> {
    write_blocks(out, data, |z, block| {
        block.extend(z.re.to_le_bytes());
        block.extend(z.im.to_le_bytes());
    })
}

#[cfg(test)]
pub(crate) mod tests;
