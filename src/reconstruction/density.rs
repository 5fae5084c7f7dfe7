//! Density compensation: the k-space volume that each sample stands for.
//!
//! Weights w are in (cycles per voxel)^d, normalised so that sum_m w_m g(k_m) is the integral of g for a smooth g: the
//! gridding reconstruction then returns an object at its own scale.

use crate::backend::Backend;
use crate::base::defaults;
use crate::base::error::{bail, checked_product, try_collect, try_vec, Result};
use crate::base::interrupt;
use crate::base::real::Real;
use crate::base::sizes::{product, sum, Bytes};
use crate::nufft::window::Shape;
use crate::reconstruction::gridding_scale::gridding_scale;
use num_complex::Complex;

mod ramp;

/// How density weights are computed.
///
/// Percentages are errors of the gridded head phantom on fully sampled trajectories without noise, against the same
/// resolution; `cargo run --release --example densities` prints them for many trajectories. Rosettes and random points
/// leave gaps: 5 to 25 % with any weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Density {
    /// |k|^(d-1), for samples that lie evenly along lines through the centre, or along spirals whose radius grows
    /// evenly; in a stack of either, |k| in the plane times the thickness of the partition: 0 to 2 % error, and with
    /// half of the spokes that the Nyquist rate asks for. The centre gets what a sum lacks of the integral. Lines and
    /// partitions are taken to be spread evenly over the angles. All other trajectories, where it would make 20 to 300
    /// %, are `InvalidArgument`; samples must be in the order of acquisition.
    Ramp,
    /// One over the density of samples under a window that reaches one Nyquist distance (Jackson et al., IEEE Trans.
    /// Med. Imaging 10:473, 1991), for any trajectory: 5 to 15 % error. One division can do no better: a wider window
    /// blurs the dense centre of spokes and spirals, a narrower one takes neighbouring lines for alone. It is the
    /// fastest that takes any trajectory.
    Jackson,
    /// The fixed point of w = w / (C w), C being a window that reaches two Nyquist distances (Pipe and Menon, Magn.
    /// Reson. Med. 41:179, 1999), for any trajectory: 0.4 to 3 % error. Each step starts from weights extrapolated from
    /// the last two (Nesterov 1983), which saves half of the steps. Stops after `iterations`, or when the RMS over the
    /// samples of C w - 1 changes by less than `tolerance`: 7 to 15 steps.
    PipeMenon {
        /// At most so many iterations. Beyond those that the tolerance asks for single weights grow uneven: on spokes
        /// at the Nyquist rate by 2 % RMS after 8, by 20 % after 30.
        iterations: usize,
        /// Change of the RMS deviation below which there is nothing more to gain.
        tolerance: f64,
    },
}

impl Default for Density {
    fn default() -> Self {
        Density::PipeMenon { iterations: defaults::DENSITY_ITERATIONS, tolerance: defaults::DENSITY_TOLERANCE }
    }
}

/// Density weights for samples at `k` (one slice an axis) and images of `dims` voxels.
pub fn weights<T: Real, B: Backend<T>>(backend: &B, k: &[&[T]], dims: &[usize], method: Density) -> Result<Vec<T>> {
    let samples = k[0].len();
    let mut w: Vec<f64> = match method {
        Density::Ramp => ramp::ramp(k, dims)?,
        Density::Jackson => iterate(backend, k, dims, &JACKSON, 1, 0.0)?,
        Density::PipeMenon { iterations, tolerance } => {
            if iterations == 0 || !(tolerance >= 0.0) {
                bail!(
                    InvalidArgument,
                    "Pipe-Menon weights with {iterations} iterations and tolerance {tolerance}: at least one iteration \
                     and a tolerance of 0 or more are needed"
                );
            }
            iterate(backend, k, dims, &PIPE_MENON, iterations, tolerance)?
        }
    };
    let scale = gridding_scale(k, dims, |m| w[m])?;
    w.iter_mut().for_each(|w| *w *= scale);
    try_collect(samples, "the density weights", w.into_iter().map(T::of))
}

/// A Kaiser-Bessel window under which densities are summed. Spreading and interpolation apply it twice, so that it
/// reaches `width` / `oversampling` Nyquist distances to each side.
struct DensityWindow {
    width: usize,
    beta: f64,
    oversampling: usize,
}

/// Wide enough for lines at the Nyquist distance to see one another, and as narrow and flat as that allows: a wider one
/// blurs the centre of spokes (17 % error where this makes 6), a narrower one takes neighbours for alone (22 % on
/// PROPELLER blades).
const JACKSON: DensityWindow = DensityWindow { width: 3, beta: 2.0, oversampling: 3 };

/// Its transform, squared, says from what distances in the image aliases count: to the size of the image, as with the
/// kernel of Johnson and Pipe (Magn. Reson. Med. 61:439, 2009). A larger beta counts further ones, at the expense of
/// nearer ones (5 % instead of 2 on PROPELLER blades); with a smaller one the fixed point oscillates.
const PIPE_MENON: DensityWindow = DensityWindow { width: 4, beta: 7.5, oversampling: 2 };

/// Steps that start from extrapolated weights, at most.
const EXTRAPOLATED: usize = 15;

/// How accurate the window's values are.
const ACCURACY: f64 = 2e-5;

impl DensityWindow {
    /// The grid that densities are summed on. Even, as grids are everywhere. Without transforms it need not be a fast
    /// size, and samples of a Cartesian grid are on its points.
    fn sizes(&self, dims: &[usize]) -> Vec<usize> {
        let cells = |&n: &usize| n.saturating_mul(self.oversampling).max(2 * self.width).next_multiple_of(2);
        dims.iter().map(cells).collect()
    }
}

/// Bytes that [`weights`] takes, for the ramp an upper bound.
pub(crate) fn bytes<T: Real, B: Backend<T>>(
    backend: &B,
    samples: usize,
    dims: &[usize],
    method: Density,
) -> Result<Bytes> {
    let window = if method == Density::Jackson { &JACKSON } else { &PIPE_MENON };
    let (sizes, complex) = (window.sizes(dims), size_of::<Complex<T>>());
    let grid = checked_product(&[&sizes[..], &[complex]].concat(), "the density grid")?;
    // The weights and those before, where C is applied and what comes of it.
    let host = product(&[samples, 2 * size_of::<f64>() + 2 * complex]);
    let caller = if backend.is_apart() { product(&[samples, complex]) } else { 0 };
    let device = [backend.gridder_bytes(samples, &sizes, window.width, 1), grid, product(&[samples, complex]), caller];
    Ok(Bytes { device: sum(&device), host })
}

fn iterate<T: Real, B: Backend<T>>(
    backend: &B,
    k: &[&[T]],
    dims: &[usize],
    window: &DensityWindow,
    iterations: usize,
    tolerance: f64,
) -> Result<Vec<f64>> {
    let shape = Shape::kaiser_bessel(window.width, window.beta);
    let sizes = window.sizes(dims);
    // The window's integral over k-space, so that C w is 1 where weights are volumes.
    let integral: f64 = sizes.iter().map(|&g| shape.fourier(0.0).powi(2) / g as f64).product();
    let taps = shape.polynomials(0.5 / window.oversampling as f64, ACCURACY);
    let gridder = backend.gridder(k, &sizes, &taps, 1)?;
    interrupt::check("the density weights")?;
    let samples = k[0].len();
    let mut w = try_vec(samples, 1.0_f64, "the density weights")?;
    let mut last = try_vec(samples, 1.0_f64, "the density weights")?;
    // Where C is applied: w at first, then what w and the one before lead to.
    let mut ahead = try_vec(samples, Complex::new(T::ONE, T::ZERO), "the density weights")?;
    let mut density = try_vec(samples, Complex::default(), "the density of samples")?;
    let mut grid = backend.zeros::<Complex<T>>(checked_product(&sizes, "the density grid")?, "the density grid")?;
    let mut device = backend.zeros::<Complex<T>>(samples, "the density of samples")?;
    let mut before = f64::INFINITY;
    for iteration in 1..=iterations {
        interrupt::check("the density weights")?;
        {
            let input = backend.input((&ahead).into())?;
            backend.spread(&gridder, backend.read(&input), backend.view_mut(&mut grid));
        }
        interrupt::check("the density weights")?;
        backend.interpolate(&gridder, backend.view(&grid), backend.view_mut(&mut device));
        backend.download(backend.view(&device), &mut density)?;
        std::mem::swap(&mut w, &mut last);
        let mut square = 0.0;
        for (m, (w, (ahead, d))) in w.iter_mut().zip(ahead.iter().zip(&density)).enumerate() {
            let d = d.re.wide() / integral;
            if !(d > 0.0) {
                bail!(NotFinite, "the density at sample {m} is {d}: the trajectory has too few samples there");
            }
            square += (d - 1.0).powi(2);
            *w = ahead.re.wide() / d;
        }
        let deviation = (square / samples as f64).sqrt();
        log::debug!("density iteration {iteration}: RMS of C w - 1 is {deviation:.4}");
        // The first deviation is that of the weights 1 and says nothing.
        if iteration == iterations || iteration > 1 && (before - deviation).abs() < tolerance {
            break;
        }
        before = deviation;
        // Ratios are extrapolated, so that weights stay positive: this is w (w / last)^pace, but for terms of third
        // order, and never more than some times w.
        // Carried on, extrapolation would make single weights grow where samples are dense.
        let extrapolated = (2..=EXTRAPOLATED).contains(&iteration);
        let pace = if extrapolated { iteration as f64 / (iteration as f64 + 2.0) } else { 0.0 };
        for (ahead, (w, last)) in ahead.iter_mut().zip(w.iter().zip(&last)) {
            let (sum, change) = (w + last, pace * (w - last));
            ahead.re = T::of(w * (sum + change) / (sum - change));
        }
    }
    Ok(w)
}
