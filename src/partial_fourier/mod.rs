//! Partial Fourier: images of data of which one side of k-space is missing along one axis.
//!
//! An image with a smooth phase phi has redundant data: x exp(-i phi) is real, so that its data at -k are the
//! conjugates of those at k. The phase is that of an image of the symmetric centre of k-space, multiplied by a Hann
//! filter along the partial axis. docs/method.md has the equations.
//!
//! - Homodyne detection (Noll, Nishimura and Macovski 1991): x = exp(i phi) Re(exp(-i phi) G w d), where w weights the
//!   data by a ramp.
//! - POCS (Haacke, Lindskog and Lin 1991): p = |x| exp(i phi), then x = p + G (d - E p).
//!
//! G is the weighted adjoint E^H W. For a Cartesian scan it is the exact inverse on the measured samples, so that x has
//! exactly the measured data.

mod options;
mod sampling;

pub use options::{PartialFourierMethod, PartialFourierOptions, PartialFourierReport};

use crate::base::error::{bail, try_collect, try_vec, Result};
use crate::base::float_mode::FloatMode;
use crate::base::geometry::{check_len, Geometry, VoxelBasis};
use crate::base::interrupt::{self, ActiveInterrupt};
use crate::base::memory::check_available;
use crate::base::options::Options;
use crate::base::real::{narrow, wide, Real};
use crate::base::results::{check_result, check_results};
use crate::base::sizes::product;
use crate::base::warning::{raise, record, WarningKind};
use crate::base::workers::SerialExecutor;
use crate::plan::Plan;
use crate::reconstruction::density::Density;
use crate::reconstruction::gridding_scale::gridding_scale;
use num_complex::Complex;
use sampling::{cartesian_weights, warn_of_gaps, PartialAxis, WHAT};

/// Residual above which the smooth phase contradicts the data. Images with a smooth phase have at most 0.13, with noise
/// of a twentieth of the largest voxel.
const LARGEST_RESIDUAL: f64 = 0.2;
/// Share of the largest coil sensitivity, as energy, below which a voxel is outside of the object.
const LEAST_MAP_ENERGY: f64 = 1e-6;

/// The reconstruction of partial Fourier data on one trajectory.
///
/// Which axis has an unmeasured side, and how wide the symmetric centre is, follow from the trajectory. Any trajectory
/// is possible: Cartesian lines in 2D and 3D, asymmetric echoes, stacks of spirals or spokes with missing partitions.
///
/// Without coil maps each coil has an image and a phase of its own, with coil maps the combined image has one phase.
/// Images keep their phase, and have the scale of [`Plan::grid`].
pub struct PartialFourier<T: Real> {
    plan: Plan<T>,
    options: PartialFourierOptions,
    /// The interrupt callback of the plan, which also ends the iterations.
    interrupt: Option<crate::Interrupt>,
    partial: PartialAxis,
    /// Hann filter of the symmetric centre: [samples].
    centre: Vec<T>,
    /// Weights of homodyne detection: [samples].
    sides: Vec<T>,
    /// sum_c |S_c|^2 of each voxel; `None` without coil maps.
    map_energy: Option<Vec<T>>,
    voxels: usize,
}

impl<T: Real> PartialFourier<T> {
    /// Finds the unmeasured side, computes density weights, and creates a plan.
    ///
    /// The geometry's density weights are used if there are any. Otherwise, samples on the points of the image's grid
    /// have equal weights, divided by the number of samples at the same point. Other samples have the weights of Pipe
    /// and Menon.
    ///
    /// # Errors
    /// In addition to the errors of [`Plan::new`]:
    /// - `InvalidArgument`: no side of k-space is missing, the symmetric centre has fewer than four samples on the
    ///   short side, or the measured part of a Cartesian scan has gaps, as in parallel imaging.
    /// - `InvalidArgument`: invalid options.
    /// - `Unsupported`: several axes have an unmeasured side, or the geometry has a list of voxels, voxels with the
    ///   shape of a box, a field map or a decay map.
    pub fn new(geometry: &Geometry<'_, T>, options: &Options, partial_fourier: &PartialFourierOptions) -> Result<Self> {
        let _mode = FloatMode::standard();
        let _interrupt = ActiveInterrupt::new(options.interrupt.clone());
        geometry.check()?;
        check_support(geometry, partial_fourier)?;
        let k = &geometry.coordinates;
        let partial = PartialAxis::of(k, &geometry.dims)?;
        let (samples, voxels) = (geometry.samples(), geometry.voxel_count());
        let images = geometry.frames * if geometry.coil_maps.is_some() { 1 } else { geometry.coils };
        let data = product(&[samples, geometry.coils, geometry.frames]);
        let elements = product(&[4, voxels, images]).saturating_add(data);
        check_available(elements.saturating_mul(size_of::<Complex<T>>()), WHAT)?;

        let cartesian = cartesian_weights(k, &geometry.dims, &partial)?;
        let side = |m: usize| partial.homodyne_weight(k[partial.axis][m], cartesian.is_some());
        let centre = |m: usize| partial.centre_filter(k[partial.axis][m]);
        if cartesian.is_none() {
            warn_of_gaps(k, &geometry.dims)?;
        }
        partial.warn_if_narrow();
        let mut geometry = geometry.clone();
        let given = geometry.weights.take();
        geometry.weights = given.or(cartesian.as_deref());
        let plan = Plan::new(&geometry, options)?;
        plan.warnings().into_iter().for_each(record);
        if given.is_some() || cartesian.is_none() {
            let computed = match given {
                Some(_) => Vec::new(),
                None => plan.density(Density::default())?,
            };
            let weights = given.unwrap_or(&computed);
            // The scale is that of symmetric data: the weights of opposite samples have the sum 2.
            let scale = gridding_scale(&SerialExecutor, k, &geometry.dims, |m| weights[m].wide() * side(m))?;
            let scaled = weights.iter().map(|w| T::of(w.wide() * scale));
            plan.set_weights(Some(&try_collect(samples, WHAT, scaled)?))?;
        }
        Ok(PartialFourier {
            plan,
            options: *partial_fourier,
            interrupt: options.interrupt.clone(),
            partial,
            centre: try_collect(samples, WHAT, (0..samples).map(|m| T::of(centre(m))))?,
            sides: try_collect(samples, WHAT, (0..samples).map(|m| T::of(side(m))))?,
            map_energy: geometry.coil_maps.map(|maps| map_energy(maps, voxels)).transpose()?,
            voxels,
        })
    }

    /// Returns the number of elements of an image array.
    pub fn image_len(&self) -> usize {
        self.plan.image_len()
    }

    /// Computes the images of data, [samples, coils, frames]. Images are [nx, ny, nz, coils, frames], or [nx, ny, nz,
    /// frames] with coil maps. Each image has its own phase and iterations.
    ///
    /// Raises a warning ([`WarningKind::PartialFourier`]) if the smooth phase contradicts the data, and if the
    /// symmetric centre is narrow.
    ///
    /// # Errors
    /// As [`Plan::grid`], and `OutOfHostMemory`.
    pub fn reconstruct(&self, kspace: &[Complex<T>], image: &mut [Complex<T>]) -> Result<PartialFourierReport> {
        let _mode = FloatMode::standard();
        let _interrupt = ActiveInterrupt::new(self.interrupt.clone());
        check_len("k-space samples", kspace.len(), self.plan.kspace_len(), "samples times coils times frames")?;
        check_len("image voxels", image.len(), self.plan.image_len(), "voxels times images times frames")?;
        let mut buffers = ImageBuffers::new(kspace.len(), image.len())?;
        self.phase(kspace, &mut buffers)?;
        let report = match self.options.method {
            PartialFourierMethod::Homodyne => self.homodyne(kspace, &mut buffers)?,
            PartialFourierMethod::Pocs => self.pocs(kspace, &mut buffers)?,
        };
        check_results("image voxel", &buffers.image)?;
        check_result("the residual of partial Fourier", report.residual)?;
        image.copy_from_slice(&buffers.image);
        log::debug!(
            "partial Fourier, {}: axis {}, {:?} samples, {} iterations, change {:.1e}, residual {:.3}",
            self.options.method.name(),
            report.axis,
            report.extent,
            report.iterations,
            report.change,
            report.residual
        );
        if report.residual > LARGEST_RESIDUAL {
            let message = format!(
                "images with the smooth phase of the symmetric centre differ from the measured data by {:.0} % (at most \
                 {:.0} % are usual): the phase is not smooth, or the data are mostly noise; compare with an image \
                 without partial Fourier, or measure more samples on the short side",
                100.0 * report.residual,
                100.0 * LARGEST_RESIDUAL
            );
            raise(WarningKind::PartialFourier, message);
        }
        Ok(report)
    }

    /// Computes the weighted adjoint of the data in `data`, each sample multiplied by its factor.
    fn filtered(
        &self,
        factors: &[T],
        kspace: &[Complex<T>],
        data: &mut [Complex<T>],
        to: &mut [Complex<T>],
    ) -> Result<()> {
        for (data, kspace) in data.chunks_exact_mut(factors.len()).zip(kspace.chunks_exact(factors.len())) {
            data.iter_mut().zip(kspace).zip(factors).for_each(|((data, z), &w)| *data = z * w);
        }
        self.plan.weighted_adjoint(&data[..], to)
    }

    /// Sets the phase factors exp(i phi) from the symmetric centre; 1 where its image is 0.
    fn phase(&self, kspace: &[Complex<T>], buffers: &mut ImageBuffers<T>) -> Result<()> {
        self.filtered(&self.centre, kspace, &mut buffers.data, &mut buffers.phase)?;
        for phase in &mut buffers.phase {
            let z = wide(*phase);
            let size = z.re.hypot(z.im);
            *phase = if size > 0.0 { narrow(z / size) } else { Complex::new(T::ONE, T::ZERO) };
        }
        Ok(())
    }

    /// Computes images by homodyne detection.
    fn homodyne(&self, kspace: &[Complex<T>], buffers: &mut ImageBuffers<T>) -> Result<PartialFourierReport> {
        self.filtered(&self.sides, kspace, &mut buffers.data, &mut buffers.image)?;
        for (x, phase) in buffers.image.iter_mut().zip(&buffers.phase) {
            *x = phase * (x.re * phase.re + x.im * phase.im);
        }
        buffers.with_phase.copy_from_slice(&buffers.image);
        self.divide_by_maps(&mut buffers.with_phase);
        let residual = self.residual(kspace, buffers)?;
        Ok(PartialFourierReport { residual, ..self.empty_report() })
    }

    /// Computes images by projection onto convex sets. An image that has converged no longer changes, so that results
    /// do not depend on the other images.
    fn pocs(&self, kspace: &[Complex<T>], buffers: &mut ImageBuffers<T>) -> Result<PartialFourierReport> {
        self.plan.weighted_adjoint(kspace, &mut buffers.image[..])?;
        self.divide_by_maps(&mut buffers.image);
        let images = buffers.image.len() / self.voxels;
        let mut is_active = try_vec(images, true, WHAT)?;
        let mut changes = try_vec(images, 0.0f64, WHAT)?;
        let mut report = self.empty_report();
        while report.iterations < self.options.iterations && is_active.contains(&true) {
            interrupt::check(WHAT)?;
            report.iterations += 1;
            for ((p, x), phase) in buffers.with_phase.iter_mut().zip(&buffers.image).zip(&buffers.phase) {
                *p = phase * T::of(x.re.wide().hypot(x.im.wide()));
            }
            report.residual = self.residual(kspace, buffers)?;
            self.plan.weighted_adjoint(&buffers.data[..], &mut buffers.correction[..])?;
            self.divide_by_maps(&mut buffers.correction);
            for i in (0..images).filter(|&i| is_active[i]) {
                changes[i] = buffers.update(i * self.voxels..(i + 1) * self.voxels);
            }
            is_active.iter_mut().zip(&changes).for_each(|(active, &change)| *active &= change > self.options.tolerance);
        }
        report.change = changes.iter().fold(0.0, |most, &change| most.max(change));
        if let Some(energy) = &self.map_energy {
            for image in buffers.image.chunks_exact_mut(self.voxels) {
                image.iter_mut().zip(energy).for_each(|(x, &energy)| *x *= energy);
            }
        }
        Ok(report)
    }

    /// Sets `data` to the difference between the measured data and those of `with_phase`. Returns its norm relative to
    /// the measured data.
    fn residual(&self, kspace: &[Complex<T>], buffers: &mut ImageBuffers<T>) -> Result<f64> {
        self.plan.forward(&buffers.with_phase[..], &mut buffers.data[..])?;
        let (mut difference, mut measured) = (0.0, 0.0);
        for (data, z) in buffers.data.iter_mut().zip(kspace) {
            *data = z - *data;
            difference += wide(*data).norm_sqr();
            measured += wide(*z).norm_sqr();
        }
        Ok(if measured > 0.0 { (difference / measured).sqrt() } else { 0.0 })
    }

    /// Divides images by the energy of the coil maps. Voxels that no coil sees become 0.
    fn divide_by_maps(&self, images: &mut [Complex<T>]) {
        let Some(energy) = &self.map_energy else { return };
        let least = LEAST_MAP_ENERGY * energy.iter().fold(0.0, |most: f64, e| most.max(e.wide()));
        for image in images.chunks_exact_mut(self.voxels) {
            for (x, &energy) in image.iter_mut().zip(energy) {
                *x = if energy.wide() > least { *x / energy } else { Complex::default() };
            }
        }
    }

    /// Returns a report without iterations.
    fn empty_report(&self) -> PartialFourierReport {
        let PartialAxis { axis, extent, .. } = self.partial;
        PartialFourierReport { axis, extent, iterations: 0, change: 0.0, residual: 0.0 }
    }
}

/// Returns the axis with a missing side, and its measured extent below and above k = 0 in samples; `None` if
/// [`PartialFourier`] does not apply to this trajectory. `k` is in cycles per voxel of an image of `dims` voxels.
pub fn missing_side<T: Real>(k: &[&[T]], dims: &[usize]) -> Option<(usize, [f64; 2])> {
    PartialAxis::of(k, dims).ok().map(|partial| (partial.axis, partial.extent))
}

/// Arrays of a reconstruction.
struct ImageBuffers<T: Real> {
    /// Factors exp(i phi) of the images.
    phase: Vec<Complex<T>>,
    image: Vec<Complex<T>>,
    /// Images with the smooth phase.
    with_phase: Vec<Complex<T>>,
    /// Images of the residual data.
    correction: Vec<Complex<T>>,
    /// Filtered data, then residual data.
    data: Vec<Complex<T>>,
}

impl<T: Real> ImageBuffers<T> {
    /// Allocates the arrays.
    fn new(samples: usize, voxels: usize) -> Result<Self> {
        let images = || try_vec(voxels, Complex::default(), WHAT);
        let data = try_vec(samples, Complex::default(), WHAT)?;
        Ok(ImageBuffers { phase: images()?, image: images()?, with_phase: images()?, correction: images()?, data })
    }

    /// Sets an image to `with_phase` plus `correction`. Returns its relative change.
    fn update(&mut self, range: std::ops::Range<usize>) -> f64 {
        let (mut difference, mut size) = (0.0, 0.0);
        let terms = self.with_phase[range.clone()].iter().zip(&self.correction[range.clone()]);
        for (x, (p, correction)) in self.image[range].iter_mut().zip(terms) {
            let new = p + correction;
            difference += (wide(new) - wide(*x)).norm_sqr();
            size += wide(new).norm_sqr();
            *x = new;
        }
        if size > 0.0 {
            (difference / size).sqrt()
        } else {
            0.0
        }
    }
}

/// Returns sum_c |S_c|^2 of each voxel.
fn map_energy<T: Real>(maps: &[Complex<T>], voxels: usize) -> Result<Vec<T>> {
    let energy = |i: usize| maps[i..].iter().step_by(voxels).map(|s| wide(*s).norm_sqr()).sum::<f64>();
    try_collect(voxels, WHAT, (0..voxels).map(|i| T::of(energy(i))))
}

/// Checks options, and properties of the geometry that are not supported.
fn check_support<T: Real>(geometry: &Geometry<'_, T>, options: &PartialFourierOptions) -> Result<()> {
    if geometry.voxels.is_some() {
        bail!(Unsupported, "partial Fourier needs a grid of voxels: leave out the list of voxels");
    }
    if geometry.basis != VoxelBasis::Point {
        bail!(Unsupported, "partial Fourier needs voxels that are points, but they are boxes: set the basis to point");
    }
    if geometry.field_map.is_some() || geometry.decay_map.is_some() {
        bail!(
            Unsupported,
            "partial Fourier with a field map or a decay map is not supported, because off-resonance shifts the centre \
             of k-space: leave the maps out, or reconstruct without partial Fourier"
        );
    }
    if options.iterations == 0 {
        bail!(InvalidArgument, "the number of iterations of partial Fourier is 0: set at least 1");
    }
    if !(0.0..1.0).contains(&options.tolerance) {
        bail!(
            InvalidArgument,
            "the tolerance of partial Fourier is {}: it is a relative change of the image in [0, 1)",
            options.tolerance
        );
    }
    Ok(())
}
