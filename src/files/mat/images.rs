//! Images in `.mat` files.

use super::read::{read_mat, MatArray};
use super::write::{write_mat, MatValues, MatVariable};
use crate::image::{Image, Placement, ScanIndex};
use crate::nifti::AffineTransform;
use crate::stacks::{divide_into_stacks, ImageGeometry};
use num_complex::Complex;
use recon::atomic_file::AtomicFiles;
use recon::error::{bail, Result};
use std::path::Path;

/// The variable of the voxels.
const IMAGE: &str = "image";
/// The variable of the voxel sizes.
const VOXEL_SIZE: &str = "voxel_size";
/// The variable of the positions.
const AFFINE: &str = "affine";

/// A counter of an image: its variable, and the field of the index.
type Counter = (&'static str, fn(&mut ScanIndex) -> &mut u16);

const COUNTERS: [Counter; 6] = [
    ("encoding", |index| &mut index.encoding),
    ("slice", |index| &mut index.slice),
    ("repetition", |index| &mut index.repetition),
    ("contrast", |index| &mut index.contrast),
    ("phase", |index| &mut index.phase),
    ("set", |index| &mut index.set),
];

/// Writes images of one size to `files` as these variables:
///
/// - `image`: the voxels, [nx, ny, nz, channels, images], complex unless all imaginary parts are 0; class single;
/// - `voxel_size`: mm along x, y and z, [3, images]; NaN if unknown;
/// - `affine`: the map from voxel indices (i, j, k, 1) to mm in the patient, [4, 4, images]. Indices begin at 0. As in
///   NIfTI files, x is to the right, y to the front and z to the head. NaN if unknown;
/// - `encoding`, `slice`, `repetition`, `contrast`, `phase`, `set`: the counters of ISMRMRD, [1, images].
///
/// # Errors
/// - `InvalidArgument`: there are no images. `InvalidSize`, `SizeMismatch`: images are not well formed, or differ in
///   size.
/// - `Unsupported`: the voxels need 2 GiB or more.
/// - `IO`: the file cannot be written.
pub fn write_images(files: &mut AtomicFiles, path: &Path, images: &[Image]) -> Result<()> {
    let variables = image_variables(images).map_err(|e| e.within(path.display()))?;
    write_mat(files, path, &variables)
}

fn image_variables(images: &[Image]) -> Result<Vec<MatVariable<'_>>> {
    let Some(first) = images.first() else {
        bail!(InvalidArgument, "no image was given: give one or more");
    };
    let (mut sizes, mut affines) = (Vec::new(), Vec::new());
    for image in images {
        image.check()?;
        if (image.dims, image.channels) != (first.dims, first.channels) {
            bail!(SizeMismatch, "images of {:?} and of {:?} voxels: write a .h5 file", first.dims, image.dims);
        }
        sizes.extend(voxel_size(image).unwrap_or([f64::NAN; 3]));
        affines.extend(affine(image)?.unwrap_or([f64::NAN; 16]));
    }
    let [nx, ny, nz] = first.dims;
    let count = images.len();
    let double = |name, dims, values| MatVariable { name, dims, values: MatValues::Double(values) };
    let voxels = images.iter().map(|image| &image.data[..]).collect();
    let mut variables = vec![
        MatVariable { name: IMAGE, dims: vec![nx, ny, nz, first.channels, count], values: MatValues::Single(voxels) },
        double(VOXEL_SIZE, vec![3, count], sizes),
        double(AFFINE, vec![4, 4, count], affines),
    ];
    variables.extend(COUNTERS.map(|(name, field)| {
        let number = |image: &Image| f64::from(*field(&mut image.index.clone()));
        double(name, vec![1, count], images.iter().map(number).collect())
    }));
    Ok(variables)
}

fn voxel_size(image: &Image) -> Option<[f64; 3]> {
    let geometry = ImageGeometry::new(image);
    geometry.is_fov_known().then(|| [0, 1, 2].map(|axis| geometry.voxel_mm(axis)))
}

/// Returns the affine transform of an image, [row, column], rows fastest; `None` if it is unknown.
fn affine(image: &Image) -> Result<Option<[f64; 16]>> {
    let stacks = divide_into_stacks(&[ImageGeometry::new(image)])?;
    let Some(stack) = stacks.first().filter(|stack| stack.is_placed && stack.has_voxel_size) else { return Ok(None) };
    let mut transform = [0.0; 16];
    for (column, [x, y, z]) in stack.columns.iter().chain([&stack.origin]).enumerate() {
        transform[4 * column..][..3].copy_from_slice(&[-x, -y, *z]);
    }
    transform[15] = 1.0;
    Ok(Some(transform))
}

/// Reads the images of a `.mat` file: the variable `image`, or the only array of numbers. Dimensions after [x, y, z]
/// become channels. In a file of [`write_images`], each entry of the fifth dimension is an image with its voxel size,
/// position and counters.
///
/// # Errors
/// - Returns the errors of [`read_mat`].
/// - `InvalidArgument`: the file has several arrays, and no `image`.
/// - `BadFile`: it does not have an array of numbers.
pub fn read_images(path: &Path) -> Result<Vec<Image>> {
    let variables = read_mat(path)?;
    images(variables).map_err(|e| e.within(path.display()))
}

fn images(mut variables: Vec<MatArray>) -> Result<Vec<Image>> {
    let (dims, data) = take_voxels(&mut variables)?;
    let size = |i: usize| dims.get(i).copied().unwrap_or(1);
    let (matrix, channels) = ([size(0), size(1), size(2)], size(3));
    let count: usize = dims.iter().skip(4).product();
    let numbers = |name: &str, expected: usize| -> Option<Vec<f32>> {
        let values = variables.iter().find(|v| v.name == name)?.data.as_ref().ok()?;
        (values.len() == expected).then(|| values.iter().map(|z| z.re).collect())
    };
    let counters: Option<Vec<Vec<f32>>> = COUNTERS.iter().map(|(name, _)| numbers(name, count)).collect();
    let Some(counters) = counters else {
        if variables.iter().any(|v| v.name == AFFINE || v.name == VOXEL_SIZE) {
            log::warn!(
                "the variables {VOXEL_SIZE}, {AFFINE} and the counters are not used: they do not belong to the {count} \
                 images of the file"
            );
        }
        return Ok(vec![Image::new(matrix, dims.iter().skip(3).product(), data)?]);
    };
    let (sizes, affines) = (numbers(VOXEL_SIZE, 3 * count), numbers(AFFINE, 16 * count));
    let voxels = data.len() / count;
    let mut images = Vec::with_capacity(count);
    for (number, voxels) in data.chunks_exact(voxels).enumerate() {
        let mut image = Image::new(matrix, channels, voxels.to_vec())?;
        if let Some(sizes) = &sizes {
            let mm = |axis: usize| Some(sizes[3 * number + axis]).filter(|mm| mm.is_finite()).unwrap_or(0.0);
            image.fov_mm = std::array::from_fn(|axis| mm(axis) * matrix[axis] as f32);
        }
        if let Some(affines) = &affines {
            image.placement = placement(&affines[16 * number..][..16], matrix);
        }
        for ((_, field), values) in COUNTERS.iter().zip(&counters) {
            // The cast saturates; counters are 0 to 65535.
            *field(&mut image.index) = values[number] as u16;
        }
        images.push(image);
    }
    Ok(images)
}

/// Returns the placement of an affine transform; unknown if its directions are not perpendicular.
fn placement(affine: &[f32], matrix: [usize; 3]) -> Placement {
    let column = |c: usize| std::array::from_fn(|row| f64::from(affine[4 * c + row]));
    let transform = AffineTransform { columns: [column(0), column(1), column(2)], origin: column(3) };
    Some(transform.placement(matrix)).filter(Placement::is_known).unwrap_or_default()
}

/// Removes the voxels from the variables.
fn take_voxels(variables: &mut Vec<MatArray>) -> Result<(Vec<usize>, Vec<Complex<f32>>)> {
    let is_array = |v: &MatArray| v.data.as_ref().is_ok_and(|data| !data.is_empty());
    let found: Vec<usize> = (0..variables.len()).filter(|&i| is_array(&variables[i])).collect();
    let named = found.iter().copied().find(|&i| variables[i].name == IMAGE);
    let list = || {
        let name = |v: &MatArray| match v.data {
            Ok(_) => format!("{} {:?}", v.name, v.dims),
            Err(kind) => format!("{} ({kind})", v.name),
        };
        variables.iter().map(name).collect::<Vec<_>>().join(", ")
    };
    let chosen = match (named, &found[..]) {
        (Some(i), _) | (None, &[i]) => i,
        (None, []) => bail!(BadFile, "the file has no array of numbers, only: {}", list()),
        _ => bail!(
            InvalidArgument,
            "the file has several arrays: {}: name one of them {IMAGE}, or save it alone",
            list()
        ),
    };
    let MatArray { dims, data, .. } = variables.swap_remove(chosen);
    match data {
        Ok(data) => Ok((dims, data)),
        Err(kind) => bail!(BadFile, "the variable {IMAGE} is a {kind}, and an array of numbers is expected"),
    }
}
