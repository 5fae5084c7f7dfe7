//! Sums over voxels anywhere: the kernels of exact_list.cu.

use super::super::compile::Kernels;
use super::super::gpu::{launch, Gpu};
use super::super::memory::DeviceArray;
use super::super::runtime::Function;
use super::{blocks, Places, Work, PARTS_BYTES};
use crate::error::{bail, try_collect, Result};
use crate::real::Real;
use num_complex::Complex;

const SOURCE: &str =
    concat!(include_str!("../../../../kernels/exact_wave.cuh"), include_str!("../../../../kernels/exact_list.cu"));

/// Threads of a block, and targets of a thread.
const THREADS: usize = 128;
const OWN: usize = 4;
const BLOCK: usize = THREADS * OWN;
/// Sources in shared memory at a time.
const RUN: usize = 256;
/// Turns between a block's targets up to which the special functions' phases serve: their error is 4e-7 of what these turns
/// are on average, a quarter of this bound.
const TURNS: f64 = 64.0;

fn kernels(bytes: usize, axes: usize, accurate: bool) -> Kernels {
    let fast = usize::from(!accurate);
    let macros = [("AXES", axes), ("V", OWN), ("POLY", fast), ("UNROLL", 1 + fast), ("ACCURATE", 1 - fast)];
    Kernels::new("exact_list", SOURCE, bytes, &macros)
}

/// Those of 2 and 3 axes, and one for off-resonance.
pub fn usual_kernels() -> Vec<Kernels> {
    (2..=4).flat_map(|axes| [kernels(4, axes, false), kernels(4, axes, true), kernels(8, axes, true)]).collect()
}

/// Samples or voxels, neighbours following one another.
struct Points<T> {
    at: Vec<DeviceArray<T>>,
    /// Which they are; none where they are in the caller's order.
    order: Option<DeviceArray<u32>>,
    count: usize,
}

/// Sums to one of the two lists.
struct Sum {
    ready_sources: Function,
    list_sum: Function,
    add_parts: Function,
    parts: usize,
}

/// Sums between two lists.
pub struct List<T> {
    samples: Points<T>,
    voxels: Points<T>,
    to_image: Sum,
    to_samples: Sum,
    work: Work,
    ready: usize,
    partial: usize,
}

impl<T: Real> List<T> {
    /// For samples at `k` and voxels at `r`, a slice an axis.
    pub fn new(gpu: &Gpu, k: &[&[T]], r: &[&[T]]) -> Result<Self> {
        let axes = k.len();
        if !(1..=4).contains(&axes) || r.len() != axes {
            bail!(InvalidArgument, "direct sums between {axes} and {} axes: 1 to 4 of both are needed", r.len());
        }
        let (samples, near_samples) = points(gpu, k, r)?;
        let (voxels, near_voxels) = points(gpu, r, k)?;
        let sum = |sources: &Points<T>, targets: &Points<T>, near: bool| -> Result<Sum> {
            let kernels = kernels(size_of::<T>(), axes, !near);
            let runs = sources.count.div_ceil(RUN).max(1);
            // Enough blocks that the last of them, which leave the GPU half empty, matter little.
            let wanted =
                (64 * gpu.properties().multiprocessors as usize).div_ceil(targets.count.div_ceil(BLOCK).max(1));
            let room = PARTS_BYTES / (targets.count.max(1) * size_of::<Complex<T>>());
            Ok(Sum {
                ready_sources: gpu.function(&kernels, "ready_sources", 0)?,
                list_sum: gpu.function(&kernels, "list_sum", 0)?,
                add_parts: gpu.function(&kernels, "add_parts", 0)?,
                parts: wanted.min(runs).min(room).clamp(1, 65535),
            })
        };
        let to_image = sum(&samples, &voxels, near_voxels)?;
        let to_samples = sum(&voxels, &samples, near_samples)?;
        let mut places = Places::default();
        let most = samples.count.max(voxels.count).max(1).next_multiple_of(RUN);
        let ready = places.take(most * 8 * size_of::<T>());
        let parts_of = |sum: &Sum, targets: &Points<T>| if sum.parts > 1 { sum.parts * targets.count } else { 0 };
        let elements = parts_of(&to_image, &voxels).max(parts_of(&to_samples, &samples));
        let partial = places.take(elements * size_of::<Complex<T>>());
        let work = Work::new(gpu, places.end)?;
        Ok(List { samples, voxels, to_image, to_samples, work, ready, partial })
    }

    pub fn to_image(&self, gpu: &Gpu, values: u64, image: u64) {
        self.sum(gpu, &self.to_image, &self.samples, values, &self.voxels, image, T::ONE);
    }

    pub fn to_samples(&self, gpu: &Gpu, image: u64, values: u64) {
        self.sum(gpu, &self.to_samples, &self.voxels, image, &self.samples, values, -T::ONE);
    }

    #[allow(clippy::too_many_arguments)]
    fn sum(&self, gpu: &Gpu, sum: &Sum, from: &Points<T>, values: u64, to: &Points<T>, out: u64, sign: T) {
        if to.count == 0 {
            return;
        }
        let at = |points: &Points<T>| [0, 1, 2, 3].map(|a| points.at.get(a).map_or(0, |p| p.address()));
        let order = |points: &Points<T>| points.order.as_ref().map_or(0, |o| o.address());
        let (p, q, from_order, to_order) = (at(from), at(to), order(from), order(to));
        let (ready, partial) = (self.work.at(self.ready), self.work.at(self.partial));
        let padded = from.count.max(1).next_multiple_of(RUN);
        let (count, targets, runs) = (from.count as i64, to.count as i64, (padded / RUN) as i64);
        let written = if sum.parts > 1 { partial } else { out };
        let grid = [to.count.div_ceil(BLOCK) as u32, sum.parts as u32, 1];
        let block = [super::THREADS as u32, 1, 1];
        // SAFETY: arguments are those of the kernels; lists have as many elements as they say, values and sums too, which the
        // views they come from vouch for; orders are permutations.
        unsafe {
            launch!(gpu, &sum.ready_sources, blocks(padded), block, 0;
                p[0], p[1], p[2], p[3], values, from_order, count, padded as i64, sign, ready);
            launch!(gpu, &sum.list_sum, grid, [THREADS as u32, 1, 1], 0;
                ready, runs, q[0], q[1], q[2], q[3], to_order, targets, written, targets);
            if sum.parts > 1 {
                launch!(gpu, &sum.add_parts, blocks(to.count), block, 0; partial, targets, sum.parts as i32, out, targets);
            }
        }
    }
}

/// The points on the GPU, and whether each block of them is so small that phases to `others` differ by few turns.
fn points<T: Real>(gpu: &Gpu, at: &[&[T]], others: &[&[T]]) -> Result<(Points<T>, bool)> {
    let count = at[0].len();
    // In f64 the accurate kernel serves, which takes targets in any order.
    if size_of::<T>() == 8 || u32::try_from(count).is_err() {
        let at = at.iter().map(|at| gpu.upload(at, "coordinates")).collect::<Result<_>>()?;
        return Ok((Points { at, order: None, count }, false));
    }
    // Of how many turns a unit along each axis is worth at most.
    let reach: Vec<f64> = others.iter().map(|o| o.iter().fold(0.0, |m: f64, o| m.max(o.wide().abs()))).collect();
    let order = along_curve(at, &reach)?;
    let mut on_gpu = Vec::new();
    let mut turns = vec![0.0; count.div_ceil(BLOCK)];
    for (at, reach) in at.iter().zip(&reach) {
        let sorted = try_collect(count, "coordinates", order.iter().map(|&i| at[i as usize]))?;
        for (turns, block) in turns.iter_mut().zip(sorted.chunks(BLOCK)) {
            // The kernel's origin: the middle one of a whole block.
            let origin = sorted_origin(block).wide();
            *turns += reach * block.iter().fold(0.0, |m: f64, p| m.max((p.wide() - origin).abs()));
        }
        on_gpu.push(gpu.upload(&sorted, "coordinates")?);
    }
    let near = turns.iter().all(|t| *t <= TURNS);
    Ok((Points { at: on_gpu, order: Some(gpu.upload(&order, "the order of points")?), count }, near))
}

/// The target from which a block's phases are taken.
fn sorted_origin<T: Real>(block: &[T]) -> T {
    block[(BLOCK / 2).min(block.len() - 1)]
}

/// The order of points along a Morton curve, axis a being `reach[a]` times as important: neighbours on it are near.
fn along_curve<T: Real>(at: &[&[T]], reach: &[f64]) -> Result<Vec<u32>> {
    let bits = 32 / at.len() as u32;
    let range = |a: &[T]| {
        a.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h): (f64, f64), p| (l.min(p.wide()), h.max(p.wide())))
    };
    let ranges: Vec<(f64, f64)> = at.iter().map(|a| range(a)).collect();
    let widest = ranges.iter().zip(reach).fold(f64::MIN_POSITIVE, |m, ((l, h), r)| m.max((h - l) * r));
    let key = |i: usize| {
        let mut key = 0u64;
        for (axis, ((a, (low, _)), reach)) in at.iter().zip(&ranges).zip(reach).enumerate() {
            let cell = ((a[i].wide() - low) * reach / widest * (bits as f64).exp2()) as u64;
            let cell = cell.min((1 << bits) - 1);
            for bit in 0..bits {
                key |= (cell >> bit & 1) << (bit as usize * at.len() + axis);
            }
        }
        key << 32 | i as u64
    };
    let mut keys = try_collect(at[0].len(), "the order of points", (0..at[0].len()).map(key))?;
    keys.sort_unstable();
    try_collect(keys.len(), "the order of points", keys.into_iter().map(|k| k as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_keeps_neighbours_together() {
        let n = 64;
        let axis = |stride: usize| -> Vec<f32> { (0..n * n * n).map(|i| (i / stride % n) as f32).collect() };
        let (x, y, z) = (axis(1), axis(n), axis(n * n));
        let order = along_curve(&[&x[..], &y, &z], &[0.5; 3]).unwrap();
        let mut seen = vec![false; x.len()];
        order.iter().for_each(|&i| seen[i as usize] = true);
        assert!(seen.iter().all(|s| *s));
        for block in order.chunks(BLOCK) {
            for a in [&x, &y, &z] {
                let of = |f: fn(f32, f32) -> f32| block.iter().map(|&i| a[i as usize]).reduce(f).unwrap();
                assert_eq!(of(f32::max) - of(f32::min), 7.0);
            }
        }
        // Points in one place, and an axis of no importance.
        let same = [3.0f32; 5];
        assert_eq!(along_curve(&[&same[..]], &[0.0]).unwrap(), [0, 1, 2, 3, 4]);
        assert!(along_curve::<f32>(&[&[]], &[1.0]).unwrap().is_empty());
    }
}
