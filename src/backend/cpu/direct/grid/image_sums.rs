//! Sums from samples to the voxels of a grid.

use super::axes::{align_to_line, has_wide_tiles, order_axes, panel_vectors, whole_lines, write_phases, GridAxis};
use crate::backend::cpu::simd::{Arith, Kernel, Level, SimdReal, Vector};
use crate::backend::threads::Threads;
use crate::base::interrupt::StopSignal;
use crate::base::workers::SharedSlice;
use num_complex::Complex;
use std::array::from_fn;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of samples whose tables are computed at a time.
const BLOCK: usize = 1024;
/// Number of samples of one run of the inner product.
const RUN: usize = 128;
/// Number of samples whose tables one task computes.
const SAMPLES_PER_TASK: usize = 32;

/// Division of the sums to an image into blocks of samples and panels of lines.
pub(super) struct ImageSumLayout<'a, T> {
    /// The axes in the order of their roles.
    axes: [GridAxis<'a, T>; 3],
    /// Number of samples of a block.
    block: usize,
    /// Lengths of the tables of a block.
    lengths: [usize; 3],
    /// Number of lines of a panel.
    panel: usize,
    /// Length of the scratch of a thread.
    thread_len: usize,
}

impl<'a, T: SimdReal> ImageSumLayout<'a, T> {
    /// Chooses the division.
    pub(super) fn new(level: Level, k: &'a [Vec<T>], samples: usize, dims: [usize; 3]) -> Self {
        let [x, mut y, mut z] = order_axes(k, dims);
        let lanes = level.lanes::<T>();
        // Vectors of lines run along y. y and z are exchanged if that leaves fewer lanes empty.
        let padded = |n: usize| n.next_multiple_of(lanes);
        if padded(z.n) * y.n < padded(y.n) * z.n {
            std::mem::swap(&mut y, &mut z);
        }
        let block = BLOCK.min(samples);
        let lengths = [2 * x.half() * block, 2 * padded(y.n) * block, 2 * z.n * block].map(whole_lines::<T>);
        let panel = panel_vectors(level) * lanes;
        let thread_len = whole_lines::<T>(2 * panel * RUN) + whole_lines::<T>(4 * panel * x.half());
        ImageSumLayout { axes: [x, y, z], block, lengths, panel, thread_len }
    }
    /// Returns the length of the scratch of all threads.
    pub(super) fn scratch(&self, threads: usize) -> usize {
        self.lengths.iter().sum::<usize>() + threads * self.thread_len
    }
}

/// Computes image(r) = sum_m values(m) exp(+i 2 pi k_m.r). The results are undefined if `stop` is set. `buffer` comes
/// from [`super::scratch`].
#[allow(clippy::too_many_arguments)]
pub fn to_image<T: SimdReal>(
    threads: &Threads,
    level: Level,
    stop: &StopSignal,
    buffer: &mut [T],
    k: &[Vec<T>],
    dims: [usize; 3],
    values: &[Complex<T>],
    image: &mut [Complex<T>],
) {
    assert!(k.iter().all(|k| k.len() == values.len()));
    assert_eq!(image.len(), dims.iter().product::<usize>());
    let layout = ImageSumLayout::new(level, k, values.len(), dims);
    let shared = layout.lengths.iter().sum();
    let (tables, scratch) = align_to_line(buffer, layout.scratch(threads.count())).split_at_mut(shared);
    let ImageSumLayout { axes: [_, y, z], block, panel, thread_len, .. } = layout;
    let (out, scratch) = (SharedSlice::new(image), SharedSlice::new(scratch));
    let panels = y.n.div_ceil(panel);
    for first in (0..values.len()).step_by(block.max(1)) {
        if stop.stopped() {
            return;
        }
        let values = &values[first..(first + block).min(values.len())];
        let writing = SharedSlice::new(&mut *tables);
        threads.run(values.len().div_ceil(SAMPLES_PER_TASK), |task| {
            let samples = task * SAMPLES_PER_TASK..((task + 1) * SAMPLES_PER_TASK).min(values.len());
            level.run(TableKernel { layout: &layout, first, values, samples, tables: &writing });
        });
        let tables = &*tables;
        let thread = AtomicUsize::new(0);
        threads.run_with(
            panels * z.n,
            || thread.fetch_add(1, Ordering::Relaxed),
            |thread, task| {
                if stop.stopped() {
                    return;
                }
                // SAFETY: each participating thread has its own scratch.
                let scratch = unsafe { scratch.part(*thread * thread_len, thread_len) };
                let (start, at_z) = (task % panels * panel, task / panels);
                let lines = panel.min(y.n - start);
                let (layout, samples, add, out) = (&layout, values.len(), first > 0, &out);
                level.run(PanelKernel { layout, start, lines, at_z, samples, tables, scratch, add, out });
            },
        );
    }
    if values.is_empty() {
        // SAFETY: no other thread is running a task.
        unsafe { out.part(0, dims.iter().product()) }.fill(Complex::default());
    }
}

/// The tables of a block of samples:
/// - x: [groups of distances][samples][cos, sin of each distance of the group],
/// - y: [samples][re, im][y],
/// - z: [samples][z][re, im], times the sample's value and the phase of the middle of x.
struct TableKernel<'a, T> {
    layout: &'a ImageSumLayout<'a, T>,
    first: usize,
    values: &'a [Complex<T>],
    samples: std::ops::Range<usize>,
    tables: &'a SharedSlice<'a, T>,
}

/// Returns the number of distances of the group that begins at `j`: three, or two if three would leave a single one.
#[inline(always)]
fn group_size(j: usize, half: usize) -> usize {
    match half - j {
        1 => 1,
        2 | 4 => 2,
        _ => 3,
    }
}

impl<T: SimdReal> Kernel for TableKernel<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<A: Arith>(self) {
        let ImageSumLayout { axes: [x, y, z], lengths, .. } = *self.layout;
        let total = self.values.len();
        let padded = y.n.next_multiple_of(T::V::<A>::LANES);
        let one = Complex::new(1.0, 0.0);
        for m in self.samples {
            let sample = self.first + m;
            // SAFETY: each task has its own samples, and each sample has its own part of the tables of y and z.
            let (y_table, z_table) = unsafe {
                (
                    self.tables.part(lengths[0] + 2 * padded * m, 2 * padded),
                    self.tables.part(lengths[0] + lengths[1] + 2 * z.n * m, 2 * z.n),
                )
            };
            // Index of the next distance's values, remaining distances of its group, and first distance of the next
            // group.
            let (mut at, mut remaining, mut next) = (0, 0, 0);
            write_phases::<A, T>(x.k(sample), x.nearest(), x.half(), one, |_, re, im| {
                for (re, im) in re.iter().zip(im) {
                    if remaining == 0 {
                        remaining = group_size(next, x.half());
                        at = 2 * (next * total + remaining * m);
                        next += remaining;
                    }
                    // SAFETY: each task has its own samples, and these elements belong to this sample.
                    unsafe {
                        self.tables.set(at, *re);
                        self.tables.set(at + 1, *im);
                    }
                    (at, remaining) = (at + 2, remaining - 1);
                }
            });
            let (re_y, im_y) = y_table.split_at_mut(padded);
            // The phases fill the last vector; sums beyond y are not read.
            write_phases::<A, T>(y.k(sample), y.first(), padded, one, |j, re, im| {
                re_y[j..][..re.len()].copy_from_slice(re);
                im_y[j..][..im.len()].copy_from_slice(im);
            });
            let mut scaled = Complex::default();
            let value = Complex::new(self.values[m].re.wide(), self.values[m].im.wide());
            write_phases::<A, f64>(x.k(sample), x.middle(), 1, value, |_, re, im| scaled = Complex::new(re[0], im[0]));
            write_phases::<A, T>(z.k(sample), z.first(), z.n, scaled, |j, re, im| {
                for (pair, (re, im)) in z_table[2 * j..].chunks_exact_mut(2).zip(re.iter().zip(im)) {
                    pair[0] = *re;
                    pair[1] = *im;
                }
            });
        }
    }
}

/// The sums of the lines y = start .. start + lines at one z over a block of samples.
struct PanelKernel<'a, T> {
    layout: &'a ImageSumLayout<'a, T>,
    start: usize,
    lines: usize,
    at_z: usize,
    samples: usize,
    tables: &'a [T],
    scratch: &'a mut [T],
    /// Whether sums are added to the image's previous values.
    add: bool,
    out: &'a SharedSlice<'a, Complex<T>>,
}

impl<T: SimdReal> Kernel for PanelKernel<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<A: Arith>(self) {
        if has_wide_tiles::<A>() && self.lines > T::V::<A>::LANES {
            self.sum::<T::V<A>, 2, 4>();
        } else {
            self.sum::<T::V<A>, 1, 2>();
        }
    }
}

impl<T: SimdReal> PanelKernel<'_, T> {
    /// Adds up `P` vectors of lines, that is `W` vectors of real and imaginary parts.
    #[inline(always)]
    fn sum<V: Vector<T>, const P: usize, const W: usize>(self) {
        let ImageSumLayout { axes: [x, y, z], lengths, .. } = *self.layout;
        let half = x.half();
        let width = W * V::LANES;
        let (x_table, rest) = self.tables.split_at(lengths[0]);
        let (y_table, z_table) = rest.split_at(lengths[1]);
        let padded = y.n.next_multiple_of(V::LANES);
        let (right, sums) = self.scratch.split_at_mut(whole_lines::<T>(width * RUN));
        let sums = &mut sums[..2 * half * width];
        for first in (0..self.samples).step_by(RUN) {
            let count = RUN.min(self.samples - first);
            // right(m, line) = value(m) exp(i 2 pi (ky y + kz z))
            for (m, right) in right.chunks_exact_mut(width).take(count).enumerate() {
                let z_table = &z_table[2 * (z.n * (first + m) + self.at_z)..][..2];
                let (z_re, z_im) = (V::splat(z_table[0]), V::splat(z_table[1]));
                let y_table = &y_table[2 * padded * (first + m)..][..2 * padded];
                for p in 0..P {
                    let at = self.start + p * V::LANES;
                    // SAFETY: `padded` is a multiple of the vector, and the panel's last vector begins within y.
                    unsafe {
                        debug_assert!(at + V::LANES <= padded);
                        let y_re = V::load(y_table.as_ptr().add(at));
                        let y_im = V::load(y_table.as_ptr().add(padded + at));
                        let (re, im) = (y_im.fnma(z_im, y_re.mul(z_re)), y_im.fma(z_re, y_re.mul(z_im)));
                        re.store(right[p * V::LANES..].as_mut_ptr());
                        im.store(right[(P + p) * V::LANES..].as_mut_ptr());
                    }
                }
            }
            let right = &right[..count * width];
            let mut j = 0;
            while j < half {
                let size = group_size(j, half);
                let table = &x_table[2 * (j * self.samples + first * size)..][..2 * size * count];
                let sums = &mut sums[2 * j * width..][..2 * size * width];
                match size {
                    3 => multiply::<T, V, W, 6>(table, right, sums, first > 0),
                    2 => multiply::<T, V, W, 4>(table, right, sums, first > 0),
                    _ => multiply::<T, V, W, 2>(table, right, sums, first > 0),
                }
                j += size;
            }
        }
        for sums in sums.chunks_exact_mut(2 * width) {
            unfold::<T, V, P>(sums);
        }
        for line in 0..self.lines {
            let at = (self.start + line) * y.stride + self.at_z * z.stride;
            // SAFETY: each task has its own lines.
            let out = unsafe { self.out.part(at, x.n) };
            for (j, sums) in sums.chunks_exact(2 * width).enumerate() {
                let (plus, minus) = x.pair(j);
                let mut put = |at: usize, [re, im]: [T; 2]| {
                    let previous = if self.add { out[at] } else { Complex::default() };
                    out[at] = previous + Complex::new(re, im);
                };
                put(plus, [sums[2 * line], sums[2 * line + 1]]);
                if minus != plus {
                    put(minus, [sums[width + 2 * line], sums[width + 2 * line + 1]]);
                }
            }
        }
    }
}

/// Converts the sums A and B of one distance, [A_re, A_im, B_re, B_im] of `P` vectors of lines each, into the voxels A
/// + iB and A - iB of the lines.
#[inline(always)]
fn unfold<T: SimdReal, V: Vector<T>, const P: usize>(sums: &mut [T]) {
    assert_eq!(sums.len(), 4 * P * V::LANES);
    // SAFETY: `sums` has 4 P vectors, as asserted.
    unsafe {
        let start = sums.as_mut_ptr();
        let at = |i: usize| start.add(i * V::LANES);
        let [a_re, a_im, b_re, b_im]: [[V; P]; 4] = from_fn(|part| from_fn(|p| V::load(at(part * P + p))));
        for p in 0..P {
            let plus = a_re[p].sub(b_im[p]).zip(a_im[p].add(b_re[p]));
            let minus = a_re[p].add(b_im[p]).zip(a_im[p].sub(b_re[p]));
            for (i, half) in [plus.0, plus.1].into_iter().enumerate() {
                half.store(at(2 * p + i));
            }
            for (i, half) in [minus.0, minus.1].into_iter().enumerate() {
                half.store(at(2 * P + 2 * p + i));
            }
        }
    }
}

/// Computes sums(n, w) = (sums if `add`) + sum_m table(m, n) right(m, w), with w counting vectors.
#[inline(always)]
fn multiply<T: SimdReal, V: Vector<T>, const W: usize, const N: usize>(
    table: &[T],
    right: &[T],
    sums: &mut [T],
    add: bool,
) {
    let width = W * V::LANES;
    let samples = table.len() / N;
    assert!(table.len() == samples * N && right.len() == samples * width && sums.len() == N * width);
    let mut total = [[V::splat(T::ZERO); W]; N];
    // SAFETY: every access is within the asserted lengths.
    unsafe {
        for m in 0..samples {
            let (table, right) = (table.as_ptr().add(m * N), right.as_ptr().add(m * width));
            let right: [V; W] = from_fn(|w| V::load(right.add(w * V::LANES)));
            for (n, total) in total.iter_mut().enumerate() {
                let c = V::splat(*table.add(n));
                for (total, right) in total.iter_mut().zip(right) {
                    *total = right.fma(c, *total);
                }
            }
        }
        for (n, total) in total.into_iter().enumerate() {
            for (w, total) in total.into_iter().enumerate() {
                let at = sums.as_mut_ptr().add(n * width + w * V::LANES);
                let sum = if add { V::load(at).add(total) } else { total };
                sum.store(at);
            }
        }
    }
}
