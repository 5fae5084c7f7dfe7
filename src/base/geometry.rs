//! The input of a plan: the trajectory, the image, the coils, and the model that relates samples to voxels.

use crate::base::error::{bail, checked_product, Result};
use crate::base::off_resonance::{Band, OffResonance};
use crate::base::real::Real;
use crate::base::warning::{Warning, WarningKind};
use crate::base::workers::{collect, first, fold, Alone, Workers};
use num_complex::Complex;
use std::borrow::Cow;
use std::ops::Range;

/// How far rounding may move a k-space coordinate out of [-0.5, 0.5]: it is then taken for the end.
pub const EDGE_ROUNDING: f64 = 1e-6;

/// The reach of k, as a fraction of the 0.5 that the image's size could resolve, below which a plan warns.
const LEAST_EXTENT: f64 = 0.25;

/// Whether a k-space coordinate lies in [-0.5, 0.5], within [`EDGE_ROUNDING`].
pub fn in_range(k: f64) -> bool {
    k.abs() <= 0.5 + EDGE_ROUNDING
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

/// A scan, in arrays of the caller, which are read only while a plan is made.
///
/// The model of coil c is s_c(m) = sum_r phi(k_m) S_c(r) x(r) exp(-i 2 pi (k_m.r + f(r) t_m) - R(r) t_m), with
/// r = index - floor(n/2) on each axis. Arrays have x fastest.
#[derive(Debug, Clone)]
pub struct Geometry<'a, T: Real> {
    /// Image size, [nx, ny] or [nx, ny, nz].
    pub dims: Vec<usize>,
    /// k-space coordinates in cycles per voxel, within [-0.5, 0.5]: one slice of [samples] an axis. A coordinate that
    /// is outside by at most [`EDGE_ROUNDING`] is taken for the edge.
    pub coordinates: Vec<&'a [T]>,
    /// Density weights, none negative, of [samples].
    pub weights: Option<&'a [T]>,
    /// Receive coils.
    pub coils: usize,
    /// Coil sensitivity maps, [nx, ny, nz, coils]. With maps coils are combined into one image; without, each coil has
    /// one.
    pub coil_maps: Option<&'a [Complex<T>]>,
    /// Frames measured on this trajectory, reconstructed independently.
    pub frames: usize,
    /// Voxel positions in voxels, one slice an axis, in place of the grid that `dims` describes. Method exact only.
    pub voxels: Option<Vec<&'a [T]>>,
    /// The shape of a voxel.
    pub basis: VoxelBasis,
    /// Off-resonance f in Hz, [nx, ny, nz]: the model then has the factor exp(-i 2 pi f(r) t_m). It wants `times`.
    pub field_map: Option<&'a [T]>,
    /// Decay rates R (R2*) in 1/s, [nx, ny, nz], none negative: the model then has the factor exp(-R(r) t_m). It wants
    /// `times`.
    pub decay_map: Option<&'a [T]>,
    /// Time t_m of each sample in seconds from the excitation, or from the echo, [samples], for these maps.
    pub times: Option<&'a [T]>,
}

impl<'a, T: Real> Geometry<'a, T> {
    /// One coil, one frame, no weights, point voxels.
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
        }
    }

    /// With density weights.
    #[must_use]
    pub fn weights(mut self, weights: &'a [T]) -> Self {
        self.weights = Some(weights);
        self
    }

    /// With several coils.
    #[must_use]
    pub fn coils(mut self, coils: usize) -> Self {
        self.coils = coils;
        self
    }

    /// With coil sensitivities.
    #[must_use]
    pub fn coil_maps(mut self, maps: &'a [Complex<T>]) -> Self {
        self.coil_maps = Some(maps);
        self
    }

    /// With off-resonance in Hz, and the time of each sample in seconds.
    #[must_use]
    pub fn field_map(mut self, frequencies: &'a [T], times: &'a [T]) -> Self {
        self.field_map = Some(frequencies);
        self.times = Some(times);
        self
    }

    /// What off-resonance, decay and times reach, where there is a map. Fails at numbers that make no sense.
    pub(crate) fn band(&self) -> Result<Option<Band>> {
        self.off_resonance().map(|maps| maps.band(&Alone, self.coil_maps)).transpose()
    }

    /// Off-resonance and decay, where there is a map of either.
    pub(crate) fn off_resonance(&self) -> Option<OffResonance<'a, T>> {
        let Geometry { field_map, decay_map, times, .. } = *self;
        let times = times.filter(|_| field_map.is_some() || decay_map.is_some())?;
        Some(OffResonance { field_map, decay_map, times })
    }

    /// Samples of one coil and frame.
    pub fn samples(&self) -> usize {
        self.coordinates.first().map_or(0, |k| k.len())
    }

    /// Voxels of one image.
    pub fn voxel_count(&self) -> usize {
        match &self.voxels {
            Some(lists) => lists.first().map_or(0, |r| r.len()),
            None => self.dims.iter().product(),
        }
    }

    /// Checks sizes, and every number.
    pub fn check(&self) -> Result<()> {
        self.check_sizes()?;
        self.check_numbers(&Alone).map(|_| ())
    }

    /// Checks sizes only, in a time that does not depend on them.
    pub(crate) fn check_sizes(&self) -> Result<()> {
        check_dims(&self.dims)?;
        let ndim = self.dims.len();
        if self.coordinates.len() != ndim {
            bail!(SizeMismatch, "{} coordinate arrays for {ndim} dimensions: give one an axis", self.coordinates.len());
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
                bail!(SizeMismatch, "{} lists of voxel positions for {ndim} dimensions: give one an axis", lists.len());
            }
            if lists[0].is_empty() {
                bail!(InvalidSize, "the voxel list is empty: give at least one position, or none for the whole grid");
            }
            for r in lists {
                check_len("voxel positions on an axis", r.len(), lists[0].len(), "as many as on axis 0")?;
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

    /// Checks the sizes of what belongs to off-resonance.
    pub(crate) fn check_off_resonance(&self, voxels: usize, samples: usize) -> Result<()> {
        if let Some(map) = self.field_map {
            check_len("off-resonance frequencies", map.len(), voxels, "one a voxel")?;
        }
        if let Some(map) = self.decay_map {
            check_len("decay rates", map.len(), voxels, "one a voxel")?;
        }
        let maps = self.field_map.is_some() || self.decay_map.is_some();
        match self.times {
            Some(_) if !maps => bail!(
                InvalidArgument,
                "times were given without a field map or a decay map: give one of these, or leave times out"
            ),
            Some(times) => check_len("sample times", times.len(), samples, "one a sample")?,
            None if maps => bail!(
                InvalidArgument,
                "a field map or decay map was given without times: give the time of each sample in seconds, {samples} \
                 of them"
            ),
            None => {}
        }
        Ok(())
    }

    /// Checks every number; sizes must have been checked.
    pub(crate) fn check_numbers(&self, workers: &dyn Workers) -> Result<Numbers> {
        let mut all_ends = Vec::with_capacity(self.dims.len());
        for (axis, k) in self.coordinates.iter().enumerate() {
            let ends = ends(workers, k);
            all_ends.push(ends);
            let within = ends.iter().all(|&k| in_range(k));
            if let Some(m) = if within { None } else { k.iter().position(|k| !in_range(k.wide())) } {
                if !k[m].finite() {
                    bail!(NotFinite, "coordinate of sample {m} on axis {axis} is {}: it must be a number", k[m]);
                }
                bail!(
                    CoordinateOutOfRange,
                    "coordinate of sample {m} on axis {axis} is {}, outside [-0.5, 0.5] cycles per voxel: divide \
                     coordinates in cycles per field of view by the image's size, radians by 2 pi",
                    k[m]
                );
            }
        }
        let weight = self.weights.map(|w| check_weights(workers, w)).transpose()?;
        for (axis, r) in self.voxels.iter().flatten().enumerate() {
            let most = 1.0 / (32.0 * T::EPSILON);
            if let Some(i) = r.iter().position(|r| !(r.magnitude().wide() <= most)) {
                if !r[i].finite() {
                    bail!(NotFinite, "position of voxel {i} on axis {axis} is {}: it must be a number", r[i]);
                }
                bail!(
                    InvalidArgument,
                    "position of voxel {i} on axis {axis} is {}: {} determines the phase k.r of positions up to {most:.0} \
                     voxels. Positions are in voxels from the centre of the field of view{}",
                    r[i],
                    T::NAME,
                    if T::EPSILON > f64::EPSILON { "; double precision takes larger ones" } else { "" }
                );
            }
        }
        let map = self.coil_maps.map(|maps| check_coil_maps(workers, maps)).transpose()?;
        Ok(Numbers { ends: all_ends, weight, map })
    }
}

impl<'a, T: Real> Geometry<'a, T> {
    /// The coordinates within [-0.5, 0.5), copied where some are not. Voxels of a grid are at integers, where 0.5 is
    /// the same as -0.5. For a list of voxels 0.5 becomes the largest number below. `ends` are those of [`Numbers`].
    pub(crate) fn coordinates_within(&self, workers: &dyn Workers, ends: &[[f64; 2]]) -> Result<Vec<Cow<'a, [T]>>> {
        let (low, high) = (T::of(-0.5), T::of(0.5));
        let top = if self.voxels.is_some() { T::below_half() } else { low };
        let within = |k: T| match k {
            k if k < low => low,
            k if k >= high => top,
            k => k,
        };
        let axis = |(&k, &[least, largest]): (&&'a [T], &[f64; 2])| {
            if is_inside([least, largest]) {
                return Ok(Cow::Borrowed(k));
            }
            collect(workers, k.len(), "the coordinates", |m| within(k[m])).map(Cow::Owned)
        };
        self.coordinates.iter().zip(ends).map(axis).collect()
    }

    /// A warning where k reaches less far than the image's size suggests. An axis of one voxel has nothing to resolve,
    /// and for a list of voxels the size is not known. `ends` are those of [`Numbers`].
    pub(crate) fn extent_warning(&self, ends: &[[f64; 2]]) -> Option<Warning> {
        if self.voxels.is_some() {
            return None;
        }
        let short = |(axis, (&ends, &n)): (usize, (&[f64; 2], &usize))| {
            let reach = reach(ends);
            (n > 1 && reach < 0.5 * LEAST_EXTENT).then(|| {
                format!("|k| on axis {axis} is at most {reach:.4} cycles per voxel, but {n} voxels can resolve 0.5")
            })
        };
        let found: Vec<String> = ends.iter().zip(&self.dims).enumerate().filter_map(short).collect();
        (!found.is_empty()).then(|| Warning {
            kind: WarningKind::Extent,
            message: format!(
                "{}: the image will be blurred. Were the coordinates divided by the image's size once too often? k is \
                 in cycles per voxel, up to 0.5. If the scan reaches no further, use fewer voxels",
                found.join(", ")
            ),
        })
    }
}

/// What a look at all numbers of a geometry found.
pub(crate) struct Numbers {
    /// The least and the largest k of each axis: see [`ends`].
    pub ends: Vec<[f64; 2]>,
    /// The largest weight, where there are weights.
    pub weight: Option<f64>,
    /// An upper bound of the real and imaginary parts of coil maps, where there are some.
    pub map: Option<f64>,
}

/// The least and the largest of some numbers and 0; NaN where one is not finite, or their sum is not.
pub(crate) fn ends<T: Real>(workers: &dyn Workers, k: &[T]) -> [f64; 2] {
    // What is NaN remains so.
    let merge = |all: [f64; 2], one: [f64; 2]| match all[0].is_nan() || one[0].is_nan() {
        true => [f64::NAN; 2],
        false => [all[0].min(one[0]), all[1].max(one[1])],
    };
    fold(workers, k.len(), [0.0; 2], |range| ends_of_part(&k[range]), merge)
}

fn ends_of_part<T: Real>(k: &[T]) -> [f64; 2] {
    // In separate lanes: the compiler does not vectorise a single running maximum.
    const LANES: usize = 32;
    let (mut least, mut largest, mut sums) = ([T::ZERO; LANES], [T::ZERO; LANES], [T::ZERO; LANES]);
    let mut look = |some: &[T]| {
        for (((&k, least), largest), sum) in some.iter().zip(&mut least).zip(&mut largest).zip(&mut sums) {
            *least = if k < *least { k } else { *least };
            *largest = if k > *largest { k } else { *largest };
            *sum += k;
        }
    };
    let whole = k.chunks_exact(LANES);
    look(whole.remainder());
    whole.for_each(look);
    if !sums.iter().all(|sum| sum.finite()) {
        return [f64::NAN; 2];
    }
    [least.map(T::wide).into_iter().fold(0.0, f64::min), largest.map(T::wide).into_iter().fold(0.0, f64::max)]
}

/// Whether all k of an axis with these [`ends`] are in [-0.5, 0.5).
pub(crate) fn is_inside([least, largest]: [f64; 2]) -> bool {
    least >= -0.5 && largest < 0.5
}

/// The largest |k| of an axis with these [`ends`].
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
            "the image's size on axis {axis} is {}: at most {} voxels an axis are supported",
            dims[axis],
            1 << 24
        );
    }
    checked_product(dims, "the image").map(|_| ())
}

/// Refuses weights that are not numbers, or negative. Returns the largest.
pub(crate) fn check_weights<T: Real>(workers: &dyn Workers, w: &[T]) -> Result<f64> {
    let [least, largest] = ends(workers, w);
    if least >= 0.0 {
        return Ok(largest);
    }
    let Some(m) = w.iter().position(|w| !(w.finite() && *w >= T::ZERO)) else {
        // Only their sum is too large.
        return Ok(w.iter().map(|w| w.wide()).fold(0.0, f64::max));
    };
    if !w[m].finite() {
        bail!(NotFinite, "density weight {m} is {}: it must be a number", w[m]);
    }
    bail!(InvalidArgument, "density weight {m} is {}: weights must not be negative", w[m]);
}

pub(crate) fn check_weight_count(count: usize, samples: usize) -> Result<()> {
    check_len("density weights", count, samples, "one a sample")
}

/// Refuses coil maps that are not numbers. Returns an upper bound of their real and imaginary parts.
pub(crate) fn check_coil_maps<T: Real>(workers: &dyn Workers, maps: &[Complex<T>]) -> Result<f64> {
    // One look is enough for maps as they are; only odd ones are measured.
    const USUAL: f64 = 1e3;
    let first = |limit| Ok(first_beyond(workers, maps, limit));
    Ok(match check_below("coil sensitivity", T::of(USUAL), first)? {
        true => USUAL,
        false => maps.iter().map(|s| s.re.wide().abs().max(s.im.wide().abs())).fold(USUAL, f64::max),
    })
}

pub(crate) fn check_map_len(len: usize, expected: usize) -> Result<()> {
    check_len("coil sensitivities", len, expected, "voxels times coils")
}

/// Compares a length with what it must be.
pub(crate) fn check_len(what: &str, len: usize, expected: usize, why: &str) -> Result<()> {
    if len != expected {
        bail!(SizeMismatch, "{len} {what} were given, {expected} are needed ({why})");
    }
    Ok(())
}

/// The first number whose real or imaginary part is NaN or not below `limit` in magnitude, and its index.
pub(crate) fn first_beyond<T: Real>(
    workers: &dyn Workers,
    values: &[Complex<T>],
    limit: T,
) -> Option<(usize, Complex<T>)> {
    let beyond = |z: &Complex<T>| !(z.re.magnitude() < limit) | !(z.im.magnitude() < limit);
    let of_chunk = |range: Range<usize>| {
        // All of a chunk is looked at, so that the compiler makes vectors of it.
        let any = values[range.clone()].iter().fold(false, |any, z| any | beyond(z));
        any.then(|| range.start + values[range].iter().position(beyond).expect("there is one"))
    };
    first(workers, values.len(), of_chunk).map(|at| (at, values[at]))
}

/// Whether all numbers are below `limit` in magnitude. Fails at NaN and infinity, with the index of the first. `first`
/// is [`first_beyond`] on the device of the numbers.
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

/// Refuses NaN and infinity, and names the first by index.
pub(crate) fn check_finite<T: Real>(what: &str, values: &[Complex<T>]) -> Result<()> {
    check_below(what, T::of(f64::INFINITY), |limit| Ok(first_beyond(&Alone, values, limit))).map(|_| ())
}
