//! Motion correction for PROPELLER (Pipe, Magn. Reson. Med. 42:963, 1999).
//!
//! Every blade of lines measures the centre of k-space again, from which the object's motion between blades is
//! estimated. The samples are then moved to their positions relative to the object at rest.
//!
//! `blades` recognises the trajectory, `phase` removes the phase of each blade, and `motion` estimates rotations and
//! translations. The corrected scan is reconstructed as any other scan, by gridding or conjugate gradients.

mod blades;
mod corrected;
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
use motion::{BladeData, Motion, MotionEstimate};
use num_complex::Complex;
use phase::PhaseCorrection;

pub use corrected::{BladeMotion, Corrected};
pub use options::{BladePhase, PropellerOptions};

/// Name of the step in messages.
const WHAT: &str = "the corrected blades";
/// Number of iterations of the density weights of corrected samples.
///
/// If lines are 1 / voxels apart, weights converge slowly, and the usual change of 1e-3 stops too early. In a moving
/// scan of 17 x 24 x 960 samples, scan matrix 256, the error was 9.6 % with that change. It was 8.2 % after 50
/// iterations, and 7.8 % after 100. These take as much time as the estimation of motion. Without motion, the errors
/// were 8.5, 7.2 and 6.8 %. Errors of noisy data (SNR 5), and of scans with closer lines, differ by less than 2 % of
/// their value.
const WEIGHT_ITERATIONS: usize = 50;
/// Weight below which a blade has lost most of its influence on the image.
const LEAST_WEIGHT: f64 = 0.5;
/// Translation, as a share of the field of view, beyond which there is a warning: the object may have left the image.
const WIDE_TRANSLATION: f64 = 0.25;
/// Translation, as a share of the field of view, beyond which the true translation may be larger than the small images
/// can show.
const NOTABLE_TRANSLATION: f64 = 0.125;
/// Correlation below which the object may be outside the small images.
const DOUBTFUL_CORRELATION: f64 = 0.97;
/// Correlation with the other blades below which there is more than motion in the plane.
const LEAST_CORRELATION: f64 = 0.8;
/// Largest magnitude of a sample: sums of squares of larger ones may overflow.
const LARGEST: f64 = 1e100;
/// Share of the widest rotation of the search beyond which the true rotation may be wider.
const NEAR_WIDEST: f64 = 0.95;

impl<T: Real> Corrected<T> {
    /// Estimates and corrects the motion of blades in 2D data, [samples, coils, frames], independently for each frame.
    /// [`Corrected::memory`] estimates the bytes of this call; the memory limit includes only the density weights.
    ///
    /// Voxels are assumed to be square. Rotations are found up to 45 degrees from the mean. The geometry's weights are
    /// not used, because the corrected samples have different ones.
    ///
    /// Several coils are assumed to move with the object. If it turns far, their images at rest differ, and the motion
    /// is less precise.
    ///
    /// Incomplete blades are omitted with a warning: their motion, correlation and weight are 0.
    ///
    /// # Errors
    /// - The errors of [`Geometry::check`].
    /// - `SizeMismatch` for data of a different length, `NotFinite` with the index.
    /// - `Unsupported` in 3D, for a list of voxels, and for coil maps with [`BladePhase::Smooth`], which removes the
    ///   coils' phases from the data.
    /// - `InvalidArgument` for a trajectory that does not consist of blades, and if fewer than half of the blades or
    ///   fewer than two are complete.
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
                "k-space sample {m} is {}, but squares of numbers beyond {LARGEST:e} overflow: scale the data",
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
            corrected.correct_frame(frame, &blades, geometry, options, propeller, kspace)?;
        }
        corrected.check_results()?;
        corrected.warn(propeller, &geometry.dims);
        Ok(corrected)
    }

    /// Corrects the complete blades. The samples of incomplete blades stay unchanged, with weight 0.
    fn without_incomplete(
        blades: &Blades,
        geometry: &Geometry<'_, T>,
        options: &Options,
        propeller: &PropellerOptions,
        kspace: &[Complex<T>],
    ) -> Result<Self> {
        let (samples, samples_per_blade) = (geometry.samples(), blades.samples());
        let complete = || blades.first_lines.iter().map(|line| line * blades.readout);
        let complete_samples = blades.all.len() * samples_per_blade;
        let positions = || complete().flat_map(|first| first..first + samples_per_blade);
        let axis = |k: &&[T]| try_collect(complete_samples, WHAT, positions().map(|m| k[m]));
        let coordinates = geometry.coordinates.iter().map(axis).collect::<Result<Vec<_>>>()?;
        let arrays = kspace.len() / samples;
        let of_array = |i: usize| positions().map(move |m| kspace[i * samples + m]);
        let data = try_collect(complete_samples * arrays, WHAT, (0..arrays).flat_map(of_array))?;
        let part =
            Geometry { coordinates: coordinates.iter().map(|k| &k[..]).collect(), weights: None, ..geometry.clone() };
        let lines = PropellerOptions { lines: blades.lines, ..*propeller };
        let part_corrected = Corrected::new(&part, options, &lines, &data)?;
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
            let (whole, part) = (frame * samples, frame * complete_samples);
            for (axis, (to, from)) in corrected.coordinates.iter_mut().zip(&part_corrected.coordinates).enumerate() {
                for m in 0..samples {
                    to[whole + m] = T::coordinate(unwrapped(geometry.coordinates[axis], m).clamp(-0.5, 0.5));
                }
                positions().enumerate().for_each(|(i, m)| to[whole + m] = from[part + i]);
            }
            positions().enumerate().for_each(|(i, m)| corrected.weights[whole + m] = part_corrected.weights[part + i]);
            for (i, &number) in blades.numbers.iter().enumerate() {
                corrected.motion[frame * blades.count + number] =
                    part_corrected.motion[frame * part_corrected.blades + i];
            }
        }
        for array in 0..arrays {
            let (whole, part) = (array * samples, array * complete_samples);
            positions().enumerate().for_each(|(i, m)| corrected.kspace[whole + m] = part_corrected.kspace[part + i]);
        }
        Ok(corrected)
    }

    /// Corrects one frame.
    fn correct_frame(
        &mut self,
        frame: usize,
        blades: &Blades,
        geometry: &Geometry<'_, T>,
        options: &Options,
        propeller: &PropellerOptions,
        kspace: &[Complex<T>],
    ) -> Result<()> {
        let samples_per_blade = blades.samples();
        let (samples, coils) = (geometry.samples(), geometry.coils);
        let frame_data = frame * samples * coils..(frame + 1) * samples * coils;
        let k = |m: usize| [0, 1].map(|a| unwrapped(geometry.coordinates[a], m));
        let search = MotionSearch { blades, k: &k, dims: [geometry.dims[0], geometry.dims[1]], options, propeller };
        let SearchResult { centres, values, phases, estimate } = search.best(&kspace[frame_data.clone()])?;
        let MotionEstimate { motions, correlations, weights } = estimate;
        let corrected = &mut self.kspace[frame_data];
        corrected.copy_from_slice(&values);
        // Positions of the samples relative to the object at rest.
        let first = frame * samples;
        let mut is_inside = try_vec(samples, true, WHAT)?;
        for m in 0..samples {
            let motion = &motions[m / samples_per_blade];
            let factor = motion.after(&centres[m / samples_per_blade]).factor(k(m));
            for value in corrected[m..].iter_mut().step_by(samples) {
                *value = narrow(wide(*value) * factor);
            }
            let position = motion.rigid.back(k(m));
            is_inside[m] = position.iter().all(|k| (-0.5..0.5).contains(k));
            for (axis, position) in self.coordinates.iter_mut().zip(position) {
                axis[first + m] = T::coordinate(position.clamp(-0.5, 0.5));
            }
        }
        let smooth = propeller.phase == BladePhase::Smooth;
        for (b, out) in self.motion[frame * self.blades..(frame + 1) * self.blades].iter_mut().enumerate() {
            *out = BladeMotion {
                rotation: motions[b].rigid.angle.to_degrees(),
                translation: motions[b].rigid.translation,
                phase: if smooth { phases[b].arg() } else { motions[b].phase },
                correlation: correlations[b],
                weight: weights[b],
            };
        }
        interrupt::check(WHAT)?;
        self.set_weights(first, &is_inside, |m| weights[m / samples_per_blade], &search)
    }

    /// Sets the density weights of a frame, whose samples begin at `first`. Pipe-Menon iterations start from the
    /// weights of blades; samples outside of k-space get weight 0.
    fn set_weights(
        &mut self,
        first: usize,
        is_inside: &[bool],
        weight: impl Fn(usize) -> f64,
        search: &MotionSearch<'_>,
    ) -> Result<()> {
        let inside = || (0..is_inside.len()).filter(|&m| is_inside[m]);
        let count = inside().count();
        let part = |axis: &Vec<T>| try_collect(count, WHAT, inside().map(|m| axis[first + m]));
        let k = [part(&self.coordinates[0])?, part(&self.coordinates[1])?];
        let start = try_collect(count, WHAT, inside().map(|m| T::of(weight(m))))?;
        let plan = Plan::of_step(&Geometry::new(&search.dims, &[&k[0], &k[1]]), search.options)?;
        let density = Density::PipeMenon { iterations: WEIGHT_ITERATIONS, tolerance: 0.0 };
        let density = plan.density_from(density, &start)?;
        inside().zip(density).for_each(|(m, w)| self.weights[first + m] = w);
        Ok(())
    }

    /// Returns an error if a result is not finite.
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

    /// Warns of blades that disagree, and of motion that may be wrong.
    fn warn(&self, propeller: &PropellerOptions, dims: &[usize]) {
        let disagrees = |m: &&BladeMotion| m.correlation < LEAST_CORRELATION || m.weight < LEAST_WEIGHT;
        let poor = self.motion.iter().filter(disagrees).count();
        // The motion of a blade that disagrees is meaningless.
        let agreeing = || self.motion.iter().filter(|m| !disagrees(m));
        let is_wide = |m: &&BladeMotion| m.rotation.abs() > NEAR_WIDEST * motion::WIDEST.to_degrees();
        let wide = agreeing().filter(is_wide).count();
        let all = self.motion.len();
        if poor > 0 {
            let message = format!(
                "{poor} of {all} blades disagree with the others near the centre of k-space (a correlation of less than \
                 {LEAST_CORRELATION}, or a weight of less than {LEAST_WEIGHT}): the object moved through the plane, or the \
                 phase of blades is not smooth, or blades do not have {} lines; omit these blades, or measure them \
                 again",
                self.lines
            );
            raise(WarningKind::Blades, message);
        }
        let far = |m: &&BladeMotion| (0..2).any(|a| m.translation[a].abs() > WIDE_TRANSLATION * dims[a] as f64);
        let far = agreeing().filter(far).count();
        if far > 0 {
            let message = format!(
                "{far} of {all} blades are moved by more than a quarter of the field of view, so that parts of the object \
                 may be outside the image, which shows its mean position; omit these blades, or measure them again"
            );
            raise(WarningKind::Blades, message);
        }
        if propeller.rotation && wide > 0 {
            let message = format!(
                "{wide} of {all} blades seem to be turned by {:.0} degrees or more, but rotations are found only up to \
                 {:.0}: the object may look the same at all angles, or the blades may be in a different order",
                NEAR_WIDEST * motion::WIDEST.to_degrees(),
                motion::WIDEST.to_degrees()
            );
            raise(WarningKind::Blades, message);
        }
    }

    /// Reconstructs the corrected scan by gridding, as [`Plan::grid`] does. `geometry` is that of the original scan.
    ///
    /// # Errors
    /// The errors of [`Plan::new`] and [`Plan::grid`].
    pub fn grid(&self, geometry: &Geometry<'_, T>, options: &Options, image: &mut [Complex<T>]) -> Result<()> {
        let (samples, frames) = (geometry.samples(), geometry.frames);
        let arrays = if geometry.coil_maps.is_some() { 1 } else { geometry.coils };
        let needed = geometry.voxel_count() * arrays * frames;
        check_len("image voxels", image.len(), needed, "voxels times images times frames")?;
        let mut whole = try_vec(image.len(), Complex::default(), "the images of corrected blades")?;
        let mut plan: Option<Plan<T>> = None;
        for (frame, image) in whole.chunks_exact_mut(needed / frames).enumerate() {
            let own = frame * samples..(frame + 1) * samples;
            let k = [&self.coordinates[0][own.clone()], &self.coordinates[1][own.clone()]];
            let of_frame =
                Geometry { coordinates: k.to_vec(), weights: Some(&self.weights[own]), frames: 1, ..geometry.clone() };
            match &plan {
                Some(plan) => plan.set_trajectory(&of_frame)?,
                None => plan = Some(Plan::new(&of_frame, options)?),
            }
            let data = samples * geometry.coils;
            let plan = plan.as_ref().expect("set above");
            plan.grid(&self.kspace[frame * data..(frame + 1) * data], Sink::from(image))?;
        }
        image.copy_from_slice(&whole);
        Ok(())
    }
}

/// Search for the motion of the blades of one frame.
struct MotionSearch<'a> {
    blades: &'a Blades,
    k: &'a dyn Fn(usize) -> [f64; 2],
    dims: [usize; 2],
    options: &'a Options,
    propeller: &'a PropellerOptions,
}

/// Result of a search.
struct SearchResult<T: Real> {
    /// Translations that were removed from the data before the search.
    centres: Vec<Motion>,
    /// Data without these translations and without the smooth phase of each blade: [samples, coils].
    values: Vec<Complex<T>>,
    /// Sum of each blade's image, for its mean phase.
    phases: Vec<Complex<f64>>,
    /// Motion of the data as measured.
    estimate: MotionEstimate,
}

impl MotionSearch<'_> {
    /// Searches the data, [samples, coils]. If the result is doubtful, searches again with the object's centre moved to
    /// the middle of the image, and returns the better result.
    ///
    /// An object far from the middle extends beyond the small images that motion is estimated from, and appears at the
    /// opposite side of a blade's image. Its centre is therefore moved to the middle, or to the centre that most blades
    /// have: the centre of an object as wide as the field of view is uncertain.
    fn best<T: Real>(&self, measured: &[Complex<T>]) -> Result<SearchResult<T>> {
        let count = self.blades.all.len();
        let mut best = self.run(measured, try_vec(count, Motion::default(), WHAT)?)?;
        if !self.propeller.translation || !best.is_doubtful(&self.dims) {
            return Ok(best);
        }
        let samples = count * self.blades.samples();
        let mut centres = try_vec(count, Motion::default(), WHAT)?;
        for (b, centre) in centres.iter_mut().enumerate() {
            centre.rigid.translation = motion::centre_of_energy(self.blades, b, measured, samples, self.k);
        }
        let common = motion::common_translation(&centres)?;
        for origin in [common, [0.0; 2]] {
            let relative = |c: &Motion| {
                let [x, y] = c.rigid.translation;
                let rigid = RigidMotion { translation: [x - origin[0], y - origin[1]], ..c.rigid };
                Motion { rigid, ..*c }
            };
            let result = self.run(measured, try_collect(count, WHAT, centres.iter().map(relative))?)?;
            if result.agreement() > best.agreement() {
                best = result;
            }
        }
        Ok(best)
    }

    /// Searches the data, [samples, coils], after removing the translations `centres`.
    fn run<T: Real>(&self, measured: &[Complex<T>], centres: Vec<Motion>) -> Result<SearchResult<T>> {
        let (blades, samples_per_blade) = (self.blades, self.blades.samples());
        let samples = blades.all.len() * samples_per_blade;
        let mut values = try_collect(measured.len(), WHAT, measured.iter().copied())?;
        for (m, centre) in (0..samples).map(|m| (m, &centres[m / samples_per_blade])) {
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
                for ((blade, data), phase) in
                    blades.all.iter().zip(coil.chunks_exact_mut(samples_per_blade)).zip(&mut phases)
                {
                    interrupt::check("the phase of blades")?;
                    *phase += correction.remove(blade, blades.radius, data);
                }
            }
        }
        // Without their phases, the coils add up to a single one that receives all of the object.
        let channels = if smooth { 1 } else { values.len() / samples };
        let channel =
            |i: usize| -> Complex<f64> { values[i..].iter().step_by(channels * samples).map(|&z| wide(z)).sum() };
        let channels = try_collect(channels * samples, WHAT, (0..channels * samples).map(channel))?;
        let data = BladeData { blades, k: self.k, channels: &channels, dims: self.dims, options: self.options };
        let mut estimate = motion::estimate(&data, self.propeller)?;
        if self.propeller.translation {
            motion::add_translations(&mut estimate.motions, &centres)?;
        }
        Ok(SearchResult { centres, values, phases, estimate })
    }
}

impl<T: Real> SearchResult<T> {
    /// Returns the sum of the blades' correlations.
    fn agreement(&self) -> f64 {
        self.estimate.correlations.iter().sum()
    }

    /// Returns whether the object may have been outside the small images.
    fn is_doubtful(&self, dims: &[usize; 2]) -> bool {
        let MotionEstimate { motions, correlations, weights } = &self.estimate;
        let is_far = |m: &Motion| (0..2).any(|a| m.rigid.translation[a].abs() > NOTABLE_TRANSLATION * dims[a] as f64);
        correlations.iter().any(|&c| c < DOUBTFUL_CORRELATION)
            || weights.iter().any(|&w| w < LEAST_WEIGHT)
            || motions.iter().any(is_far)
    }
}
