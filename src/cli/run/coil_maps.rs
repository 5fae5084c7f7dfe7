//! Coil maps: read from files, or estimated from calibration data or scans.

use crate::options::DensityArgs;
use crate::run::input::scan_name;
use crate::run::precision::{cast, is_magnitude};
use crate::run::resize::{order_hint, zeros};
use crate::run::sampling::Sampling;
use crate::run::session::Session;
use crate::run::weights::Weights;
use recon::bail;
use recon::scan::{calibration_of, to_matrix_of, warn_of_other_slices};
use recon::{CoilMatrix, Complex, Error, Options, Plan, Real, Result};
use recon_files::cfl::{COUNTER_DIMS, MAX_DIMS};
use recon_files::{read_cfl, read_image, Format, Scan};
use std::path::Path;
use std::time::Instant;

/// The properties of a scan on which its maps in a file depend: encoded matrix, coils and their matrix.
type MapKey = ([usize; 3], usize, Option<CoilMatrix>);

/// The coil maps of a file for the most recent scan, so that the frames of a scan do not read them again.
pub struct CoilMapFile<T: Real> {
    maps: Option<(MapKey, Vec<Complex<T>>)>,
}

impl<T: Real> CoilMapFile<T> {
    pub fn new() -> Self {
        CoilMapFile { maps: None }
    }

    /// Returns the coil maps of a scan, [encoded matrix, virtual coils]. Reads the file if necessary.
    pub fn read(&mut self, path: &Path, scan: &Scan) -> Result<&[Complex<T>]> {
        let key = (scan.encoded_matrix, scan.coils, scan.coil_matrix.clone());
        let maps = match self.maps.take().filter(|(previous, _)| *previous == key) {
            Some((_, maps)) => maps,
            None => read_maps(path, scan)?,
        };
        Ok(&self.maps.insert((key, maps)).1)
    }
}

/// Reads coil maps [encoded matrix, coils of the file] and converts them to the scan's virtual coils.
fn read_maps<T: Real>(path: &Path, scan: &Scan) -> Result<Vec<Complex<T>>> {
    let [x, y, z] = scan.encoded_matrix;
    let expected = [x, y, z, scan.coil_matrix.as_ref().map_or(scan.coils, |m| m.coils())];
    let mismatch = |found: &[usize], remedy: &str| -> Result<Vec<Complex<T>>> {
        bail!(
            SizeMismatch,
            "{}: coil maps of sizes {found:?}, but the encoded matrix of the scan and its coils are {expected:?}: they \
             must be equal{remedy}",
            path.display()
        )
    };
    let data = if Format::of_input(path) == Some(Format::Bart) {
        let mut array = read_cfl(path)?;
        let (sizes, voxels) = (array.sizes(), x * y * z);
        let fits = |n: &[usize; MAX_DIMS]| n[..4] == expected && n[5..].iter().all(|&n| n == 1);
        if !fits(&sizes) {
            let counter = COUNTER_DIMS.into_iter().find(|&dim| sizes[dim] > 1 && sizes[..4] == expected);
            let remedy = match (counter, array.reorder(|n| fits(n) && n[4] == 1)) {
                (Some(dim), _) => format!(
                    ": bart slice {dim} N IN OUT takes the maps of one part; select the same part of the scan, by \
                     --slice N for example"
                ),
                (None, Some(command)) => format!(": {command}"),
                (None, None) => String::new(),
            };
            return mismatch(&array.dims, &remedy);
        }
        if sizes[4] > 1 {
            warn_of_further_sets(path, sizes[4], voxels, &array.data[voxels * expected[3]..]);
            array.data.truncate(voxels * expected[3]);
        }
        array.data
    } else {
        let image = read_image(path)?;
        let [a, b, c] = image.dims;
        if [a, b, c, image.channels] != expected {
            return mismatch(&[a, b, c, image.channels], order_hint(image.dims, scan.encoded_matrix));
        }
        image.data
    };
    if expected[3] > 1 && is_magnitude(&data) {
        log::warn!(
            "{}: the coil maps are real and non-negative: if they are magnitudes, their phases are lost, and the image \
             will be wrong (recon writes magnitudes to NIfTI files: use .cfl or .h5)",
            path.display()
        );
    }
    let maps = cast(&data)?;
    let Some(matrix) = &scan.coil_matrix else { return Ok(maps) };
    let mut virtual_maps = zeros(x * y * z * scan.coils)?;
    matrix.apply(x * y * z, &maps, &mut virtual_maps).map_err(|e| e.within(path.display()))?;
    Ok(virtual_maps)
}

/// Returns whether two scans of one trajectory share their estimated maps: those of one encoding, slice, contrast and
/// set.
pub fn shares_maps(a: &Scan, b: &Scan) -> bool {
    let key = |scan: &Scan| (scan.index.encoding, scan.index.slice, scan.index.contrast, scan.index.set);
    key(a) == key(b)
}

/// Converts maps of a scan's virtual coils, [voxels, virtual coils], to maps of the coils in its file. Whitening and
/// compressing these gives the maps of the virtual coils again. Of all such maps, they have the smallest norm.
pub fn to_coils_of_file<T: Real>(scan: &Scan, maps: Vec<Complex<T>>) -> Result<Vec<Complex<T>>> {
    let Some(matrix) = &scan.coil_matrix else { return Ok(maps) };
    let voxels = maps.len() / matrix.virtual_coils();
    let mut file_maps = zeros(voxels * matrix.coils())?;
    right_inverse(matrix)?.apply(voxels, &maps, &mut file_maps)?;
    Ok(file_maps)
}

/// Returns the right inverse M^H (M M^H)^-1 of a coil matrix M, whose rows are linearly independent.
fn right_inverse(matrix: &CoilMatrix) -> Result<CoilMatrix> {
    let (rows, columns, entries) = (matrix.virtual_coils(), matrix.coils(), matrix.entries());
    let entry = |row: usize, column: usize| entries[column * rows + row];
    // Gauss-Jordan elimination of the rows of [M M^H | M]. The right side becomes (M M^H)^-1 M.
    let product = |a: usize, b: usize| (0..columns).map(|c| entry(a, c) * entry(b, c).conj()).sum();
    let mut system: Vec<Vec<Complex<f64>>> = (0..rows)
        .map(|a| (0..rows).map(|b| product(a, b)).chain((0..columns).map(|c| entry(a, c))).collect())
        .collect();
    for pivot in 0..rows {
        let largest =
            (pivot..rows).fold(
                pivot,
                |best, row| if system[row][pivot].norm() > system[best][pivot].norm() { row } else { best },
            );
        system.swap(pivot, largest);
        let scale = system[pivot][pivot].inv();
        if !scale.is_finite() {
            bail!(InvalidArgument, "the whitened coils are not independent: --whiten none leaves the coils unchanged");
        }
        system[pivot].iter_mut().for_each(|z| *z *= scale);
        let pivot_row = system[pivot].clone();
        for (_, equation) in system.iter_mut().enumerate().filter(|(row, _)| *row != pivot) {
            let factor = equation[pivot];
            equation.iter_mut().zip(&pivot_row).for_each(|(z, p)| *z -= factor * p);
        }
    }
    // The conjugate transpose of the right side, [coils, virtual coils], the coil running fastest.
    let inverse = system.iter().flat_map(|equation| equation[rows..].iter().map(|z| z.conj())).collect();
    CoilMatrix::new(columns, rows, inverse)
}

/// Warns if sets of maps after the first are not zero: the library's model has one image.
fn warn_of_further_sets(path: &Path, sets: usize, voxels: usize, further: &[Complex<f32>]) {
    let mut is_used = vec![false; voxels];
    for map in further.chunks_exact(voxels) {
        is_used.iter_mut().zip(map).for_each(|(used, z)| *used |= *z != Complex::ZERO);
    }
    let used = is_used.iter().filter(|&&used| used).count();
    if used > 0 {
        log::warn!(
            "{}: the file has {sets} sets of maps, but one image is reconstructed, with the first set: the others are \
             not zero in {:.1} % of the voxels, where folded signal is missing from the image. bart pics reconstructs \
             an image for each set; bart slice 4 0 IN OUT takes the first set, without this warning",
            path.display(),
            100.0 * used as f64 / voxels as f64
        );
    }
}

/// Estimates the coil maps of scans of one trajectory and slice: from the calibration data of the slice, or else from
/// the mean of the scans. `width` is the width of the centre of k-space in samples of a Cartesian scan; 0 selects the
/// library's default.
pub fn estimate<T: Real>(
    session: &Session,
    group: &[usize],
    density: &DensityArgs,
    width: usize,
) -> Result<Vec<Complex<T>>> {
    let Session { scans, calibration, off_resonance, basis, options, .. } = session;
    let first = &scans[group[0]];
    let estimate = || {
        if let Some(lines) = calibration_of(calibration, first) {
            let lines = to_matrix_of(lines, first)
                .map_err(|e| Error::new(e.kind(), format!("{e} (options --maps and --no-maps)")))?;
            off_resonance.check(&lines)?;
            let sampling = Sampling::with_maps(&lines, *basis, group[0], off_resonance)?;
            return estimate_from(&[&lines], &sampling, density, width, options);
        }
        if !calibration.is_empty() {
            warn_of_other_slices(scan_name(first));
        }
        let scans: Vec<&Scan> = group.iter().map(|&i| &scans[i]).collect();
        estimate_from(&scans, &session.sampling(group[0], first)?, density, width, options)
    };
    estimate().map_err(|e| e.within(scan_name(first)))
}

/// Estimates coil maps from the mean of scans that share their trajectory.
fn estimate_from<T: Real>(
    scans: &[&Scan],
    sampling: &Sampling<T>,
    density: &DensityArgs,
    width: usize,
    options: &Options,
) -> Result<Vec<Complex<T>>> {
    let started = Instant::now();
    let mut mean = cast::<T>(&scans[0].data)?;
    for scan in &scans[1..] {
        for (m, z) in mean.iter_mut().zip(&scan.data) {
            *m = Complex::new(T::of(m.re.wide() + z.re as f64), T::of(m.im.wide() + z.im as f64));
        }
    }
    let share = 1.0 / scans.len() as f64;
    mean.iter_mut().for_each(|z| *z = Complex::new(T::of(z.re.wide() * share), T::of(z.im.wide() * share)));
    let weights = Weights::of_file_or_options(scans[0], density);
    let mut geometry = sampling.geometry();
    geometry.weights = weights.known();
    let plan = Plan::for_coil_maps(&geometry, options)?;
    weights.compute_in(&plan)?;
    let maps = plan.coil_maps(&mean, width)?;
    log::info!(
        "{}: maps of {} coils from {} shots, {:.3} s",
        scan_name(scans[0]),
        scans[0].coils,
        scans[0].samples_per_shot.len(),
        started.elapsed().as_secs_f64()
    );
    Ok(maps)
}
