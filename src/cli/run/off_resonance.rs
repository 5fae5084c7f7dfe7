//! Maps of off-resonance and decay, and the times of samples.

use crate::io::ismrmrd::TrajectoryKind;
use crate::io::{Image, Scan};
use crate::reader::read_images;
use crate::run::input::name;
use crate::run::resize::{order_hint, Resize};
use clap::Args;
use recon::bail;
use recon::error::{try_reserve, try_vec};
use recon::{Complex, Real, Result};
use std::path::{Path, PathBuf};

/// When samples were taken.
#[derive(Args, Default)]
pub struct TimeArgs {
    /// Microseconds from one sample of a shot to the next; a file's sample time is not used then
    #[arg(long, value_name = "US", allow_negative_numbers = true, help_heading = "Off-resonance")]
    pub dwell: Option<f64>,

    /// Milliseconds from the moment whose image is wanted (the excitation, or the echo) to the first sample of each
    /// shot; negative where that moment comes later [default: 0]
    #[arg(long, value_name = "MS", allow_negative_numbers = true, help_heading = "Off-resonance")]
    pub readout_start: Option<f64>,
}

impl TimeArgs {
    /// Refuses numbers that are no times.
    pub fn check(&self) -> Result<()> {
        if let Some(dwell) = self.dwell.filter(|dwell| !(*dwell > 0.0 && dwell.is_finite())) {
            bail!(InvalidArgument, "--dwell is {dwell}: it must be above 0, in microseconds");
        }
        if let Some(start) = self.readout_start.filter(|start| !start.is_finite()) {
            bail!(InvalidArgument, "--readout-start is {start}: it must be a number of milliseconds");
        }
        Ok(())
    }

    /// Seconds at which the first sample of each shot was taken.
    pub fn start(&self) -> f64 {
        1e-3 * self.readout_start.unwrap_or(0.0)
    }

    /// Seconds from one sample to the next, where that was given.
    pub fn dwell(&self) -> Option<f64> {
        self.dwell.map(|us| 1e-6 * us)
    }
}

/// Maps of off-resonance and decay.
#[derive(Args, Default)]
pub struct OffResonanceArgs {
    /// Map of off-resonance in Hz on the encoded matrix (.h5, .mrd, .cfl, .nii, .npy): the image is computed without
    /// the blurring and distortion that it makes. One map for all scans, one a slice or one a scan
    #[arg(long, value_name = "FILE", help_heading = "Off-resonance")]
    pub field_map: Option<PathBuf>,

    /// Map of decay rates R2* in 1/s, none negative, as --field-map
    #[arg(long, value_name = "FILE", help_heading = "Off-resonance")]
    pub decay_map: Option<PathBuf>,

    #[command(flatten)]
    pub times: TimeArgs,
}

impl OffResonanceArgs {
    /// The files that are read.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.field_map.iter().chain(&self.decay_map)
    }

    /// Refuses options that contradict, before a file is read.
    pub fn check(&self) -> Result<()> {
        self.times.check()?;
        if self.files().next().is_none() {
            for (option, given) in
                [("--dwell", self.times.dwell.is_some()), ("--readout-start", self.times.readout_start.is_some())]
            {
                if given {
                    bail!(
                        InvalidArgument,
                        "{option} goes with a map: give --field-map or --decay-map, or leave it out"
                    );
                }
            }
        }
        Ok(())
    }
}

/// The image of a map, its real parts.
struct Volume {
    dims: [usize; 3],
    data: Vec<f32>,
}

/// What a map holds.
#[derive(Clone, Copy, PartialEq)]
pub enum Quantity {
    /// Off-resonance in Hz.
    Field,
    /// Decay rates in 1/s.
    Decay,
}

impl Quantity {
    fn of(self) -> (&'static str, &'static str) {
        match self {
            Quantity::Field => ("off-resonance", "Hz"),
            Quantity::Decay => ("decay rate", "1/s"),
        }
    }

    /// The numbers of an image, which must be real and finite, and rates not negative.
    fn numbers(self, path: &Path, image: &[Complex<f32>]) -> Result<Vec<f32>> {
        let (name, unit) = self.of();
        let mut numbers = try_reserve(image.len(), "a map")?;
        for (i, z) in image.iter().enumerate() {
            if !z.is_finite() {
                bail!(NotFinite, "{}: the {name} of voxel {i} is {}: give 0 where unknown", path.display(), z.re);
            }
            if z.im != 0.0 {
                bail!(
                    InvalidArgument,
                    "{}: the {name} of voxel {i} is complex, {z}: a map holds real numbers in {unit}",
                    path.display()
                );
            }
            if self == Quantity::Decay && z.re < 0.0 {
                bail!(
                    InvalidArgument,
                    "{}: the {name} of voxel {i} is {} {unit}: none may be negative",
                    path.display(),
                    z.re
                );
            }
            numbers.push(z.re);
        }
        Ok(numbers)
    }

    fn read(self, path: &Path) -> Result<Vec<Volume>> {
        let mut volumes = Vec::new();
        for image in &read_images(path)? {
            for channel in 0..image.channels {
                volumes.push(Volume { dims: image.dims, data: self.numbers(path, image.channel(channel))? });
            }
        }
        Ok(volumes)
    }

    /// The only map of a file, of this matrix.
    pub fn read_one(self, path: &Path, matrix: [usize; 3]) -> Result<Vec<f32>> {
        let mut volumes = self.read(path)?;
        if volumes.len() != 1 {
            bail!(SizeMismatch, "{}: {} maps, but one is needed", path.display(), volumes.len());
        }
        let Volume { dims, data } = volumes.remove(0);
        if dims != matrix {
            bail!(
                SizeMismatch,
                "{}: a map of {dims:?} voxels, but --matrix has {matrix:?}: make them equal{}",
                path.display(),
                order_hint(dims, matrix)
            );
        }
        Ok(data)
    }
}

/// The maps of one quantity.
struct Maps {
    /// The data of each on the encoded matrix of the scans that have it.
    data: Vec<Vec<f32>>,
    /// Which one each scan has.
    of_scan: Vec<usize>,
}

impl Maps {
    fn read(path: &Path, quantity: Quantity, scans: &[Scan], resizes: &[Resize]) -> Result<Maps> {
        let volumes = quantity.read(path)?;
        let mut slices: Vec<u16> = scans.iter().map(|s| s.index.slice).collect();
        slices.sort_unstable();
        slices.dedup();
        let rank = |scan: &Scan| slices.iter().position(|&s| s == scan.index.slice).unwrap_or(0);
        let of_scan: Vec<usize> = match volumes.len() {
            1 => vec![0; scans.len()],
            n if n == slices.len() => scans.iter().map(rank).collect(),
            n if n == scans.len() => (0..n).collect(),
            n => bail!(
                SizeMismatch,
                "{}: {n} maps, but the scans have {} slices and are {}: give one map for all, one a slice or one a \
                 scan",
                path.display(),
                slices.len(),
                scans.len()
            ),
        };
        let mut data: Vec<Vec<f32>> = volumes.iter().map(|_| Vec::new()).collect();
        let mut made: Vec<Option<Resize>> = vec![None; volumes.len()];
        for (&map, resize) in of_scan.iter().zip(resizes) {
            if made[map].is_some_and(|before| before == *resize) {
                continue;
            }
            let volume = &volumes[map];
            let fits = volume.dims == resize.encoded();
            // Beyond the reconstructed matrix there is nothing, where its voxels are the encoded ones.
            let cut = volume.dims == resize.wanted() && resize.keeps_voxels();
            if !(fits || cut) {
                bail!(
                    SizeMismatch,
                    "{}: a map of {:?} voxels, but the encoded matrix of the scan is {:?}, the reconstructed one {:?}: \
                     give a map on the encoded matrix, or on the reconstructed one where its voxels are as large{}",
                    path.display(),
                    volume.dims,
                    resize.encoded(),
                    resize.wanted(),
                    order_hint(volume.dims, resize.encoded())
                );
            }
            if let Some(before) = made[map] {
                if fits && before.encoded() == resize.encoded() {
                    continue;
                }
                bail!(
                    SizeMismatch,
                    "{}: one map for scans whose matrices differ, {:?} and {:?}: choose some by --slice and \
                     --repetition",
                    path.display(),
                    before.encoded(),
                    resize.encoded()
                );
            }
            data[map] = match fits {
                true => volume.data.clone(),
                false => {
                    let complex = volume.data.iter().map(|&x| Complex::new(x, 0.0)).collect();
                    resize.undo(complex)?.iter().map(|z| z.re).collect()
                }
            };
            made[map] = Some(*resize);
        }
        let (name, unit) = quantity.of();
        let ends = data.iter().flatten().fold((f32::MAX, f32::MIN), |(low, high), &x| (low.min(x), high.max(x)));
        log::info!("{}: {name} from {} to {} {unit}", path.display(), ends.0, ends.1);
        Ok(Maps { data, of_scan })
    }
}

/// The maps of all scans.
#[derive(Default)]
pub struct OffResonance<'a> {
    times: Option<&'a TimeArgs>,
    field: Option<Maps>,
    decay: Option<Maps>,
}

/// Off-resonance, decay and times of one scan, in the precision of the computation.
pub struct OfScan<T> {
    pub field_map: Option<Vec<T>>,
    pub decay_map: Option<Vec<T>>,
    pub times: Vec<T>,
}

impl<'a> OffResonance<'a> {
    /// Reads the maps that the options name, and checks that the scans have times.
    pub fn read(args: &'a OffResonanceArgs, scans: &[Scan], resizes: &[Resize]) -> Result<Self> {
        let read = |path: &Option<PathBuf>, quantity| {
            path.as_ref().map(|path| Maps::read(path, quantity, scans, resizes)).transpose()
        };
        if args.files().next().is_some() {
            scans.iter().try_for_each(|scan| check_times(scan, &args.times))?;
        }
        Ok(OffResonance {
            times: Some(&args.times),
            field: read(&args.field_map, Quantity::Field)?,
            decay: read(&args.decay_map, Quantity::Decay)?,
        })
    }

    /// Checks that calibration data have times, if there are maps.
    pub fn check(&self, calibration: &Scan) -> Result<()> {
        self.times.filter(|_| self.is_there()).map_or(Ok(()), |args| check_times(calibration, args))
    }

    fn maps(&self) -> impl Iterator<Item = &Maps> {
        self.field.iter().chain(&self.decay)
    }

    /// Whether there are maps.
    pub fn is_there(&self) -> bool {
        self.maps().next().is_some()
    }

    /// Whether two scans have the same maps and times.
    pub fn same(&self, scans: &[Scan], a: usize, b: usize) -> bool {
        let times = |i: usize| (&scans[i].times, &scans[i].skipped_per_shot, &scans[i].samples_per_shot);
        !self.is_there() || times(a) == times(b) && self.maps().all(|maps| maps.of_scan[a] == maps.of_scan[b])
    }

    /// Those of scan number `i`, of which `scan` is all or some shots.
    pub fn of<T: Real>(&self, i: usize, scan: &Scan) -> Result<Option<OfScan<T>>> {
        let Some(args) = self.times.filter(|_| self.is_there()) else { return Ok(None) };
        let cast = |maps: &Maps| -> Result<Vec<T>> {
            let data = &maps.data[maps.of_scan[i]];
            let mut map = try_vec(data.len(), T::ZERO, "a map")?;
            map.iter_mut().zip(data).for_each(|(to, &from)| *to = T::of(f64::from(from)));
            Ok(map)
        };
        let mut times = try_reserve(scan.samples(), "the times of samples")?;
        match args.dwell() {
            Some(dwell) => {
                for (&count, &skipped) in scan.samples_per_shot.iter().zip(&scan.skipped_per_shot) {
                    times.extend((skipped..skipped + count).map(|m| T::of(args.start() + dwell * m as f64)));
                }
            }
            None => times.extend(scan.times.iter().map(|&t| T::of(args.start() + f64::from(t)))),
        }
        Ok(Some(OfScan {
            field_map: self.field.as_ref().map(cast).transpose()?,
            decay_map: self.decay.as_ref().map(cast).transpose()?,
            times,
        }))
    }
}

/// Refuses scans whose samples have no times.
fn check_times(scan: &Scan, args: &TimeArgs) -> Result<()> {
    if scan.trajectory == TrajectoryKind::Epi {
        bail!(
            Unsupported,
            "{}: the trajectory is echo-planar: the lines of an echo train begin at different times after the \
             excitation, which the file does not say: maps of off-resonance and decay cannot be used",
            name(scan)
        );
    }
    let mut first = 0;
    for &count in &scan.samples_per_shot {
        if args.dwell.is_none() && count > 1 && scan.times[first + 1] <= scan.times[first] {
            bail!(
                InvalidArgument,
                "{}: the file has no sample time, which maps of off-resonance and decay need: give --dwell, the \
                 microseconds from one sample of a shot to the next",
                name(scan)
            );
        }
        first += count;
    }
    Ok(())
}

/// A smooth map on a matrix: a bump of `hz` towards rising y, as at an air cavity, and -hz / 2 far from it.
pub fn smooth_map(matrix: [usize; 3], hz: f64) -> Result<Vec<f64>> {
    /// The centre of the bump, and twice the square of its width, where the field of view is from -1 to 1.
    const BUMP: ([f64; 3], f64) = ([0.0, 0.6, 0.0], 0.4);
    let mut map = try_vec(matrix.iter().product(), 0.0, "a map")?;
    for (i, value) in map.iter_mut().enumerate() {
        let index = [i % matrix[0], i / matrix[0] % matrix[1], i / matrix[0] / matrix[1]];
        let along = |axis: usize| {
            let n = matrix[axis];
            (2.0 * (index[axis] as f64 - (n / 2) as f64) / n as f64 - BUMP.0[axis]).powi(2)
        };
        *value = hz * (1.5 * (-(along(0) + along(1) + along(2)) / BUMP.1).exp() - 0.5);
    }
    Ok(map)
}

/// A map as an image.
pub fn image_of(matrix: [usize; 3], map: &[f64]) -> Result<Image> {
    Image::new(matrix, 1, map.iter().map(|&x| Complex::new(x as f32, 0.0)).collect())
}
