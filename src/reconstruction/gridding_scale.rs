//! The scale of gridded images.
//!
//! Weights are scaled so that gridding returns a test object h unchanged: <h, A h> = <h, h>, where A h is the gridding
//! of E h. This means sum_m w_m |H(k_m)|^2 = sum_r |h(r)|^2, where H is the discrete-time Fourier transform of h. For
//! samples on a whole Cartesian grid it is true for every h within the image, for any number of voxels (Parseval).
//!
//! h is a Kaiser window along each axis (Kaiser and Schafer, IEEE Trans. Acoust. Speech Signal Process. 28:105, 1980).
//! It fills the image, and its spectrum stays in the measured part of k-space. Along an axis with k = 0 everywhere, h
//! is constant, and the object must also be constant.

use crate::backend::spectral_sums::{SpectralSums, SpectralWindow, SCALE};
use crate::backend::{Backend, Reals, Span};
use crate::base::error::{bail, try_collect, Result};
use crate::base::geometry::{min_max, reach};
use crate::base::real::Real;
use crate::base::workers::{fold, Workers};
use crate::nufft::window::bessel_i0;
use std::f64::consts::{PI, TAU};
use std::ops::Range;

/// Largest product of the reach of k and the window's length. The spectrum of a longer window would cover only the
/// innermost samples; that of a shorter one would cover samples beyond the densely sampled centre.
const MOST_PERIODS: f64 = 64.0;
/// Largest window length: more voxels change nothing that a scan could resolve.
const MOST_VOXELS: usize = 1 << 16;
/// Number of samples of the spectrum per period of the window's length; cubics interpolate between them.
const STEPS: f64 = 32.0;
/// Largest distance of the nearest sample from k = 0; beyond it, the mean of an object is unknown. The unit is the
/// Cartesian sample distance 1/n, or the mean distance of samples if too few samples fill k-space.
const NEAREST: f64 = 2.0;

/// Largest density weight after scaling. The volume of k-space is 1: with a larger weight, one sample would outweigh
/// all others.
pub(crate) const LARGEST_WEIGHT: f64 = 1e6;

/// Returns the window for `n` voxels and |k| up to `reach`.
fn window(n: usize, reach: f64) -> Result<SpectralWindow> {
    let longest = (MOST_PERIODS / reach.max(f64::MIN_POSITIVE)).max(1.0);
    let len = n.min(MOST_VOXELS).min(longest as usize);
    let middle = 0.5 * (len as f64 - 1.0);
    // The main lobe of this window ends at the reach of k.
    let beta = PI * reach * len as f64;
    let peak = bessel_i0(beta);
    let value = |j: usize| {
        let x = (j as f64 - middle) / (0.5 * len as f64);
        bessel_i0(beta * (1.0 - x * x).sqrt()) / peak
    };
    // The window is symmetric.
    let mut h = try_collect(len, SCALE, (0..len).map(|j| if 2 * j < len { value(j) } else { 0.0 }))?;
    for j in len.div_ceil(2)..len {
        h[j] = h[len - 1 - j];
    }
    let energy: f64 = h.iter().map(|h| h * h).sum();
    let steps = STEPS * len as f64;
    let points = (reach * steps).ceil() as usize + 4;
    // Along an axis of one voxel k does not matter.
    let distance_scale = if n > 1 { n as f64 } else { 0.0 };
    Ok(SpectralWindow { h, energy, steps, points, distance_scale })
}

/// Spectrum |H(k)|^2 along an axis, divided by the sum of |h(r)|^2.
struct WindowSpectrum {
    /// Values at i / `steps`, from i = -1 to beyond the reach of k.
    table: Vec<f64>,
    steps: f64,
}

impl WindowSpectrum {
    /// Computes the spectrum of a window.
    fn new(window: &SpectralWindow) -> Result<WindowSpectrum> {
        let SpectralWindow { h, energy, steps, points, .. } = window;
        let middle = window.middle();
        let values = (0..*points).step_by(LANES).flat_map(|first| {
            let frequencies = std::array::from_fn(|i| ((first + i) as f64 - 1.0) / steps);
            cosine_sums(h, middle, frequencies).map(|sum| sum * sum / energy)
        });
        Ok(WindowSpectrum { table: try_collect(*points, SCALE, values)?, steps: *steps })
    }

    /// Returns the spectrum at `k`, interpolated.
    #[inline(always)]
    fn at(&self, k: f64) -> f64 {
        let x = k.abs() * self.steps;
        let i = (x as usize).min(self.table.len() - 4);
        let t = x - i as f64;
        let [a, b, c, d]: [f64; 4] = self.table[i..i + 4].try_into().expect("four neighbours");
        // Lagrange's cubic through four neighbours at -1, 0, 1 and 2; the factors are the distances from the others.
        let [to_a, to_c, to_d] = [t + 1.0, t - 1.0, t - 2.0];
        t * to_c * (d * to_a - a * to_d) * (1.0 / 6.0) + to_a * to_d * (b * to_c - c * t) * 0.5
    }
}

/// Number of values of the spectrum that are computed at once, in vectors.
const LANES: usize = 8;

/// Returns sum_j h(j) cos(2 pi k (j - middle)) for several k.
///
/// A scan whose trajectory changes with every frame needs one spectrum per frame. For speed, cosines are therefore
/// computed by cos((j+1) x) = 2 cos(x) cos(j x) - cos((j-1) x). The recurrence restarts before rounding errors
/// accumulate.
fn cosine_sums(h: &[f64], middle: f64, k: [f64; LANES]) -> [f64; LANES] {
    const BLOCK: usize = 256;
    let cosines = |j: f64| k.map(|k| (TAU * k * (j - middle)).cos());
    let twice = k.map(|k| 2.0 * (TAU * k).cos());
    let mut sums = [0.0; LANES];
    for (block, h) in h.chunks(BLOCK).enumerate() {
        let first = (block * BLOCK) as f64;
        let (mut previous, mut current) = (cosines(first - 1.0), cosines(first));
        for h in h {
            for i in 0..LANES {
                sums[i] += h * current[i];
                (previous[i], current[i]) = (current[i], twice[i] * current[i] - previous[i]);
            }
        }
    }
    sums
}

/// Computes the sums over samples on the host.
fn sums_on_host<T: Real>(
    workers: &dyn Workers,
    k: &[&[T]],
    windows: &[SpectralWindow],
    largest: f64,
    weight: impl Fn(usize) -> f64 + Sync,
) -> Result<SpectralSums> {
    let axes = windows.iter().map(WindowSpectrum::new).collect::<Result<Vec<_>>>()?;
    let sum_and_nearest = |chunk: Range<usize>| {
        let (mut sum, mut nearest) = (0.0, f64::INFINITY);
        for m in chunk {
            // Relative to the largest weight, so that no sum overflows.
            let w = weight(m) / largest;
            if !(w > 0.0) {
                continue;
            }
            sum += axes.iter().zip(k).fold(w, |product, (axis, k)| product * axis.at(k[m].wide()));
            let distance = |(k, window): (&&[T], &SpectralWindow)| (k[m].wide() * window.distance_scale).powi(2);
            nearest = k.iter().zip(windows).map(distance).sum::<f64>().min(nearest);
        }
        (sum, nearest)
    };
    let merge = |all: (f64, f64), one: (f64, f64)| (all.0 + one.0, all.1.min(one.1));
    let (sum, nearest) = fold(workers, k[0].len(), (0.0, f64::INFINITY), sum_and_nearest, merge);
    Ok(SpectralSums { sum, nearest })
}

/// Returns the factor of density weights with which gridding retains the scale of an object: see the head of this file.
///
/// # Errors
/// - `InvalidArgument` if no sample of positive weight is near the centre of k-space, or if a weight far from the
///   centre would outweigh all of k-space.
/// - `OutOfHostMemory`.
pub(crate) fn gridding_scale<T: Real>(
    workers: &dyn Workers,
    k: &[&[T]],
    dims: &[usize],
    weight: impl Fn(usize) -> f64 + Sync,
) -> Result<f64> {
    let reaches: Vec<f64> = k.iter().map(|k| reach(min_max(workers, k))).collect();
    let windows = windows(&reaches, dims)?;
    // fold ignores NaN. Such weights are skipped, as they are not above 0.
    let largest = fold(workers, k[0].len(), 0.0, |chunk| chunk.map(&weight).fold(0.0, f64::max), f64::max);
    let sums = sums_on_host(workers, k, &windows, largest, weight)?;
    scale_from(&reaches, dims, k[0].len(), largest, sums)
}

/// Computes [`gridding_scale`] of valid coordinates and weights in the memory of a backend, each with its largest
/// magnitude; `None` if the backend is not faster than a loop on the host.
///
/// # Errors
/// As [`gridding_scale`].
pub(crate) fn gridding_scale_on<'a, T: Real, B: Backend<T>>(
    backend: &B,
    k: &[(Reals<'a, B, T>, f64)],
    (weights, largest): (Reals<'a, B, T>, f64),
    dims: &[usize],
) -> Result<Option<f64>> {
    let (k, reaches): (Vec<_>, Vec<_>) = k.iter().copied().unzip();
    let windows = windows(&reaches, dims)?;
    let Some(sums) = backend.spectral_sums(&k, weights, largest, &windows) else { return Ok(None) };
    scale_from(&reaches, dims, weights.len(), largest, sums?).map(Some)
}

/// Returns the windows of all axes.
fn windows(reaches: &[f64], dims: &[usize]) -> Result<Vec<SpectralWindow>> {
    reaches.iter().zip(dims).map(|(&reach, &n)| window(n, reach)).collect()
}

/// Returns the scale that follows from the sums, or an error if they do not determine it.
fn scale_from(reaches: &[f64], dims: &[usize], samples: usize, largest: f64, sums: SpectralSums) -> Result<f64> {
    let SpectralSums { sum, nearest } = sums;
    let nearest = nearest.sqrt();
    // Number of cells of a Cartesian grid within the reach of k, and number of cells per sample.
    let axes = reaches.iter().zip(dims).filter(|(_, &n)| n > 1);
    let resolved: Vec<f64> = axes.map(|(reach, &n)| (2.0 * reach * n as f64).max(1.0)).collect();
    let share = resolved.iter().product::<f64>() / samples as f64;
    let allowed = NEAREST * share.powf(1.0 / resolved.len().max(1) as f64).max(1.0);
    if !(nearest <= allowed) {
        bail!(
            InvalidArgument,
            "no sample with a positive density weight is near the centre of k-space (the nearest is {nearest:.1} \
             sample distances 1/n away, at most {allowed:.1} are allowed), so that the scale of the image is \
             unknown: measure the centre, or reconstruct iteratively, which needs no scale"
        );
    }
    if !(1.0 / sum <= LARGEST_WEIGHT) {
        bail!(
            InvalidArgument,
            "the largest density weight corresponds to {:.1e} times the volume of k-space, relative to the weights \
             near the centre: correct the weights",
            1.0 / sum
        );
    }
    let scale = 1.0 / sum / largest;
    if !scale.is_finite() {
        bail!(
            InvalidArgument,
            "the largest density weight is {largest:e}, so small that its inverse overflows: scale the weights up"
        );
    }
    Ok(scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;
    use crate::base::workers::SerialExecutor;
    use crate::simulation::trajectory::{SpokeOrder, Trajectory};

    fn scale(trajectory: &Trajectory, dims: &[usize], weight: f64) -> f64 {
        gridding_scale(&SerialExecutor, &trajectory.axes(), dims, |_| weight).unwrap()
    }

    /// Checks that every sample of a whole Cartesian grid represents 1/N of k-space, for any size.
    #[test]
    fn a_cartesian_grid_has_the_scale_of_the_inverse_dft() {
        for dims in [&[1usize, 1][..], &[1, 16], &[2, 2], &[3, 3], &[5, 5], &[64, 64, 1], &[7, 2, 300], &[40, 33]] {
            let voxels: usize = dims.iter().product();
            let product = scale(&Trajectory::cartesian(dims).unwrap(), dims, 1.0) * voxels as f64;
            assert!((product - 1.0).abs() < 1e-5, "{dims:?}: {product}");
        }
    }

    #[test]
    fn the_interpolated_spectrum_has_the_energy_of_the_window() {
        for (n, reach) in [(1, 0.5), (2, 0.5), (8, 0.0), (9, 0.3), (64, 0.5), (300, 0.0625)] {
            let coarse = WindowSpectrum::new(&window(n, reach).unwrap()).unwrap();
            // Parseval: the mean of |H|^2 over a whole period is the sum of |h|^2, minus the part beyond the reach.
            if reach == 0.5 {
                let points = 8 * n;
                let mean = (0..points).map(|i| coarse.at((i as f64 + 0.3) / points as f64 - 0.5)).sum::<f64>();
                assert!((mean / points as f64 - 1.0).abs() < 1e-5, "{n}");
            }
            if reach == 0.0 {
                assert!((coarse.at(0.0) - n as f64).abs() < 1e-9 * n as f64);
            }
        }
    }

    #[test]
    fn missing_centre_is_an_error() {
        let spokes = Trajectory::radial2d(100, 128, SpokeOrder::Linear).unwrap();
        let outside = |axis: usize| -> Vec<f64> {
            let far = |m: &usize| spokes.axis(0)[*m].hypot(spokes.axis(1)[*m]) > 0.05;
            (0..spokes.samples()).filter(far).map(|m| spokes.axis(axis)[m]).collect()
        };
        let annulus = [outside(0), outside(1)];
        let axes: Vec<&[f64]> = annulus.iter().map(|k| &k[..]).collect();
        let error = gridding_scale(&SerialExecutor, &axes, &[64, 64], |_| 1.0).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidArgument && error.message().contains("is 3.5 sample"), "{error}");
        for weight in [0.0, f64::NAN] {
            assert!(gridding_scale(&SerialExecutor, &spokes.axes(), &[64, 64], |_| weight).is_err());
        }
    }

    #[test]
    fn cosines_by_recurrence_are_the_cosines() {
        for len in [1, 2, 255, 256, 257, 5000] {
            let h: Vec<f64> = (0..len).map(|j| (j as f64 * 0.37).sin() + 1.1).collect();
            let middle = 0.5 * (len as f64 - 1.0);
            let k = [0.0, 1e-9, -1e-5, 1e-3, 0.03, 0.25, 0.4999, 0.5];
            for (k, sum) in k.iter().zip(cosine_sums(&h, middle, k)) {
                let cosine = |(j, h): (usize, &f64)| h * (TAU * k * (j as f64 - middle)).cos();
                let expected: f64 = h.iter().enumerate().map(cosine).sum();
                assert!((sum - expected).abs() < 1e-11 * len as f64, "{len} at {k}: {sum}, {expected}");
            }
        }
    }
}
