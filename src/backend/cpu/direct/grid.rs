//! Direct sums between samples and a Cartesian grid of voxels.
//!
//! exp(i 2 pi k.r) is a product over axes, so the sums are matrix products: a factor for each sample and position along
//! x, times a factor for each sample and line of voxels along x. Positions +u and -u about the middle of a line share
//! their cosine and their sine: with C and S real and R complex, A = sum C R and B = sum S R, the voxel at +u is A + iB
//! and the voxel at -u is A - iB. The products are thus real by complex, two fused operations for a sample and voxel.
//! The crate gemm multiplies complex by complex, which is twice as much work.

use super::super::simd::{Arith, Kernel, Level, Vector};
use super::super::thread_pool::Threads;
use super::phase::{cos_sin, phases};
use crate::backend::cpu::simd::SimdReal;
use crate::base::error::{try_vec, Result};
use crate::base::interrupt::Watch;
use crate::base::workers::Shared;
use num_complex::Complex;
use std::array::from_fn;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Samples whose tables are computed at a time for sums to the image, and samples of one run of the inner product.
const BLOCK: usize = 1024;
const RUN: usize = 128;
/// Samples whose tables one task computes.
const TABLE: usize = 32;
/// Voxels that are folded at a time for sums to samples.
const FOLDED: usize = 1 << 19;
/// Bytes of a cache line, to which scratch is aligned.
const LINE: usize = 64;

/// One axis of the grid: its voxels, the distance between two in the image, and the samples' coordinates along it.
#[derive(Clone, Copy)]
struct Axis<'a, T> {
    n: usize,
    stride: usize,
    k: Option<&'a [T]>,
}

impl<T: SimdReal> Axis<'_, T> {
    fn k(&self, sample: usize) -> f64 {
        self.k.map_or(0.0, |k| k[sample].wide())
    }
    /// Position of the first voxel.
    fn first(&self) -> f64 {
        -((self.n / 2) as f64)
    }
    /// Distances from the middle that differ.
    fn half(&self) -> usize {
        self.n.div_ceil(2)
    }
    /// The smallest of them.
    fn nearest(&self) -> f64 {
        if self.n.is_multiple_of(2) {
            0.5
        } else {
            0.0
        }
    }
    /// The middle of the axis.
    fn middle(&self) -> f64 {
        -self.nearest()
    }
    /// The voxels at distance `j` either way.
    fn pair(&self, j: usize) -> (usize, usize) {
        (self.n / 2 + j, (self.n - 1) / 2 - j)
    }
}

/// The axes in their roles: x, whose symmetry is used, then the axes of its lines. Axes of one voxel are left out.
fn axes<'a, T: SimdReal>(k: &'a [Vec<T>], dims: [usize; 3]) -> [Axis<'a, T>; 3] {
    let one = Axis { n: 1, stride: 0, k: None };
    let mut axes = [one; 3];
    let (mut used, mut stride) = (0, 1);
    for (axis, n) in dims.into_iter().enumerate() {
        if n > 1 {
            axes[used] = Axis { n, stride, k: k.get(axis).map(|k| &k[..]) };
            used += 1;
        }
        stride *= n;
    }
    if used == 1 {
        // Lines fill the vectors: a single axis is faster as many lines than as one.
        axes.swap(0, 1);
    }
    axes
}

/// `len` elements of a buffer, from its first cache line on.
fn aligned<T: SimdReal>(buffer: &mut [T], len: usize) -> &mut [T] {
    let skip = buffer.as_ptr().align_offset(LINE);
    &mut buffer[skip..][..len]
}

/// The elements of [`scratch`].
pub fn scratch_len<T: SimdReal>(threads: usize, level: Level, samples: usize, dims: [usize; 3]) -> usize {
    let to_image = ToImage::<T>::new(level, &[], samples, dims).scratch(threads);
    to_image.max(ToSamples::<T>::new(level, &[], dims).scratch(threads)) + LINE / size_of::<T>()
}

/// Scratch for one sum at a time, in either direction.
pub fn scratch<T: SimdReal>(threads: &Threads, level: Level, samples: usize, dims: [usize; 3]) -> Result<Vec<T>> {
    try_vec(scratch_len::<T>(threads.count(), level, samples, dims), T::ZERO, "exact sums")
}

fn whole_lines<T>(len: usize) -> usize {
    len.next_multiple_of(LINE / size_of::<T>())
}

/// The most elements of a vector of doubles.
const MOST_LANES: usize = 8;

/// cos and sin of 2 pi k r for the first few of `positions`.
#[inline(always)]
fn wave<V: Vector<f64>>(k: V, positions: [f64; MOST_LANES]) -> (V, V) {
    assert!(V::LANES <= MOST_LANES);
    // SAFETY: there are at least as many positions as elements, as asserted.
    let positions = unsafe { V::load(positions.as_ptr()) };
    let ([cos], [sin]) = cos_sin(phases([k], [[positions]]));
    (cos, sin)
}

/// exp(i 2 pi k r) times `factor` for r = first, first + 1, ..., passed to `put` as (index, reals, imaginaries). They
/// are products of the first few positions and of steps of as many positions, computed in double precision.
#[inline(always)]
fn along_axis<A: Arith, T: SimdReal>(
    k: f64,
    first: f64,
    count: usize,
    factor: Complex<f64>,
    mut put: impl FnMut(usize, &[T], &[T]),
) {
    let lanes = A::F64::LANES;
    let k = A::F64::splat(k);
    let mut buffer = [[0f64; MOST_LANES]; 2];
    let (cos, sin) = wave(k, from_fn(|i| first + i as f64));
    let (re, im) = (A::F64::splat(factor.re), A::F64::splat(factor.im));
    let (cos, sin) = (im.fnma(sin, re.mul(cos)), im.fma(cos, re.mul(sin)));
    for start in (0..count).step_by(lanes * lanes) {
        let steps = wave(k, from_fn(|i| (start + i * lanes) as f64));
        // SAFETY: buffers are no shorter than a vector, as `wave` asserts.
        unsafe {
            steps.0.store(buffer[0].as_mut_ptr());
            steps.1.store(buffer[1].as_mut_ptr());
        }
        for (i, first) in (start..count.min(start + lanes * lanes)).step_by(lanes).enumerate() {
            let (step_cos, step_sin) = (A::F64::splat(buffer[0][i]), A::F64::splat(buffer[1][i]));
            let mut out = [[0f64; MOST_LANES]; 2];
            // SAFETY: buffers are no shorter than a vector, as `wave` asserts.
            unsafe {
                step_sin.fnma(sin, step_cos.mul(cos)).store(out[0].as_mut_ptr());
                step_sin.fma(cos, step_cos.mul(sin)).store(out[1].as_mut_ptr());
            }
            // Not `map`, which the compiler may leave a call to code that is not compiled for the vector unit.
            let mut rounded = [[T::ZERO; MOST_LANES]; 2];
            for (rounded, out) in rounded.iter_mut().zip(&out) {
                for (rounded, out) in rounded.iter_mut().zip(out) {
                    *rounded = T::of(*out);
                }
            }
            let [re, im] = rounded;
            if count - first >= lanes {
                // A length that the compiler knows.
                put(first, &re[..lanes], &im[..lanes]);
            } else {
                put(first, &re[..count - first], &im[..count - first]);
            }
        }
    }
}

/// Whether register tiles have more vectors: where the level has 32 registers.
#[inline(always)]
fn wide_tiles<A: Arith>() -> bool {
    A::F32::LANES == 16
}

/// Lines of a panel at most, in vectors.
fn panel_vectors(level: Level) -> usize {
    struct Wide;
    impl Kernel for Wide {
        type Output = usize;
        #[inline(always)]
        fn run<A: Arith>(self) -> usize {
            if wide_tiles::<A>() {
                2
            } else {
                1
            }
        }
    }
    level.run(Wide)
}

fn lanes<T: SimdReal>(level: Level) -> usize {
    struct Lanes<T>(std::marker::PhantomData<T>);
    impl<T: SimdReal> Kernel for Lanes<T> {
        type Output = usize;
        #[inline(always)]
        fn run<A: Arith>(self) -> usize {
            T::V::<A>::LANES
        }
    }
    level.run(Lanes::<T>(std::marker::PhantomData))
}

/// How sums to an image are divided: axes in their roles, samples of a block, the lengths of a block's tables, the
/// lines of a panel, and the scratch of a thread.
struct ToImage<'a, T> {
    axes: [Axis<'a, T>; 3],
    block: usize,
    lengths: [usize; 3],
    panel: usize,
    thread_len: usize,
}

impl<'a, T: SimdReal> ToImage<'a, T> {
    fn new(level: Level, k: &'a [Vec<T>], samples: usize, dims: [usize; 3]) -> Self {
        let [x, mut y, mut z] = axes(k, dims);
        let lanes = lanes::<T>(level);
        // Vectors of lines lie along y. Exchanged with z where that leaves fewer lanes empty.
        let padded = |n: usize| n.next_multiple_of(lanes);
        if padded(z.n) * y.n < padded(y.n) * z.n {
            std::mem::swap(&mut y, &mut z);
        }
        let block = BLOCK.min(samples);
        let lengths = [2 * x.half() * block, 2 * padded(y.n) * block, 2 * z.n * block].map(whole_lines::<T>);
        let panel = panel_vectors(level) * lanes;
        let thread_len = whole_lines::<T>(2 * panel * RUN) + whole_lines::<T>(4 * panel * x.half());
        ToImage { axes: [x, y, z], block, lengths, panel, thread_len }
    }
    fn scratch(&self, threads: usize) -> usize {
        self.lengths.iter().sum::<usize>() + threads * self.thread_len
    }
}

/// image(r) = sum_m values(m) exp(+i 2 pi k_m.r). The results are undefined when the watch says stop. `buffer` comes
/// from [`scratch`].
#[allow(clippy::too_many_arguments)]
pub fn to_image<T: SimdReal>(
    threads: &Threads,
    level: Level,
    watch: &Watch,
    buffer: &mut [T],
    k: &[Vec<T>],
    dims: [usize; 3],
    values: &[Complex<T>],
    image: &mut [Complex<T>],
) {
    assert!(k.iter().all(|k| k.len() == values.len()));
    assert_eq!(image.len(), dims.iter().product::<usize>());
    let plan = ToImage::new(level, k, values.len(), dims);
    let shared = plan.lengths.iter().sum();
    let (tables, scratch) = aligned(buffer, plan.scratch(threads.count())).split_at_mut(shared);
    let ToImage { axes: [x, y, z], block, lengths, panel, thread_len } = plan;
    let (out, scratch) = (Shared::new(image), Shared::new(scratch));
    let panels = y.n.div_ceil(panel);
    for first in (0..values.len()).step_by(block.max(1)) {
        if watch.stopped() {
            return;
        }
        let values = &values[first..(first + block).min(values.len())];
        let writing = Shared::new(&mut *tables);
        threads.run(values.len().div_ceil(TABLE), |task| {
            let samples = task * TABLE..((task + 1) * TABLE).min(values.len());
            level.run(ImageTables { x, y, z, first, values, samples, lengths, tables: &writing });
        });
        let tables = &*tables;
        let thread = AtomicUsize::new(0);
        threads.run_with(
            panels * z.n,
            || thread.fetch_add(1, Ordering::Relaxed),
            |thread, task| {
                if watch.stopped() {
                    return;
                }
                // SAFETY: each thread that takes part has its own scratch.
                let scratch = unsafe { scratch.part(*thread * thread_len, thread_len) };
                let (start, at_z) = (task % panels * panel, task / panels);
                let lines = panel.min(y.n - start);
                let samples = values.len();
                let add = first > 0;
                level.run(ImagePanel {
                    x,
                    y,
                    z,
                    start,
                    lines,
                    at_z,
                    samples,
                    lengths,
                    tables,
                    scratch,
                    add,
                    out: &out,
                });
            },
        );
    }
    if values.is_empty() {
        // SAFETY: no thread is at work.
        unsafe { out.part(0, dims.iter().product()) }.fill(Complex::default());
    }
}

/// Tables of a block of samples: [groups of distances][samples][cos, sin of each distance of the group] of x,
/// [samples][re, im][y] and [samples][z][re, im], the last times the sample's value and the phase of the middle of x.
struct ImageTables<'a, T> {
    x: Axis<'a, T>,
    y: Axis<'a, T>,
    z: Axis<'a, T>,
    first: usize,
    values: &'a [Complex<T>],
    samples: std::ops::Range<usize>,
    lengths: [usize; 3],
    tables: &'a Shared<'a, T>,
}

/// Distances of a group that begins at `j`: three, or two where three would leave a single one.
#[inline(always)]
fn group(j: usize, half: usize) -> usize {
    match half - j {
        1 => 1,
        2 | 4 => 2,
        _ => 3,
    }
}

impl<T: SimdReal> Kernel for ImageTables<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<A: Arith>(self) {
        let Self { x, y, z, .. } = self;
        let all = self.values.len();
        let padded = y.n.next_multiple_of(T::V::<A>::LANES);
        let one = Complex::new(1.0, 0.0);
        for m in self.samples {
            let sample = self.first + m;
            // SAFETY: each task has its own samples, and a sample its own part of the second and third table.
            let (of_y, of_z) = unsafe {
                (
                    self.tables.part(self.lengths[0] + 2 * padded * m, 2 * padded),
                    self.tables.part(self.lengths[0] + self.lengths[1] + 2 * z.n * m, 2 * z.n),
                )
            };
            // Where the next distance goes, how many of its group follow, and the first of the next group.
            let (mut at, mut left, mut next) = (0, 0, 0);
            along_axis::<A, T>(x.k(sample), x.nearest(), x.half(), one, |_, re, im| {
                for (re, im) in re.iter().zip(im) {
                    if left == 0 {
                        left = group(next, x.half());
                        at = 2 * (next * all + left * m);
                        next += left;
                    }
                    // SAFETY: each task has its own samples, and these are elements of this sample.
                    unsafe {
                        self.tables.set(at, *re);
                        self.tables.set(at + 1, *im);
                    }
                    (at, left) = (at + 2, left - 1);
                }
            });
            let (re_y, im_y) = of_y.split_at_mut(padded);
            // To the end of the last vector: sums beyond y are not read.
            along_axis::<A, T>(y.k(sample), y.first(), padded, one, |j, re, im| {
                re_y[j..][..re.len()].copy_from_slice(re);
                im_y[j..][..im.len()].copy_from_slice(im);
            });
            let mut moved = Complex::default();
            let value = Complex::new(self.values[m].re.wide(), self.values[m].im.wide());
            along_axis::<A, f64>(x.k(sample), x.middle(), 1, value, |_, re, im| moved = Complex::new(re[0], im[0]));
            along_axis::<A, T>(z.k(sample), z.first(), z.n, moved, |j, re, im| {
                for (pair, (re, im)) in of_z[2 * j..].chunks_exact_mut(2).zip(re.iter().zip(im)) {
                    pair[0] = *re;
                    pair[1] = *im;
                }
            });
        }
    }
}

/// Lines y = start .. start + lines at one z, summed over a block of samples.
struct ImagePanel<'a, T> {
    x: Axis<'a, T>,
    y: Axis<'a, T>,
    z: Axis<'a, T>,
    start: usize,
    lines: usize,
    at_z: usize,
    samples: usize,
    lengths: [usize; 3],
    tables: &'a [T],
    scratch: &'a mut [T],
    /// Whether sums are added to what the image holds.
    add: bool,
    out: &'a Shared<'a, Complex<T>>,
}

impl<T: SimdReal> Kernel for ImagePanel<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<A: Arith>(self) {
        if wide_tiles::<A>() && self.lines > T::V::<A>::LANES {
            self.sum::<T::V<A>, 2, 4>();
        } else {
            self.sum::<T::V<A>, 1, 2>();
        }
    }
}

impl<T: SimdReal> ImagePanel<'_, T> {
    /// With `P` vectors of lines: `W` of real and imaginary parts.
    #[inline(always)]
    fn sum<V: Vector<T>, const P: usize, const W: usize>(self) {
        let half = self.x.half();
        let width = W * V::LANES;
        let (of_x, rest) = self.tables.split_at(self.lengths[0]);
        let (of_y, of_z) = rest.split_at(self.lengths[1]);
        let padded = self.y.n.next_multiple_of(V::LANES);
        let (right, sums) = self.scratch.split_at_mut(whole_lines::<T>(width * RUN));
        let sums = &mut sums[..2 * half * width];
        for first in (0..self.samples).step_by(RUN) {
            let count = RUN.min(self.samples - first);
            // right(m, line) = value(m) exp(i 2 pi (ky y + kz z))
            for (m, right) in right.chunks_exact_mut(width).take(count).enumerate() {
                let of_z = &of_z[2 * (self.z.n * (first + m) + self.at_z)..][..2];
                let (z_re, z_im) = (V::splat(of_z[0]), V::splat(of_z[1]));
                let of_y = &of_y[2 * padded * (first + m)..][..2 * padded];
                for p in 0..P {
                    let at = self.start + p * V::LANES;
                    // SAFETY: `padded` is a multiple of the vector, and the panel's last vector begins within y.
                    unsafe {
                        debug_assert!(at + V::LANES <= padded);
                        let y_re = V::load(of_y.as_ptr().add(at));
                        let y_im = V::load(of_y.as_ptr().add(padded + at));
                        let (re, im) = (y_im.fnma(z_im, y_re.mul(z_re)), y_im.fma(z_re, y_re.mul(z_im)));
                        re.store(right[p * V::LANES..].as_mut_ptr());
                        im.store(right[(P + p) * V::LANES..].as_mut_ptr());
                    }
                }
            }
            let right = &right[..count * width];
            let mut j = 0;
            while j < half {
                let size = group(j, half);
                let table = &of_x[2 * (j * self.samples + first * size)..][..2 * size * count];
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
            let at = (self.start + line) * self.y.stride + self.at_z * self.z.stride;
            // SAFETY: each task has its own lines.
            let out = unsafe { self.out.part(at, self.x.n) };
            for (j, sums) in sums.chunks_exact(2 * width).enumerate() {
                let (plus, minus) = self.x.pair(j);
                let mut put = |at: usize, [re, im]: [T; 2]| {
                    let before = if self.add { out[at] } else { Complex::default() };
                    out[at] = before + Complex::new(re, im);
                };
                put(plus, [sums[2 * line], sums[2 * line + 1]]);
                if minus != plus {
                    put(minus, [sums[width + 2 * line], sums[width + 2 * line + 1]]);
                }
            }
        }
    }
}

/// Turns the sums A and B of one distance, [A_re, A_im, B_re, B_im] of `P` vectors of lines each, into the voxels
/// A + iB and A - iB of the lines.
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

/// sums(n, w) = (sums if `add`) + sum_m table(m, n) right(m, w), w counting vectors.
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
    // SAFETY: every access is within the lengths asserted.
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

/// How sums to samples are divided: axes in their roles, lines of a tile and of a part, the length of a tile, samples
/// of a task, the length of a part's folded voxels, and the scratch of a thread.
struct ToSamples<'a, T> {
    axes: [Axis<'a, T>; 3],
    tile: usize,
    tile_len: usize,
    part: usize,
    of_task: usize,
    folded_len: usize,
    thread_len: usize,
}

impl<'a, T: SimdReal> ToSamples<'a, T> {
    fn new(level: Level, k: &'a [Vec<T>], dims: [usize; 3]) -> Self {
        let [x, y, z] = axes(k, dims);
        let tile = tile_lines(level);
        let tile_len = 4 * tile * x.half();
        let part = (FOLDED / (2 * x.half() * tile)).clamp(1, (y.n * z.n).div_ceil(tile)) * tile;
        let of_task = PANELS * PANEL_VECTORS * lanes::<T>(level);
        let folded_len = whole_lines::<T>(part / tile * tile_len);
        let thread_len = whole_lines::<T>(2 * of_task * (x.half() + y.n + z.n + 2));
        ToSamples { axes: [x, y, z], tile, tile_len, part, of_task, folded_len, thread_len }
    }
    fn scratch(&self, threads: usize) -> usize {
        self.folded_len + threads * self.thread_len
    }
}

/// values(m) = sum_r image(r) exp(-i 2 pi k_m.r). The results are undefined when the watch says stop. `buffer` comes
/// from [`scratch`].
#[allow(clippy::too_many_arguments)]
pub fn to_samples<T: SimdReal>(
    threads: &Threads,
    level: Level,
    watch: &Watch,
    buffer: &mut [T],
    k: &[Vec<T>],
    dims: [usize; 3],
    image: &[Complex<T>],
    values: &mut [Complex<T>],
) {
    assert!(k.iter().all(|k| k.len() == values.len()));
    assert_eq!(image.len(), dims.iter().product::<usize>());
    let plan = ToSamples::new(level, k, dims);
    let (folded, scratch) = aligned(buffer, plan.scratch(threads.count())).split_at_mut(plan.folded_len);
    let ToSamples { axes: [x, y, z], tile, tile_len, part, of_task, thread_len, .. } = plan;
    let lines = y.n * z.n;
    let (total, out, scratch) = (values.len(), Shared::new(values), Shared::new(scratch));
    for first in (0..lines).step_by(part) {
        if watch.stopped() {
            return;
        }
        let lines = first..(first + part).min(lines);
        let writing = Shared::new(&mut *folded);
        threads.run(lines.len().div_ceil(tile), |task| {
            let start = lines.start + task * tile;
            // SAFETY: each task has its own tile.
            let folded = unsafe { writing.part(task * tile_len, tile_len) };
            fold([x, y, z], image, start..(start + tile).min(lines.end), tile, folded);
        });
        let folded = &*folded;
        let thread = AtomicUsize::new(0);
        threads.run_with(
            total.div_ceil(of_task),
            || thread.fetch_add(1, Ordering::Relaxed),
            |thread, task| {
                if watch.stopped() {
                    return;
                }
                let samples = task * of_task..((task + 1) * of_task).min(total);
                // SAFETY: each task has its own samples, each thread that takes part its own scratch.
                let (out, scratch) =
                    unsafe { (out.part(samples.start, samples.len()), scratch.part(*thread * thread_len, thread_len)) };
                let (lines, add) = (lines.clone(), first > 0);
                level.run(SampleSums { x, y, z, lines, folded, first: samples.start, scratch, add, out });
            },
        );
    }
}

/// Vectors of samples of a panel, whose table of x stays in the first cache, and panels of a task.
const PANEL_VECTORS: usize = 2;
const PANELS: usize = 4;

/// Lines of a register tile.
fn tile_lines(level: Level) -> usize {
    3 * panel_vectors(level)
}

/// Sums E and differences D of the voxels at +u and -u, as the product takes them: [u][line][E_re, E_im, D_im, -D_re].
fn fold<T: SimdReal>(
    [x, y, z]: [Axis<'_, T>; 3],
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

/// Sums over some lines at the samples of a task.
struct SampleSums<'a, T> {
    x: Axis<'a, T>,
    y: Axis<'a, T>,
    z: Axis<'a, T>,
    lines: std::ops::Range<usize>,
    folded: &'a [T],
    first: usize,
    scratch: &'a mut [T],
    /// Whether sums are added to what the samples hold.
    add: bool,
    out: &'a mut [Complex<T>],
}

impl<T: SimdReal> Kernel for SampleSums<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<A: Arith>(self) {
        if wide_tiles::<A>() {
            self.sum::<A, 6>();
        } else {
            self.sum::<A, 3>();
        }
    }
}

impl<T: SimdReal> SampleSums<'_, T> {
    /// In register tiles of `R` lines.
    #[inline(always)]
    fn sum<A: Arith, const R: usize>(self) {
        let Self { x, y, z, .. } = self;
        let width = PANEL_VECTORS * T::V::<A>::LANES;
        let half = x.half();
        let at_z = self.lines.start / y.n..(self.lines.end - 1) / y.n + 1;
        // Tables of a panel: [index][re, im][samples], for x, y and z; then the sums of the lines at one z, and of all.
        let panels = self.out.len().div_ceil(width);
        let panel_len = 2 * width * (half + y.n + z.n + 2);
        for (i, panel) in self.scratch.chunks_exact_mut(panel_len).take(panels).enumerate() {
            let (of_x, rest) = panel.split_at_mut(2 * width * half);
            let (of_y, rest) = rest.split_at_mut(2 * width * y.n);
            let (of_z, sums) = rest.split_at_mut(2 * width * z.n);
            sums.fill(T::ZERO);
            for lane in 0..width {
                // The last sample fills up the last panel.
                let sample = self.first + (i * width + lane).min(self.out.len() - 1);
                let one = Complex::new(1.0, 0.0);
                let mut moved = one;
                along_axis::<A, T>(x.k(sample), x.nearest(), half, one, |j, re, im| {
                    put_lane(&mut of_x[2 * width * j..], width, lane, re, im);
                });
                along_axis::<A, T>(y.k(sample), y.first(), y.n, one, |j, re, im| {
                    put_lane(&mut of_y[2 * width * j..], width, lane, re, im);
                });
                along_axis::<A, f64>(x.k(sample), x.middle(), 1, one, |_, re, im| moved = Complex::new(re[0], im[0]));
                let first = z.first() + at_z.start as f64;
                along_axis::<A, T>(z.k(sample), first, at_z.len(), moved, |j, re, im| {
                    put_lane(&mut of_z[2 * width * j..], width, lane, re, im);
                });
            }
        }
        for (i, folded) in self.folded.chunks_exact(4 * R * half).take(self.lines.len().div_ceil(R)).enumerate() {
            let start = self.lines.start + i * R;
            let lines = start..(start + R).min(self.lines.end);
            for panel in self.scratch.chunks_exact_mut(panel_len).take(panels) {
                let (of_x, rest) = panel.split_at_mut(2 * width * half);
                let of_lines = multiply_folded::<T, T::V<A>, R>(of_x, folded);
                let (of_y, rest) = rest.split_at_mut(2 * width * y.n);
                let (of_z, sums) = rest.split_at_mut(2 * width * z.n);
                let (of_line, of_all) = sums.split_at_mut(2 * width);
                for (line, of_x) in lines.clone().zip(of_lines) {
                    let (at_y, z) = (line % y.n, line / y.n - at_z.start);
                    add_conj_product::<T, T::V<A>>(of_line, &of_y[2 * width * at_y..][..2 * width], of_x);
                    if at_y + 1 == y.n || line + 1 == self.lines.end {
                        // SAFETY: the sums of a line are 2 PANEL_VECTORS vectors.
                        let whole = unsafe { load::<T, T::V<A>>(of_line) };
                        add_conj_product::<T, T::V<A>>(of_all, &of_z[2 * width * z..][..2 * width], whole);
                        of_line.fill(T::ZERO);
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

/// # Safety
/// `from` must be as long as the parts of a panel.
#[inline(always)]
unsafe fn load<T: SimdReal, V: Vector<T>>(from: &[T]) -> Parts<V> {
    // SAFETY: the caller promises the parts of a panel.
    from_fn(|part| from_fn(|p| unsafe { V::load(from.as_ptr().add((part * PANEL_VECTORS + p) * V::LANES)) }))
}

/// sum over u of (C(u) - i S(u)) applied to `R` lines as [`fold`] left them: C E_re + S D_im and C E_im - S D_re.
#[inline(always)]
fn multiply_folded<T: SimdReal, V: Vector<T>, const R: usize>(table: &[T], folded: &[T]) -> [Parts<V>; R] {
    let width = PANEL_VECTORS * V::LANES;
    let half = table.len() / (2 * width);
    assert!(table.len() == half * 2 * width && folded.len() == half * 4 * R);
    let mut sums = [[[V::splat(T::ZERO); PANEL_VECTORS]; 2]; R];
    for u in 0..half {
        // SAFETY: every access is within the lengths asserted.
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

/// sums += conj(wave) values, for a panel.
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
