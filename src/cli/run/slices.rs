//! The slices of a volume for scans of single slices: NIfTI files have all slices in one volume, sorted by position.

use crate::run::input::scan_name;
use recon::bail;
use recon::Result;
use recon_files::stacks::{dot, minus, tolerance_mm, wide, ImageGeometry};
use recon_files::{Image, Scan};

/// Returns the slices of these 2D scans if `images` is one volume with a position in the patient. Returns `images`
/// unchanged if it is not, or if the scans are 3D.
///
/// # Errors
/// `SizeMismatch` if the volume does not have a slice at the position of a scan.
pub fn slices_of_scans(mut images: Vec<Image>, scans: &[&Scan]) -> Result<Vec<Image>> {
    let is_volume = |image: &Image| image.dims[2] > 1 && image.placement.is_known();
    if images.len() != 1 || !is_volume(&images[0]) || scans.iter().any(|scan| scan.ndim != 2) {
        return Ok(images);
    }
    let volume = images.remove(0);
    scans.iter().map(|scan| slice_at(&volume, scan).map_err(|e| e.within(scan_name(scan)))).collect()
}

/// Returns the first scan of each slice, in the order of the numbers of slices.
pub fn first_of_each_slice(scans: &[Scan]) -> Vec<&Scan> {
    let mut sorted: Vec<&Scan> = scans.iter().collect();
    sorted.sort_by_key(|scan| scan.index);
    sorted.dedup_by_key(|scan| scan.index.slice);
    sorted
}

/// Returns the slice of a volume at the position of a scan.
fn slice_at(volume: &Image, scan: &Scan) -> Result<Image> {
    let [nx, ny, nz] = volume.dims;
    if !scan.placement.is_known() {
        bail!(
            SizeMismatch,
            "the file has a volume of {nz} slices, but the acquisitions have no valid position and directions to find \
             the slice of the scan: give a .h5 file with one image per slice"
        );
    }
    let normal = wide(volume.placement.slice_dir);
    let step = ImageGeometry::new(volume).voxel_mm(2);
    let distance = dot(minus(wide(scan.placement.position), wide(volume.placement.position)), normal);
    let index = (distance / step + (nz / 2) as f64).round();
    let miss = distance - (index - (nz / 2) as f64) * step;
    let is_parallel = dot(wide(scan.placement.slice_dir), normal).abs() > 0.999;
    if !is_parallel || miss.abs() > tolerance_mm(step) || !(0.0..nz as f64).contains(&index) {
        let [x, y, z] = scan.placement.position;
        bail!(
            SizeMismatch,
            "the volume of the file, {nz} slices {step} mm apart, has no slice at the position of the scan ({x}, {y}, \
             {z} mm) in the same direction: give a file of the same slices, or a .h5 file with one image per slice"
        );
    }
    let first = index as usize * nx * ny;
    let data = (0..volume.channels).flat_map(|c| volume.channel(c)[first..][..nx * ny].iter().copied()).collect();
    let mut slice = Image::new([nx, ny, 1], volume.channels, data)?;
    slice.fov_mm = [volume.fov_mm[0], volume.fov_mm[1], step as f32];
    (slice.placement, slice.index) = (scan.placement, scan.index);
    Ok(slice)
}
