//! Off-resonance and decay of a scan: the signal of voxel r at time t is multiplied by
//! exp(-(R(r) + i 2 pi f(r)) t).

use super::error::{bail, Result};
use super::real::Real;
use super::workers::{collect, fold, Workers};
use num_complex::Complex;
use std::borrow::Cow;
use std::ops::Range;

/// Maps of off-resonance and decay, and the times of the samples.
#[derive(Debug, Clone, Copy)]
pub struct OffResonance<'a, T> {
    /// f in Hz, one per voxel; `None` means 0.
    pub field_map: Option<&'a [T]>,
    /// R in 1/s, one per voxel; `None` means 0.
    pub decay_map: Option<&'a [T]>,
    /// t in seconds, one per sample.
    pub times: &'a [T],
}

/// Minimum and maximum.
pub type MinMax = [f64; 2];

/// The ranges of off-resonance, decay and sample times of a scan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OffResonanceRange {
    /// Range of f in Hz, over the voxels that a coil sees; `None` without a field map.
    pub frequency: Option<MinMax>,
    /// Range of R in 1/s, over these voxels; `None` without a decay map.
    pub decay: Option<MinMax>,
    /// Range of t in seconds.
    pub time: MinMax,
    /// Indices of the voxels with the lowest and the highest f; 0 without a field map.
    pub frequency_voxels: [usize; 2],
    /// Indices of the voxels with the lowest and the highest R; 0 without a decay map.
    pub decay_voxels: [usize; 2],
}

impl OffResonanceRange {
    /// Creates the ranges of a scan without maps.
    pub fn of_times(time: MinMax) -> Self {
        OffResonanceRange { frequency: None, decay: None, time, frequency_voxels: [0; 2], decay_voxels: [0; 2] }
    }
}

/// Maximum product of off-resonance and sample time, in turns. In single precision, one unit in the last place of
/// either factor is then 1/64 of a turn. Measured off-resonance stays below a hundredth of this limit.
pub const MAX_TURNS: f64 = (1u32 << 17) as f64;

impl<'a, T: Real> OffResonance<'a, T> {
    /// Returns a field map for which all phases are finite: voxels that no coil sees may have any frequency.
    /// Frequencies are limited to twice [`MAX_TURNS`] at the latest time.
    pub(crate) fn finite_field_map(&self, workers: &dyn Workers) -> Result<Option<Cow<'a, [T]>>> {
        let Some(map) = self.field_map else { return Ok(None) };
        let times = range_of_all(workers, self.times).min_max;
        let latest = times.map_or(0.0, |times| times[0].0.abs().max(times[1].0.abs()));
        let limit = T::of((2.0 * MAX_TURNS / latest).min(T::LARGEST));
        if map.iter().all(|f| f.magnitude() <= limit) {
            return Ok(Some(Cow::Borrowed(map)));
        }
        let clamp = |f: T| match f {
            f if f > limit => limit,
            f if f < -limit => -limit,
            f => f,
        };
        collect(workers, map.len(), "the field map", |r| clamp(map[r])).map(|map| Some(Cow::Owned(map)))
    }

    /// Checks all values and returns their ranges. `coil_maps`, of any number of coils, determine which voxels count.
    pub(crate) fn band(&self, workers: &dyn Workers, coil_maps: Option<&[Complex<T>]>) -> Result<OffResonanceRange> {
        let time = range_of_all(workers, self.times);
        if let Some(m) = time.not_finite {
            bail!(NotFinite, "time of sample {m} is {}: it must be a number of seconds", self.times[m]);
        }
        let frequency = self.field_map.map(|map| self.map_range(workers, map, coil_maps)).transpose()?;
        if let Some(ValueRange { not_finite: Some(r), .. }) = frequency {
            let map = self.field_map.expect("the map was checked");
            bail!(NotFinite, "off-resonance of voxel {r} is {}: it must be a number of Hz, 0 where unknown", map[r]);
        }
        let decay = self.decay_map.map(|map| self.map_range(workers, map, coil_maps)).transpose()?;
        if let Some(ValueRange { not_finite: Some(r), .. }) = decay {
            let map = self.decay_map.expect("the map was checked");
            bail!(NotFinite, "decay rate of voxel {r} is {}: it must be a number of 1/s, 0 where unknown", map[r]);
        }
        let min_max = |range: ValueRange| range.min_max.map_or([0.0; 2], |min_max| min_max.map(|(value, _)| value));
        let voxels = |range: Option<ValueRange>| {
            range.and_then(|range| range.min_max).map_or([0; 2], |min_max| min_max.map(|(_, voxel)| voxel))
        };
        let band = OffResonanceRange {
            frequency: frequency.map(min_max),
            decay: decay.map(min_max),
            time: min_max(time),
            frequency_voxels: voxels(frequency),
            decay_voxels: voxels(decay),
        };
        if let (Some(ValueRange { min_max: Some(range), .. }), Some(times)) = (frequency, time.min_max) {
            let (f, voxel) = if range[0].0.abs() > range[1].0.abs() { range[0] } else { range[1] };
            let (t, sample) = if times[0].0.abs() > times[1].0.abs() { times[0] } else { times[1] };
            if (f * t).abs() > MAX_TURNS {
                bail!(
                    InvalidArgument,
                    "off-resonance of voxel {voxel} is {f} Hz and the time of sample {sample} is {t} s: a phase of \
                     {:.1e} turns, but at most {MAX_TURNS:.0} are supported. Check that the map is in Hz and that times \
                     are in seconds. Limit the map's extremes outside of the object",
                    f * t
                );
            }
        }
        if let Some((map, r)) = self.decay_map.and_then(|map| Some((map, map.iter().position(|r| r.wide() < 0.0)?))) {
            bail!(
                InvalidArgument,
                "decay rate of voxel {r} is {} 1/s: rates must not be negative, because signals do not grow",
                map[r]
            );
        }
        Ok(band)
    }

    /// Returns the range of a map over the voxels that a coil sees.
    fn map_range(&self, workers: &dyn Workers, map: &[T], coil_maps: Option<&[Complex<T>]>) -> Result<ValueRange> {
        let zero = Complex::new(T::ZERO, T::ZERO);
        match coil_maps {
            Some(maps) => range_where(workers, map, |r| maps.iter().skip(r).step_by(map.len()).any(|s| *s != zero)),
            None => Ok(range_of_all(workers, map)),
        }
    }
}

/// The range of some values.
#[derive(Clone, Copy)]
struct ValueRange {
    /// The minimum and the maximum, each with its first index; `None` if no value counts.
    min_max: Option<[(f64, usize); 2]>,
    /// Index of the first value that is not finite, whether it counts or not.
    not_finite: Option<usize>,
}

/// Returns the range of all values.
fn range_of_all<T: Real>(workers: &dyn Workers, values: &[T]) -> ValueRange {
    let Some(&first) = values.first() else { return ValueRange { min_max: None, not_finite: None } };
    // Separate lanes, which the compiler turns into vectors. The sum is NaN if a value is not finite.
    const LANES: usize = 32;
    let of_chunk = |range: Range<usize>| {
        let (mut least, mut largest, mut sums) = ([first; LANES], [first; LANES], [T::ZERO; LANES]);
        let mut scan = |some: &[T]| {
            for (((&x, least), largest), sum) in some.iter().zip(&mut least).zip(&mut largest).zip(&mut sums) {
                *least = if x < *least { x } else { *least };
                *largest = if x > *largest { x } else { *largest };
                *sum += x * T::ZERO;
            }
        };
        let chunks = values[range].chunks_exact(LANES);
        scan(chunks.remainder());
        chunks.for_each(&mut scan);
        let least = least.into_iter().fold(first, |a, b| if b < a { b } else { a });
        let largest = largest.into_iter().fold(first, |a, b| if b > a { b } else { a });
        (least, largest, sums.iter().all(|sum| sum.finite()))
    };
    let merge = |a: (T, T, bool), b: (T, T, bool)| {
        (if b.0 < a.0 { b.0 } else { a.0 }, if b.1 > a.1 { b.1 } else { a.1 }, a.2 && b.2)
    };
    let (least, largest, all_finite) = fold(workers, values.len(), (first, first, true), of_chunk, merge);
    if !all_finite {
        return ValueRange { min_max: None, not_finite: values.iter().position(|x| !x.finite()) };
    }
    let end = |value: T| (value.wide(), values.iter().position(|x| *x == value).unwrap_or(0));
    ValueRange { min_max: Some([end(least), end(largest)]), not_finite: None }
}

/// Returns the range of the values whose index counts.
fn range_where<T: Real>(
    workers: &dyn Workers,
    values: &[T],
    counts: impl Fn(usize) -> bool + Sync,
) -> Result<ValueRange> {
    let range_of_chunk = |indices: Range<usize>| {
        let mut range = ValueRange { min_max: None, not_finite: None };
        for i in indices {
            let value = values[i].wide();
            if !value.is_finite() {
                range.not_finite = range.not_finite.or(Some(i));
            } else if counts(i) {
                let [low, high] = range.min_max.unwrap_or([(value, i); 2]);
                let low = if value < low.0 { (value, i) } else { low };
                let high = if value > high.0 { (value, i) } else { high };
                range.min_max = Some([low, high]);
            }
        }
        range
    };
    let merge = |a: ValueRange, b: ValueRange| ValueRange {
        min_max: match (a.min_max, b.min_max) {
            (Some(a), Some(b)) => {
                Some([if b[0].0 < a[0].0 { b[0] } else { a[0] }, if b[1].0 > a[1].0 { b[1] } else { a[1] }])
            }
            (a, b) => a.or(b),
        },
        not_finite: a.not_finite.into_iter().chain(b.not_finite).min(),
    };
    Ok(fold(workers, values.len(), ValueRange { min_max: None, not_finite: None }, range_of_chunk, merge))
}
