//! Element-wise primitives, sums of products, and the products with sparse and difference matrices.
//!
//! Sums are computed over fixed chunks in double precision, and the chunks are added in order: the bits do not depend
//! on the number of threads.

use super::device::Cpu;
use super::simd::{Arith, Kernel, Level, SimdReal};
use crate::backend::threads::Threads;
use crate::backend::MAX_PROJECTIONS;
use crate::base::real::narrow;
use crate::base::workers::{chunk_len, fold, SharedSlice, Workers};
use num_complex::Complex;
use std::ops::Range;

/// Minimum number of elements of a chunk that is computed from several arrays.
const SHORT_CHUNK: usize = 256;

/// Calls `f(chunk of z, its first index)` for all chunks.
pub fn each_chunk<E: Send>(threads: &Threads, z: &mut [E], f: impl Fn(&mut [E], usize) + Sync) {
    each_chunk_of_arrays(threads, z.len(), z, |z, _, start| f(z, start));
}

/// Calls `f(chunk of z, its first index)` for all chunks, if each element of z is computed from `arrays` arrays. Chunks
/// are shorter than otherwise, since they take longer.
fn each_short_chunk<E: Send>(threads: &Threads, arrays: usize, z: &mut [E], f: impl Fn(&mut [E], usize) + Sync) {
    let len = z.len();
    let chunk = (chunk_len(len) / arrays.max(1)).next_multiple_of(SHORT_CHUNK);
    let shared = SharedSlice::new(z);
    threads.run(len.div_ceil(chunk), |i| {
        let start = i * chunk;
        // SAFETY: chunks do not overlap.
        f(unsafe { shared.part(start, chunk.min(len - start)) }, start);
    });
}

/// Calls `f(chunk of an array, index of the array, first index of the chunk)` for all chunks of the arrays of `len`
/// elements in `z`.
pub fn each_chunk_of_arrays<E: Send>(
    threads: &Threads,
    len: usize,
    z: &mut [E],
    f: impl Fn(&mut [E], usize, usize) + Sync,
) {
    if z.is_empty() {
        return;
    }
    assert!(z.len().is_multiple_of(len));
    let (arrays, chunk) = (z.len() / len, chunk_len(len));
    let chunks = len.div_ceil(chunk);
    let shared = SharedSlice::new(z);
    threads.run(arrays * chunks, |i| {
        let (array, start) = (i / chunks, i % chunks * chunk);
        // SAFETY: chunks do not overlap.
        f(unsafe { shared.part(array * len + start, chunk.min(len - start)) }, array, start);
    });
}

/// Returns the sum over chunks of `f(elements)`, in a fixed order.
fn sum_chunks(cpu: &Cpu, len: usize, f: impl Fn(Range<usize>) -> f64 + Sync) -> f64 {
    fold(cpu, len, 0.0, f, |sum, one| sum + one)
}

/// Implements [`crate::backend::Backend::copy`].
pub fn copy<E: Copy + Send + Sync>(cpu: &Cpu, x: &[E], y: &mut [E]) {
    assert_eq!(x.len(), y.len());
    each_chunk(&cpu.threads, y, |y, start| y.copy_from_slice(&x[start..start + y.len()]));
}

/// Implements [`crate::backend::Backend::clear`].
pub fn clear<E: Clone + Default + Send>(cpu: &Cpu, y: &mut [E]) {
    each_chunk(&cpu.threads, y, |y, _| y.fill(E::default()));
}

// SAFETY: the threads run every task exactly once.
unsafe impl Workers for Cpu {
    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        self.threads.run(tasks, task);
    }
}

/// Returns complex numbers as pairs of reals.
#[inline(always)]
fn flat<T>(z: &[Complex<T>]) -> &[T] {
    // SAFETY: Complex<T> is repr(C), two T without padding.
    unsafe { std::slice::from_raw_parts(z.as_ptr().cast(), 2 * z.len()) }
}

/// Returns complex numbers as writable pairs of reals.
#[inline(always)]
fn flat_mut<T>(z: &mut [Complex<T>]) -> &mut [T] {
    // SAFETY: Complex<T> is repr(C), two T without padding.
    unsafe { std::slice::from_raw_parts_mut(z.as_mut_ptr().cast(), 2 * z.len()) }
}

/// The inner product Re <x, y> of complex numbers.
struct RealDotKernel<'a, T> {
    x: &'a [T],
    y: &'a [T],
}

impl<T: SimdReal> Kernel for RealDotKernel<'_, T> {
    type Output = f64;
    #[inline(always)]
    fn run<A: Arith>(self) -> f64 {
        // Eight sums on every level, in four vectors, two or one, so that all levels add in the same order.
        const LANES: usize = 8;
        let mut sums = [0f64; LANES];
        let (x, y) = (self.x.chunks_exact(LANES), self.y.chunks_exact(LANES));
        let mut rest = 0.0;
        for (x, y) in x.remainder().iter().zip(y.remainder()) {
            rest += x.wide() * y.wide();
        }
        for (x, y) in x.zip(y) {
            for j in 0..LANES {
                sums[j] = A::fma(x[j].wide(), y[j].wide(), sums[j]);
            }
        }
        sums.iter().sum::<f64>() + rest
    }
}

/// Returns Re <x, y> of one chunk.
fn dot_chunk<T: SimdReal>(level: Level, x: &[Complex<T>], y: &[Complex<T>]) -> f64 {
    level.run(RealDotKernel { x: flat(x), y: flat(y) })
}

/// The combination y = a x + b y of reals.
struct LinearCombinationKernel<'a, T> {
    a: T,
    x: &'a [T],
    b: T,
    y: &'a mut [T],
}

impl<T: SimdReal> Kernel for LinearCombinationKernel<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<A: Arith>(self) {
        for (x, y) in self.x.iter().zip(self.y) {
            *y = A::fma(self.a, *x, self.b * *y);
        }
    }
}

/// Computes y = a x + b y.
fn combine<T: SimdReal>(cpu: &Cpu, a: f64, x: &[Complex<T>], b: f64, y: &mut [Complex<T>]) {
    assert_eq!(x.len(), y.len());
    each_chunk(&cpu.threads, y, |y, start| {
        let x = flat(&x[start..start + y.len()]);
        cpu.level.run(LinearCombinationKernel { a: T::of(a), x, b: T::of(b), y: flat_mut(y) });
    });
}

/// Implements [`crate::backend::Backend::axpy`].
pub fn axpy<T: SimdReal>(cpu: &Cpu, a: f64, x: &[Complex<T>], y: &mut [Complex<T>]) {
    combine(cpu, a, x, 1.0, y);
}

/// Implements [`crate::backend::Backend::dot`].
pub fn dot<T: SimdReal>(cpu: &Cpu, x: &[Complex<T>], y: &[Complex<T>]) -> f64 {
    assert_eq!(x.len(), y.len());
    sum_chunks(cpu, x.len(), |elements| dot_chunk(cpu.level, &x[elements.clone()], &y[elements]))
}

/// Implements [`crate::backend::Backend::cg_step`].
pub fn cg_step<T: SimdReal>(
    cpu: &Cpu,
    step: f64,
    p: &[Complex<T>],
    q: &[Complex<T>],
    x: &mut [Complex<T>],
    r: &mut [Complex<T>],
) -> f64 {
    assert!(p.len() == x.len() && q.len() == x.len() && r.len() == x.len());
    let (x, r) = (SharedSlice::new(x), SharedSlice::new(r));
    sum_chunks(cpu, p.len(), |elements| {
        let (start, len) = (elements.start, elements.len());
        // SAFETY: chunks do not overlap.
        let (x, r) = unsafe { (x.part(start, len), r.part(start, len)) };
        let (p, q) = (&p[elements.clone()], &q[elements]);
        cpu.level.run(LinearCombinationKernel { a: T::of(step), x: flat(p), b: T::ONE, y: flat_mut(x) });
        cpu.level.run(LinearCombinationKernel { a: T::of(-step), x: flat(q), b: T::ONE, y: flat_mut(r) });
        dot_chunk(cpu.level, r, r)
    })
}

/// The inner product Im <x, y> of complex numbers.
struct ImaginaryDotKernel<'a, T> {
    x: &'a [T],
    y: &'a [T],
}

impl<T: SimdReal> Kernel for ImaginaryDotKernel<'_, T> {
    type Output = f64;
    #[inline(always)]
    fn run<A: Arith>(self) -> f64 {
        const LANES: usize = 8;
        let mut sums = [0f64; LANES];
        let (x, y) = (self.x.chunks_exact(2 * LANES), self.y.chunks_exact(2 * LANES));
        let mut rest = 0.0;
        for (x, y) in x.remainder().chunks_exact(2).zip(y.remainder().chunks_exact(2)) {
            rest += x[0].wide() * y[1].wide() - x[1].wide() * y[0].wide();
        }
        for (x, y) in x.zip(y) {
            for j in 0..LANES {
                let product = A::fma(x[2 * j].wide(), y[2 * j + 1].wide(), sums[j]);
                sums[j] = A::fma(-x[2 * j + 1].wide(), y[2 * j].wide(), product);
            }
        }
        sums.iter().sum::<f64>() + rest
    }
}

/// The difference y = y - a x with a complex factor a.
struct SubtractionKernel<'a, T> {
    a: Complex<T>,
    x: &'a [T],
    y: &'a mut [T],
}

impl<T: SimdReal> Kernel for SubtractionKernel<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<A: Arith>(self) {
        let Complex { re, im } = self.a;
        for (x, y) in self.x.chunks_exact(2).zip(self.y.chunks_exact_mut(2)) {
            let (real, imaginary) = (A::fma(im, x[1], y[0]), A::fma(-im, x[0], y[1]));
            y[0] = A::fma(-re, x[0], real);
            y[1] = A::fma(-re, x[1], imaginary);
        }
    }
}

/// Implements [`crate::backend::Backend::subtract_projections`].
pub fn subtract_projections<T: SimdReal>(cpu: &Cpu, v: &[Complex<T>], norms: &[f64], x: &mut [Complex<T>]) -> f64 {
    let n = x.len();
    assert!(norms.len() <= MAX_PROJECTIONS && v.len() == n * norms.len());
    let products = |elements: Range<usize>| {
        let mut sums = [Complex::default(); MAX_PROJECTIONS];
        let x = &x[elements.clone()];
        for (sum, v) in sums.iter_mut().zip(v.chunks_exact(n.max(1))) {
            let v = &v[elements.clone()];
            *sum =
                Complex::new(dot_chunk(cpu.level, v, x), cpu.level.run(ImaginaryDotKernel { x: flat(v), y: flat(x) }));
        }
        sums
    };
    let add =
        |a: [Complex<f64>; MAX_PROJECTIONS], b: [Complex<f64>; MAX_PROJECTIONS]| std::array::from_fn(|k| a[k] + b[k]);
    let sums = fold(cpu, n, [Complex::default(); MAX_PROJECTIONS], products, add);
    let x = SharedSlice::new(x);
    sum_chunks(cpu, n, |elements| {
        // SAFETY: chunks do not overlap.
        let x = unsafe { x.part(elements.start, elements.len()) };
        for ((v, sum), norm) in v.chunks_exact(n.max(1)).zip(sums).zip(norms) {
            let a = if *norm > 0.0 { narrow(sum / norm) } else { Complex::new(T::ZERO, T::ZERO) };
            cpu.level.run(SubtractionKernel { a, x: flat(&v[elements.clone()]), y: flat_mut(x) });
        }
        dot_chunk(cpu.level, x, x)
    })
}

/// Implements [`crate::backend::Backend::cg_direction`].
pub fn cg_direction<T: SimdReal>(cpu: &Cpu, beta: f64, r: &[Complex<T>], p: &mut [Complex<T>]) {
    combine(cpu, 1.0, r, beta, p);
}

/// The function z = f(x, y, z), element by element.
struct ElementwiseKernel<'a, X, Y, Z, F> {
    x: &'a [X],
    y: &'a [Y],
    z: &'a mut [Z],
    f: F,
}

impl<X: Copy, Y: Copy, Z: Copy, F: Fn(X, Y, Z) -> Z> Kernel for ElementwiseKernel<'_, X, Y, Z, F> {
    type Output = ();
    #[inline(always)]
    fn run<A: Arith>(self) {
        for ((z, x), y) in self.z.iter_mut().zip(self.x).zip(self.y) {
            *z = (self.f)(*x, *y, *z);
        }
    }
}

/// Computes z = f(x, y, z), element by element, at this level.
fn run_elementwise<X: Copy, Y: Copy, Z: Copy>(level: Level, x: &[X], y: &[Y], z: &mut [Z], f: impl Fn(X, Y, Z) -> Z) {
    level.run(ElementwiseKernel { x, y, z, f });
}

/// Implements [`crate::backend::Backend::multiply`].
pub fn multiply<T: SimdReal>(cpu: &Cpu, x: &[Complex<T>], y: &[Complex<T>], z: &mut [Complex<T>]) {
    assert_eq!(x.len(), z.len());
    each_chunk_of_arrays(&cpu.threads, y.len(), z, |z, array, start| {
        let (x, y) = (&x[array * y.len() + start..][..z.len()], &y[start..][..z.len()]);
        run_elementwise(
            cpu.level,
            x,
            y,
            z,
            #[inline(always)]
            |x, y, _| x * y,
        );
    });
}

/// Implements [`crate::backend::Backend::add_conj_products`].
pub fn add_conj_products<T: SimdReal>(cpu: &Cpu, x: &[Complex<T>], y: &[Complex<T>], z: &mut [Complex<T>]) {
    assert!(x.len() == y.len() && x.len().is_multiple_of(z.len()));
    let len = z.len();
    each_short_chunk(&cpu.threads, x.len() / len.max(1), z, |z, start| {
        for (x, y) in x.chunks_exact(len).zip(y.chunks_exact(len)) {
            let (x, y) = (&x[start..][..z.len()], &y[start..][..z.len()]);
            run_elementwise(
                cpu.level,
                x,
                y,
                z,
                #[inline(always)]
                |x, y, z| z + x.conj() * y,
            );
        }
    });
}

/// Implements [`crate::backend::Backend::apply_weights`].
pub fn apply_weights<T: SimdReal>(cpu: &Cpu, w: &[T], x: &[Complex<T>], z: &mut [Complex<T>]) {
    assert_eq!(x.len(), z.len());
    each_chunk_of_arrays(&cpu.threads, w.len(), z, |z, array, start| {
        let (w, x) = (&w[start..][..z.len()], &x[array * w.len() + start..][..z.len()]);
        run_elementwise(
            cpu.level,
            w,
            x,
            z,
            #[inline(always)]
            |w, x, _| x * w,
        );
    });
}

/// Implements [`crate::backend::Backend::add_differences`].
pub fn add_differences<T: SimdReal>(
    cpu: &Cpu,
    dims: &[usize],
    weights: Option<&[T]>,
    lambda: f64,
    x: &[Complex<T>],
    y: &mut [Complex<T>],
) {
    let voxels = x.len();
    assert_eq!(dims.iter().product::<usize>(), voxels);
    assert_eq!(y.len(), voxels);
    assert!(weights.is_none_or(|w| w.len() == voxels * dims.len()));
    let lambda = T::of(lambda);
    let row = dims[0];
    let out = SharedSlice::new(y);
    cpu.threads.run(voxels / row, |line| {
        let start = line * row;
        // SAFETY: each task has its own line.
        let y = unsafe { out.part(start, row) };
        let mut stride = 1;
        for (axis, &n) in dims.iter().enumerate() {
            let w = |i: usize| lambda * weights.map_or(T::ONE, |w| w[axis * voxels + i]);
            for (j, y) in y.iter_mut().enumerate() {
                let i = start + j;
                let at = i / stride % n;
                let mut sum = Complex::default();
                if at > 0 {
                    sum += (x[i] - x[i - stride]) * w(i - stride);
                }
                if at + 1 < n {
                    sum += (x[i] - x[i + stride]) * w(i);
                }
                *y += sum;
            }
            stride *= n;
        }
    });
}
