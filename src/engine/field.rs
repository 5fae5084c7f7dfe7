//! Off-resonance and decay of a plan's voxels, in the memory of its backend.

use super::chosen::Chosen;
use crate::backend::Backend;
use crate::base::checksum::Checksum;
use crate::base::error::{bail, try_vec, Result};
use crate::base::memory::Aligned;
use crate::base::off_resonance::{MinMax, OffResonance, OffResonanceRange};
use crate::base::real::Real;
use crate::base::workers::{copied, fold, Workers};
use crate::nufft::segmented::waves;
use crate::nufft::segments::Segments;
use num_complex::Complex;
use std::ops::Range;
use std::sync::Arc;

/// The maps of a plan, and what is made of them once.
pub(crate) struct Field<T: Real, B: Backend<T>> {
    /// What maps and times reach.
    pub band: OffResonanceRange,
    /// f in Hz.
    frequencies: B::Array<T>,
    /// R in 1/s, in the host's memory, where there is a map.
    decay: Option<Aligned<T>>,
    /// A checksum of both maps.
    pub fingerprint: u64,
    /// The factors of voxels for the segments, where transforms have some.
    pub waves: Option<Arc<B::Array<Complex<T>>>>,
}

impl<T: Real, B: Backend<T>> Field<T, B> {
    /// `before` may have the same maps and segments.
    pub fn new(
        b: &B,
        maps: &OffResonance<'_, T>,
        band: OffResonanceRange,
        voxels: usize,
        chosen: &Chosen,
    ) -> Result<Self> {
        const WHAT: &str = "the field map";
        let frequencies = match maps.finite_field_map(b.workers())? {
            Some(map) => b.upload(&map, WHAT)?,
            None => b.zeros(voxels, WHAT)?,
        };
        let decay = maps.decay_map.map(|map| copied(b.workers(), &[map], "the decay map")).transpose()?;
        let decay = decay.and_then(|mut copies| copies.pop());
        let fingerprint = fingerprint(b.workers(), maps);
        let mut field = Field { band, frequencies, decay, fingerprint, waves: None };
        if let Some(segments) = chosen.segments() {
            field.waves = Some(Arc::new(field.waves_at(b, segments)?));
        }
        Ok(field)
    }

    /// Refuses coil maps that see voxels whose numbers the segments were not made for.
    pub fn check_seen(&self, b: &B, coil_maps: &[Complex<T>], voxels: usize) -> Result<()> {
        let frequencies = self.frequencies(b, voxels)?;
        let maps = OffResonance {
            field_map: self.band.frequency.map(|_| &frequencies[..]),
            decay_map: self.decay.as_deref(),
            times: &[],
        };
        let seen = maps.band(b.workers(), Some(coil_maps))?;
        for (what, unit, now, before) in [
            ("the off-resonance", "Hz", seen.frequency, self.band.frequency),
            ("the decay", "1/s", seen.decay, self.band.decay),
        ] {
            let (Some([low, high]), Some([least, most])) = (now, before) else { continue };
            if low < least || high > most {
                bail!(
                    InvalidArgument,
                    "{what} of voxels that the new coil maps see is {low} to {high} {unit}, and the plan is made for \
                     {least} to {most}, as the maps before saw: make a new plan"
                );
            }
        }
        Ok(())
    }

    /// f of all voxels.
    pub fn frequencies(&self, b: &B, voxels: usize) -> Result<Vec<T>> {
        let mut host = try_vec(voxels, T::ZERO, "the field map")?;
        b.download(b.view(&self.frequencies), &mut host)?;
        Ok(host)
    }

    /// exp(-(R + i 2 pi f) tau) of all voxels for each node, [voxels, nodes].
    pub fn waves_at(&self, b: &B, segments: &Segments) -> Result<B::Array<Complex<T>>> {
        waves(b, &segments.nodes, b.view(&self.frequencies), self.decay.as_deref(), segments.fastest)
    }

    /// The largest R that counts.
    fn most(&self) -> f64 {
        self.band.decay.map_or(0.0, |[_, most]| most)
    }

    /// Whether these are its maps.
    pub fn is_of(&self, b: &B, maps: &OffResonance<'_, T>) -> bool {
        self.fingerprint == fingerprint(b.workers(), maps)
    }

    /// Bytes that it holds in the host's memory, wherever it computes.
    pub fn host_bytes(&self) -> usize {
        self.decay.as_ref().map_or(0, |decay| size_of_val(&**decay))
    }

    /// The mean over voxels and weighted samples of exp(-2 R t), 1 without decay: by how much decay lessens the
    /// diagonal of E^H W E. `sample` tells a sample's weight and time.
    pub fn mean_decay(&self, samples: usize, sample: impl Fn(usize) -> (f64, f64)) -> f64 {
        let (Some(decay), Some(ends)) = (&self.decay, self.band.decay) else { return 1.0 };
        // The mean is smooth in the logarithms of both: 257 numbers of each suffice. Each rate and each time counts at
        // both neighbours by its distance.
        let [first, last] = self.band.time;
        let mut rates = Histogram::new(ends, 2.0 * first.abs().max(last.abs()));
        let mut times = Histogram::new(self.band.time, 2.0 * self.most());
        decay.iter().for_each(|r| rates.add(r.wide().min(self.most()), 1.0));
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

/// How many of some numbers there are.
struct Histogram {
    low: f64,
    /// Distances from `low` in this unit are small: numbers are even there, and in powers beyond.
    per_unit: f64,
    /// The distance of the numbers, as logarithms.
    step: f64,
    counts: [f64; Histogram::LEN],
}

impl Histogram {
    const LEN: usize = 257;

    fn new([low, high]: MinMax, per_unit: f64) -> Self {
        let step = ((high - low) * per_unit).ln_1p() / (Self::LEN - 1) as f64;
        Histogram { low, per_unit, step, counts: [0.0; Self::LEN] }
    }

    /// Counts a number at both neighbours.
    fn add(&mut self, value: f64, count: f64) {
        let distance = ((value - self.low) * self.per_unit).max(0.0).ln_1p();
        let at = if self.step > 0.0 { (distance / self.step).clamp(0.0, (Self::LEN - 1) as f64) } else { 0.0 };
        let below = (at as usize).min(Self::LEN - 2);
        self.counts[below] += count * (1.0 - (at - below as f64));
        self.counts[below + 1] += count * (at - below as f64);
    }

    fn values(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let value = |i: usize| match self.step {
            step if step > 0.0 => self.low + (step * i as f64).exp_m1() / self.per_unit,
            _ => self.low,
        };
        self.counts.iter().enumerate().map(move |(i, count)| (value(i), *count))
    }
}

/// A checksum of both maps.
pub(crate) fn fingerprint<T: Real>(workers: &dyn Workers, maps: &OffResonance<'_, T>) -> u64 {
    let mut sum = Checksum::new();
    for map in [maps.field_map, maps.decay_map] {
        let part = |range: Range<usize>| {
            let mut sum = Checksum::new();
            map.iter().flat_map(|map| &map[range.clone()]).for_each(|x| sum.add(&x.wide().to_le_bytes()));
            sum.0
        };
        let mut whole = |part: u64| sum.add(&part.to_le_bytes());
        whole(map.is_some() as u64);
        let chunks = fold(workers, map.map_or(0, <[T]>::len), 0u64, part, |all, one| all.rotate_left(17) ^ one);
        whole(chunks);
    }
    sum.0
}
