//! The choice of window width and oversampling: the fastest combination that meets the user's tolerance.

use super::corrections::correction;
use super::window::Shape;
use crate::backend::MAX_WIDTH;
use crate::base::defaults;
use crate::base::error::{bail, try_collect, Result};
use crate::base::fft_size::GridSizes;
use crate::base::options::{Options, Window};
use std::ops::RangeInclusive;

/// Factor by which the expected error must be below the tolerance. The error of few or unevenly spread samples can
/// exceed the mean over all positions.
const ERROR_MARGIN: f64 = 1.1;
/// The same factor for the bilinear window, whose error depends more on the sample positions. The largest error in 520
/// random cases was 1.46 times the expected error.
const BILINEAR_ERROR_MARGIN: f64 = 1.5;

/// Window and grid of a gridding transform.
#[derive(Debug, Clone, PartialEq)]
pub struct GriddingParams {
    /// Gridding window.
    pub shape: Shape,
    /// Grid size of each axis.
    pub grid: Vec<usize>,
    /// Expected relative l2 error of aliasing and rounding together.
    pub error: f64,
}

/// The caller's requirements of window and grid.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct WindowRequest {
    /// Family of the window.
    pub window: Window,
    /// Maximum error; 0 means [`defaults::TOLERANCE`], or the smallest error that can be reached if that is larger.
    pub tolerance: f64,
    /// Width of the window in grid cells; 0 means that it is chosen.
    pub width: usize,
    /// Minimum of grid size over image size; 0 means that it is chosen.
    pub oversampling: f64,
    /// The sizes of grids that are fast.
    pub sizes: GridSizes,
    /// Largest oversampling to choose; 0 means the largest one of the windows. Only the caller requests larger ones.
    pub largest_oversampling: f64,
}

impl From<&Options> for WindowRequest {
    fn from(options: &Options) -> Self {
        let Options { window, tolerance, width, oversampling, .. } = *options;
        WindowRequest { window, tolerance, width, oversampling, ..WindowRequest::default() }
    }
}

impl WindowRequest {
    /// Accepts any width and oversampling that meet the tolerance.
    pub fn new(window: Window, tolerance: f64) -> Self {
        WindowRequest { window, tolerance, ..WindowRequest::default() }
    }

    /// Returns whether a width or an oversampling is set.
    pub fn names_window(&self) -> bool {
        self.width != 0 || self.oversampling != 0.0
    }

    /// Checks that the tolerance, width and oversampling are possible.
    pub fn check(&self) -> Result<()> {
        if !(0.0..1.0).contains(&self.tolerance) {
            bail!(
                ToleranceOutOfRange,
                "the tolerance is {}: it must lie between 0 and 1, for example 1e-4",
                self.tolerance
            );
        }
        let allowed = allowed_widths(self.window, 2);
        if self.width != 0 && !allowed.contains(&self.width) {
            let range = if allowed.start() == allowed.end() {
                "2".into()
            } else {
                format!("{} to {}", allowed.start(), allowed.end())
            };
            bail!(
                InvalidArgument,
                "the width is {}: the {} window can have {range} grid cells, and 0 means a width that meets \
                 the tolerance",
                self.width,
                self.window.name()
            );
        }
        if self.oversampling != 0.0 && !(MIN_OVERSAMPLING..=MAX_OVERSAMPLING).contains(&self.oversampling) {
            bail!(
                InvalidArgument,
                "the oversampling is {}: it can be {MIN_OVERSAMPLING} to {MAX_OVERSAMPLING}, and 0 means one that \
                 meets the tolerance",
                self.oversampling
            );
        }
        Ok(())
    }

    /// Returns the oversamplings to consider.
    fn oversamplings(&self) -> Vec<f64> {
        match self.oversampling {
            0.0 => {
                let largest =
                    if self.largest_oversampling == 0.0 { MAX_OVERSAMPLING } else { self.largest_oversampling };
                all_oversamplings().take_while(|sigma| *sigma <= largest).collect()
            }
            requested => vec![requested],
        }
    }

    /// Returns the widths to consider, beginning with `first`.
    fn widths(&self, first: usize) -> RangeInclusive<usize> {
        match self.width {
            0 => allowed_widths(self.window, first),
            requested => requested..=requested,
        }
    }

    /// Returns a sentence with changes that would meet a tolerance that this request cannot meet. `epsilon` is the
    /// machine epsilon of the precision, `reached` the error that the request reaches. The sentence does not repeat
    /// settings in use.
    fn remedies(&self, dims: &[usize], epsilon: f64, reached: f64) -> String {
        let meets = |width: usize, sigma: f64| {
            let request = WindowRequest { width, oversampling: sigma, ..*self };
            narrowest(&request, dims, sigma, self.tolerance, epsilon)
        };
        let mut remedies = Vec::new();
        let sigma = self.oversamplings().last().copied().expect("there are oversamplings");
        if self.width != 0 {
            let wider = allowed_widths(self.window, 2).find_map(|width| meets(width, sigma));
            remedies.extend(wider.map(|params| format!("a width of {}", params.shape.width())));
        }
        let finer = all_oversamplings().filter(|&s| s > sigma).find(|&s| self.widths(2).any(|w| meets(w, s).is_some()));
        remedies.extend(finer.map(|sigma| format!("an oversampling of {sigma}")));
        if remedies.is_empty() {
            remedies = self.other_windows_and_precisions(dims, epsilon);
        }
        format!("{} would meet it, or set a tolerance of {} or more", remedies.join(" or "), rounded_up(reached))
    }

    /// Returns the remedies that set neither width nor oversampling.
    fn other_windows_and_precisions(&self, dims: &[usize], epsilon: f64) -> Vec<String> {
        let reaches = |request: WindowRequest, epsilon: f64| {
            let mut oversamplings = request.oversamplings().into_iter();
            oversamplings.any(|sigma| narrowest(&request, dims, sigma, self.tolerance, epsilon).is_some())
        };
        let minimax = WindowRequest { window: Window::Minimax, ..*self };
        let (single, double) = (epsilon > f64::EPSILON, f64::EPSILON);
        let mut remedies = Vec::new();
        if self.names_window() && reaches(WindowRequest::new(self.window, self.tolerance), epsilon) {
            remedies.push("no width and no oversampling".to_owned());
        }
        let other_window = self.window != Window::Minimax && reaches(minimax, epsilon);
        if other_window {
            remedies.push("the minimax window".to_owned());
        }
        if single && reaches(*self, double) {
            remedies.push("double precision".to_owned());
        } else if single && !other_window && self.window != Window::Minimax && reaches(minimax, double) {
            remedies.push("the minimax window in double precision".to_owned());
        }
        if remedies.is_empty() {
            remedies.push(if single { "method exact in double precision" } else { "method exact" }.to_owned());
        }
        remedies
    }
}

/// Chooses window width and oversampling for an image of `dims` voxels. The choice meets the tolerance in a precision
/// of machine epsilon `epsilon`, at the smallest `cost` of grid and width. If no oversampling is requested, it is
/// between 1.25 and the largest one to choose. If both width and oversampling are requested, the window is the most
/// accurate one of these.
///
/// A tolerance of 0 means [`defaults::TOLERANCE`], or the smallest error that the window reaches if that is larger.
///
/// # Errors
/// As [`WindowRequest::check`]; `ToleranceOutOfRange` for a requested tolerance that cannot be met.
pub fn choose(
    request: WindowRequest,
    dims: &[usize],
    epsilon: f64,
    cost: impl Fn(&[usize], usize) -> f64,
) -> Result<GriddingParams> {
    request.check()?;
    let WindowRequest { window, width, sizes, .. } = request;
    let is_default = request.tolerance == 0.0;
    let tolerance = if is_default { defaults::TOLERANCE } else { request.tolerance };
    // Sorted by a lower bound of the cost. The rest is skipped as soon as a choice costs less than the next bound.
    // Neighbours often have the same grid, and then the same choice.
    let mut previous = None;
    let mut oversamplings: Vec<(f64, f64)> = request
        .oversamplings()
        .into_iter()
        .filter_map(|sigma| {
            let width = if width == 0 { min_width(window, tolerance, sigma) } else { width };
            let current = Some((grid_sizes(sizes, dims, sigma, 0), width));
            let is_new = previous != current;
            previous = current;
            is_new.then(|| (cost(&grid_sizes(sizes, dims, sigma, width), width), sigma))
        })
        .collect();
    oversamplings.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut best: Option<(f64, GriddingParams)> = None;
    for (lower_bound, sigma) in oversamplings {
        if best.as_ref().is_some_and(|(cost, _)| *cost <= lower_bound) {
            break;
        }
        if let Some(params) = narrowest(&request, dims, sigma, tolerance, epsilon) {
            let cost = cost(&params.grid, params.shape.width());
            if best.as_ref().is_none_or(|(lowest, _)| cost < *lowest) {
                best = Some((cost, params));
            }
        }
    }
    if let Some((_, best)) = best {
        return Ok(best);
    }
    let all = request.oversamplings().into_iter().flat_map(|sigma| request.widths(2).map(move |width| (width, sigma)));
    let closest = all
        .filter_map(|(width, sigma)| GriddingParams::candidates(&request, dims, width, sigma, epsilon).last())
        .min_by(|a, b| a.error.total_cmp(&b.error))
        .expect("there are windows");
    if is_default {
        return Ok(closest);
    }
    let reached = error_margin(request.window) * closest.error;
    if request.names_window() {
        bail!(
            ToleranceOutOfRange,
            "tolerance {tolerance:e} is below the error that the {} window of {} cells reaches here at an \
             oversampling of {} ({reached:.1e}): {}",
            window.name(),
            closest.shape.width(),
            four_places(closest.oversampling(dims)),
            request.remedies(dims, epsilon, reached)
        )
    }
    bail!(
        ToleranceOutOfRange,
        "tolerance {tolerance:e} is below the error that the {} window reaches here ({reached:.1e}): {}",
        window.name(),
        request.remedies(dims, epsilon, reached)
    )
}

/// Formats a positive number, rounded up to two digits so that a tolerance of this value is met.
fn rounded_up(number: f64) -> String {
    let unit = 10f64.powi(number.log10().floor() as i32 - 1);
    format!("{:.1e}", (number / unit).ceil() * unit)
}

/// Rounds a number to four decimal places, for messages.
pub(crate) fn four_places(number: f64) -> f64 {
    (1e4 * number).round() / 1e4
}

/// Smallest oversampling of the windows.
const MIN_OVERSAMPLING: f64 = 1.25;
/// Largest oversampling: the end of the table of minimax windows.
const MAX_OVERSAMPLING: f64 = 2.5;
/// Step between the oversamplings that are considered.
const OVERSAMPLING_STEP: f64 = 0.0625;

/// Returns all possible oversamplings in steps of [`OVERSAMPLING_STEP`].
fn all_oversamplings() -> impl Iterator<Item = f64> {
    (0..)
        .map(|step| MIN_OVERSAMPLING + f64::from(step) * OVERSAMPLING_STEP)
        .take_while(|sigma| *sigma <= MAX_OVERSAMPLING)
}

/// Returns the factor by which the expected error of a window must be below the tolerance.
fn error_margin(window: Window) -> f64 {
    if window == Window::Bilinear {
        BILINEAR_ERROR_MARGIN
    } else {
        ERROR_MARGIN
    }
}

/// Returns the possible widths of a window, beginning with `first`.
fn allowed_widths(window: Window, first: usize) -> RangeInclusive<usize> {
    if window == Window::Bilinear {
        2..=2
    } else {
        first..=MAX_WIDTH
    }
}

/// Returns the narrowest window that meets the tolerance, for each oversampling that has one.
pub fn choices(window: Window, dims: &[usize], tolerance: f64, epsilon: f64) -> Vec<GriddingParams> {
    let request = WindowRequest::new(window, tolerance);
    all_oversamplings().filter_map(|sigma| narrowest(&request, dims, sigma, tolerance, epsilon)).collect()
}

/// Returns the narrowest window that meets the tolerance at this oversampling, with the lowest sufficient degree. If
/// width and oversampling are requested, returns the most accurate window of these if it meets the tolerance.
fn narrowest(
    request: &WindowRequest,
    dims: &[usize],
    sigma: f64,
    tolerance: f64,
    epsilon: f64,
) -> Option<GriddingParams> {
    let mut widths = request.widths(min_width(request.window, tolerance, sigma));
    let meets = |error: f64| error_margin(request.window) * error <= tolerance;
    if request.width != 0 && request.oversampling != 0.0 {
        let all = widths.flat_map(|width| GriddingParams::candidates(request, dims, width, sigma, epsilon));
        return all.last().filter(|params| meets(params.error));
    }
    // Most windows are rejected by their error alone. Slightly less of it is compared, as sums of squares are rounded.
    let has_worst_error = dims.iter().any(|&n| !has_few_voxels(n));
    let can_meet = |shape: &Shape| !has_worst_error || meets((1.0 - 1e-9) * shape.least_worst_error());
    let mut grid = grid_sizes(request.sizes, dims, sigma, 0);
    widths.find_map(|width| {
        if grid.iter().any(|&cells| cells < 2 * width) {
            grid = grid_sizes(request.sizes, dims, sigma, width);
        }
        let (shape, error) = GriddingParams::windows(request.window, dims, width, &grid)
            .filter(can_meet)
            .map(|shape| (shape, expected_error(&shape, dims, &grid, epsilon)))
            .find(|&(_, error)| meets(error))?;
        Some(GriddingParams { shape, grid: grid.clone(), error })
    })
}

/// Returns a lower bound of the width. The error of Kaiser-Bessel windows is at least three times exp(-pi W sqrt(1 -
/// 1/sigma)), and that of the Gaussian and bilinear windows is not smaller. Minimax windows need up to two cells less.
fn min_width(window: Window, tolerance: f64, sigma: f64) -> usize {
    let spare = if window == Window::Minimax { 3.0 } else { 0.0 };
    let width = -tolerance.ln() / (std::f64::consts::PI * (1.0 - 1.0 / sigma).sqrt()) - spare;
    (width as usize).clamp(2, MAX_WIDTH)
}

impl GriddingParams {
    /// Returns the parameters for this width and oversampling, in the order of [`Shape::candidates`].
    fn candidates<'a>(
        request: &WindowRequest,
        dims: &'a [usize],
        width: usize,
        sigma: f64,
        epsilon: f64,
    ) -> impl Iterator<Item = GriddingParams> + 'a {
        let grid = grid_sizes(request.sizes, dims, sigma, width);
        GriddingParams::windows(request.window, dims, width, &grid).map(move |shape| {
            let error = expected_error(&shape, dims, &grid, epsilon);
            GriddingParams { shape, grid: grid.clone(), error }
        })
    }

    /// Returns the windows of this width for a grid, in the order of [`Shape::candidates`].
    fn windows(window: Window, dims: &[usize], width: usize, grid: &[usize]) -> impl Iterator<Item = Shape> + use<> {
        // The axis with the smallest oversampling decides.
        Shape::candidates(window, width, min_oversampling(dims, grid).min(MAX_OVERSAMPLING))
    }

    /// Returns grid size over image size, of the axis with the smallest ratio.
    pub fn oversampling(&self, dims: &[usize]) -> f64 {
        min_oversampling(dims, &self.grid)
    }

    /// Returns the factors that correct for the window, for each axis of an image of `dims` voxels.
    ///
    /// # Errors
    /// `OutOfHostMemory`.
    pub fn correction(&self, dims: &[usize]) -> Result<Vec<Vec<f64>>> {
        let mut all: Vec<Vec<f64>> = Vec::with_capacity(dims.len());
        for axis in 0..dims.len() {
            let equal_axis = (0..axis).find(|&a| (dims[a], self.grid[a]) == (dims[axis], self.grid[axis]));
            all.push(match equal_axis {
                Some(a) => try_collect(dims[axis], "the correction of the window", all[a].iter().copied())?,
                None => correction(&self.shape, dims[axis], self.grid[axis])?,
            });
        }
        Ok(all)
    }

    /// Returns the polynomials of the window's taps. On each axis of an image of `dims` voxels, their error is a tenth
    /// of the error of the window, in the worst voxel and at the worst position. Minimax windows are polynomials,
    /// without additional error.
    pub fn taps(&self, dims: &[usize]) -> Vec<Vec<f64>> {
        let edge = dims.iter().zip(&self.grid).map(|(&n, &g)| (n / 2) as f64 / g as f64).fold(0.0, f64::max);
        self.shape.polynomials(edge, 0.1 * self.error)
    }
}

/// Returns the expected relative l2 error of aliasing and rounding.
///
/// Aliasing errors of the axes add in squares, as they are means over positions between grid cells. The error of the
/// worst voxel is used for all voxels; it exceeds the mean over voxels. On an axis of few voxels the two are about
/// equal, so the error at the worst position is used instead (except for the bilinear window, which would not meet any
/// tolerance).
///
/// The correction amplifies rounding errors of spreading and FFT. The factor 1.25 was measured. It is several times the
/// error of evenly spread samples. Equal samples on a Cartesian grid have the largest error: their rounding errors
/// repeat along the grid and concentrate in few voxels. The error does not grow with the number of samples at one
/// position, since spreading sums them in blocks.
fn expected_error(shape: &Shape, dims: &[usize], grid: &[usize], epsilon: f64) -> f64 {
    let (mut square, mut at_worst_position) = (0.0, 0.0);
    let mut amplification = 1.0;
    let mut previous = (0, 0, 0.0, 0.0);
    for (&n, &g) in dims.iter().zip(grid) {
        let edge = (n / 2) as f64 / g as f64;
        let has_few_voxels = has_few_voxels(n) && shape.window() != Window::Bilinear;
        // Axes often have the same size.
        if (previous.0, previous.1) != (n, g) {
            let error = if has_few_voxels { shape.error_at_worst_position(n, g) } else { shape.worst_error(edge) };
            previous = (n, g, error, shape.amplification(edge));
        }
        if has_few_voxels {
            at_worst_position += previous.2;
        } else {
            square += previous.2 * previous.2;
        }
        amplification *= previous.3;
    }
    let rounding = 1.25 * epsilon * (1.0 + amplification);
    (square + at_worst_position * at_worst_position + rounding * rounding).sqrt()
}

/// Returns whether an axis of `n` voxels is so short that its worst voxel has about the mean error of all.
fn has_few_voxels(n: usize) -> bool {
    n <= 5
}

/// Returns the smallest ratio of grid size to image size.
fn min_oversampling(dims: &[usize], grid: &[usize]) -> f64 {
    dims.iter().zip(grid).map(|(&n, &g)| g as f64 / n as f64).fold(f64::INFINITY, f64::min)
}

/// Returns the grid size of each axis: the smallest fast size of at least `sigma` n and of two windows.
fn grid_sizes(sizes: GridSizes, dims: &[usize], sigma: f64, width: usize) -> Vec<usize> {
    // The product is reduced slightly: 1.6 times 120 is 192, although the binary value of 1.6 is larger than 1.6.
    let least = |n: usize| ((n as f64 * sigma * (1.0 - 1e-12)).ceil() as usize).max(2 * width);
    dims.iter().enumerate().map(|(axis, &n)| sizes.next(dims.len(), axis, least(n))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choice_has_the_lowest_cost() {
        for dims in [&[128usize, 128, 128][..], &[256, 256], &[33, 500], &[20, 30, 40]] {
            for tolerance in [1e-2, 1e-3, 1e-4, 1e-5] {
                for samples in [1000, 300_000] {
                    let price = |grid: &[usize], width: usize| {
                        let cells: usize = grid.iter().product();
                        (samples * width.pow(dims.len() as u32) + 20 * cells) as f64
                    };
                    let cost = |c: &GriddingParams| price(&c.grid, c.shape.width());
                    for window in [Window::Minimax, Window::KaiserBessel] {
                        let chosen =
                            choose(WindowRequest::new(window, tolerance), dims, f32::EPSILON as f64, price).unwrap();
                        let all = choices(window, dims, tolerance, f32::EPSILON as f64);
                        let least = all.iter().map(cost).fold(f64::INFINITY, f64::min);
                        assert_eq!(cost(&chosen), least, "{window:?} {dims:?} {tolerance}");
                    }
                }
            }
        }
    }

    #[test]
    fn no_larger_oversampling_is_chosen() {
        // The narrowest window is the cheapest.
        let width_of = |_: &[usize], width: usize| width as f64;
        for dims in [&[128usize, 128, 128][..], &[256, 256], &[64, 500]] {
            for tolerance in [1e-2, 3e-4, 1e-5] {
                let found = [0.0, 2.0, 1.5].map(|largest_oversampling| {
                    let request =
                        WindowRequest { largest_oversampling, ..WindowRequest::new(Window::Minimax, tolerance) };
                    choose(request, dims, f64::EPSILON, width_of).unwrap()
                });
                let widths = found.each_ref().map(|params| params.shape.width());
                assert!(widths.is_sorted() && widths[0] < widths[2], "{widths:?}");
                let [_, two, less] = found.map(|params| params.oversampling(dims));
                assert!(two < 2.1 && less < 1.6, "{two} {less}");
            }
        }
    }

    #[test]
    fn unreachable_tolerance_is_an_error_with_a_remedy() {
        let request = WindowRequest::new(Window::Bilinear, 1e-6);
        let e = choose(request, &[64, 64], f64::EPSILON, |_, _| 0.0).unwrap_err();
        assert_eq!(e.kind(), crate::ErrorKind::ToleranceOutOfRange);
        assert!(e.message().contains("the minimax window would meet it"), "{e}");
        assert!(!e.message().contains("double precision"), "{e}");
    }

    /// Checks that each remedy is a change and works, and that the tolerance in the message can be met.
    #[test]
    fn remedies_work_and_are_not_in_use() {
        let dims = [64, 64];
        let (single, double) = (f64::from(f32::EPSILON), f64::EPSILON);
        for (request, epsilon, expected, missing) in [
            (WindowRequest::new(Window::Minimax, 1e-12), single, "double precision would meet it", "minimax window w"),
            (
                WindowRequest::new(Window::Minimax, 1e-16),
                single,
                "method exact in double precision would",
                "minimax window w",
            ),
            (WindowRequest::new(Window::Minimax, 1e-16), double, "method exact would meet it", "precision"),
            (WindowRequest::new(Window::Bilinear, 1e-4), single, "the minimax window would meet it", "double"),
            (
                WindowRequest::new(Window::Bilinear, 1e-12),
                single,
                "the minimax window in double precision would",
                "exact",
            ),
            (
                WindowRequest { width: 4, ..WindowRequest::new(Window::Minimax, 1e-12) },
                single,
                "method exact in double",
                "or double",
            ),
            (
                WindowRequest { width: 4, oversampling: 1.25, ..WindowRequest::new(Window::Minimax, 1e-5) },
                single,
                "no width and no oversampling would meet it",
                "exact",
            ),
        ] {
            let e = choose(request, &dims, epsilon, |_, _| 0.0).unwrap_err();
            assert!(e.message().contains(expected) && !e.message().contains(missing), "{request:?}: {e}");
            let tolerance = e.message().rsplit_once("a tolerance of ").unwrap().1.split(' ').next().unwrap();
            let larger = WindowRequest { tolerance: tolerance.parse().unwrap(), ..request };
            choose(larger, &dims, epsilon, |_, _| 0.0).unwrap_or_else(|e| panic!("{larger:?}: {e}"));
        }
        assert!(choose(WindowRequest::new(Window::Minimax, 1e-12), &dims, double, |_, _| 0.0).is_ok());
    }
}
