//! Maps of off-resonance and decay, and the times of samples.

use crate::options::{OffResonanceArgs, TimeArgs};
use crate::run::input::scan_name;
use crate::run::resize::{order_hint, MatrixResize};
use crate::run::slices::{first_of_each_slice, slices_of_scans};
use recon::bail;
use recon::error::{try_reserve, try_vec};
use recon::scan::TrajectoryKind;
use recon::{Complex, Error, Real, Result};
use recon_files::{read_images, Image, Scan};
use std::path::{Path, PathBuf};

/// One map of a file.
struct MapVolume {
    dims: [usize; 3],
    data: Vec<f32>,
}

/// The quantity of a map.
#[derive(Clone, Copy, PartialEq)]
pub enum Quantity {
    /// Off-resonance in Hz.
    Field,
    /// Decay rates in 1/s.
    Decay,
}

impl Quantity {
    fn name_and_unit(self) -> (&'static str, &'static str) {
        match self {
            Quantity::Field => ("off-resonance", "Hz"),
            Quantity::Decay => ("decay rate", "1/s"),
        }
    }

    /// Returns the numbers of an image.
    ///
    /// # Errors
    /// `NotFinite` or `InvalidArgument` if a number is not finite or not real, or a decay rate is negative.
    fn numbers(self, path: &Path, image: &[Complex<f32>]) -> Result<Vec<f32>> {
        let (name, unit) = self.name_and_unit();
        let mut numbers = try_reserve(image.len(), "a map")?;
        for (i, z) in image.iter().enumerate() {
            if !z.is_finite() {
                bail!(NotFinite, "{}: the {name} of voxel {i} is {}: give 0 where unknown", path.display(), z.re);
            }
            if z.im != 0.0 {
                bail!(
                    InvalidArgument,
                    "{}: the {name} of voxel {i} is complex, {z}: a map must have real numbers in {unit}",
                    path.display()
                );
            }
            if self == Quantity::Decay && z.re < 0.0 {
                bail!(
                    InvalidArgument,
                    "{}: the {name} of voxel {i} is {} {unit}: it must be non-negative",
                    path.display(),
                    z.re
                );
            }
            numbers.push(z.re);
        }
        Ok(numbers)
    }

    /// Returns the maps of the images of a file.
    fn maps(self, path: &Path, images: &[Image]) -> Result<Vec<MapVolume>> {
        let mut volumes = Vec::new();
        for image in images {
            for channel in 0..image.channels {
                volumes.push(MapVolume { dims: image.dims, data: self.numbers(path, image.channel(channel))? });
            }
        }
        Ok(volumes)
    }

    /// Reads the only map of a file, which must have this matrix.
    pub fn read_one(self, path: &Path, matrix: [usize; 3]) -> Result<Vec<f32>> {
        let mut volumes = self.maps(path, &read_images(path)?)?;
        if volumes.len() != 1 {
            bail!(SizeMismatch, "{}: the file has {} maps, but exactly one is required", path.display(), volumes.len());
        }
        let MapVolume { dims, data } = volumes.remove(0);
        if dims != matrix {
            bail!(
                SizeMismatch,
                "{}: a map of {dims:?} voxels, but --matrix has {matrix:?}: they must be equal{}",
                path.display(),
                order_hint(dims, matrix)
            );
        }
        Ok(data)
    }
}

/// The maps of one quantity.
struct QuantityMaps {
    /// Data of each map on the encoded matrix of its scans.
    data: Vec<Vec<f32>>,
    /// Number of the map of each scan.
    map_of_scan: Vec<usize>,
}

impl QuantityMaps {
    fn read(path: &Path, quantity: Quantity, scans: &[Scan], resizes: &[MatrixResize]) -> Result<QuantityMaps> {
        let within = |e: Error| e.within(path.display());
        let images = slices_of_scans(read_images(path)?, &first_of_each_slice(scans)).map_err(within)?;
        let volumes = quantity.maps(path, &images)?;
        let map_of_scan = assign_maps(volumes.len(), scans).map_err(|e| e.within(path.display()))?;
        let mut data: Vec<Vec<f32>> = vec![Vec::new(); volumes.len()];
        let mut resize_of_map: Vec<Option<MatrixResize>> = vec![None; volumes.len()];
        for (&map, resize) in map_of_scan.iter().zip(resizes) {
            let previous = resize_of_map[map];
            if previous == Some(*resize) {
                continue;
            }
            let is_encoded = volumes[map].dims == resize.encoded();
            let on_encoded = volumes[map].to_encoded(resize).map_err(|e| e.within(path.display()))?;
            match previous {
                Some(previous) if is_encoded && previous.encoded() == resize.encoded() => continue,
                Some(previous) => bail!(
                    SizeMismatch,
                    "{}: one map for scans with different matrices, {:?} and {:?}: select some by --slice and \
                     --repetition",
                    path.display(),
                    previous.encoded(),
                    resize.encoded()
                ),
                None => (data[map], resize_of_map[map]) = (on_encoded, Some(*resize)),
            }
        }
        let (name, unit) = quantity.name_and_unit();
        let range = data.iter().flatten().fold((f32::MAX, f32::MIN), |(low, high), &x| (low.min(x), high.max(x)));
        log::info!("{}: {name} from {} to {} {unit}", path.display(), range.0, range.1);
        Ok(QuantityMaps { data, map_of_scan })
    }
}

/// Returns the number of the map of each scan: one map for all scans, one per slice or one per scan.
fn assign_maps(count: usize, scans: &[Scan]) -> Result<Vec<usize>> {
    let mut slices: Vec<u16> = scans.iter().map(|s| s.index.slice).collect();
    slices.sort_unstable();
    slices.dedup();
    let slice_rank = |scan: &Scan| slices.iter().position(|&s| s == scan.index.slice).unwrap_or(0);
    match count {
        1 => Ok(vec![0; scans.len()]),
        n if n == slices.len() => Ok(scans.iter().map(slice_rank).collect()),
        n if n == scans.len() => Ok((0..n).collect()),
        n => bail!(
            SizeMismatch,
            "{n} maps, but there are {} scans of {} slices: give one map for all, one per slice or one per scan",
            scans.len(),
            slices.len()
        ),
    }
}

impl MapVolume {
    /// Returns the map on the encoded matrix. A map on the reconstructed matrix is cut or surrounded by zeros.
    fn to_encoded(&self, resize: &MatrixResize) -> Result<Vec<f32>> {
        if self.dims == resize.encoded() {
            return Ok(self.data.clone());
        }
        if self.dims != resize.requested() || !resize.keeps_voxels() {
            bail!(
                SizeMismatch,
                "a map of {:?} voxels, but the encoded matrix of the scan is {:?} and the reconstructed one {:?}: give \
                 a map on the encoded matrix, or on the reconstructed one if its voxels have the same size{}",
                self.dims,
                resize.encoded(),
                resize.requested(),
                order_hint(self.dims, resize.encoded())
            );
        }
        let complex = self.data.iter().map(|&x| Complex::new(x, 0.0)).collect();
        Ok(resize.undo(complex)?.iter().map(|z| z.re).collect())
    }
}

/// The maps of off-resonance and decay of all scans.
#[derive(Default)]
pub struct OffResonanceMaps {
    times: TimeArgs,
    field: Option<QuantityMaps>,
    decay: Option<QuantityMaps>,
}

/// Off-resonance, decay and times of one scan, in the precision of the computation.
pub struct ScanFieldMaps<T> {
    /// Off-resonance in Hz; `None` without a field map.
    pub field_map: Option<Vec<T>>,
    /// Decay rates in 1/s; `None` without a decay map.
    pub decay_map: Option<Vec<T>>,
    /// Time of each sample in seconds.
    pub times: Vec<T>,
}

impl OffResonanceMaps {
    /// Reads the maps that the options name, and checks that the scans have times.
    pub fn read(args: &OffResonanceArgs, scans: &[Scan], resizes: &[MatrixResize]) -> Result<Self> {
        let read = |path: &Option<PathBuf>, quantity| {
            path.as_ref().map(|path| QuantityMaps::read(path, quantity, scans, resizes)).transpose()
        };
        if args.files().next().is_some() {
            for scan in scans {
                check_times(scan, &args.times).map_err(|e| e.within(scan_name(scan)))?;
            }
        }
        Ok(OffResonanceMaps {
            times: args.times,
            field: read(&args.field_map, Quantity::Field)?,
            decay: read(&args.decay_map, Quantity::Decay)?,
        })
    }

    /// Checks that calibration data have times, if there are maps.
    pub fn check(&self, calibration: &Scan) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        check_times(calibration, &self.times)
    }

    fn maps(&self) -> impl Iterator<Item = &QuantityMaps> {
        self.field.iter().chain(&self.decay)
    }

    /// Returns whether there are no maps.
    pub fn is_empty(&self) -> bool {
        self.maps().next().is_none()
    }

    /// Returns whether scans `a` and `b` have the same maps and times.
    pub fn is_same(&self, scans: &[Scan], a: usize, b: usize) -> bool {
        let times = |i: usize| (&scans[i].times, &scans[i].skipped_per_shot, &scans[i].samples_per_shot);
        let is_same_map = |maps: &QuantityMaps| maps.map_of_scan[a] == maps.map_of_scan[b];
        self.is_empty() || times(a) == times(b) && self.maps().all(is_same_map)
    }

    /// Returns the maps and times of scan `number`, of which `scan` is all or some shots; `None` if there are no maps.
    pub fn for_scan<T: Real>(&self, number: usize, scan: &Scan) -> Result<Option<ScanFieldMaps<T>>> {
        if self.is_empty() {
            return Ok(None);
        }
        let cast = |maps: &QuantityMaps| -> Result<Vec<T>> {
            let data = &maps.data[maps.map_of_scan[number]];
            let mut map = try_vec(data.len(), T::ZERO, "a map")?;
            map.iter_mut().zip(data).for_each(|(to, &from)| *to = T::of(f64::from(from)));
            Ok(map)
        };
        let mut times = try_reserve(scan.samples(), "the times of samples")?;
        let start = self.times.start();
        match self.times.dwell() {
            Some(dwell) => {
                for (&count, &skipped) in scan.samples_per_shot.iter().zip(&scan.skipped_per_shot) {
                    times.extend((skipped..skipped + count).map(|m| T::of(start + dwell * m as f64)));
                }
            }
            None => times.extend(scan.times.iter().map(|&t| T::of(start + f64::from(t)))),
        }
        Ok(Some(ScanFieldMaps {
            field_map: self.field.as_ref().map(cast).transpose()?,
            decay_map: self.decay.as_ref().map(cast).transpose()?,
            times,
        }))
    }
}

/// Checks that the samples of a scan have times.
fn check_times(scan: &Scan, args: &TimeArgs) -> Result<()> {
    if scan.trajectory == TrajectoryKind::Epi {
        bail!(
            Unsupported,
            "the trajectory is echo-planar, for which maps of off-resonance and decay cannot be used: the lines of an \
             echo train begin at different times after the excitation, which the file does not contain"
        );
    }
    let mut first = 0;
    for &count in &scan.samples_per_shot {
        if args.dwell.is_none() && count > 1 && scan.times[first + 1] <= scan.times[first] {
            bail!(
                InvalidArgument,
                "the file has no sample time, which maps of off-resonance and decay need: give --dwell, the \
                 microseconds from one sample of a shot to the next"
            );
        }
        first += count;
    }
    Ok(())
}

/// Returns a smooth map on a matrix: a bump of `hz` in the direction of rising y, as at an air cavity, and -hz / 2 far
/// from it.
pub fn smooth_map(matrix: [usize; 3], hz: f64) -> Result<Vec<f64>> {
    /// Centre of the bump. The field of view extends from -1 to 1.
    const CENTRE: [f64; 3] = [0.0, 0.6, 0.0];
    /// Twice the square of the width of the bump.
    const WIDTH: f64 = 0.4;
    let mut map = try_vec(matrix.iter().product(), 0.0, "a map")?;
    for (i, value) in map.iter_mut().enumerate() {
        let index = [i % matrix[0], i / matrix[0] % matrix[1], i / matrix[0] / matrix[1]];
        let squared_distance = |axis: usize| {
            let n = matrix[axis];
            (2.0 * (index[axis] as f64 - (n / 2) as f64) / n as f64 - CENTRE[axis]).powi(2)
        };
        *value = hz * (1.5 * (-(squared_distance(0) + squared_distance(1) + squared_distance(2)) / WIDTH).exp() - 0.5);
    }
    Ok(map)
}

/// Returns a map as an image.
pub fn image_of(matrix: [usize; 3], map: &[f64]) -> Result<Image> {
    Image::new(matrix, 1, map.iter().map(|&x| Complex::new(x as f32, 0.0)).collect())
}
