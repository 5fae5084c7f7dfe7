//! Gridding windows: their values, Fourier transforms, the error they make, and the choice of width and oversampling
//! from the tolerance a user names.
//!
//! A window phi of width W grid cells turns a sample into W values an axis, and the image is divided by the window's
//! Fourier transform afterwards. What aliases into voxel n from the periods p != 0 of the grid of size G is the error:
//! with the correction that is best in the least squares sense (Jacob, IEEE Trans. Image Process. 18:1894, 2009)
//!
//! ```text
//! c(n) = F(n/G) / sum_p F(n/G + p)^2,      error(n)^2 = sum_{p != 0} F(n/G + p)^2 / sum_p F(n/G + p)^2
//! ```
//!
//! and the worst voxel, at the image's edge, decides. Nothing here is tabulated: parameters are found at plan time.

use crate::defaults;
use crate::error::{bail, try_collect, Result};
use crate::fft_size::next_fast_size;
use std::f64::consts::PI;

/// The family of gridding windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Window {
    /// I0(beta sqrt(1 - (2 x / W)^2)): the default, and the best at every tolerance (Jackson et al. 1991; Beatty et al.
    /// 2005). Its beta is optimised for each width and oversampling.
    #[default]
    KaiserBessel,
    /// A Gaussian truncated at W/2, where truncation and aliasing are equal. About half the digits of Kaiser-Bessel.
    Gaussian,
    /// The triangle of W = 2 cells: linear interpolation in each axis. Its error is about 0.2, at best.
    Bilinear,
}

impl Window {
    /// The window's name, for messages and logs.
    pub fn name(self) -> &'static str {
        match self {
            Window::KaiserBessel => "Kaiser-Bessel",
            Window::Gaussian => "Gaussian",
            Window::Bilinear => "bilinear",
        }
    }
}

/// The widest window that the gridding kernels take.
pub const MAX_WIDTH: usize = 16;
/// The highest degree of the taps' polynomials.
pub const MAX_DEGREE: usize = MAX_WIDTH + 8;
/// By how much the expected error must stay below the tolerance: samples that are few or unevenly spread can err more
/// than the mean over all positions does.
const MARGIN: f64 = 1.1;
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

    /// The relative error that aliasing makes in a voxel whose frequency is `xi` = n/G.
    pub fn alias_error(&self, xi: f64) -> f64 {
        let (main, alias) = self.energies(xi);
        (alias / (main + alias)).sqrt()
    }

    /// The relative error in a voxel whose frequency is `xi` when the sample is where all aliases have one sign.
    fn error_in_place(&self, xi: f64) -> f64 {
        let alias = |p: i32| self.fourier(xi + p as f64).abs() + self.fourier(xi - p as f64).abs();
        (1..=PERIODS).map(alias).sum::<f64>() / self.fourier(xi).abs()
    }

    /// The largest error of the voxels up to the image's edge, whose frequency is `edge`. It may lie inside: a shape can
    /// be without error at one voxel by chance.
    pub fn worst_error(&self, edge: f64) -> f64 {
        [0.3, 0.5, 0.65, 0.75, 0.83, 0.9, 0.95, 1.0]
            .iter()
            .map(|part| self.alias_error(part * edge))
            .fold(0.0, f64::max)
    }

    /// The factors that undo the window for `n` voxels of a grid of `grid` cells; the error in the worst is
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

    /// How much the division by the window's transform amplifies rounding errors of the transform: the RMS over voxels up
    /// to frequency `edge`.
    fn amplification(&self, edge: f64) -> f64 {
        const POINTS: usize = 12;
        let square = |i: usize| (self.fourier(0.0) / self.fourier((i as f64 + 0.5) / POINTS as f64 * edge)).powi(2);
        ((0..POINTS).map(square).sum::<f64>() / POINTS as f64).sqrt()
    }

    /// Polynomials for the `width` taps of a sample: tap j at offset f in [0, 1) is the window at j + f - W/2, a
    /// polynomial in t = 2 f - 1. Returns coefficients [degree + 1][width], highest power first, of the least degree that
    /// makes an error of at most `accuracy` in every voxel up to frequency `edge`, relative to a voxel's value and wherever
    /// the sample is; where rounding lets none, of the degree that makes the least.
    pub fn polynomials(&self, edge: f64, accuracy: f64) -> Vec<Vec<f64>> {
        // The window is even: what happens at t happens mirrored at -t.
        const POSITIONS: usize = 20;
        let offsets: [f64; POSITIONS + 1] = std::array::from_fn(|i| i as f64 / POSITIONS as f64 - 1.0);
        let half = 0.5 * self.width as f64;
        let exact: Vec<Vec<f64>> = (0..self.width)
            .map(|j| offsets.iter().map(|t| self.value(j as f64 - half + 0.5 * (t + 1.0))).collect())
            .collect();
        // What a tap's error is in a voxel: its phase there, divided by the window's transform.
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
            // Past the least error coefficients grow, and their rounding with them.
            if best.0 <= accuracy || degree > best.1.len() + 2 {
                break;
            }
        }
        best.1
    }
}

/// What the planner chose: window and grid.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The window.
    pub shape: Shape,
    /// Grid size of each axis.
    pub grid: Vec<usize>,
    /// The relative l2 error expected, aliasing and rounding together.
    pub error: f64,
}

/// Chooses window width and oversampling between 1.25 and 2 for an image of `dims` voxels, so that the error stays within
/// `tolerance` in a precision of machine epsilon `epsilon`, at the least `cost`.
///
/// A tolerance of 0 asks for [`defaults::TOLERANCE`], or for the best that the window reaches if that is worse.
pub fn choose(
    window: Window,
    dims: &[usize],
    tolerance: f64,
    epsilon: f64,
    cost: impl Fn(&Choice) -> f64,
) -> Result<Choice> {
    if !(0.0..1.0).contains(&tolerance) {
        bail!(ToleranceOutOfRange, "the tolerance is {tolerance}: it must lie between 0 and 1, 1e-4 say");
    }
    let by_default = tolerance == 0.0;
    let tolerance = if by_default { defaults::TOLERANCE } else { tolerance };
    // Those that could be cheapest come first; the rest need no look once one is found that is cheaper than they can be.
    let mut sigmas: Vec<(f64, f64)> = sigmas()
        .map(|sigma| {
            let width = least_width(tolerance, sigma);
            let shape = Shape { window, width, shape: 0.0, peak: 1.0 };
            let grid = dims.iter().map(|&n| grid_size(n, sigma, width)).collect();
            (cost(&Choice { shape, grid, error: 0.0 }), sigma)
        })
        .collect();
    sigmas.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut best: Option<(f64, Choice)> = None;
    for (least, sigma) in sigmas {
        if best.as_ref().is_some_and(|(cost, _)| *cost <= least) {
            break;
        }
        if let Some(choice) = narrowest(window, dims, sigma, tolerance, epsilon) {
            let cost = cost(&choice);
            if best.as_ref().is_none_or(|(before, _)| cost < *before) {
                best = Some((cost, choice));
            }
        }
    }
    if let Some((_, best)) = best {
        return Ok(best);
    }
    let all = self::sigmas().flat_map(|sigma| widths(window, 2).map(move |width| (width, sigma)));
    let closest = all
        .map(|(width, sigma)| Choice::new(window, dims, width, sigma, epsilon))
        .min_by(|a, b| a.error.total_cmp(&b.error))
        .expect("there are windows");
    if by_default {
        return Ok(closest);
    }
    bail!(
        ToleranceOutOfRange,
        "tolerance {tolerance:e} is below what the {} window reaches here ({:.1e}): ask for more, use the Kaiser-Bessel \
         window, double precision, or method exact",
        window.name(),
        MARGIN * closest.error
    )
}

/// The oversamplings that are considered.
fn sigmas() -> impl Iterator<Item = f64> {
    (0..=12).map(|step| 1.25 + step as f64 * 0.0625)
}

/// Widths from `first` on that a window has.
fn widths(window: Window, first: usize) -> std::ops::RangeInclusive<usize> {
    if window == Window::Bilinear {
        2..=2
    } else {
        first..=MAX_WIDTH
    }
}

/// For each oversampling the narrowest window that keeps the tolerance, where there is one.
pub fn choices(window: Window, dims: &[usize], tolerance: f64, epsilon: f64) -> Vec<Choice> {
    sigmas().filter_map(|sigma| narrowest(window, dims, sigma, tolerance, epsilon)).collect()
}

/// The narrowest window that keeps the tolerance at this oversampling.
fn narrowest(window: Window, dims: &[usize], sigma: f64, tolerance: f64, epsilon: f64) -> Option<Choice> {
    widths(window, least_width(tolerance, sigma))
        .map(|width| Choice::new(window, dims, width, sigma, epsilon))
        .find(|choice| MARGIN * choice.error <= tolerance)
}

/// Kaiser-Bessel errs by exp(-pi W sqrt(1 - 1/sigma)), about, and no window by less: narrower ones need no look.
fn least_width(tolerance: f64, sigma: f64) -> usize {
    let width = -tolerance.ln() / (std::f64::consts::PI * (1.0 - 1.0 / sigma).sqrt()) - 1.0;
    (width as usize).clamp(2, MAX_WIDTH)
}

impl Choice {
    fn new(window: Window, dims: &[usize], width: usize, sigma: f64, epsilon: f64) -> Choice {
        let grid: Vec<usize> = dims.iter().map(|&n| grid_size(n, sigma, width)).collect();
        // The axis that is oversampled least decides.
        let least = dims.iter().zip(&grid).map(|(&n, &g)| g as f64 / n as f64).fold(f64::INFINITY, f64::min).min(2.5);
        let shape = Shape::best(window, width, least);
        let error = expected_error(&shape, dims, &grid, epsilon);
        Choice { shape, grid, error }
    }

    /// The polynomials of the window's taps, exact enough not to show in the error: on each axis of an image of `dims` voxels
    /// they make a tenth of it, in the worst voxel and at the worst position.
    pub fn taps(&self, dims: &[usize]) -> Vec<Vec<f64>> {
        let edge = dims.iter().zip(&self.grid).map(|(&n, &g)| (n / 2) as f64 / g as f64).fold(0.0, f64::max);
        self.shape.polynomials(edge, 0.1 * self.error)
    }
}

/// Aliasing errors of the axes add in squares: they are means over positions between the grid's cells, and the worst voxel
/// stands for all, which is more than the mean over voxels. An axis of few voxels has no such reserve: there the worst
/// position counts (but for the bilinear window, which would reach no tolerance). Rounding errors of spreading and FFT are amplified by the correction; the factor was measured over
/// widths 6 to 16 and oversampling 1.25 to 2, in 2D and 3D. It is five times what evenly spread samples make.
/// Equal samples on a Cartesian grid can make seven times as much, since their roundings repeat along the grid and all go to a few
/// voxels. It does not grow with the number of samples that meet, since spreading sums these in blocks.
fn expected_error(shape: &Shape, dims: &[usize], grid: &[usize], epsilon: f64) -> f64 {
    let (mut square, mut in_place) = (0.0, 0.0);
    let mut amplification = 1.0;
    for (&n, &g) in dims.iter().zip(grid) {
        let edge = (n / 2) as f64 / g as f64;
        if n <= 5 && shape.window != Window::Bilinear {
            in_place += shape.error_in_place(edge);
        } else {
            square += shape.worst_error(edge).powi(2);
        }
        amplification *= shape.amplification(edge);
    }
    let rounding = 1.25 * epsilon * (1.0 + amplification);
    (square + in_place * in_place + rounding * rounding).sqrt()
}

/// Nanoseconds of an adjoint on one thread, reals having `real` bytes. The constants were measured with f32 on AVX-512 over
/// widths 4 to 8, oversampling 1.25 to 2, in 2D and 3D (examples/stages.rs measures them anew); only ratios matter here, and
/// those vary less between machines than times do.
pub fn cost(grid: &[usize], dims: &[usize], samples: usize, width: usize, real: usize) -> f64 {
    // The taps and all else that a sample costs whatever the width, a vector of a window's row, a cell of the grid from
    // zeroing to the merging of tiles.
    const SAMPLE: f64 = 4.4;
    const VECTOR: f64 = 0.25;
    const CELL: f64 = 0.95;
    let vectors = 1.0 + (width * 2 * real) as f64 / 64.0;
    let rows = (width as f64).powi(grid.len() as i32 - 1);
    let cells: f64 = grid.iter().map(|&g| g as f64).product();
    let size = real as f64 / 4.0;
    samples as f64 * (SAMPLE * size + VECTOR * rows * vectors) + CELL * size * cells + fft_cost(grid, dims, real)
}

/// Nanoseconds of a convolution with Q, likewise.
pub fn toeplitz_cost(dims: &[usize], real: usize) -> f64 {
    // No vector: this is asked in every iteration of conjugate gradients.
    let mut doubled = [1; 3];
    doubled.iter_mut().zip(dims).for_each(|(d, &n)| *d = next_fast_size(2 * n));
    2.0 * fft_cost(&doubled[..dims.len()], dims, real)
}

/// Nanoseconds of a pruned transform: so many for each point of each line that is transformed, whatever its length.
fn fft_cost(grid: &[usize], dims: &[usize], real: usize) -> f64 {
    const POINT: f64 = 0.77;
    let mut points = 0.0;
    let mut before = 1.0;
    for axis in 0..grid.len() {
        // Axes before this one are already padded, those after it still have image size.
        before *= grid[axis] as f64;
        points += before * dims[axis + 1..].iter().map(|&n| n as f64).product::<f64>();
    }
    POINT * real as f64 / 4.0 * points
}

/// The smallest fast FFT size of at least `sigma` n, wide enough for two tiles of the window.
fn grid_size(n: usize, sigma: f64, width: usize) -> usize {
    let least = ((n as f64 * sigma).ceil() as usize).max(2 * width);
    next_fast_size(least)
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

/// The minimum of a function of one valley in [low, high].
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

    #[test]
    fn the_choice_is_the_cheapest_of_all() {
        for dims in [&[128usize, 128, 128][..], &[256, 256], &[33, 500], &[20, 30, 40]] {
            for tolerance in [1e-2, 1e-3, 1e-4, 1e-5] {
                for samples in [1000, 300_000] {
                    let price = |c: &Choice| cost(&c.grid, dims, samples, c.shape.width(), 4);
                    let found = choose(Window::KaiserBessel, dims, tolerance, f32::EPSILON as f64, price).unwrap();
                    let all = choices(Window::KaiserBessel, dims, tolerance, f32::EPSILON as f64);
                    let least = all.iter().map(price).fold(f64::INFINITY, f64::min);
                    assert_eq!(price(&found), least, "{dims:?} {tolerance}");
                }
            }
        }
    }

    #[test]
    fn out_of_reach_is_an_error_with_a_remedy() {
        let e = choose(Window::Bilinear, &[64, 64], 1e-6, f64::EPSILON, |_| 0.0).unwrap_err();
        assert_eq!(e.kind(), crate::ErrorKind::ToleranceOutOfRange);
        assert!(e.message().contains("Kaiser-Bessel"));
    }
}
