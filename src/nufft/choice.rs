//! The choice of window width and oversampling: the cheapest that keep the user's tolerance.

use super::window::Shape;
use crate::backend::MAX_WIDTH;
use crate::base::defaults;
use crate::base::error::{bail, Result};
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
/// within `tolerance` in a precision of machine epsilon `epsilon`, at the least `cost`.
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
    // Sorted by a lower bound of their cost: the rest is skipped once a choice is cheaper than their bounds.
    let mut sigmas: Vec<(f64, f64)> = sigmas()
        .map(|sigma| {
            let width = least_width(tolerance, sigma);
            let shape = Shape::of_width(window, width);
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
        "tolerance {tolerance:e} is below what the {} window reaches here ({:.1e}): ask for more, use the \
         Kaiser-Bessel window, double precision, or method exact",
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

/// The narrowest window that keeps the tolerance at this oversampling.
fn narrowest(window: Window, dims: &[usize], sigma: f64, tolerance: f64, epsilon: f64) -> Option<Choice> {
    widths(window, least_width(tolerance, sigma))
        .map(|width| Choice::new(window, dims, width, sigma, epsilon))
        .find(|choice| MARGIN * choice.error <= tolerance)
}

/// A lower bound: Kaiser-Bessel errs by about exp(-pi W sqrt(1 - 1/sigma)), and no window by less.
fn least_width(tolerance: f64, sigma: f64) -> usize {
    let width = -tolerance.ln() / (std::f64::consts::PI * (1.0 - 1.0 / sigma).sqrt()) - 1.0;
    (width as usize).clamp(2, MAX_WIDTH)
}

impl Choice {
    fn new(window: Window, dims: &[usize], width: usize, sigma: f64, epsilon: f64) -> Choice {
        let grid: Vec<usize> = dims.iter().map(|&n| grid_size(n, sigma, width)).collect();
        // The axis with the least oversampling decides.
        let least = dims.iter().zip(&grid).map(|(&n, &g)| g as f64 / n as f64).fold(f64::INFINITY, f64::min).min(2.5);
        let shape = Shape::best(window, width, least);
        let error = expected_error(&shape, dims, &grid, epsilon);
        Choice { shape, grid, error }
    }

    /// The polynomials of the window's taps: on each axis of an image of `dims` voxels their error is a tenth of the
    /// window's, in the worst voxel and at the worst position.
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
    for (&n, &g) in dims.iter().zip(grid) {
        let edge = (n / 2) as f64 / g as f64;
        if n <= 5 && shape.window() != Window::Bilinear {
            in_place += shape.error_in_place(edge);
        } else {
            square += shape.worst_error(edge).powi(2);
        }
        amplification *= shape.amplification(edge);
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
                    let price = |c: &Choice| {
                        let cells: usize = c.grid.iter().product();
                        (samples * c.shape.width().pow(dims.len() as u32) + 20 * cells) as f64
                    };
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
