//! The choice of window width and oversampling: the cheapest that keep the user's tolerance.

use super::window::Shape;
use crate::backend::MAX_WIDTH;
use crate::base::defaults;
use crate::base::error::{bail, try_collect, Result};
use crate::base::fft_size::next_fast_size;
use crate::base::options::Window;

/// The factor by which the expected error must stay below the tolerance: few or unevenly spread samples can err more
/// than the mean over all positions.
const MARGIN: f64 = 1.1;

/// The chosen window and grid.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The window.
    pub shape: Shape,
    /// Grid size of each axis.
    pub grid: Vec<usize>,
    /// The expected relative l2 error of aliasing and rounding together.
    pub error: f64,
}

/// Chooses window width and oversampling between 1.25 and 2 for an image of `dims` voxels, so that the error stays
/// within `tolerance` in a precision of machine epsilon `epsilon`, at the least `cost` of grid and width.
///
/// A tolerance of 0 asks for [`defaults::TOLERANCE`], or for the best that the window reaches if that is worse.
pub fn choose(
    window: Window,
    dims: &[usize],
    tolerance: f64,
    epsilon: f64,
    cost: impl Fn(&[usize], usize) -> f64,
) -> Result<Choice> {
    if !(0.0..1.0).contains(&tolerance) {
        bail!(ToleranceOutOfRange, "the tolerance is {tolerance}: it must lie between 0 and 1, 1e-4 say");
    }
    let by_default = tolerance == 0.0;
    let tolerance = if by_default { defaults::TOLERANCE } else { tolerance };
    // Sorted by a lower bound of their cost: the rest is skipped once a choice is cheaper than their bounds.
    let mut sigmas: Vec<(f64, f64)> = sigmas()
        .map(|sigma| {
            let width = least_width(window, tolerance, sigma);
            let grid: Vec<usize> = dims.iter().map(|&n| grid_size(n, sigma, width)).collect();
            (cost(&grid, width), sigma)
        })
        .collect();
    sigmas.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut best: Option<(f64, Choice)> = None;
    for (least, sigma) in sigmas {
        if best.as_ref().is_some_and(|(cost, _)| *cost <= least) {
            break;
        }
        if let Some(choice) = narrowest(window, dims, sigma, tolerance, epsilon) {
            let cost = cost(&choice.grid, choice.shape.width());
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
        .filter_map(|(width, sigma)| Choice::all(window, dims, width, sigma, epsilon).last())
        .min_by(|a, b| a.error.total_cmp(&b.error))
        .expect("there are windows");
    if by_default {
        return Ok(closest);
    }
    bail!(
        ToleranceOutOfRange,
        "tolerance {tolerance:e} is below what the {} window reaches here ({:.1e}): ask for more, use the \
         minimax window, double precision, or method exact",
        window.name(),
        MARGIN * closest.error
    )
}

/// The oversamplings that are considered.
fn sigmas() -> impl Iterator<Item = f64> {
    (0..=12).map(|step| 1.25 + step as f64 * 0.0625)
}

/// The widths of a window, from `first` on.
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

/// The narrowest window that keeps the tolerance at this oversampling, of the least degree that does.
fn narrowest(window: Window, dims: &[usize], sigma: f64, tolerance: f64, epsilon: f64) -> Option<Choice> {
    widths(window, least_width(window, tolerance, sigma))
        .flat_map(|width| Choice::all(window, dims, width, sigma, epsilon))
        .find(|choice| MARGIN * choice.error <= tolerance)
}

/// A lower bound. Kaiser-Bessel errs by three times exp(-pi W sqrt(1 - 1/sigma)) or more, and the Gaussian and bilinear
/// windows by no less. Windows of least worst error do with up to two cells less.
fn least_width(window: Window, tolerance: f64, sigma: f64) -> usize {
    let spare = if window == Window::Minimax { 3.0 } else { 0.0 };
    let width = -tolerance.ln() / (std::f64::consts::PI * (1.0 - 1.0 / sigma).sqrt()) - spare;
    (width as usize).clamp(2, MAX_WIDTH)
}

impl Choice {
    /// The choices of this width and oversampling, as [`Shape::candidates`] orders them.
    fn all<'a>(
        window: Window,
        dims: &'a [usize],
        width: usize,
        sigma: f64,
        epsilon: f64,
    ) -> impl Iterator<Item = Choice> + 'a {
        let grid: Vec<usize> = dims.iter().map(|&n| grid_size(n, sigma, width)).collect();
        // The axis with the least oversampling decides.
        let least = dims.iter().zip(&grid).map(|(&n, &g)| g as f64 / n as f64).fold(f64::INFINITY, f64::min).min(2.5);
        Shape::candidates(window, width, least).map(move |shape| {
            let error = expected_error(&shape, dims, &grid, epsilon);
            Choice { shape, grid: grid.clone(), error }
        })
    }

    /// The factors that undo the window, for each axis of an image of `dims` voxels.
    ///
    /// # Errors
    /// `OutOfHostMemory`.
    pub fn correction(&self, dims: &[usize]) -> Result<Vec<Vec<f64>>> {
        let mut all: Vec<Vec<f64>> = Vec::with_capacity(dims.len());
        for axis in 0..dims.len() {
            let alike = (0..axis).find(|&a| (dims[a], self.grid[a]) == (dims[axis], self.grid[axis]));
            all.push(match alike {
                Some(a) => try_collect(dims[axis], "the correction of the window", all[a].iter().copied())?,
                None => self.shape.correction(dims[axis], self.grid[axis])?,
            });
        }
        Ok(all)
    }

    /// The polynomials of the window's taps: on each axis of an image of `dims` voxels their error is a tenth of the
    /// window's, in the worst voxel and at the worst position. Windows of least worst error are polynomials, without
    /// an error.
    pub fn taps(&self, dims: &[usize]) -> Vec<Vec<f64>> {
        let edge = dims.iter().zip(&self.grid).map(|(&n, &g)| (n / 2) as f64 / g as f64).fold(0.0, f64::max);
        self.shape.polynomials(edge, 0.1 * self.error)
    }
}

/// Aliasing errors of the axes add in squares: they are means over positions between the grid's cells. The worst voxel
/// stands for all, which is more than the mean over voxels. On an axis of few voxels the two are about equal: there the
/// worst position counts (except for the bilinear window, which would reach no tolerance).
///
/// The correction amplifies rounding errors of spreading and FFT. The factor 1.25 is a measured one, several
/// times the errors of evenly spread samples. Equal samples on a Cartesian grid err most, since their roundings repeat
/// along the grid and all go to a few voxels. It does not grow with the number of samples in one place, since
/// spreading sums them in blocks.
fn expected_error(shape: &Shape, dims: &[usize], grid: &[usize], epsilon: f64) -> f64 {
    let (mut square, mut in_place) = (0.0, 0.0);
    let mut amplification = 1.0;
    let mut before = (0, 0, 0.0, 0.0);
    for (&n, &g) in dims.iter().zip(grid) {
        let edge = (n / 2) as f64 / g as f64;
        let few = n <= 5 && shape.window() != Window::Bilinear;
        // Axes are often alike.
        if (before.0, before.1) != (n, g) {
            let error = if few { shape.error_in_place(n, g) } else { shape.worst_error(edge) };
            before = (n, g, error, shape.amplification(edge));
        }
        if few {
            in_place += before.2;
        } else {
            square += before.2 * before.2;
        }
        amplification *= before.3;
    }
    let rounding = 1.25 * epsilon * (1.0 + amplification);
    (square + in_place * in_place + rounding * rounding).sqrt()
}

/// The smallest fast FFT size of at least `sigma` n, wide enough for two tiles of the window.
fn grid_size(n: usize, sigma: f64, width: usize) -> usize {
    let least = ((n as f64 * sigma).ceil() as usize).max(2 * width);
    next_fast_size(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_is_the_cheapest_of_all() {
        for dims in [&[128usize, 128, 128][..], &[256, 256], &[33, 500], &[20, 30, 40]] {
            for tolerance in [1e-2, 1e-3, 1e-4, 1e-5] {
                for samples in [1000, 300_000] {
                    let price = |grid: &[usize], width: usize| {
                        let cells: usize = grid.iter().product();
                        (samples * width.pow(dims.len() as u32) + 20 * cells) as f64
                    };
                    let of = |c: &Choice| price(&c.grid, c.shape.width());
                    for window in [Window::Minimax, Window::KaiserBessel] {
                        let found = choose(window, dims, tolerance, f32::EPSILON as f64, price).unwrap();
                        let all = choices(window, dims, tolerance, f32::EPSILON as f64);
                        let least = all.iter().map(of).fold(f64::INFINITY, f64::min);
                        assert_eq!(of(&found), least, "{window:?} {dims:?} {tolerance}");
                    }
                }
            }
        }
    }

    #[test]
    fn out_of_reach_is_an_error_with_a_remedy() {
        let e = choose(Window::Bilinear, &[64, 64], 1e-6, f64::EPSILON, |_, _| 0.0).unwrap_err();
        assert_eq!(e.kind(), crate::ErrorKind::ToleranceOutOfRange);
        assert!(e.message().contains("minimax"));
    }
}
