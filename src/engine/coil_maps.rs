//! Estimation of coil sensitivities from the data of a plan. A small plan reconstructs calibration images, from which
//! reconstruction/coils.rs computes maps.

use super::encoding::Encoding;
use super::interface::Engine;
use super::transform_params::TransformParams;
use crate::backend::Backend;
use crate::base::defaults;
use crate::base::error::{bail, checked_product, try_collect, try_vec, ErrorKind, Result};
use crate::base::geometry::Geometry;
use crate::base::options::{Normal, Options};
use crate::base::real::{narrow, wide, Real};
use crate::base::scan_size::ScanSize;
use crate::base::sizes::{product, sum, StepBytes};
use crate::reconstruction::coils::{
    central_samples, clear_outside_ellipse, clear_outside_object, complete_calibration, interpolate, low_dims,
    narrower_calibration, normalise, radius, walsh, warn_of_aliasing, warn_of_corners, widest_calibration,
};
use crate::reconstruction::coverage;
use crate::reconstruction::density::{self, Density, Weighting};
use num_complex::Complex;

/// Tolerance of the calibration images.
const CALIBRATION_TOLERANCE: f64 = 1e-4;
/// Radius of the main lobe of the taper's point spread function, in voxels of the calibration images.
const LOBE: f64 = 8.0;
/// Maximum distance of a sample from its point of a Cartesian grid, in units of 1/FOV.
const MAX_GRID_OFFSET: f64 = 1e-3;
/// Distance in fields of view within which aliases count as near. They lie on the object and cannot be removed.
const NEAR_DISTANCE: f64 = 0.9;
/// Energy of near aliases, relative to that of the main lobe, above which the calibration region is narrowed.
///
/// | scan | energy | error of a phantom's image with maps from 24 samples, from the central 8, with the true maps |
/// | --- | --- | --- |
/// | spirals with gaps of 1.33/FOV | 1.7 | 30 %, 15 %, 14 % |
/// | spirals with gaps of 1.14/FOV | 0.6 | 17 %, 10 %, 10 % |
///
/// 12 spokes of an in-vivo brain have 0.26, and maps from fewer samples make its image worse.
const MAX_NEAR_ENERGY: f64 = 0.4;
/// Energy of near aliases, relative to that of the main lobe, at which narrowing stops.
const SUFFICIENT_NEAR_ENERGY: f64 = 0.02;
/// Distance in fields of view within which other aliases count as far. They reach from the object into the corners of
/// the field of view.
const FAR_DISTANCE: f64 = 1.1;
/// Distance in fields of view along one axis below which aliases count. A complete Cartesian scan has copies at 1.
const MAX_AXIS_DISTANCE: f64 = 0.9;
/// Energy of far aliases, relative to that of the main lobe, above which maps are 0 outside the ellipse that touches
/// the edges of the field of view. Spokes or spirals with gaps of 1/FOV have 1. The error of a phantom's image is then
/// 18 % with these corners, 7.8 % without, and 8.4 % with the true maps. Gaps of 0.9/FOV have 0.02.
const MAX_FAR_ENERGY: f64 = 0.25;
/// Fraction of the main lobe's radius that contains nearly all of its energy. An alias at a distance of 1 extends
/// inwards by this fraction.
const LOBE_CORE: f64 = 0.6;
/// Energy of aliases nearer than this, relative to that of the main lobe, above which there is a warning. Aliases of
/// samples at most 1/FOV apart lie further out: such samples resolve the ellipse, and the corners are outside the field
/// of view.
const MAX_INNER_ENERGY: f64 = 0.1;
/// Fraction of the energy of all aliases above which an axis belongs to the ellipse. A stack of stars has two such
/// axes.
const MIN_AXIS_FRACTION: f64 = 0.1;

/// Returns the options of the small plan, which do not depend on those of the scan.
fn small_plan_options() -> Options {
    Options { tolerance: CALIBRATION_TOLERANCE, normal: Normal::Transforms, ..Options::default() }
}

/// Estimates the sensitivities of `coils` coils from k-space data [samples, coils, frames] on an encoding's trajectory.
pub(crate) fn estimate<T: Real, B: Backend<T>>(
    encoding: &Encoding<T, B>,
    coils: usize,
    kspace: &[Complex<T>],
    frames: usize,
    calibration: usize,
) -> Result<Vec<Complex<T>>> {
    if encoding.is_voxel_list {
        bail!(
            Unsupported,
            "coil sensitivities need a grid of voxels, and this plan has a list: create a plan without the list"
        );
    }
    let samples = encoding.samples;
    let dims = &encoding.dims;
    let widest = checked_width(dims, calibration)?;
    let all = encoding.trajectory.axes(encoding.b())?;
    if central_samples(&all, dims, calibration) == 0 {
        bail!(
            InvalidArgument,
            "no sample lies within the central {widest} samples of k-space: ask for a wider calibration region, \
             or set coil maps"
        );
    }
    let mut widths = complete_calibration(&all, dims, calibration)?;
    let mut centre = CentralSamples::new(encoding, &widths)?;
    let aliases = centre.aliases(encoding, &widths)?;
    if aliases.are_near() {
        while let Some(narrower) = narrower_calibration(&widths) {
            widths = narrower;
            centre = CentralSamples::new(encoding, &widths)?;
            if centre.aliases(encoding, &widths)?.near <= SUFFICIENT_NEAR_ENERGY {
                break;
            }
        }
        warn_of_aliasing(&widths, aliases.near);
    }
    let CentralSamples { low, inside, k, weights, .. } = centre;
    let k: Vec<&[T]> = k.iter().map(|k| &k[..]).collect();
    let mean = |i: usize| {
        let sum: Complex<f64> = (0..frames).map(|f| wide(kspace[f * samples * coils + i])).sum();
        narrow(sum / frames as f64)
    };
    let data = (0..coils).flat_map(|c| inside.iter().map(move |&m| c * samples + m)).map(mean);
    let data: Vec<Complex<T>> =
        try_collect(checked_product(&[coils, inside.len()], "the calibration data")?, "the calibration data", data)?;

    let geometry = Geometry::new(&low, &k).weights(&weights).coils(coils);
    let field = low_field(encoding, &low)?;
    let times = match &encoding.trajectory.times {
        Some(times) => try_collect(inside.len(), "the calibration samples", inside.iter().map(|&m| times[m]))?,
        None => Vec::new(),
    };
    // Off-resonance also changes the phase in the centre of k-space, more at later times. Decay is ignored.
    let mapped = field.as_ref().map(|field| geometry.clone().field_map(field, &times));
    let small = match mapped.map(|geometry| small_plan(encoding, &geometry)) {
        Some(Err(e)) if e.kind() == ErrorKind::Unsupported => {
            log::warn!("coil sensitivities are estimated without the field map: {e}");
            small_plan(encoding, &geometry)?
        }
        Some(plan) => plan?,
        None => small_plan(encoding, &geometry)?,
    };
    let mut images = try_vec(small.voxels * coils, Complex::default(), "calibration images")?;
    small.adjoint(Weighting::Given, (&data).into(), (&mut images).into())?;

    let images = try_collect(images.len(), "calibration images", images.iter().map(|&z| wide(z)))?;
    let low_maps = walsh(&images, &low, coils)?;
    let mut maps = interpolate(&low_maps, &low, dims, coils)?;
    normalise(&mut maps, dims.iter().product());
    clear_outside_object(&mut maps, dims, &images, &low)?;
    let ellipse = aliases.axes_of_ellipse();
    clear_outside_ellipse(&mut maps, dims, ellipse);
    if ellipse != [false; 3] && aliases.inner > MAX_INNER_ENERGY && !aliases.are_near() {
        warn_of_corners();
    }
    try_collect(maps.len(), "the coil maps", maps.iter().map(|&z| narrow(z)))
}

/// Samples in the centre of k-space, from which calibration images are reconstructed.
struct CentralSamples<T: Real> {
    /// Size of the calibration images.
    low: Vec<usize>,
    /// Indices of the samples.
    inside: Vec<usize>,
    /// Coordinates in cycles per voxel of the calibration images.
    k: Vec<Vec<T>>,
    /// Taper of each sample. It falls to 0 at the edge, to avoid ringing in the maps from truncation of k-space.
    taper: Vec<f64>,
    /// Density weights times the taper. The density weights are those of the scan if it has some.
    weights: Vec<T>,
}

impl<T: Real> CentralSamples<T> {
    /// Selects the samples within the ellipsoid of these widths.
    fn new<B: Backend<T>>(encoding: &Encoding<T, B>, widths: &[usize]) -> Result<Self> {
        const WHAT: &str = "the calibration samples";
        let (all, dims) = (encoding.trajectory.axes(encoding.b())?, &encoding.dims);
        let low = low_dims(dims, widths);
        let radius = |m: usize| radius(&all, dims, widths, m);
        let is_inside = |&m: &usize| radius(m) < 1.0;
        let count = (0..encoding.samples).filter(is_inside).count();
        let inside = try_collect(count, WHAT, (0..encoding.samples).filter(is_inside))?;
        let zoomed = |a: usize| {
            let zoom = dims[a] as f64 / low[a] as f64;
            let k = inside.iter().map(|&m| T::coordinate(all[a][m].wide() * zoom));
            try_collect(inside.len(), WHAT, k)
        };
        let k = (0..dims.len()).map(zoomed).collect::<Result<Vec<_>>>()?;
        let mut centre = CentralSamples { low, inside, k, taper: Vec::new(), weights: Vec::new() };
        let taper = centre.inside.iter().map(|&m| (0.5 * std::f64::consts::PI * radius(m)).cos().powi(2));
        centre.taper = try_collect(count, WHAT, taper)?;
        centre.weights = match encoding.host_weights()? {
            Some(w) => centre.tapered(centre.inside.iter().map(|&m| w[m]))?,
            None => centre.density(encoding, widths)?,
        };
        Ok(centre)
    }

    /// Multiplies weights by the taper.
    fn tapered(&self, weights: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>> {
        let tapered = weights.zip(&self.taper).map(|(w, taper)| T::of(w.wide() * taper));
        try_collect(self.inside.len(), "the calibration samples", tapered)
    }

    /// Computes density weights times the taper.
    fn density<B: Backend<T>>(&self, encoding: &Encoding<T, B>, widths: &[usize]) -> Result<Vec<T>> {
        if let Some(weights) = self.weights_of_grid(encoding, widths)? {
            return self.tapered(weights.into_iter());
        }
        let k: Vec<&[T]> = self.k.iter().map(|k| &k[..]).collect();
        let weights = density::weights(encoding.b(), &k, &self.low, Density::default(), None)?;
        self.tapered(weights.into_iter())
    }

    /// Returns the weights of samples on the Cartesian grid of the image, as in calibration lines: 1/n for a point that
    /// was measured n times. Returns `None` if a sample is not on the grid. Weights of Pipe and Menon would grow at the
    /// edge.
    fn weights_of_grid<B: Backend<T>>(&self, encoding: &Encoding<T, B>, widths: &[usize]) -> Result<Option<Vec<T>>> {
        const WHAT: &str = "the weights of calibration lines";
        // Grid points on both sides of 0, including 0.
        let points = |a: usize| 2 * (widths[a] / 2 + 1) + 1;
        let all = encoding.trajectory.axes(encoding.b())?;
        let step = |a: usize, m: usize| all[a][m].wide() * encoding.dims[a] as f64;
        let axes = 0..self.low.len();
        let is_of_grid = |&m: &usize| axes.clone().all(|a| (step(a, m) - step(a, m).round()).abs() <= MAX_GRID_OFFSET);
        if !self.inside.iter().all(is_of_grid) {
            return Ok(None);
        }
        let point = |m: usize| {
            axes.clone()
                .rev()
                .fold(0, |at, a| at * points(a) + (step(a, m).round() + (widths[a] / 2 + 1) as f64) as usize)
        };
        let all = product(&try_collect(self.low.len(), WHAT, axes.clone().map(points))?);
        let mut counts = try_vec(all, 0u32, WHAT)?;
        self.inside.iter().for_each(|&m| counts[point(m)] += 1);
        let weights = self.inside.iter().map(|&m| T::of(1.0 / f64::from(counts[point(m)])));
        try_collect(self.inside.len(), WHAT, weights).map(Some)
    }

    /// Computes the aliases of the point spread function.
    fn aliases<B: Backend<T>>(&self, encoding: &Encoding<T, B>, widths: &[usize]) -> Result<Aliases> {
        const WHAT: &str = "the point spread function of calibration images";
        // Its extent is the largest distance between two voxels.
        let dims = try_collect(self.low.len(), WHAT, self.low.iter().map(|n| 2 * n))?;
        let k: Vec<&[T]> = self.k.iter().map(|k| &k[..]).collect();
        // Aliases depend only on the sample positions. The weights of the scan may describe noise, or be equal.
        let density = match encoding.weighting.weights {
            Some(_) => self.density(encoding, widths)?,
            None => Vec::new(),
        };
        let weights = if density.is_empty() { &self.weights } else { &density };
        let plan = small_plan(encoding, &Geometry::new(&dims, &k).weights(weights))?;
        let ones = try_vec(self.inside.len(), Complex::new(T::ONE, T::ZERO), WHAT)?;
        let mut spread = try_vec(plan.voxels, Complex::default(), WHAT)?;
        plan.adjoint(Weighting::Given, (&ones).into(), (&mut spread).into())?;
        let lobe = LOBE / self.low.iter().copied().max().unwrap_or(1) as f64;
        let inner = 1.0 - LOBE_CORE * lobe;
        let along_axis = MAX_AXIS_DISTANCE.min(inner);
        let mut main = 0.0;
        let mut aliases = Aliases::default();
        for (i, z) in spread.iter().enumerate() {
            let (mut rest, mut lobe_distance, mut fields) = (i, 0.0, [0f64; 3]);
            for (&n, field) in dims.iter().zip(&mut fields) {
                let voxels = (rest % n) as f64 - (n / 2) as f64;
                rest /= n;
                *field = (2.0 * voxels / n as f64).abs();
                lobe_distance += (voxels / LOBE).powi(2);
            }
            let (energy, square) = (wide(*z).norm_sqr(), fields.iter().map(|f| f * f).sum::<f64>());
            if lobe_distance <= 1.0 {
                main += energy;
                continue;
            }
            if square >= FAR_DISTANCE * FAR_DISTANCE || fields.iter().any(|&f| f >= along_axis) {
                continue;
            }
            *(if square < NEAR_DISTANCE * NEAR_DISTANCE { &mut aliases.near } else { &mut aliases.far }) += energy;
            aliases.inner += if square < inner * inner { energy } else { 0.0 };
            aliases.along_axes.iter_mut().zip(fields).for_each(|(along, f)| *along += energy * f * f / square);
        }
        let scale = if main > 0.0 { 1.0 / main } else { 0.0 };
        Ok(Aliases {
            near: scale * aliases.near,
            far: scale * aliases.far,
            inner: scale * aliases.inner,
            along_axes: aliases.along_axes.map(|energy| scale * energy),
        })
    }
}

/// Energies of the aliases of a point, relative to the energy of its main lobe.
#[derive(Default)]
struct Aliases {
    /// Energy of aliases within [`NEAR_DISTANCE`].
    near: f64,
    /// Energy of other aliases within [`FAR_DISTANCE`].
    far: f64,
    /// Energy of near and far aliases that are nearer than the field of view by [`LOBE_CORE`].
    inner: f64,
    /// Energy of near and far aliases, split by direction.
    along_axes: [f64; 3],
}

impl Aliases {
    /// Returns whether aliases lie on the object.
    fn are_near(&self) -> bool {
        self.near > MAX_NEAR_ENERGY
    }

    /// Returns the axes of the ellipse outside of which maps are 0. With few aliases there is no ellipse.
    fn axes_of_ellipse(&self) -> [bool; 3] {
        let are_many = self.far > MAX_FAR_ENERGY || self.are_near();
        self.along_axes.map(|along| are_many && along > MIN_AXIS_FRACTION * (self.near + self.far))
    }
}

/// Creates the small plan for calibration images.
fn small_plan<T: Real, B: Backend<T>>(encoding: &Encoding<T, B>, geometry: &Geometry<'_, T>) -> Result<Encoding<T, B>> {
    let size = ScanSize::with_band(encoding.b().workers(), geometry)?;
    let params = TransformParams::new::<T, B>(encoding.b(), &size, &small_plan_options(), false)?;
    Encoding::new(encoding.backend.clone(), geometry, None, size.band, &small_plan_options(), params)
}

/// Returns the field map at the voxels of calibration images; `None` without a field map.
fn low_field<T: Real, B: Backend<T>>(encoding: &Encoding<T, B>, low: &[usize]) -> Result<Option<Vec<T>>> {
    let Some(field) = encoding.field.as_ref().filter(|field| field.band.frequency.is_some()) else { return Ok(None) };
    let map = field.frequencies(encoding.b(), encoding.voxels)?;
    let nearest = |mut i: usize| {
        let (mut voxel, mut stride) = (0, 1);
        for (&few, &all) in low.iter().zip(&encoding.dims) {
            let from_middle = (i % few) as f64 - (few / 2) as f64;
            let place = (from_middle * all as f64 / few as f64).round() + (all / 2) as f64;
            voxel += stride * (place.max(0.0) as usize).min(all - 1);
            (i, stride) = (i / few, stride * all);
        }
        map[voxel]
    };
    let voxels = product(low);
    try_collect(voxels, "the field map", (0..voxels).map(nearest)).map(Some)
}

/// Checks the requested width of the centre of k-space, and returns the width to use: see [`widest_calibration`].
fn checked_width(dims: &[usize], calibration: usize) -> Result<usize> {
    // Twice the image size: a wider centre contains no more samples, as it exceeds the corners of k-space.
    let widest = 2 * dims.iter().copied().max().unwrap_or(1).max(defaults::CALIBRATION);
    if calibration > widest {
        bail!(
            InvalidArgument,
            "a calibration region of {calibration} samples is wider than k-space: the maximum is {widest} for an image \
             of {dims:?} voxels, and 0 means {}",
            widest_calibration(0, dims)
        );
    }
    Ok(widest_calibration(calibration, dims))
}

/// Returns the peak bytes of [`estimate`].
pub(crate) fn bytes<T: Real, B: Backend<T>>(backend: &B, size: &ScanSize) -> Result<StepBytes> {
    if size.listed.is_some() {
        return Ok(StepBytes { device: 0, host: 0 });
    }
    let calibration = checked_width(&size.dims, size.calibration)?;
    let low = low_dims(&size.dims, &[calibration; 3]);
    let (samples, coils) = (size.central_samples.clamp(1, size.samples), size.coils);
    let (real, complex, double) = (size_of::<T>(), size_of::<Complex<T>>(), size_of::<Complex<f64>>());
    // Indices, taper, coordinates, weights twice, and data.
    let inside = product(&[samples, size_of::<usize>() + size_of::<f64>() + (size.dims.len() + 2) * real]);
    let inside = sum(&[inside, product(&[samples, coils, complex])]);
    let weights = density::bytes::<T, B>(backend, samples, &low, Density::default())?;
    // With the field map, unless it is so steep that there are too many segments.
    let scan = ScanSize { coils, weights: true, band: size.band, ..ScanSize::new(&low, samples) };
    let plain = ScanSize { band: None, ..scan.clone() };
    let params = match TransformParams::new::<T, B>(backend, &scan, &small_plan_options(), false) {
        Err(e) if e.kind() == ErrorKind::Unsupported => {
            TransformParams::new::<T, B>(backend, &plain, &small_plan_options(), false)?
        }
        result => result?,
    };
    let scan = if params.terms.is_some() { scan } else { plain };
    let map = if scan.band.is_some() { product(&[size.voxels(), real]) } else { 0 };
    let [device, host] = Encoding::<T, B>::transform_bytes(backend, &scan, &small_plan_options(), &params)?;
    // Calibration images, also in double precision, and their maps; then the full maps, also in double precision.
    let small = product(&[product(&low), coils, complex + 2 * double]);
    let large = product(&[product(&size.dims), coils, complex + double]);
    let images = StepBytes { device, host: sum(&[inside, map, host, small, large]) };
    // The point spread function, over twice the voxels along each axis.
    let double_dims = try_collect(low.len(), "the calibration images", low.iter().map(|n| 2 * n))?;
    let spread = ScanSize { weights: true, ..ScanSize::new(&double_dims, samples) };
    let params = TransformParams::new::<T, B>(backend, &spread, &small_plan_options(), false)?;
    let [device, host] = Encoding::<T, B>::transform_bytes(backend, &spread, &small_plan_options(), &params)?;
    let ones = product(&[samples, complex]);
    let spread = StepBytes { device, host: sum(&[inside, ones, host, product(&[product(&double_dims), complex])]) };
    let axes =
        try_collect(size.dims.len(), "the calibration samples", size.dims.iter().map(|&n| calibration.min(n) + 3))?;
    let grid = product(&[product(&axes), size_of::<u32>()]);
    let weights = StepBytes { host: sum(&[inside, weights.host, grid]), ..weights };
    let gaps = StepBytes { device: 0, host: coverage::bytes(&size.dims, calibration) };
    Ok(StepBytes::peak(&[gaps, weights, spread, images], backend.is_gpu()))
}
