//! Density compensation: weights of samples, each the k-space volume around its sample.
//!
//! Weights w are in (cycles per voxel)^d, normalised so that sum_m w_m g(k_m) is the integral of g for a smooth g: the
//! gridding reconstruction then returns an object at its own scale.

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

/// How density weights are computed.
///
/// Percentages are errors of the gridded head phantom on fully sampled trajectories without noise, at equal resolution;
/// `cargo run --release --example densities` prints them for many trajectories. Rosettes and random points leave gaps:
/// 5 to 25 % with any weights.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Density {
    /// |k|^(d-1), for samples that lie evenly along lines through the centre, or along spirals whose radius grows
    /// evenly; in a stack of either, |k| in the plane times the thickness of the partition: 0 to 3 % error, also with
    /// half of the spokes of the Nyquist rate. Weights in the centre are corrected so that the sum equals the integral.
    /// Spokes of a plane count for the angle between their neighbours (golden-angle spokes are not spread evenly); in a
    /// stack, and in 3D, lines are assumed to be spread evenly over the angles, and so are partitions. All other
    /// trajectories, where the error would be 20 to 300 %, are `InvalidArgument`; samples must be in the order of
    /// acquisition.
    Ramp,
    /// One over the density of samples under a window that reaches one Nyquist distance (Jackson et al., IEEE Trans.
    /// Med. Imaging 10:473, 1991), for any trajectory: 5 to 15 % error. A single division can do no better: a wider
    /// window blurs the dense centre of spokes and spirals, a narrower one does not see neighbouring lines. It is the
    /// fastest method for any trajectory.
    Jackson,
    /// The fixed point of w = w / (C w), where C is the convolution with a window that reaches two Nyquist distances
    /// (Pipe and Menon, Magn. Reson. Med. 41:179, 1999), for any trajectory: 0.4 to 3 % error. Each step starts from
    /// weights extrapolated from the last two (Nesterov 1983), which saves half of the steps. Stops after `iterations`,
    /// or when the RMS over the samples of C w - 1 changes by less than `tolerance`: 7 to 15 steps.
    PipeMenon {
        /// Iterations, at most. With more iterations than the tolerance requires, single weights become uneven.
        iterations: usize,
        /// Change of the RMS deviation at which iterations stop.
        tolerance: f64,
    },
}

/// What multiplies the samples of an adjoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weighting {
    /// Nothing.
    None,
    /// The density weights given with the geometry, 1 without.
    Given,
    /// Those given or, without, those of Pipe and Menon, scaled so that an object keeps its scale.
    Gridding,
    /// The filter of backprojection, which then takes the adjoint's place.
    Backprojection(Filter),
}

impl Default for Density {
    fn default() -> Self {
        Density::PipeMenon { iterations: defaults::DENSITY_ITERATIONS, tolerance: defaults::DENSITY_TOLERANCE }
    }
}

/// Density weights for samples at `k` (one slice an axis) and images of `dims` voxels. Those of Pipe and Menon begin
/// with `start`, or with 1: samples in one place keep the ratios of what they began with.
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
                    "Pipe-Menon weights with {iterations} iterations and tolerance {tolerance}: at least one iteration \
                     and a tolerance of 0 or more are needed"
                );
            }
            iterate(backend, k, dims, &PIPE_MENON, start, iterations, tolerance)?
        }
    };
    let scale = gridding_scale(backend.workers(), k, dims, |m| w[m])?;
    collect(backend.workers(), samples, "the density weights", |m| T::of(w[m] * scale))
}

/// A Kaiser-Bessel window under which densities are summed. Spreading and interpolation apply it twice, so that it
/// reaches `width` / `oversampling` Nyquist distances to each side.
struct DensityWindow {
    width: usize,
    beta: f64,
    oversampling: usize,
}

/// Just wide enough to reach from a line to the next at the Nyquist distance: a wider window blurs the centre of
/// spokes, a narrower one does not see neighbouring lines (examples/densities prints the errors).
const JACKSON: DensityWindow = DensityWindow { width: 3, beta: 2.0, oversampling: 3 };

/// The square of its transform weighs aliases by their distance in the image: up to the size of the image, as with the
/// kernel of Johnson and Pipe (Magn. Reson. Med. 61:439, 2009). A larger beta weighs distant aliases more and near ones
/// less, with a larger error on PROPELLER blades; with a smaller beta the fixed point oscillates.
const PIPE_MENON: DensityWindow = DensityWindow { width: 4, beta: 7.5, oversampling: 2 };

/// Steps that start from extrapolated weights, at most.
const EXTRAPOLATED: usize = 15;

/// The accuracy of the window's values.
const ACCURACY: f64 = 2e-5;

impl DensityWindow {
    /// The grid that densities are summed on. Sizes are even, as for all grids, but need not be fast sizes: samples of
    /// a Cartesian grid lie on its points.
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
) -> Result<StepBytes> {
    let window = if method == Density::Jackson { &JACKSON } else { &PIPE_MENON };
    let (sizes, complex) = (window.sizes(dims), size_of::<Complex<T>>());
    let grid = checked_product(&[&sizes[..], &[complex]].concat(), "the density grid")?;
    // The weights, the last weights, the argument of C, and its result.
    let host = product(&[samples, 2 * size_of::<f64>() + 2 * complex]);
    let caller = if backend.is_gpu() { product(&[samples, complex]) } else { 0 };
    let device = [backend.gridder_bytes(samples, &sizes, window.width, 1), grid, product(&[samples, complex]), caller];
    Ok(StepBytes { device: sum(&device), host })
}

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
    // The window's integral over k-space, so that C w is 1 where weights are volumes.
    let integral: f64 = sizes.iter().map(|&g| shape.fourier(0.0).powi(2) / g as f64).product();
    let taps = shape.polynomials(0.5 / window.oversampling as f64, ACCURACY);
    let gridder = backend.gridder(k, &sizes, &taps, 1, None)?;
    interrupt::check("the density weights")?;
    let samples = k[0].len();
    let mut w = try_vec(samples, 1.0_f64, "the density weights")?;
    let mut last = try_vec(samples, 1.0_f64, "the density weights")?;
    // The argument of C: w at first, then w extrapolated.
    let mut extrapolated = try_vec(samples, Complex::new(T::ONE, T::ZERO), "the density weights")?;
    if let Some(start) = start {
        extrapolated.iter_mut().zip(start).for_each(|(w, start)| w.re = *start);
    }
    let mut density = try_vec(samples, Complex::default(), "the density of samples")?;
    let mut grid = backend.unwritten::<Complex<T>>(checked_product(&sizes, "the density grid")?, "the density grid")?;
    let mut device = backend.unwritten::<Complex<T>>(samples, "the density of samples")?;
    let mut before = f64::INFINITY;
    for iteration in 1..=iterations {
        interrupt::check("the density weights")?;
        {
            let input = backend.input((&extrapolated).into())?;
            backend.spread(&gridder, backend.read(&input), backend.view_mut(&mut grid));
        }
        interrupt::check("the density weights")?;
        backend.interpolate(&gridder, backend.view(&grid), backend.view_mut(&mut device));
        backend.download(backend.view(&device), &mut density)?;
        std::mem::swap(&mut w, &mut last);
        let mut square = 0.0;
        for (m, (w, (from, d))) in w.iter_mut().zip(extrapolated.iter().zip(&density)).enumerate() {
            let d = d.re.wide() / integral;
            if !(d > 0.0) {
                bail!(NotFinite, "the density at sample {m} is {d}: the trajectory has too few samples there");
            }
            square += (d - 1.0).powi(2);
            *w = from.re.wide() / d;
        }
        let deviation = (square / samples as f64).sqrt();
        log::debug!("density iteration {iteration}: RMS of C w - 1 is {deviation:.4}");
        // The first deviation is of the weights 1 and means nothing.
        if iteration == iterations || iteration > 1 && (before - deviation).abs() < tolerance {
            break;
        }
        before = deviation;
        // Ratios are extrapolated, so that weights stay positive: this is w (w / last)^pace up to terms of third order,
        // and a bounded multiple of w. With more extrapolated steps single weights would grow where samples are dense.
        let extrapolate = (2..=EXTRAPOLATED).contains(&iteration);
        let pace = if extrapolate { iteration as f64 / (iteration as f64 + 2.0) } else { 0.0 };
        for (extrapolated, (w, last)) in extrapolated.iter_mut().zip(w.iter().zip(&last)) {
            let (sum, change) = (w + last, pace * (w - last));
            extrapolated.re = T::of(w * (sum + change) / (sum - change));
        }
    }
    Ok(w)
}
