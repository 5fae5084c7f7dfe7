//! Factors of voxels and samples in sums for off-resonance and decay. They are computed in double precision and rounded
//! once.

use super::device::Cpu;
use super::direct::phase::{cos_sin, phases};
use super::direct::power::powers_of_two;
use super::simd::{Arith, Kernel, SimdReal, Vector};
use super::vector::{each_chunk, each_chunk_of_arrays};
use crate::backend::ChebyshevSeries;
use crate::base::error::Result;
use crate::base::memory::Aligned;
use crate::base::workers::SharedSlice;
use num_complex::Complex;
use std::array::from_fn;
use std::ops::Range;

/// Elements that are computed together: a multiple of four vectors of any level.
const BLOCK: usize = 32;

const VOXELS: &str = "off-resonance of voxels";
const SAMPLES: &str = "off-resonance of samples";

/// Loads N vectors.
#[inline(always)]
fn load<V: Vector<f64>, const N: usize>(x: &[f64; BLOCK], first: usize) -> [V; N] {
    assert!(first + N * V::LANES <= BLOCK);
    // SAFETY: inside the block, as asserted.
    from_fn(|i| unsafe { V::load(x.as_ptr().add(first + i * V::LANES)) })
}

/// Stores N vectors.
#[inline(always)]
fn store<V: Vector<f64>, const N: usize>(values: [V; N], x: &mut [f64; BLOCK], first: usize) {
    assert!(first + N * V::LANES <= BLOCK);
    for (i, value) in values.into_iter().enumerate() {
        // SAFETY: inside the block, as asserted.
        unsafe { value.store(x.as_mut_ptr().add(first + i * V::LANES)) };
    }
}

/// Returns values in double precision; missing ones are 0.
#[inline(always)]
fn block<T: SimdReal>(values: &[T]) -> [f64; BLOCK] {
    let mut block = [0.0; BLOCK];
    block.iter_mut().zip(values).for_each(|(to, value)| *to = value.wide());
    block
}

/// Computes cos and sin of 2 pi `frequency` x.
#[inline(always)]
fn waves<A: Arith>(frequency: f64, x: &[f64; BLOCK]) -> [[f64; BLOCK]; 2] {
    let [mut cosines, mut sines] = [[0.0; BLOCK]; 2];
    for first in (0..BLOCK).step_by(2 * A::F64::LANES) {
        let (cos, sin) = cos_sin(phases::<f64, A::F64, 1, 2>([A::F64::splat(frequency)], [load(x, first)]));
        store(cos, &mut cosines, first);
        store(sin, &mut sines, first);
    }
    [cosines, sines]
}

/// Factors of some voxels for one node.
struct VoxelWaveKernel<'a, T> {
    frequencies: &'a [T],
    decay: Option<&'a [T]>,
    max_rate: f64,
    origin: f64,
    tau: f64,
    out: &'a mut [Complex<T>],
}

impl<T: SimdReal> Kernel for VoxelWaveKernel<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<A: Arith>(self) {
        for (i, out) in self.out.chunks_mut(BLOCK).enumerate() {
            let range = i * BLOCK..i * BLOCK + out.len();
            let frequencies = block(&self.frequencies[range.clone()]).map(|f| f - self.origin);
            let [mut cosines, mut sines] = waves::<A>(-self.tau, &frequencies);
            if let Some(decay) = self.decay {
                let exponents = block(&decay[range]).map(|r| r.min(self.max_rate));
                let mut sizes = [0.0; BLOCK];
                for first in (0..BLOCK).step_by(2 * A::F64::LANES) {
                    let q = A::F64::splat(-self.tau * std::f64::consts::LOG2_E);
                    store(powers_of_two::<f64, A::F64, 2>(q, load(&exponents, first)), &mut sizes, first);
                }
                cosines.iter_mut().zip(&sizes).for_each(|(x, size)| *x *= size);
                sines.iter_mut().zip(&sizes).for_each(|(x, size)| *x *= size);
            }
            for (out, (cos, sin)) in out.iter_mut().zip(cosines.iter().zip(&sines)) {
                *out = Complex::new(T::of(*cos), T::of(*sin));
            }
        }
    }
}

/// Implements [`crate::backend::Backend::voxel_waves`].
pub fn voxel_waves<T: SimdReal>(
    cpu: &Cpu,
    frequencies: &[T],
    decay: Option<&[T]>,
    max_rate: f64,
    origin: f64,
    nodes: &[f64],
) -> Result<Aligned<Complex<T>>> {
    let n = frequencies.len();
    assert!(decay.is_none_or(|decay| decay.len() == n));
    let mut out = Aligned::unwritten(n * nodes.len(), VOXELS)?;
    each_chunk_of_arrays(&cpu.threads, n, &mut out, |out, node, start| {
        let range = start..start + out.len();
        let (frequencies, decay) = (&frequencies[range.clone()], decay.map(|decay| &decay[range]));
        cpu.level.run(VoxelWaveKernel { frequencies, decay, max_rate, origin, tau: nodes[node], out });
    });
    Ok(out)
}

/// Returns the positions of times in the interval of a series, from -1 to 1.
#[inline(always)]
fn positions([middle, half]: [f64; 2], times: &[f64; BLOCK]) -> [f64; BLOCK] {
    times.map(|t| if half > 0.0 { ((t - middle) / half).clamp(-1.0, 1.0) } else { 0.0 })
}

/// Evaluates G functions of a series, from `first`, at N vectors of positions.
#[inline(always)]
fn sums<V: Vector<f64>, const G: usize, const N: usize>(
    series: &ChebyshevSeries<'_>,
    first: usize,
    x: [V; N],
) -> [[V; N]; G] {
    let mut sums = [[V::splat(0.0); N]; G];
    let (mut term, mut next) = ([V::splat(1.0); N], x);
    let double: [V; N] = from_fn(|i| x[i].add(x[i]));
    for row in series.coefficients.chunks_exact(series.functions) {
        let row = &row[first..first + G];
        for (sum, c) in sums.iter_mut().zip(row) {
            let c = V::splat(*c);
            *sum = from_fn(|i| c.fma(term[i], sum[i]));
        }
        let after = from_fn(|i| double[i].mul(next[i]).sub(term[i]));
        (term, next) = (next, after);
    }
    sums
}

/// Values of all functions of a series at some times, with the phase of a frequency. `out` has the samples of all
/// functions, of which this writes `samples`.
struct SampleWaveKernel<'a, 'b, T> {
    times: &'a [T],
    series: ChebyshevSeries<'a>,
    frequency: f64,
    samples: Range<usize>,
    all_samples: usize,
    out: &'a SharedSlice<'b, Complex<T>>,
}

impl<T: SimdReal> SampleWaveKernel<'_, '_, T> {
    /// Computes G functions, from `first`, for a block of samples.
    #[inline(always)]
    fn functions<A: Arith, const G: usize>(
        &self,
        first: usize,
        x: &[f64; BLOCK],
        waves: &[[f64; BLOCK]; 2],
        samples: Range<usize>,
    ) {
        let mut values = [[0.0; BLOCK]; G];
        for start in (0..BLOCK).step_by(2 * A::F64::LANES) {
            for (values, sum) in values.iter_mut().zip(sums::<A::F64, G, 2>(&self.series, first, load(x, start))) {
                store(sum, values, start);
            }
        }
        for (g, values) in values.iter().enumerate() {
            // SAFETY: each call writes its own samples.
            let out = unsafe { self.out.part((first + g) * self.all_samples + samples.start, samples.len()) };
            for ((out, value), (cos, sin)) in out.iter_mut().zip(values).zip(waves[0].iter().zip(&waves[1])) {
                *out = Complex::new(T::of(value * cos), T::of(value * sin));
            }
        }
    }
}

impl<T: SimdReal> Kernel for SampleWaveKernel<'_, '_, T> {
    type Output = ();
    #[inline(always)]
    fn run<A: Arith>(self) {
        for start in self.samples.clone().step_by(BLOCK) {
            let samples = start..self.samples.end.min(start + BLOCK);
            let times = block(&self.times[samples.clone()]);
            let (x, waves) = (positions(self.series.interval, &times), waves::<A>(self.frequency, &times));
            let mut first = 0;
            while first + 4 <= self.series.functions {
                self.functions::<A, 4>(first, &x, &waves, samples.clone());
                first += 4;
            }
            for first in first..self.series.functions {
                self.functions::<A, 1>(first, &x, &waves, samples.clone());
            }
        }
    }
}

/// Returns the number of samples after which the times repeat, as in scans of several shots; all samples if they do
/// not.
fn period<T: SimdReal>(times: &[T]) -> usize {
    let Some(first) = times.first() else { return 0 };
    let period = times.iter().skip(1).position(|t| t == first).map_or(times.len(), |i| i + 1);
    if times[period..] == times[..times.len() - period] {
        period
    } else {
        times.len()
    }
}

/// Implements [`crate::backend::Backend::sample_waves`].
pub fn sample_waves<T: SimdReal>(
    cpu: &Cpu,
    times: &[T],
    series: ChebyshevSeries<'_>,
    frequency: f64,
) -> Result<Aligned<Complex<T>>> {
    let (samples, period) = (times.len(), period(times));
    let mut out = Aligned::unwritten(samples * series.functions, SAMPLES)?;
    let shared = SharedSlice::new(&mut out);
    crate::base::workers::each_chunk(cpu, period, |_, range| {
        let kernel = SampleWaveKernel { times, series, frequency, samples: range, all_samples: samples, out: &shared };
        cpu.level.run(kernel);
    });
    // The other shots have the same values.
    if period < samples {
        cpu.threads.run(series.functions, |l| {
            // SAFETY: each task has its own function.
            let values = unsafe { shared.part(l * samples, samples) };
            let (first, rest) = values.split_at_mut(period);
            rest.chunks_mut(period).for_each(|shot| shot.copy_from_slice(&first[..shot.len()]));
        });
    }
    Ok(out)
}

/// Values of one function of a series at some times, times weights.
struct SeriesValueKernel<'a, T> {
    times: &'a [T],
    series: ChebyshevSeries<'a>,
    index: usize,
    w: Option<&'a [T]>,
    out: &'a mut [T],
}

impl<T: SimdReal> Kernel for SeriesValueKernel<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<A: Arith>(self) {
        for (i, out) in self.out.chunks_mut(BLOCK).enumerate() {
            let range = i * BLOCK..i * BLOCK + out.len();
            let x = positions(self.series.interval, &block(&self.times[range.clone()]));
            let mut values = [0.0; BLOCK];
            for start in (0..BLOCK).step_by(4 * A::F64::LANES) {
                let [sum] = sums::<A::F64, 1, 4>(&self.series, self.index, load(&x, start));
                store(sum, &mut values, start);
            }
            if let Some(w) = self.w {
                values.iter_mut().zip(&w[range]).for_each(|(value, w)| *value *= w.wide());
            }
            out.iter_mut().zip(&values).for_each(|(out, value)| *out = T::of(*value));
        }
    }
}

/// Implements [`crate::backend::Backend::series_values`].
pub fn series_values<T: SimdReal>(
    cpu: &Cpu,
    times: &[T],
    series: ChebyshevSeries<'_>,
    index: usize,
    w: Option<&[T]>,
) -> Result<Aligned<T>> {
    assert!(index < series.functions && w.is_none_or(|w| w.len() == times.len()));
    let mut out = Aligned::unwritten(times.len(), SAMPLES)?;
    each_chunk(&cpu.threads, &mut out, |out, start| {
        let range = start..start + out.len();
        let (times, w) = (&times[range.clone()], w.map(|w| &w[range]));
        cpu.level.run(SeriesValueKernel { times, series, index, w, out });
    });
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::options::Simd;
    use crate::base::random::SplitMix64;
    use std::f64::consts::TAU;

    /// Returns the largest distance of complex numbers from the expected ones.
    fn distance<T: SimdReal>(values: &[Complex<T>], expected: impl Fn(usize) -> Complex<f64>) -> f64 {
        let difference = |(i, z): (usize, &Complex<T>)| (Complex::new(z.re.wide(), z.im.wide()) - expected(i)).norm();
        values.iter().enumerate().map(difference).fold(0.0, f64::max)
    }

    /// Compares all factors with formulas in double precision, and the bits of several numbers of threads.
    fn check<T: SimdReal>(voxels: usize, samples: usize, shots: usize, functions: usize) {
        let mut random = SplitMix64((voxels * 1000 + samples) as u64);
        let mut uniform = |low: f64, high: f64| low + (high - low) * random.uniform();
        let frequencies: Vec<T> = (0..voxels).map(|_| T::of(uniform(-500.0, 900.0))).collect();
        let decay: Vec<T> = (0..voxels).map(|_| T::of(uniform(0.0, 3000.0))).collect();
        let nodes: Vec<f64> = (0..functions).map(|_| uniform(-0.01, 0.03)).collect();
        let shot: Vec<T> = (0..samples.div_ceil(shots)).map(|_| T::of(uniform(-0.004, 0.031))).collect();
        let times: Vec<T> = (0..samples).map(|m| shot[m % shot.len()]).collect();
        let w: Vec<T> = (0..samples).map(|_| T::of(uniform(0.0, 2.0))).collect();
        let coefficients: Vec<f64> = (0..23 * functions).map(|_| uniform(-1.0, 1.0) / 23.0).collect();
        let series = ChebyshevSeries { interval: [0.0125, 0.0175], functions, coefficients: &coefficients };
        let (origin, max_rate) = (137.5, 2000.0);
        let wave = |size: f64, turns: f64| Complex::from_polar(size, TAU * (turns - turns.round()));
        let value = |m: usize, l: usize| -> f64 {
            let x = ((times[m].wide() - 0.0125) / 0.0175).clamp(-1.0, 1.0).acos();
            (0..23).map(|n| coefficients[n * functions + l] * (n as f64 * x).cos()).sum()
        };
        for simd in [Simd::Baseline, Simd::Auto] {
            let mut previous = None;
            for threads in [1, 2, 5] {
                let cpu = Cpu::new(threads, simd).unwrap();
                let decaying = voxel_waves(&cpu, &frequencies, Some(&decay), max_rate, origin, &nodes).unwrap();
                let waves = voxel_waves(&cpu, &frequencies, None, max_rate, origin, &nodes).unwrap();
                let samples_of_all = sample_waves(&cpu, &times, series, origin).unwrap();
                let real = series_values(&cpu, &times, series, functions - 1, Some(&w)).unwrap();
                let of_voxel = |i: usize, rate: f64| {
                    let (r, tau) = (i % voxels, nodes[i / voxels]);
                    wave((-rate * tau).exp(), -(frequencies[r].wide() - origin) * tau)
                };
                // The phases of the formulas are rounded too.
                let bound = 2.0 * T::EPSILON + 2e-14;
                let error = distance(&waves, |i| of_voxel(i, 0.0));
                assert!(error < bound, "{} {voxels}: {error}", T::NAME);
                for (i, z) in decaying.iter().enumerate() {
                    let expected = of_voxel(i, decay[i % voxels].wide().min(max_rate));
                    let error = (Complex::new(z.re.wide(), z.im.wide()) - expected).norm();
                    assert!(error < 4.0 * bound * expected.norm(), "{} {voxels}: {error}", T::NAME);
                }
                let error = distance(&samples_of_all, |i| {
                    let (m, l) = (i % samples, i / samples);
                    wave(1.0, origin * times[m].wide()) * value(m, l)
                });
                assert!(error < bound, "{} {samples} {functions}: {error}", T::NAME);
                for (m, x) in real.iter().enumerate() {
                    let error = (x.wide() - w[m].wide() * value(m, functions - 1)).abs();
                    assert!(error < bound, "{} {samples} {functions}: {error}", T::NAME);
                }
                let all = (decaying.to_vec(), samples_of_all.to_vec(), real.to_vec());
                assert!(previous.is_none_or(|previous| previous == all), "{threads} threads");
                previous = Some(all);
            }
        }
    }

    #[test]
    fn factors_are_those_of_the_formulas_for_any_number_of_threads() {
        for (voxels, samples, shots, functions) in
            [(1, 1, 1, 1), (33, 31, 1, 3), (5000, 9000, 1, 4), (31, 4100, 4, 9), (64, 13_000, 2, 2), (100, 1000, 3, 17)]
        {
            check::<f32>(voxels, samples, shots, functions);
            check::<f64>(voxels, samples, shots, functions);
        }
    }
}
