//! Gridding windows: their values, their Fourier transforms, and their errors. `choice` selects a window for a
//! tolerance.
//!
//! A window phi of width W grid cells turns a sample into W values an axis, and the image is divided by the window's
//! Fourier transform afterwards. The error is the aliasing into voxel n from the periods p != 0 of the grid of size G:
//! with the correction that is best in the least squares sense (Jacob, IEEE Trans. Image Process. 18:1894, 2009)
//!
//! ```text
//! c(n) = F(n/G) / sum_p F(n/G + p)^2,      error(n)^2 = sum_{p != 0} F(n/G + p)^2 / sum_p F(n/G + p)^2
//! ```
//!
//! and the worst voxel, at the image's edge, decides. Nothing is tabulated: parameters are computed with the plan.

use crate::backend::MAX_DEGREE;
use crate::base::error::{try_collect, Result};
use crate::base::options::Window;
use std::f64::consts::PI;

/// Periods on each side whose aliases are summed.
const PERIODS: i32 = 8;

/// A window of definite width and shape parameter; lengths in grid cells, frequencies in cycles per grid cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    window: Window,
    width: usize,
    /// beta of Kaiser-Bessel; of the Gaussian exp(-shape (2 x / W)^2); unused otherwise.
    shape: f64,
    /// I0(beta), by which Kaiser-Bessel is divided.
    peak: f64,
}

impl Shape {
    /// The window of this width whose worst error is least at oversampling `sigma` (grid over image size).
    pub fn best(window: Window, width: usize, sigma: f64) -> Shape {
        let peak = |shape| if window == Window::KaiserBessel { bessel_i0(shape) } else { 1.0 };
        let at = |shape| Shape { window, width, shape, peak: peak(shape) };
        let w = width as f64;
        let (low, high) = match window {
            // Beatty's rule of thumb for beta is pi W (1 - 1/(2 sigma)); the optimum lies a little below.
            Window::KaiserBessel => (0.6 * PI * w * (1.0 - 0.5 / sigma), 1.02 * PI * w * (1.0 - 0.5 / sigma)),
            // Where truncation, exp(-b), and aliasing, exp(-(pi W)^2 (1 - 1/sigma) / (4 b)), are equal.
            Window::Gaussian => return at(0.5 * PI * w * (1.0 - 1.0 / sigma).sqrt()),
            Window::Bilinear => return at(0.0),
        };
        let edge = 0.5 / sigma;
        at(golden_section(low, high, |s| at(s).worst_error(edge)))
    }

    /// A Kaiser-Bessel window of this width and beta.
    pub fn kaiser_bessel(width: usize, beta: f64) -> Shape {
        Shape { window: Window::KaiserBessel, width, shape: beta, peak: bessel_i0(beta) }
    }

    /// A window without a shape, for a cost that depends on the width only.
    pub(super) fn of_width(window: Window, width: usize) -> Shape {
        Shape { window, width, shape: 0.0, peak: 1.0 }
    }

    /// The family.
    pub fn window(&self) -> Window {
        self.window
    }

    /// The number of grid cells that a sample touches in each axis.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The window at distance `x` from its centre.
    pub fn value(&self, x: f64) -> f64 {
        let t = 2.0 * x / self.width as f64;
        if t.abs() > 1.0 {
            return 0.0;
        }
        match self.window {
            Window::KaiserBessel => bessel_i0(self.shape * (1.0 - t * t).sqrt()) / self.peak,
            Window::Gaussian => (-self.shape * t * t).exp(),
            Window::Bilinear => 1.0 - t.abs(),
        }
    }

    /// The Fourier transform of the window at frequency `xi`.
    pub fn fourier(&self, xi: f64) -> f64 {
        let w = self.width as f64;
        match self.window {
            Window::KaiserBessel => {
                let square = self.shape * self.shape - (PI * w * xi) * (PI * w * xi);
                let root = square.abs().sqrt();
                let sinc = match root {
                    r if r < 1e-6 => 1.0,
                    r if square > 0.0 => r.sinh() / r,
                    r => r.sin() / r,
                };
                w * sinc / self.peak
            }
            Window::Gaussian => {
                let steps = 64 + 8 * (w * xi.abs()).ceil() as usize;
                simpson(steps, 0.5 * w, |x| self.value(x) * (2.0 * PI * x * xi).cos())
            }
            Window::Bilinear => {
                let a = PI * xi;
                if a == 0.0 {
                    1.0
                } else {
                    (a.sin() / a).powi(2)
                }
            }
        }
    }

    /// F(xi)^2 and the sum of F(xi + p)^2 over p != 0.
    fn energies(&self, xi: f64) -> (f64, f64) {
        let alias =
            (1..=PERIODS).map(|p| self.fourier(xi + p as f64).powi(2) + self.fourier(xi - p as f64).powi(2)).sum();
        (self.fourier(xi).powi(2), alias)
    }

    /// The relative error of aliasing in a voxel whose frequency is `xi` = n/G.
    pub fn alias_error(&self, xi: f64) -> f64 {
        let (main, alias) = self.energies(xi);
        (alias / (main + alias)).sqrt()
    }

    /// The relative error in a voxel whose frequency is `xi` when the sample is where all aliases have one sign.
    pub(super) fn error_in_place(&self, xi: f64) -> f64 {
        let alias = |p: i32| self.fourier(xi + p as f64).abs() + self.fourier(xi - p as f64).abs();
        (1..=PERIODS).map(alias).sum::<f64>() / self.fourier(xi).abs()
    }

    /// The largest error of the voxels up to the image's edge, whose frequency is `edge`. It may lie inside: by chance
    /// a shape can have no error at one voxel.
    pub fn worst_error(&self, edge: f64) -> f64 {
        [0.3, 0.5, 0.65, 0.75, 0.83, 0.9, 0.95, 1.0]
            .iter()
            .map(|part| self.alias_error(part * edge))
            .fold(0.0, f64::max)
    }

    /// The factors that undo the window for `n` voxels of a grid of `grid` cells; the error in the worst voxel is
    /// [`Shape::alias_error`] at the edge.
    ///
    /// # Errors
    /// `OutOfHostMemory`.
    pub fn correction(&self, n: usize, grid: usize) -> Result<Vec<f64>> {
        let half = (n / 2) as f64;
        let factor = |i: usize| {
            let xi = (i as f64 - half) / grid as f64;
            let (main, alias) = self.energies(xi);
            self.fourier(xi) / (main + alias)
        };
        try_collect(n, "the correction of the window", (0..n).map(factor))
    }

    /// The factor by which the division by the window's transform amplifies rounding errors: the RMS over voxels up to
    /// frequency `edge`.
    pub(super) fn amplification(&self, edge: f64) -> f64 {
        const POINTS: usize = 12;
        let square = |i: usize| (self.fourier(0.0) / self.fourier((i as f64 + 0.5) / POINTS as f64 * edge)).powi(2);
        ((0..POINTS).map(square).sum::<f64>() / POINTS as f64).sqrt()
    }

    /// Polynomials for the `width` taps of a sample: tap j at offset f in [0, 1) is the window at j + f - W/2, a
    /// polynomial in t = 2 f - 1. Returns coefficients [degree + 1][width], highest power first, of the least degree
    /// whose error is at most `accuracy` in every voxel up to frequency `edge`, relative to a voxel's value and for any
    /// sample position; where rounding allows none, of the degree with the least error.
    pub fn polynomials(&self, edge: f64, accuracy: f64) -> Vec<Vec<f64>> {
        // The window is even: errors at t and at -t are equal.
        const POSITIONS: usize = 20;
        let offsets: [f64; POSITIONS + 1] = std::array::from_fn(|i| i as f64 / POSITIONS as f64 - 1.0);
        let half = 0.5 * self.width as f64;
        let exact: Vec<Vec<f64>> = (0..self.width)
            .map(|j| offsets.iter().map(|t| self.value(j as f64 - half + 0.5 * (t + 1.0))).collect())
            .collect();
        // The weight of a tap's error in a voxel: its phase there, divided by the window's transform.
        let voxels = [0.0, 0.5, 0.8, 1.0].map(|part| {
            let xi = part * edge;
            let size = 1.0 / self.fourier(xi).abs();
            (0..self.width).map(|j| (2.0 * PI * xi * j as f64).sin_cos()).map(|(s, c)| (size * c, size * s)).collect()
        });
        let error = |taps: &[Vec<f64>]| {
            let mut worst = 0f64;
            for (i, t) in offsets.iter().enumerate() {
                let value = |c: &Vec<f64>| c.iter().fold(0.0, |p, c| p * t + c);
                let errors: Vec<f64> = taps.iter().zip(&exact).map(|(c, exact)| value(c) - exact[i]).collect();
                for phases in &voxels {
                    let phases: &Vec<(f64, f64)> = phases;
                    let sum =
                        errors.iter().zip(phases).fold((0.0, 0.0), |(re, im), (e, p)| (re + e * p.0, im + e * p.1));
                    worst = worst.max(sum.0.hypot(sum.1));
                }
            }
            worst
        };
        let mut best = (f64::INFINITY, Vec::new());
        for degree in 1..=MAX_DEGREE {
            let taps: Vec<Vec<f64>> = (0..self.width)
                .map(|j| {
                    let start = j as f64 - half;
                    chebyshev_fit(degree, |t| self.value((start + 0.5 * (t + 1.0)).clamp(start, start + 1.0)))
                })
                .collect();
            let error = error(&taps);
            if error < best.0 {
                best = (error, (0..=degree).map(|d| taps.iter().map(|c| c[d]).collect()).collect());
            }
            // Beyond the least error coefficients grow, and their rounding errors too.
            if best.0 <= accuracy || degree > best.1.len() + 2 {
                break;
            }
        }
        best.1
    }
}

/// The modified Bessel function of order zero: its power series, every term of which is positive.
pub(crate) fn bessel_i0(x: f64) -> f64 {
    let quarter = 0.25 * x * x;
    let mut term = 1.0;
    let mut sum = 1.0;
    let mut k = 1.0;
    while term > 1e-18 * sum {
        term *= quarter / (k * k);
        sum += term;
        k += 1.0;
    }
    sum
}

/// Twice the integral of an even function over [0, end], by Simpson's rule on 2 `steps` intervals.
fn simpson(steps: usize, end: f64, f: impl Fn(f64) -> f64) -> f64 {
    let h = end / (2 * steps) as f64;
    let inner: f64 = (1..2 * steps).map(|i| f(i as f64 * h) * if i % 2 == 1 { 4.0 } else { 2.0 }).sum();
    2.0 * h / 3.0 * (f(0.0) + inner + f(end))
}

/// The minimum in [low, high] of a function that has one.
fn golden_section(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    let (mut a, mut b) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut fa, mut fb) = (f(a), f(b));
    for _ in 0..12 {
        if fa < fb {
            (high, b, fb) = (b, a, fa);
            a = high - ratio * (high - low);
            fa = f(a);
        } else {
            (low, a, fa) = (a, b, fb);
            b = low + ratio * (high - low);
            fb = f(b);
        }
    }
    0.5 * (low + high)
}

/// Coefficients, highest power first, of the polynomial that interpolates f in the Chebyshev nodes of [-1, 1].
fn chebyshev_fit(degree: usize, f: impl Fn(f64) -> f64) -> Vec<f64> {
    let n = degree + 1;
    let angle = |i: usize| PI * (i as f64 + 0.5) / n as f64;
    let values: Vec<f64> = (0..n).map(|i| f(angle(i).cos())).collect();
    let mut power = vec![0.0; n];
    let mut previous = vec![0.0; n]; // T_{k-1}, lowest power first
    let mut current = vec![0.0; n]; // T_k
    current[0] = 1.0;
    for k in 0..n {
        let c: f64 = values.iter().enumerate().map(|(i, v)| v * (k as f64 * angle(i)).cos()).sum::<f64>()
            * if k == 0 { 1.0 } else { 2.0 }
            / n as f64;
        for (p, t) in power.iter_mut().zip(&current) {
            *p += c * t;
        }
        let mut next = vec![0.0; n];
        for i in 0..n - 1 {
            next[i + 1] = if k == 0 { current[i] } else { 2.0 * current[i] };
        }
        for (x, p) in next.iter_mut().zip(&previous) {
            *x -= p;
        }
        (previous, current) = (current, next);
    }
    power.reverse();
    power
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::MAX_WIDTH;

    #[test]
    fn fourier_transform_is_the_integral_of_the_window() {
        for window in [Window::KaiserBessel, Window::Gaussian, Window::Bilinear] {
            let shape = Shape::best(window, if window == Window::Bilinear { 2 } else { 7 }, 1.5);
            for xi in [0.0, 0.1, 0.33, 0.9, 1.4] {
                let integral = simpson(20000, 0.5 * shape.width as f64, |x| shape.value(x) * (2.0 * PI * x * xi).cos());
                assert!((integral - shape.fourier(xi)).abs() < 1e-8, "{window:?} at {xi}");
            }
        }
    }

    #[test]
    fn polynomials_follow_the_window() {
        for width in [2, 5, 8, 13, 16] {
            let shape = Shape::best(Window::KaiserBessel, width, 1.6);
            let rows = shape.polynomials(0.5 / 1.6, 1e-13);
            for i in 0..50 {
                let f = i as f64 / 50.0;
                for j in 0..width {
                    let p = rows.iter().fold(0.0, |p, c| p * (2.0 * f - 1.0) + c[j]);
                    let x = j as f64 + f - 0.5 * width as f64;
                    assert!((p - shape.value(x)).abs() < 3e-13, "width {width} tap {j} offset {f}");
                }
            }
        }
    }

    #[test]
    fn wider_windows_and_finer_grids_err_less() {
        for width in 3..MAX_WIDTH {
            let error = |w, sigma| Shape::best(Window::KaiserBessel, w, sigma).worst_error(0.5 / sigma);
            assert!(error(width + 1, 1.25) < error(width, 1.25));
            assert!(error(width, 2.0) < error(width, 1.25));
        }
    }
}
