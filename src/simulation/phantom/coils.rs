//! Coil sensitivities in closed form.

use super::shapes::check_dims;
use crate::base::error::{bail, checked_product, try_collect, try_reserve, try_vec, Result};
use num_complex::Complex;
use std::f64::consts::TAU;

/// Coil sensitivities that are short Fourier series over the field of view.
///
/// The signal that a coil receives from a [`Phantom`](super::Phantom) is a sum of a few shifted copies of its k-space
/// (Guerquin-Kern et al. 2012, "sinusoidal model"). The sensitivity is a product over the axes of
///
/// ```text
/// 1/2 (1 + cos p + i b sin p),   p = 2 pi (x - c) / 5,
/// ```
///
/// with x in phantom coordinates. This is a raised cosine with a period of 2.5 fields of view about the coil's centre
/// c. Its phase, atan(b tan(p / 2)) with b = c / 2, grows smoothly with the distance from c.
///
/// The magnitude is 1 at the centre of the coil and smaller everywhere else. Nothing is normalised: the sum of squares
/// over the coils varies in space.
#[derive(Debug, Clone, PartialEq)]
pub struct CoilModel {
    pub(super) ndim: usize,
    /// Amplitudes at the frequencies -1, 0 and 1 / 2.5 cycles per field of view, for each coil and axis.
    factors: Vec<[[Complex<f64>; 3]; 3]>,
}

/// Period of the sensitivities in fields of view: opposite coils still differ, and no coil repeats within one field of
/// view.
const PERIOD: f64 = 2.5;
/// Maximum number of terms in the series of a coil's sensitivity: three per axis.
pub(super) const MOST_TERMS: usize = 27;
const ONE: Complex<f64> = Complex::new(1.0, 0.0);

/// Fourier series with common frequencies.
pub(super) struct FourierSeries {
    /// Cycles per voxel along each axis.
    pub frequencies: Vec<[f64; 3]>,
    /// One amplitude per frequency, for each coil.
    pub amplitudes: Vec<Vec<Complex<f64>>>,
}

impl CoilModel {
    /// Creates coils that are evenly spaced around the field of view, for `ndim` 2 or 3.
    ///
    /// Coil c is centred at the angle 2 pi c / coils on the unit circle (phantom coordinates), where its phase equals
    /// that angle. In 3D, coils alternate between two rings at z = 1/2 and z = -1/2; a single coil is at z = 0.
    ///
    /// # Errors
    /// `InvalidSize` for no coils or a different `ndim`.
    pub fn ring(coils: usize, ndim: usize) -> Result<Self> {
        if coils == 0 {
            bail!(InvalidSize, "the number of coils is 0: give 1 or more");
        }
        if ndim != 2 && ndim != 3 {
            bail!(InvalidSize, "the coils have {ndim} dimensions: give 2 or 3");
        }
        let mut factors = try_vec(coils, [[Complex::new(0.0, 0.0); 3]; 3], "coil sensitivities")?;
        for (c, factor) in factors.iter_mut().enumerate() {
            let angle = TAU * (c as f64 / coils as f64);
            let z = match (coils, c % 2) {
                (1, _) => 0.0,
                (_, 0) => 0.5,
                _ => -0.5,
            };
            for (axis, centre) in [angle.cos(), angle.sin(), z].into_iter().enumerate().take(ndim) {
                let phase = Complex::cis(TAU * centre / (2.0 * PERIOD));
                let slope = centre / 2.0;
                factor[axis] =
                    [phase * (0.25 * (1.0 - slope)), Complex::new(0.5, 0.0), phase.conj() * (0.25 * (1.0 + slope))];
            }
            for amplitude in &mut factor[0] {
                *amplitude *= Complex::cis(angle);
            }
        }
        Ok(CoilModel { ndim, factors })
    }

    /// Returns the number of coils.
    pub fn coils(&self) -> usize {
        self.factors.len()
    }

    /// Returns the number of dimensions, 2 or 3.
    pub fn ndim(&self) -> usize {
        self.ndim
    }

    /// Returns the sensitivities at the voxel centres of a field of view of `dims` voxels: [voxels, coils], x fastest.
    ///
    /// # Errors
    /// - `InvalidSize` for a zero size.
    /// - `SizeMismatch` if `dims` does not have one size per dimension.
    /// - `SizeOverflow`, `OutOfHostMemory`.
    pub fn maps(&self, dims: &[usize]) -> Result<Vec<Complex<f64>>> {
        check_dims("coil model", self.ndim, dims)?;
        let voxels = checked_product(dims, "coil maps")?;
        let total = checked_product(&[voxels, self.coils()], "coil maps")?;
        let mut maps = try_vec(total, Complex::new(0.0, 0.0), "coil maps")?;
        for (map, factor) in maps.chunks_exact_mut(voxels).zip(&self.factors) {
            let along = |axis: usize| -> Result<Vec<Complex<f64>>> {
                let Some(&n) = dims.get(axis) else { return try_vec(1, Complex::new(1.0, 0.0), "coil maps") };
                let value = |i: usize| {
                    let wave = Complex::cis(TAU / PERIOD * (i as f64 - (n / 2) as f64) / n as f64);
                    let [minus, zero, plus] = factor[axis];
                    minus * wave.conj() + zero + plus * wave
                };
                try_collect(n, "coil maps", (0..n).map(value))
            };
            let (x, y, z) = (along(0)?, along(1)?, along(2)?);
            for (row, line) in map.chunks_exact_mut(x.len()).enumerate() {
                let yz = y[row % y.len()] * z[row / y.len()];
                for (voxel, x) in line.iter_mut().zip(&x) {
                    *voxel = x * yz;
                }
            }
        }
        Ok(maps)
    }

    /// Returns the sensitivities at positions in voxels from the origin, one list per axis: [positions, coils].
    pub(crate) fn at(&self, dims: &[usize], positions: &[Vec<f64>]) -> Result<Vec<Complex<f64>>> {
        let count = positions[0].len();
        let mut maps = try_vec(checked_product(&[count, self.coils()], "coil maps")?, ONE, "coil maps")?;
        for (axis, (places, &n)) in positions.iter().zip(dims).enumerate() {
            for (i, place) in places.iter().enumerate() {
                let wave = Complex::cis(TAU / PERIOD * place / n as f64);
                for (map, factor) in maps.chunks_exact_mut(count).zip(&self.factors) {
                    let [minus, zero, plus] = factor[axis];
                    map[i] *= minus * wave.conj() + zero + plus * wave;
                }
            }
        }
        Ok(maps)
    }

    /// Multiplies out the products over the axes: 3^ndim terms.
    pub(super) fn series(&self, dims: &[usize]) -> Result<FourierSeries> {
        let terms = 3usize.pow(self.ndim as u32);
        let digit = |term: usize, axis: usize| term / 3usize.pow(axis as u32) % 3;
        let frequency = |term: usize| {
            let mut q = [0.0; 3];
            for (axis, &n) in dims.iter().enumerate() {
                q[axis] = (digit(term, axis) as f64 - 1.0) / (PERIOD * n as f64);
            }
            q
        };
        let amplitudes = |factor: &[[Complex<f64>; 3]; 3]| {
            let amplitude = |term: usize| (0..self.ndim).map(|axis| factor[axis][digit(term, axis)]).product();
            try_collect(terms, "coil maps", (0..terms).map(amplitude))
        };
        let mut all = try_reserve(self.factors.len(), "coil maps")?;
        for factor in &self.factors {
            all.push(amplitudes(factor)?);
        }
        Ok(FourierSeries { frequencies: try_collect(terms, "coil maps", (0..terms).map(frequency))?, amplitudes: all })
    }
}
