//! The input of a plan: the trajectory, the image, the coils, and the model that relates samples to voxels.

use crate::base::error::{bail, checked_product, Result};
use crate::base::memory::Aligned;
use crate::base::off_resonance::{OffResonance, OffResonanceRange};
use crate::base::real::Real;
use crate::base::warning::{Warning, WarningKind};
use crate::base::workers::{
    collect, each_chunk, find_first, fold, unwritten_arrays, SerialExecutor, SharedSlice, Workers,
};
use num_complex::Complex;
use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::Range;

/// Maximum distance of a k-space coordinate from [-0.5, 0.5], as rounding can cause. The coordinate is replaced by the
/// nearest edge.
pub const EDGE_ROUNDING: f64 = 1e-6;

/// Name of plans whose geometry must be in host memory, for [`Geometry::check_on_host`].
pub(crate) const CPU_OR_SEVERAL_GPUS: &str = "a plan on the CPU or on several GPUs";

/// The largest |k|, as a fraction of the 0.5 that the image's size could resolve, below which a plan warns.
const MIN_EXTENT: f64 = 0.25;

/// Returns whether a k-space coordinate is in [-0.5, 0.5], within [`EDGE_ROUNDING`].
pub fn in_range(k: f64) -> bool {
    k.abs() <= 0.5 + EDGE_ROUNDING
}

/// Returns the equivalent coordinate in [-0.5, 0.5); `None` if `k` is further outside than by rounding. 0.5 is
/// equivalent to -0.5 because voxels are at integer positions.
pub fn wrap_coordinate(k: f32) -> Option<f32> {
    match k {
        k if (-0.5..0.5).contains(&k) => Some(k),
        k if in_range(k as f64) => Some(-0.5),
        _ => None,
    }
}

/// The shape of a voxel, whose Fourier transform phi(k) multiplies the samples of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum VoxelBasis {
    /// A point: phi = 1.
    #[default]
    Point,
    /// A box of one voxel: phi = product over axes of sin(pi k)/(pi k).
    Box,
}

/// A scan in arrays of the caller, which are read only while the plan is created.
///
/// The model of coil c is s_c(m) = sum_r phi(k_m) S_c(r) x(r) exp(-i 2 pi (k_m.r + f(r) t_m) - R(r) t_m), with r =
/// index - floor(n/2) on each axis. In all arrays x varies fastest.
#[derive(Debug, Clone)]
pub struct Geometry<'a, T: Real> {
    /// Image size, [nx, ny] or [nx, ny, nz].
    pub dims: Vec<usize>,
    /// k-space coordinates in cycles per voxel, within [-0.5, 0.5]: one slice of [samples] per axis. A coordinate
    /// outside by at most [`EDGE_ROUNDING`] is replaced by the edge.
    pub coordinates: Vec<&'a [T]>,
    /// Non-negative density weights, [samples]; `None` means all 1.
    pub weights: Option<&'a [T]>,
    /// Receive coils.
    pub coils: usize,
    /// Coil sensitivity maps, [nx, ny, nz, coils]. With maps, coils are combined into one image; with `None`, each coil
    /// has an image.
    pub coil_maps: Option<&'a [Complex<T>]>,
    /// Frames measured on this trajectory, reconstructed independently.
    pub frames: usize,
    /// Voxel positions in voxels, one slice per axis, which replace the grid of `dims`; `None` for the grid. Requires
    /// method exact.
    pub voxels: Option<Vec<&'a [T]>>,
    /// The shape of a voxel.
    pub basis: VoxelBasis,
    /// Off-resonance f in Hz, [nx, ny, nz], which adds the factor exp(-i 2 pi f(r) t_m) to the model. Requires `times`.
    pub field_map: Option<&'a [T]>,
    /// Non-negative decay rates R (R2*) in 1/s, [nx, ny, nz], which add the factor exp(-R(r) t_m) to the model.
    /// Requires `times`.
    pub decay_map: Option<&'a [T]>,
    /// Time t_m of each sample in seconds from the excitation, or from the echo, [samples]. Requires a field map or
    /// decay map.
    pub times: Option<&'a [T]>,
    /// Coordinates, weights and coil maps in the memory of the plan's GPU, which replace those on the host; `None` if
    /// all arrays are on the host. Requires a plan on one GPU, and no field map, decay map or list of voxels.
    pub on_device: Option<DeviceGeometry<'a, T>>,
}

/// Arrays of a geometry in the memory of a GPU.
#[derive(Debug, Clone)]
pub struct DeviceGeometry<'a, T: Real> {
    /// Address of the first coordinate of each axis.
    pub(crate) coordinates: Vec<usize>,
    pub(crate) samples: usize,
    /// Number of elements from a coordinate to the next.
    pub(crate) stride: usize,
    /// Address of the density weights; `None` means all 1.
    pub(crate) weights: Option<usize>,
    /// Address of the coil maps; `None` without coil maps.
    pub(crate) coil_maps: Option<usize>,
    arrays: PhantomData<&'a T>,
}

impl<T: Real> DeviceGeometry<'_, T> {
    /// Describes coordinates in cycles per voxel: `samples` numbers at each address, one address per axis, `stride`
    /// elements apart (1 for contiguous arrays).
    ///
    /// # Safety
    /// The numbers must exist at these addresses in the memory of the plan's GPU. During 'a, only work that was queued
    /// earlier on the plan's stream ([`crate::Options::stream`]) may write them.
    pub unsafe fn new(coordinates: &[*const T], samples: usize, stride: usize) -> Self {
        let coordinates = coordinates.iter().map(|k| k.addr()).collect();
        DeviceGeometry { coordinates, samples, stride, weights: None, coil_maps: None, arrays: PhantomData }
    }

    /// Sets the density weights, [samples].
    ///
    /// # Safety
    /// As for [`DeviceGeometry::new`].
    #[must_use]
    pub unsafe fn weights(mut self, weights: *const T) -> Self {
        self.weights = Some(weights.addr());
        self
    }

    /// Sets the coil maps, [nx, ny, nz, coils].
    ///
    /// # Safety
    /// As for [`DeviceGeometry::new`].
    #[must_use]
    pub unsafe fn coil_maps(mut self, maps: *const Complex<T>) -> Self {
        self.coil_maps = Some(maps.addr());
        self
    }
}

impl<'a, T: Real> Geometry<'a, T> {
    /// Creates a geometry with one coil, one frame, no weights and point voxels.
    pub fn new(dims: &[usize], coordinates: &[&'a [T]]) -> Self {
        Geometry {
            dims: dims.to_vec(),
            coordinates: coordinates.to_vec(),
            weights: None,
            coils: 1,
            coil_maps: None,
            frames: 1,
            voxels: None,
            basis: VoxelBasis::Point,
            field_map: None,
            decay_map: None,
            times: None,
            on_device: None,
        }
    }

    /// Sets the density weights.
    #[must_use]
    pub fn weights(mut self, weights: &'a [T]) -> Self {
        self.weights = Some(weights);
        self
    }

    /// Sets the number of coils.
    #[must_use]
    pub fn coils(mut self, coils: usize) -> Self {
        self.coils = coils;
        self
    }

    /// Sets the coil sensitivities.
    #[must_use]
    pub fn coil_maps(mut self, maps: &'a [Complex<T>]) -> Self {
        self.coil_maps = Some(maps);
        self
    }

    /// Sets the off-resonance in Hz and the time of each sample in seconds.
    #[must_use]
    pub fn field_map(mut self, frequencies: &'a [T], times: &'a [T]) -> Self {
        self.field_map = Some(frequencies);
        self.times = Some(times);
        self
    }

    /// Returns the ranges of off-resonance, decay and times; `None` without a map. Fails if a value is invalid.
    pub(crate) fn band(&self) -> Result<Option<OffResonanceRange>> {
        self.off_resonance().map(|maps| maps.band(&SerialExecutor, self.coil_maps)).transpose()
    }

    /// Returns the maps of off-resonance and decay with the sample times; `None` without a map.
    pub(crate) fn off_resonance(&self) -> Option<OffResonance<'a, T>> {
        let Geometry { field_map, decay_map, times, .. } = *self;
        let times = times.filter(|_| field_map.is_some() || decay_map.is_some())?;
        Some(OffResonance { field_map, decay_map, times })
    }

    /// Returns the number of samples of one coil and frame.
    pub fn samples(&self) -> usize {
        match &self.on_device {
            Some(device) => device.samples,
            None => self.coordinates.first().map_or(0, |k| k.len()),
        }
    }

    /// Returns whether the geometry has density weights, on the host or on a GPU.
    pub(crate) fn has_weights(&self) -> bool {
        self.weights.is_some() || self.on_device.as_ref().is_some_and(|device| device.weights.is_some())
    }

    /// Returns whether the geometry has coil maps, on the host or on a GPU.
    pub(crate) fn has_coil_maps(&self) -> bool {
        self.coil_maps.is_some() || self.on_device.as_ref().is_some_and(|device| device.coil_maps.is_some())
    }

    /// Returns `Unsupported` if arrays are on a GPU.
    pub(crate) fn check_on_host(&self, what: &str) -> Result<()> {
        match &self.on_device {
            None => Ok(()),
            Some(_) => bail!(
                Unsupported,
                "{what} cannot use a geometry in the memory of a GPU: give its arrays in host memory"
            ),
        }
    }

    /// Checks the sizes of arrays on a GPU, and that all arrays that must be there are.
    fn check_device_sizes(&self, device: &DeviceGeometry<'_, T>) -> Result<()> {
        let ndim = self.dims.len();
        if device.coordinates.len() != ndim {
            bail!(
                SizeMismatch,
                "{} coordinate arrays for {ndim} dimensions: give one per axis",
                device.coordinates.len()
            );
        }
        if !self.coordinates.is_empty() || self.weights.is_some() || self.coil_maps.is_some() {
            bail!(
                InvalidArgument,
                "the geometry has arrays on the host and on a GPU: give coordinates, weights and coil maps all on the GPU"
            );
        }
        if self.voxels.is_some() || self.field_map.is_some() || self.decay_map.is_some() || self.times.is_some() {
            bail!(
                Unsupported,
                "lists of voxels, field maps, decay maps and times cannot be used with a geometry in the memory of a \
                 GPU: give all arrays of the geometry in host memory"
            );
        }
        if device.stride == 0 {
            bail!(InvalidSize, "the stride of the coordinates is 0: the smallest is 1");
        }
        checked_product(&[device.samples, device.stride], "the coordinates").map(|_| ())
    }

    /// Returns the number of voxels of one image.
    pub fn voxel_count(&self) -> usize {
        match &self.voxels {
            Some(lists) => lists.first().map_or(0, |r| r.len()),
            None => self.dims.iter().product(),
        }
    }

    /// Checks all sizes and values.
    pub fn check(&self) -> Result<()> {
        self.check_sizes()?;
        self.check_on_host("this computation")?;
        self.check_numbers(&SerialExecutor).map(|_| ())
    }

    /// Checks sizes only, in constant time.
    pub(crate) fn check_sizes(&self) -> Result<()> {
        check_dims(&self.dims)?;
        let ndim = self.dims.len();
        if let Some(device) = &self.on_device {
            self.check_device_sizes(device)?;
        } else if self.coordinates.len() != ndim {
            bail!(
                SizeMismatch,
                "{} coordinate arrays for {ndim} dimensions: give one per axis",
                self.coordinates.len()
            );
        }
        let samples = self.samples();
        if samples == 0 {
            bail!(InvalidSize, "there are no samples: a plan needs at least one");
        }
        if self.coils == 0 || self.frames == 0 {
            bail!(InvalidSize, "{} coils and {} frames: at least one of each is needed", self.coils, self.frames);
        }
        if let Some((axis, k)) = self.coordinates.iter().enumerate().find(|(_, k)| k.len() != samples) {
            bail!(
                SizeMismatch,
                "{} coordinates on axis {axis}, but {samples} on axis 0: every sample needs one on each axis",
                k.len()
            );
        }
        if let Some(w) = self.weights {
            check_weight_count(w.len(), samples)?;
        }
        if let Some(lists) = &self.voxels {
            if lists.len() != ndim {
                bail!(
                    SizeMismatch,
                    "{} lists of voxel positions for {ndim} dimensions: give one per axis",
                    lists.len()
                );
            }
            if lists[0].is_empty() {
                bail!(InvalidSize, "the voxel list is empty: give at least one position, or none for the whole grid");
            }
            for r in lists {
                check_len("voxel positions on an axis", r.len(), lists[0].len(), "the number on axis 0")?;
            }
        }
        let voxels = self.voxel_count();
        checked_product(&[voxels, self.coils, self.frames], "the images")?;
        checked_product(&[samples, self.coils, self.frames], "the k-space data")?;
        if let Some(maps) = self.coil_maps {
            check_map_len(maps.len(), voxels * self.coils)?;
        }
        self.check_off_resonance(voxels, samples)
    }

    /// Checks the sizes of the maps and sample times.
    pub(crate) fn check_off_resonance(&self, voxels: usize, samples: usize) -> Result<()> {
        if let Some(map) = self.field_map {
            check_len("off-resonance frequencies", map.len(), voxels, "one per voxel")?;
        }
        if let Some(map) = self.decay_map {
            check_len("decay rates", map.len(), voxels, "one per voxel")?;
        }
        let maps = self.field_map.is_some() || self.decay_map.is_some();
        match self.times {
            Some(_) if !maps => bail!(
                InvalidArgument,
                "times were given without a field map or a decay map: give one of these, or leave times out"
            ),
            Some(times) => check_len("sample times", times.len(), samples, "one per sample")?,
            None if maps => bail!(
                InvalidArgument,
                "a field map or decay map was given without times: give the times of all {samples} samples in seconds"
            ),
            None => {}
        }
        Ok(())
    }

    /// Checks all values. Sizes must have been checked.
    pub(crate) fn check_numbers(&self, workers: &dyn Workers) -> Result<InputRanges> {
        let coordinates = self.coordinates.iter().map(|k| min_max(workers, k)).collect();
        self.check_ranges(workers, coordinates)
    }

    /// Checks all values, given the [`min_max`] of the coordinates of each axis.
    fn check_ranges(&self, workers: &dyn Workers, coordinates: Vec<[f64; 2]>) -> Result<InputRanges> {
        for (axis, (k, range)) in self.coordinates.iter().zip(&coordinates).enumerate() {
            let all_valid = range.iter().all(|&k| in_range(k));
            let first = if all_valid { None } else { k.iter().position(|k| !in_range(k.wide())) };
            check_coordinates(axis, first.map(|m| (m, k[m])))?;
        }
        let weight = self.weights.map(|w| check_weights(workers, w)).transpose()?;
        self.check_voxels()?;
        let map = self.coil_maps.map(|maps| check_coil_maps(workers, maps)).transpose()?;
        Ok(InputRanges { coordinates, weight, map })
    }

    /// Checks the positions of a list of voxels.
    pub(crate) fn check_voxels(&self) -> Result<()> {
        for (axis, r) in self.voxels.iter().flatten().enumerate() {
            let limit = 1.0 / (32.0 * T::EPSILON);
            if let Some(i) = r.iter().position(|r| !(r.magnitude().wide() <= limit)) {
                if !r[i].finite() {
                    bail!(NotFinite, "position of voxel {i} on axis {axis} is {}: it must be a number", r[i]);
                }
                bail!(
                    InvalidArgument,
                    "position of voxel {i} on axis {axis} is {}: {} resolves the phase k.r for positions up to \
                     {limit:.0} voxels. Positions are in voxels from the centre of the field of view{}",
                    r[i],
                    T::NAME,
                    if T::EPSILON > f64::EPSILON { "; double precision supports larger ones" } else { "" }
                );
            }
        }
        Ok(())
    }
}

impl<'a, T: Real> Geometry<'a, T> {
    /// Returns the coordinates within [-0.5, 0.5), copied if some are outside. Voxels of a grid are at integers, for
    /// which 0.5 is equivalent to -0.5. For a list of voxels, 0.5 becomes the largest number below. `ranges` are the
    /// `coordinates` of [`InputRanges`].
    pub(crate) fn coordinates_within(&self, workers: &dyn Workers, ranges: &[[f64; 2]]) -> Result<Vec<Cow<'a, [T]>>> {
        let axis = |(&k, &range): (&&'a [T], &[f64; 2])| {
            if is_in_range(range) {
                return Ok(Cow::Borrowed(k));
            }
            collect(workers, k.len(), "the coordinates", |m| self.within(k[m])).map(Cow::Owned)
        };
        self.coordinates.iter().zip(ranges).map(axis).collect()
    }

    /// Checks all values, as [`Geometry::check_numbers`] does. Also returns copies of the coordinates within
    /// [-0.5, 0.5), see [`Geometry::coordinates_within`]. Reads the coordinates once, which takes less time than a
    /// check and a copy.
    pub(crate) fn checked_copies(&self, workers: &dyn Workers) -> Result<(Vec<Aligned<T>>, InputRanges)> {
        let (mut copies, ranges) = copied_with_range(workers, &self.coordinates, "the coordinates")?;
        let ranges = self.check_ranges(workers, ranges)?;
        for (copy, &range) in copies.iter_mut().zip(&ranges.coordinates) {
            if is_in_range(range) {
                continue;
            }
            let (len, copy) = (copy.len(), SharedSlice::new(copy));
            each_chunk(workers, len, |_, chunk| {
                // SAFETY: chunks do not overlap.
                let chunk = unsafe { copy.part(chunk.start, chunk.len()) };
                chunk.iter_mut().for_each(|k| *k = self.within(*k));
            });
        }
        Ok((copies, ranges))
    }

    /// Returns the coordinate within [-0.5, 0.5) of a valid coordinate.
    fn within(&self, k: T) -> T {
        match k {
            k if k < T::of(-0.5) => T::of(-0.5),
            k if k >= T::of(0.5) => self.top(),
            k => k,
        }
    }

    /// Returns the coordinate that replaces 0.5, see [`Geometry::coordinates_within`].
    pub(crate) fn top(&self) -> T {
        if self.voxels.is_some() {
            T::below_half()
        } else {
            T::of(-0.5)
        }
    }

    /// Returns a warning if k covers less than the image's size suggests. Axes of one voxel are ignored, and a list of
    /// voxels has no known size. `ranges` are the `coordinates` of [`InputRanges`].
    pub(crate) fn extent_warning(&self, ranges: &[[f64; 2]]) -> Option<Warning> {
        if self.voxels.is_some() {
            return None;
        }
        let short_axis = |(axis, (&range, &n)): (usize, (&[f64; 2], &usize))| {
            let largest = reach(range);
            (n > 1 && largest < 0.5 * MIN_EXTENT).then(|| {
                format!("|k| on axis {axis} is at most {largest:.4} cycles per voxel, but {n} voxels can resolve 0.5")
            })
        };
        let short_axes: Vec<String> = ranges.iter().zip(&self.dims).enumerate().filter_map(short_axis).collect();
        (!short_axes.is_empty()).then(|| Warning {
            kind: WarningKind::Extent,
            message: format!(
                "{}: the image will be blurred. Coordinates must be in cycles per voxel, up to 0.5: check that they \
                 were not divided by the image's size twice. If the scan covers no more, use fewer voxels",
                short_axes.join(", ")
            ),
        })
    }
}

/// Ranges of the values of a geometry, found while they are checked.
pub(crate) struct InputRanges {
    /// Smallest and largest k of each axis, see [`min_max`].
    pub coordinates: Vec<[f64; 2]>,
    /// Largest weight; `None` without weights.
    pub weight: Option<f64>,
    /// Upper bound of the real and imaginary parts of coil maps; `None` without maps.
    pub map: Option<f64>,
}

/// Range of an array, and its first invalid value.
pub struct CheckedValues<T> {
    /// Minimum and maximum of the values and 0; unspecified if a value is invalid.
    pub range: [f64; 2],
    /// Index and value of the first invalid value; `None` if all are valid.
    pub invalid: Option<(usize, T)>,
}

/// Returns an error if there is an invalid coordinate, with its index and value.
pub(crate) fn check_coordinates<T: Real>(axis: usize, invalid: Option<(usize, T)>) -> Result<()> {
    match invalid {
        None => Ok(()),
        Some((m, k)) if !k.finite() => {
            bail!(NotFinite, "coordinate of sample {m} on axis {axis} is {k}: it must be a number")
        }
        Some((m, k)) => bail!(
            CoordinateOutOfRange,
            "coordinate of sample {m} on axis {axis} is {k}, outside [-0.5, 0.5] cycles per voxel: divide \
             coordinates in cycles per field of view by the image's size, radians by 2 pi"
        ),
    }
}

/// Returns an error if there is an invalid density weight, with its index and value.
pub(crate) fn check_weight<T: Real>(invalid: Option<(usize, T)>) -> Result<()> {
    match invalid {
        None => Ok(()),
        Some((m, w)) if !w.finite() => bail!(NotFinite, "density weight {m} is {w}: it must be a number"),
        Some((m, w)) => bail!(InvalidArgument, "density weight {m} is {w}: weights must not be negative"),
    }
}

/// Returns the minimum and the maximum of `k` and 0; NaN if a value or the sum of all values is not finite.
pub(crate) fn min_max<T: Real>(workers: &dyn Workers, k: &[T]) -> [f64; 2] {
    fold(workers, k.len(), [0.0; 2], |range| min_max_of_slice(&k[range]), merge_ranges)
}

/// Returns the range of two parts of an array. NaN is preserved.
fn merge_ranges(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    match a[0].is_nan() || b[0].is_nan() {
        true => [f64::NAN; 2],
        false => [a[0].min(b[0]), a[1].max(b[1])],
    }
}

/// Copies arrays of equal length, and returns the [`min_max`] of each.
fn copied_with_range<T: Real>(
    workers: &dyn Workers,
    arrays: &[&[T]],
    what: &str,
) -> Result<(Vec<Aligned<T>>, Vec<[f64; 2]>)> {
    /// Number of elements that are copied while they are in cache.
    const BLOCK: usize = 2048;
    const MAX_AXES: usize = 3;
    let len = arrays[0].len();
    let mut copies = unwritten_arrays(arrays.len(), len, what)?;
    let shared: Vec<SharedSlice<T>> = copies.iter_mut().map(|copy| SharedSlice::new(copy)).collect();
    let copy_part = |range: Range<usize>| {
        let mut totals = [[0.0; 2]; MAX_AXES];
        for ((copy, array), total) in shared.iter().zip(arrays).zip(&mut totals) {
            for start in range.clone().step_by(BLOCK) {
                let block = start..range.end.min(start + BLOCK);
                *total = merge_ranges(*total, min_max_of_slice(&array[block.clone()]));
                // SAFETY: parts do not overlap, nor do their blocks.
                unsafe { copy.part(block.start, block.len()) }.copy_from_slice(&array[block]);
            }
        }
        totals
    };
    let merge = |a: [[f64; 2]; MAX_AXES], b: [[f64; 2]; MAX_AXES]| std::array::from_fn(|i| merge_ranges(a[i], b[i]));
    // One loop for all axes, because threads take as long to start a loop as to copy 20,000 numbers.
    let ranges = fold(workers, len, [[0.0; 2]; MAX_AXES], copy_part, merge);
    drop(shared);
    Ok((copies, ranges[..arrays.len()].to_vec()))
}

fn min_max_of_slice<T: Real>(k: &[T]) -> [f64; 2] {
    // Separate lanes are used because the compiler does not vectorise a single running maximum.
    const LANES: usize = 32;
    let (mut least, mut largest, mut sums) = ([T::ZERO; LANES], [T::ZERO; LANES], [T::ZERO; LANES]);
    let mut scan = |some: &[T]| {
        for (((&k, least), largest), sum) in some.iter().zip(&mut least).zip(&mut largest).zip(&mut sums) {
            *least = if k < *least { k } else { *least };
            *largest = if k > *largest { k } else { *largest };
            *sum += k;
        }
    };
    let chunks = k.chunks_exact(LANES);
    scan(chunks.remainder());
    chunks.for_each(scan);
    if !sums.iter().all(|sum| sum.finite()) {
        return [f64::NAN; 2];
    }
    [least.map(T::wide).into_iter().fold(0.0, f64::min), largest.map(T::wide).into_iter().fold(0.0, f64::max)]
}

/// Returns whether all k of an axis with this [`min_max`] are in [-0.5, 0.5).
pub(crate) fn is_in_range([least, largest]: [f64; 2]) -> bool {
    least >= -0.5 && largest < 0.5
}

/// Returns the largest |k| of an axis with this [`min_max`].
pub(crate) fn reach([least, largest]: [f64; 2]) -> f64 {
    largest.max(-least)
}

/// Checks the size of an image.
pub(crate) fn check_dims(dims: &[usize]) -> Result<()> {
    let ndim = dims.len();
    if ndim != 2 && ndim != 3 {
        bail!(InvalidSize, "the image has {ndim} dimensions: 2 or 3 are supported");
    }
    if let Some(axis) = dims.iter().position(|&n| n == 0) {
        bail!(InvalidSize, "the image's size on axis {axis} is 0: every axis needs at least one voxel");
    }
    if let Some(axis) = dims.iter().position(|&n| n > 1 << 24) {
        bail!(
            SizeOverflow,
            "the image's size on axis {axis} is {}: at most {} voxels per axis are supported",
            dims[axis],
            1 << 24
        );
    }
    checked_product(dims, "the image").map(|_| ())
}

/// Returns the largest weight, or an error if a weight is not finite or is negative.
pub(crate) fn check_weights<T: Real>(workers: &dyn Workers, w: &[T]) -> Result<f64> {
    let [least, largest] = min_max(workers, w);
    if least >= 0.0 {
        return Ok(largest);
    }
    let first = w.iter().position(|w| !(w.finite() && *w >= T::ZERO));
    check_weight(first.map(|m| (m, w[m])))?;
    // Only the sum of the weights overflows.
    Ok(w.iter().map(|w| w.wide()).fold(0.0, f64::max))
}

pub(crate) fn check_weight_count(count: usize, samples: usize) -> Result<()> {
    check_len("density weights", count, samples, "one per sample")
}

/// Name of an element of coil maps in messages.
pub(crate) const COIL_SENSITIVITY: &str = "coil sensitivity";
/// Normal maps are below this limit and read once. Only unusually large values are measured.
pub(crate) const NORMAL_MAP_LIMIT: f64 = 1e3;

/// Returns an upper bound of the real and imaginary parts of coil maps, or an error if a value is not finite.
pub(crate) fn check_coil_maps<T: Real>(workers: &dyn Workers, maps: &[Complex<T>]) -> Result<f64> {
    let first = |limit| Ok(first_exceeding(workers, maps, limit));
    Ok(match check_below(COIL_SENSITIVITY, T::of(NORMAL_MAP_LIMIT), first)? {
        true => NORMAL_MAP_LIMIT,
        false => maps.iter().map(|s| s.re.wide().abs().max(s.im.wide().abs())).fold(NORMAL_MAP_LIMIT, f64::max),
    })
}

pub(crate) fn check_map_len(len: usize, expected: usize) -> Result<()> {
    check_len("coil sensitivities", len, expected, "voxels times coils")
}

/// Checks a length. `why` explains the expected length in the error.
pub(crate) fn check_len(what: &str, len: usize, expected: usize, why: &str) -> Result<()> {
    if len != expected {
        bail!(SizeMismatch, "{len} {what} were given, {expected} are needed ({why})");
    }
    Ok(())
}

/// Returns the index and value of the first number whose real or imaginary part is NaN or not below `limit` in
/// magnitude.
pub(crate) fn first_exceeding<T: Real>(
    workers: &dyn Workers,
    values: &[Complex<T>],
    limit: T,
) -> Option<(usize, Complex<T>)> {
    let beyond = |z: &Complex<T>| !(z.re.magnitude() < limit) | !(z.im.magnitude() < limit);
    let search = |range: Range<usize>| {
        // The whole chunk is tested, so that the compiler vectorises the loop.
        let any = values[range.clone()].iter().fold(false, |any, z| any | beyond(z));
        any.then(|| range.start + values[range].iter().position(beyond).expect("the chunk contains one"))
    };
    find_first(workers, values.len(), search).map(|at| (at, values[at]))
}

/// Returns whether all numbers are below `limit` in magnitude. Fails at NaN and infinity, with the index of the first.
/// `first` is [`first_exceeding`] on the device of the numbers.
pub(crate) fn check_below<T: Real>(
    what: &str,
    limit: T,
    first: impl Fn(T) -> Result<Option<(usize, Complex<T>)>>,
) -> Result<bool> {
    if first(limit)?.is_none() {
        return Ok(true);
    }
    if let Some((i, z)) = first(T::of(f64::INFINITY))? {
        bail!(NotFinite, "{what} {i} is {} + {}i: it must be a number", z.re, z.im);
    }
    Ok(false)
}

/// Returns an error with the index of the first value that is NaN or infinite.
pub(crate) fn check_finite<T: Real>(what: &str, values: &[Complex<T>]) -> Result<()> {
    check_below(what, T::of(f64::INFINITY), |limit| Ok(first_exceeding(&SerialExecutor, values, limit))).map(|_| ())
}
