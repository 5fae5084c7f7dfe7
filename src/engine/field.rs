//! Off-resonance and decay of a plan's voxels, in the memory of its backend.

use super::transform_params::TransformParams;
use crate::backend::Backend;
use crate::base::checksum::Checksum;
use crate::base::error::{bail, try_vec, Result};
use crate::base::interrupt;
use crate::base::memory::Aligned;
use crate::base::off_resonance::{MinMax, OffResonance, OffResonanceRange};
use crate::base::random::SplitMix64;
use crate::base::real::Real;
use crate::base::workers::{copied, fold, Workers};
use crate::nufft::time_segments::TimeSegments;
use num_complex::Complex;
use std::ops::Range;
use std::sync::Arc;

/// The field map and decay map of a plan, and arrays computed from them.
pub(crate) struct Field<T: Real, B: Backend<T>> {
    /// Range of the maps and sample times.
    pub band: OffResonanceRange,
    /// f in Hz.
    frequencies: B::Array<T>,
    /// R in 1/s, in host memory; `None` without a decay map.
    decay: Option<Aligned<T>>,
    /// Checksum of both maps.
    pub fingerprint: u64,
    /// Voxel factors of the transforms' segments; `None` for exact sums.
    pub segment_factors: Option<Arc<B::Array<Complex<T>>>>,
}

impl<T: Real, B: Backend<T>> Field<T, B> {
    /// Copies the maps and computes the voxel factors of the segments.
    pub fn new(
        b: &B,
        maps: &OffResonance<'_, T>,
        band: OffResonanceRange,
        voxels: usize,
        params: &TransformParams,
    ) -> Result<Self> {
        const WHAT: &str = "the field map";
        let frequencies = match maps.finite_field_map(b.workers())? {
            Some(map) => b.upload(&map, WHAT)?,
            None => b.zeros(voxels, WHAT)?,
        };
        let decay = maps.decay_map.map(|map| copied(b.workers(), &[map], "the decay map")).transpose()?;
        let decay = decay.and_then(|mut copies| copies.pop());
        let fingerprint = fingerprint(b.workers(), maps);
        let mut field = Field { band, frequencies, decay, fingerprint, segment_factors: None };
        if let Some(segments) = params.segments() {
            field.segment_factors = Some(Arc::new(field.voxel_factors(b, segments)?));
        }
        Ok(field)
    }

    /// Checks that new coil maps see only voxels within the range for which the segments were computed.
    pub fn check_visible_range(&self, b: &B, coil_maps: &[Complex<T>], voxels: usize) -> Result<()> {
        let frequencies = self.frequencies(b, voxels)?;
        let maps = OffResonance {
            field_map: self.band.frequency.map(|_| &frequencies[..]),
            decay_map: self.decay.as_deref(),
            times: &[],
        };
        let visible = maps.band(b.workers(), Some(coil_maps))?;
        for (what, unit, new, present) in [
            ("the off-resonance", "Hz", visible.frequency, self.band.frequency),
            ("the decay", "1/s", visible.decay, self.band.decay),
        ] {
            let (Some([low, high]), Some([least, most])) = (new, present) else { continue };
            if low < least || high > most {
                bail!(
                    InvalidArgument,
                    "{what} of voxels that the new coil maps see is {low} to {high} {unit}, but the plan was made for \
                     {least} to {most} {unit}, the range of the previous maps: make a new plan"
                );
            }
        }
        Ok(())
    }

    /// Copies f of all voxels to the host.
    pub fn frequencies(&self, b: &B, voxels: usize) -> Result<Vec<T>> {
        let mut host = try_vec(voxels, T::ZERO, "the field map")?;
        b.download(b.view(&self.frequencies), &mut host)?;
        Ok(host)
    }

    /// Computes exp(-(R + i 2 pi (f - f0)) tau) of all voxels for each node, [voxels, nodes].
    pub fn voxel_factors(&self, b: &B, segments: &TimeSegments) -> Result<B::Array<Complex<T>>> {
        interrupt::check("off-resonance of voxels")?;
        let decay = self.decay.as_deref().map(|decay| b.upload(decay, "the decay map")).transpose()?;
        let decay = decay.as_ref().map(|decay| b.view(decay));
        b.voxel_waves(b.view(&self.frequencies), decay, segments.max_rate, segments.frequency, &segments.nodes)
    }

    /// Returns the largest R of the voxels that coils see; 0 without a decay map.
    fn max_rate(&self) -> f64 {
        self.band.decay.map_or(0.0, |[_, max]| max)
    }

    /// Returns whether the field was created from these maps.
    pub fn has_maps(&self, b: &B, maps: &OffResonance<'_, T>) -> bool {
        self.fingerprint == fingerprint(b.workers(), maps)
    }

    /// Returns the bytes held in host memory, on any backend.
    pub fn host_bytes(&self) -> usize {
        self.decay.as_ref().map_or(0, |decay| size_of_val(&**decay))
    }

    /// Returns the mean of exp(-2 R t) over voxels and weighted samples, the factor by which decay reduces the diagonal
    /// of E^H W E; 1 without decay. `sample` returns the weight and time of a sample.
    pub fn mean_decay(&self, samples: usize, sample: impl Fn(usize) -> (f64, f64)) -> f64 {
        let (Some(decay), Some(ends)) = (&self.decay, self.band.decay) else { return 1.0 };
        // The mean is a smooth function of the logarithms of rate and time, so that 257 values of each suffice. Each
        // rate and time is divided between its two neighbours by distance.
        let [first, last] = self.band.time;
        let mut rates = LogHistogram::new(ends, 2.0 * first.abs().max(last.abs()));
        let mut times = LogHistogram::new(self.band.time, 2.0 * self.max_rate());
        decay.iter().for_each(|r| rates.add(r.wide().min(self.max_rate()), 1.0));
        (0..samples).map(sample).for_each(|(weight, t)| times.add(t, weight));
        let all: f64 = rates.counts.iter().sum::<f64>() * times.counts.iter().sum::<f64>();
        let pairs = rates.values().flat_map(|(r, m)| times.values().map(move |(t, w)| m * w * (-2.0 * r * t).exp()));
        let sum: f64 = pairs.sum();
        if all > 0.0 {
            sum / all
        } else {
            1.0
        }
    }
}

/// A weighted histogram whose values are evenly spaced near the lower end and logarithmically beyond.
struct LogHistogram {
    /// The lower end.
    low: f64,
    /// Inverse of the distance from `low` at which the spacing becomes logarithmic.
    per_unit: f64,
    /// Logarithmic spacing of the values.
    step: f64,
    counts: [f64; LogHistogram::LEN],
}

impl LogHistogram {
    const LEN: usize = 257;

    /// Creates an empty histogram of values from `low` to `high`.
    fn new([low, high]: MinMax, per_unit: f64) -> Self {
        let step = ((high - low) * per_unit).ln_1p() / (Self::LEN - 1) as f64;
        LogHistogram { low, per_unit, step, counts: [0.0; Self::LEN] }
    }

    /// Adds a value with this weight, divided between the two nearest values.
    fn add(&mut self, value: f64, weight: f64) {
        let distance = ((value - self.low) * self.per_unit).max(0.0).ln_1p();
        let at = if self.step > 0.0 { (distance / self.step).clamp(0.0, (Self::LEN - 1) as f64) } else { 0.0 };
        let below = (at as usize).min(Self::LEN - 2);
        self.counts[below] += weight * (1.0 - (at - below as f64));
        self.counts[below + 1] += weight * (at - below as f64);
    }

    /// Returns each value with its weight.
    fn values(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let value = |i: usize| match self.step {
            step if step > 0.0 => self.low + (step * i as f64).exp_m1() / self.per_unit,
            _ => self.low,
        };
        self.counts.iter().enumerate().map(move |(i, count)| (value(i), *count))
    }
}

/// Returns a checksum of both maps.
pub(crate) fn fingerprint<T: Real>(workers: &dyn Workers, maps: &OffResonance<'_, T>) -> u64 {
    let mut sum = Checksum::new();
    for map in [maps.field_map, maps.decay_map] {
        // The sum of a random number of each value and its index. The numbers are independent, unlike the bytes of a
        // checksum, so that the processor computes several at once.
        let number = |(i, x): (usize, &T)| SplitMix64(x.wide().to_bits() ^ SplitMix64(i as u64).next()).next();
        let part = |range: Range<usize>| {
            let values = map.iter().flat_map(|map| range.clone().zip(&map[range.clone()]));
            values.map(number).fold(0, u64::wrapping_add)
        };
        let mut add = |part: u64| sum.add(&part.to_le_bytes());
        add(map.is_some() as u64);
        add(fold(workers, map.map_or(0, <[T]>::len), 0, part, u64::wrapping_add));
    }
    sum.0
}
