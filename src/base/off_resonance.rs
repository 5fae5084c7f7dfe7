//! Off-resonance and decay of a scan: the signal of voxel r at time t is multiplied by
//! exp(-(R(r) + i 2 pi f(r)) t).

use super::error::{bail, Result};
use super::real::Real;
use super::workers::{fold, Workers};
use num_complex::Complex;
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
}

impl<T: Real> OffResonance<'_, T> {
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
        let ends = |found: Found| found.ends.unwrap_or([0.0; 2]);
        let band = Band { frequency: frequency.map(ends), decay: decay.map(ends), time: ends(time) };
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
    /// None where no number counts.
    ends: Option<Ends>,
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
                let [low, high] = found.ends.unwrap_or([value; 2]);
                found.ends = Some([low.min(value), high.max(value)]);
            }
        }
        found
    };
    let merge = |a: Found, b: Found| Found {
        ends: match (a.ends, b.ends) {
            (Some(a), Some(b)) => Some([a[0].min(b[0]), a[1].max(b[1])]),
            (a, b) => a.or(b),
        },
        odd: a.odd.into_iter().chain(b.odd).min(),
    };
    Ok(fold(workers, values.len(), Found { ends: None, odd: None }, of_part, merge))
}
