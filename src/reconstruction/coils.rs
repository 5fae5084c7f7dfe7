//! Coil sensitivity maps from the data, and the combination of coil images.
//!
//! Sensitivities are smooth, so they are estimated at low resolution. The centre of k-space, tapered, is gridded to a
//! small image of each coil. In each voxel, the sensitivities are the dominant eigenvector of the coils' covariance in
//! a neighbourhood (Walsh et al., Magn. Reson. Med. 43:682, 2000), with the phase of one virtual coil. The maps are
//! then interpolated to the image's grid and scaled to sum_c |S_c|^2 = 1. An image combined with them thus has the
//! magnitude of the root sum of squares.
//!
//! Limits of the estimate:
//! - Its phase is that of the virtual coil, not of the object.
//! - It is meaningless in voxels that contain only noise.
//! - It is wrong if sensitivities change faster than the central samples resolve, or if the object is larger than the
//!   field of view.
//! - If samples of the centre are missing, the region is narrowed, or the call fails.

use super::coverage::{Coverage, STRICT_REACH};
use crate::base::defaults;
use crate::base::dense::dominant_eigenvector;
use crate::base::error::{bail, checked_product, try_collect, try_vec, Result};
use crate::base::geometry::{check_finite, check_len};
use crate::base::interrupt;
use crate::base::real::{narrow, wide, Real};
use crate::base::results::check_results;
use crate::base::sizes::{product, sum, three_axes};
use crate::base::warning::{raise, WarningKind};
use num_complex::Complex;

/// Standard deviation of the Gaussian neighbourhood, in voxels of the calibration images, which have twice their
/// resolution. A wider neighbourhood smooths the sensitivities themselves; a narrower one includes more noise.
const NEIGHBOURHOOD: f64 = 0.5;
/// Signal of all coils in the calibration images, relative to its maximum, below which maps are 0. These voxels contain
/// no object, and would collect noise and aliasing.
const LEAST_SIGNAL: f64 = 0.01;
/// Number of power iterations per voxel. With signal, one eigenvalue of the covariance is much larger than the others,
/// and a few iterations suffice.
const POWER_ITERATIONS: usize = 8;

/// Name of the step in the message of an interruption.
pub(crate) const WHAT: &str = "the estimation of coil sensitivities";

/// Combination of coil images into one image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Combine {
    /// Root of the sum of squared magnitudes (Roemer et al., Magn. Reson. Med. 16:192, 1990).
    #[default]
    RootSumOfSquares,
    /// sum_c conj(S_c) x_c, with sensitivities estimated from the coil images. It retains the phase and has less noise.
    Adaptive,
}

/// Combines coil images [dims, coils] into one image [dims].
///
/// # Errors
/// `SizeMismatch` for wrong lengths, `InvalidSize` for empty images, `NotFinite` for a NaN, with its index.
pub fn combine<T: Real>(
    images: &[Complex<T>],
    dims: &[usize],
    coils: usize,
    how: Combine,
    out: &mut [Complex<T>],
) -> Result<()> {
    let voxels: usize = checked_product(dims, "the image")?;
    if voxels == 0 || coils == 0 {
        bail!(InvalidSize, "{coils} coil images of {dims:?} voxels: give at least one image and voxel");
    }
    let needed = checked_product(&[voxels, coils], "the coil images")?;
    check_len("voxels of coil images", images.len(), needed, "voxels times coils")?;
    check_len("voxels of the combined image", out.len(), voxels, "one per voxel")?;
    check_finite("coil image voxel", images)?;
    let at = |c: usize, i: usize| wide(images[c * voxels + i]);
    let mut combined = try_vec(voxels, Complex::default(), "the combined image")?;
    match how {
        Combine::RootSumOfSquares => {
            for (i, out) in combined.iter_mut().enumerate() {
                let square: f64 = (0..coils).map(|c| at(c, i).norm_sqr()).sum();
                *out = Complex::new(T::of(square.sqrt()), T::ZERO);
            }
        }
        Combine::Adaptive => {
            let low = low_dims(dims, &[defaults::CALIBRATION; 3]);
            let low_voxels = low.iter().product::<usize>();
            let mut small = try_vec(low_voxels * coils, Complex::default(), "calibration images")?;
            for (image, small) in images.chunks_exact(voxels).zip(small.chunks_exact_mut(low_voxels)) {
                block_means(image, dims, &low, small)?;
            }
            let maps = walsh(&small, &low, coils)?;
            let mut maps = interpolate(&maps, &low, dims, coils)?;
            normalise(&mut maps, voxels);
            for (i, out) in combined.iter_mut().enumerate() {
                *out = narrow((0..coils).map(|c| maps[c * voxels + i].conj() * at(c, i)).sum());
            }
        }
    }
    check_results("voxel of the combined image", &combined)?;
    out.copy_from_slice(&combined);
    Ok(())
}

/// Returns the bytes that [`combine`] allocates.
pub(crate) fn combine_bytes<T: Real>(dims: &[usize], coils: usize, how: Combine) -> usize {
    let combined = product(&[product(dims), size_of::<Complex<T>>()]);
    let low = product(&low_dims(dims, &[defaults::CALIBRATION; 3]));
    match how {
        Combine::RootSumOfSquares => combined,
        // Images of low resolution, their maps, and the maps of the image, all in double precision.
        Combine::Adaptive => {
            let maps = sum(&[low, low, product(dims)]);
            sum(&[combined, product(&[maps, coils, size_of::<Complex<f64>>()])])
        }
    }
}

/// Returns a sample's distance from the centre of k-space, in units of the calibration region: 1 on the ellipsoid with
/// the width of the region along each axis.
pub(crate) fn radius<T: Real>(k: &[&[T]], dims: &[usize], widths: &[usize], m: usize) -> f64 {
    let k = k.iter().zip(dims).zip(widths);
    k.map(|((k, &n), &width)| (k[m].wide() * n as f64 * 2.0 / width as f64).powi(2)).sum::<f64>().sqrt()
}

/// Returns the largest width of the central region that maps may be estimated from: the requested width, or the default
/// if that is 0. The default is wider in a plane, where maps cost little.
pub(crate) fn widest_calibration(requested: usize, dims: &[usize]) -> usize {
    match (requested, dims.iter().filter(|&&n| n > 1).count()) {
        (0, ..=2) => defaults::CALIBRATION_IN_A_PLANE,
        (0, _) => defaults::CALIBRATION,
        _ => requested,
    }
}

/// Smallest width of the central region that coil maps are estimated from.
///
/// Measured on an in-vivo brain with 8 coils. The image error was 6.3 % with maps from the central 24 samples, 6.9 %
/// from 12, 9.5 % from 8, 14 % from 6, and 23 % from 4.
const LEAST_CALIBRATION: usize = 8;

/// Remedy in messages about calibration regions that are too small.
const NO_CALIBRATION: &str = "acquire calibration lines and estimate the maps from them (in ISMRMRD files and \
                              Gadgetron: acquisitions flagged as parallel calibration), or give coil maps";

/// Returns the width of the central region along each axis from which coil maps are estimated.
///
/// It is the requested width, or, if that is 0, the sampled width up to [`widest_calibration`]. Along an axis with a
/// smaller sampled extent, it is that extent: calibration lines of a Cartesian scan are few, and each is long. The
/// region is narrowed if gaps between samples further out are wider than 1/FOV. If less than the requested width or
/// [`defaults::CALIBRATION`] remains, there is a warning.
///
/// # Errors
/// `InvalidArgument` if samples are missing from the central [`LEAST_CALIBRATION`] samples.
pub(crate) fn complete_calibration<T: Real>(k: &[&[T]], dims: &[usize], requested: usize) -> Result<Vec<usize>> {
    let widest = widest_calibration(requested, dims);
    let expected = if requested == 0 { defaults::CALIBRATION } else { requested };
    let coverage = Coverage::new(k, dims, expected, WHAT)?;
    for (axis, (&extent, &n)) in coverage.extent.iter().zip(dims).enumerate() {
        let least = LEAST_CALIBRATION.min(expected).min(n);
        if extent < least as f64 - 0.5 {
            bail!(
                InvalidArgument,
                "the samples on axis {axis} extend over {extent:.1} times 1/FOV, but coil maps need the central \
                 {least}: check the units of k (cycles per voxel), or {NO_CALIBRATION}"
            );
        }
    }
    let within = |coverage: &Coverage, width: usize| {
        let of_axis = coverage.extent.iter().map(|&extent| width.min(extent as usize).max(1));
        try_collect(dims.len(), "the width of the calibration region", of_axis)
    };
    let Some(complete) = coverage.complete else {
        if widest == expected {
            return within(&coverage, expected);
        }
        // Beyond the expected width, gaps are not tolerated at all.
        let wide = Coverage::within(k, dims, widest, STRICT_REACH, WHAT)?;
        return within(&wide, wide.complete.unwrap_or(widest).max(expected));
    };
    let largest = coverage.extent.iter().fold(0.0, |a: f64, &b| a.max(b)) as usize;
    if complete < LEAST_CALIBRATION.min(expected).min(largest) {
        bail!(
            InvalidArgument,
            "the centre of k-space has gaps wider than 1/FOV: only the central {complete} samples have no gaps, but \
             coil maps need {LEAST_CALIBRATION}, and maps from more would be aliased: {NO_CALIBRATION}"
        );
    }
    raise(
        WarningKind::Calibration,
        format!(
            "coil maps are estimated from the central {complete} samples instead of {expected}, because gaps between \
             samples further out are wider than 1/FOV: measure more shots, or {NO_CALIBRATION}"
        ),
    );
    within(&coverage, complete)
}

/// Returns the next narrower calibration region, or `None` if this one is the narrowest.
pub(crate) fn narrower_calibration(widths: &[usize]) -> Option<Vec<usize>> {
    let narrower: Vec<usize> = widths.iter().map(|&w| (w * 3 / 4).max(w.min(LEAST_CALIBRATION))).collect();
    (narrower != widths).then_some(narrower)
}

/// Warns that maps are estimated from a narrower calibration region because images of the whole region are aliased.
/// `aliased` is the energy of the aliases of a point, relative to the point's energy.
pub(crate) fn warn_of_aliasing(widths: &[usize], aliased: f64) {
    let width = widths.iter().copied().max().unwrap_or(0);
    raise(
        WarningKind::Calibration,
        format!(
            "coil maps are estimated from the central {width} samples, because the scan is undersampled further out \
             and maps would be aliased (the aliases of a point have {:.0} % of its energy): measure more shots, or \
             {NO_CALIBRATION}",
            100.0 * aliased
        ),
    );
}

/// Warns that aliases fill the corners of the field of view.
pub(crate) fn warn_of_corners() {
    raise(
        WarningKind::Calibration,
        format!(
            "coil maps are 0 in the corners of the field of view, because gaps between samples are wider than 1/FOV \
             and aliases of the object appear there: measure more shots, oversample the readouts, or {NO_CALIBRATION}"
        ),
    );
}

/// Returns the number of samples in the central region from which maps are estimated.
pub(crate) fn central_samples<T: Real>(k: &[&[T]], dims: &[usize], calibration: usize) -> usize {
    let widths = [widest_calibration(calibration, dims); 3];
    (0..k.first().map_or(0, |k| k.len())).filter(|&m| radius(k, dims, &widths, m) < 1.0).count()
}

/// Returns the size of calibration images: twice the resolution of the calibration region, but no larger than the
/// image.
pub(crate) fn low_dims(dims: &[usize], widths: &[usize]) -> Vec<usize> {
    dims.iter().zip(widths).map(|(&n, &width)| n.min(2 * width)).collect()
}

/// Adds the block means of an image to `sums`, one per voxel of the smaller grid `low`.
fn block_means<T: Real>(image: &[Complex<T>], dims: &[usize], low: &[usize], sums: &mut [Complex<f64>]) -> Result<()> {
    let mut counts = try_vec(sums.len(), 0.0, "calibration images")?;
    for (i, z) in image.iter().enumerate() {
        let (mut rest, mut at, mut stride) = (i, 0, 1);
        for (&n, &l) in dims.iter().zip(low) {
            at += (rest % n) * l / n * stride;
            rest /= n;
            stride *= l;
        }
        sums[at] += wide(*z);
        counts[at] += 1.0;
    }
    sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum /= count);
    Ok(())
}

/// Returns the dominant eigenvector of the coils' covariance around each voxel, [voxels, coils].
///
/// The power iteration runs in all voxels at once: with x = sum_c conj(S_c) x_c, the covariance times S is the
/// neighbourhood's mean of x_c conj(x). It starts from the virtual coil with the most energy over the whole image, and
/// thus has the phase of that coil.
pub(crate) fn walsh(images: &[Complex<f64>], dims: &[usize], coils: usize) -> Result<Vec<Complex<f64>>> {
    let voxels: usize = dims.iter().product();
    let what = "the covariance of coils";
    let mut total = try_vec(checked_product(&[coils, coils], what)?, Complex::default(), what)?;
    for i in 0..voxels {
        add_outer(&mut total, coils, |c| images[c * voxels + i]);
    }
    let virtual_coil = dominant_eigenvector(&total, coils, what)?;
    let maps = virtual_coil.iter().flat_map(|&v| std::iter::repeat_n(v, voxels));
    let mut maps = try_collect(checked_product(&[coils, voxels], "the coil maps")?, "the coil maps", maps)?;
    let mut combined = try_vec(voxels, Complex::default(), "the coil maps")?;
    for _ in 0..POWER_ITERATIONS {
        combined.fill(Complex::default());
        for (image, map) in images.chunks_exact(voxels).zip(maps.chunks_exact(voxels)) {
            for ((x, image), map) in combined.iter_mut().zip(image).zip(map) {
                *x += map.conj() * image;
            }
        }
        for (image, map) in images.chunks_exact(voxels).zip(maps.chunks_exact_mut(voxels)) {
            for ((map, image), x) in map.iter_mut().zip(image).zip(&combined) {
                *map = image * x.conj();
            }
            interrupt::check(WHAT)?;
            smooth(map, dims, NEIGHBOURHOOD)?;
        }
        normalise(&mut maps, voxels);
    }
    Ok(maps)
}

/// Sets maps [voxels, coils] of an image of `dims` voxels to 0 in voxels with little signal in the calibration images
/// [low, coils]: see [`LEAST_SIGNAL`].
pub(crate) fn clear_outside_object(
    maps: &mut [Complex<f64>],
    dims: &[usize],
    images: &[Complex<f64>],
    low: &[usize],
) -> Result<()> {
    let what = "the object's support";
    let voxels = low.iter().product::<usize>();
    let mut signal = try_vec(voxels, Complex::default(), what)?;
    for image in images.chunks_exact(voxels) {
        signal.iter_mut().zip(image).for_each(|(sum, z)| *sum += z.norm_sqr());
    }
    smooth(&mut signal, low, NEIGHBOURHOOD)?;
    signal.iter_mut().for_each(|sum| *sum = sum.re.sqrt().into());
    let least = LEAST_SIGNAL * signal.iter().fold(0.0, |most: f64, z| most.max(z.re));
    let signal = interpolate(&signal, low, dims, 1)?;
    for map in maps.chunks_exact_mut(signal.len()) {
        map.iter_mut().zip(&signal).filter(|(_, signal)| signal.re < least).for_each(|(s, _)| *s = Complex::default());
    }
    Ok(())
}

/// Sets maps [voxels, coils] of an image of `dims` voxels to 0 outside the ellipse that touches the edges of the image
/// along `axes`. Does nothing if there are no axes.
pub(crate) fn clear_outside_ellipse(maps: &mut [Complex<f64>], dims: &[usize], axes: [bool; 3]) {
    if axes == [false; 3] {
        return;
    }
    let voxels: usize = dims.iter().product();
    for i in 0..voxels {
        let (mut rest, mut square) = (i, 0.0);
        for (&n, is_of_ellipse) in dims.iter().zip(axes) {
            let from_middle = (rest % n) as f64 - (n / 2) as f64;
            rest /= n;
            square += if is_of_ellipse { (2.0 * from_middle / n as f64).powi(2) } else { 0.0 };
        }
        if square > 1.0 {
            maps[i..].iter_mut().step_by(voxels).for_each(|s| *s = Complex::default());
        }
    }
}

/// Convolves an image with a Gaussian of standard deviation `sigma` voxels.
fn smooth(image: &mut [Complex<f64>], dims: &[usize], sigma: f64) -> Result<()> {
    let reach = (3.0 * sigma).ceil() as usize;
    let kernel: Vec<f64> = (0..=reach).map(|i| (-0.5 * (i as f64 / sigma).powi(2)).exp()).collect();
    let mut stride = 1;
    for &n in dims.iter().filter(|&&n| n > 1) {
        let mut line = try_vec(n, Complex::default(), "a line of the coil maps")?;
        for plane in image.chunks_exact_mut(n * stride) {
            for start in 0..stride {
                line.iter_mut().zip(plane[start..].iter().step_by(stride)).for_each(|(z, own)| *z = *own);
                for (i, out) in plane[start..].iter_mut().step_by(stride).enumerate() {
                    *out = line[i] * kernel[0];
                    for (d, k) in kernel.iter().enumerate().skip(1) {
                        if i >= d {
                            *out += line[i - d] * k;
                        }
                        if i + d < n {
                            *out += line[i + d] * k;
                        }
                    }
                }
            }
        }
        stride *= n;
    }
    Ok(())
}

/// Adds v v^H to a matrix of coils times coils, in column order.
fn add_outer(matrix: &mut [Complex<f64>], coils: usize, v: impl Fn(usize) -> Complex<f64>) {
    for a in 0..coils {
        let va = v(a);
        for b in 0..coils {
            matrix[b * coils + a] += va * v(b).conj();
        }
    }
}

/// Interpolates maps [low, coils] linearly to [dims, coils]. Both grids cover the same field of view.
pub(crate) fn interpolate(
    maps: &[Complex<f64>],
    low: &[usize],
    dims: &[usize],
    coils: usize,
) -> Result<Vec<Complex<f64>>> {
    let n = three_axes(dims);
    let l = three_axes(low);
    // Lower and upper neighbour of a voxel along an axis, and the weight of the upper one.
    let place = |a: usize, i: usize| {
        let r = (i as f64 - (n[a] / 2) as f64) * l[a] as f64 / n[a] as f64 + (l[a] / 2) as f64;
        let r = r.clamp(0.0, (l[a] - 1) as f64);
        let lower = r.floor() as usize;
        (lower, (lower + 1).min(l[a] - 1), r - r.floor())
    };
    let along = |a: usize| try_collect(n[a], "the coil maps", (0..n[a]).map(|i| place(a, i)));
    let places = [along(0)?, along(1)?, along(2)?];
    let voxels: usize = n.iter().product();
    let mut out = try_vec(voxels * coils, Complex::default(), "the coil maps")?;
    for (coil, out) in maps.chunks_exact(l.iter().product()).zip(out.chunks_exact_mut(voxels)) {
        interrupt::check(WHAT)?;
        for (i, row) in out.chunks_exact_mut(n[0]).enumerate() {
            // Neighbouring rows of low resolution, with their weights.
            let (y, z) = (places[1][i % n[1]], places[2][i / n[1]]);
            let at_z = |z: usize, weight: f64| [(y.0, z, weight * (1.0 - y.2)), (y.1, z, weight * y.2)];
            let rows = [at_z(z.0, 1.0 - z.2), at_z(z.1, z.2)];
            for &(y, z, weight) in rows.as_flattened().iter().filter(|row| row.2 > 0.0) {
                let low = &coil[(z * l[1] + y) * l[0]..][..l[0]];
                for (out, &(lower, upper, w)) in row.iter_mut().zip(&places[0]) {
                    *out += (low[lower] * (1.0 - w) + low[upper] * w) * weight;
                }
            }
        }
    }
    Ok(out)
}

/// Scales maps to sum_c |S_c|^2 = 1 in each voxel.
pub(crate) fn normalise(maps: &mut [Complex<f64>], voxels: usize) {
    for i in 0..voxels {
        let square: f64 = maps[i..].iter().step_by(voxels).map(|z| z.norm_sqr()).sum();
        if square > 0.0 {
            let scale = 1.0 / square.sqrt();
            maps[i..].iter_mut().step_by(voxels).for_each(|z| *z *= scale);
        }
    }
}
