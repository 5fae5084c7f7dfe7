//! K-space of BART with its trajectory.

use crate::{kspace_from_bart, read_cfl, trajectory_from_bart, Placement, Scan, ScanIndex};
use recon::error::{bail, Result};
use recon::scan::TrajectoryKind;
use std::path::Path;

/// Reads k-space, `[1, samples, shots, coils]`, and its trajectory, for an image of `matrix` voxels.
///
/// # Errors
/// Errors of [`read_cfl`], [`trajectory_from_bart`] and [`kspace_from_bart`]; `NotFinite`.
pub fn read_bart(kspace: &Path, trajectory: &Path, matrix: [usize; 3]) -> Result<Scan> {
    let points = read_cfl(trajectory)?;
    let array = read_cfl(kspace)?;
    let coordinates = trajectory_from_bart(&points, matrix).map_err(|e| e.within(trajectory.display()))?;
    let files = || format!("{} and {}", kspace.display(), trajectory.display());
    let (samples, coils) = kspace_from_bart(&array, &points).map_err(|e| e.within(files()))?;
    if let Some(i) = array.data.iter().position(|z| !z.is_finite()) {
        let (coil, m) = (i / samples, i % samples);
        bail!(NotFinite, "{}: coil {coil}, sample {m}: the data are {}", kspace.display(), array.data[i]);
    }
    Ok(Scan {
        index: ScanIndex::default(),
        encoded_matrix: matrix,
        recon_matrix: matrix,
        encoded_fov_mm: [0.0; 3],
        recon_fov_mm: [0.0; 3],
        trajectory: TrajectoryKind::Other,
        ndim: coordinates.coordinates.len(),
        coordinates: coordinates.coordinates,
        weights: None,
        skipped_per_shot: vec![0; coordinates.samples_per_shot.len()],
        samples_per_shot: coordinates.samples_per_shot,
        coils,
        data: array.data,
        times: vec![0.0; samples],
        placement: Placement::default(),
        coil_matrix: None,
        noise_level: None,
    })
}
