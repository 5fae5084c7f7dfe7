//! What the test programs share: random numbers, the direct sums in double precision, distances.
#![allow(dead_code)]

use recon::{Complex, Real};
use std::f64::consts::TAU;

/// Random numbers from a seed that no earlier run has seen; print `seed` in failures.
pub struct Random {
    pub seed: u64,
    state: u64,
}

impl Random {
    pub fn fresh() -> Self {
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let seed = std::env::var("RECON_TEST_SEED")
            .map_or(clock.as_nanos() as u64, |s| s.parse().expect("RECON_TEST_SEED is a number"));
        Random { seed, state: seed }
    }

    /// Uniform in [-0.5, 0.5).
    pub fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64 - 0.5
    }

    pub fn reals<T: Real>(&mut self, n: usize) -> Vec<T> {
        (0..n).map(|_| T::of(self.uniform())).collect()
    }

    pub fn complexes<T: Real>(&mut self, n: usize) -> Vec<Complex<T>> {
        (0..n).map(|_| Complex::new(T::of(self.uniform()), T::of(self.uniform()))).collect()
    }

    /// Coordinates within [-0.5, 0.5), one vector an axis.
    pub fn trajectory<T: Real>(&mut self, ndim: usize, samples: usize) -> Vec<Vec<T>> {
        (0..ndim).map(|_| (0..samples).map(|_| T::coordinate(self.uniform())).collect()).collect()
    }
}

pub fn slices<T>(lists: &[Vec<T>]) -> Vec<&[T]> {
    lists.iter().map(|l| &l[..]).collect()
}

/// An array full of NaN, to show which elements a call wrote.
pub fn poisoned<T: Real>(n: usize) -> Vec<Complex<T>> {
    vec![Complex::new(T::of(f64::NAN), T::of(f64::NAN)); n]
}

pub fn wide<T: Real>(z: &[Complex<T>]) -> Vec<Complex<f64>> {
    z.iter().map(|z| Complex::new(z.re.wide(), z.im.wide())).collect()
}

pub fn wide_lists<T: Real>(k: &[Vec<T>]) -> Vec<Vec<f64>> {
    k.iter().map(|k| k.iter().map(|k| k.wide()).collect()).collect()
}

/// Voxel coordinates of a grid, r = index - floor(n/2), one vector an axis.
pub fn voxels(dims: &[usize]) -> Vec<Vec<f64>> {
    let total: usize = dims.iter().product();
    let mut stride = 1;
    dims.iter()
        .map(|&n| {
            let r = (0..total).map(|i| (i / stride % n) as f64 - (n / 2) as f64).collect();
            stride *= n;
            r
        })
        .collect()
}

/// out(a) = sum_b values(b) exp(sign i 2 pi a.b), as it stands.
pub fn direct(sign: f64, from: &[Vec<f64>], values: &[Complex<f64>], to: &[Vec<f64>]) -> Vec<Complex<f64>> {
    (0..to[0].len())
        .map(|a| {
            (0..values.len())
                .map(|b| {
                    let turns: f64 = from.iter().zip(to).map(|(f, t)| f[b] * t[a]).sum();
                    values[b] * Complex::from_polar(1.0, sign * TAU * (turns - turns.round()))
                })
                .sum()
        })
        .collect()
}

/// Relative l2 distance; NaN where `a` has one.
pub fn distance<T: Real>(a: &[Complex<T>], exact: &[Complex<f64>]) -> f64 {
    assert_eq!(a.len(), exact.len());
    let error: f64 = wide(a).iter().zip(exact).map(|(a, e)| (a - e).norm_sqr()).sum();
    (error / exact.iter().map(|e| e.norm_sqr()).sum::<f64>()).sqrt()
}

/// <a, b>, conjugating a.
pub fn inner<T: Real>(a: &[Complex<T>], b: &[Complex<T>]) -> Complex<f64> {
    wide(a).iter().zip(wide(b)).map(|(a, b)| a.conj() * b).sum()
}

pub fn norm<T: Real>(a: &[Complex<T>]) -> f64 {
    inner(a, a).re.sqrt()
}
