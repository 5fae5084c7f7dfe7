//! One-dimensional FFTs of many lines at once: each lane of a vector holds a different line. (rustfft transforms one
//! line at a time, see mod.rs.)
//!
//! A buffer holds, for each of the n points of a line, a vector of real and a vector of imaginary parts. Lines are
//! loaded in the order of decimation in time (so that no point moves twice), transformed in place in stages of radix 2
//! to 8, and stored in natural order.
//!
//! Zero points are not read, and cropped points are not written: a [`LineMapping`] lists the points that a line in
//! memory contains. Lines may be adjacent columns or rows of an array; rows are transposed in registers.

use crate::backend::cpu::simd::{prefetch, transpose, Arith, Kernel, SimdReal, Vector, MAX_LANES};
use crate::base::error::{try_collect, try_vec, Result};
use crate::base::real::narrow;
use crate::base::roots_of_unity::roots_of_unity;
use num_complex::Complex;
use std::f64::consts::FRAC_1_SQRT_2;

/// Name of the allocations in an error.
pub const TABLES: &str = "the tables of an FFT";

/// The largest radix.
const MAX_RADIX: usize = 8;

/// The transform of one length.
pub struct LaneFft<T> {
    n: usize,
    stages: Vec<Stage<T>>,
    /// Position in the buffer of each input point.
    position: Vec<u32>,
}

/// A stage of the transform.
struct Stage<T> {
    radix: usize,
    /// Length of the transforms of the previous stages.
    len: usize,
    /// exp(-i 2 pi j q / (len radix)) for j below len and q from 1 to radix - 1.
    twiddles: Vec<Complex<T>>,
    /// cos and sin of 2 pi k / radix, for odd radices.
    roots: Vec<Complex<T>>,
}

/// The points of a line that an array in memory contains.
pub struct LineMapping<T> {
    /// Point of each element.
    point: Vec<u32>,
    /// Position of each element in the buffer after loading.
    position: Vec<u32>,
    /// Positions of points that are not in memory, and therefore zero.
    empty: Vec<u32>,
    /// Factor of each element.
    factor: Vec<T>,
}

impl<T> LineMapping<T> {
    /// Returns the number of elements of a line in memory.
    fn len(&self) -> usize {
        self.point.len()
    }

    /// Returns the position of each element in the buffer after loading.
    pub fn positions(&self) -> &[u32] {
        &self.position
    }

    /// Returns the positions of points that are not in memory and must be zero.
    pub fn empty(&self) -> &[u32] {
        &self.empty
    }
}

/// Lines in memory, at most one per lane.
#[derive(Clone, Copy)]
pub struct Lines<T> {
    /// Address of the first element of the first line.
    pub address: *mut Complex<T>,
    /// Stride between the elements of a line. One of the two strides is 1.
    pub along: usize,
    /// Stride between lines.
    pub across: usize,
    /// Number of lines, at most the number of lanes.
    pub count: usize,
}

impl<T: SimdReal> LaneFft<T> {
    /// Plans transforms of `n` points, a product of 2, 3, 5 and 7.
    pub fn new(n: usize) -> Result<Self> {
        let mut radices = Vec::new();
        let mut rest = n;
        for odd in [7, 5, 3] {
            while rest.is_multiple_of(odd) {
                radices.push(odd);
                rest /= odd;
            }
        }
        assert!(rest.is_power_of_two(), "{n} is not a product of 2, 3, 5 and 7");
        while rest > 1 {
            // Radix 8 is used as often as possible, then radix 4 or 2.
            let radix = match rest {
                2 | 4 | 8 => rest,
                16 => 4,
                _ => 8,
            };
            radices.push(radix);
            rest /= radix;
        }
        let mut position = try_vec(n, 0u32, TABLES)?;
        for (offset, input) in decimated_order(&radices)?.into_iter().enumerate() {
            position[input] = offset as u32;
        }
        let of_order_n = roots_of_unity(n, TABLES)?;
        // exp(-i 2 pi k / m) for a factor m of n.
        let root = |k: usize, m: usize| narrow::<T>(of_order_n[k * (n / m)]);
        let mut stages = Vec::new();
        let mut len = 1;
        for &radix in &radices {
            let pairs = (0..len).flat_map(|j| (1..radix).map(move |q| j * q));
            let twiddles = pairs.map(|jq| root(jq, len * radix));
            let twiddles = try_collect(len * (radix - 1), TABLES, twiddles)?;
            let roots = (0..radix).map(|k| root(k, radix).conj()).collect();
            stages.push(Stage { radix, len, twiddles, roots });
            len *= radix;
        }
        Ok(LaneFft { n, stages, position })
    }

    /// Returns the length of a buffer in reals.
    pub fn buffer_len(&self, lanes: usize) -> usize {
        2 * lanes * self.n
    }

    /// Describes a line in memory whose elements are these `points`, multiplied by `factor` when they are loaded or
    /// stored.
    pub fn mapping(&self, points: impl Iterator<Item = usize>, factor: Vec<T>) -> Result<LineMapping<T>> {
        let point = try_collect(factor.len(), TABLES, points.map(|p| p as u32))?;
        assert!(point.len() == factor.len() && point.iter().all(|&p| (p as usize) < self.n));
        let position = try_collect(point.len(), TABLES, point.iter().map(|&p| self.position[p as usize]))?;
        let mut present = try_vec(self.n, false, TABLES)?;
        position.iter().for_each(|&p| present[p as usize] = true);
        let empty = (0..self.n).filter(|&p| !present[p]).map(|p| p as u32);
        Ok(LineMapping { empty: try_collect(self.n - point.len(), TABLES, empty)?, point, position, factor })
    }

    /// Describes a line in memory that contains all points.
    pub fn full_mapping(&self) -> Result<LineMapping<T>> {
        self.mapping(0..self.n, try_vec(self.n, T::ONE, TABLES)?)
    }

    /// Runs the stages on a loaded buffer.
    ///
    /// # Safety
    /// `buffer` must hold `buffer_len` reals for this level's lanes.
    #[inline(always)]
    pub unsafe fn run<A: Arith>(&self, buffer: *mut T) {
        for stage in &self.stages {
            // SAFETY: the caller promises a buffer of n points; radices multiply to n.
            unsafe {
                match stage.radix {
                    2 => run_stage::<T, A, 2>(stage, self.n, buffer),
                    3 => run_stage::<T, A, 3>(stage, self.n, buffer),
                    4 => run_stage::<T, A, 4>(stage, self.n, buffer),
                    5 => run_stage::<T, A, 5>(stage, self.n, buffer),
                    7 => run_stage::<T, A, 7>(stage, self.n, buffer),
                    8 => run_stage::<T, A, 8>(stage, self.n, buffer),
                    radix => unreachable!("no stage has radix {radix}"),
                }
            }
        }
    }
}

/// Returns the input point of each buffer position, so that stages of these radices leave their results in natural
/// order.
fn decimated_order(radices: &[usize]) -> Result<Vec<usize>> {
    let Some((&last, earlier)) = radices.split_last() else { return try_vec(1, 0, TABLES) };
    let inner = decimated_order(earlier)?;
    try_collect(last * inner.len(), TABLES, (0..last).flat_map(|q| inner.iter().map(move |i| q + last * i)))
}

/// A complex vector: real and imaginary parts.
type ComplexVector<V> = (V, V);

/// Runs one stage of radix `R`.
///
/// # Safety
/// See [`LaneFft::run`].
#[inline(always)]
unsafe fn run_stage<T: SimdReal, A: Arith, const R: usize>(stage: &Stage<T>, n: usize, buffer: *mut T) {
    let lanes = T::V::<A>::LANES;
    let step = stage.len * 2 * lanes;
    let mut roots = [(T::V::<A>::splat(T::ZERO), T::V::<A>::splat(T::ZERO)); MAX_RADIX];
    for (pair, root) in roots.iter_mut().zip(&stage.roots) {
        *pair = (T::V::<A>::splat(root.re), T::V::<A>::splat(root.im));
    }
    for j in 0..stage.len {
        let mut twiddles = [roots[0]; MAX_RADIX];
        for (pair, w) in twiddles[1..R].iter_mut().zip(&stage.twiddles[j * (R - 1)..]) {
            *pair = (T::V::<A>::splat(w.re), T::V::<A>::splat(w.im));
        }
        for block in 0..n / (stage.len * R) {
            // SAFETY: block, j and q number the n points of the buffer.
            unsafe {
                let first = buffer.add(block * R * step + j * 2 * lanes);
                let mut x = [roots[0]; R];
                for (q, x) in x.iter_mut().enumerate() {
                    let p = first.add(q * step);
                    let (re, im) = (T::V::<A>::load(p), T::V::<A>::load(p.add(lanes)));
                    *x = if q > 0 && stage.len > 1 { multiply::<T, _>((re, im), twiddles[q]) } else { (re, im) };
                }
                for (q, (re, im)) in butterfly::<T, _, R>(x, &roots).into_iter().enumerate() {
                    let p = first.add(q * step);
                    re.store(p);
                    im.store(p.add(lanes));
                }
            }
        }
    }
}

/// Returns x w.
#[inline(always)]
fn multiply<T, V: Vector<T>>(x: ComplexVector<V>, w: ComplexVector<V>) -> ComplexVector<V> {
    (x.1.fnma(w.1, x.0.mul(w.0)), x.1.fma(w.0, x.0.mul(w.1)))
}

#[inline(always)]
fn add<T, V: Vector<T>>(a: ComplexVector<V>, b: ComplexVector<V>) -> ComplexVector<V> {
    (a.0.add(b.0), a.1.add(b.1))
}

#[inline(always)]
fn subtract<T, V: Vector<T>>(a: ComplexVector<V>, b: ComplexVector<V>) -> ComplexVector<V> {
    (a.0.sub(b.0), a.1.sub(b.1))
}

/// Returns a - i b and a + i b.
#[inline(always)]
fn add_i_times<T, V: Vector<T>>(a: ComplexVector<V>, b: ComplexVector<V>) -> (ComplexVector<V>, ComplexVector<V>) {
    ((a.0.add(b.1), a.1.sub(b.0)), (a.0.sub(b.1), a.1.add(b.0)))
}

/// Returns y(k) = sum_q x(q) exp(-i 2 pi k q / R).
#[inline(always)]
fn butterfly<T: SimdReal, V: Vector<T>, const R: usize>(
    x: [ComplexVector<V>; R],
    roots: &[ComplexVector<V>; MAX_RADIX],
) -> [ComplexVector<V>; R] {
    let mut y = x;
    match R {
        2 => {
            y[0] = add(x[0], x[1]);
            y[1] = subtract(x[0], x[1]);
        }
        4 => y.copy_from_slice(&butterfly_4([x[0], x[1], x[2], x[3]])),
        8 => {
            let even = butterfly_4([x[0], x[2], x[4], x[6]]);
            let odd = butterfly_4([x[1], x[3], x[5], x[7]]);
            let half = V::splat(T::of(FRAC_1_SQRT_2));
            let (o1, o3) = (odd[1], odd[3]);
            let rotated = [
                odd[0],
                (o1.0.add(o1.1).mul(half), o1.1.sub(o1.0).mul(half)),
                odd[2],
                (o3.1.sub(o3.0).mul(half), o3.0.add(o3.1).mul(half)),
            ];
            y[0] = add(even[0], rotated[0]);
            y[4] = subtract(even[0], rotated[0]);
            y[1] = add(even[1], rotated[1]);
            y[5] = subtract(even[1], rotated[1]);
            (y[2], y[6]) = add_i_times(even[2], rotated[2]);
            // The factor is exp(-i 6 pi / 8) = -(1 + i) / sqrt 2, so real and imaginary parts differ in sign.
            y[3] = (even[3].0.add(rotated[3].0), even[3].1.sub(rotated[3].1));
            y[7] = (even[3].0.sub(rotated[3].0), even[3].1.add(rotated[3].1));
        }
        // An odd radix uses sums and differences of the inputs q and R - q.
        _ => {
            let half = R / 2;
            let mut sums = [x[0]; MAX_RADIX];
            let mut differences = [x[0]; MAX_RADIX];
            for q in 1..=half {
                sums[q] = add(x[q], x[R - q]);
                differences[q] = subtract(x[q], x[R - q]);
                y[0] = add(y[0], sums[q]);
            }
            for k in 1..=half {
                let mut a = x[0];
                let (sin, d) = (roots[k].1, differences[1]);
                let mut b = (d.0.mul(sin), d.1.mul(sin));
                for q in 1..=half {
                    let (cos, sin) = roots[k * q % R];
                    a = (sums[q].0.fma(cos, a.0), sums[q].1.fma(cos, a.1));
                    if q > 1 {
                        b = (differences[q].0.fma(sin, b.0), differences[q].1.fma(sin, b.1));
                    }
                }
                (y[k], y[R - k]) = add_i_times(a, b);
            }
        }
    }
    y
}

/// Returns the transform of four points.
#[inline(always)]
fn butterfly_4<T, V: Vector<T>>(x: [ComplexVector<V>; 4]) -> [ComplexVector<V>; 4] {
    let (a, b) = (add(x[0], x[2]), subtract(x[0], x[2]));
    let (c, d) = (add(x[1], x[3]), subtract(x[1], x[3]));
    let (y1, y3) = add_i_times(b, d);
    [add(a, c), y1, subtract(a, c), y3]
}

/// Returns the offsets of real and imaginary parts in a cell of the buffer. They are exchanged for the transform with
/// exp(+i ...).
#[inline(always)]
fn part_offsets(inverse: bool, lanes: usize) -> (usize, usize) {
    if inverse {
        (lanes, 0)
    } else {
        (0, lanes)
    }
}

/// Loads lines into a buffer, with points in the order of decimation in time; exchanges real and imaginary parts for
/// the inverse.
///
/// # Safety
/// `lines` must be readable, with `mapping.len()` elements each. `buffer` must be writable, with
/// [`LaneFft::buffer_len`] reals.
#[inline(always)]
pub unsafe fn load<T: SimdReal, A: Arith>(lines: Lines<T>, mapping: &LineMapping<T>, inverse: bool, buffer: *mut T) {
    let lanes = T::V::<A>::LANES;
    let (re_at, im_at) = part_offsets(inverse, lanes);
    let zero = T::V::<A>::splat(T::ZERO);
    // SAFETY: positions are below n, elements below the mapping's length, and lines below `count`.
    unsafe {
        for &offset in &mapping.empty {
            let cell = buffer.add(offset as usize * 2 * lanes);
            zero.store(cell);
            zero.store(cell.add(lanes));
        }
        let elements = mapping.position.iter().zip(&mapping.factor).enumerate();
        if lines.count == lanes && lines.across == 1 {
            for (i, (&offset, &factor)) in elements {
                let p: *const T = lines.address.add(i * lines.along).cast();
                // The columns to the right are processed next, each row on a different page.
                prefetch(p.wrapping_add(2 * lanes));
                prefetch(p.wrapping_add(3 * lanes));
                let (re, im) = T::V::<A>::load(p).unzip(T::V::<A>::load(p.add(lanes)));
                let (cell, factor) = (buffer.add(offset as usize * 2 * lanes), T::V::<A>::splat(factor));
                re.mul(factor).store(cell.add(re_at));
                im.mul(factor).store(cell.add(im_at));
            }
            return;
        }
        let mut first = 0;
        if lines.count == lanes && lines.along == 1 {
            while first + lanes <= mapping.len() {
                let factor = T::V::<A>::load(mapping.factor.as_ptr().add(first));
                let (mut re, mut im) = ([zero; MAX_LANES], [zero; MAX_LANES]);
                for line in 0..lanes {
                    let p: *const T = lines.address.add(line * lines.across + first).cast();
                    let (r, i) = T::V::<A>::load(p).unzip(T::V::<A>::load(p.add(lanes)));
                    (re[line], im[line]) = (r.mul(factor), i.mul(factor));
                }
                transpose::<T, _>(&mut re);
                transpose::<T, _>(&mut im);
                for i in 0..lanes {
                    let cell = buffer.add(*mapping.position.get_unchecked(first + i) as usize * 2 * lanes);
                    re[i].store(cell.add(re_at));
                    im[i].store(cell.add(im_at));
                }
                first += lanes;
            }
        }
        // Elements that do not fill vectors are loaded one by one; lanes without a line are zero.
        for (i, (&offset, &factor)) in elements.skip(first) {
            let cell = buffer.add(offset as usize * 2 * lanes);
            for line in 0..lanes {
                let value = match line < lines.count {
                    true => *lines.address.add(i * lines.along + line * lines.across) * factor,
                    false => Complex::default(),
                };
                *cell.add(re_at + line) = value.re;
                *cell.add(im_at + line) = value.im;
            }
        }
    }
}

/// Stores a transformed buffer to lines.
///
/// # Safety
/// `lines` must be writable by this thread only, with `mapping.len()` elements each. `buffer` must be readable.
#[inline(always)]
pub unsafe fn store<T: SimdReal, A: Arith>(lines: Lines<T>, mapping: &LineMapping<T>, inverse: bool, buffer: *const T) {
    let lanes = T::V::<A>::LANES;
    let (re_at, im_at) = part_offsets(inverse, lanes);
    let zero = T::V::<A>::splat(T::ZERO);
    // SAFETY: points are below n, elements below the mapping's length, and lines below `count`.
    unsafe {
        let elements = mapping.point.iter().zip(&mapping.factor).enumerate();
        if lines.count == lanes && lines.across == 1 {
            for (i, (&point, &factor)) in elements {
                let (cell, factor) = (buffer.add(point as usize * 2 * lanes), T::V::<A>::splat(factor));
                let re = T::V::<A>::load(cell.add(re_at)).mul(factor);
                let im = T::V::<A>::load(cell.add(im_at)).mul(factor);
                let (low, high) = re.zip(im);
                let p: *mut T = lines.address.add(i * lines.along).cast();
                low.store(p);
                high.store(p.add(lanes));
            }
            return;
        }
        let mut first = 0;
        if lines.count == lanes && lines.along == 1 {
            while first + lanes <= mapping.len() {
                let factor = T::V::<A>::load(mapping.factor.as_ptr().add(first));
                let (mut re, mut im) = ([zero; MAX_LANES], [zero; MAX_LANES]);
                for i in 0..lanes {
                    let cell = buffer.add(*mapping.point.get_unchecked(first + i) as usize * 2 * lanes);
                    re[i] = T::V::<A>::load(cell.add(re_at));
                    im[i] = T::V::<A>::load(cell.add(im_at));
                }
                transpose::<T, _>(&mut re);
                transpose::<T, _>(&mut im);
                for line in 0..lanes {
                    let (low, high) = re[line].mul(factor).zip(im[line].mul(factor));
                    let p: *mut T = lines.address.add(line * lines.across + first).cast();
                    low.store(p);
                    high.store(p.add(lanes));
                }
                first += lanes;
            }
        }
        for (i, (&point, &factor)) in elements.skip(first) {
            let cell = buffer.add(point as usize * 2 * lanes);
            for line in 0..lines.count {
                let value = Complex::new(*cell.add(re_at + line), *cell.add(im_at + line)) * factor;
                *lines.address.add(i * lines.along + line * lines.across) = value;
            }
        }
    }
}

/// A transform of lines from memory to memory.
pub struct LaneTransform<'a, T> {
    pub fft: &'a LaneFft<T>,
    pub inverse: bool,
    pub from: (Lines<T>, &'a LineMapping<T>),
    pub to: (Lines<T>, &'a LineMapping<T>),
    pub buffer: &'a mut [T],
}

impl<'a, T: SimdReal> LaneTransform<'a, T> {
    /// Returns the transform as a kernel.
    ///
    /// # Safety
    /// `from` must be readable and `to` writable by this thread only, as [`load`] and [`store`] require.
    pub unsafe fn kernel(self) -> impl Kernel<Output = ()> + use<'a, T> {
        struct TransformKernel<'a, T>(LaneTransform<'a, T>);
        impl<T: SimdReal> Kernel for TransformKernel<'_, T> {
            type Output = ();
            #[inline(always)]
            fn run<A: Arith>(self) {
                let t = self.0;
                assert!(t.buffer.len() >= t.fft.buffer_len(T::V::<A>::LANES));
                let buffer = t.buffer.as_mut_ptr();
                // SAFETY: the buffer is long enough, as asserted; the caller of `kernel` promises the lines.
                unsafe {
                    load::<T, A>(t.from.0, t.from.1, t.inverse, buffer);
                    t.fft.run::<A>(buffer);
                    store::<T, A>(t.to.0, t.to.1, t.inverse, buffer);
                }
            }
        }
        TransformKernel(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::simd::Level;
    use rustfft::{FftDirection, FftPlanner};

    /// Compares transforms of `count` rows or columns of an array, at every level, with rustfft.
    fn check<T: SimdReal + rustfft::FftNum>(n: usize, points: std::ops::Range<usize>, count: usize, inverse: bool) {
        let fft = LaneFft::<T>::new(n).unwrap();
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            T::of((state >> 40) as f64 / (1u64 << 24) as f64 - 0.5)
        };
        let factor: Vec<T> = points.clone().map(|_| random()).collect();
        let mapping = fft.mapping(points.clone(), factor.clone()).unwrap();
        let full = fft.full_mapping().unwrap();
        let direction = if inverse { FftDirection::Inverse } else { FftDirection::Forward };
        let reference = FftPlanner::<T>::new().plan_fft(n, direction);
        for level in Level::all() {
            let lanes = level.lanes::<T>();
            let count = count.min(lanes);
            let mut buffer = vec![T::of(f64::NAN); fft.buffer_len(lanes)];
            // Rows to columns and columns to rows, with some of the points on one end and all on the other.
            for (from_rows, pruned_input) in [(true, true), (false, true), (true, false), (false, false)] {
                let (from_mapping, to_mapping) = if pruned_input { (&mapping, &full) } else { (&full, &mapping) };
                let mut input: Vec<Complex<T>> =
                    (0..count * from_mapping.len()).map(|_| Complex::new(random(), random())).collect();
                let mut output = vec![Complex::new(T::of(f64::NAN), T::ZERO); count * to_mapping.len()];
                let lines = |array: &mut [Complex<T>], len: usize, rows: bool| Lines {
                    address: array.as_mut_ptr(),
                    along: if rows { 1 } else { count },
                    across: if rows { len } else { 1 },
                    count,
                };
                let from = (lines(&mut input, from_mapping.len(), from_rows), from_mapping);
                let to = (lines(&mut output, to_mapping.len(), !from_rows), to_mapping);
                // SAFETY: the arrays have `count` lines of their mappings' lengths.
                unsafe { level.run(LaneTransform { fft: &fft, inverse, from, to, buffer: &mut buffer }.kernel()) };
                for line in 0..count {
                    let at = |len: usize, i: usize, rows: bool| if rows { line * len + i } else { i * count + line };
                    let mut expected = vec![Complex::default(); n];
                    for (i, point) in from_mapping.point.iter().enumerate() {
                        expected[*point as usize] =
                            input[at(from_mapping.len(), i, from_rows)] * from_mapping.factor[i];
                    }
                    reference.process(&mut expected);
                    for (i, point) in to_mapping.point.iter().enumerate() {
                        let got = output[at(to_mapping.len(), i, !from_rows)];
                        let want = expected[*point as usize] * to_mapping.factor[i];
                        let error = (got - want).norm_sqr().wide().sqrt();
                        assert!(error < 4.0 * T::EPSILON * n as f64, "{n} {} line {line}: {got} {want}", level.name());
                    }
                }
            }
        }
    }

    #[test]
    fn transforms_of_all_sizes_agree_with_rustfft() {
        let smooth = |n: &usize| {
            [2, 3, 5, 7].iter().fold(*n, |mut n, p| {
                while n % p == 0 {
                    n /= p;
                }
                n
            }) == 1
        };
        for n in (1..=130).chain([160, 192, 250, 256, 343, 512, 640, 1000]).filter(smooth) {
            let points = n / 4..n - n / 3;
            for count in [1, 3, 16] {
                check::<f32>(n, points.clone(), count, n % 2 == 0);
                check::<f64>(n, points.clone(), count, n % 2 == 1);
            }
        }
    }
}
