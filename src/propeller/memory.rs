//! Estimate of the host memory that the correction of blades takes, computed before it begins.
//!
//! The estimate adds up what `mod.rs`, `motion.rs` and `phase.rs` allocate. The bytes of their small plans come from
//! [`Plan::memory`].

use super::blades::Blades;
use super::motion::{disc_image_dims, is_disc_covered, small, DISCS};
use super::options::{BladePhase, PropellerOptions};
use super::phase::PhaseCorrection;
use super::{BladeMotion, Corrected};
use crate::base::error::{bail, Result};
use crate::base::geometry::{check_len, Geometry};
use crate::base::options::Options;
use crate::base::real::Real;
use crate::base::scan_size::ScanSize;
use crate::base::sizes::{product, sum};
use crate::plan::Plan;
use crate::reconstruction::spokes::unwrapped;
use num_complex::Complex;

/// Bytes of a complex number in double precision, in which motion is estimated.
const COMPLEX: usize = size_of::<Complex<f64>>();
/// Upper bound of the bytes of lists with one entry per blade.
const BYTES_PER_BLADE: usize = 1 << 10;

impl<T: Real> Corrected<T> {
    /// Returns an upper estimate of the host bytes that [`Corrected::new`], followed by [`Corrected::grid`], allocates
    /// at its peak. The corrected scan, the density weights and the gridding are included. The caller's arrays are not.
    ///
    /// `size` are the sizes of the scan and `coordinates` its k-space coordinates, one array per axis: the blades
    /// decide how large the small images are by which motion is estimated.
    ///
    /// # Errors
    /// As [`Corrected::new`] for the sizes and the trajectory, and as [`Plan::memory`].
    pub fn memory(
        size: &ScanSize,
        coordinates: &[&[T]],
        options: &Options,
        propeller: &PropellerOptions,
    ) -> Result<usize> {
        size.check()?;
        check_support(size, size.band.is_some(), propeller)?;
        let geometry = Geometry::new(&size.dims, coordinates);
        geometry.check()?;
        check_len("samples with coordinates", geometry.samples(), size.samples, "the samples of the scan")?;
        let blades = Blades::of(coordinates, &size.dims, propeller.lines)?;
        let correction = correction_bytes(size, coordinates, &blades, options, propeller)?;
        Ok(correction.max(gridding_bytes::<T>(size, &blades, options)?))
    }
}

/// Checks that blades of a scan of this size can be corrected. Maps of off-resonance or decay are passed apart, since
/// their range is not known for every [`ScanSize`].
pub(super) fn check_support(size: &ScanSize, has_off_resonance: bool, propeller: &PropellerOptions) -> Result<()> {
    if size.dims.len() != 2 {
        bail!(
            Unsupported,
            "blades are corrected in 2D, and the image has {} axes: give the slices one by one",
            size.dims.len()
        );
    }
    if has_off_resonance {
        bail!(
            Unsupported,
            "blades are corrected without off-resonance: leave field_map and decay_map out, or give them to conjugate \
             gradients of the corrected scan"
        );
    }
    if size.listed.is_some() {
        bail!(Unsupported, "blades are corrected for a grid of voxels: this geometry has a list");
    }
    if size.coil_maps && propeller.phase == BladePhase::Smooth {
        bail!(
            Unsupported,
            "the smooth phase of each coil's blades is taken away, and coil maps have it: give none, and combine the \
             coils' images by their root sum of squares, or correct a constant phase only"
        );
    }
    Ok(())
}

/// Returns the bytes of a corrected scan with this many samples per frame.
fn result_bytes<T: Real>(size: &ScanSize, samples: usize, blades: usize) -> usize {
    let reals = product(&[3, samples, size.frames, size_of::<T>()]);
    let kspace = product(&[samples, size.coils, size.frames, size_of::<Complex<T>>()]);
    sum(&[reals, kspace, product(&[blades, size.frames, size_of::<BladeMotion>()])])
}

/// Returns the bytes that [`Corrected::new`] takes at its peak, the result included.
pub(super) fn correction_bytes<T: Real>(
    size: &ScanSize,
    coordinates: &[&[T]],
    blades: &Blades,
    options: &Options,
    propeller: &PropellerOptions,
) -> Result<usize> {
    let samples = blades.all.len() * blades.samples();
    let values = product(&[samples, size.coils, size_of::<Complex<T>>()]);
    let is_smooth = propeller.phase == BladePhase::Smooth;
    let channels = if is_smooth { 1 } else { size.coils };
    let motion = motion_bytes(size, coordinates, blades, channels, options, propeller)?;
    let estimation = sum(&[product(&[channels, samples, COMPLEX]), motion]);
    let search = if is_smooth { estimation.max(PhaseCorrection::bytes(blades)) } else { estimation };
    // An object far from the middle is searched for again, while the first result is kept.
    let searches = if propeller.translation { 2 } else { 1 };
    // Samples inside k-space, their coordinates and initial weights, and a plan for the final weights.
    let density = Plan::<T>::memory(&ScanSize::new(&size.dims, samples), options)?.host.density;
    let weighting = sum(&[product(&[samples, 1 + 3 * size_of::<T>()]), density]);
    let frame = sum(&[product(&[searches, values]), search]).max(sum(&[values, weighting]));
    let result = result_bytes::<T>(size, samples, blades.all.len());
    let correction = sum(&[result, frame, product(&[blades.count, BYTES_PER_BLADE])]);
    if blades.all.len() == blades.count {
        return Ok(correction);
    }
    // The complete blades are copied, and their result is copied into one for all samples.
    let copies = sum(&[product(&[2, samples, size_of::<T>()]), product(&[values, size.frames])]);
    let whole = sum(&[result, result_bytes::<T>(size, size.samples, blades.count)]);
    Ok(sum(&[copies, correction.max(whole)]))
}

/// Returns the bytes that [`Corrected::grid`] takes at its peak, the corrected scan included.
fn gridding_bytes<T: Real>(size: &ScanSize, blades: &Blades, options: &Options) -> Result<usize> {
    let images = product(&[size.voxels(), size.images(), size.frames, size_of::<Complex<T>>()]);
    let one_frame = ScanSize { frames: 1, weights: true, edge: true, ..size.clone() };
    let plan = Plan::<T>::memory(&one_frame, options)?.host.grid;
    // The trajectories of two frames exist at once while the plan is changed to the next frame.
    let next_frame = match size.frames {
        1 => 0,
        _ => Plan::<T>::memory(&ScanSize { coil_maps: false, ..one_frame }, options)?.host.plan,
    };
    Ok(sum(&[result_bytes::<T>(size, size.samples, blades.count), images, plan, next_frame]))
}

/// Sizes of a disc about k = 0, by whose samples motion is estimated, and the bytes of its arrays and plan.
struct DiscMemory {
    /// Size of the small image.
    dims: [usize; 2],
    /// Bytes of the arrays, without the plan.
    arrays: usize,
    /// Bytes of the arrays of one value per sample and channel.
    values: usize,
    /// Bytes of the small images of all channels.
    image: usize,
    /// Bytes of the plan that fits the image.
    plan: usize,
    /// Bytes of another trajectory for the plan.
    trajectory: usize,
}

impl DiscMemory {
    /// Counts a disc with this many samples.
    fn new(dims: [usize; 2], samples: usize, channels: usize, options: &Options) -> Result<Self> {
        let values = product(&[samples, channels, COMPLEX]);
        let image = product(&[dims[0], dims[1], channels, COMPLEX]);
        // Coordinates as measured and as seen from the object, and weights.
        let arrays = sum(&[product(&[5, samples, size_of::<f64>()]), product(&[3, values]), image]);
        let size = ScanSize { coils: channels, weights: true, edge: false, ..ScanSize::new(&dims, samples) };
        let memory = Plan::<f64>::memory(&size, options)?.host;
        Ok(DiscMemory { dims, arrays, values, image, plan: memory.cg, trajectory: memory.plan })
    }

    /// Returns the bytes held between two steps of the estimation.
    fn held(&self) -> usize {
        sum(&[self.arrays, self.plan])
    }

    /// Returns the bytes at the peak of fitting and refining. The image is copied to start a fit from it. Refinement
    /// copies it as well, and holds the derivatives of the data by x and y.
    fn peak(&self) -> usize {
        let refinement = sum(&[product(&[2, self.values]), self.image]);
        sum(&[self.held(), refinement.max(self.trajectory)])
    }

    /// Returns the bytes at the peak of the search for translations: a plan for the samples of one blade, on twice the
    /// small image's size.
    fn translation_peak(&self, blade_samples: usize, options: &Options) -> Result<usize> {
        let dims = self.dims.map(|n| 2 * n);
        let plan = Plan::<f64>::memory(&ScanSize::new(&dims, blade_samples), options)?.host.transform;
        let peaks = product(&[dims[0], dims[1], COMPLEX]);
        Ok(sum(&[self.held(), plan, peaks, product(&[2, blade_samples, COMPLEX])]))
    }
}

/// Returns the bytes that the estimation of motion takes at its peak.
fn motion_bytes<T: Real>(
    size: &ScanSize,
    coordinates: &[&[T]],
    blades: &Blades,
    channels: usize,
    options: &Options,
    propeller: &PropellerOptions,
) -> Result<usize> {
    let options = small(options);
    let squared = |m: usize| coordinates.iter().map(|k| unwrapped(k, m).powi(2)).sum::<f64>();
    let mut peak = 0;
    let mut previous: Option<DiscMemory> = None;
    for times in DISCS {
        let radius = times * blades.radius;
        if times > 1.0 && !(propeller.finds_motion() && is_disc_covered(blades, radius)) {
            break;
        }
        let samples = (0..size.samples).filter(|&m| squared(m) <= radius * radius).count();
        let dims = disc_image_dims([size.dims[0], size.dims[1]], radius);
        let disc = DiscMemory::new(dims, samples, channels, &options)?;
        peak = peak.max(disc.peak());
        match &previous {
            // The arrays of the next disc are made while the previous one exists.
            Some(previous) => peak = peak.max(sum(&[previous.held(), disc.arrays])),
            None if propeller.translation => {
                peak = peak.max(disc.translation_peak(blades.samples().min(samples), &options)?);
            }
            None => {}
        }
        previous = Some(disc);
    }
    Ok(peak)
}
