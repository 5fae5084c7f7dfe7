//! Sums from the voxels of a grid to samples.

use super::axes::{align_to_line, has_wide_tiles, order_axes, panel_vectors, whole_lines, write_phases, GridAxis};
use crate::backend::cpu::simd::{Arith, Kernel, Level, SimdReal, Vector};
use crate::backend::threads::Threads;
use crate::base::interrupt::StopSignal;
use crate::base::workers::SharedSlice;
use num_complex::Complex;
use std::array::from_fn;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of voxels that are folded at a time.
const FOLDED_VOXELS: usize = 1 << 19;
/// Number of vectors of samples of a panel, whose table of x stays in the first-level cache.
const PANEL_VECTORS: usize = 2;
/// Number of panels of a task.
const PANELS: usize = 4;

/// Division of the sums to samples into parts of lines and panels of samples.
pub(super) struct SampleSumLayout<'a, T> {
    /// The axes in the order of their roles.
    axes: [GridAxis<'a, T>; 3],
    /// Number of lines of a tile.
    tile: usize,
    /// Length of a tile.
    tile_len: usize,
    /// Number of lines of a part.
    part: usize,
    /// Number of samples of a task.
    task_samples: usize,
    /// Length of the folded voxels of a part.
    folded_len: usize,
    /// Length of the scratch of a thread.
    thread_len: usize,
}

impl<'a, T: SimdReal> SampleSumLayout<'a, T> {
    /// Chooses the division.
    pub(super) fn new(level: Level, k: &'a [Vec<T>], dims: [usize; 3]) -> Self {
        let [x, y, z] = order_axes(k, dims);
        let tile = tile_lines(level);
        let tile_len = 4 * tile * x.half();
        let part = (FOLDED_VOXELS / (2 * x.half() * tile)).clamp(1, (y.n * z.n).div_ceil(tile)) * tile;
        let task_samples = PANELS * PANEL_VECTORS * level.lanes::<T>();
        let folded_len = whole_lines::<T>(part / tile * tile_len);
        let thread_len = whole_lines::<T>(2 * task_samples * (x.half() + y.n + z.n + 2));
        SampleSumLayout { axes: [x, y, z], tile, tile_len, part, task_samples, folded_len, thread_len }
    }
    /// Returns the length of the scratch of all threads.
    pub(super) fn scratch(&self, threads: usize) -> usize {
        self.folded_len + threads * self.thread_len
    }
}

/// Computes values(m) = sum_r image(r) exp(-i 2 pi k_m.r). The results are undefined if `stop` is set. `buffer` comes
/// from [`super::scratch`].
#[allow(clippy::too_many_arguments)]
pub fn to_samples<T: SimdReal>(
    threads: &Threads,
    level: Level,
    stop: &StopSignal,
    buffer: &mut [T],
    k: &[Vec<T>],
    dims: [usize; 3],
    image: &[Complex<T>],
    values: &mut [Complex<T>],
) {
    assert!(k.iter().all(|k| k.len() == values.len()));
    assert_eq!(image.len(), dims.iter().product::<usize>());
    let layout = SampleSumLayout::new(level, k, dims);
    let (folded, scratch) = align_to_line(buffer, layout.scratch(threads.count())).split_at_mut(layout.folded_len);
    let SampleSumLayout { axes, tile, tile_len, part, task_samples, thread_len, .. } = layout;
    let lines = axes[1].n * axes[2].n;
    let (total, out, scratch) = (values.len(), SharedSlice::new(values), SharedSlice::new(scratch));
    for first in (0..lines).step_by(part) {
        if stop.stopped() {
            return;
        }
        let lines = first..(first + part).min(lines);
        let writing = SharedSlice::new(&mut *folded);
        threads.run(lines.len().div_ceil(tile), |task| {
            let start = lines.start + task * tile;
            // SAFETY: each task has its own tile.
            let folded = unsafe { writing.part(task * tile_len, tile_len) };
            fold(axes, image, start..(start + tile).min(lines.end), tile, folded);
        });
        let folded = &*folded;
        let thread = AtomicUsize::new(0);
        threads.run_with(
            total.div_ceil(task_samples),
            || thread.fetch_add(1, Ordering::Relaxed),
            |thread, task| {
                if stop.stopped() {
                    return;
                }
                let samples = task * task_samples..((task + 1) * task_samples).min(total);
                // SAFETY: each task has its own samples, and each participating thread its own scratch.
                let (out, scratch) =
                    unsafe { (out.part(samples.start, samples.len()), scratch.part(*thread * thread_len, thread_len)) };
                let (lines, add) = (lines.clone(), first > 0);
                level.run(SampleSumKernel { axes, lines, folded, first: samples.start, scratch, add, out });
            },
        );
    }
}

/// Returns the number of lines of a register tile.
fn tile_lines(level: Level) -> usize {
    3 * panel_vectors(level)
}

/// Writes the sums E and differences D of the voxels at +u and -u in the order of the product: [u][line][E_re, E_im,
/// D_im, -D_re].
fn fold<T: SimdReal>(
    [x, y, z]: [GridAxis<'_, T>; 3],
    image: &[Complex<T>],
    lines: std::ops::Range<usize>,
    tile: usize,
    folded: &mut [T],
) {
    if lines.len() < tile {
        folded.fill(T::ZERO);
    }
    for (i, line) in lines.enumerate() {
        let voxels = &image[line % y.n * y.stride + line / y.n * z.stride..][..x.n];
        for (j, folded) in folded.chunks_exact_mut(4 * tile).enumerate() {
            let (plus, minus) = x.pair(j);
            let (sum, difference) = if plus == minus {
                (voxels[plus], Complex::default())
            } else {
                (voxels[plus] + voxels[minus], voxels[plus] - voxels[minus])
            };
            folded[4 * i..][..4].copy_from_slice(&[sum.re, sum.im, difference.im, -difference.re]);
        }
    }
}

/// The sums over some lines at the samples of a task.
struct SampleSumKernel<'a, T> {
    axes: [GridAxis<'a, T>; 3],
    lines: std::ops::Range<usize>,
    folded: &'a [T],
    first: usize,
    scratch: &'a mut [T],
    /// Whether sums are added to the samples' previous values.
    add: bool,
    out: &'a mut [Complex<T>],
}

impl<T: SimdReal> Kernel for SampleSumKernel<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<A: Arith>(self) {
        if has_wide_tiles::<A>() {
            self.sum::<A, 6>();
        } else {
            self.sum::<A, 3>();
        }
    }
}

impl<T: SimdReal> SampleSumKernel<'_, T> {
    /// Computes the sums in register tiles of `R` lines.
    #[inline(always)]
    fn sum<A: Arith, const R: usize>(self) {
        let [x, y, z] = self.axes;
        let width = PANEL_VECTORS * T::V::<A>::LANES;
        let half = x.half();
        let at_z = self.lines.start / y.n..(self.lines.end - 1) / y.n + 1;
        // The tables of a panel for x, y and z: [index][re, im][samples]; then the sums of the lines at one z, and of
        // all lines.
        let panels = self.out.len().div_ceil(width);
        let panel_len = 2 * width * (half + y.n + z.n + 2);
        for (i, panel) in self.scratch.chunks_exact_mut(panel_len).take(panels).enumerate() {
            let (x_table, rest) = panel.split_at_mut(2 * width * half);
            let (y_table, rest) = rest.split_at_mut(2 * width * y.n);
            let (z_table, sums) = rest.split_at_mut(2 * width * z.n);
            sums.fill(T::ZERO);
            for lane in 0..width {
                // The last sample is repeated to fill the last panel.
                let sample = self.first + (i * width + lane).min(self.out.len() - 1);
                let one = Complex::new(1.0, 0.0);
                let mut middle_phase = one;
                write_phases::<A, T>(x.k(sample), x.nearest(), half, one, |j, re, im| {
                    put_lane(&mut x_table[2 * width * j..], width, lane, re, im);
                });
                write_phases::<A, T>(y.k(sample), y.first(), y.n, one, |j, re, im| {
                    put_lane(&mut y_table[2 * width * j..], width, lane, re, im);
                });
                write_phases::<A, f64>(x.k(sample), x.middle(), 1, one, |_, re, im| {
                    middle_phase = Complex::new(re[0], im[0])
                });
                let first = z.first() + at_z.start as f64;
                write_phases::<A, T>(z.k(sample), first, at_z.len(), middle_phase, |j, re, im| {
                    put_lane(&mut z_table[2 * width * j..], width, lane, re, im);
                });
            }
        }
        for (i, folded) in self.folded.chunks_exact(4 * R * half).take(self.lines.len().div_ceil(R)).enumerate() {
            let start = self.lines.start + i * R;
            let lines = start..(start + R).min(self.lines.end);
            for panel in self.scratch.chunks_exact_mut(panel_len).take(panels) {
                let (x_table, rest) = panel.split_at_mut(2 * width * half);
                let line_sums = multiply_folded::<T, T::V<A>, R>(x_table, folded);
                let (y_table, rest) = rest.split_at_mut(2 * width * y.n);
                let (z_table, sums) = rest.split_at_mut(2 * width * z.n);
                let (z_sum, total_sum) = sums.split_at_mut(2 * width);
                for (line, line_sum) in lines.clone().zip(line_sums) {
                    let (at_y, z) = (line % y.n, line / y.n - at_z.start);
                    add_conj_product::<T, T::V<A>>(z_sum, &y_table[2 * width * at_y..][..2 * width], line_sum);
                    if at_y + 1 == y.n || line + 1 == self.lines.end {
                        // SAFETY: the sums of a line have 2 PANEL_VECTORS vectors.
                        let complete = unsafe { load::<T, T::V<A>>(z_sum) };
                        add_conj_product::<T, T::V<A>>(total_sum, &z_table[2 * width * z..][..2 * width], complete);
                        z_sum.fill(T::ZERO);
                    }
                }
            }
        }
        for (i, out) in self.out.iter_mut().enumerate() {
            let sums = &self.scratch[(i / width + 1) * panel_len - 2 * width + i % width..];
            let sum = Complex::new(sums[0], sums[width]);
            *out = if self.add { *out + sum } else { sum };
        }
    }
}

/// Writes the values of one sample into a table of a panel.
#[inline(always)]
fn put_lane<T: SimdReal>(table: &mut [T], width: usize, lane: usize, re: &[T], im: &[T]) {
    for (pair, (re, im)) in table.chunks_exact_mut(2 * width).zip(re.iter().zip(im)) {
        pair[lane] = *re;
        pair[width + lane] = *im;
    }
}

/// Real and imaginary parts of a panel.
type Parts<V> = [[V; PANEL_VECTORS]; 2];

/// Loads the parts of a panel.
///
/// # Safety
/// `from` must be as long as the parts of a panel.
#[inline(always)]
unsafe fn load<T: SimdReal, V: Vector<T>>(from: &[T]) -> Parts<V> {
    // Loops, because closures are not always inlined, and vectors would then be passed through memory.
    let mut parts = [[V::splat(T::ZERO); PANEL_VECTORS]; 2];
    for (part, vectors) in parts.iter_mut().enumerate() {
        for (p, vector) in vectors.iter_mut().enumerate() {
            // SAFETY: the caller promises the parts of a panel.
            *vector = unsafe { V::load(from.as_ptr().add((part * PANEL_VECTORS + p) * V::LANES)) };
        }
    }
    parts
}

/// Returns sum over u of (C(u) - i S(u)) applied to `R` lines from [`fold`]: C E_re + S D_im and C E_im - S D_re.
#[inline(always)]
fn multiply_folded<T: SimdReal, V: Vector<T>, const R: usize>(table: &[T], folded: &[T]) -> [Parts<V>; R] {
    let width = PANEL_VECTORS * V::LANES;
    let half = table.len() / (2 * width);
    assert!(table.len() == half * 2 * width && folded.len() == half * 4 * R);
    let mut sums = [[[V::splat(T::ZERO); PANEL_VECTORS]; 2]; R];
    for u in 0..half {
        // SAFETY: every access is within the asserted lengths.
        unsafe {
            let folded = folded.as_ptr().add(u * 4 * R);
            for part in 0..2 {
                let wave: [V; PANEL_VECTORS] =
                    from_fn(|p| V::load(table.as_ptr().add(u * 2 * width + part * width + p * V::LANES)));
                for (r, sums) in sums.iter_mut().enumerate() {
                    for (to, sums) in sums.iter_mut().enumerate() {
                        let c = V::splat(*folded.add(4 * r + 2 * part + to));
                        for (sum, wave) in sums.iter_mut().zip(wave) {
                            *sum = wave.fma(c, *sum);
                        }
                    }
                }
            }
        }
    }
    sums
}

/// Adds conj(wave) values to the sums of a panel.
#[inline(always)]
fn add_conj_product<T: SimdReal, V: Vector<T>>(sums: &mut [T], wave: &[T], [re, im]: Parts<V>) {
    assert!(sums.len() == 2 * PANEL_VECTORS * V::LANES && wave.len() == sums.len());
    // SAFETY: both are as long as the parts of a panel, as asserted.
    unsafe {
        let ([sum_re, sum_im], [wave_re, wave_im]) = (load::<T, V>(sums), load::<T, V>(wave));
        for p in 0..PANEL_VECTORS {
            let at = sums.as_mut_ptr().add(p * V::LANES);
            im[p].fma(wave_im[p], re[p].fma(wave_re[p], sum_re[p])).store(at);
            re[p].fnma(wave_im[p], im[p].fma(wave_re[p], sum_im[p])).store(at.add(PANEL_VECTORS * V::LANES));
        }
    }
}
