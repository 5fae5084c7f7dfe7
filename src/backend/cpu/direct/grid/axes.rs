//! The axes of a grid, and the phases along them.

use super::super::phase::{cos_sin, phases};
use crate::backend::cpu::simd::{Arith, Kernel, Level, SimdReal, Vector};
use num_complex::Complex;
use std::array::from_fn;

/// Bytes of a cache line, the alignment of scratch.
pub const LINE: usize = 64;

/// One axis of the grid: number of voxels, stride in the image, and the samples' coordinates along it. `k` is `None` on
/// an axis of one voxel.
#[derive(Clone, Copy)]
pub struct GridAxis<'a, T> {
    pub n: usize,
    pub stride: usize,
    k: Option<&'a [T]>,
}

impl<T: SimdReal> GridAxis<'_, T> {
    /// Returns the coordinate of a sample, 0 on an axis of one voxel.
    pub fn k(&self, sample: usize) -> f64 {
        self.k.map_or(0.0, |k| k[sample].wide())
    }
    /// Returns the position of the first voxel.
    pub fn first(&self) -> f64 {
        -((self.n / 2) as f64)
    }
    /// Returns the number of distinct distances from the middle.
    pub fn half(&self) -> usize {
        self.n.div_ceil(2)
    }
    /// Returns the smallest distance from the middle.
    pub fn nearest(&self) -> f64 {
        if self.n.is_multiple_of(2) {
            0.5
        } else {
            0.0
        }
    }
    /// Returns the position of the middle.
    pub fn middle(&self) -> f64 {
        -self.nearest()
    }
    /// Returns the two voxels at distance number `j` from the middle.
    pub fn pair(&self, j: usize) -> (usize, usize) {
        (self.n / 2 + j, (self.n - 1) / 2 - j)
    }
}

/// Returns the axes in the order of their roles: x, whose symmetry is used, then the two axes of its lines. Axes of one
/// voxel are skipped.
pub fn order_axes<'a, T: SimdReal>(k: &'a [Vec<T>], dims: [usize; 3]) -> [GridAxis<'a, T>; 3] {
    let one = GridAxis { n: 1, stride: 0, k: None };
    let mut axes = [one; 3];
    let (mut used, mut stride) = (0, 1);
    for (axis, n) in dims.into_iter().enumerate() {
        if n > 1 {
            axes[used] = GridAxis { n, stride, k: k.get(axis).map(|k| &k[..]) };
            used += 1;
        }
        stride *= n;
    }
    if used == 1 {
        // Vectors consist of lines: a single axis is faster as many lines than as one.
        axes.swap(0, 1);
    }
    axes
}

/// Returns `len` elements of a buffer, starting at its first cache line.
pub fn align_to_line<T: SimdReal>(buffer: &mut [T], len: usize) -> &mut [T] {
    let skip = buffer.as_ptr().align_offset(LINE);
    &mut buffer[skip..][..len]
}

/// Rounds a length up to whole cache lines.
pub fn whole_lines<T>(len: usize) -> usize {
    len.next_multiple_of(LINE / size_of::<T>())
}

/// Maximum number of lanes of a vector of f64.
const MAX_F64_LANES: usize = 8;

/// Returns cos and sin of 2 pi k r for the first `LANES` of `positions`.
#[inline(always)]
fn cos_sin_at<V: Vector<f64>>(k: V, positions: [f64; MAX_F64_LANES]) -> (V, V) {
    assert!(V::LANES <= MAX_F64_LANES);
    // SAFETY: there are at least as many positions as elements, as asserted.
    let positions = unsafe { V::load(positions.as_ptr()) };
    let ([cos], [sin]) = cos_sin(phases([k], [[positions]]));
    (cos, sin)
}

/// Computes exp(i 2 pi k r) times `factor` for r = first, first + 1, ..., and passes it to `put` as (index, real parts,
/// imaginary parts).
///
/// The values are products of the first `LANES` positions and of steps of `LANES` positions, computed in double
/// precision.
#[inline(always)]
pub fn write_phases<A: Arith, T: SimdReal>(
    k: f64,
    first: f64,
    count: usize,
    factor: Complex<f64>,
    mut put: impl FnMut(usize, &[T], &[T]),
) {
    let lanes = A::F64::LANES;
    let k = A::F64::splat(k);
    let mut buffer = [[0f64; MAX_F64_LANES]; 2];
    let (cos, sin) = cos_sin_at(k, from_fn(|i| first + i as f64));
    let (re, im) = (A::F64::splat(factor.re), A::F64::splat(factor.im));
    let (cos, sin) = (im.fnma(sin, re.mul(cos)), im.fma(cos, re.mul(sin)));
    for start in (0..count).step_by(lanes * lanes) {
        let steps = cos_sin_at(k, from_fn(|i| (start + i * lanes) as f64));
        // SAFETY: buffers are no shorter than a vector, as `cos_sin_at` asserts.
        unsafe {
            steps.0.store(buffer[0].as_mut_ptr());
            steps.1.store(buffer[1].as_mut_ptr());
        }
        for (i, first) in (start..count.min(start + lanes * lanes)).step_by(lanes).enumerate() {
            let (step_cos, step_sin) = (A::F64::splat(buffer[0][i]), A::F64::splat(buffer[1][i]));
            let mut out = [[0f64; MAX_F64_LANES]; 2];
            // SAFETY: buffers are no shorter than a vector, as `cos_sin_at` asserts.
            unsafe {
                step_sin.fnma(sin, step_cos.mul(cos)).store(out[0].as_mut_ptr());
                step_sin.fma(cos, step_cos.mul(sin)).store(out[1].as_mut_ptr());
            }
            // `map` is not used because the compiler may call its closure as code that is not compiled for the vector
            // unit.
            let mut rounded = [[T::ZERO; MAX_F64_LANES]; 2];
            for (rounded, out) in rounded.iter_mut().zip(&out) {
                for (rounded, out) in rounded.iter_mut().zip(out) {
                    *rounded = T::of(*out);
                }
            }
            let [re, im] = rounded;
            if count - first >= lanes {
                // The compiler knows this length.
                put(first, &re[..lanes], &im[..lanes]);
            } else {
                put(first, &re[..count - first], &im[..count - first]);
            }
        }
    }
}

/// Returns whether register tiles use more vectors, as the level has 32 registers.
#[inline(always)]
pub fn has_wide_tiles<A: Arith>() -> bool {
    A::REGISTERS == 32
}

/// Returns the maximum number of lines of a panel, in vectors.
pub fn panel_vectors(level: Level) -> usize {
    struct PanelWidth;
    impl Kernel for PanelWidth {
        type Output = usize;
        #[inline(always)]
        fn run<A: Arith>(self) -> usize {
            if has_wide_tiles::<A>() {
                2
            } else {
                1
            }
        }
    }
    level.run(PanelWidth)
}
