//! Series of DICOM files: which images share a series, their order, their positions and the names of their files.

use crate::image::ScanIndex;
use crate::stacks::{
    all_or_none_placed, counter_suffixes, group_by_counters, length, minus, stack, times, ImageGeometry,
};
use recon::error::{bail, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A file: a slice of an image.
#[derive(Debug, Clone, PartialEq)]
pub struct DicomFile {
    /// The number of the image.
    pub image: usize,
    /// The index of the slice in the image; 0 for a 2D image.
    pub z: usize,
    /// The name.
    pub path: PathBuf,
    /// The vector from one voxel to the next along each axis in mm, in the patient's coordinates.
    pub columns: [[f64; 3]; 3],
    /// The position of the first voxel in mm, in the patient's coordinates.
    pub origin: [f64; 3],
}

/// Images of one contrast, phase and set: slices and repetitions.
#[derive(Debug, Clone, PartialEq)]
pub struct DicomSeries {
    /// The counters that all images share; 0 for the others.
    pub index: ScanIndex,
    /// The text with the counters in which the series of a call differ, such as `_contrast1`.
    pub suffix: String,
    /// The files in the order of repetitions, and slices by their position along the slice direction.
    pub files: Vec<DicomFile>,
    /// The distance between neighbouring slices in mm; `None` if there is one slice, or if it is not constant.
    pub spacing_mm: Option<f64>,
    /// The numbers of the repetitions, sorted.
    pub repetitions: Vec<u16>,
    /// Whether the position in the patient is known. If not, the origin of coordinates is in the middle of the volume.
    pub is_placed: bool,
    /// Whether the voxel size is known. If not, it is 1 mm.
    pub has_voxel_size: bool,
}

/// Returns the names of the files of these images: `path`, or one name per slice and repetition, such as
/// `image_repetition2_slice07.dcm`.
///
/// # Errors
/// `InvalidArgument` if two images have the same counters, if the positions of some slices of a series are unknown, or
/// if slices without positions have different repetitions.
pub fn file_names(path: &Path, images: &[ImageGeometry]) -> Result<Vec<PathBuf>> {
    let series = divide_into_series(path, images)?;
    Ok(series.into_iter().flat_map(|series| series.files).map(|file| file.path).collect())
}

/// Divides images into series. Slices may have any positions and directions: each file has its own.
///
/// # Errors
/// `InvalidArgument` if two images have the same counters, if the positions of some slices of a series are unknown, or
/// if slices without positions have different repetitions.
pub fn divide_into_series(path: &Path, images: &[ImageGeometry]) -> Result<Vec<DicomSeries>> {
    let mut counters = BTreeSet::new();
    for image in images {
        let index = ScanIndex { average: 0, ..image.index };
        if !counters.insert(index) {
            bail!(
                InvalidArgument,
                "two images have the same numbers ({index}), which are the names of the DICOM files: write a .h5 file"
            );
        }
    }
    let groups = group_by_counters(images);
    let suffixes = counter_suffixes(&groups.keys().copied().collect::<Vec<_>>());
    let mut all = Vec::with_capacity(groups.len());
    for ((index, members), suffix) in groups.into_iter().zip(suffixes) {
        all.push(one_series(index, suffix, images, &members)?);
    }
    name_files(path, images, &mut all);
    Ok(all)
}

fn one_series(index: ScanIndex, suffix: String, images: &[ImageGeometry], members: &[usize]) -> Result<DicomSeries> {
    let is_placed = all_or_none_placed(images, members)?;
    let regular = stack(index, images, members);
    let mut files = Vec::new();
    let spacing_mm = match &regular {
        Ok(volume) => {
            // Slices of different images, in the order of their positions.
            let slices = volume.images.len() / volume.repetitions;
            for (place, &image) in volume.images.iter().enumerate() {
                if is_placed {
                    files.extend(slices_of_image(images, image)?);
                } else {
                    let first = place % slices;
                    files.extend((0..images[image].dims[2]).map(|z| DicomFile {
                        image,
                        z,
                        path: PathBuf::new(),
                        columns: volume.columns,
                        origin: along(volume.origin, volume.columns[2], first + z),
                    }));
                }
            }
            (volume.dims[2] > 1).then(|| length(volume.columns[2]))
        }
        // These slices do not form a volume.
        Err(_) if is_placed => {
            let mut sorted = members.to_vec();
            sorted.sort_by_key(|&i| (images[i].index.repetition, images[i].index.slice));
            for image in sorted {
                files.extend(slices_of_image(images, image)?);
            }
            None
        }
        Err(_) => bail!(
            InvalidArgument,
            "the slices have neither positions nor the same repetitions, so that their places are unknown: select some by \
             --slice and --repetition, or write a .h5 file"
        ),
    };
    let repetitions: BTreeSet<u16> = members.iter().map(|&i| images[i].index.repetition).collect();
    Ok(DicomSeries {
        index,
        suffix,
        files,
        spacing_mm,
        repetitions: repetitions.into_iter().collect(),
        is_placed,
        has_voxel_size: members.iter().all(|&i| images[i].is_fov_known()),
    })
}

/// Returns the slices of an image with a known position.
fn slices_of_image(images: &[ImageGeometry], image: usize) -> Result<Vec<DicomFile>> {
    // Slice 0 of an image, and not of the series.
    let volume = stack(images[image].index, images, &[image])?;
    let (columns, path) = (volume.columns, PathBuf::new());
    let file = |z| DicomFile { image, z, path: path.clone(), columns, origin: along(volume.origin, columns[2], z) };
    Ok((0..volume.dims[2]).map(file).collect())
}

/// Returns the position `steps` steps from `origin`.
fn along(origin: [f64; 3], step: [f64; 3], steps: usize) -> [f64; 3] {
    minus(origin, times(step, -(steps as f64)))
}

/// Returns a number of a file that is part of its name; `None` if it is not.
type NumberOf<'a> = dyn Fn(&DicomFile) -> Option<usize> + 'a;

/// Sets the names of all files.
fn name_files(path: &Path, images: &[ImageGeometry], series: &mut [DicomSeries]) {
    let files = || series.iter().flat_map(|series| &series.files);
    if files().count() == 1 {
        series.iter_mut().flat_map(|series| &mut series.files).for_each(|file| file.path = path.to_owned());
        return;
    }
    // The slabs of 3D images are series, and their suffix has the number of the slab.
    let is_volume = |file: &DicomFile| images[file.image].dims[2] > 1;
    let repetition = |file: &DicomFile| Some(usize::from(images[file.image].index.repetition));
    let slice = |file: &DicomFile| (!is_volume(file)).then(|| usize::from(images[file.image].index.slice));
    let z = |file: &DicomFile| is_volume(file).then_some(file.z);
    let numbers = |of: &NumberOf| -> BTreeSet<usize> { files().filter_map(of).collect() };
    let parts: [(&str, BTreeSet<usize>, &NumberOf); 3] =
        [("repetition", numbers(&repetition), &repetition), ("slice", numbers(&slice), &slice), ("z", numbers(&z), &z)];
    let name = Path::new(path.file_name().unwrap_or_default());
    // A name without a stem, `.dcm`, has no extension for the standard library.
    let (stem, extension) = match name.extension() {
        Some(extension) => (name.file_stem().unwrap_or_default(), extension),
        None => ("".as_ref(), "dcm".as_ref()),
    };
    for one in series.iter_mut() {
        for file in &mut one.files {
            let mut full = stem.to_owned();
            full.push(&one.suffix);
            for (text, all, number) in &parts {
                if let Some(number) = number(file).filter(|_| all.len() > 1) {
                    let width = all.last().map_or(1, |last| last.to_string().len());
                    full.push(format!("_{text}{number:0width$}"));
                }
            }
            full.push(".");
            full.push(extension);
            file.path = path.with_file_name(full);
        }
    }
}
