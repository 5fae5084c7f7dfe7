//! The motion of blades: rotation, translation and phase of each, from what all blades measured about the centre of
//! k-space (Pipe 1999).
//!
//! Blade b of an object that is turned by theta_b about the middle of the image, then moved by t_b voxels, measures
//! exp(i phi_b) exp(-i 2 pi k.t_b) S(R(-theta_b) k), S being the k-space of the object at rest. First rotations are
//! searched for in magnitudes, which a translation leaves alone, then translations by correlation. Then both are
//! refined: in turns, S is fitted to the data of all blades as the Fourier transform of a small image, and the motion
//! of each blade to S (Gauss-Newton). What is near the centre goes first; what lies further out, where fewer blades
//! meet, makes it more precise.

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

const WHAT: &str = "the motion of blades";
/// Rotations that are searched, to either side.
pub(super) const WIDEST: f64 = FRAC_PI_4;
/// Relative error of the transforms.
const TOLERANCE: f64 = 1e-6;
/// The field of view of the small image, in that of the image: the object may have moved out of it.
const MARGIN: f64 = 1.25;
/// Voxels of the small image for each that the radius in k-space needs.
const FINER: f64 = 1.5;
/// Iterations of conjugate gradients each time that the image is fitted; it begins with the last image.
const FITTING: usize = 12;
/// The weight of the identity in them, which is also that of a voxel which no blade sees.
const LAMBDA: f64 = 1e-4;
/// Rotations that are tried, so many for each that the disc can tell apart.
const TRIES: f64 = 3.0;
/// Rounds of the search: against one blade, then against all of the first round.
const ROUNDS: usize = 2;
/// Refinements in each disc, at most.
const REFINEMENTS: usize = 15;
/// They end when no rotation changes by so many degrees, nor a translation by so many voxels.
const SETTLED: (f64, f64) = (2e-3, 2e-3);
/// The radii of discs, in that which all blades cover.
pub(super) const DISCS: [f64; 3] = [1.0, 2.0, 4.0];
/// The blades that must meet at a disc's edge, on average.
const MEETING: f64 = 2.5;
/// How uncertain motion is before anything was measured, in radians, and in parts of the field of view: what the data
/// do not tell (the rotation of a round object) stays small.
const EXPECTED: (f64, f64) = (0.5, 0.25);
/// The part of a blade's energy that may differ from the others' for its weight to be about a half.
const TOLERATED: f64 = 0.01;

/// Where the object was while a blade was measured, and the blade's phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Motion {
    pub rigid: RigidMotion,
    /// Radians.
    pub phase: f64,
}

impl Motion {
    fn of_angle(angle: f64) -> Motion {
        Motion { rigid: RigidMotion { angle, ..RigidMotion::default() }, phase: 0.0 }
    }

    /// This motion, for data whose translation `centre` was removed before.
    pub fn after(&self, centre: &Motion) -> Motion {
        let [from, own] = [centre, self].map(|m| m.rigid.translation);
        let rigid = RigidMotion { translation: [own[0] - from[0], own[1] - from[1]], ..self.rigid };
        Motion { rigid, ..*self }
    }

    /// What the sample at k is multiplied by for the object at rest.
    pub fn factor(&self, k: [f64; 2]) -> Complex<f64> {
        let [x, y] = self.rigid.translation;
        Complex::from_polar(1.0, TAU * (k[0] * x + k[1] * y) - self.phase)
    }
}

/// Returns the centre of the energy in the image of blade `b`, in voxels along x and y. Each channel of `data` has
/// `samples` samples.
///
/// A product of neighbouring samples d(k + step) conj(d(k)), summed over the blade, is the mean of exp(-i 2 pi step.r)
/// weighted by the energy at r, whatever the phase of the image. A position beyond half the field of view of the lines
/// comes out one field of view off, which changes no sample of the blade.
pub(super) fn centre_of_energy<T: Real>(
    blades: &Blades,
    b: usize,
    data: &[Complex<T>],
    samples: usize,
    k: &dyn Fn(usize) -> [f64; 2],
) -> [f64; 2] {
    let (blade, of_blade) = (&blades.all[b], blades.samples());
    let at = |line: usize, sample: usize| b * of_blade + blade.index(line, sample, blades.readout);
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

/// Adds the translations that were removed from the data before, and takes the mean of all.
pub(super) fn add_translations(motions: &mut [Motion], centres: &[Motion]) -> Result<()> {
    for (motion, centre) in motions.iter_mut().zip(centres) {
        (0..2).for_each(|a| motion.rigid.translation[a] += centre.rigid.translation[a]);
    }
    let mut rigid = try_collect(motions.len(), WHAT, motions.iter().map(|m| m.rigid))?;
    RigidMotion::centre(&mut rigid);
    motions.iter_mut().zip(rigid).for_each(|(motion, rigid)| motion.rigid = rigid);
    Ok(())
}

/// What was found.
pub(super) struct Found {
    pub motions: Vec<Motion>,
    /// Of each blade's data about the centre with those of all.
    pub correlations: Vec<f64>,
    /// Of each blade in the image.
    pub weights: Vec<f64>,
}

/// The blades' data: channels [samples, channels] at k.
pub(super) struct Data<'a> {
    pub blades: &'a Blades,
    pub k: &'a dyn Fn(usize) -> [f64; 2],
    pub channels: &'a [Complex<f64>],
    pub dims: [usize; 2],
    pub options: &'a Options,
}

/// Finds the motion of all blades, about its mean.
pub(super) fn find(data: &Data<'_>, sought: &PropellerOptions) -> Result<Found> {
    let count = data.blades.all.len();
    let mut motions = try_vec(count, Motion::default(), WHAT)?;
    let mut disc = Disc::new(data, data.blades.radius)?;
    let mut fits = try_vec(count, 1.0, WHAT)?;
    if sought.finds_phase() {
        disc.phases_of_centres(&mut motions);
    }
    disc.fit(&motions, &fits)?;
    if sought.finds_motion() {
        // The blade that agrees best with all of them is least likely to be one that went astray.
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
            if sought.rotation {
                disc.search_rotations(&mut motions)?;
            }
            if sought.translation {
                disc.search_translations(&mut motions, sought)?;
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
                let change = disc.refine(&mut motions, sought)?;
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
    let weights = if sought.weighting { weights(&correlations)? } else { try_vec(count, 1.0, WHAT)? };
    log::debug!(
        "motion of {count} blades, correlations from {:.4}",
        correlations.iter().fold(1.0, |a: f64, &b| a.min(b))
    );
    Ok(Found { motions, correlations, weights })
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

/// The weights of blades with these correlations: by how much of a blade's energy the others do not account for, more
/// than is usual in this scan (that is its noise).
fn weights(correlations: &[f64]) -> Result<Vec<f64>> {
    let part = |c: &f64| (1.0 - c * c).clamp(0.0, 1.0);
    let mut parts = try_collect(correlations.len(), WHAT, correlations.iter().map(part))?;
    parts.sort_unstable_by(f64::total_cmp);
    let usual = parts[parts.len() / 2];
    let weight = |c: &f64| ((TOLERATED + usual) / (TOLERATED + part(c))).min(1.0);
    try_collect(correlations.len(), WHAT, correlations.iter().map(weight))
}

/// The samples of all blades in a disc about k = 0, and the small image that they are fitted by.
struct Disc<'a> {
    data: &'a Data<'a>,
    radius: f64,
    k: Vec<[f64; 2]>,
    /// Where each blade's samples begin among these, and the end.
    starts: Vec<usize>,
    channels: usize,
    /// [samples, channels], as measured.
    measured: Vec<Complex<f64>>,
    /// The same without the motion assumed.
    corrected: Vec<Complex<f64>>,
    /// What the image would have there.
    model: Vec<Complex<f64>>,
    dims: [usize; 2],
    /// Voxels of the image in one of the small image.
    zoom: [f64; 2],
    image: Vec<Complex<f64>>,
    q: [Vec<f64>; 2],
    weights: Vec<f64>,
    plan: Option<Plan<f64>>,
}

impl<'a> Disc<'a> {
    fn new(data: &'a Data<'a>, radius: f64) -> Result<Self> {
        let (count, of_blade) = (data.blades.all.len(), data.blades.samples());
        let inside = |m: &usize| {
            let [x, y] = (data.k)(*m);
            x * x + y * y <= radius * radius
        };
        let mut starts = try_reserve(count + 1, WHAT)?;
        starts.push(0);
        for b in 0..count {
            starts.push(starts[b] + (b * of_blade..(b + 1) * of_blade).filter(inside).count());
        }
        let samples = starts[count];
        let all = count * of_blade;
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

    fn blade(&self, b: usize) -> std::ops::Range<usize> {
        self.starts[b]..self.starts[b + 1]
    }

    /// Where a blade's samples are in an array of all channels.
    fn blade_in(&self, b: usize, channel: usize) -> std::ops::Range<usize> {
        let (blade, samples) = (self.blade(b), self.k.len());
        channel * samples + blade.start..channel * samples + blade.end
    }

    /// Takes the samples to be where they were, seen from the object.
    fn place(&mut self, motions: &[Motion], of_blades: &[f64]) -> Result<()> {
        let samples = self.k.len();
        for (b, motion) in motions.iter().enumerate() {
            for m in self.blade(b) {
                let place = motion.rigid.back(self.k[m]);
                (0..2).for_each(|a| self.q[a][m] = place[a] * self.zoom[a]);
                self.weights[m] = of_blades[b];
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
            None => self.plan = Some(Plan::of_step(&geometry, &small(self.data.options))?),
        }
        Ok(())
    }

    /// Fits the image to the blades' data, by their weights, and computes what it would have there.
    fn fit(&mut self, motions: &[Motion], of_blades: &[f64]) -> Result<()> {
        self.place(motions, of_blades)?;
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

    /// Computes what the image has where the samples are.
    fn predict(&mut self) -> Result<()> {
        plan_of(&self.plan).forward(&self.image[..], &mut self.model[..])
    }

    /// The correlation of each blade's data with the image's.
    fn agreement(&self) -> Result<Vec<f64>> {
        let of = |b: usize| {
            let mut sums = (Complex::<f64>::default(), 0.0, 0.0);
            for range in (0..self.channels).map(|c| self.blade_in(b, c)) {
                for (d, m) in self.corrected[range.clone()].iter().zip(&self.model[range]) {
                    sums = (sums.0 + m.conj() * d, sums.1 + d.norm_sqr(), sums.2 + m.norm_sqr());
                }
            }
            let energy = (sums.1 * sums.2).sqrt();
            // Also for the sums of numbers that overflow or are not there.
            if energy > 0.0 {
                (sums.0.norm() / energy).min(1.0)
            } else {
                0.0
            }
        };
        try_collect(self.starts.len() - 1, WHAT, (0..self.starts.len() - 1).map(of))
    }

    /// Gives each blade the phase of its samples next to k = 0, which no motion changes, from that of the first blade.
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

    /// Gives each blade the rotation at which its magnitudes are most like those of the image.
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
            // From 0 outwards, that of equals the smaller rotation wins.
            let size = i.div_ceil(2) as f64 / tries as f64 * WIDEST;
            let angle = if i % 2 == 0 { size } else { -size };
            turned.fill(Motion::of_angle(angle));
            self.place(&turned, &equal)?;
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

    /// Gives each blade the translation at which its data correlate best with the image's.
    fn search_translations(&mut self, motions: &mut [Motion], sought: &PropellerOptions) -> Result<()> {
        let samples = self.k.len();
        let turned = try_collect(motions.len(), WHAT, motions.iter().map(|m| Motion::of_angle(m.rigid.angle)))?;
        let equal = try_vec(motions.len(), 1.0, WHAT)?;
        self.place(&turned, &equal)?;
        self.predict()?;
        // The products reach twice as far as the disc.
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
            let plan = Plan::of_step(&Geometry::new(&dims, &[&k[0], &k[1]]), &small(self.data.options))?;
            plan.adjoint(&products[..], &mut peaks[..])?;
            let mut best = (Complex::default(), [0.0; 2]);
            for (i, peak) in peaks.iter().enumerate() {
                let place = [i % dims[0], i / dims[0]];
                let shift = [0, 1].map(|a| (place[a] as f64 - (dims[a] / 2) as f64) * zoom[a]);
                // Within the image that the data can tell apart.
                if shift.iter().zip(self.data.dims).all(|(s, n)| s.abs() <= 0.5 * n as f64)
                    && peak.norm_sqr() > best.0.norm_sqr()
                {
                    best = (*peak, shift);
                }
            }
            motion.rigid.translation = best.1;
            if sought.finds_phase() {
                motion.phase = best.0.arg();
            }
        }
        Ok(())
    }

    /// One step of Gauss and Newton for each blade against the image, then the mean motion taken from all. Returns the
    /// largest change of an angle and of a shift.
    fn refine(&mut self, motions: &mut [Motion], sought: &PropellerOptions) -> Result<[f64; 2]> {
        // d model / d angle by the derivatives of the image's transform: those of x and y times the image.
        let slope = |axis: usize| -> Result<Vec<Complex<f64>>> {
            let n = self.dims;
            let place = |i: usize| if axis == 0 { i % n[0] } else { i / n[0] % n[1] };
            let factor = |i: usize| -TAU * (place(i) as f64 - (n[axis] / 2) as f64) * self.zoom[axis];
            let times = |(i, x): (usize, &Complex<f64>)| x * Complex::new(0.0, factor(i));
            let image = try_collect(self.image.len(), WHAT, self.image.iter().enumerate().map(times))?;
            let mut slope = try_vec(self.model.len(), Complex::default(), WHAT)?;
            plan_of(&self.plan).forward(&image[..], &mut slope[..])?;
            Ok(slope)
        };
        let slopes = [slope(0)?, slope(1)?];
        let before = try_collect(motions.len(), WHAT, motions.iter().copied())?;
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
            // What is known beforehand, against the noise.
            let noise = energy / (self.blade(b).len() * self.channels).max(1) as f64;
            let RigidMotion { angle, translation: [x, y] } = motion.rigid;
            let own = [angle, x, y, motion.phase];
            let expected = [EXPECTED.0, EXPECTED.1 * fov, EXPECTED.1 * fov, f64::INFINITY];
            let unknown = [sought.rotation, sought.translation, sought.translation, sought.finds_phase()];
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
        centre(motions)?;
        let mut change = [0.0_f64; 2];
        for (before, motion) in before.iter().zip(motions.iter()) {
            let (before, now) = (before.rigid, motion.rigid);
            let shift = |a: usize| now.translation[a] - before.translation[a];
            change = [change[0].max((now.angle - before.angle).abs()), change[1].max(shift(0).hypot(shift(1)))];
        }
        Ok(change)
    }
}

/// The plan of a disc, which is there once its samples have been placed.
fn plan_of(plan: &Option<Plan<f64>>) -> &Plan<f64> {
    plan.as_ref().expect("samples have been placed")
}

/// Options of the small plans.
pub(super) fn small(options: &Options) -> Options {
    Options {
        device: Device::Cpu,
        tolerance: TOLERANCE,
        threads: options.threads,
        simd: options.simd,
        interrupt: options.interrupt.clone(),
        ..Options::default()
    }
}

/// Takes the mean motion and phase from all blades, as those of the object cannot be told from it.
fn centre(motions: &mut [Motion]) -> Result<()> {
    let mut rigid = try_collect(motions.len(), WHAT, motions.iter().map(|m| m.rigid))?;
    RigidMotion::centre(&mut rigid);
    let phase: Complex<f64> = motions.iter().map(|m| Complex::from_polar(1.0, m.phase)).sum();
    for (motion, rigid) in motions.iter_mut().zip(rigid) {
        motion.rigid = rigid;
        motion.phase = (Complex::from_polar(1.0, motion.phase) * phase.conj()).arg();
    }
    Ok(())
}

/// Rings about k = 0, in which magnitudes are compared without their mean: it falls steeply, and says nothing.
struct Rings {
    of: Vec<usize>,
    count: usize,
}

impl Rings {
    fn new(disc: &Disc<'_>) -> Result<Rings> {
        let fov = disc.data.dims.into_iter().fold(1, usize::max) as f64;
        let count = ((disc.radius * fov).round() as usize).max(2);
        let ring = |k: &[f64; 2]| ((k[0].hypot(k[1]) / disc.radius * count as f64) as usize).min(count - 1);
        Ok(Rings { of: try_collect(disc.k.len(), WHAT, disc.k.iter().map(ring))?, count })
    }

    /// How alike the magnitudes of a blade and of the model are: the mean of their correlations in all rings, each by
    /// its number of samples. `sums` is room for those of each ring.
    fn score(&self, disc: &Disc<'_>, b: usize, sums: &mut [[f64; 6]]) -> f64 {
        sums.fill([0.0; 6]);
        for c in 0..disc.channels {
            for (i, m) in disc.blade_in(b, c).zip(disc.blade(b)) {
                let [x, y] = [disc.measured[i], disc.model[i]].map(|z| z.norm_sqr().sqrt());
                let ring = &mut sums[self.of[m]];
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
