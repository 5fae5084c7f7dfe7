//! Images of files of every format.

use super::outcome::{array_of, call, path_of};
use crate::image::{Image, Placement, ScanIndex};
use num_complex::Complex;
use recon::atomic_file::write_atomically;
use recon::error::{bail, checked_product, Result};
use recon::ffi::recon_status;
use std::ffi::{c_char, c_void};
use std::ptr::null;

/// An image, or several images (channels) on the same grid.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct recon_files_image {
    /// Voxels along x, y and z.
    pub dims: [u64; 3],
    pub channels: u64,
    /// Complex float [x, y, z, channels].
    pub data: *const c_void,
    /// Field of view in mm: the voxel size times dims; 0 if unknown.
    pub fov_mm: [f64; 3],
    /// Position and directions as in recon_scan_properties.
    pub position: [f64; 3],
    pub read_dir: [f64; 3],
    pub phase_dir: [f64; 3],
    pub slice_dir: [f64; 3],
    pub table_position: [f64; 3],
    /// Time from one repetition to the next in ms; NAN if unknown.
    pub repetition_time_ms: f64,
    pub measurement_uid: u32,
    pub acquisition_time_stamp: u32,
    pub physiology_time_stamp: [u32; 3],
    pub encoding: u32,
    pub slice: u32,
    pub repetition: u32,
    pub contrast: u32,
    pub phase: u32,
    pub set: u32,
    pub average: u32,
}

/// The images of a file. Created by recon_files_read_images.
pub struct recon_files_images(Vec<Image>);

/// Reads the images of a file of any format. The caller passes `*images` to recon_files_free_images.
#[no_mangle]
pub unsafe extern "C" fn recon_files_read_images(
    path: *const c_char,
    images: *mut *mut recon_files_images,
) -> recon_status {
    call(|| {
        // SAFETY: the caller's text.
        let path = unsafe { path_of(path) }?;
        let made = recon_files_images(crate::read_images(&path)?);
        // SAFETY: the caller's pointer.
        unsafe { *images = Box::into_raw(Box::new(made)) };
        Ok(())
    })
}

/// Returns the number of images.
#[no_mangle]
pub unsafe extern "C" fn recon_files_image_count(images: *const recon_files_images) -> u64 {
    // SAFETY: the caller's images.
    unsafe { &*images }.0.len() as u64
}

/// Writes image `index`, whose data belong to the images.
#[no_mangle]
pub unsafe extern "C" fn recon_files_image_at(
    images: *const recon_files_images,
    index: u64,
    to: *mut recon_files_image,
) -> recon_status {
    call(|| {
        // SAFETY: the caller's images.
        let Some(image) = unsafe { &*images }.0.get(index as usize) else {
            bail!(InvalidArgument, "there is no image {index}");
        };
        let wide = |values: [f32; 3]| values.map(f64::from);
        let (p, i) = (&image.placement, &image.index);
        let fields = recon_files_image {
            dims: image.dims.map(|n| n as u64),
            channels: image.channels as u64,
            data: image.data.as_ptr().cast(),
            fov_mm: wide(image.fov_mm),
            position: wide(p.position),
            read_dir: wide(p.read_dir),
            phase_dir: wide(p.phase_dir),
            slice_dir: wide(p.slice_dir),
            table_position: wide(p.table_position),
            repetition_time_ms: p.repetition_time_ms.map_or(f64::NAN, f64::from),
            measurement_uid: p.measurement_uid,
            acquisition_time_stamp: p.acquisition_time_stamp,
            physiology_time_stamp: p.physiology_time_stamp,
            encoding: i.encoding.into(),
            slice: i.slice.into(),
            repetition: i.repetition.into(),
            contrast: i.contrast.into(),
            phase: i.phase.into(),
            set: i.set.into(),
            average: i.average.into(),
        };
        // SAFETY: the caller's structure.
        unsafe { *to = fields };
        Ok(())
    })
}

/// Frees images. NULL is ignored.
#[no_mangle]
pub unsafe extern "C" fn recon_files_free_images(images: *mut recon_files_images) {
    if !images.is_null() {
        // SAFETY: created by this library, and by the caller's promise not freed before.
        drop(unsafe { Box::from_raw(images) });
    }
}

/// Writes images, in the format that the ending of the name selects.
#[no_mangle]
pub unsafe extern "C" fn recon_files_write_images(
    path: *const c_char,
    images: *const recon_files_image,
    count: u64,
) -> recon_status {
    call(|| {
        // SAFETY: the caller's text and structures.
        let (path, images) = unsafe { (path_of(path)?, array_of("the images", images, count as usize)?) };
        // SAFETY: the data have the length that the structures announce.
        let images = images.iter().map(|image| unsafe { image_of(image) }).collect::<Result<Vec<_>>>();
        let images = images.map_err(|e| e.within(path.display()))?;
        write_atomically(|files| crate::write_images(files, &path, &images))
    })
}

/// Copies an image of the caller.
///
/// # Safety
/// The data have the length of `dims` and `channels`.
unsafe fn image_of(image: &recon_files_image) -> Result<Image> {
    let dims = image.dims.map(|n| n as usize);
    let count = checked_product(&[dims[0], dims[1], dims[2], image.channels as usize], "the image")?;
    // SAFETY: the caller's promise.
    let data = unsafe { array_of("the image", image.data.cast::<Complex<f32>>(), count) }?;
    let narrow = |values: [f64; 3]| values.map(|value| value as f32);
    let placement = Placement {
        position: narrow(image.position),
        read_dir: narrow(image.read_dir),
        phase_dir: narrow(image.phase_dir),
        slice_dir: narrow(image.slice_dir),
        table_position: narrow(image.table_position),
        measurement_uid: image.measurement_uid,
        acquisition_time_stamp: image.acquisition_time_stamp,
        physiology_time_stamp: image.physiology_time_stamp,
        repetition_time_ms: (!image.repetition_time_ms.is_nan()).then_some(image.repetition_time_ms as f32),
    };
    let numbers =
        [image.encoding, image.slice, image.repetition, image.contrast, image.phase, image.set, image.average];
    let index = index_of(numbers)?;
    let fov_mm = narrow(image.fov_mm);
    Ok(Image { fov_mm, placement, index, ..Image::new(dims, image.channels as usize, data.to_vec())? })
}

/// Returns an index from the numbers of encoding, slice, repetition, contrast, phase, set and average.
///
/// # Errors
/// `InvalidArgument` for a number above 65535.
pub(super) fn index_of(numbers: [u32; 7]) -> Result<ScanIndex> {
    if let Some(number) = numbers.iter().find(|&&number| number > u16::MAX.into()) {
        bail!(InvalidArgument, "a number of the slice, repetition, contrast, phase, set, average or encoding is {number}: at most 65535 fits");
    }
    let [encoding, slice, repetition, contrast, phase, set, average] = numbers.map(|number| number as u16);
    Ok(ScanIndex { encoding, slice, repetition, contrast, phase, set, average })
}

/// Returns an image without data.
#[no_mangle]
pub extern "C" fn recon_files_empty_image() -> recon_files_image {
    let zero = [0.0; 3];
    recon_files_image {
        dims: [0; 3],
        channels: 0,
        data: null(),
        fov_mm: zero,
        position: zero,
        read_dir: zero,
        phase_dir: zero,
        slice_dir: zero,
        table_position: zero,
        repetition_time_ms: f64::NAN,
        measurement_uid: 0,
        acquisition_time_stamp: 0,
        physiology_time_stamp: [0; 3],
        encoding: 0,
        slice: 0,
        repetition: 0,
        contrast: 0,
        phase: 0,
        set: 0,
        average: 0,
    }
}
