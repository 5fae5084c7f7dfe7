//! Estimation of the rotation, translation and phase of each blade from the samples of all blades near the centre of
//! k-space (Pipe 1999).
//!
//! During blade b, the object is turned by theta_b about the middle of the image, then moved by t_b voxels. The blade
//! measures exp(i phi_b) exp(-i 2 pi k.t_b) S(R(-theta_b) k), where S is the k-space of the object at rest.
//!
//! 1. Rotations are searched in magnitudes, which are independent of translations.
//! 2. Translations are searched by correlation.
//! 3. Both are refined alternately: S is fitted to the data of all blades as the Fourier transform of a small image,
//!    and the motion of each blade is fitted to S (Gauss-Newton). The refinement begins near the centre. Samples
//!    further out, where fewer blades overlap, make it more precise.

use super::blades::Blades;
use super::options::PropellerOptions;
use crate::base::dense::solve_symmetric;
use crate::base::error::{try_collect, try_reserve, try_vec, Result};
use crate::base::geometry::Geometry;
use crate::base::options::{Device, LambdaUnit, Options};
use crate::base::real::{wide, Real};
use crate::base::rigid_motion::RigidMotion;
use crate::plan::Plan;
use crate::reconstruction::cg::CgOptions;
use num_complex::Complex;
use std::f64::consts::{FRAC_PI_4, TAU};

/// Name of the step in messages.
const WHAT: &str = "the motion of blades";
/// Largest rotation of the search in radians, to either side.
pub(super) const WIDEST: f64 = FRAC_PI_4;
/// Relative error of the transforms.
const TOLERANCE: f64 = 1e-6;
/// Field of view of the small image, relative to that of the image: the object may have moved out of the latter.
const MARGIN: f64 = 1.25;
/// Number of voxels of the small image per voxel that the radius in k-space requires.
const FINER: f64 = 1.5;
/// Number of conjugate-gradient iterations per fit of the image; they start from the previous image.
const FITTING: usize = 12;
/// Weight of the identity prior in these fits, relative to the diagonal; it determines voxels that no blade measures.
const LAMBDA: f64 = 1e-4;
/// Number of trial rotations per rotation that the disc can resolve.
const TRIES: f64 = 3.0;
/// Number of rounds of the search: against one blade, then against all blades of the first round.
const ROUNDS: usize = 2;
/// Maximum number of refinements in each disc.
const REFINEMENTS: usize = 15;
/// Changes of rotations in degrees and of translations in voxels below which refinements stop.
const SETTLED: (f64, f64) = (2e-3, 2e-3);
/// Radii of discs, relative to the radius that all blades cover.
pub(super) const DISCS: [f64; 3] = [1.0, 2.0, 4.0];
/// Smallest mean number of blades that overlap at a disc's edge.
const MEETING: f64 = 2.5;
/// Expected motion before any measurement, in radians and in shares of the field of view. Motion that the data do not
/// determine (the rotation of a round object) thus stays small.
const EXPECTED: (f64, f64) = (0.5, 0.25);
/// Share of a blade's energy that may differ from the other blades for a weight of about one half.
const TOLERATED: f64 = 0.01;

/// Position of the object during a blade, and the blade's phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Motion {
    pub rigid: RigidMotion,
    /// Phase in radians.
    pub phase: f64,
}

impl Motion {
    /// Creates a rotation.
    fn of_angle(angle: f64) -> Motion {
        Motion { rigid: RigidMotion { angle, ..RigidMotion::default() }, phase: 0.0 }
    }

    /// Returns this motion for data whose translation `centre` has been removed.
    pub fn after(&self, centre: &Motion) -> Motion {
        let [from, own] = [centre, self].map(|m| m.rigid.translation);
        let rigid = RigidMotion { translation: [own[0] - from[0], own[1] - from[1]], ..self.rigid };
        Motion { rigid, ..*self }
    }

    /// Returns the factor of the sample at k for the object at rest.
    pub fn factor(&self, k: [f64; 2]) -> Complex<f64> {
        let [x, y] = self.rigid.translation;
        Complex::from_polar(1.0, TAU * (k[0] * x + k[1] * y) - self.phase)
    }
}

/// Returns the centre of the energy in the image of blade `b`, in voxels along x and y. Each channel of `data` has
/// `samples` samples.
///
/// The sum over the blade of products of neighbouring samples, d(k + step) conj(d(k)), is the mean of exp(-i 2 pi
/// step.r) weighted by the energy at r, for any phase of the image. A position beyond half the field of view of the
/// lines is off by one field of view, which changes no sample of the blade.
pub(super) fn centre_of_energy<T: Real>(
    blades: &Blades,
    b: usize,
    data: &[Complex<T>],
    samples: usize,
    k: &dyn Fn(usize) -> [f64; 2],
) -> [f64; 2] {
    let (blade, samples_per_blade) = (&blades.all[b], blades.samples());
    let at = |line: usize, sample: usize| b * samples_per_blade + blade.index(line, sample, blades.readout);
    let [u, v] = blade.centre();
    let steps = blade.steps();
    let inside = |line: usize, sample: usize| {
        ((line as f64 - u) * steps[0]).hypot((sample as f64 - v) * steps[1]) <= blades.radius
    };
    let mut sums = [Complex::<f64>::default(); 2];
    for channel in data.chunks_exact(samples) {
        for line in 0..blades.lines {
            for sample in (0..blades.readout).filter(|&sample| inside(line, sample)) {
                let own = wide(channel[at(line, sample)]).conj();
                if line + 1 < blades.lines {
                    sums[0] += wide(channel[at(line + 1, sample)]) * own;
                }
                if sample + 1 < blades.readout {
                    sums[1] += wide(channel[at(line, sample + 1)]) * own;
                }
            }
        }
    }
    // The steps across and along the lines are at a right angle.
    let mut centre = [0.0; 2];
    for (sum, [line, sample]) in sums.iter().zip([[1, 0], [0, 1]]) {
        let (from, to) = (k(at(0, 0)), k(at(line, sample)));
        let step = [to[0] - from[0], to[1] - from[1]];
        let square = step[0] * step[0] + step[1] * step[1];
        let turns = -sum.arg() / TAU;
        (0..2).for_each(|a| centre[a] += turns * step[a] / square);
    }
    centre
}

/// Returns the median of the translations along x and along y.
pub(super) fn common_translation(motions: &[Motion]) -> Result<[f64; 2]> {
    let mut common = [0.0; 2];
    for (axis, common) in common.iter_mut().enumerate() {
        let of_axis = motions.iter().map(|m| m.rigid.translation[axis]);
        let mut all = try_collect(motions.len(), WHAT, of_axis)?;
        all.sort_unstable_by(f64::total_cmp);
        *common = all[all.len() / 2];
    }
    Ok(common)
}

/// Adds the translations that were removed from the data, and subtracts the mean motion.
pub(super) fn add_translations(motions: &mut [Motion], centres: &[Motion]) -> Result<()> {
    for (motion, centre) in motions.iter_mut().zip(centres) {
        (0..2).for_each(|a| motion.rigid.translation[a] += centre.rigid.translation[a]);
    }
    let mut rigid = try_collect(motions.len(), WHAT, motions.iter().map(|m| m.rigid))?;
    RigidMotion::centre(&mut rigid);
    motions.iter_mut().zip(rigid).for_each(|(motion, rigid)| motion.rigid = rigid);
    Ok(())
}

/// Estimated motion of all blades.
pub(super) struct MotionEstimate {
    /// Motion of each blade, relative to the mean motion.
    pub motions: Vec<Motion>,
    /// Correlation of each blade's central data with all blades.
    pub correlations: Vec<f64>,
    /// Weight of each blade in the image.
    pub weights: Vec<f64>,
}

/// Data of the blades.
pub(super) struct BladeData<'a> {
    pub blades: &'a Blades,
    /// Returns the coordinates of a sample.
    pub k: &'a dyn Fn(usize) -> [f64; 2],
    /// Samples, [samples, channels].
    pub channels: &'a [Complex<f64>],
    pub dims: [usize; 2],
    pub options: &'a Options,
}

/// Estimates the motion of all blades relative to the mean motion.
pub(super) fn estimate(data: &BladeData<'_>, options: &PropellerOptions) -> Result<MotionEstimate> {
    let count = data.blades.all.len();
    let mut motions = try_vec(count, Motion::default(), WHAT)?;
    let mut disc = Disc::new(data, data.blades.radius)?;
    let mut fits = try_vec(count, 1.0, WHAT)?;
    if options.finds_phase() {
        disc.phases_of_centres(&mut motions);
    }
    disc.fit(&motions, &fits)?;
    if options.finds_motion() {
        // The blade that agrees best with all others is least likely to be an outlier.
        let agreement = disc.agreement()?;
        let best = (0..count).max_by(|&a, &b| agreement[a].total_cmp(&agreement[b])).unwrap_or(0);
        for round in 0..ROUNDS {
            if round == 0 {
                fits.fill(0.0);
                fits[best] = 1.0;
            } else {
                fits = weights(&disc.agreement()?)?;
            }
            disc.fit(&motions, &fits)?;
            if options.rotation {
                disc.search_rotations(&mut motions)?;
            }
            if options.translation {
                disc.search_translations(&mut motions, options)?;
            }
            disc.fit(&motions, &fits)?;
        }
        for times in DISCS {
            let radius = times * data.blades.radius;
            if times > 1.0 {
                if !is_disc_covered(data.blades, radius) {
                    break;
                }
                disc = Disc::new(data, radius)?;
            }
            for _ in 0..REFINEMENTS {
                disc.fit(&motions, &fits)?;
                let change = disc.refine(&mut motions, options)?;
                fits = weights(&disc.agreement()?)?;
                if change[0].to_degrees() < SETTLED.0 && change[1] < SETTLED.1 {
                    break;
                }
            }
        }
        disc = Disc::new(data, data.blades.radius)?;
        disc.fit(&motions, &fits)?;
    }
    let correlations = disc.agreement()?;
    let weights = if options.weighting { weights(&correlations)? } else { try_vec(count, 1.0, WHAT)? };
    log::debug!(
        "motion of {count} blades, correlations from {:.4}",
        correlations.iter().fold(1.0, |a: f64, &b| a.min(b))
    );
    Ok(MotionEstimate { motions, correlations, weights })
}

/// Returns whether enough blades meet at the edge of a disc of this radius, which may be larger than the one that every
/// blade covers.
pub(super) fn is_disc_covered(blades: &Blades, radius: f64) -> bool {
    let lines = blades.all.iter().map(|b| blades.lines as f64 * b.steps()[0]).sum::<f64>();
    lines >= MEETING * 0.5 * TAU * radius
}

/// Returns the size of the small image that resolves a disc of this radius, for an image of `dims` voxels.
pub(super) fn disc_image_dims(dims: [usize; 2], radius: f64) -> [usize; 2] {
    dims.map(|n| 2 * (FINER * radius * (MARGIN * n as f64)).ceil() as usize)
}

/// Returns the weights of blades from their correlations. A blade loses weight if the others do not explain a larger
/// share of its energy than is usual in this scan; the usual share is noise.
fn weights(correlations: &[f64]) -> Result<Vec<f64>> {
    let part = |c: &f64| (1.0 - c * c).clamp(0.0, 1.0);
    let mut parts = try_collect(correlations.len(), WHAT, correlations.iter().map(part))?;
    parts.sort_unstable_by(f64::total_cmp);
    let usual = parts[parts.len() / 2];
    let weight = |c: &f64| ((TOLERATED + usual) / (TOLERATED + part(c))).min(1.0);
    try_collect(correlations.len(), WHAT, correlations.iter().map(weight))
}

/// Samples of all blades in a disc about k = 0, and the small image that is fitted to them.
struct Disc<'a> {
    data: &'a BladeData<'a>,
    radius: f64,
    k: Vec<[f64; 2]>,
    /// Index of each blade's first sample, and the total number of samples.
    starts: Vec<usize>,
    channels: usize,
    /// Measured samples, [samples, channels].
    measured: Vec<Complex<f64>>,
    /// Samples without the assumed motion.
    corrected: Vec<Complex<f64>>,
    /// Samples that the image would have.
    model: Vec<Complex<f64>>,
    dims: [usize; 2],
    /// Size of a voxel of the small image, in voxels of the image.
    zoom: [f64; 2],
    image: Vec<Complex<f64>>,
    q: [Vec<f64>; 2],
    weights: Vec<f64>,
    plan: Option<Plan<f64>>,
}

impl<'a> Disc<'a> {
    /// Selects the samples within `radius` and allocates the small image.
    fn new(data: &'a BladeData<'a>, radius: f64) -> Result<Self> {
        let (count, samples_per_blade) = (data.blades.all.len(), data.blades.samples());
        let inside = |m: &usize| {
            let [x, y] = (data.k)(*m);
            x * x + y * y <= radius * radius
        };
        let mut starts = try_reserve(count + 1, WHAT)?;
        starts.push(0);
        for b in 0..count {
            starts.push(starts[b] + (b * samples_per_blade..(b + 1) * samples_per_blade).filter(inside).count());
        }
        let samples = starts[count];
        let all = count * samples_per_blade;
        let k = try_collect(samples, WHAT, (0..all).filter(inside).map(|m| (data.k)(m)))?;
        let channels = data.channels.len() / all;
        let mut measured = try_reserve(samples * channels, WHAT)?;
        for channel in data.channels.chunks_exact(all) {
            measured.extend((0..all).filter(inside).map(|m| channel[m]));
        }
        let fov = data.dims.map(|n| MARGIN * n as f64);
        let dims = disc_image_dims(data.dims, radius);
        let of_samples = || try_vec(samples * channels, Complex::default(), WHAT);
        Ok(Disc {
            data,
            radius,
            starts,
            channels,
            measured,
            corrected: of_samples()?,
            model: of_samples()?,
            dims,
            zoom: [fov[0] / dims[0] as f64, fov[1] / dims[1] as f64],
            image: try_vec(dims[0] * dims[1] * channels, Complex::default(), WHAT)?,
            q: [try_vec(samples, 0.0, WHAT)?, try_vec(samples, 0.0, WHAT)?],
            weights: try_vec(samples, 1.0, WHAT)?,
            plan: None,
            k,
        })
    }

    /// Returns the samples of a blade.
    fn blade(&self, b: usize) -> std::ops::Range<usize> {
        self.starts[b]..self.starts[b + 1]
    }

    /// Returns the samples of a blade in an array of all channels.
    fn blade_in(&self, b: usize, channel: usize) -> std::ops::Range<usize> {
        let (blade, samples) = (self.blade(b), self.k.len());
        channel * samples + blade.start..channel * samples + blade.end
    }

    /// Moves the samples to their positions relative to the object at rest, and corrects their phase.
    fn set_motions(&mut self, motions: &[Motion], blade_weights: &[f64]) -> Result<()> {
        let samples = self.k.len();
        for (b, motion) in motions.iter().enumerate() {
            for m in self.blade(b) {
                let position = motion.rigid.back(self.k[m]);
                (0..2).for_each(|a| self.q[a][m] = position[a] * self.zoom[a]);
                self.weights[m] = blade_weights[b];
                let factor = motion.factor(self.k[m]);
                (0..self.channels).for_each(|c| {
                    let i = c * samples + m;
                    self.corrected[i] = self.measured[i] * factor;
                });
            }
        }
        let k = [&self.q[0][..], &self.q[1][..]];
        let geometry = Geometry::new(&self.dims, &k).weights(&self.weights).coils(self.channels);
        match &self.plan {
            Some(plan) => plan.set_trajectory(&geometry)?,
            None => self.plan = Some(Plan::of_step(&geometry, &small_plan_options(self.data.options))?),
        }
        Ok(())
    }

    /// Fits the image to the blades' data, according to the blades' weights, and predicts its samples.
    fn fit(&mut self, motions: &[Motion], blade_weights: &[f64]) -> Result<()> {
        self.set_motions(motions, blade_weights)?;
        let initial = try_collect(self.image.len(), WHAT, self.image.iter().copied())?;
        let options = CgOptions {
            iterations: FITTING,
            lambda: LAMBDA,
            lambda_unit: LambdaUnit::Relative,
            initial: Some(&initial),
            ..CgOptions::default()
        };
        plan_of(&self.plan).cg(&self.corrected[..], &mut self.image[..], &options)?;
        self.predict()
    }

    /// Computes the samples of the image.
    fn predict(&mut self) -> Result<()> {
        plan_of(&self.plan).forward(&self.image[..], &mut self.model[..])
    }

    /// Returns the correlation of each blade's data with the samples of the image.
    fn agreement(&self) -> Result<Vec<f64>> {
        let correlation = |b: usize| {
            let mut sums = (Complex::<f64>::default(), 0.0, 0.0);
            for range in (0..self.channels).map(|c| self.blade_in(b, c)) {
                for (d, m) in self.corrected[range.clone()].iter().zip(&self.model[range]) {
                    sums = (sums.0 + m.conj() * d, sums.1 + d.norm_sqr(), sums.2 + m.norm_sqr());
                }
            }
            let energy = (sums.1 * sums.2).sqrt();
            // False also if the sums overflow or are NaN.
            if energy > 0.0 {
                (sums.0.norm() / energy).min(1.0)
            } else {
                0.0
            }
        };
        try_collect(self.starts.len() - 1, WHAT, (0..self.starts.len() - 1).map(correlation))
    }

    /// Sets the phase of each blade to that of its samples next to k = 0, which no motion changes, relative to the
    /// first blade.
    fn phases_of_centres(&self, motions: &mut [Motion]) {
        let samples = self.k.len();
        let near = self.data.blades.all.iter().map(|b| 2.0 * b.steps()[0]).fold(0.0, f64::max);
        let centre = |b: usize, c: usize| -> Complex<f64> {
            let weight = |m: usize| (1.0 - self.k[m][0].hypot(self.k[m][1]) / near).max(0.0);
            self.blade(b).map(|m| self.measured[c * samples + m] * weight(m)).sum()
        };
        for (b, motion) in motions.iter_mut().enumerate() {
            let products = (0..self.channels).map(|c| centre(b, c) * centre(0, c).conj());
            motion.phase = products.sum::<Complex<f64>>().arg();
        }
    }

    /// Sets the rotation of each blade to the one with the most similar magnitudes of blade and image.
    fn search_rotations(&mut self, motions: &mut [Motion]) -> Result<()> {
        let count = motions.len();
        let finest = 1.0 / (self.radius * self.data.dims.into_iter().fold(1, usize::max) as f64);
        let tries = (WIDEST * TRIES / finest).ceil() as usize;
        let mut best = try_vec(count, (f64::NEG_INFINITY, 0.0), WHAT)?;
        let rings = Rings::new(self)?;
        let mut sums = try_vec(rings.count, [0.0; 6], WHAT)?;
        let mut turned = try_vec(count, Motion::default(), WHAT)?;
        let equal = try_vec(count, 1.0, WHAT)?;
        for i in 0..=2 * tries {
            // The search begins at 0, so that the smaller of equally good rotations is selected.
            let size = i.div_ceil(2) as f64 / tries as f64 * WIDEST;
            let angle = if i % 2 == 0 { size } else { -size };
            turned.fill(Motion::of_angle(angle));
            self.set_motions(&turned, &equal)?;
            self.predict()?;
            for (b, best) in best.iter_mut().enumerate() {
                let score = rings.score(self, b, &mut sums);
                if score > best.0 {
                    *best = (score, angle);
                }
            }
        }
        motions.iter_mut().zip(&best).for_each(|(motion, best)| motion.rigid.angle = best.1);
        Ok(())
    }

    /// Sets the translation of each blade to the one with the largest correlation of data and image.
    fn search_translations(&mut self, motions: &mut [Motion], options: &PropellerOptions) -> Result<()> {
        let samples = self.k.len();
        let turned = try_collect(motions.len(), WHAT, motions.iter().map(|m| Motion::of_angle(m.rigid.angle)))?;
        let equal = try_vec(motions.len(), 1.0, WHAT)?;
        self.set_motions(&turned, &equal)?;
        self.predict()?;
        // The products extend twice as far as the disc.
        let dims = self.dims.map(|n| 2 * n);
        let zoom = self.zoom.map(|zoom| 0.5 * zoom);
        let mut peaks = try_vec(dims[0] * dims[1], Complex::default(), WHAT)?;
        for (b, motion) in motions.iter_mut().enumerate() {
            let blade = self.blade(b);
            let product = |m: usize| -> Complex<f64> {
                (0..self.channels).map(|c| c * samples + m).map(|i| self.model[i].conj() * self.measured[i]).sum()
            };
            let products = try_collect(blade.len(), WHAT, blade.clone().map(product))?;
            let axis = |a: usize| try_collect(blade.len(), WHAT, self.k[blade.clone()].iter().map(|k| k[a] * zoom[a]));
            let k = [axis(0)?, axis(1)?];
            let plan = Plan::of_step(&Geometry::new(&dims, &[&k[0], &k[1]]), &small_plan_options(self.data.options))?;
            plan.adjoint(&products[..], &mut peaks[..])?;
            let mut best = (Complex::default(), [0.0; 2]);
            for (i, peak) in peaks.iter().enumerate() {
                let place = [i % dims[0], i / dims[0]];
                let shift = [0, 1].map(|a| (place[a] as f64 - (dims[a] / 2) as f64) * zoom[a]);
                // Shifts that the data can distinguish.
                if shift.iter().zip(self.data.dims).all(|(s, n)| s.abs() <= 0.5 * n as f64)
                    && peak.norm_sqr() > best.0.norm_sqr()
                {
                    best = (*peak, shift);
                }
            }
            motion.rigid.translation = best.1;
            if options.finds_phase() {
                motion.phase = best.0.arg();
            }
        }
        Ok(())
    }

    /// Performs a Gauss-Newton step for each blade against the image, then subtracts the mean motion. Returns the
    /// largest change of an angle and of a shift.
    fn refine(&mut self, motions: &mut [Motion], options: &PropellerOptions) -> Result<[f64; 2]> {
        // The derivatives of the model by the angle follow from those of the image's transform: the transforms of x and
        // y times the image.
        let slope = |axis: usize| -> Result<Vec<Complex<f64>>> {
            let n = self.dims;
            let voxel = |i: usize| if axis == 0 { i % n[0] } else { i / n[0] % n[1] };
            let factor = |i: usize| -TAU * (voxel(i) as f64 - (n[axis] / 2) as f64) * self.zoom[axis];
            let times = |(i, x): (usize, &Complex<f64>)| x * Complex::new(0.0, factor(i));
            let image = try_collect(self.image.len(), WHAT, self.image.iter().enumerate().map(times))?;
            let mut slope = try_vec(self.model.len(), Complex::default(), WHAT)?;
            plan_of(&self.plan).forward(&image[..], &mut slope[..])?;
            Ok(slope)
        };
        let slopes = [slope(0)?, slope(1)?];
        let previous = try_collect(motions.len(), WHAT, motions.iter().copied())?;
        let fov = self.data.dims.into_iter().fold(0, usize::max) as f64;
        let furthest = 0.25 / self.radius;
        for (b, motion) in motions.iter_mut().enumerate() {
            let (mut matrix, mut right, mut energy) = ([[0.0; 4]; 4], [0.0; 4], 0.0);
            for range in (0..self.channels).map(|c| self.blade_in(b, c)) {
                for (i, m) in range.zip(self.blade(b)) {
                    let (model, k) = (self.model[i], self.k[m]);
                    let place = motion.rigid.back(k);
                    let turn = slopes[0][i] * place[1] - slopes[1][i] * place[0];
                    let ramp = |a: usize| model * Complex::new(0.0, -TAU * k[a]);
                    let row = [turn, ramp(0), ramp(1), model * Complex::i()];
                    let rest = self.corrected[i] - model;
                    energy += rest.norm_sqr();
                    for (i, x) in row.iter().enumerate() {
                        right[i] += (x.conj() * rest).re;
                        for (j, y) in row.iter().enumerate() {
                            matrix[i][j] += (x.conj() * y).re;
                        }
                    }
                }
            }
            // Expected motion, relative to the noise.
            let noise = energy / (self.blade(b).len() * self.channels).max(1) as f64;
            let RigidMotion { angle, translation: [x, y] } = motion.rigid;
            let own = [angle, x, y, motion.phase];
            let expected = [EXPECTED.0, EXPECTED.1 * fov, EXPECTED.1 * fov, f64::INFINITY];
            let unknown = [options.rotation, options.translation, options.translation, options.finds_phase()];
            for i in 0..4 {
                let stiff = noise / (expected[i] * expected[i]);
                matrix[i][i] += stiff;
                right[i] -= stiff * own[i];
                if !unknown[i] {
                    matrix.iter_mut().for_each(|row| row[i] = 0.0);
                    (matrix[i], right[i]) = ([0.0; 4], 0.0);
                }
            }
            let step = solve_symmetric(matrix, right);
            motion.rigid.angle = (angle + step[0].clamp(-0.2, 0.2)).clamp(-WIDEST, WIDEST);
            (0..2).for_each(|a| motion.rigid.translation[a] += step[1 + a].clamp(-furthest, furthest));
            motion.phase += step[3].clamp(-1.0, 1.0);
        }
        subtract_mean(motions)?;
        let mut change = [0.0_f64; 2];
        for (previous, motion) in previous.iter().zip(motions.iter()) {
            let (previous, new) = (previous.rigid, motion.rigid);
            let shift = |a: usize| new.translation[a] - previous.translation[a];
            change = [change[0].max((new.angle - previous.angle).abs()), change[1].max(shift(0).hypot(shift(1)))];
        }
        Ok(change)
    }
}

/// Returns the plan of a disc, which [`Disc::set_motions`] has created.
fn plan_of(plan: &Option<Plan<f64>>) -> &Plan<f64> {
    plan.as_ref().expect("set_motions has been called")
}

/// Returns the options of the small plans.
pub(super) fn small_plan_options(options: &Options) -> Options {
    Options {
        device: Device::Cpu,
        tolerance: TOLERANCE,
        threads: options.threads,
        simd: options.simd,
        interrupt: options.interrupt.clone(),
        ..Options::default()
    }
}

/// Subtracts the mean motion and phase from all blades, as these cannot be distinguished from those of the object.
fn subtract_mean(motions: &mut [Motion]) -> Result<()> {
    let mut rigid = try_collect(motions.len(), WHAT, motions.iter().map(|m| m.rigid))?;
    RigidMotion::centre(&mut rigid);
    let phase: Complex<f64> = motions.iter().map(|m| Complex::from_polar(1.0, m.phase)).sum();
    for (motion, rigid) in motions.iter_mut().zip(rigid) {
        motion.rigid = rigid;
        motion.phase = (Complex::from_polar(1.0, motion.phase) * phase.conj()).arg();
    }
    Ok(())
}

/// Rings about k = 0, in which magnitudes are compared without their mean: the mean decreases steeply and contains no
/// information.
struct Rings {
    /// Ring of each sample.
    ring: Vec<usize>,
    /// Number of rings.
    count: usize,
}

impl Rings {
    /// Assigns the samples of a disc to rings.
    fn new(disc: &Disc<'_>) -> Result<Rings> {
        let fov = disc.data.dims.into_iter().fold(1, usize::max) as f64;
        let count = ((disc.radius * fov).round() as usize).max(2);
        let ring = |k: &[f64; 2]| ((k[0].hypot(k[1]) / disc.radius * count as f64) as usize).min(count - 1);
        Ok(Rings { ring: try_collect(disc.k.len(), WHAT, disc.k.iter().map(ring))?, count })
    }

    /// Returns the similarity of the magnitudes of a blade and of the model: the mean of their correlations in all
    /// rings, weighted by the number of samples. `sums` is a buffer with one element per ring.
    fn score(&self, disc: &Disc<'_>, b: usize, sums: &mut [[f64; 6]]) -> f64 {
        sums.fill([0.0; 6]);
        for c in 0..disc.channels {
            for (i, m) in disc.blade_in(b, c).zip(disc.blade(b)) {
                let [x, y] = [disc.measured[i], disc.model[i]].map(|z| z.norm_sqr().sqrt());
                let ring = &mut sums[self.ring[m]];
                ring.iter_mut().zip([1.0, x, y, x * x, y * y, x * y]).for_each(|(sum, value)| *sum += value);
            }
        }
        let correlation = |&[n, x, y, xx, yy, xy]: &[f64; 6]| {
            let spread = ((xx - x * x / n) * (yy - y * y / n)).sqrt();
            if spread > 0.0 {
                n * (xy - x * y / n) / spread
            } else {
                0.0
            }
        };
        sums.iter().map(correlation).sum()
    }
}
