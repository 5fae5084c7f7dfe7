//! Gridding windows: values, Fourier transforms, and errors. [`super::gridding_params`] chooses a window for a
//! tolerance.
//!
//! A window phi of width W grid cells spreads a sample over W values per axis. The image is divided by the Fourier
//! transform of the window. The error is aliasing into voxel n from the periods p != 0 of the grid of size G. With the
//! correction that is optimal in the least-squares sense (Jacob, IEEE Trans. Image Process. 18:1894, 2009):
//!
//! ```text
//! c(n) = F(n/G) / sum_p F(n/G + p)^2,      error(n)^2 = sum_{p != 0} F(n/G + p)^2 / sum_p F(n/G + p)^2
//! ```
//!
//! The error of the worst voxel counts. The default window minimises this error (`minimax`). Parameters of the other
//! windows are computed when a plan is created.

use super::minimax::MinimaxWindow;
use crate::backend::MAX_DEGREE;
use crate::base::error::{try_collect, try_reserve, try_vec, Result};
use crate::base::options::Window;
use std::f64::consts::PI;

/// A window of given width and function. Lengths are in grid cells, frequencies in cycles per grid cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    width: usize,
    function: WindowFunction,
}

/// The function of a window at distance x from its centre.
#[derive(Debug, Clone, Copy, PartialEq)]
enum WindowFunction {
    /// Polynomials from the table.
    Minimax(MinimaxWindow),
    /// I0(beta sqrt(1 - (2 x / W)^2)) / peak, with peak = I0(beta).
    KaiserBessel { beta: f64, peak: f64 },
    /// exp(-b (2 x / W)^2)
    Gaussian(f64),
    /// 1 - |2 x / W|.
    Bilinear,
}

impl Shape {
    /// Returns the windows of this family and width for an oversampling of `sigma` (grid over image size). The first
    /// one with a sufficiently small error should be used. Minimax windows are ordered by ascending degree; other
    /// families have one candidate, the window with the smallest worst error.
    pub fn candidates(window: Window, width: usize, sigma: f64) -> impl Iterator<Item = Shape> {
        let minimax = (window == Window::Minimax).then(|| MinimaxWindow::of(width, sigma).map(WindowFunction::Minimax));
        let other = match window {
            Window::Minimax => None,
            Window::KaiserBessel => Some(best_kaiser_bessel(width, sigma).function),
            // For this b, truncation exp(-b) and aliasing exp(-(pi W)^2 (1 - 1/sigma) / (4 b)) are equal.
            Window::Gaussian => Some(WindowFunction::Gaussian(0.5 * PI * width as f64 * (1.0 - 1.0 / sigma).sqrt())),
            Window::Bilinear => Some(WindowFunction::Bilinear),
        };
        minimax.into_iter().flatten().chain(other).map(move |function| Shape { width, function })
    }

    /// Returns the window of [`Shape::candidates`] with the smallest error.
    ///
    /// # Panics
    /// If there is no window: minimax windows have widths of 2 to 16 and an oversampling of at least 1.25.
    pub fn best(window: Window, width: usize, sigma: f64) -> Shape {
        Shape::candidates(window, width, sigma).last().expect("a window of this width and oversampling")
    }

    /// Returns the Kaiser-Bessel window of this width and beta.
    pub fn kaiser_bessel(width: usize, beta: f64) -> Shape {
        Shape { width, function: WindowFunction::KaiserBessel { beta, peak: bessel_i0(beta) } }
    }

    /// Returns the family of the window.
    pub fn window(&self) -> Window {
        match self.function {
            WindowFunction::Minimax(_) => Window::Minimax,
            WindowFunction::KaiserBessel { .. } => Window::KaiserBessel,
            WindowFunction::Gaussian(_) => Window::Gaussian,
            WindowFunction::Bilinear => Window::Bilinear,
        }
    }

    /// Returns the width in grid cells: the number of cells per axis over which a sample is spread.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the value at distance `x` from the centre.
    pub fn value(&self, x: f64) -> f64 {
        let t = 2.0 * x / self.width as f64;
        if t.abs() > 1.0 {
            return 0.0;
        }
        match self.function {
            WindowFunction::Minimax(minimax) => {
                let from_start = x + 0.5 * self.width as f64;
                let tap = (from_start as usize).min(self.width - 1);
                polynomial(&minimax.taps(), tap, 2.0 * (from_start - tap as f64) - 1.0)
            }
            WindowFunction::KaiserBessel { beta, peak } => bessel_i0(beta * (1.0 - t * t).sqrt()) / peak,
            WindowFunction::Gaussian(b) => (-b * t * t).exp(),
            WindowFunction::Bilinear => 1.0 - t.abs(),
        }
    }

    /// Returns the values of a sample's taps for each offset of the sample in its cell.
    fn taps_at(&self, offsets: &[f64]) -> Vec<Vec<f64>> {
        let half = 0.5 * self.width as f64;
        match self.function {
            WindowFunction::Minimax(minimax) => {
                let taps = minimax.taps();
                let at = |f: &f64| (0..self.width).map(|j| polynomial(&taps, j, 2.0 * f - 1.0)).collect();
                offsets.iter().map(at).collect()
            }
            _ => offsets.iter().map(|f| (0..self.width).map(|j| self.value(j as f64 + f - half)).collect()).collect(),
        }
    }

    /// Returns the Fourier transform of the window at frequency `xi`. The magnitude of `xi` must be at most 0.5, the
    /// range in which Gauss's rule is exact to rounding errors.
    pub fn fourier(&self, xi: f64) -> f64 {
        GaussNodes::new(self).transform(xi).0
    }

    /// Returns the relative aliasing error of a voxel with frequency `xi` = n/G.
    pub fn alias_error(&self, xi: f64) -> f64 {
        GaussNodes::new(self).alias_error(xi)
    }

    /// Returns the relative error of the worst voxel of a short axis for a sample at the worst position between cells.
    pub(super) fn error_at_worst_position(&self, n: usize, grid: usize) -> f64 {
        const POSITIONS: usize = 16;
        // The window is even: errors at f and 1 - f are equal.
        let offsets: [f64; POSITIONS / 2 + 1] = std::array::from_fn(|i| i as f64 / POSITIONS as f64);
        let (nodes, taps) = (GaussNodes::new(self), self.taps_at(&offsets));
        let mut worst = 0f64;
        for voxel in 0..=n / 2 {
            let xi = voxel as f64 / grid as f64;
            let main = nodes.transform(xi).0;
            for (f, taps) in offsets.iter().zip(&taps) {
                let (re, im) = transform_of_taps(taps, *f, xi);
                worst = worst.max((re - main).hypot(im) / main.abs());
            }
        }
        worst
    }

    /// Returns the largest error of the voxels up to the edge of the image, whose frequency is `edge`. The worst voxel
    /// is not always at the edge, as the error of a window can be 0 at one voxel by chance.
    pub fn worst_error(&self, edge: f64) -> f64 {
        match self.function {
            WindowFunction::Minimax(minimax) => minimax.worst_error(edge),
            _ => ErrorProbes::new(self.width, edge).worst_error(&GaussNodes::new(self)),
        }
    }

    /// Returns a lower bound of [`Shape::worst_error`] that takes little time, or 0.
    pub(super) fn least_worst_error(&self) -> f64 {
        match self.function {
            WindowFunction::Minimax(minimax) => minimax.error_at_edge(),
            _ => 0.0,
        }
    }

    /// Returns the factors that correct for the window, for `n` voxels of a grid of `grid` cells. The error of the
    /// worst voxel is [`Shape::alias_error`] at the edge.
    ///
    /// # Errors
    /// `OutOfHostMemory`.
    pub fn correction(&self, n: usize, grid: usize) -> Result<Vec<f64>> {
        /// Distance in voxels between computed sines and cosines. Phases in between are products, whose errors would
        /// grow.
        const ROTATIONS: usize = 8;
        let nodes = GaussNodes::new(self);
        let half = n / 2;
        // x and the weighted value of each node in one half of the window, as the window is even.
        let what = "the correction of the window";
        let mut points: Vec<(f64, f64)> = try_reserve(self.width.div_ceil(2) * nodes.rule.len(), what)?;
        for (&(f, weight), taps) in nodes.rule.iter().zip(&nodes.taps) {
            for (j, tap) in taps[..self.width.div_ceil(2)].iter().enumerate() {
                let symmetry = if 2 * j + 1 == self.width { 1.0 } else { 2.0 };
                points.push((j as f64 + f - 0.5 * self.width as f64, symmetry * weight * tap));
            }
        }
        let rotations = points.iter().map(|(x, _)| (2.0 * PI * x / grid as f64).sin_cos());
        let rotations: Vec<(f64, f64)> = try_collect(points.len(), what, rotations)?;
        let mut phases = try_vec(points.len(), (0.0, 0.0), what)?;
        // Indexed by distance from the centre. An even number of voxels has one more on the left.
        let mut transforms = try_vec(half + 1, 0.0, what)?;
        for (r, transform) in transforms.iter_mut().enumerate() {
            if r % ROTATIONS == 0 {
                for (phase, (x, _)) in phases.iter_mut().zip(&points) {
                    *phase = (2.0 * PI * x * (r as f64 / grid as f64)).sin_cos();
                }
            }
            for ((phase, (s, c)), (_, value)) in phases.iter_mut().zip(&rotations).zip(&points) {
                *transform += value * phase.1;
                *phase = (phase.0 * c + phase.1 * s, phase.1 * c - phase.0 * s);
            }
        }
        // By Poisson's formula, the sum over all periods is a cosine series. Its coefficients are integrals of the
        // window times the window shifted by `shift` cells. Aliases below the rounding errors of that sum are
        // negligible compared with the main lobe, and are ignored.
        let products: Vec<f64> = (0..self.width).map(|shift| nodes.product(shift)).collect();
        let edge = transforms[half];
        let has_aliases = nodes.alias_error(half as f64 / grid as f64).powi(2) * edge * edge > 1e-13 * products[0];
        let factor = |r: usize| {
            let main = transforms[r];
            if !has_aliases {
                return 1.0 / main;
            }
            let cosine = |shift: usize| (2.0 * PI * ((shift * r) % grid) as f64 / grid as f64).cos();
            let all = products[0] + (1..self.width).map(|shift| 2.0 * products[shift] * cosine(shift)).sum::<f64>();
            main / all
        };
        // Voxels at equal distances have equal factors.
        let factors = try_collect(half + 1, what, (0..=half).map(factor))?;
        try_collect(n, what, (0..n).map(|i| factors[i.abs_diff(half)]))
    }

    /// Returns the factor by which the division by the window's transform amplifies rounding errors: the RMS over
    /// voxels up to frequency `edge`.
    pub(super) fn amplification(&self, edge: f64) -> f64 {
        if let WindowFunction::Minimax(minimax) = self.function {
            return minimax.amplification(edge);
        }
        const POINTS: usize = 12;
        let nodes = GaussNodes::new(self);
        let centre = nodes.transform(0.0).0;
        let square = |i: usize| (centre / nodes.transform((i as f64 + 0.5) / POINTS as f64 * edge).0).powi(2);
        ((0..POINTS).map(square).sum::<f64>() / POINTS as f64).sqrt()
    }

    /// Returns polynomials for the `width` taps of a sample: coefficients [degree + 1][width], highest power first. Tap
    /// j at offset f in [0, 1) is the window at j + f - W/2, a polynomial in t = 2 f - 1.
    ///
    /// Minimax windows are such polynomials. For others, the degree is the lowest one whose error is at most `accuracy`
    /// in every voxel up to frequency `edge`. The error is relative to the value of the voxel, for any sample position.
    /// If rounding errors exceed `accuracy`, the degree with the smallest error is used.
    pub fn polynomials(&self, edge: f64, accuracy: f64) -> Vec<Vec<f64>> {
        if let WindowFunction::Minimax(minimax) = self.function {
            return minimax.taps();
        }
        // The window is even: errors at t and -t are equal.
        const POSITIONS: usize = 20;
        let offsets: [f64; POSITIONS + 1] = std::array::from_fn(|i| i as f64 / POSITIONS as f64 - 1.0);
        let half = 0.5 * self.width as f64;
        let exact: Vec<Vec<f64>> = (0..self.width)
            .map(|j| offsets.iter().map(|t| self.value(j as f64 - half + 0.5 * (t + 1.0))).collect())
            .collect();
        // Weight of the error of a tap in a voxel: its phase there, divided by the window's transform.
        let nodes = GaussNodes::new(self);
        let voxels = [0.0, 0.5, 0.8, 1.0].map(|part| {
            let xi = part * edge;
            let size = 1.0 / nodes.transform(xi).0.abs();
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
            // At higher degrees than the best one, the coefficients and their rounding errors grow.
            if best.0 <= accuracy || degree > best.1.len() + 2 {
                break;
            }
        }
        best.1
    }
}

/// Finds the Kaiser-Bessel window with the smallest worst error. Beatty's rule for beta is pi W (1 - 1/(2 sigma)); the
/// optimum is slightly smaller.
///
/// The worst error is the maximum of several functions, so it has several minima. They are found by a scan with a few
/// periods and voxels only. The best minima are then compared by their accurate errors.
fn best_kaiser_bessel(width: usize, sigma: f64) -> Shape {
    const STEPS: usize = 64;
    const MINIMA: usize = 2;
    let edge = 0.5 / sigma;
    let rule = PI * width as f64 * (1.0 - edge);
    let beta = |step: usize| rule * (0.6 + 0.45 * step as f64 / STEPS as f64);
    let approximate = |beta: f64| {
        [0.0, 0.3, 0.5, 0.65, 0.75, 0.83, 0.88, 0.92, 0.95, 0.98, 1.0].iter().fold(0.0, |worst: f64, part| {
            let f = |p: i32| kaiser_bessel_transform(width, beta, part * edge + p as f64).powi(2);
            worst.max((1..=3).map(|p| f(p) + f(-p)).sum::<f64>() / f(0))
        })
    };
    let errors: Vec<f64> = (0..=STEPS).map(|step| approximate(beta(step))).collect();
    let mut minima: Vec<usize> =
        (1..STEPS).filter(|&i| errors[i] <= errors[i - 1] && errors[i] <= errors[i + 1]).collect();
    minima.extend([0, STEPS]);
    minima.sort_by(|&a, &b| errors[a].total_cmp(&errors[b]));
    let probes = ErrorProbes::new(width, edge);
    let accurate = |beta: f64| probes.worst_error(&GaussNodes::new(&Shape::kaiser_bessel(width, beta)));
    let refined = minima.into_iter().take(MINIMA).map(|i| {
        let beta = golden_section(beta(i.saturating_sub(1)), beta((i + 1).min(STEPS)), accurate);
        (accurate(beta), beta)
    });
    let (_, beta) = refined.min_by(|a, b| a.0.total_cmp(&b.0)).expect("the ends are among the minima");
    Shape::kaiser_bessel(width, beta)
}

/// Returns the Fourier transform of a Kaiser-Bessel window without the factor W / I0(beta).
fn kaiser_bessel_transform(width: usize, beta: f64, xi: f64) -> f64 {
    let square = beta * beta - (PI * width as f64 * xi).powi(2);
    match square.abs().sqrt() {
        r if r < 1e-6 => 1.0,
        r if square > 0.0 => r.sinh() / r,
        r => r.sin() / r,
    }
}

/// Positive nodes of Gauss's rule with 16 nodes on [-1, 1], and their weights.
#[rustfmt::skip]
const GAUSS: [(f64, f64); 8] = [
    (0.09501250983763744, 0.1894506104550685), (0.2816035507792589, 0.18260341504492358),
    (0.45801677765722737, 0.16915651939500254), (0.6178762444026438, 0.14959598881657674),
    (0.755404408355003, 0.12462897125553388), (0.8656312023878318, 0.09515851168249279),
    (0.9445750230732326, 0.062253523938647894), (0.9894009349916499, 0.027152459411754096),
];

/// The values of a window at Gauss's nodes in its cells. The window is smooth in each cell, so integrals of it and of
/// its square are exact to rounding errors. The same is true for the sum over all aliases, however slowly they
/// decrease:
///
/// ```text
/// sum_{p != 0} F(xi + p)^2 = int_0^1 |sum_j window(j + f - W/2) exp(-i 2 pi xi (j + f - W/2)) - F(xi)|^2 df
/// ```
struct GaussNodes {
    /// Offsets of the nodes in a cell, and their weights.
    rule: [(f64, f64); 2 * GAUSS.len()],
    /// Values of the taps at each offset.
    taps: Vec<Vec<f64>>,
}

impl GaussNodes {
    /// Returns the offsets of the nodes in a cell, and their weights.
    fn rule() -> [(f64, f64); 2 * GAUSS.len()] {
        std::array::from_fn(|i| {
            let (node, weight) = GAUSS[i / 2];
            (0.5 + if i % 2 == 0 { -0.5 * node } else { 0.5 * node }, 0.5 * weight)
        })
    }

    /// Evaluates a window at the nodes.
    fn new(shape: &Shape) -> GaussNodes {
        let rule = GaussNodes::rule();
        let mut taps = shape.taps_at(&std::array::from_fn::<f64, { GAUSS.len() }, _>(|i| rule[2 * i].0));
        // The window is even.
        for i in 0..GAUSS.len() {
            taps.insert(2 * i + 1, taps[2 * i].iter().rev().copied().collect());
        }
        GaussNodes { rule, taps }
    }

    /// Returns F(xi), and the sum of F(xi + p)^2 over p != 0.
    fn transform(&self, xi: f64) -> (f64, f64) {
        // Offsets below 1/2 are sufficient, as the window is even.
        let lower_half = self.rule.iter().zip(&self.taps).step_by(2);
        let sums: [(f64, f64, f64); GAUSS.len()] = {
            let mut sums = lower_half.map(|((f, weight), taps)| {
                let (re, im) = transform_of_taps(taps, *f, xi);
                (2.0 * weight, re, im)
            });
            std::array::from_fn(|_| sums.next().expect("a sum for each node"))
        };
        let main = sums.iter().map(|(weight, re, _)| weight * re).sum::<f64>();
        (main, sums.iter().map(|(weight, re, im)| weight * ((re - main).powi(2) + im * im)).sum())
    }

    /// Returns the relative aliasing error at frequency `xi`.
    fn alias_error(&self, xi: f64) -> f64 {
        let (main, alias) = self.transform(xi);
        (alias / (main * main + alias)).sqrt()
    }

    /// Returns the integral of the window times the window shifted by `shift` cells.
    fn product(&self, shift: usize) -> f64 {
        let term = |(rule, taps): (&(f64, f64), &Vec<f64>)| {
            rule.1 * taps.iter().zip(&taps[shift..]).map(|(a, b)| a * b).sum::<f64>()
        };
        self.rule.iter().zip(&self.taps).map(term).sum()
    }
}

/// Returns real and imaginary part of sum_j taps(j) exp(-i 2 pi xi (j + f - W/2)).
fn transform_of_taps(taps: &[f64], f: f64, xi: f64) -> (f64, f64) {
    let start = f - 0.5 * taps.len() as f64;
    taps.iter().enumerate().fold((0.0, 0.0), |(re, im), (j, tap)| {
        let (s, c) = (2.0 * PI * xi * (start + j as f64)).sin_cos();
        (re + tap * c, im - tap * s)
    })
}

/// Voxels in which the worst error of many windows of one width is searched, with their phases at all taps.
struct ErrorProbes {
    /// Sine and cosine, [voxel][node][tap], for offsets below 1/2.
    phases: Vec<[Vec<(f64, f64)>; GAUSS.len()]>,
}

impl ErrorProbes {
    /// Computes the phases of voxels up to frequency `edge`.
    fn new(width: usize, edge: f64) -> ErrorProbes {
        // Voxels are closer towards the edge, where the error changes most.
        let voxels = 16 + 3 * width;
        let rule = GaussNodes::rule();
        let voxel = |i: usize| {
            let xi = edge * (0.5 * PI * i as f64 / (voxels - 1) as f64).sin();
            std::array::from_fn(|node| {
                let start = rule[2 * node].0 - 0.5 * width as f64;
                (0..width).map(|j| (2.0 * PI * xi * (start + j as f64)).sin_cos()).collect()
            })
        };
        ErrorProbes { phases: (0..voxels).map(voxel).collect() }
    }

    /// Returns the largest error. Between voxels, the error is interpolated by a parabola.
    fn worst_error(&self, nodes: &GaussNodes) -> f64 {
        let square = |phases: &[Vec<(f64, f64)>; GAUSS.len()]| {
            let mut sums = [(0.0, 0.0, 0.0); GAUSS.len()];
            for (i, (sum, phases)) in sums.iter_mut().zip(phases).enumerate() {
                let (re, im) = nodes.taps[2 * i]
                    .iter()
                    .zip(phases)
                    .fold((0.0, 0.0), |(re, im), (tap, (s, c))| (re + tap * c, im - tap * s));
                *sum = (2.0 * nodes.rule[2 * i].1, re, im);
            }
            let main = sums.iter().map(|(weight, re, _)| weight * re).sum::<f64>();
            let alias = sums.iter().map(|(weight, re, im)| weight * ((re - main).powi(2) + im * im)).sum::<f64>();
            alias / (main * main + alias)
        };
        let errors: Vec<f64> = self.phases.iter().map(|phases| square(phases).sqrt()).collect();
        let peak = |neighbours: &[f64]| match neighbours {
            &[a, b, c] if b > a && b > c => b - 0.125 * (a - c) * (a - c) / (a - 2.0 * b + c),
            _ => 0.0,
        };
        errors.windows(3).map(peak).chain(errors.iter().copied()).fold(0.0, f64::max)
    }
}

/// Evaluates the polynomial of a tap, with coefficients in the layout of [`Shape::polynomials`].
fn polynomial(taps: &[Vec<f64>], tap: usize, t: f64) -> f64 {
    taps.iter().fold(0.0, |sum, row| sum * t + row[tap])
}

/// Returns the modified Bessel function of order zero, by its power series or, for large x, its asymptotic series. All
/// terms are positive.
pub(crate) fn bessel_i0(x: f64) -> f64 {
    // From here on, the asymptotic series (Abramowitz and Stegun 9.7.1) has this accuracy too, and far fewer terms.
    if x > 60.0 {
        let (mut term, mut sum, mut k) = (1.0, 1.0, 1.0);
        while term > 1e-18 * sum {
            term *= (2.0 * k - 1.0) * (2.0 * k - 1.0) / (8.0 * x * k);
            sum += term;
            k += 1.0;
        }
        return x.exp() / (std::f64::consts::TAU * x).sqrt() * sum;
    }
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

/// Returns the position of the minimum of a function with one minimum in [low, high].
fn golden_section(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let ratio = 0.5 * (5f64.sqrt() - 1.0);
    let (mut a, mut b) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut fa, mut fb) = (f(a), f(b));
    for _ in 0..8 {
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

/// Computes the polynomial that interpolates f at the Chebyshev nodes of [-1, 1]: coefficients, highest power first.
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

    /// Computes twice the integral of an even function over [0, end], by Simpson's rule on 2 `steps` intervals.
    fn simpson(steps: usize, end: f64, f: impl Fn(f64) -> f64) -> f64 {
        let h = end / (2 * steps) as f64;
        let inner: f64 = (1..2 * steps).map(|i| f(i as f64 * h) * if i % 2 == 1 { 4.0 } else { 2.0 }).sum();
        2.0 * h / 3.0 * (f(0.0) + inner + f(end))
    }

    /// Compares with sums of the power series in 60 digits.
    #[test]
    fn bessel_functions_of_large_arguments_are_accurate() {
        let expected = [(61.0, 1.5889342066111658e25), (100.0, 1.0737517071310738e42), (700.0, 1.5295933476718737e302)];
        for (x, value) in expected {
            assert!((bessel_i0(x) - value).abs() < 1e-15 * value, "{x}: {}", bessel_i0(x));
        }
    }

    fn families() -> [Shape; 5] {
        let best = |window, width| Shape::best(window, width, 1.5);
        [
            best(Window::Minimax, 7),
            best(Window::Minimax, 4),
            best(Window::KaiserBessel, 7),
            best(Window::Gaussian, 7),
            best(Window::Bilinear, 2),
        ]
    }

    #[test]
    fn fourier_transform_is_the_integral_of_the_window() {
        for shape in families() {
            for xi in [0.0, 0.1, 0.33, 0.5] {
                // Polynomial windows have small steps between cells.
                let bound = if shape.window() == Window::Minimax { 1e-6 } else { 1e-8 };
                let steps = 2 * 7 * 4 * 3 * 30;
                let integral = simpson(steps, 0.5 * shape.width as f64, |x| shape.value(x) * (2.0 * PI * x * xi).cos());
                let difference = (integral - shape.fourier(xi)).abs();
                assert!(difference < bound, "{shape:?} at {xi}: {difference:e}");
            }
        }
    }

    #[test]
    fn gauss_s_rule_is_exact_for_powers() {
        for power in 0..32 {
            let sum: f64 = GaussNodes::rule().iter().map(|(f, weight)| weight * f.powi(power)).sum();
            assert!((sum * (power + 1) as f64 - 1.0).abs() < 1e-14, "{power}: {sum}");
        }
    }

    /// Compares the error with a sum of 20,000 aliases of the Kaiser-Bessel window, whose transform is known.
    #[test]
    fn error_contains_aliases_of_all_periods() {
        for (width, sigma) in [(2, 2.0), (4, 1.25), (6, 1.5), (8, 2.0)] {
            let shape = Shape::best(Window::KaiserBessel, width, sigma);
            let WindowFunction::KaiserBessel { beta, .. } = shape.function else { unreachable!() };
            for part in [0.0, 0.4, 1.0] {
                let f = |p: i32| kaiser_bessel_transform(width, beta, part * 0.5 / sigma + p as f64).powi(2);
                let alias: f64 = (1..20_000).rev().map(|p| f(p) + f(-p)).sum();
                let error = (alias / (alias + f(0))).sqrt();
                let computed = shape.alias_error(part * 0.5 / sigma);
                assert!((computed / error - 1.0).abs() < 1e-3, "{width} {sigma} {part}: {computed:e}, {error:e}");
            }
        }
    }

    /// Checks 400 voxels up to the edge, for oversamplings in the table and between.
    #[test]
    fn no_error_exceeds_the_value_in_the_table() {
        for width in 2..=MAX_WIDTH {
            for sigma in [1.25, 1.2501, 1.3, 1.333, 1.5, 1.75, 1.9999, 2.0, 2.2, 2.5, 3.0] {
                for shape in Shape::candidates(Window::Minimax, width, sigma) {
                    let (nodes, edge) = (GaussNodes::new(&shape), 0.5 / sigma);
                    let errors = (0..=400).map(|i| nodes.alias_error(edge * (i as f64 / 800.0 * PI).sin()));
                    let (worst, bound) = (errors.fold(0.0, f64::max), shape.worst_error(edge));
                    // Rounding errors of this sum, amplified by the correction.
                    let rounding = 4e-16 * shape.amplification(edge);
                    assert!(worst <= bound + rounding, "{width} {sigma} {shape:?}: {worst:e}, {bound:e}");
                }
            }
        }
    }

    #[test]
    fn worst_errors_of_minimax_are_at_most_six_tenths_of_kaiser_bessel() {
        for width in 4..=8 {
            for step in 0..=12 {
                let sigma = 1.25 + 0.0625 * step as f64;
                let worst = |window| Shape::best(window, width, sigma).worst_error(0.5 / sigma);
                let (minimax, other) = (worst(Window::Minimax), worst(Window::KaiserBessel));
                assert!(minimax <= 0.6 * other, "{width} {sigma}: {minimax:e}, {other:e}");
            }
        }
    }

    /// Compares the chosen beta with a fine scan, as the worst error has several minima over beta.
    #[test]
    fn chosen_beta_has_the_smallest_error_of_a_scan() {
        for width in 3..=9 {
            for sigma in (0..=12).map(|step| 1.25 + 0.0625 * step as f64) {
                let edge = 0.5 / sigma;
                let rule = PI * width as f64 * (1.0 - edge);
                let probes = ErrorProbes::new(width, edge);
                let error = |i: usize| {
                    let beta = rule * (0.6 + 0.45 * i as f64 / 1999.0);
                    probes.worst_error(&GaussNodes::new(&Shape::kaiser_bessel(width, beta)))
                };
                let least = (0..2000).map(error).fold(f64::INFINITY, f64::min);
                let chosen = Shape::best(Window::KaiserBessel, width, sigma).worst_error(edge);
                assert!(chosen <= 1.01 * least, "{width} {sigma}: {chosen:e}, a scan {least:e}");
            }
        }
    }

    #[test]
    fn corrections_are_optimal_in_the_least_squares_sense() {
        for shape in families() {
            for (n, grid) in [(1, 8), (6, 16), (33, 50), (128, 192)] {
                let (nodes, correction) = (GaussNodes::new(&shape), shape.correction(n, grid).unwrap());
                assert_eq!(correction.len(), n);
                for (i, factor) in correction.iter().enumerate() {
                    let (main, alias) = nodes.transform((i as f64 - (n / 2) as f64) / grid as f64);
                    let relative = factor * (main * main + alias) / main - 1.0;
                    assert!(relative.abs() < 1e-11, "{shape:?} {n} {grid} voxel {i}: {relative:e}");
                }
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
    fn wider_windows_and_finer_grids_have_smaller_errors() {
        for window in [Window::Minimax, Window::KaiserBessel] {
            let error = |w, sigma| Shape::best(window, w, sigma).worst_error(0.5 / sigma);
            for width in 3..MAX_WIDTH {
                assert!(error(width + 1, 1.25) < error(width, 1.25));
                assert!(error(width, 2.0) < error(width, 1.25));
            }
        }
    }
}
