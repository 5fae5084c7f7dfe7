//! PROPELLER (Pipe, Magn. Reson. Med. 42:963, 1999): every blade of lines measures the centre of k-space anew, from
//! which the object's motion between blades is found. Their samples are then put where they were measured, seen from
//! the object at rest.
//!
//! `blades` recognises the trajectory, `phase` removes the phase of each blade, `motion` finds rotations and
//! translations. What is corrected is a scan like any other: gridding or conjugate gradients make its image.

mod blades;
mod memory;
mod motion;
mod options;
mod phase;

use crate::backend::cpu::simd::Level;
use crate::backend::Sink;
use crate::base::error::{bail, try_collect, try_vec, Result};
use crate::base::float_mode::FloatMode;
use crate::base::geometry::{check_finite, check_len, Geometry};
use crate::base::interrupt::{self, ActiveInterrupt};
use crate::base::memory::check_available;
use crate::base::options::Options;
use crate::base::real::{narrow, wide, Real};
use crate::base::results::check_results;
use crate::base::rigid_motion::RigidMotion;
use crate::base::scan_size::ScanSize;
use crate::base::warning::{raise, WarningKind};
use crate::plan::Plan;
use crate::reconstruction::density::Density;
use crate::reconstruction::spokes::unwrapped;
use blades::Blades;
use motion::{Data, Found, Motion};
use num_complex::Complex;
use phase::PhaseCorrection;

pub use options::{BladePhase, PropellerOptions};

const WHAT: &str = "the corrected blades";
/// A blade with less weight has lost most of its influence on the image.
const LEAST_WEIGHT: f64 = 0.5;
/// The part of the field of view from which on a translation is warned of: the object may have left the image.
const WIDE_TRANSLATION: f64 = 0.25;
/// The part of the field of view from which on a translation may be a wider one, which the small images cannot show.
const NOTABLE_TRANSLATION: f64 = 0.125;
/// Blades of less correlation may be of an object that is outside the small images.
const DOUBTFUL_CORRELATION: f64 = 0.97;
/// A blade of less correlation with the others tells of more than motion in the plane.
const LEAST_CORRELATION: f64 = 0.8;
/// Squares of larger samples, and sums of these, may overflow.
const LARGEST: f64 = 1e100;
/// The part of the widest rotation that is searched, from which on a rotation may be a wider one.
const NEAR_WIDEST: f64 = 0.95;

/// Where the object was while a blade was measured, from its mean position over all blades.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BladeMotion {
    /// The object was turned by so many degrees about voxel floor(n/2), from x to y.
    pub rotation: f64,
    /// After that, it was moved by so many voxels along x and y.
    pub translation: [f64; 2],
    /// The phase in radians that was taken from the blade; of [`BladePhase::Smooth`] its mean over the image.
    pub phase: f64,
    /// The correlation, from 0 to 1, of the corrected blade with all others about the centre of k-space.
    pub correlation: f64,
    /// How much the blade counts in the image, from 0 to 1, where it meets others.
    pub weight: f64,
}

/// A scan without the motion of its blades.
#[derive(Debug, Clone, PartialEq)]
pub struct Corrected<T: Real> {
    /// Blades, lines of a blade, samples of a line.
    pub blades: usize,
    /// See `blades`.
    pub lines: usize,
    /// See `blades`.
    pub readout: usize,
    /// The motion of each blade: [blades, frames].
    pub motion: Vec<BladeMotion>,
    /// Coordinates of the samples, seen from the object, along x and y: [samples, frames]. A sample that a rotation
    /// takes out of [-0.5, 0.5) is at the edge, with weight 0.
    pub coordinates: [Vec<T>; 2],
    /// Density weights for these (Pipe and Menon 1999), times those of blades where they meet: [samples, frames].
    pub weights: Vec<T>,
    /// The corrected data, [samples, coils, frames].
    pub kspace: Vec<Complex<T>>,
}

impl<T: Real> Corrected<T> {
    /// Finds and corrects the motion of blades in 2D data, [samples, coils, frames], each frame on its own. Voxels are
    /// taken to be square. Rotations are found up to 45 degrees from the mean. The geometry's weights are not used:
    /// those of the corrected samples are others. [`Corrected::memory`] estimates the bytes that it takes, of which the
    /// memory limit counts the density weights only.
    ///
    /// Several coils are taken to move with the object; where it turns far, their images at rest differ, and the
    /// motion is less precise.
    ///
    /// # Errors
    /// As [`Geometry::check`]; `SizeMismatch` for data of another length; `NotFinite` with the index; `Unsupported` in
    /// 3D, for a list of voxels, and for coil maps with [`BladePhase::Smooth`], which takes the coils' phases from the
    /// data; `InvalidArgument` for a trajectory that is not of blades, or of which fewer than half of the blades, or
    /// fewer than two, are complete. Incomplete blades are left out with a warning: their motion, correlation and
    /// weight are 0.
    pub fn new(
        geometry: &Geometry<'_, T>,
        options: &Options,
        propeller: &PropellerOptions,
        kspace: &[Complex<T>],
    ) -> Result<Self> {
        let _mode = FloatMode::standard();
        let _interrupt = ActiveInterrupt::new(options.interrupt.clone());
        geometry.check()?;
        let size = ScanSize::lengths(geometry);
        memory::check_support(&size, geometry.off_resonance().is_some(), propeller)?;
        let samples = geometry.samples();
        let (coils, frames) = (geometry.coils, geometry.frames);
        check_len("k-space samples", kspace.len(), samples * coils * frames, "samples times coils times frames")?;
        check_finite("k-space sample", kspace)?;
        if let Some(m) = kspace.iter().position(|z| z.re.wide().abs().max(z.im.wide().abs()) > LARGEST) {
            bail!(
                NotFinite,
                "k-space sample {m} is {}, and squares of numbers beyond {LARGEST:e} overflow: scale the data",
                kspace[m]
            );
        }
        let blades = Blades::of(&geometry.coordinates, &geometry.dims, propeller.lines)?;
        let bytes = memory::correction_bytes(&size, &geometry.coordinates, &blades, options, propeller)?;
        check_available(bytes, "the motion of blades")?;
        blades.warnings.iter().for_each(|message| raise(WarningKind::Blades, message.clone()));
        if blades.all.len() < blades.count {
            return Corrected::without_incomplete(&blades, geometry, options, propeller, kspace);
        }
        let mut corrected = Corrected {
            blades: blades.all.len(),
            lines: blades.lines,
            readout: blades.readout,
            motion: try_vec(blades.all.len() * frames, BladeMotion::default(), WHAT)?,
            coordinates: [try_vec(samples * frames, T::ZERO, WHAT)?, try_vec(samples * frames, T::ZERO, WHAT)?],
            weights: try_vec(samples * frames, T::ZERO, WHAT)?,
            kspace: try_collect(kspace.len(), WHAT, kspace.iter().copied())?,
        };
        for frame in 0..frames {
            corrected.frame(frame, &blades, geometry, options, propeller, kspace)?;
        }
        corrected.check_results()?;
        corrected.warn(propeller, &geometry.dims);
        Ok(corrected)
    }

    /// Corrects the complete blades. The samples of incomplete ones stay as they are, with weight 0.
    fn without_incomplete(
        blades: &Blades,
        geometry: &Geometry<'_, T>,
        options: &Options,
        propeller: &PropellerOptions,
        kspace: &[Complex<T>],
    ) -> Result<Self> {
        let (samples, of_blade) = (geometry.samples(), blades.samples());
        let complete = || blades.first_lines.iter().map(|line| line * blades.readout);
        let kept = blades.all.len() * of_blade;
        let places = || complete().flat_map(|first| first..first + of_blade);
        let axis = |k: &&[T]| try_collect(kept, WHAT, places().map(|m| k[m]));
        let coordinates = geometry.coordinates.iter().map(axis).collect::<Result<Vec<_>>>()?;
        let arrays = kspace.len() / samples;
        let of_array = |i: usize| places().map(move |m| kspace[i * samples + m]);
        let data = try_collect(kept * arrays, WHAT, (0..arrays).flat_map(of_array))?;
        let part =
            Geometry { coordinates: coordinates.iter().map(|k| &k[..]).collect(), weights: None, ..geometry.clone() };
        let lines = PropellerOptions { lines: blades.lines, ..*propeller };
        let found = Corrected::new(&part, options, &lines, &data)?;
        let frames = geometry.frames;
        let mut corrected = Corrected {
            blades: blades.count,
            lines: blades.lines,
            readout: blades.readout,
            motion: try_vec(blades.count * frames, BladeMotion::default(), WHAT)?,
            coordinates: [try_vec(samples * frames, T::ZERO, WHAT)?, try_vec(samples * frames, T::ZERO, WHAT)?],
            weights: try_vec(samples * frames, T::ZERO, WHAT)?,
            kspace: try_collect(kspace.len(), WHAT, kspace.iter().copied())?,
        };
        for frame in 0..frames {
            let (all, few) = (frame * samples, frame * kept);
            for (axis, (to, from)) in corrected.coordinates.iter_mut().zip(&found.coordinates).enumerate() {
                for m in 0..samples {
                    to[all + m] = T::coordinate(unwrapped(geometry.coordinates[axis], m).clamp(-0.5, 0.5));
                }
                places().enumerate().for_each(|(i, m)| to[all + m] = from[few + i]);
            }
            places().enumerate().for_each(|(i, m)| corrected.weights[all + m] = found.weights[few + i]);
            for (i, &number) in blades.numbers.iter().enumerate() {
                corrected.motion[frame * blades.count + number] = found.motion[frame * found.blades + i];
            }
        }
        for array in 0..arrays {
            let (all, few) = (array * samples, array * kept);
            places().enumerate().for_each(|(i, m)| corrected.kspace[all + m] = found.kspace[few + i]);
        }
        Ok(corrected)
    }

    /// Corrects one frame.
    fn frame(
        &mut self,
        frame: usize,
        blades: &Blades,
        geometry: &Geometry<'_, T>,
        options: &Options,
        propeller: &PropellerOptions,
        kspace: &[Complex<T>],
    ) -> Result<()> {
        let smooth = propeller.phase == BladePhase::Smooth;
        let of_blade = blades.samples();
        let dims = [geometry.dims[0], geometry.dims[1]];
        let (samples, coils) = (geometry.samples(), geometry.coils);
        let own = frame * samples * coils..(frame + 1) * samples * coils;
        let k = |m: usize| [0, 1].map(|a| unwrapped(geometry.coordinates[a], m));
        let search = Search { blades, k: &k, dims, options, propeller };
        let measured = &kspace[own.clone()];
        let mut best = search.run(measured, try_vec(self.blades, Motion::default(), WHAT)?)?;
        if propeller.translation && best.is_doubtful(&dims) {
            // An object far from the middle leaves the small images that motion is found by, and comes back at the
            // other end of a blade's image. Its centre is moved to the middle first, or to where most blades have it:
            // the centre of an object as wide as the field of view is uncertain.
            let mut centres = try_vec(self.blades, Motion::default(), WHAT)?;
            for (b, centre) in centres.iter_mut().enumerate() {
                centre.rigid.translation = motion::centre_of_energy(blades, b, measured, samples, &k);
            }
            let common = motion::common_translation(&centres)?;
            for origin in [common, [0.0; 2]] {
                let relative = |c: &Motion| {
                    let [x, y] = c.rigid.translation;
                    let rigid = RigidMotion { translation: [x - origin[0], y - origin[1]], ..c.rigid };
                    Motion { rigid, ..*c }
                };
                let other = search.run(measured, try_collect(self.blades, WHAT, centres.iter().map(relative))?)?;
                if other.agreement() > best.agreement() {
                    best = other;
                }
            }
        }
        let Attempt { centres, values: found_values, phases, found: Found { motions, correlations, weights } } = best;
        let values = &mut self.kspace[own];
        values.copy_from_slice(&found_values);
        let motion = &mut self.motion[frame * self.blades..(frame + 1) * self.blades];
        // Where the samples are now.
        let first = frame * samples;
        let mut inside = try_vec(samples, true, WHAT)?;
        for m in 0..samples {
            let motion = &motions[m / of_blade];
            let factor = motion.after(&centres[m / of_blade]).factor(k(m));
            for value in values[m..].iter_mut().step_by(samples) {
                *value = narrow(wide(*value) * factor);
            }
            let place = motion.rigid.back(k(m));
            inside[m] = place.iter().all(|k| (-0.5..0.5).contains(k));
            for (axis, place) in self.coordinates.iter_mut().zip(place) {
                axis[first + m] = T::coordinate(place.clamp(-0.5, 0.5));
            }
        }
        for (b, out) in motion.iter_mut().enumerate() {
            *out = BladeMotion {
                rotation: motions[b].rigid.angle.to_degrees(),
                translation: motions[b].rigid.translation,
                phase: if smooth { phases[b].arg() } else { motions[b].phase },
                correlation: correlations[b],
                weight: weights[b],
            };
        }
        interrupt::check("the corrected blades")?;
        let part = |axis: &Vec<T>| {
            let count = inside.iter().filter(|&&inside| inside).count();
            try_collect(count, WHAT, (0..samples).filter(|&m| inside[m]).map(|m| axis[first + m]))
        };
        let k = [part(&self.coordinates[0])?, part(&self.coordinates[1])?];
        let start = (0..samples).filter(|&m| inside[m]).map(|m| T::of(weights[m / of_blade]));
        let start = try_collect(k[0].len(), WHAT, start)?;
        let plan = Plan::of_step(&Geometry::new(&dims, &[&k[0], &k[1]]), options)?;
        let density = plan.density_from(Density::default(), &start)?;
        let places = (0..samples).filter(|&m| inside[m]);
        places.zip(density).for_each(|(m, w)| self.weights[first + m] = w);
        Ok(())
    }

    /// Refuses results that are not finite.
    fn check_results(&self) -> Result<()> {
        check_results("coordinate of the corrected scan", &self.coordinates[0])?;
        check_results("coordinate of the corrected scan", &self.coordinates[1])?;
        check_results("weight of the corrected scan", &self.weights)?;
        check_results("sample of the corrected scan", &self.kspace)?;
        for m in &self.motion {
            let [x, y] = m.translation;
            check_results("motion of a blade: number", &[m.rotation, x, y, m.phase, m.correlation, m.weight])?;
        }
        Ok(())
    }

    /// Says what may be wrong.
    fn warn(&self, propeller: &PropellerOptions, dims: &[usize]) {
        let disagrees = |m: &&BladeMotion| m.correlation < LEAST_CORRELATION || m.weight < LEAST_WEIGHT;
        let poor = self.motion.iter().filter(disagrees).count();
        // The motion of a blade that disagrees says nothing.
        let agreeing = || self.motion.iter().filter(|m| !disagrees(m));
        let is_wide = |m: &&BladeMotion| m.rotation.abs() > NEAR_WIDEST * motion::WIDEST.to_degrees();
        let wide = agreeing().filter(is_wide).count();
        let all = self.motion.len();
        if poor > 0 {
            let message = format!(
                "{poor} of {all} blades disagree with the others about the centre of k-space (a correlation of less than \
                 {LEAST_CORRELATION}, or a weight of less than {LEAST_WEIGHT}): the object moved through the plane, or the \
                 phase of blades is not smooth, or the lines of a blade are others than assumed ({}); leave these blades \
                 out, or measure them again",
                self.lines
            );
            raise(WarningKind::Blades, message);
        }
        let far = |m: &&BladeMotion| (0..2).any(|a| m.translation[a].abs() > WIDE_TRANSLATION * dims[a] as f64);
        let far = agreeing().filter(far).count();
        if far > 0 {
            let message = format!(
                "{far} of {all} blades are moved by more than a quarter of the field of view: the image shows the object at \
                 its mean position, and parts of it may be outside; leave these blades out, or measure them again"
            );
            raise(WarningKind::Blades, message);
        }
        if propeller.rotation && wide > 0 {
            let message = format!(
                "{wide} of {all} blades seem to be turned by {:.0} degrees or more, and rotations are found up to \
                 {:.0}: the object may have no direction that tells, or the blades are in another order",
                NEAR_WIDEST * motion::WIDEST.to_degrees(),
                motion::WIDEST.to_degrees()
            );
            raise(WarningKind::Blades, message);
        }
    }

    /// The gridding reconstruction of the corrected scan: images as of [`Plan::grid`]. `geometry` is that of the scan.
    ///
    /// # Errors
    /// As [`Plan::new`] and [`Plan::grid`].
    pub fn grid(&self, geometry: &Geometry<'_, T>, options: &Options, image: &mut [Complex<T>]) -> Result<()> {
        let (samples, frames) = (geometry.samples(), geometry.frames);
        let arrays = if geometry.coil_maps.is_some() { 1 } else { geometry.coils };
        let wanted = geometry.voxel_count() * arrays * frames;
        check_len("image voxels", image.len(), wanted, "voxels times images times frames")?;
        let mut whole = try_vec(image.len(), Complex::default(), "the images of corrected blades")?;
        let mut plan: Option<Plan<T>> = None;
        for (frame, image) in whole.chunks_exact_mut(wanted / frames).enumerate() {
            let own = frame * samples..(frame + 1) * samples;
            let k = [&self.coordinates[0][own.clone()], &self.coordinates[1][own.clone()]];
            let of_frame =
                Geometry { coordinates: k.to_vec(), weights: Some(&self.weights[own]), frames: 1, ..geometry.clone() };
            match &plan {
                Some(plan) => plan.set_trajectory(&of_frame)?,
                None => plan = Some(Plan::new(&of_frame, options)?),
            }
            let data = samples * geometry.coils;
            let plan = plan.as_ref().expect("it has been made");
            plan.grid(&self.kspace[frame * data..(frame + 1) * data], Sink::from(image))?;
        }
        image.copy_from_slice(&whole);
        Ok(())
    }
}

/// The search for the motion of the blades of one frame.
struct Search<'a> {
    blades: &'a Blades,
    k: &'a dyn Fn(usize) -> [f64; 2],
    dims: [usize; 2],
    options: &'a Options,
    propeller: &'a PropellerOptions,
}

/// Result of a search.
struct Attempt<T: Real> {
    /// The translations that were removed from the data before the search.
    centres: Vec<Motion>,
    /// The data without these and without the smooth phase of each blade: [samples, coils].
    values: Vec<Complex<T>>,
    /// The sum of each blade's image, for its mean phase.
    phases: Vec<Complex<f64>>,
    /// Motion of the data as measured.
    found: Found,
}

impl Search<'_> {
    /// Searches the data, [samples, coils], from which the translations `centres` are removed first.
    fn run<T: Real>(&self, measured: &[Complex<T>], centres: Vec<Motion>) -> Result<Attempt<T>> {
        let (blades, of_blade) = (self.blades, self.blades.samples());
        let samples = blades.all.len() * of_blade;
        let mut values = try_collect(measured.len(), WHAT, measured.iter().copied())?;
        for (m, centre) in (0..samples).map(|m| (m, &centres[m / of_blade])) {
            if centre.rigid.translation != [0.0; 2] {
                let factor = centre.factor((self.k)(m));
                for value in values[m..].iter_mut().step_by(samples) {
                    *value = narrow(wide(*value) * factor);
                }
            }
        }
        let smooth = self.propeller.phase == BladePhase::Smooth;
        let mut phases = try_vec(blades.all.len(), Complex::default(), WHAT)?;
        if smooth {
            let mut correction = PhaseCorrection::new(Level::choose(self.options.simd)?, blades)?;
            for coil in values.chunks_exact_mut(samples) {
                for ((blade, data), phase) in blades.all.iter().zip(coil.chunks_exact_mut(of_blade)).zip(&mut phases) {
                    interrupt::check("the phase of blades")?;
                    *phase += correction.remove(blade, blades.radius, data);
                }
            }
        }
        // Without their phases coils add up to one that sees all of the object.
        let channels = if smooth { 1 } else { values.len() / samples };
        let channel =
            |i: usize| -> Complex<f64> { values[i..].iter().step_by(channels * samples).map(|&z| wide(z)).sum() };
        let channels = try_collect(channels * samples, WHAT, (0..channels * samples).map(channel))?;
        let data = Data { blades, k: self.k, channels: &channels, dims: self.dims, options: self.options };
        let mut found = motion::find(&data, self.propeller)?;
        if self.propeller.translation {
            motion::add_translations(&mut found.motions, &centres)?;
        }
        Ok(Attempt { centres, values, phases, found })
    }
}

impl<T: Real> Attempt<T> {
    /// The sum of the blades' correlations.
    fn agreement(&self) -> f64 {
        self.found.correlations.iter().sum()
    }

    /// Whether the object may have been outside the small images.
    fn is_doubtful(&self, dims: &[usize; 2]) -> bool {
        let Found { motions, correlations, weights } = &self.found;
        let is_far = |m: &Motion| (0..2).any(|a| m.rigid.translation[a].abs() > NOTABLE_TRANSLATION * dims[a] as f64);
        correlations.iter().any(|&c| c < DOUBTFUL_CORRELATION)
            || weights.iter().any(|&w| w < LEAST_WEIGHT)
            || motions.iter().any(is_far)
    }
}
