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
    /// f in Hz, one a voxel; 0 where not given.
    pub field_map: Option<&'a [T]>,
    /// R in 1/s, one a voxel; 0 where not given.
    pub decay_map: Option<&'a [T]>,
    /// t in seconds, one a sample.
    pub times: &'a [T],
}

/// The least and the largest of some numbers.
pub type Ends = [f64; 2];

/// What the maps and times of a scan reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    /// Of f in Hz, in voxels that a coil sees; none without a field map.
    pub frequency: Option<Ends>,
    /// Of R in 1/s, in these voxels; none without a decay map.
    pub decay: Option<Ends>,
    /// Of t in seconds.
    pub time: Ends,
    /// The voxels with the lowest and the highest f; 0 without a field map.
    pub frequency_voxels: [usize; 2],
    /// The voxels with the lowest and the highest R; 0 without a decay map.
    pub decay_voxels: [usize; 2],
}

impl Band {
    /// No maps.
    pub fn of_times(time: Ends) -> Self {
        Band { frequency: None, decay: None, time, frequency_voxels: [0; 2], decay_voxels: [0; 2] }
    }
}

/// Maximum of off-resonance times sample time, in turns. In single precision one unit in the last place of either is
/// then 1/64 of a turn; no off-resonance of a measurement reaches a hundredth of this.
pub const MOST_TURNS: f64 = (1u32 << 17) as f64;

impl<'a, T: Real> OffResonance<'a, T> {
    /// Returns the field map such that all phases are finite: voxels that no coil sees may have any frequency.
    /// Their frequencies are limited to twice [`MOST_TURNS`] at the latest time.
    pub(crate) fn finite_field_map(&self, workers: &dyn Workers) -> Result<Option<Cow<'a, [T]>>> {
        let Some(map) = self.field_map else { return Ok(None) };
        let latest = self.times.iter().fold(0.0, |m: f64, t| m.max(t.wide().abs()));
        let limit = T::of((2.0 * MOST_TURNS / latest).min(T::LARGEST));
        if map.iter().all(|f| f.magnitude() <= limit) {
            return Ok(Some(Cow::Borrowed(map)));
        }
        let within = |f: T| match f {
            f if f > limit => limit,
            f if f < -limit => -limit,
            f => f,
        };
        collect(workers, map.len(), "the field map", |r| within(map[r])).map(|map| Some(Cow::Owned(map)))
    }

    /// Checks every number, and tells what they reach. `coil_maps`, of any number of coils, say which voxels count.
    pub(crate) fn band(&self, workers: &dyn Workers, coil_maps: Option<&[Complex<T>]>) -> Result<Band> {
        let all = |_: usize| true;
        let time = ends_where(workers, self.times, all)?;
        if let Some(m) = time.odd {
            bail!(NotFinite, "time of sample {m} is {}: it must be a number of seconds", self.times[m]);
        }
        let frequency = self.field_map.map(|map| self.map_ends(workers, map, coil_maps)).transpose()?;
        if let Some(Found { odd: Some(r), .. }) = frequency {
            let map = self.field_map.expect("it was looked at");
            bail!(NotFinite, "off-resonance of voxel {r} is {}: it must be a number of Hz, 0 where unknown", map[r]);
        }
        let decay = self.decay_map.map(|map| self.map_ends(workers, map, coil_maps)).transpose()?;
        if let Some(Found { odd: Some(r), .. }) = decay {
            let map = self.decay_map.expect("it was looked at");
            bail!(NotFinite, "decay rate of voxel {r} is {}: it must be a number of 1/s, 0 where unknown", map[r]);
        }
        let ends = |found: Found| found.ends.map_or([0.0; 2], |ends| ends.map(|(value, _)| value));
        let voxels = |found: Option<Found>| {
            found.and_then(|found| found.ends).map_or([0; 2], |ends| ends.map(|(_, voxel)| voxel))
        };
        let band = Band {
            frequency: frequency.map(ends),
            decay: decay.map(ends),
            time: ends(time),
            frequency_voxels: voxels(frequency),
            decay_voxels: voxels(decay),
        };
        if let (Some(Found { ends: Some(found), .. }), Some(times)) = (frequency, time.ends) {
            let (f, voxel) = if found[0].0.abs() > found[1].0.abs() { found[0] } else { found[1] };
            let (t, sample) = if times[0].0.abs() > times[1].0.abs() { times[0] } else { times[1] };
            if (f * t).abs() > MOST_TURNS {
                bail!(
                    InvalidArgument,
                    "off-resonance of voxel {voxel} is {f} Hz and the time of sample {sample} is {t} s: a phase of {:.1e} \
                     turns, and at most {MOST_TURNS:.0} are computed. Is the map in Hz, and are times in seconds? Limit \
                     the map's extremes where there is no object",
                    f * t
                );
            }
        }
        if let Some((map, r)) = self.decay_map.and_then(|map| Some((map, map.iter().position(|r| r.wide() < 0.0)?))) {
            bail!(
                InvalidArgument,
                "decay rate of voxel {r} is {} 1/s: rates must not be negative, as signals do not grow",
                map[r]
            );
        }
        Ok(band)
    }

    fn map_ends(&self, workers: &dyn Workers, map: &[T], coil_maps: Option<&[Complex<T>]>) -> Result<Found> {
        let zero = Complex::new(T::ZERO, T::ZERO);
        match coil_maps {
            Some(maps) => ends_where(workers, map, |r| maps.iter().skip(r).step_by(map.len()).any(|s| *s != zero)),
            None => ends_where(workers, map, |_| true),
        }
    }
}

/// What a look at some numbers found.
#[derive(Clone, Copy)]
struct Found {
    /// The least and the largest number, each with its first index; `None` if no number counts.
    ends: Option<[(f64, usize); 2]>,
    /// The first that is not finite, whether it counts or not.
    odd: Option<usize>,
}

fn ends_where<T: Real>(workers: &dyn Workers, values: &[T], counts: impl Fn(usize) -> bool + Sync) -> Result<Found> {
    let of_part = |range: Range<usize>| {
        let mut found = Found { ends: None, odd: None };
        for i in range {
            let value = values[i].wide();
            if !value.is_finite() {
                found.odd = found.odd.or(Some(i));
            } else if counts(i) {
                let [low, high] = found.ends.unwrap_or([(value, i); 2]);
                let low = if value < low.0 { (value, i) } else { low };
                let high = if value > high.0 { (value, i) } else { high };
                found.ends = Some([low, high]);
            }
        }
        found
    };
    let merge = |a: Found, b: Found| Found {
        ends: match (a.ends, b.ends) {
            (Some(a), Some(b)) => {
                Some([if b[0].0 < a[0].0 { b[0] } else { a[0] }, if b[1].0 > a[1].0 { b[1] } else { a[1] }])
            }
            (a, b) => a.or(b),
        },
        odd: a.odd.into_iter().chain(b.odd).min(),
    };
    Ok(fold(workers, values.len(), Found { ends: None, odd: None }, of_part, merge))
}
