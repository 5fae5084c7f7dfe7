//! Density compensation: the k-space volume that each sample stands for.
//!
//! Weights w are in (cycles per voxel)^d, normalised so that sum_m w_m g(k_m) is the integral of g for a smooth g: the
//! gridding reconstruction then returns an object at its own scale.

use crate::backend::Backend;
use crate::error::{bail, try_collect, try_vec, Result};
use crate::gridding_scale::gridding_scale;
use crate::interrupt;
use crate::nufft::Nufft;
use crate::real::Real;
use crate::window::{Choice, Shape, Window};
use num_complex::Complex;

/// How density weights are computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Density {
    /// |k|^(d-1): exact for spokes through the centre that are spread evenly; the centre itself, where it vanishes, gets
    /// what a sum along a spoke lacks of the integral.
    Ramp,
    /// One over the density of samples under the gridding window (Jackson et al., IEEE Trans. Med. Imaging 10:473, 1991).
    Jackson,
    /// The fixed point w = w / (C w), C being the gridding window (Pipe and Menon, Magn. Reson. Med. 41:179, 1999):
    /// stops after `iterations`, or when the weighted RMS of C w - 1 changes by less than `tolerance`.
    PipeMenon {
        /// At most so many iterations.
        iterations: usize,
        /// Change of the RMS deviation below which there is nothing more to gain.
        tolerance: f64,
    },
}

impl Default for Density {
    fn default() -> Self {
        Density::PipeMenon { iterations: 30, tolerance: 1e-3 }
    }
}

/// Density weights for samples at `k` (one slice an axis) and images of `dims` voxels.
pub fn weights<T: Real, B: Backend<T>>(backend: &B, k: &[&[T]], dims: &[usize], method: Density) -> Result<Vec<T>> {
    let samples = k[0].len();
    let mut w: Vec<f64> = match method {
        Density::Ramp => ramp(k)?,
        Density::Jackson => iterate(backend, k, dims, 1, 0.0)?,
        Density::PipeMenon { iterations, tolerance } => {
            if iterations == 0 || !(tolerance >= 0.0) {
                bail!(
                    InvalidArgument,
                    "Pipe-Menon weights with {iterations} iterations and tolerance {tolerance}: at least one iteration \
                     and a tolerance of 0 or more are needed"
                );
            }
            iterate(backend, k, dims, iterations, tolerance)?
        }
    };
    let scale = gridding_scale(k, dims, |m| w[m])?;
    w.iter_mut().for_each(|w| *w *= scale);
    try_collect(samples, "the density weights", w.into_iter().map(T::of))
}

fn ramp<T: Real>(k: &[&[T]]) -> Result<Vec<f64>> {
    let d = k.len() as i32;
    let radius = |m: usize| k.iter().map(|k| k[m].wide().powi(2)).sum::<f64>().sqrt();
    let mut radii = try_collect(k[0].len(), "the density weights", (0..k[0].len()).map(radius))?;
    // Rounded coordinates of the centre are not quite zero.
    let centre = 1e-6;
    let step = radii.iter().copied().filter(|&r| r > centre).fold(f64::INFINITY, f64::min);
    // Along a spoke the sum must be the integral of |k|^(d-1) g for smooth g: by Euler and Maclaurin the trapezoidal sum of
    // |k| g lacks step^2/6 g(0), and that of k^2 g, which is smooth, lacks nothing.
    let least = match d {
        _ if !step.is_finite() => 1.0,
        2 => step / 6.0,
        _ => 0.0,
    };
    radii.iter_mut().for_each(|r| *r = if *r > centre { r.powi(d - 1) } else { least });
    Ok(radii)
}

/// The window under which densities are summed, on a grid of twofold oversampling. Spreading and interpolation apply it
/// twice, so it reaches two Nyquist cells to each side; a flatter one makes the fixed point oscillate.
fn density_window(dims: &[usize]) -> Choice {
    const WIDTH: usize = 4;
    let grid = dims.iter().map(|&n| crate::window::next_fast_size((2 * n).max(2 * WIDTH))).collect();
    Choice { shape: Shape::best(Window::KaiserBessel, WIDTH, 2.0), grid, error: 1e-3 }
}

fn iterate<T: Real, B: Backend<T>>(
    backend: &B,
    k: &[&[T]],
    dims: &[usize],
    iterations: usize,
    tolerance: f64,
) -> Result<Vec<f64>> {
    let choice = density_window(dims);
    // The window's integral over k-space, so that C w is 1 where weights are volumes.
    let integral: f64 = choice.grid.iter().map(|&g| choice.shape.fourier(0.0).powi(2) / g as f64).product();
    let nufft = Nufft::new(backend, k, dims, choice, 1)?;
    let samples = k[0].len();
    let mut w = try_vec(samples, Complex::new(T::ONE, T::ZERO), "the density weights")?;
    let mut density = try_vec(samples, Complex::default(), "the density of samples")?;
    let mut grid = backend.zeros::<Complex<T>>(nufft.grid_len(), "the density grid")?;
    let mut device = backend.zeros::<Complex<T>>(samples, "the density of samples")?;
    let mut before = f64::INFINITY;
    for iteration in 1..=iterations {
        interrupt::check("the density weights")?;
        {
            let input = backend.input((&w).into())?;
            nufft.spread(backend, backend.read(&input), backend.view_mut(&mut grid));
        }
        interrupt::check("the density weights")?;
        nufft.interpolate(backend, backend.view(&grid), backend.view_mut(&mut device));
        backend.download(backend.view(&device), &mut density)?;
        let (mut square, mut total) = (0.0, 0.0);
        for (m, (w, d)) in w.iter_mut().zip(&density).enumerate() {
            let d = d.re.wide() / integral;
            if !(d > 0.0) {
                bail!(NotFinite, "the density at sample {m} is {d}: the trajectory has too few samples there");
            }
            square += w.re.wide() * (d - 1.0).powi(2);
            total += w.re.wide();
            w.re = T::of(w.re.wide() / d);
        }
        let deviation = (square / total).sqrt();
        log::debug!("density iteration {iteration}: RMS of C w - 1 is {deviation:.4}");
        // The first deviation is that of the weights 1 and says nothing.
        if iteration > 1 && (before - deviation).abs() < tolerance {
            break;
        }
        before = deviation;
    }
    try_collect(samples, "the density weights", w.into_iter().map(|w| w.re.wide()))
}
