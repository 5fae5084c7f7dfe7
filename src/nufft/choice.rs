//! The choice of window width and oversampling: the cheapest that keep the user's tolerance.

use super::window::Shape;
use crate::backend::MAX_WIDTH;
use crate::base::defaults;
use crate::base::error::{bail, try_collect, Result};
use crate::base::fft_size::next_fast_size;
use crate::base::options::{Options, Window};
use std::ops::RangeInclusive;

/// The factor by which the expected error must stay below the tolerance: few or unevenly spread samples can err more
/// than the mean over all positions.
const MARGIN: f64 = 1.1;
/// The same for the bilinear window, whose error depends more on where samples lie: 1.46 times the expected error was
/// found in 520 random cases.
const BILINEAR_MARGIN: f64 = 1.5;

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

/// What a caller wants of the window and the grid. A width or an oversampling of 0 is to be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Wanted {
    /// The family of windows.
    pub window: Window,
    /// The largest error; 0 for [`defaults::TOLERANCE`], or for what is reached where that is worse.
    pub tolerance: f64,
    /// The window's width in grid cells.
    pub width: usize,
    /// Grid size over image size, at least.
    pub oversampling: f64,
}

impl From<&Options> for Wanted {
    fn from(options: &Options) -> Self {
        let Options { window, tolerance, width, oversampling, .. } = *options;
        Wanted { window, tolerance, width, oversampling }
    }
}

impl Wanted {
    /// Any width and oversampling that keep the tolerance.
    pub fn new(window: Window, tolerance: f64) -> Self {
        Wanted { window, tolerance, ..Wanted::default() }
    }

    /// Whether it names a width or an oversampling.
    pub fn names_window(&self) -> bool {
        self.width != 0 || self.oversampling != 0.0
    }

    /// Refuses what no window can be.
    pub fn check(&self) -> Result<()> {
        if !(0.0..1.0).contains(&self.tolerance) {
            bail!(ToleranceOutOfRange, "the tolerance is {}: it must lie between 0 and 1, 1e-4 say", self.tolerance);
        }
        let all = widths(self.window, 2);
        if self.width != 0 && !all.contains(&self.width) {
            let range = if all.start() == all.end() { "2".into() } else { format!("{} to {}", all.start(), all.end()) };
            bail!(
                InvalidArgument,
                "the width is {}: the {} window can have {range} grid cells, and 0 is for a width that keeps the \
                 tolerance",
                self.width,
                self.window.name()
            );
        }
        if self.oversampling != 0.0 && !(LEAST_OVERSAMPLING..=MOST_OVERSAMPLING).contains(&self.oversampling) {
            bail!(
                InvalidArgument,
                "the oversampling is {}: it can be {LEAST_OVERSAMPLING} to {MOST_OVERSAMPLING}, and 0 is for one that \
                 keeps the tolerance",
                self.oversampling
            );
        }
        Ok(())
    }

    /// The oversamplings that are considered.
    fn sigmas(&self) -> Vec<f64> {
        match self.oversampling {
            0.0 => sigmas().collect(),
            named => vec![named],
        }
    }

    /// The widths that are considered, from `first` on.
    fn widths(&self, first: usize) -> RangeInclusive<usize> {
        match self.width {
            0 => widths(self.window, first),
            named => named..=named,
        }
    }

    /// Returns, as a sentence, the changes that would meet a tolerance that this request cannot meet in a precision of
    /// machine epsilon `epsilon`, where it reaches `reached`. Nothing that is in use already is among them.
    fn remedies(&self, dims: &[usize], epsilon: f64, reached: f64) -> String {
        let keeps = |width: usize, sigma: f64| {
            let wanted = Wanted { width, oversampling: sigma, ..*self };
            narrowest(&wanted, dims, sigma, self.tolerance, epsilon)
        };
        let mut remedies = Vec::new();
        let most = sigmas().last().expect("there are oversamplings");
        let sigma = if self.oversampling == 0.0 { most } else { self.oversampling };
        if self.width != 0 {
            let wider = widths(self.window, 2).find_map(|width| keeps(width, sigma));
            remedies.extend(wider.map(|choice| format!("a width of {}", choice.shape.width())));
        }
        let finer = all_sigmas().filter(|&s| s > sigma).find(|&s| self.widths(2).any(|w| keeps(w, s).is_some()));
        remedies.extend(finer.map(|sigma| format!("an oversampling of {sigma}")));
        if remedies.is_empty() {
            remedies = self.other_windows_and_precisions(dims, epsilon);
        }
        format!("{} would keep it, or name a tolerance of {} or more", remedies.join(" or "), rounded_up(reached))
    }

    /// Returns the remedies that name no width and no oversampling.
    fn other_windows_and_precisions(&self, dims: &[usize], epsilon: f64) -> Vec<String> {
        let reaches = |wanted: Wanted, epsilon: f64| {
            let mut all = wanted.sigmas().into_iter();
            all.any(|sigma| narrowest(&wanted, dims, sigma, self.tolerance, epsilon).is_some())
        };
        let minimax = Wanted { window: Window::Minimax, ..*self };
        let (single, double) = (epsilon > f64::EPSILON, f64::EPSILON);
        let mut remedies = Vec::new();
        if self.names_window() && reaches(Wanted::new(self.window, self.tolerance), epsilon) {
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

/// Chooses window width and oversampling for an image of `dims` voxels, so that the error stays within the tolerance in
/// a precision of machine epsilon `epsilon`, at the least `cost` of grid and width. An oversampling that is not named
/// is between 1.25 and 2. With both named nothing is left to choose, and the window is the most exact one of these.
///
/// A tolerance of 0 asks for [`defaults::TOLERANCE`], or for the best that the window reaches if that is worse.
///
/// # Errors
/// Those of [`Wanted::check`]; `ToleranceOutOfRange` for a tolerance that is named and cannot be kept.
pub fn choose(wanted: Wanted, dims: &[usize], epsilon: f64, cost: impl Fn(&[usize], usize) -> f64) -> Result<Choice> {
    wanted.check()?;
    let Wanted { window, width, .. } = wanted;
    let by_default = wanted.tolerance == 0.0;
    let tolerance = if by_default { defaults::TOLERANCE } else { wanted.tolerance };
    // Sorted by a lower bound of their cost: the rest is skipped once a choice is cheaper than their bounds.
    let mut sigmas: Vec<(f64, f64)> = wanted
        .sigmas()
        .into_iter()
        .map(|sigma| {
            let width = if width == 0 { least_width(window, tolerance, sigma) } else { width };
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
        if let Some(choice) = narrowest(&wanted, dims, sigma, tolerance, epsilon) {
            let cost = cost(&choice.grid, choice.shape.width());
            if best.as_ref().is_none_or(|(before, _)| cost < *before) {
                best = Some((cost, choice));
            }
        }
    }
    if let Some((_, best)) = best {
        return Ok(best);
    }
    let all = wanted.sigmas().into_iter().flat_map(|sigma| wanted.widths(2).map(move |width| (width, sigma)));
    let closest = all
        .filter_map(|(width, sigma)| Choice::all(window, dims, width, sigma, epsilon).last())
        .min_by(|a, b| a.error.total_cmp(&b.error))
        .expect("there are windows");
    if by_default {
        return Ok(closest);
    }
    let reached = margin(wanted.window) * closest.error;
    if wanted.names_window() {
        bail!(
            ToleranceOutOfRange,
            "tolerance {tolerance:e} is below what the {} window of {} cells reaches here at an oversampling of {} \
             ({reached:.1e}): {}",
            window.name(),
            closest.shape.width(),
            four_places(closest.oversampling(dims)),
            wanted.remedies(dims, epsilon, reached)
        )
    }
    bail!(
        ToleranceOutOfRange,
        "tolerance {tolerance:e} is below what the {} window reaches here ({reached:.1e}): {}",
        window.name(),
        wanted.remedies(dims, epsilon, reached)
    )
}

/// Returns a positive number in words, rounded up to two digits: a tolerance as large is met.
fn rounded_up(number: f64) -> String {
    let unit = 10f64.powi(number.log10().floor() as i32 - 1);
    format!("{:.1e}", (number / unit).ceil() * unit)
}

/// A number rounded for messages.
pub(crate) fn four_places(number: f64) -> f64 {
    (1e4 * number).round() / 1e4
}

/// The least oversampling that windows are made for.
const LEAST_OVERSAMPLING: f64 = 1.25;
/// The largest: windows of least worst error are tabulated to here.
const MOST_OVERSAMPLING: f64 = 2.5;
/// From one oversampling that is considered to the next.
const STEP: f64 = 0.0625;

/// The oversamplings that can be named, in the steps of those that are considered.
fn all_sigmas() -> impl Iterator<Item = f64> {
    (0..).map(|step| LEAST_OVERSAMPLING + f64::from(step) * STEP).take_while(|sigma| *sigma <= MOST_OVERSAMPLING)
}

/// The oversamplings that are considered where none is named: larger ones only cost more memory.
fn sigmas() -> impl Iterator<Item = f64> {
    all_sigmas().take_while(|sigma| *sigma <= 2.0)
}

fn margin(window: Window) -> f64 {
    if window == Window::Bilinear {
        BILINEAR_MARGIN
    } else {
        MARGIN
    }
}

/// The widths of a window, from `first` on.
fn widths(window: Window, first: usize) -> RangeInclusive<usize> {
    if window == Window::Bilinear {
        2..=2
    } else {
        first..=MAX_WIDTH
    }
}

/// For each oversampling the narrowest window that keeps the tolerance, where there is one.
pub fn choices(window: Window, dims: &[usize], tolerance: f64, epsilon: f64) -> Vec<Choice> {
    let wanted = Wanted::new(window, tolerance);
    sigmas().filter_map(|sigma| narrowest(&wanted, dims, sigma, tolerance, epsilon)).collect()
}

/// The narrowest window that keeps the tolerance at this oversampling, of the least degree that does. With width and
/// oversampling named it is the most exact window of these, if that one does.
fn narrowest(wanted: &Wanted, dims: &[usize], sigma: f64, tolerance: f64, epsilon: f64) -> Option<Choice> {
    let mut all = wanted
        .widths(least_width(wanted.window, tolerance, sigma))
        .flat_map(|width| Choice::all(wanted.window, dims, width, sigma, epsilon));
    let keeps = |choice: &Choice| margin(wanted.window) * choice.error <= tolerance;
    if wanted.width != 0 && wanted.oversampling != 0.0 {
        return all.last().filter(keeps);
    }
    all.find(keeps)
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
        let least = least_oversampling(dims, &grid).min(MOST_OVERSAMPLING);
        Shape::candidates(window, width, least).map(move |shape| {
            let error = expected_error(&shape, dims, &grid, epsilon);
            Choice { shape, grid: grid.clone(), error }
        })
    }

    /// Grid size over image size, of the axis where it is least.
    pub fn oversampling(&self, dims: &[usize]) -> f64 {
        least_oversampling(dims, &self.grid)
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

fn least_oversampling(dims: &[usize], grid: &[usize]) -> f64 {
    dims.iter().zip(grid).map(|(&n, &g)| g as f64 / n as f64).fold(f64::INFINITY, f64::min)
}

/// The smallest fast FFT size of at least `sigma` n, wide enough for two tiles of the window.
fn grid_size(n: usize, sigma: f64, width: usize) -> usize {
    // 1.6 times 120 is 192, though 1.6 is a little more than that in binary.
    let least = ((n as f64 * sigma * (1.0 - 1e-12)).ceil() as usize).max(2 * width);
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
                        let found = choose(Wanted::new(window, tolerance), dims, f32::EPSILON as f64, price).unwrap();
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
        let wanted = Wanted::new(Window::Bilinear, 1e-6);
        let e = choose(wanted, &[64, 64], f64::EPSILON, |_, _| 0.0).unwrap_err();
        assert_eq!(e.kind(), crate::ErrorKind::ToleranceOutOfRange);
        assert!(e.message().contains("the minimax window would keep it"), "{e}");
        assert!(!e.message().contains("double precision"), "{e}");
    }

    /// Each remedy is a change, it works, and so does the tolerance that the message names.
    #[test]
    fn remedies_work_and_are_not_in_use() {
        let dims = [64, 64];
        let (single, double) = (f64::from(f32::EPSILON), f64::EPSILON);
        for (wanted, epsilon, expected, missing) in [
            (Wanted::new(Window::Minimax, 1e-12), single, "double precision would keep it", "minimax window w"),
            (Wanted::new(Window::Minimax, 1e-16), single, "method exact in double precision would", "minimax window w"),
            (Wanted::new(Window::Minimax, 1e-16), double, "method exact would keep it", "precision"),
            (Wanted::new(Window::Bilinear, 1e-4), single, "the minimax window would keep it", "double"),
            (Wanted::new(Window::Bilinear, 1e-12), single, "the minimax window in double precision would", "exact"),
            (Wanted { width: 4, ..Wanted::new(Window::Minimax, 1e-12) }, single, "method exact in double", "or double"),
            (
                Wanted { width: 4, oversampling: 1.25, ..Wanted::new(Window::Minimax, 1e-5) },
                single,
                "no width and no oversampling would keep it",
                "exact",
            ),
        ] {
            let e = choose(wanted, &dims, epsilon, |_, _| 0.0).unwrap_err();
            assert!(e.message().contains(expected) && !e.message().contains(missing), "{wanted:?}: {e}");
            let tolerance = e.message().rsplit_once("a tolerance of ").unwrap().1.split(' ').next().unwrap();
            let larger = Wanted { tolerance: tolerance.parse().unwrap(), ..wanted };
            choose(larger, &dims, epsilon, |_, _| 0.0).unwrap_or_else(|e| panic!("{larger:?}: {e}"));
        }
        assert!(choose(Wanted::new(Window::Minimax, 1e-12), &dims, double, |_, _| 0.0).is_ok());
    }
}
