//! The direct sums of Stone et al. 2008: F^H d and its transpose, to full precision.
//!
//! On a Cartesian grid of voxels exp(i 2 pi k.r) is a product over axes, so the sums are complex matrix products. For an
//! arbitrary list of voxels they are evaluated as they stand, with the phase reduced before it is rounded.

mod list;
mod phase;

use super::simd::{Arith, Kernel, Level};
use super::threads::{Shared, Threads};
use crate::backend::Sign;
use crate::error::{try_collect, Result};
use crate::pool::Pool;
use crate::real::Real;
use gemm::Parallelism;
use num_complex::Complex;

/// Direct sums between samples and voxels.
pub struct DirectSum<T> {
    level: Level,
    k: Vec<Vec<T>>,
    voxels: Voxels<T>,
    tables: Pool<Vec<Complex<T>>>,
}

enum Voxels<T> {
    Grid([usize; 3]),
    List(Vec<Vec<T>>),
}

/// Samples that go through one matrix product, rows (lines of voxels along x) of one task, samples of one task.
const SAMPLES: usize = 1024;
const ROWS: usize = 32;
const COLUMNS: usize = 128;

impl<T: Real> DirectSum<T> {
    /// See [`crate::backend::Backend::direct_sum`].
    pub fn new(level: Level, k: &[&[T]], dims: &[usize], voxels: Option<&[&[T]]>) -> Result<Self> {
        let own = |lists: &[&[T]]| -> Result<Vec<Vec<T>>> {
            lists.iter().map(|l| try_collect(l.len(), "coordinates", l.iter().copied())).collect()
        };
        let voxels = match voxels {
            Some(lists) => Voxels::List(own(lists)?),
            None => Voxels::Grid([0, 1, 2].map(|a| *dims.get(a).unwrap_or(&1))),
        };
        Ok(DirectSum { level, k: own(k)?, voxels, tables: Pool::new() })
    }

    /// See [`crate::backend::Backend::sum_to_image`].
    pub fn to_image(&self, threads: &Threads, values: &[Complex<T>], image: &mut [Complex<T>]) {
        match &self.voxels {
            Voxels::Grid(n) => self.grid_to_image(threads, *n, values, image),
            Voxels::List(r) => list::sum(threads, self.level, Sign::Plus, &self.k, values, r, image),
        }
    }

    /// See [`crate::backend::Backend::sum_to_samples`].
    pub fn to_samples(&self, threads: &Threads, image: &[Complex<T>], values: &mut [Complex<T>]) {
        match &self.voxels {
            Voxels::Grid(n) => self.grid_to_samples(threads, *n, image, values),
            Voxels::List(r) => list::sum(threads, self.level, Sign::Minus, r, image, &self.k, values),
        }
    }

    /// Phases of a block of samples on all axes: [x, then y, then z][samples].
    fn phases(&self, threads: &Threads, n: [usize; 3], first: usize, samples: usize, table: &mut [Complex<T>]) {
        let shared = Shared::new(table);
        // A task for each voxel coordinate of each axis would be many; eight a axis balance well enough.
        const PARTS: usize = 8;
        threads.run(3 * PARTS, |task| {
            let (axis, part) = (task / PARTS, task % PARTS);
            let rows = part * n[axis] / PARTS..(part + 1) * n[axis] / PARTS;
            let offset: usize = n[..axis].iter().sum();
            // SAFETY: each task has its own rows of the table.
            let table = unsafe { shared.part((offset + rows.start) * samples, rows.len() * samples) };
            struct Fill<'a, T> {
                sum: &'a DirectSum<T>,
                axis: usize,
                n: usize,
                first_row: usize,
                first: usize,
                samples: usize,
                table: &'a mut [Complex<T>],
            }
            impl<T: Real> Kernel for Fill<'_, T> {
                type Output = ();
                #[inline(always)]
                fn run<A: Arith>(self) {
                    let Some(k) = self.sum.k.get(self.axis) else {
                        self.table.fill(Complex::new(T::ONE, T::ZERO));
                        return;
                    };
                    let k = &k[self.first..self.first + self.samples];
                    for (i, row) in self.table.chunks_exact_mut(self.samples).enumerate() {
                        let r = (self.first_row + i) as f64 - (self.n / 2) as f64;
                        for (z, k) in row.iter_mut().zip(k) {
                            // In double precision k r loses nothing that matters.
                            let turns = k.wide() * r;
                            let (sin, cos) = sincos_turns::<A, f64>(turns - turns.round_even());
                            *z = Complex::new(T::of(cos), T::of(sin));
                        }
                    }
                }
            }
            self.level.run(Fill { sum: self, axis, n: n[axis], first_row: rows.start, first, samples, table });
        });
    }

    fn grid_to_image(&self, threads: &Threads, n: [usize; 3], values: &[Complex<T>], image: &mut [Complex<T>]) {
        let [nx, ny, nz] = n;
        assert_eq!(values.len(), self.k[0].len());
        assert_eq!(image.len(), nx * ny * nz);
        image.fill(Complex::default());
        let mut table = self.tables.take(Vec::new);
        table.resize((nx + ny + nz) * SAMPLES, Complex::default());
        let out = Shared::new(image);
        for first in (0..values.len()).step_by(SAMPLES) {
            let samples = SAMPLES.min(values.len() - first);
            self.phases(threads, n, first, samples, &mut table[..(nx + ny + nz) * samples]);
            let (ex, rest) = table.split_at(nx * samples);
            let (ey, ez) = rest.split_at(ny * samples);
            let values = &values[first..first + samples];
            let tasks = (ny * nz).div_ceil(ROWS);
            let scratch = || self.tables.take(Vec::new);
            threads.run_with(tasks, scratch, |right, task| {
                let rows = task * ROWS..((task + 1) * ROWS).min(ny * nz);
                right.resize(ROWS * SAMPLES, Complex::default());
                for (row, line) in rows.clone().zip(right.chunks_exact_mut(samples)) {
                    let (y, z) = (&ey[row % ny * samples..], &ez[row / ny * samples..]);
                    for (((right, v), y), z) in line.iter_mut().zip(values).zip(y).zip(z) {
                        *right = *v * *y * *z;
                    }
                }
                // SAFETY: each task has its own rows of the image.
                let image = unsafe { out.part(rows.start * nx, rows.len() * nx) };
                // image[x, row] += sum_m ex[m, x] right[m, row]
                product(
                    Matrix { data: image, rows: nx, columns: rows.len(), row: 1, column: nx },
                    true,
                    (ex, samples, 1, false),
                    (right, 1, samples),
                    samples,
                );
            });
        }
    }

    fn grid_to_samples(&self, threads: &Threads, n: [usize; 3], image: &[Complex<T>], values: &mut [Complex<T>]) {
        let [nx, ny, nz] = n;
        assert_eq!(values.len(), self.k[0].len());
        assert_eq!(image.len(), nx * ny * nz);
        let mut table = self.tables.take(Vec::new);
        table.resize((nx + ny + nz) * SAMPLES, Complex::default());
        let total = values.len();
        let out = Shared::new(values);
        for first in (0..total).step_by(SAMPLES) {
            let samples = SAMPLES.min(total - first);
            self.phases(threads, n, first, samples, &mut table[..(nx + ny + nz) * samples]);
            let (ex, rest) = table.split_at(nx * samples);
            let (ey, ez) = rest.split_at(ny * samples);
            threads.run_with(
                samples.div_ceil(COLUMNS),
                || self.tables.take(Vec::new),
                |left, task| {
                    let own = task * COLUMNS..((task + 1) * COLUMNS).min(samples);
                    left.resize(COLUMNS * ROWS, Complex::default());
                    // SAFETY: each task has its own samples.
                    let values = unsafe { out.part(first + own.start, own.len()) };
                    values.fill(Complex::default());
                    for start in (0..ny * nz).step_by(ROWS) {
                        let rows = start..(start + ROWS).min(ny * nz);
                        // left[m, row] = sum_x conj(ex[m, x]) image[x, row]
                        product(
                            Matrix { data: left, rows: own.len(), columns: rows.len(), row: 1, column: own.len() },
                            false,
                            (&ex[own.start..], 1, samples, true),
                            (&image[start * nx..], 1, nx),
                            nx,
                        );
                        for (row, line) in rows.zip(left.chunks_exact(own.len())) {
                            let y = &ey[row % ny * samples + own.start..];
                            let z = &ez[row / ny * samples + own.start..];
                            for (((v, l), y), z) in values.iter_mut().zip(line).zip(y).zip(z) {
                                *v += *l * (*y * *z).conj();
                            }
                        }
                    }
                },
            );
        }
    }
}

/// A matrix to write, with the distances between its rows and columns.
struct Matrix<'a, T> {
    data: &'a mut [Complex<T>],
    rows: usize,
    columns: usize,
    row: usize,
    column: usize,
}

/// out = (out if `add`) + left right, `inner` being the length of the sums; left is (data, row distance, column
/// distance, conjugate), right is (data, row distance, column distance).
fn product<T: Real>(
    out: Matrix<'_, T>,
    add: bool,
    left: (&[Complex<T>], usize, usize, bool),
    right: (&[Complex<T>], usize, usize),
    inner: usize,
) {
    if out.rows == 0 || out.columns == 0 || inner == 0 {
        return;
    }
    let last = |rows: usize, columns: usize, row: usize, column: usize| (rows - 1) * row + (columns - 1) * column;
    assert!(last(out.rows, out.columns, out.row, out.column) < out.data.len());
    assert!(last(out.rows, inner, left.1, left.2) < left.0.len());
    assert!(last(inner, out.columns, right.1, right.2) < right.0.len());
    let one = Complex::new(T::ONE, T::ZERO);
    // SAFETY: the asserts above keep every access inside the three slices, and `out.data` is borrowed mutably. gemm
    // takes Complex<f32> and Complex<f64> by their type, which `Real` is sealed to.
    unsafe {
        gemm::gemm(
            out.rows,
            out.columns,
            inner,
            out.data.as_mut_ptr(),
            out.column as isize,
            out.row as isize,
            add,
            left.0.as_ptr(),
            left.2 as isize,
            left.1 as isize,
            right.0.as_ptr(),
            right.2 as isize,
            right.1 as isize,
            one,
            one,
            false,
            left.3,
            false,
            Parallelism::None,
        );
    }
}

/// Sine and cosine of 2 pi `turns`, |turns| <= 1/2 or a little more, to an ulp or two: the quarter turn nearest is taken
/// off and Taylor's series summed over what is left.
#[inline(always)]
pub fn sincos_turns<A: Arith, T: Real>(turns: T) -> (T, T) {
    let four = turns * T::of(4.0);
    let quarter = four.round_even();
    let x = (four - quarter) * T::of(std::f64::consts::FRAC_PI_2);
    let x2 = x * x;
    // Terms beyond these are below the rounding error at x = pi/4.
    let terms = if T::EPSILON > 1e-10 { 5 } else { 8 };
    let (mut sin, mut cos) = (T::ONE, T::ONE);
    for i in (1..=terms).rev() {
        sin = A::fma(x2 * T::of(-1.0 / (2 * i * (2 * i + 1)) as f64), sin, T::ONE);
        cos = A::fma(x2 * T::of(-1.0 / (2 * i * (2 * i - 1)) as f64), cos, T::ONE);
    }
    sin *= x;
    // A quarter turn takes (sin, cos) to (cos, -sin), and two change both signs.
    let two = quarter * quarter > T::of(2.0);
    let odd = quarter * quarter == T::ONE;
    let (s, c) = if odd { (cos, sin) } else { (sin, cos) };
    let s = if two || quarter == -T::ONE { -s } else { s };
    let c = if two || quarter == T::ONE { -c } else { c };
    (s, c)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Check;
    impl Kernel for Check {
        type Output = ();
        fn run<A: Arith>(self) {
            for i in -600..=600 {
                let turns = i as f64 / 1170.0;
                let (sin, cos) = (turns * std::f64::consts::TAU).sin_cos();
                let (s, c) = sincos_turns::<A, f64>(turns);
                assert!((s - sin).abs() < 4e-16 && (c - cos).abs() < 4e-16, "{turns}: {s} {sin} {c} {cos}");
                let (sin, cos) = ((turns as f32 as f64) * std::f64::consts::TAU).sin_cos();
                let (s, c) = sincos_turns::<A, f32>(turns as f32);
                assert!((s as f64 - sin).abs() < 1.5e-7 && (c as f64 - cos).abs() < 1.5e-7, "{turns}");
            }
        }
    }

    #[test]
    fn sincos_is_accurate_to_an_ulp_or_two() {
        for level in Level::all() {
            level.run(Check);
        }
    }
}
