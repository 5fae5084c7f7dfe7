//! Density compensation: weights of samples, each the volume of k-space around its sample.
//!
//! Weights w are in (cycles per voxel)^d. They are normalised so that sum_m w_m g(k_m) is the integral of g for a
//! smooth g. The gridding reconstruction then returns an object at its original scale.

use crate::backend::Backend;
use crate::base::defaults;
use crate::base::error::{bail, checked_product, try_vec, Result};
use crate::base::interrupt;
use crate::base::options::Filter;
use crate::base::real::Real;
use crate::base::sizes::{product, sum, StepBytes};
use crate::base::workers::collect;
use crate::nufft::window::Shape;
use crate::reconstruction::gridding_scale::gridding_scale;
use num_complex::Complex;

mod ramp;

/// Method of density compensation.
///
/// Percentages are errors of the gridded head phantom on fully sampled trajectories without noise, at equal resolution;
/// `cargo run --release --example densities` prints them for many trajectories. Rosettes and random points leave gaps
/// and have errors of 5 to 25 % with any weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Density {
    /// |k|^(d-1): 0 to 3 % error, also with half of the spokes of the Nyquist rate.
    ///
    /// It is for samples spaced evenly along lines through the centre, or along spirals whose radius grows evenly. In a
    /// stack of either, it is |k| in the plane times the thickness of the partition. Weights in the centre are
    /// corrected so that the sum equals the integral.
    ///
    /// Spokes of a plane are weighted by the angle between their neighbours, as golden-angle spokes are not spread
    /// evenly. In a stack and in 3D, lines and partitions are assumed to be spread evenly. Samples must be in the order
    /// of acquisition. All other trajectories, with errors of 20 to 300 %, are `InvalidArgument`.
    Ramp,
    /// Inverse of the density of samples under a window that extends over one Nyquist distance (Jackson et al., IEEE
    /// Trans. Med. Imaging 10:473, 1991), for any trajectory: 5 to 15 % error.
    ///
    /// A single division cannot be more accurate: a wider window blurs the dense centre of spokes and spirals, and a
    /// narrower one does not reach neighbouring lines. It is the fastest method for any trajectory.
    Jackson,
    /// Fixed point of w = w / (C w), where C is the convolution with a window that extends over two Nyquist distances
    /// (Pipe and Menon, Magn. Reson. Med. 41:179, 1999), for any trajectory: 0.4 to 3 % error.
    ///
    /// Each step starts from weights extrapolated from the last two (Nesterov 1983), which saves half of the steps.
    /// Iterations stop after `iterations`, or if the RMS over the samples of C w - 1 changes by less than `tolerance`:
    /// after 7 to 15 steps.
    PipeMenon {
        /// Maximum number of iterations. With more iterations than the tolerance requires, single weights become
        /// uneven.
        iterations: usize,
        /// Change of the RMS deviation below which iterations stop.
        tolerance: f64,
    },
}

/// Factors of the samples in an adjoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weighting {
    /// No factors.
    None,
    /// The density weights of the geometry, or 1 without weights.
    Given,
    /// The density weights of the geometry or, without, Pipe-Menon weights, scaled so that an object keeps its scale.
    Gridding,
    /// The filter of backprojection, which then replaces the adjoint.
    Backprojection(Filter),
}

impl Default for Density {
    fn default() -> Self {
        Density::PipeMenon { iterations: defaults::DENSITY_ITERATIONS, tolerance: defaults::DENSITY_TOLERANCE }
    }
}

/// Computes density weights for samples at `k` (one slice per axis) and images of `dims` voxels.
///
/// Pipe-Menon iterations start from `start`, or from 1. Samples at the same position keep the ratios of their initial
/// weights.
pub fn weights<T: Real, B: Backend<T>>(
    backend: &B,
    k: &[&[T]],
    dims: &[usize],
    method: Density,
    start: Option<&[T]>,
) -> Result<Vec<T>> {
    let samples = k[0].len();
    let w: Vec<f64> = match method {
        Density::Ramp => ramp::ramp(k, dims)?,
        Density::Jackson => iterate(backend, k, dims, &JACKSON, None, 1, 0.0)?,
        Density::PipeMenon { iterations, tolerance } => {
            if iterations == 0 || !(tolerance >= 0.0) {
                bail!(
                    InvalidArgument,
                    "Pipe-Menon weights with {iterations} iterations and tolerance {tolerance}: give at least one \
                     iteration and a tolerance of 0 or more"
                );
            }
            iterate(backend, k, dims, &PIPE_MENON, start, iterations, tolerance)?
        }
    };
    let scale = gridding_scale(backend.workers(), k, dims, |m| w[m])?;
    collect(backend.workers(), samples, "the density weights", |m| T::of(w[m] * scale))
}

/// Kaiser-Bessel window for summing densities. Spreading and interpolation apply it twice, so that it extends over
/// `width` / `oversampling` Nyquist distances to each side.
struct DensityWindow {
    width: usize,
    beta: f64,
    oversampling: usize,
}

/// Window of Jackson weights, just wide enough to extend from a line to the next at the Nyquist distance.
///
/// A wider window blurs the centre of spokes, and a narrower one does not reach neighbouring lines (examples/densities
/// prints the errors).
const JACKSON: DensityWindow = DensityWindow { width: 3, beta: 2.0, oversampling: 3 };

/// Window of Pipe-Menon weights.
///
/// The square of its transform weights aliases by their distance in the image, up to the size of the image, as the
/// kernel of Johnson and Pipe does (Magn. Reson. Med. 61:439, 2009). A larger beta weights distant aliases more and
/// near ones less, with a larger error on PROPELLER blades. With a smaller beta the fixed point oscillates.
const PIPE_MENON: DensityWindow = DensityWindow { width: 4, beta: 7.5, oversampling: 2 };

/// Maximum number of steps that start from extrapolated weights.
const EXTRAPOLATED: usize = 15;

/// Accuracy of the window's values.
const ACCURACY: f64 = 2e-5;

impl DensityWindow {
    /// Returns the size of the grid on which densities are summed. Sizes are even, as for all grids, but not
    /// necessarily fast FFT sizes: samples of a Cartesian grid coincide with its points.
    fn sizes(&self, dims: &[usize]) -> Vec<usize> {
        let cells = |&n: &usize| n.saturating_mul(self.oversampling).max(2 * self.width).next_multiple_of(2);
        dims.iter().map(cells).collect()
    }
}

/// Returns the bytes that [`weights`] allocates; an upper bound for the ramp.
pub(crate) fn bytes<T: Real, B: Backend<T>>(
    backend: &B,
    samples: usize,
    dims: &[usize],
    method: Density,
) -> Result<StepBytes> {
    let window = if method == Density::Jackson { &JACKSON } else { &PIPE_MENON };
    let (sizes, complex) = (window.sizes(dims), size_of::<Complex<T>>());
    let grid = checked_product(&[&sizes[..], &[complex]].concat(), "the density grid")?;
    // The weights, the previous weights, the argument of C, and its result.
    let host = product(&[samples, 2 * size_of::<f64>() + 2 * complex]);
    // Copies of the coordinates and of the argument.
    let caller = if backend.is_gpu() { product(&[samples, complex + dims.len() * size_of::<T>()]) } else { 0 };
    let device = [backend.gridder_bytes(samples, &sizes, window.width, 1), grid, product(&[samples, complex]), caller];
    Ok(StepBytes { device: sum(&device), host })
}

/// Iterates w = w / (C w). Returns the weights after `iterations`, or when the RMS deviation changes by less than
/// `tolerance`.
fn iterate<T: Real, B: Backend<T>>(
    backend: &B,
    k: &[&[T]],
    dims: &[usize],
    window: &DensityWindow,
    start: Option<&[T]>,
    iterations: usize,
    tolerance: f64,
) -> Result<Vec<f64>> {
    let shape = Shape::kaiser_bessel(window.width, window.beta);
    let sizes = window.sizes(dims);
    // Integral of the window over k-space, so that C w is 1 for weights that are volumes.
    let integral: f64 = sizes.iter().map(|&g| shape.fourier(0.0).powi(2) / g as f64).product();
    let taps = shape.polynomials(0.5 / window.oversampling as f64, ACCURACY);
    backend.prepare(&[], &sizes, &taps, k[0].len());
    let gridder = {
        let inputs = k.iter().map(|&k| backend.input(k.into())).collect::<Result<Vec<_>>>()?;
        let k: Vec<_> = inputs.iter().map(|k| backend.read(k)).collect();
        backend.gridder(&k, &sizes, &taps, 1, None, || Ok(()))?
    };
    interrupt::check("the density weights")?;
    let samples = k[0].len();
    let mut w = try_vec(samples, 1.0_f64, "the density weights")?;
    let mut previous = try_vec(samples, 1.0_f64, "the density weights")?;
    // The argument of C: w at first, then w extrapolated.
    let mut extrapolated = try_vec(samples, Complex::new(T::ONE, T::ZERO), "the density weights")?;
    if let Some(start) = start {
        extrapolated.iter_mut().zip(start).for_each(|(w, start)| w.re = *start);
    }
    let mut density = try_vec(samples, Complex::default(), "the density of samples")?;
    let mut grid = backend.unwritten::<Complex<T>>(checked_product(&sizes, "the density grid")?, "the density grid")?;
    let mut device = backend.unwritten::<Complex<T>>(samples, "the density of samples")?;
    let mut last_deviation = f64::INFINITY;
    for iteration in 1..=iterations {
        interrupt::check("the density weights")?;
        {
            let input = backend.input((&extrapolated).into())?;
            backend.spread(&gridder, backend.read(&input), backend.view_mut(&mut grid));
        }
        interrupt::check("the density weights")?;
        backend.interpolate(&gridder, backend.view(&grid), backend.view_mut(&mut device));
        backend.download(backend.view(&device), &mut density)?;
        std::mem::swap(&mut w, &mut previous);
        let mut square = 0.0;
        for (m, (w, (from, d))) in w.iter_mut().zip(extrapolated.iter().zip(&density)).enumerate() {
            let d = d.re.wide() / integral;
            if !(d > 0.0) {
                bail!(NotFinite, "the density at sample {m} is {d}: add samples near it, or choose different weights");
            }
            square += (d - 1.0).powi(2);
            *w = from.re.wide() / d;
        }
        let deviation = (square / samples as f64).sqrt();
        log::debug!("density iteration {iteration}: RMS of C w - 1 is {deviation:.4}");
        // The first deviation belongs to the weights 1 and is meaningless.
        if iteration == iterations || iteration > 1 && (last_deviation - deviation).abs() < tolerance {
            break;
        }
        last_deviation = deviation;
        // Ratios are extrapolated, so that weights stay positive: this is w (w / previous)^pace up to terms of third
        // order, and a bounded multiple of w. With more extrapolated steps, single weights would grow in dense regions.
        let extrapolate = (2..=EXTRAPOLATED).contains(&iteration);
        let pace = if extrapolate { iteration as f64 / (iteration as f64 + 2.0) } else { 0.0 };
        for (extrapolated, (w, previous)) in extrapolated.iter_mut().zip(w.iter().zip(&previous)) {
            let (sum, change) = (w + previous, pace * (w - previous));
            extrapolated.re = T::of(w * (sum + change) / (sum - change));
        }
    }
    Ok(w)
}
