//! Sums over voxels at any positions, with or without off-resonance: the kernels of exact_list.cu.

use super::super::compile::Kernels;
use super::super::gpu::{launch, Gpu};
use super::super::memory::{ComplexSlice, ComplexSliceMut, DeviceArray};
use super::super::runtime::{Function, Properties};
use super::work::{self, blocks, WorkMemory, WorkOffsets, PARTS_BYTES};
use crate::backend::direct_lists::PointLists;
use crate::backend::{DevicePointer, MapPresence, Span};
use crate::base::error::{bail, try_collect, Result};
use crate::base::real::Real;
use crate::base::sizes::{product, sum};
use num_complex::Complex;
use std::borrow::Cow;

const SOURCE: &str =
    concat!(include_str!("../../../../kernels/exact_wave.cuh"), include_str!("../../../../kernels/exact_list.cu"));

/// Threads per block, and targets per thread.
const THREADS: usize = 128;
const OWN: usize = 4;
const BLOCK: usize = THREADS * OWN;
/// Sources in shared memory at a time.
const RUN: usize = 256;
/// Maximum RMS distance of a block's targets in turns for which the special functions are used. Their error is about
/// 3e-7 per turn.
const TURNS: f64 = 32.0;

/// Maximum relative error of sums by special functions: 3e-7 per turn. Measured: 7e-7 to 2.1e-6.
const FAST_ERROR: f64 = 3e-7 * TURNS;

fn kernels(bytes: usize, axes: usize, decays: bool, accurate: bool) -> Kernels {
    let (fast, decay) = (usize::from(!accurate), usize::from(decays));
    // Decay also uses the special function units, so more of the sines use polynomials.
    let poly = fast * (1 + decay);
    let unroll = 1 + fast;
    let macros =
        [("AXES", axes), ("DECAY", decay), ("V", OWN), ("POLY", poly), ("UNROLL", unroll), ("ACCURATE", 1 - fast)];
    Kernels::new("exact_list", SOURCE, bytes, &macros)
}

/// Returns the kernels for 2 and 3 axes, and one more for off-resonance, with and without decay.
pub fn usual_kernels() -> Vec<Kernels> {
    let of = |axes, decays| [(4, false), (4, true), (8, true)].map(|(b, accurate)| kernels(b, axes, decays, accurate));
    [false, true].into_iter().flat_map(|decays| (2..=4).flat_map(move |axes| of(axes, decays))).collect()
}

/// Samples or voxels, ordered so that neighbours follow each other.
struct PointList<T> {
    /// Coordinates. With decay, the last one is for decay and may also be a coordinate.
    at: Vec<DeviceArray<T>>,
    /// Indices of the points; `None` if they are in the caller's order.
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
pub struct ListSum<T> {
    samples: PointList<T>,
    voxels: PointList<T>,
    axes: usize,
    decays: bool,
    to_image: Sum,
    to_samples: Sum,
    work: WorkMemory,
    ready: usize,
    partial: usize,
}

impl<T: Real> ListSum<T> {
    /// Creates the sums. In f32 the GPU's special functions compute sines and powers, unless `tolerance` is below their
    /// error (and not 0).
    pub fn new(gpu: &Gpu, lists: &PointLists<Cow<[T]>>, tolerance: f64) -> Result<Self> {
        let accurate = tolerance > 0.0 && tolerance < FAST_ERROR;
        let (axes, decays) = (lists.axes, lists.decays);
        let counts = [lists.samples.len(), lists.voxels.len()];
        if !(1..=4).contains(&axes) || counts.iter().any(|count| *count < axes) {
            bail!(
                InvalidArgument,
                "direct sums of {axes} axes between {} and {} lists: 1 to 4 axes, and lists for each, are needed",
                counts[0],
                counts[1]
            );
        }
        let (samples, near_samples) = points(gpu, &lists.samples, &lists.voxels[..axes])?;
        let (voxels, near_voxels) = points(gpu, &lists.voxels, &lists.samples[..axes])?;
        let sum = |sources: &PointList<T>, targets: &PointList<T>, near: bool| -> Result<Sum> {
            let kernels = kernels(size_of::<T>(), axes, decays, accurate || !near);
            Ok(Sum {
                ready_sources: gpu.function(&kernels, "ready_sources", 0)?,
                list_sum: gpu.function(&kernels, "list_sum", 0)?,
                add_parts: gpu.function(&kernels, "add_parts", 0)?,
                parts: Self::parts(gpu.properties(), sources.count, targets.count),
            })
        };
        let to_image = sum(&samples, &voxels, near_voxels)?;
        let to_samples = sum(&voxels, &samples, near_samples)?;
        let (places, [ready, partial]) = Self::places(gpu.properties(), samples.count, voxels.count);
        let work = WorkMemory::new(gpu, places.end)?;
        Ok(ListSum { samples, voxels, axes, decays, to_image, to_samples, work, ready, partial })
    }

    /// Returns the number of parts of a sum.
    fn parts(properties: &Properties, sources: usize, targets: usize) -> usize {
        let runs = sources.div_ceil(RUN).max(1);
        // Enough blocks that the last ones, which do not fill the GPU, cost little.
        let wanted = (64 * properties.multiprocessors as usize).div_ceil(targets.div_ceil(BLOCK).max(1));
        let room = PARTS_BYTES / (targets.max(1) * size_of::<Complex<T>>());
        wanted.min(runs).min(room).clamp(1, 65535)
    }

    /// Reserves space for prepared sources and for parts of sums.
    fn places(properties: &Properties, samples: usize, voxels: usize) -> (WorkOffsets, [usize; 2]) {
        let elements = |sources: usize, targets: usize| match Self::parts(properties, sources, targets) {
            1 => 0,
            parts => parts * targets,
        };
        let mut places = WorkOffsets::default();
        let most = samples.max(voxels).max(1).next_multiple_of(RUN);
        let ready = places.take(most * 8 * size_of::<T>());
        let elements = elements(samples, voxels).max(elements(voxels, samples));
        let partial = places.take(elements * size_of::<Complex<T>>());
        (places, [ready, partial])
    }

    /// Returns its bytes: coordinates, maps and order of both lists, and work memory.
    pub fn bytes(properties: &Properties, samples: usize, voxels: usize, ndim: usize, maps: MapPresence) -> usize {
        let [of_samples, of_voxels] =
            maps.lists(ndim).map(|lists| lists.saturating_mul(size_of::<T>()) + size_of::<u32>());
        let points = sum(&[product(&[samples, of_samples]), product(&[voxels, of_voxels])]);
        sum(&[points, Self::places(properties, samples, voxels).0.end])
    }

    pub fn to_image(&self, gpu: &Gpu, values: ComplexSlice<T>, image: ComplexSliceMut<T>) {
        self.sum(gpu, &self.to_image, (&self.samples, values), (&self.voxels, image), T::ONE);
    }

    pub fn to_samples(&self, gpu: &Gpu, image: ComplexSlice<T>, values: ComplexSliceMut<T>) {
        self.sum(gpu, &self.to_samples, (&self.voxels, image), (&self.samples, values), -T::ONE);
    }

    fn sum(
        &self,
        gpu: &Gpu,
        sum: &Sum,
        (from, values): (&PointList<T>, ComplexSlice<T>),
        (to, sums): (&PointList<T>, ComplexSliceMut<T>),
        sign: T,
    ) {
        assert!(values.len() == from.count && sums.len() == to.count);
        if to.count == 0 {
            return;
        }
        let at = |points: &PointList<T>| {
            [0, 1, 2, 3].map(|a| points.at[..self.axes].get(a).map_or(DevicePointer::NULL, |p| p.pointer()))
        };
        let decay = |points: &PointList<T>| {
            points.at.last().filter(|_| self.decays).map_or(DevicePointer::NULL, |last| last.pointer())
        };
        let order = |points: &PointList<T>| points.order.as_ref().map_or(DevicePointer::NULL, |o| o.pointer());
        let (p, q, from_order, to_order) = (at(from), at(to), order(from), order(to));
        let (ready, partial) = (self.work.at::<T>(self.ready), self.work.at::<Complex<T>>(self.partial));
        let padded = from.count.max(1).next_multiple_of(RUN);
        let (count, targets, runs) = (from.count as i64, to.count as i64, (padded / RUN) as i64);
        let (values, sums, from_decay, to_decay) = (values.pointer(), sums.pointer(), decay(from), decay(to));
        let written = if sum.parts > 1 { partial } else { sums };
        let grid = [to.count.div_ceil(BLOCK) as u32, sum.parts as u32, 1];
        let block = [work::THREADS as u32, 1, 1];
        // SAFETY: the kernels' parameters are these. Lists, values and sums have the asserted numbers of elements,
        // orders are permutations, and `places` reserved the rest.
        unsafe {
            launch!(gpu, &sum.ready_sources, blocks(padded), block, 0;
                p[0], p[1], p[2], p[3], from_decay, values, from_order, count, padded as i64, sign, ready);
            launch!(gpu, &sum.list_sum, grid, [THREADS as u32, 1, 1], 0;
                ready, runs, q[0], q[1], q[2], q[3], to_decay, to_order, targets, written, targets);
            if sum.parts > 1 {
                launch!(gpu, &sum.add_parts, blocks(to.count), block, 0;
                    partial, targets, sum.parts as i32, sums, targets);
            }
        }
    }
}

/// Returns the points on the GPU, and whether each block is so small that its phases to `others` differ by few turns.
/// `others` has coordinates only, the same number as `at`. `at` may have an additional list for decay.
fn points<T: Real>(gpu: &Gpu, at: &[Cow<[T]>], others: &[Cow<[T]>]) -> Result<(PointList<T>, bool)> {
    let count = at[0].len();
    // In f64 the accurate kernel is used, which accepts targets in any order.
    if size_of::<T>() == 8 || u32::try_from(count).is_err() {
        let at = at.iter().map(|at| gpu.upload(at, "coordinates")).collect::<Result<_>>()?;
        return Ok((PointList { at, order: None, count }, false));
    }
    // Maximum number of turns per unit along each axis.
    let reach: Vec<f64> = others.iter().map(|o| o.iter().fold(0.0, |m: f64, o| m.max(o.wide().abs()))).collect();
    let coordinates: Vec<&[T]> = at[..reach.len()].iter().map(|at| &at[..]).collect();
    let order = along_curve(&coordinates, &reach)?;
    let mut on_gpu = Vec::new();
    let mut squares = vec![0.0; count.div_ceil(BLOCK)];
    for (axis, at) in at.iter().enumerate() {
        let sorted = try_collect(count, "coordinates", order.iter().map(|&i| at[i as usize]))?;
        let reach = reach.get(axis).copied().unwrap_or(0.0);
        for (square, block) in squares.iter_mut().zip(sorted.chunks(BLOCK)) {
            let origin = origin(block).wide();
            let sum: f64 = block.iter().map(|p| (reach * (p.wide() - origin)).powi(2)).sum();
            *square += sum / block.len() as f64;
        }
        on_gpu.push(gpu.upload(&sorted, "coordinates")?);
    }
    let near = squares.iter().all(|s| *s <= TURNS * TURNS);
    Ok((PointList { at: on_gpu, order: Some(gpu.upload(&order, "the order of points")?), count }, near))
}

/// Returns the target that is the origin of a block's phases in the kernel.
fn origin<T: Real>(block: &[T]) -> T {
    block[(BLOCK / 2).min(block.len() - 1)]
}

/// Returns the order of points along a Hilbert curve, on which neighbours are close. Axis a has the weight `reach[a]`.
fn along_curve<T: Real>(at: &[&[T]], reach: &[f64]) -> Result<Vec<u32>> {
    let bits = 32 / at.len() as u32;
    let range = |a: &[T]| {
        a.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h): (f64, f64), p| (l.min(p.wide()), h.max(p.wide())))
    };
    let ranges: Vec<(f64, f64)> = at.iter().map(|a| range(a)).collect();
    let widest = ranges.iter().zip(reach).fold(f64::MIN_POSITIVE, |m, ((l, h), r)| m.max((h - l) * r));
    let cells = f64::from(bits).exp2();
    let key = |i: usize| {
        let mut cell = [0; 4];
        for (cell, ((a, (low, _)), reach)) in cell.iter_mut().zip(at.iter().zip(&ranges).zip(reach)) {
            *cell = ((a[i].wide() - low) * reach / widest * cells).min(cells - 1.0) as u32;
        }
        u64::from(hilbert(&mut cell[..at.len()], bits)) << 32 | i as u64
    };
    let mut keys = try_collect(at[0].len(), "the order of points", (0..at[0].len()).map(key))?;
    keys.sort_unstable();
    try_collect(keys.len(), "the order of points", keys.into_iter().map(|k| k as u32))
}

/// Returns the position on the Hilbert curve of a cell whose coordinates have `bits` bits (Skilling, AIP Conf. Proc.
/// 707, 381, 2004).
fn hilbert(x: &mut [u32], bits: u32) -> u32 {
    let axes = x.len();
    if axes > 1 {
        for bit in (1..bits).rev() {
            let low = (1 << bit) - 1;
            for i in 0..axes {
                if x[i] >> bit & 1 == 1 {
                    x[0] ^= low;
                } else {
                    let exchanged = (x[0] ^ x[i]) & low;
                    x[0] ^= exchanged;
                    x[i] ^= exchanged;
                }
            }
        }
        for i in 1..axes {
            x[i] ^= x[i - 1];
        }
        let flipped = (1..bits).filter(|bit| x[axes - 1] >> bit & 1 == 1).fold(0, |f, bit| f ^ ((1 << bit) - 1));
        x.iter_mut().for_each(|x| *x ^= flipped);
    }
    (0..bits).rev().fold(0, |key, bit| x.iter().fold(key, |key, x| key << 1 | (x >> bit & 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_along_the_curve_lead_to_neighbours() {
        for (axes, bits) in [(1, 6), (2, 5), (3, 4), (4, 3)] {
            let n = 1u32 << bits;
            let mut cells: Vec<_> = (0..n.pow(axes))
                .map(|i| {
                    let cell: Vec<u32> = (0..axes).map(|a| i / n.pow(a) % n).collect();
                    (hilbert(&mut cell.clone(), bits), cell)
                })
                .collect();
            cells.sort();
            for (i, pair) in cells.windows(2).enumerate() {
                assert_eq!(pair[0].0 as usize, i);
                let steps: u32 = pair[0].1.iter().zip(&pair[1].1).map(|(a, b)| a.abs_diff(*b)).sum();
                assert_eq!(steps, 1, "{pair:?}");
            }
        }
    }

    #[test]
    fn blocks_of_points_are_small() {
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
                assert!(of(f32::max) - of(f32::min) < 16.0);
            }
        }
        // Points at one position, and an axis with weight 0.
        let same = [3.0f32; 5];
        assert_eq!(along_curve(&[&same[..]], &[0.0]).unwrap(), [0, 1, 2, 3, 4]);
        assert!(along_curve::<f32>(&[&[]], &[1.0]).unwrap().is_empty());
    }
}
